"""Run the command line in tests: in this process, or as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from dhkappa.cli.commands import commands, main

COMMAND = str(Path(sys.executable).with_name("dhkappa"))
REPORTS = all(map(find_spec, ("altair", "jinja2", "vl_convert")))

VOTES: list[list[str | None]] = [
    ["spam", "spam", "spam"],
    ["ham", "ham", "spam"],
    ["ham", "ham", None],
    ["news", "news", "news"],
    ["news", "ham", "news"],
    ["spam", "spam", None],
    ["ham", "ham", "ham"],
    ["news", "news", None],
]
RULE = ["spam", "spam", "ham", "ham", "news", "ham", "ham", "news"]
LLM = ["spam", "ham", "ham", "news", "news", "spam", "ham", "spam"]
WIDE = "item,suggested_rule,suggested_llm,ann_1,ann_2,ann_3\n" + "".join(
    f"t{place},{rule},{llm},{','.join(vote or '' for vote in votes)}\n"
    for place, (rule, llm, votes) in enumerate(zip(RULE, LLM, VOTES, strict=True), 1)
)


def environment(**more: str) -> dict[str, str]:
    """Return an environment without terminal settings, with UTF-8."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "TERM")}
    return kept | {"PYTHONIOENCODING": "utf-8"} | more


def run(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the installed command."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
        env=environment(**(env or {})),
        timeout=120,
    )


def inside(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    shown = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, shown.out, shown.err)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Check that a command failed with one line and exit code 2, and return the line."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("dhkappa: ")
    return lines[0].removeprefix("dhkappa: ")


def call(*words: str) -> None:
    """Run a command in this process, and let its errors through."""
    commands.main(list(words), prog_name="dhkappa", standalone_mode=False)
