"""Votes with their labels replaced by label rules.

The votes are counted as they are written. Then the labels are replaced, once each, and counts of labels that have
become equal are added up. So the rules cost nothing per vote, and are the same on every engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Categories, Label
from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemVotes
from dhkappa.core.label_rules import LabelRules
from dhkappa.core.labels import SourceNote, natural_key
from dhkappa.errors import DataError, counted, shown

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Relabeling:
    """The new spelling of each label, and what was changed, in sentences."""

    labels: Mapping[Label, Label | None]
    notes: tuple[SourceNote, ...]

    @staticmethod
    def of(rules: LabelRules, read: ItemVotes, known: Iterable[Label], gone: Iterable[Label]) -> Relabeling:
        """Apply rules to the labels of votes; ``known`` spellings are kept, and ``gone`` labels are missing."""
        labels = rules.spellings(dict.fromkeys(gone, 0) | label_counts(read), known)
        return Relabeling(labels, rule_notes(rules, labels))

    def apply(self, read: ItemVotes, declared: Categories | None) -> ItemVotes:
        """Return the votes with new labels; rows stay where they are."""
        columns = replace(
            read.columns, labels={name: self.encoded(column) for name, column in read.columns.labels.items()}
        )
        if read.matrix is None:
            return replace(read, votes=self.encoded(read.votes), columns=columns, declared=declared)
        new = [self._new(label) for label in read.votes.labels]
        names = _ordered(new)
        place = {label: code for code, label in enumerate(names)}
        matrix = np.zeros((len(read.matrix), len(names)), np.int64)
        for label, column in zip(new, read.matrix.T, strict=True):
            if label is not None:
                matrix[:, place[label]] += column
        matrix = matrix.astype(np.min_scalar_type(int(matrix.max(initial=0))))
        return replace(read, votes=Encoded(matrix, 0, names), columns=columns, matrix=matrix, declared=declared)

    def _new(self, label: Label | None) -> Label | None:
        return None if label is None else self.labels.get(label, label)

    def encoded(self, column: Encoded) -> Encoded:
        """Return a column with new labels."""
        new = [self._new(label) for label in column.labels]
        if all(_same(old, label) for old, label in zip(column.labels, new, strict=True)):
            return column
        known = (None, *_ordered(new))
        place = {label: digit for digit, label in enumerate(known)}
        table = np.array([place[label] for label in new], np.min_scalar_type(len(known)))
        return Encoded(table[column.digits()], 0, known)


def _ordered(labels: Iterable[Label | None]) -> tuple[Label, ...]:
    return tuple(sorted({label for label in labels if label is not None}, key=natural_key))


def _is_mapped(rules: LabelRules, label: Label) -> bool:
    clean = rules.cleaned(label)
    return clean is not None and rules.target(clean) is not None


def label_counts(read: ItemVotes) -> dict[Label, int]:
    """Return the number of votes for each label; 0 for one that is only suggested."""
    suggested = [label for column in read.columns.labels.values() for label in column.occurring(column.digits())]
    found: dict[Label, int] = dict.fromkeys(suggested, 0)
    if read.matrix is None:
        return found | _counted(read.votes, read.items)
    items = np.ones(len(read.matrix), np.int64) if read.items is None else read.items
    number = zip(read.votes.labels, (items @ read.matrix.astype(np.int64)).tolist(), strict=True)
    return found | {label: n for label, n in number if label is not None}


def _counted(column: Encoded, items: npt.NDArray[np.int64] | None) -> dict[Label, int]:
    """Return how often each label occurs."""
    digits, found = column.digits(), Counter[Label]()
    rows = digits.reshape(len(digits), -1).T if items is not None else [digits.ravel()]
    for row in rows:
        number = np.bincount(row, items, minlength=len(column.labels))
        for place in np.flatnonzero(number).tolist():
            label = column.labels[place]
            if label is not None:
                found[label] += int(number[place])
    return found


def rule_notes(rules: LabelRules, labels: Mapping[Label, Label | None]) -> tuple[SourceNote, ...]:
    """Return notes on the labels that were changed, by their new spellings."""
    mapped = {label: new for label, new in labels.items() if _is_mapped(rules, label)}
    others = {label: new for label, new in labels.items() if label not in mapped}
    return (*normalized_note("labels-normalized", rules, others), *_mapped_note(mapped))


def normalized_note(code: str, rules: LabelRules, labels: Mapping[Any, Any]) -> list[SourceNote]:
    """Return a note on the labels, or the names of annotators, whose spelling was changed."""
    changed = {label: new for label, new in labels.items() if not _same(label, new)}
    if not changed:
        return []
    targets = {(type(new), new) for new in changed.values()}
    spellings = [label for label, new in labels.items() if (type(new), new) in targets]
    names = {
        "labels-normalized": ("Labels were", "category"),
        "annotators-normalized": ("Annotators were", "annotator"),
    }
    start, noun = names[code]
    merged = f"{counted(len(spellings), 'spelling')} became {counted(len(targets), noun)}"
    return [SourceNote(code, f"{start} normalized ({', '.join(rules.normalize)}): {merged} ({_pairs(changed)}).")]


def _mapped_note(labels: Mapping[Label, Any]) -> list[SourceNote]:
    if not labels:
        return []
    targets = {(type(new), new) for new in labels.values()}
    merged = f"{counted(len(labels), 'label')} became {counted(len(targets), 'category')}"
    return [SourceNote("labels-mapped", f"Labels were mapped: {merged} ({_pairs(labels)}).")]


def _same(label: Label | None, new: Label | None) -> bool:
    return type(label) is type(new) and label == new


def _pairs(changed: Mapping[Any, Any]) -> str:
    """Return up to three examples of what was changed."""
    first = sorted(changed.items(), key=lambda pair: natural_key(pair[0]))
    texts = [f"{shown([old])} as {'missing' if new is None else shown([new])}" for old, new in first[:_EXAMPLES]]
    return ", ".join(texts) + (", ..." if len(first) > _EXAMPLES else "")


def are_merged(names: Mapping[Any, Any]) -> bool:
    """Tell whether two spellings are one annotator."""
    return len(set(names.values())) < len(names)


def merge_annotators(read: ItemVotes, names: Mapping[Any, Any], duplicates: str) -> ItemVotes:
    """Rename the annotators of a grid of votes; the columns of one annotator become one."""
    if read.annotators is None or read.matrix is not None or read.votes.values.ndim != 2:
        return read
    new = [names.get(name, name) for name in read.annotators]
    columns: dict[Any, list[int]] = {}
    for place, name in enumerate(new):
        columns.setdefault(name, []).append(place)
    if len(columns) == len(new):
        return replace(read, annotators=tuple(new))
    labels = (None, *read.votes.labels)
    digits = np.where(read.votes.missing()[read.votes.digits()], 0, read.votes.digits() + np.int64(1))
    grid = np.zeros((len(digits), len(columns)), np.min_scalar_type(len(labels)))
    for place, (name, own) in enumerate(columns.items()):
        votes = digits[:, own]
        twice = np.flatnonzero((votes > 0).sum(axis=1) > 1)
        if twice.size and duplicates == "error":
            raise _voted_twice(name, [read.annotators[one] for one in own], [read.item_names()[twice[0]]])
        for column in (votes if duplicates == "last" else votes[:, ::-1]).T:  # later ones overwrite
            grid[:, place] = np.where(column > 0, column, grid[:, place])
    return replace(read, votes=Encoded(grid, 0, labels), annotators=tuple(columns))


def _voted_twice(name: Any, spellings: Collection[Any], items: Sequence[Any]) -> DataError:
    where = f"on item {shown(items)}"
    message = f"Columns {shown(spellings)} are one annotator, {name!r}, by normalize, and have several votes {where}."
    return duplicate_votes(message)


def duplicate_votes(message: str) -> DataError:
    """Return the error for two votes of an annotator on an item; which one to drop is for the user to say."""
    hint = "Pass $duplicates with 'first' or 'last' to choose one, or correct the data."
    choices = {"duplicates": "FIRST-OR-LAST"}
    return DataError(message, code="duplicate-votes", parameter="duplicates", hint=hint, choices=choices)
