"""Compare results of threads and processes with those of a single thread, to the last bit.

``python robustness/threads.py [--python PATH]``; PATH is a free-threaded Python, searched on PATH by default.
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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import dhkappa
from oldest import requirements
from section import ROOT, paragraphs, table, write

Answer = TypeVar("Answer")
THREADS = (1, 2, 8, 32)
ROUNDS = 5
LABELERS = {"rule": 0.6, "llm": 0.85}
FREE_THREADED = ("python3.13t", "python3.14t", "python3.15t")
FIRST_IMPORT = """
import threading
from concurrent.futures import ThreadPoolExecutor
import dhkappa
names = [name for name in dhkappa.__all__ if name not in {excluded}]
barrier = threading.Barrier(16)
def use(place):
    barrier.wait()
    found = [getattr(dhkappa, name) for name in names[place % len(names):] + names[:place % len(names)]]
    kappa = dhkappa.dh_kappa([["a", "a"], ["a", "b"], ["b", "b"]], ["a", "b", "b"])
    return kappa.confidence_interval().low.hex(), len(found)
with ThreadPoolExecutor(16) as pool:
    print(*sorted(set(pool.map(use, range(16)))))
"""


def together(threads: int, call: Callable[[int], Answer]) -> list[Answer]:
    """Call a function in so many threads, which start at a barrier, and return the results."""
    barrier = threading.Barrier(threads)

    def one(place: int) -> Answer:
        barrier.wait()
        return call(place)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(threads)))


def drawn(seed: int = 1, n: int = 300) -> dhkappa.Simulation:
    """Simulate data."""
    return dhkappa.simulate(n, labelers=LABELERS, annotators=4, missing=0.1, rng=seed)


def score(seed: int) -> dhkappa.Kappa:
    """Return the kappa of simulated data."""
    made = drawn(seed)
    return dhkappa.dh_kappa(made.votes, made.suggested["llm"])


def audit(made: dhkappa.Simulation) -> dhkappa.Audit:
    """Return the audit of simulated data."""
    return dhkappa.audit(made.votes, made.suggested, rng=2, progress=False)


def scattered(parts: int = 40) -> dhkappa.Tally:
    """Return a tally of many parts that are not merged yet and have different categories."""
    made = drawn(n=400)
    total = dhkappa.Tally()
    for part in range(parts):
        rows = slice(part * 10, part * 10 + 10)
        suggested = {name: [f"{label}{part % 3}" for label in labels[rows]] for name, labels in made.suggested.items()}
        total.update([[vote and f"{vote}{part % 3}" for vote in row] for row in made.votes[rows].tolist()], suggested)
    return total


def write_table(path: Path) -> Path:
    """Write simulated data in wide format."""
    made = drawn()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", *(f"ann_{place}" for place in range(4)), *(f"suggested_{name}" for name in LABELERS)])
        rows = zip(made.votes.tolist(), zip(*made.suggested.values(), strict=True), strict=True)
        writer.writerows([place, *votes, *labels] for place, (votes, labels) in enumerate(rows))
    return path


def bits(kappa: dhkappa.Kappa) -> tuple[object, ...]:
    """Return everything about a kappa, with floats as their bits."""
    baselines = kappa.baselines
    floats = [kappa.value, baselines.random, baselines.majority, kappa.fleiss, kappa.se, kappa.above_random]
    floats += [*kappa.confidence_interval(), kappa.permutation_test().pvalue]
    rows = [tuple(map(repr, row.values())) for rows in (kappa.by_category(), kappa.confusion()) for row in rows]
    return (kappa.exact, *(float(number).hex() for number in floats), *rows, *map(str, kappa.notes))


def audit_bits(found: dhkappa.Audit) -> str:
    """Return everything about an audit; JSON keeps all bits of a float."""
    return json.dumps(found.to_dict(limit=None), default=str)


def table_bits(data: Any) -> tuple[object, ...]:
    """Return everything about the kappa of a table."""
    return bits(dhkappa.dh_kappa(data, suggested="suggested_llm", annotators="ann_*"))


def _tally_bits(tally: dhkappa.Tally) -> tuple[object, ...]:
    return bits(dhkappa.dh_kappa(tally, "llm")), repr(tally), (tally + tally).n_votes


def _compare_bits(place: int) -> str:
    made = dhkappa.simulate(40, labelers=LABELERS, annotators=3, rng=place)
    compared = dhkappa.compare(made.votes, made.suggested, rng=place)
    kappa = dhkappa.dh_kappa(made.votes, made.suggested["rule"])
    return repr((compared.differences, kappa.permutation_test("monte-carlo", n_resamples=99, rng=place).pvalue))


@dataclass(frozen=True)
class Task:
    """Make an object that threads share, and compute something from it and the number of the thread."""

    make: Callable[[], Any]
    call: Callable[[Any, int], Any]
    varies: bool = False
    """Whether the result depends on the number."""


def tasks(folder: Path) -> dict[str, Task]:
    """Return the tasks of threads."""
    found = {
        "kappa, shared arrays": Task(drawn, lambda made, _: bits(dhkappa.dh_kappa(made.votes, made.suggested["llm"]))),
        "kappa, separate arrays": Task(lambda: None, lambda _, place: bits(score(place)), varies=True),
        "audit, shared arrays": Task(drawn, lambda made, _: audit_bits(audit(made))),
        "one tally, not merged yet": Task(scattered, lambda tally, _: _tally_bits(tally)),
        "one result, nothing computed yet": Task(lambda: score(3), lambda kappa, _: bits(kappa)),
        "one audit, with its review tables": Task(lambda: audit(drawn()), lambda found, _: audit_bits(found)),
        "bootstrap with a seed": Task(
            lambda: score(3), lambda kappa, _: kappa.bootstrap(300, rng=5, progress=False).values.tobytes()
        ),
        "simulation, comparison and test with a seed": Task(
            lambda: None, lambda _, place: _compare_bits(place), varies=True
        ),
    }
    try:
        import duckdb
    except ImportError:
        return found
    path = write_table(folder / "votes.csv")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE votes AS FROM read_csv($1, all_varchar = true)", [str(path)])
    found |= {
        "one CSV file": Task(lambda: path, lambda path, _: table_bits(path)),
        "user's DuckDB connection, one cursor per thread": Task(
            lambda: connection, lambda shared, _: table_bits(shared.cursor().table("votes"))
        ),
        "user's DuckDB connection, one shared relation": Task(
            lambda: connection.table("votes"), lambda relation, _: table_bits(relation)
        ),
        "one result of `read`, shared": Task(
            lambda: dhkappa.read(path, suggested="suggested_llm", annotators="ann_*"),
            lambda data, _: bits(dhkappa.dh_kappa(data)),
        ),
    }
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = {name: [row[place] or None for row in rows] for place, name in enumerate(header)}
    for name, module, make in (
        ("pandas dataframe", "pandas", "DataFrame"),
        ("Polars dataframe", "polars", "DataFrame"),
        ("lazy Polars dataframe", "polars", "LazyFrame"),
        ("PyArrow table", "pyarrow", "table"),
    ):
        try:
            frame = getattr(__import__(module), make)(columns)
        except ImportError:
            continue
        found[f"one {name}"] = Task(lambda frame=frame: frame, lambda frame, _: table_bits(frame))  # type: ignore[misc]
    return found


@dataclass
class Counts:
    """Numbers of results, of calls rejected because a connection was in use, and of different results."""

    results: int = 0
    rejected: int = 0
    different: int = 0

    def add(self, found: Sequence[Any], expected: Sequence[Any]) -> "Counts":
        """Compare results with those of a single thread."""
        for one, right in zip(found, expected, strict=True):
            rejected = isinstance(one, dhkappa.DataError) and one.code == "connection-busy"
            self.results += 1
            self.rejected += rejected
            self.different += not rejected and one != right
        return self


def run_task(task: Task, threads: Sequence[int], rounds: int) -> Counts:
    """Run a task in several threads, so many rounds each, with a new object in each round."""
    counts = Counts()
    expected = [task.call(task.make(), place) for place in range(max(threads) if task.varies else 1)]

    def attempt(shared: Any, place: int) -> Any:
        try:
            return task.call(shared, place)
        except dhkappa.DataError as error:
            return error

    for number in threads:
        for _ in range(rounds):
            shared = task.make()
            found = together(number, lambda place, shared=shared: attempt(shared, place))  # type: ignore[misc]
            counts.add(found, [expected[place % len(expected)] for place in range(number)])
    return counts


def run_processes(method: str) -> Counts:
    """Compute results in processes that send them back."""
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        counts = Counts().add([bits(kappa) for kappa in pool.map(score, range(4))], [bits(score(n)) for n in range(4)])
        return counts.add([audit_bits(pool.submit(audit, drawn()).result())], [audit_bits(audit(drawn()))])


def first_imports(rounds: int) -> Counts:
    """Import names in 16 threads of a new process."""
    from importlib.util import find_spec

    excluded = [] if find_spec("duckdb") else ["read", "Dataset"]
    kappa = dhkappa.dh_kappa([["a", "a"], ["a", "b"], ["b", "b"]], ["a", "b", "b"])
    expected = (f"{(kappa.confidence_interval().low.hex(), len(dhkappa.__all__) - len(excluded))}\n", "", 0)
    code, found = FIRST_IMPORT.replace("{excluded}", repr(excluded)), []
    for _ in range(rounds):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        found.append((run.stdout, run.stderr, run.returncode))
    return Counts().add(found, [expected] * rounds)


def in_asyncio(number: int) -> Counts:
    """Compute results with asyncio.to_thread."""

    async def gather() -> list[dhkappa.Kappa]:
        return await asyncio.gather(*(asyncio.to_thread(score, seed) for seed in range(number)))

    return Counts().add([bits(kappa) for kappa in asyncio.run(gather())], [bits(score(n)) for n in range(number)])


def run_all(folder: Path) -> Iterator[tuple[str, str, Counts]]:
    """Yield the task, what ran it, and the counts."""
    for name, task in tasks(folder).items():
        yield name, "threads", run_task(task, THREADS, ROUNDS)
    for method in ("spawn", "forkserver"):
        yield "results sent back by pickle", f"processes ({method})", run_processes(method)
    yield "first import, 16 threads in a new process", "threads", first_imports(3 * ROUNDS)
    yield "kappa, separate arrays", "asyncio.to_thread", in_asyncio(32)


def free_threaded(named: str | None) -> tuple[str, bool]:
    """Run the short tests in a free-threaded Python; return a text, and whether they passed."""
    python = named or next(filter(None, map(shutil.which, FREE_THREADED)), None)
    if python is None:
        return f"No free-threaded Python was found ({', '.join(FREE_THREADED)}); its tests were skipped.", True
    with tempfile.TemporaryDirectory(prefix="dhkappa-free-") as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        own = str(Path(folder) / "bin" / "python")
        install = [own, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--only-binary", ":all:"]
        needed = [need for need in requirements([]) if not need.startswith("duckdb")]
        subprocess.run([*install, *needed, "pytest>=8,<9.2", "hypothesis>=6.100"], check=True)
        has_duckdb = not subprocess.run([*install, "duckdb"], check=False, capture_output=True).returncode
        environment = os.environ | {"PYTHON_GIL": "0", "PYTHONPATH": str(ROOT / "src")}
        environment.pop("DHKAPPA_REQUIRE_ALL", None)
        code = (
            "import dhkappa, platform, sys; dhkappa.dh_kappa; print(platform.python_version(), sys._is_gil_enabled())"
        )
        version, gil = subprocess.check_output([own, "-c", code], env=environment, text=True).split()
        short = str(ROOT / "tests" / "robustness" / "test_threads.py")
        words = [own, "-m", "pytest", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-q", short]
        start = time.monotonic()
        runs = [subprocess.run(words, env=environment, capture_output=True, text=True, check=False) for _ in range(3)]
        seconds = time.monotonic() - start
    failed = gil != "False" or any(run.returncode for run in runs)
    if failed:
        print(runs[-1].stdout, runs[-1].stderr)
    ends = "; ".join(re.sub(r" in [\d.]+s.*", "", (run.stdout.strip().splitlines() or [""])[-1]) for run in runs)
    left = "" if has_duckdb else " DuckDB is not available for it yet, so files and DuckDB tables were left out."
    return (
        f"Python {version} without the global interpreter lock (`PYTHON_GIL=0`), core package: the short tests, three "
        f"times in {seconds:.0f} s: {ends}.{left}",
        not failed,
    )


def main() -> None:
    """Run everything, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="a free-threaded Python")
    python, start = parser.parse_args().python, time.monotonic()
    rows, different = [], 0
    with tempfile.TemporaryDirectory(prefix="dhkappa-threads-") as folder:
        for name, by, counts in run_all(Path(folder)):
            rows.append([name, by, f"{counts.results:,}", counts.rejected or "", counts.different])
            different += counts.different
            print(*rows[-1], f"{time.monotonic() - start:.0f} s", sep=" | ", flush=True)
    text, passed = free_threaded(python)
    minutes = (time.monotonic() - start) / 60
    write(
        "threads",
        paragraphs(
            f"{', '.join(map(str, THREADS[:-1]))} and {THREADS[-1]} threads, {ROUNDS} rounds each, starting at a "
            "barrier. Every result (value, fraction, standard error, interval, p-value, categories, notes) was "
            "compared to the last bit with that of a single thread.",
            table(["task", "run by", "results", "rejected", "different"], rows),
            "Rejected calls found their DuckDB connection in use by another thread. DuckDB handles one query at a "
            "time per connection; the error recommends one cursor per thread, or the path. No such call returned a "
            "wrong number. A `Tally` must be updated by one thread at a time; use one tally per thread, and add "
            "them. Results can be pickled. The return value of `read` holds a connection and cannot be pickled; "
            "send the path instead.",
            text,
            f"The complete run took {minutes:.1f} minutes. A short version is in the test suite.",
        ),
    )
    raise SystemExit(bool(different) or not passed)


if __name__ == "__main__":
    main()
