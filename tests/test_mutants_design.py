"""What mutants of the statistics rooms have lived through: designs of a sample and ordinal weights.

Oracles are the worked examples of docs/methods.md, fractions and closed forms computed by hand, and scipy.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pytest

import oracle
from dhkappa import Kappa, compare, dh_kappa, fleiss_kappa
from dhkappa.stats.influence import extremes, influence
from dhkappa.stats.intervals import (
    LEAST,
)
from dhkappa.stats.sample import Dropped
from dhkappa.stats.terms import Terms
from dhkappa.stats.variance import basis_of, leave_one_vote, unseen_items, variance
from dhkappa.stats.weights import ordinal_estimate, weight_matrix, weights_of
from mutants import EXAMPLE, STRATA, F, example, known, refused


class TestEstimators:
    @pytest.mark.parametrize(
        ("scored", "reason"),
        [
            (lambda: dh_kappa([], []), "the data hold no items."),
            (lambda: fleiss_kappa([]), "the data hold no items."),
            (lambda: fleiss_kappa([[1], [2]]), "no item has two votes (2 items: 2 with one vote)."),
            (
                lambda: dh_kappa([[1], [], [1, 2]], [1, 1, None]),
                "no item has two votes and a suggested label "
                "(3 items: 1 with no votes, 1 with one vote, 1 with no suggested label).",
            ),
            (
                lambda: dh_kappa([[1, 1], [1], [1, 2]], [None, 1, 1], weights=[1, 1, 0]),
                "no item has two votes and a suggested label and a weight "
                "(3 items: 1 with one vote, 1 with no suggested label, 1 with weight 0).",
            ),
            (lambda: fleiss_kappa([[1, 1], [1, 1]]), "every vote is the same category, so agreement is certain."),
            (
                lambda: dh_kappa([[1, 1], [1, 1]], [1, 1]),
                "every vote and every suggested label is the same category, so agreement is certain.",
            ),
            (
                lambda: dh_kappa([[1, 2], [2, 1]], [1, 2], ordinal=[[1, 1], [1, 1]], categories=[1, 2]),
                "every category that occurs has weight 1 to every other.",
            ),
            (
                lambda: dh_kappa([[1, 1]], [1], ordinal="linear", categories=[1, 2, 3]),
                "every vote and every suggested label is the same category, so agreement is certain.",
            ),
        ],
    )
    def test_undefined_kappas_say_why(self, scored: Callable[[], Kappa], reason: str) -> None:
        kappa = scored()
        assert kappa.reason == reason
        assert kappa.exact is None
        assert all(map(math.isnan, (kappa.value, kappa.floor, kappa.ceiling, kappa.se)))
        assert (kappa.parts is None) == (kappa.n_items == 0)

    def test_undefined_kappas_keep_their_names(self) -> None:
        assert (fleiss_kappa([]).metric, dh_kappa([], []).metric) == ("fleiss", "dh")
        assert dh_kappa([[1, 1]], [1], ordinal="linear", categories=[1, 2]).metric == "ordinal"

    def test_weighted_fleiss_is_that_of_items_that_occur_as_often(self) -> None:
        often = [1, 2, 1, 3, 1, 1]
        weighted = fleiss_kappa(EXAMPLE.votes, weights=often)
        repeated = [item for item, times in zip(EXAMPLE.votes, often, strict=True) for _ in range(times)]
        assert weighted.exact == oracle.fleiss(repeated).kappa
        assert weighted.parts is not None
        assert weighted.parts.L == {}

    def test_ordinal_kappa_may_fall_below_the_plain_one(self) -> None:
        """Where neighbours are nearly the same and the ends are not, the square roots of 1 - w are no distances."""
        weights = [[1, 0.99, 0], [0.99, 1, 0.99], [0, 0.99, 1]]
        kappa = dh_kappa([[1, 2, 2], [3, 3, 2], [1, 1, 2]], [1, 3, 2], ordinal=weights, categories=[1, 2, 3])
        assert kappa.parts is not None
        assert kappa._basis is not None
        assert kappa._basis.bottom == pytest.approx(1 - 2 / (1 - float(kappa.parts.E)), rel=1e-12)
        assert kappa._basis.bottom < LEAST

    def test_what_each_kappa_carries(self) -> None:
        plain, panel = example(), fleiss_kappa(EXAMPLE.votes)
        assert (plain.metric, plain.exact, plain.reason) == ("dh", F(247, 544), None)
        assert (plain.floor, plain.fleiss) == (-59 / 544, 59 / 104)
        assert (plain.n_items, plain.n_votes, plain.dropped) == (6, 18, Dropped())
        assert (panel.metric, panel.exact, panel.value, panel.reason) == ("fleiss", F(59, 104), 59 / 104, None)
        assert math.isnan(panel.floor)
        assert math.isnan(panel.ceiling)

    def test_ordinal_kappa_by_hand(self) -> None:
        """Votes 1 2 3, 3 3 2 and 1 1 1 with labels 1, 3 and 2; w is 1, 1/2 and 0 for distances 0, 1 and 2."""
        kappa = dh_kappa([[1, 2, 3], [3, 3, 2], [1, 1, 1]], [1, 3, 2], ordinal="linear", categories=[1, 2, 3])
        assert kappa.parts is not None
        # A pair counts w_xy (w_xl + w_yl - 1): (1/2 (1 + 1/2 - 1) + 0 + 1/2 (1/2 + 0 - 1)) / 3 = 0 on the first item,
        # (1 (1 + 1 - 1) + 2 1/2 (1 + 1/2 - 1)) / 3 = 1/2 on the second, 1 (1/2 + 1/2 - 1) = 0 on the third.
        # C = (4, 2, 3)/9, wC = (5, 11/2, 4)/9 and 2 wL - 1 = (0, 1/3, 0): E = 2 11/2 1/3 / 81.
        letters = kappa.parts.D, kappa.parts.E
        assert letters == (F(1, 6), F(11, 243))
        assert kappa.exact == (F(1, 6) - F(11, 243)) / (1 - F(11, 243)) == F(59, 464)
        assert kappa.metric == "ordinal"
        assert math.isnan(kappa.floor)
        assert math.isnan(kappa.ceiling)
        # Pairs agree by 1/3, 2/3 and 1; by chance by (4 5 + 2 11/2 + 3 4)/81 = 43/81.
        assert kappa.fleiss == float((F(2, 3) - F(43, 81)) / (1 - F(43, 81)))
        assert [note.code for note in kappa.notes] == ["few-items"]
        assert 0 < kappa.se < 1

    def test_ordinal_kappa_is_for_votes_as_they_are(self) -> None:
        refused(
            "panel='drawn' is for the kappa without ordinal weights: leave out one of them.",
            ordinal="linear",
            categories=[1, 2, 3],
            pool=20,
            panel="drawn",
        )


def psi(found: Terms, votes: Sequence[int], label: int) -> F:
    """The part of an item's influence that its votes decide, from its definition."""
    c = [F(list(votes).count(j), len(votes)) for j in range(len(found.C))]
    pairs = list(combinations(votes, 2))
    d = F(sum((1 if one == label else -1) * (one == other) for one, other in pairs), len(pairs))
    pull = sum(C * (2 * L - 1) * share for C, L, share in zip(found.C, found.L, c, strict=True))
    return F((d - 2 * (1 - found.kappa) * pull) / (1 - found.E))


def phi_by_item(found: Terms, votes: Sequence[Sequence[int]], labels: Sequence[int]) -> list[F]:
    """Influence of each item, looked up by its label and votes, which are numbers from 1 on."""
    table, phi = found.patterns, influence(found)
    by_key = {}
    for k, label in enumerate(table.suggested.tolist()):
        row = slice(table.start[k], table.start[k + 1])
        by_key[label + 1, tuple(np.repeat(table.code[row] + 1, table.votes[row]).tolist())] = phi[k]
    return [by_key[label, tuple(sorted(item))] for item, label in zip(votes, labels, strict=True)]


def variance_by_hand(kappa: Kappa, drawn: bool) -> tuple[F, F]:
    """docs/methods.md, item by item: SE^2, and the same with pools without end."""
    found = known(kappa)
    phi, table, whole = influence(found), found.patterns, F(sum(found.weight.tolist()))
    value = endless = F(0)
    for place, part in enumerate(found.sample.strata):
        z, v = [], []
        for k in np.flatnonzero(found.sample.stratum == place).tolist():
            number, row = int(table.items[k]), slice(table.start[k], table.start[k + 1])
            w = F(found.weight[k]) / number / whole
            votes = np.repeat(table.code[row], table.votes[row]).tolist()
            less = [psi(found, votes[:a] + votes[a + 1 :], int(table.suggested[k])) for a in range(len(votes) * drawn)]
            middle = sum(less, F(0)) / len(votes)
            jackknife = F(len(votes) - 1, len(votes)) * sum((one - middle) ** 2 for one in less)
            z += [w * phi[k]] * number
            v += [w**2 * jackknife] * number
        n = len(z)
        if n > 1:
            spread = F(n, n - 1) * sum((one - sum(z) / n) ** 2 for one in z)
            endless += spread
            value += (1 - part.fraction) * spread
        value += part.fraction * sum(v)
    return value, endless


class TestDesign:
    LABELS = (1, 1, 2, 2, 3, 3, 1, 2, 1, 1, 2)
    VOTES = ("1112", "112", "222", "123", "333", "222", "111", "213", "1112", "112", "233")

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"pool": 30},
            {"pool": 30, "panel": "drawn"},
            {"weights": [1, 2, 3, 1, 2, 3, 1, 2, 1, 2, 4]},
            {"strata": list("xxxyyyxyxxx")},
            {"strata": list("xxxyyyxyxxx"), "pool": {"x": 20, "y": 5}, "panel": "drawn"},
            {"strata": list("xxxxxxxyxxy")},
            {"strata": list("xxxxxxxxxxy"), "pool": {"x": 20, "y": 1}, "panel": "drawn"},
        ],
    )
    def test_variance_item_by_item(self, given: dict[str, Any]) -> None:
        kappa = dh_kappa([[int(vote) for vote in item] for item in self.VOTES], self.LABELS, **given)
        found = known(kappa)
        assert found.items.max() > 1 or "weights" in given
        spread = variance(found, influence(found))
        assert (spread.value, spread.endless) == variance_by_hand(kappa, given.get("panel") == "drawn")
        # Sums of some ten terms, and a root.
        assert kappa.se == pytest.approx(math.sqrt(spread.value), rel=1e-12)

    def test_influence_without_a_vote(self) -> None:
        found = known(dh_kappa([[int(vote) for vote in item] for item in self.VOTES], self.LABELS))
        table, less = found.patterns, leave_one_vote(found)
        for k, label in enumerate(table.suggested.tolist()):
            row = range(table.start[k], table.start[k + 1])
            votes = [code for at in row for code in [int(table.code[at])] * int(table.votes[at])]
            for at in row:
                left = votes.copy()
                left.remove(int(table.code[at]))
                assert less[at] == psi(found, left, label)

    def test_a_difference_with_a_panel_that_is_drawn(self) -> None:
        """docs/methods.md for the difference of two influences, item by item."""
        votes = [[int(vote) for vote in item] for item in self.VOTES]
        labels = {"x": list(self.LABELS), "y": [1, 2, 2, 2, 3, 1, 1, 2, 1, 1, 3]}
        n, f = len(votes), F(11, 30)
        found = [known(dh_kappa(votes, labels[name])) for name in "xy"]
        phi = [phi_by_item(one, votes, labels[name]) for one, name in zip(found, "xy", strict=True)]
        moves = [one - other for one, other in zip(*phi, strict=True)]
        over_votes = F(0)
        for i, item in enumerate(votes):
            left = [[vote - 1 for vote in item[:a] + item[a + 1 :]] for a in range(len(item))]
            less = [psi(found[0], one, labels["x"][i] - 1) - psi(found[1], one, labels["y"][i] - 1) for one in left]
            middle = sum(less, F(0)) / len(less)
            over_votes += F(len(item) - 1, len(item)) * sum((one - middle) ** 2 for one in less)
        expected = (1 - f) * sum(move**2 for move in moves) / (n * (n - 1)) + f * over_votes / n**2
        row = next(iter(compare(votes, labels, pool=30, panel="drawn").differences))
        assert row["se"] == pytest.approx(math.sqrt(expected), rel=1e-12)

    def test_two_items_show_a_spread(self) -> None:
        kappa = dh_kappa([[1, 1], [1, 2]], [1, 2])
        first, second = influence(known(kappa)).tolist()
        assert first == -second != 0
        assert kappa.se == pytest.approx(abs(float(first)), rel=1e-14)

    def test_what_intervals_are_made_of(self) -> None:
        found = known(example(), exact=False)
        made = basis_of(found, influence(found), 0.5, -0.1, extremes(found), -2.0)
        assert made is not None
        assert (made.kappa, made.E, made.n, made.df, made.bottom) == (0.5, -0.1, 6, 5, -2.0)
        assert made.squares == pytest.approx(float(30 * F(432125685, 5473632256)), rel=1e-12)
        assert (made.least, made.greatest) == pytest.approx((-50355 / 36992, 21087 / 36992), rel=1e-12)
        assert (made.least_share, made.greatest_share, made.unseen) == (1 / 6, 1 / 6, 1 / 6)
        plain = basis_of(found, influence(found), 0.5, -0.1, None)
        assert plain is not None
        assert plain.bottom == LEAST
        assert math.isnan(plain.least)
        assert math.isnan(plain.greatest)
        assert basis_of(found, influence(found), 0.5, 1.0, None) is None
        two = dh_kappa([[1, 1], [1, 2]], [1, 2])._basis
        assert two is not None
        assert (two.n, two.df) == (2, 1)
        flawless = dh_kappa([["a", "a"], ["b", "b"], ["c", "c"]] * 5, list("abc") * 5)._basis
        assert flawless is not None
        assert (flawless.greatest, flawless.squares) == (0, 0)  # nothing is better than what there is
        strata = example(strata=list("xxyyyy"))._basis
        assert strata is not None
        assert strata.df == 4

    def test_unseen_items_of_strata_with_weights(self) -> None:
        """docs/methods.md: share(A) = sum p^3 / sum p^2, and the mean influence of a stratum, by weight."""
        weights, strata = [1, 2, 3, 4, 5, 6], list("xxxyyy")
        found = known(example(weights=weights, strata=strata), exact=False)
        phi = influence(found)
        p = found.weight / found.n
        inside = [found.sample.stratum == place for place in range(2)]
        top = max((p[rows] ** 3).sum() / (p[rows] ** 2).sum() for rows in inside)
        unseen = unseen_items(found, phi)
        assert unseen.most == pytest.approx(top, rel=1e-12)
        expected = []
        for rows in inside:
            middle = (p[rows] * phi[rows]).sum() / p[rows].sum()
            for label in sorted(set(found.suggested[rows].tolist())):
                own = p[rows & (found.suggested == label)]
                expected.append((label, math.sqrt(top * (own**3).sum() / (own**2).sum()), middle))
        assert unseen.label.tolist() == [label for label, _, _ in expected]
        assert unseen.share.tolist() == pytest.approx([share for _, share, _ in expected], rel=1e-12)
        assert unseen.middle.tolist() == pytest.approx([middle for _, _, middle in expected], rel=1e-12)

    def test_a_stratum_without_items_adds_nothing(self) -> None:
        votes, labels, strata = [*EXAMPLE.votes, [1]], [*EXAMPLE.suggested, 1], [*STRATA, "z"]
        kappa = dh_kappa(votes, labels, strata=strata, pool={"x": 9, "y": 30, "z": 0})
        plain = example(strata=STRATA, pool={"x": 9, "y": 30})
        assert kappa.exact == plain.exact
        assert kappa.se == plain.se
        found, without = (unseen_items(known(one), influence(known(one))) for one in (kappa, plain))
        assert found.most == without.most
        assert (found.share.tolist(), found.middle.tolist()) == (without.share.tolist(), without.middle.tolist())

    def test_the_variance_over_votes_may_be_given(self) -> None:
        kappa = example(pool=24, panel="drawn")
        found = known(kappa)
        nothing = variance(found, influence(found), 0 * found.t)
        something = variance(found, influence(found), 0 * found.t + 8)
        assert something.value - nothing.value == F(6, 24) * F(8, 6)
        assert nothing.value == F(18, 24) * nothing.endless
        assert variance(found, influence(found)).value > nothing.value


def ordinal_by_hand(votes: Sequence[Sequence[int]], labels: Sequence[int], w: Sequence[Sequence[F]]) -> F:
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


class TestOrdinal:
    EVERY = tuple(product(range(3), repeat=2))  # every label with every three votes alike
    VOTES = ((0, 1, 2), (0, 0, 1), *((v, v, v) for _, v in EVERY))
    LABELS = (0, 0, *(label for label, _ in EVERY))

    @pytest.mark.parametrize("w", ["linear", [[1, 1 - 2**-29, 0], [1 - 2**-29, 1, 0.25], [0, 0.25, 1]]])
    def test_against_pairs(self, w: Any) -> None:
        weights = [[F(x) for x in row] for row in weight_matrix(w, 3, exact=True).tolist()]
        kappa = dh_kappa(self.VOTES, self.LABELS, ordinal=w, categories=range(3))
        assert kappa.exact == ordinal_by_hand(self.VOTES, self.LABELS, weights)
        many = [(0,) * 30 + (1,) * 25 + (2,) * 5, *self.VOTES]
        found = dh_kappa(many, [1, *self.LABELS], ordinal=w, categories=range(3))
        assert found.exact == ordinal_by_hand(many, [1, *self.LABELS], weights)

    @pytest.mark.parametrize("exact", [True, False])
    @pytest.mark.parametrize("w", ["linear", "quadratic", [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]]])
    def test_items_with_all_votes_alike_move_kappa_most(self, w: Any, exact: bool) -> None:
        plain = dh_kappa(self.VOTES, self.LABELS, categories=range(3))
        found, parts = known(plain, exact), plain.parts
        assert parts is not None
        made = ordinal_estimate(found, parts, weights_of(w, 3))
        assert made.far is not None
        assert made.far.label.tolist() == [0, 1, 2]
        alike = np.diff(found.patterns.start) == 1
        for place in range(3):
            own = made.phi[alike & (found.suggested == place)]
            assert len(own) == 3
            ends = float(made.far.low[place]), float(made.far.high[place])
            assert ends == pytest.approx((float(min(own)), float(max(own))), rel=1e-12)
            assert not exact or (made.far.low[place], made.far.high[place]) == (min(own), max(own))


class TestOrdinalIntervals:
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
            dh_kappa(self.VOTES, self.LABELS, ordinal=weights, categories=[1, 2, 3]) for weights in (name, matrix)
        )
        assert named.parts is not None
        assert float(named.parts.E) > 1 / 27  # where 1 - 2 / (1 - E) is below the bound of the plain kappa
        assert named.exact == own.exact
        for method in ("beta", "log", "wald"):
            assert tuple(named.interval(method=method)) == tuple(own.interval(method=method))

    @pytest.mark.parametrize("far", [0, 0.5])
    def test_a_category_that_does_not_occur_changes_nothing(self, far: float) -> None:
        matrix = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
        wider = [[*row, far] for row in matrix] + [[far, far, far, 1]]
        plain = dh_kappa(self.VOTES, self.LABELS, ordinal=matrix, categories=[1, 2, 3])
        more = dh_kappa(self.VOTES, self.LABELS, ordinal=wider, categories=[1, 2, 3, 4])
        assert more.exact == plain.exact
        assert more.se == pytest.approx(plain.se, rel=1e-12)
        assert tuple(more.interval()) == pytest.approx(tuple(plain.interval()), rel=1e-12)
