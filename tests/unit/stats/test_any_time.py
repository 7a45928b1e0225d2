"""Levels of intervals that hold at every look, against scipy, worked examples and exact sums of squares."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dhkappa import dh_kappa, fleiss_kappa
from dhkappa.stats.any_time import FEWEST, any_time_level, any_time_pvalue, boundary, items_when_decided
from expect import expect_error
from strategies import from_counts

# n and the normal quantile of the 95% interval that holds at every look, with its level, to the digits of a table
QUANTILES = {
    30: (2.500, 0.98759),
    60: (2.635, 0.99159),
    100: (2.730, 0.99368),
    200: (2.855, 0.99569),
    500: (3.011, 0.99739),
    1_000: (3.124, 0.99821),
    2_000: (3.233, 0.99877),
    5_000: (3.372, 0.99925),
    10_000: (3.473, 0.99948),
}
LEVELS = st.floats(0.61, 0.9999)


def first_by_scipy(level: float) -> float:
    """Return a, where 1 - Phi(a) + a phi(a) is 1 - level."""
    return float(brentq(lambda a: norm.sf(a) + a * norm.pdf(a) - (1 - level), 0, 40, xtol=1e-15, rtol=1e-14))


@pytest.mark.parametrize(("level", "a"), [(0.9, 2.154444), (0.95, 2.500278), (0.99, 3.136464)])
def test_boundary_at_the_first_look(level: float, a: float) -> None:
    assert round(boundary(30, level), 6) == a


@given(level=LEVELS)
def test_boundary_at_the_first_look_against_scipy(level: float) -> None:
    assert boundary(30, level) == pytest.approx(first_by_scipy(level), rel=1e-11)


@pytest.mark.parametrize("n", QUANTILES)
def test_table_of_levels(n: int) -> None:
    z, level = QUANTILES[n]
    assert (round(boundary(n, 0.95), 3), round(any_time_level(n, 0.95), 5)) == (z, level)


@given(n=st.floats(FEWEST, 1e9), level=LEVELS)
def test_level_against_scipy(n: float, level: float) -> None:
    z = math.sqrt(first_by_scipy(level) ** 2 + math.log(n / 30))
    assert 1 - any_time_level(n, level) == pytest.approx(2 * norm.sf(z), rel=1e-7, abs=1e-15)
    assert any_time_level(n, level) > level
    assert any_time_level(2 * n, level) > any_time_level(n, level) or any_time_level(n, level) > 1 - 1e-9


@pytest.mark.parametrize("n", [0, 1, 29, 29.99, math.nan])
def test_too_few_items(n: float) -> None:
    assert math.isnan(any_time_level(n, 0.95))
    assert math.isnan(any_time_pvalue(1e-9, n))


@pytest.mark.parametrize("level", [0.59, 0.2])
def test_levels_that_are_too_low(level: float) -> None:
    with expect_error("any-time-level", "confidence_level"):
        any_time_level(100, level)


@given(n=st.integers(FEWEST, 10**6), level=LEVELS)
def test_pvalue_is_the_least_error_whose_interval_excludes_0(n: int, level: float) -> None:
    """A p-value of 1 - any_time_level(n, level) is that of a difference whose interval just touches 0."""
    single = 1 - any_time_level(n, level)
    assert any_time_pvalue(single, n) == pytest.approx(1 - level, rel=1e-6)
    assert any_time_pvalue(single / 2, n) < 1 - level < any_time_pvalue(2 * single, n)


def test_pvalues_that_say_nothing() -> None:
    assert any_time_pvalue(0.9, 30) == any_time_pvalue(1, 1000) == 1
    assert any_time_pvalue(0, 1000) == 0
    assert math.isnan(any_time_pvalue(math.nan, 1000))
    assert any_time_pvalue(0.05, 100) > 0.2  # a significant difference of one look


EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
VOTES, LABELS = list(EXAMPLE.votes), list(EXAMPLE.suggested)


@pytest.mark.parametrize(
    ("times", "z", "fixed", "any_time"),
    [
        (5, 2.500278, (0.180279, 0.670234), (0.108843, 0.715817)),
        (20, 2.763636, (0.329247, 0.565315), (0.278756, 0.605632)),
        (100, 3.040908, (0.401311, 0.504202), (0.372251, 0.530412)),
    ],
)
def test_worked_example(times: int, z: float, fixed: tuple[float, float], any_time: tuple[float, float]) -> None:
    kappa = dh_kappa(VOTES * times, LABELS * times)
    assert round(boundary(6 * times, 0.95), 6) == z
    assert tuple(round(limit, 6) for limit in kappa.confidence_interval()) == fixed
    found = kappa.confidence_interval(any_time=True)
    assert tuple(round(limit, 6) for limit in found) == any_time
    assert (found.confidence_level, found.any_time_level) == (0.95, any_time_level(6 * times, 0.95))
    assert [*found] == [*kappa.confidence_interval(any_time_level(6 * times, 0.95))]


def test_no_interval_with_too_few_items() -> None:
    kappa = dh_kappa(VOTES * 4 + VOTES[:5], LABELS * 4 + LABELS[:5])
    assert kappa.n_items == 29
    found = kappa.confidence_interval(any_time=True)
    assert math.isnan(found.low + found.high)
    assert found.reason == "An interval that holds at every look needs 30 items: got 29."
    assert math.isnan(found.any_time_level or 0)


def test_weights_count_effective_items() -> None:
    """60 items, of which 30 have a weight of 3: the effective number is (30 + 90)^2 / (30 + 270) = 48."""
    weights = [1.0, 3.0] * 30
    kappa = dh_kappa(VOTES * 10, LABELS * 10, sample_weight=weights)
    assert kappa.n_effective == pytest.approx(48)
    found = kappa.confidence_interval(any_time=True)
    assert found.any_time_level == pytest.approx(any_time_level(48, 0.95))


def test_other_methods() -> None:
    kappa = dh_kappa(VOTES * 10, LABELS * 10)
    for method in ("bootstrap", "bca"):
        with expect_error("invalid-method", "method"):
            kappa.confidence_interval(method=method, any_time=True)
    level = any_time_level(60, 0.9)
    assert [*kappa.confidence_interval(0.9, "wald", any_time=True)] == [*kappa.confidence_interval(level, "wald")]
    fleiss = fleiss_kappa(VOTES * 10)
    assert [*fleiss.confidence_interval(0.9, any_time=True)] == [*fleiss.confidence_interval(level)]


def decided_by_search(n: int, variance: float, fixed: float, distance: float, level: float) -> int | None:
    """Return the least number of items from n up to 10 n that decides, one after the other."""
    for N in range(n, 10 * n + 1):
        if boundary(N, level) ** 2 * (variance * n / N - fixed) <= distance**2:
            return N
    return None


@given(
    n=st.integers(FEWEST, 300),
    se=st.floats(0.01, 0.2),
    distance=st.floats(0.001, 0.3),
    pool=st.one_of(st.none(), st.integers(300, 2000)),
    level=st.sampled_from([0.6, 0.9, 0.95, 0.99]),
)
def test_forecast_against_a_search(n: int, se: float, distance: float, pool: int | None, level: float) -> None:
    """With a pool of M items the variance is s^2 (1/N - 1/M), so the part s^2/M is fixed."""
    variance = se**2
    fixed = 0 if pool is None else variance * n / pool
    found = items_when_decided(n, math.sqrt(max(variance - fixed, 0)), distance, level, fixed=fixed)
    expected = decided_by_search(n, variance, fixed, distance, level)
    assert found == expected or (found and expected and abs(found - expected) <= 1)  # a tie, by rounding


def test_forecast_of_a_whole_pool() -> None:
    """Votes on all items of a pool leave no sampling error, so they decide whatever the distance."""
    n, pool, s2 = 100, 400, 0.25
    se, fixed = math.sqrt(s2 / n - s2 / pool), s2 / pool
    assert items_when_decided(n, se, 1e-9, 0.95, fixed=fixed) == pool
    assert items_when_decided(n, se, 1e-9, 0.95) is None
    assert items_when_decided(n, math.nan, 0.1, 0.95) is None
