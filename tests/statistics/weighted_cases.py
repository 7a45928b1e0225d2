"""Data with agreement weights for tests, and the same items for the oracle."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from dhkappa import Kappa, dh_kappa
from dhkappa.core.items import ItemVotes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.weights import Weights, agreement_weights
from strategies import Data, complete, ragged
from weighted_oracle import Items, Matrix, items_of, named_weights, random_weights

F = Fraction
KINDS = ("linear", "quadratic")
Rows = Sequence[Sequence[Any]]


@st.composite
def weighted_data(draw: st.DrawFn, max_items: int = 12) -> tuple[Data, Any, Items]:
    """Data, weights as a user passes them, and the items with the same weights; kappa is defined."""
    data = draw(ragged(max_items=max_items, max_votes=5, max_categories=4) | complete(max_categories=4)).coded()
    data = data.take(range(min(len(data.votes), max_items)))
    m = len(data.categories)
    kind = draw(st.sampled_from(["own", "linear", "quadratic"]))
    own = random_weights(Random(draw(st.integers(0, 2**32))), m) if kind == "own" else named_weights(kind, m)
    items = items_of(data.votes, data.suggested, data.categories, own)
    assume(len(items.votes) > 0 and items.kappa is not None)
    return data, own if kind == "own" else kind, items


def kappa_of(data: Data, weights: Any, **options: Any) -> Kappa:
    return dh_kappa(data.votes, data.suggested, categories=data.categories, weights=weights, **options)


def rows_of(kappa: Kappa, items: Items) -> list[int]:
    """Return the pattern of each item."""
    patterns = kappa.sample.patterns
    keys = {}
    for k in range(len(patterns)):
        span = slice(patterns.start[k], patterns.start[k + 1])
        votes = np.repeat(patterns.code[span], patterns.votes[span]).tolist()
        keys[int(patterns.suggested[k]), tuple(votes)] = k
    return [keys[label, tuple(sorted(votes))] for votes, label in zip(items.votes, items.labels, strict=True)]


def differentials(items: Items) -> tuple[Fraction, list[Fraction]]:
    """Return D of the labels, and of each permutation of them."""
    n = len(items.votes)
    table = [[items.d(i, label) for label in items.codes] for i in range(n)]
    every = [
        sum((table[i][label] for i, label in enumerate(labels)), F(0)) / n for labels in permutations(items.labels)
    ]
    return every[0], every


def ordered(n: int, seed: int, step: float = 0.3, labels: float = 0.3) -> Data:
    """Five ordered categories: votes and labels stray from the truth by one step with these probabilities."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)
    stray = np.where(rng.random((n, 4)) < [step] * 3 + [labels], rng.choice([-1, 1], (n, 4)), 0)
    found = np.clip(truth[:, None] + stray, 0, 4)
    return Data(tuple(range(5)), found[:, :3].tolist(), found[:, 3].tolist())


def votes_of(rows: Any, labels: Any, m: int, weight: Sequence[float] | None = None) -> ItemVotes:
    sample_weight = None if weight is None else np.array(weight, np.float64)
    return read_votes(np.array(rows, object), {"rule": labels}, categories=tuple(range(m)), sample_weight=sample_weight)


@st.composite
def drawn_items(draw: st.DrawFn, max_items: int = 10) -> tuple[Rows, list[Any], Weights, Matrix]:
    """An array of votes with missing ones, labels, and weights."""
    data = draw(ragged(max_items=max_items, max_votes=5, max_categories=4)).coded()
    m, width = len(data.categories), max(max(map(len, data.votes), default=0), 1)
    kind = draw(st.sampled_from(["own", "linear", "quadratic", "identity"]))
    w = random_weights(Random(draw(st.integers(0, 2**32))), m) if kind == "own" else named_weights(kind, m)
    rows = [[*item, *[None] * (width - len(item))] for item in data.votes]
    return rows, list(data.suggested), agreement_weights(w, m), w


def labelers_of(n: int, seed: int, labelers: int = 2, far: float = 0.2) -> tuple[list[list[int]], dict[str, list[int]]]:
    """Five ordered categories: votes stray by a step; later labelers stray more often and anywhere."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)

    def stray(rate: float) -> list[int]:
        moved = np.clip(truth + rng.choice([-1, 1], n), 0, 4)
        anywhere = np.where(rng.random(n) < far, rng.integers(0, 5, n), moved)
        return [int(code) for code in np.where(rng.random(n) < rate, anywhere, truth)]

    votes = [list(row) for row in zip(*(stray(0.3) for _ in range(3)), strict=True)]
    return votes, {f"labeler_{k}": stray(0.2 + 0.3 * k) for k in range(labelers)}
