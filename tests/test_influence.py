"""Influence values and standard errors against exact derivatives, worked examples and irrCAC."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

import oracle
from dhkappa import Kappa, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.stats.influence import extremes, influence
from dhkappa.stats.terms import Terms, terms
from strategies import Data, from_counts, ragged

F = Fraction


def exact_terms(kappa: Kappa) -> Terms:
    assert kappa.parts is not None
    return terms(kappa.sample, kappa.parts, exact=True)


def phi_by_pattern(kappa: Kappa) -> dict[tuple[Any, ...], F]:
    """Influence by (suggested label, votes by category), from the package."""
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
            assert known.mean(influence(known)) == 0
            assert known.mean(known.d) == known.D


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
    values, variance, ends = EXAMPLES[text]
    kappa = dh_kappa(data.votes, data.suggested)
    phi = phi_by_pattern(kappa)
    keys = [
        (label, *(item.count(name) for name in kappa.categories))
        for item, label in zip(data.votes, data.suggested, strict=True)
    ]
    assert [phi[key] for key in keys] == values
    known = exact_terms(kappa)
    assert (influence(known) ** 2 * known.items).sum() / (known.n * (known.n - 1)) == variance
    far = extremes(known)
    assert (min(far.low), max(far.high)) == ends
    # A few roundings, each of 1.1e-16, stand between the float and the root of the exact variance.
    assert kappa.se == pytest.approx(math.sqrt(variance), rel=1e-14)


@given(ragged())
def test_extremes_against_every_pair(data: Data) -> None:
    kappa = dh_kappa(data.written_votes, data.written_suggested)
    assume(kappa.exact is not None)
    known = exact_terms(kappa)
    occurs = [j for j in range(len(known.C)) if known.C[j] + known.L[j] > 0]
    far = extremes(known)
    assert far.label.tolist() == occurs
    for place, j in enumerate(occurs):
        every = []
        for v in occurs:
            rest = known.C[v] * (2 * known.L[v] - 1) + known.C[j] ** 2 - known.E - known.C_E
            every.append(((1 if j == v else -1) - known.D - 2 * (1 - known.kappa) * rest) / (1 - known.E))
        assert (far.low[place], far.high[place]) == (min(every), max(every))


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
    assert tuple(ours.confidence_interval()) == pytest.approx(theirs["confidence_interval"], abs=1e-12)


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
