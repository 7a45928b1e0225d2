"""Files as tables: spellings are kept, no row is dropped, and errors name the file."""

import csv
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dhkappa
from dhkappa.errors import DataError
from dhkappa.inputs.backends import ROW_NUMBER, frame_of
from dhkappa.inputs.backends.duckdb import connect, reading, relation_of
from expect import expect_error
from opening import open_files

HOSTILE = ["'; DROP TABLE x; --", 'a"b""c', "back\\slash", "nul\0nul", "two\nlines", "two\r\nlines", "😀", "\u202eabc"]
HOSTILE += ["NA", "nan", "null", "None", "007", "1e3", " x ", "$1", "%s", "{0}", "x" * 10_000]

CELL = st.text(st.sampled_from('ab,;"\t\n\r\\ 0é😀\0#'), max_size=5)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


Write = Callable[[str, str | bytes], Path]


def rows(path: Any) -> list[tuple[Any, ...]]:
    relation = open_files(path)
    with reading():
        return relation.fetchall()


def types(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


def refusal(path: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        rows(path)
    return caught.value


def parquet(path: Path, query: str) -> Path:
    connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


class TestText:
    def test_every_column_is_text_and_an_empty_field_is_missing(self, write: Write) -> None:
        path = write("votes.csv", 'item,x,y\n007,NA,nan\n1.0,,null\n2024-01-02,"",true\n')
        relation = open_files(path)
        assert types(relation) == {"item": "VARCHAR", "x": "VARCHAR", "y": "VARCHAR"}
        assert relation.fetchall() == [("007", "NA", "nan"), ("1.0", None, "null"), ("2024-01-02", None, "true")]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.tab", "\t")])
    def test_hostile_text_against_the_csv_module(self, tmp_path: Path, name: str, separator: str, end: str) -> None:
        cells = [[text, f"{text},{text};\t"] for text in HOSTILE]
        with open(tmp_path / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL)
            writer.writerow(HOSTILE[:2])
            writer.writerows(cells)
        relation = open_files(tmp_path / name)
        assert relation.columns == HOSTILE[:2]
        assert relation.fetchall() == [tuple(row) for row in cells]

    @settings(max_examples=60)
    @given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), max_size=6)))
    def test_any_text_against_the_csv_module(
        self, tmp_path_factory: pytest.TempPathFactory, table: list[list[str]]
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "any.csv"
        names = [f"column {place}" for place in range(len(table[0]) if table else 1)]
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([names, *table])
        with open(path, encoding="utf-8", newline="") as file:
            [header, *expected] = csv.reader(file)
        relation = open_files(path)
        assert relation.columns == header
        assert relation.fetchall() == [tuple(cell or None for cell in row) for row in expected]

    @pytest.mark.parametrize("lines", [["so, on", 'she said "no"', "😀"], ["a,b", '"1","2"', ",", ""], ["1,2"]])
    def test_quoted_lines_where_threads_meet(self, tmp_path: Path, lines: list[str]) -> None:
        path = tmp_path / "long.csv"
        random = Random(7)
        texts = ["\n".join(random.choices(lines, k=random.randint(1, 300))) for _ in range(15_000)]
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "text"])
            writer.writerows([str(row), text] for row, text in enumerate(texts))
        connection = connect()
        connection.execute("SET threads = 8")
        frame = frame_of(open_files(path, connection=connection))
        assert frame is not None
        read = frame.numbered().native.fetchall()
        assert read == [(str(row), text or None, row + 1) for row, text in enumerate(texts)]

    @pytest.mark.parametrize("name", ["long.csv", "long.csv.gz"])
    def test_a_quote_left_open_in_a_long_file(self, tmp_path: Path, name: str) -> None:
        text = "\n".join(["so, on"] * 300)
        content = ("a,b\n" + f'1,"{text}"\n' * 10_000 + '1,"x\n' + "1,2\n" * 1000).encode()
        (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
        assert refusal(tmp_path / name).code == "malformed-file"

    def test_byte_order_mark_and_windows_line_ends(self, write: Write) -> None:
        path = write("bom.csv", b"\xef\xbb\xbfitem,label\r\n1,a\r\n")
        assert open_files(path).columns == ["item", "label"]
        assert rows(path) == [("1", "a")]

    def test_gzip(self, write: Write) -> None:
        assert rows(write("a.csv.gz", gzip.compress(b"a,b\n1,2\n"))) == [("1", "2")]
        assert rows(write("A.TSV.GZ", gzip.compress(b"a\tb\n1\t2\n"))) == [("1", "2")]

    def test_header_alone_has_no_rows(self, write: Write) -> None:
        path = write("a.csv", "item,label")
        assert open_files(path).columns == ["item", "label"]
        assert rows(path) == []

    @pytest.mark.parametrize(
        ("header", "names"),
        [
            ("a,b;c,d", ["a", "b;c", "d"]),
            ("a;b;c", ["a", "b", "c"]),
            ("a\tb", ["a", "b"]),
            ('"a;b"', ["a;b"]),
            ('"a,b";c', ["a,b", "c"]),
            ("alone", ["alone"]),
        ],
    )
    def test_a_comma_separates_unless_only_something_else_does(
        self, write: Write, header: str, names: list[str]
    ) -> None:
        assert open_files(write("a.csv", header + "\n")).columns == names

    def test_one_column_may_hold_other_separators(self, write: Write) -> None:
        assert rows(write("a.csv", "label\na;b\n\nc\td\n")) == [("a;b",), (None,), ("c\td",)]

    @pytest.mark.parametrize("bad", ["3\n", "3,4,5\n"])
    def test_ragged_line(self, write: Write, bad: str) -> None:
        path = write("ragged.csv", 'a,b\n1,2\n1,"x\ny"\n' + bad)
        error = refusal(path)
        assert error.code == "wrong-number-of-fields"
        sentence, below = error.message.split("\n", 1)
        n = bad.count(",") + 1
        assert sentence.startswith(f"{str(path)!r}, line 4 (")
        assert f"has {n} field" in sentence
        assert f"Expected Number of Columns: 2 Found: {n}" in below
        assert "ignore_errors" not in below

    def test_ragged_line_far_down(self, write: Write) -> None:
        path = write("ragged.csv", "a,b\n" + "1,2\n" * 300_000 + "3\n")
        relation = open_files(path)
        with pytest.raises(DataError, match="line 300002 "), reading():
            relation.aggregate("count(*)").fetchall()

    @pytest.mark.parametrize("body", ['1,"x\n2,y\n', '1,"a"b\n', "1,2\r\n3,4\n"])
    def test_malformed(self, write: Write, body: str) -> None:
        assert refusal(write("a.csv", "a,b\n" + body)).code == "malformed-file"

    @pytest.mark.parametrize(
        "content",
        [b"a,\xe9\n1,2\n", b"a,b\n1,\xe9\n", b"a,b\n" + b"1,2\n" * 9000 + b"1,\xe9\n"],
        ids=["header", "early", "late"],
    )
    def test_not_utf8(self, write: Write, content: bytes) -> None:
        error = refusal(write("latin.csv", content))
        assert error.code == "not-utf8"
        assert "latin.csv'" in error.message

    @pytest.mark.parametrize(
        ("content", "code"),
        [
            (b"", "empty-file"),
            (b"\n1,2\n", "no-header"),
            (b",,\n1,2,3\n", "no-header"),
            (b"a,b,a\n", "ambiguous-columns"),
            (b"Label,label\n", "ambiguous-columns"),
            (b'a,"b\n1,2\n', "malformed-file"),
        ],
    )
    def test_bad_headers(self, write: Write, content: bytes, code: str) -> None:
        assert refusal(write("a.csv", content)).code == code

    @pytest.mark.parametrize(
        ("content", "names", "expected"),
        [
            (",a\n0,x\n", ["a"], [("x",)]),
            ("a,,c\n1,2,3\n", ["a", "c"], [("1", "3")]),
            ("a,b,,\n1,2,,\n3,4,,5\n", ["a", "b"], [("1", "2"), ("3", "4")]),
        ],
    )
    def test_columns_without_a_name_are_ignored(
        self, write: Write, content: str, names: list[str], expected: list[Any]
    ) -> None:
        path = write("a.csv", content)
        assert open_files(path).columns == names
        assert rows(path) == expected

    def test_gzip_cut_short(self, write: Write) -> None:
        packed = gzip.compress(b"a,b\n" + os.urandom(200_000).hex().encode())
        assert refusal(write("a.csv.gz", packed[:8])).code == "unreadable-file"
        assert refusal(write("b.csv.gz", packed[:-50_000])).code == "unreadable-file"
        assert refusal(write("c.csv.gz", b"a,b\n1,2\n")).code == "unreadable-file"
        assert refusal(write("d.csv.gz", gzip.compress(b""))).code == "no-header"


class TestJSON:
    def test_values_keep_their_kind_and_spelling(self, write: Write) -> None:
        record = {
            "text": "007",
            "date": "2024-01-02",
            "stamp": "2024-01-02 03:04:05",
            "time": "12:30:00",
            "uuid": "123e4567-e89b-12d3-a456-426614174000",
            "whole": 7,
            "snowflake": 1_700_000_000_000_000_001,
            "wide": 2**64 + 1,
            "number": 0.5,
            "flag": True,
            "nothing": None,
        }
        path = write("a.jsonl", json.dumps(record) + "\n{}\n")
        relation = open_files(path)
        assert types(relation) == {
            **dict.fromkeys(("text", "date", "stamp", "time", "uuid", "nothing"), "VARCHAR"),
            **dict.fromkeys(("whole", "snowflake"), "BIGINT"),
            "wide": "HUGEINT",
            "number": "DOUBLE",
            "flag": "BOOLEAN",
        }
        assert relation.columns == list(record)
        assert relation.fetchall() == [tuple(record.values()), (None,) * len(record)]

    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([1, 2.5], "DOUBLE"),
            ([2**53 + 1, 0.5], "JSON"),
            ([1, "1"], "JSON"),
            ([True, "x"], "JSON"),
            ([True, 1], "JSON"),
            ([[1], None], "JSON"),
            ([{"a": "2024-01-02"}], "JSON"),
            ([-(2**63), 2**63 - 1], "BIGINT"),
            ([2**63], "HUGEINT"),
            ([2**200], "JSON"),
        ],
    )
    def test_what_has_no_one_kind_stays_json(self, write: Write, values: list[Any], kind: str) -> None:
        path = write("a.json", json.dumps([{"a": value} for value in values]))
        relation = open_files(path)
        assert types(relation) == {"a": kind}
        read = [value if kind != "JSON" or value is None else json.loads(value) for (value,) in relation.fetchall()]
        assert read == values

    def test_what_comes_late_counts(self, write: Write) -> None:
        lines = ['{"a": 1}'] * 40_000 + ['{"a": "2", "b": "2024-01-02"}']
        relation = open_files(write("a.ndjson", "\n".join(lines)))
        assert types(relation) == {"a": "JSON", "b": "VARCHAR"}
        assert relation.filter("b IS NOT NULL").fetchall() == [('"2"', "2024-01-02")]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.json", '[{"a": "x"}, {"a": "y"}]'),
            ("a.json", '[\n {\n "a": "x"},\n {"a": "y"}\n]\n'),
            ("a.json", '{"a": "x"}\n{"a": "y"}\n'),
            ("a.jsonl", '{"a": "x"}\r\n\r\n{"a": "y"}'),
            ("a.json.gz", gzip.compress(b'[{"a": "x"}, {"a": "y"}]', mtime=0)),
            ("a.jsonl.gz", gzip.compress(b'{"a": "x"}\n{"a": "y"}', mtime=0)),
        ],
    )
    def test_forms(self, write: Write, name: str, content: str | bytes) -> None:
        assert rows(write(name, content)) == [("x",), ("y",)]

    def test_hostile_text(self, write: Write) -> None:
        path = write("a.jsonl", "\n".join(json.dumps(dict.fromkeys(HOSTILE, text)) for text in HOSTILE))
        assert sorted(open_files(path).columns) == sorted(HOSTILE)
        assert rows(path) == [(text,) * len(HOSTILE) for text in HOSTILE]

    @pytest.mark.parametrize(
        ("content", "code"),
        [
            ("", "empty-file"),
            ("\n", "not-records"),
            ("{}\n", "not-records"),
            ("1\n2\n", "not-records"),
            ('{"a": 1}\nnull\n', "not-records"),
            ('[{"a": 1}]\n', "not-records"),
            ('{"a": 1, "A": 2}\n', "ambiguous-columns"),
            ('{"": 1}\n', "not-records"),
            ('{"a": 1, "a": 2}\n', "unreadable-file"),
            ('{"a": 1}\n{"a": \n', "unreadable-file"),
            ('{"a": "\\ud800"}\n', "unreadable-file"),
            (b'{"a": "\xe9"}\n', "not-utf8"),
            (b'\xef\xbb\xbf{"a": 1}\n', "malformed-file"),
        ],
    )
    def test_bad_files(self, write: Write, content: str | bytes, code: str) -> None:
        refused = refusal(write("bad.jsonl", content))
        assert refused.code == code
        assert "bad.jsonl" in refused.message.split("\n")[0]

    def test_array_cut_short(self, write: Write) -> None:
        assert refusal(write("a.json", '[{"a": 1}, {"a": ')).code == "malformed-file"


class TestParquet:
    def test_types_stay(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.pq", "SELECT 7::SMALLINT a, '007' b, true c, DATE '2024-01-02' d, 0.5::FLOAT e")
        expected = {"a": "SMALLINT", "b": "VARCHAR", "c": "BOOLEAN", "d": "DATE", "e": "FLOAT"}
        assert types(open_files(path)) == expected
        assert rows(path)[0][:3] == (7, "007", True)

    @pytest.mark.parametrize("keep", [0.5, 0.99])
    def test_cut_short(self, tmp_path: Path, keep: float) -> None:
        path = parquet(tmp_path / "a.parquet", "SELECT range a FROM range(1000)")
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * keep)])
        error = refusal(path)
        assert error.code == "unreadable-file"
        assert error.message.split("\n", 1)[1].startswith("Invalid Input Error: No magic bytes found")

    def test_damaged_in_the_middle(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", "SELECT md5(range::VARCHAR) a FROM range(20000)")
        whole = bytearray(path.read_bytes())
        whole[4:2000] = b"\xff" * 1996
        path.write_bytes(whole)
        assert refusal(path).code == "unreadable-file"

    def test_columns_without_a_name_are_ignored(self, tmp_path: Path) -> None:
        arrow = pytest.importorskip("pyarrow")
        store = pytest.importorskip("pyarrow.parquet")
        store.write_table(arrow.table([["a"], ["b"], ["c"]], names=["", "label", ""]), tmp_path / "a.parquet")
        assert open_files(tmp_path / "a.parquet").columns == ["label"]
        assert rows(tmp_path / "a.parquet") == [("b",)]

    @pytest.mark.parametrize("names", [["Label", "label"], ["label", "label"]])
    def test_names_that_duckdb_would_change(self, tmp_path: Path, names: list[str]) -> None:
        arrow = pytest.importorskip("pyarrow")
        store = pytest.importorskip("pyarrow.parquet")
        store.write_table(arrow.table([["a"], ["b"]], names=names), tmp_path / "a.parquet")
        assert refusal(tmp_path / "a.parquet").code == "ambiguous-columns"

    def test_hostile_text(self, tmp_path: Path) -> None:
        relation = relation_of(dict.fromkeys(HOSTILE, HOSTILE), connect())
        relation.write_parquet(str(tmp_path / "a.parquet"))
        assert open_files(tmp_path / "a.parquet").columns == HOSTILE
        assert rows(tmp_path / "a.parquet") == [(text,) * len(HOSTILE) for text in HOSTILE]


class TestSeveral:
    def test_columns_meet_by_name(self, write: Write) -> None:
        write("1.csv", "a,b\n1,2\n")
        write("2.csv", "b,a\n4,3\n")
        write("3.csv", "a;b\n5;6\n")
        path = write("4.csv.gz", gzip.compress(b"b,a\n8,7\n"))
        assert rows(path.parent / "*.csv*") == [("1", "2"), ("3", "4"), ("5", "6"), ("7", "8")]

    def test_json_and_parquet_too(self, write: Write, tmp_path: Path) -> None:
        write("1.jsonl", '{"a": 1, "b": "x"}')
        write("2.jsonl", '{"b": "y", "a": 2.5}')
        parquet(tmp_path / "1.parquet", "SELECT 1::TINYINT a, 'x' b")
        parquet(tmp_path / "2.parquet", "SELECT 'y' b, 2.5::DOUBLE a")
        assert rows(tmp_path / "*.jsonl") == rows(tmp_path / "*.parquet") == [(1.0, "x"), (2.5, "y")]

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
    def test_a_file_without_a_column(self, write: Write, tmp_path: Path, kind: str) -> None:
        if kind == "parquet":
            one, two = (
                parquet(tmp_path / "1.parquet", "SELECT 1 a, 2 Label"),
                parquet(tmp_path / "2.parquet", "SELECT 1 a"),
            )
        elif kind == "csv":
            one, two = write("1.csv", "a,Label\n1,2\n"), write("2.csv", "a\n1\n")
        else:
            one, two = write("1.jsonl", '{"a": 1, "Label": 2}'), write("2.jsonl", '{"a": 1}')
        for order in ([one, two], [two, one]):
            assert refusal(order).code == "columns-differ"

    def test_a_column_spelled_in_two_ways(self, write: Write) -> None:
        one, two = write("1.csv", "a,Label\n1,2\n"), write("2.csv", "a,label\n1,2\n")
        assert "'label'" in refusal([one, two]).hint

    def test_text_here_and_numbers_there(self, tmp_path: Path) -> None:
        one = parquet(tmp_path / "1.parquet", "SELECT 7 a")
        two = parquet(tmp_path / "2.parquet", "SELECT '007' a")
        assert refusal([one, two]).code == "types-differ"

    def test_text_here_and_numbers_there_in_json(self, write: Write) -> None:
        write("1.jsonl", '{"a": 7}')
        path = write("2.jsonl", '{"a": "007"}')
        assert types(open_files(path.parent / "*.jsonl")) == {"a": "JSON"}

    def test_mixed_kinds(self, write: Write) -> None:
        one, two = write("1.csv", "a\n"), write("2.tsv", "a\n")
        assert refusal([one, two]).code == "mixed-file-types"

    def test_one_file_twice(self, write: Write) -> None:
        path = write("1.csv", "a\n")
        assert refusal([path, path]).code == "duplicate-file"
        assert refusal([path, path.parent / "*.csv"]).code == "duplicate-file"

    def test_globs(self, write: Write) -> None:
        write("deep/er/2.csv", "a\n2\n")
        folder = write("deep/1.csv", "a\n1\n").parent
        write("deep/er/x.txt", "no")
        assert rows(f"{folder}/**/*.csv") == [("1",), ("2",)]
        assert rows([f"{folder}/er/*.csv", folder / "1.csv"]) == [("2",), ("1",)]
        assert rows(folder / "[0-9].csv") == [("1",)]

    def test_a_folder_name_is_no_column(self, write: Write, tmp_path: Path) -> None:
        (tmp_path / "x=1").mkdir()
        assert open_files(write("x=1/a.csv", "a\n1\n")).columns == ["a"]
        assert open_files(write("x=1/a.jsonl", '{"a": 1}')).columns == ["a"]
        assert open_files(parquet(tmp_path / "x=1" / "a.parquet", "SELECT 1 a")).columns == ["a"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of each kind, each of 300,000 rows: 60 row groups, several blocks of text."""
    folder = tmp_path_factory.mktemp("many")
    for part in (0, 1):
        query = f"SELECT i + {part * 300_000} AS i, repeat('x', (i * 7919 % 200)::INT) AS pad FROM range(300000) t(i)"
        for suffix, options in (("parquet", ", row_group_size 5000"), ("csv", ", header"), ("json", "")):
            connect().execute(f"COPY ({query}) TO '{folder}/{part}.{suffix}' (FORMAT {suffix}{options})")
    return folder


class TestOrder:
    @pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
    def test_numbers_follow_the_files(self, many: Path, suffix: str) -> None:
        connection = connect()
        connection.execute("SET threads = 8")
        frame = frame_of(open_files(many / f"*.{suffix}", connection=connection))
        assert frame is not None
        relation = frame.numbered().native
        assert relation.columns == ["i", "pad", ROW_NUMBER]
        checked = relation.aggregate(
            f'count(*), bool_and("{ROW_NUMBER}" = i::BIGINT + 1), count(DISTINCT "{ROW_NUMBER}")'
        )
        assert checked.fetchall() == [(600_000, True, 600_000)]


@pytest.mark.parametrize("end", [",", ", ", ",\n", ""])
@pytest.mark.parametrize("packed", [False, True])
def test_a_json_array_that_is_cut_short_is_refused(tmp_path: Path, end: str, packed: bool) -> None:
    path = tmp_path / ("votes.json.gz" if packed else "votes.json")
    row = '{"item": 1, "suggested": "x", "ann_1": "x", "ann_2": "y"}'
    write = gzip.open if packed else open
    with write(path, "wt") as file:
        file.write(f" [{row}{end}")
    with expect_error("malformed-file"):
        dhkappa.dh_kappa(path)
    with write(path, "wt") as file:
        file.write(f" [{row}] \n" + " " * (2 << 20))
    assert dhkappa.dh_kappa(path).n_items == 1


def test_a_folder_of_votes_and_items(tmp_path: Path) -> None:
    (tmp_path / "annotations.csv").write_text("item,annotator,label\n1,a,x\n")
    (tmp_path / "items.csv").write_text("item,suggested_llm\n1,x\n")
    votes, items = str(tmp_path / "annotations.csv"), str(tmp_path / "items.csv")
    for path, code in ((tmp_path, "path-is-folder"), (tmp_path / "*.csv", "columns-differ")):
        with expect_error(code) as caught:
            dhkappa.read(path)
        assert caught.value.options == {"path": votes, "items": items}
        assert str(caught.value).endswith(f"Pass {votes!r}, and the table of items with items={items!r}.")
    (tmp_path / "more.csv").write_text("item,annotator,label\n1,b,x\n")  # which one has the votes is unclear
    with expect_error("path-is-folder") as caught:
        dhkappa.read(tmp_path)
    assert caught.value.options == {"path": str(tmp_path / "*.csv")}
    with expect_error("columns-differ") as caught:
        dhkappa.read(tmp_path / "*.csv")
    assert (caught.value.options, caught.value.choices) == ({}, {"path": "VOTES", "items": "ITEMS"})
