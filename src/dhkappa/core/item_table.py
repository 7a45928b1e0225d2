"""ItemTable: items with the labels of several labelers at once, for comparisons on the same items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, Label
from dhkappa.core.grouping import (
    BLOCK,
    EMPTY,
    WORD,
    Encoded,
    Patterns,
    count_lists,
    count_rows,
    from_counts,
    grid_rows,
    group_rows,
    join_digits,
    split_digits,
    stack,
)
from dhkappa.core.items import Counts, ItemVotes, lookup
from dhkappa.core.labels import check_missing
from dhkappa.errors import DataError, shown


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """Items with the labels of several labelers, for comparisons on the same items.

    Attributes
    ----------
    categories : the m categories, in the order of codes
    votes : V distinct vote patterns; their labels and items mean nothing
    vote : (K,) index of a row's votes among these
    labels : (K,) code of the suggested label, m if missing, by labeler
    strata : names of the strata
    stratum : (K,) index into ``strata``, or None
    weight : (K,) sample weight of one item, or None
    items : (K,) number of items
    single : whether each row is one item
    labeled : whether no label is missing, as far as known
    source_notes : sentences about where the votes came from
    """

    categories: tuple[Label, ...]
    votes: Patterns
    vote: Integers
    labels: dict[str, Integers]
    strata: tuple[Label, ...]
    stratum: Integers | None
    weight: npt.NDArray[np.float64] | None
    items: npt.NDArray[np.int64]
    single: bool = False
    labeled: bool = False
    source_notes: tuple[str, ...] = ()

    @property
    def _base(self) -> int:
        return max(len(self.categories) + (not self.labeled), 1)

    def take(self, rows: npt.NDArray[Any]) -> ItemTable:
        """Return some rows, by index or mask."""
        return replace(
            self,
            vote=self.vote[rows],
            labels={who: codes[rows] for who, codes in self.labels.items()},
            stratum=None if self.stratum is None else self.stratum[rows],
            weight=None if self.weight is None else self.weight[rows],
            items=self.items[rows],
        )

    def joint(self, labelers: Sequence[str]) -> tuple[int, Integers]:
        """Return the labels of some labelers as one digit per row, and its base."""
        base = self._base ** len(labelers)
        if len(labelers) == 1 or base >= WORD:
            return base, self.labels[labelers[0]]
        digits = [self.labels[who] for who in labelers]
        return base, join_digits([self._base] * len(labelers), digits, np.min_scalar_type(base))

    def distinct(self, labelers: Sequence[str], joint: Sequence[tuple[int, Integers]] = ()) -> ItemTable:
        """Return the distinct rows for these labelers, in an order that depends on the rows only.

        ``joint`` holds their labels as fewer digits, if already computed.
        """
        columns: list[tuple[int, Any]] = [(len(self.votes), self.vote)]
        columns += [(self._base, self.labels[who]) for who in labelers]
        if self.stratum is not None:
            columns.append((len(self.strata), self.stratum))
        weights = np.zeros(0)
        if self.weight is not None:
            weights, place = np.unique(self.weight, return_inverse=True)
            columns.append((weights.size, place))
        n, bases = self.vote.size, [base for base, _ in columns]
        if math.prod(bases) >= WORD:
            first, group = group_rows(columns)
            items = np.zeros(first.size, np.int64)
            np.add.at(items, group, self.items)
            kept = self.take(first)
            return replace(kept, labels={who: kept.labels[who] for who in labelers}, items=items, single=False)
        at_once = [columns[0], *joint, *columns[1 + len(labelers) :]] if joint else columns
        keys, items = count_rows(
            n,
            [base for base, _ in at_once],
            lambda rows: [digit[rows] for _, digit in at_once],
            items=None if self.single else self.items,
            block=2 * BLOCK,
            bins=(1 << 16, 1 << 22),
        )
        vote, *digits = split_digits(keys, bases)
        rest = iter(digits[len(labelers) :])
        return replace(
            self,
            vote=vote,
            labels=dict(zip(labelers, digits, strict=False)),
            stratum=None if self.stratum is None else next(rest),
            weight=None if self.weight is None else weights[next(rest)],
            items=items,
            single=False,
        )


def item_table_of_votes(item_votes: ItemVotes, missing: frozenset[Label] = frozenset()) -> ItemTable:
    """Return the table of items with one row per item."""
    votes, columns = item_votes.votes, item_votes.columns
    patterns, vote = distinct_votes(votes, item_votes.length, item_votes.matrix)
    categories = item_votes.settle(votes.occurring(patterns.code), columns.suggested_labels())
    check_missing(categories, missing)
    m = len(categories)
    small = np.min_scalar_type(m)

    def codes(column: Encoded) -> Integers:
        table = lookup(column.labels, categories)
        table = np.where(table < 0, m, table).astype(small)
        digits = column.digits()
        return digits if np.array_equal(table, np.arange(table.size)) else table[digits]

    table = lookup(votes.labels, categories)
    if not np.array_equal(table, np.arange(table.size)):  # same order as that of counts of the same items
        patterns, order = patterns.recode(table, np.zeros(1, np.int64)).grouped()
        vote = order.astype(vote.dtype)[vote]
    recoded = columns.recode(categories) if columns.stratum is not None else columns
    return ItemTable(
        categories,
        patterns,
        vote,
        {who: codes(labels) for who, labels in columns.labels.items()},
        recoded.strata,
        None if recoded.stratum is None else recoded.stratum.values,
        columns.weight,
        np.broadcast_to(np.int64(1), vote.size),
        single=True,
    )


def item_table_of_counts(
    counts: Counts, labelers: Sequence[str] | None = None, source_notes: tuple[str, ...] = ()
) -> ItemTable:
    """Return the table of items of some labelers, or all, with one row per pattern."""
    columns, row = counts.columns, counts.patterns.suggested
    chosen = columns.labelers if labelers is None else [counts.labeler(name) for name in labelers]
    if len(set(chosen)) < len(chosen):
        raise DataError(
            f"suggested names a labeler twice: {shown(chosen)}.", code="labeler-twice", parameter="suggested"
        )
    votes, vote = replace(counts.patterns, suggested=np.zeros(len(row), np.int32)).grouped()
    m = len(counts.categories)
    codes = {who: columns.codes(who, counts.categories) for who in chosen}
    return ItemTable(
        counts.categories,
        votes,
        vote,
        {who: np.where(code < 0, m, code).astype(np.min_scalar_type(m))[row] for who, code in codes.items()},
        columns.strata,
        None if columns.stratum is None else columns.stratum.values[row],
        None if columns.weight is None else columns.weight[row],
        counts.patterns.items,
        source_notes=source_notes,
    )


def distinct_votes(
    votes: Encoded, length: npt.NDArray[np.int64] | None, matrix: Integers | None
) -> tuple[Patterns, npt.NDArray[Any]]:
    """Return the distinct vote patterns without labels, in digits, and (n,) the index of each row's pattern."""
    if matrix is not None:
        n = len(matrix)
        return from_counts(matrix, np.zeros(n, np.int32), np.ones(n, np.int64)).grouped()
    if length is not None:
        return count_lists(votes, length, Encoded(np.zeros(length.size, np.uint8), 0, (None,))).grouped()
    n, N = votes.values.shape
    base = len(votes.labels)
    if n and N and N * math.log2(max(base, 2)) <= math.log2(max(1 << 12, min(n, 1 << 20))):
        # Few combinations of votes are possible: find those that occur first.
        first, group = group_rows([(base, column) for column in votes.digits().T])
        rows = Encoded(votes.values[first], votes.low, votes.labels)
        patterns, place = stack([*grid_rows(rows, _unlabeled(first.size), np.ones(first.size, np.int64))]).grouped()
        return patterns, place.astype(np.min_scalar_type(len(patterns)))[group]
    return stack([EMPTY, *grid_rows(votes, _unlabeled(n), np.ones(n, np.int64))]).grouped()


def _unlabeled(n: int) -> Encoded:
    return Encoded(np.zeros(n, np.uint8), 0, (None,))
