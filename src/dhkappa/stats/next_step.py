"""Next step: what to do after an audit, as one sentence, from the verdict and the categories with most errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dhkappa.errors import Problem, counted
from dhkappa.stats.grades import Verdict
from dhkappa.stats.notes import first_three
from dhkappa.table import plain

FEWEST = 10  # items of a category that is named
_LEAST_LOST = 0.1  # of the votes on its items that are for other categories
_USABLE = ("better", "on-par")


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do next.

    Attributes
    ----------
    code : ``"fix-data"``, ``"check-warning"``, ``"check-annotators"``, ``"check-result"``, ``"other-votes"``,
        ``"check-labels"``, ``"guidelines"``, ``"third-vote"``, ``"more-items"``, ``"fix-slice"``,
        ``"fix-category"``, ``"fix-labels"`` or ``"use-labels"``
    text : the step as one or two sentences
    category : the category to fix first; None if no category is named
    """

    code: str
    text: str
    category: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"code": self.code, "text": self.text, "category": plain(self.category)}


_GUIDELINES = NextStep(
    "guidelines",
    "Improve the guidelines: the annotators agree too little with each other for any labels to be reliable.",
)


def next_step(
    verdict: Verdict,
    problems: Iterable[Problem],
    categories: Iterable[Mapping[str, Any]],
    confusion: Iterable[Mapping[str, Any]],
) -> NextStep:
    """Return what to do about a labeler; ``categories`` and ``confusion`` are the rows of its tables."""
    name = verdict.labeler
    if verdict.code == "data-problem":
        return NextStep("fix-data", "Fix the error in the data first.")
    if verdict.code == "labels-from-votes":
        return NextStep(
            "other-votes",
            f"Judge {name} by votes that were not used to make its labels, on a new random sample of items.",
        )
    if any(one.severity == "warning" and one.concerns(name) for one in problems):
        return NextStep("check-warning", "Look into the warnings about the data first: they can change the verdict.")
    if verdict.depends_on_flagged:
        return NextStep(
            "check-annotators", f"Check the votes of {_flagged(verdict)} first: the verdict depends on them."
        )
    if verdict.code == "no-better-than-random":
        check = "Check that labels and votes mean the same and belong to the same items."
        return NextStep("check-labels", f"Do not use the labels of {name}. {check}")
    if verdict.code == "not-enough-data":
        return _more_data(verdict)
    if verdict.disagree:
        return _GUIDELINES
    if verdict.not_better:
        return NextStep("check-result", verdict.check or "Look into this reason first: it can change the verdict.")
    if verdict.lower_slices:
        text = f"Fix the labels of {name} in {first_three(verdict.lower_slices)} first."
        return NextStep("fix-slice", f"{text} {_elsewhere(verdict)}".strip())
    return _fix_category(verdict, categories, confusion)


def _elsewhere(verdict: Verdict) -> str:
    """Return what to do with the labels outside of slices with a lower grade."""
    if verdict.code not in _USABLE:
        return ""
    return "Use them elsewhere, where one annotator's labels would be good enough."


def _flagged(verdict: Verdict) -> str:
    """Return the flagged annotators as words, up to three names."""
    names = [str(name) for name in verdict.flagged]
    return names[0] if len(names) == 1 else f"the {len(names):,} flagged annotators ({first_three(names)})"


def _more_data(verdict: Verdict) -> NextStep:
    """Return what is missing for a verdict."""
    if verdict.missing == "guidelines":
        return _GUIDELINES
    if verdict.missing == "third-vote":
        return NextStep("third-vote", "Get a third vote on some items.")
    more = f"about {counted(verdict.n_more, 'more item')}" if verdict.n_more else "more items"
    return NextStep("more-items", f"Get votes on {more}.")


def _fix_category(
    verdict: Verdict, categories: Iterable[Mapping[str, Any]], confusion: Iterable[Mapping[str, Any]]
) -> NextStep:
    """Return the category in which most is lost, of those with enough items and enough votes against the label."""
    kept = {row["suggested"]: row["vote_share"] for row in confusion if row["suggested"] == row["agreed"]}
    known = [row for row in categories if row["items"] >= FEWEST and not math.isnan(row["kappa"])]
    known = [row for row in known if 1 - kept.get(row["category"], 0.0) >= _LEAST_LOST]
    usable = verdict.code in _USABLE
    first = f"Use the labels of {verdict.labeler} where one annotator's labels would be good enough" if usable else ""
    if not known:
        if usable:
            return NextStep("use-labels", f"{first}.")
        return NextStep("fix-labels", f"Fix the labels of {verdict.labeler} that the annotators reject.")
    worst = max(known, key=lambda row: row["loss"])
    category, lost = worst["category"], 1 - kept.get(worst["category"], 0.0)
    where = f"{category!r}: {lost:.0%} of the votes on its {counted(worst['items'], 'item')} are for other categories"
    text = f"{first}. To improve them, start with {where}." if usable else f"Fix {where}."
    return NextStep("fix-category", text, category)
