"""The annotator baseline against its definition in exact fractions, worked examples and values of real data."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baseline_coverage as coverage
import baseline_oracle
import oracle
import simulation
from dhkappa import dh_kappa, tally
from dhkappa.stats import annotator_baseline as module
from dhkappa.stats import votes_baseline as votes_module
from dhkappa.stats.annotator_baseline import AnnotatorBaseline, annotator_baseline
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.votes_baseline import votes_baseline
from published import table_of
from strategies import Data, from_counts, ragged

F = Fraction
EXAMPLE_1 = "300/1 210/1 030/2 111/2 003/3 030/3"
EXAMPLE_5_VOTES = "500/1 410/1 032/2 113/3 050/2 221/1"


@pytest.fixture
def few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give limits to samples of two items."""
    for one in (module, votes_module):
        monkeypatch.setattr(one, "MIN_ITEMS", 2)


def estimate_of(data: Data) -> Estimate:
    return dh_kappa(data.votes, data.suggested).estimate


def baseline_of(text: str) -> AnnotatorBaseline:
    return annotator_baseline(estimate_of(from_counts(text)))


def drawn(seed: int, m: int, sizes: Sequence[int], n: int, accuracy: float = 0.7) -> Data:
    """Items with a true category, which votes and labels are with some probability."""
    random, categories = Random(seed), range(1, m + 1)

    def answer(truth: int) -> int:
        return truth if random.random() < accuracy else random.choice(categories)

    truths = [random.choice([1, *categories]) for _ in range(n)]
    votes: list[list[Hashable]] = [[answer(truth) for _ in range(random.choice(sizes))] for truth in truths]
    return Data(tuple(categories), votes, [answer(truth) for truth in truths])


def influences(data: Data, upper: bool | None = None) -> tuple[list[float], list[float], list[float], list[float]]:
    """Influence on the labeler and on annotators, and on both above random labels, by difference quotients."""
    votes, n = data.votes, len(data.votes)

    def labeler(w: baseline_oracle.Weights) -> baseline_oracle.Scored:
        return baseline_oracle.labeler(votes, data.suggested, w)

    def annotators(w: baseline_oracle.Weights) -> Fraction:
        if upper is not None:
            return baseline_oracle.bounded(votes, upper, w)
        return baseline_oracle.annotators(votes, w).kappa or F(0)

    def above(w: baseline_oracle.Weights) -> Fraction:
        return F(0) if upper is not None else baseline_oracle.annotators(votes, w).above_random

    statistics = (lambda w: labeler(w).kappa or F(0)), annotators, (lambda w: labeler(w).above_random), above
    a, b, c, d = (baseline_oracle.influence(statistic, n) for statistic in statistics)
    return a, b, c, d


# Worked examples


def test_example_1(few_items: None) -> None:
    found = baseline_of(EXAMPLE_1)
    assert found.exact == F(113, 176)
    assert found.value == found.value_low == found.value_high == 113 / 176
    assert (found.kappa_labeler, found.difference, found.n_items) == (247 / 544, float(F(-1125, 5984)), 6)
    assert found.se**2 == pytest.approx(7624106712765 / 80139449860096, rel=1e-13)  # some roundings
    assert (f"{found.low:.6f}", f"{found.high:.6f}") == ("-1.457635", "0.607304")
    assert (found.method, found.reason) == ("votes", None)
    assert found.above_random == 132 / 176
    assert (math.isnan(found.share_kept), bool(found.share_reason)) == (True, True)


def test_influence_of_example_1() -> None:
    estimate = estimate_of(from_counts(EXAMPLE_1))
    votes = votes_baseline(estimate)
    labeler, annotators = module._influences(estimate, votes)
    phi = [F(189, 484), F(-153, 176), F(567, 1936), F(-2115, 3872), F(1701, 3872), F(567, 1936)]
    assert sorted(annotators.phi) == pytest.approx(sorted(map(float, phi)), rel=1e-13)  # the sample has its own order
    assert math.fsum(annotators.phi**2) / 30 == pytest.approx(3925773 / 74961920, rel=1e-13)
    assert -(labeler.reach + annotators.reach) == pytest.approx(-5427 / 2992, rel=1e-15)
    assert votes.best is not None
    assert votes.best * annotators.reach == pytest.approx(27 / 44, rel=1e-15)


def test_example_with_five_votes(few_items: None) -> None:
    found = baseline_of(EXAMPLE_5_VOTES)
    assert found.exact == F(557, 1632)
    assert (found.kappa_labeler, found.difference) == (179 / 324, 9305 / 44064)
    assert found.se**2 == pytest.approx(58078456351795 / 11044777527217152, rel=1e-13)
    assert (f"{found.low:.6f}", f"{found.high:.6f}") == ("-0.894395", "0.441167")


def test_bounds_of_example_1() -> None:
    assert [baseline_oracle.bounded(from_counts(EXAMPLE_1).votes, upper) for upper in (False, True)] == [
        F(43, 88),
        F(101, 176),
    ]
    # 15 copies of each item, with one item per pair of votes: the shares of votes and pairs are the same
    votes = [list(pair) for item in from_counts(EXAMPLE_1).votes for pair in _pairs(item)]
    labels = [label for label in from_counts(EXAMPLE_1).suggested for _ in range(3)]
    found = annotator_baseline(dh_kappa(votes * 5, labels * 5).estimate)
    assert (found.value_low, found.value_high) == (43 / 88, 101 / 176)
    assert found.kappa_labeler == 247 / 544
    assert found.method == "two-votes"
    assert found.exact is None
    assert all(math.isnan(value) for value in (found.value, found.difference, found.se, found.share_kept))


def _pairs(item: Sequence[Hashable]) -> list[tuple[Hashable, Hashable]]:
    return [(item[0], item[1]), (item[0], item[2]), (item[1], item[2])]


# Random data


@given(seed=st.integers(0, 10**9), m=st.sampled_from([3, 4, 2, 6]), sizes=st.sampled_from([(3,), (3, 4, 5), (7,)]))
def test_values_against_oracle(seed: int, m: int, sizes: tuple[int, ...]) -> None:
    data = drawn(seed, m, sizes, 9)
    found = annotator_baseline(estimate_of(data))
    annotators = baseline_oracle.annotators(data.votes)
    labeler = baseline_oracle.labeler(data.votes, data.suggested)
    assert baseline_oracle.labeler_by_other_votes(data.votes, data.suggested) == labeler
    assert found.exact == annotators.kappa
    if annotators.kappa is None or labeler.kappa is None:
        assert math.isnan(found.value)
        assert found.reason
        return
    assert found.value == float(annotators.kappa)
    assert found.kappa_labeler == float(labeler.kappa)
    assert found.difference == float(labeler.kappa - annotators.kappa)
    assert found.above_random == float(annotators.above_random)
    assert math.isnan(found.low)
    assert found.reason is not None
    assert "20 items" in found.reason


@given(data=ragged(max_items=40))
def test_items_used_and_values_of_ragged_data(data: Data) -> None:
    """Votes and labels are missing, some categories have no votes or no labels, and items have any number of votes."""
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    found = annotator_baseline(dh_kappa(data.written_votes, data.written_suggested).estimate)
    three = [i for i, item in enumerate(items) if len(item) >= 3]
    k = len({vote for item in items for vote in item})
    if k > 2 and three and (len(three) >= 20 or len(items) < 20):
        items, labels = [items[i] for i in three], [labels[i] for i in three]
        bounds = [baseline_oracle.annotators(items).kappa]
    elif k > 1:
        bounds = [baseline_oracle.bounded(items, upper) for upper in (False, True)]
    if k < 2 or bounds[0] is None:
        assert math.isnan(found.value_low)
        assert found.reason
        return
    labeler = baseline_oracle.labeler(items, labels)
    assert (found.value_low, found.value_high) == (float(bounds[0]), float(bounds[-1] or 0))
    assert (found.kappa_labeler, found.n_items) == (float(labeler.kappa or 0), len(items))
    assert found.method == ("votes" if k == 2 or len(bounds) == 1 else "two-votes")


@pytest.mark.parametrize("seed", range(14))
def test_intervals_against_oracle(seed: int) -> None:
    """Influence is a difference quotient, limits follow docs/methods.md, limits of shares are found by bisection."""
    sizes = [(3,), (4,), (3, 5), (6, 4)][seed % 4]
    data = drawn(seed, 2 + seed % 3, sizes, 24, 0.85 if seed < 12 else 0.4)
    if seed in (4, 5):  # labels of other items: far below annotators
        data = replace(data, suggested=[*data.suggested[1:], data.suggested[0]])
    found = annotator_baseline(estimate_of(data))
    labeler, annotators = (
        baseline_oracle.labeler(data.votes, data.suggested),
        baseline_oracle.annotators(data.votes),
    )
    phi_labeler, phi_annotators, x, y = influences(data)
    z = [p - q for p, q in zip(phi_labeler, phi_annotators, strict=True)]
    reach = 1 / float(1 - labeler.E), 1 / float(1 - annotators.E)
    best = float(baseline_oracle.best([len(item) for item in data.votes])) * reach[1]
    assert found.se == pytest.approx(math.sqrt(math.fsum(value**2 for value in z) / (24 * 23)), rel=1e-9)
    limits = [baseline_oracle.limit(found.difference, z, end, sign) for end, sign in ((-sum(reach), -1), (best, 1))]
    assert [found.low, found.high] == pytest.approx(limits, rel=1e-9)
    above = float(labeler.above_random), float(annotators.above_random)
    not_above = baseline_oracle.limit(above[1], y, -reach[1], -1) <= 0
    assert not_above == (seed >= 12)
    if not_above:
        assert (math.isnan(found.share_kept), bool(found.share_reason)) == (True, True)
        return
    assert found.share_kept == float(labeler.above_random / annotators.above_random)
    shares = [baseline_oracle.share_limit(above, (x, y), reach, best, sign) for sign in (-1, 1)]
    assert (shares[0] < 0) == (seed in (4, 5))
    assert [found.share_low, found.share_high] == pytest.approx(shares, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_against_oracle(seed: int) -> None:
    data = drawn(seed, 3 + seed % 3, (2,), 25, 0.8)
    found = annotator_baseline(estimate_of(data))
    low, high = (baseline_oracle.bounded(data.votes, upper) for upper in (False, True))
    labeler = baseline_oracle.labeler(data.votes, data.suggested)
    assert labeler.kappa is not None
    assert (found.value_low, found.value_high, found.method) == (float(low), float(high), "two-votes")
    C = {j: oracle.mean([oracle.vote_share(item, j) for item in data.votes]) for j in data.categories}
    E = sum(2 * share**3 - share**2 for share in C.values())
    reach = 1 / float(1 - labeler.E) + 1 / float(1 - E)
    limits = []
    for upper, bound, sign in ((True, high, -1), (False, low, 1)):
        phi_labeler, phi_annotators, *_ = influences(data, upper)
        z = [p - q for p, q in zip(phi_labeler, phi_annotators, strict=True)]
        limits.append(baseline_oracle.limit(float(labeler.kappa - bound), z, sign * reach, sign))
    assert [found.low, found.high] == pytest.approx(limits, rel=1e-9)
    assert (math.isnan(found.share_low), bool(found.share_reason), found.reason) == (True, True, None)


@pytest.mark.parametrize("seed", range(8))
def test_limits_of_w_are_zero_at_the_limits_of_shares_only(seed: int) -> None:
    """The values rho between whose limits w is 0 are one interval, also if w is far from normal."""
    estimate = estimate_of(drawn(seed, 2 + seed % 4, (3, 6), 20 + 30 * (seed % 2), 0.6 + 0.04 * seed))
    labeler, annotators = module._influences(estimate, votes_baseline(estimate))
    share = module.Share.of(labeler, annotators, 0.4 * annotators.reach)
    if not share.defined(0.95):
        assert math.isnan(annotator_baseline(estimate).share_kept)
        return
    low, high = share.limits(0.95)
    at_ends = share.gap(low).limits(0.95)[0], share.gap(high).limits(0.95)[1]
    assert at_ends == pytest.approx((0, 0), abs=1e-12)
    grid = np.concatenate([low - np.geomspace(1e-6, 1e4, 60)[::-1], high + np.geomspace(1e-6, 1e4, 60)])
    for rho in grid.tolist():
        below, above = share.gap(rho).limits(0.95)
        assert (below > 0) == (rho < low)
        assert (above < 0) == (rho > high)


# Two categories


@given(seed=st.integers(0, 10**9), least=st.sampled_from([2, 3]))
def test_two_voted_categories_give_fleiss_kappa(seed: int, least: int) -> None:
    """What the labels are does not matter for the baseline; random labels score 0 only if they are among the two."""
    data = drawn(seed, 2, (least, 4), 25)
    random = Random(seed)
    other = [random.choice([1, 2, 3]) for _ in data.votes]
    fleiss = oracle.fleiss(data.votes).kappa
    assert fleiss is not None
    if least == 3:
        assert baseline_oracle.annotators(data.votes).kappa == fleiss
    for labels in (data.suggested, other):
        found = annotator_baseline(dh_kappa(data.votes, labels).estimate)
        expected = baseline_oracle.labeler(data.votes, labels)
        assert expected.kappa is not None
        assert (found.exact, found.n_items, found.method) == (fleiss, 25, "votes")
        assert found.kappa_labeler == float(expected.kappa)
        assert (expected.random == 0) == (3 not in labels or fleiss == 0)
        if not math.isnan(found.share_kept):
            assert found.share_kept == float(expected.above_random / fleiss)


def test_two_votes_of_two_categories_against_oracle() -> None:
    data = drawn(5, 2, (2,), 30, 0.8)
    found = annotator_baseline(estimate_of(data))
    labeler = baseline_oracle.labeler(data.votes, data.suggested)
    phi_labeler, phi_annotators, *_ = influences(data, upper=False)  # three votes of two categories never all differ
    z = [p - q for p, q in zip(phi_labeler, phi_annotators, strict=True)]
    same = oracle.fleiss(data.votes).C_E
    reach = 1 / float(1 - labeler.E) + 1 / float(2 - 2 * same)
    limits = [baseline_oracle.limit(found.difference, z, sign * reach, sign) for sign in (-1, 1)]
    assert [found.low, found.high] == pytest.approx(limits, rel=1e-9)


# Invariance


def numbers(found: AnnotatorBaseline) -> list[float]:
    columns = ("se", "low", "high", "share_kept", "share_low", "share_high")
    return [getattr(found, name) for name in columns]


@pytest.mark.parametrize("sizes", [(3,), (2, 3, 5), (2,)])
def test_order_of_items_and_names_of_categories_do_not_matter(sizes: tuple[int, ...]) -> None:
    data = drawn(3, 4, sizes, 80, 0.8)
    found = annotator_baseline(estimate_of(data))
    shuffled = data.take(Random(1).sample(range(80), 80))
    assert annotator_baseline(estimate_of(shuffled)).to_dict() == found.to_dict()
    renamed = annotator_baseline(estimate_of(data.renamed(["z", "b", "y", "a"])))
    assert (renamed.exact, renamed.value_high, renamed.difference) == pytest.approx(
        (found.exact, found.value_high, found.difference), abs=0, nan_ok=True
    )
    assert numbers(renamed) == pytest.approx(numbers(found), rel=1e-12, nan_ok=True)
    unused = annotator_baseline(dh_kappa(data.votes, data.suggested, categories=[9, 1, 2, 8, 3, 4]).estimate)
    assert unused.exact == found.exact
    assert numbers(unused) == pytest.approx(numbers(found), rel=1e-12, nan_ok=True)


def test_split_rows_do_not_matter() -> None:
    """The same items in one table of patterns, in two that are added, and in one row per item."""
    data = drawn(4, 3, (2, 3, 4), 200, 0.8)
    whole = tally(data.votes, data.suggested)
    halves = tally(data.votes[:90], data.suggested[:90]) + tally(data.votes[90:], data.suggested[90:])
    found = [annotator_baseline(dh_kappa(given).estimate) for given in (whole, halves)]
    found.append(annotator_baseline(estimate_of(data)))
    doubled = annotator_baseline(dh_kappa(list(data.votes) * 2, list(data.suggested) * 2).estimate)
    for one, other in pairwise(found):
        assert one.exact == other.exact == doubled.exact
        assert numbers(one) == pytest.approx(numbers(other), rel=1e-12)
    assert doubled.se == pytest.approx(
        found[0].se * math.sqrt((found[0].n_items - 1) / (doubled.n_items - 1)), rel=1e-12
    )


def test_items_with_two_votes_do_not_matter_if_enough_have_three() -> None:
    three, two = drawn(6, 3, (3, 4), 40), drawn(7, 3, (2,), 60)
    together = annotator_baseline(dh_kappa([*three.votes, *two.votes], [*three.suggested, *two.suggested]).estimate)
    assert together == annotator_baseline(estimate_of(three))
    assert together.n_items == 40


# Real data


@pytest.mark.parametrize(
    ("name", "labeler", "expected"),
    [
        ("davidson", "lexicon", ("-0.501", "-0.511", "-0.492")),
        ("crows_pairs", "bias_type", ("0.177", "0.166", "0.187")),
        ("dynasent_sst_dev_revalidated", "sst", ("-0.055", "-0.084", "-0.027")),
    ],
)
def test_difference_on_real_data(name: str, labeler: str, expected: tuple[str, str, str], shared_data: Path) -> None:
    table = table_of(shared_data / name)
    found = annotator_baseline(dh_kappa(table.votes, table.suggested(labeler)).estimate)
    assert tuple(f"{value:.3f}" for value in (found.difference, found.low, found.high)) == expected
    if labeler == "sst":
        assert f"{found.share_kept:.2f}" == "0.91"


def test_labelers_share_the_votes_of_real_data(shared_data: Path) -> None:
    table = table_of(shared_data / "dynasent_r1_dev")
    estimates = [dh_kappa(table.votes, table.suggested(who)).estimate for who in ("model", "stars", "gold_majority")]
    assert len({votes_baseline(estimate).kappas for estimate in estimates}) == 1


# The simulations of validation/baseline_coverage.py


@pytest.mark.parametrize(("m", "votes"), [(4, (3, 7)), (6, (6, 6)), (2, (2, 2)), (3, (2, 2))])
def test_simulated_samples_against_the_package(m: int, votes: tuple[int, int]) -> None:
    cell = coverage.Cell(60, votes, m, 0.88, "uniform", "equal")
    chances = coverage.model(cell)
    assert chances is not None
    rng = np.random.default_rng(8)
    state = rng.choice(len(chances.truth), 60, p=chances.truth)
    answers = [simulation.draw(rng, chances.votes, state) for _ in range(votes[1])]
    labels = simulation.draw(rng, chances.labels, state)
    N = rng.integers(votes[0], votes[1] + 1, 60)
    items = [[answer[i] for answer in answers[: N[i]]] for i in range(60)]
    found = annotator_baseline(dh_kappa(items, labels).estimate)
    assert found.method == ("votes" if m != 3 else "two-votes")
    counts = np.array([[item.count(j) for j in range(m)] for item in items], np.float64)
    seen = coverage.summarize(counts[None], np.eye(m)[labels][None], votes[0], [found.share_low, found.share_high])
    limits = float(seen.difference.low[0]), float(seen.difference.high[0])
    assert limits == pytest.approx((found.low, found.high), rel=1e-9)  # some hundred roundings
    if m != 3:
        assert seen.difference.se[0] == pytest.approx(found.se, rel=1e-9)
        assert [seen.shares[0].low[0], seen.shares[1].high[0]] == pytest.approx([0, 0], abs=1e-9)
        assert seen.above_random[0] > 0


@pytest.mark.parametrize("kind", coverage.KINDS)
def test_true_values_of_the_simulated_models(kind: str) -> None:
    """The model has the difference or share that it is to have; a large sample is within four standard errors."""
    cell = coverage.Cell(100, (3, 3), 4, None, "skewed", kind)
    chances = coverage.model(cell)
    assert chances is not None
    expected = {"equal": 0, "0.1 above": 0.1, "0.05 below": -0.05}
    if kind in expected:
        assert chances.difference == pytest.approx(expected[kind], abs=1e-12)
    else:
        assert chances.share == pytest.approx(0.8, abs=1e-12)
    rng = np.random.default_rng(9)
    state = rng.choice(len(chances.truth), 100_000, p=chances.truth)
    votes = np.column_stack([simulation.draw(rng, chances.votes, state) for _ in range(3)])
    found = annotator_baseline(dh_kappa(votes, simulation.draw(rng, chances.labels, state)).estimate)
    assert found.difference == pytest.approx(chances.difference, abs=4 * found.se)
    assert found.share_kept == pytest.approx(chances.share, abs=(found.share_high - found.share_low))
