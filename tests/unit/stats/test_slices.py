"""Kappa of many groups at once against dh_kappa of each group alone."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dhkappa import dh_kappa
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats import slices
from dhkappa.stats.slice_differences import GroupKappas
from dhkappa.stats.slices import kappa_by_group

Array = npt.NDArray[Any]


def by_group(votes: Array, suggested: Array, group: Array, size: int, level: float = 0.95) -> GroupKappas:
    return kappa_by_group(*read_votes(votes, suggested).distinct_patterns(), group, size, level)


def check(votes: Array, suggested: Array, group: Array, size: int, level: float = 0.95) -> None:
    """Values and standard errors have the bits of dh_kappa; limits are from another quantile function."""
    found = by_group(votes, suggested, group, size, level)
    for place in range(size):
        rows = group == place
        if not rows.any():
            assert found.items[place] == 0
            assert math.isnan(found.kappa[place])
            continue
        alone = dh_kappa(votes[rows], suggested[rows])
        limits = list(alone.confidence_interval(level))
        assert found.items[place] == alone.n_items
        np.testing.assert_array_equal([found.kappa[place], found.se[place]], [alone.value, alone.se])
        np.testing.assert_allclose([found.low[place], found.high[place]], limits, rtol=0, atol=1e-10)


def draw(n: int, N: int, m: int, accuracy: float, missing: float, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, m, n)
    votes = np.where(rng.random((n, N)) < accuracy, truth[:, None], rng.integers(0, m, (n, N))).astype(object)
    votes[rng.random((n, N)) < missing] = None
    suggested = np.where(rng.random(n) < accuracy, truth, rng.integers(0, m, n)).astype(object)
    suggested[rng.random(n) < missing / 4] = None
    return votes, suggested


@pytest.mark.parametrize("accuracy", [0.4, 0.9, 1.0])
@pytest.mark.parametrize("missing", [0, 0.3])
@pytest.mark.parametrize(("n", "N", "m", "size"), [(1, 2, 2, 1), (40, 2, 1, 3), (200, 3, 2, 9), (300, 5, 6, 20)])
def test_as_each_group_alone(n: int, N: int, m: int, size: int, accuracy: float, missing: float) -> None:
    votes, suggested = draw(n, N, m, accuracy, missing, seed=n + m)
    check(votes, suggested, np.random.default_rng(1).integers(0, size, n), size)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_confidence_level(level: float) -> None:
    votes, suggested = draw(200, 3, 3, 0.8, 0, seed=5)
    check(votes, suggested, np.arange(200) % 4, 4, level)


def test_groups_of_two_items() -> None:
    votes, suggested = draw(60, 3, 3, 0.7, 0, seed=7)
    check(votes, suggested, np.arange(60) // 2, 30)
    assert (by_group(votes, suggested, np.arange(60) // 2, 30).se > 0).any()


def test_groups_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_BLOCK", 8)
    votes, suggested = draw(300, 3, 4, 0.8, 0.1, seed=2)
    check(votes, suggested, np.arange(300) % 7, 7)


def test_integers_beyond_53_bits() -> None:
    votes, suggested = draw(3_000, 13, 3, 0.7, 0.2, seed=3)  # the numbers of votes have a large common multiple
    check(votes, suggested, np.arange(3_000) % 2, 2)


def test_ratios_of_integers_beyond_53_bits_are_rounded_once() -> None:
    votes, suggested = draw(12_000, 7, 3, 0.7, 0.3, seed=6)  # 2^53 < 2 pair_unit vote_unit^2 n^3 < 2^63
    check(votes, suggested, np.arange(12_000) % 6, 6)


def test_votes_per_item_without_a_small_common_multiple() -> None:
    votes, suggested = draw(200, 60, 3, 0.8, 0.5, seed=4)
    check(votes, suggested, np.arange(200) % 3, 4)


def test_group_with_one_odd_item_in_two_million() -> None:
    n = 2_000_000
    votes, suggested = np.zeros((n + 20, 2), np.int8), np.zeros(n + 20, np.int8)
    votes[0, 0] = 1
    votes[n:], suggested[n:] = np.arange(20)[:, None] % 2, np.arange(20) % 3 == 0
    group = np.repeat([0, 1], [n, 20])
    check(votes, suggested, group, 2)


def test_no_eligible_item() -> None:
    found = by_group(np.array([["a", None], ["b", None]]), np.array(["a", "b"]), np.array([0, 1]), 2)
    assert found.items.tolist() == [0, 0]
    assert found.items.dtype == np.int64
    assert np.isnan(found.kappa).all()
