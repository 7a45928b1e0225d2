"""Dataframe libraries: pandas, Polars, PyArrow, Dask and Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from operator import methodcaller
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from dhkappa.core import Label
from dhkappa.core.labels import list_text
from dhkappa.errors import shown
from dhkappa.inputs.backends import Coding, Frame, Query, lazy, not_a_label, not_a_name, with_none

_LISTS = ("list", "large_list", "fixed_size_list")  # names of types
_GROUPABLE = {"string_view": "string", "halffloat": "float"}  # types that PyArrow cannot group by


class PandasFrame(Frame):
    """A pandas dataframe. Labels are stored as codes, so that objects of any type can be grouped."""

    ordered = True

    @property
    def row_names(self) -> list[Any] | None:
        """The index, if it tells the rows apart."""
        return list(self.native.index) if self.native.index.is_unique else None

    def comparable(self, column: str) -> Frame:
        """Convert objects to the type that all of them have, and times with a zone to UTC."""
        pandas = sys.modules["pandas"]
        values = self.native[column]
        if str(values.dtype) == "category":
            values = values.astype(object)
        if _is_zoned(values):  # narwhals does not know the names of all zones
            return replace(self, native=pandas.DataFrame({column: values.dt.tz_convert("UTC")}), columns=(column,))
        if values.dtype != object:
            return self
        kind = pandas.api.types.infer_dtype(values, skipna=True)
        if kind == "date":
            values = pandas.to_datetime(values)
        elif kind == "decimal":
            values = values.astype("float64")
        values = values.convert_dtypes()
        values = values.dt.tz_convert("UTC") if _is_zoned(values) else values
        return replace(self, native=pandas.DataFrame({column: values}), columns=(column,))

    def _take(self, places: npt.NDArray[np.int64]) -> Any:
        return self.native.iloc[places]

    def lists_as_text(self) -> Any:
        """Convert columns with a list, also those of objects."""
        made = self.native
        for place, name in enumerate(self.columns):
            column = self.native.iloc[:, place]
            nested = column.dtype == object or str(column.dtype).startswith(_LISTS)
            if nested and any(isinstance(value, (list, tuple, set, frozenset, np.ndarray)) for value in column):
                made = made.copy(deep=False) if made is self.native else made
                made[name] = column.astype(object).map(list_text)
        return made

    def _select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        pandas = sys.modules["pandas"]
        picked, values = {}, {}
        for role, name in roles.items():
            column = self.native[name]
            if role in labels:
                picked[role], values[role] = _codes(pandas, column, self.said(name))
            elif str(column.dtype) == "category":
                picked[role] = column.astype(object).to_numpy()
            else:
                picked[role] = column.array
        return pandas.DataFrame(picked, index=range(len(self.native))), values

    def _explain(self, error: Exception) -> None:
        found = re.match("unhashable type: '(.*)'", str(error))
        if found:  # labels are stored as codes, so it is a name
            raise not_a_name(f"A column of {self.name}", found[1]) from error


def _is_zoned(values: Any) -> bool:
    """Tell whether a column of pandas holds times with a time zone."""
    return str(values.dtype).startswith("datetime64[") and "," in str(values.dtype)


def _codes(pandas: Any, column: Any, name: str) -> tuple[Any, tuple[Label, ...]]:
    """Return the codes of a column's labels, and the label of each code."""
    try:
        codes, found = pandas.factorize(column)
    except TypeError:
        wrong = next(value for value in column if getattr(type(value), "__hash__", None) is None)
        raise not_a_label(name, shown([wrong])) from None
    # Several values may be one label: an enum member and its name, empty text and null.
    coding = Coding(name, "text")
    labels = [coding.label(value) for value in found.tolist()]
    code = {label: code for code, label in enumerate(dict.fromkeys(one for one in labels if one is not None))}
    table = np.array([-1 if label is None else code[label] for label in labels] + [-1], np.int64)
    return table[codes], tuple(code)


class PolarsFrame(Frame):
    """A Polars dataframe, eager or lazy."""

    native_type = staticmethod(lambda native, role: native.collect_schema()[role])
    ordered = True

    def lists_as_text(self) -> Any:
        """Convert columns of lists when they are read."""
        polars = sys.modules["polars"]

        def texts(column: Any) -> Any:
            return polars.Series(column.name, [list_text(value) for value in column.to_list()], polars.String)

        schema = self.native.collect_schema()
        nested = [polars.col(name) for name, dtype in schema.items() if dtype in (polars.List, polars.Array)]
        return self.native.with_columns(column.map_batches(texts, return_dtype=polars.String) for column in nested)

    def _with_row_number(self, native: Any) -> Any:
        return native.with_row_index("order")  # narwhals wants order_by for lazy frames


class ArrowFrame(Frame):
    """A PyArrow table."""

    native_type = staticmethod(lambda native, role: native.schema.field(role).type)
    ordered = True
    joins_integer_widths = False
    groups_nested = False
    stacks_columns = False  # string and large_string are one type to narwhals

    def lists_as_text(self) -> Any:
        """Convert columns of lists."""
        native = self.native
        for place, field in enumerate(native.schema):
            if str(field.type).startswith(_LISTS):
                texts = [list_text(value) for value in native.column(place).to_pylist()]
                native = native.set_column(place, field.name, sys.modules["pyarrow"].array(texts, "string"))
        return native

    def _take(self, places: npt.NDArray[np.int64]) -> Any:
        return self.native.take(places)

    def _plain(self, names: Collection[str]) -> Any:
        native = self.native
        for place, field in enumerate(native.schema):
            if field.name in names:
                native = native.set_column(place, field.name, _plain_column(native.column(place)))
        return native

    def _normalize(self, frame: Query, roles: Mapping[str, str]) -> Query:
        floats = nw.selectors.by_dtype(nw.Float32, nw.Float64)
        return super()._normalize(frame.with_columns(floats + 0.0), roles)  # -0 and 0 are one label


def _plain_column(column: Any) -> Any:
    """Decode a dictionary, write UUIDs as text, and cast large text to text, with which it cannot be joined."""
    kind = str(column.type)
    if kind == "extension<arrow.uuid>":
        return sys.modules["pyarrow"].array([value and str(value) for value in column.to_pylist()], "string")
    target = column.type.value_type if kind.startswith("dictionary") else _GROUPABLE.get(kind)
    column = column if target is None else column.cast(target)
    if str(column.type) == "large_string":
        with suppress(ValueError):  # too large
            return column.cast("string")
    return column


class DaskFrame(Frame):
    """A Dask dataframe."""

    joins_unlisted = False

    def _plain(self, names: Collection[str]) -> Any:
        native = self.native
        for name in names:
            if str(native[name].dtype) == "category":
                known = native[name].cat.as_known()
                held = known.dtype.categories.dtype
                target = "Int64" if held.kind in "iu" else held  # int64 cannot hold null
                native = native.assign(**{name: known.astype(target)})
        return native

    def group(self, frame: Query, keys: Sequence[str], *aggregates: nw.Expr) -> Query:
        """Group rows, and copy the partitions: after that, a second group-by or a join knows all column names."""
        native: Any = super().group(frame, keys, *aggregates).to_native()
        return lazy(native.map_partitions(methodcaller("copy", deep=False), meta=native._meta))


class SparkFrame(Frame):
    """A Spark dataframe."""

    native_type = staticmethod(lambda native, role: native.schema[role].dataType.simpleString())

    def _plain(self, names: Collection[str]) -> Any:
        """Rename all columns by position: dots and backticks in names are syntax."""
        return self.native.toDF(*(f"column_{place}" for place in range(len(self.columns))))

    def _without_collation(self, frame: Query, texts: Sequence[str]) -> Query:
        from pyspark.sql.types import StringType

        native: Any = frame.to_native()
        collated = {role: native[role].cast("string") for role in texts if native.schema[role].dataType != StringType()}
        return lazy(native.withColumns(collated)) if collated else frame

    def _collect(self, query: Query) -> dict[str, list[Any]]:
        """Run a query without pandas and PyArrow, which narwhals would need."""
        native: Any = query.to_native()
        schema, rows = query.collect_schema(), native.collect()
        found = {name: with_none([row[place] for row in rows]) for place, name in enumerate(schema.names())}
        for name, dtype in schema.items():
            if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:  # as local times of this machine
                found[name] = [None if value is None else value.astimezone(UTC) for value in found[name]]
        return found
