"""Open a path, a pattern, a database address or an annotation tool's export as a ``Source``.

Files are opened by DuckDB: CSV, TSV, Parquet, JSON. ``excel`` reads Excel files. Spellings are kept and types are not
guessed. Every column of a CSV or Excel file is text, and an empty field is missing. JSON keeps text, integers, floats
and booleans apart; a column with several of these, or with lists or objects, has DuckDB's type ``JSON`` and cannot hold
labels. Parquet keeps its types. Columns without a name, which spreadsheets export, are ignored.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import os
import re
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import is_zipfile

from dhkappa.errors import DataError, did_you_mean, invalid, shown
from dhkappa.inputs.backends import DATABASES
from dhkappa.inputs.backends.duckdb import MAX_LINE, check_names, connect, fit, not_utf8, quoted, reading, relation_of
from dhkappa.inputs.columns import is_recognized, suggested_columns
from dhkappa.inputs.excel import read_sheet, row_numbers
from dhkappa.inputs.readers import TOOLS, find_tool, read_file
from dhkappa.inputs.row_names import FileRows
from dhkappa.inputs.tables import Source
from dhkappa.paths import FileStates, Paths, file_type, find_files, is_excel, natural_order
from dhkappa.resources import memory_errors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from duckdb.sqltypes import DuckDBPyType

_FORMATS = ("table", *TOOLS)
_RECORDS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".zip")
_SEPARATORS = {"CSV": ",;\t", "TSV": "\t"}
_LOCAL = threading.local()  # holds a connection
_LIMIT = threading.Lock()  # the csv module has one field size limit for all threads
_LONG = 1 << 20  # bytes of a file that DuckDB gives to one thread
_MOST_FILES = 50  # of a folder that are looked at
_UNNAMED = "dhkappa: unnamed "
_Header: TypeAlias = tuple[list[str], str]  # column names, and the separator


def open_source(
    path: Paths,
    *,
    input_format: str | None = None,
    question: str | None = None,
    table: str | None = None,
    sheet: str | None = None,
    or_first: bool = False,
) -> Source:
    """Open a file, an export or a table of a database; the parameters are those of ``read``.

    With ``or_first``, an Excel file without the sheet is read from its first one.
    """
    if input_format is not None and not (isinstance(input_format, str) and input_format in _FORMATS):
        message = f"input_format must be one of {shown(_FORMATS, 10)}: got {shown([input_format])}."
        raise invalid("input_format", message)
    if question is not None and not isinstance(question, str):
        raise invalid("question", f"question must be the name of a question: got {shown([question])}.")
    if sheet is not None and not isinstance(sheet, str):
        raise invalid("sheet", f"sheet must be the name of a sheet: got {shown([sheet])}.")
    if isinstance(path, (str, os.PathLike)):
        path = os.path.expanduser(path)
    if sheet is not None and (is_url(path) or _tool(path) is not None):
        raise _no_sheets(path)
    if is_url(path):
        from dhkappa.inputs.backends.databases import open_table

        return Source(open_table(str(path), table), given_name=f"table {table!r}")
    if table is not None and "://" not in str(path):
        message = f"table names a table of a database, but {shown([path])} is a file."
        raise invalid("table", message, hint="Omit $table.", code="option-not-supported")
    tool = _tool(path) if input_format is None else input_format
    if tool is not None and tool != "table":
        return _open_export(path, tool, question)
    if question is not None:
        message = f"question names a question of an annotation tool's export, but {shown([path])} is a table."
        raise invalid("question", message, hint="Omit $question.", code="option-not-supported")
    try:
        files = find_files(path)
    except DataError as error:
        one = os.fspath(path) if error.code == "path-is-folder" and isinstance(path, (str, os.PathLike)) else None
        if one is not None and (apart := _apart_in_folder(one)):
            raise invalid("path", error.message, code=error.code, choices=error.choices, **apart) from None
        raise
    state = FileStates.of(files)
    with state.unchanged():
        votes = open_files(files, _connection(), sheet, or_first)
    return Source(votes, ordered=True, files=state, row_names=_rows_of(files, sheet, or_first).names)


def _rows_of(files: Sequence[str], sheet: str | None, or_first: bool) -> FileRows:
    """Return how the rows of files are named."""
    kind = file_type(files)

    def count(file: str) -> int:
        [(n,)] = open_files([file], _connection(), sheet, or_first).aggregate("count(*)").fetchall()
        return int(n)

    def separator(file: str) -> str:
        return _header(file, _SEPARATORS[kind])[1]

    return FileRows(
        tuple(files), kind, count, _blocks, _lines, separator, partial(row_numbers, sheet=sheet, or_first=or_first)
    )


def open_sources(
    path: Paths, items: Any, *, sheet: str | None = None, items_sheet: str | None = None, **how: Any
) -> tuple[Source, Any]:
    """Open files of votes, and the path of the items if a sheet may concern it; other tables are returned as is.

    The items are in ``items_sheet``. By default, they are in the sheet with the name of that of the votes if there is
    one, else in the first sheet.
    """
    if items_sheet is not None:
        if not is_excel(items):
            message = "items_sheet names a sheet of the Excel file of the items, but there is none."
            hint = "Pass the file as $items, or omit $items_sheet."
            raise invalid("items_sheet", message, code="option-not-supported", hint=hint)
        return open_source(path, sheet=sheet, **how), _naming_items(items, items_sheet)
    if sheet is None or not is_excel(items):
        return open_source(path, sheet=sheet, **how), items
    votes = open_source(path, sheet=sheet if is_excel(path) else None, **how)
    return votes, open_source(items, sheet=sheet, or_first=is_excel(path))


def _naming_items(items: Any, sheet: str) -> Source:
    """Open a sheet of items; an error names the option of items."""
    try:
        return open_source(items, sheet=sheet)
    except DataError as error:
        parameter = {"sheet": "items_sheet", "path": "items"}.get(error.parameter or "", error.parameter)
        hint = error.hint.replace("$sheet", "$items_sheet")
        raise DataError(error.message, code=error.code, parameter=parameter, hint=hint) from None


def _no_sheets(path: Any) -> DataError:
    message = f"sheet names a sheet of an Excel file, but {shown([path])} is not one."
    return invalid("sheet", message, hint="Omit $sheet.", code="option-not-supported")


def is_url(path: Any) -> bool:
    """Tell whether a path is the URL of a database."""
    return isinstance(path, str) and "://" in path and path.partition("://")[0].lower() in DATABASES


def _connection() -> DuckDBPyConnection:
    """Return the DuckDB connection of this thread: only tables of one connection can be joined."""
    connection: DuckDBPyConnection | None = getattr(_LOCAL, "connection", None)
    if connection is None:
        connection = _LOCAL.connection = connect()
    else:
        fit(connection)
    return connection


def _tool(path: Any) -> str | None:
    """Return the tool that wrote a file, by its content; None for a table."""
    if not (isinstance(path, str) and path.lower().endswith(_RECORDS) and os.path.isfile(path)):
        return None
    zipped = path.lower().endswith(".zip")
    if zipped and os.access(path, os.R_OK) and not is_zipfile(path):
        message = f"{shown([path])} is not a valid zip file."
        raise invalid("path", message, hint="It may be incomplete.", code="unreadable-file")
    tool = find_tool(path)
    if zipped and tool is None:
        message = f"{shown([path])} is a zip file, but not an export of a known tool."
        raise invalid("path", message, hint="Unzip it and pass the files.", code="unknown-file-type")
    return tool


def _open_export(path: Any, tool: str, question: str | None) -> Source:
    if not isinstance(path, str):
        raise invalid("path", f"An export of {TOOLS[tool]} is one file: got {shown([path])}.")
    with FileStates.of([path]).unchanged(), memory_errors("the export"):
        export = read_file(path, tool, question)
        votes, items = (
            relation_of(columns, _connection()) for columns in (export.votes, {**export.items, **export.shown})
        )
        return replace(export, votes=votes, items=items)


def open_files(
    files: list[str], connection: DuckDBPyConnection, sheet: str | None = None, or_first: bool = False
) -> DuckDBPyRelation:
    """Open files with the same columns as one table, with rows in order; run queries on it within ``reading``."""
    kind = file_type(files)
    if sheet is not None and kind != "Excel":
        raise _no_sheets(files[0])
    with reading(shown(files)):
        if kind in _SEPARATORS:
            return _open_text(connection, files, _SEPARATORS[kind])
        if kind == "Parquet":
            return _open_parquet(connection, files)
        if kind == "Excel":
            return _open_excel(connection, files, sheet, or_first)
        return _open_json(connection, files, "auto" if kind == "JSON" else "newline_delimited")


def _literal(files: Iterable[str]) -> Any:  # a list, which the type hints of DuckDB's functions do not know
    """Escape paths, so that DuckDB takes them neither for patterns nor for URLs."""
    return [glob.escape(os.path.abspath(file)) for file in files]


def _apart_in_folder(folder: str) -> dict[str, Any]:
    """Return hint and options to pass two files of a folder apart; see ``_apart``."""
    columns: dict[str, list[str]] = {}
    for name in sorted(os.listdir(folder), key=natural_order)[:_MOST_FILES]:
        path = os.path.join(folder, name)
        if name.lower().endswith((".csv", ".tsv")) and os.path.isfile(path):
            with suppress(DataError, OSError):
                columns[path] = read_header(path)
    return _apart(columns)


def _apart(columns: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """Return hint and options to pass votes and items apart if one file has either; else empty."""
    votes = [file for file, names in columns.items() if {"item", "label"} <= {*names}]
    items = [file for file, names in columns.items() if "item" in names and suggested_columns(names)]
    items = [file for file in items if not is_recognized([*columns[file]])]
    if len(votes) != 1 or len(items) != 1:
        return {}
    hint = f"Pass {votes[0]!r}, and the table of items with $items=."
    return {"hint": hint, "options": {"path": votes[0], "items": items[0]}}


def _check_same(columns: Mapping[str, Collection[str]]) -> None:
    """Refuse files that lack a column of another: it would be read as missing."""
    for name in filter(None, dict.fromkeys(chain.from_iterable(columns.values()))):
        having = next(file for file, names in columns.items() if name in names)
        for file, names in columns.items():
            if name not in names:
                message = f"Column {name!r} of {having!r} not found in {file!r}, but all files need the same columns."
                near, hint = (
                    did_you_mean(name, names).strip(),
                    "If one of them is the table of items, pass it with $items.",
                )
                fix = {"hint": hint, "choices": {"path": "VOTES", "items": "ITEMS"}} | _apart(columns)
                raise invalid("path", message, code="columns-differ", **({"hint": near} if near else fix))


def _open_text(connection: DuckDBPyConnection, files: list[str], separators: str) -> DuckDBPyRelation:
    """Open CSV or TSV files, in runs of files with the same header."""
    headers = {file: _header(file, separators) for file in files}
    _check_same({file: names for file, (names, _) in headers.items()})
    for file in files:
        _check_last_line(file)
    order = ", ".join(quoted(name) for name in headers[files[0]][0] if name)
    ways = {file: (header, _can_share(connection, file, header)) for file, header in headers.items()}
    runs = (_read_text(connection, run, *way).project(order) for way, run in groupby(files, ways.__getitem__))
    return reduce(lambda before, after: before.union(after), runs)


def _read_text(connection: DuckDBPyConnection, files: Iterable[str], header: _Header, share: bool) -> DuckDBPyRelation:
    """Read CSV files without guessing; with ``share``, several threads read one file."""
    names, separator = header
    return connection.read_csv(
        _literal(files),
        columns={name or f"{_UNNAMED}{place}": "VARCHAR" for place, name in enumerate(names)},
        auto_detect=False,
        header=True,
        sep=separator,
        quotechar='"',
        escapechar='"',
        strict_mode=True,
        parallel=share,
        hive_partitioning=False,
    )


def _can_share(connection: DuckDBPyConnection, file: str, header: _Header) -> bool:
    """Tell whether several threads can read a file: one that starts inside a long quoted text takes lines for rows."""
    # DuckDB fails then. With one thread it reads the file, but silently drops the end after an unclosed quote, so the
    # csv module checks that the file is well-formed.
    import duckdb

    packed = file.lower().endswith(".gz")
    if not packed and (os.path.getsize(file) <= _LONG or not any(b'"' in part for part in _blocks(file))):
        return True
    try:
        _read_text(connection, [file], header, True).aggregate("count(*)").fetchall()
    except duckdb.Error as error:
        with _LIMIT:
            limit = csv.field_size_limit(MAX_LINE)
            try:
                for _ in csv.reader(_lines(file), delimiter=header[1], strict=True):
                    pass
            except csv.Error as wrong:
                message = f"{file!r} is not well-formed. Look for unclosed quotes.\n{wrong}"
                raise invalid("path", message, code="malformed-file") from None
            except UnicodeDecodeError:
                raise error from None
            finally:
                csv.field_size_limit(limit)
        return False
    return True


@contextmanager
def _unpacked(file: str) -> Iterator[gzip.GzipFile | io.BufferedReader]:
    try:
        with gzip.open(file) if file.lower().endswith(".gz") else open(file, "rb") as opened:
            yield opened
    except (OSError, EOFError, zlib.error) as error:
        message = f"{file!r} cannot be unpacked. It may be damaged or truncated.\n{error}"
        raise invalid("path", message, code="unreadable-file") from None


def _blocks(file: str, last: int | None = None) -> Iterator[bytes]:
    """Read a file in blocks; only the ``last`` bytes if it is not gzipped."""
    with _unpacked(file) as opened:
        if last is not None and not isinstance(opened, gzip.GzipFile):
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - last))
        yield from iter(lambda: opened.read(1 << 20), b"")


def _lines(file: str) -> Iterator[str]:
    """Read lines of limited length for the csv module: a file of one line would fill the memory."""
    with _unpacked(file) as opened, io.TextIOWrapper(opened, "utf-8-sig", newline="") as text:
        while line := text.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise _line_too_long(file)
            yield line


def _line_too_long(file: str) -> DataError:
    return invalid("path", f"{file!r} has a line of over {MAX_LINE:,} bytes. It may be damaged.", code="line-too-long")


def _check_last_line(file: str) -> None:
    """Refuse a file whose last line is longer than DuckDB's buffer: DuckDB would drop it."""
    length = 0  # bytes since the last line end
    for block in _blocks(file, MAX_LINE + 1):
        ended = max(block.rfind(b"\n"), block.rfind(b"\r"))
        length = len(block) - ended - 1 + (length if ended < 0 else 0)
        if length > MAX_LINE:
            raise _line_too_long(file)


def read_header(file: str) -> list[str]:
    """Return the column names of a CSV or TSV file."""
    return _header(file, _SEPARATORS[file_type([file])])[0]


def _header(file: str, separators: str) -> _Header:
    """Return the column names, and the first of the separators that gives several."""
    headers: list[_Header] = []
    wrong = None
    try:
        for separator in separators:
            try:
                headers.append((next(csv.reader(_lines(file), delimiter=separator, strict=True), []), separator))
            except csv.Error as error:
                wrong = wrong or error
    except UnicodeDecodeError:
        raise not_utf8(repr(file), "one of the first lines") from None
    names, separator = max(headers, key=lambda header: len(header[0]) > 1, default=([], ""))
    if wrong and len(names) < 2:
        message = f"The header of {file!r} is not well-formed. Look for unclosed quotes.\n{wrong}"
        raise invalid("path", message, code="malformed-file")
    if not any(names):
        raise invalid("path", f"The first line of {file!r} has no column names.", code="no-header")
    check_names(names, repr(file))
    return names, separator


def _open_excel(
    connection: DuckDBPyConnection, files: list[str], sheet: str | None, or_first: bool
) -> DuckDBPyRelation:
    """Read a sheet of each file; all columns are text, as in CSV."""
    with memory_errors("the Excel file"):
        tables = {file: read_sheet(file, sheet, or_first=or_first) for file in files}
        _check_same(tables)
        columns = {name: list(chain.from_iterable(own[name] for own in tables.values())) for name in tables[files[0]]}
        return relation_of(columns, connection)


def _open_parquet(connection: DuckDBPyConnection, files: list[str]) -> DuckDBPyRelation:
    """Open Parquet files; integer and float widths may differ between files, number and text may not."""
    schemas: dict[str, dict[str, DuckDBPyType]] = {}
    for file in files:
        with reading(repr(file)):
            relation = connection.read_parquet(_literal([file]))
            stored = connection.table_function("parquet_schema", _literal([file])).project("name").fetchall()
        names = {name for (name,) in stored}
        types = zip(relation.columns, relation.types, strict=True)
        schemas[file] = {name: kind for name, kind in types if name in names and name}
        renamed = len(relation.columns) - len(schemas[file])  # DuckDB renames what it cannot tell apart
        if renamed > sum(name == "" for (name,) in stored):
            message = f"{file!r} has column names that differ only in case: {shown(sorted(names), 10)}."
            raise DataError(message, code="ambiguous-columns", hint="Rename one of them.")
    _check_same(schemas)
    for name in schemas[files[0]]:
        families: dict[str, str] = {}
        for file, schema in schemas.items():
            families.setdefault(_family(schema[name]), file)
        families.pop("null", None)
        if len(families) > 1:
            (one, first), (other, second) = list(families.items())[:2]
            message = f"Column {name!r} is of type {one} in {first!r} and of type {other} in {second!r}."
            raise invalid("path", message, hint="Use one type in all files.", code="types-differ")
    whole = connection.read_parquet(_literal(files), union_by_name=len(set(map(str, schemas.values()))) > 1)
    return whole.project(", ".join(map(quoted, schemas[files[0]])))


def _family(kind: DuckDBPyType) -> str:
    """Return the family of types that DuckDB can combine without changing a spelling."""
    if re.fullmatch("u?(tiny|small|big|huge)int|u?integer|float|double|decimal", kind.id):
        return "number"
    return "text" if kind.id in ("varchar", "enum") else kind.id


# The type of a column that holds every value unchanged, by kinds of values; otherwise JSON.
_JSON_TYPES = {
    "VARCHAR": {"VARCHAR"},
    "BOOLEAN": {"BOOLEAN"},
    "BIGINT": {"SHORT", "LONG"},
    "HUGEINT": {"SHORT", "LONG", "WIDE"},
    "DOUBLE": {"SHORT", "DOUBLE"},  # it cannot distinguish longer integers
}
_KEYS = """
    SELECT key FROM (
        SELECT unnest(keys) AS key, generate_subscripts(keys, 1) AS place FROM (
            SELECT CASE json_type(json) WHEN 'OBJECT' THEN json_keys(json) ELSE [NULL] END AS keys
            FROM read_json_objects($1, format = $2)))
    GROUP BY key ORDER BY min(place), key"""

# Integers are recognized by their digits: beyond 64 bits, json_type would say DOUBLE.
_VALUE = """list(DISTINCT CASE
    WHEN {0} IS NULL THEN NULL WHEN NOT regexp_full_match({0}, '-?[0-9]+') THEN json_type({0})
    WHEN length({0}) < 16 THEN 'SHORT'
    WHEN try_cast({0} AS BIGINT) IS NOT NULL THEN 'LONG' WHEN try_cast({0} AS HUGEINT) IS NOT NULL THEN 'WIDE'
    ELSE 'ENDLESS' END)"""


def _open_json(connection: DuckDBPyConnection, files: list[str], form: Any) -> DuckDBPyRelation:
    """Open JSON files after a look at every key and value: DuckDB would guess types, and read dates from text."""
    keys = {}
    for file in files:
        with open(file, "rb") as opened:
            if opened.read(3) == codecs.BOM_UTF8:
                message = f"{file!r} starts with a byte order mark, which JSON must not have."
                raise invalid("path", message, hint="Save it without.", code="malformed-file")
        if form == "auto":
            _check_closed(file)
        with reading(repr(file)):
            keys[file] = [key for (key,) in connection.sql(_KEYS, params=[_literal([file]), form]).fetchall()]
        if not any(keys[file]) or None in keys[file]:
            message = f"{file!r} does not consist of JSON objects with keys."
            hint = "A row is one JSON object, its keys are the column names."
            raise invalid("path", message, hint=hint, code="not-records")
        check_names(keys[file], repr(file))
    _check_same(keys)
    names = [name for name in keys[files[0]] if name]
    read = partial(connection.read_json, _literal(files), format=form, records="true", hive_partitioning=False)
    look = ", ".join(_VALUE.format(quoted(name)) for name in names)
    [seen] = read(columns=dict.fromkeys(names, "JSON")).aggregate(look).fetchall()
    types = {}
    for name, kinds in zip(names, seen, strict=True):
        types[name] = next((one for one, values in _JSON_TYPES.items() if {*kinds} - {None} <= values), "JSON")
    return read(columns=types)


def _check_closed(file: str) -> None:
    """Refuse a truncated array: DuckDB accepts one that ends after a comma."""
    first = last = b""
    for block in _blocks(file):
        text = block.strip(b" \t\r\n")
        first, last = first or text[:1], text[-1:] or last
    if first == b"[" and last != b"]":
        message = f"{file!r} is a JSON array without its closing bracket at the end. It may be truncated."
        raise invalid("path", message, code="malformed-file")
