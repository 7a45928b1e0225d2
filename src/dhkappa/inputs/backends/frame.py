"""Engines: whatever holds a table, asked in one way. All that differs between engines is here.

Columns are picked by the part they play and called by it from then on, so that no name of the data becomes part of a
query. A query is written once, for ``narwhals``; its rows come back as plain Python values.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import repeat
from operator import is_, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from dhkappa.core.labels import RULE, Label, NotALabelError, plain
from dhkappa.errors import DataError, shown
from dhkappa.inputs.backends.collation import misfits, spelled
from dhkappa.inputs.backends.duckdb import in_words, quoted, raise_if_full, raise_if_stopped
from dhkappa.inputs.columns import OWN
from dhkappa.memory import own_words

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_NAMES = {
    "PANDAS": "pandas",
    "POLARS": "Polars",
    "PYARROW": "PyArrow",
    "DUCKDB": "DuckDB",
    "DASK": "Dask",
    "PYSPARK": "Spark",
    "PYSPARK_CONNECT": "Spark",
    "IBIS": "Ibis",
    "SQLFRAME": "SQLFrame",
}
_DATABASES = {"postgres": "Postgres", "sqlite": "SQLite"}  # which Ibis asks
_IN_MEMORY = ("PANDAS", "MODIN", "CUDF", "POLARS", "PYARROW")
_PLAIN_TYPES = {"string_view": "string", "halffloat": "float"}
_CASELESS = ("mysql", "mssql")  # databases that compare text without case unless they are told otherwise
_FILE_TROUBLE = re.compile("CSV Error|CSV Parser|JSON|[Pp]arquet|[Uu][Tt][Ff]-?8|[Gg][Zz][Ii][Pp]|IO Error")
ORDER = f"{OWN}order of rows"
"""A column that counts the rows of a file."""


@dataclass(frozen=True)
class Coding:
    """How the labels of a column are written in the engine.

    Attributes
    ----------
    name : what the column is called in the data
    kind : what its values are: ``"text"``, ``"integer"``, ``"float"`` or ``"boolean"``
    values : where labels are written as codes from 0, the labels they stand for; -1 is missing
    """

    name: str
    kind: str
    values: tuple[Label, ...] | None = None

    @cached_property
    def codes(self) -> dict[Label, int]:
        """The code of each label, where labels are written as codes."""
        return {label: code for code, label in enumerate(self.values or ())}

    def labels(self, found: Sequence[Any]) -> list[Label | None]:
        """Return the labels that values of the engine stand for."""
        if self.values is not None:
            table = (*self.values, None)
            return [None if value is None else table[int(value)] for value in found]  # -1 is the last
        known = {value: self._plain(value) for value in set(found)}
        return [known[value] for value in found]

    def labels_of(self, values: Sequence[Any]) -> list[Label | None]:
        """Return the labels that values stand for, whatever they are."""
        return [self._plain(value) for value in values]

    def value(self, label: Label) -> Any:
        """Return what the engine has for a label, or None where it cannot have it."""
        if self.values is not None:
            return self.codes.get(label)
        if isinstance(label, str) or self.kind == "text":
            return label if isinstance(label, str) and self.kind == "text" else None
        if self.kind == "boolean":
            return bool(label) if label in (0, 1) else None
        return float(label) if self.kind == "float" else int(label)

    def _plain(self, value: Any) -> Label | None:
        if isinstance(value, Decimal) and value == value.to_integral_value():
            value = int(value)
        try:
            return plain(value)
        except NotALabelError as error:
            raise DataError(f"column {self.name!r} holds {error}: {RULE}.") from None


@dataclass(frozen=True, slots=True)
class Frame:
    """A table of some engine.

    Attributes
    ----------
    native : the engine's own
    engine : what the engine is called
    kind : its name in narwhals
    in_memory : whether the rows are in this process
    columns : names of the columns, in order
    """

    native: Any
    engine: str
    kind: str
    in_memory: bool
    columns: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether its rows have an order that can be relied on."""
        return self.kind in ("PANDAS", "POLARS", "PYARROW") or ORDER in self.columns

    def pick(
        self, parts: Mapping[str, str], labels: Sequence[str] = (), numbered: bool = False
    ) -> tuple[nw.LazyFrame[Any], dict[str, Coding]]:
        """Return some columns, called by their parts, and how those that hold labels are written.

        With ``numbered`` there is one more column, ``order``, that ascends with the rows.
        """
        import narwhals.stable.v2 as nw

        with asking(self.engine):
            values: dict[str, tuple[Label, ...]] = {}
            wanted = dict(parts) | ({"order": ORDER} if numbered and ORDER in self.columns else {})
            if self.kind == "PANDAS":
                native, values = _pick_pandas(self.native, wanted, labels)
            else:
                native = self._renamed(wanted)
            if numbered and "order" not in wanted:
                native = _numbered(native, self.kind)
            frame = nw.from_native(native).lazy()
            _check_fit(frame, wanted)
            frame, schema = _normal(frame)
        codings = {part: Coding(parts[part], _kind(schema[part]), values.get(part)) for part in labels}
        for part, coding in codings.items():
            if not coding.kind:
                raise DataError(f"column {coding.name!r} holds values of type {schema[part]}: {RULE}; write it as one.")
        return frame, codings

    def _renamed(self, parts: Mapping[str, str]) -> Any:
        """Call some columns by their parts, taking them by place: engines have names of their own that are syntax."""
        import narwhals.stable.v2 as nw

        native = self.native
        if self.kind == "DUCKDB":
            _refuse_json(native, parts)
            return native.project(", ".join(f"{quoted(name)} AS {part}" for part, name in parts.items()))
        if self.kind.startswith("PYSPARK"):
            place = {name: f"column_{index}" for index, name in enumerate(self.columns)}
            frame = nw.from_native(native.toDF(*place.values())).lazy()
            return frame.select(*(nw.col(place[name]).alias(part) for part, name in parts.items())).to_native()
        if self.kind == "DASK":
            native = _without_categories(native, set(parts.values()))
        elif self.kind == "PYARROW":
            native = _without_dictionaries(native, set(parts.values()))
        chosen = [nw.nth(self.columns.index(name)).alias(part) for part, name in parts.items()]
        frame = nw.from_native(native).lazy().select(*chosen)
        if self.kind == "PYARROW":  # which would take 0 and -0 for two
            frame = frame.with_columns(nw.selectors.by_dtype(nw.Float32, nw.Float64) + 0.0)
        return frame.to_native()


def frame_of(data: Any) -> Frame | None:
    """Return the table that data are, or None where they are no table of an engine that is known."""
    if not any(hasattr(type(data), name) for name in ("columns", "column_names")):
        return None
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":  # whose columns may have any names, also twice
        return Frame(data, "pandas", "PANDAS", True, tuple(data.columns)) if data.ndim == 2 else None
    if library == "pyarrow" and type(data).__name__ == "Table":  # also twice
        return Frame(data, _NAMES["PYARROW"], "PYARROW", True, tuple(data.column_names))
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(data)
    except TypeError:
        return None
    kind = frame.implementation.name
    engine = _NAMES.get(kind, kind.title())
    with asking(engine):
        database = data.get_backend().name if kind == "IBIS" else ""
        engine = _DATABASES.get(database, engine)
        if database in _CASELESS:
            raise DataError(
                f"tables of {database} are not counted where they are, as it takes 'A' and 'a' for one "
                "label: fetch the rows, and pass table.to_pyarrow()."
            )
        columns = tuple(frame.collect_schema().names())
    return Frame(data, engine, kind, kind in _IN_MEMORY and isinstance(frame, nw.DataFrame), columns)


def fetch(frame: nw.LazyFrame[Any], engine: str) -> dict[str, list[Any]]:
    """Run a query and return its columns, null and NaN as None."""
    with asking(engine):
        names = frame.collect_schema().names()
        kind = frame.implementation.name
        native: Any = frame.to_native()
        if kind == "DUCKDB":  # narwhals would need pyarrow
            found = native.fetchnumpy()
            columns = {
                name: _with_none(found[name].tolist()) if found[name].dtype.kind == "f" else found[name].tolist()
                for name in names
            }
            for name in names:
                nulls = np.count_nonzero(np.ma.getmaskarray(found[name]))
                if found[name].dtype.kind == "O" and sum(map(is_, columns[name], repeat(None))) != nulls:
                    raise MemoryError  # DuckDB goes on where Python had no memory for a text
            return columns
        if kind.startswith("PYSPARK"):
            rows = native.collect()
            columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        else:
            rest = frame.collect()
            columns = {name: rest.get_column(name).to_list() for name in names}
    return {name: _with_none(column) for name, column in columns.items()}


def grouped(frame: nw.LazyFrame[Any], keys: Sequence[str], *aggregates: nw.Expr) -> nw.LazyFrame[Any]:
    """Group rows by some columns; missing ones are a group too."""
    import narwhals.stable.v2 as nw

    found = frame.group_by(*keys).agg(*aggregates)
    if frame.implementation.name != "DASK":
        return found
    # Dask remembers how a group-by has laid out its partitions, by names that narwhals has changed since, and then
    # fails to join or group again; partitions that went through a function it does not know make it forget.
    native: Any = found.to_native()
    copied = native.map_partitions(methodcaller("copy", deep=False), meta=native._meta)  # known where we are not
    same: nw.LazyFrame[Any] = nw.from_native(copied).lazy()
    return same


def alike(frame: nw.LazyFrame[Any], keys: Sequence[str]) -> nw.LazyFrame[Any]:
    """Leave out rows that no other can equal in some columns, by hashes: DuckDB spills no text that it groups by."""
    import narwhals.stable.v2 as nw

    if frame.implementation.name != "DUCKDB" or "text" not in {kind_of(frame, key) for key in keys}:
        return frame
    native: Any = frame.to_native()
    code = f"hash({', '.join(map(quoted, keys))})"
    shared = native.aggregate(f"{code} AS code, count(*) AS n", code).filter("n > 1").set_alias("shared")
    own = f"hash({', '.join(f'own.{quoted(key)}' for key in keys)})"
    kept: nw.LazyFrame[Any] = nw.from_native(
        native.set_alias("own").join(shared, f"{own} = shared.code", "semi")
    ).lazy()
    return kept


@contextmanager
def asking(engine: str) -> Iterator[None]:
    """Turn what an engine raises into one sentence, with its own message below."""
    try:
        yield
    except (DataError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        raise_if_stopped(error)
        if engine == "DuckDB":
            raise_if_full(error, "what DuckDB counts")
        words = own_words(error) if engine == "DuckDB" else ""
        if "different connections" in words:
            raise DataError(
                "the votes and items= are tables of two DuckDB connections, which cannot be joined: open both in one, "
                "or pass both as paths."
            ) from error
        if "busy with another call" in words:
            raise DataError(
                "the DuckDB connection of the table is busy in another thread, and answers one at a time: give each "
                "thread a table of its own, by connection.cursor() or from a path."
            ) from error
        if "out of range for the destination type INT64" in words:
            raise DataError("a column holds whole numbers of more than 64 bits: write them as text.") from error
        if engine == "DuckDB" and _FILE_TROUBLE.search(str(error)):
            raise DataError(in_words(str(error), "a file of the data")) from error
        raise DataError(f"{engine} could not answer; what it says is below.\n{_message(error)}") from error


def _message(error: Exception) -> str:
    """Return an engine's own words, without the calls that led there: Java adds hundreds, and Python ends with why."""
    lines = [
        line for line in str(error).splitlines() if line.strip() and not line.startswith(("\tat ", "  File ", "    "))
    ]
    lines = lines or [""]
    rest = lines[1:] if len(lines) <= 10 else [*lines[1:4], "...", *lines[-5:]]
    return "\n".join([f"{type(error).__name__}: {lines[0]}", *rest])


def _with_none(column: list[Any]) -> list[Any]:
    """Write NaN and the NA of pandas as None."""
    try:
        return [None if value is None or value != value else value for value in column]
    except TypeError:  # NA says neither yes nor no
        return [
            None if value is None or type(value).__name__ == "NAType" or value != value else value for value in column
        ]


def _normal(frame: nw.LazyFrame[Any]) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
    """Write text as text and NaN as null, where engines have other ways."""
    import narwhals.stable.v2 as nw

    new, sqlite = [], _is_sqlite(frame)
    for part, dtype in frame.collect_schema().items():
        if dtype.is_integer() and sqlite:  # whatever width it is declared with, SQLite holds 64 bits
            new.append(nw.col(part).cast(nw.Int64))
        elif dtype in (nw.Categorical, nw.Enum) or (dtype == nw.Unknown and _untyped(frame, part)):
            new.append(nw.col(part).cast(nw.String))
        elif dtype == nw.Decimal and sqlite:  # which rounds nothing to the digits that are declared
            new.append(nw.col(part).cast(nw.Float64))
        elif dtype in (nw.Int128, nw.UInt128):  # which some ways back from an engine make floats of
            new.append(nw.col(part).cast(nw.Int64))
        elif dtype.is_float() and not sqlite:
            new.append(nw.col(part).fill_nan(None))
    frame = spelled(frame.with_columns(*new) if new else frame)
    return frame, dict(frame.collect_schema())


def _check_fit(frame: nw.LazyFrame[Any], parts: Mapping[str, str]) -> None:
    """Refuse columns of SQLite that hold values of other types than they are declared as."""
    query = misfits(frame) if _is_sqlite(frame) else None
    if query is None:
        return
    for part, [misfit] in fetch(query, "SQLite").items():
        if misfit:
            said = str(frame.collect_schema()[part]).replace("Unknown", "String")
            raise DataError(
                f"column {parts[part]!r} of SQLite holds values of other types than {said}, as which it is read: mend "
                "them, or make it a column of TEXT."
            )


def _is_sqlite(frame: nw.LazyFrame[Any]) -> bool:
    """Tell whether SQLite holds a table: it has no NaN, and no question for it."""
    native: Any = frame.to_native()
    return bool(frame.implementation.name == "IBIS" and native.get_backend().name == "sqlite")


def _kind(dtype: Any) -> str:
    """Say what values of a type are; nothing where they cannot be labels."""
    import narwhals.stable.v2 as nw

    if dtype.is_integer():
        return "integer"
    kinds = {nw.String: "text", nw.Boolean: "boolean"}
    return "float" if dtype.is_float() else kinds.get(type(dtype), "")


def kind_of(frame: nw.LazyFrame[Any], part: str) -> str:
    """Say what the values of a column are: see ``Coding``."""
    return _kind(frame.collect_schema()[part])


def kind_of_name(frame: nw.LazyFrame[Any], part: str) -> str:
    """Say what the values of a column are that names items: as ``kind_of``, or what kind of time; nothing of others."""
    dtype = frame.collect_schema()[part]
    return type(dtype).__name__.lower() if dtype.is_temporal() else _kind(dtype)


def _untyped(frame: nw.LazyFrame[Any], part: str) -> bool:
    """Tell whether a column has no type, as all of it is null."""
    native: Any = frame.to_native()
    kind = frame.implementation.name
    if kind == "POLARS":
        dtype = native.collect_schema()[part]
    elif kind.startswith("PYSPARK"):
        dtype = native.schema[part].dataType.simpleString()
    elif kind == "DUCKDB":
        dtype = native.types[native.columns.index(part)]
    elif kind in ("PYARROW", "IBIS"):
        schema = native.schema if kind == "PYARROW" else native.schema()
        dtype = schema.field(part).type if kind == "PYARROW" else schema[part]
    else:
        return False
    return str(dtype).strip('"').lower().startswith(("null", "void", "unknown"))


def _pick_pandas(
    native: Any, parts: Mapping[str, str], labels: Sequence[str]
) -> tuple[Any, dict[str, tuple[Label, ...]]]:
    """Pick columns of pandas: labels as codes, whatever type they have, so that objects of any kind group well."""
    pandas = sys.modules["pandas"]
    picked, values = {}, {}
    for part, name in parts.items():
        column = native[name]
        if part in labels:
            try:
                codes, found = pandas.factorize(column)
            except TypeError:
                wrong = next(value for value in column if getattr(type(value), "__hash__", None) is None)
                raise DataError(f"column {name!r} holds {shown([wrong])}: {RULE}.") from None
            # One label may be written in several ways: an enum member and its name, empty text and null.
            written = Coding(name, "text").labels_of(found.tolist())
            again = {label: code for code, label in enumerate(dict.fromkeys(one for one in written if one is not None))}
            place = np.array([-1 if label is None else again[label] for label in written] + [-1], np.int64)
            values[part], picked[part] = tuple(again), place[codes]
        elif str(column.dtype) == "category":
            picked[part] = column.astype(object).to_numpy()
        else:
            picked[part] = column.array
    return pandas.DataFrame(picked, index=range(len(native))), values


def _refuse_json(native: Any, parts: Mapping[str, str]) -> None:
    """Refuse columns that hold JSON, in which even text is written with quotes."""
    types = dict(zip(native.columns, map(str, native.types), strict=True))
    for name in parts.values():
        if types.get(name) == "JSON":
            raise DataError(
                f"column {name!r} holds lists, objects, or values of several kinds: write all its values as text, or "
                "all as whole numbers."
            )


def _numbered(native: Any, kind: str) -> Any:
    """Add a column that counts rows."""
    import narwhals.stable.v2 as nw

    if kind == "POLARS":
        return native.with_row_index("order")
    return nw.from_native(native).with_row_index("order").to_native()


def _without_categories(native: Any, names: set[str]) -> Any:
    """Write categories of Dask as what they stand for."""
    for name in native.columns:
        if name in names and str(native[name].dtype) == "category":
            known = native[name].cat.as_known()
            held = known.dtype.categories.dtype
            native = native.assign(**{name: known.astype("Int64" if held.kind in "iu" else held)})  # nulls are no int64
    return native


def _without_dictionaries(native: Any, names: set[str]) -> Any:
    """Write dictionaries of PyArrow as what they stand for, and types that it cannot group by as those that it can.

    Large text is written as text, which it does not join with, unless a piece of it is too large for that.
    """
    for place, field in enumerate(native.schema):
        if field.name not in names:
            continue
        kind = str(field.type)
        plain_type = field.type.value_type if kind.startswith("dictionary") else _PLAIN_TYPES.get(kind)
        column = native.column(place) if plain_type is None else native.column(place).cast(plain_type)
        if str(column.type) == "large_string":
            with suppress(ValueError):
                column = column.cast("string")
        if column.type != field.type:
            native = native.set_column(place, field.name, column)
    return native
