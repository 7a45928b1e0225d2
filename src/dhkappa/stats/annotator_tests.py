"""Tests of many values at once: tails of skewed distributions, and what is typical."""

from __future__ import annotations

import numpy as np

from dhkappa.core import Floats

_MEDIAN = 0.6744897501960817  # of the absolute value of a standard normal variable
_STEPS = 60  # of the bisection
_NORMAL = 1e-4  # skewness below which the gamma distribution is normal


def skewed_tails(z: Floats, skew: Floats) -> tuple[Floats, Floats]:
    """Return P(Z <= z) and P(Z >= z) of standardized gamma variables with some skewness (Pearson type III)."""
    from dhkappa.stats.special import gammainc, gammaincc, ndtr

    bent = np.abs(skew) > _NORMAL
    g = np.where(bent, skew, 1)
    shape = 4 / g**2
    at = np.maximum(shape + 2 * z / g, 0)
    below, above = gammainc(shape, at), gammaincc(shape, at)
    low, high = np.where(g > 0, below, above), np.where(g > 0, above, below)
    return np.where(bent, low, ndtr(z)), np.where(bent, high, ndtr(-z))


def typical(values: Floats, errors: Floats) -> tuple[float, float]:
    """Return center and spread of the true values of most annotators, from values with standard errors.

    The center is the median with weights ``1 / sqrt(error^2 + spread^2)``. With the spread, half of the values are
    within .674 standard deviations of the center; it is 0 if they are without it. Annotators far from the rest, fewer
    than half of all, have little effect.
    """

    def middle(variance: float) -> tuple[float, float]:
        weight = 1 / np.sqrt(errors**2 + variance)
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(weight[order])
        center = float(values[order[np.searchsorted(upto, upto[-1] / 2)]])
        return center, float(np.median(np.abs(values - center) * weight))

    center, half = middle(0.0)
    if half <= _MEDIAN:
        return center, 0.0
    low, high = 0.0, float(np.ptp(values)) ** 2 / _MEDIAN**2
    for _ in range(_STEPS):
        variance = (low + high) / 2
        center, half = middle(variance)
        low, high = (variance, high) if half > _MEDIAN else (low, variance)
    return center, float(np.sqrt(high))
