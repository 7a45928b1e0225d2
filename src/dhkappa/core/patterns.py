"""Patterns: the distinct (suggested label, vote counts) of items, each with how many items share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, Label
from dhkappa.core.grouping import BLOCK, group_rows

_MAX_SEEDS = 64
MAX_ITEMS = 2**62
MAX_VOTES = 2**31 - 1  # on one item: the number of its pairs then fits 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """K patterns in sparse rows: categories without votes are not stored.

    Attributes
    ----------
    suggested : (K,) code of the suggested label, -1 if missing
    start : (K + 1,) row k is ``start[k]:start[k + 1]`` of the next two
    code : categories that have votes, ascending in each row
    votes : how many, at least 1
    items : (K,) number of items with the pattern
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
        """Yield blocks of rows, without copying."""
        for first in range(0, len(self), rows):
            start = self.start[first : first + rows + 1]
            span = slice(start[0], start[-1])
            part = slice(first, first + rows)
            yield Patterns(self.suggested[part], start - start[0], self.code[span], self.votes[span], self.items[part])

    def take(self, rows: npt.NDArray[Any]) -> Patterns:
        """Return some rows, by index or mask."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        length = (self.start[1:] - self.start[:-1])[rows]
        start = _ends(length)
        where = np.repeat(self.start[rows] - start[:-1], length)
        where += np.arange(where.size)
        return Patterns(self.suggested[rows], start, self.code[where], self.votes[where], self.items[rows])

    def recode(self, table: Integers, labels: Integers) -> Patterns:
        """Map vote codes through ``table`` and suggested codes through ``labels``; -1 stays missing."""
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
        """Return each distinct pattern once, items added up, in an order that depends on the patterns only."""
        return self.grouped()[0]

    def grouped(self) -> tuple[Patterns, npt.NDArray[Any]]:
        """Return the merged patterns, and (K,) the index of each row among them."""
        if len(self) == 0:
            return self, np.zeros(0, np.int64)
        for seed in range(1, _MAX_SEEDS):
            first, group = group_rows([(0, _fingerprint(self, seed))])
            if self._equal_rows(first[group]):
                items = np.zeros(first.size, np.int64)
                np.add.at(items, group, self.items)
                return replace(self.take(first), items=items), group
        raise RuntimeError("Different patterns have equal hashes for every seed: codes in a row do not ascend.")

    def _equal_rows(self, other: npt.NDArray[np.int64]) -> bool:
        """Tell whether each row equals the row at ``other``: no two hashes collided."""
        rows = np.flatnonzero(other != np.arange(len(self)))
        other = other[rows]
        length = np.diff(self.start)
        if (self.suggested[rows] != self.suggested[other]).any() or (length[rows] != length[other]).any():
            return False
        length = length[rows]
        entry = np.arange(length.sum()) - np.repeat(_ends(length)[:-1], length)
        here, there = (entry + np.repeat(self.start[place], length) for place in (rows, other))
        return bool((self.code[here] == self.code[there]).all() and (self.votes[here] == self.votes[there]).all())


@dataclass(frozen=True, slots=True, eq=False)
class LabeledPatterns:
    """K patterns with the labels of one labeler, and how their items were sampled.

    Attributes
    ----------
    categories : the categories, in the order of codes
    patterns : K rows; not necessarily distinct
    strata : names of the strata, in order
    stratum : (K,) index into ``strata``; None without strata
    weight : (K,) sample weight of one item; None without weights
    source_notes : sentences about where the votes came from
    """

    categories: tuple[Label, ...]
    patterns: Patterns
    strata: tuple[Label, ...] = ()
    stratum: Integers | None = None
    weight: npt.NDArray[np.float64] | None = None
    source_notes: tuple[str, ...] = ()


EMPTY = Patterns(
    np.zeros(0, np.int32),
    np.zeros(1, np.int64),
    np.zeros(0, np.uint8),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int64),
)


def stack(tables: Sequence[Patterns]) -> Patterns:
    """Concatenate tables of the same categories, without merging."""
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
    """Merge tables of the same categories; intermediate results are merged when the number of rows has doubled."""
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

    ``absent`` marks digits that are missing votes.
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
    """Convert dense (K, m) counts to sparse rows."""
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
    """Return (K,) a 64-bit hash of each pattern: a sum of mixed (code, votes)."""
    upto = np.zeros(table.code.size + 1, np.uint64)
    np.cumsum(_mix(table.code.astype(np.uint64) << np.uint64(32) ^ table.votes.astype(np.uint64), seed), out=upto[1:])
    inside: npt.NDArray[np.uint64] = upto[table.start[1:]] - upto[table.start[:-1]]
    return _mix(inside, seed) + _mix(table.suggested.astype(np.uint64), -seed)


def _mix(word: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Mix 64-bit words (finalizer of splitmix64)."""
    word = word + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word ^= word >> np.uint64(shift)
        word *= np.uint64(factor)
    word ^= word >> np.uint64(31)
    return word
