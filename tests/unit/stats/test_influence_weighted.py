"""Influence with agreement weights, against exact derivatives."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from weighted_cases import kappa_of, rows_of, weighted_data

from dhkappa import dh_kappa
from dhkappa.stats.influence import chance_terms, extremes, influence
from exact import float_terms
from strategies import Data
from weighted_oracle import Items, items_of, named_weights

F = Fraction


def test_influence_keeps_its_digits_if_chance_is_almost_certain() -> None:
    """Nearly all of the weight is on items with votes and label 0, so E is almost 1."""
    votes, labels = [[0, 0, 0], [0, 1, 0], [2, 2, 1]], [0, 0, 2]
    weight = [2.0**40, 1.0, 3.0]
    items = items_of(votes, labels, range(3), named_weights("linear", 3), [F(w) for w in weight])
    kappa = dh_kappa(votes, labels, categories=range(3), weights="linear", sample_weight=weight)
    known, rows = float_terms(kappa), rows_of(kappa, items)
    assert 1 - known.E < 1e-6
    assert chance_terms(known).not_by_chance == pytest.approx(float(1 - items.E), rel=1e-12)
    expected = [float(items.influence(lambda of: of.kappa, i)) for i in range(3)]
    assert influence(known)[rows] == pytest.approx(expected, rel=1e-9)


@given(weighted_data(max_items=8))
def test_terms_of_chance(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    known = float_terms(kappa_of(data, weights))
    chance = chance_terms(known)
    assert chance.not_by_chance == pytest.approx(float(1 - items.E), rel=1e-13)
    assert chance.middle == pytest.approx(2 - known.E - known.C_E, rel=1e-13)
    plain = influence(known)
    votes = known.row_sums(chance.votes[known.patterns.code] * known.c)
    assert chance.influence(known.kappa, votes, known.suggested, 1 - known.d) == pytest.approx(
        plain, rel=1e-11, abs=1e-12 / float(1 - items.E) ** 2
    )


@settings(max_examples=25)
@given(weighted_data(max_items=4))
def test_extremes_are_those_of_items_with_equal_votes(drawn: tuple[Data, Any, Items]) -> None:
    data, weights, items = drawn
    far = extremes(float_terms(kappa_of(data, weights)))
    C, L = items.C, items.L
    occurs = [j for j in items.codes if C[j] + L[j]]
    assert far.label.tolist() == occurs
    slack = 1e-12 / float(1 - items.E) ** 2

    def phi(label: int, vote: int) -> float:
        more = replace(
            items, votes=[*items.votes, [vote] * 2], labels=[*items.labels, label], share=[*items.share, F(0)]
        )
        return float(more.influence(lambda of: of.kappa, len(items.votes)))

    for place, label in enumerate(occurs):
        every = [phi(label, vote) for vote in occurs]
        assert (far.low[place], far.high[place]) == pytest.approx((min(every), max(every)), rel=1e-11, abs=slack)
