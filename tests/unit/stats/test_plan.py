"""Plans: variances against enumeration in fractions, sizes against the interval and against simulation."""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given as given_data
from scipy.special import ndtri

import oracle
from dhkappa import Kappa, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.influence import Unseen
from dhkappa.stats.intervals import Basis, beta_interval
from dhkappa.stats.plan import Outlook, Plan, model, observed, plan_items, variance
from exact import exact_terms, example, fractions
from expect import expect_error
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


def plan_from(half_width: float, pilot: Kappa, **options: Any) -> Plan:
    return plan_items(half_width, pilot=pilot.estimate, **options)


def plain_basis(kappa: float, E: float, n: int, squares: float, least: float, greatest: float) -> Basis:
    return Basis(kappa, E, n, squares, least, greatest, 1 / n, 1 / n, 1 / n, n - 1)


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


@given_data(complete().filter(lambda data: oracle.dh(data.votes, data.suggested, data.categories).kappa is not None))
def test_variance_with_fewer_votes_against_all_subsets_of_votes(data: Data) -> None:
    kappa = kappa_of(data)
    seen = exact_terms(kappa)
    data, N = data.coded(), len(data.votes[0])
    parts = oracle.dh(data.votes, data.suggested, data.categories)
    known = [list(parts.C.values()), list(parts.L.values()), parts.D, parts.E]
    products = observed(seen, min(N, 4))
    for fewer in range(2, N + 1):
        squares: list[Fraction] = []
        for item, label in zip(data.votes, data.suggested, strict=True):
            subsets = list(combinations(item, fewer))
            squares.append(oracle.mean([dh_influence(votes, label, *known) ** 2 for votes in subsets]))  # type: ignore[arg-type]
        assert variance(products, fewer) == oracle.mean(squares)


def test_published_values() -> None:
    def sigma2(accuracy: float, N: int) -> float:
        return (
            plan_items(0.05, prevalence=SKEWED, annotator_accuracy=accuracy, labeler_accuracy=0.85, votes=N).sigma ** 2
        )

    planned = plan_items(0.05, prevalence=SKEWED, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=3)
    assert round(planned.kappa, 3) == 0.606
    assert math.ceil((1.959964 * planned.sigma / 0.05) ** 2) == 540
    assert [round(sigma2(0.9, N) * N, 2) for N in (2, 3, 5)] == [0.79, 1.05, 1.58]
    assert [round(sigma2(0.6, N) * N, 2) for N in (2, 3)] == [0.57, 0.56]


@pytest.mark.parametrize(("a", "q", "h"), [(0.9, 0.85, 0.05), (0.99, 0.97, 0.1), (1, 1, 0.05), (0.8, 0.3, 0.2)])
def test_items_are_the_fewest_whose_interval_is_narrow_enough(a: float, q: float, h: float) -> None:
    planned = plan_items(h, n_categories=3, annotator_accuracy=a, labeler_accuracy=q, votes=3)
    whole, _, (least, greatest) = model(np.full(3, 1 / 3), a, q)
    outlook = Outlook(whole.kappa, whole.E, Unseen(least, 1), Unseen(greatest, 1), 1, max(least**2, greatest**2))
    widths = [outlook.half_width(n, planned.sigma**2, 0.95) for n in range(2, planned.items + 50)]
    assert widths == sorted(widths, reverse=True)
    assert planned.items == next(n for n, width in enumerate(widths, start=2) if width <= h)
    squares = (planned.items - 1) * planned.sigma**2
    low, high = beta_interval(plain_basis(whole.kappa, whole.E, planned.items, squares, least, greatest), 1 - 0.95)
    # Two implementations of the quantile, both right to the last digits.
    assert widths[planned.items - 2] == pytest.approx((high - low) / 2, rel=1e-12)


@pytest.mark.parametrize("N", [2, 3, 5])
def test_pilot_plans_itself(N: int) -> None:
    """As wide an interval as the pilot's asks for as many items, with as many votes."""
    pilot = drawn_kappa(80, seed=3, N=N)
    planned = plan_from(
        half(pilot, 0.9) * (1 + 1e-9), pilot, confidence_level=0.9
    )  # rounding: one item more is 6e-3 wider
    assert (planned.items, planned.votes, planned.total_votes) == (80, N, 80 * N)
    assert planned.sigma == pytest.approx(pilot.se * math.sqrt(80), rel=1e-14)  # a few roundings
    own = next(row for row in planned.options if row["votes"] == N)
    assert own["sigma"] == pytest.approx(planned.sigma, rel=1e-12)  # two ways to sum 80 squares
    assert own["items"] == planned.items
    assert (
        plan_from(half(pilot, 0.9) * (1 + 1e-9), pilot, confidence_level=0.9, votes=2).items
        == planned.options.column("items")[0]
    )


def test_trade_of_a_pilot_goes_as_far_as_its_votes_tell() -> None:
    for N, most in ((2, 2), (3, 3), (4, 7), (5, 7)):
        planned = plan_from(0.1, drawn_kappa(150, seed=8, N=N))
        assert planned.options.column("votes") == list(range(2, most + 1))
        assert [note.code for note in planned.notes] == (["options-cut"] if N < 4 else [])
    with expect_error("too-many-votes-for-pilot", "votes"):
        plan_from(0.1, drawn_kappa(150, seed=8), votes=4)
    assert plan_from(0.1, drawn_kappa(150, seed=8, N=4), votes=9).votes == 9


def test_large_pilot_agrees_with_its_model() -> None:
    rates: dict[str, Any] = {"categories": range(5), "prevalence": SKEWED, "accuracy": 0.9, "labelers": {"x": 0.85}}
    pilot = plan_from(0.05, drawn_kappa(40_000, seed=5, N=4, **rates))
    exact = plan_items(0.05, prevalence=SKEWED, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=4)
    # sigma^2 has a relative sd of about sqrt(5 / 40,000) = .011: sigma half of it, and four of these are .022
    assert pilot.options.column("sigma") == pytest.approx(exact.options.column("sigma"), rel=0.022)
    assert exact.cheapest == pilot.cheapest == 2


def test_ragged_pilot() -> None:
    votes = [["a", "a", "b"], ["b", "b"], ["a", "a"], ["b", "a", "b", "b"], ["a", "b"], ["b", "b", "b"]]
    planned = plan_from(0.3, dh_kappa(votes, list("abaaab")))
    assert planned.votes == 16 / 6
    assert planned.total_votes == math.ceil(planned.items * 16 / 6)
    assert planned.options.column("votes") == [2, 3]


def test_pool() -> None:
    asked: dict[str, Any] = {"n_categories": 5, "annotator_accuracy": 0.9, "labeler_accuracy": 0.85, "votes": 3}
    free, drawn = plan_items(0.05, **asked), plan_items(0.05, pool=1000, **asked)
    for name in ("items", "items_assured"):
        n = F(getattr(free, name))
        assert getattr(drawn, name) == math.ceil(n / (1 + n / 1000))
    assert plan_items(0.001, pool=10, **asked).items == 10
    assert plan_items(1, pool=2, **asked).items == 2


def test_flawless() -> None:
    """Half of 2 (1 - .025^(1/n)) / (1 - E), E = -1/9: the rule for a sample without a fault."""
    n = next(n for n in range(2, 1000) if (1 - 0.025 ** (1 / n)) / (1 + 1 / 9) <= 0.05)
    assert plan_items(0.05, n_categories=3, annotator_accuracy=1, labeler_accuracy=1).items == n
    pilot = dh_kappa([["a", "a"], ["b", "b"], ["c", "c"]], ["a", "b", "c"])
    planned = plan_from(0.05, pilot)
    assert planned.items == n
    assert "flawless-pilot" in [note.code for note in planned.notes]


def test_assurance_asks_for_more_the_less_is_known() -> None:
    pilots = [drawn_kappa(n, seed=2) for n in (50, 5000)]
    few, many = (plan_from(0.05, pilot) for pilot in pilots)
    assert few.items_assured / few.items > many.items_assured / many.items > 1
    even = plan_from(0.05, pilots[0], assurance=0.5)
    assert even.items_assured == even.items == few.items


@pytest.mark.parametrize(("a", "q", "h"), [(0.9, 0.85, 0.08), (0.99, 0.97, 0.1)])
def test_simulated_samples_of_the_planned_size(a: float, q: float, h: float) -> None:
    """The second case is kappa .93, where a fifth more items is enough for 7 samples in 10 only."""
    planned = plan_items(h, n_categories=3, annotator_accuracy=a, labeler_accuracy=q, votes=3)
    rates: dict[str, Any] = {"accuracy": a, "labelers": {"x": q}}
    widths = np.array([half(drawn_kappa(planned.items, seed, **rates)) for seed in range(60)])
    # a sample's half-width has a relative sd of .04 and .25: four standard errors of the mean of 60
    assert widths.mean() == pytest.approx(h, rel=0.13 if q > 0.9 else 0.02)
    assured = np.array([half(drawn_kappa(planned.items_assured, seed, **rates)) for seed in range(60)])
    assert (assured <= h).mean() >= 0.8  # 0.9 less 2.6 standard errors
    assert (widths <= h).mean() <= 0.7  # 0.5 and 3 standard errors


def test_default_votes_of_a_model_are_the_cheapest() -> None:
    planned = plan_items(0.05, n_categories=5, annotator_accuracy=0.9, labeler_accuracy=0.85)
    assert planned.votes == planned.cheapest == 2
    assert planned.total_votes == min(planned.options.column("total_votes"))
    assert planned.options.column("votes") == [2, 3, 4, 5, 6, 7]
    assert plan_items(0.05, n_categories=5, annotator_accuracy=0.9, labeler_accuracy=0.85, votes=11).votes == 11


def test_shows_itself() -> None:
    planned = plan_from(0.05, drawn_kappa(60, seed=1))
    assert repr(planned).startswith(f"{planned.items:,} items with 3 votes each for a 95% CI of 0.")
    assert repr(planned).endswith(" for an assurance of 90%); from a pilot of 60 items; 2 notes")
    assert "\n" not in repr(planned)
    assert f"({planned.items_assured:,} items for an assurance of 90%)" in repr(planned)
    assert "<table>" in planned._repr_html_()
    assert "with 3 votes each" in planned._repr_html_()
    assert planned.notes[0].text in planned._repr_html_()
    told = json.loads(json.dumps(planned.to_dict()))
    assert told["items"] == planned.items
    assert told["options"][0]["votes"] == 2
    assert [note["code"] for note in told["notes"]] == ["small-pilot", "options-cut"]


def test_a_pilot_with_unequal_numbers_of_votes_says_so() -> None:
    """Also if their mean is a whole number: the options are for equal numbers."""
    votes, labels = [["a", "a"], ["a", "b", "a", "b"], ["b", "b"], ["b", "b", "b", "a"]] * 10, ["a", "a", "b", "b"] * 10
    planned = plan_from(0.1, dh_kappa(votes, labels))
    assert planned.votes == 3
    assert planned.distribution == "if votes are distributed as in the pilot (3.0 per item on average)"
    assert plan_from(0.1, dh_kappa(votes, labels), votes=2).distribution == "with 2 votes each"


MODEL: dict[str, Any] = {"n_categories": 3, "annotator_accuracy": 0.9, "labeler_accuracy": 0.8}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"half_width": 0}, "invalid-half-width"),
        ({"half_width": 1.01}, "invalid-half-width"),
        ({"half_width": math.nan}, "invalid-half-width"),
        ({"half_width": "x"}, "invalid-half-width"),
        ({"half_width": True}, "invalid-half-width"),
        ({"half_width": 1e-9}, "half-width-too-small"),
        ({"confidence_level": 1}, "invalid-confidence-level"),
        ({"assurance": 0}, "invalid-assurance"),
        ({"assurance": 1}, "invalid-assurance"),
        ({"annotator_accuracy": 1.2}, "invalid-annotator-accuracy"),
        ({"labeler_accuracy": -0.1}, "invalid-labeler-accuracy"),
        ({"labeler_accuracy": True}, "invalid-labeler-accuracy"),
        ({"votes": 1}, "invalid-votes"),
        ({"votes": 1001}, "invalid-votes"),
        ({"votes": 2.5}, "invalid-votes"),
        ({"votes": "3"}, "invalid-votes"),
        ({"votes": True}, "invalid-votes"),
        ({"pool": 1}, "invalid-pool"),
        ({"pool": 99.5}, "invalid-pool"),
        ({"pool": 2**62 + 1}, "invalid-pool"),
        ({"n_categories": 1}, "invalid-n-categories"),
        ({"n_categories": 1001}, "invalid-n-categories"),
        ({"n_categories": ["a", "b"]}, "invalid-n-categories"),
        ({"prevalence": [1, 2]}, "invalid-prevalence"),
        ({"prevalence": [1, -1, 1]}, "invalid-prevalence"),
        ({"prevalence": [0, 0, 0]}, "invalid-prevalence"),
        ({"prevalence": [1, 2, math.nan]}, "invalid-prevalence"),
        ({"prevalence": [1], "n_categories": None}, "invalid-prevalence"),
        ({"prevalence": [1] * 1001, "n_categories": None}, "invalid-prevalence"),
        ({"prevalence": 5, "n_categories": None}, "invalid-prevalence"),
        ({"prevalence": ["x", 1], "n_categories": None}, "invalid-prevalence"),
        ({"prevalence": [1, 0, 0], "annotator_accuracy": 1, "labeler_accuracy": 1}, "invalid-prevalence"),
        (
            {"prevalence": [1, 0], "n_categories": 2, "annotator_accuracy": 1, "labeler_accuracy": 0},
            "no-variance",
        ),
        ({"n_categories": 2, "annotator_accuracy": 1, "labeler_accuracy": 0}, "no-variance"),
        ({"annotator_accuracy": None}, "pilot-missing"),
        ({"labeler_accuracy": None}, "pilot-missing"),
        ({"n_categories": None}, "pilot-missing"),
        ({"annotator_accuracy": None, "n_categories": None, "labeler_accuracy": None}, "pilot-missing"),
    ],
)
def test_bad_assumptions(arguments: dict[str, Any], code: str) -> None:
    others = {"half-width-too-small": "half_width", "no-variance": "annotator_accuracy", "pilot-missing": "pilot"}
    with expect_error(code, others.get(code, code.removeprefix("invalid-").replace("-", "_"))):
        plan_items(**{"half_width": 0.05, **MODEL, **arguments})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "neither"),
        ({"prevalence": [1, 2], "votes": 3}, "prevalence"),
        ({"annotator_accuracy": 0.9, "n_categories": 3}, "annotator_accuracy and n_categories"),
    ],
)
def test_message_names_the_assumptions_that_were_passed(given: dict[str, Any], named: str) -> None:
    with expect_error("pilot-missing", "pilot") as error:
        plan_items(0.05, **given)
    assert error.value.message == f"A plan needs a pilot or assumptions: got {named}."


@pytest.mark.parametrize(
    ("pilot", "code"),
    [
        (fleiss_kappa([["a", "b"], ["a", "a"]]), "invalid-pilot"),
        (fleiss_kappa([["a", "b"], ["a", "a"]], categories=["a", "b"], weights="linear"), "invalid-pilot"),
        (dh_kappa([["a", "a"], ["a", "a"]], ["a", "a"]), "pilot-too-small"),
        (dh_kappa([], []), "pilot-too-small"),
        (dh_kappa([["a", "b"]], ["a"]), "pilot-too-small"),
        (dh_kappa([["a", "a"], ["a", "a"]], ["b", "b"]), "pilot-too-small"),
    ],
)
def test_bad_pilot(pilot: Kappa, code: str) -> None:
    with expect_error(code, "pilot"):
        plan_from(0.05, pilot)


@pytest.mark.parametrize("given", [{"annotator_accuracy": 0.9, "labeler_accuracy": 0.8}, {"prevalence": [1, 2]}])
def test_pilot_or_assumptions_not_both(given: dict[str, Any]) -> None:
    with expect_error("pilot-and-assumptions", "pilot") as error:
        plan_from(0.05, drawn_kappa(50, seed=1), **given)
    assert f"({', '.join(given)})" in error.value.message
    assert error.value.hint == f"Leave out {' and '.join(f'${name}' for name in given)}, or $pilot."


@pytest.mark.parametrize(("heavy", "rate"), [(1.0, 0.5), (3.0, 0.5), (10.0, 0.2), (30.0, 0.1)])
def test_a_weighted_pilot_plans_for_its_own_interval(heavy: float, rate: float) -> None:
    def drawn(n: int, seed: int) -> Kappa:
        made = simulate(n, labelers={"a": 0.85}, annotators=3, accuracy=0.9, rng=seed)
        sample_weight = np.where(np.random.default_rng(seed).random(n) < rate, heavy, 1.0)
        return dh_kappa(made.votes, made.suggested["a"], sample_weight=sample_weight)

    def half_widths(n: int) -> list[float]:
        intervals = [drawn(n, 1000 + seed).confidence_interval() for seed in range(40)]
        return [(interval.high - interval.low) / 2 for interval in intervals]

    planned = plan_from(0.1, drawn(2000, 1))
    # The items are those of a middling sample: half of the samples are narrower, but for 40 draws and the pilot's own.
    assert np.median(half_widths(planned.items)) == pytest.approx(0.1, rel=0.08)
    assert np.mean(np.array(half_widths(planned.items_assured)) <= 0.1) >= 0.8


def test_equal_weights_change_no_plan() -> None:
    made = simulate(300, labelers={"a": 0.85}, annotators=3, rng=1)
    plain, weighted = (dh_kappa(made.votes, made.suggested["a"], sample_weight=given) for given in (None, [2.0] * 300))
    assert plan_from(0.1, weighted).to_dict() == plan_from(0.1, plain).to_dict()


@pytest.mark.parametrize("design", [{"pool": 320}, {"strata": ["x", "y"] * 150, "pool": {"x": 200, "y": 200}}])
def test_the_pool_of_a_pilot_changes_no_plan(design: dict[str, Any]) -> None:
    made = simulate(300, labelers={"a": 0.95}, accuracy=0.97, rng=1)
    given = [{name: value for name, value in design.items() if name != "pool"}, design]
    free, drawn = (plan_from(0.1, dh_kappa(made.votes, made.suggested["a"], **each)).to_dict() for each in given)
    assert drawn == free


def test_notes() -> None:
    assert [note.code for note in plan_from(0.2, example()).notes] == ["small-pilot", "options-cut"]
    flawless = plan_from(0.1, dh_kappa([[1, 1]] * 5 + [[2, 2]] * 5, [1] * 5 + [2] * 5))
    assert [note.code for note in flawless.notes] == ["small-pilot", "flawless-pilot", "options-cut"]


def test_ragged_pilot_says_which_items_the_options_are_from() -> None:
    pilot = dh_kappa([[1, 1, 1], [1, 2, 1], [2, 2], [2, 2, 2]], [1, 1, 2, 1])
    planned, chosen = plan_from(0.2, pilot), plan_from(0.2, pilot, votes=3)
    assert "all 4 items" in planned.assumes
    assert "3 of 4 items" in chosen.assumes
    for found in (planned, chosen):
        assert found.notes[-1].code == "options-partial"
        assert "3 of 4 items" in found.options.title
        assert found.assumes in repr(found)
        assert ("the two may differ" in found.notes[-1].text) == (found is planned)
    # Items with different numbers of votes, all of which are used.
    even = plan_from(0.2, dh_kappa([[1, 1], [1, 2, 1], [2, 2], [2, 2]], [1, 1, 2, 1]))
    assert "from" not in even.options.title
    assert plan_from(0.2, dh_kappa([[1, 1], [1, 2, 1], [2, 2], [2, 2, 2]], [1, 1, 2, 1])).votes == 2.5


def test_plain_values() -> None:
    planned = plan_from(0.2, example())
    found = planned.to_dict()
    assert (found["votes"], found["total_votes"]) == (3, 3 * planned.items)
    assert found["sigma"] == pytest.approx(math.sqrt(6) * example().se, rel=1e-12)
    assert (found["kappa"], found["half_width"], found["confidence_level"]) == (247 / 544, 0.2, 0.95)
    assert (found["assurance"], found["pool"], found["assumes"]) == (0.9, None, "a pilot of 6 items")
    assert [row["votes"] for row in found["options"]] == [2, 3]
    assert list(found["options"][0]) == ["votes", "sigma", "items", "items_assured", "total_votes"]
    assert found["cheapest"] == min(found["options"], key=lambda row: row["total_votes"])["votes"]
    assumed = plan_items(0.1, n_categories=3, annotator_accuracy=0.9, labeler_accuracy=0.8, votes=4)
    assert (assumed.votes, assumed.total_votes, assumed.notes) == (4, 4 * assumed.items, ())


def test_only_ratios_of_prevalence_matter() -> None:
    accuracies: dict[str, Any] = {"annotator_accuracy": 0.9, "labeler_accuracy": 0.9}
    even = plan_items(0.05, n_categories=2, **accuracies).to_dict()
    assert plan_items(0.05, prevalence=[1e308, 1e308], **accuracies).to_dict() == even
    assert plan_items(0.3, prevalence=[1] * 1000, **accuracies).items > 1


@pytest.mark.parametrize(("accuracy", "labeler"), [(0.7, 0.6), (0.9, 0.2)])
def test_assured_items_by_hand(accuracy: float, labeler: float) -> None:
    """Two categories as frequent as each other: C and L are 1/2, E is 0 and influence is d - D.

    Two votes agree with a^2 + (1 - a)^2, and then d is 1 or -1.
    """
    a, q = accuracy, labeler
    agree = a**2 + (1 - a) ** 2
    D = 2 * (q * a**2 + (1 - q) * (1 - a) ** 2) - agree
    variance, most = agree - D**2, max(1 + D, 1 - D) ** 2

    def half(n: int) -> float:
        assured = variance + float(ndtri(0.9)) * math.sqrt(variance * (most - variance) / n)
        low, high = beta_interval(plain_basis(D, 0.0, n, (n - 1) * assured, -1 - D, 1 - D), 1 - 0.95)
        return (high - low) / 2

    planned = plan_items(0.1, n_categories=2, annotator_accuracy=a, labeler_accuracy=q, votes=2)
    assert planned.kappa == pytest.approx(D, rel=1e-12)
    assert planned.sigma == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert half(planned.items_assured) <= 0.1 < half(planned.items_assured - 1)
