"""Agreement weights by hand: values, bounds, extreme influence, and weights given by name or matrix."""

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from weighted_cases import kappa_of, weighted_data

from dhkappa import dh_kappa
from dhkappa.stats.influence import basis, extremes, influence
from dhkappa.stats.intervals import LEAST
from dhkappa.stats.weights import agreement_weights, vote_pairs
from exact import float_terms
from strategies import Data
from weighted_oracle import Items

F = Fraction
EVERY = tuple(product(range(3), repeat=2))  # every label with every three equal votes
VOTES = ((0, 1, 2), (0, 0, 1), *((v, v, v) for _, v in EVERY))
LABELS = (0, 0, *(label for label, _ in EVERY))
FEW_VOTES = [[1, 1, 2], [2, 2, 2], [1, 1, 1], [1, 2, 3], [1, 1, 1], [3, 3, 1], [1, 1, 1], [1, 1, 2]]
FEW_LABELS = [1, 2, 1, 2, 1, 3, 1, 2]


def by_pairs(votes: Any, labels: Any, w: list[list[F]]) -> F:
    """Kappa with weights from pairs of votes; by chance from two votes and a label drawn independently."""
    n, m = len(votes), range(3)
    d = [
        sum((w[x][y] * (w[x][label] + w[y][label] - 1) for x, y in combinations(item, 2)), F(0))
        / math.comb(len(item), 2)
        for item, label in zip(votes, labels, strict=True)
    ]
    C = [sum(F(item.count(j), len(item)) for item in votes) / n for j in m]
    L = [F(list(labels).count(j), n) for j in m]
    E = sum(C[x] * C[y] * L[k] * w[x][y] * (w[x][k] + w[y][k] - 1) for x, y, k in product(m, repeat=3))
    D = sum(d, F(0)) / n
    return F((D - E) / (1 - E))


def test_kappa_by_hand() -> None:
    """Votes 1 2 3, 3 3 2 and 1 1 1 with labels 1, 3 and 2; w is 1, 1/2 and 0 for distances 0, 1 and 2."""
    kappa = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], weights="linear", categories=[1, 2, 3])
    assert kappa.parts is not None
    # A pair counts w_xy (w_xl + w_yl - 1): (1/2 (1 + 1/2 - 1) + 0 + 1/2 (1/2 + 0 - 1)) / 3 = 0 on the first item,
    # (1 (1 + 1 - 1) + 2 1/2 (1 + 1/2 - 1)) / 3 = 1/2 on the second, 1 (1/2 + 1/2 - 1) = 0 on the third.
    # C = (4, 2, 3)/9, wC = (5, 11/2, 4)/9 and 2 wL - 1 = (0, 1/3, 0): E = 2 11/2 1/3 / 81.
    assert (F(1, 6), F(11, 243)) == (kappa.parts.D, kappa.parts.E)
    assert kappa.exact == (F(1, 6) - F(11, 243)) / (1 - F(11, 243)) == F(59, 464)
    assert kappa.metric == "weighted"
    # With labels 1, 2 and 3 the items have (0, 1/6, 0), (-1/2, 1/6, 1/2) and (1, 0, -1), which is 1/27 on average.
    assert kappa.baselines.random == float((F(1, 27) - F(11, 243)) / (1 - F(11, 243)))
    # Pairs agree by 1/3, 2/3 and 1; by chance by (4 5 + 2 11/2 + 3 4)/81 = 43/81.
    assert kappa.fleiss == float((F(2, 3) - F(43, 81)) / (1 - F(43, 81)))
    assert [note.code for note in kappa.notes] == ["few-items", "low-agreement"]
    assert 0 < kappa.se < 1


@pytest.mark.parametrize("w", ["linear", [[1, 1 - 2**-29, 0], [1 - 2**-29, 1, 0.25], [0, 0.25, 1]]])
def test_against_pairs(w: Any) -> None:
    known = agreement_weights(w, 3)
    exact = [[F(int(value), known.unit) for value in row] for row in known.scaled.tolist()]
    kappa = dh_kappa(VOTES, LABELS, weights=w, categories=range(3))
    assert kappa.exact == by_pairs(VOTES, LABELS, exact)
    many = [(0,) * 30 + (1,) * 25 + (2,) * 5, *VOTES]
    assert dh_kappa(many, [1, *LABELS], weights=w, categories=range(3)).exact == by_pairs(many, [1, *LABELS], exact)


@pytest.mark.parametrize("w", ["linear", "quadratic", [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]]])
def test_items_with_equal_votes_have_the_extreme_influence(w: Any) -> None:
    kappa = dh_kappa(VOTES, LABELS, weights=w, categories=range(3))
    assert kappa.parts is not None
    known = float_terms(kappa)
    phi, far = influence(known), extremes(known)
    assert far.label.tolist() == [0, 1, 2]
    unanimous = np.diff(kappa.sample.patterns.start) == 1
    for place in range(3):
        own = phi[unanimous & (known.suggested == place)]
        assert len(own) == 3
        # The same formula in another order.
        assert (far.low[place], far.high[place]) == pytest.approx((own.min(), own.max()), rel=1e-12)


def test_lower_bound_of_weights_that_are_no_metric() -> None:
    """If neighbours are nearly the same and the ends are not, the square roots of 1 - w are no distances."""
    w = [[1, 0.99, 0], [0.99, 1, 0.99], [0, 0.99, 1]]
    kappa = dh_kappa([[1, 2, 2], [3, 3, 2], [1, 1, 2]], [1, 3, 2], weights=w, categories=[1, 2, 3])
    found = basis(kappa.estimate)
    assert kappa.parts is not None
    assert found is not None
    assert found.bottom == pytest.approx(1 - 2 / (1 - float(kappa.parts.E)), rel=1e-12)
    assert found.bottom < LEAST


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_named_weights_are_those_of_their_matrix(name: str) -> None:
    """The square roots of 1 - w are distances also if the weights are given as a matrix."""
    near = {"linear": 0.5, "quadratic": 0.75}[name]
    matrix = [[1, near, 0], [near, 1, near], [0, near, 1]]
    named, own = (dh_kappa(FEW_VOTES, FEW_LABELS, weights=w, categories=[1, 2, 3]) for w in (name, matrix))
    assert named.parts is not None
    assert float(named.parts.E) > 1 / 27  # then 1 - 2 / (1 - E) is below the bound of the unweighted kappa
    assert named.exact == own.exact
    for method in ("beta", "wald"):
        assert tuple(named.confidence_interval(method=method)) == tuple(own.confidence_interval(method=method))


@pytest.mark.parametrize("far", [0, 0.5])
def test_a_category_that_does_not_occur_changes_nothing(far: float) -> None:
    matrix = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
    wider = [[*row, far] for row in matrix] + [[far, far, far, 1]]
    plain = dh_kappa(FEW_VOTES, FEW_LABELS, weights=matrix, categories=[1, 2, 3])
    more = dh_kappa(FEW_VOTES, FEW_LABELS, weights=wider, categories=[1, 2, 3, 4])
    assert more.exact == plain.exact
    assert more.se == pytest.approx(plain.se, rel=1e-12)
    assert tuple(more.confidence_interval()) == pytest.approx(tuple(plain.confidence_interval()), rel=1e-12)


@given(weighted_data(max_items=6))
def test_pairs_with_and_without_one_vote_against_loops(drawn: tuple[Data, Any, Items]) -> None:
    data, given_weights, items = drawn
    kappa = kappa_of(data, given_weights)
    weights, patterns = kappa.estimate.weights, kappa.sample.patterns
    assert weights is not None
    found = vote_pairs(patterns, weights)
    for k, label in enumerate(patterns.suggested.tolist()):
        span = range(patterns.start[k], patterns.start[k + 1])
        votes = [int(patterns.code[entry]) for entry in span for _ in range(patterns.votes[entry])]
        pairs = [items.pair(x, y, label) for x, y in combinations(votes, 2)]
        assert found.all[k] == sum(pairs) * weights.unit**2
        for entry in span:
            own = int(patterns.code[entry])
            others = [*votes]
            others.remove(own)
            assert found.with_one[entry] == sum(items.pair(own, y, label) for y in others) * weights.unit**2
            pairs = [items.pair(x, y, own) for x, y in combinations(others, 2)]
            assert found.on_own[entry] == sum(pairs) * weights.unit**2


def test_pairs_with_and_without_one_vote_by_hand() -> None:
    """Votes 0, 0, 1 and label 0, with weight 1/2 between 0 and 1: w_xy (w_xl + w_yl - 1) is 1, 1/4 and 1/4."""
    kappa = dh_kappa([[0, 0, 1], [1, 1, 1]], [0, 1], categories=range(3), weights="linear")
    assert kappa.estimate.weights is not None
    found = vote_pairs(kappa.sample.patterns, kappa.estimate.weights)  # in units of 1/4
    assert found.all.tolist() == [6, 12]
    assert {type(value) for column in found for value in column.tolist()} == {int}  # exact for any number of votes
    assert found.with_one.tolist() == [4 + 1, 1 + 1, 8]
    assert found.on_own.tolist() == [1, 0, 4]  # of 0 and 1 with label 0, of 0 and 0 with label 1, of 1 and 1
