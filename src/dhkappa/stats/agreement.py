"""Agreement of annotators with each other, by category, annotator and item; one annotator against a labeler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dhkappa.core import Floats
from dhkappa.core.grouping import LabeledPatterns
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted
from dhkappa.stats.intervals import ConfidenceInterval
from dhkappa.stats.kappa import above_chance, estimate_fleiss, rounded
from dhkappa.stats.review import vote_columns
from dhkappa.stats.sample import Sample, check_level, sample_of
from dhkappa.stats.summation import exact_sum
from dhkappa.table import Table


def category_agreement(sample: Sample) -> Table:
    """Return the agreement of annotators by category, the most frequent first.

    ``agreement`` is the share of pairs with a vote for the category in which the other vote is for it, too. ``kappa``
    is Fleiss' kappa of the category against all others, ``1 - mean_i P_ij (N_i - P_ij) / (N_i (N_i - 1)) / (C_j (1 -
    C_j))``, which is the formula of Fleiss (1971) if all items have the same number of votes.
    """
    patterns, m = sample.patterns, len(sample.categories)
    n_votes, items = patterns.vote_totals(), patterns.items
    row = patterns.row()
    votes, total, each = patterns.votes.astype(np.float64), n_votes[row].astype(np.float64), _weight_shares(sample)[row]
    C = np.bincount(patterns.code, each * votes / total, m)
    both = np.bincount(patterns.code, each * votes * (votes - 1) / (total * (total - 1)), m)
    apart = np.bincount(patterns.code, each * votes * (total - votes) / (total * (total - 1)), m)
    number = np.bincount(patterns.code, items[row] * votes, m)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement, kappa = both / C, 1 - apart / (C * (1 - C))
    order = np.argsort(-C, kind="stable")
    columns = {
        "category": [sample.categories[code] for code in order.tolist()],
        "n_votes": number[order].astype(np.int64).tolist(),
        "vote_share": C[order].tolist(),
        "agreement": agreement[order].tolist(),
        "kappa": kappa[order].tolist(),
    }
    return Table(columns, title="Agreement of annotators by category")


def _weight_shares(sample: Sample) -> Floats:
    """Return (K,) the share of each pattern's items in the total weight."""
    return np.asarray(sample.mass / sample.mass.sum(), np.float64)  # mass may be integers of any size


def annotator_agreement(item_votes: ItemVotes, sample: Sample) -> Table:
    """Return how far each annotator agrees with the others, the lowest score first.

    ``agree`` is the mean share of the other votes on an item that equal the annotator's. ``score`` is the mean of
    ``(t_ia - C_Y) / (1 - sum_k C_k^2)`` over the annotator's items, where t_ia is that share and Y the vote: votes at
    random score 0, and the mean over annotators, weighted by 1 / N_i, is Fleiss' kappa.
    """
    patterns, kept, names = sample.patterns, sample.kept, item_votes.annotators or ()
    assert kept is not None
    row_of = np.full(len(item_votes.columns), -1, np.int64)
    row_of[kept] = np.arange(kept.size)
    item, who, code = item_votes.sorted_votes
    row = row_of[item]
    row, who, code = row[row >= 0], who[row >= 0], code[row >= 0]
    entry = np.repeat(np.arange(patterns.code.size), patterns.votes)  # votes are in the order of patterns
    n_votes = patterns.vote_totals()[row]
    same = (patterns.votes[entry].astype(np.int64) - 1) / (n_votes - 1)
    each = _weight_shares(sample)[row]
    total = estimate_fleiss(sample).parts
    C = np.array([float(share) for share in total.C.values()]) if total else np.zeros(len(sample.categories))
    A, chance = len(names), 1 - float((C**2).sum())
    items, weight = np.bincount(who, patterns.items[row], A), np.bincount(who, each, A)
    with np.errstate(divide="ignore", invalid="ignore"):
        agree = np.bincount(who, each * same, A) / weight
        score = np.bincount(who, each * (same - C[code]), A) / weight / chance
    order = np.lexsort((np.arange(A), score))
    columns = {
        "annotator": [names[place] for place in order.tolist()],
        "items": items[order].astype(np.int64).tolist(),
        "agree": agree[order].tolist(),
        "score": score[order].tolist(),
    }
    return Table(columns, title="Agreement of each annotator with the others")


def disagreements(item_votes: ItemVotes, sample: Sample, limit: int | None = None) -> Table:
    """Return the items on which annotators disagree, the smallest share of agreeing pairs first, then most votes."""
    patterns, kept = sample.patterns, sample.kept
    assert kept is not None
    n_votes = patterns.vote_totals()
    votes = patterns.votes.astype(np.int64)
    agreeing = np.add.reduceat(votes * (votes - 1), patterns.start[:-1]) if len(patterns) else votes
    share = agreeing / (n_votes * (n_votes - 1))
    rows = np.flatnonzero(share < 1)
    rows = rows[np.lexsort((rows, -n_votes[rows], share[rows]))]
    found: list[tuple[int, object]] = []
    names = item_votes.item_names()
    n = int(patterns.items[rows].sum())
    most = n if limit is None else limit
    if item_votes.find is not None:
        found = item_votes.find(kept[rows].tolist(), most) if rows.size else []
    elif item_votes.group is None:
        found = [(row, names[row]) for row in kept[rows[:most]].tolist()]
    else:
        rank = np.full(len(item_votes.columns), rows.size)
        rank[kept[rows]] = np.arange(rows.size)
        by_item = rank[item_votes.group]
        items = np.flatnonzero(by_item < rows.size)
        items = items[np.argsort(by_item[items], kind="stable")][:most]
        found = [(int(item_votes.group[item]), names[item]) for item in items.tolist()]
    places = np.searchsorted(kept, [row for row, _ in found])
    columns = vote_columns(patterns.take(places), sample.categories)
    shown = {name: columns[name] for name in ("votes", "n_votes", "majority")}
    columns = {"item": [name for _, name in found], **shown, "agreement": share[places].tolist()}
    number = counted(n, "item") if len(found) == n else f"{len(found):,} of {counted(n, 'item')}"
    return Table(columns, title=f"{number} on which annotators disagree, the least agreed first")


def unlabeled_sample(item_votes: ItemVotes) -> Sample:
    """Return the items with two votes or more, one pattern per row of the votes."""
    return sample_of(item_votes.labeled_patterns(item_votes.columns.labelers[0]), labeled=False)


@dataclass(frozen=True, slots=True)
class CohenKappa:
    """Agreement of a labeler with the only vote on each item.

    Attributes
    ----------
    n_items : items with one vote and a suggested label
    agreement : share of items on which vote and label are equal
    exact : Cohen's kappa as a fraction; None if undefined
    se : large-sample standard error (Fleiss, Cohen and Everitt 1969)
    interval : confidence interval of kappa
    """

    n_items: int
    agreement: float
    exact: Fraction | None
    se: float
    interval: ConfidenceInterval

    @property
    def value(self) -> float:
        """Cohen's kappa as a float; NaN if undefined."""
        return rounded(self.exact)


def cohen_kappa(rows: LabeledPatterns, confidence_level: float = 0.95) -> CohenKappa:
    """Compute Cohen's kappa between suggested labels and votes, on the items with exactly one vote and a label.

    With n_jk items labeled j and voted k, ``kappa = (po - pe) / (1 - pe)``. Its standard error is that of the mean of
    ``phi = ((a - po) - (1 - kappa) (C_l + L_v - 2 pe)) / (1 - pe)`` over items with label l and vote v, a = [l = v].
    """
    from dhkappa.stats.special import stdtrit

    level, m, patterns = check_level(confidence_level), len(rows.categories), rows.patterns
    patterns = patterns.take((patterns.vote_totals() == 1) & (patterns.suggested >= 0))
    label, vote, items = patterns.suggested, patterns.code, patterns.items
    n = int(items.sum())
    undefined = ConfidenceInterval(math.nan, math.nan, level, "wald", "Kappa is undefined.")
    if n == 0:
        return CohenKappa(0, math.nan, None, math.nan, undefined)
    L, C = (np.bincount(codes, items, m).astype(np.int64).astype(object) for codes in (label, vote))
    po, pe = Fraction(int(items[label == vote].sum()), n), Fraction(int((L * C).sum()), n * n)
    kappa = above_chance(po, pe)
    if kappa is None:
        return CohenKappa(n, float(po), None, math.nan, undefined)
    shares = (np.array(L / n, np.float64), np.array(C / n, np.float64))
    a, own = (label == vote) - float(po), shares[1][label] + shares[0][vote] - 2 * float(pe)
    phi: Floats = (a - (1 - float(kappa)) * own) / (1 - float(pe))
    se = math.sqrt(exact_sum(phi * phi * items)) / n
    half = float(stdtrit(max(n - 1, 1), (1 + level) / 2)) * se
    reason = None if se else "The items show no variation."
    low, high = (max(float(kappa) - half, -1.0), min(float(kappa) + half, 1.0)) if se else (math.nan, math.nan)
    return CohenKappa(n, float(po), kappa, se, ConfidenceInterval(low, high, level, "wald", reason))


def votes_by_label(rows: LabeledPatterns, labeler: str) -> Table:
    """Return how often each label meets each vote, on the items with one vote and a label."""
    patterns, names = rows.patterns, rows.categories
    patterns = patterns.take((patterns.vote_totals() == 1) & (patterns.suggested >= 0))
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, (patterns.suggested, patterns.code), patterns.items)
    cells = [(j, k) for j in range(len(names)) for k in np.argsort(-counts[j], kind="stable").tolist() if counts[j, k]]
    columns = {
        "suggested": [names[j] for j, _ in cells],
        "vote": [names[k] for _, k in cells],
        "items": [int(counts[j, k]) for j, k in cells],
        "share": [float(counts[j, k] / counts[j].sum()) for j, k in cells],
    }
    return Table(columns, title=f"{labeler}: votes by suggested label")


def single_disagreements(item_votes: ItemVotes, labeler: str, limit: int | None = None) -> Table:
    """Return the items whose only vote differs from the suggested label, in the order of the data."""
    rows = item_votes.labeled_patterns(labeler)
    patterns, names = rows.patterns, item_votes.item_names()
    differ = (patterns.vote_totals() == 1) & (patterns.suggested >= 0)
    first = np.minimum(patterns.start[:-1], max(patterns.code.size - 1, 0))
    vote = patterns.code[first] if patterns.code.size else np.zeros(len(patterns), np.int64)
    differ &= vote != patterns.suggested
    places = np.flatnonzero(differ if item_votes.group is None else differ[item_votes.group])[:limit]
    of = places if item_votes.group is None else item_votes.group[places]
    columns = {
        "item": [names[place] for place in places.tolist()],
        "suggested": [rows.categories[code] for code in patterns.suggested[of].tolist()],
        "vote": [rows.categories[code] for code in vote[of].tolist()],
    }
    return Table(columns, title=f"{labeler}: items whose vote differs from the suggested label")
