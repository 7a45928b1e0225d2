"""Fleiss' kappa and comparisons of labelers with agreement weights, against loops, other packages and by hand."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dhkappa import Dataset, Kappa, compare, dh_kappa, fleiss_kappa, plan, tally
from dhkappa.stats.influence import influence
from dhkappa.stats.plan import observed, variance
from exact import float_terms
from strategies import Data, ragged
from weighted_oracle import Items, items_of, named_weights, random_weights

F = Fraction
KINDS = ("linear", "quadratic")


def drawn(n: int, seed: int, labelers: int = 2, far: float = 0.2) -> tuple[list[list[int]], dict[str, list[int]]]:
    """Five ordered categories: votes stray by a step; later labelers stray more often and anywhere."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)

    def stray(rate: float) -> list[int]:
        moved = np.clip(truth + rng.choice([-1, 1], n), 0, 4)
        anywhere = np.where(rng.random(n) < far, rng.integers(0, 5, n), moved)
        return [int(code) for code in np.where(rng.random(n) < rate, anywhere, truth)]

    votes = [list(row) for row in zip(*(stray(0.3) for _ in range(3)), strict=True)]
    return votes, {f"labeler_{k}": stray(0.2 + 0.3 * k) for k in range(labelers)}


# Fleiss' kappa


@settings(max_examples=50)
@given(ragged(max_items=10, max_votes=5, max_categories=4), st.integers(0, 2**32), st.integers(0, 9))
def test_fleiss_against_loops(data: Data, seed: int, item: int) -> None:
    data = data.coded()
    m = len(data.categories)
    w = random_weights(Random(seed), m)
    items = items_of(data.votes, [0] * len(data.votes), data.categories, w)
    assume(items.votes)
    kappa = fleiss_kappa(data.votes, categories=data.categories, weights=w)
    assert kappa.metric == "weighted-fleiss"
    assert (kappa.exact, kappa.estimate.fleiss) == (items.fleiss, items.fleiss)
    if items.fleiss is not None and len(items.votes) > 1:
        variance = float(items.variance(lambda of: of.fleiss))
        assert (math.isnan(kappa.se) and variance < 1e-20) or kappa.se == pytest.approx(math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("weight", [None, [1, 3, 2] * 10])
def test_fleiss_interval(weight: list[int] | None) -> None:
    votes, _ = drawn(30, seed=1)
    kappa = fleiss_kappa(votes, categories=range(5), weights="quadratic", sample_weight=weight)
    items = items_of(votes, [0] * 30, range(5), named_weights("quadratic", 5), weight or ())
    assert kappa.exact == items.fleiss
    assert kappa.se == pytest.approx(math.sqrt(items.variance(lambda of: of.fleiss)), rel=1e-11)
    interval = kappa.confidence_interval()
    assert interval.method == "wald"
    assert interval.low < kappa.value < interval.high
    assert repr(kappa).startswith("weighted Fleiss' kappa 0.")


def test_fleiss_with_identity_weights() -> None:
    votes, _ = drawn(40, seed=2)
    plain, same = fleiss_kappa(votes), fleiss_kappa(votes, categories=range(5), weights=np.eye(5))
    assert (same.exact, same.se) == (plain.exact, plain.se)
    assert same.confidence_interval() == plain.confidence_interval()
    assert [note.code for note in same.notes] == [note.code for note in plain.notes]


@pytest.mark.parametrize("kind", KINDS)
def test_fleiss_is_that_of_irrcac(kind: str) -> None:
    pd, raw = pytest.importorskip("pandas"), pytest.importorskip("irrCAC.raw")
    votes, _ = drawn(50, seed=3)
    other = raw.CAC(pd.DataFrame(votes), weights=kind, categories=list(range(5)), digits=12).fleiss()["est"]
    found = fleiss_kappa(votes, categories=range(5), weights=kind)
    assert found.value == pytest.approx(other["coefficient_value"], abs=1e-11)


def test_fleiss_with_quadratic_weights_is_interval_alpha() -> None:
    """Alpha draws pairs without replacement: 1 - alpha = (1 - kappa) (nN - 1) / nN."""
    krippendorff = pytest.importorskip("krippendorff")
    votes, _ = drawn(40, seed=4)
    alpha = krippendorff.alpha(np.array(votes, float).T, level_of_measurement="interval", value_domain=list(range(5)))
    found = fleiss_kappa(votes, categories=range(5), weights="quadratic").value
    assert 1 - alpha == pytest.approx((1 - found) * 119 / 120, rel=1e-12)


def test_fleiss_of_two_annotators_by_hand() -> None:
    """Votes 1 1, 1 2, 2 3, 3 3 agree by 1, 1/2, 1/2, 1; shares are 3/8, 2/8, 3/8 and wC = 4/8, 5/8, 4/8."""
    found = fleiss_kappa([[1, 1], [1, 2], [2, 3], [3, 3]], categories=[1, 2, 3], weights="linear")
    chance = F(3 * 4 + 2 * 5 + 3 * 4, 64)
    assert found.exact == (F(3, 4) - chance) / (1 - chance)
    assert found.to_dict()["metric"] == "weighted-fleiss"


def test_fleiss_is_undefined_if_all_weights_are_1() -> None:
    found = fleiss_kappa([[0, 1], [1, 0]], categories=[0, 1], weights=[[1, 1], [1, 1]])
    assert (found.exact, found.reason) == (None, "Every category that occurs has weight 1 with every other.")
    assert fleiss_kappa([[0, 0]], categories=[0, 1], weights="linear").reason == "Every vote is the same category."


# Comparison of labelers


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
    votes, labels = drawn(30, seed=5)
    found = compare(votes, labels, categories=range(5), weights=kind, sample_weight=weight)
    check(votes, labels, named_weights(kind, 5), found, weight)
    (row,) = found.differences
    assert row["method"] == "t"
    assert row["low"] < row["difference"] < row["high"]
    assert found.differences.title == "Differences in weighted kappa between labelers, 95% confidence intervals"
    assert found.table().title == "Weighted kappa by labeler, 95% confidence intervals"


def test_few_discordant_items_are_swapped() -> None:
    votes, labels = drawn(30, seed=6, labelers=1)
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
    votes, labels = drawn(200, seed=7, labelers=4)
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
    votes, labels = drawn(40, seed=8)
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
    votes, labels = drawn(40, seed=9)
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


# Plans


def test_plan_from_a_weighted_pilot() -> None:
    """With the votes of the pilot, the variance from pairs of votes is that of the influence values."""
    votes, labels = drawn(150, seed=10, labelers=1)
    more = [[*item, vote] for item, vote in zip(votes, drawn(150, seed=11)[1]["labeler_0"], strict=True)]
    pilot = dh_kappa(more, labels["labeler_0"], categories=range(5), weights="quadratic")
    known = float_terms(pilot)
    z = observed(known, 4)
    phi = influence(known)
    assert variance(z, 4) == pytest.approx(float((phi**2 * known.items).sum() / known.n), rel=1e-11)
    planned = plan(0.05, pilot)
    rows = {row["votes"]: row for row in planned.options}
    assert rows[4]["items"] == pytest.approx(planned.items, rel=0.01)
    assert rows[2]["sigma"] > rows[4]["sigma"] > rows[7]["sigma"]
    assert planned.kappa == pilot.value


def test_plan_counts_pairs_of_votes() -> None:
    """z_2, z_1 and z_0 are means over pairs of pairs of votes that share two, one and no vote."""
    votes, labels = [[0, 1, 1, 3], [2, 2, 4, 4], [0, 0, 1, 2]], [1, 2, 0]
    kappa = dh_kappa(votes, labels, categories=range(5), weights="linear")
    items = items_of(votes, labels, range(5), named_weights("linear", 5))
    sums, numbers = [F(0)] * 3, [0] * 3
    for item, label in zip(votes, labels, strict=True):

        def phi(pair: tuple[int, int], item: list[int] = item, label: int = label) -> Fraction:
            own = [item[k] for k in pair]
            more = replace(items, votes=[*items.votes, own], labels=[*items.labels, label], share=[*items.share, F(0)])
            return more.influence(lambda of: of.kappa, 3)

        pairs = {pair: phi(pair) for pair in combinations(range(4), 2)}
        for one, other in product(pairs, repeat=2):
            shared = len({*one} & {*other})
            sums[shared] += pairs[one] * pairs[other]
            numbers[shared] += 1
    expected = [float(total / number) for total, number in zip(sums, numbers, strict=True)]
    assert observed(float_terms(kappa), 4) == pytest.approx(expected, rel=1e-11)


def test_plan_with_identity_weights() -> None:
    votes, labels = drawn(80, seed=12, labelers=1)
    plain, same = (
        plan(0.05, dh_kappa(votes, labels["labeler_0"], categories=range(5), weights=w)) for w in (None, np.eye(5))
    )
    assert (same.items, same.items_assured, same.cheapest) == (plain.items, plain.items_assured, plain.cheapest)
    assert same.options.column("sigma") == pytest.approx(plain.options.column("sigma"), rel=1e-11)
