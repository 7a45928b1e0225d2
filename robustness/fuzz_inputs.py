"""Arrays and tables that a fuzzer throws at dhkappa, with every keyword: sound, and as strangers write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz_dice import LABELS, TEXTS, Dice, Input, junk, rows, value
from fuzz_frames import KINDS, LIBRARIES, frame, possible

LEVELS = (
    0.95,
    0.5,
    0.999,
    0,
    1,
    -1,
    2,
    1e-300,
    1 - 2**-53,
    Fraction(1, 2),
    Decimal("0.9"),
    np.float32(0.9),
    True,
    None,
    "x",
)
RATES = (
    0.9,
    0.5,
    0.7,
    0,
    1,
    1 / 3,
    -1,
    2,
    1e-9,
    5e-324,
    1e300,
    float("nan"),
    float("inf"),
    True,
    None,
    "x",
    Fraction(1, 3),
)
SIZES = (0, 1, 2, 5, 50, -1, 1.5, 2**70, True, None, "x", np.int64(3), float("nan"))
SEEDS = (None, 0, 1, -1, 2**70, "x", 1.5, [1, 2])

THEN: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "interval": {
        "level": LEVELS,
        "method": (None, "beta", "logit", "wald", "bootstrap", "bca", "log", "x", 1, []),
        "n": SIZES,
        "rng": SEEDS,
    },
    "bootstrap": {"n": SIZES, "rng": SEEDS},
    "test": {
        "method": (None, "exact", "z", "monte-carlo", "wald", "x", []),
        "n": SIZES,
        "alternative": ("greater", "x", None),
    },
    "by_category": {"level": LEVELS},
    "to_dict": {"level": LEVELS},
    "items": {"labeler": ("llm", None, "x", [], 1), "most": SIZES},
    "chart": {"name": ("scale", "categories", "confusion", "people", "differences", "x", None, []), "labeler": (None,)},
    **{
        name: {}
        for name in ("confusion", "__repr__", "_repr_html_", "annotators", "people", "tighter", "table", "copy")
    },
}


def asked(dice: Dice, options: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Choose some of the options, each with one of its values, or with anything."""
    chosen = dict.fromkeys(dice.some(sorted(options), 0, 3)) if options else {}
    spoilt = dice.seldom(4)
    return {name: junk(dice) if spoilt else dice.of(options[name]) for name in chosen}


def container(votes: list[list[Any]], how: str) -> Any:
    """Put votes into what a person may have them in; lists of different lengths are filled up where they must."""
    if how == "lists":
        return votes
    if how == "tuples":
        return tuple(map(tuple, votes))
    if how == "rows":
        return [_objects(row) for row in votes]
    array = np.full((len(votes), max(map(len, votes), default=0)), None, object)
    for place, row in enumerate(votes):
        array[place, : len(row)] = _objects(row)
    return np.asfortranarray(array) if how == "columns" else array


def _objects(row: Sequence[Any]) -> Any:
    """Return an array that holds these objects, also where they are arrays."""
    array = np.empty(len(row), object)
    for place, held in enumerate(row):
        array[place] = held
    return array


DTYPES = ("i1", "u1", "i4", "u8", "i8", "f2", "f4", "f8", "?", "U2", "T", "O", ">i4", "g")
ASKS = ("tally", "tally", "tally", "dh_kappa", "dh_kappa", "fleiss_kappa", "compare", "audit", "plan", "simulate")


def arrays(dice: Dice) -> Input:
    """Votes, labels and counts in lists and arrays, with every keyword; or a plan; or a simulation."""
    ask = dice.of(ASKS)
    if ask in ("plan", "simulate"):
        return _planned(dice) if ask == "plan" else _simulated(dice)
    n = dice.upto(5)
    tame = not dice.seldom()
    known = dice.some(LABELS, 1, 4) if tame else [value(dice) for _ in range(1 + dice.upto(3))]
    votes, suggested = rows(dice, known, n), dice.each([*known, None], n)
    words: dict[str, Any] = {}
    how = dice.of(("lists", "tuples", "rows", "array", "columns", "typed", "counts"))
    if how == "typed":
        width = dice.upto(3)
        array = np.array(dice.each(range(4), n * width), "i8").reshape(n, width).astype(dice.of(DTYPES))
        votes, words["data"] = array.tolist(), array
        suggested = dice.each(array.ravel().tolist() or [None], n)
    elif how == "counts":
        width = 1 + dice.upto(3)
        counts = [dice.each(range(4), width) for _ in range(n)]
        votes = [[code for code, count in enumerate(row) for _ in range(count)] for row in counts]
        words["counts"] = np.array(counts, "u1").reshape(n, width) if dice.seldom() else counts
        suggested = dice.each(range(width), n)
    else:
        words["data"] = container(votes, how)
    if ask != "fleiss_kappa":
        words["suggested"] = {"llm": suggested, "rule": suggested[::-1]} if ask == "compare" else suggested
    more = asked(dice, _sample_words(ask, known, n)) if dice.seldom() else {}
    spoilt = dice.of((None, None, None, "cell", "data", "suggested", "both"))
    if spoilt == "cell" and votes and how == "lists":
        votes[0] = [*votes[0], junk(dice)]
        words["data"] = votes
    elif spoilt == "both":
        words["counts"], words["data"] = words.get("data"), words.get("counts")
    elif spoilt in ("data", "suggested") and spoilt in words:
        words[spoilt] = junk(dice)
    changed = spoilt not in (None, "cell") or set(more) - {"missing"}
    name = dice.of((None, *THEN))
    then = None if name is None else (name, ({"name": "scale"} if name == "chart" else {}) | asked(dice, THEN[name]))
    return Input(
        ask,
        words | more,
        then=then,
        votes=None if changed else votes,
        labels=None if changed or ask == "fleiss_kappa" else suggested,
        missing=more.get("missing", ()),
        sound=not (spoilt or more or then) and how in ("lists", "array") and all(type(label) is str for label in known),
    )


def _planned(dice: Dice) -> Input:
    options: dict[str, Sequence[Any]] = dict.fromkeys(("accuracy", "labeler", "assurance"), RATES) | {"level": LEVELS}
    options |= {"categories": SIZES, "votes": SIZES, "pool": (None, 100, 10**9, *SIZES)}
    options |= {"prevalence": (None, [1, 2], [0, 0], [1e300, 1], "x", [1, float("nan")], [], [1] * 30)}
    sound = {"half_width": dice.of((0.05, 0.1, 0.4, *RATES)), "categories": 3, "accuracy": 0.9, "labeler": 0.8}
    return Input("plan", sound | asked(dice, options), then=dice.of((None, ("to_dict", {}), ("_repr_html_", {}))))


def _simulated(dice: Dice) -> Input:
    options: dict[str, Sequence[Any]] = {"accuracy": RATES, "missing": RATES, "rng": SEEDS}
    options |= {"categories": (["a", "b"], ["a"], [], "ab", [1, 2], None, ["a", "a"])}
    options |= {"annotators": (3, [0.9, 0.1], [], *SIZES), "prevalence": (None, [1, 2], [0, 0], "x", [1])}
    options |= {"labelers": (None, {}, {"x": 0.5}, {1: 2}, ["x"])}
    return Input("simulate", {"n_items": dice.of(SIZES)} | asked(dice, options))


def _sample_words(ask: str, known: Sequence[Any], n: int) -> dict[str, Sequence[Any]]:
    """Every keyword of a call beside data and labels, with values right and wrong."""
    options: dict[str, Sequence[Any]] = {
        "missing": ((), ["NA"], ["a", 1], "NA", [None]),
        "categories": (None, known, [*known, "never"], list(range(4))),
        "weights": (None, [1] * n, [0.5, *[2] * (n - 1)][:n], [0] * n, [-1] * n, [1e300] * n, [float("nan")] * n),
        "strata": (None, ["s"] * n, [*"stststst"][:n], [1] * n, [None] * n),
        "annotators": (None, "ann_*", ["a"]),
        "item": (None, "id"),
        "label": (None, "x"),
        "duplicates": ("error", "x"),
    }
    if ask != "tally":
        options["pool"] = (None, 10, 10**9, 0, -1, 1.5, {"s": 10}, {"s": 10, "t": 20}, {}, {"s": "x"})
    if ask in ("dh_kappa", "compare", "audit"):
        options["panel"] = ("fixed", "drawn", "x", None)
    if ask in ("compare", "audit"):
        options |= {"level": LEVELS, "rng": SEEDS}
    if ask in ("dh_kappa", "audit"):
        options["ordinal"] = (None, "linear", "quadratic", "x", np.eye(4), np.eye(len(known)), [[1]], 0)
    return options


NAMES = (
    "id",
    "llm",
    "ann_1",
    "ann_2",
    "label",
    "item",
    "annotator",
    "who",
    "suggested_0",
    "order",
    "votes",
    "count",
    "",
)


def frames(dice: Dice) -> Input:
    """Tables of five libraries, with columns of any type and name."""
    library = dice.of(LIBRARIES)
    kind = dice.of(("text", "int", *(kind for kind in KINDS if possible(library, kind))))
    dtype = dice.of(possible(library, kind))
    n, wide = dice.upto(5), 1 + dice.upto(3)
    names = ["id", "llm", *(f"ann_{place}" for place in range(wide))]
    if dice.seldom():
        names = [*dict.fromkeys([*dice.each((*NAMES, *TEXTS), wide + 2), *names])][: wide + 2]
    columns = {name: (kind, dtype, dice.each([*KINDS[kind], None], n)) for name in names}
    long = dice.seldom(4)
    number, text = possible(library, "int")[0], possible(library, "text")[0]
    columns[names[0]] = ("int", number, [place // 2 if long else place for place in range(n)])
    if long:
        columns[names[2]] = ("text", text, [f"w{place % 2}" for place in range(n)])
    words: dict[str, Any] = {"data": frame(library, columns), "suggested": names[1]}
    if long:
        words |= {"item": names[0], "label": names[3] if wide > 1 else names[1], "annotator": names[2]}
    else:
        words["annotators"] = names[2:]
    more = {}
    if dice.seldom():
        options: dict[str, Sequence[Any]] = dict.fromkeys(("item", "label", "annotator", "count"), (None, *names, "x"))
        options |= {"weights": (None, *names), "strata": (None, *names), "missing": (["ham"], [1], [True])}
        options |= {
            "annotators": ("ann_*", "*", names, []),
            "counts": ("*", names[2:], None),
            "unlisted": ("unlabeled",),
        }
        options |= {"duplicates": ("first", "last", "x"), "suggested": (None, names)}
        options |= {"categories": (list(KINDS[kind]), ["a"]), "items": (words["data"], None, "x.csv")}
        more = asked(dice, options)
    ask = dice.of(("tally", "tally", "dh_kappa", "fleiss_kappa", "audit", "compare"))
    if ask == "fleiss_kappa":
        del words["suggested"]
        more.pop("suggested", None)
    if ask in ("compare", "audit"):
        words["suggested"] = [names[1]]
    known = not more and not long
    tame = names[1] == "llm"
    return Input(
        ask,
        words | more,
        votes=[list(row) for row in zip(*(columns[name][2] for name in names[2:]), strict=True)] if known else None,
        labels=columns[names[1]][2] if known and ask != "fleiss_kappa" else None,
        sound=known
        and ask != "compare"
        and not str(dtype).startswith(("Object", "Decimal", "DECIMAL", "decimal", "BIT"))
        and kind in ("text", "int", "bool")
        and tame,
    )
