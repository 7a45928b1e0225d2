"""Confidence intervals for kappa: the beta interval by default, and the logit and Wald intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dhkappa.errors import DataError

LEAST = -14 / 13
"""Kappa is above this and at most 1."""
_ADDED, _ADDED_TO_DIFFERENCE = 0.75, 0.5
"""How much of a worst (or best) item each limit is computed with: what the sample may not have shown yet."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval; NaN limits where there is none, and ``reason`` says why."""

    low: float
    high: float
    level: float
    method: str
    reason: str | None = None

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __repr__(self) -> str:
        text = f"[{self.low:.4f}, {self.high:.4f}] at {self.level:g} ({self.method})"
        return f"{text}: {self.reason}" if self.reason else text


@dataclass(frozen=True, slots=True)
class Basis:
    """What intervals are made of.

    Attributes
    ----------
    kappa, E : the estimate, and the differential expected by chance
    n : how many items there are
    squares : n (n - 1) times the variance of kappa; the sum of squared influence where items weigh the same
    least, greatest : influence of the items that would move kappa down and up the most
    least_share, greatest_share : their shares of the whole weight, 1/n where items weigh the same
    unseen : the largest share of the weight that one more item might have had, 1/n where items weigh the same
    df : degrees of freedom of the variance
    bottom : a value that kappa never falls below
    """

    kappa: float
    E: float
    n: int
    squares: float
    least: float
    greatest: float
    least_share: float
    greatest_share: float
    unseen: float
    df: int
    bottom: float = LEAST

    @property
    def se(self) -> float:
        """The standard error of kappa."""
        return math.sqrt(self.squares / (self.n * (self.n - 1)))


def plain_basis(kappa: float, E: float, n: int, squares: float, least: float, greatest: float) -> Basis:
    """Return the basis of items drawn at random that weigh the same."""
    return Basis(kappa, E, n, squares, least, greatest, 1 / n, 1 / n, 1 / n, n - 1)


def check_level(level: float) -> float:
    """Refuse a level that is no probability."""
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, such as 0.95: got {level!r}.")
    return level


def flawless(share: float, E: float, alpha: float) -> float:
    """Return the lower limit of a flawless sample, whose items are 1/n of it each: no sample may claim more."""
    bad: float = 1 - (alpha / 2) ** share  # a share of items that might have stayed hidden
    return 1 - 2 * bad / (1 - E)


def beta_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return limits from a beta distribution on the range of kappa, with part of a worst or best item added.

    The standard error cannot see a kind of item that has not turned up yet. Each limit is therefore computed
    as if three quarters of an item had been added, the worst conceivable for the lower limit, the best for
    the upper; mean and variance with it give the beta distribution.
    """
    low = _beta_limit(basis, basis.least, basis.least_share, 1 - alpha / 2)
    high = _beta_limit(basis, basis.greatest, basis.greatest_share, alpha / 2)
    return max(basis.bottom, min(low, flawless(basis.unseen, basis.E, alpha))), high


def _beta_limit(basis: Basis, added: float, share: float, probability: float) -> float:
    from scipy.special import betaincinv

    n, width = basis.n + _ADDED, 1 - basis.bottom
    more = _ADDED * share
    mean = (1 - basis.kappa - more * added / (1 + more)) / width
    variance = basis.squares / (n * (n + 1)) + more * added**2 * share / ((1 + more) ** 2 * (1 + more + share))
    if mean <= 0 or mean >= 1:
        return 1.0 if mean <= 0 else basis.bottom
    if variance == 0:
        return 1 - width * mean
    size = mean * (1 - mean) * width**2 / variance - 1
    if size <= 0:
        return basis.bottom if probability > 0.5 else 1.0
    return 1 - width * float(betaincinv(mean * size, (1 - mean) * size, probability))


def logit_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return limits symmetric on the logit of kappa's place in its range, by the t distribution."""
    from scipy.special import stdtrit

    if basis.kappa == 1:
        return max(LEAST, flawless(basis.unseen, basis.E, alpha)), 1.0
    above, below = basis.kappa - LEAST, 1 - basis.kappa
    middle = math.log(above / below)
    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se * (1 / above + 1 / below)
    return max(LEAST, _from_logit(middle - half)), min(1.0, _from_logit(middle + half))


def _from_logit(x: float) -> float:
    # 1 - R/(1 + e^x), without overflow
    return 1 - (1 - LEAST) * (math.exp(-x) / (1 + math.exp(-x)) if x > 0 else 1 / (1 + math.exp(x)))


def wald_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return kappa plus and minus t times the standard error, within the range of kappa."""
    from scipy.special import stdtrit

    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se
    return max(basis.bottom, basis.kappa - half), min(1.0, basis.kappa + half)


def difference_limits(
    difference: Any, se: Any, n: Any, df: Any, worst: Any, best: Any, level: float
) -> tuple[Any, Any]:
    """Return the limits of a difference between two kappas on the same items; numbers or arrays.

    The standard error cannot see a kind of item that has not turned up yet: with few items, one that only one of the
    two gets wrong. So the lower limit is computed as if half an item with the influence ``worst`` had been added,
    the upper limit as if half an item with the influence ``best`` had; each is then t standard errors away.
    """
    from scipy.special import stdtrit

    t, total = stdtrit(df, (1 + level) / 2), n + _ADDED_TO_DIFFERENCE

    def limit(added: Any, sign: int) -> Any:
        squares = n * (n - 1) * se**2 + _ADDED_TO_DIFFERENCE * added**2 * n / total
        spread = np.sqrt(squares / (total * (total - 1)))
        return difference + _ADDED_TO_DIFFERENCE * added / total + sign * t * spread

    widest = 1 - LEAST
    return np.maximum(limit(worst, -1), -widest), np.minimum(limit(best, 1), widest)
