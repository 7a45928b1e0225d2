"""Input files that are odd, swapped or incomplete: what the commands say, and that their suggestions work."""

import json
import re
import shlex
from pathlib import Path

import duckdb
import pytest

from command import inside

Capsys = pytest.CaptureFixture[str]

VOTES = "item,annotator,label\nT1,ada,a\nT1,ben,a\nT2,ada,b\nT2,ben,a\nT3,ada,b\nT3,ben,b\n"
ITEMS = "item,suggested_llm,note\nT1,a,x\nT2,b,y\nT3,b,z\n"
ODD = {
    "empty.csv": ("", "'empty.csv' is empty."),
    "header.csv": ("item,suggested,ann_1,ann_2\n", "There are no items in header.csv."),
    "blank.csv": ("\n\n", "The first line of 'blank.csv' has no column names."),
    "column.csv": ("label\na\n", "There is only one column in column.csv: 'label'."),
    "pipes.csv": ("item|ann_1\n1|a\n", "There is only one column in pipes.csv: 'item|ann_1'."),
    "empty.json": ("[]", "'empty.json' does not consist of JSON objects with keys."),
    "weights.csv": ("suggested,ann_1,ann_2,w\na,a,a,much\nb,b,a,1\n", "Column 'w' of weights.csv must hold weights"),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "votes.csv": VOTES,
        "items.csv": ITEMS,
        **{name: text for name, (text, _) in ODD.items()},
    }.items():
        Path(name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_refused_with_one_line(files: Path, capsys: Capsys, name: str) -> None:
    options = ["--sample-weight", "w"] if name == "weights.csv" else []
    done = inside(capsys, "score", name, *options)
    assert done.returncode == 2
    assert done.stderr.startswith(f"dhkappa: {ODD[name][1]}")
    assert done.stderr.count("\n") == 1


def test_one_row_is_read(files: Path, capsys: Capsys) -> None:
    Path("one.csv").write_text("suggested,ann_1,ann_2\na,a,b\n")
    done = inside(capsys, "score", "one.csv", "--format", "json")
    assert json.loads(done.stdout)["result"]["labelers"]["suggested"]["n_items"] == 1


def test_swapped_files_are_recognized_and_the_command_works(files: Path, capsys: Capsys) -> None:
    done = inside(capsys, "score", "items.csv", "--items=votes.csv", "--format", "json", "-s", "llm")
    assert done.returncode == 2
    assert "items.csv has one row per item, and votes.csv several" in done.stderr
    [command] = re.findall("Swap them: dhkappa (.*)", done.stderr)
    assert inside(capsys, *shlex.split(command)).returncode == 0


def test_the_items_table_next_to_the_votes_is_suggested(files: Path, capsys: Capsys) -> None:
    done = inside(capsys, "score", "votes.csv")
    assert done.returncode == 2
    assert "with --items, such as 'items.csv'" in done.stderr
    assert inside(capsys, "score", "votes.csv", "--items", "items.csv").returncode == 0


@pytest.mark.parametrize("names", [("votes.csv", "items.csv"), ("items.csv", "votes.csv")])
def test_votes_and_items_are_told_apart_in_any_order(files: Path, capsys: Capsys, names: tuple[str, str]) -> None:
    want = inside(capsys, "score", "votes.csv", "--items", "items.csv", "--format", "json")
    found = inside(capsys, "score", *names, "--format", "json")
    assert (found.returncode, found.stdout) == (0, want.stdout)
    assert found.stderr == "items.csv is read as the table of items (--items).\n"


def test_likely_columns_are_suggested_by_their_values(files: Path, capsys: Capsys) -> None:
    Path("items.csv").write_text("item,note,model_name,guess\nT1,x,v1,a\nT2,y,v1,b\nT3,z,v1,b\n")
    done = inside(capsys, "score", "votes.csv", "--items", "items.csv")
    assert "with --suggested, such as 'guess'." in done.stderr
    Path("items.csv").write_text("item,note,model_name\nT1,x,v1\nT2,y,v1\nT3,z,v1\n")
    assert "such as 'model_name'." in inside(capsys, "score", "votes.csv", "--items", "items.csv").stderr


def test_misspelled_columns(files: Path, capsys: Capsys) -> None:
    done = inside(capsys, "score", "votes.csv", "--items", "items.csv", "--label", "lable")
    expected = "Column 'lable' not found in votes.csv. Columns: item, annotator, label. Did you mean 'label'?"
    assert expected in done.stderr
    assert "Did you mean 'llm'?" in inside(capsys, "score", "votes.csv", "--items", "items.csv", "-s", "lmm").stderr


@pytest.mark.parametrize(("given", "advice"), [("60", "write 0.60."), ("2", "write 0.02."), ("101", ""), ("-2", "")])
def test_fail_under_is_no_percentage(files: Path, capsys: Capsys, given: str, advice: str) -> None:
    done = inside(capsys, "score", "votes.csv", "--items", "items.csv", "--fail-under", given)
    assert done.returncode == 2
    assert "kappa" in done.stderr
    assert ("write" in done.stderr) == bool(advice)
    assert advice in done.stderr


def test_a_title_never_shows_a_password(files: Path, capsys: Capsys) -> None:
    pytest.importorskip("vl_convert")  # the report needs it
    url = "postgresql://me:se:cr@t@host/labels"
    options = ["--title", url, "-o", "report.html"]
    for form in ("text", "json"):
        done = inside(capsys, "audit", "votes.csv", "--items", "items.csv", *options, "--format", form)
        assert done.returncode == 0
        page = Path("report.html").read_text(encoding="utf-8")
        for text in (done.stdout, done.stderr, page):
            assert "cr@t" not in text
            assert "se:cr" not in text
    assert "postgresql://me:***@host/labels" in page


@pytest.mark.parametrize("name", ["llm", "suggested_llm"])
def test_a_labeler_has_one_name(files: Path, capsys: Capsys, name: str) -> None:
    wide = "item,{},ann_1,ann_2\n1,a,a,a\n2,b,a,b\n3,b,b,b\n"
    Path("wide.csv").write_text(wide.format(name))
    items = ITEMS.replace("suggested_llm", name)
    Path("own.csv").write_text(items)
    inside(capsys, "tally", "make", "wide.csv", "-s", name, "-o", "tally.json")
    sources = [["wide.csv"], ["votes.csv", "--items", "own.csv"], ["tally.json"]]
    for source in sources:
        for given in {"llm", name, *(["suggested_llm"] if source == ["tally.json"] else [])}:
            for command in ("score", "audit"):
                done = inside(capsys, command, *source, "--suggested", given, "--format", "json")
                assert done.returncode == 0, done.stderr
                assert list(json.loads(done.stdout)["result"]["labelers"]) == ["llm"]


def test_files_of_a_pattern_are_in_natural_order(files: Path, capsys: Capsys) -> None:
    folder = files / "days"
    folder.mkdir()
    for day in (1, 2, 10):
        label = "b" if day == 10 else "a"
        rows = "".join(f"{item},{who},{label},b\n" for item in ("x", "y") for who in ("p", "q"))
        (folder / f"day{day}.csv").write_text(f"item,annotator,label,suggested\n{rows}")
        query = f"SELECT * FROM '{folder}/day{day}.csv'"
        duckdb.connect().execute(f"COPY ({query}) TO '{folder}/day{day}.parquet' (FORMAT parquet)")
        duckdb.connect().execute(f"COPY ({query}) TO '{folder}/day{day}.jsonl' (FORMAT json)")
    for suffix in ("csv", "parquet", "jsonl"):
        for choice, labels in (("last", {"b": 4}), ("first", {"a": 4})):
            command = ["tally", "make", f"days/day*.{suffix}", "--duplicates", choice, "-o", "t.json"]
            assert inside(capsys, *command).returncode == 0
            held = json.loads(Path("t.json").read_text())
            assert {label: n * row["items"] for row in held["patterns"] for label, n in row["votes"]} == labels
            assert held["source_notes"][0]["code"] == "duplicates-removed"
            listed = [f"days/day{day}.{suffix}" for day in (1, 10, 2)]  # as a shell expands the pattern
            command = ["tally", "make", *listed, "--duplicates", choice, "-o", "listed.json"]
            assert inside(capsys, *command).returncode == 0
            assert Path("listed.json").read_text() == Path("t.json").read_text()
            done = inside(capsys, "score", f"days/day*.{suffix}", "--duplicates", choice)
            assert "8 of 12 votes were removed" in " ".join(done.stdout.split())
    done = inside(capsys, "score", "t.json", "--format", "json")
    notes = json.loads(done.stdout)["result"]["labelers"]["suggested"]["notes"]
    assert "duplicates-removed" in {note["code"] for note in notes}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "json"])
def test_a_blank_can_mean_missing_in_every_format(files: Path, capsys: Capsys, suffix: str) -> None:
    table = "(VALUES ('a', 'a', ' ', 'a'), ('b', 'b', 'b', ' ')) t(suggested, ann_1, ann_2, ann_3)"
    forms = {"tsv": "FORMAT csv, DELIMITER '\t'", "jsonl": "FORMAT json", "json": "FORMAT json, ARRAY true"}
    duckdb.connect().execute(f"COPY (FROM {table}) TO 'blank.{suffix}' ({forms.get(suffix, f'FORMAT {suffix}')})")
    done = inside(capsys, "score", f"blank.{suffix}", "--missing", " ", "--format", "json")
    assert json.loads(done.stdout)["result"]["labelers"]["suggested"]["n_votes"] == 4
