"""The dice of a fuzzer: choices read off bytes, and all that may stand where a label or an argument should.

Hypothesis draws the bytes, and atheris makes them up.
"""

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
    ask : the public call, or "command"
    words : its arguments by name; of a command, ``args``
    files : what lies in the folder before it is asked, by name
    then : what the answer is asked in turn, with arguments
    votes, labels : what the data hold, a list an item, where an answer must agree with them
    missing : labels that mean missing
    sound : whether nothing is wrong with it, so that it must be answered
    """

    ask: str
    words: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)
    then: tuple[str, Mapping[str, Any]] | None = None
    votes: Sequence[Sequence[Any]] | None = None
    labels: Sequence[Any] | None = None
    missing: Sequence[Any] = ()
    sound: bool = False


class Dice:
    """Choices, read off bytes; when they end, each is the first."""

    def __init__(self, held: bytes) -> None:
        self._left = iter(held)

    def upto(self, last: int) -> int:
        """Choose a number from 0."""
        size = last + 1
        chosen = next(self._left, 0)
        if size > 256:
            chosen = chosen * 256 + next(self._left, 0)
        return chosen % size

    def of(self, choices: Sequence[Any]) -> Any:
        """Choose one of several."""
        return choices[self.upto(len(choices) - 1)]

    def seldom(self, times: int = 2) -> bool:
        """Say yes, once in so many times."""
        return self.upto(times - 1) == times - 1

    def some(self, choices: Sequence[Any], least: int, most: int) -> list[Any]:
        """Choose several, also one twice."""
        return [self.of(choices) for _ in range(least + self.upto(most - least))]

    def each(self, choices: Sequence[Any], number: int) -> list[Any]:
        """Choose so many."""
        return [self.of(choices) for _ in range(number)]


class Rude:
    """What cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("rude")

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "Rude()"


PLAIN_TEXTS = ("a", "b", "ham", "spam", "c10", "c9")
TEXTS = (
    *(
        "nan",
        "NA",
        "None",
        "1",
        "01",
        "1.0",
        "True",
        " ",
        "a ",
        "A",
        "ß",
        "e\u0301",
        "\u00e9",
        "👩‍🔬",
        "\u202eabc",
        "\ufeffa",
    ),
    *(
        "a\0b",
        "one\ntwo",
        "\r",
        "'; DROP TABLE x; --",
        '"',
        "a,b",
        "\t",
        "%s",
        "{}",
        "=1+1",
        "-",
        "x" * 300,
        "[red]x[/red]",
    ),
    *(
        "\\",
        "suggested",
        "dhkappa: order of rows",
        "<script>",
        "\x1b[31m",
        "2020-01-01",
        "null",
        "\U0010ffff",
        "\u0131",
    ),
)
NUMBERS = (
    *(
        0,
        1,
        2,
        3,
        -1,
        255,
        256,
        2**31,
        2**53,
        2**53 + 1,
        2**63 - 1,
        2**63,
        2**64,
        -(2**63),
        -(2**63) - 1,
        10**40,
        10**5000,
    ),
    *(0.0, -0.0, 1.0, 2.0, 1.5, 1e16, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324),
)
ODD = (
    *(
        None,
        True,
        False,
        "",
        "\ud800",
        np.int8(1),
        np.uint64(2**64 - 1),
        np.float16(1),
        np.float64("nan"),
        np.bool_(True),
    ),
    *(np.str_("a"), np.datetime64("NaT"), np.datetime64("2020"), np.timedelta64(1, "s"), Decimal(1), Decimal("NaN")),
    *(Decimal("sNaN"), Fraction(1, 2), 1j, b"a", date(2020, 1, 1), Animal.CAT, Colour.RED, Grade.LOW, object, Ellipsis),
    *(
        pd.NA,
        pd.NaT,
        pd.Timestamp(0),
        (),
        frozenset({1}),
        range(3),
        Path("x"),
        Rude(),
        len,
        np.ma.masked,
        np.longdouble(1),
    ),
)
MADE: tuple[Callable[[], Any], ...] = (
    *(
        list,
        dict,
        set,
        bytearray,
        lambda: [1],
        lambda: {"a": 1},
        lambda: {1: {2}},
        lambda: [[]],
        lambda: [None, [None]],
    ),
    *(
        lambda: np.zeros(2),
        lambda: np.array(1),
        lambda: np.zeros((2, 2, 2)),
        lambda: np.array([b"a"]),
        lambda: iter([1]),
    ),
    *(
        lambda: np.zeros((2, 2), [("x", int)]),
        lambda: np.ma.array([[1, 2]], mask=[[False, True]]),
        lambda: pd.Series(["a", None]),
    ),
    *(
        lambda: pd.DataFrame({"a": [1]}),
        lambda: pa.table({"a": [1]}),
        lambda: pd.Index(["a"]),
        lambda: memoryview(b"ab"),
    ),
    *(
        lambda: np.array([["a"]], "T"),
        lambda: np.array([[1j]]),
        lambda: dhkappa.Tally(),
        lambda: dhkappa.Tally(["a", "b"]),
    ),
    *(lambda: np.empty((0, 3)), lambda: np.array([[None, "a"], ["a", "a"]], object), lambda: np.zeros((2, 2), "M8[s]")),
)

LABELS = (*PLAIN_TEXTS, *TEXTS, 0, 1, 2, 300, True, False)
CHARACTERS = (
    "aB1 .-_*?[]{}()'\"`\\/,;:=+%$#@!&|<>^~\t\n\x1b\x7f\u00df\u0131\u0301\u200b\u202e\ufeff\U0001f469\U0010ffff"
)


def value(dice: Dice) -> Any:
    """Anything that may stand where a label should."""
    kind = dice.upto(5)
    if kind == 4:
        return dice.of(MADE)()
    if kind == 5:
        return "".join(dice.some(CHARACTERS, 0, 4))
    return dice.of((LABELS, NUMBERS, ODD, LABELS)[kind])


def junk(dice: Dice) -> Any:
    """Anything at all."""
    kind = dice.upto(5)
    if kind == 4:
        return [value(dice) for _ in range(dice.upto(3))]
    return {dice.of(TEXTS): value(dice)} if kind == 5 else value(dice)


def rows(dice: Dice, known: Sequence[Any], n: int) -> list[list[Any]]:
    """Votes of n items for some labels, ragged, with gaps."""
    wide = dice.upto(4)
    return [dice.some([*known, *known, None], 0, wide) for _ in range(n)]
