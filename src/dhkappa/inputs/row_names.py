"""Names of the rows of files in which no column names the items: the file, and the place of the row in it.

``votes.csv:17`` is the row that starts in line 17, as an editor counts: the header is in line 1, and blank lines and
line breaks in quotes count. In an Excel file, 17 is the number of the row that Excel shows. Formats without lines have
``votes.parquet row 16``, counted from 1. If the rows of a file are not those that were read, names are ``row 16``,
counted from 1 over all files. Rows keep their names if filters leave out others.
"""

from __future__ import annotations

import csv
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

from dhkappa.errors import DataError


class RowNames(Sequence[str]):
    """Names of rows: a text for each file, and a number for each of its rows."""

    def __init__(self, texts: Sequence[str], numbers: Sequence[Sequence[int]]) -> None:
        self._texts, self._numbers = texts, numbers
        self._ends = list(accumulate(map(len, numbers)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[str]:
        for text, numbers in zip(self._texts, self._numbers, strict=True):
            yield from (f"{text}{number}" for number in numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        file = bisect_right(self._ends, place)
        return f"{self._texts[file]}{self._numbers[file][place - (self._ends[file - 1] if file else 0)]}"


@dataclass(frozen=True, slots=True)
class FileRows:
    """Files whose rows can be named, and how to read them."""

    files: tuple[str, ...]
    kind: str  # such as "CSV"
    count: Callable[[str], int]  # number of rows of a file
    blocks: Callable[[str], Iterable[bytes]]  # content of a file, unpacked
    lines: Callable[[str], Iterable[str]]
    separator: Callable[[str], str]  # of a CSV file
    sheet_rows: Callable[[str], Sequence[int]]  # numbers of the rows of a sheet

    def names(self, n: int) -> RowNames:
        """Return the names of all n rows of the files."""
        folder = os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in self.files])
        names = [os.path.basename(file) for file in self.files]
        if len({*names}) < len(names):
            names = [os.path.relpath(file, folder) for file in self.files]
        try:
            found = self._numbers(n)
            if found is not None:
                return RowNames([f"{name}:" for name in names], found)
            counts = [n] if len(self.files) == 1 else [*map(self.count, self.files)]
        except DataError:  # a line that is too long, or a file that is not well-formed
            counts = []
        if sum(counts) != n or (len(self.files) == 1 and self.count(self.files[0]) != n):
            return RowNames(["row "], [range(1, n + 1)])
        return RowNames([f"{name} row " for name in names], [range(1, count + 1) for count in counts])

    def _numbers(self, n: int) -> list[Sequence[int]] | None:
        """Return the line, or the row of a sheet, in which each row starts; None if that is unknown."""
        found: list[Sequence[int]]
        if self.kind == "Excel":
            found = [self.sheet_rows(file) for file in self.files]
            return found if sum(map(len, found)) == n else None
        if any(file.lower().endswith(".zst") for file in self.files):
            return None
        header = {"CSV": 1, "TSV": 1, "JSONL": 0}.get(self.kind)
        if header is None:
            return None
        found = [range(1 + header, self._count_lines(file) + 1) for file in self.files]
        if sum(map(len, found)) == n:  # no file has more rows than that, so each has as many
            return found
        if not header:
            return None
        found = [self._starts(file) for file in self.files]
        single = len(self.files) == 1
        return found if [len(one) for one in found] == ([n] if single else [*map(self.count, self.files)]) else None

    def _count_lines(self, file: str) -> int:
        n, last = 0, b"\n"
        for block in self.blocks(file):
            n, last = n + block.count(b"\n"), block[-1:] or last
        return n + (last != b"\n")

    def _starts(self, file: str) -> list[int]:
        """Return the line in which each record after the header starts; blank lines are no records."""
        reader = csv.reader(self.lines(file), delimiter=self.separator(file), strict=True)
        found, before = [], 0
        try:
            for row in reader:
                if row:
                    found.append(before + 1)
                before = reader.line_num
        except csv.Error:
            return []
        return found[1:]
