"""ItemColumns: labels, strata and weights of items; ItemVotes: every vote with item and annotator."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemColumns, ItemVotes, lookup
from dhkappa.inputs.arrays import read_matrix, read_votes
from expect import expect_error


def encoded(values: list[Any], labels: tuple[Any, ...]) -> Encoded:
    return Encoded(np.array([labels.index(value) for value in values], np.int64), 0, labels)


def columns(
    a: list[Any], b: list[Any] | None = None, stratum: list[Any] | None = None, weight: list[float] | None = None
) -> ItemColumns:
    known = ("x", None, "y")
    labels = {"a": encoded(a, known)} | ({} if b is None else {"b": encoded(b, known)})
    strata = None if stratum is None else encoded(stratum, ("s", "t", "unused"))
    return ItemColumns(labels, strata, None if weight is None else np.array(weight))


def rows_of(table: ItemColumns) -> list[tuple[Any, ...]]:
    labels = [[column.labels[digit] for digit in column.digits()] for column in table.labels.values()]
    strata = [] if table.stratum is None else [[table.stratum.labels[digit] for digit in table.stratum.digits()]]
    weight = [] if table.weight is None else [table.weight.tolist()]
    return list(zip(*labels, *strata, *weight, strict=True))


FULL = columns(["x", None, "y", "x"], ["y", "y", None, "y"], ["s", "t", "s", "s"], [1.0, 2.5, 1.0, 1.0])


def test_properties() -> None:
    assert (len(FULL), FULL.labelers, FULL.strata) == (4, ("a", "b"), ("s", "t", "unused"))
    assert sorted(FULL.suggested_labels()) == ["x", "y", "y"]
    assert columns(["x"]).labels_only
    assert not FULL.labels_only
    assert not columns(["x"], stratum=["s"]).labels_only
    assert not columns(["x"], weight=[1.0]).labels_only


def test_codes_and_take() -> None:
    assert FULL.codes("a", ["y", "x"]).tolist() == [1, -1, 0, 1]
    assert FULL.codes("a", ["y"]).tolist() == [-1, -1, 0, -1]
    assert rows_of(FULL.take(np.array([2, 0]))) == [rows_of(FULL)[2], rows_of(FULL)[0]]
    assert lookup(["a", None, "b"], ["b", "c", "a"]).tolist() == [2, -1, 0]
    assert lookup([], ["a"]).tolist() == [-1]


def test_recode_keeps_rows_and_drops_unused_strata() -> None:
    found = FULL.recode(("x", "y", "z"))
    assert rows_of(found) == rows_of(FULL)
    assert found.labels["a"].labels == (None, "x", "y", "z")
    assert found.strata == ("s", "t")


values = st.lists(
    st.tuples(
        st.sampled_from(["x", None, "y"]),
        st.sampled_from(["x", None, "y"]),
        st.sampled_from(["s", "t"]),
        st.sampled_from([0.1, 0.2, 3.0]),
    ),
    min_size=1,
    max_size=30,
)


@given(values)
def test_distinct_items(rows: list[tuple[Any, ...]]) -> None:
    table = columns(*([row[place] for row in rows] for place in range(4)))
    first, group = table.distinct()
    kept = rows_of(table.take(first))
    assert len(set(kept)) == len(kept)
    assert [kept[place] for place in group.tolist()] == rows
    assert first.tolist() == [rows.index(row) for row in kept]


@given(values, st.integers(0, 30))
def test_concat(rows: list[tuple[Any, ...]], cut: int) -> None:
    parts = [some for some in (rows[:cut], rows[cut:]) if some]
    tables = [columns(*([row[place] for row in some] for place in range(4))) for some in parts]
    if len(tables) > 1:  # the order of labelers is that of the first
        tables[1] = replace(tables[1], labels={who: tables[1].labels[who] for who in ("b", "a")})
    assert rows_of(ItemColumns.concat(tables, ("x", "y"))) == rows


def test_concat_unites_strata() -> None:
    one = ItemColumns({"a": encoded(["x"], ("x",))}, encoded(["t"], ("t",)))
    two = ItemColumns({"a": encoded(["x"], ("x",))}, encoded(["s"], ("s",)))
    assert rows_of(ItemColumns.concat([one, two], ("x",))) == [("x", "t"), ("x", "s")]


VOTES: list[list[Any]] = [["b", "a", None], ["a", None, "a"], [None, None, None], ["a", "b", "b"]]
SUGGESTED = ["a", "b", "a", None]


def votes_of(found: ItemVotes) -> list[tuple[int, int, Any]]:
    columns = zip(*(column.tolist() for column in found.sorted_votes), strict=True)
    return [(item, annotator, found.categories[code]) for item, annotator, code in columns]


def by_category(votes: list[tuple[int, int, Any]]) -> list[tuple[int, int, Any]]:
    return sorted(votes, key=lambda vote: (vote[0], vote[2]))


def test_votes_of_an_array_have_annotators() -> None:
    found = read_votes(np.array(VOTES, object), SUGGESTED)
    assert (len(found.columns), found.categories, found.annotators) == (4, ("a", "b"), (0, 1, 2))
    assert votes_of(found) == by_category(
        [
            (item, annotator, vote)
            for item, row in enumerate(VOTES)
            for annotator, vote in enumerate(row)
            if vote is not None
        ]
    )
    assert list(found.item_names()) == [0, 1, 2, 3]


def test_votes_of_lists_have_no_annotators() -> None:
    ragged = [[vote for vote in row if vote is not None] for row in VOTES]
    found = read_votes(ragged, SUGGESTED)
    assert found.annotators is None
    assert votes_of(found) == by_category([(item, 0, vote) for item, row in enumerate(ragged) for vote in row])


def test_votes_of_flat_rows_have_voters() -> None:
    votes = Encoded(np.array([0, 1, 1]), 0, ("a", "b"))
    given_columns = ItemColumns({"llm": encoded(["x", "x"], ("x",))})
    length, voter = np.array([2, 1]), np.array([1, 0, 1])
    found = ItemVotes(votes, given_columns, length=length, annotators=("p", "q"), voter=voter)
    assert votes_of(found) == [(0, 1, "a"), (0, 0, "b"), (1, 1, "b")]


def test_votes_of_a_matrix() -> None:
    found = read_matrix(np.array([[2, 0, 1], [0, 0, 0], [0, 1, 0]]), None)
    assert found.annotators is None
    assert votes_of(found) == [(0, 0, 0), (0, 0, 0), (0, 0, 2), (2, 0, 1)]


def test_names_of_items_and_annotators_of_a_dataframe() -> None:
    frame = pd.DataFrame(VOTES, index=list("wxyz"), columns=["p", "q", "r"])
    found = read_votes(frame, pd.Series(SUGGESTED, index=frame.index))
    assert list(found.item_names()) == ["w", "x", "y", "z"]
    assert found.annotators == ("p", "q", "r")


def test_categories_are_settled() -> None:
    array = np.array(VOTES, object)
    assert read_votes(array, ["c", None, None, None]).categories == ("a", "b", "c")
    assert read_votes(array, SUGGESTED, categories=("b", "z", "a")).categories == ("b", "z", "a")
    with expect_error("undeclared-label", "votes"):
        _ = read_votes(array, SUGGESTED, categories=("a",)).categories
    with expect_error("undeclared-label", "suggested"):
        _ = read_votes(array, ["c"] * 4, categories=("a", "b")).categories
    matrix = pd.DataFrame({"b": [1], "a": [1]})
    assert read_matrix(matrix, ["a"]).categories == ("a", "b")
    with expect_error("undeclared-label", "suggested"):
        _ = read_matrix(matrix, ["c"]).categories


def test_patterns_by_row() -> None:
    given_votes = read_votes(
        np.array(VOTES, object), SUGGESTED, sample_weight=[1, 2, 3, 4], strata=["t", "s", "t", "t"]
    )
    found = given_votes.labeled_patterns("labeler")
    assert found.patterns.vote_totals().tolist() == [2, 2, 0, 3]
    assert found.patterns.suggested.tolist() == [0, 1, 0, -1]
    assert found.patterns.code.tolist() == [0, 1, 0, 0, 1]
    assert found.patterns.votes.tolist() == [1, 1, 2, 1, 2]
    assert found.patterns.items.tolist() == [1, 1, 1, 1]
    assert found.strata == ("s", "t")
    assert found.stratum is not None
    assert found.weight is not None
    assert found.stratum.tolist() == [1, 0, 1, 1]
    assert found.weight.tolist() == [1, 2, 3, 4]
    with expect_error("labeler-not-found", "suggested"):
        given_votes.labeled_patterns("llm")


@pytest.mark.parametrize("order", ["C", "F"])
def test_votes_are_not_changed(order: Any) -> None:
    votes = np.array([[3, 1, 2], [1, 1, 3]], order=order)
    before = votes.copy()
    found = read_votes(votes, [1, 2])
    _ = found.categories, found.sorted_votes, found.patterns(found.columns.labels["labeler"])
    assert np.array_equal(votes, before)


# Merged rows

grids = st.lists(
    st.tuples(
        st.tuples(*[st.sampled_from(["a", "b", None])] * 2),
        st.sampled_from(["a", "c", None]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["s", "t"]),
        st.sampled_from([0.5, 2.0]),
    ),
    min_size=1,
    max_size=12,
)


@given(grids, st.booleans(), st.booleans(), st.integers(1, 5))
def test_merged_rows_stand_for_equal_items(rows: list[Any], strata: bool, weights: bool, times: int) -> None:
    rows = rows * times
    votes, first, second, stratum, weight = zip(*rows, strict=True)
    rows = [(*row[:3], row[3] if strata else None, row[4] if weights else None) for row in rows]
    array = np.empty((len(rows), 2), object)
    array[:] = votes
    design: Any = {"strata": list(stratum) if strata else None, "sample_weight": list(weight) if weights else None}
    given_votes = read_votes(array, {"x": list(first), "y": list(second)}, **design)
    found = given_votes.merged()
    if 2 * len(set(rows)) > len(rows):
        assert found is given_votes
        return
    assert found.group is not None
    assert found.items is not None
    assert found.items.tolist() == np.bincount(found.group).tolist()
    assert len(found.columns) == len(set(rows)) == len(found.items)
    assert (found.categories, found.annotators) == (given_votes.categories, given_votes.annotators)
    assert list(found.item_names()) == list(range(len(rows)))
    for name in ("x", "y"):
        one, other = given_votes.labeled_patterns(name), found.labeled_patterns(name)
        spread, own = other.patterns.take(found.group.astype(np.int64)), one.patterns
        assert spread.suggested.tolist() == own.suggested.tolist()
        assert (spread.code.tolist(), spread.votes.tolist()) == (own.code.tolist(), own.votes.tolist())
        assert other.patterns.items.tolist() == found.items.tolist()
        assert one.strata == other.strata
        for before, after in ((one.stratum, other.stratum), (one.weight, other.weight)):
            assert (before is None) == (after is None)
            assert before is None or after is None or after[found.group].tolist() == before.tolist()


def test_what_is_not_merged() -> None:
    labels = ["a"] * 6
    lists = read_votes([["a", "b"], ["a"]] * 3, labels)
    matrix = read_matrix([[1, 2], [1, 2]] * 3, [0] * 6)
    grid = read_votes(np.array([["a", "b"]] * 6), labels)
    wide = read_votes(np.array([[f"c{j}" for j in range(60)]] * 6), labels)  # keys of 60 digits with base 60
    for found in (lists, matrix, wide, grid.merged(), read_votes(np.empty((0, 2), object), [])):
        assert found.merged() is found
    assert len(grid.merged().columns) == 1
    assert wide.merged() is wide


def test_many_rows_are_merged_if_a_part_of_them_repeats() -> None:
    random = np.random.default_rng(1)
    votes, labels = random.integers(0, 3, (9_000, 3)), random.integers(0, 3, 9_000)
    assert len(read_votes(votes, labels).merged().columns) == 81
    many = read_votes(random.integers(0, 1000, (9_000, 3)), labels)
    assert many.merged() is many
    # The first, third, ... rows are equal, so a part shows few distinct rows; there are more than half as many.
    votes = random.integers(0, 1000, (9_000, 3))
    votes[::2] = 0
    rare = read_votes(votes, np.zeros(9_000, np.int64))
    assert rare.merged() is rare


def test_names_of_merged_items() -> None:
    frame = pd.DataFrame([["a", "b"]] * 4, index=list("wxyz"))
    assert read_votes(frame, pd.Series(["a"] * 4, index=frame.index)).merged().item_names() == list("wxyz")
