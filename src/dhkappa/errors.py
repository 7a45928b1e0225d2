"""Errors and problems with a code, a message and a hint; helpers to check values, write them, and mask passwords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from numbers import Real
from typing import Any


class DataError(ValueError):
    """Data or an argument that cannot be used.

    ``str(error)`` is the message and the hint. Passwords in them are masked.

    Parameters
    ----------
    message
        What is wrong and where, as a sentence.
    code
        Stable identifier, such as ``"column-not-found"``.
    parameter
        Python name of the parameter at fault, if there is one.
    hint
        What to do. ``$items`` stands for the parameter: ``items=`` in Python, ``--items`` on the command line.
        ``$items=`` stands for the parameter with its value in ``options`` or ``choices``.
    options
        Parameters that avoid the error, with their values as on the command line.
    choices
        Parameters about which the user has to decide: with a value to check, or words in capitals to replace.

    Examples
    --------
    >>> error = DataError("Column 'lable' not found.", code="column-not-found", parameter="label", hint="Pass $label.")
    >>> print(error)
    Column 'lable' not found. Pass label=.
    >>> error.text("--{}".format)
    "Column 'lable' not found. Pass --label."
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "invalid-data",
        parameter: str | None = None,
        hint: str = "",
        options: Mapping[str, str] | None = None,
        choices: Mapping[str, str] | None = None,
    ) -> None:
        self.message, self.code, self.parameter, self.hint = masked(message), code, parameter, masked(hint)
        self.options, self.choices = (
            {name: masked(value) for name, value in (given or {}).items()} for given in (options, choices)
        )
        super().__init__(self.message)

    def text(self, write_parameter: Callable[[str], str] = "{}=".format) -> str:
        """Return message and hint, with parameters written by ``write_parameter``."""
        return said(self.message, self.hint, write_parameter, self.choices | self.options)

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about the data that can make a verdict wrong.

    Attributes
    ----------
    code : stable identifier, such as ``"category-variants"``
    severity : ``"error"`` replaces the verdict, ``"warning"`` stands above it, ``"info"`` is listed with the notes
    message : what was found and where, as a sentence
    examples : up to three values, as text
    fix : what to do; ``$missing`` and ``$missing=`` stand for the parameter, as in ``DataError``
    labelers : the labelers that it concerns; empty if it concerns all of them
    accepted : whether the user has accepted it with ``allow``; it then has no effect on the verdict
    options : parameters that fix it, with their values as on the command line
    choices : parameters about which the user has to decide, as in ``DataError``
    because : the reason in a verdict, as a clause; empty if it follows from the code

    Examples
    --------
    >>> problem = Problem("looks-missing", "warning", "The category '#N/A' looks like a missing value.", ("#N/A",),
    ...                   "Pass $missing=.", options={"missing": "#N/A"})
    >>> problem.text()
    "The category '#N/A' looks like a missing value. Pass missing=['#N/A']."
    """

    code: str
    severity: str
    message: str
    examples: tuple[str, ...] = ()
    fix: str = ""
    labelers: tuple[str, ...] = ()
    accepted: bool = False
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    choices: Mapping[str, str] = field(default_factory=dict, hash=False)
    because: str = ""

    @classmethod
    def of(cls, error: DataError) -> Problem:
        """Return the problem of data that cannot be read or counted."""
        code, message = error.code, error.message
        return cls(code, "error", message, fix=error.hint, options=error.options, choices=error.choices)

    @property
    def names_parameters(self) -> bool:
        """Whether the fix names parameters."""
        return _PARAMETER.search(self.fix) is not None

    def fix_text(self, write_parameter: Callable[[str], str] = "{}=".format) -> str:
        """Return the fix, with parameters written by ``write_parameter``."""
        return said("", self.fix, write_parameter, {"allow": self.code, **self.choices, **self.options})

    def text(self, write_parameter: Callable[[str], str] = "{}=".format) -> str:
        """Return message and fix, with parameters written by ``write_parameter``."""
        return f"{self.message} {self.fix_text(write_parameter)}".strip()

    def labeled_text(self, write_parameter: Callable[[str], str] = "{}=".format) -> str:
        """Return the text after severity and code; of a problem that was accepted, the message only."""
        if self.accepted:
            return f"Accepted {self.severity} [{self.code}]: {self.message}"
        return f"{self.severity.capitalize()} [{self.code}]: {self.text(write_parameter)}"

    def covers(self, note: str, labeler: str) -> bool:
        """Tell whether a note with this code on a labeler says the same."""
        same = self.code == _NOTES_OF_PROBLEMS.get(note, note)
        return same and (not self.labelers or labeler in self.labelers)

    def concerns(self, labeler: str) -> bool:
        """Tell whether the verdict on a labeler depends on the problem."""
        return not self.accepted and (not self.labelers or labeler in self.labelers)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "examples": list(self.examples),
            "fix": self.fix_text(flag),
            "labelers": list(self.labelers),
            "accepted": self.accepted,
            "options": dict(self.options),
        }


_NOTES_OF_PROBLEMS = {"few-items": "too-few-items", "equals-majority": "labels-from-votes"}
_POSITIONAL = {"data": "FILE", "path": "FILE", "pilot": "PILOT", "half_width": "HALF_WIDTH", "slices": "--by"}
_POSITIONAL |= {"reviews": "--merge", "action": "--as"}  # options whose name means something else in Python


def shown_problems(problems: Iterable[Problem]) -> tuple[list[str], list[str]]:
    """Return the texts of problems that are shown first, and of those that are listed with the notes."""
    first, last = [], []
    for problem in problems:
        if problem.severity == "info":
            last.append(problem.text())
        else:
            first.append(problem.labeled_text())
    return first, last


def flag(parameter: str) -> str:
    """Write a Python parameter as the command line calls it."""
    return _POSITIONAL.get(parameter) or f"--{parameter.replace('_', '-')}"


_LISTS = ("allow", "annotators", "categories", "counts", "missing", "normalize", "suggested")
_WORDS = ("allow", "duplicates", "normalize", "weights")  # their values need no quotes
_PARAMETER = re.compile(r"[$]([a-z_]+)(=?)")


def said(
    message: str,
    hint: str,
    write_parameter: Callable[[str], str] = "{}=".format,
    values: Mapping[str, str] | None = None,
) -> str:
    """Return message and hint, with parameters written by ``write_parameter``.

    In the hint, ``$name`` is a parameter, and ``$name=`` a parameter with its value among ``values``.

    Examples
    --------
    >>> hint, values = "Pass $missing= or $normalize=.", {"missing": "-,?", "normalize": "case"}
    >>> said("", hint, values=values), said("", hint, flag, values)
    ("Pass missing=['-', '?'] or normalize=['case'].", 'Pass --missing "-,?" or --normalize case.')
    """

    def write(found: re.Match[str]) -> str:
        name, written = found[1], write_parameter(found[1])
        value = (values or {}).get(name) if found[2] else None
        if value is None:
            return written
        if not written.endswith("="):
            mark = "" if name in _WORDS else "'" if '"' in value else '"'
            return f"{written} {mark}{value}{mark}"
        several = []
        if name in (*_LISTS, "map"):
            import csv  # takes time

            several = next(csv.reader([value]), [])
        if name == "map":
            return f"{written}{dict(one.split('=', 1) for one in several)}"
        return f"{written}{several if name in _LISTS else (value or None)!r}"  # an option without a value is None

    return f"{message} {_PARAMETER.sub(write, hint)}".strip()


def one_labeler(name: Any, known: Sequence[str], parameter: str = "suggested") -> str:
    """Return the labeler with this name, or the only one; refuse other names."""
    if name is None and len(known) > 1:
        hint = f"Choose one with ${parameter}, such as {known[0]!r}."
        message = f"There are {len(known)} labelers: {shown(known, 10)}."
        raise invalid(parameter, message, code="several-labelers", hint=hint)
    if isinstance(name, str) and name not in known:  # the column suggested_llm is of the labeler llm
        name = next((one for one in (name.removeprefix("suggested_"), f"suggested_{name}") if one in known), name)
    if name is not None and name not in known:
        message = f"Labeler {shown([name])} not found. Labelers: {shown(known, 10)}.{did_you_mean(name, known)}"
        raise invalid(parameter, message, code="labeler-not-found")
    return known[0] if name is None else name


def category_not_found(category: Any, known: Sequence[Any], parameter: str) -> DataError:
    """Return the error for a name that is no category."""
    near = did_you_mean(category, map(str, known))
    message = f"Category {shown([category])} not found. Categories: {shown(known, 10)}.{near}"
    return invalid(parameter, message, code="category-not-found")


def invalid(parameter: str, message: str, *, code: str | None = None, **more: Any) -> DataError:
    """Return the error for an argument that cannot be used; its code is ``invalid-`` and the parameter by default."""
    return DataError(message, code=code or f"invalid-{parameter.replace('_', '-')}", parameter=parameter, **more)


def is_real(value: Any) -> bool:
    """Tell whether a value is a real number; numpy registers timedelta64 as one, too."""
    return isinstance(value, Real) and type(value).__name__ != "timedelta64"


class OutOfMemoryError(DataError, MemoryError):
    """Data that does not fit into memory."""


_LONGEST = 10_000  # characters of a value that are considered
_USER = r"""[^:/\s'"]{0,100}"""
_SLASHES = r"(?:[:;][/\\]+|[/\\]{2,})"
_SECRETS = (  # every repetition is bounded, so that matching takes linear time
    re.compile(rf"""((?:(?<=\w\w){_SLASHES}|(?:postgres|postgresql|jdbc|mysql)[:;/\\]+){_USER}):\S{{0,300}}@"""),
    # In quotes, a password may contain a space.
    re.compile(rf"""(['"](?:[^'"]{{0,50}}\w\w{_SLASHES})?[^:/\\\s'"]{{1,100}}):(?![/\\])[^'"\n]{{0,300}}@"""),
    re.compile(
        r"""([a-z]{0,20}(?:password|passwd|pwd|token)(?:\s{0,9}(?:=|%3D)\s{0,9}|'\s{0,9}:\s{0,9}(?=')))"""
        r"""(?:'[^']{0,300}'|"[^"]{0,300}"|\{[^}]{0,300}\}|(?:\\.|[^\s'"&]){1,300})""",
        re.IGNORECASE,
    ),
)


def masked(text: str) -> str:
    """Replace passwords in database addresses, also in mistyped ones."""
    address, quoted, word = _SECRETS
    if "@" in text:
        text = quoted.sub(r"\1:***@", address.sub(r"\1:***@", text))
    return word.sub(r"\1***", text)


def shown(values: Iterable[Any], limit: int = 5) -> str:
    """Format up to ``limit`` values, followed by ``...`` if there are more."""
    first = [_repr(value) for value in islice(values, limit + 1)]
    if len(first) > limit:
        first[limit:] = ["..."]
    return ", ".join(text if len(text) <= 60 else text[:57] + "..." for text in first)


def _repr(value: Any) -> str:
    try:
        text = masked((str if isinstance(value, date) else repr)(value)[:_LONGEST])
    except Exception:  # a broken __repr__ must not hide the message
        return f"a value of type {type(value).__name__} that cannot be shown"
    return " ".join(text.split()) if "\n" in text else text  # arrays and tables span several lines


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: ``1 item``, ``2,000 items``."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun[:-2] + "a" if noun.endswith("um") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def comma_separated(values: Iterable[Any]) -> str:
    """Write values as one argument of the command line."""
    return ",".join(
        '"{}"'.format(text.replace('"', '""')) if text.startswith('"') or {*text} & {*",\n\r"} else text
        for text in map(str, values)
    )


def nearest(given: object, known: Iterable[str]) -> str | None:
    """Return the most similar known name; None if none is similar. Other numbers are other names: a186 and a286."""
    if not isinstance(given, str):
        return None
    import difflib  # takes time

    own = _numbers(given)
    by_case = {
        name.casefold(): name for name in known if isinstance(name, str) and (not own or _numbers(name) in ([], own))
    }
    close = difflib.get_close_matches(given.casefold(), by_case, 1)
    close = close or [name for name in by_case if given and given.casefold() in name][:1]
    return by_case[close[0]] if close else None


def _numbers(name: str) -> list[str]:
    """Return the numbers in a name, without leading zeros."""
    return [digits.lstrip("0") for digits in re.findall(r"\d+", name)]


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return `` Did you mean ...?`` for the most similar known name, or an empty string."""
    name = nearest(given, known)
    return "" if name is None else f" Did you mean {name!r}?"


def visible(text: str) -> str:
    """Escape line breaks, control characters and other non-printable characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
