"""Kappa by item: contribution, leave-one-out kappa, and the review queue."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dhkappa.core import Array, Integers, Label
from dhkappa.core.grouping import Patterns
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import quoted_names
from dhkappa.errors import counted
from dhkappa.stats.influence import (
    Terms,
    category_chance,
    influence,
    other_shares,
    terms,
)
from dhkappa.stats.kappa import KappaSums, distinct, sample_parts, sums, units
from dhkappa.stats.sample import Pool, Sample, check_integer, sample_of, weight_of_one
from dhkappa.stats.summation import ratios
from dhkappa.stats.weights import Weights, agreeing_pairs, pair_sums
from dhkappa.table import Table

_CANCELLED = 64  # a difference this many times smaller than its first term is recomputed exactly
_DEFAULT_LIMIT = 100  # if the items are fetched from an engine
_ROWS = 1 << 12  # rows for which kappa without an item is computed at once
_DIGITS = 12  # influence values that agree to so many digits are equal up to rounding


@np.errstate(over="ignore", invalid="ignore")  # one item may have almost all the weight
def contributions(terms: Terms) -> Array:
    """Return (K,) the contribution of an item of each pattern; the weighted mean over items is kappa.

    ``(d_i - E_j) / (1 - E)`` with j the suggested label and E_j as in ``category_chance``.
    """
    short = category_chance(terms)
    found: Array = (short[terms.suggested] - (1 - terms.d)) / (terms.L * short).sum()
    return found


def leave_one_out(terms: Terms, whole: Sample | None = None, rows: Integers | None = None) -> Array:
    """Return (K,) kappa without one item of each pattern, NaN if it is undefined.

    Without an item of weight w of W, each mean x becomes ``(W x - w x_i) / (W - w)``. 1 - E is the expectation over
    two votes and a label drawn independently, so its value without the item is a sum over the ways to draw each of
    the three from all items or from this one. ``terms`` may be those of some ``rows`` of the ``whole`` sample.
    """
    sample = terms.sample if whole is None else whole
    n, C, L, c, d, code = sample.n, terms.C, terms.L, terms.c, terms.d, terms.patterns.code
    found = np.full(len(d), math.nan, d.dtype)
    if n == 1:
        return found
    votes = terms.patterns.votes.astype(np.int64)
    length = np.diff(terms.patterns.start)
    not_c = c * (np.repeat(terms.patterns.vote_totals(), length) - votes) / votes
    not_C, not_L = other_shares(C), other_shares(L)
    not_label = code != np.repeat(terms.suggested, length)

    def gap(share: Array, other: Array, not_suggested: Array) -> Array:
        """Draw one vote from the item: the votes differ, or agree on a category that is not suggested."""
        return terms.row_sums(c * (other + 2 * share * not_suggested))

    weight = terms.weight / terms.items  # of one item
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # one item may have almost all the weight
        v = weight / (n - weight)
        a = 1 + v
        short = category_chance(terms)
        total = (L * short).sum()  # 1 - E
        rest = (
            _cubed(a) * total
            - a**2 * v * (short[terms.suggested] + 2 * gap(C[code], not_C[code], not_L[code]))
            + a * v**2 * (2 * gap(C[code], not_C[code], not_label) + gap(c, not_c, not_L[code]))
            - _cubed(v) * gap(c, not_c, not_label)
        )
        disagreement = a * (1 - terms.kappa) * total - v * (1 - d)  # 1 - D without the item
        sound = rest > _cubed(a) * total / _CANCELLED
    found[sound] = 1 - np.maximum(disagreement[sound], 0) / rest[sound]
    # At most a few rows: such an item is nearly all of 1 - E, and the only one of its pattern.
    for row in np.flatnonzero(~sound).tolist():
        kept = np.delete(np.arange(len(sample.patterns)), row if rows is None else rows[row])
        patterns = sample.patterns.take(kept)
        mass = sample.mass[kept] if sample.weighted else patterns.items
        other = replace(sample, patterns=patterns, mass=mass, stratum=sample.stratum[kept], rows=None)
        kappa = sample_parts(other).kappa
        found[row] = math.nan if kappa is None else kappa
    return found


def weighted_leave_one_out(sample: Sample, rows: Integers, weights: Weights) -> Array:
    """Return kappa with agreement weights without one item of each of some rows, from exact sums; NaN if undefined."""
    patterns, total, n_votes = sample.patterns, sums(sample, weighted=sample.weighted), sample.patterns.vote_totals()
    unit = units(distinct(n_votes), 2**62)  # Python integers
    differential = pair_sums(patterns, weights).differential(weights.unit) * unit.per_pair[n_votes]
    whole = int((differential * sample.mass).sum())
    found = []
    for part in np.split(rows, range(_ROWS, rows.size, _ROWS)):
        own, place = patterns.take(part), np.arange(part.size)
        each = (sample.mass[part] // own.items).astype(object)
        votes, labels = (np.tile(np.array(of, object), (part.size, 1)) for of in (total.votes, total.labels))
        labels[place, own.suggested] -= each
        votes[np.repeat(place, np.diff(own.start)), own.code] -= own.votes.astype(object) * np.repeat(
            each * unit.per_vote[own.vote_totals()], np.diff(own.start)
        )
        same, on = weights.chance(votes, labels)
        rest = KappaSums(unit, total.n - each, whole - each * differential[part], same, on, weights.unit)
        top, bottom = (values.astype(object) for values in rest.kappa)
        kappa = np.full(part.size, math.nan)
        kappa[bottom != 0] = ratios(top[bottom != 0], bottom[bottom != 0])
        found.append(kappa)
    return np.concatenate(found)


def review_queue(
    item_votes: ItemVotes,
    labeler: str,
    *,
    limit: int | None = None,
    pool: Pool = None,
    sample: Sample | None = None,
    weights: Weights | None = None,
) -> Table:
    """Return the items to review, those that the votes most clearly reject first; see ``Audit.review``.

    Items are sorted by differential, then by number of votes (most first), then by influence times weight, then by
    position.
    """
    limit = None if limit is None else check_integer("limit", limit, 1)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool) if sample is None else sample
    if limit is None:
        limit = max(sample.n, 1) if item_votes.find is None else _DEFAULT_LIMIT
    scores = _Scores(sample, weights)
    rows, names = _first(item_votes, scores, limit)
    shown, place = np.unique(rows, return_inverse=True)
    columns = vote_columns(sample.patterns.take(shown), item_votes.categories) | scores.columns(shown)
    places = place.tolist()
    columns = {"item": names, **{name: [values[k] for k in places] for name, values in columns.items()}}
    number = "all" if len(names) == sample.n else f"{len(names):,} of"
    return Table(columns, title=f"{labeler}: {number} {counted(sample.n, 'item')}, most clearly rejected first")


class _Scores:
    """The differential of every row, and what else the review queue shows, for some rows."""

    def __init__(self, sample: Sample, weights: Weights | None) -> None:
        self.sample, self.n_votes, self.weight = sample, sample.patterns.vote_totals(), weight_of_one(sample)
        self.weights, self.parts = weights, sample_parts(sample, weights) if sample.n else None
        all_pairs = self.n_votes * (self.n_votes - 1) // 2
        if weights is None:
            self.d = agreeing_pairs(sample.patterns)[1] / all_pairs
        else:
            differential = pair_sums(sample.patterns, weights).differential(weights.unit)
            self.d = (differential / (all_pairs.astype(differential.dtype) * weights.unit**2)).astype(np.float64)

    def terms(self, rows: Integers) -> Terms | None:
        """Return the terms of one item of each row; None if kappa is undefined."""
        if self.parts is None or self.parts.kappa is None:
            return None
        one = replace(self.sample.patterns.take(rows), items=np.ones(rows.size, np.int64))
        known = terms(replace(self.sample, patterns=one, mass=one.items, rows=None), self.parts, self.weights)
        return replace(known, weight=self.weight[rows])

    def pull(self, rows: Integers) -> Array:
        """Return influence times weight of one item of each row."""
        known = self.terms(rows)
        return np.zeros(rows.size) if known is None else np.round(influence(known) * known.weight, _DIGITS)

    def columns(self, rows: Integers) -> dict[str, list[Any]]:
        """Return the columns about kappa, for one item of each row."""
        known = self.terms(rows)
        added = phi = without = np.full(rows.size, math.nan)
        if known is not None:
            added, phi = contributions(known), influence(known)
            if self.weights is None:
                without = leave_one_out(known, self.sample, rows)
            else:
                without = weighted_leave_one_out(self.sample, rows, self.weights)
        found = {"differential": self.d[rows], "contribution": added, "influence": phi, "kappa_without": without}
        return {name: values.tolist() for name, values in found.items()}


def _first(item_votes: ItemVotes, scores: _Scores, limit: int) -> tuple[Integers, list[Any]]:
    """Return the row and the name of each of the first items to review."""
    d, places, each = scores.d, scores.sample.kept, scores.sample.patterns.items
    assert places is not None
    # Rows stand for one item or more, so no row with a larger differential is among the first.
    rows = np.flatnonzero(d <= np.partition(d, limit - 1)[limit - 1]) if limit < d.size else np.arange(d.size)
    keys = scores.pull(rows), -scores.n_votes[rows], d[rows]
    names = item_votes.item_names()
    if item_votes.find is not None:
        rows = rows[np.lexsort((np.array(names)[places[rows]], *keys))]
        before = np.cumsum(each[rows]) - each[rows]
        found = item_votes.find(places[rows[before < limit]].tolist(), limit)
        return np.searchsorted(places, [place for place, _ in found]), [name for _, name in found]
    order = np.lexsort(keys)
    rows = rows[order]
    if item_votes.group is None:
        rows = rows[:limit]
        items = places[rows]
    else:
        fresh = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
        rank = np.append(0, np.cumsum(fresh))[: rows.size]
        last = int(np.searchsorted(np.cumsum(np.bincount(rank, each[rows])), limit))
        rank_of = np.full(len(item_votes.columns), rows.size, np.min_scalar_type(rows.size))
        rank_of[places[rows]] = rank
        by_item = rank_of[item_votes.group]
        items = np.flatnonzero((by_item <= last) & (by_item < rows.size))
        items = items[np.argsort(by_item[items], kind="stable")][:limit]  # equal ones by position
        rows = np.searchsorted(places, item_votes.group[items])
    return rows, [names[item] for item in items.tolist()]


def _cubed(values: Array) -> Array:
    """Return the third powers, the same on every machine: the last bit of NumPy's depends on the processor."""
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([value**3 for value in distinct.tolist()])[place]


def vote_columns(patterns: Patterns, categories: tuple[Label, ...]) -> dict[str, list[Any]]:
    """Return the columns on the suggested label and the votes, one row per pattern."""
    first, length, n_votes = patterns.start[:-1], np.diff(patterns.start), patterns.vote_totals()
    votes = patterns.votes.astype(np.int64)
    most = np.maximum.reduceat(votes, first) if len(patterns) else votes
    leads = np.flatnonzero(votes == np.repeat(most, length))
    leader = np.searchsorted(leads, patterns.start)  # row k is led by entries leads[leader[k] : leader[k + 1]]
    tie = (np.diff(leader) > 1).tolist()
    majority = patterns.code[leads[leader[:-1]]].tolist()
    row, on_label = np.repeat(np.arange(len(patterns)), length), np.zeros(len(patterns), np.int64)
    hit = patterns.code == patterns.suggested[row]
    on_label[row[hit]] = votes[hit]
    return {
        "suggested": [categories[code] for code in patterns.suggested.tolist()],
        "majority": [None if tied else categories[code] for code, tied in zip(majority, tie, strict=True)],
        "tie": tie,
        "votes": vote_texts(patterns, categories),
        "n_votes": n_votes.tolist(),
        "suggested_share": (on_label / n_votes).tolist(),
        "majority_share": (most / n_votes).tolist(),
    }


def vote_texts(patterns: Patterns, categories: tuple[Label, ...]) -> list[str]:
    """Return the votes on an item of each pattern as text, most first: ``dog: 3, cat: 1``."""
    names = quoted_names(categories)
    code, votes = patterns.code.tolist(), patterns.votes.tolist()
    rows = (range(first, end) for first, end in pairwise(patterns.start.tolist()))
    orders = (sorted(row, key=votes.__getitem__, reverse=True) for row in rows)  # stable: ties keep their order
    return [", ".join([f"{names[code[entry]]}: {votes[entry]}" for entry in order]) for order in orders]
