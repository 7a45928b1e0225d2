"""Tables of every engine from plain lists, and fixtures that run one test on all engines."""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

Columns = Mapping[str, Sequence[Any]]
Kinds = Mapping[str, str]

KINDS = ("text", "int", "float", "bool", "category", "enum", "dictionary", "coded int", "null")
"""Kinds of columns. A category is unordered, an enum ordered, a dictionary as in Arrow, a coded int a category of
integers; an engine without such a type takes text or integers. A null column has no type if the engine allows it."""

ON_NO_MACHINE = "on no machine"
"""Start of the reason for skipping a test of something that an engine cannot hold."""

_numbers = count()


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind of a column by its values."""
    known = [value for value in values if value is not None]
    if not known:
        return "null"
    if all(isinstance(value, bool) for value in known):
        return "bool"
    if all(isinstance(value, int) for value in known):
        return "int"
    return "float" if all(isinstance(value, (int, float)) for value in known) else "text"


def _kinds(columns: Columns, kinds: Kinds) -> dict[str, str]:
    return {name: kinds.get(name) or kind_of(values) for name, values in columns.items()}


def _different(values: Sequence[Any]) -> list[Any]:
    return sorted({value for value in values if value is not None})


def _pandas(columns: Columns, kinds: Kinds) -> Any:
    import pandas as pd

    found = {}
    for name, kind in _kinds(columns, kinds).items():
        values = list(columns[name])
        if kind == "category":
            found[name] = pd.Series(pd.Categorical(values))
        elif kind in ("enum", "coded int"):
            found[name] = pd.Series(pd.Categorical(values, categories=_different(values), ordered=kind == "enum"))
        elif kind == "dictionary":
            import pyarrow as pa

            found[name] = pd.Series(values, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
        elif kind == "float":
            found[name] = pd.Series(values, dtype="float64")
        else:
            found[name] = pd.Series(values, dtype=None if values else {"text": "str", "int": "int64"}.get(kind))
    return pd.DataFrame(found)


def _polars(columns: Columns, kinds: Kinds) -> Any:
    import polars as pl

    types: dict[str, Any] = {"text": pl.String, "int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean}
    types |= {"category": pl.Categorical, "dictionary": pl.Categorical, "coded int": pl.Int64, "null": pl.Null}
    return pl.DataFrame(
        [
            pl.Series(name, list(columns[name]), pl.Enum(_different(columns[name])) if kind == "enum" else types[kind])
            for name, kind in _kinds(columns, kinds).items()
        ]
    )


def _polars_lazy(columns: Columns, kinds: Kinds) -> Any:
    return _polars(columns, kinds).lazy()


def _pyarrow(columns: Columns, kinds: Kinds) -> Any:
    import pyarrow as pa

    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "null": pa.null()}
    types |= {"category": pa.dictionary(pa.int8(), pa.string()), "dictionary": pa.dictionary(pa.int32(), pa.string())}
    types |= {"enum": pa.dictionary(pa.int8(), pa.string(), ordered=True)}
    types |= {"coded int": pa.dictionary(pa.int16(), pa.int64())}
    arrays = [pa.array(list(columns[name]), types[kind]) for name, kind in _kinds(columns, kinds).items()]
    return pa.table(arrays, names=list(columns))


def _plain_arrow(columns: Columns, kinds: Kinds) -> Any:
    plain = {"category": "text", "enum": "text", "dictionary": "text", "coded int": "int"}
    return _pyarrow(columns, {name: plain.get(kind, kind) for name, kind in _kinds(columns, kinds).items()})


def _folder(what: str) -> str:
    """Make a folder that is removed at exit."""
    folder = tempfile.mkdtemp(prefix=f"dhkappa-{what}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def quoted(name: str) -> str:
    """Write the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


@cache
def _duckdb_connection() -> Any:
    import duckdb

    return duckdb.connect()


def _in_duckdb(columns: Columns, kinds: Kinds) -> str:
    """Make a table in DuckDB and return its name."""
    table = f"made_{next(_numbers)}"
    enums = [name for name, kind in _kinds(columns, kinds).items() if kind in ("category", "enum", "dictionary")]
    connection = _duckdb_connection()
    written = []
    for name in columns:
        text = quoted(name)
        if name in enums and _different(columns[name]):
            members = ", ".join("'" + value.replace("'", "''") + "'" for value in _different(columns[name]))
            text = f"{text}::ENUM({members}) AS {text}"
        written.append(text)
    connection.register("given", _plain_arrow(columns, kinds))
    connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(written)} FROM given")
    connection.unregister("given")
    return table


def _duckdb(columns: Columns, kinds: Kinds) -> Any:
    return _duckdb_connection().table(_in_duckdb(columns, kinds))


@cache
def _ibis_on_duckdb() -> Any:
    import ibis

    return ibis.duckdb.from_connection(_duckdb_connection())


def _ibis_duckdb(columns: Columns, kinds: Kinds) -> Any:
    return _ibis_on_duckdb().table(_in_duckdb(columns, kinds))


_SQLITE = {"text": "TEXT", "int": "INTEGER", "float": "REAL", "bool": "BOOLEAN", "coded int": "INTEGER"}


@cache
def _sqlite_file() -> Path:
    return Path(_folder("sqlite")) / "made.db"


@cache
def _ibis_on_sqlite() -> Any:
    import ibis

    return ibis.sqlite.connect(_sqlite_file())


def _ibis_sqlite(columns: Columns, kinds: Kinds) -> Any:
    table = f"made_{next(_numbers)}"
    written = [f"{quoted(name)} {_SQLITE.get(kind, 'TEXT')}" for name, kind in _kinds(columns, kinds).items()]
    places = ", ".join("?" * len(columns))
    with sqlite3.connect(_sqlite_file()) as connection:
        connection.execute(f"CREATE TABLE {table} ({', '.join(written)})")
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", zip(*columns.values(), strict=True))
    connection.close()
    return _ibis_on_sqlite().table(table)


_POSTGRES = {"text": "TEXT", "int": "BIGINT", "float": "DOUBLE PRECISION", "bool": "BOOLEAN", "coded int": "BIGINT"}
_server: list[Any] = []


@cache
def _ibis_on_postgres() -> Any:
    import ibis
    from psycopg.conninfo import conninfo_to_dict

    options: dict[str, Any] = conninfo_to_dict(_server[0].url())
    return ibis.postgres.connect(database=options.pop("dbname"), **options)


def _ibis_postgres(columns: Columns, kinds: Kinds) -> Any:
    import psycopg
    from psycopg import sql

    table = f"made_{next(_numbers)}"
    with psycopg.connect(_server[0].url()) as connection:
        written: list[sql.Composable] = []
        for name, kind in _kinds(columns, kinds).items():
            type_: sql.Composable = sql.SQL(_POSTGRES.get(kind, "TEXT"))
            if kind == "enum":
                type_ = sql.Identifier(f"{table}_{len(written)}")
                members = sql.SQL(", ").join(map(sql.Literal, _different(columns[name])))
                connection.execute(sql.SQL("CREATE TYPE {} AS ENUM ({})").format(type_, members))
            written.append(sql.SQL("{} {}").format(sql.Identifier(name), type_))
        into = sql.Identifier(table)
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(into, sql.SQL(", ").join(written)))
        with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(into)) as rows:
            for row in zip(*columns.values(), strict=True):
                rows.write_row(row)
    return _ibis_on_postgres().table(table)


def _dask(columns: Columns, kinds: Kinds, partitions: int = 3) -> Any:
    from dask import dataframe

    whole = _pandas(columns, kinds)
    for name, kind in _kinds(columns, kinds).items():
        if kind == "bool":  # Dask would make text of objects
            whole[name] = whole[name].astype("boolean")
    from_pandas: Any = dataframe.from_pandas
    return from_pandas(whole, npartitions=partitions, sort=False)


def _java() -> str | None:
    """Return the home of Java, of version 17 if there are several."""
    known = os.environ.get("JAVA_HOME")
    if known:
        return known
    homes = sorted(Path("/usr/lib/jvm").glob("java-17*")) + sorted(Path("/usr/lib/jvm").glob("*17*"))
    found = next((str(home) for home in homes if (home / "bin" / "java").exists()), None)
    on_path = shutil.which("java")
    return found or (str(Path(on_path).resolve().parents[1]) if on_path else None)


@cache
def spark() -> Any:
    """Start Spark in this process, once."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = _java() or ""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",  # it lives for minutes
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        # Compiling a query takes seconds, and running it here milliseconds; the cluster's tests compile theirs.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": _folder("spark"),
    }
    builder = SparkSession.builder.master("local[2]").appName("dhkappa")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _pyspark(columns: Columns, kinds: Kinds) -> Any:
    from pyspark.sql import types

    known: dict[str, types.DataType] = {
        "int": types.LongType(),
        "float": types.DoubleType(),
        "bool": types.BooleanType(),
    }
    known |= {"coded int": types.LongType(), "null": types.NullType()}
    fields = [
        types.StructField(name, known.get(kind, types.StringType())) for name, kind in _kinds(columns, kinds).items()
    ]
    rows = list(zip(*columns.values(), strict=True))
    return spark().createDataFrame(rows, types.StructType(fields))


@dataclass(frozen=True)
class Engine:
    """How to make a table of an engine.

    Attributes
    ----------
    name : of the engine, and of its tests
    made_by : makes a table from columns and the kinds of some of them
    packages : packages that it needs
    group : tests that run in one process, because it starts slowly
    in_memory : whether the rows are in this process
    slow : whether any answer takes about a second
    server : whether it needs a server or Java; its tests are marked slow
    warnings : warnings of its libraries to ignore
    """

    name: str
    made_by: Callable[[Columns, Kinds], Any]
    packages: tuple[str, ...]
    group: str | None = None
    in_memory: bool = False
    slow: bool = False
    server: bool = False
    warnings: tuple[str, ...] = ()
    _made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def table(self, columns: Columns, kinds: Kinds | None = None) -> Any:
        """Make a table, or return the one that was made of the same columns."""
        key = repr((dict(columns), dict(kinds or {})))
        if key not in self._made:
            self._made[key] = self.made_by(columns, kinds or {})
        return self._made[key]

    def lacks(self) -> str | None:
        """Return what it needs and is not installed."""
        for package in self.packages:
            try:
                importlib.import_module(package)
            except ImportError:
                return f"{self.name} needs the package {package}"
        return "Spark needs Java" if self.name == "pyspark" and _java() is None else None

    def __str__(self) -> str:
        return self.name


_OF_IBIS = ("fetch_arrow_table", "The 'future.infer_string' option")

ENGINES = (
    Engine("pandas", _pandas, ("pandas", "pyarrow"), in_memory=True),
    Engine("polars", _polars, ("polars",), in_memory=True),
    Engine("polars-lazy", _polars_lazy, ("polars",)),
    Engine("pyarrow", _pyarrow, ("pyarrow",), in_memory=True),
    Engine("duckdb", _duckdb, ("duckdb", "pyarrow")),
    Engine("ibis-duckdb", _ibis_duckdb, ("ibis", "duckdb", "pyarrow"), warnings=_OF_IBIS),
    Engine("ibis-sqlite", _ibis_sqlite, ("ibis",), warnings=_OF_IBIS),
    Engine("ibis-postgres", _ibis_postgres, ("ibis", "psycopg"), group="postgres", server=True, warnings=_OF_IBIS),
    Engine("dask", _dask, ("dask", "pandas"), slow=True),
    Engine("pyspark", _pyspark, ("pyspark",), group="spark", slow=True, server=True),
)


def _parameters(engines: Sequence[Engine], every: bool = True) -> list[Any]:
    """Return the engines as parameters; unless ``every``, those that answer slowly are marked slow."""
    parameters = []
    for engine in engines:
        marks = [pytest.mark.filterwarnings(f"ignore:{warning}") for warning in engine.warnings]
        marks += [pytest.mark.xdist_group(engine.group)] if engine.group else []
        marks += [pytest.mark.slow] if engine.server or (engine.slow and not every) else []
        parameters.append(pytest.param(engine, marks=marks, id=engine.name))
    return parameters


def _ready(request: pytest.FixtureRequest) -> Engine:
    """Return an engine, or skip the test if it is not installed."""
    engine: Engine = request.param
    reason = engine.lacks()
    if reason is not None:
        pytest.skip(reason)
    if engine.name == "ibis-postgres" and not _server:
        _server.append(request.getfixturevalue("postgres"))
    return engine


@pytest.fixture(scope="session", params=_parameters(ENGINES, every=False))
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine in turn."""
    return _ready(request)


QUICK = tuple(engine for engine in ENGINES if not engine.slow)
NEAR = tuple(engine for engine in ENGINES if engine.in_memory or engine.name == "duckdb")


def only(engines: Sequence[Engine]) -> pytest.MarkDecorator:
    """Run a test on some engines."""
    return pytest.mark.parametrize("engine", _parameters(engines), indirect=True)


def each(names: str, cases: Sequence[Any], few: Sequence[Any] = (), slow: bool = False) -> pytest.MarkDecorator:
    """Run a test on every engine with every case.

    By default a selection runs, and the rest is marked slow: of cases with several values, those that cover every pair
    of engine and values; of others, all on engines that answer fast and ``few`` (else the first) on the others. Engines
    that answer slowly take the ``few`` only, and are marked slow unless ``slow`` is True.
    """
    few = few or cases[:1]
    rows = [
        (known, case if isinstance(case, tuple) else (case,))
        for known in _parameters(ENGINES)
        for case in cases
        if not known.values[0].slow or case in few
    ]
    several = isinstance(cases[0], tuple)
    possible = [
        (known.id, *values)
        for known, values in rows
        if (slow or not known.values[0].slow) and (several or known.values[0] in NEAR or values[0] in few)
    ]
    quick = pairwise(possible)
    parameters = []
    for known, values in rows:
        marks = [*known.marks] if (known.id, *values) in quick else [*known.marks, pytest.mark.slow]
        name = "-".join([known.id, *map(str, values)])
        parameters.append(pytest.param(known.values[0], *values, marks=marks, id=name))
    return pytest.mark.parametrize(f"engine,{names}", parameters, indirect=["engine"])


def pairwise(rows: Sequence[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Choose rows, greedily, so that every pair of values in two places that occurs in a row occurs in a chosen one."""
    pairs = {row: {(i, row[i], j, row[j]) for j in range(len(row)) for i in range(j)} for row in rows}
    left = set().union(*pairs.values())
    chosen = set()
    while left:
        best = max(pairs, key=lambda row: len(pairs[row] & left))
        chosen.add(best)
        left -= pairs.pop(best)
    return chosen


@pytest.fixture(scope="session", params=_parameters(QUICK))
def quick_engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine that answers quickly, in turn."""
    return _ready(request)


@pytest.fixture(scope="session", params=_parameters(NEAR))
def near_engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine that holds rows in this process, in turn."""
    return _ready(request)
