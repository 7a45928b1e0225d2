"""Compare the speed of this checkout with that of another one: python benchmarks/compare.py --baseline PATH.

Each row runs alternately on both source trees, in new processes. The ratio is the shortest time of this checkout
divided by the shortest time of the baseline: below 1 is faster. The baseline may have the names of version 0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
SETUP = "import numpy as np, dhkappa; from measure import draw"
ARRAYS = "sample = draw({n}, {N}, {m}); votes, labels = sample.votes, sample.suggested"
LABELERS = (
    "rng = np.random.default_rng(2); some = lambda k: rng.random(len(labels)) < 0.04 * k; "
    "given = {str(k): np.where(some(k), rng.integers(0, sample.m, len(labels)), labels) for k in range(10)}"
)
WIDE = "COPY (SELECT i AS item, {columns} FROM range({n}) AS drawn(i)) TO '{path}' ({form})"


@dataclass(frozen=True)
class Row:
    """Code to time, in the spelling of 0.2 and of 0.1 if it differs, after a setup that is not timed."""

    name: str
    new: str
    old: str = ""
    setup: str = "pass"


@dataclass(frozen=True)
class CommandRow:
    """Arguments of Python to time, in the spelling of 0.2 and of 0.1 if it differs."""

    name: str
    new: tuple[str, ...]
    old: tuple[str, ...] = ()


def rows(folder: Path, n: int) -> list[Row | CommandRow]:
    """Return the rows, for arrays of n items."""
    wide, csv, report = folder / "wide.parquet", folder / "votes.csv", folder / "report.html"
    parts = "k = dhkappa.dh_kappa(votes, labels); (k.value, k.fleiss, k.parts, {baselines})"
    found: list[Row | CommandRow] = []
    for N, m in ((3, 5), (20, 5), (5, 1000)):
        name, setup = f"dh_kappa, n={n:,}, N={N}, m={m}", ARRAYS.format(n=n, N=N, m=m)
        new, old = (parts.format(baselines=names) for names in ("k.baselines", "k.floor, k.ceiling"))
        found.append(Row(name, new, old, setup))
    arrays = ARRAYS.format(n=n, N=3, m=5)
    kappa = f"{arrays}; k = dhkappa.dh_kappa(votes, labels)"
    call = "dhkappa.dh_kappa(votes, labels)"
    dhkappa = ("-m", "dhkappa")
    found += [
        Row(
            "lists of text, n=10,000",
            call,
            setup="s = draw(10**4, 3, 5); votes, labels = "
            "s.votes.astype(str).tolist(), s.suggested.astype(str).tolist()",
        ),
        Row("confidence interval", f"{call}.confidence_interval()", f"{call}.interval()", arrays),
        Row("bootstrap, 10,000 replicates", "k.bootstrap(10_000, 1, progress=False)", setup=kappa),
        Row("by category", "k.by_category()", setup=kappa),
        Row("permutation test", f"{call}.permutation_test('gamma')", f"{call}.test('z')", arrays),
        Row("compare, 10 labelers", "dhkappa.compare(votes, given)", setup=f"{arrays}; {LABELERS}"),
        Row(
            "audit of arrays, n=20,000",
            "dhkappa.audit(votes, {'llm': labels}, rng=1, progress=False)",
            setup=ARRAYS.format(n=20_000, N=3, m=5),
        ),
        Row("tally, added to itself", "t + t", setup=f"{arrays}; t = dhkappa.tally(votes, labels)"),
        # With item, both versions check that no item is repeated.
        Row("tally of a Parquet file", f"dhkappa.tally({str(wide)!r}, 'suggested', item='item', annotators='ann_*')"),
        Row("audit of a CSV file", f"dhkappa.audit({str(csv)!r}, rng=1, progress=False)"),
        CommandRow("import dhkappa", ("-c", "import dhkappa")),
        CommandRow("import dhkappa.dh_kappa", ("-c", "from dhkappa import dh_kappa")),
        CommandRow("dhkappa --help", (*dhkappa, "--help")),
        CommandRow("dhkappa score", (*dhkappa, "score", str(csv))),
        CommandRow(
            "dhkappa score, JSON",
            (*dhkappa, "score", str(csv), "--format", "json"),
            (*dhkappa, "score", str(csv), "--json"),
        ),
        CommandRow("dhkappa audit, with report", (*dhkappa, "audit", str(csv), "-o", str(report))),
    ]
    return found


def write_files(folder: Path, n: int) -> None:
    """Write a Parquet file with n items and a CSV file with a tenth of them, in wide format."""
    import duckdb

    vote = "'c' || CASE WHEN hash(8 * i + {k}) % 4 < 3 THEN hash(i) % 5 ELSE hash(8 * i + {k}) // 4 % 5 END AS {name}"
    names = ("suggested", "ann_1", "ann_2", "ann_3")
    columns = ", ".join(vote.format(k=k, name=name) for k, name in enumerate(names))
    for name, items, form in (("wide.parquet", n, "FORMAT parquet"), ("votes.csv", n // 10, "FORMAT csv, HEADER")):
        duckdb.sql(WIDE.format(columns=columns, n=items, path=folder / name, form=form))


def measure(row: Row | CommandRow, tree: Path, old: bool, seconds: float) -> float:
    """Return the shortest time of a row on a source tree, in a new process."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    if isinstance(row, CommandRow):
        command = [sys.executable, *((old and row.old) or row.new)]
        start = perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return perf_counter() - start
    given = json.dumps([row.setup, (old and row.old) or row.new, seconds])
    command = [sys.executable, __file__, "--row", given]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def run_row(setup: str, code: str, seconds: float) -> float:
    """Return the shortest time of code in this process."""
    names: dict[str, object] = {}
    exec(f"{SETUP}; {setup}", names)
    timed = compile(code, "row", "exec")
    best, spent, runs = float("inf"), 0.0, 0
    while spent < seconds or runs < 2:
        start = perf_counter()
        exec(timed, names)
        took = perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best


def is_old(tree: Path) -> bool:
    """Return whether a source tree has the names of version 0.1."""
    code = "import dhkappa; print(hasattr(dhkappa, 'Source') and not hasattr(dhkappa, 'Baselines'))"
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == "True"


def main() -> int:
    """Run all rows on both trees, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=Path, help="another checkout")
    parser.add_argument("--n", type=int, default=10**6, help="items of the arrays (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="processes per row and tree (default 5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="time per process (default 0.5)")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(run_row(*json.loads(options.row)))
        return 0
    if options.baseline is None:
        parser.error("--baseline is required")
    trees = [(tree, is_old(tree)) for tree in (ROOT, options.baseline.resolve())]
    print(f"{'row':<34}{'new':>12}{'baseline':>12}{'new / baseline':>16}")
    with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as folder:
        write_files(Path(folder), options.n)
        for row in rows(Path(folder), options.n):
            if options.only not in row.name:
                continue
            best = [float("inf")] * 2
            try:
                for _ in range(options.rounds):
                    for place, (tree, old) in enumerate(trees):
                        best[place] = min(best[place], measure(row, tree, old, options.seconds))
            except subprocess.CalledProcessError as error:
                text = error.stderr if isinstance(error.stderr, str) else error.stderr.decode()
                print(f"{row.name:<34}failed: {text.strip().splitlines()[-1][:80]}", flush=True)
                continue
            new, old_time = best
            print(f"{row.name:<34}{1e3 * new:>9.1f} ms{1e3 * old_time:>9.1f} ms{new / old_time:>16.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
