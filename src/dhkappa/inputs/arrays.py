"""Arrays, lists and count matrices, with labels, strata, weights and clusters, checked and encoded as ItemVotes."""

from __future__ import annotations

import numbers
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Categories, Floats, Integers, ItemWeights, Label
from dhkappa.core.grouping import MAX_VOTES, Encoded, LabeledPatterns
from dhkappa.core.items import ItemColumns, ItemVotes, count
from dhkappa.core.labels import NotALabelError, check_categories, check_lookalikes, check_missing, encode, to_label
from dhkappa.errors import DataError, counted, invalid, is_real, shown
from dhkappa.inputs.columns import Columns, check_grid, labeler_names

MANY_WEIGHTS = 50_000  # from this many weighted items on, weights are added up by pattern
LABELER = "labeler"  # name of a labeler whose labels were passed without one

_Labels = Container[Label]
_Shape = tuple[int, ...]


def missing_labels(missing: Iterable[Any]) -> frozenset[Label]:
    """Check the labels that mean missing."""
    if isinstance(missing, (str, bytes)):
        missing = (missing,)
    try:
        labels = [to_label(value) for value in missing]
    except (TypeError, NotALabelError):
        message = f"missing must be a list of labels: got {shown([missing])}."
        raise invalid("missing", message, code="not-a-label") from None
    return frozenset(label for label in labels if label is not None)


def declared_categories(categories: Any, missing: frozenset[Label]) -> Categories | None:
    """Check declared categories; None if there are none."""
    if categories is None:
        return None
    declared = check_categories(categories)
    if not declared:
        raise invalid("categories", "categories is empty.")
    if both := [label for label in declared if label in missing]:
        raise invalid("categories", f"categories: {shown(both)} is also named in missing.")
    return declared


class Design(TypedDict, total=False):
    """How items were sampled."""

    sample_weight: Any
    strata: Any
    clusters: Any


def read_arrays(votes: Any, columns: Columns, categories: Categories | None, missing: _Labels) -> ItemVotes:
    """Read votes or counts, with labels, weights, strata and clusters."""
    counts = columns["counts"]
    if (votes is None) == (counts is None):
        raise invalid("counts", "Pass either votes or counts.", code="votes-or-counts")
    design = Design(sample_weight=columns["sample_weight"], strata=columns["strata"], clusters=columns.get("clusters"))
    read, data = (read_votes, votes) if counts is None else (read_matrix, counts)
    suggested = columns["suggested"]
    if isinstance(suggested, Mapping) and all(isinstance(name, str) for name in suggested):
        suggested = dict(zip(labeler_names([*suggested]), suggested.values(), strict=True))
    return read(data, suggested, missing, categories, **design)


def array_patterns(votes: Any, columns: Columns, categories: Any, missing: Iterable[Any]) -> LabeledPatterns:
    """Count votes or counts with the labels of one labeler and their design; all as passed to ``Dataset``."""
    absent = missing_labels(missing)
    read = read_arrays(votes, columns, declared_categories(categories, absent), absent)
    weight = read.columns.weight
    if weight is not None and weight.size >= MANY_WEIGHTS and read.columns.cluster is None:
        found, row = read.distinct_patterns()
        found = replace(found, item_weights=ItemWeights(row, weight))
    else:
        found = count(read, merged=False).labeled_patterns()
    return replace(found, source_notes=check_missing(found.categories, absent)) if absent else found


def read_votes(
    votes: Any, suggested: Any, missing: _Labels = (), categories: Categories | None = None, **design: Unpack[Design]
) -> ItemVotes:
    """Read an (n, N) array or n lists of votes. The columns of an array or a dataframe are annotators.

    ``suggested`` is n labels, a mapping from labelers to n labels each, or None.
    """
    check_alignment(votes, "votes", suggested, design)
    rows, names = _rows_of(votes), _index_of(votes)
    if isinstance(rows, np.ndarray):
        columns = read_columns(suggested, rows.shape, missing, **design)
        listed = isinstance(votes, (list, tuple))
        annotators = None if listed else tuple(getattr(votes, "columns", range(rows.shape[1])))
        return ItemVotes(encode(rows, "votes", missing), columns, categories, names=names, annotators=annotators)
    flat, length = rows
    ends = np.cumsum(length)
    encoded = encode(flat, "votes", missing, lambda index: int(np.searchsorted(ends, index, side="right")))
    columns = read_columns(suggested, length.shape, missing, **design)
    return ItemVotes(encoded, columns, categories, length=length, names=names)


def read_matrix(
    counts: Any, suggested: Any, missing: _Labels = (), categories: Categories | None = None, **design: Unpack[Design]
) -> ItemVotes:
    """Read an (n, m) matrix of vote counts (the paper's A), with labels, column codes or a one-hot matrix (its B)."""
    check_alignment(counts, "counts", suggested, design)
    matrix = _count_matrix(counts)
    names = _column_names(counts, matrix.shape, categories)
    if missing and (both := [name for name in names if name in missing]):
        raise invalid("missing", f"missing names {shown(both)}, which is also a column of counts.", code="missing-type")
    columns = read_columns(suggested, matrix.shape, missing, names, **design)
    return ItemVotes(Encoded(matrix, 0, names), columns, categories, matrix=matrix, names=_index_of(counts))


def _index_of(table: Any) -> list[Any] | None:
    """Return the index of a pandas dataframe, which names the items."""
    index: Any = getattr(table, "index", None)
    return list(index) if hasattr(index, "equals") else None


def _rows_of(votes: Any) -> Array | tuple[Array, npt.NDArray[np.int64]]:
    """Read votes as an (n, N) array, or as a flat array and n lengths if lists differ in length."""
    if not isinstance(votes, (list, tuple)):
        array = _array_of(votes, "votes")
        if array.ndim == 2:
            return array
        if array.ndim != 1 or array.dtype != object:
            raise _not_2d(f"got {array.ndim}-D with shape {array.shape}.")
        votes = array.tolist()
    rows = [list(row) if isinstance(row, np.ndarray) and row.ndim == 1 else row for row in votes]
    for index, row in enumerate(rows):
        if not isinstance(row, (list, tuple)):
            raise _not_2d(f"item {index} is {shown([row])}, not a list of votes.")
    length = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = _flat_array(list(chain.from_iterable(rows)))
    if len(rows) == 0 or (length == length[0]).all():
        return flat.reshape(len(rows), length[0] if len(rows) else 0)
    return flat, length


def _not_2d(what: str) -> DataError:
    message = f"votes must be 2-D, items by annotators: {what}"
    return invalid("votes", message, code="invalid-shape", hint="Pass one list of votes per item.")


def _array_of(values: Any, name: str) -> Array:
    """Read anything that numpy takes as an array, without changing its labels."""
    if isinstance(values, np.ndarray):
        return values if hasattr(values, "mask") else np.asarray(values)
    if isinstance(values, (list, tuple)):
        return _flat_array(list(values))
    if hasattr(values, "__array__"):
        return np.asarray(values)
    message = f"{name} must be an array or a list: got {shown([values])} (type {type(values).__name__})."
    raise invalid(name.partition("[")[0], message, code="invalid-type")


def _flat_array(values: list[Any]) -> Array:
    """Make a 1-D array of a list; numpy itself would turn 1 next to "a" into "1"."""
    if set(map(type, values)) == {int}:
        array = np.array(values)
        if array.dtype.kind in "iu":
            return array
    array = np.empty(len(values), object)
    array[:] = values
    return array


def check_alignment(votes: Any, name: str, suggested: Any, design: Design) -> None:
    """Refuse columns that are no votes, and pandas rows with different indexes: rows are matched by position."""
    several = suggested.values() if isinstance(suggested, Mapping) else [suggested]
    for what, other in [*(("suggested", labels) for labels in several), *design.items()]:
        column, known = getattr(other, "name", None), getattr(votes, "columns", ())
        if isinstance(column, str) and hasattr(other, "equals") and column in known and other.equals(votes[column]):
            message = f"{name} contains the column {column!r}, which is also passed as {what}."
            hint = f"Pass only the columns of votes, or the whole table with ${what}{column!r}."
            raise invalid(what, message, code="column-among-votes", hint=hint)
        left, right = getattr(votes, "index", None), getattr(other, "index", None)
        named = hasattr(left, "equals") and hasattr(right, "equals")
        if named and len(votes) == len(other) and not left.equals(right):  # type: ignore[union-attr]
            message = f"{name} and {what} have different indexes, but rows are matched by position."
            hint = f"Reindex one like the other, or pass {what}.to_numpy() if the order is the same."
            raise invalid(what, message, code="different-index", hint=hint)
    names = getattr(votes, "column_names", getattr(votes, "columns", None))
    if name == "votes" and names is not None:
        check_grid(names)


def read_columns(
    suggested: Any, shape: _Shape, missing: _Labels, names: Sequence[Label] | None = None, **design: Unpack[Design]
) -> ItemColumns:
    """Encode labels and design of votes (or of counts, whose columns have ``names``) of this shape."""
    votes = "votes" if names is None else "counts"
    given = suggested if isinstance(suggested, Mapping) else {LABELER: suggested}
    wrong = [name for name in given if not isinstance(name, str) or not name]
    if wrong or not given:
        message = f"suggested must map names of labelers to labels: got {shown(wrong) or 'none'}."
        hint = "Pass a mapping such as {'llm': labels}."
        raise invalid("suggested", message, code="invalid-labeler-name", hint=hint)
    labels = {}
    for labeler, values in given.items():
        if names is not None and _is_matrix(values):
            labels[labeler] = Encoded(_one_hot_codes(values, shape), 0, tuple(names))
            continue
        name = f"suggested[{shown([labeler])}]" if isinstance(suggested, Mapping) else "suggested"
        found = _encode_labels(values, shape, votes, missing, name)
        labels[labeler] = found if names is None else _as_columns(found, names)
    weight = design.get("sample_weight")
    stratum, cluster = (_encode_groups(design.get(name), shape, votes, name) for name in ("strata", "clusters"))
    return ItemColumns(labels, stratum, None if weight is None else read_weights(weight, shape[0], votes), cluster)


def _encode_groups(given: Any, shape: _Shape, votes: str, name: str) -> Encoded | None:
    """Encode the stratum or the cluster of each item; None without."""
    if given is None:
        return None
    found = _encode_labels(given, shape, votes, (), name)
    if not isinstance(found.labels, range):
        check_lookalikes([label for label in found.labels if label is not None])
    absent = np.flatnonzero(found.missing()[found.digits()]) if len(found.labels) else np.zeros(0)
    if absent.size:
        message = f"{name} is missing for {counted(absent.size, 'item')}, such as item {absent[0]}."
        code = "missing-stratum" if name == "strata" else "missing-cluster"
        raise invalid(name, message, code=code)
    return found


def _encode_labels(labels: Any, shape: _Shape, votes: str, missing: _Labels, name: str) -> Encoded:
    """Encode one label per item; ``shape`` is that of the votes or counts."""
    n = shape[0]
    if labels is None:
        return Encoded.absent(n)
    array = _array_of(labels, name)
    if array.ndim != 1:
        message = f"{name} must hold one label per item: got {array.ndim}-D with shape {array.shape}."
        raise invalid("suggested", message, code="invalid-shape")
    if len(array) != n:
        message = f"{votes} has {counted(n, 'item')} but {name} has {counted(len(array), 'label')}."
        hint = f"Rows are items: did you mean {votes}.T?" if shape[1:] == array.shape else ""
        parameter = name if name in ("strata", "clusters") else "suggested"
        raise invalid(parameter, message, code="different-length", hint=hint)
    return encode(array, name, missing)


def read_weights(sample_weight: Any, n: int, votes: str) -> Floats:
    """Check one weight per item: a number, 0 or more, not all 0."""
    try:
        given = np.asarray(sample_weight)
        objects = given.flat if given.dtype.kind == "O" else ()
        numeric = all(is_real(one) or one is None or isinstance(one, np.bool_) for one in objects)
        if given.dtype.kind not in "biufO" or given.ndim != 1 or not numeric:
            raise TypeError
        masked = np.ma.is_masked(sample_weight)
        found = np.where(np.ma.getmaskarray(sample_weight), np.nan, given) if masked else given
        with np.errstate(over="ignore"):
            found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        message = f"sample_weight must be a list of numbers, one per item: got {shown([sample_weight])}."
        raise invalid("sample_weight", message, code="invalid-weight") from None
    if found.size != n:
        message = f"{votes} has {counted(n, 'item')} but sample_weight has {found.size:,}."
        raise invalid("sample_weight", message, code="different-length")
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if wrong.size:
        message = f"sample_weight must be numbers, 0 or more: item {wrong[0]} has {found[wrong[0]]:g}."
        raise invalid("sample_weight", message, code="invalid-weight")
    if n and not found.any():
        raise invalid("sample_weight", "sample_weight is 0 for every item.", code="invalid-weight")
    return found


def _count_matrix(counts: Any) -> Integers:
    """Check a matrix of counts: 2-D, whole numbers, not negative."""
    matrix = _grid(counts, "counts")
    if matrix.shape == (0,):
        matrix = matrix.reshape(0, 0)
    if matrix.ndim != 2:
        message = f"counts must be 2-D, items by categories: got {matrix.ndim}-D with shape {matrix.shape}."
        raise invalid("counts", message, code="invalid-shape")
    matrix = _whole(matrix, "counts")
    totals = matrix.sum(axis=1, dtype=np.int64)
    if totals.max(initial=0) > MAX_VOTES:
        row = int(totals.argmax())
        message = f"counts may hold at most {MAX_VOTES:,} votes on one item: item {row} has {totals[row]:,}."
        raise invalid("counts", message, code="too-many-votes")
    return matrix


def _grid(values: Any, name: str) -> Array:
    """Make an array of nested lists or of anything that numpy reads."""
    try:
        array = np.asarray(values)
    except ValueError:
        message = f"{name} must be 2-D, items by categories: got lists of different lengths."
        raise invalid(name, message, code="invalid-shape") from None
    if hasattr(values, "mask") and np.ma.is_masked(values):
        raise invalid(name, f"{name} has masked cells.", code="invalid-count", hint="Fill them with 0 for no votes.")
    return array


def _whole(matrix: Array, name: str) -> Integers:
    """Return a matrix of counts as integers."""
    if matrix.dtype.kind == "b":
        return matrix.astype(np.uint8)
    if matrix.dtype.kind == "O" and all(is_real(value) for value in matrix.flat):
        matrix = np.array([_bounded(value) for value in matrix.flat], np.float64).reshape(matrix.shape)
    if matrix.dtype.kind not in "iuf":
        message = f"{name} must hold numbers of votes: got values of type {matrix.dtype}."
        raise invalid(name, message, code="invalid-count")
    if matrix.dtype.kind == "f":
        matrix = matrix.astype(np.float64)
    fine = (matrix >= 0) & (matrix <= MAX_VOTES)
    if matrix.dtype.kind == "f":
        fine &= matrix == np.floor(matrix)
    if not fine.all():
        row, column = (int(index[0]) for index in np.nonzero(~fine))
        value = matrix[row, column]
        message = f"{name} must be whole numbers from 0 to {MAX_VOTES:,}: item {row}, column {column} is {value}."
        hint = "Write 0 for no votes." if np.isnan(value) else ""
        raise invalid(name, message, code="invalid-count", hint=hint)
    # uint64 is converted, too: numpy adds it to int64 as floats.
    return matrix.astype(np.int64, copy=False) if matrix.dtype.kind == "f" or matrix.dtype.itemsize == 8 else matrix


def _bounded(value: numbers.Real) -> float:
    """Return a number as a float; one that is too large for a float stays too large for a count."""
    try:
        return float(value)
    except OverflowError:
        return 2.0**60 if value > 0 else -1.0  # type: ignore[operator]


def _is_matrix(values: Any) -> bool:
    """Tell a matrix, or a list of lists, from a list of labels."""
    if isinstance(values, (list, tuple)):
        return bool(values) and all(isinstance(row, (list, tuple, np.ndarray)) for row in values)
    return getattr(values, "ndim", 1) == 2


def _one_hot_codes(suggested: Any, shape: _Shape) -> Integers:
    """Read the paper's matrix B: exactly one 1 in each row, under the suggested category."""
    hot = _grid(suggested, "suggested")
    if hot.shape != shape:
        message = f"suggested as a one-hot matrix must have the shape of counts, {shape}: got {hot.shape}."
        raise invalid("suggested", message, code="invalid-shape")
    if not len(hot):
        return np.zeros(0, np.int32)
    hot = _whole(hot, "suggested")
    wrong = np.flatnonzero((hot.sum(axis=1, dtype=np.int64) != 1) | (hot.max(axis=1, initial=0) > 1))
    if wrong.size:
        row = hot[wrong[0]].tolist()
        message = f"suggested as a one-hot matrix must have exactly one 1 per row: row {wrong[0]} is {shown(row)}."
        hint = "Pass a list of labels if some are missing."
        raise invalid("suggested", message, code="invalid-one-hot", hint=hint)
    return np.asarray(hot.argmax(axis=1), np.int32)


def _column_names(counts: Any, shape: _Shape, categories: Categories | None) -> Sequence[Label]:
    """Return the category of each column of counts: as declared, as a dataframe names it, or its position."""
    n, m = shape
    columns = getattr(counts, "columns", None)
    if categories is None:
        return range(m) if columns is None else check_categories(columns)
    if n and len(categories) != m:
        message = f"counts has {counted(m, 'column')} but categories names {len(categories)}."
        hint = "Name every column of counts; a category without votes is a column of zeros."
        raise invalid("categories", message, code="different-length", hint=hint)
    if columns is not None and set(columns) == set(categories) and list(columns) != list(categories):
        message = f"categories {shown(categories)} and the columns of counts {shown(columns)} are in different orders."
        raise invalid("categories", message, code="different-order")
    return categories


def _as_columns(labels: Encoded, names: Sequence[Label]) -> Encoded:
    """Read labels next to counts: names of columns, or their positions from 0 if all names are text."""
    given = labels.occurring(labels.digits())
    if any(isinstance(label, str) for label in given) and isinstance(names, range):
        message = f"suggested holds {shown(given)} but the columns of counts have no names."
        hint = "Pass counts as a dataframe, or name the columns in $categories."
        raise invalid("counts", message, code="unnamed-columns", hint=hint)
    numbered = isinstance(names, range) or not any(isinstance(name, int) for name in names)
    if not (given and numbered and all(isinstance(label, int) for label in given)):
        return labels
    check_lookalikes([*given, *(name for name in names if isinstance(name, str))])
    m = len(names)
    if outside := [code for code in given if not 0 <= int(code) < m]:
        columns = f"{counted(m, 'column')}, with codes from 0 to {m - 1}"
        message = f"suggested holds {shown(outside)} but counts has {columns}."
        hint = "Pass $categories if these are labels, not codes."
        raise invalid("suggested", message, code="undeclared-label", hint=hint)
    codes = [names[label] if isinstance(label, int) and 0 <= label < m else None for label in labels.labels]
    return Encoded(labels.values, labels.low, codes)


def count_labels(labels: Any, name: str) -> dict[Label | None, int]:
    """Return the number of each label in an array or a list; None for those that are missing."""
    values = _array_of(labels, name)
    if values.ndim != 1:
        message = f"{name} must be 1-D, one label per item: got {values.ndim}-D with shape {values.shape}."
        raise invalid(name, message, code="invalid-shape")
    encoded = encode(values, name)
    number = np.bincount(encoded.digits(), minlength=len(encoded.labels)).tolist()
    found: dict[Label | None, int] = {}
    for label, n in zip(encoded.labels, number, strict=True):
        if n:
            found[label] = found.get(label, 0) + n
    return found
