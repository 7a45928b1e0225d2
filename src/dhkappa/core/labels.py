"""Labels and their integer codes; what counts as missing; the order of categories.

Missing is None, NaN, the NA and NaT of other libraries, and empty text, which is what a CSV file has where
nothing stands. "NA", "nan" and "None" as text are labels.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.errors import DataError, shown

Label: TypeAlias = str | int
"""A category's name: text, an integer or a boolean."""

Integers: TypeAlias = npt.NDArray[np.integer[Any]]

RULE = "a label is a string, an integer, a boolean or an enum member"

_DENSE = 64  # up to this many different integers in a row, gaps between them cost nothing
_WIDE = 1 << 16
_EXACT_FLOAT = 2**53
_MOST_BITS = 10_000  # of an integer label; beyond, Python refuses to write it down


@dataclass(frozen=True, slots=True)
class Encoded:
    """Labels as digits: ``values - low`` indexes ``labels``, where None stands for missing.

    ``labels`` are in the order of categories. A range of integers may hold some that do not occur.
    """

    values: Integers
    low: int
    labels: Sequence[Label | None]

    def digits(self, rows: slice) -> Integers:
        """Return the digits of some rows, as small unsigned integers."""
        block = self.values[rows]
        if self.low:
            block = np.subtract(block, self.low, dtype=np.int64)
        small = np.min_scalar_type(max(len(self.labels) - 1, 0))
        return block.astype(small, copy=False)

    def occurring(self, digits: Integers) -> list[Label]:
        """Return the labels that some of these digits stand for, in order."""
        seen = np.zeros(len(self.labels), np.bool_)
        first, step = 0, 1 << 10  # most often the first few tell
        while first < digits.size and not seen.all():
            seen[digits[first : first + step]] = True
            first, step = first + step, min(4 * step, _WIDE)
        found = (self.labels[digit] for digit in np.flatnonzero(seen).tolist())
        return [label for label in found if label is not None]


def encode(
    values: npt.NDArray[Any],
    name: str,
    missing: Collection[Label] = (),
    item_of: Callable[[int], int] | None = None,
) -> Encoded:
    """Turn an array of labels, of any shape and type, into digits.

    ``item_of`` tells the item of a flat index, for messages, where it is not the first index.
    """
    kind = values.dtype.kind
    if kind not in "biufOUT":
        raise DataError(f"{name} holds values of type {values.dtype}: {RULE}.")
    if hasattr(values, "mask"):  # a masked array; to name its type would import numpy.ma, for everybody
        masked = np.ma.getmaskarray(values)
        values, kind = np.ma.getdata(values).astype(object), "O"
        values[masked] = None
    if values.size == 0:
        encoded = Encoded(np.zeros(values.shape, np.uint8), 0, ())
    elif kind == "b":
        encoded = Encoded(np.minimum(values.view(np.uint8), 1), 0, (False, True))  # true may be any byte but 0
    elif kind in "iu":
        encoded = _encode_integers(values)
    elif kind == "f":
        encoded = _encode_floats(values, name)
    else:
        encoded = _encode_objects(values, name, item_of)
    if missing:
        labels = tuple(None if label in missing else label for label in encoded.labels)
        encoded = Encoded(encoded.values, encoded.low, labels)
    return encoded


def _encode_integers(values: Integers) -> Encoded:
    """Code integers by their distance from the smallest, through a table where they lie far apart."""
    high = int(values.max())
    low = 0 if values.dtype.kind == "u" and high < _DENSE else int(values.min())
    span = high - low + 1
    if span <= _DENSE and high < 2**63:
        return Encoded(values, low, range(low, high + 1))
    if span <= max(_WIDE, values.size) and high < 2**63:
        used = _used(values, low, span)
        if used is None:
            return Encoded(values, low, range(low, high + 1))
        table = np.zeros(span, np.min_scalar_type(used.size))
        table[used] = np.arange(used.size)
        return Encoded(table[np.subtract(values, low, dtype=np.int64)], 0, (used + low).tolist())
    distinct, inverse = np.unique(values, return_inverse=True)
    return Encoded(inverse.reshape(values.shape), 0, distinct.tolist())


def _used(values: Integers, low: int, span: int) -> npt.NDArray[np.int64] | None:
    """Return which of ``span`` integers from ``low`` occur, or None once most of them are seen to."""
    seen = np.zeros(span, np.bool_)
    flat = values.ravel(order="K")
    for first in range(0, flat.size, _WIDE):
        seen[np.subtract(flat[first : first + _WIDE], low, dtype=np.int64)] = True
        if 2 * np.count_nonzero(seen) > span:
            return None
    return np.flatnonzero(seen)


def _encode_floats(values: npt.NDArray[np.floating[Any]], name: str) -> Encoded:
    """Code whole numbers stored as floats; NaN is missing and gets the first digit."""
    absent = np.isnan(values)
    present = values[~absent]
    if present.size == 0:
        return Encoded(np.zeros(values.shape, np.uint8), 0, (None,))
    wrong = present[~(np.isfinite(present) & (present == np.rint(present)))]
    if wrong.size:
        raise DataError(f"{name} holds {wrong[0]}: {RULE}, not a fractional number; write such labels as text.")
    if float(np.abs(present).max()) >= min(2 ** (np.finfo(present.dtype).nmant + 1), _EXACT_FLOAT):
        raise DataError(
            f"{name} holds {np.abs(present).max()} as a floating-point number, which cannot tell such integers apart: "
            "pass integers or text."
        )
    below = int(present.min()) - 1
    whole = np.full(values.shape, below)
    whole[~absent] = present.astype(np.int64)
    encoded = _encode_integers(whole)
    return Encoded(encoded.values, encoded.low, [None if label == below else label for label in encoded.labels])


class _Digits(dict[Any, int]):
    """Raw values to digits in the order met, 0 for missing; each different value is looked at once."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[Label, int] = {}

    def __missing__(self, value: Any) -> int:
        label = plain(value)
        if label is None:
            return 0  # not kept: every NaN is a key of its own
        digit = self.labels.setdefault(label, len(self.labels) + 1)
        self[value] = digit
        return digit


def _encode_objects(values: npt.NDArray[Any], name: str, item_of: Callable[[int], int] | None) -> Encoded:
    """Code text and mixed objects one by one."""
    flat = values.ravel().tolist()
    kinds = set(map(type, flat))
    table = _Digits()
    try:
        if float in kinds:  # every NaN is a key of its own, and slow to look at one by one
            flat = [None if value != value else value for value in flat] if kinds <= _PLAIN else flat
        table[None] = 0
        odd = kinds - _PLAIN
        if odd:  # looked at one by one: their own idea of equality does not count
            flat = [plain(value) if type(value) in odd else value for value in flat]
        digits = np.fromiter(map(table.__getitem__, flat), np.int32, len(flat))
    except NotALabelError as error:
        where = next(index for index, value in enumerate(values.ravel().tolist()) if value is error.value)
        item = item_of(where) if item_of else int(np.unravel_index(where, values.shape)[0])
        raise DataError(f"{name} holds {error} at item {item}: {RULE}.") from None
    labels: list[Label] = list(table.labels)
    if any(_is_number(kind) for kind in kinds):
        labels = _booleans_as_integers(labels)
    order = sorted(range(len(labels)), key=lambda index: natural(labels[index]))
    rank = np.zeros(len(labels) + 1, np.int32)
    rank[np.array(order, np.int64) + 1] = np.arange(1, len(labels) + 1)
    return Encoded(rank[digits].reshape(values.shape), 0, (None, *(labels[index] for index in order)))


class NotALabelError(Exception):
    """A value that is no label; its text shows the value."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"{shown([value])} (type {type(value).__name__})")
        self.value = value


_PLAIN = {str, int, bool, float, type(None)}


def _is_number(kind: type) -> bool:
    return issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool


def is_real(value: Any) -> bool:
    """Tell whether a value is a real number: to numpy a span of time is one too."""
    return isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64)


def plain(value: Any) -> Label | None:
    """Return the label that a value stands for: plain text, an integer or a boolean; None if missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Enum) and not isinstance(value, (str, int)):
        if not isinstance(value.name, str):
            raise NotALabelError(value)
        return value.name
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return str.__str__(value) or None
    if isinstance(value, (np.datetime64, np.timedelta64)):
        if np.isnat(value):
            return None
        raise NotALabelError(value)
    if isinstance(value, (int, np.integer)) and int(value).bit_length() <= _MOST_BITS:
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isnan(number):
            return None
        if number.is_integer() and abs(number) < _EXACT_FLOAT:
            return int(number)
    raise NotALabelError(value)


def natural(label: Label) -> tuple[Any, ...]:
    """Return a sort key: numbers first, then text, with the numbers inside text by size."""
    if not isinstance(label, str):
        return (0, label)
    runs = re.split("([0-9]+)", label.casefold())
    for index in range(1, len(runs), 2):
        digits = runs[index].lstrip("0")
        runs[index] = f"{len(digits):09d}{digits}"
    return (1, runs, label)


def in_order(name: Any) -> tuple[Any, ...]:
    """Return a sort key for names of items or annotators, whatever they are; one without a name comes last."""
    if name is None:
        return (2,)
    return (0, natural(name)) if isinstance(name, (str, int)) else (1, str(name))


def _booleans_as_integers(labels: Iterable[Label]) -> list[Label]:
    """Read True as 1: beside integers they are equal, and the order met must not matter."""
    return [int(label) if isinstance(label, bool) else label for label in labels]


def declare(categories: Iterable[Any]) -> tuple[Label, ...]:
    """Check declared categories: labels, in the order given, none missing and none twice."""
    if isinstance(categories, (str, bytes)):
        raise DataError(f"categories must be a list of labels, not the one string {shown([categories])}.")
    if isinstance(categories, (set, frozenset)):
        raise DataError("categories must be a list of labels: a set has no order.")
    try:
        given = list(categories)
    except TypeError:
        raise DataError(f"categories must be a list of labels, not {shown([categories])}.") from None
    declared: dict[Label, None] = {}
    for value in given:
        try:
            label = plain(value)
        except NotALabelError as wrong:
            raise DataError(f"categories holds {wrong}: {RULE}.") from None
        if label is None:
            raise DataError(f"categories holds {shown([value])}, which is read as missing: declare labels only.")
        if label in declared:
            raise DataError(f"categories holds {label!r} twice: each category is declared once.")
        declared[label] = None
    no_lookalikes(declared)
    mixed = {bool, int} <= set(map(type, declared))
    return tuple(_booleans_as_integers(declared) if mixed else declared)


def unite(*groups: Collection[Label]) -> tuple[Label, ...]:
    """Return every label of the groups once, in natural order."""
    labels: list[Label] = list(dict.fromkeys(chain.from_iterable(groups)))
    kinds = set(map(type, chain.from_iterable(groups)))
    if kinds >= {bool, int}:
        labels = _booleans_as_integers(labels)
    if str not in kinds:
        return tuple(sorted(labels))
    if len(kinds) > 1:
        no_lookalikes(labels)
    return tuple(sorted(labels, key=natural))


def no_lookalikes(labels: Collection[Label]) -> None:
    """Refuse ``1`` beside ``"1"``: one category written in two ways, most likely."""
    texts = {label for label in labels if isinstance(label, str)}
    for label in labels:
        if not isinstance(label, str) and str(label) in texts:
            raise DataError(
                f"labels hold both {label!r} and {str(label)!r}: they look the same but are different labels. "
                "Write all of them as text, or all as numbers."
            )


def check_missing(labels: Iterable[Label], missing: Collection[Label]) -> None:
    """Refuse labels that look like some that are said to mean missing, but are not: ``9`` where ``"9"`` was said."""
    spelled = {str(label): label for label in missing}
    for label in labels:
        other = spelled.get(str(label), label)
        if isinstance(other, str) != isinstance(label, str) and label not in missing:
            raise DataError(
                f"missing names {other!r}, but labels hold {label!r}, which looks the same and is another: name it as "
                "the labels write it, or both."
            )


def check_declared(labels: Iterable[Label], categories: Collection[Label], name: str, columns: bool = False) -> None:
    """Refuse labels outside the categories that are declared, or that ``columns`` of counts are, naming them."""
    known = set(categories)
    outside = sorted((label for label in labels if label not in known), key=natural)
    if outside:
        no_lookalikes([*categories, *outside])
        where, then = (
            ("columns of counts", "Add a column") if columns else ("declared categories", "Add it to categories=")
        )
        raise DataError(
            f"{name} holds {shown(outside)}, not among the {where} {shown(categories, 10)}. "
            f"{then}, or name it in missing= if it is no label."
        )
