"""Precision, recall and F1 of the suggested labels by category, measured against the votes of annotators.

Each vote counts, and each item weighs the same. An item with one vote counts as well, unlike for kappa.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core import Array, Categories, Floats, Label
from dhkappa.core.grouping import LabeledPatterns
from dhkappa.errors import category_not_found, counted, invalid, shown
from dhkappa.stats.clusters import UNKNOWN
from dhkappa.stats.intervals import written
from dhkappa.stats.mean_intervals import MeanBasis, mean_limits, own_basis
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Sample, check_level, sample_of, weight_of_one
from dhkappa.stats.summation import exact_sum, group_sums
from dhkappa.table import Display, Table, plain

NEVER_SUGGESTED = "Never suggested."
NO_VOTES = "No votes for this category."
WITH_POOL = "Rates of a sample from a pool have no limits."
WITH_AGREEMENT_WEIGHTS = "Rates do not take agreement weights."
_WITH_WEIGHTS = "F1 has no limits with sample weights."
_NOTHING = "No item has a vote and a suggested label."
_BALANCED = "The interval of balanced accuracy is unknown."
RATE_COLUMNS = (
    *("precision", "recall", "annotator", "f1", "rate_items"),
    *("precision_low", "precision_high", "recall_low", "recall_high", "rate_reason"),
)
_SOURCE = {"rate_items": "items", "rate_reason": "reason"}  # names in the table of rates
_FEW_VOTES = 10
_LITTLE_AGREEMENT = 0.5  # of one annotator with another, on a category
_LARGEST_SHARE = 1e100  # limits with an item that weighs as much are 0 and 1
_EQUAL = 8 * np.finfo(np.float64).eps  # a value this close to the mean differs from it by rounding


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its confidence interval.

    Attributes
    ----------
    value : the rate, from 0 to 1; NaN if undefined
    low, high : confidence limits
    se : standard error
    n : number of items it rests on: of recall the votes for the category, where the votes of an item count as one
    reason : why the value or the limits are undefined; None if they are defined
    """

    value: float
    low: float
    high: float
    se: float
    n: float
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rates(Display):
    """How well suggested labels and votes agree; see ``Kappa.rates``.

    Attributes
    ----------
    table : a row for each category: ``items`` with this suggested label, ``votes`` for it, where the votes of an item
        count as one, ``precision``, ``recall`` and ``f1`` with standard errors and limits, ``annotator``: what one
        annotator scores if judged by another, and the ``reason`` why values are NaN
    agreement : share of votes that are the suggested label
    balanced_accuracy : mean recall of the categories with votes
    sensitivity, specificity : recall of the positive category and of the other one; None if none was named
    n_items : number of items with a vote and a suggested label
    n_one_vote : number of these items with a single vote, which kappa excludes
    confidence_level : the confidence level of all limits
    notes : conditions that affect the interpretation
    """

    table: Table
    agreement: Rate
    balanced_accuracy: Rate
    sensitivity: Rate | None
    specificity: Rate | None
    n_items: int
    n_one_vote: int
    confidence_level: float
    notes: tuple[Note, ...]

    def _display(self) -> tuple[Table, list[str]]:
        return self.table, [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        positive = {name: rate.to_dict() for name in ("sensitivity", "specificity") if (rate := getattr(self, name))}
        return {
            "categories": self.table.to_json(),
            "agreement": self.agreement.to_dict(),
            "balanced_accuracy": self.balanced_accuracy.to_dict(),
            **positive,
            "n_items": self.n_items,
            "n_one_vote": self.n_one_vote,
            "confidence_level": self.confidence_level,
            "notes": [note.to_dict() for note in self.notes],
        }


@dataclass(frozen=True, slots=True)
class RateBases:
    """What rates and their limits are computed from; arrays are (m,), one entry for each category."""

    categories: Categories
    items: Array  # number of items with this suggested label
    votes: Floats  # sum of the shares of votes for the category
    precision: MeanBasis
    recall: MeanBasis
    f1: MeanBasis
    agreement: MeanBasis  # of one mean
    balanced: tuple[float, float]  # balanced accuracy and its standard error
    annotator: Floats  # G_j / C_j of items with two votes or more; NaN if there are none
    n_items: int
    n_one_vote: int
    unbounded: str | None  # why limits are undefined; None if they are defined
    weighted: bool  # limits of F1 are undefined

    def rate(self, measure: str, code: int, confidence_level: float) -> Rate:
        """Return one rate of a category: ``"precision"``, ``"recall"`` or ``"f1"``."""
        return self.rates(measure, confidence_level)[code]

    def rates(self, measure: str, confidence_level: float) -> list[Rate]:
        """Return the rate of each category."""
        basis: MeanBasis = getattr(self, measure)
        low, high = mean_limits(basis, 1 - confidence_level)
        sizes = {"precision": self.items, "recall": self.votes, "f1": (self.items + self.votes) / 2}[measure]
        why = {"precision": NEVER_SUGGESTED, "recall": NO_VOTES, "f1": "Neither suggested nor voted for."}[measure]
        unbounded = self.unbounded or (_WITH_WEIGHTS if self.weighted and measure == "f1" else None)
        columns = (np.asarray(values, np.float64) for values in (basis.value, low, high, basis.se, sizes))
        return [_rate(Rate(*row), why, unbounded) for row in np.stack([*columns], axis=1).tolist()]

    def vote_agreement(self, confidence_level: float) -> Rate:
        """Return the share of votes that are the suggested label."""
        low, high = mean_limits(self.agreement, 1 - confidence_level)
        value, se = float(self.agreement.value), float(self.agreement.se)
        found = Rate(value, float(low), float(high), se, self.n_items)
        return _rate(found, _NOTHING, self.unbounded)


def _rate(found: Rate, undefined: str, unbounded: str | None) -> Rate:
    """Return a rate with the reason why it, or its limits, are undefined."""
    if math.isnan(found.value):
        return replace(found, low=math.nan, high=math.nan, se=math.nan, reason=undefined)
    if unbounded:
        return replace(found, low=math.nan, high=math.nan, se=math.nan, reason=unbounded)
    return found


def rate_bases(sample: Sample) -> RateBases:
    """Return what rates need, from the sample of a kappa and the items with one vote that it excludes."""
    pool = sample.shares_known or any(part.size is not None for part in sample.strata)
    clustered = sample.clustered
    if sample.rows is not None and not pool:
        clustered = clustered or _clustered(sample.rows)
        sample = sample_of(replace(sample.rows, cluster=None), fewest=1)
    sample = sample.by_weight().merged()
    patterns, m = sample.patterns, len(sample.categories)
    row, code, items, label = patterns.row(), patterns.code, patterns.items, patterns.suggested.astype(np.int64)
    n_votes = patterns.vote_totals()[row].astype(np.float64)
    c, w, hit = patterns.votes / n_votes, weight_of_one(sample), code == label[row]
    own = np.zeros(len(patterns))  # share of votes that are the suggested label
    own[row[hit]] = c[hit]
    every = np.zeros(len(patterns), np.int64)
    means = _Means(sample, np.arange(len(patterns)), label, w, own)
    recall = _Means(sample, row, code.astype(np.int64), w[row] * c, hit.astype(np.float64))
    bare = np.flatnonzero(own == 0)  # items with a label that nobody votes for
    places, codes = np.append(row, bare), np.append(code.astype(np.int64), label[bare])
    weights = np.append(w[row] * (hit + c) / 2, w[bare] / 2)
    f1 = _Means(sample, places, codes, weights, np.append(np.where(hit, 2 * c / (1 + c), 0.0), np.zeros(bare.size)))
    agreement = _Means(sample, np.arange(len(patterns)), every, w, own)
    several = n_votes > 1
    held = (items * w)[row] * several
    G = group_sums(held * c * (patterns.votes - 1) / np.maximum(n_votes - 1, 1), code, m)
    return RateBases(
        categories=sample.categories,
        items=np.bincount(label, items, m).astype(np.int64),
        votes=group_sums(items[row] * c, code, m),
        precision=means.basis(m),
        recall=recall.basis(m, *_recall_shares(sample, c, m)) if sample.designed else recall.basis(m),
        f1=f1.basis(m),
        agreement=_first(agreement.basis(1, *_largest_shares(sample, m)) if sample.designed else agreement.basis(1)),
        balanced=recall.mean_of_means(m),
        annotator=_ratio(G, group_sums(held * c, code, m)),
        n_items=sample.n,
        n_one_vote=int(items[patterns.vote_totals() == 1].sum()),
        unbounded=UNKNOWN if clustered else WITH_POOL if pool else None,
        weighted=sample.weighted,
    )


def _clustered(rows: LabeledPatterns) -> bool:
    """Return whether some of the items are of the same cluster."""
    return rows.cluster is not None and np.unique(rows.cluster).size < int(rows.patterns.items.sum())


@dataclass(frozen=True, slots=True)
class _Means:
    """Means of values of items by group; the rows of an array are (place of the pattern, group, weight, value)."""

    sample: Sample
    place: Array
    group: Array
    weight: Floats  # of one item
    value: Floats

    def basis(self, size: int, low_share: Any = None, high_share: Any = None) -> MeanBasis:
        """Return the basis of each mean; with shares of the unseen items, the variance is that of the design."""
        items, a = self.sample.patterns.items[self.place], self.weight
        n = np.bincount(self.group, items * (a > 0), size)
        whole = group_sums(items * a, self.group, size)
        mean = _ratio(group_sums(items * a * self.value, self.group, size), whole)
        z = self._moves(mean, whole)
        if low_share is not None:
            return own_basis(mean, n, n * (n - 1) * self._variance(z, self.group, size), low_share, high_share)
        p = _ratio(a, whole[self.group])
        share = _ratio(group_sums(items * p**3, self.group, size), group_sums(items * p * p, self.group, size))
        return own_basis(mean, n, n * n * group_sums(items * z * z, self.group, size), share)

    def mean_of_means(self, size: int) -> tuple[float, float]:
        """Return the mean of the defined means, and its standard error."""
        items, K = self.sample.patterns.items, len(self.sample.patterns)
        whole = group_sums(items[self.place] * self.weight, self.group, size)
        mean = _ratio(group_sums((items[self.place] * self.weight) * self.value, self.group, size), whole)
        known = int((whole > 0).sum())
        if known == 0:
            return math.nan, math.nan
        z = group_sums(self._moves(mean, whole), self.place, K) / known
        spread = replace(self, place=np.arange(K))._variance(z, np.zeros(K, np.int64), 1)
        return exact_sum(mean[whole > 0]) / known, math.sqrt(spread[0]) if self.sample.n > 1 else math.nan

    def _moves(self, mean: Floats, whole: Floats) -> Floats:
        """Return by how much each item moves the mean of its group: a (x - mean) / sum a."""
        off = self.value - mean[self.group]
        off[np.abs(off) <= _EQUAL] = 0
        return _ratio(self.weight, whole[self.group]) * off

    def _variance(self, z: Floats, group: Array, size: int) -> Floats:
        """Return the variance of sums of z: ``sum_h n_h / (n_h - 1) sum_i (z_i - mean_h z)^2`` over all items."""
        n = np.array([part.n for part in self.sample.strata], np.float64)
        cell = group * n.size + self.sample.stratum[self.place]
        items = self.sample.patterns.items[self.place]
        squares, sums = (group_sums(items * x, cell, size * n.size).reshape(size, -1) for x in (z * z, z))
        spread: Floats = (n / np.maximum(n - 1, 1) * np.maximum(squares - sums**2 / np.maximum(n, 1), 0)).sum(axis=1)
        return spread


@np.errstate(over="ignore")  # a category may have almost no weight
def _recall_shares(sample: Sample, c: Floats, m: int) -> tuple[Floats, Floats]:
    """Return (m,) the share of an unseen item with a vote for j: one with another label, and the largest.

    An item of another label may weigh much more than those with label j, on which most of the votes for j are.
    """
    patterns, items, w = sample.patterns, sample.patterns.items, weight_of_one(sample)
    each = items[patterns.row()]
    typical = _ratio(group_sums(each * c**3, patterns.code, m), group_sums(each * c * c, patterns.code, m))
    scale = _ratio(typical, group_sums((items * w)[patterns.row()] * c, patterns.code, m))
    scale = np.minimum(scale, _LARGEST_SHARE)
    own = _weights_of_one_more(sample, m)
    others = np.full(m, own.max(initial=0))
    others[own.argmax()] = np.delete(own, own.argmax()).max(initial=0)
    low = np.where(others > 0, others, own) * scale
    return low, np.maximum(low, own * scale)


def _largest_shares(sample: Sample, m: int) -> tuple[float, float]:
    """Return the largest share of the whole weight that one more item of some label may have, twice."""
    share = float(_weights_of_one_more(sample, m).max(initial=0)) / sample.n
    return share, share


def _weights_of_one_more(sample: Sample, m: int) -> Floats:
    """Return (m,) the weight that one more item with a label may have, ``sum w^3 / sum w^2``; 0 if no item has it."""
    items, w, label = sample.patterns.items, weight_of_one(sample), sample.patterns.suggested
    squares = group_sums(items * w * w, label, m)
    return np.where(squares > 0, _ratio(group_sums(items * w**3, label, m), squares), 0)


def _ratio(top: Any, bottom: Any) -> Floats:
    """Return top / bottom, NaN where bottom is 0."""
    ratio: Floats = np.asarray(top, np.float64) / np.where(np.asarray(bottom) > 0, bottom, np.nan)
    return ratio


def _first(basis: MeanBasis) -> MeanBasis:
    """Return a basis of one mean as numbers."""
    return MeanBasis(*(np.ravel(getattr(basis, name))[0] for name in MeanBasis.__slots__))


def rates(sample: Sample, confidence_level: float = 0.95, positive: Label | None = None) -> Rates:
    """Return precision, recall and F1 by category, and agreement; see ``Kappa.rates``."""
    confidence_level = check_level(confidence_level)
    known = rate_bases(sample)
    sides = None if positive is None else sides_of(known, positive)
    columns: dict[str, Any] = {"category": known.categories, "items": known.items, "votes": known.votes.tolist()}
    reasons: list[list[str | None]] = []
    for measure in ("precision", "recall", "f1"):
        found = known.rates(measure, confidence_level)
        columns[measure] = [rate.value for rate in found]
        columns |= {f"{measure}_{name}": [getattr(rate, name) for rate in found] for name in ("low", "high", "se")}
        reasons.append([rate.reason for rate in found])
    columns["annotator"] = known.annotator.tolist()
    columns["reason"] = [" ".join(dict.fromkeys(filter(None, own))) or None for own in zip(*reasons[:2], strict=True)]
    value, se = known.balanced
    balanced = Rate(value, math.nan, math.nan, se, known.n_items, _NOTHING if math.isnan(value) else _BALANCED)
    recall = known.rates("recall", confidence_level)
    nobody = Rate(math.nan, math.nan, math.nan, math.nan, 0, NO_VOTES)
    title = f"Precision and recall by category, {written(confidence_level, 100)}% confidence intervals"
    return Rates(
        Table(columns, title=title),
        known.vote_agreement(confidence_level),
        replace(balanced, se=math.nan) if known.unbounded else balanced,
        recall[sides[0]] if sides else None,
        (nobody if sides[1] is None else recall[sides[1]]) if sides else None,
        known.n_items,
        known.n_one_vote,
        confidence_level,
        tuple(_notes(known)),
    )


def sides_of(known: RateBases, positive: Label) -> tuple[int, int | None]:
    """Return the codes of the positive category and of the only other one, None if that does not occur."""
    code = category_code(known.categories, positive, "positive")
    others = [j for j in np.flatnonzero(known.items + known.votes > 0).tolist() if j != code]
    if len(others) > 1:
        message = f"A positive category needs two categories, but there are {shown(known.categories, 5)}."
        raise invalid("positive", message, code="not-two-categories", hint="Use the recall of each category.")
    return code, (others[0] if others else None)


def category_code(categories: Categories, category: Any, parameter: str) -> int:
    """Return the code of a category, which may be written as text."""
    if category in categories:
        return categories.index(category)
    if not isinstance(category, str) or category not in (texts := [*map(str, categories)]):
        raise category_not_found(category, categories, parameter)
    return texts.index(category)


def rate_columns(sample: Sample, confidence_level: float, ordered: bool = False) -> dict[str, Any]:
    """Return the columns of rates for the table of kappa by category; those of ordered categories are undefined."""
    table = rates(sample, confidence_level).table
    columns = {name: table.column(_SOURCE.get(name, name)) for name in RATE_COLUMNS}
    if ordered:
        unknown = dict.fromkeys(RATE_COLUMNS, [math.nan] * len(table))
        reasons = [WITH_AGREEMENT_WEIGHTS] * len(table)
        columns = unknown | {"rate_items": columns["rate_items"], "rate_reason": reasons}
    return columns


def _notes(known: RateBases) -> Iterator[Note]:
    """Yield the notes on rates."""
    if known.n_one_vote:
        text = f"Precision and recall also use {counted(known.n_one_vote, 'item')} with one vote; kappa does not."
        yield Note("rates-one-vote", text)
    used = [(label, v, a) for label, v, a in zip(known.categories, known.votes, known.annotator, strict=True) if v > 0]
    if few := [label for label, votes, _ in used if votes < _FEW_VOTES]:
        yield Note("rates-few-votes", f"Few votes for {shown(few, 5)}: the limits of recall are far apart.")
    if apart := [label for label, _, level in used if level < _LITTLE_AGREEMENT]:
        text = f"Annotators do not agree on {shown(apart, 5)}: one annotator scores less than 0.5 against another."
        yield Note("rates-annotators-disagree", text)
