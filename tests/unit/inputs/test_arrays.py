"""Arrays, lists and count matrices with labels, strata and weights: what is read, and what is refused."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dhkappa import dh_kappa, tally
from dhkappa.inputs.arrays import read_weights
from expect import expect_error
from strategies import Colour

VOTES = [["a", "a"], ["a", "b"], ["b", "b"]]
LABELS = ["a", "b", "b"]
COUNTS = [[2, 0], [1, 1], [0, 2]]

SIX = [["a", "a", "a"], ["a", "b", "a"], ["b", "b", "b"], ["b", "b", "a"], ["a", "a", "b"], ["b", "b", "b"]]
SUGGESTED = list("aabbab")
STRATA, WEIGHTS = list("xxxyyy"), [1, 2, 3, 1, 2, 3]

CASES: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("lengths differ", {"data": VOTES, "suggested": ["a"]}, "different-length", "suggested"),
    ("lengths differ, counts", {"counts": COUNTS, "suggested": [0]}, "different-length", "suggested"),
    ("votes 1-D", {"data": np.array([1, 2, 3]), "suggested": [1, 2, 3]}, "invalid-shape", "votes"),
    ("votes 3-D", {"data": np.zeros((2, 2, 2), int), "suggested": [1, 2]}, "invalid-shape", "votes"),
    ("flat list", {"data": ["a", "b"], "suggested": ["a", "b"]}, "invalid-shape", "votes"),
    ("a set of votes", {"data": [{"a", "b"}], "suggested": ["a"]}, "invalid-shape", "votes"),
    ("a dict", {"data": {"a": 1}, "suggested": ["a"]}, "invalid-type", "votes"),
    ("suggested a name", {"data": VOTES, "suggested": "a"}, "invalid-type", "suggested"),
    ("suggested 2-D", {"data": VOTES, "suggested": np.zeros((3, 1), int)}, "invalid-shape", "suggested"),
    ("transposed", {"data": [["a", "b"]], "suggested": LABELS[:2]}, "different-length", "suggested"),
    ("negative", {"counts": [[2, -1]], "suggested": [0]}, "invalid-count", "counts"),
    ("fraction", {"counts": [[2, 0.5]], "suggested": [0]}, "invalid-count", "counts"),
    ("NaN count", {"counts": [[2, np.nan]], "suggested": [0]}, "invalid-count", "counts"),
    ("infinite count", {"counts": [[2, np.inf]], "suggested": [0]}, "invalid-count", "counts"),
    ("huge count", {"counts": [[2, 2**40]], "suggested": [0]}, "invalid-count", "counts"),
    ("beyond floats", {"counts": [[2, 10**400]], "suggested": [0]}, "invalid-count", "counts"),
    ("huge total", {"counts": [[2**31 - 1, 1]], "suggested": [0]}, "too-many-votes", "counts"),
    ("text counts", {"counts": [["x", "y"]], "suggested": [0]}, "invalid-count", "counts"),
    ("None in counts", {"counts": [[None, {}]], "suggested": [0]}, "invalid-count", "counts"),
    (
        "masked counts",
        {"counts": np.ma.array([[1, 2]], mask=[[False, True]]), "suggested": [0]},
        "invalid-count",
        "counts",
    ),
    ("ragged counts", {"counts": [[1, 2], [3]], "suggested": [0, 1]}, "invalid-shape", "counts"),
    ("counts 1-D", {"counts": [1, 2], "suggested": [0, 1]}, "invalid-shape", "counts"),
    ("no one in B", {"counts": COUNTS, "suggested": [[1, 0], [0, 0], [0, 1]]}, "invalid-one-hot", "suggested"),
    ("two ones in B", {"counts": COUNTS, "suggested": [[1, 0], [1, 1], [0, 1]]}, "invalid-one-hot", "suggested"),
    ("a two in B", {"counts": COUNTS, "suggested": [[2, 0], [1, 0], [0, 1]]}, "invalid-one-hot", "suggested"),
    ("shape of B", {"counts": COUNTS, "suggested": [[1, 0, 0]] * 3}, "invalid-shape", "suggested"),
    ("fraction in B", {"counts": COUNTS, "suggested": [[0.5, 0.5]] * 3}, "invalid-count", "suggested"),
    ("code too high", {"counts": COUNTS, "suggested": [1, 2, 1]}, "undeclared-label", "suggested"),
    ("negative code", {"counts": COUNTS, "suggested": [-1, 0, 1]}, "undeclared-label", "suggested"),
    ("labels unnamed", {"counts": COUNTS, "suggested": LABELS}, "unnamed-columns", "counts"),
    (
        "names too few",
        {"counts": COUNTS, "suggested": LABELS, "categories": ["a"]},
        "different-length",
        "categories",
    ),
    (
        "codes like names",
        {"counts": COUNTS, "suggested": [1, 1, 1], "categories": ["1", "2"]},
        "mixed-label-types",
        None,
    ),
    (
        "missing is a column",
        {"counts": COUNTS, "suggested": ["a", "b", "b"], "categories": ["a", "b"], "missing": ["a"]},
        "invalid-categories",
        "categories",
    ),
    (
        "missing is an unnamed column",
        {"counts": COUNTS, "suggested": [0, 1, 1], "missing": [1]},
        "missing-type",
        "missing",
    ),
    (
        "vote not declared",
        {"data": VOTES, "suggested": LABELS, "categories": ["a", "c"]},
        "undeclared-label",
        "votes",
    ),
    (
        "label not declared",
        {"data": VOTES, "suggested": ["a", "b", "z"], "categories": ["a", "b"]},
        "undeclared-label",
        "suggested",
    ),
    (
        "label not declared, counts",
        {"counts": COUNTS, "suggested": ["a", "b", "z"], "categories": ["a", "b"]},
        "undeclared-label",
        "suggested",
    ),
    ("1 and '1'", {"data": [[1, 1], ["1", 2]], "suggested": [1, 2]}, "mixed-label-types", None),
    ("1 and '1' apart", {"data": [[1, 1], [2, 2]], "suggested": ["1", "2"]}, "mixed-label-types", None),
    (
        "1 declared, '1' given",
        {"data": [["1", "1"]], "suggested": ["1"], "categories": [1, 2]},
        "mixed-label-types",
        None,
    ),
    ("True and 'True'", {"data": [[True, True]], "suggested": ["True"]}, "mixed-label-types", None),
]


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_input_that_is_refused(arguments: dict[str, Any], code: str, parameter: str | None) -> None:
    with expect_error(code, parameter) as caught:
        dh_kappa(**arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400


def test_transposed_votes_are_recognized() -> None:
    with expect_error("different-length") as caught:
        dh_kappa([["a", "b"]], ["a", "b"])
    assert "votes.T" in caught.value.hint


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


def test_a_dataframe_of_counts_names_its_columns() -> None:
    counts = pd.DataFrame({"b": [0, 2], "a": [2, 0], "c": [0, 0]})
    kappa = dh_kappa(counts=counts, suggested=["a", "b"])
    assert kappa.exact == 1
    assert kappa.categories == ("a", "b", "c")
    with expect_error("different-order", "categories"):
        dh_kappa(counts=counts, suggested=["a", "b"], categories=["a", "b", "c"])
    assert dh_kappa(counts=counts, suggested=["a", "b"], categories=["b", "a", "c"]).categories == ("b", "a", "c")
    with expect_error("undeclared-label", "suggested"):
        dh_kappa(counts=counts, suggested=["a", "B"])


def test_pandas_objects_are_arrays() -> None:
    frame = pd.DataFrame({"ann_1": ["a", "b", None], "ann_2": ["a", "a", "b"]})
    suggested = pd.Series(["a", "b", "b"], dtype="category")
    assert dh_kappa(frame, suggested).exact == dh_kappa([["a", "a"], ["b", "a"], ["b"]], ["a", "b", "b"]).exact
    nullable = pd.DataFrame({"ann_1": [1, 2, None], "ann_2": [1, 1, 2]}, dtype="Int64")
    assert dh_kappa(nullable, [1, 2, 2]).exact == dh_kappa([[1, 1], [2, 1], [2]], [1, 2, 2]).exact


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_suggested_labels_are_not_votes(make: Callable[[Any], Any]) -> None:
    table = make({"x": ["a", "b"], "y": ["a", "b"], "llm": ["a", "a"]})
    for call, suggested in ((dh_kappa, table["llm"]), (tally, {"llm": table["llm"]})):
        with expect_error("column-among-votes", "suggested"):
            call(table, suggested)
    with expect_error("column-among-votes", "sample_weight"):
        dh_kappa(make({"x": [1, 2], "w": [1, 2]}), [1, 2], sample_weight=make({"w": [1, 2]})["w"])
    assert dh_kappa(table[["x", "y"]], table["llm"]).n_votes == 4
    other = make({"x": ["b", "a"]})["x"]  # the same name with other values
    assert dh_kappa(table[["x", "y"]], other).n_votes == 4


def test_rows_are_matched_by_position() -> None:
    votes = pd.DataFrame({"x": ["a", "b"], "y": ["a", "b"]}, index=["i", "j"])
    suggested = pd.Series(["b", "a"], index=["j", "i"])
    with expect_error("different-index", "suggested"):
        dh_kappa(votes, suggested)
    with expect_error("different-index", "sample_weight"):
        dh_kappa(votes, ["a", "b"], sample_weight=pd.Series([1, 2], index=["j", "i"]))
    with expect_error("different-index", "strata"):
        dh_kappa(votes, ["a", "b"], strata=pd.Series(["s", "t"], index=["j", "i"]))
    assert dh_kappa(votes, suggested.reindex(votes.index)).exact == 1
    assert dh_kappa(votes, suggested.to_numpy()).exact == -1
    assert dh_kappa(votes.to_numpy(), suggested).exact == -1


@pytest.mark.parametrize(
    ("sample_weight", "code"),
    [
        ([-1, 1, 1, 1, 1, 1], "invalid-weight"),
        ([1, 1, float("nan"), 1, 1, 1], "invalid-weight"),
        ([1, 1, None, 1, 1, 1], "invalid-weight"),
        (np.ma.array([1.0] * 6, mask=[False, False, False, True, False, False]), "invalid-weight"),
        ([1, 1, 1, 1, 1, float("inf")], "invalid-weight"),
        ([1, 1, 1, 1, 1, 10**400], "invalid-weight"),
        ([0] * 6, "invalid-weight"),
        ([1, 2], "different-length"),
        ([], "different-length"),
        ("abcdef", "invalid-weight"),
        (list("abcdef"), "invalid-weight"),
        (list("123456"), "invalid-weight"),
        (np.array([np.str_("3")] * 6, object), "invalid-weight"),
        ({"a": 1}, "invalid-weight"),
        (5, "invalid-weight"),
        ([1j] * 6, "invalid-weight"),
        ([[1] * 6], "invalid-weight"),
        (np.ones((6, 2)), "invalid-weight"),
    ],
    ids=repr,
)
def test_weights_that_are_refused(sample_weight: Any, code: str) -> None:
    with expect_error(code, "sample_weight"):
        dh_kappa(SIX, SUGGESTED, sample_weight=sample_weight)


def test_weights_of_every_number_type() -> None:
    expected = dh_kappa(SIX, SUGGESTED, sample_weight=WEIGHTS).exact
    for sample_weight in (
        tuple(WEIGHTS),
        np.array(WEIGHTS, np.uint8),
        np.array(WEIGHTS, np.float16),
        np.array([Fraction(w, 4) for w in WEIGHTS], object),
        np.ma.array(WEIGHTS),
        pd.Series(WEIGHTS, dtype="Float64"),
    ):
        assert dh_kappa(SIX, SUGGESTED, sample_weight=sample_weight).exact == expected
    assert dh_kappa(SIX, SUGGESTED, sample_weight=[True, True, False, True, True, True]).excluded.no_weight == 1
    frame = pd.DataFrame(SIX)
    assert dh_kappa(frame, SUGGESTED, sample_weight=pd.Series(WEIGHTS)).exact == expected
    assert read_weights([], 0, "votes").tolist() == []


def test_items_with_weight_0_are_excluded() -> None:
    kappa = dh_kappa(SIX, SUGGESTED, sample_weight=[0, 2, 2, 2, 2, 2])
    left = dh_kappa(SIX[1:], SUGGESTED[1:])
    assert kappa.excluded.no_weight == 1
    assert (kappa.exact, kappa.se, kappa.n_items) == (left.exact, left.se, 5)
    assert "items-excluded" in {note.code for note in kappa.notes}
    both = dh_kappa(SIX, ["a", None, "b", "b", "a", "b"], sample_weight=[0, 0, 2, 2, 2, 2])
    assert (both.excluded.no_label, both.excluded.no_weight) == (1, 1)


@pytest.mark.parametrize(
    ("strata", "code"),
    [
        (["x", None, "x", "y", "y", "y"], "missing-stratum"),
        (STRATA[:5], "different-length"),
        ("xxxyyy", "invalid-type"),
        ([1, "1", 1, 1, 1, 1], "mixed-label-types"),
        ([1.5] * 6, "not-a-label"),
    ],
    ids=repr,
)
def test_strata_that_are_refused(strata: Any, code: str) -> None:
    with expect_error(code, None if code == "mixed-label-types" else "strata"):
        dh_kappa(SIX, SUGGESTED, strata=strata)


def test_names_of_strata_are_labels() -> None:
    members = [Colour.RED if name == "x" else Colour.GREEN for name in STRATA]
    expected = dh_kappa(SIX, SUGGESTED, strata=STRATA, pool={"x": 9, "y": 20})
    for strata, pool in (
        ([1 if name == "x" else 2 for name in STRATA], {np.int64(1): 9, 2.0: np.int32(20)}),
        ([name == "y" for name in STRATA], {False: 9, True: 20.0}),
        (members, {"RED": 9, "GREEN": 20}),
        (members, {Colour.RED: 9, Colour.GREEN: 20}),
    ):
        kappa = dh_kappa(SIX, SUGGESTED, strata=strata, pool=pool)  # type: ignore[arg-type]
        assert kappa.exact == expected.exact
        assert kappa.se == pytest.approx(expected.se, rel=1e-14)  # the order of strata may differ
    by_series = dh_kappa(SIX, SUGGESTED, strata=STRATA, pool=pd.Series({"x": 9, "y": 20}))
    assert by_series.se == expected.se


@pytest.mark.parametrize("suggested", [{}, {1: SUGGESTED}, {"": SUGGESTED}, {"": SUGGESTED, "x": SUGGESTED}], ids=repr)
def test_names_of_labelers_that_are_refused(suggested: Any) -> None:
    with expect_error("invalid-labeler-name", "suggested"):
        tally(SIX, suggested)


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([1.5] * 6, "not-a-label"),
        (np.array([1.5] * 6), "not-a-label"),
        ("a", "invalid-type"),
        ([1], "different-length"),
    ],
    ids=repr,
)
def test_labels_of_one_of_several_labelers(labels: Any, code: str) -> None:
    with expect_error(code, "suggested") as caught:
        tally(SIX, {"rule": SUGGESTED, "llm": labels})
    assert "suggested['llm']" in caught.value.message
