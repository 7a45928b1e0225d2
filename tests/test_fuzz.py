"""Hostile input at every entrance: a short run of each, what longer runs have found, and a fuzzer that can fail."""

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

import hypothesis  # noqa: F401  # the tests are left out where these cannot be had
import numpy as np
import pandas as pd
import polars  # noqa: F401
import pyarrow as pa
import pytest

import dhkappa
import fuzz
import fuzz_trial
from dhkappa.inputs.backends import duckdb as duck
from fuzz_dice import Dice, Input
from fuzz_files import MADE_BY
from fuzz_trial import FindingError, Trial

SCRIPT = Path(__file__).parents[1] / "robustness" / "fuzz.py"

GRID = np.zeros((2, 2), [("x", int)])
SPAN = np.timedelta64(1, "s")
PAIR = np.array([[1, 2], [3, 4]])
VOTES = [["a", "a"], ["a", "b"], ["b", "b"]]
LABELS = ["a", "b", "a"]
TABLE = {"votes.csv": b"item,llm,ann_1,ann_2\n1,a,a,a\n2,b,b,a\n"}


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    made = Trial(tmp_path)
    with made.place():
        yield made


INPUTS = {"arrays": 250, "frames": 40, "files": 40, "exports": 40, "tallies": 80, "commands": 40}


@pytest.mark.parametrize("entrance", sorted(MADE_BY))
def test_hypothesis_finds_nothing(entrance: str, trial: Trial) -> None:
    fuzz.by_hypothesis(entrance, trial, INPUTS[entrance], seed=7)
    assert trial.counts["inputs"] >= INPUTS[entrance]
    assert min(trial.counts["answered"], trial.counts["refused"]) > 0


def test_atheris_finds_nothing() -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("atheris is to be had for Linux on x86_64 only")
    pytest.importorskip("atheris")
    command = [sys.executable, str(SCRIPT), "--only", "arrays", "--driver", "atheris", "--inputs", "150", "--seed", "7"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [row] = [line.split(" | ") for line in ended.stdout.splitlines() if line.startswith("| lists and arrays")]
    assert row[1:3] == ["atheris", "150"]
    assert int(row[5].strip(" |").replace(",", "")) > 500  # branches, so that atheris does see dhkappa


def test_every_entrance_has_its_share() -> None:
    assert set(fuzz.SHARES) == set(fuzz.ENTRANCES) == set(MADE_BY)
    assert sum(fuzz.SHARES.values()) == 100


def call(ask: str, **words: Any) -> Input:
    return Input(ask, words)


def then(name: str, **words: Any) -> Input:
    return Input("dh_kappa", {"data": VOTES, "suggested": LABELS}, then=(name, words))


ANSWER = {"from_name": "topic", "type": "choices", "value": {"choices": ["a"]}}


def export(**changes: Any) -> Input:
    task = {"id": 1, "data": {}, "annotations": [{"id": 1, "completed_by": 2, "result": [ANSWER]}], "predictions": []}
    held = json.dumps([task | changes]).encode()
    return Input("tally", {"read": {"path": "export.json", "format": "label_studio"}}, {"export.json": held})


def prodigy(**changes: Any) -> Input:
    task = {"_input_hash": 1, "accept": ["a"], "answer": "accept", "_session_id": "x"} | changes
    held = "\n".join(json.dumps(one) for one in (task, task | {"_session_id": "y"})).encode()
    return Input("tally", {"read": {"path": "export.jsonl", "format": "prodigy"}}, {"export.jsonl": held})


def tally_file(**changes: Any) -> Input:
    held = {"format": "dhkappa-tally", "version": 1, "categories": [], "declared": [], "missing": []}
    held |= {"items": 0, "votes": 0, "patterns": []} | changes
    return Input("load", {"also": "fleiss_kappa"}, {"tally.json": json.dumps(held).encode()})


FOUND = [
    ("array as a label", call("tally", data=[[PAIR]], suggested=["a"]), "votes holds array([[1, 2], [3, 4]])"),
    ("table as a label", call("tally", data=[[pa.table({"a": [1]})]], suggested=["a"]), "(type Table) at item 0"),
    ("frame as a category", call("tally", data=[], suggested=[], categories=[pd.DataFrame({"a": [1]})]), "categories"),
    ("table of labelers", call("simulate", n_items=2, labelers=pa.table({"a": [1]})), "labelers must map names"),
    ("line break as prevalence", call("simulate", n_items=2, prevalence="\r"), "prevalence must be 3 numbers"),
    ("table as accuracy", call("simulate", n_items=2, accuracy=pa.table({"a": [1]})), "accuracy must be between 0 and"),
    ("array of no annotators", call("simulate", n_items=2, annotators=np.array(1.5)), "annotators must be a whole"),
    ("array as method", then("interval", method=PAIR), "method must be one of beta"),
    ("array as method of a test", then("test", method=PAIR), "method must be one of 'exact', 'z'"),
    ("array as alternative", then("test", alternative=PAIR), "alternative must be one of"),
    ("annotators beyond memory", call("simulate", n_items=50, annotators=2**31), "50 items with 2,147,483,648 votes"),
    ("span of time as level", then("interval", level=SPAN), "level must be between 0 and 1"),
    ("span of time as draws", then("test", n=SPAN), "n must be a whole number of draws"),
    ("span of time as accuracy", call("simulate", n_items=2, accuracy=SPAN), "accuracy must be between 0 and 1"),
    ("span of time as half_width", call("plan", half_width=SPAN), "half_width must be"),
    ("options that are none", prodigy(options=True), ""),
    ("array of replicates", then("bootstrap", n=PAIR), "n, the number of replicates, must be a whole number"),
    ("fraction as level", then("by_category", level=Fraction(1, 2)), ""),
    ("fraction as level of a bootstrap", then("interval", level=Fraction(1, 2), method="bootstrap", n=9), ""),
    ("series as duplicates", call("tally", data=VOTES, duplicates=pd.Series(["first", "x"])), "duplicates must be"),
    ("array as format", Input("tally", {"read": {"path": "x.csv", "format": PAIR}}), "format must be one of"),
    ("number as question", Input("tally", {"read": {"path": "x.csv", "question": 1}}), "question must be the name"),
    ("two exports", Input("tally", {"read": {"path": ["a", "b"], "format": "prodigy"}}), "which is one file"),
    (
        "structured labels",
        Input("tally", {"data": "votes.csv", "suggested": GRID}, TABLE),
        "suggested must name columns",
    ),
    (
        "table as count",
        Input("tally", {"data": "votes.csv", "item": "item", "label": "llm", "annotator": "x", "count": GRID}, TABLE),
        "annotator ('x') and count (array(",
    ),
    ("small float counts", call("fleiss_kappa", counts=np.array([[np.float16(2)]], object)), ""),
    ("huge negative counts", call("tally", counts=[[-(10**400)]]), "counts must be whole numbers"),
    (
        "huge number as a chart",
        Input("audit", {"data": VOTES, "suggested": LABELS}, then=("chart", {"name": 10**5000})),
        "chart a value of type int that cannot be shown",
    ),
    (
        "missing column of counts",
        call("tally", counts=[[0, 2], [3, 0]], missing=[1]),
        "missing names 1, which a column",
    ),
    ("boolean among numbers", call("tally", data=[[2], [0]], suggested=[2, 2], categories=["a", True, 2, 0]), ""),
    ("drafts that are none", export(drafts=True), "task 1 has True as its drafts, which is no list"),
    ("result that is none", export(predictions=[{"result": 1}]), "has 1 as its result"),
    (
        "half a sign as a labeler",
        export(predictions=[{"model_version": "\ud800", "result": [ANSWER]}]),
        "valid Unicode",
    ),
    ("pattern that is a list", tally_file(patterns=[[]]), "of another kind than in a tally"),
    ("votes that are no pairs", tally_file(patterns=[{"votes": [1], "items": 1}]), "of another kind than in a tally"),
]


@pytest.mark.parametrize(("given", "words"), [case[1:] for case in FOUND], ids=[case[0] for case in FOUND])
def test_what_was_found_stays_mended(given: Input, words: str, trial: Trial) -> None:
    sentence = trial.run(given)
    assert words in sentence
    assert bool(sentence) == bool(words)


def test_chart_of_an_array_is_refused() -> None:
    found = dhkappa.audit(VOTES, LABELS)
    with pytest.raises(dhkappa.DataError, match="chart array"):
        found.chart(PAIR)  # type: ignore[arg-type]


def _fail(*_: Any, **__: Any) -> None:
    raise KeyError("absent")


class TestTheFuzzerCanFail:
    """Each thing that must not happen is found where it does."""

    SOUND = Input("tally", {"data": VOTES, "suggested": LABELS}, votes=VOTES, labels=LABELS, sound=True)

    def test_sound_input_is_answered(self, trial: Trial) -> None:
        assert trial.run(self.SOUND) == ""
        assert trial.counts == {"inputs": 1, "answered": 1}

    def test_foreign_error(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", _fail)
        with pytest.raises(KeyError):
            trial.run(self.SOUND)

    def test_hypothesis_shows_the_input(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", _fail)
        with pytest.raises(KeyError) as caught:
            fuzz.by_hypothesis("arrays", trial, 100, seed=1)
        assert any("Input(ask='tally'" in note for note in caught.value.__notes__)

    def test_wrong_count(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        right = dhkappa.tally
        monkeypatch.setattr(dhkappa, "tally", lambda data, suggested: right(data[1:], suggested[1:]))
        with pytest.raises(FindingError, match="counted wrongly"):
            trial.run(self.SOUND)

    def test_wrong_kappa(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        right = dhkappa.dh_kappa
        monkeypatch.setattr(dhkappa, "dh_kappa", lambda data: right(dhkappa.tally(VOTES, LABELS[::-1])))
        other = Input("tally", {"data": VOTES, "suggested": ["a", "a", "b"]}, votes=VOTES, labels=["a", "a", "b"])
        with pytest.raises(FindingError, match="answered wrongly"):
            trial.run(other)

    def test_sound_input_refused(self, trial: Trial) -> None:
        with pytest.raises(FindingError, match="is sound, but was refused: votes has 3 items"):
            trial.run(Input("tally", {"data": VOTES, "suggested": []}, sound=True))

    def test_no_label_answered(self, trial: Trial) -> None:
        with pytest.raises(FindingError, match="no label"):
            trial.run(Input("tally", self.SOUND.words, votes=[["a", 1.5]], labels=["a"]))

    @pytest.mark.parametrize("message", ["", "no sentence", "two\nlines.", "x" * 2000 + "."])
    def test_no_sentence(self, message: str, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(**_: Any) -> None:
            raise dhkappa.DataError(message)

        monkeypatch.setattr(dhkappa, "tally", refuse)
        with pytest.raises(FindingError, match="without a sentence"):
            trial.run(self.SOUND)

    def test_warning(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", lambda **_: warnings.warn("beware", stacklevel=1))
        with pytest.raises(FindingError, match="warned: UserWarning: beware"):
            trial.run(Input("tally", {}))

    def test_file_left_behind(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", lambda **_: Path("draft").write_text("x"))
        with pytest.raises(FindingError, match="left behind: \\['draft'\\]"):
            trial.run(Input("tally", {}))

    @pytest.mark.parametrize("name", ["dhkappa-draft", "draft"])
    def test_temporary_folder_left_behind(self, name: str, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", lambda **_: Path(tempfile.gettempdir(), name).mkdir())
        with pytest.raises(FindingError, match=f"left behind: \\['{name}'\\]"):
            trial.run(Input("tally", {}))

    def test_folder_of_the_living_process_may_stay(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        def spilling(**_: Any) -> None:
            duck._spill_folder.cache_clear()
            monkeypatch.setattr(duck, "folder_on_disk", lambda: None)
            assert Path(duck._spill_folder()).parent == Path(tempfile.gettempdir())

        monkeypatch.setattr(dhkappa, "tally", spilling)
        assert trial.run(Input("tally", {})) == ""
        duck._spill_folder.cache_clear()  # or what comes after would spill into this test's folder

    def test_too_slow(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fuzz_trial, "LIMIT", 0.2)
        monkeypatch.setattr(dhkappa, "tally", lambda **_: time.sleep(30))
        with pytest.raises(FindingError, match=r"took over 0\.2 seconds"):
            trial.run(Input("tally", {}))

    def test_fault_in_a_command(self, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dhkappa, "tally", _fail)
        with pytest.raises(KeyError):
            trial.run(Input("command", {"args": ["score", "votes.csv", "-s", "llm"]}, TABLE))

    def test_process_that_dies_is_told_with_its_last_input(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        script = tmp_path / "dies.py"
        script.write_text(
            "import os, pathlib, sys\n"
            "pathlib.Path(sys.argv[-1], 'last').write_text('the input')\n"
            "print('words', flush=True)\nos.abort()\n"
        )
        monkeypatch.setattr(fuzz, "__file__", str(script))
        with pytest.raises(SystemExit) as caught:
            fuzz.started("files", "Hypothesis", 10, 1)
        assert caught.value.code == 1
        said = capsys.readouterr().out
        assert "words" in said
        assert "files by Hypothesis ended with -6; the last input was\nthe input" in said


def test_choices_are_read_off_bytes() -> None:
    dice = Dice(bytes([3, 255, 1, 0]))
    assert dice.of("abcde") == "d"
    assert dice.upto(9) == 255 % 10
    assert dice.upto(999) == 256
    assert dice.of("abc") == "a"
    assert not dice.seldom()
