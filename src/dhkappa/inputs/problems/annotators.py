"""Rule about annotators who agree with the others no better than by chance, although the others agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dhkappa.errors import Problem, counted, shown
from dhkappa.inputs.problems import Evidence
from dhkappa.inputs.problems.sampled_votes import SampledVotes, sampled_votes

_COMMON_ITEMS = 20
_AGREEING = 0.2  # score of the others
_PART, _SMALL_PART = 0.5, 0.15  # of the score of the others: clearly below the one, and not above the other
_CHANCE = 1 - NormalDist().cdf(4.0)  # of a false alarm, for all annotators together
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Scores:
    """Agreement of an annotator with the others, and of the others with each other: 0 is chance, 1 is full agreement.

    ``z`` is the number of standard errors by which the annotator's score is below a part of that of the others.
    """

    annotator: str
    n: int
    own: float
    others: float
    z: float


def annotator_scores(sample: SampledVotes) -> list[Scores]:
    """Return the scores of each annotator on items with votes of two others, leaving out who has few such items.

    With vote shares C of the others, t the share of the other votes that equal the annotator's vote Y, and u the share
    of pairs of other votes that agree, the scores are the means of ``(t - C_Y) / (1 - sum_k C_k^2)`` and of
    ``(u - sum_k C_k^2) / (1 - sum_k C_k^2)``.
    """
    votes = np.bincount(sample.code, weights=sample.weight[sample.row])
    total, found = sample.total[sample.row], []
    same = np.bincount(sample.cell)[sample.cell] - 1.0
    several = total > 2
    order = np.flatnonzero(several)[np.argsort(sample.who[several], kind="stable")]
    ends = np.searchsorted(sample.who[order], np.arange(len(sample.annotators) + 1))
    for place, name in enumerate(sample.annotators):
        own = order[ends[place] : ends[place + 1]]
        row, weight = sample.row[own], sample.weight[sample.row[own]]
        n = float(weight.sum())
        if n < _COMMON_ITEMS:
            continue
        shares = votes - np.bincount(sample.code[own], weights=weight, minlength=len(votes))
        shares = np.clip(shares, 0, None) / max(float(shares.sum()), 1.0)
        chance, size = float((shares**2).sum()), total[own]
        if chance >= 1:
            continue
        t = (same[own] / (size - 1) - shares[sample.code[own]]) / (1 - chance)
        pairs = (sample.pairs[row] - 2 * same[own]) / ((size - 1) * (size - 2))
        u = (pairs - chance) / (1 - chance)
        mean, other = float(weight @ t) / n, float(weight @ u) / n
        influence = _PART * (u - other) - (t - mean)
        error = float(np.sqrt(weight @ influence**2)) / n
        found.append(Scores(name, round(n), mean, other, (_PART * other - mean) / max(error, 1e-9)))
    return found


def annotator_differs(data: Evidence) -> Iterator[Problem]:
    """Find annotators who agree with the others no better than by chance, although the others agree."""
    votes = data.item_votes
    if votes is None or len(votes.annotators or ()) < 3:
        return
    scores = annotator_scores(sampled_votes(votes))
    if not scores:
        return
    limit = NormalDist().inv_cdf(1 - _CHANCE / len(scores))
    apart = [one for one in scores if one.z >= limit and one.own <= _SMALL_PART * one.others]
    apart = [one for one in apart if one.others >= _AGREEING]
    if not apart:
        return
    apart.sort(key=lambda one: one.own)
    names = [one.annotator for one in apart]
    each = [f"{one.own:.2f} against {one.others:.2f} on {counted(one.n, 'common item')}" for one in apart[:_MOST_NAMED]]
    who = f"{'Annotator' if len(apart) == 1 else 'Annotators'} {shown(names, _MOST_NAMED)}"
    does = "agrees" if len(apart) == 1 else "agree"
    message = (
        f"{who} {does} with the others no better than by chance, although these agree with each other: a pairwise "
    )
    message += f"kappa of {'; '.join(each)} (0 is chance, 1 is full agreement)."
    fix = (
        "Compare these votes with their source: rows may be shifted or sorted, codes or answers swapped, or categories "
    )
    fix += "named in other words. If the votes are right, accept this with $allow=."
    yield Problem("annotator-differs", "warning", message, tuple(names[:_MOST_NAMED]), fix)
