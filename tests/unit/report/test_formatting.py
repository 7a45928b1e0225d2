"""Formatting that reports share."""

import math
from typing import Any

import pytest

import dhkappa
from dhkappa.report import better_first, grid, limits, number, percent, pvalue, share, signed, text_of


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (number(0.456), "0.46"),
        (number(-0.001), "0.00"),
        (number(float("nan")), "-"),
        (number(None), "-"),
        (number(0.1234, 3), "0.123"),
        (signed(0.5), "+0.50"),
        (signed(-0.5), "-0.50"),
        (signed(-0.001), "0.00"),
        (signed(0.001), "0.00"),
        (signed(float("nan")), "-"),
        (limits(-0.1, 0.25), "-0.10 to 0.25"),
        (limits(float("nan"), float("nan")), "-"),
        (limits(None, None), "-"),
        (limits(-0.1, 0.25, 2, signed), "-0.10 to +0.25"),
        (pvalue(0.0004), "< 0.001"),
        (pvalue(0.0123), "0.012"),
        (pvalue(0.00004, 4), "< 0.0001"),
        (pvalue(float("nan")), "-"),
        (pvalue(None), "-"),
        (share(0.004), "< 1%"),
        (share(0.0), "0%"),
        (share(float("nan")), "-"),
        (text_of("a\nb", 10), "a\\nb"),
        (text_of("  ", 10), "'  '"),
        (text_of("x" * 11, 10), "x" * 9 + "…"),
        (percent(0.95), "95%"),
        (percent(0.999), "99.9%"),
        (percent(1 - 0.05 / 3), "98.33%"),
        (percent(0.99999999), "99.999999%"),
    ],
)
def test_numbers(written: str, text: str) -> None:
    assert written == text


def test_grid() -> None:
    rows: list[dict[str, Any]] = [
        {"category": 1000, "items": 2000, "kappa": 0.12345, "low": -0.1, "high": math.nan, "loss": 0.5, "reason": None},
        {
            "category": "x",
            "items": 1,
            "kappa": math.nan,
            "low": math.nan,
            "high": math.nan,
            "loss": 0.0,
            "reason": None,
        },
    ]
    heads, cells, numbers = grid(rows, "category items kappa ci loss reason", 0.9)
    assert heads == ["category", "items", "kappa", "90% CI", "loss"]  # without the empty column
    assert numbers == [False, True, True, True, True]
    assert cells == [["1000", "2,000", "0.12", "-0.10 to -", "0.500"], ["x", "1", "-", "-", "0.000"]]
    assert grid([], "category items", 0.95)[1] == []


def test_order_of_labelers_and_differences() -> None:
    drawn = dhkappa.simulate(200, labelers={"bad": 0.5, "good": 0.9, "mid": 0.7}, rng=1)
    audit = dhkappa.audit(drawn.votes, drawn.suggested, rng=1)
    assert audit.ranking == ["good", "mid", "bad"]
    rows = better_first(audit.comparison)
    assert {(row["labeler"], row["other"]) for row in rows} == {("good", "bad"), ("mid", "bad"), ("good", "mid")}
    assert all(row["low"] <= row["difference"] <= row["high"] and row["difference"] >= 0 for row in rows)
    assert better_first(None) == []
