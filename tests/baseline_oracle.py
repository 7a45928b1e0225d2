"""The annotator baseline from its definition: each vote in turn is a suggested label, judged by the other votes.

Plain loops over items, votes and pairs of votes in exact fractions. Every function of the items takes their weights,
so that the influence of an item is a difference quotient. Confidence limits follow the formulas of docs/methods.md.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from scipy.stats import t as student

import oracle

F = Fraction
Item = Sequence[Hashable]
Weights = Sequence[Fraction]
TINY = F(1, 10**16)  # step of a difference quotient in exact arithmetic


@dataclass(frozen=True)
class Scored:
    """Kappa of some labels, and the kappa of the same labels in random order."""

    D: Fraction
    E: Fraction
    kappa: Fraction | None
    random: Fraction | None

    @property
    def above_random(self) -> Fraction:
        assert self.kappa is not None
        assert self.random is not None
        return self.kappa - self.random


def equal(n: int) -> list[Fraction]:
    return [F(1, n)] * n


def differential(votes: Item, label: Hashable) -> Fraction:
    """Share of pairs of votes that agree on the label, less the share that agree on another category."""
    pairs = list(combinations(votes, 2))
    return F(sum((a == b == label) - (a == b != label) for a, b in pairs), len(pairs))


def score(judged: Sequence[tuple[Fraction, Item, Hashable]]) -> Scored:
    """Kappa over labels: their weights (with sum 1), the votes that judge them, and the labels."""
    categories = {vote for _, votes, _ in judged for vote in votes} | {label for *_, label in judged}
    C = {j: sum((w * oracle.vote_share(votes, j) for w, votes, _ in judged), F(0)) for j in categories}
    L = {j: sum((w for w, _, label in judged if label == j), F(0)) for j in categories}
    G = {j: sum((w * oracle.pair_share(votes, j) for w, votes, _ in judged), F(0)) for j in categories}
    D = sum((w * differential(votes, label) for w, votes, label in judged), F(0))
    E = sum((C[j] ** 2 * (2 * L[j] - 1) for j in categories), F(0))
    random = sum((G[j] * (2 * L[j] - 1) for j in categories), F(0))
    return Scored(D, E, oracle.beyond_chance(1, D, E), oracle.beyond_chance(1, random, E))


def annotators(items: Sequence[Item], weights: Weights | None = None) -> Scored:
    """One more typical annotator used as labeler; every item has three votes or more."""
    weights = equal(len(items)) if weights is None else weights
    judged = []
    for w, item in zip(weights, items, strict=True):
        for a, vote in enumerate(item):
            judged.append((w / len(item), [*item[:a], *item[a + 1 :]], vote))
    return score(judged)


def labeler(items: Sequence[Item], labels: Sequence[Hashable], weights: Weights | None = None) -> Scored:
    weights = equal(len(items)) if weights is None else weights
    return score(list(zip(weights, items, labels, strict=True)))


def labeler_by_other_votes(items: Sequence[Item], labels: Sequence[Hashable]) -> Scored:
    """The labeler judged by the same votes as the annotators, each item's votes but one."""
    return score(
        [
            (F(1, len(items) * len(item)), [*item[:a], *item[a + 1 :]], label)
            for item, label in zip(items, labels, strict=True)
            for a in range(len(item))
        ]
    )


def bounded(items: Sequence[Item], upper: bool, weights: Weights | None = None) -> Fraction:
    """A bound of the kappa of annotators from pairs of votes: three votes all differ never, or as often as possible."""
    weights = equal(len(items)) if weights is None else weights
    voted = {vote for item in items for vote in item}
    C = {j: sum((w * oracle.vote_share(item, j) for w, item in zip(weights, items, strict=True)), F(0)) for j in voted}
    t = F(0)
    for w, item in zip(weights, items, strict=True):
        pairs = list(combinations(item, 2))
        t += w * F(sum(a == b for a, b in pairs), len(pairs))
    all_differ = (1 - t) * F(len(voted) - 2, len(voted)) if upper else F(0)
    E = sum((2 * C[j] ** 3 - C[j] ** 2 for j in voted), F(0))
    return (2 * t - 1 + all_differ - E) / (1 - E)


def influence(statistic: Callable[[Weights], Fraction], n: int) -> list[float]:
    """Derivative of a statistic as one item gains weight, for each item, to about 15 digits."""
    base = statistic(equal(n))
    moved = []
    for i in range(n):
        weights = [(1 - TINY) / n + TINY * (k == i) for k in range(n)]
        moved.append(float((statistic(weights) - base) / TINY))
    return moved


def limit(value: float, z: Sequence[float], end: float, sign: int, level: float = 0.95) -> float:
    """A confidence limit of a difference, with half an item of influence ``end`` added (docs/methods.md)."""
    n, w, a = len(z), 0.5, end
    total, quantile = n + w, float(student.ppf((1 + level) / 2, n - 1))
    mu = w * a / total
    V = math.fsum(x * x for x in z) + w * a * a * n / total
    M = math.fsum(x**3 for x in z) - 3 * mu * math.fsum(x * x for x in z) - n * mu**3 + w * (a - mu) ** 3
    skewed = (quantile**2 - 1) / 3 * max(0.0, sign * M / (V * total))
    return value + mu + sign * (quantile * math.sqrt(V / (total * (total - 1))) + skewed)


def best(sizes: Sequence[int]) -> Fraction:
    """Largest 2 (share of pairs - share of triples) that agree on the label, over numbers of votes, times 1 - E_P."""
    return max(
        2 * (F(math.comb(p, 2), math.comb(N, 2)) - F(math.comb(p, 3), math.comb(N, 3)))
        for N in sizes
        for p in range(N + 1)
    )


def share_limit(
    above: tuple[float, float],
    z: tuple[Sequence[float], Sequence[float]],
    reach: tuple[float, float],
    end: float,
    sign: int,
) -> float:
    """The share rho where a limit of (labeler above random) - rho (annotators above random) is 0, by bisection."""
    (A, B), (x, y) = above, z

    def at(rho: float) -> float:
        moves = [p - rho * q for p, q in zip(x, y, strict=True)]
        added = end if sign > 0 else -(reach[0] + abs(rho) * reach[1])
        return limit(A - rho * B, moves, added, sign)

    near = A / B
    far = near + sign
    while sign * at(far) > 0:
        far = near + 2 * (far - near)
        assert abs(far) < 1e6
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (middle, far) if sign * at(middle) > 0 else (near, middle)
    return (near + far) / 2
