"""Time of commands, compared with the import of numpy and duckdb."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import duckdb

from measure import alternate
from table import Goal

# Goals in seconds on an idle machine, where importing numpy and duckdb takes .2 s: .3, .5 beyond Python's start, and 5.
HELP, SCORE, AUDIT = 1.5, 2.6, 25.0


def command_goals(items: int, rounds: int) -> list[Goal]:
    """Time --help, score of so many items and audit of a quarter more, in turns with an import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        votes, counts = _write_votes(folder / "votes.csv", items), _write_counts(folder / "counts.csv", items * 5 // 4)
        command = str(Path(sys.executable).with_name("dhkappa"))
        audit = [command, "audit", str(counts), "--counts", "c0,c1,c2", "-o", str(folder / "report.html")]
        calls = [
            [sys.executable, "-c", "import numpy, duckdb"],
            [command, "--help"],
            [command, "score", str(votes)],
            audit,
        ]
        if find_spec("vl_convert") is None:  # without which there is no report
            calls.pop()
        base, *took = alternate([partial(_run, call) for call in calls], seconds=0, least=rounds)
    names = (
        ("dhkappa --help", HELP),
        (f"dhkappa score of a CSV file with {items:,} items", SCORE),
        (f"dhkappa audit -o, with report, of {items * 5 // 4:,} items and 2 labelers", AUDIT),
    )
    return [
        Goal(
            f"{what}: at most {most} x importing numpy and duckdb",
            f"{seconds / base:.2f} x ({seconds:.2f} against {base:.2f} s)",
            seconds <= most * base,
        )
        for (what, most), seconds in zip(names, took, strict=False)
    ]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _write_votes(path: Path, items: int) -> Path:
    """Write the wide format: three annotators who are right three times in four, and one labeler."""
    votes = [
        f"'c' || CASE WHEN hash(8 * i + {k}) % 4 < 3 THEN hash(i) % 5 ELSE hash(8 * i + {k}) // 4 % 5 END"
        for k in range(4)
    ]
    names = ("suggested_llm", "ann_1", "ann_2", "ann_3")
    columns = ", ".join(f"{vote} AS {name}" for vote, name in zip(votes, names, strict=True))
    return _write(path, f"SELECT i AS item, {columns} FROM range({items}) AS drawn(i)")


def _write_counts(path: Path, items: int) -> Path:
    """Write the wide format: three votes for three categories, counted, and two labelers."""
    labels = ", ".join(f"'c' || hash(3 * i + {k}) % 3 AS suggested_{k}" for k in range(2))
    rest = "(3 - hash(i) % 4) * (hash(7 * i) % 2)"
    counts = f"hash(i) % 4 AS c0, {rest} AS c1, 3 - hash(i) % 4 - {rest} AS c2"
    return _write(path, f"SELECT i AS item, {labels}, {counts} FROM range({items}) AS drawn(i)")


def _write(path: Path, query: str) -> Path:
    with duckdb.connect() as connection:
        connection.sql(query).write_csv(str(path), header=True)
    return path
