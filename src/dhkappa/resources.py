"""Memory limits of the system, errors for data that does not fit, and the progress display."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from dhkappa.errors import OutOfMemoryError

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

MIB = 1 << 20
_ADDRESS_SPACE = "ulimit -v"
_CGROUPS = (  # versions 2 and 1: mount point, controller, file with the limit, memory that cannot be reclaimed
    ("/sys/fs/cgroup", "", "memory.max", ("anon", "shmem")),
    ("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", ("total_rss", "total_shmem")),
)
_NO_MEMORY = re.compile("annot allocate memory|bad[ _]alloc|can't start new thread|failed to map segment|Out of Memory")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A memory limit: bytes left, bytes in all, and what sets it."""

    left: int
    total: int
    by: str

    def __str__(self) -> str:
        return f"{self.total // MIB:,} MiB ({self.by})"


def memory_limit() -> MemoryLimit | None:
    """Return the limit that leaves the least memory; None if the system reports none."""
    return min(_limits(swap=True), key=lambda one: one.left, default=None)


def share() -> int | None:
    """Return how many bytes an embedded engine may use; None if the system reports no limit."""
    # Half of what is left, because results need memory too. A quarter of the address space, because engines reserve
    # more than they use. Swap does not count: an engine spills to disk faster.
    parts = (max(one.left, 0) // (4 if one.by == _ADDRESS_SPACE else 2) for one in _limits(swap=False))
    return min(parts, default=None)


def _limits(swap: bool) -> Iterator[MemoryLimit]:
    """Yield the limits of the machine, of every control group of this process, and of the address space."""
    numbers = _numbers("/proc/meminfo", 1024)
    if "MemAvailable" in numbers:
        free, total = (numbers.get(name, 0) if swap else 0 for name in ("SwapFree", "SwapTotal"))
        yield MemoryLimit(numbers["MemAvailable"] + free, numbers["MemTotal"] + total, "this machine")
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        steps = path.strip("/").split("/")
        for root, controller, limit, used in _CGROUPS:
            for depth in range(len(steps) + 1) if controller in controllers.split(",") else ():
                folder = os.path.join(root, *steps[:depth])
                size = _text(os.path.join(folder, limit)).strip()
                if size.isdecimal() and int(size) < 1 << 60:  # version 1 writes a huge number for no limit
                    stat = _numbers(os.path.join(folder, "memory.stat"), 1)
                    yield MemoryLimit(int(size) - sum(stat.get(name, 0) for name in used), int(size), "control group")
    yield from _address_space()


def _address_space() -> Iterator[MemoryLimit]:
    pages = _text("/proc/self/statm").split()
    if resource is None or not pages:
        return
    total = resource.getrlimit(resource.RLIMIT_AS)[0]
    if total != resource.RLIM_INFINITY:
        yield MemoryLimit(total - int(pages[0]) * resource.getpagesize(), total, _ADDRESS_SPACE)


def _text(path: str) -> str:
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def _numbers(path: str, unit: int) -> dict[str, int]:
    return {name: int(number) * unit for name, number in re.findall(r"^(\w+):? +(\d+)", _text(path), re.MULTILINE)}


def need(least: int, what: str) -> None:
    """Raise an error if less memory is left than ``what`` needs, because some libraries crash then."""
    found = memory_limit()
    if found is not None and found.left < least:
        left = f"{least // MIB:,} MiB needed, {max(found.left, 0) // MIB:,} MiB left of {found}"
        raise _error(f"Not enough memory for {what}: {left}.", "Raise the limit or stop other processes.")


def need_address_space(least: int, what: str) -> None:
    """Raise an error if less address space is left than ``what`` reserves."""
    for found in _address_space():
        if found.left < least:
            message = f"{what} reserves {least >> 30} GiB of address space, but the limit is {found}."
            raise _error(message, "Raise that limit, or limit memory with a control group instead.")


def limit_blas_threads() -> None:
    """Use one thread in OpenBLAS if the address space is limited; call this before NumPy or SciPy is imported."""
    # A further thread reserves 40 MiB or more, and OpenBLAS raises SIGINT, as Ctrl-C does, if it cannot start it.
    if any(_address_space()) and not os.environ.get("OPENBLAS_NUM_THREADS"):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


def out_of_memory(what: str) -> OutOfMemoryError:
    """Return the error for data that does not fit into memory."""
    found = memory_limit()
    limit = "" if found is None else f" Memory is limited to {found}."
    hint = "Provide more memory, or split the data by items, make a tally of each part and add the tallies."
    return _error(f"Not enough memory for {what}.{limit}", hint)


def _error(message: str, hint: str) -> OutOfMemoryError:
    return OutOfMemoryError(message, code="out-of-memory", hint=hint)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error of any library means that memory ran out."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    if isinstance(error, SystemError) and error.__cause__ is not None:  # raised if C code ignored a MemoryError
        return is_out_of_memory(error.__cause__)
    other = isinstance(error, (ImportError, RuntimeError)) or type(error).__module__.startswith(("_duckdb", "duckdb"))
    return isinstance(error, MemoryError) or (other and _NO_MEMORY.search(own_words(error)) is not None)


def own_words(error: BaseException) -> str:
    """Return the first line of a library's error without quoted parts, which may hold any text of the data."""
    return re.sub(r"""(["']).*\1""", "", next(iter(str(error).splitlines()), ""))


@contextmanager
def memory_errors(what: str) -> Iterator[None]:
    """Turn an error of any library that means that memory ran out into an ``OutOfMemoryError``."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OutOfMemoryError) or not is_out_of_memory(error):
            raise
        raise out_of_memory(what) from error


def folder_on_disk() -> str | None:
    """Return a folder on disk for temporary files if the default one is in memory, else None."""
    import tempfile

    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        return None
    held = {line.split()[1] for line in _text("/proc/mounts").splitlines() if line.split()[2:3] == ["tmpfs"]}

    def in_memory(folder: str) -> bool:
        folder = os.path.realpath(folder)
        while not os.path.ismount(folder):
            folder = os.path.dirname(folder)
        return folder in held

    usual, other = tempfile.gettempdir(), "/var/tmp"  # nosec B108 - our folder in it is made by mkdtemp
    fits = in_memory(usual) and os.access(other, os.W_OK) and not in_memory(other)
    return other if fits else None


class Progress:
    """Show progress on standard error if it is a terminal and the work takes over a second.

    ``total`` is the number of steps, None if unknown. The display disappears at the end. It never raises.
    """

    delay = 1.0  # seconds before the display appears

    def __init__(self, total: int | None, what: str, shown: bool = True) -> None:
        self._total, self._what, self._done = total, what, 0
        self._display: Any = None
        self._timer: threading.Timer | None = None
        with suppress(Exception):  # standard error may be closed, or not a real stream
            if shown and sys.stderr.isatty():
                self._timer = threading.Timer(self.delay, self._start)
                self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be about to start the display
        if self._display is not None:
            with suppress(Exception):
                self._display.stop()

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        self._done += steps
        self._update()

    def describe(self, what: str) -> None:
        """Change the description of the work."""
        self._what = what
        self._update()

    def _update(self) -> None:
        if self._display is not None:
            with suppress(Exception):
                self._display.update(self._display.task_ids[0], description=self._what, completed=self._done)

    def _start(self) -> None:
        with suppress(Exception):
            from rich import progress
            from rich.console import Console

            known = () if self._total is None else (progress.BarColumn(), progress.MofNCompleteColumn())
            time = progress.TimeElapsedColumn() if self._total is None else progress.TimeRemainingColumn()
            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            text = progress.TextColumn("{task.description}", markup=False)
            display = progress.Progress(text, *known, time, console=console, transient=True)
            display.add_task(self._what, total=self._total, completed=self._done)
            self._display = display
            display.start()
