"""Speed and memory compared with np.sum, np.sort, other libraries and hand-written queries."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np

from audits import audit_goals, print_growth
from commands import command_goals
from dhkappa import __version__
from every_engine import EngineRow, engine_table
from inference import compare_goal, inference_goals
from measure import (
    Sample,
    WrongValueError,
    alternate,
    check_kappa,
    draw,
    import_seconds,
    kappa_and_parts,
    resident_peak,
    traced_peak,
)
from parquet import file_goals
from peers import PAPER, Peer, load, measure
from steps import Step, step_table
from table import LEGEND, Goal, Row, Table, number, power, print_goals

Shape = tuple[int, int, int]

HEADLINES = ((3, 5), (5, 1000), (20, 5), (100, 2))
CROSS = tuple(product((2, 3, 5, 20, 100), (2, 5, 50, 1000)))
SIZES = (10**4, 10**5, 10**6, 10**7)
MOST_VOTES_BYTES = 10**9
LIBRARIES = (
    *("numpy", "statsmodels", "irrCAC", "krippendorff", "torchmetrics", "torch", "scikit-learn"),
    *("duckdb", "narwhals", "pandas", "polars", "pyarrow", "dask", "ibis-framework", "pyspark"),
)
PARTS = ("arrays", "engines", "commands", "memory", "audits")


def _shapes(panels: Iterable[tuple[int, int]], sizes: tuple[int, ...]) -> list[Shape]:
    every = [(n, N, m) for (N, m), n in product(panels, sizes)]
    return [(n, N, m) for n, N, m in every if n * N * (1 if m <= 256 else 2) <= MOST_VOTES_BYTES]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much a run measures: the shapes (n, N, m), and the seconds it spends on a figure."""

    shapes: list[Shape]
    seconds: float
    rounds: int
    peer_seconds: float
    goal_seconds: float = 2.0
    sum_goal: Shape = (10**7, 3, 5)
    sort_goal: Shape = (10**6, 5, 1000)
    file_items: int = 10**7
    wide_items: int = 10**6
    long_items: int = 2 * 10**5
    command_items: int = 20_000
    audit_scale: float = 1.0


DEFAULT = Scale([*_shapes(HEADLINES, SIZES), *_shapes(CROSS, (10**5,))], 0.3, 5, 0.2)
FULL = Scale([*_shapes(HEADLINES, SIZES), *_shapes(CROSS, SIZES)], 1.0, 5, 1.0)
QUICK = Scale(
    [(10**4, 2, 2), (10**4, 3, 5), (1000, 5, 300)],
    0.02,
    1,
    0.01,
    goal_seconds=0.05,
    sum_goal=(10**4, 3, 5),
    sort_goal=(1000, 5, 300),
    file_items=1000,
    wide_items=1000,
    long_items=1000,
    command_items=100,
    audit_scale=1e-4,
)


def measure_row(shape: Shape, peers: dict[str, Peer | None], scale: Scale, known: list[Row]) -> Row:
    n, N, m = shape
    sample = draw(n, N, m)
    value = check_kappa(sample)
    calls = [partial(kappa_and_parts, sample), partial(np.sum, sample.votes)]
    held = shape == scale.sum_goal
    ours, summed = alternate(calls, seconds=scale.goal_seconds if held else scale.seconds, least=scale.rounds)
    seconds = scale.goal_seconds if held else scale.peer_seconds
    same = [row for row in known if (row.N, row.m) == (N, m) and not held]
    timings = {}
    for name, peer in peers.items():
        if peer and (N == 2 or not peer.two_annotators):
            stopped = {t.route: t for row in same for t in row.peers[name] if t.n < row.n < n}
            timings[name] = measure(peer, sample, seconds=seconds, known=stopped)
    dtype, memory = str(sample.votes.dtype), traced_peak(sample)
    return Row(n, N, m, dtype, value, ours / n * 1e9, summed / n * 1e9, memory, timings)


def sum_goals(row: Row, peers: dict[str, Peer | None], scale: Scale) -> Iterator[Goal]:
    """At most 4 x np.sum, and at least 8 x faster than the fastest peer."""
    where = f"n={power(row.n)}, N={row.N}, m={row.m}, {row.dtype} votes"
    ratio = row.dh_ns / row.sum_ns
    measured = f"{ratio:.2f} x ({row.dh_ns:.2f} against {row.sum_ns:.2f} ns per item)"
    yield Goal(f"{where}: at most 4 x np.sum", measured, ratio <= 4)
    text = f"{where}: at least 8 x faster than the fastest peer, from votes"
    installed = [peer for peer in peers.values() if peer and peer.name != PAPER and peer.name in row.peers]
    if not installed:
        yield Goal(text, "no peer is installed", None)
        return
    ours, whole = _duel(row, installed, scale)
    bare = {peer.name: min(t.call_ns for t in row.peers[peer.name]) for peer in installed}
    fastest, barest = min(whole, key=whole.__getitem__), min(bare, key=bare.__getitem__)
    measured = (
        f"{whole[fastest] / ours:.1f} x ({fastest}, {number(whole[fastest])} ns per item); "
        f"{bare[barest] / ours:.1f} x against {barest} with its input ready made, {number(bare[barest])} ns"
    )
    yield Goal(text, measured, whole[fastest] >= 8 * ours)


def _duel(row: Row, peers: list[Peer], scale: Scale) -> tuple[float, dict[str, float]]:
    """dh_kappa and the routes that came furthest, taking turns: ns per item, the best of row and duel."""
    sample = draw(row.n, row.N, row.m)
    best = {peer.name: min(t.whole_ns for t in row.peers[peer.name]) for peer in peers}
    furthest = max(t.n for peer in peers for t in row.peers[peer.name])
    paired = [(peer, pair) for peer in peers for pair in zip(peer.routes, row.peers[peer.name], strict=True)]
    routes = [(peer.name, route) for peer, (route, timing) in paired if timing.n == furthest]
    calls: list[Callable[[], object]] = [partial(kappa_and_parts, sample)]
    calls += [partial(route.whole, sample.head(furthest)) for _, route in routes]
    ours, *theirs = alternate(calls, seconds=scale.goal_seconds, least=scale.rounds)
    for (name, _), took in zip(routes, theirs, strict=True):
        best[name] = min(best[name], took / furthest * 1e9)
    return min(row.dh_ns, ours / row.n * 1e9), best


def sort_goals(shape: Shape, scale: Scale) -> Iterator[Goal]:
    """At most 6 x np.sort and 12 x the votes' bytes, for narrow and for wide integers."""
    n, N, m = shape
    drawn = draw(n, N, m)
    for sample in (drawn, drawn.astype(np.int64)):
        where = f"n={power(n)}, N={N}, m={m}, {sample.votes.dtype} votes"
        check_kappa(sample)
        yield _sort_goal(where, sample, scale)
        traced, resident = traced_peak(sample), resident_peak(sample)
        told = "not known" if resident is None else f"{resident:.1f} x"
        measured = f"beyond the votes: {traced:.1f} x traced; resident growth of a fresh process {told}"
        met = max(traced, resident or 0) <= 12
        yield Goal(f"{where}: peak memory at most 12 x the votes' bytes", measured, met)


def _sort_goal(where: str, sample: Sample, scale: Scale) -> Goal:
    votes = sample.votes
    calls: list[Callable[[], object]]
    calls = [partial(kappa_and_parts, sample), partial(np.sort, votes), partial(np.sort, votes, axis=None)]
    ours, rows, flat = alternate(calls, seconds=scale.goal_seconds, least=scale.rounds)
    measured = (
        f"{ours / rows:.2f} x np.sort by rows, {ours / flat:.2f} x with axis=None "
        f"({1e3 * ours:.1f} ms against {1e3 * rows:.1f} and {1e3 * flat:.1f})"
    )
    return Goal(f"{where}: at most 6 x the faster np.sort", measured, ours <= 6 * min(rows, flat))


def import_goal(scale: Scale) -> Goal:
    took = 1e3 * import_seconds(scale.rounds)
    return Goal("import dhkappa: at most 60 ms more than numpy alone", f"{took:.0f} ms", took <= 60)


def versions() -> dict[str, str]:
    found = {"dhkappa": __version__, "python": platform.python_version(), "cores": str(os.cpu_count())}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """What a run measured; without a part that was left out."""

    rows: list[Row]
    engines: list[EngineRow]
    goals: list[Goal]
    steps: list[Step]


def run(scale: Scale, parts: Collection[str]) -> Run:
    """Measure and print everything."""
    print(", ".join(f"{name} {text}" for name, text in versions().items()))
    rows, engines, goals, steps = list[Row](), list[EngineRow](), list[Goal](), list[Step]()
    if "arrays" in parts:
        rows, goals = run_arrays(scale)
    if "engines" in parts:
        print()
        goals += file_goals(scale.file_items, scale.rounds)
        quick = scale is QUICK
        engines = engine_table(scale.wide_items, scale.long_items, 1 if quick else 3, quick=quick)
    if "commands" in parts:
        goals += command_goals(scale.command_items, 1 if scale is QUICK else 5)
    if "memory" in parts:
        print()
        steps = step_table(scale.file_items)
    if "audits" in parts:
        goals += audit_goals(scale.audit_scale, seconds=scale.goal_seconds, rounds=1 if scale is QUICK else 3)
        print_growth(scale.audit_scale)
    if scale is QUICK:
        goals = [replace(goal, met=None) for goal in goals]
    print("\nGoals" + (", at sizes too small to judge them" if scale is QUICK else ""))
    print_goals(goals)
    return Run(rows, engines, goals, steps)


def run_arrays(scale: Scale) -> tuple[list[Row], list[Goal]]:
    """Measure arrays of every shape, and print the table."""
    peers, rows = load(), list[Row]()
    gc.freeze()
    print(LEGEND)
    table = Table(peers)
    table.head()
    for shape in dict.fromkeys(scale.shapes):
        rows.append(measure_row(shape, peers, scale, rows))
        table.row(rows[-1])
    goals = list(sum_goals(next(r for r in rows if (r.n, r.N, r.m) == scale.sum_goal), peers, scale))
    goals += sort_goals(scale.sort_goal, scale)
    goals += inference_goals(*scale.sum_goal, seconds=scale.goal_seconds, rounds=scale.rounds)
    n, N, m = scale.sum_goal
    goals.append(compare_goal(max(1000, n // 10), N, m, seconds=scale.goal_seconds, rounds=scale.rounds))
    goals.append(import_goal(scale))
    gc.unfreeze()  # what stays frozen is never freed, which DuckDB would report at the end
    return rows, goals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="every n, N and m, as far as 1 GB of votes goes")
    size.add_argument("--quick", action="store_true", help="three small shapes, to see that everything runs")
    parser.add_argument(
        "--only",
        choices=PARTS,
        help="one part: arrays, files and engines, the command line, memory, or whole audits",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write rows and goals to this file")
    options = parser.parse_args()
    start = perf_counter()
    try:
        scale = QUICK if options.quick else FULL if options.full else DEFAULT
        done = run(scale, [options.only] if options.only else PARTS)
    except WrongValueError as error:
        print(f"wrong value: {error}", file=sys.stderr)
        return 1
    print(f"\n{perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps({"versions": versions()} | asdict(done), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
