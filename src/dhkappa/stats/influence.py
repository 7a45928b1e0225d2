"""What one item does to kappa: influence values, and the standard error they give."""

from __future__ import annotations

import math
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


def extremes(terms: Terms) -> tuple[Any, Any]:
    """Return the least and the greatest influence that an item with all votes alike could have.

    Label j and votes v run over the categories that occur. Only ``C_v (2 L_v - 1) + C_j^2`` varies between
    pairs with j != v, so its largest and smallest values come from the top two of each term.
    """
    occurs = [code for code in range(len(terms.C)) if terms.C[code] + terms.L[code] > 0]
    pull = {code: terms.C[code] * (2 * terms.L[code] - 1) for code in occurs}
    square = {code: terms.C[code] ** 2 for code in occurs}
    same = [pull[code] + square[code] for code in occurs]

    def phi(sign: int, varying: Any) -> Any:
        rest = varying - terms.E - terms.C_E
        return (sign - terms.D - 2 * (1 - terms.kappa) * rest) / (1 - terms.E)

    found = [phi(1, min(same)), phi(1, max(same))]
    if len(occurs) > 1:
        for top in (True, False):
            by_pull = sorted(occurs, key=pull.__getitem__, reverse=top)[:2]
            by_square = sorted(occurs, key=square.__getitem__, reverse=top)[:2]
            apart = [pull[v] + square[j] for v in by_pull for j in by_square if v != j]
            found.append(phi(-1, max(apart) if top else min(apart)))
    return min(found), max(found)


def sum_of_squares(phi: npt.NDArray[np.float64], items: npt.NDArray[np.int64]) -> float:
    """Return sum_i phi_i^2 over items, the same in any order; 0 where only rounding is left."""
    total = math.fsum((phi * phi * items).tolist())
    return 0.0 if total <= _NOTHING**2 * float(items.sum()) else total


def standard_error(squares: float, n: int) -> float:
    """Return sqrt(sum phi^2 / (n (n - 1))); NaN for one item."""
    return math.sqrt(squares / (n * (n - 1))) if n > 1 else math.nan
