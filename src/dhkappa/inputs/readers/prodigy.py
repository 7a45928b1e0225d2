"""Prodigy: answers as ``prodigy db-out`` writes them, one JSON object per line.

- An item is an input, by its ``_input_hash``, as in Prodigy's own measures of agreement.
- An annotator is the ``_annotator_id``, else the ``_session_id``, else the name of the file.
- With choices (``options``, ``accept``), a vote is the accepted option. A rejected task is not a vote. If annotators
  may accept several, ``question`` is one of them: a vote is then that label or ``"not <label>"``.
- With one label per task (``label``), to accept is a vote for the label, to reject a vote for ``"not <label>"``. If
  items have different labels, these are suggested labels, of the labeler ``suggested``; one label on all items is a
  question.
- Ignored tasks are not votes. Whatever is not a vote is counted. A model's choice that was preselected is not in the
  export, and models that answer as annotators look like people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dhkappa.core import Label
from dhkappa.core.labels import natural_key
from dhkappa.inputs.readers import ExportBuilder, Records
from dhkappa.inputs.tables import Source


class _Task(NamedTuple):
    """A task with its answer: about the one ``label`` shown, or with ``options`` chosen; neither if about spans."""

    item: Label
    annotator: Label | None
    answer: str
    label: Label | None
    chosen: tuple[Label, ...] | None
    options: tuple[Label, ...]


def recognize(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a task of Prodigy, which has hashes of its input."""
    return "_input_hash" in record


def read_export(records: Records, *, question: str | None = None) -> Source:
    """Read votes, and suggested labels if items have different ones; ``question`` is a label, if there are several."""
    builder = ExportBuilder("Prodigy")
    tasks = [
        _task(builder, record, name, f"record {number} of {name!r}")
        for name, rows in records.items()
        for number, record in enumerate(rows, 1)
    ]
    if all(task.label is None and task.chosen is None for task in tasks):
        hint = "Use a recipe that asks about the whole item, such as textcat.manual."
        raise builder.no_labels("has neither choices nor labels of whole items", hint)
    found: set[Any] = {label for task in tasks for label in (task.label, *(task.chosen or ()), *task.options)} - {None}
    labels = {str(label): label for label in sorted(found, key=natural_key)}
    asked = None if question is None else labels[builder.choose(question, labels, "labels")]
    if asked is None:
        _check_single(builder, tasks, labels)
    for task in tasks:
        builder.vote(task.item, task.annotator, *_vote(task, asked))
    shown_labels = {task.item: task.label for task in tasks if task.label is not None}
    if asked is None and len(set(shown_labels.values())) > 1:
        for item, label in shown_labels.items():
            builder.suggest("suggested", item, label)
    return builder.build()


def _task(builder: ExportBuilder, record: Mapping[str, Any], name: str, where: str) -> _Task:
    def plains(values: Iterable[Any]) -> tuple[Label, ...]:
        labels = dict.fromkeys(builder.label(value, where) for value in values)
        return tuple(label for label in labels if label is not None)

    if "_input_hash" not in record:
        raise builder.malformed(f"{where} has no '_input_hash'", "Export with prodigy db-out.")
    item = builder.item(record["_input_hash"], where)
    builder.show(item, record)
    annotator = builder.label(record.get("_annotator_id") or record.get("_session_id") or name, where)
    answer, accepted, options = str(record.get("answer")), record.get("accept"), record.get("options")
    if not isinstance(accepted, list) and not isinstance(options, list):
        return _Task(item, annotator, answer, builder.label(record.get("label"), where), None, ())
    chosen = plains(accepted if isinstance(accepted, list) else [accepted])
    listed = options if isinstance(options, list) else ()
    offered = plains(option.get("id") for option in listed if isinstance(option, dict))
    return _Task(item, annotator, answer, None, chosen, offered)


def _vote(task: _Task, asked: Label | None) -> tuple[Label | None, str]:
    """Return the vote of a task, or None and what the task is instead."""
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


def _check_single(builder: ExportBuilder, tasks: list[_Task], labels: Mapping[str, Label]) -> None:
    """Refuse several labels of one annotator on one item, and several questions."""
    example = next(iter(labels), "")
    hint = f"Ask about one label, as $question with {example!r}: votes are then {example!r} and {f'not {example}'!r}."
    if {task.chosen is None for task in tasks if (task.chosen, task.label) != (None, None)} == {True, False}:
        raise builder.several_labels("some tasks have choices and others one label: the export", labels, hint)
    seen: dict[Label, Label] = {}
    for task in tasks:
        if task.chosen and task.answer == "accept" and len(task.chosen) > 1:
            raise builder.several_labels(f"{task.annotator!r} on item {task.item}", task.chosen, hint)
        if task.label is not None and seen.setdefault(task.item, task.label) != task.label:
            raise builder.several_labels(f"item {task.item}", (seen[task.item], task.label), hint)
