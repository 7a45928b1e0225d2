"""The robustness scripts: a run that shows nothing, or something wrong, must not pass as right."""

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dhkappa

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[None]:
    """The folder of the scripts, which import each other by their names."""
    sys.path.insert(0, str(ROOT / "robustness"))
    yield
    sys.path.remove(str(ROOT / "robustness"))


def script(name: str, *libraries: str) -> Any:
    """Return a script of robustness/, where the libraries that it needs can be had."""
    for library in libraries:
        pytest.importorskip(library)
    return importlib.import_module(name)


# The page


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The room of the page, with a project of its own that has one section."""
    room = script("page")
    (tmp_path / "src" / "dhkappa").mkdir(parents=True)
    (tmp_path / "src" / "dhkappa" / "kappa.py").write_text("one = 1\n")
    (tmp_path / "robustness.md").write_text("<!-- fuzz: written by make fuzz -->\n<!-- end of fuzz -->\n")
    monkeypatch.setattr(room, "ROOT", tmp_path)
    monkeypatch.setattr(room, "PAGE", tmp_path / "robustness.md")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # of whatever runs the tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return room


def _git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_section_names_the_source_that_it_was_made_with(page: Any) -> None:
    _git(page.ROOT, "init", "-q")
    _git(page.ROOT, "add", ".")
    _git(page.ROOT, "commit", "-q", "-m", "one")
    tree = _git(page.ROOT, "rev-parse", "--short", "HEAD:src/dhkappa")
    page.write("fuzz", "nothing")
    assert f"dhkappa {page.__version__} (src/dhkappa at tree {tree}), Python " in page.PAGE.read_text()
    (page.ROOT / "src" / "dhkappa" / "more.py").write_text("two = 2\n")
    page.write("fuzz", "nothing")
    assert f"(src/dhkappa at tree {tree}, changed since), Python " in page.PAGE.read_text()


def test_a_section_names_no_source_where_git_does_not_know(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(page.ROOT.parent))
    page.write("fuzz", "nothing")
    assert f"with dhkappa {page.__version__}, Python " in page.PAGE.read_text()
    monkeypatch.setenv("PATH", "")
    assert page.source() == ""


# Faults


def test_folders_left_behind_are_counted_in_words() -> None:
    faults = script("faults", "pyarrow")
    assert faults._left(0, 0) == ""
    assert "1 was left in TMPDIR here, with 20 bytes in it." in faults._left(1, 20)
    assert "1,200 were left in TMPDIR here, with 0 bytes in them." in faults._left(1200, 0)


def test_one_part_of_the_faults_is_written_anew_and_the_others_stay(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = script("faults", "pyarrow")
    page.PAGE.write_text("<!-- faults: written by make faults -->\n<!-- end of faults -->\n")
    monkeypatch.setattr(faults, "PAGE", page.PAGE)
    page.write("faults", faults._section({"Killed": "one", "Stopped": "two"}))
    page.write("faults", faults._section({"Killed": "three"}))
    text = page.PAGE.read_text()
    assert "### Killed\n\nthree\n\n### Stopped\n\ntwo\n\nMade on 20" in text
    assert text.count("runs at every change") == text.count("Made on ") == text.count("two") == 1


@pytest.mark.parametrize(
    ("kind", "seen", "words"),
    [
        (".csv", 6, "the number was that of no state of the file in 6 of 10 tries: the guard is needed"),
        (".parquet", 1, "in 1 of 10 tries: the guard is needed"),
        (".parquet", 0, "in 0 of 10 tries: here the trial does not show that the guard is needed"),
        (".csv", 0, ""),
    ],
)
def test_a_control_that_shows_nothing_is_wrong_where_it_must_show(kind: str, seen: int, words: str) -> None:
    files = script("faults_files", "pyarrow")
    trial = files.Trial("a file that changes")
    files._control(trial, kind, seen, 10)
    assert bool(trial.wrong) == (not words)
    assert (words in trial.row[2]) if words else ("WRONG (1)" in trial.row[2])


@pytest.mark.parametrize("after", [0, 2, 20, 200])
def test_tries_without_the_guard_go_on_until_one_shows(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = script("faults_files", "pyarrow")
    rounds = iter([*[("", "one")] * after, *[("", "of no state")] * 9])
    looks = files.steady.FileStates._check

    def raced(*_: Any) -> tuple[str, str]:
        assert files.steady.FileStates._check is not looks
        return next(rounds)

    monkeypatch.setattr(files, "_raced", raced)
    found = files._without_guard(SimpleNamespace(tallies=["one", "other"]), 4, 1000, random.Random(1))
    assert found == {0: (4, 4), 2: (2, 4), 20: (1, 21), 200: (0, 100)}[after]
    assert files.steady.FileStates._check is looks


@pytest.mark.parametrize(("ended", "wrong"), [(0, True), (5, True), (6, False), (120, False), (121, True)])
def test_kills_that_do_not_cover_a_run_are_wrong(ended: int, wrong: bool) -> None:
    kill = script("faults_kill")
    trial = kill.Trial("kill -9", Counter({"the new file, whole": ended, "no file, as before": 200 - ended}))
    kill._reach(trial)
    assert bool(trial.wrong) == wrong


def test_a_few_kills_may_miss_the_end_of_a_run() -> None:
    kill = script("faults_kill")
    trial = kill.Trial("kill -9", Counter({"no file, as before": 40}))
    kill._reach(trial)
    assert not trial.wrong


HEAD, LAST = "Traceback (most recent call last):\n", "KeyboardInterrupt\n"
OUTSIDE = '  File "/usr/lib/python3.11/site.py", line 1, in <module>\n    import os\n'
WORDS = "1,060 items written to made/queue.csv.\n"


def _frame(file: str, where: str, line: str) -> str:
    return f'  File "{Path(dhkappa.__file__).parent / file}", line 6, in {where}\n    {line}\n'


LOADS = _frame("__init__.py", "<module>", "from dhkappa.version import __version__ as __version__")
DOOR = _frame("__main__.py", "main", "def main() -> None:")
INSIDE = _frame("__main__.py", "main", "from dhkappa.cli.commands import main as run")
DEEP = _frame("cli/commands.py", "<module>", "import click")


@pytest.mark.parametrize(
    ("code", "err", "sign", "outcome"),
    [
        (0, "", signal.SIGINT, "had ended before, exit 0"),
        (0, WORDS, signal.SIGTERM, "had ended before, exit 0"),
        (0, HEAD + OUTSIDE + LAST, signal.SIGINT, ""),
        (-2, "", signal.SIGINT, "ended by the signal, without a word"),
        (-15, "", signal.SIGTERM, "ended by the signal, without a word"),
        (-15, WORDS, signal.SIGTERM, "ended by the signal, with its last words said"),
        (-15, "something\n", signal.SIGTERM, ""),
        (-15, HEAD + OUTSIDE + LAST, signal.SIGTERM, ""),
        (-2, "", signal.SIGTERM, ""),
        (130, "", signal.SIGINT, "exit 130, while it loads"),
        (130, "\ndhkappa: stopped.\n", signal.SIGINT, "exit 130, 'stopped.'"),
        (130, f"{WORDS}dhkappa: stopped.\n", signal.SIGINT, "exit 130, 'stopped.'"),
        (130, WORDS, signal.SIGINT, "exit 130, with its last words said"),
        (130, "", signal.SIGTERM, ""),
        (130, "dhkappa: something else.\n", signal.SIGINT, ""),
        (1, HEAD + OUTSIDE + LAST, signal.SIGINT, "Python's own traceback, before dhkappa runs"),
        (-2, HEAD + OUTSIDE + LOADS + LAST, signal.SIGINT, "Python's own traceback, before dhkappa runs"),
        (-2, HEAD + OUTSIDE + DOOR + LAST, signal.SIGINT, "Python's own traceback, before dhkappa runs"),
        (-2, HEAD + OUTSIDE + INSIDE + LAST, signal.SIGINT, ""),
        (-2, HEAD + LOADS + DEEP + LAST, signal.SIGINT, ""),
        (1, HEAD + OUTSIDE + "ImportError: KeyboardInterrupt\n", signal.SIGINT, ""),
        (1, "", signal.SIGINT, ""),
        (2, HEAD + OUTSIDE + LAST, signal.SIGINT, ""),
        (-6, HEAD + OUTSIDE + LAST, signal.SIGINT, ""),
        (-6, "terminate called after throwing an instance\n", signal.SIGINT, ""),
        (-11, "", signal.SIGINT, ""),
        (-11, "", signal.SIGTERM, ""),
    ],
)
def test_how_a_command_that_is_stopped_may_end(code: int, err: str, sign: int, outcome: str) -> None:
    assert script("faults_kill")._ending(code, err, sign) == outcome


# Threads


def test_threads_audit_arrays_that_they_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, audit = script("threads"), dhkappa.audit
    seen: list[Any] = []

    def looked_at(votes: Any, *labels: Any, **words: Any) -> Any:
        seen.append(votes)
        return audit(votes, *labels, **words)

    monkeypatch.setattr(threads, "THREADS", (1, 3))
    monkeypatch.setattr(threads, "ROUNDS", 1)
    monkeypatch.setattr(dhkappa, "audit", looked_at)
    [_, _, trial] = islice(threads.trials(tmp_path), 3)
    assert (trial.what, trial.answers, trial.different) == ("audit of shared arrays", 4, 0)
    assert len(seen) > trial.answers
    assert all(votes is seen[0] for votes in seen)


@pytest.mark.parametrize("same", [True, False])
def test_first_imports_are_held_against_what_one_thread_gives(same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that are all wrong in one way are found."""
    threads = script("threads")
    monkeypatch.setattr(threads, "ROUNDS", 1)
    if not same:
        monkeypatch.setattr(threads.short, "FIRST", "print(('0x1.0p+0', 25))")
    trial = threads._first_imports()
    assert (trial.answers, trial.different) == (3, 0 if same else 3)


# Mutants, coverage, floors, advisories


def _room(mutate: Any, *fates: str) -> Any:
    """A room whose mutants met some fates; those are of ``strict=True``, which is explained."""
    fate = {
        mutate.Mutant(f"m{place}", "sample._strata", "zip(a, b, strict=True)", "zip(a, b, strict=False)", False): one
        for place, one in enumerate(fates)
    }
    return mutate.Room("sample", len(fate), fate)


@pytest.mark.parametrize(
    ("lived", "right"), [(["survived"], True), (["survived", "no tests"], False), (["unclear"] * 2, False)]
)
def test_too_few_mutants_noticed_end_with_1(lived: list[str], right: bool) -> None:
    mutate = script("mutate")
    rooms = [_room(mutate, *["killed"] * 100), _room(mutate, *["killed"] * 8, "timeout", *lived)]
    assert mutate.enough(rooms) == right


def test_a_mutant_that_lives_without_an_explanation_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mutate = script("mutate")
    room = _room(mutate, "survived", *["killed"] * 99)
    monkeypatch.setattr(sys, "argv", ["mutate.py", "--rooms", "sample"])
    monkeypatch.setattr(mutate, "version", lambda name: "3")
    monkeypatch.setattr(mutate, "run", lambda *_: room)
    assert mutate.main() == 0
    assert "take 4 seconds of CPU together" in capsys.readouterr().out
    room.fate.popitem()
    room.fate[mutate.Mutant("new", "sample._size", "a < b", "a <= b", False)] = "survived"
    assert mutate.main() == 1
    assert "1 lived without an explanation yet" in capsys.readouterr().out


@pytest.mark.parametrize("explained", [True, False])
def test_a_line_that_no_test_runs_and_nobody_explains_ends_with_1(
    explained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cover = script("cover")
    code = (ROOT / "src" / "dhkappa" / "version.py").read_text(encoding="utf-8").splitlines()[0]
    reasons = tmp_path / "uncovered.toml"
    reasons.write_text(f"[[left]]\nroom = 'version'\ncode = '''{code}'''\nwhy = '{'so' if explained else ''}'\n")
    monkeypatch.setattr(cover, "REASONS", reasons)
    totals = {"covered_lines": 99, "num_statements": 100, "covered_branches": 10, "num_branches": 10}
    files = {"src/dhkappa/version.py": {"missing_lines": [1], "missing_branches": []}}
    monkeypatch.setattr(cover, "measured", lambda asked: {"totals": totals, "files": files, "failed": 0})
    written: list[str] = []
    monkeypatch.setattr(cover, "write", lambda section, text: written.append(text))
    assert cover.main([]) == int(not explained)
    assert "never run" in written[0]


def test_what_only_development_needs_has_a_floor_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    floors = script("floors")
    project = tmp_path / "pyproject.toml"
    project.write_text("[dependency-groups]\ndev = ['pyarrow-more>=3', 'pyarrow[x]>=22.1,<30']\n")
    monkeypatch.setattr(floors, "PROJECT", project)
    assert floors.baselines.random("pyarrow") == "pyarrow==22.1"


def test_a_refusal_for_something_else_is_wrong() -> None:
    many = script("many_items")
    told: list[str] = []
    wrong: list[str] = []

    def refuse(sentence: str) -> None:
        raise dhkappa.DataError(sentence)

    many._refusal(lambda: refuse("it holds 9 items at the most."), "one", "at the most", told, wrong)
    assert (len(told), wrong) == (1, [])
    many._refusal(lambda: refuse("no such file."), "two", "at the most", told, wrong)
    assert (len(told), wrong) == (1, ["two was refused for something else: no such file."])


ASKED = {"name": "a", "version": "1", "vulns": []}
HOLE = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (3)"}


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([ASKED, UNKNOWN], 0, "0 known holes in 1 packages; no answer on 1."),
        ([ASKED, HOLE], 1, "b 2: PYSEC-1, mended in 3"),
        (
            [UNKNOWN, UNKNOWN],
            0,
            "no answer on any of 2 packages (Dependency not found on PyPI and could not be audited).",
        ),
        ([], 0, "no answer on any of 0 packages"),
        (None, 0, "it ended with 1 and without a list of packages"),
    ],
)
def test_it_is_said_where_nobody_can_be_asked_for_known_holes(
    packages: Any, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    advisories = script("advisories")
    told = "" if packages is None else json.dumps({"dependencies": packages})
    done = SimpleNamespace(stdout=told, stderr="Traceback\nConnectionError: no way\n", returncode=1)
    monkeypatch.setattr(advisories.subprocess, "run", lambda *_, **__: done)
    assert advisories.main() == code
    said = capsys.readouterr().out
    assert words in said
    asked = any("vulns" in package for package in packages or [])
    assert ("NOBODY COULD BE ASKED" in said) == ("pip-audit: ConnectionError: no way" in said) == (not asked)


# Numbers


@pytest.mark.parametrize("words", [[], ["--quick"], ["--only", "one"], ["--without", "lists"]])
def test_a_part_of_the_numbers_is_shown_and_never_written(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = script("same_numbers", "pandas", "polars", "pyarrow")
    bits = numbers.same_bits
    written: list[str] = []
    monkeypatch.setattr(sys, "argv", ["same_numbers.py", *words])
    monkeypatch.setattr(numbers, "write", lambda section, text: written.append(text))
    monkeypatch.setattr(numbers, "many", lambda begun: ("a billion", []))
    monkeypatch.setattr(numbers, "bits_text", lambda sets, found: "engines")
    monkeypatch.setattr(numbers, "folders", lambda: [tmp_path])
    monkeypatch.setattr(numbers.fleiss_peers, "compare", lambda tables: {})
    monkeypatch.setattr(bits, "DATA", tmp_path)
    monkeypatch.setattr(bits, "a_server", nullcontext)
    monkeypatch.setattr(bits, "ways", lambda: ({"lists": bits.by_lists}, {}))
    monkeypatch.setattr(bits, "load", lambda folder: [SimpleNamespace(name="one")])
    monkeypatch.setattr(bits, "run", lambda sets, ways, quick: bits.Found())
    with pytest.raises(SystemExit) as ended:
        numbers.main()
    assert not ended.value.code
    assert (len(written), "a billion" in capsys.readouterr().out) == ((0, True) if words else (1, False))
