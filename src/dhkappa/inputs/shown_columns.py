"""Fetch columns of the items of a table, such as their text, for the items that a result lists.

Rows are found by the name of the item or, without a column of names, by their position. Nothing is fetched before a
result lists items, and then only their rows, unless many are asked for and the table is in memory or a file: reading it
once is faster than once for every thousand items.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import LIST_MARK, SourceNote
from dhkappa.core.shown_columns import ShownColumns
from dhkappa.errors import DataError, counted
from dhkappa.inputs.aggregate import names_of_whole
from dhkappa.inputs.backends import SHOWN, Frame, Query, is_empty, kind_in
from dhkappa.inputs.tables import VoteTable, cast_items
from dhkappa.resources import need

_CHUNK = 1_000  # items of one query
_VALUE = 512  # bytes of a fetched value in Python
_SEVERAL = object()  # values of an item


def shown_columns(table: VoteTable, read: ItemVotes, named: bool) -> ShownColumns:
    """Return the columns to show for the items of ``read``; ``named`` tells whether the user named them.

    Columns that were not named are left out, with a note, if they cannot be read or vary within an item.
    """
    parts: list[_Part] = []
    notes: list[SourceNote] = []
    if table.roles.item is None and table.source.row_names is not None and read.names:
        text = f"No column names the items, so they are named by file and row, the first one {read.names[0]!r}."
        notes.append(SourceNote("items-named-by-row", text))
    for frame in (table.items, table.votes):
        chosen: list[str] = []
        for name in table.shown if frame is not None else ():
            if frame is None or name not in frame.names or any(name in part.names for part in parts):
                continue
            try:
                _Part(table, frame, (name,)).check()
                chosen.append(name)
            except DataError as error:
                if named:
                    raise
                notes.append(SourceNote("column-not-shown", f"Column {name!r} is not shown. {error.message}"))
        if frame is not None and chosen:
            parts.append(_Part(table, frame, tuple(chosen)))
    names = tuple(name for name in table.shown if any(name in part.names for part in parts))
    return ShownColumns(names, partial(_values, parts, names, read), tuple(notes))


def _values(
    parts: Sequence[_Part], names: Sequence[str], read: ItemVotes, items: Sequence[Any]
) -> dict[Any, tuple[Any, ...]]:
    """Return the values of the columns ``names`` by item."""
    found = [(part, part.values(items, read)) for part in parts]
    columns = {name: (rows, part.names.index(name)) for part, rows in found for name in part.names}
    return {
        item: tuple(rows[item][place] if item in rows else None for rows, place in map(columns.__getitem__, names))
        for item in items
    }


@dataclass(frozen=True)
class _Part:
    """Columns to show that one table holds."""

    table: VoteTable
    frame: Frame
    names: tuple[str, ...]

    @property
    def _repeats(self) -> bool:
        """Whether an item may have several rows."""
        return self.table.roles.label is not None and self.frame is self.table.votes

    def pick(self) -> Query:
        """Pick the columns, and the item or the number of the row."""
        roles = {f"{SHOWN}{place}": name for place, name in enumerate(self.names)}
        item = self.table.roles.item
        if item is not None:
            return cast_items(self.table, self.frame.pick({"item": item} | roles)[0])
        frame = self.frame if self.frame.has_row_order or not self.table.source.ordered else self.frame.numbered()
        if not frame.has_row_order:
            message = f"Rows of a table of {frame.engine} have no order, and there is no column with names of items."
            raise DataError(message, code="no-row-order", parameter="item", hint="Name the column of ids with $item.")
        picked = frame.pick(roles, row_number=True)[0]
        return picked.with_columns(item=nw.col("order").cast(nw.Int64) - frame.first_row).drop("order")

    def values(self, items: Sequence[Any], read: ItemVotes) -> dict[Any, list[Any]]:
        """Return the values of the columns by item."""
        if self.table.roles.item is not None:
            return self._by_key(items)
        # Rows of a file that was filtered are found by their places in the whole file.
        names = names_of_whole(self.table) if self.frame.is_filtered else read.names
        known = {} if names is None else {name: place for place, name in enumerate(names)}
        place = {item: known.get(item, item) for item in items}
        found = self._by_key(list(place.values()))
        return {item: found[row] for item, row in place.items() if row in found}

    def _by_key(self, keys: Sequence[Any]) -> dict[Any, list[Any]]:
        """Return the values of the columns by name of the item, or by position."""
        picked, wanted = self.pick(), {key for key in keys if key is not None}
        found: dict[Any, list[Any]] = {}
        for query in self._queries(picked, list(wanted)):
            rows = self.table.ask(query)
            columns = [list(map(plain_value, rows[f"{SHOWN}{place}"])) for place in range(len(self.names))]
            for item, *values in zip(rows["item"], *columns, strict=True):
                if item in wanted:
                    known = found.setdefault(item, values)
                    if known is not values:
                        found[item] = [_known(one, other) for one, other in zip(known, values, strict=True)]
        return {item: [None if value is _SEVERAL else value for value in values] for item, values in found.items()}

    def _queries(self, picked: Query, keys: Sequence[Any]) -> Iterator[Query]:
        """Yield the queries that fetch the rows of some items."""
        whole = self.frame.in_memory or bool(self.table.files.states)
        comparable = kind_in(picked, "item") in ("text", "integer", "boolean")
        comparable = comparable and not any(isinstance(key, str) and "\0" in key for key in keys)
        if not comparable or (whole and len(keys) > _CHUNK):
            if self.frame.checks_memory:
                n = self.table.count_rows(picked)
                need(n * (len(self.names) + 1) * _VALUE, counted(n, "row"))
            yield picked
            return
        for first in range(0, len(keys), _CHUNK):
            yield picked.filter(nw.col("item").is_in(keys[first : first + _CHUNK]))

    def check(self) -> None:
        """Refuse one column that cannot be read, or that has several values for an item."""
        [name], picked, n = self.names, self.pick(), 0
        if self._repeats:
            known = picked.filter(~is_empty(f"{SHOWN}0", kind_in(picked, f"{SHOWN}0") == "text"))
            with suppress(DataError), self.frame.asking():  # values that the engine cannot compare
                n = self.table.count_rows(self.table.repeats(known.unique(), ["item"]))
        if n:
            message = f"Column {self.frame.said(name)} has several values for {counted(n, 'item')}."
            hint = "Write the same value in all rows of an item."
            raise DataError(message, code="item-column-varies", parameter="show", hint=hint)


def _known(one: Any, other: Any) -> Any:
    """Return the only one of two values that is known, or ``_SEVERAL`` if they differ."""
    return other if one is None else one if other is None or one == other else _SEVERAL


def plain_value(value: Any) -> Any:
    """Return a value that every output can hold: text, a number or a boolean; None for missing and empty ones."""
    if isinstance(value, str):
        return value.removeprefix(LIST_MARK).encode("utf-8", "backslashreplace").decode() or None
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace") or None
    if isinstance(value, (Mapping, list, tuple)):
        return plain_value(json.dumps(value, ensure_ascii=False, default=str))
    return plain_value(str(value))
