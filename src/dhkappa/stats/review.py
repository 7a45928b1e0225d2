"""Kappa item by item: what each contributes, kappa without it, and the items to review first."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dhkappa.core.items import Ballots
from dhkappa.core.labels import Label
from dhkappa.core.patterns import Patterns
from dhkappa.errors import DataError, counted, shown
from dhkappa.stats.influence import influence
from dhkappa.stats.kappa import Parts, estimate_dh
from dhkappa.stats.sample import Pool, Sample, item_sample
from dhkappa.stats.sums import sums
from dhkappa.stats.terms import Numbers, Terms, terms
from dhkappa.table import Table

_CANCELLED = 64  # a difference this many times smaller than its first term is computed anew, exactly
_ASKED = 100  # items that an engine is asked for where no number is given
_DIGITS = 12  # influence values that agree so far differ by rounding only


def contributions(terms: Terms) -> Numbers:
    """Return (K,) what an item of each pattern contributes; the weighted mean over items is kappa.

    ``(d_i - E_j) / (1 - E)`` with j the item's suggested label and ``E_j = 2 C_j^2 - sum_k C_k^2`` the
    differential that chance gives this label.
    """
    short = _short_of_certain(terms.C)
    found: Numbers = (short[terms.suggested] - (1 - terms.d)) / (terms.L * short).sum()
    return found


def leave_one_out(terms: Terms) -> Numbers:
    """Return (K,) kappa without one item of each pattern; NaN where the other items leave it undefined.

    Without an item of weight w among W, each mean x over items becomes ``(W x - w x_i) / (W - w)``. The gap
    1 - E is linear in C, in C once more, and in L: two votes and a label, drawn on their own. So the gap
    without the item is a sum over the ways to draw each of the three from all items or from this one.
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
        """Draw one vote from the item: the other vote differs, or both agree on what is not suggested."""
        return terms.row_sums(c * (other + 2 * share * not_suggested))

    weight = (terms.weight + 0 * d) / terms.items  # of one item; 0 * d makes it a fraction where d is
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # one item may outweigh all others
        v = weight / (n - weight)
        a = 1 + v
        short = _short_of_certain(C)
        whole = (L * short).sum()  # 1 - E
        rest = (
            a**3 * whole
            - a**2 * v * (short[terms.suggested] + 2 * gap(C[code], not_C[code], not_L[code]))
            + a * v**2 * (2 * gap(C[code], not_C[code], not_label) + gap(c, not_c, not_L[code]))
            - v**3 * gap(c, not_c, not_label)
        )
        disagreement = a * (1 - terms.kappa) * whole - v * (1 - d)  # 1 - D without the item
        sound = (rest > a**3 * whole / _CANCELLED).astype(np.bool_)
    found[sound] = 1 - np.maximum(disagreement[sound], 0) / rest[sound]
    # Hardly ever more than two rows, as such an item is nearly all of 1 - E; and the only one of its pattern, as
    # an equal one would keep the rest above an eighth of the first term.
    for row in np.flatnonzero(~sound).tolist():
        kappa = _parts(_without(terms.sample, row)).kappa
        found[row] = math.nan if kappa is None else kappa
    return found


def review(ballots: Ballots, labeler: str, *, most: int | None = None, pool: Pool = None) -> Table:
    """Return the items of a labeler in the order to review them, those that the panel most clearly rejects first.

    The lowest agreement differential comes first: -1 where all votes are for one other label. Of equal ones
    the item with more votes, then the one that pulls kappa down most, then the one that came first.

    Parameters
    ----------
    ballots
        The votes on each item. Items with fewer than two votes or without a suggested label are left out.
    labeler
        Whose suggested labels to review.
    most
        How many items to return at most; None for all, or for 100 where an engine holds the items and is asked.

    Returns
    -------
    Table
        A row for each item: ``item``, ``suggested``, ``panel`` (the label with most votes; None where several
        have as many, and ``tie`` is then True), ``votes`` as text, ``n_votes``, ``suggested_share`` and
        ``panel_share`` of the votes, ``differential`` (pairs of votes that agree on the suggested label less
        those that agree on another, as shares), ``contribution`` (the mean is kappa), ``influence`` (how
        kappa moves as the item gains weight) and ``kappa_without`` the item, where the others keep their
        weights, also those by the size of their stratum. The last three are NaN where kappa is undefined.

    Examples
    --------
    >>> from dhkappa.core.items import read_ballots
    >>> votes = [["cat", "cat", "cat"], ["dog", "dog", "cat"], ["dog", "dog", "dog"]]
    >>> table = review(read_ballots(votes, {"rule": ["cat", "cat", "cat"]}), "rule", most=2)
    >>> [(row["item"], row["suggested"], row["panel"], row["votes"]) for row in table]
    [(2, 'cat', 'dog', 'dog: 3'), (1, 'cat', 'dog', 'dog: 2, cat: 1')]
    """
    limit = check_most(most)
    sample, places = item_sample(ballots, labeler, pool)
    n = len(places)
    n_votes = sample.patterns.vote_totals()
    parts = _parts(sample) if n else None
    if parts is not None and parts.kappa is not None:
        known = terms(sample, parts)
        d, added, phi, without = known.d, contributions(known), influence(known), leave_one_out(known)
        pull = np.round(phi * known.weight / known.items, _DIGITS)
    else:  # no item, or all votes and labels alike
        d, pull = np.ones(n), np.zeros(n)
        added = phi = without = np.full(n, math.nan)
    order = np.lexsort((pull, -n_votes, d))
    if ballots.find is None:
        order = order[:limit]
        names = [ballots.names[place] for place in places[order].tolist()]
    else:
        limit = _ASKED if limit is None else limit
        order = order[np.lexsort((np.array(ballots.names)[places[order]], pull[order], -n_votes[order], d[order]))]
        before = np.cumsum(sample.patterns.items[order]) - sample.patterns.items[order]
        rank = {place: row for row, place in enumerate(places.tolist())}
        found = ballots.find(places[order[before < limit]].tolist(), limit)
        order, names = np.array([rank[place] for place, _ in found], np.int64), [name for _, name in found]
    return Table(
        {
            "item": names,
            **_verdicts(sample.patterns.take(order), ballots.categories),
            "differential": d[order].tolist(),
            "contribution": added[order].tolist(),
            "influence": phi[order].tolist(),
            "kappa_without": without[order].tolist(),
        },
        title=f"{labeler}: {_extent(len(order), int(sample.patterns.items.sum()))}, most clearly rejected first",
    )


def _others(shares: Numbers) -> Numbers:
    """Return (m,) the sum of all other entries, without cancelling where one entry is nearly all."""
    others: Numbers = shares.sum() - shares
    top = int(shares.argmax())
    others[top] = np.delete(shares, top).sum()
    return others


def _short_of_certain(C: Numbers) -> Numbers:
    """Return (m,) 1 - E_j: two votes differ, or count twice as they agree on another label than j."""
    short: Numbers = (C * _others(C)).sum() + 2 * _others(C**2)
    return short


def _parts(sample: Sample) -> Parts:
    return estimate_dh(sums(sample, weighted=sample.weighted), sample.categories).parts


def _without(sample: Sample, row: int) -> Sample:
    """Return the sample without a pattern."""
    kept = np.delete(np.arange(len(sample.patterns)), row)
    patterns = sample.patterns.take(kept)
    mass = sample.mass[kept] if sample.weighted else patterns.items
    return replace(sample, patterns=patterns, mass=mass, stratum=sample.stratum[kept])


def check_most(most: Any) -> int | None:
    """Check how many items are wanted."""
    if most is None:
        return None
    try:
        limit = 0 if isinstance(most, (bool, np.bool_)) else operator.index(most)
    except TypeError:
        limit = 0
    if limit < 1:
        raise DataError(f"most must be a whole number of items from 1 on, or None for all: got {shown([most])}.")
    return limit


def _extent(rows: int, n: int) -> str:
    return counted(n, "item") if rows == n else f"{rows:,} of {counted(n, 'item')}"


def _verdicts(patterns: Patterns, categories: tuple[Label, ...]) -> dict[str, list[Any]]:
    """Return columns that set what was suggested beside what the panel says, a row for each pattern."""
    first, length, n_votes = patterns.start[:-1], np.diff(patterns.start), patterns.vote_totals()
    votes = patterns.votes.astype(np.int64)
    most = np.maximum.reduceat(votes, first) if len(patterns) else votes
    leads = np.flatnonzero(votes == np.repeat(most, length))
    leader = np.searchsorted(leads, patterns.start)  # row k is led by entries leads[leader[k] : leader[k + 1]]
    tie = (np.diff(leader) > 1).tolist()
    panel = patterns.code[leads[leader[:-1]]].tolist()
    on_label = np.zeros(len(patterns), np.int64)
    row = np.repeat(np.arange(len(patterns)), length)
    hit = patterns.code == patterns.suggested[row]
    on_label[row[hit]] = votes[hit]
    return {
        "suggested": [categories[code] for code in patterns.suggested.tolist()],
        "panel": [None if tied else categories[code] for code, tied in zip(panel, tie, strict=True)],
        "tie": tie,
        "votes": _texts(patterns, categories),
        "n_votes": n_votes.tolist(),
        "suggested_share": (on_label / n_votes).tolist(),
        "panel_share": (most / n_votes).tolist(),
    }


def _texts(patterns: Patterns, categories: tuple[Label, ...]) -> list[str]:
    """Write the votes on an item of each pattern, most first: ``dog: 3, cat: 1``."""
    names = [_named(label) for label in categories]
    code, votes = patterns.code.tolist(), patterns.votes.tolist()
    found = []
    for first, end in pairwise(patterns.start.tolist()):
        order = sorted(range(first, end), key=votes.__getitem__, reverse=True)  # stable: ties keep their order
        found.append(", ".join([f"{names[code[entry]]}: {votes[entry]}" for entry in order]))
    return found


def _named(label: Label) -> str:
    """Quote a label that would not stand out among others."""
    text = str(label)
    return text if text and text == text.strip() and "," not in text and ":" not in text else repr(text)
