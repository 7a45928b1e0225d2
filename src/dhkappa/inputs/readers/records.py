"""Records of a JSON file: an array, one object, or one object per line; zipped or gzipped. The content decides."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from dhkappa.errors import DataError, shown
from dhkappa.paths import check_regular, system_message

Record: TypeAlias = dict[str, Any]
Records: TypeAlias = dict[str, list[Record]]
"""Records by file name without suffix: one for a JSON or JSONL file, several for a zip."""

_SUFFIXES = (".json", ".jsonl", ".ndjson")
_GZIP = b"\x1f\x8b"
_HEAD = 1 << 16  # bytes read at first to find the first record
_LONGEST = 64 * 10**6  # characters of the first record
_UNPACKED, _TIMES = 1 << 28, 200  # a packed file may hold so many bytes, or so many times its own size
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)  # RuntimeError: a locked zip
_Stream: TypeAlias = Callable[[int], bytes]


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read all records of a UTF-8 file, or of each JSON file in a zip; limits the size of packed files."""
    name = os.fspath(path)
    found: Records = {}
    try:
        with closing(_streams(name)) as streams:
            for member, stream in streams:
                stem = _stem(name if member is None else member)
                if stem in found:
                    raise DataError(f"{name!r} holds two files called {stem!r}.", code="duplicate-file")
                found[stem] = list(_records(stream(-1), name if member is None else f"{name}: {member}"))
    except _UNREADABLE as error:
        raise DataError(f"Cannot read {name!r}: {system_message(error)}.", code="file-not-readable") from None
    if not any(found.values()):
        raise DataError(f"{name!r} holds no records.", code="empty-file")
    return found


def first_record(path: str | os.PathLike[str]) -> Record | None:
    """Return the first record of a file, reading as little as possible; None if it has no records."""
    try:
        with closing(_streams(os.fspath(path))) as streams:
            found = (_first(stream) for _, stream in streams)
            return next((record for record in found if record is not None), None)
    except (*_UNREADABLE, DataError, ValueError, RecursionError):
        return None


def _first(stream: _Stream) -> Record | None:
    """Decode the first object of a stream, or of the array in it, from twice as many bytes each time."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    text = ""
    while len(text) <= _LONGEST and (block := stream(max(_HEAD, len(text)))):
        text += decoder.decode(block)
        start = _skip(text, 0)
        start = _skip(text, start + 1) if text[start : start + 1] == "[" else start
        if text[start : start + 1] not in ("", "{"):
            return None
        try:
            value, _ = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError:
            continue
        return cast(Record, value)
    return None


def _streams(name: str) -> Generator[tuple[str | None, _Stream]]:
    """Open a file, or each JSON file in a zip, with its name there."""
    check_regular(name)
    with open(name, "rb") as file:
        limit = _Limit(name, os.fstat(file.fileno()).st_size)
        if not file.peek(4).startswith((b"PK\x03\x04", b"PK\x05\x06")):
            packed = file.peek(2).startswith(_GZIP)
            yield None, limit.of(gzip.GzipFile(fileobj=file)) if packed else file.read
            return
        with zipfile.ZipFile(file) as archive:
            inside = [info.filename for info in archive.infolist() if not info.is_dir()]
            members = [member for member in inside if _is_json(member)]
            if not members:
                held = shown(inside) or "nothing"
                raise DataError(f"The zip {name!r} has no .json or .jsonl file. It holds: {held}.", code="empty-file")
            for member in members:
                with archive.open(member) as opened:
                    stream = io.BufferedReader(cast(io.RawIOBase, opened))
                    packed = stream.peek(2).startswith(_GZIP)
                    yield member, limit.of(gzip.GzipFile(fileobj=stream) if packed else stream)


class _Limit:
    """The number of bytes that may come out of a packed file, against decompression bombs."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._most = name, max(_UNPACKED, _TIMES * size)
        self._left = self._most

    def of(self, stream: io.BufferedIOBase) -> _Stream:
        """Return a function that reads from a stream (all of it for a size of -1) within the limit."""

        def read(size: int) -> bytes:
            held = stream.read(self._left + 1 if size < 0 else size)
            self._left -= len(held)
            if self._left < 0:
                message = (
                    f"{self._name!r} unpacks to over {self._most >> 20:,} MiB, too much for an export of its size."
                )
                raise DataError(message, code="file-too-large", hint="If you trust it, unpack it.")
            return held

        return read


def _is_json(member: str) -> bool:
    """Tell whether a file in a zip holds records; macOS adds files with similar names."""
    plain = member.lower().removesuffix(".gz")
    return plain.endswith(_SUFFIXES) and "__macosx" not in plain.split("/")


def _stem(name: str) -> str:
    """Return a file's name without folder and suffix."""
    last = PurePath(name).name
    last = last[:-3] if last.lower().endswith(".gz") else last
    return last.rsplit(".", 1)[0] or last


def _records(data: bytes, name: str) -> Iterator[Record]:
    """Decode the values of a file: one array, or objects one after the other."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name!r} is not UTF-8 in line {line}.", code="not-utf8", hint="Save it as UTF-8.") from None
    at = _skip(text, 0)
    array = text[at : at + 1] == "["
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
            end = _skip(text, end)
            if array and end < len(text):
                raise json.JSONDecodeError("Extra data", text, end)
        except json.JSONDecodeError as error:
            message = f"{name!r} is not valid JSON in line {error.lineno}, column {error.colno}: {error.msg}."
            hint = "It may be damaged or truncated."
            raise DataError(message, code="malformed-file", hint=hint) from None
        except (ValueError, RecursionError) as error:  # an integer too long, or nesting too deep
            raise DataError(f"{name!r} holds JSON that cannot be read: {error}.", code="malformed-file") from None
        for place, record in enumerate(value if array else [value], 1):
            if not isinstance(record, dict):
                where = f"as record {place}" if array else f"in line {text.count(chr(10), 0, at) + 1}"
                message = f"{name!r} holds {shown([record])} {where}. A record is a JSON object."
                raise DataError(message, code="not-records")
            yield record
        at = end


def _skip(text: str, start: int) -> int:
    """Return the position of the next character that is not space."""
    found = _SPACE.match(text, start)
    return found.end() if found else start
