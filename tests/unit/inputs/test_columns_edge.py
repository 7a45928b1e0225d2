"""Unusual tables and column roles."""

from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import oracle
from dhkappa import audit, dh_kappa, tally
from expect import expect_error

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]
KAPPA = oracle.dh(VOTES, LABELS, [*"abc"]).kappa


def wide(**more: list[Any]) -> pd.DataFrame:
    columns = {f"ann_{place}": list(column) for place, column in enumerate(zip(*VOTES, strict=True))}
    return pd.DataFrame({"suggested": LABELS, **columns, **more})


def long(**more: list[Any]) -> pd.DataFrame:
    rows = [(item, label, vote) for item, (label, row) in enumerate(zip(LABELS, VOTES, strict=True)) for vote in row]
    item, suggested, label = map(list, zip(*rows, strict=True))
    return pd.DataFrame({"item": item, "suggested": suggested, "label": label, **more})


REJECTED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "two formats": (wide(), {"annotators": ["ann_0", "ann_1"], "counts": ["ann_2"]}, "role-conflict"),
    "no item": (wide(), {"label": "ann_0"}, "role-conflict"),
    "labeler twice": (wide(), {"suggested": ["suggested", "suggested"]}, "duplicate-labeler"),
    "no annotators": (wide(), {"annotators": []}, "column-not-found"),
    "two roles": (wide(), {"suggested": "suggested", "annotators": ["ann_0", "suggested"]}, "role-conflict"),
    "annotator twice": (wide(), {"annotators": ["ann_0", "ann_1", "ann_0"]}, "role-conflict"),
    "number as annotators": (wide(), {"annotators": 5}, "not-a-column-name"),
    "number as item": (long(), {"item": 5, "label": "label"}, "not-a-column-name"),
    "number as labeler": (wide(), {"suggested": 5, "annotators": "ann_*"}, "not-a-column-name"),
    "category without a column": (
        pd.DataFrame({"suggested": ["x", "y"], "x": [1, 2], "y": [2, 1]}),
        {"suggested": "suggested", "counts": ["x", "y"], "categories": ["x", "z"]},
        "categories-lack-columns",
    ),
    "text as weight": (
        wide(w=["1", "2", "many", "1", "1"]),
        {"suggested": "suggested", "sample_weight": "w"},
        "invalid-weight",
    ),
    "list as weight": (
        duckdb.sql("SELECT 'a' AS suggested, 'a' AS ann_1, 'b' AS ann_2, [1] AS w"),
        {"suggested": "suggested", "sample_weight": "w"},
        "invalid-weight",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_rejected(case: str) -> None:
    data, keywords, code = REJECTED[case]
    with expect_error(code):
        audit(data, **keywords, progress=False)


def test_mapping_of_labelers_to_columns() -> None:
    found = audit(wide(guess=list("abccb")), {"rule": "guess", "llm": "suggested"}, progress=False)
    assert found.labelers == ("rule", "llm")
    assert found.kappas["rule"].exact == found.kappas["llm"].exact == KAPPA
    grid = wide()[["ann_0", "ann_1", "ann_2"]]
    assert audit(grid, {"llm": LABELS}, progress=False).kappas["llm"].exact == KAPPA


@pytest.mark.parametrize("table", [wide, long])
@pytest.mark.parametrize("kind", ["categories", "months"])
def test_items_that_are_not_text(kind: str, table: Any) -> None:
    frame = table()
    names = pd.Categorical([*"edcba"]) if kind == "categories" else pd.period_range("2020-01", periods=5, freq="M")
    frame["item"] = names if table is wide else names.repeat(3)
    found = audit(frame, "suggested", progress=False)
    assert found.kappas["suggested"].exact == KAPPA
    rejected = next(iter(found.review()))
    assert (str(rejected["item"]), rejected["votes"]) == (str(names[4]), "a: 3")


def test_duplicate_pandas_columns() -> None:
    frame = wide().rename(columns={"ann_1": "ann_0"})
    with expect_error("ambiguous-columns"):
        dh_kappa(frame, "suggested")
    assert dh_kappa(frame[["ann_0", "ann_2"]], LABELS).exact == KAPPA


def test_duplicate_arrow_columns() -> None:
    frame = pa.table([LABELS, LABELS, LABELS], names=["suggested", "ann_1", "ann_1"])
    with expect_error("ambiguous-columns"):
        dh_kappa(frame, "suggested")


def test_zeros_of_both_signs_are_equal() -> None:
    rows = {"item": [1, 1, 2, 2], "label": [0, 0, 0, 1], "suggested": [0.0, -0.0, 1.0, 1.0]}
    assert tally(pa.table(rows)).n_items == tally(pd.DataFrame(rows)).n_items == 2
