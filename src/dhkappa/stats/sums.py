"""The integer sums over eligible items that the estimators divide. Exact whatever the size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.patterns import Patterns
from dhkappa.stats.sample import Dropped, Sample


@dataclass(slots=True)
class SameSize:
    """Sums over the items that have the same number of votes; arrays run over categories."""

    n_votes: int
    n_items: int
    votes: npt.NDArray[Any]
    """Votes by category: sum_i P_ij."""
    pairs: npt.NDArray[Any]
    """Agreeing pairs by category: sum_i C(P_ij, 2)."""
    plurality: npt.NDArray[Any]
    """Items by the category with most votes, the first of several."""
    on_label: int = 0
    """Pairs that agree on the suggested label."""
    on_plurality: int = 0
    """Pairs that agree on the category with most votes."""
    perfect: int = 0
    """Items on which every vote is the suggested label: d_i = 1."""
    agreeing_squared: int = 0
    """Sum over items of their agreeing pairs, squared."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the items with one number of votes agree: the mean of t_i and its variance between items."""

    n_votes: int
    n_items: int
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over n eligible items, over common denominators; lists run over categories.

    ``vote_unit`` is the least common multiple of the N_i and ``pair_unit`` that of the C(N_i, 2), so that
    C_j = votes[j] / (n vote_unit) and G_j = pairs[j] / (n pair_unit), with g_ij = C(P_ij, 2) / C(N_i, 2).
    """

    n: int
    n_votes: int
    dropped: Dropped
    vote_unit: int
    pair_unit: int
    votes: list[int]
    pairs: list[int]
    labels: list[int]
    """Items by suggested label: n L_j."""
    plurality: list[int]
    """Items by the category with most votes, the first of several."""
    on_label: int
    """Pairs that agree on the suggested label: n pair_unit Rbar."""
    on_plurality: int
    """Pairs that agree on the category with most votes."""
    perfect: int
    """Items on which every vote is the suggested label."""
    spreads: tuple[Spread, ...]


def sums(sample: Sample, labeled: bool = True, weighted: bool = False) -> Sums:
    """Add up the items of a sample; if ``weighted``, each as often as its weight says."""
    m = len(sample.categories)
    patterns = replace(sample.patterns, items=sample.mass) if weighted else sample.patterns
    n_votes = patterns.vote_totals()
    sizes = _distinct(n_votes)
    vote_unit = math.lcm(*sizes)
    pair_unit = math.lcm(*(math.comb(size, 2) for size in sizes))
    votes, pairs, plurality = [0] * m, [0] * m, [0] * m
    on_label = on_plurality = perfect = 0
    spreads = []
    for size in sizes:
        same = _add_up(patterns if len(sizes) == 1 else patterns.take(n_votes == size), size, m, labeled)
        per_vote, per_pair = vote_unit // size, pair_unit // math.comb(size, 2)
        _add_scaled(votes, same.votes, per_vote)
        _add_scaled(pairs, same.pairs, per_pair)
        _add_scaled(plurality, same.plurality, 1)
        on_label += same.on_label * per_pair
        on_plurality += same.on_plurality * per_pair
        perfect += same.perfect
        spreads.append(_spread(same))
    return Sums(
        n=int(patterns.items.sum()),
        n_votes=_dot(patterns.items, n_votes),
        dropped=sample.dropped,
        vote_unit=vote_unit,
        pair_unit=pair_unit,
        votes=votes,
        pairs=pairs,
        labels=_by_category(patterns.suggested, patterns.items, m).tolist() if labeled else [0] * m,
        plurality=plurality,
        on_label=on_label,
        on_plurality=on_plurality,
        perfect=perfect,
        spreads=tuple(spreads),
    )


def _add_up(patterns: Patterns, size: int, m: int, labeled: bool) -> SameSize:
    """Add up patterns that all have ``size`` votes; at least two, so that no row is empty."""
    n_items = int(patterns.items.sum())
    exact = np.int64 if n_items * size**2 < 2**63 else object
    same = SameSize(size, n_items, np.zeros(m, exact), np.zeros(m, exact), np.zeros(m, exact))
    for block in patterns.blocks():
        first, items, length = block.start[:-1], block.items, np.diff(block.start)
        votes = block.votes.astype(np.int64)
        pairs = votes * (votes - 1) // 2
        each = np.repeat(items, length)
        same.votes = same.votes + _by_category(block.code, _times(each, votes), m)
        same.pairs = same.pairs + _by_category(block.code, _times(each, pairs), m)
        agreeing = np.add.reduceat(pairs, first)
        same.agreeing_squared += _dot(items, _times(agreeing, agreeing))
        # Most votes, and of several categories the first: the largest of votes * m - code.
        top = np.maximum.reduceat(votes * m - block.code, first)
        most = -(-top // m)
        same.plurality = same.plurality + _by_category(most * m - top, items, m)
        same.on_plurality += _dot(items, most * (most - 1) // 2)
        if labeled:
            hit = np.flatnonzero(block.code == np.repeat(block.suggested, length))
            same.on_label += _dot(each[hit], pairs[hit])
            same.perfect += int(each[hit[votes[hit] == size]].sum())
    return same


def _spread(same: SameSize) -> Spread:
    """Describe t_i, the share of agreeing pairs, over such items."""
    unit = same.n_items * math.comb(same.n_votes, 2)
    mean = Fraction(sum(same.pairs.tolist()), unit)
    variance = Fraction(same.agreeing_squared, unit * math.comb(same.n_votes, 2)) - mean**2
    return Spread(same.n_votes, same.n_items, float(mean), float(variance))


def _add_scaled(total: list[int], part: npt.NDArray[Any], factor: int) -> None:
    for category in np.flatnonzero(part).tolist():
        total[category] += int(part[category]) * factor


def _distinct(n_votes: npt.NDArray[np.int64]) -> list[int]:
    """Return the different numbers of votes, ascending."""
    if n_votes.size and n_votes.min() == n_votes.max():
        return [int(n_votes[0])]
    found: list[int] = np.unique(n_votes).tolist()
    return found


# Products and sums that stay exact: 64-bit integers where they must fit, Python's own where they might not.


def _top(values: npt.NDArray[Any]) -> int:
    return int(values.max(initial=0))


def _times(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if _top(left) <= 1:  # items, which most patterns have one of where patterns are many
        product: npt.NDArray[Any] = right
    elif _top(left) * _top(right) < 2**63:
        product = left * right
    else:
        product = left.astype(object) * right.astype(object)
    return product


def _dot(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> int:
    if _top(left) * _top(right) * left.size < 2**63:
        return int(left @ right)
    return sum(map(int.__mul__, left.tolist(), right.tolist()))


def _by_category(code: npt.NDArray[Any], weights: npt.NDArray[Any], m: int) -> npt.NDArray[Any]:
    """Sum integer weights by category; sums of doubles are exact below 2^53."""
    if _top(weights) * weights.size < 2**53:
        return np.bincount(code, weights.astype(np.float64), m).astype(np.int64)
    total = np.zeros(m, object)
    np.add.at(total, code, weights.astype(object))
    return total
