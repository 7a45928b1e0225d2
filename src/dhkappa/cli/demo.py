"""Simulated data for ``dhkappa demo``: support tickets with two labelers and five annotators."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import numpy as np

from dhkappa.errors import DataError
from dhkappa.paths import write_file
from dhkappa.stats.simulate import simulate

CATEGORIES = ("billing", "bug", "how-to", "outage", "other")
ANNOTATORS = {"ada": 0.95, "ben": 0.9, "chloe": 0.9, "dev": 0.85, "eli": 0.45}
LABELERS = {"suggested_rule": 0.65, "suggested_llm": 0.9}
CARELESS = "eli"
FILES = ("annotations.csv", "items.csv", "report.html")
_STARTS = {  # how the files of a demo begin
    FILES[0]: "item,annotator,label\nT-0*[1-9][0-9]*,(" + "|".join(ANNOTATORS) + "),",
    FILES[1]: f"item,{','.join(LABELERS)}\nT-0*1,",
}
_SKIPPED = 0.25  # share of missing votes


def check_folder(folder: str) -> None:
    """Raise an error if the demo would overwrite files that are not its own."""
    there = [name for name in FILES if os.path.exists(os.path.join(folder, name))]
    if there and not all(_is_own(os.path.join(folder, name), start) for name, start in _STARTS.items()):
        raise DataError(
            f"Folder {folder!r} contains a file {there[0]!r} that is not from a demo.",
            code="output-exists",
            parameter="output",
            hint="Choose another folder with $output.",
        )


def _is_own(path: str, start: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return re.match(start, file.read(200)) is not None
    except (OSError, ValueError):
        return False


def write_demo(folder: str, items: int, seed: int) -> tuple[str, str]:
    """Write annotations.csv (one row per vote) and items.csv (one row per ticket), and return their paths."""
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
    write_file(paths[0], _csv([("item", "annotator", "label"), *votes]), "demo data")
    write_file(paths[1], _csv([("item", *LABELERS), *suggested]), "demo data")
    return paths


def _csv(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"{','.join(row)}\n" for row in rows)
