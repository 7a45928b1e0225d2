"""Limits and p-values of differences, against the z-test and bisection over confidence levels."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import norm

from dhkappa.stats.intervals import mover


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_symmetric_distances_give_the_z_test(level: float) -> None:
    value, se = np.array([0.1, -0.02, 0.3]), np.array([0.05, 0.04, 0.01])
    half = norm.ppf((1 + level) / 2) * se
    low, high, pvalue = mover(value, half, half, level)
    np.testing.assert_allclose(pvalue, 2 * norm.sf(np.abs(value) / se), rtol=1e-9)
    np.testing.assert_allclose(np.array([low, high]), [value - half, value + half], rtol=1e-12)


@pytest.mark.parametrize("value", [0.2, -0.2])
def test_pvalue_is_the_level_whose_limit_is_0(value: float) -> None:
    """Distances grow with the normal quantile; the one towards 0 counts."""
    down, up = 0.12, 0.25

    def near(alpha: float) -> float:
        factor = norm.ppf(1 - alpha / 2) / norm.ppf(0.975)
        return float(value - down * factor if value > 0 else value + up * factor)

    expected = optimize.brentq(near, 1e-12, 1 - 1e-12)
    found = mover(np.array([value]), np.array([down]), np.array([up]), 0.95)[2]
    assert found == pytest.approx(expected, rel=1e-6)


def test_no_distance_and_no_difference() -> None:
    value, none = np.array([0.0, 0.1, -0.1, math.nan]), np.array([0.0, 0.0, 0.0, 0.1])
    assert mover(value, none, none, 0.95)[2].tolist() == pytest.approx([1, 0, 0, math.nan], nan_ok=True)
