"""--where and --exclude-annotator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from cli_files import answer
from command import inside, refused

Capsys = pytest.CaptureFixture[str]

VOTES = """item,annotator,label,sure
1,ada,x,0.9
1,bo,x,0.2
1,eli,y,0.7
2,ada,y,0.9
2,bo,x,0.8
2,eli,x,
3,ada,x,0.6
3,bo,x,0.9
3,eli,x,0.8
4,ada,y,0.7
4,bo,y,0.6
4,eli,y,0.5
"""
ITEMS = "item,suggested,language\n1,x,en\n2,y,en\n3,x,de\n4,y,\n"
DATA = ("votes.csv", "--items", "items.csv")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(VOTES, encoding="utf-8")
    Path("items.csv").write_text(ITEMS, encoding="utf-8")
    Path("names.txt").write_text("eli\n\nbo\n", encoding="utf-8")


def result(capsys: Capsys, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = answer(inside(capsys, *arguments, "--format", "json").stdout)["result"]
    return found


def exact(votes: list[list[str]], labels: list[str]) -> str:
    return str(dhkappa.dh_kappa(votes, labels).exact)


@pytest.mark.parametrize(
    ("options", "votes", "labels"),
    [
        (["--where", "language=en"], [["x", "x", "y"], ["y", "x", "x"]], ["x", "y"]),
        (["--where", "language=de,"], [["x"] * 3, ["y"] * 3], ["x", "y"]),
        (["--where", "sure >= 0.7"], [["x", "y"], ["y", "x"], ["x", "x"], ["y"]], list("xyxy")),
        (["--exclude-annotator", "eli"], [["x", "x"], ["y", "x"], ["x", "x"], ["y", "y"]], list("xyxy")),
        (
            ["--exclude-annotator", "eli", "--where", "sure>0.5"],
            [["x"], ["y", "x"], ["x", "x"], ["y", "y"]],
            list("xyxy"),
        ),
        (["--where", "item<=2", "--where", "sure!=0.2"], [["x", "y"], ["y", "x"]], ["x", "y"]),
    ],
)
def test_filters_of_commands(capsys: Capsys, options: list[str], votes: list[list[str]], labels: list[str]) -> None:
    found = result(capsys, "score", *DATA, *options)["labelers"]["suggested"]
    assert found["exact"] == exact(votes, labels)
    assert "filtered" in {note["code"] for note in found["notes"]}
    audit = result(capsys, "audit", *DATA, *options)
    assert audit["labelers"]["suggested"]["kappa"]["exact"] == exact(votes, labels)
    assert "filtered" in {note["code"] for note in audit["notes"]}
    assert "left out" in inside(capsys, "audit", *DATA, *options, "--format", "markdown").stdout
    made = inside(capsys, "tally", "make", *DATA, *options, "-o", "t.json")
    assert made.returncode == 0
    assert "left out" in made.stderr
    assert result(capsys, "score", "t.json")["labelers"]["suggested"]["exact"] == exact(votes, labels)


def test_what_was_left_out(capsys: Capsys) -> None:
    options = ("--where", "language!=de", "--exclude-annotator", "bo")
    first, second = result(capsys, "check", *DATA, *options)["filters"]
    assert first == {
        "where": "language!=de",
        "annotators": None,
        "n_items": 2,
        "n_votes": 6,
        "n_missing": 1,
        "absent": [],
    }
    assert second == {"where": None, "annotators": ["bo"], "n_items": 0, "n_votes": 2, "n_missing": 0, "absent": []}
    assert "Filter language!=de: 2 items and 6 votes were left out" in inside(capsys, "check", *DATA, *options).stdout
    review = inside(capsys, "review", *DATA, "--where", "language!=de")
    assert "2 items and 6 votes were left out" in review.stderr
    assert result(capsys, "review", *DATA, "--where", "language!=de")["filters"] == [first]
    assert result(capsys, "tally", "make", *DATA, *options, "-o", "t.json")["filters"] == [first, second]


def test_names_in_a_file(capsys: Capsys) -> None:
    found = result(capsys, "check", *DATA, "--exclude-annotator", "@names.txt")
    assert found["filters"][0]["annotators"] == ["eli", "bo"]
    Path("names.csv").write_text('"items","annotator"\n3,"eli"\n2,"bo"\n', encoding="utf-8")
    found = result(capsys, "check", *DATA, "--exclude-annotator", "@names.csv")
    assert found["filters"][0]["annotators"] == ["eli", "bo"]
    Path("names.txt").write_text("\n", encoding="utf-8")
    assert "no names" in refused(inside(capsys, "check", *DATA, "--exclude-annotator", "@names.txt"))


def test_names_separated_by_commas(capsys: Capsys) -> None:
    found = result(capsys, "check", *DATA, "--exclude-annotator", "eli, bo", "--exclude-annotator", "@names.txt")
    assert found["filters"][0]["annotators"] == ["eli", "bo"]
    Path("comma.csv").write_text(VOTES.replace("bo,", '"Bo, Jr",'), encoding="utf-8")
    found = result(capsys, "check", "comma.csv", *DATA[1:], "--exclude-annotator", '"Bo, Jr",eli')
    assert found["filters"][0]["annotators"] == ["Bo, Jr", "eli"]


def test_filters_are_part_of_the_next_command(capsys: Capsys) -> None:
    options = ["--where", "language!=d e", "--exclude-annotator", "bo"]
    assert result(capsys, "check", *DATA, *options)["next"].endswith("--where 'language!=d e' --exclude-annotator bo")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (["--where", "language=fr"], "'de', 'en'"),
        (["--where", "lnguage=en"], "Did you mean 'language'?"),
        (["--where", "language"], "is not a condition"),
        (["--where", "language>en"], "needs a number or a date"),
        (["--exclude-annotator", "@nofile.txt"], "File not found: 'nofile.txt'."),
        (["--exclude-annotator", "elie"], "Did you mean 'eli'?"),
        (["--exclude-annotator", "ada", "--exclude-annotator", "@names.txt"], "no annotator is left"),
    ],
)
def test_filters_that_are_refused(capsys: Capsys, option: list[str], text: str) -> None:
    assert text in " ".join(refused(inside(capsys, "score", *DATA, *option)).split())


def test_tallies_and_plans_without_pilot_take_no_filters(capsys: Capsys) -> None:
    inside(capsys, "tally", "make", *DATA, "-o", "t.json")
    for option in (["--where", "language=en"], ["--exclude-annotator", "eli"]):
        assert option[0] in refused(inside(capsys, "score", "t.json", *option))
        assert "there is no pilot" in refused(inside(capsys, "plan", "0.1", *option))
    assert json.loads(Path("t.json").read_text(encoding="utf-8"))


def test_hostile_names_are_inert(capsys: Capsys) -> None:
    Path("items.csv").write_text("item,suggested,\x1b[31mc\n1,x,<b>\n2,y,<b>\n3,x,q\n4,y,q\n", encoding="utf-8")
    found = inside(capsys, "audit", *DATA, "--where", "\x1b[31mc=<b>", "--format", "markdown").stdout
    assert "\x1b" not in found
    assert "<b>" not in found
    assert "\x1b" not in inside(capsys, "check", *DATA, "--where", "\x1b[31mc=<b>").stdout


@pytest.mark.parametrize(
    "command",
    [
        ["check", *DATA],
        ["audit", *DATA],
        ["audit", "votes.csv"],
        ["audit", *DATA, "--multilabel", ";"],
        ["score", *DATA],
        ["compare", *DATA, "--suggested", "suggested,other"],
        ["review", *DATA],
        ["review", *DATA, "--next", "1"],
        ["annotators", *DATA],
        ["tally", "make", *DATA, "-o", "t.json"],
        ["plan", "0.5", *DATA],
    ],
)
def test_every_command_says_what_was_left_out(capsys: Capsys, command: list[str]) -> None:
    Path("items.csv").write_text("item,suggested,other\n1,x,y\n2,y,y\n3,x,x\n4,y,x\n", encoding="utf-8")
    if "--items" in command and not {"compare", "annotators", "--multilabel"} & {*command}:
        command = [*command, "--suggested", "suggested"]
    options = ["--where", "sure!=0.2"]
    done = inside(capsys, *command, *options)
    assert done.returncode in (0, 2), done.stderr
    text = " ".join((done.stdout + done.stderr).split())
    assert text.count("Filter sure!=0.2: 0 items and 2 votes were left out") == 1, text
    told = answer(inside(capsys, *command, *options, "--format", "json").stdout)["result"]
    assert told["filters"] == [
        {"where": "sure!=0.2", "annotators": None, "n_items": 0, "n_votes": 2, "n_missing": 1, "absent": []}
    ]
