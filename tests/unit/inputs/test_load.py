"""InputData: tables, paths and arrays resolved once, and counted once."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dhkappa import Dataset, audit, tally
from dhkappa.errors import OutOfMemoryError
from dhkappa.inputs import aggregate
from dhkappa.inputs.load import InputData, check_options_absent, input_data
from expect import expect_error

VOTES = [["x", "x"], ["y", "x"], ["y", "y"]]
LABELS = ["x", "y", "y"]
WIDE = {"item": ["i", "j", "k"], "suggested": LABELS, "ann_1": list("xyy"), "ann_2": list("xxy")}


def test_arrays_are_not_tables() -> None:
    for votes in (VOTES, tuple(map(tuple, VOTES)), np.array(VOTES), pd.DataFrame(VOTES)):
        data = InputData(votes, LABELS)
        assert data.table is None
        assert data.source_notes == ()
        assert data.patterns.categories == ("x", "y")
        assert data.item_votes is data._arrays


def test_tables_are_resolved_once() -> None:
    data = InputData(pd.DataFrame(WIDE))
    assert data.table is data.table
    assert data.table is not None
    assert data.table.roles.item == "item"
    assert data.patterns is data.patterns
    assert data.item_votes is data.item_votes
    assert data.item_votes is not None
    assert list(data.item_votes.item_names()) == ["i", "j", "k"]
    assert data.item_votes.annotators == ("ann_1", "ann_2")


def test_suggested_labels_may_be_ignored() -> None:
    for data in (InputData(VOTES, LABELS, labelers="none"), InputData(pd.DataFrame(WIDE), labelers="none")):
        assert set(data.patterns.labeled_patterns().patterns.suggested.tolist()) == {-1}
        assert data.patterns.n_items == 3


@pytest.mark.parametrize("suggested", [LABELS, {"a": LABELS, "b": ["x", "x", None]}], ids=["one", "two"])
def test_the_item_table_has_every_item(suggested: Any) -> None:
    table = InputData(VOTES, suggested).item_table()
    assert int(table.items.sum()) == 3
    assert list(table.labels) == (["a", "b"] if isinstance(suggested, dict) else ["labeler"])


def test_many_categories_are_counted_from_rows() -> None:
    n = 400
    votes = [[f"c{i}", f"c{(i * 7) % n}"] for i in range(n)]
    labels = [f"c{(i * 3) % n}" for i in range(n)]
    rows = {
        "item": [i for i in range(n) for _ in range(2)],
        "annotator": ["p", "q"] * n,
        "label": [vote for row in votes for vote in row],
        "suggested": [label for label in labels for _ in range(2)],
    }
    assert tally(pl.LazyFrame(rows)) == tally(votes, {"suggested": labels})


def test_rows_that_do_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any) -> Any:
        raise OutOfMemoryError("Too large.", code="out-of-memory")

    expected = audit(pl.LazyFrame(WIDE), progress=False)
    monkeypatch.setattr(aggregate, "fetch_rows", too_large)
    found = audit(pl.LazyFrame(WIDE), progress=False)
    assert found.kappas["suggested"].exact == expected.kappas["suggested"].exact
    assert found.review().to_dicts() == expected.review().to_dicts()
    with expect_error("annotators-unknown"):
        found.annotators()
    assert "annotators-not-fetched" in {note.code for note in found.notes}


def test_missing_labels_of_another_type() -> None:
    for data in (InputData(VOTES, LABELS, missing=["1"]), InputData([[1, 2]], [1], missing=["3"])):
        assert data.patterns.n_items
    for suggested in ([1], {"a": [1], "b": [2]}):
        with expect_error("missing-type", "missing"):
            InputData([[1, 2]], suggested, missing=["1"]).item_table()


def test_options_of_a_dataset() -> None:
    dataset = Dataset(VOTES, LABELS)
    assert input_data(dataset) is dataset.input_data
    assert input_data(dataset, missing=()) is dataset.input_data
    with expect_error("option-with-dataset", "categories"):
        input_data(dataset, categories=["x", "y"])
    check_options_absent({"counts": None, "missing": ()}, "Tally")
    with expect_error("option-with-dataset", "strata"):
        check_options_absent({"counts": None, "strata": ["s"]}, "Tally")
