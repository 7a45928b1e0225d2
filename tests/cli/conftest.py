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


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let today be later than the dates of saved audits, whatever the clock of the machine says."""
    monkeypatch.setattr("dhkappa.cli.history.today", lambda: "2026-12-31")
