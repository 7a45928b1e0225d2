"""Names of rows of files without a column of items: file and line, counted here with an editor's rules."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import xlsxwriter

import dhkappa
from cli_files import write
from dhkappa.inputs.row_names import RowNames

HEADER = "ann_1,ann_2,suggested,text"


def names_of(*paths: Path, **options: Any) -> list[str]:
    """Return the name of each item by its text, ``t0``, ``t1``, ..."""
    data = dhkappa.read([*paths], **options)
    queue = dhkappa.audit(data).review()
    by_text = {row["text"].split()[0]: row["item"] for row in queue}
    return [by_text[f"t{place}"] for place in range(len(by_text))]


def row(place: int, text: str = "") -> str:
    return f"a,{'ab'[place % 2]},a,{text or f't{place}'}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_lines_of_one_file(tmp_path: Path, end: str, last: bool, packed: bool) -> None:
    path = tmp_path / ("votes.csv.gz" if packed else "votes.csv")
    content = (end.join([HEADER, *map(row, range(5))]) + (end if last else "")).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    assert names_of(path) == [f"{path.name}:{line}" for line in range(2, 7)]


@pytest.mark.parametrize("seed", range(5))
def test_line_breaks_in_quotes_and_blank_lines(tmp_path: Path, seed: int) -> None:
    """A row is named by the line in which it starts."""
    draw, lines, expected = random.Random(seed), [HEADER], []
    for place in range(40):
        lines += [""] * draw.choice([0, 0, 1, 2])
        expected.append(f"votes.csv:{len(lines) + 1}")
        lines += row(place, f'"t{place} ""quoted""' + "\n, more" * draw.choice([0, 0, 1, 3]) + '"').split("\n")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert names_of(path) == expected
    for name in expected:
        assert path.read_text().split("\n")[int(name.split(":")[1]) - 1].startswith("a,")


def test_several_files(tmp_path: Path) -> None:
    for name, places in {"day2.csv": range(3), "day10.csv": range(3, 5)}.items():
        (tmp_path / name).write_text("\n".join([HEADER, *map(row, places)]) + "\n")
    expected = [*(f"day2.csv:{line}" for line in (2, 3, 4)), *(f"day10.csv:{line}" for line in (2, 3))]
    assert names_of(tmp_path / "day2.csv", tmp_path / "day10.csv") == expected
    (tmp_path / "day2.csv").write_text(f"{HEADER}\n\n{row(0)}\n" + '"a",b,a,"t1\n"\n' + row(2))
    expected[:3] = ["day2.csv:3", "day2.csv:4", "day2.csv:6"]
    assert names_of(tmp_path / "day2.csv", tmp_path / "day10.csv") == expected


def test_files_of_one_name(tmp_path: Path) -> None:
    for place in range(2):
        (tmp_path / f"day{place}").mkdir()
        (tmp_path / f"day{place}" / "votes.csv").write_text("\n".join([HEADER, row(2 * place), row(2 * place + 1)]))
    found = names_of(*(tmp_path / f"day{place}" / "votes.csv" for place in range(2)))
    assert found == [f"day{place}/votes.csv:{line}" for place in range(2) for line in (2, 3)]


def test_json_and_parquet(tmp_path: Path) -> None:
    names = HEADER.split(",")
    rows = [dict(zip(names, row(place).split(","), strict=True)) for place in range(4)]
    lines, array, parquet = (tmp_path / f"votes.{kind}" for kind in ("jsonl", "json", "parquet"))
    lines.write_text("\n".join(map(json.dumps, rows)) + "\n")
    array.write_text(json.dumps(rows))
    duckdb.sql(f"COPY (FROM read_json('{array}')) TO '{parquet}'")
    assert names_of(lines) == [f"votes.jsonl:{line}" for line in range(1, 5)]
    assert names_of(array) == [f"votes.json row {number}" for number in range(1, 5)]
    assert names_of(parquet) == [f"votes.parquet row {number}" for number in range(1, 5)]
    more = tmp_path / "more.parquet"
    duckdb.sql(f"COPY (SELECT * REPLACE (replace(text, 't', 't4') AS text) FROM '{parquet}' LIMIT 1) TO '{more}'")
    duckdb.sql(f"COPY (SELECT * REPLACE ('t4' AS text) FROM '{parquet}' LIMIT 1) TO '{more}'")
    assert names_of(parquet, more)[3:] == ["votes.parquet row 4", "more.parquet row 1"]
    lines.write_text("\n\n".join(map(json.dumps, rows)) + "\n")
    assert names_of(lines) == [f"votes.jsonl row {number}" for number in range(1, 5)]


def test_rows_of_a_sheet(tmp_path: Path) -> None:
    """As Excel numbers them: rows above the header and blank rows count."""
    path = tmp_path / "votes.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("Notes").write(0, 0, "by me")
        sheet = book.add_worksheet("Votes")
        for place, at in enumerate([3, 4, 6, 9]):
            sheet.write_row(at, 1, row(place - 1).split(",") if place else HEADER.split(","))
    assert names_of(path, sheet="Votes") == [f"votes.xlsx:{number}" for number in (5, 7, 10)]


def test_a_note_says_so(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("\n".join([HEADER, *map(row, range(5))]))
    notes = {note.code: note.message for note in dhkappa.audit(path).notes}
    assert "'votes.csv:2'" in notes["items-named-by-row"]
    path.write_text("\n".join([f"item,{HEADER}", *(f"{place},{row(place)}" for place in range(5))]))
    assert "items-named-by-row" not in {note.code for note in dhkappa.audit(path).notes}


def test_a_sequence() -> None:
    names = RowNames(["a:", "b:", "c:"], [range(2, 5), [], [7, 9]])
    expected = ["a:2", "a:3", "a:4", "c:7", "c:9"]
    assert list(names) == [names[place] for place in range(5)] == names[:] == expected
    assert names[-1] == "c:9"
    assert names[1:4:2] == ["a:3", "c:7"]
    assert len(names) == 5
    with pytest.raises(IndexError):
        names[5]
    assert list(RowNames([], [])) == []


def named_items(data: dhkappa.Dataset) -> list[Any]:
    votes = data.item_votes()
    assert votes is not None
    return [*votes.item_names()]


KINDS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [["keep=1"], ["keep=1", "sure>0.5"], ["keep!=1"]])
def test_rows_keep_their_names_and_values_if_others_are_left_out(kind: str, steps: list[str], tmp_path: Path) -> None:
    """Compared with the same file without filters: the text of each row says which row it is."""
    drawn = np.random.default_rng(1)
    rows = [
        {
            "suggested": "abc"[place % 3],
            **{f"ann_{who}": "abc"[int(drawn.integers(3))] for who in range(3)},
            "keep": str(int(drawn.integers(2))),
            "sure": str(drawn.integers(10) / 10),
            "text": f"row {place}",
        }
        for place in range(60)
    ]
    path = write(tmp_path / f"votes.{kind}", rows)
    names = named_items(dhkappa.read(path))
    data = dhkappa.read(path).filter(*steps).exclude_annotators("ann_2")
    chosen: dict[str, Callable[[dict[str, str]], bool]] = {
        "keep=1": lambda row: row["keep"] == "1",
        "keep!=1": lambda row: row["keep"] != "1",
        "sure>0.5": lambda row: float(row["sure"]) > 0.5,
    }
    kept = {names[place]: row["text"] for place, row in enumerate(rows) if all(chosen[step](row) for step in steps)}
    assert 10 < len(kept) < 50
    assert named_items(data) == [*kept]
    found = dhkappa.audit(data, progress=False, allow=["looks-clustered"])
    for table in (found.review(limit=60), found.next_votes(limit=60)):
        assert {row["item"]: row["text"] for row in table} == kept
