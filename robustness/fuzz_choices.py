"""Choices read from the bytes of a fuzzer, and the values that an input can contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import dhkappa
from strategies import Animal, Colour, Grade


@dataclass(frozen=True)
class Input:
    """One input.

    Attributes
    ----------
    call : name of the public function, "load" for a tally file, or "command"
    arguments : its arguments by name; ``args`` of a command
    files : content of the files in the working folder, by name
    method : a method of the result to call afterwards, and its arguments
    votes, labels : the data as lists, if the result must agree with them
    missing : labels that mean missing
    valid : whether the input must be accepted
    """

    call: str
    arguments: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)
    method: tuple[str, Mapping[str, Any]] | None = None
    votes: Sequence[Sequence[Any]] | None = None
    labels: Sequence[Any] | None = None
    missing: Sequence[Any] = ()
    valid: bool = False


class Choices:
    """Choices read from bytes; after the last byte, every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def upto(self, last: int) -> int:
        """Choose a number from 0 to ``last``."""
        size = last + 1
        chosen = next(self._left, 0)
        if size > 256:
            chosen = chosen * 256 + next(self._left, 0)
        return chosen % size

    def of(self, choices: Sequence[Any]) -> Any:
        """Choose one."""
        return choices[self.upto(len(choices) - 1)]

    def one_in(self, times: int = 2) -> bool:
        """Return True once in so many times."""
        return self.upto(times - 1) == times - 1

    def some(self, choices: Sequence[Any], least: int, most: int) -> list[Any]:
        """Choose several, with repetition."""
        return self.each(choices, least + self.upto(most - least))

    def each(self, choices: Sequence[Any], number: int) -> list[Any]:
        """Choose so many, with repetition."""
        return [self.of(choices) for _ in range(number)]


class Incomparable:
    """A value whose comparison fails."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("incomparable")

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "Incomparable()"


# fmt: off
PLAIN_TEXTS = ("a", "b", "ham", "spam", "c10", "c9")
TEXTS = (
    "nan", "NA", "None", "1", "01", "1.0", "True", " ", "a ", "A", "ß", "e\u0301", "\u00e9", "👩‍🔬", "\u202eabc",
    "\ufeffa", "a\0b", "one\ntwo", "\r", "'; DROP TABLE x; --", '"', "a,b", "\t", "%s", "{}", "=1+1", "-", "x" * 300,
    "[red]x[/red]",
    "\\", "suggested", "dhkappa: order of rows", "<script>", "\x1b[31m", "2020-01-01", "null", "\U0010ffff", "\u0131",
)
NUMBERS = (
    0, 1, 2, 3, -1, 255, 256, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**40,
    10**5000, 0.0, -0.0, 1.0, 2.0, 1.5, 1e16, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324,
)
OTHERS = (
    None, True, False, "", "\ud800", np.int8(1), np.uint64(2**64 - 1), np.float16(1), np.float64("nan"), np.bool_(True),
    np.str_("a"), np.datetime64("NaT"), np.datetime64("2020"), np.timedelta64(1, "s"), Decimal(1), Decimal("NaN"),
    Decimal("sNaN"), Fraction(1, 2), 1j, b"a", date(2020, 1, 1), Animal.CAT, Colour.RED, Grade.LOW, object, Ellipsis,
    pd.NA, pd.NaT, pd.Timestamp(0), (), frozenset({1}), range(3), Path("x"), Incomparable(), len, np.ma.masked,
    np.longdouble(1),
)
CONTAINERS: tuple[Callable[[], Any], ...] = (
    list, dict, set, bytearray, lambda: [1], lambda: {"a": 1}, lambda: {1: {2}}, lambda: [[]], lambda: [None, [None]],
    lambda: np.zeros(2), lambda: np.array(1), lambda: np.zeros((2, 2, 2)), lambda: np.array([b"a"]), lambda: iter([1]),
    lambda: np.zeros((2, 2), [("x", int)]), lambda: np.ma.array([[1, 2]], mask=[[False, True]]),
    lambda: pd.Series(["a", None]), lambda: pd.DataFrame({"a": [1]}), lambda: pa.table({"a": [1]}),
    lambda: pd.Index(["a"]), lambda: memoryview(b"ab"), lambda: np.array([["a"]], "T"), lambda: np.array([[1j]]),
    lambda: dhkappa.Tally(), lambda: dhkappa.Tally(["a", "b"]), lambda: np.empty((0, 3)),
    lambda: np.array([[None, "a"], ["a", "a"]], object), lambda: np.zeros((2, 2), "M8[s]"),
)
# fmt: on
LABELS = (*PLAIN_TEXTS, *TEXTS, 0, 1, 2, 300, True, False)
CHARACTERS = (
    "aB1 .-_*?[]{}()'\"`\\/,;:=+%$#@!&|<>^~\t\n\x1b\x7f\u00df\u0131\u0301\u200b\u202e\ufeff\U0001f469\U0010ffff"
)


def label(choices: Choices) -> Any:
    """Choose a value in place of a label."""
    kind = choices.upto(5)
    if kind == 4:
        return choices.of(CONTAINERS)()
    if kind == 5:
        return "".join(choices.some(CHARACTERS, 0, 4))
    return choices.of((LABELS, NUMBERS, OTHERS, LABELS)[kind])


def anything(choices: Choices) -> Any:
    """Choose a value in place of an argument."""
    kind = choices.upto(5)
    if kind == 4:
        return [label(choices) for _ in range(choices.upto(3))]
    return {choices.of(TEXTS): label(choices)} if kind == 5 else label(choices)


def arguments(choices: Choices, options: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Choose some of the options, each with one of its values, or with anything."""
    chosen = dict.fromkeys(choices.some(sorted(options), 0, 3)) if options else {}
    invalid = choices.one_in(4)
    return {name: anything(choices) if invalid else choices.of(options[name]) for name in chosen}


def ragged_votes(choices: Choices, labels: Sequence[Any], n: int) -> list[list[Any]]:
    """Choose votes on n items, of varying number, some missing."""
    most = choices.upto(4)
    return [choices.some([*labels, *labels, None], 0, most) for _ in range(n)]
