"""Types that engines have of their own, for labels: numbers of all widths, text of all kinds, dates that are none."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

import dhkappa
from engines import ENGINES, Columns, Engine, only, quoted
from expect import expect_error
from shapes import Shape, drawn, of_lists

LARGE = (0, 7, 2**53, 2**53 + 1, 2**63 - 1)  # as floats, the third and fourth would be one
SMALL = (0, 1, 7, 100)
WORDS = ("ham", "spam", "naïve", "NA")
TRUTH = (False, True)
Made = Callable[[Engine, Columns, tuple[str, ...]], Any]


def in_pandas(of: str) -> Made:
    def made(engine: Engine, columns: Columns, labels: tuple[str, ...]) -> Any:
        import pandas as pd

        dtype = pd.ArrowDtype(_arrow(of.removeprefix("arrow "))) if of.startswith("arrow ") else of
        found = {
            name: pd.Series(values, dtype=dtype if name in labels else None, index=range(5, 5 + len(values)))
            for name, values in columns.items()
        }
        whole = pd.DataFrame(found)
        if engine.name == "pandas":
            return whole
        from dask import dataframe

        from_pandas: Any = dataframe.from_pandas
        return from_pandas(whole, npartitions=3)

    return made


def _arrow(of: str) -> Any:
    import pyarrow as pa

    known = {"decimal": pa.decimal128(20), "dictionary": pa.dictionary(pa.int8(), pa.string())}
    return known[of] if of in known else getattr(pa, of)()


def in_polars(of: str) -> Made:
    def made(engine: Engine, columns: Columns, labels: tuple[str, ...]) -> Any:
        import polars as pl

        dtype = pl.Decimal(20, 0) if of == "Decimal" else getattr(pl, of)
        series = [pl.Series(name, values, dtype if name in labels else None) for name, values in columns.items()]
        return pl.DataFrame(series) if engine.name == "polars" else pl.DataFrame(series).lazy()

    return made


def in_arrow(of: str) -> Made:
    def made(engine: Engine, columns: Columns, labels: tuple[str, ...]) -> Any:
        import pyarrow as pa

        return pa.table(
            {name: pa.array(list(v), _arrow(of) if name in labels else None) for name, v in columns.items()}
        )

    return made


def in_duckdb(of: str) -> Made:
    def made(engine: Engine, columns: Columns, labels: tuple[str, ...]) -> Any:
        data = engine.table(columns)
        names = {name: quoted(name) for name in columns}
        parts = [f"{text}::{of} AS {text}" if name in labels else text for name, text in names.items()]
        return data.project(", ".join(parts))

    return made


def in_ibis(of: str) -> Made:
    def made(engine: Engine, columns: Columns, labels: tuple[str, ...]) -> Any:
        data = engine.table(columns)
        return data.mutate(**{name: data[name].cast(of) for name in columns if name in labels})

    return made


def in_spark(of: str) -> Made:
    def made(engine: Engine, columns: Columns, labels: tuple[str, ...]) -> Any:
        data = engine.table(columns)
        return data.select(*(data[name].cast(of).alias(name) if name in labels else data[name] for name in columns))

    return made


CASES: list[tuple[str, str, Made, tuple[Any, ...]]] = [
    *[("pandas", of, in_pandas(of), LARGE) for of in ("Int64", "UInt64", "object", "arrow int64", "arrow uint64")],
    *[("pandas", of, in_pandas(of), SMALL) for of in ("Int8", "float32", "Float64", "arrow decimal", "arrow float32")],
    *[("pandas", of, in_pandas(of), WORDS) for of in ("object", "string", "string[python]", "category")],
    *[("pandas", of, in_pandas(of), WORDS) for of in ("arrow string", "arrow large_string", "arrow dictionary")],
    *[("pandas", of, in_pandas(of), TRUTH) for of in ("boolean", "object", "arrow bool_", "category")],
    *[("polars", of, in_polars(of), LARGE) for of in ("Int64", "UInt64", "Int128")],
    *[("polars", of, in_polars(of), SMALL) for of in ("Int8", "UInt8", "Float32")],
    *[("polars-lazy", of, in_polars(of), SMALL) for of in ("Int8", "UInt32")],
    *[("pyarrow", of, in_arrow(of), LARGE) for of in ("int64", "uint64")],
    *[("pyarrow", of, in_arrow(of), SMALL) for of in ("int8", "uint16", "float32", "float16")],
    *[("pyarrow", of, in_arrow(of), WORDS) for of in ("large_string", "string_view", "dictionary")],
    *[("duckdb", of, in_duckdb(of), LARGE) for of in ("UBIGINT", "HUGEINT", "VARCHAR")],
    *[("duckdb", of, in_duckdb(of), SMALL) for of in ("UTINYINT", "SMALLINT", "FLOAT")],
    *[("ibis-duckdb", of, in_ibis(of), LARGE) for of in ("uint64",)],
    *[("ibis-duckdb", of, in_ibis(of), SMALL) for of in ("int8", "float32")],
    *[("ibis-sqlite", of, in_ibis(of), SMALL) for of in ("int8", "float64", "string")],
    *[("ibis-postgres", of, in_ibis(of), LARGE) for of in ("int64", "string")],
    *[("ibis-postgres", of, in_ibis(of), SMALL) for of in ("int16", "float32")],
    *[("dask", of, in_pandas(of), LARGE) for of in ("Int64", "arrow int64")],
    *[("dask", of, in_pandas(of), WORDS) for of in ("object", "string", "category", "arrow dictionary")],
    *[("dask", of, in_pandas(of), SMALL) for of in ("float32", "Float64")],
    *[("pyspark", of, in_spark(of), LARGE) for of in ("bigint", "string")],
    *[("pyspark", of, in_spark(of), SMALL) for of in ("tinyint", "float")],
]


def _parameters(layout: str) -> list[Any]:
    """Return a parameter for each case; a slow engine has each in one of the layouts."""
    found = []
    for place, (name, of, made, labels) in enumerate(CASES):
        engine = next(engine for engine in ENGINES if engine.name == name)
        marks = only([engine]).args[1][0].marks
        if not engine.slow or place % 3 == ("wide", "wide-many", "long").index(layout):
            kind = {LARGE: "large", SMALL: "small", WORDS: "words", TRUTH: "truth"}[labels]
            found.append(pytest.param(engine, made, labels, marks=marks, id=f"{name}-{of}-{kind}"))
    return found


def _check(engine: Engine, made: Made, labels: tuple[Any, ...], layout: str) -> None:
    votes = drawn("native", alphabet=labels, N=9 if layout == "wide-many" else 4)
    shape: Shape = votes.shape(layout)
    data = made(engine, shape.columns, shape.labels)
    found = dhkappa.tally(data, ["llm", "rule"], **shape.keywords)
    as_text = type(found.categories[0]) is str and not isinstance(labels[0], str)
    expected = _texts(votes.votes) if as_text else votes.votes
    suggested = {name: _texts([given])[0] if as_text else given for name, given in votes.suggested.items()}
    assert found == of_lists(expected, suggested)


def _texts(rows: Any) -> list[list[str | None]]:
    return [[None if label is None else str(label) for label in row] for row in rows]


@pytest.mark.parametrize(("engine", "made", "labels"), _parameters("wide"), indirect=["engine"])
def test_wide(engine: Engine, made: Made, labels: tuple[Any, ...]) -> None:
    _check(engine, made, labels, "wide")


@pytest.mark.parametrize(("engine", "made", "labels"), _parameters("wide-many"), indirect=["engine"])
def test_wide_of_many_annotators(engine: Engine, made: Made, labels: tuple[Any, ...]) -> None:
    _check(engine, made, labels, "wide-many")


@pytest.mark.parametrize(("engine", "made", "labels"), _parameters("long"), indirect=["engine"])
def test_long(engine: Engine, made: Made, labels: tuple[Any, ...]) -> None:
    _check(engine, made, labels, "long")


DECIMALS = {
    "polars": in_polars("Decimal"),
    "polars-lazy": in_polars("Decimal"),
    "pyarrow": in_arrow("decimal"),
    "duckdb": in_duckdb("DECIMAL(20, 0)"),
    "ibis-duckdb": in_ibis("decimal(20, 0)"),
    "ibis-postgres": in_ibis("decimal(20, 0)"),
    "pyspark": in_spark("decimal(20, 0)"),
}


@only([engine for engine in ENGINES if engine.name in DECIMALS])
def test_decimals_are_no_labels(engine: Engine) -> None:
    """Engines compare them with whole numbers through floats, in which 2**53 and 2**53 + 1 are one."""
    votes = drawn("native", alphabet=LARGE).shape("wide")
    data = DECIMALS[engine.name](engine, votes.columns, votes.labels)
    with expect_error("not-a-label"):
        dhkappa.tally(data, "llm", **votes.keywords)


COUNTS = DECIMALS | {"pandas": in_pandas("arrow decimal"), "dask": in_pandas("Float64")}


@pytest.mark.parametrize("layout", ["counted-long", "counted-wide"])
@only([engine for engine in ENGINES if engine.name in COUNTS])
def test_decimals_are_counts(engine: Engine, layout: str) -> None:
    """Sums of whole numbers are decimals in many databases."""
    made = drawn(n=12)
    shape = made.shape(layout)
    own = ("times",) if layout == "counted-long" else tuple(shape.keywords["counts"])
    data = COUNTS[engine.name](engine, shape.columns, own)
    words = dict(shape.keywords) | ({} if shape.items is None else {"items": engine.table(shape.items)})
    assert dhkappa.tally(data, "llm", **words) == of_lists(made.votes, made.suggested["llm"])


@pytest.mark.parametrize("layout", ["counted-long", "counted-wide"])
@only([engine for engine in ENGINES if engine.name == "duckdb"])
def test_huge_integers_and_text_are_counts(engine: Engine, layout: str) -> None:
    made = drawn(n=12)
    shape = made.shape(layout)
    own = ("times",) if layout == "counted-long" else tuple(shape.keywords["counts"])
    words = dict(shape.keywords) | ({} if shape.items is None else {"items": engine.table(shape.items)})
    for of in ("HUGEINT", "VARCHAR", "UTINYINT", "DOUBLE"):
        data = in_duckdb(of)(engine, shape.columns, own)
        assert dhkappa.tally(data, "llm", **words) == of_lists(made.votes, made.suggested["llm"])


def _no_labels(of: str) -> list[Any]:
    values: dict[str, list[Any]] = {
        "date": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
        "list": [["a"], ["b", "c"]],
        "struct": [{"x": 1}, {"x": 2}],
        "bytes": [b"a", b"b"],
        "time": [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)],
    }
    return values[of]


@pytest.mark.parametrize("N", [2, 8])
@pytest.mark.parametrize("of", ["date", "list", "struct", "bytes", "time"])
@only([engine for engine in ENGINES if engine.name in ("pandas", "polars", "polars-lazy", "pyarrow", "duckdb")])
def test_values_that_are_no_labels(engine: Engine, of: str, N: int) -> None:
    """They are refused, with the column and what it holds."""
    import pyarrow as pa

    table = pa.table({f"ann_{place}": _no_labels(of) for place in range(N)} | {"llm": ["a", "b"]})
    data: Any = table
    if engine.name == "pandas":
        data = table.to_pandas()
    elif engine.name.startswith("polars"):
        import polars as pl

        data = pl.DataFrame(table)
        data = data if engine.name == "polars" else data.lazy()
    elif engine.name == "duckdb":
        import duckdb

        data = duckdb.from_arrow(table)
    for words in ({"annotators": "ann_*"}, {"item": "llm", "label": "ann_0"}):
        with pytest.raises(dhkappa.DataError) as caught:
            dhkappa.tally(data, **words)
        assert caught.value.code == "not-a-label"
        assert "'ann_0'" in caught.value.message


@pytest.mark.parametrize("N", [3, 8])
def test_objects_of_polars_are_counted_or_refused(N: int) -> None:
    pl = pytest.importorskip("polars")
    data = pl.DataFrame([pl.Series(f"ann_{place}", ["a", "b"], pl.Object) for place in range(N)])
    try:
        found = dhkappa.tally(data, annotators="ann_*")
    except dhkappa.DataError:
        return
    assert found == of_lists([["a"] * N, ["b"] * N])
