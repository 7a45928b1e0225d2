"""Dataset: votes and suggested labels of any origin, counted once. Tally: counts that add up, and can be saved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from dhkappa.core import Label
from dhkappa.core.grouping import BLOCK, MAX_ITEMS, Patterns
from dhkappa.core.items import Counts, ItemVotes, add, empty
from dhkappa.core.labels import check_declared, union
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.arrays import LABELER, declared_categories, missing_labels
from dhkappa.inputs.columns import RoleKeywords, check_keywords
from dhkappa.inputs.load import InputData, input_data
from dhkappa.inputs.tally_file import SavedTally, read_tally, write_tally

if TYPE_CHECKING:
    from dhkappa.inputs.tables import Source

_MAX_TABLES = 64


class Tally:
    """Exact integer counts of votes and suggested labels, which can be added, saved and loaded.

    A tally keeps each distinct pattern (suggested labels, votes by category, stratum, sample weight) with the number of
    items that share it. Its size depends on the number of patterns, not of items. Update it from one thread at a time;
    threads and machines keep a tally each, and add them.

    Parameters
    ----------
    categories
        The possible labels, in order; any other label is an error. By default the labels that occur, in natural order.
    missing
        Labels that mean missing, such as ``"NA"``.

    Examples
    --------
    >>> monday = Tally()
    >>> monday.update([["cat", "cat"], ["cat", "dog"]], ["cat", "dog"])
    >>> tuesday = Tally()
    >>> tuesday.update([["dog", "dog", "bird"]], ["dog"])
    >>> monday + tuesday
    Tally(3 items, 7 votes, 3 categories, 3 patterns, labelers 'labeler')
    """

    __slots__ = ("_categories", "_missing", "_orders", "_source_notes", "_tables")

    def __init__(self, categories: Iterable[Any] | None = None, *, missing: Iterable[Any] = ()) -> None:
        self._missing = missing_labels(missing)
        declared = declared_categories(categories, self._missing)
        self._categories = declared or ()
        self._orders = frozenset() if declared is None else frozenset([declared])
        self._tables: list[Counts] = []
        self._source_notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: InputData) -> Self:
        """Return the tally of some data."""
        made = cls(data.declared, missing=data.missing_labels)
        made._include(data.patterns, data.source_notes)
        return made

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, declared or found, in order."""
        return self._categories

    @property
    def declared(self) -> bool:
        """Whether the categories, and so their order, were declared."""
        return self._orders == {self._categories}

    @property
    def missing(self) -> frozenset[Label]:
        """Labels that mean missing."""
        return self._missing

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers; labels passed without a name are those of ``"labeler"``."""
        return self.counts.columns.labelers if self._tables else ()

    @property
    def strata(self) -> tuple[Label, ...]:
        """The strata, in order; empty if there are none."""
        return self.counts.columns.strata

    @property
    def source_notes(self) -> tuple[str, ...]:
        """Sentences about where the votes came from, such as what an export holds besides votes."""
        return self._source_notes

    @property
    def patterns(self) -> Patterns:
        """The distinct patterns, in codes of ``categories``."""
        return self.counts.patterns

    @property
    def counts(self) -> Counts:
        """All that was counted, as one table."""
        if not self._tables:
            return empty(self._categories, LABELER)
        if len(self._tables) != 1 or self._tables[0].categories != self._categories:
            self._tables = [add(self._tables, self._categories)]
        return self._tables[0]

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return sum(table.n_items for table in self._tables)

    @property
    def n_votes(self) -> int:
        """The number of votes on them."""
        return sum(table.patterns.n_votes() for table in self._tables)

    def __len__(self) -> int:
        return len(self.patterns)

    def __repr__(self) -> str:
        sizes = ((self.n_items, "item"), (self.n_votes, "vote"), (len(self._categories), "category"))
        parts = [*(counted(*size) for size in sizes), counted(len(self), "pattern")]
        return f"Tally({', '.join(parts)}{f', labelers {shown(self.labelers)}' if self.labelers else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        if self._categories != other._categories or _difference(self._tables, other._tables):
            return False
        right = other.counts
        minus = replace(right, patterns=replace(right.patterns, items=-right.patterns.items))
        return not add([self.counts, minus], self._categories).patterns.items.any()

    __hash__ = None  # type: ignore[assignment]  # a tally can change

    def copy(self) -> Tally:
        """Return a copy that later updates of this tally do not change."""
        twin = Tally()
        twin._categories, twin._orders, twin._missing = self._categories, self._orders, self._missing
        twin._tables, twin._source_notes = list(self._tables), self._source_notes
        return twin

    def update(
        self,
        data: Any = None,
        suggested: Any = None,
        *,
        counts: Any = None,
        sample_weight: Any = None,
        strata: Any = None,
        **roles: Unpack[RoleKeywords],
    ) -> None:
        """Count more items. After an error the tally is unchanged.

        Parameters
        ----------
        data, suggested, counts, sample_weight, strata, **roles
            As for ``Dataset``. Without suggested labels, the items count for Fleiss' kappa only.
        """
        if isinstance(getattr(data, "input_data", None), InputData):  # a Dataset, with categories of its own
            other = Tally.of(input_data(data, suggested, counts, None, (), sample_weight, strata, roles))
            if self.declared:
                check_declared(other.categories, self._categories, "data")
            self._merge(other)
            return
        categories = self._categories if self.declared else None
        given = input_data(data, suggested, counts, categories, self._missing, sample_weight, strata, roles)
        if counts is not None and given.table is None:
            self._check_columns(given)
        self._include(given.patterns, given.source_notes)

    def _check_columns(self, given: InputData) -> None:
        """Refuse unnamed columns of counts if this tally has other categories than their positions."""
        names = given._arrays.votes.labels
        places = range(max(len(names), len(self._categories)))
        unnamed = bool(names) and isinstance(names, range)
        if unnamed and not all(category in places for category in self._categories):
            raise DataError(
                f"The columns of counts have no names, and this tally counts {shown(self._categories)}.",
                code="unnamed-columns",
                parameter="counts",
                hint="Pass counts as a dataframe, or make the tally with $categories.",
            )

    def _include(self, table: Counts, source_notes: Sequence[str]) -> None:
        categories = union(self._categories, table.categories) if self._categories else table.categories
        self._add([table], self._categories if self.declared else categories)
        self._source_notes = tuple(dict.fromkeys([*self._source_notes, *source_notes]))

    def __radd__(self, other: int) -> Tally:
        return self.copy() if other == 0 else NotImplemented  # sum() starts from 0

    def __add__(self, other: Tally) -> Tally:
        """Count the items of both; an item in both counts twice.

        Categories are united. A declared order is kept if it has all of them, else they are sorted.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        total = self.copy()
        total._merge(other)
        return total

    def _merge(self, other: Tally) -> None:
        """Count the items of another tally, too."""
        for one, two in ((self, other), (other, self)):
            both = sorted(map(str, one._missing.intersection(two._categories)))
            if both:
                raise DataError(
                    f"{shown(both)} means missing in one tally and is a category in the other.",
                    code="different-missing",
                    parameter="missing",
                    hint="Make both tallies with the same $missing.",
                )
        orders = self._orders | other._orders
        self._add(other._tables, _settle(orders, union(self._categories, other._categories)))
        self._missing, self._orders = self._missing | other._missing, orders
        self._source_notes = tuple(dict.fromkeys([*self._source_notes, *other._source_notes]))

    def _add(self, tables: Sequence[Counts], categories: tuple[Label, ...]) -> None:
        """Append tables, and merge them when the number of rows has doubled."""
        if self.n_items + sum(table.n_items for table in tables) > MAX_ITEMS:
            raise DataError(f"A tally holds at most {MAX_ITEMS:,} items.", code="too-many-items")
        difference = _difference(self._tables, tables)
        if difference:
            raise DataError(
                f"Items counted together must have the same labelers, and all or none have strata and weights: "
                f"{difference}.",
                code="different-columns",
                hint="Pass None as the labels of a labeler that is absent." if "labelers" in difference else "",
            )
        _check_strata([*self._tables, *tables])
        self._tables = [*self._tables, *tables]
        self._categories = categories
        fresh = sum(len(table.patterns) for table in self._tables[1:])
        if self._tables and (fresh > max(len(self._tables[0].patterns), BLOCK) or len(self._tables) > _MAX_TABLES):
            self._tables = [add(self._tables, categories)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a JSON file, atomically."""
        write_tally(path, SavedTally(self.counts, self._orders, self._missing, self._source_notes))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tally that ``save`` wrote."""
        saved = read_tally(path)
        result = cls(missing=saved.missing)
        result._orders = saved.orders
        result._categories = _settle(saved.orders, union(saved.counts.categories))
        result._tables, result._source_notes = [saved.counts], saved.source_notes
        return result


def _check_strata(tables: Sequence[Counts]) -> None:
    """Refuse strata 1 and "1" in one tally."""
    try:
        union(*(table.columns.strata for table in tables))
    except DataError as error:
        raise DataError(
            error.message.replace("Labels", "Strata", 1), code=error.code, parameter="strata", hint=error.hint
        ) from None


def _difference(left: Sequence[Counts], right: Sequence[Counts]) -> str:
    """Say how the item columns of two lists of tables differ; empty if they do not, or if one is empty."""
    left, right = ([table for table in tables if len(table.patterns)] for tables in (left, right))
    if not left or not right:
        return ""
    one, two = left[0].columns, right[0].columns
    if sorted(one.labelers) != sorted(two.labelers):
        return f"some have the labelers {shown(one.labelers)}, others {shown(two.labelers)}"
    if (one.stratum is None) != (two.stratum is None):
        return "some have strata, others do not"
    return "some have weights, others do not" if (one.weight is None) != (two.weight is None) else ""


def _settle(orders: frozenset[tuple[Label, ...]], labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the labels in the one declared order, if it has them all; else as they are, sorted."""
    if len(orders) == 1:
        (order,) = orders
        found = {label: label for label in labels}  # 1 rather than True if both occur
        if len(order) == len(labels) and all(label in found for label in order):
            return tuple(found[label] for label in order)
    return labels


class Dataset:
    """Votes of several annotators on items, with the labels that one or more labelers suggest.

    Nothing is counted until a result is asked for; then each item is counted once, by the engine that holds the data.

    Parameters
    ----------
    data
        Votes: an n x N array or n lists of labels, one row per item. A label is text, an integer, a boolean or an enum
        member; None, NaN and empty text are missing. Or a table in wide or long format: of pandas, Polars, PyArrow,
        DuckDB, Dask, Spark or Ibis, or the path of one, as for ``read``.
    suggested
        n labels, or a mapping from the name of each labeler to its n labels. With a table, the name of a column, a list
        of names, or a mapping from labelers to columns; by default the columns ``suggested`` and ``suggested_*``. With
        ``counts`` also column codes from 0, or an n x m one-hot matrix (the paper's B).
    counts
        n x m matrix of vote counts instead of votes (the paper's A). With a table that has a column of counts per
        category, the names of these columns.
    categories
        The possible labels, in order; any other label is an error. With ``counts``, the names of its columns.
    missing
        Labels that mean missing, such as ``"NA"``.
    sample_weight
        What each item stands for, n numbers: one over its probability of being sampled. Only ratios matter. With a
        table, the name of a column.
    strata
        The stratum that each item was sampled from, n labels. With a table, the name of a column.
    annotators
        Wide format: the columns of votes, one per annotator, by name or pattern, such as ``"ann_*"``.
    item, label, annotator, count
        Long format: the columns with the item, the label of the vote, who voted, or the number of equal votes. In wide
        format, ``item`` may name the items.
    items
        Long format: a second table, or its path, with one row per item: suggested labels, weights, strata.
    duplicates
        ``"error"`` if an annotator votes twice on an item, or ``"first"`` or ``"last"`` to keep one vote, by row.
    unlisted
        ``"error"`` if a vote is on an item that ``items`` lacks, or ``"unlabeled"`` to count it as an item without
        label.

    Examples
    --------
    >>> import dhkappa
    >>> votes = [["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]
    >>> data = dhkappa.Dataset(votes, {"rule": ["cat", "dog", "dog"], "llm": ["cat", "cat", "dog"]})
    >>> data
    Dataset(3 items, 9 votes, 2 categories, labelers 'rule', 'llm')
    >>> dhkappa.dh_kappa(data, "rule").exact
    Fraction(4, 7)
    """

    __slots__ = ("_data",)

    def __init__(
        self,
        data: Any = None,
        suggested: Any = None,
        *,
        counts: Any = None,
        categories: Iterable[Any] | None = None,
        missing: Iterable[Any] = (),
        sample_weight: Any = None,
        strata: Any = None,
        **roles: Unpack[RoleKeywords],
    ) -> None:
        self._data = input_data(data, suggested, counts, categories, missing, sample_weight, strata, roles)

    @property
    def input_data(self) -> InputData:
        """The data and options as they were passed."""
        return self._data

    @property
    def source(self) -> Source | None:
        """The file, export or database that was read; None for data in memory."""
        from dhkappa.inputs.tables import Source

        return self._data.data if isinstance(self._data.data, Source) else None

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self._data.patterns.categories

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return self._data.patterns.columns.labelers

    def tally(self) -> Tally:
        """Count votes and suggested labels."""
        return Tally.of(self._data)

    def item_votes(self) -> ItemVotes | None:
        """Return every vote with its item and annotator, as far as these are known."""
        return self._data.item_votes

    def __repr__(self) -> str:
        return f"Dataset{repr(self.tally()).removeprefix('Tally').replace(_patterns(self), '')}"

    def __copy__(self) -> Dataset:
        return self

    def __deepcopy__(self, memo: Any) -> Dataset:
        return self

    def __reduce__(self) -> NoReturn:
        raise DataError(
            "A Dataset cannot be pickled, as it may hold an open file or database.",
            code="not-picklable",
            hint="Pickle what it was made from, or save its tally().",
        )


def _patterns(dataset: Dataset) -> str:
    n = len(dataset.input_data.patterns.patterns)
    return f", {n:,} pattern{'' if n == 1 else 's'}"


def read(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    suggested: Any = None,
    *,
    input_format: str | None = None,
    question: str | None = None,
    table: str | None = None,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    **roles: Unpack[RoleKeywords],
) -> Dataset:
    r"""Open a file, an annotation tool's export or a table of a database as a ``Dataset``.

    Files are CSV, TSV, JSON, JSONL (each also gzipped) and Parquet. All columns of CSV and TSV are text, and an empty
    field is missing. Exports of Label Studio (JSON), Prodigy (JSONL), doccano (zip) and Argilla (JSON) are recognized
    by their content. Files are read when a result is computed; a file that has changed since it was opened is refused.

    Parameters
    ----------
    path
        A path, a pattern such as ``"votes/*.parquet"``, a list of them, or the address of a database, such as
        ``"postgresql://user@host/name"``, which then does the counting.
    suggested, counts, categories, missing, sample_weight, strata, **roles
        As for ``Dataset``.
    input_format
        ``"table"``, ``"label_studio"``, ``"prodigy"``, ``"doccano"`` or ``"argilla"``; by default recognized by
        content.
    question
        Which question of an export that asks several.
    table
        Which table of a database.

    Examples
    --------
    >>> import dhkappa, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "votes.csv")
    ...     _ = path.write_text("item,suggested_llm,ann_1,ann_2\n007,spam,spam,spam\n008,ham,ham,spam\n")
    ...     print(dhkappa.dh_kappa(dhkappa.read(path)).exact)
    1/2
    """
    from dhkappa.inputs.files import open_source

    check_keywords(roles)
    source = open_source(path, input_format=input_format, question=question, table=table)
    return Dataset(
        source,
        suggested,
        counts=counts,
        categories=categories,
        missing=missing,
        sample_weight=sample_weight,
        strata=strata,
        **roles,
    )
