"""Label Studio: annotations and predictions of its JSON and JSON-MIN exports.

- An item is a task, by its ``id``, which is unique within a server and in every export; ``inner_id`` is neither.
- An annotator is the e-mail address of ``completed_by`` if the export has it, else the number of the user.
- A labeler is a model version of the predictions; predictions without a version are the labeler ``prediction``.
- An annotation marked as ground truth is a vote like any other. Cancelled and rejected ones, drafts, and those without
  an answer are not votes. They are counted; JSON-MIN leaves out cancelled annotations, drafts and predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dhkappa.core import Label
from dhkappa.core.labels import natural_key
from dhkappa.errors import shown
from dhkappa.inputs.readers import ExportBuilder, Records, labeler_name
from dhkappa.inputs.tables import Source

Answers = dict[str, list[Label]]  # by the name of the control
_KINDS = ("choices", "rating", "number", "taxonomy")
_SNAPSHOT = (
    'POST {"serialization_options": {"predictions": {"only_id": false}, "annotations__completed_by": '
    '{"only_id": false}}} to /api/projects/<project>/exports/, then GET '
    "/api/projects/<project>/exports/<id in the response>/download"
)


class _Content(ExportBuilder):
    """Content of an export in either form, and the votes and suggested labels that are made of it."""

    def __init__(self) -> None:
        super().__init__("Label Studio")
        self.annotations: list[tuple[Label, Label | None, Answers]] = []
        self.predictions: list[tuple[Label, str, Answers]] = []
        self.choices: dict[str, set[Label]] = {}  # all answers by control
        self.regions: Counter[str] = Counter()
        self.minimal, self.unlabeled = False, ""


def recognize(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a task of a JSON export, or an annotation of a JSON-MIN export."""
    return _is_task(record) or {"id", "annotator", "annotation_id", "lead_time"} <= record.keys()


def _is_task(record: Mapping[str, Any]) -> bool:
    lists = [record[name] for name in ("annotations", "predictions") if name in record]
    return isinstance(record.get("data"), dict) and bool(lists) and all(isinstance(held, list) for held in lists)


def read_export(records: Records, *, question: str | None = None) -> Source:
    """Read votes, and suggested labels by model version; ``question`` is a control, or ``"control=choice"``."""
    content = _Content()
    for name, rows in records.items():
        for number, record in enumerate(rows, 1):
            where = f"record {number} of {name!r}"
            if not recognize(record):
                raise content.malformed(f"{where} is not a task", "Export the project as JSON.")
            known = len(content.items)
            item = content.item(record.get("id"), where)
            if not _is_task(record):
                _add_annotation(content, item, record)
                continue
            if len(content.items) == known:
                raise content.malformed(f"{where} repeats task {shown([item])}", "Pass one export.")
            content.show(item, record["data"])
            if record.get("completions"):
                hint = "Import it into Label Studio 1 or newer, and export it there."
                raise content.malformed(f"{where} has completions, from before version 1", hint)
            _add_task(content, item, record)
    control, choice = _chosen(content, question)
    for item, who, answers in content.annotations:
        label = _label(content, control, choice, answers, f"annotator {who!r} on task {item}")
        content.vote(item, who, label, "annotations without an answer")
    for item, labeler, answers in content.predictions:
        label = _label(content, control, choice, answers, f"{labeler!r} on task {item}")
        if label is None:
            content.skipped["predictions without an answer"] += 1
        else:
            content.suggest(labeler, item, label)
    content.skipped.update({f"regions or texts in control {name!r}": many for name, many in content.regions.items()})
    return content.build(content.unlabeled)


def _add_task(content: _Content, item: Label, task: Mapping[str, Any]) -> None:
    skipped = content.skipped
    skipped["drafts"] += len(_list(content, task, "drafts", item))
    for annotation in task.get("annotations") or ():
        if not isinstance(annotation, dict):
            problem = f"task {item} has ids as annotations ({shown([annotation])}), without answers"
            raise content.malformed(problem, "Export the project as JSON.")
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            skipped["cancelled annotations"] += 1
        elif annotation.get("last_action") == "rejected":
            skipped["annotations rejected in review"] += 1
        else:
            who = _annotator(content, annotation.get("completed_by"))
            content.annotations.append((item, who, _answers(content, annotation, item)))
    for prediction in task.get("predictions") or ():
        if isinstance(prediction, dict):
            version = prediction.get("model_version")  # the server writes "undefined" for none
            labeler = labeler_name(None if version == "undefined" else version, "prediction")
            content.predictions.append((item, labeler, _answers(content, prediction, item)))
        else:
            content.unlabeled = content.unlabeled or (
                f"Task {item} has ids as predictions ({shown([prediction])}), without labels. Label Studio's export "
                f"button writes them like this. A snapshot has them whole: {_SNAPSHOT}."
            )


def _list(content: _Content, given: Mapping[str, Any], key: str, item: Label) -> list[Any]:
    found = given.get(key)
    if found is not None and not isinstance(found, list):
        raise content.malformed(f"{key} of task {item} is not a list: {shown([found])}")
    return found or []


def _annotator(content: _Content, completed_by: Any) -> Label | None:
    """Return the e-mail address of an annotator, else the id."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return content.label(completed_by, "completed_by of an annotation")


def _answers(content: _Content, given: Mapping[str, Any], item: Label) -> Answers:
    """Return the answers about the whole item; count those about regions."""
    found: Answers = {}
    for result in _list(content, given, "result", item):
        if not isinstance(result, dict):
            raise content.malformed(f"task {item} has the result {shown([result])}")
        _add_answer(content, found, str(result.get("from_name") or result.get("type")), result.get("value"), item)
    return found


def _add_answer(content: _Content, found: Answers, control: str, value: Any, item: Label) -> None:
    """Add an answer, unless it is text or marks a region, which has other keys beside the label."""
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= set(_KINDS):
        content.regions[control] += 1
        return
    ((kind, answer),) = value.items()
    given = answer if isinstance(answer, list) else [answer]
    if kind == "taxonomy":
        given = [" / ".join(map(str, path)) if isinstance(path, list) else path for path in given]
    known = dict.fromkeys(content.label(label, f"control {control!r} of task {item}") for label in given)
    labels = [label for label in known if label is not None]
    found.setdefault(control, []).extend(labels)
    content.choices.setdefault(control, set()).update(labels)


def _add_annotation(content: _Content, item: Label, record: Mapping[str, Any]) -> None:
    """Add a record of a JSON-MIN export: the keys between ``id`` and ``annotation_id`` are controls."""
    if record["annotation_id"] is None:  # a task without annotations
        return
    content.minimal = True
    names = list(record)
    content.show(item, {name: record[name] for name in names[: names.index("id")]})
    found: Answers = {}
    for name in names[names.index("id") + 1 : names.index("annotation_id")]:
        if name != "annotator":
            for part in record[name] if isinstance(record[name], list) else [record[name]]:
                _add_answer(content, found, name, {"choices": part} if isinstance(part, str) else part, item)
    content.annotations.append((item, _annotator(content, record["annotator"]), found))


def _chosen(content: _Content, question: str | None) -> tuple[str, Label | None]:
    """Return the control whose answers are votes, and the choice if one was asked about."""
    controls = sorted(content.choices, key=natural_key)
    regions = shown(content.regions)
    if question is None and content.regions and content.minimal and controls:
        problem = f"marks regions (control {regions}), and JSON-MIN does not tell what {shown(controls, 20)} is about"
        raise content.no_labels(problem, "Export as JSON, or choose with $question.")
    if (question is None and content.regions and not controls) or question in set(content.regions) - {*controls}:
        problem = f"marks regions or holds text (control {regions}), which are not labels of items"
        raise content.no_labels(problem, "A vote is one choice, rating, number or taxonomy entry on a whole task.")
    for control in controls if question not in controls else ():
        if question is not None and question.startswith(f"{control}="):
            choices = {str(label): label for label in sorted(content.choices[control], key=natural_key)}
            return control, choices[content.choose(question.removeprefix(f"{control}="), choices, "choices")]
    return content.choose(question, controls, "controls"), None


def _label(content: _Content, control: str, choice: Label | None, answers: Answers, where: str) -> Label | None:
    chosen = answers.get(control, [])
    if not chosen:
        return None
    if choice is not None:  # a vote is that choice, or not
        return choice if choice in chosen else f"not {choice}"
    if len(chosen) > 1:
        example, choices = f"{control}={chosen[0]}", sorted(content.choices[control], key=natural_key)
        hint = f"Ask about one choice, as $question with {example!r}: votes are then that choice or not. "
        raise content.several_labels(where, chosen, f"{hint}Choices: {shown(choices, 20)}.")
    return chosen[0]
