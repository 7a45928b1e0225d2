"""Faults: killed and interrupted commands, files that change while they are read, a lost server."""

import gzip
import importlib
import json
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
from clusters import need
from command import WIDE
from dhkappa import DataError
from dhkappa import __main__ as program
from dhkappa.inputs.backends import Frame
from expect import expect_error
from faults_common import Writer, environment
from faults_kill import interrupted, killed
from postgres import PASSWORD, Server
from section import COMMAND, ROOT


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """A command that writes a tally."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "made").mkdir()
    dhkappa.tally([["x", "y"], ["x", None]], ["x", "y"]).save(folder / "monday.json")
    target = folder / "made" / "sum.json"
    return Writer("tally add", ["tally", "add", str(folder / "monday.json"), "-o", str(target)], target).measured()


@pytest.mark.parametrize("writing", [False, True], ids=["random time", "during the write"])
def test_killed(writer: Writer, writing: bool) -> None:
    fault = killed(writer, 4, writing, random.Random(1))
    assert not fault.wrong
    assert fault.outcomes.total() == 4


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(writer: Writer, sign: int) -> None:
    fault = interrupted([writer], 4, sign, "a signal", False, random.Random(2))
    assert not fault.wrong
    assert fault.outcomes.total() == 4


def test_interrupted_during_the_import_of_numpy(tmp_path: Path) -> None:
    """NumPy cannot be imported a second time; the message must not need it."""
    (tmp_path / "votes.csv").write_text(WIDE)
    code = """
import sys
class Interrupt:
    times = 0
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            Interrupt.times += 1
            raise KeyboardInterrupt if Interrupt.times == 1 else ImportError("not more than once per process")
sys.meta_path.insert(0, Interrupt())
from dhkappa.__main__ import main
main()
"""
    words = [sys.executable, "-c", code, "score", str(tmp_path / "votes.csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_interrupted_before_the_command_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dhkappa.cli.commands.main", interrupt)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 130


def test_few_modules_are_loaded_before_the_signal_handler() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import dhkappa.__main__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert "dhkappa.__main__" in run.stdout.split()
    assert not {"typing", "re", "numpy", "click"} & {*run.stdout.split()}


def test_file_size_limit(tmp_path: Path) -> None:
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
    assert "File too large" in done.stderr
    assert str(tmp_path / "sum.json") in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["monday.json", "sum.json"]
    assert (tmp_path / "sum.json").read_text() == "old"


# Files that change while they are read

ROWS = ["a,x,x,x", "b,y,x,y", "c,x,y,y", "d,y,y,x"]
OTHER = ["a,y,y,x", "b,x,x,x", "c,y,y,x", "d,x,x,y"]  # of the same size


def write(path: Path, rows: list[str]) -> None:
    """Write votes in the format of the file name."""
    names = ["item", "suggested", "ann_1", "ann_2"]
    records = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pyarrow: Any = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(records), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress("\n".join([",".join(names), *rows, ""]).encode()))
    else:
        path.write_text("\n".join([",".join(names), *rows, ""]))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace(path: Path) -> None:
    new = path.with_name(f"new{''.join(path.suffixes)}")
    write(new, ROWS)
    os.replace(new, path)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(content[::-1])


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def remove(path: Path) -> None:
    path.unlink()


@pytest.fixture
def after_first_query(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Change something right after the first query of an engine."""

    def do(change: Callable[[], None]) -> None:
        left, fetch = [change], Frame.fetch

        def late(self: Frame, query: Any) -> dict[str, list[Any]]:
            found = fetch(self, query)
            while left:
                left.pop()()
            return found

        monkeypatch.setattr(Frame, "fetch", late)

    return do


@pytest.mark.parametrize("change", [truncate, replace, overwrite, append, remove])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_file_changed_between_queries(
    suffix: str, change: Callable[[Path], None], after_first_query: Any, tmp_path: Path
) -> None:
    if suffix == ".parquet":
        need("pyarrow")
    path = tmp_path / f"votes{suffix}"
    write(path, ROWS)
    before = dhkappa.tally(path, item="item")
    assert dhkappa.tally(path, item="item") == before
    after_first_query(lambda: change(path))
    with pytest.raises(DataError) as caught:
        dhkappa.tally(path, item="item")
    assert caught.value.code == "file-changed"
    assert repr(str(path)) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_votes_of_the_same_size(after_first_query: Any, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    first = dhkappa.tally(path, item="item")
    after_first_query(lambda: write(path, OTHER))
    with expect_error("file-changed"):
        dhkappa.tally(path, item="item")
    assert dhkappa.tally(path, item="item") != first


def test_one_of_several_files_changed(after_first_query: Any, tmp_path: Path) -> None:
    for place, row in enumerate(ROWS):
        write(tmp_path / f"votes_{place}.csv", [row])
    after_first_query(lambda: append(tmp_path / "votes_2.csv"))
    with pytest.raises(DataError, match=r"votes_2\.csv") as caught:
        dhkappa.tally(str(tmp_path / "votes_*.csv"), item="item")
    assert caught.value.code == "file-changed"


def test_items_file_changed(after_first_query: Any, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("item,annotator,label\n1,a,x\n1,b,x\n2,a,y\n")
    (tmp_path / "items.csv").write_text("item,suggested\n1,x\n2,x\n")
    after_first_query(lambda: append(tmp_path / "items.csv"))
    with pytest.raises(DataError, match=r"items\.csv") as caught:
        dhkappa.tally(tmp_path / "votes.csv", items=tmp_path / "items.csv")
    assert caught.value.code == "file-changed"


def test_dataset_belongs_to_the_file_as_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    data = dhkappa.read(path)
    assert dhkappa.tally(data) == dhkappa.tally(path)
    data = dhkappa.read(path)
    write(path, ROWS[:2])
    with expect_error("file-changed"):
        dhkappa.tally(data)
    assert dhkappa.tally(dhkappa.read(path)).n_items == 2


def test_review_after_the_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.inputs.dataset._MAX_FETCHED", 1)  # items are looked up on demand
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    audit = dhkappa.audit(path, item="item", progress=False)
    write(path, OTHER)
    with expect_error("file-changed"):
        audit.review()


def test_errors_of_a_changed_file_are_reported_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    write(path, ROWS)
    data = dhkappa.read(path)
    path.write_bytes(b"item,suggested,ann_1,ann_2\na,x,x\n")
    with expect_error("file-changed"):
        dhkappa.tally(data)
    with expect_error("wrong-number-of-fields"):
        dhkappa.tally(path)


def test_tally_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    dhkappa.tally([["x", "y"]], ["x"]).save(path)

    def late(*words: Any, **more: Any) -> Any:
        opened = open(*words, **more)  # noqa: SIM115
        append(path)
        return opened

    monkeypatch.setattr("dhkappa.inputs.tally.open", late, raising=False)
    with expect_error("file-changed"):
        dhkappa.Tally.load(path)


# A server that goes away


@pytest.mark.xdist_group("postgres")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_connection_closed_during_a_query(postgres: Server) -> None:
    need("ibis", "psycopg")
    psycopg: Any = importlib.import_module("psycopg")
    asleep = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    found: list[BaseException | dhkappa.Tally] = []

    def query() -> None:
        try:
            found.append(dhkappa.read(postgres.url(), table="slow", suggested=["llm"]).tally())
        except BaseException as error:
            found.append(error)

    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE fast AS SELECT * FROM (VALUES ('1', 'a', 'x', 'x'), ('1', 'b', 'y', 'x')) AS "
            "votes (item, annotator, label, llm)"
        )
        connection.execute(
            "CREATE VIEW slow AS SELECT item, annotator, llm, CASE WHEN pg_sleep(0.5)::text = '' THEN "
            "label END AS label FROM fast"
        )
        thread = threading.Thread(target=query)
        thread.start()
        end = time.monotonic() + 60
        while not connection.execute(f"SELECT pg_terminate_backend(pid) {asleep}").fetchall():
            assert time.monotonic() < end
            time.sleep(0.02)
        thread.join(60)
        assert isinstance(found[0], DataError)
        assert found[0].code == "engine-error"
        assert PASSWORD not in str(found[0])
        query()
        assert found[1] == dhkappa.tally([["x", "y"]], {"llm": ["x"]})
        connection.execute("DROP VIEW slow")
        connection.execute("DROP TABLE fast")
