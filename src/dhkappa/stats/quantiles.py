"""Quantiles of the beta distribution.

Importing scipy takes as long as all else that scoring a file does, so the usual case is computed here, as accurately;
``scipy`` does the rest.
"""

from __future__ import annotations

import math

_LARGEST = 1e7  # of a + b: the continued fraction takes as many steps as the root of it
_SLIGHTEST = 1e-10  # of p and 1 - p
_HUGE = 1e8  # of a and b: the normal distribution with four cumulants is right to their -3/2th power, scipy is not
_STEPS = 100
_NO_STEP = 4e-16
_TINY = 1e-300


def beta_quantile(a: float, b: float, p: float) -> float:
    """Return x where the regularized incomplete beta function ``I_x(a, b)`` is p, with 0 < p < 1.

    Examples
    --------
    >>> round(beta_quantile(2, 3, 0.5), 12)
    0.385727568132
    """
    if min(a, b) > _HUGE:
        return _near_normal(a, b, p)
    if min(a, b) < 1 or a + b > _LARGEST or min(p, 1 - p) < _SLIGHTEST:
        from scipy.special import betaincinv

        return float(betaincinv(a, b, p))
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(_STEPS):
        density, below = _beta(a, b, x)
        miss = below - p
        low, high = (low, x) if miss > 0 else (x, high)
        step = miss / density if density > 0 else math.inf
        following = x - step
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= _NO_STEP * x or following in (low, high):
            return following
        x = following
    return x


def _near_normal(a: float, b: float, p: float) -> float:
    """Return the quantile by the Cornish-Fisher expansion: mean and deviation, corrected for skewness and kurtosis."""
    from scipy.special import ndtri

    s, z = a + b, float(ndtri(p))
    skewness = 2 * ((b - a) / s) * math.sqrt(s / a * (s / b) / s)
    kurtosis = 6 * ((a - b) ** 2 / (a * b) - 1) / s
    moved = z + skewness * (z**2 - 1) / 6 + kurtosis * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    return a / s + math.sqrt(a / s * (b / s) / (s + 1)) * moved


def _beta(a: float, b: float, x: float) -> tuple[float, float]:
    """Return density and distribution function at x.

    The density at x is that at the mean, by Stirling's series, times what it falls by: no large numbers cancel.
    """
    mean = a / (a + b)
    fall = a * _log_ratio(x, mean, x - mean) + b * _log_ratio(1 - x, 1 - mean, mean - x)
    top = 0.5 * math.log(a * b / (2 * math.pi * (a + b))) + _rest(a + b) - _rest(a) - _rest(b)
    front = math.exp(fall + top)  # x^a (1 - x)^b / B(a, b)
    density = front / (x * (1 - x))
    if x <= (a + 1) / (a + b + 2):
        return density, front * _fraction(a, b, x) / a
    return density, 1 - front * _fraction(b, a, 1 - x) / b


def _log_ratio(x: float, y: float, off: float) -> float:
    """Return log(x / y), where off is x - y: accurate for near and for far values."""
    return math.log1p(off / y) if abs(off) < y / 2 else math.log(x / y)


def _rest(z: float) -> float:
    """Return what Stirling's formula leaves of log Gamma(z): log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2."""
    if z < 10:
        return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2 * math.pi)
    w = 1 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * 691 / 360360))))) / z


def _fraction(a: float, b: float, x: float) -> float:
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
        if abs(d * c - 1) < 1e-16 or m > 100_000:
            return value
