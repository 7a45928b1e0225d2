"""Dataset: whatever a user passes, resolved once to a table or arrays, then counted once."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack

import numpy as np

from dhkappa.core import Categories, Label
from dhkappa.core.item_table import ItemTable, item_table_of_counts, item_table_of_votes
from dhkappa.core.items import Counts, ItemVotes, count
from dhkappa.core.label_rules import Absent, LabelRules, label_rules
from dhkappa.core.label_sets import SettledSets, label_sets
from dhkappa.core.labels import check_missing
from dhkappa.core.relabel import Relabeling, are_merged, label_counts, merge_annotators, normalized_note
from dhkappa.errors import DataError, OutOfMemoryError, invalid, shown
from dhkappa.inputs.arrays import declared_categories, missing_labels, read_arrays
from dhkappa.inputs.columns import (
    Columns,
    RoleKeywords,
    check_keywords,
    check_options_absent,
    copied,
    find_shown,
    list_columns,
    passed_options,
)
from dhkappa.inputs.filterable import Filterable
from dhkappa.inputs.sliceable import Sliceable
from dhkappa.inputs.tally import Tally, describe
from dhkappa.resources import memory_errors

if TYPE_CHECKING:  # imported when needed
    from dhkappa.inputs.aggregate import Groups
    from dhkappa.inputs.check import Check
    from dhkappa.inputs.problems import Evidence
    from dhkappa.inputs.tables import VoteTable

RULE_OPTIONS: tuple[Literal["normalize", "map", "multilabel"], ...] = ("normalize", "map", "multilabel")
_MAX_FETCHED = 2_000_000  # votes of a table outside this process that are fetched to identify items and annotators


class Dataset(Filterable, Sliceable):
    """Votes of several annotators on items, with the labels that one or more labelers suggest.

    Nothing is counted until a result is asked for; then each item is counted once, by the engine that holds the data.
    Files are opened, and arrays copied, when the ``Dataset`` is made.

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
        What each item stands for, n numbers: one over its probability of being sampled. Only ratios matter.
    strata
        The stratum that each item was sampled from, n labels.
    clusters
        The document, conversation or user that each item comes from, n labels. Standard errors and intervals then allow
        for items of a cluster being alike. With a table, these three are names of columns.
    annotators
        Wide format: the columns of votes, one per annotator, by name or pattern, such as ``"ann_*"``.
    item, label, annotator, count
        Long format: the columns with the item (also in wide format), the label, who voted, or the number of votes.
    items
        Long format: a second table, or its path, with one row per item: suggested labels, weights, strata.
    duplicates
        ``"error"`` if an annotator votes twice on an item, or ``"first"`` or ``"last"`` to keep one vote, by row.
    normalize
        Which spellings are one label, and one annotator: ``"case"`` (shown in the most frequent spelling), ``"spaces"``
        (at the ends, and repeated ones), ``"unicode"`` (form NFKC) and ``"numbers"`` (``"3"``, ``"3.0"`` and ``3``).
    map
        New labels by old ones, for votes and suggested labels, such as ``{"1": "billing"}``; after ``normalize``.
        ``categories`` and ``missing`` are about labels after both.
    multilabel
        If a vote is a set of labels: their separator in text, ``"json"``, or True for lists. Only for ``audit``.
    unlisted
        ``"error"`` if a vote is on an item that ``items`` lacks, or ``"unlabeled"`` to count it without a label.
    show
        Columns to show next to listed items; by default text, body, question, prompt, content and url; ``[]`` for none.
    slices
        Groups of items for ``Audit.slices``, which only ``audit`` takes: n values, or a mapping from names to n values.
        With a table, the name of a column, a list of names, or a mapping from columns to ``"day"``, ``"week"`` or
        ``"month"`` for dates. ``"created:week"`` is a column with its unit, ``"language+source"`` two columns together.
    annotators_table
        A table with one row per annotator, or its path, for ``Audit.annotator_slices``: their names, and columns such
        as their team. With a table, ``slices`` may name columns of it; by default they are all used.

    Examples
    --------
    >>> import dhkappa
    >>> votes = [["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]
    >>> data = dhkappa.Dataset(votes, {"rule": ["cat", "dog", "dog"], "llm": ["cat", "cat", "dog"]})
    >>> dhkappa.dh_kappa(data, "rule").exact
    Fraction(4, 7)
    """

    _labeled = True  # whether to read the suggested labels of a table if no labeler is named
    _copied = True  # whether later changes of arrays by their owner must have no effect
    _known: Categories | None = None  # spellings of labels that were counted before, of which these data are a part

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
        clusters: Any = None,
        **roles: Unpack[RoleKeywords],
    ) -> None:
        check_keywords(roles)
        suggested = list(suggested) if isinstance(suggested, Iterator) else suggested
        design = {"sample_weight": sample_weight, "strata": strata, "clusters": clusters}
        columns = Columns(suggested=suggested, counts=counts, **design)  # type: ignore[typeddict-item]
        if isinstance(data, Dataset):
            check_options_absent({**columns, "categories": categories, "missing": missing, **roles}, "Dataset")
            self.__dict__ = data.__dict__  # shared, so that the items are counted once
            return
        self.missing = missing_labels(missing)
        self._declared = declared_categories(categories, self.missing)
        show: Any = roles.pop("show", None)
        self._show = list(show) if isinstance(show, Iterator) else show
        if not roles.keys().isdisjoint(("slices", "annotators_table")):
            self._take_slices(roles, _opened)
        own: dict[str, Any] = {name: roles.pop(name) for name in RULE_OPTIONS if name in roles}
        self._rule_options = own
        self._rules = label_rules(own.get("normalize", ()), own.get("map")) if {*own} - {"multilabel"} else None
        self._absent: Container[Label] = self.missing
        self._relabeling: Relabeling | None = None
        self._names: dict[Any, Any] = {}
        if self._rules is not None:
            self._rules.check_declared(self._declared)
            self._absent = self._rules.absent(self.missing)
        cells = own.get("multilabel")
        self.multilabel = None if cells is None else label_sets(cells, self._rules, self._declared, self.missing)
        if self.multilabel is not None:  # cells are counted as they are
            self._absent, self.missing, self._declared = self.multilabel.absent(), frozenset(), None
            self._rules = None if self._rules is None else self._rules.for_names()
        if "items" in roles:
            roles["items"] = _items_table(roles["items"])
        self._data, self._columns, self._roles = _opened(data), columns, roles
        if self._copied:
            self._data, self._columns, self._roles = copied(self._data), copied(columns), copied(roles)
        if self.multilabel is not None:
            from dhkappa.inputs.backends import labels_as_text, lists_as_text

            self._data = lists_as_text(self._data)
            self._columns = {**self._columns, "suggested": labels_as_text(columns["suggested"])}
            if "items" in self._roles:
                self._roles = {**self._roles, "items": lists_as_text(self._roles["items"])}

    @property
    def table(self) -> VoteTable | None:
        """The table that was passed, or that a path leads to, with its column roles; None for arrays."""
        filtering = self._filtering if self._steps else None
        return self._whole if filtering is None else filtering.table

    @cached_property
    def _whole(self) -> VoteTable | None:
        declared, roles, table = self._declared, self._roles, None
        if self._rules is not None:
            declared, roles = None, {**self._roles, "normalize": self._rules.normalize} if self._roles else {}
        if self._roles or not (self._data is None or isinstance(self._data, (list, tuple, np.ndarray))):
            from dhkappa.inputs.tables import open_votes

            table = open_votes(self._data, roles, labeled=self._labeled, **self._columns)
        if table is not None:
            frames = [(frame.name, frame.names) for frame in (table.items, table.votes) if frame is not None]
            shown = find_shown(frames, table.roles.used, self._show)
            if self._slices is not None and self._annotators_table is None:
                import_module("dhkappa.inputs.slices").check_slices(self._slices, table)
            return replace(table, declared=declared, missing=self._absent, rules=self._rules, shown=shown)
        if self._show:
            message = "show names columns of a table, but the data are arrays."
            raise invalid("show", message, code="not-a-table", hint="Omit $show.")
        return None

    @property
    def declared(self) -> bool:
        """Whether the categories, and so their order, were declared."""
        return self._declared is not None

    @property
    def categories(self) -> Categories:
        """The categories, in order."""
        return self.counts.categories if self.multilabel is None else self.label_sets.categories

    @cached_property
    def label_sets(self) -> SettledSets:
        """The labels in each cell of multi-label data."""
        assert self.multilabel is not None
        grouped = self.arrays if self.table is None else self._grouped
        return self.multilabel.settle(label_counts(grouped if isinstance(grouped, ItemVotes) else grouped.read))

    @property
    def rules(self) -> LabelRules | None:
        """The label rules; None if there are none."""
        return self._rules

    def means_missing(self, label: Label) -> bool:
        """Tell whether a label means missing."""
        return label in self._absent

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return self.counts.columns.labelers

    @property
    def labeled(self) -> bool:
        """Whether there are suggested labels."""
        return self._columns["suggested"] is not None if self.table is None else bool(self.table.roles.suggested)

    def check_single(self) -> None:
        """Refuse multi-label data."""
        if self.multilabel is not None:
            hint = "Use audit, which audits each category as a yes/no question."
            raise invalid("multilabel", "Cells hold sets of labels.", code="option-not-supported", hint=hint)

    def check_labeled(self, chosen: Any = None) -> None:
        """Refuse data without suggested labels; ``chosen`` is what was passed as ``suggested`` next to a Dataset."""
        no_data = self.table is None and self._data is None and self._columns["counts"] is None
        if self.labeled or (chosen is None and no_data):  # without data, another error says so
            return
        if chosen is not None:
            message, hint = "The Dataset has no suggested labels.", "Pass $suggested when you make the Dataset."
        elif self.table is not None and self.table.source.unlabeled:
            message, hint = self.table.source.unlabeled, ""
        elif self.table is not None:
            from dhkappa.inputs.candidates import unlabeled

            raise unlabeled(self.table)
        else:
            columns = getattr(self._data, "columns", None)
            known = "" if columns is None else f" {list_columns([str(column) for column in columns])}"
            message = f"suggested is missing.{known}"
            hint = "Pass one suggested label per item, or the name of their column."
        raise invalid("suggested", message, code="no-suggested-labels", hint=hint)

    @cached_property
    def arrays(self) -> ItemVotes:
        """The votes of arrays."""
        if self._rules is None:
            return self._array_votes()
        return self._relabeled(self._array_votes())

    def _array_votes(self) -> ItemVotes:
        of_counts = self._rules is not None and self._columns["counts"] is not None
        names = self._declared if self._rules is None or of_counts else None  # of the columns of counts
        read = read_arrays(self._data, self._columns, names, self._absent)
        if not self._steps:
            return read
        spelled = {} if self._rules is None else self._rules.names(dict.fromkeys(read.annotators or (), 1))
        return self._without_columns(read, spelled)

    def _forget(self) -> None:
        self._relabeling, self._names = None, {}
        if isinstance(self._absent, Absent):
            self._absent = self._absent.fresh()

    def _relabeled(self, read: ItemVotes) -> ItemVotes:
        """Return the votes after the label rules; cells of multi-label data are not changed."""
        if self._rules is None:
            return read
        duplicates = "error" if self.table is None else self.table.roles.duplicates
        read = merge_annotators(read, self._annotator_names(read), duplicates)
        if self.multilabel is not None:
            return read
        if self._relabeling is None:  # from the first votes that are read: later ones are the same votes
            known = (*(self._declared or ()), *(self._known or ()))
            gone = self._absent.found() if isinstance(self._absent, Absent) else ()
            self._relabeling = Relabeling.of(self._rules, read, known, gone)
            if self._known is None:
                self._rules.check_sources(self._relabeling.labels)
        declared = self._declared
        if self._columns["counts"] is not None and self.table is None and declared is not None:
            found = (self._relabeling.labels.get(label, label) for label in declared)
            declared = tuple(dict.fromkeys(label for label in found if label is not None))
        return self._relabeling.apply(read, declared)

    def _annotator_names(self, read: ItemVotes | None = None) -> Mapping[Any, Any]:
        """Return the new names of annotators by the old ones."""
        if self.table is not None:
            return self.table.annotator_names
        if self._rules is not None and read is not None and not self._names:
            self._names = self._rules.names(dict.fromkeys(read.annotators or (), 1))
        return self._names

    @property
    def _notes(self) -> tuple[str, ...]:
        """Sentences about where the votes came from, and how their labels were changed."""
        filtered = [one.note for one in self.left_out] if self._steps else ()
        source = (*filtered, *(() if self.table is None else self.table.notes))
        if self._rules is None:
            return source
        changed = () if self._relabeling is None else self._relabeling.notes
        return (*source, *changed, *normalized_note("annotators-normalized", self._rules, self._annotator_names()))

    @cached_property
    def _grouped(self) -> Groups | ItemVotes:
        """Groups of equal items as counted by the engine, or all rows where there are too many categories for that."""
        assert self.table is not None
        return self._group(self.table)

    def _group(self, table: VoteTable) -> Groups | ItemVotes:
        from dhkappa.inputs.aggregate import fetch_rows, group

        with table.votes.asking():
            _ = self._steps and self.left_out  # refuses a filter that leaves nothing
            columns_merged = table.roles.label is None and are_merged(table.annotator_names)
            grouped = None if columns_merged else group(table)
            if grouped is None:
                return self._relabeled(fetch_rows(table))
            return replace(grouped, read=self._relabeled(grouped.read))

    @cached_property
    @memory_errors("the votes")
    def counts(self) -> Counts:
        """All items, counted by pattern."""
        grouped = self.arrays if self.table is None else self._grouped
        counts = count(grouped if isinstance(grouped, ItemVotes) else grouped.read)
        return replace(counts, source_notes=(*self._notes, *check_missing(counts.categories, self.missing)))

    @cached_property
    @memory_errors("the votes")
    def _item_votes(self) -> ItemVotes | None:
        if self.table is None:
            return self.arrays
        from dhkappa.inputs.aggregate import fetch_rows

        grouped = self._grouped
        if isinstance(grouped, ItemVotes):
            return self._with_shown(grouped)
        if self.table.votes.in_memory or self.counts.patterns.n_votes() <= _MAX_FETCHED:
            # If the rows do not fit into memory, use the groups: only the annotators are unknown then.
            with suppress(OutOfMemoryError), self.table.votes.asking():
                return self._with_shown(self._relabeled(fetch_rows(self.table)))
        return self._with_shown(grouped.item_votes())

    def _with_shown(self, read: ItemVotes | None) -> ItemVotes | None:
        """Add the columns of items to show, and the note on items that are named by row."""
        assert self.table is not None
        if read is None or not (self.table.shown or self.table.roles.item is None):
            return read
        from dhkappa.inputs.shown_columns import shown_columns

        return replace(read, shown=shown_columns(self.table, read, named=self._show is not None))

    def item_votes(self) -> ItemVotes | None:
        """Return every vote with its item and annotator, as far as these are known; None if items have no names."""
        return self._item_votes

    @memory_errors("the votes")
    def item_table(self) -> ItemTable:
        """Return the items by votes and the labels of all labelers."""
        if self.table is None and isinstance(self._columns["suggested"], Mapping):
            table = item_table_of_votes(self.arrays, self.missing)
            return replace(table, source_notes=(*self._notes, *table.source_notes))
        return item_table_of_counts(self.counts)

    def tally(self) -> Tally:
        """Count votes and suggested labels."""
        self.check_single()
        return Tally.of(self.counts, self._declared, self.missing)

    def check(self, *, allow: Iterable[str] = ()) -> Check:
        """Say what was understood of the data, and find problems that can make a result wrong.

        Data that cannot be counted are a problem, too: the error that a result would raise, with its code.

        Parameters
        ----------
        allow
            Codes of problems that you accept, such as ``["looks-ordinal"]``.

        Returns
        -------
        Check
            ``problems``, most severe first, and what was understood: the format, the role of each column, and the
            numbers of items, votes, annotators and categories.

        Examples
        --------
        >>> import dhkappa
        >>> votes = [["spam", "spam", "Spam"], ["ham", "ham", "ham"], ["ham", "spam", "spam"]] * 10
        >>> found = dhkappa.Dataset(votes, {"llm": ["spam", "ham", "spam"] * 10}).check()
        >>> [(problem.code, problem.severity) for problem in found.problems]
        [('category-variants', 'error')]
        """
        from dhkappa.inputs.check import check_dataset

        return check_dataset(self, allow)

    @property
    def format(self) -> str:
        """``"wide"``, ``"long"``, ``"counts"``, ``"export"`` or ``"arrays"``."""
        if self.table is None:
            return "arrays" if self.arrays.matrix is None else "counts"
        roles = self.table.roles
        return "export" if self.table.source.tool else "long" if roles.label else "counts" if roles.counts else "wide"

    @property
    def named_roles(self) -> set[str]:
        """The parameters with which the user named columns, or passed arrays."""
        given = {**self._columns, **self._roles, "show": self._show}
        given |= {"slices": self._slices, "annotators_table": self._annotators_table}
        return {name for name, value in given.items() if value is not None}

    @property
    def given_annotators(self) -> Any:
        """The columns of annotators as the user named them; None if they were found by their names."""
        return self._roles.get("annotators")

    def evidence(self, labelers: Sequence[str] | None = None, *, ordered: bool = False, fetch: bool = True) -> Evidence:
        """Return what the rules about problems look at; unless ``fetch``, single votes are not fetched for that."""
        from dhkappa.inputs.check import evidence_of

        return evidence_of(self, labelers, ordered=ordered, fetch=fetch)

    def __repr__(self) -> str:
        return f"Dataset({describe(self.counts, f'labelers {shown(self.labelers)}')})"

    def __deepcopy__(self, memo: Any = None) -> Dataset:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> NoReturn:
        message = "A Dataset cannot be pickled, as it may hold an open file or database."
        raise DataError(message, code="not-picklable", hint="Pickle what it was made from, or save its tally().")


class OneCallDataset(Dataset):
    """The data of one call, whose arrays are not copied."""

    _copied = False


class PartDataset(OneCallDataset):
    """A part of data whose other parts were counted into a tally: spellings of its categories are kept."""

    _known: Categories | None = ()


class UnlabeledDataset(OneCallDataset):
    """The data of one call whose suggested labels are not read."""

    _labeled = False


def _opened(data: Any) -> Any:
    """Return what a path leads to; other data as they are."""
    if not isinstance(data, (str, os.PathLike)):
        return data
    from dhkappa.inputs.files import open_source

    return open_source(data)


def _items_table(items: Any) -> Any:
    """Return what a path leads to, or what a ``Dataset`` without options was made of; other tables as they are."""
    if not isinstance(items, Dataset):
        return _opened(items)
    options = {**items._columns, "categories": items._declared, "missing": items.missing, **items._roles}
    options |= {**items._rule_options, "show": items._show, "filter": items._steps or None}
    options |= {"slices": items._slices, "annotators_table": items._annotators_table}
    if extra := passed_options(options):
        message = f"items is a Dataset with {', '.join(extra)}, which a table of items cannot have."
        hint = "Pass these options next to $items."
        raise invalid("items", message, code="option-with-dataset", hint=hint)
    return items._data
