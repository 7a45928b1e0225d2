"""doccano: a zip with one file of records for each annotator, named after them.

A project in which annotators share annotations is written as one file, ``all``, which does not tell whose a label is.
With "Export only approved documents", each file holds the documents that its annotator approved; without, each holds
every document, approved or not, labeled or not. Labels that were imported with the documents are votes of whoever
imported them. Every other column that was imported stands beside the text: those named ``suggested`` or
``suggested_*`` are labelers, the rest is left alone; a column named ``id`` takes the place of doccano's own number.
Sequence to sequence projects are written as text classification is: their texts cannot be told from labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dhkappa.core.labels import RULE, Label, NotALabelError, natural, plain
from dhkappa.errors import DataError, shown
from dhkappa.inputs.readers.export import Export, Records

TOOL = "doccano"

_WHOLE = ("label", "cats")  # labels of a whole document; cats where a project asks for spans as well
_PARTS = ("entities", "bbox", "segmentation")


def recognise(record: Mapping[str, Any]) -> bool:
    """Tell whether a first record is one of doccano's: an id and a document with a list of labels.

    A table of votes may have the same columns, but not a list in the place of a label.
    """
    document = "id" in record and ("text" in record or "filename" in record)
    return document and any(isinstance(record.get(name), list) for name in (*_WHOLE, *_PARTS))


def read_export(records: Records, *, question: str | None = None) -> Export:
    """Read votes and suggested labels.

    Parameters
    ----------
    records : the records of each file; a file is an annotator
    question : not for doccano, whose projects ask one

    Returns
    -------
    the export; a document that an annotator gave no label is no vote, and counted
    """
    if question is not None:
        raise DataError(
            f"question={shown([question])} was given, but a doccano project asks one question: leave it out."
        )
    if set(records) == {"all"}:
        raise DataError(
            "the doccano export holds one file for all annotators, which does not tell whose a label is: turn off "
            "'Share annotations across all users' in the project's settings and export again."
        )
    votes: dict[str, list[Label | None]] = {"item": [], "annotator": [], "label": []}
    known: dict[Label, None] = {}
    suggested: dict[str, dict[Label, Label]] = {}
    several: dict[Label, None] = {}
    skipped: Counter[str] = Counter()
    for annotator, documents in records.items():
        for document in documents:
            item = _item(document, annotator)
            known[item] = None
            _add_suggested(suggested, item, document)
            labels = _labels(document, item)
            if len(labels) > 1:
                several[item] = None
            elif not labels:
                skipped["documents without a label"] += 1
            else:
                for column, value in zip(votes.values(), (item, annotator, labels[0]), strict=True):
                    column.append(value)
    if several:
        raise DataError(
            f"the doccano export holds several labels of one annotator on items {shown(several)}: a vote is one label. "
            "Have the project 'Allow single label', or keep one label of each such list in the files."
        )
    labelers = tuple(sorted(suggested, key=natural))
    items: dict[str, list[Label | None]] = {"item": list(known)}
    for labeler in labelers:
        items[labeler] = [suggested[labeler].get(item) for item in known]
    return Export(TOOL, votes, items, labelers, dict(skipped))


def _item(document: Mapping[str, Any], annotator: str) -> Label:
    """Return a document's id."""
    try:
        item = plain(document.get("id"))
    except NotALabelError as wrong:
        raise DataError(
            f"the doccano export holds the id {wrong} in file {shown([annotator])}: {RULE}, and so is an id."
        ) from None
    if item is None:
        raise DataError(
            f"the doccano export holds a document without an id in file {shown([annotator])}: give each an id."
        )
    return item


def _add_suggested(suggested: dict[str, dict[Label, Label]], item: Label, document: Mapping[str, Any]) -> None:
    """Take the suggested labels of a document; numbers as text, which all labels of doccano are."""
    for name, value in document.items():
        if name != "suggested" and not name.startswith("suggested_"):
            continue
        try:
            label = plain(value)
        except NotALabelError as wrong:
            raise DataError(f"{name!r} of the doccano export holds {wrong} at item {shown([item])}: {RULE}.") from None
        labels = suggested.setdefault(name, {})
        if label is None:
            continue
        label = str(label) if type(label) is int else label
        if labels.setdefault(item, label) != label:
            raise DataError(
                f"{name!r} of the doccano export holds {shown([labels[item], label])} at item {shown([item])}: an item "
                "has one label by each labeler, the same in every file, and no two documents have the same id."
            )


def _labels(document: Mapping[str, Any], item: Label) -> list[str]:
    """Return the labels of a whole document."""
    name = next((name for name in _WHOLE if name in document), None)
    if name is None:
        raise DataError(
            f"the doccano export holds {shown(document, 10)} at item {shown([item])}, and no labels of the whole "
            "document: spans, relations and boxes are no labels of items. Export a text classification project."
        )
    labels = document[name]
    if not (isinstance(labels, list) and all(isinstance(label, str) for label in labels)):
        raise DataError(
            f"the doccano export holds {shown([labels])} as {name!r} at item {shown([item])}, not a list of labels: "
            "spans are no labels of items. Export a text classification project."
        )
    return [label for label in labels if label]
