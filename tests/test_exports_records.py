"""Files of JSON records: every layout gives the same records, every damage one sentence with file and line."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dhkappa.errors import DataError
from dhkappa.inputs.readers.records import first_record, read_records

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
    with pytest.raises(DataError, match=r"two\.zip holds two files called 'x'"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.json", b"", r"empty\.json holds no records"),
        ("blank.jsonl", b" \n\r\n\t", r"blank\.jsonl holds no records"),
        ("none.json", b"[]", r"none\.json holds no records"),
        ("cut.json", b'[{"id": 1},\n {"id": 2},\n {"id": ', r"cut\.json is not whole JSON, .* in line 3, column 9"),
        ("cut.jsonl", b'{"id": 1}\n\n{"id": 2', r"cut\.jsonl is not whole JSON, .* in line 3, column"),
        ("first.jsonl", b'{"id": 1\n{"id": 2}\n', r"first\.jsonl is not whole JSON, .* in line 1, column"),
        ("open.jsonl", b'\n[{"id": 1},\n{"id" 2}]', r"open\.jsonl is not whole JSON, .* in line 3, column 7"),
        ("more.json", b'[{"id": 1}]\n[{"id": 2}]', r"more\.json is not whole JSON, .* in line 2, column 1: Extra data"),
        ("table.csv", b"id,label\n1,a\n", r"table\.csv is not whole JSON, .* in line 1, column 1"),
        ("number.json", b"12", r"number\.json holds 12 in line 1: a record is a JSON object"),
        ("text.jsonl", b'{"id": 1}\n"x"\n', r"text\.jsonl holds 'x' in line 2: a record is a JSON object"),
        ("nested.json", b"[[1]]", r"nested\.json holds \[1\] as its record 1: a record is a JSON object"),
        ("latin.json", b'[{"a": 1},\n{"a": "\xe9"}]', r"latin\.json is not UTF-8 in line 2"),
        ("latin.jsonl", b'{"a": 1}\n\n{"a": "\xe9"}', r"latin\.jsonl is not UTF-8 in line 3"),
        ("wide.json", '[{"a": 1}]'.encode("utf-16"), r"wide\.json is not UTF-8 in line 1"),
        ("deep.json", b"[" * 200_000, r"deep\.json holds JSON that cannot be read"),
        ("long.jsonl", b'{"a": ' + b"9" * 5000 + b"}", r"long\.jsonl holds JSON that cannot be read, in line 1"),
        ("cut.json.gz", gzip.compress(LINES.encode())[:-12], r"^cannot read .*cut\.json\.gz: "),
        ("odd.json.gz", b"\x1f\x8b\x08\x00 is no gzip", r"^cannot read .*odd\.json\.gz: "),
        ("cut.zip", zipped({"a.json": b"[]"})[:40], r"^cannot read .*cut\.zip: "),
        ("void.zip", zipped({}), r"void\.zip is a zip without a \.json or \.jsonl file: it holds nothing"),
        ("other.zip", zipped({"a.csv": b"", "x.zip": b""}), r"other\.zip is a zip without .* 'a\.csv', 'x\.zip'\.$"),
        ("blank.zip", zipped({"a.jsonl": b"", "b.json": b"[]"}), r"blank\.zip holds no records"),
        ("bad.zip", zipped({"a.json": b"[{}]", "b.jsonl": b"{}\n{"}), r"bad\.zip: b\.jsonl is not whole .* in line 2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # bytes may hold the time
)
def test_what_is_no_file_of_records(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=told) as caught:
        read_records(path)
    assert str(caught.value).count("\n") == 0


def test_a_damaged_member_and_a_locked_one(tmp_path: Path) -> None:
    whole = zipped({"a.json": json.dumps(ROWS).encode()})
    start = whole.index(b"a.json") + 10
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(whole[:start] + bytes(byte ^ 255 for byte in whole[start : start + 9]) + whole[start + 9 :])
    with pytest.raises(DataError, match=r"^cannot read .*damaged\.zip: "):
        read_records(damaged)
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    with pytest.raises(DataError, match=r"^cannot read .*locked\.zip: .*password"):
        read_records(tmp_path / "locked.zip")
    assert first_record(damaged) is None
    assert first_record(tmp_path / "locked.zip") is None


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(DataError, match=r"^cannot read "):
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


def test_a_record_has_its_bound_however_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.inputs.readers.records._LONGEST", 20)
    path = tmp_path / "some.jsonl"
    path.write_text('{"a": "123456789012"}\n{"a": 1}\n')
    with pytest.raises(DataError, match="in line 1: this is no export"):
        read_records(path)
    path.write_text('{"a": "12345678901"}\n{"a": 1}\n')
    assert len(read_records(path)["some"]) == 2
