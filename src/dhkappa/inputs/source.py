"""Source: a table that was read, and what is known of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from dhkappa.errors import DataError, shown
from dhkappa.inputs.backends import frame_of
from dhkappa.inputs.columns import RoleKeywords
from dhkappa.paths import FileStates


@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """A table that was read, and what is known of its columns.

    Attributes
    ----------
    votes : the table with votes, of the engine that holds it
    items : the table of items, None where there is none
    words : what is known of the layout
    labelers : columns with suggested labels, where that is known
    tool : the annotation tool whose export it is, None for a plain table
    skipped : what is no vote, in words, with how many there are
    unlabeled : why no labeler is known, and what to do, where an export should have had one
    cautions : what an export cannot tell
    ordered : whether rows keep the order that they have in a file
    files : the files that are read at every question, as they were when they were opened
    """

    votes: Any
    items: Any = None
    words: RoleKeywords = field(default_factory=lambda: RoleKeywords())
    labelers: tuple[str, ...] = ()
    tool: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    unlabeled: str = ""
    cautions: tuple[str, ...] = ()
    ordered: bool = False
    files: FileStates = field(default_factory=FileStates)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        frame = frame_of(self.votes)
        return () if frame is None else frame.columns

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to know of an export, in sentences: what it holds that is no vote, and what it cannot tell."""
        if not self.skipped:
            return self.cautions
        none = ", ".join(f"{what} ({number:,})" for what, number in self.skipped.items())
        return (f"The {self.tool} export holds what is no vote: {none}.", *self.cautions)

    def __copy__(self) -> Source:
        return self

    def __deepcopy__(self, memo: Any) -> Source:
        return self

    def __reduce__(self) -> NoReturn:
        raise DataError("A Dataset that was read from a file or a database cannot be pickled.")

    def __repr__(self) -> str:
        parts = [f"columns {shown(self.columns, 10)}"]
        if self.labelers:
            parts.append(f"labelers {shown(self.labelers, 10)}")
        if self.skipped:
            parts.append("no votes: " + ", ".join(f"{what} ({number:,})" for what, number in self.skipped.items()))
        parts += filter(None, [self.unlabeled, *self.cautions])
        return f"Source({self.tool + ': ' if self.tool else ''}{'; '.join(parts)})"
