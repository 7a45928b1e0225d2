"""Comparison: labelers ranked, with their paired differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dhkappa.core.added_votes import common_votes
from dhkappa.core.items import ItemVotes, VoteSource
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.labelers import labelers_table
from dhkappa.stats.notes import Note, any_time_notes, several_note
from dhkappa.stats.result import Kappa
from dhkappa.table import Display, Table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Display):
    """Labelers compared on the items that they share; see ``dhkappa.compare``.

    Attributes
    ----------
    kappas : kappa of each labeler, by name: on the items that all ranked labelers labeled, or on all items that it
        labeled if it is not ranked
    differences : a row for each pair of labelers, on the items that both labeled
    notes : conditions that affect the interpretation, each with a code and a sentence
    confidence_level : the confidence level of all intervals
    not_ranked : why a labeler is not ranked, by name, those with most labels first; empty if all are ranked
    other_annotators : whether intervals and p-values are for other annotators, too
    any_time : whether intervals and p-values hold at every look
    """

    kappas: dict[str, Kappa]
    differences: Table
    notes: tuple[Note, ...]
    confidence_level: float
    not_ranked: dict[str, str] = field(default_factory=dict)
    other_annotators: bool = False
    any_time: bool = False

    @classmethod
    def of(
        cls,
        estimates: Mapping[str, Estimate],
        differences: Table,
        notes: tuple[Note, ...],
        not_ranked: dict[str, str],
        *,
        votes: Callable[[], ItemVotes | None],
        confidence_level: float,
        any_time: bool,
    ) -> Comparison:
        """Return the comparison of ``compare_on_common_items``; ``votes`` returns the votes with their items."""
        read = {name: partial(common_votes, votes, name, estimates, not_ranked) for name in estimates}
        kappas = {name: Kappa(one, VoteSource(read[name], name), any_time) for name, one in estimates.items()}
        if any_time:
            first = next(estimate for name, estimate in estimates.items() if name not in not_ranked)
            about = any_time_notes(first.sample, confidence_level)
            notes = (*notes, *about, *several_note(len(kappas), confidence_level))
        return cls(kappas, differences, notes, confidence_level, not_ranked, any_time=any_time)

    @property
    def _annotators(self) -> str:
        return "random" if self.other_annotators else "fixed"

    @property
    def ranked(self) -> dict[str, Kappa]:
        """The kappas of the ranked labelers, all on the same items."""
        return {name: kappa for name, kappa in self.kappas.items() if name not in self.not_ranked}

    @property
    def best(self) -> str | None:
        """The ranked labeler with the highest kappa, the first of several; None if there is none with a kappa."""
        found = [(kappa.value, name) for name, kappa in self.ranked.items() if not math.isnan(kappa.value)]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def table(self) -> Table:
        """Return a row for each labeler, the best first; those that are not ranked are last."""
        return labelers_table(self.kappas, self.confidence_level, self.not_ranked, self._annotators)

    def _display(self) -> tuple[Table, Table, list[str]]:
        return self.table(), self.differences, [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        return {
            "kappas": {
                name: kappa.to_dict(self.confidence_level, self._annotators) for name, kappa in self.kappas.items()
            },
            "differences": self.differences.to_json(),
            "not_ranked": dict(self.not_ranked),
            "confidence_level": self.confidence_level,
            "other_annotators": self.other_annotators,
            "any_time": self.any_time,
            "notes": [note.to_dict() for note in self.notes],
        }
