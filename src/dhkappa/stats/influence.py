"""What one item does to kappa: influence values, and the standard error they give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.stats.terms import Numbers, Terms

_CLOSE = 1e-6  # of 1 - E: below, the plain formula loses half of its digits or more
_NOTHING = 1e-12  # a root mean square below this is rounding: one odd item in 10^18 makes it 10^-9


def influence(terms: Terms) -> Numbers:
    """Return (K,) phi: the derivative of kappa as an item of a pattern gains weight. Its mean over items is 0.

    With ``eps_i = 2 (sum_j C_j (2 L_j - 1) c_ij + C_{l_i}^2 - E - C_E)``, the influence on E,
    ``phi_i = ((d_i - D) - (1 - kappa) eps_i) / (1 - E)``. NaN where 1 - E is too small for a float.
    """
    C, L, E, code = terms.C, terms.L, terms.E, terms.patterns.code
    if 1 - E < _CLOSE:
        return _influence_near_certainty(terms)
    if len(L):
        pull = C * (2 * L - 1)
        eps = 2 * (terms.row_sums(pull[code] * terms.c) + C[terms.suggested] ** 2 - E - terms.C_E)
    else:  # Fleiss' kappa: E = sum_j C_j^2
        eps = 2 * (terms.row_sums(C[code] * terms.c) - E)
    phi: Numbers = ((terms.d - terms.D) - (1 - terms.kappa) * eps) / (1 - E)
    return phi


@np.errstate(over="ignore", invalid="ignore")
def _influence_near_certainty(terms: Terms) -> Numbers:
    """Return the same where E is close to 1, as where one item outweighs all the others."""
    chance = _chance(terms)
    if not chance.room:
        return np.full(len(terms.items), math.nan)
    eps = 2 * (chance.middle - terms.row_sums(chance.votes[terms.patterns.code] * terms.c))
    if len(terms.L):
        eps = eps - 2 * chance.labels[terms.suggested]
    lost = 1 - terms.kappa
    phi: Numbers = lost * (1 - eps / chance.room) - (1 - terms.d) / chance.room  # lost is (1 - D)/(1 - E)
    return phi


@dataclass(frozen=True, slots=True)
class _Chance:
    """What eps is made of, as distances from 1: where E is close to 1, no digits are lost.

    ``eps = 2 (middle - sum_j votes_j c_ij - labels_l)``; for Fleiss' kappa there are no labels.

    Attributes
    ----------
    room : 1 - E
    middle : 2 - E - C_E, or 1 - E for Fleiss' kappa
    votes : (m,) 1 - C_j (2 L_j - 1), or 1 - C_j
    labels : (m,) 1 - C_j^2
    """

    room: Any
    middle: Any
    votes: Numbers
    labels: Numbers


def _chance(terms: Terms) -> _Chance:
    C, L = terms.C, terms.L
    others = rest(C)
    labels = others * (1 + C)
    if not len(L):
        room = _total(C * others)
        return _Chance(room, room, others, labels)
    unlabeled = rest(L)
    room = _total(L * labels + C * C * unlabeled)
    return _Chance(room, room + _total(L * labels), others + 2 * C * unlabeled, labels)


def room_for(terms: Terms) -> Any:
    """Return 1 - E, which is how much of the differential kappa could have; 0 where that is too small for a float."""
    return _chance(terms).room


def rest(shares: Numbers) -> Numbers:
    """Return 1 - shares, (m,), of a whole; for the largest as the sum of the others, which loses no digits."""
    found: Numbers = 1 - shares
    if len(shares):
        largest = int(shares.argmax())
        others = shares.copy()
        others[largest] *= 0
        found[largest] = _total(others)
    return found


def _total(values: Numbers) -> Any:
    """Add up; floats to the same bits in any order."""
    return values.sum() if values.dtype == object else math.fsum(values.tolist())


@dataclass(frozen=True, slots=True)
class Extremes:
    """How far an item with all votes alike could move kappa, by its label.

    Attributes
    ----------
    label : (J,) codes of the categories that occur, among votes or labels
    low, high : (J,) the least and the greatest influence of an item with this label
    """

    label: npt.NDArray[np.int64]
    low: Numbers
    high: Numbers


@np.errstate(over="ignore", invalid="ignore")  # where E is 1 by rounding only
def extremes(terms: Terms) -> Extremes:
    """Return how far items with all votes alike could move kappa.

    Votes run over the categories that occur. Only their pull ``C_v (2 L_v - 1)`` matters, so for each label the votes
    to look at are those for the label itself and for the two others that pull most and least.
    """
    chance, lost = _chance(terms), 1 - terms.kappa
    label = np.flatnonzero(terms.C + terms.L > 0)
    low, high = (np.full(len(label), math.nan, terms.C.dtype) for _ in range(2))
    most = sorted(label.tolist(), key=chance.votes.__getitem__)
    ends = most[::-1][:2], most[:2]
    for place, j in enumerate(label.tolist() if chance.room else []):
        others = [next((v for v in order if v != j), j) for order in ends]
        found = []
        for v in {j, *others}:
            eps = 2 * (chance.middle - chance.votes[v] - chance.labels[j])
            found.append(lost * (1 - eps / chance.room) - (0 if v == j else 2) / chance.room)
        low[place], high[place] = min(found), max(found)
    return Extremes(label, low, high)


def is_rounding(squares: Any, n: int) -> bool:
    """Tell whether a sum of squared influence over n items is 0 but for rounding."""
    return bool(squares <= _NOTHING**2 * n)


def sum_of_squares(phi: npt.NDArray[np.float64], items: npt.NDArray[np.int64]) -> float:
    """Return sum_i phi_i^2 over items, the same in any order; 0 where only rounding is left."""
    total = math.fsum((phi * phi * items).tolist())
    return 0.0 if is_rounding(total, int(items.sum())) else total


def standard_error(squares: float, n: int) -> float:
    """Return sqrt(sum phi^2 / (n (n - 1))); NaN for one item."""
    return math.sqrt(squares / (n * (n - 1))) if n > 1 else math.nan
