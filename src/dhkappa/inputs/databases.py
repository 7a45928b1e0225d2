"""Tables in databases: what is asked of them is computed where they are, through Ibis or by DuckDB itself."""

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
_PATIENCE = 10  # seconds for a server to answer: one behind a firewall would keep us for minutes


def is_url(path: Any) -> bool:
    """Tell the address of a database from the path of a file."""
    return isinstance(path, str) and "://" in path and path.partition("://")[0].lower() in _PACKAGES


def open_table(url: str, table: str | None) -> Table | DuckDBPyRelation:
    """Open a table or a view of a database; nothing is read until it is asked for.

    Parameters
    ----------
    url : "postgresql://user:password@host:port/database", read as psql reads it; "sqlite:///path" or "duckdb:///path"
        of a file
    table : "table", or "schema.table" where it is not in the current schema

    Returns
    -------
    Table or DuckDBPyRelation
        An Ibis table, whose ``get_backend().disconnect()`` ends the connection that it holds; of a DuckDB file, a
        relation.

    Raises
    ------
    DataError
        A package is absent, the database cannot be opened, or it has no such table.
    """
    if not is_url(url):
        raise DataError(f"url must be the address of a database, as postgresql://host/name is: got {shown([url])}.")
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    place = _without_password(scheme, rest)
    database: Any = None
    try:
        database = _connect(scheme, rest, place)
        return _table(database, table, place)
    except ImportError as error:
        raise DataError(f"{place} needs a package: pip install {_PACKAGES[scheme]!r}.\n{error}") from None
    except Exception as error:  # every driver has errors of its own
        if database is not None:
            database.close()
        if isinstance(error, DataError):
            raise
        if "disabled by configuration" in str(error):
            raise DataError(
                f"table {table!r} of {place} is a view that reads other files, as a stranger's might read yours: if "
                "you know it, open it with duckdb.connect, and pass what its table() returns."
            ) from None
        advice = "see whether it is such a file" if scheme in _FILES else "see the address, the user and the password"
        raise DataError(f"{place} cannot be opened: {advice}.\n{_scrubbed(str(error), rest)}") from None


def _connect(scheme: str, rest: str, place: str) -> _Ibis | _DuckDB:
    """Connect to a database."""
    if scheme == "duckdb":
        return _DuckDB(_file(rest, place))
    import ibis

    if scheme == "sqlite":
        return _Ibis(ibis.sqlite.connect(_file(rest, place)))
    from psycopg.conninfo import conninfo_to_dict

    # Ibis would read a plus sign in a password as a blank, and the name of a user as it is written.
    options: dict[str, Any] = conninfo_to_dict(f"postgresql://{rest}")
    options.setdefault("connect_timeout", _PATIENCE)
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
        """Return a table of a schema, of the current one where none is named; None if there is no such table."""
        from ibis.common.exceptions import TableNotFound

        with suppress(TableNotFound):
            opened: Table = self._backend.table(name, database=self._written(schema) if schema else None)
            return opened
        return None

    def names(self) -> list[str]:
        """List tables: those of the current schema, then those of others with their schema."""
        if self._backend.name == "postgres":
            return [name for (name,) in self._backend.con.execute(_POSTGRES_TABLES).fetchall()]
        return sorted(self._backend.list_tables())

    def _written(self, schema: str) -> Any:
        """Write a schema so that Ibis takes it as it is: alone, it would be read as SQL."""
        return (self._backend.current_catalog, schema) if hasattr(self._backend, "current_catalog") else schema


# Tables can be joined only within one connection, so all that a thread opens of one file share theirs.
_OPEN: WeakValueDictionary[tuple[int, str], DuckDBPyConnection] = WeakValueDictionary()


class _DuckDB:
    """A file of DuckDB."""

    def __init__(self, path: str) -> None:
        place = (threading.get_ident(), os.path.realpath(path))
        connection = _OPEN.get(place)
        if connection is None:
            connection = _OPEN[place] = connect(path)
        self._connection = connection

    def close(self) -> None:
        """Leave the file open to those who have other tables of it; the last of them closes it."""

    def table(self, schema: str, name: str) -> DuckDBPyRelation | None:
        """Return a table of a schema, of ``main`` where none is named; None if there is no such table."""
        where = schema or "main"
        known = (where, name) in self._tables()
        table = f"{quoted(where)}.{quoted(name)}"
        return self._connection.sql(f"SELECT * FROM {table}") if known else None  # nosec B608

    def names(self) -> list[str]:
        """List tables: those of ``main``, then those of other schemas with their schema."""
        tables = sorted(self._tables(), key=lambda table: (table[0] != "main", table))
        return [name if schema == "main" else f"{schema}.{name}" for schema, name in tables]

    def _tables(self) -> list[tuple[str, str]]:
        asked = "SELECT table_schema, table_name FROM information_schema.tables"
        return [(schema, name) for schema, name in self._connection.execute(asked).fetchall()]


def _file(rest: str, place: str) -> str:
    """Return the file of a database: of ``sqlite:///path``, some say that the path begins at the third slash."""
    for path in (rest, rest.removeprefix("/")):
        if os.path.isfile(path):
            return path
    folder, name = os.path.split(rest)
    near = os.listdir(folder) if os.path.isdir(folder) else []
    raise DataError(f"{place}: there is no file {rest!r}.{did_you_mean(name, near)}")


def _table(database: _Ibis | _DuckDB, table: str | None, place: str) -> Table | DuckDBPyRelation:
    """Find a table by its name, or by its schema and name."""
    if table is not None:
        dots = [place for place, sign in enumerate(table) if sign == "."]
        for schema, name in [("", table), *((table[:dot], table[dot + 1 :]) for dot in dots)]:
            opened = database.table(schema, name)
            if opened is not None:
                return opened
    names = database.names()
    holds = f"It has {shown(names, 20)}." if names else "It has no tables."
    if table is None:
        raise DataError(f"table= must name a table of {place}. {holds}")
    raise DataError(f"table {table!r} is not in {place}.{did_you_mean(table, names)} {holds}")


def _without_password(scheme: str, rest: str) -> str:
    """Write the address without its password, and refuse one whose password cannot be told from the rest."""
    if scheme in _FILES:
        return f"{scheme}://{rest}"
    front = rest.split("/", maxsplit=1)[0]
    if rest.count("@") > 1 or "@" in rest[len(front) :] or re.search("%(?![0-9A-Fa-f]{2})|%00", rest):
        raise DataError(
            f"url of the kind {scheme}:// has a '@', '/', '#', '?' or '%' that is part of a name or a password: "
            "write it as %40, %2F, %23, %3F or %25."
        )
    shown_front = re.sub("^([^:@]*):[^@]*@", r"\1:***@", front)
    return f"{scheme}://{shown_front}{rest[len(front) :].partition('?')[0]}"


def _scrubbed(message: str, rest: str) -> str:
    """Cover passwords in what a driver says."""
    found = re.findall("^[^:@]*:([^@]*)@", rest) + re.findall(r"[?&]\w*password=([^&]*)", rest)
    for secret in sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True):
        message = message.replace(secret, "***")
    return message.strip()
