"""The line that says that work goes on: only for a person, only after a while, and no trace of it at the end.

``Progress``, which knows how far it is, is tested with the bootstrap that it was made for.
"""

import io
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from dhkappa.progress import Waiting
from test_cli import environment

from dhkappa import progress


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True

    def seen(self) -> str:
        """What stays on the line: a carriage return goes back to its start, and what follows is written over it."""
        line = ""
        for part in self.getvalue().split("\r"):
            line = part + line[len(part) :]
        return line


def until(held: Callable[[], bool]) -> None:
    """Wait for what another thread does, however busy the machine is."""
    end = time.monotonic() + 30
    while not held():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second is a while."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.1)
    monkeypatch.setattr(progress, "_PAUSE", 0.01)


@pytest.mark.usefixtures("quick")
def test_shows_after_a_while_and_leaves_nothing() -> None:
    terminal = Terminal()
    with Waiting("counting votes", terminal) as waiting:
        until(lambda: re.fullmatch(r"counting votes: \d+ s", terminal.seen()) is not None)
        waiting.now("writing")
        until(
            lambda: re.fullmatch(r"writing: \d+ s *", terminal.seen()) is not None
        )  # nothing of the longer line is left
    assert terminal.seen().strip() == ""
    assert terminal.getvalue().endswith("\r")
    written = terminal.getvalue()
    time.sleep(0.1)
    assert terminal.getvalue() == written


@pytest.mark.usefixtures("quick")
def test_quick_work_shows_nothing() -> None:
    terminal = Terminal()
    with Waiting("counting votes", terminal):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("quick")
def test_nobody_looks() -> None:
    for stream in (io.StringIO(), None):
        before = threading.active_count()
        with Waiting("counting votes", stream):
            assert threading.active_count() == before
            time.sleep(0.2)
        assert stream is None or stream.getvalue() == ""


@pytest.mark.usefixtures("quick")
def test_an_error_clears_the_line_and_comes_through() -> None:
    terminal = Terminal()
    before = threading.active_count()

    def work() -> None:
        with Waiting("counting votes", terminal):
            until(lambda: terminal.seen() != "")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.seen().strip() == ""
    assert threading.active_count() == before


@pytest.mark.usefixtures("quick")
def test_a_terminal_that_has_gone_does_not_end_the_work() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    with Waiting("counting votes", Gone()):
        time.sleep(0.2)


_WAIT = """
import sys, time, dhkappa
from dhkappa import progress
from dhkappa.cli.commands import main
progress._PATIENCE, call = float(sys.argv[1]), dhkappa.plan
dhkappa.plan = lambda *args, **words: (time.sleep(0.5), call(*args, **words))[1]
main("plan 0.05 --categories 3 --annotator-accuracy 0.9 --labeler-accuracy 0.9".split())
"""


@pytest.mark.parametrize(("patience", "shown"), [(600, False), (0.05, True)])
def test_a_command_on_a_terminal(patience: float, shown: bool) -> None:
    """Standard error is a terminal, standard output is not: nothing but the answer goes there."""
    person, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", _WAIT, str(patience)],
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        env=environment(),
    )
    out, _ = child.communicate(timeout=60)
    os.set_blocking(person, False)
    try:
        told = os.read(person, 10_000).decode()
    except BlockingIOError:
        told = ""
    os.close(terminal)
    os.close(person)
    assert child.returncode == 0
    assert out.startswith("525 items with 2 votes each")
    assert (re.search(r"planning: \d+ s", told) is not None) == shown
    if shown:
        assert told.endswith("\r")
        assert told.split("\r")[-2].strip() == ""
        assert "\n" not in told
    else:
        assert told == ""
