"""Excel files (.xlsx, .xlsm): read one sheet as columns of text, with the same values as a CSV file of the sheet.

python-calamine reads the cells. Before that, the file is unpacked once within limits, because the sheet that calamine
makes of it holds every cell of the used area, and every text as often as it is used. The same pass finds cells with
errors, such as ``#N/A``, which calamine reads as empty.
"""

from __future__ import annotations

import os
import posixpath
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from html import unescape
from typing import Any, NamedTuple, TypeAlias

from dhkappa.errors import DataError, did_you_mean, invalid, shown
from dhkappa.paths import most_unpacked, system_message
from dhkappa.resources import MIB, need
from dhkappa.table import library

Columns: TypeAlias = dict[str, list[str | None]]
_BLOCK = 1 << 20  # bytes unpacked at a time
_MOST_CELLS = 50_000_000  # rows times columns of the used area
_LEAST, _PER_CELL = 64 * MIB, 100  # memory to leave, and per cell for calamine and Python
_OLE = b"\xd0\xcf\x11\xe0"  # of encrypted files, and of .xls
# No repetition crosses a tag, so that matching takes linear time.
_SHEET = re.compile(rb"""<(?:\w+:)?sheet\s[^<>]*?\w:id\s*=\s*["']([^"'<>]*)""")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s[^<>]*>")
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_SHARED = re.compile(rb"""\st\s*=\s*["']s["'][^<>]*>\s*<(?:\w+:)?v[^<>]*>\s*([0-9]{1,9})""")
_ERROR = re.compile(
    rb"""<(?:\w+:)?c\s(?=[^<>]*\bt\s*=\s*["']e["'])[^<>]*>(?:(?!</?(?:\w+:)?c[\s>]).)*?<(?:\w+:)?v[^<>]*>([^<]*)""",
    re.DOTALL,
)
_NOT_AVAILABLE = "#N/A"  # a missing value, and the result of a lookup that found nothing
_TEXT_END = re.compile(rb"</(?:\w+:)?si>")


class _Scan(NamedTuple):
    """What a pass over the file of a sheet has found."""

    cells: int  # of the used area
    shared: dict[int, int]  # how often a shared text is used
    errors: dict[tuple[int, int], str]  # texts of errors by row and column from 0


def read_sheet(file: str, sheet: str | None, *, or_first: bool = False) -> Columns:
    """Read a sheet, the first one by default; with ``or_first`` also if there is no sheet of that name.

    Columns without a name are ignored, and rows without a value in the others.
    """
    rows, _, name = _read(file, sheet, or_first)
    where = f"sheet {name!r} of {file!r}"
    if not rows:
        message = f"{where[0].upper()}{where[1:]} is empty."
        raise invalid("path", message, hint=_OTHER_SHEET, code="empty-file")
    named = _named(rows, where)
    kept = [row for row in rows[1:] if any(row[place] is not None for place in named)]
    return {name: [row[place] for row in kept] for place, name in named.items()}


def row_numbers(file: str, sheet: str | None, *, or_first: bool = False) -> list[int]:
    """Return the number in the sheet, from 1, of each row of ``read_sheet``."""
    rows, first, name = _read(file, sheet, or_first)
    named = _named(rows, f"sheet {name!r} of {file!r}")
    return [first + at for at, row in enumerate(rows[1:], 2) if any(row[place] is not None for place in named)]


def _read(file: str, sheet: str | None, or_first: bool) -> tuple[list[list[str | None]], int, str]:
    """Read the used area of a sheet as text; return its rows, the number of rows above it, and the sheet's name."""
    calamine = library("python_calamine", "Reading an Excel file", "'dhkappa[excel]'")
    names = _checked(file)
    try:
        with calamine.CalamineWorkbook.from_path(file) as book:
            place = _choose(calamine, book.sheets_metadata, file, sheet, or_first)
            errors = _check_sheet(file, names, place)
            found = book.get_sheet_by_index(place)
            rows, start = found.to_python(skip_empty_area=True), found.start or (0, 0)
            name = found.name
    except calamine.PasswordError:
        raise _protected(file) from None
    except (DataError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of calamine is not an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise _damaged(file, str(error)) from None
    for (row, column), text in errors.items():
        if text != _NOT_AVAILABLE and 0 <= row - start[0] < len(rows) and 0 <= column - start[1] < len(rows[0]):
            rows[row - start[0]][column - start[1]] = text
    return [[cell_text(value) for value in row] for row in rows], start[0], name


_OTHER_SHEET = "Name another sheet with $sheet."


def _named(rows: list[list[str | None]], where: str) -> dict[int, str]:
    """Return the names of the columns that have one, by position."""
    from dhkappa.inputs.backends.duckdb import check_names

    names = [name or "" for name in rows[0]]
    if not any(names):
        raise invalid("path", f"The first row of {where} has no column names.", code="no-header")
    check_names(names, where[0].upper() + where[1:])
    return {place: name for place, name in enumerate(names) if name}


def cell_text(value: Any) -> str | None:
    """Write a value as a person reads it; None for an empty cell."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e21):
        return f"{value:.15g}"  # Excel computes with 15 digits
    if isinstance(value, (int, float)):
        return str(int(value))
    if isinstance(value, datetime):  # days are stored as floats
        moment = value + timedelta(microseconds=500)
        return moment.isoformat(timespec="milliseconds" if moment.microsecond >= 1000 else "seconds")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
    if isinstance(value, (date, time)):
        return value.isoformat()
    return None if value is None else str(value)


def _choose(calamine: Any, sheets: Any, file: str, sheet: str | None, or_first: bool) -> int:
    """Return the place of a sheet of cells, the first visible one by default."""
    cells = {one.name: place for place, one in enumerate(sheets) if one.typ == calamine.SheetTypeEnum.WorkSheet}
    listed = f"Sheets: {shown(cells, 10)}."
    if sheet in cells:
        return cells[sheet]
    if sheet is not None and not or_first:
        if any(one.name == sheet for one in sheets):
            message = f"Sheet {sheet!r} of {file!r} has no cells, but a chart or a macro."
            raise invalid("sheet", message, code="sheet-without-cells", hint=listed if cells else "")
        message = f"Sheet {sheet!r} not found in {file!r}. {listed}{did_you_mean(sheet, cells)}"
        raise invalid("sheet", message, code="sheet-not-found")
    if not cells:
        raise invalid("path", f"{file!r} has no sheet of cells.", code="sheet-without-cells")
    seen = (place for place in cells.values() if sheets[place].visible == calamine.SheetVisibleEnum.Visible)
    return next(seen, next(iter(cells.values())))


def _checked(file: str) -> dict[str, str]:
    """Unpack all of a file within limits, without keeping it; return the names of its parts by lower case.

    Python's zipfile also checks sizes and checksums, so that no part is longer than it says.
    """
    left = most = most_unpacked(os.path.getsize(file))
    with open(file, "rb") as opened:
        first = opened.read(4)
    if first == _OLE:
        raise _protected(file)
    if not first.startswith(b"PK"):
        message = f"{file!r} is not an Excel file, although its name says so."
        raise invalid("path", message, hint="If it is CSV, let its name end in .csv.", code="wrong-file-type")
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as part:
                    while held := part.read(_BLOCK):
                        left -= len(held)
                        if left < 0:
                            message = f"{file!r} unpacks to over {most >> 20:,} MiB, too much for a file of its size."
                            raise invalid("path", message, hint="Save the sheet as CSV.", code="file-too-large")
            return {name.lower(): name for name in archive.namelist()}
    except (DataError, MemoryError):
        raise
    except Exception as error:  # each compression has errors of its own
        raise _damaged(file, system_message(error)) from None


def _check_sheet(file: str, names: dict[str, str], place: int) -> dict[tuple[int, int], str]:
    """Refuse a sheet that would fill the memory; return its errors by row and column."""
    with zipfile.ZipFile(file) as archive:
        member = _member(archive, names, place)
        if member is None:
            raise _damaged(file, "It does not say where its sheets are.")
        found = _scan(_parts(archive, member, b"row>"))
        strings = names.get("xl/sharedstrings.xml")
        size = _shared_size(_parts(archive, strings, b"si>"), found.shared) if strings else 0
    if found.cells > _MOST_CELLS:
        message = f"A sheet of {file!r} spans {found.cells:,} cells; at most {_MOST_CELLS:,} are read."
        hint = "Delete what is far below or to the right of the table, or save it as CSV."
        raise invalid("path", message, hint=hint, code="file-too-large")
    if size > (most := most_unpacked(os.path.getsize(file))):
        message = f"{file!r} unpacks to over {most >> 20:,} MiB, too much for a file of its size."
        raise invalid("path", message, hint="Save the sheet as CSV.", code="file-too-large")
    need(_LEAST + _PER_CELL * found.cells + 2 * size, "the Excel file")
    return found.errors


def _member(archive: zipfile.ZipFile, names: dict[str, str], place: int) -> str | None:
    """Return the name of the part that holds a sheet."""
    parts = [names.get(name) for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels")]
    book, relations = (archive.read(name) if name else b"" for name in parts)
    if any(mark in part for mark in (b"<!--", b"<![", b"<!D") for part in (book, relations)):
        return None  # what no program writes, and a search would misread
    sheets = _SHEET.findall(book)
    targets = {}
    for relation in _RELATION.findall(relations):
        own = dict(re.findall(rb"""\s(Id|Target)\s*=\s*["']([^"']*)""", relation))
        targets[own.get(b"Id")] = unescape(own.get(b"Target", b"").decode("utf-8", "replace"))
    target = targets.get(sheets[place]) if place < len(sheets) else None
    return names.get(posixpath.normpath(posixpath.join("/xl", target))[1:].lower()) if target else None


def _parts(archive: zipfile.ZipFile, member: str, end: bytes) -> Iterator[bytes]:
    """Read a part of a file in pieces that end where rows or texts end, or start."""
    pending: list[bytes] = []
    with archive.open(member) as part:
        while held := part.read(_BLOCK):
            cut = held.rfind(end) + len(end)
            if cut < len(end):
                pending.append(held)
                continue
            yield b"".join([*pending, held[:cut]])
            pending = [held[cut:]]
    yield b"".join(pending)


def _scan(parts: Iterator[bytes]) -> _Scan:
    """Find the used area of a sheet, the shared texts that it uses, and cells with errors."""
    most_rows = most_columns = 0
    shared: dict[int, int] = {}
    errors = {}
    for part in parts:
        for letters, digits in {*_PLACE.findall(part)}:
            most_rows, most_columns = max(most_rows, int(digits)), max(most_columns, _column(letters))
        for index in map(int, _SHARED.findall(part)):
            shared[index] = shared.get(index, 0) + 1
        for found in _ERROR.finditer(part):
            if where := _PLACE.search(found[0]):
                errors[int(where[2]) - 1, _column(where[1]) - 1] = unescape(found[1].decode("utf-8", "replace"))
    return _Scan(most_rows * most_columns, shared, errors)


def _column(letters: bytes) -> int:
    """Return the number of a column from 1: 27 for AA."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _shared_size(parts: Iterator[bytes], used: dict[int, int]) -> int:
    """Return the bytes of all shared texts, each as often as it is used."""
    size, index, begun = 0, 0, 0
    for part in parts:
        *texts, rest = _TEXT_END.split(part)
        for text in texts:
            size += (begun + len(text)) * used.get(index, 0)
            index, begun = index + 1, 0
        begun += len(rest)
    return size


def _protected(file: str) -> DataError:
    message = f"{file!r} is protected by a password, or in the format of .xls."
    return invalid("path", message, hint="Save it as .xlsx without a password.", code="file-protected")


def _damaged(file: str, problem: str) -> DataError:
    message = f"{file!r} cannot be read as an Excel file. It may be damaged or truncated.\n{problem}"
    return invalid("path", message, code="unreadable-file")
