"""Bootstrap with agreement weights, against the standard error and enumerated replicates."""

from fractions import Fraction

import numpy as np
import pytest
from weighted_cases import KINDS, kappa_of, ordered

from dhkappa import dh_kappa
from weighted_oracle import items_of, named_weights

F = Fraction


@pytest.mark.parametrize("kind", KINDS)
def test_bootstrap_against_the_standard_error(kind: str) -> None:
    kappa = kappa_of(ordered(400, seed=2), kind)
    drawn = kappa.bootstrap(2_000, rng=1)
    assert drawn.kappa == kappa.value
    assert drawn.sd == pytest.approx(kappa.se, rel=0.1)
    assert drawn.mean == pytest.approx(kappa.value, abs=0.1 * kappa.se + 0.002)
    for method in ("bootstrap", "bca"):
        low, high = kappa.confidence_interval(method=method, n_resamples=2_000, rng=1)
        wald = kappa.confidence_interval(method="wald")
        assert (low, high) == pytest.approx((wald.low, wald.high), abs=0.6 * kappa.se)


def test_bootstrap_replicates_are_kappas_of_their_items() -> None:
    """With two items a replicate is one of three samples."""
    votes, labels = [[0, 1, 1], [2, 2, 1]], [1, 2]
    drawn = set(
        np.round(dh_kappa(votes, labels, categories=range(3), weights="linear").bootstrap(50, rng=1).values, 12)
    )
    expected = set()
    for chosen in ([0, 0], [0, 1], [1, 1]):
        items = items_of([votes[i] for i in chosen], [labels[i] for i in chosen], range(3), named_weights("linear", 3))
        expected.add(round(float(items.kappa), 12))
    assert drawn == expected


def test_bootstrap_with_identity_weights() -> None:
    data = ordered(50, seed=12)
    plain, same = (kappa_of(data, w).bootstrap(200, rng=5).values for w in (None, np.eye(5)))
    assert same == pytest.approx(plain, rel=1e-12, abs=1e-13)
