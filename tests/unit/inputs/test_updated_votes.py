"""Tables of votes with more votes: exports, rows without names, and names of columns."""

from pathlib import Path
from typing import Any

import pandas
import polars  # noqa: F401
import pytest

import dhkappa
from dhkappa import Dataset, Table, merge_reviews
from dhkappa.inputs.updated_votes import annotator_name, is_listed
from expect import expect_error

EXPORTS = Path(__file__).parents[2] / "exports"
COLUMNS = {"suggested": ["x", "y", "x"], "ann_a": ["x", "y", "y"], "ann_b": ["x", "x", "y"]}


def test_an_export_becomes_a_table_with_one_row_per_vote(tmp_path: Path) -> None:
    data = dhkappa.read(EXPORTS / "doccano" / "reviews.zip")
    if not data.labeled:
        data = dhkappa.read(EXPORTS / "label_studio" / "mail_whole.json")
    labeler, read = data.labelers[0], data.item_votes()
    assert read is not None
    name, label = read.item_names()[0], data.categories[0]
    merged = merge_reviews(data, Table({"item": [name], "new_label": [label]}), labeler, reviewer="eva")
    assert merged.votes is not None
    assert merged.votes.to_dicts()[-1]["annotator"] == "eva"
    merged.votes.to_csv(tmp_path / "votes.csv")
    again = dhkappa.read(tmp_path / "votes.csv")
    assert dhkappa.dh_kappa(again, labeler).exact == merged.after.kappas[labeler].exact
    assert Dataset(again).counts.patterns.n_votes() == data.counts.patterns.n_votes() + 1


def test_items_without_names_go_by_position_or_index(tmp_path: Path) -> None:
    Table(COLUMNS).to_csv(tmp_path / "votes.csv")
    for data, item in (
        (dhkappa.read(tmp_path / "votes.csv"), "votes.csv:4"),
        (Dataset(Table(COLUMNS).to_pandas()), 2),
        (Dataset(Table(COLUMNS).to_polars()), 2),
    ):
        merged = merge_reviews(data, Table({"item": [item], "new_label": ["x"]}))
        assert merged.votes is not None
        assert merged.votes.names == (*COLUMNS, "ann_review")
        assert merged.votes.column("ann_review") == [None, None, "x"]
    named = pandas.DataFrame(COLUMNS, index=["p", "q", "r"])
    merged = merge_reviews(named, Table({"item": ["q"], "new_label": ["x"]}))
    assert merged.votes is not None
    assert merged.votes.names == ("item", *COLUMNS, "ann_review")
    assert merged.votes.column("ann_review") == [None, "x", None]


def test_tables_without_order_need_names() -> None:
    duckdb = pytest.importorskip("duckdb")
    table: Any = duckdb.from_arrow(Table(COLUMNS).to_arrow())
    with expect_error("items-unknown"):
        merge_reviews(table, Table({"item": [2], "new_label": ["x"]}))


@pytest.mark.parametrize(
    ("given", "name", "expected", "listed"),
    [
        (None, "eva", "ann_eva", False),
        (None, "ann_eva", "ann_eva", False),
        (None, "A", "ann_a", False),
        ("ann_*", "eva", "ann_eva", False),
        (["ann_*"], "eva", "ann_eva", False),
        (["ann_a", "ann_b"], "eva", "eva", True),
        (["ann_a", "ann_b"], "ANN_A", "ann_a", False),
        ("ann_?", "eva", "eva", True),
    ],
)
def test_names_of_new_columns(given: Any, name: str, expected: str, listed: bool) -> None:
    data = Dataset(Table(COLUMNS).to_pandas(), annotators=given)
    found = annotator_name(data.table, data.given_annotators, ("ann_a", "ann_b"), name)
    assert found == expected
    assert is_listed(data.table, data.given_annotators, found) == listed
