"""Conditions on a column, such as ``confidence >= 0.5``: read from text, and compared by the engine.

A condition is compared by the type of the column. Numbers and dates in columns of text, as in CSV files, are compared
as numbers and dates; the engine does so by expressions that never cast a text which is not a number.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import partial, reduce
from operator import eq, ge, gt, le, lt, or_
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals.stable.v2 as nw
import numpy as np

from dhkappa.core import Label
from dhkappa.core.dates import DAY, ISO, UTC_ZONE, date_pattern
from dhkappa.errors import DataError, comma_separated, is_real, shown
from dhkappa.inputs.backends import as_number, is_empty, kind_of

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_FORM = re.compile(r'^\s*(?:"((?:[^"]|"")+)"|([^=!<>]+?))\s*(==|!=|<=|>=|=|<|>)(.*)$', re.DOTALL)
_NUMBER = "^-?[0-9]*[.]?[0-9]+(?:[eE][+-]?[0-9]{1,2})?$"
_SPACED_ZONE = re.compile(" (?=Z$|[+-][0-9:]+$)")
_NANOSECONDS = re.compile("[.,][0-9]{6}[0-9]*[1-9]")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_EXACT = 2**53  # integers up to here are floats
_SHORT = "^-?0*[0-9]{1,18}$"  # integers below the limit
_LIMIT = 10**18

Expression = Callable[[str], nw.Expr]  # of the name of a column


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column.

    Attributes
    ----------
    column : the name of the column
    operator : one of ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``
    values : the values to compare with; several only for ``=`` (any of them) and ``!=`` (none). None is missing
    """

    column: str
    operator: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, column: Any, operator: Any, values: Any) -> Condition:
        """Check the parts of a condition; ``values`` is a value, or a list of values."""
        if not isinstance(column, str) or not column:
            raise _invalid(f"A filter names a column, got {shown([column])}.")
        operator = "=" if operator == "==" else operator
        if operator not in OPERATORS:
            raise _invalid(f"{shown([operator])} is not an operator. Operators: {', '.join(OPERATORS)}.")
        several = isinstance(values, (list, tuple, set, frozenset, np.ndarray))
        given = tuple(_plain(value, column) for value in (values if several else [values]))
        if isinstance(values, (set, frozenset)):
            given = tuple(sorted(given, key=lambda value: (type(value).__name__, str(value))))
        if not given:
            raise _invalid(f"The filter on column {column!r} has no value.")
        if operator not in ("=", "!=") and (len(given) > 1 or given[0] is None or isinstance(given[0], bool)):
            what = "one value" if len(given) > 1 else "a number or a date"
            raise _invalid(f"The filter on column {column!r} needs {what} after {operator}, got {shown(given)}.")
        return cls(column, operator, given)

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition such as ``language=en,de`` or ``confidence >= 0.5``; quotes protect names and values."""
        found = _FORM.match(text)
        if found is None:
            message = f"{shown([text])} is not a condition: expected a column, an operator and a value."
            raise _invalid(message)
        name, plain, operator, rest = found.groups()
        column = plain if name is None else name.replace('""', '"')
        try:
            values = next(csv.reader([rest.strip()], strict=True, skipinitialspace=True), [])
        except csv.Error:  # a value that contains quotes
            values = [rest.strip()]
        return cls.of(column, operator, [value.strip() for value in values] or [""])

    @property
    def text(self) -> str:
        """The condition as it is written on the command line."""
        column = comma_separated([self.column])
        if not column.startswith('"') and ({*column} & {*"=!<>"} or column != column.strip()):
            column = '"{}"'.format(column.replace('"', '""'))
        values = ["" if value is None else value for value in self.values]
        return f"{column}{self.operator}{comma_separated(values)}"

    @property
    def keeps_missing(self) -> bool:
        """Whether rows with a missing value are kept."""
        return self.operator == "=" and None in self.values

    def compared(self, dtype: Any, where: str) -> ColumnTest:
        """Return how the engine compares a column of this type; ``where`` is what messages call the column."""
        values = [value for value in self.values if value is not None]
        if not values:  # only missing values were named
            return ColumnTest(self, dtype == nw.String, lambda _: nw.lit(self.operator == "!="))
        make = _comparison(dtype)
        if make is None:
            message = f"Column {where} holds values of type {dtype}, by which rows cannot be filtered."
            raise _invalid(message, code="wrong-type", hint="Write them as text.")
        operator = "=" if self.operator == "!=" else self.operator
        parts = [make(self.column, operator, value) for value in values]
        keep = partial(_any_of, tuple(part for part, _ in parts), self.operator == "!=")
        readable = [one for _, one in parts if one is not None and self.operator not in ("=", "!=")]
        return ColumnTest(self, dtype == nw.String, keep, *readable[:1])


@dataclass(frozen=True, slots=True)
class Readable:
    """What a text must be to be compared."""

    test: Expression
    kind: str  # in messages


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """How the engine compares a column with the values of a condition."""

    condition: Condition
    is_text: bool  # empty text is missing, too
    keep: Expression  # of values that are not missing
    readable: Readable | None = None  # if a text must be a number or a date

    def missing(self, role: str) -> nw.Expr:
        """Return whether a value is missing."""
        return is_empty(role, self.is_text)

    def kept(self, role: str) -> nw.Expr:
        """Return whether a row is kept."""
        yes, no = nw.lit(1), nw.lit(0)
        held = nw.when(self.keep(role)).then(yes).otherwise(no)
        return nw.when(self.missing(role)).then(yes if self.condition.keeps_missing else no).otherwise(held) == yes

    def unreadable(self, role: str) -> nw.Expr | None:
        """Return whether a value is a text that cannot be compared; None if all can."""
        if self.readable is None:
            return None
        good = as_number(self.readable.test(role))
        return nw.when(self.missing(role)).then(nw.lit(1)).otherwise(good) == 0


def conditions_of(conditions: Iterable[Any], equal: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Read the arguments of ``Dataset.filter``: texts, triples, and columns with their values."""
    found = []
    for one in conditions:
        if isinstance(one, str):
            found.append(Condition.parse(one))
        elif isinstance(one, tuple) and len(one) == 3:
            found.append(Condition.of(*one))
        else:
            message = f"{shown([one])} is not a condition."
            raise _invalid(message)
    found += [Condition.of(column, "=", value) for column, value in equal.items()]
    if not found:
        raise _invalid("filter needs a condition.")
    return tuple(found)


def _invalid(message: str, code: str = "invalid-filter", hint: str = "") -> DataError:
    hint = hint or "Write a condition like 'language=en,de' or 'confidence >= 0.5'."
    return DataError(message, code=code, parameter="where", hint=hint)


def _plain(value: Any, column: str) -> Any:
    """Return a value as a plain Python value; None if it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (is_real(value) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return str(value) or None
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if not isinstance(value, (bool, int, float, date)) or (isinstance(value, float) and math.isinf(value)):
        raise _invalid(f"A filter on column {column!r} cannot compare with {shown([value])}.")
    return value


def _any_of(parts: tuple[Expression, ...], negated: bool, role: str) -> nw.Expr:
    """Return whether one of some conditions holds, or none."""
    either = reduce(or_, (part(role) for part in parts))
    return ~either if negated else either


_Made = tuple[Expression, Readable | None]


def _comparison(dtype: Any) -> Callable[[str, str, Any], _Made] | None:
    """Return the function that makes expressions for a type of column; None if the type cannot be compared."""
    kind = kind_of(dtype)
    if dtype == nw.Decimal:
        kind = "float"
    if isinstance(dtype, nw.Datetime):
        return partial(_with_time, dtype.time_zone)
    if dtype == nw.Date:
        return _with_date
    made: dict[str, Callable[[str, str, Any], _Made]] = {
        "text": _with_text,
        "boolean": _with_boolean,
        "float": _with_float,
        "integer": partial(_with_integer, dtype == nw.UInt64),
    }
    return made.get(kind)


def _never(_: str) -> nw.Expr:
    return nw.lit(False)


def _compare(operator: str, value: Any, cast: Any, role: str) -> nw.Expr:
    column = nw.col(role) if cast is None else nw.col(role).cast(cast)
    found: nw.Expr = _COMPARE[operator](column, nw.lit(value))
    return found


def _whole(operator: str, least: Any, exact: bool, cast: Any = None) -> Expression:
    """Compare values without a fraction with a value whose whole part is ``least``; ``exact`` if it has no fraction."""
    if not exact and operator == "=":
        return _never
    operator = operator if exact else {"<": "<=", ">=": ">"}.get(operator, operator)
    return partial(_compare, operator, least, cast)


def _number(column: str, value: Any) -> int | float:
    """Return a value as a number, also of text."""
    if isinstance(value, str) and re.match(_NUMBER, value.strip()):
        text = value.strip()
        return int(text) if re.match("^-?[0-9]+$", text) else float(text)
    if isinstance(value, (str, date)):
        raise _invalid(f"Column {column!r} holds numbers, and {shown([value])} is not a number.")
    found: int | float = value
    return found


def _with_integer(unsigned: bool, column: str, operator: str, value: Any) -> _Made:
    number = _number(column, value)
    least, low, high = math.floor(number), 0 if unsigned else -(2**63), 2**64 if unsigned else 2**63
    if not low <= least < high:
        beyond = operator in (("<", "<=") if least > 0 else (">", ">="))
        return lambda _: nw.lit(beyond), None
    # A literal of the type of the column: Arrow takes no Python integer of 2**63 or more.
    value, cast = (np.uint64(least), None) if unsigned else (least, nw.Int64())
    return _whole(operator, value, least == number, cast), None


def _with_float(column: str, operator: str, value: Any) -> _Made:
    return partial(_compare, operator, float(_number(column, value)), nw.Float64()), None


def _with_boolean(column: str, operator: str, value: Any) -> _Made:
    truth = _TRUTH.get(str(value).strip().lower()) if isinstance(value, (str, int)) else None
    if truth is None or operator != "=":
        raise _invalid(f"Column {column!r} holds true and false, and cannot be compared by {operator}{shown([value])}.")
    return lambda role: nw.col(role) if truth else ~nw.col(role), None


def _moment(column: str, value: Any) -> date:
    """Return a value as a date or a time, also of text."""
    if isinstance(value, str):
        text = _SPACED_ZONE.sub("", value.strip())
        if _NANOSECONDS.search(text):
            raise _invalid(f"The filter on column {column!r} compares times to the microsecond, got {shown([value])}.")
        try:
            return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
        except ValueError:
            pass
    if not isinstance(value, date):
        raise _invalid(f"Column {column!r} holds dates, and {shown([value])} is not a date such as 2026-01-31.")
    return value


def _with_date(column: str, operator: str, value: Any) -> _Made:
    moment = _moment(column, value)
    if not isinstance(moment, datetime):
        return _whole(operator, moment, exact=True), None
    return _whole(operator, moment.date(), exact=moment.timetz() == time()), None


def _zone(name: str) -> tzinfo:
    """Return the time zone of a column: values in another one cannot be compared on all engines."""
    try:
        return UTC if name.upper() in ("UTC", "ETC/UTC") else ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError):  # an offset
        return datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo or UTC


def _with_time(name: str | None, column: str, operator: str, value: Any) -> _Made:
    """Compare times. A date stands for the whole day, in UTC if the column has a time zone."""
    moment, zone = _moment(column, value), None if name is None else UTC
    cast = nw.Datetime("us") if name is None else None
    if isinstance(moment, datetime):
        if moment.tzinfo is not None and name is None:
            message = f"Column {column!r} holds times without a time zone, and {shown([value])} has one."
            raise _invalid(message, code="mixed-time-zones")
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return partial(_compare, operator, moment if name is None else moment.astimezone(_zone(name)), cast), None
    start = datetime.combine(moment, time(), zone)
    if moment in (date.min, date.max):
        raise _invalid(f"{shown([value])} is beyond the days that can be compared.")
    end = start + timedelta(days=1)
    if name is not None:
        start, end = start.astimezone(_zone(name)), end.astimezone(_zone(name))
    if operator in ("<", ">="):
        return partial(_compare, operator, start, cast), None
    if operator in ("<=", ">"):
        return partial(_compare, "<" if operator == "<=" else ">=", end, cast), None
    return lambda role: _compare(">=", start, cast, role) & _compare("<", end, cast, role), None


def _matches(pattern: str, role: str) -> nw.Expr:
    return nw.col(role).str.contains(pattern)


def number_in(role: str) -> nw.Expr:
    """Return the number that a text is, null if it is none."""
    text = nw.when(_matches(_NUMBER, role)).then(nw.col(role))
    return text.cast(nw.Float64())


def _if(guard: Expression, then: Expression) -> Expression:
    """Return an expression that is false where its guard is."""

    def both(role: str) -> nw.Expr:
        held = as_number(then(role))
        return nw.when(guard(role)).then(held).otherwise(nw.lit(0)) == 1

    return both


def _with_text(column: str, operator: str, value: Any) -> _Made:
    """Compare text: as text if a text must be equal, else as numbers or dates."""
    if isinstance(value, bool):
        spelled = [str(value), str(value).lower(), str(value).upper()]
        return lambda role: nw.col(role).is_in(spelled), None
    if isinstance(value, str):
        return _with_typed_text(column, operator, value)
    if isinstance(value, datetime):
        return _text_as_time(operator, value)
    if isinstance(value, date):
        return _text_as_date(operator, value)
    own = partial(_compare, "=", str(value), None)
    if operator == "=" and abs(value) >= _EXACT:  # as floats, it and the next integer are equal
        return own, None
    guard = partial(_matches, _NUMBER)
    if abs(value) >= _EXACT:
        return _if(guard, _as_large_number(column, operator, value)), Readable(guard, "a number")
    as_number = _if(guard, lambda role: _COMPARE[operator](number_in(role), nw.lit(float(value))))
    return as_number, Readable(guard, "a number")


def _as_large_number(column: str, operator: str, value: int | float) -> Expression:
    """Compare text with a number that floats may round: integers of up to 18 digits as integers."""
    if isinstance(value, int) and abs(value) >= _LIMIT:
        message = f"The filter on column {column!r} cannot compare text with {value}: integers have at most 18 digits."
        raise _invalid(message, hint="Convert the column to a type of numbers.")
    whole = max(-_LIMIT, min(int(value), _LIMIT))
    most = math.inf if abs(value) >= _LIMIT else math.nextafter(_LIMIT, 0)  # below all integers with more digits
    near = math.copysign(min(abs(float(value)), most), value)

    def compare(role: str) -> nw.Expr:
        short = _matches(_SHORT, role)
        number = nw.when(short).then(nw.col(role)).otherwise(nw.lit("0")).cast(nw.Int64())
        one = as_number(_COMPARE[operator](number, nw.lit(whole)))
        other = as_number(_COMPARE[operator](number_in(role), nw.lit(near)))
        return nw.when(short).then(one).otherwise(other) == 1

    return compare


def _with_typed_text(column: str, operator: str, value: str) -> _Made:
    """Compare text with a value that was written as text."""
    day = re.match(f"^{DAY}$", value) is not None
    if operator == "=":
        same = partial(_compare, "=", value, None)
        if value.lower() in ("true", "false"):
            return _with_text(column, operator, value.lower() == "true")
        if not day and not re.match(_NUMBER, value):
            return same, None
        read = _moment(column, value) if day else _number(column, value)
        equal, _ = _with_text(column, "=", read)
        return lambda role: same(role) | equal(role), None
    if re.match(_NUMBER, value):
        return _with_text(column, operator, _number(column, value))
    if re.match(ISO, value):
        return _with_text(column, operator, _moment(column, value))
    raise _invalid(f"The filter on column {column!r} needs a number or a date after {operator}, got {shown([value])}.")


def _text_as_date(operator: str, value: date) -> _Made:
    guard = partial(_matches, ISO)
    day = value.isoformat()
    compare = _if(guard, lambda role: _COMPARE[operator](nw.col(role).str.slice(0, 10), nw.lit(day)))
    return compare, Readable(guard, "a date")


def _text_as_time(operator: str, value: datetime) -> _Made:
    """Compare times as texts of one length, to the nanosecond; those with a time zone must be in UTC."""
    moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    guard = partial(_matches, date_pattern("" if value.tzinfo is None else UTC_ZONE))
    written = moment.isoformat(" ", "microseconds") + "000"

    def compare(role: str) -> nw.Expr:
        text = nw.col(role) if value.tzinfo is None else nw.col(role).str.replace_all(f"{UTC_ZONE}$", "")
        for old, new in (("T", " "), (",", ".")):
            text = text.str.replace_all(old, new, literal=True)
        length = text.str.len_chars()
        end = nw.when(length == 19).then(nw.lit(".000000000")).otherwise(nw.lit("000000000"))
        end = nw.when(length == 16).then(nw.lit(":00.000000000")).otherwise(end)
        end = nw.when(length == 10).then(nw.lit(" 00:00:00.000000000")).otherwise(end)
        whole = nw.concat_str([text, end]).str.slice(0, 29)
        found: nw.Expr = _COMPARE[operator](whole, nw.lit(written))
        return found

    zoned = "without a time zone" if value.tzinfo is None else "in UTC"
    return _if(guard, compare), Readable(guard, f"a date or a time {zoned}")


def same_name(given: Any, name: Label) -> bool:
    """Tell whether an annotator was named: as it is, or as it is written; numbers are compared as numbers."""
    same = given == name or str(given) == str(name)
    if same or type(name) not in (int, float) or not isinstance(given, str) or not re.match(_NUMBER, given):
        return same
    return _number("", given) == name
