"""Sums of floats that are rounded once: the same bits in any order of the terms, as ``math.fsum``, for whole arrays.

Rump, Ogita and Oishi, Accurate floating-point summation part I, SIAM J. Sci. Comput. 31 (2008): adding and subtracting
a large power of two splits each term into a multiple of its last bit, which add up without error, and a rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dhkappa.core import Array, Floats

_FEW = 1 << 10  # terms that are added up faster as Python floats
_BITS = 53
_BLOCK = 1 << 15  # terms that stay in the cache
_RANGE = 800  # of the exponent of the largest term in a row: nothing underflows or overflows


def exact_sum(values: Array) -> float:
    """Return the sum of a 1-D array, rounded once."""
    if values.size <= _FEW:
        return math.fsum(values.tolist())
    return float(group_sums(values)[0])


def group_sums(values: Array, group: Array | None = None, size: int = 1) -> Floats:
    """Return (size,) the sums of a 1-D array by group, each rounded once.

    NaN, infinite terms and terms near the largest float, above about 1e300, are added as usual.

    Examples
    --------
    >>> import numpy as np
    >>> group_sums(np.array([1e16, 0.1, 1.0, 0.2, -1e16]), np.array([0, 1, 0, 1, 0]), 2).tolist()
    [1.0, 0.30000000000000004]
    """
    parts = split_sums(values, group, size)
    return parts[0] if len(parts) == 1 else _rounded(parts)


def _rounded(parts: list[Floats]) -> Floats:
    """Return the sums of two or more arrays, rounded once, as ``math.fsum`` of each place."""
    high, rest, size = parts[0], np.zeros_like(parts[0]), np.zeros_like(parts[0])
    for part in parts[1:]:
        whole = high + part
        own = whole - high
        lost = (high - (whole - own)) + (part - own)  # Knuth: exactly what rounding has lost
        high, rest, size = whole, rest + lost, size + np.abs(lost)
    if len(parts) == 2:
        return high
    error = size * (len(parts) * 2.0**-51)  # more than twice that of the rest
    sums: Floats = high + (rest - error)
    for place in np.flatnonzero(sums != high + (rest + error)).tolist():
        sums[place] = math.fsum(float(part[place]) for part in parts)
    return sums


def split_sums(values: Floats, group: Array | None = None, size: int = 1) -> list[Floats]:
    """Return arrays (size,) that add up to the sums by group, without any rounding."""
    most = float(np.abs(values).max(initial=0))
    more = values.size.bit_length() + 1  # bits of headroom: all terms together stay below the power of two
    if not most < 2.0 ** (1023 - more):
        with np.errstate(over="ignore", invalid="ignore"):
            return [_added(values, group, size)]
    power = math.frexp(most)[1] + more
    found: list[Floats] = []
    block = max(_BLOCK, 4 * size)
    for start in range(0, max(values.size, 1), block):
        rest, own = values[start : start + block], None if group is None else group[start : start + block]
        level = 0
        while level == 0 or rest.any():
            head = math.ldexp(1.0, power - level * (_BITS - more))  # 0 if it is below the least float
            part = rest + head
            part -= head
            if level == len(found):
                found.append(np.zeros(size))
            found[level] += _added(part, own, size)
            rest = np.subtract(rest, part, out=part)
            level += 1
    return found


def _added(values: Floats, group: Array | None, size: int) -> Floats:
    """Return (size,) plain sums by group."""
    sums: Floats = np.array([values.sum()]) if group is None else np.bincount(group, values, size).astype(np.float64)
    return sums


@np.errstate(over="ignore", invalid="ignore")
def row_sums(values: Floats) -> Floats:
    """Return (rows,) the sums of the rows of a 2-D array, each rounded once; as ``exact_sum`` of each row, but faster.

    One split is enough for most rows: the rests add up with an error too small to change how the sum is rounded.
    """
    terms = values.shape[1]
    most = np.abs(values).max(axis=1, initial=0)
    power = np.frexp(most)[1]
    head = np.ldexp(1.0, power + terms.bit_length() + 1)[:, None]
    part = values + head
    part -= head
    whole = part.sum(axis=1)
    part -= values
    rest = part.sum(axis=1)  # what the whole is too large by
    error = most * (2.0**-101 * terms**3)  # at least twice that of the rest
    sums: Floats = whole - (rest + error)
    sure = (np.abs(power) < _RANGE) & (sums == whole - (rest - error))
    for row in np.flatnonzero(~sure).tolist():
        sums[row] = exact_sum(values[row])
    return sums


def integer_type(bound: int) -> Any:
    """Return the type of integers up to a bound: Python integers if 64 bits might be too few."""
    return np.int64 if bound < 2**62 else object


def totals(numbers: Array, group: Array, size: int) -> Array:
    """Return (size,) the sums of integers by group."""
    found = np.zeros(size, numbers.dtype)
    np.add.at(found, group, numbers)
    return found


def ratios(top: Array, bottom: Array) -> Floats:
    """Return the quotients of integers as floats, rounded once."""
    quotients: Floats = (top.astype(object) / bottom.astype(object)).astype(np.float64)
    return quotients


def item_sums(values: Array, items: Array, group: Array, size: int) -> Floats:
    """Return (size,) the sums by group of a value per row that stands for some items, rounded once."""
    if (items > 1).any():
        high = (values.view(np.int64) & -(1 << 27)).view(np.float64)  # 26 of 53 bits: the products are exact
        many = items >> 26 << 26
        products = [part * number for part in (high, values - high) for number in (many, items - many)]
        values, group = np.concatenate(products), np.tile(group, len(products))
    return group_sums(values, group, size)
