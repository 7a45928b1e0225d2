"""What mutants of the statistics rooms have lived through: bootstrap, random labels and simulation.

Oracles are the worked examples of docs/methods.md, fractions and closed forms computed by hand, and scipy.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dhkappa import dh_kappa, simulate
from dhkappa.errors import OutOfMemoryError
from dhkappa.memory import Room
from dhkappa.progress import Progress
from dhkappa.stats.bootstrap import Bootstrap, bca_interval, percentile_interval
from dhkappa.stats.permutation import RandomLabelTest
from mutants import cell, example, sentence


def test_one_replicate_is_enough_to_ask_for() -> None:
    assert example().bootstrap(n=1, rng=1).values.shape == (1,)


class TestBootstrap:
    VALUES = np.array([0.1, 0.2, 0.3, 0.4])

    def test_sentences(self) -> None:
        values, ones = self.VALUES, np.array([1, 1])
        for alpha in (0, 1, "x"):
            refused = f"alpha must be between 0 and 1, such as 0.05 for a level of 0.95: got {alpha!r}."
            assert sentence(percentile_interval, values, alpha) == refused
            assert sentence(bca_interval, values, 0.2, np.array([1.0, -1.0]), ones, alpha) == refused
        for n in (0, True, 2.5, 10**8 + 1):
            assert sentence(example().bootstrap, n) == (
                f"n, the number of replicates, must be a whole number from 1 to 100,000,000: got {n!r}."
            )
        none = percentile_interval(np.array([]), 0.1)
        assert (none.reason, none.method, none.level) == ("no replicate has a kappa.", "bootstrap", 0.9)
        equal = "all replicates are equal, so that they say nothing about other samples."
        assert percentile_interval(np.array([0.5, 0.5]), 0.1).reason == equal
        assert bca_interval(np.array([0.5, 0.5]), 0.5, np.array([1.0, -1.0]), ones, 0.1).reason == equal
        beyond = bca_interval(values, 0.9, np.array([1.0, -1.0]), ones, 0.1)
        assert beyond.reason == "kappa lies beyond all of its replicates, so that their bias cannot be corrected."
        still = bca_interval(values, 0.2, np.array([0.0, 0.0]), ones, 0.1)
        assert still.reason == "no item has any influence on kappa, so that the acceleration is undefined."
        assert (still.method, math.isnan(still.low), math.isnan(still.high)) == ("bca", True, True)

    def test_items_drawn_one_by_one(self) -> None:
        """Where patterns are nearly as many as items; the sd of kappas is a standard error, known to 10% from 50."""
        drawn = simulate(400, categories=range(30), accuracy=0.6, rng=4)
        kappa = dh_kappa(drawn.votes, drawn.suggested["labeler"])
        assert len(kappa.sample.patterns) > 256
        found = kappa.bootstrap(50, rng=1)
        assert found.values.shape == (50,)
        assert found.mean == pytest.approx(kappa.value, abs=kappa.se)
        assert found.sd == pytest.approx(kappa.se, rel=0.4)

    @pytest.mark.parametrize("progress", [True, False])
    def test_whether_progress_is_shown(self, monkeypatch: pytest.MonkeyPatch, progress: bool) -> None:
        asked = []

        def shown(total: int, what: str, show: bool) -> Progress:
            asked.append((total, what, show))
            return Progress(total, what, show)

        monkeypatch.setattr("dhkappa.stats.bootstrap.Progress", shown)
        example().bootstrap(20, rng=1, progress=progress)
        assert asked == [(20, "bootstrap", progress)]

    def test_quantiles(self) -> None:
        found = percentile_interval(self.VALUES, 0.5)
        assert tuple(found) == pytest.approx((0.175, 0.325), rel=1e-12)
        assert (found.method, found.level, found.reason) == ("bootstrap", 0.5, None)

    def test_bca_by_hand(self) -> None:
        """Of phi = 1, 1, -2: a = (1 + 1 - 8) / (6 * 6^1.5); of four replicates one is below, one tied counts half."""
        found = bca_interval(self.VALUES, 0.2, np.array([1.0, -2.0]), np.array([2, 1]), 0.5)
        a, bias = -6 / (6 * 6**1.5), float(ndtri(1.5 / 4))
        moved = [bias + float(ndtri(p)) for p in (0.25, 0.75)]
        places = [float(ndtr(bias + z / (1 - a * z))) for z in moved]
        assert tuple(found) == pytest.approx([0.1 + 0.3 * place for place in places], rel=1e-12)
        assert (found.method, found.level) == ("bca", 0.5)

    def test_in_words(self) -> None:
        assert repr(Bootstrap(self.VALUES, 2, 6, 0.25)) == (
            "Bootstrap(6 replicates; kappa 0.2500, mean 0.2500, sd 0.1291; 2 undefined)"
        )
        assert repr(Bootstrap(np.array([0.5]), 0, 1, 0.5)) == (
            "Bootstrap(1 replicate; kappa 0.5000, mean 0.5000, sd nan)"
        )
        rows = [("kappa", "0.2500"), ("mean of replicates", "0.2500"), ("sd of replicates", "0.1291")]
        rows += [("replicates", "1,006"), ("undefined", "1,002")]
        assert Bootstrap(self.VALUES, 1002, 1006, 0.25)._repr_html_() == (
            f"<table>{''.join(cell(*row) for row in rows)}</table>"
        )
        assert math.isnan(Bootstrap(np.array([]), 1, 1, 0.5).mean)

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


class TestChance:
    def test_sentences(self) -> None:
        kappa, weighted = example(), example(weights=[1, 2, 3, 4, 5, 6])
        for method in ("x", 3):
            assert sentence(kappa.test, method) == (
                f"method must be one of 'exact', 'z', 'monte-carlo', 'wald': got {method!r}."
            )
        assert sentence(weighted.test, "z") == (
            "method='z' deals labels out over items that are all alike: with weights or strata use 'wald'."
        )
        for alternative in ("less", None):
            assert sentence(kappa.test, alternative=alternative) == (
                f"alternative must be one of 'greater', 'two-sided': got {alternative!r}."
            )
        for n in (0, 2.5):
            assert sentence(kappa.test, n=n) == f"n must be a whole number of draws, 1 or more: got {n!r}."
        assert sentence(kappa.test, "monte-carlo", n=10**10) == (
            "method='monte-carlo' cannot deal 6 labels 10,000,000,000 times in reasonable time: "
            "use method='z', or fewer draws, n=."
        )

    def test_in_words(self) -> None:
        found = example().test()
        assert repr(found) == (
            "labels against random labels: +0.5625 from the floor (p 0.0556, z 1.83, alternative greater, method exact)"
        )
        drawn = example().test("monte-carlo", alternative="two-sided", n=1000, rng=1)
        assert repr(drawn).endswith(", z 1.83, alternative two-sided, method monte-carlo, draws 1,000)")
        still = dh_kappa([[1, 1], [2, 2]], [1, 1]).test()
        why = "these labels score the same on these items in whatever order"
        assert repr(still) == (
            "labels against random labels: +0.0000 from the floor "
            f"(p 1, z undefined, alternative greater, method exact): {why}"
        )
        rows = [("kappa less floor", "+0.0000"), ("p", "1"), ("z", "undefined"), ("alternative", "greater")]
        table = "".join(cell(*row) for row in [*rows, ("method", "exact")])
        assert still._repr_html_() == f"<table>{table}</table><p>{why}.</p>"
        assert found._repr_html_().endswith("<td>exact</td></tr></table>")
        assert still.to_dict() == {
            "difference": 0.0,
            "z": None,
            "p_value": 1.0,
            "alternative": "greater",
            "method": "exact",
            "n_draws": 0,
            "reason": f"{why}.",
        }
        assert repr(RandomLabelTest(0.5, 40.0, 0.0, "greater", "z", 0)).endswith(
            "(p < 1e-300, z 40.00, alternative greater, method z)"
        )
        same = dh_kappa([[1, 1], [2, 2]] * 3, [1, 1] * 3, weights=[1, 2, 3, 4, 5, 6]).test()
        assert same.reason == "every item has the same influence on kappa above its floor, or the whole pool was drawn."
        assert (same.method, math.isnan(same.z), math.isnan(same.p_value)) == ("wald", True, True)
        assert same.n_draws == 0

    @pytest.mark.parametrize("cell", [0, 10**6])  # tables always, then shuffles always
    @pytest.mark.parametrize("draws", [1, 2, 7])
    def test_every_dealing_is_drawn(self, cell: int, draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """No dealing scores less than labels that are all wrong, so all that are drawn count."""
        monkeypatch.setattr("dhkappa.stats.permutation._CELL", cell)
        monkeypatch.setattr("dhkappa.stats.permutation._AT_ONCE", 4)
        wrong = dh_kappa([[1, 1], [2, 2]] * 2, [2, 1] * 2)
        assert wrong.test("monte-carlo", n=draws, rng=1).p_value == 1

    def test_with_strata_and_weights(self) -> None:
        """kappa above its floor over its standard error; strata count as bound items, two of them already."""
        for given in ({"strata": list("xxxyyy")}, {"weights": [1, 2, 3, 4, 5, 6]}):
            found = example(**given).test(alternative="two-sided")
            assert (found.method, found.n_draws) == ("wald", 0)
            assert found.p_value == pytest.approx(2 * float(ndtr(-abs(found.z))), rel=1e-12)
        heavy = dh_kappa([[1, 1], [2, 2], [1, 2]], [1, 2, 2], weights=[1e300, 1, 1]).test()
        assert (heavy.reason, heavy.n_draws) == ("one item outweighs all the others.", 0)
        assert all(map(math.isnan, (heavy.difference, heavy.z, heavy.p_value)))
        assert heavy.to_dict()["z"] is None

    def test_tails(self) -> None:
        found, both = example().test("z"), example().test("z", alternative="two-sided")
        assert found.z == both.z
        assert found.p_value == pytest.approx(float(ndtr(-found.z)), rel=1e-12)
        assert both.p_value == pytest.approx(2 * found.p_value, rel=1e-12)
        below = dh_kappa([[1, 1], [2, 2], [1, 1], [2, 2]], [2, 1, 2, 1])
        assert below.test().p_value > 0.5 > below.test(alternative="two-sided").p_value

    def test_one_label_scores_the_same_in_whatever_order(self) -> None:
        """Also where rounding leaves something of a variance that is 0, as on some of these."""
        draw = np.random.default_rng(0)
        for _ in range(40):
            votes = draw.integers(0, 3, (int(draw.integers(5, 30)), int(draw.integers(2, 6))))
            found = dh_kappa(votes, [0] * len(votes)).test()
            assert found.reason == "these labels score the same on these items in whatever order."
            assert (math.isnan(found.z), found.p_value) == (True, 1)


class TestSimulate:
    def test_more_votes_than_can_be_held(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """At 40 bytes a vote."""
        monkeypatch.setattr("dhkappa.memory.room", lambda: Room(5 << 20, 6 << 20, "a control group"))
        for n_items in (0, 1):
            said = "1 item" if n_items else "0 items"
            with pytest.raises(OutOfMemoryError) as error:
                simulate(n_items, annotators=10**6)
            assert str(error.value) == (
                f"38 MiB of memory are needed for {said} with 1,000,000 votes each, and 5 are left of 6 MiB by a "
                "control group: raise that limit, or end what else takes memory."
            )

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"categories": []}, "categories must name a category at least."),
            ({"n_items": -1}, "n_items must be a whole number from 0 to 10,000,000,000: got -1."),
            ({"n_items": 10**10 + 1}, "n_items must be a whole number from 0 to 10,000,000,000: got 10000000001."),
            ({"annotators": "ab"}, "annotators must be a whole number from 0 to 10,000,000,000: got 'ab'."),
            ({"labelers": 3}, "labelers must map names to accuracies, such as {'llm': 0.9}: got 3."),
            ({"accuracy": 1.5}, "accuracy must be between 0 and 1: got 1.5."),
            ({"annotators": [0.5, 2]}, "accuracy must be between 0 and 1: got 2."),
            ({"labelers": {"x": -1}}, "labelers must be between 0 and 1: got -1."),
            ({"missing": "1"}, "missing must be between 0 and 1: got '1'."),
            ({"prevalence": [1, 2]}, "prevalence must be 3 numbers, one for each category, 0 or more: got [1, 2]."),
            (
                {"prevalence": [1, -1, 1]},
                "prevalence must be 3 numbers, one for each category, 0 or more: got [1, -1, 1].",
            ),
            (
                {"prevalence": [0, 0, 0]},
                "prevalence must be 3 numbers, one for each category, 0 or more: got [0, 0, 0].",
            ),
            (
                {"prevalence": [1, math.inf, 1]},
                "prevalence must be 3 numbers, one for each category, 0 or more: got [1, inf, 1].",
            ),
            ({"prevalence": "abc"}, "prevalence must be 3 numbers, one for each category, 0 or more: got 'abc'."),
            ({"rng": "x"}, "rng must be a seed, 0 or more, or a numpy Generator: got 'x'."),
            ({"rng": -1}, "rng must be a seed, 0 or more, or a numpy Generator: got -1."),
        ],
    )
    def test_sentences(self, given: dict[str, Any], message: str) -> None:
        assert sentence(simulate, **{"n_items": 4, "rng": 1} | given) == message

    def test_defaults_and_ends(self) -> None:
        drawn = simulate(4_000, rng=1)
        assert repr(drawn) == "Simulation(4,000 items, 3 annotators, 3 categories, labelers 'labeler')"
        assert drawn.categories == ("a", "b", "c")
        # 4,000 draws: the sd of a share of 0.8 or 0.85 is 0.006, and of one of a third 0.0075.
        assert np.mean(drawn.suggested["labeler"] == drawn.truth) == pytest.approx(0.8, abs=0.025)
        assert np.mean(drawn.votes == drawn.truth[:, None]) == pytest.approx(0.85, abs=0.02)
        for label in "abc":
            assert np.mean(drawn.truth == label) == pytest.approx(1 / 3, abs=0.03)
            wrong = drawn.suggested["labeler"][(drawn.truth != label) & (drawn.suggested["labeler"] != drawn.truth)]
            assert np.mean(wrong == label) == pytest.approx(0.5, abs=0.08)  # of two other labels; 530 draws
        assert not (drawn.votes == None).any()  # noqa: E711  # of an array
        sure = simulate(50, annotators=[1, 0], labelers={"x": 1, "y": 0}, missing=0, rng=1)
        assert (sure.votes[:, 0] == sure.truth).all()
        assert not (sure.votes[:, 1] == sure.truth).any()
        assert (sure.suggested["x"] == sure.truth).all()
        assert not (sure.suggested["y"] == sure.truth).any()
        lost = simulate(50, missing=1, prevalence=[0, 2, 0], rng=1)
        assert (lost.votes == None).all()  # noqa: E711
        assert set(lost.truth) == {"b"}
        assert set(simulate(60, prevalence=[1e300] * 3, rng=1).truth) == {"a", "b", "c"}
        two: Any = np.array(2)  # a number, though it looks like a list
        assert simulate(4, annotators=two, rng=1).votes.shape == (4, 2)
        assert simulate(3, annotators=0, rng=1).votes.shape == (3, 0)
        assert simulate(0, rng=1).votes.shape == (0, 3)
        assert set(simulate(9, categories=["a"], accuracy=0.0, rng=1).votes.ravel()) == {"a"}
