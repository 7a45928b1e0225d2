"""Tables of five libraries with columns of every type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

# fmt: off
KINDS: Mapping[str, Sequence[Any]] = {
    "text": ("ham", "spam", "ß", "a'b\"c", "nan", "", " ", "1", "👩‍🔬"),
    "json": ('{"a": 1}', '"x"', "1"),
    "int": (0, 1, 2, 100),
    "signed": (-1, -100, 7),
    "long": (2**53, 2**53 + 1, -(2**62), 2**63 - 1),
    "unsigned": (2**64 - 1, 2**63, 5),
    "wide": (2**100, -(2**100), 3),
    "float": (0.0, 1.0, 2.0, float("nan")),
    "fraction": (0.5, float("inf"), 1.0, 1e300),
    "bool": (True, False),
    "date": (date(2020, 1, 1), date(1969, 12, 31)),
    "datetime": (datetime(2020, 1, 1, 12), datetime(1900, 1, 1)),
    "time": (time(12, 30), time(0)),
    "duration": (timedelta(1), timedelta(seconds=-1)),
    "decimal": (Decimal("1.0"), Decimal("2.5"), Decimal("-3.0")),
    "bytes": (b"a", b"\xff"),
    "list": ([1], [2, 3], []),
    "struct": ({"a": 1}, {"a": 2}),
    "null": (None,),
}
_PANDAS: Mapping[str, Sequence[Any]] = {
    "text": ("object", "str", "string", "category", "string[pyarrow]", pd.ArrowDtype(pa.large_string())),
    "int": ("Int64", "object", "category", "float64", "UInt8", "Int16", "int64[pyarrow]", "float16", "Float32"),
    "signed": ("Int8", "object", "category"),
    "long": ("Int64", "object", "category"),
    "unsigned": ("UInt64", "object", "uint64[pyarrow]"),
    "wide": ("object", "category"),
    "float": ("float64", "Float64", "object", "category", "float32", "float64[pyarrow]"),
    "fraction": ("float64", "object", "Float64"),
    "bool": ("boolean", "object", "category", "bool[pyarrow]"),
    "date": ("object", "category", "date32[pyarrow]"),
    "datetime": ("datetime64[ns]", "datetime64[s]", "object", "category"),
    "time": ("object",),
    "duration": ("timedelta64[ns]", "object"),
    "decimal": ("object", pd.ArrowDtype(pa.decimal128(5, 1))),
    "bytes": ("object", "binary[pyarrow]"),
    "list": ("object", pd.ArrowDtype(pa.list_(pa.int64()))),
    "struct": ("object",),
    "null": ("object", "float64", "Int64", "category", "str", "boolean"),
}
_POLARS: Mapping[str, Sequence[Any]] = {
    "text": (
        pl.String, pl.Categorical, pl.Enum(["ham", "spam", "ß", "a'b\"c", "nan", "", " ", "1", "👩‍🔬"]), pl.Object,
    ),
    "int": (pl.Int64, pl.UInt8, pl.Int8, pl.Float32, pl.UInt64, pl.Int128, pl.Float64, pl.Object, pl.Decimal(10, 0)),
    "signed": (pl.Int8, pl.Int16, pl.Int32),
    "long": (pl.Int64, pl.Int128),
    "unsigned": (pl.UInt64, pl.Int128),
    "wide": (pl.Int128, pl.Object),
    "float": (pl.Float64, pl.Float32),
    "fraction": (pl.Float64,),
    "bool": (pl.Boolean,),
    "date": (pl.Date,),
    "datetime": (pl.Datetime("us"), pl.Datetime("ns", "UTC")),
    "time": (pl.Time,),
    "duration": (pl.Duration("ms"),),
    "decimal": (pl.Decimal(10, 1),),
    "bytes": (pl.Binary,),
    "list": (pl.List(pl.Int64), pl.Object),
    "struct": (pl.Struct({"a": pl.Int64}),),
    "null": (pl.Null, pl.String, pl.Int64),
}
_PYARROW: Mapping[str, Sequence[Any]] = {
    "text": (
        pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int64(), pa.large_string()),
    ),
    "int": (
        pa.int64(), pa.uint8(), pa.int8(), pa.float16(), pa.float32(), pa.uint64(), pa.dictionary(pa.int8(),
        pa.int64()), pa.decimal128(5, 0),
    ),
    "signed": (pa.int8(), pa.int16()),
    "long": (pa.int64(),),
    "unsigned": (pa.uint64(),),
    "wide": (pa.decimal128(38, 0), pa.decimal256(50, 0)),
    "float": (pa.float64(), pa.float32(), pa.float16(), pa.dictionary(pa.int8(), pa.float64())),
    "fraction": (pa.float64(),),
    "bool": (pa.bool_(), pa.dictionary(pa.int8(), pa.bool_())),
    "date": (pa.date32(), pa.date64()),
    "datetime": (pa.timestamp("us"), pa.timestamp("s", "UTC")),
    "time": (pa.time64("us"), pa.time32("s")),
    "duration": (pa.duration("s"),),
    "decimal": (pa.decimal128(5, 1),),
    "bytes": (pa.binary(), pa.large_binary(), pa.binary_view()),
    "list": (pa.list_(pa.int64()), pa.large_list(pa.int64())),
    "struct": (pa.struct([("a", pa.int64())]),),
    "null": (pa.null(), pa.string(), pa.int64(), pa.dictionary(pa.int8(), pa.string())),
}
_DUCKDB: Mapping[str, Sequence[Any]] = {
    "text": ("VARCHAR",),
    "json": ("JSON",),
    "int": (
        "INTEGER", "TINYINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DOUBLE", "FLOAT", "DECIMAL(9, 0)", "VARCHAR",
        "BIT",
    ),
    "signed": ("TINYINT", "SMALLINT"),
    "long": ("BIGINT", "HUGEINT"),
    "unsigned": ("UBIGINT", "HUGEINT"),
    "wide": ("HUGEINT", "DECIMAL(38, 0)"),
    "float": ("DOUBLE", "FLOAT"),
    "fraction": ("DOUBLE",),
    "bool": ("BOOLEAN",),
    "date": ("DATE",),
    "datetime": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMPTZ"),
    "time": ("TIME",),
    "duration": ("INTERVAL",),
    "decimal": ("DECIMAL(5, 1)",),
    "bytes": ("BLOB",),
    "list": ("INTEGER[]",),
    "struct": ("STRUCT(a INTEGER)",),
    "null": ("VARCHAR", "INTEGER", '"NULL"', "UUID"),
}
# fmt: on
_TYPES = {"pandas": _PANDAS, "polars": _POLARS, "polars-lazy": _POLARS, "pyarrow": _PYARROW, "duckdb": _DUCKDB}
LIBRARIES = tuple(_TYPES)

Columns = Mapping[str, tuple[str, Any, Sequence[Any]]]
"""Kind, type and values of each column."""


def possible(library: str, kind: str) -> Sequence[Any]:
    """Return the types of a library for a kind of values."""
    return _TYPES[library].get(kind, ())


def frame(library: str, columns: Columns) -> Any:
    """Return a table of a library."""
    if library == "pandas":
        return pd.concat(
            [pd.Series(list(values), dtype=dtype, name=name) for name, (_, dtype, values) in columns.items()], axis=1
        )
    if library == "pyarrow":
        return pa.table([pa.array(values, dtype) for _, dtype, values in columns.values()], names=list(columns))
    if library == "duckdb":
        return _relation({name or "nameless": column for name, column in columns.items()})
    whole = pl.DataFrame([pl.Series(name, list(values), dtype) for name, (_, dtype, values) in columns.items()])
    return whole.lazy() if library == "polars-lazy" else whole


def _relation(columns: Columns) -> Any:
    """Return a DuckDB relation."""
    casts = ", ".join(f"CAST(${at} AS {dtype}[]) AS c{at}" for at, (_, dtype, _) in enumerate(columns.values(), 1))
    names = ", ".join(f'unnest(c{at}) AS "{name.replace(chr(34), chr(34) * 2)}"' for at, name in enumerate(columns, 1))
    return duckdb.sql(
        f"SELECT {names} FROM (SELECT {casts})", params=[list(values) for _, _, values in columns.values()]
    )
