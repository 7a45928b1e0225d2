"""A trial of faults: what was done, how often, and what happened; and the commands that faults are done to."""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dhkappa.cli.demo import write_demo

COMMAND = str(Path(sys.executable).with_name("dhkappa"))
PATIENCE = 300  # seconds that a command may take on a busy machine
OLD = b"what was here before\n" * 500


@dataclass
class Trial:
    """One fault: what was done, how often each thing happened, and what should not have."""

    what: str
    happened: Counter[str] = field(default_factory=Counter)
    beside: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""

    def saw(self, outcome: str) -> None:
        """Count an outcome that is right."""
        self.happened[outcome] += 1

    def failed(self, how: str) -> None:
        """Keep an outcome that is wrong."""
        self.happened["WRONG"] += 1
        self.wrong.append(how)
        print(f"WRONG: {self.what}: {how}", file=sys.stderr, flush=True)

    @property
    def row(self) -> tuple[str, str, str]:
        """What the table shows."""
        if self.skipped:
            return self.what, "0", f"not done: {self.skipped}"
        happened = [f"{outcome} ({number:,})" for outcome, number in self.happened.most_common()]
        return self.what, f"{self.happened.total():,}", "; ".join([*happened, *self.beside])


@dataclass(frozen=True)
class Written:
    """A command that writes a file, and what it writes when nobody disturbs it."""

    name: str
    words: list[str]
    target: Path
    whole: bytes = b""
    usual: float = 0  # seconds

    def state(self) -> str:
        """Say what the file is now; nothing good where it is neither the old one nor the new one whole."""
        if not self.target.exists():
            return "no file, as before"
        return {OLD: "the old file, whole", self.whole: "the new file, whole"}.get(_held(self.target), "")

    def drafts(self) -> list[Path]:
        """Return what was left beside the file."""
        return sorted(self.target.parent.glob(f".{self.target.name}.*"))

    def before(self, old: bool) -> None:
        """Put an older file there, or none."""
        if old:
            self.target.write_bytes(OLD)
        else:
            self.target.unlink(missing_ok=True)

    def moved(self, target: Path) -> "Written":
        """Return the same command with another place to write to."""
        return replace(self, words=[*self.words[:-1], str(target)], target=target)

    def learned(self) -> "Written":
        """Return it with what it writes and how long that takes, when nobody disturbs it."""
        contents, seconds = set(), []
        for _ in range(3):
            begun = time.monotonic()
            code, _, err = finish(self.words)
            seconds.append(time.monotonic() - begun)
            assert code == 0, err
            contents.add(_held(self.target))
        assert len(contents) == 1, f"{self.name} writes another file each time"
        return replace(self, whole=contents.pop(), usual=statistics.median(seconds))


def _held(path: Path) -> bytes:
    """Return what a file holds, but for the minute that a report names."""
    return re.sub(rb"(?<=Made )[-0-9]+ [0-9:]+(?= )", b"now", path.read_bytes())


def environment(**more: str) -> dict[str, str]:
    """Return a plain environment: no colours, no width."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "TERM")}
    more = {"TMPDIR": tempfile.gettempdir()} | more
    return kept | {"PYTHONIOENCODING": "utf-8"} | more


def start(words: Sequence[str], **more: str) -> subprocess.Popen[bytes]:
    """Start a command whose output is kept."""
    return subprocess.Popen(
        [COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**more),
    )


def finish(words: Sequence[str], **more: str) -> tuple[int, str, str]:
    """Run a command undisturbed, and return its exit code and what it said."""
    child = start(words, **more)
    out, err = child.communicate(timeout=PATIENCE)
    return child.returncode, out.decode(), err.decode()


def sentence(code: int, err: str, *parts: str) -> bool:
    """Tell whether a command ended with one sentence that holds some parts."""
    lines = err.splitlines()
    whole = err.rstrip().endswith((".", "?")) or "; what it says is below. " in err  # words of an engine, as they are
    said = len(lines) == 1 and lines[0].startswith("dhkappa: ") and whole
    return code == 2 and said and "fault of dhkappa" not in err and all(part in err for part in parts)


def writing_commands(folder: Path) -> list[Written]:
    """Make small data, and the four commands that write a file; each is run some times to learn what and how long."""
    data, made = folder / "data", folder / "made"
    data.mkdir()
    made.mkdir()
    votes, items = write_demo(str(data), 60, 1)
    tallies = [str(data / "monday.json"), str(data / "tuesday.json")]
    for tally in tallies:
        assert finish(["tally", "make", votes, "--items", items, "-o", tally])[0] == 0
    beside = ["--items", items]
    known = {
        "report.html": ["audit", votes, *beside, "-s", "llm"],
        "tally.json": ["tally", "make", votes, *beside],
        "sum.json": ["tally", "add", *tallies],
        "queue.csv": ["items", votes, *beside, "-s", "llm"],
    }
    return [
        Written(
            words[0] if words[1] == votes else " ".join(words[:2]), [*words, "-o", str(made / name)], made / name
        ).learned()
        for name, words in known.items()
    ]


def end(child: subprocess.Popen[bytes], sign: int = signal.SIGKILL) -> tuple[int, str]:
    """Send a signal, and return the exit code and what was said on standard error."""
    child.send_signal(sign)
    _, err = child.communicate(timeout=PATIENCE)
    return child.returncode, err.decode()
