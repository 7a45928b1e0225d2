"""Every error of the command line."""

import os
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

from command import WIDE, call


def _run(*commands: str) -> Callable[[], Any]:
    """Return a function that runs commands in a new folder with some files."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            Path("votes.csv").write_text(WIDE, encoding="utf-8")
            Path("header.csv").write_text("item,suggested,ann_1,ann_2\n", encoding="utf-8")
            Path("one.csv").write_text("item,suggested,ann_1,ann_2\n1,a,a,\n2,b,a,\n", encoding="utf-8")
            Path("annotations.csv").write_text("item\n", encoding="utf-8")
            Path("folder.json").mkdir()
            with open(os.devnull, "w") as nowhere, patch("sys.stdout", nowhere):
                call("tally", "make", "votes.csv", "-o", "t.json")
                for command in commands:
                    call(*command.split())

    return run


def _no_permission() -> None:
    with patch.object(os, "access", lambda path, mode: False):
        _run("review votes.csv -s llm -o out.csv")()


def _baseline_of_the_future() -> None:
    with patch("dhkappa.cli.history.today", lambda: "2026-11-02"):
        _run("audit votes.csv -s llm --save old.json --date 2026-11-09", "audit votes.csv -s llm --baseline old.json")()


CASES: dict[str, Callable[[], Any]] = {
    "no-items": _run("score header.csv"),
    "invalid-pool (number)": _run("score votes.csv --pool many"),
    "invalid-pool (strata)": _run("score votes.csv --pool a=10,b"),
    "invalid-pool (twice)": _run("score votes.csv --pool a=10,a=11"),
    "several-labelers": _run("review votes.csv"),
    "single-votes": _run("review one.csv"),
    "pilot-missing (command)": _run("plan 0.05 -s llm"),
    "invalid-prevalence (command)": _run("plan 0.05 --prevalence 4,x"),
    "duplicate-file (tally)": _run("score t.json t.json"),
    "mixed-files": _run("score t.json votes.csv"),
    "option-not-for-tally": _run("score t.json --missing NA --sample-weight w"),
    "already-tally": _run("tally make t.json -o out.json"),
    "not-a-tally": _run("tally add votes.csv -o out.json"),
    "output-ending": _run("audit votes.csv -o out.pdf"),
    "output-is-input": _run("review votes.csv -s llm -o votes.csv"),
    "output-is-folder": _run("tally make votes.csv -o folder.json"),
    "output-exists": _run("demo -o ."),
    "output-not-folder": _run("demo -o votes.csv"),
    "output-not-folder (address)": _run("demo -o postgresql://me@h/d"),
    "folder-not-found": _run("audit votes.csv -o /nowhere/out.html"),
    "no-permission": _no_permission,
    "report-needs-category": _run("audit votes.csv --multilabel ; -o out.html"),
    "invalid-category": _run("audit votes.csv --category a"),
    "invalid-map (pair)": _run("score votes.csv --map =b"),
    "invalid-map (twice)": _run("score votes.csv --map a=b,a=c"),
    "invalid-map (file)": _run("score votes.csv --map nowhere.csv"),
    "baseline-later": _run(
        "audit votes.csv -s llm --save old.json --date 2026-11-09",
        "audit votes.csv -s llm --save new.json --date 2026-11-02 --baseline old.json",
    ),
    "baseline-later (today)": _baseline_of_the_future,
    "category-not-found": _run("audit votes.csv --multilabel ; --category z"),
}
