"""What a terminal shows: plain text, at most 80 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dhkappa.stats.notes import text_list
from dhkappa.stats.result import Kappa


def labeler_table(kappas: Mapping[str, Kappa]) -> str:
    """Return a line for each labeler, best first, with the marks to read its kappa by."""
    best_first = sorted(kappas.items(), key=lambda pair: (math.isnan(pair[1].value), -pair[1].value))
    rows = [
        [
            name,
            number(kappa.value),
            _interval(kappa),
            *map(number, (kappa.floor, kappa.ceiling, kappa.fleiss)),
            f"{kappa.n_items:,}",
        ]
        for name, kappa in best_first
    ]
    return columns([["labeler", "kappa_DH", "95% interval", "floor", "ceiling", "Fleiss", "items"], *rows])


def note_lines(kappas: Mapping[str, Kappa]) -> str:
    """Return each note once, wrapped, with the labelers it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, kappa in kappas.items():
        for note in kappa.notes:
            about.setdefault(note.text, []).append(name)
    texts = [text if len(names) == len(kappas) else f"{', '.join(names)}: {text}" for text, names in about.items()]
    return text_list(texts)


def number(value: float) -> str:
    """Write a kappa with three digits."""
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def _interval(kappa: Kappa) -> str:
    low, high = kappa.interval()
    return "none" if math.isnan(low) else f"{number(low)} to {number(high)}"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Line up cells: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )
