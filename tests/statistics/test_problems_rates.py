"""How often problems are found: in messy files, in public data sets, and in simulated tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars  # noqa: F401  # problem_rates needs it
import pytest

import problem_rates
from dhkappa import Check, read
from dhkappa.errors import flag

DATA = Path(__file__).parents[2].parent / "shared" / "data"
CASES = sorted(DATA.glob("messy/*/case.json"))
OPTIONS = {"--counts": "counts", "--suggested": "suggested"}
COUNTS = ["hate_speech", "offensive_language", "neither"]
WARNINGS = {  # of the public data sets, with the labelers that each concerns
    "crows_pairs": {("looks-missing", ()), ("annotator-differs", ())},  # two of 157 agree on 11% and 21% of pairs
    "davidson": {("labels-from-votes", ("class_majority",))},
    "dices_350": {("looks-missing", ())},  # the vote Unsure
    "dynasent_r1_dev": {("labels-from-votes", ("gold_majority",))},
    "dynasent_sst_dev_revalidated": {
        ("labels-from-votes", ("gold_majority",)),
        ("labeler-abstains", ("gold_majority",)),
    },
    "labelerrors_cifar100": {("votes-not-suggested", ())},  # 11% _neither and _both
    "labelerrors_imagenet": {("votes-not-suggested", ())},  # 25%
    "tweeteval_annotated": set(),
}


def checked(case: dict[str, Any], folder: Path) -> Check:
    """Check the files of a case with its options."""
    files = [folder / name for name in case["files"]]
    given: dict[str, Any] = {"items": files[1]} if len(files) > 1 else {}
    words = case["options"]
    given |= {OPTIONS[name]: value.split(",") for name, value in zip(words[::2], words[1::2], strict=True)}
    return read(files[0], **given).check()


@pytest.mark.skipif(not CASES, reason=f"no folder {DATA.name}/messy next to the project")
@pytest.mark.parametrize("path", CASES, ids=[path.parent.name for path in CASES])
def test_messy_files(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    codes = {problem.code for problem in checked(case, path.parent).problems}
    assert {*case["problems"]} <= codes
    assert codes & {*case["not_problems"]} == set()


@pytest.mark.skipif(not DATA.exists(), reason=f"no folder {DATA.name} next to the project")
@pytest.mark.parametrize("name", WARNINGS)
def test_public_data_sets(name: str) -> None:
    folder = DATA / name
    votes = next((folder / file for file in ("annotations.csv", "counts_long.csv") if (folder / file).exists()), None)
    given: dict[str, Any] = {"items": folder / "items.csv"} if votes else {"counts": COUNTS}
    problems = read(votes or folder / "items.csv", **given).check().problems
    assert {(one.code, one.labelers) for one in problems if one.severity == "warning"} == WARNINGS[name]
    assert [one.code for one in problems if one.severity == "error"] == []


SURE = [(what, code) for what, (code, _) in problem_rates.CHANGED.items() if what not in problem_rates.UNSURE]


@pytest.mark.parametrize(("what", "code"), SURE)
def test_changed_tables(what: str, code: str) -> None:
    """Tables with a problem: each of five is found."""
    make = problem_rates.CHANGED[what][1]
    for seed in range(5):
        assert problem_rates.codes_of(make(np.random.default_rng([2, seed]))).get(code) in ("error", "warning"), seed


def _sign(data: problem_rates.Data) -> str:
    return next(sign for label in data.votes.ravel() for sign in ";|,/" if label and sign in label)


def _word(data: problem_rates.Data) -> str:
    return str(next(label for label in data.votes.ravel() if label and label not in problem_rates.NAMES))


def _values(data: problem_rates.Data) -> str:
    return ",".join(sorted({*data.votes.ravel()}, key=int))


FIXES: dict[str, Callable[[problem_rates.Data], str]] = {  # by change: what the fix must contain
    "labels are codes of the votes": lambda _: '--map "0=billing,1=bug,2=how-to,3=other,4=outage"',
    "missing votes are spelled out": lambda data: f'--missing "{_word(data)}"',
    "several labels in a cell": lambda data: f'--multilabel "{_sign(data)}"',
    "ratings": lambda data: f'--categories "{_values(data)}"',
    "seconds or confidence among the votes": lambda _: '--annotators "ann_ada,ann_ben,ann_chloe,ann_dev"',
    "an annotator's column has another name": lambda data: next(iter(data.wide_columns)),
    "names of annotators are spelled differently": lambda _: "--normalize case,spaces",
}


@pytest.mark.parametrize("what", FIXES)
def test_fixes(what: str) -> None:
    """The fix names the right labels and columns."""
    code, make = problem_rates.CHANGED[what]
    for seed in range(3):
        data = make(np.random.default_rng([6, seed]))
        [fix] = [problem.fix_text(flag) for problem in data.dataset().check().problems if problem.code == code]
        assert FIXES[what](data) in fix, (seed, fix)


RARE = {  # clean tables that may be reported: problems that these shapes cannot be told from
    "labels without any error": {"labels-from-votes"},
    "annotator and labeler with accuracy .97": {"labels-from-votes"},
    "labeler with accuracy .95 to .98": {"labels-from-votes"},
    "numbers of which some pairs are confused": {"looks-ordinal"},
}


@pytest.mark.parametrize("shape", problem_rates.CLEAN)
def test_clean_tables(shape: str) -> None:
    """Clean tables: no alarm in any of four, but for shapes that look like a problem."""
    for seed in range(4):
        found = problem_rates.codes_of(problem_rates.CLEAN[shape](np.random.default_rng([3, seed])))
        alarms = {code for code, severity in found.items() if severity != "info"}
        assert alarms <= RARE.get(shape, set()), (seed, found)


def test_table_of_rates() -> None:
    results: list[Any] = [("clean one", None, [{}, {"looks-ordinal": "warning"}])]
    results += [("changed one", "looks-ordinal", [{"looks-ordinal": "warning"}, {"looks-ordinal": "info"}])]
    lines = problem_rates.lines_of(results)
    assert "| changed one | `looks-ordinal` | 1 of 2 | 1 of 2 |" in lines
    assert "| clean one | 1 of 2 | `looks-ordinal` (1) |" in lines
