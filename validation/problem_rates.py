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
SEED = 20_261  # not among the seeds on which thresholds were chosen (1 to 31)
ANNOTATORS = ("ada", "ben", "chloe", "dev", "eli", "fay", "gus", "hana", "ida", "jon")


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
    order: list[int] | None = None  # the rows of a table in wide format without ids
    options: dict[str, Any] = field(default_factory=dict)

    def dataset(self) -> Dataset:
        """Return the data as a table in wide format, or as two tables in long format."""
        labels = {f"suggested_{name}": list(column) for name, column in self.labels.items()}
        if self.wide:
            votes = {f"ann_{name}": list(self.votes[:, place]) for place, name in enumerate(self._names)}
            columns = {"item": self.ids, **labels, **votes, **self.item_columns, **self.wide_columns}
            table = pl.DataFrame(columns, strict=False)
            if self.order is not None:
                table = table.drop("item")[self.order]
            return Dataset(table, **self.options)
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


def _two_of_two(rng: Generator) -> Data:
    """Return many items with two annotators and two categories."""
    accuracy = list(rng.uniform(0.75, 0.9, 2))
    return base(rng, n=int(rng.integers(1000, 3000)), categories=NAMES[:2], annotators=accuracy, missing=0.0)


def _crowd(rng: Generator) -> Data:
    """Return ten votes per item, which are less accurate than the labeler."""
    return base(rng, n=500, categories=NAMES[:5], annotators=[0.75] * 10, labelers={"llm": 0.99}, missing=0.0)


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


def _unequal(rng: Generator) -> Data:
    """Return annotators some of whom nearly guess, and a labeler with an accuracy of up to .95."""
    return base(rng, annotators=list(rng.uniform(0.5, 0.98, int(rng.integers(3, 7)))))


def _blind(rng: Generator) -> Data:
    """Return a labeler that misses one category, on which annotators agree like on others."""
    data = base(rng, labelers={"llm": float(rng.uniform(0.85, 0.95))}, n=int(rng.integers(200, 1500)))
    labels = _changed(rng, data.labels["llm"], 0.6, lambda label: NAMES[0] if label == NAMES[1] else label)
    return replace(data, labels={"llm": labels})


def _two_views(rng: Generator) -> Data:
    """Two groups of annotators disagree on a fifth of the items; the labeler is of one group."""
    n, m, size = int(rng.integers(200, 600)), int(rng.integers(2, 6)), int(rng.integers(2, 4))
    names = np.array(NAMES[:m], object)
    truth = rng.integers(0, m, n)
    other = np.where(rng.random(n) < 0.2, (truth + rng.integers(1, m, n)) % m, truth)

    def near(view: Any, rate: float) -> Any:
        return names[np.where(rng.random(n) < rate, view, rng.integers(0, m, n))]

    votes = np.column_stack([near(truth, 0.85) for _ in range(size)] + [near(other, 0.85) for _ in range(3)])
    return Data(votes, {"llm": near(truth, 0.85)}, truth, [f"T-{place}" for place in range(n)])


def _without_ids(rng: Generator) -> Data:
    """Return rows without ids; half of the tables are sorted by their votes."""
    data = base(rng)
    order = [*range(len(data.ids))]
    if rng.random() < 0.5:
        order.sort(key=lambda place: [str(label) for label in data.votes[place]])
    return replace(data, wide=True, order=order)


def _with_texts(rng: Generator) -> Data:
    """Return texts without ids, of which a hundredth occurs twice, with other votes."""
    data = _without_ids(rng)
    texts = [f"message {place} about {label}" for place, label in enumerate(data.truth)]
    for place in rng.integers(0, len(texts), len(texts) // 100).tolist():
        texts[place] = texts[0]
    return replace(data, wide_columns={"text": texts})


CLEAN: dict[str, Callable[[Generator], Data]] = {
    "random size, format, quality": base,
    "rare categories": _rare,
    "1,000 categories": _many_categories,
    "numbers without order": _numeric,
    "ids that share prefixes": _prefixes,
    "perfect agreement": _agreed,
    "two annotators": _two,
    "two annotators, two categories": _two_of_two,
    "ten votes of accuracy .75, labeler .99": _crowd,
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
    "annotators with accuracy .5 to .98": _unequal,
    "a labeler that misses one category": _blind,
    "two groups of annotators with different views": _two_views,
    "rows without ids, also sorted": _without_ids,
    "texts without ids": _with_texts,
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


def _counts_as_votes(rng: Generator) -> Data:
    """Return numbers of votes per category, in columns that are read as annotators."""
    n, votes, names = int(rng.integers(20, 200)), int(rng.integers(3, 15)), [str(place) for place in range(1, 6)]
    counts = np.array([rng.multinomial(votes - int(rng.random() < 0.1), rng.dirichlet(np.ones(5))) for _ in range(n)])
    columns = {name: counts[:, place].astype(str).tolist() for place, name in enumerate(names)}
    labels = {"llm": [names[place] for place in counts.argmax(axis=1)]}
    ids = [f"T-{place}" for place in range(n)]
    return Data(np.empty((n, 0), object), labels, counts, ids, item_columns=columns, options={"annotators": names})


def _weights(rng: Generator) -> Data:
    data = _sized(rng, missing=0.3)
    n_votes = [sum(label is not None for label in row) for row in data.votes]
    return replace(data, item_columns={"w": n_votes}, options={"sample_weight": "w"})


def _majority_of(rng: Generator, data: Data) -> list[str | None]:
    """Return a most frequent vote of each item."""
    labels = []
    for row in data.votes:
        counts = Counter(label for label in row if label is not None)
        most = [label for label, number in counts.items() if number == max(counts.values())]
        labels.append(str(rng.choice(most)) if most else None)
    return labels


def _majority(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels={"gold": _majority_of(rng, data)})


def _copy(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels=data.labels | {"copy": list(data.votes[:, 1])})


def _rerun(rng: Generator) -> Data:
    """Add an annotator who is the labeler, but for 5 to 15% of the items."""
    data = _sized(rng, annotators=[0.9, 0.85, 0.8])
    share = float(rng.uniform(0.05, 0.15))
    again = _changed(rng, data.labels["llm"], share, lambda _: str(rng.choice(NAMES[:5])))
    return replace(data, votes=np.column_stack([data.votes, again]))


def _model(rng: Generator) -> Data:
    names = (*ANNOTATORS[:3], str(rng.choice(["gpt-4o", "gpt4", "claude_3", "llm", "my model"])))
    return replace(_sized(rng, labelers={"rule": 0.8}), annotators=names)


def _with_majority(rng: Generator) -> Data:
    data = _sized(rng, annotators=[0.9, 0.85, 0.8])
    votes = np.column_stack([data.votes, np.array(_majority_of(rng, data), object)])
    return replace(data, votes=votes, annotators=(*ANNOTATORS[:3], "zoe"))


def _flags(rng: Generator) -> Data:
    name = str(rng.choice(["majority", "final", "gold", "adjudicated", "flag", "confident"]))
    data = _sized(rng, categories=("yes", "no"))
    return replace(data, wide=True, wide_columns={f"ann_{name}": rng.choice(["yes", "no"], len(data.ids)).tolist()})


def _equal_annotators(rng: Generator) -> Data:
    data = _sized(rng, annotators=[0.9, 0.85, 0.8], missing=0.0)
    return replace(data, votes=np.column_stack([data.votes, data.votes[:, 0]]))


def _other_name(label: str, rng: Generator, names: tuple[str, ...]) -> str:
    return str(rng.choice([name for name in names if name != label]))


def _nearly_majority(rng: Generator) -> Data:
    """Change 2 to 10% of the majority labels of 1,000 items or more with two categories."""
    data = base(rng, n=int(rng.integers(1_000, 2_000)), categories=NAMES[:2], annotators=[0.8, 0.85, 0.85], missing=0.0)
    share = float(rng.uniform(0.02, 0.1))
    labels = _changed(rng, _majority_of(rng, data), share, lambda label: _other_name(label, rng, NAMES[:2]))
    return replace(data, labels={"gold": labels})


def _nearly_majority_of_few(rng: Generator) -> Data:
    """Change 2 to 10% of the majority labels of up to 500 items with five categories."""
    data = _sized(rng)
    share = float(rng.uniform(0.02, 0.1))
    labels = _changed(rng, _majority_of(rng, data), share, lambda label: _other_name(label, rng, NAMES[:5]))
    return replace(data, labels={"gold": labels})


def _random_vote(rng: Generator) -> Data:
    data = _sized(rng, missing=0.0)
    return replace(data, labels={"gold": [str(rng.choice(row)) for row in data.votes]})


def _rows_repeated(rng: Generator) -> Data:
    """Repeat all rows, in any order, or append the first 30%."""
    data = _sized(rng)
    n = len(data.ids)
    order = [*range(n), *range(n if rng.random() < 0.5 else n * 3 // 10)]
    return replace(data, wide=True, order=rng.permutation(order).tolist() if len(order) == 2 * n else order)


def _rows_sampled(rng: Generator) -> Data:
    """Repeat 30% of the rows, anywhere."""
    data = _sized(rng)
    n = len(data.ids)
    return replace(data, wide=True, order=rng.permutation([*range(n), *rng.choice(n, n * 3 // 10, False)]).tolist())


def _texts_repeated(rng: Generator) -> Data:
    data = _rows_sampled(rng)
    return replace(data, wide_columns={"text": [f"message {name} about {data.truth[0]}" for name in data.ids]})


def _punctuated(rng: Generator) -> Data:
    spell: list[Callable[[str], str]] = [
        lambda text: f"{text}.",
        lambda text: f"{text}\u200b",
        lambda text: text.replace("-", "\u2013"),
        lambda text: text.replace("-", "_"),
    ]
    data = _sized(rng)
    return replace(data, votes=_changed(rng, data.votes, 0.3, spell[int(rng.integers(4))]))


def _no_vote(rng: Generator) -> Data:
    data = _sized(rng)
    return replace(data, labels={"llm": _changed(rng, data.labels["llm"], 0.1, lambda _: "complaint")})


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


def _moved(rng: Generator) -> Data:
    """Shift or sort the votes of one annotator."""
    data = _sized(rng, missing=0.0)
    votes, place = data.votes.copy(), int(rng.integers(4))
    votes[:, place] = sorted(votes[:, place]) if rng.random() < 0.5 else np.roll(votes[:, place], 1)
    return replace(data, votes=votes)


def _swapped_codes(rng: Generator) -> Data:
    """Swap the answers of one annotator, or write them in other words."""
    data = _sized(rng, categories=NAMES[: int(rng.integers(2, 6))])
    names = sorted({*data.truth})
    other = dict(zip(names, [*names[1:], names[0]], strict=True))
    if not data.wide and rng.random() < 0.5:
        other = {name: name[:2] for name in names}
    votes = data.votes.copy()
    votes[:, 1] = [other.get(label) for label in votes[:, 1]]
    return replace(data, votes=votes)


def _mixed_rows(rng: Generator) -> Data:
    """Replace the votes of some items by those of another task, codes or a note."""
    data = _sized(rng)
    names = sorted({*data.truth})
    words = [{name: "yes" if place % 2 else "no" for place, name in enumerate(names)}, dict.fromkeys(names, "approved")]
    words.append({name: str(place) for place, name in enumerate(names)})
    other, votes = words[int(rng.integers(3))], data.votes.copy()
    for place in np.flatnonzero(rng.random(len(votes)) < rng.uniform(0.15, 0.5)).tolist():
        votes[place] = [other.get(label) for label in votes[place]]
    return replace(data, votes=votes)


def _multiplied(rng: Generator) -> Data:
    """Count every vote twice or ten times."""
    data, times = _sized(rng), int(rng.choice([2, 10]))
    names = sorted({*data.truth})
    counts = {name: [times * sum(label == name for label in row) for row in data.votes] for name in names}
    return replace(data, wide=True, votes=data.votes[:, :0], item_columns=counts, options={"counts": names})


def _header(rng: Generator) -> Data:
    """Put the header among the rows."""
    data = _sized(rng)
    votes, place = data.votes.copy(), int(rng.integers(len(data.votes)))
    names = [f"ann_{name}" for name in data.annotators] if data.wide else ["label"] * 4
    votes[place] = names[:4]
    ids = [*data.ids[:place], "item", *data.ids[place + 1 :]]
    return replace(data, votes=votes, ids=ids)


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
    "rows of another task, or with codes": ("votes-not-suggested", _mixed_rows),
    "several labels in a cell": ("looks-multilabel", _multilabel),
    "ratings": ("looks-ordinal", _rated),
    "percentages instead of counts": ("looks-like-percent", _percent),
    "numbers of votes are read as votes": ("looks-like-counts", _counts_as_votes),
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
    "punctuation or invisible characters differ": ("category-variants", _punctuated),
    "a tenth of the labels has no votes": ("labels-not-in-votes", _no_vote),
    "majority labels, 2 to 10% changed: 2 categories, 1,000 items": ("labels-from-votes", _nearly_majority),
    "majority labels, 2 to 10% changed: 5 categories, 240 items": ("labels-from-votes", _nearly_majority_of_few),
    "each label is a random vote of its item": ("labels-from-votes", _random_vote),
    "an annotator is a rerun of a labeler (85 to 95% equal)": ("labeler-equals-annotator", _rerun),
    "an annotator has the name of a model": ("not-annotators", _model),
    "an annotator is the majority of the others": ("not-annotators", _with_majority),
    "a column such as ann_final": ("not-annotators", _flags),
    "two annotators are equal": ("annotators-equal", _equal_annotators),
    "an annotator's column is shifted or sorted": ("annotator-differs", _moved),
    "an annotator's answers are swapped or abbreviated": ("annotator-differs", _swapped_codes),
    "all rows twice, or the first 30% again": ("repeated-rows", _rows_repeated),
    "every vote twice, or numbers of votes times 10": ("repeated-rows", _multiplied),
    "a header among the rows": ("header-repeated", _header),
    "30% of the rows again, anywhere": ("repeated-rows", _rows_sampled),
    "30% of the rows again, anywhere, with a text": ("repeated-rows", _texts_repeated),
}
UNSURE = {  # changes that leave too little evidence for a sure answer
    "majority labels, 2 to 10% changed: 5 categories, 240 items",
    "30% of the rows again, anywhere",
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
