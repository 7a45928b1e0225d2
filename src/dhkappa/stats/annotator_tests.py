"""Tests of many annotators at once: who differs from the rest, and who is not shown to know anything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats
from dhkappa.stats.annotator_votes import AnnotatorVotes
from dhkappa.stats.summation import totals

SHOWN = 1.645  # z of an annotator whose votes are shown to follow the items, one-sided 5%
FALSE_ALARMS = 0.05  # expected share among the annotators who are flagged
_ABLE = 4.0  # z of a typical annotator on items that can show it
_TYPICAL = 3  # annotators from whom the typical one is estimated
_MEDIAN = 0.6744897501960817  # of the absolute value of a standard normal variable
_MEDIAN_VARIANCE = np.pi / 2  # of the median of many values, relative to that of their mean
_STEPS = 60  # of the bisection
_NORMAL = 1e-4  # skewness below which the gamma distribution is normal

Mask = npt.NDArray[np.bool_]


def adjusted(pvalues: Floats) -> Floats:
    """Return the p-values adjusted by Benjamini and Hochberg (1995), NaN for NaN.

    Examples
    --------
    >>> adjusted(np.array([0.01, 0.04, np.nan, 0.03])).round(4).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    found = np.full(pvalues.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    ratios = pvalues[order] * known.size / np.arange(1, known.size + 1)
    found[order] = np.minimum(np.minimum.accumulate(ratios[::-1])[::-1], 1)
    return found


def skewed_tails(z: Floats, skew: Floats) -> tuple[Floats, Floats]:
    """Return P(Z <= z) and P(Z >= z) of standardized gamma variables with some skewness (Pearson type III)."""
    from dhkappa.stats.special import gammainc, gammaincc, ndtr

    bent = np.abs(skew) > _NORMAL
    g = np.where(bent, skew, 1)
    shape = 4 / g**2
    at = np.maximum(shape + 2 * z / g, 0)
    below, above = gammainc(shape, at), gammaincc(shape, at)
    low, high = np.where(g > 0, below, above), np.where(g > 0, above, below)
    return np.where(bent, low, ndtr(z)), np.where(bent, high, ndtr(-z))


def typical(values: Floats, errors: Floats) -> tuple[float, float]:
    """Return center and spread of the true values of most annotators, from values with standard errors.

    The center is the median with weights ``1 / sqrt(error^2 + spread^2)``. With the spread, half of the values are
    within .674 standard deviations of the center; it is 0 if they are without it. Annotators far from the rest, fewer
    than half of all, have little effect.
    """

    def middle(variance: float) -> tuple[float, float]:
        weight = 1 / np.sqrt(errors**2 + variance)
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(weight[order])
        center = float(values[order[np.searchsorted(upto, upto[-1] / 2)]])
        return center, float(np.median(np.abs(values - center) * weight))

    center, half = middle(0.0)
    if half <= _MEDIAN:
        return center, 0.0
    low, high = 0.0, float(np.ptp(values)) ** 2 / _MEDIAN**2
    for _ in range(_STEPS):
        variance = (low + high) / 2
        center, half = middle(variance)
        low, high = (variance, high) if half > _MEDIAN else (low, variance)
    return center, float(np.sqrt(high))


class Funnel:
    """How far the votes of A annotators are from the mean of the votes on the same items, with three votes or more.

    If a is like the others, each vote of an item is equally likely to be that of a. The sum of ``x_ia - xbar_i`` then
    has mean 0, and variance and third moment are sums of the mean square and mean cube over the votes of each item.
    """

    def __init__(self, votes: AnnotatorVotes, x: Floats, size: int) -> None:
        patterns = votes.sample.patterns
        n_votes, first, row = patterns.vote_totals(), patterns.start[:-1], patterns.row()
        each = patterns.votes / n_votes[row]

        def means(values: Floats) -> Floats:
            found: Floats = np.add.reduceat(each * values, first)
            return found

        apart = x - means(x)[row]
        split = (n_votes > 2) & (np.diff(patterns.start) > 1)
        used = np.flatnonzero(n_votes[votes.row] > 2)
        who, at, items = votes.who[used], votes.row[used], votes.items[used]

        def by_annotator(values: Array) -> Floats:
            found: Floats = np.bincount(who, items * values, size).astype(np.float64)
            return found

        self.items = by_annotator(np.ones(used.size))
        n = np.where(self.items, self.items, np.nan)
        self.deviation = by_annotator(apart[votes.entry[used]]) / n
        self.error = np.sqrt(by_annotator(np.where(split, means(apart**2), 0)[at])) / n
        self.cube = by_annotator(np.where(split, means(apart**3), 0)[at]) / n**3
        self.least = np.exp(-by_annotator(np.where(split, np.log(n_votes), 0)[at]))

    def test(self, tested: Mask, rest: Mask) -> Floats:
        """Return the two-sided p-values of the tested; the rest show how much annotators usually differ."""
        tested = tested & (self.error > 0)
        found, rest = np.full(tested.shape, np.nan), rest & tested
        if not rest.any():
            return found
        scale = np.hypot(self.error[tested], typical(self.deviation[rest], self.error[rest])[1])
        tails = skewed_tails(self.deviation[tested] / scale, self.cube[tested] / scale**3)
        found[tested] = np.minimum(2 * np.maximum(np.minimum(*tails), self.least[tested]), 1)
        return found


class Screen:
    """Whether the votes of A annotators follow the items at all, compared with their own votes in random order.

    With ``s_ij`` the share of the other votes on item i for j, the statistic is ``T = sum_i s_i(Y_i)``. In random order
    its mean is ``n sum_j L_j m_j``, and its variance ``n^2 / (n - 1) (sum_j L_j S_jj - sum_jk L_j L_k S_jk)``, with L
    the shares of the annotator's votes, m and S the means and the covariances of s over the annotator's items.
    """

    def __init__(self, votes: AnnotatorVotes, size: int, least: int) -> None:
        self.items = totals(votes.items, votes.who, size)
        self.z, self.knows, self.error = (np.full(size, np.nan) for _ in range(3))
        kept = votes.take((self.items >= least)[votes.who])
        for who, own in kept.blocks():
            for name, values in zip(("z", "knows", "error"), _screened(own, who.size), strict=True):
                getattr(self, name)[who] = values

    def shown(self) -> Mask:
        """Return who is shown to know something."""
        return self.z > SHOWN

    def doubtful(self, agreement: float) -> Mask:
        """Return who is not shown to know anything on items on which a typical annotator would be."""
        return (agreement >= _ABLE * self.error) & (self.z <= SHOWN)

    def test(self, agreement: float) -> Floats:
        """Return the one-sided p-values of knowing less than a typical annotator would on the same items."""
        from dhkappa.stats.special import ndtr

        tested = ~np.isnan(self.knows)
        found, able = np.full(tested.shape, np.nan), tested & self.shown() & (agreement >= _ABLE * self.error)
        base = able if able.sum() >= _TYPICAL else tested
        if base.any():
            center, spread = typical(self.knows[base], self.error[base])
            own = self.error[tested] ** 2 + spread**2
            of_center = _MEDIAN_VARIANCE * float(np.mean(self.error[base] ** 2 + spread**2)) / base.sum()
            found[tested] = ndtr((self.knows[tested] - center) / np.sqrt(own + of_center))
        return found


def _screened(votes: AnnotatorVotes, size: int) -> tuple[Floats, Floats, Floats]:
    """Return z, how much annotators know (0 is nothing, like kappa) and the standard error of a typical annotator."""
    who, others, items = votes.who, votes.others(), votes.items
    length = np.diff(others.start)
    vote = np.repeat(np.arange(who.size), length)
    s = others.votes / (votes.n_votes - 1)[vote]
    where = votes.annotator_categories([(who[vote], others.code), (who, votes.own)], size)
    entry, own = where.of
    k, n = where.code.size, np.bincount(who, items, size)
    L = np.bincount(own, items, k) / n[where.who]
    m, square = (np.bincount(entry, items[vote] * values, k) / n[where.who] for values in (s, s * s))
    S = square - m * m

    def by_annotator(values: Floats) -> Floats:
        found: Floats = np.bincount(where.who, values, size).astype(np.float64)
        return found

    on_own = np.add.reduceat(s * L[entry], others.start[:-1])  # sum_j L_j s_ij, one row per vote
    mean = by_annotator(L * m)
    both = np.bincount(who, items * (on_own - mean[who]) ** 2, size) / n
    agree = np.bincount(who, items * _shares_of_own(votes), size) / n
    variance = (by_annotator(L * S) - both) / (n - 1)  # of T / n
    spread, error = 1 - by_annotator(m * m), np.sqrt(np.maximum(by_annotator(m * S), 0) / (n - 1))
    varied = variance > 1e-12 * np.maximum(by_annotator(L * S), 1e-12)
    # An annotator whose votes are all the same has no variance, and knows nothing: z is 0.
    z = np.where(varied, (agree - mean) / np.sqrt(np.where(varied, variance, 1)), 0.0)
    able = (spread > 0) & (error > 1e-9)  # else the votes of the others are the same on all items
    with np.errstate(divide="ignore", invalid="ignore"):
        found = z, (agree - mean) / spread, error / spread
    return tuple(np.where(able, values, np.nan) for values in found)  # type: ignore[return-value]


def _shares_of_own(votes: AnnotatorVotes) -> Floats:
    """Return (T,) the share of the other votes on the item that equal the vote."""
    found: Floats = (votes.sample.patterns.votes[votes.entry].astype(np.int64) - 1) / (votes.n_votes - 1)
    return found
