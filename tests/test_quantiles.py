"""Quantiles of the beta distribution, against exact sums and against scipy."""

import math
import random
from fractions import Fraction

import pytest
from scipy.special import betaincinv

from dhkappa.stats.quantiles import beta_quantile


def distribution(a: int, b: int, x: float) -> Fraction:
    """I_x(a, b) for whole a and b: the chance of a successes or more in a + b - 1 trials, exactly."""
    n, q = a + b - 1, Fraction(x)
    return sum((math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(a, n + 1)), Fraction(0))


@pytest.mark.parametrize("pvalue", [0.005, 0.025, 0.3, 0.5, 0.9, 0.975, 0.999])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 9), (2, 3), (7, 2), (30, 1), (25, 40), (60, 5), (90, 90)])
def test_against_exact_sums(a: int, b: int, p: float) -> None:
    # x is right to its last digits, which move the sum by x times the density times 10^-15, a few units of 10^-15.
    assert float(distribution(a, b, beta_quantile(a, b, p))) == pytest.approx(p, abs=1e-14)


def test_against_scipy() -> None:
    draw = random.Random(1)
    for _ in range(3_000):
        size, mean = math.exp(draw.uniform(0.7, 18)), draw.random() ** draw.choice([1, 3, 6])
        a, b = draw.choice([(size * mean, size * (1 - mean)), (size * (1 - mean), size * mean)])
        p = draw.choice([0.025, 0.975, 0.005, 0.995, 1e-6, 1 - 1e-6, draw.uniform(0.001, 0.999)])
        found = beta_quantile(a, b, p)
        # Two good ways differ by roundings; where x is tiny, they are a larger part of it.
        assert found == pytest.approx(float(betaincinv(a, b, p)), rel=1e-9, abs=1e-15)
        assert 0 <= found <= 1


@pytest.mark.parametrize(("a", "b"), [(0.01, 0.02), (0.5, 3.0), (2.0, 1e-9), (1e9, 3e7), (1.0, 1e12)])
def test_unusual_ones_are_scipys(a: float, b: float) -> None:
    assert beta_quantile(a, b, 0.975) == float(betaincinv(a, b, 0.975))
