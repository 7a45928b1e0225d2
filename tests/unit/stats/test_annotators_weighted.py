"""Annotators and comparison with annotators with agreement weights, against loops over pairs of votes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from weighted_cases import Rows, drawn_items, votes_of

from dhkappa import simulate
from dhkappa.stats import annotator_votes
from dhkappa.stats.annotators import annotator_parts, annotator_table, compare_with_annotators
from dhkappa.stats.weights import Weights, agreement_weights
from weighted_oracle import Items, Matrix, items_of, named_weights, random_weights

F = Fraction


def part_by_pairs(rows: Rows, labels: Sequence[Any], items: Items, a: int) -> tuple[Fraction, Fraction | None]:
    """omega_a and D_a: the mean over the items of a, by 1 / N_i, of the mean over the pairs with a's vote."""
    over = under = F(0)
    n = 0
    for row, label in zip(rows, labels, strict=True):
        others = [vote for b, vote in enumerate(row) if b != a and vote is not None]
        votes = len(others) + (row[a] is not None)
        if label is None or votes < 2:
            continue
        n += 1
        if row[a] is not None:
            signed = sum((items.pair(row[a], other, label) for other in others), F(0))
            over += signed / len(others) / votes
            under += F(1, votes)
    return under / n, over / under if under else None


@settings(max_examples=60)
@given(drawn_items())
def test_parts_against_pairs_and_recomputation(drawn: tuple[Rows, list[Any], Weights, Matrix]) -> None:
    rows, labels, weights, w = drawn
    if not rows:
        return
    items = items_of(rows, labels, range(len(w)), w)
    kappa = items.kappa if items.votes else None
    found = annotator_parts(votes_of(rows, labels, len(w)), "rule", weights=weights)
    for a, part in enumerate(found):
        without = items_of([[*row[:a], *row[a + 1 :]] for row in rows], labels, range(len(w)), w)
        rest = without.kappa if without.votes else None
        assert part.kappa_without == rest
        assert part.change == (None if rest is None or kappa is None else rest - kappa)
        if items.votes:
            assert (part.weight, part.differential) == part_by_pairs(rows, labels, items, a)
    if kappa is not None:
        assert sum(part.weight * part.kappa for part in found if part.kappa is not None) == kappa


def test_sample_weights_are_those_of_repeated_items() -> None:
    random = Random(5)
    rows = [[random.randint(0, 3) if random.random() < 0.8 else None for _ in range(5)] for _ in range(30)]
    labels = [random.randint(0, 3) for _ in rows]
    times = [1 + i % 3 for i in range(30)]
    repeated = [i for i, many in enumerate(times) for _ in range(many)]
    weights = agreement_weights("linear", 4)
    once = annotator_parts(votes_of(rows, labels, 4, times), "rule", weights=weights)
    many = annotator_parts(
        votes_of([rows[i] for i in repeated], [labels[i] for i in repeated], 4), "rule", weights=weights
    )
    assert [replace(part, items=0) for part in once] == [replace(part, items=0) for part in many]


def test_identity_weights_give_the_same_annotators() -> None:
    data = simulate(150, categories=[0, 1, 2], annotators=5, missing=0.2, rng=7)
    item_votes = votes_of(data.votes, data.suggested["labeler"], 3)
    same = agreement_weights(np.eye(3), 3)
    assert annotator_parts(item_votes, "rule") == annotator_parts(item_votes, "rule", weights=same)
    plain, found = (compare_with_annotators(item_votes, "rule", weights=w) for w in (None, same))
    for name in ("kappa_annotator", "kappa_labeler", "difference"):
        assert found.table.column(name) == plain.table.column(name)
    for name in ("se", "low", "high"):
        assert found.table.column(name) == pytest.approx(plain.table.column(name), rel=1e-12)
    assert (found.difference, found.matched, found.n_items) == (plain.difference, plain.matched, plain.n_items)
    assert (found.se, found.low, found.high) == pytest.approx((plain.se, plain.low, plain.high), rel=1e-12)


def test_table_says_that_it_is_weighted() -> None:
    item_votes = votes_of([[0, 1, 1]] * 3, [0, 1, 1], 2)
    table = annotator_table(item_votes, "rule", weights=agreement_weights("linear", 2))
    assert table.title == "Part of each annotator in the weighted kappa of rule"


# Comparison with annotators


def near_votes(n: int, seed: int, missing: float) -> tuple[list[list[Any]], list[Any]]:
    """Five ordered categories; four annotators and a labeler that stray by a step."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)
    stray = np.where(rng.random((n, 5)) < 0.35, rng.choice([-1, 1], (n, 5)), 0)
    found = np.clip(truth[:, None] + stray, 0, 4)
    rows = [[int(vote) if rng.random() >= missing else None for vote in row[:4]] for row in found]
    labels = [int(row[4]) if i % 9 else None for i, row in enumerate(found)]
    return rows, labels


@pytest.mark.parametrize(("kind", "weighted"), [("linear", False), ("quadratic", True), ("own", True)])
def test_comparison_against_loops(kind: str, weighted: bool) -> None:
    rows, labels = near_votes(48, seed=4, missing=0.15)
    w = random_weights(Random(3), 5) if kind == "own" else named_weights(kind, 5)
    weight = [1 + i % 4 for i in range(48)] if weighted else [1] * 48
    item_votes = votes_of(rows, labels, 5, weight if weighted else None)
    found = compare_with_annotators(item_votes, "rule", weights=agreement_weights(w, 5))
    moved: dict[int, Fraction] = {}
    differences, wholes = [], []
    for a, row in enumerate(found.table):
        own = [
            i
            for i, votes in enumerate(rows)
            if votes[a] is not None and labels[i] is not None and sum(vote is not None for vote in votes) > 2
        ]
        others = [[vote for b, vote in enumerate(rows[i]) if b != a] for i in own]
        parts = [weight[i] for i in own]
        as_label = items_of(others, [rows[i][a] for i in own], range(5), w, parts)
        labeler = items_of(others, [labels[i] for i in own], range(5), w, parts)
        assert row["items"] == len(own)
        assert (row["kappa_annotator"], row["kappa_labeler"]) == (float(as_label.kappa), float(labeler.kappa))
        n, whole = len(own), sum(parts)
        pull = [
            part * (labeler.influence(lambda of: of.kappa, k) - as_label.influence(lambda of: of.kappa, k))
            for k, part in enumerate(parts)
        ]
        variance = F(n, n - 1) * sum(z * z for z in pull) / whole**2
        assert row["se"] == pytest.approx(math.sqrt(variance), rel=1e-10)
        assert row["low"] < row["difference"] < row["high"]
        differences.append(labeler.kappa - as_label.kappa)
        wholes.append(F(whole))
        for i, z in zip(own, pull, strict=True):
            moved[i] = moved.get(i, F(0)) + z
    T, n = sum(wholes, F(0)), len(moved)
    mean = sum((d * x for d, x in zip(differences, wholes, strict=True)), F(0)) / T
    assert found.difference == pytest.approx(float(mean), rel=1e-12)
    assert found.se == pytest.approx(math.sqrt(F(n, n - 1) * sum(z * z for z in moved.values()) / T**2), rel=1e-10)


def test_comparison_if_chance_is_almost_certain() -> None:
    """Nearly all weight is on items where everyone votes 0, so E is almost 1 for every annotator."""
    rows, labels = near_votes(14, seed=6, missing=0.0)
    rows = [[0, 0, 0, 0], *rows[1:]]
    labels = [0, *[1 if label is None else label for label in labels[1:]]]
    weight = [2.0**26, *[1.0] * 13]
    w = named_weights("linear", 5)
    found = compare_with_annotators(votes_of(rows, labels, 5, weight), "rule", weights=agreement_weights("linear", 5))
    for a, row in enumerate(found.table):
        others = [[vote for b, vote in enumerate(votes) if b != a] for votes in rows]
        parts = [F(x) for x in weight]
        as_label = items_of(others, [votes[a] for votes in rows], range(5), w, parts)
        labeler = items_of(others, labels, range(5), w, parts)
        pull = [
            part * (labeler.influence(lambda of: of.kappa, k) - as_label.influence(lambda of: of.kappa, k))
            for k, part in enumerate(parts)
        ]
        variance = F(14, 13) * sum(z * z for z in pull) / sum(parts) ** 2
        assert float(labeler.E) > 1 - 1e-5
        assert row["difference"] == pytest.approx(float(labeler.kappa - as_label.kappa), rel=1e-9, abs=1e-12)
        assert row["se"] == pytest.approx(math.sqrt(variance), rel=1e-7)


def test_near_annotators_are_better_than_distant_ones_only_with_weights() -> None:
    """Annotator 0 is always one step off, annotator 1 always four or two; neither ever agrees with the others."""
    truth = [0, 1, 2, 3, 4] * 6
    rows = [[t + 1 if t < 4 else 3, (t + 4) % 5 if t in (0, 4) else (t + 2) % 5, t, t, t] for t in truth]
    item_votes = votes_of(rows, truth, 5)
    plain, found = (
        compare_with_annotators(item_votes, "rule", weights=w).table.column("kappa_annotator")
        for w in (None, agreement_weights("quadratic", 5))
    )
    assert abs(plain[0] - plain[1]) < 0.1
    assert found[0] - found[1] > 0.5
    assert found[2] > found[0]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = near_votes(60, seed=9, missing=0.1)
    item_votes, weights = votes_of(rows, labels, 5), agreement_weights("quadratic", 5)
    expected = annotator_parts(item_votes, "rule", weights=weights)
    mean = compare_with_annotators(item_votes, "rule", weights=weights).difference
    monkeypatch.setattr(annotator_votes, "_BLOCK", 1)
    assert annotator_parts(item_votes, "rule", weights=weights) == expected
    assert compare_with_annotators(item_votes, "rule", weights=weights).difference == mean
