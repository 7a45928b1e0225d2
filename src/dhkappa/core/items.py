"""Items with their columns: every vote (ItemVotes), patterns that add up (Counts), several labelers (ItemTable)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Floats, Integers, Label, grouping
from dhkappa.core.grouping import Encoded, LabeledPatterns, Patterns, group_rows, stack
from dhkappa.core.item_columns import ItemColumns, lookup
from dhkappa.core.labels import check_declared, check_missing, union
from dhkappa.errors import invalid, shown


def _repeats(first: Array, group: Array) -> bool:
    """Tell whether there are at most half as many distinct rows as rows."""
    return 0 < 2 * first.size <= group.size


@dataclass(frozen=True, eq=False)
class ItemVotes:
    """Every vote on n rows, with the item columns. A row is an item, or stands for several equal items."""

    votes: Encoded  # an (n, N) grid, or flat where rows have a length; of a matrix, its column names
    columns: ItemColumns
    declared: Categories | None = None  # None for the categories that occur
    length: npt.NDArray[np.int64] | None = None  # (n,) votes per row, if rows differ
    matrix: Integers | None = None  # (n, m) vote counts, instead of votes
    names: Sequence[Any] | None = None  # names of the items; None for their positions
    annotators: tuple[Any, ...] | None = None  # None if unknown; the columns of a grid
    voter: npt.NDArray[np.int64] | None = None  # (T,) index into annotators, for flat votes
    items: npt.NDArray[np.int64] | None = None  # (n,) number of equal items that a row stands for; None for one each
    group: Integers | None = None  # the row of each item, if equal rows were merged; None if they are in order
    # If the items of a row are to be fetched: returns up to a number of pairs (row, name of an item) for some rows.
    find: Callable[[Sequence[int], int], list[tuple[int, Any]]] | None = None
    shown: Any = None  # ShownColumns, if the items have columns to show, such as their text

    def item_names(self) -> Sequence[Any]:
        """Return the names of the items, their positions by default."""
        if self.names is not None:
            return self.names
        return range(len(self.columns) if self.group is None else self.group.size)

    def merged(self) -> ItemVotes:
        """Return a grid with equal rows merged, if their keys fit 64 bits and at most half of the rows are left."""
        n, votes = len(self.columns), self.votes
        if votes.values.ndim != 2 or self.matrix is not None or self.items is not None:
            return self
        base = len(votes.labels)
        given = [(base, Encoded(column, votes.low, votes.labels).digits()) for column in votes.values.T]
        columns = [*given, *self.columns.keys()]
        few = [(base, digits[:: max(n // grouping.TRIED, 1)]) for base, digits in columns]
        if math.prod(base or n for base, _ in columns) >= grouping.WORD // 2 or not _repeats(*group_rows(few)):
            return self
        first, group = group_rows(columns)
        if not _repeats(first, group):
            return self
        items, group = np.bincount(group).astype(np.int64), group.astype(np.min_scalar_type(first.size), copy=False)
        return replace(self, votes=votes.take(first), columns=self.columns.take(first), items=items, group=group)

    def patterns(self, labels: Encoded, merged: bool = True) -> Patterns:
        """Count the rows by votes and labels, both in digits; unless ``merged``, some patterns may be equal."""
        if self.matrix is not None:
            return grouping.count_matrix(self.matrix, labels, self.items)
        if self.length is not None:
            return grouping.count_lists(self.votes, self.length, labels).merged()
        return grouping.count_grid(self.votes, labels, self.items, merged)

    def distinct_votes(self) -> tuple[Patterns, Array]:
        """Return the distinct vote patterns without labels, in digits, and (n,) the index of each row's pattern."""
        votes = self.votes
        if self.matrix is not None:
            n = len(self.matrix)
            return grouping.from_counts(self.matrix, np.zeros(n, np.int32), np.ones(n, np.int64)).grouped()
        if self.length is not None:
            return grouping.count_lists(votes, self.length, Encoded.absent(self.length.size)).grouped()
        n, N = votes.values.shape
        base = len(votes.labels)
        if n and N and N * math.log2(max(base, 2)) <= math.log2(max(1 << 12, min(n, 1 << 20))):
            # Few combinations of votes are possible: find those that occur first.
            first, group = group_rows([(base, column) for column in votes.digits().T])
            patterns, place = stack([*grouping.grid_rows(votes.take(first), Encoded.absent(first.size))]).grouped()
            return patterns, place.astype(np.min_scalar_type(len(patterns)))[group]
        return stack([grouping.EMPTY, *grouping.grid_rows(votes, Encoded.absent(n))]).grouped()

    def settle(self, voted: list[Label], suggested: list[Label]) -> Categories:
        """Return the categories: as declared, as the columns of a matrix, else those voted for or suggested."""
        if self.declared is None and self.matrix is None:
            return union(voted, suggested)
        names = [label for label in self.votes.labels if label is not None]
        categories = union(names) if self.declared is None else self.declared
        check_declared(voted, categories, "votes")
        check_declared(suggested, categories, "suggested", columns=self.declared is None)
        return categories

    @cached_property
    def categories(self) -> Categories:
        """The categories, in order."""
        digits = self.votes.digits().reshape(-1) if self.matrix is None else np.flatnonzero(self.matrix.any(axis=0))
        return self.settle(self.votes.occurring(digits), self.columns.suggested_labels())

    @cached_property
    def sorted_votes(self) -> tuple[Integers, Integers, npt.NDArray[np.int32]]:
        """(T,) row, annotator (0 if unknown) and category of each vote, in order of rows, then categories."""
        n, table = len(self.columns), lookup(self.votes.labels, self.categories)
        row: Integers = np.arange(n, dtype=np.min_scalar_type(n))
        if self.matrix is not None:
            m = self.matrix.shape[1]
            row, digits = np.divmod(np.repeat(np.arange(n * m), self.matrix.ravel()), max(m, 1))
        elif self.length is not None:
            row, digits = np.repeat(row, self.length), self.votes.digits()
        else:
            code = table[self.votes.digits()]
            who = np.argsort(code, axis=1, kind="stable").astype(np.min_scalar_type(code.shape[1]))
            code = np.take_along_axis(code, who, axis=1)
            return np.repeat(row, (code >= 0).sum(axis=1)), who[code >= 0], code[code >= 0]
        code = table[digits]
        order = np.lexsort((code, row))
        order = order[code[order] >= 0]
        who = np.zeros_like(order) if self.voter is None else self.voter[order]
        return row[order], who, code[order]

    @cached_property
    def _unlabeled(self) -> Patterns:
        """One pattern per row, in the order of rows, without labels."""
        n, (item, _, code) = len(self.columns), self.sorted_votes
        start = np.searchsorted(item, np.arange(n + 1, dtype=item.dtype))
        no_category = np.zeros(len(self.categories), np.bool_)
        each = np.ones(n, np.int64) if self.items is None else self.items
        return grouping.from_votes(code, start, no_category, np.full(n, -1, np.int32), each)

    def labeled_patterns(self, labeler: str) -> LabeledPatterns:
        """Return one pattern per row, in the order of rows, with the labels of a labeler."""
        suggested = self.columns.codes(self.columns.labeler(labeler), self.categories)
        design = replace(self.columns, labels={}).recode(self.categories).design()
        return LabeledPatterns(self.categories, replace(self._unlabeled, suggested=suggested), *design)

    def distinct_patterns(self) -> tuple[LabeledPatterns, Array]:
        """Return the distinct patterns of one labeler by stratum, whatever the weights, and (n,) that of each item."""
        votes, columns = self.votes, replace(self.columns, weight=None)
        patterns, vote = self.distinct_votes()
        categories = self.settle(votes.occurring(patterns.code), columns.suggested_labels())
        first, group = columns.distinct()
        own = columns.take(first).recode(categories)
        combined, row = group_rows([(len(patterns), vote), (first.size, group)])
        patterns = patterns.recode(lookup(votes.labels, categories), np.zeros(1, np.int64)).take(vote[combined])
        suggested = own.codes(own.labeler(None), categories)[group[combined]]
        patterns = replace(patterns, suggested=suggested, items=np.bincount(row, minlength=combined.size))
        return LabeledPatterns(categories, patterns, *own.design(group[combined])), row


@dataclass(frozen=True, slots=True, eq=False)
class VoteSource:
    """How to read who cast each vote of a kappa, when that is needed; pickled as None, as it may be an open file."""

    read: Callable[[], ItemVotes | None]
    labeler: str | None = None

    def __deepcopy__(self, memo: Any) -> VoteSource:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Distinct patterns with the number of items that share each."""

    categories: Categories  # in the order of codes
    patterns: Patterns  # K distinct rows; ``suggested`` is an index into ``columns``
    columns: ItemColumns  # J distinct combinations of labels, stratum, weight, cluster, encoded by ItemColumns.recode
    source_notes: tuple[str, ...] = ()  # sentences about where the votes came from

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return int(self.patterns.items.sum())

    @property
    def has_single_votes(self) -> bool:
        """Whether some item has a vote, but none has two."""
        return bool(len(self.patterns)) and int(self.patterns.vote_totals().max()) == 1

    def labeled_patterns(self, labeler: str | None = None) -> LabeledPatterns:
        """Return the distinct patterns with the labels of one labeler, and the stratum, weight and cluster of each."""
        name = (
            self.columns.labelers[0] if labeler is None and self.columns.labels_only else self.columns.labeler(labeler)
        )
        return self._rows({name: self.columns.labels[name]}, merge=not self.columns.labels_only)

    def unlabeled_patterns(self) -> LabeledPatterns:
        """Return the distinct patterns without labels, and the stratum, weight and cluster of each."""
        return self._rows({"": Encoded.absent(len(self.columns))}, merge=True)

    def _rows(self, labels: dict[str, Encoded], merge: bool) -> LabeledPatterns:
        own, patterns = replace(self.columns, labels=labels), self.patterns
        if merge:
            first, group = own.distinct()
            own = own.take(first)
            patterns = patterns.recode(np.arange(len(self.categories)), group.astype(np.int64)).merged()
        row = patterns.suggested
        patterns = replace(patterns, suggested=own.codes(own.labelers[0], self.categories)[row])
        return LabeledPatterns(self.categories, patterns, *own.design(row), self.source_notes)


def count(item_votes: ItemVotes, merged: bool = True) -> Counts:
    """Count votes with their item columns; unless ``merged``, patterns with one item may be equal."""
    votes, columns = item_votes.votes, item_votes.columns
    if columns.labels_only:
        labels = next(iter(columns.labels.values()))
        patterns = item_votes.patterns(labels, merged)
        categories = item_votes.settle(votes.occurring(patterns.voted()), labels.occurring(patterns.suggested))
        index = lookup(labels.labels, categories) + 1
        patterns = patterns.recode(lookup(votes.labels, categories), index)
        if sum(label is None for label in labels.labels) > 1:
            patterns = patterns.merged()  # two spellings of missing are one
        return Counts(categories, patterns, single_labeler(columns.labelers[0], categories))
    first, group = columns.distinct()
    patterns = item_votes.patterns(Encoded(group, 0, range(first.size)))
    categories = item_votes.settle(votes.occurring(patterns.code), columns.suggested_labels())
    patterns = patterns.recode(lookup(votes.labels, categories), np.arange(first.size))
    return Counts(categories, patterns, columns.take(first).recode(categories))


def single_labeler(name: str, categories: Categories) -> ItemColumns:
    """Return the item columns of one labeler without strata and weights: missing, then every category."""
    return ItemColumns({name: Encoded(np.arange(len(categories) + 1), 0, (None, *categories))})


def add(tables: Sequence[Counts], categories: Categories) -> Counts:
    """Add up counts of the same labelers, in codes of these categories, which include all of theirs."""
    notes = tuple(dict.fromkeys(chain.from_iterable(table.source_notes for table in tables)))
    tables = [table for table in tables if len(table.patterns)] or tables[:1]
    columns = ItemColumns.concat([table.columns for table in tables], categories)
    first, group = columns.distinct()
    ends = np.cumsum([len(table.columns) for table in tables])[:-1]
    patterns = [
        table.patterns.recode(lookup(table.categories, categories), rows.astype(np.int64))
        for table, rows in zip(tables, np.split(group, ends), strict=True)
    ]
    return Counts(categories, stack(patterns).merged(), columns.take(first), notes)


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """Items with the labels of several labelers, for comparisons on the same items."""

    categories: Categories  # the m categories, in the order of codes
    votes: Patterns  # V distinct vote patterns; their labels and items mean nothing
    vote: Integers  # (K,) index of a row's votes among these
    labels: dict[str, Integers]  # (K,) code of the suggested label, m if missing, by labeler
    strata: Categories
    design: Integers | None  # (K,) index into the next three; None without strata, weights and clusters
    design_stratum: Integers | None  # (S,) index into strata
    design_weight: Floats | None  # (S,) sample weight of one item
    design_cluster: Integers | None  # (S,) number of the cluster
    items: npt.NDArray[np.int64]  # (K,) number of items
    source_notes: tuple[str, ...] = ()  # sentences about where the votes came from
    single: bool = False  # each row is one item
    labeled: bool = False  # no label is missing, as far as known

    @property
    def stratum(self) -> Integers | None:
        """(K,) index into strata."""
        return None if self.design_stratum is None else self.design_stratum[self.design]

    @property
    def weight(self) -> Floats | None:
        """(K,) sample weight of one item."""
        return None if self.design_weight is None else self.design_weight[self.design]

    @property
    def cluster(self) -> Integers | None:
        """(K,) number of the cluster."""
        return None if self.design_cluster is None else self.design_cluster[self.design]

    @property
    def n_designs(self) -> int:
        """The number S of combinations of stratum, weight and cluster, 1 without them."""
        known = (self.design_stratum, self.design_weight, self.design_cluster)
        return next((len(one) for one in known if one is not None), 1)

    @property
    def _base(self) -> int:
        return max(len(self.categories) + (not self.labeled), 1)

    def take(self, rows: Array) -> ItemTable:
        """Return some rows, by index or mask."""
        labels = {who: codes[rows] for who, codes in self.labels.items()}
        design = None if self.design is None else self.design[rows]
        return replace(self, vote=self.vote[rows], labels=labels, design=design, items=self.items[rows])

    def distinct(self, labelers: Sequence[str]) -> ItemTable:
        """Return the distinct rows for these labelers, in an order that depends on the rows only."""
        columns: list[tuple[int, Any]] = [(len(self.votes), self.vote)]
        columns += [(self._base, self.labels[who]) for who in labelers]
        columns += [] if self.design is None else [(self.n_designs, self.design)]
        bases = [base for base, _ in columns]
        if math.prod(bases) >= grouping.WORD:
            first, group = group_rows(columns)
            items = np.zeros(first.size, np.int64)
            np.add.at(items, group, self.items)
            vote, *digits = (digit[first] for _, digit in columns)
        else:
            n, block, bins = self.vote.size, 2 * grouping.BLOCK, (1 << 16, 1 << 22)
            each = None if self.single else self.items
            keys, items = grouping.count_rows(
                n, bases, lambda rows: [digit[rows] for _, digit in columns], items=each, block=block, bins=bins
            )
            vote, *digits = grouping.split_digits(keys, bases)
        labels = dict(zip(labelers, digits, strict=False))
        design = None if self.design is None else digits[-1]
        return replace(self, vote=vote, labels=labels, design=design, items=items, single=False)

    def grid(self) -> ItemTable:
        """Return every combination of votes, labels of two labelers, and design, in the order of ``distinct``."""
        shape = len(self.votes), self._base, self._base, self.n_designs
        vote, one, other, design = np.indices(shape).reshape(4, math.prod(shape))
        labels: dict[str, Integers] = {"one": one, "other": other}
        items = np.zeros(vote.size, np.int64)
        return replace(self, vote=vote, labels=labels, design=None if self.design is None else design, items=items)

    def pair_counts(self, groups: Sequence[Sequence[str]]) -> Iterator[tuple[int, int, Array]]:
        """Yield the indices of each two groups, and the number of items of each labeler of one with each of the other.

        The array has shape (size^2, C): pairs of labelers, and rows of ``grid``. Groups have the same size. Two groups
        are counted in one pass over the items, in a dense table of votes and the labels of all their labelers.
        """
        n, size, m, step = self.vote.size, len(groups[0]), self._base, 2 * grouping.BLOCK
        kinds, joint = len(self.votes) * self.n_designs, m**size
        kind = self.vote if self.design is None else self.vote.astype(np.int64) * self.n_designs + self.design
        small, wide = np.min_scalar_type(joint), np.min_scalar_type(kinds * joint**2)
        digits = [grouping.join_digits([m] * size, [self.labels[who] for who in group], small) for group in groups]
        number = np.float64 if int(self.items.sum()) < 2**53 else np.int64  # floats are exact, and faster to multiply
        items = np.broadcast_to(number(1), n) if self.single else self.items.astype(number)
        # Which label of each labeler a joint label stands for: (joint, size * m) zeros and ones.
        split = np.eye(m, dtype=number)[np.indices((m,) * size).reshape(size, joint).T].reshape(joint, size * m)
        shape = size, m, len(self.votes), self.n_designs, size, m
        table, place = np.empty(kinds * joint**2, number), np.empty(min(n, step), np.intp)
        for i, digit in enumerate(digits):
            # Joint label of one group, votes and design, joint label of the other: each side is one matrix product.
            key = grouping.join_digits([joint, kinds], [digit, kind], wide) * wide.type(joint)
            for j in range(i + 1, len(groups)):
                table.fill(0)
                for first in range(0, n, step):
                    rows = slice(first, min(first + step, n))
                    at = np.add(key[rows], digits[j][rows], out=place[: rows.stop - first])
                    np.add.at(table, at, items[rows])
                counts = (split.T @ table.reshape(joint, kinds * joint)).reshape(size * m * kinds, joint) @ split
                yield i, j, counts.reshape(shape).transpose(0, 4, 2, 1, 5, 3).reshape(size**2, kinds * m * m)


def _codes(column: Encoded, categories: Categories) -> Integers:
    """Return (n,) the index of each label among the categories, their number if missing."""
    table, m = lookup(column.labels, categories), len(categories)
    table = np.where(table < 0, m, table).astype(np.min_scalar_type(m))
    digits = column.digits()
    return digits if np.array_equal(table, np.arange(table.size)) else table[digits]


def _designs(strata: Categories, stratum: Any, weight: Any, cluster: Any) -> tuple[Categories, Any, Any, Any, Any]:
    """Return strata, the design of each row, and stratum, weight and cluster of each design."""
    columns = [] if stratum is None else [(len(strata), stratum)]
    columns += [] if weight is None else [(0, weight)]
    columns += [] if cluster is None else [(int(cluster.max(initial=0)) + 1, cluster)]
    if not columns:
        return strata, None, None, None, None
    first, design = group_rows(columns)
    own: list[Any] = [None if one is None else one[first] for one in (stratum, weight, cluster)]
    return strata, design, own[0], own[1], own[2]


def item_table_of_votes(item_votes: ItemVotes, missing: frozenset[Label] = frozenset()) -> ItemTable:
    """Return the table of items with one row per item."""
    votes, columns = item_votes.votes, item_votes.columns
    patterns, vote = item_votes.distinct_votes()
    categories = item_votes.settle(votes.occurring(patterns.code), columns.suggested_labels())
    notes = check_missing(categories, missing)
    table = lookup(votes.labels, categories)
    if not np.array_equal(table, np.arange(table.size)):  # same order as that of counts of the same items
        patterns, order = patterns.recode(table, np.zeros(1, np.int64)).grouped()
        vote = order.astype(vote.dtype)[vote]
    labels = {who: _codes(column, categories) for who, column in columns.labels.items()}
    design = (columns if columns.stratum is None else columns.recode(categories)).design()
    each = np.broadcast_to(np.int64(1), vote.size)
    return ItemTable(categories, patterns, vote, labels, *_designs(*design), each, notes, single=True)


def item_table_of_counts(counts: Counts, labelers: Sequence[str] | None = None) -> ItemTable:
    """Return the table of items of some labelers, or all, with one row per pattern."""
    columns, row = counts.columns, counts.patterns.suggested
    chosen = columns.labelers if labelers is None else [columns.labeler(name) for name in labelers]
    if len(set(chosen)) < len(chosen):
        raise invalid("suggested", f"suggested names a labeler twice: {shown(chosen)}.", code="labeler-twice")
    votes, vote = replace(counts.patterns, suggested=np.zeros(len(row), np.int32)).grouped()
    labels = {who: _codes(columns.labels[who], counts.categories)[row] for who in chosen}
    design, items = _designs(*columns.design(row)), counts.patterns.items
    return ItemTable(counts.categories, votes, vote, labels, *design, items, counts.source_notes)
