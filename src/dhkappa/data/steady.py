"""Steady: files as they were when they were opened; one that has changed since is refused, never counted.

A table is asked several questions, and each of them reads its files anew: where these change in between, or while they
are read, no number that comes out is that of any state they ever had.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dhkappa.errors import DataError

_Mark = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Steady:
    """What tells one state of some files from another, by their paths; None for what is no file with a state."""

    marks: Mapping[str, _Mark | None] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[str | os.PathLike[str]]) -> Steady:
        """Look at files, before anything is read of them."""
        paths = [os.path.abspath(path) for path in files]  # which stay, whatever becomes the working directory
        return cls({path: _mark(path) for path in paths})

    def __add__(self, other: Steady) -> Steady:
        return Steady({**self.marks, **other.marks})

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let files be read, and refuse what came of it if one has changed; also where that is what went wrong."""
        self._check(None)  # what took the place of a file may have no end
        try:
            yield
        except DataError as error:
            self._check(error)
            raise
        self._check(None)

    def _check(self, error: DataError | None) -> None:
        for path, mark in self.marks.items():
            if _mark(path) != mark:
                raise DataError(
                    f"{path!r} has changed since it was opened, in what it holds or in its rights or links, and a "
                    "number might be of neither state: open it again when nothing changes it any more."
                ) from error


def _mark(path: str) -> _Mark | None:
    """Return which file it is, its size and when it was last written to, also by the clock that nobody sets back."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    regular = stat.S_ISREG(found.st_mode)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if regular else None
