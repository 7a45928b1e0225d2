"""Count encoded votes into patterns, by the cheapest key that fits a machine word.

The votes come as an (n, N) grid of digits, as rows of different lengths, or as an (n, m) matrix of counts. Rows whose
key would not fit 64 bits are converted to sparse rows and merged by hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers
from dhkappa.core.grouping import BLOCK, WORD, count_rows, group_rows, split_digits
from dhkappa.core.labels import Encoded
from dhkappa.core.patterns import EMPTY, Patterns, from_counts, from_votes, merge, stack

_Lengths = npt.NDArray[np.int64]


def count_grid(votes: Encoded, labels: Encoded, items: npt.NDArray[np.int64] | None = None) -> Patterns:
    """Count an (n, N) grid of votes with n labels; ``items`` says how many items each row stands for."""
    n, N = votes.values.shape
    base, last, absent = len(votes.labels), len(labels.labels), _absent(votes)
    if n == 0:
        return EMPTY
    if items is not None:
        return merge(_grid_rows(votes, labels, items))
    votes_space = base**N * last if N <= 64 and N * math.log2(base or 1) < 64 else math.inf
    counts_space = (N + 1) ** max(base - 1, 0) * last if base * math.log2(N + 1) < 64 else math.inf
    few = max(1 << 12, min(n, 1 << 20))
    if votes_space <= few:
        bases = [last] + [base] * N
        keys, found = count_rows(n, bases, lambda rows: [labels.digits(rows), *votes.digits(rows).T])
        return _votes_of_keys(keys, found, bases, absent, ordered=False)
    if counts_space < WORD and (counts_space <= few or base <= max(N, 8)):
        # One digit per category: how many of the N votes it has. The first category has the rest.
        bases = [last] + [N + 1] * (base - 1)
        keys, found = count_rows(
            n,
            bases,
            lambda rows: [labels.digits(rows), *_category_counts(votes.digits(rows), base)],
            block=max(BLOCK // max(N, 1), 1 << 12),
        )
        return _counts_of_keys(keys, found, bases, N, absent)
    if votes_space < WORD:
        bases = [last] + [base] * N
        keys, found = count_rows(n, bases, lambda rows: [labels.digits(rows), *_sorted_columns(votes.digits(rows))])
        return _votes_of_keys(keys, found, bases, absent, ordered=True)
    return merge(_grid_rows(votes, labels, np.broadcast_to(np.int64(1), n)))


def count_lists(votes: Encoded, length: _Lengths, labels: Encoded) -> Patterns:
    """Return one pattern per list of votes; lists may differ in length."""
    start = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=start[1:])
    digits = votes.digits()
    digits = digits[np.lexsort((digits, np.repeat(np.arange(length.size), length)))]
    suggested = labels.digits().astype(np.int32)
    return from_votes(digits, start, _absent(votes), suggested, np.ones(length.size, np.int64))


def count_matrix(matrix: Integers, labels: Encoded, items: npt.NDArray[np.int64] | None = None) -> Patterns:
    """Count an (n, m) matrix of vote counts with n labels."""
    n, m = matrix.shape
    if n == 0:
        return EMPTY
    bases = [len(labels.labels)] + [int(high) + 1 for high in (matrix.max(axis=0) if m else ())]
    if items is None and sum(map(math.log2, bases)) < 64 and math.prod(bases) < WORD:
        keys, found = count_rows(n, bases, lambda rows: [labels.digits(rows), *matrix[rows].T])
        suggested, *digits = split_digits(keys, bases)
        counts = np.column_stack(digits).astype(np.int64) if digits else np.zeros((keys.size, 0), np.int64)
        return from_counts(counts, suggested.astype(np.int32), found)
    each = np.broadcast_to(np.int64(1), n) if items is None else items
    return merge(from_counts(matrix[rows], labels.digits(rows).astype(np.int32), each[rows]) for rows in _steps(n, m))


def distinct_votes(
    votes: Encoded, length: _Lengths | None, matrix: Integers | None
) -> tuple[Patterns, npt.NDArray[Any]]:
    """Return the distinct vote patterns without labels, in digits, and (n,) the index of each row's pattern."""
    if matrix is not None:
        n = len(matrix)
        return from_counts(matrix, np.zeros(n, np.int32), np.ones(n, np.int64)).grouped()
    if length is not None:
        return count_lists(votes, length, Encoded(np.zeros(length.size, np.uint8), 0, (None,))).grouped()
    n, N = votes.values.shape
    base = len(votes.labels)
    if n and N and N * math.log2(max(base, 2)) <= math.log2(max(1 << 12, min(n, 1 << 20))):
        # Few combinations of votes are possible: find those that occur first.
        first, group = group_rows([(base, column) for column in votes.digits().T])
        rows = Encoded(votes.values[first], votes.low, votes.labels)
        patterns, place = stack([*_grid_rows(rows, _unlabeled(first.size), np.ones(first.size, np.int64))]).grouped()
        return patterns, place.astype(np.min_scalar_type(len(patterns)))[group]
    return stack([EMPTY, *_grid_rows(votes, _unlabeled(n), np.ones(n, np.int64))]).grouped()


def _unlabeled(n: int) -> Encoded:
    return Encoded(np.zeros(n, np.uint8), 0, (None,))


def _absent(votes: Encoded) -> npt.NDArray[np.bool_]:
    """Return which digits are missing votes."""
    return np.array([label is None for label in votes.labels], np.bool_)


def _grid_rows(votes: Encoded, labels: Encoded, items: npt.NDArray[np.int64]) -> Iterator[Patterns]:
    """Convert a grid to sparse rows, a few at a time."""
    (n, N), absent = votes.values.shape, _absent(votes)
    for rows in _steps(n, N):
        digits = np.sort(votes.digits(rows), axis=1)
        start = np.arange(len(digits) + 1) * N
        yield from_votes(digits.ravel(), start, absent, labels.digits(rows).astype(np.int32), items[rows])


def _votes_of_keys(
    keys: Integers, items: npt.NDArray[np.int64], bases: Sequence[int], absent: npt.NDArray[np.bool_], ordered: bool
) -> Patterns:
    """Convert keys of votes to patterns; votes that were not sorted give the same pattern several times."""
    tables = []
    for first in range(0, keys.size, BLOCK):
        suggested, *columns = split_digits(keys[first : first + BLOCK], bases)
        digits = np.empty((suggested.size, len(columns)), np.min_scalar_type(absent.size))
        for place, column in enumerate(columns):
            digits[:, place] = column
        if not ordered:
            digits.sort(axis=1)
        start = np.arange(len(digits) + 1) * digits.shape[1]
        some = items[first : first + BLOCK]
        tables.append(from_votes(digits.ravel(), start, absent, suggested.astype(np.int32), some))
    found = stack(tables)
    return found if ordered and absent.sum() <= 1 else found.merged()


def _counts_of_keys(
    keys: Integers, items: npt.NDArray[np.int64], bases: Sequence[int], N: int, absent: npt.NDArray[np.bool_]
) -> Patterns:
    """Convert keys of counts by category, without the first one, to patterns."""
    tables = []
    for first in range(0, keys.size, BLOCK):
        suggested, *columns = split_digits(keys[first : first + BLOCK], bases)
        counts = np.empty((suggested.size, len(columns) + 1), np.min_scalar_type(N))
        for place, column in enumerate(columns):
            counts[:, place + 1] = column
        counts[:, 0] = N - counts[:, 1:].sum(axis=1, dtype=np.int64)
        counts[:, absent] = 0
        tables.append(from_counts(counts, suggested.astype(np.int32), items[first : first + BLOCK]))
    found = stack(tables)
    return found if absent.sum() <= 1 else found.merged()


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


def _steps(n: int, width: int) -> Iterator[slice]:
    """Yield slices of the rows of a wide table."""
    step = max(BLOCK * 8 // max(width, 1), 1)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))
