"""Labels of every type mean the same thing, and categories stand in natural order."""

from collections.abc import Callable
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhkappa import DataError, audit, compare, dh_kappa, tally
from dhkappa.core.labels import natural_key, union


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
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    low, high = (0, 2047) if np.dtype(dtype).kind == "f" else (limits.min, limits.max)
    votes = np.where(np.array(CODES) == 0, np.array(low, dtype), np.array(high, dtype))
    kappa = dh_kappa(votes, votes[[0, 1, 2, 3, 4], [0, 0, 0, 0, 0]])
    assert kappa.exact == dh_kappa(CODES, [0, 0, 1, 0, 1]).exact
    assert kappa.categories == (int(low), int(high))


@pytest.mark.parametrize(
    "missing",
    [None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")],
    ids=repr,
)
def test_missing_votes_and_labels(missing: Any) -> None:
    kappa = dh_kappa(
        [["a", "a", missing], ["b", missing, "b"], ["a", "b", "b"], ["a", "a", "a"]], ["a", "b", "b", missing]
    )
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


def test_spellings_of_missing() -> None:
    votes = [["a", "NA", "a"], ["b", "b", "?"], ["NA", "?", "a"], ["a", "b", "b"]]
    kappa = dh_kappa(votes, ["a", "b", "a", "b"], missing=["NA", "?"])
    assert kappa.exact == dh_kappa([["a", "a"], ["b", "b"], ["a"], ["a", "b", "b"]], ["a", "b", "a", "b"]).exact
    assert kappa.categories == ("a", "b")
    assert dh_kappa(np.array([[1, 1, -1], [2, -1, 2], [1, 2, 2]]), [1, 2, 2], missing=[-1]).n_votes == 7
    assert dh_kappa(votes, ["a", "b", "a", "NA"], missing="NA").excluded.no_label == 1


def test_text_that_looks_missing_is_a_label() -> None:
    assert dh_kappa([["NA", "nan"], ["None", "null"]], ["NA", " "]).categories == (" ", "NA", "nan", "None", "null")


def test_empty_text_is_missing() -> None:
    kappa = dh_kappa([["a", "", "a"], ["b", "b", "a"], ["a", "a", "b"]], ["a", "b", ""])
    assert kappa.categories == ("a", "b")
    assert (kappa.n_votes, kappa.excluded.no_label) == (5, 1)
    assert dh_kappa(np.array([["a", ""], ["b", "b"]]), ["a", "b"]).excluded.one_vote == 1


def test_pandas_objects_are_arrays() -> None:
    frame = pd.DataFrame({"ann_1": ["a", "b", None], "ann_2": ["a", "a", "b"]})
    suggested = pd.Series(["a", "b", "b"], dtype="category")
    assert dh_kappa(frame, suggested).exact == dh_kappa([["a", "a"], ["b", "a"], ["b"]], ["a", "b", "b"]).exact
    nullable = pd.DataFrame({"ann_1": [1, 2, None], "ann_2": [1, 1, 2]}, dtype="Int64")
    assert dh_kappa(nullable, [1, 2, 2]).exact == dh_kappa([[1, 1], [2, 1], [2]], [1, 2, 2]).exact


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_suggested_labels_are_no_votes(make: Callable[[Any], Any]) -> None:
    table = make({"x": ["a", "b"], "y": ["a", "b"], "llm": ["a", "a"]})
    for call, suggested in ((dh_kappa, table["llm"]), (tally, {"llm": table["llm"]})):
        with pytest.raises(DataError, match="votes holds the column 'llm' of suggested too: pass the columns of votes"):
            call(table, suggested)
    assert dh_kappa(table[["x", "y"]], table["llm"]).n_votes == 4
    other = make({"x": ["b", "a"]})["x"]  # of the same name by chance
    assert dh_kappa(table[["x", "y"]], other).n_votes == 4


def test_a_label_without_a_column_of_counts() -> None:
    with pytest.raises(DataError, match=r"'b', not among the columns of counts 'a', 'B'\. Add a column, or name it"):
        dh_kappa(counts=pd.DataFrame({"a": [2], "B": [1]}), suggested=["b"])


def test_a_table_without_suggested_labels_tells_its_columns() -> None:
    table = pd.DataFrame({"x": ["a", "b"], "llm": ["a", "b"]})
    for call in (dh_kappa, audit):
        with pytest.raises(DataError, match=r"suggested is absent: pass one .* Columns: x, llm\."):
            call(table)


def test_pandas_rows_in_another_order_are_refused() -> None:
    votes = pd.DataFrame({"x": ["a", "b"], "y": ["a", "b"]}, index=["i", "j"])
    suggested = pd.Series(["b", "a"], index=["j", "i"])
    with pytest.raises(DataError, match="different indexes"):
        dh_kappa(votes, suggested)
    assert dh_kappa(votes, suggested.reindex(votes.index)).exact == 1
    assert dh_kappa(votes, suggested.to_numpy()).exact == -1
    assert dh_kappa(votes.to_numpy(), suggested).exact == -1


def test_a_dataframe_of_counts_names_its_columns() -> None:
    counts = pd.DataFrame({"b": [0, 2], "a": [2, 0], "c": [0, 0]})
    kappa = dh_kappa(counts=counts, suggested=["a", "b"])
    assert kappa.exact == 1
    assert kappa.categories == ("a", "b", "c")
    with pytest.raises(DataError, match="in another order"):
        dh_kappa(counts=counts, suggested=["a", "b"], categories=["a", "b", "c"])
    assert dh_kappa(counts=counts, suggested=["a", "b"], categories=["b", "a", "c"]).categories == ("b", "a", "c")


def test_whole_floats_and_booleans_are_integers() -> None:
    assert dh_kappa([[1, 1.0], [2.0, 2]], [1.0, 1]).categories == (1, 2)
    kappa = dh_kappa([[True, 1], [False, 0], [False, True]], [1, 0, 0])
    assert kappa.categories == (0, 1)
    assert [type(label) for label in kappa.categories] == [int, int]
    assert kappa.exact == dh_kappa([[1, 1], [0, 0], [0, 1]], [1, 0, 0]).exact
    mixed = tally([[True, False]], [True]) + tally([[2, 1]], [1])
    assert list(map(repr, mixed.categories)) == ["0", "1", "2"]


def test_the_order_met_does_not_matter() -> None:
    rows: list[list[Any]] = [[True, 1], [1, True], [0, False], [Mood.GOOD, "good"]]
    forward = tally(rows, [1, 0, "bad", "good"])
    backward = tally([row[::-1] for row in rows[::-1]], ["good", "bad", 0, 1])
    assert forward == backward
    assert repr(forward.categories) == repr(backward.categories) == "(0, 1, 'bad', 'good')"


def test_natural_order() -> None:
    labels: list[str | int] = ["item10", "item9", "Item2", "b", "a", "10", "9", "x" + "1" * 5000, 3, -1, 20]
    expected = [-1, 3, 20, "9", "10", "a", "b", "Item2", "item9", "item10", "x" + "1" * 5000]
    assert sorted(labels, key=natural_key) == expected


@given(st.lists(st.one_of(st.text(), st.integers(), st.booleans())))
def test_union_sorts_any_labels_whatever_their_order(labels: list[Any]) -> None:
    labels = [label for label in labels if not isinstance(label, str) or not label.strip("-").isdigit()]
    labels = [label for label in labels if label not in ("True", "False")]
    assert repr(union(labels)) == repr(union(labels[::-1])) == repr(union(labels[::2], labels[1::2]))
    assert set(union(labels)) == set(labels)


def test_declared_categories_are_there_without_votes() -> None:
    votes = [["low", "high"], ["low", "low"], ["high", "high"]]
    first = dh_kappa(votes, ["low", "low", "high"], categories=["low", "mid", "high"])
    assert first.categories == ("low", "mid", "high")
    assert first.parts is not None
    assert first.parts.C["mid"] == first.parts.L["mid"] == Fraction(0)


def test_an_enum_declares_its_members() -> None:
    assert dh_kappa([[Colour.RED, Colour.RED]], [Colour.BLUE], categories=Colour).categories == ("RED", "BLUE")


def test_counts_with_labels_codes_and_one_hot() -> None:
    counts = np.array([[3, 0, 0], [2, 1, 0], [0, 3, 0], [1, 1, 1], [0, 0, 3], [0, 3, 0]])
    codes = [0, 0, 1, 1, 2, 2]
    expected = Fraction(247, 544)
    assert dh_kappa(counts=counts, suggested=codes).exact == expected
    assert dh_kappa(counts=counts.tolist(), suggested=np.eye(3)[codes]).exact == expected
    assert dh_kappa(counts=counts, suggested=np.eye(3, dtype=bool)[codes].tolist()).exact == expected
    names = ["x", "y", "z"]
    assert dh_kappa(counts=counts, suggested=[names[code] for code in codes], categories=names).exact == expected
    assert dh_kappa(counts=counts, suggested=codes, categories=names).exact == expected
    assert dh_kappa(counts=counts, suggested=[code + 1 for code in codes], categories=[1, 2, 3]).exact == expected
    assert dh_kappa(counts=counts, suggested=[2 - code for code in codes], categories=[2, 1, 0]).exact == expected
    assert dh_kappa(counts=counts.astype(float), suggested=pd.Series(codes)).exact == expected
    assert dh_kappa(counts=counts.astype(object), suggested=[*codes[:-1], None]).excluded.no_label == 1


@pytest.mark.parametrize("byte", [2, 128, 255])
def test_true_is_any_byte_but_zero(byte: int) -> None:
    votes = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [0, 0]], np.uint8)
    labels = np.array([1, 0, 1, 0, 1], np.uint8)
    right = dh_kappa(votes.astype(bool), labels.astype(bool))
    odd = (votes * byte).view(bool), (labels * byte).view(bool)
    assert dh_kappa(*odd).exact == right.exact
    assert dh_kappa(np.asfortranarray(odd[0]), odd[1]).exact == right.exact
    strata = dh_kappa(votes, labels, strata=(np.array([0, 0, 1, 1, 1], np.uint8) * byte).view(bool))
    assert strata.value == pytest.approx(float(right.exact or 0))


@pytest.mark.parametrize(("dtype", "least"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)])
def test_floats_that_cannot_tell_integers_apart(dtype: type[Any], least: int) -> None:
    assert dh_kappa(np.array([[least - 1, 1]], dtype), [1]).categories == (1, least - 1)
    with pytest.raises(DataError, match="cannot tell such integers apart"):
        dh_kappa(np.array([[least, 1]], dtype), [1])


@pytest.mark.parametrize(
    ("votes", "missing", "told"),
    [
        ([[1, 1], [9, 2]], ["9"], "missing names '9', but labels hold 9"),
        ([["1", "1"], ["9", "2"]], [9], "missing names 9, but labels hold '9'"),
        ([[True, True], [False, True]], ["False"], "missing names 'False', but labels hold False"),
    ],
)
def test_missing_labels_that_look_like_others(votes: Any, missing: Any, told: str) -> None:
    suggested = [votes[0][0], votes[1][1]]
    for call in (
        lambda: dh_kappa(votes, suggested, missing=missing),
        lambda: compare(votes, {"a": suggested, "b": suggested}, missing=missing),
        lambda: tally(
            pd.DataFrame({"a": [row[0] for row in votes], "b": [row[1] for row in votes], "s": suggested}),
            "s",
            annotators=["a", "b"],
            missing=missing,
        ),
    ):
        with pytest.raises(DataError, match=told):
            call()
    both = [*missing, *(label for row in votes for label in row if str(label) == str(missing[0]))]
    assert dh_kappa(votes, suggested, missing=both).n_items == 1
