"""Items on which one more vote would help most."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dhkappa.core import Array, Floats, Integers
from dhkappa.core.grouping import Patterns
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted
from dhkappa.stats.review import vote_texts
from dhkappa.stats.sample import check_integer
from dhkappa.table import Table

_DIGITS = 12  # scores that agree to so many digits are equal up to rounding


def next_votes(item_votes: ItemVotes, labeler: str, limit: int = 100) -> Table:
    """Return the items on which one more vote would help most; see ``Audit.next_votes``."""
    limit = check_integer("limit", limit, 1)
    rows = item_votes.labeled_patterns(labeler)
    patterns, categories = rows.patterns, rows.categories
    counts = patterns.suggested >= 0
    if rows.weight is not None:
        counts &= rows.weight > 0
    kept = np.flatnonzero(counts)
    patterns = patterns.take(kept)
    score = vote_scores(patterns, len(categories))
    order = np.lexsort((patterns.vote_totals(), -np.round(score, _DIGITS)))  # stable: then by position
    places, names = _items(item_votes, kept, patterns, score, order, limit)
    chosen = patterns.take(places)
    totals = chosen.vote_totals().tolist()
    columns: dict[str, list[Any]] = {
        "item": names,
        "suggested": [categories[code] for code in chosen.suggested.tolist()],
        "n_votes": totals,
        "votes": vote_texts(chosen, categories),
        "reason": _reasons(chosen),
        "score": score[places].tolist(),
    }
    total = counted(int(patterns.items.sum()), "item")
    return Table(columns, title=f"{labeler}: {len(names):,} of {total}, those first where one more vote helps most")


def vote_scores(patterns: Patterns, n_categories: int) -> Floats:
    """Return (K,) the probability that one more vote changes whether the suggested label leads, is tied, or trails.

    Vote j has probability ``(v_j + q_j) / (N + 1)``: v_j of the N votes are for j, and q_j is the share of j among all
    votes on items with the same suggested label (the same for all categories, if there are none).
    """
    K, m, label = len(patterns), n_categories, patterns.suggested
    row, code, votes = patterns.row(), patterns.code, patterns.votes.astype(np.float64)
    n_votes = patterns.vote_totals()
    _, pair = np.unique(label[row].astype(np.int64) * m + code, return_inverse=True)  # of a label and a category
    each = votes * patterns.items[row]
    total = np.bincount(label[row], each, m)
    q = np.bincount(pair, each)[pair] / total[label[row]]
    on_label, most = np.zeros(K), np.zeros(K)  # votes for the label, and for the most frequent other category
    hit = code == label[row]
    on_label[row[hit]] = votes[hit]
    np.maximum.at(most, row[~hit], votes[~hit])
    # A category in ``first`` has the most votes of the others; if there are no votes, all others have.
    first = ~hit & (votes == most[row])
    q_label = np.bincount(label[row[hit]], each[hit], m) / np.maximum(total, 1)
    q_label = np.where(total > 0, q_label, 1 / max(m, 1))[label]
    for_label = (on_label + q_label) / (n_votes + 1)
    for_first = np.bincount(row[first], (votes + q)[first], K) / (n_votes + 1)
    for_others = (n_votes - on_label + 1 - q_label) / (n_votes + 1)
    for_first = np.where(most == 0, for_others, for_first)
    lead = on_label - most
    # One vote for the label changes a lead of 0 or -1, one for the first of the others a lead of 0 or 1.
    changed: Floats = np.isin(lead, (0, -1)) * for_label + np.isin(lead, (0, 1)) * for_first
    return changed


def _items(
    item_votes: ItemVotes, kept: Integers, patterns: Patterns, score: Array, order: Integers, n: int
) -> tuple[Integers, list[Any]]:
    """Return the pattern and the name of each of the first ``n`` items."""
    each, names = patterns.items, item_votes.item_names()
    if item_votes.find is not None:
        before = np.cumsum(each[order]) - each[order]
        found = item_votes.find(kept[order[before < n]].tolist(), n)
        return np.searchsorted(kept, [place for place, _ in found]), [name for _, name in found]
    if item_votes.group is None:
        places = order[:n]
        return places, [names[item] for item in kept[places].tolist()]
    # Equal scores of several patterns: by position of the items.
    keys = np.round(score, _DIGITS)[order], patterns.vote_totals()[order]
    fresh = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    rank_of = np.full(len(item_votes.columns), order.size, np.int64)
    rank_of[kept[order]] = np.append(0, np.cumsum(fresh))[: order.size]
    by_item = rank_of[item_votes.group]
    items = np.argsort(by_item, kind="stable")
    items = items[by_item[items] < order.size][:n]
    return np.searchsorted(kept, item_votes.group[items]), [names[item] for item in items.tolist()]


def _reasons(patterns: Patterns) -> list[str]:
    """Say why a vote would help, without naming the suggested label."""
    found = []
    for first, end in pairwise(patterns.start.tolist()):
        votes = sorted(patterns.votes[first:end].tolist(), reverse=True)
        ahead = votes[0] - (votes[1] if len(votes) > 1 else 0) if votes else 0
        if not votes:
            found.append("no vote")
        elif sum(votes) == 1:
            found.append("one vote, excluded from the audit")
        elif ahead == 0:
            found.append("votes tied")
        else:
            found.append(f"decided by {counted(ahead, 'vote')}" if len(votes) > 1 else f"{sum(votes)} votes, all alike")
    return found
