"""Exports of annotation tools: read the records of a file, tell which tool wrote it, collect its votes.

A file holds a JSON array, one object, or one object per line, zipped or gzipped. The content decides.
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
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing
from importlib import import_module
from itertools import chain
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from dhkappa.core import Label
from dhkappa.core.labels import RULE, NotALabelError, natural_key, to_label
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.columns import SHOWN_NAMES, RoleKeywords
from dhkappa.inputs.tables import Source
from dhkappa.paths import Path, check_regular, most_unpacked, system_message
from dhkappa.resources import MIB, need

# Modules of this package, with the name of the tool.
TOOLS = {"label_studio": "Label Studio", "prodigy": "Prodigy", "doccano": "doccano", "argilla": "Argilla"}
Record: TypeAlias = dict[str, Any]
Records: TypeAlias = dict[str, list[Record]]  # by file name without suffix: one for a JSON file, several for a zip
_SUFFIXES = (".json", ".jsonl", ".ndjson")
_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 16  # bytes read at a time, or more within a long record
_LEAST, _PER_BYTE = 64 * MIB, 2  # memory to leave, and per byte read for its votes: without it, the system kills us
_LONGEST = 64 * 10**6  # characters of a record
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)  # RuntimeError: a locked zip
_Stream: TypeAlias = Callable[[int], bytes]


def find_tool(path: Path) -> str | None:
    """Return the module of the tool that wrote a file, by its first record; None if it is no known export."""
    record = first_record(path)
    return next((name for name in TOOLS if record is not None and _module(name).recognize(record)), None)


def read_file(path: Path, tool: str, question: str | None = None) -> Source:
    """Read the export of a tool, named by its module. The tables of the result are columns by name."""
    source: Source = _module(tool).read_export(read_records(path), question=question)
    return source


def _module(name: str) -> Any:
    return import_module(f"dhkappa.inputs.readers.{name}")


def read_records(path: Path) -> Records:
    """Read all records of a UTF-8 file, or of each JSON file in a zip; limits the size of packed files."""
    name = os.fspath(path)
    found: Records = {}
    try:
        with closing(_streams(name)) as streams:
            for member, stream in streams:
                last = PurePath(member or name).name
                last = last[:-3] if last.lower().endswith(".gz") else last
                stem = last.rsplit(".", 1)[0] or last
                if stem in found:
                    raise DataError(f"{name!r} holds two files called {stem!r}.", code="duplicate-file")
                found[stem] = list(_Text(stream, f"{name}: {member}" if member else name).records())
    except _UNREADABLE as error:
        raise DataError(f"Cannot read {name!r}: {system_message(error)}.", code="file-not-readable") from None
    if not any(found.values()):
        raise DataError(f"{name!r} holds no records.", code="empty-file")
    return found


def first_record(path: Path) -> Record | None:
    """Return the first record of a file, reading as little as possible; None if it has no records."""
    try:
        with closing(_streams(os.fspath(path))) as streams:
            return next(chain.from_iterable(_Text(stream, "").records() for _, stream in streams), None)
    except (*_UNREADABLE, DataError):
        return None


def _streams(name: str) -> Generator[tuple[str, _Stream]]:
    """Open a file, or each JSON file in a zip, with its name there."""
    check_regular(name)
    with open(name, "rb") as file:
        left = most = most_unpacked(os.fstat(file.fileno()).st_size)

        def limited(stream: io.BufferedIOBase) -> _Stream:
            def read(size: int) -> bytes:
                nonlocal left
                held = stream.read(size)
                left -= len(held)
                if left < 0:  # a decompression bomb
                    message = f"{name!r} unpacks to over {most >> 20:,} MiB, too much for an export of its size."
                    raise DataError(message, code="file-too-large", hint="If you trust it, unpack it.")
                return held

            return read

        if not file.peek(4).startswith((b"PK\x03\x04", b"PK\x05\x06")):
            yield "", limited(gzip.GzipFile(fileobj=file)) if file.peek(2).startswith(_GZIP) else file.read
            return
        with zipfile.ZipFile(file) as archive:
            inside = [info.filename for info in archive.infolist() if not info.is_dir()]
            own = [one for one in inside if "__macosx" not in one.lower().split("/")]  # macOS adds similar names
            members = [one for one in own if one.lower().removesuffix(".gz").endswith(_SUFFIXES)]
            if not members:
                held = shown(inside) or "nothing"
                raise DataError(f"The zip {name!r} has no .json or .jsonl file. It holds: {held}.", code="empty-file")
            for member in members:
                with archive.open(member) as opened:
                    stream = io.BufferedReader(cast(io.RawIOBase, opened))
                    yield member, limited(gzip.GzipFile(fileobj=stream) if stream.peek(2).startswith(_GZIP) else stream)


class _Text:
    """Decodes JSON values from a stream, holding one value and one block of text at a time."""

    def __init__(self, stream: _Stream, name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._ended, self._size = "", 0, False, 0
        self._lines = self._columns = 0  # line ends before the held text, and characters since the last of them

    def records(self) -> Iterator[Record]:
        """Decode the objects of one array, or objects with nothing but space between them."""
        array = self._peek() == "["
        self._at += array
        more = self._peek() != ("]" if array else "")
        place = 0
        while more:
            place += 1
            value, end = self._value()
            if not isinstance(value, dict):
                where = f"as record {place}" if array else f"in line {self._line()}"
                message = f"{self._name!r} holds {shown([value])} {where}. A record is a JSON object."
                raise DataError(message, code="not-records")
            yield value
            self._at = end
            following = self._peek()
            if array and following not in (",", "]"):
                raise self._invalid("Expecting ',' delimiter", self._at)
            more = following == "," if array else following != ""
            if array and more:
                self._at += 1
        self._at += array
        if self._peek():
            raise self._invalid("Extra data", self._at)

    def _peek(self) -> str:
        """Move to the next character that is not space and return it; "" at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._read_block():
                return self._text[self._at : self._at + 1]

    def _value(self) -> tuple[Any, int]:
        """Decode the next value, reading as many blocks as it takes; return it with the position of its end."""
        self._peek()
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
                message = f"{self._name!r} holds JSON that cannot be read, in line {self._line()} or after it: {error}."
                raise DataError(message, code="malformed-file") from None
            else:
                self._check_length(end)
                if end < len(self._text) or not self._read_block():  # a number may go on in the next block
                    return value, end

    def _read_block(self) -> bool:
        """Forget what was decoded and read as much text as is held, at least one block; False at the end."""
        if self._ended:
            return False
        need(_LEAST + _PER_BYTE * self._size, "the export")
        line, column = self._position(self._at)
        self._lines, self._columns = line - 1, column - 1
        self._text, self._at = self._text[self._at :], 0
        held = self._stream(max(_BLOCK, len(self._text)))
        self._ended = not held
        self._size += len(held)
        try:
            self._text += self._decoder.decode(held, final=self._ended)
        except UnicodeDecodeError as error:
            line = self._position(len(self._text))[0] + held.count(b"\n", 0, error.start)
            message = f"{self._name!r} is not UTF-8 in line {line}."
            raise DataError(message, code="not-utf8", hint="Save it as UTF-8.") from None
        return True

    def _check_length(self, end: int) -> None:
        if end - self._at > _LONGEST:
            most = f"{_LONGEST // 10**6} million characters"
            message = f"{self._name!r} has a record of over {most}, in line {self._line()}."
            hint = "If it is an export of an annotation tool, remove long texts."
            raise DataError(message, code="record-too-long", hint=hint)

    def _invalid(self, problem: str, at: int) -> DataError:
        """Return the error for invalid JSON; a line that ends too early is named, not the next one."""
        before = len(self._text[:at].rstrip(" \t\r\n"))
        at = before if before and "\n" in self._text[before:at] and problem.startswith("Expecting") else at
        line, column = self._position(at)
        message = f"{self._name!r} is not valid JSON in line {line}, column {column}: {problem}."
        return DataError(message, code="malformed-file", hint="It may be damaged or truncated.")

    def _line(self) -> int:
        return self._position(self._at)[0]

    def _position(self, at: int) -> tuple[int, int]:
        """Return the line and the column, each from 1, of a character that is held."""
        last = self._text.rfind("\n", 0, at)
        return self._lines + self._text.count("\n", 0, at) + 1, at - last + (self._columns if last < 0 else 0)


def labeler_name(given: Any, unnamed: str) -> str:
    """Return the name of a labeler; ``item`` is the name of another column."""
    name = str(given or unnamed)
    return f"{unnamed} {name}" if name == "item" else name


class ExportBuilder:
    """Collects items, votes and suggested labels of one tool's export."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.items: dict[Label, None] = {}
        self.skipped: Counter[str] = Counter()
        self.votes: dict[str, list[Label | None]] = {"item": [], "annotator": [], "label": []}
        self._suggested: dict[str, dict[Label, Label]] = {}
        self._shown: dict[str, dict[Label, str]] = {}

    def item(self, value: Any, where: str) -> Label:
        """Add an item by its id, unless it is known."""
        item = self.label(value, f"the id of {where}")
        if item is None:
            raise self.malformed(f"{where} has no id")
        self.items.setdefault(item)
        return item

    def vote(self, item: Label, annotator: Label | None, label: Label | None, otherwise: str) -> None:
        """Add a vote. What has no label is not a vote and counted as ``otherwise``."""
        if label is None:
            self.skipped[otherwise] += 1
            return
        for column, value in zip(self.votes.values(), (item, annotator, label), strict=True):
            column.append(value)

    def suggest(self, labeler: str, item: Label, label: Label | None) -> None:
        """Add a suggested label; None names the labeler only."""
        labels = self._suggested.setdefault(labeler, {})
        if label is not None and labels.setdefault(item, label) != label:
            whose = f"Labeler {shown([labeler])} of the {self.tool} export"
            message = f"{whose} has two labels for item {shown([item])}: {shown([labels[item], label])}."
            raise DataError(message, code="conflicting-suggestions", hint="Keep one label per labeler and item.")

    def show(self, item: Label, values: Any) -> None:
        """Add what an item consists of, such as its text: the texts among ``values`` with a usual name."""
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, str) and value and name.casefold() in SHOWN_NAMES:
                self._shown.setdefault(name.casefold(), {}).setdefault(
                    item, value.encode("utf-8", "backslashreplace").decode()
                )

    def label(self, value: Any, where: str) -> Label | None:
        """Return a label or an id; None if missing."""
        try:
            return to_label(value)
        except NotALabelError as wrong:
            raise DataError(f"In the {self.tool} export, {where} is {wrong}.", code="not-a-label", hint=RULE) from None

    def malformed(self, problem: str, hint: str = "Export the project again.") -> DataError:
        """Return the error for an export that the tool does not write like this."""
        return DataError(f"Malformed {self.tool} export: {problem}.", code="malformed-export", hint=hint)

    def no_labels(self, problem: str, hint: str) -> DataError:
        """Return the error for answers that are not labels of whole items."""
        return DataError(f"The {self.tool} export {problem}.", code="no-item-labels", parameter="question", hint=hint)

    def several_labels(self, where: str, chosen: Iterable[Any], hint: str) -> DataError:
        """Return the error for answers of several labels."""
        message = f"In the {self.tool} export, {where} has several labels: {shown(chosen)}. A vote is one label."
        return DataError(message, code="several-labels", parameter="question", hint=hint)

    def choose(self, question: str | None, names: Collection[str], what: str = "questions") -> str:
        """Return the question, or the only one there is."""
        listed = f"{what.capitalize()}: {shown(sorted(names, key=natural_key), 20) or 'none'}."
        if question is None and len(names) > 1:
            message, hint = f"The {self.tool} export has several {what}. {listed}", "Choose one with $question."
            raise DataError(message, code="several-questions", parameter="question", hint=hint)
        if question is not None and question not in names:
            message = f"{shown([question])} is not among the {what} of the {self.tool} export. {listed}"
            hint = did_you_mean(question, names).strip()
            raise DataError(message, code="question-not-found", parameter="question", hint=hint)
        return next(iter(names), "") if question is None else question

    def build(self, unlabeled: str = "", cautions: tuple[str, ...] = ()) -> Source:
        """Return the export: columns of its votes, and of its items with the labels of each labeler or None."""
        labelers = tuple(sorted(self._suggested, key=natural_key))
        items: dict[str, list[Label | None]] = {"item": list(self.items)}
        for labeler in labelers:
            items[labeler] = [self._suggested[labeler].get(item) for item in self.items]
        taken = {name.casefold() for name in items}
        shown = {name: [of.get(item) for item in self.items] for name, of in self._shown.items() if name not in taken}
        roles = RoleKeywords(item="item", label="label", annotator="annotator")
        skipped = dict(+self.skipped)
        return Source(
            self.votes, items, roles, labelers, self.tool, skipped, unlabeled, cautions, ordered=True, shown=shown
        )
