"""Scores of many annotators on one scale, shrunken by their numbers of items, and who differs from the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted
from dhkappa.stats.annotator_result import AGREE_WITH, FALSE_ALARMS, MIN_ITEMS, MIN_SCREENED, AnnotatorScores
from dhkappa.stats.annotator_votes import AnnotatorVotes, annotator_votes, require_annotators
from dhkappa.stats.multiple_tests import false_discovery
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Sample, check_level, sample_of
from dhkappa.stats.summation import totals
from dhkappa.table import Table

_NO_ITEMS = "No item has two votes."
_ONE_CATEGORY = "Every vote is the same category."
SHOWN = 1.645  # z of an annotator whose votes are shown to follow the items, one-sided 5%
_ABLE = 4.0  # z of a typical annotator on items that can show it
_TYPICAL = 3  # annotators from whom the typical one is estimated
_MEDIAN = 0.6744897501960817  # of the absolute value of a standard normal variable
_STEPS = 60  # of the bisection
_NORMAL = 1e-4  # skewness below which the gamma distribution is normal
_MEDIAN_VARIANCE = np.pi / 2  # of the median of many values, relative to that of their mean

Mask = npt.NDArray[np.bool_]


def annotator_scores(
    item_votes: ItemVotes | None,
    *,
    confidence_level: float = 0.95,
    labelers: Sequence[str] = (),
    ordered: bool = False,
) -> AnnotatorScores:
    """Compute the score of each annotator; see ``AnnotatorScores``.

    With t_ia the share of the other votes on item i that equal the vote Y of annotator a, the score is the mean of
    ``x_ia = (t_ia - C_Y) / (1 - sum_k C_k^2)`` over the annotator's items with two votes or more. ``labelers`` are
    those whose labels the votes are compared with; ``ordered`` says that there are agreement weights, which scores do
    not use.
    """
    level = check_level(confidence_level)
    require_annotators(item_votes)
    assert item_votes is not None
    sample, designed = _unweighted_sample(item_votes)
    votes, names = annotator_votes(item_votes, sample), item_votes.annotators or ()
    A, patterns = len(names), sample.patterns
    items = totals(votes.items, votes.who, A).astype(np.int64)
    n_votes, row = patterns.vote_totals(), patterns.row()
    each = patterns.items[row] * patterns.votes / n_votes[row]
    C: Floats = np.bincount(patterns.code, each, len(sample.categories)) / max(sample.n, 1)
    t = (patterns.votes.astype(np.int64) - 1) / np.maximum(n_votes[row] - 1, 1)
    alike = np.count_nonzero(C) <= 1
    x = (t - C[patterns.code]) / (math.nan if alike else 1 - float(C @ C))
    reason = _NO_ITEMS if not sample.n else _ONE_CATEGORY if alike else None
    columns: dict[str, Array] = {"items": items, "agree": _mean(votes, t[votes.entry], A)}
    columns |= dict.fromkeys(("score", "shrunk_score", "low", "high", "deviation", "pvalue", "z"), np.full(A, math.nan))
    below, uninformed, screened = (np.zeros(A, np.bool_) for _ in range(3))
    mean = math.nan
    if reason is None:
        spread = _spread(votes, x[votes.entry], A)
        mean, columns["score"] = spread.mean, spread.score
        columns |= dict(zip(("shrunk_score", "low", "high"), _shrunk(spread, level, _ends(C)), strict=True))
        found = _tests(votes, x, A, fleiss=max(_fleiss(votes, x), 0.0))
        columns |= {"deviation": found.deviation, "pvalue": found.pvalue, "z": found.z}
        below, uninformed, screened = found.deviation < 0, found.uninformed, found.screened
    columns["pvalue_adjusted"] = false_discovery(columns["pvalue"])
    differs = columns["pvalue_adjusted"] <= FALSE_ALARMS
    for name in labelers:
        columns[f"{AGREE_WITH}{name}"] = _agreement_with(votes, item_votes, name, A)
    score = np.nan_to_num(columns["shrunk_score"], nan=np.inf)
    order = np.lexsort((np.arange(A), -items, np.round(score, 12), ~uninformed, ~differs))
    order = order[np.argsort(items[order] < MIN_ITEMS, kind="stable")]
    cells = {name: values[order].tolist() for name, values in columns.items()}
    cells["differs"] = [("below" if below[a] else "above") if differs[a] else None for a in order.tolist()]
    cells["uninformed"] = [bool(uninformed[a]) if screened[a] else None for a in order.tolist()]
    listed = {"annotator": [names[a] for a in order.tolist()]} | {name: cells[name] for name in _columns(labelers)}
    few, clustered = int((items < MIN_ITEMS).sum()), item_votes.columns.cluster is not None
    return AnnotatorScores(
        table=Table(listed, title=f"Annotators, {_first(bool(differs.any() or uninformed.any()))}"),
        differs=tuple(names[a] for a in order.tolist() if differs[a]),
        uninformed=tuple(names[a] for a in order.tolist() if uninformed[a]),
        mean=mean,
        n_tested=A - few,
        n_few=few,
        confidence_level=level,
        notes=tuple(_notes(few, int(n_votes.max(initial=0)), designed, ordered, clustered)),
        reason=reason,
    )


def _columns(labelers: Sequence[str]) -> list[str]:
    found = ["items", "agree", "score", "shrunk_score", "low", "high", "deviation", "pvalue", "pvalue_adjusted"]
    return [*found, "differs", "z", "uninformed", *(f"{AGREE_WITH}{name}" for name in labelers)]


def _first(flagged: bool) -> str:
    order = "from the lowest to the highest"
    return f"flagged first, then {order}" if flagged else order


def _unweighted_sample(item_votes: ItemVotes) -> tuple[Sample, bool]:
    """Return the items with two votes or more, one pattern per row, and whether sample weights were left out."""
    rows = item_votes.labeled_patterns(item_votes.columns.labelers[0])
    weight = rows.weight
    bare = replace(rows, strata=(), stratum=None, weight=None)
    return sample_of(bare, labeled=False), weight is not None and bool(np.ptp(weight) > 0)


def _mean(votes: AnnotatorVotes, values: Floats, A: int) -> Floats:
    """Return (A,) the mean of a value of each vote over the items of its annotator; NaN without items."""
    n = totals(votes.items, votes.who, A)
    found: Floats = np.bincount(votes.who, votes.items * values, A) / np.where(n, n, np.nan)
    return found


def _fleiss(votes: AnnotatorVotes, x: Floats) -> float:
    """Return Fleiss' kappa: the mean of x over votes, each item weighted alike."""
    return float(np.sum(votes.items * x[votes.entry] / votes.n_votes) / votes.sample.n)


class _Tests(NamedTuple):
    deviation: Floats
    pvalue: Floats
    z: Floats
    uninformed: Mask
    screened: Mask  # whether it is known


def _tests(votes: AnnotatorVotes, x: Floats, A: int, fleiss: float) -> _Tests:
    """Test who differs from the rest, and who is not shown to know anything."""
    funnel, screen = Funnel(votes, x, A), Screen(votes, A, MIN_SCREENED)
    pvalue = funnel.test(funnel.items >= MIN_ITEMS, ~screen.doubtful(fleiss))
    low = screen.test(fleiss)
    uninformed = (false_discovery(low) <= FALSE_ALARMS) & ~screen.shown()
    return _Tests(funnel.deviation, pvalue, screen.z, uninformed, ~np.isnan(low))


class _Spread(NamedTuple):
    """How scores vary: within annotators, by vote, and between them."""

    items: Floats  # (A,) number of items, NaN for none
    score: Floats  # (A,)
    mean: float  # by votes
    within: float  # sigma^2, the variance of x within annotators
    between: float  # tau^2, the variance of true scores; 0 if the scores vary no more than votes at random
    error: float  # standard error of tau^2
    of_mean: float  # variance of the mean


def _spread(votes: AnnotatorVotes, x: Floats, A: int) -> _Spread:
    """Return the method-of-moments estimates of DerSimonian and Laird (1986), with one variance within annotators."""
    items = totals(votes.items, votes.who, A).astype(np.float64)
    n = items[items > 0]
    score, total, k = _mean(votes, x, A), n.sum(), n.size
    apart = votes.items * (x - score[votes.who]) ** 2
    within = float(apart.sum() / (total - k)) if total > k else math.nan
    known = score[items > 0]
    mean = float(n @ known / total)
    size = total - float(n @ n) / total  # about (k - 1) times the mean number of items
    if k < 2:
        return _Spread(np.where(items, items, np.nan), score, mean, within, math.nan, math.nan, math.nan)
    Q = float(n @ (known - mean) ** 2)
    between = max(0.0, (Q - (k - 1) * within) / size)
    error = math.sqrt(2 / (k - 1)) * (between + (k - 1) * within / size)
    of_mean = float((n / total) ** 2 @ (between + error + within / n))
    return _Spread(np.where(items, items, np.nan), score, mean, within, between, error, of_mean)


def _shrunk(spread: _Spread, level: float, ends: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Return scores drawn to the mean, and their limits.

    ``mean + B (score - mean)`` with ``B = tau^2 / (tau^2 + sigma^2 / n)``. The variance for the limits is ``tau^2
    sigma^2 / (n tau^2 + sigma^2)`` with tau^2 one standard error larger, as it may be estimated as 0, and ``(1 - B)^2``
    times the variance of the mean. Limits are within the range of scores.
    """
    from dhkappa.stats.special import ndtri

    n, within = spread.items, spread.within
    noise = within / n
    if not within > 0:  # each annotator has one item, or all votes of each have the same x
        keep = np.where(np.isnan(n) | math.isnan(within), np.nan, 1.0)
        shrunk = spread.mean + keep * (spread.score - spread.mean)
        return shrunk, np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    keep = spread.between / (spread.between + noise)
    shrunk = spread.mean + keep * (spread.score - spread.mean)
    wide = spread.between + spread.error
    variance = wide * noise / (wide + noise) + (1 - keep) ** 2 * spread.of_mean
    half = float(ndtri((1 + level) / 2)) * np.sqrt(variance)
    return shrunk, np.maximum(shrunk - half, ends[0]), np.minimum(shrunk + half, ends[1])


def _ends(C: Floats) -> tuple[float, float]:
    """Return the least and the greatest score: of votes that no other, or every other, vote on the item equals."""
    voted, rest = C[C > 0], 1 - float(C @ C)
    return -float(voted.max()) / rest, (1 - float(voted.min())) / rest


def _agreement_with(votes: AnnotatorVotes, item_votes: ItemVotes, labeler: str, A: int) -> Floats:
    """Return (A,) the share of an annotator's votes that equal the label, on the items that have one."""
    rows = votes.sample.kept
    assert rows is not None
    label = item_votes.columns.codes(labeler, item_votes.categories)[rows][votes.row]
    known = votes.take(label >= 0)
    return _mean(known, (known.own == label[label >= 0]).astype(np.float64), A)


def _notes(few: int, most: int, designed: bool, ordered: bool, clustered: bool) -> Iterator[Note]:
    if few:
        who = f"{counted(few, 'annotator')} with fewer than {MIN_ITEMS} items {'is' if few == 1 else 'are'} not listed"
        yield Note("annotators-few-items", f"{who}; the table of scores has all.")
    if most == 2:
        text = "Items have two votes, which say nothing about which of two annotators differs from the rest."
        yield Note("annotators-two-votes", text)
    if designed:
        yield Note("scores-unweighted", "Scores of annotators do not use sample weights: each vote counts once.")
    if clustered:
        text = "Scores of annotators do not allow for clusters: their limits and remarks treat items as independent."
        yield Note("scores-independent", text)
    if ordered:
        text = "Scores of annotators do not use agreement weights: two votes agree only if they are equal."
        yield Note("scores-unweighted", text)


class Funnel:
    """How far the votes of A annotators are from the mean of the votes on the same items, with three votes or more.

    If a is like the others, each vote of an item is equally likely to be that of a. The sum of ``x_ia - xbar_i`` then
    has mean 0, and variance and third moment are sums of the mean square and mean cube over the votes of each item.
    """

    def __init__(self, votes: AnnotatorVotes, x: Floats, size: int) -> None:
        patterns = votes.sample.patterns
        n_votes, first, row = patterns.vote_totals(), patterns.start[:-1], patterns.row()
        each = patterns.votes / n_votes[row]

        def means(values: Floats) -> Floats:
            found: Floats = np.add.reduceat(each * values, first)
            return found

        apart = x - means(x)[row]
        split = (n_votes > 2) & (np.diff(patterns.start) > 1)
        used = np.flatnonzero(n_votes[votes.row] > 2)
        who, at, items = votes.who[used], votes.row[used], votes.items[used]

        def by_annotator(values: Array) -> Floats:
            found: Floats = np.bincount(who, items * values, size).astype(np.float64)
            return found

        self.items = by_annotator(np.ones(used.size))
        n = np.where(self.items, self.items, np.nan)
        self.deviation = by_annotator(apart[votes.entry[used]]) / n
        self.error = np.sqrt(by_annotator(np.where(split, means(apart**2), 0)[at])) / n
        self.cube = by_annotator(np.where(split, means(apart**3), 0)[at]) / n**3
        self.least = np.exp(-by_annotator(np.where(split, np.log(n_votes), 0)[at]))

    def test(self, tested: Mask, rest: Mask) -> Floats:
        """Return the two-sided p-values of the tested; the rest show where annotators are, and how much they differ.

        With few annotators, the deviation of one moves the others the opposite way: of A with the same items, it is
        A / (A - 1) times as far from their mean. The scale is larger by as much.
        """
        tested = tested & (self.error > 0)
        found, rest = np.full(tested.shape, np.nan), rest & tested
        k = int(rest.sum())
        if k < 2:
            return found
        center, spread = typical(self.deviation[rest], self.error[rest])
        scale = np.hypot(self.error[tested], spread)
        z = (self.deviation[tested] - center) / (scale * k / (k - 1))
        tails = skewed_tails(z, self.cube[tested] / scale**3)
        found[tested] = np.minimum(2 * np.maximum(np.minimum(*tails), self.least[tested]), 1)
        return found


class Screen:
    """Whether the votes of A annotators follow the items at all, compared with their own votes in random order.

    With ``s_ij`` the share of the other votes on item i for j, the statistic is ``T = sum_i s_i(Y_i)``. In random order
    its mean is ``n sum_j L_j m_j``, and its variance ``n^2 / (n - 1) (sum_j L_j S_jj - sum_jk L_j L_k S_jk)``, with L
    the shares of the annotator's votes, m and S the means and the covariances of s over the annotator's items.
    """

    def __init__(self, votes: AnnotatorVotes, size: int, least: int) -> None:
        self.items = totals(votes.items, votes.who, size)
        self.z, self.knows, self.error = (np.full(size, np.nan) for _ in range(3))
        kept = votes.take((self.items >= least)[votes.who])
        for who, own in kept.blocks():
            for name, values in zip(("z", "knows", "error"), _screened(own, who.size), strict=True):
                getattr(self, name)[who] = values

    def shown(self) -> Mask:
        """Return who is shown to know something."""
        return self.z > SHOWN

    def doubtful(self, agreement: float) -> Mask:
        """Return who is not shown to know anything on items on which a typical annotator would be."""
        return (agreement >= _ABLE * self.error) & (self.z <= SHOWN)

    def test(self, agreement: float) -> Floats:
        """Return the one-sided p-values of knowing less than a typical annotator would on the same items."""
        from dhkappa.stats.special import ndtr

        tested = ~np.isnan(self.knows)
        found, able = np.full(tested.shape, np.nan), tested & self.shown() & (agreement >= _ABLE * self.error)
        base = able if able.sum() >= _TYPICAL else tested
        if base.any():
            center, spread = typical(self.knows[base], self.error[base])
            own = self.error[tested] ** 2 + spread**2
            of_center = _MEDIAN_VARIANCE * float(np.mean(self.error[base] ** 2 + spread**2)) / base.sum()
            found[tested] = ndtr((self.knows[tested] - center) / np.sqrt(own + of_center))
        return found


def _screened(votes: AnnotatorVotes, size: int) -> tuple[Floats, Floats, Floats]:
    """Return z, how much annotators know (0 is nothing, like kappa) and the standard error of a typical annotator."""
    who, others, items = votes.who, votes.others(), votes.items
    length = np.diff(others.start)
    vote = np.repeat(np.arange(who.size), length)
    s = others.votes / (votes.n_votes - 1)[vote]
    where = votes.annotator_categories([(who[vote], others.code), (who, votes.own)], size)
    entry, own = where.of
    k, n = where.code.size, np.bincount(who, items, size)
    L = np.bincount(own, items, k) / n[where.who]
    m, square = (np.bincount(entry, items[vote] * values, k) / n[where.who] for values in (s, s * s))
    S = square - m * m

    def by_annotator(values: Floats) -> Floats:
        found: Floats = np.bincount(where.who, values, size).astype(np.float64)
        return found

    on_own = np.add.reduceat(s * L[entry], others.start[:-1])  # sum_j L_j s_ij, one row per vote
    mean = by_annotator(L * m)
    both = np.bincount(who, items * (on_own - mean[who]) ** 2, size) / n
    agree = np.bincount(who, items * _shares_of_own(votes), size) / n
    variance = (by_annotator(L * S) - both) / (n - 1)  # of T / n
    spread, error = 1 - by_annotator(m * m), np.sqrt(np.maximum(by_annotator(m * S), 0) / (n - 1))
    varied = variance > 1e-12 * np.maximum(by_annotator(L * S), 1e-12)
    # An annotator whose votes are all the same has no variance, and knows nothing: z is 0.
    z = np.where(varied, (agree - mean) / np.sqrt(np.where(varied, variance, 1)), 0.0)
    able = (spread > 0) & (error > 1e-9)  # else the votes of the others are the same on all items
    with np.errstate(divide="ignore", invalid="ignore"):
        found = z, (agree - mean) / spread, error / spread
    return tuple(np.where(able, values, np.nan) for values in found)  # type: ignore[return-value]


def _shares_of_own(votes: AnnotatorVotes) -> Floats:
    """Return (T,) the share of the other votes on the item that equal the vote."""
    found: Floats = (votes.sample.patterns.votes[votes.entry].astype(np.int64) - 1) / (votes.n_votes - 1)
    return found


def skewed_tails(z: Floats, skew: Floats) -> tuple[Floats, Floats]:
    """Return P(Z <= z) and P(Z >= z) of standardized gamma variables with some skewness (Pearson type III)."""
    from dhkappa.stats.special import gammainc, gammaincc, ndtr

    bent = np.abs(skew) > _NORMAL
    g = np.where(bent, skew, 1)
    shape = 4 / g**2
    at = np.maximum(shape + 2 * z / g, 0)
    below, above = gammainc(shape, at), gammaincc(shape, at)
    low, high = np.where(g > 0, below, above), np.where(g > 0, above, below)
    return np.where(bent, low, ndtr(z)), np.where(bent, high, ndtr(-z))


def typical(values: Floats, errors: Floats) -> tuple[float, float]:
    """Return center and spread of the true values of most annotators, from values with standard errors.

    The center is the median with weights ``1 / sqrt(error^2 + spread^2)``. With the spread, half of the values are
    within .674 standard deviations of the center; it is 0 if they are without it. Annotators far from the rest, fewer
    than half of all, have little effect.
    """

    def middle(variance: float) -> tuple[float, float]:
        weight = 1 / np.sqrt(errors**2 + variance)
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(weight[order])
        center = float(values[order[np.searchsorted(upto, upto[-1] / 2)]])
        return center, float(np.median(np.abs(values - center) * weight))

    center, half = middle(0.0)
    if half <= _MEDIAN:
        return center, 0.0
    low, high = 0.0, float(np.ptp(values)) ** 2 / _MEDIAN**2
    for _ in range(_STEPS):
        variance = (low + high) / 2
        center, half = middle(variance)
        low, high = (variance, high) if half > _MEDIAN else (low, variance)
    return center, float(np.sqrt(high))
