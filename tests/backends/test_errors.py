"""Problems of a table are found in the engine, and reported with the column, the item or the label."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dhkappa
from dhkappa import DataError
from engines import ENGINES, ON_NO_MACHINE, Columns, Engine, each, only
from shapes import of_lists

BY_VOTE = {"item": "id", "label": "choice"}
LONG = {"item": "id", "label": "choice", "annotator": "who"}


def refused(data: Any, suggested: Any = "llm", **keywords: Any) -> DataError:
    """Return the error for a table that cannot be counted."""
    with pytest.raises(DataError) as caught:
        dhkappa.dh_kappa(data, suggested, **keywords)
    return caught.value


def votes_with_one_twice() -> Columns:
    return {
        "id": ["x-1", "x-1", "x-2", "x-2", "x-2"],
        "who": ["ann", "bob", "ann", "bob", "ann"],
        "choice": ["a", "b", "b", "b", "b"],
        "llm": ["a", "a", "b", "b", "b"],
    }


def test_an_annotator_twice_on_an_item(engine: Engine) -> None:
    said = refused(engine.table(votes_with_one_twice()), **LONG)
    assert said.code == "duplicate-votes"
    assert "'ann' on item 'x-2'" in said.message
    assert "'bob'" not in said.message


def test_an_annotator_twice_of_which_one_is_missing(engine: Engine) -> None:
    """A missing vote is none, so there are no two."""
    columns = dict(votes_with_one_twice()) | {"choice": ["a", "b", "b", "b", None]}
    found = dhkappa.tally(engine.table(columns), "llm", **LONG)
    assert found == of_lists([["a", "b"], ["b", "b"]], ["a", "b"])


def test_duplicates_is_one_of_three(engine: Engine) -> None:
    said = refused(engine.table(votes_with_one_twice()), **LONG, duplicates="any")
    assert (said.code, said.parameter) == ("invalid-option", "duplicates")


@each("part", ["suggested", "sample_weight", "strata"], few=["suggested"])
def test_two_values_beside_one_item(engine: Engine, part: str) -> None:
    columns: dict[str, list[Any]] = {
        "id": ["x-1", "x-1", "x-2", "x-2"],
        "choice": ["a", "b", "b", "b"],
        "llm": ["a", "a", "b", "b"],
        "weight": [1.0, 1.0, 2.0, 2.0],
        "place": ["n", "n", "s", "s"],
    }
    column, other = {"suggested": ("llm", "a"), "sample_weight": ("weight", 2.5), "strata": ("place", "n")}[part]
    columns[column] = [*columns[column][:3], other]
    words = {"sample_weight": "weight", "strata": "place"}
    said = refused(engine.table(columns), item="id", label="choice", **words)
    assert (said.code, said.parameter) == ("item-column-varies", part)
    assert "item 'x-2'" in said.message
    assert all(repr(value) in said.message for value in [column, *columns[column][2:]])


def test_a_suggested_label_in_some_rows_only(engine: Engine) -> None:
    columns: Columns = {"id": ["x-1", "x-1", "x-2"], "choice": ["a", "b", "b"], "llm": ["a", None, "b"]}
    said = refused(engine.table(columns), item="id", label="choice")
    assert said.code == "item-column-varies"
    assert "item 'x-1'" in said.message


def test_an_item_listed_twice(engine: Engine) -> None:
    votes = engine.table({"id": ["x-1", "x-1", "x-2"], "choice": ["a", "b", "b"]})
    items = engine.table({"id": ["x-1", "x-2", "x-2"], "llm": ["a", "b", "b"]})
    said = refused(votes, item="id", label="choice", items=items)
    assert (said.code, said.parameter) == ("duplicate-items", "items")
    assert "'x-2'" in said.message


def test_an_item_listed_without_a_name(engine: Engine) -> None:
    votes = engine.table({"id": ["x-1", "x-1", "x-2"], "choice": ["a", "b", "b"]})
    items = engine.table({"id": ["x-1", "x-2", None], "llm": ["a", "b", "b"]})
    said = refused(votes, item="id", label="choice", items=items)
    assert (said.code, said.parameter) == ("missing-item", "items")


def test_votes_on_an_item_that_is_not_listed(engine: Engine) -> None:
    votes = engine.table({"id": ["x-1", "x-1", "x-9", "x-9"], "choice": ["a", "b", "b", "b"]})
    items = engine.table({"id": ["x-1", "x-2"], "llm": ["a", "b"]})
    said = refused(votes, item="id", label="choice", items=items)
    assert said.code == "ids-not-joined"
    assert "'x-9'" in said.message
    assert ("$unlisted" in said.hint) == (engine.name != "dask")  # which does not support it


def test_items_named_by_numbers_and_by_text(engine: Engine) -> None:
    """7 and "7" are one item, "007" is another."""
    votes = engine.table({"id": [7, 7, 8, 8], "choice": ["a", "b", "b", "b"]})
    found = dhkappa.tally(votes, "llm", **BY_VOTE, items=engine.table({"id": ["7", "8"], "llm": ["a", "b"]}))
    assert found == of_lists([["a", "b"], ["b", "b"]], ["a", "b"])
    said = refused(votes, **BY_VOTE, items=engine.table({"id": ["007", "8"], "llm": ["a", "b"]}))
    assert said.code == "ids-not-joined"
    assert "leading zeros are removed: '7' and '007'" in said.hint


def test_items_named_by_truth_and_by_text(engine: Engine) -> None:
    votes = engine.table({"id": [True, True], "choice": ["a", "b"]})
    said = refused(votes, **BY_VOTE, items=engine.table({"id": ["True", "False"], "llm": ["a", "b"]}))
    assert said.code == "item-types-differ"
    said = refused(votes, **BY_VOTE, items=engine.table({"id": [1, 0], "llm": ["a", "b"]}))
    assert said.code == "item-types-differ"


@pytest.mark.parametrize("votes", [int, float])
def test_items_named_by_whole_numbers_and_by_floats(engine: Engine, votes: type) -> None:
    other = float if votes is int else int
    by_vote = engine.table({"id": [votes(name) for name in (7, 7, 8, 8)], "choice": ["a", "b", "b", "b"]})
    items = engine.table({"id": [other(name) for name in (7, 8)], "llm": ["a", "b"]})
    assert dhkappa.tally(by_vote, "llm", **BY_VOTE, items=items) == of_lists([["a", "b"], ["b", "b"]], ["a", "b"])


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_items_named_by_dates_and_by_something_else(table: Any) -> None:
    days = [datetime(2026, 1, 1), datetime(2026, 1, 2)]
    votes = table({"id": [days[0], days[0], days[1], days[1]], "choice": ["a", "b", "b", "b"]})
    found = dhkappa.tally(votes, "llm", **BY_VOTE, items=table({"id": days, "llm": ["a", "b"]}))
    assert found == of_lists([["a", "b"], ["b", "b"]], ["a", "b"])
    for others, kind in {(1, 2): "integers", (1.5, 2.5): "floats", ("1", "2"): "text"}.items():
        said = refused(votes, **BY_VOTE, items=table({"id": list(others), "llm": ["a", "b"]}))
        assert said.code == "item-types-differ"
        assert kind in said.message


def test_large_text_and_whole_numbers_of_other_widths_in_arrow() -> None:
    votes = {"id": ["7", "7", "8", "8", "9", "9"], "choice": ["a", "b", "b", "b", "a", "a"]}
    items = {"id": ["7", "8"], "llm": ["a", "b"]}
    expected = of_lists([["a", "b"], ["b", "b"], ["a", "a"]], ["a", "b", None])
    large = pa.large_string()
    by_vote, by_item = (
        [pa.table({name: pa.array(column, kind) for name, column in table.items()}) for kind in (pa.string(), large)]
        for table in (votes, items)
    )
    coded = by_vote[1].set_column(0, "id", by_vote[1].column(0).dictionary_encode())
    for one in (*by_vote, coded):
        for other in by_item:
            assert dhkappa.tally(one, "llm", **BY_VOTE, items=other, unlisted="unlabeled") == expected
    short, long = (
        table.set_column(0, "id", table.column(0).cast(kind))
        for table, kind in ((by_vote[0], pa.int16()), (by_item[0], pa.uint64()))
    )
    assert dhkappa.tally(short, "llm", **BY_VOTE, items=long, unlisted="unlabeled") == expected


@each("layout", ["wide", "wide-many", "long", "long-items"], few=["wide", "long"])
def test_a_vote_outside_the_declared_categories(engine: Engine, layout: str) -> None:
    N = 8 if layout == "wide-many" else 3
    if layout.startswith("wide"):
        columns: dict[str, list[Any]] = {f"ann_{k}": ["a", "b"] for k in range(N)}
        columns["ann_1"] = ["a", "zebra"]
        data, words = engine.table(columns | {"llm": ["a", "b"]}), {"annotators": "ann_*"}
    else:
        columns = {"id": ["x", "x", "y", "y"], "choice": ["a", "b", "b", "zebra"]}
        beside = {"id": ["x", "y"], "llm": ["a", "b"]}
        columns |= {} if layout == "long-items" else {"llm": ["a", "a", "b", "b"]}
        data, words = engine.table(columns), {"item": "id", "label": "choice"}
        words |= {"items": engine.table(beside)} if layout == "long-items" else {}
    said = refused(data, **words, categories=["b", "a"])
    assert "'zebra'" in said.message


def test_a_suggested_label_outside_the_declared_categories(engine: Engine) -> None:
    data = engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "zebra"]})
    said = refused(data, annotators="ann_*", categories=["a", "b"])
    assert "'zebra'" in said.message


def test_a_suggested_label_without_a_column_of_counts(engine: Engine) -> None:
    data = engine.table({"a": [2, 0], "b": [0, 2], "llm": ["a", "zebra"]})
    said = refused(data, counts=["a", "b"])
    assert "'zebra'" in said.message


def test_columns_that_differ_only_by_case(quick_engine: Engine) -> None:
    if quick_engine.name in ("duckdb", "ibis-duckdb", "ibis-sqlite"):
        pytest.skip(f"{ON_NO_MACHINE}: the engine takes no two columns that differ only by case")
    data = quick_engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "Ann_2": ["b", "b"], "llm": ["a", "b"]})
    said = refused(data, annotators=["ann_1", "ann_2"])
    assert said.code == "ambiguous-columns"


@each("part", ["suggested", "item", "annotator", "count", "items"], few=["suggested"])
def test_a_column_that_is_not_there(engine: Engine, part: str) -> None:
    votes = engine.table(
        {"item_id": ["x", "x"], "person": ["pvalue", "q"], "label": ["a", "b"], "model_label": ["a", "a"]}
    )
    items = engine.table({"item_id": ["x"], "gold": ["a"]})
    words: dict[str, Any] = {"item": "item_id", "label": "label"}
    if part == "suggested":
        said = refused(votes, "model_lable", **words)
        assert (said.code, said.parameter) == ("column-not-found", "suggested")
        assert "item_id, person, label, model_label" in said.message
        assert "'model_label'" in said.hint
    elif part == "item":
        said = refused(votes, "model_label", item="itemid", label="label")
        assert (said.code, said.parameter) == ("column-not-found", "item")
        assert "'item_id'" in said.hint
    elif part == "items":
        said = refused(votes, "model_label", **words, items=items)
        assert (said.code, said.parameter) == ("column-not-found", "suggested")
        assert "item_id, gold" in said.message
    else:
        said = refused(votes, "model_label", **words, **{part: "nobody"})
        assert (said.code, said.parameter) == ("column-not-found", part)


def test_no_column_matches(engine: Engine) -> None:
    data = engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"]})
    said = refused(data, annotators="person_*")
    assert (said.code, said.parameter) == ("column-not-found", "annotators")


def test_a_layout_that_nothing_tells(engine: Engine) -> None:
    said = refused(engine.table({"p": ["a", "b"], "q": ["a", "b"], "llm": ["a", "b"]}))
    assert said.code == "format-unknown"
    assert "p, q, llm" in said.message


def test_votes_on_no_item(engine: Engine) -> None:
    data = engine.table({"id": ["x", None, None], "choice": ["a", "b", "b"], "llm": ["a", "b", "b"]})
    said = refused(data, item="id", label="choice")
    assert (said.code, said.parameter) == ("missing-item", "item")
    assert "2 rows" in said.message


def test_a_row_an_item_twice(engine: Engine) -> None:
    data = engine.table({"id": ["x-1", "x-1"], "ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"]})
    said = refused(data, item="id", annotators="ann_*")
    assert (said.code, said.parameter) == ("duplicate-items", "item")
    assert "'x-1'" in said.message


WRONG_COUNTS = {"negative": -1, "broken": 2.5, "missing": None}


@each("wrong", list(WRONG_COUNTS), few=["negative"])
def test_counts_that_are_none(engine: Engine, wrong: str) -> None:
    value = WRONG_COUNTS[wrong]
    wide = engine.table({"a": [2, 1], "b": [0, value], "llm": ["a", "b"]})
    said = refused(wide, counts=["a", "b"])
    assert (said.code, said.parameter) == ("invalid-count", "counts")
    assert ("missing" if value is None else repr(value)) in said.message
    if not engine.slow:
        long = engine.table({"id": ["x", "x"], "choice": ["a", "b"], "times": [1, value], "llm": ["a", "a"]})
        said = refused(long, item="id", label="choice", count="times")
        assert (said.code, said.parameter) == ("invalid-count", "count")
        assert ("missing" if value is None else repr(value)) in said.message


def test_a_stratum_that_is_missing(engine: Engine) -> None:
    data = engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"], "place": ["north", None]})
    assert refused(data, annotators="ann_*", strata="place").code == "missing-stratum"


@each("weight", [-1.0, None], few=[-1.0])
def test_a_weight_that_is_none(engine: Engine, weight: float | None) -> None:
    data = engine.table({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"], "w": [1.0, weight]})
    said = refused(data, annotators="ann_*", sample_weight="w")
    assert said.code == "invalid-weight"
    assert ("missing" if weight is None else "-1.0") in said.message


def test_labels_that_are_none(engine: Engine) -> None:
    data = engine.table({"ann_1": [1.5, 2.0], "ann_2": [1.0, 2.0], "llm": [1.0, 2.0]})
    said = refused(data, annotators=["ann_1", "ann_2"])
    assert said.code == "not-a-label"
    assert "'ann_1' of the data holds 1.5" in said.message


def test_numbers_beside_the_same_as_text(engine: Engine) -> None:
    data = engine.table({"ann_1": [1, 2], "ann_2": ["1", "2"], "llm": [1, 2]})
    said = refused(data, annotators="ann_*")
    assert "1 and '1'" in said.message


def test_tables_of_two_engines(engine: Engine) -> None:
    other = next(one for one in ENGINES if one.in_memory and one.name.split("-")[0] not in engine.name)
    votes = engine.table({"id": ["x", "x"], "choice": ["a", "b"]})
    said = refused(votes, item="id", label="choice", items=other.table({"id": ["x"], "llm": ["a"]}))
    assert said.code == "different-engines"


def _failing(engine: Engine) -> Any:
    """Make a table whose engine fails when it is asked, saying "boom"."""
    columns = {"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"]}
    data = engine.table(columns)
    if engine.name == "polars-lazy":
        import polars as pl

        return data.with_columns(llm=pl.col("llm").map_batches(_boom, return_dtype=pl.String))
    if engine.name == "dask":
        return data.map_partitions(_boom, meta=data)
    if engine.name == "pyspark":
        from pyspark.sql import functions

        return data.withColumn("llm", functions.raise_error(functions.lit("boom")))
    if "duckdb" in engine.name:
        import duckdb

        connection = duckdb.connect()
        fails = "CASE WHEN n >= 0 THEN error('boom')::VARCHAR END"
        query = f"SELECT 'a' AS ann_1, 'b' AS ann_2, {fails} AS llm FROM range(5) AS made(n)"
        connection.execute(f"CREATE VIEW made AS {query}").fetchall()
        if engine.name == "duckdb":
            return connection.table("made")
        import ibis

        return ibis.duckdb.from_connection(connection).table("made")
    backend = data.get_backend()
    backend.raw_sql(f"ALTER TABLE {data.get_name()} RENAME TO boom_{data.get_name()}")
    engine._made.clear()
    return data


def _boom(_: Any) -> Any:
    raise ValueError("boom")


@only([engine for engine in ENGINES if not engine.in_memory])
def test_an_engine_that_fails_is_quoted(engine: Engine) -> None:
    said = refused(_failing(engine), annotators="ann_*")
    assert said.code == "engine-error"
    rest = said.message.partition("\n")[2]
    assert ("boom" if "sqlite" not in engine.name and "postgres" not in engine.name else "made_") in rest
    assert rest.count("\n") < 12
