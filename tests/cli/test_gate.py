"""The gate on the command line: outcomes and exit codes."""

import json
from pathlib import Path

import pytest

import dhkappa
from command import LLM, VOTES, inside

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-s", "llm", "--fail-under", "0.01"], 0, ""),  # lower limit 0.0114
        (["-s", "llm", "--fail-under", "0.02"], 3, "llm undecided: kappa 0.625 (0.011 to 0.928), required 0.02."),
        (["-s", "llm", "--fail-under", "0.95"], 1, "llm failed: kappa 0.625 (0.011 to 0.928), required 0.95."),
        (["-s", "llm", "--fail-under", "0.6", "--on", "value"], 0, ""),  # 0.6253
        (["-s", "llm", "--fail-under", "0.63", "--on", "value"], 1, "llm failed: kappa 0.625, required 0.63."),
        (["-s", "llm", "--fail-under", "0.02", "--confidence-level", "0.9"], 0, ""),  # a narrower interval
        (["--fail-under", "0"], 3, "rule undecided: kappa"),  # every labeler has to pass
        (["--fail-under", "-0.4"], 0, ""),
        (["-s", "llm", "--fail-under", "annotators"], 3, "llm undecided: score on the scale from 0"),
        (["-s", "llm", "--min-coverage", "1"], 0, ""),
        (["-s", "llm", "--fail-under", "agreement=0.1"], 0, ""),
        (["-s", "llm", "--fail-under", "agreement=0.99"], 1, "llm failed: agreement"),
        (["-s", "llm", "--fail-under", "recall:news=0.9"], 3, "voted 'news' would probably settle it."),
    ],
)
@pytest.mark.parametrize("command", ["score", "audit"])
def test_gate(command: str, words: list[str], code: int, said: str, folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, command, "votes.csv", *words)
    assert done.returncode == code
    assert done.stdout  # the output is complete
    assert done.stderr.count("\n") == bool(code)
    assert said in done.stderr
    gate = json.loads(inside(capsys, command, "votes.csv", *words, "--format", "json").stdout)["gate"]
    assert gate["outcome"] == {0: "pass", 1: "fail", 3: "undecided"}[code]


def test_gate_of_compare(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "compare", "votes.csv", "-s", "rule,llm", "--fail-under", "0.99")
    assert done.returncode == 1
    assert "rule failed" in done.stderr
    assert "llm failed" in done.stderr


def test_unknown_category_at_the_gate(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "score", "votes.csv", "--fail-under", "recall:new=0.8")
    assert done.returncode == 2
    assert "Category 'new' not found." in done.stderr
    assert "Did you mean 'news'?" in done.stderr


def test_no_gate(folder: Path, capsys: Capsys) -> None:
    assert json.loads(inside(capsys, "score", "votes.csv", "--format", "json").stdout)["gate"] is None


def test_outcome_is_shown_everywhere(folder: Path, capsys: Capsys) -> None:
    asked = ["audit", "votes.csv", "-s", "llm", "--fail-under", "0.95"]
    sentence = "llm failed: kappa 0.625 (0.011 to 0.928), required 0.95."
    assert sentence in " ".join(inside(capsys, *asked).stdout.split())
    assert sentence in inside(capsys, *asked, "--format", "markdown").stdout.replace("\\", "")
    pytest.importorskip("vl_convert")
    inside(capsys, *asked, "-o", "report.html")
    assert sentence in Path("report.html").read_text()


@pytest.mark.parametrize("on", ["low", "value"])
def test_gate_on_the_weighted_kappa(on: str, folder: Path, capsys: Capsys) -> None:
    order = ["ham", "spam", "news"]
    weighted = dhkappa.dh_kappa(VOTES, LLM, categories=order, weights="linear")
    asked = ["score", "votes.csv", "-s", "llm", "--categories", ",".join(order), "--weights", "linear", "--on", on]
    reached = weighted.value if on == "value" else weighted.confidence_interval().low
    assert inside(capsys, *asked, "--fail-under", f"{reached - 0.001:.4f}").returncode == 0
    failed = inside(capsys, *asked, "--fail-under", "1")
    assert failed.returncode == 1
    assert f"weighted kappa {weighted.value:.3f}" in failed.stderr


@pytest.mark.parametrize("on", ["low", "value"])
def test_an_undefined_kappa_does_not_pass(on: str, folder: Path, capsys: Capsys) -> None:
    Path("same.csv").write_text("suggested,ann_1,ann_2\nx,x,x\nx,x,x\n")
    done = inside(capsys, "score", "same.csv", "--fail-under", "-1", "--on", on)
    assert done.returncode == 3
    assert "undefined" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fail-under", "60"], "write 0.60"),
        (["--fail-under", "people"], "a number such as 0.6, or annotators"),
        (["--fail-under", "-3"], "not a possible kappa"),
        (["--keep", "0.8"], "--fail-under annotators"),
        (["--fail-under", "0.5", "--margin", "0.1"], "--fail-under annotators"),
        (["--fail-under", "annotators", "--margin", "0.1", "--keep", "0.8"], "cannot be combined"),
        (["--min-coverage", "80"], "from 0 to 1"),
    ],
)
def test_wrong_gate(words: list[str], said: str, folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "score", "votes.csv", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_passed_gate_is_shown(folder: Path, capsys: Capsys) -> None:
    for command in ("score", "compare"):
        done = inside(capsys, command, "votes.csv", "--fail-under", "-1")
        assert done.returncode == 0
        assert "Gate passed." in done.stdout


@pytest.mark.parametrize(
    ("table", "why", "shown"),
    [
        (
            "item,ann_1,ann_2\n1,a,a\n2,b,b\n3,a,b\n",
            "there are no suggested labels",
            "Two votes on the same item agree",
        ),
        ("item,llm,ann_1\n1,a,a\n2,b,b\n3,a,b\n", "no item has two votes", "llm gives the annotator's label on"),
    ],
    ids=["no labels", "one vote"],
)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["-o", "r.html"], "No report was written: {}."),
        (["--fail-under", "0.5"], "The gate was not tested: {}."),
        (["--min-coverage", "0.5"], "The gate was not tested: {}."),
        (["-o", "r.html", "--fail-under", "0.5"], "No report was written: {0}. The gate was not tested: {0}."),
    ],
)
def test_results_are_shown_if_there_can_be_no_report_or_gate(
    asked: list[str], said: str, table: str, why: str, shown: str, folder: Path, capsys: Capsys
) -> None:
    if "-o" in asked:
        pytest.importorskip("vl_convert", reason="a report needs it")
    Path("other.csv").write_text(table, encoding="utf-8")
    labels = ["-s", "llm"] if "llm" in table else []
    done = inside(capsys, "audit", "other.csv", *labels, *asked)
    assert (done.returncode, done.stderr) == (2, f"dhkappa: {said.format(why)}\n")
    assert shown in " ".join(done.stdout.split())
    assert not Path("r.html").exists()
    as_json = inside(capsys, "audit", "other.csv", *labels, *asked, "--format", "json")
    assert (as_json.returncode, as_json.stderr) == (2, done.stderr)
    assert json.loads(as_json.stdout)["result"]["summary"]
    assert inside(capsys, "audit", "other.csv", *labels).returncode == 0
