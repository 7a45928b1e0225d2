"""Labelers for other annotators: their kappas, and differences from a typical annotator and from each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dhkappa.core import Floats
from dhkappa.core.added_votes import labeled_by_all
from dhkappa.core.items import ItemVotes
from dhkappa.errors import invalid
from dhkappa.stats.annotator_baseline import AnnotatorBaseline, gap_of
from dhkappa.stats.annotator_variance import (
    AnnotatorVariance,
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
from dhkappa.stats.annotator_votes import require_annotators
from dhkappa.stats.compare import COLUMNS, differences_table
from dhkappa.stats.grades import digits_of
from dhkappa.stats.influence import ROUNDING, influence, terms
from dhkappa.stats.intervals import ConfidenceInterval, KappaDifference, written
from dhkappa.stats.kappa import Estimate, estimate_dh
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Sample, Stratum, sample_of
from dhkappa.stats.summation import row_sums
from dhkappa.table import Display, Table, plain

_WIDEST = 27 / 13  # difference between two kappas
_MOST = 1 / 3 - 1e-9  # share of the votes: of three annotators, each would have the same share of triples
_DOMINATES = "One annotator gave a third of the votes or more, so the annotators cannot be told apart by triples."
_SMALLEST_P, _STEPS = 1e-15, 50  # of p-values, and of the bisection that finds them
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
    if interval.any_time_level is not None:
        message = "Intervals for other annotators have not been verified at every look."
        raise invalid("any_time", message, code="option-not-supported", hint="Leave out $any_time.")
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
    kept = sample.kept[rows]
    return replace(sample, patterns=patterns, mass=patterns.items, stratum=stratum, strata=strata, kept=kept, rows=None)


class _Labeled(NamedTuple):
    """A labeler on some items: its estimate, the annotators, and its influence by vote and by row."""

    estimate: Estimate
    panel: Panel
    pulls: Floats  # (T,) u_ia; empty if there is no interval
    phi: Floats  # (K,)


class _Pairs:
    """Pairs of labelers on the items that both labeled. What a labeler has on the same items is computed once."""

    def __init__(self, item_votes: ItemVotes) -> None:
        self._item_votes = item_votes
        self._known: dict[tuple[bytes, str], _Labeled] = {}

    def labelers(self, one: str, other: str) -> tuple[_Labeled, _Labeled]:
        """Return both labelers of a pair."""
        votes = labeled_by_all(self._item_votes, (one, other))
        rows = np.packbits(votes.columns.labels[one].values > 0).tobytes()
        return self._labeled(votes, one, rows), self._labeled(votes, other, rows)

    def _labeled(self, votes: ItemVotes, name: str, rows: bytes) -> _Labeled:
        if (rows, name) not in self._known:
            sample = sample_of(votes.labeled_patterns(name))
            estimate = estimate_dh(sample)
            check_supported(estimate, "other_annotators")
            panel, pulls, phi = panel_of(votes, sample), np.zeros(0), np.zeros(0)
            if estimate.parts is not None and estimate.exact is not None and panel.reason is None:
                pulls, phi = kappa_pulls(panel, estimate), influence(terms(sample, estimate.parts))
            self._known[rows, name] = _Labeled(estimate, panel, pulls, phi)
        return self._known[rows, name]


def differences_for_others(differences: Table, item_votes: ItemVotes | None, confidence_level: float) -> Table:
    """Return a table of ``compare`` with standard errors, limits and p-values for other annotators.

    No annotator is added to the limits, as most of what annotators change is the same for both labelers.
    """
    require_annotators(item_votes)
    assert item_votes is not None
    columns = {name: list(differences.column(name)) for name in COLUMNS}
    pairs, gaps, variances = _Pairs(item_votes), {}, []
    for place, (one, other) in enumerate(zip(columns["labeler"], columns["other"], strict=True)):
        if columns["reason"][place] is not None:
            continue
        left, right = pairs.labelers(one, other)
        reason, items = left.panel.reason, left.estimate.sample.patterns.items
        for name in ("se", "low", "high", "pvalue"):
            columns[name][place] = math.nan
        columns["method"][place] = None if reason else "t"
        if reason is not None:
            columns["reason"][place] = f"{reason}: nothing here says what others would have voted."
            continue
        assert left.estimate.parts is not None
        assert right.estimate.parts is not None
        z, n = left.phi - right.phi, left.panel.n
        squares, cubes = row_sums(np.array([z * z, z * z * z]) * items).tolist()
        squares = 0.0 if squares <= ROUNDING**2 * n else squares
        reach = sum(float(1 / (1 - labeled.estimate.parts.E)) for labeled in (left, right) if labeled.estimate.parts)
        gaps[place] = gap_of(columns["difference"][place], squares, cubes, n, -reach, reach)
        variances.append(annotator_variance(left.panel, left.pulls - right.pulls))
    if gaps:
        names = ("value", "se", "skew", "n", "df", "worst", "best")
        gap = KappaDifference(*(np.array([getattr(one, name) for one in gaps.values()], np.float64) for name in names))
        variance = AnnotatorVariance(*map(np.array, zip(*variances, strict=True)))
        low, high = _limits(gap, variance, confidence_level)
        found = {"se": np.sqrt(gap.se**2 + variance.value), "low": low, "high": high, "pvalue": _pvalue(gap, variance)}
        for name, values in found.items():
            for place, value in zip(gaps, values.tolist(), strict=True):
                columns[name][place] = value
    return differences_table(columns, (confidence_level, False), None, "for other annotators")


def _limits(gap: KappaDifference, variance: AnnotatorVariance, confidence_level: Any) -> tuple[Any, Any]:
    """Return the limits of differences for other annotators."""
    low, high = two_way_limits(gap.value, gap.limits(confidence_level), gap.se, gap.df, variance, confidence_level)
    return np.maximum(low, -_WIDEST), np.minimum(high, _WIDEST)


def _pvalue(gap: KappaDifference, variance: AnnotatorVariance) -> Floats:
    """Return two-sided p-values, 1 less the confidence level at which a limit is 0, by bisection; at least 1e-15."""
    least, most = np.full(len(gap.value), math.log(_SMALLEST_P)), np.zeros(len(gap.value))
    for _ in range(_STEPS):
        middle = (least + most) / 2
        low, high = _limits(gap, variance, 1 - np.exp(middle))
        beyond = np.where(gap.value > 0, low > 0, high < 0)  # 0 is outside: the p-value is smaller
        least, most = np.where(beyond, least, middle), np.where(beyond, middle, most)
    found: Floats = np.where(gap.value == 0, 1.0, np.exp((least + most) / 2))
    return found
