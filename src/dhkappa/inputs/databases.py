"""Tables in databases. Queries run in the database, through Ibis or in DuckDB itself."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.backends.duckdb import connect, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from ibis.expr.types import Table

_PACKAGES = {
    **dict.fromkeys(("postgresql", "postgres"), "dhkappa[postgres]"),
    "sqlite": "ibis-framework[sqlite]",
    "duckdb": "duckdb",
}
_FILES = ("sqlite", "duckdb")
_TIMEOUT = 10  # seconds for a server to answer: behind a firewall it would be minutes


def open_table(url: str, table: str | None) -> Table | DuckDBPyRelation:
    """Open a table or a view of a database. Rows are read when a query runs.

    Parameters
    ----------
    url
        ``"postgresql://user:password@host:port/database"``, read as psql reads it; ``"sqlite:///path"`` or
        ``"duckdb:///path"`` of a file.
    table
        ``"table"``, or ``"schema.table"`` if it is not in the current schema.

    Returns
    -------
    Table or DuckDBPyRelation
        An Ibis table, whose ``get_backend().disconnect()`` ends its connection; for a DuckDB file, a relation.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    place = _without_password(scheme, rest)
    database: Any = None
    try:
        database = _connect(scheme, rest, place)
        return _find_table(database, table, place)
    except ImportError as error:
        hint = f"Run pip install {_PACKAGES[scheme]!r}."
        raise DataError(f"{place} needs a package: {error}.", code="missing-package", hint=hint) from None
    except Exception as error:  # every driver has its own errors
        if database is not None:
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
    """Connect to a database."""
    if scheme == "duckdb":
        return _DuckDB(_file(rest, place))
    import ibis

    if scheme == "sqlite":
        return _Ibis(ibis.sqlite.connect(_file(rest, place)))
    from psycopg.conninfo import conninfo_to_dict

    # Ibis would read a plus sign in a password as a blank, and would not decode the user.
    options: dict[str, Any] = conninfo_to_dict(f"postgresql://{rest}")
    options.setdefault("connect_timeout", _TIMEOUT)
    return _Ibis(ibis.postgres.connect(database=options.pop("dbname", None), **options))


_POSTGRES_TABLES = """
    SELECT CASE WHEN nspname = current_schema() THEN '' ELSE nspname || '.' END || relname AS name
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname <> 'information_schema' AND nspname !~ '^pg_'
    ORDER BY nspname <> current_schema(), name"""


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
    """A DuckDB file."""

    def __init__(self, path: str) -> None:
        place = (threading.get_ident(), os.path.realpath(path))
        connection = _OPEN.get(place)
        if connection is None:
            connection = _OPEN[place] = connect(path)
        self._connection = connection

    def close(self) -> None:
        """Do nothing: the connection closes with the last table that uses it."""

    def table(self, schema: str, name: str) -> DuckDBPyRelation | None:
        """Return a table of a schema (by default ``main``), or None."""
        where = schema or "main"
        known = (where, name) in self._tables()
        table = f"{quoted(where)}.{quoted(name)}"
        return self._connection.sql(f"SELECT * FROM {table}") if known else None  # nosec B608

    def names(self) -> list[str]:
        """List tables: those of ``main``, then the others with their schema."""
        tables = sorted(self._tables(), key=lambda table: (table[0] != "main", table))
        return [name if schema == "main" else f"{schema}.{name}" for schema, name in tables]

    def _tables(self) -> list[tuple[str, str]]:
        query = "SELECT table_schema, table_name FROM information_schema.tables"
        return [(schema, name) for schema, name in self._connection.execute(query).fetchall()]


def _file(rest: str, place: str) -> str:
    """Return the file of a database: in ``sqlite:///path``, the path may start at the third slash."""
    for path in (rest, rest.removeprefix("/")):
        if os.path.isfile(path):
            return path
    folder, name = os.path.split(rest)
    near = os.listdir(folder) if os.path.isdir(folder) else []
    hint = did_you_mean(name, near).strip()
    raise DataError(f"{place}: file not found: {rest!r}.", code="file-not-found", parameter="path", hint=hint)


def _find_table(database: _Ibis | _DuckDB, table: str | None, place: str) -> Table | DuckDBPyRelation:
    """Find a table by name, or by schema and name."""
    if table is not None:
        dots = [place for place, sign in enumerate(table) if sign == "."]
        for schema, name in [("", table), *((table[:dot], table[dot + 1 :]) for dot in dots)]:
            opened = database.table(schema, name)
            if opened is not None:
                return opened
    names = database.names()
    tables = f"Tables: {shown(names, 20) or 'none'}."
    if table is None:
        message = f"{place} is a database. {tables}"
        raise DataError(message, code="table-missing", parameter="table", hint="Choose a table with $table.")
    message = f"Table {table!r} not found in {place}. {tables}"
    hint = did_you_mean(table, names).strip()
    raise DataError(message, code="table-not-found", parameter="table", hint=hint)


def _without_password(scheme: str, rest: str) -> str:
    """Return the URL without its password; refuse one whose password cannot be delimited."""
    if scheme in _FILES:
        return f"{scheme}://{rest}"
    front = rest.split("/", maxsplit=1)[0]
    if rest.count("@") > 1 or "@" in rest[len(front) :] or re.search("%(?![0-9A-Fa-f]{2})|%00", rest):
        message = f"The {scheme}:// URL has a special character in a name or a password."
        hint = "Write '@', '/', '#', '?' and '%' as %40, %2F, %23, %3F and %25."
        raise DataError(message, code="invalid-url", parameter="path", hint=hint)
    masked = re.sub("^([^:@]*):[^@]*@", r"\1:***@", front)
    return f"{scheme}://{masked}{rest[len(front) :].partition('?')[0]}"


def _scrubbed(message: str, rest: str) -> str:
    """Mask passwords in a driver's message."""
    found = re.findall("^[^:@]*:([^@]*)@", rest) + re.findall(r"[?&]\w*password=([^&]*)", rest)
    for secret in sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True):
        message = message.replace(secret, "***")
    return message.strip()
