"""Unusual arrays, lists and counts."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import dhkappa
import oracle
from dhkappa import DataError, dh_kappa, fleiss_kappa, tally
from expect import expect_error

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]
KAPPA = oracle.dh(VOTES, LABELS, [*"abc"]).kappa


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float64, object])
@pytest.mark.parametrize(("n", "N", "m"), [(1, 3, 51), (40, 3, 3), (40, 3, 40), (40, 20, 3), (40, 20, 60), (40, 7, 40)])
def test_arrays_are_not_modified(n: int, N: int, m: int, dtype: type[Any], order: Any) -> None:
    rng = np.random.default_rng(n + N + m)
    votes = np.array(rng.integers(0, m, (n, N)), dtype, order=order)
    votes[0, 0] = 0
    suggested = votes[:, 0].copy()
    votes.flags.writeable = suggested.flags.writeable = False
    before = votes.copy()
    first = dh_kappa(votes, suggested).exact
    assert (votes == before).all()
    assert dh_kappa(before.tolist(), suggested.tolist()).exact == first
    counts = np.array(rng.integers(0, 4, (n, m)), order=order)
    counts.flags.writeable = False
    dh_kappa(counts=counts, suggested=rng.integers(0, m, n))


def test_dataframes_of_small_integers() -> None:
    grid = np.random.default_rng(0).integers(0, 20, (30, 3), dtype=np.uint8)
    assert dh_kappa(pd.DataFrame(grid), grid[:, 0]).exact == dh_kappa(grid.tolist(), grid[:, 0].tolist()).exact


@pytest.mark.parametrize("dtype", [np.uint64, np.uint32, np.float16, np.float64, object])
def test_counts_of_all_types(dtype: type[Any]) -> None:
    counts = np.random.default_rng(0).integers(0, 11, (300, 16))
    suggested = np.arange(300) % 16
    assert tally(counts=counts.astype(dtype), suggested=suggested) == tally(counts=counts, suggested=suggested)


@pytest.mark.parametrize("top", [255, 256, 65_535, 65_536, 2**31 - 1])
def test_large_counts(top: int) -> None:
    assert fleiss_kappa(counts=[[top], [2]]).n_votes == top + 2
    kappa = dh_kappa(counts=[[top - 1, 0], [1, 1]], suggested=[0, 1])
    assert kappa.exact == dh_kappa(counts=np.array([[top - 1, 0, 0], [1, 1, 0]]), suggested=[0, 1]).exact
    if top < 10**5:
        assert fleiss_kappa(np.arange(top + 1)[:, None]).excluded.one_vote == top + 1


def test_masked_counts_are_rejected() -> None:
    counts = np.ma.array([[2, 7], [0, 2]], mask=[[False, True], [False, False]])
    with expect_error("invalid-count", "counts"):
        dh_kappa(counts=counts, suggested=[0, 1])
    with expect_error("invalid-count", "suggested"):
        dh_kappa(counts=[[2, 7], [0, 2]], suggested=np.ma.array([[1, 0], [0, 1]], mask=counts.mask))
    assert dh_kappa(counts=np.ma.array([[2, 0], [0, 2]]), suggested=[0, 1]).exact == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"categories": {"a", "b"}},
        {"categories": []},
        {"categories": ["a", "b"], "missing": ["b"]},
        {"missing": b"NA"},
        {"missing": np.array([1.5, 2])},
    ],
)
def test_contradicting_options(arguments: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        dh_kappa([["a", "b"]], ["a"], **arguments)
    assert caught.value.parameter in ("categories", "missing")


@pytest.mark.parametrize("extra", [np.array([1, 2]), np.array(1), pd.Series([1]), pd.NA, ["NA"]], ids=repr)
def test_missing_with_a_tally_is_rejected(extra: Any) -> None:
    with expect_error("option-with-dataset", "missing"):
        dh_kappa(tally([["a", "b"]], ["a"]), missing=extra)


@pytest.mark.parametrize(
    ("counts", "suggested"),
    [
        ([[2, 0], [0, 2]], [["a"], ["b", "c"]]),
        ([["3", "0"]], [0]),
        (np.array([[1j, 0]]), [0]),
        (np.array([[np.inf, 0]], np.float16), [0]),
        (np.array([[5, 0]], "m8[s]"), [0]),
        ([[10**400, 0]], [0]),
    ],
    ids=["ragged labels", "text", "complex", "half infinity", "durations", "huge"],
)
def test_invalid_counts(counts: Any, suggested: Any) -> None:
    with pytest.raises(DataError):
        dh_kappa(counts=counts, suggested=suggested)


def test_one_long_label() -> None:
    labels = ["x" * 10**6, *["y"] * 4999]
    kappa = dh_kappa(counts=[[2, 0]] + [[0, 2]] * 4999, suggested=labels, categories=["x" * 10**6, "y"])
    assert kappa.exact == 1


def test_matrices_and_empty_matrices() -> None:
    grid = [[1, 1], [2, 2], [1, 2]]
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(grid)
    assert dh_kappa(matrix, [1, 2, 2]).exact == dh_kappa(grid, [1, 2, 2]).exact
    empty: list[Any] = [[], np.zeros((0, 2)), np.zeros((0, 0))]
    for counts in empty:
        assert dh_kappa(counts=counts, suggested=[], categories=["a", "b"]).n_items == 0
    assert dh_kappa(counts=np.zeros((0, 0)), suggested=np.zeros((0, 0))).n_items == 0


def test_many_columns() -> None:
    assert fleiss_kappa(counts=np.ones((3, 300_000), np.uint8)).n_votes == 900_000
    assert fleiss_kappa(np.zeros((3, 300_000), np.uint8)).n_votes == 900_000


def test_arrays_of_lists() -> None:
    rows = np.empty(len(VOTES), object)
    rows[:] = VOTES
    assert dh_kappa(rows, LABELS).exact == KAPPA
    ragged = np.empty(len(VOTES), object)
    ragged[:] = [[*VOTES[0], "a"], *VOTES[1:]]
    assert dh_kappa(ragged, LABELS).exact == oracle.dh(ragged.tolist(), LABELS, [*"abc"]).kappa
    assert dh_kappa(pd.Series(VOTES), LABELS).exact == KAPPA


def test_objects_with_an_array_method() -> None:
    class Grid:
        columns = ("x", "y", "z")

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
            return np.array(VOTES, object)

    assert dh_kappa(Grid(), LABELS).exact == KAPPA
    with expect_error("not-a-table", "annotators"):
        dh_kappa(Grid(), LABELS, annotators="x")


@pytest.mark.parametrize("labelers", [4, 13])
def test_many_labelers_with_many_labels(labelers: int) -> None:
    """The labels of an item do not fit in one 64-bit key."""
    draw = np.random.default_rng(3)
    votes = draw.integers(0, 64, (8, 3))
    votes[:, 1] = votes[:, 0]
    labels = {f"l{place}": np.where(draw.random(8) < 0.5, votes[:, 0], 5) for place in range(labelers)}
    for name in labels:
        labels[name][:2] = 0, 63  # so that codes have 64 values
    whole = tally(votes, labels)
    used = sorted({*votes.ravel().tolist(), 0, 5, 63})
    for name, own in labels.items():
        assert dh_kappa(whole, name).exact == oracle.dh(votes.tolist(), own.tolist(), used).kappa


def test_more_patterns_than_a_block() -> None:
    """All 131,072 combinations of 17 votes for two categories."""
    n = 1 << 17
    votes = (np.arange(n)[:, None] >> np.arange(17) & 1).astype(np.uint8)
    labels = {"first": votes[:, 0], "last": votes[:, 16]}
    found = dhkappa.compare(votes, labels, rng=1)
    for name in labels:
        assert found.kappas[name].exact == dh_kappa(votes, labels[name]).exact
    assert found.kappas["first"].exact == Fraction(1, 17)
    assert found.kappas["last"].exact == Fraction(1, 17)
