"""Votes added to items, and labels replaced, against lists of votes."""

from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracle
from dhkappa.core.added_votes import AddedVote, has_voted, suggested_labels, with_labels, with_votes
from dhkappa.core.items import ItemVotes, count
from dhkappa.inputs.arrays import read_matrix, read_votes
from dhkappa.stats.kappa import estimate_dh
from dhkappa.stats.sample import sample_of
from strategies import Data, ragged


def kappa_of(votes: ItemVotes) -> Fraction | None:
    return estimate_dh(sample_of(count(votes).labeled_patterns("rule"))).exact


def cast_of(votes: ItemVotes) -> list[Counter[Hashable]]:
    found: list[Counter[Hashable]] = [Counter() for _ in range(len(votes.columns))]
    for row, code in zip(votes.sorted_votes[0].tolist(), votes.sorted_votes[2].tolist(), strict=True):
        found[row][votes.categories[code]] += 1
    return found


@given(ragged(max_items=8).filter(lambda data: len(data.votes) > 0), st.data())
def test_added_votes_and_new_labels(data: Data, draw: Any) -> None:
    categories: Any = data.categories
    places = st.integers(0, len(data.votes) - 1)
    added = draw.draw(st.lists(st.tuples(places, st.sampled_from(data.categories)), max_size=6))
    labels = draw.draw(st.dictionaries(places, st.sampled_from(data.categories), max_size=4))
    votes = read_votes(data.votes, {"rule": data.suggested}, categories=categories)
    whole = with_votes(votes, [AddedVote(place, label, "x") for place, label in added])
    lists = [[*oracle.cast(item), *(label for at, label in added if at == n)] for n, item in enumerate(data.votes)]
    assert cast_of(whole) == [Counter(item) for item in lists]
    changed = with_labels(whole, "rule", labels)
    suggested = [labels.get(place, label) for place, label in enumerate(data.suggested)]
    assert suggested_labels(changed, "rule") == suggested
    assert kappa_of(changed) == oracle.dh(lists, suggested, data.categories).kappa
    assert suggested_labels(votes, "rule") == [*data.suggested]


def test_annotators_are_known_and_keep_their_votes() -> None:
    votes = read_votes(np.array([["a", "b"], ["b", None], [None, "a"]], object), {"rule": ["a", "b", "a"]})
    new = [AddedVote(1, "b", "eva"), AddedVote(1, "a", 1), AddedVote(2, "c", 0)]
    assert has_voted(votes, new) == []
    whole = with_votes(votes, new)
    assert whole.annotators == (0, 1, "eva")
    row, who, code = (values.tolist() for values in whole.sorted_votes)
    cast = {
        (at, whole.annotators[person], whole.categories[label])
        for at, person, label in zip(row, who, code, strict=True)
    }
    assert cast == {(0, 0, "a"), (0, 1, "b"), (1, 0, "b"), (1, "eva", "b"), (1, 1, "a"), (2, 1, "a"), (2, 0, "c")}
    assert has_voted(whole, new) == new
    assert has_voted(whole, [AddedVote(0, "a", "eva"), AddedVote(0, "a", 0)]) == [AddedVote(0, "a", 0)]


def test_counts_of_votes() -> None:
    counts = read_matrix(np.array([[2, 0, 0], [1, 1, 0]]), suggested={"rule": ["a", "b"]}, categories=("a", "b", "c"))
    whole = with_votes(counts, [AddedVote(0, "b", "x")])
    assert cast_of(whole) == [Counter(a=2, b=1), Counter(a=1, b=1)]
    assert whole.categories == ("a", "b", "c")
    assert whole.annotators is None
