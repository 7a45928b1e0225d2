"""Kappa of many groups of items at once, with standard errors and confidence limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats, Integers
from dhkappa.core.grouping import LabeledPatterns, Patterns, count_rows, split_digits
from dhkappa.stats.influence import ROUNDING, basis, chance_terms, terms
from dhkappa.stats.intervals import Basis, beta_interval, beta_limits, lower_variance
from dhkappa.stats.kappa import Estimate, estimate_dh
from dhkappa.stats.sample import check_level, sample_of
from dhkappa.stats.slice_differences import GroupKappas
from dhkappa.stats.summation import exact_sum, group_sums

_CLOSE = 1e-6  # of 1 - E: below, a group is computed alone
_EXACT = 2**53  # integers below this are floats without rounding
_BINS = 1 << 22
_BLOCK = 1 << 13  # groups times categories that are computed at once, so that temporaries stay in the cache


def kappa_by_group(
    rows: LabeledPatterns,
    row: Integers,
    group: Integers,
    size: int,
    confidence_level: float = 0.95,
    *,
    items: npt.NDArray[np.int64] | None = None,
    products: bool = True,
) -> GroupKappas:
    """Return the DiPietro-Hazari kappa of each of ``size`` groups of items, as ``dh_kappa`` of its items alone.

    Parameters
    ----------
    rows
        The distinct patterns of all items, without strata. With sample weights, each group is computed alone.
    row, group, items
        (n,) the pattern and the group of each item; or of several equal items, with their number ``items``.
    products
        Whether to compute the sums of products, which take a third of the time.
    """
    alpha = 1 - check_level(confidence_level)
    if rows.weight is not None:
        return _weighted(rows, row, group, size, alpha, items)
    sample = sample_of(rows)
    place = np.full(len(rows.patterns), -1)
    place[sample.kept] = np.arange(len(sample.patterns))
    pattern = place[row]
    if sample.excluded.total:
        kept = pattern >= 0
        group, pattern, items = group[kept], pattern[kept], None if items is None else items[kept]
    K, m = len(sample.patterns), len(sample.categories)
    found = _nothing(size)
    if not pattern.size:
        return found
    n = pattern.size if items is None else int(items.sum())
    keys, items = count_rows(
        pattern.size, [size, K], lambda part: [group[part], pattern[part]], items=items, bins=(_BINS, _BINS)
    )
    known = _Patterns.of(sample.patterns)
    # Alone: groups in which E is almost 1, and all if votes per item have a common multiple too large for 64 bits.
    alone = list(range(size))
    if max(known.vote_unit, known.pair_unit) * n < _EXACT:
        step = max(_BLOCK // m, 1)
        for first in range(0, size, step):
            last = min(first + step, size)
            part = slice(*np.searchsorted(keys, [first * K, last * K]))
            of, pattern = (digit.astype(np.int64) for digit in split_digits(keys[part] - first * K, [last - first, K]))
            cells = _Cells(known, of, pattern, items[part], last - first, m)
            for values, those in zip(found, cells.kappas(alpha, products), strict=True):
                values[first:last] = those
        alone = np.flatnonzero(np.isnan(found.se) & (found.items > 1) & ~np.isnan(found.kappa)).tolist()
    for index in alone:
        part = slice(*np.searchsorted(keys, [index * K, (index + 1) * K]))
        patterns = replace(sample.patterns.take(keys[part] - index * K), items=items[part])
        _put_alone(found, index, replace(rows, patterns=patterns), alpha)
    return found


def _nothing(size: int) -> GroupKappas:
    """Return the results of groups without items."""
    empty = GroupKappas(np.zeros(size, np.int64), *np.full((len(GroupKappas._fields) - 1, size), np.nan))
    empty.weight[:] = 0
    return empty


def _put_alone(found: GroupKappas, index: int, rows: LabeledPatterns, alpha: float) -> None:
    """Compute one group from its rows."""
    estimate = estimate_dh(sample_of(rows))
    found.items[index], found.kappa[index], whole = estimate.n_items, estimate.value, basis(estimate)
    kept = estimate.sample.kept
    items = rows.patterns.items if kept is None else rows.patterns.items[kept]
    weight = 1.0 if rows.weight is None else rows.weight if kept is None else rows.weight[kept]
    found.weight[index] = exact_sum(items * weight)
    if estimate.parts is not None:
        found.missed[index] = float(1 - estimate.parts.D)
        found.not_by_chance[index] = float(1 - estimate.parts.E)
        found.uu[index], found.ue[index], found.ee[index] = _products(estimate)
    if whole is not None:
        found.se[index] = whole.se
        found.low[index], found.high[index] = beta_interval(whole, alpha)
        found.spread[index] = lower_variance(whole)


def _products(estimate: Estimate) -> tuple[float, ...]:
    """Return the sums over items of u^2, u e and e^2 of one group; see ``GroupKappas``."""
    assert estimate.parts is not None
    known = terms(estimate.sample, estimate.parts)
    chance = chance_terms(known)
    votes = known.row_sums(chance.votes[known.patterns.code] * known.c)
    e = chance.not_by_chance - 2 * (chance.middle - votes - chance.labels[known.suggested])
    u, squared = 1 - known.d, known.weight**2 / known.items  # the items of a row have equal weights
    return tuple(exact_sum(squared * product) for product in (u * u, u * e, e * e))


def _weighted(
    rows: LabeledPatterns,
    row: Integers,
    group: Integers,
    size: int,
    alpha: float,
    items: npt.NDArray[np.int64] | None,
) -> GroupKappas:
    """Return the results of groups of items with sample weights, each computed alone."""
    assert rows.weight is not None
    found, order = _nothing(size), np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(size + 1))
    each = np.ones(row.size, np.int64) if items is None else items
    for index in range(size):
        own = order[ends[index] : ends[index + 1]]
        kinds, place = np.unique(row[own], return_inverse=True)
        if kinds.size:
            number = np.bincount(place, each[own]).astype(np.int64)
            patterns = replace(rows.patterns.take(kinds), items=number)
            _put_alone(found, index, replace(rows, patterns=patterns, weight=rows.weight[kinds]), alpha)
    return found


class _Patterns(NamedTuple):
    """K patterns with what kappa needs of each."""

    patterns: Patterns
    pair_weight: npt.NDArray[np.int64]  # (K,) ``pair_unit`` by the number of pairs of votes
    differential: npt.NDArray[np.int64]  # (K,) pairs that agree on the suggested label, minus those on another one
    d: Floats  # (K,) its share of all pairs
    vote_weight: npt.NDArray[np.int64]  # (entries,) number of votes times ``vote_unit``, by the number of all votes
    share: Floats  # (entries,) share of the votes
    vote_unit: int  # least common multiple of the numbers of votes
    pair_unit: int  # and of the numbers of pairs

    @staticmethod
    def of(patterns: Patterns) -> _Patterns:
        n_votes, length, first = patterns.vote_totals(), np.diff(patterns.start), patterns.start[:-1]
        votes = patterns.votes.astype(np.int64)
        pairs = votes * (votes - 1) // 2
        hit = np.where(patterns.code == np.repeat(patterns.suggested, length), pairs, 0)
        all_pairs = n_votes * (n_votes - 1) // 2
        units = tuple(math.lcm(*np.unique(numbers).tolist()) for numbers in (n_votes, all_pairs))
        differential = 2 * np.add.reduceat(hit, first) - np.add.reduceat(pairs, first)
        share, small = votes / np.repeat(n_votes, length), max(units) < _EXACT
        V, W = units if small else (0, 0)  # weights are not used if the units are large
        weights = W // all_pairs, differential, differential / all_pairs
        return _Patterns(patterns, *weights, np.repeat(V // n_votes, length) * votes, share, *units)


class _Cells(NamedTuple):
    """Items by group and pattern: one row for each pattern that occurs in a group."""

    known: _Patterns
    group: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    size: int  # number of groups
    m: int  # number of categories

    def kappas(self, alpha: float, products: bool) -> GroupKappas:
        """Return the kappa of each group; the standard error is NaN where the group must be computed alone."""
        known, group, items, size, m = self.known, self.group, self.items, self.size, self.m
        patterns, pattern = known.patterns, self.pattern
        label = patterns.suggested[pattern]
        length = np.diff(patterns.start)[pattern]
        first = np.cumsum(length) - length
        entry = np.repeat(patterns.start[pattern] - first, length) + np.arange(length.sum())
        row = group * m
        by_vote, by_label = np.repeat(row, length) + patterns.code[entry], row + label
        vote_weight = np.repeat(items, length) * known.vote_weight[entry]

        def add(numbers: Array, place: Array, bins: int) -> Array:
            return np.bincount(place, numbers, bins).astype(np.int64)

        n = add(items, group, size)
        V, W = known.vote_unit, known.pair_unit
        fits = 2 * W * V**2 * int(n.max()) ** 3 < _EXACT
        integer: Any = np.int64 if fits else object
        votes, labels = (
            add(numbers, place, size * m).reshape(size, m).astype(integer)
            for numbers, place in ((vote_weight, by_vote), (items, by_label))
        )
        differential = add(items * (known.pair_weight * known.differential)[pattern], group, size)
        number, differential = n.astype(integer), differential.astype(integer)
        squares = votes * votes
        cubed = number**3 * V**2
        on_label, same = (squares * labels).sum(axis=1), (squares.sum(axis=1) * number)
        not_by_chance = cubed - 2 * on_label + same  # (1 - E) n^3 vote_unit^2
        missed = number * W - differential  # (1 - D) n pair_unit
        D, E, C_E = (_ratio(differential, number * W), _ratio(2 * on_label - same, cubed), _ratio(on_label, cubed))
        kappa = _ratio(W * not_by_chance - missed * number**2 * V**2, W * not_by_chance)
        C, L = _ratio(votes, (number * V)[:, None]), _ratio(labels, number[:, None])

        slope = C * (2 * L - 1)
        lean = np.add.reduceat(slope.ravel()[by_vote] * known.share[entry], first)
        eps = 2 * (lean + (C**2).ravel()[by_label] - E[group] - C_E[group])
        d = known.d[pattern]
        with np.errstate(divide="ignore", invalid="ignore"):
            phi = ((d - D[group]) - (1 - kappa)[group] * eps) / (1 - E)[group]
            least, greatest = _extremes(C, L, kappa)
        alone = ~(1 - E >= _CLOSE) | (n < 2)
        u, e = 1 - d, np.where(alone[group], 0, (1 - E)[group] - eps)
        uu = ue = ee = np.full(size, np.nan)
        if products:
            uu, ue, ee = (group_sums(product * items, group, size) for product in (u * u, u * e, e * e))
        total = group_sums(np.where(alone[group], 0, phi * phi * items), group, size)
        total[total <= ROUNDING**2 * n] = 0
        several = np.maximum(n, 2)
        squares = several * (several - 1) * (total * several / (several - 1) / several**2)
        unknown = alone | ((squares == 0) & (kappa != 1))
        safe: list[Any] = [np.where(unknown, 0, values) for values in (kappa, E, least, greatest)]
        arrays: list[Any] = [*safe[:2], several, squares, *safe[2:], *[1 / several] * 3, several - 1]
        whole = Basis(*arrays)
        low, high = beta_limits(whole, alpha)
        se = np.sqrt(squares / (several * (several - 1)))
        se, low, high, spread = (np.where(unknown, np.nan, x) for x in (se, low, high, lower_variance(whole)))
        missed, chance, weight = _ratio(missed, number * W), _ratio(not_by_chance, cubed), n.astype(np.float64)
        return GroupKappas(n, kappa, se, low, high, missed, chance, spread, weight, uu, ue, ee)


def _ratio(top: Array, bottom: Array) -> Floats:
    """Return the ratios of integers, rounded once; NaN where the denominator is 0."""
    ratio: Floats = (top / np.where(bottom == 0, 1, bottom)).astype(np.float64)
    return np.where(bottom == 0, np.nan, ratio)


def _extremes(C: Floats, L: Floats, kappa: Floats) -> tuple[Floats, Floats]:
    """Return (G,) the least and the greatest influence of an item whose votes are all equal; see ``extremes``."""
    others, unlabeled = _complement(C), _complement(L)
    labels = others * (1 + C)
    on_label = (L * labels).sum(axis=1)
    whole = on_label + (C * C * unlabeled).sum(axis=1)
    votes = others + 2 * C * unlabeled
    occurs = C + L > 0

    def phi(of_votes: Any, one_minus_d: int) -> Floats:
        eps = 2 * ((whole + on_label)[:, None] - of_votes - labels)
        value: Floats = (1 - kappa[:, None]) * (1 - eps / whole[:, None]) - one_minus_d / whole[:, None]
        return value

    candidates = [phi(votes, 0)]
    for sign in (1, -1):
        # The category with the smallest value, and for the label that it is itself, the next one.
        ranked = np.where(occurs, sign * votes, np.inf)
        order = ranked.argmin(axis=1)
        at = np.arange(len(C)), order
        best = ranked[at]
        ranked[at] = np.inf
        other = np.broadcast_to(best[:, None], C.shape).copy()
        other[at] = ranked.min(axis=1)
        candidates.append(phi(np.where(np.isinf(other), votes, sign * other), 2))
    low, high = np.min(candidates, axis=0), np.max(candidates, axis=0)
    ends = np.where(occurs, low, np.inf).min(axis=1), np.where(occurs, high, -np.inf).max(axis=1)
    least, greatest = (np.where(np.abs(end) < ROUNDING, 0, end) for end in ends)
    return least, greatest


def _complement(shares: Floats) -> Floats:
    """Return 1 - shares, whose rows sum to 1; of the largest in a row as the sum of the others."""
    found: Floats = 1 - shares
    at = np.arange(len(shares)), shares.argmax(axis=1)
    others = shares.copy()
    others[at] = 0
    found[at] = others.sum(axis=1)
    return found
