"""Items with their columns: every vote (ItemVotes), and patterns that add up (Counts)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Floats, Integers, Label, grouping
from dhkappa.core.grouping import Encoded, LabeledPatterns, Patterns, group_rows, stack
from dhkappa.core.labels import check_declared, union
from dhkappa.errors import one_labeler


def lookup(labels: Sequence[Label | None], categories: Sequence[Label]) -> npt.NDArray[np.int32]:
    """Return the index of each label among the categories, -1 if missing or absent."""
    place: dict[Label | None, int] = {label: code for code, label in enumerate(categories)}
    return np.array([-1 if label is None else place.get(label, -1) for label in labels] or [-1], np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ItemColumns:
    """Per-item columns of n items: suggested labels, stratum, weight, cluster."""

    labels: dict[str, Encoded]  # (n,) suggested labels, by labeler
    stratum: Encoded | None = None  # (n,); None without strata
    weight: Floats | None = None  # (n,) sample weights; None without weights
    cluster: Encoded | None = None  # (n,); None without clusters

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return tuple(self.labels)

    @property
    def labels_only(self) -> bool:
        """Whether there is one labeler, and neither strata nor weights nor clusters."""
        return len(self.labels) == 1 and self.stratum is None and self.weight is None and self.cluster is None

    @property
    def strata(self) -> Categories:
        """The names of the strata."""
        return () if self.stratum is None else tuple(label for label in self.stratum.labels if label is not None)

    def __len__(self) -> int:
        return len(next(iter(self.labels.values())).values)

    def labeler(self, name: str | None) -> str:
        """Return the labeler with this name, or the only one."""
        only = name is None and len(self.labels) == 1
        return self.labelers[0] if only else one_labeler(name, self.labelers)

    def suggested_labels(self) -> list[Label]:
        """Return the labels that some labeler suggests."""
        return [label for column in self.labels.values() for label in column.occurring(column.digits())]

    def codes(self, labeler: str, categories: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return (n,) the index of each suggested label among the categories, -1 if missing."""
        column = self.labels[labeler]
        return lookup(column.labels, categories)[column.digits() if column.low else column.values]

    def design(self, rows: Any = slice(None)) -> tuple[Categories, Integers | None, Floats | None, Integers | None]:
        """Return the strata, and the stratum, weight and cluster of some rows; of columns encoded by ``recode``."""
        stratum = None if self.stratum is None else self.stratum.values[rows]
        cluster = None if self.cluster is None else self.cluster.digits()[rows]
        return self.strata, stratum, None if self.weight is None else self.weight[rows], cluster

    def take(self, rows: Array) -> ItemColumns:
        """Return some items, by index."""
        labels = {name: column.take(rows) for name, column in self.labels.items()}
        stratum, cluster = (None if one is None else one.take(rows) for one in (self.stratum, self.cluster))
        return ItemColumns(labels, stratum, None if self.weight is None else self.weight[rows], cluster)

    def recode(self, categories: Categories) -> ItemColumns:
        """Encode labels as 0 for missing and 1 + index into the categories, and strata as those that occur."""
        stratum = self.stratum
        if stratum is not None:
            names = tuple(stratum.occurring(stratum.digits()))
            stratum = Encoded(lookup(stratum.labels, names)[stratum.digits()], 0, names)
        known = (None, *categories)
        labels = {name: Encoded(self.codes(name, categories) + 1, 0, known) for name in self.labels}
        return ItemColumns(labels, stratum, self.weight, self.cluster)

    def keys(self) -> list[tuple[int, Array]]:
        """Return the columns as ``group_rows`` takes them."""
        encoded = [*self.labels.values(), *(one for one in (self.stratum, self.cluster) if one is not None)]
        columns: list[tuple[int, Array]] = [(len(column.labels), column.digits()) for column in encoded]
        return columns if self.weight is None else [*columns, (0, self.weight)]

    def distinct(self) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the first item of each group of equal items, and (n,) the group of each item."""
        return group_rows(self.keys())

    @staticmethod
    def concat(tables: Sequence[ItemColumns], categories: Categories) -> ItemColumns:
        """Concatenate tables with the same labelers, with strata all or none, and weights all or none.

        Clusters cannot be concatenated: two tables may have items of the same cluster. One table keeps them.
        """
        parts = [table.recode(categories) for table in tables]
        labels = {
            name: Encoded(np.concatenate([part.labels[name].values for part in parts]), 0, (None, *categories))
            for name in tables[0].labelers
        }
        strata, stratum = union(*(part.strata for part in parts)), None
        if parts[0].stratum is not None:
            moved = [lookup(part.strata, strata)[part.stratum.values] for part in parts if part.stratum is not None]
            stratum = Encoded(np.concatenate(moved), 0, strata)
        weights = [part.weight for part in parts if part.weight is not None]
        cluster = parts[0].cluster if len(parts) == 1 else None
        return ItemColumns(labels, stratum, np.concatenate(weights) if weights else None, cluster)


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
