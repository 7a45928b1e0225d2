"""The story of an audit: all that the terminal and the report show, in the order they show it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # so that the command line answers at once
    from dhkappa.stats.annotator_comparison import People
    from dhkappa.stats.compare import Comparison
    from dhkappa.stats.intervals import Interval
    from dhkappa.stats.permutation import RandomLabelTest
    from dhkappa.stats.result import Kappa
    from dhkappa.stats.verdict import Verdict
    from dhkappa.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Chapter:
    """What there is to say about one labeler; a table is None where the data cannot tell.

    Attributes
    ----------
    name : what the labeler is called
    verdict : can its labels be trusted
    kappa, interval : on all items that it labeled
    ordinal : kappa with ordinal weights, where they were asked for
    test : against labels dealt out at random
    categories : kappa by suggested category, as of ``Kappa.by_category``
    confusion : what the panel agrees on where each label is suggested, as of ``Kappa.confusion``
    people : the labeler beside each annotator, taken as a labeler
    annotators : each annotator's part in kappa
    queue : the first items to review, as of ``Audit.items``
    n_queue : how many items there are to review in all
    tighter : items and votes that narrower intervals would need, as of ``Audit.tighter``
    """

    name: str
    verdict: Verdict
    kappa: Kappa
    interval: Interval
    ordinal: Kappa | None
    test: RandomLabelTest | None
    categories: Table | None
    confusion: Table | None
    people: People | None
    annotators: Table | None
    queue: Table | None
    n_queue: int
    tighter: Table | None


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """What an audit has to say.

    Attributes
    ----------
    title : what was audited
    verdict : the whole in a sentence or two
    chapters : one for each labeler, the best first; those that cannot be judged last
    comparison : paired differences between labelers; None for one
    fleiss : how far the annotators agree among themselves
    level : of all intervals
    unsigned : why people are not known, where they are not
    notes : what to know, in sentences
    command : the command that made it, None where it was made from Python
    version : of dhkappa
    """

    title: str
    verdict: str
    chapters: tuple[Chapter, ...]
    comparison: Comparison | None
    fleiss: Kappa
    level: float
    unsigned: str
    notes: tuple[str, ...]
    command: str | None
    version: str


def better_first(comparison: Comparison | None) -> list[dict[str, Any]]:
    """Return the paired differences, each as the better labeler minus the other, so that all show the same sign."""
    rows: list[dict[str, Any]] = []
    for row in comparison.differences if comparison else ():
        turned = {"labeler": row["other"], "other": row["labeler"], "difference": -row["difference"]}
        turned |= {"low": -row["high"], "high": -row["low"]}
        rows.append({**row, **turned} if row["difference"] < 0 else {**row})
    return rows


def percent(level: float) -> str:
    """Write a level: 95%."""
    from dhkappa.stats.intervals import written

    return f"{written(level, 100)}%"


def number(value: float | None, digits: int = 2) -> str:
    """Write a kappa, a difference or a share; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never -0.00


def signed(value: float | None, digits: int = 2) -> str:
    """Write a difference with its sign."""
    written = number(value, digits)
    if value is None or written.startswith("-"):
        return written
    return f"{'-' if value < 0 else '+'}{written}"


def limits(low: float | None, high: float | None, digits: int = 2) -> str:
    """Write an interval."""
    return "-" if low is None or math.isnan(low) else f"{number(low, digits)} to {number(high, digits)}"
