"""Label rules in tables: names of annotators, and labels that must be equal within an item, are unified in the engine.

The labels of votes are replaced after they were counted; see ``dhkappa.core.relabel``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import narwhals.stable.v2 as nw

from dhkappa.core.label_rules import LabelRules
from dhkappa.core.labels import natural_key
from dhkappa.inputs.backends import Coding, Frame, Query, kind_in

_AT_ONCE = 50  # values replaced in one expression: SQLite allows 127 arguments of a function
_Ask = Callable[[Query], dict[str, list[Any]]]


def annotator_names(rules: LabelRules, votes: Frame, column: str, ask: _Ask) -> dict[Any, Any]:
    """Return the name of each annotator by its spelling in a column of a table in long format."""
    frame = votes.pick({"annotator": column})[0] if rules.normalize else None
    if frame is None or kind_in(frame, "annotator") != "text":
        return {}
    found = ask(votes.group(frame, ["annotator"], nw.len().alias("n")))
    rows = {name: int(n) for name, n in zip(found["annotator"], found["n"], strict=True) if name}
    return rules.names(rows)


def rename(frame: Query, names: Mapping[Any, Any]) -> Query:
    """Replace the names of annotators; one that consists of spaces becomes empty text."""
    return _replace(frame, "annotator", {old: new or "" for old, new in names.items() if new != old})


def unify(rules: LabelRules, frame: Query, codings: Mapping[str, Coding], ask: _Ask) -> Query:
    """Write labels that are one by the rules alike, in columns in which all rows of an item must be equal."""
    for role, coding in codings.items():
        first: dict[Hashable, Any] = {None: "" if coding.values is None else -1}
        new = {}
        labels = {label for label in coding.labels(ask(frame.select(role).unique())[role]) if label is not None}
        for label in sorted(labels, key=lambda label: natural_key(rules.cleaned(label) or "")):
            value = coding.value(label)
            other = first.setdefault(rules.final_key(label), value)
            if other != value:
                new[value] = other
        frame = _replace(frame, role, new)
    return frame


def _replace(frame: Query, role: str, values: Mapping[Any, Any]) -> Query:
    """Replace values of a column; no new value is itself replaced.

    One expression, in which every part refers to the old column: engines insert a replaced column wherever it is used,
    so that replacing step by step would multiply the size of the query.
    """
    if not values:
        return frame
    parts: list[nw.Expr] = [nw.when(nw.col(role) == nw.lit(old)).then(nw.lit(new)) for old, new in values.items()]
    while len(parts) > _AT_ONCE:
        parts = [nw.coalesce(*parts[place : place + _AT_ONCE]) for place in range(0, len(parts), _AT_ONCE)]
    return frame.with_columns(nw.coalesce(*parts, nw.col(role)).alias(role))
