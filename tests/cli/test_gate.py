"""The gate: --fail-under and the exit code 1."""

import json
from pathlib import Path

import pytest

import dhkappa
from command import LLM, RULE, VOTES, inside

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "code", "below"),
    [
        (["-s", "llm", "--fail-under", "0.01"], 0, ""),  # lower limit 0.0114
        (["-s", "llm", "--fail-under", "0.02"], 1, "llm (lower limit 0.0114)"),
        (["-s", "llm", "--fail-under", "0.6", "--on", "value"], 0, ""),  # 0.6253
        (["-s", "llm", "--fail-under", "0.63", "--on", "value"], 1, "llm (kappa 0.6253)"),
        (["-s", "llm", "--fail-under", "0.02", "--confidence-level", "0.9"], 0, ""),  # a narrower interval
        (["--fail-under", "0"], 1, "rule (lower limit -0.3141)"),  # every labeler has to pass
        (["--fail-under", "-0.4"], 0, ""),
    ],
)
@pytest.mark.parametrize("command", ["score", "audit", "compare"])
def test_gate(command: str, words: list[str], code: int, below: str, folder: Path, capsys: Capsys) -> None:
    if command == "compare" and "-s" in words:
        words = ["--suggested", "rule,llm", *words[2:]]
        passed = dhkappa.compare(VOTES, {"rule": RULE, "llm": LLM}).kappas
        bar, level = float(words[3]), 0.9 if "--confidence-level" in words else 0.95
        low = [k.value if "value" in words else k.confidence_interval(level).low for k in passed.values()]
        code, below = int(min(low) < bar), ""
    done = inside(capsys, command, "votes.csv", *words)
    assert done.returncode == code
    assert done.stdout  # the output is complete
    assert done.stderr.count("\n") == code
    assert below in done.stderr
    assert ("--fail-under" in done.stderr) == bool(code)
    gate = json.loads(inside(capsys, command, "votes.csv", *words, "--format", "json").stdout)["gate"]
    assert all(gate["passed"].values()) == (code == 0)


@pytest.mark.parametrize("command", ["score", "audit"])
@pytest.mark.parametrize("on", ["low", "value"])
def test_gate_on_the_weighted_kappa(command: str, on: str, folder: Path, capsys: Capsys) -> None:
    order = ["ham", "spam", "news"]
    weighted, plain = dhkappa.dh_kappa(VOTES, LLM, categories=order, weights="linear"), dhkappa.dh_kappa(VOTES, LLM)
    reached, other = (k.value if on == "value" else k.confidence_interval().low for k in (weighted, plain))
    text = f"{'lower limit of ' if on == 'low' else ''}weighted kappa {reached:.4f}"
    asked = [command, "votes.csv", "-s", "llm", "--categories", ",".join(order), "--weights", "linear", "--on", on]
    bar = f"{(reached + other) / 2:.4f}"  # one of the two kappas is below
    assert inside(capsys, *asked, "--fail-under", bar).returncode == (0 if reached > other else 1)
    passed = inside(capsys, *asked, "--fail-under", "-1")
    assert "Weighted kappa, with random and majority labels" in passed.stdout
    assert "weighted Fleiss" in passed.stdout
    failed = inside(capsys, *asked, "--fail-under", "1")
    assert text in failed.stderr
    assert text not in failed.stdout
    gate = json.loads(inside(capsys, *asked, "--fail-under", "-1", "--format", "json").stdout)["gate"]
    assert gate == {"fail_under": -1.0, "on": on, "metric": "weighted", "passed": {"llm": True}}
    assert "weighted" not in inside(capsys, command, "votes.csv", "-s", "llm", "--fail-under", "-1").stdout.lower()


@pytest.mark.parametrize("on", ["low", "value"])
def test_an_undefined_kappa_does_not_pass(on: str, folder: Path, capsys: Capsys) -> None:
    Path("same.csv").write_text("suggested,ann_1,ann_2\nx,x,x\nx,x,x\n")
    done = inside(capsys, "score", "same.csv", "--fail-under", "-1", "--on", on)
    assert done.returncode == 1
    assert "undefined" in done.stderr
