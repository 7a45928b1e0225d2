"""Counts: patterns with multiplicities, which add up; ItemTable: the same items for several labelers at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, Label
from dhkappa.core.counting import distinct_votes
from dhkappa.core.grouping import BLOCK, WORD, count_rows, group_rows, join_digits, split_digits
from dhkappa.core.items import ItemColumns, ItemVotes, lookup
from dhkappa.core.labels import Encoded, check_missing
from dhkappa.core.patterns import EMPTY, LabeledPatterns, Patterns, stack
from dhkappa.errors import DataError, shown


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Distinct patterns with the number of items that share each.

    Attributes
    ----------
    categories : the categories, in the order of codes
    patterns : K distinct rows; ``suggested`` is an index into ``columns``
    columns : J distinct combinations of labels, stratum and weight, encoded by ``ItemColumns.recode``
    """

    categories: tuple[Label, ...]
    patterns: Patterns
    columns: ItemColumns

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return int(self.patterns.items.sum())

    def labeler(self, name: str | None) -> str:
        """Return the labeler with this name, or the only one."""
        known = self.columns.labelers
        if name is None and len(known) > 1:
            raise DataError(
                f"There are {len(known)} labelers: {shown(known, 10)}.",
                code="several-labelers",
                parameter="suggested",
                hint=f"Choose one with $suggested, such as {known[0]!r}.",
            )
        if name is not None and name not in known:
            raise DataError(
                f"Labeler {shown([name])} not found. Labelers: {shown(known, 10)}.",
                code="labeler-not-found",
                parameter="suggested",
            )
        return known[0] if name is None else name

    def labeled_patterns(self, labeler: str | None = None, source_notes: tuple[str, ...] = ()) -> LabeledPatterns:
        """Return the distinct patterns with the labels of one labeler, and the stratum and weight of each."""
        own = self.columns.choose([self.labeler(labeler)])
        return self._rows(own, source_notes, merge=not self.columns.labels_only)

    def unlabeled_patterns(self, source_notes: tuple[str, ...] = ()) -> LabeledPatterns:
        """Return the distinct patterns without labels, and the stratum and weight of each."""
        nobody = {"": Encoded(np.zeros(len(self.columns), np.uint8), 0, (None,))}
        return self._rows(replace(self.columns, labels=nobody), source_notes, merge=True)

    def _rows(self, own: ItemColumns, source_notes: tuple[str, ...], merge: bool) -> LabeledPatterns:
        patterns = self.patterns
        if merge:
            first, group = own.distinct()
            own = own.take(first)
            patterns = patterns.recode(np.arange(len(self.categories)), group.astype(np.int64)).merged()
        row = patterns.suggested
        return LabeledPatterns(
            self.categories,
            replace(patterns, suggested=own.codes(own.labelers[0], self.categories)[row]),
            own.strata,
            None if own.stratum is None else own.stratum.values[row],
            None if own.weight is None else own.weight[row],
            source_notes,
        )


def count(item_votes: ItemVotes) -> Counts:
    """Count votes with their item columns."""
    votes, columns = item_votes.votes, item_votes.columns
    if columns.labels_only:
        labels = next(iter(columns.labels.values()))
        patterns = item_votes.patterns(labels)
        categories = item_votes.settle(votes.occurring(patterns.code), labels.occurring(patterns.suggested))
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


def single_labeler(name: str, categories: tuple[Label, ...]) -> ItemColumns:
    """Return the item columns of one labeler without strata and weights: missing, then every category."""
    return ItemColumns({name: Encoded(np.arange(len(categories) + 1), 0, (None, *categories))})


def add(tables: Sequence[Counts], categories: tuple[Label, ...]) -> Counts:
    """Add up counts of the same labelers, in codes of these categories, which include all of theirs."""
    tables = [table for table in tables if len(table.patterns)] or tables[:1]
    columns = ItemColumns.concat([table.columns for table in tables], categories)
    first, group = columns.distinct()
    ends = np.cumsum([len(table.columns) for table in tables])[:-1]
    patterns = [
        table.patterns.recode(lookup(table.categories, categories), rows.astype(np.int64))
        for table, rows in zip(tables, np.split(group, ends), strict=True)
    ]
    return Counts(categories, stack(patterns).merged(), columns.take(first))


def empty(categories: tuple[Label, ...], labeler: str) -> Counts:
    """Return the counts of no items."""
    return Counts(categories, EMPTY, single_labeler(labeler, categories))


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
