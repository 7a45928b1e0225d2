"""Standard streams, broken pipes, full disks, internal errors and Ctrl-C, in processes of their own."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

import dhkappa
from command import COMMAND, REPORTS, environment, run


def test_version_and_help_load_no_heavy_module() -> None:
    assert run("--version").stdout.strip() == f"dhkappa, version {dhkappa.__version__}"
    loaded = "import sys, dhkappa.cli.commands; print(sorted({'duckdb', 'numpy', 'rich', 'scipy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("words", [[], ["tally"]])
def test_without_a_command_the_help_is_shown_once(words: list[str]) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == run(*words, "--help").stdout


def test_an_internal_error_is_one_line(folder: Path) -> None:
    broken = (
        "from dhkappa import api; api.dh_kappa = lambda *a, **b: 1 / 0\n"
        "from dhkappa.cli.commands import main; main(['score', 'votes.csv'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("dhkappa: Internal error (ZeroDivisionError: division by zero)")
    assert done.stderr.count("\n") == 1


def test_a_pipe_as_input_is_refused(folder: Path) -> None:
    os.mkfifo("pipe.csv")
    for words in (["score", "pipe.csv"], ["tally", "make", "pipe.csv", "-o", "t.json"]):
        assert run(*words).returncode == 2


def test_escape_sequences_of_the_data_do_not_reach_the_terminal(folder: Path) -> None:
    Path("escape.csv").write_text("item,suggested_\x1b[31ma,ann_1,ann_2\n1,x,x,x\n2,y,x,y\n")
    done = run("score", "escape.csv", "--fail-under", "0.99")
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert "\\x1b[31ma" in done.stderr


def test_broken_pipe(folder: Path) -> None:
    """A broken pipe is not an error, and the gate still sets the exit code."""
    code = {}
    for words in ("audit votes.csv", "--help", "review votes.csv -s llm", "score votes.csv --fail-under 0.9"):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([COMMAND, *words.split()], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
        code[words] = done.returncode
        assert "Traceback" not in done.stderr
        assert "Broken" not in done.stderr
    assert list(code.values()) == [0, 0, 0, 1]


def test_head_of_a_pipe(folder: Path) -> None:
    done = subprocess.run(
        f"{COMMAND} audit votes.csv | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("Label audit: votes.csv\n", "")


@pytest.mark.parametrize("words", ["--help", "score --help", "audit votes.csv", "review votes.csv -s llm"])
def test_standard_output_on_a_full_disk(words: str, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "dhkappa: Cannot write the output: No space left on device.\n"


def test_standard_error_on_a_full_disk(folder: Path) -> None:
    for words, code in (("score absent.csv", 2), ("score votes.csv --fail-under 0.9", 1), ("score votes.csv", 0)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([COMMAND, *words.split()], stdout=subprocess.DEVNULL, stderr=full, check=False)
        assert done.returncode == code


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed: str, folder: Path) -> None:
    words = "--help" if closed == "2>&-" else "score votes.csv"
    done = subprocess.run(f"{COMMAND} {words} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2)


# Ctrl-C

_SLOW = """
import signal, sys, time
from dhkappa import api, planning
from dhkappa.inputs.dataset import Dataset
from dhkappa.cli.commands import main
signal.signal(signal.SIGINT, signal.default_int_handler)
owner = {'tally': Dataset, 'plan': planning}.get(sys.argv[1], api)
call = getattr(owner, sys.argv[1])
def slow(*args, **words):
    print("started", file=sys.stderr, flush=True)
    if sys.argv[2] == "sleep":
        time.sleep(60)
    return call(*args, **words)
setattr(owner, sys.argv[1], slow)
main(sys.argv[3:])
"""


def interrupt(call: str, how: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command and interrupt it in the middle of a function of the library."""
    child = subprocess.Popen(
        [sys.executable, "-c", _SLOW, call, how, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "started\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, child.returncode, out, errors)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tally", ["tally", "make", "votes.csv", "-o", "old.json"]),
        ("audit", ["review", "votes.csv", "-s", "llm", "-o", "old.csv"]),
        ("plan", ["plan", "0.05", "votes.csv", "-s", "llm"]),
        *([("audit", ["audit", "votes.csv", "-o", "old.html"])] if REPORTS else []),
    ],
)
def test_ctrl_c_ends_with_130_and_writes_nothing(call: str, words: list[str], folder: Path) -> None:
    for ending in ("json", "csv", "html"):
        Path(f"old.{ending}").write_text("the old file")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = interrupt(call, "sleep", *words)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr.strip() == "dhkappa: Interrupted."
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_ctrl_c_while_the_engine_counts(folder: Path) -> None:
    """Six million votes in a CSV file."""
    duckdb.sql(
        "COPY (SELECT i AS item, a AS annotator, (i * 7 + a * i % 3) % 5 AS label, i % 5 AS suggested "
        "FROM range(2_000_000) t(i), range(3) u(a)) TO 'large.csv'"
    )
    done = interrupt("tally", "count", "tally", "make", "large.csv", "-o", "large.json")
    assert done.returncode == 130
    assert done.stderr.strip() == "dhkappa: Interrupted."
    assert sorted(os.listdir()) == ["large.csv", "votes.csv"]


@pytest.mark.skipif(not REPORTS, reason="needs dhkappa[report]")
def test_closed_streams_do_not_get_files(folder: Path) -> None:
    line = f"{COMMAND} audit votes.csv -o report.html <&- 2>&-"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    assert done.stdout.endswith("Report: report.html\n")
    assert Path("report.html").read_text("utf-8").endswith("</html>")


@pytest.mark.skipif(not REPORTS, reason="needs dhkappa[report]")
def test_a_report_with_few_open_files(folder: Path) -> None:
    done = subprocess.run(
        [COMMAND, "audit", "votes.csv", "-o", "r.html"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)),
    )
    assert done.returncode == 2
    assert "Internal error" not in done.stderr
    assert any(line.startswith("dhkappa: ") for line in done.stderr.splitlines())
    assert not Path("r.html").exists()


def test_review_is_utf_8_in_any_locale(folder: Path) -> None:
    Path("other.csv").write_text("item,suggested,ann_1,ann_2\né😀,a,a,a\n2,b,b,a\n", "utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    done = run("review", "other.csv", env=plain)
    assert done.returncode == 0
    assert '"é😀"' in done.stdout
