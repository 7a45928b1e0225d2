"""Influence of each item on kappa, and the variance of kappa that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats
from dhkappa.core.grouping import Patterns
from dhkappa.stats.clusters import UNKNOWN, ClusterBasis, ClusterSizes, NoBasis
from dhkappa.stats.intervals import LEAST, NO_VARIATION, Basis
from dhkappa.stats.kappa import Estimate, Parts
from dhkappa.stats.sample import ROUNDING as ROUNDING
from dhkappa.stats.sample import Sample, Stratum
from dhkappa.stats.summation import exact_sum
from dhkappa.stats.weights import Weights, agreeing_pairs, pair_sums

_CLOSE = 1e-6  # of 1 - E: below, the plain formula loses half of its digits or more


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of kappa for K eligible patterns and m categories, as floats."""

    sample: Sample  # the eligible patterns, with an entry for each category that has votes
    weight: Array  # (K,) weight of all items of a pattern; item weights have mean 1, so these sum to n
    c: Array  # (entries,) share of the item's votes, P_ij / N_i
    # (entries,) share of the item's pairs that agree on the category, C(P_ij, 2) / C(N_i, 2); with agreement weights
    # the agreement of a vote for the category with another vote, P_ij ((wP)_ij - 1) / (N_i (N_i - 1))
    g: Array
    t: Array  # (K,) share of the item's pairs that agree on any category, sum_j g_ij
    d: Array  # (K,) agreement differential of the item, R_i - S_i (eq. 10, 12); for Fleiss' kappa, t
    C: Array  # (m,) shares of votes (eq. 1, 4)
    L: Array  # (m,) shares of suggested labels (eq. 5); for Fleiss' kappa empty
    D: Any  # the means over items, and kappa, as in the paper
    E: Any
    C_E: Any
    kappa: Any
    w: Array | None = None  # (m, m) agreement weights; None for those of the paper, 1 for equal categories and else 0

    def near(self, values: Array) -> Array:
        """Return (m,) sum_y w_xy values_y, with the same bits on every machine, which BLAS does not guarantee."""
        return values if self.w is None else (self.w * values).sum(axis=1)

    def apart(self, shares: Array) -> Array:
        """Return (m,) sum_y (1 - w_xy) shares_y of shares that sum to 1."""
        return complement(shares) if self.w is None else ((1 - self.w) * shares).sum(axis=1)

    @property
    def patterns(self) -> Patterns:
        """The K patterns."""
        return self.sample.patterns

    @property
    def items(self) -> npt.NDArray[np.int64]:
        """(K,) number of items of each pattern."""
        return self.patterns.items

    @property
    def suggested(self) -> Array:
        """(K,) code of the suggested label."""
        return self.patterns.suggested

    @property
    def n(self) -> int:
        """Number of eligible items."""
        return self.sample.n

    def row_sums(self, entries: Array) -> Array:
        """Add up entries within each pattern."""
        return np.add.reduceat(entries, self.patterns.start[:-1])

    def mean(self, values: Array) -> Any:
        """Return the weighted mean over items of a value per pattern."""
        return (values * self.weight).sum() / self.n


def terms(sample: Sample, parts: Parts, weights: Weights | None = None) -> Terms:
    """Return the terms of a sample; ``parts`` are those of its kappa, which is defined, with the same ``weights``."""
    patterns, total = sample.patterns, parts.sums
    n_votes = patterns.vote_totals()
    votes = patterns.votes.astype(np.int64)
    length = np.diff(patterns.start)
    labels = total.labels if any(total.labels) else []
    w = None
    if weights is None:
        pairs, all_pairs = votes * (votes - 1) // 2, n_votes * (n_votes - 1) // 2
        agreeing, differential = agreeing_pairs(patterns)
        g, t = pairs / np.repeat(all_pairs, length), agreeing / all_pairs
        d = differential / all_pairs if labels else t
    else:
        w, found, unit = weights.matrix(), pair_sums(patterns, weights), weights.unit
        ordered = (n_votes * (n_votes - 1)).astype(found.near.dtype) * unit
        g, t = found.near / np.repeat(ordered, length), found.agreeing / ordered
        d = (2 * found.on_label - unit * found.agreeing) / (ordered * unit) if labels else t
        g, t, d = (values.astype(np.float64) for values in (g, t, d))
    c = votes / np.repeat(n_votes, length)
    whole = total.n * total.vote_unit
    C = np.array([votes / whole for votes in total.votes], np.float64)  # Python integers: rounded once
    L = np.array([number / total.n for number in labels], np.float64)
    D, E, C_E, kappa = map(float, (parts.D, parts.E, parts.C_E, parts.kappa or 0))
    return Terms(sample, pattern_weights(sample), c, g, t, d, C, L, D, E, C_E, kappa, w)


def pattern_weights(sample: Sample) -> Floats:
    """Return (K,) weight of all items of a pattern; they sum to n."""
    if not sample.weighted:
        return sample.patterns.items.astype(np.float64)
    n, masses = sample.n, sample.mass.tolist()
    whole = sum(masses)
    return np.array([mass * n / whole for mass in masses])  # Python integers: rounded once


def influence(terms: Terms) -> Array:
    """Return (K,) phi: the derivative of kappa as an item of a pattern gains weight. Its mean over items is 0.

    With ``eps_i = 2 (sum_j h_j c_ij + k_{l_i} - E - C_E)``, the influence on E (see ``chance_slopes``),
    ``phi_i = ((d_i - D) - (1 - kappa) eps_i) / (1 - E)``. NaN if 1 - E is too small for a float.
    """
    E, code = terms.E, terms.patterns.code
    if 1 - E < _CLOSE:  # as when one item outweighs all others
        chance = chance_terms(terms)
        votes = terms.row_sums(chance.votes[code] * terms.c)
        return chance.influence(terms.kappa, votes, terms.suggested, 1 - terms.d)
    if len(terms.L):
        h, k = chance_slopes(terms)
        eps = 2 * (terms.row_sums(h[code] * terms.c) + k[terms.suggested] - E - terms.C_E)
    else:  # Fleiss' kappa: E = sum_j C_j (wC)_j
        eps = 2 * (terms.row_sums(terms.near(terms.C)[code] * terms.c) - E)
    phi: Array = ((terms.d - terms.D) - (1 - terms.kappa) * eps) / (1 - E)
    return phi


def chance_slopes(terms: Terms) -> tuple[Array, Array]:
    """Return (m,) h and k, half the slopes of E by votes and by labels.

    ``E = sum_l L_l (2 k_l - sum_x C_x (wC)_x)`` with ``k = w (C wC)``, which is C^2 without weights, and
    ``2 h = wC (2 wL - 1) + w (C (2 wL - 1))``, which is 2 C (2 L - 1).
    """
    C, wC, lean = terms.C, terms.near(terms.C), 2 * terms.near(terms.L) - 1
    return (wC * lean + terms.near(C * lean)) / 2, terms.near(C * wC)


def category_chance(terms: Terms) -> Array:
    """Return (m,) 1 - E_j of items with label j, as sums without cancellation; E = sum_j L_j E_j.

    ``1 - E_j = sum_x C_x ((1 - w) C)_x + 2 ((1 - w) (C wC))_j``: the votes differ, or agree on another category than j,
    which counts twice.
    """
    C, agreeing = terms.C, terms.C * terms.near(terms.C)
    if terms.w is not None:
        short: Array = (C * terms.apart(C)).sum() + 2 * ((1 - terms.w) * agreeing).sum(axis=1)
    else:
        short = (C * other_shares(C)).sum() + 2 * other_shares(agreeing)
    return short


def other_shares(shares: Array) -> Array:
    """Return (m,) the sum of all other entries, without cancellation if one entry dominates."""
    others: Array = shares.sum() - shares
    top = int(shares.argmax())
    others[top] = np.delete(shares, top).sum()
    return others


class Chance(NamedTuple):
    """The terms of ``eps = 2 (middle - sum_j votes_j c_ij - labels_l)``."""

    not_by_chance: float  # 1 - E; 0 if it is too small for a float
    middle: float  # 2 - E - C_E, or 1 - E for Fleiss' kappa
    votes: Array  # (m,) 1 - h_j, or 1 - (wC)_j; see ``chance_slopes``
    labels: Array  # (m,) 1 - k_j, or 0

    @np.errstate(over="ignore", invalid="ignore")
    def influence(self, kappa: float, votes: Array, suggested: Array, one_minus_d: Any) -> Array:
        """Return phi of items from their sums over votes; NaN if 1 - E is too small for a float."""
        eps, one_minus_E = 2 * (self.middle - votes - self.labels[suggested]), self.not_by_chance or math.nan
        phi: Array = (1 - kappa) * (1 - eps / one_minus_E) - one_minus_d / one_minus_E
        return phi


def chance_terms(terms: Terms) -> Chance:
    """Return the terms of chance as distances from 1, which keep their digits if E is close to 1."""
    C, L = terms.C, terms.L
    others = terms.apart(C)
    if not len(L):
        whole = exact_sum(C * others)
        return Chance(whole, whole, others, np.zeros(len(C)))
    unlabeled = terms.apart(L)
    if terms.w is None:
        labels = others * (1 + C)
        whole = exact_sum(L * labels + C * C * unlabeled)
        return Chance(whole, whole + exact_sum(L * labels), others + 2 * C * unlabeled, labels)
    wC, same = terms.near(C), exact_sum(C * others)
    labels = same + ((1 - terms.w) * (C * wC)).sum(axis=1)
    whole = same + 2 * exact_sum(C * wC * unlabeled)
    return Chance(whole, whole + exact_sum(L * labels), others + wC * unlabeled + terms.near(C * unlabeled), labels)


def complement(shares: Array) -> Array:
    """Return 1 - shares, (m,), of shares that sum to 1; of the largest as the sum of the others, to keep its digits."""
    found: Array = 1 - shares
    if len(shares):
        largest = int(shares.argmax())
        others = shares.copy()
        others[largest] *= 0
        found[largest] = exact_sum(others)
    return found


class Extremes(NamedTuple):
    """Least and greatest influence of an item whose votes are all equal, by its label."""

    label: npt.NDArray[np.int64]  # (J,) codes of the categories that occur among votes or labels
    low: Array  # (J,)
    high: Array  # (J,)


@np.errstate(over="ignore", invalid="ignore")  # if E is 1 by rounding only
def extremes(terms: Terms) -> Extremes:
    """Return the extreme influence of items whose votes are all equal.

    Votes range over the categories that occur. They enter by ``C_v (2 L_v - 1)`` only, so for each label it is enough
    to look at votes for the label itself and for the other categories with the largest and the smallest such value.
    With agreement weights all votes are tried.
    """
    chance, label = chance_terms(terms), np.flatnonzero(terms.C + terms.L > 0)
    if terms.w is not None:
        one_minus_d = 2 * (1 - terms.w[np.ix_(label, label)])
        phi = chance.influence(terms.kappa, chance.votes[label], label[:, None], one_minus_d)
        return Extremes(label, phi.min(axis=1), phi.max(axis=1))
    ascending = label[np.argsort(chance.votes[label], kind="stable")]
    others = [np.where(label == ends[0], ends[-1], ends[0]) for ends in (ascending[:2], ascending[::-1][:2])]
    votes = np.array([label, *others])
    phi = chance.influence(terms.kappa, chance.votes[votes], label, np.where(votes == label, 0, 2))
    return Extremes(label, phi.min(axis=0), phi.max(axis=0))


def sum_of_squares(phi: Floats, items: npt.NDArray[np.int64]) -> float:
    """Return sum_i phi_i^2 over items, the same in any order; 0 if only rounding is left."""
    total = exact_sum(phi * phi * items)
    return 0.0 if total <= ROUNDING**2 * int(items.sum()) else total


class Variance(NamedTuple):
    """The variance of an estimate: ``value``, and ``infinite_pool`` for a sample of one."""

    value: float
    infinite_pool: float


def variance(terms: Terms, phi: Array) -> Variance:
    """Return the variance of an estimate with influence values phi, (K,).

    With ``z_i = w_i phi_i / W`` it is ``sum_h (1 - f_h) n_h/(n_h - 1) sum_i (z_i - mean_h z)^2``, where stratum h has
    n_h items, the share f_h of its pool. Without strata, weights and pool that is ``sum phi^2 / (n (n - 1))``.
    """
    sample, items = terms.sample, terms.items
    z = terms.weight / items * phi if sample.weighted else phi
    H = len(sample.strata)
    if H > 1:
        middle = np.bincount(sample.stratum, z * items, H) / np.maximum([part.n for part in sample.strata], 1)
        by_pattern = (z - middle[sample.stratum]) ** 2 * items
    else:  # the mean of z is 0
        by_pattern = z * z * items
    if sample.powers is not None:  # add the variance within patterns
        by_pattern = by_pattern + phi * phi * np.maximum(sample.powers[0] - terms.weight**2 / items, 0)
    squares = np.bincount(sample.stratum, by_pattern, H).tolist() if H > 1 else [exact_sum(by_pattern)]
    value = infinite_pool = 0.0
    for part, square in zip(sample.strata, squares, strict=True):
        if part.n > 1 and not square <= ROUNDING**2 * part.n:  # NaN stays
            infinite_pool = infinite_pool + square * part.n / (part.n - 1)
            value = value + float(1 - part.fraction) * square * part.n / (part.n - 1)
    return Variance(value / terms.n**2, infinite_pool / terms.n**2)


def kappa_variance(estimate: Estimate) -> Variance:
    """Return the variance of a kappa that is defined."""
    assert estimate.parts is not None
    known = terms(estimate.sample.by_weight().merged(), estimate.parts, estimate.weights)
    return variance(known, influence(known))


def basis(estimate: Estimate) -> Basis | None:
    """Return what the standard error and intervals of an estimate need; None if the sample shows no variation."""
    if estimate.parts is None or estimate.exact is None or estimate.n_items < 2:
        return None
    sample, weights = estimate.sample, estimate.weights
    known = terms(sample if sample.patterns.items.max() > 1 else sample.merged(), estimate.parts, weights)
    if not len(known.L) and weights is None and known.E != 1:
        return fleiss_basis(known)
    far = extremes(known) if len(known.L) else None
    bottom = LEAST if weights is None or known.E == 1 else weights.lower_bound(known.E)
    return basis_of(known, influence(known), far, bottom)


def kappa_basis(estimate: Estimate) -> Basis | ClusterBasis | NoBasis:
    """Return what the standard error and intervals of an estimate need, also with clusters; or why there are none."""
    if estimate.sample.clustered and estimate.metric != "dh":
        return NoBasis(UNKNOWN)
    independent = basis(estimate)
    if independent is None or estimate.parts is None:
        return NoBasis(NO_VARIATION)
    if not estimate.sample.clustered:
        return independent
    known = terms(estimate.sample, estimate.parts)
    return ClusterBasis(independent, ClusterSizes.of(estimate.sample).variance(influence(known)))


def fleiss_basis(terms: Terms) -> Basis | None:
    """Return the basis of Fleiss' kappa; with weights, strata or a pool without what the beta interval needs.

    Kappa is at least -1 / (N - 1), where N is the least number of votes on an item: the agreement of an item is at
    least ``(N sum_j c_j^2 - 1) / (N - 1)``, and the mean of ``sum_j c_j^2`` is at least ``sum_j C_j^2``.
    """
    N, voted = int(terms.patterns.vote_totals().min()), np.flatnonzero(terms.C)
    each, more = divmod(N, voted.size)  # the votes of the item that agrees least
    agreeing = more * (each + 1) * each + (voted.size - more) * each * (each - 1)
    far = None if terms.sample.designed else fleiss_extremes(terms, N, voted)
    found = basis_of(terms, influence(terms), far, -1 / (N - 1))
    return None if found is None else replace(found, span=1 - agreeing / (N * (N - 1)))


def fleiss_extremes(terms: Terms, N: int, voted: Array) -> Extremes:
    """Return the extreme influence of items with N votes on Fleiss' kappa; the greatest is that of N equal votes."""
    chance, none = chance_terms(terms), np.zeros(1, np.int64)
    P = worst_votes(N, (1 - terms.kappa) * (N - 1) * terms.C[voted])
    votes = (P / N * chance.votes[voted]).sum()
    low = chance.influence(terms.kappa, votes, none, 1 - (P * (P - 1)).sum() / (N * (N - 1)))
    return Extremes(none, low, chance.influence(terms.kappa, chance.votes[voted], none, 0.0).max(keepdims=True))


def worst_votes(N: int, pull: Floats) -> Floats:
    """Return the N votes P that minimize ``sum_j P_j (P_j - 1) / 2 - pull_j P_j``.

    The p-th vote for category j adds ``p - 1 - pull_j``, which grows with p: the N smallest of these numbers are the
    minimum. All those up to a level are taken at once, and the others one at a time.
    """

    def up_to(level: float) -> Floats:
        votes: Floats = np.maximum(np.floor(level + pull) + 1, 0)
        return votes

    low, high = -float(pull.max()) - 1, float(N)
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if up_to(middle).sum() <= N else (low, middle)
    votes = up_to(low)
    while votes.sum() < N:
        votes[np.argmin(votes - pull)] += 1
    return votes


def basis_of(terms: Terms, phi: Array, extremes: Extremes | None, bottom: float = LEAST) -> Basis | None:
    """Return the basis of a kappa with influence values phi; ``extremes`` is None if no interval needs them."""
    n, strata = terms.n, terms.sample.strata
    if n < 2 or terms.E == 1:  # E is 1 only by rounding: one item outweighs all others
        return None
    found = variance(terms, phi)
    if found.infinite_pool == 0 and terms.kappa != 1 and any(part.fraction != 1 for part in strata):
        return None
    unseen = unseen_items(terms, phi)
    least, greatest = (Unseen(math.nan, math.nan),) * 2 if extremes is None else unseen.ends(extremes)
    ends = least.phi, greatest.phi, least.share, greatest.share
    squares, df = n * (n - 1) * found.value, max(n - len(strata), 1)
    return Basis(terms.kappa, terms.E, n, squares, *ends, unseen.most, df, bottom)


class Unseen(NamedTuple):
    """An item that the sample may have missed: its influence on kappa, and its share of the whole weight."""

    phi: float
    share: float


class UnseenItems(NamedTuple):
    """Kinds of items that the sample may have missed, by stratum and label; other labels have the largest share."""

    label: npt.NDArray[np.int64]  # (J,) code of the label
    share: Floats  # (J,) share of the whole weight that one such item might have had
    middle: Floats  # (J,) mean influence of the items of its stratum, which it would replace
    most: float  # the largest share, also that of labels which no item has

    def ends(self, extremes: Extremes) -> tuple[Unseen, Unseen]:
        """Return the items that would lower and raise kappa the most, by influence times share."""
        never = np.setdiff1d(extremes.label, self.label) if self.label.size else extremes.label
        label = np.append(self.label, never)
        share = np.append(self.share, np.full(never.size, self.most))
        middle = np.append(self.middle, np.zeros(never.size))
        place = np.searchsorted(extremes.label, label)

        def end(values: Array, sign: int) -> Unseen:
            move = values[place] - middle
            move[np.abs(move) < ROUNDING] = 0
            first = int(np.lexsort((sign * move, sign * move * share))[0])
            return Unseen(float(move[first]), float(share[first]))

        return end(extremes.low, 1), end(extremes.high, -1)


def unseen_items(terms: Terms, phi: Array) -> UnseenItems:
    """Return the kinds of items that the sample may have missed.

    Among items A with shares p_i of the weight, one more might have had ``share(A) = sum p^3 / sum p^2``: an item whose
    Poisson counts have the variance and the skewness of the weighted sum. With equal weights that is 1/n. Of a stratum
    drawn from a pool, ``f / -log(1 - f)`` is still unseen. The most is that of the stratum where it is largest; for a
    label in a stratum it is the geometric mean of the most and of share(items of the stratum with this label).
    """
    sample, n, m = terms.sample, terms.n, len(terms.C)
    unseen = unseen_parts(sample.strata)
    if not sample.weighted and len(sample.strata) == 1:
        none = np.zeros(0)
        return UnseenItems(none.astype(np.int64), none, none, float(unseen[0]) / n)
    items = terms.items.astype(np.float64)
    p = terms.weight / (n * items)
    H, stratum = len(sample.strata), sample.stratum
    powers = [p * items, p * p * items, p * p * p * items]
    if sample.powers is not None:
        powers[1:] = sample.powers[0] / n**2, sample.powers[1] / n**3
    mass, squares, cubes = (np.bincount(stratum, values, H) for values in powers)
    most = float((unseen * _ratio(cubes, squares)).max())
    cells, place = np.unique(stratum.astype(np.int64) * m + terms.suggested, return_inverse=True)
    share = unseen[cells // m] * _ratio(np.bincount(place, powers[2]), np.bincount(place, powers[1]))
    middle = _ratio(np.bincount(stratum, powers[0] * phi, H), mass) if H > 1 else np.zeros(1)
    return UnseenItems(cells % m, np.sqrt(share * most), middle[cells // m], most)


def unseen_parts(strata: Sequence[Stratum]) -> Floats:
    """Return the unseen part of each stratum, on the scale of 1/n: ``f / -log(1 - f)``."""
    fractions = (float(part.fraction) for part in strata)
    return np.array([1 - f if f in (0, 1) else f / -math.log1p(-f) for f in fractions])


def _ratio(top: Array, bottom: Array) -> Floats:
    """Return top / bottom; top where bottom is 0."""
    ratio: Floats = top / np.where(bottom > 0, bottom, 1)
    return ratio
