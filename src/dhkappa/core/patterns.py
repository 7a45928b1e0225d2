"""Patterns: the distinct (suggested label, vote counts) of items, each with how many items share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import Integers

_MOST_SEEDS = 64
MOST_ITEMS = 2**62
MOST_VOTES = 2**31 - 1  # on one item: its pairs then fit 64 bits
BLOCK = 1 << 16  # rows worked on at once, so that temporaries stay in cache


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """K patterns in sparse rows; a category without votes takes no room.

    Attributes
    ----------
    suggested : (K,) code of the suggested label, -1 where it is missing
    start : (K + 1,) row k is ``start[k]:start[k + 1]`` of the next two
    code : categories that have votes, ascending in each row
    votes : how many, at least 1
    items : (K,) how many items share the pattern
    """

    suggested: Integers
    start: npt.NDArray[np.int64]
    code: Integers
    votes: Integers
    items: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return self.items.size

    def vote_totals(self) -> npt.NDArray[np.int64]:
        """Return (K,) the number of votes on each item of a pattern, N_i."""
        upto = np.zeros(self.code.size + 1, np.int64)
        np.cumsum(self.votes, out=upto[1:])
        return upto[self.start[1:]] - upto[self.start[:-1]]

    def n_votes(self) -> int:
        """Return the number of votes on all items."""
        return sum(map(int.__mul__, self.items.tolist(), self.vote_totals().tolist()))

    def blocks(self, rows: int = BLOCK) -> Iterator[Patterns]:
        """Yield the table a block of rows at a time, without copying."""
        for first in range(0, len(self), rows):
            start = self.start[first : first + rows + 1]
            span = slice(start[0], start[-1])
            part = slice(first, first + rows)
            yield Patterns(self.suggested[part], start - start[0], self.code[span], self.votes[span], self.items[part])

    def take(self, rows: npt.NDArray[Any]) -> Patterns:
        """Return some rows, by index or by mask, in the order named."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        length = (self.start[1:] - self.start[:-1])[rows]
        start = _ends(length)
        where = np.repeat(self.start[rows] - start[:-1], length)
        where += np.arange(where.size)
        return Patterns(self.suggested[rows], start, self.code[where], self.votes[where], self.items[rows])

    def recode(self, table: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Patterns:
        """Rename categories: ``table`` maps vote codes and ``labels`` suggested codes; -1 (last) stays missing."""
        suggested = np.append(labels, -1).astype(np.int32)[self.suggested]
        if np.array_equal(table, np.arange(table.size)):
            return Patterns(suggested, self.start, self.code, self.votes, self.items)
        code = table.astype(np.min_scalar_type(int(table.max(initial=0))))[self.code]
        used = table[table >= 0]
        if (used[1:] > used[:-1]).all():
            return Patterns(suggested, self.start, code, self.votes, self.items)
        row = np.repeat(np.arange(len(self)), np.diff(self.start))
        order = np.lexsort((code, row))
        return Patterns(suggested, self.start, code[order], self.votes[order], self.items)

    def merged(self) -> Patterns:
        """Return each different pattern once, its items added up, in an order that only the patterns decide."""
        if len(self) == 0:
            return self
        rows, _, alike = self._side_by_side()
        first = np.flatnonzero(~alike)
        items = np.add.reduceat(rows.items, first)
        if first.size < len(rows):
            rows = rows.take(first)
        return Patterns(rows.suggested, rows.start, rows.code, rows.votes, items)

    def grouped(self) -> tuple[Patterns, npt.NDArray[np.int64]]:
        """Return the merged patterns, and (K,) the place of each row among them."""
        place = np.zeros(len(self), np.int64)
        if len(self):
            _, order, alike = self._side_by_side()
            place[order] = np.cumsum(~alike) - 1
        return self.merged(), place

    def _side_by_side(self) -> tuple[Patterns, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the rows in order of a hash, that order, and which rows are the same as the row above."""
        for seed in range(1, _MOST_SEEDS):
            mark = _fingerprint(self, seed)
            order = np.argsort(mark, kind="stable")
            alike = np.zeros(len(self), np.bool_)
            alike[1:] = mark[order][1:] == mark[order][:-1]
            rows = self.take(order)
            if _as_above(rows, alike):
                return rows, order, alike
        raise RuntimeError("different patterns share every hash: codes in a row do not ascend")


EMPTY = Patterns(
    np.zeros(0, np.int32),
    np.zeros(1, np.int64),
    np.zeros(0, np.uint8),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int64),
)


def stack(tables: Sequence[Patterns]) -> Patterns:
    """Put tables of the same categories under one another, without merging."""
    if len(tables) == 1:
        return tables[0]
    tables = [EMPTY, *tables]
    return Patterns(
        np.concatenate([table.suggested for table in tables]),
        _ends(np.concatenate([np.diff(table.start) for table in tables])),
        np.concatenate([table.code for table in tables]),
        np.concatenate([table.votes for table in tables]),
        np.concatenate([table.items for table in tables]),
    )


def merge(tables: Iterable[Patterns]) -> Patterns:
    """Merge tables of the same categories as they come, whenever as many new rows as old have gathered."""
    gathered = [EMPTY]
    for table in tables:
        gathered.append(table)
        if sum(map(len, gathered[1:])) > max(len(gathered[0]), 8 * BLOCK):
            gathered = [stack(gathered).merged()]
    return stack(gathered).merged()


def from_votes(
    digits: Integers,
    start: npt.NDArray[np.int64],
    absent: npt.NDArray[np.bool_],
    suggested: Integers,
    items: Integers,
) -> Patterns:
    """Count runs of equal digits in each row ``start[i]:start[i + 1]``, where digits ascend.

    Digits that ``absent`` marks are missing votes and leave no trace.
    """
    fresh = np.ones(digits.size, np.bool_)
    np.not_equal(digits[1:], digits[:-1], out=fresh[1:])
    fresh[start[:-1][start[:-1] < digits.size]] = True
    first = np.flatnonzero(fresh)
    votes = np.diff(first, append=digits.size)
    code = digits[first]
    if absent.any():
        keep = ~absent[code]
        fresh[first[~keep]] = False
        votes, code = votes[keep], code[keep]
    votes = votes.astype(np.min_scalar_type(int(votes.max(initial=0))))
    return Patterns(suggested, _ends(fresh)[start], code, votes, items.astype(np.int64, copy=False))


def from_counts(counts: Integers, suggested: Integers, items: Integers) -> Patterns:
    """Take (K, m) counts, dense, into sparse rows."""
    row, code = np.nonzero(counts)
    votes = counts[row, code]
    votes = votes.astype(np.min_scalar_type(int(votes.max(initial=0))))
    start = np.searchsorted(row, np.arange(len(counts) + 1))
    code = code.astype(np.min_scalar_type(counts.shape[1]))
    return Patterns(suggested, start, code, votes, items.astype(np.int64, copy=False))


def _ends(length: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return where rows of these lengths start, and where the last one ends."""
    start = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def _fingerprint(table: Patterns, seed: int) -> npt.NDArray[np.uint64]:
    """Return (K,) a 64-bit hash of each pattern: a sum of mixed (code, votes), so order does not matter."""
    upto = np.zeros(table.code.size + 1, np.uint64)
    np.cumsum(_mix(table.code.astype(np.uint64) << np.uint64(32) ^ table.votes.astype(np.uint64), seed), out=upto[1:])
    inside: npt.NDArray[np.uint64] = upto[table.start[1:]] - upto[table.start[:-1]]
    return _mix(inside, seed) + _mix(table.suggested.astype(np.uint64), -seed)


def _mix(word: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Scatter 64-bit words (the finaliser of splitmix64, after adding the seed's multiple of its constant)."""
    word = word + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word ^= word >> np.uint64(shift)
        word *= np.uint64(factor)
    word ^= word >> np.uint64(31)
    return word


def _as_above(table: Patterns, alike: npt.NDArray[np.bool_]) -> bool:
    """Tell whether every row so marked is the same pattern as the row above it: no two hashes collided."""
    rows = np.flatnonzero(alike)
    length = np.diff(table.start)
    if (table.suggested[rows] != table.suggested[rows - 1]).any() or (length[rows] != length[rows - 1]).any():
        return False
    length = length[rows]
    here = np.repeat(table.start[rows] - _ends(length)[:-1], length)
    here += np.arange(here.size)
    above = here - np.repeat(length, length)
    return bool((table.code[here] == table.code[above]).all() and (table.votes[here] == table.votes[above]).all())
