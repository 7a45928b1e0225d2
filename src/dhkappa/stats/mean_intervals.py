"""Confidence interval of a weighted mean of numbers from 0 to 1, such as precision, recall or a share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dhkappa.core import Floats

_ADDED = 1.0
"""Each limit is computed as if this part of a worst (or best) item had been added to the sample."""


@dataclass(frozen=True, slots=True)
class MeanBasis:
    """What the interval of a mean needs. Each attribute is a number, or an array for many means at once."""

    value: Any  # the mean; NaN if it is undefined
    n: Any  # number of items with a weight
    squares: Any  # n^2 sum p^2 (x - mean)^2, or n (n - 1) times the variance of the design
    low_move: Any  # what an item not seen yet would add to the mean per share of the weight, at worst: -mean
    high_move: Any  # at best: 1 - mean
    low_share: Any  # share of the whole weight that such an item may have, 1/n if all weights are equal
    high_share: Any
    low_unseen: Any  # share of the weight of one item, for samples without a single worst or best item
    high_unseen: Any

    @property
    def se(self) -> Any:
        """The standard error of the mean; NaN for one item."""
        n = np.asarray(self.n, np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(np.where(n > 1, self.squares / (n * (n - 1)), np.nan))


def mean_basis(weights: Floats, values: Floats, items: Any = 1) -> MeanBasis:
    """Return the basis of ``sum a x / sum a`` for (K,) patterns of ``items`` items with weight a and value x each."""
    held = np.broadcast_to(items, weights.shape) * (weights > 0)
    n, total = held.sum(), (weights * held).sum()
    if n == 0:
        return own_basis(np.nan, 0, 0.0, np.nan)
    p = weights / total
    mean = (p * values * held).sum()
    squares = (p * p * held).sum()
    return own_basis(mean, n, n * n * (p * p * (values - mean) ** 2 * held).sum(), (p**3 * held).sum() / squares)


def own_basis(value: Any, n: Any, squares: Any, low_share: Any, high_share: Any = None) -> MeanBasis:
    """Return the basis of a mean whose worst item is 0 and whose best item is 1."""
    high_share = low_share if high_share is None else high_share
    return MeanBasis(value, n, squares, 0 - value, 1 - value, low_share, high_share, low_share, high_share)


def mean_limits(basis: MeanBasis, alpha: float) -> tuple[Any, Any]:
    """Return the confidence limits: quantiles of beta distributions with the mean and variance that follow.

    An item that the sample has missed is added to the sample, the worst possible for the lower limit and the best for
    the upper one. If all weights are equal and all values 0 or 1, this is the Clopper-Pearson interval.
    """
    low = _limit(basis, basis.low_move, basis.low_share, alpha / 2)
    high = _limit(basis, basis.high_move, basis.high_share, 1 - alpha / 2)
    return np.minimum(low, (alpha / 2) ** basis.low_unseen), np.maximum(high, 1 - (alpha / 2) ** basis.high_unseen)


@np.errstate(invalid="ignore", divide="ignore")
def _limit(basis: MeanBasis, move: Any, share: Any, probability: float) -> Any:
    from dhkappa.stats.special import betaincinv

    n, more = np.asarray(basis.n, np.float64), _ADDED * np.asarray(share, np.float64)
    mean = basis.value + more * move / (1 + more)
    variance = basis.squares / ((n + _ADDED) * (n + _ADDED + 1))
    variance = variance + more * share * move**2 / ((1 + more) ** 2 * (1 + more + share))
    size = mean * (1 - mean) / variance - 1
    end = 0.0 if probability < 0.5 else 1.0
    inside = (mean > 0) & (mean < 1) & (variance > 0) & (size > 0)
    found = betaincinv(np.where(inside, mean * size, 1), np.where(inside, (1 - mean) * size, 1), probability)
    found = np.where(inside, found, np.where(variance == 0, mean, end))
    return np.where(np.isnan(mean), np.nan, np.where(mean <= 0, 0.0, np.where(mean >= 1, 1.0, found)))
