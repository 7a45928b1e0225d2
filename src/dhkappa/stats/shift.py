"""Shift: how far the shares of the categories differ between two independent samples of items, with a test.

The votes on an item are not independent, so the test is about items: under the hypothesis that the items of both
samples are drawn from one population, each division of all items into two samples of these sizes is equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dhkappa.core import Array, Floats, Label
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.sample import Sample
from dhkappa.table import plain

_LEAST_EXPECTED = 5  # items of a category in the smaller sample, as for the chi-square test
_SINGULAR = 1e-10  # an eigenvalue below this share of the largest is 0
_BLOCK = 1 << 20  # numbers in a block of rows


@dataclass(frozen=True, slots=True)
class Shift:
    """The difference between the shares of the categories in two samples.

    Attributes
    ----------
    distance : total variation distance, half the sum of the absolute differences of the shares; from 0 to 1
    category : the category whose share changed most; None if none changed
    before, after : its shares
    chi_square, df : the test statistic and its degrees of freedom
    pvalue : p-value of the hypothesis that the items of both samples come from one population
    reason : why there is no test, or no distance; None if there are both
    """

    distance: float
    category: Label | None = None
    before: float = math.nan
    after: float = math.nan
    chi_square: float = math.nan
    df: int = 0
    pvalue: float = math.nan
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}


def shift_of_votes(before: Estimate, after: Estimate) -> Shift:
    """Return the shift of the shares of votes, the means over items of the share of the votes on an item."""
    return _shift(before, after, of_labels=False)


def shift_of_labels(before: Estimate, after: Estimate) -> Shift:
    """Return the shift of the shares of suggested labels."""
    return _shift(before, after, of_labels=True)


def _shift(before: Estimate, after: Estimate, *, of_labels: bool) -> Shift:
    if before.parts is None or after.parts is None:
        return Shift(math.nan, reason="There are no eligible items.")
    one, other = (_by_type(estimate.parts.L if of_labels else estimate.parts.C) for estimate in (before, after))  # type: ignore[union-attr]
    names = [*one, *(key for key in other if key not in one)]
    changes = {key: abs(other.get(key, Fraction(0)) - one.get(key, Fraction(0))) for key in names}
    most = max(names, key=lambda key: changes[key])
    distance = float(sum(changes.values(), Fraction(0)) / 2)
    known: dict[str, Any] = {}
    if distance:
        known = {"category": most[1], "before": float(one.get(most, 0)), "after": float(other.get(most, 0))}
    samples = [estimate.sample.by_weight().merged() for estimate in (before, after)]
    if any(sample.designed for sample in samples):
        reason = "Samples with weights, strata or a pool are not tested."
        return Shift(distance, **known, reason=reason)
    places = {key: place for place, key in enumerate(names)}
    first, second = (_Shares(sample, places, of_labels) for sample in samples)
    chi_square, df = _chi_square(first, second, len(names))
    if df == 0:
        return Shift(distance, **known, reason="Fewer than two categories have enough items for a test.")
    from dhkappa.stats.special import chdtrc

    return Shift(distance, **known, chi_square=chi_square, df=df, pvalue=float(chdtrc(df, chi_square)))


def _by_type(shares: Mapping[Label, Fraction]) -> dict[tuple[type, Label], Fraction]:
    """Return shares by type and label: to Python, True and 1 are equal."""
    return {(type(label), label): share for label, share in shares.items()}


class _Shares:
    """The shares of the categories on the items of a sample: K patterns, in codes of the categories of both samples."""

    def __init__(self, sample: Sample, places: Mapping[tuple[type, Label], int], of_labels: bool) -> None:
        patterns = sample.patterns
        code_of = np.array([places.get((type(label), label), 0) for label in sample.categories], np.int64)
        if of_labels:
            self.start, codes = np.arange(len(patterns) + 1), patterns.suggested
            self.share = np.ones(len(patterns))
        else:
            self.start, codes = patterns.start, patterns.code
            self.share = patterns.votes / np.repeat(patterns.vote_totals(), np.diff(patterns.start))
        self.code, self.items = code_of[codes], patterns.items
        self.row = np.repeat(np.arange(len(patterns)), np.diff(self.start))
        self.n = int(self.items.sum())

    def sums(self, m: int) -> Floats:
        """Return (m,) the sums over items."""
        return np.bincount(self.code, self.share * self.items[self.row], m).astype(np.float64)

    def squares(self, group: Array, size: int, mean: Floats) -> Floats:
        """Return (size, size) the sums over items of the products of the deviations from ``mean``, by group."""
        total = np.zeros((size, size))
        step = max(_BLOCK // size, 1)
        for first in range(0, len(self.items), step):
            last = min(first + step, len(self.items))
            part = slice(self.start[first], self.start[last])
            dense = np.zeros((last - first, size))
            np.add.at(dense, (self.row[part] - first, group[self.code[part]]), self.share[part])
            dense -= mean
            total += dense.T @ (dense * self.items[first:last, None])
        return total


def _chi_square(one: _Shares, other: _Shares, m: int) -> tuple[float, int]:
    """Return the test statistic and its degrees of freedom; 0 if too few categories have items enough for a test.

    ``T = d' V^- d`` with the differences d of the mean shares and their covariance V over all divisions of the items,
    ``V = S (1 / n_1 + 1 / n_2)``, S the covariance matrix of the N items together. Its mean over the divisions is the
    rank of V. Where each item has one category, T is Pearson's chi-square of the 2 x m table, times (N - 1) / N.
    """
    sums, numbers = np.array([one.sums(m), other.sums(m)]), np.array([one.n, other.n])
    N = int(numbers.sum())
    group, size = _groups(sums.sum(axis=0) * numbers.min() / N)
    if size < 2:
        return math.nan, 0
    grouped = np.array([np.bincount(group, row, size) for row in sums])
    mean, gap = grouped.sum(axis=0) / N, grouped[1] / other.n - grouped[0] / one.n
    squares = one.squares(group, size, mean) + other.squares(group, size, mean)
    covariance = squares / (N - 1) * (1 / one.n + 1 / other.n)
    values, vectors = np.linalg.eigh(covariance)
    used = values > _SINGULAR * values[-1]
    if not values[-1] > 0:
        return math.nan, 0
    return float(((gap @ vectors)[used] ** 2 / values[used]).sum()), int(used.sum())


def _groups(expected: Floats) -> tuple[Array, int]:
    """Return (m,) the group of each category: its own, or a common one of those too rare for a test."""
    order = np.argsort(expected, kind="stable")
    n_rare = int(np.searchsorted(expected[order], _LEAST_EXPECTED))
    if n_rare:  # the common group needs enough items, too
        total = np.cumsum(expected[order])
        n_rare = max(n_rare, min(int(np.searchsorted(total, _LEAST_EXPECTED)) + 1, len(order)))
    rare = order[:n_rare]
    group = np.zeros(len(expected), np.int64)
    usual = np.setdiff1d(np.arange(len(expected)), rare)
    first = int(n_rare > 0)
    group[usual] = np.arange(len(usual)) + first
    return group, len(usual) + first
