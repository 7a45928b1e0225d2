"""Large files, audited by the real commands under a limit; and limits that are too small for anything.

The votes are those of memory_votes.py, of which kappa is known exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from time import perf_counter

import memory_votes
from memory_votes import CATEGORIES, exact_kappa
from page import ROOT, table, write

GIB, MIB = 1 << 30, 1 << 20
COMMAND = str(Path(sys.executable).with_name("dhkappa"))
PATIENCE = 3600  # seconds, after which a command hangs


def make(path: Path, items: int, annotators: int) -> None:
    """Write a file in a process of its own: what that took would count as ours."""
    subprocess.run(
        [sys.executable, memory_votes.__file__, str(path), str(items), str(annotators)], check=True, timeout=PATIENCE
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command: its exit code, what it said, its seconds, and the peak of its resident memory."""

    code: int
    told: str
    complained: str
    seconds: float
    peak: int

    @property
    def sentence(self) -> bool:
        """Whether it refused in one sentence that speaks of memory."""
        lines = self.complained.strip().splitlines()
        return self.code == 2 and len(lines) == 1 and lines[0].startswith("dhkappa: ") and "memory" in lines[0]

    def value(self) -> tuple[str, int] | None:
        """Return the exact kappa and the number of items, of a score or an audit as JSON."""
        if self.code != 0:
            return None
        found = json.loads(self.told)["result"]["labelers"]["llm"]
        kappa = found.get("kappa", found)
        return str(kappa["exact"]), int(kappa["n_items"])


def run(command: Sequence[str], limit: int = 0, how: str = "") -> Outcome:
    """Run a command under a limit of ``"group"`` (all memory, by a control group) or ``"addresses"``, or none."""
    with (
        _group(limit if how == "group" else 0) as group,
        tempfile.TemporaryFile() as told,
        tempfile.TemporaryFile() as bad,
    ):
        join = f"echo $$ > {group}/cgroup.procs && " if group else ""
        ulimit = f"ulimit -v {limit // 1024} && " if how == "addresses" else ""
        start = perf_counter()
        within = ["sh", "-c", f'{join}{ulimit}exec "$@"', "sh", "timeout", "-s", "KILL", str(PATIENCE)]
        process = subprocess.Popen([*within, *command], stdout=told, stderr=bad)
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        bad.seek(0)
        words = told.read().decode(), bad.read().decode()
    return Outcome(process.returncode, *words, seconds, used.ru_maxrss * 1024)


@contextmanager
def _group(limit: int) -> Iterator[Path | None]:
    """Make a control group with a limit and no swap, within the one that we are in, and remove it."""
    parent = _parent() if limit else None
    if parent is None:
        yield None
        return
    group = parent / f"dhkappa-{os.getpid()}"
    group.mkdir()
    try:
        most, swap, no_swap = ("memory.max", "memory.swap.max", "0")
        if not (group / most).exists():
            most, swap, no_swap = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", str(limit))
        (group / most).write_text(str(limit))
        with suppress(OSError):
            (group / swap).write_text(no_swap)
        yield group
    finally:
        group.rmdir()


def can_group() -> bool:
    """Tell whether a control group can be made."""
    return _parent() is not None


def _parent() -> Path | None:
    """Return the control group within which we can make one; None where we cannot."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if "memory" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/memory") / own.strip("/")
            return folder if os.access(folder, os.W_OK) else None
    whole = Path("/sys/fs/cgroup")  # of version 2: only the outermost may hold both processes and groups
    with suppress(OSError):
        if "memory" in (whole / "cgroup.subtree_control").read_text().split() and os.access(whole, os.W_OK):
            return whole
    return None


HOWS = {"group": "control group", "addresses": "addresses (ulimit -v)"}


@dataclass(frozen=True, slots=True)
class Large:
    """A command on a large file, under the limit, and what came of it."""

    file: str
    size: int
    items: int
    command: str
    how: str
    outcome: Outcome
    beside: float
    right: bool


def audit_large(folder: Path, items: int, long_items: int, annotators: int, limit: int) -> Iterator[Large]:
    """Audit, score and count large files under the limit, and hold every answer against the known one."""
    group = can_group()
    value, share = exact_kappa(annotators)
    report, tally = folder / "report.html", folder / "tally.json"
    for name, number in {"wide.csv": items, "wide.parquet": items, "long.parquet": long_items}.items():
        path = folder / name
        make(path, number, annotators)
        merely = run([sys.executable, __file__, "--count", str(path)])
        calls = {
            "audit": (
                [str(path), "--json", *(["-o", str(report)] if group else [])],
                "group" if group else "addresses",
            ),
            "score": ([str(path), "--json"], "addresses"),
            "tally make": ([str(path), "-o", str(tally)], "group" if group else "addresses"),
        }
        if name == "wide.csv":
            del calls["tally make"]  # which reads as a score does, and takes as long
        for command, (words, how) in calls.items():
            done = run([COMMAND, *command.split(), *words], limit, how)
            answer = run([COMMAND, "score", str(tally), "--json"]) if command == "tally make" else done
            right = answer.value() == (str(value), int(share * number))
            if command == "audit" and group and done.code == 0:
                right &= report.stat().st_size > 10_000
                command += " -o report.html"
            found = Large(name, path.stat().st_size, number, command, how, done, done.seconds / merely.seconds, right)
            print(
                f"{name} {command}: {done.code}, {done.seconds:.0f} s, {done.complained}", file=sys.stderr, flush=True
            )
            yield found
        path.unlink()


def _count(path: Path) -> None:
    """Have DuckDB merely count what every column of a file holds."""
    import duckdb

    source = f"read_csv('{path}', all_varchar = true)" if path.suffix == ".csv" else f"'{path}'"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SELECT count(COLUMNS(*)) FROM {source}").fetchall()


@dataclass(frozen=True, slots=True)
class Trial:
    """A layout and a command on it, under a limit, what came of it, and whether an answer was right."""

    layout: str
    command: str
    how: str
    limit: int
    outcome: Outcome
    right: bool = True

    @property
    def fault(self) -> bool:
        """Whether it was neither answered rightly nor refused in one sentence."""
        return not (self.outcome.sentence if self.outcome.code else self.right)

    def __str__(self) -> str:
        came = "FAULT" if self.fault else "sentence" if self.outcome.code else "answer"
        return f"{self.limit // MIB}{' of addresses' if self.how == 'addresses' else ''} {came}"


LAYOUTS = {
    "wide.csv": [],
    "wide.jsonl": [],
    "long.csv": [],
    "counts.csv": ["--counts", ",".join(CATEGORIES)],
    "many.csv": [],
    "label_studio.json": [],
}
ANNOTATORS = 3
COMMANDS = {
    "score": ["--json"],
    "audit": ["--json", "-o", "report.html"],
    "items": ["-o", "items.csv"],
    "tally make": ["-o", "tally.json"],
}


def squeeze(
    folder: Path,
    limits: Sequence[tuple[str, int]],
    layouts: Sequence[str] = tuple(LAYOUTS),
    commands: Sequence[str] = tuple(COMMANDS),
) -> Iterator[Trial]:
    """Run commands on layouts, whose files are in a folder, under limits that are too small for some."""
    for layout, command, (how, limit) in product(layouts, commands, limits):
        outcome, shown = _asked(folder, layout, command, limit, how)
        right = outcome.code == 0 and shown == _unlimited(folder, layout, command) and _known(layout, command, shown)
        trial = Trial(layout, command, how, limit, outcome, right)
        if trial.fault:
            print(layout, command, trial, outcome.code, outcome.complained[-2000:], file=sys.stderr)
        yield trial


def _asked(folder: Path, layout: str, command: str, limit: int = 0, how: str = "") -> tuple[Outcome, object]:
    """Run a command on a layout, and return what came of it, and what its answer shows.

    That is kappa as a fraction and the number of items, of a tally by its score; of a queue, which has no kappa, all of
    it. Nothing is shown where the file is not there.
    """
    *words, last = COMMANDS[command]
    target = folder / last
    given = [*words, str(target) if words else last]
    outcome = run([COMMAND, *command.split(), str(folder / layout), *LAYOUTS[layout], *given], limit, how)
    shown: object = None
    if outcome.code == 0 and (target.exists() or not words):
        if command == "items":
            shown = target.read_bytes()
        else:
            scored = run([COMMAND, "score", str(target), "--json"]) if command == "tally make" else outcome
            shown = scored.value()
    target.unlink(missing_ok=True)
    return outcome, shown


@cache
def _unlimited(folder: Path, layout: str, command: str) -> object:
    """Return what the answer of a command shows without a limit."""
    return _asked(folder, layout, command)[1]


def _known(layout: str, command: str, shown: object) -> bool:
    """Tell whether an answer shows the kappa that is known beforehand, where it shows one and that is known."""
    if command == "items" or layout == "many.csv":
        return shown is not None
    return isinstance(shown, tuple) and shown[0] == str(exact_kappa(ANNOTATORS)[0])


def matrix(trials: Sequence[Trial]) -> list[list[str]]:
    """Return what came of every trial: a row a layout, a column a command."""
    return [
        [
            layout,
            *(
                ", ".join(str(one) for one in trials if (one.layout, one.command) == (layout, command))
                for command in COMMANDS
            ),
        ]
        for layout in LAYOUTS
    ]


def least(words: Sequence[str], limits: Sequence[int]) -> int:
    """Return the smallest of the limits of addresses from which on a command gives an answer."""
    works = [run([COMMAND, *words], limit, "addresses").code == 0 for limit in limits]
    return next(limit for place, limit in enumerate(limits) if all(works[place:]))


def by_step(items: int) -> str:
    """Return the memory of each step of an audit, as `make bench` measures it."""
    sys.path.append(str(ROOT / "benchmarks"))
    from steps import step_table

    found = step_table(items)
    reading = {step.layout: step.peak for step in found if step.name == "reading"}
    rows = [
        [step.layout, step.name, f"{step.peak:.0f}", f"{step.grown:.0f}", f"{step.peak / reading[step.layout]:.2f}"]
        for step in found
    ]
    return table(["items", "step", "peak", "beyond what was before", "beside reading"], rows)


def section(folder: Path, small: bool) -> tuple[str, int]:
    """Run everything; return the section, and the number of outcomes that should not be."""
    items, long_items, limit = (100_000, 100_000, GIB) if small else (10**8, 5 * 10**6, GIB)
    annotators = 3 if small else 5
    started = perf_counter()
    large = list(audit_large(folder, items, long_items, annotators, limit))
    for name in LAYOUTS:
        make(folder / name, 50_000 if small else 100_000, ANNOTATORS)
    group = can_group()
    tight = [160, 256, 512] if not small else [200]
    limits = [("group" if group else "addresses", mib * MIB) for mib in tight]
    trials = [*squeeze(folder, limits)]
    if group and not small:
        trials += squeeze(folder, [("addresses", 512 * MIB)])
    make(folder / "wide.parquet", 50_000, ANNOTATORS)
    steps = [mib * MIB for mib in range(20, 140, 20)]
    helps = least(["--help"], steps)
    scores = least(["score", str(folder / "wide.parquet")], [mib * MIB for mib in range(200, 560, 40)])
    rows = [
        [
            f"{one.file}, {one.size / 1e9:.2f} GB, {one.items:,} items",
            f"`dhkappa {one.command}`",
            HOWS[one.how],
            f"{one.outcome.peak // MIB:,} MiB",
            f"{one.outcome.seconds:.0f} s, {one.beside:.1f} x",
            "the exact kappa" if one.right else f"FAULT: exit code {one.outcome.code}",
        ]
        for one in large
    ]
    head = [
        "file",
        "command",
        f"limit of {limit // MIB:,} MiB by",
        "peak, resident",
        "time, beside counting",
        "outcome",
    ]
    faults, told = sum(one.fault for one in trials), sum(one.outcome.sentence for one in trials)
    answered = len(trials) - faults - told
    example = next((one.outcome.complained.strip() for one in trials if one.outcome.sentence), "none")
    by = "a control group" if group else "a limit of addresses, as no control group could be made"
    number = 50_000 if small else 100_000
    text = f"""
Large files under a limit of {limit // MIB:,} MiB, by the real commands. Only the CSV file has more bytes than that. The
Parquet files are packed: one holds the same {items:,} rows as the CSV file, and the other, with a row a vote,
the votes on {long_items:,} items. The votes are made so that kappa is known exactly beforehand,
{exact_kappa(annotators)[0]}; every answer is held against it, and against the number of items that count. *Beside
counting* is the time beside a DuckDB without any limit that merely counts what each column holds. A control group is
all memory of a process, beyond which it is killed; *addresses* is `ulimit -v`. The report needs 64 GiB of addresses for
the JavaScript that draws its charts, though it uses few: so `audit -o` runs under a control group only.

{table(head, rows)}

Limits too small for some layouts: {len(trials)} runs of every command on every layout, of {number:,} items with three
annotators, within {by}{" and, at 512 MiB, of addresses" if group and not small else ""}. {answered} gave an
answer, {told} one sentence and exit code 2, and {faults} anything else: a kill, a traceback, a hang, a wrong answer.
An answer is right where it shows the exact kappa (of `tally make`, when the tally is scored) and as many items as
without a limit. Of *many*, with 1,500 categories, kappa is held against that without a limit, too; of `items`, all that
is written is. What came at each limit in MiB:

{table(["layout", *COMMANDS], matrix(trials))}

A sentence, for instance: `{example}`

Every step of an audit of a Parquet file with a row an item and five votes, in one process after the other steps: the
peak of its resident memory in MiB, beside that of merely reading the file. `make bench` shows the same table.

{by_step(1_000 if small else 10**7)}

The smallest `ulimit -v` at which `dhkappa --help` answers is {helps // MIB} MiB, in steps of 20, and that from
which on `dhkappa score` of a small Parquet file does {scores // MIB} MiB, in steps of 40. All of it took
{(perf_counter() - started) / 60:.0f} minutes. A short version, of small files under small limits, runs at every change.
"""
    return text, faults + sum(not one.right for one in large)


def main() -> int:
    """Run it in a folder that goes afterwards, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--small", action="store_true", help="small files, to see that everything runs; writes no section"
    )
    parser.add_argument("--folder", help="where to make the files, of up to 6 GB, and as much again to spill")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        _count(options.count)
        return 0
    with tempfile.TemporaryDirectory(prefix="dhkappa-memory-", dir=options.folder) as name:
        free, wanted = shutil.disk_usage(name).free, 10**9 if options.small else 16 * 10**9
        if free < wanted:
            raise SystemExit(
                f"{name} has {free / 1e9:.0f} GB free, and {wanted / 1e9:.0f} are needed: name another --folder."
            )
        os.environ["TMPDIR"] = name  # where commands spill
        text, faults = section(Path(name), options.small)
    if options.small:
        print(text)
    else:
        write("memory", text)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
