"""What mutants of the statistics rooms have lived through: annotators, items and categories.

Oracles are the worked examples of docs/methods.md, fractions and closed forms computed by hand, and scipy.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from dhkappa import dh_kappa, simulate
from dhkappa.core.items import read_item_votes
from dhkappa.stats.annotator_comparison import annotator_comparison
from dhkappa.stats.annotators import _rounded, annotators
from dhkappa.stats.review import review
from mutants import ONE_WEIGHT, F, example, sentence


class TestPersons:
    """Annotators, and people as labelers."""

    VOTES = np.array([list(item) for item in ("aaa", "aab", "bbb", "bba", "ccc", "bbc")], object)

    def test_votes_must_be_signed(self) -> None:
        unsigned = read_item_votes([["a", "a"]], {"rule": ["a"]})
        for asked in (annotators, annotator_comparison):
            assert sentence(asked, unsigned, "rule") == (
                "nothing tells who cast which vote, as lists, counts, tallies and large tables in an engine do not: "
                "pass votes as an n x N array, or as a table in memory with a column for each annotator or with "
                "annotator=."
            )

    def test_an_annotator_by_hand(self) -> None:
        table = annotators(read_item_votes(self.VOTES, {"rule": list("aabbcc")}), "rule")
        assert table.title == "What each annotator does to the kappa of rule"
        row = next(iter(table))
        assert (row["annotator"], row["items"], row["agree"], row["reason"]) == (0, 6, 5 / 6, None)
        # With each of the two others: on the label both, one, both, one, both; on the last item one, on another label.
        assert row["differential"] == pytest.approx((2 + 1 + 2 + 1 + 2 - 1) / 12)
        assert row["weight"] == pytest.approx(1 / 3)
        whole = dh_kappa(self.VOTES, list("aabbcc"))
        without = dh_kappa(self.VOTES[:, 1:], list("aabbcc"))
        assert row["kappa_without"] == without.value
        assert row["change"] == pytest.approx(without.value - whole.value)

    def test_why_there_is_no_number(self) -> None:
        votes = np.array([["a", "a", None], ["a", "b", None], ["b", "b", "b"]], object)
        rows = list(annotators(read_item_votes(votes[:2], {"rule": ["a", "b"]}), "rule"))
        assert [row["reason"] for row in rows] == [
            "without their votes, no labelled item has two.",
            "without their votes, no labelled item has two.",
            "no eligible item has a vote of theirs.",
        ]
        same = read_item_votes(np.array([["a", "a", "a"]] * 2, object), {"rule": ["a", "a"]})
        assert {row["reason"] for row in annotators(same, "rule")} == {
            "every vote and every suggested label is the same category."
        }
        one = read_item_votes(np.array([["b", "a", "a"], ["b", "a", "a"]], object), {"rule": ["a", "a"]})
        assert next(iter(annotators(one, "rule")))["reason"] == (
            "without their votes, every vote and every suggested label is the same category."
        )

    def test_numbers_too_large_for_a_float(self) -> None:
        assert _rounded(F(10) ** 400) == math.inf
        assert _rounded(-(F(10) ** 400)) == -math.inf
        assert _rounded(F(1, 4)) == 0.25

    def test_one_item_outweighs_all_the_others(self) -> None:
        drawn = simulate(40, annotators=3, rng=1)
        found = annotator_comparison(
            read_item_votes(drawn.votes, drawn.suggested, sample_weight=[1.0] * 39 + [1e300]), "labeler"
        )
        assert repr(found) == "labeler against people: undefined (0 items; 3 skipped; nobody can be compared)"
        assert {(row["items"], row["reason"]) for row in found.table} == {(40, "one item outweighs all the others.")}
        assert [note.to_dict() for note in found.notes] == [
            {
                "code": "annotators-undefined",
                "text": "3 annotators not compared (0, 1, 2): one item outweighs all the others.",
            }
        ]

    def test_people_by_strata_are_people_by_weight(self) -> None:
        drawn = simulate(60, annotators=3, rng=2)
        strata, pool = ["x"] * 20 + ["y"] * 40, {"x": 100, "y": 1000}
        pooled = annotator_comparison(
            read_item_votes(drawn.votes, drawn.suggested, strata=strata), "labeler", pool=pool
        )
        sample_weight = [5.0] * 20 + [25.0] * 40
        weighted = annotator_comparison(
            read_item_votes(drawn.votes, drawn.suggested, sample_weight=sample_weight), "labeler"
        )
        assert (pooled.difference, pooled.se, pooled.low) == (weighted.difference, weighted.se, weighted.low)
        assert (
            pooled.difference
            != annotator_comparison(read_item_votes(drawn.votes, drawn.suggested), "labeler").difference
        )
        by_hand = annotators(read_item_votes(drawn.votes, drawn.suggested, strata=strata), "labeler", pool)
        assert [row["kappa"] for row in by_hand] == [
            row["kappa"]
            for row in annotators(read_item_votes(drawn.votes, drawn.suggested, sample_weight=sample_weight), "labeler")
        ]

    def test_few_items(self) -> None:
        drawn = simulate(9, annotators=3, rng=1)
        found = annotator_comparison(read_item_votes(drawn.votes, drawn.suggested), "labeler")
        few = "fewer than 10 items with two other votes and a suggested label."
        assert {row["reason"] for row in found.table} == {few}
        assert [note.to_dict() for note in found.notes] == [
            {"code": "annotators-few-items", "text": f"3 annotators not compared (0, 1, 2): {few}"}
        ]
        assert found.skipped == (0, 1, 2)
        assert found.to_dict()["reason"] == found.reason == "nobody can be compared."
        ten = simulate(10, annotators=3, rng=1)
        assert not annotator_comparison(read_item_votes(ten.votes, ten.suggested), "labeler").skipped


class TestPeople:
    def test_labels_that_the_others_make_certain(self) -> None:
        """All others vote a, and so does the labeler: there is no kappa of it, though there is one of ann."""
        votes = np.array([["b" if i < 5 else "a", "a", "a"] for i in range(12)], object)
        row = next(iter(annotator_comparison(read_item_votes(votes, {"llm": ["a"] * 12}), "llm").table))
        assert (row["items"], row["reason"]) == (12, "every vote and every label on these items is the same category.")

    def test_one_item_outweighs_the_others_for_one_of_the_two(self) -> None:
        """On the heavy item ann and the others vote a, and so does the labeler: with C and L all a, E is 1."""
        drawn = simulate(40, annotators=3, rng=1)
        votes, labels = drawn.votes.copy(), drawn.suggested["labeler"].copy()
        sample_weight = [1.0] * 39 + [1e300]
        for own, label in (("b", "a"), ("a", "b")):
            votes[-1], labels[-1] = [own, "a", "a"], label
            row = next(
                iter(
                    annotator_comparison(
                        read_item_votes(votes, {"llm": labels}, sample_weight=sample_weight), "llm"
                    ).table
                )
            )
            assert (row["items"], row["reason"]) == (40, f"{ONE_WEIGHT}.")
            assert math.isnan(row["difference"])


class TestReview:
    def test_items_that_an_engine_holds(self) -> None:
        """Rows stand for several items; the engine is asked for the rows that the first items are in."""
        votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"], ["b", "b", "b"]]
        asked: list[tuple[list[int], int]] = []

        def find(rows: Sequence[int], number: int) -> list[tuple[int, Any]]:
            asked.append((list(rows), number))
            return [(row, f"item {row}") for row in rows][:number]

        plain = read_item_votes(votes, {"rule": ["a", "a", "a", "b", "a"]})
        held = replace(plain, names=[4, 3, 2, 1, 0], items=np.array([2, 30, 3, 5, 80]), find=find)
        rows = [list(review(held, "rule", limit=most)) for most in (None, 80, 81, 1)]
        # Most clearly rejected first: three votes for b, then two; then a tie, and what is confirmed.
        assert asked == [([4, 1], 100), ([4], 80), ([4, 1], 81), ([4], 1)]
        assert [[row["item"] for row in some] for some in rows] == [
            ["item 4", "item 1"],
            ["item 4"],
            ["item 4", "item 1"],
            ["item 4"],
        ]
        assert [row["votes"] for row in rows[0]] == ["b: 3", "b: 2"]
        assert review(held, "rule", limit=1).title == "rule: 1 of 120 items, most clearly rejected first"
        assert asked[-1] == ([4], 1)
        many = list(review(replace(held, items=np.array([1, 1, 1, 1, 1])), "rule"))
        assert [row["item"] for row in many][:3] == ["item 4", "item 1", "item 2"]

    def test_a_heavy_item_without_which_all_is_alike(self) -> None:
        """Without the only item that differs kappa is undefined: computed anew, exactly."""
        votes, labels = [["a", "a"], ["a", "a"], ["b", "b"]], ["a", "a", "b"]
        for given in ({}, {"sample_weight": [1, 2, 3]}, {"strata": ["x", "x", "x"]}):
            table = review(read_item_votes(votes, {"rule": labels}, **given), "rule")
            assert [math.isnan(row["kappa_without"]) for row in sorted(table, key=lambda row: row["item"])] == [
                False,
                False,
                True,
            ]
        heavy = review(
            read_item_votes([["a", "a"], ["a", "b"], ["b", "b"]], {"rule": list("aab")}, sample_weight=[1, 1, 1e9]),
            "rule",
        )
        without = {row["item"]: row["kappa_without"] for row in heavy}
        assert without[2] == dh_kappa([["a", "a"], ["a", "b"]], ["a", "a"]).value

    def test_no_items(self) -> None:
        assert len(review(read_item_votes([["a"]], {"rule": ["a"]}), "rule")) == 0

    def test_sentences(self) -> None:
        item_votes = read_item_votes([["a", "b"]], {"rule": ["a"]})
        for most in (0, True, 1.5):
            assert sentence(review, item_votes, "rule", most=most) == (
                f"most must be a whole number of items from 1 on, or None for all: got {most!r}."
            )


class TestCategories:
    def test_in_words(self) -> None:
        table = example().by_category(0.9)
        assert table.title == "Kappa by suggested category, 0.9 intervals"
        assert example().confusion().title == "What the panel agrees on, by suggested label"
        light = dh_kappa([["a", "a"], ["b", "b"], ["b", "c"]], ["a", "b", "d"], categories=list("abcd"))
        assert [row["reason"] for row in light.by_category()] == [
            "only one item with this label, so its spread is unknown.",
            "only one item with this label, so its spread is unknown.",
            "never suggested.",
            "only one item with this label, so its spread is unknown.",
        ]
        same = dh_kappa([["a", "a"]] * 4, list("aabb"))
        assert [row["reason"] for row in same.by_category()] == [
            "every vote is this category, so agreement on it is certain.",
            "no item moves it, so its spread is unknown.",
        ]
        weighed = dh_kappa([["a", "a"], ["b", "b"], ["a", "b"]], list("aba"), sample_weight=[1e-300, 1e-300, 1e300])
        assert [row["reason"] for row in weighed.by_category()][
            1
        ] == "its items weigh next to nothing beside the others."

    def test_confusion_by_hand(self) -> None:
        """Label 1 has 3/3 and 2/3 votes for 1: pairs agree on 1 by (1 + 1/3)/2, on nothing by 1/3."""
        rows = [tuple(row.values()) for row in example().confusion()]
        third = 1 / 3
        assert rows[:3] == [
            (1, 2, 1, pytest.approx(2 * third), pytest.approx(5 / 6)),
            (1, 2, 2, 0.0, pytest.approx(1 / 6)),
            (1, 2, None, pytest.approx(third), 0.0),
        ]
        assert [row[2] for row in rows if row[0] == 2] == [2, 1, 3, None]
        tie = dh_kappa([["a", "b", "b", "a", "c"], ["c", "c", "c", "b", "b"]], ["a", "a"])
        found = [(row["agreed"], round(row["pair_share"], 3), row["vote_share"]) for row in tie.confusion()]
        # c agrees on 3 of 20 pairs, b on 2, a on 1.
        assert found == [("c", 0.15, 0.4), ("b", 0.1, 0.4), ("a", 0.05, 0.2), (None, 0.7, 0.0)]
        even = dh_kappa([["a", "b", "b"], ["a", "c", "b"], ["a", "c", "b"]], ["b", "b", "b"])
        assert [row["agreed"] for row in even.confusion()] == ["b", "a", "c", None]  # no pairs: by votes, 1/3 and 2/9

    def test_weights_by_category(self) -> None:
        """Items with weights w know as much as (sum w)^2 / sum w^2 items of equal weight; t has as many less 1."""
        drawn = simulate(30, rng=3)
        labels = drawn.suggested["labeler"]
        sample_weight = [(0.01 if label == "a" else 1.0) * (1 + i % 5) for i, label in enumerate(labels)]
        kappa = dh_kappa(drawn.votes, labels, sample_weight=sample_weight)
        for row in kappa.by_category():
            own = [weight for weight, label in zip(sample_weight, labels, strict=True) if label == row["category"]]
            t = float(stdtrit(sum(own) ** 2 / sum(weight**2 for weight in own) - 1, 0.975))
            assert row["items"] == len(own) > 3
            assert row["high"] == pytest.approx(min(1, row["kappa"] + t * row["se"]), rel=1e-12)
            assert row["se"] > 0

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
        sample_weight = [0.001] * 8 + [1.0] * 6
        row = next(iter(dh_kappa(votes + others, list("aaaaaaaabbbccc"), sample_weight=sample_weight).by_category(0.5)))
        assert (row["category"], row["items"]) == ("a", 8)
        assert row["high"] < 1
        assert row["high"] - row["kappa"] == pytest.approx(float(stdtrit(7, 0.75)) * row["se"], rel=1e-9)
