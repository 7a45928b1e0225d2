"""Fixtures of the command line tests."""

from pathlib import Path

import pytest

from command import WIDE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with votes on eight items and two labelers."""
    (tmp_path / "votes.csv").write_text(WIDE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
