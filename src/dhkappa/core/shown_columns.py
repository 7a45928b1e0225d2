"""Columns of the items, such as their text, that tables of items show after the name of the item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dhkappa.core.labels import SourceNote
from dhkappa.table import Table

_TAKEN = ("agreement", "new_label", "why")  # columns that may be added to a table of items


@dataclass(frozen=True, eq=False)
class ShownColumns:
    """Columns of the items to show, and how their values are fetched."""

    names: tuple[str, ...]  # of the columns, as in the data
    fetch_values: Callable[[Sequence[Any]], Mapping[Any, Sequence[Any]]]  # values of the columns by name of the item
    notes: tuple[SourceNote, ...] = ()  # about the names of the items and about these columns
    _known: dict[Any, Sequence[Any]] = field(default_factory=dict, repr=False)

    def fetch(self, items: Sequence[Any]) -> dict[str, list[Any]]:
        """Return the values of each column for some items; None if missing."""
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        if new and self.names:
            self._known.update(self.fetch_values(new))
        absent = (None,) * len(self.names)
        rows = [self._known.get(item, absent) for item in items]
        return {name: [row[place] for row in rows] for place, name in enumerate(self.names)}


def free_names(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return names for shown columns next to others: one that is ``taken``, in any case, gets the prefix ``item_``."""
    used = {name.casefold() for name in taken}
    found = []
    for name in names:
        while name.casefold() in used:
            name = f"item_{name}"
        used.add(name.casefold())
        found.append(name)
    return found


def with_item_columns(table: Table, shown: ShownColumns | None) -> Table:
    """Return a table with the shown columns after its column ``item``."""
    if shown is None or not shown.names or "item" not in table.names:
        return table
    found = shown.fetch(table.column("item")).values()
    added = dict(zip(free_names(shown.names, (*table.names, *_TAKEN)), found, strict=True))
    columns: dict[str, list[Any]] = {}
    for name in table.names:
        columns[name] = table.column(name)
        columns |= added if name == "item" else {}
    return Table(columns, table.title, shown=tuple(added))
