"""Conditions: how they are read, written and refused."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pytest

import dhkappa
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


WIDE = pandas.DataFrame(
    {"item": [*"123"], "suggested_llm": [*"aba"], "ann_1": [*"aba"], "ann_2": [*"abb"], "n": [1, 2, 3]}
)
LONG = pandas.DataFrame({"item": [*"112233"], "annotator": [*"xyxyxy"], "label": [*"aabbab"]})
ITEMS = pandas.DataFrame({"item": [*"123"], "suggested_llm": [*"aba"], "label": [*"xyx"], "suggested_rule": [*"aab"]})


@pytest.mark.parametrize(
    ("column", "code"),
    [("suggested_llm", "labels"), ("ann_1", "votes"), ("label", "votes"), ("count", "votes"), ("n_a", "votes")],
)
def test_labels_and_votes_are_refused(column: str, code: str) -> None:
    counts = WIDE.assign(n_a=[2, 0, 1], n_b=[0, 2, 1]).drop(columns=["ann_1", "ann_2"])
    votes = LONG.merge(ITEMS[["item", "suggested_llm"]])
    votes = votes.drop(columns="annotator").assign(count=1) if column == "count" else votes
    frame = {"suggested_llm": WIDE, "ann_1": WIDE, "n_a": counts}.get(column, votes)
    roles: dict[str, Any] = {"counts": ["n_a", "n_b"]} if frame is counts else {}
    for operator in ("=", "!="):
        with expect_error(f"filter-by-{code}", "where"):
            dhkappa.Dataset(frame, **roles).filter((column, operator, "a")).counts  # noqa: B018
    with expect_error(f"slices-are-{code}", "slices"):
        dhkappa.audit(frame, slices=column, **roles)


def test_labels_of_two_tables_are_refused() -> None:
    data = dhkappa.Dataset(LONG, "suggested_llm", items=ITEMS)
    for column, code in (("suggested_llm", "labels"), ("votes.label", "votes")):
        with expect_error(f"filter-by-{code}"):
            data.filter((column, "=", "a")).counts  # noqa: B018
    assert data.filter(("items.label", "=", "x")).counts.n_items == 2  # a column of the items that is no vote
    assert data.filter(suggested_rule="a").counts.n_items == 2  # of a labeler that is not under test
