"""Tables of votes: default columns, column names with two meanings, values of mixed types, checks made once."""

import uuid
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dhkappa import Dataset, Tally, audit, dh_kappa, fleiss_kappa, tally
from dhkappa.inputs import dataset as dataset_module
from dhkappa.inputs.backends import Frame
from dhkappa.inputs.columns import Columns
from dhkappa.inputs.files import open_source
from dhkappa.inputs.tables import VoteTable, open_votes
from expect import expect_error


class Kind(Enum):
    SPAM = 1
    HAM = 2


VOTES = {
    "item": ["a", "a", "a", "b", "b", "b"],
    "label": ["x", "x", "y", "y", "y", "y"],
    "suggested": ["x", "x", "x", "y", "y", "y"],
}
EXPECTED = tally([["x", "x", "y"], ["y", "y", "y"]], {"suggested": ["x", "y"]})
every_frame = pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=["pandas", "polars", "lazy"]
)


def counted(votes: list[list[Any]], labels: list[Any], name: str = "suggested") -> Tally:
    return tally(votes, {name: labels})


@every_frame
def test_columns_called_count_and_annotator_are_used_by_default(make: Any) -> None:
    with_counts = make({**VOTES, "count": [1, 1, 3, 1, 1, 0]})
    whole = counted([["x", "x", "y", "y", "y"], ["y", "y"]], ["x", "y"])
    assert tally(with_counts, "suggested", item="item", label="label") == whole
    assert tally(with_counts, "suggested") == whole
    assert tally(with_counts, "suggested", count=None) == EXPECTED
    with_names = make({**VOTES, "annotator": ["p", "p", "q", "p", "q", "r"]})
    with expect_error("duplicate-votes"):
        tally(with_names, "suggested", item="item", label="label")
    assert tally(with_names, "suggested", item="item", label="label", annotator=None) == EXPECTED
    both = make({**VOTES, "annotator": [*"pqrpqr"], "count": [1] * 6})
    with expect_error("role-conflict"):
        tally(both, "suggested")
    assert tally(both, "suggested", count=None) == EXPECTED


@every_frame
def test_a_long_table_is_not_a_grid_of_votes(make: Any) -> None:
    assert fleiss_kappa(make(VOTES)).exact == fleiss_kappa([["x", "x", "y"], ["y", "y", "y"]]).exact
    wide = make({"item": ["a", "b"], "ann_1": ["x", "y"], "ann_2": ["x", "y"], "ann_llm": ["x", "x"]})
    assert fleiss_kappa(wide).n_votes == 6
    assert tally(wide, "ann_llm") == counted([["x", "x"], ["y", "y"]], ["x", "x"], "ann_llm")


def test_text_and_enum_members_are_one_label() -> None:
    mixed = ["SPAM", Kind.SPAM, "HAM", Kind.HAM, "HAM", ""]
    frame = pd.DataFrame(
        {"item": [*"aaabbb"], "label": pd.Series(mixed, dtype=object), "suggested": ["SPAM"] * 3 + ["HAM"] * 3}
    )
    assert tally(frame) == counted([["SPAM", "SPAM", "HAM"], ["HAM", "HAM", None]], ["SPAM", "HAM"])
    wide = pd.DataFrame(
        {f"ann_{place}": pd.Series([label, "HAM"], dtype=object) for place, label in enumerate(mixed * 2)}
    )
    wide["suggested"] = ["SPAM", "HAM"]
    assert tally(wide) == counted([[*mixed, *mixed], ["HAM"] * 12], ["SPAM", "HAM"])


def test_many_annotators_and_missing_integers() -> None:
    votes = [2, 0, 1, 2, None, None, 7, None, 7]
    frame = pd.DataFrame({f"ann_{place}": [vote] for place, vote in enumerate(votes)} | {"suggested": [2]})
    assert tally(frame) == counted([votes], [2])


def test_items_without_a_label_are_not_in_the_review(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"i": [0, 1, 2, 3], "s": [None, "b", "b", "a"], "p": ["a"] * 4, "q": ["a"] * 4}
    roles: dict[str, Any] = {"annotators": ["p", "q"], "item": "i", "progress": False}
    whole = audit(pl.DataFrame(data), "s", **roles).review().column("item")
    monkeypatch.setattr(dataset_module, "_MAX_FETCHED", 5)
    found = audit(pl.LazyFrame(data), "s", **roles)
    for limit in (1, 2, 9):
        assert found.review(limit=limit).column("item") == whole[:limit]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_that_queries_use_internally(make: Any) -> None:
    rows = {**VOTES, "annotator": [*"ppqpqr"]}
    plain = tally(make(rows), duplicates="first")
    assert plain == counted([["x", "y"], ["y", "y", "y"]], ["x", "y"])
    for name in ("row_number", "order", "word_0", "vote_0", "suggested_0", "items", "n", "rows", "unnamed"):
        found = tally(make({name: [9, 1, 2, 3, 4, 5], **rows}), "suggested", duplicates="first")
        assert found == plain


def test_a_name_takes_precedence_over_a_pattern() -> None:
    frame = pd.DataFrame({"score[1]": ["x", "y"], "score1": ["y", "x"], "s": ["x", "y"]})
    assert tally(frame, "s", annotators="score[1]") == counted([["x"], ["y"]], ["x", "y"], "s")


@every_frame
def test_an_unlisted_item_without_votes_is_ignored(make: Any) -> None:
    votes = make({"item": ["a", "a", "b", "b", "zz"], "label": ["x", "y", "x", "x", None], "annotator": [*"pqpqp"]})
    items = make({"item": ["a", "b"], "suggested": ["x", "y"], "w": [1.0, 2.0]})
    found = audit(votes, "suggested", items=items, sample_weight="w", progress=False)
    assert found.kappas["suggested"].exact == dh_kappa(votes, "suggested", items=items, sample_weight="w").exact
    assert {row["item"] for row in found.review()} == {"a", "b"}


def test_votes_of_unknown_annotators() -> None:
    rows = pd.DataFrame({**VOTES, "annotator": ["p", None, None, "p", "q", None]})
    assert tally(rows) == EXPECTED
    with expect_error("annotators-unknown"):
        audit(rows, progress=False).annotators()


@pytest.mark.parametrize(
    ("keywords", "parameter"), [({"duplicates": "first"}, "duplicates"), ({"unlisted": "unlabeled"}, "unlisted")]
)
def test_roles_without_effect(keywords: dict[str, Any], parameter: str) -> None:
    with expect_error("role-conflict", parameter):
        tally(pd.DataFrame(VOTES), "suggested", **keywords)


def test_an_item_with_an_empty_name() -> None:
    rows = {**VOTES, "item": ["a", "a", "a", "", "", ""]}
    for make in (pd.DataFrame, pl.LazyFrame):
        with expect_error("missing-item"):
            tally(make(rows), "suggested")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda votes: dh_kappa(votes, "llm"), "column-not-found"),
        (lambda votes: dh_kappa(votes, list("xyxyxy"), item="item", label="label"), "duplicate-labeler"),
        (lambda votes: dh_kappa(votes.rename(columns={"label": "vote"}), "vote", item="item"), "format-unknown"),
        (lambda votes: dh_kappa(votes, "llm", items=pd.DataFrame({"id": ["a"], "llm": ["x"]})), "column-not-found"),
        (lambda votes: dh_kappa(votes), "no-suggested-labels"),
        (lambda votes: dh_kappa(pd.DataFrame({"p": ["x"], "q": ["x"]})), "no-suggested-labels"),
        (
            lambda votes: tally(pd.DataFrame({"x": ["1_0"], "y": ["2"], "s": ["x"]}), "s", counts=["x", "y"]),
            "invalid-count",
        ),
        (lambda votes: dh_kappa([["a", "b"]], ["a"], item="x", label="y"), "not-a-table"),
        (lambda votes: dh_kappa(votes, "s", items=5), "not-a-table"),
    ],
)
def test_tables_that_are_refused(call: Any, code: str) -> None:
    with expect_error(code):
        call(pd.DataFrame(VOTES)[["item", "label"]])


def test_missing_labels_of_another_type() -> None:
    frame = pd.DataFrame({"a": [1, 9], "b": [1, 2], "s": [1, 2]})
    with expect_error("missing-type", "missing"):
        tally(frame, "s", annotators=["a", "b"], missing=["9"])
    with expect_error("missing-type", "missing"):
        dh_kappa([[1, 1], [9, 2]], [1, 2], missing=["9"])


def test_a_tally_keeps_the_labelers_that_are_known() -> None:
    assert tally(pd.DataFrame(VOTES)).labelers == ("suggested",)
    assert tally(pd.DataFrame(VOTES)[["item", "label"]]).labelers == ("labeler",)
    assert Dataset(pd.DataFrame(VOTES)).labelers == ("suggested",)


# Queries: a table is checked and counted once


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of every query that runs in an engine."""
    found: list[list[str]] = []
    run = Frame.fetch

    def fetch(self: Frame, query: Any) -> dict[str, list[Any]]:
        found.append(query.collect_schema().names())
        return run(self, query)

    monkeypatch.setattr(Frame, "fetch", fetch)
    return found


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    votes, items = tmp_path / "annotations.csv", tmp_path / "items.csv"
    rows = [
        f"{item},{who},{label}" for item in range(20) for who, label in zip("pqr", "abbaab"[item % 3 :], strict=False)
    ]
    votes.write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    items.write_text("\n".join(["item,suggested_llm", *(f"{item},{'ab'[item % 2]}" for item in range(20))]) + "\n")
    return votes, items


def test_an_audit_takes_at_most_eight_queries(files: tuple[Path, Path], queries: list[list[str]]) -> None:
    votes, items = files
    found = audit(votes, items=items)
    assert found.kappas["llm"].n_items == 20
    assert len(queries) <= 8
    assert len({tuple(query) for query in queries}) >= len(queries) - 1


def test_wide_format_is_checked_once(tmp_path: Path, queries: list[list[str]]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,suggested,ann_1,ann_2\n1,x,x,x\n2,x,y,y\n3,y,y,x\n")
    audit(path, item="item")
    assert len(queries) <= 4


def opened(path: Path, **given: Any) -> VoteTable:
    keywords: Any = given
    columns = Columns(suggested=None, counts=None, sample_weight=None, strata=None)
    found = open_votes(open_source(path), keywords, labeled=False, **columns)
    assert found is not None
    return found


def test_labels_are_counted_once_for_each_set_of_missing_labels(
    files: tuple[Path, Path], queries: list[list[str]]
) -> None:
    table = opened(files[0])
    first = table.long
    n = len(queries)
    assert table.long is first
    assert len(queries) == n
    assert first.label_counts == {"a": 26, "b": 34}
    assert replace(table, missing=frozenset(["a"])).long.label_counts == {"b": 34}
    assert first.n_rows == 60


def test_first_and_last_votes_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label\n1,p,a\n1,p,b\n1,q,b\n2,p,\n2,p,a\n")
    assert opened(path, duplicates="first").long.label_counts == {"a": 2, "b": 1}
    assert opened(path, duplicates="last").long.label_counts == {"a": 1, "b": 2}


WIDE = {"item": ["i", "j", "k"], "ann_1": [*"aab"], "ann_2": [*"abb"], "ann_3": [*"aab"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_a_grid_has_no_other_columns_than_votes(make: Any) -> None:
    for suggested in ([*"aab"], {"llm": [*"aab"]}):
        with expect_error("column-among-votes", "suggested") as caught:
            tally(make(WIDE), suggested)
        assert "'item'" in caught.value.message
        assert "'ann_1', 'ann_2', 'ann_3'" in caught.value.hint
    assert dh_kappa(make({name: WIDE[name] for name in WIDE if name != "item"}), [*"aab"]).n_votes == 9
    others = {"item": WIDE["item"], "suggested": [*"aab"], "ada": [*"aab"], "ben": [*"abb"]}
    with expect_error("column-among-votes"):
        fleiss_kappa(make(others))
    assert fleiss_kappa(make({"ada": [*"aab"], "ben": [*"abb"]})).n_votes == 6


@every_frame
def test_every_entrance_finds_the_same_annotators(make: Any) -> None:
    table = make({**WIDE, "suggested": [*"aab"], "suggested_llm": [*"aab"]})
    calls = [fleiss_kappa(table), fleiss_kappa(table, annotators="*"), fleiss_kappa(Dataset(table, annotators="*"))]
    assert [found.n_votes for found in calls] == [9, 9, 9]
    assert dh_kappa(table, "llm", annotators="*").n_votes == 9


def test_names_of_suggested_columns_may_be_a_generator() -> None:
    table = duckdb.sql("SELECT * FROM (VALUES ('a', 'a', 'a'), ('b', 'b', 'a')) t(ann_1, ann_2, llm)")
    assert Dataset(table, (name for name in ["llm"])).labelers == ("llm",)


def test_an_empty_id_in_the_items_table_is_missing() -> None:
    for absent in ("", None):
        items = pd.DataFrame({"item": ["a", "b", absent], "suggested": ["x", "y", "x"]})
        with expect_error("missing-item", "items"):
            tally(pd.DataFrame({"item": VOTES["item"], "label": VOTES["label"]}), items=items)


def _ids(expression: str) -> duckdb.DuckDBPyRelation:
    votes = "(VALUES (1, 'a', 'p'), (1, 'b', 'q'), (2, 'a', 'p'), (2, 'a', 'q')) t(k, label, annotator)"
    return duckdb.connect().sql(f"SELECT {expression} AS item, label, annotator, 'a' AS suggested FROM {votes}")


@pytest.mark.parametrize("expression", ["encode(k::VARCHAR)", "('0000000000000000000000000000000' || k)::UUID"])
def test_ids_of_any_hashable_type(expression: str) -> None:
    for table in (_ids(expression), _ids(expression).to_arrow_table(), _ids(expression).pl()):
        assert len(audit(table).review()) == 2


@pytest.mark.parametrize("expression", ["[k]", "{'k': k}"])
def test_ids_that_cannot_be_names(expression: str) -> None:
    for table in (_ids(expression), _ids(expression).to_arrow_table(), _ids(expression).pl(), _ids(expression).df()):
        with expect_error("wrong-type") as caught:
            audit(table).review()
        assert "text" in caught.value.hint


def test_uuids_of_pyarrow_are_text() -> None:
    ids = [uuid.UUID(int=place) for place in range(3)]
    table = pa.table({**WIDE, "item": pa.array([one.bytes for one in ids], pa.uuid()), "suggested": [*"bbb"]})
    assert set(audit(table).review().column("item")) <= {str(one) for one in ids}
