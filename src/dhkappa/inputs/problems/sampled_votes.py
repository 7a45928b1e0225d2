"""Single votes on some items, and two tests of independence: of two raters, and of labels from the votes.

Raters that label independently agree as far as both know the true label. So their agreement beyond chance is a product
of two skills, and that of two raters follows from their agreement with the others and that of the others with each
other: for good and bad raters, and also if some items are harder than others. Copies agree more.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers
from dhkappa.core.items import ItemVotes

_ITEMS = 2_000  # that are looked at
_COMMON_ITEMS = 20
_CHANCE_Z = 4.0  # standard errors by which copies agree more
_KNOWN_Z = 4.0  # standard errors by which the other annotators agree more than by chance
_NEVER_Z = 2.5  # if they never differ
_DIFFERENCES = 10  # that are expected then
_FEWER = 0.6  # of the expected differences
_MORE = 0.05  # agreement
_MADE_Z = 3.1  # standard errors, p = .001
_MADE = 0.35  # of the exceptions of true labels, beyond errors that occur anywhere
_ERRORS = 0.15  # share of labels that were changed
_PRIOR = 5.0  # items that a rate of few items is drawn to the mean with
_STEPS = 20
FEWER_ERRORS = 1 / 3  # of an annotator's errors: hardly any labeler that was made without the votes has fewer
_FEW_EXCEPTIONS = 3.0  # expected: with fewer, none at all is common
ENOUGH_EXCEPTIONS = 7.0  # expected: none at all is rarer than the next number
CHANCE = 0.001
_COMMON_CHANCE, _LIKELY_CHANCE = 0.05, 0.35
_HARDLY_ANY, _FEW_ERRORS = 0.01, 0.025  # share of errors of an excellent and of a very good labeler
_CHANGED = 0.05  # share of the items: the most frequent votes themselves have no exceptions
_Floats = npt.NDArray[np.float64]
_SAMPLES: WeakKeyDictionary[ItemVotes, SampledVotes] = WeakKeyDictionary()


@dataclass(frozen=True)
class SampledVotes:
    """Single votes on R rows of items, in order of rows, then categories."""

    row: Integers  # (T,)
    who: Integers  # (T,) index of the annotator
    code: npt.NDArray[np.int64]  # (T,) category
    weight: _Floats  # (R,) number of items that a row stands for
    chosen: npt.NDArray[np.int64]  # (R,) row of the data
    annotators: tuple[str, ...]

    @staticmethod
    def of(votes: ItemVotes) -> SampledVotes:
        """Choose items at regular distances."""
        rows = len(votes.columns)
        weight = np.zeros(rows)
        if votes.group is not None:
            weight += np.bincount(votes.group[:: max(len(votes.group) // _ITEMS, 1)], minlength=rows)
        else:
            every = slice(None, None, max(rows // _ITEMS, 1))
            weight[every] = 1.0 if votes.items is None else votes.items[every]
        chosen = np.flatnonzero(weight)
        place = np.full(rows, -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        row, who, code = votes.sorted_votes
        kept = place[row] >= 0
        names = tuple(map(str, votes.annotators or ()))
        return SampledVotes(place[row[kept]], who[kept], code[kept].astype(np.int64), weight[chosen], chosen, names)

    def without(self, places: Collection[int]) -> SampledVotes:
        """Leave out annotators."""
        kept = ~np.isin(self.who, [*places])
        return replace(self, row=self.row[kept], who=self.who[kept], code=self.code[kept])

    def with_labels(self, labels: Integers) -> SampledVotes:
        """Add labels as votes of one more annotator."""
        used = np.flatnonzero(labels >= 0)
        row, code = np.append(self.row, used), np.append(self.code, labels[used].astype(np.int64))
        who = np.append(self.who, np.full(len(used), len(self.annotators)))
        order = np.lexsort((code, row))
        return replace(
            self, row=row[order], who=who[order], code=code[order], annotators=(*self.annotators, "suggested label")
        )

    @cached_property
    def cell(self) -> npt.NDArray[np.int64]:
        """(T,) number of the cell of each vote: its row and category."""
        new = np.ones(len(self.row), np.bool_)
        new[1:] = (self.row[1:] != self.row[:-1]) | (self.code[1:] != self.code[:-1])
        return np.cumsum(new) - 1

    @cached_property
    def first(self) -> npt.NDArray[np.intp]:
        """The first vote of each cell."""
        return np.flatnonzero(np.diff(self.cell, prepend=-1))

    @cached_property
    def total(self) -> _Floats:
        """(R,) number of votes."""
        return np.bincount(self.row, minlength=len(self.weight)).astype(np.float64)

    @cached_property
    def pairs(self) -> _Floats:
        """(R,) number of ordered pairs of votes that agree."""
        same = np.bincount(self.cell)[self.cell] - 1.0
        return np.bincount(self.row, weights=same, minlength=len(self.weight)).astype(np.float64)

    @cached_property
    def shares(self) -> _Floats:
        """The vote shares of the categories."""
        votes = np.bincount(self.code, weights=self.weight[self.row])
        return np.asarray(votes / max(float(votes.sum()), 1.0), np.float64)

    @cached_property
    def truth(self) -> tuple[_Floats, float]:
        """The probability that each voted category is the true one, and the mean accuracy of a vote."""
        return _truth(self)

    @cached_property
    def leading(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Whether each cell is a most frequent vote of its row, and (R,) how many votes these have."""
        at, count = self.row[self.first], np.bincount(self.cell)
        most = np.zeros(len(self.weight), np.int64)
        np.maximum.at(most, at, count)
        return count == most[at], most

    def decided(self, labels: Integers) -> npt.NDArray[np.bool_]:
        """Return (R,) whether some category is no most frequent vote; if all are, any label is one."""
        categories = np.union1d(self.code, labels[labels >= 0])
        tied = np.bincount(self.row[self.first][self.leading[0]], minlength=len(self.weight))
        return np.asarray(tied < len(categories), np.bool_)

    def exceptions(self, labels: Integers) -> _Floats:
        """Return (R,) 1 where a label is no most frequent vote, else 0."""
        at, code = self.row[self.first], self.code[self.first]
        found = np.ones(len(self.weight))
        found[at[self.leading[0] & (code == labels[at])]] = 0
        return found

    def votes_of(self, place: int) -> npt.NDArray[np.int64]:
        """Return (R,) the votes of an annotator, -1 if there is none."""
        found, own = np.full(len(self.weight), -1, np.int64), self.who == place
        found[self.row[own]] = self.code[own]
        return found

    def shared(self, labels: Integers) -> _Floats:
        """Return (R,) the number of votes that are some labels."""
        return np.bincount(self.row[self.code == labels[self.row]], minlength=len(self.weight)).astype(np.float64)


def sampled_votes(votes: ItemVotes) -> SampledVotes:
    """Return the votes on a sample of items, which several rules share."""
    if votes not in _SAMPLES:
        _SAMPLES[votes] = SampledVotes.of(votes)
    return _SAMPLES[votes]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two raters agree on n items, and how often they would if they labeled independently."""

    n: int
    observed: float
    expected: float
    z: float

    @property
    def is_copy(self) -> bool:
        """Whether they agree clearly more than expected."""
        fewer = 1 - self.observed <= _FEWER * (1 - self.expected) and self.observed - self.expected > _MORE
        never = self.observed == 1 and self.n * (1 - self.expected) > _DIFFERENCES
        return fewer and self.z > (_NEVER_Z if never else _CHANCE_Z)


def agreement(others: SampledVotes, one: Integers, other: Integers) -> Agreement | None:
    """Compare two raters with the ``others``, on items with two votes of these; None if these say too little.

    The larger expectation of two is taken: with errors that are spread over all categories, and by the vote shares.
    """
    rows = (one >= 0) & (other >= 0) & (others.total > 1)
    n, total = float(others.weight[rows].sum()), others.total[rows]
    if n < _COMMON_ITEMS:
        return None
    shares = (others.shared(one)[rows] / total, others.shared(other)[rows] / total)
    values = [(one == other)[rows].astype(np.float64), *shares, others.pairs[rows] / (total * (total - 1))]
    weight = others.weight[rows] / n
    means = [float(weight @ value) for value in values]
    same, first, second, pairs = (value - mean for value, mean in zip(values, means, strict=True))
    best = None
    for chance in (1 / max(int((others.shares > 0).sum()), 2), float((others.shares**2).sum())):
        if chance >= 1 or means[3] - chance <= _KNOWN_Z * math.sqrt(float(weight @ pairs**2) / n):
            return None  # the others hardly agree with each other
        c1, c2, c3 = (max((mean - chance) / (1 - chance), 0.0) for mean in means[1:])
        expected = chance + (1 - chance) * min(c1 * c2 / c3, 1.0)
        # The influence of each item on observed - expected, to the first order.
        influence = same - (c2 * first + c1 * second - c1 * c2 / c3 * pairs) / c3
        error = math.sqrt(float(weight @ influence**2) / n)
        found = Agreement(round(n), means[0], expected, (means[0] - expected) / max(error, 1e-9))
        best = found if best is None or found.expected > best.expected else best
    return best


@dataclass(frozen=True, slots=True)
class FromVotes:
    """How often labels are no most frequent vote of their item."""

    n: int  # items
    split: int  # items with different votes
    exceptions: int
    perfect: float  # exceptions of true labels
    accuracy: float  # of a vote
    split_exceptions: int
    expected: float  # on these items, of labels that are as often wrong as where votes do not differ
    errors: float  # of them
    z: float

    @property
    def is_changed_majority(self) -> bool:
        """Whether exceptions on items with different votes are mostly errors that occur anywhere."""
        few = self.split_exceptions - self.errors < _MADE * (self.expected - self.errors)
        return few and self.z > _MADE_Z and self.errors < _ERRORS * self.split


def from_votes(sample: SampledVotes, labels: Integers) -> FromVotes | None:
    """Compare labels with the most frequent votes; None if votes differ, or do not differ, on few items.

    Where votes differ, the true label is often no most frequent one, and a labeler that does not see the votes is wrong
    there at least as often as on items of the same category on which they do not differ.
    """
    at, code = sample.row[sample.first], sample.code[sample.first]
    leads, most = sample.leading
    labeled = (labels >= 0) & (sample.total > 1) & sample.decided(labels)
    easy, hard = labeled & (most == sample.total), labeled & (most < sample.total)
    if min(sample.weight[easy].sum(), sample.weight[hard].sum()) < _COMMON_ITEMS:
        return None
    posterior, accuracy = sample.truth
    miss = 1.0 - np.bincount(at[leads], weights=posterior[leads], minlength=len(most)).astype(np.float64)
    leader = np.zeros(len(most), np.int64)
    leader[at[leads][::-1]] = code[leads][::-1]
    exception = sample.exceptions(labels)

    m = int(leader.max(initial=0)) + 1

    def by_leader(rows: npt.NDArray[np.bool_], values: _Floats) -> _Floats:
        weight = (sample.weight * values)[rows]
        return np.bincount(leader[rows], weights=weight, minlength=m).astype(np.float64)

    one = np.ones(len(most))
    n_easy, n_hard = by_leader(easy, one), by_leader(hard, one)
    wrong = by_leader(easy, exception - miss)
    overall = max(float(wrong.sum()), 0.0) / float(n_easy.sum())
    rate = np.clip((wrong + _PRIOR * overall) / (n_easy + _PRIOR), 0, 0.5)
    # A wrong label may be another most frequent vote of a tie: then errors are not counted as exceptions.
    single = np.bincount(at[leads], minlength=len(most)) == 1
    errors = rate[leader]
    expected = float(by_leader(hard, miss * (1 - errors) + (1 - miss) * errors * single).sum())
    observed = float(by_leader(hard, exception).sum())
    variance = expected + float((n_hard**2 * rate * (1 - rate) / (n_easy + _PRIOR)).sum())
    every = easy | hard
    return FromVotes(
        n=round(float(sample.weight[every].sum())),
        split=round(float(n_hard.sum())),
        exceptions=round(float(by_leader(every, exception).sum())),
        perfect=float(by_leader(every, miss).sum()),
        accuracy=accuracy,
        split_exceptions=round(observed),
        expected=expected,
        errors=float(by_leader(hard, errors * single).sum()),
        z=(expected - observed) / math.sqrt(max(variance, 1e-9)),
    )


def is_made_from_votes(exceptions: int, perfect: float, n: int, accuracy: float) -> bool:
    """Tell whether n labels are a most frequent vote too often to be made without the votes.

    True labels are expected to have ``perfect`` exceptions. If these are too few for a test, labels with hardly any
    exception are compared with those of a very good labeler, ``independent_exceptions``, and of an excellent one.
    """
    if perfect >= ENOUGH_EXCEPTIONS and exceptions <= _CHANGED * n and poisson_tail(exceptions, perfect) < CHANCE:
        return True
    if exceptions > _HARDLY_ANY * n or poisson_tail(exceptions, independent_exceptions(perfect, n, accuracy)) >= CHANCE:
        return False
    if poisson_tail(exceptions, perfect + _HARDLY_ANY * n) >= _COMMON_CHANCE:
        return False
    common = _COMMON_CHANCE if perfect >= ENOUGH_EXCEPTIONS else _LIKELY_CHANCE
    return perfect < _FEW_EXCEPTIONS or poisson_tail(exceptions, perfect) < common


def independent_exceptions(perfect: float, n: int, accuracy: float) -> float:
    """Return the exceptions of n labels with a third of the errors of a vote, or with few errors, made without votes.

    Many votes that are often wrong still have a most frequent one that is hardly ever wrong, as are the best labelers.
    """
    return perfect + min((1 - accuracy) * FEWER_ERRORS, _FEW_ERRORS) * n


def poisson_tail(most: int, mean: float) -> float:
    """Return the probability that a Poisson variable is at most ``most``; 1 from its mean on."""
    if most >= mean:
        return 1.0
    return math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(most + 1))


def vote_accuracy(t: float, m: int) -> float:
    """Return the accuracy of votes of which pairs agree with probability t.

    A vote is the true label with probability a, else any other of m categories alike, so that
    ``t = a^2 + (1 - a)^2 / (m - 1)``.
    """
    return (1 + math.sqrt(max(1 - m * (1 - t * (m - 1)), 0.0))) / m


def _truth(sample: SampledVotes) -> tuple[_Floats, float]:
    """Return the probability that each voted category of an item is the true one, and the mean accuracy of a vote.

    Annotators differ in accuracy, and errors are spread evenly over the other categories; estimated by EM (Dawid and
    Skene 1979), with the vote shares as prior.
    """
    at, code, voted = sample.row[sample.first], sample.code[sample.first], sample.total > 1
    weight, m = sample.weight[sample.row], max(int((sample.shares > 0).sum()), 2)
    n, rows = len(sample.annotators), len(sample.weight)
    agreed = float((sample.weight * sample.pairs / np.maximum(sample.total * (sample.total - 1), 1))[voted].sum())
    t = agreed / float(sample.weight[voted].sum())
    low, high = 1 / m + 0.01, 0.999
    mean = min(max(vote_accuracy(t, m), low), high)
    accuracy, number = np.full(n, mean), np.bincount(sample.who, weights=weight, minlength=n)
    prior = sample.shares[code]
    others = np.clip(1 - np.bincount(at, weights=prior, minlength=rows), 0, None)
    for _ in range(_STEPS):
        odds = np.log(accuracy * (m - 1) / (1 - accuracy))
        score = prior * np.exp(np.minimum(np.bincount(sample.cell, weights=odds[sample.who]), 500))
        posterior = score / (np.bincount(at, weights=score, minlength=rows) + others)[at]
        right = np.bincount(sample.who, weights=weight * posterior[sample.cell], minlength=n)
        accuracy = np.clip((right + _PRIOR * mean) / (number + _PRIOR), low, high)
    return posterior, float(np.average(accuracy, weights=number))
