"""Names and numbers that an engine tells apart stay apart, or are refused; those that mean the same are the same."""

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dhkappa
from dhkappa.errors import DataError
from postgres import Server

LONG: dict[str, Any] = {"suggested": "suggested", "item": "item", "label": "label", "annotator": "annotator"}
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]


def rows_of(item: str, categories: int = 300) -> Any:
    return duckdb.sql(
        f"SELECT {item} AS item, 'p' || j AS annotator, 'c' || ((i * (j + 1)) % {categories}) AS label, "
        f"'c' || i AS suggested FROM range({categories}) AS a(i), range(3) AS b(j)"
    )


@pytest.mark.parametrize("categories", [300, 4])
def test_items_that_are_one_once_they_are_fetched(categories: int) -> None:
    text = rows_of("'n' || i", categories)
    right = dhkappa.dh_kappa(text, **LONG)
    assert right.n_items == categories
    large = rows_of("(12345678901234567000 + i)::DECIMAL(20, 0)", categories)
    with pytest.raises(DataError, match=r"^column 'item' holds \d+ names of type Decimal\(.*\), of which some are the"):
        dhkappa.audit(large, **LONG)
    if categories > 4:  # where all rows are fetched
        with pytest.raises(DataError, match=": write them as text"):
            dhkappa.dh_kappa(large, **LONG)
    else:
        assert dhkappa.dh_kappa(large, **LONG).exact == right.exact
    small = rows_of("i::DECIMAL(20, 1)", categories)
    assert dhkappa.audit(small, **LONG).kappas["suggested"].exact == right.exact


def test_annotators_that_are_one_once_they_are_fetched() -> None:
    polars = pytest.importorskip("polars")
    times = polars.Series([1, 2, 1, 2]).cast(polars.Datetime("ns"))
    data = polars.DataFrame(
        {"item": ["a", "a", "b", "b"], "annotator": times, "label": ["x", "y", "x", "x"], "suggested": list("xxyy")}
    )
    with pytest.raises(DataError, match=r"^column 'annotator' holds 2 names of type Datetime"):
        dhkappa.audit(data, **LONG)


@pytest.mark.parametrize("kind", ["csv", "json", "pandas", "polars", "duckdb", "pyarrow"])
def test_nobody_is_a_blank_and_a_null(tmp_path: Path, kind: str) -> None:
    rows = [(1, "", "a", "a"), (1, "", "b", "a"), (1, "pvalue", "a", "a"), (2, "pvalue", "a", "b"), (2, "q", "a", "b")]
    names = ["item", "annotator", "label", "suggested"]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    data: Any = tmp_path / f"votes.{kind}"
    if kind == "csv":
        data.write_text("\n".join(",".join(map(str, row)) for row in [tuple(names), *rows]))
    elif kind == "json":
        data.write_text(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    elif kind == "duckdb":
        (tmp_path / "votes.json").write_text(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
        data = duckdb.sql(f"FROM '{tmp_path}/votes.json'")
    else:
        library = pytest.importorskip(kind)
        data = library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)
    for choice in ("error", "first", "last") if kind != "duckdb" else ("error",):
        assert dhkappa.dh_kappa(data, duplicates=choice, **LONG).exact == Fraction(-1, 3)


def stored(path: Path, create: str, rows: list[tuple[Any, ...]]) -> str:
    with sqlite3.connect(path) as connection:
        connection.execute(create)
        for row in rows:
            connection.execute(f"INSERT INTO votes VALUES ({', '.join('?' * len(row))})", row)
    connection.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize("kind", ["REAL", "DECIMAL(10,2)", "DECIMAL(10,0)", "NUMERIC"])
def test_weights_of_sqlite_are_not_rounded(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("ibis")
    sample_weight = [0.125, 0.135, 1.005, 2.5, 3.333, 1e-12, 7]
    votes = [["a", "b"], ["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"], ["a", "a"], ["b", "a"]]
    labels = list("ababaab")
    rows = [(label, *vote, weight) for label, vote, weight in zip(labels, votes, sample_weight, strict=True)]
    url = stored(tmp_path / "w.db", f"CREATE TABLE votes (suggested TEXT, v1 TEXT, v2 TEXT, w {kind})", rows)
    found = dhkappa.dh_kappa(
        dhkappa.read(url, table="votes"), suggested="suggested", annotators="v*", sample_weight="w"
    )
    assert found.value == dhkappa.dh_kappa(votes, labels, sample_weight=sample_weight).value


def test_any_of_sqlite_is_no_text(tmp_path: Path) -> None:
    pytest.importorskip("ibis")
    if sqlite3.sqlite_version_info < (3, 37):
        pytest.skip("this SQLite has no strict tables")
    create = "CREATE TABLE votes (suggested ANY, v1 ANY, v2 ANY) STRICT"
    url = stored(tmp_path / "any.db", create, [(1, 1.0, 1), (2, 2.0, "1"), (1, 1, 1)])
    with pytest.raises(DataError, match="of SQLite holds values of other types than String, as which it is read"):
        dhkappa.dh_kappa(dhkappa.read(url, table="votes"), suggested="suggested", annotators="v*")


@pytest.mark.parametrize("large", [2**53 + 1, 7])
def test_whole_numbers_beside_floats(large: int) -> None:
    votes = duckdb.sql(f"SELECT * FROM (VALUES ({large}, 'a'), ({large}, 'b'), (5, 'a'), (5, 'a')) AS t(item, label)")
    items = duckdb.sql(f"SELECT * FROM (VALUES ({large}::DOUBLE, 'a'), (5.0::DOUBLE, 'a')) AS t(item, suggested)")
    words: dict[str, Any] = {"items": items, "suggested": "suggested", "item": "item", "label": "label"}
    if large < 2**53:
        assert dhkappa.dh_kappa(votes, **words).n_items == 2
        return
    with pytest.raises(DataError, match=r"^column 'item' has whole numbers beyond 2"):
        dhkappa.dh_kappa(votes, **words)


def test_two_kinds_of_text_of_pyarrow() -> None:
    pa = pytest.importorskip("pyarrow")
    kinds = [pa.string(), pa.large_string()]
    columns = {f"v{place}": pa.array(["a", "b", "a"], kinds[place % 2]) for place in range(8)}
    found = dhkappa.dh_kappa(pa.table(columns | {"suggested": ["a", "b", "b"]}), suggested="suggested", annotators="v*")
    assert found.exact == dhkappa.dh_kappa([[x] * 8 for x in "aba"], list("abb")).exact


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("uuid", [f"00000000-0000-0000-0000-00000000000{n}" for n in range(4)]),
        ("inet", [f"10.0.0.{n}" for n in range(4)]),
        ("macaddr", [f"08:00:2b:01:02:0{n}" for n in range(4)]),
        ("numeric", [f"0.{'1' * 12}{n}" for n in range(1, 5)]),
        ("timestamptz", [f"2020-10-25 0{n}:30:00+00:00" for n in range(4)]),
    ],
)
def test_items_of_postgres_of_any_type(postgres: Server, kind: str, names: list[str]) -> None:
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("ibis")
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE named (item {kind}, annotator text, label text, suggested text)")
        try:
            for place, name in enumerate(names):
                for who in "pq":
                    row = (name, who, "ab"[place % 2], "aabb"[place])
                    connection.execute("INSERT INTO named VALUES (%s, %s, %s, %s)", row)
            source = dhkappa.read(postgres.url(), table="named")
            found = dhkappa.audit(source, **LONG)
            assert found.kappas["suggested"].exact == dhkappa.dh_kappa([["a", "a"], ["b", "b"]] * 2, list("aabb")).exact
            assert len({str(row["item"]) for row in found.review()}) == 4
            source.votes.get_backend().disconnect()
        finally:
            connection.execute("DROP TABLE named")
