"""Ordered categories: near votes agree in part. An extension of the paper's kappa by a matrix of weights.

Weights w_xy in [0, 1] say how far categories x and y are the same. Of a pair of votes (x, y) on an item with label l,
``w_xy (w_xl + w_yl) / 2`` counts as agreement on the label and the rest of ``w_xy`` as agreement on another, so that
the differential of the pair is ``w_xy (w_xl + w_yl - 1)``. With 1 on the diagonal and 0 elsewhere this is the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.patterns import BLOCK, Patterns
from dhkappa.errors import DataError, counted, shown
from dhkappa.memory import need
from dhkappa.stats.influence import Extremes
from dhkappa.stats.intervals import LEAST, Basis, flawless
from dhkappa.stats.kappa import Parts
from dhkappa.stats.sample import Sample
from dhkappa.stats.terms import Numbers, Terms, divided

_POWERS = {"linear": 1, "quadratic": 2}
_ROUNDING = 1e-12
_CELL = 64  # bytes for a weight, as an integer, a float and a number of Python's own
_PAIRS = 16 * BLOCK  # pairs of entries worked on at once


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """How far categories are the same, exactly: w = scaled / unit.

    Attributes
    ----------
    scaled : (m, m) integers, 64-bit where the unit is small and Python's own where it is not
    unit : what 1 is
    named : whether they are linear or quadratic, where sqrt(1 - w) is a distance
    """

    scaled: npt.NDArray[Any]
    unit: int
    named: bool = False

    def matrix(self, exact: bool = False) -> Numbers:
        """Return (m, m) the weights as floats, or as Fractions if ``exact``."""
        return divided(self.scaled, np.full(self.scaled.shape, self.unit, self.scaled.dtype), exact)


@dataclass(frozen=True, slots=True, eq=False)
class OrdinalEstimate:
    """Kappa with ordinal weights, over K eligible patterns.

    Attributes
    ----------
    parts : R, S, C_E and C_F with these weights, and D, E and kappa from them, as exact fractions
    fleiss : Fleiss' kappa with these weights, exact: agreement R + S against C_E + C_F; None where the latter is 1
    D, E, kappa : those of ``parts`` in the numbers of the terms; floats are the exact values rounded once.
        Where E is 1 kappa is undefined, NaN or None: every category that occurs is the same as every other
    d : (K,) agreement differential of an item
    phi : (K,) influence of an item on kappa, of mean 0 over items; undefined where kappa is
    far : how far items with all votes alike could move kappa; None where kappa is undefined
    bottom : a value that kappa never falls below
    """

    parts: Parts
    fleiss: Fraction | None
    D: Any
    E: Any
    kappa: Any
    d: Numbers
    phi: Numbers
    far: Extremes | None = None
    bottom: float = LEAST


def weight_matrix(ordinal: Any, m: int, exact: bool = False) -> Numbers:
    """Return (m, m) ordinal weights as floats, or as Fractions if ``exact``.

    Parameters
    ----------
    ordinal
        ``"linear"`` for ``1 - |x - y| / (m - 1)``, ``"quadratic"`` for ``1 - ((x - y) / (m - 1))^2``, or an m x m
        matrix: symmetric, 1 on the diagonal, every entry from 0 to 1.
    m
        The number of categories.
    exact
        Whether to return Fractions; a float in a matrix is then the fraction that it holds in binary.

    Examples
    --------
    >>> weight_matrix("linear", 3)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    return weights_of(ordinal, m).matrix(exact)


def weights_of(ordinal: Any, m: int) -> Weights:
    """Check ordinal weights, given as to ``weight_matrix``, and return them over a common unit."""
    need(m * m * _CELL, f"ordinal weights, one for each two of {counted(m, 'category')}")
    if not isinstance(ordinal, str):
        return _own_weights(ordinal, m)
    if ordinal not in _POWERS:
        raise DataError(f"ordinal must be {_choices()} or a matrix of weights: got {ordinal!r}.")
    power, place = _POWERS[ordinal], np.arange(m)
    unit = int(max(m - 1, 1) ** power)
    return Weights(unit - np.abs(place[:, None] - place) ** power, unit, named=True)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # where E is 1 by rounding only
def ordinal_estimate(terms: Terms, parts: Parts, weights: Weights) -> OrdinalEstimate:
    """Estimate kappa with ordinal weights, in the numbers of the terms.

    By chance the differential is ``E = sum_x C_x (wC)_x (2 (wL)_x - 1)``, of which ``C_E = sum_x C_x (wC)_x (wL)_x`` is
    agreement on the label. An item with shares c and label l pulls E by ``eps = 2 (sum_x h_x c_x + k_l - E - C_E)``,
    where ``k = w(C wC)`` and ``2 h = wC (2 wL - 1) + w(C (2 wL - 1))``, products by category; kappa it pulls as
    without weights, by ``phi = ((d - D) - (1 - kappa) eps) / (1 - E)``.

    Parameters
    ----------
    terms, parts
        Those of the plain kappa, which is defined.
    weights
        For as many categories as the terms have.
    """
    exact = terms.C.dtype == object
    sums = _pair_sums(terms.patterns, weights)
    own = _weighted_parts(terms.sample, sums, parts, weights)
    votes = terms.patterns.vote_totals().astype(sums.on_label.dtype)
    unit = weights.unit
    d = divided(2 * sums.on_label - unit * sums.agreeing, votes * (votes - 1) * unit**2, exact)
    agreeing = Parts(own.R + own.S, Fraction(0), own.C_E + own.C_F, Fraction(0), own._categories, own._sums)
    D, E, C_E = (part if exact else float(part) for part in (own.D, own.E, own.C_E))
    if own.kappa is None:
        undefined = None if exact else math.nan
        phi = np.full(len(d), undefined, d.dtype)
        return OrdinalEstimate(own, agreeing.kappa, D, E, undefined, d, phi)
    kappa = own.kappa if exact else float(own.kappa)
    w, C = weights.matrix(exact), terms.C
    wC, lean = _times(w, C), 2 * _times(w, terms.L) - 1
    h = (wC * lean + _times(w, C * lean)) / 2
    k = _times(w, C * wC)
    eps = 2 * (terms.row_sums(h[terms.patterns.code] * terms.c) + k[terms.suggested] - E - C_E)
    phi = ((d - D) - (1 - kappa) * eps) / (1 - E)
    occurs = np.flatnonzero(C + terms.L > 0)
    alike = (2 * w - 1 - D - 2 * (1 - kappa) * (h[None, :] + k[:, None] - E - C_E)) / (1 - E)
    alike = alike[np.ix_(occurs, occurs)]
    far = Extremes(occurs, alike.min(axis=1), alike.max(axis=1))
    return OrdinalEstimate(own, agreeing.kappa, D, E, kappa, d, phi, far, _bottom(weights, float(own.E)))


def _bottom(weights: Weights, E: float) -> float:
    """Return a value that kappa with these weights never falls below.

    D is -1 at the least, so 1 - 2/(1 - E) always is one. Where ``sqrt(1 - w)`` is a distance, kappa was never found
    below -1 in searches over several hundred starts and up to 14 categories, and the bound of the plain kappa serves.
    """
    if weights.named:
        return LEAST
    apart = np.sqrt(1 - weights.matrix())
    through = min(float((apart[:, [y]] + apart[[y], :] - apart).min()) for y in range(len(apart)))
    return LEAST if through >= -_ROUNDING else min(LEAST, 1 - 2 / (1 - E))


def log_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return limits symmetric on log(1 - kappa), by the t distribution; the upper one is at most 1.

    No sample claims more than a flawless one, as for the plain kappa: no item costs D more than 2 with weights either.
    """
    from scipy.special import stdtrit

    cap = flawless(basis.unseen, basis.E, alpha)
    if basis.kappa == 1:
        return cap, 1.0
    short = 1 - basis.kappa
    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se / short
    ratio = math.exp(min(half, 700.0))  # beyond, a float has no room
    return min(1 - short * ratio, cap), 1 - short / ratio


@dataclass(frozen=True, slots=True, eq=False)
class _PairSums:
    """Sums over ordered pairs of votes on one item of a pattern, times the unit as often as named.

    Attributes
    ----------
    on_label : (K,) unit^2 times the agreement on the label, w_xy (w_xl + w_yl) / 2
    agreeing : (K,) unit times the agreement, w_xy
    """

    on_label: npt.NDArray[Any]
    agreeing: npt.NDArray[Any]


def _pair_sums(patterns: Patterns, weights: Weights) -> _PairSums:
    """Add up weights over pairs of votes, in exact integers."""
    unit = weights.unit
    most = int(patterns.vote_totals().max())
    fits = weights.scaled.dtype != object and 2 * (most * unit) ** 2 < 2**63
    integer: Any = np.int64 if fits else object
    scaled = weights.scaled.astype(integer)
    longest = int(np.diff(patterns.start).max())
    on_label, agreeing = [], []
    for block in patterns.blocks(min(BLOCK, max(1, _PAIRS // longest**2))):
        first, length = block.start[:-1], np.diff(block.start)
        votes = block.votes.astype(integer)
        near = votes * scaled[block.code, np.repeat(block.suggested, length)]  # P_x w_xl
        # u_x = (wP)_x, where x has votes: each entry of a row against each entry of the row.
        partners = np.repeat(length, length)
        ends = np.cumsum(partners)
        other = np.arange(ends[-1]) - np.repeat(ends - partners - np.repeat(first, length), partners)
        each = scaled[np.repeat(block.code, partners), block.code[other]] * votes[other]
        u = np.add.reduceat(each, ends - partners)
        # A vote makes no pair with itself.
        on_label.append(np.add.reduceat(near * (u - unit), first))
        agreeing.append(np.add.reduceat(votes * (u - unit), first))
    return _PairSums(np.concatenate(on_label), np.concatenate(agreeing))


def _weighted_parts(sample: Sample, sums: _PairSums, parts: Parts, weights: Weights) -> Parts:
    """Return the parts of kappa with these weights, exactly."""
    patterns, mass = sample.patterns, sample.mass
    total, unit = parts._sums, weights.unit
    R = _mean(patterns, sums.on_label, mass) / unit**2
    votes, labels = np.array(total.votes, object), np.array(total.labels, object)
    scaled = weights.scaled.astype(object)
    pairs = votes * (scaled @ votes)  # C_x (wC)_x, over a whole of whole^2 unit
    whole = total.n * total.vote_unit
    C_E = Fraction((pairs * (scaled @ labels)).sum(), (whole * unit) ** 2 * total.n)
    return Parts(
        R=R,
        S=_mean(patterns, sums.agreeing, mass) / unit - R,
        C_E=C_E,
        C_F=Fraction(pairs.sum(), whole**2 * unit) - C_E,
        _categories=parts._categories,
        _sums=total,
    )


def _mean(patterns: Patterns, sums: npt.NDArray[Any], mass: npt.NDArray[Any]) -> Fraction:
    """Return the mean over items of sums over ordered pairs of votes, each divided by the number of pairs."""
    n_votes = patterns.vote_totals()
    n = int(mass.sum())
    if int(np.abs(sums).max(initial=0)) * n >= 2**63:
        sums = sums.astype(object)
    order = np.argsort(n_votes, kind="stable")
    sizes, first = np.unique(n_votes[order], return_index=True)
    by_size = np.add.reduceat((sums * mass)[order], first)
    means = (Fraction(int(added), size * (size - 1)) for added, size in zip(by_size, sizes.tolist(), strict=True))
    return sum(means, Fraction(0)) / n


def _times(matrix: Numbers, vector: Numbers) -> Numbers:
    """Return a product with the same bits on every machine, which BLAS does not promise."""
    product: Numbers = (matrix * vector).sum(axis=1)
    return product


def _own_weights(ordinal: Any, m: int) -> Weights:
    """Check a person's own matrix."""
    rows = _rows(ordinal)
    if len(rows) != m or any(len(row) != m for row in rows):
        raise DataError(
            f"ordinal must be a matrix with a row and a column for each of the {m} categories, in order: "
            f"got {counted(len(rows), 'row')} of {shown(sorted({len(row) for row in rows}) or [0])} weights."
        )
    table = [[_weight(value, x, y) for y, value in enumerate(row)] for x, row in enumerate(rows)]
    for x in range(m):
        if table[x][x] != 1:
            raise DataError(
                f"ordinal must have 1 on its diagonal, as a category is the same as itself: "
                f"got {shown([rows[x][x]])} in row {x + 1}."
            )
        for y in range(x):
            if table[x][y] != table[y][x]:
                raise DataError(
                    f"ordinal must be symmetric: got {shown([rows[x][y]])} in row {x + 1}, column {y + 1} and "
                    f"{shown([rows[y][x]])} in row {y + 1}, column {x + 1}; give both the same weight."
                )
    unit = math.lcm(*{weight.denominator for row in table for weight in row})
    scaled = [[weight.numerator * (unit // weight.denominator) for weight in row] for row in table]
    return Weights(np.array(scaled, np.int64 if unit < 2**31 else object).reshape(m, m), unit)


def _rows(ordinal: Any) -> list[list[Any]]:
    """Take a matrix apart into rows of Python's own numbers."""
    try:
        if hasattr(ordinal, "__array__"):
            ordinal = np.asarray(ordinal).tolist()
        rows = list(ordinal)  # which may be there only once
        if any(isinstance(row, (str, bytes)) for row in rows):
            raise TypeError
        return [list(row) for row in rows]
    except TypeError:
        raise DataError(f"ordinal must be {_choices()} or a matrix of weights: got {shown([ordinal])}.") from None


def _weight(value: Any, x: int, y: int) -> Fraction:
    """Check one weight."""
    try:
        if isinstance(value, str):
            raise TypeError
        if isinstance(value, np.floating):  # also a long one, which no number of Python's own holds
            weight = Fraction(*value.as_integer_ratio())
        else:
            weight = Fraction(value.item() if isinstance(value, np.generic) else value)
    except (TypeError, ValueError, OverflowError):
        weight = Fraction(-1)
    if not 0 <= weight <= 1:
        raise DataError(
            f"ordinal must hold weights from 0 to 1, 1 for the same category and 0 for one as far as can be: "
            f"got {shown([value])} in row {x + 1}, column {y + 1}."
        )
    return weight


def _choices() -> str:
    return ", ".join(f'"{name}"' for name in _POWERS)
