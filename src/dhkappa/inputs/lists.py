"""Columns of lists, for multi-label data, written as text so that every engine can group them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dhkappa.core.label_sets import LIST_MARK, list_text

_LISTS = ("list", "large_list", "fixed_size_list")


def lists_as_text(data: Any) -> Any:
    """Return data in which lists of labels are text: rows of votes, labels by labeler, or a table; others unchanged."""
    if isinstance(data, (list, tuple)):
        return [_row_as_text(row) for row in data]
    if isinstance(data, np.ndarray) and data.dtype == object:
        return np.array([*map(list_text, data.ravel()), None], object)[:-1].reshape(data.shape)
    convert = _CONVERTERS.get(type(data).__module__.partition(".")[0].lstrip("_"))
    return data if convert is None else convert(data)


def labels_as_text(suggested: Any) -> Any:
    """Return suggested labels in which lists are text; names of columns are unchanged."""
    if isinstance(suggested, Mapping):
        return {name: labels_as_text(labels) for name, labels in suggested.items()}
    if isinstance(suggested, (list, tuple)):
        return [list_text(cell, "suggested") for cell in suggested]
    return lists_as_text(suggested)


def _row_as_text(row: Any) -> Any:
    return [list_text(cell) for cell in row] if isinstance(row, (list, tuple)) else row


def _pandas(data: Any) -> Any:
    if data.ndim == 1:
        return data.map(list_text)
    made = data
    for place in range(data.shape[1]):
        column = data.iloc[:, place]
        nested = column.dtype == object or str(column.dtype).startswith(_LISTS)
        if nested and any(isinstance(value, (list, tuple, set, frozenset, np.ndarray)) for value in column):
            made = data.copy(deep=False) if made is data else made
            made[data.columns[place]] = column.astype(object).map(list_text)
    return made


def _polars(data: Any) -> Any:
    polars = sys.modules["polars"]

    def texts(column: Any) -> Any:
        return polars.Series(column.name, [list_text(value) for value in column.to_list()], polars.String)

    if isinstance(data, polars.Series):
        return texts(data) if data.dtype in (polars.List, polars.Array) else data
    schema = data.collect_schema()
    nested = [name for name, dtype in schema.items() if dtype in (polars.List, polars.Array)]
    return data.with_columns(polars.col(name).map_batches(texts, return_dtype=polars.String) for name in nested)


def _pyarrow(data: Any) -> Any:
    pyarrow = sys.modules["pyarrow"]
    for place, field in enumerate(data.schema if hasattr(data, "set_column") else ()):
        if str(field.type).startswith(_LISTS):
            texts = [list_text(value) for value in data.column(place).to_pylist()]
            data = data.set_column(place, field.name, pyarrow.array(texts, "string"))
    return data


def _duckdb(data: Any) -> Any:
    from dhkappa.inputs.backends.duckdb import quoted

    columns = []
    for name, dtype in zip(data.columns, map(str, data.types), strict=True):
        own = quoted(name)
        nested = dtype.endswith("]") or dtype == "JSON"
        sort = f"list_sort({own})" if dtype.endswith("[]") else own
        columns.append(f"'{LIST_MARK}' || CAST(to_json({sort}) AS VARCHAR) AS {own}" if nested else own)
    return data.project(", ".join(columns)) if columns else data


def _source(data: Any) -> Any:
    """Convert the tables of a file that was opened."""
    if not hasattr(data, "votes"):
        return data
    return replace(data, votes=lists_as_text(data.votes), items=lists_as_text(data.items))


_CONVERTERS = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow, "duckdb": _duckdb, "dhkappa": _source}
