"""Slices that an engine counts are those of plain lists, in every format."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas  # without these libraries, this file is left out
import polars
import pyarrow
import pytest

import dhkappa
from engines import NEAR, Engine, each, only
from expect import expect_error

N = 240
_RNG = np.random.default_rng(3)
DATA = dhkappa.simulate(N, labelers={"llm": 0.8}, annotators=3, missing=0.1, rng=5)
VOTES = [[None if vote is None else str(vote) for vote in row] for row in np.array(DATA.votes, object).tolist()]
LABELS = [str(label) for label in DATA.suggested["llm"]]
LANGUAGE = [("en", "de", "fr", None)[k] for k in _RNG.integers(0, 4, N)]
YEAR = [None if k == 3 else 2020 + int(k) for k in _RNG.integers(0, 4, N)]
DAYS = [date(2026, 1, 1) + timedelta(days=int(k)) for k in _RNG.integers(0, 90, N)]
WRITTEN = [f"{day}T23:30:00+14:00" if place % 2 else str(day) for place, day in enumerate(DAYS)]
SLICES = ["language", "year", "created", "created:week", "language+year"]
_CROSSED = [f"{lang or '(missing)'}, {year or '(missing)'}" for lang, year in zip(LANGUAGE, YEAR, strict=True)]


def expected() -> dict[str, Any]:
    slices = {"language": LANGUAGE, "year": YEAR, "created": DAYS, "created:week": DAYS}
    found = dhkappa.audit(VOTES, {"llm": LABELS}, slices=slices, progress=False)
    return {name: plain(found, name) for name in slices}


def plain(audit: dhkappa.Audit, name: str) -> dict[str, Any]:
    return audit.slices(name, "llm").to_dict()


@pytest.fixture(scope="module")
def right() -> dict[str, Any]:
    return expected()


def wide() -> dict[str, list[Any]]:
    columns = {f"ann_{place}": [row[place] for row in VOTES] for place in range(3)}
    own: dict[str, list[Any]] = {"suggested_llm": LABELS, "language": LANGUAGE, "year": YEAR, "created": WRITTEN}
    return {"item": list(range(N)), **columns, **own}


def long() -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    rows = [(item, place, vote) for item, row in enumerate(VOTES) for place, vote in enumerate(row) if vote is not None]
    item, annotator, label = map(list, zip(*rows, strict=True))
    items = {name: column for name, column in wide().items() if not name.startswith("ann_")}
    return {"item": item, "annotator": [f"p{place}" for place in annotator], "label": label}, items


@each("layout", ["wide", "long", "joined"])
def test_slices_are_those_of_lists(engine: Engine, layout: str, right: dict[str, Any]) -> None:
    if layout == "wide":
        found = dhkappa.audit(engine.table(wide()), slices=SLICES, progress=False)
    else:
        votes, items = long()
        if layout == "joined":
            place = votes["item"]
            votes |= {name: [column[item] for item in place] for name, column in items.items() if name != "item"}
            found = dhkappa.audit(engine.table(votes), suggested=["suggested_llm"], slices=SLICES, progress=False)
        else:
            found = dhkappa.audit(engine.table(votes), items=engine.table(items), slices=SLICES, progress=False)
    assert {name: plain(found, name) for name in right} == right
    rows = {row["slice"]: row["items"] for row in found.slices("language+year").table}
    assert set(rows) == set(_CROSSED)
    assert sum(rows.values()) == sum(row["items"] for row in right["language"]["slices"])


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb", "pyarrow"])
def test_times_of_an_engine(library: str, zone: str | None, right: dict[str, Any]) -> None:
    import duckdb
    import polars as pl

    frame = pl.DataFrame(wide() | {"created": DAYS}).with_columns(
        created=(pl.col("created").cast(pl.Datetime("us", zone)) + pl.duration(hours=23, minutes=30))
    )
    tables = {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow, "polars": lambda: frame}
    data = duckdb.from_arrow(frame.to_arrow()) if library == "duckdb" else tables[library]()
    found = dhkappa.audit(data, slices=SLICES[2:4], progress=False)
    assert {name: plain(found, name) for name in SLICES[2:4]} == {name: right[name] for name in SLICES[2:4]}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb", "duckdb in New York"])
def test_days_of_many_instants_are_those_in_utc(library: str) -> None:
    import duckdb
    import polars as pl

    n, start = 100_001, datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
    moments = [start + timedelta(seconds=37 * place) for place in range(n)]
    columns = {"ann_1": ["a"] * n, "ann_2": ["a", "b"] * (n // 2) + ["a"], "suggested": ["a"] * n, "ts": moments}
    frame = pl.DataFrame(columns).with_columns(pl.col("ts").dt.convert_time_zone("Asia/Tokyo"))
    with duckdb.connect() as connection:
        connection.execute(f"SET timezone = '{'America/New_York' if 'New York' in library else 'UTC'}'")
        data: Any = {"polars": frame, "pandas": frame.to_pandas(), "pyarrow": frame.to_arrow()}.get(library)
        data = connection.from_arrow(frame.to_arrow()) if data is None else data
        found = dhkappa.audit(data, slices="ts:month", progress=False).slices()
        rows = {row["slice"]: row["items"] for row in found.table}
        january = sum(moment.month == 1 for moment in moments)
        assert rows == {"2026-01": january, "2026-02": n - january}
        whole = dhkappa.Dataset(data)
        day = next(str(one.date()) for one in moments if one.hour > 20)
        assert whole.filter(f"ts={day}").counts.n_items == sum(str(one.date()) == day for one in moments)


@only(NEAR)
def test_many_categories_are_fetched(engine: Engine) -> None:
    n, m = 1_200, 400
    votes: dict[str, list[Any]] = {
        "item": [k // 3 for k in range(3 * n)],
        "label": [f"c{(k // 3 + (k % 7 == 0)) % m}" for k in range(3 * n)],
    }
    items: dict[str, list[Any]] = {"item": list(range(n - 1)), "suggested": [f"c{k % m}" for k in range(n - 1)]}
    items["language"] = [("en", "de")[k % 2] for k in range(n - 1)]
    given = {"items": engine.table(items), "slices": "language", "unlisted": "unlabeled"}
    found = dhkappa.audit(engine.table(votes), progress=False, **given).slices()
    assert {row["slice"]: row["items"] for row in found.table} == {"en": 600, "de": 599, "(missing)": 0}
    for place, name in enumerate(("en", "de")):
        own = [k for k in range(n - 1) if k % 2 == place]
        alone = dhkappa.dh_kappa([votes["label"][3 * k : 3 * k + 3] for k in own], [items["suggested"][k] for k in own])
        assert next(row["kappa"] for row in found.table if row["slice"] == name) == alone.value


def test_csv_file(tmp_path: Path, right: dict[str, Any]) -> None:
    path, columns = tmp_path / "votes.csv", wide()
    lines = [
        ",".join(columns),
        *(",".join("" if v is None else str(v) for v in row) for row in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines))
    found = dhkappa.audit(path, slices={"language": None, "created": "week"}, progress=False)
    assert plain(found, "language") == right["language"]
    assert plain(found, "created") == right["created:week"]


def test_errors(tmp_path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame(wide())
    for slices, code in (("lang", "column-not-found"), ([], "column-not-found"), (["language:week"], "not-a-date")):
        with expect_error(code, "slices"):
            dhkappa.audit(frame, slices=slices, progress=False)
    with expect_error("invalid-option", "slices"):
        dhkappa.audit(frame, slices={"created": "year"}, progress=False)
    odd = frame.with_columns(created=pl.when(pl.col("item") % 2 == 0).then(pl.lit("0000-00-00")).otherwise("created"))
    found = dhkappa.audit(odd, slices="created", progress=False).slices()
    assert {row["slice"] for row in found.table} == {"0000-00-00", *WRITTEN[1::2]}
    with expect_error("not-a-date", "slices"):
        dhkappa.audit(odd, slices="created:week", progress=False)
    varying = pl.DataFrame({"item": [1, 1], "label": ["a", "b"], "suggested": ["a", "a"], "language": ["en", "de"]})
    with expect_error("item-column-varies", "slices"):
        dhkappa.audit(varying, slices="language", progress=False)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_slices_of_arrays_in_a_table(library: str) -> None:
    columns = {"language": ["en", "de"] * 30, "n": [*range(3)] * 20}
    table: Any = {"pandas": pandas, "polars": polars, "pyarrow": pyarrow}[library]
    table = table.table(columns) if library == "pyarrow" else table.DataFrame(columns)
    made = dhkappa.simulate(60, labelers={"llm": 0.9}, annotators=3, rng=1)
    expected = dhkappa.audit(made.votes, made.suggested, slices=columns)
    found = dhkappa.audit(made.votes, made.suggested, slices=table)
    for name in columns:
        assert repr(found.slices(name).to_dict()) == repr(expected.slices(name).to_dict())
    with expect_error("column-not-found", "column"):
        found.slices(["language"])  # type: ignore[arg-type]


def test_slices_of_arrays_need_an_order_of_rows() -> None:
    made = dhkappa.simulate(60, labelers={"llm": 0.9}, annotators=3, rng=1)
    with expect_error("no-row-order", "slices"):
        dhkappa.audit(made.votes, made.suggested, slices=polars.DataFrame({"language": ["en", "de"] * 30}).lazy())


TEAMS = {"p0": "red", "p1": "red", "p2": None}


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb", "pyarrow", "csv"])
def test_annotators_table(library: str, tmp_path: Path) -> None:
    import duckdb
    import polars as pl

    votes, items = long()
    people = pl.DataFrame({"annotator": list(TEAMS), "team": list(TEAMS.values())})
    path = tmp_path / "people.csv"
    people.write_csv(path)
    table: Any = {"polars": people, "pyarrow": people.to_arrow(), "csv": path}.get(library)
    if library == "pandas":
        import pandas as pd

        table = pd.DataFrame(people.to_dict(as_series=False))
    with duckdb.connect() as connection:
        if library == "duckdb":
            table = connection.sql("FROM people")
        found = dhkappa.audit(pl.DataFrame(votes), items=pl.DataFrame(items), annotators_table=table, progress=False)
    rows = list(found.annotator_slices("team", "llm").table)
    alone = dhkappa.dh_kappa([row[:2] for row in VOTES], LABELS)
    assert [(row["slice"], row["annotators"]) for row in rows] == [("red", 2), ("(missing)", 1)]
    assert (rows[0]["kappa"], rows[0]["se"], rows[0]["items"]) == (alone.value, alone.se, alone.n_items)
    assert rows[0]["votes"] == sum(vote is not None for row in VOTES for vote in row[:2])
    assert rows[1]["reason"] == "One annotator: no item has two votes of the slice."


def test_lists_cannot_name_slices() -> None:
    import duckdb

    columns = {"item": [*"abc"], "llm": [*"xyx"], "ann_1": [*"xyx"], "ann_2": [*"xyy"]}
    table = polars.DataFrame(columns | {"vector": [[0.5, 1.5], [2.0], [2.0]]})
    for made in (table, duckdb.from_arrow(table.to_arrow())):
        with expect_error("not-a-label", "slices"):
            dhkappa.audit(made, "llm", slices="vector")
