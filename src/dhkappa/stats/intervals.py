"""Confidence intervals of kappa and of differences between kappas, and the beta quantile they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dhkappa.core import Floats
from dhkappa.errors import counted

NO_VARIATION = "The items show no variation, so the standard error of kappa is unknown."
LEAST = -14 / 13
"""Kappa is above this and at most 1."""
_WIDEST = 27 / 13  # largest difference between two kappas
_ADDED, _ADDED_TO_DIFFERENCE = 0.75, 0.5
"""Each limit is computed as if this part of a worst (or best) item had been added to the sample."""

_MOST_REALISTIC = 100_000  # items
_ASSURED = 1.43  # 1 + z(0.8) / z(0.975): a limit this much closer is beyond a bound in 80% of samples, not in half
_MOST_NARROWED = 10  # an interval that must be narrower by more than this factor takes too many items to name

NO_VARIANCE = "Every item has the same influence on the difference, so the variance is unknown."
Quantile: TypeAlias = Callable[[float, float, float], Any]


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A confidence interval; iterating over it yields ``low`` and ``high``.

    Attributes
    ----------
    low, high : the limits; NaN if there is no interval
    confidence_level : the confidence level
    method : how it was computed
    reason : why there is no interval; None if there is one
    annotators : ``"fixed"`` for other items voted on by the same annotators, ``"random"`` also for other annotators
    notes : conditions that affect the interpretation, each with a code and a sentence
    any_time_level : the level of this interval alone, if it is one of those that hold at every look at the confidence
        level; NaN with fewer than 30 items, and None for an interval that holds for one look
    """

    low: float
    high: float
    confidence_level: float
    method: str
    reason: str | None = None
    annotators: str = "fixed"
    notes: tuple[Any, ...] = ()
    any_time_level: float | None = None

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __repr__(self) -> str:
        limits = f"low={self.low:.4f}, high={self.high:.4f}, confidence_level={written(self.confidence_level)}"
        reason = f", reason={self.reason!r}" if self.reason else ""
        known = self.any_time_level is not None and not math.isnan(self.any_time_level)
        single = f", any_time_level={written(self.any_time_level or 0)}" if known else ""
        annotators = "" if self.annotators == "fixed" else f", annotators={self.annotators!r}"
        return f"ConfidenceInterval({limits}, method={self.method!r}{single}{annotators}{reason})"


@dataclass(frozen=True, slots=True)
class Basis:
    """What the standard error and the intervals of a kappa are computed from."""

    kappa: float
    E: float  # the differential expected by chance
    n: float  # number of items; with clusters the number of independent items that say as much
    squares: float  # n (n - 1) times the variance of kappa; the sum of squared influence if all weights are equal
    least: float  # influence of the items that would lower and raise kappa the most
    greatest: float
    least_share: float  # their shares of the whole weight, 1/n if all weights are equal
    greatest_share: float
    unseen: float  # largest share of the weight that one more item might have had, 1/n if all weights are equal
    df: float  # degrees of freedom of the variance
    bottom: float = LEAST  # lower bound of kappa
    span: float = 2.0  # differential of the best item less that of the worst; of Fleiss' kappa, of their agreement
    reason: None = None  # there is an interval

    @property
    def se(self) -> float:
        """The standard error of kappa."""
        return math.sqrt(self.squares / (self.n * (self.n - 1)))

    def at(self, alpha: float) -> Basis:
        """Return the basis of the interval at a level: the same for all, as items are independent."""
        return self


def written(confidence_level: float, whole: int = 1) -> str:
    """Return a level as text, as a fraction or (``whole=100``) in percent, with digits enough to differ from it."""
    texts = (f"{whole * confidence_level:.{digits}g}" for digits in range(4, 18))
    return next((text for text in texts if text != str(whole)), str(whole))


def items_to_decide(n: int, value: float, low: float, high: float, bound: float) -> int | None:
    """Return about how many more items would probably put a bound outside of an interval; None if too many.

    If the value is right, they do so with a probability of about 80%. The width of an interval is about inversely
    proportional to the square root of the number of items.
    """
    distance, limit = abs(value - bound), low if value > bound else high
    if n == 0 or distance == 0 or distance < abs(value - limit) / _MOST_NARROWED:
        return None
    more = n * (_ASSURED * (value - limit) / distance) ** 2 - n
    return max(int(round(more, 2 - len(str(round(more))))), 1)  # two digits: it is a rough number


def decided_by(more: int | None, of: str = "") -> str:
    """Return a sentence about the number of items of ``items_to_decide``; empty if that cannot be said."""
    if more is None:
        return ""
    if more > _MOST_REALISTIC:
        return "No realistic number of items would decide it."
    return f"Votes on about {counted(more, 'more item')}{of and f' {of}'} would probably settle it."


def perfect_sample_limit(share: float, E: float, alpha: float, span: float = 2.0) -> float:
    """Return the lower limit if every vote is the suggested label, an upper bound; ``share`` is that of one item."""
    hidden: float = 1 - (alpha / 2) ** share  # share of bad items that may have stayed hidden
    return 1 - span * hidden / (1 - E)


def wald_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return kappa plus and minus t times the standard error, within the range of kappa."""
    from dhkappa.stats.special import stdtrit

    if basis.kappa == 1:
        return max(basis.bottom, perfect_sample_limit(basis.unseen, basis.E, alpha, basis.span)), 1.0
    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se
    return max(basis.bottom, basis.kappa - half), min(1.0, basis.kappa + half)


def beta_quantile(a: float, b: float, p: float) -> float:
    """Return x where the regularized incomplete beta function ``I_x(a, b)`` is p, with 0 < p < 1.

    Importing scipy takes as long as everything else in scoring a file, so the usual case is computed here, with the
    same accuracy.

    Examples
    --------
    >>> round(beta_quantile(2, 3, 0.5), 12)
    0.385727568132
    """
    if min(a, b) > _HUGE:
        return _near_normal(a, b, p)
    if min(a, b) < 1 or a + b > _LARGEST or min(p, 1 - p) < _SMALLEST_P:
        from dhkappa.stats.special import betaincinv

        return float(betaincinv(a, b, p))
    low, high, x = 0.0, 1.0, approximate_quantile(a, b, p)
    spread = a * b / ((a + b) ** 2 * (a + b + 1))  # the variance
    for _ in range(_STEPS):
        density, miss = _beta(a, b, x, p)
        low, high = (low, x) if miss > 0 else (x, high)
        step = miss / density if density > 0 else math.inf
        curvature = step * ((a - 1) / x - (b - 1) / (1 - x)) / 2
        near = abs(curvature) < 0.1
        following = x - step / (1 - curvature if near else 1)  # Halley's method near the root, else Newton's
        if not low < following < high:
            following, near = (low + high) / 2, False
        # The relative error of a step by Halley's method is about the square of its size.
        if (near and abs(step) * (curvature * curvature + step * step / spread) <= _NO_STEP * x) or following in (
            low,
            high,
        ):
            return following
        x = following
    return x


def approximate_quantile(a: float, b: float, p: float) -> float:
    """Return an approximate quantile (Abramowitz and Stegun 26.5.22, with the normal quantile of 26.2.23)."""
    t = math.sqrt(-2 * math.log(min(p, 1 - p)))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    y, u, v = math.copysign(z, 0.5 - p), 1 / (2 * a - 1), 1 / (2 * b - 1)
    skew, h = (y * y - 3) / 6, 2 / (u + v)
    w = y * math.sqrt(h + skew) / h - (v - u) * (skew + 5 / 6 - 2 / (3 * h)) if h + skew > 0 else 0.0
    x = 1 / (1 + b / a * math.exp(min(2 * w, 700)))
    return min(max(x, 1e-15), 1 - 1e-15)


def beta_interval(basis: Basis, alpha: float, quantile: Quantile = beta_quantile) -> tuple[float, float]:
    """Return limits from a beta distribution on the range of kappa, with part of a worst or best item added.

    The standard error does not reflect kinds of items that the sample has missed. Each limit is therefore computed as
    if three quarters of an item had been added, the worst possible for the lower limit and the best for the upper;
    mean and variance with it determine the beta distribution. ``quantile`` takes a, b and a probability.
    """
    low = _beta_limit(basis, basis.least, basis.least_share, 1 - alpha / 2, quantile)
    high = _beta_limit(basis, basis.greatest, basis.greatest_share, alpha / 2, quantile)
    return max(basis.bottom, min(low, perfect_sample_limit(basis.unseen, basis.E, alpha, basis.span))), high


def _beta_limit(basis: Basis, added: float, share: float, probability: float, quantile: Quantile) -> float:
    mean, variance, width = _beta_moments(basis, added, share)
    if mean <= 0 or mean >= 1:
        return 1.0 if mean <= 0 else basis.bottom
    if variance == 0:
        return float(1 - width * mean)
    size = mean * (1 - mean) * width**2 / variance - 1
    if size <= 0:
        return basis.bottom if probability > 0.5 else 1.0
    return 1 - width * float(quantile(mean * size, (1 - mean) * size, probability))


def _beta_moments(basis: Basis, added: Any, share: Any) -> tuple[Any, Any, float]:
    """Return mean and variance of (1 - kappa) / width with part of an item added, and the width of the range."""
    n, width = basis.n + _ADDED, 1 - basis.bottom
    more = _ADDED * share
    mean = (1 - basis.kappa - more * added / (1 + more)) / width
    variance = basis.squares / (n * (n + 1)) + more * added**2 * share / ((1 + more) ** 2 * (1 + more + share))
    return mean, variance, width


def lower_variance(basis: Basis) -> Any:
    """Return the variance of kappa with part of a worst item added, as for the lower limit of ``beta_interval``."""
    return _beta_moments(basis, basis.least, basis.least_share)[1]


def beta_limits(basis: Basis, alpha: float) -> tuple[Any, Any]:
    """Return the limits of ``beta_interval`` for a basis whose attributes are arrays, all at once."""
    from dhkappa.stats.special import betaincinv

    def limit(added: Any, share: Any, probability: float) -> Any:
        mean, variance, width = _beta_moments(basis, added, share)
        inside = (mean > 0) & (mean < 1)
        size = mean * (1 - mean) * width**2 / np.where(inside & (variance > 0), variance, 1) - 1
        found = np.where(inside & (variance == 0), 1 - width * mean, basis.bottom if probability > 0.5 else 1.0)
        found = np.where(inside, found, np.where(mean <= 0, 1.0, basis.bottom))
        usual = np.flatnonzero(inside & (variance > 0) & (size > 0))
        a, b = (mean * size)[usual], ((1 - mean) * size)[usual]
        found[usual] = 1 - width * betaincinv(a, b, probability)
        for place in np.flatnonzero(a + b > _LARGEST).tolist():
            found[usual[place]] = 1 - width * beta_quantile(float(a[place]), float(b[place]), probability)
        return found

    low, high = (
        limit(basis.least, basis.least_share, 1 - alpha / 2),
        limit(basis.greatest, basis.greatest_share, alpha / 2),
    )
    hidden = 1 - (alpha / 2) ** np.asarray(basis.unseen)
    return np.maximum(basis.bottom, np.minimum(low, 1 - 2 * hidden / (1 - basis.E))), high


@dataclass(frozen=True, slots=True)
class KappaDifference:
    """A difference between two kappas on the same items; each attribute is a number or an array."""

    value: Any
    se: Any
    skew: Any  # skewness of the influence on the difference, sum z^3 / (sum z^2)^1.5
    n: Any  # effective number of items
    df: Any  # degrees of freedom
    worst: Any  # influence of an item that only the first of the two labels wrongly
    best: Any  # and of one that only the second labels wrongly

    def limits(self, confidence_level: float) -> tuple[Any, Any]:
        """Return the confidence limits of the difference.

        Each limit is computed as if half an item had been added that only one of the two labels wrongly, a kind of item
        that a small sample may have missed. It is t standard errors away, and further by the skewness (Cornish-Fisher)
        if that widens the interval. If no item affects the difference, the limit is that of a flawless sample.
        """
        from dhkappa.stats.special import stdtrit

        t, hidden = stdtrit(self.df, (1 + confidence_level) / 2), 1 - ((1 - confidence_level) / 2) ** (1 / self.n)

        def limit(added: Any, sign: int) -> Any:
            shift, spread, skewed = self._moments(added, sign)
            seen = self.value + shift + sign * (t * spread + (t**2 - 1) / 3 * skewed)
            return np.where(self.se > 0, seen, self.value + added * hidden)

        return np.maximum(limit(self.worst, -1), -_WIDEST), np.minimum(limit(self.best, 1), _WIDEST)

    def pvalue(self) -> Any:
        """Return the two-sided p-value: 1 less the confidence level at which a limit is 0."""
        from dhkappa.stats.special import stdtr

        down, up = self._moments(self.worst, -1), self._moments(self.best, 1)
        shift, spread, skewed = (np.where(self.value > 0, a, b) for a, b in zip(down, up, strict=True))
        distance = np.abs(self.value) - np.abs(shift) + skewed / 3
        root = spread + np.sqrt(np.maximum(spread**2 + 4 / 3 * skewed * distance, 0))
        t = np.where(distance > 0, 2 * distance / np.where(root > 0, root, 1), 0)
        return np.where(self.se > 0, 2 * stdtr(self.df, -t), 1.0)

    def _moments(self, added: Any, sign: int) -> tuple[Any, Any, Any]:
        """Return the shift by half such an item, the standard error with it, and the skewness with it."""
        n, total = self.n, self.n + _ADDED_TO_DIFFERENCE
        squares = n * (n - 1) * self.se**2
        shift = _ADDED_TO_DIFFERENCE * added / total
        with_it = squares + _ADDED_TO_DIFFERENCE * added**2 * n / total
        cubes = self.skew * squares * np.sqrt(squares) - 3 * shift * squares - n * shift * shift * shift
        cubes = cubes + _ADDED_TO_DIFFERENCE * (added - shift) * (added - shift) ** 2
        skewed = np.maximum(0, sign * cubes / np.where(with_it > 0, with_it * total, 1))
        return shift, np.sqrt(with_it / (total * (total - 1))), skewed


def skewness(cubes: float, squares: float) -> float:
    """Return ``sum phi^3 / (sum phi^2)^1.5`` from the two sums, 0 if nothing varies."""
    scale: float = squares**1.5
    return cubes / scale if scale > 0 else 0.0


_LARGEST = 1e7  # of a + b: the continued fraction takes about the square root of it in steps
_SMALLEST_P = 1e-10  # of p and 1 - p
_HUGE = 1e8  # of a and b: here the expansion below is accurate to their -3/2th power, and scipy is not
_STEPS = 100
_NO_STEP = 4e-16
_TINY = 1e-300
_MOST_TERMS = 10_000  # three times those that a + b = 1e7 needs: rounding can keep factors from being exactly 1


def _near_normal(a: float, b: float, p: float) -> float:
    """Return the quantile by the Cornish-Fisher expansion, with skewness and kurtosis."""
    from dhkappa.stats.special import ndtri

    s, z = a + b, float(ndtri(p))
    skewness = 2 * ((b - a) / s) * math.sqrt(s / a * (s / b) / s)
    kurtosis = 6 * ((a - b) ** 2 / (a * b) - 1) / s
    moved = z + skewness * (z**2 - 1) / 6 + kurtosis * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    return a / s + math.sqrt(a / s * (b / s) / (s + 1)) * moved


def _beta(a: float, b: float, x: float, p: float) -> tuple[float, float]:
    """Return the density at x, and the distribution function at x minus p.

    The density is that at the mean, by Stirling's series, times a ratio: no large numbers cancel.
    """
    mean = a / (a + b)
    fall = a * _log_ratio(x, mean, x - mean) + b * _log_ratio(1 - x, 1 - mean, mean - x)
    top = 0.5 * math.log(a * b / (2 * math.pi * (a + b)))
    top = top + _stirling_rest(a + b) - _stirling_rest(a) - _stirling_rest(b)
    front = math.exp(fall + top)  # x^a (1 - x)^b / B(a, b)
    density = front / (x * (1 - x))
    if x <= (a + 1) / (a + b + 2):
        return density, front * _continued_fraction(a, b, x) / a - p
    return density, 1 - p - front * _continued_fraction(b, a, 1 - x) / b


def _log_ratio(x: float, y: float, off: float) -> float:
    """Return log(x / y), where off is x - y."""
    return math.log1p(off / y) if abs(off) < y / 2 else math.log(x / y)


def _stirling_rest(z: float) -> float:
    """Return log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2."""
    if z < 10:
        return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2 * math.pi)
    w = 1 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * 691 / 360360))))) / z


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    value, m = d, 0
    while True:
        m += 1
        k = a + 2 * m
        even = m * (b - m) * x / ((k - 1) * k)
        d, c = 1 / ((1 + even * d) or _TINY), (1 + even / c) or _TINY
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / (k * (k + 1))
        d, c = 1 / ((1 + odd * d) or _TINY), (1 + odd / c) or _TINY
        value *= d * c
        if abs(d * c - 1) < 1e-16 or m > _MOST_TERMS:
            return value


def mover(value: Floats, down: Floats, up: Floats, confidence_level: float) -> tuple[Floats, Floats, Floats]:
    """Return confidence limits and two-sided p-value of differences, from the distances of the limits below and above.

    This is the method of variance estimates recovery (MOVER). With independent values k_1 and k_2 and their limits l
    and u, the distances of ``k_2 - k_1`` are ``sqrt((k_2 - l_2)^2 + (u_1 - k_1)^2)`` and
    ``sqrt((u_2 - k_2)^2 + (k_1 - l_1)^2)``. The p-value is ``2 Phi(-z |d| / h)`` with h the distance towards 0, so it
    is below alpha exactly where 0 is outside of the limits.

    Examples
    --------
    >>> limits = mover(np.array([0.3, 0.0]), np.array([0.2, 0.1]), np.array([0.1, 0.1]), 0.95)
    >>> [column.round(4).tolist() for column in limits]
    [[0.1, -0.1], [0.4, 0.1], [0.0033, 1.0]]
    """
    from dhkappa.stats.special import ndtr, ndtri

    reach = np.where(value > 0, down, up)
    z = float(ndtri((1 + confidence_level) / 2))
    pvalue = 2 * ndtr(-z * np.abs(value) / np.where(reach > 0, reach, 1))
    return value - down, value + up, np.where(reach > 0, pvalue, np.where(value == 0, 1.0, 0.0))
