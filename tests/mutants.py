"""What the tests that came of mutants share: six items, and what they say."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dhkappa import DataError, Kappa, dh_kappa
from dhkappa.stats.terms import Terms, terms
from strategies import from_counts

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
STRATA = ["x", "x", "x", "y", "y", "y"]
ONE_WEIGHT = "one item outweighs all the others"


def example(**given: Any) -> Kappa:
    return dh_kappa(EXAMPLE.votes, EXAMPLE.suggested, **given)


def refused(message: str, **given: Any) -> None:
    """Expect the whole sentence, word for word."""
    with pytest.raises(DataError) as error:
        example(**given)
    assert str(error.value) == message


def known(kappa: Kappa, exact: bool = True) -> Terms:
    assert kappa.parts is not None
    return terms(kappa.sample, kappa.parts, exact)


def cell(name: str, text: str) -> str:
    return f"<tr><th style='text-align:left'>{name}</th><td>{text}</td></tr>"


def sentence(asked: Callable[..., object], *given: Any, **named: Any) -> str:
    """Return the sentence that a question is refused with."""
    with pytest.raises(DataError) as error:
        asked(*given, **named)
    return str(error.value)
