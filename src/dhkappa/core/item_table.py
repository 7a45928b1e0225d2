"""ItemTable: items with the labels of several labelers, as distinct rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Floats, Integers, Label, grouping
from dhkappa.core.grouping import Encoded, Patterns, group_rows
from dhkappa.core.items import Counts, ItemVotes, lookup
from dhkappa.core.labels import check_missing
from dhkappa.errors import invalid, shown


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
