"""What commands print: results as JSON, problems on standard error, and other commands to run."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

import dhkappa
from dhkappa.errors import DataError, Problem, flag, invalid, masked, one_labeler, visible

if TYPE_CHECKING:
    from dhkappa.stats.gate import Gate
    from dhkappa.stats.result import Kappa

JSON_VERSION = 2  # changes if a key is removed or changes its meaning


def json_text(command: str, result: Mapping[str, Any], gate: Gate | None = None) -> str:
    """Return a result as JSON, with what made it."""
    import json  # takes time

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
    """Raise the error for a problem because of which nothing is written."""
    hint = problem.fix_text(flag)
    hint += "" if "$allow" in problem.fix else f" Or accept it with $allow {problem.code}."
    raise DataError(problem.message, code=problem.code, parameter="data", hint=hint.strip())


def warn(problems: Iterable[Problem]) -> None:
    """Print errors and warnings on standard error, a line each; not those that were accepted."""
    for problem in problems:
        if problem.severity != "info" and not problem.accepted:
            click.echo(visible(masked(problem.labeled_text(flag))), err=True)


def command_line(name: str, context: click.Context, given: Mapping[str, Any]) -> str:
    """Return another command with the files and options of this one, for a shell; passwords are masked."""
    words, files = ["dhkappa", name], [masked_argument(file) for file in given["files"]]
    options: list[str] = []
    for param in context.command.params:
        value = given[param.name or ""]
        if param.name in ("files", "output_format") or value in (None, ()) or value == param.get_default(context):
            continue
        long = flag(param.name or "")
        for one in map(masked_argument, map(str, value if isinstance(value, tuple) else [value])):
            options += [f"{long}={one}"] if one.startswith("-") else [long, one]
    dashed = any(file.startswith("-") for file in files)
    return " ".join(map(quoted, [*words, *options, "--", *files] if dashed else [*words, *files, *options]))


def command_line_typed() -> str:
    """Return the command as it was typed, with passwords masked."""
    return shlex.join(["dhkappa", *map(masked_argument, sys.argv[1:])])


def quoted(word: str) -> str:
    r"""Quote a word for a shell; control characters are escaped as in ``$'a\nb'``."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def masked_argument(argument: str) -> str:
    """Mask the password of an argument that is an address, whatever characters it contains."""
    return masked(re.sub(r"(://[^:/@]*):.*@", r"\1:***@", argument, flags=re.DOTALL))


def file_name(path: str) -> str:
    """Return the name of a file for a title; the last part of an address."""
    return os.path.basename(masked_argument(path).partition("?")[0]) if "://" in path else os.path.basename(path)


def check_items(kappas: Mapping[str, Kappa], files: Sequence[str]) -> None:
    """Refuse data without items."""
    if not any(kappa.n_items or kappa.excluded.total for kappa in kappas.values()):
        message = f"There are no items in {', '.join(map(file_name, files[:3]))}{', ...' if files[3:] else ''}."
        raise invalid("data", message, code="no-items", hint="A file may have a header, but no rows.")


def naming_audit(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Name dhkappa audit in fixes with --multilabel, for commands that do not have this option."""
    return tuple(replace(one, fix=one.fix.replace("$multilabel", "dhkappa audit $multilabel")) for one in problems)


def only(labelers: Any) -> str:
    """Return the only labeler."""
    return one_labeler(None, list(labelers))
