"""The number of items in a pool with each suggested label: as given, or counted in a column of labels."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dhkappa.core import Label
from dhkappa.core.labels import RULE, NotALabelError, SourceNote, to_label
from dhkappa.errors import DataError, OutOfMemoryError, counted, did_you_mean, invalid, shown
from dhkappa.inputs.arrays import count_labels
from dhkappa.inputs.backends import frame_of
from dhkappa.inputs.columns import RoleKeywords, list_columns, suggested_columns
from dhkappa.inputs.dataset import Dataset, UnlabeledDataset
from dhkappa.inputs.files import is_url, open_source
from dhkappa.inputs.filters import Condition
from dhkappa.inputs.tables import Source
from dhkappa.inputs.tally import Tally

_SIZES = re.compile(r"[^=]+=\s*[0-9][0-9_]*\s*(,[^=]+=\s*[0-9][0-9_]*\s*)*")
_HINT = 'Pass a mapping from labels to numbers of items, text such as "billing=500,bug=300", or all labels of the pool.'
_Sizes = dict[Label | None, int]


def pool_sizes(
    pool: Any, data: Dataset | Tally, labeler: str, column: Any = None
) -> tuple[dict[Label, int], list[SourceNote]]:
    """Return the number of items in a pool with each label, and notes; ``data`` are the sample, with its label rules.

    ``column`` is the column of labels if the pool is a table; by default that of the labeler in the sample.
    """
    notes: list[SourceNote] = []
    if isinstance(pool, str) and not os.path.exists(pool) and not is_url(pool) and _SIZES.fullmatch(pool):
        pool = _of_text(pool, data.counts.categories)
    if isinstance(pool, (str, os.PathLike)) or frame_of(pool) is not None:
        raw = _in_table(pool, data, labeler, column, notes)
    elif column is not None:
        message = "pool_column names a column of a table, but the pool is not a table."
        raise invalid("pool_column", message, code="not-a-table", hint="Omit $pool_column.")
    else:
        raw = _of_mapping(pool) if isinstance(pool, Mapping) or _is_counted(pool) else _of_labels(pool)
        notes += (SourceNote("pool-not-filtered", _not_filtered(step)) for step in _conditions(data))
    sizes = _after_rules(raw, data)
    if absent := sizes.pop(None, 0):
        text = f"{counted(absent, 'item')} of the pool without a suggested label {'is' if absent == 1 else 'are'}"
        notes.append(SourceNote("pool-unlabeled", f"{text} not counted."))
    return {label: size for label, size in sizes.items() if label is not None}, notes


def _after_rules(sizes: Mapping[Label | None, int], data: Dataset | Tally) -> Counter[Label | None]:
    """Return the sizes after the label rules of the sample, in its spelling."""
    new: dict[Any, Any] = {}
    if isinstance(data, Dataset) and data.rules is not None:
        new = data.rules.spellings({label: n for label, n in sizes.items() if label is not None}, data.categories)
    found = Counter[Label | None]()
    for label, size in sizes.items():
        gone = label is None or (data.means_missing(label) if isinstance(data, Dataset) else label in data.missing)
        found[None if gone else new.get(label, label)] += size
    return found


def _of_text(text: str, known: Iterable[Label]) -> dict[Label, int]:
    """Read text such as ``billing=500,bug=300``, with labels of the type of those that are known."""
    of_text = {str(label): label for label in known}
    found: dict[Label, int] = {}
    for part in next(csv.reader([text], skipinitialspace=True)):
        name, _, size = part.rpartition("=")
        label = of_text.get(name.strip(), name.strip())
        if label in found:
            raise invalid("pool", f"The pool names the label {shown([label])} twice: {shown([text])}.")
        found[label] = int(size)
    return found


def _of_mapping(pool: Any) -> _Sizes:
    """Check numbers of items by label."""
    found = Counter[Label | None]()
    for name, size in pool.items():
        try:
            label = to_label(name)
        except NotALabelError as wrong:
            raise invalid("pool", f"pool holds {wrong}.", code="not-a-label", hint=RULE) from None
        try:
            number = to_label(size)
        except NotALabelError:
            number = None
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            message = f"The number of items in the pool with label {shown([label])} must be an integer, 0 or more"
            raise invalid("pool", f"{message}: got {shown([size])}.", code="invalid-pool-size", hint=_HINT)
        found[label] += number
    return dict(found)


def _is_counted(pool: Any) -> bool:
    """Tell whether a column of pandas holds numbers of items, as ``value_counts()`` returns them, and not labels."""
    dtype: Any = getattr(pool, "dtype", None)
    index: Any = getattr(pool, "index", None)
    if not hasattr(index, "equals") or getattr(dtype, "kind", "") not in "iu":
        return False
    if pool.name == "count" or getattr(index.dtype, "kind", "") not in "iu":
        return True
    if type(index).__name__ == "RangeIndex":
        return False
    message = f"The pool may be labels, or numbers of items by label: {shown([pool.to_dict()])}."
    hint = "Pass pool.to_numpy() if these are labels, or pool.to_dict() if these are numbers of items."
    raise invalid("pool", message, code="ambiguous-pool", hint=hint)


def _of_labels(pool: Any) -> _Sizes:
    """Count the labels of all items."""
    if not isinstance(pool, (list, tuple)) and not hasattr(pool, "__array__"):
        kind = type(pool).__name__
        raise invalid("pool", f"pool must give the labels of all items: got {shown([pool])} (type {kind}).", hint=_HINT)
    return count_labels(pool, "pool")


def _in_table(pool: Any, data: Dataset | Tally, labeler: str, column: Any, notes: list[SourceNote]) -> _Sizes:
    """Count the labels in a column of a table, in its engine, after the filters of the sample."""
    table = data.table if isinstance(data, Dataset) else None
    with _naming_pool():
        source = open_source(pool) if isinstance(pool, (str, os.PathLike)) else Source(pool, given_name="the pool")
        if source.tool:
            message = f"The pool must be a table with a column of labels, but {shown([pool])} is an export."
            raise invalid("pool", message, code="not-a-table", hint=_HINT)
        frame = frame_of(source.votes)
        names = [] if frame is None else frame.names
        own = None if table is None else table.roles.suggested.get(labeler)
        name = _column(names, column, [own or "", labeler, f"suggested_{labeler}"], source.name)
        item = None if table is None else table.roles.item
        options: RoleKeywords = {"annotators": [name]}
        if item in names and item != name:
            options["item"] = item  # so that items are not counted twice
        whole: Dataset = UnlabeledDataset(source, **options)
        for step in _conditions(data):
            kept = _filtered(whole, step, data, names)
            if kept is None:
                notes.append(SourceNote("pool-not-filtered", _not_filtered(step)))
                continue
            gone = whole.counts.n_items - kept.counts.n_items
            text = f"{counted(gone, 'item')} of the pool {'was' if gone == 1 else 'were'} left out by the filter"
            notes.append(SourceNote("pool-filtered", f"{text} {step.text}."))
            whole = kept
        patterns = whole.counts.patterns
    found = Counter[Label | None]()
    for code, start, end, items in zip(
        np.append(patterns.code, 0)[patterns.start[:-1]].tolist(),
        patterns.start[:-1].tolist(),
        patterns.start[1:].tolist(),
        patterns.items.tolist(),
        strict=True,
    ):
        found[whole.counts.categories[code] if end > start else None] += items
    return dict(found)


def _column(names: Sequence[str], given: Any, likely: Sequence[str], where: str) -> str:
    """Return the column of labels: as given, or called as the labeler, or the only one that may be meant."""
    if given is not None:
        if given not in names:
            message = f"Column {shown([given])} not found in {where}. {list_columns(names)}"
            raise invalid("pool_column", message + did_you_mean(given, names), code="column-not-found")
        return str(given)
    found = [name for name in likely if name in names][:1] or suggested_columns(names) or list(names)
    if len(found) != 1:
        message = f"It is unknown which column of {where} has the suggested labels. {list_columns(names)}"
        raise invalid("pool", message, code="pool-column-unknown", hint="Name it as $pool_column.")
    if {*names} == {found[0], "count"}:
        message = f"The table must have one row per item, but {where} has one row per label, with a number of items."
        raise invalid("pool", message, code="pool-is-counted", hint=_HINT)
    return found[0]


def _conditions(data: Dataset | Tally) -> list[Condition]:
    """Return the conditions by which the sample was filtered."""
    steps = (one.step for one in data.left_out) if isinstance(data, Dataset) else ()
    return [step for step in steps if isinstance(step, Condition)]


def _filtered(pool: Dataset, step: Condition, data: Dataset | Tally, names: Sequence[str]) -> Dataset | None:
    """Return the pool after a filter of the sample; None if the filter is about votes and the pool lacks its column."""
    table = data.table if isinstance(data, Dataset) else None
    prefix, _, rest = step.column.partition(".")
    column = rest if prefix in ("items", "votes") and step.column not in names else step.column
    if column not in names and table is not None and table.roles.label is not None:
        of_items = [] if table.items is None else table.items.names
        if prefix != "items" and column not in of_items and column != table.roles.item:
            return None
    return pool.filter((column, step.operator, step.values))


def _not_filtered(step: Condition) -> str:
    return f"The filter {step.text} was applied to the sample, not to the pool, which must consist of such items."


@contextmanager
def _naming_pool() -> Iterator[None]:
    """Let errors about a file or a table name the pool."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except DataError as error:
        if error.parameter in ("pool", "pool_column", "where"):
            raise
        message, hint = error.message, "" if "$" in error.hint else error.hint
        if error.code == "duplicate-items":
            message, hint = "The pool has several rows for one item.", "Pass a table with one row per item."
        raise DataError(message, code=error.code, parameter="pool", hint=hint) from error
