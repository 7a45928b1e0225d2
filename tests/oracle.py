"""The paper's definitions in exact fractions: plain loops over items and over the annotator pairs of an item.

Equation numbers are those of DiPietro and Hazari's paper. Votes are one list per item, None where a vote is
missing; suggested labels are None where missing. With ragged votes every mean is a mean over items, which is
the paper's own formula when all items have N votes (docs/methods.md).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations

Votes = Sequence[Sequence[Hashable]]


@dataclass(frozen=True)
class Excluded:
    no_votes: int
    one_vote: int
    no_label: int


@dataclass(frozen=True)
class Fleiss:
    n: int
    votes: int
    C: dict[Hashable, Fraction]
    R: Fraction
    C_E: Fraction
    kappa: Fraction | None
    excluded: Excluded


@dataclass(frozen=True)
class DH:
    n: int
    votes: int
    C: dict[Hashable, Fraction]
    L: dict[Hashable, Fraction]
    R: Fraction
    S: Fraction
    C_E: Fraction
    C_F: Fraction
    D: Fraction
    E: Fraction
    kappa: Fraction | None
    fleiss: Fraction | None
    random: Fraction | None
    majority: Fraction | None
    excluded: Excluded


def cast(item: Sequence[Hashable]) -> list[Hashable]:
    return [vote for vote in item if vote is not None]


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values) if values else Fraction(0)


def beyond_chance(n: int, observed: Fraction, expected: Fraction) -> Fraction | None:
    """Eq. 3 and 13; undefined where nothing was observed or chance alone is perfect."""
    return None if n == 0 or expected == 1 else (observed - expected) / (1 - expected)


def vote_share(item: Sequence[Hashable], category: Hashable) -> Fraction:
    return Fraction(sum(vote == category for vote in item), len(item))


def pair_share(item: Sequence[Hashable], category: Hashable) -> Fraction:
    """Share of the item's annotator pairs in which both chose this category."""
    pairs = list(combinations(item, 2))
    return Fraction(sum(a == b == category for a, b in pairs), len(pairs))


def eligible(votes: Votes, suggested: Sequence[Hashable]) -> tuple[Votes, Sequence[Hashable], Excluded]:
    items, labels = [], []
    no_votes = one_vote = no_label = 0
    for item, label in zip(map(cast, votes), suggested, strict=True):
        if len(item) == 0:
            no_votes += 1
        elif len(item) == 1:
            one_vote += 1
        elif label is None:
            no_label += 1
        else:
            items.append(item)
            labels.append(label)
    return items, labels, Excluded(no_votes, one_vote, no_label)


def fleiss(votes: Votes) -> Fleiss:
    """Eq. 1-3 over every item with two votes or more."""
    items, _, excluded = eligible(votes, [True] * len(votes))
    categories = {vote for item in items for vote in item}
    C = {j: mean([vote_share(item, j) for item in items]) for j in categories}  # eq. 1
    R_i = [sum((pair_share(item, j) for j in categories), Fraction(0)) for item in items]  # eq. 2
    C_E = sum((C[j] ** 2 for j in categories), Fraction(0))
    kappa = beyond_chance(len(items), mean(R_i), C_E)  # eq. 3
    return Fleiss(len(items), sum(map(len, items)), C, mean(R_i), C_E, kappa, excluded)


def cohen(votes: Votes, suggested: Sequence[Hashable]) -> tuple[int, Fraction | None]:
    """Return the number of items with one vote and a label, and Cohen's kappa of the vote and the label."""
    pairs = [(cast(item)[0], label) for item, label in zip(votes, suggested, strict=True) if len(cast(item)) == 1]
    pairs = [(vote, label) for vote, label in pairs if label is not None]
    observed = mean([Fraction(vote == label) for vote, label in pairs])
    expected = mean([Fraction(vote == label) for vote, _ in pairs for _, label in pairs])
    return len(pairs), beyond_chance(len(pairs), observed, expected)


def dh(votes: Votes, suggested: Sequence[Hashable], categories: Sequence[Hashable]) -> DH:
    """Eq. 4-13, with the baselines of docs/methods.md; ties follow `categories`."""
    items, labels, excluded = eligible(votes, suggested)
    n, zero = len(items), Fraction(0)
    C = {j: mean([vote_share(item, j) for item in items]) for j in categories}  # eq. 4
    L = {j: mean([Fraction(label == j) for label in labels]) for j in categories}  # eq. 5
    C_E = sum((C[j] ** 2 * L[j] for j in categories), zero)  # eq. 6
    C_F = zero
    for i in categories:
        C_F += L[i] * sum((C[j] ** 2 for j in categories if j != i), zero)  # eq. 7-9
    R_i, S_i = [], []
    for item, label in zip(items, labels, strict=True):
        pairs = list(combinations(item, 2))
        R_i.append(Fraction(sum(a == b and a == label for a, b in pairs), len(pairs)))  # eq. 10
        S_i.append(Fraction(sum(a == b and a != label for a, b in pairs), len(pairs)))  # eq. 11, 12
    D, E = mean(R_i) - mean(S_i), C_E - C_F
    G = {j: mean([pair_share(item, j) for item in items]) for j in categories}
    D_0 = sum((G[j] * (2 * L[j] - 1) for j in categories), zero)
    majority_labels = [max(categories, key=item.count) for item in items]
    return DH(
        n=n,
        votes=sum(map(len, items)),
        C=C,
        L=L,
        R=mean(R_i),
        S=mean(S_i),
        C_E=C_E,
        C_F=C_F,
        D=D,
        E=E,
        kappa=beyond_chance(n, D, E),  # eq. 13
        fleiss=fleiss(items).kappa,
        random=beyond_chance(n, D_0, E),
        majority=beyond_chance(n, *differential(items, majority_labels)),
        excluded=excluded,
    )


def differential(items: Votes, labels: Sequence[Hashable]) -> tuple[Fraction, Fraction]:
    """D and E of eligible items, observed and expected, from the text of the paper rather than its formulas.

    D: draw an item and two of its annotators. E: draw a label, and two votes of items drawn on their own.
    An agreeing pair counts +1 where it is the label and -1 where it is not.
    """
    categories = {vote for item in items for vote in item} | set(labels)
    sign = {True: 1, False: -1}
    D = mean(
        [
            sum((sign[j == label] * pair_share(item, j) for j in categories), Fraction(0))
            for item, label in zip(items, labels, strict=True)
        ]
    )
    chance = {j: mean([vote_share(item, j) for item in items]) ** 2 for j in categories}
    E = mean([sum((sign[j == label] * chance[j] for j in categories), Fraction(0)) for label in labels])
    return D, E


def random_by_permutation(votes: Votes, suggested: Sequence[Hashable]) -> Fraction | None:
    """Mean kappa over every permutation of the labels of eligible items; for tiny data."""
    items, labels, _ = eligible(votes, suggested)
    kappas = [beyond_chance(len(items), *differential(items, permuted)) for permuted in permutations(labels)]
    defined = [kappa for kappa in kappas if kappa is not None]
    return mean(defined) if defined else None
