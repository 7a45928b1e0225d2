"""Excel files on the command line: sheets, items, errors, and the review queue as an Excel file."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import python_calamine
import xlsxwriter

from command import LLM, RULE, VOTES, WIDE, inside

Capsys = pytest.CaptureFixture[str]
ROWS = list(csv.reader(io.StringIO(WIDE)))


def write(path: Path, **sheets: list[list[str]]) -> Path:
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return path


def result(capsys: Capsys, *words: str) -> Any:
    done = inside(capsys, *words, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)["result"]


@pytest.fixture
def book(folder: Path) -> Path:
    return write(folder / "votes.xlsx", Notes=[["by"], ["me"]], Votes=ROWS)


def test_a_sheet(book: Path, capsys: Capsys) -> None:
    assert result(capsys, "score", "votes.xlsx", "--sheet", "Votes") == result(capsys, "score", "votes.csv")
    write(book, First=ROWS)
    assert result(capsys, "score", "votes.xlsx") == result(capsys, "score", "votes.csv")
    assert result(capsys, "score", "v*.xlsx") == result(capsys, "score", "votes.csv")


def test_check_names_the_sheet_in_the_next_command(book: Path, capsys: Capsys) -> None:
    done = inside(capsys, "check", "votes.xlsx", "--sheet", "Votes")
    assert "dhkappa audit votes.xlsx --sheet Votes" in done.stdout


def test_items(folder: Path, capsys: Capsys) -> None:
    long = [["item", "label"], *([f"t{place}", vote] for place, row in enumerate(VOTES, 1) for vote in row if vote)]
    rows = zip(RULE, LLM, strict=True)
    items = [["item", "suggested_rule", "suggested_llm"], *([f"t{n}", *labels] for n, labels in enumerate(rows, 1))]
    write(folder / "long.xlsx", Notes=[["by"], ["me"]], May=long)
    expected = result(capsys, "score", "votes.csv")
    for sheets in ({"April": [["by"], ["me"]], "May": items}, {"April": items, "June": [["by"], ["me"]]}):
        write(folder / "items.xlsx", **sheets)
        found = result(capsys, "score", "long.xlsx", "--sheet", "May", "--items", "items.xlsx")
        kappas = [{name: one["exact"] for name, one in whole["labelers"].items()} for whole in (found, expected)]
        assert kappas[0] == kappas[1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["votes.xlsx", "--sheet", "Vote"], "Did you mean 'Votes'?"),
        (["votes.csv", "--sheet", "Votes"], "Omit --sheet."),
        (["text.xlsx"], "is not an Excel file"),
        (["cut.xlsx"], "It may be damaged or truncated."),
    ],
)
def test_errors(words: list[str], text: str, book: Path, capsys: Capsys) -> None:
    Path("text.xlsx").write_text(WIDE, encoding="utf-8")
    Path("cut.xlsx").write_bytes(book.read_bytes()[:-100])
    done = inside(capsys, "score", *words)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_libraries(book: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    for words in (["score", "votes.xlsx"], ["review", "votes.csv", "-s", "rule", "-o", "review.xlsx"]):
        done = inside(capsys, *words)
        assert done.returncode == 2
        assert "pip install 'dhkappa[excel]'" in done.stderr
    assert not Path("review.xlsx").exists()


def test_a_tally_has_no_sheets(folder: Path, capsys: Capsys) -> None:
    assert inside(capsys, "tally", "make", "votes.csv", "-o", "tally.json").returncode == 0
    done = inside(capsys, "score", "tally.json", "--sheet", "Votes")
    assert done.returncode == 2
    assert "--sheet" in done.stderr


def test_review(folder: Path, capsys: Capsys) -> None:
    text = WIDE.replace("t1,", "007,").replace("t2,", "=1+1,").replace("t3,", "@SUM(A1),").replace("t4,", "\x1b[31m,")
    Path("odd.csv").write_text(text, encoding="utf-8")
    words = ["review", "odd.csv", "-s", "rule", "--allow", "too-few-items"]
    done = inside(capsys, *words, "-o", "review.xlsx")
    assert (done.returncode, done.stderr.strip()) == (0, "8 items written to review.xlsx.")
    expected = list(csv.reader(io.StringIO(inside(capsys, *words, "--raw").stdout)))
    header, *rows = python_calamine.load_workbook("review.xlsx").get_sheet_by_index(0).to_python()
    assert header == expected[0]
    for row, other in zip(rows, expected[1:], strict=True):
        for cell, value in zip(row, other, strict=True):
            if isinstance(cell, bool):
                assert str(cell).lower() == value
            elif isinstance(cell, float):
                assert cell == pytest.approx(float(value), rel=1e-15)  # Excel files have 16 digits
            else:
                assert cell == value
    assert {"007", "=1+1", "@SUM(A1)", "\x1b[31m"} < {row[0] for row in rows}
    assert not list(folder.glob(".*"))


def test_review_writes_ids_and_labels_as_text(folder: Path, capsys: Capsys) -> None:
    rows = [{"item": place, "suggested": place % 2, "ann_1": 1, "ann_2": place % 2} for place in range(1, 41)]
    Path("votes.json").write_text(json.dumps(rows), encoding="utf-8")
    done = inside(capsys, "review", "votes.json", "-o", "review.xlsx", "--allow", "looks-ordinal")
    assert done.returncode == 0, done.stderr
    header, *cells = python_calamine.load_workbook("review.xlsx").get_sheet_by_index(0).to_python()
    for name, kind in {"item": str, "suggested": str, "majority": str, "n_votes": float}.items():
        assert {type(row[header.index(name)]) for row in cells} == {kind}


def test_the_ending_of_the_review_queue(folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, "review", "votes.csv", "-s", "rule", "-o", "review.xls")
    assert done.returncode == 2
    assert ".csv or .xlsx" in done.stderr
    done = inside(capsys, "review", "votes.csv", "-s", "rule", "-o", "review.xlsx", "--format", "json")
    assert done.returncode == 2
