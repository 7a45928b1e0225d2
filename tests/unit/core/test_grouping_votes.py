"""Counting votes into patterns by every kind of key, against counting item by item."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa.core import grouping
from dhkappa.core.grouping import Encoded, Patterns, count_grid, count_lists, count_matrix
from dhkappa.core.items import ItemColumns, ItemVotes
from dhkappa.core.labels import encode

Pattern = tuple[Any, frozenset[tuple[Any, int]]]


def decoded(found: Patterns, votes: Sequence[Any], labels: Sequence[Any]) -> Counter[Pattern]:
    """Return the patterns in labels, with their numbers of items; each must occur once."""
    counted: Counter[Pattern] = Counter()
    for k in range(len(found)):
        span = slice(found.start[k], found.start[k + 1])
        pairs = zip(found.code[span].tolist(), found.votes[span].tolist(), strict=True)
        pattern = labels[int(found.suggested[k])], frozenset((votes[code], number) for code, number in pairs)
        assert pattern not in counted
        counted[pattern] = int(found.items[k])
    return counted


def expected(rows: Sequence[Sequence[Any]], labels: Sequence[Any], items: Sequence[int] | None = None) -> Counter[Any]:
    counted: Counter[Pattern] = Counter()
    for row, label, number in zip(rows, labels, items or [1] * len(rows), strict=True):
        counted[label, frozenset(Counter(vote for vote in row if vote is not None).items())] += number
    return counted


def make(n: int, N: int, categories: int, seed: int, missing: bool, wide: bool = False) -> tuple[Any, Any]:
    """Return an object grid of votes with repeated rows, and labels."""
    rng = np.random.default_rng(seed)
    step = 10**6 if wide else 1
    pool = rng.integers(0, categories, (max(n // 3, 1), N)).astype(object) * step
    if missing:
        pool[rng.random(pool.shape) < 0.3] = None
    votes = pool[rng.integers(0, len(pool), n)] if n else np.zeros((0, N), object)
    labels = rng.integers(0, categories, n).astype(object) * step
    if missing:
        labels[rng.random(n) < 0.2] = None
    return votes, labels


def check_grid(votes: Any, labels: Any, items: npt.NDArray[np.int64] | None = None) -> None:
    grid, given_labels = encode(votes, "votes"), encode(labels, "suggested")
    found = count_grid(grid, given_labels, items)
    rows, number = votes.tolist(), None if items is None else items.tolist()
    assert decoded(found, grid.labels, given_labels.labels) == expected(rows, labels.tolist(), number)


@settings(max_examples=60)
@given(
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from([1, 2, 3, 5, 40, 300]),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
)
def test_grids(n: int, N: int, categories: int, seed: int, missing: bool, weighted: bool) -> None:
    votes, labels = make(n, N, categories, seed, missing)
    items = np.random.default_rng(seed).integers(1, 9, n) if weighted else None
    check_grid(votes, labels, items)


@pytest.mark.parametrize(
    ("n", "N", "categories"),
    [
        (5000, 3, 3),  # a table of votes
        (5000, 30, 3),  # a table of counts by category
        (300, 30, 8),  # sorted keys of counts
        (300, 4, 60),  # sorted keys of votes, by compare and exchange
        (300, 9, 60),  # sorted keys of votes, sorted
        (300, 70, 300),  # no key: hashes
        (300, 12, 40),  # 12 * log2(40) > 64: hashes
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_every_kind_of_key(n: int, N: int, categories: int, missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    votes, labels = make(n, N, categories, n + N, missing)
    check_grid(votes, labels)
    before = votes.copy()
    check_grid(votes, labels)
    assert np.array_equal(votes, before)
    monkeypatch.setattr(grouping, "BLOCK", 16)
    check_grid(votes, labels)


def test_several_indices_for_missing_are_merged() -> None:
    labels = ("a", None, "b", None)
    votes = Encoded(np.array([[0, 1], [0, 3], [2, 2], [3, 1]], np.uint8), 0, labels)
    suggested = Encoded(np.zeros(4, np.uint8), 0, ("a",))
    found = decoded(count_grid(votes, suggested), labels, ("a",))
    assert found == {("a", frozenset({("a", 1)})): 2, ("a", frozenset({("b", 2)})): 1, ("a", frozenset()): 1}


@settings(max_examples=60)
@given(st.integers(0, 40), st.integers(0, 6), st.sampled_from([2, 50, 2**20]), st.integers(0, 2**32), st.booleans())
def test_matrices(n: int, m: int, largest: int, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    pool = rng.integers(0, largest, (5, m))
    matrix = pool[rng.integers(0, 5, n)]
    names = [f"c{code}" for code in range(m)]
    labels = rng.choice(["x", "y"], n).astype(object)
    items = rng.integers(1, 9, n) if weighted else None
    encoded = encode(labels, "suggested")
    found = decoded(count_matrix(matrix, encoded, items), names, encoded.labels)
    counted: Counter[Any] = Counter()
    for row, label, number in zip(
        matrix.tolist(), labels.tolist(), [1] * n if items is None else items.tolist(), strict=True
    ):
        counted[label, frozenset((name, votes) for name, votes in zip(names, row, strict=True) if votes)] += number
    assert found == counted


@settings(max_examples=60)
@given(st.integers(0, 30), st.integers(1, 400), st.integers(0, 2**32))
def test_lists_of_different_lengths(n: int, categories: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows: list[list[Any]] = [rng.integers(0, categories, rng.integers(0, 7)).tolist() for _ in range(n)]
    flat = np.array([vote for row in rows for vote in row] or [], np.int64)
    votes = encode(flat, "votes")
    labels = encode(np.array(["x", None] * n, object)[:n], "suggested")
    found = count_lists(votes, np.array([len(row) for row in rows], np.int64), labels)
    assert len(found) == n
    assert decoded(found.merged(), votes.labels, labels.labels) == expected(rows, (["x", None] * n)[:n])


@settings(max_examples=60)
@given(st.integers(0, 60), st.integers(0, 8), st.sampled_from([2, 30]), st.integers(0, 2**32), st.booleans())
def test_distinct_votes(n: int, N: int, categories: int, seed: int, missing: bool) -> None:
    votes, _ = make(n, N, categories, seed, missing)
    grid = encode(votes, "votes")
    patterns, place = ItemVotes(grid, ItemColumns({})).distinct_votes()
    rows = [frozenset(Counter(vote for vote in row if vote is not None).items()) for row in votes.tolist()]
    found = []
    for k in range(len(patterns)):
        span = slice(patterns.start[k], patterns.start[k + 1])
        pairs = zip(patterns.code[span].tolist(), patterns.votes[span].tolist(), strict=True)
        found.append(frozenset((grid.labels[code], number) for code, number in pairs))
    assert len(set(found)) == len(found)
    assert [found[k] for k in place.tolist()] == rows
