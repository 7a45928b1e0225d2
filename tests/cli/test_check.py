"""dhkappa check, and the problems in other commands."""

import json
import shlex
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
