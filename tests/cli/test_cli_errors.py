"""What is wrong with the usage or the data ends a command with one line and exit code 2, and changes no file."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from command import WIDE, call, inside, refused, run
from dhkappa.cli.commands import commands
from expect import expect_error

Capsys = pytest.CaptureFixture[str]

LONG = "item,annotator,label\n1,ann,x\n1,bo,x\n2,ann,y\n2,bo,x\n"
FILES = {
    "empty.csv": "",
    "header.csv": WIDE.splitlines()[0] + "\n",
    "bytes.csv": "item,suggested\n\udcff\udcfe,x\n",
    "own.csv": "id,machine,p1,p2\n1,x,x,y\n2,y,y,y\n",
    "long.csv": LONG,
    "unlabeled.csv": "item,annotator,label\n1,ann,x\n1,bo,x\n2,ann,y\n2,bo,x\n",
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


EMPTY = [
    *("--sample-weight", "--strata", "--item", "--label", "--counts", "--annotators", "--categories", "--items"),
    *("--pool", "--input-format", "--question", "--table", "--suggested", "--missing"),
]

# The command, and names that its message must contain.
WRONG = [
    ("score absent.csv", ["'absent.csv'"]),
    ("audit absent.csv", ["'absent.csv'"]),
    ("score vots.csv", ["'votes.csv'"]),
    ("score empty.csv", ["'empty.csv'"]),
    ("score bytes.csv", ["bytes.csv"]),
    ("score .", ["'.'"]),
    ("score votes.csv -s suggested_lm", ["'suggested_lm'", "'suggested_llm'"]),
    ("score votes.csv -a 'an_*'", ["'an_*'"]),
    ("score votes.csv --item itm", ["'itm'", "'item'"]),
    ("score long.csv --item item --label lable", ["'lable'", "'label'"]),
    ("score votes.csv --sample-weight wieght", ["'wieght'"]),
    ("score votes.csv --counts ham,eggs", ["'ham'"]),
    ("score own.csv", ["id, machine, p1, p2"]),
    ("score blanks.csv", ["' suggested'"]),
    ("audit blanks.csv", ["' suggested'"]),
    ("score case.csv", ["Item, Suggested, Ann_1, Ann_2"]),
    ("score blanks.csv -s suggested -a ann_1", ["' suggested'"]),
    ("score long.csv", []),
    ("score long.csv --items items.csv", ["'2'"]),
    ("score long.csv --items twice_items.csv", ["'1'"]),
    ("score long.csv --items absent.csv", ["'absent.csv'"]),
    ("score twice.csv", []),
    ("score votes.csv --unlisted unlabeled", []),
    ("score votes.csv --categories spam,ham", ["'news'"]),
    ("score votes.csv --weights linear", ["--categories"]),
    *((f"score votes.csv {option} ''", [option]) for option in EMPTY),
    ("score votes.csv -s llm -s ''", ["--suggested"]),
    ("audit votes.csv --title ''", ["--title"]),
    ("tally make votes.csv -o ''", ["--output"]),
    ("plan 0.05 --prevalence ''", ["--prevalence"]),
    ("score votes.csv --input-format foo", ["'label_studio'", "'foo'"]),
    ("score votes.csv --input-format prodigy", ["votes.csv"]),
    ("score votes.csv --question topic", []),
    ("score votes.csv --pool 3", ["3", "8"]),
    ("score votes.csv --pool a=10", []),
    ("score votes.csv --confidence-level 2", ["2.0"]),
    ("score votes.csv --confidence-level nan", ["nan"]),
    ("score votes.csv --confidence-level x", ["--confidence-level", "'x'"]),
    ("score votes.csv --fail-under nan", ["--fail-under", "nan"]),
    ("score votes.csv --fail-under inf --format json", ["--fail-under", "inf"]),
    ("score votes.csv --fail-under low", ["--fail-under", "'low'"]),
    ("score votes.csv --on mean", ["--on", "'mean'"]),
    ("audit votes.csv --seed -1", ["--seed"]),
    ("review votes.csv --limit 0", ["--limit"]),
    ("score unlabeled.csv", ["unlabeled.csv", "--suggested", "--items"]),
    ("compare one.csv", []),
    ("plan 0.05", []),
    ("plan 5 votes.csv -s llm", ["5"]),
    ("plan wide votes.csv", ["HALF_WIDTH", "'wide'"]),
    ("plan 0.05 --prevalence 4,-1 --annotator-accuracy 0.9 --labeler-accuracy 0.9", ["-1"]),
    ("plan 0.05 --n-categories 3 --annotator-accuracy 2 --labeler-accuracy 0.9", ["2"]),
    ("tally show votes.csv", ["'votes.csv'"]),
    ("tally show not.json", ["'not.json'"]),
    ("tally show cut.json", ["'cut.json'"]),
    ("tally show new.json", ["99"]),
    ("tally show absent.json", ["'absent.json'"]),
    ("tally add cut.json -o out.json", ["'cut.json'"]),
    ("score cut.json", ["'cut.json'"]),
    ("review good.json -s llm", []),
    ("tally make votes.csv", ["--output"]),
    ("tally make votes.csv -o /dev/full", ["/dev/full", "No space left on device"]),
    ("review votes.csv -s llm -o /dev/full", ["/dev/full", "No space left on device"]),
    ("demo --n-items 0", ["--n-items"]),
    ("completion powershell", ["'powershell'"]),
    ("score", ["FILE"]),
    ("score --bogus", ["--bogus"]),
    ("scroe votes.csv", ["'scroe'"]),
    ("score format=2.csv", ["item, x"]),
    ("score format=3.csv", ["'format=3.csv'"]),
]
if all(map(find_spec, ("ibis", "psycopg"))):
    WRONG.append(("score 'postgresql://nobody@127.0.0.1:1/none' --table x", ["127.0.0.1"]))
PYTHON = {f"{option.name}" for command in commands.commands.values() for option in command.params} | {"pilot", "data"}

# The command, and the code and the parameter of its own error.
CODES = [
    ("score header.csv", "no-items", "data"),
    ("audit header.csv", "no-items", "data"),
    ("compare header.csv", "no-items", "data"),
    ("review header.csv -s llm", "no-items", "data"),
    ("score votes.csv --pool many", "invalid-pool", "pool"),
    ("score votes.csv --pool -5", "invalid-pool", "pool"),
    ("score votes.csv --pool a=10,b", "invalid-pool", "pool"),
    ("score votes.csv --pool a=10,a=11", "invalid-pool", "pool"),
    ("score unlabeled.csv", "no-suggested-labels", "suggested"),
    ("plan 0.05 unlabeled.csv", "no-suggested-labels", "suggested"),
    ("review votes.csv", "several-labelers", "suggested"),
    ("plan 0.05 votes.csv", "several-labelers", "suggested"),
    ("plan 0.05 -s llm", "pilot-missing", "pilot"),
    ("plan 0.05 --prevalence 4,x", "invalid-prevalence", "prevalence"),
    ("tally add good.json good.json -o out.json", "duplicate-file", "data"),
    ("score good.json votes.csv", "mixed-files", "data"),
    ("tally make good.json -o out.json", "already-tally", "data"),
    ("tally make votes.csv -o out.csv", "output-ending", "output"),
    ("tally make votes.csv -o -", "output-ending", "output"),
    ("tally make votes.csv -o nowhere/out.json", "folder-not-found", "output"),
    ("tally make votes.csv -o folder.json", "output-is-folder", "output"),
    ("review votes.csv -s llm -o votes.csv", "output-is-input", "output"),
    ("review ./votes.csv -s llm -o ../{here}/votes.csv", "output-is-input", "output"),
    ("review 'vot*.csv' -s llm -o votes.csv", "output-is-input", "output"),
    ("review link.csv -s llm -o votes.csv", "output-is-input", "output"),
    ("review long.csv --items items.csv -o items.csv", "output-is-input", "output"),
    ("review votes.csv -s llm -o out.json", "output-ending", "output"),
    ("review votes.csv -s llm -o out.csv --format json", "output-ending", "output"),
    ("audit votes.csv -o out.pdf", "output-ending", "output"),
    ("audit votes.csv -o -", "output-ending", "output"),
    ("audit votes.csv -o nowhere/out.html", "folder-not-found", "output"),
    ("audit votes.csv -o folder.html", "output-is-folder", "output"),
    ("demo -o votes.csv", "output-not-folder", "output"),
]


@pytest.fixture
def prepared(folder: Path, capsys: Capsys) -> Path:
    """Add files that are wrong in some way."""
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8", errors="surrogateescape")
    for name in ("folder.json", "folder.html"):
        Path(name).mkdir()
    Path("link.csv").symlink_to("votes.csv")
    assert inside(capsys, "tally", "make", "votes.csv", "-o", "good.json").returncode == 0
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("words", "names"), WRONG, ids=[words for words, _ in WRONG])
def test_one_line(words: str, names: list[str], prepared: Path, capsys: Capsys) -> None:
    before = contents(prepared)
    line = refused(inside(capsys, *shlex.split(words)))
    for name in names:
        assert name in line
    assert contents(prepared) == before


@pytest.mark.parametrize(("words", "code", "parameter"), CODES, ids=[words for words, _, _ in CODES])
def test_code(words: str, code: str, parameter: str, prepared: Path, capsys: Capsys) -> None:
    before = contents(prepared)
    typed = shlex.split(words.replace("{here}", prepared.name))
    with expect_error(code, parameter):
        call(*typed)
    line = refused(inside(capsys, *typed))
    unquoted = re.sub(r"'[^']*'", "", line)
    assert not re.search(rf"\b({'|'.join(PYTHON)})=", unquoted)
    assert contents(prepared) == before


@pytest.mark.parametrize("words", ["score absent.csv", "score --bogus", "review votes.csv -s llm -o nowhere/x.csv"])
def test_in_a_process(words: str, folder: Path) -> None:
    assert refused(run(*words.split()))
