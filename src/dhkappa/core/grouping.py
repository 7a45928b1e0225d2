"""Encoded columns, keys of rows, and patterns: the only place that groups and counts equal rows.

A column holds digits from 0 to ``base - 1``. The digits of a row, read as one number with mixed bases, are its key, so
that keys ascend in lexicographic order of the columns. Votes come as an (n, N) grid of digits, as rows of different
lengths, or as an (n, m) matrix of counts. They are counted by the cheapest key that fits 64 bits, else merged by hash.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Floats, Integers, ItemWeights, Label

MAX_ITEMS = 2**62
MAX_VOTES = 2**31 - 1  # on one item: the number of its pairs then fits 64 bits
BLOCK = 1 << 16  # rows processed at once, so that temporaries stay in the cache
WORD = 2**63  # keys below this fit 64 bits

_Items = npt.NDArray[np.int64] | None  # how many items each row stands for; None for one each
_Columns = Callable[[slice], Sequence[Array]]  # returns the digits of some rows
_Bins = tuple[int, int]
_BINS = (1 << 12, 1 << 20)
_MAX_SEEDS = 64
TRIED = 1 << 12  # rows that show whether merging is worth it
_MANY_VOTES = 50  # per item: beyond, counting votes is about as fast as comparing every two of them


@dataclass(frozen=True, slots=True)
class Encoded:
    """Labels as integers: ``values - low`` indexes ``labels``."""

    values: Integers
    low: int
    labels: Sequence[Label | None]  # in the order of categories, None for missing; some may not occur

    @staticmethod
    def absent(n: int) -> Encoded:
        """Return n missing labels."""
        return Encoded(np.broadcast_to(np.uint8(0), n), 0, (None,))

    def take(self, rows: Array | slice) -> Encoded:
        """Return some rows, by index or slice."""
        return Encoded(self.values[rows], self.low, self.labels)

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return which of ``labels`` mean missing."""
        return np.array([label is None for label in self.labels], np.bool_)

    def digits(self, rows: slice = slice(None)) -> Integers:
        """Return the indices into ``labels`` of some rows, as small unsigned integers."""
        block = self.values[rows]
        if self.low:
            block = np.subtract(block, self.low, dtype=np.int64)
        return block.astype(np.min_scalar_type(max(len(self.labels) - 1, 0)), copy=False)

    def occurring(self, digits: Integers) -> list[Label]:
        """Return the labels that these indices refer to, in order."""
        seen = np.zeros(len(self.labels), np.bool_)
        first, step = 0, 1 << 10  # the first rows usually show all labels
        while first < digits.size and not seen.all():
            seen[digits[first : first + step]] = True
            first, step = first + step, min(4 * step, BLOCK)
        found = (self.labels[digit] for digit in np.flatnonzero(seen).tolist())
        return [label for label in found if label is not None]


def join_digits(bases: Sequence[int], digits: Sequence[Array], dtype: npt.DTypeLike) -> Array:
    """Return the key of each row."""
    key = digits[0].astype(dtype)
    for base, digit in zip(bases[1:], digits[1:], strict=True):
        key *= key.dtype.type(base)
        np.add(key, digit, out=key, casting="unsafe")
    return key


def split_digits(keys: Array, bases: Sequence[int]) -> list[Array]:
    """Return the columns of digits that some keys stand for, one per base."""
    digits = []
    for base in bases[:0:-1]:
        rest = keys // keys.dtype.type(base)
        digits.append(keys - rest * keys.dtype.type(base))
        keys = rest
    return [keys, *digits[::-1]]


def count_rows(
    n: int, bases: Sequence[int], columns: _Columns, *, items: _Items = None, block: int = BLOCK, bins: _Bins = _BINS
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return the distinct keys of n rows, ascending, and the number of items with each.

    The ``bases`` have a product below ``WORD``. A row stands for ``items`` items. ``block`` rows are processed at once.
    Keys are counted in a table if there are at most ``max(bins[0], min(n, bins[1]))`` possible ones, else sorted.
    """
    space = math.prod(bases)
    word = np.uint16 if space < 2**16 else np.uint32 if space < 2**32 else np.int64
    if space <= max(bins[0], min(n, bins[1])):
        table = np.zeros(space, np.int64)
        for rows in _slices(n, max(block, space)):
            key = join_digits(bases, columns(rows), word)
            if items is None:
                table += np.bincount(key, minlength=space)
            else:
                np.add.at(table, key, items[rows])
        found = np.flatnonzero(table)
        return found, table[found]
    keys = np.empty(n, word)
    for rows in _slices(n, block):
        keys[rows] = join_digits(bases, columns(rows), word)
    if items is None:
        keys.sort()
    else:
        order = np.argsort(keys, kind="stable")
        keys, items = keys[order], items[order]
    fresh = np.ones(n, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    where = np.flatnonzero(fresh)
    return keys[where], np.diff(where, append=n) if items is None else np.add.reduceat(items, where)


def _slices(n: int, rows: int) -> Iterator[slice]:
    """Yield slices of n rows, so many at a time."""
    return (slice(first, min(first + rows, n)) for first in range(0, n, rows))


def group_rows(columns: Sequence[tuple[int, Array]]) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the first row of each group of equal rows, in order of their keys, and (n,) the group of each row.

    A column is a pair (base, digits). A base of 0 marks values of any kind, such as floats or negative integers.
    """
    n = len(columns[0][1])
    if len(columns) == 1 and not columns[0][0] and n <= BLOCK:  # a few values need no keys
        _, first, group = np.unique(columns[0][1], return_index=True, return_inverse=True)
        return first, group.astype(np.min_scalar_type(max(first.size - 1, 0)))
    space, key = 1, np.zeros(n, np.int64)
    for base, digit in columns:
        if not base or base >= 1 << 32:  # the product of a smaller one and the number of rows fits 64 bits
            values, digit = np.unique(digit, return_inverse=True)
            base = values.size
        if space * base >= WORD // 2:
            distinct, key = np.unique(key, return_inverse=True)
            space = distinct.size
        key = key * base + digit
        space *= base
    if space > max(1 << 20, key.size):
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        return first, group
    first = np.full(space, -1, np.int64)
    first[key[::-1]] = np.arange(key.size - 1, -1, -1)
    found = np.flatnonzero(first >= 0)
    table = np.zeros(space, np.min_scalar_type(max(found.size - 1, 0)))
    table[found] = np.arange(found.size)
    return first[found], table[key]


@dataclass(frozen=True, eq=False)
class Entries:
    """The votes of K patterns in sparse rows: categories without votes are not stored."""

    start: npt.NDArray[np.int64]  # (K + 1,) row k is start[k]:start[k + 1] of the next two
    code: Integers  # categories that have votes, ascending in each row
    votes: Integers  # how many, at least 1
    totals = cached_property(lambda self: np.diff(_ends(self.votes)[self.start]))  # (K,) votes in each row

    def take(self, rows: Array) -> Entries:
        """Return some rows, by index."""
        length = (self.start[1:] - self.start[:-1])[rows]
        start = _ends(length)
        where = np.repeat(self.start[rows] - start[:-1], length)
        where += np.arange(where.size)
        return Entries(start, self.code[where], self.votes[where])


@dataclass(frozen=True, eq=False)
class Grid:
    """The votes of K patterns with N votes each; they become entries when something needs them."""

    codes: Integers  # (K, N)

    def take(self, rows: Array) -> Entries | Grid:
        """Return some rows, by index."""
        return self.entries.take(rows) if "entries" in vars(self) else Grid(self.codes[rows])

    @cached_property
    def entries(self) -> Entries:
        """The same votes in sparse rows."""
        votes = Encoded(self.codes, 0, range(int(self.codes.max(initial=0)) + 1))
        found = stack([*grid_rows(votes, Encoded.absent(len(self.codes)))])
        return Entries(found.start, found.code, found.votes)

    start = property(attrgetter("entries.start"))
    code = property(attrgetter("entries.code"))
    votes = property(attrgetter("entries.votes"))


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """K patterns: suggested labels, votes, and the number of items."""

    suggested: Integers  # (K,) code of the suggested label, -1 if missing
    entries: Entries | Grid  # the votes
    items: npt.NDArray[np.int64]  # (K,) number of items with the pattern

    start = property(attrgetter("entries.start"))  # read often: attrgetter is faster than a function
    code = property(attrgetter("entries.code"))
    votes = property(attrgetter("entries.votes"))

    def __len__(self) -> int:
        return self.items.size

    def vote_totals(self) -> npt.NDArray[np.int64]:
        """Return (K,) the number of votes on each item of a pattern, N_i."""
        if isinstance(self.entries, Grid):
            return np.full(*self.entries.codes.shape)
        return np.broadcast_to(self.entries.totals, len(self))  # read-only, as it is kept

    def row(self) -> npt.NDArray[np.int64]:
        """Return (entries,) the index of the pattern of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def n_votes(self) -> int:
        """Return the number of votes on all items."""
        return sum(map(int.__mul__, self.items.tolist(), self.vote_totals().tolist()))

    def voted(self) -> Integers:
        """Return the categories that have votes, each any number of times."""
        return self.entries.codes.reshape(-1) if isinstance(self.entries, Grid) else self.entries.code

    def blocks(self, rows: int = BLOCK) -> Iterator[Patterns]:
        """Yield blocks of rows, without copying."""
        for part in _slices(len(self), rows):
            start = self.start[part.start : part.stop + 1]
            span = slice(start[0], start[-1])
            entries = Entries(start - start[0], self.code[span], self.votes[span])
            yield Patterns(self.suggested[part], entries, self.items[part])

    def take(self, rows: Array) -> Patterns:
        """Return some rows, by index or mask."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        return Patterns(self.suggested[rows], self.entries.take(rows), self.items[rows])

    def recode(self, table: Integers, labels: Integers) -> Patterns:
        """Map vote codes through ``table`` and suggested codes through ``labels``; -1 stays missing."""
        suggested, entries = np.concatenate([labels, [-1]]).astype(np.int32)[self.suggested], self.entries
        small, used = table.astype(np.min_scalar_type(int(table.max(initial=0)))), table[table >= 0]
        if (table == np.arange(table.size)).all():
            return Patterns(suggested, entries, self.items)
        if isinstance(entries, Grid):
            return Patterns(suggested, Grid(small[entries.codes]), self.items)
        code, votes = small[entries.code], entries.votes
        if (used[1:] <= used[:-1]).any():
            order = np.lexsort((code, self.row()))
            code, votes = code[order], votes[order]
        return Patterns(suggested, Entries(entries.start, code, votes), self.items)

    def merged(self) -> Patterns:
        """Return each distinct pattern once, items added up, in an order that depends on the patterns only."""
        return self.grouped()[0]

    def grouped(self) -> tuple[Patterns, Array]:
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
    """K patterns with the labels of one labeler, and how their items were sampled."""

    categories: Categories  # in the order of codes
    patterns: Patterns  # K rows; not necessarily distinct
    strata: Categories = ()  # in order
    stratum: Integers | None = None  # (K,) index into strata; None without strata
    weight: Floats | None = None  # (K,) sample weight of one item; None without weights
    cluster: Integers | None = None  # (K,) number of the cluster; None without clusters
    source_notes: tuple[str, ...] = ()  # sentences about where the votes came from
    item_weights: ItemWeights | None = None  # instead of ``weight``, if items of a pattern have different weights


_NONE = np.zeros(0, np.uint8)
EMPTY = Patterns(_NONE.astype(np.int32), Entries(np.zeros(1, np.int64), _NONE, _NONE), _NONE.astype(np.int64))


def stack(tables: Sequence[Patterns]) -> Patterns:
    """Concatenate tables of the same categories, without merging."""
    if len(tables) == 1:
        return tables[0]
    columns = ((one.suggested, np.diff(one.start), one.code, one.votes, one.items) for one in (EMPTY, *tables))
    suggested, length, code, votes, items = map(np.concatenate, zip(*columns, strict=True))
    return Patterns(suggested, Entries(_ends(length), code, votes), items)


def merge(tables: Iterable[Patterns]) -> Patterns:
    """Merge tables of the same categories; intermediate results are merged when the number of rows has doubled."""
    gathered = [EMPTY]
    for table in tables:
        gathered.append(table)
        if sum(map(len, gathered[1:])) > max(len(gathered[0]), 8 * BLOCK):
            gathered = [stack(gathered).merged()]
    return stack(gathered).merged()


def from_votes(digits: Integers, start: Integers, absent: Array, suggested: Integers, items: Integers) -> Patterns:
    """Count equal digits in each row ``start[i]:start[i + 1]``, where they ascend; ``absent`` ones are no votes."""
    fresh = np.ones(digits.size, np.bool_)
    np.not_equal(digits[1:], digits[:-1], out=fresh[1:])
    fresh[start[:-1][start[:-1] < digits.size]] = True
    first = np.flatnonzero(fresh)
    votes, code = np.diff(first, append=digits.size), digits[first]
    if absent.any():
        keep = ~absent[code]
        first, votes, code = first[keep], votes[keep], code[keep]
    votes = votes.astype(np.min_scalar_type(int(votes.max(initial=0))))
    return Patterns(suggested, Entries(np.searchsorted(first, start), code, votes), items.astype(np.int64, copy=False))


def from_counts(counts: Integers, suggested: Integers, items: Integers) -> Patterns:
    """Convert dense (K, m) counts to sparse rows."""
    row, code = np.nonzero(counts)
    votes, start = counts[row, code], np.searchsorted(row, np.arange(len(counts) + 1))
    votes = votes.astype(np.min_scalar_type(int(votes.max(initial=0))))
    code = code.astype(np.min_scalar_type(counts.shape[1]))
    return Patterns(suggested, Entries(start, code, votes), items.astype(np.int64, copy=False))


def _ends(length: Array) -> npt.NDArray[np.int64]:
    """Return where rows of these lengths start, and where the last one ends."""
    start = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def _fingerprint(table: Patterns, seed: int) -> npt.NDArray[np.uint64]:
    """Return (K,) a 64-bit hash of each pattern: a sum of mixed (code, votes)."""
    upto = np.zeros(table.code.size + 1, np.uint64)
    np.cumsum(_mix(table.code.astype(np.uint64) << np.uint64(32) ^ table.votes.astype(np.uint64), seed), out=upto[1:])
    return _mix(np.diff(upto[table.start]), seed) + _mix(table.suggested.astype(np.uint64), -seed)


def _mix(word: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Mix 64-bit words (finalizer of splitmix64)."""
    word = word + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word ^= word >> np.uint64(shift)
        word *= np.uint64(factor)
    word ^= word >> np.uint64(31)
    return word


def count_grid(votes: Encoded, labels: Encoded, items: _Items = None, merged: bool = True) -> Patterns:
    """Count an (n, N) grid of votes with n labels.

    With ``merged=False``, rows are not merged if nearly all of the first rows differ.
    """
    n, N = votes.values.shape
    base, last, absent = len(votes.labels), len(labels.labels), votes.missing()
    if n == 0:
        return EMPTY
    votes_space = base**N * last if N <= 64 and N * math.log2(base or 1) < 64 else math.inf
    counts_space = (N + 1) ** max(base - 1, 0) * last if base * math.log2(N + 1) < 64 else math.inf
    few = max(1 << 12, min(n, 1 << 20))
    by_counts = counts_space < WORD and (counts_space <= few or base <= max(N, 8))
    if items is not None or (votes_space >= WORD and not by_counts):
        if merged or items is not None or _repeats(votes, labels):
            return merge(grid_rows(votes, labels, items))
        return (_grid(votes, labels) if N <= _MANY_VOTES else None) or stack([*grid_rows(votes, labels)])
    if votes_space > few and by_counts:
        # One digit per category: how many of the N votes it has. The first category has the rest.
        bases = [last] + [N + 1] * (base - 1)
        tables, size = [], max(BLOCK // max(N, 1), 1 << 12)
        keys, found = count_rows(
            n, bases, lambda rows: [labels.digits(rows), *_category_counts(votes.digits(rows), base)], block=size
        )
        for rows, suggested, counts in _split_keys(keys, bases):
            rest = N - counts.sum(axis=1, dtype=np.int64)
            counts = np.column_stack([rest.astype(np.min_scalar_type(N)), counts])
            counts[:, absent] = 0
            tables.append(from_counts(counts, suggested, found[rows]))
    else:
        bases, columns = [last] + [base] * N, np.transpose if votes_space <= few else _sorted_columns
        keys, found = count_rows(n, bases, lambda rows: [labels.digits(rows), *columns(votes.digits(rows))])
        if votes_space <= few:  # few different rows: sort their votes only now
            label, *unsorted = split_digits(keys, bases)
            digits = [label, *np.sort(unsorted, axis=0)]
            keys, found = count_rows(keys.size, bases, lambda rows: [digit[rows] for digit in digits], items=found)
        tables = [
            _from_grid(digits, absent, suggested, found[rows]) for rows, suggested, digits in _split_keys(keys, bases)
        ]
    return stack(tables) if absent.sum() <= 1 else stack(tables).merged()


def _repeats(votes: Encoded, labels: Encoded) -> bool:
    """Tell whether enough of the first rows are equal for merging to be worth it."""
    head = next(grid_rows(votes.take(slice(TRIED)), labels.take(slice(TRIED))))
    return len(head.merged()) <= 0.9 * len(head)


def _grid(votes: Encoded, labels: Encoded) -> Patterns | None:
    """Return one pattern per row with its votes as they are; None if a vote is missing."""
    codes = np.empty(votes.values.shape, votes.digits(slice(0)).dtype)
    for rows in _slices(len(codes), BLOCK):
        codes[rows] = votes.digits(rows)  # copied, as callers may modify their array later
    if any((codes == digit).any() for digit in np.flatnonzero(votes.missing())):
        return None
    return Patterns(labels.digits().astype(np.int32), Grid(codes), np.ones(len(codes), np.int64))


def count_lists(votes: Encoded, length: npt.NDArray[np.int64], labels: Encoded) -> Patterns:
    """Return one pattern per list of votes; lists may differ in length."""
    digits = votes.digits()
    digits = digits[np.lexsort((digits, np.repeat(np.arange(length.size), length)))]
    suggested = labels.digits().astype(np.int32)
    return from_votes(digits, _ends(length), votes.missing(), suggested, np.ones(length.size, np.int64))


def count_matrix(matrix: Integers, labels: Encoded, items: _Items = None) -> Patterns:
    """Count an (n, m) matrix of vote counts with n labels."""
    n, m = matrix.shape
    if n == 0:
        return EMPTY
    bases = [len(labels.labels)] + [int(high) + 1 for high in (matrix.max(axis=0) if m else ())]
    if items is None and sum(map(math.log2, bases)) < 64 and math.prod(bases) < WORD:
        keys, found = count_rows(n, bases, lambda rows: [labels.digits(rows), *matrix[rows].T])
        return stack([from_counts(counts, label, found[rows]) for rows, label, counts in _split_keys(keys, bases)])
    each = np.broadcast_to(np.int64(1), n) if items is None else items
    parts = _slices(n, max(8 * BLOCK // max(m, 1), 1))
    return merge(from_counts(matrix[rows], labels.digits(rows).astype(np.int32), each[rows]) for rows in parts)


def grid_rows(votes: Encoded, labels: Encoded, items: _Items = None) -> Iterator[Patterns]:
    """Convert a grid to sparse rows, a few at a time."""
    (n, N), absent = votes.values.shape, votes.missing()
    each = np.broadcast_to(np.int64(1), n) if items is None else items
    for rows in _slices(n, max(8 * BLOCK // max(N, 1), 1)):
        digits = np.array(votes.digits(rows), order="C")
        digits.sort(axis=1)
        yield _from_grid(digits, absent, labels.digits(rows).astype(np.int32), each[rows])


def _from_grid(digits: Integers, absent: npt.NDArray[np.bool_], suggested: Integers, items: Integers) -> Patterns:
    """Convert a grid of digits, which ascend in each row, to sparse rows."""
    start = np.arange(len(digits) + 1) * digits.shape[1]
    return from_votes(digits.ravel(), start, absent, suggested, items)


def _split_keys(keys: Integers, bases: Sequence[int]) -> Iterator[tuple[slice, Integers, Integers]]:
    """Yield, a block of keys at a time, which keys they are, their labels, and a table of their other digits."""
    for rows in _slices(keys.size, BLOCK):
        suggested, *columns = split_digits(keys[rows], bases)
        table = np.empty((suggested.size, len(columns)), np.min_scalar_type(max(bases[1:], default=0)))
        for place, column in enumerate(columns):
            table[:, place] = column
        yield rows, suggested.astype(np.int32), table


def _category_counts(digits: Integers, base: int) -> list[Integers]:
    """Return, for each digit but 0, the number of votes of each item with that digit."""
    columns = np.ascontiguousarray(digits.T)
    small = np.min_scalar_type(len(columns))
    return [(columns == digit).view(np.uint8).sum(axis=0, dtype=small) for digit in range(1, base)]


def _sorted_columns(digits: Integers) -> Sequence[Integers]:
    """Sort the votes of each item and return them by column; few columns by compare and exchange, which is faster."""
    N = digits.shape[1]
    if N > 8:
        return list(np.sort(digits, axis=1).T)
    columns = [column.copy() for column in digits.T]  # digits may be the caller's own array
    for last in range(N - 1, 0, -1):
        for left in range(last):
            low = np.minimum(columns[left], columns[left + 1])
            np.maximum(columns[left], columns[left + 1], out=columns[left + 1])
            columns[left] = low
    return columns
