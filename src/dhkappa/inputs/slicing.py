"""Columns that make slices, as the engine groups by them: checked, and dates without their time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core.dates import ISO, is_iso_date
from dhkappa.core.slice_names import Cut, plain_value
from dhkappa.errors import DataError, counted
from dhkappa.inputs.backends import Frame, Query

MOST_SLICES = 100_000
_DAY = "1d"


@dataclass(frozen=True, slots=True)
class Slicing:
    """The columns that make slices together, with the roles ``slices_0``, ``slices_1``, ... in a query."""

    cuts: tuple[Cut, ...]
    dates: tuple[bool, ...]  # whether text or times with a zone are cut to the date, by column

    @classmethod
    def of(cls, frame: Frame, cuts: Sequence[Cut]) -> Slicing:
        """Find which columns are cut to dates in the engine; refuse columns with too many values."""
        dates: list[bool] = []
        for cut in cuts:
            own, _ = frame.pick({"slices_0": cut.column})
            zoned = _is_zoned(own.collect_schema()["slices_0"])
            found = cls((cut,), (_can_cut(own) if zoned else _holds_dates(frame, own),))
            dates += found.dates
            if zoned and not found.dates[0]:  # the instants become days after they are fetched
                continue
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
            elif _is_zoned(schema[role]):
                new[role] = _utc_day(role) if is_date else column
            elif isinstance(schema[role], nw.Datetime):
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


def _is_zoned(dtype: Any) -> bool:
    return isinstance(dtype, nw.Datetime) and dtype.time_zone is not None


def _utc_day(role: str) -> nw.Expr:
    return nw.col(role).dt.convert_time_zone("UTC").dt.replace_time_zone(None).dt.truncate(_DAY)


def _can_cut(own: Query) -> bool:
    """Tell whether the engine can convert times to UTC: DuckDB only where its connection is in UTC, Ibis never."""
    try:
        own.with_columns(slices_0=_utc_day("slices_0")).collect_schema()
    except NotImplementedError:
        return False
    return True


def _holds_dates(frame: Frame, own: Query) -> bool:
    """Tell whether a column holds text that is a date in every row, where it is not missing."""
    column = nw.col("slices_0")
    if own.collect_schema()["slices_0"] != nw.String:
        return False
    known = own.filter(~column.is_null() & (column != ""))
    odd = known.with_columns(odd=nw.when(column.str.contains(ISO)).then(nw.lit(0)).otherwise(nw.lit(1)))
    found = frame.fetch(odd.select(n=nw.len(), odd=nw.col("odd").sum()))
    if not found["n"][0] or found["odd"][0]:
        return False
    days = known.select(slices_0=column.str.slice(0, 10)).unique().head(MOST_SLICES + 1)
    return all(map(is_iso_date, frame.fetch(days)["slices_0"]))
