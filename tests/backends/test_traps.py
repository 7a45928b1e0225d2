"""Traps that engines set for a count of votes, one by one."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

import dhkappa
from engines import ENGINES, QUICK, Columns, Engine, each, only
from expect import expect_error
from shapes import ALPHABETS, Votes, drawn, of_lists

BY_COUNT = {"item": "id", "label": "choice", "count": "times"}
WORDS = {name: [engine for engine in ENGINES if engine.name == name] for name in ("dask", "pyspark", "ibis-sqlite")}


def counted_long(engine: Engine, counts: Sequence[Sequence[int]], *, listed: int = 0) -> dhkappa.Tally:
    """Count votes given as a matrix, a row a category and an item, beside ``listed`` more items without votes."""
    rows = [
        (f"i{place}", f"c{at}", number) for place, row in enumerate(counts) for at, number in enumerate(row) if number
    ]
    votes = {name: [row[at] for row in rows] for at, name in enumerate(("id", "choice", "times"))}
    n = len(counts) + listed
    items = {"id": [f"i{place}" for place in range(n)], "llm": ["c0"] * n}
    return dhkappa.tally(engine.table(votes), "llm", items=engine.table(items), **BY_COUNT)


def of_matrix(counts: Sequence[Sequence[int]], *, listed: int = 0) -> dhkappa.Tally:
    """Count the same from lists."""
    lists = [[f"c{at}" for at, number in enumerate(row) for _ in range(number)] for row in counts]
    return of_lists([*lists, *[[]] * listed], ["c0"] * (len(counts) + listed))


@each("m", [13, 14, 26], few=[13])
def test_a_left_join_turns_integers_into_floats(engine: Engine, m: int) -> None:
    """Items without votes make the packed counts of others floats, which hold 53 bits: all digits are used here."""
    draw = random.Random(m)
    counts = [[draw.randint(1, 15) for _ in range(m)] for _ in range(6)] + [[15] * m, [0] * (m - 1) + [15]]
    assert counted_long(engine, counts, listed=3) == of_matrix(counts, listed=3)


@pytest.mark.parametrize("m", [20, 48])
@pytest.mark.parametrize("layout", ["wide-many", "long"])
@only(WORDS["ibis-sqlite"])
def test_the_parser_of_sqlite_overflows_on_nested_cases(engine: Engine, layout: str, m: int) -> None:
    made = drawn(alphabet=[f"c{place}" for place in range(m)], N=9, n=60)
    data, words = made.shape(layout).given(engine)
    assert dhkappa.tally(data, "llm", **words) == of_lists(made.votes, made.suggested["llm"])


@pytest.mark.parametrize("layout", ["long", "long-items"])
@only(WORDS["dask"])
def test_dask_fails_at_a_group_by_of_a_group_by(engine: Engine, layout: str) -> None:
    made = drawn(n=12)
    data, words = made.shape(layout).shuffled(1).given(engine)
    assert data.npartitions > 1
    assert dhkappa.tally(data, "llm", **words) == of_lists(made.votes, made.suggested["llm"])


@each("kind", list(ALPHABETS), few=["bool", "float", "coded int"])
def test_only_text_becomes_text(engine: Engine, kind: str) -> None:
    """Enumerations are text; booleans, integers and floats are not, and True is not 1."""
    made = drawn(kind)
    data, words = made.shape("wide").given(engine, kind)
    categories = dhkappa.tally(data, "llm", **words).categories
    expected = of_lists(made.votes, made.suggested["llm"]).categories
    assert [(type(label), label) for label in categories] == [(type(label), label) for label in expected]


@each("layout", ["wide", "wide-many", "long", "long-items"], few=["wide", "long"])
def test_nan_and_null_are_one(engine: Engine, layout: str) -> None:
    """Some engines keep them in one group, others in two, others drop the null."""
    nan, N = float("nan"), 8 if layout == "wide-many" else 3
    votes: list[list[float | None]] = [
        [1.0, 2.0, nan],
        [1.0, 2.0, None],
        [None, nan, 2.0],
        [nan, None, None],
        [1.0, 1.0, 1.0],
    ]
    votes = [[*row, *[None, nan] * 5][:N] for row in votes]
    suggested = [None, nan, 1.0, nan, 2.0]
    made = Votes([f"i{place}" for place in range(5)], [f"ann_{k}" for k in range(N)], votes, {"llm": suggested})
    data, words = made.shape(layout).given(engine, "float")
    found = dhkappa.tally(data, "llm", **words)
    assert found == of_lists([[1, 2], [1, 2], [2], [], [1, 1, 1]], [None, None, 1, None, 2])
    assert (found.n_items, len(found)) == (5, 4)


def test_null_labels_are_a_group(engine: Engine) -> None:
    """Items without a suggested label are counted, as no label and not as no item."""
    data = engine.table({"ann_1": ["a", None, "b"], "ann_2": ["a", "b", "b"], "llm": ["a", "b", None]})
    kappa = dhkappa.dh_kappa(data, "llm", annotators="ann_*")
    assert (kappa.n_items, kappa.excluded.one_vote, kappa.excluded.no_label) == (1, 1, 1)


def test_empty_text_is_missing_as_null_is(engine: Engine) -> None:
    votes = {"id": [*"xxxyy"], "choice": ["a", "a", "", None, "b"], "llm": ["a", "a", "a", "", None]}
    found = dhkappa.tally(engine.table(votes), "llm", item="id", label="choice")
    assert found == of_lists([["a", "a"], ["b"]], ["a", None])
    wide = engine.table({"ann_1": ["a", "", "b"], "ann_2": ["a", None, ""], "llm": ["", None, "b"]})
    found = dhkappa.tally(wide, "llm", annotators="ann_*")
    assert found == of_lists([["a", "a"], [], ["b"]], [None, None, "b"])


def test_duckdb_needs_neither_pyarrow_nor_pandas() -> None:
    pytest.importorskip("duckdb")
    program = """
import sys
sys.modules |= {"pyarrow": None, "pandas": None, "polars": None}
import duckdb, dhkappa
data = duckdb.sql("SELECT * FROM (VALUES ('a', 'a', 'a'), ('b', NULL, 'b'), ('a', 'b', 'b')) t(ann_1, ann_2, llm)")
print(dhkappa.dh_kappa(data, "llm", annotators="ann_*").exact)
long = duckdb.sql("SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, 'a'), (3, 'b')) t(item, label)")
items = duckdb.sql("SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'b')) t(item, suggested)")
print(dhkappa.dh_kappa(long, items=items).exact)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    expected = dhkappa.dh_kappa([["a", "a"], ["b"], ["a", "b"]], ["a", "b", "b"]).exact
    assert (run.stdout.split(), run.stderr) == ([str(expected)] * 2, "")


@only(WORDS["pyspark"])
def test_spark_collects_by_itself(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    data = engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "a"]})

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("through pandas or PyArrow")

    for way in ("toPandas", "toArrow"):
        monkeypatch.setattr(type(data), way, refuse)
    found = dhkappa.tally(data, "llm", annotators="ann_*")
    assert found == of_lists([["a", "a"], ["b", "b"]], ["a", "a"])


@only(WORDS["pyspark"])
def test_spark_reads_dots_and_backticks_as_syntax(engine: Engine) -> None:
    columns: Columns = {"a.b": ["x", "y"], "a`b": ["x", "y"], "a.`b`.c": ["x", "y"], "`": ["x", "x"], "a": [0, 0]}
    found = dhkappa.tally(engine.table(columns), "`", annotators=["a.b", "a`b", "a.`b`.c"])
    assert found == of_lists([["x"] * 3, ["y"] * 3], ["x", "x"], labeler="`")


@only(WORDS["pyspark"])
def test_spark_takes_names_that_differ_by_case_for_one(engine: Engine) -> None:
    data = engine.table({"ann_1": ["x", "y"], "Ann_1": ["x", "y"], "ann_2": ["x", "y"], "llm": ["x", "x"]})
    with expect_error("ambiguous-columns"):
        dhkappa.tally(data, "llm", annotators=["ann_1", "ann_2"])
    other = dhkappa.tally(engine.table({"A": ["x"], "B": ["x"], "C": ["y"]}), "C", annotators=["A", "B"])
    assert other == of_lists([["x", "x"]], ["y"], labeler="C")


# Votes of each item for the first, the second and the last of 13 categories, which leave four bits for a count.
OVERFLOWS = {
    "full": [(15, 0, 0)],
    "by one": [(16, 0, 0)],
    "into the next": [(31, 15, 1), (0, 16, 0)],
    "out of the last": [(0, 0, 16), (0, 0, 255)],
    "two items": [(16, 0, 0), (0, 1, 0), (17, 14, 0)],
    "out of a float": [(1, 0, 33)],
    "out of an integer": [(65_536, 0, 65_536), (0, 0, 2**20)],
    "by far": [(2**31 - 3, 1, 1), (2, 0, 65_536)],
}


@each("case", list(OVERFLOWS), few=["into the next"])
def test_an_item_has_more_votes_than_a_digit_holds(engine: Engine, case: str) -> None:
    """A carry would be a vote for the next category."""
    ones = [[int(place == at) for place in range(13)] for at in range(13)]
    whole = [*([first, second, *[0] * 10, last] for first, second, last in OVERFLOWS[case]), *ones]
    expected = of_lists(counts=whole, suggested=["c0"] * len(whole), categories=[f"c{at}" for at in range(13)])
    assert counted_long(engine, whole) == expected


@each("rows", [16, 40], few=[16])
def test_more_votes_than_a_digit_holds_as_rows(engine: Engine, rows: int) -> None:
    votes = [["a"] * rows, [f"c{place}" for place in range(12)], ["c1"] * (rows - 1) + ["a"]]
    cast = [(f"i{place}", label) for place, row in enumerate(votes) for label in row]
    columns = {"id": [item for item, _ in cast], "choice": [label for _, label in cast], "llm": ["a"] * len(cast)}
    found = dhkappa.tally(engine.table(columns), "llm", item="id", label="choice")
    assert found == of_lists(votes, ["a"] * 3)


def test_more_votes_on_an_item_than_can_be(engine: Engine) -> None:
    counts: Columns = {"id": ["x", "x", "y"], "choice": ["a", "b", "b"], "times": [2**31 - 1, 2**31 - 1, 2]}
    with expect_error("too-many-votes"):
        dhkappa.tally(engine.table(counts), item="id", label="choice", count="times")


@only(QUICK)
def test_strange_labels_items_and_votes_are_counted_where_they_are(engine: Engine) -> None:
    """What is wrong is counted by the engine, among rows that are never fetched."""
    n = 300
    votes: Columns = {"id": [place // 3 for place in range(3 * n)], "choice": ["a", "b", "a"] * n}
    items: Columns = {"id": list(range(10, n)), "llm": ["a"] * (n - 10)}
    with expect_error("ids-not-joined"):
        dhkappa.tally(engine.table(votes), "llm", item="id", label="choice", items=engine.table(items))
    twice: Columns = {"id": [*range(n), 77, 5], "llm": ["a"] * (n + 2)}
    with expect_error("duplicate-items"):
        dhkappa.tally(engine.table(votes), "llm", item="id", label="choice", items=engine.table(twice))
    with expect_error("undeclared-label"):
        dhkappa.tally(engine.table(votes), item="id", label="choice", categories=["a", "c"])
