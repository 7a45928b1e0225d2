"""InputData: whatever a user passes, resolved once to a table or arrays, then counted once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.item_table import ItemTable, item_table_of_counts, item_table_of_votes
from dhkappa.core.items import Counts, ItemVotes, count
from dhkappa.core.labels import check_missing
from dhkappa.errors import DataError, OutOfMemoryError
from dhkappa.inputs.arrays import declared_categories, missing_labels, read_arrays
from dhkappa.inputs.columns import RoleKeywords, check_keywords, list_columns
from dhkappa.resources import memory_errors

if TYPE_CHECKING:  # imported when a table is passed
    from dhkappa.inputs.aggregate import Groups
    from dhkappa.inputs.tables import VoteTable

_MAX_FETCHED = 2_000_000  # votes of a table outside this process that are fetched to identify items and annotators


@dataclass(frozen=True)
class InputData:
    """Data and options as a user passed them; see ``Dataset``.

    ``labelers`` says which labelers to read if none is named: ``"all"`` that are known, or ``"none"``.
    """

    data: Any
    suggested: Any = None
    counts: Any = None
    categories: Any = None
    missing: Any = ()
    sample_weight: Any = None
    strata: Any = None
    roles: RoleKeywords | None = None
    labelers: str = "all"

    @cached_property
    def missing_labels(self) -> frozenset[Label]:
        """The labels that mean missing."""
        return missing_labels(self.missing)

    @cached_property
    def declared(self) -> tuple[Label, ...] | None:
        """The declared categories; None if there are none."""
        return declared_categories(self.categories, self.missing_labels)

    @cached_property
    def table(self) -> VoteTable | None:
        """The table that was passed, or that a path leads to, with its column roles; None for arrays."""
        roles = self.roles or RoleKeywords()
        if not roles and (self.data is None or isinstance(self.data, (list, tuple, np.ndarray))):
            return None
        from dhkappa.inputs.tables import open_votes

        if roles.get("items") is not None:
            roles = {**roles, "items": _opened(roles["items"])}
        table = open_votes(
            _opened(self.data),
            roles,
            suggested=self.suggested,
            counts=self.counts,
            sample_weight=self.sample_weight,
            strata=self.strata,
            labelers=self.labelers,
        )
        if table is not None and table.roles.item is None and "item" in table.unused and "item" not in roles:
            table = replace(table, roles=replace(table.roles, item="item"))
        return table

    @property
    def source_notes(self) -> tuple[str, ...]:
        """Sentences about where the votes came from."""
        return () if self.table is None else self.table.notes

    def check_labeled(self) -> None:
        """Refuse data without suggested labels."""
        if self.table is not None:
            from dhkappa.inputs.tables import check_labeled

            check_labeled(self.table)
        elif self.suggested is None and (self.data is not None or self.counts is not None):
            columns = getattr(self.data, "columns", None)
            known = "" if columns is None else f" {list_columns([str(column) for column in columns])}"
            raise DataError(
                f"suggested is missing.{known}",
                code="no-suggested-labels",
                parameter="suggested",
                hint="Pass one suggested label per item, or the name of their column.",
            )

    @cached_property
    def _arrays(self) -> ItemVotes:
        suggested = None if self.labelers == "none" else self.suggested
        return read_arrays(
            self.data, suggested, self.counts, self.declared, self.missing_labels, self.sample_weight, self.strata
        )

    @cached_property
    def _grouped(self) -> Groups | ItemVotes:
        """Groups of equal items as counted by the engine, or all rows where there are too many categories for that."""
        from dhkappa.inputs.aggregate import fetch_rows, group

        assert self.table is not None
        with self.table.votes.asking():
            found = group(self.table, self.declared, self.missing_labels)
            return found or fetch_rows(self.table, self.declared, self.missing_labels)

    @cached_property
    @memory_errors("the votes")
    def patterns(self) -> Counts:
        """All items, counted by pattern."""
        if self.table is None:
            item_votes = self._arrays
        else:
            grouped = self._grouped
            item_votes = replace(grouped if isinstance(grouped, ItemVotes) else grouped.read, declared=self.declared)
        counts = count(item_votes)
        if self.missing_labels:
            check_missing(counts.categories, self.missing_labels)
        return counts

    @cached_property
    @memory_errors("the votes")
    def item_votes(self) -> ItemVotes | None:
        """Every vote with its item and annotator, as far as these are known; None if items have no names."""
        if self.table is None:
            return self._arrays
        from dhkappa.inputs.aggregate import fetch_rows

        grouped = self._grouped
        if isinstance(grouped, ItemVotes):
            return replace(grouped, declared=self.declared)
        if self.table.votes.in_memory or self.patterns.patterns.n_votes() <= _MAX_FETCHED:
            # If the rows do not fit into memory, use the groups: only the annotators are unknown then.
            with suppress(OutOfMemoryError), self.table.votes.asking():
                return replace(fetch_rows(self.table, self.declared, self.missing_labels), declared=self.declared)
        return grouped.item_votes(self.declared)

    @memory_errors("the votes")
    def item_table(self) -> ItemTable:
        """Return the items by votes and the labels of all labelers."""
        if self.table is None and isinstance(self.suggested, Mapping):
            return item_table_of_votes(self._arrays, self.missing_labels)
        return item_table_of_counts(self.patterns, None, self.source_notes)


def _opened(data: Any) -> Any:
    """Return what a path leads to, or what a ``Dataset`` was read from; other data as they are."""
    inner = getattr(data, "input_data", None)
    if isinstance(inner, InputData):
        data = inner.data
    if not isinstance(data, (str, os.PathLike)):
        return data
    from dhkappa.inputs.files import open_source

    return open_source(data)


def check_options_absent(given: Mapping[str, Any], kind: str) -> None:
    """Refuse options that describe data next to a ``Dataset``, ``Tally`` or ``Kappa``, which holds them already."""
    empty = isinstance(given.get("missing"), (str, tuple, list, set, frozenset)) and not given["missing"]
    extra = [name for name, value in given.items() if value is not None and not (name == "missing" and empty)]
    if extra:
        raise DataError(
            f"{', '.join(extra)} cannot be combined with a {kind}, which holds votes and labels already.",
            code="option-with-dataset",
            parameter=extra[0],
            hint=f"Pass options when you make the {kind}.",
        )


def input_data(
    data: Any,
    suggested: Any = None,
    counts: Any = None,
    categories: Any = None,
    missing: Any = (),
    sample_weight: Any = None,
    strata: Any = None,
    roles: RoleKeywords | None = None,
) -> InputData:
    """Return data and options; those of a ``Dataset`` are its own."""
    check_keywords(roles or {})
    inner = getattr(data, "input_data", None)
    if not isinstance(inner, InputData):
        return InputData(data, suggested, counts, categories, missing, sample_weight, strata, roles)
    options = {"suggested": suggested, "counts": counts, "categories": categories, "missing": missing}
    check_options_absent({**options, "sample_weight": sample_weight, "strata": strata, **(roles or {})}, "Dataset")
    return inner
