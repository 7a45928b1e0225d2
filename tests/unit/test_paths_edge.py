"""Temporary files of interrupted writes."""

import os
import time
from pathlib import Path

import pytest

from dhkappa.paths import write_file
from expect import expect_error


def test_old_temporary_files_are_removed(tmp_path: Path) -> None:
    old, new, other = (tmp_path / f".t.json.{letter * 16}.draft" for letter in "abz")
    for path in (old, new, other):
        path.write_text("partial")
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    write_file(tmp_path / "u.json", "another", "tally")
    assert old.exists()
    write_file(tmp_path / "t.json", "complete", "tally")
    assert sorted(os.listdir(tmp_path)) == [new.name, other.name, "t.json", "u.json"]


def test_links_at_the_name_of_the_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda n: "ab" * n)
    (tmp_path / "other").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / f".t.json.{'ab' * 8}.draft").symlink_to(tmp_path / "other")
    with expect_error("cannot-write"):
        write_file(tmp_path / "folder" / "t.json", "complete", "tally")
    assert (tmp_path / "other").read_text() == "precious"


def test_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.json").write_text("old")

    def full(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == 3
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dhkappa.paths.os.fsync", full)
    with expect_error("cannot-write"):
        write_file(tmp_path / "t.json", "new", "tally")
    assert (tmp_path / "t.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["t.json"]
