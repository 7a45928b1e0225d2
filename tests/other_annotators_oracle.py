"""The variance of kappa over annotators from its definition: loops over items and votes in exact fractions.

Data are a mapping from each annotator to the vote, for each item, and a suggested label for each item. The formulas are
those of docs/methods.md. Limits are floats, from the t distribution of scipy.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

F, ZERO = Fraction, Fraction(0)
Votes = Mapping[Hashable, Hashable]  # by annotator
Items = Sequence[Votes]
Labels = Sequence[Hashable]
Pulls = list[dict[Hashable, Fraction]]  # u_ia, for each item by annotator
ADDED = F(1, 4)  # of an annotator


def annotators(items: Items) -> list[Hashable]:
    return list(dict.fromkeys(who for votes in items for who in votes))


def omega(items: Items) -> dict[Hashable, Fraction]:
    """The share of each annotator in all votes if each item counts once."""
    n = len(items)
    return {a: sum((F(1, n * len(votes)) for votes in items if a in votes), F(0)) for a in annotators(items)}


def categories(items: Items, labels: Labels) -> list[Hashable]:
    return list(dict.fromkeys([*(vote for votes in items for vote in votes.values()), *labels]))


def share(votes: Votes, category: Hashable) -> Fraction:
    return F(list(votes.values()).count(category), len(votes))


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, F(0)) / len(values)


def of_one(votes: Votes, a: Hashable, label: Hashable) -> Fraction:
    """d_ia: the differential of the pairs of votes with that of an annotator."""
    others = [vote for b, vote in votes.items() if b != a]
    sign = 1 if votes[a] == label else -1
    return F(sign * others.count(votes[a]), len(others))


def alike(votes: Votes, a: Hashable) -> Fraction:
    """t_ia: the share of the others who voted the same."""
    others = [vote for b, vote in votes.items() if b != a]
    return F(others.count(votes[a]), len(others))


def triples_alike(votes: Votes, a: Hashable) -> Fraction:
    """T_ia: the share of pairs of others who both voted the same."""
    others = [vote for b, vote in votes.items() if b != a]
    return F(math.comb(others.count(votes[a]), 2), math.comb(len(others), 2))


@dataclass(frozen=True)
class Estimate:
    """A kappa with what the variance and the limits need."""

    kappa: Fraction
    u: Pulls
    down: Fraction = ZERO  # influence of a careless annotator, u-
    up: Fraction = ZERO  # and of one who always votes the label, u+


def kappa(items: Items, labels: Labels, corrected: bool = True) -> Estimate:
    """kappa_DH; unless ``corrected``, r_a is 1."""
    n, om = len(items), omega(items)
    every = categories(items, labels)
    C = {j: mean([share(votes, j) for votes in items]) for j in every}
    L = {j: F(list(labels).count(j), n) for j in every}
    D = mean([mean([of_one(votes, a, label) for a in votes]) for votes, label in zip(items, labels, strict=True)])
    E = sum((C[j] ** 2 * (2 * L[j] - 1) for j in every), F(0))
    value = (D - E) / (1 - E)
    w = {j: C[j] * (2 * L[j] - 1) for j in every}
    u = []
    for votes, label in zip(items, labels, strict=True):
        pulls = {}
        for a, vote in votes.items():
            r = (1 - om[a]) / (1 - 2 * om[a]) if corrected else F(1)
            top = 2 * (r * (of_one(votes, a, label) - D) - (1 - value) * (w[vote] - E))
            pulls[a] = top / (n * len(votes) * (1 - E))
        u.append(pulls)
    pairs = list(zip(items, labels, strict=True))
    X = {j: mean([share(votes, j) * (1 if label == j else -1) for votes, label in pairs]) for j in every}
    down = 2 * (sum((C[j] * X[j] for j in every), F(0)) - D) / (1 - E)
    always = mean([share(votes, label) for votes, label in pairs]) - D
    up = 2 * (always - (1 - value) * (sum((w[j] * L[j] for j in every), F(0)) - E)) / (1 - E)
    return Estimate(value, u, down, up)


def fleiss(items: Items, corrected: bool = True) -> Estimate:
    """Fleiss' kappa."""
    n, om = len(items), omega(items)
    every = categories(items, [])
    C = {j: mean([share(votes, j) for votes in items]) for j in every}
    t = mean([mean([alike(votes, a) for a in votes]) for votes in items])
    same = sum((C[j] ** 2 for j in every), F(0))
    value = (t - same) / (1 - same)
    u = []
    for votes in items:
        pulls = {}
        for a, vote in votes.items():
            r = (1 - om[a]) / (1 - 2 * om[a]) if corrected else F(1)
            top = 2 * r * (alike(votes, a) - t) - 2 * (1 - value) * (C[vote] - same)
            pulls[a] = top / (n * len(votes) * (1 - same))
        u.append(pulls)
    return Estimate(value, u, -2 * value)


def typical(items: Items, corrected: bool = True) -> Estimate:
    """The kappa of a typical annotator used as labeler, on items with three votes or more."""
    n, om = len(items), omega(items)
    every = categories(items, [])
    C = {j: mean([share(votes, j) for votes in items]) for j in every}
    t = mean([mean([alike(votes, a) for a in votes]) for votes in items])
    T = mean([mean([triples_alike(votes, a) for a in votes]) for votes in items])
    E = sum((2 * C[j] ** 3 - C[j] ** 2 for j in every), F(0))
    value = (2 * T - t - E) / (1 - E)
    e = {j: 6 * C[j] ** 2 - 2 * C[j] for j in every}
    middle = sum((C[j] * e[j] for j in every), F(0))
    u = []
    for votes in items:
        pulls = {}
        for a, vote in votes.items():
            r = (1 - om[a]) / (1 - 2 * om[a]) if corrected else F(1)
            r3 = (1 - om[a]) / (1 - 3 * om[a]) if corrected else F(1)
            top = 6 * r3 * (triples_alike(votes, a) - T) - 2 * r * (alike(votes, a) - t)
            pulls[a] = (top - (1 - value) * (e[vote] - middle)) / (n * len(votes) * (1 - E))
        u.append(pulls)
    return Estimate(value, u)


def minus(one: Pulls, other: Pulls) -> Pulls:
    return [{a: left[a] - right[a] for a in left} for left, right in zip(one, other, strict=True)]


@dataclass(frozen=True)
class Variance:
    """The variance over annotators: U_a, noise, B0 and B1, and A*."""

    U: dict[Hashable, Fraction]
    c: Fraction
    noise: Fraction
    B0: Fraction
    B1: Fraction
    effective: Fraction


def variance(items: Items, u: Pulls) -> Variance:
    n, om = len(items), omega(items)
    s2, s3 = (sum((share**power for share in om.values()), F(0)) for power in (2, 3))
    whole = [sum(pulls.values(), F(0)) for pulls in u]
    U = {a: sum((pulls.get(a, F(0)) for pulls in u), F(0)) - om[a] * sum(whole, F(0)) for a in om}
    squares = sum((pull**2 for pulls in u for pull in pulls.values()), F(0))
    crossed = sum((om[a] * pull * x for pulls, x in zip(u, whole, strict=True) for a, pull in pulls.items()), F(0))
    of_U = sum((x**2 for x in U.values()), F(0))
    noise = (n * squares - 2 * n * crossed + n * s2 * sum((x**2 for x in whole), F(0)) - of_U) / (n - 1)
    c = s2 / (s2 - 2 * s3 + s2**2)
    return Variance(U, c, noise, c * of_U, c * (of_U - noise), 1 / s2)


def item_variance(phi: Sequence[Fraction]) -> Fraction:
    n = len(phi)
    return sum((x**2 for x in phi), F(0)) / (n * (n - 1))


def limits(
    value: float,
    low: float,
    high: float,
    V: float,
    n: int,
    found: Variance,
    added: tuple[tuple[float, float], tuple[float, float]] = ((0, 0), (0, 0)),
    level: float = 0.95,
) -> tuple[float, float, tuple[float, float]]:
    """Limits and degrees of freedom; ``added`` has w and u of the lower and of the upper limit."""
    A, ends, dfs = float(found.effective), [], []
    B, B0 = max(0.0, float(found.B1)), float(found.B0)
    for (w, u), limit, sign in zip(added, (low, high), (-1, 1), strict=True):

        def f(x: float, w: float = w, u: float = u) -> float:
            return (x * A * (A - 1) + w * u * u * A / (A + w)) / ((A + w) * (A + w - 1))

        below = V**2 / (n - 1) + f(B0) ** 2 / (A - 1)
        df = min(n - 1, max(A - 1, (V + f(B)) ** 2 / below if below else n - 1))
        t = student.ppf((1 + level) / 2, df)
        spread = math.sqrt(((value - limit) / student.ppf((1 + level) / 2, n - 1)) ** 2 + f(B))
        ends.append(value + w * u / (A + w) + sign * t * spread)
        dfs.append(df)
    return max(ends[0], -14 / 13), min(ends[1], 1.0), (dfs[0], dfs[1])


def weighted(items: Items, labels: Labels, weight: Mapping[Hashable, Fraction], which: str) -> Fraction:
    """A kappa of a complete design if annotators have weights: votes, pairs and triples are drawn by them.

    Different annotators are drawn with probabilities in proportion to the product of their weights.
    """
    every, n = categories(items, labels), len(items)
    whole = sum(weight.values(), F(0))
    C = {j: sum((weight[a] for v in items for a in v if v[a] == j), F(0)) / (n * whole) for j in every}

    def drawn(size: int, value: Callable[[tuple[Hashable, ...], int], Fraction]) -> Fraction:
        """The mean over items of the mean over draws of some annotators, who are all different."""
        total = F(0)
        for i, votes in enumerate(items):
            top = bottom = F(0)
            names = list(votes)
            draws: list[tuple[Hashable, ...]] = [()]
            for _ in range(size):
                draws = [(*draw, a) for draw in draws for a in names if a not in draw]
            for draw in draws:
                p = math.prod((weight[a] for a in draw), start=F(1))
                top, bottom = top + p * value(draw, i), bottom + p
            total += top / bottom
        return total / n

    def all_alike(draw: tuple[Hashable, ...], i: int) -> Fraction:
        return F(len({items[i][a] for a in draw}) == 1)

    def differential(draw: tuple[Hashable, ...], i: int) -> Fraction:
        return all_alike(draw, i) * (1 if items[i][draw[0]] == labels[i] else -1)

    if which == "kappa":
        L = {j: F(list(labels).count(j), n) for j in every}
        E = sum((C[j] ** 2 * (2 * L[j] - 1) for j in every), F(0))
        return (drawn(2, differential) - E) / (1 - E)
    if which == "fleiss":
        same = sum((C[j] ** 2 for j in every), F(0))
        return (drawn(2, all_alike) - same) / (1 - same)
    E = sum((2 * C[j] ** 3 - C[j] ** 2 for j in every), F(0))
    return (2 * drawn(3, all_alike) - drawn(2, all_alike) - E) / (1 - E)


# Data


def drawn(seed: int, n: int = 40, A: int = 12, N: int = 3, m: int = 3, accuracy: float = 0.7) -> Any:
    """An (n, A) array with about N votes per item, 2 at least, None where missing, and labels."""
    random = Random(seed)
    skill = [min(0.95, max(0.2, random.gauss(accuracy, 0.15))) for _ in range(A)]
    votes, labels = np.full((n, A), None, object), []
    for item in range(n):
        truth = random.randrange(m)
        labels.append(truth if random.random() < accuracy else random.randrange(m))
        for a in random.sample(range(A), min(A, max(2, N + random.choice([-1, 0, 1])))):
            votes[item, a] = truth if random.random() < skill[a] else random.randrange(m)
    return votes, labels


def as_items(votes: Any) -> list[dict[Hashable, Hashable]]:
    return [{a: vote for a, vote in enumerate(row) if vote is not None} for row in votes.tolist()]


def close(value: float, exact: Fraction) -> bool:
    return value == pytest.approx(float(exact), rel=1e-10, abs=1e-14)
