"""Intervals against worked examples, Clopper-Pearson, and what every interval must do."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from dhkappa import ConfidenceInterval, DataError, Kappa, dh_kappa, fleiss_kappa, simulate
from strategies import Data, from_counts, ragged

EXAMPLES = [
    ("300/1 210/1 030/2 111/2 003/3 030/3", (-0.250214, 0.870928), (-0.416741, 0.883808)),
    ("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1", (-0.210887, 0.898265), (-0.316981, 0.905644)),
    ("20/1 20/1 11/1 02/2 02/1", (-0.507698, 0.925826), (-0.630564, 0.910223)),
    ("30/1 03/2", (-0.683772, 1.0), (-0.683772, 1.0)),
    ("20/1 02/2 " * 15, (0.768593, 1.0), (0.768593, 1.0)),
]


def scored(text: str) -> Kappa:
    data = from_counts(text)
    return dh_kappa(data.votes, data.suggested)


@pytest.mark.parametrize(("text", "beta", "logit"), EXAMPLES)
def test_intervals_against_worked_example(text: str, beta: tuple[float, float], logit: tuple[float, float]) -> None:
    kappa = scored(text)
    # The values are given to six digits.
    assert tuple(kappa.confidence_interval()) == pytest.approx(beta, abs=5.1e-7)
    assert tuple(kappa.confidence_interval(method="logit")) == pytest.approx(logit, abs=5.1e-7)


def test_wald_by_hand() -> None:
    kappa = scored(EXAMPLES[0][0])
    half = 2.5705818366 * kappa.se  # t with 5 degrees of freedom
    assert tuple(kappa.confidence_interval(method="wald")) == pytest.approx(
        (kappa.value - half, min(1, kappa.value + half))
    )


@pytest.mark.parametrize("text", ["300/2 " * 5, "011/1 " * 4, "20/1 02/1 11/1"])
def test_no_interval_where_every_item_has_the_same_influence(text: str) -> None:
    kappa = scored(text)
    assert math.isnan(kappa.se)
    for method in ("beta", "logit", "wald"):
        interval = kappa.confidence_interval(method=method)
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)
        assert interval.reason
    assert "no-standard-error" in {note.code for note in kappa.notes}
    assert kappa.to_dict()["confidence_interval"] == {
        "low": None,
        "high": None,
        "confidence_level": 0.95,
        "method": "beta",
    }


@pytest.mark.parametrize("text", ["", "30/1", "30/1 30/1", "21/1"])
def test_undefined_kappa_and_single_items_have_none(text: str) -> None:
    kappa = scored(text) if text else dh_kappa([], [])
    assert math.isnan(kappa.se)
    assert math.isnan(kappa.confidence_interval().low)
    assert kappa.confidence_interval().reason


@settings(max_examples=400)
@given(ragged())
def test_every_interval_holds_kappa_within_its_range(data: Data) -> None:
    kappa = dh_kappa(data.written_votes, data.written_suggested)
    if math.isnan(kappa.se):
        return
    for method in ("beta", "logit", "wald"):
        narrow, wide = kappa.confidence_interval(0.95, method), kappa.confidence_interval(0.99, method)
        assert -14 / 13 <= wide.low <= narrow.low <= kappa.value <= narrow.high <= wide.high <= 1
    declared = dh_kappa(data.written_votes, data.written_suggested, categories=[*data.written_categories, "unused"])
    # The same numbers in another order of categories, so their sums may round differently.
    assert tuple(declared.confidence_interval()) == pytest.approx(tuple(kappa.confidence_interval()), abs=1e-9)


def test_upper_limit_is_one_for_a_flawless_sample() -> None:
    kappa = scored("20/1 02/2 " * 40)
    assert kappa.se == 0
    assert kappa.confidence_interval().high == 1
    assert 0.8 < kappa.confidence_interval().low < 1


def test_limits_stay_in_the_range_of_kappa_for_a_small_flawless_sample() -> None:
    kappa = scored("50/1 50/1 50/1 05/2 50/1 50/1")  # E = 4/9
    low = 1 - 2 * (1 - 0.025 ** (1 / 6)) / (1 - 4 / 9)
    for method in ("beta", "logit"):
        assert tuple(kappa.confidence_interval(method=method)) == pytest.approx((low, 1))
        assert kappa.confidence_interval(0.99, method).low == -14 / 13


def test_intervals_narrow_like_one_over_root_n() -> None:
    drawn = simulate(40_000, rng=2)
    labels = drawn.suggested["labeler"]
    few, many = dh_kappa(drawn.votes[:2500], labels[:2500]), dh_kappa(drawn.votes, labels)
    ratio = np.diff(list(few.confidence_interval()))[0] / np.diff(list(many.confidence_interval()))[0]
    assert ratio == pytest.approx(4, rel=0.15)  # the two samples' own sds differ by some percent


def test_coverage_is_at_least_nominal() -> None:
    """400 samples at n = 50: 95% coverage has an sd of 1.1 points; four of them below is 90.6%."""
    rng = np.random.default_rng(5)
    model: dict[str, Any] = {"categories": range(3), "annotators": 3, "accuracy": 0.9, "labelers": {"x": 0.85}}
    big = simulate(300_000, rng=rng, **model)
    truth = dh_kappa(big.votes, big.suggested["x"]).value
    held = 0
    for _ in range(400):
        drawn = simulate(50, rng=rng, **model)
        low, high = dh_kappa(drawn.votes, drawn.suggested["x"]).confidence_interval()
        held += low <= truth <= high
    assert held / 400 > 0.906


@pytest.mark.parametrize("confidence_level", [0, 1, -0.5, 95, "0.95", math.nan])
def test_levels_that_are_none(confidence_level: Any) -> None:
    with pytest.raises(DataError, match="level must be between 0 and 1"):
        scored(EXAMPLES[0][0]).confidence_interval(confidence_level)


@pytest.mark.parametrize("confidence_level", [1e-10, 1 - 1e-10])
def test_levels_too_close_to_none_and_all(confidence_level: float) -> None:
    with pytest.raises(
        DataError, match=rf"level must be between 0 and 1, by more than 1e-09, such as 0.95: got {confidence_level}"
    ):
        scored(EXAMPLES[0][0]).confidence_interval(confidence_level)


def test_methods_are_listed() -> None:
    with pytest.raises(DataError, match="one of beta, logit, wald, bootstrap, bca: got 'bayes'"):
        scored(EXAMPLES[0][0]).confidence_interval(method="bayes")
    with pytest.raises(DataError, match="one of wald: got 'beta'"):
        fleiss_kappa([["a", "b"], ["a", "a"]]).confidence_interval(method="beta")


def test_an_interval_reads_well() -> None:
    interval = scored(EXAMPLES[0][0]).confidence_interval(0.9)
    assert repr(interval) == f"[{interval.low:.4f}, {interval.high:.4f}] at 0.9 (beta)"
    assert " at 0.99999999 (" in repr(scored(EXAMPLES[0][0]).confidence_interval(0.99999999))
    low, high = interval
    assert (low, high) == (interval.low, interval.high)
    assert "cannot" in repr(scored("011/1 " * 4).confidence_interval())
    assert isinstance(interval, ConfidenceInterval)
