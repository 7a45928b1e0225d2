"""Formulas of docs/methods.md in exact fractions, over the patterns of a kappa: an oracle for floats."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa import Kappa, dh_kappa
from dhkappa.stats.influence import Terms, terms
from strategies import from_counts

F = Fraction
Fractions = npt.NDArray[np.object_]


def fractions(values: Any) -> Fractions:
    """Return an object array of fractions."""
    listed = list(values)
    found = np.empty(len(listed), object)
    found[:] = [F(value) for value in listed]
    return found


def float_terms(kappa: Kappa) -> Terms:
    assert kappa.parts is not None
    return terms(kappa.sample, kappa.parts, kappa.estimate.weights)


def exact_terms(kappa: Kappa) -> Terms:
    """Return the terms of a defined kappa as fractions; arithmetic on them, as in ``influence``, stays exact."""
    assert kappa.parts is not None
    parts, sample, table = kappa.parts, kappa.sample, kappa.sample.patterns
    c: list[Fraction] = []
    g: list[Fraction] = []
    t: list[Fraction] = []
    d: list[Fraction] = []
    for k, label in enumerate(table.suggested.tolist()):
        row = slice(table.start[k], table.start[k + 1])
        votes = dict(zip(table.code[row].tolist(), table.votes[row].tolist(), strict=True))
        N = sum(votes.values())
        shares = {j: F(P * (P - 1), N * (N - 1)) for j, P in votes.items()}
        c += [F(P, N) for P in votes.values()]
        g += shares.values()
        t.append(sum(shares.values(), F(0)))
        d.append(2 * shares.get(label, F(0)) - t[-1] if parts.L else t[-1])
    mass = [int(value) for value in sample.mass.tolist()]
    return Terms(
        sample=sample,
        weight=fractions(F(value * sample.n, sum(mass)) for value in mass),
        c=fractions(c),
        g=fractions(g),
        t=fractions(t),
        d=fractions(d),
        C=fractions(parts.C.values()),
        L=fractions(parts.L.values()),
        D=parts.D,
        E=parts.E,
        C_E=parts.C_E,
        kappa=parts.kappa,
    )


def dense(of: Terms, entries: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return (K, m) entries, 0 where a category has no votes."""
    table = np.zeros((len(of.items), len(of.C)), entries.dtype)
    table[np.repeat(np.arange(len(of.items)), np.diff(of.patterns.start)), of.patterns.code] = entries
    return table


def influence(of: Terms) -> Fractions:
    """phi_i = ((d_i - D) - (1 - kappa) eps_i) / (1 - E)."""
    c = dense(of, of.c)
    if len(of.L):
        eps = 2 * ((c * (of.C * (2 * of.L - 1))).sum(axis=1) + of.C[of.suggested] ** 2 - of.E - of.C_E)
    else:
        eps = 2 * ((c * of.C).sum(axis=1) - of.E)
    phi: Fractions = (of.d - of.D - (1 - of.kappa) * eps) / (1 - of.E)
    return phi


def alike(of: Terms, j: int, v: int) -> Fraction:
    """Influence of an item with label j and all votes v."""
    eps = 2 * (of.C[v] * (2 * of.L[v] - 1) + of.C[j] ** 2 - of.E - of.C_E)
    return F(((1 if j == v else -1) - of.D - (1 - of.kappa) * eps) / (1 - of.E))


def extremes(of: Terms) -> dict[int, tuple[Fraction, Fraction]]:
    """Least and greatest influence of items with all votes alike, by label, over the categories that occur."""
    occurs = [j for j in range(len(of.C)) if of.C[j] + of.L[j] > 0]
    every = {j: [alike(of, j, v) for v in occurs] for j in occurs}
    return {j: (min(values), max(values)) for j, values in every.items()}


def variance(of: Terms, phi: Fractions) -> tuple[Fraction, Fraction]:
    """sum_h (1 - f_h) n_h/(n_h - 1) sum_i (z_i - mean_h z)^2 with z_i = w_i phi_i / W; and the same with f_h = 0."""
    value = infinite_pool = F(0)
    z = of.weight / fractions(of.items.tolist()) * phi / of.n
    for place, part in enumerate(of.sample.strata):
        rows = np.flatnonzero(of.sample.stratum == place)
        items = fractions(of.items[rows].tolist())
        if part.n > 1:
            middle = (z[rows] * items).sum() / part.n
            spread = F(part.n, part.n - 1) * ((z[rows] - middle) ** 2 * items).sum()
            infinite_pool += spread
            value += (1 - part.fraction) * spread
    return value, infinite_pool


def permutation_moments(of: Terms) -> tuple[Fraction, Fraction]:
    """D0 = sum_j G_j (2 L_j - 1) and Var = 4/(n - 1) (sum_j L_j Sigma_jj - sum_jk L_j L_k Sigma_jk)."""
    n, g, items = of.n, dense(of, of.g), fractions(of.items.tolist())
    G = (g * items[:, None]).sum(axis=0) / n
    D0 = F((G * (2 * of.L - 1)).sum())
    if n == 1:
        return D0, F(0)
    off = g - G
    used = [j for j in range(len(of.L)) if of.L[j]]
    Sigma = {(j, k): (off[:, j] * off[:, k] * items).sum() / n for j, k in product(used, repeat=2)}
    spread = sum((of.L[j] * Sigma[j, j] for j in used), F(0))
    spread -= sum((of.L[j] * of.L[k] * Sigma[j, k] for j, k in product(used, repeat=2)), F(0))
    return D0, F(4, n - 1) * spread


def above_random(of: Terms) -> tuple[Fraction, Fractions]:
    """kappa_P = (D - D0)/(1 - D0), and its influence values."""
    g = dense(of, of.g)
    G = (g * of.weight[:, None]).sum(axis=0) / of.n
    D0 = (G * (2 * of.L - 1)).sum()
    value = (of.D - D0) / (1 - D0)
    eps = ((g - G) * (2 * of.L - 1)).sum(axis=1) + 2 * (G[of.suggested] - (G * of.L).sum())
    phi: Fractions = (of.d - of.D - (1 - value) * eps) / (1 - D0)
    return F(value), phi


# Example 1 of docs/methods.md: six items, three categories, three votes each.
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
STRATA = ["x", "x", "x", "y", "y", "y"]


def example(**given: Any) -> Kappa:
    return dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, **given)
