"""The same votes on every installed engine, compared with DuckDB on the Parquet file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from dhkappa import Kappa
from measure import WrongValueError
from parquet import long_kappa, take_turns, wide_kappa, write_long, write_wide
from table import at, number, power

Open = Callable[[Path], Any]

FEWER = 10  # times, where an engine starts up and shows how long it would take
MOST_SECONDS = 120  # of one call, were it to grow with the items
TURNS_SECONDS = 15  # after which a call is not made again
BLOCK = 10_000

LEGEND = f"""\
One call of dh_kappa on every engine: seconds, and in brackets times what DuckDB takes on the Parquet file, the two
taking turns: the first line, DuckDB itself, shows the noise. Each engine has answered for a tenth of the items
before, so that it is awake. All give the same number.
@: measured on that many items, where all might take over {MOST_SECONDS} s. Postgres is left out, as it needs a server.
"""


@dataclass(frozen=True, slots=True)
class Engine:
    """How to start an engine, which then opens Parquet files as tables; `quick` ones do so at once."""

    name: str
    holds: str
    packages: tuple[str, ...]
    start: Callable[[], AbstractContextManager[Open]]
    quick: bool = True

    def lacks(self) -> str:
        """Say what it needs that is absent."""
        absent = [name for name in self.packages if find_spec(name) is None]
        if absent:
            return f"not installed: {', '.join(absent)}"
        java = os.environ.get("JAVA_HOME") or shutil.which("java")
        return "not installed: Java" if "pyspark" in self.packages and not java else ""


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a call on n items, and of the same by DuckDB on the file."""

    n: int
    seconds: float
    file_seconds: float


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One line of the table: a call in each layout, or why there is none."""

    engine: str
    holds: str
    wide: Took | None = None
    long: Took | None = None
    absent: str = ""


def _reads(module: str, function: str) -> Callable[[], AbstractContextManager[Open]]:
    """Start an engine that needs no more than a function to read a file."""
    return lambda: nullcontext(getattr(import_module(module), function))


@contextmanager
def _duckdb_table() -> Iterator[Open]:
    with duckdb.connect() as connection:

        def held(path: Path) -> Any:
            connection.read_parquet(str(path)).create(path.stem)
            return connection.table(path.stem)

        yield held


@contextmanager
def _ibis_duckdb() -> Iterator[Open]:
    connection = import_module("ibis").duckdb.connect()
    yield connection.read_parquet
    connection.disconnect()


@contextmanager
def _ibis_sqlite() -> Iterator[Open]:
    with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as folder:
        file = Path(folder) / "votes.db"

        def held(path: Path) -> Any:
            with duckdb.connect() as source, sqlite3.connect(file) as target:
                rows = source.execute("FROM read_parquet($1)", [str(path)])
                columns = [f"{name} {'INTEGER' if name == 'item' else 'TEXT'}" for name, *_ in rows.description]
                target.execute(f"CREATE TABLE {path.stem} ({', '.join(columns)})")
                for block in iter(lambda: rows.fetchmany(BLOCK), []):
                    target.executemany(f"INSERT INTO {path.stem} VALUES ({', '.join('?' * len(columns))})", block)
            target.close()
            return connection.table(path.stem)

        connection = import_module("ibis").sqlite.connect(file)
        yield held
        connection.disconnect()


@contextmanager
def _silence() -> Iterator[None]:
    """Let programs that start meanwhile log nowhere: they keep the standard error that they find."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _spark() -> Iterator[Open]:
    with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as folder:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        options = {
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
            "spark.sql.warehouse.dir": folder,
        }
        builder = import_module("pyspark.sql").SparkSession.builder.master("local[*]").appName("dhkappa")
        for name, value in options.items():
            builder = builder.config(name, value)
        with _silence():
            session = builder.getOrCreate()
        try:
            yield lambda path: session.read.parquet(str(path))
        finally:
            session.stop()


FILE = Engine("DuckDB", "the file", ("duckdb",), lambda: nullcontext(str))
ENGINES = (
    FILE,
    Engine("DuckDB relation", "a table", ("duckdb",), _duckdb_table),
    Engine("pandas", "memory", ("pandas", "pyarrow"), _reads("pandas", "read_parquet")),
    Engine("Polars", "memory", ("polars",), _reads("polars", "read_parquet")),
    Engine("Polars lazy", "the file", ("polars",), _reads("polars", "scan_parquet")),
    Engine("PyArrow", "memory", ("pyarrow",), _reads("pyarrow.parquet", "read_table")),
    Engine("Dask", "the file", ("dask", "pandas", "pyarrow"), _reads("dask.dataframe", "read_parquet")),
    Engine("Ibis on DuckDB", "the file", ("ibis", "duckdb"), _ibis_duckdb),
    Engine("Ibis on SQLite", "a table", ("ibis",), _ibis_sqlite),
    Engine("Spark, local", "the file", ("pyspark",), _spark, quick=False),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Votes in Parquet files of n items, and of fewer."""

    n: int
    files: tuple[Path, ...]
    fewer: tuple[Path, ...]
    kappa: Callable[..., Kappa]


def engine_table(wide_items: int, long_items: int, rounds: int, *, quick: bool) -> list[EngineRow]:
    """Measure and print every engine; if `quick`, without those that start slowly."""
    print(LEGEND)
    _line("engine", "holds", f"wide, n={power(wide_items)}", f"long, n={power(long_items)}")
    print("-" * 67)
    rows = []
    with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries warn each other of what they will change
        layouts = _wide(Path(name), wide_items), _long(Path(name), long_items)
        for engine in ENGINES:
            rows.append(_measure(engine, layouts, rounds, quick=quick))
            _line(rows[-1].engine, rows[-1].holds, *_cells(rows[-1], layouts))
    return rows


def _wide(folder: Path, n: int) -> Layout:
    def written(size: int) -> tuple[Path, ...]:
        return (write_wide(folder / f"wide_{size}.parquet", range(size)),)

    return Layout(n, written(n), written(n // FEWER), wide_kappa)


def _long(folder: Path, n: int) -> Layout:
    def written(size: int) -> tuple[Path, ...]:
        wide = write_wide(folder / "rows.parquet", range(size))
        return write_long(wide, folder / f"votes_{size}.parquet", folder / f"items_{size}.parquet")

    return Layout(n, written(n), written(n // FEWER), long_kappa)


def _measure(engine: Engine, layouts: tuple[Layout, Layout], rounds: int, *, quick: bool) -> EngineRow:
    absent = engine.lacks() or ("left out: it starts slowly" if quick and not engine.quick else "")
    if absent:
        return EngineRow(engine.name, engine.holds, absent=absent)
    with engine.start() as open_file:
        wide, long = (_took(engine, layout, open_file, rounds) for layout in layouts)
    return EngineRow(engine.name, engine.holds, wide, long)


def _took(engine: Engine, layout: Layout, open_file: Open, rounds: int) -> Took:
    """Have an engine answer for fewer items, twice, then for all, if that will not take too long."""

    def calls(files: tuple[Path, ...]) -> list[Callable[[], Kappa]]:
        return [partial(layout.kappa, *map(open_it, files)) for open_it in (open_file, str)]

    (ours, file), answers = take_turns(calls(layout.fewer), 2)
    n = layout.n // FEWER
    if ours * FEWER <= MOST_SECONDS:
        (ours, file), answers = take_turns(calls(layout.files), rounds, TURNS_SECONDS)
        n = layout.n
    if answers[0].exact != answers[1].exact or answers[0].n_items != n:
        raise WrongValueError(f"{engine.name} and DuckDB on the file give different kappas at n={n}")
    return Took(n, ours, file)


def _cells(row: EngineRow, layouts: tuple[Layout, Layout]) -> list[str]:
    both = zip((row.wide, row.long), layouts, strict=True)
    return [
        f"{took.seconds:.3f} ({number(took.seconds / took.file_seconds)} x){at(took.n, layout.n)}"
        for took, layout in both
        if took is not None
    ] or [row.absent]


def _line(engine: str, holds: str, *cells: str) -> None:
    print(f"{engine:<17}{holds:<10}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
