"""Dates of audits and tallies, as text in ISO format."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from typing import Any, TypeAlias

from dhkappa.errors import invalid, shown

Date: TypeAlias = str | datetime.date


def check_date(date: Any) -> str:
    """Return a date as text, such as 2026-11-09.

    Examples
    --------
    >>> check_date(datetime.date(2026, 11, 9))
    '2026-11-09'
    """
    with suppress(ValueError, TypeError):  # a day that does not exist, or a missing date of pandas
        if isinstance(date, datetime.date):
            return datetime.date(date.year, date.month, date.day).isoformat()  # without the time
        if isinstance(date, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", date):
            return datetime.date.fromisoformat(date).isoformat()
    raise invalid("date", f"Invalid date: expected a date such as 2026-11-09, got {shown([date])}.")


def today() -> str:
    """Return the date of today."""
    return datetime.date.today().isoformat()  # the date of the user's calendar
