"""How often ``Dataset.check`` finds each problem in simulated tables that have it, and in clean tables.

Writes the table of docs/reference/problems.md. Clean tables have many shapes; a table with a problem is a clean one
that was changed in one way.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from dhkappa import Dataset, simulate
from dhkappa.inputs.problems import CODES
from simulation import DOCS, Generator

PAGE = DOCS / "reference" / "problems.md"
START, END = "<!-- rates: start -->", "<!-- rates: end -->"
NAMES = ("billing", "bug", "how-to", "other", "outage", "refund", "sales")
SEED = 20_261  # not among the seeds on which thresholds were chosen (1 to 3)
ANNOTATORS = ("ada", "ben", "chloe", "dev", "eli", "fay")


@dataclass(frozen=True)
class Data:
    """Votes of n items by N annotators, labels by labeler, names of items, other columns, and options."""

    votes: np.ndarray[Any, Any]
    labels: dict[str, Any]
    truth: np.ndarray[Any, Any]
    ids: list[str]
    wide: bool = True
    annotators: tuple[str, ...] = ANNOTATORS
    item_columns: dict[str, list[Any]] = field(default_factory=dict)
    wide_columns: dict[str, list[Any]] = field(default_factory=dict)
    listed: list[str] | None = None  # ids of the items table, if they differ
    voter: Callable[[str], str] | None = None  # spelling of an annotator in a row
    options: dict[str, Any] = field(default_factory=dict)

    def dataset(self) -> Dataset:
        """Return the data as a table in wide format, or as two tables in long format."""
        labels = {f"suggested_{name}": list(column) for name, column in self.labels.items()}
        if self.wide:
            votes = {f"ann_{name}": list(self.votes[:, place]) for place, name in enumerate(self._names)}
            columns = {"item": self.ids, **labels, **votes, **self.item_columns, **self.wide_columns}
            return Dataset(pl.DataFrame(columns, strict=False), **self.options)
        rows = [
            (item, self.voter(who) if self.voter else who, label)
            for item, row in zip(self.ids, self.votes, strict=True)
            for who, label in zip(self._names, row, strict=True)
            if label is not None
        ]
        long = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
        items = pl.DataFrame({"item": self.listed or self.ids, **labels, **self.item_columns}, strict=False)
        return Dataset(long, items=items, **self.options)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.annotators[: self.votes.shape[1]])


def base(rng: Generator, **given: Any) -> Data:
    """Simulate a clean table: of random size, format and quality unless ``given``."""
    n = int(given.pop("n", rng.integers(60, 600)))
    settings: dict[str, Any] = {
        "categories": NAMES[: int(rng.integers(2, 8))],
        "annotators": list(rng.uniform(0.75, 0.95, int(rng.integers(3, 7)))),
        "labelers": {"llm": float(rng.uniform(0.6, 0.95)), "rule": float(rng.uniform(0.5, 0.8))},
        "missing": float(rng.choice([0.0, 0.15, 0.3])),
    }
    drawn = simulate(n, **(settings | given), rng=rng)
    start = int(rng.integers(0, 10_000))
    ids = [f"T-{start + place:05d}" for place in range(n)]
    return Data(drawn.votes, drawn.suggested, drawn.truth, ids, wide=bool(rng.random() < 0.5))


def _rare(rng: Generator) -> Data:
    return base(rng, categories=NAMES[:4], prevalence=[95, 3, 1, 1], n=int(rng.integers(200, 800)))


def _many_categories(rng: Generator) -> Data:
    return base(rng, categories=[f"class {place}" for place in range(1000)], n=600)


def _numeric(rng: Generator) -> Data:
    start, m = int(rng.integers(0, 2)), int(rng.integers(3, 9))
    return base(rng, categories=[str(start + place) for place in range(m)])


def _prefixes(rng: Generator) -> Data:
    data = base(rng)
    return replace(data, ids=[f"d{place // 4:03d}-{place % 4}" for place in range(len(data.ids))])


def _agreed(rng: Generator) -> Data:
    return base(rng, annotators=[1.0] * 3)


def _two(rng: Generator) -> Data:
    return base(rng, annotators=list(rng.uniform(0.8, 0.95, 2)), missing=0.0)


def _strong(rng: Generator) -> Data:
    return base(rng, labelers={"llm": float(rng.uniform(0.95, 0.98))})


def _many_labelers(rng: Generator) -> Data:
    return base(rng, labelers={f"model {place}": float(rng.uniform(0.5, 0.95)) for place in range(12)})


def _odd_names(rng: Generator) -> Data:
    return base(rng, categories=("yes", "no", "yes/no", "R, Python", "not applicable", "C++ & C"))


def _hard(rng: Generator) -> Data:
    """Items of different difficulty: on a third of them, annotators guess."""
    data = base(rng, missing=0.0)
    other = simulate(
        len(data.ids), categories=sorted({*data.truth}), annotators=data.votes.shape[1], accuracy=0.4, rng=rng
    )
    hard = rng.random(len(data.ids)) < 1 / 3
    return replace(data, votes=np.where(hard[:, None], other.votes, data.votes))


def _true(rng: Generator) -> Data:
    data = base(rng)
    return replace(data, labels={"truth": list(data.truth)})


def _confused(rng: Generator) -> Data:
    """Return numbers without order, of which some pairs are confused more often than others."""
    n, m = int(rng.integers(240, 500)), int(rng.integers(4, 9))
    truth, wrong = rng.integers(0, m, n), rng.dirichlet(np.full(m, 0.7), m)

    def near(rate: float) -> Any:
        other = np.array([rng.choice(m, p=wrong[code]) for code in truth])
        return np.where(rng.random(n) < rate, truth, other).astype(str).astype(object)

    ids = [f"T-{place}" for place in range(n)]
    return Data(np.column_stack([near(0.75) for _ in range(4)]), {"llm": near(0.7)}, truth, ids)


def _expert(rng: Generator) -> Data:
    return base(rng, annotators=[0.97, 0.8, 0.8, 0.75], labelers={"llm": 0.97})


def _paths(rng: Generator) -> Data:
    return base(rng, categories=("animal|cat", "animal|dog", "plant|rose", "plant|oak", "other"))


def _row_numbers(rng: Generator) -> Data:
    data = base(rng)
    return replace(data, wide=False, ids=[str(place) for place in range(len(data.ids))])


def _with_columns(rng: Generator) -> Data:
    data = base(rng)
    n = len(data.ids)
    columns = {"language": list(rng.choice(["en", "de", "fr"], n)), "seconds": rng.integers(1, 90, n).tolist()}
    return replace(data, item_columns=columns)


CLEAN: dict[str, Callable[[Generator], Data]] = {
    "random size, format, quality": base,
    "rare categories": _rare,
    "1,000 categories": _many_categories,
    "numbers without order": _numeric,
    "ids that share prefixes": _prefixes,
    "perfect agreement": _agreed,
    "two annotators": _two,
    "labeler with accuracy .95 to .98": _strong,
    "twelve labelers": _many_labelers,
    "categories such as yes/no": _odd_names,
    "items of different difficulty": _hard,
    "numbers of which some pairs are confused": _confused,
    "annotator and labeler with accuracy .97": _expert,
    "labels without any error": _true,
    "categories such as animal\\|cat": _paths,
    "ids that are row numbers": _row_numbers,
    "other columns": _with_columns,
}


def _sized(rng: Generator, **given: Any) -> Data:
    """Return a table of 240 items or more with five categories."""
    settings = {"n": int(rng.integers(240, 500)), "categories": NAMES[:5], "annotators": [0.9, 0.85, 0.9, 0.8]}
    return base(rng, **(settings | given))


def _changed(rng: Generator, column: Any, share: float, change: Callable[[Any], Any]) -> np.ndarray[Any, Any]:
    """Change a share of the labels of an array."""
    found = np.array(column, object, copy=True)
    for place in np.ndindex(found.shape):
        if found[place] is not None and rng.random() < share:
            found[place] = change(found[place])
    return found


def _codes(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels={"llm": [str(NAMES.index(label)) for label in data.labels["llm"]]})


def _other_column(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels={"lang": rng.choice(["en", "de"], len(data.ids)).tolist()})


def _spelled(rng: Generator) -> Data:
    data = _sized(rng)
    spell = [str.upper, str.capitalize, lambda text: f"{text} ", lambda text: f" {text}"][int(rng.integers(4))]
    if rng.random() < 0.5:
        return replace(data, votes=_changed(rng, data.votes, 0.2, spell))
    return replace(data, labels={name: _changed(rng, column, 1, spell) for name, column in data.labels.items()})


def _missing(rng: Generator) -> Data:
    data = _sized(rng)
    how = str(rng.choice([" ", "#N/A", "<NA>", "\\N", "NaT", "nan", "null", "--", "N/A", "NA", "none", "?", "-"]))
    return replace(data, votes=_changed(rng, data.votes, 0.1, lambda _: how))


def _multilabel(rng: Generator) -> Data:
    data = _sized(rng)
    sign = str(rng.choice([";", "|", ",", "/"]))

    def both(label: str) -> str:
        pair = [label, str(rng.choice([name for name in NAMES[:5] if name != label]))]
        return sign.join(rng.permutation(pair))

    return replace(data, votes=_changed(rng, data.votes, 0.2, both))


def _rated(rng: Generator) -> Data:
    n, m = int(rng.integers(240, 500)), int(rng.choice([4, 5, 7]))
    truth = rng.integers(1, m + 1, n)

    def near() -> Any:
        return np.clip(truth + np.rint(rng.normal(0, 0.8, n)), 1, m).astype(int).astype(str).astype(object)

    ids = [f"T-{place}" for place in range(n)]
    return Data(np.column_stack([near() for _ in range(4)]), {"llm": near()}, truth, ids, wide=bool(rng.random() < 0.5))


def _percent(rng: Generator) -> Data:
    n = int(rng.integers(20, 200))
    counts = np.array([rng.multinomial(20, rng.dirichlet(np.ones(4))) * 5 for _ in range(n)])
    columns = {name: counts[:, place].tolist() for place, name in enumerate(NAMES[:4])}
    labels = {"llm": [NAMES[place] for place in counts.argmax(axis=1)]}
    ids = [f"T-{place}" for place in range(n)]
    return Data(
        np.empty((n, 0), object), labels, counts, ids, item_columns=columns, options={"counts": list(NAMES[:4])}
    )


def _weights(rng: Generator) -> Data:
    data = _sized(rng, missing=0.3)
    n_votes = [sum(label is not None for label in row) for row in data.votes]
    return replace(data, item_columns={"w": n_votes}, options={"sample_weight": "w"})


def _majority(rng: Generator) -> Data:
    data = _sized(rng)
    labels = []
    for row in data.votes:
        counts = Counter(label for label in row if label is not None)
        most = [label for label, number in counts.items() if number == max(counts.values())]
        labels.append(str(rng.choice(most)) if most else None)
    return replace(data, labels={"gold": labels})


def _copy(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels=data.labels | {"copy": list(data.votes[:, 1])})


def _abstains(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels={"llm": _changed(rng, data.labels["llm"], 0.2, lambda _: None)})


def _few_common(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels=data.labels | {"rule": _changed(rng, data.labels["rule"], 0.8, lambda _: None)})


def _metadata(rng: Generator) -> Data:
    data = _sized(rng)
    n, what = len(data.ids), str(rng.choice(["seconds", "confidence", "sure"]))
    values: dict[str, list[Any]] = {"seconds": list(range(2, 90)), "confidence": [1, 2, 3], "sure": ["high", "low"]}
    columns = {f"ann_{name}_{what}": rng.choice(list(map(str, values[what])), n).tolist() for name in ANNOTATORS[:4]}
    return replace(data, wide=True, wide_columns=columns)


def _unused(rng: Generator) -> Data:
    data = _sized(rng)
    name = str(rng.choice(["rater_5", "Ann_eli", "annotator5"]))
    return replace(data, votes=data.votes[:, :3], wide=True, wide_columns={name: list(data.votes[:, 3])})


def _annotators_spelled(rng: Generator) -> Data:
    spell: list[Callable[[str], str]] = [str, str.upper, str.capitalize, lambda name: f"{name} "]
    return replace(_sized(rng), wide=False, voter=lambda name: spell[int(rng.integers(4))](name))


def _not_joined(rng: Generator) -> Data:
    data = _sized(rng)
    change: list[Callable[[str], str]] = [
        str.lower,
        lambda text: f"{text} ",
        lambda text: text.replace("T-", "T-000"),
        lambda text: text[2:],
    ]
    how = change[int(rng.integers(len(change)))]
    return replace(data, wide=False, listed=[how(text) for text in data.ids])


def _by_row(rng: Generator) -> Data:
    data = _sized(rng)
    order, ids = rng.permutation(len(data.ids)), [str(place) for place in range(len(data.ids))]
    labels = {name: [column[place] for place in order] for name, column in data.labels.items()}
    return replace(data, wide=False, ids=ids, labels=labels)


def _clusters(rng: Generator) -> Data:
    """Items of a document mostly have one category."""
    size, groups = int(rng.integers(4, 9)), 60
    topic = rng.integers(0, 5, groups).repeat(size)
    truth = np.where(rng.random(topic.size) < 0.7, topic, rng.integers(0, 5, topic.size))

    def near(rate: float) -> Any:
        codes = np.where(rng.random(truth.size) < rate, truth, rng.integers(0, 5, truth.size))
        return np.array(NAMES, object)[codes]

    votes = np.column_stack([near(0.85) for _ in range(3)])
    ids = [f"doc{place // size:03d}#{place % size}" for place in range(truth.size)]
    data = Data(votes, {"llm": near(0.8)}, truth, ids, wide=bool(rng.random() < 0.5))
    if rng.random() < 0.5:
        numbered = [f"T-{place:04d}" for place in range(truth.size)]
        return replace(data, ids=numbered, item_columns={"document": [text.partition("#")[0] for text in ids]})
    return data


def _few(rng: Generator) -> Data:
    return base(rng, n=int(rng.integers(5, 19)))


def _adaptive(rng: Generator) -> Data:
    """Let a third and fourth annotator vote only if the first two differ."""
    data = _sized(rng, missing=0.0)
    votes = data.votes.copy()
    votes[votes[:, 0] == votes[:, 1], 2:] = None
    return replace(data, votes=votes)


CHANGED: dict[str, tuple[str, Callable[[Generator], Data]]] = {
    "labels are codes of the votes": ("labels-not-in-votes", _codes),
    "another column is named": ("labels-not-in-votes", _other_column),
    "case or spaces differ": ("category-variants", _spelled),
    "missing votes are spelled out": ("looks-missing", _missing),
    "several labels in a cell": ("looks-multilabel", _multilabel),
    "ratings": ("looks-ordinal", _rated),
    "percentages instead of counts": ("looks-like-percent", _percent),
    "weights are numbers of votes": ("weights-look-like-counts", _weights),
    "labels are the majority of the votes": ("labels-from-votes", _majority),
    "a labeler copies an annotator": ("labeler-equals-annotator", _copy),
    "a fifth of the labels is missing": ("labeler-abstains", _abstains),
    "one labeler labels a fifth of the items": ("few-common-items", _few_common),
    "seconds or confidence among the votes": ("not-annotators", _metadata),
    "an annotator's column has another name": ("annotators-unused", _unused),
    "names of annotators are spelled differently": ("annotator-variants", _annotators_spelled),
    "ids are written differently": ("ids-not-joined", _not_joined),
    "tables are joined by row, in different order": ("ids-are-row-numbers", _by_row),
    "items come from documents": ("looks-clustered", _clusters),
    "fewer than 20 items": ("too-few-items", _few),
    "more votes after disagreement": ("votes-follow-agreement", _adaptive),
}


def codes_of(data: Data) -> dict[str, str]:
    """Return the codes that are found, with the severity of each."""
    return {problem.code: problem.severity for problem in data.dataset().check().problems}


def run(repeats: int, seed: int) -> Iterator[tuple[str, str | None, list[dict[str, str]]]]:
    """Yield each shape, the code that it has, and the codes found in each of its tables."""
    for place, (name, make) in enumerate(CLEAN.items()):
        yield name, None, [codes_of(make(np.random.default_rng([seed, 0, place, n]))) for n in range(repeats)]
    for place, (name, (code, make)) in enumerate(CHANGED.items()):
        yield name, code, [codes_of(make(np.random.default_rng([seed, 1, place, n]))) for n in range(repeats)]


def lines_of(results: list[tuple[str, str | None, list[dict[str, str]]]]) -> list[str]:
    """Return the tables of Markdown: detection by change, and false alarms by code and by clean shape."""
    clean = [found for _, code, all_found in results if code is None for found in all_found]
    # A problem among the notes stands in the way of no verdict, so it is no alarm.
    alarms = Counter(code for found in clean for code, severity in found.items() if severity != "info")
    lines = [
        f"{len(clean):,} clean tables, {sum(len(found) for _, code, found in results if code):,} changed ones.",
        "",
    ]
    lines += ["| change | code | found | alarms in clean tables |", "|---|---|---|---|"]
    for name, code, all_found in results:
        if code is not None:
            hits = sum(found.get(code, "info") != "info" for found in all_found)
            rate = f"{hits} of {len(all_found)} | {alarms[code]} of {len(clean):,}"
            lines.append(f"| {name} | `{code}` | {rate} |")
    lines += ["", "| clean tables | tables with an alarm | codes |", "|---|---|---|"]
    for name, code, all_found in results:
        if code is None:
            own = Counter(one for found in all_found for one, severity in found.items() if severity != "info")
            number = sum(any(severity != "info" for severity in found.values()) for found in all_found)
            listed = ", ".join(f"`{one}` ({times})" for one, times in sorted(own.items())) or "none"
            lines.append(f"| {name} | {number} of {len(all_found)} | {listed} |")
    other = sorted({*CODES} - {code for _, code, _ in results if code})
    return [*lines, "", f"Not simulated: {', '.join(f'`{code}`' for code in other)}."]


def main() -> None:
    """Simulate, and write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=50, help="tables of each shape")
    parser.add_argument("--dry", action="store_true", help="print the tables instead of writing them")
    given = parser.parse_args()
    text = "\n".join(lines_of(list(run(given.repeats, SEED))))
    if given.dry:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    PAGE.write_text(f"{before}{START}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
