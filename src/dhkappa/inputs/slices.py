"""Slices of a Dataset: the columns that were asked for, and the items in each slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dhkappa.core.grouping import Encoded
from dhkappa.core.items import Counts, ItemVotes, count, lookup
from dhkappa.core.labels import NotALabelError, encode
from dhkappa.core.slice_names import Cut, check_unit, parse_cut, plain_value
from dhkappa.core.slices import SliceColumn, encoded_slices, slice_column
from dhkappa.errors import DataError, counted, invalid, shown
from dhkappa.inputs.arrays import check_alignment
from dhkappa.inputs.backends import frame_of
from dhkappa.inputs.columns import check_item_column
from dhkappa.inputs.slicing import Slicing
from dhkappa.inputs.tables import VoteTable

_NAME = "slice"  # of a column that was passed without a name


def slices_of_arrays(given: Any, read: ItemVotes, votes: Any) -> list[SliceColumn]:
    """Return the slices of items that are rows of arrays: n values, or a mapping from names to n values."""
    named = given if isinstance(given, Mapping) else _columns_of(given)
    found = []
    for name, values in (named or {_NAME: given}).items():
        cut = parse_cut(name) if isinstance(name, str) and name else None
        if cut is None or isinstance(values, str) or values is None:
            message = f"slices must be n values, or a mapping from names to n values: got {shown([given])}."
            raise invalid("slices", message, hint="With votes in arrays, pass the values themselves.")
        check_alignment(votes, "votes", None, {"slices": values})  # type: ignore[typeddict-unknown-key]
        encoded = _encoded(values, cut.column)
        n = len(read.columns)
        if len(encoded.values) != n:
            message = f"votes has {counted(n, 'item')} but slices has {counted(len(encoded.values), 'value')}."
            raise invalid("slices", message, code="different-length")
        found.append(_counted(encoded_slices(name, cut, encoded), read))
    return found


def _columns_of(given: Any) -> dict[Any, Any]:
    """Return the columns of a table in memory; none if the slices are no table."""
    frame = frame_of(given)
    if frame is not None and not frame.in_memory:
        message = f"slices is a table of {frame.engine}, but the votes are arrays, whose rows have an order."
        raise invalid("slices", message, code="no-row-order", hint="Pass the values themselves.")
    return {} if frame is None else {name: given[name] for name in frame.columns}


def _counted(column: SliceColumn, read: ItemVotes) -> SliceColumn:
    """Return slices with items counted by pattern; ``column.index`` is the slice of each item that was read."""
    strata = Encoded(column.index, 0, tuple(range(len(column.slices))))
    counts = count(replace(read, columns=replace(read.columns, stratum=strata)))
    return replace(column, counts=counts, index=np.array(counts.columns.strata, np.int64))


def _encoded(values: Any, name: str) -> Encoded:
    """Encode n values of any type that can name slices."""
    array = np.asarray(values) if not isinstance(values, (list, tuple)) else np.array([*values, None], object)[:-1]
    if array.ndim != 1:
        message = f"slices[{shown([name])}] must hold one value per item: got {array.ndim}-D."
        raise invalid("slices", message, code="invalid-shape")
    if array.dtype.kind not in "Mf":
        try:
            return encode(array, "slices")
        except (DataError, NotALabelError):  # dates or numbers
            pass
    if array.dtype.kind == "M":
        array = array.astype("datetime64[D]")
    place: dict[Any, int] = {}
    codes = [place.setdefault(value, len(place)) for value in map(plain_value, array.tolist())]
    return Encoded(np.array(codes, np.int64), 0, tuple(place))


def slices_of_table(
    given: Any, table: VoteTable, group: Callable[[VoteTable], Any], whole: Counts
) -> list[SliceColumn]:
    """Return the slices of a table, counted in the engine, one pass for each; ``group`` counts a table."""
    frame, found = table.item_frame, []
    requests = check_slices(given, table)
    _check_not_labels(requests, table)
    for name, cuts in requests.items():
        with table.files.unchanged():
            slicing = Slicing.of(frame, cuts)
        roles = replace(table.roles, strata=None, slices=slicing.columns)
        grouped = group(replace(table, roles=roles, slicing=slicing))
        votes = grouped if isinstance(grouped, ItemVotes) else grouped.read
        values = votes.columns.stratum
        assert values is not None
        digits = values.digits()
        labels = values.occurring(digits)
        column, index = slice_column(name, cuts, slicing.values(labels))
        column = _counted(replace(column, index=index[lookup(values.labels, labels)[digits]]), votes)
        counts = column.counts
        assert counts is not None
        if (counts.n_items, counts.patterns.n_votes()) != (whole.n_items, whole.patterns.n_votes()):
            message = f"{frame.engine} counted {counts.n_items:,} items by slice, but there are {whole.n_items:,}."
            hint = "If the data do not change while they are read, please report this as a bug."
            raise DataError(message, code="votes-lost", hint=hint)
        found.append(column)
    return found


def _check_not_labels(requests: Mapping[str, Sequence[Cut]], table: VoteTable) -> None:
    """Refuse slices by the suggested label: in such a slice all labels are equal."""
    labeled = {column: labeler for labeler, column in table.roles.suggested.items()}
    for column in (cut.column for cuts in requests.values() for cut in cuts):
        if column in labeled:
            message = f"Column {shown([column])} is the suggested label of {shown([labeled[column]])} itself: "
            message += "kappa inside such a slice is always near 0."
            hint = "See the kappas of categories instead, or choose another labeler with $suggested."
            raise invalid("slices", message, code="slices-are-labels", hint=hint)


def _check_not_annotator(column: Any, annotator: str | None) -> None:
    """Refuse slices by who voted, which is not the same for all votes on an item."""
    if annotator is not None and column == annotator:
        message = f"Column {shown([column])} says who voted, and slices are of items: they need one value per item."
        hint = "Name a column of items with $slices. To compare annotators, run dhkappa annotators."
        raise invalid("slices", message, code="slices-are-annotators", hint=hint)


def _check_not_votes(column: Any, table: VoteTable) -> None:
    """Refuse slices by what was voted: in such a slice the votes of one annotator are equal."""
    if table.items is None and column in table.roles.voting:
        message = f"Column {shown([column])} holds votes, and slices are of items: what was voted cannot define them."
        hint = "Name a column of items with $slices. To compare annotators, run dhkappa annotators."
        raise invalid("slices", message, code="slices-are-votes", hint=hint)


def check_slices(given: Any, table: VoteTable) -> dict[str, tuple[Cut, ...]]:
    """Return the columns of each request, such as ``created:week`` or ``language+source``; refuse missing columns."""
    columns = table.item_frame.names
    tables = [(one.name, one.names) for one in (table.votes, table.items) if one is not None]
    annotator = table.roles.annotator
    found: dict[str, tuple[Cut, ...]] = {}
    if isinstance(given, Mapping):
        for column, unit in given.items():
            _check_not_annotator(column, annotator)
            _check_not_votes(column, table)
            check_item_column(column, "slices", tables)
            known = check_unit(unit, column)
            found[column if known is None else f"{column}:{known}"] = (Cut(column, known),)
        return found
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for name in names:
        cuts = item_cuts(name, columns)
        for cut in cuts:
            _check_not_annotator(cut.column, annotator)
            _check_not_votes(cut.column, table)
            check_item_column(cut.column, "slices", tables)
        found[name] = cuts
    if not found:
        raise invalid("slices", "slices names no column.", code="column-not-found")
    return found


def item_cuts(name: Any, columns: Sequence[str]) -> tuple[Cut, ...]:
    """Return the columns that a name means: the column of this name, else its parts."""
    if not isinstance(name, str) or name in columns:
        return (Cut(name),)
    if parse_cut(name).column in columns:
        return (parse_cut(name),)
    parts = name.split("+")
    if len(parts) > 1 and all(part in columns or parse_cut(part).column in columns for part in parts):
        return tuple(Cut(part) if part in columns else parse_cut(part) for part in parts)
    return (parse_cut(name),)
