"""Shares of a pool as a table of text, and their notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dhkappa.errors import flag, said
from dhkappa.report import text_of

if TYPE_CHECKING:
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
