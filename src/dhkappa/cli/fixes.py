"""The command to run after ``dhkappa check``, with the options that fix the problems that were found."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

import dhkappa
from dhkappa.cli.options import Input, masked_argument
from dhkappa.errors import DataError, Problem, flag

_SAFE = {
    "annotators",
    "categories",
    "counts",
    "items",
    "map",
    "missing",
    "multilabel",
    "normalize",
    "suggested",
    "weights",
}
_REPLACED = {"annotators", "counts", "suggested"}  # the new value replaces what was given
_MOST_FIXES = 6  # each is tried, which reads the data again
# An option and its value in a fix: in quotes at the end of the sentence, or as one word.
_OPTION = re.compile(r"[$]([a-z_]+) (?:([\"'])(.*)\2[.]$|([^\s\"'.]+))", re.DOTALL)
_EXAMPLE = re.compile(r"[$](items|suggested), such as ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?! [(]or)")
_CANDIDATES = re.compile(r"^Pass [$]annotators [(].*: (?=[$]annotators )", re.DOTALL)  # what comes before them
_FILES = re.compile(r"^Pass ('(?:[^'\\]|\\.)*'), and the table of items with ")
_COLUMN = re.compile(r"^Column ('(?:[^'\\]|\\.)*') not found")
_NEAR = re.compile(r"Did you mean ('(?:[^'\\]|\\.)*')[?]")
_PATTERN = re.compile(r"^Pass a pattern, such as ('(?:[^'\\]|\\.)*')[.]")


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
    """Return the audit of the data of a check, with the options that fix its problems.

    An option is taken from the text of a fix, and kept if the problem is not found any more with it and there are no
    other errors.
    """
    given, check, fixed, tried = dict(context.params), found, [], set[tuple[str, str]]()
    while len(tried) < _MOST_FIXES:
        todo = [one for one in check.problems if _changed(one, given) and (one.code, one.fix) not in tried]
        if not todo:
            break
        tried.add((todo[0].code, todo[0].fix))
        changed = _changed(todo[0], given) or given
        try:
            after = Input(changed).check()
        except DataError:
            continue
        if _solves(todo[0], check, after, changed):
            given, check = changed, after
            fixed.append(todo[0].code)
    open_ = [one for one in check.problems if not one.accepted]
    undecided = [one.code for one in open_ if "$" in one.fix and one.severity != "info"]
    errors = [one.code for one in open_ if one.severity == "error"]
    asked: list[str] = []
    for problem in open_:
        if problem.severity == "error" and (filled := _with_placeholder(problem, given)):
            given = filled
            asked.append(problem.code)
    undecided = [code for code in undecided if code not in asked]
    codes = (tuple(dict.fromkeys(one)) for one in (fixed, undecided, errors, asked))
    return NextStep(command_line("audit", context, given), *codes)


def _changed(problem: Problem, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters of the command that fix a problem; None if the user must decide."""
    wrong, near = _COLUMN.search(problem.message), _NEAR.search(problem.fix)
    if problem.code == "column-not-found" and wrong and near:
        return _with_column(given, *(ast.literal_eval(found[1]) for found in (wrong, near)))
    if problem.code == "path-is-folder" and (pattern := _PATTERN.search(problem.fix)):
        return {**given, "files": (ast.literal_eval(pattern[1]),)}
    if options := _options(problem):
        files = _FILES.search(problem.fix)
        changed = _with_options(given, options)
        return changed | {"files": (ast.literal_eval(files[1]),)} if files else changed
    return None


def _with_placeholder(problem: Problem, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters with the option that an error asks for, and words in capitals for its value; else None."""
    if problem.code == "format-unknown":
        long = "which column of" in problem.message
        return {**given, "label": "COLUMN"} if long else {**given, "annotators": ("COLUMN,COLUMN",)}
    if problem.code == "column-not-found" and (wrong := _COLUMN.search(problem.message)):
        return _with_column(given, ast.literal_eval(wrong[1]), "COLUMN")
    if problem.code == "duplicate-votes":  # which vote to drop is for the user to say
        return {**given, "duplicates": "FIRST-OR-LAST"}
    if problem.code == "path-is-folder":
        return {**given, "files": ("FILE",)}
    if problem.code == "columns-differ" and "$items" in problem.fix:
        return {**given, "files": ("VOTES",), "items": "ITEMS"}
    return None


def _with_column(given: Mapping[str, Any], wrong: str, right: str) -> dict[str, Any] | None:
    """Return parameters with another name of a column; None if none has the wrong one."""

    def renamed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(renamed, value))
        names = value.split(",") if isinstance(value, str) else []
        return ",".join(right if name == wrong else name for name in names) if wrong in names else value

    changed = {name: value if name == "files" else renamed(value) for name, value in given.items()}
    return changed if changed != dict(given) else None


def _options(problem: Problem) -> list[tuple[str, str]]:
    """Return the options of a fix with their values; none if the user must decide."""
    fix = problem.fix
    if problem.accepted or fix.startswith(("If so", "If its labels", "If the categories")):
        return []
    found = [(name, quoted or word) for name, _, quoted, word in _OPTION.findall(_CANDIDATES.sub("", fix))]
    examples = [(name, ast.literal_eval(text)) for name, text in _EXAMPLE.findall(fix)]
    found += examples if len(examples) == 1 else []
    return found if found and all(name in _SAFE for name, _ in found) else []


def _with_options(given: Mapping[str, Any], options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return parameters of a command with some options added."""
    changed = dict(given)
    for name, value in options:
        if name == "counts":  # the columns are not annotators
            changed["annotators"] = ()
        several = isinstance(changed[name], tuple)
        kept = () if name in _REPLACED else changed[name]
        changed[name] = (*kept, value) if several else value
    return changed


def _solves(problem: Problem, before: dhkappa.Check, after: dhkappa.Check, given: Mapping[str, Any]) -> bool:
    """Tell whether a problem is gone. Errors that could not be seen while the data could not be counted are not new."""
    if any(one.code == problem.code and one.labelers == problem.labelers for one in after.problems):
        return False
    known = {one.code for one in before.problems}
    new = [one for one in after.problems if one.severity == "error" and one.code not in known]
    if before.n_items is None and after.n_items is not None:
        return True
    return all(_changed(one, given) or _with_placeholder(one, given) for one in new)


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


def _joined(codes: Sequence[str]) -> str:
    return codes[0] if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]}"
