"""Annotators whose votes differ from the rest: a labeler is judged with and without them, and the lower grade counts.

Careless annotators make a typical annotator look worse, and so a labeler better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dhkappa.core.annotator_groups import votes_of
from dhkappa.core.items import ItemVotes, count
from dhkappa.errors import DataError, counted
from dhkappa.stats.annotator_result import AnnotatorScores
from dhkappa.stats.grades import NEVER_JUDGED, OtherScore, Verdict, lower_code
from dhkappa.stats.kappa import Estimate, kappa_estimate
from dhkappa.stats.notes import first_three
from dhkappa.stats.sample import Pool, sample_of
from dhkappa.stats.weights import Weights

_DIFFER, _GUESS = "differ from the rest", "are not shown to be better than guesses"


@dataclass(frozen=True, slots=True, eq=False)
class Flagged:
    """Annotators whose votes agree less with the others than the rest does, or are not shown to be better than guesses.

    Attributes
    ----------
    annotators : their names
    whose : what is said about their votes, as the end of a clause
    votes : the votes of all other annotators
    """

    annotators: tuple[Any, ...]
    whose: str
    votes: ItemVotes

    @classmethod
    def of(cls, scores: AnnotatorScores, item_votes: ItemVotes) -> Flagged | None:
        """Return those that scores flag; None if they flag nobody."""
        rows = list(scores.table)
        below = [row["annotator"] for row in rows if row["differs"] == "below"]
        guess = [row["annotator"] for row in rows if row["uninformed"] and row["differs"] != "below"]
        if not below and not guess:
            return None
        names = (*below, *guess)
        left = set(item_votes.annotators or ()).difference(names)
        whose = " or ".join([*([_DIFFER] if below else []), *([_GUESS] if guess else [])])
        return cls(names, whose, replace(votes_of(item_votes, left), shown=None))

    @property
    def named(self) -> str:
        """Who they are, without what is said about their votes: up to three names."""
        names = [str(name) for name in self.annotators]
        return names[0] if len(names) == 1 else f"{len(names):,} annotators ({first_three(names)})"

    @property
    def left_out(self) -> str:
        """The condition that they are left out, as the end of a clause."""
        who, names = self._described
        return (
            f" once {names} is left out, whose votes {self.whose}" if not who else f" once {who} are left out ({names})"
        )

    @property
    def without(self) -> str:
        """The condition that they are left out, as the start of a sentence."""
        who, names = self._described
        return f"Without the {who} ({names})," if who else f"Without {names}, whose votes {self.whose},"

    @property
    def _described(self) -> tuple[str, str]:
        """How many they are, with what is said about their votes, empty for one; and up to three names."""
        names = [str(name) for name in self.annotators]
        who = "" if len(names) == 1 else f"{counted(len(names), 'annotator')} whose votes {self.whose}"
        return who, first_three(names)

    def estimate(self, labeler: str, pool: Pool = None, weights: Weights | None = None) -> Estimate | None:
        """Return the kappa of a labeler without them; None if a stratum has too few items then."""
        try:
            return kappa_estimate(sample_of(count(self.votes).labeled_patterns(labeler), pool=pool), weights)
        except DataError as error:
            if error.code != "stratum-empty":
                raise
            return None

    def lower(self, whole: Verdict, other: Verdict) -> Verdict:
        """Return the verdict with the lower grade: that with all annotators, or the other one without the flagged."""
        if whole.code in NEVER_JUDGED:
            return whole
        pair: dict[str, Any] = {"with_all": OtherScore.of(whole), "without": OtherScore.of(other)}
        pair["flagged"] = self.annotators
        if lower_code(whole.code, other.code) == whole.code:
            return replace(whole, details=f"{whole.details} {self.without} it {_said(other)}.".strip(), **pair)
        headline = f"{other.headline} With all annotators, it {_said(whole)}."
        details = f"Without {self.named}: {other.details}" if other.details else ""
        return replace(other, headline=headline, details=details, left_out=True, **pair)


def _said(verdict: Verdict) -> str:
    """Return the result of a verdict as the end of a sentence."""
    if not math.isnan(verdict.share):
        return f"scores {100 * verdict.share + 0.0:.0f}"
    return "cannot be judged" if verdict.code == "not-enough-data" else f"is {verdict.short}"
