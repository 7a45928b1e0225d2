"""What a user may have meant: columns that may hold suggested labels, and the items table next to a file of votes."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core import Label
from dhkappa.core.labels import NotALabelError, natural_key, to_label
from dhkappa.errors import DataError, comma_separated, invalid, shown
from dhkappa.inputs.backends import Frame
from dhkappa.inputs.columns import is_recognized, list_columns, suggested_columns
from dhkappa.inputs.tables import VoteTable

_MOST_COLUMNS, _MOST_FILES = 50, 50  # that are looked at
_MOST_VALUES = 100  # distinct values of a column; more are not labels
_NAMES = re.compile("suggest|predict|model|llm|gpt|label|class|rule|machine|auto", re.IGNORECASE)


def unlabeled(table: VoteTable) -> DataError:
    """Return the error for a table without columns of suggested labels."""
    frame = table.item_frame
    known = list_columns(frame.names, explain=True)
    message = f"No column of {frame.name} is called 'suggested' or 'suggested_...'. {known}"
    found = label_columns(table, frame)
    hint = f"Name the column of suggested labels with $suggested{f', such as {shown(found[:1])}' if found else ''}"
    hint += f" (or {shown(found[1:], 2)})" if found[1:] else ""
    options = {"suggested": comma_separated(found)} if len(found) == 1 else {}
    if table.items is None and table.roles.label:
        nearby = items_file(table)
        hint += f", or pass the table that has it with $items{f', such as {nearby!r}' if nearby else ''}"
        options |= {"items": nearby} if nearby else {}
    hint += ". Without labels, dhkappa audit compares the annotators."
    options = options if len(options) == 1 else {}  # of two, the user has to choose
    return invalid("suggested", message, code="no-suggested-labels", hint=hint, options=options)


def label_columns(table: VoteTable, frame: Frame) -> list[str]:
    """Return columns without a role that may hold suggested labels: most values among the votes', or a likely name."""
    roles = table.roles
    used = {roles.item, roles.label, roles.annotator, roles.count}
    used |= {roles.sample_weight, roles.strata, roles.clusters}
    free = [name for name in frame.names if name not in {*used, *roles.annotators, *roles.counts}][:_MOST_COLUMNS]
    if {"old", "new", "source"} <= {*free}:  # corrected labels, as dhkappa review --merge writes them
        return ["new"]
    votes: set[Label] = set()
    for column in (roles.label, *roles.annotators[:3]):
        votes |= _values(table, table.votes, column)
    share = {}
    for name in free:
        values = _values(table, frame, name)
        share[name] = len(values & votes) / len(values) if values else 0.0
    likely = [name for name in free if share[name] > 0.5] or [name for name in free if _NAMES.search(name)]
    return sorted(likely, key=lambda name: (-share[name], _NAMES.search(name) is None))


def _values(table: VoteTable, frame: Frame, column: str | None) -> set[Label]:
    """Return the distinct labels of a column; none if there are many, or if values are not labels."""
    if column is None:
        return set()
    found: list[Any] = []
    with suppress(DataError, NotALabelError):
        query, codings = frame.pick({"value": column}, ["value"])
        found = codings["value"].labels(
            table.ask(query.select(nw.col("value")).unique().head(_MOST_VALUES + 1))["value"]
        )
        found = [to_label(value) for value in found]
    return set() if len(found) > _MOST_VALUES else {label for label in found if label is not None}


def items_file(table: VoteTable) -> str:
    """Return the path of a CSV file next to that of the votes with the same column of items and suggested labels."""
    from dhkappa.inputs.files import read_header

    for votes in islice(table.source.files.states, 1):
        folder = os.path.dirname(votes)
        names = sorted(
            (name for name in os.listdir(folder) if name.lower().endswith((".csv", ".tsv"))), key=natural_key
        )
        for name in names[:_MOST_FILES]:
            path = os.path.join(folder, name)
            columns: list[str] = []
            if path not in table.source.files.states and os.path.isfile(path):
                with suppress(DataError, OSError):
                    columns = read_header(path)
            if table.roles.item in columns and suggested_columns(columns) and not is_recognized(columns):
                near = os.path.relpath(path)
                return path if near.startswith(os.pardir) else near
    return ""
