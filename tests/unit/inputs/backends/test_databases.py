"""Tables of databases: a real Postgres server, files of SQLite and DuckDB."""

import builtins
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import duckdb
import pytest

import dhkappa
from dhkappa.errors import DataError
from dhkappa.inputs.backends.databases import open_table
from expect import expect_error
from postgres import PASSWORD, Server, postgres

__all__ = ["postgres"]

# Of Ibis itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]
HOSTILE = [
    "'; DROP TABLE votes; --",
    'a"b',
    "back\\slash",
    "two\nlines",
    "😀",
    "\u202eabc",
    "007",
    "NA",
    "%s",
    "$1",
    "",
]


def refusal(url: str, table: str | None = "votes") -> DataError:
    with pytest.raises(DataError) as caught:
        open_table(url, table)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


def rows(url: str, table: str) -> list[tuple[Any, ...]]:
    """Fetch all rows by the driver itself, from the SQL that Ibis makes of the table."""
    opened: Any = open_table(url, table)
    if isinstance(opened, duckdb.DuckDBPyRelation):
        return opened.fetchall()
    backend = opened.get_backend()
    try:
        return [tuple(row) for row in backend.raw_sql(backend.compile(opened)).fetchall()]
    finally:
        backend.disconnect()


@pytest.fixture(scope="module")
def server(postgres: Server) -> Iterator[Server]:
    """Return the server with tables under ordinary and under hostile names."""
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("ibis")
    made = [
        "CREATE SCHEMA other",
        'CREATE SCHEMA "we""ird.sch ema"',
        'CREATE SCHEMA "a""; DROP TABLE votes; --"',
        "CREATE TABLE votes (item text, label text)",
        'CREATE TABLE "Votes.2024" (item text)',
        'CREATE TABLE "ta""ble; DROP TABLE votes; --" (item text)',
        "CREATE TABLE other.opinions (item bigint)",
        'CREATE TABLE "we""ird.sch ema"."a.b" (item text)',
        "CREATE VIEW other.seen AS SELECT label FROM votes",
        "CREATE MATERIALIZED VIEW kept AS SELECT item FROM votes",
        "INSERT INTO other.opinions VALUES (7)",
        "CREATE USER \"we:ird@user\" PASSWORD 'plus+plus'",
        'GRANT SELECT ON votes TO "we:ird@user"',
    ]
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        for statement in made:
            connection.execute(statement)
        for text in HOSTILE:
            connection.execute("INSERT INTO votes VALUES (%s, %s)", (text, text))
    yield postgres
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "DROP SCHEMA other CASCADE"):
            connection.execute(statement)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
class TestPostgres:
    @pytest.mark.parametrize("scheme", ["postgresql", "postgres", "POSTGRESQL"])
    def test_a_table(self, server: Server, scheme: str) -> None:
        url = server.url().replace("postgresql", scheme)
        assert rows(url, "votes") == [(text, text) for text in HOSTILE]

    @pytest.mark.parametrize(
        ("table", "columns"),
        [
            ("other.opinions", ["item"]),
            ("public.votes", ["item", "label"]),
            ("Votes.2024", ["item"]),
            ("other.seen", ["label"]),
            ("kept", ["item"]),
            ('ta"ble; DROP TABLE votes; --', ["item"]),
            ('we"ird.sch ema.a.b', ["item"]),
        ],
    )
    def test_names(self, server: Server, table: str, columns: list[str]) -> None:
        opened: Any = open_table(server.url(), table)
        assert list(opened.columns) == columns
        opened.get_backend().disconnect()

    def test_it_counts_where_the_table_is(self, server: Server) -> None:
        assert rows(server.url(), "other.opinions") == [(7,)]

    def test_which_table(self, server: Server) -> None:
        error = refusal(server.url(), None)
        assert (error.code, error.parameter) == ("table-missing", "table")
        assert f"postgresql://dhkappa:***@127.0.0.1:{server.port}/postgres" in error.message
        listed = "'Votes.2024', 'kept', 'ta\"ble; DROP TABLE votes; --', 'votes', 'other.opinions', 'other.seen', "
        assert f"{listed}'we\"ird.sch ema.a.b'" in error.message

    def test_no_such_table(self, server: Server) -> None:
        assert "'votes'" in refusal(server.url(), "vote").hint
        assert "'votes'" in refusal(server.url(), "VOTES").hint
        assert "'other.opinions'" in refusal(server.url(), "other.opinion").hint
        for hostile in ("x'; DROP TABLE votes; --", 'a"; DROP TABLE votes; --.x', "nowhere.votes", ".", ""):
            assert refusal(server.url(), hostile).code == "table-not-found"
        assert len(rows(server.url(), "votes")) == len(HOSTILE)

    def test_user_and_password_with_signs(self, server: Server) -> None:
        for password in ("plus+plus", "plus%2Bplus"):
            assert len(rows(server.url(user="we%3Aird%40user", password=password), "votes")) == len(HOSTILE)

    def test_wrong_password(self, server: Server) -> None:
        error = refusal(server.url(password="hu%21sh"))
        assert error.code == "database-not-readable"
        assert "password authentication failed" in error.message
        assert "hu!sh" not in error.message
        assert "hu%21sh" not in error.message

    def test_unknown_database(self, server: Server) -> None:
        message = str(refusal(server.url("nowhere")))
        assert 'database "nowhere" does not exist' in message
        assert PASSWORD not in message

    def test_nothing_stays_connected_after_a_refusal(self, server: Server) -> None:
        psycopg = pytest.importorskip("psycopg")
        refusal(server.url(), None)
        with psycopg.connect(server.url()) as connection:
            asked = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            connection.autocommit = True
            end = monotonic() + 10
            while (found := connection.execute(asked).fetchone()) != (1,) and monotonic() < end:
                sleep(0.05)  # the server may still be closing the connection
            assert found == (1,)


class TestAddresses:
    def test_a_server_that_refuses(self) -> None:
        pytest.importorskip("psycopg")
        error = refusal("postgresql://me:hush@127.0.0.1:1/x")
        assert error.code == "database-not-readable"
        assert "refused" in error.message.split("\n", 1)[1]
        assert "hush" not in str(error)

    @pytest.mark.parametrize(
        "rest",
        [
            "me:hu@sh@127.0.0.1/x",
            "me:hu/sh@127.0.0.1/x",
            "me:hush%zz@127.0.0.1/x",
            "me:hush%00@127.0.0.1/x",
            "me:hush@[::1/x",
            "me:hush@127.0.0.1:abc/x",
            "127.0.0.1:1/x?password=hush",
            "127.0.0.1:1/x?pasword=hush",
            "127.0.0.1:1/x?sslpassword=hush&password=hu%73h",
        ],
    )
    def test_a_password_is_never_shown(self, rest: str) -> None:
        pytest.importorskip("psycopg")
        message = str(refusal(f"postgresql://{rest}"))
        for part in ("hush", "hu@sh", "hu/sh", "sh@", "hu%73h"):
            assert part not in message

    @pytest.mark.parametrize(
        ("absent", "url", "package"),
        [
            ("ibis", "postgresql://h/d", "dhkappa[postgres]"),
            ("psycopg", "postgresql://h/d", "dhkappa[postgres]"),
        ],
    )
    def test_what_is_absent_is_named(
        self, monkeypatch: pytest.MonkeyPatch, absent: str, url: str, package: str
    ) -> None:
        if absent != "ibis":
            pytest.importorskip("ibis")
        for name in [name for name in sys.modules if name.split(".")[0] == absent]:
            monkeypatch.delitem(sys.modules, name)
        real = builtins.__import__

        def without(name: str, *rest: Any) -> Any:
            if name.split(".")[0] == absent:
                raise ImportError(f"no {absent} here", name=absent)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        error = refusal(url)
        assert error.code == "missing-package"
        assert package in error.hint

    def test_importing_costs_nothing(self) -> None:
        heavy = "{'ibis', 'psycopg', 'duckdb', 'pandas'}"
        script = f"import sys, dhkappa.inputs.backends.databases; print({heavy} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == "set()\n"


class TestFiles:
    @pytest.fixture(params=["sqlite", "duckdb"])
    def made(self, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
        """Return a scheme and a file of that kind with two tables."""
        kind: str = request.param
        if kind == "sqlite":
            pytest.importorskip("ibis")
        path = tmp_path / "a b#c?.db"
        connection: Any = sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))
        connection.execute("CREATE TABLE votes (item TEXT, label TEXT)")
        connection.execute('CREATE TABLE "od""d.one" (item TEXT)')
        for text in HOSTILE:
            connection.execute("INSERT INTO votes VALUES (?, ?)", (text, text))
        connection.commit()
        connection.close()
        return kind, path

    def test_a_table(self, made: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        kind, path = made
        assert rows(f"{kind}://{path}", "votes") == [(text, text) for text in HOSTILE]
        assert rows(f"{kind}://{path}", 'od"d.one') == []
        monkeypatch.chdir(path.parent)
        for relative in (f"{kind}://{path.name}", f"{kind}:///{path.name}"):
            assert len(rows(relative, "votes")) == len(HOSTILE)

    def test_which_table(self, made: tuple[str, Path]) -> None:
        kind, path = made
        assert refusal(f"{kind}://{path}", None).code == "table-missing"
        error = refusal(f"{kind}://{path}", "vote")
        assert error.code == "table-not-found"
        assert "'od\"d.one', 'votes'" in error.message
        assert "'votes'" in error.hint

    def test_no_such_file(self, made: tuple[str, Path]) -> None:
        kind, path = made
        near = path.with_name("a b#c.db")
        error = refusal(f"{kind}://{near}")
        assert error.code == "file-not-found"
        assert "'a b#c?.db'" in error.hint
        assert not near.exists()

    def test_no_such_file_in_the_working_directory(
        self, made: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kind, path = made
        monkeypatch.chdir(path.parent)
        for relative in (f"{kind}://a b#c.db", f"{kind}:///a b#c.db"):
            error = refusal(relative)
            assert error.code == "file-not-found"
            assert error.message == "File not found: 'a b#c.db'."
            assert "'a b#c?.db'" in error.hint

    def test_something_else(self, made: tuple[str, Path]) -> None:
        kind, path = made
        path.write_text("a,b\n" * 1000)
        error = refusal(f"{kind}://{path}")
        assert error.code == "database-not-readable"
        assert "not a" in error.message.split("\n", 1)[1]

    def test_tables_of_one_file_can_be_joined(self, made: tuple[str, Path]) -> None:
        kind, path = made
        connection: Any = sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))
        connection.execute(
            "CREATE TABLE pairs AS SELECT item, label FROM votes UNION ALL SELECT item, label FROM votes"
        )
        connection.execute("DELETE FROM pairs WHERE item = ''")  # no item
        connection.execute("CREATE TABLE labeled AS SELECT item, label AS suggested FROM votes WHERE item <> ''")
        connection.commit()
        connection.close()
        url = f"{kind}://{path}"
        items = dhkappa.read(url, table="labeled")
        data = dhkappa.read(url, table="pairs", item="item", label="label", items=items)
        kappa = dhkappa.dh_kappa(data, "suggested")
        assert (kappa.value, kappa.n_items) == (1, len([text for text in HOSTILE if text]))


def test_labels_of_a_column_that_compares_without_case(tmp_path: Path) -> None:
    pytest.importorskip("ibis")
    rows = [(item, label, item) for item in ("x", "X", "y") for label in ("x", "X", "X")]
    with sqlite3.connect(tmp_path / "a.db") as connection:
        columns = ", ".join(f"{name} TEXT COLLATE NOCASE" for name in ("item", "label", "suggested"))
        connection.execute(f"CREATE TABLE votes ({columns})")
        connection.executemany("INSERT INTO votes VALUES (?, ?, ?)", rows)
    connection.close()
    found = dhkappa.read(f"sqlite://{tmp_path}/a.db", table="votes", item="item", label="label").tally()
    plain = duckdb.connect()
    plain.execute("CREATE TABLE votes (item TEXT, label TEXT, suggested TEXT)")
    plain.executemany("INSERT INTO votes VALUES (?, ?, ?)", rows)
    assert found == dhkappa.tally(plain.table("votes"), item="item", label="label")
    assert found.n_items == 3


def test_tables_of_two_connections_are_refused_in_words() -> None:
    votes, items = (
        duckdb.connect().sql("SELECT 1 AS item, 2 AS label"),
        duckdb.connect().sql("SELECT 1 AS item, 2 AS s"),
    )
    with expect_error("different-connections"):
        dhkappa.dh_kappa(votes, "s", item="item", label="label", items=items)


def test_databases_without_case_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ibis = pytest.importorskip("ibis")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE votes (item TEXT, label TEXT)")
    table = ibis.duckdb.from_connection(connection).table("votes")
    monkeypatch.setattr(type(table.get_backend()), "name", "mysql")
    with expect_error("engine-not-supported"):
        dhkappa.dh_kappa(table, "label", item="item", label="label")
