"""Simulate votes and suggested labels with a known true category."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Label
from dhkappa.core.labels import check_categories
from dhkappa.errors import counted, invalid, shown
from dhkappa.resources import need
from dhkappa.stats.sample import category_shares, check_integer, check_real, generator

_MAX_ITEMS = 10**10
_BYTES_PER_VOTE = 40  # while votes are drawn


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Simulated items.

    Attributes
    ----------
    votes : (n, N) labels, None where an annotator did not vote
    suggested : (n,) labels by labeler
    truth : (n,) true categories
    categories : the categories, in order
    """

    votes: npt.NDArray[np.object_]
    suggested: dict[str, npt.NDArray[np.object_]]
    truth: npt.NDArray[np.object_]
    categories: tuple[Label, ...]

    def __repr__(self) -> str:
        n, N = self.votes.shape
        size = f"{counted(n, 'item')}, {counted(N, 'annotator')}, {counted(len(self.categories), 'category')}"
        return f"Simulation({size}, labelers {shown(self.suggested)})"


def simulate(
    n_items: int,
    *,
    categories: Iterable[Any] = ("a", "b", "c"),
    prevalence: Sequence[float] | None = None,
    annotators: int | Sequence[float] = 3,
    accuracy: float = 0.85,
    labelers: Mapping[str, float] | None = None,
    missing: float = 0.0,
    rng: int | np.random.Generator | None = None,
) -> Simulation:
    """Simulate votes and suggested labels for items whose true category is known.

    Annotators and labelers are independent given the true category. Each is right with its accuracy and otherwise
    chooses one of the other categories uniformly.

    Parameters
    ----------
    n_items
        Number of items.
    categories
        The categories.
    prevalence
        Relative frequency of each true category, in the order of ``categories``. Uniform by default.
    annotators
        Number of annotators, or a list with the accuracy of each.
    accuracy
        Accuracy of every annotator, if ``annotators`` is a number.
    labelers
        Accuracy of each labeler by name. By default one labeler, ``"labeler"``, with accuracy 0.8.
    missing
        Probability that a vote is missing.
    rng
        Seed or ``numpy.random.Generator``.

    Examples
    --------
    >>> drawn = simulate(500, labelers={"rule": 0.6, "llm": 0.9}, rng=1)
    >>> drawn
    Simulation(500 items, 3 annotators, 3 categories, labelers 'rule', 'llm')
    >>> drawn.votes[0].tolist(), drawn.suggested["llm"][0], drawn.truth[0]
    (['b', 'b', 'c'], 'b', 'b')
    """
    names = check_categories(categories)
    if not names:
        raise invalid("categories", "There are no categories.", hint="Pass at least one.")
    n_items = check_integer("n_items", n_items, 0, _MAX_ITEMS)
    accuracies = _accuracies(annotators, accuracy, n_items)
    labelers = {"labeler": 0.8} if labelers is None else labelers
    if not isinstance(labelers, Mapping):
        text = f"Labelers must be a mapping from names to accuracies: got {shown([labelers])}."
        raise invalid("labelers", text, hint="Pass for example {'llm': 0.9}.")
    weights = category_shares(prevalence, len(names))
    for parameter, rates in (("accuracy", accuracies), ("labelers", labelers.values()), ("missing", [missing])):
        for rate in rates:
            check_real(parameter, rate)

    source = generator(rng)
    truth = source.choice(len(names), n_items, p=weights)
    choices = np.empty(len(names) + 1, object)  # the last one, None, is a missing vote
    choices[:-1] = names
    codes = [_answers(truth, rate, len(names), source) for rate in accuracies]
    votes = np.column_stack(codes) if codes else np.empty((n_items, 0), np.int64)
    votes[source.random(votes.shape) < missing] = -1
    suggested = {name: choices[_answers(truth, rate, len(names), source)] for name, rate in labelers.items()}
    return Simulation(choices[votes], suggested, choices[truth], names)


def _accuracies(annotators: Any, accuracy: float, n_items: int) -> list[float]:
    """Return the accuracy of each annotator."""
    if isinstance(annotators, Iterable) and not isinstance(annotators, str) and getattr(annotators, "shape", 0) != ():
        return list(annotators)
    number = check_integer("annotators", annotators, 0, _MAX_ITEMS)
    need(max(n_items, 1) * number * _BYTES_PER_VOTE, f"{counted(n_items, 'item')} with {counted(number, 'vote')} each")
    return [accuracy] * number


def _answers(truth: npt.NDArray[np.int64], rate: float, m: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the true category with probability ``rate``, else one of the others."""
    if m == 1:
        return truth
    other = (truth + rng.integers(1, m, truth.size)) % m
    return np.where(rng.random(truth.size) < rate, truth, other)
