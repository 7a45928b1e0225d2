"""Faults, done for real: processes killed, servers restarted, disks filled, files changed while they are read.

``python robustness/faults.py [--times 200] [--only NAME]``. Every outcome is checked. A wrong one ends the run
with exit 1, after the tables. With ``--only``, one part of the section is written anew.
"""

import argparse
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from dhkappa.inputs.backends.duckdb import _spill_folder
from faults_disk import disk
from faults_files import files
from faults_kill import kill, stop
from faults_servers import servers
from faults_trial import Trial
from page import PAGE, source, table, write

FAULTS: dict[str, tuple[str, Callable[[int, random.Random], Iterator[Trial]], str]] = {
    "kill": (
        "Killed",
        kill,
        "A draft is a hidden file beside the one that is written; the next run that writes the same file removes those "
        "that are older than an hour. A report is compared but for the minute it names.",
    ),
    "stop": (
        "Stopped",
        lambda times, rng: stop(times // 2, rng),
        "Ctrl-C in the very first moments meets Python itself, which starts, or loads the three small files of dhkappa "
        "that come before what answers it. `items` says on standard error what it has written: its last words.",
    ),
    "servers": ("Engines that die", lambda times, rng: servers(max(1, times // 66)), ""),
    "disk": ("Places that take no more", lambda times, rng: disk(), ""),
    "files": (
        "Files that change",
        lambda times, rng: files(max(1, times // 20), rng),
        "A file has changed where its size, a time of change (of what it holds, its rights or its links) or which "
        "file it is differs from what it was when it was opened; this is looked at before and after every question. "
        "That look is the guard. The number of no state is one that the file gives neither as it was nor as it became: "
        "some of it was read before the change, and some after it.",
    ),
}
_SHORT = (
    "Something of each part runs at every change, in `tests/test_faults.py` and `tests/test_clusters.py`: a few kills, "
    "stops and files that change, engines that die, and a limit to the size of files."
)


def main() -> int:
    """Run the trials, and write the section."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is ignored here would be ignored by the commands
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--times", type=int, default=200, help="how often each command is killed")
    said.add_argument("--seed", type=int, default=7)
    said.add_argument("--only", choices=FAULTS)
    asked = said.parse_args()
    parts, wrong = {}, 0
    for name in [asked.only] if asked.only else FAULTS:
        title, fault, remark = FAULTS[name]
        trials, left = _run(lambda fault=fault: fault(asked.times, random.Random(asked.seed)))  # type: ignore[misc]
        parts[title] = _told(trials, " ".join(filter(None, [remark, left])))
        wrong += sum(len(trial.wrong) for trial in trials)
    write("faults", _section(parts))
    return int(wrong > 0)


def _run(fault: Callable[[], Iterator[Trial]]) -> tuple[list[Trial], str]:
    """Run trials in a folder for temporary files of their own, and say what was left in it."""
    begun, trials = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
        Path(folder).chmod(0o755)  # a Postgres server may be of another user
        tempfile.tempdir = folder
        for trial in fault():
            print(f"{time.monotonic() - begun:.0f} s: {' | '.join(trial.row)}", file=sys.stderr, flush=True)
            trials.append(trial)
        own = _spill_folder() if _spill_folder.cache_info().currsize else ""  # of this process, which lives
        left = [path for path in Path(folder).glob("dhkappa-*") if str(path) != own]
        held = sum(path.stat().st_size for one in left for path in one.rglob("*") if path.is_file())
        tempfile.tempdir = None
    return trials, _left(len(left), held)


def _left(folders: int, held: int) -> str:
    """Say how many folders were left in that for temporary files."""
    if not folders:
        return ""
    were, them = ("was", "it") if folders == 1 else ("were", "them")
    return (
        "A process that is killed, or ended by SIGTERM, cannot remove its folder for what does not fit into memory: "
        f"{folders:,} {were} left in TMPDIR here, with {held:,} bytes in {them}."
    )


def _told(trials: list[Trial], remark: str) -> str:
    """Write what was done and what happened."""
    wrong = sum(len(trial.wrong) for trial in trials)
    done = sum(trial.happened.total() for trial in trials)
    held = "each ended as it should" if not wrong else f"{wrong:,} of them ended as they should not"
    rows = table(("what was done", "times", "what happened"), [trial.row for trial in trials])
    return f"{done:,} faults, done for real on {date.today()}{source()}; {held}.\n\n{rows}\n\n{remark}".strip()


def _section(parts: dict[str, str]) -> str:
    """Return the section with some parts new, and the others as they are."""
    held = re.search("<!-- faults: .*?-->(.*?)<!-- end of faults -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = re.findall(
        r"^### (.*?)\n\n(.*?)(?=\n+### |\n+Made on |\Z)", held[1] if held else "", re.DOTALL | re.MULTILINE
    )
    every = dict(found) | parts
    titles = [title for title, _, _ in FAULTS.values() if title in every]
    told = [f"### {title}\n\n{every[title]}" for title in titles]
    return "\n\n".join([_SHORT, *told])


if __name__ == "__main__":
    sys.exit(main())
