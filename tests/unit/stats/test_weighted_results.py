"""Baselines, permutation test, categories and bootstrap with agreement weights, against loops over pairs of votes."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dhkappa import Kappa, dh_kappa, fleiss_kappa
from dhkappa.stats.categories import category_influence, category_parts
from dhkappa.stats.influence import chance_terms, extremes, influence
from dhkappa.stats.kappa import estimate_dh
from dhkappa.stats.permutation import above_random, group_items, label_scores, permutation_moments
from exact import float_terms
from strategies import Data, complete, from_counts, ragged
from weighted_oracle import Items, items_of, named_weights, random_weights

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
KINDS = ("linear", "quadratic")
METHODS = ("exact", "z", "monte-carlo")


@st.composite
def weighted_data(draw: st.DrawFn, max_items: int = 12) -> tuple[Data, Any, Items]:
    """Data, weights as a user passes them, and the items with the same weights; kappa is defined."""
    data = draw(ragged(max_items=max_items, max_votes=5, max_categories=4) | complete(max_categories=4)).coded()
    data = data.take(range(min(len(data.votes), max_items)))
    m = len(data.categories)
    kind = draw(st.sampled_from(["own", "linear", "quadratic"]))
    own = random_weights(Random(draw(st.integers(0, 2**32))), m) if kind == "own" else named_weights(kind, m)
    items = items_of(data.votes, data.suggested, data.categories, own)
    assume(len(items.votes) > 0 and items.kappa is not None)
    return data, own if kind == "own" else kind, items


def kappa_of(data: Data, weights: Any, **options: Any) -> Kappa:
    return dh_kappa(data.votes, data.suggested, categories=data.categories, weights=weights, **options)


def rows_of(kappa: Kappa, items: Items) -> list[int]:
    """Return the pattern of each item."""
    patterns = kappa.sample.patterns
    keys = {}
    for k in range(len(patterns)):
        span = slice(patterns.start[k], patterns.start[k + 1])
        votes = np.repeat(patterns.code[span], patterns.votes[span]).tolist()
        keys[int(patterns.suggested[k]), tuple(votes)] = k
    return [keys[label, tuple(sorted(votes))] for votes, label in zip(items.votes, items.labels, strict=True)]


def differentials(items: Items) -> tuple[Fraction, list[Fraction]]:
    """Return D of the labels, and of each permutation of them."""
    n = len(items.votes)
    table = [[items.d(i, label) for label in items.codes] for i in range(n)]
    every = [
        sum((table[i][label] for i, label in enumerate(labels)), F(0)) / n for labels in permutations(items.labels)
    ]
    return every[0], every


# Baselines


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


# Permutation test


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


def ordered(n: int, seed: int, step: float = 0.3, labels: float = 0.3) -> Data:
    """Five ordered categories: votes and labels stray from the truth by one step with these probabilities."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)
    stray = np.where(rng.random((n, 4)) < [step] * 3 + [labels], rng.choice([-1, 1], (n, 4)), 0)
    found = np.clip(truth[:, None] + stray, 0, 4)
    return Data(tuple(range(5)), found[:, :3].tolist(), found[:, 3].tolist())


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


def test_many_items_have_a_normal_test() -> None:
    test = kappa_of(ordered(3000, seed=1), "quadratic").permutation_test()
    assert (test.method, test.alternative) == ("z", "greater")
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


# Categories


@settings(max_examples=50)
@given(weighted_data(max_items=8), st.integers(0, 7))
def test_categories_against_loops(drawn: tuple[Data, Any, Items], item: int) -> None:
    data, weights, items = drawn
    kappa = kappa_of(data, weights)
    known, rows = float_terms(kappa), rows_of(kappa, items)
    parts = category_parts(known)
    item %= len(items.votes)
    for code in items.codes:
        E = items.E_of(code)
        assert parts.E[code] == pytest.approx(float(E), rel=1e-13, abs=1e-15)
        used = code in items.labels
        assert parts.defined[code] == (used and E != 1)
        if not parts.defined[code]:
            continue
        scale = float(1 - E) ** 2
        assert parts.D[code] == pytest.approx(float(items.D_of(code)), rel=1e-13, abs=1e-15)
        assert parts.kappa[code] == pytest.approx(float(items.kappa_of(code)), rel=1e-12, abs=1e-14 / scale)
        expected = float(items.influence(partial(Items.kappa_of, label=code), item))
        phi = category_influence(known, parts, code)
        assert phi[rows[item]] == pytest.approx(expected, rel=1e-11, abs=1e-13 / scale)
    assert np.nansum(parts.weight * parts.kappa) == pytest.approx(kappa.value, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, [1, 2, 4, 5] * 8])
def test_standard_errors_of_categories(kind: str, weight: list[int] | None) -> None:
    data = ordered(32, seed=3)
    items = items_of(data.votes, data.suggested, data.categories, named_weights(kind, 5), weight or ())
    table = kappa_of(data, kind, sample_weight=weight).by_category()
    for row in table:
        assert row["kappa"] == pytest.approx(float(items.kappa_of(row["category"])), rel=1e-12)
        se = math.sqrt(items.variance(partial(Items.kappa_of, label=row["category"])))
        assert row["se"] == pytest.approx(se, rel=1e-10)
        assert row["low"] < row["kappa"] < row["high"] <= 1
    assert sum(row["weight"] for row in table) == pytest.approx(1, rel=1e-14)
    assert sum(row["loss"] for row in table) == pytest.approx(float(1 - items.kappa), rel=1e-12)


def test_categories_with_identity_weights() -> None:
    data = ordered(60, seed=9)
    plain, same = (kappa_of(data, w).by_category() for w in (None, np.eye(5)))
    for name in ("kappa", "se", "low", "high", "weight", "loss"):
        assert same.column(name) == pytest.approx(plain.column(name), rel=1e-12)
    for name in ("category", "items", "vote_share", "label_share", "reason"):
        assert same.column(name) == plain.column(name)


def test_confusion_ignores_weights() -> None:
    data = ordered(60, seed=10)
    plain, found = (kappa_of(data, w).confusion() for w in (None, "linear"))
    assert found.to_dicts() == plain.to_dicts()


def test_near_misses_cost_less_than_distant_ones() -> None:
    """Label 4 is given to votes 3, label 0 to votes 4: kappa of category 4 is the larger one with weights only."""
    data = Data(tuple(range(5)), [[code] * 3 for code in (3, 3, 4, 4, 1, 2)] * 5, [4, 4, 0, 0, 1, 2] * 5)
    plain, near = (
        {row["category"]: row["kappa"] for row in kappa_of(data, w).by_category()} for w in (None, "quadratic")
    )
    assert near[4] - near[0] > 1
    assert plain[4] - plain[0] < 0.3


# Rounding


def test_influence_keeps_its_digits_if_chance_is_almost_certain() -> None:
    """Nearly all of the weight is on items with votes and label 0, so E is almost 1."""
    votes, labels = [[0, 0, 0], [0, 1, 0], [2, 2, 1]], [0, 0, 2]
    weight = [2.0**40, 1.0, 3.0]
    items = items_of(votes, labels, range(3), named_weights("linear", 3), [F(w) for w in weight])
    kappa = dh_kappa(votes, labels, categories=range(3), weights="linear", sample_weight=weight)
    known, rows = float_terms(kappa), rows_of(kappa, items)
    assert 1 - known.E < 1e-6
    assert chance_terms(known).not_by_chance == pytest.approx(float(1 - items.E), rel=1e-12)
    expected = [float(items.influence(lambda of: of.kappa, i)) for i in range(3)]
    assert influence(known)[rows] == pytest.approx(expected, rel=1e-9)


@given(weighted_data(max_items=8))
def test_terms_of_chance(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    known = float_terms(kappa_of(data, weights))
    chance = chance_terms(known)
    assert chance.not_by_chance == pytest.approx(float(1 - items.E), rel=1e-13)
    assert chance.middle == pytest.approx(2 - known.E - known.C_E, rel=1e-13)
    plain = influence(known)
    votes = known.row_sums(chance.votes[known.patterns.code] * known.c)
    assert chance.influence(known.kappa, votes, known.suggested, 1 - known.d) == pytest.approx(
        plain, rel=1e-11, abs=1e-12 / float(1 - items.E) ** 2
    )


@settings(max_examples=25)
@given(weighted_data(max_items=4))
def test_extremes_are_those_of_items_with_equal_votes(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    far = extremes(float_terms(kappa_of(data, weights)))
    C, L = items.C, items.L
    occurs = [j for j in items.codes if C[j] + L[j]]
    assert far.label.tolist() == occurs
    slack = 1e-12 / float(1 - items.E) ** 2

    def phi(label: int, vote: int) -> float:
        more = replace(
            items, votes=[*items.votes, [vote] * 2], labels=[*items.labels, label], share=[*items.share, F(0)]
        )
        return float(more.influence(lambda of: of.kappa, len(items.votes)))

    for place, label in enumerate(occurs):
        every = [phi(label, vote) for vote in occurs]
        assert (far.low[place], far.high[place]) == pytest.approx((min(every), max(every)), rel=1e-11, abs=slack)


# Bootstrap


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
