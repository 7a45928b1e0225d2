"""A table as CSV that a spreadsheet opens and does not run."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

from dhkappa.table import Table

_STARTS = "=+-@＝＋－＠"  # noqa: RUF001
_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)


def sheet_of(table: Table, *, safe: bool = True) -> str:
    """Write a table as CSV; NaN and None are empty.

    With ``safe``, a text that a spreadsheet would take for a formula gets an apostrophe in front. Numbers stay numbers.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)  # texts may hold other separators
    writer.writerow([_cell(name, safe) for name in table.names])
    for row in table:
        writer.writerow([_cell(value, safe) for value in row.values()])
    return file.getvalue()


def _cell(value: Any, safe: bool) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return value
    text = str(value).replace("\0", "\N{SYMBOL FOR NULL}")
    first = next((sign for sign in text if sign.isprintable() and not sign.isspace() and sign != "\ufeff"), "")
    runs = first and first in _STARTS and not _NUMBER.fullmatch(text)
    return f"'{text}" if safe and runs else text
