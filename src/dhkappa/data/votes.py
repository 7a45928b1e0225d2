"""Arrays and nested lists of votes, and matrices of counts, turned into patterns. Fast.

Each item becomes one integer key whose digits are its votes (or its counts) and its suggested label. Keys
are counted with ``np.bincount`` where few are possible and sorted where many are; items whose key would not
fit a machine word are written out as sparse rows instead, and merged by hash.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.data.arrays import column_names, matrix_of, refuse_other_rows, rows_of
from dhkappa.data.labels import Encoded, Integers, Label, check_declared, encode, unite
from dhkappa.data.patterns import BLOCK, EMPTY, Patterns, from_counts, from_votes, merge, stack
from dhkappa.data.sides import Beside, Sides, read_beside

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


def count_votes(
    votes: Any,
    suggested: Any,
    categories: tuple[Label, ...] | None,
    missing: Collection[Label],
    weights: Any = None,
    strata: Any = None,
) -> Counted:
    """Count an n x N array, or n lists of votes, with n suggested labels (None: no labels at all).

    Several labelers are a mapping from names to labels. Weights and strata are one for each item.
    """
    for beside, what in ((suggested, "suggested"), (weights, "weights"), (strata, "strata")):
        refuse_other_rows(votes, beside, "votes", what)
    rows = rows_of(votes)
    if isinstance(rows, np.ndarray):
        encoded = encode(rows, "votes", missing)
        found = read_beside(suggested, weights, strata, rows.shape, "votes", missing)
        return _counted(partial(_count_grid, encoded), encoded, found, categories)
    flat, length = rows
    ends = np.cumsum(length)
    encoded = encode(flat, "votes", missing, lambda index: int(np.searchsorted(ends, index, side="right")))
    found = read_beside(suggested, weights, strata, length.shape, "votes", missing)
    return _counted(partial(_count_ragged, encoded, length), encoded, found, categories)


def count_matrix(
    counts: Any,
    suggested: Any,
    categories: tuple[Label, ...] | None,
    missing: Collection[Label],
    weights: Any = None,
    strata: Any = None,
) -> Counted:
    """Count an n x m matrix of vote counts (the paper's A) with labels, codes or a one-hot matrix (its B)."""
    for beside, what in ((suggested, "suggested"), (weights, "weights"), (strata, "strata")):
        refuse_other_rows(counts, beside, "counts", what)
    matrix = matrix_of(counts)
    names = column_names(counts, matrix.shape, categories)
    found = read_beside(suggested, weights, strata, matrix.shape, "counts", missing, names)
    declared = unite(names) if categories is None else categories
    return _counted(partial(_count_counts, matrix), Encoded(matrix, 0, names), found, declared)


def _counted(
    count: Callable[[Encoded], Patterns], votes: Encoded, beside: Beside, declared: tuple[Label, ...] | None
) -> Counted:
    """Count votes with what stands beside them, and settle the categories: those that occur unless declared."""
    plain = beside.plain
    if plain is not None:
        labels = plain
        patterns = count(labels)
        suggested = labels.occurring(patterns.suggested)
    else:
        labels, first = beside.joined()
        patterns = count(labels)
        suggested = beside.suggested()
    voted = votes.occurring(patterns.code)
    if declared is None:
        categories = unite(voted, suggested)
    else:
        check_declared(voted, declared, "votes")
        check_declared(suggested, declared, "suggested")
        categories = declared
    place = {label: code for code, label in enumerate(categories)}
    codes = _codes(votes.labels, place)
    if plain is None:
        sides = beside.sides(first, categories)
        return Counted(categories, patterns.recode(codes, np.arange(sides.size)), sides)
    patterns = patterns.recode(codes, _codes(labels.labels, place))
    if sum(label is None for label in labels.labels) > 1:
        patterns = patterns.merged()  # two spellings of missing are one
    return Counted(categories, patterns)


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
        found = _collect_rows(votes, labels, absent)
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


def _collect_rows(votes: Encoded, labels: Encoded, absent: npt.NDArray[np.bool_]) -> Patterns:
    """Count a grid whose keys would not fit a word: sparse rows, merged as they gather."""
    n, N = votes.values.shape

    def tables() -> Iterator[Patterns]:
        for rows in _steps(n, N):
            digits = np.sort(votes.digits(rows), axis=1)
            start = np.arange(len(digits) + 1) * N
            suggested = labels.digits(rows).astype(np.int32)
            yield from_votes(digits.ravel(), start, absent, suggested, np.ones(len(digits), np.int64))

    return merge(tables())


def _count_ragged(votes: Encoded, length: npt.NDArray[np.int64], labels: Encoded) -> Patterns:
    """Count lists of votes of different lengths."""
    n = length.size
    absent = np.array([label is None for label in votes.labels], np.bool_)
    start = np.zeros(n + 1, np.int64)
    np.cumsum(length, out=start[1:])
    row = np.repeat(np.arange(n), length)
    digits = votes.digits(slice(None))
    digits = digits[np.lexsort((digits, row))]
    suggested = labels.digits(slice(None)).astype(np.int32)
    return from_votes(digits, start, absent, suggested, np.ones(n, np.int64)).merged()


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
