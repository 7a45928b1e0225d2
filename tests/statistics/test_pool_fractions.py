"""Shares of a pool against exact fractions: worked examples, and random data with merged labels and designs."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import pool_oracle as oracle
from dhkappa import DataError, tally
from dhkappa.stats import pool as module
from dhkappa.stats.pool import pool_shares_of
from dhkappa.stats.pool_result import PoolShares
from strategies import Data, from_counts, ragged

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
POOL: dict[Any, int] = {1: 500, 2: 300, 3: 200}


def shares(data: Data, pool: Mapping[Any, int], *, by_label: bool = False, finite: bool = False) -> PoolShares:
    votes = [list(item) or [None] for item in data.votes]
    strata = [0 if label is None else label for label in data.suggested] if by_label else None
    rows = tally(votes, list(data.suggested), strata=strata).counts.labeled_patterns(None)
    return pool_shares_of(rows, pool, finite_pool=finite)


def limits(mean: oracle.Mean, n: int, confidence_level: float = 0.95) -> tuple[float, float]:
    """Beta limits with one item added, by SciPy."""
    alpha, found = 1 - confidence_level, []
    squares = n * (n - 1) * (mean.variance or 0)
    for (s, move), p in ((mean.low, alpha / 2), (mean.high, 1 - alpha / 2)):
        mu = mean.value + s * move / (1 + s)
        v = F(squares) / ((n + 1) * (n + 2)) + s**2 * move**2 / ((1 + s) ** 2 * (1 + 2 * s))
        if mu <= 0 or mu >= 1 or v == 0:
            found.append(float(min(max(mu, F(0)), F(1))))
            continue
        nu = mu * (1 - mu) / v - 1
        inside = nu > 0
        found.append(float(stats.beta.ppf(p, float(mu * nu), float((1 - mu) * nu))) if inside else float(p > 0.5))
    cap = (alpha / 2) ** float(mean.unseen)
    return min(found[0], cap), max(found[1], 1 - cap)


def check(result: PoolShares, expected: oracle.Pool, n: int, pool: Mapping[Any, int]) -> None:
    rows = {row["category"]: row for row in result.table}
    voted = {k for k, mean in expected.shares.items() if mean.value or pool.get(k)}
    assert set(rows) == voted
    for k, row in rows.items():
        mean = expected.shares[k]
        assert row["share"] == float(mean.value)
        if mean.variance is None:
            assert np.isnan(row["se"])
        else:
            assert row["se"] == pytest.approx(float(mean.variance) ** 0.5, rel=1e-12)  # a root of a rounded variance
        assert (row["low"], row["high"]) == pytest.approx(limits(mean, n), rel=1e-7, abs=1e-9)  # SciPy's quantile
        gain = expected.gains[k]
        assert row["gain"] == pytest.approx(np.nan if gain is None else float(gain), rel=1e-14, nan_ok=True)
        if k in expected.wrong_by_label:
            own, M = expected.wrong_by_label[k], pool[k]
            assert row["wrong"] == pytest.approx(float(M * own.value), rel=1e-15)
            low, high = limits(own, row["items"])
            assert (row["wrong_low"], row["wrong_high"]) == pytest.approx((M * low, M * high), rel=1e-7, abs=1e-9 * M)
            assert row["reason"] is None
        elif pool.get(k):
            assert np.isnan(row["wrong"])
            assert row["reason"] is not None
        else:
            assert (row["wrong"], row["wrong_low"], row["wrong_high"]) == (0, 0, 0)
    whole = sum(pool.values())
    assert result.wrong == pytest.approx(float(whole * expected.wrong.value), rel=1e-15)
    low, high = limits(expected.wrong, n)
    assert (result.wrong_low, result.wrong_high) == pytest.approx(
        (whole * low, whole * high), rel=1e-7, abs=1e-9 * whole
    )
    typical = np.nan if expected.typical is None else float(whole * expected.typical)
    assert result.annotator_wrong == pytest.approx(typical, rel=1e-15, nan_ok=True)
    groups = [group for group in expected.groups if len(group) > 1]
    assert [set(result.merged)] == groups or (not groups and not result.merged)


def pairs(data: Data) -> list[oracle.Item]:
    return list(zip(data.suggested, data.votes, strict=True))


def test_worked_example_without_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEWEST", 2)
    expected = oracle.pool_shares(pairs(EXAMPLE), POOL, fewest=2)
    assert {k: mean.value for k, mean in expected.shares.items()} == {1: F(7, 15), 2: F(23, 60), 3: F(3, 20)}
    assert {k: mean.variance for k, mean in expected.shares.items()} == {1: F(17, 1800), 2: F(97, 3600), 3: F(1, 80)}
    assert {k: POOL[k] * mean.value for k, mean in expected.wrong_by_label.items()} == {1: F(250, 3), 2: 100, 3: 100}
    assert (1000 * expected.wrong.value, expected.wrong.variance) == (F(850, 3), F(97, 3600))
    result = shares(EXAMPLE, POOL)
    check(result, expected, 6, POOL)
    assert result.table.column("count") == pytest.approx([1400 / 3, 1150 / 3, 150], rel=1e-15)
    assert result.wrong_share == 17 / 60
    assert result.merged == ()


def test_worked_example_of_a_finite_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEWEST", 2)
    expected = oracle.pool_shares(pairs(EXAMPLE), POOL, fewest=2, finite=True)
    variances = {k: mean.variance for k, mean in expected.shares.items()}
    assert variances == {1: F(17, 1800), 2: F(4823, 180000), 3: F(31, 2500)}
    check(shares(EXAMPLE, POOL, finite=True), expected, 6, POOL)


def test_worked_example_five_times_over_has_the_printed_limits() -> None:
    data = Data(EXAMPLE.categories, list(EXAMPLE.votes) * 5, list(EXAMPLE.suggested) * 5)
    result, expected = shares(data, POOL), oracle.pool_shares(pairs(data), POOL)
    variances = {k: mean.variance for k, mean in expected.shares.items()}
    assert variances == {1: F(17, 16200), 2: F(97, 32400), 3: F(1, 720)}
    check(result, expected, 30, POOL)
    found = [(row["low"], row["high"]) for row in result.table]
    printed = [(0.333482, 0.566247), (0.260604, 0.549846), (0.077165, 0.320945)]
    for own, other in zip(found, printed, strict=True):
        assert own == pytest.approx(other, abs=5e-7)  # printed digits
    assert (result.wrong_low, result.wrong_high) == pytest.approx((177.874, 453.564), abs=5e-4)


def test_labels_with_few_items_are_merged_into_votes_alone() -> None:
    result, expected = shares(EXAMPLE, POOL), oracle.pool_shares(pairs(EXAMPLE), POOL)
    assert result.table.column("share") == [1 / 3, 4 / 9, 2 / 9]  # the shares of the votes in the sample
    check(result, expected, 6, POOL)
    assert result.merged == (1, 2, 3)
    assert {"labels-merged", "few-items"} <= {note.code for note in result.notes}


def test_the_label_with_the_next_fewest_items_joins_a_small_group() -> None:
    data = from_counts(" ".join(["20/1"] * 3 + ["11/2"] * 6 + ["02/3"] * 6 + ["02/4"] * 9))
    assert shares(data, {1: 30, 2: 60, 3: 50, 4: 90}).merged == (1, 3)  # of 2 and 3, that with fewer in the pool
    assert shares(data, {1: 30, 2: 60, 3: 60, 4: 90}).merged == (1, 2, 3)
    more = {1: 30, 2: 60, 3: 50, 4: 90, 5: 7}
    result = shares(data, more)
    assert result.merged == (1, 3, 5)
    check(result, oracle.pool_shares(pairs(data), more), 24, more)


@given(ragged(max_items=60), st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=150)
def test_random_data(data: Data, seed: int, by_label: bool, finite: bool, extra: bool) -> None:
    random = Random(seed)
    usable = oracle.usable(pairs(data))
    finite &= bool(usable) and min(len(votes) for _, votes in usable) > 1
    n = Counter(label for label, _ in usable)
    pool: dict[Any, int] = {label: own + random.choice([0, 1, 7, 1000]) for label, own in n.items()}
    if extra:
        pool |= {label: random.choice([0, 3, 50]) for label in data.categories if label not in pool}
    if not usable:
        with pytest.raises(DataError) as error:
            shares(data, pool, by_label=by_label, finite=finite)
        assert error.value.code == "nothing-sampled"
        return
    expected = oracle.pool_shares(pairs(data), pool, drawn_by_label=by_label, finite=finite)
    check(shares(data, pool, by_label=by_label, finite=finite), expected, len(usable), pool)
