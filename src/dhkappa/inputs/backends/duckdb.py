"""A DuckDB of our own: how it starts, tables of columns held in memory, and its errors in words."""

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
from functools import cache
from typing import TYPE_CHECKING, Any

from dhkappa.errors import DataError, OutOfMemoryError, counted, shown
from dhkappa.memory import MIB, folder_on_disk, is_out_of_memory, need, own_words, share, too_large
from dhkappa.paths import is_unicode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

MOST_OF_LINE = 2_000_000
"""Bytes of a row of CSV that DuckDB reads."""

_BLOCK = 1 << 16  # rows that go into a table at a time
_LEAST = 192 * MIB  # memory to start with: less, and threads may not start
_EACH = 64 * MIB  # memory for each thread


def load() -> Any:
    """Import DuckDB. A Ctrl-C meanwhile waits: where it meets DuckDB half loaded, it aborts the process."""
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
    """Start a DuckDB of our own, in memory or on a file that is only read, and reads no other.

    It spills to a private folder, and fetches nothing from the network.
    """
    need(_LEAST, "DuckDB")
    duckdb = load()
    # Two DuckDBs that spill into one folder would take each other's files for theirs; those of one file are one.
    folder = secrets.token_hex(8) if path is None else hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    own: dict[str, Any] = {
        "temp_directory": os.path.join(_spill_folder(), folder),
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    if path is not None:
        connection: DuckDBPyConnection = duckdb.connect(path, read_only=True, config=own)
        fit(connection)
        # Or a view in a stranger's file might read other files of this machine.
        connection.execute("SET enable_external_access = false")
    else:
        with reading("the start of DuckDB"):
            connection = duckdb.connect(":memory:", config=own | _modest())
    connection.execute("SET enable_progress_bar = false")  # it would go to standard output
    return connection


def fit(connection: DuckDBPyConnection) -> None:
    """Let a DuckDB of our own take what is left now, beside what it has taken."""
    most = share()
    if most is not None:
        [(taken,)] = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        connection.execute(f"SET memory_limit = '{most + int(taken)}B'")


def _modest() -> dict[str, Any]:
    """Return what keeps DuckDB within the memory that is left: alone, it would look at no limit of addresses."""
    most = share()
    if most is None:
        return {}
    own: dict[str, Any] = {"memory_limit": f"{most}B"}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if most // _EACH < cores:
        own["threads"] = max(1, most // _EACH)
    if most < 1024 * MIB:
        own["async_threads"] = 1  # of 8, which take 70 MiB of addresses each
    return own


@cache
def _spill_folder() -> str:
    """Make a folder that only this user can look into, removed at the end of the process."""
    folder = tempfile.mkdtemp(prefix="dhkappa-", dir=folder_on_disk())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def numbered(relation: DuckDBPyRelation, name: str) -> DuckDBPyRelation:
    """Add a column that counts rows from 1 in the order of the files; it is computed in one thread."""
    return relation.project(f"*, row_number() OVER () AS {quoted(name)}")


def relation_of(
    columns: Mapping[str, Sequence[str | int | None]], *, connection: DuckDBPyConnection | None = None
) -> DuckDBPyRelation:
    """Make a table of columns held in memory: text, integers (up to 128 bits) or booleans, and None where missing."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(
            f"columns must be as long as each other, one at the least: got lengths {shown(lengths.items())}."
        )
    check_names(list(columns), "columns")
    types = [_type_of(name, values) for name, values in columns.items()]
    connection = connect() if connection is None else connection
    table = f"columns_{secrets.token_hex(8)}"
    fields = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(columns, types, strict=True))
    connection.execute(f"CREATE TEMP TABLE {table} ({fields})")
    values = ", ".join(f"unnest(${place}::{kind}[])" for place, kind in enumerate(types, 1))
    for first in range(0, next(iter(lengths.values())), _BLOCK):
        block = [list(column[first : first + _BLOCK]) for column in columns.values()]
        connection.execute(f"INSERT INTO {table} SELECT {values}", block)
    return connection.table(table)


def _type_of(name: str, values: Sequence[Any]) -> str:
    """Choose DuckDB's type for a column; True beside integers is 1."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        if not is_unicode("\n".join(filter(None, values))):  # joined by something, or two halves would make a whole
            wrong = next(text for text in values if text and not is_unicode(text))
            raise DataError(
                f"column {name!r} holds {shown([wrong])}, which is no valid Unicode text: mend its encoding."
            )
        return "VARCHAR"
    if kinds == {bool}:
        return "BOOLEAN"
    if not kinds <= {int, bool}:
        names = sorted(kind.__name__ for kind in kinds)
        raise DataError(
            f"column {name!r} holds values of types {', '.join(names)}: all text, all integers or all booleans."
        )
    present = [value for value in values if value is not None]
    widest = max(max(present), -min(present) - 1)
    if widest >= 2**127:
        raise DataError(f"column {name!r} holds an integer of {widest.bit_length()} bits: write such numbers as text.")
    return "BIGINT" if widest < 2**63 else "HUGEINT"


@contextmanager
def reading(what: str = "the data") -> Iterator[None]:
    """Turn what DuckDB says of a file, as it reads it, into a sentence with DuckDB's own message below."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise_if_full(error, what)
        raise DataError(in_words(str(error), what)) from error
    except RuntimeError as error:
        raise_if_stopped(error)
        raise_if_full(error, what)
        raise


def raise_if_stopped(error: Exception) -> None:
    """Raise what Ctrl-C means to Python, where DuckDB has made an error of it."""
    interrupted = type(error) is RuntimeError and str(error) == "Query interrupted"
    if interrupted or (isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)):
        raise KeyboardInterrupt from None


def raise_if_full(error: Exception, what: str) -> None:
    """Say in one sentence that there was no memory, or no disk for what does not fit into it."""
    words = own_words(error)
    if "No space left" in words or "failed to offload" in words:
        raise OutOfMemoryError(
            f"{what} did not fit into memory, and the rest of it not on the disk where DuckDB puts it: make room "
            "there, or set TMPDIR to a folder that has it (for a connection of yours, its temp_directory)."
        ) from error
    if is_out_of_memory(error):
        raise OutOfMemoryError(too_large(what)) from error


def in_words(message: str, what: str) -> str:
    """Say which file is wrong where, if DuckDB tells; its advice on options that we do not have is left out."""
    named = re.search(r'^ *file = (.*)$|in file "(.*)", ', message, re.MULTILINE)
    where = re.search(r"CSV Error on Line: (\d+)", message)
    file = repr(named[1] or named[2]) if named else what
    line = f"line {where[1]} (line breaks inside quotes not counted)" if where else "some line"
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if "not utf-8" in message or "invalid UTF-8" in message:
        sentence = not_utf8(file, line)
    elif fields:
        sentence = (
            f"{file}: {line} has {counted(int(fields[2]), 'field')} where the header has {fields[1]}; "
            "quote fields that hold a separator."
        )
    elif "maximum_object_size" in message:
        # Which DuckDB says of objects of over twice that, and of smaller ones that have no end.
        return f"{file} has a JSON object of over 16 MiB, more than a row can be: it may be damaged."
    elif "Maximum line size" in message:
        return f"{file}: {line} has over {MOST_OF_LINE:,} bytes: it may be damaged."
    elif named and named[1]:
        sentence = f"{file} is not a well-formed file at {line}: look for quotes left open and for mixed line ends."
    else:
        sentence = f"{file} cannot be read: a file may be damaged, cut short, or not what its name says."
    own = re.split(r"(?m)^Possible ", message)[0].strip().splitlines()
    own = own if len(own) <= 10 else [*own[:5], "...", *own[-4:]]
    return "\n".join([sentence, *(text if len(text) <= 300 else f"{text[:297]}..." for text in own)])


def not_utf8(file: str, line: str) -> str:
    """Say where a file is not UTF-8, and what to do."""
    return f"{file} is not UTF-8 text at {line}: save it as UTF-8, or convert it, as iconv -f latin1 -t utf-8 does."


def quoted(name: str) -> str:
    """Write a name so that SQL takes it for nothing else."""
    return '"' + name.replace('"', '""') + '"'


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse columns without a name, and names that an engine cannot tell apart."""
    if "" in names:
        place = names.index("") + 1
        index = ", or write the data without their index (index=False in pandas)" if place == 1 else ""
        raise DataError(f"{what}: column {place} has no name: give it one{index}. Columns: {shown(names)}.")
    seen: dict[str, str] = {}
    for name in names:
        if not is_unicode(name):
            raise DataError(f"{what}: the name {shown([name])} is no valid Unicode text. Rename the column.")
        if name.casefold() in seen:
            before = seen[name.casefold()]
            how = "of one name" if before == name else "whose names differ only by case"
            raise DataError(f"{what}: there are columns {how}, {shown([before, name])}. Rename one of them.")
        seen[name.casefold()] = name
