"""Table: access, display, and conversion to CSV and dataframes; Display."""

import csv
import io
import math
import pickle
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dhkappa.table import Display, Table
from expect import expect_error

EVIL = "<script>alert('x')</script>"


def test_columns_rows_and_length() -> None:
    table = Table({"name": ["a", "b"], "n": np.array([1, 2]), "x": (value / 2 for value in (1, 3))}, title="Two")
    assert table.names == ("name", "n", "x")
    assert table.title == "Two"
    assert len(table) == 2
    assert table.to_dicts() == list(table) == [{"name": "a", "n": 1, "x": 0.5}, {"name": "b", "n": 2, "x": 1.5}]
    assert table.column("n") == [1, 2]
    assert all(type(value) is int for value in table.column("n"))


def test_what_it_gives_out_does_not_change_it() -> None:
    source = {"n": [1, 2]}
    table = Table(source)
    source["n"].append(3)
    table.column("n").append(4)
    table.to_dicts()[0]["n"] = 5
    assert table.column("n") == [1, 2]
    with pytest.raises(AttributeError):
        table.title = "other"  # type: ignore[misc]


def test_survives_pickling() -> None:
    table = pickle.loads(pickle.dumps(Table({"n": [1, None]}, title="t")))
    assert table.to_dicts() == [{"n": 1}, {"n": None}]
    assert table.title == "t"


def test_columns_of_different_lengths_are_refused() -> None:
    with expect_error("length-mismatch", "columns"):
        Table({"a": [1, 2], "b": [1]})


def test_unknown_column_is_refused_with_a_hint() -> None:
    with expect_error("column-not-found", "name") as caught:
        Table({"kappa": [1], "se": [2]}).column("kapa")
    assert "'kappa'" in str(caught.value)


def test_repr_lines_up() -> None:
    table = Table(
        {"label": ["cat", None, "horse"], "items": [1200, 7, None], "x": [-0.51234, math.nan, 1e-9], "ok": [True] * 3},
        title="Animals",
    )
    assert repr(table).splitlines() == [
        "Animals",
        "label  items       x  ok",
        "cat     1200  -0.512  True",
        "           7       -  True",
        "horse          1e-09  True",
    ]


def test_small_pvalues_are_shown_as_such() -> None:
    assert repr(Table({"pvalue": [0.0, 0.0004, 0.25], "se": [0.0, 0.0004, 0.25]})).split() == [
        *("pvalue", "se", "<", "0.001", "0.000", "<", "0.001", "0.0004", "0.250", "0.250")
    ]


def test_repr_without_rows_or_columns() -> None:
    assert repr(Table({"a": [], "b": []})) == "a  b\n[no rows]"
    assert repr(Table({})) == "[no rows]"
    assert len(Table({})) == 0
    assert Table({}).to_dicts() == []


def test_long_table_is_cut_in_the_middle() -> None:
    lines = repr(Table({"n": range(1000)})).splitlines()
    assert lines[:2] == ["  n", "  0"]
    assert lines[11] == "..."
    assert lines[-2:] == ["999", "[1,000 rows, 980 not shown]"]
    assert len(lines) == 23
    assert "..." not in repr(Table({"n": range(20)}))


def test_wide_table_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ["category", "items", "kappa", "se", "low", "high", "weight", "vote_share", "label_share"]
    columns: dict[str, list[Any]] = {name: [0.12345, -0.5] for name in names}
    columns["category"] = ["a very long category name " * 5, "short"]
    columns["reason"] = ["because " * 20, None]
    lines = repr(Table(columns)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith("a very long cat…   0.123")
    assert lines[0].split() == ["vote_", "label_"]
    assert lines[1].split()[-2:] == ["share", "share"]
    assert lines[-1] == "[columns not shown: reason]"


def test_a_wider_terminal_shows_more(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table({"label": ["x" * 100], **{f"number {i}": [0.5] for i in range(10)}})
    assert "not shown" in repr(table)
    monkeypatch.setenv("COLUMNS", "250")
    assert "not shown" not in repr(table)
    assert "x" * 100 in repr(table)


def test_huge_integer_labels_are_cut() -> None:
    assert max(map(len, repr(Table({"label": [10**3000, 1], "n": [1, 2]})).splitlines())) <= 100


def test_wide_signs_take_two_places() -> None:
    lines = repr(Table({"label": ["猫", "dog"], "n": [1, 2]})).splitlines()
    assert lines == ["label  n", "猫     1", "dog    2"]


def test_signs_that_steer_a_terminal_are_spelled_out() -> None:
    text = repr(Table({"label\r": ["a\nb", "\x1b[31mred", "\ud800"]}, title="x\ny"))
    assert text.splitlines() == ["x\\ny", "label\\r", "a\\nb", "\\x1b[31mred", "\\ud800"]


def test_html_shows_everything_as_text() -> None:
    shown = Table({EVIL: [EVIL, "a & b"], "n": [1, math.nan]}, title=EVIL)._repr_html_()
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;") == 3
    assert "a &amp; b" in shown
    assert "<td style='text-align:right'>-</td>" in shown


def test_html_of_a_long_table_says_what_is_left_out() -> None:
    shown = Table({"n": range(1000)})._repr_html_()
    assert shown.count("<tr>") == 1 + 60 + 1
    assert "1,000 rows, 940 not shown" in shown


def test_to_pandas() -> None:
    pytest.importorskip("pandas")
    frame = Table({"label": ["a", 1], "n": [1, 2], "x": [0.5, math.nan]}).to_pandas()
    assert list(frame.columns) == ["label", "n", "x"]
    assert frame["label"].tolist() == ["a", 1]
    assert frame["n"].tolist() == [1, 2]
    assert frame["x"].isna().tolist() == [False, True]
    assert len(Table({"a": []}).to_pandas()) == 0


@pytest.mark.parametrize(
    ("method", "library", "install"),
    [
        ("to_pandas", "pandas", "pip install 'dhkappa[pandas]'"),
        ("to_polars", "polars", "pip install 'dhkappa[polars]'"),
        ("to_arrow", "pyarrow", "pip install pyarrow"),
    ],
)
def test_missing_library_is_named(method: str, library: str, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with expect_error("missing-library") as caught:
        getattr(Table({"a": [1]}), method)()
    assert caught.value.hint.endswith(install)


@pytest.mark.parametrize(
    ("method", "library", "build"), [("to_polars", "polars", "DataFrame"), ("to_arrow", "pyarrow", "table")]
)
def test_typed_libraries_get_columns_of_one_type(
    method: str, library: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the library returns what it gets."""
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(**{build: lambda columns: columns}))
    table = Table(
        {
            "label": ["a", 1, None],
            "same": [1, 2, None],
            "x": [1, 0.5, None],
            "large": [2**63, 1, 2],
            "flag": [True, 1, 2],
        }
    )
    assert getattr(table, method)() == {
        "label": ["a", "1", None],
        "same": [1, 2, None],
        "x": [1.0, 0.5, None],
        "large": [str(2**63), "1", "2"],
        "flag": ["True", "1", "2"],
    }


# CSV

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
    assert column(table.to_csv()) == [f"'{formula}"]
    assert column(table.to_csv(safe=False)) == [formula]


@pytest.mark.parametrize("safe", [True, False])
def test_other_text_and_numbers_as_text_stay(safe: bool) -> None:
    assert column(Table({"item": [*PLAIN, *NUMBERS]}).to_csv(safe=safe)) == [*PLAIN, *NUMBERS]


@pytest.mark.parametrize("text", ["x\r=1+1", "x;=1+1", "x\t=1+1", "x\n=1+1", 'x","=1+1'], ids=ascii)
@pytest.mark.parametrize("safe", [True, False])
def test_no_sign_inside_a_text_starts_a_new_cell(text: str, safe: bool) -> None:
    """Text is in quotes, inside which a spreadsheet looks for no separator."""
    written = Table({"item": [text]}).to_csv(safe=safe)
    assert written.endswith('"{}"\n'.format(text.replace('"', '""')))
    assert column(written) == [text]


def test_numbers_truth_values_and_missing_values() -> None:
    table = Table(
        {"n": [-3, 0], "x": [-0.25, math.nan], "flag": [True, False], "none": [None, None], "tiny": [1e-300, 1 / 3]}
    )
    assert read(table.to_csv()) == [
        ["n", "x", "flag", "none", "tiny"],
        ["-3", "-0.25", "true", "", "1e-300"],
        ["0", "", "false", "", "0.3333333333333333"],
    ]
    assert "-3,-0.25" in table.to_csv()  # bare, so that they are numbers


def test_names_of_columns_are_safe_too() -> None:
    assert read(Table({"=x": [1], "y": [2]}).to_csv())[0] == ["'=x", "y"]


def test_nul_does_not_cut_the_file() -> None:
    text = Table({"item": ["a\0b", "\0=1", "last"]}).to_csv()
    assert "\0" not in text
    assert len(read(text)) == 4
    assert read(text)[1] == ["a␀b"]


def test_no_rows() -> None:
    assert read(Table({"item": [], "votes": []}).to_csv()) == [["item", "votes"]]


def test_to_csv_writes_a_file(tmp_path: Path) -> None:
    table = Table({"item": ["漢", "=1"], "n": [1, 2]})
    text = table.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text("utf-8") == text == table.to_csv()


# Display


class Result(Display):
    """A result with every kind of part."""

    def _display(self) -> Iterable[str | Table | Sequence[str]]:
        yield f"Kappa of {EVIL}"
        yield Table({"n": [1]})
        yield ["first\nnote", "second note " * 20]
        yield []


def test_display_as_text() -> None:
    lines = repr(Result()).splitlines()
    assert lines[:4] == [f"Kappa of {EVIL}", "n", "1", "- first\\nnote"]
    assert lines[4].startswith("- second note")
    assert lines[5].startswith("  ")


def test_display_as_html() -> None:
    shown = Result()._repr_html_()
    assert "<script" not in shown
    assert shown.startswith("<p>Kappa of &lt;script&gt;")
    assert shown.count("<li>") == 2
    assert shown.count("<ul>") == 1


@pytest.mark.parametrize("value", [[1, 2], np.array([1, 2]), {"a": 1}, b"a", timedelta(seconds=1)])
def test_values_that_a_file_cannot_hold_are_refused(value: Any, tmp_path: Path) -> None:
    table = Table({"item": ["a", "b"], "x": [None, value]})
    with expect_error("not-writable"):
        table.to_csv()
    assert table.column("x")[1] is value
    pytest.importorskip("xlsxwriter")
    with expect_error("not-writable"):
        table.to_excel(tmp_path / "t.xlsx")
