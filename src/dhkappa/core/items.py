"""Items with votes: ItemColumns, ItemVotes (every vote) and Counts (patterns with multiplicities, which add up)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, Label
from dhkappa.core.grouping import (
    EMPTY,
    Encoded,
    LabeledPatterns,
    Patterns,
    count_grid,
    count_lists,
    count_matrix,
    from_votes,
    group_rows,
    stack,
)
from dhkappa.core.labels import check_declared, union
from dhkappa.errors import DataError, shown


@dataclass(frozen=True, slots=True, eq=False)
class ItemColumns:
    """What is known of each of n items beside its votes.

    Attributes
    ----------
    labels : suggested labels, (n,) by labeler
    stratum : (n,) the stratum of each item; None without strata
    weight : (n,) the sample weight of each item; None without weights
    """

    labels: dict[str, Encoded]
    stratum: Encoded | None = None
    weight: npt.NDArray[np.float64] | None = None

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return tuple(self.labels)

    @property
    def labels_only(self) -> bool:
        """Whether there is one labeler, and neither strata nor weights."""
        return len(self.labels) == 1 and self.stratum is None and self.weight is None

    @property
    def strata(self) -> tuple[Label, ...]:
        """The names of the strata."""
        return () if self.stratum is None else tuple(label for label in self.stratum.labels if label is not None)

    def __len__(self) -> int:
        return len(next(iter(self.labels.values())).values)

    def suggested_labels(self) -> list[Label]:
        """Return the labels that some labeler suggests."""
        return [label for column in self.labels.values() for label in column.occurring(column.digits())]

    def codes(self, labeler: str, categories: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return (n,) the index of each suggested label among the categories, -1 if missing."""
        column = self.labels[labeler]
        return lookup(column.labels, categories)[column.digits() if column.low else column.values]

    def take(self, rows: npt.NDArray[Any]) -> ItemColumns:
        """Return some items, by index."""
        return ItemColumns(
            {name: _take(column, rows) for name, column in self.labels.items()},
            None if self.stratum is None else _take(self.stratum, rows),
            None if self.weight is None else self.weight[rows],
        )

    def choose(self, labelers: Sequence[str]) -> ItemColumns:
        """Return the columns with some labelers only, in the given order."""
        return replace(self, labels={name: self.labels[name] for name in labelers})

    def recode(self, categories: tuple[Label, ...]) -> ItemColumns:
        """Encode labels as 0 for missing and 1 + index into the categories, and strata as those that occur."""
        stratum = self.stratum
        if stratum is not None:
            names = tuple(stratum.occurring(stratum.digits()))
            stratum = Encoded(lookup(stratum.labels, names)[stratum.digits()], 0, names)
        known = (None, *categories)
        labels = {name: Encoded(self.codes(name, categories) + 1, 0, known) for name in self.labels}
        return ItemColumns(labels, stratum, self.weight)

    def distinct(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the first item of each group of equal items, and (n,) the group of each item."""
        columns: list[tuple[int, Any]] = [(len(column.labels), column.digits()) for column in self.labels.values()]
        if self.stratum is not None:
            columns.append((len(self.stratum.labels), self.stratum.digits()))
        if self.weight is not None:
            columns.append((0, self.weight))
        return group_rows(columns)

    @staticmethod
    def concat(tables: Sequence[ItemColumns], categories: tuple[Label, ...]) -> ItemColumns:
        """Concatenate tables with the same labelers, with strata all or none, and weights all or none."""
        parts = [table.choose(tables[0].labelers).recode(categories) for table in tables]
        labels = {
            name: Encoded(np.concatenate([part.labels[name].values for part in parts]), 0, (None, *categories))
            for name in tables[0].labelers
        }
        strata, stratum = union(*(part.strata for part in parts)), None
        if parts[0].stratum is not None:
            moved = [lookup(part.strata, strata)[part.stratum.values] for part in parts if part.stratum is not None]
            stratum = Encoded(np.concatenate(moved), 0, strata)
        weights = [part.weight for part in parts if part.weight is not None]
        return ItemColumns(labels, stratum, np.concatenate(weights) if weights else None)


def _take(column: Encoded, rows: npt.NDArray[Any]) -> Encoded:
    return Encoded(column.values[rows], column.low, column.labels)


def lookup(labels: Sequence[Label | None], categories: Sequence[Label]) -> npt.NDArray[np.int32]:
    """Return the index of each label among the categories, -1 if missing or absent."""
    place: dict[Label | None, int] = {label: code for code, label in enumerate(categories)}
    return np.array([-1 if label is None else place.get(label, -1) for label in labels] or [-1], np.int32)


@dataclass(frozen=True, eq=False)
class ItemVotes:
    """Every vote on n rows, with the item columns. A row is an item, or stands for several equal items.

    Attributes
    ----------
    votes : encoded votes: an (n, N) grid, or flat where rows have a ``length``; of a matrix, its column names
    columns : labels, stratum and weight of each row
    declared : declared categories; None for those that occur
    length : (n,) votes per row, if rows differ
    matrix : (n, m) vote counts, instead of votes
    names : (n,) names of the items; None for their positions
    annotators : names of the annotators; None if unknown. They are the columns of a grid
    voter : (T,) index into ``annotators`` for flat votes
    items : (n,) number of equal items that a row stands for; None for one each
    find : then, a function of some rows and a limit that returns pairs (row, name of an item)
    """

    votes: Encoded
    columns: ItemColumns
    declared: tuple[Label, ...] | None = None
    length: npt.NDArray[np.int64] | None = None
    matrix: Integers | None = None
    names: Sequence[Any] | None = None
    annotators: tuple[Any, ...] | None = None
    voter: npt.NDArray[np.int64] | None = None
    items: npt.NDArray[np.int64] | None = None
    find: Callable[[Sequence[int], int], list[tuple[int, Any]]] | None = None

    @property
    def n_items(self) -> int:
        """The number of rows, eligible or not."""
        return len(self.columns)

    def item_names(self) -> Sequence[Any]:
        """Return the names of the items, their positions by default."""
        return range(self.n_items) if self.names is None else self.names

    def patterns(self, labels: Encoded) -> Patterns:
        """Count the rows by votes and labels, both in digits."""
        if self.matrix is not None:
            return count_matrix(self.matrix, labels, self.items)
        if self.length is not None:
            return count_lists(self.votes, self.length, labels).merged()
        return count_grid(self.votes, labels, self.items)

    def settle(self, voted: list[Label], suggested: list[Label]) -> tuple[Label, ...]:
        """Return the categories: as declared, as the columns of a matrix, else those voted for or suggested."""
        if self.declared is None and self.matrix is None:
            return union(voted, suggested)
        names = [label for label in self.votes.labels if label is not None]
        categories = union(names) if self.declared is None else self.declared
        check_declared(voted, categories, "votes")
        check_declared(suggested, categories, "suggested", columns=self.declared is None)
        return categories

    @cached_property
    def _flat(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Integers]:
        """Item, annotator and digit of every vote, missing ones included."""
        if self.matrix is not None:
            m = self.matrix.shape[1]
            item, digits = np.divmod(np.repeat(np.arange(self.matrix.size), self.matrix.ravel()), max(m, 1))
            return item, np.zeros_like(item), digits
        if self.length is not None:
            item = np.repeat(np.arange(self.length.size), self.length)
            return item, np.zeros_like(item) if self.voter is None else self.voter, self.votes.digits()
        n, N = self.votes.values.shape
        item, annotator = np.divmod(np.arange(n * N), max(N, 1))
        return item, annotator, self.votes.digits().reshape(-1)

    @cached_property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self.settle(self.votes.occurring(self._flat[2]), self.columns.suggested_labels())

    @cached_property
    def _cast(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        item, annotator, digits = self._flat
        code = lookup(self.votes.labels, self.categories)[digits]
        cast = code >= 0
        return item[cast], annotator[cast], code[cast]

    @property
    def item(self) -> npt.NDArray[np.int64]:
        """(T,) the row that each vote is on, ascending."""
        return self._cast[0]

    @property
    def annotator(self) -> npt.NDArray[np.int64]:
        """(T,) who cast each vote, as an index into ``annotators``; 0 if unknown."""
        return self._cast[1]

    @property
    def code(self) -> npt.NDArray[np.int32]:
        """(T,) the category of each vote."""
        return self._cast[2]

    def labeled_patterns(self, labeler: str) -> LabeledPatterns:
        """Return one pattern per row, in the order of rows, with the labels of a labeler."""
        if labeler not in self.columns.labels:
            raise DataError(
                f"Labeler {labeler!r} not found. Labelers: {shown(self.columns.labelers, 10)}.",
                code="labeler-not-found",
                parameter="suggested",
            )
        order = np.lexsort((self.code, self.item))
        start = np.searchsorted(self.item, np.arange(self.n_items + 1))
        nobody = np.zeros(len(self.categories), np.bool_)
        each = np.ones(self.n_items, np.int64) if self.items is None else self.items
        suggested = self.columns.codes(labeler, self.categories)
        patterns = from_votes(self.code[order], start, nobody, suggested, each)
        columns = self.columns.recode(self.categories)
        stratum = None if columns.stratum is None else columns.stratum.values
        return LabeledPatterns(self.categories, patterns, columns.strata, stratum, columns.weight)


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
