"""Agreement weights for ordered categories, and exact sums over pairs of votes with them.

The weight w_xy in [0, 1] says how much votes for categories x and y agree. Of a pair of votes (x, y) on an item with
suggested label l, ``w_xy (w_xl + w_yl) / 2`` counts as agreement on the label and the rest of ``w_xy`` as agreement on
another label, so the differential of the pair is ``w_xy (w_xl + w_yl - 1)``. Identity weights give the paper's kappa.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Integers
from dhkappa.core.grouping import BLOCK, Patterns
from dhkappa.errors import DataError, counted, invalid, shown
from dhkappa.resources import need
from dhkappa.stats.intervals import LEAST

_POWERS = {"linear": 1, "quadratic": 2}
_ROUNDING = 1e-12
_BYTES_PER_WEIGHT = 64  # as an integer, a float and a Python integer
_PAIRS_PER_BLOCK = 16 * BLOCK


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Agreement weights as exact fractions: w = scaled / unit."""

    scaled: Array  # (m, m) integers, int64 if the unit is small, else Python integers
    unit: int
    named: bool = False  # linear or quadratic, for which sqrt(1 - w) is a metric

    def matrix(self) -> Array:
        """Return (m, m) the weights as floats."""
        matrix: Array = (self.scaled / np.full(self.scaled.shape, self.unit, self.scaled.dtype)).astype(np.float64)
        return matrix

    def lower_bound(self, E: float) -> float:
        """Return a value that kappa with these weights never falls below.

        1 - 2/(1 - E) always is one, as D >= -1. If sqrt(1 - w) is a metric, the bound of the unweighted kappa holds in
        every case found by a search over several hundred starts and up to 14 categories.
        """
        if self.named:
            return LEAST
        distance = np.sqrt(1 - self.matrix())
        slack = min(float((distance[:, [y]] + distance[[y], :] - distance).min()) for y in range(len(distance)))
        return LEAST if slack >= -_ROUNDING else min(LEAST, 1 - 2 / (1 - E))

    def integers(self, bound: int) -> Array:
        """Return (m, m) the scaled weights in integers of a type that holds this bound."""
        fits = self.scaled.dtype != object and bound < 2**62
        return self.scaled.astype(np.int64 if fits else object)

    def chance(self, votes: Array, labels: Array) -> tuple[Array, Array]:
        """Return (G,) ``unit sum_x C_x (wC)_x`` and ``unit^2 sum_l L_l k_l`` of (G, m) integers C and L, exactly.

        ``k = w (C wC)``, so the first is the agreement of two votes by chance and the second C_E (eq. 6).
        """
        bound = int(votes.sum(axis=1).max(initial=0)) ** 2 * self.unit**2 * int(labels.sum(axis=1).max(initial=1))
        scaled = self.integers(bound)
        votes, labels = votes.astype(scaled.dtype), labels.astype(scaled.dtype)
        agreeing = votes * (votes @ scaled)
        return agreeing.sum(axis=1), (agreeing * (labels @ scaled)).sum(axis=1)


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


class PairSums(NamedTuple):
    """Sums over ordered pairs of votes on one item of each of K patterns, as integers."""

    near: Array  # (entries,) unit P_x ((wP)_x - 1), by the category of the first vote
    agreeing: Array  # (K,) unit w_xy
    on_label: Array  # (K,) unit^2 w_xy (w_xl + w_yl) / 2, with l the suggested label

    def differential(self, unit: int) -> Array:
        """Return (K,) unit^2 times the differential of the pairs of votes, each two votes once."""
        found: Array = self.on_label - unit * self.agreeing // 2
        return found


def pair_sums(patterns: Patterns, weights: Weights) -> PairSums:
    """Return the sums over pairs of votes on an item of each pattern."""
    votes, scaled = _integers(patterns, weights)
    # (wP)_x - 1: a vote makes no pair with itself
    near = votes * (row_products(patterns, scaled, votes) - weights.unit)
    on_label = label_sums(patterns, scaled, near, patterns.suggested)
    return PairSums(near, np.add.reduceat(near, patterns.start[:-1]), on_label)


class VotePairs(NamedTuple):
    """Differentials of pairs of votes on one item of each of K patterns, each two votes once, in units of unit^2."""

    all: Array  # (K,) of all pairs, with the suggested label
    with_one: Array  # (entries,) of the pairs with one vote for the category
    on_own: Array  # (entries,) of the pairs without that vote, with its category as the label


def agreeing_pairs(patterns: Patterns) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (K,) the pairs of votes on an item that agree, and those on its label less those on another."""
    votes, first = patterns.votes.astype(np.int64), patterns.start[:-1]
    pairs = votes * (votes - 1) // 2
    agreeing = np.add.reduceat(pairs, first)
    pairs[patterns.code != np.repeat(patterns.suggested, np.diff(patterns.start))] = 0
    return agreeing, 2 * np.add.reduceat(pairs, first) - agreeing


def vote_pairs(patterns: Patterns, weights: Weights | None) -> VotePairs:
    """Return what the votes on an item contribute one by one, also without weights."""
    if weights is None:
        agreeing, differential = agreeing_pairs(patterns)
        row, alike = patterns.row(), patterns.votes.astype(np.int64) - 1
        with_one = np.where(patterns.code == patterns.suggested[row], alike, -alike)
        return VotePairs(differential, with_one, alike * alike - agreeing[row])
    (votes, scaled), unit, length = _integers(patterns, weights), weights.unit, np.diff(patterns.start)
    pairs = pair_sums(patterns, weights)
    to_label = scaled[patterns.code, np.repeat(patterns.suggested, length)]
    # Of a vote for x: sum_y w_xy (w_xl + w_yl - 1) over the other votes y.
    near, both = (row_products(patterns, scaled, values) for values in (votes, votes * to_label))
    with_one = (to_label - unit) * (near - unit) + both - unit * to_label
    # With the label x: all pairs less those with one vote for x, sum_y w_xy w_xy.
    every = row_products(patterns, scaled, pairs.near) - unit * np.repeat(pairs.agreeing // 2, length)
    on_own = every - (row_products(patterns, scaled * scaled, votes) - unit**2)
    return VotePairs(pairs.differential(unit), with_one, on_own)


def label_sums(patterns: Patterns, scaled: Array, near: Array, labels: Integers) -> Array:
    """Return (K,) ``sum_x near_x w_xl``: the pairs of votes that agree on one label for each pattern."""
    weight = scaled[patterns.code, np.repeat(labels, np.diff(patterns.start))].astype(near.dtype)
    sums: Array = np.add.reduceat(near * weight, patterns.start[:-1])
    return sums


def row_products(patterns: Patterns, scaled: Array, values: Array) -> Array:
    """Return (entries,) ``sum_y w_xy values_y`` over the entries y of the same row."""
    code = patterns.code
    found = [np.add.reduceat(scaled[code[x], code[y]] * values[y], first) for x, y, first in row_pairs(patterns)]
    return np.concatenate(found) if found else values[:0]


def row_pairs(patterns: Patterns) -> Iterator[tuple[Array, Array, Array]]:
    """Yield every two entries x and y of the same row, in blocks, by x, and the index of the first pair of each x."""
    done = 0
    longest = int(np.diff(patterns.start).max(initial=1))
    for block in patterns.blocks(min(BLOCK, max(1, _PAIRS_PER_BLOCK // longest**2))):
        first, length = block.start[:-1], np.diff(block.start)
        partners = np.repeat(length, length)
        ends = np.cumsum(partners)
        other = np.arange(ends[-1]) - np.repeat(ends - partners - np.repeat(first, length), partners)
        yield done + np.repeat(np.arange(block.code.size), partners), done + other, ends - partners
        done += block.code.size


def _integers(patterns: Patterns, weights: Weights) -> tuple[Array, Array]:
    """Return votes and scaled weights in integers that hold every sum over the pairs of votes on an item."""
    most = int(patterns.vote_totals().max(initial=0))
    scaled = weights.integers(2 * (most * weights.unit) ** 2)
    return patterns.votes.astype(scaled.dtype), scaled


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
