"""Precision, recall and F1 against exact fractions, other libraries and the intervals that they reduce to."""

import math
from collections.abc import Hashable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dhkappa import Kappa, audit, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.stats.any_time import any_time_level
from dhkappa.stats.clusters import UNKNOWN
from dhkappa.stats.other_annotators import _with_three_votes
from dhkappa.stats.rates import Rate, Rates
from dhkappa.stats.votes_baseline import with_votes
from expect import expect_error
from rates_oracle import Mean, Rated, rated
from strategies import Data, from_counts, ragged

F = Fraction
EXAMPLES = {
    1: from_counts("300/1 210/1 030/2 111/2 003/3 030/3"),
    2: from_counts("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1"),
    3: from_counts("20/1 20/1 11/1 02/2 02/1"),
}
TEN_DIGITS: dict[str, Any] = {"rel": 1e-12, "abs": 1e-14}  # floats: shares of votes are rounded


def kappa_of(data: Data, **given: Any) -> Kappa:
    return dh_kappa(tally(data.votes, data.suggested, categories=data.categories, **given))


def rates_of(data: Data, level: float = 0.95) -> Rates:
    return kappa_of(data).rates(level)


def close(value: float, exact: Fraction | None) -> bool:
    return math.isnan(value) if exact is None else value == pytest.approx(float(exact), **TEN_DIGITS)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (
            1,
            {
                "precision": [F(5, 6), F(2, 3), F(1, 2)],
                "recall": [F(5, 6), F(1, 2), F(3, 4)],
                "f1": [F(5, 6), F(4, 7), F(3, 5)],
                "annotator": [F(2, 3), F(3, 4), F(3, 4)],
                "precision_variance": [F(1, 36), F(1, 9), F(1, 4)],
                "recall_variance": [F(19, 432), F(5, 48), F(9, 64)],
                "recall_share": [F(3, 7), F(7, 20), F(7, 10)],
                "agreement": F(2, 3),
                "balanced": F(25, 36),
                "agreement_variance": F(4, 135),
            },
        ),
        (
            2,
            {
                "precision": [F(3, 4), F(3, 4), F(1)],
                "recall": [F(1), F(3, 7), F(4, 5)],
                "f1": [F(6, 7), F(6, 11), F(8, 9)],
                "annotator": [F(2, 3), F(10, 21), F(4, 5)],
                "precision_variance": [F(11, 432), None, None],
                "recall_variance": [F(0), F(48, 343), F(64, 625)],
                "recall_share": [F(7, 23), F(435, 1127), F(13, 17)],
                "agreement": F(19, 24),
                "balanced": F(26, 35),
            },
        ),
        (
            3,
            {
                "precision": [F(5, 8), F(1)],
                "recall": [F(1), F(2, 5)],
                "f1": [F(10, 13), F(4, 7)],
                "annotator": [F(4, 5), F(4, 5)],
                "precision_variance": [F(11, 192), None],
                "recall_variance": [F(0), F(84, 625)],
                "recall_share": [F(17, 45), F(17, 45)],
                "agreement": F(7, 10),
                "balanced": F(7, 10),
                "agreement_variance": F(1, 25),
            },
        ),
    ],
)
def test_worked_examples(number: int, expected: dict[str, Any]) -> None:
    data = EXAMPLES[number]
    items, categories = rated(data.votes, data.suggested), data.categories
    exact: dict[str, Any] = {
        name: [getattr(items, name)(j).value for j in categories] for name in ("precision", "recall", "f1")
    }
    exact |= {"annotator": [items.annotator(j) for j in categories], "agreement": items.agreement().value}
    exact |= {
        f"{name}_variance": [getattr(items, name)(j).variance for j in categories] for name in ("precision", "recall")
    }
    exact |= {"recall_share": [items.recall(j).share for j in categories], "balanced": items.balanced(categories)[0]}
    exact["agreement_variance"] = items.agreement().variance
    assert {name: exact[name] for name in expected} == expected
    found = rates_of(data)
    for name in ("precision", "recall", "f1", "annotator"):
        assert all(map(close, found.table.column(name), expected[name]))
    for name in ("precision", "recall"):
        assert all(
            close(se**2, one)
            for se, one in zip(found.table.column(f"{name}_se"), exact[f"{name}_variance"], strict=True)
        )
    assert close(found.agreement.value, expected["agreement"])
    assert close(found.balanced_accuracy.value, expected["balanced"])


Limits = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("number", "times", "recall", "precision"),
    [
        (
            1,
            1,
            [(0.153221, 0.999069), (0.028752, 0.971248), (0.036240, 0.999777)],
            [(0.151598, 0.989254), (0.083711, 0.984793), (0.012579, 0.987421)],
        ),
        (
            2,
            1,
            [(0.325399, 1), (0.011642, 0.962952), (0.038281, 0.999930)],
            [(0.276761, 0.961998), (0.025, 0.977468), (0.025, 1)],
        ),
        (3, 1, [(0.248186, 1), (0.009633, 0.952356)], [(0.157131, 0.951916), (0.025, 1)]),
        (
            1,
            5,
            [(0.564266, 0.956268), (0.238856, 0.761144), (0.381439, 0.946925)],
            [(0.578155, 0.929536), (0.388560, 0.865394), (0.187086, 0.812914)],
        ),
    ],
)
def test_limits_of_worked_examples(number: int, times: int, recall: Limits, precision: Limits) -> None:
    table = rates_of(EXAMPLES[number].take(list(range(len(EXAMPLES[number].votes))) * times)).table
    for name, expected in (("recall", recall), ("precision", precision)):
        found = zip(table.column(f"{name}_low"), table.column(f"{name}_high"), strict=True)
        assert [*map(list, found)] == [pytest.approx(limits, abs=5e-7) for limits in expected]  # printed digits


@given(ragged())
def test_rates_are_those_of_the_fractions(data: Data) -> None:
    items, found = rated(data.votes, data.suggested), rates_of(data)
    assert found.n_items == len(items.votes)
    assert found.n_one_vote == sum(len(votes) == 1 for votes in items.votes)
    for row in found.table:
        j = row["category"]
        assert row["items"] == sum(label == j for label in items.labels)
        assert close(row["votes"], sum(items.c(j), F(0)))
        assert close(row["annotator"], items.annotator(j))
        for name in ("precision", "recall", "f1"):
            mean: Mean = getattr(items, name)(j)
            assert close(row[name], mean.value)
            assert mean.value is None or close(row[f"{name}_se"] ** 2, mean.variance)
            assert mean.value is None or 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 1
    assert close(found.agreement.value, items.agreement().value)
    if items.votes:
        value, moves = items.balanced(data.categories)
        assert close(found.balanced_accuracy.value, value)
        if len(items.votes) > 1:
            assert close(found.balanced_accuracy.se**2, items.design_variance(moves))
            assert close(found.agreement.se**2, items.agreement().variance)


@pytest.mark.parametrize("number", EXAMPLES)
@pytest.mark.parametrize("name", ["precision", "recall", "f1", "balanced"])
def test_influence_is_the_derivative(number: int, name: str) -> None:
    """By how much an item moves a rate is the derivative by its weight, and these sum to 0."""
    data, step = EXAMPLES[number], F(1, 10**12)
    items = rated(data.votes, data.suggested)
    n = len(items.votes)
    weights = [[1 + step * (i == k) for i in range(n)] for k in range(n)]
    moved = [Rated(items.votes, items.labels, own, items.strata) for own in weights]

    def value(of: Rated, j: Hashable) -> Fraction:
        found = of.balanced(data.categories)[0] if name == "balanced" else getattr(of, name)(j).value
        assert found is not None
        return F(found)

    for j in data.categories:
        moves = items.balanced(data.categories)[1] if name == "balanced" else getattr(items, name)(j).moves
        assert sum(moves) == 0
        for own, move in zip(moved, moves, strict=True):
            assert abs((value(own, j) - value(items, j)) / step - move) < F(1, 10**9)


def single_votes(n: int = 60, m: int = 4) -> Data:
    draw = Random(3)
    votes = [draw.randrange(m) for _ in range(n)]
    labels = [vote if draw.random() < 0.7 else draw.randrange(m) for vote in votes]
    return Data(tuple(range(m)), [[vote] for vote in votes], labels)


def test_single_votes_give_the_rates_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    data = single_votes()
    truth = [item[0] for item in data.votes]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(truth, data.suggested, labels=data.categories)
    found = rates_of(data)
    assert found.table.column("precision") == pytest.approx(list(precision))
    assert found.table.column("recall") == pytest.approx(list(recall))
    assert found.table.column("f1") == pytest.approx(list(f1))
    assert found.agreement.value == pytest.approx(metrics.accuracy_score(truth, data.suggested))
    assert found.balanced_accuracy.value == pytest.approx(metrics.balanced_accuracy_score(truth, data.suggested))


@pytest.mark.parametrize("copies", [1, 3])
def test_limits_where_annotators_agree_are_those_of_clopper_and_pearson(copies: int) -> None:
    data = single_votes()
    data = Data(data.categories, [[item[0]] * copies for item in data.votes], data.suggested)
    truth = [item[0] for item in data.votes]
    found = rates_of(data)
    for row in found.table:
        j = row["category"]
        right = sum(a == b == j for a, b in zip(truth, data.suggested, strict=True))
        for name, n in (("precision", list(data.suggested).count(j)), ("recall", truth.count(j))):
            expected = stats.binomtest(right, n).proportion_ci(0.95, "exact")
            assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx((expected.low, expected.high), abs=1e-12)
    right = sum(map(int.__eq__, truth, data.suggested))  # type: ignore[arg-type]
    expected = stats.binomtest(right, len(truth)).proportion_ci(0.95, "exact")
    assert (found.agreement.low, found.agreement.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(ragged(), st.randoms(use_true_random=False))
def test_rates_do_not_depend_on_order_names_patterns_or_unused_categories(data: Data, random: Random) -> None:
    whole = [*rates_of(data).table]
    order = random.sample(range(len(data.votes)), len(data.votes))
    assert equal([*rates_of(data.take(order)).table], whole)
    cut = random.randrange(len(order) + 1)
    parts = [
        tally(of.votes, of.suggested, categories=data.categories)
        for of in (data.take(order[:cut]), data.take(order[cut:]))
    ]
    assert equal([*dh_kappa(parts[0] + parts[1]).rates().table], whole)
    names = random.sample(range(100), len(data.categories))
    renamed = [*rates_of(data.renamed(names)).table]
    assert equal([row | {"category": None} for row in renamed], [row | {"category": None} for row in whole])
    more = Data((*data.categories, "unused"), data.votes, data.suggested)
    *known, unused = rates_of(more).table
    assert equal(known, whole)
    assert unused["reason"] == "Never suggested. No votes for this category."


def equal(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> bool:
    """Bit for bit, with NaN equal to NaN."""
    return repr(left) == repr(right)


@given(ragged())
def test_precision_is_the_share_of_votes_of_the_confusion_table(data: Data) -> None:
    several = [i for i, item in enumerate(data.votes) if sum(vote is not None for vote in item) != 1]
    kappa = kappa_of(data.take(several))
    assume(kappa.exact is not None)
    shares = {row["suggested"]: row["vote_share"] for row in kappa.confusion() if row["agreed"] == row["suggested"]}
    for row in kappa.rates().table:
        assert not row["items"] or row["precision"] == pytest.approx(shares.get(row["category"], 0.0), abs=1e-14)


def test_recalls_of_two_categories_are_cohens_kappa_on_another_scale() -> None:
    items = rated(EXAMPLES[3].votes, EXAMPLES[3].suggested)
    n = len(items.votes)
    C, L = ([sum(of(j), F(0)) / n for j in (1, 2)] for of in (items.c, items.q))
    po, pe = items.agreement().value, sum(a * b for a, b in zip(C, L, strict=True))
    recalls = [items.recall(j).value for j in (1, 2)]
    assert po is not None
    assert recalls[0] + recalls[1] - 1 == (po - pe) / (2 * C[0] * C[1])  # type: ignore[operator]
    found = kappa_of(EXAMPLES[3]).rates(positive=2)
    assert found.sensitivity is not None
    assert found.specificity is not None
    assert (found.sensitivity.value, found.specificity.value) == pytest.approx((0.4, 1.0))
    assert found.sensitivity.low == pytest.approx(0.009633, abs=5e-7)


def designed(rng: int = 5) -> tuple[Data, list[Fraction], list[str]]:
    """Items drawn by label, with one to three votes and a weight for each label."""
    draw = Random(rng)
    votes: list[list[Hashable]] = []
    labels: list[Hashable] = []
    for label, n in (("a", 30), ("b", 12), ("c", 9)):
        for _ in range(n):
            truth = label if draw.random() < 0.8 else draw.choice("abc")
            votes.append([truth if draw.random() < 0.8 else draw.choice("abc") for _ in range(draw.choice((1, 2, 3)))])
            labels.append(label)
    weights = [{"a": F(10), "b": F(3, 2), "c": F(1, 2)}[str(label)] for label in labels]
    return Data(("a", "b", "c"), votes, labels), weights, [str(label) for label in labels]


@pytest.mark.parametrize("stratified", [True, False])
def test_weights_and_strata(stratified: bool) -> None:
    data, weights, strata = designed()
    chosen: dict[str, Any] = {"sample_weight": [float(w) for w in weights]} | ({"strata": strata} if stratified else {})
    found = dh_kappa(tally(data.votes, data.suggested, categories=data.categories, **chosen)).rates()
    direct = dh_kappa(data.object_votes, data.suggested, **chosen).rates()
    items = rated(data.votes, data.suggested, weights, strata if stratified else None)
    for row, other in zip(found.table, direct.table, strict=True):
        j = row["category"]
        assert other["recall_low"] == pytest.approx(row["recall_low"], rel=1e-12)
        for name in ("precision", "recall", "f1"):
            assert close(row[name], getattr(items, name)(j).value)
        assert close(row["precision_se"] ** 2, items.precision(j).variance)
        assert close(row["annotator"], items.annotator(j))
        variance, value = items.design_variance(items.recall(j).moves), items.recall(j).value
        assert value is not None
        assert close(row["recall_se"] ** 2, variance)
        n, shares = items.recall(j).n, items.recall_shares(j)
        for name, share, worst, P in zip(
            ("recall_low", "recall_high"), shares, (F(0), F(1)), (0.025, 0.975), strict=True
        ):
            assert row[name] == pytest.approx(limit(value, variance, n, share, worst, P), rel=1e-9)
        assert math.isnan(row["f1_low"])
    po = items.agreement()
    assert close(found.agreement.value, po.value)
    assert close(found.agreement.se**2, items.design_variance(po.moves))
    share = max(map(items.weight_of_one_more, "abc")) / sum(weights)
    assert po.value is not None
    low = limit(po.value, items.design_variance(po.moves), len(items.votes), share, F(0), 0.025)
    assert found.agreement.low == pytest.approx(low, rel=1e-9)


def limit(r: Fraction, variance: Fraction, n: int, s: Fraction, worst: Fraction, P: float) -> float:
    """The limit of a mean with one worst or best item added, by its formulas."""
    mu = (r + s * worst) / (1 + s)
    v = n * (n - 1) * variance / ((n + 1) * (n + 2)) + s * s * (worst - r) ** 2 / ((1 + s) ** 2 * (1 + 2 * s))
    nu = mu * (1 - mu) / v - 1
    found = float(stats.beta.ppf(P, float(mu * nu), float((1 - mu) * nu)))
    cap: float = 0.025 ** float(s)
    return min(found, cap) if P < 0.5 else max(found, 1 - cap)


@pytest.mark.parametrize("light", [1e-9, 1e-150, 1e-300])
def test_limits_exist_for_items_with_almost_no_weight(light: float) -> None:
    """A category with votes on such items only may have been missed on any other item: the limits say nothing."""
    votes, labels = [["a", "a"], ["b", "b"], ["b", "b"], ["c", "c"]] * 3, list("abbc") * 3
    found = dh_kappa(votes, labels, sample_weight=[light, 1, 1, 1] * 3).rates().table.to_dicts()[0]
    assert (found["precision"], found["recall"]) == (1, 1)
    assert found["precision_low"] > 0.2
    assert found["recall_low"] == pytest.approx(0, abs=1e-9)
    assert (found["recall_high"], found["precision_high"]) == (1, 1)


@given(ragged())
def test_equal_weights_and_one_stratum_change_only_the_variance_of_recall(data: Data) -> None:
    assume(len(data.votes) > 0)
    items = rated(data.votes, data.suggested)
    for j in data.categories:
        if any(items.c(j)) and len({*items.labels} - {j}) > 0:
            assert items.recall_shares(j)[0] == items.recall(j).share


def test_a_pool_has_rates_without_limits_and_without_single_votes() -> None:
    data = EXAMPLES[2]
    found = dh_kappa(tally(data.votes, data.suggested, categories=data.categories), pool=1000).rates()
    assert (found.n_items, found.n_one_vote) == (5, 0)
    assert not any(math.isnan(value) for value in found.table.column("precision"))
    assert all(math.isnan(value) for value in found.table.column("recall_low"))
    assert {*found.table.column("reason")} == {"Rates of a sample from a pool have no limits."}
    assert found.agreement.reason == "Rates of a sample from a pool have no limits."


def test_rates_beside_kappa_say_how_many_items_they_use() -> None:
    table = kappa_of(EXAMPLES[2]).by_category()
    assert table.column("items") == [3, 1, 1]
    assert table.column("rate_items") == [4, 1, 1]
    assert table.column("recall") == rates_of(EXAMPLES[2]).table.column("recall")
    weighted = dh_kappa(
        tally(EXAMPLES[2].votes, EXAMPLES[2].suggested, categories=(1, 2, 3)), weights="linear"
    ).by_category()
    assert all(math.isnan(value) for value in weighted.column("precision"))
    assert {*weighted.column("rate_reason")} == {"Rates do not take agreement weights."}


def test_rates_exist_where_kappa_does_not() -> None:
    kappa = dh_kappa(single_votes().votes, single_votes().suggested)
    assert math.isnan(kappa.value)
    assert (kappa.rates().n_items, kappa.rates().n_one_vote) == (60, 60)
    assert all(math.isnan(value) for value in kappa.rates().table.column("annotator"))
    empty = dh_kappa(tally([], [], categories=["a"])).rates()
    assert empty.n_items == 0
    assert empty.agreement.reason == "No item has a vote and a suggested label."


def test_notes_name_what_weakens_rates() -> None:
    assert [note.code for note in rates_of(EXAMPLES[2]).notes] == [
        "rates-one-vote",
        "rates-few-votes",
        "rates-annotators-disagree",
    ]


def test_what_rates_refuse() -> None:
    three, two = kappa_of(EXAMPLES[1]), kappa_of(EXAMPLES[3])
    with expect_error("not-two-categories", "positive"):
        three.rates(positive=1)
    with expect_error("category-not-found", "positive"):
        two.rates(positive="x")
    with expect_error("invalid-confidence-level", "confidence_level"):
        two.rates(1.5)
    with expect_error("metric-not-supported"):
        fleiss_kappa(EXAMPLES[1].votes).rates()
    with expect_error("metric-not-supported"):
        dh_kappa(EXAMPLES[1].votes, EXAMPLES[1].suggested, categories=(1, 2, 3), weights="linear").rates()


def test_json_has_none_for_nan() -> None:
    found = kappa_of(EXAMPLES[3]).rates(positive=2).to_dict()
    assert found["categories"][1]["precision_se"] is None
    assert found["specificity"]["value"] == 1.0
    assert found["balanced_accuracy"]["low"] is None
    assert Rate(math.nan, 0.0, 1.0, 0.0, 1.0).to_dict()["value"] is None


SIM = simulate(240, labelers={"llm": 0.8}, annotators=4, rng=1)
VOTES = np.where(np.arange(240)[:, None] < 40, np.array(SIM.votes)[:, :1].repeat(4, axis=1), SIM.votes).astype(object)
VOTES[:40, 1:] = None  # items with one vote
DOCUMENTS = np.repeat(np.arange(80), 3)
RATES = ("precision", "recall", "f1")


@pytest.mark.parametrize("designed", [False, True])
def test_clusters_leave_the_rates_and_take_their_limits(designed: bool) -> None:
    strata: dict[str, Any] = {"strata": ["x"] * 120 + ["y"] * 120, "pool": {"x": 500, "y": 9000}} if designed else {}
    alone, grouped = (
        dh_kappa(VOTES, SIM.suggested["llm"], clusters=clusters, **strata) for clusters in (None, DOCUMENTS)
    )
    found, known = grouped.rates(), alone.rates()
    for name in RATES:
        assert [*found.table.column(name)] == pytest.approx([*known.table.column(name)], rel=1e-12)
        for end in ("low", "high", "se"):
            assert all(math.isnan(value) for value in found.table.column(f"{name}_{end}"))
    assert found.agreement.value == pytest.approx(known.agreement.value, rel=1e-12)
    assert found.balanced_accuracy.value == pytest.approx(known.balanced_accuracy.value, rel=1e-12)
    assert {row["reason"] for row in found.table} == {UNKNOWN} == {found.agreement.reason}
    assert math.isnan(found.balanced_accuracy.se)
    assert all(math.isnan(row[end]) for row in grouped.by_category() for end in ("recall_low", "precision_high", "low"))


def test_items_with_one_vote_may_be_the_only_ones_in_a_cluster_with_others() -> None:
    clusters = [*range(39), 40, *range(40, 240)]  # an item with one vote, and one with more
    assert not dh_kappa(VOTES, SIM.suggested["llm"], clusters=clusters).estimate.sample.clustered
    assert dh_kappa(VOTES, SIM.suggested["llm"], clusters=clusters).rates().agreement.reason == UNKNOWN


def test_limits_beside_intervals_that_hold_at_every_look_have_their_level() -> None:
    kappa = audit(VOTES, SIM.suggested, any_time=True, progress=False).kappas["llm"]
    level = any_time_level(200, 0.95)
    assert kappa.rates().confidence_level == level
    assert kappa.by_category().column("recall_low") == dh_kappa(VOTES, SIM.suggested["llm"]).rates(level).table.column(
        "recall_low"
    )


def test_a_changed_sample_has_no_rows_of_another() -> None:
    sample = dh_kappa(VOTES, SIM.suggested["llm"]).estimate.sample
    assert sample.rows is not None
    assert with_votes(sample, 3).rows is None
    assert _with_three_votes(sample).rows is None
