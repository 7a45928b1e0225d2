"""Cells that hold sets of labels (multi-label data): read them, and turn votes into yes/no votes on one category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core import Categories, Label
from dhkappa.core.grouping import Encoded, Entries, Patterns, from_counts
from dhkappa.core.items import Counts, ItemVotes, add, lookup
from dhkappa.core.label_rules import Absent, LabelRules
from dhkappa.core.labels import (
    LIST_MARK,
    NotALabelError,
    SourceNote,
    check_declared,
    not_a_label_set,
    to_label,
    union,
)
from dhkappa.core.relabel import Relabeling, rule_notes
from dhkappa.errors import invalid, shown

YES_NO: Categories = ("no", "yes")


@dataclass(frozen=True, slots=True)
class LabelSets:
    """How cells hold sets of labels, and what applies to the labels in them."""

    separator: str | None  # None if text must be JSON or come from lists
    json: bool  # whether text is JSON
    rules: LabelRules
    declared: Categories | None
    missing: frozenset[Label]

    @property
    def notation(self) -> str:
        """How a cell holds its labels, in words."""
        return (
            "as JSON lists" if self.json else "as lists" if self.separator is None else f"separated by {self.separator}"
        )

    def labels(self, cell: Label) -> frozenset[Label] | None:
        """Return the labels in a cell, as they are written; None if it is missing, which an empty set is not."""
        if not isinstance(cell, str):
            return frozenset([str(cell) if self.separator else cell])
        if cell.startswith(LIST_MARK):
            return self._from_json(cell.removeprefix(LIST_MARK), cell)
        text = cell.strip()
        if not text or text == "[]":
            return frozenset() if text else None
        if self.separator is not None:
            if text.startswith("[") and text.endswith("]") and _is_list(text):
                message = f"A cell is a list, not labels separated by {self.separator!r}: {shown([cell])}."
                options, hint = {"multilabel": "json"}, "Read the cells with $multilabel=."
                raise invalid("multilabel", message, code="not-a-label-set", hint=hint, options=options)
            return _stripped(text.split(self.separator))
        if not self.json:
            raise not_a_label_set(shown([cell]), "it is text, not a list")
        return self._from_json(text, cell)

    def _from_json(self, text: str, cell: str) -> frozenset[Label] | None:
        import json  # takes time

        try:
            held = json.loads(text)
            if held is None:
                return None
            labels = [to_label(value) for value in (held if isinstance(held, list) else [held])]
        except (ValueError, RecursionError, NotALabelError) as error:
            why = "it is not JSON" if isinstance(error, ValueError) else str(error)[:100]
            raise not_a_label_set(shown([cell]), why) from None
        return _stripped(label for label in labels if label is not None)

    def absent(self) -> Absent:
        """Return which cells are missing votes: those whose labels all are missing."""
        gone = self.rules.absent(self.missing)

        def holds(cell: Label) -> bool:
            labels = self.labels(cell)
            return labels is None or (bool(labels) and all(label in gone for label in labels))

        return Absent(holds)

    def settle(self, votes: Mapping[Label, int]) -> SettledSets:
        """Return the labels of each cell after all rules, and the categories; from the number of votes by cell."""
        raw = {cell: self.labels(cell) or frozenset() for cell in votes}
        number: Counter[Label] = Counter()
        for cell, labels in raw.items():
            for label in labels:
                number[label] += votes[cell]
        new = self.rules.spellings(number, self.declared or ())
        self.rules.check_sources(new)
        gone = self.rules.absent(self.missing)
        final = {label: None if label in gone else spelling for label, spelling in new.items()}
        occurring = {label for label in final.values() if label is not None}
        if self.declared is not None:
            check_declared(occurring, self.declared, "votes")
        sets = {
            cell: frozenset(one for label in labels if (one := final[label]) is not None)
            for cell, labels in raw.items()
        }
        categories = union(occurring) if self.declared is None else self.declared
        return SettledSets(sets, categories, rule_notes(self.rules, new))


def _is_list(text: str) -> bool:
    """Tell whether text is a JSON list."""
    import json

    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _stripped(labels: Iterable[Label]) -> frozenset[Label]:
    """Return the labels without spaces around them; empty ones are left out."""
    texts = (label.strip() if isinstance(label, str) else label for label in labels)
    return frozenset(label for label in texts if label != "")


@dataclass(frozen=True, slots=True)
class SettledSets:
    """The labels in each cell, and the categories."""

    sets: Mapping[Label, frozenset[Label]]
    categories: Categories
    notes: tuple[SourceNote, ...]

    def answers(self, counts: Counts) -> dict[Label, Counts]:
        """Return yes/no votes on each category, by pattern."""
        patterns, columns, sets = counts.patterns, counts.columns, [self.sets[cell] for cell in counts.categories]
        cells: dict[Label, list[int]] = {category: [] for category in self.categories}
        for code, labels in enumerate(sets):
            for label in labels:
                cells[label].append(code)
        suggested = {name: columns.codes(name, counts.categories) for name in columns.labels}
        totals, upto = patterns.vote_totals(), np.zeros(patterns.code.size + 1, np.int64)
        found: dict[Label, Counts] = {}
        for category, own in cells.items():
            holds = np.zeros(len(sets) + 1, np.int64)  # the last is a missing cell
            holds[own] = 1
            np.cumsum(holds[patterns.code] * patterns.votes, out=upto[1:])
            yes = np.diff(upto[patterns.start])
            answers = from_counts(np.column_stack([totals - yes, yes]), patterns.suggested, patterns.items)
            digit = np.append(holds[:-1] + 1, 0)
            new = {name: Encoded(digit[codes], 0, (None, *YES_NO)) for name, codes in suggested.items()}
            found[category] = add([Counts(YES_NO, answers, replace(columns, labels=new))], YES_NO)
        return found

    def canonical(self) -> Relabeling:
        """Return one cell for each set of labels, such as ``a;b`` for ``b;a``."""
        first: dict[frozenset[Label], Label] = {}
        return Relabeling({cell: first.setdefault(labels, cell) for cell, labels in self.sets.items()}, ())

    def canonical_counts(self, counts: Counts) -> Counts:
        """Return counts with one cell for each set of labels."""
        new, patterns = self.canonical(), counts.patterns
        cells = [new.labels[cell] for cell in counts.categories]
        names = tuple(cell for cell in dict.fromkeys(cells) if cell is not None)
        m = max(len(names), 1)
        row = patterns.row()
        key, place = np.unique(row * m + lookup(cells, names)[patterns.code], return_inverse=True)
        votes = np.zeros(key.size, np.int64)
        np.add.at(votes, place, patterns.votes)
        start = np.searchsorted(key, np.arange(len(patterns) + 1) * m)
        merged = Patterns(patterns.suggested, Entries(start, key % m, votes), patterns.items)
        labels = {name: new.encoded(column) for name, column in counts.columns.labels.items()}
        return add([Counts(names, merged, replace(counts.columns, labels=labels), counts.source_notes)], names)

    def item_votes(self, read: ItemVotes, category: Label) -> ItemVotes:
        """Return yes/no votes on a category, by item."""
        answers: dict[Label, Label | None] = {cell: YES_NO[category in labels] for cell, labels in self.sets.items()}
        return Relabeling(answers, ()).apply(read, YES_NO)


def label_sets(
    multilabel: Any, rules: LabelRules | None, declared: Categories | None, missing: Collection[Label]
) -> LabelSets | None:
    """Check how cells hold sets of labels; None if they hold one label."""
    if multilabel is None or multilabel is False:
        return None
    if multilabel is not True and not (isinstance(multilabel, str) and multilabel.strip()):
        message = f"multilabel must be a separator such as ';', 'json', or True for lists: got {shown([multilabel])}."
        raise invalid("multilabel", message)
    as_json = multilabel == "json"
    separator = None if as_json or multilabel is True else multilabel
    return LabelSets(separator, as_json, rules or LabelRules(), declared, frozenset(missing))
