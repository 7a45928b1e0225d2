"""Shares of a pool in exact fractions, with loops over items: the formulas of docs/methods.md."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

F = Fraction
Item = tuple[Hashable, Sequence[Hashable]]  # a suggested label and votes


@dataclass(frozen=True)
class Mean:
    value: Fraction
    variance: Fraction | None
    low: tuple[Fraction, Fraction]  # of the item added for the lower limit: its share of the weight, and its move
    high: tuple[Fraction, Fraction]
    unseen: Fraction


@dataclass(frozen=True)
class Pool:
    groups: set[frozenset[Hashable]]
    shares: dict[Hashable, Mean]
    wrong: Mean
    wrong_by_label: dict[Hashable, Mean]
    typical: Fraction | None
    gains: dict[Hashable, Fraction | None]


def usable(items: Sequence[tuple[Hashable, Sequence[Hashable]]]) -> list[Item]:
    voted = [(label, [vote for vote in votes if vote is not None]) for label, votes in items]
    return [(label, votes) for label, votes in voted if votes and label is not None]


def merged(n: Mapping[Any, int], M: Mapping[Any, int], fewest: int) -> set[frozenset[Hashable]]:
    """Merge labels with few items; then the one with the next fewest items (of these, the smallest in the pool)."""
    small = {label for label in M if n[label] < fewest}
    while small and sum(n[label] for label in small) < fewest and len(small) < len(M):
        rest = {label: (n[label], M[label]) for label in M if label not in small}
        small |= {label for label in rest if rest[label] == min(rest.values())}
    return {frozenset([label]) for label in M if label not in small} | ({frozenset(small)} if small else set())


def share(category: Hashable) -> Callable[[Item], Fraction]:
    return lambda item: F(sum(vote == category for vote in item[1]), len(item[1]))


def against(item: Item) -> Fraction:
    return F(sum(vote != item[0] for vote in item[1]), len(item[1]))


def between_votes(x: Fraction, item: Item) -> Fraction:
    return x * (1 - x) / (len(item[1]) - 1)


def weighted_mean(
    items: Sequence[Item], weights: Sequence[Fraction], value: Callable[[Item], Fraction], fraction: Fraction | None
) -> tuple[Fraction, Fraction | None, Fraction]:
    """Return the mean, its variance, and the share of the weight that one more item would have."""
    p, x, n = [weight / sum(weights) for weight in weights], [value(item) for item in items], len(items)
    mean = sum((a * b for a, b in zip(p, x, strict=True)), F(0))
    unseen = sum(a**3 for a in p) / sum(a**2 for a in p)
    if n == 1:
        return mean, None, F(unseen)
    variance = F(n, n - 1) * sum(((a * (b - mean)) ** 2 for a, b in zip(p, x, strict=True)), F(0))
    if fraction is not None:
        votes = [a * a * between_votes(b, item) for a, b, item in zip(p, x, items, strict=True)]
        variance = (1 - fraction) * variance + fraction * sum(votes, F(0))
    return mean, variance, F(unseen)


def estimate(
    groups: set[frozenset[Hashable]],
    items: Sequence[Item],
    M: Mapping[Any, int],
    value: Callable[[Item], Fraction],
    drawn_by_label: bool,
    finite: bool,
) -> Mean:
    n, whole = Counter(label for label, _ in items), sum(M.values())
    total, variance, ends = F(0), F(0), []
    known = True
    for group in groups:
        own = [item for item in items if item[0] in group]
        weights = [F(M[label], n[label]) if drawn_by_label else F(1) for label, _ in own]
        W = F(sum(M[label] for label in group), whole)
        fractions = [F(n[label], M[label]) for label in group]
        pooled = F(len(own), sum(M[label] for label in group))
        fraction = (min(fractions) if drawn_by_label else pooled) if finite else None
        mean, own_variance, unseen = weighted_mean(own, weights, value, fraction)
        total += W * mean
        known &= own_variance is not None
        variance += W**2 * (own_variance or 0)
        ends.append((W * unseen, mean))
    low = max(ends, key=lambda end: (end[0] * end[1], end[0]))
    high = max(ends, key=lambda end: (end[0] * (1 - end[1]), end[0]))
    unseen = max(end[0] for end in ends)
    return Mean(total, variance if known else None, (low[0], -low[1]), (high[0], 1 - high[1]), unseen)


def pool_shares(
    given: Sequence[tuple[Hashable, Sequence[Hashable]]],
    sizes: Mapping[Any, int],
    *,
    drawn_by_label: bool = False,
    finite: bool = False,
    fewest: int = 5,
) -> Pool:
    items = usable(given)
    M = {label: size for label, size in sizes.items() if size}
    n = Counter(label for label, _ in items)
    groups = merged(n, M, fewest)
    categories = {vote for _, votes in items for vote in votes} | set(M)
    shares = {k: estimate(groups, items, M, share(k), drawn_by_label, finite) for k in categories}
    wrong = {}
    for label in n:
        own = [item for item in items if item[0] == label]
        wrong[label] = estimate({frozenset([label])}, own, {label: M[label]}, against, drawn_by_label, finite)
    several = [item for item in items if len(item[1]) > 1]
    weights = [F(M[label], n[label]) if drawn_by_label else F(1) for label, _ in several]
    typical = None
    if several:
        agreeing = [
            F(sum(v * (v - 1) for v in Counter(votes).values()), len(votes) * (len(votes) - 1)) for _, votes in several
        ]
        agree = sum((w * t for w, t in zip(weights, agreeing, strict=True)), F(0))
        typical = 1 - agree / sum(weights, F(0))
    gains = {k: gain(groups, items, M, share(k), drawn_by_label) for k in categories}
    total = estimate(groups, items, M, against, drawn_by_label, finite)
    return Pool(groups, shares, total, wrong, typical, gains)


def gain(
    groups: set[frozenset[Hashable]],
    items: Sequence[Item],
    M: Mapping[Any, int],
    value: Callable[[Item], Fraction],
    drawn_by_label: bool,
) -> Fraction | None:
    """1/(1 - R^2): the variance in the pool over that within groups."""
    n, whole = Counter(label for label, _ in items), sum(M.values())
    within, means = F(0), []
    for group in groups:
        own = [item for item in items if item[0] in group]
        weights = [F(M[label], n[label]) if drawn_by_label else F(1) for label, _ in own]
        mean, _, _ = weighted_mean(own, weights, value, None)
        W = F(sum(M[label] for label in group), whole)
        if len(own) == 1:
            return None
        spread = sum((w * (value(item) - mean) ** 2 for w, item in zip(weights, own, strict=True)), F(0)) / sum(weights)
        within += W * spread * F(len(own), len(own) - 1)
        means.append((W, mean))
    theta = sum((W * mean for W, mean in means), F(0))
    between = sum((W * (mean - theta) ** 2 for W, mean in means), F(0))
    return None if within == 0 else (within + between) / within
