"""The output of commands: at 80 columns, through a pipe, in ASCII, and on a terminal with colors."""

import csv
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

import dhkappa
from command import COMMAND, environment, inside, run
from terminal_checks import HOSTILE, check_columns, check_lines

Capsys = pytest.CaptureFixture[str]
COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set 80 columns for what runs in this process."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Write data with hostile names of items, labels, annotators and labelers."""
    with (tmp_path / "hostile.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = [name.replace("\0", "") for name in HOSTILE]
        writer.writerow(
            ["item", "suggested_[red]", "suggested_漢字漢字漢", "ann_\x1b[1m", "ann_[/]", "ann_" + "y" * 90]
        )
        for place in range(90):
            right, other = names[place % len(names)], names[(place * 7 + 3) % len(names)]
            votes = [right, right if place % 3 else other, other if place % 4 == 0 else right]
            writer.writerow([names[place % 5] + str(place), right if place % 5 else other, other, *votes])
    return tmp_path / "hostile.csv"


@pytest.mark.parametrize(
    "words",
    [
        "audit votes.csv",
        "score votes.csv",
        "compare votes.csv",
        "plan 0.05 votes.csv -s llm",
        "plan 0.001 --prevalence 5,3,1 --annotator-accuracy 0.8 --labeler-accuracy 0.7 --pool 900000",
        "demo --n-items 150 -o d",
    ],
)
def test_at_80_columns(words: str, folder: Path, capsys: Capsys) -> None:
    done = inside(capsys, *words.split())
    assert done.returncode == 0
    check_lines(done.stdout)


def test_through_a_pipe(folder: Path, capsys: Capsys) -> None:
    assert run("audit", "votes.csv").stdout == inside(capsys, "audit", "votes.csv").stdout


def test_in_ascii_marks_are_drawn_in_ascii(folder: Path, capsys: Capsys) -> None:
    drawn = inside(capsys, "audit", "votes.csv")
    plain = run("audit", "votes.csv", env={"PYTHONIOENCODING": "ascii"})
    assert plain.stdout.isascii()
    assert "\\u" not in plain.stdout
    assert plain.stdout == drawn.stdout.translate(str.maketrans("●├─┤·", "o[-]."))


def test_in_ascii_data_is_spelled_out_and_stays_in_its_column(hostile: Path) -> None:
    done = run("audit", hostile, env={"PYTHONIOENCODING": "ascii"})
    assert done.stdout.isascii()
    assert "\\u6f22\\u5b57" in done.stdout
    check_lines(done.stdout)
    check_columns(done.stdout)


@pytest.mark.parametrize("columns", ["90", "200"])
def test_other_widths(columns: str, folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = inside(capsys, "audit", "votes.csv")
    check_lines(done.stdout, min(int(columns), 100))


def test_hostile_names_are_text_and_columns_stay_aligned(hostile: Path, capsys: Capsys) -> None:
    done = inside(capsys, "audit", hostile)
    assert (done.returncode, done.stderr) == (0, "")
    check_lines(done.stdout)
    check_columns(done.stdout)
    for shown in ("[red]", "漢字漢字漢", "[/]", r"two\nlines", r"\x1b[31mred\x1b[0m"):
        assert shown in done.stdout
    for command in ("score", "compare"):
        check_lines(inside(capsys, command, hostile).stdout)


def test_a_tally_has_no_items_to_review(folder: Path, capsys: Capsys) -> None:
    inside(capsys, "tally", "make", "votes.csv", "-o", "t.json")
    done = inside(capsys, "audit", "t.json")
    assert done.returncode == 0
    check_lines(done.stdout)
    assert "To review" not in done.stdout


@pytest.mark.parametrize("text", ["suggested,ann_1,ann_2\nx,x,x\nx,x,x\n", "suggested,ann_1,ann_2\nx,,\n"])
def test_an_undefined_kappa_says_why(text: str, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(text)
    reason = f"{dhkappa.dh_kappa(file, 'suggested').reason}".rstrip(".")
    for command in ("audit", "score"):
        done = inside(capsys, command, file)
        check_lines(done.stdout)
        assert reason in " ".join(done.stdout.split())


def on_terminal(*words: str | Path, columns: int = 80, env: dict[str, str] | None = None) -> str:
    """Run a command with a terminal as its standard output, and return what it writes there."""
    person, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        [COMMAND, *map(str, words)],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,  # progress goes there on a busy machine
        env=environment(**{"TERM": "xterm-256color"} | (env or {})),
    )
    os.close(terminal)
    told = b""
    while True:
        try:
            part = os.read(person, 65_536)
        except OSError:  # the child has closed its end
            break
        if not part:
            break
        told += part
    os.close(person)
    assert child.wait(timeout=60) == 0
    return told.decode().replace("\r\n", "\n")


def test_colors_on_a_terminal_and_nothing_else_changes(folder: Path, capsys: Capsys) -> None:
    colored = on_terminal("audit", "votes.csv")
    piped = inside(capsys, "audit", "votes.csv").stdout
    assert COLOR.search(colored)
    plain = COLOR.sub("", colored)
    assert [line.rstrip() for line in plain.splitlines()] == piped.splitlines()
    assert "\x1b" not in piped


def test_no_color_and_a_terminal_that_can_do_little(folder: Path) -> None:
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        told = on_terminal("audit", "votes.csv", env=env)
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", told)


def test_hostile_names_on_a_terminal(hostile: Path) -> None:
    told = on_terminal("audit", hostile)
    plain = COLOR.sub("", told)
    assert "\x1b" not in plain
    assert "\x07" not in plain
    check_lines("\n".join(line.rstrip() for line in plain.splitlines()) + "\n")


def test_paths_are_spelled_out(folder: Path) -> None:
    told = on_terminal("tally", "make", "votes.csv", "-o", "x\x1b[31m\ny.json")
    assert "\x1b" not in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("several", [False, True])
def test_the_command_of_the_review_queue_writes_it(
    several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert", reason="a report needs it")
    monkeypatch.chdir(tmp_path)
    drawn = dhkappa.simulate(200, annotators=3, labelers={"rule": 0.6, "big llm": 0.8}, rng=1)
    columns = zip(drawn.suggested["rule"], drawn.suggested["big llm"], *drawn.votes.T, strict=True)
    lines = ['suggested_rule,"suggested_big, llm",ann_1,ann_2,ann_3', *(",".join(map(str, row)) for row in columns)]
    Path("my votes.csv").write_text("\n".join(lines), encoding="utf-8")
    labeler = [] if several else ["--suggested", "rule"]
    options = ["--missing", "?", "--fail-under", "0.1", "-o", "r.html", "--seed", "1", "--on", "value"]
    text = inside(capsys, "audit", "my votes.csv", *labeler, *options).stdout
    [command] = [line.strip() for line in text.splitlines() if line.startswith("  dhkappa review ")]
    assert shlex.split(command)[3:] == [
        *("--output", "review.csv", "--suggested", '"big, llm"' if several else "rule", "--missing", "?")
    ]
    assert "To write the whole queue as CSV:\n" in text
    assert inside(capsys, *shlex.split(command)[1:]).returncode == 0
    assert len(Path("review.csv").read_text(encoding="utf-8").splitlines()) == 201


def test_review_is_not_named_for_sets_of_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["a;b,a,a,a", "b,a;b,a,a;b"] * 20
    Path("sets.csv").write_text("\n".join(["suggested,ann_1,ann_2,ann_3", *rows]), encoding="utf-8")
    done = inside(capsys, "audit", "sets.csv", "--multilabel", ";", "--category", "b")
    assert "Review first: items where the annotators reject" in done.stdout
    assert "dhkappa review" not in done.stdout


def test_heads_of_audits_without_labels_or_with_one_vote(folder: Path, capsys: Capsys) -> None:
    Path("votes.csv").write_text("item,ann_1,ann_2\n1,a,a\n2,b,b\n3,a,b\n", encoding="utf-8")
    text = inside(capsys, "audit", "votes.csv").stdout
    assert re.search(r"^category +votes +vote share", text, re.MULTILINE)
    assert "2 annotators with fewer than 10 items are not listed" in " ".join(text.split())
    Path("single.csv").write_text("item,rule,llm,ann_1\n1,a,a,a\n2,b,b,b\n3,a,b,b\n", encoding="utf-8")
    text = inside(capsys, "audit", "single.csv", "--suggested", "rule,llm").stdout
    assert "rule: votes by suggested label\n" in text
    assert "llm: votes by suggested label\n" in text
