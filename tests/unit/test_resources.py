"""Memory limits, out-of-memory errors and the progress display."""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import duckdb
import numpy as np
import pytest

import dhkappa
from command import environment
from dhkappa import DataError, resources
from dhkappa.resources import (
    MIB,
    MemoryLimit,
    Progress,
    folder_on_disk,
    is_out_of_memory,
    limit_blas_threads,
    memory_errors,
    memory_limit,
    need,
    need_address_space,
    share,
)
from expect import expect_error

# Limits


def test_no_limit_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_text", lambda path: "")
    assert memory_limit() is None
    assert share() is None
    need(1 << 60, "anything")
    need_address_space(1 << 60, "anything")
    with expect_error("out-of-memory"), memory_errors("the votes"):
        raise MemoryError


def test_control_groups_of_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tightest group counts; memory that can be reclaimed does not."""
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
    monkeypatch.setattr(resources, "_text", lambda path: system.get(path, ""))
    assert memory_limit() == MemoryLimit(550, 900, "control group")
    assert share() == 275
    system["/sys/fs/cgroup/c/memory.max"] = "600\n"
    assert memory_limit() == MemoryLimit(480, 600, "control group")
    system["/proc/self/cgroup"] = ""
    assert memory_limit() == MemoryLimit(5 * 1024, 8 * 1024, "this machine")
    assert share() == 2 * 1024  # without swap


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "memory_limit", lambda: MemoryLimit(MIB, 1024 * MIB, "this machine"))
    need(MIB, "the votes")
    with expect_error("out-of-memory"):
        need(2 * MIB, "the votes")
    assert dhkappa.dh_kappa([["a", "a"], ["a", "b"]], ["a", "b"]).n_items == 2


def test_too_little_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_address_space", lambda: iter([MemoryLimit(MIB, 2 * MIB, "ulimit -v")]))
    need_address_space(MIB, "The report")
    with expect_error("out-of-memory"):
        need_address_space(2 * MIB, "The report")


@pytest.mark.parametrize(
    ("limited", "before", "after"),
    [(True, None, "1"), (True, "", "1"), (True, "4", "4"), (False, None, None), (False, "", "")],
)
def test_one_thread_of_openblas_if_the_address_space_is_limited(
    limited: bool, before: str | None, after: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = [MemoryLimit(MIB, 2 * MIB, "ulimit -v")] if limited else []
    monkeypatch.setattr(resources, "_address_space", lambda: iter(limits))
    monkeypatch.setattr(os, "environ", {} if before is None else {"OPENBLAS_NUM_THREADS": before})
    limit_blas_threads()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == after


def test_temporary_files_go_to_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    monkeypatch.setattr(os.path, "ismount", lambda path: path in ("/tmp", "/"))
    mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n"
    monkeypatch.setattr(resources, "_text", lambda path: mounts)
    assert folder_on_disk() == "/var/tmp"
    monkeypatch.setattr(resources, "_text", lambda path: "/dev/vda / ext4 rw 0 0\n")
    assert folder_on_disk() is None
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert folder_on_disk() is None


# Errors


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


def _ignored() -> None:
    """Python raises this if a method written in C returns a result after a MemoryError."""
    raise SystemError("a method returned a result with an exception set") from MemoryError()


@pytest.mark.parametrize("call", [_numpy, _python, _duckdb, _arrow, _system, _ignored])
def test_errors_of_libraries(call: Any) -> None:
    with expect_error("out-of-memory") as caught, memory_errors("the votes"):
        call()
    assert isinstance(caught.value, DataError)
    assert isinstance(caught.value, MemoryError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [OSError(2, "No such file"), ValueError("bad alloc"), RuntimeError("no"), KeyError(1), SystemError("no")]
)
def test_other_errors_are_unchanged(error: Exception) -> None:
    assert not is_out_of_memory(error)
    with pytest.raises(type(error)), memory_errors("the votes"):
        raise error


# Progress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal, and show progress after a tenth of a second.

    Not a fixture, because pytest sets standard error again after the setup of a test.
    """
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(Progress, "delay", 0.1)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def wait_for(text: str, stream: io.StringIO) -> None:
    end = time.monotonic() + 30
    while text not in stream.getvalue():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_progress_appears_and_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    with Progress(None, "counting votes") as progress:
        wait_for("counting votes", terminal)
        progress.describe("writing")
        wait_for("writing", terminal)
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")  # the line is erased
    written = terminal.getvalue()
    time.sleep(0.2)
    assert terminal.getvalue() == written


def test_progress_counts_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    with Progress(4, "counting") as progress:
        progress.advance(3)
        wait_for("3/4", terminal)
        progress.advance()
        wait_for("4/4", terminal)


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    with Progress(None, "counting votes"):
        pass
    time.sleep(0.2)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("shown", [True, False])
def test_no_progress_without_a_terminal(shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    stream = io.StringIO() if shown else terminal
    for error in (stream, None) if shown else (stream,):
        monkeypatch.setattr(sys, "stderr", error)
        before = threading.active_count()
        with Progress(None, "counting votes", shown):
            assert threading.active_count() == before
            time.sleep(0.2)
    assert stream.getvalue() == ""


def test_an_error_ends_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)

    def work() -> None:
        with Progress(None, "counting votes"):
            wait_for("counting votes", terminal)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")


def test_a_closed_terminal_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)

    def gone(text: str) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(terminal, "write", gone)
    with Progress(None, "counting votes") as progress:
        time.sleep(0.3)
        progress.advance()


_SLOW = """
import sys, time
from dhkappa import planning
from dhkappa.cli.commands import main
from dhkappa.resources import Progress
Progress.delay, call = float(sys.argv[1]), planning.plan
planning.plan = lambda *args, **options: (time.sleep(1), call(*args, **options))[1]
main("plan 0.05 --n-categories 3 --annotator-accuracy 0.9 --labeler-accuracy 0.9".split())
"""


@pytest.mark.parametrize(("delay", "shown"), [(600, False), (0.05, True)])
def test_progress_of_a_command(delay: float, shown: bool) -> None:
    """Standard error is a terminal, standard output is not."""
    reader, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", _SLOW, str(delay)],
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        env=environment(TERM="xterm"),
    )
    out, _ = child.communicate(timeout=60)
    os.set_blocking(reader, False)
    try:
        seen = os.read(reader, 10_000).decode()
    except BlockingIOError:
        seen = ""
    os.close(terminal)
    os.close(reader)
    assert child.returncode == 0
    assert out.startswith("525 items with 2 votes each")
    assert (re.search(r"planning .*0:00:0\d", seen) is not None) == shown
    assert shown or seen == ""
