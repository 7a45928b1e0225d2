"""Comparisons of labelers with agreement weights, against loops and all swaps."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from weighted_cases import KINDS, labelers_of

from dhkappa import Dataset, Kappa, compare, dh_kappa, fleiss_kappa, tally
from strategies import Data, ragged
from weighted_oracle import Items, items_of, named_weights, random_weights

F = Fraction


def check(votes: Any, labels: dict[str, Any], w: Any, found: Any, weight: Any = ()) -> None:
    """Compare differences, standard errors and the p-values of enumerated swaps with those by loops."""
    keep = [i for i in range(len(votes)) if all(own[i] is not None for own in labels.values())]
    part = [weight[i] for i in keep] if weight else ()
    items = {
        name: items_of([votes[i] for i in keep], [own[i] for i in keep], range(len(w)), w, part)
        for name, own in labels.items()
    }
    for name, kappa in found.kappas.items():
        assert kappa.exact == items[name].kappa
    for row in found.differences:
        one, other = items[row["labeler"]], items[row["other"]]
        if one.kappa is None or other.kappa is None:
            assert row["reason"]
            continue
        assert row["difference"] == float(one.kappa - other.kappa)
        n = len(one.votes)
        if n < 2:
            continue
        z = [
            one.share[i] * (one.influence(lambda of: of.kappa, i) - other.influence(lambda of: of.kappa, i))
            for i in range(n)
        ]
        slack = 1e-11 / float((1 - one.E) * (1 - other.E)) ** 2
        variance = float(F(n, n - 1) * sum(part * part for part in z))
        assert row["se"] == pytest.approx(math.sqrt(variance), rel=1e-9, abs=slack)
        discordant = [i for i in range(n) if one.labels[i] != other.labels[i]]
        assert row["discordant"] == len(discordant)
        if row["method"] == "swap" and len(discordant) <= 6:
            assert row["pvalue"] == pytest.approx(float(swap_pvalue(one, other, discordant)), abs=1e-12)


def swap_pvalue(one: Items, other: Items, discordant: list[int]) -> Fraction:
    """The share of all swaps of labels with as large a difference."""
    assert one.kappa is not None
    observed, as_far = abs(one.kappa - other.kappa), 0
    for swapped in product([False, True], repeat=len(discordant)):
        own, theirs = list(one.labels), list(other.labels)
        for i, swap in zip(discordant, swapped, strict=True):
            if swap:
                own[i], theirs[i] = theirs[i], own[i]
        kappas = replace(one, labels=own).kappa, replace(other, labels=theirs).kappa
        as_far += None in kappas or abs(kappas[0] - kappas[1]) >= observed
    return F(as_far, 2 ** len(discordant))


@settings(max_examples=30)
@given(ragged(max_items=6, max_votes=4, max_categories=4), st.integers(0, 2**32))
def test_differences_against_loops(data: Data, seed: int) -> None:
    data = data.coded().labeled()
    random, m = Random(seed), len(data.categories)
    w = random_weights(random, m) if seed % 2 else named_weights("linear", m)
    other = [random.choice(range(m)) if random.random() < 0.5 else label for label in data.suggested]
    labels = {"a": list(data.suggested), "b": other}
    assume(any(sum(vote is not None for vote in item) > 1 for item in data.votes))
    check(data.votes, labels, w, compare(data.votes, labels, categories=data.categories, weights=w))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, [1, 2, 4, 1, 3] * 6])
def test_many_discordant_items(kind: str, weight: list[int] | None) -> None:
    votes, labels = labelers_of(30, seed=5)
    found = compare(votes, labels, categories=range(5), weights=kind, sample_weight=weight)
    check(votes, labels, named_weights(kind, 5), found, weight)
    (row,) = found.differences
    assert row["method"] == "t"
    assert row["low"] < row["difference"] < row["high"]
    assert found.differences.title == "Differences in weighted kappa between labelers, 95% confidence intervals"
    assert found.table().title == "Weighted kappa by labeler, 95% confidence intervals"


def test_few_discordant_items_are_swapped() -> None:
    votes, labels = labelers_of(30, seed=6, labelers=1)
    other = list(labels["labeler_0"])
    for i in (3, 8, 15, 21):
        other[i] = (other[i] + 2) % 5
    labels["other"] = other
    found = compare(votes, labels, categories=range(5), weights="quadratic")
    assert found.differences.column("method") == ["swap"]
    check(votes, labels, named_weights("quadratic", 5), found)


def test_swaps_without_a_kappa_count_as_far() -> None:
    """After 16 of the 64 swaps 1 - E is 0, up to rounding."""
    w = [[F(1), F(1), F(5, 6), F(1)], [F(1), F(1), F(1, 2), F(1)], [F(5, 6), F(1, 2), F(1), F(1)], [F(1)] * 4]
    votes = [[2, 2, 2, 2], [2, 2, 2], [2, 2], [2, 2, 2], [3, 3, 3, 3], [2, 2, 2, 2]]
    labels = {"a": [2, 2, 2, 2, 0, 2], "b": [1, 3, 3, 0, 3, 3]}
    found = compare(votes, labels, categories=range(4), weights=w)
    check(votes, labels, w, found)
    assert found.differences.column("pvalue") == [0.5]


def test_many_swaps_are_drawn() -> None:
    """Both labelers are always one step off, on either side, so that every item has the same influence."""
    votes, labels = [[1, 1], [3, 3]] * 8, {"a": [0, 4] * 8, "b": [2, 2] * 8}
    plain, found = (
        compare(votes, labels, categories=range(5), weights=w, rng=1).differences.column("pvalue")[0]
        for w in (np.eye(5), "quadratic")
    )
    assert plain == pytest.approx(compare(votes, labels, rng=1).differences.column("pvalue")[0], rel=1e-12)
    assert 0 < found <= 1


def test_several_labelers_with_identity_weights() -> None:
    votes, labels = labelers_of(200, seed=7, labelers=4)
    plain = compare(votes, labels, rng=1)
    same = compare(votes, labels, categories=range(5), weights=np.eye(5), rng=1)
    for name in ("labeler", "other", "difference", "discordant", "method", "reason"):
        assert same.differences.column(name) == plain.differences.column(name)
    for name in ("se", "low", "high", "pvalue", "pvalue_holm"):
        assert same.differences.column(name) == pytest.approx(plain.differences.column(name), rel=1e-11)
    assert {name: kappa.exact for name, kappa in same.kappas.items()} == {
        name: kappa.exact for name, kappa in plain.kappas.items()
    }


def test_strata_and_pool() -> None:
    votes, labels = labelers_of(40, seed=8)
    strata, pool = [*"ab"] * 20, {"a": 100, "b": 300}
    options: dict[str, Any] = {"categories": range(5), "weights": "linear", "strata": strata, "pool": pool}
    found = compare(votes, labels, **options)
    for name, kappa in found.kappas.items():
        assert kappa.exact == dh_kappa(votes, labels[name], **options).exact
    assert found.differences.column("se")[0] > 0


def test_ranking_follows_the_weights() -> None:
    """One labeler is often one step off, the other seldom four: the order of their kappas depends on the weights."""
    truth = [0, 1, 2, 3, 4] * 12
    votes = [[code] * 3 for code in truth]
    near = [min(code + 1, 4) if i % 3 == 0 else code for i, code in enumerate(truth)]
    far = [4 - code if i % 5 in (0, 4) and i % 2 == 0 else code for i, code in enumerate(truth)]
    plain = compare(votes, {"near": near, "far": far})
    found = compare(votes, {"near": near, "far": far}, categories=range(5), weights="quadratic")
    assert (plain.best, found.best) == ("far", "near")
    assert found.differences.column("low")[0] > 0


def test_every_input_gives_the_same() -> None:
    votes, labels = labelers_of(40, seed=9)
    options: dict[str, Any] = {"categories": range(5)}
    tables = [
        compare(data, weights="linear").differences.to_dicts()
        for data in (Dataset(votes, labels, **options), tally(votes, labels, **options))
    ]
    tables.append(compare(votes, labels, **options, weights="linear").differences.to_dicts())
    assert tables[0] == tables[1] == tables[2]
    kappas: list[Kappa] = [fleiss_kappa(tally(votes, labels, **options), weights="linear")]
    kappas.append(fleiss_kappa(votes, **options, weights="linear"))
    assert kappas[0].exact == kappas[1].exact
