"""Methods of Kappa through the public calls, against the worked examples of docs/methods.md."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dhkappa import Kappa, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.influence import basis
from dhkappa.stats.intervals import beta_interval, wald_interval
from exact import EXAMPLE, example
from expect import expect_error

F = Fraction
KAPPA = example()
LARGE = simulate(400, categories=["low", "mid", "high"], accuracy=0.8, rng=2)


def large(**options: Any) -> Kappa:
    return dh_kappa(LARGE.votes, LARGE.suggested["labeler"], **options)


def test_permutation_test_of_the_worked_example() -> None:
    test = KAPPA.permutation_test()
    assert test.z == pytest.approx(1.833157, abs=5.1e-7)  # given to six digits
    assert test.difference == pytest.approx(float(F(247, 544) - F(-59, 544)), rel=1e-12)
    drawn, other, again = (KAPPA.permutation_test("monte-carlo", n_resamples=4999, rng=seed) for seed in (1, 2, 1))
    assert drawn.pvalue == pytest.approx(other.pvalue, abs=0.03)
    assert drawn.pvalue == again.pvalue


def test_above_random_of_the_worked_example() -> None:
    assert KAPPA.above_random == pytest.approx(34 / 67, rel=1e-12)
    # D0 is the D of random labels, -59/544 (1 - E) + E; kappa_P = (D - D0) / (1 - D0).
    D0 = F(-59, 544) * F(272, 243) - F(29, 243)
    assert KAPPA.above_random == pytest.approx(float((F(7, 18) - D0) / (1 - D0)), rel=1e-14)
    assert math.isnan(fleiss_kappa(EXAMPLE.votes).above_random)


def test_categories_of_the_worked_example() -> None:
    table = KAPPA.by_category()
    assert table.column("kappa") == pytest.approx([65 / 92, 25 / 52, 7 / 34], rel=1e-12)
    assert table.column("weight") == pytest.approx([23 / 68, 39 / 136, 3 / 8], rel=1e-12)
    agreed = [(row["suggested"], row["agreed"], row["pair_share"]) for row in KAPPA.confusion()]
    assert (3, 2, 0.5) in agreed  # on the items labeled 3, half of the pairs agree on 2
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


def test_intervals_by_name() -> None:
    known = basis(KAPPA.estimate)
    assert known is not None
    for name, interval in (("beta", beta_interval), ("wald", wald_interval)):
        found = KAPPA.confidence_interval(0.9, name)
        assert (tuple(found), found.method, found.confidence_level) == (interval(known, 1 - 0.9), name, 0.9)
    assert KAPPA.confidence_interval(0.9).method == "beta"
    values = KAPPA.bootstrap(99, rng=1).values
    drawn = KAPPA.confidence_interval(0.9, "bootstrap", n_resamples=99, rng=1)
    assert tuple(drawn) == pytest.approx(np.quantile(values, [0.05, 0.95]).tolist(), rel=1e-12)
    corrected = KAPPA.confidence_interval(0.9, "bca", n_resamples=99, rng=1)
    assert min(values) <= corrected.low < corrected.high <= max(values)
    for method in ("bayes", 3):
        with expect_error("invalid-method", "method"):
            KAPPA.confidence_interval(method=method)  # type: ignore[arg-type]


@pytest.mark.parametrize("kappa", [dh_kappa([], []), dh_kappa([[1, 2]] * 3, [1] * 3)])
def test_an_interval_that_is_undefined_has_a_reason(kappa: Kappa) -> None:
    interval = kappa.confidence_interval(0.8)
    assert math.isnan(interval.low)
    assert (bool(interval.reason), interval.confidence_level, interval.method) == (True, 0.8, "beta")


def test_plain_values_of_the_worked_example() -> None:
    found = KAPPA.to_dict(0.9)
    low, high = KAPPA.confidence_interval(0.9)
    limits = {"low": low, "high": high, "confidence_level": 0.9, "method": "beta", "any_time_level": None}
    assert found["confidence_interval"] == limits
    assert (found["metric"], found["value"], found["exact"]) == ("dh", 247 / 544, "247/544")
    assert found["se"] == KAPPA.se == pytest.approx(math.sqrt(F(432125685, 5473632256)), rel=1e-14)
    assert found["baselines"] == {"random": -59 / 544, "annotator": 113 / 176, "majority": 133 / 178}
    assert (found["fleiss"], found["n_items"], found["n_votes"], found["reason"]) == (59 / 104, 6, 18, None)
    assert found["excluded"] == {"no_votes": 0, "one_vote": 0, "no_label": 0, "no_weight": 0}
    assert found["parts"] == {
        "R": 5 / 9,
        "S": 1 / 6,
        "C_E": 29 / 243,
        "C_F": 58 / 243,
        "D": 7 / 18,
        "E": -29 / 243,
        "C": [[1, 1 / 3], [2, 4 / 9], [3, 2 / 9]],
        "L": [[1, 1 / 3], [2, 1 / 3], [3, 1 / 3]],
    }
    assert [note["code"] for note in found["notes"]] == [note.code for note in KAPPA.notes]
    assert KAPPA.to_dict()["confidence_interval"]["confidence_level"] == 0.95


def test_plain_values_without_eligible_items() -> None:
    lost = dh_kappa([[], [1], [1, 1], [1, 1]], [1, 1, None, 1], sample_weight=[1, 1, 1, 0]).to_dict()
    assert lost["excluded"] == {"no_votes": 1, "one_vote": 1, "no_label": 1, "no_weight": 1}
    assert {lost[name] for name in ("value", "se", "exact", "fleiss", "parts")} == {None}
    assert lost["baselines"] == {"random": None, "annotator": None, "majority": None}


def test_zero_has_no_sign() -> None:
    """Half of the labels are right, and of one item more the label is wrong: kappa is about -0.000025."""
    votes = [["a", "a"], ["b", "b"]] * 20_000 + [["a", "a"]]
    kappa = dh_kappa(votes, list("abba") * 10_000 + ["b"])
    assert -0.00005 < kappa.value < 0
    assert repr(kappa).startswith("kappa_DH 0.0000 [")
