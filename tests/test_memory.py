"""Memory: what is left of it, DuckDB kept within it, and one sentence where data do not fit; a short `make memory`."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

import dhkappa
import memory as trial
import memory_votes
import oracle
from dhkappa import DataError
from dhkappa.errors import OutOfMemoryError
from dhkappa.inputs.backends import duckdb as duck
from dhkappa.inputs.backends.duckdb import DuckDBFrame
from dhkappa.memory import MIB, Room, fitting, folder_on_disk, is_out_of_memory, need, room, share

ROOT = Path(__file__).parents[1]

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells and limits")
GROUP = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not trial.can_group(), reason="no control group can be made here"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same votes in some layouts, and more of those that Python has to hold."""
    folder: Path = tmp_path_factory.mktemp("layouts")
    for name in ("wide.csv", "long.csv", "label_studio.json"):
        memory_votes.write_votes(folder / name, 50_000, trial.ANNOTATORS)
    memory_votes.write_votes(folder / "many.csv", 150_000, trial.ANNOTATORS)
    return folder


def test_kappa_of_the_large_files_is_known() -> None:
    """Every code once: the closed form against the paper's definitions, item by item."""
    with duckdb.connect() as connection:
        found = connection.execute(memory_votes.rows(memory_votes.codes(2), 2)).fetchall()
    expected = oracle.dh([votes for _, _, *votes in found], [label for _, label, *_ in found], memory_votes.CATEGORIES)
    value, counted = memory_votes.exact_kappa(2)
    assert value == expected.kappa
    assert counted * len(found) == expected.n


@LINUX
@pytest.mark.parametrize("how", ["addresses", pytest.param("group", marks=GROUP)])
def test_the_tightest_limit_is_found(how: str) -> None:
    code = "from dhkappa.memory import room; print(room().by, room().limit, 0 < room().left < room().limit, sep=', ')"
    done = trial.run([sys.executable, "-c", code], 300 * MIB, how)
    by = "ulimit -v" if how == "addresses" else "a control group"
    assert done.told == f"{by}, {300 * MIB}, True\n"


@LINUX
@pytest.mark.parametrize("how", ["addresses", pytest.param("group", marks=GROUP)])
def test_every_command_answers_or_says_that_it_does_not_fit(files: Path, how: str) -> None:
    pytest.importorskip("vl_convert")  # for the audit, which writes a report
    small = [*trial.squeeze(files, [(how, 150 * MIB)], ["long.csv"])]
    assert all(one.outcome.sentence for one in small)
    large = [*trial.squeeze(files, [(how, 512 * MIB)], ["wide.csv"], ["score", "tally make"])]
    assert [one.outcome.code for one in large] == [0, 0]
    assert not any(one.fault for one in large)


def _answered(told: str, code: int = 0) -> Any:
    return trial.Outcome(code, told, "", 1.0, 1)


def _score(kappa: str, n_items: int) -> str:
    return json.dumps({"result": {"labelers": {"llm": {"exact": kappa, "n_items": n_items}}}})


EXACT = str(memory_votes.exact_kappa(trial.ANNOTATORS)[0])


@pytest.mark.parametrize("command", trial.COMMANDS)
@pytest.mark.parametrize("layout", ["wide.csv", "many.csv"])
@pytest.mark.parametrize("wrong", ["", "kappa", "number", "everywhere"])
def test_a_wrong_answer_under_a_limit_is_a_fault(
    layout: str, command: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer under a limit that differs from that without one, or both from the known kappa."""

    def run(words: list[str], limit: int = 0, how: str = "") -> Any:
        off = wrong == "everywhere" or (wrong and limit)
        told = _score("1/3" if off and wrong != "number" else EXACT, 41 if off and wrong == "number" else 40)
        if words[-2] == "-o":
            Path(words[-1]).write_text(told)
        return _answered(Path(words[2]).read_text() if words[2].endswith("tally.json") else told)

    monkeypatch.setattr(trial, "run", run)
    [one] = trial.squeeze(tmp_path, [("group", MIB)], [layout], [command])
    unseen = wrong == "everywhere" and (layout == "many.csv" or command == "items")
    assert one.fault == (bool(wrong) and not unseen)


def test_an_answer_without_its_file_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "run", lambda *_: _answered(_score(EXACT, 40)))
    found = {one.command: one.fault for one in trial.squeeze(tmp_path, [("group", MIB)], ["many.csv"])}
    assert found == {"score": False, "audit": True, "items": True, "tally make": True}


def test_the_matrix_shows_every_trial() -> None:
    limits = [("group", 160), ("group", 512), ("addresses", 512)]
    made = [
        trial.Trial(layout, command, how, mib * MIB, _answered("", 1 if how == "addresses" else 0), mib > 160)
        for layout in trial.LAYOUTS
        for command in trial.COMMANDS
        for how, mib in limits
    ]
    shown = trial.matrix(made)
    assert {cell for _, *row in shown for cell in row} == {"160 FAULT, 512 answer, 512 of addresses FAULT"}
    assert (len(shown), {len(row) for row in shown}) == (len(trial.LAYOUTS), {1 + len(trial.COMMANDS)})


@GROUP
def test_votes_that_python_holds_end_in_a_sentence_before_the_kernel_kills(files: Path) -> None:
    pytest.importorskip("vl_convert")
    limits = [("group", 230 * MIB)]
    found = [*trial.squeeze(files, limits, ["many.csv"], ["score"])]
    found += trial.squeeze(files, limits, ["label_studio.json"], ["audit"])
    for one in found:
        assert one.outcome.sentence, one
        assert "230 MiB by a control group: raise that limit" in one.outcome.complained


@LINUX
def test_the_report_is_refused_before_any_work_where_it_would_crash(files: Path) -> None:
    pytest.importorskip("vl_convert")
    words = [trial.COMMAND, "audit", str(files / "wide.csv"), "-o", str(files / "report.html")]
    done = trial.run(words, 1024 * MIB, "addresses")
    assert done.complained.startswith("dhkappa: the report reserves 66 GiB of addresses")
    assert done.code == 2
    assert not (files / "report.html").exists()


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
        [(text,)] = source.votes.query("t", "SELECT current_setting('memory_limit')").fetchall()
        return float(text.removesuffix(" MiB"))

    for left in (200, 900, 300):
        monkeypatch.setattr(duck, "share", lambda left=left: left * MIB)
        assert left <= limit(dhkappa.read(path)) < left + 50  # beside what it has taken already
        assert left <= limit(dhkappa.read(f"duckdb://{database}", table="votes")) < left + 50


def test_a_database_of_duckdb_spills_to_a_private_folder(tmp_path: Path) -> None:
    database = tmp_path / "votes.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE votes AS SELECT 1 AS item, 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2")
    votes: Any = dhkappa.read(f"duckdb://{database}", table="votes").votes
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
    with pytest.raises(DataError, match=r"line 3 .* has 1 field where the header has 4") as caught:
        dhkappa.dh_kappa(path)
    assert not isinstance(caught.value, MemoryError)


def test_a_library_gives_the_answer_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.memory._HELD", [])  # which a command in this process may have filled
    monkeypatch.setattr("dhkappa.memory.room", lambda: Room(MIB, 1024 * MIB, "the machine"))
    assert dhkappa.dh_kappa([["a", "a"], ["a", "b"]], ["a", "b"]).n_items == 2


def test_a_connection_of_yours_keeps_its_settings() -> None:
    asked = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    with duckdb.connect() as connection:
        before = connection.execute(asked).fetchall()
        votes = connection.sql("SELECT 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2, 1 AS item")
        assert dhkappa.dh_kappa(votes).n_items == 1
        assert connection.execute(asked).fetchall() == before


def test_where_the_system_tells_nothing_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.memory._text", lambda path: "")
    assert room() is None
    assert share() is None
    need(1 << 60, "anything")
    with pytest.raises(OutOfMemoryError, match=r"^it did not fit into memory: take more"), fitting("it"):
        raise MemoryError


def test_limits_of_control_groups_of_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tightest of the groups that hold this process; what a group can give back is not taken."""
    system = {
        "/proc/self/cgroup": "4:memory:/a/b\n0::/c/d\n",
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "900\n",
        "/sys/fs/cgroup/memory/a/b/memory.stat": "cache 800\ntotal_rss 300\ntotal_shmem 50\n",
        "/sys/fs/cgroup/c/memory.max": "700\n",
        "/sys/fs/cgroup/c/memory.stat": "anon 100\nfile 500\nshmem 20\n",
        "/sys/fs/cgroup/c/d/memory.max": "max\n",
        "/proc/meminfo": "MemTotal:   8 kB\nMemAvailable:  4 kB\nSwapFree:   1 kB\n",
    }
    monkeypatch.setattr("dhkappa.memory._text", lambda path: system.get(path, ""))
    assert room() == Room(550, 900, "a control group")
    assert share() == 275
    system["/sys/fs/cgroup/c/memory.max"] = "600\n"
    assert room() == Room(480, 600, "a control group")
    system["/proc/self/cgroup"] = ""
    assert room() == Room(5 * 1024, 8 * 1024, "the machine")
    assert share() == 2 * 1024  # none of it swap


def _numpy() -> None:
    np.empty(1 << 60, np.uint8)


def _python() -> None:
    "x" * (1 << 62)


def _duckdb() -> None:
    with duckdb.connect(config={"memory_limit": "3MB", "temp_directory": "", "threads": 1}) as connection:
        connection.execute("CREATE TABLE t AS SELECT i, hash(i) AS h FROM range(5000000) AS r(i)")


def _arrow() -> None:
    pytest.importorskip("pyarrow").allocate_buffer(1 << 60)


def _system() -> None:
    raise OSError(12, "Cannot allocate memory")


def _unseen() -> None:
    """As Python does where a method written in C returns something though there was no memory."""
    raise SystemError("a method returned a result with an exception set") from MemoryError()


@pytest.mark.parametrize("call", [_numpy, _python, _duckdb, _arrow, _system, _unseen])
def test_what_libraries_raise_is_one_sentence(call: Any) -> None:
    with pytest.raises(OutOfMemoryError, match=r"^the votes did not fit into memory") as caught, fitting("the votes"):
        call()
    assert isinstance(caught.value, DataError)
    assert isinstance(caught.value, MemoryError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [OSError(2, "No such file"), ValueError("bad alloc"), RuntimeError("no"), KeyError(1), SystemError("no")]
)
def test_other_errors_stay(error: Exception) -> None:
    assert not is_out_of_memory(error)
    with pytest.raises(type(error)), fitting("the votes"):
        raise error


def test_arrays_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **words: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("dhkappa.core.tally.Tally.update", full)
    with pytest.raises(OutOfMemoryError, match=r"^the votes did not fit"):
        dhkappa.dh_kappa([["a", "a"]], ["a"])


def test_rows_that_python_cannot_hold_are_not_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label,suggested\n1,a,x,x\n1,b,x,x\n2,a,y,y\n")
    assert dhkappa.audit(path).annotator_comparison().labeler == "suggested"
    monkeypatch.setattr("dhkappa.inputs.aggregate._VALUE", 1 << 50)
    audit = dhkappa.audit(path)  # what the engine counts is known without them, and who voted is not
    assert audit.kappas["suggested"].n_items == 1
    with pytest.raises(DataError, match="nothing tells who cast which vote"):
        audit.annotator_comparison()
    monkeypatch.setattr("dhkappa.inputs.aggregate.group", lambda *args: None)
    with pytest.raises(OutOfMemoryError, match=r"MiB of memory are needed for 3 rows that have to be fetched, and"):
        dhkappa.audit(path)


def test_a_text_that_duckdb_could_not_hand_over_is_not_taken_for_missing() -> None:
    """It goes on where Python has no memory for one: what comes back is null, though it was none in the table."""
    columns = {"label": np.array(["x", None], object)}
    native = SimpleNamespace(fetchnumpy=lambda: columns)
    frame: Any = SimpleNamespace(
        collect_schema=lambda: SimpleNamespace(names=lambda: ["label"]),
        implementation=SimpleNamespace(name="DUCKDB"),
        to_native=lambda: native,
    )
    with pytest.raises(MemoryError):
        DuckDBFrame(None, "DuckDB", ()).fetch(frame)
    columns["label"] = np.ma.masked_array(columns["label"], [False, True])
    assert DuckDBFrame(None, "DuckDB", ()).fetch(frame) == {"label": ["x", None]}


def test_a_full_disk_to_spill_on_is_told_from_a_damaged_file(tmp_path: Path) -> None:
    with duckdb.connect(config={"temp_directory": str(tmp_path / "spill"), "threads": 1}) as connection:
        connection.execute("SET memory_limit = '20MB'; SET max_temp_directory_size = '1MB'")
        votes = connection.sql(
            "SELECT i AS item, 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2 FROM range(2000000) AS r(i)"
        )
        with pytest.raises(OutOfMemoryError, match="set TMPDIR"):
            dhkappa.dh_kappa(votes)


def test_items_named_by_text_twice_are_found_among_many(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = "".join(f"t{place},x,x,x\n" for place in [*range(20_000), 7, 7_777])
    path.write_text(f"item,suggested,ann_1,ann_2\n{rows}")
    with pytest.raises(DataError, match="column 'item' names 't7', 't7777' in several rows"):
        dhkappa.dh_kappa(path)
    path.write_text("item,suggested,ann_1,ann_2\n,x,x,x\n,y,y,x\nt1,x,x,x\n")
    assert dhkappa.dh_kappa(path).n_items == 3


def test_what_spills_goes_to_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    monkeypatch.setattr(os.path, "ismount", lambda path: path in ("/tmp", "/"))
    mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n"
    monkeypatch.setattr("dhkappa.memory._text", lambda path: mounts)
    assert folder_on_disk() == "/var/tmp"
    monkeypatch.setattr("dhkappa.memory._text", lambda path: "/dev/vda / ext4 rw 0 0\n")
    assert folder_on_disk() is None
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert folder_on_disk() is None


@LINUX
def test_a_command_holds_its_memory_and_lets_go(tmp_path: Path) -> None:
    code = """
import resource
from dhkappa import memory
usual = resource.getrlimit(resource.RLIMIT_DATA)
memory.hold()
held = resource.getrlimit(resource.RLIMIT_DATA)[0]
try:
    bytearray(1 << 42)
except MemoryError:
    print(held < 1 << 42, end=" ")
memory.release()
print(resource.getrlimit(resource.RLIMIT_DATA) == usual)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "True True\n"


FULL = """
import resource
from dhkappa import memory
memory._HELD.append(resource.getrlimit(resource.RLIMIT_DATA))
memory._hold_at(200 << 20)
held = []
try:
    with memory.fitting("all of it"):
        while True:
            held.append([None] * 100)
except MemoryError as error:
    said = type(error).__name__
print(said, len(held) > 1000)
"""


@LINUX
def test_the_sentence_has_memory_left() -> None:
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)
        assert (ended.stdout, ended.stderr) == ("OutOfMemoryError True\n", "")
