"""Labels of every type, missing values, natural order, encoding and declared categories."""

import datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhkappa import dh_kappa
from dhkappa.core.labels import (
    NotALabelError,
    check_categories,
    check_declared,
    check_lookalikes,
    check_missing,
    encode,
    name_key,
    natural_key,
    to_label,
    union,
)
from expect import expect_error


class Colour(Enum):
    RED = 1
    BLUE = 2


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Stars(IntEnum):
    ONE = 1
    TWO = 2


CODES = [[0, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1]]
SUGGESTED = [0, 0, 1, 0, 1]
EXACT = dh_kappa(CODES, SUGGESTED).exact


def decoded(values: Any, missing: Any = ()) -> list[Any]:
    encoded = encode(values, "votes", missing)
    return [encoded.labels[digit] for digit in encoded.digits().ravel().tolist()]


@pytest.mark.parametrize(
    "names",
    [
        ["cat", "dog"],
        [3, 7],
        [-5, 10**30],
        [-(2**63), 2**63 - 1],
        [2**63, 2**64 - 1],
        [False, True],
        [Colour.RED, Colour.BLUE],
        [Mood.GOOD, Mood.BAD],
        [Stars.ONE, Stars.TWO],
        [np.int8(-1), np.int8(1)],
        [np.str_("x"), np.str_("y")],
        [np.bool_(False), np.bool_(True)],
        [1.0, 2.0],
        [" ", "\N{PILE OF POO}"],
        ["NA", "nan"],
        ["None", "\ud800"],
        [0, "zero"],
    ],
    ids=repr,
)
def test_types_of_labels(names: list[Any]) -> None:
    votes = [[names[code] for code in row] for row in CODES]
    suggested = [names[code] for code in SUGGESTED]
    assert dh_kappa(votes, suggested).exact == EXACT
    objects = np.empty((5, 3), object)
    objects[:] = votes
    assert dh_kappa(objects, suggested).exact == EXACT
    if len(set(map(type, names))) == 1 and not isinstance(names[0], Enum):
        assert dh_kappa(np.array(votes), np.array(suggested)).exact == EXACT


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint64, np.int64, np.float16])
def test_integer_types_at_their_limits(dtype: type[Any]) -> None:
    floating = np.dtype(dtype).kind == "f"
    low, high = (0, 2047) if floating else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    votes = np.where(np.array(CODES) == 0, np.array(low, dtype), np.array(high, dtype))
    kappa = dh_kappa(votes, votes[:, 0])
    assert kappa.exact == EXACT
    assert kappa.categories == (int(low), int(high))


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30),
    st.sampled_from([1, 50, 2**10, 2**20]),
    st.integers(-5, 5),
)
def test_integers_are_encoded_at_every_spread(drawn: list[int], spread: int, low: int) -> None:
    for values in (drawn, [low + value % spread for value in drawn]):
        array = np.array(values, np.int64)
        assert decoded(array) == values
        encoded = encode(array, "votes")
        assert list(encoded.labels) == sorted(label for label in encoded.labels if label is not None)
        assert encoded.occurring(encoded.digits()) == sorted(set(values))


def test_many_integers_are_encoded_without_a_table_if_most_occur() -> None:
    values = np.random.default_rng(1).permutation(np.arange(-500, 99_500))
    assert decoded(values) == values.tolist()
    sparse = values * 3
    assert decoded(sparse) == sparse.tolist()


@pytest.mark.parametrize(
    "missing",
    [None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), ""],
    ids=repr,
)
def test_missing_values(missing: Any) -> None:
    assert to_label(missing) is None
    votes = [["a", "a", missing], ["b", missing, "b"], ["a", "b", "b"], ["a", "a", "a"]]
    kappa = dh_kappa(votes, ["a", "b", "b", missing])
    assert kappa.exact == dh_kappa([["a", "a"], ["b", "b"], ["a", "b", "b"]], ["a", "b", "b"]).exact
    assert kappa.excluded.no_label == 1


def test_float_arrays_with_nan_and_masked_arrays() -> None:
    expected = dh_kappa([[1, 1], [2, 2], [1, 2, 2]], [1, 2, 2]).exact
    floats = np.array([[1, 1, np.nan], [2, np.nan, 2], [1, 2, 2], [1, 1, 1]])
    suggested = np.array([1, 2, 2, np.nan])
    assert dh_kappa(floats, suggested).exact == expected
    masked = np.ma.array(np.nan_to_num(floats).astype(int), mask=np.isnan(floats))
    assert dh_kappa(masked, np.ma.masked_invalid(suggested)).exact == expected
    assert dh_kappa(np.full((2, 2), np.nan), [1, 2]).n_items == 0


def test_labels_named_as_missing() -> None:
    votes = [["a", "NA", "a"], ["b", "b", "?"], ["NA", "?", "a"], ["a", "b", "b"]]
    kappa = dh_kappa(votes, ["a", "b", "a", "b"], missing=["NA", "?"])
    assert kappa.exact == dh_kappa([["a", "a"], ["b", "b"], ["a"], ["a", "b", "b"]], ["a", "b", "a", "b"]).exact
    assert kappa.categories == ("a", "b")
    assert dh_kappa(np.array([[1, 1, -1], [2, -1, 2], [1, 2, 2]]), [1, 2, 2], missing=[-1]).n_votes == 7
    assert dh_kappa(votes, ["a", "b", "a", "NA"], missing="NA").excluded.no_label == 1


def test_text_that_looks_missing_is_a_label() -> None:
    assert dh_kappa([["NA", "nan"], ["None", "null"]], ["NA", " "]).categories == (" ", "NA", "nan", "None", "null")


@pytest.mark.parametrize("byte", [2, 128, 255])
def test_true_is_any_byte_but_zero(byte: int) -> None:
    votes = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [0, 0]], np.uint8)
    labels = np.array([1, 0, 1, 0, 1], np.uint8)
    expected = dh_kappa(votes.astype(bool), labels.astype(bool)).exact
    odd = (votes * byte).view(bool), (labels * byte).view(bool)
    assert dh_kappa(*odd).exact == expected
    assert dh_kappa(np.asfortranarray(odd[0]), odd[1]).exact == expected
    strata = dh_kappa(votes, labels, strata=(np.array([0, 0, 1, 1, 1], np.uint8) * byte).view(bool))
    assert strata.value == pytest.approx(float(expected or 0))


@pytest.mark.parametrize(("dtype", "least"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)])
def test_floats_too_large_for_exact_integers(dtype: type[Any], least: int) -> None:
    assert dh_kappa(np.array([[least - 1, 1]], dtype), [1]).categories == (1, least - 1)
    with expect_error("float-too-large", "votes"):
        dh_kappa(np.array([[least, 1]], dtype), [1])


def test_whole_floats_and_booleans_are_integers() -> None:
    assert dh_kappa([[1, 1.0], [2.0, 2]], [1.0, 1]).categories == (1, 2)
    kappa = dh_kappa([[True, 1], [False, 0], [False, True]], [1, 0, 0])
    assert [(label, type(label)) for label in kappa.categories] == [(0, int), (1, int)]
    assert kappa.exact == dh_kappa([[1, 1], [0, 0], [0, 1]], [1, 0, 0]).exact


@pytest.mark.parametrize(
    "values",
    [
        np.array([[1.5, 2.0]]),
        np.array([[np.inf, 2.0]]),
        np.array([[b"a", b"b"]]),
        np.array([["2020-01-01"]], "M8[D]"),
        np.array([[1j, 2]]),
        np.zeros((1, 2), [("x", int)]),
        np.array([[1.5, "a"]], object),
        np.array([[float("inf")]], object),
        np.array([[1, Decimal(1)]], object),
        np.array([[datetime.date(2020, 1, 1)]], object),
        np.array([[np.datetime64("2020-01-01")]], object),
        np.array([[10**4000]], object),
        np.array([[("a", "b"), None]], object)[:, :1],
    ],
    ids=repr,
)
def test_values_that_are_not_labels(values: Any) -> None:
    with expect_error("not-a-label", "votes"):
        encode(values, "votes")


def test_an_error_names_the_item() -> None:
    for votes in ([["a", "b"], ["a", ["b"]]], [["a"], ["a", ["b"]]]):
        with expect_error("not-a-label", "votes") as caught:
            dh_kappa(votes, ["a", "a"])
        assert "item 1" in caught.value.message


@pytest.mark.parametrize("value", [Decimal(1), b"a", [1], 1j, 1.5, float("inf"), np.timedelta64(1, "s"), 10**4000])
def test_to_label_refuses(value: Any) -> None:
    with pytest.raises(NotALabelError):
        to_label(value)


def test_natural_order() -> None:
    labels: list[str | int] = ["item10", "item9", "Item2", "b", "a", "10", "9", "x" + "1" * 5000, 3, -1, 20]
    expected = [-1, 3, 20, "9", "10", "a", "b", "Item2", "item9", "item10", "x" + "1" * 5000]
    assert sorted(labels, key=natural_key) == expected
    names = ["b10", None, (2, 1), "b9", 4]
    assert sorted(names, key=name_key) == [4, "b9", "b10", (2, 1), None]


@given(st.lists(st.one_of(st.text(), st.integers(), st.booleans())))
def test_union_depends_on_the_labels_only(labels: list[Any]) -> None:
    labels = [label for label in labels if not isinstance(label, str) or not label.strip("-").isdigit()]
    labels = [label for label in labels if label not in ("True", "False")]
    assert repr(union(labels)) == repr(union(labels[::-1])) == repr(union(labels[::2], labels[1::2]))
    assert set(union(labels)) == set(labels)


def test_declared_categories() -> None:
    assert check_categories(["low", "mid", "high"]) == ("low", "mid", "high")
    assert check_categories(Colour) == ("RED", "BLUE")
    assert check_categories(label for label in (2.0, np.int8(1))) == (2, 1)
    assert repr(check_categories([True, 0, 5])) == "(1, 0, 5)"
    kappa = dh_kappa(
        [["low", "high"], ["low", "low"], ["high", "high"]], ["low", "low", "high"], categories=["low", "mid", "high"]
    )
    assert kappa.categories == ("low", "mid", "high")
    assert kappa.parts is not None
    assert kappa.parts.C["mid"] == kappa.parts.L["mid"] == Fraction(0)


@pytest.mark.parametrize(
    ("categories", "code"),
    [
        ("ab", "invalid-categories"),
        (b"ab", "invalid-categories"),
        (3, "invalid-categories"),
        ({"a"}, "invalid-categories"),
        (["a", "a"], "invalid-categories"),
        ([1, True], "invalid-categories"),
        (["a", None], "invalid-categories"),
        ([["a"]], "not-a-label"),
        ([1, "1"], "mixed-label-types"),
    ],
    ids=repr,
)
def test_declared_categories_that_are_refused(categories: Any, code: str) -> None:
    with expect_error(code):
        check_categories(categories)


def test_labels_that_look_the_same() -> None:
    check_lookalikes([1, "2", True, "true"])
    mixed: list[list[Any]] = [[1, "1"], ["True", True], [2, "a", "2"]]
    for labels in mixed:
        with expect_error("mixed-label-types"):
            check_lookalikes(labels)
        with expect_error("mixed-label-types"):
            union(labels[:1], labels[1:])


@pytest.mark.parametrize(("labels", "missing"), [([1, 9], {"9"}), (["1", "9"], {9}), ([True, False], {"False"})])
def test_missing_of_another_type(labels: list[Any], missing: set[Any]) -> None:
    with expect_error("missing-type", "missing"):
        check_missing(labels, missing)
    check_missing(labels, {*missing, *labels})
    check_missing(labels, {"other"})


def test_labels_that_were_not_declared() -> None:
    check_declared(["a"], ["a", "b"], "votes")
    with expect_error("undeclared-label", "votes"):
        check_declared(["a", "z"], ["a", "b"], "votes")
    with expect_error("undeclared-label", "suggested"):
        check_declared(["z"], ["a", "b"], "suggested", columns=True)
    with expect_error("mixed-label-types"):
        check_declared(["1"], [1, 2], "votes")


def test_long_values_are_cut_in_messages() -> None:
    with expect_error("undeclared-label", "votes") as caught:
        dh_kappa([["x" * 10_000, "y"]], ["y"], categories=["y"])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("label", "missing"), [("none", {"None"}), (" NA", {"NA"}), ("n/a ", {"N/A", 9})])
def test_a_misspelled_missing_label_is_told(label: str, missing: set[Any]) -> None:
    (text,) = check_missing(["a", label, 1], missing)
    assert text.startswith(f"{label!r} is counted as a category")
    assert check_missing(["a", label, 1], {"b", label}) == ()
    assert [note.code for note in dh_kappa([[label, "a"]], ["a"], missing=missing).notes].count("source") == 1
