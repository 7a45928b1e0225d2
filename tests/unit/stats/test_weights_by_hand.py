"""Agreement weights against pairs of votes counted by hand."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pytest

from dhkappa import dh_kappa
from dhkappa.stats.weights import agreement_weights, pair_sums, weighted_influence, weighted_parts, weighted_terms

F = Fraction
LINEAR = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
FINE = [[1, 1 - 2**-29, 0], [1 - 2**-29, 1, 0.25], [0, 0.25, 1]]


def kappa_by_hand(votes: Sequence[Sequence[int]], labels: Sequence[int], w: Sequence[Sequence[F]]) -> F:
    """Kappa of pairs that count w_xy (w_xl + w_yl - 1), observed and with votes and labels drawn on their own."""
    m, n = len(w), len(votes)

    def worth(x: int, y: int, label: int) -> F:
        return w[x][y] * (w[x][label] + w[y][label] - 1)

    D = F(0)
    for item, label in zip(votes, labels, strict=True):
        pairs = list(combinations(item, 2))
        D += sum((worth(x, y, label) for x, y in pairs), F(0)) / len(pairs) / n
    C = [sum(F(list(item).count(j), len(item)) for item in votes) / n for j in range(m)]
    L = [F(list(labels).count(j), n) for j in range(m)]
    E = sum((C[x] * C[y] * L[z] * worth(x, y, z) for x, y, z in product(range(m), repeat=3)), F(0))
    return F((D - E) / (1 - E))


class TestPairs:
    EVERY = tuple(product(range(3), repeat=2))  # every label with every three votes alike
    VOTES = ((0, 1, 2), (0, 0, 1), *((v, v, v) for _, v in EVERY))
    LABELS = (0, 0, *(label for label, _ in EVERY))

    @pytest.mark.parametrize(("w", "matrix"), [("linear", LINEAR), (FINE, FINE)], ids=["linear", "with a small unit"])
    def test_against_pairs(self, w: Any, matrix: Any) -> None:
        weights = [[F(x) for x in row] for row in matrix]
        kappa = dh_kappa(self.VOTES, self.LABELS, weights=w, categories=range(3))
        assert kappa.exact == kappa_by_hand(self.VOTES, self.LABELS, weights)
        many = [(0,) * 30 + (1,) * 25 + (2,) * 5, *self.VOTES]
        found = dh_kappa(many, [1, *self.LABELS], weights=w, categories=range(3))
        assert found.exact == kappa_by_hand(many, [1, *self.LABELS], weights)

    @pytest.mark.parametrize("w", ["linear", "quadratic", [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]]])
    def test_items_with_equal_votes_have_extreme_influence(self, w: Any) -> None:
        estimate = dh_kappa(self.VOTES, self.LABELS, categories=range(3)).estimate
        assert estimate.parts is not None
        sample, weights = estimate.sample.merged(), agreement_weights(w, 3)
        pairs = pair_sums(sample.patterns, weights)
        known = weighted_terms(sample, pairs, weighted_parts(sample, pairs, estimate.parts, weights), weights)
        phi, far = weighted_influence(known, weights.matrix())
        assert far.label.tolist() == [0, 1, 2]
        alike = np.diff(sample.patterns.start) == 1
        for place in range(3):
            own = phi[alike & (sample.patterns.suggested == place)]
            assert len(own) == 3
            assert (far.low[place], far.high[place]) == pytest.approx((min(own), max(own)), rel=1e-12)


class TestMatrices:
    VOTES: ClassVar[list[list[int]]] = [
        [1, 1, 2],
        [2, 2, 2],
        [1, 1, 1],
        [1, 2, 3],
        [1, 1, 1],
        [3, 3, 1],
        [1, 1, 1],
        [1, 1, 2],
    ]
    LABELS: ClassVar[list[int]] = [1, 2, 1, 2, 1, 3, 1, 2]

    @pytest.mark.parametrize("name", ["linear", "quadratic"])
    def test_named_weights_are_those_of_their_matrix(self, name: str) -> None:
        """The roots of 1 - w are distances whoever writes them down, so kappa is bounded as the plain one."""
        near = {"linear": 0.5, "quadratic": 0.75}[name]
        matrix = [[1, near, 0], [near, 1, near], [0, near, 1]]
        named, own = (
            dh_kappa(self.VOTES, self.LABELS, weights=weights, categories=[1, 2, 3]) for weights in (name, matrix)
        )
        assert named.parts is not None
        assert float(named.parts.E) > 1 / 27  # where 1 - 2 / (1 - E) is below the bound of the plain kappa
        assert named.exact == own.exact
        for method in ("beta", "wald"):
            assert tuple(named.confidence_interval(method=method)) == tuple(own.confidence_interval(method=method))

    @pytest.mark.parametrize("far", [0, 0.5])
    def test_a_category_that_does_not_occur_changes_nothing(self, far: float) -> None:
        matrix = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
        wider = [[*row, far] for row in matrix] + [[far, far, far, 1]]
        plain = dh_kappa(self.VOTES, self.LABELS, weights=matrix, categories=[1, 2, 3])
        more = dh_kappa(self.VOTES, self.LABELS, weights=wider, categories=[1, 2, 3, 4])
        assert more.exact == plain.exact
        assert more.se == pytest.approx(plain.se, rel=1e-12)
        assert tuple(more.confidence_interval()) == pytest.approx(tuple(plain.confidence_interval()), rel=1e-12)
