"""Unusual labels."""

import enum
from typing import Any

import numpy as np
import pytest

from dhkappa import dh_kappa, tally
from expect import expect_error


class AlwaysEqual(str):
    """Text that compares equal to everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError


class Bits(enum.Flag):
    A = 1
    B = 2


class Level(enum.IntEnum):
    ONE = 1


def test_text_that_compares_equal_to_everything() -> None:
    assert (
        dh_kappa(
            [[AlwaysEqual("a"), AlwaysEqual("a")], [AlwaysEqual("b"), AlwaysEqual("b")]],
            [AlwaysEqual("a"), AlwaysEqual("b")],
        ).exact
        == 1
    )


@pytest.mark.parametrize(
    "label",
    [
        Bits(0),
        np.datetime64("2020-01-01", "ns"),
        np.timedelta64(5, "ns"),
        NoRepr(),
        10**5000,
        float(2**53),
        1e300,
        b"a",
    ],
    ids=lambda label: type(label).__name__,
)
def test_values_that_are_not_labels(label: Any) -> None:
    for votes in ([["a", "b"], ["a", label]], [["a"], ["a", label]]):
        with expect_error("not-a-label", "votes"):
            dh_kappa(votes, ["a", "b"])
    with expect_error("not-a-label", "suggested"):
        dh_kappa([["a", "b"], ["a", "a"]], ["a", label])


def test_large_floats_are_rejected() -> None:
    with expect_error("float-too-large", "votes"):
        dh_kappa(np.array([[2.0**53, np.nan], [7.0, 7.0]]), [7, 7])


def test_integers_and_booleans_in_any_order() -> None:
    rows: list[list[Any]] = [[True, Level.ONE], [Level.ONE, True]]
    assert {repr(dh_kappa([row, [0, 0]], [0, 1]).categories) for row in rows} == {"(0, 1)"}
    one, other = tally([[0, 1]], [1], categories=[0, 1]), tally([[False, True]], [True], categories=[False, True])
    assert repr((one + other).categories) == repr((other + one).categories) == "(0, 1)"
