"""Bootstrap and standard error with weights, strata and pools, against resampled items."""

import math
from typing import Any

import numpy as np
import pytest

from dhkappa import Kappa, dh_kappa
from strategies import Data, from_counts


def call(data: Data, **given: Any) -> Kappa:
    return dh_kappa(data.votes, data.suggested, categories=data.categories, **given)


def simulated(seed: int, n: int) -> tuple[Data, list[int]]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    labels = np.where(rng.random(n) < 0.8, truth, rng.integers(0, 3, n))
    votes = np.where(rng.random((n, 3)) < 0.8, truth[:, None], rng.integers(0, 3, (n, 3)))
    return Data((0, 1, 2), votes.tolist(), labels.tolist()), rng.integers(1, 6, n).tolist()


def fast_kappas(data: Data, sample_weight: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Kappa of each row of item indexes, by weighted means over items."""
    votes, labels = np.array(data.votes), np.array(data.suggested)
    shares = np.stack([(votes == j).mean(axis=1) for j in range(3)], axis=1)
    N = votes.shape[1]
    pairs = (shares * N) * (shares * N - 1) / (N * (N - 1))
    differential = 2 * pairs[np.arange(len(labels)), labels] - pairs.sum(axis=1)
    w = np.asarray(sample_weight, float)[rows]
    w /= w.sum(axis=1, keepdims=True)
    C = (w[:, :, None] * shares[rows]).sum(axis=1)
    L = (w[:, :, None] * (labels[:, None] == range(3))[rows]).sum(axis=1)
    D, E = (w * differential[rows]).sum(axis=1), (C**2 * (2 * L - 1)).sum(axis=1)
    found: np.ndarray[Any, Any] = (D - E) / (1 - E)
    return found


def test_weighted_replicates_follow_item_resampling() -> None:
    data, sample_weight = simulated(7, 60)
    B = 4000
    rows = np.random.default_rng(1).integers(0, 60, (B, 60))
    naive = fast_kappas(data, np.array(sample_weight), rows)
    drawn = call(data, sample_weight=sample_weight).bootstrap(B, rng=2)
    assert fast_kappas(data, np.array(sample_weight), np.arange(60)[None])[0] == pytest.approx(drawn.kappa)
    # Two means of B draws differ by sd sqrt(2/B), two sds by about sd/sqrt(B): five times that.
    assert abs(drawn.mean - naive.mean()) < 5 * naive.std() * math.sqrt(2 / B)
    assert abs(drawn.sd - naive.std(ddof=1)) < 5 * naive.std() / math.sqrt(B)
    unweighted = call(data).bootstrap(B, rng=2)
    assert abs(unweighted.mean - naive.mean()) > 5 * naive.std() * math.sqrt(2 / B)


def test_stratified_replicates_have_the_spread_of_the_standard_error() -> None:
    data, sample_weight = simulated(8, 400)
    kappa = call(data, strata=data.suggested, sample_weight=sample_weight)
    drawn = kappa.bootstrap(4000, rng=3)
    # The sd of 4,000 replicates is known to 1.1%; the bootstrap divides by n_h, not n_h - 1, and is not linear: 5%.
    assert drawn.sd == pytest.approx(kappa.se, rel=0.05)


def test_each_stratum_keeps_its_number_of_items() -> None:
    data = from_counts("300/1 300/1 300/1 120/2 120/2 021/3 021/3")  # alike within a label
    sizes = {1: 30, 2: 500, 3: 70}
    stratified = call(data, strata=data.suggested, pool=sizes).bootstrap(300, rng=1)
    assert stratified.undefined == 0
    assert stratified.values == pytest.approx(np.full(300, stratified.kappa), rel=1e-12)  # sums in floats
    assert call(data).bootstrap(300, rng=1).sd > 0.05


def test_standard_error_of_a_stratified_sample_from_a_pool() -> None:
    pool, _ = simulated(9, 5000)
    labels = np.array(pool.suggested)
    truth = call(pool).value
    members = [np.flatnonzero(labels == j) for j in range(3)]
    sizes = {j: len(inside) for j, inside in enumerate(members)}
    rng = np.random.default_rng(4)
    values, errors, plain = [], [], []
    for _ in range(300):
        rows = np.concatenate([rng.choice(inside, 100, replace=False) for inside in members]).tolist()
        sample = pool.take(rows)
        kappa = dh_kappa(np.array(sample.votes), sample.suggested, strata=sample.suggested, pool=sizes)
        values.append(kappa.value)
        errors.append(kappa.se)
        plain.append(fast_kappas(sample, np.ones(300), np.arange(300)[None])[0])
    sd = float(np.std(values, ddof=1))
    # The sd of 300 values is known to 4.1%, their mean to sd/sqrt(300): four times that.
    assert abs(np.mean(errors) / sd - 1) < 0.165
    assert abs(np.mean(values) - truth) < 4 * sd / math.sqrt(300)
    assert abs(np.mean(plain) - truth) > 4 * sd / math.sqrt(300)
