"""Places that take no more: a full disk, a limit of file sizes, a closed pipe, a folder that is shut or gone."""

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults_trial import COMMAND, OLD, PATIENCE, Trial, Written, environment, finish, sentence, writing_commands


@contextmanager
def _mounted(folder: Path, size: int) -> Iterator[Path]:
    """Mount a small disk in memory."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "dhkappa-faults", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def disk() -> Iterator[Trial]:
    """Have each command write where it cannot."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as name:
        folder = Path(name)
        commands = writing_commands(folder)
        yield _full(folder / "disk", commands, True)
        yield _full(folder / "disk", commands, False)
        yield _spilling(folder)
        yield _devices(commands)
        yield _limited(commands)
        yield _shut(folder, commands)
        yield _gone(folder, commands)
        yield _piped(commands)


def _lacks_mount() -> str:
    return "" if os.geteuid() == 0 and shutil.which("mount") else "only root can mount a disk"


def _refused(trial: Trial, command: Written, old: bool, said: tuple[int, str, str], *parts: str) -> None:
    """Count a refusal: a sentence with the path, exit 2, and nothing there but what was there before."""
    code, out, err = said
    state = command.state()
    kept = state == ("the old file, whole" if old else "no file, as before") and not command.drafts()
    if sentence(code, err, str(command.target), *parts) and not out and kept:
        trial.saw(f"a sentence with the path, exit 2, {state}")
    else:
        trial.failed(f"{command.name}: exit {code}, {state or 'half a file'}, {command.drafts()}: {err}{out}")


def _full(place: Path, commands: list[Written], old: bool) -> Trial:
    trial = Trial(f"a full disk where the file goes, {'over an older file' if old else 'where there is no file'}")
    trial.skipped = _lacks_mount()
    for command in commands if not trial.skipped else ():
        # The old file fills some pages, and one more would be needed than there are.
        pages = len(OLD) // 4096 + 1 + len(command.whole) // 8192
        with _mounted(place, 4096 * pages) as folder:
            moved = command.moved(folder / command.target.name)
            moved.before(old)
            if not old:
                (folder / "other").write_bytes(OLD)
            _refused(trial, moved, old, finish(moved.words), "No space left on device")
    return trial


def _spilling(folder: Path) -> Trial:
    """Count more than fits into memory, with a small disk for the rest."""
    limit = 1400 << 20
    trial = Trial(f"a disk of 8 MiB for what does not fit into memory (TMPDIR): 9 million votes, {limit >> 20:,} MiB")
    trial.skipped = _lacks_mount()
    if trial.skipped:
        return trial
    import duckdb

    votes, target = folder / "many.parquet", folder / "made" / "many.json"
    duckdb.sql(
        "COPY (SELECT 'item-' || (range // 3) AS item, 'x' AS suggested, range % 3 AS annotator, "
        f"chr(97 + (hash(range) % 3)::INT) AS label FROM range(9000000)) TO '{votes}'"
    )
    words = ["tally", "make", str(votes), "-o", str(target)]
    with _mounted(folder / "spill", 8 << 20) as spill:
        limited = ["prlimit", f"--as={limit}", COMMAND, *words]
        done = subprocess.run(
            limited,
            capture_output=True,
            text=True,
            check=False,
            env=environment(TMPDIR=str(spill)),
            timeout=PATIENCE,
        )
        left = list(spill.iterdir())
        if done.returncode == 0:
            trial.saw("an answer all the same")
        elif sentence(done.returncode, done.stderr) and not target.exists() and not left:
            trial.saw("a sentence, exit 2, no file, nothing left behind")
            print(done.stderr)
        else:
            trial.failed(f"exit {done.returncode}, {left}: {done.stderr}")
    return trial


def _devices(commands: list[Written]) -> Trial:
    """Write to a device that is always full, as a file and as standard output."""
    trial = Trial("`/dev/full` as the file, and as standard output of what is shown")
    for command in commands:
        code, _, err = finish([*command.words[:-1], "/dev/full"])
        _check(trial, sentence(code, err, "/dev/full", "No space left"), "a sentence, exit 2", code, err)
    shown = [commands[3].words[:-2], ["score", *commands[3].words[1:-2]], ["score", *commands[3].words[1:-2], "--json"]]
    for words in shown:
        with open("/dev/full", "wb") as full:
            child = subprocess.run(
                [COMMAND, *words], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
            )
        err = child.stderr.decode()
        _check(trial, sentence(child.returncode, err, "No space left"), "a sentence, exit 2", child.returncode, err)
    return trial


def _check(trial: Trial, right: bool, outcome: str, code: int, err: str) -> None:
    if right:
        trial.saw(outcome)
    else:
        trial.failed(f"exit {code}: {err}")


def _limited(commands: list[Written]) -> Trial:
    """Allow no file of over 2,000 bytes: the system sends SIGXFSZ, which ends a process that is not prepared."""
    trial = Trial("a limit of 2,000 bytes to a file (RLIMIT_FSIZE)")
    for command in commands:
        command.before(True)
        child = subprocess.Popen(
            [COMMAND, *command.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
        )
        out, err = child.communicate(timeout=PATIENCE)
        _refused(trial, command, True, (child.returncode, out.decode(), err.decode()), "File too large")
    return trial


def _shut(folder: Path, commands: list[Written]) -> Trial:
    """Write to a folder that cannot be written to, as somebody who is not root, where we are."""
    trial = Trial("a folder that is read-only")
    if _lacks_mount():
        trial.skipped = "only root can mount a disk"
        return trial
    with _mounted(folder / "disk", 1 << 20) as place:
        for command in commands:
            moved = command.moved(place / command.target.name)
            moved.before(True)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        for command in commands:
            moved = command.moved(place / command.target.name)
            _refused(trial, moved, True, finish(moved.words))
    return trial


def _gone(folder: Path, commands: list[Written]) -> Trial:
    """Remove the folder while a command counts."""
    trial = Trial("the folder of the file removed meanwhile")
    for command in commands:
        place = folder / "gone"
        place.mkdir(exist_ok=True)
        moved = command.moved(place / command.target.name)
        child = subprocess.Popen(
            [COMMAND, *moved.words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        time.sleep(command.usual / 2)
        shutil.rmtree(place)
        out, err = child.communicate(timeout=PATIENCE)
        if child.returncode == 0:
            trial.saw("had ended before, exit 0")
        else:
            _refused(trial, moved, False, (child.returncode, out.decode(), err.decode()))
    return trial


def _piped(commands: list[Written]) -> Trial:
    """Show something to a reader who leaves after one line."""
    trial = Trial("a reader who has had enough: `| head -1`")
    for words in (commands[3].words[:-2], ["audit", *commands[3].words[1:-2]], ["score", *commands[3].words[1:-2]]):
        with subprocess.Popen([COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            first = child.stdout.readline()
            child.stdout.close()
            err = child.stderr.read().decode()
            code = child.wait(PATIENCE)
        _check(trial, code == 0 and bool(first) and not err, "one line, exit 0, not a word", code, err)
    return trial
