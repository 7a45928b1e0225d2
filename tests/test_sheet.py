"""CSV for spreadsheets: what looks like a formula is text there, numbers stay numbers, nothing is lost."""

import csv
import io
import math
from pathlib import Path

import pytest
from dhkappa.report.csv import sheet_of
from test_cli import inside, run

from dhkappa.table import Table

FORMULAS = [
    "=1+1",
    '=HYPERLINK("file:///x","see")',
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "   +1+1",
    " \t@x",
    "\u00a0=1+1",
    "\u3000=1+1",
    "\ufeff=1+1",
    "\x0b=1+1",
    "\uff1d1+1",
    "\uff0b1+1",
    "\uff0d1+1",
    "\uff20x",
]
PLAIN = ["spam", "a=b", "1=1", "c-d", "e@f", "it's", "", "漢字", 'say "hi"', "a,b", "two\nlines", "3 * 4", "50%"]
NUMBERS = ["-1", "+2", "-0.5", "7", "-1e5"]


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def column(text: str) -> list[str]:
    head, *rows = read(text)
    assert len(head) == 1
    return ["".join(row) for row in rows]


@pytest.mark.parametrize("formula", FORMULAS, ids=ascii)
def test_a_formula_gets_an_apostrophe(formula: str) -> None:
    table = Table({"item": [formula]})
    assert column(sheet_of(table)) == [f"'{formula}"]
    assert column(sheet_of(table, safe=False)) == [formula]


@pytest.mark.parametrize("safe", [True, False])
def test_other_text_and_numbers_as_text_stay(safe: bool) -> None:
    assert column(sheet_of(Table({"item": [*PLAIN, *NUMBERS]}), safe=safe)) == [*PLAIN, *NUMBERS]


@pytest.mark.parametrize("text", ["x\r=1+1", "x;=1+1", "x\t=1+1", "x\n=1+1", 'x","=1+1'], ids=ascii)
@pytest.mark.parametrize("safe", [True, False])
def test_no_sign_inside_a_text_starts_a_new_cell(text: str, safe: bool) -> None:
    """Whatever a spreadsheet takes for a separator, it does not look for one inside quotes."""
    written = sheet_of(Table({"item": [text]}), safe=safe)
    assert written.endswith('"{}"\n'.format(text.replace('"', '""')))
    assert column(written) == [text]


def test_numbers_truth_values_and_missing_values() -> None:
    table = Table(
        {"n": [-3, 0], "x": [-0.25, math.nan], "flag": [True, False], "none": [None, None], "tiny": [1e-300, 1 / 3]}
    )
    assert read(sheet_of(table)) == [
        ["n", "x", "flag", "none", "tiny"],
        ["-3", "-0.25", "true", "", "1e-300"],
        ["0", "", "false", "", "0.3333333333333333"],
    ]
    assert "-3,-0.25" in sheet_of(table)  # bare, so that they are numbers


def test_names_of_columns_are_safe_too() -> None:
    assert read(sheet_of(Table({"=x": [1], "y": [2]})))[0] == ["'=x", "y"]


def test_nul_does_not_cut_the_file() -> None:
    text = sheet_of(Table({"item": ["a\0b", "\0=1", "last"]}))
    assert "\0" not in text
    assert len(read(text)) == 4
    assert read(text)[1] == ["a␀b"]


def test_no_rows() -> None:
    assert read(sheet_of(Table({"item": [], "votes": []}))) == [["item", "votes"]]


ITEMS = ["=1+1", "-1", "x\r\n=2", 'say "hi", you', "漢"]


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Five items whose names and labels are trouble for a spreadsheet."""
    with (tmp_path / "votes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "suggested", "ann_1", "ann_2", "ann_3"])
        for place, name in enumerate(ITEMS):
            writer.writerow([name, "@yes", *(["+no", "+no", "@yes"] if place % 2 else ["@yes", "@yes", "+no"])])
    return tmp_path / "votes.csv"


def test_items_writes_a_safe_sheet(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run("items", votes, "-o", votes.with_name("review.csv"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"5 items written to {votes.with_name('review.csv')}.\n"
    text = votes.with_name("review.csv").read_bytes().decode()
    head, *rows = read(text)
    assert head[:5] == ["item", "suggested", "panel", "tie", "votes"]
    by_name = {row[0]: row for row in rows}
    assert set(by_name) == {"'=1+1", "-1", *ITEMS[2:]}
    assert by_name["-1"][1:5] == ["'@yes", "'+no", "false", "'+no: 2, @yes: 1"]
    printed = inside(capsys, "items", votes)
    assert printed.stdout == text
    assert inside(capsys, "items", votes, "-o", "-").stdout == text


def test_items_raw_and_most(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, *rows = read(inside(capsys, "items", votes, "--raw").stdout)
    assert {row[0] for row in rows} == set(ITEMS)
    assert {row[1] for row in rows} == {"@yes"}
    assert len(read(inside(capsys, "items", votes, "--limit", "2").stdout)) == 3
    assert read(inside(capsys, "items", votes, "-n", "2", "--raw").stdout)[1:] == rows[:2]
