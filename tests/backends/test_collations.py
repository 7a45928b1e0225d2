"""Tables with case-insensitive collations, and SQLite columns with values of other types than declared."""

import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import dhkappa
from dhkappa.inputs.backends import frame_of
from dhkappa.inputs.backends.databases import IbisFrame
from engines import ENGINES, Engine, only
from expect import expect_error
from postgres import PASSWORD, Server
from shapes import of_lists

ibis = pytest.importorskip("ibis")
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]

COLUMNS = ["item", "llm", "v1", "v2", "v3", "group"]
ROWS = [
    ("i", "A", "A", "a", "A", "x"),
    ("I", "a", "a", "a", "A", "X"),
    ("k", "b", "b", "B", "b", "x"),
    ("K", "A", "b", "A", "a", "x"),
    ("l", "B", "B", "B", "b", "X"),
]
VOTES = [
    (item, llm, who, vote)
    for item, llm, *votes, _ in ROWS
    for who, vote in zip(("pvalue", "P", "q"), votes, strict=True)
]
LONG = ["item", "llm", "who", "vote"]
EXACT = Fraction(439, 1264)
NAMED: dict[str, Any] = {"suggested": "llm", "item": "item", "label": "vote", "annotator": "who"}


def created(table: str, columns: list[str], kind: str) -> str:
    return f"CREATE TABLE {table} ({', '.join(f'{name!r}'.replace(chr(39), chr(34)) + ' ' + kind for name in columns)})"


def holds(open_table: Callable[[str], Any]) -> None:
    """See that all calls count as they do from lists: 'wide' and 'long' are the tables."""
    plain = dhkappa.dh_kappa([list(row[2:5]) for row in ROWS], [row[1] for row in ROWS])
    assert plain.exact == EXACT
    wide = open_table("wide")
    found = dhkappa.dh_kappa(wide, suggested="llm", annotators=["v1", "v2", "v3"])
    assert (found.exact, found.categories) == (EXACT, plain.categories)
    assert dhkappa.dh_kappa(wide, suggested="llm", annotators=["v1", "v2", "v3"], item="item").exact == EXACT
    strata = dhkappa.tally(wide, suggested="llm", annotators=["v1", "v2", "v3"], strata="group")
    assert strata == of_lists(
        [list(row[2:5]) for row in ROWS], [row[1] for row in ROWS], strata=[row[5] for row in ROWS]
    )
    long = open_table("long")
    assert dhkappa.dh_kappa(long, **NAMED).exact == EXACT
    listed = dhkappa.dh_kappa(long, items=wide, **NAMED)
    assert listed.exact == EXACT
    queue = dhkappa.audit(wide, suggested="llm", annotators=["v1", "v2", "v3"], item="item").review()
    assert {row["item"] for row in queue} == {row[0] for row in ROWS}


@pytest.mark.parametrize("how", ["column", "default"])
def test_a_duckdb_that_compares_without_case(how: str) -> None:
    connection = duckdb.connect()
    if how == "default":
        connection.execute("SET default_collation = 'NOCASE'")
    kind = "VARCHAR COLLATE NOCASE" if how == "column" else "VARCHAR"
    fill(connection, kind)
    holds(lambda table: connection.sql(f"SELECT * FROM {table}"))


def test_its_enumerations_under_a_default_without_case() -> None:
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    connection.execute("CREATE TYPE label AS ENUM ('a', 'A', 'b', 'B')")
    fill(connection, "VARCHAR")
    wide = connection.sql("SELECT llm::label AS llm, v1::label AS v1, v2::label AS v2, v3::label AS v3 FROM wide")
    assert dhkappa.dh_kappa(wide, suggested="llm", annotators="v*").exact == EXACT


def test_items_that_are_numbers_beside_text_without_case() -> None:
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    votes = connection.sql("SELECT * FROM (VALUES ('a', 'x'), ('A', 'y'), ('1', 'x'), ('1', 'y')) AS t(item, label)")
    items = connection.sql("SELECT * FROM (VALUES (1, 'x')) AS t(item, llm)")
    with expect_error("ids-not-joined"):
        dhkappa.dh_kappa(votes, items=items, suggested="llm", item="item", label="label")


def test_ibis_on_such_a_duckdb() -> None:
    backend = ibis.duckdb.connect()
    fill(backend.con, "VARCHAR COLLATE NOCASE")
    holds(backend.table)
    backend.con.execute("SET default_collation = 'NOCASE'")
    with expect_error("collation"):
        dhkappa.dh_kappa(backend.table("wide"), suggested="llm", annotators="v*")


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("kind", ["citext", 'text COLLATE "no_case"', 'varchar(9) COLLATE "no_case"'])
def test_a_postgres_that_compares_without_case(postgres: Server, kind: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE no_case")
    try:
        with psycopg.connect(postgres.url("no_case"), autocommit=True) as connection:
            try:
                connection.execute(
                    "CREATE EXTENSION citext"
                    if kind == "citext"
                    else "CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
                )
            except psycopg.Error as error:  # a server may be built without them
                pytest.skip(str(error))
            fill(connection, kind, "%s")
        at = {"host": postgres.host, "port": postgres.port, "user": "dhkappa", "password": PASSWORD}
        backend = ibis.postgres.connect(database="no_case", **at)
        try:
            holds(backend.table)
        finally:
            backend.disconnect()
    finally:
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute("DROP DATABASE no_case")


def fill(connection: Any, kind: str, sign: str = "?") -> None:
    for table, columns, rows in (("wide", COLUMNS, ROWS), ("long", LONG, VOTES)):
        connection.execute(created(table, columns, kind))
        for row in rows:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join([sign] * len(row))})", row)


@only([engine for engine in ENGINES if engine.name == "pyspark"])
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI"])
def test_a_spark_that_compares_without_case(engine: Engine, collation: str) -> None:
    from pyspark.sql import functions

    def open_table(name: str) -> Any:
        columns, rows = (COLUMNS, ROWS) if name == "wide" else (LONG, VOTES)
        table = engine.table(
            {column: list(values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)}
        )
        return table.select(*(functions.collate(table[column], collation).alias(column) for column in columns))

    holds(open_table)


def loose(tmp_path: Path, kind: str, votes: list[Any]) -> str:
    path = tmp_path / "loose.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE votes (item INTEGER, llm {kind}, v1 {kind}, v2 {kind})")
        for place, vote in enumerate(votes):
            connection.execute("INSERT INTO votes VALUES (?, ?, ?, ?)", (place, 1, 1, vote))
    connection.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("kind", "vote", "said"),
    [
        ("INTEGER", 1.9, "Int64"),
        ("INTEGER", "one", "Int64"),
        ("BOOLEAN", 2, "Boolean"),
        ("BOOLEAN", 0.5, "Boolean"),
        ("REAL", "one", "Float64"),
        ("TEXT", b"one", "String"),
    ],
)
def test_values_of_sqlite_that_are_not_what_the_column_says(tmp_path: Path, kind: str, vote: Any, said: str) -> None:
    source = dhkappa.read(
        loose(tmp_path, kind, [1, 0, vote, None]), table="votes", suggested="llm", annotators=["v1", "v2"]
    )
    with expect_error("wrong-type") as caught:
        dhkappa.dh_kappa(source, "llm")
    assert f"'v2' of SQLite is read as {said}" in caught.value.message


@pytest.mark.parametrize(("kind", "votes"), [("INTEGER", [1, 0, None, 2]), ("BOOLEAN", [True, None, 0, 1])])
def test_values_of_sqlite_that_are(tmp_path: Path, kind: str, votes: list[Any]) -> None:
    source = dhkappa.read(loose(tmp_path, kind, votes), table="votes", suggested="llm", annotators=["v1", "v2"])
    found = dhkappa.dh_kappa(source, "llm")
    one = True if kind == "BOOLEAN" else 1
    same = [vote if vote is None else type(one)(vote) for vote in votes]
    assert found.exact == dhkappa.dh_kappa([[one, vote] for vote in same], [one] * 4).exact


@pytest.mark.parametrize("kind", ["TINYINT", "INT8", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"])
def test_numbers_of_sqlite_that_are_wider_than_their_type(tmp_path: Path, kind: str) -> None:
    votes = [1, 257, 300, 44, 70_000, 4464, 5 * 10**9, 705_032_704]
    source = dhkappa.read(loose(tmp_path, kind, votes), table="votes", suggested="llm", annotators=["v1", "v2"])
    found = dhkappa.dh_kappa(source, "llm")
    assert found.exact == dhkappa.dh_kappa([[1, vote] for vote in votes], [1] * len(votes)).exact
    assert set(found.categories) == {1, *votes}


def test_other_databases_are_asked_as_they_are() -> None:
    table: Any = SimpleNamespace(get_backend=lambda: SimpleNamespace(name="other"))
    assert IbisFrame(table, "Other", ())._binary_text()("column") == "column"


def test_days_of_sqlite_are_items(tmp_path: Path) -> None:
    path = tmp_path / "days.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE votes (item DATE, llm TEXT, v1 TEXT, v2 TEXT)")
        for day, vote in enumerate("abba", 1):
            connection.execute("INSERT INTO votes VALUES (?, 'a', ?, 'a')", (f"2026-11-0{day}", vote))
    connection.close()
    source = dhkappa.read(f"sqlite:///{path}", table="votes", suggested="llm", annotators="v*", item="item")
    found = dhkappa.dh_kappa(source, "llm")
    assert found.exact == dhkappa.dh_kappa([[vote, "a"] for vote in "abba"], list("aaaa")).exact


def test_a_table_without_text_is_not_changed() -> None:
    table = frame_of(duckdb.sql("SELECT 1 AS a"))
    assert table is not None
    assert table.fetch(table.pick({"item": "a"})[0]) == {"item": [1]}
