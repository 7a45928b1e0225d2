"""Inject faults: kill processes, restart servers, fill disks, change files while they are read.

``python robustness/faults.py [--times 200] [--only PART]``. Every outcome is checked; the exit code is 1 if one is
wrong. With ``--only``, the other parts of the section are kept.
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

from faults_common import Fault
from faults_files import files
from faults_kill import interrupt, kill
from faults_servers import servers
from faults_storage import storage
from section import read, source, table, temporary_folder, write

PARTS: dict[str, tuple[str, Callable[[int, random.Random], Iterator[Fault]], str]] = {
    "kill": (
        "Killed processes",
        kill,
        "Output is written to a hidden temporary file next to the target and then renamed. The next run that writes "
        "the same file removes temporary files older than an hour. Reports are compared except for the time of "
        "creation.",
    ),
    "interrupt": (
        "Interrupted processes",
        lambda times, rng: interrupt(times // 2, rng),
        "Ctrl-C immediately after the start interrupts Python itself, or the import of the small modules of dhkappa "
        "that are loaded before the signal handler. The final message is the line in which `review` reports the file "
        "that it has written.",
    ),
    "servers": ("Engine failures", lambda times, rng: servers(max(1, times // 66)), ""),
    "storage": ("Storage failures", lambda times, rng: storage(), ""),
    "files": (
        "Files that change",
        lambda times, rng: files(max(1, times // 20), rng),
        "A file has changed if its size, its modification or status change time, or its identity differs from when it "
        "was opened. This is checked before and after every query. A result that matches neither version comes from a "
        "file that was read partly before and partly after the change.",
    ),
}
INTRODUCTION = (
    "A short version of each part is in the test suite: some kills, interrupts and changed files, engine failures, and "
    "a file size limit."
)


def main() -> int:
    """Inject the faults, and write the section."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the commands inherit an ignored signal
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="kills per command")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    texts, wrong = {}, 0
    for name in [options.only] if options.only else PARTS:
        title, inject, remark = PARTS[name]
        faults, start = [], time.monotonic()
        with temporary_folder() as folder:
            tempfile.tempdir = folder
            for fault in inject(options.times, random.Random(options.seed)):
                print(f"{time.monotonic() - start:.0f} s: {' | '.join(fault.row)}", file=sys.stderr, flush=True)
                faults.append(fault)
            tempfile.tempdir = None
        texts[title] = part(faults, remark)
        wrong += sum(len(fault.wrong) for fault in faults)
    write("faults", section(texts))
    return int(wrong > 0)


def part(faults: list[Fault], remark: str) -> str:
    """Return the text of a part."""
    wrong = sum(len(fault.wrong) for fault in faults)
    number = sum(fault.outcomes.total() for fault in faults)
    all_right = f"{wrong:,} outcomes were wrong" if wrong else "all outcomes were as expected"
    rows = table(("fault", "runs", "outcome"), [fault.row for fault in faults])
    return f"{number:,} faults injected on {date.today()}{source()}; {all_right}.\n\n{rows}\n\n{remark}".strip()


def section(texts: dict[str, str]) -> str:
    """Return the section with some parts new and the others as they are."""
    parts = r"^### (.*?)\n\n(.*?)(?=\n+### |\n+Made on |\Z)"
    every = dict(re.findall(parts, read("faults"), re.DOTALL | re.MULTILINE)) | texts
    return "\n\n".join(
        [INTRODUCTION, *(f"### {title}\n\n{every[title]}" for title, _, _ in PARTS.values() if title in every)]
    )


if __name__ == "__main__":
    sys.exit(main())
