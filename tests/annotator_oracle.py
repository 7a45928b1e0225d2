"""Scores and tests of annotators from their definitions: loops over items and votes in exact fractions.

Data are a mapping from each item to the votes by annotator. Only items with two votes or more count.
"""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations

F = Fraction
Votes = Mapping[Hashable, Hashable]  # by annotator
Items = Sequence[Votes]


def usable(items: Items) -> list[Votes]:
    return [votes for votes in items if len(votes) > 1]


def frequencies(items: Items) -> dict[Hashable, Fraction]:
    """C_j: the mean share of votes for each category."""
    found: dict[Hashable, Fraction] = {}
    for votes in usable(items):
        for vote in votes.values():
            found[vote] = found.get(vote, F(0)) + F(1, len(votes)) / len(usable(items))
    return found


def share_of_others(votes: Votes, annotator: Hashable, category: Hashable) -> Fraction:
    others = [vote for who, vote in votes.items() if who != annotator]
    return F(others.count(category), len(others))


def x(items: Items, votes: Votes, annotator: Hashable) -> Fraction:
    C = frequencies(items)
    own = votes[annotator]
    return (share_of_others(votes, annotator, own) - C[own]) / (1 - sum(share**2 for share in C.values()))


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, F(0)) / len(values)


def scores(items: Items, annotator: Hashable) -> list[Fraction]:
    """x of each vote of an annotator."""
    return [x(items, votes, annotator) for votes in usable(items) if annotator in votes]


def omega(items: Items, annotator: Hashable) -> Fraction:
    """The share of an annotator in all votes if each item counts once."""
    n = len(usable(items))
    return sum((F(1, n * len(votes)) for votes in usable(items) if annotator in votes), F(0))


def mean_by_omega(items: Items, annotator: Hashable) -> Fraction:
    """The mean of x over an annotator's items, each with weight 1 / N_i."""
    own = [votes for votes in usable(items) if annotator in votes]
    return sum((x(items, votes, annotator) / len(votes) for votes in own), F(0)) / sum(F(1, len(v)) for v in own)


def fleiss(items: Items) -> Fraction:
    """Fleiss' kappa from pairs of votes."""
    C = frequencies(items)
    chance = sum(share**2 for share in C.values())
    agree = mean([mean([share_of_others(votes, who, vote) for who, vote in votes.items()]) for votes in usable(items)])
    return (agree - chance) / (1 - chance)


def funnel(items: Items, annotator: Hashable) -> tuple[int, Fraction, Fraction, Fraction]:
    """Number of items with three votes or more, Q_a, and its variance and third moment if any vote may be a's."""
    n, Q, variance, third = 0, F(0), F(0), F(0)
    for votes in items:
        if annotator in votes and len(votes) > 2:
            all_x = [x(items, votes, who) for who in votes]
            middle = mean(all_x)
            n, Q = n + 1, Q + x(items, votes, annotator) - middle
            variance += mean([(value - middle) ** 2 for value in all_x])
            third += mean([(value - middle) ** 3 for value in all_x])
    return n, Q, variance, third


def random_orders(items: Items, annotator: Hashable) -> tuple[Fraction, Fraction, Fraction]:
    """T of an annotator's votes, and its mean and variance over all orders of these votes."""
    own = [votes for votes in usable(items) if annotator in votes]
    given = [votes[annotator] for votes in own]

    def T(order: Sequence[Hashable]) -> Fraction:
        pairs = zip(own, order, strict=True)
        return sum((share_of_others(votes, annotator, label) for votes, label in pairs), F(0))

    drawn = [T(order) for order in permutations(given)]
    return T(given), mean(drawn), mean([(value - mean(drawn)) ** 2 for value in drawn])


def knows(items: Items, annotator: Hashable) -> tuple[Fraction, Fraction]:
    """How much an annotator knows, and n - 1 times the variance of a typical annotator's."""
    own = [votes for votes in usable(items) if annotator in votes]
    n, categories = len(own), frequencies(items)
    T, by_chance, _ = random_orders(items, annotator)
    s = {j: [share_of_others(votes, annotator, j) for votes in own] for j in categories}
    m = {j: mean(values) for j, values in s.items()}
    S = {j: mean([(value - m[j]) ** 2 for value in values]) for j, values in s.items()}
    spread = 1 - sum(value**2 for value in m.values())
    if spread == 0:  # the votes of the others are the same on all items
        return F(0), F(0)
    return (T - by_chance) / n / spread, sum((m[j] * S[j] for j in m), F(0)) / spread**2


def moments(items: Items) -> tuple[Fraction, Fraction, Fraction]:
    """Mean by votes, variance within annotators, and variance between them (DerSimonian and Laird)."""
    own = [scores(items, who) for who in sorted({who for votes in usable(items) for who in votes}, key=str)]
    total, k = sum(map(len, own)), len(own)
    middle = sum((sum(values, F(0)) for values in own), F(0)) / total
    within = sum(((value - mean(values)) ** 2 for values in own for value in values), F(0)) / (total - k)
    Q = sum((len(values) * (mean(values) - middle) ** 2 for values in own), F(0))
    size = total - F(sum(len(values) ** 2 for values in own), total)
    return middle, within, max(F(0), (Q - (k - 1) * within) / size)


def flagged(pvalues: Sequence[float], level: float) -> set[int]:
    """The step-up procedure of Benjamini and Hochberg as published: all up to the last p_(i) <= i q / k."""
    order = sorted(range(len(pvalues)), key=lambda place: pvalues[place])
    last = max((i for i, place in enumerate(order, 1) if pvalues[place] <= i * level / len(order)), default=0)
    return set(order[:last])
