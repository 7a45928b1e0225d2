"""Columns as what they hold: text by its signs, whatever a table says of case, and values of the type they are said.

A database may compare text without case, accents or blanks at the end, so it would add up the votes for labels that
differ. SQLite takes any value into any column, and what then reads it by the column's type cuts it to that.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from dhkappa.errors import DataError
from dhkappa.inputs.backends.duckdb import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    import narwhals.stable.v2 as nw

_FITTING = {
    "boolean": ("integer",),
    "integer": ("integer",),
    "floating": ("integer", "real"),
    "decimal": ("integer", "real"),
    "string": ("text",),
    "unknown": ("text",),
}
_BY_SIGNS = ("", "binary", "c", "posix")  # collations of DuckDB


def spelled(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Have all text of a table compared by its signs."""
    import narwhals.stable.v2 as nw

    texts = [part for part, dtype in frame.collect_schema().items() if dtype == nw.String]
    native: Any = frame.to_native()
    kind = frame.implementation.name
    if kind == "IBIS" and native.get_backend().name == "postgres":
        texts += [name for name, dtype in native.schema().items() if _is_odd(dtype, name)]
    if not texts or kind not in ("DUCKDB", "PYSPARK", "PYSPARK_CONNECT", "IBIS"):
        return frame
    if kind == "DUCKDB":
        by_signs = {name: f"{quoted(name)} COLLATE C AS {quoted(name)}" for name in texts}
        native = native.project(", ".join(by_signs.get(name, quoted(name)) for name in native.columns))
    elif kind.startswith("PYSPARK"):
        plain = {name: native[name].cast("string") for name in texts if native.schema[name].dataType != _spark_text()}
        native = native.withColumns(plain) if plain else native
    else:
        freed = _ibis_text(native.get_backend())
        native = native.mutate(**{name: freed(native[name]) for name in texts})
    same: nw.LazyFrame[Any] = nw.from_native(native).lazy()
    return same


def _is_odd(dtype: Any, part: str) -> bool:
    """Tell whether names of a type of Postgres cannot be fetched as they are."""
    free = dtype.is_decimal() and dtype.scale is None and part in ("item", "annotator")
    return bool(free or dtype.is_uuid() or dtype.is_inet() or dtype.is_macaddr())


def _spark_text() -> Any:
    from pyspark.sql.types import StringType

    return StringType()


def _ibis_text(backend: Any) -> Callable[[Any], Any]:
    """Return what frees a column of text from what it, or its database, says of case."""
    functions = _functions()
    if backend.name == "sqlite":
        return lambda column: column + ""  # of which nothing is said
    if backend.name == "postgres":  # where an enumeration is no text yet
        return lambda column: functions["convert_from"](
            functions["convert_to"](functions["text"](column), "UTF8"), "UTF8"
        )
    if backend.name == "duckdb":
        [(said,)] = backend.con.execute("SELECT current_setting('default_collation')").fetchall()
        if said.lower() not in _BY_SIGNS:
            raise DataError(
                f"the DuckDB connection has default_collation {said!r}, which may take different labels for one: "
                "SET default_collation = '' on it first."
            )
        return lambda column: functions["decode"](functions["encode"](column))
    return lambda column: column


def misfits(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any] | None:
    """Return a query that tells which columns of SQLite hold values of other types than theirs; None for no columns."""
    import narwhals.stable.v2 as nw

    native: Any = frame.to_native()
    found = {}
    for part, dtype in native.schema().items():
        fitting = [kinds for kind, kinds in _FITTING.items() if getattr(dtype, f"is_{kind}")()]
        if fitting:
            misfit = ~_functions()["typeof"](native[part]).isin([*fitting[0], "null"])
            if dtype.is_boolean():
                misfit |= ~native[part].cast("int64").isin([0, 1])
            found[part] = misfit.any()
    query: nw.LazyFrame[Any] | None = nw.from_native(native.aggregate(**found)).lazy() if found else None
    return query


@cache
def _functions() -> dict[str, Any]:
    """Return functions of databases that Ibis does not know."""
    import ibis

    of = ibis.udf.scalar.builtin
    return {
        "text": of(lambda value: None, name="text", signature=((None,), str)),
        "convert_to": of(lambda value, encoding: None, name="convert_to", signature=((str, str), bytes)),
        "convert_from": of(lambda value, encoding: None, name="convert_from", signature=((bytes, str), str)),
        "encode": of(lambda value: None, name="encode", signature=((str,), bytes)),
        "decode": of(lambda value: None, name="decode", signature=((bytes,), str)),
        "typeof": of(lambda value: None, name="typeof", signature=((None,), str)),
    }
