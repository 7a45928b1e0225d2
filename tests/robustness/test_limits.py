"""Narrow integers, many votes, items and categories: exact, without overflow."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import dh_kappa, tally
from dhkappa.core import patterns


@pytest.mark.parametrize(
    ("dtype", "high"), [(np.uint8, 255), (np.int8, 127), (np.int16, 32_767), (np.uint16, 65_535), (np.int32, 10**9)]
)
def test_counts_near_the_limit_of_their_type(dtype: type[Any], high: int) -> None:
    counts = np.array([[high, 0, 17], [400 % (high + 1), high - 1, 0], [1, 1, high]], dtype)
    plain = [[int(value) for value in row] for row in counts]
    expected = oracle_from_counts(plain, [0, 1, 1])
    assert dh_kappa(counts=counts, suggested=[0, 1, 1]).exact == expected
    assert dh_kappa(counts=counts.astype(float), suggested=[0, 1, 1]).exact == expected


def oracle_from_counts(counts: list[list[int]], suggested: list[int]) -> Fraction:
    """Eq. 13 from counts with binomials, for items whose pairs are too many to list."""
    n = len(counts)
    C: Counter[int] = Counter()
    L = Counter(suggested)
    D = Fraction(0)
    for row, label in zip(counts, suggested, strict=True):
        N = sum(row)
        for category, number in enumerate(row):
            if number:
                C[category] += Fraction(number, N * n)  # type: ignore[assignment]
                agreeing = Fraction(number * (number - 1), N * (N - 1) * n)
                D += agreeing if category == label else -agreeing
    E = sum((share**2 * (Fraction(2 * L[category], n) - 1) for category, share in C.items()), Fraction(0))
    return (D - E) / (1 - E)


def test_three_thousand_votes_on_an_item() -> None:
    rng = np.random.default_rng(1)
    grid = rng.integers(0, 3, (20, 3000)).astype(np.uint8)
    suggested = rng.integers(0, 3, 20)
    counts = np.stack([(grid == category).sum(axis=1) for category in range(3)], axis=1)
    expected = oracle_from_counts(counts.tolist(), suggested.tolist())
    assert dh_kappa(grid, suggested).exact == expected
    assert dh_kappa(counts=counts, suggested=suggested).exact == expected
    ragged = [row[: rng.integers(2, 3000)].tolist() for row in grid]
    lists = [[row.count(category) for category in range(3)] for row in ragged]
    assert dh_kappa(ragged, suggested).exact == oracle_from_counts(lists, suggested.tolist())


def test_ten_million_items() -> None:
    rng = np.random.default_rng(2)
    block = rng.integers(0, 5, (10_000, 3)).astype(np.uint8)
    suggested = rng.integers(0, 5, 10_000).astype(np.uint8)
    many = dh_kappa(np.tile(block, (1000, 1)), np.tile(suggested, 1000))
    once = dh_kappa(block, suggested)
    assert many.n_items == 10**7
    assert many.exact == once.exact
    assert many.n_votes == 3 * 10**7


def test_five_thousand_categories() -> None:
    rng = np.random.default_rng(3)
    grid = rng.integers(0, 5000, (3000, 4))
    suggested = np.where(rng.random(3000) < 0.5, grid[:, 0], rng.integers(0, 5000, 3000))
    counts = np.zeros((3000, 5000), np.uint8)
    for column in grid.T:
        counts[np.arange(3000), column] += 1
    expected = oracle_from_counts(counts.tolist(), suggested.tolist())
    assert dh_kappa(counts=counts, suggested=suggested).exact == expected
    assert dh_kappa(grid.astype(np.uint16), suggested).exact == expected
    names = np.array([f"class {code}" for code in range(5000)])
    assert dh_kappa(names[grid], names[suggested]).exact == expected


def test_a_billion_billion_items_by_adding() -> None:
    total = tally([["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"]], ["a", "b", "b"])
    once = dh_kappa(total)
    for _ in range(59):
        total = total + total
    kappa = dh_kappa(total)
    assert kappa.n_items == 3 * 2**59
    assert kappa.n_votes == 9 * 2**59
    assert (kappa.exact, kappa.value, kappa.baselines.random, kappa.baselines.majority) == (
        once.exact,
        once.value,
        once.baselines.random,
        once.baselines.majority,
    )
    assert kappa.parts is not None
    assert once.parts is not None
    assert kappa.parts.C == once.parts.C
    total = total + total
    with pytest.raises(ValueError, match="items"):
        total + total


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(0, 12), st.integers(1, 70), st.integers(0, 2**32), st.booleans(), st.booleans())
def test_every_way_of_counting_gives_the_same_patterns(
    n: int, N: int, m: int, seed: int, gaps: bool, column_major: bool
) -> None:
    """Keys of votes, keys of counts and sparse rows are the same table; lists and arrays too."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, m, (n, N))
    suggested = rng.integers(0, m, n).tolist()
    rows = [[None if gaps and rng.random() < 0.3 else int(code) * 7 for code in row] for row in codes]
    labels = [int(code) * 7 for code in suggested]
    array = np.array([[np.nan if vote is None else vote for vote in row] for row in rows]).reshape(n, N)
    if column_major:
        array = np.asfortranarray(array)
    ragged = [[vote for vote in row if vote is not None] for row in rows]
    by_lists = tally([[], *ragged], [0, *labels])
    assert tally([[None] * N, *rows], [0, *labels]) == by_lists
    assert tally(np.vstack([np.full((1, N), np.nan), array]), [0, *labels]) == by_lists
    if not gaps:
        narrow = tally(codes.astype(np.uint8), suggested, categories=range(70))
        counts = np.stack([(codes == category).sum(axis=1) for category in range(70)], axis=1)
        assert tally(counts=counts, suggested=suggested, categories=range(70)) == narrow


def test_hashes_that_collide_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["a", "a"], ["a", "b"], ["b", "b"], ["b", "a"]] * 3
    expected = tally(rows, ["a", "b", "b", "b"] * 3)
    honest = patterns._fingerprint
    seeds = []

    def weak(table: patterns.Patterns, seed: int) -> npt.NDArray[np.uint64]:
        seeds.append(seed)
        return honest(table, seed) if seed > 2 else np.zeros(len(table), np.uint64)

    monkeypatch.setattr(patterns, "_fingerprint", weak)
    assert tally(rows, ["a", "b", "b", "b"] * 3) == expected
    assert 3 in seeds


def test_a_million_categories() -> None:
    grid = np.arange(2_000_000).reshape(1_000_000, 2) // 2
    kappa = dh_kappa(grid, grid[:, 0])
    assert kappa.exact == 1
    assert len(kappa.categories) == 1_000_000
