"""Kappa by item: contribution, leave-one-out kappa, and the review queue."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.grouping import Patterns
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted
from dhkappa.stats.influence import Numbers, Terms, influence, terms
from dhkappa.stats.kappa import Parts, dh_parts, sums
from dhkappa.stats.sample import Pool, Sample, check_integer, sample_of
from dhkappa.table import Table

_CANCELLED = 64  # a difference this many times smaller than its first term is recomputed exactly
_DEFAULT_LIMIT = 100  # if the items are fetched from an engine
_DIGITS = 12  # influence values that agree to so many digits are equal up to rounding


def contributions(terms: Terms) -> Numbers:
    """Return (K,) the contribution of an item of each pattern; the weighted mean over items is kappa.

    ``(d_i - E_j) / (1 - E)`` with j the suggested label and ``E_j = 2 C_j^2 - sum_k C_k^2``.
    """
    short = _one_minus_E(terms.C)
    found: Numbers = (short[terms.suggested] - (1 - terms.d)) / (terms.L * short).sum()
    return found


def leave_one_out(terms: Terms) -> Numbers:
    """Return (K,) kappa without one item of each pattern, NaN if it is undefined.

    Without an item of weight w of W, each mean x becomes ``(W x - w x_i) / (W - w)``. 1 - E is the expectation over
    two votes and a label drawn independently, so its value without the item is a sum over the ways to draw each of
    the three from all items or from this one.
    """
    n, C, L, c, d, code = terms.n, terms.C, terms.L, terms.c, terms.d, terms.patterns.code
    found = np.full(len(d), math.nan, d.dtype)
    if n == 1:
        return found
    votes = terms.patterns.votes.astype(np.int64)
    length = np.diff(terms.patterns.start)
    not_c = c * (np.repeat(terms.patterns.vote_totals(), length) - votes) / votes
    not_C, not_L = _others(C), _others(L)
    not_label = code != np.repeat(terms.suggested, length)

    def gap(share: Numbers, other: Numbers, not_suggested: Numbers) -> Numbers:
        """Draw one vote from the item: the votes differ, or agree on a category that is not suggested."""
        return terms.row_sums(c * (other + 2 * share * not_suggested))

    weight = terms.weight / terms.items  # of one item
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # one item may have almost all the weight
        v = weight / (n - weight)
        a = 1 + v
        short = _one_minus_E(C)
        whole = (L * short).sum()  # 1 - E
        rest = (
            _cubed(a) * whole
            - a**2 * v * (short[terms.suggested] + 2 * gap(C[code], not_C[code], not_L[code]))
            + a * v**2 * (2 * gap(C[code], not_C[code], not_label) + gap(c, not_c, not_L[code]))
            - _cubed(v) * gap(c, not_c, not_label)
        )
        disagreement = a * (1 - terms.kappa) * whole - v * (1 - d)  # 1 - D without the item
        sound = rest > _cubed(a) * whole / _CANCELLED
    found[sound] = 1 - np.maximum(disagreement[sound], 0) / rest[sound]
    # At most a few rows: such an item is nearly all of 1 - E, and the only one of its pattern.
    for row in np.flatnonzero(~sound).tolist():
        kept = np.delete(np.arange(len(d)), row)
        patterns = terms.patterns.take(kept)
        mass = terms.sample.mass[kept] if terms.sample.weighted else patterns.items
        kappa = _parts(replace(terms.sample, patterns=patterns, mass=mass, stratum=terms.sample.stratum[kept])).kappa
        found[row] = math.nan if kappa is None else kappa
    return found


def review_queue(item_votes: ItemVotes, labeler: str, *, limit: int | None = None, pool: Pool = None) -> Table:
    """Return the items to review, those that the votes most clearly reject first; see ``Audit.review``.

    Items are sorted by differential, then by number of votes (most first), then by influence times weight, then by
    position.
    """
    limit = None if limit is None else check_integer("limit", limit, 1)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool)
    places = sample.kept
    assert places is not None
    n, n_votes = len(places), sample.patterns.vote_totals()
    parts = _parts(sample) if n else None
    if parts is not None and parts.kappa is not None:
        known = terms(sample, parts)
        d, added, phi, without = known.d, contributions(known), influence(known), leave_one_out(known)
        pull = np.round(phi * known.weight / known.items, _DIGITS)
    else:  # no item, or all votes and labels are one category
        d, pull = np.ones(n), np.zeros(n)
        added = phi = without = np.full(n, math.nan)
    if item_votes.find is None:
        order = np.lexsort((pull, -n_votes, d))[:limit]
        names = [item_votes.item_names()[place] for place in places[order].tolist()]
    else:
        limit = _DEFAULT_LIMIT if limit is None else limit
        order = np.lexsort((np.array(item_votes.item_names())[places], pull, -n_votes, d))
        before = np.cumsum(sample.patterns.items[order]) - sample.patterns.items[order]
        rank = {place: row for row, place in enumerate(places.tolist())}
        found = item_votes.find(places[order[before < limit]].tolist(), limit)
        order, names = np.array([rank[place] for place, _ in found], np.int64), [name for _, name in found]
    columns = {"item": names, **_vote_columns(sample.patterns.take(order), item_votes.categories)}
    scores = {"differential": d, "contribution": added, "influence": phi, "kappa_without": without}
    columns |= {name: values[order].tolist() for name, values in scores.items()}
    shown = "all" if len(order) == sample.n else f"{len(order):,} of"
    return Table(columns, title=f"{labeler}: {shown} {counted(sample.n, 'item')}, most clearly rejected first")


def _cubed(values: Numbers) -> Numbers:
    """Return the third powers, the same on every machine: the last bit of NumPy's depends on the processor."""
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([value**3 for value in distinct.tolist()])[place]


def _others(shares: Numbers) -> Numbers:
    """Return (m,) the sum of all other entries, without cancellation if one entry dominates."""
    others: Numbers = shares.sum() - shares
    top = int(shares.argmax())
    others[top] = np.delete(shares, top).sum()
    return others


def _one_minus_E(C: Numbers) -> Numbers:
    """Return (m,) 1 - E_j: the votes differ, or agree on a category other than j, which counts twice."""
    short: Numbers = (C * _others(C)).sum() + 2 * _others(C**2)
    return short


def _parts(sample: Sample) -> Parts:
    return dh_parts(sums(sample, weighted=sample.weighted), sample.categories)


def _vote_columns(patterns: Patterns, categories: tuple[Label, ...]) -> dict[str, list[Any]]:
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
        "votes": _texts(patterns, categories),
        "n_votes": n_votes.tolist(),
        "suggested_share": (on_label / n_votes).tolist(),
        "majority_share": (most / n_votes).tolist(),
    }


def _texts(patterns: Patterns, categories: tuple[Label, ...]) -> list[str]:
    """Return the votes on an item of each pattern as text, most first: ``dog: 3, cat: 1``."""
    texts = map(str, categories)  # quoted if they contain separators or outer spaces
    names = [text if text and text == text.strip() and not {*text} & {",", ":"} else repr(text) for text in texts]
    code, votes = patterns.code.tolist(), patterns.votes.tolist()
    rows = (range(first, end) for first, end in pairwise(patterns.start.tolist()))
    orders = (sorted(row, key=votes.__getitem__, reverse=True) for row in rows)  # stable: ties keep their order
    return [", ".join([f"{names[code[entry]]}: {votes[entry]}" for entry in order]) for order in orders]
