"""Review queue with agreement weights, against loops over pairs of votes."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_cases import KINDS, Rows, drawn_items, votes_of

from dhkappa import simulate
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.review import review_queue
from dhkappa.stats.weights import Weights, agreement_weights
from weighted_oracle import Matrix, items_of, named_weights

F = Fraction


@settings(max_examples=60)
@given(drawn_items(), st.booleans())
def test_review_against_loops(drawn: tuple[Rows, list[Any], Weights, Matrix], weighted: bool) -> None:
    rows, labels, weights, w = drawn
    if not rows:
        return
    weight = [1 + i % 3 for i in range(len(rows))] if weighted else None
    table = review_queue(votes_of(rows, labels, len(w), weight), "rule", weights=weights)
    kept = [i for i, row in enumerate(rows) if labels[i] is not None and sum(vote is not None for vote in row) > 1]
    items = items_of(rows, labels, range(len(w)), w, weight or ())
    kappa = items.kappa if kept else None
    assert len(table) == len(kept)
    for row in table:
        i = kept.index(row["item"])
        assert row["differential"] == float(items.d(i, items.labels[i]))
        rest = None if len(kept) == 1 or kappa is None else items.without(i).kappa
        assert row["kappa_without"] == pytest.approx(math.nan if rest is None else float(rest), rel=1e-15, nan_ok=True)
        if kappa is None:
            assert math.isnan(row["contribution"])
            assert math.isnan(row["influence"])
        else:
            slack = 1e-13 / float(1 - items.E) ** 2
            expected = (items.d(i, items.labels[i]) - items.E_of(items.labels[i])) / (1 - items.E)
            assert row["contribution"] == pytest.approx(float(expected), rel=1e-12, abs=slack)
            assert row["influence"] == pytest.approx(
                float(items.influence(lambda of: of.kappa, i)), rel=1e-11, abs=slack
            )
    assert table.column("differential") == sorted(table.column("differential"))


def test_mean_contribution_is_kappa() -> None:
    rng = np.random.default_rng(1)
    rows, labels = rng.integers(0, 5, (80, 3)), rng.integers(0, 5, 80)
    table = review_queue(votes_of(rows, labels, 5), "rule", weights=agreement_weights("quadratic", 5))
    items = items_of(rows.tolist(), labels.tolist(), range(5), named_weights("quadratic", 5))
    assert np.mean(table.column("contribution")) == pytest.approx(float(items.kappa), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_near_label_ranks_below_a_distant_one(kind: str) -> None:
    """Label 5 with votes 4, 4, 4, and label 5 with votes 1, 1, 1; without weights both are rejected alike."""
    rows = [[5, 5, 5], [4, 4, 4], [1, 1, 1], [3, 3, 3], [2, 2, 2], [1, 1, 1]]
    item_votes = read_votes(np.array(rows), {"rule": [5, 5, 5, 3, 2, 1]}, categories=(1, 2, 3, 4, 5))
    plain = {row["item"]: row["differential"] for row in review_queue(item_votes, "rule")}
    table = review_queue(item_votes, "rule", weights=agreement_weights(kind, 5))
    found = {row["item"]: row["differential"] for row in table}
    assert plain[1] == plain[2] == -1
    assert found[2] == -1
    assert found[1] == {"linear": 0.5, "quadratic": 0.875}[kind]
    assert table.column("item")[:2] == [2, 1]
    assert table.column("kappa_without")[0] > table.column("kappa_without")[1]


def test_identity_weights_give_the_same_queue() -> None:
    data = simulate(200, categories=[0, 1, 2], accuracy=0.7, rng=3)
    item_votes = votes_of(data.votes, data.suggested["labeler"], 3)
    plain, same = (review_queue(item_votes, "rule", weights=w) for w in (None, agreement_weights(np.eye(3), 3)))
    assert same.column("item") == plain.column("item")
    assert same.column("differential") == plain.column("differential")
    for name in ("contribution", "influence", "kappa_without"):
        assert same.column(name) == pytest.approx(plain.column(name), rel=1e-12)
