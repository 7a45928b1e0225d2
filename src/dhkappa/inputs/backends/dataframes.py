"""Dataframe libraries: pandas, Polars, PyArrow, Dask and Spark."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dhkappa.core import Label
from dhkappa.errors import shown
from dhkappa.inputs.backends import Coding, Frame, lazy, not_a_label, with_none

_GROUPABLE = {"string_view": "string", "halffloat": "float"}  # types that PyArrow cannot group by


class PandasFrame(Frame):
    """A pandas dataframe. Labels are stored as codes, so that objects of any type can be grouped."""

    name = "pandas"
    ordered = True

    @property
    def row_names(self) -> list[Any] | None:
        """The index."""
        return list(self.native.index)

    def select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        """Return columns by role; labels as codes."""
        pandas = sys.modules["pandas"]
        picked, values = {}, {}
        for role, name in roles.items():
            column = self.native[name]
            if role in labels:
                picked[role], values[role] = _codes(pandas, column, name)
            elif str(column.dtype) == "category":
                picked[role] = column.astype(object).to_numpy()
            else:
                picked[role] = column.array
        return pandas.DataFrame(picked, index=range(len(self.native))), values


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

    name = "Polars"
    ordered = True

    def with_row_number(self, native: Any) -> Any:
        """Add the column ``order``."""
        return native.with_row_index("order")  # narwhals wants order_by for lazy frames

    def native_type(self, native: Any, role: str) -> Any:
        """Return the type of a column."""
        return native.collect_schema()[role]


class ArrowFrame(Frame):
    """A PyArrow table."""

    name = "PyArrow"
    ordered = True
    joins_integer_widths = False
    stacks_columns = False  # string and large_string are one type to narwhals

    def select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        """Return columns by role, with types that can be grouped and joined."""
        native = self.native
        for place, field in enumerate(native.schema):
            if field.name in roles.values():
                column = _plain_column(native.column(place))
                native = native if column.type == field.type else native.set_column(place, field.name, column)
        floats = nw.selectors.by_dtype(nw.Float32, nw.Float64)
        return self.select_from(native, roles).with_columns(floats + 0.0).to_native(), {}  # -0 and 0 are one label

    def native_type(self, native: Any, role: str) -> Any:
        """Return the type of a column."""
        return native.schema.field(role).type


def _plain_column(column: Any) -> Any:
    """Decode a dictionary; cast large text to text, unless it is too large, because the two cannot be joined."""
    kind = str(column.type)
    target = column.type.value_type if kind.startswith("dictionary") else _GROUPABLE.get(kind)
    column = column if target is None else column.cast(target)
    if str(column.type) == "large_string":
        with suppress(ValueError):
            return column.cast("string")
    return column


class DaskFrame(Frame):
    """A Dask dataframe."""

    name = "Dask"
    joins_unlisted = False

    def select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        """Return columns by role, categories decoded."""
        native = self.native
        for name in self.columns:
            if name in roles.values() and str(native[name].dtype) == "category":
                known = native[name].cat.as_known()
                held = known.dtype.categories.dtype
                target = "Int64" if held.kind in "iu" else held  # int64 cannot hold null
                native = native.assign(**{name: known.astype(target)})
        return self.select_from(native, roles).to_native(), {}

    def group(self, frame: nw.LazyFrame[Any], keys: Sequence[str], *aggregates: nw.Expr) -> nw.LazyFrame[Any]:
        """Group rows. A copy of the partitions makes Dask forget column names that narwhals has since changed.

        Without it, a second group-by or a join fails.
        """
        native: Any = frame.group_by(*keys).agg(*aggregates).to_native()
        copied = native.map_partitions(methodcaller("copy", deep=False), meta=native._meta)
        return lazy(copied)


class SparkFrame(Frame):
    """A Spark dataframe."""

    name = "Spark"

    def select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        """Return columns by role. All are renamed by position first: dots and backticks in names are syntax."""
        places = {name: f"column_{place}" for place, name in enumerate(self.columns)}
        frame = lazy(self.native.toDF(*places.values()))
        return frame.select(*(nw.col(places[name]).alias(role) for role, name in roles.items())).to_native(), {}

    def normalize(self, frame: nw.LazyFrame[Any], roles: Mapping[str, str]) -> nw.LazyFrame[Any]:
        """Compare text by bytes, whatever its collation."""
        from pyspark.sql.types import StringType

        frame = super().normalize(frame, roles)
        native: Any = frame.to_native()
        texts = [role for role, dtype in frame.collect_schema().items() if dtype == nw.String]
        collated = {role: native[role].cast("string") for role in texts if native.schema[role].dataType != StringType()}
        return lazy(native.withColumns(collated)) if collated else frame

    def native_type(self, native: Any, role: str) -> Any:
        """Return the type of a column."""
        return native.schema[role].dataType.simpleString()

    def collect(self, query: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
        """Run a query without pandas and PyArrow, which narwhals would need."""
        native: Any = query.to_native()
        names, rows = query.collect_schema().names(), native.collect()
        return {name: with_none([row[place] for row in rows]) for place, name in enumerate(names)}
