"""Label Studio: annotations and predictions, as its JSON and JSON-MIN exports hold them.

- An item is a task, by its ``id``: every export has it, and it names a task within a whole server, where ``inner_id``
  counts within a project only and is not in every export.
- An annotator is the e-mail address of ``completed_by`` where the export has it, else the number of the user.
- A labeler is a model version of the predictions; those without a version are the labeler ``prediction``.
- An annotation marked as ground truth is a vote like any other: somebody gave it, and the mark came after.
- Cancelled and rejected annotations, drafts and annotations without an answer are no votes, and are counted; JSON-MIN
  leaves out cancelled annotations, drafts and predictions by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dhkappa.core.labels import RULE, Label, NotALabelError, natural, plain
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.readers.export import Export, Records

TOOL = "Label Studio"

Answers = dict[str, list[Label]]
"""What was answered, by the name of the control."""

_KINDS = ("choices", "rating", "number", "taxonomy")
_WHOLE = (
    'POST {"serialization_options": {"predictions": {"only_id": false}, "annotations__completed_by": '
    '{"only_id": false}}} to /api/projects/<project>/exports/, then GET '
    "/api/projects/<project>/exports/<the id it answers>/download"
)


@dataclass(slots=True)
class _Held:
    """What an export holds, whichever of its two forms it has; a place holds an item with who answered."""

    items: dict[Label, None] = field(default_factory=dict)
    votes: list[tuple[Label, Label | None, Answers]] = field(default_factory=list)
    suggestions: list[tuple[Label, str, Answers]] = field(default_factory=list)
    regions: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    minimal: bool = False
    unlabeled: str = ""


def recognise(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a task of a JSON export, or an annotation of a JSON-MIN export."""
    return _is_task(record) or _is_annotation(record)


def _is_task(record: Mapping[str, Any]) -> bool:
    lists = [record[name] for name in ("annotations", "predictions") if name in record]
    return isinstance(record.get("data"), dict) and bool(lists) and all(isinstance(held, list) for held in lists)


def _is_annotation(record: Mapping[str, Any]) -> bool:
    return {"id", "annotator", "annotation_id", "lead_time"} <= record.keys()


def read_export(records: Records, *, question: str | None = None) -> Export:
    """Read votes and suggested labels.

    Parameters
    ----------
    records : tasks of a JSON export, or annotations of a JSON-MIN export, which has no predictions
    question : the name of the control whose answers are the votes, where there are several; for a control that takes
        several choices on one item ``"control=choice"``, and then a vote is that choice or ``"not <choice>"``

    Returns
    -------
    the votes, the suggested labels by model version, and what was skipped
    """
    held = _Held()
    for name, rows in records.items():
        for number, record in enumerate(rows, 1):
            where = f"{name}, record {number}"
            if not recognise(record):
                raise DataError(f"{where} is no task of a Label Studio export: export the project as JSON.")
            item = _plain(record.get("id"), f"the id of {where}")
            if item is None:
                raise DataError(f"{where} has no id: export the project, rather than read the file it was made from.")
            if _is_task(record) and item in held.items:
                raise DataError(
                    f"{where} is task {shown([item])} again, which a JSON export holds once: its votes would be added "
                    "to those of another task, or counted twice. Pass one export."
                )
            if _is_task(record) and record.get("completions"):  # in JSON-MIN, a field of the data
                raise DataError(
                    f"{where} has completions, as Label Studio called annotations before version 1: import it into a "
                    "newer one, and export it there."
                )
            held.items.setdefault(item)
            if _is_task(record):
                _add_task(held, item, record)
            else:
                _add_annotation(held, item, record)
    control, choice = _chosen(held, question)
    if choice is None:
        _check_single(held, control)
    return _exported(held, control, choice)


def _add_task(held: _Held, item: Label, task: Mapping[str, Any]) -> None:
    """Take the annotations and predictions of a task."""
    held.skipped["drafts"] += len(_list(task, "drafts", item))
    for annotation in task.get("annotations") or ():
        if not isinstance(annotation, dict):
            raise DataError(
                f"task {item} has its annotations as ids ({shown([annotation])}), without their answers: export the "
                "project as JSON."
            )
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            held.skipped["cancelled annotations"] += 1
        elif annotation.get("last_action") == "rejected":
            held.skipped["annotations rejected in review"] += 1
        else:
            held.votes.append((item, _annotator(annotation.get("completed_by")), _answers(annotation, item, held)))
    for prediction in task.get("predictions") or ():
        if not isinstance(prediction, dict):
            held.unlabeled = held.unlabeled or (
                f"task {item} has its predictions as ids ({shown([prediction])}), which tell no label: the export "
                f"button of Label Studio writes them so, and a snapshot exports them whole: {_WHOLE}."
            )
            continue
        held.suggestions.append((item, _labeler(prediction), _answers(prediction, item, held)))


def _list(given: Mapping[str, Any], key: str, item: Label) -> list[Any]:
    """Return what is listed under a key; nothing where it is absent."""
    found = given.get(key)
    if found is not None and not isinstance(found, list):
        raise DataError(f"task {item} has {shown([found])} as its {key}, which is no list: export the project anew.")
    return found or []


def _annotator(completed_by: Any) -> Label | None:
    """Return who an annotation is by: an e-mail address, else an id."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return _plain(completed_by, "completed_by of an annotation")


def _labeler(prediction: Mapping[str, Any]) -> str:
    """Return whose a prediction is; the server's own words for none are empty text and "undefined"."""
    version = str(prediction.get("model_version") or "")
    if version in ("", "undefined"):
        return "prediction"
    return f"prediction {version}" if version == "item" else version


def _answers(given: Mapping[str, Any], item: Label, held: _Held) -> Answers:
    """Return what an annotation or a prediction says about the whole item; count what it says of its parts."""
    found: Answers = {}
    for result in _list(given, "result", item):
        if not isinstance(result, dict):
            raise DataError(f"task {item} has the result {shown([result])}, which is none of Label Studio's.")
        name = str(result.get("from_name") or result.get("type"))
        labels = _labels(result.get("value"), item, name)
        if labels is None:
            held.regions[name] += 1
        else:
            found.setdefault(name, []).extend(labels)
    return found


def _labels(value: Any, item: Label, control: str) -> list[Label] | None:
    """Return the labels of an answer; None if it marks a region, which its place beside the label shows, or is text."""
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= set(_KINDS):
        return None
    ((kind, answer),) = value.items()
    found = answer if isinstance(answer, list) else [answer]
    if kind == "taxonomy":
        found = [" / ".join(map(str, path)) if isinstance(path, list) else path for path in found]
    labels = [_plain(label, f"control {control!r} of task {item}") for label in found]
    return [label for label in dict.fromkeys(labels) if label is not None]


def _add_annotation(held: _Held, item: Label, record: Mapping[str, Any]) -> None:
    """Take a record of a JSON-MIN export: what lies between ``id`` and ``annotator`` are answers, by control."""
    if record["annotation_id"] is None:  # a task without annotations
        return
    held.minimal = True
    names = list(record)
    found: Answers = {}
    for name in names[names.index("id") + 1 : names.index("annotation_id")]:
        if name == "annotator":
            continue
        parts = record[name] if isinstance(record[name], list) else [record[name]]
        labels = [_labels({"choices": part} if isinstance(part, str) else part, item, name) for part in parts]
        for several in labels:
            if several is None:
                held.regions[name] += 1
            else:
                found.setdefault(name, []).extend(several)
    held.votes.append((item, _annotator(record["annotator"]), found))


def _chosen(held: _Held, question: str | None) -> tuple[str, Label | None]:
    """Return the control whose answers are votes, and the choice that is asked about where it takes several."""
    controls = sorted({name for _, _, answers in (*held.votes, *held.suggestions) for name in answers}, key=natural)
    if question is None:
        if held.regions and held.minimal and controls:
            raise DataError(
                f"the export marks regions (control {shown(held.regions)}), and JSON-MIN does not tell whether "
                f"{shown(controls, 20)} is about the item or a region: export as JSON, or choose with question=."
            )
        if held.regions and not controls:
            raise DataError(
                f"the export marks regions or holds text (control {shown(held.regions)}), which is no label of an "
                "item: a vote is one choice, rating, number or place in a taxonomy on a whole task."
            )
        if len(controls) > 1:
            raise DataError(
                f"the export has {len(controls)} controls with labels, {shown(controls, 20)}: choose the one whose "
                f"answers are votes, as question={controls[0]!r}."
            )
        return (controls[0] if controls else ""), None
    if question in controls:
        return question, None
    for control in controls:
        if question.startswith(f"{control}="):
            choices = {str(label): label for label in _choices(held, control)}
            asked = question.removeprefix(f"{control}=")
            if asked in choices:
                return control, choices[asked]
            raise DataError(
                f"question={question!r}: nobody chose {asked!r} in control {control!r}. "
                f"{_offer('Choices', asked, choices)}"
            )
    if question in held.regions:
        raise DataError(
            f"question={question!r}: that control marks regions or holds text, which is no label of an item. "
            f"{_offer('Controls with labels', question, controls)}"
        )
    raise DataError(f"question={question!r} is no control of the export. {_offer('Controls', question, controls)}")


def _choices(held: _Held, control: str) -> list[Label]:
    """Return what was ever chosen in a control, in natural order."""
    given = (answers.get(control, ()) for _, _, answers in (*held.votes, *held.suggestions))
    return sorted({label for labels in given for label in labels}, key=natural)


def _offer(what: str, asked: str, names: Collection[str]) -> str:
    """List the names there are, and the one that may be meant."""
    listed = shown(sorted(names, key=natural), 20) or "none"
    return f"{what}: {listed}." + did_you_mean(asked, names)


def _exported(held: _Held, control: str, choice: Label | None) -> Export:
    """Put votes and suggested labels into columns."""
    votes: dict[str, list[Label | None]] = {"item": [], "annotator": [], "label": []}
    for item, annotator, answers in held.votes:
        label = _one(answers.get(control, []), choice)
        if label is None:
            held.skipped["annotations without an answer"] += 1
            continue
        for column, value in zip(votes.values(), (item, annotator, label), strict=True):
            column.append(value)
    suggested: dict[str, dict[Label, Label]] = {}
    for item, labeler, answers in held.suggestions:
        label = _one(answers.get(control, []), choice)
        if label is None:
            held.skipped["predictions without an answer"] += 1
        elif suggested.setdefault(labeler, {}).setdefault(item, label) != label:
            raise DataError(
                f"model version {labeler!r} has two predictions on task {item}, {suggested[labeler][item]!r} and "
                f"{label!r}: delete one in Label Studio, or give each a version of its own."
            )
    labelers = tuple(sorted(suggested, key=natural))
    items: dict[str, list[Label | None]] = {"item": list(held.items)}
    for labeler in labelers:
        items[labeler] = [suggested[labeler].get(item) for item in held.items]
    parts = {f"regions or texts in control {name!r}": many for name, many in held.regions.items()}
    return Export(TOOL, votes, items, labelers, {**+held.skipped, **parts}, held.unlabeled)


def _check_single(held: _Held, control: str) -> None:
    """Refuse several choices by one on one item: a vote is one label."""
    for item, who, answers in (*held.votes, *held.suggestions):
        chosen = answers.get(control, [])
        if len(chosen) > 1:
            raise DataError(
                f"{who!r} chose several in control {control!r} on task {item}, {shown(chosen)}, and a vote is one "
                f"label: ask about one choice, as question={f'{control}={chosen[0]}'!r}, which makes the votes "
                f"{str(chosen[0])!r} and {f'not {chosen[0]}'!r}. Choices: {shown(_choices(held, control), 20)}."
            )


def _one(chosen: list[Label], choice: Label | None) -> Label | None:
    """Return the label that was chosen, or whether the choice asked about is among several; None if nothing was."""
    if not chosen:
        return None
    if choice is None or choice in chosen:
        return chosen[0] if choice is None else choice
    return f"not {choice}"


def _plain(value: Any, name: str) -> Label | None:
    """Return a label or an id."""
    try:
        return plain(value)
    except NotALabelError as wrong:
        raise DataError(f"{name} holds {wrong}: {RULE}.") from None
