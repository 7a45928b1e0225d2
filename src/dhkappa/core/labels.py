"""Label values, missing values, the natural order of labels (3 before 10), lists of labels, and codes of labels.

None, NaN, the NA and NaT of other libraries, and empty text are missing. The texts "NA", "nan" and "None" are labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Integers, Label
from dhkappa.core.grouping import Encoded
from dhkappa.errors import DataError, invalid, shown
from dhkappa.paths import natural_order

RULE = "A label is a string, an integer, a boolean or an enum member."
LIST_MARK = "dhkappa-list:"  # start of the text of a cell that was a list
_SET_RULE = "Write cells as lists, as JSON lists (with double quotes), or as text with a separator, and name it: "
_SET_RULE += "$multilabel with ';'."

_DENSE = 64  # a range of this many integers is used as it is, with gaps
_WIDE = 1 << 16
_EXACT_FLOAT = 2**53
_MAX_BITS = 10_000  # of an integer label; Python refuses to print larger ones


def encode(
    values: Array, name: str, missing: Container[Label] = (), item_of: Callable[[int], int] | None = None
) -> Encoded:
    """Encode an array of labels of any shape and type.

    ``item_of`` maps a flat index to its item, for messages, if that is not the first index.
    """
    kind = values.dtype.kind
    if kind not in "biufOUT":
        raise _not_a_label(name, f"values of type {values.dtype}")
    if hasattr(values, "mask"):  # a masked array; isinstance would import numpy.ma
        masked = np.ma.getmaskarray(values)
        values, kind = np.ma.getdata(values).astype(object), "O"
        values[masked] = None
    if values.size == 0:
        encoded = Encoded(np.zeros(values.shape, np.uint8), 0, ())
    elif kind == "b":
        encoded = Encoded(np.minimum(values.view(np.uint8), 1), 0, (False, True))  # True may be any byte but 0
    elif kind in "iu":
        encoded = _encode_integers(values)
    elif kind == "f":
        encoded = _encode_floats(values, name)
    else:
        encoded = _encode_objects(values, name, item_of)
    if missing:
        encoded = replace(encoded, labels=tuple(None if label in missing else label for label in encoded.labels))
    return encoded


def _not_a_label(name: str, what: str, hint: str = RULE, code: str = "not-a-label") -> DataError:
    """Return the error; ``suggested['llm']`` is a part of the parameter ``suggested``."""
    return DataError(f"{name} holds {what}.", code=code, parameter=name.partition("[")[0], hint=hint)


def _encode_integers(values: Integers) -> Encoded:
    """Encode integers by their distance from the smallest, or through a table if at most half of a range occur."""
    high = int(values.max())
    low = 0 if values.dtype.kind == "u" and high < _DENSE else int(values.min())
    span = high - low + 1
    if span <= _DENSE and high < 2**63:
        return Encoded(values, low, range(low, high + 1))
    if span <= max(_WIDE, values.size) and high < 2**63:
        seen, flat = np.zeros(span, np.bool_), values.ravel(order="K")
        for first in range(0, flat.size, _WIDE):
            seen[np.subtract(flat[first : first + _WIDE], low, dtype=np.int64)] = True
            if 2 * np.count_nonzero(seen) > span:
                return Encoded(values, low, range(low, high + 1))
        used = np.flatnonzero(seen)
        table = np.zeros(span, np.min_scalar_type(used.size))
        table[used] = np.arange(used.size)
        return Encoded(table[np.subtract(values, low, dtype=np.int64)], 0, (used + low).tolist())
    distinct, inverse = np.unique(values, return_inverse=True)
    return Encoded(inverse.reshape(values.shape), 0, distinct.tolist())


def _encode_floats(values: npt.NDArray[np.floating[Any]], name: str) -> Encoded:
    """Encode whole numbers stored as floats; NaN is missing and gets the first index."""
    absent = np.isnan(values)
    present = values[~absent]
    if present.size == 0:
        return Encoded(np.zeros(values.shape, np.uint8), 0, (None,))
    wrong = present[~(np.isfinite(present) & (present == np.rint(present)))]
    if wrong.size:
        raise _not_a_label(name, f"the number {wrong[0]}", f"{RULE} Convert such labels to text.")
    most = np.abs(present).max()
    if float(most) >= min(2 ** (np.finfo(present.dtype).nmant + 1), _EXACT_FLOAT):
        what = f"{most} as a floating-point number, which cannot represent integers of this size exactly"
        raise _not_a_label(name, what, "Pass integers or text.", "float-too-large")
    below = int(present.min()) - 1
    whole = np.full(values.shape, below)
    whole[~absent] = present.astype(np.int64)
    encoded = _encode_integers(whole)
    return replace(encoded, labels=[None if label == below else label for label in encoded.labels])


class _Digits(dict[Any, int]):
    """Map raw values to indices in order of appearance, 0 for missing; each distinct value is converted once."""

    def __init__(self) -> None:
        super().__init__({None: 0})
        self.labels: dict[Label, int] = {}

    def __missing__(self, value: Any) -> int:
        label = to_label(value)
        if label is None:
            return 0  # not stored: every NaN would be a key of its own
        self[value] = self.labels.setdefault(label, len(self.labels) + 1)
        return self[value]


def _encode_objects(values: Array, name: str, item_of: Callable[[int], int] | None) -> Encoded:
    """Encode text and mixed objects."""
    flat = values.ravel().tolist()
    table, kinds = _Digits(), set(map(type, flat))
    odd = kinds - {str, int, bool, float, type(None)}
    try:
        if odd:  # other types are converted first, as their own __eq__ must not decide
            flat = [to_label(value) if type(value) in odd else value for value in flat]
        elif float in kinds:  # every NaN would be a key of its own
            flat = [None if value != value else value for value in flat]
        digits = np.fromiter(map(table.__getitem__, flat), np.int32, len(flat))
    except NotALabelError as error:
        where = next(index for index, value in enumerate(values.ravel().tolist()) if value is error.value)
        item = item_of(where) if item_of else int(np.unravel_index(where, values.shape)[0])
        raise _not_a_label(name, f"{error} at item {item}") from None
    labels: list[Label] = list(table.labels)
    if any(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds):
        labels = _booleans_as_integers(labels)
    order = sorted(range(len(labels)), key=lambda index: natural_key(labels[index]))
    rank = np.zeros(len(labels) + 1, np.int32)
    rank[np.array(order, np.int64) + 1] = np.arange(1, len(labels) + 1)
    return Encoded(rank[digits].reshape(values.shape), 0, (None, *(labels[index] for index in order)))


class NotALabelError(Exception):
    """A value that is not a label; the text shows it."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"{shown([value])} (type {type(value).__name__})")
        self.value = value


def to_label(value: Any) -> Label | None:
    """Return a value as a label: text, an integer or a boolean; None if missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Enum) and not isinstance(value, (str, int)) and isinstance(value.name, str):
        return value.name
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return str.__str__(value) or None
    if isinstance(value, (np.datetime64, np.timedelta64)):
        if np.isnat(value):
            return None
        raise NotALabelError(value)
    if isinstance(value, (int, np.integer)) and int(value).bit_length() <= _MAX_BITS:
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isnan(number):
            return None
        if number.is_integer() and abs(number) < _EXACT_FLOAT:
            return int(number)
    raise NotALabelError(value)


class SourceNote(str):
    """A sentence about the votes, with the code of the note that it becomes."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, code: str, text: str) -> SourceNote:
        """Make a note."""
        made = super().__new__(cls, text)
        made.code = code
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return SourceNote, (self.code, str(self))


def natural_key(label: Label) -> tuple[Any, ...]:
    """Return a sort key: numbers before text, numbers inside text by size."""
    if not isinstance(label, str):
        return (0, label)
    return (1, *natural_order(label))


def name_key(name: Any) -> tuple[Any, ...]:
    """Return a sort key for names of items or annotators of any type; None comes last."""
    if name is None:
        return (2,)
    return (0, natural_key(name)) if isinstance(name, (str, int)) else (1, str(name))


def quoted_names(categories: Iterable[Label]) -> list[str]:
    """Return categories as a list of votes names them: in quotes if they contain separators or outer spaces."""
    texts = map(str, categories)
    return [text if text and text == text.strip() and not {*text} & {",", ":"} else repr(text) for text in texts]


def whole_names(values: Sequence[Any]) -> list[Any]:
    """Return names of which floats and decimals that are whole numbers, up to 21 digits, are integers."""
    if not {float, Decimal} & set(map(type, values)):
        return list(values)
    return [int(value) if _is_whole(value) else value for value in values]


def _is_whole(value: Any) -> bool:
    if not isinstance(value, (float, Decimal)) or not math.isfinite(value):
        return False
    return -(10**21) < value < 10**21 and value == int(value)


def _booleans_as_integers(labels: Iterable[Label]) -> list[Label]:
    """Convert booleans among integers: True equals 1, and the order of appearance must not matter."""
    return [int(label) if isinstance(label, bool) else label for label in labels]


def check_categories(categories: Iterable[Any]) -> Categories:
    """Check declared categories and return them as labels, in the given order."""
    if isinstance(categories, (str, bytes, set, frozenset)) or not isinstance(categories, Iterable):
        raise invalid("categories", f"categories must be an ordered list of labels: got {shown([categories])}.")
    declared: dict[Label, None] = {}
    for value in categories:
        try:
            label = to_label(value)
        except NotALabelError as wrong:
            raise _not_a_label("categories", str(wrong)) from None
        if label is None or label in declared:
            what = "a missing value" if label is None else f"{label!r} twice"
            raise invalid("categories", f"categories holds {what}.")
        declared[label] = None
    check_lookalikes(declared)
    mixed = {bool, int} <= set(map(type, declared))
    return tuple(_booleans_as_integers(declared) if mixed else declared)


def union(*groups: Collection[Label]) -> Categories:
    """Return the union of groups of labels, in natural order."""
    labels: list[Label] = list(dict.fromkeys(chain.from_iterable(groups)))
    kinds = set(map(type, chain.from_iterable(groups)))
    if kinds >= {bool, int}:
        labels = _booleans_as_integers(labels)
    if str not in kinds:
        return tuple(sorted(labels))
    if len(kinds) > 1:
        check_lookalikes(labels)
    return tuple(sorted(labels, key=natural_key))


def check_lookalikes(labels: Collection[Label]) -> None:
    """Refuse ``1`` and ``"1"`` in one data set: most likely one category in two types."""
    texts = {label for label in labels if isinstance(label, str)}
    for label in labels:
        if not isinstance(label, str) and str(label) in texts:
            message = f"Labels hold both {label!r} and {str(label)!r}, which look the same but are different labels."
            hint = "Convert all labels to text, or all to numbers."
            raise DataError(message, code="mixed-label-types", hint=hint)


def check_missing(labels: Iterable[Label], missing: Collection[Label]) -> tuple[str, ...]:
    """Refuse labels that look like a missing value but have another type: ``9`` where ``"9"`` means missing.

    Return a sentence for each label that differs from a missing value only in case or spaces.
    """
    by_text = {str(label): label for label in missing}
    folded = {label.strip().casefold(): label for label in missing if isinstance(label, str)}
    notes = []
    for label in labels if missing else ():
        other = by_text.get(str(label), label)
        if isinstance(other, str) != isinstance(label, str) and label not in missing:
            message = f"missing names {other!r}, but the labels hold {label!r}, which has another type."
            hint = "Name it in $missing as the labels spell it."
            raise DataError(message, code="missing-type", parameter="missing", hint=hint)
        near = folded.get(label.strip().casefold()) if isinstance(label, str) else None
        if near is not None and label not in missing:
            text = f"{label!r} is counted as a category, although {near!r} means missing."
            notes.append(f"{text} If it means missing, too, add it to missing.")
    return tuple(notes)


def check_declared(labels: Iterable[Label], categories: Collection[Label], name: str, columns: bool = False) -> None:
    """Refuse labels outside the declared categories, or outside the columns of a count matrix."""
    known = set(categories)
    outside = sorted((label for label in labels if label not in known), key=natural_key)
    if outside:
        check_lookalikes([*categories, *outside])
        where = "columns of counts" if columns else "declared categories"
        message = f"{name} holds {shown(outside)}, which is not among the {where} {shown(categories, 10)}."
        hint = f"Add {'a column' if columns else 'it to $categories'}, or name it in $missing if it means missing."
        raise DataError(message, code="undeclared-label", parameter=name, hint=hint)


def list_text(value: Any, name: str = "votes") -> Any:
    """Return a list, tuple, set or array of labels as text; other values as they are."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple, set, frozenset)):
        return value
    try:
        labels = {label for one in value if (label := to_label(one)) is not None}
    except (NotALabelError, TypeError) as wrong:
        raise not_a_label_set(f"{name}: {shown([value])}", str(wrong)) from None
    import json  # takes time

    return LIST_MARK + json.dumps(sorted(labels, key=natural_key))


def not_a_label_set(cell: str, why: str) -> DataError:
    """Return the error for a cell that is not a set of labels."""
    message = f"A cell is not a set of labels: {cell} ({why})."
    return DataError(message, code="not-a-label-set", parameter="multilabel", hint=_SET_RULE)
