"""Faults of the process: kill -9 at any moment and while a file is written, Ctrl-C, SIGTERM."""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dhkappa
from faults_trial import Trial, Written, end, finish, sentence, start, writing_commands

_LANES = 2  # commands at a time, one a core
_ENOUGH = threading.Event()
_PYTHON = "Python's own traceback, before dhkappa runs"
_LONG_AGO = 7200  # seconds, after which a draft is nobody's
_AGAIN = 20  # kills, after which it is learned anew how long a command takes beside the other lane
_FEW = 50  # kills, below which chance alone may miss the end of a run
_ENDED = (0.03, 0.6)  # the least and the largest share of kills that find a run at its end: a quarter is usual
_LOADED = ("__init__.py", "version.py", "__main__.py")  # of dhkappa, before a stop can be answered
_WORDS = re.compile(r"[0-9,]+ items written to .*\.\n")  # of `items`, when its file is whole


def kill(times: int, rng: random.Random) -> Iterator[Trial]:
    """Kill every command that writes: so often at any moment, and a quarter of that while it writes."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
        commands = writing_commands(Path(folder))
        with ThreadPoolExecutor(_LANES) as lanes:
            # Both moments are tried at once, so each has a file of its own.
            ways = [(_aside(command, aimed), aimed) for command in commands for aimed in (False, True)]
            try:
                yield from lanes.map(lambda way: _killed(way[0], times // 4 if way[1] else times, way[1], rng), ways)
            except BaseException:
                _ENOUGH.set()  # or Ctrl-C would wait for all of them
                raise
        yield _after([command for command, aimed in ways if aimed])
        yield _planted(Path(folder))
        yield _together(Path(folder))


def _aside(command: Written, aimed: bool) -> Written:
    """Return the same command with another file to write; a report holds its own name."""
    moved = command.moved(command.target.with_name(f"{'aimed' if aimed else 'any'}-{command.target.name}"))
    return moved.learned() if moved.target.suffix == ".html" else moved


def _killed(command: Written, times: int, aimed: bool, rng: random.Random) -> Trial:
    moment = "while it writes" if aimed else "at any moment"
    trial = Trial(f"kill -9 of `{command.name}` {moment}, half of them over an older file")
    for turn in range(times):
        if _ENOUGH.is_set():
            break
        if not aimed and turn % _AGAIN == 0:
            command = command.learned()
        old = turn % 2 == 0
        command.before(old)
        known = set(command.drafts())
        child = start(command.words)
        if aimed:
            while child.poll() is None and set(command.drafts()) <= known:
                time.sleep(0.0003)
            time.sleep(rng.uniform(0, 0.001))
        else:
            time.sleep(rng.uniform(0, 1.2 * command.usual))
        end(child)
        state = command.state()
        if state in ("the old file, whole" if old else "no file, as before", "the new file, whole"):
            trial.saw(state)
        else:
            trial.failed(f"{command.target.name} is {state or 'neither the old file nor the new one'}")
    trial.beside.append(f"drafts left behind: {len(command.drafts())}")
    if not aimed:
        _reach(trial)
    return trial


def _reach(trial: Trial) -> None:
    """Count it as wrong where kills came too early, or too late, to cover the run."""
    kills, ended = trial.happened.total(), trial.happened["the new file, whole"]
    if kills >= _FEW and not _ENDED[0] <= ended / kills <= _ENDED[1]:
        trial.failed(f"{ended} of {kills} kills found the new file: their moments did not cover the run")


def _after(commands: list[Written]) -> Trial:
    """See that drafts left by killed runs are in nobody's way, and that a run removes them when they are old."""
    trial = Trial("each of them again, beside the drafts of those killed; and once more when these are two hours old")
    for command in commands:
        fresh = command.drafts()
        for old in (False, True):
            for draft in fresh:
                os.utime(draft, (time.time() - (_LONG_AGO if old else 0),) * 2)
            code, _, err = finish(command.words)
            left = command.drafts()
            if code != 0 or command.state() != "the new file, whole" or left != ([] if old else fresh):
                trial.failed(f"exit {code}, {command.state() or 'half a file'}, {len(left)} drafts: {err}")
            else:
                trial.saw(f"the new file, whole, and {'every draft' if old else 'no draft'} removed")
    return trial


def _planted(folder: Path) -> Trial:
    """Plant a link where a draft will be; its name cannot be told beforehand, so here it is made known."""
    trial = Trial("a link planted at a draft's name, to a file of somebody else")
    prey, target = folder / "prey.txt", folder / "made" / "tally.json"
    prey.write_text("precious")
    words = ["tally", "add", str(folder / "data" / "monday.json"), "-o", str(target)]
    told = "ab" * 8
    (target.parent / f".{target.name}.{told}.draft").symlink_to(prey)
    known = (
        f"import secrets; secrets.token_hex = lambda n=None: {told!r}\nfrom dhkappa.cli.commands import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", known, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if prey.read_text() != "precious" or not sentence(done.returncode, done.stderr, str(target)):
        trial.failed(f"{prey.read_text()!r}, {done.returncode}: {done.stderr}")
    else:
        trial.saw("a sentence, and the other file untouched")
    return trial


def _together(folder: Path) -> Trial:
    """Have several processes write one file at once."""
    trial = Trial("four processes that write different tallies to one file at once, a look at it all the while")
    target = folder / "made" / "shared.json"
    inputs, wholes = [], set()
    for place in range(4):
        votes = folder / "data" / f"votes_{place}.csv"
        votes.write_text("item,suggested,ann_1,ann_2\n" + "".join(f"{n},x,x,y\n" for n in range(place + 1)))
        alone = folder / "made" / f"alone_{place}.json"
        assert finish(["tally", "make", str(votes), "-o", str(alone)])[0] == 0
        wholes.add(alone.read_bytes())
        inputs.append(str(votes))
    for _ in range(5):
        target.unlink(missing_ok=True)
        children = [start(["tally", "make", votes, "-o", str(target)]) for votes in inputs]
        seen: Counter[bool] = Counter()
        while any(child.poll() is None for child in children):
            if target.exists():
                seen[target.read_bytes() in wholes] += 1
            time.sleep(0.001)
        codes = [(child.communicate(), child.returncode)[1] for child in children]
        if codes != [0] * 4 or seen[False] or target.read_bytes() not in wholes:
            trial.failed(f"exits {codes}, {seen[False]} looks at half a file")
        else:
            trial.saw("one of the four, whole, at every look")
    return trial


def stop(times: int, rng: random.Random) -> Iterator[Trial]:
    """Stop commands by Ctrl-C and SIGTERM, at any moment and in the first moments."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
        commands = writing_commands(Path(folder))
        for sign, name in ((signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")):
            for early in (False, True):
                yield _stopped([command.learned() for command in commands], times, sign, name, early, rng)


def _stopped(commands: list[Written], times: int, sign: int, name: str, early: bool, rng: random.Random) -> Trial:
    moment = "in its first moments, as Python starts and imports" if early else "at any moment"
    trial = Trial(f"{name} to one of the commands above, {moment}")
    first = 0.5 * min(command.usual for command in commands)  # starting and importing are half of the shortest
    drafts = 0
    for turn in range(times):
        command = commands[turn % len(commands)]
        old = bool(turn // len(commands) % 2)
        command.before(old)
        known = set(command.drafts())
        child = start(command.words)
        time.sleep(rng.uniform(0, first if early else 1.2 * command.usual))
        code, err = end(child, sign)
        drafts += len(set(command.drafts()) - known)
        outcome = _ending(code, err, sign)
        state = command.state()
        if not outcome or not state or (code == 0 and state != "the new file, whole"):
            trial.failed(f"{command.name}: exit {code}, {state or 'half a file'}: {err[-2000:]}")
        else:
            trial.saw(outcome)
    trial.beside.append(f"never half a file; drafts left behind: {drafts}")
    if early and trial.happened[_PYTHON]:
        share = trial.happened[_PYTHON] / times
        trial.beside.append(f"so {1000 * share * first:.0f} ms of the first {1000 * first:.0f} ms are Python's own")
    return trial


def _ending(code: int, err: str, sign: int) -> str:
    """Say how a command ended; nothing where it should not have ended so."""
    if code == 0:
        return "had ended before, exit 0" if "Traceback" not in err else ""
    rest = _WORDS.sub("", err, count=1)
    if code == -sign and not rest:
        return f"ended by the signal, {'with its last words said' if err else 'without a word'}"
    if sign != signal.SIGINT:
        return ""
    if code == 130 and rest.lstrip() == "dhkappa: stopped.\n":  # after a line break by click
        return "exit 130, 'stopped.'"
    if code == 130 and not rest.strip():
        return f"exit 130, {'with its last words said' if err.strip() else 'while it loads'}"
    return _PYTHON if code in (1, 130, -sign) and _before_dhkappa(err) else ""


def _before_dhkappa(err: str) -> bool:
    """Tell whether a traceback is of Ctrl-C, and of no more of dhkappa than what is loaded before it can be answered.

    Where the function that answers it is called, Ctrl-C may still come first: that is at its ``def``.
    """
    package = re.escape(str(Path(dhkappa.__file__).parent))
    frames = re.findall(rf'File "{package}/(.*)", line \d+, in (.*)\n *(def )?', err)
    before = all(
        (file in _LOADED and where == "<module>") or (file, where, at) == ("__main__.py", "main", "def ")
        for file, where, at in frames
    )
    return before and re.search("^KeyboardInterrupt$", err, re.MULTILINE) is not None
