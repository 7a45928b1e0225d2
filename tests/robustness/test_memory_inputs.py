"""Memory limits of the embedded engine, and data that does not fit."""

import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dhkappa
from dhkappa import DataError
from dhkappa.errors import OutOfMemoryError
from dhkappa.inputs.backends import duckdb as duck
from dhkappa.resources import MIB

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports and limits memory")


@LINUX
def test_duckdb_of_our_own_stays_within_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "share", lambda: 100 * MIB)
    with duck.connect() as connection:
        names = ("memory_limit", "threads", "async_threads")
        chosen = connection.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names)).fetchone()
    assert chosen == ("100.0 MiB", 1, 1)
    monkeypatch.setattr(duck, "share", lambda: None)
    with duck.connect() as connection, duckdb.connect() as usual:
        asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
        assert connection.execute(asked).fetchone() == usual.execute(asked).fetchone()


def test_what_duckdb_may_take_is_looked_at_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, database = tmp_path / "votes.csv", tmp_path / "votes.duckdb"
    path.write_text("item,suggested,ann_1,ann_2\n1,x,x,x\n")
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE votes AS FROM read_csv('{path}')")

    def limit(source: Any) -> float:
        [(text,)] = source._data.votes.query("t", "SELECT current_setting('memory_limit')").fetchall()
        return float(text.removesuffix(" MiB"))

    for left in (200, 900, 300):
        monkeypatch.setattr(duck, "share", lambda left=left: left * MIB)
        assert left <= limit(dhkappa.read(path)) < left + 50  # beside what it has taken already
        assert left <= limit(dhkappa.read(f"duckdb://{database}", table="votes")) < left + 50


def test_a_database_of_duckdb_spills_to_a_private_folder(tmp_path: Path) -> None:
    database = tmp_path / "votes.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE votes AS SELECT 1 AS item, 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2")
    source: Any = dhkappa.read(f"duckdb://{database}", table="votes")._data
    votes = source.votes
    [(folder,)] = votes.query("t", "SELECT current_setting('temp_directory')").fetchall()
    assert Path(folder).parent.stat().st_mode & 0o777 == 0o700
    assert tmp_path not in Path(folder).parents


@pytest.mark.parametrize(
    "words",
    ["Out of Memory", "bad alloc", "Cannot allocate memory", "No space left on device", "busy with another call"],
)
def test_words_of_the_data_are_not_the_reason(words: str, tmp_path: Path) -> None:
    folder = tmp_path / words
    folder.mkdir()
    path = folder / "votes.csv"
    path.write_text(f"item,suggested,ann_1,ann_2\n1,x,x,x\n{words}\n")
    with pytest.raises(DataError) as caught:
        dhkappa.dh_kappa(path)
    assert not isinstance(caught.value, MemoryError)


def test_a_connection_of_yours_keeps_its_settings() -> None:
    asked = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    with duckdb.connect() as connection:
        before = connection.execute(asked).fetchall()
        votes = connection.sql("SELECT 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2, 1 AS item")
        assert dhkappa.dh_kappa(votes).n_items == 1
        assert connection.execute(asked).fetchall() == before


def test_a_full_disk_to_spill_on_is_told_from_a_damaged_file(tmp_path: Path) -> None:
    with duckdb.connect(config={"temp_directory": str(tmp_path / "spill"), "threads": 1}) as connection:
        connection.execute("SET memory_limit = '20MB'; SET max_temp_directory_size = '1MB'")
        votes = connection.sql(
            "SELECT i AS item, 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2 FROM range(2000000) AS r(i)"
        )
        with pytest.raises(OutOfMemoryError, match="TMPDIR"):
            dhkappa.dh_kappa(votes)


def test_items_named_by_text_twice_are_found_among_many(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = "".join(f"t{place},x,x,x\n" for place in [*range(20_000), 7, 7_777])
    path.write_text(f"item,suggested,ann_1,ann_2\n{rows}")
    with pytest.raises(DataError, match="'t7', 't7777'"):
        dhkappa.dh_kappa(path)
    path.write_text("item,suggested,ann_1,ann_2\n,x,x,x\n,y,y,x\nt1,x,x,x\n")
    assert dhkappa.dh_kappa(path).n_items == 3
