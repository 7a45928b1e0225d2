"""Journeys: the modules that a call passes, the switches between them, and the queries that an engine runs.

``python benchmarks/journeys.py`` prints the table of docs/design.md. A switch is a function call into another module
than that of the call before.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import dhkappa
from dhkappa.cli.commands import commands
from dhkappa.inputs.tables import VoteTable

ROOT = str(Path(dhkappa.__file__).parent)
FORMULA = ("stats/kappa.py", "dh_parts")


def journey(call: Callable[[], Any], until: tuple[str, str] | None = None) -> tuple[int, int]:
    """Return the number of modules of a second run of a call, and of switches; up to a function, if named."""
    call()
    passed: list[str] = []
    arrived = False

    def record(frame: FrameType, event: str, _: Any) -> None:
        nonlocal arrived
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT) and not arrived:
            passed.append(name.removeprefix(ROOT + "/"))
            arrived = until == (passed[-1], frame.f_code.co_name)

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert arrived or until is None
    return len(set(passed)), sum(one != other for one, other in pairwise(passed))


def queries(call: Callable[[], Any]) -> int:
    """Return how many queries a call runs."""
    number, ask = 0, VoteTable.ask

    def counted(self: VoteTable, query: Any) -> Any:
        nonlocal number
        number += 1
        return ask(self, query)

    VoteTable.ask = counted  # type: ignore[method-assign]
    try:
        call()
    finally:
        VoteTable.ask = ask  # type: ignore[method-assign]
    return number


def main() -> None:
    """Print the journeys as a Markdown table."""
    votes = np.tile([[1, 1, 2], [2, 2, 2], [0, 1, 0], [1, 0, 0]], (25, 1))
    labels = np.tile([1, 2, 0, 0], 25)
    modules, switches = journey(lambda: dhkappa.dh_kappa(votes, labels), FORMULA)
    print("| call | modules | switches | queries |\n|---|---|---|---|")
    print(f"| `dh_kappa(array, labels)`, up to the formula | {modules} | {switches} | |")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        commands.main(["demo", "-o", folder, "--n-items", "100"], standalone_mode=False)
        args = ["audit", f"{folder}/annotations.csv", "--items", f"{folder}/items.csv"]

        def audit() -> None:
            commands.main(args, standalone_mode=False)

        modules, switches = journey(audit)
        asked = queries(audit)
    print(f"| `dhkappa audit annotations.csv --items items.csv` | {modules} | {switches:,} | {asked} |")


if __name__ == "__main__":
    main()
