"""Dataset: the same results as direct calls for every kind of input, counted once."""

import copy
import csv
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dhkappa
from dhkappa import Dataset, audit, compare, dh_kappa, fleiss_kappa, read, tally
from dhkappa.core import items
from dhkappa.errors import OutOfMemoryError
from dhkappa.inputs import aggregate
from dhkappa.inputs.backends import Frame
from dhkappa.inputs.columns import check_options_absent
from dhkappa.inputs.dataset import OneCallDataset, UnlabeledDataset
from expect import expect_error

VOTES: list[list[Any]] = [
    ["a", "a", "b"],
    ["b", "b", "b"],
    ["a", None, "a"],
    ["b", "a", None],
    ["a", "a", "a"],
    ["b", "a", "b"],
]
RULE: list[Any] = ["a", "b", "b", "b", "a", None]
LLM: list[Any] = ["b", "b", "a", "a", "a", "b"]
ARRAY = np.array(VOTES, object)
LABELERS = {"rule": RULE, "llm": LLM}


def wide_columns() -> dict[str, list[Any]]:
    votes = {f"ann_{k}": [row[k] for row in VOTES] for k in range(3)}
    return {"item": list("uvwxyz"), "suggested_rule": RULE, "suggested_llm": LLM, **votes}


def long_rows() -> list[tuple[str, str, Any]]:
    return [("uvwxyz"[item], f"p{who}", vote) for item, row in enumerate(VOTES) for who, vote in enumerate(row)]


def write_csv(path: Path, header: list[str], rows: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *([value or "" for value in row] for row in rows)])
    return path


def make_arrays(_: Path) -> Dataset:
    return Dataset(ARRAY, LABELERS)


def make_lists(_: Path) -> Dataset:
    return Dataset(VOTES, LABELERS)


def make_pandas(_: Path) -> Dataset:
    return Dataset(pd.DataFrame(wide_columns()))


def make_polars(_: Path) -> Dataset:
    return Dataset(
        pl.DataFrame(wide_columns()),
        {"rule": "suggested_rule", "llm": "suggested_llm"},
        annotators="ann_*",
        item="item",
    )


def make_duckdb(_: Path) -> Dataset:
    return Dataset(duckdb.from_arrow(pl.DataFrame(wide_columns()).to_arrow()), annotators="ann_*")


def make_path(folder: Path) -> Dataset:
    columns = wide_columns()
    path = write_csv(folder / "wide.csv", list(columns), zip(*columns.values(), strict=True))
    return Dataset(str(path))


def make_read(folder: Path) -> Dataset:
    votes = write_csv(folder / "votes.csv", ["item", "annotator", "label"], long_rows())
    items = write_csv(folder / "items.csv", ["item", "rule", "llm"], zip("uvwxyz", RULE, LLM, strict=True))
    return read(votes, ["rule", "llm"], items=items)


def make_counts(_: Path) -> Dataset:
    counts = pd.DataFrame({label: [row.count(label) for row in VOTES] for label in "ab"})
    return Dataset(counts=counts, suggested=LABELERS)


KINDS = [make_arrays, make_lists, make_pandas, make_polars, make_duckdb, make_path, make_read, make_counts]
every_kind = pytest.mark.parametrize("make", KINDS, ids=[make.__name__.removeprefix("make_") for make in KINDS])


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right)  # NaN equals NaN


@every_kind
def test_results_are_those_of_direct_calls(make: Callable[[Path], Dataset], tmp_path: Path) -> None:
    dataset = make(tmp_path)
    assert dataset.labelers == ("rule", "llm")
    assert dataset.categories == ("a", "b")
    for name, labels in LABELERS.items():
        assert same(dh_kappa(dataset, name).to_dict(), dh_kappa(VOTES, labels).to_dict())
    assert same(fleiss_kappa(dataset).to_dict(), fleiss_kappa(VOTES).to_dict())
    assert same(compare(dataset, rng=1).to_dict(), compare(VOTES, LABELERS, rng=1).to_dict())
    assert compare(dataset, ["llm", "rule"]).kappas.keys() == {"rule", "llm"}
    assert dataset.tally() == tally(dataset) == tally(VOTES, LABELERS)
    assert repr(dataset) == "Dataset(6 items, 16 votes, 2 categories, labelers 'rule', 'llm')"
    assert audit(dataset, "llm", progress=False).labelers == ("llm",)


@every_kind
def test_audits_are_those_of_direct_calls(make: Callable[[Path], Dataset], tmp_path: Path) -> None:
    found, expected = (audit(data, rng=1, progress=False) for data in (make(tmp_path), Dataset(ARRAY, LABELERS)))
    for name in LABELERS:
        left, right = found.review(name).to_dicts(), expected.review(name).to_dicts()
        columns = [column for column in right[0] if column != "item"]
        assert [[row[column] for column in columns] for row in left] == [
            [row[column] for column in columns] for row in right
        ]
        if found._item_votes is not None and found._item_votes.annotators is not None:
            assert same(
                found.annotators(name).column("kappa_without"), expected.annotators(name).column("kappa_without")
            )


def test_options_are_used() -> None:
    dataset = Dataset(
        [["a", "NA"], ["b", "b"], ["a", "b"], ["b", "b"], ["a", "a"], ["a", "b"]],
        ["a", "NA", "b", "b", "a", "a"],
        categories=["b", "a", "c"],
        missing=["NA"],
        sample_weight=[1, 2, 3, 4, 5, 6],
        strata=["x", "x", "x", "y", "y", "x"],
    )
    assert dataset.categories == ("b", "a", "c")
    assert dataset.tally().strata == ("x", "y")
    assert dataset.tally().declared
    assert fleiss_kappa(dataset).n_votes == 10
    assert dh_kappa(dataset, weights="linear").metric == "weighted"


def test_iterators_are_read_once() -> None:
    votes, labels = [["low", "high"], ["low", "NA"]], ["low", "high"]
    dataset = Dataset(votes, labels, categories=iter(["low", "high"]), missing=iter(["NA"]))
    for _ in range(2):
        assert dh_kappa(dataset, weights="linear").n_items == 1
        assert dataset.tally().n_votes == 3
    found = audit(
        votes, labels, categories=iter(["low", "high"]), missing=iter(["NA"]), weights="linear", progress=False
    )
    assert found.kappas["labeler"].categories == ("low", "high")
    assert dh_kappa(votes, labels, categories=iter(["low", "high"]), missing=iter(["NA"])).excluded.one_vote == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("counts", [[1]]),
        ("categories", ["a"]),
        ("missing", ["NA"]),
        ("sample_weight", [1]),
        ("strata", ["x"]),
        ("annotators", "ann_*"),
        ("item", "id"),
    ],
)
def test_options_next_to_a_dataset_or_tally_are_refused(option: str, value: Any) -> None:
    dataset = Dataset(VOTES, LABELERS)
    for data in (dataset, dataset.tally()):
        for call in (dh_kappa, compare, audit, fleiss_kappa):
            with expect_error("option-with-dataset", option):
                call(data, **{option: value})
    for make in (Dataset, tally):
        with expect_error("option-with-dataset", option):
            make(dataset, **{option: value})


def test_labelers_are_chosen_by_name() -> None:
    for data in (Dataset(VOTES, LABELERS), tally(VOTES, LABELERS)):
        with expect_error("several-labelers", "suggested"):
            dh_kappa(data)
        with expect_error("labeler-not-found", "suggested"):
            dh_kappa(data, "gpt")
        with expect_error("invalid-labeler-name", "suggested"):
            dh_kappa(data, RULE)
        with expect_error("several-labelers", "suggested"):
            dh_kappa(data, LABELERS)
        for call in (compare, audit):
            with expect_error("labeler-not-found", "suggested"):
                call(data, ["rule", "gpt"])
            with expect_error("labeler-not-found", "suggested"):
                call(data, [])
            with expect_error("invalid-labeler-name", "suggested"):
                call(data, 5)
            with expect_error("invalid-labeler-name", "suggested"):
                call(data, LABELERS)
        with expect_error("labeler-twice", "suggested"):
            compare(data, ["rule", "rule"])


# Counted once


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns of each query that an engine runs."""
    run: list[str] = []
    fetch = Frame.fetch

    def recorded(self: Frame, query: Any) -> Any:
        run.append(",".join(query.collect_schema().names()))
        return fetch(self, query)

    monkeypatch.setattr(Frame, "fetch", recorded)
    return run


def test_a_file_is_counted_by_one_query(tmp_path: Path, queries: list[str]) -> None:
    dataset = make_path(tmp_path)
    assert queries == []
    compare(dataset)
    assert len([query for query in queries if query.endswith("items")]) == 1
    queries.clear()
    dh_kappa(dataset, "rule")
    fleiss_kappa(dataset)
    repr(dataset)
    dataset.tally()
    assert queries == []
    audit(dataset, progress=False)
    fetched = len(queries)
    audit(dataset, progress=False).review("llm")
    assert len(queries) == fetched <= 2


def test_a_long_table_is_checked_and_counted_once(tmp_path: Path, queries: list[str]) -> None:
    dataset = make_read(tmp_path)
    audit(dataset, progress=False)
    assert len(queries) == len(set(queries)) <= 7
    queries.clear()
    for call in (compare, fleiss_kappa, tally, audit):
        call(dataset)
    assert queries == []


def test_arrays_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    counted = items.count

    def recorded(votes: Any) -> Any:
        calls.append(votes)
        return counted(votes)

    monkeypatch.setattr("dhkappa.inputs.dataset.count", recorded)
    dataset = Dataset(ARRAY, LABELERS)
    assert calls == []
    dh_kappa(dataset, "rule")
    fleiss_kappa(dataset)
    audit(dataset, progress=False)
    dataset.tally()
    assert len(calls) == 1


# Object


def test_unknown_keywords_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="'level'"):
        Dataset(VOTES, RULE, level=0.9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'annotater'"):
        read("nowhere.csv", annotater="x")  # type: ignore[call-arg]


def test_copies_and_pickles(tmp_path: Path) -> None:
    for dataset in (make_arrays(tmp_path), make_path(tmp_path)):
        assert copy.copy(dataset) is dataset
        assert copy.deepcopy(dataset) is dataset
        with expect_error("not-picklable"):
            pickle.dumps(dataset)


def test_a_dataset_may_be_the_items_table(tmp_path: Path) -> None:
    make_read(tmp_path)
    items = read(tmp_path / "items.csv")
    found = dh_kappa(tmp_path / "votes.csv", "llm", items=items)
    assert found.exact == dh_kappa(VOTES, LLM).exact


def test_item_votes(tmp_path: Path) -> None:
    votes = make_read(tmp_path).item_votes()
    assert votes is not None
    assert list(votes.item_names()) == list("uvwxyz")
    assert votes.annotators == ("p0", "p1", "p2")
    assert [len(column) for column in votes.sorted_votes] == [16] * 3


def test_public_names() -> None:
    assert dhkappa.Dataset is Dataset
    assert set(dhkappa.__all__) <= set(dir(dhkappa))
    with pytest.raises(AttributeError):
        dhkappa.nothing  # noqa: B018


# Tables, paths and arrays resolved once, and counted once

GRID = [["x", "x"], ["y", "x"], ["y", "y"]]
LABELS = ["x", "y", "y"]
WIDE = {"item": ["i", "j", "k"], "suggested": LABELS, "ann_1": list("xyy"), "ann_2": list("xxy")}


def test_arrays_are_not_tables() -> None:
    for votes in (GRID, tuple(map(tuple, GRID)), np.array(GRID), pd.DataFrame(GRID)):
        data = Dataset(votes, LABELS)
        assert data.table is None
        assert data.counts.source_notes == ()
        assert data.counts.categories == ("x", "y")
        assert data.item_votes() is data.arrays


def test_tables_are_resolved_once() -> None:
    data = Dataset(pd.DataFrame(WIDE))
    assert data.table is data.table
    assert data.table is not None
    assert data.table.roles.item == "item"
    assert data.counts is data.counts
    votes = data.item_votes()
    assert votes is data.item_votes()
    assert votes is not None
    assert list(votes.item_names()) == ["i", "j", "k"]
    assert votes.annotators == ("ann_1", "ann_2")


def test_suggested_labels_may_be_ignored() -> None:
    for data in (UnlabeledDataset(GRID), UnlabeledDataset(pd.DataFrame(WIDE))):
        assert set(data.counts.labeled_patterns().patterns.suggested.tolist()) == {-1}
        assert data.counts.n_items == 3


@pytest.mark.parametrize("suggested", [LABELS, {"a": LABELS, "b": ["x", "x", None]}], ids=["one", "two"])
def test_the_item_table_has_every_item(suggested: Any) -> None:
    table = Dataset(GRID, suggested).item_table()
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
    for data in (Dataset(GRID, LABELS, missing=["1"]), Dataset([[1, 2]], [1], missing=["3"])):
        assert data.counts.n_items
    for suggested in ([1], {"a": [1], "b": [2]}):
        with expect_error("missing-type", "missing"):
            Dataset([[1, 2]], suggested, missing=["1"]).item_table()


def test_options_of_a_dataset() -> None:
    dataset = Dataset(GRID, LABELS)
    for twin in (Dataset(dataset), Dataset(dataset, missing=())):
        assert twin.counts is dataset.counts
    with expect_error("option-with-dataset", "categories"):
        Dataset(dataset, categories=["x", "y"])
    check_options_absent({"counts": None, "missing": ()}, "Tally")
    with expect_error("option-with-dataset", "strata"):
        check_options_absent({"counts": None, "strata": ["s"]}, "Tally")


@pytest.mark.parametrize("option", ["suggested", "missing", "categories", "sample_weight", "item"])
def test_a_dataset_with_options_is_no_items_table(tmp_path: Path, option: str) -> None:
    make_read(tmp_path)
    options: dict[str, Any] = {
        "suggested": "suggested_llm",
        "missing": ["a"],
        "categories": ["a", "b"],
        "sample_weight": "w",
        "item": "item",
    }
    items = read(tmp_path / "items.csv", **{option: options[option]})
    for call in (dh_kappa, Dataset):
        with expect_error("option-with-dataset", "items") as caught:
            call(tmp_path / "votes.csv", "suggested_llm", items=items)
        assert option in caught.value.message


def test_paths_are_opened_when_the_dataset_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    for folder, label in ((here, "a"), (other, "b")):
        folder.mkdir()
        write_csv(folder / "votes.csv", ["item", "annotator", "label"], [(1, "p", "a"), (1, "q", "a"), (2, "p", "b")])
        write_csv(folder / "items.csv", ["item", "suggested"], [(1, label), (2, label)])
    monkeypatch.chdir(here)
    dataset = Dataset("votes.csv", items="items.csv")
    monkeypatch.chdir(other)
    assert dataset.tally() == tally(here / "votes.csv", items=here / "items.csv")
    with expect_error("file-not-found"):
        Dataset("absent.csv")
    with expect_error("file-not-found"):
        Dataset("votes.csv", items="absent.csv")


def test_a_file_that_is_replaced_before_its_first_use(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "votes.csv", ["item", "suggested", "ann_1", "ann_2"], [(1, "a", "a", "a")])
    dataset = Dataset(path)
    write_csv(path, ["item", "suggested", "ann_1", "ann_2"], [(1, "a", "a", "b"), (2, "b", "b", "b")])
    with expect_error("file-changed"):
        dh_kappa(dataset)


@pytest.mark.parametrize("counted", [False, True], ids=["before", "after"])
def test_a_dataset_is_a_snapshot_of_arrays(counted: bool) -> None:
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]])
    labels, weight = np.array([0, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    two = {"llm": labels, "rule": [0, 1, 0, 0]}
    expected = dh_kappa(votes, labels, sample_weight=weight).exact
    dataset = Dataset(votes, two, sample_weight=weight)
    if counted:
        dh_kappa(dataset, "llm")
    votes[:], labels[:], weight[:] = 99, 3, 0
    assert dh_kappa(dataset, "llm").exact == compare(dataset).kappas["llm"].exact == expected
    assert audit(dataset, progress=False).kappas["llm"].exact == expected


def test_a_dataset_is_a_snapshot_of_a_dataframe() -> None:
    frame = pd.DataFrame(wide_columns())
    expected = dh_kappa(frame, "suggested_rule").exact
    dataset = Dataset(frame, "suggested_rule")
    frame["ann_0"] = "b"
    assert dh_kappa(dataset).exact == expected


def test_a_dataset_is_a_snapshot_of_lists_and_of_the_items_table() -> None:
    votes, labels, weight = [["a", "a"], ["a", "b"], ["b", "b"]], ["a", "b", "b"], [1, 2, 3]
    expected = dh_kappa(votes, labels, sample_weight=weight).exact
    dataset = Dataset(votes, labels, sample_weight=weight)
    votes[0][1], labels[0], weight[0] = "b", "b", 9
    assert dh_kappa(dataset).exact == expected
    rows = {"item": [1, 1, 2, 2, 3, 3], "annotator": ["x", "y"] * 3, "label": ["a", "a", "a", "b", "b", "b"]}
    items = pd.DataFrame({"item": [1, 2, 3], "suggested": ["a", "b", "b"]})
    expected = dh_kappa(pd.DataFrame(rows), items=items).exact
    dataset = Dataset(pd.DataFrame(rows), items=items)
    items.loc[0, "suggested"] = "b"
    assert dh_kappa(dataset).exact == expected


def test_a_dataset_is_a_snapshot_of_a_polars_dataframe() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"suggested": ["a", "b", "b"], "ann_1": ["a", "a", "b"], "ann_2": ["a", "b", "b"]})
    expected = dh_kappa(frame).exact
    dataset = Dataset(frame)
    frame[0, "ann_1"] = "b"
    assert dh_kappa(dataset).exact == expected


def test_an_audit_is_a_snapshot_of_arrays() -> None:
    counts, labels = np.array([[3, 0], [0, 3], [2, 1], [3, 0]] * 5), np.array([0, 1, 0, 0] * 5)
    found = audit(counts=counts, suggested=labels, progress=False)
    labels[:], counts[:] = 1 - labels, 2
    contributions = found.review().column("contribution")
    assert sum(contributions) / len(contributions) == pytest.approx(found.kappas["labeler"].value)


def test_every_function_notes_a_misspelled_missing_label() -> None:
    votes = np.array([["NA", "a"], ["na", "b"], ["b", "b"], ["a", "a"]] * 5)
    labels = {"x": ["a", "b", "b", "a"] * 5, "y": ["a", "a", "b", "a"] * 5}
    for found in (compare(votes, labels, missing=["NA"]), audit(votes, labels, missing=["NA"], progress=False)):
        assert any(note.code == "source" and "'na'" in note.text for note in found.notes)


def test_names_of_labelers_may_be_a_generator() -> None:
    frame = pd.DataFrame({"x": ["a", "b"], "y": ["a", "a"], "ann_1": ["a", "b"], "ann_2": ["a", "b"]})
    assert [*compare(frame, (name for name in "xy"), annotators="ann_*").kappas] == ["x", "y"]
    assert [*compare(frame, (name for name in "xy")).kappas] == ["x", "y"]


def test_one_call_does_not_copy_arrays() -> None:
    votes = np.zeros((4, 3), np.uint8)
    assert np.shares_memory(OneCallDataset(votes, [0, 0, 0, 0]).arrays.votes.values, votes)
    assert not np.shares_memory(Dataset(votes, [0, 0, 0, 0]).arrays.votes.values, votes)


def test_labels_passed_next_to_a_dataset_without_labels() -> None:
    for data in (Dataset(GRID), Dataset(pd.DataFrame({"ann_1": ["x", "y"], "ann_2": ["x", "x"]}))):
        for call in (dh_kappa, compare, audit):
            with expect_error("no-suggested-labels", "suggested") as caught:
                call(data, LABELS)
            assert caught.value.message == "The Dataset has no suggested labels."


def test_missing_columns_of_slices_are_refused_everywhere() -> None:
    table = pd.DataFrame({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "suggested": ["a", "b"], "lang": ["en", "de"]})
    for slices in ("lnag", ["lang", "lnag"], {"lnag": "week"}):
        for function in (dh_kappa, fleiss_kappa, tally, audit):
            with expect_error("column-not-found", "slices"):
                function(Dataset(table, slices=slices))
        assert [one.code for one in Dataset(table, slices=slices).check().problems] == ["column-not-found"]
    assert dh_kappa(Dataset(table, slices="lang")).value == 1
    with expect_error("option-with-dataset", "items"):
        Dataset(table, items=Dataset(table, slices="lang"))


@pytest.mark.parametrize("counted", [False, True])
def test_notes_on_filtered_data_do_not_depend_on_earlier_results(counted: bool) -> None:
    table = pd.DataFrame(
        {
            "ann_1": ["Spam", "ham", "NA", "na", "N/A", "ham", "spam"],
            "ann_2": ["spam", "ham", "n/a", "ham", "spam", "ham", "SPAM"],
            "suggested": ["spam", "ham", "ham", "spam", "ham", "spam", "spam"],
            "round": [1, 1, 1, 2, 2, 2, 2],
        }
    )
    options: dict[str, Any] = {"normalize": ["case"], "missing": ["na", "n/a"]}
    whole = Dataset(table, **options)
    if counted:
        assert whole.counts.n_items == 7
    found = whole.filter(round=1)
    alone = Dataset(table[table["round"] == 1], **options)
    notes = [str(note) for note in found.counts.source_notes if "left out" not in str(note)]
    assert notes == list(map(str, alone.counts.source_notes))
    assert notes
    assert found.left_out[0].n_votes == 6
