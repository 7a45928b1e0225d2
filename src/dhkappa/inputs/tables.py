"""Tables of votes with the role of each column; checks and conversions of item columns and counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from dhkappa.core import Label
from dhkappa.core.grouping import MAX_VOTES
from dhkappa.errors import DataError, counted, shown
from dhkappa.inputs.backends import Coding, Frame, frame_of, kind_of
from dhkappa.inputs.columns import (
    ColumnRoles,
    RoleKeywords,
    check_keywords,
    find_roles,
    is_recognized,
    labelers_of,
    list_columns,
    nearly_known,
    suggested_columns,
)
from dhkappa.paths import FileStates

_KINDS = {"text": "text", "integer": "integers", "float": "floats", "boolean": "booleans", "": "other values"}


@dataclass(frozen=True, slots=True, repr=False)  # the repr of a table may run a query
class Source:
    """A table of votes that was read, and what is known about its columns.

    Attributes
    ----------
    votes : the table of votes, as an object of its engine
    items : the table of items, or None
    roles : the column roles that are known
    labelers : columns with suggested labels, if they are known
    tool : the annotation tool that wrote the export; None for a plain table
    skipped : what an export holds besides votes, with how many of each
    unlabeled : why there are no suggested labels, if an export should have them
    cautions : sentences about what an export does not tell
    ordered : whether rows are in the order of a file
    files : the files that every query reads, as they were when they were opened
    """

    votes: Any
    items: Any = None
    roles: RoleKeywords = field(default_factory=lambda: RoleKeywords())
    labelers: tuple[str, ...] = ()
    tool: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    unlabeled: str = ""
    cautions: tuple[str, ...] = ()
    ordered: bool = False
    files: FileStates = field(default_factory=FileStates)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about an export: what it holds besides votes, and what it does not tell."""
        if not self.skipped:
            return self.cautions
        skipped = ", ".join(f"{what} ({number:,})" for what, number in self.skipped.items())
        return (f"The {self.tool} export also holds what is not a vote: {skipped}.", *self.cautions)


@dataclass(frozen=True)
class VoteTable:
    """A table of votes, the items table if there is one, and the column roles.

    ``notes`` are about where the data came from, ``files`` are the files that every query reads, ``unlabeled`` says why
    there are no suggested labels. ``cache`` keeps what was checked and counted, so that it is done once.
    """

    votes: Frame
    items: Frame | None
    roles: ColumnRoles
    notes: tuple[str, ...] = ()
    files: FileStates = field(default_factory=FileStates)
    unlabeled: str = ""
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def item_roles(self) -> list[str]:
        """Roles of the columns with one value per item."""
        return list(self.roles.item_columns())

    @cached_property
    def label_roles(self) -> list[str]:
        """Those of them that hold labels."""
        return [role for role in self.item_roles if role != "sample_weight"]

    @property
    def unused(self) -> set[str]:
        """Columns without a role."""
        roles = self.roles
        return {*self.votes.names} - {*roles.annotators, *roles.counts, *roles.item_columns().values()}

    @cached_property
    def item_type(self) -> str:
        """Type to which item names are cast: ``"text"``, ``"float"``, ``"integer"``; empty if both tables agree."""
        if self.items is None or self.roles.item is None:
            return ""
        names = [frame.pick({"item": self.roles.item})[0] for frame in (self.votes, self.items)]
        types = [frame.collect_schema()["item"] for frame in names]
        kinds = [type(one).__name__.lower() if one.is_temporal() else kind_of(one) for one in types]
        if {*kinds} == {"integer"} and not self.votes.joins_integer_widths:
            return "integer" if types[0] != types[1] else ""
        if len({*kinds}) == 1:
            return ""
        if {*kinds} == {"integer", "float"}:
            self._check_floats(names[kinds.index("integer")])
            return "float"
        if {*kinds} != {"text", "integer"} and ("" not in kinds or {*kinds} - _KINDS.keys() or "text" in kinds):
            first, second = (_KINDS.get(kind, f"{kind}s") for kind in kinds)
            message = f"Column {self.roles.item!r} holds {first} in the data and {second} in the items table."
            raise DataError(message, code="item-types-differ", parameter="item", hint="Use the same type in both.")
        return "text" if "text" in kinds else ""

    def _check_floats(self, names: nw.LazyFrame[Any]) -> None:
        """Refuse integers beyond 2^53, which the floats of the other table cannot represent."""
        found = self.ask(names.select(nw.col("item").min().alias("least"), nw.col("item").max().alias("most")))
        if any(end is not None and abs(int(end)) > 2**53 for end in (*found["least"], *found["most"])):
            message = f"Column {self.roles.item!r} holds integers beyond 2^53 in one table and floats in the other."
            raise DataError(message, code="item-types-differ", parameter="item", hint="Use the same type in both.")

    def ask(self, query: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
        """Run a query; raise an error if a file has changed since it was opened."""
        with self.files.unchanged():
            return self.votes.fetch(query)


def open_votes(
    data: Any, keywords: RoleKeywords, *, suggested: Any, counts: Any, sample_weight: Any, strata: Any, labelers: str
) -> VoteTable | None:
    """Return the table of votes with its column roles; None if the data are arrays.

    A dataframe without role keywords may also be a grid of votes. A list of strings passed as ``suggested`` is then a
    list of labels if it is as long as the dataframe, and a list of column names otherwise.

    Parameters
    ----------
    data
        A table, a ``Source`` or arrays.
    keywords
        Column roles that the user named.
    suggested, counts, sample_weight, strata
        As the user passed them: names of columns, if the data are a table.
    labelers
        Which labelers to read if ``suggested`` is None: ``"all"`` that are known, or ``"none"``.
    """
    check_keywords(keywords)
    source = data if isinstance(data, Source) else None
    if source is None:
        frame = frame_of(data)
        if frame is None or not _names_columns(frame, keywords, suggested, counts, sample_weight, strata):
            if keywords:
                kind = "there are no data" if data is None else f"the data are of type {type(data).__name__}"
                message = f"Column roles ({', '.join(keywords)}) need a table, but {kind}."
                raise DataError(message, code="not-a-table", parameter=next(iter(keywords)))
            return None
        source = Source(data)
    said: RoleKeywords = {**source.roles, **keywords}
    votes = _frame(source.votes)
    if source.ordered and said.get("duplicates", "error") != "error":
        votes = votes.numbered()
    given: Any = said.get("items") if said.get("items") is not None else source.items
    listed = given if isinstance(given, Source) else None
    items = None if given is None else _frame(given if listed is None else listed.votes)
    place = votes if items is None else items
    if suggested is None and labelers != "none":
        suggested = _default_labelers(source, place.names)
    roles = find_roles(
        votes.names,
        {**said, "items": given},
        suggested=suggested,
        counts=counts,
        sample_weight=sample_weight,
        strata=strata,
        item_columns=None if items is None else items.names,
        names=(_name(source, "the data"), _name(listed, "the items table")),
    )
    if items is not None and items.engine != votes.engine:
        message = f"The data are a table of {votes.engine}, the items a table of {items.engine}."
        hint = "Pass two paths, or two tables of one engine. Files are tables of DuckDB."
        raise DataError(message, code="different-engines", parameter="items", hint=hint)
    files = source.files if listed is None else source.files + listed.files
    return VoteTable(votes, items, roles, source.notes, files, source.unlabeled)


def _name(source: Source | None, default: str) -> str:
    """Return the name of the file, if the source is one file."""
    files = [] if source is None else list(source.files.states)
    return os.path.basename(files[0]) if len(files) == 1 else default


def _frame(data: Any) -> Frame:
    """Return a table; refuse columns with the same name."""
    frame = frame_of(data)
    if frame is None:
        message = f"items must be a table with one row per item, or a path to one, got {shown([data])}."
        raise DataError(message, code="not-a-table", parameter="items")
    twice = [name for name, number in Counter(frame.names).items() if number > 1]
    if twice:
        message = f"The table has several columns with the same name: {shown(twice)}."
        raise DataError(message, code="ambiguous-columns", hint="Rename them.")
    return frame


def _names_columns(
    frame: Frame, keywords: RoleKeywords, suggested: Any, counts: Any, sample_weight: Any, strata: Any
) -> bool:
    """Tell whether the user means columns by name, rather than a grid of votes with arrays of labels and weights."""
    recognized = is_recognized(frame.columns)
    single = any(isinstance(value, str) for value in (suggested, counts, sample_weight, strata))
    if keywords or single or not frame.in_memory or _are_strings(counts):
        return True
    if isinstance(suggested, Mapping):
        return _are_strings(list(suggested.values()))
    if not isinstance(suggested, (list, tuple)):
        return suggested is None and counts is None and recognized
    columns = (
        len({*suggested}) == len(suggested) and {*suggested} <= {*frame.names} if _are_strings(suggested) else False
    )
    if columns and not recognized and len(suggested) == len(frame.native):
        message = f"suggested may be names of columns or one label per row: {shown(suggested)}."
        hint = "Pass a mapping from labelers to columns, or an array of labels."
        raise DataError(message, code="ambiguous-suggested", parameter="suggested", hint=hint)
    return columns or (_are_strings(suggested) and len(suggested) != len(frame.native))


def _are_strings(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and bool(values) and all(isinstance(name, str) for name in values)


def _default_labelers(source: Source, columns: Sequence[str]) -> Any:
    """Return the columns with suggested labels by their names; None if there are none."""
    found = list(source.labelers) or suggested_columns(columns)
    return labelers_of(found) if found else None


def check_labeled(table: VoteTable) -> None:
    """Refuse a table without suggested labels."""
    if table.roles.suggested:
        return
    if table.unlabeled:
        raise DataError(table.unlabeled, code="no-suggested-labels", parameter="suggested")
    columns = (table.votes if table.items is None else table.items).names
    message = f"The column with the suggested labels is unknown. {list_columns(columns)}{nearly_known(columns)}"
    hint = "Name it as $suggested. If it is in a table of items, pass that as $items."
    raise DataError(message, code="no-suggested-labels", parameter="suggested", hint=hint)


@dataclass(frozen=True, slots=True)
class ItemValues:
    """Item columns as values: labels by labeler, weights, strata."""

    suggested: dict[str, list[Label | None]] | None
    sample_weight: npt.NDArray[np.float64] | None
    strata: list[Label | None] | None


def read_item_columns(table: VoteTable, codings: Mapping[str, Coding], rows: Mapping[str, Sequence[Any]]) -> ItemValues:
    """Return labels, weights and strata of fetched rows; ``rows["items"]`` says how many items each stands for."""
    roles = table.roles
    suggested = {
        labeler: codings[f"suggested_{place}"].labels(rows[f"suggested_{place}"])
        for place, labeler in enumerate(roles.suggested)
    }
    items = rows.get("items") or [1] * len(next(iter(rows.values()), []))
    weight = None if roles.sample_weight is None else _weights(rows["sample_weight"], items, roles.sample_weight)
    strata = None if roles.strata is None else codings["strata"].labels(rows["strata"])
    if strata is not None and None in strata:
        absent = sum(n for label, n in zip(strata, items, strict=True) if label is None)
        message = f"Column {roles.strata!r} has no stratum for {counted(absent, 'item')}."
        raise DataError(message, code="missing-stratum", parameter="strata", hint="Give every item a stratum.")
    return ItemValues(suggested or None, weight, strata)


def _weights(values: Sequence[Any], items: Sequence[int], name: str) -> npt.NDArray[np.float64]:
    """Convert weights, also from text."""
    found = np.empty(len(values))
    for place, value in enumerate(values):
        try:
            odd = isinstance(value, (bool, np.ndarray)) or value is None or "_" in str(value)
            found[place] = np.nan if odd else float(value)
        except (TypeError, ValueError):
            found[place] = np.nan
        if not 0 <= found[place] < np.inf:
            got = "missing" if value is None or value == "" else shown([value])
            message = (
                f"Column {name!r} must hold weights of 0 or more: {counted(items[place], 'item')} or more have {got}."
            )
            raise DataError(message, code="invalid-weight", parameter="sample_weight")
    return found


def whole_counts(values: Sequence[Any], name: str, parameter: str) -> list[int]:
    """Convert numbers of votes, also from text."""
    found = []
    for value in values:
        try:
            number = int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value
            if isinstance(number, bool) or number != int(number) or not 0 <= number <= MAX_VOTES:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            missing = value is None or value == ""
            message = f"Column {name!r} must hold numbers of votes from 0 to {MAX_VOTES:,}: got "
            message += "a missing value." if missing else f"{shown([value])}."
            hint = "Write 0 if there are no votes." if missing else ""
            raise DataError(message, code="invalid-count", parameter=parameter, hint=hint) from None
        found.append(int(number))
    return found
