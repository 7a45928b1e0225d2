"""Intervals for other annotators against the oracle, their invariances, and what is refused."""

import copy
import math
import pickle  # nosec B403
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import other_annotators_oracle as oracle
from dhkappa import ConfidenceInterval, DataError, Dataset, Kappa, dh_kappa, fleiss_kappa, simulate, tally
from dhkappa.core.items import ItemVotes
from dhkappa.stats.annotator_variance import (
    Panel,
    added_annotators,
    annotator_variance,
    fleiss_pulls,
    kappa_pulls,
    panel_of,
    rows_of,
    two_way_limits,
    typical_pulls,
)
from dhkappa.stats.kappa import estimate_fleiss
from dhkappa.stats.sample import sample_of
from other_annotators_oracle import as_items, close, drawn

F = Fraction
VOTES = ["0000", "0010", "1111", "1101", "2220", "1122", "2202", "0110"]
LABELS = [0, 0, 1, 1, 2, 2, 2, 0]


def item_votes_of(kappa: Kappa) -> ItemVotes:
    assert kappa._votes is not None
    found = kappa._votes.read()
    assert found is not None
    return found


def panel(kappa: Kappa) -> Panel:
    votes = item_votes_of(kappa)
    return panel_of(votes, rows_of(votes, None, kappa.estimate))


def random(kappa: Kappa, level: float = 0.95) -> ConfidenceInterval:
    return kappa.confidence_interval(level, annotators="random")


# Against the oracle


def test_worked_example() -> None:
    kappa = dh_kappa(np.array([list(map(int, votes)) for votes in VOTES]), LABELS)
    found = annotator_variance(panel(kappa), kappa_pulls(panel(kappa), kappa.estimate))
    assert kappa.exact == F(159, 287)
    assert close(found.before, F(166438912, 6784652161))
    assert close(found.after, F(775331840, 142477695381))
    down, up = added_annotators(kappa.estimate)
    assert (round(down.u, 6), round(up.u, 6)) == (-0.613240, 0.433561)
    fixed = kappa.confidence_interval()
    low, high = two_way_limits(kappa.value, (fixed.low, fixed.high), kappa.se, 7, found, 0.95, (down, up))
    assert (round(float(low), 6), round(float(high), 6)) == (-0.178268, 0.992144)


@pytest.mark.parametrize("seed", range(6))
def test_kappa_equals_the_oracle(seed: int) -> None:
    votes, labels = drawn(seed, m=2 + seed % 3, A=10 + seed)
    kappa, known = dh_kappa(votes, labels), oracle.kappa(as_items(votes), labels)
    assert kappa.exact == known.kappa
    exact = oracle.variance(as_items(votes), known.u)
    found = annotator_variance(panel(kappa), kappa_pulls(panel(kappa), kappa.estimate))
    assert close(found.before, exact.B0)
    assert close(found.after, exact.B1)
    assert close(found.effective, exact.effective)
    down, up = added_annotators(kappa.estimate)
    assert close(down.u, known.down)
    assert close(up.u, known.up)
    for level in (0.8, 0.95, 0.99):
        low, high = kappa.confidence_interval(level)
        w = (0.25, float(known.down)), (0.25, float(known.up))
        V = kappa.se**2
        limits = oracle.limits(kappa.value, low, high, V, kappa.n_items, exact, w, level)[:2]
        assert tuple(random(kappa, level)) == pytest.approx(limits, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_fleiss_equals_the_oracle(seed: int) -> None:
    votes, _ = drawn(seed, m=2 + seed % 3, A=11)
    kappa, known = fleiss_kappa(votes), oracle.fleiss(as_items(votes))
    assert kappa.exact == known.kappa
    exact = oracle.variance(as_items(votes), known.u)
    found = annotator_variance(panel(kappa), fleiss_pulls(panel(kappa), kappa.estimate))
    assert close(found.before, exact.B0)
    assert close(found.after, exact.B1)
    low, high = kappa.confidence_interval(method="wald")
    added = (0.25, float(known.down)), (0.0, 0.0)
    limits = oracle.limits(kappa.value, low, high, kappa.se**2, kappa.n_items, exact, added)[:2]
    assert tuple(random(kappa)) == pytest.approx(limits, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_typical_annotator_equals_the_oracle(seed: int) -> None:
    votes, labels = drawn(seed, N=4, m=3 + seed % 2, A=12)
    kappa, known = dh_kappa(votes, labels), oracle.typical(as_items(votes))
    found = annotator_variance(panel(kappa), typical_pulls(panel(kappa), kappa.estimate))
    exact = oracle.variance(as_items(votes), known.u)
    assert close(found.before, exact.B0)
    assert close(found.after, exact.B1)


def test_typical_annotator_of_two_categories_is_fleiss() -> None:
    votes, labels = drawn(5, m=2)
    kappa = dh_kappa(votes, labels)
    both = panel(kappa)
    of_fleiss = fleiss_pulls(both, estimate_fleiss(kappa.estimate.sample))
    assert typical_pulls(both, kappa.estimate) == pytest.approx(of_fleiss, abs=1e-15)


# The same bits, however the votes arrive


def long_table(votes: Any, labels: Sequence[Any]) -> pd.DataFrame:
    rows = [
        {"item": item, "annotator": f"ann{a:02}", "label": f"c{vote}", "suggested": f"c{labels[item]}"}
        for item, row in enumerate(votes.tolist())
        for a, vote in enumerate(row)
        if vote is not None
    ]
    return pd.DataFrame(rows)


def test_every_input_gives_the_same_bits(tmp_path: Any) -> None:
    votes, labels = drawn(3, n=80)
    text = np.array([[None if vote is None else f"c{vote}" for vote in row] for row in votes.tolist()], object)
    names = [f"ann{a:02}" for a in range(votes.shape[1])]
    suggested = [f"c{label}" for label in labels]
    wide = pd.DataFrame(text, columns=names).assign(suggested=suggested)
    long = long_table(votes, labels)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    long.to_csv(tmp_path / "long.csv", index=False)
    roles: dict[str, Any] = {"suggested": "suggested", "annotators": "ann*"}
    with duckdb.connect() as connection:
        found = [
            dh_kappa(text, suggested),
            dh_kappa(pd.DataFrame(text, columns=names), suggested),
            dh_kappa(wide, **roles),
            dh_kappa(connection.from_df(wide), **roles),
            dh_kappa(connection.from_df(long)),
            dh_kappa(long),
            dh_kappa(long.sample(frac=1, random_state=1)),
            dh_kappa(Dataset(str(tmp_path / "wide.csv"), **roles)),
            dh_kappa(str(tmp_path / "long.csv")),
        ]
        assert {random(kappa) for kappa in found} == {random(found[0])}
    fleiss = [fleiss_kappa(text), fleiss_kappa(Dataset(wide, **roles)), fleiss_kappa(long.drop(columns="suggested"))]
    assert {random(kappa) for kappa in fleiss} == {random(fleiss[0])}


def test_order_and_names_do_not_matter() -> None:
    votes, labels = drawn(8, n=60)
    plain = random(dh_kappa(votes, labels))
    order, columns = np.random.default_rng(1).permutation(60), np.random.default_rng(2).permutation(votes.shape[1])
    moved = random(dh_kappa(votes[order][:, columns], [labels[item] for item in order]))
    assert moved == plain
    letters = {None: None, 0: "x", 1: "y", 2: "z"}
    renamed = np.array([[letters[vote] for vote in row] for row in votes.tolist()], object)
    assert tuple(random(dh_kappa(renamed, [letters[label] for label in labels]))) == tuple(plain)


def test_equal_rows_merged_give_the_same_bits() -> None:
    base, few = drawn(2, n=8, A=10, N=6)
    votes, labels = np.concatenate([base] * 6), few * 6
    kappa = dh_kappa(votes, labels)
    merged = item_votes_of(kappa).merged()
    assert merged.items is not None
    both = panel_of(merged, sample_of(merged.labeled_patterns("labeler")))
    single = panel(kappa)
    assert annotator_variance(both, kappa_pulls(both, kappa.estimate)) == annotator_variance(
        single, kappa_pulls(single, kappa.estimate)
    )


def test_annotators_without_an_eligible_vote_do_not_count() -> None:
    votes, labels = drawn(4)
    more = np.concatenate([votes, np.full((len(votes), 5), None, object)], axis=1)
    assert tuple(random(dh_kappa(more, labels))) == tuple(random(dh_kappa(votes, labels)))


# Rules


def test_alike_annotators_hardly_widen_the_interval() -> None:
    source = Random(1)
    votes, labels = np.full((500, 60), None, object), [item % 3 for item in range(500)]
    for item, label in enumerate(labels):
        for a in source.sample(range(60), 3):
            votes[item, a] = label if source.random() < 0.8 else source.randrange(3)
    kappa = dh_kappa(votes, labels)
    fixed, wider = kappa.confidence_interval(), random(kappa)
    assert wider.notes == ()
    assert 1 < (wider.high - wider.low) / (fixed.high - fixed.low) < 1.5


@pytest.mark.parametrize(("A", "codes"), [(5, ["few-annotators"]), (9, ["few-annotators"]), (10, [])])
def test_few_annotators_are_noted(A: int, codes: list[str]) -> None:
    data = simulate(300, annotators=A, rng=1)
    found = random(dh_kappa(data.votes, data.suggested["labeler"]))
    assert not math.isnan(found.low)
    assert [note.code for note in found.notes] == codes


@pytest.mark.parametrize("of", ["kappa", "fleiss"])
def test_fewer_than_five_annotators_have_a_range(of: str) -> None:
    data = simulate(100, annotators=4, rng=1)
    votes, labels = np.array(data.votes, object), data.suggested["labeler"]
    kappa = dh_kappa(votes, labels) if of == "kappa" else fleiss_kappa(votes)
    each = [np.delete(votes, a, axis=1) for a in range(4)]
    values = [(dh_kappa(one, labels) if of == "kappa" else fleiss_kappa(one)).value for one in each]
    found = random(kappa)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason is not None
    assert (
        f"Only 4 annotators: nothing here says what others would have voted. Without one of them, kappa would be "
        f"{min(values):.2f} to {max(values):.2f}; this is a range, not a confidence interval." == found.reason
    )


def test_two_annotators_have_no_range() -> None:
    found = random(dh_kappa(np.array([["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]]), ["a", "b", "a", "a"]))
    assert found.reason is not None
    assert found.reason.endswith("Without one of them, kappa is undefined.")


def test_one_annotator_with_most_votes_is_refused() -> None:
    votes = np.full((60, 40), None, object)
    for item in range(60):
        votes[item, 0] = "ab"[item % 2]
        votes[item, 1 + item % 39] = "ab"[item % 3 == 0]
    found = random(dh_kappa(votes, ["ab"[item % 2] for item in range(60)]))
    assert math.isnan(found.low)
    assert found.reason is not None
    assert found.reason.startswith("50% of the votes are from one of 40 annotators")


def test_undefined_kappa_keeps_its_reason() -> None:
    found = random(dh_kappa(np.full((5, 6), "a"), ["a"] * 5))
    assert math.isnan(found.low)
    assert found.reason == "Every vote and every suggested label is the same category."


def test_perfect_labels() -> None:
    votes = np.array([["a"] * 12, ["b"] * 12] * 30)
    found = random(dh_kappa(votes, ["a", "b"] * 30))
    assert found.high == 1
    assert 0 < found.low < dh_kappa(votes, ["a", "b"] * 30).confidence_interval().low


CASES: dict[str, Any] = {
    "weights": lambda v, s: dh_kappa(v, s, weights="linear", categories=[0, 1, 2]),
    "sample_weight": lambda v, s: dh_kappa(v, s, sample_weight=range(1, len(s) + 1)),
    "strata": lambda v, s: dh_kappa(v, s, strata=[place % 2 for place in range(len(s))]),
    "pool": lambda v, s: dh_kappa(v, s, pool=1000),
    "fleiss": lambda v, s: fleiss_kappa(v, sample_weight=range(1, len(s) + 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_designs_are_refused(case: str) -> None:
    with pytest.raises(DataError) as caught:
        random(CASES[case](*drawn(1)))
    assert (caught.value.code, caught.value.parameter) == ("option-not-supported", "annotators")


@pytest.mark.parametrize("method", ["wald", "bootstrap", "bca"])
def test_other_methods_are_refused(method: str) -> None:
    with pytest.raises(DataError) as caught:
        dh_kappa(*drawn(1)).confidence_interval(method=method, annotators="random")
    assert caught.value.code == "option-not-supported"


def test_unknown_annotators_are_refused() -> None:
    votes, labels = drawn(1)
    lists = [[vote for vote in row if vote is not None] for row in votes.tolist()]
    matrix = [[row.count(j) for j in range(3)] for row in lists]
    for kappa in (
        dh_kappa(lists, labels),
        dh_kappa(counts=matrix, suggested=labels),
        dh_kappa(tally(votes, labels)),
        fleiss_kappa(lists),
        pickle.loads(pickle.dumps(dh_kappa(votes, labels))),  # nosec B301 - our own
    ):
        with pytest.raises(DataError) as caught:
            random(kappa)
        assert caught.value.code == "annotators-unknown"


def test_an_unknown_value_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        dh_kappa(*drawn(1)).confidence_interval(annotators="all")
    assert caught.value.code == "invalid-annotators"


def test_changed_votes_are_refused() -> None:
    votes, labels = drawn(1)
    kappa = dh_kappa(votes, labels)
    assert random(copy.deepcopy(kappa)) == random(kappa)
    votes[0] = votes[1]
    with pytest.raises(DataError) as caught:
        random(kappa)
    assert caught.value.code == "votes-changed"


def test_categories_and_missing_may_be_iterators() -> None:
    votes, labels = drawn(1)
    found = dh_kappa(votes, labels, categories=iter([0, 1, 2]), missing=iter([7]))
    assert random(found) == random(dh_kappa(votes, labels))
