"""What would change in an audit without some annotators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dhkappa.errors import counted, shown
from dhkappa.table import Display, Table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WithoutAnnotators(Display):
    """The result of ``Audit.without``: an audit compared with the audit of the data without some annotators.

    Attributes
    ----------
    annotators : the annotators that were left out
    table : one row per labeler: ``kappa`` and ``kappa_without`` these annotators, their difference ``change``,
        ``items_lost`` and ``votes_lost`` (numbers of items and votes that kappa is no longer computed from; so also
        the votes of others on items that are left with one vote),
        ``verdict`` and ``verdict_without``, as codes
    fleiss, fleiss_without : Fleiss' kappa of all annotators, and of the others
    """

    annotators: tuple[str, ...]
    table: Table
    fleiss: float
    fleiss_without: float

    @classmethod
    def of(cls, annotators: Sequence[Any], before: Any, after: Any) -> WithoutAnnotators:
        """Compare two audits of the same labelers."""
        pairs = [(name, before.kappas[name], after.kappas[name]) for name in before.labelers]
        columns: dict[str, list[Any]] = {
            "labeler": [name for name, _, _ in pairs],
            "kappa": [one.value for _, one, _ in pairs],
            "kappa_without": [other.value for _, _, other in pairs],
            "change": [other.value - one.value for _, one, other in pairs],
            "items_lost": [one.n_items - other.n_items for _, one, other in pairs],
            "votes_lost": [one.n_votes - other.n_votes for _, one, other in pairs],
            "verdict": [before.verdict(name).code for name, _, _ in pairs],
            "verdict_without": [after.verdict(name).code for name, _, _ in pairs],
        }
        values = before.fleiss.value, after.fleiss.value
        return cls(tuple(map(str, annotators)), Table(columns, title="Kappa without these annotators"), *values)

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield f"Without {counted(len(self.annotators), 'annotator')}: {shown(self.annotators, 10)}"
        yield self.table
        yield f"Fleiss' kappa: {self.fleiss:.3f}; without them {self.fleiss_without:.3f}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        fleiss = [None if value != value else value for value in (self.fleiss, self.fleiss_without)]
        own = {"annotators": list(self.annotators), "labelers": self.table.to_json()}
        return own | {"fleiss": fleiss[0], "fleiss_without": fleiss[1]}
