"""Precision, recall and F1 against the votes in exact fractions: plain loops over items, their votes and weights.

An item has a vote and a suggested label; its votes count as one. Weights are one for each item, strata their names.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

F = Fraction
Votes = Sequence[Sequence[Hashable]]


@dataclass(frozen=True)
class Mean:
    """sum a x / sum a over items, each with its weight a and value x."""

    a: list[Fraction]
    x: list[Fraction]

    @property
    def value(self) -> Fraction | None:
        total = sum(self.a, F(0))
        return sum((a * x for a, x in zip(self.a, self.x, strict=True)), F(0)) / total if total else None

    @property
    def moves(self) -> list[Fraction]:
        """By how much each item moves the mean: a (x - mean) / sum a. Times n it is the influence of the item."""
        value, total = self.value, sum(self.a, F(0))
        assert value is not None
        return [a * (x - value) / total for a, x in zip(self.a, self.x, strict=True)]

    @property
    def n(self) -> int:
        return sum(a > 0 for a in self.a)

    @property
    def variance(self) -> Fraction | None:
        return F(self.n, self.n - 1) * sum((z * z for z in self.moves), F(0)) if self.n > 1 else None

    @property
    def share(self) -> Fraction:
        """sum p^3 / sum p^2."""
        total = sum(self.a, F(0))
        return sum(((a / total) ** 3 for a in self.a), F(0)) / sum(((a / total) ** 2 for a in self.a), F(0))


@dataclass(frozen=True)
class Rated:
    """The items that count, with a weight and a stratum each."""

    votes: list[list[Hashable]]
    labels: list[Hashable]
    weights: list[Fraction]
    strata: list[Hashable]

    def c(self, category: Hashable) -> list[Fraction]:
        return [F(votes.count(category), len(votes)) for votes in self.votes]

    def q(self, category: Hashable) -> list[Fraction]:
        return [F(label == category) for label in self.labels]

    def precision(self, category: Hashable) -> Mean:
        return Mean(self._times(self.q(category)), self.c(category))

    def recall(self, category: Hashable) -> Mean:
        return Mean(self._times(self.c(category)), self.q(category))

    def f1(self, category: Hashable) -> Mean:
        pairs = list(zip(self.q(category), self.c(category), strict=True))
        return Mean(
            self._times([(q + c) / 2 for q, c in pairs]), [2 * q * c / (q + c) if q + c else F(0) for q, c in pairs]
        )

    def agreement(self) -> Mean:
        own = [F(votes.count(label), len(votes)) for votes, label in zip(self.votes, self.labels, strict=True)]
        return Mean(self.weights, own)

    def balanced(self, categories: Sequence[Hashable]) -> tuple[Fraction, list[Fraction]]:
        """The mean of the defined recalls, and by how much each item moves it."""
        recalls = [self.recall(category) for category in categories]
        known = [recall for recall in recalls if recall.value is not None]
        value = sum((recall.value or F(0) for recall in known), F(0)) / len(known)
        return value, [sum(moves, F(0)) / len(known) for moves in zip(*(one.moves for one in known), strict=True)]

    def annotator(self, category: Hashable) -> Fraction | None:
        """G_j / C_j on items with two votes or more: a vote for the category, and another vote for it."""
        both = votes = F(0)
        for item, weight in zip(self.votes, self.weights, strict=True):
            if len(item) > 1:
                P, N = item.count(category), len(item)
                both, votes = both + weight * F(P * (P - 1), N * (N - 1)), votes + weight * F(P, N)
        return both / votes if votes else None

    def design_variance(self, moves: Sequence[Fraction]) -> Fraction:
        """sum_h n_h / (n_h - 1) sum_i (z_i - mean_h z)^2."""
        found = F(0)
        for stratum in set(self.strata):
            own = [z for z, of in zip(moves, self.strata, strict=True) if of == stratum]
            middle = sum(own, F(0)) / len(own)
            found += F(len(own), len(own) - 1) * sum(((z - middle) ** 2 for z in own), F(0))
        return found

    def weight_of_one_more(self, label: Hashable) -> Fraction:
        own = [w for w, of in zip(self.weights, self.labels, strict=True) if of == label]
        return sum((w**3 for w in own), F(0)) / sum((w * w for w in own), F(0))

    def recall_shares(self, category: Hashable) -> tuple[Fraction, Fraction]:
        """The share of an unseen item with votes for the category: with another label, and the largest."""
        c = self.c(category)
        typical = sum((x**3 for x in c), F(0)) / sum((x * x for x in c), F(0))
        scale = typical / sum(self.recall(category).a, F(0))
        of = {label: self.weight_of_one_more(label) * scale for label in set(self.labels)}
        low = max((share for label, share in of.items() if label != category), default=of.get(category, F(0)))
        return low, max(low, of.get(category, F(0)))

    def _times(self, values: list[Fraction]) -> list[Fraction]:
        return [w * value for w, value in zip(self.weights, values, strict=True)]


def rated(
    votes: Votes,
    suggested: Sequence[Hashable],
    weights: Sequence[Fraction] | None = None,
    strata: Sequence[Hashable] | None = None,
) -> Rated:
    """Return the items with a vote, a suggested label and a weight."""
    rows = zip(votes, suggested, weights or [F(1)] * len(votes), strata or [0] * len(votes), strict=True)
    kept = []
    for item, label, weight, stratum in rows:
        cast = [vote for vote in item if vote is not None]
        if cast and label is not None and weight:
            kept.append((cast, label, weight, stratum))
    return Rated(*(list(column) for column in zip(*kept, strict=True)) if kept else ([], [], [], []))
