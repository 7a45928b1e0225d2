"""Votes with items, annotators, labelers, weights and strata, written in every format that a table can have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dhkappa
from engines import Columns, Engine, kind_of

FORMATS = ("wide", "wide-many", "long", "long-items", "counted-long", "counted-wide")

ALPHABETS: dict[str, tuple[Hashable, ...]] = {
    "text": ("ham", "spam", "naïve", "NA", "nan", "c10", "c9"),
    "int": (-3, 0, 7, 300, 2**53 - 1),
    "float": (0.0, 1.0, 2.0, 7.0, float(2**40)),
    "bool": (False, True),
    "category": ("ham", "spam", "eel", "None"),
    "enum": ("high", "low", "mid", "none"),
    "dictionary": ("x", "y", "Z", "ß"),
    "coded int": (30, 4, 100),
}
"""Labels of each kind of column."""


@dataclass(frozen=True)
class Shape:
    """Votes in one format.

    Attributes
    ----------
    columns : the table of votes
    items : the table of items, None where there is none
    keywords : the column roles
    labels : columns that hold labels
    """

    columns: Columns
    keywords: Mapping[str, Any]
    labels: tuple[str, ...]
    items: Columns | None = None

    def given(self, engine: Engine, kind: str | None = None) -> tuple[Any, dict[str, Any]]:
        """Make the tables, and return that of votes and the keywords; ``kind`` is that of labels."""
        tables = []
        for columns in (self.columns, self.items):
            own = {name: kind for name in columns or () if kind and name in self.labels}
            own |= {"id": kind_of(self.items["id"])} if self.items is not None else {}
            tables.append(None if columns is None else engine.table(columns, own))
        keywords = dict(self.keywords) | ({} if self.items is None else {"items": tables[1]})
        return tables[0], keywords

    def shuffled(self, seed: int) -> Shape:
        """The same with rows and columns in another order."""
        return replace(
            self,
            columns=_shuffled(self.columns, seed),
            items=None if self.items is None else _shuffled(self.items, seed + 1),
        )


def _shuffled(columns: Columns, seed: int) -> Columns:
    draw = random.Random(seed)
    names = draw.sample(list(columns), len(columns))
    n = len(columns[names[0]])
    order = draw.sample(range(n), n)
    return {name: [columns[name][row] for row in order] for name in names}


@dataclass(frozen=True)
class Votes:
    """Votes on n items by N annotators, and item columns; None or NaN if missing."""

    items: Sequence[Any]
    annotators: Sequence[str]
    votes: Sequence[Sequence[Any]]
    suggested: Mapping[str, Sequence[Any]]
    sample_weight: Sequence[float] = field(default=())
    strata: Sequence[Any] = field(default=())

    @property
    def beside(self) -> dict[str, Sequence[Any]]:
        """The item columns."""
        found = dict(self.suggested)
        found |= {"weight": self.sample_weight} if self.sample_weight else {}
        return found | ({"stratum": self.strata} if self.strata else {})

    def shape(self, form: str) -> Shape:
        """Write them in a format."""
        if form in ("wide", "wide-many"):
            return self._wide()
        if form == "counted-wide":
            return self._counted_wide()
        return {"long": self._long, "long-items": self._long_items, "counted-long": self._counted_long}[form]()

    def _wide(self) -> Shape:
        columns = {name: [row[place] for row in self.votes] for place, name in enumerate(self.annotators)}
        whole = {"id": self.items, **columns, **self.beside}
        return Shape(whole, {"annotators": list(self.annotators)}, (*columns, *self.suggested))

    def _cast(self, with_missing: bool) -> list[tuple[int, str, Any]]:
        """All votes: the item's place, the annotator, the label."""
        return [
            (place, who, label)
            for place, row in enumerate(self.votes)
            for who, label in zip(self.annotators, row, strict=True)
            if with_missing or not _missing(label)
        ]

    def _rows(self, with_missing: bool) -> Columns:
        cast = self._cast(with_missing)
        return {
            "id": [self.items[place] for place, _, _ in cast],
            "who": [who for _, who, _ in cast],
            "choice": [label for _, _, label in cast],
        } | {name: [values[place] for place, _, _ in cast] for name, values in self.beside.items() if with_missing}

    def _long(self) -> Shape:
        keywords = {"item": "id", "label": "choice", "annotator": "who"}
        return Shape(self._rows(True), keywords, ("choice", *self.suggested))

    def _long_items(self) -> Shape:
        keywords = {"item": "id", "label": "choice", "annotator": "who"}
        return Shape(self._rows(False), keywords, ("choice", *self.suggested), {"id": self.items, **self.beside})

    def _counted_long(self) -> Shape:
        rows = []
        for place, row in enumerate(self.votes):
            counts = Counter(label for label in row if not _missing(label))
            rows += [(self.items[place], label, number) for label, number in counts.items()]
            if place % 5 == 0:
                rows.append((self.items[place], None, 2))  # votes for nothing are none
            unused = [label for label in self.categories if label not in counts]
            rows += [(self.items[place], label, 0) for label in unused[:1]]
        columns = {name: [row[at] for row in rows] for at, name in enumerate(("id", "choice", "times"))}
        keywords = {"item": "id", "label": "choice", "count": "times"}
        return Shape(columns, keywords, ("choice", *self.suggested), {"id": self.items, **self.beside})

    def _counted_wide(self) -> Shape:
        counts = {str(label): [list(row).count(label) for row in self.votes] for label in self.categories}
        return Shape({"id": self.items, **counts, **self.beside}, {"counts": list(counts)}, tuple(self.suggested))

    @property
    def categories(self) -> list[Any]:
        """The labels that occur, sorted."""
        given = [*self.suggested.values(), *self.votes]
        return sorted({label for labels in given for label in labels if not _missing(label)})


def _missing(label: Any) -> bool:
    return label is None or label != label


def drawn(
    kind: str = "text", *, n: int = 30, N: int = 4, seed: int = 0, alphabet: Sequence[Any] | None = None
) -> Votes:
    """Draw votes: ragged, some items without votes or labels, a category only suggested, one only voted for."""
    draw = random.Random(f"{kind} {n} {N} {seed}")
    labels = list(alphabet or ALPHABETS[kind])
    voted, suggestible = (labels[1:], labels[:-1]) if len(labels) > 2 else (labels, labels)
    holes = [None, float("nan")] if kind == "float" else [None]

    def vote(truth: Any) -> Any:
        if draw.random() < 0.2:
            return draw.choice(holes)
        return truth if truth in voted and draw.random() < 0.6 else draw.choice(voted)

    truths = [draw.choice(suggestible) for _ in range(n)]
    votes = [[vote(truth) for _ in range(N)] for truth in truths]
    if n > 3:
        votes[1], votes[2] = [None] * N, [None] * (N - 1) + [voted[0]]
    suggested = {
        "llm": [truth if draw.random() < 0.8 else draw.choice([*holes, *suggestible]) for truth in truths],
        "rule": [truth if draw.random() < 0.5 else draw.choice([*holes, *suggestible]) for truth in truths],
    }
    return Votes(
        items=[f"i-{place}" for place in range(n)] if kind != "int" else list(range(100, 100 + n)),
        annotators=[f"ann_{place}" for place in range(N)],
        votes=votes,
        suggested=suggested,
        sample_weight=[draw.choice([0.1, 1.5, 2.25]) for _ in range(n)],
        strata=[draw.choice(["north", "south"]) for _ in range(n)],
    )


def drawn_for(form: str, kind: str = "text") -> Votes:
    """Draw votes that a format can hold; many annotators for ``wide-many``."""
    return drawn(kind, N=9 if form == "wide-many" else 4)


def of_lists(votes: Any = None, suggested: Any = None, *, labeler: str = "llm", **options: Any) -> dhkappa.Tally:
    """Return the tally of plain lists, with the name that the labeler has in a table."""
    named = suggested is None or isinstance(suggested, Mapping)
    return dhkappa.tally(votes, suggested if named else {labeler: suggested}, **options)
