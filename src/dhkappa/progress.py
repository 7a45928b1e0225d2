"""A progress line on standard error, for work that takes a while and only where a person is looking."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

_PATIENCE = 1.0  # seconds before the first line
_PAUSE = 0.1  # seconds between lines


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

    __slots__ = ("_clock", "_done", "_last", "_start", "_stream", "_total", "_what", "_width")

    def __init__(
        self,
        total: int,
        what: str,
        shown: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._what, self._clock = total, what, clock
        self._stream = _terminal(sys.stderr if stream is None else stream) if shown else None
        self._done = self._width = 0
        self._start = clock()
        self._last = self._start + _PATIENCE - _PAUSE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._write("")

    def advance(self, steps: int = 1) -> None:
        """Count steps as done, and show it where it is time to."""
        self._done += steps
        if self._stream is None:
            return
        now = self._clock()
        if now - self._last > _PAUSE:
            self._last = now
            self._write(self._line(now - self._start))

    def _line(self, elapsed: float) -> str:
        """Write the share done and the seconds left, if the rest goes as fast."""
        done = min(self._done, self._total)
        if done <= 0:
            return f"{self._what}: 0 of {self._total:,}"
        left = elapsed * (self._total - done) / done
        return f"{self._what}: {100 * done // self._total}% ({done:,} of {self._total:,}), {left:.0f} s left"

    def _write(self, line: str) -> None:
        """Replace the line on the terminal, without a control sequence that some terminals lack."""
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


def _terminal(stream: TextIO | None) -> TextIO | None:
    """Return the stream if a person may be looking at it."""
    try:
        return stream if stream is not None and stream.isatty() else None
    except Exception:  # closed, or no real stream
        return None
