"""Calls that raise each error of files, databases, tables and column roles."""

import gzip
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import xlsxwriter

from dhkappa import Dataset, Tally, audit, dh_kappa, read, tally
from dhkappa.inputs.aggregate import group
from dhkappa.inputs.backends import frame_of
from dhkappa.inputs.backends.duckdb import DuckDBFrame, connect, raise_if_stopped, relation_of
from dhkappa.inputs.columns import Columns, find_roles
from dhkappa.inputs.tables import open_votes
from dhkappa.paths import FileStates, write_file
from opening import open_files

FOLDER = Path(tempfile.mkdtemp(prefix="dhkappa-messages-"))
WIDE: dict[str, Any] = {"id": [1, 2], "ann_1": ["a", "b"], "ann_2": ["a", "a"], "llm": ["a", "b"]}
LONG: dict[str, Any] = {"item": [1, 1, 2], "label": ["a", "b", "b"], "annotator": ["p", "q", "p"], "llm": [*"aab"]}
ITEMS: dict[str, Any] = {"item": [1, 2], "llm": ["a", "b"]}


def wide(suggested: Any = "llm", columns: dict[str, Any] | None = None, **keywords: Any) -> Any:
    return dh_kappa(pd.DataFrame(WIDE | (columns or {})), suggested, **keywords)


def whole() -> Dataset:
    return Dataset(pd.DataFrame(WIDE | {"topic": ["a", "b"]}), "llm", annotators="ann_*")


def filtered(condition: Any) -> Any:
    return whole().filter(condition).counts


def long(columns: dict[str, Any] | None = None, **keywords: Any) -> Any:
    return dh_kappa(pd.DataFrame(LONG | (columns or {})), "llm", **keywords)


def only_unlisted() -> Any:
    items = pd.DataFrame({"item": [1], "llm": ["a"], "topic": ["b"]})
    data = Dataset(pd.DataFrame(LONG), "llm", item="item", label="label", items=items, unlisted="unlabeled")
    return data.filter("items.topic=").counts


def roles(columns: list[str], suggested: Any = None, **keywords: Any) -> Any:
    given: Any = keywords
    own = Columns(suggested=suggested, counts=None, sample_weight=None, strata=None)
    return find_roles([("the data", columns)], given, own)


def file(name: str, content: str | bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def subfolder(name: str) -> Path:
    path = FOLDER / name
    path.mkdir(exist_ok=True)
    return path


def opened(name: str, content: str | bytes) -> Any:
    return open_files(file(name, content))


def excel(name: str, far: bool = False) -> Path:
    path = FOLDER / name
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Votes")
        sheet.write_row(0, 0, ["item", "label"])
        if far:
            sheet.write_number(2**20 - 1, 2**14 - 1, 1)
        book.add_worksheet("Empty")
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=Votes!$A$1:$A$2"})
        book.add_chartsheet("Chart").set_chart(chart)
    return path


def parquet(name: str, query: str) -> Path:
    path = FOLDER / name
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def linked() -> Any:
    link = FOLDER / "link.csv"
    if not link.is_symlink():
        link.symlink_to("nowhere.csv")
    return open_files(link)


def pipe() -> Any:
    path = FOLDER / "pipe.csv"
    if not path.exists():
        os.mkfifo(path)
    return open_files(path)


def folder() -> Any:
    (FOLDER / "deep").mkdir(exist_ok=True)
    (FOLDER / "deep" / "votes.csv").write_text("a\n")
    return open_files(FOLDER / "deep")


def changed() -> None:
    path = file("changed.csv", "a\n")
    with FileStates.of([path]).unchanged():
        path.write_text("a\nb\n")


def sqlite(columns: str = "item INTEGER, llm TEXT, ann_1 INTEGER, ann_2 INTEGER") -> str:
    path = FOLDER / "votes.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE votes ({columns})")
    connection.execute("INSERT INTO votes VALUES (1, 'a', 'one', 2)")
    connection.commit()
    connection.close()
    return f"sqlite://{path}"


def view() -> Any:
    path = FOLDER / "view.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW votes AS SELECT * FROM '{file('seen.csv', 'a')}'")
    return read(f"duckdb://{path}", table="votes")


def failing(message: str) -> None:
    with DuckDBFrame(None, "DuckDB", ()).asking():
        raise duckdb.Error(message)


def lost() -> Any:
    options: Any = dict.fromkeys(("suggested", "counts", "sample_weight", "strata"))
    table = open_votes(pl.DataFrame(LONG), {}, **options, labeled=False)
    assert table is not None
    vars(table)["long"] = replace(table.long, label_counts={"a": 1, "b": 9})
    return group(table)


def quiet(case: Callable[[], Any]) -> Callable[[], Any]:
    """Ignore warnings of Ibis about the libraries that it uses."""

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return case()

    return run


def mysql() -> Any:
    import ibis

    table = ibis.duckdb.connect().create_table("t", schema=ibis.schema({"a": "string"}))
    kind = type(table.get_backend())
    name, kind.name = kind.name, "mysql"
    try:
        return frame_of(table)
    finally:
        kind.name = name


def collation() -> Any:
    import ibis

    backend = ibis.duckdb.connect()
    table = backend.create_table("t", schema=ibis.schema({"a": "string"}))
    backend.con.execute("SET default_collation = 'NOCASE'")
    frame = frame_of(table)
    assert frame is not None
    return frame.pick({"item": "a"})


def dask() -> Any:
    from dask import dataframe

    from_pandas: Any = dataframe.from_pandas
    votes, items = from_pandas(pd.DataFrame(LONG), npartitions=1), from_pandas(pd.DataFrame(ITEMS), npartitions=1)
    return tally(votes, "llm", items=items, unlisted="unlabeled")


def distinct() -> Any:
    from dhkappa import audit

    times = pl.Series([1, 2]).cast(pl.Datetime("ns"))
    data = {"item": ["x", "x"], "label": ["a", "b"], "annotator": times, "llm": ["a", "a"]}
    return audit(pl.DataFrame(data), "llm")


def zones() -> Any:
    times = pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02"])
    items = pd.DataFrame({"item": times[1:].tz_localize("UTC"), "llm": ["a", "b"]})
    return long({"item": times}, items=items)


def many() -> Tally:
    most = 2**31 - 1
    columns = {"item": ["x", "x"], "label": ["a", "b"], "count": [most, most], "llm": ["a", "a"]}
    return tally(pl.DataFrame(columns), "llm")


BIG = {"item": [2**53 + 1] * 2, "label": ["a", "b"]}

CASES: dict[str, Callable[[], Any]] = {
    # Files
    "file-not-found": lambda: open_files(file("votes.csv", "a\n").with_name("vote.csv")),
    "file-not-found (pattern)": lambda: open_files(FOLDER / "nothing*.csv"),
    "file-not-found (folder)": lambda: open_files("nowhere/votes.csv"),
    "file-not-found (link)": linked,
    "file-not-found (database)": lambda: read("sqlite://nowhere.db", table="votes"),
    "file-not-readable": lambda: _not_readable(),
    "file-changed": changed,
    "invalid-path": lambda: open_files(7),
    "invalid-path (empty)": lambda: open_files([]),
    "invalid-path (output)": lambda: write_file("", "text", "report"),
    "cannot-write": lambda: write_file(subfolder("reports"), "text", "report"),
    "duplicate-file": lambda: open_files([file("a.csv", "a\n"), FOLDER / "a.csv"]),
    "mixed-file-types": lambda: open_files([file("a.csv", "a\n"), file("a.tsv", "a\n")]),
    "not-a-regular-file": pipe,
    "url-not-supported": lambda: open_files("https://example.org/a.csv"),
    "path-is-folder": folder,
    "spreadsheet": lambda: opened("votes.xls", "x"),
    "wrong-file-type (Excel)": lambda: opened("text.xlsx", "item,label"),
    "wrong-file-type (zip)": lambda: opened("excel.csv", excel("votes.xlsx").read_bytes()),
    "file-protected": lambda: opened("locked.xlsx", b"\xd0\xcf\x11\xe0"),
    "unreadable-file (Excel)": lambda: opened("damaged.xlsx", b"PK\x03\x04"),
    "empty-file (sheet)": lambda: read(excel("votes.xlsx"), sheet="Empty"),
    "sheet-not-found": lambda: read(excel("votes.xlsx"), sheet="votes"),
    "sheet-without-cells": lambda: read(excel("votes.xlsx"), sheet="Chart"),
    "file-too-large (cells)": lambda: read(excel("far.xlsx", far=True)),
    "invalid-sheet": lambda: read(excel("votes.xlsx"), sheet=1),  # type: ignore[arg-type]
    "option-not-supported (sheet)": lambda: read(file("votes.csv", "a\n"), sheet="Votes"),
    "option-not-supported (items_sheet)": lambda: read(file("votes.csv", "a\n"), items_sheet="Items"),
    "not-a-table (show)": lambda: dh_kappa([["a", "a"], ["b", "a"]], ["a", "b"], show="text"),
    "role-conflict (show)": lambda: wide(show=["id", "id"]),
    "column-not-found (show)": lambda: wide(show="ids"),
    "no-row-order (show)": lambda: audit(
        duckdb.sql("SELECT 'a' AS ann_1, 'a' AS ann_2, 'a' AS llm, 't' AS text"), "llm", show="text"
    ),
    "unknown-file-type": lambda: opened("votes.dat", "x"),
    "wrong-file-type": lambda: opened("packed.csv", gzip.compress(b"a\n")),
    "empty-file": lambda: opened("empty.csv", ""),
    "no-header": lambda: opened("blank.csv", "\n1,2\n"),
    "not-utf8": lambda: opened("latin.csv", b"a,\xe9\n"),
    "malformed-file": lambda: opened("open.csv", 'a,"b\n1,2\n'),
    "malformed-file (byte order mark)": lambda: opened("mark.jsonl", b'\xef\xbb\xbf{"a": 1}\n'),
    "malformed-file (truncated)": lambda: opened("cut.json", '[{"a": 1},'),
    "wrong-number-of-fields": lambda: dh_kappa(file("ragged.csv", "llm,ann_1,ann_2\na,a,a\na,a,a,a\n"), "llm"),
    "line-too-long": lambda: opened("long.csv", "a\n" + "x" * 2_000_001),
    "unreadable-file": lambda: opened("odd.csv.gz", "no gzip"),
    "ambiguous-columns": lambda: opened("case.csv", "Label,label\n"),
    "ambiguous-columns (table)": lambda: wide(columns={"LLM": [1, 2]}),
    "columns-differ": lambda: open_files([file("1.csv", "a,Label\n"), file("2.csv", "a,label\n")]),
    "types-differ": lambda: open_files([parquet("1.parquet", "SELECT 7 a"), parquet("2.parquet", "SELECT '7' a")]),
    "not-records": lambda: opened("numbers.jsonl", "1\n2\n"),
    "mixed-types": lambda: dh_kappa(file("mixed.jsonl", '{"llm": 1, "ann_1": 1}\n{"llm": "x", "ann_1": 1}'), "llm"),
    "integer-too-large": lambda: relation_of({"a": [2**127]}, connect()),
    # Databases
    "invalid-url": lambda: read("postgresql://me:p@ss@host/name", table="votes"),
    "missing-package": lambda: _missing_package(),
    "database-not-readable": lambda: read(f"sqlite://{file('text.db', 'text' * 999)}", table="votes"),
    "table-missing": lambda: read(sqlite()),
    "table-not-found": lambda: read(sqlite(), table="vote"),
    "view-reads-files": view,
    # Engines
    "engine-error": lambda: failing("Conversion Error: boom"),
    "engine-not-supported": quiet(mysql),
    "engine-not-supported (unlisted)": dask,
    "collation": quiet(collation),
    "wrong-type": quiet(lambda: dh_kappa(read(sqlite(), table="votes", suggested="llm", annotators="ann_*"), "llm")),
    "different-connections": lambda: failing("Invalid Input Error: relations of different connections"),
    "connection-busy": lambda: failing("Connection Error: busy with another call"),
    "disk-full": lambda: raise_if_stopped(duckdb.Error("No space left on device"), "The data that DuckDB counts"),
    "different-engines": lambda: long(items=pl.DataFrame(ITEMS)),
    "votes-lost": lost,
    # Filters
    "invalid-filter": lambda: filtered("language"),
    "invalid-filter (operator)": lambda: filtered(("topic", "~", "a")),
    "invalid-filter (number)": lambda: filtered("id=a"),
    "invalid-filter (order)": lambda: filtered("topic>b"),
    "not-comparable": lambda: filtered("topic>1"),
    "nothing-left": lambda: filtered("topic=c"),
    "nothing-left (only unlisted items)": only_unlisted,
    "nothing-left (annotators)": lambda: whole().exclude_annotators("ann_1", "ann_2").counts,
    "annotator-not-found": lambda: whole().exclude_annotators("ann_3").counts,
    "column-not-found (filter)": lambda: filtered("topics=a"),
    "filter-by-labels": lambda: filtered("llm=a"),
    "filter-by-votes": lambda: filtered("ann_1=a"),
    "filter-needs-table": lambda: Dataset([["a", "a"]], ["a"]).filter(llm="a").counts,
    # Column roles
    "column-not-found": lambda: roles(["id", "label", "ann_1"], item="id", label="lable"),
    "column-not-found (pattern)": lambda: wide(annotators="rater_*"),
    "column-not-found (items)": lambda: long(label="label", item="item", annotator="nobody"),
    "column-not-found (other table)": lambda: long(items=pd.DataFrame({"item": [1, 2], "rule": [*"ab"]})),
    "not-a-column-name": lambda: wide(annotators=[1]),
    "duplicate-labeler": lambda: wide(["llm", "llm"], annotators="ann_*"),
    "ambiguous-suggested": lambda: tally(pd.DataFrame({"a": ["x", "y"], "b": ["x", "x"]}), ["a", "b"]),
    "format-unknown": lambda: roles(["Ticket ID", "Message text"]),
    "format-unknown (annotators)": lambda: roles(["id", "rater 1", "rater 2", " Label"]),
    "format-unknown (one column)": lambda: roles(["a;b;c"]),
    "format-unknown (label)": lambda: roles(["item", "text"]),
    "role-conflict": lambda: wide(annotators="ann_*", counts=["id"]),
    "role-conflict (count)": lambda: long({"count": [1, 1, 1]}),
    "role-conflict (item)": lambda: wide(label="ann_1"),
    "role-conflict (items)": lambda: wide(items=pd.DataFrame(ITEMS)),
    "role-conflict (twice)": lambda: wide(annotators=["ann_1", "ann_1"]),
    "role-conflict (two roles)": lambda: wide(annotators=["ann_1", "llm"]),
    "role-conflict (duplicates)": lambda: long(annotator=None, duplicates="first"),
    "role-conflict (unlisted)": lambda: long(unlisted="unlabeled"),
    "invalid-labeler-name (table)": lambda: tally(pd.DataFrame(WIDE), {"": "llm"}, annotators="ann_*"),
    "invalid-option": lambda: long(duplicates="any"),
    "not-a-table": lambda: dh_kappa([["a"]], ["a"], item="x"),
    "not-a-table (items)": lambda: long(items=7),
    # Tables
    "not-a-label (column)": lambda: wide(columns={"llm": [1.5, 2.0]}),
    "duplicate-items": lambda: wide(columns={"id": [1, 1]}, item="id"),
    "duplicate-items (items)": lambda: long(items=pd.DataFrame({"item": [1, 2, 2], "llm": [*"abb"]})),
    "missing-item": lambda: long({"item": ["x", "", "y"]}),
    "missing-item (items)": lambda: long(items=pl_items()),
    "duplicate-votes": lambda: long({"annotator": ["p", "p", "p"]}),
    "no-row-order": lambda: tally(duckdb.sql("SELECT 1 item, 'a' label, 'p' annotator"), duplicates="first"),
    "item-column-varies": lambda: long({"llm": [*"abb"]}),
    "ids-not-joined (unlisted)": lambda: long(items=pd.DataFrame({"item": [1], "llm": ["a"]})),
    "ids-not-joined": lambda: long({"item": ["a", "b", "c"]}, items=pd.DataFrame({"item": [*"aB"], "llm": [*"ab"]})),
    "ids-not-joined (none match)": lambda: long(items=pd.DataFrame({"item": [7], "llm": ["a"]})),
    "ids-not-joined (files)": lambda: long(
        {"item": ["7", "7", "8"]}, items=pd.DataFrame({"item": ["7.png", "8.png"], "llm": [*"ab"]})
    ),
    "mixed-time-zones": zones,
    "tables-swapped": lambda: dh_kappa(pd.DataFrame(ITEMS), "llm", items=pd.DataFrame(LONG)),
    "duplicates-removed": lambda: long({"annotator": ["p", "p", "p"]}, duplicates="last"),
    "column-among-votes (long format)": lambda: dh_kappa(pd.DataFrame(LONG), pd.Series(["a", "b"])),
    "column-among-votes (grid)": lambda: wide([*"ab"]),
    "wrong-type (ids)": lambda: tally(duckdb.sql("SELECT [1] item, 'a' label, 'b' suggested")),
    "item-types-differ": lambda: long({"item": [True, True, False]}, items=pd.DataFrame(ITEMS)),
    "item-types-differ (large)": lambda: tally(
        pl.DataFrame(BIG), "llm", items=pl.DataFrame({"item": [5.0], "llm": ["a"]})
    ),
    "invalid-count": lambda: tally(pd.DataFrame({"a": [2, -1], "b": [0, 2]}), counts=["a", "b"]),
    "invalid-count (missing)": lambda: tally(pl.DataFrame({"a": [2, None], "b": [0, 2]}), counts=["a", "b"]),
    "invalid-weight (column)": lambda: wide(columns={"w": [1.0, -1.0]}, sample_weight="w"),
    "missing-cluster": lambda: wide(columns={"document": ["x", None]}, clusters="document"),
    "missing-stratum": lambda: wide(columns={"place": ["x", None]}, strata="place"),
    "categories-lack-columns": lambda: tally(pd.DataFrame({"a": [2], "b": [0]}), counts=["a", "b"], categories=["a"]),
    "names-not-distinct": distinct,
    "too-many-votes": many,
}


def pl_items() -> Any:
    return pd.DataFrame({"item": pd.array([1, None], "Int64"), "llm": ["a", "b"]})


def _not_readable() -> Any:
    from dhkappa.paths import _not_readable as error

    raise error("votes.csv", PermissionError(13, "Permission denied"))


def _missing_package() -> Any:
    import sys

    kept = sys.modules.get("psycopg.conninfo")
    sys.modules["psycopg.conninfo"] = None  # type: ignore[assignment]
    try:
        return read("postgresql://host/name", table="votes")
    finally:
        del sys.modules["psycopg.conninfo"]
        if kept is not None:
            sys.modules["psycopg.conninfo"] = kept
