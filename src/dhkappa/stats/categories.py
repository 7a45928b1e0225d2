"""Kappa by suggested category, in parts that add up to kappa, and what the panel agrees on instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import Label
from dhkappa.stats.intervals import check_level, flawless, written
from dhkappa.stats.terms import Numbers, Terms
from dhkappa.stats.variance import signs, unseen_parts, variance, vote_variance, without_a_vote
from dhkappa.table import Table

# Below this share of the squares it is the difference of, a sum of squares is rounding: each is right to about
# 10^-15, and one odd item in 10^12 still shows.
_NOTHING = 1e-13
_ROUNDING = 2.0**-53  # of what each item adds to a sum that cancels

_EQUAL = 8 * np.finfo(np.float64).eps  # two sums of shares, each 1 at most, that differ by less are equal

_NEVER = "never suggested."
_CERTAIN = "every vote is this category, so agreement on it is certain."
_WEIGHTLESS = "its items weigh next to nothing beside the others."
_ONE_ITEM = "only one item with this label, so its spread is unknown."
_NO_SPREAD = "no item moves it, so its spread is unknown."


@dataclass(frozen=True, slots=True)
class CategoryParts:
    """Kappa of each of m suggested categories, as floats or exact fractions.

    Attributes
    ----------
    items : (m,) items with this suggested label, n L_j
    D : (m,) mean agreement differential of these items; NaN where there are none
    E : (m,) the differential expected by chance for this label, 2 C_j^2 - sum_k C_k^2
    kappa : (m,) (D_j - E_j) / (1 - E_j); NaN where undefined
    weight : (m,) L_j (1 - E_j) over their sum; 0 where kappa_j is undefined
    defined : (m,) whether kappa_j is defined: the label is suggested, and votes are not all for it
    """

    items: npt.NDArray[np.int64]
    D: Numbers
    E: Numbers
    kappa: Numbers
    weight: Numbers
    defined: npt.NDArray[np.bool_]


def category_parts(terms: Terms) -> CategoryParts:
    """Split kappa by suggested category: kappa = sum_j weight_j kappa_j, and E = sum_j L_j E_j."""
    C, L = terms.C, terms.L
    items = np.zeros(len(C), np.int64)
    np.add.at(items, terms.suggested, terms.items)
    used = (items > 0) & (L > 0).astype(np.bool_)
    short = _undefined(C)  # 1 - D_j: exactly 0 where every vote is the label, also in floats
    short[used] = _by_category(terms, terms.suggested, terms.weight * (1 - terms.d))[used] / (terms.n * L[used])
    E = 2 * C**2 - (C**2).sum()
    defined = used & (E != 1).astype(np.bool_)  # where C_j is not 1
    kappa = _undefined(C)
    kappa[defined] = 1 - short[defined] / (1 - E[defined])
    share = L * (1 - E)
    return CategoryParts(items, 1 - short, E, kappa, share / (share.sum() or 1), defined)


@np.errstate(over="ignore", invalid="ignore")  # where a label weighs next to nothing
def category_influence(terms: Terms, parts: CategoryParts, code: int) -> Numbers:
    """Return (K,) phi_ij: the derivative of a defined kappa_j as an item of a pattern gains weight. Its mean is 0.

    ``phi_ij = ((q_ij / L_j) (d_i - D_j) - (1 - kappa_j) (4 C_j (c_ij - C_j) - 2 sum_k C_k (c_ik - C_k))) / (1 - E_j)``
    with q_ij = 1 where the suggested label is j, else 0.
    """
    C = terms.C
    own = terms.row_sums(terms.c * (terms.patterns.code == code))
    gap = (terms.suggested == code) * (terms.d - parts.D[code]) / terms.L[code]
    eps = 4 * C[code] * (own - C[code]) - 2 * _pull(terms)
    phi: Numbers = (gap - (1 - parts.kappa[code]) * eps) / (1 - parts.E[code])
    return phi


def category_squares(terms: Terms, parts: CategoryParts) -> Numbers:
    """Return (m,) sum_i phi_ij^2, NaN where kappa_j is undefined; floats that are only rounding become 0.

    The square of phi is multiplied out, so that each sum runs over patterns with this label or with votes for
    this category: it costs as much as the votes, however many categories there are.
    """
    code, c, items, n = terms.patterns.code, terms.c, terms.items, terms.n
    row = np.repeat(np.arange(len(items)), np.diff(terms.patterns.start))
    label, each = terms.suggested[row], items[row]
    C, L = terms.C, terms.L
    pull = _pull(terms)
    gap = terms.d - parts.D[terms.suggested]
    hit = code == label
    voted = np.zeros(len(C), np.int64)
    np.add.at(voted, code, each)

    # gap sums to 0 within a label and pull over all items, so constants beside them drop out.
    gap_gap = _by_category(terms, terms.suggested, items * gap * gap)
    gap_pull = _by_category(terms, terms.suggested, items * gap * pull)
    gap_own = _by_category(terms, label[hit], (each * gap[row] * c)[hit])
    own_own = _by_category(terms, code, each * (c - C[code]) ** 2) + (n - voted) * C**2
    own_pull = _by_category(terms, code, each * c * pull[row])
    pull_pull = _total(items * pull * pull)

    squares = _undefined(C)
    j = parts.defined
    C, L, lost, room = C[j], L[j], 1 - parts.kappa[j], 1 - parts.E[j]
    eps_parts = 16 * C**2 * own_own[j] + 4 * pull_pull
    gap_eps = (4 * C * gap_own[j] - 2 * gap_pull[j]) / L
    large = gap_gap[j] / L**2 + lost**2 * eps_parts
    found = large - lost * (2 * gap_eps + lost * 16 * C * own_pull[j])
    if found.dtype != object:
        found[(found <= _NOTHING * large) | (found <= _ROUNDING * n)] = 0
    squares[j] = found / room**2
    return squares


def category_variances(terms: Terms, parts: CategoryParts) -> Numbers:
    """Return (m,) the variance of each kappa_j, NaN where it is undefined.

    Weights, strata and a pool cost a pass over the patterns for each category; without them there is one pass in all.
    """
    n = terms.n
    if not terms.sample.designed:
        return category_squares(terms, parts) / (n * (n - 1)) if n > 1 else _undefined(terms.C)
    found = _undefined(terms.C)
    whole, other_votes = _unseen(terms).max() == 0, terms.sample.other_votes
    for code in np.flatnonzero(parts.defined).tolist():
        phi = category_influence(terms, parts, code)
        over_votes = vote_variance(terms, _without_a_vote(terms, parts, code)) if other_votes else None
        spread = variance(terms, phi, over_votes)
        found[code] = spread.value if spread.endless or whole or parts.kappa[code] == 1 else math.nan
    return found


def _without_a_vote(terms: Terms, parts: CategoryParts, code: int) -> Numbers:
    """Return (entries,) what votes decide of the influence on kappa_j, without one vote for the entry's category."""
    entry, C = terms.patterns.code, terms.C
    ours = np.repeat(terms.suggested == code, np.diff(terms.patterns.start))
    pull = (1 - parts.kappa[code]) * (4 * C[code] * (entry == code) - 2 * C[entry])
    room = 1 - parts.E[code]
    return without_a_vote(terms, signs(terms) * ours / terms.L[code] / room, -pull / room)


def _unseen(terms: Terms) -> npt.NDArray[np.float64]:
    """Return (m,) how much of the pool of items with each label is unseen, on the scale of 1/n; 0 where nothing is."""
    found = np.zeros(len(terms.C))
    np.maximum.at(found, terms.suggested, unseen_parts(terms.sample.strata)[terms.sample.stratum])
    return found


def by_category(terms: Terms, categories: Sequence[Label], level: float = 0.95) -> Table:
    """Return kappa of each suggested category, with its interval and its weight in kappa.

    ``kappa_j = (D_j - E_j) / (1 - E_j)``, where D_j is the mean differential of the items with suggested label j
    and ``E_j = 2 C_j^2 - sum_k C_k^2`` what chance would make it. With two categories this is conditional kappa.
    Kappa is the mean of the kappa_j by ``weight``. It is 1 at most, and can be far below -1 where nearly all
    votes are j.

    Parameters
    ----------
    terms
        Terms of the tally.
    categories
        The m categories, in the order of its codes.
    level
        Of the intervals: kappa_j plus and minus t times its standard error, with one degree of freedom less than
        items with the label. No lower limit is above that of as many flawless items,
        ``1 - 2 (1 - (alpha / 2)^(1 / items)) / (1 - E_j)``.

    Returns
    -------
    Table
        A row for each category, in order: ``category``, ``items`` with that suggested label, ``kappa``, ``se``,
        ``low``, ``high``, ``weight``, ``loss`` (what the category takes from kappa, weight x (1 - kappa_j); they add up
        to 1 - kappa), ``vote_share`` (C_j), ``label_share`` (L_j), and ``reason``, which says why there are NaN.

    Examples
    --------
    >>> from dhkappa import dh_kappa
    >>> from dhkappa.stats.terms import terms
    >>> votes = ["aaa", "aab", "aaa", "bbb", "bbc", "bbb", "cca"]
    >>> kappa = dh_kappa([list(item) for item in votes], list("aaabbba"))
    >>> table = by_category(terms(kappa.sample, kappa.parts), kappa.categories)
    >>> for row in table:
    ...     print(row["category"], row["items"], round(row["kappa"], 3), round(row["weight"], 3), row["reason"])
    a 4 0.51 0.571 None
    b 3 0.782 0.429 None
    c 0 nan 0.0 never suggested.
    """
    level = check_level(level)
    parts = category_parts(terms)
    variances = category_variances(terms, parts)
    from scipy.special import stdtrit

    like, unseen = _effective(terms, parts), _unseen(terms)
    quantiles = stdtrit(np.maximum(like - 1, 1), (1 + level) / 2).tolist()
    shares = unseen / np.maximum(like, 1)
    spreads = [_spread(parts, variances, code, shares[code], 1 - level, t) for code, t in enumerate(quantiles)]
    return Table(
        {
            "category": categories,
            "items": parts.items,
            "kappa": map(float, parts.kappa),
            "se": [spread.se for spread in spreads],
            "low": [spread.low for spread in spreads],
            "high": [spread.high for spread in spreads],
            "weight": map(float, parts.weight),
            "loss": [
                float(weight * (1 - kappa)) if weight else 0.0
                for weight, kappa in zip(parts.weight, parts.kappa, strict=True)
            ],
            "vote_share": map(float, terms.C),
            "label_share": map(float, terms.L),
            "reason": [spread.reason for spread in spreads],
        },
        title=f"Kappa by suggested category, {written(level)} intervals",
    )


def confusion(terms: Terms, categories: Sequence[Label]) -> Table:
    """Return what the panel chooses where a label is suggested.

    Parameters
    ----------
    terms
        Terms of the tally.
    categories
        The categories, in the order of its codes.

    Returns
    -------
    Table
        For each ``suggested`` label with its ``items``, a row for each category that some annotator votes for:
        ``agreed`` (the category), ``pair_share`` (pairs that agree on it, the mean of g_ik) and ``vote_share`` (votes
        for it, the mean of c_ik), the most agreed on first. A last row with None for the category has the pairs that
        do not agree, where there are some. So both shares add up to 1 for each label.
    """
    m = len(categories)
    row = np.repeat(np.arange(len(terms.items)), np.diff(terms.patterns.start))
    each = terms.weight[row]
    cells, place = np.unique(terms.suggested[row].astype(np.int64) * m + terms.patterns.code, return_inverse=True)
    pairs = _grouped(place, each * terms.g, np.zeros(len(cells), terms.g.dtype))
    votes = _grouped(place, each * terms.c, np.zeros(len(cells), terms.c.dtype))
    apart = _by_category(terms, terms.suggested, terms.weight * (1 - terms.t))
    items = category_parts(terms).items
    total = terms.L * terms.n

    found: dict[int, list[tuple[Any, Any, int]]] = {}
    for cell, pair, vote in zip(cells.tolist(), pairs, votes, strict=True):
        j, k = divmod(cell, m)
        if vote:  # but for items that weigh next to nothing
            found.setdefault(j, []).append((pair, vote, k))
    rows: list[tuple[Label, int, Label | None, float, float]] = []
    for j, panel in found.items():
        label, size, whole = categories[j], int(items[j]), total[j]
        panel.sort(key=lambda cell: (-cell[0], -cell[1], cell[2]))
        rows += [(label, size, categories[k], float(pair / whole), float(vote / whole)) for pair, vote, k in panel]
        if apart[j]:
            rows.append((label, size, None, float(apart[j] / whole), 0.0))
    names = ("suggested", "items", "agreed", "pair_share", "vote_share")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return Table(dict(zip(names, columns, strict=True)), title="What the panel agrees on, by suggested label")


@dataclass(frozen=True, slots=True)
class _Spread:
    """How surely a category's kappa is known."""

    se: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str | None = None


def _spread(parts: CategoryParts, variances: Numbers, code: int, share: float, alpha: float, t: float) -> _Spread:
    items = int(parts.items[code])
    if not parts.defined[code]:
        light = parts.weight[code] == 0 and parts.E[code] != 1
        return _Spread(reason=_NEVER if not items else _WEIGHTLESS if light else _CERTAIN)
    if items == 1 and share:
        return _Spread(reason=_ONE_ITEM)
    kappa, E = float(parts.kappa[code]), float(parts.E[code])
    se = math.sqrt(variances[code])
    if math.isnan(se) or (se == 0 and kappa < 1 and share):
        return _Spread(reason=_NO_SPREAD)
    half = t * se
    low = min(kappa - half, flawless(float(share), E, alpha))
    return _Spread(se, max(low, 1 - 2 / (1 - E)), min(kappa + half, 1.0))  # D_j is -1 at the least


def _effective(terms: Terms, parts: CategoryParts) -> npt.NDArray[np.float64]:
    """Return (m,) how many items of equal weight would know as much as those with each label (Kish)."""
    if not terms.sample.weighted:
        return parts.items.astype(np.float64)
    m, weight = len(terms.C), terms.weight.astype(np.float64)
    total = np.bincount(terms.suggested, weight, m)
    squares = np.bincount(terms.suggested, weight**2 / terms.items, m)
    return total**2 / np.where(squares > 0, squares, 1)


def _pull(terms: Terms) -> Numbers:
    """Return (K,) sum_k C_k (c_ik - C_k); its mean over items is 0."""
    C = terms.C
    pull: Numbers = terms.row_sums(C[terms.patterns.code] * terms.c) - (C**2).sum()
    if pull.dtype != object:
        pull[np.abs(pull) <= _EQUAL] = 0
    return pull


def _undefined(like: Numbers) -> Numbers:
    return np.full(len(like), math.nan, like.dtype)


def _by_category(terms: Terms, code: npt.NDArray[Any], values: Numbers) -> Numbers:
    """Add up values by category, (m,)."""
    return _grouped(code, values, terms.C * 0)


def _grouped(place: npt.NDArray[Any], values: Numbers, totals: Numbers) -> Numbers:
    """Add up values by place into totals that are 0; float sums are rounded once."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()
    listed = values[order].tolist()
    add = sum if values.dtype == object else math.fsum
    for start, end in pairwise([*first, len(listed)]):
        totals[ordered[start]] = add(listed[start:end])
    return totals


def _total(values: Numbers) -> Any:
    return values.sum() if values.dtype == object else math.fsum(values.tolist())
