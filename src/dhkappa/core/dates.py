"""Dates in text, as in columns of CSV files: which texts are read as dates or times."""

from __future__ import annotations

import re
from datetime import date

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
UTC_ZONE = " ?(?:Z|[+-]00(?::?00)?)"
_CLOCK = "[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"


def date_pattern(zone: str) -> str:
    """Return the pattern of text that is a date, or a date with a time to the nanosecond, followed by a zone."""
    return f"^{DAY}(?:{_CLOCK}{zone})?$"


ISO = date_pattern("(?: ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?))?")
"""Text that is a date, or a date with a time, with or without a zone."""
_ISO = re.compile(ISO)


def is_iso_date(text: str) -> bool:
    """Tell whether text is a date that exists, or a date with a time."""
    if _ISO.match(text) is None:
        return False
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True
