"""Row-level results: items and annotators keep their names, and numbers equal those of plain lists."""

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dhkappa
from engines import Engine, each
from expect import expect_error
from postgres import Server
from shapes import drawn, drawn_for

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
    with expect_error("names-not-distinct"):
        dhkappa.audit(large, **LONG)
    if categories > 4:  # where all rows are fetched
        with expect_error("names-not-distinct"):
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
    with expect_error("names-not-distinct"):
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
    found = dhkappa.dh_kappa(dhkappa.read(url, table="votes", annotators="v*", sample_weight="w"), "suggested")
    assert found.value == dhkappa.dh_kappa(votes, labels, sample_weight=sample_weight).value


def test_any_of_sqlite_is_no_text(tmp_path: Path) -> None:
    pytest.importorskip("ibis")
    if sqlite3.sqlite_version_info < (3, 37):
        pytest.skip("this SQLite has no strict tables")
    create = "CREATE TABLE votes (suggested ANY, v1 ANY, v2 ANY) STRICT"
    url = stored(tmp_path / "any.db", create, [(1, 1.0, 1), (2, 2.0, "1"), (1, 1, 1)])
    with expect_error("wrong-type"):
        dhkappa.dh_kappa(dhkappa.read(url, table="votes", annotators="v*"), "suggested")


@pytest.mark.parametrize("large", [2**53 + 1, 7])
def test_whole_numbers_beside_floats(large: int) -> None:
    votes = duckdb.sql(f"SELECT * FROM (VALUES ({large}, 'a'), ({large}, 'b'), (5, 'a'), (5, 'a')) AS t(item, label)")
    items = duckdb.sql(f"SELECT * FROM (VALUES ({large}::DOUBLE, 'a'), (5.0::DOUBLE, 'a')) AS t(item, suggested)")
    words: dict[str, Any] = {"items": items, "suggested": "suggested", "item": "item", "label": "label"}
    if large < 2**53:
        assert dhkappa.dh_kappa(votes, **words).n_items == 2
        return
    with expect_error("item-types-differ"):
        dhkappa.dh_kappa(votes, **words)


def test_two_kinds_of_text_of_pyarrow() -> None:
    pa = pytest.importorskip("pyarrow")
    kinds = [pa.string(), pa.large_string()]
    columns = {f"v{place}": pa.array(["a", "b", "a"], kinds[place % 2]) for place in range(8)}
    found = dhkappa.dh_kappa(pa.table(columns | {"suggested": ["a", "b", "b"]}), suggested="suggested", annotators="v*")
    assert found.exact == dhkappa.dh_kappa([[x] * 8 for x in "aba"], list("abb")).exact


@pytest.mark.slow
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
            source = dhkappa.read(postgres.url(), table="named", **LONG)
            found = dhkappa.audit(source)
            assert found.kappas["suggested"].exact == dhkappa.dh_kappa([["a", "a"], ["b", "b"]] * 2, list("aabb")).exact
            assert len({str(row["item"]) for row in found.review()}) == 4
            assert source._data is not None
            source._data.votes.get_backend().disconnect()
        finally:
            connection.execute("DROP TABLE named")


@each("layout", ["wide", "long-items", "counted-wide"], few=["wide", "long-items"])
def test_kappas_are_those_of_lists(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    data, words = made.shape(layout).given(engine)
    kappa, expected = dhkappa.dh_kappa(data, "llm", **words), dhkappa.dh_kappa(made.votes, made.suggested["llm"])
    assert (kappa.value, kappa.se, kappa.exact) == (expected.value, expected.se, expected.exact)
    assert (kappa.n_items, kappa.n_votes, kappa.excluded) == (expected.n_items, expected.n_votes, expected.excluded)
    fleiss, of_lists = dhkappa.fleiss_kappa(data, **words), dhkappa.fleiss_kappa(made.votes)
    assert (fleiss.value, fleiss.se, fleiss.n_items) == (of_lists.value, of_lists.se, of_lists.n_items)


@each("layout", ["wide-many", "long", "counted-long"], few=["long"])
def test_comparison_is_that_of_lists(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    data, words = made.shape(layout).given(engine)
    found = dhkappa.compare(data, ["llm", "rule"], sample_weight="weight", rng=1, **words)
    expected = dhkappa.compare(made.votes, made.suggested, sample_weight=made.sample_weight, rng=1)
    for name in ("llm", "rule"):
        assert (found.kappas[name].value, found.kappas[name].se) == (
            expected.kappas[name].value,
            expected.kappas[name].se,
        )
    assert found.differences.to_dicts() == expected.differences.to_dicts()


@each("layout", ["wide", "long", "long-items"], few=["wide", "long-items"])
def test_audit_names_items_and_annotators(engine: Engine, layout: str) -> None:
    made = drawn(n=40, seed=4)
    data, words = made.shape(layout).given(engine)
    found = dhkappa.audit(data, ["llm", "rule"], rng=1, **(words | {"item": "id"}))
    expected = dhkappa.audit(np.array(made.votes, object), made.suggested, rng=1)
    place = {name: at for at, name in enumerate(made.items)}
    who = {name: at for at, name in enumerate(made.annotators)}
    for labeler in ("llm", "rule"):
        kappa, of_lists = found.kappas[labeler], expected.kappas[labeler]
        assert (kappa.value, kappa.se) == (of_lists.value, of_lists.se)
        items = [row | {"item": place[row["item"]]} for row in found.review(labeler).to_dicts()]
        assert sorted(items, key=lambda row: row["item"]) == sorted(
            expected.review(labeler).to_dicts(), key=lambda row: row["item"]
        )
        rows = [row | {"annotator": who[row["annotator"]]} for row in found.annotators(labeler).to_dicts()]
        assert rows == expected.annotators(labeler).to_dicts()
        annotator_comparison, of_array = found.annotator_comparison(labeler), expected.annotator_comparison(labeler)
        assert str(annotator_comparison) == str(of_array)
        by_person = [row | {"annotator": who[row["annotator"]]} for row in annotator_comparison.table.to_dicts()]
        assert by_person == of_array.table.to_dicts()


def test_audit_names_items_of_pandas_by_their_index() -> None:
    pytest.importorskip("pandas")
    made = drawn()
    from engines import _pandas

    frame = _pandas(made.shape("wide").columns, {}).set_index("id")
    found = dhkappa.audit(frame, "llm", annotators="ann_*", rng=1).review("llm").to_dicts()
    expected = dhkappa.audit(made.votes, made.suggested["llm"], rng=1).review().to_dicts()
    assert [row["item"] for row in found] == [made.items[row["item"]] for row in expected]
