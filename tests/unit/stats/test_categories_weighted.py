"""Kappa by category with agreement weights, against loops over pairs of votes."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_cases import KINDS, kappa_of, ordered, rows_of, weighted_data

from dhkappa.stats.categories import category_influence, category_parts
from exact import float_terms
from strategies import Data
from weighted_oracle import Items, items_of, named_weights

F = Fraction


@settings(max_examples=50)
@given(weighted_data(max_items=8), st.integers(0, 7))
def test_categories_against_loops(drawn: tuple[Data, Any, Items], item: int) -> None:
    data, weights, items = drawn
    kappa = kappa_of(data, weights)
    known, rows = float_terms(kappa), rows_of(kappa, items)
    parts = category_parts(known)
    item %= len(items.votes)
    for code in items.codes:
        E = items.E_of(code)
        assert parts.E[code] == pytest.approx(float(E), rel=1e-13, abs=1e-15)
        used = code in items.labels
        assert parts.defined[code] == (used and E != 1)
        if not parts.defined[code]:
            continue
        scale = float(1 - E) ** 2
        assert parts.D[code] == pytest.approx(float(items.D_of(code)), rel=1e-13, abs=1e-15)
        assert parts.kappa[code] == pytest.approx(float(items.kappa_of(code)), rel=1e-12, abs=1e-14 / scale)
        expected = float(items.influence(partial(Items.kappa_of, label=code), item))
        phi = category_influence(known, parts, code)
        assert phi[rows[item]] == pytest.approx(expected, rel=1e-11, abs=1e-13 / scale)
    assert np.nansum(parts.weight * parts.kappa) == pytest.approx(kappa.value, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, [1, 2, 4, 5] * 8])
def test_standard_errors_of_categories(kind: str, weight: list[int] | None) -> None:
    data = ordered(32, seed=3)
    items = items_of(data.votes, data.suggested, data.categories, named_weights(kind, 5), weight or ())
    table = kappa_of(data, kind, sample_weight=weight).by_category()
    for row in table:
        assert row["kappa"] == pytest.approx(float(items.kappa_of(row["category"])), rel=1e-12)
        se = math.sqrt(items.variance(partial(Items.kappa_of, label=row["category"])))
        own, n = row["items"], len(data.votes)
        of_label = math.sqrt(F(n - 1, n) * F(own, own - 1)) if weight is None else 1  # n_j - 1 instead of n - 1
        assert row["se"] == pytest.approx(se * of_label, rel=1e-10)
        assert row["low"] < row["kappa"] < row["high"] <= 1
    assert sum(row["weight"] for row in table) == pytest.approx(1, rel=1e-14)
    assert sum(row["loss"] for row in table) == pytest.approx(float(1 - items.kappa), rel=1e-12)


def test_categories_with_identity_weights() -> None:
    data = ordered(60, seed=9)
    plain, same = (kappa_of(data, w).by_category() for w in (None, np.eye(5)))
    for name in ("kappa", "se", "low", "high", "weight", "loss"):
        assert same.column(name) == pytest.approx(plain.column(name), rel=1e-12)
    for name in ("category", "items", "vote_share", "label_share", "reason"):
        assert same.column(name) == plain.column(name)


def test_confusion_ignores_weights() -> None:
    data = ordered(60, seed=10)
    plain, found = (kappa_of(data, w).confusion() for w in (None, "linear"))
    assert found.to_dicts() == plain.to_dicts()


def test_near_misses_cost_less_than_distant_ones() -> None:
    """Label 4 is given to votes 3, label 0 to votes 4: kappa of category 4 is the larger one with weights only."""
    data = Data(tuple(range(5)), [[code] * 3 for code in (3, 3, 4, 4, 1, 2)] * 5, [4, 4, 0, 0, 1, 2] * 5)
    plain, near = (
        {row["category"]: row["kappa"] for row in kappa_of(data, w).by_category()} for w in (None, "quadratic")
    )
    assert near[4] - near[0] > 1
    assert plain[4] - plain[0] < 0.3


def test_title_says_that_it_is_weighted() -> None:
    table = kappa_of(ordered(20, seed=1), "linear").by_category()
    assert table.title == "Weighted kappa by suggested category, 95% confidence intervals"
