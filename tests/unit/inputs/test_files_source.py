"""Read paths, exports of annotation tools and items of large tables."""

import csv
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dhkappa import Tally, audit, compare, dh_kappa, fleiss_kappa, plan, read, tally
from dhkappa.inputs import dataset as dataset_module
from dhkappa.inputs.files import is_url
from expect import expect_error

EXPORTS = Path(__file__).parents[2] / "exports"
VOTES = [["spam", "spam", "spam"], ["ham", "ham", "spam"], ["ham", "ham", ""], ["007", "7", "007"], ["", "", "ham"]]
RULE = ["spam", "spam", "ham", "7", "ham"]
LLM = ["spam", "ham", "", "007", "ham"]


def write_csv(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    rows = [[f"{place:03}", RULE[place], LLM[place], *votes] for place, votes in enumerate(VOTES)]
    header = ["ticket", "suggested_rule", "suggested_llm", "ann_1", "ann_2", "ann_3"]
    return write_csv(tmp_path / "votes.csv", header, rows)


@pytest.fixture
def long_files(tmp_path: Path) -> tuple[Path, Path]:
    cast = [[f"{item:03}", f"p{who}", vote] for item, votes in enumerate(VOTES) for who, vote in enumerate(votes)]
    items = [[f"{item:03}", RULE[item], LLM[item]] for item in range(len(VOTES))]
    return (
        write_csv(tmp_path / "annotations.csv", ["item", "annotator", "label"], cast),
        write_csv(tmp_path / "items.csv", ["item", "rule", "llm"], items),
    )


# Files


def test_which_paths_are_databases() -> None:
    for url in ("postgresql://h/d", "postgres://h/d", "sqlite:///a.db", "duckdb:///a", "SQLite://a"):
        assert is_url(url)
    for path in (
        "a.csv",
        "s3://bucket/a.csv",
        "https://x",
        "sqlite:",
        "postgresql",
        Path("sqlite://a"),
        None,
        7,
        ["a"],
    ):
        assert not is_url(path)


def test_files_equal_lists(wide: Path, long_files: tuple[Path, Path]) -> None:
    votes, items = long_files
    both = tally(VOTES, {"rule": RULE, "llm": LLM})
    assert tally(wide, ["suggested_rule", "suggested_llm"]) == both
    found = tally(str(wide), "suggested_rule", annotators="ann_*", item="ticket")
    assert found == tally(VOTES, {"rule": RULE})
    assert tally(votes, "llm", items=items) == tally(VOTES, {"llm": LLM})
    assert dh_kappa(votes, "llm", items=str(items)).exact == dh_kappa(VOTES, LLM).exact
    assert fleiss_kappa(votes).exact == fleiss_kappa(VOTES).exact
    assert fleiss_kappa(wide).exact == fleiss_kappa(VOTES).exact


def test_labelers_are_found_by_name(wide: Path) -> None:
    expected = compare(VOTES, {"rule": RULE, "llm": LLM}).kappas
    assert {name: kappa.exact for name, kappa in compare(wide).kappas.items()} == {
        name: kappa.exact for name, kappa in expected.items()
    }
    with expect_error("several-labelers", "suggested"):
        dh_kappa(wide)
    assert dh_kappa(wide, "llm").exact == dh_kappa(VOTES, LLM).exact
    assert compare(wide, ["llm", "suggested_rule"]).kappas["llm"].exact == dh_kappa(VOTES, LLM).exact
    assert audit(wide, "llm", progress=False).labelers == ("llm",)


def test_names_of_items_and_annotators_come_from_files(long_files: tuple[Path, Path]) -> None:
    votes, items = long_files
    found = audit(votes, "rule", items=items, progress=False)
    expected = audit(np.array(VOTES), RULE, progress=False).review()
    assert [row["item"] for row in found.review()] == [f"{row['item']:03}" for row in expected]
    assert [row["annotator"] for row in found.annotators()] == ["p0", "p1", "p2"]


def test_a_plan_from_a_file(wide: Path) -> None:
    pilot = dh_kappa(VOTES, RULE)
    assert plan(0.2, wide, "suggested_rule", annotators="ann_*").items == plan(0.2, pilot).items


def test_labels_that_mean_missing(tmp_path: Path) -> None:
    path = tmp_path / "na.tsv"
    path.write_text("item\tsuggested\tann_1\tann_2\tann_3\n1\ta\ta\tNA\ta\n2\tNA\tb\tb\tb\n3\ta\tb\tNA\ta\n")
    assert "NA" in tally(path).categories
    votes = [["a", None, "a"], ["b", "b", "b"], ["b", None, "a"]]
    assert tally(path, missing=["NA"]) == tally(votes, {"suggested": ["a", None, "a"]})


def test_several_files(wide: Path, tmp_path: Path) -> None:
    twin = tmp_path / "votes-2.csv"
    twin.write_bytes(wide.read_bytes())
    whole = read([wide, twin], "suggested_rule").tally()
    assert whole == tally(VOTES * 2, {"rule": RULE * 2})
    assert tally(f"{tmp_path}/votes*.csv", "suggested_rule") == whole


def test_first_and_last_of_two_votes(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    rows = [("i", "ada", "a"), ("i", "ben", "b"), ("i", "ada", "b"), ("j", "ada", "a"), ("j", "ben", "a")]
    records = [{"item": item, "annotator": who, "label": label, "suggested": "a"} for item, who, label in rows]
    path.write_text("\n".join(map(json.dumps, records)))
    with expect_error("duplicate-votes"):
        dh_kappa(path)
    labels = {"suggested": ["a", "a"]}
    assert tally(path, duplicates="first") == tally([["a", "b"], ["a", "a"]], labels)
    assert tally(path, duplicates="last") == tally([["b", "b"], ["a", "a"]], labels)


def test_a_relative_path_is_resolved_when_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "votes.csv").write_text("item,suggested,ann_1,ann_2\n1,x,x,x\n")
    monkeypatch.chdir(tmp_path)
    dataset = read("votes.csv")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert dh_kappa(dataset).n_items == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("item,suggested,ann_1,ann_2\n1,a,a,a\n2,a,a,a,a\n")
    with expect_error("wrong-number-of-fields"):
        dh_kappa(path)
    path.write_bytes(b"item,suggested,ann_1,ann_2\r\n1,a,a,a\r2,a,a,a\n3,a,a,a\n")
    with expect_error("malformed-file"):
        dh_kappa(path)
    mixed = tmp_path / "mixed.json"
    rows = [{"item": 1, "suggested": "a", "ann_1": "a", "ann_2": label} for label in (1, 1, "b")]
    mixed.write_text(json.dumps(rows))
    with expect_error("mixed-types"):
        dh_kappa(mixed)


def test_items_may_be_lists() -> None:
    with duckdb.connect() as connection:
        votes = connection.sql(
            "SELECT [i, i + 1] AS item, 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2 FROM range(2) r(i)"
        )
        found = audit(votes, progress=False).review().column("item")
        assert [list(item) for item in found] == [[0, 1], [1, 2]]


# Options of read


def test_addresses_of_databases() -> None:
    for url in ("postgresql://h/d", "postgres://h/d", "sqlite:///a.db", "duckdb:///a", "SQLite://a"):
        assert is_url(url)
    others = ("a.csv", "s3://bucket/a.csv", "https://x", "sqlite:", "postgresql", Path("sqlite://a"), None, 7, ["a"])
    for path in others:
        assert not is_url(path)


def test_options_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("item,label\n1,a\n")
    for options, code, parameter in (
        ({"input_format": "excel"}, "invalid-input-format", "input_format"),
        ({"input_format": 5}, "invalid-input-format", "input_format"),
        ({"question": 5}, "invalid-question", "question"),
        ({"question": "stars"}, "option-not-supported", "question"),
        ({"table": "votes"}, "option-not-supported", "table"),
    ):
        with expect_error(code, parameter):
            read(path, **options)
    with expect_error("invalid-path", "path"):
        read([path, path], input_format="label_studio")
    with expect_error("file-not-found"):
        read(tmp_path / "none.csv")


def test_zip_files(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", '{"a": 1}')
    with expect_error("unknown-file-type", "path"):
        read(path)
    path.write_bytes(path.read_bytes()[:30])
    with expect_error("unreadable-file", "path"):
        read(path)


# Exports


@pytest.mark.parametrize(
    ("path", "tool", "labelers"),
    [
        ("label_studio/mail_whole.json", "Label Studio", ("gpt-5", "rule-v2")),
        ("prodigy/binary.jsonl", "Prodigy", ("suggested",)),
        ("doccano/reviews.zip", "doccano", ("suggested_llm", "suggested_rule")),
        ("argilla/flat.json", "Argilla", ("gpt", "rule 9", "rule 10", "suggestion", "suggestion item")),
    ],
)
def test_exports_are_recognized_by_content(path: str, tool: str, labelers: tuple[str, ...]) -> None:
    dataset = read(EXPORTS / path)
    source = dataset._data
    assert source is not None
    assert (source.tool, source.labelers) == (tool, labelers)
    assert source.votes.columns == ["item", "annotator", "label"]
    whole = read(EXPORTS / path, list(labelers)).tally()
    assert whole.labelers == tuple(name.removeprefix("suggested_") for name in labelers)
    assert fleiss_kappa(dataset).n_votes <= whole.n_votes
    (sentence,) = whole.source_notes
    assert tool in sentence
    notes = {note.code: note.text for note in dh_kappa(dataset, dataset.labelers[0]).notes}
    assert notes["source"] == sentence


def test_source_notes_stay_with_a_tally(tmp_path: Path) -> None:
    whole = tally(EXPORTS / "doccano/reviews.zip", ["suggested_llm"])
    assert whole.source_notes
    whole.save(tmp_path / "tally.json")
    loaded = Tally.load(tmp_path / "tally.json")
    assert loaded == whole
    assert loaded.source_notes == whole.source_notes == (whole + whole.copy()).source_notes


def test_input_format(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes((EXPORTS / "label_studio/mail_whole.json").read_bytes())
    assert read(path, input_format="label_studio").labelers == ("gpt-5", "rule-v2")
    with expect_error("malformed-export"):
        read(EXPORTS / "prodigy/binary.jsonl", input_format="label_studio")
    source = read(EXPORTS / "label_studio/mail_whole.json", input_format="table")._data
    assert source is not None
    assert "annotations" in source.votes.columns


def test_question() -> None:
    path = EXPORTS / "label_studio/reviews_whole.json"
    with expect_error("several-questions", "question"):
        audit(path)
    assert set(read(path, question="stars").categories) <= set(range(6))
    with expect_error("question-not-found", "question"):
        read(path, question="stairs")


def test_predictions_as_ids_matter_only_if_labels_are_needed(tmp_path: Path) -> None:
    path = EXPORTS / "label_studio/mail_button.json"
    with expect_error("no-suggested-labels", "suggested"):
        dh_kappa(path)
    assert fleiss_kappa(path).exact == fleiss_kappa(EXPORTS / "label_studio/mail_whole.json").exact
    whole = read(EXPORTS / "label_studio/mail_whole.json")
    assert whole._data is not None
    rows = whole._data.items
    items = dict(zip(rows.columns, zip(*rows.fetchall(), strict=True), strict=True))
    labels = zip(items["item"], items["gpt-5"], strict=True)
    own = write_csv(tmp_path / "own.csv", ["item", "mine"], [[str(item), label or ""] for item, label in labels])
    assert dh_kappa(path, "mine", items=own).exact == dh_kappa(whole, "gpt-5").exact  # ids of a CSV file are text


def test_an_export_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "binary.jsonl").write_bytes((EXPORTS / "prodigy" / "binary.jsonl").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    source = read("~/binary.jsonl")._data
    assert source is not None
    assert source.tool == "Prodigy"


# Large tables


def test_items_of_large_tables_are_queried(
    long_files: tuple[Path, Path], wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes, items = long_files
    calls: list[tuple[Path, dict[str, Any]]] = [
        (votes, {"suggested": "rule", "items": items}),
        (wide, {"suggested": "suggested_rule", "item": "ticket"}),
    ]
    for path, options in calls:
        whole = audit(path, **options, progress=False).review().to_dicts()
        with monkeypatch.context() as patch:
            patch.setattr(dataset_module, "_MAX_FETCHED", 5)
            found = audit(path, **options, progress=False)
            assert found.review().to_dicts() == whole
            assert found.review(limit=2).to_dicts() == whole[:2]
            assert "annotators-not-fetched" in {note.code for note in found.notes}
            with expect_error("annotators-unknown"):
                found.annotators()
    monkeypatch.setattr(dataset_module, "_MAX_FETCHED", 5)
    unnamed = audit(wide, "suggested_rule", annotators="ann_*", progress=False)
    with expect_error("items-unknown", "item"):
        unnamed.review()
    assert unnamed.to_dict()["labelers"]["rule"]["review"] is None


SCRIPT = """
import sys
import dhkappa
dhkappa.audit(sys.argv[1], "suggested_rule")
loaded = {"pandas", "polars", "pyarrow", "dask", "pyspark", "ibis"} & set(sys.modules)
assert not loaded, loaded
"""


def test_files_load_only_duckdb(wide: Path) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT, str(wide)], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.returncode == 0
