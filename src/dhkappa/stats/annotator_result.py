"""The scores of annotators: a table, who differs from the rest, and who is not shown to know anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dhkappa.errors import counted, shown
from dhkappa.stats.notes import Note
from dhkappa.table import Display, Table, plain

MIN_ITEMS = 10  # items below which nothing is said about an annotator
MIN_SCREENED = 20  # items below which nobody is said to be not shown to know anything
FALSE_ALARMS = 0.05  # expected share among flagged annotators
AGREE_WITH = "agree_with_"  # before the name of a labeler, in names of columns
NOT_SHOWN = "votes not shown to be better than guesses"

_NAMED = 5  # annotators of a kind in the summary
_TESTED = f"with {MIN_ITEMS} items or more"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnnotatorScores(Display):
    """Annotators on one scale: the score of each, who differs from the rest, and who is not shown to know anything.

    Attributes
    ----------
    table : one row per annotator, those who differ first, then those not shown to know anything, then from the lowest
        to the highest shrunken score: ``items`` with two votes or more, ``agree`` (the mean share of the other
        votes that equal the annotator's), ``score`` (0 for votes at random; its mean is Fleiss' kappa),
        ``shrunk_score`` (drawn to the mean if there are few items) with limits ``low`` and ``high``, ``deviation`` (of
        the score from the mean of the votes on the same items), its ``pvalue`` and ``pvalue_adjusted``, ``differs``
        (``"below"`` or ``"above"``), ``z`` (of agreement with the others, compared with the same votes in random
        order), ``uninformed`` (whether the votes are not shown to know anything), and ``agree_with_`` each labeler
    differs : annotators who differ from the rest
    uninformed : annotators with 20 items or more who are not shown to know anything
    mean : mean score of all votes
    n_tested : number of annotators with 10 items or more, of whom it is said whether they differ
    n_few : number of annotators with fewer than 10 items; nothing is said about them
    confidence_level : confidence level of the limits
    notes : what to know about the results
    reason : why there are no scores; None if there are
    """

    table: Table
    differs: tuple[Any, ...]
    uninformed: tuple[Any, ...]
    mean: float
    n_tested: int
    n_few: int
    confidence_level: float
    notes: tuple[Note, ...]
    reason: str | None = None

    @property
    def summary(self) -> str:
        """Who differs from the rest, and who is not shown to know anything, in a sentence."""
        if self.reason is not None:
            return f"Annotators have no scores. {self.reason}"
        if not self.n_tested:
            return f"No annotator has {MIN_ITEMS} items with several votes, so nothing is said about any of them."
        k, d, u = self.n_tested, len(self.differs), len(self.uninformed)
        if d:
            alarms = _false_alarms(d)
            verb = "differs" if d == 1 else "differ"
            said = (
                f"{d:,} of {counted(k, 'annotator')} {_TESTED} {verb} from the rest ({alarms}): {_named(self.differs)}"
            )
        elif any(not math.isnan(p) for p in self.table.column("pvalue")):
            said = f"None of {counted(k, 'annotator')} {_TESTED} is shown to differ from the rest"
        else:
            said = f"Whether any of {counted(k, 'annotator')} {_TESTED} differs from the rest is not known"
        if u:
            verb = "has" if u == 1 else "have"
            said += f", and {u:,} with {MIN_SCREENED} items or more {verb} {NOT_SHOWN}: {_named(self.uninformed)}"
        return said if said.endswith("...") else f"{said}."

    def listed(self) -> Table:
        """Return the table of annotators with 10 items or more, with a column ``remark`` that says what is found."""
        rows = [row | {"remark": _remark(row)} for row in self.table if row["items"] >= MIN_ITEMS]
        return Table({name: [row[name] for row in rows] for name in (*self.table.names, "remark")}, self.table.title)

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield self.summary
        yield self.table
        yield [note.text for note in self.notes]

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Return plain values for JSON, with at most ``limit`` annotators; NaN is None."""
        return {
            "summary": self.summary,
            "mean": plain(self.mean),
            "n_annotators": len(self.table),
            "n_tested": self.n_tested,
            "n_few": self.n_few,
            "differs": [plain(name) for name in self.differs],
            "uninformed": [plain(name) for name in self.uninformed],
            "confidence_level": self.confidence_level,
            "annotators": [_nested(row) for row in self.table.to_json()[:limit]],
            "notes": [note.to_dict() for note in self.notes],
            "reason": self.reason,
        }


def _false_alarms(n: int) -> str:
    """Return how many of some named annotators are expected to be false alarms, at most."""
    one_in = round(1 / FALSE_ALARMS)
    if n == 1:
        return f"at most 1 in {one_in} such flags is a false alarm"
    if n < one_in:
        return f"of the {n:,} flagged, expect less than one to be a false alarm"
    return f"of the {n:,} flagged, expect at most {counted(-(-n // one_in), 'false alarm')}"


def _named(names: Sequence[Any]) -> str:
    return shown(names, _NAMED)


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the agreement with each labeler by name."""
    own = {name: value for name, value in row.items() if not name.startswith(AGREE_WITH)}
    return own | {"agree_with": {name.removeprefix(AGREE_WITH): row[name] for name in row if name not in own}}


def _remark(row: dict[str, Any]) -> str | None:
    """Return what is said about an annotator, if anything."""
    found = [f"differs ({row['differs']})"] if row["differs"] else []
    return ", ".join([*found, *([NOT_SHOWN] if row["uninformed"] else [])]) or None
