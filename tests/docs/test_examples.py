"""The notebook, the commands and the tests of the documentation run, and print what the pages show."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import dhkappa
from cli_help import parse
from command import REPORTS, inside
from dhkappa.cli.demo import write_demo

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "audit.ipynb"
PAGES = sorted(ROOT.glob("docs/**/*.md"))
WITH_COMMANDS = [path for path in PAGES if "```console\n" in path.read_text(encoding="utf-8")]
EXPORTS = {
    "label-studio.json": "label_studio/mail_whole.json",
    "binary.jsonl": "prodigy/binary.jsonl",
    "choice.jsonl": "prodigy/choice.jsonl",
    "doccano.zip": "doccano/reviews.zip",
    "argilla.json": "argilla/flat.json",
}
Capsys = pytest.CaptureFixture[str]
read_notebook: Any = nbformat.read  # without types


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def output_of(command: str, capsys: Capsys) -> str:
    """Return what a command shows, and its exit code if it is not 0; a shell runs what the output is piped to."""
    command, _, rest = command.partition(" | ")
    words = shlex.split(command)
    if words[0] == "python":
        return subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=True).stdout
    done = inside(capsys, *words[1:])
    if rest:
        done.stdout = subprocess.run(
            ["sh", "-c", rest], input=done.stdout, capture_output=True, text=True, check=True
        ).stdout
    code = f"exit code {done.returncode}\n" if done.returncode else ""
    return done.stdout + done.stderr + code


def with_outputs(text: str, capsys: Capsys) -> str:
    """Run the commands of a page in order, and write their output below them."""

    def block(found: re.Match[str]) -> str:
        asked = [line for line in found[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "\n".join(f"{line}\n{output_of(line[2:], capsys)}" for line in asked) + "```\n"

    return re.sub(r"```console\n(.*?)```\n", block, text, flags=re.DOTALL)


# The notebook


def source(cell: Any) -> str:
    return str(cell["source"])


def test_the_notebook_is_kept_without_outputs() -> None:
    book = read_notebook(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)


@pytest.mark.skipif(not REPORTS, reason="what the charts need is absent")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs_and_decides_as_it_says(tmp_path: Path) -> None:
    """The warnings are those of the kernel about event loops and sockets."""
    pytest.importorskip("pandas")
    pytest.importorskip("ipykernel")
    book = read_notebook(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()  # an error in a cell is raised
    cells = {cell["id"]: cell for cell in book["cells"]}
    outputs = {name: cell["outputs"] for name, cell in cells.items() if cell["cell_type"] == "code"}
    assert [output for held in outputs.values() for output in held if output["output_type"] == "stream"] == []
    (decided,) = outputs["decision"]
    decision = ast.literal_eval(decided["data"]["text/plain"])
    assert decision == {"take": "llm", "review": ["bug"]}
    assert f"`{decision}`" in source(cells["decided"])
    charts = [name for name, cell in cells.items() if source(cell).startswith("audit.chart(")]
    assert len(charts) == 5
    for name in charts:
        assert "<svg" in outputs[name][0]["data"]["image/svg+xml"]
    assert (tmp_path / "report.html").stat().st_size > 10_000


# The pages


def furnish(text: str) -> None:
    """Write the files that the commands of a page read."""
    for name, path in EXPORTS.items():
        shutil.copy(ROOT / "tests" / "exports" / path, name)
    files = r"`([\w-]+\.(?:csv|py))`[^`]*\n\n```(?:csv|python)\n(.*?)```\n"
    for name, held in re.findall(files, text, flags=re.DOTALL):
        Path(name).write_text(held, encoding="utf-8")
    Path("votes.csv").write_text(blocks(text_of("cli.md"), "csv")[0], encoding="utf-8")
    for days in (block for block in blocks(text, "sh") if "> monday.csv" in block):
        subprocess.run(["sh", "-ec", days], check=True)
    Path("dhkappa-demo").mkdir()
    write_demo("dhkappa-demo", 400, 1)
    for week in (40, 41, 42) if "$ dhkappa history" in text and "$ dhkappa demo" not in text else ():
        Path(f"week{week}").mkdir()
        write_demo(f"week{week}", 300, week)
        audit = dhkappa.audit(f"week{week}/annotations.csv", items=f"week{week}/items.csv", rng=1)
        audit.save(f"week{week}.json", date=f"2026-11-{7 * (week - 40) + 2:02}", data="annotations.csv")


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: path.stem)
def test_pages_show_what_commands_say(
    path: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To update the pages: DHKAPPA_WRITE_DOCS=1 python -m pytest tests/docs/test_examples.py -n0 -k pages_show."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    text = path.read_text(encoding="utf-8")
    furnish(text)
    written = with_outputs(text, capsys)
    if os.environ.get("DHKAPPA_WRITE_DOCS") == "1":
        path.write_text(written, encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == written.splitlines()


def test_pages_with_commands_are_found() -> None:
    assert {"annotation-tools", "cli", "gate", "json"} <= {path.stem for path in WITH_COMMANDS}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_other_commands_of_pages_parse(path: Path) -> None:
    """Commands on files that a page does not provide."""
    for block in [held for language in ("sh", "yaml") for held in blocks(path.read_text(encoding="utf-8"), language)]:
        for line in block.splitlines():
            command = re.search(r"(?:^|- |: )dhkappa ([a-z].*)$", re.split(r" #| > | \| ", line)[0])
            if command:
                parse(shlex.split(command[1]))


def test_the_gate_in_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of the page pass on the demo's data, and fail where they should."""
    monkeypatch.chdir(tmp_path)
    Path("labels").mkdir()
    write_demo("labels", 400, 1)
    held: dict[str, Any] = {}
    for block in blocks(text_of("how-to/gate.md"), "python"):
        exec(block, held)
    tests = [held[name] for name in held if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()
    items = Path("labels/items.csv")
    rows = [line.split(",") for line in items.read_text(encoding="utf-8").splitlines()]
    worse = [",".join([item, llm, "bug"]) for item, rule, llm, *_ in rows[1:]]  # the LLM says bug to everything
    items.write_text("\n".join([",".join(rows[0][:3]), *worse]) + "\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        held["test_annotators_agree_with_the_labels"]()
    with pytest.raises(AssertionError):
        held["test_the_llm_is_no_worse_than_the_rule"]()
    items.write_text(items.read_text(encoding="utf-8").replace(",bug\n", ",bugs\n", 1), encoding="utf-8")
    with pytest.raises(held["dhkappa"].DataError, match="bugs"):
        held["test_no_label_is_new"]()


def test_the_gate_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels").mkdir()
    write_demo("labels", 400, 1)
    lines = [line for held in blocks(text_of("how-to/gate.md"), "sh") for line in held.splitlines()]
    (command,) = [line for line in lines if " > " in line]
    done = inside(capsys, *shlex.split(command.split(" > ")[0])[1:])
    assert done.returncode == 3
    (shown,) = blocks(text_of("how-to/gate.md"), "json")
    assert json.loads(done.stdout)["gate"] == json.loads(shown)
