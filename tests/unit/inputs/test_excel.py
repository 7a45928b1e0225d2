"""Excel files: the same values and results as from CSV, sheets, and files that cannot be read."""

import csv
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
import python_calamine
import xlsxwriter

import dhkappa
from dhkappa.inputs import excel
from dhkappa.inputs.excel import read_sheet
from dhkappa.table import Table
from expect import expect_error

Rows = Sequence[Sequence[Any]]
HOSTILE = [
    "=1+1",
    "@SUM(A1)",
    "+1",
    "-1+1",
    "\x1b[31mred",
    "_x0041_",
    "a\nb",
    " x ",
    "'q'",
    "<b>&amp;",
    "日本",
    "007",
    "1e5",
]
VOTES: list[list[Any]] = [
    ["item", "suggested_llm", "ann_1", "ann_2", "ann_3"],
    *([f"{place:03d}", "spam", "spam", "spam", "ham" if place % 3 else "spam"] for place in range(1, 15)),
    *([f"{place:03d}", "ham", "ham", None if place % 2 else "ham", "spam"] for place in range(15, 30)),
]


def write_book(path: Path, sheets: dict[str, Rows], hidden: Iterable[str] = (), charts: Iterable[str] = ()) -> Path:
    """Write sheets of cells; text stays text. Chart sheets come first."""
    options = {"strings_to_formulas": False, "strings_to_urls": False, "default_date_format": "yyyy-mm-dd hh:mm"}
    with xlsxwriter.Workbook(str(path), options) as book:
        for name in charts:
            chart = book.add_chart({"type": "line"})
            chart.add_series({"values": "=Votes!$A$1:$A$3"})
            book.add_chartsheet(name).set_chart(chart)
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                for place, value in enumerate(row):
                    if isinstance(value, str) and value:
                        sheet.write_string(number, place, value)
                    else:
                        sheet.write(number, place, value)
            if name in hidden:
                sheet.hide()
    return path


def column(path: Path, values: Sequence[Any]) -> list[str | None]:
    """Return what is read from a column of cells, next to a column without blanks."""
    rows = [["n", "a"], *([place, value] for place, value in enumerate(values))]
    return read_sheet(str(write_book(path, {"Sheet1": rows})), None)["a"]


def edit(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Change the parts of an Excel file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def edit_sheet(path: Path, old: bytes, new: bytes) -> Path:
    """Replace bytes of the first sheet, which must occur there."""

    def change(name: str, data: bytes) -> bytes:
        assert name != "xl/worksheets/sheet1.xml" or old in data
        return data.replace(old, new) if name == "xl/worksheets/sheet1.xml" else data

    return edit(path, change)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return write_book(tmp_path / "votes.xlsx", {"Votes": VOTES})


class TestValues:
    def test_numbers(self, tmp_path: Path) -> None:
        values = [1, 2.0, -3, 0, 2.5, 0.1 + 0.2, 1e-7, 123456789012345, 1e20]
        expected = ["1", "2", "-3", "0", "2.5", "0.3", "1e-07", "123456789012345", "100000000000000000000"]
        assert column(tmp_path / "a.xlsx", values) == expected

    def test_text_stays_text(self, tmp_path: Path) -> None:
        assert column(tmp_path / "a.xlsx", HOSTILE) == HOSTILE

    def test_numbers_and_text_in_one_column(self, tmp_path: Path) -> None:
        assert column(tmp_path / "a.xlsx", [7, "007", "x", 7.5]) == ["7", "007", "x", "7.5"]

    def test_dates(self, tmp_path: Path) -> None:
        day = datetime(2026, 11, 18)
        values = [date(2026, 11, 18), day, day.replace(hour=10, minute=30), day.replace(hour=10, microsecond=123000)]
        expected = ["2026-11-18", "2026-11-18", "2026-11-18T10:30:00", "2026-11-18T10:00:00.123"]
        assert column(tmp_path / "a.xlsx", values) == expected
        assert column(tmp_path / "a.xlsx", [time(10, 30)]) == ["10:30:00"]

    def test_durations(self, tmp_path: Path) -> None:
        with xlsxwriter.Workbook(str(tmp_path / "a.xlsx")) as made:
            sheet = made.add_worksheet()
            sheet.write_string(0, 0, "a")
            sheet.write_number(1, 0, 1.5, made.add_format({"num_format": "[h]:mm"}))
        assert read_sheet(str(tmp_path / "a.xlsx"), None) == {"a": ["36:00:00"]}

    def test_booleans_and_blanks(self, tmp_path: Path) -> None:
        assert column(tmp_path / "a.xlsx", [True, False, None, ""]) == ["true", "false", None, None]

    def test_errors_and_formulas(self, tmp_path: Path) -> None:
        with xlsxwriter.Workbook(str(tmp_path / "a.xlsx")) as made:
            sheet = made.add_worksheet()
            sheet.write_row(2, 27, ["a", "b"])  # the column AB
            for row, (formula, value) in enumerate([("=NA()", "#N/A"), ("=1/0", "#DIV/0!"), ("=1+1", 2), ("=A1", "x")]):
                sheet.write_formula(row + 3, 27, formula, None, value)
            sheet.write_number(6, 28, 1)
        expected = {"a": ["#DIV/0!", "2", "x"], "b": [None, None, "1"]}  # #N/A is missing, and its row has no value
        assert read_sheet(str(tmp_path / "a.xlsx"), None) == expected

    def test_columns_without_a_name_and_rows_without_values(self, tmp_path: Path) -> None:
        rows: Rows = [
            ["a", None, 2024, None],
            [1, "x", 2],
            [None, "note"],
            [None],
            [3, None, None, "y"],
            [None, None, None, ""],
        ]
        path = write_book(tmp_path / "a.xlsx", {"Sheet1": rows})
        assert read_sheet(str(path), None) == {"a": ["1", "3"], "2024": ["2", None]}

    def test_cells_above_and_left_of_the_table_may_be_empty(self, tmp_path: Path) -> None:
        rows: Rows = [[None], [None, None, "a", "b"], [None, None, 1, 2]]
        assert read_sheet(str(write_book(tmp_path / "a.xlsx", {"S": rows})), None) == {"a": ["1"], "b": ["2"]}

    def test_a_header_without_rows(self, tmp_path: Path) -> None:
        assert read_sheet(str(write_book(tmp_path / "a.xlsx", {"S": [["a", "b"]]})), None) == {"a": [], "b": []}


class TestSameAsCsv:
    def csv_of(self, path: Path, rows: Rows) -> Path:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        return path

    def test_audit(self, book: Path, tmp_path: Path) -> None:
        other = self.csv_of(tmp_path / "votes.csv", VOTES)
        found, expected = (dhkappa.audit(path, rng=1).to_dict() for path in (book, other))
        assert found == expected
        reviews = [dhkappa.audit(path, rng=1).review().to_dicts() for path in (book, other)]
        assert reviews[0] == reviews[1]
        assert {row["item"] for row in reviews[0]} == {row[0] for row in VOTES[1:]}

    def test_numbers_as_labels_weights_and_ids(self, tmp_path: Path) -> None:
        rows: list[list[Any]] = [["item", "suggested", "ann_1", "ann_2", "w"]]
        rows += [[place, place % 3, place % 3, place % 2, 1 + place / 4] for place in range(30)]
        other = self.csv_of(tmp_path / "votes.csv", [[str(value).removesuffix(".0") for value in row] for row in rows])
        paths = write_book(tmp_path / "votes.xlsx", {"S": rows}), other
        found, expected = (dhkappa.dh_kappa(path, sample_weight="w") for path in paths)
        assert found.exact == expected.exact
        assert found.se == expected.se

    def test_long_format_with_items(self, tmp_path: Path) -> None:
        long: list[list[Any]] = [["item", "annotator", "label"]]
        long += [[row[0], f"p{place}", vote] for row in VOTES[1:] for place, vote in enumerate(row[2:]) if vote]
        items = [row[:2] for row in VOTES]
        kappas = []
        for write, ending in ((lambda path, rows: write_book(path, {"S": rows}), "xlsx"), (self.csv_of, "csv")):
            votes = write(tmp_path / f"long.{ending}", long)
            kappas.append(dhkappa.dh_kappa(votes, items=write(tmp_path / f"items.{ending}", items)).exact)
        assert kappas[0] == kappas[1]

    def test_patterns(self, book: Path, tmp_path: Path) -> None:
        whole = dhkappa.dh_kappa(book).exact
        for place, rows in enumerate((VOTES[1:9], VOTES[9:]), 1):
            write_book(tmp_path / f"day{place}.xlsx", {f"S{place}": [VOTES[0], *rows]})
        assert dhkappa.dh_kappa(str(tmp_path / "day*.xlsx")).exact == whole
        write_book(tmp_path / "day3.xlsx", {"S": [["item", "ann_1"], ["1", "a"]]})
        with expect_error("columns-differ", "path"):
            dhkappa.read(tmp_path / "day*.xlsx")
        with expect_error("mixed-file-types", "path"):
            dhkappa.read([book, self.csv_of(tmp_path / "votes.csv", VOTES)])

    def test_macro_files_and_endings_in_capitals(self, book: Path) -> None:
        for name in ("votes.xlsm", "VOTES2.XLSX"):
            book.with_name(name).write_bytes(book.read_bytes())
            assert dhkappa.dh_kappa(book.with_name(name)).exact == dhkappa.dh_kappa(book).exact

    def test_names_of_parts_as_other_programs_write_them(self, book: Path) -> None:
        expected = dhkappa.dh_kappa(book).exact
        edit(book, lambda name, data: data.replace(b'Target="worksheets/', b'Target="/xl/worksheets/'))
        assert dhkappa.dh_kappa(book).exact == expected

    def test_prefixes_and_text_in_cells(self, book: Path) -> None:
        """Some programs write <x:c>, and text without the table of shared texts."""
        sheet = (
            b'<x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:sheetData>'
            b'<x:row r="1"><x:c r="A1" t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c></x:row>'
            b'<x:row r="2"><x:c r="A2" t="str"><x:f>B1</x:f><x:v>007</x:v></x:c></x:row>'
            b'<x:row r="3"><x:c r="A3" t="e"><x:f>1/0</x:f><x:v>#DIV/0!</x:v></x:c></x:row></x:sheetData></x:worksheet>'
        )
        edit(book, lambda name, data: sheet if name == "xl/worksheets/sheet1.xml" else data)
        assert read_sheet(str(book), None) == {"a": ["007", "#DIV/0!"]}

    def test_a_changed_file_is_refused(self, book: Path) -> None:
        data = dhkappa.read(book)
        write_book(book, {"Votes": VOTES[:10]})
        with expect_error("file-changed"):
            dhkappa.dh_kappa(data)


class TestSheets:
    SHEETS: dict[str, Rows] = {"Notes": [["a"], ["b"]], "Votes": VOTES, "Old votes": VOTES[:9]}  # noqa: RUF012

    def test_by_name(self, book: Path) -> None:
        write_book(book, self.SHEETS)
        assert dhkappa.read(book, sheet="Votes").counts.columns.labelers == ("llm",)
        assert read_sheet(str(book), None) == {"a": ["b"]}
        assert len(read_sheet(str(book), "Old votes")["item"]) == 8

    def test_hidden_sheets_and_charts_are_skipped_by_default(self, book: Path) -> None:
        write_book(book, self.SHEETS, hidden=["Notes"], charts=["Chart"])
        assert list(read_sheet(str(book), None)) == VOTES[0]
        assert read_sheet(str(book), "Notes") == {"a": ["b"]}

    def test_unknown(self, book: Path) -> None:
        write_book(book, self.SHEETS)
        with expect_error("sheet-not-found", "sheet") as caught:
            dhkappa.read(book, sheet="votes")
        assert "Sheets: 'Notes', 'Votes', 'Old votes'. Did you mean 'Votes'?" in str(caught.value)
        with expect_error("invalid-sheet", "sheet"):
            dhkappa.read(book, sheet=1)  # type: ignore[arg-type]

    def test_charts(self, book: Path) -> None:
        write_book(book, self.SHEETS, charts=["Chart"])
        with expect_error("sheet-without-cells", "sheet"):
            dhkappa.read(book, sheet="Chart")

    def test_a_workbook_of_charts(self, book: Path) -> None:
        with pytest.warns(UserWarning, match="Unknown worksheet"):  # the data of the chart
            write_book(book, {}, charts=["Chart"])
        with expect_error("sheet-without-cells", "path"):
            dhkappa.read(book)

    def test_of_other_files(self, book: Path, tmp_path: Path) -> None:
        path = tmp_path / "votes.csv"
        path.write_text("item,suggested,ann_1,ann_2\n1,a,a,a\n", encoding="utf-8")
        export = tmp_path / "export.json"
        export.write_text('[{"id": 1, "data": {}, "annotations": []}]', encoding="utf-8")
        for other in (path, str(export), "postgresql://host/name"):
            with expect_error("option-not-supported", "sheet"):
                dhkappa.read(other, sheet="Votes")

    def test_of_items(self, tmp_path: Path) -> None:
        long = [["item", "label"], *([row[0], vote] for row in VOTES[1:] for vote in row[2:] if vote)]
        items = [row[:2] for row in VOTES]
        votes = write_book(tmp_path / "long.xlsx", {"Notes": [["x"], ["y"]], "May": long})
        expected = dhkappa.dh_kappa(write_book(tmp_path / "wide.xlsx", {"S": VOTES})).exact
        same = write_book(tmp_path / "same.xlsx", {"April": [["x"], ["y"]], "May": items})
        first = write_book(tmp_path / "first.xlsx", {"April": items, "June": [["x"], ["y"]]})
        for path in (same, str(first)):
            assert dhkappa.dh_kappa(dhkappa.read(votes, sheet="May", items=path)).exact == expected
        other = dhkappa.read(same, sheet="May")  # a sheet of another name, or of the same file
        assert dhkappa.dh_kappa(dhkappa.read(votes, sheet="May", items=other)).exact == expected
        text = tmp_path / "long.csv"
        text.write_text("".join(f"{item},{label}\n" for item, label in long), encoding="utf-8")
        assert dhkappa.dh_kappa(dhkappa.read(text, sheet="May", items=same)).exact == expected
        with expect_error("sheet-not-found"):
            dhkappa.read(text, sheet="May", items=first)


class TestUnreadable:
    def test_empty_sheets(self, book: Path) -> None:
        with expect_error("empty-file", "path"):
            dhkappa.read(write_book(book, {"S": []}))
        with expect_error("empty-file", "path"):
            book.write_bytes(b"")
            dhkappa.read(book)

    def test_names(self, book: Path) -> None:
        with expect_error("ambiguous-columns"):
            dhkappa.read(write_book(book, {"S": [["a", "A"], [1, 2]]}))
        write_book(book, {"S": [["a"], ["b"]]})
        edit(book, lambda name, data: data.replace(b"<t>a</t>", b"<t></t>"))
        with expect_error("no-header", "path"):
            dhkappa.read(book)

    def test_other_content(self, book: Path) -> None:
        book.write_text("item,label\n1,a\n", encoding="utf-8")
        with expect_error("wrong-file-type", "path"):
            dhkappa.read(book)
        book.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000))  # how Excel encrypts a file
        with expect_error("file-protected", "path"):
            dhkappa.read(book)
        with zipfile.ZipFile(book, "w") as archive:
            archive.writestr("a.txt", "b")
        with expect_error("unreadable-file", "path"):
            dhkappa.read(book)

    def test_compression_that_cannot_be_unpacked(self, book: Path) -> None:
        with zipfile.ZipFile(book, "a", zipfile.ZIP_LZMA) as archive:
            archive.writestr("xl/x.bin", b"some text" * 100)
        data = bytearray(book.read_bytes())
        place = data.rindex(b"xl/x.bin", 0, data.rindex(b"PK\x01\x02"))
        data[place + 12 : place + 40] = bytes(28)
        book.write_bytes(data)
        with expect_error("unreadable-file", "path"):
            dhkappa.read(book)

    def test_another_ending(self, book: Path) -> None:
        path = book.with_suffix(".csv")
        path.write_bytes(book.read_bytes())
        with expect_error("wrong-file-type") as caught:
            dhkappa.read(path)
        assert ".xlsx" in caught.value.hint

    def test_truncated(self, book: Path) -> None:
        whole = book.read_bytes()
        for length in (5, 30, len(whole) // 2, len(whole) - 1):
            book.write_bytes(whole[:length])
            with expect_error("unreadable-file", "path"):
                dhkappa.read(book)

    def test_damaged(self, book: Path, tmp_path: Path) -> None:
        """Random changes of the parts give an error or a table, never another exception."""
        whole, rng, refused = book.read_bytes(), random.Random(1), 0
        with zipfile.ZipFile(book) as archive:
            names = [name for name in archive.namelist() if name.startswith("xl/") and name.endswith((".xml", ".rels"))]
        for _ in range(150):
            book.write_bytes(whole)
            chosen, share, byte = rng.choice(names), rng.random(), rng.randrange(256)

            def change(name: str, data: bytes, which: tuple[str, float, int] = (chosen, share, byte)) -> bytes:
                place = int(len(data) * which[1])
                changed = data[:place] + bytes([which[2]]) + data[place + (which[2] % 9) :]
                return changed if name == which[0] else data

            edit(book, change)
            try:
                read_sheet(str(book), None)
            except dhkappa.DataError:
                refused += 1
        assert refused > 10

    def test_a_panic_of_the_library(self, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class PanicException(BaseException):
            pass

        def fail(error: BaseException) -> Any:
            def from_path(path: str) -> None:
                raise error

            return type("Workbook", (), {"from_path": staticmethod(from_path)})

        monkeypatch.setattr(python_calamine, "CalamineWorkbook", fail(PanicException("index out of bounds")))
        with expect_error("unreadable-file", "path"):
            read_sheet(str(book), None)
        monkeypatch.setattr(python_calamine, "CalamineWorkbook", fail(python_calamine.PasswordError("locked")))
        with expect_error("file-protected", "path"):
            read_sheet(str(book), None)
        for error in (KeyboardInterrupt(), GeneratorExit()):
            monkeypatch.setattr(python_calamine, "CalamineWorkbook", fail(error))
            with pytest.raises(type(error)):
                read_sheet(str(book), None)


class TestLimits:
    def test_a_decompression_bomb(self, book: Path) -> None:
        with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/media/x.png", "w") as part:
            for _ in range(257):
                part.write(bytes(1 << 20))
        with expect_error("file-too-large", "path"):
            dhkappa.read(book)

    def test_a_part_that_is_longer_than_it_says(self, book: Path) -> None:
        data = book.read_bytes()
        with zipfile.ZipFile(book) as archive:
            info = archive.getinfo("xl/worksheets/sheet1.xml")
        size = info.file_size.to_bytes(4, "little")
        assert size in data
        book.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
        with expect_error("unreadable-file", "path"):
            dhkappa.read(book)

    def test_a_cell_far_away(self, book: Path) -> None:
        edit_sheet(book, b"</sheetData>", b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>')
        with expect_error("file-too-large", "path") as caught:
            dhkappa.read(book)
        assert "17,179,869,184 cells" in str(caught.value)

    def test_a_long_text_that_is_used_often(self, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_book(book, {"S": [["a"], *(["x" * 30_000] for _ in range(100))]})
        assert len(read_sheet(str(book), None)["a"]) == 100
        monkeypatch.setattr(excel, "most_unpacked", lambda size: 2_000_000)
        with expect_error("file-too-large", "path"):
            read_sheet(str(book), None)

    def test_what_a_search_would_misread(self, book: Path) -> None:
        edit(book, lambda name, data: data.replace(b"<sheets>", b"<!-- <sheet/> --><sheets>"))
        with expect_error("unreadable-file", "path"):
            dhkappa.read(book)

    def test_parts_are_read_in_blocks(self, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows: Rows = [["a", "b"], *([place, f"text {place}"] for place in range(500))]
        edit_sheet(write_book(book, {"S": rows}), b'<c r="A400"><v>398</v></c>', b'<c r="A400" t="e"><v>#REF!</v></c>')
        whole = read_sheet(str(book), None)
        assert whole["a"][398] == "#REF!"
        monkeypatch.setattr(excel, "_BLOCK", 100)
        assert read_sheet(str(book), None) == whole

    def test_the_size_of_shared_texts(self) -> None:
        texts = b"<sst><si><t>one</t></si><x:si><t>three</t></x:si><si><t>seventy</t></si></sst>"
        expected = 2 * len(b"<sst><si><t>one</t>") + 5 * len(b"<si><t>seventy</t>")
        for parts in ([texts], texts.partition(b"one"), [texts[:25], texts[25:40], texts[40:]]):
            assert excel._shared_size(iter(parts), {0: 2, 2: 5}) == expected

    @pytest.mark.parametrize("tag", [b'<c t="e">', b"<c r=", b'<c t="s"> ', b"<sheet ", b"<c " + b" t " * 9])
    def test_matching_takes_linear_time(self, tag: bytes) -> None:
        text = tag * (2_000_000 // len(tag))
        assert excel._scan(iter([text])).errors == {}
        assert excel._SHEET.findall(text) == excel._RELATION.findall(text) == []


class TestWriting:
    def test_cells(self, tmp_path: Path) -> None:
        values = ["007", *HOSTILE, "https://example.org", "a\0b"]
        numbers = [1, 2.5, True, None, float("nan"), float("inf"), 10**17, -3, 1 / 3, *range(len(values) - 9)]
        table = Table({"item": values, "=n": numbers})
        table.to_excel(tmp_path / "a.xlsx")
        found = read_sheet(str(tmp_path / "a.xlsx"), None)
        assert found["item"] == [*values[:-1], "a\N{SYMBOL FOR NULL}b"]
        assert found["=n"][:9] == ["1", "2.5", "true", None, None, "inf", str(10**17), "-3", "0.333333333333333"]
        with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
            sheet = archive.read("xl/worksheets/sheet1.xml").decode()
            assert b"<b/>" in archive.read("xl/styles.xml")
        assert "<f>" not in sheet
        assert "hyperlink" not in sheet
        assert 'state="frozen"' in sheet
        assert re.search(r'<c r="A2" t="s">', sheet)  # 007 is text

    def test_equal_tables_give_equal_files(self, tmp_path: Path) -> None:
        for name in ("a.xlsx", "b.xlsx"):
            Table({"a": ["x"], "b": [1]}).to_excel(tmp_path / name)
        assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()

    def test_what_excel_cannot_hold(self, tmp_path: Path) -> None:
        path = tmp_path / "a.xlsx"
        with expect_error("text-too-long"):
            Table({"a": ["x" * 32_768]}).to_excel(path)
        with expect_error("too-many-rows"):
            Table({"a": range(1 << 20)}).to_excel(path)
        with expect_error("cannot-write"):
            Table({"a": [1]}).to_excel(tmp_path)
        with expect_error("not-utf8"):
            Table({"a": ["\ud800"]}).to_excel(path)
        assert not path.exists()
