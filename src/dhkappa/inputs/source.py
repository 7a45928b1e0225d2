"""Source: a table that was read from a file, an export or a database, and what is known about its columns."""

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
    """A table of votes that was read, and what is known about its columns.

    Attributes
    ----------
    votes : the table of votes, as an object of its engine
    items : the table of items, or None
    roles : the column roles that are known
    labelers : columns with suggested labels, if they are known
    tool : the annotation tool that wrote the export; None for a plain table
    skipped : what an export holds besides votes, with how many of each
    unlabeled : why there are no suggested labels, if an export should have them
    cautions : sentences about what an export does not tell
    ordered : whether rows are in the order of a file
    files : the files that every query reads, as they were when they were opened
    """

    votes: Any
    items: Any = None
    roles: RoleKeywords = field(default_factory=lambda: RoleKeywords())
    labelers: tuple[str, ...] = ()
    tool: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    unlabeled: str = ""
    cautions: tuple[str, ...] = ()
    ordered: bool = False
    files: FileStates = field(default_factory=FileStates)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        frame = frame_of(self.votes)
        return () if frame is None else frame.columns

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about an export: what it holds besides votes, and what it does not tell."""
        if not self.skipped:
            return self.cautions
        return (f"The {self.tool} export also holds what is not a vote: {self._skipped()}.", *self.cautions)

    def _skipped(self) -> str:
        return ", ".join(f"{what} ({number:,})" for what, number in self.skipped.items())

    def __copy__(self) -> Source:
        return self

    def __deepcopy__(self, memo: Any) -> Source:
        return self

    def __reduce__(self) -> NoReturn:
        raise DataError(
            "A table that was read from a file or a database cannot be pickled.",
            code="not-picklable",
            hint="Pickle its path, or save its tally().",
        )

    def __repr__(self) -> str:
        parts = [f"columns {shown(self.columns, 10)}"]
        if self.labelers:
            parts.append(f"labelers {shown(self.labelers, 10)}")
        if self.skipped:
            parts.append(f"skipped {self._skipped()}")
        parts += filter(None, [self.unlabeled, *self.cautions])
        return f"Source({self.tool + ': ' if self.tool else ''}{'; '.join(parts)})"
