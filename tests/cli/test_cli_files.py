"""Files of every layout and kind, and exports: the JSON output has the numbers of the library."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from cli_files import CATEGORIES, EXACT, LABELS, LAYOUTS, VOTES, answer, exact, items, long, long_alone, wide, write
from command import inside, refused, run
from dhkappa.errors import DataError, flag, visible

EXPORTS_FOLDER = Path(__file__).parents[1] / "exports"
EXPORTS = sorted(path for path in EXPORTS_FOLDER.glob("*/*") if path.suffix != ".py")

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "json", "jsonl", "jsonl.gz", "parquet", "xlsx"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_score_of_every_layout(layout: str, kind: str, tmp_path: Path, capsys: Capsys) -> None:
    if kind == "xlsx":
        pytest.importorskip("python_calamine")
        pytest.importorskip("xlsxwriter")
    rows, beside, words = LAYOUTS[layout]
    words = [*words, "--items", write(tmp_path / f"items.{kind}", items())] if beside else words
    done = inside(capsys, "score", write(tmp_path / f"votes.{kind}", rows()), *words, "--format", "json")
    assert exact(answer(done.stdout)) == EXACT


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_command_on_every_layout(layout: str, tmp_path: Path, capsys: Capsys) -> None:
    rows, beside, words = LAYOUTS[layout]
    file = write(tmp_path / "votes.csv", rows())
    words = [*words, "--items", write(tmp_path / "items.csv", items())] if beside else words
    done = (
        run("audit", file, *words, "--format", "json")
        if beside
        else inside(capsys, "audit", file, *words, "--format", "json")
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = answer(done.stdout)["result"]
    assert {name: found["kappa"]["exact"] for name, found in told["labelers"].items()} == EXACT
    named = layout in ("wide", "long", "long-items")
    assert all((found["annotator_comparison"] is not None) == named for found in told["labelers"].values())
    assert all((found["annotators"] is not None) == named for found in told["labelers"].values())
    shared = answer(inside(capsys, "compare", file, *words, "--format", "json").stdout)["result"]
    assert {name: kappa["exact"] for name, kappa in shared["kappas"].items()} == EXACT
    queue = answer(inside(capsys, "review", file, *words, "-s", "llm", "--format", "json").stdout)["result"]["review"]
    assert (
        queue
        == answer(inside(capsys, "audit", file, *words, "-s", "llm", "--format", "json").stdout)["result"]["labelers"][
            "llm"
        ]["review"]
    )
    assert {row["item"] for row in queue} <= {row["item"] for row in items()}
    planned = answer(inside(capsys, "plan", "0.05", file, *words, "-s", "llm", "--format", "json").stdout)["result"]
    assert planned["items"] == dhkappa.plan(0.05, dhkappa.dh_kappa(VOTES, LABELS["llm"])).items
    made = answer(inside(capsys, "tally", "make", file, *words, "-o", tmp_path / "t.json", "--format", "json").stdout)[
        "result"
    ]
    counts = (made["n_items"], made["n_votes"], made["categories"], made["labelers"])
    assert counts == (40, sum(vote is not None for votes in VOTES for vote in votes), CATEGORIES, ["rule", "llm"])
    assert exact(answer(inside(capsys, "score", tmp_path / "t.json", "--format", "json").stdout)) == EXACT


def test_columns_of_any_name(tmp_path: Path, capsys: Capsys) -> None:
    table = [
        {"q, no": row["item"], "machine": row["suggested_llm"]} | {f"p{who}": row[f"ann_{who}"] for who in range(3)}
        for row in wide()
    ]
    file = write(tmp_path / "own.csv", table)
    for words in (["--annotators", "p*"], ["-a", "p0,p1", "-a", "p2"]):
        done = inside(capsys, "score", file, "--suggested", "machine", *words, "--format", "json")
        assert exact(answer(done.stdout)) == {"machine": EXACT["llm"]}
    queue = inside(capsys, "review", file, "-s", "machine", "-a", "p*", "--item", "q, no", "--format", "json")
    assert answer(queue.stdout)["result"]["review"][0]["item"].startswith("t")
    cast = [{"q": row["item"], "who": row["annotator"], "vote": row["label"]} for row in long_alone()]
    words = [
        "--item",
        "q",
        "--label",
        "vote",
        "--annotator",
        "who",
        "--items",
        write(
            tmp_path / "own_items.csv", [{"q": row["item"], "machine, new": row["suggested_llm"]} for row in items()]
        ),
    ]
    done = inside(
        capsys, "score", write(tmp_path / "cast.csv", cast), *words, "-s", '"machine, new"', "--format", "json"
    )
    assert exact(answer(done.stdout)) == {"machine, new": EXACT["llm"]}


def test_several_files_and_a_pattern(tmp_path: Path, capsys: Capsys) -> None:
    parts = [write(tmp_path / f"part-{half}.csv", wide()[half::2]) for half in (0, 1)]
    assert exact(answer(run("score", *parts, "--format", "json").stdout)) == EXACT
    assert exact(answer(inside(capsys, "score", tmp_path / "part-*.csv", "--format", "json").stdout)) == EXACT


def test_words_reach_the_library(tmp_path: Path, capsys: Capsys) -> None:
    """Each option against the same word in Python."""
    rows = [row | {"w": 1 + place % 3, "s": "ab"[place % 2]} for place, row in enumerate(wide())]
    file = write(tmp_path / "votes.parquet", rows)
    duplicate = write(tmp_path / "twice.csv", [*long(), long()[0] | {"label": "news"}])
    asked: list[tuple[str, list[str], dict[str, Any]]] = [
        (file, ["--sample-weight", "w"], {"sample_weight": "w"}),
        (file, ["--strata", "s", "--pool", "a=100,b=900"], {"strata": "s", "pool": {"a": 100, "b": 900}}),
        (file, ["--strata", "s", "--pool", "a=100", "--pool", "b=900"], {"strata": "s", "pool": {"a": 100, "b": 900}}),
        (file, ["--pool", "5_000"], {"pool": 5000}),
        (file, ["--categories", "spam,ham,news,other"], {"categories": ["spam", "ham", "news", "other"]}),
        (
            file,
            ["--categories", "spam,ham,news", "--weights", "quadratic"],
            {"categories": ["spam", "ham", "news"], "weights": "quadratic"},
        ),
        (file, ["--missing", "ham"], {"missing": ["ham"]}),
        (duplicate, ["--duplicates", "last"], {"duplicates": "last"}),
        (duplicate, ["--annotator", ""], {"annotator": None}),
    ]
    for path, words, python in asked:
        told = answer(inside(capsys, "score", path, "-s", "llm", *words, "--format", "json").stdout)["result"][
            "labelers"
        ]["llm"]
        assert told == dhkappa.dh_kappa(path, "suggested_llm", **python).to_dict()
    told = answer(inside(capsys, "score", file, "-s", "llm", "--confidence-level", "0.8", "--format", "json").stdout)[
        "result"
    ]
    low = dhkappa.dh_kappa(VOTES, LABELS["llm"]).confidence_interval(0.8).low
    assert (told["confidence_level"], told["labelers"]["llm"]["confidence_interval"]["low"]) == (0.8, low)


def test_whole_numbers_as_categories_and_missing(tmp_path: Path, capsys: Capsys) -> None:
    """Text on the command line stands for the whole numbers of a typed file too."""
    code = {"ham": 1, "news": 2, "spam": 10, None: 99}
    rows = [{name: code[vote] for name, vote in row.items() if name != "item"} for row in wide()]
    words = ["--categories", "1,2,10", "--missing", "99"]
    for kind in ("parquet", "csv"):
        done = inside(capsys, "score", write(tmp_path / f"codes.{kind}", rows), *words, "--format", "json")
        assert exact(answer(done.stdout)) == EXACT


@pytest.mark.parametrize("kind", [int, bool, float])
def test_strata_and_categories_of_a_typed_file(kind: Callable[[Any], Any], tmp_path: Path, capsys: Capsys) -> None:
    """Text on the command line stands for whole numbers, also as floats, and truth values, as Python writes them."""
    code: dict[str | None, Any] = {"ham": 0, "news": 1, "spam": 0, None: None}
    rows = [
        {name: None if code[vote] is None else kind(code[vote]) for name, vote in row.items() if name != "item"}
        | {"drawn": kind(place % 2)}
        for place, row in enumerate(wide())
    ]
    whole: Callable[[Any], Any] = bool if kind is bool else int
    file, no, yes = write(tmp_path / "typed.parquet", rows), whole(0), whole(1)
    words = ["--strata", "drawn", "--pool", f"{no}=100,{yes}=50", "--categories", f"{no},{yes}", "--format", "json"]
    python: dict[str, Any] = {"strata": "drawn", "pool": {no: 100, yes: 50}, "categories": [no, yes]}
    expected = dhkappa.dh_kappa(file, "suggested_llm", **python).to_dict()
    assert answer(inside(capsys, "score", file, "-s", "llm", *words).stdout)["result"]["labelers"]["llm"] == expected
    audited = answer(inside(capsys, "audit", file, "-s", "llm", *words, "--seed", "1").stdout)["result"]
    told = dhkappa.audit(file, {"llm": "suggested_llm"}, rng=1, **python).to_dict()
    assert audited == json.loads(json.dumps(told)) | {"report": None, "filters": []}
    assert "7" in refused(inside(capsys, "score", file, "-s", "llm", *words[:2], "--pool", f"{no}=100,7=50"))


def test_a_blank_means_missing(tmp_path: Path, capsys: Capsys) -> None:
    rows = [{name: " " if vote is None else vote for name, vote in row.items() if name != "item"} for row in wide()]
    done = inside(capsys, "score", write(tmp_path / "blanks.csv", rows), "--missing", " ", "--format", "json")
    assert exact(answer(done.stdout)) == EXACT


def test_a_misspelled_missing_label_is_noted(tmp_path: Path, capsys: Capsys) -> None:
    rows = [{name: "none" if vote is None else vote for name, vote in row.items() if name != "item"} for row in wide()]
    path = write(tmp_path / "none.csv", rows)
    assert "'none' is counted as a category" in inside(capsys, "score", path, "--missing", "None").stdout
    assert "is counted as" not in inside(capsys, "score", path, "--missing", "none,None").stdout


# Exports


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_exports(path: Path, capsys: Capsys) -> None:
    """The same result as in Python, or the same error."""
    done = inside(capsys, "audit", path, "--seed", "1", "--format", "json")
    wrong, found = "", {}
    try:
        found = json.loads(json.dumps(dhkappa.audit(path, rng=1).to_dict()))
        found |= {"filters": []} | ({"report": None} if found["kind"] == "labels" else {})
    except DataError as error:
        wrong = error.text(flag)
    if wrong:
        assert refused(done) == visible(" ".join(wrong.split()))
    else:
        assert answer(done.stdout)["result"] == found


def test_an_export_of_each_tool_in_a_process(capsys: Capsys) -> None:
    told = answer(run("score", EXPORTS_FOLDER / "label_studio" / "mail_whole.json", "--format", "json").stdout)
    assert told["result"]["labelers"]
    sentence = refused(run("score", EXPORTS_FOLDER / "label_studio" / "mail_whole.json", "--input-format", "prodigy"))
    assert "Prodigy" in sentence or "prodigy" in sentence
