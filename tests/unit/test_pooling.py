"""The labels of a pool in every form that they may have: all give the same numbers."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dhkappa
from expect import expect_error

SIM = dhkappa.simulate(80, labelers={"llm": 0.9, "rule": 0.7}, categories=["bug", "question"], rng=1)
LABELS = ["bug"] * 3000 + ["question"] * 2900
SIZES = {"bug": 3000, "question": 2900}
FRAME = pd.DataFrame({"suggested_llm": LABELS, "text": "x"})


def shares(pool: Any, **options: Any) -> dict[str, Any]:
    return dhkappa.pool_shares(SIM.votes, SIM.suggested["llm"], pool=pool, **options).to_dict()


FORMS: dict[str, Any] = {
    "text": "bug=3000, question=2_900",
    "text in quotes": '"bug"=3000,"question"=2900',
    "list": LABELS,
    "array": np.array(LABELS),
    "array of objects": np.array(LABELS, object),
    "series": pd.Series(LABELS),
    "categorical series": pd.Series(LABELS, dtype="category"),
    "value counts": pd.Series(LABELS).value_counts(),
    "sizes of groups": FRAME.groupby("suggested_llm").size(),
    "floats": {"bug": 3000.0, "question": np.float64(2900)},
    "polars series": pl.Series(LABELS),
    "arrow column": pa.chunked_array([LABELS]),
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "lazy polars": pl.from_pandas(FRAME).lazy(),
    "arrow": pa.Table.from_pandas(FRAME),
    "one column": FRAME[["suggested_llm"]].rename(columns={"suggested_llm": "x"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_equal(form: str) -> None:
    assert shares(FORMS[form]) == shares(SIZES)


def test_a_relation_is_equal() -> None:
    assert shares(duckdb.sql("FROM FRAME")) == shares(SIZES)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "xlsx"])
def test_files_are_equal(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"labels=all.{ending}"
    if ending == "csv":
        FRAME.to_csv(path, index=False)
    elif ending == "parquet":
        FRAME.to_parquet(path)
    elif ending == "jsonl":
        FRAME.to_json(path, orient="records", lines=True)
    else:
        dhkappa.Table({name: FRAME[name].tolist() for name in FRAME}).to_excel(path)
    assert shares(path) == shares(str(path)) == shares(SIZES)


def test_sample_as_a_table_in_any_form(tmp_path: Path) -> None:
    columns = {f"ann_{place}": SIM.votes[:, place] for place in range(3)}
    frame = pd.DataFrame({"item": range(80), "suggested_llm": SIM.suggested["llm"], **columns})
    long = frame.melt(["item", "suggested_llm"], var_name="annotator", value_name="label")
    frame.to_csv(tmp_path / "votes.csv", index=False)
    counted = dhkappa.tally(SIM.votes, SIM.suggested["llm"])
    pool = FRAME.assign(item=range(len(FRAME)))
    expected = shares(SIZES)
    for data in (frame, pl.from_pandas(frame), long, tmp_path / "votes.csv", counted, dhkappa.Dataset(frame)):
        assert dhkappa.pool_shares(data, pool=pool).to_dict() == expected
    assert dhkappa.pool_shares(duckdb.sql("FROM frame"), pool=SIZES, strata="suggested_llm").sampled_by_label


def test_column_is_that_of_the_labeler() -> None:
    columns = {f"ann_{place}": SIM.votes[:, place] for place in range(3)}
    own = {f"suggested_{name}": labels for name, labels in SIM.suggested.items()}
    frame, pool = pd.DataFrame({**columns, **own}), FRAME.assign(suggested_rule="bug")
    data = dhkappa.Dataset(frame)
    found = dhkappa.pool_shares(data, "llm", pool=pool)
    assert found.table.column("pool") == [3000, 2900]
    renamed = pool.rename(columns={"suggested_llm": "llm"})
    assert dhkappa.pool_shares(data, "llm", pool=renamed).to_dict() == found.to_dict()
    named = dhkappa.pool_shares(data, "rule", pool=renamed, pool_column="llm")
    assert named.table.column("pool") == [3000, 2900]
    with expect_error("pool-label-missing", "pool"):
        dhkappa.pool_shares(data, "rule", pool=pool)
    with expect_error("several-labelers"):
        dhkappa.pool_shares(data, pool=pool)


def test_text_has_labels_of_the_type_of_the_sample() -> None:
    votes, labels = [[1, 1], [2, 2], [2, 1]] * 4, [1, 2, 2] * 4
    expected = dhkappa.pool_shares(votes, labels, pool={1: 50, 2: 70}).to_dict()
    assert dhkappa.pool_shares(votes, labels, pool="1=50,2=70").to_dict() == expected
    truth = [[vote == 1 for vote in row] for row in votes]
    found = dhkappa.pool_shares(truth, [label == 1 for label in labels], pool="True=50,False=70")
    assert found.table.column("category") == [False, True]


def test_label_rules_and_missing_labels_of_the_sample() -> None:
    votes, labels = [["Bug", "bug"], ["question", "1"], ["bug ", "bug"]] * 4, ["bug", "1", "BUG"] * 4
    rules: Any = {"normalize": ["case", "spaces"], "map": {"1": "question"}, "missing": ["n/a"]}
    data = dhkappa.Dataset(votes, labels, **rules)
    clean = dhkappa.Dataset([["bug", "bug"], ["question"] * 2, ["bug", "bug"]] * 4, ["bug", "question", "bug"] * 4)
    expected = dhkappa.pool_shares(clean, pool={"bug": 60, "question": 40}).table.to_dicts()
    raw = {"Bug": 10, "bug": 20, "BUG  ": 30, "1": 15, "Question": 25, "N/A": 7, None: 2, " ": 1}
    pool = [label for label, n in raw.items() for _ in range(n)]
    for given in (raw, pool, pd.DataFrame({"x": pool})):
        found = dhkappa.pool_shares(data, pool=given)
        assert [row["category"] for row in expected] == found.table.column("category")
        assert found.table.to_dicts() == expected
        text = next(note.text for note in found.notes if note.code == "pool-unlabeled")
        assert text == "10 items of the pool without a suggested label are not counted."


def test_filters_of_the_sample_apply_to_a_table() -> None:
    votes = pd.DataFrame({f"ann_{place}": SIM.votes[:, place] for place in range(3)})
    frame = votes.assign(item=range(80), suggested_llm=SIM.suggested["llm"], language=["en", "de"] * 40)
    pool = FRAME.assign(language=["en", "de"] * 2950)
    data = dhkappa.Dataset(frame).filter("language=en")
    found = dhkappa.pool_shares(data, pool=pool)
    assert (found.pool_items, found.n_items) == (2950, 40)
    assert "pool-filtered" in {note.code for note in found.notes}
    half = dhkappa.pool_shares(data, pool={"bug": 1500, "question": 1450})
    assert half.table.to_dicts() == found.table.to_dicts()
    assert "pool-not-filtered" in {note.code for note in half.notes}
    with expect_error("column-not-found", "where"):
        dhkappa.pool_shares(data, pool=FRAME)


def test_filters_on_votes_leave_the_pool_as_it_is() -> None:
    votes = pd.DataFrame({f"ann_{place}": SIM.votes[:, place] for place in range(3)})
    frame = votes.assign(item=range(80), suggested_llm=SIM.suggested["llm"], language=["en", "de"] * 40)
    long = frame.melt(["item", "suggested_llm", "language"], var_name="annotator", value_name="label")
    items = frame[["item", "suggested_llm", "language"]]
    joined = dhkappa.Dataset(long[["item", "annotator", "label"]].assign(day=1), items=items)
    pool = FRAME.assign(language=["en", "de"] * 2950)
    late = dhkappa.pool_shares(joined.filter("day=1"), pool=pool)
    assert late.pool_items == 5900
    assert [note.code for note in late.notes if note.code.startswith("pool")] == ["pool-not-filtered"]
    assert dhkappa.pool_shares(joined.filter("items.language=en"), pool=pool).pool_items == 2950
    with expect_error("column-not-found", "where"):
        dhkappa.pool_shares(joined.filter("language=en"), pool=FRAME)


COUNTED = FRAME.groupby("suggested_llm").size().rename("count").reset_index()
REFUSED: list[tuple[str, Any]] = [
    ("invalid-pool", 5),
    ("invalid-pool", {"bug", "question"}),
    ("invalid-pool", "bug=1,bug=2"),
    ("file-not-found", "labels.parquet"),
    ("invalid-pool-size", {"bug": 3.5, "question": 1}),
    ("invalid-pool-size", {"bug": -1, "question": 1}),
    ("invalid-pool-size", {"bug": "many", "question": 1}),
    ("invalid-pool-size", {"bug": True, "question": 1}),
    ("not-a-label", {1.5: 3}),
    ("not-a-label", [1.5]),
    ("invalid-shape", np.zeros((3, 2), int)),
    ("duplicate-items", FRAME.assign(item=1)),
    ("pool-column-unknown", FRAME.rename(columns={"suggested_llm": "x"})),
    ("pool-is-counted", COUNTED),
    ("ambiguous-pool", pd.Series([5, 6], index=[1, 2])),
]


@pytest.mark.parametrize(("code", "pool"), REFUSED)
def test_other_pools_are_refused(code: str, pool: Any) -> None:
    columns = {f"ann_{place}": SIM.votes[:, place] for place in range(3)}
    frame = pd.DataFrame({"item": range(80), "suggested": SIM.suggested["llm"], **columns})
    with expect_error(code, "pool"):
        dhkappa.pool_shares(frame, item="item", pool=pool)


def test_a_column_needs_a_table_that_has_it() -> None:
    with expect_error("not-a-table", "pool_column"):
        shares(SIZES, pool_column="llm")
    with expect_error("column-not-found", "pool_column"):
        shares(FRAME, pool_column="suggested_llmm")


def test_a_column_of_integers_holds_labels_and_value_counts_hold_numbers() -> None:
    votes, labels = [[0, 0], [1, 1], [1, 0]] * 4, [0, 1, 1] * 4
    column = pd.Series([0, 1, 1] * 10)
    expected = dhkappa.pool_shares(votes, labels, pool={0: 10, 1: 20}).to_dict()
    for pool in (column, column.value_counts()):
        assert dhkappa.pool_shares(votes, labels, pool=pool).to_dict() == expected
