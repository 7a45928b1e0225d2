"""Annotator baseline: the exact kappa of a typical annotator used as labeler, from vote counts alone.

Each vote of an item is in turn the suggested label, and the other votes judge it. The mean over the votes of an item is
``d_Pi = 2 T_i - t_i``, where t_i and T_i are the shares of its pairs and triples of votes that agree. With
``E_P = 2 sum_j C_j^3 - sum_j C_j^2``, that is E for the shares L = C, the baseline is (D_P - E_P) / (1 - E_P).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dhkappa.core import Array
from dhkappa.core.grouping import Patterns
from dhkappa.stats.kappa import Estimate, Sums, distinct, majority_sums, sums
from dhkappa.stats.sample import Sample, Stratum
from dhkappa.stats.summation import integer_type, totals

MIN_ITEMS = 20  # below, coverage has not been simulated: there are no limits
NOT_VERIFIED = "The annotator baseline has not been verified with {}."
_ONE_CATEGORY = "Every vote is the same category."


@dataclass(frozen=True, slots=True, eq=False)
class VotesBaseline:
    """The annotator baseline of some items, from their votes alone: the same for every labeler of these items."""

    used: Sums | None = None  # sums over the items used; None if the baseline is undefined
    pairs: Sequence[int] = ()  # agreeing pairs of these items by category, G_j n pair_unit
    fewest: int = 2  # items with so many votes or more are used
    # 1 - d_Pi = (2 - a) (1 - t_i): a = 0 if two categories are voted for, two values if there are bounds. If empty,
    # d_Pi comes from triples of votes.
    a: tuple[Fraction, ...] = ()
    D: tuple[Fraction, ...] = ()  # D_P, or its bounds
    E: Fraction = Fraction(1)  # E_P
    random: Fraction = Fraction(0)  # D of the votes as labels in random order, sum_j G_j (2 C_j - 1)
    best: float | None = None  # largest d_i - d_Pi that an item can have; None if items have two votes
    reason: str | None = None

    @property
    def kappas(self) -> tuple[Fraction, ...]:
        """The annotator baseline, or its two bounds; empty if it is undefined."""
        return tuple((D - self.E) / (1 - self.E) for D in self.D)


def votes_baseline(estimate: Estimate) -> VotesBaseline:
    """Return the annotator baseline of the eligible items, which does not depend on their labels.

    Items with three votes or more are used. If two categories are voted for, d_Pi is 2 t_i - 1, so two votes suffice,
    and the baseline is Fleiss' kappa, whatever the labels. Otherwise, if too few items have three votes, there are
    bounds: ``d_Pi = 2 t_i - 1 + delta_i``, and the probability delta that three votes all differ is at most
    ``(1 - t) (k - 2) / k``, where k categories are voted for.
    """
    sample, used = estimate.sample, estimate.sums
    if used.n == 0 or sample.designed:
        reason = estimate.reason if used.n == 0 else NOT_VERIFIED.format("sample weights, strata or a pool")
        return VotesBaseline(reason=reason)
    sizes = sample.patterns.vote_totals()
    enough, k = int(sample.patterns.items[sizes >= 3].sum()), sum(number > 0 for number in used.votes)
    by_triples = k > 2 and enough > 0 and (enough >= MIN_ITEMS or used.n < MIN_ITEMS)
    if by_triples and enough < used.n:
        sample, sizes = with_votes(sample, 3), sizes[sizes >= 3]
        used = sums(sample, labeled=False)
    whole, pairs = used.n * used.vote_unit, used.n * used.pair_unit
    E = Fraction(sum(v * v * (2 * v - whole) for v in used.votes), whole**3)
    if E == 1:
        return VotesBaseline(reason=_ONE_CATEGORY)
    by_category = majority_sums(sample).pairs
    random = Fraction(sum(g * (2 * v - whole) for g, v in zip(by_category, used.votes, strict=True)), whole * pairs)
    t = Fraction(used.agreeing, pairs)
    a = () if by_triples else (Fraction(0),) if k == 2 else (Fraction(0), Fraction(k - 2, k))
    D = (2 * _agreeing_triples(sample.patterns) - t,) if by_triples else tuple(1 - (2 - each) * (1 - t) for each in a)
    best = max(map(_most_lost, distinct(sizes))) if sizes.min() > 2 else None
    return VotesBaseline(used, by_category, 3 if by_triples else 2, a, D, E, random, best)


def annotator_kappa(estimate: Estimate) -> Fraction | None:
    """Return the annotator baseline; None if it is undefined or if only bounds are known."""
    if estimate.metric != "dh":
        return None
    found = votes_baseline(estimate).kappas
    return found[0] if len(found) == 1 else None


def with_votes(sample: Sample, fewest: int) -> Sample:
    """Return the items that have so many votes or more, of a sample without weights, strata and pool."""
    enough = sample.patterns.vote_totals() >= fewest
    patterns = sample.patterns.take(enough)
    strata, stratum = (Stratum(None, int(patterns.items.sum()), None),), np.zeros(len(patterns), np.int8)
    cluster = None if sample.cluster is None else np.unique(sample.cluster[enough], return_inverse=True)[1]
    own = replace(sample, patterns=patterns, mass=patterns.items, stratum=stratum, strata=strata, kept=None, rows=None)
    return replace(own, cluster=cluster)


def triples(patterns: Patterns) -> tuple[Array, Array]:
    """Return (K,) the triples of votes on an item that agree, and all of its triples, as integers."""
    sizes = patterns.vote_totals()
    votes = patterns.votes.astype(integer_type(int(sizes.max()) ** 3))
    agreeing, every = (x * (x - 1) * (x - 2) // 6 for x in (votes, sizes.astype(votes.dtype)))
    return np.add.reduceat(agreeing, patterns.start[:-1]), every


def _agreeing_triples(patterns: Patterns) -> Fraction:
    """Return the mean over items of T_i, the share of triples of votes that agree."""
    agreeing, every = triples(patterns)
    n = int(patterns.items.sum())
    exact = integer_type(n * int(every.max()))
    kinds, place = np.unique(every, return_inverse=True)
    by_kind = totals(agreeing.astype(exact) * patterns.items.astype(exact), place, kinds.size)
    unit = math.lcm(*kinds.tolist())
    return Fraction(sum(k * (unit // kind) for k, kind in zip(by_kind.tolist(), kinds.tolist(), strict=True)), unit * n)


def _most_lost(N: int) -> float:
    """Return the largest ``d_i - d_Pi = 2 p (p - 1) (N - p) / (N (N - 1) (N - 2))``, if p of N votes are the label."""
    top = int((N + 1 + math.sqrt((N + 1) ** 2 - 3 * N)) / 3)  # the derivative changes its sign between top and top + 1
    return max(2 * p * (p - 1) * (N - p) / (N * (N - 1) * (N - 2)) for p in (top, top + 1))
