"""What commands print: results as JSON, and problems on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

import dhkappa
from dhkappa.errors import DataError, Problem, flag, masked, visible

if TYPE_CHECKING:
    from dhkappa.stats.gate import Gate

JSON_VERSION = 2  # changes if a key is removed or changes its meaning


def json_text(command: str, result: Mapping[str, Any], gate: Gate | None = None) -> str:
    """Return a result as JSON, with what made it."""
    whole = {
        "dhkappa": dhkappa.__version__,
        "version": JSON_VERSION,
        "command": command,
        "gate": gate.to_dict() if gate else None,
        "result": result,
    }
    return json.dumps(whole, allow_nan=False, indent=2)


def listed(problems: Iterable[Problem]) -> dict[str, Any]:
    """Return problems as a part of a JSON result."""
    return {"problems": [problem.to_dict() for problem in problems]}


def open_errors(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems of severity error that were not accepted."""
    return [problem for problem in problems if problem.severity == "error" and not problem.accepted]


def refuse(problem: Problem) -> NoReturn:
    """Raise the error for a problem without which nothing can be written."""
    hint = f"{problem.fix_text(flag)} Or accept it with $allow {problem.code}."
    raise DataError(problem.message, code=problem.code, parameter="data", hint=hint.strip())


def warn(problems: Iterable[Problem]) -> None:
    """Print errors and warnings on standard error, a line each; not those that were accepted."""
    for problem in problems:
        if problem.severity != "info" and not problem.accepted:
            click.echo(visible(masked(problem.labeled_text(flag))), err=True)
