"""The text of an item in the HTML report: long text is folded, and a web address is a link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dhkappa.errors import visible
from dhkappa.report import one_line, text_of

_SHORT = 160  # characters that are shown of folded text
_LONGEST = 5_000  # characters that the report contains of a text
_LONGEST_LINK = 2_000
_LINK = re.compile("https?://[0-9A-Za-z][!#-;=?-_a-z~]*", re.IGNORECASE)  # no quotes, angle brackets, spaces


@dataclass(frozen=True, slots=True)
class ItemText:
    """A text to show.

    Attributes
    ----------
    short : the text on one line, or its beginning if it is folded
    lines : all lines of folded text, else empty
    link : the web address that the text is, else empty
    """

    short: str
    lines: tuple[str, ...] = ()
    link: str = ""


def item_text(value: Any) -> ItemText:
    """Return how to show the text of an item; line breaks are kept, and other control characters are escaped."""
    if not isinstance(value, str):
        return ItemText(text_of(value))
    if len(value) <= _LONGEST_LINK and _LINK.fullmatch(value):
        return ItemText(text_of(value), link=value)
    if len(value) <= _SHORT:
        return ItemText(one_line(value))
    lines = tuple(map(visible, value[:_LONGEST].splitlines()))
    if len(value) > _LONGEST:
        lines = (*lines, f"… ({len(value):,} characters in all; dhkappa review writes them)")
    return ItemText(one_line(value, _SHORT), lines)
