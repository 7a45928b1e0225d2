"""The command to run after ``dhkappa check``, with the options that fix the problems that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

import dhkappa
from dhkappa.cli.options import Input
from dhkappa.cli.output import command_line
from dhkappa.errors import DataError, Problem

_REPLACED = {"annotators", "counts", "suggested"}  # the new value replaces what was given
_MOST_FIXES = 6  # each is tried, which reads the data again


@dataclass(frozen=True, slots=True)
class NextStep:
    """The command to run next.

    Attributes
    ----------
    command : the command, for a shell
    fixed : the codes of the problems that its options fix
    undecided : the codes of problems with an option that only the user can choose
    errors : the codes of errors that are left
    open : the codes of those for which the command has an option with words to replace, in capitals
    """

    command: str
    fixed: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The line above the command."""
        fixing = f"Its options fix {_joined(self.fixed)}." if self.fixed else ""
        if self.open:
            return f"To fix {_joined(self.open)}, replace the words in capitals and run this. {fixing}".strip()
        if self.errors:
            return f"After fixing {_joined(self.errors)}, run this. {fixing}".strip()
        return f"Next, run this. {fixing}" if self.fixed else "Next, run:"

    @property
    def remark(self) -> str:
        """The line below the command; may be empty."""
        if not self.undecided:
            return ""
        them = "it" if len(self.undecided) == 1 else "them"
        return f"Nothing was added for {_joined(self.undecided)}: decide about {them} first, as the text above says."


def next_step(context: click.Context, found: dhkappa.Check) -> NextStep:
    """Return the audit of the data of a check, with the options that fix its problems; a check if there are new errors.

    The options of a problem are kept if it is not found any more with them and there are no other errors.
    """
    given, check, fixed = dict(context.params), found, []
    tried: list[tuple[str, Mapping[str, str]]] = []
    while len(tried) < _MOST_FIXES:
        todo = [
            one for one in check.problems if one.options and not one.accepted and (one.code, one.options) not in tried
        ]
        if not todo:
            break
        tried.append((todo[0].code, todo[0].options))
        changed = _with_options(given, todo[0].options)
        try:
            after = Input(changed).check()
        except DataError:
            continue
        if _solves(todo[0], check, after):
            given, check = changed, after
            fixed.append(todo[0].code)
    shown = {one.code for one in found.problems}
    open_ = [one for one in check.problems if not one.accepted]
    hidden = [one for one in open_ if one.code not in shown and not one.choices]
    if any(one.severity == "error" for one in hidden):  # the next check shows them
        return NextStep(command_line("check", context, given), tuple(dict.fromkeys(fixed)))
    open_ = [one for one in open_ if one not in hidden]
    errors = [one for one in open_ if one.severity == "error"]
    asked = [one.code for one in errors if one.choices]
    for problem in errors:
        given = _with_options(given, problem.choices)
    undecided = [one.code for one in open_ if one.names_parameters and one.severity != "info" and one.code not in asked]
    codes = (tuple(dict.fromkeys(one)) for one in (fixed, undecided, [one.code for one in errors], asked))
    return NextStep(command_line("audit", context, given), *codes)


def _with_options(given: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters of a command with some options added."""
    changed = dict(given)
    for name, value in options.items():
        if name == "path":
            changed["files"] = (value,)
            continue
        if name == "counts":  # the columns are not annotators
            changed["annotators"] = ()
        several = isinstance(changed[name], tuple)
        kept = () if name in _REPLACED else changed[name]
        changed[name] = (*kept, value) if several else value
    return changed


def _solves(problem: Problem, before: dhkappa.Check, after: dhkappa.Check) -> bool:
    """Tell whether a problem is gone. Errors that could not be seen while the data could not be counted are not new."""
    if any(one.code == problem.code and one.labelers == problem.labelers for one in after.problems):
        return False
    unread, known = before.n_items is None, {one.code for one in before.problems}
    new = [one for one in after.problems if one.severity == "error" and one.code not in known]
    if unread and after.n_items is not None:
        return True
    return all(one.options or one.choices or (unread and one.names_parameters) for one in new)


def _joined(codes: Sequence[str]) -> str:
    return codes[0] if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]}"
