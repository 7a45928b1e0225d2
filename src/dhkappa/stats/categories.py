"""Kappa by suggested category, a decomposition of kappa, and the votes for each suggested label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats, Label
from dhkappa.stats.influence import Terms, category_chance, sum_of_squares, unseen_parts, variance
from dhkappa.stats.intervals import Basis, beta_interval, written
from dhkappa.stats.sample import check_level
from dhkappa.stats.summation import exact_sum, group_sums
from dhkappa.table import Table

_CANCELLED = 1e-13  # a sum of squares below this share of its largest term, accurate to 10^-15, is rounding
_ROUNDING = 2.0**-53  # per item, in a sum that cancels
_EQUAL = 8 * np.finfo(np.float64).eps  # sums of shares, each at most 1, that differ by less are equal


@dataclass(frozen=True, slots=True)
class CategoryParts:
    """Kappa of each of m suggested categories; arrays are (m,)."""

    items: npt.NDArray[np.int64]  # items with this suggested label, n L_j
    D: Array  # mean agreement differential of these items, NaN if there are none
    E: Array  # differential expected by chance, 2 k_j - sum_x C_x (wC)_x; without weights 2 C_j^2 - sum_x C_x^2
    kappa: Array  # (D_j - E_j) / (1 - E_j), NaN if undefined
    weight: Array  # L_j (1 - E_j) divided by their sum, 0 if kappa_j is undefined
    defined: npt.NDArray[np.bool_]  # L_j > 0 and C_j < 1


def category_parts(terms: Terms) -> CategoryParts:
    """Decompose kappa by suggested category: kappa = sum_j weight_j kappa_j and E = sum_j L_j E_j."""
    C, L = terms.C, terms.L
    items = np.zeros(len(C), np.int64)
    np.add.at(items, terms.suggested, terms.items)
    used = (items > 0) & (L > 0)
    short = np.full(len(C), math.nan)  # 1 - D_j: exactly 0 if every vote is the label, also in floats
    short[used] = group_sums(terms.weight * (1 - terms.d), terms.suggested, len(C))[used] / (terms.n * L[used])
    E = 2 * C**2 - (C**2).sum() if terms.w is None else 1 - category_chance(terms)
    defined = used & (E != 1)  # C_j < 1
    kappa = np.full(len(C), math.nan)
    kappa[defined] = 1 - short[defined] / (1 - E[defined])
    share = L * (1 - E)
    return CategoryParts(items, 1 - short, E, kappa, share / (share.sum() or 1), defined)


@np.errstate(over="ignore", invalid="ignore")  # a label may have almost no weight
def category_influence(terms: Terms, parts: CategoryParts, code: int) -> Array:
    """Return (K,) phi_ij, the influence of an item of each pattern on a defined kappa_j.

    ``phi_ij = ((q_ij / L_j) (d_i - D_j) - (1 - kappa_j) eps_ij) / (1 - E_j)`` with q_ij = 1 if the suggested label is
    j, else 0, and ``eps_ij = 4 C_j (c_ij - C_j) - 2 sum_x C_x (c_ix - C_x)`` or, with agreement weights,
    ``2 sum_x (w_jx (wC)_x + sum_y w_jy C_y w_yx - (wC)_x) (c_ix - C_x)``.
    """
    C = terms.C
    gap = (terms.suggested == code) * (terms.d - parts.D[code]) / terms.L[code]
    if terms.w is None:
        own = terms.row_sums(terms.c * (terms.patterns.code == code))
        eps = 4 * C[code] * (own - C[code]) - 2 * _pull(terms)
    else:
        wC = terms.near(C)
        slope = 2 * (terms.w[code] * wC + terms.near(terms.w[code] * C) - wC)
        eps = terms.row_sums(slope[terms.patterns.code] * terms.c) - (slope * C).sum()
    phi: Array = (gap - (1 - parts.kappa[code]) * eps) / (1 - parts.E[code])
    return phi


def category_squares(terms: Terms, parts: CategoryParts) -> Array:
    """Return (m,) sum_i phi_ij^2, NaN if kappa_j is undefined; values that are only rounding become 0.

    The square is expanded, so that each sum runs only over patterns with label j or with votes for j: the cost does
    not grow with the number of categories.
    """
    code, c, items, n = terms.patterns.code, terms.c, terms.items, terms.n
    row = terms.patterns.row()
    label, each = terms.suggested[row], items[row]
    C, L, m = terms.C, terms.L, len(terms.C)
    pull = _pull(terms)
    gap = terms.d - parts.D[terms.suggested]
    hit = code == label
    voted = np.zeros(len(C), np.int64)
    np.add.at(voted, code, each)

    # gap sums to 0 within a label and pull over all items, so products with constants vanish.
    gap_gap = group_sums(items * gap * gap, terms.suggested, m)
    gap_pull = group_sums(items * gap * pull, terms.suggested, m)
    gap_own = group_sums((each * gap[row] * c)[hit], label[hit], m)
    own_own = group_sums(each * (c - C[code]) ** 2, code, m) + (n - voted) * C**2
    own_pull = group_sums(each * c * pull[row], code, m)
    pull_pull = exact_sum(items * pull * pull)

    squares = np.full(len(C), math.nan)
    j = parts.defined
    C, L, lost, one_minus_E = C[j], L[j], 1 - parts.kappa[j], 1 - parts.E[j]
    eps_parts = 16 * C**2 * own_own[j] + 4 * pull_pull
    gap_eps = (4 * C * gap_own[j] - 2 * gap_pull[j]) / L
    large = gap_gap[j] / L**2 + lost**2 * eps_parts
    found = large - lost * (2 * gap_eps + lost * 16 * C * own_pull[j])
    found[(found <= _CANCELLED * large) | (found <= _ROUNDING * n)] = 0
    squares[j] = found / one_minus_E**2
    return squares


def category_variances(terms: Terms, parts: CategoryParts) -> Array:
    """Return (m,) the variance of each kappa_j, NaN if it is undefined.

    With n_j = n L_j items it is ``sum_i (L_j phi_ij)^2 / (n_j (n_j - 1))``, or that of the design with weights, strata
    or a pool.
    """
    n, like = terms.n, parts.items
    found = np.full(len(terms.C), math.nan)
    if n < 2:
        return found
    if not terms.sample.designed:
        if terms.w is None:
            squares = category_squares(terms, parts)
        else:
            squares = found
            for code in np.flatnonzero(parts.defined).tolist():
                squares[code] = sum_of_squares(category_influence(terms, parts, code), terms.items)
        return squares * like / (float(n) ** 2 * np.maximum(like - 1, 1))
    census = _unseen(terms).max() == 0
    for code in np.flatnonzero(parts.defined).tolist():
        spread = variance(terms, category_influence(terms, parts, code))
        found[code] = spread.value if spread.infinite_pool or census or parts.kappa[code] == 1 else math.nan
    return found


def _unseen(terms: Terms) -> Floats:
    """Return (m,) the unseen part of the pool of items with each label, 0 if all were drawn; see ``unseen_parts``."""
    found = np.zeros(len(terms.C))
    np.maximum.at(found, terms.suggested, unseen_parts(terms.sample.strata)[terms.sample.stratum])
    return found


def category_extremes(terms: Terms, parts: CategoryParts) -> tuple[Array, Array]:
    """Return (m,) the least and the greatest influence on kappa_j, times L_j, of an item whose votes are all equal.

    The label and the votes v range over the categories that occur. Votes for other categories enter by C_v only, so it
    is enough to look at the label j or another one, and at votes for j and for the others with the largest and the
    smallest C_v. With agreement weights all votes are tried.
    """
    C, codes, occurs = terms.C, np.arange(len(terms.C)), np.flatnonzero(terms.C + terms.L > 0)
    if terms.w is None:
        ascending = occurs[np.argsort(C[occurs], kind="stable")]
        ends = (np.where(codes == some[0], some[-1], some[0]) for some in (ascending[:2], ascending[::-1][:2]))
        votes = np.array([codes, *ends])
        eps = 4 * C * ((votes == codes) - C) - 2 * (C[votes] - (C**2).sum())
        d = np.where(votes == codes, 1.0, -1.0)
    else:
        wC = terms.near(C)
        slope = 2 * np.array([row * wC + terms.near(row * C) - wC for row in terms.w])
        eps = (slope - (slope * C).sum(axis=1, keepdims=True))[:, occurs].T
        d = 2 * terms.w[:, occurs].T - 1
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        other = -terms.L * (1 - parts.kappa) * eps / (1 - parts.E)  # of an item with another label
        own = other + (d - parts.D) / (1 - parts.E)
    every = np.concatenate([own, other]) if occurs.size > 1 else own
    return every.min(axis=0), every.max(axis=0)


def by_category(terms: Terms, confidence_level: float = 0.95, more: Mapping[str, Sequence[Any]] | None = None) -> Table:
    """Return kappa of each suggested category with its interval, and more columns; see ``Kappa.by_category``.

    It is the beta interval of kappa on the range of kappa_j, with the n_j = n L_j items of the label and the influence
    of all items times L_j; with sample weights n_j is the effective number of items.
    """
    confidence_level = check_level(confidence_level)
    parts = category_parts(terms)
    variances = category_variances(terms, parts)
    like, alpha = _effective(terms, parts), 1 - confidence_level
    least, greatest = category_extremes(terms, parts)
    shares = _unseen(terms) / np.maximum(like, 1)
    found = []
    for code in range(len(terms.C)):
        kappa, E, share, n = (float(values[code]) for values in (parts.kappa, parts.E, shares, like))
        squares = max(n * (n - 1), 0) * float(variances[code])
        ends = float(least[code]), float(greatest[code])
        bottom = 1 - 2 / (1 - E) if E != 1 else math.nan  # D_j >= -1
        known = Basis(kappa, E, n, squares, *ends, share, share, share, max(int(n) - 1, 1), bottom)
        found.append(_interval(parts, variances, code, known, alpha))
    se, low, high, reason = zip(*found, strict=True)
    return Table(
        {
            "category": terms.sample.categories,
            "items": parts.items,
            "kappa": map(float, parts.kappa),
            "se": se,
            "low": low,
            "high": high,
            "weight": map(float, parts.weight),
            "loss": np.where(parts.weight == 0, 0.0, parts.weight * (1 - parts.kappa)).tolist(),
            **(more or {}),
            "vote_share": map(float, terms.C),
            "label_share": map(float, terms.L),
            "reason": reason,
        },
        title=f"{'Kappa' if terms.w is None else 'Weighted kappa'} by suggested category, "
        f"{written(confidence_level, 100)}% confidence intervals",
    )


def confusion(terms: Terms) -> Table:
    """Return what annotators vote for and agree on, by suggested label; see ``Kappa.confusion``."""
    categories = terms.sample.categories
    m = len(categories)
    row = terms.patterns.row()
    each = terms.weight[row]
    cells, place = np.unique(terms.suggested[row].astype(np.int64) * m + terms.patterns.code, return_inverse=True)
    pairs = group_sums(each * terms.g, place, len(cells))
    votes = group_sums(each * terms.c, place, len(cells))
    apart = group_sums(terms.weight * (1 - terms.t), terms.suggested, m)
    items = category_parts(terms).items
    total = terms.L * terms.n

    rows: list[tuple[Label, int, Label | None, float, float]] = []
    for j, group in groupby(zip(cells.tolist(), pairs, votes, strict=True), lambda cell: int(cell[0] // m)):
        label, size, whole = categories[j], int(items[j]), total[j]
        # A vote of 0 has items whose weight is too small for a float.
        voted = sorted((-pair, -vote, cell % m) for cell, pair, vote in group if vote)
        rows += [(label, size, categories[k], float(-pair / whole), float(-vote / whole)) for pair, vote, k in voted]
        if voted and apart[j]:
            rows.append((label, size, None, float(apart[j] / whole), 0.0))
    names = ("suggested", "items", "agreed", "pair_share", "vote_share")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return Table(dict(zip(names, columns, strict=True)), title="What annotators agree on, by suggested label")


def _interval(
    parts: CategoryParts, variances: Array, code: int, known: Basis, alpha: float
) -> tuple[float, float, float, str | None]:
    """Return standard error, limits, and the reason if they are NaN, of one kappa_j."""
    items, defined, share = int(parts.items[code]), bool(parts.defined[code]), known.unseen
    se = math.sqrt(variances[code]) if defined else math.nan
    unknown = math.isnan(se) or (se == 0 and known.kappa < 1 and share)
    reasons = (
        (not items, "Never suggested."),
        (not defined and known.E != 1, "Its items have almost no weight."),
        (not defined, "Every vote is this category, so agreement on it is certain."),
        (items == 1 and share, "Only one item has this label, so the variance is unknown."),
        (unknown, "Every item has the same influence, so the variance is unknown."),
    )
    reason = next((text for applies, text in reasons if applies), None)
    if reason:
        return math.nan, math.nan, math.nan, reason
    return se, *beta_interval(known, alpha), None


def _effective(terms: Terms, parts: CategoryParts) -> Floats:
    """Return (m,) the effective number of items with each label (Kish)."""
    if not terms.sample.weighted:
        return parts.items.astype(np.float64)
    m, weight = len(terms.C), terms.weight.astype(np.float64)
    total = np.bincount(terms.suggested, weight, m)
    squares = np.bincount(terms.suggested, weight**2 / terms.items, m)
    return total**2 / np.where(squares > 0, squares, 1)


def _pull(terms: Terms) -> Array:
    """Return (K,) sum_k C_k (c_ik - C_k)."""
    C = terms.C
    pull: Array = terms.row_sums(C[terms.patterns.code] * terms.c) - (C**2).sum()
    pull[np.abs(pull) <= _EQUAL] = 0
    return pull
