"""Simulated data: the default rates, and rates of 0 and 1."""

from typing import Any

import numpy as np
import pytest

from dhkappa import simulate


def test_defaults_and_ends() -> None:
    drawn = simulate(4_000, rng=1)
    assert repr(drawn) == "Simulation(4,000 items, 3 annotators, 3 categories, labelers 'labeler')"
    assert drawn.categories == ("a", "b", "c")
    # 4,000 draws: the sd of a share of 0.8 or 0.85 is 0.006, and of one of a third 0.0075.
    assert np.mean(drawn.suggested["labeler"] == drawn.truth) == pytest.approx(0.8, abs=0.025)
    assert np.mean(drawn.votes == drawn.truth[:, None]) == pytest.approx(0.85, abs=0.02)
    for label in "abc":
        assert np.mean(drawn.truth == label) == pytest.approx(1 / 3, abs=0.03)
        wrong = drawn.suggested["labeler"][(drawn.truth != label) & (drawn.suggested["labeler"] != drawn.truth)]
        assert np.mean(wrong == label) == pytest.approx(0.5, abs=0.08)  # of two other labels; 530 draws
    assert not (drawn.votes == None).any()  # noqa: E711  # of an array
    sure = simulate(50, annotators=[1, 0], labelers={"x": 1, "y": 0}, missing=0, rng=1)
    assert (sure.votes[:, 0] == sure.truth).all()
    assert not (sure.votes[:, 1] == sure.truth).any()
    assert (sure.suggested["x"] == sure.truth).all()
    assert not (sure.suggested["y"] == sure.truth).any()
    lost = simulate(50, missing=1, prevalence=[0, 2, 0], rng=1)
    assert (lost.votes == None).all()  # noqa: E711
    assert set(lost.truth) == {"b"}
    assert set(simulate(60, prevalence=[1e300] * 3, rng=1).truth) == {"a", "b", "c"}
    two: Any = np.array(2)  # a number, though it looks like a list
    assert simulate(4, annotators=two, rng=1).votes.shape == (4, 2)
    assert simulate(3, annotators=0, rng=1).votes.shape == (3, 0)
    assert simulate(0, rng=1).votes.shape == (0, 3)
    assert set(simulate(9, categories=["a"], accuracy=0.0, rng=1).votes.ravel()) == {"a"}
