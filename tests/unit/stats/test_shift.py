"""Shifts of the categories' shares: against fractions, all divisions of the items, Pearson's chi-square, and a draw."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import dhkappa
from dhkappa.stats.shift import Shift, _chi_square, _groups, _Shares, shift_of_labels, shift_of_votes

Votes = Sequence[Sequence[str]]


def shares(votes: Votes) -> dict[str, Fraction]:
    """Return the mean over items of the share of the votes on an item, by loops."""
    found: dict[str, Fraction] = {}
    for item in votes:
        for vote in item:
            found[vote] = found.get(vote, Fraction(0)) + Fraction(1, len(item) * len(votes))
    return found


def drawn(accuracy: float, seed: int, n: int = 80, prevalence: Sequence[float] | None = None) -> dhkappa.Simulation:
    given: dict[str, Any] = {} if prevalence is None else {"prevalence": prevalence}
    return dhkappa.simulate(n, labelers={"llm": 0.8}, annotators=[accuracy] * 4, missing=0.2, rng=seed, **given)


def both(one: dhkappa.Simulation, other: dhkappa.Simulation) -> tuple[Shift, Shift]:
    estimates = [dhkappa.dh_kappa(sim.votes, sim.suggested["llm"]).estimate for sim in (one, other)]
    panels = [dhkappa.fleiss_kappa(sim.votes).estimate for sim in (one, other)]
    return shift_of_votes(*panels), shift_of_labels(*estimates)


ONE = [["a", "a", "b"], ["b", "b"], ["a", "c", "c"], ["a", "a"]]
OTHER = [["c", "c", "b"], ["d", "d"], ["c", "c", "c"]]


def test_distance_is_that_of_the_exact_shares() -> None:
    one, other = shares(ONE), shares(OTHER)
    distance = sum(abs(other.get(name, Fraction(0)) - one.get(name, Fraction(0))) for name in {*one, *other}) / 2
    found = shift_of_votes(dhkappa.fleiss_kappa(ONE).estimate, dhkappa.fleiss_kappa(OTHER).estimate)
    assert found.distance == float(distance) == float(Fraction(13, 18))
    assert (found.category, found.before, found.after) == ("a", float(one["a"]), 0.0)
    assert found.reason == "Fewer than two categories have enough items for a test."
    assert math.isnan(found.pvalue)


def test_statistic_has_the_moments_of_all_divisions_of_the_items() -> None:
    """Over all 1,287 divisions of 13 items into 5 and 8, the statistic has the rank as its mean, exactly."""
    rng = np.random.default_rng(1)
    votes = [[str(vote) for vote in rng.choice(3, 2 + item % 3, p=[0.5, 0.3, 0.2])] for item in range(13)]
    names = ["0", "1", "2"]

    def exact(first: Sequence[int]) -> float:
        c = np.array([[item.count(name) / len(item) for name in names] for item in votes])
        rest = [place for place in range(13) if place not in first]
        gap = c[rest].mean(axis=0) - c[list(first)].mean(axis=0)
        covariance = np.cov(c.T) * (1 / len(first) + 1 / len(rest))
        return float(gap @ np.linalg.pinv(covariance, rcond=1e-8) @ gap)

    values = [exact(first) for first in combinations(range(13), 5)]
    assert np.mean(values) == pytest.approx(2, abs=1e-9)  # the rank: shares of three categories sum to 1

    first = (0, 3, 4, 8, 11)
    parts = [[votes[i] for i in first], [votes[i] for i in range(13) if i not in first]]
    places: dict[tuple[type, Any], int] = {(str, name): place for place, name in enumerate(names)}
    samples = [_Shares(dhkappa.fleiss_kappa(part).estimate.sample.merged(), places, False) for part in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dhkappa.stats.shift._LEAST_EXPECTED", 0)
        found, df = _chi_square(samples[0], samples[1], 3)
    assert df == 2
    assert found == pytest.approx(exact(first), rel=1e-9)


def test_labels_have_pearsons_chi_square() -> None:
    one, other = drawn(0.8, 1, 120), drawn(0.8, 2, 90, [2, 1, 1])
    found = both(one, other)[1]
    counts = []
    for sim in (one, other):
        kappa = dhkappa.dh_kappa(sim.votes, sim.suggested["llm"])
        assert kappa.parts is not None
        counts.append([int(kappa.parts.L[label] * kappa.n_items) for label in "abc"])
    pearson, _, df, _ = chi2_contingency(counts, correction=False)
    n = np.sum(counts)
    assert found.df == df == 2
    assert found.chi_square == pytest.approx(pearson * (n - 1) / n, rel=1e-9)


def test_test_of_votes_agrees_with_a_permutation_test() -> None:
    one, other = drawn(0.75, 3, 120), drawn(0.75, 4, 100, [2, 1, 1])
    found = both(one, other)[0]
    c = []
    for sim in (one, other):
        items = [[vote for vote in item if vote is not None] for item in sim.votes.tolist()]
        c.append(np.array([[item.count(name) / len(item) for name in "abc"] for item in items if len(item) > 1]))
    whole, n = np.concatenate(c), len(c[0])
    inverse = np.linalg.pinv(np.cov(whole.T) * (1 / n + 1 / (len(whole) - n)), rcond=1e-8)
    rng, values = np.random.default_rng(5), []
    for _ in range(4_000):
        order = rng.permutation(len(whole))
        gap = whole[order[n:]].mean(axis=0) - whole[order[:n]].mean(axis=0)
        values.append(gap @ inverse @ gap)
    gap = c[1].mean(axis=0) - c[0].mean(axis=0)
    assert found.chi_square == pytest.approx(gap @ inverse @ gap, rel=1e-9)
    assert found.distance == pytest.approx(np.abs(gap).sum() / 2, rel=1e-12)
    permuted = np.mean(np.array(values) >= found.chi_square)
    assert 0.005 < permuted < 0.9
    assert found.pvalue == pytest.approx(permuted, abs=0.02)  # three standard errors of 4,000 draws


def test_a_population_is_not_called_shifted_and_another_is() -> None:
    pvalues = [both(drawn(0.9, 2 * seed), drawn(0.9, 2 * seed + 1))[0].pvalue for seed in range(120)]
    assert np.mean(np.array(pvalues) < 0.05) <= 0.1  # 0.05 plus 2.5 standard errors
    assert np.mean(np.array(pvalues) < 0.5) == pytest.approx(0.5, abs=0.14)
    moved = both(drawn(0.9, 1, 300), drawn(0.9, 2, 300, [3, 2, 1]))
    assert max(shift.pvalue for shift in moved) < 0.01


def test_rare_categories_are_joined() -> None:
    group, size = _groups(np.array([40.0, 2.0, 30.0, 1.0, 2.5]))
    assert (group.tolist(), size) == ([1, 0, 2, 0, 0], 3)
    group, size = _groups(np.array([40.0, 2.0, 30.0]))  # too rare alone: with the next
    assert (group.tolist(), size) == ([1, 0, 0], 2)
    assert _groups(np.array([1.0, 2.0]))[1] == 1


def test_a_category_that_is_new_counts_as_absent_before() -> None:
    one = dhkappa.fleiss_kappa([["a", "a"], ["b", "b"]] * 20).estimate
    other = dhkappa.fleiss_kappa([["a", "a"], ["z", "z"]] * 20).estimate
    found = shift_of_votes(one, other)
    assert (found.distance, found.df) == (0.5, 2)
    assert found.pvalue < 1e-6


def test_labels_of_other_types_are_other_categories() -> None:
    one, other = (dhkappa.fleiss_kappa([[a, a], [b, b]] * 20).estimate for a, b in ((1, 0), (True, False)))
    assert shift_of_votes(one, other).distance == 1


def test_no_change_has_no_category_and_pvalue_1() -> None:
    one = dhkappa.fleiss_kappa([["a", "a"], ["b", "b"]] * 20).estimate
    found = shift_of_votes(one, one)
    assert (found.distance, found.category, found.pvalue, found.reason) == (0, None, 1, None)


@pytest.mark.parametrize("how", ["weights", "strata", "pool"])
def test_designed_samples_are_not_tested(how: str) -> None:
    votes, n = [["a", "a"], ["b", "a"], ["b", "b"]] * 10, 30
    more: dict[str, dict[str, Any]] = {
        "weights": {"sample_weight": range(1, n + 1)},
        "strata": {"strata": ["x", "y"] * 15},
        "pool": {"pool": 99},
    }
    found = shift_of_votes(dhkappa.fleiss_kappa(votes).estimate, dhkappa.fleiss_kappa(votes, **more[how]).estimate)
    assert found.reason == "Samples with weights, strata or a pool are not tested."
    assert math.isnan(found.pvalue)
    assert found.distance == pytest.approx(0, abs=0.1)


def test_without_items_there_is_no_distance() -> None:
    found = shift_of_votes(dhkappa.fleiss_kappa(ONE).estimate, dhkappa.fleiss_kappa([["a"]]).estimate)
    assert (math.isnan(found.distance), found.reason) == (True, "There are no eligible items.")
    assert found.to_dict()["distance"] is None


def test_blocks_of_patterns_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = drawn(0.7, 1), drawn(0.7, 2)
    whole = both(one, other)[0]
    monkeypatch.setattr("dhkappa.stats.shift._BLOCK", 7)
    assert both(one, other)[0].chi_square == pytest.approx(whole.chi_square, rel=1e-12)
