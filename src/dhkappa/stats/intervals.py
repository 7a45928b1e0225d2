"""Confidence intervals for kappa: the beta interval by default, and the logit and Wald intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dhkappa.errors import DataError

LEAST = -14 / 13
"""Kappa is above this and at most 1."""
_RANGE = 27 / 13
_ADDED = 0.75
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
    """What intervals are made of: kappa, E, n items, sum of squared influence, its least and greatest value."""

    kappa: float
    E: float
    n: int
    squares: float
    least: float
    greatest: float


def check_level(level: float) -> float:
    """Refuse a level that is no probability."""
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, such as 0.95: got {level!r}.")
    return level


def flawless(n: int, E: float, alpha: float) -> float:
    """Return the lower limit of a flawless sample of n items: no sample may claim more."""
    bad: float = 1 - (alpha / 2) ** (1 / n)  # a share of items that might have stayed hidden
    return 1 - 2 * bad / (1 - E)


def beta_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return limits from a beta distribution on the range of kappa, with part of a worst or best item added.

    The standard error cannot see a kind of item that has not turned up yet. Each limit is therefore computed
    as if three quarters of an item had been added, the worst conceivable for the lower limit, the best for
    the upper; mean and variance of the n + 3/4 items give the beta distribution.
    """
    low = min(_beta_limit(basis, basis.least, 1 - alpha / 2), flawless(basis.n, basis.E, alpha))
    return max(LEAST, low), _beta_limit(basis, basis.greatest, alpha / 2)


def _beta_limit(basis: Basis, added: float, probability: float) -> float:
    from scipy.special import betaincinv

    n, total = basis.n, basis.n + _ADDED
    mean = (1 - basis.kappa - _ADDED * added / total) / _RANGE
    variance = (basis.squares + _ADDED * added**2 * n / total) / (total * (total + 1))
    end = LEAST if probability > 0.5 else 1.0
    if mean <= 0 or mean >= 1:
        return 1.0 if mean <= 0 else LEAST
    if variance == 0:
        return 1 - _RANGE * mean
    size = mean * (1 - mean) * _RANGE**2 / variance - 1
    if size <= 0:
        return end
    return 1 - _RANGE * float(betaincinv(mean * size, (1 - mean) * size, probability))


def logit_interval(basis: Basis, se: float, alpha: float) -> tuple[float, float]:
    """Return limits symmetric on the logit of kappa's place in its range, with n - 1 degrees of freedom."""
    from scipy.special import stdtrit

    if basis.kappa == 1:
        return max(LEAST, flawless(basis.n, basis.E, alpha)), 1.0
    above, below = basis.kappa - LEAST, 1 - basis.kappa
    middle = math.log(above / below)
    half = float(stdtrit(basis.n - 1, 1 - alpha / 2)) * se * (1 / above + 1 / below)
    return max(LEAST, _from_logit(middle - half)), min(1.0, _from_logit(middle + half))


def _from_logit(x: float) -> float:
    # 1 - R/(1 + e^x), without overflow
    return 1 - _RANGE * (math.exp(-x) / (1 + math.exp(-x)) if x > 0 else 1 / (1 + math.exp(x)))


def wald_interval(basis: Basis, se: float, alpha: float, least: float = LEAST) -> tuple[float, float]:
    """Return kappa plus and minus t times the standard error, within the range of kappa."""
    from scipy.special import stdtrit

    half = float(stdtrit(basis.n - 1, 1 - alpha / 2)) * se
    return max(least, basis.kappa - half), min(1.0, basis.kappa + half)
