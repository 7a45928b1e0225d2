"""A labeler for other annotators: its kappa and its difference from a typical annotator, with those for these."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core.items import ItemVotes
from dhkappa.stats.annotator_baseline import AnnotatorBaseline
from dhkappa.stats.annotator_variance import (
    Panel,
    annotator_variance,
    check_supported,
    kappa_pulls,
    no_interval,
    panel_interval,
    panel_of,
    two_way_limits,
    typical_pulls,
    without_one,
)
from dhkappa.stats.grades import digits_of
from dhkappa.stats.intervals import ConfidenceInterval, written
from dhkappa.stats.kappa import Estimate, estimate_dh
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Sample, Stratum
from dhkappa.table import Display, plain

_WIDEST = 27 / 13  # difference between two kappas
_MOST = 1 / 3 - 1e-9  # share of the votes: of three annotators, each would have the same share of triples
_DOMINATES = "One annotator gave a third of the votes or more, so the annotators cannot be told apart by triples."
_NO_BASELINE = "There is no interval of the difference from a typical annotator."


@dataclass(frozen=True, slots=True, repr=False)
class OtherAnnotators(Display):
    """What a labeler would score with other annotators like these, who vote on other items like these.

    Attributes
    ----------
    labeler : name of the labeler
    n_annotators : number of annotators with a vote on an eligible item
    n_effective : number of annotators who all vote on equally many items and vary as much; at most ``n_annotators``
    low, high : confidence interval of kappa; NaN with fewer than 5 annotators, or if one gave most of the votes
    difference_low, difference_high : confidence interval of kappa minus that of a typical annotator
    kappa_without_low, kappa_without_high : range of kappa without the votes of one annotator, if there is no interval
    confidence_level : the confidence level of both intervals
    text : the interval of kappa for these annotators and for others, in a sentence
    reason : why there is no interval of kappa; None if there is
    difference_reason : why there is no interval of the difference; None if there is
    notes : conditions that affect the interpretation, each with a code and a sentence
    """

    labeler: str
    n_annotators: int
    n_effective: float
    low: float
    high: float
    difference_low: float
    difference_high: float
    kappa_without_low: float
    kappa_without_high: float
    confidence_level: float
    text: str
    reason: str | None = None
    difference_reason: str | None = None
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return f"{self.labeler}: {self.text}"

    def _display(self) -> tuple[str, list[str]]:
        return repr(self), [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        found = {name: plain(getattr(self, name)) for name in OtherAnnotators.__dataclass_fields__ if name != "notes"}
        return {**found, "notes": [note.to_dict() for note in self.notes]}


def other_annotators(
    item_votes: ItemVotes,
    labeler: str,
    estimate: Estimate,
    interval: ConfidenceInterval,
    se: float,
    baseline: AnnotatorBaseline,
    sample: Sample,
) -> OtherAnnotators:
    """Return the intervals of a labeler for other annotators from those for these annotators.

    ``sample`` has the eligible rows of the votes, with the labels of the labeler.
    """
    check_supported(estimate)
    panel = panel_of(item_votes, sample)
    found, ends, reason = panel_interval(estimate, interval, se, panel), None, None
    if found.reason is not None:
        reason = found.reason
        if estimate.exact is not None and panel.reason is not None:
            ends = without_one(item_votes, labeler, estimate, panel)
            reason = no_interval(panel.reason, ends)
    low, high, why = _difference(item_votes, sample, panel, baseline)
    return OtherAnnotators(
        labeler=labeler,
        n_annotators=panel.size,
        n_effective=panel.effective,
        low=found.low,
        high=found.high,
        difference_low=low,
        difference_high=high,
        kappa_without_low=ends[0] if ends else math.nan,
        kappa_without_high=ends[1] if ends else math.nan,
        confidence_level=interval.confidence_level,
        text=reason or _text(panel, interval, found, baseline, (low, high)),
        reason=reason,
        difference_reason=why,
        notes=found.notes,
    )


def _text(
    panel: Panel,
    fixed: ConfidenceInterval,
    found: ConfidenceInterval,
    baseline: AnnotatorBaseline,
    difference: tuple[float, float],
) -> str:
    """Return the intervals for these annotators and for others as sentences."""
    digits = digits_of(fixed.high - fixed.low)

    def within(low: float, high: float) -> str:
        return " to ".join(f"{round(end, digits) + 0.0:.{digits}f}" for end in (low, high))

    level, these = f"{written(fixed.confidence_level, 100)}% CIs", within(fixed.low, fixed.high)
    others = within(found.low, found.high)
    text = f"For these {panel.size:,} annotators kappa is {these}; for other annotators like them, {others} ({level})."
    if not math.isnan(difference[0]):
        text += (
            f" Its difference from a typical annotator is {within(baseline.low, baseline.high)} for these annotators"
        )
        text += f" and {within(*difference)} for others."
    few = " These annotators are few, so the intervals for others are much wider than they would be with more."
    return text + (few if found.notes else "")


def _difference(
    item_votes: ItemVotes, sample: Sample, panel: Panel, baseline: AnnotatorBaseline
) -> tuple[float, float, str | None]:
    """Return the limits of the difference from a typical annotator, and why there are none."""
    if math.isnan(baseline.low) or math.isnan(baseline.difference):
        return math.nan, math.nan, baseline.reason or baseline.share_reason or _NO_BASELINE
    if baseline.n_items < sample.n:
        sample = _with_three_votes(sample)
        panel = panel_of(item_votes, sample)
    assert sample.n == baseline.n_items
    reason = panel.reason and f"{panel.reason}: nothing here says what others would have voted."
    reason = reason or (_DOMINATES if panel.omega.max() >= _MOST else None)
    if reason is not None:
        return math.nan, math.nan, reason
    own = estimate_dh(sample)
    variance = annotator_variance(panel, kappa_pulls(panel, own) - typical_pulls(panel, own))
    known = baseline.difference, (baseline.low, baseline.high), baseline.se, sample.n - 1, variance
    low, high = two_way_limits(*known, baseline.confidence_level)
    return max(float(low), -_WIDEST), min(float(high), _WIDEST), None


def _with_three_votes(sample: Sample) -> Sample:
    """Return the rows with three votes or more, of a sample without weights, strata and pool."""
    assert sample.kept is not None
    rows = np.flatnonzero(sample.patterns.vote_totals() >= 3)
    patterns = sample.patterns.take(rows)
    strata, stratum = (Stratum(None, int(patterns.items.sum()), None),), np.zeros(rows.size, np.int8)
    return replace(
        sample, patterns=patterns, mass=patterns.items, stratum=stratum, strata=strata, kept=sample.kept[rows]
    )
