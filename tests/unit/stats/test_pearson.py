"""Tails of Pearson's type III distribution against scipy, and with hardly any skewness."""

import math

import pytest
from scipy.stats import norm, pearson3

from dhkappa.stats.pearson import pearson_pvalue, pearson_tail

X = [-3.0, -0.5, 0.0, 1.0, 4.0, 12.0]


@pytest.mark.parametrize("skew", [-1.5, -0.4, -1e-3, 0.02, 0.7, 3.0])
@pytest.mark.parametrize("x", X)
def test_tail_against_scipy(x: float, skew: float) -> None:
    assert pearson_tail(x, skew) == pytest.approx(float(pearson3.sf(x, skew)), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("skew", [-1e-6, -1e-8, 0.0, 1e-8, 2e-7, 1e-6])
@pytest.mark.parametrize("x", X)
def test_tail_with_hardly_any_skewness(x: float, skew: float) -> None:
    """The first term of the Edgeworth series is skew (x^2 - 1) phi(x) / 6; scipy leaves it out here."""
    expected = norm.sf(x) + skew * (x * x - 1) * norm.pdf(x) / 6
    assert pearson_tail(x, skew) == pytest.approx(expected, rel=1e-4 if x == 12 else 1e-6)


def test_exponential_distribution() -> None:
    assert pearson_tail(3.0, 2.0) == pytest.approx(math.exp(-4), rel=1e-14)
    assert pearson_tail(-1.0, 2.0) == 1  # its least value
    assert pearson_tail(1.0, -2.0) == 0


@pytest.mark.parametrize("skew", [-0.7, 0.0, 0.7])
def test_pvalues(skew: float) -> None:
    assert pearson_pvalue(1.7, skew, 0.1, "greater") == pytest.approx(pearson_tail(1.6, skew), rel=1e-14)
    both = pearson_tail(1.6, skew) + float(pearson3.cdf(-1.6, skew))
    assert pearson_pvalue(1.7, skew, 0.1, "two-sided") == pytest.approx(both, rel=1e-12)
    assert pearson_pvalue(-1.7, skew, 0.1, "two-sided") == pytest.approx(both, rel=1e-12)
    assert pearson_pvalue(0.05, skew, 0.1, "two-sided") == 1
