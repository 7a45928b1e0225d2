"""The texts of errors and notes, by code, in messages/snapshot.json: rewritten with DHKAPPA_WRITE_MESSAGES=1."""

import importlib.util
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas  # noqa: F401  # the cases need these libraries
import polars  # noqa: F401
import pyarrow  # noqa: F401
import pytest
import python_calamine  # noqa: F401
import xlsxwriter  # noqa: F401

from dhkappa import Check, DataError, Verdict

FOLDER = Path(__file__).parents[1] / "messages"
SNAPSHOT = FOLDER / "snapshot.json"
SOURCE = Path(__file__).parents[2] / "src" / "dhkappa"
CODE = re.compile(r"""\bcode="([a-z-]+)"|\b(?:Note|Problem)\(\s*"([a-z-]+)\"""")


def _cases() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    for path in sorted(FOLDER.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"messages_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for code, case in module.CASES.items():
            assert code not in found, f"{code} is in two files"
            found[code] = case
    return found


CASES = _cases()


def _code(key: str) -> str:
    return key.split(" (")[0]


def _text(key: str) -> str:
    """Return the text of the error that a case raises, of the verdict, or of the note or problem in its result."""
    try:
        result = CASES[key]()
    except DataError as error:
        assert error.code == _code(key)  # noqa: PT017
        return re.sub(r"(/[\w.-]+)+/", "", str(error))  # folders differ between machines
    if isinstance(result, str):
        return result
    if isinstance(result, Verdict):
        assert result.code == _code(key)
        return result.text
    if isinstance(result, Check):
        problems = {problem.code: problem.labeled_text() for problem in result.problems}
        return problems[_code(key)]
    notes = {note.code: note.text for note in result.notes}
    return str(notes[_code(key)])


@pytest.mark.parametrize("key", sorted(CASES))
def test_text_is_as_in_the_snapshot(key: str) -> None:
    text = _text(key)
    known = json.loads(SNAPSHOT.read_text(encoding="utf-8")) if SNAPSHOT.exists() else {}
    if os.environ.get("DHKAPPA_WRITE_MESSAGES"):  # run with -n 0
        known[key] = text
        kept = {code: known[code] for code in sorted(known) if code in CASES}
        SNAPSHOT.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert known.get(key) == text


def test_every_code_of_the_source_has_a_case() -> None:
    used = {
        one or other for path in SOURCE.rglob("*.py") for one, other in CODE.findall(path.read_text(encoding="utf-8"))
    }
    assert used - set(map(_code, CASES)) == set()


def test_the_snapshot_has_no_other_codes() -> None:
    assert set(json.loads(SNAPSHOT.read_text(encoding="utf-8"))) == set(CASES)
