"""What a Kappa can be asked: each answer through the public calls, against worked examples."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dhkappa import DataError, Kappa, dh_kappa, fleiss_kappa, simulate, tally
from strategies import from_counts

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
KAPPA = dh_kappa(EXAMPLE.votes, EXAMPLE.suggested)
LARGE = simulate(400, categories=["low", "mid", "high"], accuracy=0.8, rng=2)


def large(**options: Any) -> Kappa:
    return dh_kappa(LARGE.votes, LARGE.suggested["labeler"], **options)


def test_chance_against_worked_example() -> None:
    test = KAPPA.permutation_test()
    assert test.z == pytest.approx(1.833157, abs=5.1e-7)  # given to six digits
    assert test.difference == pytest.approx(float(F(247, 544) - F(-59, 544)), rel=1e-12)
    assert KAPPA.above_random == pytest.approx(34 / 67, rel=1e-12)
    drawn = KAPPA.permutation_test("monte-carlo", n_resamples=4999, rng=1)
    assert drawn.pvalue == pytest.approx(
        KAPPA.permutation_test("monte-carlo", n_resamples=4999, rng=2).pvalue, abs=0.03
    )
    assert drawn.pvalue == KAPPA.permutation_test("monte-carlo", n_resamples=4999, rng=1).pvalue


def test_categories_against_worked_example() -> None:
    table = KAPPA.by_category()
    assert table.column("kappa") == pytest.approx([65 / 92, 25 / 52, 7 / 34], rel=1e-12)
    assert table.column("weight") == pytest.approx([23 / 68, 39 / 136, 3 / 8], rel=1e-12)
    agreed = [(row["suggested"], row["agreed"], row["pair_share"]) for row in KAPPA.confusion()]
    assert (3, 2, 0.5) in agreed  # on the items labelled 3, half the pairs agree on 2
    assert (1, 1, pytest.approx(2 / 3)) in agreed


def test_bootstrap_intervals_are_near_the_others_on_a_large_sample() -> None:
    kappa = large()
    replicates = kappa.bootstrap(3000, rng=1)
    assert replicates.sd == pytest.approx(kappa.se, rel=0.08)  # the sd of 3,000 replicates is known to 1.3%
    for method in ("bootstrap", "bca"):
        interval = kappa.confidence_interval(method=method, n_resamples=3000, rng=1)
        assert interval.method == method
        assert tuple(interval) == pytest.approx(tuple(kappa.confidence_interval(method="wald")), abs=0.02)
        assert interval == kappa.confidence_interval(method=method, n_resamples=3000, rng=1)


class TestOrdinal:
    def test_against_worked_example(self) -> None:
        kappa = dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, categories=[1, 2, 3], weights="linear")
        assert kappa.exact == F(35, 62)
        assert kappa.parts is not None
        assert (F(11, 18), F(26, 243)) == (kappa.parts.D, kappa.parts.E)
        assert repr(kappa).startswith("ordinal kappa_DH 0.5645 [")
        counted = tally(EXAMPLE.votes, EXAMPLE.suggested, categories=[1, 2, 3])
        assert dh_kappa(counted, weights="linear").exact == kappa.exact

    def test_identity_weights_are_the_plain_result_to_the_bit(self) -> None:
        plain = large(categories=["low", "mid", "high"])
        same = large(categories=["low", "mid", "high"], weights=np.eye(3))
        assert (same.exact, same.value, same.se, same.fleiss) == (plain.exact, plain.value, plain.se, plain.fleiss)
        assert same.confidence_interval(method="wald") == plain.confidence_interval(method="wald")

    def test_interval_holds_kappa(self) -> None:
        kappa = large(categories=["low", "mid", "high"], weights="quadratic")
        for method in ("beta", "log", "wald"):
            low, high = kappa.confidence_interval(method=method)
            assert low < kappa.value < high <= 1
        assert kappa.confidence_interval().method == "beta"

    def test_identity_weights_give_the_plain_interval(self) -> None:
        kappa = large(categories=["low", "mid", "high"], weights=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        plain = large(categories=["low", "mid", "high"])
        assert tuple(kappa.confidence_interval()) == tuple(plain.confidence_interval())
        assert math.isnan(kappa.baselines.random)
        assert math.isnan(kappa.above_random)

    def test_a_flawless_sample(self) -> None:
        kappa = dh_kappa(
            [["a", "a"], ["b", "b"], ["c", "c"]] * 10,
            ["a", "b", "c"] * 10,
            categories=["a", "b", "c"],
            weights="linear",
        )
        assert kappa.exact == 1
        assert kappa.se == 0
        assert 0 < kappa.confidence_interval().low < kappa.confidence_interval().high == 1

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"weighted": "linear"}, "ordinal needs the categories in their order"),
            ({"weighted": "cubic", "categories": ["low", "mid", "high"]}, "linear"),
            ({"weighted": np.ones((2, 2)), "categories": ["low", "mid", "high"]}, "weighted"),
        ],
    )
    def test_bad_input(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(DataError, match=words):
            large(**options)

    def test_undefined(self) -> None:
        kappa = dh_kappa([["a", "a"]], ["a"], categories=["a", "b"], weights="linear")
        assert math.isnan(kappa.value)
        assert kappa.reason
        same = dh_kappa([["a", "b"], ["b", "b"]], ["a", "b"], categories=["a", "b"], weights=np.ones((2, 2)))
        assert math.isnan(same.value)
        assert "weight 1" in str(same.reason)
        assert math.isnan(same.confidence_interval().low)


@pytest.mark.parametrize("ask", ["test", "by_category", "confusion", "bootstrap"])
def test_questions_about_labels_need_a_plain_defined_kappa(ask: str) -> None:
    for kappa in (fleiss_kappa(EXAMPLE.votes), large(categories=["low", "mid", "high"], weights="linear")):
        with pytest.raises(DataError, match="for the plain kappa_DH only"):
            getattr(kappa, ask)()
    with pytest.raises(DataError, match="but the data hold no items"):
        getattr(dh_kappa([], []), ask)()
    assert math.isnan(fleiss_kappa(EXAMPLE.votes).above_random)
