"""Whole audits and other long work, compared with one kappa and its interval, with reading the data, and with peers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from dhkappa import Audit, Dataset, audit, compare, dh_kappa
from dhkappa.inputs.arrays import read_votes
from dhkappa.inputs.check import find_problems
from dhkappa.inputs.problems import Evidence, sampled_votes
from dhkappa.stats.slices import kappa_by_group
from measure import Sample, alternate, draw
from peers import load
from table import Goal, power

Calls = list[Callable[[], object]]
_PLACES = [f"n_{place}" for place in range(5)]
_EACH = [f"count(*) FILTER (label = 'c{place}') AS {name}" for place, name in enumerate(_PLACES)]
BY_HAND = f"""
    SELECT suggested_a, suggested_b, {", ".join(_PLACES)}, count(*)
    FROM (SELECT item, {", ".join(_EACH)} FROM read_parquet($1) GROUP BY item) JOIN read_parquet($2) USING (item)
    GROUP BY ALL"""


def audit_goals(scale: float, *, seconds: float, rounds: int) -> Iterator[Goal]:
    """Measure all rows; ``scale`` multiplies the numbers of items."""

    def size(items: int) -> int:
        return max(200, round(items * scale))

    def goal(text: str, calls: Calls, most: float, more: str = "", met: bool = True) -> Goal:
        ours, theirs = alternate(calls, seconds=seconds, least=rounds)
        measured = f"{ours / theirs:.2f} x ({_time(ours)} against {_time(theirs)}){more}"
        return Goal(f"{text}: at most {most:g} x", measured, ours <= most * theirs and met)

    small = draw(size(1_000), 3, 5)
    if find_spec("statsmodels"):
        from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

        text = f"kappa and interval, {len(small.votes):,} items x 3, statsmodels' Fleiss from votes"
        yield goal(text, [partial(_interval, small), lambda: fleiss_kappa(aggregate_raters(small.votes)[0])], 1)
    many = draw(size(3 * 10**5), 20, 50)
    torch = load().get("torchmetrics")
    if torch:
        for route, threads in zip(torch.routes, ("all cores", "one core"), strict=True):
            call = partial(route.call, route.convert(many))
            text = f"dh_kappa, {power(len(many.votes))} items x 20, m=50, torchmetrics' Fleiss from counts on {threads}"
            yield goal(text, [lambda: dh_kappa(many.votes, many.suggested).value, call], 1)

    large = draw(size(10**6), 3, 5)
    n = len(large.votes)
    two = labelers(large, 2)
    per_vote = _traced(lambda: _audit(large.votes, two)) / large.votes.size
    text = f"audit, {power(n)} items x 3, two labelers, one kappa and interval; at most 100 bytes a vote"
    calls: Calls = [lambda: _audit(large.votes, two), partial(_interval, large)]
    yield goal(text, calls, 150, f", {per_vote:.0f} bytes a vote", met=per_vote <= 100)
    weight = np.random.default_rng(3).random(n) + 0.5
    text = f"kappa and interval, {power(n)} items x 3, all weights different, the same without weights"
    yield goal(text, [partial(_interval, large, sample_weight=weight), partial(_interval, large)], 20)
    group = np.arange(n) % max(n // 100, 1)
    text = f"kappa, se and interval of {n // 100:,} groups of 100 items, one kappa and interval of all"
    yield goal(text, [partial(_groups, large, group), partial(_interval, large)], 30)
    sliced = audit(large.votes, large.suggested, slices=group, progress=False)
    text = f"table of {n // 100:,} slices of 100 items, one kappa and interval of all"
    yield goal(text, [partial(_slices, sliced), partial(_interval, large)], 30)
    middle = draw(size(10**5), 3, 5)
    many_labelers = labelers(middle, 50 if scale >= 1 else 5)
    text = f"compare {len(many_labelers)} labelers, {power(len(middle.votes))} items x 3, one kappa and interval"
    yield goal(text, [lambda: compare(middle.votes, many_labelers, rng=1), partial(_interval, middle)], 40)
    if find_spec("pandas"):
        frames = [long_table(size(20_000), annotators) for annotators in (10_000, 100)]
        text = f"audit of pandas, {size(20_000):,} items x 5, 10,000 annotators, 100 annotators"
        yield goal(text, [partial(_audit, frame) for frame in frames], 2)
        text = f"rules of the data check, {size(20_000):,} items x 5, 100 annotators, the audit of them"
        yield goal(text, [partial(_rules, Dataset(frames[1]).evidence()), partial(_audit, frames[1])], 0.1)
    huge = draw(size(10**7), 3, 5)
    text = f"kappa and interval, {power(len(huge.votes))} items x 3, uint8, np.sum"
    yield goal(text, [partial(_interval, huge), partial(np.sum, huge.votes)], 3.5)
    if find_spec("vl_convert"):
        with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as folder:
            votes, items = write_parquet(Path(folder), size(10**6))
            report = Path(folder, "report.html")
            command = [sys.executable, "-m", "dhkappa", "audit", str(votes), "--items", str(items), "-o", str(report)]
            text = f"dhkappa audit -o, {power(size(10**6))} items x 5, long Parquet file, the same grouping by hand"
            by_hand = partial(_by_hand, votes, items)
            yield goal(text, [partial(_run, command), by_hand], 12)


def _rules(evidence: Evidence) -> None:
    """Apply the rules of the data check as if for the first time."""
    sampled_votes._SAMPLES.clear()
    find_problems(replace(evidence))


def growth(scale: float) -> Iterator[tuple[str, int, float, float]]:
    """Yield what grows, its value, and the time and traced memory of an audit compared with the smallest value."""
    base = max(200, round(10**4 * scale))
    series: dict[str, list[tuple[int, Callable[[], object]]]] = {"items": [], "annotators": [], "labelers": []}
    for items in (base, 10 * base, 100 * base):
        sample = draw(items, 3, 5)
        series["items"].append((items, partial(_audit, sample.votes, labelers(sample, 2))))
    for annotators in (10, 100, 1_000) if find_spec("pandas") else ():
        series["annotators"].append((annotators, partial(_audit, long_table(base, annotators))))
    sample = draw(base, 3, 5)
    for number in (2, 8, 32):
        series["labelers"].append((number, partial(_audit, sample.votes, labelers(sample, number))))
    series["categories"] = []
    for m in (2, 20, 200):
        sample = draw(base, 3, m)
        series["categories"].append((m, partial(_audit, sample.votes, labelers(sample, 2))))
    for name, calls in series.items():
        if not calls:
            continue
        took = alternate([call for _, call in calls], seconds=0, least=2)
        peaks = [_traced(call) for _, call in calls]
        for (value, _), time, peak in zip(calls, took, peaks, strict=True):
            yield name, value, time / took[0], peak / peaks[0]


def print_growth(scale: float) -> None:
    """Print how an audit grows."""
    print("\nGrowth of an audit with its data, compared with the first row of each: time and memory")
    for name, value, time, memory in growth(scale):
        print(f"  {name:<12}{value:>10,}{time:>9.2f} x{memory:>9.2f} x", flush=True)


def labelers(sample: Sample, number: int) -> dict[str, Any]:
    """Return the labels of a sample, with more and more of them replaced at random."""
    rng, n = np.random.default_rng(2), len(sample.suggested)
    drawn = (rng.integers(0, sample.m, n, dtype=sample.suggested.dtype) for _ in range(number))
    return {
        str(k): np.where(rng.random(n) < 0.5 * k / number, other, sample.suggested) for k, other in enumerate(drawn)
    }


def long_table(n: int, annotators: int) -> Any:
    """Return a pandas table with five votes on each of n items, each by other annotators."""
    import pandas as pd

    rng = np.random.default_rng(1)
    truth = rng.integers(0, 5, n)
    block = np.array_split(np.arange(annotators), 5)  # one annotator of each block votes on an item
    who = np.column_stack([rng.choice(some, n) for some in block])
    votes = np.where(rng.random((n, 5)) < 0.8, truth[:, None], rng.integers(0, 5, (n, 5)))
    label = np.where(rng.random(n) < 0.8, truth, rng.integers(0, 5, n))
    columns = {"annotator": who.ravel(), "label": votes.ravel(), "suggested": np.repeat(label, 5)}
    return pd.DataFrame({"item": np.repeat(np.arange(n), 5), **columns})


def write_parquet(folder: Path, n: int) -> tuple[Path, Path]:
    """Write n items with five votes of 500 annotators in long format, and two labelers in a table of items."""
    votes, items = folder / "votes.parquet", folder / "items.parquet"
    label = "'c' || CASE WHEN hash(16 * i + {k}) % 5 < 4 THEN hash(i) % 5 ELSE hash(16 * i + {k}) // 5 % 5 END"
    vote = label.format(k="k")
    with duckdb.connect() as connection:
        rows = f"SELECT i AS item, 'w' || (100 * k + hash(9 * i + k) % 100) AS annotator, {vote} AS label"
        connection.sql(f"{rows} FROM range({n}) t(i), range(5) u(k)").write_parquet(str(votes))
        both = ", ".join(f"{label.format(k=k)} AS suggested_{name}" for k, name in ((7, "a"), (8, "b")))
        connection.sql(f"SELECT i AS item, {both} FROM range({n}) t(i)").write_parquet(str(items))
    return votes, items


def _audit(data: Any, suggested: Any = None) -> str:
    return audit(Dataset(data, suggested), rng=1, progress=False).summary


def _interval(sample: Sample, **design: Any) -> object:
    kappa = dh_kappa(sample.votes, sample.suggested, **design)
    return kappa.se, kappa.confidence_interval()


def _groups(sample: Sample, group: Any) -> object:
    rows, row = read_votes(sample.votes, sample.suggested).distinct_patterns()
    return kappa_by_group(rows, row, group, int(group.max()) + 1, products=False)


def _slices(found: Audit) -> object:
    """Compute the table of slices of data that are counted, as if for the first time."""
    found._slices.clear()
    return found.slices()


def _by_hand(votes: Path, items: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(BY_HAND, [str(votes), str(items)]).fetchall()


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _traced(call: Callable[[], object]) -> int:
    """Return the peak of the memory that a call allocates."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
