"""Names of slices: the values of a column as text, and dates by day, week or month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np

from dhkappa.core.dates import is_iso_date
from dhkappa.core.labels import check_lookalikes, natural_key
from dhkappa.errors import DataError, invalid, shown

UNITS = ("day", "week", "month")
MISSING = "(missing)"
"""Name of the slice of items without a value."""
_MOST_DAYS = 60  # with more, dates are grouped by month


@dataclass(frozen=True, slots=True)
class Cut:
    """A column by which items are grouped, and the unit of its dates; None if it is not given."""

    column: str
    unit: str | None = None


def parse_cut(text: str) -> Cut:
    """Return the column and the unit of ``created:week``; without a unit only the column."""
    column, _, unit = text.rpartition(":")
    return Cut(column, unit) if column and unit in UNITS else Cut(text)


def check_unit(unit: Any, column: str) -> str | None:
    """Return a unit of dates, or raise DataError."""
    if unit is None or (isinstance(unit, str) and unit in UNITS):
        return unit
    message = f"Unknown unit {shown([unit])} for column {column!r}."
    raise invalid("slices", message, code="invalid-option", hint=f"Use one of {shown(UNITS)}.")


def sort_key(row: tuple[str | None, ...]) -> list[Any]:
    """Return what slices are sorted by: missing values last, 3 before 10."""
    return [
        (2, 0) if text is None else (0, int(text)) if len(text) < 18 and text.isdecimal() else (1, natural_key(text))
        for text in row
    ]


def plain_value(value: Any) -> Any:
    """Return a value as text, an integer, a float, a boolean or None; dates as ISO text, enum members by name."""
    if _is_missing(value):
        return None
    if isinstance(value, (date, np.datetime64)):
        return _day(value, "").isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, int, float)) and not isinstance(value, Enum) else _text(value)


def shown_slice(text: str | None, ambiguous: bool, several: bool = False) -> str:
    """Return the name of a slice, or a part of it if there are ``several``.

    Text is quoted if it could be mistaken: ``(missing)``, quoted text, outer spaces, and commas in parts.
    """
    if text is None:
        return MISSING
    odd = text != text.strip() or (text[0] in "'\"" and text[0] == text[-1])
    return repr(text) if odd or (ambiguous and text == MISSING) or (several and "," in text) else text


def named_values(cut: Cut, values: Sequence[Any]) -> tuple[list[str | None], str | None, bool]:
    """Return the names of values, None if missing, the unit if they are dates, and whether it was chosen here."""
    known = [None if _is_missing(value) else value for value in values]
    present = [value for value in known if value is not None]
    if cut.unit is None and not (present and all(map(_is_date, present))):
        texts = [value for value in present if isinstance(value, str)]
        check_lookalikes([*texts, *(value for value in present if type(value) is int)])
        if all(isinstance(value, bool) or str(value).lower() in ("true", "false") for value in present):
            return [None if value is None else str(value).lower() for value in known], None, False
        return [None if value is None else _text(value) for value in known], None, False
    days = {value: _day(value, cut.column) for value in present}
    unit = cut.unit or ("month" if len({*days.values()}) > _MOST_DAYS else "day")
    names = {value: _of_unit(day, unit) for value, day in days.items()}
    return [None if value is None else names[value] for value in known], unit, cut.unit is None


def _is_missing(value: Any) -> bool:
    """Tell whether a value is None, empty text, or the NaN, NA or NaT of some library."""
    return value is None or value == "" if isinstance(value, str) or value is None else _is_nan(value)


def _is_nan(value: Any) -> bool:
    try:
        return bool(value != value)
    except TypeError:  # the NA of pandas has no truth
        return True
    except ValueError:  # an array, which cannot name a slice
        return False


def _is_date(value: Any) -> bool:
    return isinstance(value, (date, np.datetime64)) or (isinstance(value, str) and is_iso_date(value))


def _day(value: Any, column: str) -> date:
    """Return the day of a date, of a time or of ISO text: of times with a zone in UTC, of text as it is written."""
    try:
        if isinstance(value, np.datetime64):
            value = str(value.astype("datetime64[D]"))
        if isinstance(value, datetime):
            return (value if value.tzinfo is None else value.astimezone(UTC)).date()
        if isinstance(value, date):
            return value
        if _is_date(value):
            return date.fromisoformat(value[:10])
    except (ValueError, OverflowError):
        pass
    message = f"Column {column!r} holds {shown([value])}, which is not a date."
    hint = "Write dates as 2026-11-09, or leave out the unit in $slices."
    raise DataError(message, code="not-a-date", parameter="slices", hint=hint)


def _of_unit(day: date, unit: str) -> str:
    """Return the name of the day, of its week (the Monday of the ISO week) or of its month."""
    if unit == "month":
        return day.isoformat()[:7]
    return (day - timedelta(days=day.weekday()) if unit == "week" else day).isoformat()


def _text(value: Any) -> str:
    """Return a value as the name of a slice: whole numbers without a decimal point, enum members by name."""
    if isinstance(value, Enum) and not isinstance(value, (str, int)):
        return value.name
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray)):
        message = f"slices holds {shown([value])}, which cannot name a slice."
        raise invalid("slices", message, code="not-a-label", hint="Use text, numbers, booleans or dates.")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
