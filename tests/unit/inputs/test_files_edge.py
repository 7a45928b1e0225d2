"""Damaged and unreadable files."""

import gzip
import os
from pathlib import Path

import pytest

import dhkappa
from dhkappa import dh_kappa
from expect import expect_error

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]
WIDE = "item,suggested,ann_1,ann_2,ann_3\n" + "".join(
    f"t{place},{label},{','.join(votes)}\n" for place, (label, votes) in enumerate(zip(LABELS, VOTES, strict=True))
)


@pytest.fixture
def unreadable(tmp_path: Path) -> Path:
    """A file that also root cannot read."""
    path = tmp_path / "unreadable.csv"
    path.write_text(WIDE)
    path.chmod(0)
    if os.access(path, os.R_OK):
        path.unlink()
        if not os.path.isfile("/proc/self/mem"):
            pytest.skip("this user can read every file")
        path.symlink_to("/proc/self/mem")
    return path


def test_compressed_file_with_two_errors(tmp_path: Path) -> None:
    """DuckDB finds the additional field before the byte that is not UTF-8."""
    path = tmp_path / "votes.csv.gz"
    many = "".join(f"u{place},a,a,a,b\n" for place in range(10_000)).encode()
    path.write_bytes(gzip.compress(WIDE.encode() + many + b"v,a,caf\xe9,b,b\nw,a,a,a,a,a\n"))
    with expect_error("wrong-number-of-fields"):
        dh_kappa(path)


def test_json_without_a_comma(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text('[{"text": "x"}\n {"text": "y"}]')
    with expect_error("malformed-file"):
        dhkappa.read(path, input_format="doccano")


def test_unreadable_file(unreadable: Path) -> None:
    with expect_error("file-not-readable", "path"):
        dhkappa.read(unreadable)
