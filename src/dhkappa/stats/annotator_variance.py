"""The variance of kappa over annotators, and confidence intervals for other annotators like these.

``Var(kappa) = E[Var(kappa | annotators)] + Var(E[kappa | annotators])``. The first term is V, the squared standard
error over items. The second, B, is computed from the influence U_a of each annotator, less what items contribute to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dhkappa.core import Array, Floats, Integers
from dhkappa.core.annotator_groups import votes_of
from dhkappa.core.items import ItemVotes, VoteSource
from dhkappa.errors import DataError, counted, invalid
from dhkappa.stats.annotator_votes import AnnotatorVotes, annotator_votes, require_annotators
from dhkappa.stats.intervals import LEAST, ConfidenceInterval
from dhkappa.stats.kappa import Estimate, estimate_dh, estimate_fleiss, sums
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Sample, sample_of
from dhkappa.stats.summation import exact_sum, group_sums, item_sums

FEWEST, FEW = 5, 10
"""Annotators, if all have the same weight: with fewer there is no interval, and below 10 a note."""
MOST = 0.4
"""Share of the votes of one annotator from which on there is no interval."""
_MOST_OF_TRIPLES = 1 / 3  # the same for a difference from a typical annotator
_ROUNDING = 1e-9
_ADDED = 0.25  # part of an annotator that is added: a careless one, or one who always votes the suggested label
_LARGE = 0.01  # share of votes: others are not left out for the range


@dataclass(frozen=True)
class Panel:
    """The annotators of some eligible items, and their votes: T votes of A annotators on K rows."""

    votes: AnnotatorVotes
    n: int  # number of items

    @cached_property
    def _annotators(self) -> tuple[Array, Array]:
        return np.unique(self.votes.who, return_inverse=True)

    @property
    def places(self) -> Integers:
        """(A,) place of each annotator among those of the data."""
        return self._annotators[0]

    @property
    def who(self) -> Integers:
        """(T,) index of the annotator among those who voted."""
        return self._annotators[1]

    @property
    def size(self) -> int:
        """The number A of annotators."""
        return self.places.size

    @cached_property
    def omega(self) -> Floats:
        """(A,) share of each annotator in all votes if each item counts once; they sum to 1."""
        return item_sums(1 / self.votes.n_votes, self.votes.items, self.who, self.size) / self.n

    @cached_property
    def effective(self) -> float:
        """A*, the number of annotators with equal shares that vary as much; A if all voted on all items."""
        squares = exact_sum(self.omega**2)
        return 1 / squares if squares else 0.0

    @property
    def reason(self) -> str | None:
        """Why there is no interval; None if there is one."""
        largest, A = float(self.omega.max(initial=0)), self.effective
        if A >= FEWEST - _ROUNDING and largest <= MOST + _ROUNDING:
            return None
        if self.size <= FEWEST:
            return f"Only {counted(self.size, 'annotator')}"
        if largest > MOST:
            return f"{largest:.0%} of the votes are from one of {self.size:,} annotators"
        return f"A few of the {self.size:,} annotators gave most of the votes, so that they count as {A:.1f}"

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note if there are few annotators."""
        if self.effective >= FEW - _ROUNDING:
            return ()
        count = f"{self.size:,} annotators"
        if self.effective < self.size - 0.5:
            count += f" who count as {self.effective:.1f}, as some gave more votes than others"
        text = f"The interval for other annotators comes from {count}. It is much wider than it would be with more."
        return (Note("few-annotators", text),)

    def shrinkage(self, order: int) -> Floats:
        """Return (T,) r_a: an annotator is not their own partner in a pair, or in a triple (``order`` 3)."""
        r: Floats = ((1 - self.omega) / (1 - order * self.omega))[self.who]
        return r


def panel_of(item_votes: ItemVotes | None, sample: Sample) -> Panel:
    """Return the annotators of a sample that has one pattern per eligible row of the votes."""
    require_annotators(item_votes)
    assert item_votes is not None
    return Panel(annotator_votes(item_votes, sample), sample.n)


# The influence u_ia of each vote


def kappa_pulls(panel: Panel, estimate: Estimate) -> Floats:
    """Return (T,) u_ia of kappa_DH.

    ``2 (r_a (d_ia - D) - (1 - kappa) (w_Y - E)) / (n N_i (1 - E))`` with ``w_j = C_j (2 L_j - 1)``, for a vote for Y.
    """
    votes, parts = panel.votes, estimate.parts
    assert parts is not None
    C, L = (np.array([float(x) for x in shares.values()]) for shares in (parts.C, parts.L))
    alike = _alike(votes)
    off_d = 1 - np.where(votes.own == votes.label, alike, -alike)  # 1 - d_ia
    off_w = (1 - C * (2 * L - 1))[votes.own]
    D, E, kappa = (float(1 - x) for x in (parts.D, parts.E, parts.kappa or 0))
    pulls: Floats = 2 * (panel.shrinkage(2) * (D - off_d) - kappa * (E - off_w)) / (panel.n * votes.n_votes * E)
    return pulls


def fleiss_pulls(panel: Panel, estimate: Estimate) -> Floats:
    """Return (T,) u_ia of Fleiss' kappa, ``2 (r_a (t_ia - t) - (1 - kappa) (C_Y - Pe)) / (n N_i (1 - Pe))``."""
    votes, parts = panel.votes, estimate.parts
    assert parts is not None
    C = np.array([float(share) for share in parts.C.values()])
    t, Pe = parts.R + parts.S, parts.C_E + parts.C_F
    kappa, chance = float((1 - t) / (1 - Pe)), float(1 - Pe)  # 1 - kappa
    off_t, off_C = float(1 - t) - (1 - _alike(votes)), chance - (1 - C)[votes.own]
    pulls: Floats = 2 * (panel.shrinkage(2) * off_t - kappa * off_C) / (panel.n * votes.n_votes * chance)
    return pulls


def typical_pulls(panel: Panel, estimate: Estimate) -> Floats:
    """Return (T,) u_ia of the annotator baseline; with two categories it is Fleiss' kappa.

    ``(6 r3_a (T_ia - T) - 2 r_a (t_ia - t) - (1 - kappa_P) (e_Y - sum_j C_j e_j)) / (n N_i (1 - E_P))`` with
    ``e_j = 6 C_j^2 - 2 C_j``; T_ia is the share of pairs of other annotators who both voted the same.
    """
    votes, parts = panel.votes, estimate.parts
    assert parts is not None
    C = np.array([float(share) for share in parts.C.values()])
    if np.count_nonzero(C) == 2:
        return fleiss_pulls(panel, estimate)
    N, same, items = votes.n_votes, _own_count(votes) - 1, votes.items
    triples = same * (same - 1) / ((N - 1) * (N - 2))
    # Each item counts once, so its votes have weight 1 / N_i.
    T = float(item_sums(triples / N, items, np.zeros(N.size, np.int64), 1)[0]) / panel.n
    t, E = float(parts.R + parts.S), exact_sum(2 * C**3 - C**2)
    kappa, e = (2 * T - t - E) / (1 - E), 6 * C**2 - 2 * C
    pulls = 6 * panel.shrinkage(3) * (triples - T) - 2 * panel.shrinkage(2) * (same / (N - 1) - t)
    found: Floats = (pulls - (1 - kappa) * (e[votes.own] - exact_sum(C * e))) / (panel.n * N * (1 - E))
    return found


def _own_count(votes: AnnotatorVotes) -> Integers:
    """Return (T,) the number of votes on the item for the category of this vote."""
    number: Integers = votes.sample.patterns.votes[votes.entry].astype(np.int64)
    return number


def _alike(votes: AnnotatorVotes) -> Floats:
    """Return (T,) t_ia, the share of the other votes on the item for the category of this vote."""
    share: Floats = (_own_count(votes) - 1) / (votes.n_votes - 1)
    return share


# The variance over annotators, and limits


class AnnotatorVariance(NamedTuple):
    """The variance B of an estimate over annotators; each attribute is a number or an array."""

    before: Any  # B0, with what items contribute
    after: Any  # B1, without it; may be negative
    effective: Any  # A*

    @property
    def value(self) -> Any:
        """B, 0 or more."""
        return np.maximum(self.after, 0)


def annotator_variance(panel: Panel, pulls: Floats) -> AnnotatorVariance:
    """Return the variance over annotators from u_ia: ``B1 = c (sum_a U_a^2 - noise)``."""
    votes, who, n, omega = panel.votes, panel.who, panel.n, panel.omega
    items = votes.sample.patterns.items
    by_item = group_sums(pulls, votes.row, items.size)  # u_i
    U = item_sums(pulls, votes.items, who, panel.size) - omega * _total(by_item, items)
    s2, s3, of_U = (exact_sum(values) for values in (omega**2, omega**3, U * U))
    squares = _total(pulls * pulls, votes.items)
    crossed = _total(omega[who] * pulls * by_item[votes.row], votes.items)
    noise = (n * squares - 2 * n * crossed + n * s2 * _total(by_item * by_item, items) - of_U) / (n - 1)
    c = s2 / (s2 - 2 * s3 + s2**2)
    return AnnotatorVariance(c * of_U, c * (of_U - noise), panel.effective)


def _total(values: Floats, items: Integers) -> float:
    """Return the sum over items of values that stand for some items each."""
    return float(item_sums(values, items, np.zeros(values.size, np.int64), 1)[0])


class Added(NamedTuple):
    """Part w of an annotator that is added to one limit, with the influence u of that annotator."""

    w: float = 0.0
    u: float = 0.0


def two_way_limits(
    value: Any,
    limits: tuple[Any, Any],
    se: Any,
    df: Any,
    variance: AnnotatorVariance,
    confidence_level: float,
    added: tuple[Added, Added] = (Added(), Added()),
) -> tuple[Any, Any]:
    """Return confidence limits for other items and other annotators from those for other items.

    A kind of annotator that did not vote is unknown to B. Each limit is therefore computed as if a quarter of an
    annotator had been added: for the lower one who votes at random, for the upper one who always votes the suggested
    label. The degrees of freedom are those of the sum of two variances (Satterthwaite), and at least A* - 1.
    """
    from dhkappa.stats.special import stdtrit

    A, V, p = variance.effective, se**2, (1 + confidence_level) / 2

    def limit(one: Added, fixed: Any, sign: int) -> Any:
        w, u = one

        def with_added(x: Any) -> Any:
            return (x * A * (A - 1) + w * u**2 * A / (A + w)) / ((A + w) * (A + w - 1))

        B, spread = with_added(variance.value), V**2 / df + with_added(variance.before) ** 2 / (A - 1)
        freedom = np.where(spread > 0, (V + B) ** 2 / np.where(spread > 0, spread, 1), df)
        freedom = np.minimum(df, np.maximum(A - 1, freedom))
        half = np.sqrt(((value - fixed) / stdtrit(df, p)) ** 2 + B)
        return value + w * u / (A + w) + sign * stdtrit(freedom, p) * half

    return limit(added[0], limits[0], -1), limit(added[1], limits[1], 1)


def added_annotators(estimate: Estimate) -> tuple[Added, Added]:
    """Return the annotators that the limits of a kappa add; the upper limit of Fleiss' kappa adds none.

    A careless annotator has ``u = 2 (sum_j C_j X_j - D) / (1 - E)`` with ``X_j = mean_i c_ij (2 q_ij - 1)``, and one
    who always votes the label ``u = 2 (mean_i c_{i,l_i} - D - (1 - kappa) (sum_j w_j L_j - E)) / (1 - E)``.
    """
    parts, patterns = estimate.parts, estimate.sample.patterns
    assert parts is not None
    if estimate.metric == "fleiss":
        return Added(_ADDED, -2 * estimate.value), Added()
    C, L = (np.array([float(x) for x in shares.values()]) for shares in (parts.C, parts.L))
    row = patterns.row()
    hit = np.flatnonzero(patterns.code == patterns.suggested[row])
    share, items = patterns.votes[hit] / patterns.vote_totals()[row[hit]], patterns.items[row[hit]]
    on_label = item_sums(share, items, patterns.code[hit], C.size) / estimate.n_items  # mean_i c_ij q_ij
    w, D, E = C * (2 * L - 1), float(parts.D), float(parts.E)
    down = 2 * (exact_sum(C * (2 * on_label - C)) - D) / float(1 - parts.E)
    always = exact_sum(on_label) - D - (1 - estimate.value) * (exact_sum(w * L) - E)
    return Added(_ADDED, down), Added(_ADDED, 2 * always / float(1 - parts.E))


# Intervals of a kappa


def check_supported(estimate: Estimate, parameter: str = "annotators") -> None:
    """Refuse what has not been verified with other annotators, which a parameter asks for."""
    sample = estimate.sample
    named = {
        "agreement weights": estimate.weights is not None,
        "sample weights": sample.weighted,
        "strata": len(sample.strata) > 1,
        "a pool": sample.strata[0].size is not None,
        "clusters": sample.clustered,
    }
    found = [what for what, used in named.items() if used]
    if found:
        message = f"Intervals for other annotators have not been verified with {found[0]}."
        hint = f"Leave out ${parameter}."
        raise invalid(parameter, message, code="option-not-supported", hint=hint)


def rows_of(item_votes: ItemVotes | None, labeler: str | None, estimate: Estimate) -> Sample:
    """Return the eligible rows of the votes that an estimate was computed from."""
    require_annotators(item_votes)
    assert item_votes is not None
    sample = _sample(item_votes, labeler, estimate)
    if sums(sample, estimate.metric == "dh") != estimate.sums:
        hint = "Compute kappa again."
        raise DataError("The votes were changed after kappa was computed.", code="votes-changed", hint=hint)
    return sample


def _sample(item_votes: ItemVotes, labeler: str | None, estimate: Estimate) -> Sample:
    name = item_votes.columns.labelers[0] if labeler is None else labeler
    return sample_of(item_votes.labeled_patterns(name), labeled=estimate.metric == "dh")


def random_interval(
    estimate: Estimate, fixed: ConfidenceInterval, se: float, votes: VoteSource | None
) -> ConfidenceInterval:
    """Return the interval of a kappa for other annotators from the one for these annotators."""
    check_supported(estimate)
    item_votes, labeler = (None, None) if votes is None else (votes.read(), votes.labeler)
    panel = panel_of(item_votes, rows_of(item_votes, labeler, estimate))
    found = panel_interval(estimate, fixed, se, panel)
    if found.reason is None or math.isnan(fixed.low) or item_votes is None:
        return found
    ends = without_one(item_votes, labeler, estimate, panel)
    return replace(found, reason=no_interval(found.reason, ends))


def panel_interval(estimate: Estimate, fixed: ConfidenceInterval, se: float, panel: Panel) -> ConfidenceInterval:
    """Return the interval of a kappa for annotators like those of a panel; ``reason`` is that of the panel."""
    found = replace(fixed, annotators="random")
    if math.isnan(fixed.low):
        return found
    if panel.reason is not None:
        return replace(found, low=math.nan, high=math.nan, reason=panel.reason)
    pulls = fleiss_pulls(panel, estimate) if estimate.metric == "fleiss" else kappa_pulls(panel, estimate)
    known = estimate.value, (fixed.low, fixed.high), se, estimate.n_items - 1, annotator_variance(panel, pulls)
    low, high = two_way_limits(*known, fixed.confidence_level, added_annotators(estimate))
    return replace(found, low=max(float(low), LEAST), high=min(float(high), 1.0), notes=panel.notes)


def without_one(
    item_votes: ItemVotes, labeler: str | None, estimate: Estimate, panel: Panel
) -> tuple[float, float] | None:
    """Return the least and the greatest kappa without the votes of one annotator; None if all are undefined.

    Annotators with less than 1% of the votes are not left out: they hardly change kappa.
    """
    names = [(item_votes.annotators or ())[place] for place in panel.places[panel.omega >= _LARGE].tolist()]
    every, values = item_votes.annotators or (), []
    for name in names:
        rest = _sample(votes_of(item_votes, [one for one in every if one != name]), labeler, estimate)
        own = estimate_fleiss(rest) if estimate.metric == "fleiss" else estimate_dh(rest)
        values += [] if own.exact is None else [own.value]
    return (min(values), max(values)) if values else None


def no_interval(reason: str, ends: tuple[float, float] | None) -> str:
    """Return why there is no interval for other annotators, with the range without one annotator."""
    text = f"{reason}: nothing here says what others would have voted."
    if ends is None:
        return f"{text} Without one of them, kappa is undefined."
    low, high = (f"{round(end, 2) + 0.0:.2f}" for end in ends)
    return f"{text} Without one of them, kappa would be {low} to {high}; this is a range, not a confidence interval."
