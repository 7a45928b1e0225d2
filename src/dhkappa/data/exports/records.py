"""Records: what a file of JSON holds, one object a record, whichever way the file is laid out.

What a file is shows in its bytes, not in its name: a zip, gzip, a JSON array, one JSON object, or one object a line.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import PurePath
from typing import Any, cast

from dhkappa.data.export import Records
from dhkappa.errors import DataError, shown

Record = dict[str, Any]

_LINES = (".jsonl", ".ndjson")
_SUFFIXES = (".json", *_LINES)
_HEAD = 1 << 16
_SPACE = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)  # the last: locked, or packed oddly


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read every record of a JSON or JSONL file, or of each such file in a zip; any of them may be gzipped.

    Parameters
    ----------
    path : the file; UTF-8, with or without a byte order mark

    Returns
    -------
    the records by the name of their file, without its suffix; a file inside a zip may be empty, the whole may not
    """
    name = os.fspath(path)
    found: Records = {}
    try:
        with closing(_streams(name)) as streams:
            for member, stream in streams:
                label = name if member is None else f"{name}: {member}"
                stem = _stem(name if member is None else member)
                if stem in found:
                    raise DataError(f"{name} holds two files called {stem!r}: give each a name of its own.")
                found[stem] = list(_records(stream, label))
    except _UNREADABLE as error:
        raise DataError(f"cannot read {name}: {_told(error)}.") from error
    if not any(found.values()):
        raise DataError(f"{name} holds no records: it is empty, or nothing in it was exported.")
    return found


def first_record(path: str | os.PathLike[str]) -> Record | None:
    """Return the first record of a file, reading no more of it than that takes; None if it is no file of records."""
    try:
        with closing(_streams(os.fspath(path))) as streams:
            for _, stream in streams:
                record = _first(stream)
                if record is not None:
                    return record
    except (*_UNREADABLE, DataError):
        return None
    return None


def _streams(name: str) -> Generator[tuple[str | None, io.BufferedIOBase]]:
    """Open what a file holds: itself, or each JSON file of a zip with its name there, decompressed."""
    with open(name, "rb") as file:
        if not file.peek(4).startswith((b"PK\x03\x04", b"PK\x05\x06")):
            yield None, _unzipped(file)
            return
        with zipfile.ZipFile(file) as archive:
            inside = [info.filename for info in archive.infolist() if not info.is_dir()]
            members = [member for member in inside if _is_json(member)]
            if not members:
                held = shown(inside) or "nothing"
                raise DataError(f"{name} is a zip without a .json or .jsonl file: it holds {held}.")
            for member in members:
                with archive.open(member) as stream:
                    yield member, _unzipped(io.BufferedReader(cast(io.RawIOBase, stream)))


def _is_json(member: str) -> bool:
    """Tell whether a zip's member holds records; macOS puts files of its own, named like the real ones, beside."""
    plain = member.lower().removesuffix(".gz")
    return plain.endswith(_SUFFIXES) and "__macosx" not in plain.split("/")


def _unzipped(file: io.BufferedReader) -> io.BufferedIOBase:
    return gzip.GzipFile(fileobj=file) if file.peek(2).startswith(b"\x1f\x8b") else file


def _stem(name: str) -> str:
    """Return a file's name without folder and suffix."""
    last = PurePath(name).name
    last = last[:-3] if last.lower().endswith(".gz") else last
    return last.rsplit(".", 1)[0] or last


def _records(stream: io.BufferedIOBase, name: str) -> Iterator[Record]:
    """Read a record a line, or one JSON value where the first line tells that the whole is one."""
    lines = enumerate(stream, 1)
    for number, line in lines:
        text = _text(line, name, number).strip()
        if text:
            break
    else:
        return
    if text.startswith("[") or not (name.lower().removesuffix(".gz").endswith(_LINES) or _is_whole(text)):
        yield from _document(line + stream.read(), name, number)
        return
    yield _record(text, name, number)
    for number, line in lines:
        text = _text(line, name, number).strip()
        if text:
            yield _record(text, name, number)


def _document(held: bytes, name: str, first: int) -> list[Record]:
    """Read one JSON value, an object or an array of objects, that starts in line ``first``."""
    value = _decoded(_text(held, name, first), name, first)
    if isinstance(value, dict):
        return [value]
    for place, record in enumerate(value, 1):
        if not isinstance(record, dict):
            raise DataError(f"{name} holds {shown([record])} as its record {place}: a record is a JSON object.")
    return cast(list[Record], value)


def _record(text: str, name: str, number: int) -> Record:
    """Read one line."""
    value = _decoded(text, name, number)
    if not isinstance(value, dict):
        raise DataError(f"{name} holds {shown([value])} in line {number}: a record is a JSON object.")
    return value


def _decoded(text: str, name: str, first: int) -> Any:
    """Decode JSON that starts in line ``first``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{name} is not whole JSON, damaged or cut short, in line {first + error.lineno - 1}, "
            f"column {error.colno}: {error.msg}."
        ) from None
    except (ValueError, RecursionError) as error:  # an integer too long, or nested too deeply
        raise DataError(f"{name} holds JSON that cannot be read, in line {first} or after it: {error}.") from None


def _is_whole(text: str) -> bool:
    """Tell whether a line is JSON by itself."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(held: bytes, name: str, first: int) -> str:
    """Decode bytes that start in line ``first``."""
    held = held.removeprefix(codecs.BOM_UTF8) if first == 1 else held
    try:
        return held.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first + held.count(b"\n", 0, error.start)
        raise DataError(f"{name} is not UTF-8 in line {line}: write it as UTF-8.") from None


def _first(stream: io.BufferedIOBase) -> Record | None:
    """Decode the first object of a stream, or of the array it holds, from as little of it as will do."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    text, size, stopped = "", _HEAD, -1
    while True:
        held = stream.read(size)
        try:
            text += decoder.decode(held, final=not held)
        except UnicodeDecodeError:
            return None
        start = _skip(text, 0)
        if text.startswith("[", start):
            start = _skip(text, start + 1)
        if start < len(text) and text[start] != "{":
            return None
        try:
            if start < len(text):
                return cast(Record, json.JSONDecoder().raw_decode(text, start)[0])
        except json.JSONDecodeError as error:
            # A string may be long; any other error that more text does not move is one for good.
            if error.pos == stopped and not error.msg.startswith("Unterminated string"):
                return None
            stopped = error.pos
        except (ValueError, RecursionError):
            return None
        if not held:
            return None
        size = max(_HEAD, len(text))


def _skip(text: str, start: int) -> int:
    """Return where the next character stands that is not space."""
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _told(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)
