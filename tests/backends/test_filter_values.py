"""Filters by values that engines store in several ways: unsigned integers, and dates in text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import dhkappa
from engines import Engine, each
from expect import expect_error

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VOTES: dict[str, list[Any]] = {"ann_1": list("aabbab"), "ann_2": list("abbbab"), "suggested": list("ababab")}
UNSIGNED = [2**63 + 5, 2**63 + 6, 3, 2**64 - 1, None, 0]


def of_arrow(library: str, held: Any) -> Any:
    """Return a table of a library with the columns of a PyArrow table."""
    if library == "pandas":
        return held.to_pandas(
            types_mapper={held.schema.field("h").type: pytest.importorskip("pandas").UInt64Dtype()}.get
        )
    if library == "pandas arrow":
        return held.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)
    if library == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(of_arrow("pandas", held), npartitions=2)
    if library.startswith("polars"):
        table = pytest.importorskip("polars").from_arrow(held)
        return table.lazy() if library == "polars lazy" else table
    if library == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.register("given", held)
        return connection.table("given")
    return held


@pytest.mark.parametrize("sign", COMPARE)
@pytest.mark.parametrize("library", ["pandas", "pandas arrow", "polars", "polars lazy", "pyarrow", "duckdb", "dask"])
def test_unsigned_integers(library: str, sign: str) -> None:
    pa = pytest.importorskip("pyarrow")
    whole = dhkappa.Dataset(of_arrow(library, pa.table(VOTES | {"h": pa.array(UNSIGNED, pa.uint64())})))
    for value in (2**63 + 5, 2**63 - 1, 2**64 - 1, 2**64, -1, 2.5, 9.3e18):
        places = [place for place, known in enumerate(UNSIGNED) if known is not None and COMPARE[sign](known, value)]
        if not places:
            with pytest.raises(dhkappa.DataError, match="leaves no votes"):
                whole.filter(("h", sign, value)).counts  # noqa: B018
            continue
        kept = [[VOTES[name][place] for name in ("ann_1", "ann_2")] for place in places]
        expected = dhkappa.tally(kept, {"suggested": [VOTES["suggested"][place] for place in places]})
        assert whole.filter(("h", sign, value)).tally() == expected, value


WRITTEN = {  # texts that are read as dates, and the instant of those in UTC, in nanoseconds of the day
    "2026-01-14T23:59": None,
    "2026-01-15": 0,
    "2026-01-15 10:00:00+00": 36_000_000_000_000,
    "2026-01-15T10:00:00.123456789Z": 36_000_123_456_789,
    "2026-01-15 10:00:00 +0000": 36_000_000_000_000,
    "2026-01-15T10:00:00,5+00:00": 36_000_500_000_000,
    "2026-01-15 10:00 Z": 36_000_000_000_000,
    "2026-01-15T10:00:00.123457Z": 36_000_123_457_000,
    "2026-01-16 00:30:00.1234567+02:00": None,
    "2026-01-17": 2 * 86_400_000_000_000,
}


def of_dates(engine: Engine, created: Sequence[str], **options: Any) -> dhkappa.Dataset:
    n = len(created)
    columns = {"ann_1": ["a"] * n, "ann_2": list("ab" * n)[:n], "suggested": ["a"] * n, "created": list(created)}
    return dhkappa.Dataset(engine.table(columns), **options)


DAYS = ["created>=2026-01-15", "created<2026-01-16", "created!=2026-01-15", "created=2026-01-15"]


@each("text", DAYS, few=DAYS[::2])
def test_dates_in_text(engine: Engine, text: str) -> None:
    sign, day = text[7:-10], text[-10:]
    found = of_dates(engine, list(WRITTEN)).filter(text)
    assert found.counts.n_items == sum(COMPARE[sign](written[:10], day) for written in WRITTEN)
    weeks = dhkappa.audit(of_dates(engine, list(WRITTEN), slices="created:day")).slices().table
    by_day = dict(zip(weeks.column("slice"), weeks.column("items"), strict=True))
    assert sum(n for name, n in by_day.items() if COMPARE[sign](name, day)) == found.counts.n_items


@each("sign", [">=", "<", "<=", ">"], few=[">"])
def test_times_in_text(engine: Engine, sign: str) -> None:
    utc = [written for written, instant in WRITTEN.items() if instant is not None]
    for value, instant in (
        ("2026-01-15 10:00 Z", 36_000_000_000_000),
        ("2026-01-15 10:00:00.123456+00", 36_000_123_456_000),
        ("2026-01-15T12:00:00,5 +0200", 36_000_500_000_000),
    ):
        found = of_dates(engine, utc).filter(("created", sign, value))
        assert found.counts.n_items == sum(COMPARE[sign](WRITTEN[written], instant) for written in utc), value


@each("wrong", ["2026-01-15 10:00:00+01", "2026-01-15 10:00", "15.01.2026", "2026-01-15 10:00:00.1234567891Z"])
def test_text_that_is_no_time_in_utc(engine: Engine, wrong: str) -> None:
    with expect_error("not-comparable", "where"):
        of_dates(engine, ["2026-01-15T10:00Z", wrong]).filter("created>2026-01-15T09:00Z").counts  # noqa: B018


def test_value_with_nanoseconds_is_refused() -> None:
    held = pytest.importorskip("polars").DataFrame(VOTES | {"created": ["2026-01-15"] * 6})
    with expect_error("invalid-filter", "where"):
        dhkappa.Dataset(held).filter("created>2026-01-15T09:00:00.1234567").counts  # noqa: B018
    assert dhkappa.Dataset(held).filter("created<2026-01-15T09:00:00.123456000").counts.n_items == 6
