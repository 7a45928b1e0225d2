"""A small simulated data set: support tickets, a keyword rule and an LLM, and people who vote on some of them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from io import StringIO

import numpy as np

from dhkappa.errors import DataError
from dhkappa.stats.simulate import simulate
from dhkappa.writing import write_whole

CATEGORIES = ("billing", "bug", "how-to", "outage", "other")
ANNOTATORS = {"ada": 0.95, "ben": 0.9, "chloe": 0.9, "dev": 0.85, "eli": 0.45}
LABELERS = {"suggested_rule": 0.65, "suggested_llm": 0.9}
CARELESS = "eli"
FILES = ("annotations.csv", "items.csv", "report.html")
_SKIPPED = 0.25  # of votes


def check_folder(folder: str) -> None:
    """Refuse to write over a file that a demo has not written: it writes both files of data."""
    there = [name for name in FILES if os.path.exists(os.path.join(folder, name))]
    if there and not {*FILES[:2]} <= {*there}:
        raise DataError(
            f"{folder!r} has a file {there[0]!r}, which the demo would write over: name another folder with -o."
        )


def write_demo(folder: str, items: int, seed: int) -> tuple[str, str]:
    """Write annotations.csv (a vote a row) and items.csv (a ticket a row), and return their paths."""
    drawn = simulate(
        items,
        categories=CATEGORIES,
        prevalence=[4, 3, 3, 1, 2],
        annotators=list(ANNOTATORS.values()),
        labelers=LABELERS,
        missing=_SKIPPED,
        rng=np.random.default_rng(seed),
    )
    names = [f"T-{place:0{len(str(items))}d}" for place in range(1, items + 1)]
    votes = [
        (name, annotator, label)
        for name, row in zip(names, drawn.votes.tolist(), strict=True)
        for annotator, label in zip(ANNOTATORS, row, strict=True)
        if label is not None
    ]
    suggested = zip(names, *(labels.tolist() for labels in drawn.suggested.values()), strict=True)
    paths = os.path.join(folder, FILES[0]), os.path.join(folder, FILES[1])
    write_whole(paths[0], _sheet(("item", "annotator", "label"), votes), "demo data")
    write_whole(paths[1], _sheet(("item", *LABELERS), suggested), "demo data")
    return paths


def _sheet(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return file.getvalue()
