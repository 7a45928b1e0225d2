"""A progress line on standard error, for work that takes a while and only where a person is looking."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

_PATIENCE = 1.0  # seconds before the first line
_PAUSE = 0.1  # seconds between lines


class _Line:
    """A line on a terminal that the next one replaces."""

    __slots__ = ("_stream", "_width")

    def __init__(self, stream: TextIO | None) -> None:
        self._stream, self._width = _terminal(stream), 0

    def __bool__(self) -> bool:
        return self._stream is not None

    def write(self, line: str) -> None:
        """Replace the line, without a control sequence that some terminals lack."""
        if self._stream is None:
            return
        try:
            line = line[: shutil.get_terminal_size().columns - 1]
            blank = " " * max(0, self._width - len(line))
            self._stream.write(f"\r{line}{blank}" if line else f"\r{blank}\r")
            self._stream.flush()
            self._width = len(line)
        except Exception:  # a terminal that has gone must not end the work
            self._stream = None

    def clear(self) -> None:
        """Leave no trace."""
        if self._width:
            self.write("")


class Progress:
    """Show how much of some work is done, and leave no trace at its end.

    Nothing is written unless ``stream`` is a terminal and the work has taken more than a second. A stream that
    fails is left alone: progress never raises.

    Parameters
    ----------
    total
        How many steps the work has.
    what
        A word or two for the work.
    shown
        False for silence.
    stream
        Where to write; standard error by default.
    clock
        Returns seconds.

    Examples
    --------
    >>> with Progress(3, "counting") as progress:
    ...     for _ in range(3):
    ...         progress.advance()
    """

    __slots__ = ("_clock", "_done", "_last", "_start", "_terminal", "_total", "_what")

    def __init__(
        self,
        total: int,
        what: str,
        shown: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._what, self._clock = total, what, clock
        self._terminal = _Line((sys.stderr if stream is None else stream) if shown else None)
        self._done = 0
        self._start = clock()
        self._last = self._start + _PATIENCE - _PAUSE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._terminal.clear()

    def advance(self, steps: int = 1) -> None:
        """Count steps as done, and show it where it is time to."""
        self._done += steps
        if not self._terminal:
            return
        now = self._clock()
        if now - self._last > _PAUSE:
            self._last = now
            self._terminal.write(self._line(now - self._start))

    def _line(self, elapsed: float) -> str:
        """Write the share done and the seconds left, if the rest goes as fast."""
        done = min(self._done, self._total)
        if done <= 0:
            return f"{self._what}: 0 of {self._total:,}"
        left = elapsed * (self._total - done) / done
        return f"{self._what}: {100 * done // self._total}% ({done:,} of {self._total:,}), {left:.0f} s left"


class Waiting:
    """Show how long some work has taken that cannot tell how far it is, and leave no trace at its end.

    Nothing is written unless ``stream`` is a terminal and the work has taken more than a second.

    Parameters
    ----------
    what
        A word or two for the work.
    stream
        Where to write; standard error by default.

    Examples
    --------
    >>> with Waiting("counting votes") as waiting:
    ...     waiting.now("writing")
    """

    __slots__ = ("_ended", "_terminal", "_thread", "_what")

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._terminal = _Line(sys.stderr if stream is None else stream)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True) if self._terminal else None

    def now(self, what: str) -> None:
        """Say what the work is from here on."""
        self._what = what

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        started, pause = time.monotonic(), _PATIENCE
        while not self._ended.wait(pause):
            pause = 5 * _PAUSE
            self._terminal.write(f"{self._what}: {time.monotonic() - started:.0f} s")
        self._terminal.clear()


def _terminal(stream: TextIO | None) -> TextIO | None:
    """Return the stream if a person may be looking at it."""
    try:
        return stream if stream is not None and stream.isatty() else None
    except Exception:  # closed, or no real stream
        return None
