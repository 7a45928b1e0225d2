"""Sums by group and by row against fractions and math.fsum."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhkappa.stats import summation
from dhkappa.stats.summation import (
    exact_sum,
    group_sums,
    integer_type,
    item_sums,
    ratios,
    row_sums,
    split_sums,
    totals,
)

Array = npt.NDArray[Any]
FLOATS = st.floats(min_value=-1e300, max_value=1e300)


@given(st.lists(st.tuples(FLOATS, st.integers(0, 3)), max_size=60))
def test_sums_by_group_are_rounded_once(pairs: list[tuple[float, int]]) -> None:
    values, group = np.array([value for value, _ in pairs]), np.array([group for _, group in pairs], np.int64)
    wanted = [float(sum((Fraction(value) for value, of in pairs if of == place), Fraction(0))) for place in range(4)]
    assert group_sums(values, group, 4).tolist() == wanted
    whole = sum((Fraction(value) for value, _ in pairs), Fraction(0))
    assert group_sums(values).tolist() == [float(whole)]
    parts = [Fraction(part[0]) for part in split_sums(values)]
    assert sum(parts, Fraction(0)) == whole


@pytest.mark.parametrize("n", [0, 1, 2, 1_000, 1_024, 1_025, 50_000])
def test_same_as_fsum_in_any_order(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n)
    assert exact_sum(values) == math.fsum(values.tolist()) == exact_sum(values[::-1])
    group = rng.integers(0, 7, n)
    wanted = [math.fsum(values[group == place].tolist()) for place in range(8)]
    assert group_sums(values, group, 8).tolist() == wanted


def test_smallest_numbers() -> None:
    tiny = np.array([5e-324, 1.0, -1.0, 5e-324, 2.2e-308])
    assert group_sums(tiny)[0] == math.fsum(tiny.tolist())


def test_terms_that_are_not_finite_or_too_large() -> None:
    group = np.array([0, 0, 1, 1, 2])
    found = group_sums(np.array([1.0, math.nan, math.inf, 1.0, 2.5]), group, 3)
    assert math.isnan(found[0])
    assert found[1:].tolist() == [math.inf, 2.5]
    assert group_sums(np.array([1e308, 1.0, 1e308, 1e308, 3.0]), group, 3).tolist() == [1e308, math.inf, 3.0]
    assert group_sums(np.array([1e308] * 2)).tolist() == [math.inf]
    assert math.isnan(group_sums(np.array([math.inf, -math.inf]))[0])


def test_empty_groups_are_zero() -> None:
    assert group_sums(np.zeros(0), np.zeros(0, np.int64), 3).tolist() == [0.0, 0.0, 0.0]


@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), max_size=20))
def test_sums_by_row_are_rounded_once(rows: list[list[float]]) -> None:
    wanted = [float(sum((Fraction(value) for value in row), Fraction(0))) for row in rows]
    assert row_sums(np.array(rows).reshape(len(rows), 3)).tolist() == wanted


@pytest.mark.parametrize("terms", [0, 1, 2, 7, 875, 20_000])
def test_rows_have_the_same_sum_as_fsum(terms: int) -> None:
    rng = np.random.default_rng(terms)
    values = rng.normal(size=(40, terms)) * 10.0 ** rng.integers(-8, 8, (40, terms))
    values[1] *= 1e-40  # rows of different size
    values[2] = 0
    values[3] = values[3] ** 2
    assert row_sums(values).tolist() == [math.fsum(row) for row in values.tolist()]


@pytest.mark.parametrize("terms", [1, 3, 7, 15, 127])
@pytest.mark.parametrize("sign", [-1, 1])
def test_terms_of_one_sign_and_size(terms: int, sign: int) -> None:
    """Their sum has the most bits: close to a power of two times the largest term."""
    values = sign * np.random.default_rng(terms).uniform(0.95, 1, (300, terms))
    wanted = [math.fsum(row) for row in values.tolist()]
    assert row_sums(values).tolist() == wanted
    assert [float(group_sums(row)[0]) for row in values] == wanted
    group = np.repeat(np.arange(300), terms)
    assert group_sums(values.ravel(), group, 300).tolist() == wanted


def test_rows_that_one_split_does_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an ulp, a bit more and a bit less, terms that cancel, and numbers close to the largest and the least."""
    half = 2.0**-53
    rows: list[list[float]] = [
        [1, half, 0, 0],
        [1, half, 2.0**-200, 0],
        [1, half, -(2.0**-200), 0],
        [1 + 2 * half, half, 0, 0],
        [1e20, 1, -1e20, 2.0**-80],
        [1e308, -1e308, 1e300, 1.0],
        [5e-324, 5e-324, 2.2e-308, 0],
    ]
    settled: list[list[float]] = [[1, 2, 3, 4], [0.1, 0.2, 0.3, 0.7], [1e-40, 3e-41, 7e-42, 2e-40], [0, 0, 0, 0]]
    added = []

    def slow(values: np.ndarray[Any, Any]) -> float:
        added.append(values.tolist())
        return exact_sum(values)

    monkeypatch.setattr(summation, "exact_sum", slow)
    assert row_sums(np.array(rows + settled)).tolist() == [
        float(sum((Fraction(value) for value in row), Fraction(0))) for row in rows + settled
    ]
    assert added == rows


def test_rows_that_are_not_finite() -> None:
    found = row_sums(np.array([[1.0, math.nan], [math.inf, 1.0], [2.0, 0.5]]))
    assert math.isnan(found[0])
    assert found[1:].tolist() == [math.inf, 2.5]


@pytest.mark.parametrize("most", [1, 2, 1_000, 2**30, 2**50])
def test_sums_over_items_are_rounded_once(most: int) -> None:
    rng = np.random.default_rng(most)
    values = rng.normal(size=50) * 10.0 ** rng.integers(-9, 9, 50)
    items, group = rng.integers(1, most, 50, endpoint=True), rng.integers(0, 3, 50)
    check_item_sums(values, items, group, 4)
    # The leading digits of each pair of terms cancel: an error in a product would be in the sum.
    near = -values.astype(np.float32).astype(np.float64)
    check_item_sums(np.append(values, near), np.tile(items, 2), np.tile(np.arange(50), 2), 50)


def check_item_sums(values: Array, items: Array, group: Array, size: int) -> None:
    wanted = [Fraction(0)] * size
    for value, number, place in zip(values.tolist(), items.tolist(), group.tolist(), strict=True):
        wanted[place] += Fraction(value) * number
    assert item_sums(values, items, group, size).tolist() == [float(total) for total in wanted]


def test_sums_over_no_items() -> None:
    none = np.zeros(0, np.int64)
    assert item_sums(np.zeros(0), none, none, 2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("number", [2**53 + 1, 2**70 + 1])
def test_totals_of_integers_are_exact(number: int) -> None:
    numbers = np.array([number, 5, number, -2], integer_type(number))
    found = totals(numbers, np.array([2, 0, 2, 0]), 4)
    assert found.tolist() == [3, 0, 2 * number, 0]
    assert found.dtype == numbers.dtype


def test_integers_have_64_bits_where_that_is_enough() -> None:
    assert [integer_type(bound) for bound in (0, 2**62 - 1, 2**62, 2**80)] == [np.int64, np.int64, object, object]


def test_ratios_are_rounded_once() -> None:
    top, bottom = [2**80 + 1, 2**53 + 1, -7, 0], [3, 2**54 - 1, 2**70, 5]
    found = ratios(np.array(top, object), np.array(bottom, object))
    assert found.tolist() == [float(Fraction(a, b)) for a, b in zip(top, bottom, strict=True)]
    assert found.dtype == ratios(np.zeros(0, object), np.zeros(0, object)).dtype == np.float64


def test_sums_of_parts_are_rounded_once() -> None:
    rng = np.random.default_rng(1)
    for trial in range(60):
        parts = [np.ldexp(rng.standard_normal(50), power) for power in rng.integers(-60, 60, (rng.integers(2, 6), 50))]
        if trial % 3 == 0:  # what is left after cancellation
            parts[-1] = np.where(rng.random(50) < 0.5, -parts[0], parts[-1])
        if trial % 4 == 0:  # half of the last bit: a tie unless another part breaks it
            parts[1] = np.spacing(np.abs(parts[0])) / 2
        if trial % 8 == 0:
            parts[2:] = [np.zeros(50)]
        exact = [float(sum(map(Fraction, place))) for place in np.transpose(parts).tolist()]
        assert summation._rounded(parts).tolist() == exact
