"""Permutation test with agreement weights, against all permutations and loops over pairs of votes."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from weighted_cases import KINDS, differentials, kappa_of, ordered, rows_of, weighted_data

from dhkappa.stats.permutation import above_random, group_items, label_scores, permutation_moments
from exact import float_terms
from strategies import Data
from weighted_oracle import Items, items_of, named_weights

F = Fraction
METHODS = ("exact", "gamma", "monte-carlo")


@given(weighted_data(max_items=6))
def test_moments_against_all_permutations(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    _, every = differentials(items)
    mean = sum(every, F(0)) / len(every)
    variance = sum(((D - mean) ** 2 for D in every), F(0)) / len(every)
    known = float_terms(kappa_of(data, weights))
    found = permutation_moments(known, group_items(known, label_scores(known)))
    assert found == pytest.approx((float(mean), float(variance)), rel=1e-9, abs=1e-14)
    assert (found[1] == 0) == (variance == 0)


@settings(max_examples=50)
@given(weighted_data(max_items=6), st.sampled_from(["greater", "two-sided"]))
def test_exact_pvalue_against_all_permutations(drawn: tuple[Data, Any, Items], alternative: str) -> None:
    data, weights, items = drawn
    D, every = differentials(items)
    mean = sum(every, F(0)) / len(every)
    as_far = [
        other - mean >= D - mean if alternative == "greater" else abs(other - mean) >= abs(D - mean) for other in every
    ]
    test = kappa_of(data, weights).permutation_test(alternative=alternative)
    assert test.pvalue == pytest.approx(float(F(sum(as_far), len(every))), rel=1e-12)
    assert test.method == "exact"
    assert test.difference == pytest.approx(float((D - mean) / (1 - items.E)), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_methods_agree(kind: str) -> None:
    data = ordered(12, seed=4, labels=1.0)
    kappa = kappa_of(data, kind)
    exact, z, drawn = (kappa.permutation_test(method, n_resamples=20_000, rng=1) for method in METHODS)
    assert (exact.difference, exact.z) == (z.difference, z.z)
    assert 0.001 < exact.pvalue < 0.5
    # Four standard errors of a share of 20,000 draws.
    assert drawn.pvalue == pytest.approx(exact.pvalue, abs=4 * math.sqrt(exact.pvalue / 20_000))
    assert z.pvalue == pytest.approx(exact.pvalue, abs=0.03)


@pytest.mark.parametrize("method", [None, *METHODS])
def test_identity_weights_have_the_test_of_the_paper(method: str | None) -> None:
    data = ordered(12, seed=5, labels=1.0)
    plain, same = (kappa_of(data, w).permutation_test(method, rng=3) for w in (None, np.eye(5)))
    assert same.method == plain.method
    assert (same.pvalue, same.difference, same.z) == pytest.approx((plain.pvalue, plain.difference, plain.z), rel=1e-12)


def test_many_items_have_a_gamma_test() -> None:
    test = kappa_of(ordered(3000, seed=1), "quadratic").permutation_test()
    assert (test.method, test.alternative) == ("gamma", "greater")
    assert test.z > 20


@pytest.mark.parametrize("kind", KINDS)
def test_random_labels_are_rejected_as_often_as_stated(kind: str) -> None:
    rng = np.random.default_rng(8)
    pvalues = []
    for seed in range(200):
        data = ordered(30, seed=seed)
        pvalues.append(
            kappa_of(replace(data, suggested=rng.integers(0, 5, 30).tolist()), kind).permutation_test().pvalue
        )
    assert np.mean(np.array(pvalues) < 0.1) == pytest.approx(0.1, abs=0.07)  # three standard deviations


def test_labels_near_the_votes_are_better_than_random_only_with_weights() -> None:
    """Every label is one step from the unanimous vote: no pair agrees on it, but nearly."""
    truth = [1, 2, 3] * 8
    data = Data(tuple(range(5)), [[code] * 3 for code in truth], [code + 1 for code in truth])
    assert kappa_of(data, None).permutation_test().pvalue > 0.5
    assert kappa_of(data, "quadratic").permutation_test().pvalue < 0.001


@pytest.mark.parametrize("kind", KINDS)
def test_wald_test_with_sample_weights(kind: str) -> None:
    data = ordered(40, seed=6)
    weight = [1, 2, 4, 5] * 10
    items = items_of(data.votes, data.suggested, data.categories, named_weights(kind, 5), weight)
    test = kappa_of(data, kind, sample_weight=weight).permutation_test()
    se = math.sqrt(items.variance(lambda of: of.above_random))
    assert test.method == "wald"
    assert test.z == pytest.approx(float(items.above_random) / se, rel=1e-10)
    assert test.difference == pytest.approx(float(items.kappa - items.random), rel=1e-12)


@given(weighted_data(max_items=7), st.integers(0, 6))
def test_influence_on_above_random_is_its_derivative(drawn: tuple[Data, Any, Items], item: int) -> None:
    data, weights, items = drawn
    assume(items.D0 != 1)
    kappa = kappa_of(data, weights)
    value, phi = above_random(float_terms(kappa))
    item %= len(items.votes)
    scale = float(1 - items.D0) ** 2
    assert value == pytest.approx(float(items.above_random), rel=1e-12, abs=1e-13 / scale)
    expected = float(items.influence(lambda of: of.above_random, item))
    assert phi[rows_of(kappa, items)[item]] == pytest.approx(expected, rel=1e-11, abs=1e-13 / scale)
