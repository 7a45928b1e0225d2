"""Scores of many annotators on one scale, shrunken by their numbers of items, and who differs from the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dhkappa.core import Array, Floats
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted, shown
from dhkappa.stats.annotator_tests import FALSE_ALARMS, Funnel, Mask, Screen, adjusted
from dhkappa.stats.annotator_votes import AnnotatorVotes, annotator_votes
from dhkappa.stats.annotators import MIN_ITEMS, require_annotators
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Sample, check_level, sample_of
from dhkappa.stats.summation import totals
from dhkappa.table import Display, Table, plain

MIN_SCREENED = 20  # items below which nobody is said to be not shown to know anything
NOT_SHOWN = "not shown to know anything"

_NO_ITEMS = "No item has two votes."
_ONE_CATEGORY = "Every vote is the same category."
_NAMED = 5  # annotators of a kind in the summary
_TESTED = f"with {MIN_ITEMS} items or more"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnnotatorScores(Display):
    """Annotators on one scale: the score of each, who differs from the rest, and who is not shown to know anything.

    Attributes
    ----------
    table : one row per annotator, those who differ first, then those not shown to know anything, then by the distance
        of the shrunken score from the mean: ``items`` with two votes or more, ``agree`` (the mean share of the other
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
            alarms = f"expected false alarms: at most {FALSE_ALARMS:.0%} of them"
            verb = "differs" if d == 1 else "differ"
            said = (
                f"{d:,} of {counted(k, 'annotator')} {_TESTED} {verb} from the rest ({alarms}): {_named(self.differs)}"
            )
        elif any(not math.isnan(p) for p in self.table.column("pvalue")):
            said = f"None of {counted(k, 'annotator')} {_TESTED} is shown to differ from the rest"
        else:
            said = f"Whether any of {counted(k, 'annotator')} {_TESTED} differs from the rest is not known"
        if u:
            verb = "is" if u == 1 else "are"
            said += f", and {u:,} with {MIN_SCREENED} items or more {verb} {NOT_SHOWN}: {_named(self.uninformed)}"
        return f"{said}."

    def listed(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the first rows of annotators with 10 items or more, each with a ``remark``."""
        rows = [row | {"remark": _remark(row)} for row in self.table if row["items"] >= MIN_ITEMS]
        return rows[:limit]

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
            "annotators": self.table.to_json()[:limit],
            "notes": [note.to_dict() for note in self.notes],
            "reason": self.reason,
        }


def _named(names: Sequence[Any]) -> str:
    return shown(names, _NAMED)


def _remark(row: dict[str, Any]) -> str:
    """Return what is said about an annotator."""
    found = [f"differs ({row['differs']})"] if row["differs"] else []
    return ", ".join([*found, *([NOT_SHOWN] if row["uninformed"] else [])])


def annotator_scores(
    item_votes: ItemVotes | None, *, confidence_level: float = 0.95, labelers: Sequence[str] = ()
) -> AnnotatorScores:
    """Compute the score of each annotator; see ``AnnotatorScores``.

    With t_ia the share of the other votes on item i that equal the vote Y of annotator a, the score is the mean of
    ``x_ia = (t_ia - C_Y) / (1 - sum_k C_k^2)`` over the annotator's items with two votes or more. ``labelers`` are
    those whose labels the votes are compared with.
    """
    level = check_level(confidence_level)
    require_annotators(item_votes)
    assert item_votes is not None
    sample, designed = _unweighted_sample(item_votes)
    votes, names = annotator_votes(item_votes, sample), item_votes.annotators or ()
    A, patterns = len(names), sample.patterns
    items = totals(votes.items, votes.who, A).astype(np.int64)
    n_votes, row = patterns.vote_totals(), patterns.row()
    each = patterns.items[row] * patterns.votes / n_votes[row]
    C: Floats = np.bincount(patterns.code, each, len(sample.categories)) / max(sample.n, 1)
    t = (patterns.votes.astype(np.int64) - 1) / np.maximum(n_votes[row] - 1, 1)
    alike = np.count_nonzero(C) <= 1
    x = (t - C[patterns.code]) / (math.nan if alike else 1 - float(C @ C))
    reason = _NO_ITEMS if not sample.n else _ONE_CATEGORY if alike else None
    columns: dict[str, Array] = {"items": items, "agree": _mean(votes, t[votes.entry], A)}
    columns |= dict.fromkeys(("score", "shrunk_score", "low", "high", "deviation", "pvalue", "z"), np.full(A, math.nan))
    below, uninformed, screened = (np.zeros(A, np.bool_) for _ in range(3))
    mean = math.nan
    if reason is None:
        spread = _spread(votes, x[votes.entry], A)
        mean, columns["score"] = spread.mean, spread.score
        columns |= dict(zip(("shrunk_score", "low", "high"), _shrunk(spread, level, _ends(C)), strict=True))
        found = _tests(votes, x, A, fleiss=max(_fleiss(votes, x, A), 0.0))
        columns |= {"deviation": found.deviation, "pvalue": found.pvalue, "z": found.z}
        below, uninformed, screened = found.deviation < 0, found.uninformed, found.screened
    columns["pvalue_adjusted"] = adjusted(columns["pvalue"])
    differs = columns["pvalue_adjusted"] <= FALSE_ALARMS
    for name in labelers:
        columns[f"agree_with_{name}"] = _agreement_with(votes, item_votes, name, A)
    distance = np.nan_to_num(np.abs(columns["shrunk_score"] - mean), nan=-1.0)
    order = np.lexsort((np.arange(A), -items, -np.round(distance, 12), ~uninformed, ~differs))
    order = order[np.argsort(items[order] < MIN_ITEMS, kind="stable")]
    cells = {name: values[order].tolist() for name, values in columns.items()}
    cells["differs"] = [("below" if below[a] else "above") if differs[a] else None for a in order.tolist()]
    cells["uninformed"] = [bool(uninformed[a]) if screened[a] else None for a in order.tolist()]
    listed = {"annotator": [names[a] for a in order.tolist()]} | {name: cells[name] for name in _columns(labelers)}
    few = int((items < MIN_ITEMS).sum())
    return AnnotatorScores(
        table=Table(listed, title=f"Annotators, {_first(bool(differs.any() or uninformed.any()))}"),
        differs=tuple(names[a] for a in order.tolist() if differs[a]),
        uninformed=tuple(names[a] for a in order.tolist() if uninformed[a]),
        mean=mean,
        n_tested=A - few,
        n_few=few,
        confidence_level=level,
        notes=tuple(_notes(few, int(n_votes.max(initial=0)), designed)),
        reason=reason,
    )


def _columns(labelers: Sequence[str]) -> list[str]:
    found = ["items", "agree", "score", "shrunk_score", "low", "high", "deviation", "pvalue", "pvalue_adjusted"]
    return [*found, "differs", "z", "uninformed", *(f"agree_with_{name}" for name in labelers)]


def _first(flagged: bool) -> str:
    far = "those farthest from the mean score first"
    return f"flagged ones first, then {far}" if flagged else far


def _unweighted_sample(item_votes: ItemVotes) -> tuple[Sample, bool]:
    """Return the items with two votes or more, one pattern per row, and whether sample weights were left out."""
    rows = item_votes.labeled_patterns(item_votes.columns.labelers[0])
    weight = rows.weight
    bare = replace(rows, strata=(), stratum=None, weight=None)
    return sample_of(bare, labeled=False), weight is not None and bool(np.ptp(weight) > 0)


def _mean(votes: AnnotatorVotes, values: Floats, A: int) -> Floats:
    """Return (A,) the mean of a value of each vote over the items of its annotator; NaN without items."""
    n = totals(votes.items, votes.who, A)
    found: Floats = np.bincount(votes.who, votes.items * values, A) / np.where(n, n, np.nan)
    return found


def _fleiss(votes: AnnotatorVotes, x: Floats, A: int) -> float:
    """Return Fleiss' kappa: the mean of x over votes, each item weighted alike."""
    return float(np.sum(votes.items * x[votes.entry] / votes.n_votes) / votes.sample.n)


class _Tests(NamedTuple):
    deviation: Floats
    pvalue: Floats
    z: Floats
    uninformed: Mask
    screened: Mask  # whether it is known


def _tests(votes: AnnotatorVotes, x: Floats, A: int, fleiss: float) -> _Tests:
    """Test who differs from the rest, and who is not shown to know anything."""
    funnel, screen = Funnel(votes, x, A), Screen(votes, A, MIN_SCREENED)
    pvalue = funnel.test(funnel.items >= MIN_ITEMS, ~screen.doubtful(fleiss))
    low = screen.test(fleiss)
    uninformed = (adjusted(low) <= FALSE_ALARMS) & ~screen.shown()
    return _Tests(funnel.deviation, pvalue, screen.z, uninformed, ~np.isnan(low))


class _Spread(NamedTuple):
    """How scores vary: within annotators, by vote, and between them."""

    items: Floats  # (A,) number of items, NaN for none
    score: Floats  # (A,)
    mean: float  # by votes
    within: float  # sigma^2, the variance of x within annotators
    between: float  # tau^2, the variance of true scores; 0 if the scores vary no more than votes at random
    error: float  # standard error of tau^2
    of_mean: float  # variance of the mean


def _spread(votes: AnnotatorVotes, x: Floats, A: int) -> _Spread:
    """Return the method-of-moments estimates of DerSimonian and Laird (1986), with one variance within annotators."""
    items = totals(votes.items, votes.who, A).astype(np.float64)
    n = items[items > 0]
    score, total, k = _mean(votes, x, A), n.sum(), n.size
    apart = votes.items * (x - score[votes.who]) ** 2
    within = float(apart.sum() / (total - k)) if total > k else math.nan
    known = score[items > 0]
    mean = float(n @ known / total)
    size = total - float(n @ n) / total  # about (k - 1) times the mean number of items
    if k < 2:
        return _Spread(np.where(items, items, np.nan), score, mean, within, math.nan, math.nan, math.nan)
    Q = float(n @ (known - mean) ** 2)
    between = max(0.0, (Q - (k - 1) * within) / size)
    error = math.sqrt(2 / (k - 1)) * (between + (k - 1) * within / size)
    of_mean = float((n / total) ** 2 @ (between + error + within / n))
    return _Spread(np.where(items, items, np.nan), score, mean, within, between, error, of_mean)


def _shrunk(spread: _Spread, level: float, ends: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Return scores drawn to the mean, and their limits.

    ``mean + B (score - mean)`` with ``B = tau^2 / (tau^2 + sigma^2 / n)``. The variance for the limits is ``tau^2
    sigma^2 / (n tau^2 + sigma^2)`` with tau^2 one standard error larger, as it may be estimated as 0, and ``(1 - B)^2``
    times the variance of the mean. Limits are within the range of scores.
    """
    from dhkappa.stats.special import ndtri

    n, within = spread.items, spread.within
    noise = within / n
    if not within > 0:  # each annotator has one item, or all votes of each have the same x
        keep = np.where(np.isnan(n) | math.isnan(within), np.nan, 1.0)
        shrunk = spread.mean + keep * (spread.score - spread.mean)
        return shrunk, np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    keep = spread.between / (spread.between + noise)
    shrunk = spread.mean + keep * (spread.score - spread.mean)
    wide = spread.between + spread.error
    variance = wide * noise / (wide + noise) + (1 - keep) ** 2 * spread.of_mean
    half = float(ndtri((1 + level) / 2)) * np.sqrt(variance)
    return shrunk, np.maximum(shrunk - half, ends[0]), np.minimum(shrunk + half, ends[1])


def _ends(C: Floats) -> tuple[float, float]:
    """Return the least and the greatest score: of votes that no other, or every other, vote on the item equals."""
    voted, rest = C[C > 0], 1 - float(C @ C)
    return -float(voted.max()) / rest, (1 - float(voted.min())) / rest


def _agreement_with(votes: AnnotatorVotes, item_votes: ItemVotes, labeler: str, A: int) -> Floats:
    """Return (A,) the share of an annotator's votes that equal the label, on the items that have one."""
    rows = votes.sample.kept
    assert rows is not None
    label = item_votes.columns.codes(labeler, item_votes.categories)[rows][votes.row]
    known = votes.take(label >= 0)
    return _mean(known, (known.own == label[label >= 0]).astype(np.float64), A)


def _notes(few: int, most: int, designed: bool) -> Iterator[Note]:
    if few:
        who = f"{counted(few, 'annotator')} with fewer than {MIN_ITEMS} items {'is' if few == 1 else 'are'} not listed"
        yield Note("annotators-few-items", f"{who}: too little is known about them. dhkappa annotators writes all.")
    if most == 2:
        text = "Items have two votes, which say nothing about which of two annotators differs from the rest."
        yield Note("annotators-two-votes", text)
    if designed:
        yield Note("scores-unweighted", "Scores of annotators do not use sample weights: each vote counts once.")
