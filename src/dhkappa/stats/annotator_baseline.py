"""A labeler compared with the annotator baseline, the kappa of a typical annotator used as labeler.

The share kept is how far a labeler is above random labels, divided by how far the baseline is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array
from dhkappa.errors import counted, invalid
from dhkappa.stats.any_time import any_time_level, too_few_items
from dhkappa.stats.clusters import ClusterSizes, refuse_any_time
from dhkappa.stats.influence import ROUNDING, terms
from dhkappa.stats.intervals import NO_VARIANCE, KappaDifference, skewness, written
from dhkappa.stats.kappa import Estimate, estimate_dh
from dhkappa.stats.sample import check_level, check_real
from dhkappa.stats.summation import row_sums
from dhkappa.stats.votes_baseline import MIN_ITEMS, NOT_VERIFIED, VotesBaseline, triples, votes_baseline, with_votes
from dhkappa.table import Display, plain

KEEP = 0.8  # share of what annotators are above random labels that a labeler should keep

_UNSUPPORTED = {"weighted": NOT_VERIFIED.format("agreement weights"), "fleiss": "There are no suggested labels."}
_BOUNDS = "Two votes per item give only bounds of the annotator baseline."
_NOT_ABOVE = "Annotators are not shown to be better than random labels."
_LONGEST_FRACTION = 10_000  # bits
_MAX_STEPS, _FAR = 200, 1e12
_NO_STEP = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, repr=False)
class AnnotatorBaseline(Display):
    """The annotator baseline, and a labeler compared with it on the same items.

    Attributes
    ----------
    value, exact : kappa of a typical annotator used as labeler, as a float and as a fraction; NaN and None if it
        is undefined or only bounds are known
    value_low, value_high : its bounds; equal to ``value`` unless ``method`` is ``"two-votes"``
    kappa_labeler : the labeler's kappa on the same items
    n_items : number of items used: those with at least three votes, or with two if two categories are voted for, or if
        there are only bounds
    difference : ``kappa_labeler`` minus ``value``; NaN if only bounds are known
    se : standard error of the difference, for items drawn at random and these annotators
    low, high : confidence interval of the difference; if only bounds are known, of all values within them
    above_random : ``value`` minus the kappa of the votes as labels in random order
    share_kept : how far the labeler is above random labels, as a share of ``above_random``
    share_low, share_high : confidence interval of the share kept; ``share_high`` may be infinite
    method : ``"votes"``, or ``"two-votes"`` for bounds
    confidence_level : the confidence level of both intervals
    any_time_level : the level of these intervals alone, if they hold at every look; see ``ConfidenceInterval``
    reason : why there is no baseline or no interval of the difference; None if there is
    share_reason : why there is no share kept or no interval of it; None if there is
    """

    value: float = math.nan
    exact: Fraction | None = None
    value_low: float = math.nan
    value_high: float = math.nan
    kappa_labeler: float = math.nan
    n_items: int = 0
    difference: float = math.nan
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan
    above_random: float = math.nan
    share_kept: float = math.nan
    share_low: float = math.nan
    share_high: float = math.nan
    method: str = "votes"
    confidence_level: float = 0.95
    any_time_level: float | None = None
    reason: str | None = None
    share_reason: str | None = None

    def __repr__(self) -> str:
        value = "undefined" if math.isnan(self.value_low) else f"{self.value_low:.4f}"
        value += f" to {self.value_high:.4f}" if self.method == "two-votes" else ""
        details = [counted(self.n_items, "item")]
        if not math.isnan(self.low):
            point = "" if math.isnan(self.difference) else f" {self.difference:+.4f}"
            limits = f"[{self.low:+.4f}, {self.high:+.4f}] at {written(self.confidence_level)}"
            details.append(f"difference{point} {limits}")
        if not math.isnan(self.share_low):
            details.append(f"share kept {self.share_kept:.2f} [{self.share_low:.2f}, {self.share_high:.2f}]")
        details += [self.reason.rstrip(".")] if self.reason else []
        return f"Annotator baseline {value} ({'; '.join(details)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None, ``exact`` is text, or None beyond 3,000 digits."""
        short = self.exact is not None and self.exact.denominator.bit_length() <= _LONGEST_FRACTION
        found = {name: plain(getattr(self, name)) for name in AnnotatorBaseline.__dataclass_fields__ if name != "exact"}
        return {**found, "exact": str(self.exact) if short else None}

    def decide(self, *, keep: float | None = None, margin: float | None = None) -> str:
        """Decide whether the labeler is as good as a typical annotator, up to a tolerance (a non-inferiority test).

        Parameters
        ----------
        keep : the share of what annotators are above random labels that must be kept; 0.8 if nothing is given
        margin : instead, how much the labeler's kappa may be below the annotator baseline

        Returns
        -------
        ``"pass"`` if the confidence interval is within the tolerance, ``"fail"`` if it is outside, else ``"undecided"``

        Examples
        --------
        >>> AnnotatorBaseline(low=-0.04, high=0.03).decide(margin=0.05)
        'pass'
        """
        if margin is None:
            low, high, least = self.share_low, self.share_high, check_real("keep", KEEP if keep is None else keep)
        elif keep is None:
            low, high, least = self.low, self.high, -check_real("margin", margin)
        else:
            text, hint = "keep and margin cannot be combined.", "Pass $keep or $margin."
            raise invalid("margin", text, hint=hint, code="margin-with-keep")
        return "pass" if low > least else "fail" if high < least else "undecided"


def annotator_baseline(
    estimate: Estimate, *, confidence_level: float = 0.95, any_time: bool = False
) -> AnnotatorBaseline:
    """Compare a labeler with a typical annotator, on the same items; ``any_time`` as for a confidence interval.

    Examples
    --------
    >>> from dhkappa import dh_kappa, simulate
    >>> drawn = simulate(500, labelers={"llm": 0.9}, rng=1)
    >>> annotator_baseline(dh_kappa(drawn.votes, drawn.suggested["llm"]).estimate)
    Annotator baseline 0.5386 (500 items; difference +0.1044 [+0.0570, +0.1483] at 0.95; share kept 1.16 [1.08, 1.24])
    """
    level = check_level(confidence_level)
    votes = votes_baseline(estimate)
    undefined = _UNSUPPORTED.get(estimate.metric) or votes.reason
    if undefined or votes.used is None:
        return AnnotatorBaseline(confidence_level=level, reason=undefined, share_reason=undefined)
    n = votes.used.n
    if any_time:
        refuse_any_time(estimate.sample)
    single = any_time_level(n, level) if any_time else None
    own = estimate if n == estimate.n_items else estimate_dh(with_votes(estimate.sample, votes.fewest))
    labeler, *annotators = _influences(own, votes)
    one = annotators[0]
    worst = -(labeler.reach + one.reach)
    best = -worst if votes.best is None else votes.best * one.reach
    clusters = ClusterSizes.of(own.sample) if own.sample.clustered else None
    gaps = [_difference(labeler, other, worst, best, clusters) for other in annotators]
    few = None if n >= MIN_ITEMS else f"Confidence limits need {MIN_ITEMS} items: got {n}."
    few = too_few_items(n) if single is not None and math.isnan(single) else few
    at = level if single is None else single
    se, why = gaps[0].se, None
    if clusters is not None:
        spreads = [clusters.variance(labeler.phi - other.phi) for other in annotators]
        se, why = spreads[0].se, next((each.reason for each in spreads if each.reason), None)
    few = few or why
    unknown = few or (NO_VARIANCE if any(gap.se == 0 and gap.value != 0 for gap in gaps) else None)
    limits = [(math.nan, math.nan) if unknown else gap.limits(at) for gap in gaps]
    found = AnnotatorBaseline(
        value_low=float(one.kappa),
        value_high=float(annotators[-1].kappa),
        kappa_labeler=own.value,
        n_items=n,
        low=float(limits[-1][0]),  # the upper bound of the baseline gives the lower limit
        high=float(limits[0][1]),
        method="two-votes" if len(gaps) == 2 else "votes",
        confidence_level=level,
        any_time_level=single,
        reason=unknown,
        share_reason=_BOUNDS,
    )
    if found.method == "two-votes":
        return found
    share_kept = share_low = share_high = math.nan
    share, share_reason = Share.of(labeler, one, best, clusters), few
    if not share.defined(at):
        share_reason = few or _NOT_ABOVE
    else:
        share_kept = float(labeler.above / one.above)
        share_low, share_high = (math.nan, math.nan) if few else share.limits(at)
    return replace(
        found,
        value=found.value_low,
        exact=one.kappa,
        difference=gaps[0].value,
        se=se,
        above_random=float(one.above),
        share_kept=share_kept,
        share_low=share_low,
        share_high=share_high,
        share_reason=share_reason,
    )


class _Influences(NamedTuple):
    """The labeler, or annotators used as labeler: exact values, and the influence of an item of each pattern."""

    kappa: Fraction
    above: Fraction  # kappa minus that of the same labels in random order
    reach: float  # 1 / (1 - E)
    phi: Array  # (K,) influence on kappa
    phi_above: Array  # (K,) influence on ``above``
    items: npt.NDArray[np.int64]  # (K,) number of items


def _influences(own: Estimate, votes: VotesBaseline) -> list[_Influences]:
    """Return the labeler and annotators, who are two if the baseline has bounds.

    With eps_i and chi_i, the influences on E and on D of random labels, ``phi_i = (d_i - D - (1 - kappa) eps_i) /
    (1 - E)`` and ``phi_above_i = (d_i - D - chi_i + above eps_i) / (1 - E)``. For annotators, L is C and q is c in
    ``eps_i = 2 (sum_j C_j (2 L_j - 1) c_ij + sum_j C_j^2 q_ij - E - C_E)``, where ``2 C_E = E + sum_j C_j^2``, and in
    ``chi_i = sum_j (g_ij - G_j) (2 L_j - 1) + 2 sum_j G_j (q_ij - L_j)``. Terms are distances from 1, which keep their
    digits if one category has almost all votes.
    """
    parts = own.parts
    assert parts is not None  # votes have two categories or more
    known, total = terms(own.sample, parts), parts.sums
    n, whole, pairs = total.n, total.n * total.vote_unit, total.n * total.pair_unit
    not_C, not_L, not_G = (
        np.array([(of - number) / of for number in column])  # Python integers: rounded once
        for column, of in ((total.votes, whole), (total.labels, n), (votes.pairs, pairs))
    )
    C, code, t = known.C, known.patterns.code, parts.R + parts.S

    def of_label(values: Array) -> Array:
        found: Array = values[known.suggested]
        return found

    def of_votes(values: Array) -> Array:
        return known.row_sums(values[code] * known.c)

    def score(
        exact: tuple[Fraction, Fraction, Fraction], not_L: Array, of: Callable[[Array], Array], missed: Array
    ) -> _Influences:
        D, E, random = exact
        eps = 2 * (float(2 - (3 * E + parts.C_E + parts.C_F) / 2) - of_votes(not_C + 2 * C * not_L))
        eps = eps - 2 * of(not_C * (1 + C))
        chi = float(3 - 2 * random - t) - (1 - known.t + 2 * (known.row_sums(not_L[code] * known.g) + of(not_G)))
        kappa, above, chance, move = (D - E) / (1 - E), (D - random) / (1 - E), float(1 - E), float(1 - D) - missed
        phi, phi_above = (move - float(1 - kappa) * eps) / chance, (move - chi + float(above) * eps) / chance
        return _Influences(kappa, above, 1 / chance, phi, phi_above, known.items)

    random = Fraction(sum(g * (2 * b - n) for g, b in zip(votes.pairs, total.labels, strict=True)), n * pairs)
    missed = [float(2 - a) * (1 - known.t) for a in votes.a]  # 1 - d_Pi
    if not missed:
        agreeing, every = triples(known.patterns)
        missed = [1 + known.t - 2 * (agreeing / every).astype(np.float64)]
    labeler = score((parts.D, parts.E, random), not_L, of_label, 1 - known.d)
    exact = ((D, votes.E, votes.random) for D in votes.D)
    return [labeler, *(score(of, not_C, of_votes, each) for of, each in zip(exact, missed, strict=True))]


def gap_of(value: float, squares: float, cubes: float, n: int, worst: float, best: float) -> KappaDifference:
    """Return a difference from the sums of squares and cubes of the influence of items."""
    se = math.sqrt(squares / (n * (n - 1))) if n > 1 else math.nan
    return KappaDifference(value, se, skewness(cubes, squares), n, n - 1, worst, best)


def _difference(
    labeler: _Influences, annotators: _Influences, worst: float, best: float, clusters: ClusterSizes | None
) -> KappaDifference:
    """Return the labeler's kappa minus that of annotators."""
    z, n = labeler.phi - annotators.phi, int(labeler.items.sum())
    if clusters is not None:
        return clusters.variance(z).difference(float(labeler.kappa - annotators.kappa), worst, best)
    squares, cubes = row_sums(np.array([z * z, z * z * z]) * labeler.items).tolist()
    squares = 0.0 if squares <= ROUNDING**2 * n else squares
    return gap_of(float(labeler.kappa - annotators.kappa), squares, cubes, n, worst, best)


class Share(NamedTuple):
    """What the limits of the share kept need: x is the influence on the labeler above random labels, y on annotators.

    With ``w(rho)``, the labeler above random labels minus rho times annotators above random labels, they are the values
    rho where a limit of w is 0.
    """

    above: tuple[float, float]  # of the labeler and of annotators
    reach: tuple[float, float]  # 1 / (1 - E)
    best: float
    n: int
    squares: list[float]  # sums of x^2, x y and y^2 over items
    cubes: list[float]  # sums of x^3, x^2 y, x y^2 and y^3
    clustered: tuple[ClusterSizes, Array, Array] | None = None  # with clusters: also x and y

    @staticmethod
    def of(labeler: _Influences, annotators: _Influences, best: float, clusters: ClusterSizes | None = None) -> Share:
        """Return what the limits need from influences."""
        x, y = labeler.phi_above, annotators.phi_above
        xx, xy, yy = x * x, x * y, y * y
        powers = row_sums(np.array([xx, xy, yy, xx * x, xx * y, yy * x, yy * y]) * labeler.items).tolist()
        above, reach = (float(labeler.above), float(annotators.above)), (labeler.reach, annotators.reach)
        own = None if clusters is None else (clusters, x, y)
        return Share(above, reach, best, int(labeler.items.sum()), powers[:3], powers[3:], own)

    def gap(self, rho: float) -> KappaDifference:
        """Return w(rho)."""
        (xx, xy, yy), (xxx, xxy, xyy, yyy) = self.squares, self.cubes
        squares = max(xx - 2 * rho * xy + rho**2 * yy, 0.0)
        cubes = xxx - 3 * rho * xxy + 3 * rho**2 * xyy - rho**3 * yyy
        worst, value = -(self.reach[0] + abs(rho) * self.reach[1]), self.above[0] - rho * self.above[1]
        if self.clustered is not None:
            clusters, x, y = self.clustered
            return clusters.variance(x - rho * y).difference(value, worst, self.best)
        return gap_of(value, squares, cubes, self.n, worst, self.best)

    def defined(self, confidence_level: float) -> bool:
        """Tell whether the lower limit of annotators above random labels is positive.

        It is the slope of the lower limit of w(rho) far below the estimate, which therefore has a zero there.
        """
        gap = gap_of(self.above[1], self.squares[2], self.cubes[3], self.n, -self.reach[1], self.reach[1])
        if self.clustered is not None:
            clusters, _, y = self.clustered
            gap = clusters.variance(y).difference(self.above[1], -self.reach[1], self.reach[1])
        return self.n > 1 and bool(gap.limits(confidence_level)[0] > 0)

    def limits(self, confidence_level: float) -> tuple[float, float]:
        """Return the confidence limits of the share kept."""
        estimate = self.above[0] / self.above[1]

        def end(side: int) -> float:
            def limit(rho: float) -> float:
                return float(self.gap(rho).limits(confidence_level)[side])

            return _zero(limit, estimate, limit(estimate) / self.above[1])

        return end(0), end(1)


def _zero(function: Callable[[float], float], near: float, step: float) -> float:
    """Return where a function is 0, searched from a start by steps that double; infinite if it is nowhere.

    The bracket is narrowed by the Illinois method: secants, with the value halved at an end that stays.
    """
    far = near + step
    at_near, at_far = function(near), function(far)
    while at_near * at_far > 0:
        if abs(step) > _FAR:
            return math.copysign(math.inf, step)
        step *= 2
        near, at_near, far = far, at_far, far + step
        at_far = function(far)
    for _ in range(_MAX_STEPS):
        last, at_last = far, at_far
        far = last - at_last * (last - near) / (at_last - at_near)
        at_far = function(far)
        if at_far == 0 or abs(far - last) <= _NO_STEP * max(1, abs(far)):
            break
        near, at_near = (last, at_last) if at_far * at_last < 0 else (near, at_near / 2)
    return far
