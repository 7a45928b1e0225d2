"""What mutants of the statistics rooms have lived through: plans and comparisons.

Oracles are the worked examples of docs/methods.md, fractions and closed forms computed by hand, and scipy.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import pytest
from scipy.special import ndtri

from dhkappa import compare, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.core.item_table import read_item_table
from dhkappa.stats import compare as compare_room
from dhkappa.stats.compare import compare_of, holm
from dhkappa.stats.intervals import (
    Gap,
    beta_interval,
    plain_basis,
)
from dhkappa.stats.plan import plan_of
from mutants import EXAMPLE, ONE_WEIGHT, F, example, sentence

NEEDS = (
    "plan needs to know what to expect: pass pilot=, the kappa of some items, or accuracy=, labeler= and categories="
)


class TestPlan:
    @pytest.mark.parametrize(
        ("half_width", "given", "message"),
        [
            (0, {}, "half_width must be above 0 and at most 1, such as 0.05: got 0."),
            (1.01, {}, "half_width must be above 0 and at most 1, such as 0.05: got 1.01."),
            (True, {}, "half_width must be above 0 and at most 1, such as 0.05: got True."),
            (0.1, {"confidence_level": 2}, "level must be between 0 and 1, such as 0.95: got 2."),
            (0.1, {"assurance": 1}, "assurance must be between 0 and 1, such as 0.9: got 1."),
            (0.1, {"assurance": 0}, "assurance must be between 0 and 1, such as 0.9: got 0."),
            (0.1, {"pool": 1}, "pool must be a whole number from 2 to 4,611,686,018,427,387,904: got 1."),
            (
                0.1,
                {"pool": 2**62 + 1},
                f"pool must be a whole number from 2 to {2**62:,}: got {2**62 + 1}.",
            ),
            (0.1, {"votes": True}, "votes must be a whole number from 2 to 1,000: got True."),
            (0.1, {"votes": 1001}, "votes must be a whole number from 2 to 1,000: got 1001."),
            (0.1, {"votes": "3"}, "votes must be a whole number from 2 to 1,000: got '3'."),
            (0.1, {}, f"{NEEDS}: got none of them."),
            (0.1, {"accuracy": 0.9}, f"{NEEDS}: got accuracy."),
            (0.1, {"accuracy": 0.9, "categories": 3}, f"{NEEDS}: got accuracy and categories."),
            (0.1, {"accuracy": 0.9, "labeler": 0.8}, f"{NEEDS}: got accuracy and labeler."),
            (0.1, {"accuracy": 1.1, "labeler": 0.8, "categories": 3}, "accuracy must be from 0 to 1: got 1.1."),
            (0.1, {"accuracy": 0.9, "labeler": -1, "categories": 3}, "labeler must be from 0 to 1: got -1."),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "categories": 1},
                "categories must be a whole number from 2 to 1,000: got 1.",
            ),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "prevalence": [1]},
                "prevalence must be 2 to 1,000 numbers, 0 or more: got [1].",
            ),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "prevalence": [1, -1, 3]},
                "prevalence must be 2 to 1,000 numbers, 0 or more: got [1, -1, 3].",
            ),
            (
                0.1,
                {"accuracy": 0.9, "labeler": 0.8, "prevalence": [1, 2], "categories": 3},
                "prevalence must have a number for each of 3 categories: got 2.",
            ),
            (
                0.1,
                {"accuracy": 1, "labeler": 0, "categories": 2},
                "accuracy and labeler leave nothing to chance, so no sample could show how far kappa varies.",
            ),
            (
                0.1,
                {"accuracy": 1, "labeler": 1, "prevalence": [1, 0]},
                "prevalence must not make every vote and label one category: kappa is undefined then.",
            ),
            (0.1, {"pilot": 3}, "pilot must be a kappa from dh_kappa, without ordinal weights: got 3."),
            (
                1e-9,
                {"accuracy": 0.9, "labeler": 0.8, "categories": 3},
                "half_width must be wide enough for 1,000,000,000,000 items or fewer: got 1e-09.",
            ),
        ],
    )
    def test_sentences(self, half_width: float, given: dict[str, Any], message: str) -> None:
        assert sentence(plan_of, half_width, **given) == message

    def test_sentences_on_pilots(self) -> None:
        assert sentence(plan_of, 0.1, pilot=example(), accuracy=0.9, labeler=0.8) == (
            "pilot is given, which shows what to expect: leave out accuracy and labeler."
        )
        assert sentence(plan_of, 0.1, pilot=example(), prevalence=[1, 2], categories=2) == (
            "pilot is given, which shows what to expect: leave out categories and prevalence."
        )
        assert sentence(plan_of, 0.1, pilot=dh_kappa([], [])) == (
            "pilot must have a kappa that is defined, but the data hold no items."
        )
        unknown = "so it cannot show how far kappa varies: add items to it."
        assert sentence(plan_of, 0.1, pilot=dh_kappa([[1, 2]], [1])) == f"pilot has one item, {unknown}"
        assert sentence(plan_of, 0.1, pilot=dh_kappa([[1, 2]] * 3, [1] * 3)) == (
            f"pilot has items of the same influence only, {unknown}"
        )
        assert sentence(plan_of, 0.1, pilot=example(), votes=4) == (
            "votes must be at most 3 with this pilot, as more than half of its items have no more: got 4; "
            "a pilot with four votes on at least half of its items can tell for any number."
        )
        panel = fleiss_kappa(EXAMPLE.votes)
        assert sentence(plan_of, 0.1, pilot=panel).startswith("pilot must be a kappa from dh_kappa, without")

    def test_notes(self) -> None:
        small = "{} items show only roughly how far kappa varies: the number to be sure of it allows for that."
        cut = (
            "The comparison stops at {} votes on an item: only a pilot with four votes on at least half of its items "
            "can tell for any number."
        )
        planned = plan_of(0.2, pilot=example())
        assert [note.to_dict() for note in planned.notes] == [
            {"code": "small-pilot", "text": small.format(6)},
            {"code": "trade-cut", "text": cut.format(3)},
        ]
        flawless = plan_of(0.1, pilot=dh_kappa([[1, 1]] * 5 + [[2, 2]] * 5, [1] * 5 + [2] * 5))
        assert [note.to_dict() for note in flawless.notes] == [
            {"code": "small-pilot", "text": small.format(10)},
            {
                "code": "flawless-pilot",
                "text": "Every vote of the pilot is the suggested label: the plan holds if that goes on.",
            },
            {"code": "trade-cut", "text": cut.format(2)},
        ]

    def test_a_ragged_pilot_says_which_items_tell_what(self) -> None:
        pilot = dh_kappa([[1, 1, 1], [1, 2, 1], [2, 2], [2, 2, 2]], [1, 1, 2, 1])
        planned, chosen = plan_of(0.2, pilot=pilot), plan_of(0.2, pilot=pilot, votes=3)
        part = "the 3 of 4 items of the pilot with 3 votes or more"
        mixed = "and the plan for votes as in the pilot from all of them: the two need not line up"
        assert planned.assumes == "all 4 items of the pilot, with the votes that they have"
        assert chosen.assumes == part
        assert planned.notes[-1].to_dict() == {"code": "trade-part", "text": f"The comparison is from {part}, {mixed}."}
        assert chosen.notes[-1].to_dict() == {"code": "trade-part", "text": f"The comparison is from {part}."}
        for found in (planned, chosen):
            assert found.options.title == f"Items for a half-width of 0.2 at 0.95, by votes on an item, from {part}"
            assert f"<caption>{found.options.title}</caption>" in found._repr_html_()
            assert repr(found).endswith(f"({found.assumes}; 3 notes)")
        # items of different numbers of votes, all of which tell
        assert plan_of(0.2, pilot=dh_kappa([[1, 1], [1, 2, 1], [2, 2], [2, 2]], [1, 1, 2, 1])).options.title == (
            "Items for a half-width of 0.2 at 0.95, by votes on an item"
        )

    def test_in_words_and_plain_values(self) -> None:
        planned = plan_of(0.2, pilot=example())
        assert repr(planned) == (
            f"{planned.items} items x 3 votes for kappa 0.454 +- 0.2 at 0.95, {planned.items_assured} to be 0.9 sure "
            "(pilot of 6 items; 2 notes)"
        )
        found = planned.to_dict()
        assert list(found) == [
            *("votes", "sigma", "items", "items_assured", "total_votes", "cheapest", "kappa"),
            *("half_width", "confidence_level", "assurance", "pool", "assumes", "trade", "notes"),
        ]
        assert found["votes"] == 3
        assert found["total_votes"] == 3 * planned.items
        assert found["sigma"] == pytest.approx(math.sqrt(6) * example().se, rel=1e-12)
        assert (found["kappa"], found["half_width"], found["confidence_level"]) == (247 / 544, 0.2, 0.95)
        assert (found["assurance"], found["pool"], found["assumes"]) == (0.9, None, "pilot of 6 items")
        assert [row["votes"] for row in found["options"]] == [2, 3]
        assert list(found["options"][0]) == ["votes", "sigma", "items", "items_assured", "total_votes"]
        assert found["cheapest"] == min(found["options"], key=lambda row: row["total_votes"])["votes"]
        page = planned._repr_html_()
        assert page.startswith(f"<p>{planned!r}</p><table><caption>Items for a half-width of 0.2 at 0.95, by votes ")
        assert page.endswith("".join(f"<li>{note.text}</li>" for note in planned.notes) + "</ul>")
        assumed = plan_of(0.1, n_categories=3, annotator_accuracy=0.9, labeler_accuracy=0.8, votes=4)
        assert assumed.assumes == "3 categories, accuracy 0.9, labeler 0.8"
        assert not assumed._repr_html_().endswith("</ul>")
        assert (assumed.votes, assumed.total_votes) == (4, 4 * assumed.items)

    def test_shares_of_categories(self) -> None:
        """Up to a thousand, in whatever unit."""
        model: dict[str, Any] = {"accuracy": 0.9, "labeler": 0.9}
        even = plan_of(0.05, n_categories=2, **model).to_dict()
        assert plan_of(0.05, prevalence=[1e308, 1e308], **model).to_dict() == even
        assert plan_of(0.3, prevalence=[1] * 1000, **model).items > 1
        for wrong in ([1] * 1001, 5, ["x", 1]):
            assert sentence(plan_of, 0.05, prevalence=wrong, **model).startswith(
                "prevalence must be 2 to 1,000 numbers, 0 or more: got "
            )

    def test_half_a_vote_on_average(self) -> None:
        pilot = dh_kappa([[1, 1], [1, 2, 1], [2, 2], [2, 2, 2]], [1, 1, 2, 1])
        assert plan_of(0.2, pilot=pilot).votes == 2.5

    def test_a_pool_needs_fewer(self) -> None:
        plain, pooled = (
            plan_of(0.1, n_categories=3, annotator_accuracy=0.9, labeler_accuracy=0.8, votes=3, pool=n)
            for n in (None, 400)
        )
        for name in ("items", "items_assured"):
            n = getattr(plain, name)
            assert getattr(pooled, name) == math.ceil(n / (1 + n / 400))

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

        planned = plan_of(0.1, n_categories=2, annotator_accuracy=a, labeler_accuracy=q, votes=2)
        assert planned.kappa == pytest.approx(D, rel=1e-12)
        assert planned.sigma == pytest.approx(math.sqrt(variance), rel=1e-12)
        assert half(planned.items_assured) <= 0.1 < half(planned.items_assured - 1)


class TestCompare:
    LABELS: ClassVar[dict[str, list[int]]] = {"x": [1, 1, 2, 2, 3, 3], "y": [1, 2, 2, 2, 3, 2]}

    def test_in_words(self) -> None:
        found = compare(EXAMPLE.votes, self.LABELS)
        few = (
            "Labels differ on fewer than 10 items between 'x' and 'y': their p comes from swapping labels at random, "
            "item by item."
        )
        assert [note.to_dict() for note in found.notes] == [{"code": "few-discordant", "text": few}]
        assert found.differences.title == "Differences between labelers, 0.95 intervals"
        assert found.table().title == "Kappa by labeler, 0.95 intervals"
        quiet = replace(found, notes=())
        assert repr(quiet) == f"{found.table()!r}\n\n{found.differences!r}"
        assert repr(found).startswith(f"{quiet!r}\n- Labels differ on fewer")
        assert found._repr_html_() == f"{quiet._repr_html_()}<ul><li>{html.escape(few)}</li></ul>"
        assert sentence(compare, EXAMPLE.votes, {"x": EXAMPLE.suggested}) == (
            "suggested must name two labelers at least, to compare them: got 'x'."
        )
        assert found.best == "y"

    def test_items_that_all_labeled(self) -> None:
        labels = {"x": [*self.LABELS["x"], 1, None], "y": [*self.LABELS["y"], 1, 2]}
        found = compare([*EXAMPLE.votes, [1], [1, 2]], labels)
        assert found.notes[0].text == (
            "2 items did not count: 1 with one vote, 1 with no suggested label. Labelers are compared on items that "
            "all of them labeled."
        )
        assert {name: kappa.exact for name, kappa in found.kappas.items()} == {
            name: dh_kappa(EXAMPLE.votes, labels).exact for name, labels in self.LABELS.items()
        }

    def test_swapping_by_hand(self) -> None:
        """Two items are discordant: of four ways to swap, p is the share with as large a difference."""
        found = next(iter(compare(EXAMPLE.votes, self.LABELS).differences))

        def gap(x: Sequence[int], y: Sequence[int]) -> float:
            return abs(dh_kappa(EXAMPLE.votes, x).value - dh_kappa(EXAMPLE.votes, y).value)

        x, y = self.LABELS["x"], self.LABELS["y"]
        places = [place for place in range(6) if x[place] != y[place]]
        gaps = []
        for tossed in product((False, True), repeat=len(places)):
            swapped = [place for place, toss in zip(places, tossed, strict=True) if toss]
            one = [y[i] if i in swapped else x[i] for i in range(6)]
            other = [x[i] if i in swapped else y[i] for i in range(6)]
            gaps.append(gap(one, other))
        assert found["discordant"] == len(places) == 2
        assert found["pvalue"] == sum(one >= gap(x, y) - 1e-12 for one in gaps) / 4
        assert (found["method"], found["pvalue_holm"]) == ("swap", found["pvalue"])
        assert found["difference"] == pytest.approx(
            dh_kappa(EXAMPLE.votes, x).value - dh_kappa(EXAMPLE.votes, y).value, rel=1e-12
        )

    def test_twelve_items_are_swapped_in_all_ways(self) -> None:
        """One labeler is always right and the other never, so no item moves the difference more than another."""
        found = compare([["a", "a"], ["b", "b"]] * 6, {"x": list("ab") * 6, "y": list("ba") * 6})
        row = next(iter(found.differences))
        assert (row["method"], row["discordant"], row["pvalue"]) == ("swap", 12, 2 / 2**12)
        assert [note.to_dict() for note in found.notes] == [
            {
                "code": "no-standard-error",
                "text": "No item sets 'x' and 'y' further apart than another, so there is no standard error: their p "
                "comes from swapping labels at random, item by item.",
            }
        ]

    def test_holm_by_hand(self) -> None:
        assert holm([0.01, 0.04, 0.03, math.nan])[:3] == pytest.approx([0.03, 0.06, 0.06])
        assert math.isnan(holm([0.01, math.nan])[1])
        assert holm([0.6, 0.7]) == [1.0, 1.0]
        assert holm([0.5]) == [0.5]
        assert holm([]) == []

    def test_the_source_is_said(self) -> None:
        votes = tally(EXAMPLE.votes, self.LABELS)
        votes._remarks = ("Half of it was skipped.",)
        assert compare(votes).notes[0].to_dict() == {"code": "source", "text": "Half of it was skipped."}

    def test_defaults_of_the_room(self) -> None:
        labels = {"x": [1, 1, 2, 2, 3, 3], "y": [1, 2, 2, 2, 3, 2]}
        found, plain = compare_of(read_item_table(EXAMPLE.votes, labels)), compare(EXAMPLE.votes, labels)
        assert (found.confidence_level, repr(found)) == (0.95, repr(plain))
        assert {kappa._sample.panel for kappa in found.kappas.values()} == {"fixed"}

    def test_categories_without_items(self) -> None:
        found = compare([], {"x": [], "y": []}, categories=[1, 2])
        assert found.differences.column("reason") == ["the data hold no items."]
        assert found.notes == ()

    def test_labels_that_differ_are_counted_where_a_kappa_is_undefined(self) -> None:
        (row,) = compare([[1, 1]] * 3, {"x": [1, 1, 1], "y": [2, 1, 2]}).differences
        assert (row["discordant"], row["method"], math.isnan(row["difference"])) == (2, None, True)

    def test_one_of_two_items_outweighs_the_other(self) -> None:
        (row,) = compare([[1, 1], [2, 2]], {"x": [1, 2], "y": [2, 1]}, sample_weight=[1, 1e-20]).differences
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
        assert (row["method"], row["pvalue"]) == ("swap", 2 / 2**12)  # all swapped, or none
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
        assert (row["difference"], row["se"], row["method"], row["discordant"], row["pvalue"]) == (0, 0, "t", 12, 1)

    @pytest.mark.parametrize("at_once", [1 << 21, 2_000])
    def test_no_difference_is_as_far_in_every_swap(self, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kappa is Cohen's with two categories, and 0 for one label: p is (1 + 9,999) / (1 + 9,999)."""
        monkeypatch.setattr(compare_room, "_AT_ONCE", at_once)
        (row,) = compare([[1, 1, 2]] * 13, {"x": [1] * 13, "y": [2] * 13}).differences
        assert (row["difference"], row["method"], row["discordant"], row["pvalue"]) == (0, "swap", 13, 1)

    @pytest.mark.parametrize("light", [1.5438320775328533e-16, 1.7634952302877414e-16, 2.2079526514765869e-16])
    def test_a_swap_that_leaves_no_kappa_but_for_rounding(self, light: float) -> None:
        """A swap may leave every label 1; of E and D, which the light item keeps from 1, only D is then below 1."""
        for n in (2, 3):
            labels = {"x": [2, *[1] * n], "y": [1, 2, *[1] * (n - 1)]}
            found = compare([[1, 1]] * n + [[1, 2]], labels, sample_weight=[1.0] * n + [light])
            (row,) = found.differences
            assert (row["difference"], row["method"], row["discordant"], row["pvalue"]) == (0, "swap", 2, 1)

    def test_ten_items_without_a_standard_error(self) -> None:
        found = compare([["a", "a"], ["b", "b"]] * 5, {"x": list("ab") * 5, "y": list("ba") * 5})
        assert found.differences.column("pvalue") == [2 / 2**10]
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
