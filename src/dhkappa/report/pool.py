"""Shares of a pool as tables of text, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dhkappa.errors import flag, said
from dhkappa.report import filter_texts, text_of
from dhkappa.report.markdown import bullets, escaped, markdown_table

if TYPE_CHECKING:
    from dhkappa.errors import Problem
    from dhkappa.stats.pool_result import PoolShares

_NUMBERS = ("share", "count", "pool", "items", "wrong")


def pool_cells(found: PoolShares) -> tuple[list[str], list[list[str]], list[bool]]:
    """Return heads, cells, and which columns hold numbers."""
    table = found.listed()
    rows = [
        [f"{value:,}" if isinstance(value, int) and name in _NUMBERS else text_of(value) for name, value in row.items()]
        for row in table
    ]
    return list(table.names), rows, [name in _NUMBERS for name in table.names]


def pool_notes(found: PoolShares) -> list[str]:
    """Return the notes, without those on filters."""
    return [said(note.message, note.hint, flag) for note in found.notes if note.code != "filtered"]


def pool_page(found: PoolShares, problems: Iterable[Problem]) -> str:
    """Return shares of a pool as Markdown."""
    parts = ["## Shares of the pool", *map(escaped, filter_texts(found.notes))]
    said_first = (one for one in problems if one.severity != "info" and not one.accepted)
    parts += [f"> **{one.severity.capitalize()}:** {escaped(one.text(flag))}" for one in said_first]
    parts += [f"**{escaped(found.summary)}**", markdown_table(pool_cells(found))]
    notes = pool_notes(found)
    return "\n\n".join([*parts, *(["### Notes", bullets(notes)] if notes else [])]) + "\n"
