"""Storage failures: a full disk, a file size limit, a read-only or removed folder, a closed pipe."""

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faults_common import (
    NO_FILE,
    OLD,
    OLD_FILE,
    TIMEOUT,
    Fault,
    Writer,
    environment,
    finish,
    is_error,
    run,
    start,
    writers,
)
from section import COMMAND, temporary_folder

SPILL_LIMIT = 1400 << 20


def storage() -> Iterator[Fault]:
    """Run each command with a target that cannot be written."""
    with temporary_folder() as name:
        folder = Path(name)
        commands = writers(folder)
        can_mount = os.geteuid() == 0 and shutil.which("mount")
        faults: dict[str, Callable[[Fault], None]] = {
            "full disk, with an existing output file": lambda fault: _full(fault, folder, commands, True),
            "full disk, without an output file": lambda fault: _full(fault, folder, commands, False),
            f"8 MiB of disk for spilling (TMPDIR): 9 million votes, memory limit {SPILL_LIMIT >> 20:,} MiB": (
                lambda fault: _spill(fault, folder)
            ),
            "read-only folder": lambda fault: _read_only(fault, folder, commands),
        }
        for title, inject in faults.items():
            fault = Fault(title, skipped="" if can_mount else "only root can mount a disk")
            if can_mount:
                inject(fault)
            yield fault
        yield _full_device(commands)
        yield _size_limit(commands)
        yield _removed(folder, commands)
        yield _closed_pipe(commands)


@contextmanager
def _mounted(folder: Path, size: int) -> Iterator[Path]:
    """Mount a small disk in memory."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "dhkappa-faults", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _failed(fault: Fault, command: Writer, old: bool, done: tuple[int, str, str], *parts: str) -> None:
    """Require an error with the path, and the file as before."""
    code, out, err = done
    state = command.state()
    right = state == (OLD_FILE if old else NO_FILE) and not command.temporary_files() and not out
    right &= is_error(code, err, str(command.target), *parts)
    fault.add(right, f"error with the path, exit code 2, {state}", (command.name, code, err, out))


def _full(fault: Fault, folder: Path, commands: list[Writer], old: bool) -> None:
    for command in commands:
        pages = len(OLD) // 4096 + 1 + len(command.content) // 8192  # too few for both files
        with _mounted(folder / "disk", 4096 * pages) as disk:
            moved = command.moved(disk / command.target.name)
            moved.prepare(old)
            if not old:
                (disk / "other").write_bytes(OLD)
            _failed(fault, moved, old, run(moved.words), "No space left on device")


def _spill(fault: Fault, folder: Path) -> None:
    import duckdb

    votes, target = folder / "many.parquet", folder / "made" / "many.json"
    duckdb.sql(
        "COPY (SELECT 'item-' || (range // 3) AS item, 'x' AS suggested, range % 3 AS annotator, "
        f"chr(97 + (hash(range) % 3)::INT) AS label FROM range(9000000)) TO '{votes}'"
    )
    words = ["prlimit", f"--as={SPILL_LIMIT}", COMMAND, "tally", "make", str(votes), "-o", str(target)]
    with _mounted(folder / "spill", 8 << 20) as spill:
        settings = environment(TMPDIR=str(spill))
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=settings, timeout=TIMEOUT)
        if done.returncode == 0:
            fault.add(True, "result")
            return
        right = is_error(done.returncode, done.stderr) and not target.exists() and not list(spill.iterdir())
        fault.add(right, "error, exit code 2, no file, nothing left", (done.returncode, done.stderr))


def _read_only(fault: Fault, folder: Path, commands: list[Writer]) -> None:
    with _mounted(folder / "disk", 1 << 20) as disk:
        moved = [command.moved(disk / command.target.name) for command in commands]
        for command in moved:
            command.prepare(True)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in moved:
            _failed(fault, command, True, run(command.words))


def _full_device(commands: list[Writer]) -> Fault:
    fault = Fault("`/dev/full` as output file and as standard output")
    for command in commands:
        code, _, err = run([*command.words[:-1], "/dev/full"])
        fault.add(is_error(code, err, "/dev/full", "No space left"), "error, exit code 2", (code, err))
    review = commands[3].words[:-2]
    for words in (review, ["score", *review[1:]], ["score", *review[1:], "--format", "json"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [COMMAND, *words], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
            )
        err = done.stderr.decode()
        fault.add(is_error(done.returncode, err, "No space left"), "error, exit code 2", (done.returncode, err))
    return fault


def _size_limit(commands: list[Writer]) -> Fault:
    fault = Fault("file size limit of 500 bytes (RLIMIT_FSIZE)")
    for command in commands:
        command.prepare(True)
        child = subprocess.Popen(
            [COMMAND, *command.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
        )
        _failed(fault, command, True, finish(child), "File too large")
    return fault


def _removed(folder: Path, commands: list[Writer]) -> Fault:
    fault = Fault("output folder removed during the run")
    for command in commands:
        place = folder / "removed"
        place.mkdir(exist_ok=True)
        moved = command.moved(place / command.target.name)
        child = start(moved.words)
        time.sleep(command.seconds / 2)
        shutil.rmtree(place)
        done = finish(child)
        if done[0] == 0:
            fault.add(True, "already finished, exit code 0")
        else:
            _failed(fault, moved, False, done)
    return fault


def _closed_pipe(commands: list[Writer]) -> Fault:
    fault = Fault("closed pipe: `| head -1`")
    review = commands[3].words[:-2]
    for words in (review, ["audit", *review[1:]], ["score", *review[1:]]):
        with start(words) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            first = child.stdout.readline()
            child.stdout.close()
            err = child.stderr.read().decode()
            code = child.wait(TIMEOUT)
        fault.add(code == 0 and bool(first) and not err, "one line, exit code 0, no error", (code, err))
    return fault
