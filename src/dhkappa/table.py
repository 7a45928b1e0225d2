"""Table: named columns of plain values; display of tables and results as text and HTML."""

from __future__ import annotations

import html
import io
import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from operator import gt
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa.errors import DataError, counted, did_you_mean, invalid, shown
from dhkappa.errors import visible as visible

if TYPE_CHECKING:
    from rich.console import JustifyMethod, OverflowMethod
    from rich.table import Table as RichTable

_WIDTH = 100  # without a terminal
_NARROWEST = 16  # width down to which text columns are cut
_LINES = 6  # of a cell that is wrapped
_LONGEST_NUMBER = 24
_ROWS = 20
_HTML_ROWS = 60
_GAP = 2
_WIDEST = 60  # width of a column in Excel
_EXCEL_ROWS, _EXCEL_TEXT = 1 << 20, 32_767  # rows of a sheet, characters of a cell
_NOT_TEXT = (list, dict, np.ndarray, bytes, timedelta)
_FORMULA = "=+-@＝＋－＠"  # noqa: RUF001
_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)


class Table:
    """Columns of equal length, read only.

    Parameters
    ----------
    columns
        Values by column name: text, numbers, booleans, None. NumPy scalars become Python scalars.
    title
        Line to show above the table.
    shown
        Those of the columns that are columns of the data, such as the text of an item.

    Examples
    --------
    >>> table = Table({"category": ["cat", "dog"], "items": [12, 7], "kappa": [0.81234, float("nan")]})
    >>> table
    category  items  kappa
    cat          12  0.812
    dog           7      -
    >>> table.column("items")
    [12, 7]
    >>> [row["category"] for row in table if row["items"] > 10]
    ['cat']
    """

    __slots__ = ("_columns", "_shown", "_title")

    def __init__(self, columns: Mapping[str, Iterable[Any]], title: str = "", *, shown: Iterable[str] = ()) -> None:
        self._columns = {
            name: tuple(values.tolist())
            if isinstance(values, np.ndarray) and values.dtype != object
            else tuple(value.item() if isinstance(value, np.generic) else value for value in values)
            for name, values in columns.items()
        }
        self._title, self._shown = title, tuple(shown)
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name!r} has {length:,}" for name, length in lengths.items())
            raise invalid("columns", f"Columns have different numbers of values: {found}.", code="length-mismatch")

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(self._columns)

    @property
    def title(self) -> str:
        """The line above the table; may be empty."""
        return self._title

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that are columns of the data, such as the text of an item."""
        return self._shown

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self._columns.values(), strict=True):
            yield dict(zip(self._columns, values, strict=True))

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        if name not in self._columns:
            message = f"Column {shown([name])} not found. Columns: {', '.join(self._columns)}."
            raise invalid("name", message + did_you_mean(name, self._columns), code="column-not-found")
        return list(self._columns[name])

    def where(self, holds: Callable[[dict[str, Any]], bool]) -> Table:
        """Return the rows for which a condition holds."""
        kept = [row for row in self if holds(row)]
        return Table({name: [row[name] for row in kept] for name in self.names}, self._title, shown=self._shown)

    def head(self, n: int | None) -> Table:
        """Return the first ``n`` rows; all if it is None."""
        return Table({name: values[:n] for name, values in self._columns.items()}, self._title, shown=self._shown)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict per row."""
        return list(self)

    def to_json(self) -> list[dict[str, Any]]:
        """Return one dict per row, ready for JSON: NaN becomes None."""
        return [{name: plain(value) for name, value in row.items()} for row in self]

    def to_csv(self, path: str | os.PathLike[str] | None = None, *, safe: bool = True) -> str:
        """Return the table as CSV, and write it to a file if a path is given; NaN and None are empty.

        Parameters
        ----------
        path
            File to write, as UTF-8.
        safe
            Put an apostrophe before text that a spreadsheet would run as a formula. Numbers stay numbers.

        Examples
        --------
        >>> print(Table({"label": ["=1+1", "a"], "n": [1, 2]}).to_csv(), end="")
        "label","n"
        "'=1+1",1
        "a",2
        """
        import csv  # takes time

        _check_written(self)
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)  # text may hold other separators
        writer.writerow([_csv_cell(name, safe) for name in self.names])
        for row in self:
            writer.writerow([_csv_cell(value, safe) for value in row.values()])
        if path is not None:
            from dhkappa.paths import write_file

            write_file(path, file.getvalue(), "table")
        return file.getvalue()

    def to_excel(self, path: str | os.PathLike[str]) -> None:
        """Write the table to an Excel file; NaN and None are empty cells, and text is never run as a formula.

        Parameters
        ----------
        path
            File to write, such as ``"review.xlsx"``.
        """
        from dhkappa.paths import write_file

        write_file(path, workbook(self), "table")

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        pandas = library("pandas", "to_pandas()", "'dhkappa[pandas]'")
        return pandas.DataFrame({name: list(values) for name, values in self._columns.items()})

    def to_polars(self) -> Any:
        """Return a Polars DataFrame; a column with labels of several types becomes text."""
        polars = library("polars", "to_polars()", "'dhkappa[polars]'")
        return polars.DataFrame({name: _one_type(values) for name, values in self._columns.items()})

    def to_arrow(self) -> Any:
        """Return a PyArrow table; a column with labels of several types becomes text."""
        pyarrow = library("pyarrow", "to_arrow()", "pyarrow")
        return pyarrow.table({name: _one_type(values) for name, values in self._columns.items()})

    def _cells(self, limit: int) -> tuple[list[str], list[list[str]], list[bool], int]:
        """Return heads, rows, which columns are numbers, and how many rows are hidden; columns of None are left out."""
        half, hidden = limit // 2, max(len(self) - limit, 0)
        used = {
            name: values[:half] + values[half + hidden :]
            for name, values in self._columns.items()
            if not values or any(value is not None for value in values)
        }
        kinds = [{type(value) for value in values if value is not None} for values in used.values()]
        numbers = [bool(kind) and kind <= {int, float} for kind in kinds]
        texts = ([_text(value, name.startswith("pvalue")) for value in values] for name, values in used.items())
        rows = [list(row) for row in zip(*texts, strict=True)]
        return [visible(name) for name in used], rows, numbers, hidden

    def __repr__(self) -> str:
        from rich.console import Console

        heads, rows, numbers, hidden = self._cells(_ROWS)
        width = max(shutil.get_terminal_size((_WIDTH, 24)).columns, 40)
        lines = [visible(self._title)] if self._title else []
        left_out: list[str] = []
        if heads:
            table, left_out = text_table(heads, rows, numbers, width=width)
            file = io.StringIO()
            Console(file=file, width=width, color_system=None, legacy_windows=False).print(table)
            lines += [line.rstrip() for line in file.getvalue().splitlines()]
        if hidden:
            lines.insert(len(lines) - len(rows) // 2, "...")
            lines.append(f"[{counted(len(self), 'row')}, {hidden:,} not shown]")
        elif not rows:
            lines.append("[no rows]")
        if left_out:
            lines.append(f"[columns not shown: {', '.join(left_out)}]")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads, rows, numbers, hidden = self._cells(_HTML_ROWS)
        sides = ["right" if number else "left" for number in numbers]

        def line(tag: str, cells: list[str]) -> str:
            aligned = zip(cells, sides, strict=True)
            return "".join(f"<{tag} style='text-align:{side}'>{html.escape(cell)}</{tag}>" for cell, side in aligned)

        body = [line("td", row) for row in rows]
        if hidden:
            cut = f"<td colspan='{len(heads)}'>{counted(len(self), 'row')}, {hidden:,} not shown</td>"
            body.insert(len(rows) // 2, cut)
        caption = f"<caption>{html.escape(visible(self._title))}</caption>" if self._title else ""
        lines = "".join(f"<tr>{row}</tr>" for row in body)
        return f"<table>{caption}<thead><tr>{line('th', heads)}</tr></thead><tbody>{lines}</tbody></table>"


class Display:
    """Mixin that gives a result its text and its HTML display.

    ``_display`` returns the parts to show: text (a paragraph), tables, and lists of text (shown with bullets). By
    default it is the ``__repr__`` that a class defines. A dataclass without one is declared with ``repr=False``.
    """

    __slots__ = ()

    def _display(self) -> Iterable[str | Table | Sequence[str]]:
        return [repr(self)]

    def __repr__(self) -> str:
        return "\n".join(filter(None, map(_part_text, self._display())))

    def _repr_html_(self) -> str:
        return "".join(map(_part_html, self._display()))


def _part_text(part: str | Table | Sequence[str]) -> str:
    if isinstance(part, Table):
        return repr(part)
    if isinstance(part, str):
        return fill(visible(part), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(fill(visible(text), 80, initial_indent="- ", subsequent_indent="  ") for text in part)


def _part_html(part: str | Table | Sequence[str]) -> str:
    if isinstance(part, Table):
        return part._repr_html_()
    if isinstance(part, str):
        return f"<p>{html.escape(visible(part))}</p>"
    return f"<ul>{''.join(f'<li>{html.escape(visible(text))}</li>' for text in part)}</ul>" if part else ""


def text_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    *,
    width: int,
    narrowest: int = _NARROWEST,
    overflow: OverflowMethod = "ellipsis",
    wrapped: Collection[str] = (),
) -> tuple[RichTable, list[str]]:
    """Return a table for a terminal, and the columns that do not fit.

    Heads are broken at underscores, columns are left out from the last, and text is cut, in this order and as far as
    needed. Numbers are not cut. Columns with the heads ``wrapped`` continue on the next line, up to six lines.
    """
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    cells = [max((cell_len(row[place]) for row in rows), default=0) for place in range(len(heads))]
    if sum(map(max, cells, map(cell_len, heads))) + _GAP * (len(heads) - 1) > width:
        heads = [head.replace("_", "_\n") for head in heads]
    head_widths = [max(map(cell_len, head.split("\n"))) for head in heads]
    limits = [_LONGEST_NUMBER if number else narrowest for number in numbers]
    least = [max(min(cell, limit), head) for cell, limit, head in zip(cells, limits, head_widths, strict=True)]
    kept = len(heads)
    while kept > 2 and sum(least[:kept]) + _GAP * (kept - 1) > width:
        kept -= 1
    widths = [min(max(pair), width) for pair in zip(cells[:kept], head_widths, strict=False)]
    while sum(widths) + _GAP * (kept - 1) > width and any(map(gt, widths, least)):
        widths[max(range(kept), key=lambda place: (widths[place] > least[place], widths[place]))] -= 1
    table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    wraps = [head in wrapped for head in heads]
    for head, number, space, wrap in zip(heads, numbers, widths, wraps, strict=False):
        justify: JustifyMethod = "right" if number else "left"
        table.add_column(
            Text(head), justify=justify, width=space, no_wrap=not wrap, vertical="top" if any(wraps) else "bottom"
        )
    for row in rows:
        texts = [Text(cell, overflow="fold" if wrap else overflow) for cell, wrap in zip(row, wraps, strict=True)]
        for text, space in zip(texts, widths, strict=False):
            text.truncate(_LINES * space, overflow=overflow)
        table.add_row(*texts[:kept])
    return table, [head.replace("\n", "") for head in heads[kept:]]


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: None for NaN, text for objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else _text(value)


def _text(value: Any, is_pvalue: bool = False) -> str:
    """Format a value: three decimals, a dash for NaN, nothing for None; a p-value of less than 0.001 as such."""
    if isinstance(value, float):
        if is_pvalue and value < 1e-3:
            return "< 0.001"
        fixed = value == 0 or 1e-3 <= abs(value) < 1e6
        return "-" if math.isnan(value) else f"{value:.3f}" if fixed else f"{value:.2g}"
    return "" if value is None else visible(str(value))


def _check_written(table: Table) -> None:
    """Refuse values of which a file of text would hold a description."""
    for name, values in table._columns.items():
        odd = next((value for value in values if isinstance(value, _NOT_TEXT)), None)
        if odd is not None:
            kind = "list" if isinstance(odd, np.ndarray) else type(odd).__name__
            message = f"Column {shown([name])} holds values of type {kind}, which CSV and Excel cannot hold."
            hint = "Leave out the column, or write its values as text or numbers in the data."
            raise DataError(message, code="not-writable", hint=hint)


def _csv_cell(value: Any, safe: bool) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return value
    text = str(value).replace("\0", "\N{SYMBOL FOR NULL}")
    return f"'{text}" if safe and is_formula(text) else text


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet would run a text as a formula."""
    first = next((char for char in text if char.isprintable() and not char.isspace() and char != "\ufeff"), "")
    return bool(first) and first in _FORMULA and not _NUMBER.fullmatch(text)


def workbook(table: Table, text: Collection[str] = ()) -> bytes:
    """Return an Excel file with a bold header that stays in view; all cells of the columns ``text`` are text.

    So are those of columns of the data; their text is cut at the longest that a cell holds.
    """
    writer = library("xlsxwriter", "Writing an Excel file", "'dhkappa[excel]'")
    _check_written(table)
    if len(table) >= _EXCEL_ROWS:
        message = (
            f"The table has {counted(len(table), 'row')}, but an Excel sheet holds {_EXCEL_ROWS - 1:,} and a header."
        )
        raise DataError(message, code="too-many-rows", hint="Write CSV, or fewer rows.")
    file = io.BytesIO()
    own = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = writer.Workbook(file, own)
    book.set_properties({"created": datetime(2000, 1, 1)})  # equal tables give equal files
    sheet, bold, typed = book.add_worksheet(), book.add_format({"bold": True}), book.add_format({"num_format": "@"})
    sheet.freeze_panes(1, 0)
    for place, (name, values) in enumerate(table._columns.items()):
        kept = map(_cut, values) if name in table.shown else values
        as_text = name in text or name in table.shown
        cells = [_excel_cell(value, as_text) for value in (name, *kept)]
        width = min(max(len(str(cell)) for cell in cells[:_WIDTH]) + 2, _WIDEST)
        sheet.set_column(place, place, width, typed if as_text else None)  # what is typed there stays text
        for row, cell in enumerate(cells):
            if isinstance(cell, str):
                sheet.write_string(row, place, cell, None if row else bold)
            elif cell is not None:
                (sheet.write_boolean if isinstance(cell, bool) else sheet.write_number)(row, place, cell)
    book.close()
    return file.getvalue()


def _cut(value: Any) -> Any:
    """Cut text that is too long for a cell of Excel."""
    return f"{value[: _EXCEL_TEXT - 1]}…" if isinstance(value, str) and len(value) > _EXCEL_TEXT else value


def _excel_cell(value: Any, as_text: bool = False) -> Any:
    """Return a value for a cell: integers of more than 15 digits are text, as Excel would round them."""
    from dhkappa.paths import is_unicode

    if isinstance(value, (bool, float)) and math.isfinite(value) and not as_text:
        return value
    if isinstance(value, int) and abs(value) < 10**15 and not as_text:
        return value
    text: str | None = None if value is None else _csv_cell(value, safe=False)
    if text is None:
        return None
    text = str(text)
    if not is_unicode(text):
        raise DataError(
            f"{shown([text])} is not valid Unicode, which Excel needs.", code="not-utf8", hint="Replace it."
        )
    if len(text) > _EXCEL_TEXT:
        message = f"A text has {len(text):,} characters, and a cell of Excel holds {_EXCEL_TEXT:,}: {shown([text])}."
        raise DataError(message, code="text-too-long", hint="Write CSV.")
    return text


def library(name: str, what: str, install: str) -> Any:
    """Import an optional library that ``what`` needs, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        hint = f"Run: pip install {install}"
        raise DataError(f"{what} needs {name}, which is not installed.", code="missing-library", hint=hint) from error


def _one_type(values: tuple[Any, ...]) -> list[Any]:
    """Return values that a typed column can hold: floats if some are, text if types differ otherwise."""
    known = [value for value in values if value is not None]
    kinds = set(map(type, known))
    large = kinds == {int} and any(abs(value) >= 2**63 for value in known)
    if len(kinds) <= 1 and not large:
        return list(values)
    convert = float if kinds == {int, float} else str
    return [None if value is None else convert(value) for value in values]
