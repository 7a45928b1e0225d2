"""Simulation: rates, reproducibility and invalid arguments."""

from typing import Any

import numpy as np
import pytest

from dhkappa import dh_kappa, simulate
from expect import expect_error


def test_same_seed_same_data() -> None:
    one, other = (simulate(50, missing=0.2, rng=9) for _ in range(2))
    assert (one.votes == other.votes).all()
    assert (one.suggested["labeler"] == other.suggested["labeler"]).all()
    assert (simulate(50, rng=10).truth != one.truth).any()
    generator = np.random.default_rng(9)
    assert (simulate(50, missing=0.2, rng=generator).votes == one.votes).all()


def test_rates() -> None:
    drawn = simulate(
        100_000,
        categories=["a", "b", "c", "d"],
        prevalence=[4, 3, 2, 1],
        annotators=[0.9, 0.5],
        labelers={"good": 0.95, "bad": 0.25},
        missing=0.3,
        rng=11,
    )
    close = pytest.approx  # sd of a rate over at least 30,000 draws is below .003: .015 is five of them
    assert [(drawn.truth == name).mean() for name in "abcd"] == close([0.4, 0.3, 0.2, 0.1], abs=0.015)
    voted = drawn.votes != None  # noqa: E711
    assert voted.mean() == close(0.7, abs=0.015)
    for column, rate in enumerate([0.9, 0.5]):
        assert (drawn.votes[:, column] == drawn.truth)[voted[:, column]].mean() == close(rate, abs=0.015)
    assert (drawn.suggested["good"] == drawn.truth).mean() == close(0.95, abs=0.015)
    wrong = drawn.suggested["bad"] != drawn.truth
    among_a = drawn.suggested["bad"][wrong & (drawn.truth == "a")]
    assert [(among_a == name).mean() for name in "bcd"] == close([1 / 3] * 3, abs=0.015)


def test_kappa_of_a_known_model() -> None:
    """Perfect annotators, uniform categories, labels right with rate q: D = 2q - 1, E = (2 - m) / m^2."""
    m, q = 5, 0.8
    expected = ((2 * q - 1) - (2 - m) / m**2) / (1 - (2 - m) / m**2)
    drawn = simulate(200_000, categories=range(m), accuracy=1, labelers={"x": q}, rng=4)
    # The sd of D is about 2 sqrt(q (1 - q) / n) = .0018; five of them, over 1 - E, are .008.
    assert dh_kappa(drawn.votes, drawn.suggested["x"]).value == pytest.approx(expected, abs=0.008)


def test_edges() -> None:
    assert simulate(0).votes.shape == (0, 3)
    assert simulate(3, annotators=0).votes.shape == (3, 0)
    assert simulate(3, categories=["only"]).votes.tolist() == [["only"] * 3] * 3
    assert simulate(3, missing=1.0).votes.tolist() == [[None] * 3] * 3
    assert simulate(3, labelers={}).suggested == {}
    assert repr(simulate(2, rng=0)) == "Simulation(2 items, 3 annotators, 3 categories, labelers 'labeler')"


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("invalid-n-items", {"n_items": -1}),
        ("invalid-n-items", {"n_items": 2.5}),
        ("invalid-n-items", {"n_items": True}),
        ("invalid-categories", {"categories": []}),
        ("invalid-annotators", {"annotators": -1}),
        ("invalid-annotators", {"annotators": "3"}),
        ("invalid-accuracy", {"accuracy": 1.1}),
        ("invalid-accuracy", {"annotators": [0.9, None]}),
        ("invalid-labelers", {"labelers": ["llm"]}),
        ("invalid-labelers", {"labelers": {"llm": -0.1}}),
        ("invalid-missing", {"missing": 2}),
        ("invalid-prevalence", {"prevalence": [1, 2]}),
        ("invalid-prevalence", {"prevalence": [0, 0, 0]}),
        ("invalid-prevalence", {"prevalence": [1, -1, 1]}),
        ("invalid-prevalence", {"prevalence": [1, float("inf"), 1]}),
        ("invalid-prevalence", {"prevalence": ["x", 1, 1]}),
        ("invalid-prevalence", {"prevalence": 5}),
    ],
)
def test_bad_arguments(code: str, options: dict[str, Any]) -> None:
    with expect_error(code, code.removeprefix("invalid-").replace("-", "_")):
        simulate(**{"n_items": 3, **options})


def test_only_ratios_of_prevalence_matter() -> None:
    one, other = (simulate(50, prevalence=shares, rng=1) for shares in ([1, 2, 3], [1e307, 2e307, 3e307]))
    assert (one.truth == other.truth).all()
