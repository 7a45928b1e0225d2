"""Kappa with agreement weights for ordered categories, an extension of the paper's kappa.

The weight w_xy in [0, 1] says how much votes for categories x and y agree. Of a pair of votes (x, y) on an item with
suggested label l, ``w_xy (w_xl + w_yl) / 2`` counts as agreement on the label and the rest of ``w_xy`` as agreement on
another label, so the differential of the pair is ``w_xy (w_xl + w_yl - 1)``. Identity weights give the paper's kappa.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core.grouping import BLOCK, Patterns
from dhkappa.errors import DataError, counted, invalid, shown
from dhkappa.resources import need
from dhkappa.stats.influence import Extremes, Numbers, Terms, basis_of, terms
from dhkappa.stats.intervals import LEAST
from dhkappa.stats.kappa import Estimate, Parts, above_chance, estimate_dh
from dhkappa.stats.sample import Sample

_POWERS = {"linear": 1, "quadratic": 2}
_ROUNDING = 1e-12
_BYTES_PER_WEIGHT = 64  # as an integer, a float and a Python integer
_PAIRS_PER_BLOCK = 16 * BLOCK
PairSums: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Agreement weights as exact fractions: w = scaled / unit."""

    scaled: npt.NDArray[Any]  # (m, m) integers, int64 if the unit is small, else Python integers
    unit: int
    named: bool = False  # linear or quadratic, for which sqrt(1 - w) is a metric

    def matrix(self) -> Numbers:
        """Return (m, m) the weights as floats."""
        matrix: Numbers = (self.scaled / np.full(self.scaled.shape, self.unit, self.scaled.dtype)).astype(np.float64)
        return matrix


def agreement_weights(weights: Any, m: int) -> Weights:
    """Return the weights of m categories: ``"linear"``, ``"quadratic"`` or an m x m matrix.

    Linear is ``1 - |x - y| / (m - 1)``, quadratic ``1 - ((x - y) / (m - 1))^2``. A matrix is symmetric with 1 on the
    diagonal and entries from 0 to 1.
    """
    need(m * m * _BYTES_PER_WEIGHT, f"the weights of each two of {counted(m, 'category')}")
    if not isinstance(weights, str):
        return _from_matrix(weights, m)
    if weights not in _POWERS:
        raise _invalid(f"Unknown weights {weights!r}.")
    power, place = _POWERS[weights], np.arange(m)
    unit = int(max(m - 1, 1) ** power)
    return Weights(unit - np.abs(place[:, None] - place) ** power, unit, named=True)


def estimate_weighted(sample: Sample, weights: Any) -> Estimate:
    """Estimate kappa with agreement weights; the categories of the sample are in order."""
    checked = agreement_weights(weights, len(sample.categories))
    plain = estimate_dh(sample)
    if plain.parts is None or plain.exact is None:
        return replace(plain, metric="weighted")
    merged = sample.merged()
    pairs = pair_sums(merged.patterns, checked)
    parts = weighted_parts(merged, pairs, plain.parts, checked)
    fleiss = above_chance(parts.R + parts.S, parts.C_E + parts.C_F)
    if parts.kappa is None:
        reason = "Every category that occurs has weight 1 with every other."
        return Estimate("weighted", sample, plain.sums, parts, fleiss=fleiss, reason=reason)
    known = weighted_terms(merged, pairs, parts, checked)
    phi, far = weighted_influence(known, checked.matrix())
    basis = basis_of(known, phi, far, _lower_bound(checked, known.E))
    return Estimate("weighted", sample, plain.sums, parts, parts.kappa, fleiss=fleiss, weighted_basis=basis)


def weighted_terms(sample: Sample, pairs: PairSums, parts: Parts, weights: Weights) -> Terms:
    """Return the terms of the weighted kappa with these parts; ``t`` and ``g`` are those of the unweighted kappa."""
    (on_label, agreeing), unit = pairs, weights.unit
    votes = sample.patterns.vote_totals().astype(on_label.dtype)
    d = (2 * on_label - unit * agreeing) / (votes * (votes - 1) * unit**2)
    return replace(terms(sample, parts), d=d.astype(np.float64))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # E is 1 after rounding
def weighted_influence(terms: Terms, w: Numbers) -> tuple[Numbers, Extremes]:
    """Return (K,) the influence of an item of each pattern on kappa, and that of items with unanimous votes.

    ``terms`` are those of the weighted kappa. By chance ``E = sum_x C_x (wC)_x (2 (wL)_x - 1)``. An item with vote
    shares c and label l moves E by ``eps = 2 (sum_x h_x c_x + k_l - E - C_E)`` with ``k = w(C wC)`` and
    ``2 h = wC (2 wL - 1) + w(C (2 wL - 1))``, and kappa by ``phi = ((d - D) - (1 - kappa) eps) / (1 - E)``.
    """
    C, D, E, C_E, kappa = terms.C, terms.D, terms.E, terms.C_E, terms.kappa
    wC, lean = _times(w, C), 2 * _times(w, terms.L) - 1
    h = (wC * lean + _times(w, C * lean)) / 2
    k = _times(w, C * wC)
    eps = 2 * (terms.row_sums(h[terms.patterns.code] * terms.c) + k[terms.suggested] - E - C_E)
    phi = ((terms.d - D) - (1 - kappa) * eps) / (1 - E)
    occurs = np.flatnonzero(C + terms.L > 0)
    alike = (2 * w - 1 - D - 2 * (1 - kappa) * (h[None, :] + k[:, None] - E - C_E)) / (1 - E)
    alike = alike[np.ix_(occurs, occurs)]
    return phi, Extremes(occurs, alike.min(axis=1), alike.max(axis=1))


def _lower_bound(weights: Weights, E: float) -> float:
    """Return a value that kappa with these weights never falls below.

    1 - 2/(1 - E) always is one, as D >= -1. If sqrt(1 - w) is a metric, the bound of the unweighted kappa holds in
    every case found by a search over several hundred starts and up to 14 categories.
    """
    if weights.named:
        return LEAST
    distance = np.sqrt(1 - weights.matrix())
    slack = min(float((distance[:, [y]] + distance[[y], :] - distance).min()) for y in range(len(distance)))
    return LEAST if slack >= -_ROUNDING else min(LEAST, 1 - 2 / (1 - E))


def pair_sums(patterns: Patterns, weights: Weights) -> PairSums:
    """Return (K,) sums over ordered pairs of votes on one item: unit^2 w_xy (w_xl + w_yl) / 2, and unit w_xy."""
    unit = weights.unit
    most = int(patterns.vote_totals().max())
    fits = weights.scaled.dtype != object and 2 * (most * unit) ** 2 < 2**63
    integer: Any = np.int64 if fits else object
    scaled = weights.scaled.astype(integer)
    longest = int(np.diff(patterns.start).max())
    on_label, agreeing = [], []
    for block in patterns.blocks(min(BLOCK, max(1, _PAIRS_PER_BLOCK // longest**2))):
        first, length = block.start[:-1], np.diff(block.start)
        votes = block.votes.astype(integer)
        near = votes * scaled[block.code, np.repeat(block.suggested, length)]  # P_x w_xl
        # u_x = (wP)_x for the categories x with votes: each entry of a row times each entry of the row.
        partners = np.repeat(length, length)
        ends = np.cumsum(partners)
        other = np.arange(ends[-1]) - np.repeat(ends - partners - np.repeat(first, length), partners)
        each = scaled[np.repeat(block.code, partners), block.code[other]] * votes[other]
        u = np.add.reduceat(each, ends - partners)
        # u_x - 1: a vote makes no pair with itself.
        on_label.append(np.add.reduceat(near * (u - unit), first))
        agreeing.append(np.add.reduceat(votes * (u - unit), first))
    return np.concatenate(on_label), np.concatenate(agreeing)


def weighted_parts(sample: Sample, pairs: PairSums, parts: Parts, weights: Weights) -> Parts:
    """Return R, S, C_E and C_F with these weights, as exact fractions."""
    total, unit = parts.sums, weights.unit
    R = _mean(sample, pairs[0]) / unit**2
    S = _mean(sample, pairs[1]) / unit - R
    votes, labels = np.array(total.votes, object), np.array(total.labels, object)
    scaled = weights.scaled.astype(object)
    chance = votes * (scaled @ votes)  # C_x (wC)_x whole^2 unit
    whole = total.n * total.vote_unit
    C_E = Fraction((chance * (scaled @ labels)).sum(), (whole * unit) ** 2 * total.n)
    C_F = Fraction(chance.sum(), whole**2 * unit) - C_E
    return Parts(R, S, C_E, C_F, parts.categories, total)


def _mean(sample: Sample, sums: npt.NDArray[Any]) -> Fraction:
    """Return the mean over items of sums over ordered pairs of votes, each divided by the number of pairs."""
    n_votes, n = sample.patterns.vote_totals(), int(sample.mass.sum())
    if int(np.abs(sums).max(initial=0)) * n >= 2**63:
        sums = sums.astype(object)
    order = np.argsort(n_votes, kind="stable")
    sizes, first = np.unique(n_votes[order], return_index=True)
    by_size = np.add.reduceat((sums * sample.mass)[order], first)
    means = (Fraction(int(added), size * (size - 1)) for added, size in zip(by_size, sizes.tolist(), strict=True))
    return sum(means, Fraction(0)) / n


def _times(matrix: Numbers, vector: Numbers) -> Numbers:
    """Return matrix @ vector with the same bits on every machine, which BLAS does not guarantee."""
    product: Numbers = (matrix * vector).sum(axis=1)
    return product


def _from_matrix(weights: Any, m: int) -> Weights:
    """Check a matrix of weights and bring it to a common denominator."""
    try:
        weights = weights.to_numpy() if hasattr(weights, "to_numpy") else weights  # iterating a dataframe yields names
        rows = [list(row) for row in (weights.tolist() if hasattr(weights, "tolist") else weights)]
    except TypeError:
        rows = [[]]
    if len(rows) != m or any(len(row) != m for row in rows):
        size = f"{len(rows)} rows of {shown(sorted({len(row) for row in rows}) or [0])} weights"
        raise _invalid(f"Weights must have a row and a column for each of the {m} categories: got {size}.")
    table = [[_fraction(value) for value in row] for row in rows]
    for x, y in np.ndindex(m, m):
        if not 0 <= table[x][y] <= 1 or table[x][y] != table[y][x] or (x == y and table[x][y] != 1):
            entry = f"{shown([rows[x][y]])} in row {x + 1}, column {y + 1}"
            raise _invalid(f"Weights must be from 0 to 1 and symmetric, with 1 on the diagonal: got {entry}.")
    unit = math.lcm(*{weight.denominator for row in table for weight in row})
    scaled = [[weight.numerator * (unit // weight.denominator) for weight in row] for row in table]
    return Weights(np.array(scaled, np.int64 if unit < 2**31 else object).reshape(m, m), unit)


def _fraction(value: Any) -> Fraction:
    """Return a number of any type as a fraction, -1 for other values."""
    try:
        value = value.item() if isinstance(value, (np.integer, np.bool_)) else value
        return Fraction(*value.as_integer_ratio())
    except (AttributeError, TypeError, ValueError, OverflowError):
        return Fraction(-1)


def _invalid(message: str) -> DataError:
    hint = "$weights takes 'linear', 'quadratic' or a symmetric matrix in the order of $categories."
    return invalid("weights", message, hint=hint)
