"""Confidence intervals: of kappa, by default the beta interval, and of the difference between two kappas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import is_real
from dhkappa.errors import DataError, shown
from dhkappa.stats.quantiles import beta_quantile

LEAST = -14 / 13
"""Kappa is above this and at most 1."""
_SLIGHT = 1e-9  # a level closer to 0 or 1 has no limits
_WIDEST = 27 / 13  # two kappas are no further apart
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
        text = f"[{self.low:.4f}, {self.high:.4f}] at {written(self.level)} ({self.method})"
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
    if not is_real(level) or not _SLIGHT < level < 1 - _SLIGHT:
        edge = f", by more than {_SLIGHT:g}" if is_real(level) and 0 < level < 1 else ""
        raise DataError(f"level must be between 0 and 1{edge}, such as 0.95: got {shown([level])}.")
    return float(level)


def written(level: float, whole: int = 1) -> str:
    """Write a level, of 1 or of 100 for percent: four digits, or as many as tell it from the whole."""
    texts = (f"{whole * level:.{digits}g}" for digits in range(4, 18))
    return next((text for text in texts if text != str(whole)), str(whole))


def flawless(share: float, E: float, alpha: float) -> float:
    """Return the lower limit of a flawless sample, whose items are 1/n of it each: no sample may claim more."""
    bad: float = 1 - (alpha / 2) ** share  # a share of items that might have stayed hidden
    return 1 - 2 * bad / (1 - E)


Quantile: TypeAlias = Callable[[float, float, float], Any]


def beta_interval(basis: Basis, alpha: float, quantile: Quantile = beta_quantile) -> tuple[float, float]:
    """Return limits from a beta distribution on the range of kappa, with part of a worst or best item added.

    The standard error cannot see a kind of item that has not turned up yet. Each limit is therefore computed
    as if three quarters of an item had been added, the worst conceivable for the lower limit, the best for
    the upper; mean and variance with it give the beta distribution. Its ``quantile`` takes a, b and a probability.
    """
    low = _beta_limit(basis, basis.least, basis.least_share, 1 - alpha / 2, quantile)
    high = _beta_limit(basis, basis.greatest, basis.greatest_share, alpha / 2, quantile)
    return max(basis.bottom, min(low, flawless(basis.unseen, basis.E, alpha))), high


def _beta_limit(basis: Basis, added: float, share: float, probability: float, quantile: Quantile) -> float:
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
    return 1 - width * float(quantile(mean * size, (1 - mean) * size, probability))


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

    if basis.kappa == 1:
        return max(basis.bottom, flawless(basis.unseen, basis.E, alpha)), 1.0
    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se
    return max(basis.bottom, basis.kappa - half), min(1.0, basis.kappa + half)


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference between two kappas on the same items; numbers, or arrays of them.

    Attributes
    ----------
    value : the difference
    se : its standard error
    skew : skewness of what each item does to it, ``sum z^3 / (sum z^2)^1.5``
    n, df : items that weigh the same and would tell as much, and degrees of freedom
    worst, best : influence of an item that only one of the two gets wrong
    """

    value: Any
    se: Any
    skew: Any
    n: Any
    df: Any
    worst: Any
    best: Any

    def limits(self, level: float) -> tuple[Any, Any]:
        """Return the limits of the difference.

        The standard error cannot see a kind of item that has not turned up yet: with few items, one that only one of
        the two gets wrong. So each limit is computed as if half such an item had been added, t standard errors away,
        and further by the skewness (Cornish-Fisher) where that widens. Where no item moves the difference, so many
        items of the kind may have stayed hidden as from a flawless sample.
        """
        from scipy.special import stdtrit

        t, hidden = stdtrit(self.df, (1 + level) / 2), 1 - ((1 - level) / 2) ** (1 / self.n)

        def limit(added: Any, sign: int) -> Any:
            shift, spread, skewed = self._moments(added, sign)
            seen = self.value + shift + sign * (t * spread + (t**2 - 1) / 3 * skewed)
            return np.where(self.se > 0, seen, self.value + added * hidden)

        return np.maximum(limit(self.worst, -1), -_WIDEST), np.minimum(limit(self.best, 1), _WIDEST)

    def p_value(self) -> Any:
        """Return one less the level at which a limit is 0: two-sided, and never at odds with the limits."""
        from scipy.special import stdtr

        down, up = self._moments(self.worst, -1), self._moments(self.best, 1)
        shift, spread, skewed = (np.where(self.value > 0, a, b) for a, b in zip(down, up, strict=True))
        room = np.abs(self.value) - np.abs(shift) + skewed / 3
        root = spread + np.sqrt(np.maximum(spread**2 + 4 / 3 * skewed * room, 0))
        t = np.where(room > 0, 2 * room / np.where(root > 0, root, 1), 0)
        return np.where(self.se > 0, 2 * stdtr(self.df, -t), 1.0)

    def _moments(self, added: Any, sign: int) -> tuple[Any, Any, Any]:
        """Return how far half such an item moves the difference, the standard error with it, and its skewness."""
        n, total = self.n, self.n + _ADDED_TO_DIFFERENCE
        squares = n * (n - 1) * self.se**2
        shift = _ADDED_TO_DIFFERENCE * added / total
        with_it = squares + _ADDED_TO_DIFFERENCE * added**2 * n / total
        cubes = self.skew * squares**1.5 - 3 * shift * squares - n * shift**3
        cubes = cubes + _ADDED_TO_DIFFERENCE * (added - shift) ** 3
        skewed = np.maximum(0, sign * cubes / np.where(with_it > 0, with_it * total, 1))
        return shift, np.sqrt(with_it / (total * (total - 1))), skewed


def skewness(move: npt.NDArray[np.float64], items: npt.NDArray[Any], squares: float | None = None) -> float:
    """Return ``sum z^3 / (sum z^2)^1.5`` over items; 0 where none moves. ``squares`` are those, if known."""
    if squares is None:
        squares = math.fsum((move**2 * items).tolist())
    return math.fsum((move**3 * items).tolist()) / squares**1.5 if squares > 0 else 0.0
