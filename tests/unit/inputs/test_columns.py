"""Column roles: named, guessed from column names, and refused."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest

import dhkappa
from dhkappa import DataError
from dhkappa.inputs.columns import ColumnRoles, Columns, RoleKeywords, check_keywords, find_roles, likely_annotators
from expect import expect_error

WIDE = ["id", "ann_1", "ann_2", "llm"]
LONG = ["item", "label", "annotator", "llm"]


def roles(columns: list[str], suggested: Any = None, counts: Any = None, **keywords: Any) -> ColumnRoles:
    given: RoleKeywords = keywords  # type: ignore[assignment]
    items = keywords.pop("item_columns", None)
    tables = [("the data", columns), *([] if items is None else [("the items table", items)])]
    return find_roles(tables, given, Columns(suggested=suggested, counts=counts, sample_weight=None, strata=None))


def test_wide_format_by_names() -> None:
    found = roles(WIDE, "llm")
    assert (found.annotators, found.label, found.suggested) == (("ann_1", "ann_2"), None, {"llm": "llm"})


def test_long_format_by_names() -> None:
    found = roles(LONG, "llm")
    assert (found.item, found.label, found.annotator) == ("item", "label", "annotator")
    assert roles(LONG, "llm", annotator=None).annotator is None


def test_item_columns_by_role() -> None:
    found = roles(WIDE, {"a": "llm", "b": "id"})
    assert found.item_columns() == {"suggested_0": "llm", "suggested_1": "id"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("v*", ("v1", "v2")),
        (["v2", "v1"], ("v2", "v1")),
        (["v2", "v?"], ("v1", "v2")),
        ("v1", ("v1",)),
        (("x", "v*"), ("v1", "v2", "x")),
    ],
)
def test_annotators_by_pattern_and_name(given: Any, expected: tuple[str, ...]) -> None:
    assert roles(["v1", "v2", "x", "llm"], "llm", annotators=given).annotators == expected


@pytest.mark.parametrize(
    ("columns", "keywords", "code", "parameter"),
    [
        (WIDE, {"suggested": "lmm"}, "column-not-found", "suggested"),
        (WIDE, {"suggested": ["llm", "rule"]}, "column-not-found", "suggested"),
        (WIDE, {"suggested": ["llm", "llm"]}, "duplicate-labeler", "suggested"),
        (WIDE, {"suggested": 7}, "not-a-column-name", "suggested"),
        (WIDE, {"suggested": []}, "not-a-column-name", "suggested"),
        (WIDE, {"annotators": []}, "column-not-found", "annotators"),
        (WIDE, {"annotators": ["ann_1", "ann_3"]}, "column-not-found", "annotators"),
        (WIDE, {"annotators": "rater_*"}, "column-not-found", "annotators"),
        (WIDE, {"annotators": ["ann_1", "ann_1"]}, "role-conflict", "annotators"),
        (WIDE, {"annotators": ["ann_1", "llm"], "suggested": "llm"}, "role-conflict", "annotators"),
        (WIDE, {"annotators": [1]}, "not-a-column-name", "annotators"),
        (WIDE, {"annotator": "id"}, "role-conflict", "annotator"),
        (WIDE, {"annotators": "ann_*", "counts": ["id"]}, "role-conflict", "annotators"),
        (WIDE, {"label": "llm"}, "role-conflict", "item"),
        (LONG, {"unlisted": "unlabeled"}, "role-conflict", "unlisted"),
        (LONG, {"annotator": None, "duplicates": "first"}, "role-conflict", "duplicates"),
        ([*LONG, "count"], {}, "role-conflict", "annotator"),
        (["item", "ann_1", "ann_2"], {"suggested": "item"}, "role-conflict", "suggested"),
        (LONG, {"suggested": "item"}, "role-conflict", "suggested"),
        (LONG, {"suggested": "label"}, "role-conflict", "suggested"),
        (LONG, {"suggested": "item", "item_columns": ["item", "llm"]}, "role-conflict", "suggested"),
        (LONG, {"item": "item", "label": "item"}, "role-conflict", "label"),
        (["ann_1", "suggested_llm"], {"suggested": ["llm", "suggested_llm"]}, "duplicate-labeler", "suggested"),
        (LONG, {"label": "lable", "item": "item"}, "column-not-found", "label"),
        (LONG, {"item_columns": ["id", "llm"]}, "column-not-found", "item"),
        ([*LONG, "Label"], {}, "ambiguous-columns", "label"),
        (["item", "text"], {}, "format-unknown", "label"),
        (["id", "text"], {}, "format-unknown", "annotators"),
        (["ann_1", "item", "label"], {}, "format-unknown", "annotators"),
    ],
)
def test_refused(columns: list[str], keywords: dict[str, Any], code: str, parameter: str) -> None:
    with expect_error(code, parameter):
        roles(columns, **keywords)


@pytest.mark.parametrize(
    ("suggested", "labelers"),
    [
        ("suggested_llm", ["llm"]),
        (["suggested_llm", "rule"], ["llm", "rule"]),
        (["suggested_llm", "llm"], ["suggested_llm", "llm"]),
        ({"suggested_llm": "suggested_llm"}, ["llm"]),
        ({"mine": "llm"}, ["mine"]),
        ("llm", ["llm"]),
    ],
)
def test_labelers_are_named_without_the_prefix(suggested: Any, labelers: list[str]) -> None:
    columns = [
        "ann_1",
        "ann_2",
        "suggested_llm",
        "rule",
        *(["llm"] if isinstance(suggested, list) and "llm" in suggested else []),
    ]
    assert list(roles(columns, suggested=suggested).suggested) == labelers


def test_a_suggested_label_may_be_the_stratum() -> None:
    given = Columns(suggested="llm", counts=None, sample_weight=None, strata="llm")
    found = find_roles([("the data", LONG)], {}, given)
    assert (found.suggested, found.strata) == ({"llm": "llm"}, "llm")


def test_a_missing_column_proposes_a_similar_one_that_exists() -> None:
    with expect_error("column-not-found", "label") as caught:
        roles(["id", "label", "ann_1"], item="id", label="lable")
    assert "id, label, ann_1" in caught.value.message
    assert "'label'" in caught.value.hint


@pytest.mark.parametrize(
    ("columns", "likely"),
    [
        (["Ticket ID", "Message text", "Predicted"], []),
        (["Ticket ID", "rater1", "rater2"], ["rater1", "rater2"]),
        (["text", "coder A", "coder B", "coder A comment"], ["coder A", "coder B"]),
        (["Ann's annotation", "Bob's annotation", "id"], ["Ann's annotation", "Bob's annotation"]),
        (["annotation time", "annotator id"], []),
    ],
)
def test_only_likely_annotators_are_proposed(columns: list[str], likely: list[str]) -> None:
    assert likely_annotators(columns) == likely
    with pytest.raises(DataError) as caught:
        roles(columns, "llm")
    assert caught.value.options == ({"annotators": ",".join(likely)} if likely else {})
    assert caught.value.choices == {"annotators": "COLUMN,COLUMN"}
    assert "llm" not in caught.value.hint


def test_columns_that_are_not_found() -> None:
    columns = ["item", "ann_1", "ann,2", "suggested_llm"]
    cases: list[tuple[dict[str, Any], dict[str, str], dict[str, str]]] = [
        ({"annotators": ["ann_1", "an,2"]}, {"annotators": 'ann_1,"ann,2"'}, {"annotators": "ann_1,COLUMN"}),
        ({"annotators": ["ann_1", "xyz"]}, {}, {"annotators": "ann_1,COLUMN"}),
        ({"item": "an,2"}, {"item": "ann,2"}, {"item": "COLUMN"}),
        ({"suggested": ["llmm"]}, {"suggested": "llm"}, {"suggested": "COLUMN"}),
    ]
    for given, options, choices in cases:
        with expect_error("column-not-found") as caught:
            roles(columns, given.pop("suggested", None), **given)
        assert (caught.value.options, caught.value.choices) == (options, choices)


def test_unknown_keywords_are_type_errors() -> None:
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'level'$"):
        check_keywords({"level": 0.9})
    with pytest.raises(
        TypeError, match=r"got an unexpected keyword argument 'anotators'\. Did you mean 'annotators'\?"
    ):
        check_keywords({"anotators": "ann_*"})


@pytest.mark.parametrize("name", ["duplicates", "unlisted"])
@pytest.mark.parametrize("value", ["any", None, ["error"]])
def test_choices(name: str, value: Any) -> None:
    with expect_error("invalid-option", name):
        check_keywords({name: value})


# A list passed as suggested beside a dataframe.

GRID = {"a": ["x", "y", "a"], "b": ["x", "x", "a"], "c": ["x", "y", "b"]}
KINDS = pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


@KINDS
def test_a_list_as_long_as_the_table_is_labels(kind: Any) -> None:
    assert dhkappa.tally(kind(GRID), ["x", "y", "y"]) == dhkappa.tally([*zip(*GRID.values(), strict=True)], [*"xyy"])
    assert dhkappa.tally(kind(GRID), ["a", "a", "b"]) == dhkappa.tally([*zip(*GRID.values(), strict=True)], [*"aab"])


@KINDS
def test_a_list_that_may_be_labels_or_columns_is_refused(kind: Any) -> None:
    with expect_error("ambiguous-suggested", "suggested"):
        dhkappa.tally(kind(GRID), ["a", "b", "c"])
    table = kind({"ann_1": [*"xyx"], "ann_2": [*"xyy"], "l": [*"xxx"], "m": [*"xyy"], "n": [*"yyy"]})
    assert dhkappa.tally(table, ["l", "m", "n"]).labelers == ("l", "m", "n")


@KINDS
def test_a_name_that_is_no_column_is_not_a_label(kind: Any) -> None:
    table = kind({"ann_1": [*"xyx"], "ann_2": [*"xyy"], "llm": [*"xxx"]})
    with expect_error("column-not-found", "suggested"):
        dhkappa.tally(table, ["llm", "rulee"])
    with expect_error("column-not-found", "suggested"):
        dhkappa.tally(table, ["lmm"])


@KINDS
def test_labels_next_to_a_table_in_long_format_are_refused(kind: Any) -> None:
    votes = kind({"item": [1, 1, 2], "annotator": [*"pqp"], "label": [*"xyy"]})
    items = kind({"item": [1, 2], "suggested_llm": [*"xy"]})
    for labels in (items, items["suggested_llm"], {"llm": items["suggested_llm"]}):
        with expect_error("column-among-votes", "suggested") as caught:
            dhkappa.audit(votes, labels)
        assert "$items" in caught.value.hint
    assert dhkappa.dh_kappa(votes, items=items).n_items == 1


# Columns without a name.


@pytest.mark.parametrize("name", ["", None, float("nan"), 7])
def test_unnamed_columns_of_pandas_are_ignored(name: Any) -> None:
    table = pd.DataFrame({"ann_1": [*"xyx"], "ann_2": [*"xyy"], "llm": [*"xxx"], "rest": [1, 2, 3]})
    table.columns = pd.Index([*table.columns[:3], name], dtype=object)
    twice = pd.concat([table, table[[name]]], axis=1) if name != 7 else table
    expected = dhkappa.tally([[*"xx"], [*"yy"], [*"xy"]], {"llm": [*"xxx"]})
    for one in (table, twice):
        assert dhkappa.tally(one, "llm") == dhkappa.tally(one, "llm", annotators=["ann_1", "ann_2"]) == expected


def test_unnamed_columns_of_files_are_ignored(tmp_path: Any) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,llm,ann_1,ann_2,\n1,x,x,x,\n2,x,y,y,\n")
    assert dhkappa.tally(path, "llm") == dhkappa.tally([[*"xx"], [*"yy"]], {"llm": [*"xx"]})


def test_a_column_with_the_short_name_keeps_both_names_apart() -> None:
    columns = ["ann_1", "ann_2", "suggested_llm", "llm"]
    for given, expected in [
        ("llm", {"llm": "llm"}),
        ("suggested_llm", {"suggested_llm": "suggested_llm"}),
        (["llm", "suggested_llm"], {"llm": "llm", "suggested_llm": "suggested_llm"}),
        ({"mine": "llm"}, {"mine": "llm"}),
    ]:
        assert roles(columns, suggested=given).suggested == expected
    assert roles(columns[:3], suggested={"mine": "llm"}).suggested == {"mine": "suggested_llm"}
