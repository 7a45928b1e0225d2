"""The same bits from 1, 2, 8 and 32 threads, from processes, and from a Python without a global lock where one is.

Writes a section of docs/robustness.md. --python names an interpreter without a global lock; by default it is searched
on PATH, by the names python3.13t, python3.14t and so on.
"""

import argparse
import asyncio
import csv
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from oldest import needed
from page import ROOT, table, write

sys.path.insert(0, str(ROOT / "tests"))

import dhkappa
import test_threads as short

THREADS = short.THREADS
ROUNDS = 5
NAMES = ("python3.13t", "python3.14t", "python3.15t")
BESIDE = ("pytest>=8,<9.2", "hypothesis>=6.100")


@dataclass
class Trial:
    """One thing that was done by threads or processes: how many answers came, and how many were not the same bits."""

    what: str
    by: str
    answers: int = 0
    different: int = 0
    refused: int = 0

    def note(self, found: list[Any], wanted: list[Any]) -> None:
        """Compare answers with what one thread alone gives."""
        for one, right in zip(found, wanted, strict=True):
            self.answers += 1
            if isinstance(one, dhkappa.DataError) and "busy in another thread" in str(one):
                self.refused += 1
            elif one != right:
                self.different += 1


def in_threads(what: str, call: Callable[[int], Any], wanted: Callable[[int], Any] | None = None) -> Trial:
    """Call a function in 1, 2, 8 and 32 threads, some rounds each; what is wanted is what it gives alone."""
    trial = Trial(what, "threads")
    right = [(wanted or call)(place) for place in range(max(THREADS))]
    for threads in THREADS:
        for _ in range(ROUNDS):
            trial.note(short.together(threads, call), right[:threads])
    return trial


def in_threads_on_fresh(what: str, make: Callable[[], Any], ask: Callable[[Any], Any]) -> Trial:
    """Share a new object among threads in each round, so that what it keeps is computed by several at once."""
    trial, right = Trial(what, "threads"), ask(make())
    for threads in THREADS:
        for _ in range(ROUNDS):
            shared = make()
            found = short.together(threads, lambda _, shared=shared: ask(shared))  # type: ignore[misc]
            trial.note(found, [right] * threads)
    return trial


def trials(folder: Path) -> Iterator[Trial]:
    """Do everything that the short tests do, more often."""
    made = short.drawn()
    yield in_threads(
        "kappa of shared arrays", lambda _: short.bits(dhkappa.dh_kappa(made.votes, made.suggested["llm"]))
    )
    yield in_threads("kappa of arrays of their own", lambda place: short.bits(short.score(place)))
    yield in_threads(
        "audit of shared arrays",
        lambda _: short.whole(dhkappa.audit(made.votes, made.suggested, rng=2, progress=False)),
    )
    yield in_threads_on_fresh("one tally, not joined yet", short.scattered, _of_tally)
    yield in_threads_on_fresh("one result, nothing computed yet", lambda: short.score(3), short.bits)
    yield in_threads_on_fresh("one audit, and its review queues", lambda: short.audit(2), short.whole)
    yield in_threads(
        "bootstrap with a seed", lambda _: short.score(3).bootstrap(300, rng=5, progress=False).values.tobytes()
    )
    yield in_threads("simulation with a seed", lambda place: dhkappa.simulate(200, rng=place).votes.tobytes())
    path = _table(folder)
    right = short.of_table(path)
    yield in_threads("one CSV file", lambda _: short.of_table(path))
    yield from _frames(path)
    yield from _duckdb(path, right)
    yield from _processes()
    yield _first_imports()

    async def ask() -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(short.score, seed) for seed in range(32)))

    trial = Trial("kappa of arrays of their own", "asyncio.to_thread")
    trial.note(
        [short.bits(kappa) for kappa in asyncio.run(ask())], [short.bits(short.score(seed)) for seed in range(32)]
    )
    yield trial


def _of_tally(tally: dhkappa.Tally) -> tuple[object, ...]:
    return short.bits(dhkappa.dh_kappa(tally, "llm")), repr(tally), (tally + tally).n_votes


def _table(folder: Path) -> Path:
    """Write a table with an item a row."""
    made, path = short.drawn(), folder / "votes.csv"
    names = [*(f"ann_{place}" for place in range(4)), *(f"suggested_{name}" for name in short.LABELERS)]
    labels = zip(*made.suggested.values(), strict=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", *names])
        rows = zip(made.votes.tolist(), labels, strict=True)
        writer.writerows([place, *votes, *given] for place, (votes, given) in enumerate(rows))
    return path


def _frames(path: Path) -> Iterator[Trial]:
    import pandas
    import polars
    import pyarrow

    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = {name: [row[place] or None for row in rows] for place, name in enumerate(header)}
    for name, frame in (
        ("pandas", pandas.DataFrame(columns)),
        ("Polars", polars.DataFrame(columns)),
        ("lazy Polars", polars.DataFrame(columns).lazy()),
        ("PyArrow", pyarrow.table(columns)),
    ):
        yield in_threads(f"one frame of {name}", lambda _, frame=frame: short.of_table(frame))  # type: ignore[misc]


def _duckdb(path: Path, right: object) -> Iterator[Trial]:
    """Share a connection: by a cursor for each thread, and, which DuckDB refuses, as it is."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE votes AS FROM read_csv($1, all_varchar = true)", [str(path)])
    relation, source = connection.table("votes"), dhkappa.read(path)

    def try_(data: Any) -> object:
        try:
            return short.of_table(data)
        except dhkappa.DataError as error:
            return error

    yield in_threads(
        "a connection of the user's, a cursor each", lambda _: short.of_table(connection.cursor().table("votes"))
    )
    yield in_threads("a connection of the user's, one relation", lambda _: try_(relation), lambda _: right)
    yield in_threads("what `read` returned, shared", lambda _: try_(source), lambda _: right)


def _processes() -> Iterator[Trial]:
    """Have processes score, and send results back; fork only from a process that has one thread."""
    right = [short.bits(short.score(seed)) for seed in range(8)]
    for method in ("spawn", "forkserver"):
        trial = Trial("results sent back whole", f"processes ({method})")
        with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
            trial.note([short.bits(kappa) for kappa in pool.map(short.score, range(8))], right)
            trial.note([short.whole(pool.submit(short.audit, 2).result())], [short.whole(short.audit(2))])
        yield trial
    code = (
        "import json, multiprocessing, sys; from concurrent.futures import ProcessPoolExecutor\n"
        f"sys.path.insert(0, {str(ROOT / 'tests')!r}); import test_threads as short\n"
        "with ProcessPoolExecutor(2, multiprocessing.get_context('fork')) as pool:\n"
        "    print(json.dumps([list(map(str, short.bits(kappa))) for kappa in pool.map(short.score, range(8))]))"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    trial = Trial("results sent back whole", "processes (fork, before any other thread)")
    trial.note(json.loads(run.stdout), [list(map(str, one)) for one in right])
    yield trial


def _first_imports() -> Trial:
    trial = Trial("first imports, 16 threads in a new process", "threads")
    code, answers = short.FIRST.replace("{left}", "[]"), []
    for _ in range(3 * ROUNDS):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        answers.append((run.stdout, run.stderr, run.returncode))
    alone = dhkappa.dh_kappa([["a", "a"], ["a", "b"], ["b", "b"]], ["a", "b", "b"]).confidence_interval().low.hex()
    trial.note(answers, [(f"{(alone, len(dhkappa.__all__))}\n", "", 0)] * len(answers))
    return trial


# A Python without a global lock.


@dataclass
class Free:
    """What came of a Python without a global lock, or why there is none."""

    text: str
    failed: bool = False


def free_threaded(named: str | None) -> Free:
    """Make an environment with the core package, and run the short tests in it."""
    python = named or next(filter(None, map(shutil.which, NAMES)), None)
    if python is None:
        return Free(f"No Python without a global lock was found here ({', '.join(NAMES)}): its tests did not run.")
    with tempfile.TemporaryDirectory(prefix="dhkappa-free-") as folder:
        return _run_free(python, Path(folder) / "venv")


def _run_free(python: str, folder: Path) -> Free:
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    own = str(folder / "bin" / "python")
    install = [own, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--only-binary", ":all:"]
    duckdb = [need for need in needed([]) if need.startswith("duckdb")]
    subprocess.run([*install, *(need for need in needed([]) if need not in duckdb), *BESIDE], check=True)
    has_duckdb = not subprocess.run([*install, *duckdb], check=False, capture_output=True).returncode
    environment = os.environ | {"PYTHON_GIL": "0", "PYTHONPATH": str(ROOT / "src")}
    environment.pop("DHKAPPA_REQUIRE_ALL", None)
    code = "import dhkappa, platform, sys; dhkappa.dh_kappa; print(platform.python_version(), sys._is_gil_enabled())"
    told = subprocess.run([own, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout.split()
    tests = [
        own,
        "-m",
        "pytest",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "-q",
        str(ROOT / "tests" / "test_threads.py"),
    ]
    begun = time.monotonic()
    runs = [subprocess.run(tests, env=environment, capture_output=True, text=True, check=False) for _ in range(3)]
    seconds = time.monotonic() - begun
    ended = [(run.stdout.strip().splitlines() or [run.stderr])[-1] for run in runs]
    failed = told[1] != "False" or any(run.returncode for run in runs)
    if failed:
        print(runs[-1].stdout, runs[-1].stderr)
    left = "" if has_duckdb else " There is no DuckDB for it yet, so files and DuckDB's tables were left out."
    counts = "; ".join(re.sub(r" in [\d.]+s.*", "", line) for line in ended)
    return Free(
        f"Python {told[0]} without a global lock (`PYTHON_GIL=0`), with the core package: the short tests, three times "
        f"in {seconds:.0f} s: {counts}.{left}",
        failed,
    )


def main() -> None:
    """Run everything, and write the section; end with 1 where anything was not the same."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--python", help="an interpreter without a global lock")
    python, begun = given.parse_args().python, time.monotonic()
    found = []
    with tempfile.TemporaryDirectory(prefix="dhkappa-threads-") as folder:
        for trial in trials(Path(folder)):
            found.append(trial)
            print(trial, f"{time.monotonic() - begun:.0f} s", flush=True)
    free = free_threaded(python)
    rows = [[one.what, one.by, f"{one.answers:,}", one.refused or "", one.different] for one in found]
    text = [
        f"Threads are {', '.join(map(str, THREADS[:-1]))} and {THREADS[-1]} at once, {ROUNDS} rounds of each, starting "
        "at one barrier. Every answer (value, fraction, error, interval, p-value, categories, notes) was compared to "
        "the bit with what one thread alone gives.",
        table(["what", "by", "answers", "refused", "different"], rows),
        "Refused are calls that found one DuckDB connection busy in another thread: DuckDB answers one at a time, and "
        "the sentence says to give each thread a cursor or the path. No such call returned a number that was not "
        "right. A `Tally` is updated by one thread at a time; threads keep one each, and add them. Results can be sent "
        "between processes as Python does it; what `read` returns holds a connection and cannot, so send the path.",
        free.text,
    ]
    minutes = (time.monotonic() - begun) / 60
    text.append(f"All of it took {minutes:.1f} minutes. A short version runs at every change.")
    write("threads", "\n\n".join(one if one.startswith("|") else fill(one, 118) for one in text))
    raise SystemExit(free.failed or any(one.different for one in found))


if __name__ == "__main__":
    main()
