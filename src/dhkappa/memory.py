"""Memory: how much of it this process may still take, and one sentence where data do not fit.

A control group or a full machine does not refuse memory, it kills; so what we take is held below what there is. Where
the system does not tell, nothing is held.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dhkappa.errors import OutOfMemoryError

try:
    import resource
except ImportError:  # where there are no such limits
    resource = None  # type: ignore[assignment]

MIB = 1 << 20
_ADDRESSES = "ulimit -v"
_MUCH = 4096 * MIB
_AFTER = 96 * MIB  # for libraries that are loaded after a count: scipy would hang for want of memory
_SPARE = 64 * MIB  # for the code of libraries and for files as they are read: without it, all would be slow
_HELD: list[tuple[int, int]] = []  # the limit before ours
_GROUPS = (  # of version 2 and 1: where they are, what names them, the limit, and what cannot be given back
    ("/sys/fs/cgroup", "", "memory.max", ("anon", "shmem")),
    ("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", ("total_rss", "total_shmem")),
)
_SIGNS = re.compile(
    "annot allocate memory|bad alloc|bad_alloc|can't start new thread|failed to map segment|Out of Memory"
)


@dataclass(frozen=True, slots=True)
class Room:
    """Memory that is left: bytes, the bytes of the limit that leaves the least, and what sets it."""

    left: int
    limit: int
    by: str

    def __str__(self) -> str:
        return f"{self.limit // MIB:,} MiB by {self.by}"


def room() -> Room | None:
    """Return what this process may still take; None where the system does not tell."""
    return min(_rooms(swap=True), key=lambda one: one.left, default=None)


def share() -> int | None:
    """Return how many bytes an engine may count as its own, which it takes more than; None where none can tell.

    Half of what is left, as what comes back needs some too. A quarter of addresses, of which it reserves more. Swap is
    none of it: the engine's own way to put data on a disk is faster.
    """
    return min((max(one.left, 0) // (4 if one.by == _ADDRESSES else 2) for one in _rooms(swap=False)), default=None)


def _rooms(swap: bool) -> list[Room]:
    return [*_machine(swap), *_groups(), *_ulimit()]


def _machine(swap: bool) -> Iterator[Room]:
    numbers = _numbers("/proc/meminfo", 1024)
    if "MemAvailable" in numbers:
        free, total = (numbers.get(name, 0) if swap else 0 for name in ("SwapFree", "SwapTotal"))
        yield Room(numbers["MemAvailable"] + free, numbers["MemTotal"] + total, "the machine")


def _groups() -> Iterator[Room]:
    """Look at every control group that this process is in, up to the outermost that can be seen."""
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for root, controller, limit, used in _GROUPS:
            if controller not in controllers.split(","):
                continue
            steps = path.strip("/").split("/")
            for depth in range(len(steps) + 1):
                folder = os.path.join(root, *steps[:depth])
                most = _text(os.path.join(folder, limit)).strip()
                if most.isdecimal() and int(most) < 1 << 60:  # version 1 writes a huge number for none
                    stat = _numbers(os.path.join(folder, "memory.stat"), 1)
                    yield Room(int(most) - sum(stat.get(name, 0) for name in used), int(most), "a control group")


def _ulimit() -> Iterator[Room]:
    pages = _text("/proc/self/statm").split()
    if resource is None or not pages:
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        yield Room(most - int(pages[0]) * resource.getpagesize(), most, _ADDRESSES)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _numbers(path: str, unit: int) -> dict[str, int]:
    return {name: int(number) * unit for name, number in re.findall(r"^(\w+):? +(\d+)", _text(path), re.MULTILINE)}


def hold() -> None:
    """Have the system refuse this process memory that is not there, before somebody kills it: for commands only.

    Libraries that are loaded later are asked to reserve little.
    """
    found = room()
    pages = _text("/proc/self/statm").split()
    if found is None or resource is None or not pages:
        return
    os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", "retain:false")  # or what it gives back would stay reserved
    if found.left < _MUCH:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _HELD.append(resource.getrlimit(resource.RLIMIT_DATA))
    _hold_again()


def _hold_again() -> None:
    """Hold what is taken from now on: what a library has reserved and does not use should not count."""
    found = room() if _HELD else None
    if found is None:
        return
    data = int(_text("/proc/self/statm").split()[5]) * resource.getpagesize()
    _hold_at(data + max(found.left - max(_SPARE, found.left // 16), 0))


def _hold_at(most: int) -> None:
    soft, hard = _HELD[0]
    resource.setrlimit(resource.RLIMIT_DATA, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))


def release() -> None:
    """Take back what ``hold`` did, for a library that reserves much more than it uses."""
    if _HELD:
        resource.setrlimit(resource.RLIMIT_DATA, _HELD.pop())


def need(least: int, what: str) -> None:
    """Refuse to begin where less is left, as some libraries crash then."""
    found = room()
    if found is not None and found.left < least:
        raise OutOfMemoryError(
            f"{least // MIB:,} MiB of memory are needed for {what}, and {max(found.left, 0) // MIB:,} are left of "
            f"{found}: raise that limit, or end what else takes memory."
        )


def need_addresses(least: int, what: str) -> None:
    """Refuse to begin where fewer addresses may be reserved: what they are for matters little, and is never used."""
    for found in _ulimit():
        if found.left < least:
            raise OutOfMemoryError(
                f"{what} reserves {least >> 30} GiB of addresses, though it uses few, where there are {found}: raise "
                "that, or limit memory by a control group instead."
            )


def too_large(what: str) -> str:
    """Say what did not fit, into how much, and what to do."""
    found = room()
    limit, more = ("", "take more") if found is None else (f", which is limited to {found}", "raise that limit")
    return (
        f"{what} did not fit into memory{limit}: {more}, or cut the data by items, make a tally of each part, and add "
        "them up."
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error, of whatever library, means that there was no memory."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    if isinstance(error, SystemError) and error.__cause__ is not None:  # what a library of C left behind unseen
        return is_out_of_memory(error.__cause__)
    other = isinstance(error, (ImportError, RuntimeError)) or type(error).__module__.startswith(("_duckdb", "duckdb"))
    return isinstance(error, MemoryError) or (other and _SIGNS.search(own_words(error)) is not None)


def own_words(error: BaseException) -> str:
    """Return the first line of what a library says, without what it quotes: data and paths may hold any words."""
    first = next(iter(str(error).splitlines()), "")
    return re.sub(r"""(["']).*\1""", "", first)


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Turn what any library raises where there is no memory into one sentence."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OutOfMemoryError) or not is_out_of_memory(error):
            raise
        _let_speak()
        raise OutOfMemoryError(too_large(what)) from error


def _let_speak() -> None:
    """Let a process that is held take some of what is spared, for the words of an error."""
    if _HELD:
        _hold_at(resource.getrlimit(resource.RLIMIT_DATA)[0] + _SPARE // 4)


@contextmanager
def counting(what: str) -> Iterator[None]:
    """Do the same for what counts; in a command, there must be memory for what follows."""
    with fitting(what):
        yield
    if _HELD:
        _hold_again()
        need(_AFTER, f"what follows the count of {what}")


def folder_on_disk() -> str | None:
    """Return where to put what does not fit into memory; None for the usual folder, unless that is memory itself."""
    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        return None
    held = {line.split()[1] for line in _text("/proc/mounts").splitlines() if line.split()[2:3] == ["tmpfs"]}

    def in_memory(folder: str) -> bool:
        while not os.path.ismount(folder):
            folder = os.path.dirname(folder)
        return folder in held

    other = "/var/tmp"  # nosec B108 - our folder in it is made by mkdtemp
    usual = os.path.realpath(tempfile.gettempdir())
    fits = in_memory(usual) and os.access(other, os.W_OK) and not in_memory(os.path.realpath(other))
    return other if fits else None
