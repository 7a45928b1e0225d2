"""Group and count equal rows of integer columns: the only place that builds keys.

A column holds digits from 0 to ``base - 1``. The digits of a row, read as one number with mixed bases, are its key, so
that equal rows have equal keys and keys ascend in lexicographic order of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 16  # rows processed at once, so that temporaries stay in the cache
WORD = 2**63  # keys below this fit 64 bits

_Array = npt.NDArray[Any]


def join_digits(bases: Sequence[int], digits: Sequence[_Array], dtype: npt.DTypeLike) -> _Array:
    """Return the key of each row."""
    key = digits[0].astype(dtype)
    for base, digit in zip(bases[1:], digits[1:], strict=True):
        key *= key.dtype.type(base)
        np.add(key, digit, out=key, casting="unsafe")
    return key


def split_digits(keys: _Array, bases: Sequence[int]) -> list[_Array]:
    """Return the columns of digits that some keys stand for, one per base."""
    digits = []
    for base in bases[:0:-1]:
        rest = keys // keys.dtype.type(base)
        digits.append(keys - rest * keys.dtype.type(base))
        keys = rest
    return [keys, *digits[::-1]]


def count_rows(
    n: int,
    bases: Sequence[int],
    columns: Callable[[slice], Sequence[_Array]],
    *,
    items: npt.NDArray[np.int64] | None = None,
    block: int = BLOCK,
    bins: tuple[int, int] = (1 << 12, 1 << 20),
) -> tuple[_Array, npt.NDArray[np.int64]]:
    """Return the distinct keys of n rows, ascending, and the number of items with each.

    Parameters
    ----------
    n
        Number of rows.
    bases
        Base of each column; their product must be below ``WORD``.
    columns
        Returns the digits of some rows, one array per base.
    items
        (n,) number of items that each row stands for; 1 by default.
    block
        Rows to process at once.
    bins
        Keys are counted in a table if there are at most ``max(bins[0], min(n, bins[1]))`` possible ones, else sorted.
    """
    space = math.prod(bases)
    word = np.uint16 if space < 2**16 else np.uint32 if space < 2**32 else np.int64
    if space <= max(bins[0], min(n, bins[1])):
        table, block = np.zeros(space, np.int64), max(block, space)
        for first in range(0, n, block):
            rows = slice(first, min(first + block, n))
            key = join_digits(bases, columns(rows), word)
            if items is None:
                table += np.bincount(key, minlength=space)
            else:
                np.add.at(table, key, items[rows])
        found = np.flatnonzero(table)
        return found, table[found]
    keys = np.empty(n, word)
    for first in range(0, n, block):
        rows = slice(first, min(first + block, n))
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


def group_rows(columns: Sequence[tuple[int, _Array]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Return the first row of each group of equal rows, in order of their keys, and (n,) the group of each row.

    A column is a pair (base, digits). A base of 0 marks values of any kind, such as floats or negative integers.
    """
    space, key = 1, np.zeros(len(columns[0][1]), np.int64)
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
