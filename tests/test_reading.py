"""From a path to a result: files, exports, and what is asked of the engine on the way."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dhkappa
from dhkappa import DataError, audit, compare, dh_kappa, fleiss_kappa, plan, read, tally
from dhkappa.inputs import dataset as given
from dhkappa.inputs.backends import Frame

EXPORTS = Path(__file__).parent / "exports"
VOTES = [["spam", "spam", "spam"], ["ham", "ham", "spam"], ["ham", "ham", ""], ["007", "7", "007"], ["", "", "ham"]]
RULE = ["spam", "spam", "ham", "7", "ham"]
LLM = ["spam", "ham", "", "007", "ham"]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    rows = [[f"{place:03}", RULE[place], LLM[place], *votes] for place, votes in enumerate(VOTES)]
    _write(path, ["ticket", "suggested_rule", "suggested_llm", "ann_1", "ann_2", "ann_3"], rows)
    return path


@pytest.fixture
def long_files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "annotations.csv", tmp_path / "items.csv"
    cast = [[f"{item:03}", f"p{who}", vote] for item, votes in enumerate(VOTES) for who, vote in enumerate(votes)]
    _write(paths[0], ["item", "annotator", "label"], cast)
    _write(paths[1], ["item", "rule", "llm"], [[f"{item:03}", RULE[item], LLM[item]] for item in range(len(VOTES))])
    return paths


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def test_a_path_is_as_good_as_lists(wide: Path, long_files: tuple[Path, Path]) -> None:
    votes, items = long_files
    both = tally(VOTES, {"suggested_rule": RULE, "suggested_llm": LLM})
    assert tally(wide, ["suggested_rule", "suggested_llm"]) == both
    assert tally(str(wide), "suggested_rule", annotators="ann_*", item="ticket") == tally(VOTES, RULE)
    assert tally(votes, "llm", items=items) == tally(VOTES, LLM)
    assert dh_kappa(votes, "llm", items=str(items)).exact == dh_kappa(VOTES, LLM).exact
    assert fleiss_kappa(votes).exact == fleiss_kappa(VOTES).exact
    assert fleiss_kappa(wide).exact == fleiss_kappa(VOTES).exact


def test_labelers_by_name_are_understood(wide: Path) -> None:
    found = compare(wide)
    assert {who: kappa.exact for who, kappa in found.kappas.items()} == {
        who: kappa.exact for who, kappa in compare(VOTES, {"rule": RULE, "llm": LLM}).kappas.items()
    }
    with pytest.raises(DataError, match="several labelers: choose one of 'rule', 'llm'"):
        dh_kappa(wide)
    assert dh_kappa(wide, "llm").exact == dh_kappa(VOTES, LLM).exact
    assert compare(wide, ["llm", "suggested_rule"]).kappas["llm"].exact == dh_kappa(VOTES, LLM).exact
    assert audit(wide, "llm").labelers == ("llm",)


def test_names_of_items_and_annotators_come_from_files(long_files: tuple[Path, Path]) -> None:
    votes, items = long_files
    found = audit(votes, "rule", items=items)
    queue = found.review()
    assert [row["item"] for row in queue] == [f"{row['item']:03}" for row in audit(np.array(VOTES), RULE).review()]
    assert [row["annotator"] for row in found.annotators()] == ["p0", "p1", "p2"]


def test_a_plan_from_a_file(wide: Path) -> None:
    pilot = dh_kappa(VOTES, RULE)
    assert plan(0.2, wide, "suggested_rule", annotators="ann_*").items == plan(0.2, pilot).items
    with pytest.raises(DataError, match="annotators name columns of a pilot, which is absent"):
        plan(0.2, n_categories=2, annotator_accuracy=0.9, labeler_accuracy=0.9, annotators="ann_*")
    with pytest.raises(DataError, match="leave out annotators"):
        plan(0.2, pilot, annotators="ann_*")


def test_missing_spellings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "na.tsv"
    path.write_text("item\tsuggested\tann_1\tann_2\tann_3\n1\ta\ta\tNA\ta\n2\tNA\tb\tb\tb\n3\ta\tb\tNA\ta\n")
    assert "NA" in tally(path, "suggested").categories
    votes = [["a", None, "a"], ["b", "b", "b"], ["b", None, "a"]]
    assert tally(path, "suggested", missing=["NA"]) == tally(votes, ["a", None, "a"])


def test_several_files(wide: Path, tmp_path: Path) -> None:
    twin = tmp_path / "votes-2.csv"
    twin.write_bytes(wide.read_bytes())
    whole = tally(read([wide, twin]), "suggested_rule")
    assert whole == tally(VOTES * 2, RULE * 2)
    assert tally(f"{tmp_path}/votes*.csv", "suggested_rule") == whole


def test_first_and_last_of_two_votes_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    rows = [("i", "ada", "a"), ("i", "ben", "b"), ("i", "ada", "b"), ("j", "ada", "a"), ("j", "ben", "a")]
    records = [{"item": item, "annotator": who, "label": label, "suggested": "a"} for item, who, label in rows]
    path.write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(DataError, match="several votes on one item, such as 'ada' on item 'i'"):
        dh_kappa(path)
    assert tally(path, "suggested", duplicates="first") == tally([["a", "b"], ["a", "a"]], ["a", "a"])
    assert tally(path, "suggested", duplicates="last") == tally([["b", "b"], ["a", "a"]], ["a", "a"])


@pytest.mark.parametrize(
    ("path", "tool", "labelers", "votes"),
    [
        ("label_studio/mail_whole.json", "Label Studio", ("gpt-5", "rule-v2"), 26),
        ("prodigy/binary.jsonl", "Prodigy", ("suggested",), None),
        ("doccano/reviews.zip", "doccano", ("suggested_llm", "suggested_rule"), None),
        ("argilla/flat.json", "Argilla", ("gpt", "rule 9", "rule 10", "suggestion", "suggestion item"), None),
    ],
)
def test_exports_are_known_by_their_content(path: str, tool: str, labelers: tuple[str, ...], votes: int | None) -> None:
    source = read(EXPORTS / path)
    assert (source.tool, source.labelers) == (tool, labelers)
    assert repr(source).startswith(f"Source({tool}: columns 'item', 'annotator', 'label'; labelers ")
    whole = tally(source, list(labelers))
    assert whole.labelers == labelers
    assert fleiss_kappa(source).n_votes <= whole.n_votes
    (remark,) = whole.remarks
    assert remark.startswith(f"The {tool} export holds what is no vote: ")
    note = next(note for note in dh_kappa(source, labelers[0]).notes if note.code == "source")
    assert note.text == remark


def test_remarks_stay_with_a_tally(tmp_path: Path) -> None:
    whole = tally(EXPORTS / "doccano/reviews.zip", ["suggested_llm"])
    assert whole.remarks
    whole.save(tmp_path / "tally.json")
    loaded = dhkappa.Tally.load(tmp_path / "tally.json")
    assert loaded == whole
    assert loaded.remarks == whole.remarks == (whole + whole.copy()).remarks


def test_a_tool_may_be_forced(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes((EXPORTS / "label_studio/mail_whole.json").read_bytes())
    assert read(path, input_format="label_studio").labelers == ("gpt-5", "rule-v2")
    with pytest.raises(DataError, match="no task of a Label Studio export"):
        read(EXPORTS / "prodigy/binary.jsonl", input_format="label_studio")
    with pytest.raises(DataError, match="format must be one of 'table', 'label_studio'"):
        read(path, input_format="excel")
    assert "annotations" in read(EXPORTS / "label_studio/mail_whole.json", input_format="table").columns


def test_a_question_chooses(tmp_path: Path) -> None:
    path = EXPORTS / "label_studio/reviews_whole.json"
    with pytest.raises(DataError, match="'people', 'place', 'stars', 'tone', 'topics'"):
        audit(path)
    assert set(tally(read(path, question="stars")).categories) <= set(range(6))
    plain = tmp_path / "plain.csv"
    plain.write_text("item,label\n1,a\n")
    with pytest.raises(DataError, match="question chooses among those of an export"):
        read(plain, question="stars")


def test_predictions_as_ids_matter_only_where_they_are_wanted(tmp_path: Path) -> None:
    path = EXPORTS / "label_studio/mail_button.json"
    with pytest.raises(DataError, match="has its predictions as ids"):
        dh_kappa(path)
    fleiss = fleiss_kappa(path)
    assert fleiss.exact == fleiss_kappa(EXPORTS / "label_studio/mail_whole.json").exact
    own = tmp_path / "own.csv"  # in a CSV file the ids of tasks are text
    whole = read(EXPORTS / "label_studio/mail_whole.json")
    items = dict(zip(whole.items.columns, zip(*whole.items.fetchall(), strict=True), strict=True))
    _write(
        own,
        ["item", "mine"],
        [[str(item), label or ""] for item, label in zip(items["item"], items["gpt-5"], strict=True)],
    )
    assert dh_kappa(path, "mine", items=own).exact == dh_kappa(whole, "gpt-5").exact


def test_a_zip_of_something_else(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.json", '{"a": 1}')
    with pytest.raises(DataError, match="zip of no export that is known"):
        read(tmp_path / "x.zip")


def test_what_goes_wrong_while_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("item,suggested,ann_1,ann_2\n1,a,a,a\n2,a,a,a,a\n")
    with pytest.raises(DataError, match=r"line 3.* has 5 fields where the header has 4"):
        dh_kappa(path)
    with pytest.raises(DataError, match="table names a table of a database"):
        read(path, table="votes")
    path.write_bytes(b"item,suggested,ann_1,ann_2\r\n1,a,a,a\r2,a,a,a\n3,a,a,a\n")
    with pytest.raises(DataError, match=r"ragged\.csv' is not a well-formed file .* mixed line ends") as caught:
        dh_kappa(path)
    assert "could not answer" not in str(caught.value)


def test_mixed_values_of_json(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text(
        json.dumps(
            [{"item": 1, "suggested": "a", "ann_1": "a", "ann_2": 1}] * 2
            + [{"item": 3, "suggested": "a", "ann_1": "a", "ann_2": "b"}]
        )
    )
    with pytest.raises(DataError, match="column 'ann_2' holds lists, objects, or values of several kinds"):
        dh_kappa(path)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the engine, query by query."""
    asked: list[str] = []
    run = Frame.fetch

    def fetch(self: Frame, query: Any) -> dict[str, list[Any]]:
        asked.append(",".join(query.collect_schema().names()))
        return run(self, query)

    monkeypatch.setattr(Frame, "fetch", fetch)
    return asked


def test_several_labelers_cost_one_pass(wide: Path, queries: list[str]) -> None:
    compare(wide, ["suggested_rule", "suggested_llm"], annotators="ann_*")
    assert queries == ["suggested_0,suggested_1,vote_0,vote_1,vote_2,items"]


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_items_are_asked_for_where_votes_are_many(
    long_files: tuple[Path, Path], wide: Path, monkeypatch: pytest.MonkeyPatch, queries: list[str], many: bool
) -> None:
    votes, items = long_files
    calls: list[tuple[Path, dict[str, Any]]] = [
        (votes, {"suggested": "rule", "items": items}),
        (wide, {"suggested": "suggested_rule", "item": "ticket"}),
    ]
    for path, words in calls:
        whole = audit(path, **words).review().to_dicts()
        if many:
            monkeypatch.setattr(given, "_MOST_GATHERED", 5)
        queries.clear()
        found = audit(path, **words)
        gathered = any(query.startswith(("item,label,annotator", "item,vote_")) for query in queries)
        assert gathered is not many
        assert found.review().to_dicts() == whole
        assert found.review(limit=2).to_dicts() == whole[:2]
        if many:
            with pytest.raises(DataError, match="large tables in an engine"):
                found.annotators()
    if many:
        nameless = audit(wide, "suggested_rule", annotators="ann_*")
        with pytest.raises(DataError, match="with a large table the names of items too, as item="):
            nameless.review()
        assert nameless.to_dict()["labelers"]["suggested_rule"]["items"] is None


ABSENT = """
import sys
import numpy
import dhkappa
dhkappa.dh_kappa([["a", "a"], ["a", "b"]], ["a", "b"]).confidence_interval()
assert not {"narwhals", "duckdb", "pandas", "polars", "pyarrow"} & set(sys.modules), "arrays"
dhkappa.audit(sys.argv[1], "suggested_rule")
loaded = {"pandas", "polars", "pyarrow", "dask", "pyspark", "ibis"} & set(sys.modules)
assert not loaded, loaded
"""


def test_engines_that_are_not_asked_are_not_imported(wide: Path) -> None:
    run = subprocess.run([sys.executable, "-c", ABSENT, str(wide)], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.returncode == 0


def test_words_that_are_not_known() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'sugested'\. Did you mean 'suggested'"):
        dh_kappa([["a", "a"]], sugested=["a"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'annotater'"):
        dh_kappa([["a"]], ["a"], annotater="x")  # type: ignore[call-arg]
    with pytest.raises(DataError, match="item and label name columns of a table, but the data are a list"):
        dh_kappa([["a"]], ["a"], item="x", label="y")


def test_a_relative_path_stays_the_file_that_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "votes.csv").write_text("item,suggested,ann_1,ann_2\n1,x,x,x\n")
    monkeypatch.chdir(tmp_path)
    source = dhkappa.read("votes.csv")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert dhkappa.dh_kappa(source).n_items == 1


def test_items_may_be_lists() -> None:
    with duckdb.connect() as connection:
        votes = connection.sql(
            "SELECT [i, i + 1] AS item, 'x' AS suggested, 'x' AS ann_1, 'x' AS ann_2 FROM range(2) r(i)"
        )
        assert [list(item) for item in dhkappa.audit(votes).review().column("item")] == [[0, 1], [1, 2]]


def test_an_export_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = Path(__file__).parent / "exports" / "prodigy"
    [path] = sorted(export.glob("*.jsonl"))[:1]
    (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    assert dhkappa.read(f"~/{path.name}").tool == "Prodigy"
