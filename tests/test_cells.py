"""ItemTable: items by votes and several labels at once, against counting item by item."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import DataError, Tally, tally
from dhkappa.core import item_table as room
from dhkappa.core.item_table import ItemTable, item_table_of, read_item_table
from strategies import Data, ragged

NAMES = ["rule", " ", "llm 🦙"]


@dataclass(frozen=True)
class Several:
    """Votes with the labels of several labelers, weights and strata."""

    data: Data
    labels: Mapping[str, Sequence[Hashable]]
    sample_weight: list[float] | None
    strata: list[str] | None

    @property
    def suggested(self) -> dict[str, list[object]]:
        return {who: self.data.spell(labels) for who, labels in self.labels.items()}

    @property
    def beside(self) -> dict[str, Any]:
        return {"sample_weight": self.sample_weight, "strata": self.strata}


@st.composite
def several(draw: st.DrawFn) -> Several:
    data = draw(ragged())
    random = Random(draw(st.integers(0, 2**32)))
    n = len(data.votes)
    labels = {
        who: [label if random.random() < 0.6 else random.choice([None, *data.categories]) for label in data.suggested]
        for who in NAMES
    }
    sample_weight = [random.choice([0.0, 1.0, 2.5]) for _ in range(n)] if n and draw(st.booleans()) else None
    if sample_weight is not None:
        sample_weight[0] = 1.0
    strata = [random.choice(["north", "south"]) for _ in range(n)] if draw(st.booleans()) else None
    return Several(data, labels, sample_weight, strata)


def items_of(cells: ItemTable) -> Iterator[tuple[Any, int]]:
    """Each cell in words, and how many items it is."""
    for k in range(len(cells.vote)):
        row = cells.vote[k]
        span = slice(cells.votes.start[row], cells.votes.start[row + 1])
        votes = frozenset(
            (cells.categories[code], int(votes))
            for code, votes in zip(cells.votes.code[span], cells.votes.votes[span], strict=True)
        )
        labels = tuple((who, (*cells.categories, None)[codes[k]]) for who, codes in cells.labels.items())
        stratum = None if cells.stratum is None else cells.strata[cells.stratum[k]]
        weight = None if cells.weight is None else float(cells.weight[k])
        yield (votes, labels, stratum, weight), int(cells.items[k])


def counted(cells: ItemTable) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for what, items in items_of(cells):
        found[what] += items
    return found


def expected(given: Several, names: Sequence[str] = tuple(NAMES)) -> Counter[Any]:
    return Counter(
        (
            frozenset(Counter(vote for vote in item if vote is not None).items()),
            tuple((who, given.labels[who][i]) for who in names),
            None if given.strata is None else given.strata[i],
            None if given.sample_weight is None else given.sample_weight[i],
        )
        for i, item in enumerate(given.data.votes)
    )


def read(given: Several) -> ItemTable:
    return read_item_table(given.data.written_votes, given.suggested, **given.beside)


def in_counts(given: Several) -> ItemTable:
    categories = tuple(given.data.categories)
    return read_item_table(
        None,
        given.labels,
        counts=given.data.counts,
        categories=categories,  # type: ignore[arg-type]
        **given.beside,
    )


@settings(max_examples=60)
@given(several())
def test_items_are_read_as_they_came(given: Several) -> None:
    assert counted(read(given)) == expected(given)
    assert counted(in_counts(given)) == expected(given)


@settings(max_examples=60)
@given(several())
def test_a_tally_gives_the_same_cells_in_the_same_order(given: Several) -> None:
    whole = tally(given.data.written_votes, given.suggested, **given.beside)
    assert counted(item_table_of(whole)) == expected(given)
    assert counted(item_table_of(whole, [" ", "rule"])) == expected(given, [" ", "rule"])
    for some in (NAMES, ["llm 🦙"]):
        assert list(items_of(item_table_of(whole).distinct(some))) == list(items_of(read(given).distinct(some)))


@pytest.mark.parametrize("limits", [(1 << 16, 1 << 22, 2**63), (0, 0, 2**63), (0, 0, 0)], ids=["bins", "keys", "rows"])
def test_different_cells_by_every_route(limits: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in zip(("_FEW", "_MANY", "_WORD"), limits, strict=True):
        monkeypatch.setattr(room, name, limit)

    @settings(max_examples=40)
    @given(several())
    def holds(given: Several) -> None:
        for whole in (read(given), item_table_of(tally(given.data.written_votes, given.suggested, **given.beside))):
            for some in (NAMES, ["llm 🦙", "rule"], [" "]):
                found = whole.distinct(some)
                listed = list(items_of(found))
                assert len({what for what, _ in listed}) == len(listed)
                assert counted(found) == expected(given, some)
                assert list(found.labels) == list(some)
                assert list(items_of(found.distinct(some))) == listed

    holds()


def test_every_route_finds_the_same_cells_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    votes, labels = rng.integers(0, 3, (400, 3)), {who: rng.integers(0, 3, 400) for who in NAMES}
    cells = read_item_table(votes, labels, sample_weight=rng.integers(1, 3, 400), strata=rng.integers(0, 2, 400))
    found = [list(items_of(cells.distinct(NAMES)))]
    for limit in (2**63, 0):
        monkeypatch.setattr(room, "_FEW", 0)
        monkeypatch.setattr(room, "_MANY", 0)
        monkeypatch.setattr(room, "_WORD", limit)
        found.append(list(items_of(cells.distinct(NAMES))))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("most", [200, 70_000])
def test_many_items_in_blocks_of_keys(most: int) -> None:
    """More items than a block, key spaces below and above 2^16: keys of two and of four bytes."""
    rng = np.random.default_rng(most)
    n, m = 100_000, 3 if most == 200 else 20
    votes, labels = rng.integers(0, m, (n, 2)), {who: rng.integers(0, m, n) for who in ("a", "b")}
    found = read_item_table(votes, labels).distinct(["a", "b"])
    space = len(found.votes) * m * m
    assert (space < 2**16) == (most == 200)
    assert space <= max(room._FEW, n)  # so bins it is
    low, high = np.sort(votes, axis=1).T
    key = ((low * m + high) * m + labels["a"]) * m + labels["b"]
    assert sorted(found.items.tolist()) == sorted(np.unique(key, return_counts=True)[1].tolist())


def test_many_categories_take_keys_instead_of_bins() -> None:
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 300, (40, 3))
    kinds[0] = (0, 150, 299)
    votes = kinds[np.arange(200) % 40]
    labels = {who: rng.integers(0, 300, 200) for who in ("a", "b", "c")}
    for codes in labels.values():
        codes[:2] = 0, 299
    cells = read_item_table(votes, labels, categories=tuple(range(300)))
    found = cells.distinct(["a", "b", "c"])
    assert len(found.votes) * 300**3 > room._MANY
    assert counted(found) == counted(cells)


class TestNoItems:
    def test_no_rows(self) -> None:
        cells = read_item_table(np.zeros((0, 3), int), {"a": [], "b": []})
        assert len(cells.distinct(["a", "b"]).items) == 0
        assert cells.categories == ()

    def test_no_votes_and_no_labels(self) -> None:
        cells = read_item_table([[None, None]], {"a": [None], "b": [None]})
        assert list(items_of(cells.distinct(["a", "b"]))) == [
            ((frozenset(), (("a", None), ("b", None)), None, None), 1)
        ]

    def test_none_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cells = read_item_table([[1, 1], [2, 2]], {"a": [1, 2], "b": [1, 1]}, sample_weight=[1, 2])
        none = cells.take(np.zeros(2, np.bool_))
        assert len(none.distinct(["a"]).items) == 0
        for name in ("_FEW", "_MANY", "_WORD"):
            monkeypatch.setattr(room, name, 0)
            assert len(none.distinct(["a", "b"]).items) == 0


class TestNames:
    counted = tally([[1, 1], [2, 2]], {"a": [1, 2], "b": [1, 1], "c": [2, 2]})

    def test_not_in_the_tally(self) -> None:
        with pytest.raises(DataError, match=r"suggested names 'd', 3, not in the tally\. Labelers: 'a', 'b', 'c'\."):
            item_table_of(self.counted, ["a", "d", 3])  # type: ignore[list-item]

    def test_twice(self) -> None:
        with pytest.raises(DataError, match="suggested names a labeler twice: 'a', 'b', 'a'"):
            item_table_of(self.counted, ["a", "b", "a"])

    def test_of_a_tally_without_names(self) -> None:
        with pytest.raises(DataError, match="suggested names 'a', but the tally has one labeler without a name"):
            item_table_of(tally([[1, 1]], [1]), ["a"])
        with pytest.raises(DataError, match="suggested names 'a', but the tally has one labeler without a name"):
            item_table_of(Tally(), ["a"])

    def test_one_without_a_name(self) -> None:
        cells = item_table_of(tally([[1, 1], [1, 2]], [2, None]))
        assert counted(cells) == {
            (frozenset({(1, 2)}), (("", 2),), None, None): 1,
            (frozenset({(1, 1), (2, 1)}), (("", None),), None, None): 1,
        }


def test_cells_stay_as_they_are() -> None:
    cells = read_item_table([[1, 1], [2, 2], [1, 1]], {"a": [1, 2, 1]})
    before = list(items_of(cells))
    taken = cells.take(np.array([2, 0]))
    assert list(items_of(taken)) == [before[2], before[0]]
    assert replace(cells).single
    assert not cells.distinct(["a"]).single
    assert list(items_of(cells)) == before
