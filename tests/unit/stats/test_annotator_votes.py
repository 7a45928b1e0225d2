"""Votes in order of annotators, and exact sums by annotator, against loops."""

import math
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from dhkappa.core.grouping import Patterns
from dhkappa.core.items import ItemVotes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats import annotator_votes as module
from dhkappa.stats.annotator_votes import AnnotatorVotes, annotator_categories, annotator_votes
from dhkappa.stats.kappa import KappaSums, units
from dhkappa.stats.sample import sample_of, weight_of_one
from dhkappa.stats.summation import integer_type, item_sums, ratios, totals
from dhkappa.stats.weights import agreeing_pairs, agreement_weights
from strategies import Data, ragged

F = Fraction
Row = tuple[int, int, Hashable]  # annotator, item, vote


def item_votes_of(data: Data, weight: list[float] | None = None) -> ItemVotes:
    return read_votes(data.object_votes, {"rule": data.written_suggested}, sample_weight=weight)


def votes_of(item_votes: ItemVotes) -> AnnotatorVotes:
    return annotator_votes(item_votes, sample_of(item_votes.labeled_patterns("rule")))


def rows_of(item_votes: ItemVotes, found: AnnotatorVotes) -> list[Row]:
    places = found.sample.kept
    assert places is not None
    own = [item_votes.categories[code] for code in found.own.tolist()]
    return list(zip(found.who.tolist(), places[found.row].tolist(), own, strict=True))


def filled(data: Data) -> list[list[Hashable]]:
    """Votes as rows of the same length, with None for missing votes."""
    width = max(map(len, data.votes), default=0)
    return [[*item, *[None] * (width - len(item))] for item in data.votes]


def expected_rows(data: Data) -> list[Row]:
    return [
        (a, i, vote)
        for a in range(max(map(len, data.votes), default=0))
        for i, row in enumerate(filled(data))
        for b, vote in enumerate(row)
        if a == b
        and vote is not None
        and data.suggested[i] is not None
        and sum(other is not None for other in row) >= 2
    ]


def pattern_votes(patterns: Patterns, row: int) -> dict[int, int]:
    span = slice(patterns.start[row], patterns.start[row + 1])
    return dict(zip(patterns.code[span].tolist(), patterns.votes[span].tolist(), strict=True))


@given(ragged(max_items=12))
def test_votes_are_in_order_of_annotators(data: Data) -> None:
    item_votes = item_votes_of(data)
    found = votes_of(item_votes)
    assert rows_of(item_votes, found) == expected_rows(data)
    for place, (a, i, vote) in enumerate(rows_of(item_votes, found)):
        others = [other for b, other in enumerate(filled(data)[i]) if b != a and other is not None]
        alike = others.count(vote)
        assert found.signed()[place] == (alike if vote == data.suggested[i] else -alike)
        assert found.n_votes[place] == len(others) + 1
        assert found.items[place] == found.mass[place] == 1
        assert item_votes.categories[found.label[place]] == data.suggested[i]


def test_votes_of_an_annotator_are_in_order_of_items() -> None:
    votes = np.array([["a", "b", "a"]] * 500, object)
    found = votes_of(read_votes(votes, {"rule": ["a"] * 500}))
    assert found.row.tolist() == [*range(500)] * 3
    assert all((np.diff(found.row[found.who == who]) >= 0).all() for who in range(3))


@given(ragged(max_items=12))
def test_others_are_the_votes_without_ones_own(data: Data) -> None:
    item_votes = item_votes_of(data)
    found = votes_of(item_votes)
    whole, at = found.patterns()
    left = found.others()
    assert len(whole) == len(left) == found.who.size
    assert (left.votes > 0).all()
    assert left.suggested.tolist() == found.label.tolist()
    for place, code in enumerate(found.own.tolist()):
        votes = pattern_votes(whole, place)
        assert whole.code[at[place]] == code
        assert whole.start[place] <= at[place] < whole.start[place + 1]
        votes[code] -= 1
        assert pattern_votes(left, place) == {key: number for key, number in votes.items() if number}


@given(ragged(max_items=12))
def test_agreeing_pairs(data: Data) -> None:
    sample = sample_of(item_votes_of(data).labeled_patterns("rule"))
    agreeing, differential = agreeing_pairs(sample.patterns)
    for row, label in enumerate(sample.patterns.suggested.tolist()):
        pairs = {code: math.comb(number, 2) for code, number in pattern_votes(sample.patterns, row).items()}
        assert agreeing[row] == sum(pairs.values())
        assert differential[row] == 2 * pairs.get(label, 0) - sum(pairs.values())


@pytest.mark.parametrize("most", [1, 5, 30, 1 << 20])
def test_blocks_have_whole_annotators(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", most)
    random = Random(1)
    votes = np.array([[random.choice(["a", "b", None]) for _ in range(7)] for _ in range(30)], object)
    votes[:, [0, 4]] = None
    found = votes_of(read_votes(votes, {"rule": ["a"] * 30}))
    length = np.diff(found.sample.patterns.start)
    seen: list[tuple[int, int, int]] = []
    sizes = []
    for who, own in found.blocks():
        assert own.who.tolist() == sorted(own.who.tolist())
        assert set(own.who.tolist()) == set(range(who.size))
        seen += zip(who[own.who].tolist(), own.row.tolist(), own.entry.tolist(), strict=True)
        sizes.append((who.size, int(length[own.row].sum())))
    assert seen == list(zip(found.who.tolist(), found.row.tolist(), found.entry.tolist(), strict=True))
    each = [int(length[found.row[found.who == a]].sum()) for a in (1, 2, 3, 5, 6)]
    assert sum(number for number, _ in sizes) == 5
    assert all(entries <= most or number == 1 for number, entries in sizes)
    first = 0
    for number, entries in sizes:  # no block could have had one annotator more
        assert entries == sum(each[first : first + number])
        first += number
        assert first == 5 or entries + each[first] > most


def test_no_votes() -> None:
    found = votes_of(read_votes(np.empty((0, 2), object), {"rule": []}))
    assert found.who.size == 0
    assert list(found.blocks()) == []


def test_cells() -> None:
    found = annotator_categories([(np.array([1, 0, 1]), np.array([2, 2, 2])), (np.array([0, 1]), np.array([0, 2]))])
    assert list(zip(found.who.tolist(), found.code.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 2)]
    assert [place.tolist() for place in found.of] == [[2, 1, 2], [0, 2]]


def test_cells_of_all_categories_with_weights() -> None:
    drawn = read_votes(np.array([["a", "b"], ["c", "c"]], object), {"rule": ["a", "b"]})
    found = replace(votes_of(drawn), weights=agreement_weights("linear", 3))
    pairs = [(np.array([1, 0], np.uint8), np.array([2, 1]))]
    who, code, [of] = found.annotator_categories(pairs, 100)
    assert list(zip(who.tolist(), code.tolist(), strict=True)) == [(a, j) for a in range(100) for j in range(3)]
    assert of.tolist() == [5, 1]
    assert found.annotator_categories([(np.array([99], np.uint8), np.array([2]))], 100).of[0].tolist() == [299]


def test_integers_are_64_bits_if_they_fit() -> None:
    assert integer_type(2**62 - 1) is np.int64
    assert integer_type(2**62) is object


@pytest.mark.parametrize("integer", [np.int64, object])
def test_totals(integer: Any) -> None:
    found = totals(np.array([1, -2, 2**60], integer), np.array([2, 0, 2]), 4)
    assert found.dtype == integer
    assert found.tolist() == [-2, 0, 2**60 + 1, 0]


def test_ratios_are_rounded_once() -> None:
    top, bottom = [2**62 + 1, 1, 10**400], [2**62 - 1, 3, 3 * 10**400]
    assert ratios(np.array(top, object), np.array(bottom, object)).tolist() == [
        float(F(2**62 + 1, 2**62 - 1)),
        1 / 3,
        1 / 3,
    ]
    numbers = np.array([2**53 + 1, 7])
    assert ratios(numbers, np.array([3, 2])).tolist() == [float(F(2**53 + 1, 3)), 3.5]


values = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(st.lists(st.tuples(values, st.integers(1, 2**51), st.integers(0, 2)), min_size=1, max_size=20))
def test_item_sums_are_those_of_single_items_rounded_once(rows: list[tuple[float, int, int]]) -> None:
    numbers, items, group = map(np.array, zip(*rows, strict=True))
    expected = [float(sum((F(value) * k for value, k, own in rows if own == g), F(0))) for g in range(3)]
    assert item_sums(numbers, items, group, 3).tolist() == expected


def test_item_sums_keep_all_bits() -> None:
    value = 1 + 2**-52 + 2**-26 + 2**-27
    for k in (2**26 - 1, 2**26 + 1, 2**40 + 2**25 + 1, 3 * 2**26 - 1, 2**50 + 2**26 - 1):
        found = item_sums(np.array([value, -float(k)]), np.array([k, 1]), np.zeros(2, np.int64), 1)
        assert found.tolist() == [float(F(value) * k - k)]
    once = item_sums(np.array([0.1, 0.2]), np.array([1, 1]), np.array([0, 1]), 2)
    assert once.tolist() == [0.1, 0.2]
    assert item_sums(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), 2).tolist() == [0, 0]


def test_weight_of_one_item() -> None:
    votes = np.array([["a", "a"], ["a", "b"], ["b", "b"]], object)
    equal = sample_of(read_votes(votes, {"rule": list("aab")}).labeled_patterns("rule"))
    assert weight_of_one(equal).tolist() == [1, 1, 1]
    sample = sample_of(read_votes(votes, {"rule": list("aab")}, sample_weight=[1, 2, 3]).labeled_patterns("rule"))
    assert weight_of_one(sample).tolist() == [1 / 2, 1, 3 / 2]
    many = np.array([4, 1, 2])
    several = replace(sample, patterns=replace(sample.patterns, items=many), mass=sample.mass * many)
    assert weight_of_one(several).tolist() == [7 / 12, 14 / 12, 21 / 12]  # of 7 items with the mass 12


def test_units() -> None:
    found = units([2, 3, 5], 10)
    assert (found.vote, found.pair) == (30, 30)  # lcm of 2, 3, 5 and of 1, 3, 10
    assert found.per_vote.tolist() == [0, 0, 15, 10, 0, 6]
    assert found.per_pair.tolist() == [0, 0, 30, 10, 0, 3]
    assert found.per_vote.dtype == found.per_pair.dtype == np.int64
    assert units([4], 1).pair == 6
    assert units([3], (2**62 - 1) // 3).per_vote.dtype == np.int64  # 3 is the larger of both
    assert units([3], 2**62 // 3 + 1).per_vote.dtype == object
    assert units([2], 2**61 - 1).per_pair.dtype == np.int64
    assert units([2], 2**61).per_pair.dtype == object
    assert units([4], 2**62 // 6 + 1).per_pair.dtype == object  # the unit of pairs is the larger
    assert (units([], 0).vote, units([], 0).per_vote.tolist()) == (1, [0])


@settings(max_examples=30)
@given(ragged(max_items=8))
def test_kappa_from_sums(data: Data) -> None:
    expected = oracle.dh(data.votes, data.suggested, data.categories)
    rows = [
        (oracle.cast(votes), label)
        for votes, label in zip(data.votes, data.suggested, strict=True)
        if len(oracle.cast(votes)) > 1 and label is not None
    ]
    if not rows:
        return
    unit = units({len(votes) for votes, _ in rows}, len(rows))
    n, C, L, differential = len(rows), dict.fromkeys(data.categories, 0), dict.fromkeys(data.categories, 0), 0
    for votes, label in rows:
        L[label] += 1
        for category in data.categories:
            number = votes.count(category)
            C[category] += number * int(unit.per_vote[len(votes)])
            sign = 1 if category == label else -1
            differential += sign * math.comb(number, 2) * int(unit.per_pair[len(votes)])
    same, on = sum(c * c for c in C.values()), sum(C[j] ** 2 * L[j] for j in data.categories)
    columns = [np.array([number], object) for number in (n, differential, same, on)]
    found = KappaSums(unit, columns[0], columns[1], columns[2], columns[3])
    D, E, C_E = (F(int(top[0]), int(bottom[0])) for top, bottom in (found.D, found.E, found.C_E))
    assert (D, E) == (expected.D, expected.E)
    assert 2 * C_E - F(same, (n * unit.vote) ** 2) == E
    top, bottom = found.kappa
    assert (F(int(top[0]), int(bottom[0])) if bottom[0] else None) == expected.kappa
