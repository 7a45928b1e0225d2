"""Grades: the words of verdicts, and labelers that the votes cannot grade, or that follow the majority of the votes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.errors import Problem, counted
from dhkappa.stats.kappa import Estimate
from dhkappa.table import Table, plain

GRADES = {
    "better": "better than a typical annotator",
    "on-par": "on par with a typical annotator",
    "slightly-below": "slightly worse than a typical annotator",
    "below": "worse than a typical annotator",
    "clearly-below": "clearly worse than a typical annotator",
    "no-better-than-random": "no better than random labels",
    "not-enough-data": "not enough data",
    "labels-from-votes": "labels made from these votes",
    "data-problem": "data problem",
}
"""The grades, each in a few words. The first six are judgments, the best first."""
_JUDGMENTS = list(GRADES)[:6]
NEVER_JUDGED = ("labels-from-votes", "data-problem")
"""The codes of labelers that no further votes of this kind can judge."""
_FROM_THE_BEST = (*_JUDGMENTS[:3], "not-enough-data", *_JUDGMENTS[3:])  # no grade is less than any good one
_NAMED = 3  # slices
_SPLIT_ITEMS = 10  # with differing votes that show whether labels follow the majority
_MAJORITY = 0.95  # of their labels that are the most frequent vote
_MADE_FROM_THEM = "its labels look as if they were made from them"


@dataclass(frozen=True, slots=True)
class OtherScore:
    """A grade with its place on the scale, from the votes of all annotators, or without some of them."""

    code: str
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, verdict: Verdict) -> OtherScore:
        """Return that of a verdict."""
        return cls(verdict.code, verdict.share, verdict.low, verdict.high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one labeler.

    Attributes
    ----------
    code : the grade: ``"better"``, ``"on-par"``, ``"slightly-below"``, ``"below"``, ``"clearly-below"`` (compared with
        a typical annotator), ``"no-better-than-random"``, ``"not-enough-data"``, ``"labels-from-votes"`` or
        ``"data-problem"``
    labeler : name of the labeler
    short : the grade in a few words
    headline : the verdict in one sentence
    details : the numbers behind it, in sentences
    ranked : whether the labeler has a place in a ranking: the votes can judge it, and it is better than random labels
    missing : what would help most to change the verdict: ``"items"``, more items with votes, ``"third-vote"``, a third
        vote on items with two, ``"guidelines"`` by which annotators agree more, or, empty, other labels or votes
    n_more : about how many more items would probably give a grade; None if there is one, or if that cannot be said
    share, low, high : place on the scale from random labels (0) to a typical annotator (1), with confidence limits
    disagree : whether the annotators agree little with each other (Fleiss' kappa below 0.4), so that no labels can fit
        the votes well
    not_better : why the labeler is not called better than a typical annotator although the limits are above 1, as a
        clause; empty if it is not so
    check : what to do about that reason, as a sentence
    flagged : annotators whose votes agree less with the others than the rest does, or are not shown to be better than
        guesses; empty if there are none, or if it is unknown who voted
    left_out : whether the grade is that without the flagged annotators, because it is the lower one
    lower_slices : slices with a lower grade whose kappa is lower than that of the others, such as ``"language fr"``
    with_all, without : grade and place on the scale from all votes, and without those of the flagged annotators; None
        if nobody is flagged
    """

    code: str
    labeler: str
    short: str
    headline: str
    details: str = ""
    ranked: bool = False
    missing: str = "items"
    n_more: int | None = None
    share: float = math.nan
    low: float = math.nan
    high: float = math.nan
    disagree: bool = False
    not_better: str = ""
    check: str = ""
    flagged: tuple[Any, ...] = ()
    left_out: bool = False
    lower_slices: tuple[str, ...] = ()
    with_all: OtherScore | None = None
    without: OtherScore | None = None

    @property
    def depends_on_flagged(self) -> bool:
        """Whether the grade is another one without the flagged annotators."""
        return self.with_all is not None and self.without is not None and self.with_all.code != self.without.code

    @property
    def text(self) -> str:
        """Headline and details."""
        return f"{self.headline} {self.details}".strip()

    @property
    def more_items(self) -> bool:
        """Whether votes on more items can change the verdict."""
        return self.missing == "items"

    @property
    def judged(self) -> bool:
        """Whether the votes can judge the labels."""
        return self.code in _JUDGMENTS

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        words = {name: getattr(self, name) for name in ("code", "short", "headline", "text")}
        flagged = None
        if self.with_all is not None and self.without is not None:
            flagged = {
                "annotators": [plain(name) for name in self.flagged],
                "left_out": self.left_out,
                "with_all": self.with_all.to_dict(),
                "without": self.without.to_dict(),
            }
        return words | {name: plain(getattr(self, name)) for name in ("share", "low", "high")} | {"flagged": flagged}


def lower_code(one: str, other: str) -> str:
    """Return the lower of two grades.

    Examples
    --------
    >>> lower_code("on-par", "below"), lower_code("below", "not-enough-data"), lower_code("better", "not-enough-data")
    ('below', 'below', 'not-enough-data')
    """
    return max(one, other, key=_FROM_THE_BEST.index)


def with_slices(verdict: Verdict, column: str, slices: Table, confidence_level: float) -> Verdict:
    """Return a verdict that names the slices with a lower grade, if their kappas are lower than those of the others.

    P-values are adjusted for all slices (Holm).
    """
    if verdict.code not in _FROM_THE_BEST or "grade" not in slices.names:
        return verdict
    found = [
        row
        for row in slices
        if row["grade"] in _JUDGMENTS
        and row["grade"] != verdict.code
        and lower_code(row["grade"], verdict.code) == row["grade"]
        and row["difference"] < 0
        and row["pvalue_holm"] < 1 - confidence_level
    ]
    said = [
        f"In {column} {row['slice']} ({counted(row['items'], 'item')}) it is {GRADES[row['grade']]}."
        for row in found[:_NAMED]
    ]
    more = len(found) - len(said)
    said += [f"Slices of {column} with a lower grade that are not named: {more:,}."] if more else []
    names = (*verdict.lower_slices, *(f"{column} {row['slice']}" for row in found))
    return replace(verdict, details=" ".join([verdict.details, *said]).strip(), lower_slices=names)


def cannot_judge(name: str, problems: Sequence[Problem]) -> Verdict | None:
    """Return the verdict on a labeler that the votes cannot judge, because of a problem of the data; else None."""
    own = [problem for problem in problems if problem.concerns(name)]
    for problem in own:
        if problem.severity == "error":
            headline = f"Cannot judge {name}: {continued(problem.message)}"
            return replace(ungraded("data-problem", name, headline), missing="")
    for problem in own:
        if problem.code in ("labels-from-votes", "labeler-equals-annotator"):
            copied = problem.code == "labeler-equals-annotator"
            same = f"it has nearly the same labels as annotator {problem.examples[0]}" if copied else _MADE_FROM_THEM
            why = problem.because or same
            found = ungraded("labels-from-votes", name, f"These votes cannot judge {name}: {why}.")
            return replace(found, short="may be one of the annotators" if copied else found.short, missing="")
    return None


def ungraded(code: str, name: str, headline: str, details: str = "", ranked: bool = False) -> Verdict:
    """Return a verdict without a place on the scale."""
    return Verdict(code, name, GRADES[code], headline, details, ranked)


def continued(message: str) -> str:
    """Return a sentence as the part after a colon: without a capital, unless it starts with a name."""
    return re.sub(
        "^(The|Its|In|On|Most|Some|Each|Every|Votes|Labels|Categories|Columns?|Rows|Items|There|All) ",
        lambda found: found[0].lower(),
        message,
    )


def digits_of(width: float, least: int = 2) -> int:
    """Return how many digits show an interval of this width: two, or more if it is narrow."""
    return min(max(least, math.ceil(-math.log10(width))), 6) if 0 < width < math.inf else least


def follows_majority(estimate: Estimate) -> tuple[str, str]:
    """Return that labels look as if they were made from the votes, and the numbers; empty if not."""
    share, split = _majority_share(estimate)
    if split < _SPLIT_ITEMS or share < _MAJORITY:
        return "", ""
    why = "its labels are nearly always the most frequent vote, as if made from the votes"
    items = counted(split, "item")
    return why, f"The labels are the most frequent vote on {share:.0%} of the {items} where votes differ."


def _majority_share(estimate: Estimate) -> tuple[float, int]:
    """Return how often the label is the most frequent vote where votes differ, and on how many items; not of ties."""
    patterns = estimate.sample.patterns
    votes, first = patterns.votes.astype(np.int64), patterns.start[:-1]
    if not len(patterns):
        return math.nan, 0
    row = np.repeat(np.arange(len(patterns)), np.diff(patterns.start))
    leads = votes == np.maximum.reduceat(votes, first)[row]
    differ = (np.diff(patterns.start) > 1) & (np.add.reduceat(leads.astype(np.int64), first) == 1)
    hit = leads & (patterns.code == patterns.suggested[row]) & differ[row]
    n = int(patterns.items[differ].sum())
    return int(patterns.items[row[hit]].sum()) / max(n, 1), n
