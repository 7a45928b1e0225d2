"""Intervals of weighted means, against Clopper-Pearson and worked examples."""

import numpy as np
import pytest
from scipy import stats

from dhkappa.stats.mean_intervals import mean_basis, mean_limits, own_basis


@pytest.mark.parametrize(("n", "k"), [(5, 4), (20, 20), (20, 0), (100, 93), (1, 1), (3, 0)])
def test_equal_weights_of_zeros_and_ones_are_clopper_pearson(n: int, k: int) -> None:
    low, high = mean_limits(mean_basis(np.ones(n), np.repeat([1.0, 0.0], [k, n - k])), 0.05)
    expected = stats.binomtest(k, n).proportion_ci(0.95, "exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)  # other rounding


Limits = tuple[float, float]
# Votes 300/1, 210/1, 030/2, 111/2, 003/3, 030/3: shares of the votes, and labels.
_SHARES = np.array([[3, 0, 0], [2, 1, 0], [0, 3, 0], [1, 1, 1], [0, 0, 3], [0, 3, 0]]) / 3
_LABELS = np.eye(3)[[0, 0, 1, 1, 2, 2]]


@pytest.mark.parametrize(
    ("category", "recall", "precision"),
    [
        (0, (0.153221, 0.999069), (0.151598, 0.989254)),
        (1, (0.028752, 0.971248), (0.083711, 0.984793)),
        (2, (0.036240, 0.999777), (0.012579, 0.987421)),
    ],
)
def test_limits_of_recall_and_precision_are_those_of_a_worked_example(
    category: int, recall: Limits, precision: Limits
) -> None:
    votes, labels = _SHARES[:, category], _LABELS[:, category]
    assert mean_limits(mean_basis(votes, labels), 0.05) == pytest.approx(recall, abs=5e-7)  # printed digits
    assert mean_limits(mean_basis(labels, votes), 0.05) == pytest.approx(precision, abs=5e-7)


def test_patterns_count_as_often_as_they_have_items() -> None:
    weights, values, items = np.array([0.5, 1.0, 0.0]), np.array([0.2, 1.0, 0.3]), np.array([3, 2, 4])
    once = mean_basis(weights, values, items)
    each = mean_basis(np.repeat(weights, items), np.repeat(values, items))
    assert once.n == each.n == 5
    assert mean_limits(once, 0.1) == pytest.approx(mean_limits(each, 0.1), rel=1e-12)


def test_limits_of_many_means_are_those_of_each() -> None:
    ways = [mean_basis(_SHARES[:, j], _LABELS[:, j]) for j in range(3)]
    many = own_basis(
        *(np.array([getattr(way, name) for way in ways]) for name in ("value", "n", "squares", "low_share"))
    )
    expected = np.array([mean_limits(way, 0.05) for way in ways]).T
    np.testing.assert_array_equal(np.array(mean_limits(many, 0.05)), expected)


def test_standard_error_of_one_item_is_unknown_and_of_six_is_that_of_the_example() -> None:
    assert np.isnan(mean_basis(np.ones(1), np.ones(1)).se)
    assert mean_basis(_SHARES[:, 0], _LABELS[:, 0]).se ** 2 == pytest.approx(19 / 432)


def test_means_without_weight_are_undefined() -> None:
    basis = mean_basis(np.zeros(2), np.ones(2))
    assert np.isnan(basis.value)
    assert np.isnan(mean_limits(basis, 0.05)).all()
