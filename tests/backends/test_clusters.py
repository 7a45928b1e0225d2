"""Tables of a Spark cluster and of a Dask cluster count as lists do, also when a part of the cluster dies midway."""

import importlib
import os
import random
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from clusters import Asker, Came, Gate, SparkCluster, dask, kill, need, session, spark, spark_cluster
from dhkappa.errors import DataError
from dhkappa.inputs.columns import RoleKeywords
from dhkappa.stats.comparison import Comparison
from postgres import Server, postgres
from shapes import of_lists

__all__ = ["dask", "postgres", "spark", "spark_cluster"]  # fixtures

pytestmark = pytest.mark.slow

PEOPLE = ["ann_1", "ann_2", "ann_3"]
LABELERS = ["llm", "rule"]
PARTS = 4
WIDE: RoleKeywords = {"annotators": "ann_*"}
LONG: RoleKeywords = {"item": "item", "label": "label", "annotator": "annotator"}


def _drawn() -> tuple[list[list[str | None]], dict[str, list[str | None]]]:
    """Return the votes and the suggested labels of 600 items; some of either are missing."""
    rng = random.Random(20)
    labels = ["ham", "spam", "news", None]
    votes = [rng.choices(labels, [5, 3, 2, 1], k=len(PEOPLE)) for _ in range(600)]
    return votes, {who: rng.choices(labels, [4, 3, 3, 1], k=len(votes)) for who in LABELERS}


VOTES, SUGGESTED = _drawn()


def _rows(name: str) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Return the columns and the rows of the table with an item a row, that with a vote a row, or that of items."""
    items = [f"i{place:04d}" for place in range(len(VOTES))]
    labels = list(zip(*SUGGESTED.values(), strict=True))
    if name == "wide":
        return [*PEOPLE, *LABELERS], [(*votes, *given) for votes, given in zip(VOTES, labels, strict=True)]
    if name == "items":
        return ["item", *LABELERS], [(item, *given) for item, given in zip(items, labels, strict=True)]
    votes: list[tuple[str | None, ...]] = [
        (item, *vote) for item, row in zip(items, VOTES, strict=True) for vote in zip(PEOPLE, row, strict=True)
    ]
    random.Random(21).shuffle(votes)
    return ["item", "annotator", "label"], votes


def _spark_table(name: str) -> Any:
    columns, rows = _rows(name)
    return session().createDataFrame(rows, ", ".join(f"{column} string" for column in columns)).repartition(PARTS)


def _dask_table(name: str, parts: int = PARTS) -> Any:
    import pandas

    columns, rows = _rows(name)
    return _dataframe().from_pandas(pandas.DataFrame(rows, columns=columns), npartitions=parts)


def _dataframe() -> Any:
    return importlib.import_module("dask.dataframe")


def _long(table: Callable[[str], Any]) -> RoleKeywords:
    return {**LONG, "items": table("items")}


def _tally(table: Callable[[str], Any], layout: str) -> dhkappa.Tally:
    """Count the votes of a table that a function makes."""
    if layout == "wide":
        return dhkappa.tally(table("wide"), LABELERS, **WIDE)
    return dhkappa.tally(table("long"), LABELERS, **_long(table))


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_spark_cluster_against_lists(spark: SparkCluster, layout: str) -> None:
    assert spark.asker.run(_tally, _spark_table, layout) == of_lists(VOTES, SUGGESTED)


@pytest.mark.xdist_group("dask")
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_dask_cluster_against_lists(dask: Asker, layout: str) -> None:
    assert dask.run(_tally, _dask_table, layout) == of_lists(VOTES, SUGGESTED)


def test_dask_table_in_many_partitions() -> None:
    """From some number of partitions on, a group-by of Dask has several too, and a second one after it may fail."""
    need("dask", "pandas", "pyarrow")
    config: Any = importlib.import_module("dask.config")
    with config.set(scheduler="synchronous"):  # no cluster: it would take long to send so many small tasks around
        assert _tally(partial(_dask_table, parts=20), "long") == of_lists(VOTES, SUGGESTED)


def _told(comparison: Comparison) -> Any:
    return {who: kappa.to_dict() for who, kappa in comparison.kappas.items()}, comparison.differences.to_dicts()


def _expected() -> tuple[Any, Any]:
    return dhkappa.dh_kappa(VOTES, SUGGESTED["llm"]).to_dict(), _told(dhkappa.compare(VOTES, SUGGESTED))


READS = {"wide": {"wide": 1}, "long": {"long": 3, "items": 2}, "long, annotator=None": {"long": 2, "items": 2}}


@pytest.mark.parametrize("layout", READS)
def test_how_often_tables_are_read(layout: str) -> None:
    need("dask", "pandas", "pyarrow")
    config: Any = importlib.import_module("dask.config")
    reads: Counter[str] = Counter()

    def table(name: str) -> Any:
        def read(part: Any, _: str) -> Any:
            reads[name] += 1
            return part

        plain = _dask_table(name)
        once = uuid.uuid4().hex  # Dask takes equal work for the same, and would count in an earlier test's counter
        return plain.map_partitions(read, once, meta=plain._meta)

    words: RoleKeywords = WIDE if layout == "wide" else _long(table)
    if layout.endswith("None"):
        words["annotator"] = None
    with config.set(scheduler="synchronous"):
        dhkappa.compare(table(layout[:4]), LABELERS, **words)
    assert {name: n / PARTS for name, n in reads.items()} == READS[layout]


PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("how-to/engines.md", "big-data.md")]


def _example(heading: str, **change: str) -> str:
    """Return the code in a section of the pages, with some of its text changed."""
    whole = "".join(page.read_text() + "\n## \n" for page in PAGES)
    section = whole.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    code: str
    (code,) = re.findall("```python\n(.*?)```", section, re.DOTALL)
    for old, new in change.items():
        assert old in code
        code = code.replace(old, new)
    return code


def _run_examples(folder: str, first: str) -> list[Any]:
    """Run the code of an engine's section and then that of counting once, where the tables lie."""
    import pandas

    os.chdir(folder)
    os.mkdir("counts")
    for name, table in {"tickets": "wide", "votes": "long", "items": "items"}.items():
        columns, rows = _rows(table)
        pandas.DataFrame(rows, columns=columns).to_parquet(f"{name}.parquet")
    names: dict[str, Any] = {}
    results = []
    for code in (first, _example("Count once")):
        exec(code, names)
        results.append((names.pop("kappa").to_dict(), _told(names.pop("comparison"))))
    if "client" in names:
        names["client"].close()
    return results


@pytest.mark.xdist_group("spark")
def test_examples_for_spark(spark: SparkCluster, tmp_path: Path) -> None:
    code = _example("Spark", **{'parquet("': f'parquet("{tmp_path}/'})  # Java has a folder of its own to start from
    assert spark.asker.run(_run_examples, str(tmp_path), code) == [_expected()] * 2


@pytest.mark.xdist_group("dask")
def test_examples_for_dask(dask: Asker, tmp_path: Path) -> None:
    code = _example("Dask", **{"tcp://scheduler:8786": dask.run(_scheduler)})
    spark_code = _example("Spark")  # the page refers to it for the long format
    code += spark_code[spark_code.index("votes = ") :].replace("spark.read.parquet", "dd.read_parquet")
    assert dask.run(_run_examples, str(tmp_path), code) == [_expected()] * 2


def _scheduler() -> str:
    return str(session().scheduler.address)


@pytest.mark.xdist_group("postgres")
def test_examples_for_databases(postgres: Server) -> None:
    need("ibis", "psycopg")
    psycopg: Any = importlib.import_module("psycopg")
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE labels")
    with psycopg.connect(postgres.url("labels")) as connection:
        for name, table in {"votes": "long", "items": "items"}.items():
            columns, rows = _rows(table)
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{column} text' for column in columns)})")
            connection.cursor().executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(columns))})", rows)
    names: dict[str, Any] = {}
    exec(_example("Postgres", **{"postgresql://me@host/labels": postgres.url("labels")}), names)
    assert _told(names["comparison"]) == _expected()[1]
    for source in ("data", "items"):
        names[source]._data.votes.get_backend().disconnect()


def _raising_spark() -> None:
    from pyspark.sql.functions import udf

    @udf("string")
    def broken(label: str) -> str:
        import json

        return str(json.loads("{" + label))  # fails some calls deeper

    dhkappa.dh_kappa(_spark_table("wide").withColumn("ann_1", broken("ann_1")), "llm", **WIDE)


def _raising_dask() -> None:
    plain = _dask_table("wide")

    def broken(part: Any) -> Any:
        raise ValueError("the label service is down")

    dhkappa.dh_kappa(plain.map_partitions(broken, meta=plain._meta), "llm", **WIDE)


def _vanished_spark(folder: str) -> None:
    _spark_table("wide").write.parquet(folder)
    table = session().read.parquet(folder)
    _lose_one(folder)
    dhkappa.dh_kappa(table, "llm", **WIDE)


def _vanished_dask(folder: str) -> None:
    _dask_table("wide").to_parquet(folder)
    table = _dataframe().read_parquet(folder)
    _lose_one(folder)
    dhkappa.dh_kappa(table, "llm", **WIDE)


def _lose_one(folder: str) -> None:
    sorted(Path(folder).glob("*.parquet"))[1].unlink()


def _said(error: DataError, engine: str) -> str:
    """Return the engine's own message, below ours."""
    assert error.code == "engine-error"
    assert error.message.startswith(engine)
    return error.message.partition("\n")[2]


@pytest.mark.xdist_group("spark")
def test_what_spark_says(spark: SparkCluster, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        spark.asker.run(_raising_spark)
    assert "JSONDecodeError: Expecting property name" in _said(caught.value, "Spark")
    with pytest.raises(DataError) as caught:
        spark.asker.run(_vanished_spark, str(tmp_path / "votes"))
    assert "does not exist" in _said(caught.value, "Spark")


@pytest.mark.xdist_group("dask")
def test_what_dask_says(dask: Asker, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        dask.run(_raising_dask)
    assert "the label service is down" in _said(caught.value, "Dask")
    with pytest.raises(DataError) as caught:
        dask.run(_vanished_dask, str(tmp_path / "votes"))
    assert "part.1.parquet" in _said(caught.value, "Dask")


def _gated_spark(gate: Gate, layout: str) -> dhkappa.Tally:
    keeper = gate.keeper()

    def through(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        keeper(task.partitionId() if task else None)
        yield from batches

    def table(name: str) -> Any:
        plain = _spark_table(name)
        return plain if name == "items" else plain.mapInArrow(through, plain.schema)

    return _tally(table, layout)


def _gated_dask(gate: Gate, layout: str) -> dhkappa.Tally:
    keeper = gate.keeper()

    def through(part: Any) -> Any:
        keeper(part.index[0])
        return part

    def table(name: str) -> Any:
        plain = _dask_table(name)
        return plain if name == "items" else plain.map_partitions(through, meta=plain._meta)

    return _tally(table, layout)


# How many tasks are let through before one is caught; a long layout asks more than once.
MIDWAY = [("wide", PARTS // 2), ("long", 2 * PARTS + PARTS // 2)]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(("layout", "few"), MIDWAY)
def test_spark_worker_killed_midway(spark: SparkCluster, tmp_path: Path, layout: str, few: int) -> None:
    gate = Gate.in_folder(tmp_path, few)
    run = spark.asker.begin(_gated_spark, gate, layout)
    caught = gate.catch(run)
    _killed_midway(gate, spark.asker, run, caught, spark.behind(caught.process))


@pytest.mark.xdist_group("dask")
@pytest.mark.parametrize(("layout", "few"), MIDWAY)
def test_dask_worker_killed_midway(dask: Asker, tmp_path: Path, layout: str, few: int) -> None:
    gate = Gate.in_folder(tmp_path, few)
    run = dask.begin(_gated_dask, gate, layout)
    caught = gate.catch(run)
    _killed_midway(gate, dask, run, caught, [caught.process])


def _killed_midway(gate: Gate, asker: Asker, run: "Future[dhkappa.Tally]", caught: Came, processes: list[int]) -> None:
    before = len(gate.came())
    kill(processes)
    assert not run.done()
    gate.open()
    assert asker.wait(run) == of_lists(VOTES, SUGGESTED)
    assert caught.part in [task.part for task in gate.came()[before:]], "the part that was lost was not done again"


@pytest.mark.xdist_group("dask")
def test_dask_workers_need_no_dhkappa(dask: Asker) -> None:
    assert dask.run(_tally_elsewhere) == of_lists(VOTES, SUGGESTED)


def _tally_elsewhere() -> dhkappa.Tally:
    """Count where dhkappa and narwhals cannot be imported."""

    def hide() -> None:
        import sys

        for name in list(sys.modules):
            if name.partition(".")[0] in ("dhkappa", "narwhals"):
                del sys.modules[name]
        sys.modules |= {"dhkappa": None, "narwhals": None}  # type: ignore[dict-item]

    def show() -> None:
        import sys

        for name in ("dhkappa", "narwhals"):
            sys.modules.pop(name, None)  # a worker may have started anew

    session().run(hide)
    try:
        return _tally(_dask_table, "long")
    finally:
        session().run(show)
