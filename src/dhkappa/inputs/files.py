"""Files of votes, opened by DuckDB: CSV, TSV, Parquet, JSON. Spellings are kept and types are not guessed.

Every column of a CSV file is text, and an empty field is missing. JSON keeps text, integers, floats and booleans
apart; a column with several of these, or with lists or objects, has DuckDB's type ``JSON`` and cannot hold labels.
Parquet keeps its types. Columns without a name, which spreadsheets export, are ignored.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import os
import re
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain, groupby
from typing import IO, TYPE_CHECKING, Any

from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.backends.duckdb import MAX_LINE, check_names, connect, not_utf8, quoted, reading
from dhkappa.paths import Path, file_type, find_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from duckdb.sqltypes import DuckDBPyType

_SEPARATORS = {"CSV": ",;\t", "TSV": "\t"}
_UNPACKING = (OSError, EOFError, zlib.error)
_LIMIT = threading.Lock()  # the csv module has one field size limit for all threads
_LONG = 1 << 20  # bytes of a file that DuckDB gives to one thread
_UNNAMED = "dhkappa: unnamed "


def open_files(path: Path | Iterable[Path], *, connection: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
    """Open a file, or several with the same columns, as one table. Rows are read when a query runs.

    Parameters
    ----------
    path
        A path, a pattern such as ``"votes/*.parquet"``, or a list of these. Matches of a pattern are sorted by name. A
        file whose name looks like a pattern is that file.
    connection
        Where to open them; by default a new connection.

    Returns
    -------
    DuckDBPyRelation
        Rows in the order of the files. Run queries on it within ``reading``.
    """
    files = find_files(path)
    kind = file_type(files)
    connection = connect() if connection is None else connection
    with reading(shown(files)):
        if kind in _SEPARATORS:
            return _open_text(connection, files, _SEPARATORS[kind])
        if kind == "Parquet":
            return _open_parquet(connection, files)
        return _open_json(connection, files, "auto" if kind == "JSON" else "newline_delimited")


def _literal(files: Iterable[str]) -> Any:  # a list, which the type hints of DuckDB's functions do not know
    """Escape paths, so that DuckDB takes them neither for patterns nor for URLs."""
    return [glob.escape(os.path.abspath(file)) for file in files]


def _check_same(columns: Mapping[str, Collection[str]]) -> None:
    """Refuse files that lack a column of another: it would be read as missing."""
    for name in filter(None, dict.fromkeys(chain.from_iterable(columns.values()))):
        having = next(file for file, names in columns.items() if name in names)
        for file, names in columns.items():
            if name not in names:
                message = f"Column {name!r} of {having!r} not found in {file!r}, but all files need the same columns."
                hint = did_you_mean(name, names).strip()
                raise DataError(message, code="columns-differ", parameter="path", hint=hint)


def _open_text(connection: DuckDBPyConnection, files: list[str], separators: str) -> DuckDBPyRelation:
    """Open CSV or TSV files, in runs of files with the same header."""
    headers = {file: _header(file, separators) for file in files}
    _check_same({file: names for file, (names, _) in headers.items()})
    for file in files:
        _check_last_line(file)
    order = ", ".join(quoted(name) for name in headers[files[0]][0] if name)
    ways = {file: (*header, _can_share(connection, file, *header)) for file, header in headers.items()}
    runs = (
        _read_text(connection, run, names, separator, share).project(order)
        for (names, separator, share), run in groupby(files, ways.__getitem__)
    )
    return reduce(lambda before, after: before.union(after), runs)


def _read_text(
    connection: DuckDBPyConnection, files: Iterable[str], names: list[str], separator: str, share: bool
) -> DuckDBPyRelation:
    """Read CSV files without guessing; with ``share``, several threads read one file."""
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


def _can_share(connection: DuckDBPyConnection, file: str, names: list[str], separator: str) -> bool:
    """Tell whether several threads can read a file: one that starts inside a long quoted text takes lines for rows.

    DuckDB fails then. With one thread it reads the file, but silently drops the end after an unclosed quote, so the
    csv module checks that the file is well-formed.
    """
    import duckdb

    if not _may_hide_lines(file):
        return True
    try:
        _read_text(connection, [file], names, separator, True).aggregate("count(*)").fetchall()
    except duckdb.Error as error:
        with _LIMIT:
            limit = csv.field_size_limit(MAX_LINE)
            try:
                with _unpacked(file) as text:
                    for _ in csv.reader(_lines(text, file), delimiter=separator, strict=True):
                        pass
            except csv.Error as wrong:
                message = f"{file!r} is not well-formed. Look for unclosed quotes.\n{wrong}"
                raise DataError(message, code="malformed-file", parameter="path") from None
            except (UnicodeDecodeError, *_UNPACKING):
                raise error from None
            finally:
                csv.field_size_limit(limit)
        return False
    return True


def _may_hide_lines(file: str) -> bool:
    """Tell whether a file has quotes and is long enough for several threads; assumed of a compressed file."""
    if file.lower().endswith(".gz"):
        return True
    with open(file, "rb") as opened:
        long = os.fstat(opened.fileno()).st_size > _LONG
        return long and any(b'"' in block for block in iter(lambda: opened.read(1 << 20), b""))


def _blocks(file: str, last: int | None = None) -> Iterator[bytes]:
    """Read a file in blocks, unpacked if it is gzipped; only the ``last`` bytes if it is not."""
    packed = file.lower().endswith(".gz")
    try:
        with gzip.open(file) if packed else open(file, "rb") as opened:
            if last is not None and not packed:
                opened.seek(max(0, os.fstat(opened.fileno()).st_size - last))
            yield from iter(lambda: opened.read(1 << 20), b"")
    except _UNPACKING as error:
        raise _cannot_unpack(file, error) from None


def _cannot_unpack(file: str, error: Exception) -> DataError:
    message = f"{file!r} cannot be unpacked. It may be damaged or truncated.\n{error}"
    return DataError(message, code="unreadable-file", parameter="path")


def _check_last_line(file: str) -> None:
    """Refuse a file whose last line is longer than DuckDB's buffer: DuckDB would drop it."""
    length = 0  # bytes since the last line end
    for block in _blocks(file, MAX_LINE + 1):
        ended = max(block.rfind(b"\n"), block.rfind(b"\r"))
        length = len(block) - ended - 1 + (length if ended < 0 else 0)
        if length > MAX_LINE:
            raise _line_too_long(file)


def _line_too_long(file: str) -> DataError:
    message = f"{file!r} has a line of over {MAX_LINE:,} bytes. It may be damaged."
    return DataError(message, code="line-too-long", parameter="path")


def _unpacked(file: str) -> IO[str]:
    """Open a file as text, as the csv module needs it."""
    unpack: Any = gzip.open if file.lower().endswith(".gz") else open
    text: IO[str] = unpack(file, "rt", encoding="utf-8-sig", newline="")
    return text


def _lines(text: IO[str], file: str) -> Iterator[str]:
    """Read lines of limited length: a file of one line would fill the memory."""
    while line := text.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise _line_too_long(file)
        yield line


def _header(file: str, separators: str) -> tuple[list[str], str]:
    """Return the column names, and the first of the separators that gives several."""
    headers: list[tuple[list[str], str]] = []
    wrong = []
    try:
        with _unpacked(file) as text:
            for separator in separators:
                text.seek(0)
                try:
                    rows = csv.reader(_lines(text, file), delimiter=separator, strict=True)
                    headers.append((next(rows, []), separator))
                except csv.Error as error:
                    wrong.append(error)
    except UnicodeDecodeError:
        raise not_utf8(repr(file), "one of the first lines") from None
    except _UNPACKING as error:
        raise _cannot_unpack(file, error) from None
    several = [header for header in headers if len(header[0]) > 1]
    if wrong and not several:
        message = f"The header of {file!r} is not well-formed. Look for unclosed quotes.\n{wrong[0]}"
        raise DataError(message, code="malformed-file", parameter="path")
    names, separator = (several or headers)[0]
    if not any(names):
        raise DataError(f"The first line of {file!r} has no column names.", code="no-header", parameter="path")
    check_names(names, repr(file))
    return names, separator


def _open_parquet(connection: DuckDBPyConnection, files: list[str]) -> DuckDBPyRelation:
    """Open Parquet files; integer and float widths may differ between files, number and text may not."""
    schemas: dict[str, dict[str, DuckDBPyType]] = {}
    for file in files:
        with reading(repr(file)):
            relation = connection.read_parquet(_literal([file]))
            stored = connection.table_function("parquet_schema", _literal([file])).project("name").fetchall()
        names = {name for (name,) in stored}
        schemas[file] = {
            name: kind for name, kind in zip(relation.columns, relation.types, strict=True) if name in names and name
        }
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
            raise DataError(message, code="types-differ", parameter="path", hint="Use one type in all files.")
    differ = len({tuple(map(str, chain.from_iterable(schema.items()))) for schema in schemas.values()}) > 1
    whole = connection.read_parquet(_literal(files), union_by_name=differ)
    return whole.project(", ".join(map(quoted, schemas[files[0]])))


def _family(kind: DuckDBPyType) -> str:
    """Return the family of types that DuckDB can combine without changing a spelling."""
    if re.fullmatch("u?(tiny|small|big|huge)int|u?integer|float|double|decimal", kind.id):
        return "number"
    return "text" if kind.id in ("varchar", "enum") else kind.id


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
                raise DataError(message, code="malformed-file", parameter="path", hint="Save it without.")
        if form == "auto":
            _check_closed(file)
        with reading(repr(file)):
            keys[file] = [key for (key,) in connection.sql(_KEYS, params=[_literal([file]), form]).fetchall()]
        if not any(keys[file]) or None in keys[file]:
            message = f"{file!r} does not consist of JSON objects with keys."
            hint = "A row is one JSON object, its keys are the column names."
            raise DataError(message, code="not-records", parameter="path", hint=hint)
        check_names(keys[file], repr(file))
    _check_same(keys)
    names = [name for name in keys[files[0]] if name]

    def read(types: Mapping[str, str]) -> DuckDBPyRelation:
        return connection.read_json(
            _literal(files), columns=dict(types), format=form, records="true", hive_partitioning=False
        )

    look = ", ".join(_VALUE.format(quoted(name)) for name in names)
    [seen] = read(dict.fromkeys(names, "JSON")).aggregate(look).fetchall()
    return read({name: _json_type({kind for kind in kinds if kind}) for name, kinds in zip(names, seen, strict=True)})


def _check_closed(file: str) -> None:
    """Refuse a truncated array: DuckDB accepts one that ends after a comma."""
    first = last = b""
    for block in _blocks(file):
        text = block.strip(b" \t\r\n")
        first, last = first or text[:1], text[-1:] or last
    if first == b"[" and last != b"]":
        message = f"{file!r} is a JSON array without its closing bracket at the end. It may be truncated."
        raise DataError(message, code="malformed-file", parameter="path")


def _json_type(kinds: set[str]) -> str:
    """Return the type that holds every value unchanged; JSON if there is none."""
    fitting = {
        "VARCHAR": {"VARCHAR"},
        "BOOLEAN": {"BOOLEAN"},
        "BIGINT": {"SHORT", "LONG"},
        "HUGEINT": {"SHORT", "LONG", "WIDE"},
        "DOUBLE": {"SHORT", "DOUBLE"},  # it cannot distinguish longer integers
    }
    return next((kind for kind, values in fitting.items() if kinds <= values), "JSON")
