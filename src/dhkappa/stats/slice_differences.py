"""Differences between groups of items: each kappa against that of the others, and kappa within groups.

Each kappa compares agreement with what is expected by chance within its own group. The others of a group are compared
by the mean of their kappas, weighted by ``a_r = W_r (1 - E_r)``: it equals the group's kappa if all kappas are equal,
which is not so for the kappa of the other items taken together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats
from dhkappa.stats.intervals import mover
from dhkappa.stats.summation import exact_sum

_CANCELLED = 1e-13  # part of a sum of squares that rounding may leave


class GroupKappas(NamedTuple):
    """Kappa of G groups; NaN where it is undefined or the items of a group show no variation."""

    items: npt.NDArray[np.int64]  # (G,) eligible items
    kappa: Floats  # (G,)
    se: Floats  # (G,)
    low: Floats  # (G,) confidence limits
    high: Floats  # (G,)
    missed: Floats  # (G,) 1 - D
    not_by_chance: Floats  # (G,) 1 - E
    spread: Floats  # (G,) variance of kappa with part of a worst item added, as for the lower limit
    weight: Floats  # (G,) total weight of the items: their number if they have no weights
    # (G,) sums over items of squares and products of ``u = 1 - d`` and ``e = 1 - E - eps``, each times the weight of an
    # item relative to the mean of its group: the influence on kappa within groups is made of these two.
    uu: Floats
    ue: Floats
    ee: Floats


class GroupDifferences(NamedTuple):
    """The kappa of each of G groups minus that of the others; NaN for a group that is not compared."""

    value: Floats  # (G,)
    low: Floats  # (G,) confidence limits
    high: Floats  # (G,)
    pvalue: Floats  # (G,) two-sided, of the difference 0


def differences(groups: GroupKappas, compared: Array, confidence_level: float) -> GroupDifferences:
    """Compare each of the groups ``compared``, a mask, with the other ones; they have confidence limits.

    With the limits l and u of each kappa, ``d = kappa_s - o_s`` has the limits (method of variance estimates recovery)
    ``d - sqrt((kappa_s - l_s)^2 + sum_{r != s} b_r^2 (u_r - kappa_r)^2)`` and
    ``d + sqrt((u_s - kappa_s)^2 + sum_{r != s} b_r^2 (kappa_r - l_r)^2)``, where b_r is the share of the group r among
    the a_r of the others. The p-value is below alpha exactly where 0 is outside of the limits. Two groups are one test.
    """
    place = np.flatnonzero(compared)
    found = GroupDifferences(*np.full((4, len(groups.kappa)), np.nan))
    if place.size < 2:
        return found
    kappa, low, high = groups.kappa[place], groups.low[place], groups.high[place]
    a = groups.weight[place] * groups.not_by_chance[place]
    a = a / a.max()
    whole = _others(a)
    value = kappa - _others(a * kappa) / whole
    if place.size == 2:
        value = kappa - kappa[::-1]  # without rounding
    down = np.sqrt((kappa - low) ** 2 + _others((a * (high - kappa)) ** 2) / whole**2)
    up = np.sqrt((high - kappa) ** 2 + _others((a * (kappa - low)) ** 2) / whole**2)
    for column, values in zip(found, (value, *mover(value, down, up, confidence_level)), strict=True):
        column[place] = values
    return found


def _others(values: Floats) -> Floats:
    """Return (G,) the sum of all other values, without subtracting: no digits are lost if one value dominates."""
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    after = np.concatenate([np.cumsum(values[::-1])[::-1][1:], [0.0]])
    others: Floats = before + after
    return others


class KappaWithin(NamedTuple):
    """Kappa within groups: 1 minus the ratio of observed and expected disagreement, both within the groups."""

    value: float = math.nan
    se: float = math.nan


def kappa_within(groups: GroupKappas) -> KappaWithin:
    """Return the mean of the kappas of the groups, weighted by ``W_s (1 - E_s)``, with its standard error.

    Its influence is ``((1 - kappa_W) (1 - E_s - eps_i) - (1 - d_i)) / (1 - mean E)``.
    """
    used = groups.items > 1
    n, weight = int(groups.items[used].sum()), groups.weight[used]
    if n < 2 or not exact_sum(weight) > 0:
        return KappaWithin()
    share = weight / exact_sum(weight)
    missed, chance = exact_sum(share * groups.missed[used]), exact_sum(share * groups.not_by_chance[used])
    if not chance > 0:
        return KappaWithin()
    ratio = missed / chance  # 1 - kappa_W
    uu, ue, ee = (values[used] for values in (groups.uu, groups.ue, groups.ee))
    squares = ratio**2 * ee - 2 * ratio * ue + uu
    squares[squares <= _CANCELLED * (ratio**2 * ee + uu)] = 0
    variance = exact_sum((share / groups.items[used]) ** 2 * squares) * n / (n - 1) / chance**2
    unknown = variance == 0 and ratio != 0
    return KappaWithin(1 - ratio, math.nan if unknown else math.sqrt(variance))


def shrunk(kappa: Floats, spread: Floats) -> Floats:
    """Return kappas moved toward their mean, the more the larger their variance ``spread``, to rank small groups.

    The variance between groups is that of DerSimonian and Laird. Kappas whose variance is unknown are not moved.
    """
    known = np.flatnonzero(~np.isnan(kappa) & (spread > 0))
    found = kappa.copy()
    if known.size < 2:
        return found
    weight = 1 / spread[known]
    total = exact_sum(weight)
    mean = exact_sum(weight * kappa[known]) / total
    excess = exact_sum(weight * (kappa[known] - mean) ** 2) - (known.size - 1)
    between = max(0.0, excess / (total - exact_sum(weight**2) / total))
    center = exact_sum(kappa[known] / (between + spread[known])) / exact_sum(1 / (between + spread[known]))
    found[known] = center + between / (between + spread[known]) * (kappa[known] - center)
    return found
