"""The labels that occur in columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import narwhals.stable.v2 as nw

from dhkappa.core import Label
from dhkappa.inputs.backends import Coding, Query
from dhkappa.inputs.tables import VoteTable


def labels_in(table: VoteTable, frame: Query, columns: Mapping[str, Coding]) -> set[Label]:
    """Return the labels in some columns: one query if all have the same type."""
    parts = [(coding, frame.select(label=nw.col(role))) for role, coding in columns.items()]
    first, types = parts[0][0], {part.collect_schema()["label"] for _, part in parts}
    if len(types) == 1 and table.votes.stacks_columns and first.values is None:
        parts = [(first, nw.concat([part for _, part in parts]))]
    found = (coding.labels(table.ask(part.unique())["label"]) for coding, part in parts)
    return {label for label in chain.from_iterable(found) if label is not None}
