"""Label rules: which spellings are one label, and which labels are replaced by others."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from dhkappa.core import Categories, Label
from dhkappa.core.labels import RULE, NotALabelError, natural_key, plain_unicode, to_label
from dhkappa.errors import DataError, did_you_mean, invalid, shown

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
        """Return a label without superfluous spaces and in plain Unicode; None if nothing is left."""
        if not isinstance(label, str):
            return label
        if "unicode" in self.normalize:
            label = plain_unicode(label)
        return (" ".join(label.split()) if "spaces" in self.normalize else label) or None

    def key(self, label: Label) -> Hashable:
        """Return what is equal for spellings of one label."""
        if not isinstance(label, str):
            return Decimal(label) if "numbers" in self.normalize else label
        text = label
        if "case" in self.normalize:
            text = text.casefold()
            text = plain_unicode(text) if "unicode" in self.normalize else text
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

    def fresh(self) -> Absent:
        """Return the same rule, with which nothing was looked for yet."""
        return Absent(self._holds)

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
