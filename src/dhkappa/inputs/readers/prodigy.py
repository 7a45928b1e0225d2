"""Prodigy: answers, as ``prodigy db-out`` writes them, a JSON object a line.

- An item is an input, by its ``_input_hash``: Prodigy's own measures of agreement group answers by it too.
- An annotator is the ``_annotator_id``, else the ``_session_id``, else the file that the answer is from.
- With choices (``options``, ``accept``), a vote is the option that was accepted. A rejected task is no vote.
- With one label a task (``label``), annotators say whether it holds: to accept is a vote for the label, to reject is
  a vote for ``"not <label>"``. Where items were shown different labels, these are what somebody suggested, and the
  labeler is called ``suggested``; one label on all items is a question, and nobody's suggestion.
- Ignored tasks are no votes. Everything that is no vote is counted.

A model's choice that annotators saw preselected is not in the export: what they accept takes its place. Nor does the
export tell models that answered as annotators from people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dhkappa.core.labels import RULE, Label, NotALabelError, natural, plain
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.readers.export import Export, Records

TOOL = "Prodigy"


@dataclass(frozen=True, slots=True)
class _Task:
    """A task with its answer: about the one ``label`` shown, or with ``options`` chosen; neither if about spans."""

    item: Label
    annotator: Label | None
    answer: str
    label: Label | None
    chosen: tuple[Label, ...] | None
    options: tuple[Label, ...]


def recognise(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a task of Prodigy, which has hashes of what was shown."""
    return "_input_hash" in record


def read_export(records: Records, *, question: str | None = None) -> Export:
    """Read votes, and suggested labels where there are any.

    Parameters
    ----------
    records : tasks with their answers; several files may hold several annotators
    question : a label, where annotators may accept several on one item; then a vote is that label or ``"not <label>"``

    Returns
    -------
    the votes, the labels that were shown where they differ, and what was skipped
    """
    tasks = [
        _task(record, name, f"{name}, record {number}")
        for name, rows in records.items()
        for number, record in enumerate(rows, 1)
    ]
    if all(task.label is None and task.chosen is None for task in tasks):
        raise DataError(
            f"the export ({shown(records)}) has neither choices nor a label for each task, and spans, boxes and text "
            "are no labels of an item: annotate with a recipe that asks about the whole, such as textcat.manual."
        )
    asked = None if question is None else _asked(tasks, question)
    if asked is None:
        _check_single(tasks)
    votes: dict[str, list[Label | None]] = {"item": [], "annotator": [], "label": []}
    skipped: Counter[str] = Counter()
    for task in tasks:
        label, otherwise = _vote(task, asked)
        if label is None:
            skipped[otherwise] += 1
            continue
        for column, value in zip(votes.values(), (task.item, task.annotator, label), strict=True):
            column.append(value)
    items: dict[str, list[Label | None]] = {"item": list(dict.fromkeys(task.item for task in tasks))}
    labels = {task.item: task.label for task in tasks if task.label is not None}
    if asked is None and len(set(labels.values())) > 1:
        items["suggested"] = [None if item is None else labels.get(item) for item in items["item"]]
    return Export(TOOL, votes, items, tuple(items)[1:], dict(skipped))


def _task(record: Mapping[str, Any], name: str, where: str) -> _Task:
    """Take what counts of a record."""
    item = _plain(record.get("_input_hash"), where)
    if item is None:
        raise DataError(f"{where} has no '_input_hash', so its item is not known: export with prodigy db-out.")
    annotator = record.get("_annotator_id") or record.get("_session_id") or name
    accepted, options = record.get("accept"), record.get("options")
    if isinstance(accepted, list) or isinstance(options, list):
        chosen = _plains(accepted if isinstance(accepted, list) else [accepted], where)
        listed = options if isinstance(options, list) else ()
        offered = _plains((option.get("id") for option in listed if isinstance(option, dict)), where)
        return _Task(item, _plain(annotator, where), str(record.get("answer")), None, chosen, offered)
    label = _plain(record.get("label"), where)
    return _Task(item, _plain(annotator, where), str(record.get("answer")), label, None, ())


def _vote(task: _Task, asked: Label | None) -> tuple[Label | None, str]:
    """Return the vote of a task, or None and what the task is otherwise."""
    if task.answer == "ignore":
        return None, "ignored tasks"
    if task.answer not in ("accept", "reject"):
        return None, "tasks without an answer"
    if task.label is not None:
        if asked is not None and task.label != asked:
            return None, "tasks about other labels"
        return (task.label if task.answer == "accept" else f"not {task.label}"), ""
    if task.chosen is None:
        return None, "tasks without label or choices"
    if task.answer == "reject":
        return None, "rejected tasks"
    if asked is not None:
        return (asked if asked in task.chosen else f"not {asked}"), ""
    return (task.chosen[0], "") if task.chosen else (None, "tasks accepted without a choice")


def _asked(tasks: list[_Task], question: str) -> Label:
    """Return the label that a question names."""
    labels = {str(label): label for label in _labels(tasks)}
    if question in labels:
        return labels[question]
    raise DataError(
        f"question={question!r} is no label of the export. Labels: {shown(labels, 20)}."
        + did_you_mean(question, labels)
    )


def _check_single(tasks: list[_Task]) -> None:
    """Refuse several labels by one on one item: a vote is one label."""
    labels = _labels(tasks) or [""]
    choose = (
        f"ask about one, as question={str(labels[0])!r}, which makes the votes {str(labels[0])!r} and "
        f"{f'not {labels[0]}'!r}. Labels: {shown(labels, 20)}."
    )
    if {task.chosen is None for task in tasks if (task.chosen, task.label) != (None, None)} == {True, False}:
        raise DataError(f"some tasks have choices and some one label each, which are different questions: {choose}")
    seen: dict[Label, Label] = {}
    for task in tasks:
        if task.chosen and task.answer == "accept" and len(task.chosen) > 1:
            raise DataError(
                f"{task.annotator!r} accepted several choices on item {task.item}, {shown(task.chosen)}, and a vote "
                f"is one label: {choose}"
            )
        if task.label is not None and seen.setdefault(task.item, task.label) != task.label:
            raise DataError(
                f"item {task.item} was shown with several labels, {seen[task.item]!r} and {task.label!r}, which are "
                f"different questions: {choose}"
            )


def _labels(tasks: list[_Task]) -> list[Label]:
    """Return every label that was shown, offered or accepted, in natural order."""
    found = {
        label for task in tasks for label in (task.label, *(task.chosen or ()), *task.options) if label is not None
    }
    return sorted(found, key=natural)


def _plains(values: Iterable[Any], where: str) -> tuple[Label, ...]:
    """Return labels, each once."""
    labels = dict.fromkeys(_plain(value, where) for value in values)
    return tuple(label for label in labels if label is not None)


def _plain(value: Any, where: str) -> Label | None:
    """Return a label or an id."""
    try:
        return plain(value)
    except NotALabelError as wrong:
        raise DataError(f"{where} holds {wrong}: {RULE}.") from None
