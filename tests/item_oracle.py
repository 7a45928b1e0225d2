"""Weights, strata and pools by plain loops over items, in exact fractions."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

F = Fraction


@dataclass(frozen=True)
class Item:
    votes: tuple[Hashable, ...]
    label: Hashable
    weight: Fraction
    stratum: Hashable


def c(votes: Sequence[Hashable], j: Hashable) -> Fraction:
    return F(sum(vote == j for vote in votes), len(votes))


def g(votes: Sequence[Hashable], j: Hashable) -> Fraction:
    pairs = list(combinations(votes, 2))
    return F(sum(a == b == j for a, b in pairs), len(pairs))


def t(votes: Sequence[Hashable]) -> Fraction:
    return sum((g(votes, j) for j in set(votes)), F(0))


def d(votes: Sequence[Hashable], label: Hashable) -> Fraction:
    return 2 * g(votes, label) - t(votes)


class Oracle:
    """Everything by plain loops over items; ``sizes`` are pool sizes by stratum."""

    def __init__(self, items: Sequence[Item], categories: Sequence[Hashable], sizes: dict[Hashable, int] | None = None):
        self.items, self.categories, self.sizes = items, categories, sizes or {}
        self.W = sum((item.weight for item in items), F(0))
        self.C = self.means(lambda item, j: c(item.votes, j))
        self.L = self.means(lambda item, j: F(item.label == j))
        self.G = self.means(lambda item, j: g(item.votes, j))
        self.D = self.mean(lambda item: d(item.votes, item.label))
        self.C_E = sum((self.C[j] ** 2 * self.L[j] for j in categories), F(0))
        self.same = sum((self.C[j] ** 2 for j in categories), F(0))
        self.E = 2 * self.C_E - self.same
        self.D0 = sum((self.G[j] * (2 * self.L[j] - 1) for j in categories), F(0))

    def mean(self, of: Callable[[Item], Fraction]) -> Fraction:
        return sum((item.weight * of(item) for item in self.items), F(0)) / self.W

    def means(self, of: Callable[[Item, Hashable], Fraction]) -> dict[Hashable, Fraction]:
        return {j: sum((i.weight * of(i, j) for i in self.items), F(0)) / self.W for j in self.categories}

    @property
    def kappa(self) -> Fraction:
        return (self.D - self.E) / (1 - self.E)

    @property
    def random(self) -> Fraction:
        return (self.D0 - self.E) / (1 - self.E)

    @property
    def above_random(self) -> Fraction:
        return (self.D - self.D0) / (1 - self.D0)

    @property
    def fleiss(self) -> Fraction | None:
        return None if self.same == 1 else (sum(self.G.values()) - self.same) / (1 - self.same)

    @property
    def majority(self) -> Fraction | None:
        best = [
            Item(item.votes, max(self.categories, key=item.votes.count), item.weight, None)  # first of several
            for item in self.items
        ]
        other = Oracle(best, self.categories)
        return None if other.E == 1 else other.kappa

    # Influence of an item with these votes.

    def phi(self, item: Item, votes: Sequence[Hashable]) -> Fraction:
        pull = sum((self.C[j] * (2 * self.L[j] - 1) * c(votes, j) for j in self.categories), F(0))
        eps = 2 * (pull + self.C[item.label] ** 2 - self.E - self.C_E)
        return (d(votes, item.label) - self.D - (1 - self.kappa) * eps) / (1 - self.E)

    def phi_fleiss(self, item: Item, votes: Sequence[Hashable]) -> Fraction:
        assert self.fleiss is not None
        eps = 2 * (sum((self.C[j] * c(votes, j) for j in self.categories), F(0)) - self.same)
        return (t(votes) - sum(self.G.values()) - (1 - self.fleiss) * eps) / (1 - self.same)

    def phi_above_random(self, item: Item, votes: Sequence[Hashable]) -> Fraction:
        eps = F(0)
        for j in self.categories:
            eps += (g(votes, j) - self.G[j]) * (2 * self.L[j] - 1)
            eps += 2 * self.G[j] * ((item.label == j) - self.L[j])
        return (d(votes, item.label) - self.D - (1 - self.above_random) * eps) / (1 - self.D0)

    def D_j(self, j: Hashable) -> Fraction:
        return self.mean(lambda item: (item.label == j) * d(item.votes, item.label)) / self.L[j]

    def E_j(self, j: Hashable) -> Fraction:
        return 2 * self.C[j] ** 2 - self.same

    def kappa_j(self, j: Hashable) -> Fraction:
        return (self.D_j(j) - self.E_j(j)) / (1 - self.E_j(j))

    def phi_category(self, j: Hashable) -> Callable[[Item, Sequence[Hashable]], Fraction]:
        def phi(item: Item, votes: Sequence[Hashable]) -> Fraction:
            spread = sum((self.C[k] * (c(votes, k) - self.C[k]) for k in self.categories), F(0))
            eps = 4 * self.C[j] * (c(votes, j) - self.C[j]) - 2 * spread
            gap = F(item.label == j) / self.L[j] * (d(votes, item.label) - self.D_j(j))
            return (gap - (1 - self.kappa_j(j)) * eps) / (1 - self.E_j(j))

        return phi

    def variance(self, phi: Callable[[Item, Sequence[Hashable]], Fraction]) -> Fraction:
        """(W_h/W)^2 (1 - f_h) s_h^2/n_h, as it is for unequal weights."""
        total = F(0)
        for h in {item.stratum for item in self.items}:
            inside = [item for item in self.items if item.stratum == h]
            n, f = len(inside), F(len(inside), self.sizes[h]) if h in self.sizes else F(0)
            z = [item.weight * phi(item, item.votes) / self.W for item in inside]
            middle = sum(z, F(0)) / n
            if n > 1:
                total += (1 - f) * F(n, n - 1) * sum(((value - middle) ** 2 for value in z), F(0))
        return total
