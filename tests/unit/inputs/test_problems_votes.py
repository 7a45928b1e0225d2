"""Rules about vote patterns on simulated tables: what must be found, and what must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from dhkappa import Dataset
from dhkappa.errors import Problem

NAMES = ("billing", "bug", "how-to", "other", "refund")


def draw(rng: np.random.Generator, truth: Any, accuracy: float, m: int) -> Any:
    """Return labels that are right with some probability, else any other category."""
    wrong = (truth + rng.integers(1, m, len(truth))) % m
    return np.where(rng.random(len(truth)) < accuracy, truth, wrong)


def table(n: int, annotators: int, m: int, accuracy: float, labels: Any, seed: int) -> pl.DataFrame:
    """Simulate votes, and labels with an accuracy or, if ``labels`` is None, the most frequent vote."""
    rng = np.random.default_rng(seed)
    truth, names = rng.integers(0, m, n), np.array(NAMES, object)
    votes = np.stack([draw(rng, truth, accuracy, m) for _ in range(annotators)], 1)
    most = np.stack([(votes == code).sum(1) for code in range(m)], 1) + rng.random((n, m)) / 2
    given = most.argmax(1) if labels is None else draw(rng, truth, labels, m)
    columns = {f"ann_{place}": names[votes[:, place]].tolist() for place in range(annotators)}
    ids = [f"T-{place:04d}" for place in range(n)]
    return pl.DataFrame({"item": ids, **columns, "suggested_llm": names[given].tolist()})


def found(data: Any, **given: Any) -> dict[str, Problem]:
    """Return the warnings and errors by code."""
    return {one.code: one for one in Dataset(data, **given).check().problems if one.severity != "info"}


@pytest.mark.parametrize("accuracy", [0.8, 0.9])
def test_ties_of_all_categories_say_nothing_about_labels(accuracy: float) -> None:
    for seed in range(4):
        assert "labels-from-votes" not in found(table(3000, 2, 2, 0.8, accuracy, seed))
    assert "labels-from-votes" in found(table(1000, 2, 2, 0.8, None, 1))


def test_many_votes_do_not_make_a_good_labeler_suspicious() -> None:
    """The most frequent of ten votes is hardly ever wrong, and neither is the labeler."""
    for seed in range(6):
        assert "labels-from-votes" not in found(table(500, 10, 5, 0.75, 0.99, seed))


@pytest.mark.parametrize("annotators", [3, 4, 5])
def test_most_frequent_votes_are_found(annotators: int) -> None:
    for seed in range(4):
        assert "labels-from-votes" in found(table(300, annotators, 5, 0.8, None, seed))
