"""Kill and interrupt commands: SIGKILL at a random time and during a write, Ctrl-C, SIGTERM."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dhkappa
from faults_common import NEW_FILE, NO_FILE, OLD_FILE, Fault, Writer, finish, is_error, run, start, writers
from section import temporary_folder

FEW = 50  # kills, with fewer of which none may hit the end of a run
COVERED = (0.03, 0.6)  # allowed share of kills after the write; about a quarter is expected
STARTUP = "traceback of the Python startup, before dhkappa runs"
LOADED_FIRST = ("__init__.py", "__main__.py")  # before the signal handler is set


def kill(times: int, rng: random.Random) -> Iterator[Fault]:
    """Kill every command at random times, and a quarter as often during the write."""
    with temporary_folder() as folder:
        commands = writers(Path(folder))
        for command in commands:
            yield killed(command, times, False, rng)
            yield killed(command, times // 4, True, rng)
        yield _again(commands)
        yield _link(Path(folder))
        yield _concurrent(Path(folder))


def killed(command: Writer, times: int, writing: bool, rng: random.Random) -> Fault:
    """Kill a command so often, at a random time or during the write."""
    moment = "during the write" if writing else "at a random time"
    fault = Fault(f"kill -9 of `{command.name}` {moment}, half of them with an existing output file")
    for turn in range(times):
        if not writing and turn % 20 == 0:
            command = command.measured()  # the load of the machine varies
        old = turn % 2 == 0
        command.prepare(old)
        known = set(command.temporary_files())
        child = start(command.words)
        if writing:
            while child.poll() is None and set(command.temporary_files()) <= known:
                time.sleep(0.0003)
            time.sleep(rng.uniform(0, 0.001))
        else:
            time.sleep(rng.uniform(0, 1.2 * command.seconds))
        child.kill()
        finish(child)
        state = command.state()
        fault.add(state in (OLD_FILE if old else NO_FILE, NEW_FILE), state or "partial file")
    fault.remarks.append(f"temporary files left: {len(command.temporary_files())}")
    if not writing:
        check_times(fault)
    return fault


def check_times(fault: Fault) -> None:
    """Require that the times of the kills cover the run."""
    kills, late = fault.outcomes.total(), fault.outcomes[NEW_FILE]
    if kills >= FEW and not COVERED[0] <= late / kills <= COVERED[1]:
        fault.add(False, "the times do not cover the run", f"{late} of {kills} kills after the write")


def _again(commands: list[Writer]) -> Fault:
    """Run the commands with temporary files of killed runs present, first new, then old."""
    fault = Fault(
        "each command again with the temporary files of the killed runs present; and once more when these are two "
        "hours old"
    )
    for command in commands:
        left = command.temporary_files()
        for old in (False, True):
            for path in left:
                os.utime(path, (time.time() - (7200 if old else 0),) * 2)
            code, _, err = run(command.words)
            right = code == 0 and command.state() == NEW_FILE and command.temporary_files() == ([] if old else left)
            removed = "all temporary files removed" if old else "no temporary file removed"
            fault.add(right, f"complete new file, {removed}", (code, command.temporary_files(), err))
    return fault


def _link(folder: Path) -> Fault:
    """Put a symbolic link at the name of the temporary file, which is made predictable here."""
    fault = Fault("a symbolic link at the name of the temporary file, to another user's file")
    other, target, token = folder / "other.txt", folder / "made" / "tally.json", "ab" * 8
    other.write_text("precious")
    (target.parent / f".{target.name}.{token}.draft").symlink_to(other)
    code = f"import secrets; secrets.token_hex = lambda n=None: {token!r}\nfrom dhkappa.__main__ import main; main()"
    words = ["tally", "add", str(folder / "data" / "monday.json"), "-o", str(target)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    right = other.read_text() == "precious" and is_error(done.returncode, done.stderr, str(target))
    fault.add(right, "error, and the other file unchanged", (other.read_text(), done.returncode, done.stderr))
    return fault


def _concurrent(folder: Path) -> Fault:
    """Write one file from several processes."""
    fault = Fault(
        "four processes write different tallies to one file at the same time, while the file is read repeatedly"
    )
    target, inputs, contents = folder / "made" / "shared.json", [], set()
    for place in range(4):
        votes, alone = folder / "data" / f"votes_{place}.csv", folder / "made" / f"alone_{place}.json"
        votes.write_text("item,suggested,ann_1,ann_2\n" + "".join(f"{n},x,x,y\n" for n in range(place + 1)))
        assert run(["tally", "make", str(votes), "-o", str(alone)])[0] == 0
        contents.add(alone.read_bytes())
        inputs.append(str(votes))
    for _ in range(5):
        target.unlink(missing_ok=True)
        children = [start(["tally", "make", votes, "-o", str(target)]) for votes in inputs]
        complete: Counter[bool] = Counter()
        while any(child.poll() is None for child in children):
            if target.exists():
                complete[target.read_bytes() in contents] += 1
            time.sleep(0.001)
        codes = [finish(child)[0] for child in children]
        right = codes == [0] * 4 and not complete[False] and target.read_bytes() in contents
        fault.add(right, "one complete version at every read", (codes, complete))
    return fault


def interrupt(times: int, rng: random.Random) -> Iterator[Fault]:
    """Send SIGINT and SIGTERM to commands, at random times and during the start."""
    with temporary_folder() as folder:
        commands = writers(Path(folder))
        for sign, name in ((signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")):
            for early in (False, True):
                yield interrupted([command.measured() for command in commands], times, sign, name, early, rng)


def interrupted(commands: list[Writer], times: int, sign: int, name: str, early: bool, rng: random.Random) -> Fault:
    """Send a signal to commands so often, at a random time or during the start."""
    moment = "during startup and imports" if early else "at a random time"
    fault = Fault(f"{name} to one of the commands above, {moment}")
    first = 0.5 * min(command.seconds for command in commands)  # half of the shortest run is startup and imports
    left = 0
    for turn in range(times):
        command = commands[turn % len(commands)]
        command.prepare(bool(turn // len(commands) % 2))
        known = set(command.temporary_files())
        child = start(command.words)
        time.sleep(rng.uniform(0, first if early else 1.2 * command.seconds))
        child.send_signal(sign)
        code, _, err = finish(child)
        left += len(set(command.temporary_files()) - known)
        outcome, state = ending(code, err, sign), command.state()
        right = bool(outcome and state) and (code != 0 or state == NEW_FILE)
        fault.add(right, outcome or "unexpected end", (command.name, code, state, err[-2000:]))
    fault.remarks.append(f"no partial files; temporary files left: {left}")
    return fault


def ending(code: int, err: str, sign: int) -> str:
    """Describe how a command ended; an empty string if it must not end so."""
    if "Traceback" in err:
        early = sign == signal.SIGINT and code in (1, 130, -sign) and _before_dhkappa(err)
        return STARTUP if early else ""
    lines = err.strip().splitlines()  # at most the final message and that of the interrupt
    if code == 0:
        return "already finished, exit code 0"
    if code == -sign and len(lines) <= 1:
        return f"ended by the signal, {'after the final message' if lines else 'no output'}"
    if code == 130 and sign == signal.SIGINT and len(lines) <= 2:
        return f"exit code 130 {'with a message' if lines else 'during imports'}"
    return ""


def _before_dhkappa(err: str) -> bool:
    """Return whether a traceback is that of Ctrl-C before the signal handler of dhkappa is set."""
    package = re.escape(str(Path(dhkappa.__file__).parent))
    frames = re.findall(rf'File "{package}/(.*)", line \d+, in (.*)\n *(def )?', err)
    before = all(
        (file in LOADED_FIRST and where == "<module>") or (file, where, at) == ("__main__.py", "main", "def ")
        for file, where, at in frames
    )
    return before and re.search("^KeyboardInterrupt$", err, re.MULTILINE) is not None
