"""The table of annotators: its columns, names that match, and what is refused."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dhkappa
from dhkappa.inputs import annotator_table
from expect import expect_error

ROWS = [(item, f"p{who}", "ab"[(item + item // 4 * who) % 2]) for item in range(24) for who in range(4)]
VOTES = pl.DataFrame(ROWS, ["item", "annotator", "label"], orient="row")
ITEMS = pl.DataFrame({"item": range(24), "suggested": ["a", "b"] * 12, "language": ["en", "de"] * 12})
PEOPLE = pl.DataFrame({"annotator": ["p0", "p1", "p2", "p3"], "team": ["x", "y", "x", "y"], "level": [2, 1, 2, 10]})


def audit(people: Any = PEOPLE, votes: Any = VOTES, items: Any = ITEMS, **given: Any) -> Any:
    return dhkappa.audit(votes, items=items, annotators_table=people, progress=False, **given)


def groups(people: Any, column: str = "team", **given: Any) -> dict[str, int]:
    return {row["slice"]: row["annotators"] for row in audit(people, **given).annotator_slices(column).table}


def codes(people: Any, **given: Any) -> dict[str, str]:
    return {note.code: note.message for note in audit(people, **given).annotator_slices("team").notes}


def test_column_of_names() -> None:
    other = PEOPLE.rename({"annotator": "who"})
    assert groups(other) == {"x": 2, "y": 2}  # the first
    assert groups(other.select("team", "who").with_columns(annotator=pl.col("who"))) == {"x": 2, "y": 2}
    renamed = VOTES.rename({"annotator": "who"})
    decoy = other.with_columns(annotator=pl.lit("nobody")).select("annotator", "team", "who")
    assert groups(decoy, votes=renamed, annotator="who") == {"x": 2, "y": 2}


def test_order_and_several_columns_together() -> None:
    assert groups(PEOPLE, "level") == {"1": 1, "2": 2, "10": 1}
    assert groups(PEOPLE, "team+level", slices="team+level") == {"x, 2": 2, "y, 1": 1, "y, 10": 1}


def test_dates_by_month() -> None:
    dated = PEOPLE.with_columns(since=pl.Series(["2026-01-05", "2026-01-20", "2026-02-01", None]))
    expected = {"2026-01": 2, "2026-02": 1, "(missing)": 1}
    assert groups(dated, "since", slices="since:month") == expected
    assert groups(dated, "since", slices={"since": "month"}) == expected


def test_columns_that_slices_names() -> None:
    found = audit(slices=["language", "team"])
    assert (found.slice_columns, found.annotator_columns) == (("language",), ("team",))
    found = audit(slices="language")
    assert (found.slice_columns, found.annotator_columns) == (("language",), ("team", "level"))
    found = audit()
    assert (found.slice_columns, found.annotator_columns) == ((), ("team", "level"))
    assert found.annotator_slices("level").column == "level"


def test_column_of_both_tables() -> None:
    both = PEOPLE.rename({"team": "language"})
    with expect_error("ambiguous-columns", "slices"):
        audit(both, slices="language")
    found = audit(both, slices=["items.language", "annotators.language"])
    assert (found.slice_columns, found.annotator_columns) == (("language",), ("language",))
    assert [row["slice"] for row in found.annotator_slices().table] == ["x", "y"]
    assert {row["slice"] for row in found.slices().table} == {"de", "en"}
    found = audit(both, slices={"items.language": None})
    assert found.slice_columns == ("language",)
    with expect_error("column-not-found", "slices"):
        audit(slices="teem")


def test_annotators_and_names_that_do_not_match() -> None:
    assert codes(PEOPLE) == {}
    found = codes(PEOPLE[:3])
    assert list(found) == ["annotators-not-in-table"]
    assert "'p3'" in found["annotators-not-in-table"]
    more = pl.concat([PEOPLE, pl.DataFrame({"annotator": ["q", "r"], "team": ["x", "x"], "level": [1, 1]})])
    assert codes(more) == {
        "annotators-not-in-data": "2 names in the annotators table belong to no annotator of the data: 'q', 'r'."
    }
    assert groups(more) == {"x": 2, "y": 2}
    found = codes(PEOPLE.with_columns(annotator=pl.Series(["p0", "P1", "p2 ", "p3"])))
    assert set(found) == {"annotators-not-in-table", "annotators-not-in-data"}
    assert "'p1' and 'P1'" in found["annotators-not-in-table"]
    assert "'p2' and 'p2 '" in found["annotators-not-in-table"]
    found = codes(PEOPLE.with_columns(team=pl.Series(["x", "", None, "y"])))
    assert found == {"annotators-without-value": "2 annotators have no value in team of the annotators table."}
    with expect_error("ids-not-joined", "annotators_table"):
        audit(PEOPLE.with_columns(annotator=pl.col("annotator").str.to_uppercase()))


def test_normalized_names() -> None:
    spelled = PEOPLE.with_columns(annotator=pl.Series(["p0", "P1", " p2 ", "p3"]))
    assert groups(spelled, normalize=["case", "spaces"]) == {"x": 2, "y": 2}
    twice = pl.concat([PEOPLE, PEOPLE[:1].with_columns(annotator=pl.lit("P0"))])
    assert groups(twice) == {"x": 2, "y": 2}
    with expect_error("duplicate-annotators", "annotators_table"):
        audit(twice, normalize="case")


def test_numbers_are_equal_to_their_text() -> None:
    votes = VOTES.with_columns(annotator=pl.col("annotator").str.slice(1).cast(pl.Int64))
    for names in (["0", "1", "2", "3"], [0.0, 1.0, 2.0, 3.0]):
        assert groups(PEOPLE.with_columns(annotator=pl.Series(names)), votes=votes) == {"x": 2, "y": 2}


def test_refused_tables() -> None:
    for people, code in (
        (pl.concat([PEOPLE, PEOPLE[2:]]), "duplicate-annotators"),
        (PEOPLE.with_columns(annotator=pl.Series(["p0", None, "p2", ""])), "missing-annotator"),
        (PEOPLE.select("annotator"), "column-not-found"),
        ([["p0", "x"]], "not-a-table"),
    ):
        with expect_error(code, "annotators_table"):
            audit(people)
    with pytest.raises(dhkappa.DataError):
        audit("nowhere.csv")


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotator_table, "MOST_GROUPS", 2)
    found = audit()
    assert found.annotator_columns == ("team",)
    assert [note.code for note in found.annotator_slices().notes] == ["annotator-columns-left-out"]
    with expect_error("too-many-slices", "annotators_table"):
        audit(slices="level")


def test_data_and_functions_without_annotators() -> None:
    counts = pl.DataFrame({"a": [2, 0, 1], "b": [0, 2, 1], "suggested": ["a", "b", "a"]})
    with expect_error("annotators-unknown", "annotators_table"):
        dhkappa.audit(counts, counts=["a", "b"], annotators_table=PEOPLE, progress=False)
    with expect_error("option-not-supported", "annotators_table"):
        dhkappa.dh_kappa(VOTES, items=ITEMS, annotators_table=PEOPLE)
    with expect_error("option-not-supported", "annotators_table"):
        audit(items=ITEMS.drop("suggested"))
    with expect_error("option-not-supported", "annotators_table"):
        audit(multilabel=";")
    with expect_error("option-with-dataset"):
        dhkappa.audit(dhkappa.Dataset(VOTES, items=ITEMS), annotators_table=PEOPLE)


def test_excluded_annotators_and_later_changes(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    PEOPLE.write_csv(path)
    assert groups(path) == groups(str(path)) == {"x": 2, "y": 2}
    left = dhkappa.Dataset(VOTES, items=ITEMS, annotators_table=path).exclude_annotators("p3")
    found = dhkappa.audit(left, progress=False).annotator_slices("team")
    assert {row["slice"]: row["annotators"] for row in found.table} == {"x": 2, "y": 1}
    assert [note.code for note in found.notes] == ["annotators-not-in-data"]
