"""Columns that make slices, as the engine groups by them: checked, and dates without their time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core.slice_names import ISO, Cut, plain_value
from dhkappa.errors import DataError, counted
from dhkappa.inputs.backends import Frame, Query

MOST_SLICES = 100_000
_DAY = "1d"


@dataclass(frozen=True, slots=True)
class Slicing:
    """The columns that make slices together, with the roles ``slices_0``, ``slices_1``, ... in a query."""

    cuts: tuple[Cut, ...]
    dates: tuple[bool, ...]  # text that is cut to the date, by column

    @classmethod
    def of(cls, frame: Frame, cuts: Sequence[Cut]) -> Slicing:
        """Find which columns of a table hold dates as text; refuse columns with too many values."""
        dates: list[bool] = []
        for cut in cuts:
            own, _ = frame.pick({"slices_0": cut.column})
            found = cls((cut,), (_holds_dates(frame, own),))
            dates += found.dates
            distinct = found.prepared(own).unique()
            n = int(frame.fetch(distinct.select(n=nw.len()))["n"][0])
            if n > MOST_SLICES:
                message = (
                    f"Column {frame.said(cut.column)} has {counted(n, 'value')}. The limit is {MOST_SLICES:,} slices."
                )
                hint = "Name a column with fewer values, or dates with a unit, such as created:month."
                raise DataError(message, code="too-many-slices", parameter="slices", hint=hint)
        return cls(tuple(cuts), tuple(dates))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(cut.column for cut in self.cuts)

    def prepared(self, frame: Query) -> Query:
        """Write empty text as null, and dates without their time."""
        schema, new = frame.collect_schema(), dict[str, Any]()
        for place, is_date in enumerate(self.dates):
            role = f"slices_{place}"
            if role not in schema:
                continue
            column = nw.col(role)
            if schema[role] == nw.String:
                text = column.str.slice(0, 10) if is_date else column
                new[role] = nw.when(column != "").then(text)
            elif getattr(schema[role], "time_zone", "") is None:  # a time; one with a zone is an instant, not a day
                new[role] = column.dt.truncate(_DAY)
        return frame.with_columns(**new) if new else frame

    @property
    def missing(self) -> str:
        """The text of a row without values."""
        return json.dumps([None] * len(self.cuts))

    def labels(self, rows: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the values of each row as one text, which ``values`` reads."""
        columns = [map(plain_value, rows[f"slices_{place}"]) for place in range(len(self.cuts))]
        return [json.dumps(row) for row in zip(*columns, strict=True)]

    def values(self, labels: Sequence[Any]) -> list[list[Any]]:
        """Return the values of each column for some texts."""
        rows = [json.loads(label) for label in labels]
        return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in self.cuts]


NO_SLICES = Slicing((), ())
"""No columns of slices."""


def _holds_dates(frame: Frame, own: Query) -> bool:
    """Tell whether a column holds text that is a date in every row, where it is not missing."""
    column = nw.col("slices_0")
    if own.collect_schema()["slices_0"] != nw.String:
        return False
    known = own.filter(~column.is_null() & (column != ""))
    odd = known.with_columns(odd=nw.when(column.str.contains(ISO)).then(nw.lit(0)).otherwise(nw.lit(1)))
    found = frame.fetch(odd.select(n=nw.len(), odd=nw.col("odd").sum()))
    return bool(found["n"][0]) and not found["odd"][0]
