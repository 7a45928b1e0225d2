"""Faults, in short: killed and stopped at any moment, files that change while they are read, limits, a lost server."""

import gzip
import importlib
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dhkappa
import faults_kill as kill
from clusters import need
from dhkappa import __main__ as program
from dhkappa.core import tally_file as saved
from dhkappa.errors import DataError
from dhkappa.inputs import dataset as given
from dhkappa.inputs import tables
from dhkappa.inputs.backends import Frame
from dhkappa.paths import write_file
from faults_trial import Written
from postgres import PASSWORD, Server
from test_cli import COMMAND, WIDE, environment

ROOT = Path(__file__).parents[1]
CHANGED = "has changed since it was opened"


# Killed and stopped, with the trials of the longer run


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A command that writes a tally, and how long it takes."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "made").mkdir()
    dhkappa.tally([["x", "y"], ["x", None]], ["x", "y"]).save(folder / "monday.json")
    target = folder / "made" / "sum.json"
    return Written("tally add", ["tally", "add", str(folder / "monday.json"), "-o", str(target)], target).learned()


@pytest.mark.parametrize("aimed", [False, True], ids=["at any moment", "while it writes"])
def test_killed(adding: Any, aimed: bool) -> None:
    trial = kill._killed(adding, 4, aimed, random.Random(1))
    assert not trial.wrong
    assert trial.happened.total() == 4


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_stopped(adding: Any, sign: int) -> None:
    trial = kill._stopped([adding], 4, sign, "a signal", False, random.Random(2))
    assert not trial.wrong
    assert trial.happened.total() == 4


def test_stopped_while_numpy_loads(tmp_path: Path) -> None:
    """NumPy cannot be loaded again in that process; the one sentence must not need it."""
    (tmp_path / "votes.csv").write_text(WIDE)
    code = """
import sys
class Stopped:
    times = 0
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            Stopped.times += 1
            raise KeyboardInterrupt if Stopped.times == 1 else ImportError("not more than once per process")
sys.meta_path.insert(0, Stopped())
from dhkappa.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "score", str(tmp_path / "votes.csv")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "dhkappa: stopped.\n")


def test_stopped_while_duckdb_loads(tmp_path: Path) -> None:
    """It would abort the process, so that the stop waits until it is loaded."""
    (tmp_path / "duckdb.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsum(range(10))\nloaded = True\n"
    )
    code = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever started the tests may have turned off
sys.path.insert(0, sys.argv[1])
from dhkappa.inputs.backends.duckdb import load
try:
    load()
except KeyboardInterrupt:
    print(sys.modules["duckdb"].loaded, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_stopped_before_the_command_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dhkappa.cli.commands.main", stopped)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 130


def test_little_is_loaded_before_a_stop_can_be_answered() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import dhkappa.__main__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert "dhkappa.__main__" in run.stdout.split()
    assert not {"typing", "re", "numpy", "click"} & {*run.stdout.split()}


# Drafts


def test_drafts_of_killed_runs_are_ignored_and_removed_when_old(tmp_path: Path) -> None:
    old, fresh, other = (tmp_path / f".t.json.{letter * 16}.draft" for letter in "abz")
    for draft in (old, fresh, other):
        draft.write_text("half of")
    for draft in (old, other):
        os.utime(draft, (time.time() - 7200,) * 2)
    write_file(tmp_path / "u.json", "another", "tally")
    assert old.exists()
    write_file(tmp_path / "t.json", "whole", "tally")
    assert sorted(os.listdir(tmp_path)) == [fresh.name, other.name, "t.json", "u.json"]


def test_a_link_in_the_way_of_a_draft_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.paths.secrets.token_hex", lambda n: "ab" * n)
    (tmp_path / "prey").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / f".t.json.{'ab' * 8}.draft").symlink_to(tmp_path / "prey")
    with pytest.raises(DataError, match="cannot write the tally"):
        write_file(tmp_path / "folder" / "t.json", "whole", "tally")
    assert (tmp_path / "prey").read_text() == "precious"


def test_a_draft_is_on_disk_before_it_takes_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a disk that reports only then that it is full leaves the old file."""
    (tmp_path / "t.json").write_text("old")

    def full(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == 3
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dhkappa.paths.os.fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        write_file(tmp_path / "t.json", "new", "tally")
    assert (tmp_path / "t.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_limit_of_file_sizes(tmp_path: Path) -> None:
    dhkappa.tally([["x", "y"], ["x", None]], ["x", "y"]).save(tmp_path / "monday.json")
    (tmp_path / "sum.json").write_text("old")
    done = subprocess.run(
        [COMMAND, "tally", "add", str(tmp_path / "monday.json"), "-o", str(tmp_path / "sum.json")],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dhkappa: cannot write the tally {str(tmp_path / 'sum.json')!r}: File too large.\n"
    assert sorted(os.listdir(tmp_path)) == ["monday.json", "sum.json"]
    assert (tmp_path / "sum.json").read_text() == "old"


# Files that change while they are read

ROWS = ["a,x,x,x", "b,y,x,y", "c,x,y,y", "d,y,y,x"]
OTHER = ["a,y,y,x", "b,x,x,x", "c,y,y,x", "d,x,x,y"]  # of the same size


def write(path: Path, rows: list[str]) -> None:
    """Write votes as the kind of file that a name tells."""
    names = ["item", "suggested", "ann_1", "ann_2"]
    records = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pyarrow: Any = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(records), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{record}\n".replace("'", '"') for record in records))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress("\n".join([",".join(names), *rows, ""]).encode()))
    else:
        path.write_text("\n".join([",".join(names), *rows, ""]))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replaced(path: Path) -> None:
    new = path.with_name(f"new{''.join(path.suffixes)}")
    write(new, ROWS)
    os.replace(new, path)


def written_over(path: Path) -> None:
    with path.open("r+b") as file:
        held = file.read()
        file.seek(0)
        file.write(held[::-1])


def growing(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def gone(path: Path) -> None:
    path.unlink()


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Have something done right after the first question that an engine answers."""

    def do(change: Callable[[], None]) -> None:
        left = [change]

        fetch = Frame.fetch

        def late(*args: Any) -> dict[str, list[Any]]:
            found = fetch(*args)
            while left:
                left.pop()()
            return found

        monkeypatch.setattr(Frame, "fetch", late)

    return do


@pytest.mark.parametrize("change", [cut, replaced, written_over, growing, gone])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_a_file_that_changes_between_two_questions(
    ending: str, change: Callable[[Path], None], between: Any, tmp_path: Path
) -> None:
    if ending == ".parquet":
        need("pyarrow")
    path = tmp_path / f"votes{ending}"
    write(path, ROWS)
    before = dhkappa.tally(path, item="item")
    assert dhkappa.tally(path, item="item") == before
    between(lambda: change(path))
    with pytest.raises(DataError, match=CHANGED) as caught:
        dhkappa.tally(path, item="item")
    assert repr(str(path)) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_votes_written_over_with_others_of_the_same_size(between: Any, tmp_path: Path) -> None:
    """No row is amiss, and no number would be that of either file."""
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    first = dhkappa.tally(path, item="item")
    between(lambda: write(path, OTHER))
    with pytest.raises(DataError, match=CHANGED):
        dhkappa.tally(path, item="item")
    assert dhkappa.tally(path, item="item") != first


def test_one_file_of_several_changes(between: Any, tmp_path: Path) -> None:
    for place, row in enumerate(ROWS):
        write(tmp_path / f"votes_{place}.csv", [row])
    between(lambda: growing(tmp_path / "votes_2.csv"))
    with pytest.raises(DataError, match=f"votes_2.csv' {CHANGED}"):
        dhkappa.tally(str(tmp_path / "votes_*.csv"), item="item")


def test_the_file_of_items_changes(between: Any, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("item,annotator,label\n1,a,x\n1,b,x\n2,a,y\n")
    (tmp_path / "items.csv").write_text("item,suggested\n1,x\n2,x\n")
    between(lambda: growing(tmp_path / "items.csv"))
    with pytest.raises(DataError, match=f"items.csv' {CHANGED}"):
        dhkappa.tally(tmp_path / "votes.csv", items=tmp_path / "items.csv")


def test_a_source_is_of_the_file_as_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    source = dhkappa.read(path)
    assert dhkappa.tally(source) == dhkappa.tally(source)
    write(path, ROWS[:2])
    with pytest.raises(DataError, match=CHANGED):
        dhkappa.tally(source)
    assert dhkappa.tally(dhkappa.read(path)).n_items == 2


def test_items_asked_for_after_the_file_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "_MOST_GATHERED", 1)  # so that items are looked up when they are asked for
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    audit = dhkappa.audit(path, item="item", progress=False)
    write(path, OTHER)
    with pytest.raises(DataError, match=CHANGED):
        audit.review()


def test_what_is_wrong_with_a_file_that_changes_is_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    source = dhkappa.read(path)
    path.write_bytes(b"item,suggested,ann_1,ann_2\na,x,x\n")
    with pytest.raises(DataError, match=CHANGED):
        dhkappa.tally(source)
    with pytest.raises(DataError, match="has 3 fields where the header has 4"):
        dhkappa.tally(path)


def test_a_tally_and_an_export_that_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    dhkappa.tally([["x", "y"]], ["x"]).save(path)

    def late(*words: Any, **more: Any) -> Any:
        opened = open(*words, **more)  # noqa: SIM115
        growing(path)
        return opened

    monkeypatch.setattr(saved, "open", late, raising=False)
    with pytest.raises(DataError, match=f"t.json' {CHANGED}"):
        dhkappa.Tally.load(path)

    export = ROOT / "tests" / "exports"
    found = sorted(export.rglob("*prodigy*/*.jsonl")) or sorted(export.rglob("*prodigy*.jsonl"))
    copy = tmp_path / "export.jsonl"
    copy.write_bytes(found[0].read_bytes())
    records: Any = importlib.import_module("dhkappa.inputs.readers")
    read_records = records.read_records

    def read(name: Any) -> Any:
        held = read_records(name)
        growing(copy)
        return held

    monkeypatch.setattr(records, "read_records", read)
    with pytest.raises(DataError, match=f"export.jsonl' {CHANGED}"):
        dhkappa.read(copy)


# A server that goes away


@pytest.mark.xdist_group("postgres")
def test_a_connection_cut_in_the_middle_of_a_question(postgres: Server) -> None:
    need("ibis", "psycopg")
    psycopg: Any = importlib.import_module("psycopg")
    asleep = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    said: list[BaseException | dhkappa.Tally] = []

    def ask() -> None:
        source = dhkappa.read(postgres.url(), table="drowsy")
        try:
            said.append(dhkappa.tally(source, ["llm"]))
        except BaseException as error:
            said.append(error)
        finally:
            source.votes.get_backend().disconnect()

    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE awake AS SELECT * FROM (VALUES ('1', 'a', 'x', 'x'), ('1', 'b', 'y', 'x')) AS "
            "votes (item, annotator, label, llm)"
        )
        connection.execute(
            "CREATE VIEW drowsy AS SELECT item, annotator, llm, CASE WHEN pg_sleep(0.5)::text = '' THEN "
            "label END AS label FROM awake"
        )
        asking = threading.Thread(target=ask)
        asking.start()
        end = time.monotonic() + 60
        while not connection.execute(f"SELECT pg_terminate_backend(pid) {asleep}").fetchall():
            assert time.monotonic() < end
            time.sleep(0.02)
        asking.join(60)
        assert isinstance(said[0], DataError)
        assert str(said[0]).startswith("Postgres could not answer; what it says is below.\n")
        assert PASSWORD not in str(said[0])
        ask()
        assert said[1] == dhkappa.tally([["x", "y"]], {"llm": ["x"]})
        connection.execute("DROP VIEW drowsy")
        connection.execute("DROP TABLE awake")
