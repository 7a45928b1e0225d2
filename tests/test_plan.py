"""Plans: variances against enumeration in fractions, sizes against the interval itself and against simulation."""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from dhkappa.stats.terms import terms
from dhkappa.stats.variance import Unseen
from hypothesis import given

import oracle
from dhkappa import DataError, Kappa, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.intervals import beta_interval, plain_basis
from dhkappa.stats.plan import Outlook, model, observed, plan_of, variance
from strategies import Data, complete

F = Fraction
# A prevalence with which the published check values of planning come out: kappa .606, 540 items by the Wald formula.
SKEWED = (0.4, 0.25, 0.15, 0.1, 0.1)
MODELS: list[tuple[Sequence[Fraction], Fraction, Fraction]] = [
    ([F(1, 2), F(1, 2)], F(9, 10), F(4, 5)),
    ([F(1, 3)] * 3, F(7, 10), F(17, 20)),
    ([F(1, 2), F(3, 10), F(1, 5)], F(3, 5), F(1)),
    ([F(3, 5), F(2, 5), F(0)], F(1), F(3, 10)),
    ([F(9, 10), F(1, 20), F(1, 20)], F(1, 4), F(1, 2)),
]


def fractions(values: Sequence[Fraction]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def dh_influence(item: Sequence[int], label: int, C: Any, L: Any, D: Fraction, E: Fraction) -> Fraction:
    """The derivative of (D - E) / (1 - E) towards one item, by the quotient rule."""
    m = range(len(C))
    g = [oracle.pair_share(item, j) for j in m]
    dD = 2 * g[label] - sum(g) - D
    dE = sum(
        2 * C[j] * (oracle.vote_share(item, j) - C[j]) * (2 * L[j] - 1) + C[j] ** 2 * 2 * ((j == label) - L[j])
        for j in m
    )
    slope: Fraction = (dD * (1 - E) - dE * (1 - D)) / (1 - E) ** 2
    return slope


def enumerated(prevalence: Sequence[Fraction], a: Fraction, q: Fraction, N: int) -> tuple[Fraction, Fraction]:
    """Kappa and sigma^2 over every label and every way to vote."""
    m = range(len(prevalence))
    chance: dict[tuple[int, tuple[int, ...]], Fraction] = {}
    for z, label, votes in product(m, m, product(m, repeat=N)):
        p = prevalence[z] * (q if label == z else (1 - q) / (len(m) - 1))
        for vote in votes:
            p *= a if vote == z else (1 - a) / (len(m) - 1)
        chance[label, votes] = chance.get((label, votes), F(0)) + p
    C = [sum(p * oracle.vote_share(votes, j) for (_, votes), p in chance.items()) for j in m]
    L = [sum(p for (label, _), p in chance.items() if label == j) for j in m]
    D = sum(
        (p * sum((1 if j == label else -1) * oracle.pair_share(votes, j) for j in m))
        for (label, votes), p in chance.items()
    )
    E = F(sum(C[j] ** 2 * (2 * L[j] - 1) for j in m))
    squares = sum(p * dh_influence(votes, label, C, L, F(D), E) ** 2 for (label, votes), p in chance.items())
    return (D - E) / (1 - E), F(squares)


def kappa_of(data: Data) -> Kappa:
    return dh_kappa(data.votes, data.suggested, categories=data.categories)


def drawn_kappa(n: int, seed: int, N: int = 3, **rates: Any) -> Kappa:
    drawn = simulate(n, annotators=N, rng=seed, **rates)
    (labels,) = drawn.suggested.values()
    return dh_kappa(drawn.votes, labels)


def half(kappa: Kappa, confidence_level: float = 0.95) -> float:
    low, high = kappa.confidence_interval(confidence_level)
    return (high - low) / 2


@pytest.mark.parametrize(("prevalence", "a", "q"), MODELS)
def test_model_against_enumeration(prevalence: Sequence[Fraction], a: Fraction, q: Fraction) -> None:
    whole, products, _ = model(fractions(prevalence), a, q)
    for N in (2, 3, 4, 5):
        assert (whole.kappa, variance(products, N)) == enumerated(prevalence, a, q, N)


@pytest.mark.parametrize(("prevalence", "a", "q"), MODELS)
def test_extremes_of_a_model_are_those_of_unanimous_items(
    prevalence: Sequence[Fraction], a: Fraction, q: Fraction
) -> None:
    whole, _, found = model(fractions(prevalence), a, q)
    occurs = [j for j in range(len(prevalence)) if whole.C[j] + whole.L[j] > 0]
    known = whole.C, whole.L, whole.D, whole.E
    phi = [dh_influence([vote, vote], label, *known) for vote in occurs for label in occurs]
    assert found == (min(phi), max(phi))


@given(complete().filter(lambda data: oracle.dh(data.votes, data.suggested, data.categories).kappa is not None))
def test_variance_with_fewer_votes_against_all_smaller_panels(data: Data) -> None:
    kappa = kappa_of(data)
    assert kappa.parts is not None
    seen = terms(kappa.sample, kappa.parts, exact=True)
    data, N = data.coded(), len(data.votes[0])
    parts = oracle.dh(data.votes, data.suggested, data.categories)
    known = [list(parts.C.values()), list(parts.L.values()), parts.D, parts.E]
    products = observed(seen, min(N, 4))
    for fewer in range(2, N + 1):
        squares: list[Fraction] = []
        for item, label in zip(data.votes, data.suggested, strict=True):
            panels = list(combinations(item, fewer))
            squares.append(oracle.mean([dh_influence(panel, label, *known) ** 2 for panel in panels]))  # type: ignore[arg-type]
        assert variance(products, fewer) == oracle.mean(squares)


def test_published_values() -> None:
    def sigma2(accuracy: float, N: int) -> float:
        return plan_of(0.05, prevalence=SKEWED, annotator_accuracy=accuracy, labeler_accuracy=0.85, votes=N).sigma ** 2

    planned = plan_of(0.05, prevalence=SKEWED, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=3)
    assert round(planned.kappa, 3) == 0.606
    assert math.ceil((1.959964 * planned.sigma / 0.05) ** 2) == 540
    assert [round(sigma2(0.9, N) * N, 2) for N in (2, 3, 5)] == [0.79, 1.05, 1.58]
    assert [round(sigma2(0.6, N) * N, 2) for N in (2, 3)] == [0.57, 0.56]


@pytest.mark.parametrize(("a", "q", "h"), [(0.9, 0.85, 0.05), (0.99, 0.97, 0.1), (1, 1, 0.05), (0.8, 0.3, 0.2)])
def test_items_are_the_fewest_whose_interval_is_narrow_enough(a: float, q: float, h: float) -> None:
    planned = plan_of(h, n_categories=3, annotator_accuracy=a, labeler_accuracy=q, votes=3)
    whole, _, (least, greatest) = model(np.full(3, 1 / 3), a, q)
    outlook = Outlook(whole.kappa, whole.E, Unseen(least, 1), Unseen(greatest, 1), 1, max(least**2, greatest**2))
    widths = [outlook.half_width(n, planned.sigma**2, 0.95) for n in range(2, planned.items + 50)]
    assert widths == sorted(widths, reverse=True)
    assert planned.items == next(n for n, width in enumerate(widths, start=2) if width <= h)
    squares = (planned.items - 1) * planned.sigma**2
    low, high = beta_interval(plain_basis(whole.kappa, whole.E, planned.items, squares, least, greatest), 1 - 0.95)
    # Quantiles come from scipy here and from our own room there, both right to the last digits.
    assert widths[planned.items - 2] == pytest.approx((high - low) / 2, rel=1e-12)


@pytest.mark.parametrize("N", [2, 3, 5])
def test_pilot_plans_itself(N: int) -> None:
    """As wide an interval as the pilot's asks for as many items, with as many votes."""
    pilot = drawn_kappa(80, seed=3, N=N)
    planned = plan_of(
        half(pilot, 0.9) * (1 + 1e-9), pilot=pilot, confidence_level=0.9
    )  # rounding: one item more is 6e-3 wider
    assert (planned.items, planned.votes, planned.total_votes) == (80, N, 80 * N)
    assert planned.sigma == pytest.approx(pilot.se * math.sqrt(80), rel=1e-14)  # a few roundings
    own = next(row for row in planned.options if row["votes"] == N)
    assert own["sigma"] == pytest.approx(planned.sigma, rel=1e-12)  # two ways to sum 80 squares
    assert own["items"] == planned.items
    assert (
        plan_of(half(pilot, 0.9) * (1 + 1e-9), pilot=pilot, confidence_level=0.9, votes=2).items
        == planned.options.column("items")[0]
    )


def test_trade_of_a_pilot_goes_as_far_as_its_votes_tell() -> None:
    for N, most in ((2, 2), (3, 3), (4, 7), (5, 7)):
        planned = plan_of(0.1, pilot=drawn_kappa(150, seed=8, N=N))
        assert planned.options.column("votes") == list(range(2, most + 1))
        assert [note.code for note in planned.notes] == (["trade-cut"] if N < 4 else [])
    with pytest.raises(DataError, match="votes must be at most 3 with this pilot"):
        plan_of(0.1, pilot=drawn_kappa(150, seed=8), votes=4)
    assert plan_of(0.1, pilot=drawn_kappa(150, seed=8, N=4), votes=9).votes == 9


def test_large_pilot_agrees_with_its_model() -> None:
    rates: dict[str, Any] = {"categories": range(5), "prevalence": SKEWED, "accuracy": 0.9, "labelers": {"x": 0.85}}
    pilot = plan_of(0.05, pilot=drawn_kappa(40_000, seed=5, N=4, **rates))
    exact = plan_of(0.05, prevalence=SKEWED, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=4)
    # sigma^2 has a relative sd of about sqrt(5 / 40,000) = .011: sigma half of it, and four of these are .022
    assert pilot.options.column("sigma") == pytest.approx(exact.options.column("sigma"), rel=0.022)
    assert exact.cheapest == pilot.cheapest == 2


def test_ragged_pilot() -> None:
    votes = [["a", "a", "b"], ["b", "b"], ["a", "a"], ["b", "a", "b", "b"], ["a", "b"], ["b", "b", "b"]]
    planned = plan_of(0.3, pilot=dh_kappa(votes, list("abaaab")))
    assert planned.votes == 16 / 6
    assert planned.total_votes == math.ceil(planned.items * 16 / 6)
    assert planned.options.column("votes") == [2, 3]


def test_pool() -> None:
    asked: dict[str, Any] = {"categories": 5, "accuracy": 0.9, "labeler": 0.85, "votes": 3}
    free, drawn = plan_of(0.05, **asked), plan_of(0.05, pool=1000, **asked)
    for name in ("items", "items_assured"):
        n = F(getattr(free, name))
        assert getattr(drawn, name) == math.ceil(n / (1 + n / 1000))
    assert plan_of(0.001, pool=10, **asked).items == 10
    assert plan_of(1, pool=2, **asked).items == 2


def test_flawless() -> None:
    """Half of 2 (1 - .025^(1/n)) / (1 - E), E = -1/9: the rule for a sample without a fault."""
    n = next(n for n in range(2, 1000) if (1 - 0.025 ** (1 / n)) / (1 + 1 / 9) <= 0.05)
    assert plan_of(0.05, n_categories=3, annotator_accuracy=1, labeler_accuracy=1).items == n
    pilot = dh_kappa([["a", "a"], ["b", "b"], ["c", "c"]], ["a", "b", "c"])
    planned = plan_of(0.05, pilot=pilot)
    assert planned.items == n
    assert "flawless-pilot" in [note.code for note in planned.notes]


def test_assurance_asks_for_more_the_less_is_known() -> None:
    pilots = [drawn_kappa(n, seed=2) for n in (50, 5000)]
    few, many = (plan_of(0.05, pilot=pilot) for pilot in pilots)
    assert few.items_assured / few.items > many.items_assured / many.items > 1
    even = plan_of(0.05, pilot=pilots[0], assurance=0.5)
    assert even.items_assured == even.items == few.items


@pytest.mark.parametrize(("a", "q", "h"), [(0.9, 0.85, 0.08), (0.99, 0.97, 0.1)])
def test_simulated_samples_of_the_planned_size(a: float, q: float, h: float) -> None:
    """The second case is kappa .93, where a fifth more items is enough for 7 samples in 10 only."""
    planned = plan_of(h, n_categories=3, annotator_accuracy=a, labeler_accuracy=q, votes=3)
    rates: dict[str, Any] = {"accuracy": a, "labelers": {"x": q}}
    widths = np.array([half(drawn_kappa(planned.items, seed, **rates)) for seed in range(60)])
    # a sample's half-width has a relative sd of .04 and .25: four standard errors of the mean of 60
    assert widths.mean() == pytest.approx(h, rel=0.13 if q > 0.9 else 0.02)
    assured = np.array([half(drawn_kappa(planned.items_assured, seed, **rates)) for seed in range(60)])
    assert (assured <= h).mean() >= 0.8  # 0.9 less 2.6 standard errors
    assert (widths <= h).mean() <= 0.7  # 0.5 and 3 standard errors


def test_default_votes_of_a_model_are_the_cheapest() -> None:
    planned = plan_of(0.05, n_categories=5, annotator_accuracy=0.9, labeler_accuracy=0.85)
    assert planned.votes == planned.cheapest == 2
    assert planned.total_votes == min(planned.options.column("total_votes"))
    assert planned.options.column("votes") == [2, 3, 4, 5, 6, 7]
    assert plan_of(0.05, n_categories=5, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=11).votes == 11


def test_shows_itself() -> None:
    planned = plan_of(0.05, pilot=drawn_kappa(60, seed=1))
    assert repr(planned).startswith(f"{planned.items:,} items x 3 votes for kappa 0.")
    assert repr(planned).endswith("(pilot of 60 items; 2 notes)")
    assert "\n" not in repr(planned)
    assert "<table>" in planned._repr_html_()
    assert "60 items show only roughly" in planned._repr_html_()
    told = json.loads(json.dumps(planned.to_dict()))
    assert told["items"] == planned.items
    assert told["options"][0]["votes"] == 2
    assert [note["code"] for note in told["notes"]] == ["small-pilot", "trade-cut"]


MODEL: dict[str, Any] = {"categories": 3, "accuracy": 0.9, "labeler": 0.8}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"half_width": 0}, "half_width must be above 0 and at most 1, such as 0.05: got 0."),
        ({"half_width": 1.5}, "half_width must be above 0"),
        ({"half_width": math.nan}, "half_width must be above 0"),
        ({"half_width": "x"}, "half_width must be above 0"),
        ({"half_width": 1e-9}, "half_width must be wide enough for 1,000,000,000,000 items or fewer: got 1e-09."),
        ({"confidence_level": 1}, "level must be between 0 and 1"),
        ({"assurance": 0}, "assurance must be between 0 and 1, such as 0.9: got 0."),
        ({"accuracy": 1.2}, "accuracy must be from 0 to 1: got 1.2."),
        ({"labeler": -0.1}, "labeler must be from 0 to 1: got -0.1."),
        ({"labeler": True}, "labeler must be from 0 to 1: got True."),
        ({"votes": 1}, "votes must be a whole number from 2 to 1,000: got 1."),
        ({"votes": 2.5}, "votes must be a whole number"),
        ({"pool": 0}, "pool must be a whole number from 2 to"),
        ({"pool": 99.5}, "pool must be a whole number from 2 to"),
        ({"categories": 1}, "categories must be a whole number from 2 to 1,000: got 1."),
        ({"categories": ["a", "b"]}, "categories must be a whole number"),
        ({"prevalence": [1, 2]}, "prevalence must have a number for each of 3 categories: got 2."),
        ({"prevalence": [1, -1, 1]}, "prevalence must be 2 to 1,000 numbers, 0 or more: got [1, -1, 1]."),
        ({"prevalence": [0, 0, 0]}, "prevalence must be 2 to"),
        ({"prevalence": [1, 2, math.nan]}, "prevalence must be 2 to"),
        ({"prevalence": [1, 0, 0], "accuracy": 1, "labeler": 1}, "prevalence must not make every vote and label one"),
        ({"prevalence": [1, 0], "categories": 2, "accuracy": 1, "labeler": 0}, "leave nothing to chance"),
        ({"accuracy": None}, "plan needs to know what to expect: pass pilot=, the kappa of some items, or accuracy="),
        ({"categories": None}, "got accuracy and labeler."),
        ({"accuracy": None, "categories": None, "labeler": None}, "got none of them."),
    ],
)
def test_bad_assumptions(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        plan_of(**{"half_width": 0.05, **MODEL, **arguments})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("pilot", "said"),
    [
        (0.6, "pilot must be a kappa from dh_kappa, without ordinal weights: got 0.6."),
        (fleiss_kappa([["a", "b"], ["a", "a"]]), "pilot must be a kappa from dh_kappa"),
        (
            dh_kappa([["a", "b"], ["a", "a"]], ["a", "b"], categories=["a", "b"], weights="linear"),
            "pilot must be a kappa from dh_kappa",
        ),
        (dh_kappa([["a", "a"], ["a", "a"]], ["a", "a"]), "pilot must have a kappa that is defined, but every vote"),
        (dh_kappa([["a", "b"]], ["a"]), "pilot has one item, so it cannot show how far kappa varies: add items to it."),
        (dh_kappa([["a", "a"], ["a", "a"]], ["b", "b"]), "pilot has items of the same influence only"),
    ],
)
def test_bad_pilot(pilot: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        plan_of(0.05, pilot=pilot)
    assert said in str(caught.value)


def test_pilot_or_assumptions_not_both() -> None:
    with pytest.raises(DataError, match="pilot is given, which shows what to expect: leave out accuracy and labeler"):
        plan_of(0.05, pilot=drawn_kappa(50, seed=1), annotator_accuracy=0.9, labeler_accuracy=0.8)


@pytest.mark.parametrize(("heavy", "rate"), [(1.0, 0.5), (3.0, 0.5), (10.0, 0.2), (30.0, 0.1)])
def test_a_weighted_pilot_plans_for_its_own_interval(heavy: float, rate: float) -> None:
    def drawn(n: int, seed: int) -> Kappa:
        made = simulate(n, labelers={"a": 0.85}, annotators=3, accuracy=0.9, rng=seed)
        sample_weight = np.where(np.random.default_rng(seed).random(n) < rate, heavy, 1.0)
        return dh_kappa(made.votes, made.suggested["a"], sample_weight=sample_weight)

    def half_widths(n: int) -> list[float]:
        intervals = [drawn(n, 1000 + seed).confidence_interval() for seed in range(40)]
        return [(interval.high - interval.low) / 2 for interval in intervals]

    planned = plan_of(0.1, pilot=drawn(2000, 1))
    # The items are those of a middling sample: half of the samples are narrower, but for 40 draws and the pilot's own.
    assert np.median(half_widths(planned.items)) == pytest.approx(0.1, rel=0.08)
    assert np.mean(np.array(half_widths(planned.items_assured)) <= 0.1) >= 0.8


def test_weights_that_are_all_alike_change_no_plan() -> None:
    made = simulate(300, labelers={"a": 0.85}, annotators=3, rng=1)
    plain, weighted = (dh_kappa(made.votes, made.suggested["a"], sample_weight=given) for given in (None, [2.0] * 300))
    assert plan_of(0.1, pilot=weighted).to_dict() == plan_of(0.1, pilot=plain).to_dict()
