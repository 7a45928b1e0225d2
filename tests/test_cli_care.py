"""The command line takes care: of files of others, of counting twice, of passwords, of what a terminal obeys."""

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dhkappa
from dhkappa.cli import commands as cli
from test_cli import REPORTS, environment, folder, inside, refused, run

__all__ = ["folder"]  # a fixture


def test_a_tally_named_twice_does_not_count_twice(folder: Path) -> None:
    assert run("tally", "make", "votes.csv", "-o", "t.json").returncode == 0
    Path("link.json").symlink_to("t.json")
    for words in (["score", "t.json", "link.json"], ["audit", "t.json", "t.json"], ["score", "*.json"]):
        assert refused(run(*words)) == "a tally is named twice: its items would count twice."
    Path("link.json").unlink()
    assert run("score", "?.json").stdout == run("score", "t.json").stdout


def test_words_that_a_tally_cannot_take(folder: Path) -> None:
    assert run("tally", "make", "votes.csv", "-o", "t.json").returncode == 0
    for command in ("score", "audit", "compare"):
        sentence = refused(run(command, "t.json", "--missing", "spam", "--weights", "w"))
        assert "--missing and --weights would change nothing" in sentence


def test_a_pipe_is_refused_at_once(folder: Path) -> None:
    os.mkfifo("pipe.csv")
    for words in (["score", "pipe.csv"], ["tally", "make", "pipe.csv", "-o", "t.json"]):
        assert "is no regular file" in refused(run(*words))


def test_a_queue_is_the_same_bytes_wherever_it_goes(folder: Path) -> None:
    Path("escape.csv").write_text("item,suggested,ann_1,ann_2\n1,\x1b[31mred,red,red\n2,red,red,\x1b[31mred\n")
    assert run("items", "escape.csv", "-o", "queue.csv").returncode == 0
    assert run("items", "escape.csv").stdout == Path("queue.csv").read_text()
    assert "\x1b[31mred" in Path("queue.csv").read_text()


def test_nothing_of_the_data_is_obeyed_by_a_terminal(folder: Path) -> None:
    Path("escape.csv").write_text("item,suggested_\x1b[31ma,ann_1,ann_2\n1,x,x,x\n2,y,x,y\n")
    done = run("score", "escape.csv", "--fail-under", "0.99")
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert "\\x1b[31ma" in done.stderr


def test_a_demo_leaves_the_files_of_others(folder: Path) -> None:
    Path("annotations.csv").write_text("item,annotator,label\n1,me,x\n")
    Path("items.csv").write_text("item,suggested\n1,x\n")
    assert "that is not the demo's" in refused(run("demo", "-o", "."))
    assert Path("items.csv").read_text() == "item,suggested\n1,x\n"
    assert run("demo", "--items", "30", "-o", "own").returncode == 0
    assert run("demo", "--items", "40", "-o", "own").returncode == 0


@pytest.mark.skipif(not REPORTS, reason="a report needs dhkappa[report]")
def test_nothing_is_written_where_there_are_no_items(folder: Path) -> None:
    Path("header.csv").write_text("item,suggested,ann_1,ann_2\n")
    Path("old.html").write_text("last week")
    assert "hold no items" in refused(run("audit", "header.csv", "-o", "old.html"))
    assert Path("old.html").read_text() == "last week"


def test_only_rejected_items(folder: Path) -> None:
    every = list(csv.DictReader(io.StringIO(run("items", "votes.csv", "-s", "rule").stdout)))
    some = list(csv.DictReader(io.StringIO(run("items", "votes.csv", "-s", "rule", "--rejected").stdout)))
    assert some == [row for row in every if float(row["differential"]) < 0]
    assert 0 < len(some) < len(every)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:hush@h:1", "postgresql://me:***@h:1"),
        ("postgresql://me:hu@sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me:hu sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me@h/d?password=hush&x=1", "postgresql://me@h/d?password=***&x=1"),
        ("postgresql://me@h/d?x=1&sslpassword=hush", "postgresql://me@h/d?x=1&sslpassword=***"),
        ("votes:a@b.csv", "votes:a@b.csv"),
    ],
)
def test_passwords_are_covered(address: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dhkappa", "audit", address])
    assert cli._command() == shlex.join(["dhkappa", "audit", shown])
    assert "hush" not in cli._name(address)
    assert "sh" not in cli._name(address)


def test_a_fault_of_ours_is_one_sentence(folder: Path) -> None:
    broken = (
        "import dhkappa; dhkappa.tally = lambda *a, **b: 1 / 0\n"
        "from dhkappa.cli.commands import main; main(['score', 'votes.csv'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("dhkappa: this is a fault of dhkappa (ZeroDivisionError: division by zero)")
    assert done.stderr.count("\n") == 1


def test_several_patterns_name_the_columns_of_votes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.csv").write_text("item,suggested,b1,a1,b2,a2,c*\nx,p,p,p,q,p,q\ny,q,q,q,q,p,p\n", encoding="utf-8")
    for words, votes in (
        ("a*,b*", [["p", "p", "q", "p"], ["q", "q", "q", "p"]]),
        ("b?,[ab]*,a2", [["p", "p", "q", "p"], ["q", "q", "q", "p"]]),  # no column twice
        ("a*,c*", [["p", "p", "q"], ["q", "p", "p"]]),  # a column that is called so
        ("a1,c*", [["p", "q"], ["q", "p"]]),
    ):
        done = inside(capsys, "score", "two.csv", "-a", words, "--json")
        told = json.loads(done.stdout)["result"]["labelers"]["suggested"]
        assert told["exact"] == str(dhkappa.dh_kappa(votes, ["p", "q"]).exact), words
        assert told["n_votes"] == 2 * len(votes[0])
    for words, said in (("a*,x*", "annotators 'x*' matches no column"), ("a*,b3", "annotators column 'b3' is not in")):
        assert said in inside(capsys, "score", "two.csv", "-a", words).stderr


def test_tallies_of_different_labelers_are_told_what_to_do(folder: Path) -> None:
    Path("rule.csv").write_text("suggested_rule,ann_1,ann_2\nx,x,x\n", encoding="utf-8")
    for name in ("votes", "rule"):
        run("tally", "make", f"{name}.csv", "-o", f"{name}.json")
    done = run("tally", "add", "votes.json", "rule.json", "-o", "both.json")
    assert done.returncode == 2
    assert done.stderr == (
        "dhkappa: items that are counted together must all have the same labelers, and strata and weights or not: the "
        "labelers of some are 'rule', 'llm', of others 'rule'. Give the file where a labeler was absent an empty "
        "column for it, and make its tally anew.\n"
    )
    Path("rule.csv").write_text("suggested_rule,suggested_llm,ann_1,ann_2\nx,,x,x\n", encoding="utf-8")
    run("tally", "make", "rule.csv", "-o", "rule.json")
    assert run("tally", "add", "votes.json", "rule.json", "-o", "both.json").returncode == 0


def test_a_plan_says_which_items_of_the_pilot_tell_of_other_numbers_of_votes(folder: Path) -> None:
    shown = run("plan", "0.05", "votes.csv", "-s", "llm").stdout
    assert "all 8 items of the pilot, with the votes that they have." in " ".join(shown.split())
    assert (
        "Other numbers of votes on an item\n"
        "The comparison is from the 5 of 8 items of the pilot with 3 votes or more, and\n"
        "the plan for votes as in the pilot from all of them: the two need not line up.\n"
        "votes each"
    ) in shown
    assert shown.count("The comparison is from") == 1
    whole = run("plan", "0.05", "--categories", "5", "--accuracy", "0.9", "--labeler", "0.85").stdout
    assert "Other numbers of votes on an item\nvotes each" in whole


def test_a_plan_says_how_many_more_than_the_pilot_has(folder: Path) -> None:
    assert "The pilot has 8: " in run("plan", "0.05", "votes.csv", "-s", "llm").stdout
    assert "The pilot has 8: that is enough." in run("plan", "1", "votes.csv", "-s", "llm").stdout
