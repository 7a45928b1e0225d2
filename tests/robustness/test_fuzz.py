"""Fuzzing: a short run of every entry point, inputs found by longer runs, and checks that the fuzzer detects bugs."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis  # noqa: F401  # the file is left out if a library is missing
import numpy as np
import pandas as pd
import polars  # noqa: F401
import pyarrow as pa
import pytest

import dhkappa
import fuzz
import fuzz_check
from fuzz_check import FindingError, Runner
from fuzz_choices import Choices, Input
from fuzz_files import ENTRY_POINTS

SCRIPT = Path(__file__).parents[2] / "robustness" / "fuzz.py"

GRID = np.zeros((2, 2), [("x", int)])
SPAN = np.timedelta64(1, "s")
PAIR = np.array([[1, 2], [3, 4]])
VOTES = [["a", "a"], ["a", "b"], ["b", "b"]]
LABELS = ["a", "b", "a"]
TABLE = {"votes.csv": b"item,llm,ann_1,ann_2\n1,a,a,a\n2,b,b,a\n"}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner(tmp_path)
    with made.place():
        yield made


INPUTS = {"arrays": 250, "frames": 40, "files": 40, "exports": 40, "tallies": 80, "commands": 40}


@pytest.mark.parametrize("entry", sorted(ENTRY_POINTS))
def test_hypothesis(entry: str, runner: Runner) -> None:
    fuzz.by_hypothesis(entry, runner, INPUTS[entry], seed=7)
    assert runner.counts["inputs"] >= INPUTS[entry]
    assert min(runner.counts["accepted"], runner.counts["rejected"]) > 0


def test_atheris() -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("on no machine but Linux on x86_64: atheris")
    pytest.importorskip("atheris")
    words = ["--only", "arrays", "--generator", "atheris", "--inputs", "150", "--seed", "7"]
    run = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    [row] = [line.split(" | ") for line in run.stdout.splitlines() if line.startswith("| lists and arrays")]
    assert row[1:3] == ["atheris", "150"]
    assert int(row[5].strip(" |").replace(",", "")) > 500  # branches: atheris has instrumented the package


def test_all_entry_points_have_a_share() -> None:
    assert set(fuzz.ENTRY_POINTS) == set(ENTRY_POINTS)
    assert sum(share for share, _ in fuzz.ENTRY_POINTS.values()) == 100


def call(name: str, **arguments: Any) -> Input:
    return Input(name, arguments)


def then(name: str, **arguments: Any) -> Input:
    return Input("dh_kappa", {"data": VOTES, "suggested": LABELS}, method=(name, arguments))


ANSWER = {"from_name": "topic", "type": "choices", "value": {"choices": ["a"]}}


def export(**changes: Any) -> Input:
    task = {"id": 1, "data": {}, "annotations": [{"id": 1, "completed_by": 2, "result": [ANSWER]}], "predictions": []}
    held = json.dumps([task | changes]).encode()
    return Input("tally", {"read": {"path": "export.json", "input_format": "label_studio"}}, {"export.json": held})


def prodigy(**changes: Any) -> Input:
    task = {"_input_hash": 1, "accept": ["a"], "answer": "accept", "_session_id": "x"} | changes
    held = "\n".join(json.dumps(one) for one in (task, task | {"_session_id": "y"})).encode()
    return Input("tally", {"read": {"path": "export.jsonl", "input_format": "prodigy"}}, {"export.jsonl": held})


def tally_file(**changes: Any) -> Input:
    held = {"format": "dhkappa-tally", "version": 1, "categories": [], "declared": [], "missing": []}
    held |= {"items": 0, "votes": 0, "patterns": []} | changes
    return Input("load", {"also": "fleiss_kappa"}, {"tally.json": json.dumps(held).encode()})


REJECTED = {
    "array as a label": call("tally", data=[[PAIR]], suggested=["a"]),
    "table as a label": call("tally", data=[[pa.table({"a": [1]})]], suggested=["a"]),
    "frame as a category": call("tally", data=[], suggested=[], categories=[pd.DataFrame({"a": [1]})]),
    "table of labelers": call("simulate", n_items=2, labelers=pa.table({"a": [1]})),
    "line break as prevalence": call("simulate", n_items=2, prevalence="\r"),
    "table as accuracy": call("simulate", n_items=2, accuracy=pa.table({"a": [1]})),
    "array as number of annotators": call("simulate", n_items=2, annotators=np.array(1.5)),
    "array as method": then("confidence_interval", method=PAIR),
    "array as method of a test": then("permutation_test", method=PAIR),
    "array as alternative": then("permutation_test", alternative=PAIR),
    "too many annotators": call("simulate", n_items=50, annotators=2**31),
    "timedelta as level": then("confidence_interval", confidence_level=SPAN),
    "timedelta as number of resamples": then("permutation_test", n_resamples=SPAN),
    "timedelta as accuracy": call("simulate", n_items=2, accuracy=SPAN),
    "timedelta as half width": call("plan", half_width=SPAN),
    "array as number of replicates": then("bootstrap", n_resamples=PAIR),
    "series as duplicates": call("tally", data=VOTES, duplicates=pd.Series(["first", "x"])),
    "array as format": Input("tally", {"read": {"path": "x.csv", "input_format": PAIR}}),
    "number as question": Input("tally", {"read": {"path": "x.csv", "question": 1}}),
    "two exports": Input("tally", {"read": {"path": ["a", "b"], "input_format": "prodigy"}}),
    "structured labels": Input("tally", {"data": "votes.csv", "suggested": GRID}, TABLE),
    "array as count": Input(
        "tally", {"data": "votes.csv", "item": "item", "label": "llm", "annotator": "x", "count": GRID}, TABLE
    ),
    "large negative counts": call("tally", counts=[[-(10**400)]]),
    "large number as a chart": Input(
        "audit", {"data": VOTES, "suggested": LABELS}, method=("chart", {"name": 10**5000})
    ),
    "missing category of counts": call("tally", counts=[[0, 2], [3, 0]], missing=[1]),
    "drafts that are no list": export(drafts=True),
    "result that is no list": export(predictions=[{"result": 1}]),
    "surrogate in a labeler": export(predictions=[{"model_version": "\ud800", "result": [ANSWER]}]),
    "pattern that is a list": tally_file(patterns=[[]]),
    "votes that are no pairs": tally_file(patterns=[{"votes": [1], "items": 1}]),
}
ACCEPTED = {
    "options that are no list": prodigy(options=True),
    "fraction as level": then("by_category", confidence_level=Fraction(1, 2)),
    "fraction as level of a bootstrap": then(
        "confidence_interval", confidence_level=Fraction(1, 2), method="bootstrap", n_resamples=9
    ),
    "half-precision counts": call("fleiss_kappa", counts=np.array([[np.float16(2)]], object)),
    "boolean among numbers": call("tally", data=[[2], [0]], suggested=[2, 2], categories=["a", True, 2, 0]),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str, runner: Runner) -> None:
    assert runner.run(REJECTED[name])


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str, runner: Runner) -> None:
    assert runner.run(ACCEPTED[name]) == ""


def _fail(*_: Any, **__: Any) -> None:
    raise KeyError("absent")


class TestFindings:
    """Bugs that the fuzzer must detect."""

    VALID = Input("tally", {"data": VOTES, "suggested": LABELS}, votes=VOTES, labels=LABELS, valid=True)

    def test_valid_input_is_accepted(self, runner: Runner) -> None:
        assert runner.run(self.VALID) == ""
        assert runner.counts == {"inputs": 1, "accepted": 1}

    def test_foreign_error(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", _fail)
        with pytest.raises(KeyError):
            runner.run(self.VALID)

    def test_hypothesis_shows_the_input(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", _fail)
        with pytest.raises(KeyError) as caught:
            fuzz.by_hypothesis("arrays", runner, 100, seed=1)
        assert any("Input(call='tally'" in note for note in caught.value.__notes__)

    def test_wrong_count(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        right = dhkappa.tally
        monkeypatch.setattr(dhkappa, "tally", lambda data, suggested: right(data[1:], suggested[1:]))
        with pytest.raises(FindingError, match="wrong counts"):
            runner.run(self.VALID)

    def test_wrong_kappa(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        right = dhkappa.dh_kappa
        monkeypatch.setattr(dhkappa, "dh_kappa", lambda data: right(dhkappa.tally(VOTES, LABELS[::-1])))
        other = Input("tally", {"data": VOTES, "suggested": ["a", "a", "b"]}, votes=VOTES, labels=["a", "a", "b"])
        with pytest.raises(FindingError, match="wrong result"):
            runner.run(other)

    def test_valid_input_rejected(self, runner: Runner) -> None:
        with pytest.raises(FindingError, match="valid input rejected: "):
            runner.run(Input("tally", {"data": VOTES, "suggested": []}, valid=True))

    def test_value_that_is_no_label(self, runner: Runner) -> None:
        with pytest.raises(FindingError, match="not a label"):
            runner.run(Input("tally", self.VALID.arguments, votes=[["a", 1.5]], labels=["a"]))

    @pytest.mark.parametrize(
        ("message", "code"), [("", "code"), ("x" * 2000, "code"), ("Traceback", "code"), ("x", ""), ("x", "No code")]
    )
    def test_improper_error(self, message: str, code: str, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        def reject(**_: Any) -> None:
            raise dhkappa.DataError(message, code=code)

        monkeypatch.setattr(dhkappa, "tally", reject)
        with pytest.raises(FindingError, match="improper error"):
            runner.run(self.VALID)

    def test_bug_reported_as_an_engine_error(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        def reject(**_: Any) -> None:
            try:
                dhkappa.errors.counted(1, None)  # type: ignore[arg-type]
            except Exception as error:
                raise dhkappa.DataError("DuckDB failed.", code="engine-error") from error

        monkeypatch.setattr(dhkappa, "tally", reject)
        with pytest.raises(FindingError, match="bug of dhkappa"):
            runner.run(self.VALID)

    def test_warning(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", lambda **_: warnings.warn("beware", stacklevel=1))
        with pytest.raises(FindingError, match="warning: UserWarning: beware"):
            runner.run(Input("tally", {}))

    def test_file_left_behind(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", lambda **_: Path("draft").write_text("x"))
        with pytest.raises(FindingError, match="files left: \\['draft'\\]"):
            runner.run(Input("tally", {}))

    @pytest.mark.parametrize("name", ["dhkappa-draft", "draft"])
    def test_temporary_folder_left_behind(self, name: str, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", lambda **_: Path(tempfile.gettempdir(), name).mkdir())
        with pytest.raises(FindingError, match=f"files left: \\['{name}'\\]"):
            runner.run(Input("tally", {}))

    def test_time_limit(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fuzz_check, "TIME_LIMIT", 0.2)
        monkeypatch.setattr(dhkappa, "tally", lambda **_: time.sleep(30))
        with pytest.raises(FindingError, match=r"over 0\.2 seconds"):
            runner.run(Input("tally", {}))

    def test_bug_in_a_command(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dhkappa.cli.commands.main", _fail)
        with pytest.raises(KeyError):
            runner.run(Input("command", {"args": ["score", "votes.csv", "-s", "llm"]}, TABLE))

    def test_crash(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        script = tmp_path / "crash.py"
        script.write_text(
            "import os, pathlib, sys\n"
            "pathlib.Path(sys.argv[-1], 'last').write_text('the input')\n"
            "print('words', flush=True)\nos.abort()\n"
        )
        monkeypatch.setattr(fuzz, "__file__", str(script))
        with pytest.raises(SystemExit) as caught:
            fuzz.run_process("files", "Hypothesis", 10, 1)
        assert caught.value.code == 1
        out = capsys.readouterr().out
        assert "words" in out
        assert "files by Hypothesis: exit code -6; last input:\nthe input" in out


def test_choices_are_read_from_bytes() -> None:
    choices = Choices(bytes([3, 255, 1, 0]))
    assert choices.of("abcde") == "d"
    assert choices.upto(9) == 255 % 10
    assert choices.upto(999) == 256
    assert choices.of("abc") == "a"
    assert not choices.one_in()
