"""What can be said on the command line: one sentence for what is wrong, in its words, and a page that has it all."""

# ruff: noqa: F811  # what a test takes by the name of a fixture is no new definition

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import dhkappa
from dhkappa.cli.commands import commands
from dhkappa.cli.demo import write_demo
from dhkappa.cli.options import PARTS, check_target, in_flags, is_tally, several
from dhkappa.errors import DataError
from test_cli import REPORTS, WIDE, folder, inside, refused, run  # noqa: F401  # a fixture

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
Capsys = pytest.CaptureFixture[str]

LONG = "item,annotator,label\n1,ann,x\n1,bo,x\n2,ann,y\n2,bo,x\n"
FILES = {
    "empty.csv": "",
    "header.csv": WIDE.splitlines()[0] + "\n",
    "bytes.csv": "item,suggested\n\udcff\udcfe,x\n",
    "own.csv": "id,machine,p1,p2\n1,x,x,y\n2,y,y,y\n",
    "long.csv": LONG,
    "twice.csv": "item,annotator,label,suggested\n1,ann,x,x\n1,ann,y,x\n1,bo,x,x\n",
    "items.csv": "item,suggested\n1,x\n",
    "twice_items.csv": "item,suggested\n1,x\n2,y\n1,y\n",
    "not.json": '{"a": 1}\n',
    "cut.json": '{"format": "dhkappa-tally",\n"version": 1,\n"categ',
    "new.json": '{"format": "dhkappa-tally",\n"version": 99}\n',
    "one.csv": "suggested,ann_1,ann_2\nx,x,y\ny,y,y\n",
    "blanks.csv": "item, suggested, ann_1, ann_2\n1,x,x,y\n",
    "case.csv": "Item,Suggested,Ann_1,Ann_2\n1,x,x,y\n",
    "format=2.csv": "item,x\n1,2\n",
}

# The command, and what its one sentence must hold.
WRONG = [
    ("score absent.csv", ["'absent.csv'", "no file"]),
    ("audit absent.csv", ["'absent.csv'", "no file"]),
    ("score vots.csv", ["Did you mean 'votes.csv'?"]),
    ("score empty.csv", ["'empty.csv' is empty"]),
    ("score header.csv", ["no items"]),
    ("audit header.csv", ["no items"]),
    ("compare header.csv", ["no items"]),
    ("items header.csv -s llm", ["no items"]),
    ("score bytes.csv", ["bytes.csv"]),
    ("score .", ["is a folder"]),
    ("score votes.csv -s suggested_lm", ["'suggested_lm'", "Columns: item,", "Did you mean 'suggested_llm'?"]),
    ("score votes.csv -a 'an_*'", ["'an_*'"]),
    ("score votes.csv --item itm", ["'itm'", "Did you mean 'item'?"]),
    ("score long.csv --item item --label lable", ["'lable'", "Did you mean 'label'?"]),
    ("score votes.csv --sample-weight wieght", ["'wieght'"]),
    ("score votes.csv --counts ham,eggs", ["'ham'", "Columns:"]),
    (
        "score own.csv",
        ["Columns: id, machine, p1, p2", "--annotators", "--item", "--label", "--counts", "dhkappa score"],
    ),
    (
        "score blanks.csv",
        ["Columns: item, ' suggested', ' ann_1', ' ann_2'. Blanks and case count: ' suggested' is not 'suggested'."],
    ),
    ("audit blanks.csv", ["suggested is absent", "Blanks and case count: ' suggested' is not 'suggested'."]),
    ("score case.csv", ["Columns: Item, Suggested, Ann_1, Ann_2. Blanks and case count: 'Item' is not 'item'."]),
    ("score blanks.csv -s suggested -a ann_1", ["Did you mean ' suggested'?"]),
    ("score long.csv", ["suggested", "--items"]),
    ("score long.csv --items items.csv", ["'2'", "--unlisted 'unlabeled'"]),
    ("score long.csv --items twice_items.csv", ["'1'"]),
    ("score long.csv --items absent.csv", ["'absent.csv'"]),
    ("score twice.csv", ["several votes", "--duplicates 'first'"]),
    ("score votes.csv --unlisted unlabeled", ["--items"]),
    ("score votes.csv --categories spam,ham", ["'news'", "--categories", "--missing"]),
    ("score votes.csv --weights linear", ["categories"]),
    *(
        (f"{command} votes.csv -s llm {word} ''", [f"{word} is empty: give {what}, or leave it out."])
        for command, words, what in [
            ("score", ["--sample-weight", "--strata", "--item", "--label", "--counts", "--annotators"], "COLUMN"),
            ("compare", ["--categories"], "LABEL"),
            ("items", ["--items", "--output"], "FILE"),
            ("score", ["--pool"], "N"),
            ("score", ["--input-format"], "FORMAT"),
            ("score", ["--question", "--table"], "NAME"),
            ("audit", ["--title"], "TEXT"),
        ]
        for word in words
    ),
    ("score votes.csv -s ''", ["--suggested is empty: give COLUMN, or leave it out."]),
    ("score votes.csv -s llm -s ''", ["--suggested is empty"]),
    ("score votes.csv --missing ''", ["--missing is empty, and empty text is missing anyway: leave it out."]),
    ("tally make votes.csv -o ''", ["--output is empty: give FILE."]),
    ("plan 0.05 --prevalence ''", ["--prevalence is empty: give SHARES"]),
    ("score votes.csv --input-format foo", ["format", "'label_studio'", "'foo'"]),
    ("score votes.csv --input-format prodigy", ["votes.csv"]),
    ("score votes.csv --question topic", ["question"]),
    ("score votes.csv --pool many", ["--pool", "'many'"]),
    ("score votes.csv --pool 3", ["pool", "3 items", "8"]),
    ("score votes.csv --pool -5", ["--pool", "'-5'"]),
    ("score votes.csv --pool a=10,b", ["--pool", "STRATUM=NUMBER"]),
    ("score votes.csv --pool a=10", ["--strata"]),
    ("score votes.csv --confidence-level 2", ["confidence_level", "between 0 and 1", "2.0"]),
    ("score votes.csv --confidence-level nan", ["confidence_level", "nan"]),
    ("score votes.csv --confidence-level x", ["--confidence-level", "'x'"]),
    ("score votes.csv --fail-under nan", ["--fail-under", "nan"]),
    ("score votes.csv --fail-under inf --format json", ["--fail-under", "inf"]),
    ("score votes.csv --fail-under low", ["--fail-under", "'low'"]),
    ("score votes.csv --on mean", ["--on", "'mean'"]),
    ("audit votes.csv --seed -1", ["--seed"]),
    ("items votes.csv --limit 0", ["--limit"]),
    ("items votes.csv", ["--suggested", "rule, llm"]),
    ("plan 0.05 votes.csv", ["--suggested", "rule, llm"]),
    ("compare one.csv", ["suggested"]),
    ("plan 0.05", ["a pilot", "--annotator-accuracy", "--labeler-accuracy", "--categories"]),
    ("plan 0.05 -s llm", ["pilot"]),
    ("plan 5 votes.csv -s llm", ["half_width", "5"]),
    ("plan wide votes.csv", ["HALF_WIDTH", "'wide'"]),
    ("plan 0.05 --prevalence 4,x --annotator-accuracy 0.9 --labeler-accuracy 0.9", ["--prevalence", "'4,x'"]),
    ("plan 0.05 --prevalence 4,-1 --annotator-accuracy 0.9 --labeler-accuracy 0.9", ["prevalence", "-1"]),
    ("plan 0.05 --categories 3 --annotator-accuracy 2 --labeler-accuracy 0.9", ["accuracy", "2"]),
    ("tally show votes.csv", ["'votes.csv'", "tally"]),
    ("tally show not.json", ["'not.json' is not a tally"]),
    ("tally show cut.json", ["'cut.json'", "damaged or cut short"]),
    ("tally show new.json", ["version 99"]),
    ("tally show absent.json", ["'absent.json'"]),
    ("tally add cut.json -o out.json", ["'cut.json'"]),
    ("tally add good.json good.json -o out.json", ["twice"]),
    ("score cut.json", ["'cut.json'"]),
    ("score good.json votes.csv", ["'good.json' is a tally"]),
    ("tally make good.json -o out.json", ["tally add"]),
    ("items good.json -s llm", ["items", "votes"]),
    ("tally make votes.csv", ["--output"]),
    ("tally make votes.csv -o out.csv", ["'out.csv'", ".json"]),
    ("tally make votes.csv -o -", ["'-'", ".json"]),
    ("tally make votes.csv -o nowhere/out.json", ["no folder", "nowhere"]),
    ("tally make votes.csv -o folder.json", ["'folder.json'", "is a folder"]),
    ("tally make votes.csv -o /proc/out.json", ["/proc/out.json"]),
    ("tally make votes.csv -o /dev/full", ["/dev/full", "No space left on device"]),
    ("items votes.csv -s llm -o votes.csv", ["'votes.csv' is one of the files to read"]),
    ("items ./votes.csv -s llm -o ../{here}/votes.csv", ["is one of the files to read"]),
    ("items 'vot*.csv' -s llm -o votes.csv", ["'votes.csv' is one of the files to read"]),
    ("items link.csv -s llm -o votes.csv", ["is one of the files to read"]),
    ("items long.csv --items items.csv -o items.csv", ["is one of the files to read"]),
    ("items votes.csv -s llm -o out.json", ["'out.json'", ".csv"]),
    ("items votes.csv -s llm -o out.csv --format json", ["'out.csv'", ".json"]),
    ("items votes.csv -s llm -o /dev/full", ["/dev/full", "No space left on device"]),
    ("audit votes.csv -o out.pdf", ["'out.pdf'", ".html"]),
    ("audit votes.csv -o -", ["'-'", ".html"]),
    ("audit votes.csv -o nowhere/out.html", ["no folder"]),
    ("audit votes.csv -o folder.html", ["is a folder"]),
    ("demo -o votes.csv", ["'votes.csv'"]),
    ("demo --items 0", ["--items"]),
    ("completion powershell", ["'powershell'"]),
    ("score", ["FILE"]),
    ("score --bogus", ["--bogus"]),
    ("scroe votes.csv", ["'scroe'"]),
    ("score format=2.csv", ["Columns: item, x"]),
    ("score format=3.csv", ["'format=3.csv'"]),
]

if all(map(find_spec, ("ibis", "psycopg"))):
    WRONG.append(("score 'postgresql://nobody@127.0.0.1:1/none' --table x", ["127.0.0.1"]))
PYTHON = {f"{option.name}" for command in commands.commands.values() for option in command.params} | {"pilot", "data"}


@pytest.mark.parametrize(("words", "holds"), WRONG, ids=[words for words, _ in WRONG])
def test_what_is_wrong_is_one_sentence(
    words: str,
    holds: list[str],
    folder: Path,
    capsys: Capsys,
) -> None:
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8", errors="surrogateescape")
    for name in ("folder.json", "folder.html"):
        Path(name).mkdir()
    Path("link.csv").symlink_to("votes.csv")
    assert inside(capsys, "tally", "make", "votes.csv", "-o", "good.json").returncode == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    sentence = refused(inside(capsys, *shlex.split(words.replace("{here}", folder.name))))
    for part in holds:
        assert part in sentence
    unquoted = re.sub(r"'[^']*'", "", sentence)
    assert not re.search(rf"\b({'|'.join(PYTHON)})=", unquoted)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "words", ["score absent.csv", "score --bogus", "tally show cut.json", "items votes.csv -s llm -o nowhere/x.csv"]
)
def test_the_same_in_a_process(words: str, folder: Path) -> None:
    Path("cut.json").write_text(FILES["cut.json"])
    assert refused(run(*words.split()))


@pytest.mark.parametrize("words", [[], ["tally"]])
def test_no_command_shows_the_commands(words: list[str]) -> None:
    done = run(*words)
    assert "Commands:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


# Words


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["a"], ["a"]),
        (["a,b", "c"], ["a", "b", "c"]),
        (['"a, b",c'], ["a, b", "c"]),
        (["a\nb"], ["a\nb"]),
        ([""], []),
        ([], []),
        (["naïve,漢"], ["naïve", "漢"]),
        (['say "hi"'], ['say "hi"']),
    ],
)
def test_several(given: list[str], names: list[str]) -> None:
    assert several(given) == names


@pytest.mark.parametrize(
    ("python", "flags"),
    [
        ("pass it as items=.", "pass it as --items."),
        ("Pass annotator=None or count=None.", "Pass --annotator '' or --count ''."),
        ("pass duplicates='first' or 'last'", "pass --duplicates 'first' or 'last'"),
        ("name it in missing= if it is no label", "name it in --missing if it is no label"),
        ("path 'items=3.csv' is no file", "path 'items=3.csv' is no file"),
        ("weights= and pool= both say", "--sample-weight and --pool both say"),
        ("nothing to change: a = b", "nothing to change: a = b"),
    ],
)
def test_sentences_of_the_library_in_flags(python: str, flags: str) -> None:
    assert in_flags(python) == flags


def test_the_example_for_unknown_columns_can_be_typed(folder: Path, capsys: Capsys) -> None:
    Path("own.csv").write_text("machine,p1,p2,p3\nx,x,y,x\ny,y,y,x\n")
    sentence = refused(inside(capsys, "score", "own.csv", "--suggested", "machine"))
    example = sentence.partition("For example: ")[2].rstrip(".")
    done = inside(capsys, *shlex.split(example.replace("FILE", "own.csv"))[1:])
    assert done.returncode == 0


def test_tallies_are_told_from_other_files(folder: Path) -> None:
    Path("t.json").write_text('{"format": "dhkappa-tally",\n')
    assert is_tally("t.json")
    assert not any(map(is_tally, ["votes.csv", "absent", ".", "a\0b", ""]))


def test_tallies_are_known_however_they_are_laid_out(folder: Path, capsys: Capsys) -> None:
    whole = dhkappa.tally("votes.csv", "suggested_llm")
    whole.save("whole.json")
    held = json.loads(Path("whole.json").read_text())
    for text in (
        json.dumps(held, indent=4),
        json.dumps(held, separators=(",", ":")),
        "\n" + json.dumps(dict(reversed(held.items()))),
        json.dumps(held | {"remarks": ["long" * 10_000]}, sort_keys=True),
        json.dumps(dict(reversed((held | {"remarks": ["long" * 10_000]}).items()))),
    ):
        Path("again.json").write_text(text)
        assert is_tally("again.json")
        assert inside(capsys, "score", "again.json", "--format", "json").returncode == 0
        assert inside(capsys, "tally", "add", "again.json", "-o", "sum.json").returncode == 0
        assert dhkappa.Tally.load("sum.json").n_votes == whole.n_votes
    Path("rows.json").write_text('{"text": "\\"format\\": \\"dhkappa-tally\\""}\n')
    assert not is_tally("rows.json")


def test_an_unwritable_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the question is answered for it."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"^cannot write 'x\.csv': see who may write there\.$"):
        check_target("x.csv", [], [".csv"])


# The page, and what --help shows


def leaves(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Find every command, groups too."""
    yield before, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*before, name))
        else:
            yield (*before, name), command


ALL = list(leaves(commands))


def help_of(words: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(commands, info_name="dhkappa", terminal_width=78, **commands.context_settings)
    for place, word in enumerate(words):
        inner = dict(ALL)[words[: place + 1]]
        context = click.Context(inner, info_name=word, parent=context, terminal_width=78)
    return command.get_help(context)


def shown_in_page() -> str:
    """What stands between the marks in docs/cli.md: the help of every command."""
    blocks = [
        f"### `{' '.join(['dhkappa', *words])}`\n\n```text\n{help_of(words, command)}\n```\n" for words, command in ALL
    ]
    return "\n".join(blocks)


def told_by(command: str, capsys: Capsys) -> str:
    """Return what a person sees of a command of the page, and its exit code where it is not 0."""
    done = inside(capsys, *shlex.split(command)[1:])
    code = f"exit code {done.returncode}\n" if done.returncode else ""
    return done.stdout + done.stderr + code


def with_outputs(text: str, capsys: Capsys) -> str:
    """Run the commands of the page, one after the other, and write what they say below them."""

    def block(found: re.Match[str]) -> str:
        asked = [line for line in found[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "\n".join(f"{line}\n{told_by(line[2:], capsys)}" for line in asked) + "```\n"

    return re.sub(r"```console\n(.*?)```\n", block, text, flags=re.DOTALL)


@pytest.mark.skipif(not REPORTS, reason="what the report needs is absent")
def test_the_page_shows_what_commands_say(tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """To write the page anew: DHKAPPA_WRITE_DOCS=1 python -m pytest tests/test_options.py -n0 -k page_shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    text = PAGE.read_text("utf-8")
    votes = re.findall(r"```csv\n(.*?)```\n", text, flags=re.DOTALL)
    Path("votes.csv").write_text(votes[0])
    [days] = (block for block in re.findall(r"```sh\n(.*?)```\n", text, flags=re.DOTALL) if "> monday.csv" in block)
    subprocess.run(["sh", "-ec", days], check=True)
    Path("dhkappa-demo").mkdir()
    write_demo("dhkappa-demo", 400, 1)
    before, mark, rest = text.partition("<!-- help -->\n")
    _, end, after = rest.partition("<!-- end of help -->\n")
    assert mark
    assert end
    written = with_outputs(before, capsys) + f"{mark}\n{shown_in_page()}\n{end}{after}"
    if os.environ.get("DHKAPPA_WRITE_DOCS") == "1":
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text("utf-8").splitlines() == written.splitlines()
    assert len(re.findall("^\\$ dhkappa", text, flags=re.MULTILINE)) >= 8


def test_other_examples_of_the_page_parse() -> None:
    """Commands on files that the page does not have."""
    blocks = re.findall(r"```(?:sh|yaml)\n(.*?)```\n", PAGE.read_text("utf-8"), flags=re.DOTALL)
    found = [
        line.split(": ", 1)[-1].split("#")[0] for block in blocks for line in block.splitlines() if "dhkappa " in line
    ]
    typed = [shlex.split(line)[1:] for line in found if line.strip().startswith("dhkappa ")]
    assert len(typed) >= 6
    for words in typed:
        if words[0] != "completion":
            parse(words)


def test_the_help_in_the_page_is_what_a_person_sees() -> None:
    for words in ((), ("audit",), ("tally", "make")):
        seen = run(*words, "--help", env={"COLUMNS": "80"}).stdout
        assert seen == help_of(words, dict(ALL)[words]) + "\n"
        assert max(map(len, seen.splitlines())) <= 80


def test_every_command_and_option_is_in_the_page() -> None:
    text = PAGE.read_text("utf-8")
    for words, command in ALL:
        assert f"`{' '.join(['dhkappa', *words])}`" in text
        for option in command.params:
            assert all(name in text for name in option.opts if name.startswith("-"))
            if isinstance(option, click.Option):
                assert option.help, (words, option.name)


def test_options_mean_the_same_in_every_command() -> None:
    """An option that several commands share is one object, but for plan, whose pool and categories are numbers."""
    shared = {option.__name__ if hasattr(option, "__name__") else option for part in PARTS.values() for option in part}
    assert shared
    seen: dict[str, str] = {}
    for words, command in ALL:
        for option in command.params:
            if not isinstance(option, click.Option) or words[:1] in (("plan",), ("demo",)):
                continue
            text = seen.setdefault(f"{option.name}", f"{option.help}")
            assert text == option.help or option.name == "output", (words, option.name)


def parse(typed: list[str]) -> dict[str, object]:
    """Read a command as click does, without running it."""
    context, command, rest = None, dict(ALL)[()], list(typed)
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context)
        command = command.commands[rest.pop(0)]
    return command.make_context(command.name, rest, parent=context).params


def examples(text: str) -> list[str]:
    """Find commands in a help text, each to the next or the end."""
    told = re.sub(r"\s+", " ", re.split(r"Examples?:", text, maxsplit=1)[1])
    told = told.split(" Options:")[0]
    return [f"dhkappa {part.strip(' ;')}" for part in told.split("dhkappa ")[1:]]


@pytest.mark.parametrize(("words", "command"), ALL, ids=["dhkappa " + " ".join(words) for words, _ in ALL])
def test_help_has_an_example_that_parses(words: tuple[str, ...], command: click.Command) -> None:
    text = help_of(words, command)
    found = examples(text)
    assert found
    for example in found:
        if words == ("completion",):
            assert 'eval "$(dhkappa completion bash)"' in text
            continue
        typed = shlex.split(example)[1:]
        assert words == tuple(typed[: len(words)])
        assert parse(typed)
