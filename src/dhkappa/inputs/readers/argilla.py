"""Argilla: records with suggestions and responses to questions, nested or in flat columns.

Nested records (``to_json``, ``to_list``) do not tell a response's status, so drafts and discarded responses among
them count as votes; flat columns (``to_list(flatten=True)``) do. A record has one suggestion a question; its agent
is the labeler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dhkappa.core.labels import RULE, Label, NotALabelError, natural, plain
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.readers.export import Export, Records

TOOL = "Argilla"
_SILENT = (
    "The export does not tell drafts and discarded responses from submitted ones, so all of them are votes: filter "
    "records by status as you export, or export flat columns."
)

_PARTS = ("fields", "suggestions", "responses")  # of a nested record
_UNNAMED = "suggestion"
_LONGEST = 200  # characters of a label: the server takes no longer ones, so a longer answer is free text
_RESPONSES, _SUGGESTION = ".responses", ".suggestion"

_Response = tuple[Any, str | None, str | None]
"""A value, who gave it, and its status."""


@dataclass(frozen=True, slots=True)
class _Answers:
    """What a record holds on one question."""

    item: Label
    agent: str
    suggestion: Any
    responses: list[_Response]


def recognise(record: Mapping[str, Any]) -> bool:
    """Tell whether a first record is one of Argilla's.

    Nested: ``fields`` holds an object, and ``suggestions`` or ``responses``, where the other may be null.
    Flat: some column ends in ``.responses.users`` or ``.suggestion.agent``.
    """
    return _is_nested(record) or any(name.endswith((".responses.users", ".suggestion.agent")) for name in record)


def read_export(records: Records, *, question: str | None = None) -> Export:
    """Read votes and suggested labels.

    Parameters
    ----------
    records : the records of each file
    question : which question holds the labels, where there are several; labels and ratings are labels, and so are
        multi-label answers of one label; short answers to a text question cannot be told from labels

    Returns
    -------
    the export; drafts, discarded responses and responses without a value are no votes, and counted
    """
    held = _alike(list(chain.from_iterable(records.values())))
    name = _chosen(held, question)
    votes: dict[str, list[Label | None]] = {"item": [], "annotator": [], "label": []}
    known: dict[Label, None] = {}
    suggested: dict[str, dict[Label, Label]] = {}
    several: dict[Label, None] = {}
    skipped: Counter[str] = Counter()
    for answers in _answers(held, name):
        item = answers.item
        known[item] = None
        label = _label(answers.suggestion, item, name, several)
        if label is not None:
            first = suggested.setdefault(answers.agent, {}).setdefault(item, label)
            if first != label:
                raise DataError(
                    f"agent {shown([answers.agent])} of the Argilla export suggests {shown([first, label])} at item "
                    f"{shown([item])}: an agent suggests one label for an item. Export each data set to its own file."
                )
        for value, user, status in answers.responses:
            if status not in (None, "submitted"):
                skipped[f"{status} responses"] += 1
                continue
            label = _label(value, item, name, several)
            if label is None:
                skipped["responses without a value"] += 1
                continue
            for column, entry in zip(votes.values(), (item, user, label), strict=True):
                column.append(entry)
    if several:
        raise DataError(
            f"question {name!r} of the Argilla export has answers of several labels on items {shown(several)}: a vote "
            "is one label, and a ranking is none. Ask a label question, or a yes or no for each label."
        )
    _check_kinds(votes["label"], suggested, name)
    labelers = tuple(sorted(suggested, key=natural))
    items: dict[str, list[Label | None]] = {"item": list(known)}
    for labeler in labelers:
        items[labeler] = [suggested[labeler].get(item) for item in known]
    silent = any(status is None for answers in _answers(held, name) for _, _, status in answers.responses)
    return Export(TOOL, votes, items, labelers, dict(skipped), cautions=(_SILENT,) if silent else ())


def _alike(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records that are all nested or all flat: one without responses or suggestions may have null for them."""
    if not any(map(_is_nested, records)):
        return records
    whole = []
    for place, record in enumerate(records, 1):
        held = {name: record.get(name) or {} for name in _PARTS}
        wrong = [name for name, value in held.items() if not isinstance(value, Mapping)]
        if wrong:
            raise DataError(
                f"record {place} of the Argilla export has {shown([record[wrong[0]]])} as its {wrong[0]}, where others "
                "have an object: export all records with one version of Argilla."
            )
        whole.append(record | held)
    return whole


def _is_nested(record: Mapping[str, Any]) -> bool:
    fields, *held = (record.get(name) for name in _PARTS)
    known = [isinstance(part, Mapping) for part in held if part is not None]
    return isinstance(fields, Mapping) and bool(known) and all(known)


def _questions(record: Mapping[str, Any]) -> Iterator[str]:
    """Return the questions that a record has columns or answers for."""
    if _is_nested(record):
        yield from chain(record["responses"], record["suggestions"])
        return
    for name in record:
        for ending in (_RESPONSES, _SUGGESTION):
            if name.endswith(ending):
                yield name.removesuffix(ending)


def _chosen(records: Iterable[Mapping[str, Any]], question: str | None) -> str:
    """Return the question asked for, or the only one there is."""
    names = sorted({name for record in records for name in _questions(record)}, key=natural)
    if not names:
        raise DataError("the Argilla export holds neither responses nor suggestions: export them with the records.")
    if question is None and len(names) > 1:
        raise DataError(
            f"the Argilla export holds several questions, {shown(names, 20)}: say which one holds the labels, as in "
            f"question={names[0]!r}."
        )
    if question is not None and question not in names:
        raise DataError(
            f"question={shown([question])} is not in the Argilla export. Questions: {shown(names, 20)}."
            + did_you_mean(question, names)
        )
    return names[0] if question is None else question


def _answers(records: Iterable[Mapping[str, Any]], question: str) -> Iterator[_Answers]:
    """Read what each record holds on the question."""
    for place, record in enumerate(records, 1):
        try:
            item = plain(record.get("id"))
            value, agent, responses = (_nested if _is_nested(record) else _flat)(record, question)
        except NotALabelError as wrong:
            raise DataError(f"record {place} of the Argilla export has the id {wrong}: {RULE}; so is an id.") from None
        except (AttributeError, TypeError, ValueError):
            raise DataError(
                f"record {place} of the Argilla export holds suggestions or responses to {question!r} in a form that "
                "Argilla does not write: export the records again, with to_json() or to_list()."
            ) from None
        if item is None:
            raise DataError(f"record {place} of the Argilla export has no id: export the records with their ids.")
        agent = str(agent or _UNNAMED)
        yield _Answers(item, f"{_UNNAMED} {agent}" if agent == "item" else agent, value, responses)


def _nested(record: Mapping[str, Any], question: str) -> tuple[Any, Any, list[_Response]]:
    """Return the value of the suggestion, its agent, and the responses of a nested record."""
    suggestion = record["suggestions"].get(question) or {}
    given = record["responses"].get(question) or []
    responses = [(one.get("value"), one.get("user_id"), one.get("status")) for one in given]
    return suggestion.get("value"), suggestion.get("agent"), responses


def _flat(record: Mapping[str, Any], question: str) -> tuple[Any, Any, list[_Response]]:
    """Return the value of the suggestion, its agent, and the responses of a flat record."""
    suggestion, column = question + _SUGGESTION, question + _RESPONSES
    values = record.get(column) or []
    users, statuses = (record.get(column + ending) or [None] * len(values) for ending in (".users", ".status"))
    if not all(isinstance(held, list) for held in (values, users, statuses)):
        raise TypeError
    responses = list(zip(values, users, statuses, strict=True))
    return record.get(suggestion), record.get(suggestion + ".agent"), responses


def _label(value: Any, item: Label, question: str, several: dict[Label, None]) -> Label | None:
    """Return the label an answer stands for; where it holds more than one, note the item among ``several``."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        if len(value) > 1:
            several[item] = None
            return None
        value = value[0] if value else None
    where = f"question {question!r} of the Argilla export has at item {shown([item])} the answer"
    choose = "Choose a label or rating question with question=."
    try:
        label = plain(value)
    except NotALabelError as wrong:
        raise DataError(f"{where} {wrong}: {RULE}; spans and rankings are none. {choose}") from None
    if isinstance(label, str) and len(label) > _LONGEST:
        size = f"{len(label):,} characters where a label has {_LONGEST} at most"
        raise DataError(f"{where} {shown([label])}, {size}: free text is no label. {choose}")
    return label


def _check_kinds(votes: list[Label | None], suggested: Mapping[str, Mapping[Label, Label]], question: str) -> None:
    """Refuse suggestions that became numbers: where votes are text, a label question's suggestions are too."""
    numbers = [label for labels in suggested.values() for label in labels.values() if isinstance(label, int)]
    if numbers and set(map(type, votes)) == {str}:
        raise DataError(
            f"question {question!r} of the Argilla export has text as votes but the number {numbers[0]} as a "
            "suggestion: to_datasets() writes the place of a label in a list for the label. Export with "
            "to_list(flatten=True)."
        )
