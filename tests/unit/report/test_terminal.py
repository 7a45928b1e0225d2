"""What a terminal shows: at 80 columns, through a pipe, in ASCII, with colours, and whatever the data hold."""

# ruff: noqa: F811  # what a test takes by the name of a fixture is no new definition

import csv
import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl
from io import StringIO
from pathlib import Path
from unicodedata import combining, east_asian_width

import pytest
from rich.console import Console

import dhkappa
from dhkappa.auditing import Audit
from dhkappa.report.content import limits, number, percent, signed
from dhkappa.report.terminal import Screen
from test_cli import COMMAND, WIDE, environment, folder, inside, run  # noqa: F401  # a fixture

DRAWN = dhkappa.simulate(
    200,
    categories=["billing", "bug", "how-to", "outage", "other"],
    annotators=[0.95, 0.9, 0.85, 0.5],
    labelers={"rule": 0.65, "llm": 0.9},
    missing=0.2,
    rng=2,
)
Capsys = pytest.CaptureFixture[str]
HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "two\nlines",
    "tab\there",
    "carriage\rreturn",
    "😀 face",
    "👩‍👩‍👧 three",
    "漢字かな交じり文の長い名前をここに書く",
    "\u202eabc\u202c",
    "\u2066iso\u2069",
    "[red]markup[/red]",
    "[/]",
    "[bold",
    ":smile:",
    "\u0301\u0301accent",
    "a" * 200,
    "<b>",
    "\0nul",
]


def cells(line: str) -> int:
    """Count the places that a line takes, by Unicode's own tables."""
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in line)


def check_lines(text: str, width: int = 80) -> list[str]:
    """Check what holds for any output: no control signs, no blanks at the end of a line, nothing too wide."""
    lines = text.splitlines()
    assert lines
    assert text == "\n".join(lines) + "\n"  # line breaks are the screen's own
    for line in lines:
        assert line == line.rstrip()
        assert all(sign.isprintable() for sign in line), ascii(line)
        assert cells(line) <= width, line
    assert lines[0]
    assert lines[-1]
    assert "nan" not in text
    return lines


def screened(audit: Audit, width: int = 80) -> str:
    """Show an audit on a screen that is no terminal."""
    file = StringIO()
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False, color_system=None)
    Screen(console=console).audit(audit.story(100, title="A title"))
    return file.getvalue()


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns, for what runs in this process."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Items, labels, annotators and labelers whose names are trouble."""
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


# 80 columns, a pipe, ASCII


@pytest.mark.parametrize(
    "words",
    [
        "audit votes.csv",
        "score votes.csv",
        "compare votes.csv",
        "plan 0.05 votes.csv -s llm",
        "plan 0.001 --prevalence 5,3,1 --annotator-accuracy 0.8 --labeler-accuracy 0.7 --pool 900000",
        "demo --items 150 -o d",
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


# Whatever the data hold


def check_columns(text: str) -> None:
    """Check that the last column of each table ends at one place, where it holds numbers."""
    for block in text.split("\n\n"):
        head, *lines = block.splitlines()
        if head == "Labelers":
            ends = {cells(line) for line in lines[:3]}
            assert len(ends) == 1, block
        starts = [
            line
            for line in lines
            if line.startswith(("suggested  ", "annotator  ")) and line.endswith(("items", "confidence_interval"))
        ]
        for start in starts:
            assert len({cells(line) for line in lines[lines.index(start) :]}) == 1, block


def test_hostile_names_are_text_and_columns_stay_aligned(hostile: Path, capsys: Capsys) -> None:
    done = inside(capsys, "audit", hostile)
    assert (done.returncode, done.stderr) == (0, "")
    check_lines(done.stdout)
    check_columns(done.stdout)
    for shown in ("[red]", "漢字漢字漢", "[/]", r"two\nlines", r"\x1b[31mred\x1b[0m"):
        assert shown in done.stdout
    for command in ("score", "compare"):
        check_lines(inside(capsys, command, hostile).stdout)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_one_hostile_name_everywhere(name: str) -> None:
    """The same name as a category, a labeler and an item, which is what is shown of it."""
    votes = [[name, name, "x"], ["x", "x", name], ["x", "x", "x"], [name, name, name]] * 6
    audit = dhkappa.audit(votes, {name: [name, name, "x", "x"] * 6, "b": ["x"] * 24}, progress=False)
    text = screened(audit)
    check_lines(text)
    check_columns(text)


def test_a_labeler_of_wide_signs_is_not_cut_where_there_is_room() -> None:
    audit = dhkappa.audit(DRAWN.votes, {"漢字漢字漢": DRAWN.suggested["llm"]}, progress=False)
    scale = screened(audit).split("Kappa, between floor and ceiling\n")[1].splitlines()[0]
    assert scale.startswith("漢字漢字漢  ")


def test_very_long_names_are_cut() -> None:
    labels = {f"{letter * 300}": DRAWN.suggested["llm"] for letter in "ab"}
    text = screened(dhkappa.audit(DRAWN.votes, labels, progress=False))
    check_lines(text)
    check_columns(text)
    assert "aaa..." in text


def test_a_thousand_categories() -> None:
    names = [f"category {place}" for place in range(1000)]
    votes = [[name, name, names[place // 2]] for place, name in enumerate(names)]
    text = screened(dhkappa.audit(votes, {"llm": names}, progress=False))
    check_lines(text)
    assert len(text.splitlines()) < 60


def test_many_labelers_and_annotators_stay_short() -> None:
    drawn = dhkappa.simulate(100, labelers={f"m{place}": 0.8 for place in range(6)}, annotators=[0.8] * 40, rng=1)
    lines = check_lines(screened(dhkappa.audit(drawn.votes, dict(drawn.suggested), progress=False)))
    assert len(lines) < 100
    assert any(line.startswith("(28 more)") for line in lines)


# One labeler, several, none known


def test_several_labelers_are_ranked_with_differences_after() -> None:
    text = screened(dhkappa.audit(DRAWN.votes, dict(DRAWN.suggested), progress=False))
    labelers = text.split("\nLabelers\n")[1].splitlines()
    assert [line.split()[0] for line in labelers[1:3]] == ["llm", "rule"]
    assert "Differences between labelers" in text
    order = [
        "A title",
        "Of 2 labelers, llm scores best",
        "Kappa, between floor and ceiling",
        "\nLabelers\n",
        "Annotators among themselves: Fleiss' kappa",
        "Differences between labelers",
        "Worst categories of llm",
        "To review first",
        "llm beside each annotator",
        "For an interval of plus or minus",
        "--suggested chooses another",
        "\nNotes\n",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_the_scale_is_drawn_to_scale() -> None:
    audit = dhkappa.audit(DRAWN.votes, {"llm": DRAWN.suggested["llm"]}, progress=False)
    kappa = audit.kappas["llm"]
    low, high = kappa.confidence_interval(0.95)
    bar = screened(audit).split("Kappa, between floor and ceiling\n")[1].splitlines()[0].removeprefix("llm")
    ends = (kappa.baselines.random, kappa.baselines.majority, kappa.value, low, high)
    first, last = min(0.0, *ends), max(ends)
    width = 80 - 5 - 26

    def place(value: float) -> int:
        return 4 + round((value - first) / (last - first) * (width - 1))

    assert bar[place(kappa.value)] == "●"
    assert bar[place(low)] == "├"
    assert bar[place(high)] in "┤|"
    assert bar[place(kappa.baselines.random)] == "|"
    assert bar.rstrip().endswith(f"{kappa.value:.2f}  {low:.2f} to {high:.2f}")


def scaled(**intervals: tuple[float, float, float]) -> list[str]:
    """Draw kappas with their intervals, without floor and ceiling, on a scale of 44 signs."""

    class Known:
        """What the scale asks of a kappa."""

        floor = ceiling = float("nan")

        def __init__(self, low: float, value: float, high: float) -> None:
            self.value, self.limits = value, (low, high)

        def confidence_interval(self, confidence_level: float) -> tuple[float, float]:
            return self.limits

    file = StringIO()
    screen = Screen(console=Console(file=file, width=75, color_system=None))
    screen.scale({name: Known(*limits) for name, limits in intervals.items()}, 0.95)  # type: ignore[misc]
    lines = file.getvalue().splitlines()
    assert lines[1] == "Kappa"  # neither floor nor ceiling is drawn, or named
    assert lines[-1] == "● kappa  ├─┤ 95% interval"
    return [line[7:51] for line in lines[2:-2]]


def test_a_narrow_interval_has_both_its_ends() -> None:
    dots = scaled(a=(0.999, 0.9995, 1.0), b=(0.5, 0.501, 0.502), c=(-0.002, -0.001, 0.0))
    assert [bar.strip() for bar in dots] == ["├●┤"] * 3
    assert [bar.index("├") for bar in dots] == [41, 21, 0]
    # an end that is the value itself has no place of its own
    assert [bar.strip() for bar in scaled(a=(1.0, 1.0, 1.0), b=(0.9999, 1.0, 1.0), c=(0.0, 0.0, 0.001))] == [
        *("●", "├●", "●┤")
    ]
    assert scaled(a=(float("nan"), 1.0, float("nan")))[0].strip() == "●"


def test_one_labeler_has_no_differences() -> None:
    text = screened(dhkappa.audit(DRAWN.votes, {"llm": DRAWN.suggested["llm"]}, progress=False))
    check_lines(text)
    assert "Differences" not in text
    assert "chooses another" not in text


def test_where_nobody_is_named_people_are_left_out() -> None:
    text = screened(dhkappa.audit([list(row) for row in DRAWN.votes.tolist()], dict(DRAWN.suggested), progress=False))
    check_lines(text)
    assert "beside each annotator" not in text


def test_a_tally_has_no_items_to_review(folder: Path, capsys: Capsys) -> None:
    inside(capsys, "tally", "make", "votes.csv", "-o", "t.json")
    done = inside(capsys, "audit", "t.json")
    assert done.returncode == 0
    check_lines(done.stdout)
    assert "To review" not in done.stdout


@pytest.mark.parametrize("text", ["suggested,ann_1,ann_2\nx,x,x\nx,x,x\n", "suggested,ann_1,ann_2\nx,x,\n"])
def test_an_undefined_kappa_says_why(text: str, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(text)
    reason = f"{dhkappa.dh_kappa(file, 'suggested').reason}".rstrip(".")
    for command in ("audit", "score"):
        done = inside(capsys, command, file)
        check_lines(done.stdout)
        assert reason in " ".join(done.stdout.split())


def test_notes_are_in_the_words_of_the_command_line(folder: Path, capsys: Capsys) -> None:
    Path("na.csv").write_text(WIDE.replace("news", "NA"))
    text = " ".join(inside(capsys, "score", "na.csv").stdout.split())
    assert "'NA' counts as a category" in text
    assert "--missing" in text
    assert "missing=" not in text


# A terminal


def on_terminal(*words: str | Path, columns: int = 80, env: dict[str, str] | None = None) -> str:
    """Run the command with a terminal as its standard output, and return what it writes there."""
    person, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        [COMMAND, *map(str, words)],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,  # where progress goes, on a busy machine
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


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_colours_on_a_terminal_and_nothing_else_changes(folder: Path, capsys: Capsys) -> None:
    coloured = on_terminal("audit", "votes.csv")
    piped = inside(capsys, "audit", "votes.csv").stdout
    assert COLOUR.search(coloured)
    plain = COLOUR.sub("", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == piped.splitlines()
    assert "\x1b" not in piped


def test_no_color_and_a_terminal_that_can_do_little(folder: Path) -> None:
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        told = on_terminal("audit", "votes.csv", env=env)
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", told)


def test_hostile_names_on_a_terminal(hostile: Path) -> None:
    told = on_terminal("audit", hostile)
    plain = COLOUR.sub("", told)
    assert "\x1b" not in plain
    assert "\x07" not in plain
    check_lines("\n".join(line.rstrip() for line in plain.splitlines()) + "\n")


def test_paths_are_spelled_out(folder: Path) -> None:
    told = on_terminal("tally", "make", "votes.csv", "-o", "x\x1b[31m\ny.json")
    assert "\x1b" not in told
    assert len(told.splitlines()) == 1


# Numbers


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (number(0.456), "0.46"),
        (number(-0.001), "0.00"),
        (number(float("nan")), "-"),
        (number(None), "-"),
        (number(0.1234, 3), "0.123"),
        (signed(0.5), "+0.50"),
        (signed(-0.5), "-0.50"),
        (signed(-0.001), "-0.00"),
        (signed(float("nan")), "-"),
        (limits(-0.1, 0.25), "-0.10 to 0.25"),
        (limits(float("nan"), float("nan")), "-"),
        (limits(None, None), "-"),
        (percent(0.95), "95%"),
        (percent(0.999), "99.9%"),
        (percent(1 - 0.05 / 3), "98.33%"),
        (percent(0.99999999), "99.999999%"),
    ],
)
def test_numbers(written: str, text: str) -> None:
    assert written == text
