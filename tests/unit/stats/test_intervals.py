"""Confidence intervals and beta quantiles against worked examples, exact sums, scipy and simulation."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, betaincinv, stdtrit

from dhkappa import Kappa, compare, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.intervals import (
    LEAST,
    Basis,
    KappaDifference,
    approximate_quantile,
    beta_interval,
    beta_limits,
    beta_quantile,
    skewness,
    wald_interval,
    written,
)
from expect import expect_error
from strategies import Data, from_counts, ragged

EXAMPLES = [
    ("300/1 210/1 030/2 111/2 003/3 030/3", (-0.250214, 0.870928)),
    ("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1", (-0.210887, 0.898265)),
    ("20/1 20/1 11/1 02/2 02/1", (-0.507698, 0.925826)),
    ("30/1 03/2", (-0.683772, 1.0)),
    ("20/1 02/2 " * 15, (0.768593, 1.0)),
]


def scored(text: str) -> Kappa:
    data = from_counts(text)
    return dh_kappa(data.votes, data.suggested)


@pytest.mark.parametrize(("text", "beta"), EXAMPLES)
def test_beta_interval_against_worked_example(text: str, beta: tuple[float, float]) -> None:
    kappa = scored(text)
    # The values are given to six digits.
    assert tuple(kappa.confidence_interval()) == pytest.approx(beta, abs=5.1e-7)


def test_wald_interval_of_the_example() -> None:
    kappa = scored(EXAMPLES[0][0])
    half = 2.5705818366 * kappa.se  # t with 5 degrees of freedom
    assert tuple(kappa.confidence_interval(method="wald")) == pytest.approx(
        (kappa.value - half, min(1, kappa.value + half))
    )


@pytest.mark.parametrize("text", ["300/2 " * 5, "011/1 " * 4, "20/1 02/1 11/1"])
def test_no_interval_where_every_item_has_the_same_influence(text: str) -> None:
    kappa = scored(text)
    assert math.isnan(kappa.se)
    for method in ("beta", "wald"):
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
        "any_time_level": None,
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
    for method in ("beta", "wald"):
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
    for method in ("beta", "wald"):
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


@pytest.mark.parametrize("confidence_level", [0, 1, -0.5, 95, "0.95", math.nan, 1e-10, 1e-9, 1 - 1e-10, 1 - 1e-9])
def test_invalid_confidence_level(confidence_level: Any) -> None:
    with expect_error("invalid-confidence-level", "confidence_level"):
        scored(EXAMPLES[0][0]).confidence_interval(confidence_level)


def test_invalid_method() -> None:
    for method in ("bayes", "logit", 3):
        with expect_error("invalid-method", "method"):
            scored(EXAMPLES[0][0]).confidence_interval(method=method)  # type: ignore[arg-type]
    with expect_error("invalid-method", "method"):
        fleiss_kappa([["a", "b"], ["a", "a"]]).confidence_interval(method="bootstrap")
    assert fleiss_kappa([["a", "b"], ["a", "a"]]).confidence_interval().method == "beta"


def test_display() -> None:
    interval = scored(EXAMPLES[0][0]).confidence_interval(0.9)
    assert repr(interval) == (
        f"ConfidenceInterval(low={interval.low:.4f}, high={interval.high:.4f}, confidence_level=0.9, method='beta')"
    )
    assert "confidence_level=0.99999999," in repr(scored(EXAMPLES[0][0]).confidence_interval(0.99999999))
    low, high = interval
    assert (low, high) == (interval.low, interval.high)
    none = scored("011/1 " * 4).confidence_interval()
    assert f"reason={none.reason!r}" in repr(none)


# Beta quantiles


def distribution(a: int, b: int, x: float) -> Fraction:
    """I_x(a, b) for whole a and b: the chance of a successes or more in a + b - 1 trials, exactly."""
    n, q = a + b - 1, Fraction(x)
    return sum((math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(a, n + 1)), Fraction(0))


@pytest.mark.parametrize("p", [0.005, 0.025, 0.3, 0.5, 0.9, 0.975, 0.999])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 9), (2, 3), (7, 2), (30, 1), (25, 40), (60, 5), (90, 90)])
def test_against_exact_sums(a: int, b: int, p: float) -> None:
    # x is right to its last digits, which move the sum by x times the density times 10^-15, a few units of 10^-15.
    assert float(distribution(a, b, beta_quantile(a, b, p))) == pytest.approx(p, abs=1e-14)


def test_against_scipy() -> None:
    draw = random.Random(1)
    for _ in range(3_000):
        size, mean = math.exp(draw.uniform(0.7, 18)), draw.random() ** draw.choice([1, 3, 6])
        a, b = draw.choice([(size * mean, size * (1 - mean)), (size * (1 - mean), size * mean)])
        p = draw.choice([0.025, 0.975, 0.005, 0.995, 1e-6, 1 - 1e-6, draw.uniform(0.001, 0.999)])
        found = beta_quantile(a, b, p)
        # Two good ways differ by roundings; where x is tiny, they are a larger part of it.
        assert found == pytest.approx(float(betaincinv(a, b, p)), rel=1e-9, abs=1e-15)
        assert 0 <= found <= 1


@pytest.mark.parametrize(("a", "b"), [(0.01, 0.02), (0.5, 3.0), (2.0, 1e-9), (1e9, 3e7), (1.0, 1e12)])
def test_unusual_ones_are_scipys(a: float, b: float) -> None:
    assert beta_quantile(a, b, 0.975) == float(betaincinv(a, b, 0.975))


class TestQuantiles:
    @pytest.mark.parametrize("p", [0.025, 0.3, 0.5, 0.999])
    @pytest.mark.parametrize(("a", "b"), [(4e6, 6e6), (1e6, 9e6), (9.5e6, 0.5e6)])
    def test_near_normal_against_scipy(self, a: float, b: float, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """At sizes where scipy is still accurate; the error of the expansion is of the order of their -3/2th power."""
        monkeypatch.setattr("dhkappa.stats.intervals._HUGE", 1e5)
        deviation = math.sqrt(a * b / (a + b + 1)) / (a + b)
        assert (beta_quantile(a, b, p) - float(betaincinv(a, b, p))) / deviation == pytest.approx(0, abs=3e-9)

    def test_huge_ones_are_near_normal(self) -> None:
        a, b = 3e18, 1e18
        z = 1.959963984540054
        normal = 0.75 + z * math.sqrt(0.75 * 0.25 / 4e18)
        assert beta_quantile(a, b, 0.975) == pytest.approx(normal, rel=1e-15)
        assert beta_quantile(b, a, 0.025) == pytest.approx(1 - normal, rel=1e-15)

    @pytest.mark.parametrize(("a", "b", "p"), [(2, 3, 1 - 1e-12), (2.5, 30, 1 - 1e-13), (40, 3, 1e-12), (0.5, 2, 0.9)])
    def test_far_tails_are_scipys(self, a: float, b: float, p: float) -> None:
        assert beta_quantile(a, b, p) == float(betaincinv(a, b, p))


def basis(**given: Any) -> Basis:
    """Eight items with weights, so that all parts differ."""
    plain: dict[str, Any] = {"kappa": 0.6, "E": -0.1, "n": 8, "squares": 3.0, "least": -1.5, "greatest": 0.7}
    shares = {"least_share": 0.2, "greatest_share": 0.1, "unseen": 0.15, "df": 6, "bottom": -1.5}
    return Basis(**plain | shares | given)


def stacked(several: list[Basis]) -> Basis:
    """One basis with arrays of the attributes of several that have the same range of kappa."""
    arrays: list[Any] = [np.array([getattr(one, name) for one in several], float) for name in Basis.__slots__[:-1]]
    return replace(Basis(*arrays), bottom=several[0].bottom)


def beta_by_hand(of: Basis, alpha: float) -> tuple[float, float]:
    """docs/methods.md, with w = 3/4 of an item of share s that moves kappa by a."""
    n, w, width = of.n, 0.75, 1 - of.bottom
    limits = []
    for a, s, p in ((of.least, of.least_share, 1 - alpha / 2), (of.greatest, of.greatest_share, alpha / 2)):
        u = (1 - of.kappa - w * a * s / (1 + w * s)) / width
        v = of.squares / ((n + w) * (n + w + 1)) + w * a**2 * s**2 / ((1 + w * s) ** 2 * (1 + (w + 1) * s))
        nu = u * (1 - u) * width**2 / v - 1
        limits.append(1 - width * float(betaincinv(u * nu, (1 - u) * nu, p)))
    flawless = 1 - 2 * (1 - (alpha / 2) ** of.unseen) / (1 - of.E)
    return max(of.bottom, min(limits[0], flawless)), limits[1]


WIDE: dict[str, Any] = {"kappa": -0.25, "squares": 88.9, "least": 0.0, "greatest": 0.0}  # nu is 1/2


class TestIntervals:
    @pytest.mark.parametrize("alpha", [0.05, 0.3])
    @pytest.mark.parametrize(
        "given", [{}, {"bottom": LEAST}, {"squares": 0.0}, {"n": 400}, {"kappa": 0.1, "df": 3}, WIDE]
    )
    def test_beta_by_hand(self, given: dict[str, Any], alpha: float) -> None:
        of = basis(**given)
        # The quantile is computed in another way, to some digits less than a float has.
        assert beta_interval(of, alpha) == pytest.approx(beta_by_hand(of, alpha), rel=1e-12)

    def test_beta_where_there_is_no_beta_distribution(self) -> None:
        best, worst = basis(greatest=20.0), basis(least=-40.0)
        assert beta_interval(best, 0.05)[1] == 1.0  # its mean lies above kappa's range
        assert beta_interval(worst, 0.05)[0] == -1.5  # and below it
        still = basis(squares=0.0, least=0.0, greatest=0.0, unseen=1e-9)
        assert beta_interval(still, 0.05) == pytest.approx((0.6, 0.6), abs=1e-12)  # nothing varies
        assert beta_interval(basis(squares=1e4, unseen=1e-9), 0.05) == (-1.5, 1.0)  # more than any beta varies
        # A variance of u (1 - u) is that of the two ends alone: nu is 0.
        ends = basis(kappa=-0.25, squares=1.25**2 * 8.75 * 9.75, least=0.0, greatest=0.0, unseen=1e-9)
        assert beta_interval(ends, 0.05) == (-1.5, 1.0)

    def test_beta_at_the_ends_of_the_range(self) -> None:
        flawless = 1 - 2 * (1 - 0.025**0.15) / 1.1
        assert beta_interval(basis(kappa=1.0, least=0.0, squares=1.0), 0.05)[0] == pytest.approx(flawless, rel=1e-12)
        for kappa in (-1.5, -1.6):
            assert beta_interval(basis(kappa=kappa, greatest=0.0, squares=1.0), 0.05)[1] == -1.5

    def test_beta_with_another_quantile(self) -> None:
        asked: list[tuple[float, float, float]] = []

        def quantile(a: float, b: float, p: float) -> float:
            asked.append((a, b, p))
            return 0.5

        middle = beta_interval(basis(), 0.2, quantile)
        assert [p for _, _, p in asked] == [0.9, 0.1]
        assert middle == (-0.25, -0.25)

    @pytest.mark.parametrize("alpha", [0.05, 0.3])
    def test_beta_of_many_at_once(self, alpha: float) -> None:
        no_beta: list[dict[str, Any]] = [
            {"greatest": 20.0},
            {"least": -40.0},
            {"squares": 1e4, "unseen": 1e-9},
            {"squares": 0.0, "least": 0.0, "greatest": 0.0, "unseen": 1e-9},
            {"kappa": -0.25, "squares": 1.25**2 * 8.75 * 9.75, "least": 0.0, "greatest": 0.0, "unseen": 1e-9},
            *({"kappa": kappa, "squares": 1.0, "least": 0.0, "greatest": 0.0} for kappa in (1.0, -1.5, -1.6)),
        ]
        usual: list[dict[str, Any]] = [
            {},
            {"n": 400},
            {"kappa": 0.1},
            {"squares": 0.0},
            {"unseen": 5.0, "E": 0.5},
            WIDE,
        ]
        several = [basis(**given) for given in (*usual, *no_beta)]
        low, high = beta_limits(stacked(several), alpha)
        expected = np.array([beta_interval(one, alpha) for one in several])
        np.testing.assert_allclose(low, expected[:, 0], rtol=1e-12)  # another quantile function
        np.testing.assert_allclose(high, expected[:, 1], rtol=1e-12)

    def test_beta_of_many_with_a_huge_sample(self) -> None:
        """The usual quantile function is not accurate for the largest of these samples."""
        shares = {"least_share": 0.0, "greatest_share": 0.0, "unseen": 0.0}
        several = [basis(n=n, squares=2.0 * n, **shares) for n in (40, 10**9, 10**19)]
        low, high = beta_limits(stacked(several), 0.05)
        for one, *found in zip(several, low.tolist(), high.tolist(), strict=True):
            half = 1.959963984540054 * math.sqrt(one.squares) / one.n
            assert found == pytest.approx(beta_interval(one, 0.05), rel=1e-12)
            if one.n > 1e6:
                assert found == pytest.approx((0.6 - half, 0.6 + half), abs=1e-3 * half)

    @pytest.mark.parametrize("kappa", [0.6, -0.9, 0.999])
    def test_wald_by_hand(self, kappa: float) -> None:
        of = basis(kappa=kappa)
        se = math.sqrt(3 / 56)
        t = 2.4469118511449692  # with 6 degrees of freedom, of 0.975
        assert of.se == se
        assert wald_interval(of, 0.05) == pytest.approx((max(kappa - t * se, -1.5), min(kappa + t * se, 1)), rel=1e-12)

    def test_flawless_samples(self) -> None:
        low = 1 - 2 * (1 - 0.025**0.15) / 1.1
        assert low == pytest.approx(0.2273, abs=1e-4)
        for interval in (beta_interval, wald_interval):
            found = interval(basis(kappa=1.0, squares=0.0, greatest=0.0, least=0.0), 0.05)
            assert found == pytest.approx((low, 1.0), rel=1e-12)
            wide = interval(
                basis(kappa=1.0, squares=0.0, greatest=0.0, least=0.0, unseen=5.0, E=0.5, bottom=LEAST), 0.05
            )
            assert wide == (LEAST, 1.0)
        assert wald_interval(basis(kappa=1.0, unseen=5.0, E=0.9), 0.05) == (-1.5, 1.0)

    def test_levels_in_digits(self) -> None:
        """Four digits, or more if the level would round to the whole."""
        assert [written(confidence_level) for confidence_level in (0.95, 0.99991, 0.99999, 1.0)] == [
            "0.95",
            "0.9999",
            "0.99999",
            "1",
        ]
        assert [written(confidence_level, 100) for confidence_level in (0.95, 0.99991, 0.9999951, 1.0)] == [
            "95",
            "99.99",
            "99.9995",
            "100",
        ]


def limits_by_hand(gap: KappaDifference, confidence_level: float) -> tuple[float, float]:
    """docs/methods.md, with w = 1/2 of an item that only one of the two gets wrong."""
    n, w, alpha = gap.n, 0.5, 1 - confidence_level
    if not gap.se:
        hidden = 1 - (alpha / 2) ** (1 / n)
        return gap.value + gap.worst * hidden, gap.value + gap.best * hidden
    t, N = float(stdtrit(gap.df, 1 - alpha / 2)), n + w
    squares = gap.se**2 * n * (n - 1)
    cubes = gap.skew * squares**1.5
    limits = []
    for a, sign in ((gap.worst, -1), (gap.best, 1)):
        mu = w * a / N
        Q = squares + w * a**2 * n / N
        M = cubes - 3 * mu * squares - n * mu**3 + w * (a - mu) ** 3
        limits.append(
            gap.value + mu + sign * (t * math.sqrt(Q / (N * (N - 1))) + (t**2 - 1) / 3 * max(0.0, sign * M / (Q * N)))
        )
    return max(limits[0], -27 / 13), min(limits[1], 27 / 13)


GAPS = {
    "left": KappaDifference(0.2, 0.08, -0.3, 50, 49, -2.5, 1.5),
    "right": KappaDifference(-0.15, 0.08, 0.6, 50.5, 40, -1.5, 2.5),
    "few": KappaDifference(0.9, 0.2, 0.1, 6, 5, -4.0, 4.0),
    "narrow": KappaDifference(-0.03, 0.01, 0.0, 900, 899, -2.0, 2.0),
    "wide": KappaDifference(1.5, 2.0, 0.0, 4, 3, -9.0, 9.0),
    "small": KappaDifference(-0.02, 0.002, 0.5, 40, 39, -0.1, 0.1),
    "still": KappaDifference(0.0, 0.0, 0.0, 30, 29, -2.0, 3.0),
}


class TestGaps:
    @pytest.mark.parametrize("confidence_level", [0.9, 0.99])
    @pytest.mark.parametrize("name", GAPS)
    def test_limits_by_hand(self, name: str, confidence_level: float) -> None:
        found = tuple(float(limit) for limit in GAPS[name].limits(confidence_level))
        assert found == pytest.approx(limits_by_hand(GAPS[name], confidence_level), rel=1e-12)

    @pytest.mark.parametrize("name", ["left", "right", "few", "narrow"])
    def test_p_is_where_a_limit_is_zero(self, name: str) -> None:
        gap = GAPS[name]
        nearest = 0 if gap.value > 0 else 1
        confidence_level = brentq(
            lambda confidence_level: float(gap.limits(confidence_level)[nearest]), 0.3, 1 - 1e-13, xtol=1e-15
        )
        assert float(gap.pvalue()) == pytest.approx(
            1 - confidence_level, rel=1e-6, abs=1e-12
        )  # as far as the root is found

    def test_p_where_nothing_moves_or_no_limit_is_zero(self) -> None:
        assert float(GAPS["still"].pvalue()) == 1
        assert float(KappaDifference(0.5, 0.0, 0.0, 30, 29, -2.0, 3.0).pvalue()) == 1
        assert float(KappaDifference(0.001, 0.08, 0.0, 50, 49, -2.5, 2.5).pvalue()) == 1

    def test_two_items_have_one_degree_of_freedom(self) -> None:
        labels = {"x": ["a", "a"], "y": ["b", "c"]}
        row = next(iter(compare([["a", "a"], ["a", "b"]], labels, confidence_level=0.5).differences))
        # C is 3/4 and 1/4. Of x, E = 9/16 - 1/16; of y it is 1/32 - 19/32. Two moves of mean 0 have no skewness.
        reach = 1 / (1 - 8 / 16) + 1 / (1 + 18 / 32)
        gap = KappaDifference(row["difference"], row["se"], 0.0, 2, 1, -reach, reach)
        assert row["se"] > 0.1
        assert (row["low"], row["high"]) == pytest.approx(limits_by_hand(gap, 0.5), rel=1e-12)

    def test_many_at_once(self) -> None:
        several = [GAPS[name] for name in ("left", "right", "still")]
        names = ("value", "se", "skew", "n", "df", "worst", "best")
        gap = KappaDifference(*(np.array([getattr(one, name) for one in several]) for name in names))
        low, high = gap.limits(0.95)
        expected = [tuple(map(float, one.limits(0.95))) for one in several]
        assert list(zip(low.tolist(), high.tolist(), strict=True)) == expected
        assert gap.pvalue().tolist() == [float(one.pvalue()) for one in several]

    def test_skewness(self) -> None:
        assert skewness(14.0, 4.0) == 14 / 8
        assert skewness(0.5, 0.25) == 4
        assert skewness(-14.0, 20.0) == -14 / 20**1.5
        assert skewness(0.0, 0.0) == skewness(1e-330, 1e-220) == 0  # the power of tiny squares is 0


@pytest.mark.parametrize("p", [0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999])
@pytest.mark.parametrize("a", [5.0, 12.0, 300.0, 5_000.0])
@pytest.mark.parametrize("b", [5.0, 12.0, 300.0, 5_000.0])
def test_start_of_the_quantile_is_close(a: float, b: float, p: float) -> None:
    spread = math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    assert abs(approximate_quantile(a, b, p) - betaincinv(a, b, p)) < 0.03 * spread


@pytest.mark.parametrize("p", [1 - 1e-9, 0.999999, 0.5, 1e-6, 1e-9])
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.5, 40.0), (30.0, 2.0), (800.0, 90.0)])
def test_far_quantiles_have_the_tail_that_was_asked_for(a: float, b: float, p: float) -> None:
    x = beta_quantile(a, b, p)
    tail = (betainc(a, b, x), p) if p < 0.5 else (betaincc(a, b, x), 1 - p)
    assert tail[0] == pytest.approx(tail[1], rel=1e-9)
