"""What one item does to kappa: influence values, and the standard error they give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.stats.terms import Numbers, Terms

_NOTHING = 1e-12  # a root mean square below this is rounding: one odd item in 10^18 makes it 10^-9


def influence(terms: Terms) -> Numbers:
    """Return (K,) phi: the derivative of kappa as an item of a pattern gains weight. Its mean over items is 0.

    With ``eps_i = 2 (sum_j C_j (2 L_j - 1) c_ij + C_{l_i}^2 - E - C_E)``, the influence on E,
    ``phi_i = ((d_i - D) - (1 - kappa) eps_i) / (1 - E)``.
    """
    C, L, E, code = terms.C, terms.L, terms.E, terms.patterns.code
    if len(L):
        pull = C * (2 * L - 1)
        eps = 2 * (terms.row_sums(pull[code] * terms.c) + C[terms.suggested] ** 2 - E - terms.C_E)
    else:  # Fleiss' kappa: E = sum_j C_j^2
        eps = 2 * (terms.row_sums(C[code] * terms.c) - E)
    phi: Numbers = ((terms.d - terms.D) - (1 - terms.kappa) * eps) / (1 - E)
    return phi


@dataclass(frozen=True, slots=True)
class Unseen:
    """An item that the sample may not have shown yet: its influence on kappa, and its share of the whole weight."""

    phi: Any
    share: Any


NOBODY = Unseen(math.nan, math.nan)


def extremes(terms: Terms, share: Numbers | None = None) -> tuple[Unseen, Unseen]:
    """Return the items, all votes alike, that would move kappa down and up the most.

    Label j and votes v run over the categories that occur. ``share`` is (m,) the share of the whole weight that an
    item with label j would have; 1/n by default. Only the pull ``C_v (2 L_v - 1)`` depends on v, so for each label
    the votes that matter are those for the label itself and for the two others that pull most and least.
    """
    C, L = terms.C, terms.L
    if share is None:
        share = np.full(len(C), (1 + terms.D * 0) / terms.n, C.dtype)
    occurs = np.flatnonzero(C + L > 0).tolist()
    pull = C * (2 * L - 1)
    by_pull = sorted(occurs, key=pull.__getitem__)
    found = []
    for j in occurs:
        others = [next((v for v in order if v != j), None) for order in (by_pull, by_pull[::-1])]
        for v in {j, *others} - {None}:
            rest = pull[v] + C[j] ** 2 - terms.E - terms.C_E
            phi = ((1 if v == j else -1) - terms.D - 2 * (1 - terms.kappa) * rest) / (1 - terms.E)
            found.append(Unseen(phi, share[j]))
    return most_moving(found)


def most_moving(items: Iterable[Unseen]) -> tuple[Unseen, Unseen]:
    """Return those that move kappa down and up the most, by influence times share."""
    ordered = sorted(items, key=lambda item: (item.phi * item.share, item.phi))
    return ordered[0], ordered[-1]


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
