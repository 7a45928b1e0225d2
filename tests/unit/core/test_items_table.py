"""Counts and ItemTable: items by votes, labels of several labelers, strata and weights, against plain counting."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import Tally, dh_kappa, tally
from dhkappa.core import grouping
from dhkappa.core.grouping import LabeledPatterns, count_rows
from dhkappa.core.item_table import ItemTable, item_table_of_counts, item_table_of_votes
from dhkappa.core.items import Counts, add, count, single_labeler
from dhkappa.inputs.arrays import read_matrix, read_votes
from expect import expect_error
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
    def design(self) -> dict[str, Any]:
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


def items_of(table: ItemTable) -> Iterator[tuple[Any, int]]:
    """Return each row in labels, and its number of items."""
    for k in range(len(table.vote)):
        row = table.vote[k]
        span = slice(table.votes.start[row], table.votes.start[row + 1])
        votes = frozenset(
            (table.categories[code], int(votes))
            for code, votes in zip(table.votes.code[span], table.votes.votes[span], strict=True)
        )
        labels = tuple((who, (*table.categories, None)[codes[k]]) for who, codes in table.labels.items())
        stratum = None if table.stratum is None else table.strata[table.stratum[k]]
        weight = None if table.weight is None else float(table.weight[k])
        yield (votes, labels, stratum, weight), int(table.items[k])


def totals(rows: Iterator[tuple[Any, int]]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, items in rows:
        found[row] += items
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


def table_of(given: Several) -> ItemTable:
    return item_table_of_votes(read_votes(given.data.written_votes, given.suggested, **given.design))


def table_of_matrix(given: Several) -> ItemTable:
    categories: Any = tuple(given.data.categories)
    return item_table_of_votes(read_matrix(given.data.counts, given.labels, **given.design, categories=categories))


def counts_of(given: Several) -> Counts:
    return count(read_votes(given.data.written_votes, given.suggested, **given.design))


@settings(max_examples=60)
@given(several())
def test_items_are_read_as_given(given: Several) -> None:
    assert totals(items_of(table_of(given))) == expected(given)
    assert totals(items_of(table_of_matrix(given))) == expected(given)


@settings(max_examples=60)
@given(several())
def test_counts_give_the_same_rows_in_the_same_order(given: Several) -> None:
    counts = counts_of(given)
    assert counts.n_items == len(given.data.votes)
    assert totals(items_of(item_table_of_counts(counts))) == expected(given)
    assert totals(items_of(item_table_of_counts(counts, [" ", "rule"]))) == expected(given, [" ", "rule"])
    for some in (NAMES, ["llm 🦙"]):
        assert list(items_of(item_table_of_counts(counts).distinct(some))) == list(
            items_of(table_of(given).distinct(some))
        )


def rows_of(found: LabeledPatterns) -> Iterator[tuple[Any, int]]:
    patterns, names = found.patterns, (*found.categories, None)
    for k in range(len(patterns)):
        span = slice(patterns.start[k], patterns.start[k + 1])
        pairs = zip(patterns.code[span].tolist(), patterns.votes[span].tolist(), strict=True)
        stratum = None if found.stratum is None else found.strata[found.stratum[k]]
        weight = None if found.weight is None else float(found.weight[k])
        votes = frozenset((found.categories[code], number) for code, number in pairs)
        yield (votes, names[patterns.suggested[k]], stratum, weight), int(patterns.items[k])


@settings(max_examples=60)
@given(several())
def test_patterns_of_one_labeler_and_of_none(given: Several) -> None:
    counts = counts_of(given)
    for name in NAMES:
        found = list(rows_of(counts.labeled_patterns(name)))
        wanted: Counter[Any] = Counter()
        for (votes, ((_, label),), stratum, weight), items in expected(given, [name]).items():
            wanted[votes, label, stratum, weight] += items
        assert dict(found) == wanted
        assert len(dict(found)) == len(found)
    unlabeled = list(rows_of(counts.unlabeled_patterns()))
    wanted = Counter()
    for (votes, _, stratum, weight), items in expected(given, []).items():
        wanted[votes, None, stratum, weight] += items
    assert dict(unlabeled) == wanted
    assert len(dict(unlabeled)) == len(unlabeled)


@settings(max_examples=40)
@given(several(), st.integers(0, 40))
def test_counts_add_up(given: Several, cut: int) -> None:
    n = len(given.data.votes)
    cut = min(cut, n)
    whole, categories = counts_of(given), counts_of(given).categories

    def part(rows: slice) -> Counts:
        some = Several(
            replace(given.data, votes=given.data.votes[rows], suggested=given.data.suggested[rows]),
            {who: labels[rows] for who, labels in given.labels.items()},
            None if given.sample_weight is None else [weight + 1 for weight in given.sample_weight[rows]],
            None if given.strata is None else given.strata[rows],
        )
        return counts_of(some)

    parts, everything = [part(slice(0, cut)), part(slice(cut, n))], part(slice(0, n))
    table = item_table_of_counts(add(parts, categories))
    assert list(items_of(table.distinct(NAMES))) == list(items_of(item_table_of_counts(everything).distinct(NAMES)))
    assert add(parts, categories).n_items == whole.n_items


@pytest.mark.parametrize("keys", ["table", "sorted", "beyond 64 bits"])
def test_distinct_rows_by_every_kind_of_key(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_keys(keys, monkeypatch)

    @settings(max_examples=40)
    @given(several())
    def holds(given: Several) -> None:
        for whole in (table_of(given), item_table_of_counts(counts_of(given))):
            for some in (NAMES, ["llm 🦙", "rule"], [" "]):
                found = whole.distinct(some)
                listed = list(items_of(found))
                assert len({row for row, _ in listed}) == len(listed)
                assert totals(items_of(found)) == expected(given, some)
                assert list(found.labels) == list(some)
                assert list(items_of(found.distinct(some))) == listed

    holds()


def use_keys(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``ItemTable.distinct`` sort keys, or use keys that do not fit 64 bits."""
    if keys == "sorted":
        sort: Callable[..., Any] = lambda *args, **options: count_rows(*args, **{**options, "bins": (0, 0)})  # noqa: E731
        monkeypatch.setattr(grouping, "count_rows", sort)
    if keys == "beyond 64 bits":
        monkeypatch.setattr(grouping, "WORD", 0)


def test_every_kind_of_key_gives_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    votes, labels = rng.integers(0, 3, (400, 3)), {who: rng.integers(0, 3, 400) for who in NAMES}
    design: dict[str, Any] = {"sample_weight": rng.integers(1, 3, 400), "strata": rng.integers(0, 2, 400)}
    table = item_table_of_votes(read_votes(votes, labels, **design))
    found = [list(items_of(table.distinct(NAMES)))]
    for keys in ("sorted", "beyond 64 bits"):
        use_keys(keys, monkeypatch)
        found.append(list(items_of(table.distinct(NAMES))))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("m", [3, 20])
def test_more_items_than_a_block(m: int) -> None:
    rng = np.random.default_rng(m)
    n = 150_000
    votes, labels = rng.integers(0, m, (n, 2)), {who: rng.integers(0, m, n) for who in ("a", "b")}
    found = item_table_of_votes(read_votes(votes, labels)).distinct(["a", "b"])
    assert (len(found.votes) * m * m < 2**16) == (m == 3)
    low, high = np.sort(votes, axis=1).T
    key = ((low * m + high) * m + labels["a"]) * m + labels["b"]
    assert sorted(found.items.tolist()) == sorted(np.unique(key, return_counts=True)[1].tolist())


def test_many_categories_use_sorted_keys() -> None:
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 300, (40, 3))
    votes = kinds[np.arange(200) % 40]
    labels = {who: rng.integers(0, 300, 200) for who in ("a", "b", "c")}
    table = item_table_of_votes(read_votes(votes, labels, categories=tuple(range(300))))
    found = table.distinct(["a", "b", "c"])
    assert len(found.votes) * 300**3 > 1 << 22
    assert totals(items_of(found)) == totals(items_of(table))


@pytest.mark.parametrize("block", [1 << 16, 50])
@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("weights", [[], [2.0], [0.5, 2.0]])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_pair_counts(
    size: int, weights: list[float], labeled: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each two labelers, one of either group, the number of items in each row of the grid, counted one by one."""
    monkeypatch.setattr(grouping, "BLOCK", block)
    rng, n, names = np.random.default_rng(size), 120, [*"abcdef"]
    votes = rng.integers(0, 3, (n, 2))
    labels: dict[str, list[Any]] = {who: rng.integers(0, 3, n).tolist() for who in names}
    if not labeled:
        labels["a"][7] = None
    design: dict[str, Any] = (
        {"sample_weight": rng.choice(weights, n), "strata": rng.integers(0, 2, n)} if weights else {}
    )
    table = replace(item_table_of_votes(read_votes(votes, labels, **design)), labeled=labeled)
    groups = [names[first : first + size] for first in range(0, 6, size)]
    grid = [row for row, _ in items_of(table.grid())]
    assert grid == sorted(set(grid), key=grid.index)
    assert table.n_designs == 2 * len(weights) if weights else table.n_designs == 1
    assert len(grid) == len(table.votes) * (4 - labeled) ** 2 * table.n_designs
    every = table.distinct(names)
    for some in (table, every, replace(every, items=every.items * 2**53)):
        found = [(i, j) for i, j, _ in some.pair_counts(groups)]
        assert found == list(combinations(range(len(groups)), 2))
        for i, j, counts in some.pair_counts(groups):
            assert counts.shape == (size * size, len(grid))
            for (one, other), items in zip(product(groups[i], groups[j]), counts.tolist(), strict=True):
                expected = [
                    ((votes, (("one", label), ("other", second)), stratum, weight), number)
                    for (votes, ((_, label), (_, second)), stratum, weight), number in items_of(
                        some.distinct([one, other])
                    )
                ]
                assert [(row, number) for row, number in zip(grid, items, strict=True) if number] == expected


def test_no_rows() -> None:
    table = item_table_of_votes(read_votes(np.zeros((0, 3), int), {"a": [], "b": []}))
    assert len(table.distinct(["a", "b"]).items) == 0
    assert table.categories == ()


def test_no_votes_and_no_labels() -> None:
    table = item_table_of_votes(read_votes([[None, None]], {"a": [None], "b": [None]}))
    assert list(items_of(table.distinct(["a", "b"]))) == [((frozenset(), (("a", None), ("b", None)), None, None), 1)]


def test_no_rows_left(monkeypatch: pytest.MonkeyPatch) -> None:
    given = read_votes([[1, 1], [2, 2]], {"a": [1, 2], "b": [1, 1]}, sample_weight=[1, 2])
    none = item_table_of_votes(given).take(np.zeros(2, np.bool_))
    for keys in ("table", "sorted", "beyond 64 bits"):
        use_keys(keys, monkeypatch)
        assert len(none.distinct(["a"]).items) == 0
        assert len(none.distinct(["a", "b"]).items) == 0


def test_rows_are_taken_without_changing_the_table() -> None:
    table = item_table_of_votes(read_votes([[1, 1], [2, 2], [1, 1]], {"a": [1, 2, 1]}))
    before = list(items_of(table))
    assert list(items_of(table.take(np.array([2, 0])))) == [before[2], before[0]]
    assert table.single
    assert not table.distinct(["a"]).single
    assert list(items_of(table)) == before


class TestLabelers:
    counts = tally([[1, 1], [2, 2]], {"a": [1, 2], "b": [1, 1], "c": [2, 2]}).counts

    def test_chosen_by_name(self) -> None:
        assert list(item_table_of_counts(self.counts, ["c", "a"]).labels) == ["c", "a"]
        assert tally([[1, 1]], [1]).counts.columns.labeler(None) == "labeler"

    def test_not_found(self) -> None:
        for names in (["a", "d"], ["a", 3]):
            with expect_error("labeler-not-found", "suggested"):
                item_table_of_counts(self.counts, names)  # type: ignore[arg-type]
        with expect_error("labeler-not-found", "suggested"):
            item_table_of_counts(Tally().counts, ["a"])

    def test_named_twice(self) -> None:
        with expect_error("labeler-twice", "suggested"):
            item_table_of_counts(self.counts, ["a", "b", "a"])

    def test_one_of_several_must_be_named(self) -> None:
        with expect_error("several-labelers", "suggested"):
            self.counts.labeled_patterns()

    def test_labels_passed_without_a_name(self) -> None:
        table = item_table_of_counts(tally([[1, 1], [1, 2]], [2, None]).counts)
        assert totals(items_of(table)) == {
            (frozenset({(1, 2)}), (("labeler", 2),), None, None): 1,
            (frozenset({(1, 1), (2, 1)}), (("labeler", None),), None, None): 1,
        }


def test_two_values_for_missing_labels_are_one_pattern() -> None:
    given = read_votes([["a", "a"], ["a", "a"]], ["NA", None], missing=frozenset({"NA"}))
    counts = count(given)
    assert (len(counts.patterns), counts.n_items) == (1, 2)


def test_empty_counts() -> None:
    none = Tally(["a", "b"]).counts
    assert (none.n_items, none.columns.labelers) == (0, ("labeler",))
    assert len(single_labeler("llm", ("a", "b"))) == 3
    assert dh_kappa(Tally(["a", "b"])).n_items == 0
