"""Files of votes, opened by DuckDB: CSV, TSV, Parquet, JSON. Spellings stay as they are, and nothing is guessed.

Every column of a CSV file is text, and an empty field is missing. JSON keeps text, integers, numbers and truth
values apart; a column with several of these, or with lists or objects, has DuckDB's type ``JSON``, which holds no
labels. Parquet keeps its types.
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
from dhkappa.inputs.backends.duckdb import (
    MOST_OF_LINE,
    check_names,
    connect,
    not_utf8,
    numbered,
    quoted,
    reading,
    relation_of,
)
from dhkappa.paths import Path, found, kind_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["connect", "numbered", "open_files", "reading", "relation_of"]

_SEPARATORS = {"CSV": ",;\t", "TSV": "\t"}
_UNPACKING = (OSError, EOFError, zlib.error)
_LIMIT = threading.Lock()  # on the length of a field, which the csv module has one of for all threads
_LONG = 1 << 20  # bytes of a file that threads do not share, and less than what each takes


def open_files(path: Path | Iterable[Path], *, connection: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
    """Open a file, or several with the same columns, as one table; nothing is read until it is asked for.

    Parameters
    ----------
    path : a path, a glob such as "votes/*.parquet", or a list of these. What a glob matches is taken in the order of
        names. A file whose name looks like a glob is that file.
    connection : where to open them; None for a DuckDB of their own

    Returns
    -------
    DuckDBPyRelation
        Rows in the order of files, and as they stand in each. Run queries on it within ``reading``.

    Raises
    ------
    DataError
        There is no such file, it cannot be read, its kind is not known, or the files have different columns.
    """
    files = found(path)
    kind = kind_of(files)
    connection = connect() if connection is None else connection
    with reading(shown(files)):
        if kind in _SEPARATORS:
            return _open_text(connection, files, _SEPARATORS[kind])
        if kind == "Parquet":
            return _open_parquet(connection, files)
        return _open_json(connection, files, "auto" if kind == "JSON" else "newline_delimited")


def _literal(files: Iterable[str]) -> Any:  # a list, of which the types of DuckDB's functions do not know
    """Write paths so that DuckDB takes them for these files, not for globs or addresses."""
    return [glob.escape(os.path.abspath(file)) for file in files]


def _check_same(columns: Mapping[str, Collection[str]]) -> None:
    """Refuse files that lack a column of another: where it is absent, nothing would be read as missing."""
    for name in dict.fromkeys(chain.from_iterable(columns.values())):
        having = next(file for file, names in columns.items() if name in names)
        for file, names in columns.items():
            if name not in names:
                raise DataError(
                    f"{file!r} has no column {name!r}, which {having!r} has: files opened together must have the same "
                    f"columns.{did_you_mean(name, names)}"
                )


def _open_text(connection: DuckDBPyConnection, files: list[str], separators: str) -> DuckDBPyRelation:
    """Open CSV or TSV files, in runs of files with the same header."""
    headers = {file: _header(file, separators) for file in files}
    _check_same({file: names for file, (names, _) in headers.items()})
    for file in files:
        _check_last_line(file)
    order = ", ".join(map(quoted, headers[files[0]][0]))
    ways = {file: (*header, _can_share(connection, file, *header)) for file, header in headers.items()}
    runs = (
        _read_text(connection, run, names, separator, share).project(order)
        for (names, separator, share), run in groupby(files, ways.__getitem__)
    )
    return reduce(lambda before, after: before.union(after), runs)


def _read_text(
    connection: DuckDBPyConnection, files: Iterable[str], names: list[str], separator: str, share: bool
) -> DuckDBPyRelation:
    """Read CSV files as they are told, without a guess; several threads may share one."""
    return connection.read_csv(
        _literal(files),
        columns=dict.fromkeys(names, "VARCHAR"),
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
    """Tell whether threads can share a file: one that starts inside a long quoted text takes its lines for rows.

    DuckDB finds that out, and fails. With one thread it reads such a file, but drops the end of one where a quote is
    left open, without a word: so that file must be seen to be well formed.
    """
    import duckdb

    if not _may_hide_lines(file):
        return True
    try:
        _read_text(connection, [file], names, separator, True).aggregate("count(*)").fetchall()
    except duckdb.Error as error:
        with _LIMIT:
            limit = csv.field_size_limit(MOST_OF_LINE)
            try:
                with _unpacked(file) as text:
                    for _ in csv.reader(_lines(text), delimiter=separator, strict=True):
                        pass
            except csv.Error as wrong:
                raise DataError(f"{file!r} is not a well-formed file: look for quotes left open.\n{wrong}") from None
            except (UnicodeDecodeError, *_UNPACKING):
                raise error from None
            finally:
                csv.field_size_limit(limit)
        return False
    return True


def _may_hide_lines(file: str) -> bool:
    """Tell whether a file has quotes, and is so long that threads would share it; of a packed one, assume it."""
    if file.lower().endswith(".gz"):
        return True
    with open(file, "rb") as opened:
        long = os.fstat(opened.fileno()).st_size > _LONG
        return long and any(b'"' in block for block in iter(lambda: opened.read(1 << 20), b""))


def _check_last_line(file: str) -> None:
    """Refuse a file that ends in a line longer than DuckDB takes: one that its buffer cannot hold, it drops."""
    packed = file.lower().endswith(".gz")
    since = 0  # bytes since the last end of a line
    try:
        with gzip.open(file) if packed else open(file, "rb") as opened:
            if not packed:
                opened.seek(max(0, os.fstat(opened.fileno()).st_size - MOST_OF_LINE - 1))
            for block in iter(lambda: opened.read(1 << 20), b""):
                ended = max(block.rfind(b"\n"), block.rfind(b"\r"))
                since = len(block) - ended - 1 + (since if ended < 0 else 0)
                if since > MOST_OF_LINE:
                    raise DataError(f"{file!r} has a line of over {MOST_OF_LINE:,} bytes: it may be damaged.")
    except _UNPACKING as error:
        raise DataError(f"{file!r} cannot be unpacked: it may be damaged or cut short.\n{error}") from None


def _unpacked(file: str) -> IO[str]:
    """Open a file as text, as the csv module wants it."""
    unpack: Any = gzip.open if file.lower().endswith(".gz") else open
    text: IO[str] = unpack(file, "rt", encoding="utf-8-sig", newline="")
    return text


def _lines(text: IO[str]) -> Iterator[str]:
    """Read lines, none longer than DuckDB takes: a file that is one line would fill the memory."""
    while line := text.readline(MOST_OF_LINE + 1):
        if len(line) > MOST_OF_LINE:
            raise csv.Error(f"a line has over {MOST_OF_LINE:,} characters")
        yield line


def _header(file: str, separators: str) -> tuple[list[str], str]:
    """Return the names of columns, and the first of the separators that sets several apart."""
    headers: list[tuple[list[str], str]] = []
    wrong = []
    try:
        with _unpacked(file) as text:
            for separator in separators:
                text.seek(0)
                try:
                    rows = csv.reader(_lines(text), delimiter=separator, strict=True)
                    headers.append((next(rows, []), separator))
                except csv.Error as error:
                    wrong.append(error)
    except UnicodeDecodeError:
        raise DataError(not_utf8(repr(file), "one of the first lines")) from None
    except _UNPACKING as error:
        raise DataError(f"{file!r} cannot be unpacked: it may be damaged or cut short.\n{error}") from None
    several = [header for header in headers if len(header[0]) > 1]
    if wrong and not several:
        raise DataError(f"{file!r} has no well-formed header: look for quotes left open.\n{wrong[0]}")
    names, separator = (several or headers)[0]
    if not names:
        raise DataError(f"{file!r} has nothing in its first line, where the names of columns should stand.")
    check_names(names, repr(file))
    return names, separator


def _open_parquet(connection: DuckDBPyConnection, files: list[str]) -> DuckDBPyRelation:
    """Open Parquet files; a column may be narrow here and wide there, but not numbers here and text there."""
    schemas: dict[str, dict[str, DuckDBPyType]] = {}
    for file in files:
        with reading(repr(file)):
            relation = connection.read_parquet(_literal([file]))
            stored = connection.table_function("parquet_schema", _literal([file])).project("name").fetchall()
        names = {name for (name,) in stored}
        if not names.issuperset(relation.columns):  # DuckDB renames what it cannot tell apart
            raise DataError(
                f"{file!r} has columns without a name, or names that differ only by case: {shown(sorted(names), 10)}. "
                "Rename them."
            )
        schemas[file] = dict(zip(relation.columns, relation.types, strict=True))
    _check_same(schemas)
    for name in schemas[files[0]]:
        families: dict[str, str] = {}
        for file, schema in schemas.items():
            families.setdefault(_family(schema[name]), file)
        families.pop("null", None)
        if len(families) > 1:
            (one, first), (other, second) = list(families.items())[:2]
            raise DataError(
                f"column {name!r} is of type {one} in {first!r} and {other} in {second!r}: write it in one way in all."
            )
    differ = len({tuple(map(str, chain.from_iterable(schema.items()))) for schema in schemas.values()}) > 1
    return connection.read_parquet(_literal(files), union_by_name=differ)


def _family(kind: DuckDBPyType) -> str:
    """Return what DuckDB may join with what, without changing a spelling."""
    if re.fullmatch("u?(tiny|small|big|huge)int|u?integer|float|double|decimal", kind.id):
        return "number"
    return "text" if kind.id in ("varchar", "enum") else kind.id


_KEYS = """
    SELECT key FROM (
        SELECT unnest(keys) AS key, generate_subscripts(keys, 1) AS place FROM (
            SELECT CASE json_type(json) WHEN 'OBJECT' THEN json_keys(json) ELSE [NULL] END AS keys
            FROM read_json_objects($1, format = $2)))
    GROUP BY key ORDER BY min(place), key"""

# Integers are told by their digits: beyond 64 bits, json_type would call them DOUBLE.
_VALUE = """list(DISTINCT CASE
    WHEN {0} IS NULL THEN NULL WHEN NOT regexp_full_match({0}, '-?[0-9]+') THEN json_type({0})
    WHEN length({0}) < 16 THEN 'SHORT'
    WHEN try_cast({0} AS BIGINT) IS NOT NULL THEN 'LONG' WHEN try_cast({0} AS HUGEINT) IS NOT NULL THEN 'WIDE'
    ELSE 'ENDLESS' END)"""


def _open_json(connection: DuckDBPyConnection, files: list[str], form: Any) -> DuckDBPyRelation:
    """Open JSON files, after one look at every key and value: DuckDB would guess types, and read dates from text."""
    keys = {}
    for file in files:
        with open(file, "rb") as opened:
            if opened.read(3) == codecs.BOM_UTF8:
                raise DataError(f"{file!r} begins with a byte order mark, which JSON must not: save it without.")
        if form == "auto":
            _check_closed(file)
        with reading(repr(file)):
            keys[file] = [key for (key,) in connection.sql(_KEYS, params=[_literal([file]), form]).fetchall()]
        if not keys[file] or None in keys[file]:
            what = "something else than objects" if keys[file] else "no objects with keys"
            raise DataError(f"{file!r} holds {what}: a row is one JSON object, its keys the names of columns.")
        check_names(keys[file], repr(file))
    _check_same(keys)
    names = keys[files[0]]

    def read(types: Mapping[str, str]) -> DuckDBPyRelation:
        return connection.read_json(
            _literal(files), columns=dict(types), format=form, records="true", hive_partitioning=False
        )

    look = ", ".join(_VALUE.format(quoted(name)) for name in names)
    [seen] = read(dict.fromkeys(names, "JSON")).aggregate(look).fetchall()
    return read({name: _json_type({kind for kind in kinds if kind}) for name, kinds in zip(names, seen, strict=True)})


def _check_closed(file: str) -> None:
    """Refuse an array that is cut short: one that ends after a comma, DuckDB takes for whole."""
    first = last = b""
    try:
        with gzip.open(file) if file.lower().endswith(".gz") else open(file, "rb") as opened:
            for block in iter(lambda: opened.read(1 << 20), b""):
                text = block.strip(b" \t\r\n")
                first, last = first or text[:1], text[-1:] or last
    except _UNPACKING as error:
        raise DataError(f"{file!r} cannot be unpacked: it may be damaged or cut short.\n{error}") from None
    if first == b"[" and last != b"]":
        raise DataError(
            f"{file!r} is a JSON array that does not end in its bracket: it is cut short, or has more behind it."
        )


def _json_type(kinds: set[str]) -> str:
    """Choose the type that holds every value as it is; JSON where there is none."""
    fitting = {
        "VARCHAR": {"VARCHAR"},
        "BOOLEAN": {"BOOLEAN"},
        "BIGINT": {"SHORT", "LONG"},
        "HUGEINT": {"SHORT", "LONG", "WIDE"},
        "DOUBLE": {"SHORT", "DOUBLE"},  # it cannot tell longer integers apart
    }
    return next((kind for kind, values in fitting.items() if kinds <= values), "JSON")
