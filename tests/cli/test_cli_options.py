"""Options: how they are split, typed and checked."""

import json
import os
from pathlib import Path

import pytest

import dhkappa
from command import inside
from dhkappa.cli.files import check_output
from dhkappa.cli.options import is_tally, several
from dhkappa.errors import flag
from expect import expect_error

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["a"], ["a"]),
        (["a,b", "c"], ["a", "b", "c"]),
        (["a, b", " c"], ["a", "b", "c"]),
        ([" ", "NA,  ,x"], [" ", "NA", "  ", "x"]),
        (['"a, b",c'], ["a, b", "c"]),
        (["a\nb"], ["a\nb"]),
        ([""], []),
        ([], []),
        (["naïve,漢"], ["naïve", "漢"]),
        (['say "hi"'], ['say "hi"']),
    ],
)
def test_several(given: list[str], names: list[str]) -> None:
    assert several(given) == names


@pytest.mark.parametrize(
    ("parameter", "name"),
    [("items", "--items"), ("sample_weight", "--sample-weight"), ("pilot", "PILOT"), ("data", "FILE")],
)
def test_parameters_are_written_as_flags(parameter: str, name: str) -> None:
    assert flag(parameter) == name


def test_tallies_are_told_from_other_files(folder: Path) -> None:
    Path("t.json").write_text('{"format": "dhkappa-tally",\n')
    assert is_tally("t.json")
    assert not any(map(is_tally, ["votes.csv", "absent", ".", "a\0b", ""]))


def test_tallies_are_known_however_they_are_laid_out(folder: Path, capsys: Capsys) -> None:
    whole = dhkappa.tally("votes.csv", "suggested_llm")
    whole.save("whole.json")
    held = json.loads(Path("whole.json").read_text())
    for text in (
        json.dumps(held, indent=4),
        json.dumps(held, separators=(",", ":")),
        "\n" + json.dumps(dict(reversed(held.items()))),
        json.dumps(held | {"source_notes": ["long" * 10_000]}, sort_keys=True),
        json.dumps(dict(reversed((held | {"source_notes": ["long" * 10_000]}).items()))),
    ):
        Path("again.json").write_text(text)
        assert is_tally("again.json")
        assert inside(capsys, "score", "again.json", "--format", "json").returncode == 0
        assert inside(capsys, "tally", "add", "again.json", "-o", "sum.json").returncode == 0
        assert dhkappa.Tally.load("sum.json").n_votes == whole.n_votes
    Path("rows.json").write_text('{"text": "\\"format\\": \\"dhkappa-tally\\""}\n')
    assert not is_tally("rows.json")


def test_an_unwritable_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the answer is simulated."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with expect_error("no-permission", "output"):
        check_output("x.csv", [], [".csv"])
