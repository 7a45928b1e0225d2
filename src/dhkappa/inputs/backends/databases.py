"""Databases: open a table by the address of its database, and query it there, through Ibis or in DuckDB itself.

A database may compare text without case, accents or trailing blanks, and would merge labels that differ. SQLite stores
any value in any column, and reading it by the column's type would change it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

import narwhals.stable.v2 as nw

from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.backends import DATABASES, Frame, Query, lazy
from dhkappa.inputs.backends.duckdb import connect, quoted
from dhkappa.paths import not_found

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from ibis.expr.types import Table

_FILES = ("sqlite", "duckdb")  # databases in a file
_TIMEOUT = 10  # seconds for a server to answer: behind a firewall it would be minutes
_POSTGRES_TABLES = """
    SELECT CASE WHEN nspname = current_schema() THEN '' ELSE nspname || '.' END || relname AS name
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname <> 'information_schema' AND nspname !~ '^pg_'
    ORDER BY nspname <> current_schema(), name"""
_STORAGE = {  # types of SQLite's values that fit a declared type
    **dict.fromkeys(("boolean", "integer"), ("integer",)),
    **dict.fromkeys(("floating", "decimal"), ("integer", "real")),
    **dict.fromkeys(("string", "unknown"), ("text",)),
}


def open_table(url: str, table: str | None) -> Table | DuckDBPyRelation:
    """Open a table or a view of a database, whose rows are read when a query runs.

    The URL is ``"postgresql://user:password@host:port/database"``, read as psql reads it, or ``"sqlite:///path"`` or
    ``"duckdb:///path"``. The table is ``"table"``, or ``"schema.table"`` if not in the current schema.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    place = f"{scheme}://{rest}" if scheme in _FILES else _without_password(scheme, rest)
    database: Any = None
    try:
        database = _connect(scheme, rest, place)
        return _find_table(database, table, place)
    except ImportError as error:
        hint = f"Run pip install {DATABASES[scheme]!r}."
        raise DataError(f"{place} needs a package: {error}.", code="missing-package", hint=hint) from None
    except Exception as error:  # every driver has its own errors
        if isinstance(database, _Ibis):  # a connection to DuckDB closes with the last table that uses it
            database.close()
        if isinstance(error, DataError):
            raise
        if "disabled by configuration" in str(error):
            message = f"Table {table!r} of {place} is a view that reads other files, which is not allowed."
            hint = "If you trust it, open it with duckdb.connect and pass the result of table()."
            raise DataError(message, code="view-reads-files", parameter="table", hint=hint) from None
        check = "whether it is such a file" if scheme in _FILES else "the address, the user and the password"
        message = f"Cannot open {place}. Check {check}.\n{_scrubbed(str(error), rest)}"
        raise DataError(message, code="database-not-readable", parameter="path") from None


def _connect(scheme: str, rest: str, place: str) -> _Ibis | _DuckDB:
    if scheme == "duckdb":
        return _DuckDB(_file(rest))
    import ibis

    if scheme == "sqlite":
        return _Ibis(ibis.sqlite.connect(_file(rest)))
    from psycopg.conninfo import conninfo_to_dict

    # Ibis would read a plus sign in a password as a blank, and would not decode the user.
    options: dict[str, Any] = conninfo_to_dict(f"postgresql://{rest}")
    options.setdefault("connect_timeout", _TIMEOUT)
    return _Ibis(ibis.postgres.connect(database=options.pop("dbname", None), **options))


class _Ibis:
    """A database behind Ibis."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.close = backend.disconnect

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table of a schema (by default the current one), or None."""
        from ibis.common.exceptions import TableNotFound

        # A schema alone would be parsed as SQL.
        catalog = getattr(self._backend, "current_catalog", None)
        database: Any = (catalog, schema) if schema and catalog is not None else schema or None
        with suppress(TableNotFound):
            opened: Table = self._backend.table(name, database=database)
            return opened
        return None

    def names(self) -> list[str]:
        """List tables: those of the current schema, then the others with their schema."""
        if self._backend.name == "postgres":
            return [name for (name,) in self._backend.con.execute(_POSTGRES_TABLES).fetchall()]
        return sorted(self._backend.list_tables())


# Tables can only be joined within one connection, so all tables that a thread opens of one file share it.
_OPEN: WeakValueDictionary[tuple[int, str], DuckDBPyConnection] = WeakValueDictionary()


class _DuckDB:
    """A DuckDB file, whose current schema is ``main``."""

    def __init__(self, path: str) -> None:
        place = (threading.get_ident(), os.path.realpath(path))
        self._connection = _OPEN[place] = _OPEN.get(place) or connect(path)
        query = "SELECT table_schema, table_name FROM information_schema.tables"
        self._tables = sorted(self._connection.execute(query).fetchall(), key=lambda table: (table[0] != "main", table))

    def table(self, schema: str, name: str) -> DuckDBPyRelation | None:
        place = (schema or "main", name)
        known = place in self._tables
        return self._connection.sql(f"SELECT * FROM {'.'.join(map(quoted, place))}") if known else None  # nosec B608

    def names(self) -> list[str]:
        return [name if schema == "main" else f"{schema}.{name}" for schema, name in self._tables]


def _file(rest: str) -> str:
    """Return the file of a database: in ``sqlite:///path``, the path may start at the third slash or after it."""
    relative = rest.removeprefix("/")
    for path in (rest, relative):
        if os.path.isfile(path):
            return path
    folder = os.path.dirname(rest)
    raise not_found(rest if folder.strip("/") and os.path.isdir(folder) else relative)


def _find_table(database: _Ibis | _DuckDB, table: str | None, place: str) -> Table | DuckDBPyRelation:
    if table is not None:
        dots = [place for place, sign in enumerate(table) if sign == "."]
        for schema, name in [("", table), *((table[:dot], table[dot + 1 :]) for dot in dots)]:
            if (opened := database.table(schema, name)) is not None:
                return opened
    names = database.names()
    tables = f"Tables: {shown(names, 20) or 'none'}."
    if table is None:
        message = f"{place} is a database. {tables}"
        raise DataError(message, code="table-missing", parameter="table", hint="Choose a table with $table.")
    message, hint = f"Table {table!r} not found in {place}. {tables}", did_you_mean(table, names).strip()
    raise DataError(message, code="table-not-found", parameter="table", hint=hint)


def _without_password(scheme: str, rest: str) -> str:
    """Return the URL of a server without its password; refuse one whose password cannot be delimited."""
    front, slash, path = rest.partition("/")
    if rest.count("@") > 1 or "@" in path or re.search("%(?![0-9A-Fa-f]{2})|%00", rest):
        message = f"The {scheme}:// URL has a special character in a name or a password."
        hint = "Write '@', '/', '#', '?' and '%' as %40, %2F, %23, %3F and %25."
        raise DataError(message, code="invalid-url", parameter="path", hint=hint)
    masked = re.sub("^([^:@]*):[^@]*@", r"\1:***@", front)
    return f"{scheme}://{masked}{slash}{path.partition('?')[0]}"


def _scrubbed(message: str, rest: str) -> str:
    """Mask passwords in a driver's message."""
    found = re.findall("^[^:@]*:([^@]*)@", rest) + re.findall(r"[?&]\w*password=([^&]*)", rest)
    for secret in sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True):
        message = message.replace(secret, "***")
    return message.strip()


def ibis_frame(data: Table, engine: str, columns: tuple[str, ...], in_memory: bool) -> IbisFrame:
    """Make the frame of an Ibis table; refuse databases that compare text without case."""
    database = data.get_backend().name
    if database in ("mysql", "mssql"):
        message = f"Tables of {database} are not supported, because {database} may treat 'A' and 'a' as one label."
        raise DataError(message, code="engine-not-supported", hint="Pass table.to_pyarrow().")
    known = {"sqlite": (SQLiteFrame, "SQLite"), "postgres": (PostgresFrame, "Postgres")}
    kind, name = known.get(database, (IbisFrame, engine))
    return kind(data, name, columns, in_memory)


class IbisFrame(Frame):
    """A table of a database, as Ibis opens it."""

    native_type = staticmethod(lambda native, role: native.schema()[role])
    count_type = nw.Float64  # exact to 53 bits: in Postgres, a literal that fits into 32 bits has 32 and would overflow

    def _without_collation(self, frame: Query, texts: Sequence[str]) -> Query:
        native: Any = frame.to_native()
        binary = self._binary_text() if texts else None
        return lazy(native.mutate(**{role: binary(native[role]) for role in texts})) if binary else frame

    def _binary_text(self) -> Callable[[Any], Any]:
        """Return the function that removes the collation of a text column."""
        backend = self.native.get_backend()
        if backend.name != "duckdb":
            return lambda column: column
        [(collation,)] = backend.con.execute("SELECT current_setting('default_collation')").fetchall()
        if collation.lower() not in ("", "binary", "c", "posix"):
            message = f"The DuckDB connection has default_collation {collation!r}, which may merge different labels."
            raise DataError(message, code="collation", hint="Run SET default_collation = '' on it first.")
        functions = _functions()
        return lambda column: functions["decode"](functions["encode"](column))


class PostgresFrame(IbisFrame):
    """A table of Postgres."""

    def _without_collation(self, frame: Query, texts: Sequence[str]) -> Query:
        """Read as text, too, what cannot be fetched as it is."""
        native: Any = frame.to_native()
        types = native.schema()
        names = [role for role in types if role in ("item", "annotator")]
        unlimited = [role for role in names if types[role].is_decimal() and types[role].scale is None]
        others = [role for role, kind in types.items() if kind.is_uuid() or kind.is_inet() or kind.is_macaddr()]
        return super()._without_collation(frame, [*texts, *unlimited, *others])

    def _binary_text(self) -> Callable[[Any], Any]:
        """Convert to bytes and back; enumerations are cast to text first."""
        to, back, text = (_functions()[name] for name in ("convert_to", "convert_from", "text"))
        return lambda column: back(to(text(column), "UTF8"), "UTF8")


class SQLiteFrame(IbisFrame):
    """A table of SQLite."""

    has_nan = False

    def _normalize(self, frame: Query, roles: Mapping[str, str]) -> Query:
        self._check_storage(frame, roles)
        new = []
        for role, dtype in frame.collect_schema().items():
            if dtype.is_integer():  # 64 bits, whatever width is declared
                new.append(nw.col(role).cast(nw.Int64))
            elif dtype == nw.Decimal:  # not rounded to the declared digits
                new.append(nw.col(role).cast(nw.Float64))
        return super()._normalize(frame.with_columns(*new) if new else frame, roles)

    def _check_storage(self, frame: Query, roles: Mapping[str, str]) -> None:
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

    def _binary_text(self) -> Callable[[Any], Any]:
        """Append empty text: an expression has no collation."""
        return lambda column: column + ""


@cache
def _functions() -> dict[str, Any]:
    """Return database functions that Ibis does not have."""
    import ibis

    of = ibis.udf.scalar.builtin
    one = {"text": (None, str), "encode": (str, bytes), "decode": (bytes, str), "typeof": (None, str)}
    two = {"convert_to": (str, bytes), "convert_from": (bytes, str)}
    found = {name: of(lambda value: None, name=name, signature=((given,), to)) for name, (given, to) in one.items()}
    for name, (given, to) in two.items():
        found[name] = of(lambda value, encoding: None, name=name, signature=((given, str), to))
    return found
