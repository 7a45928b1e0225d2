"""Table: what it refuses, how it shows itself, and what it turns into."""

import math
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dhkappa.errors import DataError
from dhkappa.table import Table

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
    with pytest.raises(DataError, match=r"same number of values: 'a' has 2, 'b' has 1\."):
        Table({"a": [1, 2], "b": [1]})


def test_unknown_column_is_refused_with_a_hint() -> None:
    with pytest.raises(
        DataError, match=r"column 'kapa' is not in the table\. Columns: kappa, se\. Did you mean 'kappa'"
    ):
        Table({"kappa": [1], "se": [2]}).column("kapa")


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
    assert lines[2].startswith("a very long c...   0.123")
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
    monkeypatch.setitem(sys.modules, library, None)  # Python's own way to say: cannot be imported
    with pytest.raises(DataError) as caught:
        getattr(Table({"a": [1]}), method)()
    assert str(caught.value) == f"{method}() needs {library}, which cannot be imported: {install}"


@pytest.mark.parametrize(
    ("method", "library", "build"), [("to_polars", "polars", "DataFrame"), ("to_arrow", "pyarrow", "table")]
)
def test_typed_libraries_get_columns_of_one_type(
    method: str, library: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the library hands back what it was given."""
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
