"""Rules about copies: annotators that are labelers or other annotators, labels made from votes, repeated rows.

Raters that label independently agree as far as both know the true label. So agreement beyond chance is a product of two
skills, and that of two raters follows from their agreement with the others and that of the others with each other, for
skilled and unskilled raters, and also if some items are harder than others. Copies agree more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers
from dhkappa.core.items import ItemVotes

_ITEMS = 10_000  # that are looked at
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """Single votes on some items, in order of rows, then categories."""

    row: Integers  # (T,)
    who: Integers  # (T,)
    code: Integers  # (T,)
    weight: _Floats  # (R,) number of items that a row stands for
    chosen: npt.NDArray[np.int64]  # (R,) row of the data
    m: int  # categories with votes

    @staticmethod
    def of(votes: ItemVotes) -> Panel:
        """Choose items at regular distances."""
        rows = len(votes.columns)
        if votes.group is not None:
            step = max(len(votes.group) // _ITEMS, 1)
            weight = np.bincount(votes.group[::step], minlength=rows).astype(np.float64)
        else:
            weight = np.zeros(rows)
            every = slice(None, None, max(rows // _ITEMS, 1))
            weight[every] = 1.0 if votes.items is None else votes.items[every]
        chosen = np.flatnonzero(weight)
        place = np.full(rows, -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        row, who, code = votes.sorted_votes
        kept = place[row] >= 0
        code = code[kept].astype(np.int64)
        return Panel(place[row[kept]], who[kept], code, weight[chosen], chosen, len(np.unique(code)))

    @cached_property
    def cell(self) -> npt.NDArray[np.int64]:
        """(T,) number of the row and category of each vote."""
        new = np.ones(len(self.row), np.bool_)
        new[1:] = (self.row[1:] != self.row[:-1]) | (self.code[1:] != self.code[:-1])
        return np.cumsum(new) - 1

    @cached_property
    def total(self) -> _Floats:
        """(R,) number of votes."""
        return np.bincount(self.row, minlength=len(self.weight)).astype(np.float64)

    @cached_property
    def pairs(self) -> _Floats:
        """(R,) number of ordered pairs of votes that agree."""
        same = np.bincount(self.cell)[self.cell] - 1.0
        return np.bincount(self.row, weights=same, minlength=len(self.weight))

    def votes_of(self, place: int) -> npt.NDArray[np.int64]:
        """Return (R,) the votes of an annotator, -1 if there is none."""
        found, own = np.full(len(self.weight), -1, np.int64), self.who == place
        found[self.row[own]] = self.code[own]
        return found

    def shared(self, labels: Integers) -> _Floats:
        """Return (R,) the number of votes that are some labels."""
        return np.bincount(self.row[self.code == labels[self.row]], minlength=len(self.weight)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two raters agree, and how often they would if they labeled independently."""

    n: int
    observed: float
    expected: float
    z: float

    @property
    def is_copy(self) -> bool:
        """Whether they agree clearly more than expected."""
        fewer = 1 - self.observed <= 0.6 * (1 - self.expected)
        return fewer and self.z > 4.5 and self.observed - self.expected > 0.05


def agreement(panel: Panel, one: Integers, other: Integers, *, voted: bool) -> Agreement | None:
    """Compare an annotator's votes with labels, or with those of another annotator (``voted``)."""
    alike = (one == other).astype(np.float64)
    rows = (one >= 0) & (other >= 0) & (panel.total - 1 - voted >= 2)
    n = float(panel.weight[rows].sum())
    if n < 20:
        return None
    others = panel.total[rows] - 1 - voted
    alike = alike[rows]
    first = panel.shared(one)[rows] - 1
    second = panel.shared(other)[rows] - alike
    pairs = panel.pairs[rows] - 2 * first
    if voted:
        first = first - alike
        second = panel.shared(other)[rows] - 1 - alike
        pairs = pairs - 2 * second
    x = [alike, first / others, second / others, pairs / (others * (others - 1))]
    weight = panel.weight[rows] / n
    means = [float(weight @ v) for v in x]
    best = None
    shares = np.bincount(panel.code, weights=panel.weight[panel.row])
    for chance in {1 / max(panel.m, 2), float(((shares / shares.sum()) ** 2).sum())}:
        c1, c2, c3 = ((v - chance) / (1 - chance) for v in means[1:])
        if c3 <= 0:
            continue
        c1, c2 = max(c1, 0), max(c2, 0)
        expected = chance + (1 - chance) * min(c1 * c2 / c3, 1.0)
        d = (x[0] - means[0]) - ((x[1] - means[1]) * c2 / c3 + (x[2] - means[2]) * c1 / c3 - (x[3] - means[3]) * c1 * c2 / c3**2)
        se = math.sqrt(float(weight @ d**2) / n)
        found = Agreement(int(n), means[0], expected, (means[0] - expected) / max(se, 1e-9))
        if best is None or found.expected > best.expected:
            best = found
    return best
