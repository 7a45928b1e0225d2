"""A table of votes with more votes, in the format of the data: one more column, or more rows."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dhkappa.core import Label
from dhkappa.core.added_votes import AddedVote, suggested_labels
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import whole_names
from dhkappa.errors import counted, invalid
from dhkappa.inputs.backends import ROW_NUMBER
from dhkappa.inputs.columns import annotator_prefix, suggested_columns
from dhkappa.inputs.excel import cell_text
from dhkappa.inputs.tables import VoteTable
from dhkappa.resources import need
from dhkappa.table import Table

_VALUE = 128  # bytes of a fetched value in Python
_Columns = dict[str, list[Any]]


def annotator_name(table: VoteTable | None, given: Any, known: Sequence[Any], name: str) -> Any:
    """Return the annotator under which votes of ``name`` are read again: in wide format, the name of a column.

    It is one of the ``known`` annotators if they differ only in case. ``given`` are the columns of annotators as the
    user named them. If it is None, or a pattern, the name starts like those of the other columns.
    """
    same = {str(cell_text(one)).casefold(): one for one in known}
    if name.casefold() in same:
        return same[name.casefold()]
    if table is None or not table.roles.annotators:
        return name
    if given is None:
        prefix = annotator_prefix(table.roles.annotators)
    else:
        pattern = given if isinstance(given, str) else given[0] if len(given) == 1 else ""
        prefix = pattern[:-1] if pattern.endswith("*") and not {*"*?["} & {*pattern[:-1]} else ""
    name = name if name.startswith(prefix) else f"{prefix}{name}"
    if name.casefold() in same:
        return same[name.casefold()]
    if name in ("item", "label", "annotator", "count") or suggested_columns([name]):
        message = f"A column {name!r} would be read as something else than votes."
        raise invalid("reviewer", message, code="review-column", hint="Choose another name with $reviewer.")
    if taken := [column for column in table.votes.names if column.casefold() == name.casefold()]:
        message = f"Column {table.votes.said(taken[0])} exists already, and holds no votes."
        raise invalid("reviewer", message, code="review-column", hint="Choose another name with $reviewer.")
    return name


def is_listed(table: VoteTable | None, given: Any, name: str) -> bool:
    """Tell whether a new column of votes is read only if it is named, as the other columns were."""
    patterns = [given] if isinstance(given, str) else list(given or ())
    wide = table is not None and bool(table.roles.annotators)
    return wide and given is not None and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def check_annotators(item_votes: ItemVotes) -> None:
    """Refuse data in which it is unknown who voted: votes that are merged twice could not be recognized."""
    if item_votes.annotators is None:
        message = "The data do not say who voted, so that votes that are added twice could not be recognized."
        hint = "Name the annotators of all votes, or merge the labels as decisions with $action."
        raise invalid("annotators", message, code="annotators-unknown", hint=hint)


def updated_votes(
    table: VoteTable | None,
    item_votes: ItemVotes,
    votes: Sequence[AddedVote],
    spellings: Callable[[Label], Sequence[Label]],
) -> Table:
    """Return the votes of the data with more votes; ``item_votes`` are those of the data, one row per item.

    ``spellings`` returns the labels that are read as a category.
    """
    if table is None:
        return Table(_wide_of_arrays(item_votes, votes))
    if table.source.tool is not None:
        return Table(_long_of_export(item_votes, votes))
    columns = _fetched(table)
    labeled = [(vote, _written(table, spellings(vote.label))) for vote in votes]
    if table.roles.label is None:
        return Table(_add_columns(table, columns, item_votes.item_names(), labeled))
    return Table(_add_rows(table, columns, item_votes.item_names(), labeled))


def _fetched(table: VoteTable) -> _Columns:
    """Fetch all columns of the table of votes."""
    frame, roles = table.votes, table.roles
    names = [name for name in frame.names if name != ROW_NUMBER]
    query = frame.pick({f"column_{place}": name for place, name in enumerate(names)})[0]
    whole = {*roles.annotators, roles.item, roles.label, roles.annotator, *roles.suggested.values(), roles.strata}
    whole.add(roles.clusters)
    schema = query.collect_schema()
    exact = [f"column_{place}" for place, name in enumerate(names) if name not in whole]
    exact = [role for role in exact if schema[role] == nw.Decimal]
    query = query.with_columns(nw.col(role).cast(nw.String) for role in exact) if exact else query
    if frame.checks_memory:
        n = table.count_rows(query)
        need(n * len(names) * _VALUE, counted(n, "row"))
    found = table.ask(query)
    found |= {role: [None if text is None else Decimal(text) for text in found[role]] for role in exact}
    columns = {name: list(found[f"column_{place}"]) for place, name in enumerate(names)}
    for name in whole & columns.keys():  # integers that are stored as floats, because some are missing
        columns[str(name)] = whole_names(columns[str(name)])
    if (
        roles.label is None
        and roles.item is None
        and frame.row_names not in (None, [*range(len(next(iter(found.values()))))])
    ):
        return {"item": list(frame.row_names or ()), **columns}
    return columns


def _written(table: VoteTable, known: Sequence[Label]) -> Label:
    """Return the first of some labels that the column of votes can hold."""
    roles = table.roles
    column = roles.label or roles.annotators[0]
    kind = table.votes.pick({"label": column}, ["label"])[1]["label"].kind
    return next((label for label in known if isinstance(label, str) == (kind == "text")), known[0])


def _add_columns(
    table: VoteTable, columns: _Columns, names: Sequence[Any], votes: Sequence[tuple[AddedVote, Label]]
) -> _Columns:
    """Add votes to columns of annotators; new ones stand behind the last one."""
    roles = table.roles
    if roles.item is None:
        if not (table.votes.in_memory or table.source.ordered):
            message = f"A table of {table.votes.engine} has no order of rows, and its items have no names."
            raise invalid("item", message, code="items-unknown", hint="Name the items with $item.")
        rows = {place: place for place in range(len(names))}
    else:
        row_of = {name: row for row, name in enumerate(columns[roles.item])}
        rows = {place: row_of[name] for place, name in enumerate(names) if name in row_of}
    n = len(next(iter(columns.values())))
    new: _Columns = {}
    for vote, label in votes:
        own = columns.get(vote.annotator) or new.setdefault(vote.annotator, [None] * n)
        own[rows[vote.place]] = label
    found: _Columns = {}
    for name, values in columns.items():
        found[name] = values
        if name == roles.annotators[-1]:
            found |= new
    return found


def _add_rows(
    table: VoteTable, columns: _Columns, names: Sequence[Any], votes: Sequence[tuple[AddedVote, Label]]
) -> _Columns:
    """Add rows of votes. A column with one value per item is filled in; others are empty."""
    roles = table.roles
    assert roles.item is not None
    assert roles.label is not None
    assert roles.annotator is not None
    first: dict[Any, int] = {}
    start = [first.setdefault(_as_text(name), row) for row, name in enumerate(columns[roles.item])]
    several = len(first) < len(start)
    constant = {
        name: several and all(_are_equal(values[row], values[top]) for row, top in enumerate(start))
        for name, values in columns.items()
    }
    constant |= dict.fromkeys(roles.item_columns().values(), True)
    for vote, label in votes:
        top = first.get(_as_text(names[vote.place]))
        item = names[vote.place] if top is None else columns[roles.item][top]
        row = {roles.item: item, roles.label: label, roles.annotator: vote.annotator}
        for name, values in columns.items():
            values.append(row[name] if name in row else values[top] if top is not None and constant[name] else None)
    return columns


def _as_text(name: Any) -> Any:
    """Return an id as text if it is text or an integer: those of the two tables may differ in that."""
    return str(name) if isinstance(name, int) else name


def _are_equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, also lists."""
    return one is other or bool(np.all(one == other))


def _item_columns(item_votes: ItemVotes) -> _Columns:
    """Return the item columns of arrays or an export by name."""
    columns = item_votes.columns
    found: _Columns = {f"suggested_{name}": suggested_labels(item_votes, name) for name in columns.labelers}
    if columns.weight is not None:
        found["sample_weight"] = columns.weight.tolist()
    for name, groups in (("strata", columns.stratum), ("clusters", columns.cluster)):
        if groups is not None:
            found[name] = [groups.labels[digit] for digit in groups.digits().tolist()]
    return found


def _cast(item_votes: ItemVotes, votes: Sequence[AddedVote]) -> list[tuple[int, Any, Label]]:
    """Return the item, the annotator and the label of every vote, the added ones last."""
    assert item_votes.annotators is not None
    known, categories = item_votes.annotators, item_votes.categories
    given = zip(*(values.tolist() for values in item_votes.sorted_votes), strict=True)
    found = [(row, known[who], categories[code]) for row, who, code in given]
    return found + [(vote.place, vote.annotator, vote.label) for vote in votes]


def _wide_of_arrays(item_votes: ItemVotes, votes: Sequence[AddedVote]) -> _Columns:
    """Return a table in wide format; the columns of annotators start with ``ann_``."""
    assert item_votes.annotators is not None
    n = len(item_votes.columns)
    people: dict[Any, list[Any]] = {name: [None] * n for name in item_votes.annotators}
    for place, who, label in _cast(item_votes, votes):
        people.setdefault(who, [None] * n)[place] = label
    named = {name if str(name).startswith("ann_") else f"ann_{name}": values for name, values in people.items()}
    return {"item": list(item_votes.item_names()), **_item_columns(item_votes), **named}


def _long_of_export(item_votes: ItemVotes, votes: Sequence[AddedVote]) -> _Columns:
    """Return a table in long format with the suggested labels."""
    cast, names, own = _cast(item_votes, votes), item_votes.item_names(), _item_columns(item_votes)
    found: _Columns = {"item": [names[place] for place, _, _ in cast]}
    found |= {"annotator": [who for _, who, _ in cast], "label": [label for _, _, label in cast]}
    return found | {name: [values[place] for place, _, _ in cast] for name, values in own.items()}
