"""Tables of any engine: pick columns by role, run queries, group rows.

Queries are written once, with narwhals, and return plain Python values. Columns are renamed to their roles, so that no
column name of the data becomes part of a query. What differs between engines is in the subclasses of ``Frame``:
``duckdb``, ``dataframes`` (pandas, Polars, PyArrow, Dask, Spark) and ``databases`` (Ibis). Expressions stay within the
limits of SQLite's parser on all engines: ``balanced`` and ``replace_values``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from dhkappa.core import Label
from dhkappa.core.labels import RULE, NotALabelError, list_text, to_label
from dhkappa.errors import DataError

Query: TypeAlias = nw.LazyFrame[Any]  # a table that is read when it is fetched
Ask: TypeAlias = Callable[[Query], dict[str, list[Any]]]  # run a query
ROW_NUMBER = "dhkappa: row number"  # name of the column that numbers the rows of a file
SHOWN = "shown_"  # start of the roles of columns whose values are only shown

_TEST = "test_"  # start of the role of a column by which rows are kept
_AT_ONCE = 50  # values replaced in one expression: SQLite allows 127 arguments of a function

# Schemes of database addresses, with the package that each needs.
_POSTGRES = "dhkappa[postgres]"
DATABASES = {"postgresql": _POSTGRES, "postgres": _POSTGRES, "sqlite": "ibis-framework[sqlite]", "duckdb": "duckdb"}

_ENGINES = {  # by narwhals' name: the name of the engine, and the module and the name of what makes its frames
    "PANDAS": ("pandas", "dataframes", "PandasFrame"),
    "POLARS": ("Polars", "dataframes", "PolarsFrame"),
    "PYARROW": ("PyArrow", "dataframes", "ArrowFrame"),
    "DASK": ("Dask", "dataframes", "DaskFrame"),
    **dict.fromkeys(("PYSPARK", "PYSPARK_CONNECT"), ("Spark", "dataframes", "SparkFrame")),
    "DUCKDB": ("DuckDB", "duckdb", "DuckDBFrame"),
    "IBIS": ("Ibis", "databases", "ibis_frame"),
}


@dataclass(frozen=True)
class Coding:
    """How the labels of a column are stored in the engine."""

    name: str  # of the column, and of its table, as messages say it
    kind: str  # "text", "integer", "float" or "boolean"
    values: tuple[Label, ...] | None = None  # the label of each code, if labels are stored as codes; -1 is missing

    @cached_property
    def codes(self) -> dict[Label, int]:
        """The code of each label."""
        return {label: code for code, label in enumerate(self.values or ())}

    def labels(self, found: Sequence[Any]) -> list[Label | None]:
        """Return the labels for values of the engine."""
        if self.values is not None:
            table = (*self.values, None)
            return [None if value is None else table[int(value)] for value in found]  # -1 is the last
        known = {value: self.label(value) for value in set(found)}
        return [known[value] for value in found]

    def label(self, value: Any) -> Label | None:
        """Return the label for any value; None if missing."""
        if isinstance(value, Decimal) and value == value.to_integral_value():
            value = int(value)
        try:
            return to_label(value)
        except NotALabelError as error:
            raise not_a_label(self.name, str(error)) from None

    def value(self, label: Label) -> Any:
        """Return the engine's value for a label, or None if the column cannot hold it."""
        if self.values is not None:
            return self.codes.get(label)
        if isinstance(label, str) or self.kind == "text":
            return label if isinstance(label, str) and self.kind == "text" else None
        if self.kind == "boolean":
            return bool(label) if label in (0, 1) else None
        return float(label) if self.kind == "float" else int(label)


def not_a_label(column: str, value: str) -> DataError:
    """Return the error for a column with values that are not labels."""
    return DataError(f"Column {column} holds {value}.", code="not-a-label", hint=RULE)


def not_a_name(column: str, kind: str) -> DataError:
    """Return the error for a column with values that cannot name items or annotators."""
    message = f"{column} holds values of type {kind}, which cannot name items or annotators."
    return DataError(message, code="wrong-type", hint="Write ids as text.")


Test: TypeAlias = Callable[[str], nw.Expr]  # whether to keep a row, by the column with a role
Join: TypeAlias = Callable[[Query, str], Query]  # returns the rows to keep, by the column with a role


@dataclass(frozen=True)
class Frame:
    """A table of some engine. The methods fit any engine that narwhals knows; subclasses override what differs."""

    native: Any
    engine: str
    columns: tuple[str, ...]
    in_memory: bool = False  # the rows are in this process
    name: str = "the table"  # in messages
    hidden: frozenset[str] = frozenset()  # columns of annotators that are left out
    tests: tuple[tuple[str, Test], ...] = ()  # columns by which rows are kept, if the rows are elsewhere
    negated: bool = False  # the other rows are kept
    joined: tuple[str, Join] | None = None  # a column by which rows are kept, after these tests
    rows: Any = None  # (n,) places of the rows that were kept, if they are in this process

    count_type: ClassVar[Any] = nw.Int64  # in which packed counts are added up
    native_type: ClassVar[Any] = staticmethod(lambda native, role: "")  # the engine's type of a column
    ordered = False  # rows have a reliable order
    has_nan = True
    joins_integer_widths = True
    groups_nested = True  # lists and objects can be grouped, as names of rows in wide format
    stacks_columns = True  # columns with one narwhals type can be concatenated
    joins_unlisted = True  # a column of nulls can be appended
    checks_memory = False  # rows are counted before they are fetched

    @property
    def names(self) -> list[str]:
        """Column names that a role can have: not empty, not numbers, not ours."""
        gone = {ROW_NUMBER, *self.hidden}
        return [name for name in self.columns if isinstance(name, str) and name and name not in gone]

    def said(self, column: str | None) -> str:
        """Return the name of a column for a message."""
        return f"{column!r} of {self.name}"

    @property
    def has_row_order(self) -> bool:
        """Whether rows have an order, as in a dataframe, or in a file whose rows were numbered."""
        return self.ordered or ROW_NUMBER in self.columns

    @property
    def first_row(self) -> int:
        """The number of the first row: that of a file whose rows were numbered is 1."""
        return 1 if ROW_NUMBER in self.columns else 0

    def numbered(self) -> Frame:
        """Return the table with row numbers, if it is a file and the engine does not keep the order of rows."""
        return self

    @property
    def row_names(self) -> list[Any] | None:
        """Names of the rows (the index of pandas), if the engine has them; their places if rows were left out."""
        return None if self.rows is None else self.rows.tolist()

    def comparable(self, column: str) -> Frame:
        """Return the table with a column in a type whose values can be compared."""
        return self

    @property
    def is_filtered(self) -> bool:
        """Whether rows are left out when columns are picked."""
        return bool(self.tests) or self.joined is not None

    def keep_rows(self, column: str, test: Test) -> Frame:
        """Return the table with the rows for which a test of a column holds."""
        if not self.in_memory:
            return replace(self, tests=(*self.tests, (column, test)))
        return self._keep_places(self.comparable(column), column, lambda frame, role: frame.filter(test(role)))

    def rejected_rows(self, column: str, test: Test) -> Frame:
        """Return the table with the rows that ``keep_rows`` leaves out, and others that were left out before."""
        if self.in_memory:
            return self.keep_rows(column, lambda role: ~test(role))
        return replace(self.keep_rows(column, test), negated=True)

    def join_rows(self, column: str, join: Join) -> Frame:
        """Return the table with the rows that a join of a column keeps; it replaces the join before."""
        return self._keep_places(self, column, join) if self.in_memory else replace(self, joined=(column, join))

    def _keep_places(self, picked: Frame, column: str, keep: Join) -> Frame:
        frame, _ = picked.pick({_TEST: column}, row_number=True)
        with self.asking():
            places = keep(frame, _TEST).select("order").sort("order").collect().get_column("order").to_numpy()
        return replace(self, native=self._take(places), rows=places if self.rows is None else self.rows[places])

    def _take(self, places: npt.NDArray[np.int64]) -> Any:
        """Return some rows of a table in memory."""
        return self.native[places]

    def lists_as_text(self) -> Any:
        """Return the table of the engine with lists of labels, for multi-label data, as text that can be grouped."""
        return self.native

    def pick(
        self, roles: Mapping[str, str], labels: Sequence[str] = (), row_number: bool = False
    ) -> tuple[Query, dict[str, Coding]]:
        """Return columns named by role, and codings of labels; ``row_number`` adds ``order``, which ascends by row."""
        with self.asking():
            numbered = row_number and ROW_NUMBER in self.columns
            wanted = {**roles, "order": ROW_NUMBER} if numbered else dict(roles)
            tests = {f"{_TEST}{place}": column for place, (column, _) in enumerate(self.tests)}
            tests |= {} if self.joined is None else {_TEST: self.joined[0]}
            wanted |= tests
            native, values = self._select(wanted, labels)
            if row_number and not numbered:
                native = self._with_row_number(native)
            frame = self._normalize(lazy(native), wanted)
            frame = self._filter(frame).drop(*tests) if tests else frame
            schema = frame.collect_schema()
        codings = {role: Coding(self.said(roles[role]), kind_of(schema[role]), values.get(role)) for role in labels}
        for role, coding in codings.items():
            if not coding.kind:
                raise not_a_label(coding.name, f"values of type {schema[role]}")
        for role in {"item", "annotator"} & roles.keys():
            nested = schema[role].is_nested() and ("label" in roles or not self.groups_nested)
            if nested or "extension" in self._native_name(frame, role):
                raise not_a_name(f"Column {self.said(roles[role])}", str(schema[role]))
        return frame, codings

    def _filter(self, frame: Query) -> Query:
        """Return the rows that are kept, by the columns with roles of tests."""
        if self.tests:
            held = [test(f"{_TEST}{place}") for place, (_, test) in enumerate(self.tests)]
            every = balanced(held, lambda one, other: one & other)
            frame = frame.filter(~every if self.negated else every)
        return frame if self.joined is None else self.joined[1](frame, _TEST)

    def _select(self, roles: Mapping[str, str], labels: Sequence[str]) -> tuple[Any, dict[str, tuple[Label, ...]]]:
        """Return columns by position, renamed to their roles; and the labels of those stored as codes."""
        chosen = [nw.nth(self.columns.index(name)).alias(role) for role, name in roles.items()]
        return lazy(self._plain(roles.values())).select(*chosen).to_native(), {}

    def _plain(self, names: Collection[str]) -> Any:
        """Return the table with some columns changed so that they can be selected, grouped and joined."""
        return self.native

    def _with_row_number(self, native: Any) -> Any:
        return nw.from_native(native).with_row_index("order").to_native()

    def _normalize(self, frame: Query, roles: Mapping[str, str]) -> Query:
        """Cast dictionaries and columns without a type, in which all is null, to text, and NaN to null."""
        new = []
        for role, dtype in frame.collect_schema().items():
            column = nw.col(role)
            native = self._native_name(frame, role)
            if dtype in (nw.Categorical, nw.Enum) or native.startswith(("null", "void", "unknown")):
                new.append(column.cast(nw.String))
            elif dtype in (nw.Int128, nw.UInt128):  # some engines return them as floats
                new.append(column.cast(nw.Int64))
            elif dtype.is_float() and self.has_nan:
                new.append(column.fill_nan(None))
        frame = frame.with_columns(*new) if new else frame
        texts = [role for role, dtype in frame.collect_schema().items() if dtype == nw.String]
        return self._without_collation(frame, texts)

    def _without_collation(self, frame: Query, texts: Sequence[str]) -> Query:
        """Make the engine compare text by bytes, whatever its collation."""
        return frame

    def _native_name(self, frame: Query, role: str) -> str:
        """Return the engine's name of a type that narwhals does not know, else empty text."""
        unknown = frame.collect_schema()[role] == nw.Unknown
        return str(self.native_type(frame.to_native(), role)).strip('"').lower() if unknown else ""

    def fetch(self, query: Query) -> dict[str, list[Any]]:
        """Run a query and return its columns, null and NaN as None."""
        with self.asking():
            return self._collect(query)

    def _collect(self, query: Query) -> dict[str, list[Any]]:
        rows = query.collect()
        return {name: with_none(rows.get_column(name).to_list()) for name in rows.columns}

    def group(self, frame: Query, keys: Sequence[str], *aggregates: nw.Expr) -> Query:
        """Group rows by some columns; null is a group too."""
        return frame.group_by(*keys).agg(*aggregates)

    def repeated(self, frame: Query, keys: Sequence[str]) -> Query:
        """Return rows that may equal another row in some columns; all rows, unless the engine knows better."""
        return frame

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Raise errors of the engine as ``DataError``, with the engine's message below."""
        try:
            yield
        except (DataError, KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            self._explain(error)
            message = f"{self.engine} could not run the query:\n{_message(error)}"
            raise DataError(message, code="engine-error") from error

    def _explain(self, error: Exception) -> None:
        """Raise a clearer error for an error of the engine, if there is one."""


def frame_of(data: Any) -> Frame | None:
    """Return the table, or None if the data are not a table of a known engine."""
    if not any(hasattr(type(data), name) for name in ("columns", "column_names")):
        return None
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":  # column names may be of any type, and repeated
        return _frame("PANDAS", data, tuple(data.columns), True) if data.ndim == 2 else None
    if library == "pyarrow" and type(data).__name__ == "Table":  # column names may be repeated
        return _frame("PYARROW", data, tuple(data.column_names), True)
    try:
        frame = nw.from_native(data)
    except TypeError:
        return None
    kind = frame.implementation.name
    with Frame(data, kind.title(), ()).asking():
        return _frame(kind, data, tuple(frame.collect_schema().names()), isinstance(frame, nw.DataFrame))


def _frame(kind: str, data: Any, columns: tuple[str, ...], in_memory: bool) -> Frame:
    if kind not in _ENGINES:
        return Frame(data, kind.title(), columns, in_memory)
    engine, module, name = _ENGINES[kind]
    made: Frame = getattr(import_module(f"{__name__}.{module}"), name)(data, engine, columns, in_memory)
    return made


def lists_as_text(data: Any) -> Any:
    """Return data in which lists of labels are text: rows of votes, labels by labeler, or a table; others unchanged."""
    if isinstance(data, (list, tuple)):
        return [[list_text(cell) for cell in row] if isinstance(row, (list, tuple)) else row for row in data]
    if isinstance(data, np.ndarray) and data.dtype == object:
        return np.array([*map(list_text, data.ravel()), None], object)[:-1].reshape(data.shape)
    if hasattr(data, "votes"):  # the tables of a file that was opened
        return replace(data, votes=lists_as_text(data.votes), items=lists_as_text(data.items))
    if hasattr(data, "to_frame") and not hasattr(data, "columns"):  # a column of pandas or Polars
        return nw.from_native(lists_as_text(data.to_frame()), eager_only=True)[:, 0].to_native()
    frame = frame_of(data)
    return data if frame is None else frame.lists_as_text()


def labels_as_text(suggested: Any) -> Any:
    """Return suggested labels in which lists are text; names of columns are unchanged."""
    if isinstance(suggested, Mapping):
        return {name: labels_as_text(labels) for name, labels in suggested.items()}
    if isinstance(suggested, (list, tuple)):
        return [list_text(cell, "suggested") for cell in suggested]
    return lists_as_text(suggested)


def lazy(native: Any) -> Query:
    """Return a table of an engine as a lazy frame of narwhals."""
    frame: Query = nw.from_native(native).lazy()
    return frame


def kind_of(dtype: Any) -> str:
    """Return ``"text"``, ``"integer"``, ``"float"`` or ``"boolean"``; empty if values cannot be labels."""
    numeric = "integer" if dtype.is_integer() else "float" if dtype.is_float() else ""
    return numeric or {nw.String: "text", nw.Boolean: "boolean"}.get(type(dtype), "")


def as_number(test: nw.Expr) -> nw.Expr:
    """Return 1 where a test holds, else 0: not every engine can negate, add up or group tests with nulls."""
    return nw.when(test).then(nw.lit(1)).otherwise(nw.lit(0))


def is_empty(role: str, is_text: bool) -> nw.Expr:
    """Return whether a value is missing; empty text is, too."""
    absent = nw.col(role).is_null()
    return absent | (nw.col(role) == "") if is_text else absent


def kind_in(frame: Query, role: str) -> str:
    """Return the kind of a column, see ``kind_of``."""
    return kind_of(frame.collect_schema()[role])


def _message(error: Exception) -> str:
    """Return the engine's message without stack traces, of which Java and Python workers add many lines."""
    own = (line for line in str(error).splitlines() if not line.startswith(("\tat ", "  File ", "    ")))
    lines = [line for line in own if line.strip()] or [""]
    rest = lines[1:] if len(lines) <= 10 else [*lines[1:4], "...", *lines[-5:]]
    return "\n".join([f"{type(error).__name__}: {lines[0]}", *rest])


def with_none(column: list[Any]) -> list[Any]:
    """Replace NaN and pandas' NA by None, and arrays by lists."""
    try:
        return [None if value is None or value != value else value for value in column]
    except (TypeError, ValueError):  # NA and arrays have no truth value
        column = [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
        return [None if type(value).__name__ in ("NoneType", "NAType") or value != value else value for value in column]


def balanced(terms: Sequence[nw.Expr], join: Callable[[nw.Expr, nw.Expr], nw.Expr]) -> nw.Expr:
    """Join terms as a balanced tree: SQLite's parser overflows on deep nesting."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return join(balanced(terms[:half], join), balanced(terms[half:], join))


def replace_values(frame: Query, role: str, values: Mapping[Any, Any]) -> Query:
    """Replace values of a column; no new value is itself replaced.

    One expression, in which every part refers to the old column: engines insert a replaced column wherever it is used,
    so that replacing step by step would multiply the size of the query.
    """
    if not values:
        return frame
    parts: list[nw.Expr] = [nw.when(nw.col(role) == nw.lit(old)).then(nw.lit(new)) for old, new in values.items()]
    while len(parts) > _AT_ONCE:
        parts = [nw.coalesce(*parts[place : place + _AT_ONCE]) for place in range(0, len(parts), _AT_ONCE)]
    return frame.with_columns(nw.coalesce(*parts, nw.col(role)).alias(role))
