"""Databases through Ibis: SQLite, Postgres, DuckDB.

A database may compare text without case, accents or trailing blanks, and would merge labels that differ. SQLite stores
any value in any column, and reading it by the column's type would change it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.errors import DataError
from dhkappa.inputs.backends import Frame, lazy

_NAMES = {"postgres": "Postgres", "sqlite": "SQLite"}
_CASE_INSENSITIVE = ("mysql", "mssql")
_STORAGE = {  # types of SQLite's values that fit a declared type
    "boolean": ("integer",),
    "integer": ("integer",),
    "floating": ("integer", "real"),
    "decimal": ("integer", "real"),
    "string": ("text",),
    "unknown": ("text",),
}
_BINARY = ("", "binary", "c", "posix")  # collations of DuckDB


class IbisFrame(Frame):
    """A table of a database."""

    @classmethod
    def of(cls, data: Any, columns: tuple[str, ...], in_memory: bool) -> IbisFrame:
        """Make a frame; refuse databases that compare text without case."""
        database = data.get_backend().name
        if database in _CASE_INSENSITIVE:
            message = f"Tables of {database} are not supported, because {database} may treat 'A' and 'a' as one label."
            raise DataError(message, code="engine-not-supported", hint="Pass table.to_pyarrow().")
        made = {"sqlite": SQLiteFrame, "postgres": PostgresFrame}.get(database, cls)
        return made(data, _NAMES.get(database, "Ibis"), columns)

    @property
    def count_type(self) -> Any:
        """Floats, exact to 53 bits: in Postgres, a literal that fits into 32 bits has 32 and would overflow."""
        return nw.Float64

    def native_type(self, native: Any, role: str) -> Any:
        """Return the type of a column."""
        return native.schema()[role]

    def normalize(self, frame: nw.LazyFrame[Any], roles: Mapping[str, str]) -> nw.LazyFrame[Any]:
        """Compare text by bytes, whatever its collation."""
        frame = super().normalize(frame, roles)
        native: Any = frame.to_native()
        texts = [
            role for role, dtype in frame.collect_schema().items() if dtype == nw.String or self.as_text(native, role)
        ]
        if not texts:
            return frame
        binary = self.binary_text()
        return lazy(native.mutate(**{role: binary(native[role]) for role in texts}))

    def as_text(self, native: Any, role: str) -> bool:
        """Tell whether a column of another type has to be read as text."""
        return False

    def binary_text(self) -> Callable[[Any], Any]:
        """Return the function that removes the collation of a text column."""
        backend = self.native.get_backend()
        if backend.name != "duckdb":
            return lambda column: column
        [(collation,)] = backend.con.execute("SELECT current_setting('default_collation')").fetchall()
        if collation.lower() not in _BINARY:
            message = f"The DuckDB connection has default_collation {collation!r}, which may merge different labels."
            raise DataError(message, code="collation", hint="Run SET default_collation = '' on it first.")
        functions = _functions()
        return lambda column: functions["decode"](functions["encode"](column))


class PostgresFrame(IbisFrame):
    """A table of Postgres."""

    def as_text(self, native: Any, role: str) -> bool:
        """Read types that cannot be fetched as they are as text."""
        dtype = native.schema()[role]
        unlimited = dtype.is_decimal() and dtype.scale is None and role in ("item", "annotator")
        return bool(unlimited or dtype.is_uuid() or dtype.is_inet() or dtype.is_macaddr())

    def binary_text(self) -> Callable[[Any], Any]:
        """Convert to bytes and back; enumerations are cast to text first."""
        to, back, text = (_functions()[name] for name in ("convert_to", "convert_from", "text"))
        return lambda column: back(to(text(column), "UTF8"), "UTF8")


class SQLiteFrame(IbisFrame):
    """A table of SQLite."""

    has_nan = False

    def normalize(self, frame: nw.LazyFrame[Any], roles: Mapping[str, str]) -> nw.LazyFrame[Any]:
        """Check that values have the declared types, and read numbers unrounded. SQLite has no NaN to replace."""
        self._check_storage(frame, roles)
        new = []
        for role, dtype in frame.collect_schema().items():
            if dtype.is_integer():  # 64 bits, whatever width is declared
                new.append(nw.col(role).cast(nw.Int64))
            elif dtype == nw.Decimal:  # not rounded to the declared digits
                new.append(nw.col(role).cast(nw.Float64))
        return super().normalize(frame.with_columns(*new) if new else frame, roles)

    def _check_storage(self, frame: nw.LazyFrame[Any], roles: Mapping[str, str]) -> None:
        """Refuse columns with values of other types than declared."""
        native: Any = frame.to_native()
        wrong = {}
        for role, dtype in native.schema().items():
            fitting = next((kinds for kind, kinds in _STORAGE.items() if getattr(dtype, f"is_{kind}")()), None)
            if fitting is not None:
                misfit = ~_functions()["typeof"](native[role]).isin([*fitting, "null"])
                misfit = misfit | ~native[role].cast("int64").isin([0, 1]) if dtype.is_boolean() else misfit
                wrong[role] = misfit.any()
        found = self.fetch(lazy(native.aggregate(**wrong))) if wrong else {}
        for role, [misfit] in found.items():
            if misfit:
                declared = str(frame.collect_schema()[role]).replace("Unknown", "String")
                message = f"Column {roles[role]!r} of SQLite is read as {declared} and holds values of other types."
                raise DataError(message, code="wrong-type", hint="Correct them, or declare the column as TEXT.")

    def binary_text(self) -> Callable[[Any], Any]:
        """Append empty text: an expression has no collation."""
        return lambda column: column + ""


@cache
def _functions() -> dict[str, Any]:
    """Return database functions that Ibis does not have."""
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
