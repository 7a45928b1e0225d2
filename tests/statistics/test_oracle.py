"""The package against the oracle, always with ==, and the changes of data that must change nothing."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dhkappa
import oracle
from dhkappa import Kappa, Tally, dh_kappa, fleiss_kappa, tally
from strategies import Data, ragged


def same(value: float, truth: Fraction | None) -> bool:
    """Correctly rounded: the float nearest to the fraction, or NaN where undefined."""
    return math.isnan(value) if truth is None else value == float(truth)


def excluded(result: Kappa) -> oracle.Excluded:
    counts = result.excluded
    assert counts.total == counts.no_votes + counts.one_vote + counts.no_label
    return oracle.Excluded(counts.no_votes, counts.one_vote, counts.no_label)


def assert_dh(result: Kappa, data: Data) -> None:
    truth = oracle.dh(data.votes, data.suggested, result.categories)
    assert result.exact == truth.kappa
    assert same(result.value, truth.kappa)
    assert same(float(result), truth.kappa)
    assert same(result.baselines.random, truth.random)
    assert same(result.baselines.majority, truth.majority)
    assert same(result.fleiss, truth.fleiss)
    assert (result.reason is None) == (truth.kappa is not None)
    assert (result.n_items, result.n_votes) == (truth.n, truth.votes)
    assert excluded(result) == truth.excluded
    assert (result.parts is None) == (truth.n == 0)
    if result.parts is not None:
        for part in ("C", "L", "R", "S", "C_E", "C_F", "D", "E"):
            assert getattr(result.parts, part) == getattr(truth, part), part


def assert_fleiss(result: Kappa, data: Data) -> None:
    truth = oracle.fleiss(data.votes)
    assert result.exact == truth.kappa
    assert same(result.value, truth.kappa)
    assert (result.reason is None) == (truth.kappa is not None)
    assert (result.n_items, result.n_votes) == (truth.n, truth.votes)
    assert (result.excluded.no_votes, result.excluded.one_vote) == (
        truth.excluded.no_votes,
        truth.excluded.one_vote,
    )
    assert (result.parts is None) == (truth.n == 0)
    if result.parts is not None:
        assert {j: share for j, share in result.parts.C.items() if share} == truth.C
        assert (result.parts.R, result.parts.C_E) == (truth.R, truth.C_E)
        assert result.parts.S == result.parts.C_F == 0
        assert not result.parts.L


def halves(data: Data) -> list[Data]:
    middle = len(data.votes) // 3
    return [data.take(range(middle)), data.take(range(middle, len(data.votes)))]


def as_tally(data: Data) -> Tally:
    return tally(data.written_votes, data.written_suggested, categories=data.written_categories)


def updated(data: Data) -> Tally:
    """A tally fed once with votes and once with counts."""
    total = Tally(categories=data.written_categories)
    first, second = halves(data)
    total.update(first.written_votes, first.written_suggested)
    total.update(counts=second.counts, suggested=second.written_suggested)
    return total


# Layout -> the call, on data whose categories are declared.
DECLARED: dict[str, Callable[[Data], Kappa]] = {
    "nested lists": lambda d: dh_kappa(d.written_votes, d.written_suggested, categories=d.written_categories),
    "object array": lambda d: dh_kappa(
        d.object_votes, np.array([*d.written_suggested, None], object)[:-1], categories=d.written_categories
    ),
    "counts and labels": lambda d: dh_kappa(
        counts=d.counts, suggested=d.written_suggested, categories=d.written_categories
    ),
    "tally of votes": lambda d: dh_kappa(as_tally(d)),
    "tally of counts": lambda d: dh_kappa(
        tally(counts=d.counts, suggested=d.written_suggested, categories=d.written_categories)
    ),
    "tally updated": lambda d: dh_kappa(updated(d)),
    "tallies added": lambda d: dh_kappa(reduce(add, map(as_tally, halves(d)))),
}


@pytest.mark.parametrize("score", DECLARED.values(), ids=DECLARED)
@given(data=ragged())
def test_dh_kappa_against_oracle(score: Callable[[Data], Kappa], data: Data) -> None:
    result = score(data)
    assert result.categories == data.categories
    assert_dh(result, data)


@pytest.mark.parametrize("as_array", [False, True], ids=["nested lists", "object array"])
@given(data=ragged())
def test_dh_kappa_with_categories_as_found_against_oracle(as_array: bool, data: Data) -> None:
    votes = data.object_votes if as_array else data.written_votes
    result = dh_kappa(votes, data.written_suggested)
    found = {vote for item in data.votes for vote in item} | set(data.suggested)
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    assert {vote for item in items for vote in item} | set(labels) <= set(result.categories) <= found - {None}
    assert_dh(result, data)


@given(data=ragged())
def test_counts_with_codes_against_oracle(data: Data) -> None:
    coded = data.coded()
    result = dh_kappa(counts=coded.counts, suggested=coded.suggested)
    assert result.categories == coded.categories
    assert_dh(result, coded)


@given(data=ragged())
def test_counts_with_one_hot_labels_against_oracle(data: Data) -> None:
    labeled = data.labeled()
    result = dh_kappa(counts=labeled.counts, suggested=labeled.one_hot, categories=labeled.written_categories)
    assert result.categories == labeled.categories
    assert_dh(result, labeled)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32, np.int64, np.float32, np.str_])
@given(data=ragged())
def test_typed_arrays_against_oracle(dtype: type[np.generic], data: Data) -> None:
    """Items with all their votes and a label, so that an array of any type can hold them."""
    width = max(map(len, data.votes), default=0)
    coded = data.coded().labeled()
    whole = coded.take([i for i, item in enumerate(coded.votes) if len(item) == width and None not in item])
    if dtype is np.str_:
        whole = whole.renamed([f"c{j}" for j in whole.categories])
    votes = np.array(whole.votes, dtype).reshape(len(whole.votes), width)
    assert_dh(dh_kappa(votes, np.array(whole.suggested, dtype)), whole)


@given(data=ragged())
def test_float_array_with_nan_against_oracle(data: Data) -> None:
    coded = data.coded()
    votes = np.where(coded.object_votes == None, np.nan, coded.object_votes).astype(float)  # noqa: E711
    suggested = np.array([np.nan if label is None else label for label in coded.suggested], float)
    assert_dh(dh_kappa(votes, suggested, categories=coded.categories), coded)


@pytest.mark.parametrize("doublings", [0, 24, 31, 45])
def test_many_items_of_many_votes_against_cohen(doublings: int) -> None:
    """2^doublings items with 3,000 votes for their label, 300 with some against: by the two-category theorem."""
    many, few = 2**doublings, range(1, 301)
    total = tally(counts=[[3000, 0]], suggested=[0])
    for _ in range(doublings):
        total += total
    total += tally(counts=[[3000 - k, k] for k in few], suggested=[1] * 300)
    n = many + 300
    against = Fraction(sum(few), 3000)
    p_o = (many + against) / n
    C_0, L_0 = 1 - against / n, Fraction(many, n)
    p_e = C_0 * L_0 + (1 - C_0) * (1 - L_0)
    result = dh_kappa(total)
    assert result.exact == (p_o - p_e) / (1 - p_e)
    assert (result.n_items, result.n_votes) == (n, 3000 * n)


@pytest.mark.parametrize("first", [2**63, 2**64 - 2])
def test_largest_unsigned_labels_against_oracle(first: int) -> None:
    votes, suggested = [[first, first], [first, first + 1]], [first, first + 1]
    result = dh_kappa(np.array(votes, np.uint64), np.array(suggested, np.uint64))
    assert_dh(result, Data((first, first + 1), votes, suggested))


FLEISS: dict[str, Callable[[Data], Kappa]] = {
    "nested lists": lambda d: fleiss_kappa(d.written_votes),
    "declared categories": lambda d: fleiss_kappa(d.written_votes, categories=d.written_categories),
    "object array": lambda d: fleiss_kappa(d.object_votes),
    "counts": lambda d: fleiss_kappa(counts=d.counts, categories=d.written_categories),
    "tally with labels": lambda d: fleiss_kappa(as_tally(d)),
    "tally without labels": lambda d: fleiss_kappa(tally(d.written_votes)),
    "tallies added": lambda d: fleiss_kappa(reduce(add, map(as_tally, halves(d)))),
}


@pytest.mark.parametrize("score", FLEISS.values(), ids=FLEISS)
@given(data=ragged())
def test_fleiss_kappa_against_oracle(score: Callable[[Data], Kappa], data: Data) -> None:
    assert_fleiss(score(data), data)


# What must change nothing: invariances x estimators

seeds = st.integers(0, 2**32).map(Random)

ESTIMATORS: dict[str, Callable[[Data], Kappa]] = {
    "dh_kappa": lambda d: dh_kappa(d.written_votes, d.written_suggested, categories=d.written_categories),
    "fleiss_kappa": lambda d: fleiss_kappa(d.written_votes, categories=d.written_categories),
}
OF_TALLY: dict[str, Callable[[Tally], Kappa]] = {"dh_kappa": dh_kappa, "fleiss_kappa": fleiss_kappa}


def shuffled_items(data: Data, random: Random) -> Data:
    return data.take(random.sample(range(len(data.votes)), len(data.votes)))


def shuffled_annotators(data: Data, random: Random) -> Data:
    return replace(data, votes=[random.sample(item, len(item)) for item in data.votes])


def renamed_categories(data: Data, random: Random) -> Data:
    names: list[Hashable] = random.sample(["zeta", "10", "9", "Alpha", "alpha", "ωmega"], len(data.categories))
    return data.renamed(names)


def with_unused_category(data: Data, random: Random) -> Data:
    unused = "unused" if isinstance(data.categories[0], str) else 999
    place = random.randint(0, len(data.categories))
    return replace(data, categories=(*data.categories[:place], unused, *data.categories[place:]))


def partitioned(data: Data, random: Random) -> Tally:
    parts: list[list[int]] = [[] for _ in range(random.randint(1, 5))]
    for i in range(len(data.votes)):
        random.choice(parts).append(i)
    return reduce(add, [as_tally(data.take(part)) for part in parts])


INVARIANCES: dict[str, Callable[[Data, Random], Data | Tally]] = {
    "item order": shuffled_items,
    "annotator order": shuffled_annotators,
    "names of categories": renamed_categories,
    "an unused category": with_unused_category,
    "tallies of any partition": partitioned,
}


def numbers(result: Kappa) -> Sequence[object]:
    """What a result says, with NaN equal to NaN, and shares as a sorted list since names may change."""
    floats = [repr(x) for x in (result.value, result.baselines.random, result.baselines.majority, result.fleiss)]
    totals = [result.exact, result.n_items, result.n_votes, result.excluded, result.reason is None]
    if result.parts is None:
        return [*floats, *totals]
    p = result.parts
    shares = [sorted(filter(None, share.values())) for share in (p.C, p.L)]
    return [*floats, *totals, *shares, p.R, p.S, p.C_E, p.C_F, p.D, p.E]


@pytest.mark.parametrize("change", INVARIANCES.values(), ids=INVARIANCES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(data=ragged(), random=seeds)
def test_estimator_is_invariant(
    estimator: str, change: Callable[[Data, Random], Data | Tally], data: Data, random: Random
) -> None:
    assume(change is not with_unused_category or not isinstance(data.categories[0], bool))
    changed = change(data, random)
    after = OF_TALLY[estimator](changed) if isinstance(changed, Tally) else ESTIMATORS[estimator](changed)
    assert numbers(after) == numbers(ESTIMATORS[estimator](data))


def test_no_estimator_is_left_out_of_the_invariances() -> None:
    public = {name for name in dhkappa.__all__ if name.endswith("_kappa")}
    assert public == set(ESTIMATORS) == set(OF_TALLY)


@given(data=ragged(), random=seeds)
def test_partition_gives_the_same_tally(data: Data, random: Random) -> None:
    assert partitioned(data, random) == as_tally(data)


@given(data=ragged())
def test_union_of_categories_as_found_against_oracle(data: Data) -> None:
    """Tallies that met different categories add up to the tally that met them all."""
    first, second = (tally(part.written_votes, part.written_suggested) for part in halves(data))
    result = dh_kappa(first + second)
    assert result.categories == dh_kappa(data.written_votes, data.written_suggested).categories
    assert_dh(result, data)
