"""Comparison of labelers: p-values by hand, edge cases, presentation and invalid arguments."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pytest

from compare_oracle import BOTH, EXAMPLE, Expected, F, check, rows_of
from dhkappa import Comparison, Tally, compare, dh_kappa, simulate, tally
from dhkappa.core.item_table import item_table_of_votes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats import compare as module
from dhkappa.stats.compare import AnnotatorComparison, compare_labelers
from dhkappa.stats.multiple_tests import holm
from dhkappa.stats.notes import Note
from dhkappa.table import Table
from expect import expect_error


class TestCompare:
    LABELS: ClassVar[dict[str, list[int]]] = {"x": [1, 1, 2, 2, 3, 3], "y": [1, 2, 2, 2, 3, 2]}

    def test_notes_are_shown_below_the_tables(self) -> None:
        found = compare(EXAMPLE.votes, self.LABELS)
        assert [note.code for note in found.notes] == ["few-discordant"]
        quiet = replace(found, notes=())
        assert repr(quiet) == f"{found.table()!r}\n{found.differences!r}"
        assert repr(found).startswith(f"{quiet!r}\n- ")
        assert found._repr_html_().startswith(f"{quiet._repr_html_()}<ul><li>")
        assert found.best == "y"

    def test_items_that_all_labeled(self) -> None:
        labels = {"x": [*self.LABELS["x"], 1, None], "y": [*self.LABELS["y"], 1, 2]}
        found = compare([*EXAMPLE.votes, [1], [1, 2]], labels)
        assert found.notes[0].code == "items-excluded"
        assert {(kappa.excluded.one_vote, kappa.excluded.no_label) for kappa in found.kappas.values()} == {(1, 1)}
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
        assert [note.code for note in found.notes] == ["no-standard-error"]

    def test_the_source_is_said(self) -> None:
        counts = replace(tally(EXAMPLE.votes, self.LABELS).counts, source_notes=("Half of it was skipped.",))
        assert compare(Tally.of(counts, None, frozenset())).notes[0].to_dict() == {
            "code": "source",
            "text": "Half of it was skipped.",
        }

    def test_estimates_of_a_table(self) -> None:
        estimates, differences, notes = compare_labelers(item_table_of_votes(read_votes(EXAMPLE.votes, self.LABELS)))
        found = compare(EXAMPLE.votes, self.LABELS)
        assert (differences.to_dicts(), notes) == (found.differences.to_dicts(), found.notes)
        assert {name: estimate.exact for name, estimate in estimates.items()} == {
            name: kappa.exact for name, kappa in found.kappas.items()
        }

    def test_categories_without_items(self) -> None:
        found = compare([], {"x": [], "y": []}, categories=[1, 2])
        assert all(found.differences.column("reason"))
        assert found.notes == ()

    def test_labels_that_differ_are_counted_where_a_kappa_is_undefined(self) -> None:
        (row,) = compare([[1, 1]] * 3, {"x": [1, 1, 1], "y": [2, 1, 2]}).differences
        assert (row["discordant"], row["method"], math.isnan(row["difference"])) == (2, None, True)

    def test_one_of_two_items_outweighs_the_other(self) -> None:
        (row,) = compare([[1, 1], [2, 2]], {"x": [1, 2], "y": [2, 1]}, sample_weight=[1, 1e-20]).differences
        assert "almost all the weight" in row["reason"]

    @pytest.mark.parametrize(("number", "method"), [(9, "swap"), (10, "t")])
    def test_ten_labels_that_differ_are_enough_for_t(self, number: int, method: str) -> None:
        drawn = simulate(60, labelers={"x": 0.9}, rng=1)
        x = drawn.suggested["x"].tolist()
        y = [{"a": "b", "b": "c", "c": "a"}[label] if i < number else label for i, label in enumerate(x)]
        (row,) = compare(drawn.votes, {"x": x, "y": y}).differences
        assert (row["discordant"], row["method"]) == (number, method)

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
        monkeypatch.setattr(module, "_DRAWS_PER_BLOCK", at_once)
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
        labels = {
            "a": right,
            "b": wrong[:6] + right[6:],
            "c": wrong[:12] + right[12:],
            "d": right[:6] + wrong[6:12] + right[12:],
        }
        (note,) = compare(drawn.votes, labels).notes
        assert "'a' and 'b', 'a' and 'd', 'b' and 'c', ..." in note.text
        (note,) = compare(drawn.votes, {"a": right, "b": right, "c": right}).notes
        assert "'a' and 'b', 'a' and 'c', 'b' and 'c'." in note.text

    def test_notes_name_labelers_and_say_where_p_comes_from(self) -> None:
        votes = [[1, 1, 2]] * 13
        majority, equal = compare(votes, {"x": [1] * 13, "y": [2] * 13}).notes
        assert majority.text.startswith("The labels of 'x', 'y' score exactly as high as majority labels. ")
        assert "between 'x' and 'y', so there is no standard error. Their p-value comes from" in equal.text
        excluded, few = compare([*EXAMPLE.votes, [1]], {who: [*labels, 1] for who, labels in self.LABELS.items()}).notes
        assert excluded.text.startswith("1 item excluded: it has one vote. Labelers are compared on")
        assert few.text.startswith("Labels differ on fewer than 10 items between 'x' and 'y'. Their p-value comes from")

    def test_hint_for_a_single_labeler(self) -> None:
        with expect_error("too-few-labelers", "suggested") as caught:
            compare(EXAMPLE.votes, {"x": self.LABELS["x"]})
        assert "'x'" in str(caught.value)
        assert "Pass the labels or the columns of two labelers" in str(caught.value)


class TestCounting:
    """Eligible items and groups of labelers, by hand."""

    @pytest.mark.parametrize("votes", [[[1, 1], [1, 2], [2, 2]], [[1, 1], [1], [2, 2]], [[1, 1], [None], [2, 2]]])
    @pytest.mark.parametrize("label", [1, None])
    @pytest.mark.parametrize("weight", [None, 1, 0])
    def test_eligible_items(self, votes: list[list[Any]], label: int | None, weight: int | None) -> None:
        options: dict[str, Any] = {} if weight is None else {"sample_weight": [2, 2, weight]}
        whole = item_table_of_votes(read_votes(votes, {"x": [1, 1, label], "y": [2, 1, 2]}, **options))
        table, excluded = module.eligible_rows(whole)
        assert table.labeled
        assert not whole.labeled
        few, bare = len(votes[1]) < 2, label is None
        assert excluded.no_votes + excluded.one_vote == few
        assert (excluded.no_votes, excluded.one_vote) in [(0, 0), (votes[1] == [None], votes[1] == [1])]
        assert (excluded.no_label, excluded.no_weight) == (bare, weight == 0 and not bare)
        assert int(table.items.sum()) == 3 - excluded.total
        assert table.labels["y"].tolist() == [1, *([] if few else [0]), *([] if bare or weight == 0 else [1])]

    @pytest.mark.parametrize(
        ("number", "limit", "groups"),
        [
            (2, 1 << 16, "a b"),  # two labelers are one pair
            (3, 1 << 16, "ab bc"),  # the last overlaps
            (5, 1 << 16, "abc cde"),
            (5, 2 * 2**4, "ab cd de"),  # two vote patterns, two labels of four labelers
            (5, 2 * 2**4 - 1, "a b c d e"),
            (4, 2 * 2**4, "ab cd"),
        ],
    )
    def test_groups(self, number: int, limit: int, groups: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_MAX_GROUPS", limit)
        table = item_table_of_votes(read_votes([[1, 1], [2, 2]], {who: [1, 2] for who in "abcde"[:number]}))
        assert ["".join(group) for group in module._groups(table)] == groups.split()

    def test_groups_are_smaller_with_strata(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_MAX_GROUPS", 2 * 2**4)
        labels = {who: [1, 2, 1, 2] for who in "abcd"}
        table = item_table_of_votes(read_votes([[1, 1], [2, 2]] * 2, labels, strata=[1, 1, 2, 2]))
        assert len(module._groups(table)) == 4
        assert module._group_size(table) == 2

    def test_order_of_pairs(self) -> None:
        """Groups of three: labelers 0 to 2, 3 to 5, and 6."""
        turns = sorted(combinations(range(7), 2), key=lambda pair: module._turn(pair, 3))
        written = " ".join(f"{i}{j}" for i, j in turns)
        assert written == "01 02 03 04 05 12 13 14 15 23 24 25 34 35 45 06 16 26 36 46 56"

    def test_influence_by_key(self) -> None:
        estimate = compare_labelers(item_table_of_votes(read_votes(EXAMPLE.votes, BOTH)))[0]["A"]
        found = module._Labeler("A", estimate, 1.0, np.array([2, 5, 9]), np.array([0.2, 0.5, 0.9]))
        assert found.at(np.array([9, 2, 5, 2])).tolist() == [0.9, 0.2, 0.5, 0.2]
        assert np.isfinite(found.at(np.array([0, 7, 100]))).all()
        assert module._Labeler("A", estimate).at(np.array([0, 7])).tolist() == [0, 0]

    def test_powers_by_hand(self) -> None:
        z, items = np.array([[1.0, -2.0, 5.0], [0.0, 0.0, 7.0]]), np.array([[3, 2, 0], [1, 1, 0]])
        assert list(module._powers(z, items)) == [(11.0, (3 - 16) / 11**1.5), (0.0, 0.0)]
        assert z.tolist() == [[1.0, -2.0, 5.0], [0.0, 0.0, 7.0]]


class TestHolm:
    def test_by_hand(self) -> None:
        """Smallest first: 4 x .01, 3 x .02, 2 x .03 (not below the one before), 1 x .9."""
        assert holm([0.02, 0.01, 0.9, 0.03]) == pytest.approx([0.06, 0.04, 0.9, 0.06], rel=1e-15)

    @pytest.mark.parametrize("number", [1, 2, 3, 10, 45])
    def test_against_statsmodels(self, number: int) -> None:
        multitest = pytest.importorskip("statsmodels.stats.multitest")
        p = (np.random.default_rng(number).integers(0, 30, number) / 600).tolist()  # with ties
        # A product rounded once, as there.
        assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1].tolist(), rel=1e-15, abs=0)

    def test_nan_stays_and_does_not_count(self) -> None:
        found = holm([math.nan, 0.02, math.nan, 0.03])
        assert [math.isnan(p) for p in found] == [True, False, True, False]
        assert found[1::2] == [0.04, 0.04]
        assert holm([]) == []
        assert holm([0.7]) == [0.7]
        assert holm([0.9, 0.8]) == [1, 1]

    def test_in_the_table(self) -> None:
        drawn = simulate(80, labelers={"a": 0.7, "b": 0.8, "c": 0.95}, rng=1)
        differences = compare(drawn.votes, drawn.suggested).differences
        assert differences.column("pvalue_holm") == holm(differences.column("pvalue"))


class TestEdges:
    @pytest.mark.parametrize("design", [{}, {"sample_weight": [1, 2, 1, 1, 2, 3]}, {"strata": list("xxxyyy")}])
    def test_the_same_labels_twice(self, design: dict[str, Any]) -> None:
        found = compare(EXAMPLE.votes, {"one": BOTH["A"], "two": BOTH["A"]}, **design)
        (row,) = found.differences
        assert (row["difference"], row["se"], row["pvalue"], row["pvalue_holm"], row["discordant"]) == (0, 0, 1, 1, 0)
        assert row["low"] == -row["high"] < 0
        assert found.best == "one"

    def test_one_item(self) -> None:
        found = compare([[1, 1, 2]], {"A": [1], "B": [2]})
        check(found, Expected([[1, 1, 2]], {"A": [1], "B": [2]}))
        assert math.isnan(found.differences.column("low")[0])

    def test_two_items(self) -> None:
        votes, labels = [[1, 1, 2], [2, 2, 2]], {"A": [1, 2], "B": [2, 1]}
        check(compare(votes, labels), Expected(votes, labels))

    @pytest.mark.parametrize(
        ("votes", "labels"),
        [
            ([], {"A": [], "B": []}),
            ([[1], [None, None], [1, 1]], {"A": [1, 1, None], "B": [1, 1, 1]}),
            ([[None], [None]], {"A": [None, None], "B": [None, None]}),
            ([[1, 1], [2, 2]], {"A": [1, None], "B": [None, 1]}),
        ],
    )
    def test_no_item_left(self, votes: list[list[Any]], labels: dict[str, list[Any]]) -> None:
        found = compare(votes, labels)
        check(found, Expected(votes, labels))
        assert found.best is None
        assert found.differences.column("discordant") == [0]
        json.dumps(found.to_dict(), allow_nan=False)
        repr(found)

    def test_one_kappa_is_undefined(self) -> None:
        votes, labels = [[1, 1], [1, 1], [1, 1]], {"all 1": [1, 1, 1], "A": [2, 1, 1], "B": [1, 1, 2]}
        found = compare(votes, labels)
        check(found, Expected(votes, labels))
        assert [row["reason"] is None for row in found.differences] == [False, False, True]
        assert found.differences.column("reason")[0] == found.kappas["all 1"].reason
        assert [math.isnan(p) for p in found.differences.column("pvalue_holm")] == [True, True, False]
        assert found.differences.column("pvalue_holm")[2] == found.differences.column("pvalue")[2]
        assert found.best == "A"
        assert found.table().column("labeler")[-1] == "all 1"
        assert "reason" in repr(found)

    def test_one_item_outweighs_all_others(self) -> None:
        found = compare([[1, 1], [1, 2], [2, 2]], {"A": [1, 1, 2], "B": [1, 2, 2]}, sample_weight=[1, 1e-20, 1e-20])
        (row,) = found.differences
        assert "almost all the weight" in row["reason"]
        assert math.isnan(row["pvalue"])
        assert math.isnan(row["se"])
        assert not math.isnan(row["difference"])

    def test_labels_that_nobody_votes_for(self) -> None:
        labels = {"A": [9, 1, 2, 2, 3, 3], "B": [1, 1, 8, 8, 8, 2]}
        check(compare(EXAMPLE.votes, labels), Expected(EXAMPLE.votes, labels))

    def test_missing_labels_leave_items_out_for_all(self) -> None:
        labels: dict[str, list[Any]] = {**BOTH, "C": [None, 1, 2, 2, "NA", 1]}
        found = compare(EXAMPLE.votes, labels, missing=["NA"])
        lost = {who: [None if label == "NA" else label for label in given] for who, given in labels.items()}
        check(found, Expected(EXAMPLE.votes, lost))
        assert found.notes[0].code == "items-excluded"
        assert "2 items" in found.notes[0].text
        assert compare(EXAMPLE.votes, BOTH).kappas["A"].n_items == 6

    def test_a_weight_of_0_leaves_an_item_out(self) -> None:
        rest = slice(1, None)
        found = compare(EXAMPLE.votes, BOTH, sample_weight=[0, 1, 1, 1, 1, 1])
        other = compare(EXAMPLE.votes[rest], {who: labels[rest] for who, labels in BOTH.items()})
        assert rows_of(found) == rows_of(other)
        assert found.kappas["A"].excluded.no_weight == 1

    def test_counts_of_items_and_not_of_rows_with_a_large_tally(self) -> None:
        """Doubling a tally thirty times: the difference stays, its error shrinks by the root of 2^30."""
        whole = tally(EXAMPLE.votes, BOTH)
        for _ in range(30):
            whole = whole + whole
        n = 6 * 2**30
        (row,) = compare(whole).differences
        assert row["difference"] == -81 / 272
        assert row["discordant"] == n // 3
        squares = F(516632823, 6842040320) * 30 * 2**30
        assert row["se"] == pytest.approx(math.sqrt(squares / (n * (n - 1))), rel=1e-12)  # some ulp in each phi
        assert row["method"] == "t"


class TestPresentation:
    drawn = simulate(300, labelers={"rule": 0.7, "llm": 0.9, "other": 0.9}, rng=1)

    @pytest.fixture
    def found(self) -> Comparison:
        return compare(self.drawn.votes, self.drawn.suggested)

    @pytest.mark.parametrize("items", [8, 300])
    def test_lines_fit(self, items: int) -> None:
        suggested = {f"a labeler with a long name {who}": given[:items] for who, given in self.drawn.suggested.items()}
        for labels in (
            suggested,
            {who: suggested[f"a labeler with a long name {who}"] for who in self.drawn.suggested},
        ):
            text = repr(compare(self.drawn.votes[:items], labels))
            assert max(map(len, text.splitlines())) <= 100
            assert "reason" not in text
            assert ("swap" in text) == (items == 8)

    def test_text(self) -> None:
        lines = repr(compare(EXAMPLE.votes, BOTH)).splitlines()
        assert lines[2].split()[:4] == ["B", "0.752", "0.084", "0.955"]
        assert lines[6].split() == ["A", "B", "-0.298", "0.275", "-1.556", "0.671", "0.500", "0.500", "swap", "2", "6"]
        assert lines[7].startswith("- ")

    def test_columns(self, found: Comparison) -> None:
        columns = "labeler other difference se low high pvalue pvalue_holm method discordant items reason"
        assert list(found.differences.names) == columns.split()
        assert list(found.table().names) == [
            "labeler",
            "kappa",
            "low",
            "high",
            "se",
            "baseline_random",
            "baseline_majority",
            "items",
            "coverage",
        ]

    def test_html_is_escaped(self) -> None:
        script = "<script>alert('x')</script>"
        text = compare(EXAMPLE.votes, {script: BOTH["A"], "&": BOTH["B"]})._repr_html_()
        assert "<script>" not in text
        assert "&lt;script&gt;" in text
        assert "&amp;" in text
        assert text.count("<table>") == 2
        assert text.count("<li>") == 1
        assert "<ul>" not in compare(self.drawn.votes, self.drawn.suggested)._repr_html_()

    def test_json(self, found: Comparison) -> None:
        said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        keys = ["kappas", "differences", "not_ranked", "confidence_level", "other_annotators", "any_time", "notes"]
        assert list(said) == keys
        assert said["kappas"]["llm"]["value"] == found.kappas["llm"].value
        assert said["differences"] == found.differences.to_dicts()
        undefined = compare([[1, 1], [1, 1]], {"A": [1, 1], "B": [1, 2]})
        said = json.loads(json.dumps(undefined.to_dict(), allow_nan=False))
        assert said["differences"][0]["pvalue"] is None
        assert said["differences"][0]["reason"]

    def test_notes(self, found: Comparison) -> None:
        assert found.notes == ()
        many = dict.fromkeys("abcd", BOTH["A"])
        (note,) = compare(EXAMPLE.votes, many).notes
        assert note.code == "few-discordant"
        assert "'a' and 'b', 'a' and 'c', 'a' and 'd', ..." in note.text


VOTES = [[1, 1], [1, 2], [2, 2]]
PAIR: dict[Any, Any] = {"a": [1, 1, 2], "b": [1, 2, 2]}
TALLY = tally(VOTES, {**PAIR, "c": [2, 2, 2]})


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("too-few-labelers", {"data": VOTES, "suggested": {"a": [1, 1, 2]}}),
        ("too-few-labelers", {"data": tally(VOTES, [1, 1, 2])}),
        ("too-few-labelers", {"data": Tally()}),
        ("too-few-labelers", {"data": TALLY, "suggested": "a"}),
        ("invalid-confidence-level", {"data": VOTES, "suggested": PAIR, "confidence_level": 0}),
        ("invalid-confidence-level", {"data": VOTES, "suggested": PAIR, "confidence_level": 95}),
        ("invalid-rng", {"data": VOTES, "suggested": PAIR, "rng": "x"}),
    ],
)
def test_bad_arguments(code: str, given: dict[str, Any]) -> None:
    with expect_error(code):
        compare(**given)


BAD_DATA: list[tuple[str, dict[str, Any]]] = [
    ("different-length", {"data": VOTES, "suggested": [[1, 1, 2], [1, 2, 2]]}),
    ("too-few-labelers", {"data": VOTES, "suggested": np.array([1, 1, 2])}),
    ("no-suggested-labels", {"data": VOTES}),
    ("invalid-type", {"data": VOTES, "suggested": "a"}),
    ("invalid-labeler-name", {"data": VOTES, "suggested": {}}),
    ("invalid-labeler-name", {"data": VOTES, "suggested": {"": [1, 1, 2]}}),
    ("invalid-labeler-name", {"data": VOTES, "suggested": {1: [1, 1, 2], 2: [1, 1, 2]}}),
    ("different-length", {"data": VOTES, "suggested": {**PAIR, "c": [1, 1]}}),
    ("not-a-label", {"data": VOTES, "suggested": {**PAIR, "c": [1, 1, 0.5]}}),
    ("votes-or-counts", {"suggested": PAIR}),
    ("votes-or-counts", {"data": VOTES, "suggested": PAIR, "counts": [[2, 0]] * 3}),
    ("undeclared-label", {"data": VOTES, "suggested": PAIR, "categories": [1]}),
    ("undeclared-label", {"data": VOTES, "suggested": {**PAIR, "c": [1, 2, 3]}, "categories": [1, 2]}),
    ("pool-too-small", {"data": VOTES, "suggested": PAIR, "pool": 2}),
    ("stratum-one-item", {"data": VOTES, "suggested": PAIR, "strata": list("xxy")}),
    ("invalid-weight", {"data": VOTES, "suggested": PAIR, "sample_weight": [1, -1, 1]}),
    ("labeler-not-found", {"data": TALLY, "suggested": ["a", "x"]}),
    ("labeler-twice", {"data": TALLY, "suggested": ["a", "a"]}),
    ("invalid-labeler-name", {"data": TALLY, "suggested": PAIR}),
    ("invalid-labeler-name", {"data": TALLY, "suggested": 3}),
    ("labeler-not-found", {"data": TALLY, "suggested": []}),
    ("option-with-dataset", {"data": TALLY, "sample_weight": [1, 1, 1]}),
]


@pytest.mark.parametrize(("code", "given"), BAD_DATA)
def test_bad_data(code: str, given: dict[str, Any]) -> None:
    with expect_error(code):
        compare(**given)


def test_all_labelers_of_a_tally_by_default() -> None:
    assert list(compare(TALLY).kappas) == ["a", "b", "c"]
    assert list(compare(TALLY, ("c", "a")).kappas) == ["c", "a"]
    assert rows_of(compare(TALLY, np.array(["a", "b"]))) == rows_of(compare(VOTES, PAIR))


def test_annotator_comparison_as_text_and_json() -> None:
    table = Table({"annotator": ["ada", "ben", "eli"], "difference": [0.1, 0.2, math.nan]}, title="Annotators")
    given: dict[str, Any] = {"labeler": "llm\x1b", "table": table, "confidence_level": 0.9, "n_items": 1_200}
    known: dict[str, Any] = {
        "difference": 0.15,
        "se": 0.02,
        "low": 0.1,
        "high": 0.2,
        "matched": 0.5,
        "skipped": ("eli",),
    }
    found = AnnotatorComparison(**given, **known, notes=(Note("few", "Few items."),))
    assert repr(found) == (
        r"llm\x1b compared with annotators: +0.1500 [+0.1000, +0.2000] at 0.9 "
        "(1,200 items; kappa at least that of 1 of 2 annotators; 1 skipped)"
    )
    assert found.to_dict() == {
        "labeler": "llm\x1b", "difference": 0.15, "se": 0.02, "low": 0.1, "high": 0.2, "confidence_level": 0.9,
        "matched": 0.5, "n_items": 1_200, "annotators": table.to_json(), "skipped": ["eli"],
        "notes": [{"code": "few", "text": "Few items."}], "reason": None,
    }  # fmt: skip
    nothing: dict[str, Any] = dict.fromkeys(("difference", "se", "low", "high", "matched"), math.nan)
    undefined = AnnotatorComparison(**given, **nothing, skipped=("ada", "ben", "eli"), notes=(), reason="No votes.")
    assert repr(undefined) == r"llm\x1b compared with annotators: undefined (1,200 items; 3 skipped; No votes)"
    assert undefined.to_dict()["se"] is None


def test_title_of_weighted_differences() -> None:
    ordered = compare(EXAMPLE.votes, TestCompare.LABELS, weights="linear", categories=[1, 2, 3], confidence_level=0.9)
    assert ordered.differences.title == "Differences in weighted kappa between labelers, 90% confidence intervals"
    plain = compare(EXAMPLE.votes, TestCompare.LABELS)
    assert plain.differences.title == "Differences between labelers, 95% confidence intervals"
