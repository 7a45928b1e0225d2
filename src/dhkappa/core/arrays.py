"""What a person passes as votes, suggested labels and counts, checked and encoded."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import Encoded, Integers, Label, declare, encode, is_real, no_lookalikes
from dhkappa.core.patterns import MOST_VOTES
from dhkappa.errors import DataError, counted, shown


def rows_of(votes: Any) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Read votes as an (n, N) array, or as a flat array and n lengths where lists differ in length."""
    if not isinstance(votes, (list, tuple)):
        array = _array_of(votes, "votes")
        if array.ndim == 2:
            return array
        if array.ndim != 1 or array.dtype != object:
            raise DataError(
                f"votes must be 2-D, items by annotators: got {array.ndim}-D with shape {array.shape}. "
                "One list of votes for each item, please."
            )
        votes = array.tolist()
    rows = [list(row) if isinstance(row, np.ndarray) and row.ndim == 1 else row for row in votes]
    for index, row in enumerate(rows):
        if not isinstance(row, (list, tuple)):
            raise DataError(
                f"votes must be 2-D, items by annotators: item {index} is {shown([row])}, not a list of votes."
            )
    length = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = _flat_array(list(chain.from_iterable(rows)))
    if len(rows) == 0 or (length == length[0]).all():
        return flat.reshape(len(rows), length[0] if len(rows) else 0)
    return flat, length


def _array_of(values: Any, name: str) -> npt.NDArray[Any]:
    """Read anything that numpy takes as an array of more than one value, without changing its labels."""
    if isinstance(values, np.ndarray):
        return values if hasattr(values, "mask") else np.asarray(values)
    if isinstance(values, (list, tuple)):
        return _flat_array(list(values))
    if hasattr(values, "__array__"):
        return np.asarray(values)
    raise DataError(f"{name} must be an array or a list, not {shown([values])} (type {type(values).__name__}).")


def _flat_array(values: list[Any]) -> npt.NDArray[Any]:
    """Make a 1-D array of a list; numpy itself would turn 1 beside "a" into "1"."""
    if set(map(type, values)) == {int}:
        array = np.array(values)
        if array.dtype.kind in "iu":
            return array
    array = np.empty(len(values), object)
    array[:] = values
    return array


def refuse_other_rows(votes: Any, beside: Any, name: str, what: str = "suggested") -> None:
    """Refuse a column that is among the votes too, and rows that pandas names differently and we match by position."""
    if isinstance(beside, Mapping):
        for labels in beside.values():
            refuse_other_rows(votes, labels, name, what)
        return
    column, known = getattr(beside, "name", None), getattr(votes, "columns", ())
    if isinstance(column, str) and hasattr(beside, "equals") and column in known and beside.equals(votes[column]):
        raise DataError(
            f"{name} holds the column {column!r} of {what} too: pass the columns of votes alone, or the table "
            f"with {what}={column!r}."
        )
    left, right = getattr(votes, "index", None), getattr(beside, "index", None)
    named = hasattr(left, "equals") and hasattr(right, "equals")
    if named and len(votes) == len(beside) and not left.equals(right):  # type: ignore[union-attr]
        raise DataError(
            f"{name} and {what} have different indexes, but rows are matched by position: reindex one like "
            f"the other, or pass {what}.to_numpy() if they stand in the same order."
        )


def encode_suggested(
    suggested: Any, shape: tuple[int, ...], beside: str, missing: Collection[Label], name: str = "suggested"
) -> Encoded:
    """Encode one label an item; ``shape`` is that of the votes or counts beside it."""
    n = shape[0]
    if suggested is None:
        return Encoded(np.broadcast_to(np.uint8(0), n), 0, (None,))
    array = _array_of(suggested, name)
    if array.ndim != 1:
        raise DataError(f"{name} must hold one label for each item: got {array.ndim}-D with shape {array.shape}.")
    if len(array) != n:
        raise DataError(
            f"{beside} has {counted(n, 'item')} but {name} has {counted(len(array), 'label')}: "
            "they must be as many, in the same order."
            + (f" Rows are items: did you mean {beside}.T?" if shape[1:] == array.shape else "")
        )
    return encode(array, name, missing)


def matrix_of(counts: Any) -> Integers:
    """Check a matrix of counts: 2-D, whole, not negative."""
    matrix = _grid(counts, "counts")
    if matrix.ndim == 1 and matrix.size == 0:
        matrix = matrix.reshape(0, 0)
    if matrix.ndim != 2:
        raise DataError(f"counts must be 2-D, items by categories: got {matrix.ndim}-D with shape {matrix.shape}.")
    matrix = _whole(matrix, "counts")
    totals = matrix.sum(axis=1, dtype=np.int64)
    if totals.max(initial=0) > MOST_VOTES:
        row = int(totals.argmax())
        raise DataError(
            f"counts may hold {MOST_VOTES:,} votes on one item at the most: item {row} has {totals[row]:,}."
        )
    return matrix


def _grid(values: Any, name: str) -> npt.NDArray[Any]:
    """Make an array of nested lists or of anything that numpy reads."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"{name} must be 2-D, items by categories: got lists of different lengths.") from None
    if hasattr(values, "mask") and np.ma.is_masked(values):
        raise DataError(f"{name} has masked cells: write 0 where there are no votes.")
    return array


def _whole(matrix: npt.NDArray[Any], name: str) -> Integers:
    """Return integers, refusing what is not a count."""
    if matrix.dtype.kind == "b":
        return matrix.astype(np.uint8)
    if matrix.dtype.kind == "O" and all(is_real(value) for value in matrix.flat):
        matrix = np.array([_bounded(value) for value in matrix.flat], np.float64).reshape(matrix.shape)
    if matrix.dtype.kind not in "iuf":
        raise DataError(f"{name} must hold numbers of votes: got values of type {matrix.dtype}.")
    if matrix.dtype.kind == "f":
        matrix = matrix.astype(np.float64)
    fine = (matrix >= 0) & (matrix <= MOST_VOTES)
    if matrix.dtype.kind == "f":
        fine &= matrix == np.floor(matrix)
    if not fine.all():
        row, column = (int(index[0]) for index in np.nonzero(~fine))
        value = matrix[row, column]
        wrong = "missing" if value != value else "negative" if value < 0 else "fractional"
        wrong = "too large" if value > MOST_VOTES else wrong
        raise DataError(
            f"{name} must be whole numbers, 0 or more: item {row}, column {column} is {value} ({wrong})."
            + (" Write 0 where there are no votes." if wrong == "missing" else "")
        )
    # uint64 goes too: numpy adds it to int64 as floats.
    return matrix.astype(np.int64, copy=False) if matrix.dtype.kind == "f" or matrix.dtype.itemsize == 8 else matrix


def _bounded(value: numbers.Real) -> float:
    """Return a number as a float; one that is too large for that stays too large for a count."""
    try:
        return float(value)
    except OverflowError:
        return 2.0**60 if value > 0 else -1.0  # type: ignore[operator]


def is_matrix(values: Any) -> bool:
    """Tell a matrix, or a list of lists, from a list of labels."""
    if isinstance(values, (list, tuple)):
        return bool(values) and all(isinstance(row, (list, tuple, np.ndarray)) for row in values)
    return getattr(values, "ndim", 1) == 2


def one_hot_codes(suggested: Any, shape: tuple[int, ...]) -> Integers:
    """Read the paper's matrix B: exactly one 1 in each row, under the suggested category."""
    hot = _grid(suggested, "suggested")
    if hot.shape != shape:
        raise DataError(
            f"suggested is 2-D, a one-hot matrix, so it must have the shape of counts {shape}: got {hot.shape}."
        )
    if not len(hot):
        return np.zeros(0, np.int32)
    hot = _whole(hot, "suggested")
    ones = hot.sum(axis=1, dtype=np.int64)
    wrong = np.flatnonzero((ones != 1) | (hot.max(axis=1, initial=0) > 1))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"suggested as a one-hot matrix needs exactly one 1 in each row: row {row} is {shown(hot[row].tolist())}. "
            "Pass a list of labels instead if some are missing."
        )
    codes: Integers = hot.argmax(axis=1).astype(np.int32)
    return codes


def column_names(counts: Any, shape: tuple[int, ...], categories: tuple[Label, ...] | None) -> Sequence[Label]:
    """Return the category of each column of counts: as declared, as a dataframe names it, or its place."""
    n, m = shape
    columns = getattr(counts, "columns", None)
    if categories is None:
        return range(m) if columns is None else declare(columns)
    if n and len(categories) != m:
        raise DataError(
            f"counts has {counted(m, 'column')} but categories names {len(categories)}: one name for each column, "
            "and a column of zeros for a category without votes."
        )
    if columns is not None and set(columns) == set(categories) and list(columns) != list(categories):
        raise DataError(
            f"categories names the columns of counts in another order, {shown(categories)}, than they stand, "
            f"{shown(columns)}: reorder the columns."
        )
    return categories


def as_columns(labels: Encoded, names: Sequence[Label]) -> Encoded:
    """Read suggested labels beside counts: names of columns, or their places from 0 where names are all text."""
    given = labels.occurring(labels.digits(slice(None)))
    if any(isinstance(label, str) for label in given) and isinstance(names, range):
        raise DataError(
            f"suggested holds {shown(given)} but counts has no names for its columns: name them, in a dataframe or in "
            "the categories= with which the counting begins."
        )
    if not given or not all(isinstance(label, int) for label in given):
        return labels
    if not isinstance(names, range) and any(isinstance(name, int) for name in names):
        return labels
    no_lookalikes([*given, *(name for name in names if isinstance(name, str))])
    m = len(names)
    outside = [code for code in given if not 0 <= int(code) < m]
    if outside:
        raise DataError(
            f"suggested holds {shown(outside)} but counts has {counted(m, 'column')}, so codes run from 0 to {m - 1}. "
            "Pass categories= if these are labels, not codes."
        )
    codes = [names[label] if isinstance(label, int) and 0 <= label < m else None for label in labels.labels]
    return Encoded(labels.values, labels.low, codes)
