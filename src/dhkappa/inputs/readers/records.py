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
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from dhkappa.errors import DataError, shown
from dhkappa.inputs.readers.export import Records
from dhkappa.paths import check_regular

Record = dict[str, Any]

_SUFFIXES = (".json", ".jsonl", ".ndjson")
_GZIP = b"\x1f\x8b"
_HEAD = 1 << 16
_LONGEST = 64 * 10**6  # characters of a record
_UNPACKED, _TIMES = 1 << 28, 200  # a packed file may hold so many bytes, or so many times its own
_DECODER = json.JSONDecoder()
_Stream: TypeAlias = Callable[[int], bytes]
_SPACE = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)  # the last: locked, or packed oddly


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read every record of a JSON or JSONL file, or of each such file in a zip; any of them may be gzipped.

    Parameters
    ----------
    path : the file; UTF-8, with or without a byte order mark. What is packed may hold 256 MiB, or 200 times its size.

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
        raise DataError(f"cannot read {name}: {_told(error)}.") from None
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


def _streams(name: str) -> Generator[tuple[str | None, _Stream]]:
    """Open what a file holds: itself, or each JSON file of a zip with its name there, unpacked as it is read."""
    check_regular(name)
    with open(name, "rb") as file:
        ration = _Ration(name, os.fstat(file.fileno()).st_size)
        if not file.peek(4).startswith((b"PK\x03\x04", b"PK\x05\x06")):
            packed = file.peek(2).startswith(_GZIP)
            yield None, ration.of(gzip.GzipFile(fileobj=file)) if packed else file.read
            return
        with zipfile.ZipFile(file) as archive:
            inside = [info.filename for info in archive.infolist() if not info.is_dir()]
            members = [member for member in inside if _is_json(member)]
            if not members:
                held = shown(inside) or "nothing"
                raise DataError(f"{name} is a zip without a .json or .jsonl file: it holds {held}.")
            for member in members:
                with archive.open(member) as opened:
                    stream = io.BufferedReader(cast(io.RawIOBase, opened))
                    packed = stream.peek(2).startswith(_GZIP)
                    yield member, ration.of(gzip.GzipFile(fileobj=stream) if packed else stream)


class _Ration:
    """How much may come out of a packed file: a small one that unpacks to very much is made to do harm."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._most = name, max(_UNPACKED, _TIMES * size)
        self._left = self._most

    def of(self, stream: io.BufferedIOBase) -> _Stream:
        """Return how to read a stream of the file, as long as the ration lasts."""

        def read(size: int) -> bytes:
            held = stream.read(size)
            self._left -= len(held)
            if self._left < 0:
                raise DataError(
                    f"{self._name} unpacks to over {self._most >> 20:,} MiB, far more than an export of its size "
                    "should hold: if you trust it, unpack it, or pack it again without compression."
                )
            return held

        return read


def _is_json(member: str) -> bool:
    """Tell whether a zip's member holds records; macOS puts files of its own, named like the real ones, beside."""
    plain = member.lower().removesuffix(".gz")
    return plain.endswith(_SUFFIXES) and "__macosx" not in plain.split("/")


def _stem(name: str) -> str:
    """Return a file's name without folder and suffix."""
    last = PurePath(name).name
    last = last[:-3] if last.lower().endswith(".gz") else last
    return last.rsplit(".", 1)[0] or last


def _records(stream: _Stream, name: str) -> Iterator[Record]:
    """Read values one after the other, as lines of JSON are, or those of an array that is alone."""
    text = _Text(stream, name)
    array = text.next() == "["
    for place, value in enumerate(text.elements() if array else text.values(), 1):
        if not isinstance(value, dict):
            where = f"as its record {place}" if array else f"in line {text.line()}"
            raise DataError(f"{name} holds {shown([value])} {where}: a record is a JSON object.")
        yield value


class _Text:
    """The text of a stream, of which no more is held than one value and a block; it knows in which line it stands."""

    def __init__(self, stream: _Stream, name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._start, self._ended = "", 0, 0, False
        self._lines = self._signs = 0  # line ends before the text that is held, and signs since the last of them

    def line(self) -> int:
        """Return the line in which the last value starts."""
        return self._place(self._start)[0]

    def values(self) -> Iterator[Any]:
        """Decode values with nothing between them."""
        while self.next():
            yield self._value()

    def elements(self) -> Iterator[Any]:
        """Decode the values of an array."""
        self._at += 1
        more = self.next() != "]"
        while more:
            yield self._value()
            more = self.next() == ","
            if not more and self.next() != "]":
                raise self._wrong("Expecting ',' delimiter", self._at)
            self._at += more
            self.next()
        self._at += 1
        if self.next():
            raise self._wrong("Extra data", self._at)

    def next(self) -> str:
        """Go to the next sign that is not space, and return it; nothing at the end."""
        while True:
            self._at = _skip(self._text, self._at)
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """Decode the value that starts here, from as little text as will do."""
        stopped = -1
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # A string may be long; any other error that more text does not move is one for good.
                moved = error.pos - self._at
                if moved == stopped and not error.msg.startswith("Unterminated string"):
                    raise self._wrong(error.msg, error.pos) from None
                stopped = moved
                self._check_length(len(self._text))
                if not self._read_on():
                    raise self._wrong(error.msg, error.pos) from None
            except (ValueError, RecursionError) as error:  # an integer too long, or nested too deeply
                line, _ = self._place(self._at)
                raise DataError(
                    f"{self._name} holds JSON that cannot be read, in line {line} or after it: {error}."
                ) from None
            else:
                self._check_length(end)
                if end < len(self._text) or not self._read_on():  # what ends the text may be half a number
                    self._start, self._at = self._at, end
                    return value

    def _read_on(self) -> bool:
        """Drop what was decoded and read a block, twice as long as what is held; False at the end."""
        if self._ended:
            return False
        line, column = self._place(self._at)
        self._lines, self._signs = line - 1, column - 1
        self._text, self._at = self._text[self._at :], 0
        held = self._stream(max(_HEAD, len(self._text)))
        self._ended = not held
        try:
            self._text += self._decoder.decode(held, final=self._ended)
        except UnicodeDecodeError as error:
            line = self._place(len(self._text))[0] + held.count(b"\n", 0, error.start)
            raise DataError(f"{self._name} is not UTF-8 in line {line}: write it as UTF-8.") from None
        return True

    def _check_length(self, end: int) -> None:
        if end - self._at > _LONGEST:
            line, _ = self._place(self._at)
            raise DataError(
                f"{self._name} has a record of over {_LONGEST // 10**6} million characters, in line {line}: this is no "
                "export of an annotation tool, or its texts must be left out of it."
            )

    def _wrong(self, what: str, at: int) -> DataError:
        """Say where JSON ends to be JSON: where a line ends too early, in that line."""
        before = len(self._text[:at].rstrip(" \t\r\n"))
        at = before if before and "\n" in self._text[before:at] and what.startswith("Expecting") else at
        line, column = self._place(at)
        return DataError(
            f"{self._name} is not whole JSON, damaged or cut short, in line {line}, column {column}: {what}."
        )

    def _place(self, at: int) -> tuple[int, int]:
        """Return the line and the column, each from 1, of a sign that is held."""
        last = self._text.rfind("\n", 0, at)
        return self._lines + self._text.count("\n", 0, at) + 1, at - last + (self._signs if last < 0 else 0)


def _first(stream: _Stream) -> Record | None:
    """Decode the first object of a stream, or of the array it holds, from as little of it as will do."""
    text = _Text(stream, "")
    values = text.elements() if text.next() == "[" else text.values()
    value = next(values, None)
    return value if isinstance(value, dict) else None


def _skip(text: str, start: int) -> int:
    """Return where the next character stands that is not space."""
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _told(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)
