"""Examples of the README and the documentation run, and links lead somewhere."""

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/**/*.md"))]]
WITH_EXAMPLES = [page for page in PAGES if ">>> " in (ROOT / page).read_text(encoding="utf-8")]


def absent(page: str) -> list[str]:
    """Return the libraries that a page's examples import and that are not installed."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^>>> (?:from (\w+)|import ([\w, ]+))", text, flags=re.MULTILINE)
    names = {name.split()[0] for one, several in lines for name in [one, *several.split(",")] if name.strip()}
    return sorted(name for name in names if find_spec(name) is None)


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if absent(page):
        pytest.skip(f"its examples need {', '.join(absent(page))}")
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(ROOT / page), module_relative=False, encoding="utf-8")
    assert tried > 0
    assert failed == 0


def test_pages_with_examples_are_found() -> None:
    assert {"README.md", "docs/data.md"} <= {*WITH_EXAMPLES}


def test_every_section_of_the_robustness_page_is_written() -> None:
    [targets] = re.findall(r"^robustness: (.*?)  ##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    page = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
    written = dict(re.findall(r"<!-- (\w+): written by make \1 -->(.*?)<!-- end of \1 -->", page, re.DOTALL))
    assert set(written) == set(targets.split())
    for name, text in written.items():
        assert "Made on 20" in text, name
        wrong = "FAULT|WRONG|[Nn]ot as it should be|without an explanation|[0-9] failed|tests failed"
        assert not re.search(wrong, text), name


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    """Links within the project lead to a file, and to a heading of it where they name one."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match("[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target
