"""doccano: a zip with one file of records per annotator.

A project in which annotators share annotations is exported as one file, ``all``, without annotators. With "Export only
approved documents", each file holds the documents that its annotator approved, otherwise all documents. Labels that
were imported with the documents are votes of whoever imported them. Imported columns named ``suggested`` or
``suggested_*`` are labelers; a column named ``id`` replaces doccano's own number. Texts of sequence-to-sequence
projects look like labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dhkappa.errors import DataError, shown
from dhkappa.inputs.columns import suggested_columns
from dhkappa.inputs.readers import ExportBuilder, Records
from dhkappa.inputs.tables import Source

_WHOLE = ("label", "cats")  # labels of a whole document; cats if the project asks for spans as well
_PARTS = ("entities", "bbox", "segmentation")


def recognize(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a document with an id and a list of labels, which no table of votes has."""
    document = "id" in record and ("text" in record or "filename" in record)
    return document and any(isinstance(record.get(name), list) for name in (*_WHOLE, *_PARTS))


def read_export(records: Records, *, question: str | None = None) -> Source:
    """Read votes and suggested labels. A document without a label is not a vote. There is one question only."""
    builder = ExportBuilder("doccano")
    if question is not None:
        message = f"A doccano project has one question, but {shown([question])} was asked for."
        raise DataError(message, code="question-not-found", parameter="question", hint="Leave out $question.")
    if set(records) == {"all"}:
        hint = "Turn off 'Share annotations across all users' in the project's settings and export again."
        raise builder.malformed("one file for all annotators does not tell who gave a label", hint)
    for annotator, documents in records.items():
        for number, document in enumerate(documents, 1):
            item = builder.item(document.get("id"), f"record {number} of {annotator!r}")
            builder.show(item, document)
            for name in suggested_columns(document):
                label = builder.label(document[name], f"{name!r} of item {shown([item])}")
                builder.suggest(name, item, str(label) if type(label) is int else label)  # labels of doccano are text
            given = next((document[name] for name in _WHOLE if name in document), None)
            if not (isinstance(given, list) and all(isinstance(label, str) for label in given)):
                problem = f"has no list of labels for item {shown([item])}, and spans and boxes are not labels of items"
                raise builder.no_labels(problem, "Export a text classification project.")
            labels = [label for label in given if label]
            if len(labels) > 1:
                hint = "Turn on 'Allow single label' in the project, or keep one label of each list."
                raise builder.several_labels(f"item {shown([item])}", labels, hint)
            builder.vote(item, annotator, labels[0] if labels else None, "documents without a label")
    return builder.build()
