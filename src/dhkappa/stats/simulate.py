"""Votes and suggested labels with a known truth: for demos, documentation, tests and planning."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import Label, declare, is_real
from dhkappa.errors import DataError, counted, shown
from dhkappa.memory import need
from dhkappa.stats.rng import generator

_MOST = 10**10
_VOTE = 40  # bytes of a vote, as it is drawn


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Simulated items.

    Attributes
    ----------
    votes : (n, N) labels, None where an annotator did not vote
    suggested : labels of each labeler, (n,) by its name
    truth : (n,) what the items really are
    categories : the labels there can be, in order
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
    """Draw votes and suggested labels for items whose true category is known.

    Each annotator and each labeler is right with its accuracy, and otherwise names one of the other
    categories, all of them equally often, independently of everybody else.

    Parameters
    ----------
    n_items
        How many items.
    categories
        The labels there can be.
    prevalence
        How often each category is the truth, in the order of ``categories``; equally often by default. Only
        ratios matter.
    annotators
        How many annotators, or a list of accuracies, one for each.
    accuracy
        How often an annotator is right, where ``annotators`` is a number.
    labelers
        How often each labeler is right, by its name. By default one, ``"labeler"``, right 4 times in 5.
    missing
        How often a vote is missing.
    rng
        A seed or a ``numpy.random.Generator``, for the same draws again.

    Examples
    --------
    >>> drawn = simulate(500, labelers={"rule": 0.6, "llm": 0.9}, rng=1)
    >>> drawn
    Simulation(500 items, 3 annotators, 3 categories, labelers 'rule', 'llm')
    >>> drawn.votes[0].tolist(), drawn.suggested["llm"][0], drawn.truth[0]
    (['b', 'b', 'c'], 'b', 'b')
    """
    names = declare(categories)
    if not names:
        raise DataError("categories must name a category at least.")
    n_items = _whole_number("n_items", n_items)
    if (
        isinstance(annotators, Iterable)
        and not isinstance(annotators, str)
        and getattr(annotators, "shape", None) != ()
    ):
        accuracies = list(annotators)
    else:
        number = _whole_number("annotators", annotators)
        need(max(n_items, 1) * number * _VOTE, f"{counted(n_items, 'item')} with {counted(number, 'vote')} each")
        accuracies = [accuracy] * number
    labelers = {"labeler": 0.8} if labelers is None else labelers
    if not isinstance(labelers, Mapping):
        raise DataError(f"labelers must map names to accuracies, such as {{'llm': 0.9}}: got {shown([labelers])}.")
    weights = _shares(prevalence, len(names))
    _check_rates("accuracy", accuracies)
    _check_rates("labelers", labelers.values())
    _check_rates("missing", [missing])

    source = generator(rng)
    truth = source.choice(len(names), n_items, p=weights)
    choices = np.empty(len(names) + 1, object)
    choices[:-1] = names
    codes = [_answers(truth, rate, len(names), source) for rate in accuracies]
    votes = np.column_stack(codes) if codes else np.empty((n_items, 0), np.int64)
    votes[source.random(votes.shape) < missing] = -1  # the last choice, None
    suggested = {name: choices[_answers(truth, rate, len(names), source)] for name, rate in labelers.items()}
    return Simulation(choices[votes], suggested, choices[truth], names)


def _answers(truth: npt.NDArray[np.int64], rate: float, m: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the truth where right, else one of the other categories; with one category there is no other."""
    if m == 1:
        return truth
    other = (truth + rng.integers(1, m, truth.size)) % m
    return np.where(rng.random(truth.size) < rate, truth, other)


def _shares(prevalence: Sequence[float] | None, m: int) -> npt.NDArray[np.float64]:
    """Return the prevalence of each category, summing to 1."""
    try:
        weights = np.ones(m) if prevalence is None else np.array([float(share) for share in prevalence])
    except (TypeError, ValueError, OverflowError):
        weights = np.full(m, np.nan)
    if weights.shape != (m,) or not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
        raise DataError(
            f"prevalence must be {counted(m, 'number')}, one for each category, 0 or more: got {shown([prevalence])}."
        )
    shares: npt.NDArray[np.float64] = weights / weights.max()
    shares /= shares.sum()
    return shares


def _whole_number(name: str, value: Any) -> int:
    """Return an integer, 0 or more."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= _MOST:
        raise DataError(f"{name} must be a whole number from 0 to {_MOST:,}: got {shown([value])}.")
    return number


def _check_rates(name: str, rates: Iterable[float]) -> None:
    """Refuse what is not a probability."""
    for rate in rates:
        if not is_real(rate) or not 0 <= rate <= 1:
            raise DataError(f"{name} must be between 0 and 1: got {shown([rate])}.")
