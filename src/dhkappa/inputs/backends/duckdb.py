"""DuckDB: our own connections and their memory limit, tables of Python columns and of users, error messages."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from dhkappa.core import Label
from dhkappa.core.labels import LIST_MARK
from dhkappa.errors import DataError, OutOfMemoryError, counted, shown
from dhkappa.inputs.backends import ROW_NUMBER, SHOWN, Frame, Query, kind_in, lazy, with_none
from dhkappa.paths import is_unicode
from dhkappa.resources import MIB, folder_on_disk, is_out_of_memory, need, out_of_memory, own_words, share

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

MAX_LINE = 2_000_000
"""Length in bytes of the longest CSV line that DuckDB reads."""

_BLOCK = 1 << 16  # rows inserted at a time
_LEAST = 192 * MIB  # memory to start with: with less, threads may not start
_PER_THREAD = 128 * MIB  # two threads group 10^8 ids in 256 MiB, but not in 198 MiB, where one thread can
_ONE_TYPE = "Write all values as text, or all as integers."
_FILE_ERROR = re.compile("CSV Error|CSV Parser|JSON|[Pp]arquet|[Uu][Tt][Ff]-?8|[Gg][Zz][Ii][Pp]|IO Error")


class DuckDBFrame(Frame):
    """A DuckDB relation."""

    native_type = staticmethod(lambda native, role: native.types[native.columns.index(role)])
    checks_memory = True  # it would take DuckDB long to find out

    def numbered(self) -> Frame:
        """Return the table with row numbers from 1, in the order of the files."""
        native = self.native.project(f"*, row_number() OVER () AS {quoted(ROW_NUMBER)}")
        return replace(self, native=native, columns=(*self.columns, ROW_NUMBER))

    def lists_as_text(self) -> Any:
        """Convert columns of lists and of JSON in the engine."""
        columns = []
        for name, dtype in zip(self.native.columns, map(str, self.native.types), strict=True):
            own = quoted(name)
            nested = dtype.endswith("]") or dtype == "JSON"
            sort = f"list_sort({own})" if dtype.endswith("[]") else own
            columns.append(f"'{LIST_MARK}' || CAST(to_json({sort}) AS VARCHAR) AS {own}" if nested else own)
        return self.native.project(", ".join(columns)) if columns else self.native

    def _select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        """Return columns by role; refuse JSON, in which even text is written with quotes."""
        types = dict(zip(self.native.columns, map(str, self.native.types), strict=True))
        written = {}
        for role, name in roles.items():
            written[role] = quoted(name)
            if types.get(name) == "JSON" and role.startswith(SHOWN):
                written[role] = f"({quoted(name)} ->> '$')"
            elif types.get(name) == "JSON":
                message = f"Column {self.said(name)} holds lists, objects or values of several types."
                raise DataError(message, code="mixed-types", hint=_ONE_TYPE)
        return self.native.project(", ".join(f"{one} AS {role}" for role, one in written.items())), {}

    def _without_collation(self, frame: Query, texts: Sequence[str]) -> Query:
        native: Any = frame.to_native()
        binary = {role: f"{quoted(role)} COLLATE C AS {quoted(role)}" for role in texts}
        return lazy(native.project(", ".join(binary.get(role, quoted(role)) for role in native.columns)))

    def _collect(self, query: Query) -> dict[str, list[Any]]:
        """Run a query without PyArrow, which narwhals would need."""
        native: Any = query.to_native()
        found = native.fetchnumpy()
        columns = {}
        for name, dtype in query.collect_schema().items():
            kind, values = found[name].dtype.kind, found[name].tolist()
            nulls = np.count_nonzero(np.ma.getmaskarray(found[name]))
            if kind == "O" and sum(map(is_, values, repeat(None))) != nulls:
                raise MemoryError  # DuckDB ignores that Python could not allocate a text
            if dtype == nw.Binary:  # a bytearray cannot be hashed
                values = [None if value is None else bytes(value) for value in values]
            elif kind == "M":
                values = _times(found[name], dtype)
            columns[name] = with_none(values) if kind == "f" else values
        return columns

    def repeated(self, frame: Query, keys: Sequence[str]) -> Query:
        """Drop rows whose hash is unique: DuckDB does not spill text that it groups by."""
        if "text" not in {kind_in(frame, key) for key in keys}:
            return frame
        native: Any = frame.to_native()
        code = f"hash({', '.join(map(quoted, keys))})"
        shared = native.aggregate(f"{code} AS code, count(*) AS n", code).filter("n > 1").set_alias("shared")
        own = f"hash({', '.join(f'own.{quoted(key)}' for key in keys)})"
        return lazy(native.set_alias("own").join(shared, f"{own} = shared.code", "semi"))

    def _explain(self, error: Exception) -> None:
        raise_if_stopped(error, "The data that DuckDB counts")
        words = own_words(error)
        if "different connections" in words:
            message = "The votes and the items are tables of two DuckDB connections and cannot be joined."
            hint = "Open both in one connection, or pass both as paths."
            raise DataError(message, code="different-connections", parameter="items", hint=hint) from error
        if "busy with another call" in words:
            message = "The DuckDB connection of the table is in use by another thread."
            hint = "Give each thread a table of its own, by connection.cursor() or from a path."
            raise DataError(message, code="connection-busy", hint=hint) from error
        if "out of range for the destination type INT64" in words:
            message = "A column holds integers of more than 64 bits."
            raise DataError(message, code="integer-too-large", hint="Write them as text.") from error
        if _FILE_ERROR.search(str(error)):
            raise file_error(str(error), "A file of the data") from error


def _times(found: Any, dtype: Any) -> list[Any]:
    """Return dates, times with their time zone as UTC, and nanoseconds, which Python does not have, as text."""
    absent = np.ma.getmaskarray(found) | np.isnat(np.ma.getdata(found))
    values: list[Any]
    if dtype == nw.Datetime("ns"):
        values = [str(value).replace("T", " ") for value in np.ma.getdata(found)]
    else:
        values = np.ma.getdata(found).tolist()
        if dtype == nw.Date:
            values = [value.date() if isinstance(value, datetime) else value for value in values]
        elif dtype.time_zone is not None:
            values = [value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in values]
    return [None if gone else value for value, gone in zip(values, absent.tolist(), strict=True)]


def _load() -> Any:
    """Import DuckDB. Ctrl-C is handled afterwards, because it aborts the process while DuckDB is half loaded."""
    kept: Any = signal.getsignal(signal.SIGINT)
    stopped: list[int] = []
    ours = "duckdb" not in sys.modules and callable(kept) and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, lambda sign, _: stopped.append(sign))
    try:
        import duckdb
    finally:
        if ours:
            signal.signal(signal.SIGINT, kept)
    if stopped:
        kept(signal.SIGINT, None)
    return duckdb


def connect(path: str | None = None) -> DuckDBPyConnection:
    """Open a connection without network, in memory or read-only on a database file; it spills to a private folder."""
    need(_LEAST, "DuckDB")
    duckdb = _load()
    # Two DuckDBs that spill into one folder would overwrite each other's files; those of one file are one.
    folder = secrets.token_hex(8) if path is None else hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    own: dict[str, Any] = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    own["temp_directory"] = os.path.join(_spill_folder(), folder)
    if path is not None:
        connection: DuckDBPyConnection = duckdb.connect(path, read_only=True, config=own)
        fit(connection)
        # A view in somebody else's file could otherwise read other files of this machine.
        connection.execute("SET enable_external_access = false")
    else:
        with reading("The start of DuckDB"):
            connection = duckdb.connect(":memory:", config=own | _limits())
    connection.execute("SET enable_progress_bar = false")  # it would go to standard output
    return connection


def fit(connection: DuckDBPyConnection) -> None:
    """Set the memory limit of one of our connections to what is left now plus what it uses."""
    most = share()
    if most is not None:
        [(used,)] = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        connection.execute(f"SET memory_limit = '{most + int(used)}B'")


def _limits() -> dict[str, Any]:
    """Return settings that keep DuckDB within the memory that is left; by itself it ignores ulimit -v."""
    most = share()
    if most is None:
        return {}
    own: dict[str, Any] = {"memory_limit": f"{most}B"}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if most // _PER_THREAD < cores:
        own["threads"] = max(1, most // _PER_THREAD)
    if most < 1024 * MIB:
        own["async_threads"] = 1  # of 8, each with 70 MiB of addresses
    return own


@cache
def _spill_folder() -> str:
    """Make a folder that only this user can read, removed at exit."""
    folder = tempfile.mkdtemp(prefix="dhkappa-", dir=folder_on_disk())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def relation_of(columns: Mapping[str, Sequence[str | int | None]], connection: DuckDBPyConnection) -> DuckDBPyRelation:
    """Make a table of columns of one length: text, integers (up to 128 bits) or booleans; None is missing."""
    check_names(list(columns), "The export")
    types = [_type_of(name, values) for name, values in columns.items()]
    table = f"columns_{secrets.token_hex(8)}"
    fields = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(columns, types, strict=True))
    connection.execute(f"CREATE TEMP TABLE {table} ({fields})")
    values = ", ".join(f"unnest(${place}::{kind}[])" for place, kind in enumerate(types, 1))
    for first in range(0, len(next(iter(columns.values()))), _BLOCK):
        block = [list(column[first : first + _BLOCK]) for column in columns.values()]
        connection.execute(f"INSERT INTO {table} SELECT {values}", block)
    return connection.table(table)


def _type_of(name: str, values: Sequence[Any]) -> str:
    """Choose DuckDB's type for a column; among integers, True is 1."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        if not is_unicode("\n".join(filter(None, values))):  # joined with a separator, or two halves would make a whole
            wrong = next(text for text in values if text and not is_unicode(text))
            raise DataError(f"Column {name!r} holds {shown([wrong])}, which is not valid Unicode.", code="not-utf8")
        return "VARCHAR"
    if kinds == {bool}:
        return "BOOLEAN"
    if not kinds <= {int, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"Column {name!r} holds values of several types: {names}.", code="mixed-types", hint=_ONE_TYPE)
    present = [value for value in values if value is not None]
    widest = max(max(present), -min(present) - 1)
    if widest >= 2**127:
        message = f"Column {name!r} holds an integer of {widest.bit_length()} bits."
        raise DataError(message, code="integer-too-large", hint="Write such numbers as text.")
    return "BIGINT" if widest < 2**63 else "HUGEINT"


@contextmanager
def reading(what: str = "The data") -> Iterator[None]:
    """Raise what DuckDB says of a file as ``DataError``, with DuckDB's message below."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        raise_if_stopped(error, what)
        if isinstance(error, duckdb.Error):
            raise file_error(str(error), what) from error
        raise


def raise_if_stopped(error: Exception, what: str) -> None:
    """Raise what DuckDB turns into errors of its own: Ctrl-C, and that memory or the disk for spilled data is full."""
    interrupted = type(error) is RuntimeError and str(error) == "Query interrupted"
    if interrupted or (isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)):
        raise KeyboardInterrupt from None
    words = own_words(error)
    if "No space left" in words or "failed to offload" in words:
        message = f"{what} did not fit into memory, and the disk to which DuckDB spills is full."
        hint = "Free disk space there, or set TMPDIR to another folder (for your own connection: temp_directory)."
        raise OutOfMemoryError(message, code="disk-full", hint=hint) from error
    if is_out_of_memory(error):
        raise out_of_memory(what) from error


def file_error(message: str, what: str) -> DataError:
    """Say which file is wrong and where, if DuckDB tells; its advice on its own options is left out."""
    named = re.search(r'^ *file = (.*)$|in file "(.*)", ', message, re.MULTILINE)
    where = re.search(r"CSV Error on Line: (\d+)", message)
    file = repr(named[1] or named[2]) if named else what
    line = f"line {where[1]} (line breaks inside quotes not counted)" if where else "an unknown line"
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    own = re.split(r"(?m)^Possible ", message)[0].strip().splitlines()
    own = own if len(own) <= 10 else [*own[:5], "...", *own[-4:]]
    quote = "\n".join(["", *(text if len(text) <= 300 else f"{text[:297]}..." for text in own)])
    if "not utf-8" in message or "invalid UTF-8" in message:
        return not_utf8(file, line, quote)
    if "maximum_object_size" in message:  # said of objects over twice that, and of smaller ones without an end
        return DataError(f"{file} has a JSON object of over 16 MiB. It may be damaged.", code="line-too-long")
    if "Maximum line size" in message:
        return DataError(f"{file}, {line}, has over {MAX_LINE:,} bytes. It may be damaged.", code="line-too-long")
    if fields:
        found = counted(int(fields[2]), "field")
        text = f"{file}, {line}, has {found}, but the header has {fields[1]}. Quote fields that contain a separator."
        return DataError(text + quote, code="wrong-number-of-fields")
    if named and named[1]:
        text = f"{file} is not well-formed at {line}. Look for unclosed quotes and mixed line ends."
        return DataError(text + quote, code="malformed-file")
    text = f"{file} cannot be read. A file may be damaged, truncated, or of another type than its name says."
    return DataError(text + quote, code="unreadable-file")


def not_utf8(file: str, line: str, quote: str = "") -> DataError:
    """Return the error for a file that is not UTF-8."""
    text = f"{file} is not UTF-8 text at {line}. Save it as UTF-8, or convert it: iconv -f latin1 -t utf-8.{quote}"
    return DataError(text, code="not-utf8")


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse column names that an engine cannot tell apart."""
    seen: dict[str, str] = {}
    for name in filter(None, names):
        if not is_unicode(name):
            raise DataError(f"{what} has a column name that is not valid Unicode: {shown([name])}.", code="not-utf8")
        if name.casefold() in seen:
            before = seen[name.casefold()]
            how = "the same name" if before == name else "names that differ only in case"
            message = f"{what} has columns with {how}: {shown([before, name])}."
            raise DataError(message, code="ambiguous-columns", hint="Rename one of them.")
        seen[name.casefold()] = name
