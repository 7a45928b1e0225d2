"""Kappa with agreement weights by plain loops over items and pairs of votes, in exact fractions.

Votes and labels are codes from 0. Shares of items may be dual numbers, so that the influence of an item on any value
is its exact derivative.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

F = Fraction
NOTHING = F(0)
Matrix = Sequence[Sequence[Fraction]]


@dataclass(frozen=True)
class Dual:
    """A number and its derivative: arithmetic that differentiates exactly."""

    value: Fraction
    slope: Fraction = NOTHING

    @staticmethod
    def of(number: "Dual | Fraction | int") -> "Dual":
        return number if isinstance(number, Dual) else Dual(F(number))

    def __add__(self, other: Any) -> "Dual":
        other = Dual.of(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> "Dual":
        other = Dual.of(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: Any) -> "Dual":
        other = Dual.of(other)
        ratio = self.value / other.value
        return Dual(ratio, (self.slope - ratio * other.slope) / other.value)

    def __sub__(self, other: Any) -> "Dual":
        return self + Dual.of(other) * -1

    def __rsub__(self, other: Any) -> "Dual":
        return Dual.of(other) - self

    __radd__, __rmul__ = __add__, __mul__


def named_weights(kind: str, m: int) -> list[list[Fraction]]:
    power = {"linear": 1, "quadratic": 2, "identity": 0}[kind]
    if not power:
        return [[F(x == y) for y in range(m)] for x in range(m)]
    return [[1 - F(abs(x - y), max(m - 1, 1)) ** power for y in range(m)] for x in range(m)]


def random_weights(random: Random, m: int) -> list[list[Fraction]]:
    """Weights of every kind that is allowed: 0 and 1 off the diagonal too, and no triangle inequality."""
    w = [[F(1)] * m for _ in range(m)]
    for x, y in combinations(range(m), 2):
        w[x][y] = w[y][x] = random.choice([F(0), F(1), F(random.randint(0, 12), 12), F(random.randint(0, 7), 7)])
    return w


@dataclass(frozen=True)
class Items:
    """Eligible items: their votes, suggested labels, weights of categories, and shares of the items."""

    votes: Sequence[Sequence[int]]
    labels: Sequence[int]
    w: Matrix
    share: Sequence[Any]

    @property
    def codes(self) -> range:
        return range(len(self.w))

    def pair(self, x: int, y: int, label: int) -> Fraction:
        return self.w[x][y] * (self.w[x][label] + self.w[y][label] - 1)

    def d(self, item: int, label: int) -> Fraction:
        pairs = list(combinations(self.votes[item], 2))
        return sum((self.pair(x, y, label) for x, y in pairs), F(0)) / len(pairs)

    def agreement(self, item: int) -> Fraction:
        pairs = list(combinations(self.votes[item], 2))
        return sum((self.w[x][y] for x, y in pairs), F(0)) / len(pairs)

    def mean(self, of: Callable[[int], Any]) -> Any:
        return sum((part * of(item) for item, part in enumerate(self.share)), F(0))

    @property
    def C(self) -> list[Any]:
        shares = [[F(list(votes).count(j), len(votes)) for votes in self.votes] for j in self.codes]
        return [self.mean(own.__getitem__) for own in shares]

    @property
    def L(self) -> list[Any]:
        return [self.mean([F(label == j) for label in self.labels].__getitem__) for j in self.codes]

    @property
    def D(self) -> Any:
        return self.mean(lambda i: self.d(i, self.labels[i]))

    def E_of(self, label: int) -> Any:
        """Draw two votes on their own, of items with this label."""
        C = self.C
        return sum((C[x] * C[y] * self.pair(x, y, label) for x in self.codes for y in self.codes), F(0))

    @property
    def E(self) -> Any:
        L = self.L
        return sum((L[label] * self.E_of(label) for label in set(self.labels)), F(0))

    @property
    def kappa(self) -> Any:
        return above(self.D, self.E)

    @property
    def D0(self) -> Any:
        """The mean over items and, drawn on their own, labels."""
        L = self.L
        return self.mean(lambda i: sum((L[label] * self.d(i, label) for label in set(self.labels)), F(0)))

    @property
    def random(self) -> Any:
        return above(self.D0, self.E)

    @property
    def above_random(self) -> Any:
        return above(self.D, self.D0)

    @property
    def majority(self) -> Any:
        return replace(self, labels=[max(self.codes, key=list(votes).count) for votes in self.votes]).kappa

    @property
    def fleiss(self) -> Any:
        C = self.C
        chance = sum((C[x] * C[y] * self.w[x][y] for x in self.codes for y in self.codes), F(0))
        return above(self.mean(self.agreement), chance)

    def D_of(self, label: int) -> Any:
        return self.mean(lambda i: F(self.labels[i] == label) * self.d(i, label)) / self.L[label]

    def kappa_of(self, label: int) -> Any:
        """Kappa of the items with a suggested label; C is that of all items."""
        return above(self.D_of(label), self.E_of(label))

    def without(self, item: int) -> "Items":
        keep = [i for i in range(len(self.votes)) if i != item]
        whole = sum((self.share[i] for i in keep), F(0))
        share = [self.share[i] / whole for i in keep]
        return Items([self.votes[i] for i in keep], [self.labels[i] for i in keep], self.w, share)

    def influence(self, value: Callable[["Items"], Any], item: int) -> Fraction:
        """The derivative of a value as an item gains weight and all others lose it in proportion."""
        moved = [Dual(part, F(i == item) - part) for i, part in enumerate(self.share)]
        slope: Fraction = value(replace(self, share=moved)).slope
        return slope

    def variance(self, value: Callable[["Items"], Any]) -> Fraction:
        """n/(n - 1) sum_i (share_i phi_i)^2, for a simple random sample."""
        n = len(self.votes)
        z = [self.share[i] * self.influence(value, i) for i in range(n)]
        return F(n, n - 1) * sum((part**2 for part in z), F(0))


def above(D: Any, E: Any) -> Any:
    """(D - E) / (1 - E), eq. 13; None where E is 1."""
    return None if Dual.of(E).value == 1 else (D - E) / (1 - E)


def items_of(votes: Any, labels: Any, categories: Sequence[Any], w: Matrix, weight: Sequence[Any] = ()) -> Items:
    """Return the items with two votes or more and a label; None is missing."""
    place = {category: code for code, category in enumerate(categories)}
    cast = [[place[vote] for vote in item if vote is not None] for item in votes]
    keep = [i for i, item in enumerate(cast) if len(item) > 1 and labels[i] is not None and (not weight or weight[i])]
    part = [F(weight[i]) if weight else F(1) for i in keep]
    share = [value / sum(part) for value in part]
    return Items([cast[i] for i in keep], [place[labels[i]] for i in keep], w, share)
