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
_BLOCK = 1 << 16  # bytes read at a time, or more within a long record
_LONGEST = 64 * 10**6  # characters of a record
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
                found[stem] = list(_records(stream, name if member is None else f"{name}: {member}"))
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
    except (*_UNREADABLE, DataError):
        return None


def _first(stream: _Stream) -> Record | None:
    """Decode the first object of a stream, or of the array in it."""
    text = _Text(stream, "")
    value = next(text.elements() if text.peek() == "[" else text.values(), None)
    return value if isinstance(value, dict) else None


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
        """Return a function that reads from a stream within the limit."""

        def read(size: int) -> bytes:
            held = stream.read(size)
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


def _records(stream: _Stream, name: str) -> Iterator[Record]:
    """Decode the values of a file: those of one array, or values one after the other."""
    text = _Text(stream, name)
    array = text.peek() == "["
    for place, value in enumerate(text.elements() if array else text.values(), 1):
        if not isinstance(value, dict):
            where = f"as record {place}" if array else f"in line {text.line()}"
            message = f"{name!r} holds {shown([value])} {where}. A record is a JSON object."
            raise DataError(message, code="not-records")
        yield value


class _Text:
    """Decodes JSON values from a stream, holding one value and one block of text at a time."""

    def __init__(self, stream: _Stream, name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._start, self._ended = "", 0, 0, False
        self._lines = self._columns = 0  # line ends before the held text, and characters since the last of them

    def line(self) -> int:
        """Return the line in which the last value starts."""
        return self._position(self._start)[0]

    def values(self) -> Iterator[Any]:
        """Decode values with nothing but space between them."""
        while self.peek():
            yield self._value()

    def elements(self) -> Iterator[Any]:
        """Decode the values of an array, after which the text must end."""
        self._at += 1
        more = self.peek() != "]"
        while more:
            yield self._value()
            more = self.peek() == ","
            if not more and self.peek() != "]":
                raise self._invalid("Expecting ',' delimiter", self._at)
            self._at += more
            self.peek()
        self._at += 1
        if self.peek():
            raise self._invalid("Extra data", self._at)

    def peek(self) -> str:
        """Move to the next character that is not space and return it; "" at the end."""
        while True:
            self._at = _skip(self._text, self._at)
            if self._at < len(self._text) or not self._read_block():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """Decode the value at the current position, reading as many blocks as it takes."""
        last = -1
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # An error at the same place after another block is final, except in a string, which may be long.
                offset = error.pos - self._at
                if offset == last and not error.msg.startswith("Unterminated string"):
                    raise self._invalid(error.msg, error.pos) from None
                last = offset
                self._check_length(len(self._text))
                if not self._read_block():
                    raise self._invalid(error.msg, error.pos) from None
            except (ValueError, RecursionError) as error:  # an integer too long, or nesting too deep
                line, _ = self._position(self._at)
                message = f"{self._name!r} holds JSON that cannot be read, in line {line} or after it: {error}."
                raise DataError(message, code="malformed-file") from None
            else:
                self._check_length(end)
                if end < len(self._text) or not self._read_block():  # a number may go on in the next block
                    self._start, self._at = self._at, end
                    return value

    def _read_block(self) -> bool:
        """Forget what was decoded and read as much text as is held, at least one block; False at the end."""
        if self._ended:
            return False
        line, column = self._position(self._at)
        self._lines, self._columns = line - 1, column - 1
        self._text, self._at = self._text[self._at :], 0
        held = self._stream(max(_BLOCK, len(self._text)))
        self._ended = not held
        try:
            self._text += self._decoder.decode(held, final=self._ended)
        except UnicodeDecodeError as error:
            line = self._position(len(self._text))[0] + held.count(b"\n", 0, error.start)
            message = f"{self._name!r} is not UTF-8 in line {line}."
            raise DataError(message, code="not-utf8", hint="Save it as UTF-8.") from None
        return True

    def _check_length(self, end: int) -> None:
        """Refuse a record over the limit."""
        if end - self._at > _LONGEST:
            line, _ = self._position(self._at)
            message = f"{self._name!r} has a record of over {_LONGEST // 10**6} million characters, in line {line}."
            hint = "If it is an export of an annotation tool, remove long texts."
            raise DataError(message, code="record-too-long", hint=hint)

    def _invalid(self, problem: str, at: int) -> DataError:
        """Return the error for invalid JSON; a line that ends too early is named, not the next one."""
        before = len(self._text[:at].rstrip(" \t\r\n"))
        at = before if before and "\n" in self._text[before:at] and problem.startswith("Expecting") else at
        line, column = self._position(at)
        message = f"{self._name!r} is not valid JSON in line {line}, column {column}: {problem}."
        return DataError(message, code="malformed-file", hint="It may be damaged or truncated.")

    def _position(self, at: int) -> tuple[int, int]:
        """Return the line and the column, each from 1, of a character that is held."""
        last = self._text.rfind("\n", 0, at)
        return self._lines + self._text.count("\n", 0, at) + 1, at - last + (self._columns if last < 0 else 0)


def _skip(text: str, start: int) -> int:
    """Return the position of the next character that is not space."""
    found = _SPACE.match(text, start)
    return found.end() if found else start
