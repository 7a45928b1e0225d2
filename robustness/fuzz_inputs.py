"""Inputs of a fuzzer: arrays and tables with all keywords, valid and invalid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz_choices import LABELS, TEXTS, Choices, Input, anything, arguments, label, ragged_votes
from fuzz_frames import KINDS, LIBRARIES, frame, possible

# fmt: off
LEVELS = (
    0.95, 0.5, 0.999, 0, 1, -1, 2, 1e-300, 1 - 2**-53, Fraction(1, 2), Decimal("0.9"), np.float32(0.9), True, None, "x",
)
RATES = (
    0.9, 0.5, 0.7, 0, 1, 1 / 3, -1, 2, 1e-9, 5e-324, 1e300, float("nan"), float("inf"), True, None, "x", Fraction(1, 3),
)
# fmt: on
SIZES = (0, 1, 2, 5, 50, -1, 1.5, 2**70, True, None, "x", np.int64(3), float("nan"))
SEEDS = (None, 0, 1, -1, 2**70, "x", 1.5, [1, 2])
METHODS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "confidence_interval": {
        "confidence_level": LEVELS,
        "method": (None, "beta", "wald", "bootstrap", "bca", "x", 1, []),
        "n_resamples": SIZES,
        "rng": SEEDS,
    },
    "bootstrap": {"n_resamples": SIZES, "rng": SEEDS},
    "permutation_test": {
        "method": (None, "exact", "z", "monte-carlo", "wald", "x", []),
        "n_resamples": SIZES,
        "alternative": ("greater", "x", None),
    },
    "by_category": {"confidence_level": LEVELS},
    "to_dict": {"confidence_level": LEVELS},
    "review": {"labeler": ("llm", None, "x", [], 1), "limit": SIZES},
    "chart": {
        "name": ("scale", "categories", "confusion", "annotator_comparison", "differences", "x", None, []),
        "labeler": (None,),
    },
    **{
        name: {}
        for name in (
            "confusion",
            "__repr__",
            "_repr_html_",
            "annotators",
            "annotator_comparison",
            "sample_sizes",
            "table",
        )
    },
}


def container(votes: list[list[Any]], kind: str) -> Any:
    """Return votes as lists, tuples or arrays; arrays are filled with None."""
    if kind == "lists":
        return votes
    if kind == "tuples":
        return tuple(map(tuple, votes))
    if kind == "rows":
        return [_objects(row) for row in votes]
    array = np.full((len(votes), max(map(len, votes), default=0)), None, object)
    for place, row in enumerate(votes):
        array[place, : len(row)] = _objects(row)
    return np.asfortranarray(array) if kind == "columns" else array


def _objects(row: Sequence[Any]) -> Any:
    """Return an array of objects, also of those that are arrays."""
    array = np.empty(len(row), object)
    for place, value in enumerate(row):
        array[place] = value
    return array


DTYPES = ("i1", "u1", "i4", "u8", "i8", "f2", "f4", "f8", "?", "U2", "T", "O", ">i4", "g")
CALLS = ("tally", "tally", "tally", "dh_kappa", "dh_kappa", "fleiss_kappa", "compare", "audit", "plan", "simulate")


def arrays(choices: Choices) -> Input:
    """Votes, labels and counts in lists and arrays, with all keywords; or a plan; or a simulation."""
    call = choices.of(CALLS)
    if call in ("plan", "simulate"):
        return _plan(choices) if call == "plan" else _simulation(choices)
    n = choices.upto(5)
    plain = not choices.one_in()
    labels = choices.some(LABELS, 1, 4) if plain else [label(choices) for _ in range(1 + choices.upto(3))]
    votes, suggested = ragged_votes(choices, labels, n), choices.each([*labels, None], n)
    given: dict[str, Any] = {}
    kind = choices.of(("lists", "tuples", "rows", "array", "columns", "typed", "counts"))
    if kind == "typed":
        width = choices.upto(3)
        array = np.array(choices.each(range(4), n * width), "i8").reshape(n, width).astype(choices.of(DTYPES))
        votes, given["data"] = array.tolist(), array
        suggested = choices.each(array.ravel().tolist() or [None], n)
    elif kind == "counts":
        width = 1 + choices.upto(3)
        counts = [choices.each(range(4), width) for _ in range(n)]
        votes = [[code for code, count in enumerate(row) for _ in range(count)] for row in counts]
        given["counts"] = np.array(counts, "u1").reshape(n, width) if choices.one_in() else counts
        suggested = choices.each(range(width), n)
    else:
        given["data"] = container(votes, kind)
    if call != "fleiss_kappa":
        given["suggested"] = {"llm": suggested, "rule": suggested[::-1]} if call == "compare" else suggested
    options = arguments(choices, _options(call, labels, n)) if choices.one_in() else {}
    change = choices.of((None, None, None, "cell", "data", "suggested", "both"))
    if change == "cell" and votes and kind == "lists":
        votes[0] = [*votes[0], anything(choices)]
        given["data"] = votes
    elif change == "both":
        given["counts"], given["data"] = given.get("data"), given.get("counts")
    elif change in ("data", "suggested") and change in given:
        given[change] = anything(choices)
    changed = change not in (None, "cell") or set(options) - {"missing"}
    name = choices.of((None, *METHODS))
    named = {"name": "scale"} if name == "chart" else {}
    return Input(
        call,
        given | options,
        method=None if name is None else (name, named | arguments(choices, METHODS[name])),
        votes=None if changed else votes,
        labels=None if changed or call == "fleiss_kappa" else suggested,
        missing=options.get("missing", ()),
        valid=not (change or options or name)
        and kind in ("lists", "array")
        and all(type(value) is str for value in labels),
    )


def _plan(choices: Choices) -> Input:
    rates = ("annotator_accuracy", "labeler_accuracy", "assurance")
    options: dict[str, Sequence[Any]] = dict.fromkeys(rates, RATES) | {"confidence_level": LEVELS}
    options |= {"n_categories": SIZES, "votes": SIZES, "pool": (None, 100, 10**9, *SIZES)}
    options |= {"prevalence": (None, [1, 2], [0, 0], [1e300, 1], "x", [1, float("nan")], [], [1] * 30)}
    given = {"half_width": choices.of((0.05, 0.1, 0.4, *RATES)), "n_categories": 3}
    given |= {"annotator_accuracy": 0.9, "labeler_accuracy": 0.8}
    method = choices.of((None, ("to_dict", {}), ("_repr_html_", {})))
    return Input("plan", given | arguments(choices, options), method=method)


def _simulation(choices: Choices) -> Input:
    options: dict[str, Sequence[Any]] = {"accuracy": RATES, "missing": RATES, "rng": SEEDS}
    options |= {"categories": (["a", "b"], ["a"], [], "ab", [1, 2], None, ["a", "a"])}
    options |= {"annotators": (3, [0.9, 0.1], [], *SIZES), "prevalence": (None, [1, 2], [0, 0], "x", [1])}
    options |= {"labelers": (None, {}, {"x": 0.5}, {1: 2}, ["x"])}
    return Input("simulate", {"n_items": choices.of(SIZES)} | arguments(choices, options))


def _options(call: str, labels: Sequence[Any], n: int) -> dict[str, Sequence[Any]]:
    """Return the other keywords of a call, with valid and invalid values."""
    options: dict[str, Sequence[Any]] = {
        "missing": ((), ["NA"], ["a", 1], "NA", [None]),
        "categories": (None, labels, [*labels, "never"], list(range(4))),
        "sample_weight": (None, [1] * n, [0.5, *[2] * (n - 1)][:n], [0] * n, [-1] * n, [1e300] * n, [float("nan")] * n),
        "strata": (None, ["s"] * n, [*"stststst"][:n], [1] * n, [None] * n),
        "annotators": (None, "ann_*", ["a"]),
        "item": (None, "id"),
        "label": (None, "x"),
        "duplicates": ("error", "x"),
    }
    if call != "tally":
        options["pool"] = (None, 10, 10**9, 0, -1, 1.5, {"s": 10}, {"s": 10, "t": 20}, {}, {"s": "x"})
    if call in ("compare", "audit"):
        options |= {"confidence_level": LEVELS, "rng": SEEDS}
    if call in ("dh_kappa", "audit"):
        options["weights"] = (None, "linear", "quadratic", "x", np.eye(4), np.eye(len(labels)), [[1]], 0)
    return options


# fmt: off
NAMES = (
    "id", "llm", "ann_1", "ann_2", "label", "item", "annotator", "who", "suggested_0", "order", "votes", "count", "",
)
# fmt: on
INEXACT = ("Object", "Decimal", "DECIMAL", "decimal", "BIT")


def frames(choices: Choices) -> Input:
    """Tables of five libraries, with columns of any type and name."""
    library = choices.of(LIBRARIES)
    kind = choices.of(("text", "int", *(kind for kind in KINDS if possible(library, kind))))
    dtype = choices.of(possible(library, kind))
    n, width = choices.upto(5), 1 + choices.upto(3)
    names = ["id", "llm", *(f"ann_{place}" for place in range(width))]
    if choices.one_in():
        names = [*dict.fromkeys([*choices.each((*NAMES, *TEXTS), width + 2), *names])][: width + 2]
    columns = {name: (kind, dtype, choices.each([*KINDS[kind], None], n)) for name in names}
    long = choices.one_in(4)
    number, text = possible(library, "int")[0], possible(library, "text")[0]
    columns[names[0]] = ("int", number, [place // 2 if long else place for place in range(n)])
    if long:
        columns[names[2]] = ("text", text, [f"w{place % 2}" for place in range(n)])
    given: dict[str, Any] = {"data": frame(library, columns), "suggested": names[1]}
    if long:
        given |= {"item": names[0], "label": names[3] if width > 1 else names[1], "annotator": names[2]}
    else:
        given["annotators"] = names[2:]
    more = {}
    if choices.one_in():
        options: dict[str, Sequence[Any]] = dict.fromkeys(("item", "label", "annotator", "count"), (None, *names, "x"))
        options |= {"sample_weight": (None, *names), "strata": (None, *names), "missing": (["ham"], [1], [True])}
        options |= {"annotators": ("ann_*", "*", names, []), "counts": ("*", names[2:], None)}
        options |= {"unlisted": ("unlabeled",), "duplicates": ("first", "last", "x"), "suggested": (None, names)}
        options |= {"categories": (list(KINDS[kind]), ["a"]), "items": (given["data"], None, "x.csv")}
        more = arguments(choices, options)
    call = choices.of(("tally", "tally", "dh_kappa", "fleiss_kappa", "audit", "compare"))
    if call == "fleiss_kappa":
        del given["suggested"]
        more.pop("suggested", None)
    if call in ("compare", "audit"):
        given["suggested"] = [names[1]]
    known = not more and not long
    return Input(
        call,
        given | more,
        votes=[list(row) for row in zip(*(columns[name][2] for name in names[2:]), strict=True)] if known else None,
        labels=columns[names[1]][2] if known and call != "fleiss_kappa" else None,
        valid=known
        and call != "compare"
        and kind in ("text", "int", "bool")
        and not str(dtype).startswith(INEXACT)
        and names[1] == "llm",
    )
