"""Shares of a pool against other estimators: least-squares regression, and prediction-powered inference."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dhkappa

F = Fraction


def drawn(m: int, n: int, seed: int, votes: int = 1) -> tuple[Any, list[int], dict[int, int]]:
    """Return votes and labels of a random sample, and the labels of its pool."""
    sim = dhkappa.simulate(4_000, labelers={"llm": 0.8}, categories=range(m), annotators=votes, rng=seed)
    labels = sim.suggested["llm"]
    chosen = np.random.default_rng(seed).choice(4_000, n, replace=False)
    pool = {int(j): int(number) for j, number in zip(*np.unique(labels, return_counts=True), strict=True)}
    return sim.votes[chosen], labels[chosen].tolist(), pool


@pytest.mark.parametrize("seed", range(5))
def test_two_categories_are_the_difference_estimator_with_the_least_squares_factor(seed: int) -> None:
    """PPI++ with factor f: the mean of f q over the pool plus that of c - f q over the sample."""
    votes, labels, pool = drawn(2, 150, seed, votes=3)
    c = [F(int((row == 1).sum()), 3) for row in votes]
    q = [F(label) for label in labels]
    n = len(q)
    mean_c, mean_q = sum(c, F(0)) / n, sum(q, F(0)) / n
    covariance = sum((x - mean_c) * (y - mean_q) for x, y in zip(c, q, strict=True))
    factor = covariance / sum((y - mean_q) ** 2 for y in q)
    estimate = factor * F(pool[1], sum(pool.values())) + mean_c - factor * mean_q
    assert dhkappa.pool_shares(votes, labels, pool=pool).table.column("share")[1] == float(estimate)


@pytest.mark.parametrize(("m", "seed"), [(2, 1), (3, 2), (5, 3)])
def test_least_squares_with_a_dummy_for_each_label(m: int, seed: int) -> None:
    """The prediction for the pool, with heteroscedasticity-robust errors (HC2), which are s_j^2 / n_j here."""
    sm = pytest.importorskip("statsmodels.api")
    votes, labels, pool = drawn(m, 300, seed, votes=2)
    shares = np.array([pool[j] for j in range(m)]) / sum(pool.values())
    found = dhkappa.pool_shares(votes, labels, pool=pool)
    dummies = np.eye(m)[labels]
    for k, row in enumerate(found.table):
        fitted = sm.OLS((votes == k).mean(axis=1), dummies).fit(cov_type="HC2")
        assert row["share"] == pytest.approx(float(shares @ fitted.params), rel=1e-12)
        assert row["se"] == pytest.approx(float(shares @ fitted.cov_params() @ shares) ** 0.5, rel=1e-10)
    against = sm.OLS((votes != np.array(labels)[:, None]).mean(axis=1), dummies).fit()
    assert found.wrong == pytest.approx(sum(pool.values()) * float(shares @ against.params), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_one_factor_for_a_category_explains_no_more_than_all_labels(seed: int) -> None:
    votes, labels, pool = drawn(4, 400, seed)
    q = np.eye(4)[labels]
    for k, gain in enumerate(dhkappa.pool_shares(votes, labels, pool=pool).table.column("gain")):
        c = (votes[:, 0] == k).astype(float)
        means = np.array([c[np.array(labels) == j].mean() for j in range(4)])
        left = ((c - means[labels]) ** 2).sum()
        slope = np.cov(c, q[:, k])[0, 1] / q[:, k].var(ddof=1)
        one = ((c - c.mean() - slope * (q[:, k] - q[:, k].mean())) ** 2).sum()
        assert left <= one * (1 + 1e-12)
        assert gain > 1


@pytest.mark.parametrize(("n", "wrong"), [(30, 4), (30, 0), (12, 12)])
def test_single_votes_for_one_label_are_clopper_pearson(n: int, wrong: int) -> None:
    votes = [["a"]] * (n - wrong) + [["b"]] * wrong
    found = dhkappa.pool_shares(votes, ["a"] * n, pool={"a": 1000})
    expected = stats.binomtest(wrong, n).proportion_ci(0.95, "exact")
    limits = pytest.approx((1000 * expected.low, 1000 * expected.high), abs=1e-9)  # other rounding
    [row] = [row for row in found.table if row["category"] == "a"]
    assert (row["wrong_low"], row["wrong_high"]) == limits
    assert (found.wrong_low, found.wrong_high) == limits
