"""What more mutants of the statistics rooms have lived through: designs, borders, and what is said where nothing is.

Oracles are fractions and closed forms computed by hand, and the rooms that other tests hold to such.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from dhkappa import Kappa, compare, dh_kappa, simulate
from dhkappa.data.ballots import read_ballots
from dhkappa.data.cells import read_cells
from dhkappa.stats import compare as compare_room
from dhkappa.stats.compare import compare_of
from dhkappa.stats.intervals import Gap, beta_interval, plain_basis
from dhkappa.stats.people import people
from dhkappa.stats.plan import plan_of
from dhkappa.stats.verdict import verdict_of
from strategies import from_counts

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
ONE_WEIGHT = "one item outweighs all the others"


def example(**given: Any) -> Kappa:
    return dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, **given)


def test_one_replicate_is_enough_to_ask_for() -> None:
    assert example().bootstrap(n=1, rng=1).values.shape == (1,)


class TestChance:
    def test_one_label_scores_the_same_in_whatever_order(self) -> None:
        """Also where rounding leaves something of a variance that is 0, as on some of these."""
        draw = np.random.default_rng(0)
        for _ in range(40):
            votes = draw.integers(0, 3, (int(draw.integers(5, 30)), int(draw.integers(2, 6))))
            found = dh_kappa(votes, [0] * len(votes)).test()
            assert found.reason == "these labels score the same on these items in whatever order."
            assert (math.isnan(found.z), found.p_value) == (True, 1)


class TestCategories:
    def test_a_whole_pool_is_known_for_sure(self) -> None:
        """All votes are a, so for the label b D and E are both -1, and no item moves its kappa of 0."""
        for pool, known in ((4, True), (5, False)):
            row = list(dh_kappa([["a", "a"]] * 4, list("aabb"), pool=pool).by_category())[1]
            assert (row["category"], row["kappa"]) == ("b", 0)
            if known:
                assert (row["se"], row["low"], row["high"], row["reason"]) == (0, 0, 0, None)
            else:
                assert row["reason"] == "no item moves it, so its spread is unknown."
                assert all(math.isnan(row[name]) for name in ("se", "low", "high"))

    def test_light_items_know_as_much_as_their_number(self) -> None:
        """Eight items of equal weight have seven degrees of freedom, also where that weight is a thousandth."""
        votes = [list(item) for item in ("aaa", "aab", "abb", "aaa", "aac", "aab", "aaa", "acc")]
        others = [list(item) for item in ("bbb", "bbc", "bba", "ccc", "ccb", "cca")]
        weights = [0.001] * 8 + [1.0] * 6
        row = next(iter(dh_kappa(votes + others, list("aaaaaaaabbbccc"), weights=weights).by_category(0.5)))
        assert (row["category"], row["items"]) == ("a", 8)
        assert row["high"] < 1
        assert row["high"] - row["kappa"] == pytest.approx(float(stdtrit(7, 0.75)) * row["se"], rel=1e-9)


class TestBootstrap:
    def test_strata_of_like_items_never_vary(self) -> None:
        """Each stratum is drawn again from its own items, which are all the same."""
        votes = [["a", "a"]] * 3 + [["a", "b"]] * 5 + [["b", "b"]] * 2
        kappa = dh_kappa(votes, list("aaabbbbbbb"), strata=list("xxxyyyyyzz"))
        found = kappa.bootstrap(50, rng=1)
        assert found.values.tolist() == pytest.approx([kappa.value] * 50, rel=1e-12)

    def test_items_that_are_all_different(self) -> None:
        """Of each item one pair in three agrees, so D is 1/3 in every replicate, and E = sum C (2 L - 1) C is near 0.

        A third of the replicates leave out any one item, so also the last.
        """
        kappa = dh_kappa([[i, i, i + 1] for i in range(300)], list(range(300)))
        found = kappa.bootstrap(30, rng=1)
        assert (found.values.size, found.undefined) == (30, 0)
        assert found.values.min() > 1 / 3
        assert found.values.max() < 0.35  # sum C^2 is 1/300 on 300 categories, and about twice that drawn again


class TestPeople:
    def test_one_item_outweighs_the_others_for_one_of_the_two(self) -> None:
        """On the heavy item ann and the others vote a, and so does the labeler: with C and L all a, E is 1."""
        drawn = simulate(40, annotators=3, rng=1)
        votes, labels = drawn.votes.copy(), drawn.suggested["labeler"].copy()
        weights = [1.0] * 39 + [1e300]
        for own, label in (("b", "a"), ("a", "b")):
            votes[-1], labels[-1] = [own, "a", "a"], label
            row = next(iter(people(read_ballots(votes, {"llm": labels}, weights=weights), "llm").table))
            assert (row["items"], row["reason"]) == (40, f"{ONE_WEIGHT}.")
            assert math.isnan(row["difference"])


class TestPlan:
    @pytest.mark.parametrize(("accuracy", "labeler"), [(0.7, 0.6), (0.9, 0.2)])
    def test_how_many_items_to_be_sure(self, accuracy: float, labeler: float) -> None:
        """Two categories as frequent as each other: C and L are 1/2, E is 0 and influence is d - D.

        Two votes agree with a^2 + (1 - a)^2, and then d is 1 or -1.
        """
        a, q = accuracy, labeler
        agree = a**2 + (1 - a) ** 2
        D = 2 * (q * a**2 + (1 - q) * (1 - a) ** 2) - agree
        variance, most = agree - D**2, max(1 + D, 1 - D) ** 2

        def half(n: int) -> float:
            assured = variance + float(ndtri(0.9)) * math.sqrt(variance * (most - variance) / n)
            low, high = beta_interval(plain_basis(D, 0.0, n, (n - 1) * assured, -1 - D, 1 - D), 1 - 0.95)
            return (high - low) / 2

        planned = plan_of(0.1, categories=2, accuracy=a, labeler=q, votes=2)
        assert planned.kappa == pytest.approx(D, rel=1e-12)
        assert planned.sigma == pytest.approx(math.sqrt(variance), rel=1e-12)
        assert half(planned.items_assured) <= 0.1 < half(planned.items_assured - 1)


class TestVerdict:
    def test_without_room_between_floor_and_ceiling(self) -> None:
        drawn = simulate(400, rng=1, accuracy=0.9, labelers={"x": 0.9})
        kappa = dh_kappa(drawn.votes, drawn.suggested["x"])
        low, high = kappa.interval()
        found = verdict_of("x", replace(kappa, ceiling=kappa.floor), None, 0.95)
        assert found.code == "between"
        assert math.isnan(found.share)
        assert found.text == (f"x does better than random: kappa {kappa.value:.2f}, interval {low:.2f} to {high:.2f}.")


class TestCompare:
    def test_defaults_of_the_room(self) -> None:
        labels = {"x": [1, 1, 2, 2, 3, 3], "y": [1, 2, 2, 2, 3, 2]}
        found, plain = compare_of(read_cells(EXAMPLE.votes, labels)), compare(EXAMPLE.votes, labels)
        assert (found.level, repr(found)) == (0.95, repr(plain))
        assert {kappa._sample.panel for kappa in found.kappas.values()} == {"fixed"}

    def test_categories_without_items(self) -> None:
        found = compare([], {"x": [], "y": []}, categories=[1, 2])
        assert found.differences.column("reason") == ["the data hold no items."]
        assert found.notes == ()

    def test_labels_that_differ_are_counted_where_a_kappa_is_undefined(self) -> None:
        (row,) = compare([[1, 1]] * 3, {"x": [1, 1, 1], "y": [2, 1, 2]}).differences
        assert (row["discordant"], row["method"], math.isnan(row["difference"])) == (2, None, True)

    def test_one_of_two_items_outweighs_the_other(self) -> None:
        (row,) = compare([[1, 1], [2, 2]], {"x": [1, 2], "y": [2, 1]}, weights=[1, 1e-20]).differences
        assert row["reason"] == f"{ONE_WEIGHT}, so its spread is unknown."

    @pytest.mark.parametrize(("number", "method"), [(9, "swap"), (10, "t")])
    def test_ten_labels_that_differ_are_enough_for_t(self, number: int, method: str) -> None:
        drawn = simulate(60, labelers={"x": 0.9}, rng=1)
        x = drawn.suggested["x"].tolist()
        y = [{"a": "b", "b": "c", "c": "a"}[label] if i < number else label for i, label in enumerate(x)]
        (row,) = compare(drawn.votes, {"x": x, "y": y}).differences
        assert (row["discordant"], row["method"]) == (number, method)

    def test_only_votes_vary(self) -> None:
        """Twelve items with the votes 1 1 2 3, of a pool of 24: none moves the difference, but its votes do.

        C is 1/2, 1/4 and 1/4. With the label 1, D = 1/6 and E = 1/8; with the label 3, D = -1/6 and E = -1/4.
        psi = (d - 2 (1 - kappa) sum_j C_j (2 L_j - 1) c_j) / (1 - E) without a 1 (twice), a 2 and a 3.
        """
        kappa = F(1, 21), F(1, 15)
        one = [F(0), F(0), (F(1, 3) - 2 * F(20, 21) / 4) * F(8, 7), (F(1, 3) - 2 * F(20, 21) / 4) * F(8, 7)]
        other = [
            *[(2 * F(14, 15) / 6) * F(4, 5)] * 2,
            (-F(1, 3) + 2 * F(14, 15) / 4) * F(4, 5),
            (-F(1, 3) + 2 * F(14, 15) * F(5, 12)) * F(4, 5),
        ]
        psi = [x - y for x, y in zip(one, other, strict=True)]
        over_votes = F(3, 4) * sum((value - sum(psi) / 4) ** 2 for value in psi)
        se = math.sqrt(F(12, 24) * over_votes / 12)
        (row,) = compare([[1, 1, 2, 3]] * 12, {"x": [1] * 12, "y": [3] * 12}, pool=24, panel="drawn").differences
        assert (row["difference"], row["discordant"]) == (float(kappa[0] - kappa[1]), 12)
        assert row["se"] == pytest.approx(se, rel=1e-12)
        assert (row["method"], row["p"]) == ("swap", 2 / 2**12)  # all swapped, or none
        reach = (8 / 7 + 4 / 5) * 0.5 / math.log(2)
        limits = Gap(row["difference"], se, 0.0, 12, 11, -reach, reach).limits(0.95)
        assert (row["low"], row["high"]) == pytest.approx([float(limit) for limit in limits], rel=1e-12)

    def test_rounding_is_no_skewness(self) -> None:
        """The same of the votes 1 1 2: with the label 1 kappa is 0 and E = 1/3, with 3 they are 1/7 and -5/9."""
        (row,) = compare([[1, 1, 2]] * 12, {"x": [1] * 12, "y": [3] * 12}, pool=24, panel="drawn").differences
        reach = (3 / 2 + 9 / 14) * 0.5 / math.log(2)
        limits = Gap(-1 / 7, row["se"], 0.0, 12, 11, -reach, reach).limits(0.95)
        assert row["difference"] == -1 / 7
        assert (row["low"], row["high"]) == pytest.approx([float(limit) for limit in limits], rel=1e-12)

    def test_a_whole_pool_without_a_difference(self) -> None:
        """Each labeler is wrong on six of twenty items, three of each label, so the two kappas are one."""
        right = list("ab") * 10
        wrong = list("ba") * 10
        labels = {"x": wrong[:6] + right[6:], "y": right[:14] + wrong[14:]}
        (row,) = compare([[label] * 2 for label in right], labels, pool=20).differences
        assert (row["difference"], row["se"], row["method"], row["discordant"], row["p"]) == (0, 0, "t", 12, 1)

    @pytest.mark.parametrize("at_once", [1 << 21, 2_000])
    def test_no_difference_is_as_far_in_every_swap(self, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kappa is Cohen's with two categories, and 0 for one label: p is (1 + 9,999) / (1 + 9,999)."""
        monkeypatch.setattr(compare_room, "_AT_ONCE", at_once)
        (row,) = compare([[1, 1, 2]] * 13, {"x": [1] * 13, "y": [2] * 13}).differences
        assert (row["difference"], row["method"], row["discordant"], row["p"]) == (0, "swap", 13, 1)

    @pytest.mark.parametrize("light", [1.5438320775328533e-16, 1.7634952302877414e-16, 2.2079526514765869e-16])
    def test_a_swap_that_leaves_no_kappa_but_for_rounding(self, light: float) -> None:
        """A swap may leave every label 1; of E and D, which the light item keeps from 1, only D is then below 1."""
        for n in (2, 3):
            labels = {"x": [2, *[1] * n], "y": [1, 2, *[1] * (n - 1)]}
            found = compare([[1, 1]] * n + [[1, 2]], labels, weights=[1.0] * n + [light])
            (row,) = found.differences
            assert (row["difference"], row["method"], row["discordant"], row["p"]) == (0, "swap", 2, 1)

    def test_ten_items_without_a_standard_error(self) -> None:
        found = compare([["a", "a"], ["b", "b"]] * 5, {"x": list("ab") * 5, "y": list("ba") * 5})
        assert found.differences.column("p") == [2 / 2**10]
        assert [note.code for note in found.notes] == ["no-standard-error"]

    def test_three_pairs_are_named_and_no_more(self) -> None:
        """a and c, b and d differ on twelve items, all others on six or none."""
        drawn = simulate(60, labelers={"x": 0.9}, rng=1)
        right = drawn.suggested["x"].tolist()
        wrong = [{"a": "b", "b": "c", "c": "a"}[label] for label in right]
        said = "Labels differ on fewer than 10 items between 'a' and 'b', 'a' and 'd', 'b' and 'c'"
        labels = {
            "a": right,
            "b": wrong[:6] + right[6:],
            "c": wrong[:12] + right[12:],
            "d": right[:6] + wrong[6:12] + right[12:],
        }
        (note,) = compare(drawn.votes, labels).notes
        assert note.text.startswith(f"{said}, ...: their p comes")
        (note,) = compare(drawn.votes, {"a": right, "b": right, "c": right}).notes
        assert note.text.startswith(
            "Labels differ on fewer than 10 items between 'a' and 'b', 'a' and 'c', 'b' and 'c': their p comes"
        )


class TestOrdinal:
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
