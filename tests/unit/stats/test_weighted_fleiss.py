"""Fleiss' kappa with agreement weights, against loops, other packages and by hand."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from weighted_cases import KINDS, labelers_of

from dhkappa import audit, fleiss_kappa
from dhkappa.stats.kappa import fleiss_estimate
from dhkappa.stats.weights import agreement_weights
from strategies import Data, ragged
from weighted_oracle import items_of, named_weights, random_weights

F = Fraction


@settings(max_examples=50)
@given(ragged(max_items=10, max_votes=5, max_categories=4), st.integers(0, 2**32), st.integers(0, 9))
def test_fleiss_against_loops(data: Data, seed: int, item: int) -> None:
    data = data.coded()
    m = len(data.categories)
    w = random_weights(Random(seed), m)
    items = items_of(data.votes, [0] * len(data.votes), data.categories, w)
    assume(items.votes)
    kappa = fleiss_kappa(data.votes, categories=data.categories, weights=w)
    assert kappa.metric == "weighted-fleiss"
    assert (kappa.exact, kappa.estimate.fleiss) == (items.fleiss, items.fleiss)
    if items.fleiss is not None and len(items.votes) > 1:
        variance = float(items.variance(lambda of: of.fleiss))
        assert (math.isnan(kappa.se) and variance < 1e-20) or kappa.se == pytest.approx(math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("weight", [None, [1, 3, 2] * 10])
def test_fleiss_interval(weight: list[int] | None) -> None:
    votes, _ = labelers_of(30, seed=1)
    kappa = fleiss_kappa(votes, categories=range(5), weights="quadratic", sample_weight=weight)
    items = items_of(votes, [0] * 30, range(5), named_weights("quadratic", 5), weight or ())
    assert kappa.exact == items.fleiss
    assert kappa.se == pytest.approx(math.sqrt(items.variance(lambda of: of.fleiss)), rel=1e-11)
    interval = kappa.confidence_interval()
    assert interval.method == "wald"
    assert interval.low < kappa.value < interval.high
    assert repr(kappa).startswith("weighted Fleiss' kappa 0.")


def test_fleiss_with_identity_weights() -> None:
    votes, _ = labelers_of(40, seed=2)
    plain, same = fleiss_kappa(votes), fleiss_kappa(votes, categories=range(5), weights=np.eye(5))
    assert (same.exact, same.se) == (plain.exact, plain.se)
    low, high = plain.confidence_interval(method="wald")
    assert tuple(same.confidence_interval()) == (low, high)
    assert [note.code for note in same.notes] == [note.code for note in plain.notes]


@pytest.mark.parametrize("kind", KINDS)
def test_fleiss_is_that_of_irrcac(kind: str) -> None:
    pd, raw = pytest.importorskip("pandas"), pytest.importorskip("irrCAC.raw")
    votes, _ = labelers_of(50, seed=3)
    other = raw.CAC(pd.DataFrame(votes), weights=kind, categories=list(range(5)), digits=12).fleiss()["est"]
    found = fleiss_kappa(votes, categories=range(5), weights=kind)
    assert found.value == pytest.approx(other["coefficient_value"], abs=1e-11)


def test_fleiss_with_quadratic_weights_is_interval_alpha() -> None:
    """Alpha draws pairs without replacement: 1 - alpha = (1 - kappa) (nN - 1) / nN."""
    krippendorff = pytest.importorskip("krippendorff")
    votes, _ = labelers_of(40, seed=4)
    alpha = krippendorff.alpha(np.array(votes, float).T, level_of_measurement="interval", value_domain=list(range(5)))
    found = fleiss_kappa(votes, categories=range(5), weights="quadratic").value
    assert 1 - alpha == pytest.approx((1 - found) * 119 / 120, rel=1e-12)


def test_fleiss_of_two_annotators_by_hand() -> None:
    """Votes 1 1, 1 2, 2 3, 3 3 agree by 1, 1/2, 1/2, 1; shares are 3/8, 2/8, 3/8 and wC = 4/8, 5/8, 4/8."""
    found = fleiss_kappa([[1, 1], [1, 2], [2, 3], [3, 3]], categories=[1, 2, 3], weights="linear")
    chance = F(3 * 4 + 2 * 5 + 3 * 4, 64)
    assert found.exact == (F(3, 4) - chance) / (1 - chance)
    assert found.to_dict()["metric"] == "weighted-fleiss"


def test_fleiss_is_undefined_if_all_weights_are_1() -> None:
    found = fleiss_kappa([[0, 1], [1, 0]], categories=[0, 1], weights=[[1, 1], [1, 1]])
    assert (found.exact, found.reason) == (None, "Every category that occurs has weight 1 with every other.")
    assert fleiss_kappa([[0, 0]], categories=[0, 1], weights="linear").reason == "Every vote is the same category."


def test_fleiss_of_an_audit_has_the_weights_of_the_audit() -> None:
    votes, labels = labelers_of(40, seed=4)
    sample = fleiss_kappa(votes, categories=range(5)).sample
    for kind in (None, *KINDS):
        weights = None if kind is None else agreement_weights(kind, 5)
        expected = fleiss_kappa(votes, categories=range(5), weights=kind)
        found = fleiss_estimate(sample, weights)
        assert (found.exact, found.metric) == (expected.exact, expected.metric)
        audited = audit(np.array(votes), labels, categories=range(5), weights=kind, progress=False)
        assert audited.fleiss.exact == expected.exact
