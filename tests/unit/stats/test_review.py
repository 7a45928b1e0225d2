"""Kappa by item against exact fractions: contributions, leave-one-out kappa, and the review queue."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from dhkappa import Kappa, dh_kappa
from dhkappa.core.items import ItemVotes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.influence import Terms, influence, terms
from dhkappa.stats.kappa import Parts, dh_parts, sums
from dhkappa.stats.review import contributions, leave_one_out, review_queue
from dhkappa.stats.sample import Sample, sample_of
from dhkappa.table import Table
from exact import exact_terms
from exact import influence as exact_influence
from expect import expect_error
from strategies import Data, from_counts, ragged

F = Fraction
EXAMPLE_1 = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
NAMES = [
    "item",
    "suggested",
    "majority",
    "tie",
    "votes",
    "n_votes",
    "suggested_share",
    "majority_share",
    "differential",
    "contribution",
    "influence",
    "kappa_without",
]


def kappa_of(data: Data) -> F | None:
    return oracle.dh(data.votes, data.suggested, data.categories).kappa


defined_data = ragged(max_items=10).filter(lambda data: kappa_of(data) is not None)


def only_eligible(data: Data) -> Data:
    votes, suggested, _ = oracle.eligible(data.votes, data.suggested)
    return replace(data, votes=votes, suggested=suggested)


def repeated(data: Data, times: Sequence[int], without: int = -1) -> Data:
    """Each item as often as it weighs, and one of them not at all."""
    return data.take([i for i, weight in enumerate(times) for _ in range(weight) if i != without])


def item_votes_of(data: Data, weight: Sequence[float] | None = None) -> ItemVotes:
    categories: Any = data.categories
    sample_weight = None if weight is None else np.array(weight, np.float64)
    return read_votes(data.votes, {"rule": data.suggested}, categories=categories, sample_weight=sample_weight)


@dataclass(frozen=True)
class Items:
    """A sample and its parts, as ``exact_terms`` needs them, without merging equal items."""

    sample: Sample
    parts: Parts


def terms_of(sample: Sample, exact: bool = True) -> Terms:
    parts = dh_parts(sums(sample, weighted=sample.weighted), sample.categories)
    return exact_terms(cast(Kappa, Items(sample, parts))) if exact else terms(sample, parts)


def sample_of_items(data: Data, weight: Sequence[float] | None = None) -> Sample:
    return sample_of(item_votes_of(data, weight).labeled_patterns("rule"))


def item_terms(data: Data, weight: Sequence[float] | None = None, exact: bool = True) -> Terms:
    return terms_of(sample_of_items(data, weight), exact)


def or_none(values: Any) -> list[F | None]:
    return [None if value != value else value for value in values]


def contributions_by_pairs(data: Data) -> list[F]:
    """Each item's observed less its label's expected differential, over 1 - E, from pairs of votes."""
    whole = oracle.dh(data.votes, data.suggested, data.categories)
    found = []
    for item, label in zip(data.votes, data.suggested, strict=True):
        sign = {j: 1 if j == label else -1 for j in data.categories}
        observed = sum((sign[j] * oracle.pair_share(item, j) for j in data.categories), F(0))
        expected = sum((sign[j] * whole.C[j] ** 2 for j in data.categories), F(0))
        found.append((observed - expected) / (1 - whole.E))
    return found


@given(defined_data)
def test_contributions_against_pairs_and_their_mean_is_kappa(data: Data) -> None:
    known = item_terms(data)
    found = contributions(known).tolist()
    assert found == contributions_by_pairs(only_eligible(data))
    assert oracle.mean(found) == known.mean(contributions(known)) == kappa_of(data)


def test_contributions_of_the_worked_example() -> None:
    found = contributions(item_terms(EXAMPLE_1)).tolist()
    assert found == [F(69, 68), F(57, 136), F(117, 136), F(-9, 272), F(9, 8), F(-45, 68)]


@given(defined_data)
def test_leave_one_out_against_recomputation(data: Data) -> None:
    rest = only_eligible(data)
    n = len(rest.votes)
    expected = [kappa_of(rest.take([k for k in range(n) if k != i])) for i in range(n)]
    assert or_none(leave_one_out(item_terms(data))) == expected


@given(defined_data)
def test_leave_one_out_takes_one_of_the_items_that_share_a_pattern(data: Data) -> None:
    twice = data.take([*range(len(data.votes)), *range(len(data.votes))])
    sample = sample_of_items(twice)
    merged, apart = sample.merged(), terms_of(sample)
    assert int(merged.patterns.items.min()) >= 2
    found = leave_one_out(terms_of(merged))
    # Sorted, as merging changes the order; each pattern stands for all its items.
    assert sorted(np.repeat(found, merged.patterns.items).tolist()) == sorted(leave_one_out(apart).tolist())


@given(defined_data, st.integers(0, 2**32))
def test_weighted_items_are_like_items_that_occur_as_often(data: Data, seed: int) -> None:
    rest = only_eligible(data)
    n = len(rest.votes)
    times = np.random.default_rng(seed).integers(1, 4, n).tolist()
    known = item_terms(rest, [weight / 4 for weight in times])
    assert known.mean(contributions(known)) == kappa_of(repeated(rest, times))
    assert or_none(leave_one_out(known)) == [kappa_of(repeated(rest, times, i)) for i in range(n)]


def test_jackknife_standard_error_of_the_worked_example() -> None:
    found = leave_one_out(item_terms(EXAMPLE_1, exact=False))
    # Published to seven digits.
    assert math.sqrt(5 / 6 * ((found - found.mean()) ** 2).sum()) == pytest.approx(0.3025026, abs=5e-8)


def close(found: Any, exact: Any) -> bool:
    """Within 10^-13: some ten roundings of 10^-16, 64 times larger where terms cancel; and never above 1."""
    assert max(found[~np.isnan(found)], default=0.0) <= 1
    return bool(np.allclose(found, exact.astype(np.float64), rtol=0, atol=1e-13, equal_nan=True))


@given(defined_data)
def test_floats_are_as_good_as_fractions(data: Data) -> None:
    floats, fractions = item_terms(data, exact=False), item_terms(data)
    assert close(leave_one_out(floats), leave_one_out(fractions))
    assert np.allclose(contributions(floats), contributions(fractions).astype(np.float64), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "odd",
    ["21/1", "03/2", "03/1", "30/2", "21/1 03/2", "30/2 03/1", "03/2 12/1 12/2"],
)
@pytest.mark.parametrize("items", [1, 10**3, 10**9, 10**15])
def test_floats_hold_where_nearly_all_items_are_alike(odd: str, items: int) -> None:
    sample = sample_of_items(from_counts(f"30/1 {odd}"))
    many = sample.patterns.items.copy()
    many[0] = items
    sample = replace(sample, patterns=replace(sample.patterns, items=many), mass=many)
    floats, fractions = terms_of(sample, exact=False), terms_of(sample)
    assert close(leave_one_out(floats), leave_one_out(fractions))
    exact = contributions(fractions).astype(np.float64)
    # An odd item contributes up to n / 2: its error is relative to that.
    assert np.allclose(contributions(floats), exact, rtol=0, atol=1e-13 * float(abs(exact).max()))


@pytest.mark.parametrize("heavy", range(6))
@pytest.mark.parametrize("weight", [1e3, 1e9, 1e100])
def test_floats_hold_where_one_item_outweighs_the_others(heavy: int, weight: float) -> None:
    light = [1, 2, 1, 2, 3, 1]
    sample_weight = [weight if i == heavy else light[i] for i in range(6)]
    found = leave_one_out(item_terms(EXAMPLE_1, sample_weight, exact=False))
    assert close(found, leave_one_out(item_terms(EXAMPLE_1, sample_weight)))
    assert found[heavy] == float(kappa_of(repeated(EXAMPLE_1, light, heavy)) or 0)  # recomputed, so rounded once


@pytest.mark.parametrize("text", ["005/3 050/2 212/2", "500/1 050/2 014/2"])
def test_without_the_only_bad_item_kappa_is_1_and_not_above(text: str) -> None:
    found = leave_one_out(item_terms(from_counts(text), exact=False))
    assert found[2] == 1


def test_without_the_only_odd_item_kappa_is_undefined() -> None:
    found = leave_one_out(item_terms(from_counts("30/1 30/1 30/1 21/1"), exact=False))
    assert np.isnan(found).tolist() == [False, False, False, True]
    assert np.isnan(leave_one_out(item_terms(from_counts("30/1 03/2"), exact=False))).all()


def test_one_item_leaves_nothing() -> None:
    data = from_counts("21/1")
    assert contributions(item_terms(data)).tolist() == [kappa_of(data)]
    assert np.isnan(leave_one_out(item_terms(data, exact=False))).all()


# The review queue


def queue(text: str, weight: Sequence[float] | None = None, most: int | None = None) -> Table:
    return review_queue(item_votes_of(from_counts(text), weight), "rule", limit=most)


def test_items_come_in_the_order_of_how_clearly_the_panel_rejects_the_label() -> None:
    table = queue("300/1 210/1 120/1 111/1 020/1 050/1 200/- 100/1 300/2")
    assert table.column("item") == [5, 8, 4, 2, 3, 1, 0]  # d: -1 (5, 3, 2 votes), -1/3, 0, 1/3, 1
    assert table.column("differential") == [-1, -1, -1, -1 / 3, 0, 1 / 3, 1]
    assert list(table.names) == NAMES


@given(ragged(max_items=15))
def test_review_against_the_definitions(data: Data) -> None:
    table = review_queue(item_votes_of(data), "rule")
    places = [i for i, item in enumerate(data.votes) if len(oracle.cast(item)) > 1 and data.suggested[i] is not None]
    assert sorted(table.column("item")) == places
    assert list(table.names) == NAMES
    for row in table:
        cast, label = oracle.cast(data.votes[row["item"]]), data.suggested[row["item"]]
        most = max(map(cast.count, cast))
        leaders = [category for category in data.categories if cast.count(category) == most]
        assert (row["suggested"], row["n_votes"]) == (label, len(cast))
        assert row["majority"] == (leaders[0] if len(leaders) == 1 else None)
        assert row["tie"] is (len(leaders) > 1)
        assert row["majority_share"] == most / len(cast)
        assert row["suggested_share"] == cast.count(label) / len(cast)
        pairs = {j: oracle.pair_share(cast, j) for j in data.categories}
        assert row["differential"] == float(2 * pairs[label] - sum(pairs.values()))
    key = [(row["differential"], -row["n_votes"], round(row["influence"], 9)) for row in table]
    if kappa_of(data) is not None:
        assert key == sorted(key)
        known = item_terms(data, exact=False)
        by_item = dict(zip(places, zip(contributions(known), influence(known), strict=True), strict=True))
        assert [(row["contribution"], row["influence"]) for row in table] == [by_item[i] for i in table.column("item")]
    else:
        assert all(math.isnan(row[name]) for row in table for name in NAMES[-3:])


def test_the_items_that_pull_kappa_down_most_come_first_among_equals() -> None:
    table = queue("300/1 300/1 300/1 030/2 003/3 300/3 030/1 003/1 300/2")
    worst = [row for row in table if row["differential"] == -1]
    assert [row["influence"] for row in worst] == sorted(row["influence"] for row in worst)
    assert len({row["influence"] for row in worst}) > 1


def test_weight_decides_among_equals() -> None:
    text = "30/1 03/2 30/2 30/2 30/2 03/2"
    assert queue(text).column("item")[:3] == [2, 3, 4]
    assert queue(text, [1, 1, 1, 9, 2, 1]).column("item")[:3] == [3, 4, 2]
    without = dict(zip(*map(queue(text, [1, 1, 1, 9, 2, 1]).column, ("item", "kappa_without")), strict=True))
    # The same number of roundings as any leave-one-out value.
    rest = repeated(from_counts(text), [1, 1, 1, 9, 2, 1], 3)
    assert without[3] == pytest.approx(float(kappa_of(rest) or 0), abs=1e-13)


def test_items_of_weight_0_are_left_out() -> None:
    assert sorted(queue("30/1 03/1 03/2", [1, 0, 1]).column("item")) == [0, 2]


def test_equal_items_keep_their_order() -> None:
    # Renaming 1 as 2 turns the second half into the first, so all four rejected items are equal.
    assert queue("30/1 21/1 30/2 30/2 03/2 12/2 03/1 03/1").column("item") == [2, 3, 6, 7, 1, 5, 0, 4]


def test_rounding_does_not_decide_the_order() -> None:
    data = from_counts("1320/1 2220/1 2031/2 0321/4 0222/4 1032/2")
    exact, floats = exact_influence(item_terms(data)), influence(item_terms(data, exact=False))
    assert exact[2] == exact[5]
    assert floats[2] > floats[5]
    order = review_queue(item_votes_of(data), "rule").column("item")
    assert order.index(2) < order.index(5)


@pytest.mark.parametrize("most", [1, 3, 6, 99, np.int64(2)])
def test_most_takes_the_head_of_the_queue(most: int) -> None:
    whole, head = (
        review_queue(item_votes_of(EXAMPLE_1), "rule"),
        review_queue(item_votes_of(EXAMPLE_1), "rule", limit=most),
    )
    assert head.to_dicts() == whole.to_dicts()[:most]
    assert whole.title.startswith("rule: all 6 items")
    if most == 3:
        assert head.title.startswith("rule: 3 of 6 items")


def test_ties_are_shown_not_broken() -> None:
    rows = {row["item"]: row for row in queue("220/1 111/2 021/1")}
    assert [(rows[i]["majority"], rows[i]["tie"]) for i in range(3)] == [(None, True), (None, True), (2, False)]
    assert [rows[i]["votes"] for i in range(3)] == ["1: 2, 2: 2", "1: 1, 2: 1, 3: 1", "2: 2, 3: 1"]
    assert [rows[i]["majority_share"] for i in range(3)] == [1 / 2, 1 / 3, 2 / 3]


def test_votes_are_written_most_first_and_odd_labels_stand_out() -> None:
    odd: list[list[Hashable]] = [
        ["🐈", "🐕", "🐕"],
        ["a, b", "a, b", "\t"],
        [" x", "<b>", "<b>", "x:1"],
        ["日本", "日本", "line\n"],
    ]
    table = review_queue(read_votes(odd, {"rule": ["🐈", "a, b", "<b>", "日本"]}), "rule")
    texts = dict(zip(table.column("item"), table.column("votes"), strict=True))
    assert texts == {
        0: "🐕: 2, 🐈: 1",
        1: "'a, b': 2, '\\t': 1",
        2: "<b>: 2, ' x': 1, 'x:1': 1",
        3: "日本: 2, 'line\\n': 1",
    }
    assert "<b>" not in table._repr_html_()
    assert "🐕" in repr(table)


def test_labels_keep_their_types() -> None:
    table = review_queue(read_votes([[True, True], [False, True]], {"rule": [False, True]}), "rule")
    assert table.column("suggested") == [False, True]
    assert table.column("majority") == [True, None]
    assert table.column("votes") == ["True: 2", "False: 1, True: 1"]


def test_items_go_by_the_names_of_a_dataframe() -> None:
    pandas = pytest.importorskip("pandas")
    votes = pandas.DataFrame({"ann": ["x", "y"], "bob": ["x", "y"]}, index=["first", "second"])
    table = review_queue(read_votes(votes, {"rule": ["x", "x"]}), "rule")
    assert table.column("item") == ["second", "first"]


def test_one_item_can_be_reviewed() -> None:
    (row,) = queue("21/2")
    assert (row["item"], row["majority"], row["differential"]) == (0, 1, -1 / 3)
    assert math.isnan(row["kappa_without"])
    # Kappa is 0, the difference of two numbers of order 1.
    assert row["contribution"] == pytest.approx(0, abs=1e-15)


def test_items_all_alike_have_no_kappa_but_a_queue() -> None:
    table = queue("30/1 50/1 20/1")
    assert table.column("item") == [1, 0, 2]
    assert table.column("differential") == [1, 1, 1]
    assert all(math.isnan(value) for name in NAMES[-3:] for value in table.column(name))


@pytest.mark.parametrize("text", ["10/1 20/-", "00/1"])
def test_no_eligible_item_makes_an_empty_queue(text: str) -> None:
    table = queue(text)
    assert (len(table), list(table.names)) == (0, NAMES)
    assert "no rows" in repr(table)


@pytest.mark.parametrize("most", [0, -1, 2.0, "2", True])
def test_limit_must_be_a_number_of_items(most: Any) -> None:
    with expect_error("invalid-limit", "limit"):
        queue("30/1 03/1", most=most)


def test_unknown_labeler() -> None:
    with expect_error("labeler-not-found"):
        review_queue(item_votes_of(EXAMPLE_1), "gpt")


def test_items_that_an_engine_holds() -> None:
    """Rows stand for several items; the engine is asked for the rows that the first items are in."""
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"], ["b", "b", "b"]]
    asked: list[tuple[list[int], int]] = []

    def find(rows: Sequence[int], number: int) -> list[tuple[int, Any]]:
        asked.append((list(rows), number))
        return [(row, f"item {row}") for row in rows][:number]

    plain = read_votes(votes, {"rule": ["a", "a", "a", "b", "a"]})
    held = replace(plain, names=[4, 3, 2, 1, 0], items=np.array([2, 30, 3, 5, 80]), find=find)
    rows = [list(review_queue(held, "rule", limit=most)) for most in (None, 80, 81, 1)]
    # Most clearly rejected first: three votes for b, then two; then a tie, and what is confirmed.
    assert asked == [([4, 1], 100), ([4], 80), ([4, 1], 81), ([4], 1)]
    assert [[row["item"] for row in some] for some in rows] == [
        ["item 4", "item 1"],
        ["item 4"],
        ["item 4", "item 1"],
        ["item 4"],
    ]
    assert [row["votes"] for row in rows[0]] == ["b: 3", "b: 2"]
    assert review_queue(held, "rule", limit=1).title.startswith("rule: 1 of 120 items")
    assert asked[-1] == ([4], 1)
    many = list(review_queue(replace(held, items=np.array([1, 1, 1, 1, 1])), "rule"))
    assert [row["item"] for row in many][:3] == ["item 4", "item 1", "item 2"]


def test_a_heavy_item_without_which_all_is_alike() -> None:
    """Without the only item that differs kappa is undefined: computed anew, exactly."""
    votes, labels = [["a", "a"], ["a", "a"], ["b", "b"]], ["a", "a", "b"]
    for design in ({}, {"sample_weight": [1, 2, 3]}, {"strata": ["x", "x", "x"]}):
        table = review_queue(read_votes(votes, {"rule": labels}, **design), "rule")
        assert [math.isnan(row["kappa_without"]) for row in sorted(table, key=lambda row: row["item"])] == [
            False,
            False,
            True,
        ]
    heavy = review_queue(
        read_votes([["a", "a"], ["a", "b"], ["b", "b"]], {"rule": list("aab")}, sample_weight=[1, 1, 1e9]), "rule"
    )
    without = {row["item"]: row["kappa_without"] for row in heavy}
    assert without[2] == dh_kappa([["a", "a"], ["a", "b"]], ["a", "a"]).value


@pytest.mark.parametrize("limit", [None, 1, 2, 7, 40, 199, 300, 900, 999])
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_items_have_the_same_queue(limit: int | None, weighted: bool) -> None:
    random = np.random.default_rng(3)
    votes = np.array([*"ab", None], object)[random.integers(0, 3, (900, 3))]
    labels = np.array([*"ab", None], object)[random.integers(0, 3, 900)]
    weight = random.choice([0.0, 0.1, 0.3, 7.0], 900) if weighted else None
    whole = read_votes(votes, {"rule": labels}, sample_weight=weight)
    merged = whole.merged()
    assert merged is not whole
    expected, found = (review_queue(given_votes, "rule", limit=limit) for given_votes in (whole, merged))
    assert repr(found.to_dicts()) == repr(expected.to_dicts())
    assert found.title == expected.title


def test_merged_items_without_kappa() -> None:
    merged = read_votes(np.array([["a", "a"]] * 9), {"rule": ["a"] * 9}).merged()
    assert review_queue(merged, "rule", limit=3).column("item") == [0, 1, 2]
    nothing = read_votes(np.array([["a", None]] * 9, object), {"rule": ["a"] * 9}).merged()
    assert nothing.group is not None
    assert len(review_queue(nothing, "rule")) == len(review_queue(nothing, "rule", limit=2)) == 0


def test_equal_keys_of_different_rows_are_in_order_of_items() -> None:
    """Renaming a as b turns one kind of item into the other, so only their position tells them apart."""
    votes = np.array([["b", "b"], ["a", "a"]] * 6, object)
    merged = read_votes(votes, {"rule": ["a", "b"] * 6}).merged()
    assert len(merged.columns) == 2
    assert review_queue(merged, "rule").column("item") == list(range(12))
    assert review_queue(merged, "rule", limit=5).column("item") == list(range(5))


def test_a_given_sample_is_used() -> None:
    item_votes = item_votes_of(EXAMPLE_1)
    sample = sample_of(item_votes.labeled_patterns("rule"), pool=60)
    found = review_queue(item_votes, "rule", sample=sample)
    assert found.to_dicts() == review_queue(item_votes, "rule", pool=60).to_dicts()
