"""Run commands on large files with a memory limit, and on small files with limits that are too small.

Kappa of the files is known exactly, see memory_votes.py.
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
from section import COMMAND, paragraphs, table, write

GIB, MIB = 1 << 30, 1 << 20
TIMEOUT = 3600  # seconds
HOWS = {"group": "control group", "addresses": "address space (`ulimit -v`)"}
FILES = {
    "wide.csv": [],
    "wide.jsonl": [],
    "long.csv": [],
    "counts.csv": ["--counts", ",".join(CATEGORIES)],
    "many.csv": [],
    "label_studio.json": [],
}
ANNOTATORS = 3
COMMANDS = {
    "score": ["--format", "json"],
    "audit": ["--format", "json", "-o", "report.html"],
    "review": ["-o", "review.csv"],
    "tally make": ["-o", "tally.json"],
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code, output, errors, seconds and peak resident memory of a command."""

    code: int
    out: str
    err: str
    seconds: float
    peak: int

    @property
    def memory_error(self) -> bool:
        """Whether it failed with a one-line error about memory."""
        return self.code == 2 and len(self.err.strip().splitlines()) == 1 and "memory" in self.err

    def result(self) -> tuple[str, int] | None:
        """Return the exact kappa and the number of items in the JSON of a score or an audit."""
        if self.code != 0:
            return None
        found = json.loads(self.out)["result"]["labelers"]["llm"]
        kappa = found.get("kappa", found)
        return str(kappa["exact"]), int(kappa["n_items"])


def run(command: Sequence[str], limit: int = 0, how: str = "") -> Outcome:
    """Run a command with a limit of all its memory ("group"), of its address space ("addresses"), or none."""
    with (
        _group(limit if how == "group" else 0) as group,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        join = f"echo $$ > {group}/cgroup.procs && " if group else ""
        ulimit = f"ulimit -v {limit // 1024} && " if how == "addresses" else ""
        start = perf_counter()
        within = ["sh", "-c", f'{join}{ulimit}exec "$@"', "sh", "timeout", "-s", "KILL", str(TIMEOUT)]
        process = subprocess.Popen([*within, *command], stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        texts = out.read().decode(), err.read().decode()
    return Outcome(process.returncode, *texts, seconds, used.ru_maxrss * 1024)


@contextmanager
def _group(limit: int) -> Iterator[Path | None]:
    """Create a control group with a limit and without swap."""
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
    """Return whether a control group can be created."""
    return _parent() is not None


def _parent() -> Path | None:
    """Return the control group in which one can be created, or None."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if "memory" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/memory") / own.strip("/")
            return folder if os.access(folder, os.W_OK) else None
    root = Path("/sys/fs/cgroup")  # version 2: only the root can contain both processes and groups
    with suppress(OSError):
        if "memory" in (root / "cgroup.subtree_control").read_text().split() and os.access(root, os.W_OK):
            return root
    return None


def write_file(path: Path, items: int, annotators: int) -> None:
    """Write a file in another process, whose memory does not count."""
    words = [sys.executable, memory_votes.__file__, str(path), str(items), str(annotators)]
    subprocess.run(words, check=True, timeout=TIMEOUT)


def large_files(folder: Path, items: int, long_items: int, annotators: int, limit: int) -> Iterator[list[str]]:
    """Run commands on large files, and yield rows of a table; the last cell is "exact kappa" if correct."""
    group = "group" if can_group() else "addresses"
    value, eligible = exact_kappa(annotators)
    report, tally = folder / "report.html", folder / "tally.json"
    for name, number in {"wide.csv": items, "wide.parquet": items, "long.parquet": long_items}.items():
        path = folder / name
        write_file(path, number, annotators)
        counting = run([sys.executable, __file__, "--count", str(path)])
        commands = {
            "audit -o report.html": (["audit", str(path), "--format", "json", "-o", str(report)], "group"),
            "score": (["score", str(path), "--format", "json"], "addresses"),
            "tally make": (["tally", "make", str(path), "-o", str(tally)], group),
        }
        if group != "group":
            del commands["audit -o report.html"]  # the report reserves 64 GiB of addresses
        if name == "wide.csv":
            del commands["tally make"]  # reads like score
        for command, (words, how) in commands.items():
            done = run([COMMAND, *words], limit, how)
            answer = run([COMMAND, "score", str(tally), "--format", "json"]) if command == "tally make" else done
            right = answer.result() == (str(value), int(eligible * number))
            if command.startswith("audit"):
                right = right and report.stat().st_size > 10_000
            print(f"{name} {command}: {done.code}, {done.seconds:.0f} s, {done.err}", file=sys.stderr, flush=True)
            yield [
                f"{name}, {path.stat().st_size / 1e9:.2f} GB, {number:,} items",
                f"`dhkappa {command}`",
                HOWS[how],
                f"{done.peak // MIB:,} MiB",
                f"{done.seconds:.0f} s, {done.seconds / counting.seconds:.1f} x",
                "exact kappa" if right else f"WRONG: exit code {done.code}",
            ]
        path.unlink()


def _count(path: Path) -> None:
    """Count the values of each column with DuckDB."""
    import duckdb

    source = f"read_csv('{path}', all_varchar = true)" if path.suffix == ".csv" else f"'{path}'"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SELECT count(COLUMNS(*)) FROM {source}").fetchall()


@dataclass(frozen=True, slots=True)
class LimitedRun:
    """A command on a file with a limit, its outcome, and whether a result is correct."""

    file: str
    command: str
    how: str
    limit: int
    outcome: Outcome
    correct: bool = True

    @property
    def wrong(self) -> bool:
        """Whether there is neither a correct result nor a one-line error."""
        return not (self.outcome.memory_error if self.outcome.code else self.correct)

    def __str__(self) -> str:
        outcome = "WRONG" if self.wrong else "error" if self.outcome.code else "result"
        return f"{self.limit // MIB}{' address space' if self.how == 'addresses' else ''}: {outcome}"


def small_limits(
    folder: Path,
    limits: Sequence[tuple[str, int]],
    files: Sequence[str] = tuple(FILES),
    commands: Sequence[str] = tuple(COMMANDS),
) -> Iterator[LimitedRun]:
    """Run commands on the files in a folder, with limits that are too small for some."""
    for file, command, (how, limit) in product(files, commands, limits):
        outcome, result = _run(folder, file, command, limit, how)
        right = outcome.code == 0 and result == _unlimited(folder, file, command) and _known(file, command, result)
        found = LimitedRun(file, command, how, limit, outcome, right)
        if found.wrong:
            print(file, command, found, outcome.code, outcome.err[-2000:], file=sys.stderr)
        yield found


def _run(folder: Path, file: str, command: str, limit: int = 0, how: str = "") -> tuple[Outcome, object]:
    """Run a command on a file; return the outcome, and kappa and the number of items, or the review table."""
    *words, last = COMMANDS[command]
    target = folder / last
    given = [*words, last if last == "json" else str(target)]
    outcome = run([COMMAND, *command.split(), str(folder / file), *FILES[file], *given], limit, how)
    result: object = None
    if outcome.code == 0 and (target.exists() or last == "json"):
        if command == "review":
            result = target.read_bytes()
        else:
            scored = run([COMMAND, "score", str(target), "--format", "json"]) if command == "tally make" else outcome
            result = scored.result()
    target.unlink(missing_ok=True)
    return outcome, result


@cache
def _unlimited(folder: Path, file: str, command: str) -> object:
    """Return the result of a command without a limit."""
    return _run(folder, file, command)[1]


def _known(file: str, command: str, result: object) -> bool:
    """Return whether a result contains the known kappa, if there is one."""
    if command == "review" or file == "many.csv":
        return result is not None
    return isinstance(result, tuple) and result[0] == str(exact_kappa(ANNOTATORS)[0])


def matrix(runs: Sequence[LimitedRun]) -> list[list[str]]:
    """Return the outcomes, with a row for each file and a column for each command."""
    return [
        [file, *(", ".join(str(one) for one in runs if (one.file, one.command) == (file, name)) for name in COMMANDS)]
        for file in FILES
    ]


def section(folder: Path, small: bool) -> tuple[str, bool]:
    """Run everything; return the section and whether an outcome was wrong."""
    items, long_items, annotators, number = (10**5, 10**5, 3, 50_000) if small else (10**8, 5 * 10**6, 5, 10**5)
    start, group = perf_counter(), can_group()
    large = list(large_files(folder, items, long_items, annotators, GIB))
    for name in FILES:
        write_file(folder / name, number, ANNOTATORS)
    limits = [("group" if group else "addresses", mib * MIB) for mib in ([200] if small else [160, 256, 512])]
    if group and not small:
        limits.append(("addresses", 512 * MIB))
    runs = [*small_limits(folder, limits)]
    errors, wrong = sum(one.outcome.memory_error for one in runs), sum(one.wrong for one in runs)
    example = next((one.outcome.err.strip() for one in runs if one.outcome.memory_error), "none")
    by = "in a control group and, at 512 MiB, with limited address space" if group else "with limited address space"
    head = ["file", "command", f"memory limit of {GIB // MIB:,} MiB by", "peak resident memory"]
    text = paragraphs(
        f"Large files with a memory limit of {GIB // MIB:,} MiB, with the command line. Only the CSV file is larger "
        f"than the limit. The Parquet files are compressed: one contains the same {items:,} rows as the CSV file, "
        f"the other, in long format, the votes on {long_items:,} items. The data are constructed so that kappa is "
        f"known exactly, {exact_kappa(annotators)[0]}. Every result is compared with it, and with the number of "
        "eligible items. *Ratio to counting* is the ratio to the time that DuckDB without a limit needs to count "
        "the values of each column. A control group limits all memory of a process, and the process is killed "
        "beyond it; *address space* is `ulimit -v`. The report reserves 64 GiB of address space for the JavaScript "
        "engine that draws the charts, although it uses little of it. `audit -o` is therefore tested with a control "
        "group only.",
        table([*head, "time, ratio to counting", "outcome"], large),
        f"Limits that are too small for some inputs: {len(runs)} runs of every command on every format, with "
        f"{number:,} items and three annotators, {by}. {len(runs) - errors - wrong} runs returned a result, {errors} "
        f"a one-line error with exit code 2, and {wrong} anything else: killed, traceback, hang, wrong result. A "
        "result is correct if it shows the exact kappa (for `tally make`, when the tally is scored) and the same "
        "number of items as without a limit. For *many*, with 1,500 categories, kappa is compared with the result "
        "without a limit; for `review`, the complete output is compared. Outcomes by limit in MiB:",
        table(["file", *COMMANDS], matrix(runs)),
        f"Example of an error: `{example}`",
        "`make bench` measures the memory of each step of an audit. The complete run took "
        f"{(perf_counter() - start) / 60:.0f} minutes. A short version with small files and small limits is part of "
        "the test suite.",
    )
    return text, bool(wrong) or any(row[-1] != "exact kappa" for row in large)


def main() -> int:
    """Run everything in a temporary folder, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="use small files, and write no section")
    parser.add_argument("--folder", help="parent folder of the files, with 16 GB of free space")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        _count(options.count)
        return 0
    with tempfile.TemporaryDirectory(prefix="dhkappa-memory-", dir=options.folder) as name:
        free, needed = shutil.disk_usage(name).free, 10**9 if options.small else 16 * 10**9
        if free < needed:
            raise SystemExit(f"{name} has {free / 1e9:.0f} GB free of {needed / 1e9:.0f}: use another --folder.")
        os.environ["TMPDIR"] = name  # for spilling
        text, wrong = section(Path(name), options.small)
    if options.small:
        print(text)
    else:
        write("memory", text)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
