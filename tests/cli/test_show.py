"""Columns of the data next to items on the command line: in every output, complete or on one line, and inert."""

import csv
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import python_calamine
import xlsxwriter

import dhkappa
from cli_files import answer
from command import inside

Capsys = pytest.CaptureFixture[str]
EVIL = [
    "<script>alert(1)</script>",
    '=HYPERLINK("http://evil","x")',
    "javascript:alert(1)",
    "data:text/html,<script>alert(2)</script>",
    "https://example.org/a?b=c&d=<script>",
    "\x1b[31mred\x1b]0;title\x07",
    "@SUM(A1)|`x`**b**",
    "first\n\nsecond\x0b line " + "long " * 100 + "END",
    "https://example.org/a?b=c&d=%20#e",
    "\u202egnp.exe",
]
HEAD = ["item", "suggested_llm", "ann_1", "ann_2", "text", "votes", "<b>=1+1</b>"]
SHOW = ["--show", "text,votes,<b>=1+1</b>"]
WORDS = ["--allow", "too-few-items", "--allow", "labels-from-votes", "--allow", "looks-clustered"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"i{place}", "a", *("ab" if place % 3 else "bb"), text, f"v{place}", text]
        for place, text in enumerate(EVIL * 4)
    ]
    with Path("votes.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    return tmp_path


def output(capsys: Capsys, *words: str) -> str:
    done = inside(capsys, *words, *WORDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_csv_and_json_are_complete(data: Path, capsys: Capsys) -> None:
    rows = list(csv.DictReader(io.StringIO(output(capsys, "review", "votes.csv", *SHOW, "--raw"))))
    assert len(rows) == 40
    for row in rows:
        place = int(row["item"][1:])
        assert (row["text"], row["item_votes"], row["<b>=1+1</b>"]) == (EVIL[place % 10], f"v{place}", EVIL[place % 10])
    found = answer(output(capsys, "review", "votes.csv", *SHOW, "--format", "json"))["result"]["review"]
    assert [*found[0]][:5] == ["item", "text", "item_votes", "<b>=1+1</b>", "suggested"]
    assert {row["text"] for row in found} == {*EVIL}
    whole = answer(output(capsys, "audit", "votes.csv", *SHOW, "--format", "json"))["result"]["labelers"]["llm"]
    assert {row["text"] for row in whole["review"]} == {*EVIL}


@pytest.mark.parametrize("words", [[], ["--next", "20"]])
def test_columns_with_names_of_results_are_shown(data: Path, capsys: Capsys, words: list[str]) -> None:
    names = ["score", "reason", "majority", "comment", "new_label"]
    rows = [["item", "suggested", "ann_1", "ann_2", *names]]
    rows += [
        [str(place), "a", *("ab" if place % 3 else "bb"), *(f"{name} {place}" for name in names)] for place in range(20)
    ]
    with Path("votes.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    text = output(capsys, "review", "votes.csv", "--show", ",".join(names), *words)
    for row in csv.DictReader(io.StringIO(text)):
        for name in names:
            assert f"{name} {row['item']}" in (row.get(name), row.get(f"item_{name}"))
        assert row["label" if words else "new_label"] == ""  # to fill in


def test_formulas_in_csv_are_guarded(data: Path, capsys: Capsys) -> None:
    rows = list(csv.reader(io.StringIO(output(capsys, "review", "votes.csv", *SHOW))))
    assert {cell[0] for row in rows for cell in row if cell} & {*"=+@"} == set()


def test_cells_of_excel_are_text(data: Path, capsys: Capsys) -> None:
    output(capsys, "review", "votes.csv", *SHOW, "-o", "review.xlsx")
    header, *rows = python_calamine.load_workbook("review.xlsx").get_sheet_by_index(0).to_python()
    place = header.index("text")
    assert {str(row[place]).replace("\r", "") for row in rows} == {*EVIL}

    with zipfile.ZipFile("review.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml")
        assert b"<f>" not in sheet
        assert b"hyperlink" not in sheet.lower()
        assert not [name for name in book.namelist() if "sheet1.xml.rels" in name]


def test_text_that_excel_cannot_hold_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(
        f"item,suggested,ann_1,ann_2,text\nx,a,b,b,{'y' * 40_000}\ny,a,a,a,z\n", encoding="utf-8"
    )
    output(capsys, "review", "votes.csv", "-o", "review.xlsx")
    cells = python_calamine.load_workbook("review.xlsx").get_sheet_by_index(0).to_python()
    assert cells[1][1] == "y" * 32_766 + "…"
    assert len(list(csv.reader(io.StringIO(output(capsys, "review", "votes.csv"))))[1][1]) == 40_000


def test_terminal_and_markdown_have_lines_without_controls(data: Path, capsys: Capsys) -> None:
    for form in ("text", "markdown"):
        text = output(capsys, "audit", "votes.csv", *SHOW, "--format", form)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
        assert "END" not in text
        assert form == "text" or "<" not in text.replace("\\<", "")
    assert "first second" in text


def test_report(data: Path, capsys: Capsys) -> None:
    output(capsys, "audit", "votes.csv", *SHOW, "-o", "report.html")
    page = Path("report.html").read_text("utf-8")
    queue = page[page.index('id="queue-table"') : page.index('id="sample-size"')]
    assert {*re.findall('href="([^"]*)"', queue)} == {"https://example.org/a?b=c&amp;d=%20#e"}
    assert queue.count("<a ") == queue.count('rel="noopener noreferrer"') == 8
    assert queue.count("<details>") == queue.count("</details>") == 8
    assert "END" in queue
    assert "<script" not in queue
    assert "\x1b" not in queue
    assert "\u202e" not in queue
    heads = re.findall('<th scope="col"[^>]*>(.*?)</th>', queue)
    assert heads[:5] == ["#", "Item", "<bdi>text</bdi>", "<bdi>item_votes</bdi>", "<bdi>&lt;b&gt;=1+1&lt;/b&gt;</bdi>"]
    assert 'data-suggested="5"' in queue
    assert heads[5] == "Suggested"


def test_none_and_unknown_columns(data: Path, capsys: Capsys) -> None:
    done = inside(capsys, "review", "votes.csv", "--show", "txt")
    assert done.returncode == 2
    assert "Did you mean 'text'?" in done.stderr
    assert "text" not in dhkappa.audit(dhkappa.read("votes.csv", show=[])).review().names
    check = answer(inside(capsys, "check", "votes.csv", "--show", "text,votes", "--format", "json").stdout)["result"]
    roles = {row["name"]: (row["role"], row["reason"]) for row in check["columns"]}
    assert roles["text"] == roles["votes"] == ("shown next to items", "named by you")


def write_book(path: str, **sheets: list[list[str]]) -> None:
    with xlsxwriter.Workbook(path) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)


def test_a_sheet_of_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    votes = [["item", "label"], *([f"i{place}", label] for place in range(6) for label in ("a", "ab"[place % 2]))]
    items = [["item", "suggested", "text"], *([f"i{place}", "a", f"t{place}"] for place in range(6))]
    write_book("book.xlsx", Votes=votes, Items=items)
    write_book("votes.xlsx", Votes=votes)
    for words in (["book.xlsx"], ["votes.xlsx"], ["book.xlsx", "--sheet", "Votes"]):
        text = output(capsys, "review", *words, "--items", "book.xlsx", "--items-sheet", "Items")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert {row["item"]: row["text"] for row in rows} == {f"i{place}": f"t{place}" for place in range(6)}
    done = inside(capsys, "review", "book.xlsx", "--items", "book.xlsx", "--items-sheet", "Item")
    assert (done.returncode, "Did you mean 'Items'?" in done.stderr) == (2, True)
    done = inside(capsys, "review", "book.xlsx", "--items-sheet", "Items")
    assert (done.returncode, "--items-sheet" in done.stderr) == (2, True)


EXPORTS = {
    "label_studio/mail_whole.json": ("text", r"mail \d+"),
    "label_studio/mail_min.json": ("text", r"mail \d+"),
    "argilla/nested.json": ("text", ".+"),
    "argilla/flat.json": ("text", ".+"),
    "doccano/reviews.zip": ("text", ".+"),
    "prodigy/choice.jsonl": ("text", ".+"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_texts_of_exports(name: str) -> None:
    column, pattern = EXPORTS[name]
    data = dhkappa.read(str(Path(__file__).parents[1] / "exports" / name), duplicates="last")
    found: Any = dhkappa.audit(data)
    table = found.review(found.labelers[0]) if isinstance(found, dhkappa.Audit) else found.disagreements()
    assert len(table)
    assert all(re.fullmatch(pattern, row[column], re.DOTALL) for row in table)
