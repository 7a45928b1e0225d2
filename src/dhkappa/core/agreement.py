"""Agreement of the votes on an item: the share of pairs that agree, and how it depends on the number of votes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dhkappa.core import Floats
from dhkappa.core.grouping import Patterns

FEW_ITEMS = 30
# Agreement depends on the number of votes if means differ by this much, and by this many standard errors.
_GAP = 0.1
_Z = 4.0


def sum_rows(patterns: Patterns, values: Floats) -> Floats:
    """Return (K,) the sum of values over the categories of each pattern; 0 for a pattern without votes."""
    if not len(patterns):
        return np.zeros(0)
    padded = np.append(values, 0.0)  # reduceat needs a value at the start of the last row, also if it is empty
    sums = np.add.reduceat(padded, patterns.start[:-1])
    sums[np.diff(patterns.start) == 0] = 0.0
    return sums


def pair_agreement(patterns: Patterns) -> Floats:
    """Return (K,) the share of pairs of votes that agree, NaN with fewer than two votes."""
    votes = patterns.votes.astype(np.float64)
    total = patterns.vote_totals().astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 1, sum_rows(patterns, votes * (votes - 1)) / (total * (total - 1)), np.nan)


def agreement_follows_votes(patterns: Patterns) -> tuple[int, float, int, float] | None:
    """Return two numbers of votes with their mean agreement, if these differ clearly; else None."""
    known = list(_agreement_by_votes(patterns))
    for place, (few, one, one_error) in enumerate(known):
        for many, other, other_error in known[place + 1 :]:
            gap = abs(one - other)
            if gap > _GAP and gap > _Z * math.hypot(one_error, other_error):
                return few, one, many, other
    return None


def _agreement_by_votes(patterns: Patterns) -> Iterator[tuple[int, float, float]]:
    """Yield each number of votes with the mean share of pairs that agree and its standard error, of enough items."""
    totals = patterns.vote_totals()
    sizes = [size for size in np.unique(totals).tolist() if size > 1]
    if len(sizes) < 2:
        return
    shares = pair_agreement(patterns)
    for size in sizes:
        rows = totals == size
        n = int(patterns.items[rows].sum())
        if n >= FEW_ITEMS:
            mean = float(np.average(shares[rows], weights=patterns.items[rows]))
            variance = float(np.average((shares[rows] - mean) ** 2, weights=patterns.items[rows]))
            yield size, mean, math.sqrt(variance / n)
