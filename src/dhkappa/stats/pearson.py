"""Tails of Pearson's type III distribution: a gamma distribution, shifted and scaled to mean 0 and variance 1."""

from __future__ import annotations

import math

_NOT_SKEWED = 1e-7  # below, it is normal for all that floats tell


def pearson_pvalue(z: float, skew: float, half_step: float, alternative: str) -> float:
    """Return the p-value of a statistic with mean 0, variance 1 and a skewness; "greater" or "two-sided".

    The statistic has only values that are a step apart, so its tail begins half a step before the observed value.
    """
    if alternative == "greater":
        return pearson_tail(z - half_step, skew)
    far = max(abs(z) - half_step, 0.0)
    return min(1.0, pearson_tail(far, skew) + pearson_tail(far, -skew))


def pearson_tail(x: float, skew: float) -> float:
    """Return the probability of x or more; a negative skewness is that of the mirror image.

    Examples
    --------
    >>> round(pearson_tail(1.0, 2.0), 6), round(pearson_tail(1.0, -2.0), 6)  # exponential: exp(-2), and 0
    (0.135335, 0.0)
    """
    from dhkappa.stats.special import gammainc, gammaincc, ndtr

    if abs(skew) < _NOT_SKEWED:
        return float(ndtr(-x))
    shape = 4 / skew**2
    at = max(shape + math.copysign(x, skew * x) * math.sqrt(shape), 0.0)
    return float(gammaincc(shape, at) if skew > 0 else gammainc(shape, at))
