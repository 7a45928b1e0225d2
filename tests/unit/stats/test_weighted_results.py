"""Estimates and baselines with agreement weights, against loops over pairs of votes."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from weighted_cases import KINDS, differentials, kappa_of, weighted_data

from dhkappa import dh_kappa, fleiss_kappa
from dhkappa.stats.kappa import estimate_dh
from strategies import Data, ragged
from weighted_oracle import Items, items_of, named_weights

F = Fraction


@given(weighted_data())
def test_baselines_against_loops(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    found = kappa_of(data, weights).estimate
    assert found.exact == items.kappa
    assert found.fleiss == items.fleiss
    assert (found.baselines.random, found.baselines.majority) == (items.random, items.majority)


@given(weighted_data(max_items=5))
def test_random_is_the_mean_over_all_permutations(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    _, every = differentials(items)
    mean = sum(every, F(0)) / len(every)
    assert kappa_of(data, weights).estimate.baselines.random == (mean - items.E) / (1 - items.E)


@given(ragged().filter(lambda data: dh_kappa(data.written_votes, data.written_suggested).exact is not None))
def test_identity_weights_have_the_baselines_of_the_paper(data: Data) -> None:
    data = data.coded()
    plain = estimate_dh(kappa_of(data, None).estimate.sample)
    found = kappa_of(data, named_weights("identity", len(data.categories))).estimate
    assert (found.exact, found.baselines, found.fleiss) == (plain.exact, plain.baselines, plain.fleiss)


def test_baselines_with_sample_weights_and_strata() -> None:
    votes = [[0, 1, 2], [0, 0, 1], [2, 2, 1], [1, 1, 1], [0, 2, None], [3, 3, 2]]
    labels, weight = [0, 1, 2, 1, 0, 3], [F(1, 2), 3, 1, F(7, 4), 2, 1]
    for kind in KINDS:
        items = items_of(votes, labels, range(4), named_weights(kind, 4), weight)
        kappa = dh_kappa(votes, labels, categories=range(4), weights=kind, sample_weight=[float(w) for w in weight])
        found = kappa.estimate
        assert (found.exact, found.fleiss) == (items.kappa, items.fleiss)
        assert (found.baselines.random, found.baselines.majority) == (items.random, items.majority)
        assert kappa.above_random == pytest.approx(float(items.above_random), rel=1e-13)


def test_estimates_that_are_undefined() -> None:
    """Undefined with equal labels, and with weights that make all categories agree; the parts stay."""
    same = dh_kappa([[1, 1], [1, 1]], [1, 1], categories=[1, 2], weights="linear")
    plain = dh_kappa([[1, 1], [1, 1]], [1, 1], categories=[1, 2])
    assert (same.metric, same.exact, same.reason) == ("weighted", None, plain.reason)
    assert same.parts is not None
    assert same.estimate.weights is not None
    fleiss = fleiss_kappa([[1, 1], [1, 1]], categories=[1, 2], weights="linear")
    assert (fleiss.metric, fleiss.reason) == ("weighted-fleiss", fleiss_kappa([[1, 1], [1, 1]]).reason)
    assert fleiss.parts is not None
    assert fleiss.estimate.weights is not None
    assert fleiss.n_items == 2
    near = fleiss_kappa([[1, 2], [1, 1]], categories=[1, 2], weights=[[1, 1], [1, 1]])
    assert (near.exact, near.reason) == (None, "Every category that occurs has weight 1 with every other.")
    assert fleiss_kappa([[1, 2], [1, 1], [2, 2]], categories=[1, 2], weights="linear").reason is None


def test_reason_of_kappa() -> None:
    votes, labels = [[1, 2], [1, 1], [2, 2]], [1, 2, 2]
    assert dh_kappa(votes, labels, categories=[1, 2], weights="linear").reason is None
    near = dh_kappa(votes, labels, categories=[1, 2], weights=[[1, 1], [1, 1]])
    assert (near.exact, near.reason) == (None, "Every category that occurs has weight 1 with every other.")
