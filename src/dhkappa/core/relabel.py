"""Label rules: which spellings are one label, which labels are replaced, and votes with their labels replaced.

The votes are counted as they are written. Then the labels are replaced, once each, and counts of labels that have
become equal are added up. So the rules cost nothing per vote, and are the same on every engine.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Categories, Label
from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import RULE, NotALabelError, SourceNote, natural_key, to_label
from dhkappa.errors import DataError, counted, did_you_mean, invalid, shown

RULES = ("case", "spaces", "unicode", "numbers")

_EXAMPLES = 3
_NUMBER = re.compile(r"[+-]?([0-9]{1,300}([.][0-9]{0,300})?|[.][0-9]{1,300})")
_NEAR = 5  # labels that an error lists
_COMPARED = 5_000  # labels that it chooses from


@dataclass(frozen=True, slots=True)
class LabelRules:
    """Which spellings are one label, and which labels are replaced by others."""

    normalize: tuple[str, ...] = ()  # of RULES
    targets: Mapping[Hashable, Label] | None = None  # the new label by the key of the text of the old one
    sources: tuple[Label, ...] = ()  # the old labels, as given

    def for_names(self) -> LabelRules | None:
        """Return the rules without those of ``map``; None if there are no others."""
        return LabelRules(self.normalize) if self.normalize else None

    def names(self, votes: Mapping[Any, int]) -> dict[Any, Any]:
        """Return the new spelling of each annotator by the number of votes with the old one; empty if none changes."""
        texts = {name: n for name, n in votes.items() if isinstance(name, str)} if self.normalize else {}
        return replace(self, targets=None).spellings(texts)

    def cleaned(self, label: Label) -> Label | None:
        """Return a label without superfluous spaces and in Unicode's form NFKC; None if nothing is left."""
        if not isinstance(label, str):
            return label
        if "unicode" in self.normalize:
            label = unicodedata.normalize("NFKC", label)
        return (" ".join(label.split()) if "spaces" in self.normalize else label) or None

    def key(self, label: Label) -> Hashable:
        """Return what is equal for spellings of one label."""
        if not isinstance(label, str):
            return Decimal(label) if "numbers" in self.normalize else label
        text = label
        if "case" in self.normalize:
            text = text.casefold()
            text = unicodedata.normalize("NFKC", text) if "unicode" in self.normalize else text
        if "numbers" in self.normalize and _NUMBER.fullmatch(text):
            return Decimal(text)
        return ("text", text)

    def target(self, label: Label) -> Label | None:
        """Return the label that replaces a cleaned one, if there is one."""
        return None if self.targets is None else self.targets.get(self.key(str(label)))

    def final_key(self, label: Label) -> Hashable:
        """Return the key of a label after all rules; None if it is missing."""
        clean = self.cleaned(label)
        if clean is None:
            return None
        target = self.target(clean)
        return self.key(clean if target is None else target)

    def spellings(self, votes: Mapping[Any, int], known: Iterable[Label] = ()) -> dict[Any, Any]:
        """Return the new spelling of each label by the number of votes for it; None if it is missing.

        It is that of a ``known`` label, else of the label that replaces it, else the one with most votes, and the first
        in natural order of several.
        """
        chosen: dict[Hashable, Label] = {}
        for label in (*known, *(self.targets or {}).values()):
            chosen.setdefault(self.key(label), label)
        found = {label: self.cleaned(label) for label in votes}
        number: Counter[Label] = Counter()
        for label, clean in found.items():
            if clean is not None and self.target(clean) is None:
                number[clean] += votes[label]
        for clean in sorted(number, key=lambda clean: (-number[clean], natural_key(clean))):
            chosen.setdefault(self.key(clean), clean)
        new = {label: None if clean is None else chosen[self.final_key(label)] for label, clean in found.items()}
        # To Python, True equals 1: a label that does not change keeps its type.
        return {label: label if label == spelling else spelling for label, spelling in new.items()}

    def check_sources(self, labels: Collection[Label]) -> None:
        """Refuse an old label of ``map`` that never occurs."""
        occurring = {self.key(str(clean)) for label in labels if (clean := self.cleaned(label)) is not None}
        absent = [label for label in self.sources if self.key(str(self.cleaned(label))) not in occurring]
        if not absent:
            return
        texts = sorted({str(label) for label in labels}, key=natural_key)[:_COMPARED]
        near = difflib.get_close_matches(str(absent[0]), texts, _NEAR, 0.0)
        message = f"map names {shown(absent, _EXAMPLES)}, which never occurs. Nearest labels: {shown(near) or 'none'}."
        hint = "Correct it in $map, or leave it out."
        raise DataError(message, code="label-not-found", parameter="map", hint=hint)

    def check_declared(self, categories: Categories | None) -> None:
        """Refuse declared categories that are one by these rules."""
        first: dict[Hashable, Label] = {}
        for label in categories or ():
            other = first.setdefault(self.key(label), label)
            if other is not label:
                message = f"categories names {other!r} and {label!r}, which are one category by normalize."
                raise invalid("categories", message, hint="Name it once in $categories.")

    def absent(self, missing: Collection[Label]) -> Absent:
        """Return which labels are missing after all rules."""
        keys = {self.key(clean) for label in missing if (clean := self.cleaned(label)) is not None}

        def holds(label: Label) -> bool:
            key = self.final_key(label)
            return key is None or key in keys

        return Absent(holds)


class Absent:
    """The labels that are missing by a rule, as a container."""

    def __init__(self, holds: Callable[[Label], bool]) -> None:
        self._holds = holds
        self._known: dict[tuple[type, str | int], bool] = {}

    def __contains__(self, label: object) -> bool:
        if not isinstance(label, (str, int)):
            return False
        key = type(label), label
        if key not in self._known:
            self._known[key] = self._holds(label)
        return self._known[key]

    def found(self) -> list[Label]:
        """Return the labels that were looked for and are missing."""
        return [label for (_, label), missing in self._known.items() if missing]


def label_rules(normalize: Any = (), mapping: Any = None) -> LabelRules | None:
    """Check the rules that were passed; None if there are none."""
    names = [normalize] if isinstance(normalize, str) else normalize
    if names is None or not isinstance(names, (list, tuple, set, frozenset)):
        raise invalid("normalize", f"normalize must be a list of rules: got {shown([normalize])}. {_known_rules()}")
    if wrong := [name for name in names if name not in RULES]:
        near = did_you_mean(wrong[0], RULES)
        raise invalid("normalize", f"normalize names {shown(wrong)}, which is not a rule. {_known_rules()}{near}")
    rules = LabelRules(tuple(rule for rule in RULES if rule in names))
    if mapping is not None:
        rules = _with_map(rules, mapping)
    return rules if rules.normalize or rules.targets else None


def _known_rules() -> str:
    return f"Rules: {', '.join(RULES)}."


def _with_map(rules: LabelRules, mapping: Any) -> LabelRules:
    """Add the labels to replace."""
    if not isinstance(mapping, Mapping):
        raise invalid("map", f"map must map labels to labels: got {shown([mapping])}.")
    targets: dict[Hashable, Label] = {}
    sources: list[Label] = []
    for pair in mapping.items():
        try:
            old, new = map(to_label, pair)
        except NotALabelError as wrong:
            raise DataError(f"map holds {wrong}.", code="not-a-label", parameter="map", hint=RULE) from None
        clean = None if old is None else rules.cleaned(old)
        if old is None or clean is None or new is None:
            hint = "Name labels that mean missing in $missing."
            raise invalid("map", f"map holds a missing value: {shown([pair])}.", hint=hint)
        key = rules.key(str(clean))
        if targets.setdefault(key, new) != new:
            first = next(label for label in sources if rules.key(str(rules.cleaned(label))) == key)
            raise invalid("map", f"map gives {first!r} and {old!r}, which are one label, different new labels.")
        sources.append(old)
    return replace(rules, targets=targets, sources=tuple(sources))


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
    hint = "Pass $duplicates with 'first' or 'last' to choose one, or correct the data."
    return DataError(message, code="duplicate-votes", parameter="duplicates", hint=hint)
