"""DiPietro-Hazari kappa (eq. 4-13 of the paper) and Fleiss' kappa (eq. 1-3), as exact fractions.

A sample is added up to integers over common denominators (``sums``), which the equations divide once.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Integers, Label
from dhkappa.core.grouping import Grid, Patterns
from dhkappa.errors import counted
from dhkappa.stats.sample import Sample
from dhkappa.stats.summation import integer_type
from dhkappa.stats.weights import Weights, pair_sums

ONE_CATEGORY = "Every vote and every suggested label is the same category."
Ratio: TypeAlias = tuple[Array, Array]
"""Numerators and denominators."""

_CACHE = 1 << 18  # votes compared at once


@dataclass(frozen=True, slots=True)
class Parts:
    """The terms of kappa, in the paper's notation, as exact fractions.

    For Fleiss' kappa, L is empty, S and C_F are 0, R and C_E are those of eq. 2-3.
    """

    R: Fraction
    """Share of annotator pairs that agree on the suggested label (eq. 10), a mean over items."""
    S: Fraction
    """Share of annotator pairs that agree on another label (eq. 12)."""
    C_E: Fraction
    """R expected by chance (eq. 6)."""
    C_F: Fraction
    """S expected by chance (eq. 9)."""
    categories: tuple[Label, ...]
    """The categories, in order."""
    sums: Sums
    """The sums over items, weighted, that the fractions were computed from."""

    @property
    def C(self) -> dict[Label, Fraction]:
        """Share of votes for each category (eq. 1, 4), a mean over items."""
        whole = self.sums.n * self.sums.vote_unit
        return {label: Fraction(votes, whole) for label, votes in zip(self.categories, self.sums.votes, strict=True)}

    @property
    def L(self) -> dict[Label, Fraction]:
        """Share of suggested labels in each category (eq. 5)."""
        if not any(self.sums.labels):
            return {}
        return {label: Fraction(k, self.sums.n) for label, k in zip(self.categories, self.sums.labels, strict=True)}

    @property
    def D(self) -> Fraction:
        """The agreement differential, R - S."""
        return self.R - self.S

    @property
    def E(self) -> Fraction:
        """The differential expected by chance, C_E - C_F."""
        return self.C_E - self.C_F

    @property
    def kappa(self) -> Fraction | None:
        """(D - E) / (1 - E), eq. 13; None if E is 1."""
        return above_chance(self.D, self.E)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; C and L are lists of [category, share]."""
        found: dict[str, Any] = {name: float(getattr(self, name)) for name in ("R", "S", "C_E", "C_F", "D", "E")}
        return found | {name: [[label, float(x)] for label, x in getattr(self, name).items()] for name in ("C", "L")}

    def __repr__(self) -> str:
        letters = ("R", "S", "C_E", "C_F", "D", "E")
        return f"Parts({', '.join(f'{letter}={float(getattr(self, letter)):.4f}' for letter in letters)})"


@dataclass(frozen=True, slots=True)
class ExactBaselines:
    """Kappa of random labels and of majority labels on the same votes, as fractions; None if undefined."""

    random: Fraction | None = None
    majority: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """A kappa of a sample, exact; None where a value is undefined. Baselines are computed when first used."""

    metric: str  # "dh" or "fleiss"; "weighted" or "weighted-fleiss" with agreement weights
    sample: Sample  # the eligible items
    sums: Sums  # sums over items, each counted once whatever its sample weight
    parts: Parts | None = None  # the terms of kappa; None if no item is eligible
    exact: Fraction | None = None  # kappa
    fleiss: Fraction | None = None  # Fleiss' kappa of the same items
    reason: str | None = None  # why kappa is undefined; None if it is defined
    weights: Weights | None = None  # agreement weights of ordered categories
    own_coverage: float | None = None  # if the labeler labeled more items than the eligible ones

    @property
    def value(self) -> float:
        """Kappa as a float, rounded once; NaN if undefined."""
        return rounded(self.exact)

    @property
    def n_items(self) -> int:
        """Number of eligible items."""
        return self.sums.n

    @property
    def coverage(self) -> float:
        """Share of the items with two votes or more that have a suggested label; NaN if there are none."""
        if self.own_coverage is not None:
            return self.own_coverage
        items = self.n_items + self.sample.excluded.no_label
        return self.n_items / items if items else math.nan

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self.sample.categories

    @cached_property
    def baselines(self) -> ExactBaselines:
        """Kappa of random labels and of majority labels; only of the metric "dh"."""
        return ExactBaselines() if self.metric != "dh" or self.parts is None else dh_baselines(self.sample, self.parts)


def kappa_estimate(sample: Sample, weights: Weights | None = None) -> Estimate:
    """Estimate kappa, with agreement weights if there are any."""
    if weights is None:
        return estimate_dh(sample)
    from dhkappa.stats.weighted import estimate_weighted

    return estimate_weighted(sample, weights)


def fleiss_estimate(sample: Sample, weights: Weights | None = None) -> Estimate:
    """Estimate Fleiss' kappa, with agreement weights if there are any."""
    if weights is None:
        return estimate_fleiss(sample)
    from dhkappa.stats.weighted import estimate_weighted_fleiss

    return estimate_weighted_fleiss(sample, weights)


def sample_parts(sample: Sample, weights: Weights | None = None) -> Parts:
    """Return the parts of the kappa of a sample, with agreement weights if there are any."""
    total = sums(sample, weighted=sample.weighted)
    if weights is None:
        return dh_parts(total, sample.categories)
    from dhkappa.stats.weighted import weighted_parts

    return weighted_parts(sample, pair_sums(sample.patterns, weights), total, weights)


def estimate_dh(sample: Sample) -> Estimate:
    """Estimate the DiPietro-Hazari kappa."""
    by_items = sums(sample)
    if by_items.n == 0:
        return _nothing("dh", sample, by_items)
    total = sums(sample, weighted=True) if sample.weighted else by_items
    parts = dh_parts(total, sample.categories)
    fleiss = above_chance(parts.R + parts.S, parts.C_E + parts.C_F)  # eq. 3
    kappa = parts.kappa
    reason = ONE_CATEGORY if kappa is None else None
    return Estimate("dh", sample, by_items, parts, kappa, fleiss, reason)


def dh_parts(total: Sums, categories: tuple[Label, ...]) -> Parts:
    """Return the parts of the DiPietro-Hazari kappa from sums over at least one item."""
    pairs = total.n * total.pair_unit
    R = Fraction(total.on_label, pairs)  # eq. 10
    S = Fraction(total.agreeing, pairs) - R  # eq. 12: pairs that agree, but not on the label
    C_E = _chance_on(total, total.labels)  # eq. 6
    C_F = _chance_same(total) - C_E  # eq. 9: sum_i L_i (sum_j C_j^2 - C_i^2), as the L_i sum to 1
    return Parts(R, S, C_E, C_F, categories, total)


def dh_baselines(sample: Sample, parts: Parts) -> ExactBaselines:
    """Return the kappa of random labels and of majority labels on the votes of a sample with these parts."""
    total, found = parts.sums, majority_sums(sample)
    n, pairs = total.n, total.n * total.pair_unit
    # Labels permuted over the items keep C and L; the mean of D becomes sum_j G_j (2 L_j - 1).
    random_D = Fraction(sum(g * (2 * b - n) for g, b in zip(found.pairs, total.labels, strict=True)), n * pairs)
    majority_D = 2 * Fraction(found.on_majority, pairs) - (parts.R + parts.S)
    majority_E = 2 * _chance_on(total, found.majority) - (parts.C_E + parts.C_F)
    return ExactBaselines(above_chance(random_D, parts.E), above_chance(majority_D, majority_E))


def estimate_fleiss(sample: Sample) -> Estimate:
    """Estimate Fleiss' kappa: the agreement of annotators with each other, whatever the suggested labels."""
    by_items = sums(sample, labeled=False)
    if by_items.n == 0:
        return _nothing("fleiss", sample, by_items)
    total = sums(sample, labeled=False, weighted=True) if sample.weighted else by_items
    agreeing = Fraction(total.agreeing, total.n * total.pair_unit)  # eq. 2
    parts = Parts(agreeing, Fraction(0), _chance_same(total), Fraction(0), sample.categories, total)
    kappa = parts.kappa  # eq. 3
    reason = "Every vote is the same category." if kappa is None else None
    return Estimate("fleiss", sample, by_items, parts, kappa, fleiss=kappa, reason=reason)


def rounded(exact: Fraction | None) -> float:
    """Return a fraction as a float; NaN for None."""
    return math.nan if exact is None else float(exact)


def _nothing(metric: str, sample: Sample, by_items: Sums) -> Estimate:
    """Return the estimate of a sample without eligible items."""
    lost, reason = sample.excluded, "There are no items."
    if lost.total:
        needs = ("two votes", True), ("a suggested label", lost.no_label), ("a weight", lost.no_weight)
        needed = " and ".join(what for what, number in needs if number)
        reason = f"No item has {needed} ({counted(lost.total, 'item')} excluded: {lost.why()})."
    return Estimate(metric, sample, by_items, reason=reason)


def above_chance(D: Fraction, E: Fraction) -> Fraction | None:
    """Return (D - E) / (1 - E), eq. 13."""
    return None if E == 1 else (D - E) / (1 - E)


def _chance_same(total: Sums) -> Fraction:
    """Return sum_j C_j^2, eq. 3: the probability that two votes drawn by their shares agree."""
    return Fraction(sum(votes * votes for votes in total.votes), (total.n * total.vote_unit) ** 2)


def _chance_on(total: Sums, labels: list[int]) -> Fraction:
    """Return sum_j C_j^2 L_j, eq. 6, for labels with these counts."""
    on = sum(votes * votes * number for votes, number in zip(total.votes, labels, strict=True) if number)
    return Fraction(on, (total.n * total.vote_unit) ** 2 * total.n)


@dataclass(frozen=True, slots=True)
class Sums:
    """Integer sums over n eligible items; lists have one entry per category."""

    n: int  # number of items
    n_votes: int  # number of votes
    vote_unit: int  # least common multiple of the N_i: C_j = votes[j] / (n vote_unit)
    pair_unit: int  # least common multiple of the C(N_i, 2)
    votes: list[int]  # votes by category, sum_i P_ij vote_unit / N_i (eq. 1, 4)
    labels: list[int]  # items by suggested label, n L_j (eq. 5)
    agreeing: int  # pairs that agree, sum_ij C(P_ij, 2) pair_unit / C(N_i, 2) (eq. 2)
    on_label: int  # pairs that agree on the suggested label, n pair_unit R (eq. 10)
    perfect: int  # items on which every vote is the suggested label


def sums(sample: Sample, labeled: bool = True, weighted: bool = False) -> Sums:
    """Add up the items of a sample; if ``weighted``, each times its integer weight."""
    m = len(sample.categories)
    patterns = replace(sample.patterns, items=sample.mass) if weighted else sample.patterns
    n_votes = patterns.vote_totals()
    by_size = _by_size(patterns, n_votes)
    vote_unit = math.lcm(*by_size)
    pair_unit = math.lcm(*(math.comb(size, 2) for size in by_size))
    votes = [0] * m
    agreeing = on_label = perfect = 0
    for size, rows in by_size.items():
        one_each = isinstance(rows.entries, Grid) and _top(rows.items) == 1
        found = _grid_totals(rows, m, labeled) if one_each else _totals(rows, m, size, labeled)
        _add_to(votes, found.votes, vote_unit // size)
        per_pair = pair_unit // math.comb(size, 2)
        agreeing, on_label = agreeing + found.agreeing * per_pair, on_label + found.on_label * per_pair
        perfect += found.perfect
    return Sums(
        n=int(patterns.items.sum()),
        n_votes=_dot(patterns.items, n_votes),
        vote_unit=vote_unit,
        pair_unit=pair_unit,
        votes=votes,
        labels=_by_category(patterns.suggested, patterns.items, m).tolist() if labeled else [0] * m,
        agreeing=agreeing,
        on_label=on_label,
        perfect=perfect,
    )


class _Totals(NamedTuple):
    """Sums over items with the same number of votes."""

    votes: Array  # (m,) votes by category
    agreeing: int  # pairs that agree
    on_label: int  # pairs that agree on the suggested label
    perfect: int  # items on which every vote is the suggested label


def _totals(patterns: Patterns, m: int, size: int, labeled: bool) -> _Totals:
    """Add up patterns with ``size`` votes."""
    votes = _zeros(patterns, m, size)
    agreeing = on_label = perfect = 0
    for block in list(patterns.blocks()):  # views
        length, P = np.diff(block.start), block.votes.astype(np.int64)
        pairs, each = P * (P - 1) // 2, np.repeat(block.items, length)
        votes = votes + _by_category(block.code, _times(each, P), m)
        agreeing += _dot(each, pairs)
        if labeled:
            hit = np.flatnonzero(block.code == np.repeat(block.suggested, length))
            on_label += _dot(each[hit], pairs[hit])
            perfect += int(each[hit[P[hit] == size]].sum())
    return _Totals(votes, agreeing, on_label, perfect)


def _grid_totals(patterns: Patterns, m: int, labeled: bool) -> _Totals:
    """Add up the rows of a grid, one item each: compare every two votes of an item, in blocks that stay in cache."""
    assert isinstance(patterns.entries, Grid)
    K, N = patterns.entries.codes.shape
    small, step = np.min_scalar_type(max(m - 1, 0)), max(_CACHE // N, 1)
    votes, hits, agreeing = np.zeros(m, np.int64), np.zeros(N + 1, np.int64), 0
    for first in range(0, K, step):
        rows = slice(first, min(first + step, K))
        columns = patterns.entries.codes[rows].T.astype(small, order="C")
        votes += np.bincount(columns.reshape(-1), minlength=m)
        agreeing += sum(int(np.count_nonzero(columns[k:] == columns[:-k])) for k in range(1, N))
        if labeled:
            hit = columns == patterns.suggested[rows].astype(small)
            hits += np.bincount(hit.view(np.uint8).sum(axis=0, dtype=np.min_scalar_type(N)), minlength=N + 1)
    on_label = sum(math.comb(number, 2) * items for number, items in enumerate(hits.tolist()))
    return _Totals(votes, agreeing, on_label, int(hits[N]))


class MajoritySums(NamedTuple):
    """Sums over items that only baselines need, in the units of ``Sums``; lists have one entry per category."""

    pairs: list[int]  # agreeing pairs by category, G_j n pair_unit
    majority: list[int]  # items by most frequent vote, the first category of several
    on_majority: int  # pairs that agree on the most frequent vote


def majority_sums(sample: Sample) -> MajoritySums:
    """Add up the items of a sample, each times its integer weight."""
    m = len(sample.categories)
    patterns = replace(sample.patterns, items=sample.mass)
    by_size = _by_size(patterns, patterns.vote_totals())
    pair_unit = math.lcm(*(math.comb(size, 2) for size in by_size))
    pairs, majority, on_majority = [0] * m, [0] * m, 0
    shift = max(m - 1, 1).bit_length()  # (P << shift) + last - code is largest for the first category with most votes
    last = (1 << shift) - 1
    for size, rows in by_size.items():
        per_pair, of_pairs, of_majority = pair_unit // math.comb(size, 2), *(_zeros(rows, m, size) for _ in range(2))
        for block in list(rows.blocks()):  # views
            P, items, code = block.votes.astype(np.int64), block.items, block.code
            top = np.maximum.reduceat((P << shift) - code, block.start[:-1]) + last
            most = top >> shift
            alike = np.flatnonzero(P > 1)
            each, P = np.repeat(items, np.diff(block.start))[alike], P[alike]
            of_pairs = of_pairs + _by_category(code[alike], _times(each, P * (P - 1) // 2), m)
            of_majority = of_majority + _by_category(last - (top & last), items, m)
            on_majority += _dot(items, most * (most - 1) // 2) * per_pair
        _add_to(pairs, of_pairs, per_pair)
        _add_to(majority, of_majority, 1)
    return MajoritySums(pairs, majority, on_majority)


def _by_size(patterns: Patterns, n_votes: npt.NDArray[np.int64]) -> dict[int, Patterns]:
    """Return the patterns by number of votes, ascending."""
    sizes = distinct(n_votes)
    return {size: patterns if len(sizes) == 1 else patterns.take(n_votes == size) for size in sizes}


def _zeros(patterns: Patterns, m: int, size: int) -> Array:
    """Return (m,) zeros to which sums over patterns with ``size`` votes can be added exactly."""
    return np.zeros(m, np.int64 if int(patterns.items.sum()) * size**2 < 2**63 else object)


def _add_to(total: list[int], part: Array, factor: int) -> None:
    """Add a multiple of some sums by category."""
    for category in np.flatnonzero(part).tolist():
        total[category] += int(part[category]) * factor


def distinct(n_votes: Integers) -> list[int]:
    """Return the distinct numbers of votes, ascending."""
    if n_votes.size and n_votes.min() == n_votes.max():
        return [int(n_votes[0])]
    return [int(size) for size in np.unique(n_votes)]


# Exact products and sums: 64-bit integers if they must fit, Python integers if they might not.


def _top(values: Array) -> int:
    return int(values.max(initial=0))


def _times(left: Array, right: Array) -> Any:
    if _top(left) <= 1:  # items: where there are many patterns, most have one item
        return right
    fits = _top(left) * _top(right) < 2**63
    return left * right if fits else left.astype(object) * right.astype(object)


def _dot(left: Array, right: Array) -> int:
    if _top(left) * _top(right) * left.size < 2**63:
        return int(left @ right)
    return sum(map(int.__mul__, left.tolist(), right.tolist()))


def _by_category(code: Array, numbers: Array, m: int) -> Array:
    """Sum integers by category; sums of doubles are exact below 2^53."""
    if _top(numbers) * numbers.size < 2**53:
        return np.bincount(code, numbers.astype(np.float64), m).astype(np.int64)
    total = np.zeros(m, object)
    np.add.at(total, code, numbers.astype(object))
    return total


class Units(NamedTuple):
    """Common denominators of the shares of votes and of pairs on items with some numbers of votes."""

    vote: int
    pair: int
    per_vote: Array  # vote / N, by N; 0 if no item has N votes
    per_pair: Array  # pair / C(N, 2), by N


def units(sizes: Collection[int], mass: int) -> Units:
    """Return the units for numbers of votes from 2, as integers that can be added up over items of this mass."""
    pairs = [math.comb(size, 2) for size in sizes]
    vote, pair = math.lcm(*sizes), math.lcm(*pairs)
    per_vote, per_pair = np.zeros((2, max(sizes, default=0) + 1), integer_type(mass * max(vote, pair)))
    per_vote[list(sizes)] = [vote // size for size in sizes]
    per_pair[list(sizes)] = [pair // number for number in pairs]
    return Units(vote, pair, per_vote, per_pair)


class KappaSums(NamedTuple):
    """What kappa is computed from, by group of items, as arrays of Python integers."""

    units: Units
    n: Array  # weight of the items
    differential: Array  # D, times n and the unit of pairs
    same: Array  # sum_j C_j^2, times (n and the unit of votes)^2
    on: Array  # sum_j C_j^2 L_j, times that and n
    scale: int = 1  # unit of agreement weights, once in ``same`` and twice in ``differential`` and ``on``

    @property
    def D(self) -> Ratio:
        """The agreement differential."""
        return self.differential, self.n * self.units.pair * self.scale**2

    @property
    def C_E(self) -> Ratio:
        """sum_j C_j^2 L_j (eq. 6)."""
        return self.on, self.n**3 * (self.units.vote * self.scale) ** 2

    @property
    def E(self) -> Ratio:
        """The differential expected by chance, 2 C_E - sum_j C_j^2."""
        return 2 * self.on - self.n * self.scale * self.same, self.n**3 * (self.units.vote * self.scale) ** 2

    @property
    def kappa(self) -> Ratio:
        """(D - E) / (1 - E), eq. 13; the denominator is 0 if E is 1."""
        (D, _), (E, whole) = self.D, self.E
        return D * (self.n * self.units.vote) ** 2 - E * self.units.pair, (whole - E) * self.units.pair
