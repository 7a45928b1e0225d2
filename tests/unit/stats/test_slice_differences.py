"""Differences between groups and kappa within groups, against loops, exact fractions and worked examples."""

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from dhkappa import dh_kappa
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.multiple_tests import false_discovery
from dhkappa.stats.slice_differences import GroupKappas, differences, kappa_within, shrunk
from dhkappa.stats.slices import kappa_by_group

VOTES = [[1, 1, 1], [1, 1, 2], [2, 2, 2], [1, 2, 3], [3, 3, 3], [2, 2, 2]]
LABELS = [1, 1, 2, 2, 3, 3]


def groups_of(votes: Any, labels: Any, group: Any) -> GroupKappas:
    return kappa_by_group(*read_votes(votes, labels).distinct_patterns(), np.array(group), max(group) + 1)


def drawn(n: int, S: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    votes = np.where(rng.random((n, 3)) < 0.8, truth[:, None], rng.integers(0, 3, (n, 3)))
    labels = np.where(rng.random(n) < 0.7, truth, rng.integers(0, 3, n))
    return votes, labels, rng.integers(0, S, n) if S > 2 else np.arange(n) % S


def by_hand(votes: Any, labels: Any, group: Any, level: float) -> list[tuple[float, ...]]:
    """The differences by their definition, with a loop over the others for each group."""
    S, z = max(group) + 1, NormalDist().inv_cdf((1 + level) / 2)
    alone = [dh_kappa(votes[group == s], labels[group == s]) for s in range(S)]
    found: list[tuple[float, ...]] = []
    for s in range(S):
        others = [r for r in range(S) if r != s]
        a = {r: alone[r].n_items * float(1 - alone[r].parts.E) for r in others}  # type: ignore[union-attr]
        b = {r: a[r] / sum(a.values()) for r in others}
        delta = alone[s].value - sum(b[r] * alone[r].value for r in others)
        limits = [alone[r].confidence_interval(level) for r in range(S)]
        down = math.hypot(alone[s].value - limits[s].low, *(b[r] * (limits[r].high - alone[r].value) for r in others))
        up = math.hypot(limits[s].high - alone[s].value, *(b[r] * (alone[r].value - limits[r].low) for r in others))
        p = 2 * NormalDist().cdf(-z * abs(delta) / (down if delta > 0 else up))
        found.append((delta, delta - down, delta + up, p))
    return found


@pytest.mark.parametrize(("S", "level"), [(2, 0.95), (3, 0.95), (6, 0.8)])
def test_differences_as_by_hand(S: int, level: float) -> None:
    votes, labels, group = drawn(240, S, S)
    found = differences(groups_level(votes, labels, group, level), np.ones(S, bool), level)
    np.testing.assert_allclose(np.transpose(found), by_hand(votes, labels, group, level), rtol=1e-9, atol=1e-12)
    for low, high, p in zip(found.low, found.high, found.pvalue, strict=True):
        assert (p < 1 - level) == (low > 0 or high < 0)
    if S == 2:
        assert found.value[0] == -found.value[1]


def groups_level(votes: Any, labels: Any, group: Any, level: float) -> GroupKappas:
    return kappa_by_group(*read_votes(votes, labels).distinct_patterns(), group, int(group.max()) + 1, level)


def test_worked_example() -> None:
    groups = groups_of(VOTES, LABELS, [0, 0, 0, 1, 1, 1])
    found = differences(groups, np.array([True, True]), 0.95)
    np.testing.assert_allclose(found.value, [807 / 1066, -807 / 1066], rtol=1e-15)
    np.testing.assert_allclose(
        [found.low[0], found.high[0], found.pvalue[0]], [-0.764338, 1.634143, 0.329422], atol=1e-6
    )
    np.testing.assert_allclose(groups.low, [-0.4696, -0.8346], atol=5e-5)
    np.testing.assert_allclose(groups.high, [0.9978, 0.8953], atol=5e-5)
    within = kappa_within(groups)
    assert within.value == pytest.approx(61 / 160, abs=1e-15)
    assert within.se == pytest.approx(math.sqrt(19281807 / 204800000), abs=1e-15)


def test_groups_that_are_not_compared() -> None:
    votes, labels, group = drawn(300, 4, 1)
    groups, three = groups_of(votes, labels, group), np.array([True, False, True, True])
    found = differences(groups, three, 0.95)
    assert np.isnan(found.value).tolist() == [False, True, False, False]
    kept = np.isin(group, [0, 2, 3])
    alone = groups_of(votes[kept], labels[kept], np.searchsorted([0, 2, 3], group[kept]))
    assert found.value[three].tolist() == differences(alone, np.ones(3, bool), 0.95).value.tolist()
    one = differences(groups, np.array([True, False, False, False]), 0.95)
    assert np.isnan(one).all()


def test_equal_kappas_do_not_differ() -> None:
    votes, labels, _ = drawn(60, 1, 2)
    doubled = groups_of(np.concatenate([votes] * 3), np.concatenate([labels] * 3), np.repeat([0, 1, 2], 60))
    found = differences(doubled, np.ones(3, bool), 0.95)
    np.testing.assert_allclose(found.value, 0, atol=1e-15)
    np.testing.assert_allclose(found.pvalue, 1, atol=1e-12)


def within_by_fractions(votes: Any, labels: Any, group: Any) -> tuple[Fraction, Fraction]:
    """Kappa within groups and its variance: the derivative by the weight of each item, in fractions."""
    n, items = len(labels), list(range(len(labels)))

    def c(i: int, j: int) -> Fraction:
        return Fraction(list(votes[i]).count(j), len(votes[i]))

    def d(i: int) -> Fraction:
        N, kinds = len(votes[i]), set(votes[i])
        pairs = {j: Fraction(math.comb(list(votes[i]).count(j), 2), math.comb(N, 2)) for j in kinds}
        return 2 * pairs.get(labels[i], Fraction(0)) - sum(pairs.values())

    values = {int(v) for row in votes for v in row} | {int(v) for v in labels}
    E, eps = {}, {}
    for s in set(group):
        own = [i for i in items if group[i] == s]
        C = {j: sum((c(i, j) for i in own), Fraction(0)) / len(own) for j in values}
        L = {j: Fraction(sum(labels[i] == j for i in own), len(own)) for j in values}
        E[s] = sum((C[j] ** 2 * (2 * L[j] - 1) for j in values), Fraction(0))
        for i in own:
            by_votes = sum(2 * C[j] * (2 * L[j] - 1) * (c(i, j) - C[j]) for j in values)
            eps[i] = by_votes + sum(2 * C[j] ** 2 * ((labels[i] == j) - L[j]) for j in values)
    D: Fraction = sum(map(d, items), Fraction(0)) / n
    mean_E: Fraction = sum((E[s] for s in group), Fraction(0)) / n
    kappa = (D - mean_E) / (1 - mean_E)
    phi = [(d(i) - 1 + (1 - kappa) * (1 - E[group[i]] - eps[i])) / (1 - mean_E) for i in items]
    assert sum(phi) == 0
    return kappa, sum((x * x for x in phi), Fraction(0)) / (n * (n - 1))


@pytest.mark.parametrize("seed", range(6))
def test_kappa_within_as_in_fractions(seed: int) -> None:
    votes, labels, group = drawn(40, 3, seed)
    kappa, variance = within_by_fractions(votes.tolist(), labels.tolist(), group.tolist())
    found = kappa_within(groups_of(votes, labels, group))
    assert found.value == pytest.approx(float(kappa), abs=1e-14)
    assert found.se == pytest.approx(math.sqrt(variance), rel=1e-12)


def test_simpson() -> None:
    """The label carries nothing but the group."""
    votes = [[1, 1]] * 9 + [[2, 2]] * 10 + [[1, 1]]
    labels = [1] * 10 + [2] * 10
    groups = groups_of(votes, labels, [0] * 10 + [1] * 10)
    assert groups.kappa.tolist() == [0, 0]
    assert kappa_within(groups).value == 0
    assert dh_kappa(votes, labels).exact == Fraction(4, 5)


def test_reversal() -> None:
    """A is better than B in both groups, and worse on all items."""
    truth = [1, 1, 1, 1, 2, 2, 2, 2, 1, 2]
    votes, group = [[value] * 2 for value in truth], [0] * 5 + [1] * 5
    a, b = [2, 2, 2, 1, 2, 2, 1, 1, 1, 1], [1, 1, 1, 2, 1, 2, 2, 2, 2, 1]
    assert [dh_kappa(votes, labels).exact for labels in (a, b)] == [Fraction(-1, 5), Fraction(1, 5)]
    assert groups_of(votes, a, group).kappa.tolist() == [2 / 17, 2 / 17]
    assert groups_of(votes, b, group).kappa.tolist() == [-1 / 4, -1 / 4]
    assert kappa_within(groups_of(votes, a, group)).value == pytest.approx(2 / 17, abs=1e-15)


def test_group_with_one_category_drops_out() -> None:
    votes, labels, _ = drawn(60, 1, 3)
    votes, labels = np.concatenate([votes, np.ones((20, 3), int)]), np.concatenate([labels, np.ones(20, int)])
    whole = groups_of(votes, labels, np.repeat([0, 1], [60, 20]))
    assert np.isnan(whole.kappa[1])
    assert kappa_within(whole).value == pytest.approx(whole.kappa[0], abs=1e-15)


def test_kappa_within_is_unknown() -> None:
    one = groups_of([[1, 1]], [1], [0])
    assert math.isnan(kappa_within(one).value)
    constant = groups_of([[1, 1]] * 4, [1] * 4, [0] * 4)
    assert math.isnan(kappa_within(constant).value)
    wrong = kappa_within(groups_of([[1, 1]] * 4, [2] * 4, [0, 0, 1, 1]))
    assert wrong.value == 0
    assert math.isnan(wrong.se)  # no variation
    right = kappa_within(groups_of([[1, 1], [2, 2]] * 4, [1, 2] * 4, [0, 0, 1, 1] * 2))
    assert right == (1, 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_items(weighted: bool) -> None:
    votes, labels, group = drawn(90, 3, 4)
    weight = np.random.default_rng(1).integers(1, 4, 90) if weighted else np.ones(90)
    read = read_votes(votes, labels)
    rows, row = read.distinct_patterns()
    from dataclasses import replace

    kinds, place = np.unique(np.column_stack([row, weight]), axis=0, return_inverse=True)
    known = replace(rows, patterns=rows.patterns.take(kinds[:, 0].astype(int)), weight=kinds[:, 1].astype(float))
    found = kappa_by_group(known, place.ravel(), group, 3)  # NumPy 2.0.0 returns a column
    for s in range(3):
        alone = dh_kappa(votes[group == s], labels[group == s], sample_weight=weight[group == s])
        assert found.kappa[s] == alone.value
        assert found.se[s] == pytest.approx(alone.se, rel=1e-13)
        assert found.weight[s] == weight[group == s].sum()
    plain = groups_of(votes, labels, group)
    if not weighted:
        for name in ("missed", "not_by_chance", "spread", "weight", "uu", "ue", "ee"):
            np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-12)
        assert kappa_within(found).se == pytest.approx(kappa_within(plain).se, rel=1e-12)
    share = found.weight / found.weight.sum()
    kappa = 1 - (share @ found.missed) / (share @ found.not_by_chance)
    assert kappa_within(found).value == pytest.approx(kappa, abs=1e-15)


def test_false_discovery() -> None:
    scipy = pytest.importorskip("scipy.stats")
    p = np.random.default_rng(1).random(40) ** 3
    np.testing.assert_allclose(false_discovery(p), scipy.false_discovery_control(p), rtol=1e-13)
    assert np.isnan(false_discovery(np.array([0.1, math.nan]))).tolist() == [False, True]


def test_shrunk() -> None:
    kappa, spread = np.array([0.2, 0.5, 0.8, math.nan, 0.4]), np.array([0.01, 0.0004, 0.01, 0.01, math.nan])
    found = shrunk(kappa, spread)
    assert 0.2 < found[0] < found[1] < found[2] < 0.8
    assert math.isnan(found[3])
    assert found[4] == 0.4
    assert abs(found[1] - 0.5) < abs(found[0] - 0.2)
    # DerSimonian and Laird by hand, of two kappas with equal variances
    two = shrunk(np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    between = (10 * 0.5 - 1) / (20 - 200 / 20)
    np.testing.assert_allclose(two, [0.5 - 0.5 * between / (between + 0.1), 0.5 + 0.5 * between / (between + 0.1)])
    assert shrunk(np.array([0.4, 0.4]), np.array([0.1, 0.1])).tolist() == [0.4, 0.4]
