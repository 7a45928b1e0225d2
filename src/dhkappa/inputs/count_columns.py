"""Columns that hold numbers of votes: found although they may be taken for annotators, and converted."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Floats
from dhkappa.core.grouping import MAX_VOTES
from dhkappa.errors import DataError, shown
from dhkappa.inputs.backends import Frame

_ROWS = 2_000  # that are looked at
_MOST_COLUMNS = 50
_WHOLE = re.compile(r"[0-9]{1,9}(\.0*)?")
_FEW_ROWS, _SOME_ROWS = 8, 10  # with column names that are labels, and without
_SPREAD = 0.2  # variance of row sums, over that of independent columns
_EQUAL = 0.6  # share of rows with the most frequent sum
_NEARLY = 0.95  # share of rows with a sum in another column
_VARIES = 0.99  # of the entropy of sums without a column


def find_count_columns(frame: Frame, columns: Sequence[str], suggested: Sequence[str] = ()) -> list[str]:
    """Return those of some columns that hold numbers of votes, going by their first rows; empty if they do not.

    ``suggested`` are columns of the same table with suggested labels. Columns that are named like these are preferred.
    """
    with suppress(DataError):
        rows = _first_rows(frame, [*columns[:_MOST_COLUMNS], *suggested])
        numbers = {
            name: np.array([_number(cell) for cell in rows[name]])
            for name in columns[:_MOST_COLUMNS]
            if _are_whole(rows[name])
        }
        labels = {str(label) for name in suggested for label in rows[name] if label not in (None, "")}
        named = _named_like(labels, [*numbers])
        numbers = _without_totals(numbers, named)
        named = [name for name in named if name in numbers]
        if len(named) > 1 and are_counts(np.array([numbers[name] for name in named]).T, named, labels):
            return [name for name in numbers if name in _with_others(numbers, named)]
        names = [*numbers]
        if are_counts(np.array([numbers[name] for name in names]).T, names, labels):
            return names
    return []


def _named_like(labels: Collection[str], columns: Sequence[str]) -> list[str]:
    """Return columns that are called like all labels, after a common prefix up to a separator; none if some is not."""
    ends = {name[: -len(label)] for name in columns for label in labels if name.endswith(label)}
    for prefix in sorted(ends, key=len):
        if {prefix + label for label in labels} <= {*columns} and not prefix[-1:].isalnum():
            return [name for name in columns if name.removeprefix(prefix) in labels and name.startswith(prefix)]
    return []


def _without_totals(numbers: dict[str, npt.NDArray[Any]], named: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Leave out a column that is the sum of the others, or of those that are named like labels."""
    for name, values in numbers.items():
        for parts in (numbers, named):
            others = [numbers[other] for other in parts if other != name]
            if name not in named and len(others) > 1 and _equals(values, sum(others)):
                return {other: own for other, own in numbers.items() if other != name}
    return numbers


def _equals(values: npt.NDArray[Any], total: Any) -> bool:
    used = (values > 0) | (total > 0)
    return bool(used.sum() >= _FEW_ROWS and (values == total)[used].mean() >= _NEARLY)


def _entropy(values: npt.NDArray[Any]) -> float:
    """Return how much values vary, also if they are of a few very different kinds."""
    shares = np.unique(values, return_counts=True)[1] / max(len(values), 1)
    return float(-(shares * np.log(shares)).sum())


def _with_others(numbers: dict[str, npt.NDArray[Any]], named: Sequence[str]) -> list[str]:
    """Add columns of categories that are never suggested: with them, the sums of rows vary less."""
    found, total = [*named], np.sum([numbers[name] for name in named], axis=0)
    for name, values in numbers.items():
        if name not in found and values.max(initial=0) > 0 and not values.min(initial=0):
            more = total + values
            if _entropy(more) < _VARIES * _entropy(total):
                found, total = [*found, name], more
    return found


def _first_rows(frame: Frame, columns: Sequence[str]) -> dict[str, list[Any]]:
    roles = {f"column_{place}": name for place, name in enumerate(columns)}
    rows = frame.fetch(frame.pick(roles)[0].head(_ROWS))
    return {name: rows[role] for role, name in roles.items()}


def _are_whole(cells: Sequence[Any]) -> bool:
    """Tell whether all cells are whole numbers of 0 or more, or missing."""
    given = [str(cell).strip() for cell in cells if cell is not None and cell != ""]
    return bool(given) and all(map(_WHOLE.fullmatch, given))


def _number(cell: Any) -> float:
    return 0.0 if cell is None or cell == "" else float(cell)


def are_counts(values: Floats, names: Sequence[str], labels: Collection[str]) -> bool:
    """Tell whether (n, k) whole numbers are numbers of votes: rows add up to nearly the same number, and 0 occurs.

    The sum of votes of independent annotators has the variances of their votes added up, and more if they agree; that
    of numbers of votes has nearly none. Column names that are labels, after a common prefix, are evidence, too.
    """
    if values.ndim < 2 or values.shape[1] < 2:
        return False
    values = values[values.sum(axis=1) > 0]
    if not len(values) or values.min() > 0 or values.max() < 2:
        return False
    total, apart = values.sum(axis=1), float(values.var(axis=0).sum())
    spread = float(total.var()) / apart if apart else 1.0
    called = len(labels) > 1 and {*labels} <= {*without_prefix(names)}
    if len(values) >= _FEW_ROWS and called and not any(map(str.isdecimal, labels)):
        return True  # words are no votes of annotators who vote with numbers; votes per item may vary
    if len(values) < _FEW_ROWS or spread >= _SPREAD:
        return False
    if called:
        return True
    most = np.unique(total, return_counts=True)[1].max()
    return len(values) >= _SOME_ROWS and bool(most >= _EQUAL * len(values))


def without_prefix(names: Sequence[str]) -> list[str]:
    """Return column names without the beginning up to a separator that all share, such as ``votes_``."""
    starts = [{name[: end.end()] for end in re.finditer("[^0-9A-Za-z]", name)} for name in names]
    cut = max(map(len, set.intersection(*starts)), default=0) if starts else 0
    return [name[cut:] for name in names]


def whole_counts(values: Sequence[Any], name: str, parameter: str) -> list[int]:
    """Convert numbers of votes, also from text."""
    found = []
    for value in values:
        try:
            number = int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value
            if isinstance(number, bool) or number != int(number) or not 0 <= number <= MAX_VOTES:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            missing = value is None or value == ""
            message = f"Column {name} must hold numbers of votes from 0 to {MAX_VOTES:,}: got "
            message += "a missing value." if missing else f"{shown([value])}."
            hint = "Write 0 if there are no votes." if missing else ""
            raise DataError(message, code="invalid-count", parameter=parameter, hint=hint) from None
        found.append(int(number))
    return found
