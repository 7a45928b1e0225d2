"""Intervals of kappa by category and of Fleiss' kappa against exact fractions and worked examples."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import interval_oracle as oracle
from dhkappa import dh_kappa, fleiss_kappa, tally
from dhkappa.stats.influence import worst_votes
from expect import expect_error
from interval_oracle import Item
from strategies import Data, from_counts, ragged

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")


def eligible(data: Data, labeled: bool = True) -> list[Item]:
    rows = (
        ([vote for vote in votes if vote is not None], label)
        for votes, label in zip(data.votes, data.suggested, strict=True)
    )
    return [
        (votes, label if labeled else votes[0])
        for votes, label in rows
        if len(votes) > 1 and (label is not None or not labeled)
    ]


def test_worked_example_of_categories() -> None:
    items = eligible(EXAMPLE)
    squares = [F(1944, 12167), F(12312, 28561), F(145881, 167042)]
    ends = [(F(-6147, 4232), F(225, 1058)), (F(-495, 338), F(63, 169)), (F(-441, 578), F(171, 289))]
    limits = [(-0.482452, 0.956211), (-0.748533, 0.915576), (-0.527534, 0.898083)]
    table = dh_kappa(EXAMPLE.votes, EXAMPLE.suggested).by_category()
    for j, row in zip((1, 2, 3), table, strict=True):
        exact = sum(((phi / 3) ** 2 for phi in oracle.category_influence(items, j)), F(0))
        assert float(exact) == pytest.approx(float(squares[j - 1]), rel=1e-12)  # a difference quotient
        assert [*map(float, oracle.category_ends(items, j))] == pytest.approx([*map(float, ends[j - 1])], rel=1e-12)
        assert row["se"] ** 2 == pytest.approx(float(squares[j - 1]) / 2, rel=1e-12)
        assert (row["low"], row["high"]) == pytest.approx(limits[j - 1], abs=5e-7)  # printed digits


@given(ragged(max_items=12, max_categories=4))
def test_intervals_of_categories_are_those_of_the_fractions(data: Data) -> None:
    items = eligible(data)
    kappa = dh_kappa(tally(data.votes, data.suggested, categories=data.categories))
    assume(kappa.exact is not None)
    for row in kappa.by_category():
        if math.isnan(row["low"]):
            continue
        j, n = row["category"], row["items"]
        known = oracle.parts(items, [F(1)] * len(items), j)
        assert known is not None
        L = F(n, len(items))
        squares = sum(((L * phi) ** 2 for phi in oracle.category_influence(items, j)), F(0))
        ends, bottom = oracle.category_ends(items, j), 1 - 2 / (1 - known[1])
        assert row["se"] ** 2 == pytest.approx(float(squares / (n * (n - 1))), rel=1e-8, abs=1e-18)
        expected = oracle.beta_limits(*known, n, squares, ends, bottom, F(2))
        assert (row["low"], row["high"]) == pytest.approx(expected, abs=1e-7)
        assert row["low"] <= row["kappa"] + 1e-12
        assert row["high"] >= row["kappa"] - 1e-12


@given(ragged(max_items=10, max_categories=4))
def test_intervals_do_not_depend_on_order_names_or_unused_categories(data: Data) -> None:
    def rows(of: Data) -> list[tuple[float, ...]]:
        kappa = dh_kappa(tally(of.votes, of.suggested, categories=of.categories))
        assume(kappa.exact is not None)
        return [(row["se"], row["low"], row["high"]) for row in kappa.by_category()]

    whole = rows(data)
    order = list(range(len(data.votes)))[::-1]
    for one, expected in (
        (rows(data.take(order)), whole),
        (rows(data.renamed(data.categories[::-1])), whole),
        (rows(Data((*data.categories, "unused"), data.votes, data.suggested))[:-1], whole),
    ):
        assert np.array(one) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9, nan_ok=True)


def test_categories_with_agreement_weights_try_all_votes() -> None:
    """Weights of 1 and 0 are those of the paper, also on the route for agreement weights."""
    plain = dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, categories=[1, 2, 3])
    same = dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, categories=[1, 2, 3], weights=np.eye(3))
    for name in ("se", "low", "high"):
        assert same.by_category().column(name) == pytest.approx(plain.by_category().column(name), rel=1e-12)
    linear = dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, categories=[1, 2, 3], weights="linear").by_category()
    assert all(row["low"] < row["kappa"] < row["high"] for row in linear)


def test_worked_example_of_fleiss() -> None:
    items = eligible(EXAMPLE, labeled=False)
    assert oracle.fleiss(items, [F(1)] * 6) == (F(59, 104), F(29, 81))
    squares = sum((phi**2 for phi in oracle.fleiss_influence(items)), F(0))
    assert float(squares) == pytest.approx(4342167 / 1827904, rel=1e-12)  # a difference quotient
    assert [*map(float, oracle.fleiss_ends(items))] == pytest.approx([-369 / 338, 1665 / 2704], rel=1e-12)
    kappa = fleiss_kappa(EXAMPLE.votes)
    assert kappa.se**2 == pytest.approx(1447389 / 18279040, rel=1e-12)
    interval = kappa.confidence_interval()
    assert interval.method == "beta"
    assert tuple(interval) == pytest.approx((-0.066691, 0.956642), abs=5e-7)  # printed digits
    assert tuple(kappa.confidence_interval(method="wald")) == pytest.approx((-0.1560, 1), abs=5e-5)


@given(ragged(max_items=12, max_votes=4, max_categories=4))
def test_intervals_of_fleiss_are_those_of_the_fractions(data: Data) -> None:
    items = eligible(data, labeled=False)
    kappa = fleiss_kappa(data.object_votes)
    interval = kappa.confidence_interval()
    assume(not math.isnan(interval.low))
    known = oracle.fleiss(items, [F(1)] * len(items))
    assert known is not None
    N, K = min(len(votes) for votes, _ in items), len({vote for votes, _ in items for vote in votes})
    least = min(
        F(sum(P * (P - 1) for P in counts), N * (N - 1))
        for counts in product(range(N + 1), repeat=K)
        if sum(counts) == N
    )
    squares = sum((phi**2 for phi in oracle.fleiss_influence(items)), F(0))
    expected = oracle.beta_limits(*known, len(items), squares, oracle.fleiss_ends(items), F(-1, N - 1), 1 - least)
    assert tuple(interval) == pytest.approx(expected, abs=1e-7)
    assert known[0] >= F(-1, N - 1)
    assert interval.low - 1e-12 <= kappa.value <= interval.high + 1e-12


@given(st.integers(2, 9), st.lists(st.floats(0, 20, width=16), min_size=1, max_size=3))
def test_worst_votes_are_the_least_of_all_votes(N: int, pull: list[float]) -> None:
    def cost(counts: tuple[int, ...]) -> float:
        return sum(P * (P - 1) / 2 - h * P for P, h in zip(counts, pull, strict=True))

    found = worst_votes(N, np.array(pull))
    assert found.sum() == N
    every = (counts for counts in product(range(N + 1), repeat=len(pull)) if sum(counts) == N)
    assert cost(tuple(map(int, found))) == pytest.approx(min(map(cost, every)), abs=1e-9)


def test_worst_votes_of_an_item_with_billions_of_votes() -> None:
    found = worst_votes(2**31 - 1, np.array([1e9, 5e8, 0.0]))
    assert found.sum() == 2**31 - 1
    marginal = found - [1e9, 5e8, 0.0]
    assert marginal.max() - marginal.min() <= 1


def test_fleiss_with_weights_has_the_plain_interval_only() -> None:
    weights = [1.0, 2, 3, 4, 5, 6]
    for chosen in ({"sample_weight": weights}, {"pool": 50}, {"strata": list("xxxyyy")}):
        kappa = fleiss_kappa(EXAMPLE.votes, **chosen)
        assert kappa.confidence_interval().method == "wald"
        with expect_error("invalid-method", "method"):
            kappa.confidence_interval(method="beta")
    with expect_error("invalid-method", "method"):
        fleiss_kappa(EXAMPLE.votes).confidence_interval(method="bca")
