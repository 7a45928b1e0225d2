"""Influence values and standard errors against exact derivatives, worked examples and irrCAC."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given

import exact
import oracle
from dhkappa import Kappa, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.stats.influence import (
    Terms,
    basis,
    basis_of,
    chance_terms,
    complement,
    extremes,
    influence,
    pattern_weights,
    sum_of_squares,
    terms,
    unseen_items,
    variance,
)
from dhkappa.stats.intervals import LEAST
from exact import EXAMPLE, STRATA, dense, exact_terms, example, float_terms
from strategies import Data, from_counts, ragged

F = Fraction


def phi_by_pattern(kappa: Kappa) -> dict[tuple[Any, ...], F]:
    """Influence by (suggested label, votes by category), from the package, on exact terms."""
    known, names = exact_terms(kappa), kappa.categories
    phi, table = influence(known), known.patterns
    found = {}
    for k, label in enumerate(table.suggested.tolist()):
        row = slice(table.start[k], table.start[k + 1])
        votes = {names[code]: number for code, number in zip(table.code[row], table.votes[row].tolist(), strict=True)}
        key = (names[label] if label >= 0 else None, *(votes.get(name, 0) for name in names))
        found[key] = phi[k]
    return found


def weighted_kappa(items: oracle.Votes, labels: Sequence[Hashable] | None, weight: Sequence[F]) -> F:
    """Kappa with weighted means over items in place of means; Fleiss' kappa without labels."""
    whole = sum(weight)
    categories = {vote for item in items for vote in item} | set(labels or ())

    def mean(values: Sequence[F]) -> F:
        return sum((w * value for w, value in zip(weight, values, strict=True)), F(0)) / whole

    C = {j: mean([oracle.vote_share(item, j) for item in items]) for j in categories}
    g = {j: [oracle.pair_share(item, j) for item in items] for j in categories}
    if labels is None:
        D, E = sum((mean(g[j]) for j in categories), F(0)), sum((C[j] ** 2 for j in categories), F(0))
    else:
        sign = {j: [F(1) if label == j else F(-1) for label in labels] for j in categories}
        D = sum((mean([s * x for s, x in zip(sign[j], g[j], strict=True)]) for j in categories), F(0))
        E = sum((C[j] ** 2 * mean(sign[j]) for j in categories), F(0))
    return (D - E) / (1 - E)


def derivative(items: oracle.Votes, labels: Sequence[Hashable] | None, index: int) -> F:
    """Derivative of kappa as an item's share of the weight grows from 1/n: two exact slopes, extrapolated."""
    n = len(items)
    steps = [F(1, 10**k) for k in (6, 7)]
    base = weighted_kappa(items, labels, [F(1)] * n)
    slopes = []
    for step in steps:
        weight = [F(1, n) * (1 - step) + (step if i == index else 0) for i in range(n)]
        slopes.append((weighted_kappa(items, labels, weight) - base) / step)
    return slopes[1] + (slopes[1] - slopes[0]) / 9  # Richardson: the error falls from step to step^2


@given(ragged(max_items=6, max_votes=4))
def test_influence_against_derivative(data: Data) -> None:
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    kappa = dh_kappa(items, labels)
    assume(kappa.exact is not None)
    phi = phi_by_pattern(kappa)
    for index, (item, label) in enumerate(zip(items, labels, strict=True)):
        key = (label, *(item.count(name) for name in kappa.categories))
        # Steps of 10^-7 with one extrapolation leave an error of about 10^-13 times third derivatives.
        assert float(phi[key] - derivative(items, labels, index)) == pytest.approx(0, abs=1e-9)


@given(ragged(max_items=5, max_votes=4))
def test_fleiss_influence_against_derivative(data: Data) -> None:
    items, _, _ = oracle.eligible(data.votes, [True] * len(data.votes))
    kappa = fleiss_kappa(items)
    assume(kappa.exact is not None)
    phi = phi_by_pattern(kappa)
    for index, item in enumerate(items):
        key = (None, *(item.count(name) for name in kappa.categories))
        assert float(phi[key] - derivative(items, None, index)) == pytest.approx(0, abs=1e-9)


@given(ragged())
def test_influence_sums_to_zero_exactly(data: Data) -> None:
    for kappa in (dh_kappa(data.written_votes, data.written_suggested), fleiss_kappa(data.written_votes)):
        if kappa.exact is not None:
            known = exact_terms(kappa)
            phi = influence(known)
            assert phi.tolist() == exact.influence(known).tolist()
            assert known.mean(phi) == 0
            assert known.mean(known.d) == known.D
            # Some dozen roundings of numbers of the size of 1 / (1 - E).
            floats = influence(float_terms(kappa))
            np.testing.assert_allclose(floats, phi.astype(float), rtol=1e-12, atol=1e-13 / float(1 - known.E))


EXAMPLES = {
    "300/1 210/1 030/2 111/2 003/3 030/3": (
        [F(297, 544), F(-2781, 73984), F(9207, 18496), F(-31941, 73984), F(21087, 36992), F(-1323, 1156)],
        F(432125685, 5473632256),
        (F(-50355, 36992), F(21087, 36992)),
    ),
    "200/1 210/1 031/2 002/3 120/1": (
        [F(353500, 1164241), F(-807500, 3492723), F(126500, 1164241), F(681000, 1164241), F(-2675500, 3492723)],
        F(662644300000, 12199113954729),
        (F(-1767000, 1164241), F(681000, 1164241)),
    ),
    "20/1 20/1 11/1 02/2 02/1": (
        [F(6, 25), F(6, 25), F(-2, 5), F(24, 25), F(-26, 25)],
        F(356, 3125),
        (F(-44, 25), F(24, 25)),
    ),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_influence_and_error_against_worked_example(text: str) -> None:
    data = from_counts(text)
    values, squared, ends = EXAMPLES[text]
    kappa = dh_kappa(data.votes, data.suggested)
    phi = phi_by_pattern(kappa)
    keys = [
        (label, *(item.count(name) for name in kappa.categories))
        for item, label in zip(data.votes, data.suggested, strict=True)
    ]
    assert [phi[key] for key in keys] == values
    known = exact_terms(kappa)
    assert exact.variance(known, influence(known)) == (squared, squared)
    far = exact.extremes(known).values()
    assert (min(low for low, _ in far), max(high for _, high in far)) == ends
    found = extremes(float_terms(kappa))
    # A few roundings, each of 1.1e-16, between floats and exact values.
    assert (found.low.min(), found.high.max()) == pytest.approx([float(end) for end in ends], rel=1e-14)
    assert kappa.se == pytest.approx(math.sqrt(squared), rel=1e-14)


@given(ragged())
def test_extremes_against_every_pair(data: Data) -> None:
    kappa = dh_kappa(data.written_votes, data.written_suggested)
    assume(kappa.exact is not None)
    known = exact_terms(kappa)
    expected, far = exact.extremes(known), extremes(float_terms(kappa))
    assert far.label.tolist() == list(expected)
    slack = 1e-13 / float(1 - known.E)
    assert far.low.tolist() == pytest.approx([float(low) for low, _ in expected.values()], rel=1e-12, abs=slack)
    assert far.high.tolist() == pytest.approx([float(high) for _, high in expected.values()], rel=1e-12, abs=slack)


def test_error_is_the_same_to_the_bit_in_any_order_and_partition() -> None:
    drawn = simulate(500, categories=range(6), annotators=4, missing=0.2, rng=1)
    votes, labels = drawn.votes, drawn.suggested["labeler"]
    whole = dh_kappa(votes, labels)
    turned = dh_kappa(votes[::-1, ::-1], labels[::-1])
    parts = dh_kappa(sum((tally(votes[i::7], labels[i::7]) for i in range(7)), tally([], [])))
    assert whole.se == turned.se == parts.se
    assert whole.confidence_interval() == turned.confidence_interval() == parts.confidence_interval()


@pytest.mark.parametrize("seed", range(5))
def test_fleiss_error_against_irrcac(seed: int) -> None:
    """With the same number of votes on every item irrCAC linearises the same ratio."""
    irrcac = pytest.importorskip("irrCAC.raw", reason="irrCAC is not installed")
    import pandas as pd

    drawn = simulate(60, categories=[1, 2, 3, 4], annotators=4, accuracy=0.7, rng=seed)
    theirs = irrcac.CAC(pd.DataFrame(drawn.votes.astype(int)), digits=15).fleiss()["est"]
    ours = fleiss_kappa(drawn.votes)
    # They round to 15 digits.
    assert ours.value == pytest.approx(theirs["coefficient_value"], abs=1e-12)
    assert ours.se == pytest.approx(theirs["se"], abs=1e-12)
    assert tuple(ours.confidence_interval(method="wald")) == pytest.approx(theirs["confidence_interval"], abs=1e-12)


def test_standard_error_against_the_spread_of_samples() -> None:
    """1,000 samples of 150 items: the sd of kappa is known to about 2.2%, the mean SE better."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(1000):
        drawn = simulate(150, categories=range(4), annotators=3, accuracy=0.8, labelers={"x": 0.7}, rng=rng)
        found.append(dh_kappa(drawn.votes, drawn.suggested["x"]))
    spread = np.std([kappa.value for kappa in found], ddof=1)
    assert np.mean([kappa.se for kappa in found]) == pytest.approx(spread, rel=0.1)


def test_error_of_billions_costs_no_more() -> None:
    total = tally([["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "c"]], ["a", "b", "b", "c"])
    once = dh_kappa(total)
    for _ in range(40):
        total = total + total
    many = dh_kappa(total)
    # n (n - 1) becomes n^2 and the rest scales: SE falls by sqrt(2^40 4/3).
    assert many.se == pytest.approx(once.se * math.sqrt(3 / 4 / 2**40), rel=1e-9)


class TestTerms:
    """Items of the example, by hand: (label, votes by category) -> c, g, t and d."""

    ITEMS: ClassVar[dict[tuple[int, ...], tuple[list[F], list[F], F, F]]] = {
        (1, 3, 0, 0): ([F(1)], [F(1)], F(1), F(1)),
        (1, 2, 1, 0): ([F(2, 3), F(1, 3)], [F(1, 3), F(0)], F(1, 3), F(1, 3)),
        (2, 0, 3, 0): ([F(1)], [F(1)], F(1), F(1)),
        (2, 1, 1, 1): ([F(1, 3)] * 3, [F(0)] * 3, F(0), F(0)),
        (3, 0, 0, 3): ([F(1)], [F(1)], F(1), F(1)),
        (3, 0, 3, 0): ([F(1)], [F(1)], F(1), F(-1)),
    }

    @pytest.mark.parametrize(("known", "number"), [(exact_terms, F), (float_terms, float)], ids=["oracle", "floats"])
    def test_of_each_item(self, known: Any, number: Any) -> None:
        found: Terms = known(example())
        table = found.patterns
        assert len(table) == 6
        for k, label in enumerate(table.suggested.tolist()):
            row = slice(table.start[k], table.start[k + 1])
            votes = [0, 0, 0]
            for code, count in zip(table.code[row].tolist(), table.votes[row].tolist(), strict=True):
                votes[code] = count
            c, g, t, d = self.ITEMS[label + 1, *votes]
            # One division each: the nearest float, or the fraction itself.
            assert found.c[row].tolist() == [number(share) for share in c]
            assert found.g[row].tolist() == [number(share) for share in g]
            assert (found.t[k], found.d[k]) == (number(t), number(d))
            assert dense(found, found.c)[k].tolist() == [number(F(vote, 3)) for vote in votes]
        assert found.C.tolist() == [number(share) for share in (F(1, 3), F(4, 9), F(2, 9))]
        assert found.L.tolist() == [number(F(1, 3))] * 3
        letters = (found.D, found.E, found.C_E, found.kappa)
        assert letters == tuple(map(number, (F(7, 18), F(-29, 243), F(29, 243), F(247, 544))))
        assert found.row_sums(found.c).tolist() == [1] * 6
        assert (found.n, found.weight.tolist()) == (6, [1] * 6)

    def test_weights_sum_to_the_number_of_items(self) -> None:
        kappa = example(sample_weight=[1, 2, 3, 4, 5, 6])
        assert sorted(exact_terms(kappa).weight.tolist()) == [F(6 * w, 21) for w in range(1, 7)]
        assert sorted(float_terms(kappa).weight.tolist()) == [6 * w / 21 for w in range(1, 7)]
        assert pattern_weights(kappa.sample).dtype == pattern_weights(example().sample).dtype == np.float64
        by_hand = sum(w * self.ITEMS[key][3] for w, key in zip(range(1, 7), self.ITEMS, strict=True)) / 21
        known = exact_terms(kappa)
        assert known.mean(known.d) == known.D == by_hand

    def test_fleiss_has_no_labels(self) -> None:
        found = float_terms(fleiss_kappa(EXAMPLE.votes))
        assert len(found.L) == 0
        assert found.d.tolist() == found.t.tolist()

    def test_pairs_beyond_the_digits_of_floats(self) -> None:
        counts = [[2**29 + 1, 2**30 + 2], [1, 3]]
        kappa = dh_kappa(counts=counts, suggested=["a", "b"], categories=["a", "b"])
        every = [F(math.comb(number, 2), math.comb(sum(row), 2)) for row in counts for number in row]
        assert sorted(exact_terms(kappa).g.tolist()) == sorted(every)
        assert sorted(float_terms(kappa).g.tolist()) == pytest.approx([float(g) for g in sorted(every)], rel=1e-15)
        assert sorted(float_terms(kappa).d.tolist()) == pytest.approx(
            [float(d) for d in sorted([every[0] - every[1], every[3] - every[2]])], rel=1e-15
        )


def near_certain(labeled: bool = True) -> Kappa:
    """One item of a hundred million is odd, so that 1 - E is too small for the plain formula."""
    votes, odd = tally([["a", "a"]], ["a"]), tally([["a", "b"]], ["b"])
    for _ in range(27):
        votes = votes + votes
    return dh_kappa(votes + odd) if labeled else fleiss_kappa(votes + odd)


class TestNearCertainty:
    @pytest.mark.parametrize("labeled", [True, False])
    def test_influence_against_the_plain_formula_in_fractions(self, labeled: bool) -> None:
        known, floats = exact_terms(near_certain(labeled)), float_terms(near_certain(labeled))
        assert 0 < 1 - known.E < 1e-6
        for one, value, number in zip(influence(floats), exact.influence(known), known.items.tolist(), strict=True):
            # About ten roundings; for the odd item they are roundings of parts as large as 1 / (1 - E).
            assert one == pytest.approx(float(value), rel=1e-12 if number > 1 else 1e-7)
        assert chance_terms(floats).not_by_chance == pytest.approx(float(1 - known.E), rel=1e-14)

    def test_extremes(self) -> None:
        expected, found = exact.extremes(exact_terms(near_certain())), extremes(float_terms(near_certain()))
        assert found.label.tolist() == list(expected) == [0, 1]
        assert found.low.tolist() == pytest.approx([float(low) for low, _ in expected.values()], rel=1e-12)
        assert found.high.tolist() == pytest.approx([float(high) for _, high in expected.values()], rel=1e-12)

    def test_nothing_is_left_of_a_float(self) -> None:
        floats = float_terms(near_certain())
        lost = replace(floats, C=np.array([1.0, 0.0]), L=np.array([1.0, 0.0]), E=1.0)
        assert np.isnan(influence(lost)).tolist() == [True] * len(lost.items)
        assert np.isnan(extremes(lost).low).all()
        assert np.isnan(extremes(lost).high).all()


def test_votes_for_another_label_may_raise_kappa_most() -> None:
    """If labels are worse than random: all votes 2 on an item with label 0, rather than all votes 0."""
    kappa = dh_kappa([[0, 0], [2, 2], [2, 2]], [1, 0, 0])
    known, far = exact_terms(kappa), extremes(float_terms(kappa))
    for j in range(3):
        every = [exact.alike(known, j, v) for v in range(3)]
        assert (far.low[j], far.high[j]) == pytest.approx((float(min(every)), float(max(every))), rel=1e-13)
        assert (every.index(max(every)) == j) == (j != 0)


def test_one_minus_E_has_the_same_bits_in_any_order_of_categories() -> None:
    draw = np.random.default_rng(4)
    votes, labels = draw.integers(0, 150, (500, 3)), draw.integers(0, 150, 500)
    orders = [draw.permutation(150).tolist() for _ in range(8)]
    found = [float_terms(dh_kappa(votes, labels, categories=order)) for order in orders]
    assert len({chance_terms(terms).not_by_chance for terms in found}) == 1


def test_complement_keeps_digits() -> None:
    assert complement(np.array([0.25, 0.5, 0.25])).tolist() == [0.75, 0.5, 0.75]
    assert complement(np.array([1.0, 2.0**-99, 2.0**-98])).tolist() == [3 * 2.0**-99, 1.0, 1.0]
    assert complement(np.array([])).tolist() == []


def test_rounding_is_no_variation() -> None:
    assert sum_of_squares(np.array([1e-13, -1e-13]), np.array([1, 1])) == 0
    assert sum_of_squares(np.array([1e-12]), np.array([4])) == 0
    assert sum_of_squares(np.array([1.1e-12]), np.array([4])) > 0
    assert sum_of_squares(np.array([1.0, -2.0]), np.array([2, 3])) == 14


class TestVariance:
    LABELS = (1, 1, 2, 2, 3, 3, 1, 2, 1, 1, 2)
    VOTES = ("1112", "112", "222", "123", "333", "222", "111", "213", "1112", "112", "233")

    @pytest.mark.parametrize(
        "design",
        [
            {},
            {"pool": 30},
            {"sample_weight": [1, 2, 3, 1, 2, 3, 1, 2, 1, 2, 4]},
            {"strata": list("xxxyyyxyxxx")},
            {"strata": list("xxxyyyxyxxx"), "pool": {"x": 20, "y": 5}},
            {"strata": list("xxxxxxxyxxy")},
            {"strata": list("xxxxxxxxxxy"), "pool": {"x": 20, "y": 1}},
        ],
    )
    def test_against_exact_sums(self, design: dict[str, Any]) -> None:
        kappa = dh_kappa([[int(vote) for vote in item] for item in self.VOTES], self.LABELS, **design)
        known, floats = exact_terms(kappa), float_terms(kappa)
        assert known.items.max() > 1 or "sample_weight" in design
        value, infinite_pool = exact.variance(known, exact.influence(known))
        found = variance(floats, influence(floats))
        # Sums of some ten terms, and a root.
        assert (found.value, found.infinite_pool) == pytest.approx((float(value), float(infinite_pool)), rel=1e-12)
        assert kappa.se == pytest.approx(math.sqrt(value), rel=1e-12)

    @pytest.mark.parametrize("strata", [None, list("xxxyyyxyxxx")])
    def test_weights_within_a_pattern(self, strata: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many weights are kept by item, not as patterns whose items have the same weight."""
        votes = [[int(vote) for vote in item] for item in self.VOTES]
        weight = [1, 2, 3, 1, 2, 3, 1, 2, 6, 5, 4]
        plain = dh_kappa(votes, self.LABELS, sample_weight=weight, strata=strata)
        monkeypatch.setattr("dhkappa.inputs.arrays.MANY_WEIGHTS", 1)
        kappa = dh_kappa(votes, self.LABELS, sample_weight=weight, strata=strata)
        sample = kappa.estimate.sample
        assert len(sample.patterns) < len(plain.sample.patterns)
        assert kappa.parts is not None
        known, floats, by_weight = exact_terms(plain), terms(sample, kappa.parts), float_terms(plain)
        phi = influence(floats)
        expected = exact.variance(known, exact.influence(known))
        assert tuple(variance(floats, phi)) == pytest.approx(tuple(map(float, expected)), rel=1e-12)
        unseen, alone = unseen_items(floats, phi), unseen_items(by_weight, influence(by_weight))
        assert unseen.most == pytest.approx(alone.most, rel=1e-12)
        assert unseen.label.tolist() == alone.label.tolist()
        np.testing.assert_allclose(unseen.share, alone.share, rtol=1e-12)
        np.testing.assert_allclose(unseen.middle, alone.middle, rtol=1e-12, atol=1e-15)

    def test_two_items(self) -> None:
        kappa = dh_kappa([[1, 1], [1, 2]], [1, 2])
        first, second = exact.influence(exact_terms(kappa)).tolist()
        assert first == -second != 0
        assert kappa.se == pytest.approx(abs(float(first)), rel=1e-14)


class TestBasis:
    def test_example(self) -> None:
        found = float_terms(example())
        made = basis_of(replace(found, kappa=0.5, E=-0.1), influence(found), extremes(found), -2.0)
        assert made is not None
        assert (made.kappa, made.E, made.n, made.df, made.bottom) == (0.5, -0.1, 6, 5, -2.0)
        assert made.squares == pytest.approx(float(30 * F(432125685, 5473632256)), rel=1e-12)
        assert (made.least, made.greatest) == pytest.approx((-50355 / 36992, 21087 / 36992), rel=1e-12)
        assert (made.least_share, made.greatest_share, made.unseen) == (1 / 6, 1 / 6, 1 / 6)
        plain = basis_of(found, influence(found), None)
        assert plain is not None
        assert plain.bottom == LEAST
        assert math.isnan(plain.least)
        assert math.isnan(plain.greatest)
        assert basis_of(replace(found, E=1.0), influence(found), None) is None

    def test_of_estimates(self) -> None:
        two = basis(dh_kappa([[1, 1], [1, 2]], [1, 2]).estimate)
        assert two is not None
        assert (two.n, two.df) == (2, 1)
        flawless = basis(dh_kappa([["a", "a"], ["b", "b"], ["c", "c"]] * 5, list("abc") * 5).estimate)
        assert flawless is not None
        assert (flawless.greatest, flawless.squares) == (0, 0)  # nothing is better
        strata = basis(example(strata=list("xxyyyy")).estimate)
        assert strata is not None
        assert strata.df == 4
        for undefined in (dh_kappa([], []), dh_kappa([[1, 1]] * 2, [1, 1]), dh_kappa([[1, 2]], [1])):
            assert basis(undefined.estimate) is None

    def test_unseen_items_of_strata_with_weights(self) -> None:
        """share(A) = sum p^3 / sum p^2, and the mean influence of a stratum, by weight (docs/methods.md)."""
        found = float_terms(example(sample_weight=[1, 2, 3, 4, 5, 6], strata=STRATA))
        phi = influence(found)
        p = found.weight / found.n
        inside = [found.sample.stratum == place for place in range(2)]
        top = max((p[rows] ** 3).sum() / (p[rows] ** 2).sum() for rows in inside)
        unseen = unseen_items(found, phi)
        assert unseen.most == pytest.approx(top, rel=1e-12)
        expected = []
        for rows in inside:
            middle = (p[rows] * phi[rows]).sum() / p[rows].sum()
            for label in sorted(set(found.suggested[rows].tolist())):
                own = p[rows & (found.suggested == label)]
                expected.append((label, math.sqrt(top * (own**3).sum() / (own**2).sum()), middle))
        assert unseen.label.tolist() == [label for label, _, _ in expected]
        assert unseen.share.tolist() == pytest.approx([share for _, share, _ in expected], rel=1e-12)
        assert unseen.middle.tolist() == pytest.approx([middle for _, _, middle in expected], rel=1e-12)

    def test_a_stratum_without_items_adds_nothing(self) -> None:
        votes, labels, strata = [*EXAMPLE.votes, [1]], [*EXAMPLE.suggested, 1], [*STRATA, "z"]
        kappa = dh_kappa(votes, labels, strata=strata, pool={"x": 9, "y": 30, "z": 0})
        plain = example(strata=STRATA, pool={"x": 9, "y": 30})
        assert kappa.exact == plain.exact
        assert kappa.se == plain.se
        found, without = (unseen_items(known, influence(known)) for known in map(float_terms, (kappa, plain)))
        assert found.most == without.most
        assert (found.share.tolist(), found.middle.tolist()) == (without.share.tolist(), without.middle.tolist())
