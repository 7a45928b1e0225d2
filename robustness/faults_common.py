"""Outcomes of injected faults, and the commands whose output files are checked."""

import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import dhkappa
from section import COMMAND

TIMEOUT = 300  # seconds per command, enough for a busy machine
OLD = b"existing content\n" * 600
NO_FILE, OLD_FILE, NEW_FILE = "no file, as before", "complete old file", "complete new file"


@dataclass
class Fault:
    """A kind of fault: how often each outcome occurred, and which outcomes were wrong."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""

    def add(self, right: bool, outcome: str, details: object = "") -> None:
        """Count an outcome."""
        self.outcomes[outcome if right else "WRONG"] += 1
        if not right:
            self.wrong.append(f"{outcome}: {details}")
            print(f"WRONG: {self.name}: {self.wrong[-1]}", file=sys.stderr, flush=True)

    @property
    def row(self) -> tuple[str, str, str]:
        """Row of the table."""
        if self.skipped:
            return self.name, "0", f"skipped: {self.skipped}"
        outcomes = [f"{outcome} ({number:,})" for outcome, number in self.outcomes.most_common()]
        return self.name, f"{self.outcomes.total():,}", "; ".join([*outcomes, *self.remarks])


@dataclass(frozen=True)
class Writer:
    """A command that writes a file, the content that it writes, and its duration in seconds."""

    name: str
    words: list[str]
    target: Path
    content: bytes = b""
    seconds: float = 0

    def state(self) -> str:
        """Return the state of the file; an empty string if it is neither the old nor the new one."""
        if not self.target.exists():
            return NO_FILE
        return {OLD: OLD_FILE, self.content: NEW_FILE}.get(_content(self.target), "")

    def temporary_files(self) -> list[Path]:
        """Return the temporary files next to the target."""
        return sorted(self.target.parent.glob(f".{self.target.name}.*"))

    def prepare(self, old: bool) -> None:
        """Create an old file, or remove the file."""
        if old:
            self.target.write_bytes(OLD)
        else:
            self.target.unlink(missing_ok=True)

    def moved(self, target: Path) -> "Writer":
        """Return the command with another target."""
        return replace(self, words=[*self.words[:-1], str(target)], target=target)

    def measured(self) -> "Writer":
        """Return the command with its content and duration."""
        contents, seconds = set(), []
        for _ in range(3):
            start_time = time.monotonic()
            code, _, err = run(self.words)
            seconds.append(time.monotonic() - start_time)
            assert code == 0, err
            contents.add(_content(self.target))
        assert len(contents) == 1, f"the output of {self.name} varies"
        return replace(self, content=contents.pop(), seconds=statistics.median(seconds))


def _content(path: Path) -> bytes:
    """Return the content of a file without times such as that of a report."""
    return re.sub(rb"20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?", b"now", path.read_bytes())


def environment(**more: str) -> dict[str, str]:
    """Return an environment without terminal settings."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "TERM")}
    return kept | {"PYTHONIOENCODING": "utf-8", "TMPDIR": tempfile.gettempdir()} | more


def start(words: Sequence[str], **more: str) -> subprocess.Popen[bytes]:
    """Start a command."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [COMMAND, *words], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment(**more)
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Wait for a command, and return its exit code, output and errors."""
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out.decode(), err.decode()


def run(words: Sequence[str], **more: str) -> tuple[int, str, str]:
    """Run a command, and return its exit code, output and errors."""
    return finish(start(words, **more))


def is_error(code: int, err: str, *parts: str) -> bool:
    """Return whether a command failed with a one-line error that contains some texts."""
    one_line = err.count("\n") == 1 and "Traceback" not in err and "internal error" not in err.lower()
    return code == 2 and one_line and all(part in err for part in parts)


def writers(folder: Path) -> list[Writer]:
    """Write small data, and return the four commands that write a file."""
    data, made = folder / "data", folder / "made"
    data.mkdir()
    made.mkdir()
    drawn = dhkappa.simulate(60, annotators=4, labelers={"llm": 0.85}, rng=1)
    with (data / "votes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "suggested_llm", *(f"ann_{place}" for place in range(4))])
        rows = zip(drawn.suggested["llm"], drawn.votes.tolist(), strict=True)
        writer.writerows([f"t{place}", label, *votes] for place, (label, votes) in enumerate(rows))
    votes, tallies = str(data / "votes.csv"), [str(data / "monday.json"), str(data / "tuesday.json")]
    for tally in tallies:
        assert run(["tally", "make", votes, "-o", tally])[0] == 0
    known = {
        "report.html": ["audit", votes],
        "tally.json": ["tally", "make", votes],
        "sum.json": ["tally", "add", *tallies],
        "queue.csv": ["review", votes],
    }
    return [
        Writer(
            " ".join(words[: 1 if words[1] == votes else 2]), [*words, "-o", str(made / name)], made / name
        ).measured()
        for name, words in known.items()
    ]
