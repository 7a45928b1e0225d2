"""The installed command, run as a person or a CI job runs it: what it answers, its exit codes, its streams, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

import dhkappa
from dhkappa.cli.commands import main
from dhkappa.cli.demo import write_demo

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
    """A plain environment: no width, no colour, UTF-8."""
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
    """Run the command in this process, where a process of its own would add nothing but time."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    shown = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, shown.out, shown.err)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one sentence that bad data or bad use gives."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("dhkappa: ")
    assert lines[0].endswith((".", "?"))
    return lines[0].removeprefix("dhkappa: ")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with votes on eight items and two labelers."""
    (tmp_path / "votes.csv").write_text(WIDE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kappas(*, suggested: list[str]) -> dhkappa.Kappa:
    return dhkappa.dh_kappa(VOTES, suggested)


# Every command answers


def test_score_shows_each_labeler(folder: Path) -> None:
    done = run("score", "votes.csv")
    assert (done.returncode, done.stderr) == (0, "")
    llm, rule = kappas(suggested=LLM), kappas(suggested=RULE)
    table = done.stdout.split("Labelers\n")[1].splitlines()
    assert table[1].split() == ["llm", f"{llm.value:.2f}", "0.01", "to", "0.93", "-0.15", "0.85", "0.75", "8"]
    assert table[2].split() == ["rule", f"{rule.value:.2f}", "-0.31", "to", "0.79", "-0.16", "0.85", "0.75", "8"]


def test_audit_answers_first_and_names_what_to_fix(folder: Path) -> None:
    done = run("audit", "votes.csv")
    assert (done.returncode, done.stderr) == (0, "")
    title, blank, answer = done.stdout.splitlines()[:3]
    assert (title, blank) == ("Label audit: votes.csv", "")
    assert answer.startswith("Of 2 labelers, llm scores best")
    queue = done.stdout.split("the label of llm\n")[1].splitlines()
    assert queue[1].split() == ["t8", "spam", "news", "news:", "2"]  # the one item that the panel rejects
    assert queue[2] == ""


def test_the_hint_of_audit_chooses_another_labeler(folder: Path) -> None:
    """The screen names labelers as it shows them, and such a name can be typed."""
    done = run("audit", "votes.csv", "--suggested", "rule")
    assert "Label audit" in done.stdout
    assert "llm" not in done.stdout


@pytest.mark.skipif(not REPORTS, reason="what the report needs is absent")
def test_audit_writes_a_report(folder: Path) -> None:
    done = run("audit", "votes.csv", "-o", "report.html", "--title", "Week 7")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "Week 7"
    assert done.stdout.splitlines()[-1] == "Report: report.html"
    page = Path("report.html").read_text("utf-8")
    assert "Week 7" in page
    assert "dhkappa audit votes.csv -o report.html" in page
    assert sorted(os.listdir()) == ["report.html", "votes.csv"]


def test_audit_says_what_a_report_needs(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    sentence = refused(inside(capsys, "audit", "votes.csv", "-o", "report.html"))
    assert "altair" in sentence
    assert "pip install 'dhkappa[report]'" in sentence
    assert os.listdir() == ["votes.csv"]
    assert inside(capsys, "audit", "votes.csv").returncode == 0


def test_compare_and_plan(folder: Path) -> None:
    done = run("compare", "votes.csv", "--suggested", "rule,llm")
    assert done.returncode == 0
    first = dhkappa.compare(VOTES, {"rule": RULE, "llm": LLM}).differences.to_dicts()[0]
    row = done.stdout.split("items that all of them labeled\n")[1].splitlines()[1].split()
    assert row[:3] == ["llm", "rule", f"{-first['difference']:+.2f}"]  # the better one first
    done = run("plan", "0.05", "votes.csv", "-s", "llm")
    planned = dhkappa.plan(0.05, kappas(suggested=LLM))
    assert done.stdout.startswith(
        f"{planned.items:,} items with 2.625 votes each, {planned.total_votes:,} votes in all"
    )
    done = run("plan", "0.05", "--prevalence", "4,3,1", "--accuracy", "0.9", "--labeler", "0.85", "--pool", "2000")
    planned = dhkappa.plan(0.05, prevalence=[4, 3, 1], accuracy=0.9, labeler=0.85, pool=2000)
    assert done.stdout.startswith(f"{planned.items:,} items with {planned.votes} votes each")


def test_tallies_of_two_days_add_up_to_the_week(folder: Path) -> None:
    header, *rows = WIDE.splitlines(keepends=True)
    for day, part in (("monday", rows[:3]), ("tuesday", rows[3:])):
        Path(f"{day}.csv").write_text("".join([header, *part]))
        done = run("tally", "make", f"{day}.csv", "-o", f"{day}.json")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{day}.json: Tally({len(part)} items, ")
    done = run("tally", "add", "monday.json", "tuesday.json", "-o", "week.json")
    assert done.stdout == run("tally", "show", "week.json").stdout
    assert done.stdout.startswith("week.json: Tally(8 items, 21 votes, 3 categories,")
    week = json.loads(run("score", "week.json", "--json").stdout)["result"]
    assert week == json.loads(run("score", "votes.csv", "--json").stdout)["result"]
    assert week == json.loads(run("score", "monday.json", "tuesday.json", "--json").stdout)["result"]
    assert week["labelers"]["llm"]["exact"] == str(kappas(suggested=LLM).exact)
    strange = run("tally", "add", "monday.json", "monday.csv", "-o", "other.json")
    assert strange.stderr == "dhkappa: 'monday.csv' is no tally: make one of it with dhkappa tally make.\n"
    assert strange.returncode == 2
    again = run("tally", "add", "week.json", "monday.json", "-o", "week.json")  # a day would count twice
    assert again.returncode == 2
    assert again.stderr.startswith("dhkappa: 'week.json' is one of the files to read")
    assert run("tally", "show", "week.json").stdout == done.stdout


def test_demo_writes_data_and_says_they_are_simulated(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("demo", "-o", "tried")
    assert (done.returncode, done.stderr) == (0, "")
    assert "simulated" in done.stdout
    assert "eli, who votes carelessly" in done.stdout
    files = {"annotations.csv", "items.csv", *(["report.html"] if REPORTS else [])}
    assert {path.name for path in Path("tried").iterdir()} == files
    command = next(line for line in done.stdout.splitlines() if "dhkappa audit tried" in line).split()
    wanted = command[1 : None if REPORTS else -2]
    monkeypatch.setenv("COLUMNS", "80")
    audited = inside(capsys, *wanted)
    assert audited.returncode == 0
    scale = done.stdout.split("Kappa, between")[1].split("Labelers")[0]
    assert scale in audited.stdout
    found = dhkappa.compare("tried/annotations.csv", items="tried/items.csv").kappas
    assert found["llm"].interval().low > found["rule"].interval().high


def test_demo_with_one_ticket_and_another_seed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = inside(capsys, "demo", "--items", "1", "-o", "one")
    assert (one.returncode, one.stderr) == (0, "")
    for place, seed in (("eight", 8), ("nine", 9), ("eight-again", 8)):
        Path(place).mkdir()
        write_demo(place, 20, seed)
    drawn = {place: Path(place, "annotations.csv").read_text() for place in ("eight", "nine", "eight-again")}
    assert drawn["eight"] != drawn["nine"]
    assert drawn["eight"] == drawn["eight-again"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = inside(capsys, "completion", shell)
    assert done.returncode == 0
    assert f"_DHKAPPA_COMPLETE={shell}_complete" in done.stdout


def test_completion_completes_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        asked = {"_DHKAPPA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        return [line.partition(",")[2] for line in run(env=asked).stdout.splitlines()]

    assert completed("dhkappa co", 1) == ["compare", "completion"]
    assert completed("dhkappa score --fail", 2) == ["--fail-under"]


def test_version_and_help_start_quickly() -> None:
    assert run("--version").stdout.strip() == f"dhkappa, version {dhkappa.__version__}"
    loaded = "import sys, dhkappa.cli.commands; print(sorted({'duckdb', 'numpy', 'rich', 'scipy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"  # only a command that needs them loads them


# Exit code 1: the gate


@pytest.mark.parametrize(
    ("words", "code", "below"),
    [
        (["-s", "llm", "--fail-under", "0.01"], 0, ""),  # lower bound 0.0114
        (["-s", "llm", "--fail-under", "0.02"], 1, "llm (lower bound 0.0114)"),
        (["-s", "llm", "--fail-under", "0.6", "--on", "value"], 0, ""),  # 0.6253
        (["-s", "llm", "--fail-under", "0.63", "--on", "value"], 1, "llm (kappa 0.6253)"),
        (["-s", "llm", "--fail-under", "0.02", "--level", "0.9"], 0, ""),  # a narrower interval
        (["--fail-under", "0"], 1, "rule (lower bound -0.3141)"),  # every labeler has to pass
        (["--fail-under", "-0.4"], 0, ""),
    ],
)
@pytest.mark.parametrize("command", ["score", "audit", "compare"])
def test_gate(
    command: str, words: list[str], code: int, below: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "compare" and "-s" in words:
        words = ["--suggested", "rule,llm", *words[2:]]
        passed = dhkappa.compare(VOTES, {"rule": RULE, "llm": LLM}).kappas
        bar, level = float(words[3]), 0.9 if "--level" in words else 0.95
        low = [kappa.value if "value" in words else kappa.interval(level).low for kappa in passed.values()]
        code, below = int(min(low) < bar), ""
    done = inside(capsys, command, "votes.csv", *words)
    assert done.returncode == code
    assert done.stdout  # the answer is shown all the same
    assert done.stderr.count("\n") == code
    assert below in done.stderr
    if code:
        assert done.stderr.startswith("dhkappa: below --fail-under ")
    gate = json.loads(inside(capsys, command, "votes.csv", *words, "--json").stdout)["gate"]
    assert all(gate["passed"].values()) == (code == 0)


@pytest.mark.parametrize("command", ["score", "audit"])
@pytest.mark.parametrize(
    ("words", "told"),
    [([], "lower bound of ordinal kappa {0.low:.4f}"), (["--on", "value"], "ordinal kappa {1.value:.4f}")],
)
def test_gate_with_ordinal_weights(
    command: str, words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ["ham", "spam", "news"]
    weighted = dhkappa.dh_kappa(VOTES, LLM, categories=order, ordinal="linear")
    plain = dhkappa.dh_kappa(VOTES, LLM)
    reached = told.format(weighted.interval(), weighted)
    asked = [command, "votes.csv", "-s", "llm", "--categories", ",".join(order), "--ordinal", "linear", *words]
    between = (weighted.value + plain.value) / 2 if words else (weighted.interval().low + plain.interval().low) / 2
    bar = f"{between:.4f}"  # which one of the two kappas is below
    above = weighted.value > plain.value if words else weighted.interval().low > plain.interval().low
    done = inside(capsys, *asked, "--fail-under", bar)
    assert done.returncode == (0 if above else 1)
    passed = inside(capsys, *asked, "--fail-under", "-1")
    sentence = f"Not below --fail-under -1: llm ({reached})."
    assert passed.stdout.endswith(f"\n\n{sentence}\n") == (command == "audit")
    assert "weighted Fleiss" in passed.stdout
    failed = inside(capsys, *asked, "--fail-under", "1")
    assert failed.stderr == f"dhkappa: below --fail-under 1: llm ({reached}).\n"
    assert "Not below" not in failed.stdout
    gate = json.loads(inside(capsys, *asked, "--fail-under", "-1", "--json").stdout)["gate"]
    assert gate == {
        "fail_under": -1.0,
        "on": words[-1] if words else "low",
        "metric": "ordinal",
        "passed": {"llm": True},
    }
    assert "ordinal" not in inside(capsys, command, "votes.csv", "-s", "llm", "--fail-under", "-1").stdout.lower()


@pytest.mark.parametrize("on", ["low", "value"])
def test_an_undefined_kappa_does_not_pass(on: str, folder: Path) -> None:
    Path("same.csv").write_text("suggested,ann_1,ann_2\nx,x,x\nx,x,x\n")
    done = run("score", "same.csv", "--fail-under", "-1", "--on", on)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("undefined).")


# Streams


def test_whoever_reads_may_stop(folder: Path) -> None:
    """A broken pipe is no error, and the gate still tells."""
    code = {}
    for words in ("audit votes.csv", "--help", "items votes.csv -s llm", "score votes.csv --fail-under 0.9"):
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


@pytest.mark.parametrize("words", ["--help", "score --help", "audit votes.csv", "items votes.csv -s llm"])
def test_standard_output_on_a_full_disk(words: str, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "dhkappa: the output cannot be written: No space left on device.\n"


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
import signal, sys, time, dhkappa
from dhkappa.cli.commands import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever started the tests may have turned off
call = getattr(dhkappa, sys.argv[1])
def slow(*args, **words):
    print("started", file=sys.stderr, flush=True)
    if sys.argv[2] == "sleep":
        time.sleep(60)
    return call(*args, **words)
setattr(dhkappa, sys.argv[1], slow)
main(sys.argv[3:])
"""


def interrupt(call: str, how: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command, and press Ctrl-C in the middle of one of the library's calls."""
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
        ("audit", ["items", "votes.csv", "-s", "llm", "-o", "old.csv"]),
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
    assert done.stderr.strip().startswith("dhkappa: stopped")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_ctrl_c_while_the_engine_counts(folder: Path) -> None:
    """In the middle of real work: six million votes in a CSV file."""
    duckdb.sql(
        "COPY (SELECT i AS item, a AS annotator, (i * 7 + a * i % 3) % 5 AS label, i % 5 AS suggested "
        "FROM range(2_000_000) t(i), range(3) u(a)) TO 'large.csv'"
    )
    done = interrupt("tally", "count", "tally", "make", "large.csv", "-o", "large.json")
    assert done.returncode == 130
    assert done.stderr.strip().startswith("dhkappa: stopped")
    assert sorted(os.listdir()) == ["large.csv", "votes.csv"]
