"""The robustness scripts detect wrong outcomes, and write their sections."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import advisories
import cover
import dhkappa
import faults_kill
import mutate
import oldest
import section
from faults_common import NEW_FILE, NO_FILE, Fault

# The page


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a page of two sections."""
    path = tmp_path / "robustness.md"
    (tmp_path / "src" / "dhkappa").mkdir(parents=True)
    (tmp_path / "src" / "dhkappa" / "kappa.py").write_text("one = 1\n")
    marks = (f"<!-- {name}: written by make {name} -->\n<!-- end of {name} -->\n" for name in ("fuzz", "faults"))
    path.write_text("\n".join(marks))
    monkeypatch.setattr(section, "ROOT", tmp_path)
    monkeypatch.setattr(section, "PAGE", path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return path


def _git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_section_names_the_source_tree(page: Path) -> None:
    folder = page.parent
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "one")
    tree = _git(folder, "rev-parse", "--short", "HEAD:src/dhkappa")
    section.write("fuzz", "nothing")
    assert f"dhkappa {dhkappa.__version__} (src/dhkappa at tree {tree}), Python " in page.read_text()
    (folder / "src" / "dhkappa" / "more.py").write_text("two = 2\n")
    section.write("fuzz", "nothing")
    assert f"(src/dhkappa at tree {tree}, with changes), Python " in page.read_text()


def test_section_without_git(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(page.parent.parent))
    section.write("fuzz", "nothing")
    assert f"with dhkappa {dhkappa.__version__}, Python " in page.read_text()
    monkeypatch.setenv("PATH", "")
    assert section.source() == ""


def test_unknown_section(page: Path) -> None:
    with pytest.raises(SystemExit):
        section.write("other", "nothing")


def test_one_part_of_the_faults_is_replaced(page: Path) -> None:
    pytest.importorskip("pyarrow")
    import faults

    first, second = (title for title, _, _ in list(faults.PARTS.values())[:2])
    section.write("faults", faults.section({first: "one", second: "two"}))
    section.write("faults", faults.section({first: "three"}))
    text = page.read_text()
    assert f"### {first}\n\nthree\n\n### {second}\n\ntwo\n\nMade on 20" in text
    assert text.count("Made on ") == text.count("two") == 1


# Faults


@pytest.mark.parametrize(
    ("suffix", "found", "wrong"), [(".csv", 6, 0), (".parquet", 1, 0), (".parquet", 0, 0), (".csv", 0, 1)]
)
def test_control_without_the_check(suffix: str, found: int, wrong: int) -> None:
    pytest.importorskip("pyarrow")
    import faults_files

    fault = Fault("a changed file")
    faults_files.check_control(fault, suffix, found, 10)
    assert len(fault.wrong) == wrong
    assert f"{found} of 10 runs" in fault.row[2] or wrong


@pytest.mark.parametrize(("after", "expected"), [(0, (4, 4)), (2, (2, 4)), (20, (1, 21)), (200, (0, 100))])
def test_runs_without_the_check_continue_until_one_is_wrong(after: int, expected: tuple[int, int]) -> None:
    pytest.importorskip("pyarrow")
    import faults_files
    from dhkappa.paths import FileStates

    check, rounds = FileStates._check, iter([*[("", "one")] * after, *[("", "neither")] * 9])

    def race(*_: Any) -> tuple[str, str]:
        assert FileStates._check is not check
        return next(rounds)

    file: Any = SimpleNamespace(tallies=["one", "other"], race=race)
    assert faults_files.without_check(file, 4, 1000, random.Random(1)) == expected
    assert FileStates._check is check


@pytest.mark.parametrize(("late", "wrong"), [(0, True), (5, True), (6, False), (120, False), (121, True)])
def test_kills_must_cover_the_run(late: int, wrong: bool) -> None:
    fault = Fault("kill -9", Counter({NEW_FILE: late, NO_FILE: 200 - late}))
    faults_kill.check_times(fault)
    assert bool(fault.wrong) == wrong


def test_few_kills_may_miss_the_end_of_the_run() -> None:
    fault = Fault("kill -9", Counter({NO_FILE: 40}))
    faults_kill.check_times(fault)
    assert not fault.wrong


HEAD, LAST = "Traceback (most recent call last):\n", "KeyboardInterrupt\n"
OUTSIDE = '  File "/usr/lib/python3.11/site.py", line 1, in <module>\n    import os\n'
FINAL = "1,060 items written to made/queue.csv.\n"


def _frame(file: str, where: str, line: str) -> str:
    return f'  File "{Path(dhkappa.__file__).parent / file}", line 6, in {where}\n    {line}\n'


LOADS = _frame("__init__.py", "<module>", "from __future__ import annotations")
ENTRY = _frame("__main__.py", "main", "def main() -> None:")
INSIDE = _frame("__main__.py", "main", "from dhkappa.cli.commands import main as run")
DEEP = _frame("cli/commands.py", "<module>", "import click")


@pytest.mark.parametrize(
    ("code", "err", "sign", "outcome"),
    [
        (0, "", signal.SIGINT, "already finished, exit code 0"),
        (0, FINAL, signal.SIGTERM, "already finished, exit code 0"),
        (0, HEAD + OUTSIDE + "ValueError\n", signal.SIGINT, ""),
        (-2, "", signal.SIGINT, "ended by the signal, no output"),
        (-15, FINAL, signal.SIGTERM, "ended by the signal, after the final message"),
        (-15, HEAD + OUTSIDE + LAST, signal.SIGTERM, ""),
        (-2, "", signal.SIGTERM, ""),
        (130, "", signal.SIGINT, "exit code 130 during imports"),
        (130, f"{FINAL}dhkappa: Interrupted.\n", signal.SIGINT, "exit code 130 with a message"),
        (130, "", signal.SIGTERM, ""),
        (1, HEAD + OUTSIDE + LAST, signal.SIGINT, faults_kill.STARTUP),
        (-2, HEAD + OUTSIDE + LOADS + LAST, signal.SIGINT, faults_kill.STARTUP),
        (-2, HEAD + OUTSIDE + ENTRY + LAST, signal.SIGINT, faults_kill.STARTUP),
        (-2, HEAD + OUTSIDE + INSIDE + LAST, signal.SIGINT, ""),
        (-2, HEAD + LOADS + DEEP + LAST, signal.SIGINT, ""),
        (1, HEAD + OUTSIDE + "ImportError: KeyboardInterrupt\n", signal.SIGINT, ""),
        (1, "", signal.SIGINT, ""),
        (-6, "terminate called after throwing an instance\n", signal.SIGINT, ""),
        (-11, "", signal.SIGTERM, ""),
    ],
)
def test_ends_of_interrupted_commands(code: int, err: str, sign: int, outcome: str) -> None:
    assert faults_kill.ending(code, err, sign) == outcome


# Mutation testing, coverage, versions, advisories


@pytest.mark.parametrize(("survived", "code"), [(10, 0), (11, 1)])
def test_mutation_score(
    survived: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = ["killed"] * 88 + ["timeout"] * (12 - survived) + ["survived"] * survived
    mutants = {mutate.Mutant(f"m{n}", "sample.f", "a < b", "a <= b"): outcome for n, outcome in enumerate(outcomes)}
    monkeypatch.setattr(sys, "argv", ["mutate.py", "sample"])
    monkeypatch.setattr(mutate, "version", lambda name: "3")
    monkeypatch.setattr(mutate, "run", lambda *_: mutate.Result("sample", 100, mutants))
    assert mutate.main() == code
    assert capsys.readouterr().out.count("| `sample.f` | `a < b` | `a <= b` |") == survived


def test_tests_of_a_mutated_module_exist(tmp_path: Path) -> None:
    tests = mutate.copy("sample", tmp_path / "copy")
    assert tests[-3:] == ["tests/statistics", mutate.MESSAGES, "tests/test_docstrings.py"]
    assert all((tmp_path / "copy" / test.partition("::")[0]).exists() for test in tests)
    assert mutate.examples(tmp_path / "copy")


@pytest.mark.parametrize(("executed", "failed", "code"), [(99, 0, 0), (90, 0, 1), (99, 1, 1)])
def test_coverage(executed: int, failed: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    totals = {"covered_lines": executed, "num_statements": 100, "covered_branches": 10, "num_branches": 10}
    files = {"src/dhkappa/__init__.py": {"missing_lines": [1], "missing_branches": []}}
    monkeypatch.setattr(cover, "measure", lambda _: {"totals": totals, "files": files, "failed": failed})
    written: list[str] = []
    monkeypatch.setattr(cover, "write", lambda name, text: written.append(text))
    assert cover.main([]) == code
    assert "| __init__.py |" in written[0]


def test_oldest_version_of_a_development_requirement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[dependency-groups]\ndev = ['pyarrow-more>=3', 'pyarrow[x]>=22.1,<30']\n")
    monkeypatch.setattr(oldest, "PROJECT", project)
    assert oldest.development_constraint("pyarrow") == "pyarrow==22.1"


KNOWN = {"name": "a", "version": "1", "vulns": []}
VULNERABLE = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (3)"}


@pytest.mark.parametrize(
    ("packages", "code", "text"),
    [
        ([KNOWN, UNKNOWN], 0, "0 known vulnerabilities in 1 packages; no answer for 1."),
        ([KNOWN, VULNERABLE], 1, "b 2: PYSEC-1, fixed in 3"),
        ([UNKNOWN, UNKNOWN], 0, "no answer for any of 2 packages (Dependency not found on PyPI"),
        (None, 0, "exit code 1, no list of packages"),
    ],
)
def test_advisories(
    packages: Any, code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = "" if packages is None else json.dumps({"dependencies": packages})
    done = SimpleNamespace(stdout=out, stderr="Traceback\nConnectionError\n", returncode=1)
    run: Callable[..., Any] = lambda *_, **__: done  # noqa: E731
    monkeypatch.setattr(subprocess, "run", run)
    assert advisories.main() == code
    printed = capsys.readouterr().out
    assert text in printed
    answered = any("vulns" in package for package in packages or [])
    assert ("VULNERABILITIES NOT CHECKED" in printed) == ("pip-audit: ConnectionError" in printed) == (not answered)
