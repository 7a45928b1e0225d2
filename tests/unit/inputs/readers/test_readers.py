"""Files of JSON records: every layout gives the same records, every damage one sentence with file and line."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dhkappa.errors import DataError
from dhkappa.inputs.readers import first_record, read_records
from expect import expect_error

ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": 'é "x"\u2028 😀 ]}'},
    {"id": 2, "nested": {"a": [1, {"b": None}]}},
    {"id": 3},
]
LINES = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
LAYOUTS = {
    "array": json.dumps(ROWS, ensure_ascii=False),
    "array, indented": json.dumps(ROWS, indent=2),
    "array, a record a line": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "lines": LINES + "\n",
    "lines, last one open": LINES,
    "lines with blanks": "\n \r\n" + LINES.replace("\n", "\r\n\r\n\t\n") + "\r\n\r\n",
}


def zipped(members: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return held.getvalue()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("suffix", ["json", "jsonl", "ndjson", "JSON", "txt"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
@pytest.mark.parametrize("packed", [False, True], ids=["", "gz"])
def test_every_layout(tmp_path: Path, layout: str, suffix: str, mark: bytes, packed: bool) -> None:
    content = mark + LAYOUTS[layout].encode()
    path = tmp_path / (f"my.votes.{suffix}" + (".gz" if packed else ""))
    path.write_bytes(gzip.compress(content) if packed else content)
    assert read_records(path) == {"my.votes": ROWS}
    assert read_records(str(path)) == {"my.votes": ROWS}
    assert first_record(path) == ROWS[0]


@pytest.mark.parametrize("indent", [None, 1])
def test_one_object(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(ROWS[1], indent=indent))
    assert read_records(path) == {"one": [ROWS[1]]}
    assert first_record(path) == ROWS[1]


def test_zip(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    members = {
        "notes.txt": b"{}",
        "__MACOSX/._ann.jsonl": b"\0\1",
        "inner.zip": zipped({"x.jsonl": b'{"id": 9}'}),
        "empty.jsonl": b"",
        "folder/ann.b.jsonl": LINES.encode(),
        "all.json": json.dumps(ROWS[1:]).encode(),
        "packed.jsonl.gz": gzip.compress(b'{"id": 4}'),
    }
    path.write_bytes(zipped(members))
    assert read_records(path) == {"empty": [], "ann.b": ROWS, "all": ROWS[1:], "packed": [{"id": 4}]}
    assert first_record(path) == ROWS[0]


def test_a_zip_whose_files_have_one_name(tmp_path: Path) -> None:
    path = tmp_path / "two.zip"
    path.write_bytes(zipped({"a/x.jsonl": b'{"id": 1}', "b/x.json": b'{"id": 2}'}))
    with expect_error("duplicate-file"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.json", b"", "empty-file"),
        ("blank.jsonl", b" \n\r\n\t", "empty-file"),
        ("none.json", b"[]", "empty-file"),
        ("cut.json", b'[{"id": 1},\n {"id": 2},\n {"id": ', "malformed-file"),
        ("cut.jsonl", b'{"id": 1}\n\n{"id": 2', "malformed-file"),
        ("first.jsonl", b'{"id": 1\n{"id": 2}\n', "malformed-file"),
        ("open.jsonl", b'\n[{"id": 1},\n{"id" 2}]', "malformed-file"),
        ("more.json", b'[{"id": 1}]\n[{"id": 2}]', "malformed-file"),
        ("table.csv", b"id,label\n1,a\n", "malformed-file"),
        ("number.json", b"12", "not-records"),
        ("text.jsonl", b'{"id": 1}\n"x"\n', "not-records"),
        ("nested.json", b"[[1]]", "not-records"),
        ("latin.json", b'[{"a": 1},\n{"a": "\xe9"}]', "not-utf8"),
        ("latin.jsonl", b'{"a": 1}\n\n{"a": "\xe9"}', "not-utf8"),
        ("wide.json", '[{"a": 1}]'.encode("utf-16"), "not-utf8"),
        ("deep.json", b"[" * 200_000, "malformed-file"),
        ("long.jsonl", b'{"a": ' + b"9" * 5000 + b"}", "malformed-file"),
        ("cut.json.gz", gzip.compress(LINES.encode())[:-12], "file-not-readable"),
        ("odd.json.gz", b"\x1f\x8b\x08\x00 is no gzip", "file-not-readable"),
        ("cut.zip", zipped({"a.json": b"[]"})[:40], "file-not-readable"),
        ("void.zip", zipped({}), "empty-file"),
        ("other.zip", zipped({"a.csv": b"", "x.zip": b""}), "empty-file"),
        ("blank.zip", zipped({"a.jsonl": b"", "b.json": b"[]"}), "empty-file"),
        ("bad.zip", zipped({"a.json": b"[{}]", "b.jsonl": b"{}\n{"}), "malformed-file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # bytes may hold the time
)
def test_what_is_no_file_of_records(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with expect_error(code) as caught:
        read_records(path)
    assert str(caught.value).count("\n") == 0


def test_a_damaged_member_and_a_locked_one(tmp_path: Path) -> None:
    whole = zipped({"a.json": json.dumps(ROWS).encode()})
    start = whole.index(b"a.json") + 10
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(whole[:start] + bytes(byte ^ 255 for byte in whole[start : start + 9]) + whole[start + 9 :])
    with expect_error("file-not-readable"):
        read_records(damaged)
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    with expect_error("file-not-readable"):
        read_records(tmp_path / "locked.zip")
    assert first_record(damaged) is None
    assert first_record(tmp_path / "locked.zip") is None


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with expect_error("file-not-readable"):
            read_records(path)
        assert first_record(path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"  \n",
        b"[]",
        b"[ ",
        b"12",
        b"[[1]]",
        b'["x"]',
        b"id,label\n1,a\n",
        b'{"a": 1',
        b'{"a": tru}',
        b'{"a": "\xe9"}',
        b"PAR1\x15\x04",
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        '{"a": 1}'.encode("utf-16"),
        b"PK\x03\x04 no zip",
        zipped({}),
        zipped({"a.csv": b"x"}),
        gzip.compress(b"a,b\n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # bytes may hold the time
)
def test_no_first_record(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert first_record(path) is None


@pytest.mark.parametrize("opening", [b"", b"["], ids=["lines", "array"])
def test_the_first_record_of_a_huge_file_is_read_from_its_head(tmp_path: Path, opening: bytes) -> None:
    record = {"id": 1, "text": "é" * 300_000, "more": [True, None, -1.5e3, "\\u00e9"] * 50_000}
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.write(opening + json.dumps(record, ensure_ascii=False).encode() + b",\n")
        file.truncate(1 << 36)  # zeros, which take no place on the disk but would in memory
    assert first_record(path) == record


def test_a_damaged_record_does_not_read_a_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.write(b'[{"id": 1 "label": 2}, ')
        file.truncate(1 << 36)
    assert first_record(path) is None


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'[{"id": 1},\n {"id": 2},\n {"id": ', 3),
        (b'{"id": 1}\n\n{"id": 2', 3),
        (b'{"a": 1}\n\n{"a": "\xe9"}', 3),
        (b'{}\n"x"', 2),
    ],
)
def test_errors_name_the_line(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"in line {line}"):
        read_records(path)
