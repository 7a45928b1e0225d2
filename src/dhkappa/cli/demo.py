"""The data of the demo: simulated support tickets, with votes of five annotators and labels of two labelers."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial

import dhkappa
from dhkappa.errors import invalid, masked

FILES = ("annotations.csv", "items.csv", "report.html")
_ANNOTATORS = {"ada": 0.95, "ben": 0.9, "chloe": 0.9, "dev": 0.85, "eli": 0.45}  # with their accuracies
_CATEGORIES = {"billing": 4, "bug": 3, "how-to": 3, "outage": 1, "other": 2}  # with their prevalence
_LABELERS = {"suggested_rule": 0.65, "suggested_llm": 0.9}


def make_folder(path: str) -> None:
    """Create the folder of a demo, unless the demo would overwrite files that are not its own."""
    if "://" in path or masked(path) != path:
        raise invalid("output", f"{path!r} is not a folder.", code="output-not-folder")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        message = f"Cannot create folder {path!r}: {error.strerror or error}."
        raise invalid("output", message, code="output-not-folder") from None
    there = [name for name in FILES if os.path.exists(os.path.join(path, name))]
    starts = {
        FILES[0]: f"item,annotator,label\nT-0*[1-9][0-9]*,({'|'.join(_ANNOTATORS)}),",
        FILES[1]: f"item,{','.join(_LABELERS)}\nT-0*1,",
    }
    if there and not all(_starts(os.path.join(path, name), start) for name, start in starts.items()):
        message = f"Folder {path!r} contains a file {there[0]!r} that is not from a demo."
        raise invalid("output", message, code="output-exists", hint="Choose another folder with $output.")


def _starts(path: str, pattern: str) -> bool:
    """Tell whether a text file starts with a pattern."""
    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return re.match(pattern, file.read(200)) is not None
    return False


def write_demo(folder: str, items: int, seed: int) -> None:
    """Write annotations.csv, with one row per vote, and items.csv, with one row per ticket."""
    from dhkappa.paths import write_file

    prevalence, annotators = list(_CATEGORIES.values()), list(_ANNOTATORS.values())
    draw = partial(dhkappa.simulate, categories=_CATEGORIES, labelers=_LABELERS, missing=0.25, rng=seed)
    drawn = draw(items, prevalence=prevalence, annotators=annotators)
    names = [f"T-{place:0{len(str(items))}d}" for place in range(1, items + 1)]
    votes = [
        (name, annotator, label)
        for name, row in zip(names, drawn.votes.tolist(), strict=True)
        for annotator, label in zip(_ANNOTATORS, row, strict=True)
        if label is not None
    ]
    suggested = zip(names, *(labels.tolist() for labels in drawn.suggested.values()), strict=True)
    tables = [("item", "annotator", "label"), *votes], [("item", *_LABELERS), *suggested]
    for file, rows in zip(FILES[:2], tables, strict=True):
        write_file(os.path.join(folder, file), "".join(f"{','.join(row)}\n" for row in rows), "demo data")
