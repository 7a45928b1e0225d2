"""Patterns: sparse rows of vote counts, taken, recoded, merged and stacked."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhkappa.core import grouping as module
from dhkappa.core.grouping import EMPTY, Patterns, from_counts, from_votes, merge, stack

Row = tuple[int, tuple[tuple[int, int], ...]]


def rows_of(table: Patterns) -> list[tuple[Row, int]]:
    """Return (suggested, ((code, votes), ...)) of each row, and its number of items."""
    return [
        (
            (
                int(table.suggested[k]),
                tuple(
                    zip(
                        table.code[table.start[k] : table.start[k + 1]].tolist(),
                        table.votes[table.start[k] : table.start[k + 1]].tolist(),
                        strict=True,
                    )
                ),
            ),
            int(table.items[k]),
        )
        for k in range(len(table))
    ]


def totals(table: Patterns) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for row, items in rows_of(table):
        found[row] += items
    return found


@st.composite
def dense(draw: st.DrawFn) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Counts, labels and numbers of items, with equal rows."""
    n, m = draw(st.integers(0, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = rng.integers(0, 3, (n, m)) * rng.integers(0, 2, (n, m))
    return counts, rng.integers(-1, m, n).astype(np.int32), rng.integers(1, 5, n)


Dense = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64]]


@given(dense())
def test_counts_become_sparse_rows(drawn: Dense) -> None:
    counts, suggested, items = drawn
    table = from_counts(counts, suggested, items)
    assert rows_of(table) == [
        ((label, tuple((code, votes) for code, votes in enumerate(row) if votes)), number)
        for row, label, number in zip(counts.tolist(), suggested.tolist(), items.tolist(), strict=True)
    ]
    assert table.vote_totals().tolist() == counts.sum(axis=1).tolist()
    assert table.n_votes() == int((counts.sum(axis=1) * items).sum())


@given(dense())
def test_votes_in_runs_equal_counts(drawn: Dense) -> None:
    counts, suggested, items = drawn
    m = counts.shape[1]
    digits = np.concatenate([np.repeat(np.arange(m), row) for row in counts] or [np.zeros(0, int)])
    start = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    absent = np.zeros(m, np.bool_)
    assert rows_of(from_votes(digits, start, absent, suggested, items)) == rows_of(
        from_counts(counts, suggested, items)
    )
    absent[0] = True
    counts[:, 0] = 0
    assert rows_of(from_votes(digits, start, absent, suggested, items)) == rows_of(
        from_counts(counts, suggested, items)
    )


@given(dense(), st.randoms(use_true_random=False))
def test_merged_rows_are_distinct_and_in_a_fixed_order(drawn: Dense, random: Any) -> None:
    table = from_counts(*drawn)
    merged, group = table.grouped()
    assert totals(merged) == totals(table)
    assert len({row for row, _ in rows_of(merged)}) == len(merged)
    assert [rows_of(merged)[place][0] for place in group.tolist()] == [row for row, _ in rows_of(table)]
    order = list(range(len(table)))
    random.shuffle(order)
    assert rows_of(table.take(np.array(order, np.int64)).merged()) == rows_of(merged)
    cut = len(table) // 2
    parts = [table.take(np.arange(cut)), table.take(np.arange(cut, len(table)))]
    assert rows_of(stack(parts)) == rows_of(table)
    assert rows_of(merge(parts)) == rows_of(merged)


@given(dense(), st.integers(1, 7))
def test_take_and_blocks(drawn: Dense, size: int) -> None:
    table = from_counts(*drawn)
    assert [row for block in table.blocks(size) for row in rows_of(block)] == rows_of(table)
    mask = np.arange(len(table)) % 2 == 0
    assert rows_of(table.take(mask)) == rows_of(table)[::2]
    assert rows_of(table.take(np.flatnonzero(mask)[::-1])) == rows_of(table)[::2][::-1]


@given(dense(), st.integers(0, 2**32))
def test_recode_maps_codes(drawn: Dense, seed: int) -> None:
    counts, suggested, items = drawn
    m = counts.shape[1]
    moved = np.random.default_rng(seed).permutation(m)
    table = from_counts(counts, suggested, items)
    found = table.recode(moved, moved)
    labels = np.append(moved, -1)[suggested].astype(np.int32)
    assert rows_of(found) == rows_of(from_counts(counts[:, np.argsort(moved)], labels, items))
    assert rows_of(table.recode(np.arange(m), np.arange(m))) == rows_of(table)


def test_hash_collisions_are_found_and_another_seed_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    table = from_counts(np.array([[2, 0], [0, 2], [2, 0]]), np.zeros(3, np.int32), np.ones(3, np.int64))
    expected = totals(table)
    seeds = []
    original = module._fingerprint

    def colliding(patterns: Patterns, seed: int) -> Any:
        seeds.append(seed)
        return np.zeros(len(patterns), np.uint64) if seed < 3 else original(patterns, seed)

    monkeypatch.setattr(module, "_fingerprint", colliding)
    assert totals(table.merged()) == expected
    assert seeds == [1, 2, 3]
    monkeypatch.setattr(module, "_fingerprint", lambda patterns, seed: np.zeros(len(patterns), np.uint64))
    with pytest.raises(RuntimeError):
        table.merged()


def test_many_tables_are_merged_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 1)
    table = from_counts(np.eye(3, dtype=np.int64), np.arange(3, dtype=np.int32), np.ones(3, np.int64))
    found = merge(table for _ in range(50))
    assert found.items.tolist() == [50, 50, 50]


def test_no_patterns() -> None:
    assert len(EMPTY) == EMPTY.n_votes() == 0
    assert EMPTY.merged() is EMPTY
    assert len(merge([])) == 0
    assert list(EMPTY.blocks()) == []
