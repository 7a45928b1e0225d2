"""Slices of an audit as rows and sentences for text, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from dhkappa.errors import shown
from dhkappa.stats.notes import Note

if TYPE_CHECKING:
    from dhkappa.auditing import Audit
    from dhkappa.stats.annotator_slices import AnnotatorSlices
    from dhkappa.stats.slice_table import Slices

MOST_SHOWN = 12  # slices
SLICE_COLUMNS = "slice items kappa ci share loss minus_others pvalue pvalue_holm grade reason"
"""Columns of a report."""
ANNOTATOR_COLUMNS = "slice annotators n_votes agree_label items kappa ci fleiss"
"""Columns of slices of annotators."""


@dataclass(frozen=True, slots=True)
class ShownSlices:
    """The slices of one column: a heading, the first rows with the columns to show, and sentences below."""

    heading: str
    rows: Sequence[dict[str, Any]]
    columns: str
    texts: Sequence[str]


def slice_rows(found: Slices, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the first rows of the table of slices, and the small slices taken as one, with columns for display."""
    rows = [*islice(found.table, limit), *(found.joined or ())]
    return [{"grade": None, "reason": None, **row, "minus_others": row["difference"]} for row in rows]


def annotator_rows(found: AnnotatorSlices, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the first rows of the table of slices of annotators, with columns for display."""
    rows = islice(found.table, limit)
    return [{"reason": None, **row, "n_votes": row["votes"], "agree_label": row["agree"]} for row in rows]


def slices_shown(audit: Audit, labeler: str) -> Iterator[ShownSlices]:
    """Yield the slices of each column for one labeler, the lowest kappa first."""
    for column in audit.slice_columns:
        found = audit.slices(column, labeler)
        more = len(found.table) - MOST_SHOWN
        texts = [f"({more:,} more; the JSON output has all.)"] if more > 0 else []
        heading = f"Slices of {column} for {labeler}, the lowest kappa first"
        columns = "slice items kappa ci grade minus_others pvalue_holm"
        yield ShownSlices(heading, slice_rows(found, MOST_SHOWN), columns, [*texts, found.summary])
    for column in audit.annotator_columns:
        own = audit.annotator_slices(column, labeler)
        more = len(own.table) - MOST_SHOWN
        texts = [f"({more:,} more; the JSON output has all.)"] if more > 0 else []
        heading = f"Annotators by {column} for {labeler}"
        rows, reasons = annotator_rows(own, MOST_SHOWN), dict[str, list[str]]()
        for row in rows:
            reasons.setdefault(row["reason"] or "", []).append(row["slice"])
        texts += [f"{shown(names)}: {reason}" for reason, names in reasons.items() if reason]
        yield ShownSlices(heading, rows, ANNOTATOR_COLUMNS, [*texts, own.summary])


def slice_notes(audit: Audit, labeler: str) -> list[Note]:
    """Return the notes on all slices of a labeler, each once."""
    return list(dict.fromkeys(_notes(audit, labeler)))


def _notes(audit: Audit, labeler: str) -> Iterable[Note]:
    for column in audit.slice_columns:
        yield from audit.slices(column, labeler).notes
    for column in audit.annotator_columns:
        yield from audit.annotator_slices(column, labeler).notes
