"""Export: votes and suggested labels, as an annotation tool wrote them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dhkappa.core.labels import Label


@dataclass(frozen=True, slots=True)
class Export:
    """What an export holds, in columns.

    Attributes
    ----------
    tool : the tool that wrote it
    votes : a row for each vote; columns ``item``, ``annotator``, ``label``
    items : a row for each item, voted on or not; columns ``item`` and one for each labeler, None where it has no label
    labelers : whose suggested labels there are, in natural order
    skipped : what is no vote, in words, with how many there are
    unlabeled : why there is no labeler, and what to do, where the export should have had one
    cautions : what the export cannot tell
    """

    tool: str
    votes: dict[str, list[Label | None]]
    items: dict[str, list[Label | None]]
    labelers: tuple[str, ...]
    skipped: dict[str, int] = field(default_factory=dict)
    unlabeled: str = ""
    cautions: tuple[str, ...] = ()


Records = dict[str, list[dict[str, Any]]]
"""Records by the file they came from, without its suffix: one for a JSON or JSONL file, several for a zip."""
