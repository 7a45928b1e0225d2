"""Arrays and nested lists of votes, and matrices of counts, turned into patterns. Fast.

Each item becomes one integer key whose digits are its votes (or its counts) and its suggested label. Keys
are counted with ``np.bincount`` where few are possible and sorted where many are; items whose key would not
fit a machine word are written out as sparse rows instead, and merged by hash.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core.arrays import column_names, matrix_of, refuse_other_rows, rows_of
from dhkappa.core.item_columns import Beside, Sides, read_beside
from dhkappa.core.labels import Encoded, Integers, Label, check_declared, encode, unite
from dhkappa.core.patterns import BLOCK, EMPTY, Patterns, from_counts, from_votes, merge, stack
from dhkappa.errors import DataError, shown

Columns: TypeAlias = Callable[[slice], Sequence[Integers]]


@dataclass(frozen=True, slots=True)
class Counted:
    """Categories in order, and patterns in their codes.

    Where ``sides`` are, they hold labels, stratum and weight, and ``suggested`` of a pattern is a place in them.
    """

    categories: tuple[Label, ...]
    patterns: Patterns
    sides: Sides | None = None


_WORD = 2**63
_MOST_BINS = 1 << 20


@dataclass(frozen=True, slots=True)
class Read:
    """Votes as they were read: a grid of digits, rows of ``length``, or a matrix of counts; and what is beside them.

    A row is an item, or stands for as many alike as ``items`` says.
    """

    votes: Encoded
    beside: Beside
    length: npt.NDArray[np.int64] | None = None
    matrix: Integers | None = None
    items: npt.NDArray[np.int64] | None = None

    def count(self, labels: Encoded) -> Patterns:
        """Count the items by their votes and these labels."""
        if self.items is not None:
            return _count_groups(self.votes, self.matrix, labels, self.items)
        if self.matrix is not None:
            return _count_counts(self.matrix, labels)
        if self.length is not None:
            return _count_ragged(self.votes, self.length, labels).merged()
        return _count_grid(self.votes, labels)


def read_votes(votes: Any, suggested: Any, missing: Collection[Label], weights: Any, strata: Any) -> Read:
    """Read an n x N array, or n lists of votes, with n suggested labels (None: no labels at all).

    Several labelers are a mapping from names to labels. Weights and strata are one for each item.
    """
    for beside, what in ((suggested, "suggested"), (weights, "weights"), (strata, "strata")):
        refuse_other_rows(votes, beside, "votes", what)
    rows = rows_of(votes)
    if isinstance(rows, np.ndarray):
        encoded = encode(rows, "votes", missing)
        return Read(encoded, read_beside(suggested, weights, strata, rows.shape, "votes", missing))
    flat, length = rows
    ends = np.cumsum(length)
    encoded = encode(flat, "votes", missing, lambda index: int(np.searchsorted(ends, index, side="right")))
    return Read(encoded, read_beside(suggested, weights, strata, length.shape, "votes", missing), length)


def read_matrix(
    counts: Any,
    suggested: Any,
    categories: tuple[Label, ...] | None,
    missing: Collection[Label],
    weights: Any,
    strata: Any,
) -> Read:
    """Read an n x m matrix of vote counts (the paper's A) with labels, codes or a one-hot matrix (its B)."""
    for beside, what in ((suggested, "suggested"), (weights, "weights"), (strata, "strata")):
        refuse_other_rows(counts, beside, "counts", what)
    matrix = matrix_of(counts)
    names = column_names(counts, matrix.shape, categories)
    both = [name for name in names if name in missing] if missing else []
    if both:
        raise DataError(f"missing names {shown(both)}, which a column of counts is: it can be only one of them.")
    found = read_beside(suggested, weights, strata, matrix.shape, "counts", missing, names)
    return Read(Encoded(matrix, 0, names), found, matrix=matrix)


def count(read: Read, declared: tuple[Label, ...] | None) -> Counted:
    """Count votes with what stands beside them."""
    plain = read.beside.plain
    if plain is not None:
        labels = plain
        patterns = read.count(labels)
        suggested = labels.occurring(patterns.suggested)
    else:
        labels, first = read.beside.joined()
        patterns = read.count(labels)
        suggested = read.beside.suggested()
    categories = settle(read, read.votes.occurring(patterns.code), suggested, declared)
    place = {label: code for code, label in enumerate(categories)}
    codes = _codes(read.votes.labels, place)
    if plain is None:
        sides = read.beside.sides(first, categories)
        return Counted(categories, patterns.recode(codes, np.arange(sides.size)), sides)
    patterns = patterns.recode(codes, _codes(labels.labels, place))
    if sum(label is None for label in labels.labels) > 1:
        patterns = patterns.merged()  # two spellings of missing are one
    return Counted(categories, patterns)


def settle(
    read: Read, voted: list[Label], suggested: list[Label], declared: tuple[Label, ...] | None
) -> tuple[Label, ...]:
    """Return the categories: as declared, as the columns of counts, else those that occur."""
    if declared is None and read.matrix is None:
        return unite(voted, suggested)
    names = [label for label in read.votes.labels if label is not None]
    categories = unite(names) if declared is None else declared
    check_declared(voted, categories, "votes")
    check_declared(suggested, categories, "suggested", columns=declared is None)
    return categories


def distinct_votes(read: Read) -> tuple[Patterns, Integers]:
    """Return the different patterns of votes, in digits and without labels, and (n,) the place of each item's."""
    absent = np.array([label is None for label in read.votes.labels], np.bool_)
    if read.matrix is not None:
        n = len(read.matrix)
        return from_counts(read.matrix, np.zeros(n, np.int32), np.ones(n, np.int64)).grouped()
    if read.length is not None:
        nobody = Encoded(np.zeros(read.length.size, np.uint8), 0, (None,))
        return _count_ragged(read.votes, read.length, nobody).grouped()
    n, N = read.votes.values.shape
    base = len(read.votes.labels)
    if n and N * math.log2(max(base, 2)) <= math.log2(max(1 << 12, min(n, _MOST_BINS))):
        space, bases = base**N, [1] + [base] * N
        table, keys = np.zeros(space, np.int64), np.empty(n, np.min_scalar_type(space))
        for first in range(0, n, BLOCK):
            block = slice(first, first + BLOCK)
            key = np.zeros(len(keys[block]), keys.dtype)
            for column in read.votes.digits(block).T:
                key *= keys.dtype.type(base)
                np.add(key, column, out=key, casting="unsafe")
            keys[block] = key
            if space <= BLOCK:
                table += np.bincount(key, minlength=space)
            else:
                table[key] = 1
        found = np.flatnonzero(table)
        digits, nobody_codes = _digits_of_keys(found, bases, np.dtype(np.min_scalar_type(base)))
        digits.sort(axis=1)
        start = np.arange(len(digits) + 1) * N
        rows = from_votes(digits.ravel(), start, absent, nobody_codes, np.ones(len(digits), np.int64))
        patterns, place = rows.grouped()
        small = np.zeros(space, np.min_scalar_type(len(patterns)))
        small[found] = place
        return patterns, small.take(keys)

    def rows_in_blocks() -> Iterator[Patterns]:
        for part in _steps(n, N):
            digits = np.sort(read.votes.digits(part), axis=1)
            start = np.arange(len(digits) + 1) * N
            ones = np.ones(len(digits), np.int64)
            yield from_votes(digits.ravel(), start, absent, np.zeros(len(digits), np.int32), ones)

    return stack([EMPTY, *rows_in_blocks()]).grouped()


def _codes(labels: Sequence[Label | None], place: dict[Label, int]) -> npt.NDArray[np.int64]:
    codes = (-1 if label is None else place.get(label, -1) for label in labels)
    return np.fromiter(codes, np.int64, len(labels))


def _count_grid(votes: Encoded, labels: Encoded) -> Patterns:
    """Count an (n, N) grid of votes, by the cheapest key that fits."""
    n, N = votes.values.shape
    base, last = len(votes.labels), len(labels.labels)
    if n == 0:
        return EMPTY
    absent = np.array([label is None for label in votes.labels], np.bool_)
    votes_space = base**N * last if N <= 64 and N * math.log2(base or 1) < 64 else math.inf
    counts_space = (N + 1) ** max(base - 1, 0) * last if base * math.log2(N + 1) < 64 else math.inf
    few = max(1 << 12, min(n, _MOST_BINS))

    if votes_space <= few:

        def in_order(rows: slice) -> Sequence[Integers]:
            return [labels.digits(rows), *votes.digits(rows).T]

        keys, items = _count_keys(n, [last] + [base] * N, in_order)
        found = _votes_of_keys(keys, items, [last] + [base] * N, absent, ordered=False)
    elif counts_space < _WORD and (counts_space <= few or base <= max(N, 8)):
        # One digit a category: how many of the N votes it has. The first category has the rest.
        def by_category(rows: slice) -> Sequence[Integers]:
            return [labels.digits(rows), *_category_counts(votes.digits(rows), base)]

        bases = [last] + [N + 1] * (base - 1)
        keys, items = _count_keys(n, bases, by_category, rows=max(BLOCK // max(N, 1), 1 << 12))
        found = _counts_of_keys(keys, items, bases, N, absent)
    elif votes_space < _WORD:

        def ascending(rows: slice) -> Sequence[Integers]:
            return [labels.digits(rows), *_sorted_columns(votes.digits(rows))]

        keys, items = _count_keys(n, [last] + [base] * N, ascending)
        found = _votes_of_keys(keys, items, [last] + [base] * N, absent, ordered=True)
    else:
        found = _collect_rows(votes, labels, absent, np.broadcast_to(np.int64(1), n))
    return found


def _count_keys(
    n: int, bases: Sequence[int], columns: Columns, rows: int = BLOCK
) -> tuple[Integers, npt.NDArray[np.int64]]:
    """Return the different keys of n items and how many items have each.

    ``columns(rows)`` gives, for some items, one array of digits for each base; the key has these digits.
    """
    space = math.prod(bases)
    word = np.dtype(np.uint16 if space < 2**16 else np.uint32 if space < 2**32 else np.int64)
    few = space <= max(1 << 12, min(n, _MOST_BINS))
    if few:
        rows = max(rows, space)
        bins = np.zeros(space, np.int64)
    else:
        keys = np.empty(n, word)
    for first in range(0, n, rows):
        block = slice(first, min(first + rows, n))
        digits = columns(block)
        key = digits[0].astype(word)
        for base, digit in zip(bases[1:], digits[1:], strict=True):
            key *= word.type(base)
            np.add(key, digit, out=key, casting="unsafe")
        if few:
            bins += np.bincount(key, minlength=space)
        else:
            keys[block] = key
    if few:
        found = np.flatnonzero(bins)
        return found, bins[found]
    keys.sort()
    fresh = np.ones(n, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    where = np.flatnonzero(fresh)
    return keys[where], np.diff(where, append=n)


def _digits_of_keys(keys: Integers, bases: Sequence[int], small: np.dtype[Any]) -> tuple[Integers, Integers]:
    """Take keys apart: (K, W) digits after the first, and (K,) first digits, the suggested labels."""
    digits = np.empty((keys.size, len(bases) - 1), small)
    for column in range(len(bases) - 2, -1, -1):
        rest = keys // keys.dtype.type(bases[column + 1])
        digits[:, column] = keys - rest * keys.dtype.type(bases[column + 1])
        keys = rest
    return digits, keys.astype(np.int32)


def _votes_of_keys(
    keys: Integers,
    items: npt.NDArray[np.int64],
    bases: Sequence[int],
    absent: npt.NDArray[np.bool_],
    ordered: bool,
) -> Patterns:
    """Turn keys of votes back into patterns; votes that were not ordered give the same pattern many times."""
    small = np.min_scalar_type(absent.size)
    tables = []
    for first in range(0, keys.size, BLOCK):
        digits, suggested = _digits_of_keys(keys[first : first + BLOCK], bases, small)
        if not ordered:
            digits.sort(axis=1)
        start = np.arange(len(digits) + 1) * digits.shape[1]
        tables.append(from_votes(digits.ravel(), start, absent, suggested, items[first : first + BLOCK]))
    found = stack(tables)
    return found if ordered and absent.sum() <= 1 else found.merged()


def _category_counts(digits: Integers, base: int) -> list[Integers]:
    """Return, for each digit but 0, how many of the votes of each item are that digit."""
    columns = np.ascontiguousarray(digits.T)
    small = np.min_scalar_type(len(columns))
    return [(columns == digit).view(np.uint8).sum(axis=0, dtype=small) for digit in range(1, base)]


def _counts_of_keys(
    keys: Integers, items: npt.NDArray[np.int64], bases: Sequence[int], N: int, absent: npt.NDArray[np.bool_]
) -> Patterns:
    """Turn keys of counts back into patterns."""
    tables = []
    for first in range(0, keys.size, BLOCK):
        digits, suggested = _digits_of_keys(keys[first : first + BLOCK], bases, np.min_scalar_type(N))
        others = digits.sum(axis=1, dtype=np.int64)
        counts = np.column_stack([N - others, digits]).astype(digits.dtype)
        counts[:, absent] = 0
        tables.append(from_counts(counts, suggested, items[first : first + BLOCK]))
    found = stack(tables)
    return found if absent.sum() <= 1 else found.merged()


def _sorted_columns(digits: Integers) -> Sequence[Integers]:
    """Sort the votes of each item and return them by column; few columns by compare-and-exchange."""
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


def _collect_rows(
    votes: Encoded, labels: Encoded, absent: npt.NDArray[np.bool_], items: npt.NDArray[np.int64]
) -> Patterns:
    """Count a grid whose keys would not fit a word: sparse rows, merged as they gather."""
    n, N = votes.values.shape

    def tables() -> Iterator[Patterns]:
        for rows in _steps(n, N):
            digits = np.sort(votes.digits(rows), axis=1)
            start = np.arange(len(digits) + 1) * N
            suggested = labels.digits(rows).astype(np.int32)
            yield from_votes(digits.ravel(), start, absent, suggested, items[rows])

    return merge(tables())


def _count_groups(votes: Encoded, matrix: Integers | None, labels: Encoded, items: npt.NDArray[np.int64]) -> Patterns:
    """Count rows that stand for several items each: a matrix of counts, or else a grid of votes."""
    if matrix is None:
        absent = np.array([label is None for label in votes.labels], np.bool_)
        return _collect_rows(votes, labels, absent, items)
    return merge(
        from_counts(matrix[rows], labels.digits(rows).astype(np.int32), items[rows]) for rows in _steps(*matrix.shape)
    )


def _count_ragged(votes: Encoded, length: npt.NDArray[np.int64], labels: Encoded) -> Patterns:
    """Return a pattern for each list of votes; lists may differ in length."""
    n = length.size
    absent = np.array([label is None for label in votes.labels], np.bool_)
    start = np.zeros(n + 1, np.int64)
    np.cumsum(length, out=start[1:])
    row = np.repeat(np.arange(n), length)
    digits = votes.digits(slice(None))
    digits = digits[np.lexsort((digits, row))]
    suggested = labels.digits(slice(None)).astype(np.int32)
    return from_votes(digits, start, absent, suggested, np.ones(n, np.int64))


def _count_counts(matrix: Integers, labels: Encoded) -> Patterns:
    """Count an (n, m) matrix of counts."""
    n, m = matrix.shape
    if n == 0:
        return EMPTY
    bases = [len(labels.labels)] + [int(high) + 1 for high in (matrix.max(axis=0) if m else ())]
    if sum(map(math.log2, bases)) < 64 and math.prod(bases) < _WORD:

        def columns(rows: slice) -> Sequence[Integers]:
            return [labels.digits(rows), *matrix[rows].T]

        keys, items = _count_keys(n, bases, columns)
        digits, suggested = _digits_of_keys(keys, bases, np.dtype(np.int64))
        return from_counts(digits, suggested, items)

    def tables() -> Iterator[Patterns]:
        for rows in _steps(n, m):
            suggested = labels.digits(rows).astype(np.int32)
            yield from_counts(matrix[rows], suggested, np.ones(len(suggested), np.int64))

    return merge(tables())


def _steps(n: int, width: int) -> Iterator[slice]:
    """Yield rows of a wide table a few at a time."""
    step = max(BLOCK * 8 // max(width, 1), 1)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))
