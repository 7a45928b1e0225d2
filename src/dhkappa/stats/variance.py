"""Design: what the way items were drawn does to the variance of kappa: weights, strata, and a pool with an end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.stats.influence import Extremes, is_rounding
from dhkappa.stats.intervals import LEAST, Basis
from dhkappa.stats.sample import Stratum
from dhkappa.stats.terms import Numbers, Terms

_ROUNDING = 1e-12  # influence below this is 0 but for rounding


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of an estimate: as drawn, and as it would be from a pool without end."""

    value: Any
    endless: Any


def variance(terms: Terms, phi: Numbers, over_votes: Numbers | None = None) -> Variance:
    """Return the variance of an estimate whose influence values, (K,), are phi.

    With ``z_i = w_i phi_i / W`` it is ``sum_h (1 - f_h) n_h/(n_h - 1) sum_i (z_i - mean_h z)^2``, where stratum h has
    n_h items, the share f_h of its pool. Without strata, weights and pool that is ``sum phi^2 / (n (n - 1))``. A panel
    that is drawn adds ``f_h sum_i (w_i / W)^2 v_i``, where v_i is the jackknife variance of phi_i over its votes, (K,)
    ``over_votes``; by default that of the kappa of the terms.

    Examples
    --------
    >>> from dhkappa import dh_kappa
    >>> from dhkappa.stats.influence import influence
    >>> from dhkappa.stats.terms import terms
    >>> kappa = dh_kappa([[1, 1], [2, 2], [1, 2]], [1, 2, 2])
    >>> known = terms(kappa.sample, kappa.parts, exact=True)
    >>> variance(known, influence(known)).value
    Fraction(28, 243)
    """
    strata, place, items, n = terms.sample.strata, terms.sample.stratum, terms.items, terms.n
    each = terms.weight / items if terms.sample.weighted else np.ones(len(items), phi.dtype)
    z = each * phi
    sizes = [part.n for part in strata]
    if len(strata) > 1:
        middle = _by_stratum(terms, z * items) / np.maximum(sizes, 1)
        squares = _by_stratum(terms, (z - middle[place]) ** 2 * items)
    else:  # the mean of z is 0
        squares = np.array([_total(z * z * items)], phi.dtype)
    endless = drawn = 0 * terms.D
    for part, square in zip(strata, squares, strict=True):
        if part.n > 1 and not is_rounding(square, part.n):
            endless = endless + square * part.n / (part.n - 1)
            drawn = drawn + _free(part.fraction, terms) * square * part.n / (part.n - 1)
    if terms.sample.other_votes:
        v = vote_variance(terms, leave_one_vote(terms)) if over_votes is None else over_votes
        for part, square in zip(strata, _by_stratum(terms, each**2 * items * v), strict=True):
            if not is_rounding(square, part.n):
                drawn = drawn + (1 - _free(part.fraction, terms)) * square
    return Variance(drawn / n**2, endless / n**2)


def basis_of(
    terms: Terms, phi: Numbers, kappa: float, E: float, extremes: Extremes | None, bottom: float = LEAST
) -> Basis | None:
    """Return what intervals are made of; None where the sample cannot show how far kappa would vary.

    ``extremes`` are those of this kappa; None where no interval needs them.
    """
    n, whole = terms.n, all(part.fraction == 1 for part in terms.sample.strata)
    if n < 2 or E == 1:  # E is 1 only by rounding: one item outweighs all the others
        return None
    found = variance(terms, phi)
    if found.endless == 0 and kappa != 1 and not whole:
        return None
    unseen = unseen_items(terms, phi)
    least, greatest = (NOBODY, NOBODY) if extremes is None else unseen.ends(extremes)
    return Basis(
        kappa,
        E,
        n,
        n * (n - 1) * float(found.value),
        least.phi,
        greatest.phi,
        least.share,
        greatest.share,
        unseen.most,
        max(n - len(terms.sample.strata), 1),
        bottom,
    )


@dataclass(frozen=True, slots=True)
class Unseen:
    """An item that the sample may not have shown yet: how far it moves kappa, and its share of the whole weight."""

    phi: float
    share: float


NOBODY = Unseen(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class UnseenItems:
    """The kinds of items, by stratum and label, of which one more might have turned up.

    Attributes
    ----------
    label : (J,) code of the label
    share : (J,) share of the whole weight that it might have had
    middle : (J,) mean influence of the items of its stratum, whose place it would take
    most : the largest share of any, and that of a label that no item has
    """

    label: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]
    middle: npt.NDArray[np.float64]
    most: float

    def ends(self, extremes: Extremes) -> tuple[Unseen, Unseen]:
        """Return the items that would move kappa down and up the most, by influence times share."""
        never = np.setdiff1d(extremes.label, self.label)
        label = np.append(self.label, never)
        share = np.append(self.share, np.full(never.size, self.most))
        middle = np.append(self.middle, np.zeros(never.size))
        place = np.searchsorted(extremes.label, label)
        found = []
        for values, sign in ((extremes.low, 1), (extremes.high, -1)):
            move = values.astype(np.float64)[place] - middle
            move[np.abs(move) < _ROUNDING] = 0
            first = int(np.lexsort((sign * move, sign * move * share))[0])
            found.append(Unseen(float(move[first]), float(share[first])))
        return found[0], found[1]


def unseen_items(terms: Terms, phi: Numbers) -> UnseenItems:
    """Return what one more item might have been.

    Among items A with shares p_i of the weight, it might have had ``share(A) = sum p^3 / sum p^2``: an item whose
    Poisson counts have the variance and the skewness of the weighted sum. With equal weights that is 1/n. Of a stratum
    drawn from a pool, ``f / -log(1 - f)`` is still unseen. The most is that of the stratum where it is largest; for a
    label in a stratum it is the geometric mean of the most and of share(items of the stratum with this label).
    """
    sample, n, m = terms.sample, terms.n, len(terms.C)
    unseen = unseen_parts(sample.strata)
    if not sample.weighted and len(sample.strata) == 1:
        most = float(unseen[0]) / n
        label = np.unique(terms.suggested).astype(np.int64)
        return UnseenItems(label, np.full(label.size, most), np.zeros(label.size), most)
    items = terms.items.astype(np.float64)
    p = terms.weight.astype(np.float64) / (n * items)
    H, stratum = len(sample.strata), sample.stratum
    powers = [p**power * items for power in (1, 2, 3)]
    mass, squares, cubes = (np.bincount(stratum, values, H) for values in powers)
    most = float((unseen * _over(cubes, squares)).max())
    cells, place = np.unique(stratum.astype(np.int64) * m + terms.suggested, return_inverse=True)
    share = unseen[cells // m] * _over(np.bincount(place, powers[2]), np.bincount(place, powers[1]))
    middle = _over(np.bincount(stratum, powers[0] * phi.astype(np.float64), H), mass) if H > 1 else np.zeros(1)
    return UnseenItems(cells % m, np.sqrt(share * most), middle[cells // m], most)


def unseen_parts(strata: Sequence[Stratum]) -> npt.NDArray[np.float64]:
    """Return what of each stratum is unseen, on the scale of 1/n: ``f / -log(1 - f)``."""
    fractions = (float(part.fraction) for part in strata)
    return np.array([1 - f if f in (0, 1) else f / -math.log1p(-f) for f in fractions])


def _over(cubes: npt.NDArray[Any], squares: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    share: npt.NDArray[np.float64] = cubes / np.where(squares > 0, squares, 1)
    return share


def vote_variance(terms: Terms, psi: Numbers) -> Numbers:
    """Return (K,) v_i, the jackknife variance of an item's influence over its votes.

    ``v_i = (N_i - 1)/N_i sum_a (psi_{i,-a} - mean)^2``; (entries,) psi is that without a vote for the entry's category.
    """
    n_votes, length = terms.patterns.vote_totals(), np.diff(terms.patterns.start)
    votes = terms.patterns.votes.astype(np.int64)
    middle = np.repeat(terms.row_sums(psi * votes) / n_votes, length)
    over: Numbers = terms.row_sums(votes * (psi - middle) ** 2) * (n_votes - 1) / n_votes
    return over


def leave_one_vote(terms: Terms) -> Numbers:
    """Return (entries,) psi of an item without one vote for the entry's category; the item has three votes or more.

    ``psi_i = (d_i - 2 (1 - kappa) sum_j C_j (2 L_j - 1) c_ij)/(1 - E)`` is the part of phi_i that votes decide.
    """
    pull = -2 * (1 - terms.kappa) * terms.C * (2 * terms.L - 1) / (1 - terms.E)
    return without_a_vote(terms, signs(terms) / (1 - terms.E), pull[terms.patterns.code])


def without_a_vote(terms: Terms, on_pairs: Numbers, on_votes: Numbers) -> Numbers:
    """Return (entries,) ``sum_j (on_pairs_ij g_ij + on_votes_ij c_ij)`` of an item, less a vote for the category."""
    patterns, n_votes = terms.patterns, terms.patterns.vote_totals()
    length = np.diff(patterns.start)
    votes, total = patterns.votes.astype(np.int64), np.repeat(n_votes, length)
    pairs = np.repeat(terms.row_sums(on_pairs * terms.g), length) * (total * (total - 1) // 2)
    shares = np.repeat(terms.row_sums(on_votes * terms.c), length) * total
    # P - 1 pairs of this category are gone.
    left: Numbers = (pairs - on_pairs * (votes - 1)) / ((total - 1) * (total - 2) // 2)
    return left + (shares - on_votes) / (total - 1)


def signs(terms: Terms) -> npt.NDArray[np.int64]:
    """Return (entries,) 1 for the suggested label and -1 for others: d_i is the sum of sign times g_ij."""
    label = np.repeat(terms.patterns.suggested, np.diff(terms.patterns.start))
    return np.where(terms.patterns.code == label, 1, -1)


def _free(fraction: Any, terms: Terms) -> Any:
    """Return 1 - f, in the numbers of the terms."""
    return 1 - fraction if terms.C.dtype == object else float(1 - fraction)


def _by_stratum(terms: Terms, values: Numbers) -> Numbers:
    """Add up values by stratum."""
    total = np.zeros(len(terms.sample.strata), values.dtype)
    np.add.at(total, terms.sample.stratum, values)
    return total


def _total(values: Numbers) -> Any:
    """Add up; floats to the same bits in any order."""
    return values.sum() if values.dtype == object else math.fsum(values.tolist())
