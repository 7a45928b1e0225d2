"""dhkappa check, and the problems in other commands."""

import csv
import io
import json
import shlex
import subprocess
from pathlib import Path

import pytest

from command import inside

Capsys = pytest.CaptureFixture[str]
LABELS = ["cat", "dog", "cow"] * 10


def _write(path: Path, labels: list[str], votes: list[str] | None = None) -> None:
    rows = zip(labels, votes or LABELS, LABELS, strict=True)
    lines = [f"t{place},{label},{one},{other}" for place, (label, one, other) in enumerate(rows)]
    path.write_text("\n".join(["item,suggested_llm,ann_1,ann_2", *lines, ""]), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "clean.csv", LABELS)
    _write(tmp_path / "codes.csv", ["1", "2", "3"] * 10)
    _write(tmp_path / "my votes.csv", LABELS, ["none", *LABELS[1:]])
    return tmp_path


def test_clean_file(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "check", "clean.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "30 items, 60 votes, 2 annotators, 1 labeler: llm." in done.stdout
    assert "3 categories with votes: cat (20), cow (20), dog (20)." in done.stdout
    assert "None found.\n\nNext, run:\n  dhkappa audit clean.csv\n" in done.stdout


def test_errors_set_the_exit_code(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "check", "codes.csv")
    assert (done.returncode, done.stderr) == (2, "")
    assert "Error [labels-not-in-votes]" in done.stdout
    assert '--map "1=cat,2=dog,3=cow"' in " ".join(done.stdout.split())
    accepted = inside(capsys, "check", "codes.csv", "--allow", "labels-not-in-votes")
    assert accepted.returncode == 0
    assert "Accepted error [labels-not-in-votes]" in accepted.stdout


def test_the_next_command_can_be_pasted(folder: Path, capsys: Capsys) -> None:
    words = ["my votes.csv", "--missing", "none,-", "-s", "suggested_llm", "--allow", "looks-ordinal"]
    printed = inside(capsys, "check", *words, "--format", "json").stdout
    command = json.loads(printed)["result"]["next"]
    assert shlex.split(command)[:3] == ["dhkappa", "audit", "my votes.csv"]
    assert set(words[1:]) - set(shlex.split(command)) == {"-s"}  # as --suggested
    assert inside(capsys, *shlex.split(command)[1:]).returncode == 0


def test_json(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "check", "my votes.csv", "--format", "json")
    result = json.loads(done.stdout)["result"]
    [problem] = result["problems"]
    assert {name: problem[name] for name in ("code", "severity", "examples", "labelers", "accepted")} == {
        "code": "looks-missing",
        "severity": "warning",
        "examples": ["'none'"],
        "labelers": [],
        "accepted": False,
    }
    assert '--missing "none"' in problem["fix"]
    assert problem["options"] == {}  # whether it is one is for the user to say
    [codes] = json.loads(inside(capsys, "check", "codes.csv", "--format", "json").stdout)["result"]["problems"]
    assert codes["options"] == {"map": "1=cat,2=dog,3=cow"}
    assert (result["format"], result["n_items"], result["n_votes"]) == ("wide", 30, 60)


def test_files_that_cannot_be_read_are_a_problem(folder: Path, capsys: Capsys) -> None:
    (folder / "odd.csv").write_bytes(b"item,ann_1\n\xff\xfe,a\n")
    done = inside(capsys, "check", "odd.csv", "--format", "json")
    assert done.returncode == 2
    [problem] = json.loads(done.stdout)["result"]["problems"]
    assert problem["severity"] == "error"
    (folder / "other.csv").write_text("when,what\n1,a\n")
    told = json.loads(inside(capsys, "check", "other.csv", "--format", "json").stdout)
    assert [one["code"] for one in told["result"]["problems"]] == ["format-unknown"]
    missing = inside(capsys, "check", "nothing.csv")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "nothing.csv" in missing.stderr


def test_tallies(folder: Path, capsys: Capsys) -> None:
    inside(capsys, "tally", "make", "codes.csv", "-o", "t.json")
    done = inside(capsys, "check", "t.json")
    assert done.returncode == 2
    assert "Format: tally." in done.stdout


@pytest.mark.parametrize("command", ["score", "audit"])
def test_other_commands_show_and_accept_problems(folder: Path, capsys: Capsys, command: str) -> None:
    shown = " ".join(inside(capsys, command, "codes.csv").stdout.split())
    assert shown.index("Error [labels-not-in-votes]") < shown.index("Kappa, with random")
    assert shown.count("that nobody ever votes for") == (1 if command == "score" else 2)  # the verdict says it, too
    assert "no annotator ever chose" not in shown
    told = inside(capsys, command, "codes.csv", "--allow", "labels-not-in-votes", "--format", "json").stdout
    assert [one["accepted"] for one in json.loads(told)["result"]["problems"]] == [True]
    unknown = inside(capsys, command, "codes.csv", "--allow", "x")
    assert (unknown.returncode, unknown.stdout) == (2, "")


# The next command


def _next(capsys: Capsys, *words: str) -> list[str]:
    """Return the words that a shell reads in the next command, after checking that it can be run."""
    command = json.loads(inside(capsys, "check", "--format", "json", *words).stdout)["result"]["next"]
    read = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True).stdout.decode()
    found = read.split("\0")[:-1]
    assert found[:2] == ["dhkappa", "audit"]
    return found[2:]


def _problems(capsys: Capsys, words: list[str]) -> list[str]:
    done = inside(capsys, "audit", "--format", "json", *words)
    assert done.returncode == 0 or "No labeler can be judged" in done.stderr, done.stderr
    return [problem["code"] for problem in json.loads(done.stdout)["result"]["problems"]]


def test_the_next_command_fixes_the_problems(folder: Path, capsys: Capsys) -> None:
    assert _next(capsys, "codes.csv") == ["codes.csv", "--map", "1=cat,2=dog,3=cow"]
    assert _problems(capsys, _next(capsys, "codes.csv")) == []
    _write(folder / "both.csv", LABELS, [["N/A", "Cat", *LABELS[2:10]][place % 10] for place in range(30)])
    assert set(_problems(capsys, ["both.csv"])) == {"category-variants", "looks-missing"}
    words = _next(capsys, "both.csv")
    assert words == ["both.csv", "--missing", "N/A", "--normalize", "case"]
    assert not {"category-variants", "looks-missing"} & {*_problems(capsys, words)}
    shown = " ".join(inside(capsys, "check", "both.csv").stdout.split())
    assert "Next, run this. Its options fix category-variants and looks-missing." in shown


def test_the_next_command_splits_cells_and_then_fixes_their_labels(folder: Path, capsys: Capsys) -> None:
    sets = ["cat;dog", "dog;cat", "cow"] * 10
    _write(folder / "sets.csv", sets, ["Cat;dog", "dog;cat", "cow"] * 10)
    words = _next(capsys, "sets.csv")
    assert words == ["sets.csv", "--multilabel", ";", "--normalize", "case"]
    assert "category-variants" not in _problems(capsys, words)
    done = inside(capsys, "check", *words)
    assert "Cells hold sets of labels, separated by ;." in done.stdout


def _table(path: Path, header: str, *formats: str) -> None:
    lines = [one.format(n=n, label=label) for n, label in enumerate(LABELS) for one in formats]
    path.write_text("\n".join([header, *lines, ""]))


def test_the_next_command_has_the_option_that_an_error_asks_for(folder: Path, capsys: Capsys) -> None:
    _table(folder / "raters.csv", "id,rater 1,rater 2,suggested", "{n},{label},{label},{label}")
    assert _next(capsys, "raters.csv") == ["raters.csv", "--annotators", "rater 1,rater 2"]
    long = ["{n},a,{label},{label}", "{n},b,{label},{label}"]
    _table(folder / "long.csv", "item,annotator,label,suggested", *long)
    assert _next(capsys, "long.csv", "--label", "lable") == ["long.csv", "--label", "label"]
    _table(folder / "twice.csv", "item,annotator,label,suggested", *long, long[0])
    assert _next(capsys, "twice.csv") == ["twice.csv", "--duplicates", "FIRST-OR-LAST"]
    both = ["twice.csv", "--label", "label", "--duplicates", "FIRST-OR-LAST"]
    assert _next(capsys, "twice.csv", "--label", "lable") == both
    (folder / "sub").mkdir()
    _table(folder / "sub" / "votes.csv", "item,annotator,label", "{n},a,{label}", "{n},b,{label}")
    _table(folder / "sub" / "labels.csv", "item,suggested", "{n},{label}")
    apart = ["sub/votes.csv", "--items", "sub/labels.csv"]
    assert _next(capsys, "sub") == _next(capsys, "sub/*.csv") == apart
    (folder / "sub" / "labels.csv").unlink()
    assert _next(capsys, "sub")[0] == "sub/*.csv"


def test_the_next_command_has_words_to_replace(folder: Path, capsys: Capsys) -> None:
    (folder / "other.csv").write_text("when,what\n1,a\n")
    assert _next(capsys, "other.csv") == ["other.csv", "--annotators", "COLUMN,COLUMN"]
    assert "replace the words in capitals" in " ".join(inside(capsys, "check", "other.csv").stdout.split())
    _table(folder / "long.csv", "item,annotator,label,suggested", "{n},a,{label},{label}", "{n},b,{label},{label}")
    assert _next(capsys, "long.csv", "--label", "zzz") == ["long.csv", "--label", "COLUMN"]
    (folder / "empty").mkdir()
    assert _next(capsys, "empty") == ["FILE"]


def test_lists_that_are_not_json_are_left_to_the_user(folder: Path, capsys: Capsys) -> None:
    _write(folder / "lists.csv", ["['cat', 'dog']", "['cow']", "['cat']"] * 10, ["['cat']", "['cow']", "['cat']"] * 10)
    assert _next(capsys, "lists.csv") == ["lists.csv"]


def test_a_choice_is_left_to_the_user(folder: Path, capsys: Capsys) -> None:
    _write(folder / "maybe.csv", LABELS, ["unknown", *LABELS[1:]])
    assert _next(capsys, "maybe.csv") == ["maybe.csv"]
    shown = " ".join(inside(capsys, "check", "maybe.csv").stdout.split())
    assert "Nothing was added for looks-missing: decide about it first" in shown


def test_the_next_command_names_the_table_of_items(folder: Path, capsys: Capsys) -> None:
    rows = [f"t{place},{who},{label}" for place, label in enumerate(LABELS) for who in ("ann", "bob")]
    (folder / "long.csv").write_text("\n".join(["item,annotator,label", *rows, ""]))
    for path in folder.glob("[!l]*.csv"):
        path.unlink()
    name = "it's $HOME.csv"
    (folder / name).write_text("\n".join(["item,suggested", *(f"t{n},{label}" for n, label in enumerate(LABELS)), ""]))
    words = _next(capsys, "long.csv")
    assert words == ["long.csv", "--items", name]
    assert inside(capsys, "audit", *words).returncode == 0


@pytest.mark.parametrize(
    "hostile",
    ["a b", "it's", '"', "$HOME", "`id`", "a;b c", "x\ny", "\x1b[31m", "\\", "\u200b", "\x9b", "!x", "-n", "é"],
)
def test_hostile_names_are_quoted_for_the_shell(hostile: str, folder: Path, capsys: Capsys) -> None:
    name = f"{hostile}.csv"
    _write(folder / name, LABELS, ["N/A", *LABELS[1:]])
    words = _next(capsys, "--allow", "too-few-items", "--", name)
    assert name in words
    assert words[words.index("--missing") + 1] == "N/A"
    assert "looks-missing" not in _problems(capsys, words)


@pytest.mark.parametrize("hostile", ["N A", "$x", "it's", 'say "x"', "a=b", "-", "`id`", "\x1b]0;x", "a,b"])
def test_hostile_labels_are_quoted_for_the_shell(hostile: str, folder: Path, capsys: Capsys) -> None:
    labels = [hostile if label == "cat" else label for label in LABELS]
    with (folder / "odd.csv").open("w", newline="", encoding="utf-8") as file:
        rows = zip(
            range(30),
            labels,
            [label.upper() if n < 9 else label for n, label in enumerate(labels)],
            labels,
            strict=True,
        )
        csv.writer(file).writerows([["item", "suggested_llm", "ann_1", "ann_2"], *rows])
    assert "--normalize" in (words := _next(capsys, "odd.csv"))
    assert "category-variants" not in _problems(capsys, words)
    with (folder / "codes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = zip(range(30), ["1", "2", "3"] * 10, labels, labels, strict=True)
        csv.writer(file).writerows([["item", "suggested_llm", "ann_1", "ann_2"], *rows])
    words = _next(capsys, "codes.csv")
    assert "labels-not-in-votes" not in _problems(capsys, words) or "--map" not in words


def test_multilabel_in_every_format(folder: Path, capsys: Capsys) -> None:
    _write(folder / "sets.csv", ["cat;dog", "dog;cat", "cow"] * 10, ["Cat;dog", "dog;cat", "cow"] * 10)
    for form in ("text", "json", "markdown"):
        done = inside(capsys, "audit", "sets.csv", "--multilabel", ";", "--format", form)
        assert done.returncode == 2
        assert "No labeler can be judged, because of category-variants." in done.stderr
        assert "differ only in case" in " ".join(done.stdout.split())
        assert "Cannot judge llm" in done.stdout
    gate = inside(capsys, "audit", "sets.csv", "--multilabel", ";", "--fail-under", "0.1")
    assert gate.returncode == 2
    assert "The gate cannot be tested" in gate.stderr
    accepted = inside(capsys, "audit", "sets.csv", "--multilabel", ";", "--allow", "category-variants")
    assert "Accepted error [category-variants]" in accepted.stdout
    assert "Cannot judge" not in accepted.stdout


# Problems on standard error


def test_review_of_data_with_errors_is_not_written(folder: Path, capsys: Capsys) -> None:
    labels = ["\x1b[31mcat", *LABELS[1:]]
    _write(folder / "odd.csv", labels, ["\x1b[31mCAT", "N/A", *LABELS[2:]])
    done = inside(capsys, "review", "odd.csv", "-o", "review.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("--allow category-variants") == 1
    assert "\x1b" not in done.stderr
    assert not Path("review.csv").exists()
    united = inside(capsys, "review", "odd.csv", "-o", "review.csv", "--normalize", "case")
    assert united.stderr.count("--allow looks-missing") == 1
    allow = ("--allow", "looks-missing", "--allow", "category-variants")
    written = inside(capsys, "review", "odd.csv", *allow)
    assert written.returncode == 0
    assert len(list(csv.DictReader(io.StringIO(written.stdout)))) == 30
    accepted = inside(capsys, "review", "odd.csv", *allow, "--format", "json")
    assert accepted.stderr == ""
    assert "\x1b" not in accepted.stdout
    assert accepted.returncode == 0, accepted.stderr
    result = json.loads(accepted.stdout)["result"]
    assert len(result["review"]) == 30
    assert [(one["code"], one["accepted"]) for one in result["problems"]][1] == ("looks-missing", True)


def test_review_prints_warnings_on_standard_error(folder: Path, capsys: Capsys) -> None:
    Path("few.csv").write_text("item,suggested,ann_1,ann_2\n1,x,x,y\n2,y,y,y\n", encoding="utf-8")
    done = inside(capsys, "review", "few.csv")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    assert "Warning [too-few-items]" in done.stderr


def test_a_tally_of_data_with_errors_is_not_made(folder: Path, capsys: Capsys) -> None:
    rows = [f"{label},{label},{label},{place}" for place, label in enumerate(LABELS)]
    Path("timed.csv").write_text("\n".join(["suggested,ann_1,ann_2,ann_1_seconds", *rows, ""]), encoding="utf-8")
    done = inside(capsys, "tally", "make", "timed.csv", "-o", "t.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--allow not-annotators" in done.stderr
    assert not Path("t.json").exists()
    assert inside(capsys, "tally", "make", "timed.csv", "-o", "t.json", "--allow", "not-annotators").returncode == 0
    for name, code in (("my votes.csv", "looks-missing"), ("codes.csv", "labels-not-in-votes")):
        warned = inside(capsys, "tally", "make", name, "-o", "w.json")
        assert (warned.returncode, code in warned.stderr) == (0, True)


def test_swapped_tables_are_swapped_in_the_next_command(folder: Path, capsys: Capsys) -> None:
    _table(folder / "votes.csv", "item,annotator,label", "{n},a,{label}", "{n},b,{label}")
    _table(folder / "labels.csv", "item,suggested", "{n},{label}")
    assert _next(capsys, "labels.csv", "--items", "votes.csv") == ["votes.csv", "--items", "labels.csv"]


def test_the_next_command_is_a_check_if_it_finds_more(folder: Path, capsys: Capsys) -> None:
    rows = [f"{place},{label},{60 - place % 3},{30 + place % 3},10" for place, label in enumerate(LABELS)]
    Path("percent.csv").write_text("\n".join(["item,suggested,cat,dog,cow", *rows, ""]), encoding="utf-8")
    done = inside(capsys, "check", "percent.csv", "--counts", "cat,dog,cwo")
    assert "looks-like-percent" not in done.stdout
    assert done.stdout.endswith("dhkappa check percent.csv --counts cat,dog,cow\n")


def test_two_tallies_with_the_same_content(folder: Path, capsys: Capsys) -> None:
    for name in ("one.json", "other.json"):
        assert inside(capsys, "tally", "make", "clean.csv", "-o", name).returncode == 0
    done = inside(capsys, "tally", "add", "one.json", "other.json", "-o", "sum.json")
    assert (done.returncode, "'one.json' and 'other.json' have the same content" in done.stderr) == (2, True)
