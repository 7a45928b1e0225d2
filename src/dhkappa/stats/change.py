"""Changes between two audits of independent samples of items: of kappas, of Fleiss' kappa, of the categories' shares.

Unlike in a comparison of labelers on the same items, the two kappas of a difference are independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dhkappa.errors import shown
from dhkappa.stats.grades import digits_of
from dhkappa.stats.intervals import ConfidenceInterval, mover, written
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.notes import Note
from dhkappa.stats.shift import Shift, shift_of_labels, shift_of_votes
from dhkappa.table import Display, plain

FLEISS = "Fleiss' kappa"
_MOST_DIGITS = 6
_SMALLER = 0.5  # the number of items of one sample as a share of that of the other, below which a note says so
FILTERS_DIFFER = "filters-differ"
"""Code of the note that audits are not comparable, so that no cause of a change is named."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a kappa from an earlier, independent sample of items.

    Attributes
    ----------
    since : the earlier sample: its date, or the name of its file
    before, after : the two kappas
    difference : ``after`` minus ``before``
    low, high : confidence limits of the difference
    pvalue : p-value of the hypothesis that there is no change, two-sided
    confidence_level : the confidence level
    reason : why there are no limits; None if there are
    """

    since: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    pvalue: float
    confidence_level: float
    reason: str | None = None

    @property
    def significant(self) -> bool:
        """Whether the p-value is below 1 minus the confidence level; False if there is none."""
        return self.pvalue < 1 - self.confidence_level

    @property
    def text(self) -> str:
        """The difference and its interval in words: ``up 0.04 (95% CI -0.02 to 0.10) since 2026-11-02``."""
        if math.isnan(self.difference):
            return f"no comparison with {self.since}"
        return f"{self.moved} since {self.since}"

    @property
    def digits(self) -> int:
        """The number of decimals that show the interval, and that it does not contain 0 if so."""
        digits = digits_of(self.high - self.low)
        nearest = min(abs(self.low), abs(self.high))
        while self.significant and nearest and round(nearest, digits) == 0 and digits < _MOST_DIGITS:
            digits += 1
        return digits

    @property
    def moved(self) -> str:
        """The difference and its interval in words, such as ``up 0.04 (95% CI -0.02 to 0.10)``."""
        size = _number(abs(self.difference), self.digits)
        word = "unchanged" if not size.strip("0.") else f"{'up' if self.difference > 0 else 'down'} {size}"
        if math.isnan(self.low):
            return word
        limits = " to ".join(_number(limit, self.digits) for limit in (self.low, self.high))
        return f"{word} ({written(self.confidence_level, 100)}% CI {limits})"

    @property
    def outcome(self) -> str:
        """The result of the test in words, with the confidence level."""
        if self.significant:
            return f"a significant change ({written(self.confidence_level, 100)}%)"
        return "no significant change"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}


class Measured(NamedTuple):
    """A kappa of one sample with its confidence interval; ``unjudged`` says why it must not be compared, if so."""

    estimate: Estimate
    interval: ConfidenceInterval
    unjudged: str = ""


class Snapshot(NamedTuple):
    """What one audit has to compare: its name, such as the date, and the kappa of each labeler."""

    name: str
    kappas: Mapping[str, Measured]
    fleiss: Measured


def change_of(since: str, before: Measured, after: Measured) -> Change:
    """Return the change from one independent sample to another, from the confidence limits of both.

    With kappa k and limits l and u of the samples 1 and 2, the limits of ``d = k_2 - k_1`` are (MOVER)

        low  = d - sqrt((k_2 - l_2)^2 + (u_1 - k_1)^2)
        high = d + sqrt((u_2 - k_2)^2 + (k_1 - l_1)^2)

    and the p-value is ``2 Phi(-z |d| / h)`` with h the distance of d from the limit that is nearer to 0. So the p-value
    is below alpha exactly where 0 is outside of the limits.

    Examples
    --------
    >>> from types import SimpleNamespace as Made
    >>> interval = lambda low, high: ConfidenceInterval(low, high, 0.95, "beta")
    >>> before = Measured(Made(value=0.5, reason=None), interval(0.4, 0.6))
    >>> change_of("May", before, Measured(Made(value=0.8, reason=None), interval(0.7, 0.9))).text
    'up 0.30 (95% CI 0.16 to 0.44) since May'
    """
    level, values = before.interval.confidence_level, (before.estimate.value, after.estimate.value)
    d, (l1, u1), (l2, u2) = values[1] - values[0], before.interval, after.interval
    nan = math.nan
    reason = None
    for one, where in ((before, "Before"), (after, "After")):
        why = one.unjudged or one.estimate.reason or one.interval.reason
        if reason is None and why:
            reason = f"{where}: {why}"
    if reason is not None:
        judged = not (before.unjudged or after.unjudged)
        return Change(since, *values, d if judged else nan, nan, nan, nan, level, reason)
    down, up = math.hypot(values[1] - l2, u1 - values[0]), math.hypot(u2 - values[1], values[0] - l1)
    low, high, pvalue = map(float, mover(np.array(d), np.array(down), np.array(up), level))
    return Change(since, *values, d, low, high, pvalue, level)


@dataclass(frozen=True, slots=True, repr=False)
class Changes(Display):
    """What changed between two audits of independent samples of items.

    Attributes
    ----------
    since : the earlier audit: its date, or the name of its file
    kappas : the change of the kappa of each labeler that is in both
    fleiss : the change of Fleiss' kappa, the agreement between annotators
    votes : the shift of the categories among the votes
    labels : the shift of the categories among the suggested labels of each labeler
    notes : what to know about the comparison, each with a code and a sentence
    """

    since: str
    kappas: Mapping[str, Change]
    fleiss: Change
    votes: Shift
    labels: Mapping[str, Shift]
    notes: tuple[Note, ...] = ()

    def sentence(self, labeler: str) -> str:
        """Return what became of the kappa of a labeler, as a sentence."""
        found = self.kappas[labeler]
        if found.reason is not None:
            return f"{labeler} cannot be compared with {found.since}. {found.reason}"
        before, after = (_number(value, found.digits) for value in (found.before, found.after))
        verb = "went" if not found.significant else "rose" if found.difference > 0 else "fell"
        return f"{labeler} {verb} from {before} to {after} since {found.since}: {found.moved}, {found.outcome}."

    @property
    def text(self) -> str:
        """What changed, in sentences: the labelers, then the annotators and the categories."""
        differ = [note.message for note in self.notes if note.code == FILTERS_DIFFER]
        return " ".join([*differ, *map(self.sentence, self.kappas), *([] if differ else self.context(*self.kappas))])

    def context(self, *labelers: str) -> list[str]:
        """Return sentences about what else changed: the annotators, or the categories."""
        moved = [name for name in labelers if self.kappas[name].significant]
        fleiss, said = self.fleiss, []
        before, after = (_number(value, fleiss.digits) for value in (fleiss.before, fleiss.after))
        went = f"{FLEISS} {'rose' if fleiss.difference > 0 else 'fell'} from {before} to {after}"
        went = f"{went}, {fleiss.moved}, {fleiss.outcome}"
        if fleiss.significant and moved:
            said.append(f"The agreement between annotators changed, too: {went}. It may not be the labels.")
        elif fleiss.significant:
            said.append(f"It is the agreement between annotators that changed: {went}.")
        shifts = [("votes", self.votes), *((f"labels of {name}", self.labels[name]) for name in labelers)]
        shifted = [_shifted(what, shift) for what, shift in shifts if shift.pvalue < 1 - fleiss.confidence_level]
        of_votes = self.votes.pvalue < 1 - fleiss.confidence_level
        if of_votes:  # then the labels should shift, too
            shifted[1:] = ["The categories of the items have shifted, which can change kappa without other labels."]
        said += shifted
        if moved and not fleiss.significant and not of_votes and fleiss.reason is None:
            kept = f"{FLEISS} {before}, now {after}"
            points = f"this points to the labels of {' and '.join(moved)}"
            said.append(f"No change of the annotators ({kept}) or of the categories of the items was found: {points}.")
        return said

    def _display(self) -> tuple[str, list[str]]:
        return self.text, [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        labelers = {
            name: {"change": change.to_dict(), "labels": self.labels[name].to_dict()}
            for name, change in self.kappas.items()
        }
        return {
            "since": self.since,
            "summary": self.text,
            "labelers": labelers,
            "fleiss": self.fleiss.to_dict(),
            "votes": self.votes.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }


def _shifted(what: str, shift: Shift) -> str:
    """Return a sentence about shares that shifted."""
    before, after = f"{shift.before:.0%}", f"{shift.after:.0%}"
    if before == after:
        before, after = f"{shift.before:.1%}", f"{shift.after:.1%}"
    probability = "p < 0.001" if shift.pvalue < 0.001 else f"p = {shift.pvalue:.3f}"
    moved = f"{max(round(100 * shift.distance), 1)}%" if shift.distance >= 0.005 else "less than 1%"
    most = f"most {shift.category!r} (from {before} to {after})"
    return f"The categories of the {what} shifted by {moved}, {most}, a significant change ({probability})."


def changes_between(before: Snapshot, after: Snapshot) -> Changes:
    """Compare the labelers that two audits have in common, their annotators and their categories."""
    common = [name for name in after.kappas if name in before.kappas]
    pairs = {name: (before.kappas[name], after.kappas[name]) for name in common}
    return Changes(
        before.name,
        {name: change_of(before.name, *pair) for name, pair in pairs.items()},
        change_of(before.name, before.fleiss, after.fleiss),
        shift_of_votes(before.fleiss.estimate, after.fleiss.estimate),
        {name: shift_of_labels(one.estimate, other.estimate) for name, (one, other) in pairs.items()},
        tuple(_notes(before, after)),
    )


def _notes(before: Snapshot, after: Snapshot) -> list[Note]:
    """Return what makes two audits less alike: labelers, categories, and numbers of items."""
    found = []
    if [*before.kappas] != [*after.kappas] and {*before.kappas} != {*after.kappas}:
        names = shown(sorted({*before.kappas} ^ {*after.kappas}))
        found.append(Note("labelers-differ", f"Not in both audits, and not compared: {names}."))
    one, other = (_occurring(side.fleiss.estimate) for side in (before, after))
    if different := [name for name in {**one, **other} if (name in one) != (name in other)]:
        names = shown(label for _, label in different)
        found.append(Note("categories-differ", f"Categories with votes in one of the audits only: {names}."))
    sizes = before.fleiss.estimate.n_items, after.fleiss.estimate.n_items
    if min(sizes) < _SMALLER * max(sizes):
        text = f"{before.name} has {sizes[0]:,} items with two votes or more, {after.name} {sizes[1]:,}."
        found.append(Note("sizes-differ", f"{text} The smaller one limits what can be found."))
    return found


def _occurring(estimate: Estimate) -> dict[tuple[type, Any], None]:
    """Return the categories that have votes, by type and label."""
    shares = {} if estimate.parts is None else estimate.parts.C
    return {(type(label), label): None for label, share in shares.items() if share}


def _number(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never -0.00
