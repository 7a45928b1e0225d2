"""Table: named columns of plain values, that show themselves well and turn into anybody's dataframe."""

from __future__ import annotations

import html
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from textwrap import fill
from typing import Any
from unicodedata import combining, east_asian_width

import numpy as np

from dhkappa.errors import DataError, counted, did_you_mean, shown
from dhkappa.errors import visible as visible

_WIDTH = 100  # where no terminal says otherwise
_NARROWEST = 16  # a column of text is cut no further
_LONGEST_NUMBER = 24  # a longer one is cut like text
_ROWS = 20
_HTML_ROWS = 60
_GAP = "  "
_CUT = "..."


class Table:
    """Columns of the same length, read only.

    Parameters
    ----------
    columns
        Values by column name: text, numbers, booleans, None. NumPy scalars become Python's own.
    title
        One line to show above.

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

    __slots__ = ("_columns", "_title")

    def __init__(self, columns: Mapping[str, Iterable[Any]], title: str = "") -> None:
        self._columns = {name: tuple(map(_plain, values)) for name, values in columns.items()}
        self._title = title
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name!r} has {length:,}" for name, length in lengths.items())
            raise DataError(f"columns must all have the same number of values: {said}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    @property
    def title(self) -> str:
        """The line above the table; may be empty."""
        return self._title

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self._columns.values(), strict=True):
            yield dict(zip(self._columns, values, strict=True))

    def column(self, name: str) -> list[Any]:
        """Return the values of a column, from the first row to the last."""
        if name not in self._columns:
            hint = did_you_mean(name, self._columns)
            raise DataError(f"column {shown([name])} is not in the table. Columns: {', '.join(self._columns)}.{hint}")
        return list(self._columns[name])

    def where(self, holds: Callable[[dict[str, Any]], bool]) -> Table:
        """Return the rows for which something holds."""
        kept = [row for row in self if holds(row)]
        return Table({name: [row[name] for row in kept] for name in self.names}, self._title)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each row."""
        return list(self)

    def to_json(self) -> list[dict[str, Any]]:
        """Return a dict for each row, ready for JSON: NaN is None."""
        return [{name: plain(value) for name, value in row.items()} for row in self]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        pandas = _library("pandas", "dhkappa[pandas]")
        return pandas.DataFrame({name: list(values) for name, values in self._columns.items()})

    def to_polars(self) -> Any:
        """Return a Polars DataFrame; labels of different types in a column become text."""
        polars = _library("polars", "dhkappa[polars]")
        return polars.DataFrame({name: _one_type(values) for name, values in self._columns.items()})

    def to_arrow(self) -> Any:
        """Return a PyArrow table; labels of different types in a column become text."""
        pyarrow = _library("pyarrow", "pyarrow")
        return pyarrow.table({name: _one_type(values) for name, values in self._columns.items()})

    def _shown(self, rows: list[int]) -> list[_Shown]:
        """Return the columns as text, without those that hold nothing but None."""
        return [
            _Shown(name, values, rows)
            for name, values in self._columns.items()
            if not values or any(value is not None for value in values)
        ]

    def __repr__(self) -> str:
        rows, hidden = _ends(len(self), _ROWS)
        columns = self._shown(rows)
        excluded = _narrow(columns, _terminal_width())
        top = max((len(column.heads) for column in columns), default=0)
        lines = [_GAP.join(column.head(line - top) for column in columns) for line in range(top)]
        lines += [_GAP.join(column.cell(place) for column in columns) for place in range(len(rows))]
        if hidden:
            lines.insert(top + len(rows) // 2, _CUT)
            lines.append(f"[{counted(len(self), 'row')}, {hidden:,} not shown]")
        elif not rows:
            lines.append("[no rows]")
        if excluded:
            lines.append(f"[columns not shown: {', '.join(excluded)}]")
        if self._title:
            lines.insert(0, visible(self._title))
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        rows, hidden = _ends(len(self), _HTML_ROWS)
        columns = self._shown(rows)
        head = "".join(f"<th style='text-align:{column.side}'>{html.escape(column.name)}</th>" for column in columns)
        body = [
            "".join(
                f"<td style='text-align:{column.side}'>{html.escape(column.texts[place])}</td>" for column in columns
            )
            for place in range(len(rows))
        ]
        if hidden:
            cut = f"<td colspan='{len(columns)}'>{counted(len(self), 'row')}, {hidden:,} not shown</td>"
            body.insert(len(rows) // 2, cut)
        caption = f"<caption>{html.escape(visible(self._title))}</caption>" if self._title else ""
        lines = "".join(f"<tr>{row}</tr>" for row in body)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


class _Shown:
    """A column as text: the cells of the rows that are shown, and how wide they may be."""

    __slots__ = ("heads", "name", "numbers", "side", "texts", "width")

    def __init__(self, name: str, values: tuple[Any, ...], rows: list[int]) -> None:
        known = [values[row] for row in rows if values[row] is not None]
        self.name = visible(name)
        self.numbers = bool(known) and all(map(_is_number, known))
        self.side = "right" if self.numbers else "left"
        self.texts = [_text(values[row]) for row in rows]
        self.heads = [self.name]
        self.width = self._needs()

    def _needs(self) -> int:
        return max(map(_wide, [*self.heads, *self.texts]))

    def fold(self) -> None:
        """Write a name of several words on as many lines, where that saves width."""
        self.heads = self.name.replace("_", "_\n").split("\n")
        self.width = self._needs()

    def least(self) -> int:
        """Return how narrow the column may become."""
        least = max(_LONGEST_NUMBER if self.numbers else _NARROWEST, *map(_wide, self.heads))
        return min(self.width, least)

    def head(self, line: int) -> str:
        """Return a line of the name, -1 the last."""
        return self._fit(self.heads[line] if -line <= len(self.heads) else "")

    def cell(self, place: int) -> str:
        return self._fit(self.texts[place])

    def _fit(self, text: str) -> str:
        """Cut or fill to the width."""
        if _wide(text) > self.width:
            while _wide(text) > self.width - len(_CUT):
                text = text[:-1]
            text += _CUT
        blank = " " * (self.width - _wide(text))
        return blank + text if self.numbers else text + blank


def _narrow(columns: list[_Shown], width: int) -> list[str]:
    """Make lines fit: fold names, cut the widest texts, leave out columns from the last; return the names of those."""
    if _excess(columns, width) > 0:
        for column in columns:
            column.fold()
    excluded: list[str] = []
    while len(columns) > 2 and _excess(columns, width) > sum(column.width - column.least() for column in columns):
        excluded.insert(0, columns.pop().name)
    excess = _excess(columns, width)
    while excess > 0:
        giving = [column for column in columns if column.width > column.least()]
        if not giving:
            break
        widest = max(giving, key=lambda column: column.width)
        rival = max((column.width for column in giving if column is not widest), default=0)
        step = min(excess, widest.width - widest.least(), max(widest.width - rival, 1))
        widest.width -= step
        excess -= step
    return excluded


def _excess(columns: list[_Shown], width: int) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1) - width


def _terminal_width() -> int:
    """Return how wide lines may be: as the terminal is, or a usual width where there is none."""
    return max(shutil.get_terminal_size((_WIDTH, 24)).columns, 40)


def _ends(length: int, most: int) -> tuple[list[int], int]:
    """Return the rows to show, half from each end where there are too many, and how many are left out."""
    if length <= most:
        return list(range(length)), 0
    half = most // 2
    return [*range(half), *range(length - half, length)], length - 2 * half


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: None for NaN, text for what is no number, text or truth value."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else _text(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    """Write a value: three digits after the point, NaN as a dash, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return "-"
        plain = value == 0 or 1e-3 <= abs(value) < 1e6
        return f"{value:.3f}" if plain else f"{value:.2g}"
    return visible(str(value))


def _wide(text: str) -> int:
    """Return how many places a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _library(name: str, install: str) -> Any:
    """Import a dataframe library, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        quoted = f"'{install}'" if "[" in install else install
        message = f"to_{name.removeprefix('py')}() needs {name}, which cannot be imported: pip install {quoted}"
        raise DataError(message) from error


def _one_type(values: tuple[Any, ...]) -> list[Any]:
    """Give values that a typed column can hold: all floats where some are, text where types differ otherwise."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    large = kinds == {int} and any(abs(value) >= 2**63 for value in values if value is not None)
    if len(kinds) > 1 or large:
        return [None if value is None else str(value) for value in values]
    return list(values)


def html_facts(facts: Iterable[tuple[str, str]], sentences: Iterable[str] = ()) -> str:
    """Return names and values as an HTML table, with sentences as a list below."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
        for name, text in facts
    )
    return f"<table>{rows}</table>{html_list(sentences)}"


def html_summary(text: str, table: Table, sentences: Iterable[str] = ()) -> str:
    """Return a paragraph, a table and sentences as HTML."""
    return f"<p>{html.escape(text)}</p>{table._repr_html_()}{html_list(sentences)}"


def text_list(texts: Iterable[str], width: int = 80) -> str:
    """Return sentences as a list for a terminal, wrapped."""
    lines = (fill(visible(text), width, initial_indent="- ", subsequent_indent="  ") for text in texts)
    return "\n".join(lines)


def html_list(texts: Iterable[str]) -> str:
    """Return sentences as a list, or nothing where there are none."""
    lines = "".join(f"<li>{html.escape(visible(text))}</li>" for text in texts)
    return f"<ul>{lines}</ul>" if lines else ""
