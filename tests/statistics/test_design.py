"""Weights, strata and pools against item-level sums in exact fractions, and against simulation."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import exact
from dhkappa import Kappa, dh_kappa, fleiss_kappa
from dhkappa.stats.influence import influence, unseen_items, variance
from exact import EXAMPLE, alike, exact_terms, float_terms
from item_oracle import Item, Oracle
from strategies import Data, from_counts, ragged

F = Fraction
FLOAT = 1e-12  # a float SE comes from sums of a few dozen terms, each right to 10^-15 of the largest


def exact_variance(kappa: Kappa) -> Fraction:
    known = exact_terms(kappa)
    return exact.variance(known, exact.influence(known))[0]


def shown(kappa: Kappa) -> list[Any]:
    """Every number that a person can see, for comparing bits."""
    numbers = [
        kappa.value,
        kappa.se,
        *kappa.confidence_interval(),
        *kappa.confidence_interval(0.9, "wald"),
    ]
    numbers += [kappa.baselines.random, kappa.baselines.majority, kappa.fleiss, kappa.above_random, kappa.n_effective]
    tested = kappa.permutation_test()
    tables = [tuple(row.values()) for row in [*kappa.by_category(), *kappa.confusion()]]
    return [*map(repr, numbers), repr(tested.z), repr(tested.pvalue), repr(tables)]


def eligible(data: Data, sample_weight: Sequence[Any], strata: Sequence[Hashable]) -> list[Item]:
    items = []
    for votes, label, weight, stratum in zip(data.votes, data.suggested, sample_weight, strata, strict=True):
        cast = tuple(vote for vote in votes if vote is not None)
        if len(cast) > 1 and label is not None and weight:
            items.append(Item(cast, label, F(weight), stratum))
    return items


@st.composite
def designed(draw: st.DrawFn) -> tuple[Data, list[int], list[str]]:
    """Ragged data with small whole weights, some 0, and strata of two eligible items or more."""
    data = draw(ragged(max_items=16, max_votes=5, max_categories=4))
    random = Random(draw(st.integers(0, 2**32)))
    sample_weight = [random.choice([0, 1, 1, 2, 3, 7]) for _ in data.votes]
    strata = [random.choice("xyz") for _ in data.votes]
    items = eligible(data, sample_weight, strata)
    assume(len(items) > 1)
    for name in "xyz":
        if sum(item.stratum == name for item in items) < 2:
            strata = ["w" if other == name else other for other in strata]
    if sum(item.stratum == "w" for item in eligible(data, sample_weight, strata)) < 2:
        strata = ["w"] * len(strata)
    assume(Oracle(eligible(data, sample_weight, strata), data.categories).E != 1)
    return data, sample_weight, strata


def call(data: Data, **given: Any) -> Kappa:
    return dh_kappa(data.votes, data.suggested, categories=data.categories, **given)


def close(found: float, exact: Fraction) -> bool:
    return math.isclose(found, math.sqrt(exact), rel_tol=FLOAT, abs_tol=1e-11)  # 0 up to rounding


def check_error(kappa: Kappa, expected: Fraction) -> None:
    """Check the variance, and that there is no standard error only where items do not differ at all."""
    assert exact_variance(kappa) == expected
    if not math.isnan(kappa.se):
        assert close(kappa.se, expected)
    else:
        known = float_terms(kappa)
        assert variance(known, influence(known)).infinite_pool == 0


# The estimates


@given(designed())
@settings(max_examples=40)
def test_weighted_estimates_equal_item_sums(drawn: tuple[Data, list[int], list[str]]) -> None:
    data, sample_weight, strata = drawn
    oracle, kappa = (
        Oracle(eligible(data, sample_weight, strata), data.categories),
        call(data, sample_weight=sample_weight),
    )
    parts = kappa.parts
    assert parts is not None
    assert (parts.C, parts.L) == (oracle.C, oracle.L)
    assert (parts.D, parts.E, kappa.exact) == (oracle.D, oracle.E, oracle.kappa)
    assert kappa.baselines.random == float(oracle.random)
    assert [kappa.baselines.majority, kappa.fleiss] == pytest.approx(
        [math.nan if mark is None else float(mark) for mark in (oracle.majority, oracle.fleiss)],
        rel=0,
        abs=0,
        nan_ok=True,
    )
    assert exact.above_random(exact_terms(kappa))[0] == oracle.above_random
    assert kappa.above_random == pytest.approx(float(oracle.above_random), rel=FLOAT, abs=1e-13)
    assert kappa.excluded.no_weight == len(eligible(data, [1] * len(sample_weight), strata)) - len(oracle.items)
    W2 = sum(item.weight**2 for item in oracle.items)
    assert kappa.n_effective == pytest.approx(float(oracle.W**2 / W2), rel=FLOAT)


@given(designed())
@settings(max_examples=40)
def test_weighted_fleiss_equals_item_sums(drawn: tuple[Data, list[int], list[str]]) -> None:
    data, sample_weight, _ = drawn
    labeled = Data(data.categories, data.votes, [data.categories[0]] * len(data.votes))
    items = eligible(labeled, sample_weight, ["w"] * len(sample_weight))
    oracle, kappa = (
        Oracle(items, data.categories),
        fleiss_kappa(data.votes, categories=data.categories, sample_weight=sample_weight),
    )
    assert kappa.exact == oracle.fleiss
    if oracle.fleiss is not None:
        check_error(kappa, oracle.variance(oracle.phi_fleiss))


def test_worked_example_with_weights() -> None:
    kappa = call(EXAMPLE, sample_weight=[2, 2, 1, 1, 1, 1])
    assert kappa.parts is not None
    assert list(kappa.parts.C.values()) == [F(11, 24), F(3, 8), F(1, 6)]
    assert list(kappa.parts.L.values()) == [F(1, 2), F(1, 4), F(1, 4)]
    assert (kappa.parts.D, kappa.parts.E, kappa.exact) == (F(11, 24), F(-97, 1152), F(625, 1249))
    assert exact_variance(kappa) == F(656931454848, 12168015600005)
    assert kappa.se == pytest.approx(math.sqrt(F(656931454848, 12168015600005)), rel=FLOAT)


# The standard error


@given(designed(), st.sampled_from(["sample_weight", "strata", "both"]))
@settings(max_examples=40)
def test_variance_without_a_pool(drawn: tuple[Data, list[int], list[str]], what: str) -> None:
    data, sample_weight, strata = drawn
    given_weights = sample_weight if what != "strata" else [1] * len(sample_weight)
    given_strata = strata if what != "sample_weight" else ["w"] * len(strata)
    items = eligible(data, given_weights, given_strata)
    assume(all(sum(item.stratum == h for item in items) > 1 for h in set(given_strata)))
    oracle = Oracle(items, data.categories)
    assume(oracle.E != 1)
    chosen: dict[str, Any] = {"sample_weight": sample_weight} if what != "strata" else {}
    chosen |= {"strata": strata} if what != "sample_weight" else {}
    kappa = call(data, **chosen)
    assert kappa.exact == oracle.kappa
    check_error(kappa, oracle.variance(oracle.phi))
    known = exact_terms(kappa)
    value, phi = exact.above_random(known)
    assert (value, exact.variance(known, phi)[0]) == (oracle.above_random, oracle.variance(oracle.phi_above_random))


@given(designed(), st.integers(0, 30), st.booleans())
@settings(max_examples=25)
def test_variance_with_a_pool(drawn: tuple[Data, list[int], list[str]], more: int, stratified: bool) -> None:
    data, _, strata = drawn
    strata = strata if stratified else ["w"] * len(strata)
    items = eligible(data, [1] * len(strata), strata)
    numbers = {h: sum(item.stratum == h for item in items) for h in sorted(set(strata))}
    assume(all(number > 1 for number in numbers.values()))
    sizes: dict[Hashable, int] = {h: number + more * (place + 1) for place, (h, number) in enumerate(numbers.items())}
    weighed = [
        Item(item.votes, item.label, F(sizes[item.stratum], numbers[str(item.stratum)]), item.stratum) for item in items
    ]
    oracle = Oracle(weighed, data.categories, sizes)
    assume(oracle.E != 1)
    kappa = call(data, strata=strata, pool=sizes) if stratified else call(data, pool=sizes["w"])
    assert kappa.exact == oracle.kappa
    check_error(kappa, oracle.variance(oracle.phi))


@given(designed())
@settings(max_examples=40)
def test_categories_with_weights_and_strata(drawn: tuple[Data, list[int], list[str]]) -> None:
    data, sample_weight, strata = drawn
    oracle = Oracle(eligible(data, sample_weight, strata), data.categories)
    kappa = call(data, sample_weight=sample_weight, strata=strata)
    whole = F(0)
    for j, row in zip(data.categories, kappa.by_category(), strict=True):
        assert (row["reason"] is None) or math.isnan(row["se"])
        if oracle.L[j] > 0 and oracle.C[j] != 1:
            expected = oracle.variance(oracle.phi_category(j))
            assert row["kappa"] == pytest.approx(float(oracle.kappa_j(j)), rel=FLOAT, abs=FLOAT)
            assert math.isnan(row["se"]) or close(row["se"], expected)
            weight = oracle.L[j] * (1 - oracle.E_j(j)) / (1 - oracle.E)
            assert row["weight"] == pytest.approx(float(weight), rel=FLOAT, abs=FLOAT)
            whole += weight * oracle.kappa_j(j)
        else:
            assert math.isnan(row["kappa"])
    assert whole == oracle.kappa


def full_panel(seed: int) -> tuple[Data, list[str]]:
    random = Random(seed)
    labels = [random.choice("abc") for _ in range(14)]
    votes = [
        [label if random.random() < 0.6 else random.choice("abc") for _ in range(3 + i % 3)]
        for i, label in enumerate(labels)
    ]
    return Data(("a", "b", "c"), votes, labels), ["x", "y"] * 7


@pytest.mark.parametrize("seed", range(4))
def test_a_stratified_pool_in_every_statistic(seed: int) -> None:
    data, strata = full_panel(seed)
    sizes: dict[Hashable, int] = {"x": 9, "y": 30}
    items = [
        Item(tuple(v), label, F(sizes[h], 7), h) for v, label, h in zip(data.votes, data.suggested, strata, strict=True)
    ]
    oracle, kappa = Oracle(items, data.categories, sizes), call(data, strata=strata, pool=sizes)
    check_error(kappa, oracle.variance(oracle.phi))
    for j, row in zip(data.categories, kappa.by_category(), strict=True):
        assert close(row["se"], oracle.variance(oracle.phi_category(j)))
    tested = kappa.permutation_test()
    expected = oracle.variance(oracle.phi_above_random)
    assert tested.z == pytest.approx(float(oracle.above_random) / math.sqrt(expected), rel=FLOAT)
    assert tested.difference == pytest.approx(float(oracle.kappa - oracle.random), rel=FLOAT)
    alone = Oracle([Item(i.votes, i.label, F(1), None) for i in items], data.categories, {None: 20})
    check_error(call(data, pool=20), alone.variance(alone.phi))


def test_the_test_of_perfect_labels_knows_how_far_they_are_from_random() -> None:
    kappa = call(from_counts("30/1 30/1 03/2 03/2"), sample_weight=[1, 2, 1, 1])
    assert kappa.exact == 1
    assert kappa.permutation_test().difference == pytest.approx(1 - kappa.baselines.random, rel=FLOAT)


# The interval's added item


@given(designed())
@settings(max_examples=40)
def test_shares_of_an_unseen_item(drawn: tuple[Data, list[int], list[str]]) -> None:
    data, sample_weight, strata = drawn
    items = eligible(data, sample_weight, strata)
    kappa = call(data, sample_weight=sample_weight, strata=strata)
    assume(kappa.sample.weighted or len(kappa.sample.strata) > 1)
    W = sum(item.weight for item in items)

    def share(inside: Sequence[Item]) -> float:
        p = [float(item.weight / W) for item in inside]
        return sum(x**3 for x in p) / sum(x**2 for x in p)

    top = max(share([item for item in items if item.stratum == h]) for h in {item.stratum for item in items})
    known = float_terms(kappa)
    phi = influence(known)
    unseen = unseen_items(known, phi)
    assert unseen.most == pytest.approx(top, rel=FLOAT)
    names = sorted({item.stratum for item in items}, key=str)
    expected = []
    for h, j in ((h, j) for h in names for j in data.categories):
        cell = [item for item in items if (item.stratum, item.label) == (h, j)]
        if cell:
            expected.append(math.sqrt(top * share(cell)))
    assert sorted(unseen.share) == pytest.approx(sorted(expected), rel=FLOAT)
    plain = float_terms(call(data))
    assert unseen_items(plain, influence(plain)).most == 1 / plain.n


def test_unseen_part_of_a_pool() -> None:
    data, strata = full_panel(1)
    known = float_terms(call(data, pool=28))
    assert unseen_items(known, influence(known)).most == pytest.approx(0.5 / math.log(2) / 14, rel=FLOAT)
    part = float_terms(call(data, strata=strata, pool={"x": 7, "y": 70}))  # x is known, y weighs ten times as much
    y = {data.suggested[i] for i, h in enumerate(strata) if h == "y"}
    top = 0.1 / -math.log(0.9) * (10 / 77)
    unseen = unseen_items(part, influence(part))
    assert unseen.most == pytest.approx(top, rel=FLOAT)
    assert unseen.share[unseen.share > 0] == pytest.approx([top] * len(y), rel=FLOAT)


def test_the_interval_by_hand() -> None:
    from scipy.stats import beta

    data, strata = full_panel(2)
    kappa = call(data, strata=strata, pool={"x": 70, "y": 700})
    known = float_terms(kappa)
    phi = influence(known)
    unseen = unseen_items(known, phi)
    sample_weight = {"x": F(70, 7), "y": F(700, 7)}
    W = sum(sample_weight[h] for h in strata)
    g = {"x": 0.1 / -math.log(0.9), "y": 0.01 / -math.log(0.99)}
    top = g["y"] * float(sample_weight["y"] / W)
    assert unseen.most == pytest.approx(top, rel=FLOAT)
    kinds = []
    for place, h in enumerate("xy"):
        inside = known.sample.stratum == place
        middle = (phi * known.weight)[inside].sum() / known.weight[inside].sum()
        for j in {data.suggested[i] for i, at in enumerate(strata) if at == h}:
            code = data.categories.index(j)
            share = math.sqrt(g[h] * float(sample_weight[h] / W) * top)
            kinds += [(float(alike(exact_terms(kappa), code, v)) - middle, share) for v in range(3)]
    n, w, R, E = 14, 0.75, 27 / 13, float(known.E)
    limits = []
    for choose, probability in ((min, 0.975), (max, 0.025)):
        move, share = choose(kinds, key=lambda kind: kind[0] * kind[1])
        q = 1 / share
        u = (1 - kappa.value - w * move / (q + w)) / R
        v = n * (n - 1) * kappa.se**2 / ((n + w) * (n + w + 1)) + w * move**2 * q / ((q + w) ** 2 * (q + w + 1))
        nu = u * (1 - u) * R**2 / v - 1
        limits.append(1 - R * beta.ppf(probability, u * nu, (1 - u) * nu))
    cap = 1 - 2 * (1 - 0.025**top) / (1 - E)
    assert tuple(kappa.confidence_interval()) == pytest.approx(
        (max(-14 / 13, min(limits[0], cap)), limits[1]), rel=1e-9
    )


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        ({"sample_weight": [2, 2, 1, 1, 1, 1]}, (-0.265684754, 0.868257985)),
        ({"sample_weight": [2, 2, 2, 1, 1, 1], "strata": list("xxxyyy")}, (-0.289858495, 0.939976766)),
    ],
)
def test_intervals_against_another_program(design: dict[str, Any], expected: tuple[float, float]) -> None:
    data = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
    found = tuple(dh_kappa(data.votes, data.suggested, **design).confidence_interval())
    assert found == pytest.approx(expected, abs=1e-9)  # the digits of the other program


# What must not matter


@given(designed())
@settings(max_examples=30)
def test_repeated_items_are_whole_weights(drawn: tuple[Data, list[int], list[str]]) -> None:
    data, sample_weight, _ = drawn
    repeated = data.take([i for i, weight in enumerate(sample_weight) for _ in range(weight)])
    weighted, plain = call(data, sample_weight=sample_weight), call(repeated)
    assert weighted.exact == plain.exact
    assert [repr(x) for x in (weighted.baselines.random, weighted.baselines.majority, weighted.fleiss)] == [
        repr(x) for x in (plain.baselines.random, plain.baselines.majority, plain.fleiss)
    ]


@given(designed(), st.integers(-40, 40))
@settings(max_examples=15)
def test_only_ratios_of_weights_matter(drawn: tuple[Data, list[int], list[str]], power: int) -> None:
    data, sample_weight, strata = drawn
    kappa = shown(call(data, sample_weight=sample_weight, strata=strata))
    assert kappa == shown(call(data, sample_weight=[weight * 2.0**power for weight in sample_weight], strata=strata))
    assert kappa == shown(call(data, sample_weight=[3 * weight for weight in sample_weight], strata=strata))


@given(designed(), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_order_does_not_matter(drawn: tuple[Data, list[int], list[str]], random: Random) -> None:
    data, sample_weight, strata = drawn
    order = list(range(len(sample_weight)))
    random.shuffle(order)
    moved = call(data.take(order), sample_weight=[sample_weight[i] for i in order], strata=[strata[i] for i in order])
    kappa = call(data, sample_weight=sample_weight, strata=strata)
    assert shown(moved) == shown(kappa)
    assert moved.bootstrap(20, rng=1).values.tolist() == kappa.bootstrap(20, rng=1).values.tolist()


@given(ragged(max_items=20))
@settings(max_examples=15)
def test_equal_weights_and_one_stratum_are_none(data: Data) -> None:
    plain = call(data)
    assume(plain.exact is not None and plain.n_items > 1)
    n = len(data.votes)
    assert shown(plain) == shown(call(data, sample_weight=[0.1] * n)) == shown(call(data, strata=["all"] * n))


def test_float_weights_are_binary_fractions() -> None:
    sample_weight = [0.1, 0.2, 0.3, 0.1, 0.2, 0.7]
    items = [
        Item(i.votes, i.label, F(w), None)
        for i, w in zip(eligible(EXAMPLE, [1] * 6, "w" * 6), sample_weight, strict=True)
    ]
    kappa = call(EXAMPLE, sample_weight=sample_weight)
    assert kappa.exact == Oracle(items, EXAMPLE.categories).kappa
    assert call(EXAMPLE, sample_weight=np.array(sample_weight, np.float32)).exact != kappa.exact
    rounded = [Item(i.votes, i.label, F(float(np.float32(i.weight))), None) for i in items]
    assert (
        call(EXAMPLE, sample_weight=np.array(sample_weight, np.float32)).exact
        == Oracle(rounded, EXAMPLE.categories).kappa
    )
    assert call(EXAMPLE, sample_weight=[F(1, 3)] * 6).exact == call(EXAMPLE).exact


def test_strata_by_label_with_a_pool_know_the_labels() -> None:
    data, _ = full_panel(3)
    sizes = {"a": 1000, "b": 70, "c": 33}
    kappa = call(data, strata=data.suggested, pool=sizes)
    assert kappa.parts is not None
    assert list(kappa.parts.L.values()) == [F(1000, 1103), F(70, 1103), F(33, 1103)]


# The end of a pool


@pytest.mark.parametrize("given", [{"pool": 6}, {"strata": [1, 1, 2, 2, 3, 3], "pool": {1: 2, 2: 2, 3: 2}}])
def test_a_census_has_no_error(given: dict[str, Any]) -> None:
    kappa = call(EXAMPLE, **given)
    assert (kappa.exact, kappa.se) == (F(247, 544), 0)
    for method in ("beta", "wald"):  # through 1 - kappa and back, so right to a few units in the last place
        assert tuple(kappa.confidence_interval(method=method)) == pytest.approx((kappa.value, kappa.value), abs=1e-15)
    for row in kappa.by_category():
        assert (row["se"], row["reason"]) == (0, None)
        assert (row["low"], row["high"]) == (row["kappa"], row["kappa"])


def test_a_census_needs_no_spread() -> None:
    same = from_counts("300/2 300/2 300/2 300/2 300/2")
    assert math.isnan(call(same).se)
    kappa = call(same, pool=5)
    assert (kappa.value, kappa.se, *kappa.confidence_interval()) == (0, 0, 0, 0)
    assert math.isnan(call(same, pool=6).se)


def test_a_stratum_known_whole_adds_nothing() -> None:
    strata = ["x", "y", "y", "y", "y", "y"]
    kappa = call(EXAMPLE, strata=strata, pool={"x": 1, "y": 50})
    items = eligible(EXAMPLE, [1, *[10] * 5], strata)
    oracle = Oracle(items, EXAMPLE.categories, {"x": 1, "y": 50})
    assert kappa.exact == oracle.kappa
    check_error(kappa, oracle.variance(oracle.phi))


def test_a_flawless_category_keeps_its_interval_with_weights() -> None:
    data = from_counts("300/1 300/1 300/1 030/2 030/2 003/2 012/3")
    for kappa in (call(data), call(data, sample_weight=[1, 2, 1, 1, 1, 1, 1])):
        perfect, *_ = kappa.by_category()
        assert (perfect["kappa"], perfect["se"], perfect["high"], perfect["reason"]) == (1, 0, 1, None)
        assert -3 < perfect["low"] < 0.5  # of three items


# Far apart


@pytest.mark.parametrize("heavy", [1e6, 1e12, 1e15])
def test_one_heavy_item_loses_no_digits(heavy: float) -> None:
    sample_weight = [heavy, 1, 1, 1, 1, 1]
    oracle = Oracle(eligible(EXAMPLE, sample_weight, "w" * 6), EXAMPLE.categories)
    kappa = call(EXAMPLE, sample_weight=sample_weight)
    assert kappa.exact == oracle.kappa
    assert kappa.se == pytest.approx(math.sqrt(oracle.variance(oracle.phi)), rel=1e-9)  # 1 - E itself is kept to 10^-16
    assert kappa.above_random == pytest.approx(float(oracle.above_random), rel=1e-9)
    expected = float(oracle.above_random) / math.sqrt(oracle.variance(oracle.phi_above_random))
    assert kappa.permutation_test().z == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "sample_weight",
    [
        [1e100, 1, 1, 1, 1, 1],
        [1, 1, 1, 1e100, 1, 1],
        [1e300, 1e-300, 1e-300, 1e-300, 1e-300, 1e-300],
        [1e-300, 1e300, 1, 1, 1e-300, 1e300],
        [5e-324, 1.7e308, 5e-324, 5e-324, 5e-324, 5e-324],
    ],
)
def test_extreme_weights_give_exact_kappa_and_no_warning(sample_weight: list[float]) -> None:
    oracle, kappa = (
        Oracle(eligible(EXAMPLE, sample_weight, "w" * 6), EXAMPLE.categories),
        call(EXAMPLE, sample_weight=sample_weight),
    )
    assert kappa.exact == oracle.kappa
    assert 1 <= kappa.n_effective < 3
    interval = kappa.confidence_interval()
    assert interval.reason if math.isnan(kappa.se) else interval.low <= kappa.value <= interval.high
    assert len(shown(kappa)) > 10
    assert (kappa.bootstrap(200, rng=1).values <= 1).all()
    assert fleiss_kappa(EXAMPLE.votes, sample_weight=sample_weight).exact == oracle.fleiss
    assert not fleiss_kappa(EXAMPLE.votes, sample_weight=sample_weight).se < 0


def test_an_item_that_outweighs_all_shows_no_error() -> None:
    kappa = call(EXAMPLE, sample_weight=[1e100, 1, 1, 1, 1, 1])
    assert math.isnan(kappa.se)
    assert kappa.confidence_interval().reason is not None
    assert kappa.permutation_test().reason is not None
    assert "no-standard-error" in {note.code for note in kappa.notes}
