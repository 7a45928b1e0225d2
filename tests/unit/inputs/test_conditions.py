"""Conditions: how they are read, written and refused."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dhkappa.inputs.conditions import Condition, conditions_of
from expect import expect_error


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("language=en", ("language", "=", ("en",))),
        (" language == en , de ", ("language", "=", ("en", "de"))),
        ("a b!=x", ("a b", "!=", ("x",))),
        ("sure >= 0.5", ("sure", ">=", ("0.5",))),
        ("language=", ("language", "=", (None,))),
        ("language=en,", ("language", "=", ("en", None))),
        ('"a=b"=c', ("a=b", "=", ("c",))),
        ('x="a,b",c', ("x", "=", ("a,b", "c"))),
        ("x=a=b", ("x", "=", ("a=b",))),
        ("x<-1", ("x", "<", ("-1",))),
    ],
)
def test_text_of_conditions(text: str, parts: tuple[str, str, tuple[Any, ...]]) -> None:
    found = Condition.parse(text)
    assert (found.column, found.operator, found.values) == parts
    assert Condition.parse(found.text) == found


@pytest.mark.parametrize("text", ["language", "", "=en", "a~b", "sure>", "sure>1,2"])
def test_text_that_is_no_condition(text: str) -> None:
    with expect_error("invalid-filter", "where"):
        Condition.parse(text)


def test_values_of_python() -> None:
    day = dt.date(2026, 1, 31)
    given: list[Any] = [np.int64(3), np.float64("nan"), Decimal("2.0"), Decimal("0.5"), day, True, ""]
    [found] = conditions_of([("x", "=", given)], {})
    assert found.values == (3, None, 2, 0.5, day, True, None)
    assert [type(value) for value in found.values[:1]] == [int]
    assert conditions_of([], {"x": {"b", "a"}, "y": None}) == (
        Condition("x", "=", ("a", "b")),
        Condition("y", "=", (None,)),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [3],
        [("x", "=")],
        [("x", "like", "a")],
        [(3, "=", "a")],
        [("x", "=", [])],
        [("x", ">", True)],
        [("x", "=", object())],
        [("x", "<", float("inf"))],
    ],
)
def test_arguments_that_are_no_conditions(wrong: list[Any]) -> None:
    with expect_error("invalid-filter", "where"):
        conditions_of(wrong, {})
