"""dh_kappa on Parquet files compared with hand-written DuckDB queries: time and memory."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb

from dhkappa import Kappa, dh_kappa
from measure import ACCURACY, LABEL_ACCURACY, WrongValueError, timed
from table import Goal, power

CATEGORIES = ("positive", "negative", "neutral", "mixed", "spam", "other")
VOTES = tuple(f"ann_{place}" for place in range(5))
TIMES_MORE = 10
# Peaks of processes that do the same differ by 1%, and ten times the items have a tenth more different rows of votes.
NO_MORE = 1.1

Rows = list[tuple[Any, ...]]
Counts = Counter[tuple[Any, tuple[int, ...]]]

WIDE = f"SELECT suggested, {', '.join(VOTES)}, count(*) FROM read_parquet($1) GROUP BY ALL"
_PLACES = [f"n_{place}" for place in range(len(CATEGORIES))]
_EACH = [f"count(*) FILTER (label = '{label}') AS {n}" for label, n in zip(CATEGORIES, _PLACES, strict=True)]
LONG = f"""
    SELECT suggested, {", ".join(_PLACES)}, count(*)
    FROM (SELECT item, {", ".join(_EACH)} FROM read_parquet($1) GROUP BY item) JOIN read_parquet($2) USING (item)
    GROUP BY ALL"""


def write_wide(path: Path, items: range) -> Path:
    """Write the wide format: uniform truth, and votes and suggested labels as right as those of arrays are."""
    columns = {"suggested": LABEL_ACCURACY} | dict.fromkeys(VOTES, ACCURACY)
    labels = [f"{_label(place, accuracy)} AS {name}" for place, (name, accuracy) in enumerate(columns.items(), 1)]
    rows = f"SELECT i AS item, {', '.join(labels)} FROM range({items.start}, {items.stop}) AS drawn(i)"
    with duckdb.connect() as connection:
        connection.sql(rows).write_parquet(str(path))
    return path


def _label(place: int, accuracy: float) -> str:
    """SQL of one label of item i: the truth, or where it misses that, any category."""
    m = len(CATEGORIES)
    keep = round((accuracy - 1 / m) / (1 - 1 / m) * (1 << 16))
    truth, drawn = "hash(8 * i)", f"hash(8 * i + {place})"
    code = f"CASE WHEN ({drawn} >> 16) % 65536 < {keep} THEN {truth} % {m} ELSE ({drawn} >> 40) % {m} END"
    return f"{list(CATEGORIES)}[1 + CAST({code} AS BIGINT)]"


def write_long(wide: Path, votes: Path, items: Path) -> tuple[Path, Path]:
    """Write the same votes a row each, and the suggested labels in a table of items."""
    with duckdb.connect() as connection:
        rows = connection.read_parquet(str(wide))
        rows.create_view("rows")
        each = f"UNPIVOT rows ON {', '.join(VOTES)} INTO NAME annotator VALUE label"
        connection.sql(f"SELECT item, annotator, label FROM ({each})").write_parquet(str(votes))
        rows.project("item, suggested").write_parquet(str(items))
    return votes, items


def wide_kappa(data: Any) -> Kappa:
    """Return the kappa of a table in wide format."""
    return dh_kappa(data, suggested="suggested", annotators="ann_*")


def long_kappa(votes: Any, items: Any) -> Kappa:
    """What is timed where a row is a vote."""
    return dh_kappa(votes, suggested="suggested", item="item", label="label", annotator=None, items=items)


def by_hand(query: str, *files: Path) -> Rows:
    """Run a query in a DuckDB of its own."""
    with duckdb.connect() as connection:
        return connection.execute(query, [str(file) for file in files]).fetchall()


def take_turns(
    calls: Sequence[Callable[[], Any]], rounds: int, most_seconds: float = math.inf
) -> tuple[list[float], list[Any]]:
    """Shortest time of each call in seconds, the calls taking turns, and what each gave at last.

    No round begins after `most_seconds`.
    """
    best, given = [math.inf] * len(calls), [None] * len(calls)
    end = perf_counter() + most_seconds
    for done in range(rounds):
        if done and perf_counter() > end:
            break
        for place, call in enumerate(calls):
            took, given[place] = timed(lambda call: call(), call)
            best[place] = min(best[place], took)
    return best, given


def file_goals(n: int, rounds: int) -> Iterator[Goal]:
    """Measure one file of n items in both layouts, and ten times the items, in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as name:
        folder = Path(name)
        wide = write_wide(folder / "wide_0.parquet", range(n))
        where = f"n={power(n)}, N={len(VOTES)}, m={len(CATEGORIES)}, labels as text"
        ours, theirs = partial(wide_kappa, str(wide)), partial(by_hand, WIDE, wide)
        yield _hand_goal(f"{where}, one Parquet file", ours, theirs, rounds, _counts_of_votes)
        peak = _peak(wide)
        text = f"{where}, one Parquet file: peak resident memory of a fresh process at most 500 MiB"
        yield Goal(text, _told(peak), None if peak is None else peak <= 500)
        long = write_long(wide, folder / "votes.parquet", folder / "items.parquet")
        ours, theirs = partial(long_kappa, *map(str, long)), partial(by_hand, LONG, *long)
        yield _hand_goal(f"{where}, long format", ours, theirs, min(rounds, 3), _counts)
        for path in long:
            path.unlink()
        yield from _growth_goals(n, wide, peak, min(rounds, 2))


def _hand_goal(
    where: str, kappa: Callable[[], Kappa], query: Callable[[], Rows], rounds: int, read: Callable[[Rows], Counts]
) -> Goal:
    (ours, theirs), (found, rows) = take_turns([kappa, query], rounds)
    if _counts_of_kappa(found) != read(rows):
        raise WrongValueError(f"dh_kappa and the hand-written query count differently: {where}")
    measured = f"{ours / theirs:.2f} x ({ours:.2f} against {theirs:.2f} s)"
    return Goal(f"{where}: at most 1.3 x a hand-written DuckDB query", measured, ours <= 1.3 * theirs)


def _growth_goals(n: int, wide: Path, peak: float | None, rounds: int) -> Iterator[Goal]:
    """Compare several files with one."""
    for piece in range(1, TIMES_MORE):
        write_wide(wide.with_name(f"wide_{piece}.parquet"), range(piece * n, (piece + 1) * n))
    every = wide.with_name("wide_*.parquet")
    (one, all_of_them), (_, kappa) = take_turns([partial(wide_kappa, str(path)) for path in (wide, every)], rounds)
    if kappa.n_items != TIMES_MORE * n:
        raise WrongValueError(f"dh_kappa used {kappa.n_items} of {TIMES_MORE * n} items")
    where = f"n={power(TIMES_MORE * n)}, {TIMES_MORE} such files"
    yield Goal(
        f"{where}: at most 10.5 x the time of one",
        f"{all_of_them / one:.2f} x ({all_of_them:.2f} against {one:.2f} s)",
        all_of_them <= 10.5 * one,
    )
    more = _peak(every)
    text = f"{where}: no more memory than one, where {NO_MORE - 1:.0%} more is no more"
    if peak is None or more is None:
        yield Goal(text, _told(None), None)
    else:
        yield Goal(text, f"{more / peak:.2f} x ({_told(more)} against {_told(peak)})", more <= NO_MORE * peak)


def _counts_of_kappa(kappa: Kappa) -> Counts:
    """How many items have a suggested label and these votes by category, as dh_kappa found them."""
    patterns = kappa.sample.patterns
    labels = [kappa.categories[code] for code in patterns.code]
    found: Counts = Counter()
    for row, code in enumerate(patterns.suggested):
        own = slice(patterns.start[row], patterns.start[row + 1])
        votes = dict(zip(labels[own], patterns.votes[own].tolist(), strict=True))
        found[kappa.categories[code], tuple(votes.get(label, 0) for label in CATEGORIES)] += int(patterns.items[row])
    return found


def _counts_of_votes(rows: Rows) -> Counts:
    """The same of rows with a label, votes, and the number of items."""
    found: Counts = Counter()
    for suggested, *votes, items in rows:
        found[suggested, tuple(map(votes.count, CATEGORIES))] += items
    return found


def _counts(rows: Rows) -> Counts:
    """The same of rows with a label, counts by category, and the number of items."""
    return Counter({(suggested, tuple(counts)): items for suggested, *counts, items in rows})


def _peak(path: Path) -> float | None:
    """Peak resident memory in MiB of a fresh process that does nothing else; None if unknown."""
    command = [sys.executable, str(Path(__file__)), str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(told[0]) / 1024 if told else None


def _told(peak: float | None) -> str:
    return "not known" if peak is None else f"{peak:.0f} MiB"


if __name__ == "__main__":
    wide_kappa(sys.argv[1])
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    print(*(line.split()[1] for line in lines if line.startswith("VmHWM:")))
