"""Exports of annotation tools: which tool wrote a file, and the builder that all readers share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from dhkappa.core import Label
from dhkappa.core.labels import RULE, NotALabelError, natural_key, to_label
from dhkappa.errors import DataError, did_you_mean, shown
from dhkappa.inputs.readers.records import first_record, read_records

TOOLS = {"label_studio": "Label Studio", "prodigy": "Prodigy", "doccano": "doccano", "argilla": "Argilla"}
"""Modules of this package, with the name of the tool."""


@dataclass(frozen=True, slots=True)
class Export:
    """Votes and suggested labels of an export, in columns.

    Attributes
    ----------
    tool : tool that wrote it
    votes : one row per vote; columns ``item``, ``annotator``, ``label``
    items : one row per item, with or without votes; columns ``item`` and one per labeler, None if it has no label
    labelers : names of the labelers, in natural order
    skipped : what is not a vote, with its number
    unlabeled : why there is no labeler, if the export should have one
    cautions : what the export does not tell
    """

    tool: str
    votes: dict[str, list[Label | None]]
    items: dict[str, list[Label | None]]
    labelers: tuple[str, ...]
    skipped: dict[str, int] = field(default_factory=dict)
    unlabeled: str = ""
    cautions: tuple[str, ...] = ()


def find_tool(path: str | os.PathLike[str]) -> str | None:
    """Return the module of the tool that wrote a file, by its first record; None if it is no known export."""
    record = first_record(path)
    known = (name for name in TOOLS if record is not None and _module(name).recognize(record))
    return next(known, None)


def read_file(path: str | os.PathLike[str], tool: str, question: str | None = None) -> Export:
    """Read the export of a tool, named by its module."""
    export: Export = _module(tool).read_export(read_records(path), question=question)
    return export


def _module(name: str) -> Any:
    return import_module(f"dhkappa.inputs.readers.{name}")


class ExportBuilder:
    """Collects items, votes and suggested labels of one tool's export."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.items: dict[Label, None] = {}
        self.skipped: Counter[str] = Counter()
        self._votes: dict[str, list[Label | None]] = {"item": [], "annotator": [], "label": []}
        self._suggested: dict[str, dict[Label, Label]] = {}

    def item(self, value: Any, where: str) -> Label:
        """Add an item by its id, unless it is known."""
        item = self.label(value, f"the id of {where}")
        if item is None:
            raise self.malformed(f"{where} has no id")
        self.items.setdefault(item)
        return item

    def vote(self, item: Label, annotator: Label | None, label: Label) -> None:
        """Add a vote."""
        for column, value in zip(self._votes.values(), (item, annotator, label), strict=True):
            column.append(value)

    def suggest(self, labeler: str, item: Label, label: Label | None) -> None:
        """Add a suggested label; None names the labeler only."""
        labels = self._suggested.setdefault(labeler, {})
        if label is not None and labels.setdefault(item, label) != label:
            raise DataError(
                f"Labeler {shown([labeler])} of the {self.tool} export has two labels for item {shown([item])}: "
                f"{shown([labels[item], label])}.",
                code="conflicting-suggestions",
                hint="Keep one label per labeler and item.",
            )

    def label(self, value: Any, where: str) -> Label | None:
        """Return a label or an id; None if missing."""
        try:
            return to_label(value)
        except NotALabelError as wrong:
            raise DataError(f"In the {self.tool} export, {where} is {wrong}.", code="not-a-label", hint=RULE) from None

    def malformed(self, problem: str, hint: str = "Export the project again.") -> DataError:
        """Return the error for an export that the tool does not write like this."""
        return DataError(f"Malformed {self.tool} export: {problem}.", code="malformed-export", hint=hint)

    def no_labels(self, problem: str, hint: str) -> DataError:
        """Return the error for answers that are not labels of whole items."""
        return DataError(f"The {self.tool} export {problem}.", code="no-item-labels", parameter="question", hint=hint)

    def several_labels(self, where: str, chosen: Iterable[Any], hint: str) -> DataError:
        """Return the error for answers of several labels."""
        message = f"In the {self.tool} export, {where} has several labels: {shown(chosen)}. A vote is one label."
        return DataError(message, code="several-labels", parameter="question", hint=hint)

    def choose(self, question: str | None, names: Collection[str], what: str = "questions") -> str:
        """Return the question, or the only one there is."""
        listed = f"{what.capitalize()}: {shown(sorted(names, key=natural_key), 20) or 'none'}."
        if question is None and len(names) > 1:
            message, hint = f"The {self.tool} export has several {what}. {listed}", "Choose one with $question."
            raise DataError(message, code="several-questions", parameter="question", hint=hint)
        if question is not None and question not in names:
            message = f"{shown([question])} is not among the {what} of the {self.tool} export. {listed}"
            hint = did_you_mean(question, names).strip()
            raise DataError(message, code="question-not-found", parameter="question", hint=hint)
        return next(iter(names), "") if question is None else question

    def build(
        self, unlabeled: str = "", cautions: tuple[str, ...] = (), skipped: Mapping[str, int] | None = None
    ) -> Export:
        """Return the export."""
        labelers = tuple(sorted(self._suggested, key=natural_key))
        items: dict[str, list[Label | None]] = {"item": list(self.items)}
        for labeler in labelers:
            items[labeler] = [self._suggested[labeler].get(item) for item in self.items]
        return Export(
            self.tool, self._votes, items, labelers, {**+self.skipped, **(skipped or {})}, unlabeled, cautions
        )
