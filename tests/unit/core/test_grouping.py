"""Keys of rows, and grouping and counting of equal rows against ``np.unique(axis=0)``."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhkappa.core.grouping import WORD, count_rows, group_rows, join_digits, split_digits

SORT = (0, 0)
TABLE = (1 << 12, 1 << 20)


def draw_rows(bases: Sequence[int], n: int, seed: int, distinct: int = 8) -> npt.NDArray[np.int64]:
    """Return n rows of digits with many repetitions; the largest digit of each column may occur."""
    rng = np.random.default_rng(seed)
    pool = np.column_stack([rng.integers(0, base, distinct, dtype=np.int64, endpoint=False) for base in bases])
    pool[0] = [base - 1 for base in bases]
    return pool[rng.integers(0, distinct, n)]


def slicer(rows: npt.NDArray[Any]) -> Callable[[slice], list[npt.NDArray[Any]]]:
    return lambda some: list(rows[some].T)


bases_of_a_word = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@given(bases_of_a_word, st.integers(0, 200), st.integers(0, 2**32))
def test_split_inverts_join(bases: list[int], n: int, seed: int) -> None:
    rows = draw_rows(bases, n, seed)
    keys = join_digits(bases, list(rows.T), np.int64)
    assert np.array_equal(np.column_stack(split_digits(keys, bases)), rows)
    assert keys.tolist() == [
        sum(digit * math.prod(bases[place + 1 :]) for place, digit in enumerate(row)) for row in rows.tolist()
    ]


@given(
    bases_of_a_word,
    st.integers(0, 200),
    st.integers(0, 2**32),
    st.sampled_from([TABLE, SORT]),
    st.sampled_from([1, 7, 1 << 16]),
    st.booleans(),
)
def test_count_rows_equals_unique(
    bases: list[int], n: int, seed: int, bins: tuple[int, int], block: int, weighted: bool
) -> None:
    rows = draw_rows(bases, n, seed)
    items = np.random.default_rng(seed).integers(1, 2**40, n) if weighted else None
    keys, counted = count_rows(n, bases, slicer(rows), items=items, block=block, bins=bins)
    unique, inverse, number = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    expected = number
    if items is not None:
        expected = np.zeros(len(unique), np.int64)
        np.add.at(expected, inverse.ravel(), items)
    assert np.array_equal(np.column_stack(split_digits(keys, bases)), unique)
    assert counted.tolist() == expected.tolist()


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize(
    ("bases", "dtype"),
    [
        ([2**16 - 1], np.uint16),
        ([2**16], np.uint32),
        ([2**8, 2**8 - 1], np.uint16),
        ([2**32 - 1], np.uint32),
        ([2**16, 2**16], np.int64),
        ([2, 2**62 - 1], np.int64),
    ],
    ids=str,
)
def test_keys_use_the_smallest_word(bases: list[int], dtype: type[Any], items: bool) -> None:
    rows = draw_rows(bases, 50, 3)
    many = np.full(50, 3) if items else None
    keys, counted = count_rows(50, bases, slicer(rows), items=many, bins=SORT)
    unique, number = np.unique(rows, axis=0, return_counts=True)
    assert keys.dtype == dtype
    assert np.array_equal(np.column_stack(split_digits(keys, bases)), unique)
    assert counted.tolist() == (number * (3 if items else 1)).tolist()


def test_table_and_sort_give_the_same_keys_across_blocks() -> None:
    bases = [5, 7, 11]
    rows = np.random.default_rng(1).integers(0, bases, (100_000, 3))
    table, sort = (count_rows(len(rows), bases, slicer(rows), block=1000, bins=bins) for bins in ((1 << 12, 1), SORT))
    assert table[0].tolist() == sort[0].tolist()
    assert table[1].tolist() == sort[1].tolist()
    assert int(table[1].sum()) == len(rows)


def expected_groups(columns: Sequence[npt.NDArray[Any]]) -> tuple[list[int], list[int]]:
    """Return the first row of each distinct row, in lexicographic order, and the group of each row."""
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1].ravel() for column in columns])
    _, first, group = np.unique(ranks, axis=0, return_index=True, return_inverse=True)
    return first.tolist(), group.ravel().tolist()


@st.composite
def columns_of_rows(draw: st.DrawFn) -> list[tuple[int, npt.NDArray[Any]]]:
    """Digits of small and large bases, and values of any kind: floats, negative integers, unsigned words."""
    n, seed = draw(st.integers(0, 60)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    columns: list[tuple[int, npt.NDArray[Any]]] = []
    for kind in draw(st.lists(st.sampled_from(["small", "wide", "float", "negative", "word"]), min_size=1, max_size=6)):
        if kind in ("small", "wide"):
            base = int(rng.integers(1, 9)) if kind == "small" else int(rng.integers(2**20, 2**40))
            columns.append((base, rng.integers(0, base, 5)[rng.integers(0, 5, n)]))
        else:
            pool = {
                "float": np.array([0.0, 1.5, -2.25, np.pi, 1e300]),
                "negative": np.array([-(2**62), -1, 0, 1, 2**62]),
                "word": np.array([0, 1, 2**63, 2**64 - 1, 7], np.uint64),
            }[kind]
            columns.append((0, pool[rng.integers(0, 5, n)]))
    return columns


@given(columns_of_rows())
def test_group_rows_equals_unique(columns: list[tuple[int, npt.NDArray[Any]]]) -> None:
    first, group = group_rows(columns)
    assert (first.tolist(), group.tolist()) == expected_groups([values for _, values in columns])


@pytest.mark.parametrize("base", [3, 2**15, 2**20, 2**31, 2**61], ids=lambda base: f"base {base:,}")
def test_group_rows_at_every_size_of_keys(base: int) -> None:
    rng = np.random.default_rng(base)
    pool = rng.integers(0, base, (40, 4))
    pool[0] = base - 1
    rows = pool[rng.integers(0, 40, 3000)]
    first, group = group_rows([(base, column) for column in rows.T])
    assert (first.tolist(), group.tolist()) == expected_groups(list(rows.T))
    assert (base**4 >= WORD) == (base >= 2**20)


def test_group_rows_of_many_rows_in_a_table() -> None:
    rows = np.random.default_rng(1).integers(0, 200, (300_000, 3)) % np.array([200, 150, 100])
    first, group = group_rows([(200, column) for column in rows.T])
    assert np.array_equal(rows[first][group], rows)
    assert len(first) == len(np.unique(rows, axis=0))
