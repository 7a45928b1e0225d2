"""Columns of the data next to items: the same values from every engine, format and kind of file."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import xlsxwriter

import dhkappa
from dhkappa.inputs import shown_columns
from engines import ENGINES, NEAR, Engine, each, only
from expect import expect_error
from shapes import FORMATS, Shape, drawn_for

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]
TEXTS = [
    'it\'s "quoted"',
    None,
    "two\nlines",
    "=1+1",
    "<b>&",
    "\u202e\u0645",
    "x" * 5_000,
    "'; DROP TABLE victim; --",
    "a",
]


def texts_of(items: Any) -> dict[Any, str | None]:
    """Return a text for each item; some are missing."""
    texts = [TEXTS[place % len(TEXTS)] for place in range(len(items))]
    return {item: text and f"{text} {item}" for item, text in zip(items, texts, strict=True)}


def with_texts(shape: Shape, texts: dict[Any, str | None]) -> Shape:
    """Add the texts of the items to the table that has one row per item, or to the votes."""
    columns = shape.columns if shape.items is None else shape.items
    added = {**columns, "text": [texts[item] for item in columns["id"]]}
    return replace(shape, columns=added) if shape.items is None else replace(shape, items=added)


def shown(audit: dhkappa.Audit, column: str = "text") -> dict[Any, Any]:
    return {row["item"]: row[column] for row in audit.review("llm", limit=1_000)}


@each("layout", FORMATS, few=["wide", "long-items"])
def test_every_engine_and_format(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    texts = texts_of(made.items)
    shape = with_texts(made.shape(layout), texts)
    data, keywords = shape.given(engine)
    found = shown(audit_of(data, keywords))
    assert len(found) > 20
    assert found == {item: texts[item] for item in found}


def audit_of(data: Any, keywords: dict[str, Any], **options: Any) -> dhkappa.Audit:
    found: dhkappa.Audit = dhkappa.audit(data, ["llm", "rule"], **{**keywords, "item": "id"}, **options)
    return found


@only([engine for engine in ENGINES if not engine.slow])
def test_many_items(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several queries fetch them, or one that reads the whole table."""
    monkeypatch.setattr(shown_columns, "_CHUNK", 7)
    made = drawn_for("long-items")
    texts = texts_of(made.items)
    data, keywords = with_texts(made.shape("long-items"), texts).given(engine)
    found = shown(audit_of(data, keywords))
    assert found == {item: texts[item] for item in found}


@each("kind", ["int", "bool", "float"], few=["int"])
def test_types_of_values(engine: Engine, kind: str) -> None:
    """Numbers and booleans keep their type, as far as the engine has it."""
    made = drawn_for("wide")
    values = [
        None if place == 5 else {"int": place, "bool": place % 2 == 0, "float": place / 8}[kind] for place in range(30)
    ]
    shape = made.shape("wide")
    data = engine.table({**shape.columns, "n": values}, {"n": kind})
    found = shown(audit_of(data, dict(shape.keywords), show="n"), "n")
    assert found == {item: values[made.items.index(item)] for item in found}


@only(NEAR)
def test_rows_without_a_column_of_items(engine: Engine) -> None:
    """Found by their position, where rows have an order."""
    made = drawn_for("wide")
    texts = list(texts_of(made.items).values())
    columns = {name: values for name, values in made.shape("wide").columns.items() if name != "id"}
    data = engine.table({**columns, "text": texts})
    audit = dhkappa.audit(data, "llm", annotators="ann_*")
    if engine.name == "duckdb":  # a relation may be any query
        assert "text" not in audit.review().names
        assert "column-not-shown" in {note.code for note in audit.notes}
        with expect_error("no-row-order"):
            dhkappa.audit(data, "llm", annotators="ann_*", show="text")
        return
    found = {row["item"]: row["text"] for row in audit.review()}
    assert found == {item: texts[item] for item in found}


def test_an_index_that_repeats_is_no_name() -> None:
    pd = pytest.importorskip("pandas")
    made = drawn_for("wide")
    columns = {name: values for name, values in made.shape("wide").columns.items() if name != "id"}
    texts = [f"text {place}" for place in range(30)]
    frame = pd.DataFrame({**columns, "text": texts}, index=[place // 2 for place in range(30)])
    found = {row["item"]: row["text"] for row in dhkappa.audit(frame, "llm", annotators="ann_*").review()}
    assert found == {item: texts[item] for item in found}
    frame.index = pd.Index([f"row {place}" for place in range(30)])
    found = {row["item"]: row["text"] for row in dhkappa.audit(frame, "llm", annotators="ann_*").review()}
    assert found == {item: texts[int(item.split()[1])] for item in found}


def _csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([columns.keys(), *zip(*columns.values(), strict=True)])
    return path


def _json(path: Path, columns: dict[str, list[Any]]) -> Path:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]", encoding="utf-8")
    return path


def _parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    source = _json(path.with_suffix(".rows.json"), columns)
    duckdb.sql(f"COPY (FROM read_json('{source}', columns = {dict.fromkeys(columns, 'VARCHAR')})) TO '{path}'")
    return path


def _excel(path: Path, columns: dict[str, list[Any]]) -> Path:
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        sheet = book.add_worksheet()
        for place, (name, values) in enumerate(columns.items()):
            for row, value in enumerate([name, *values]):
                if value is not None:
                    sheet.write_string(row, place, value)
    return path


WRITERS: dict[str, Callable[[Path, dict[str, list[Any]]], Path]]
WRITERS = {".csv": _csv, ".json": _json, ".jsonl": _json, ".parquet": _parquet, ".xlsx": _excel}


@pytest.mark.parametrize("named", [True, False], ids=["ids", "rows"])
@pytest.mark.parametrize("suffix", [*WRITERS])
def test_every_kind_of_file(tmp_path: Path, suffix: str, named: bool) -> None:
    made = drawn_for("wide")
    texts = texts_of(made.items)
    columns = {name: list(values) for name, values in made.shape("wide").columns.items()} | {"text": [*texts.values()]}
    columns = {name: columns[name] for name in ("id", "llm", "rule", *made.annotators, "text")}
    expected = dhkappa.audit(made.votes, made.suggested, rng=1).review("llm").column("item")
    if not named:
        del columns["id"]
    data = dhkappa.read(
        WRITERS[suffix](tmp_path / f"v{suffix}", columns),
        ["llm", "rule"],
        annotators="ann_*",
        **({"item": "id"} if named else {}),
    )
    queue = dhkappa.audit(data, rng=1).review("llm")
    assert queue.column("text") == [texts[made.items[place]] for place in expected]
    assert queue.names[:3] == ("item", "text", "suggested")
    assert queue.shown == ("text",)


@only(NEAR)
def test_several_values_of_an_item(engine: Engine) -> None:
    long = {"item": [*"aabbccdd"], "label": [*"xxyyxyyy"], "annotator": [*"pqpqpqpq"], "llm": [*"xxxxxxyy"]}
    body = ["one", None, "two", "two", "same", "same", None, None]
    data = engine.table({**long, "text": ["one", None, "two", "other", "same", "same", None, None], "body": body})
    audit = dhkappa.audit(data, "llm")
    assert "text" not in audit.review().names
    assert {row["item"]: row["body"] for row in audit.review()} == {"a": "one", "b": "two", "c": "same", "d": None}
    [note] = [note for note in audit.notes if note.code == "column-not-shown"]
    assert "several values for 1 item." in note.message
    with expect_error("item-column-varies", "show"):
        dhkappa.audit(data, "llm", show=["body", "text"])


def test_values_that_cannot_be_compared_are_not_those_of_one_vote() -> None:
    import pandas

    long = {"item": [*"aaabb"], "label": [*"xxyyx"], "annotator": [*"pqrpq"], "llm": [*"xxxxx"]}
    data = pandas.DataFrame({**long, "text": [[1], [2], [1], {"k": 1}, {"k": 1}]})
    audit = dhkappa.audit(data, "llm")
    assert {row["item"]: row["text"] for row in audit.review()} == {"a": None, "b": '{"k": 1}'}


@pytest.mark.parametrize("kind", ["lists", "objects", "mixed"])
def test_nested_values_are_json(tmp_path: Path, kind: str) -> None:
    values: list[Any] = [["a", "ü"], ["b"], []] if kind == "lists" else [{"en": "ü"}, {"en": "b"}, {}]
    values = ["plain", {"en": "ü"}, 3] if kind == "mixed" else values
    rows = [{"item": place, "suggested": "x", "ann_1": "y", "ann_2": "y", "text": values[place]} for place in range(3)]
    path = tmp_path / "v.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    found = {row["item"]: row["text"] for row in dhkappa.audit(path).review()}
    texts = [found[place] if place in (0,) and kind == "mixed" else json.loads(found[place]) for place in range(3)]
    assert texts == values
