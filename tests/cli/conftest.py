"""Fixtures of the command line tests."""

import os
import sys
from pathlib import Path

import pytest

from command import WIDE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with votes on eight items and two labelers, with the command on the path."""
    (tmp_path / "votes.csv").write_text(WIDE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return tmp_path
