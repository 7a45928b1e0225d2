"""Argilla: records with suggestions and responses to questions, nested or in flat columns.

Nested records (``to_json``, ``to_list``) do not tell the status of a response, so drafts and discarded responses count
as votes; flat columns (``to_list(flatten=True)``) do, and what is not a vote is counted. A record has one suggestion
per question; its agent is the labeler. Labels and ratings are labels, and so are multi-label answers of one label.
Short answers to a text question look like labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

from dhkappa.core import Label
from dhkappa.core.labels import natural_key
from dhkappa.errors import shown
from dhkappa.inputs.readers import ExportBuilder, Records, labeler_name
from dhkappa.inputs.tables import Source

_NO_STATUS = (
    "The export does not distinguish drafts and discarded responses from submitted ones, so all of them are votes. "
    "Filter records by status when you export, or export flat columns."
)
_PARTS = ("fields", "suggestions", "responses")  # of a nested record
_LONGEST = 200  # characters of a label on Argilla's server; a longer answer is free text
_COLUMN = re.compile(r"(.*)\.(?:responses|suggestion)", re.DOTALL)  # of a flat record, with the question


def recognize(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is nested or flat as Argilla writes them."""
    return _is_nested(record) or any(name.endswith((".responses.users", ".suggestion.agent")) for name in record)


def read_export(records: Records, *, question: str | None = None) -> Source:
    """Read votes and suggested labels of a question."""
    builder = ExportBuilder("Argilla")
    held = _complete(builder, list(chain.from_iterable(records.values())))
    names = sorted({name for record in held for name in _questions(record)}, key=natural_key)
    if not names:
        raise builder.malformed("no responses and no suggestions", "Export them with the records.")
    name = builder.choose(question, names)
    numbers: list[int] = []  # suggested
    silent = False
    for place, record in enumerate(held, 1):
        item = builder.item(record.get("id"), f"record {place}")
        builder.show(item, record["fields"] if _is_nested(record) else record)
        try:
            agent, suggestion, responses = _answers(record, name)
        except (AttributeError, TypeError, ValueError):
            hint = "Export the records again, with to_json() or to_list()."
            raise builder.malformed(f"suggestions or responses to {name!r} in record {place}", hint) from None
        label = _label(builder, suggestion, item, name)
        if label is not None:
            builder.suggest(labeler_name(agent, "suggestion"), item, label)
        if isinstance(label, int):
            numbers.append(label)
        for value, user, status in responses:
            silent = silent or status is None
            if status in (None, "submitted"):
                builder.vote(item, user, _label(builder, value, item, name), "responses without a value")
            else:
                builder.skipped[f"{status} responses"] += 1
    # to_datasets() writes the position of a label for the label.
    if numbers and {*map(type, builder.votes["label"])} == {str}:
        problem = f"question {name!r} has text as votes, but the number {numbers[0]} as a suggestion"
        raise builder.malformed(problem, "Export with to_list(flatten=True).")
    return builder.build(cautions=(_NO_STATUS,) if silent else ())


def _complete(builder: ExportBuilder, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records that are all nested or all flat; nested ones may have null for a part."""
    if not any(map(_is_nested, records)):
        return records
    whole = []
    for place, record in enumerate(records, 1):
        held = {name: record.get(name) or {} for name in _PARTS}
        for name, value in held.items():
            if not isinstance(value, Mapping):
                hint = "Export all records with one version of Argilla."
                raise builder.malformed(f"record {place} has {shown([value])} as {name}, not an object", hint)
        whole.append(record | held)
    return whole


def _is_nested(record: Mapping[str, Any]) -> bool:
    fields, *held = (record.get(name) for name in _PARTS)
    known = [isinstance(part, Mapping) for part in held if part is not None]
    return isinstance(fields, Mapping) and bool(known) and all(known)


def _questions(record: Mapping[str, Any]) -> set[str]:
    if _is_nested(record):
        return {*record["responses"], *record["suggestions"]}
    return {found[1] for name in record if (found := _COLUMN.fullmatch(name))}


def _answers(record: Mapping[str, Any], question: str) -> tuple[Any, Any, list[tuple[Any, Any, Any]]]:
    """Return agent and value of the suggestion; value, user and status of each response."""
    if _is_nested(record):
        suggestion = record["suggestions"].get(question) or {}
        given = record["responses"].get(question) or []
        responses = [(one.get("value"), one.get("user_id"), one.get("status")) for one in given]
        return suggestion.get("agent"), suggestion.get("value"), responses
    agent, suggestion = (record.get(f"{question}.suggestion{ending}") for ending in (".agent", ""))
    values = record.get(f"{question}.responses") or []
    users, statuses = (record.get(f"{question}.responses.{key}") or [None] * len(values) for key in ("users", "status"))
    if not all(isinstance(held, list) for held in (values, users, statuses)):
        raise TypeError
    return agent, suggestion, list(zip(values, users, statuses, strict=True))


def _label(builder: ExportBuilder, value: Any, item: Label, question: str) -> Label | None:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        if len(value) > 1:
            hint = "Use a label question, or a yes/no question per label. Rankings are not labels."
            raise builder.several_labels(f"question {question!r} on item {shown([item])}", value, hint)
        value = value[0] if value else None
    label = builder.label(value, f"the answer to {question!r} on item {shown([item])}")
    if isinstance(label, str) and len(label) > _LONGEST:
        problem = f"has an answer of {len(label):,} characters to {question!r} on item {shown([item])}"
        hint = "Free text is not a label. Choose a label or rating question with $question."
        raise builder.no_labels(f"{problem}, over {_LONGEST}", hint)
    return label
