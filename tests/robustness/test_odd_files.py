"""Files that are not what their names say, damaged files, and files that change: one short error each."""

import gzip
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import dhkappa
from dhkappa.errors import DataError

VOTES = "item,suggested,ann_1,ann_2\n1,a,a,a\n2,b,b,a\n3,a,a,b\n"
CONTENT: dict[str, bytes] = {
    "wide.csv": VOTES.encode("utf-16"),
    "big-endian.jsonl": b"\xfe\xff\0{",
    "packed.csv": gzip.compress(VOTES.encode()),
    "packed.jsonl": gzip.compress(b'{"a": 1}'),
    "zip.csv": b"PK\x03\x04....",
    "parquet.csv": b"PAR1....PAR1",
    "long.csv": VOTES.encode() + b"4,a," + b"x" * 3_000_000 + b",a\n5,a,a,a\n",
    "export.zip": b"PK\x03\x04 cut",
    "count.csv": b"item,suggested,label,count\n1,a,a,4000000000\n",
    "digits.csv": "item,suggested,label,count\n1,a,a,٢\n".encode(),
    "large.json": json.dumps([{"item": 1, "suggested": 10**25, "ann_1": 10**25, "ann_2": 3}]).encode(),
    "fields.csv": VOTES.encode() + b"4,a," + b"x" * 100_000 + b"\n5,a,a,a\n",
    "lines.csv": VOTES.encode() + b'4,a,"' + b"x\n" * 1000 + b'",a,a,a\n5,a,a,a\n',
}


@pytest.mark.parametrize("name", CONTENT)
def test_one_short_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENT[name])
    with pytest.raises(DataError) as caught:
        dhkappa.dh_kappa(path)
    assert len(str(caught.value)) < 1000
    assert len(str(caught.value).splitlines()) < 20


def test_a_column_may_be_called_as_parquet_begins(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("PAR1,PAR2,suggested\na,a,a\na,b,b\nb,b,b\n")
    assert dhkappa.dh_kappa(path, annotators=["PAR1", "PAR2"]).n_items == 3


def test_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").symlink_to("gone.csv")
    with pytest.raises(DataError, match="gone"):
        dhkappa.dh_kappa(tmp_path / "votes.csv")


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    calls: list[Callable[[Path], object]] = [
        dhkappa.Tally.load,
        lambda path: dhkappa.read(path).tally(),
        lambda path: dhkappa.read(path, input_format="argilla").tally(),
    ]
    for call in calls:
        for path in (tmp_path / "pipe.json", Path("/dev/zero")):
            with pytest.raises(DataError, match=path.name):
                call(path)


def test_a_pipe_replaces_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    dataset = dhkappa.read(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="changed"):
        dhkappa.dh_kappa(dataset)


def test_a_change_with_the_old_time_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    before = path.stat()
    dataset = dhkappa.read(path)
    path.write_text(VOTES.replace("1,a,a,a", "1,a,b,b"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(DataError, match="changed"):
        dhkappa.dh_kappa(dataset)


def test_a_tally_with_a_repeated_key(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    dhkappa.tally([["a", "a"]], ["a"]).save(path)
    text = path.read_text()
    path.write_text(text.replace('"version": ', '"items": 1, "version": ', 1))
    assert path.read_text() != text
    with pytest.raises(DataError, match="'items'"):
        dhkappa.Tally.load(path)


def test_a_zip_that_is_not_an_export(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(DataError, match="zip"):
        dhkappa.dh_kappa(tmp_path / "x.zip")
