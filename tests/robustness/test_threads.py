"""Threads and processes: the same results to the last bit."""

import csv
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from importlib.util import find_spec
from operator import add
from pathlib import Path

import numpy as np
import pytest

import dhkappa
import threads
from threads import Counts, audit, audit_bits, bits, drawn, score, together

has_duckdb = pytest.mark.skipif(find_spec("duckdb") is None, reason="duckdb is not installed")
TASKS = (
    "kappa, shared arrays",
    "kappa, separate arrays",
    "audit, shared arrays",
    "one tally, not merged yet",
    "one result, nothing computed yet",
    "one audit, with its review tables",
    "bootstrap with a seed",
    "simulation, comparison and test with a seed",
    "one CSV file",
    "user's DuckDB connection, one cursor per thread",
    "user's DuckDB connection, one shared relation",
    "one result of `read`, shared",
    "one pandas dataframe",
    "one Polars dataframe",
    "one lazy Polars dataframe",
    "one PyArrow table",
)


@pytest.mark.parametrize("name", TASKS)
def test_threads_give_the_result_of_one_thread(name: str, tmp_path: Path) -> None:
    found = threads.tasks(tmp_path)
    if name not in found:
        pytest.skip("a library is not installed")
    counts = threads.run_task(found[name], (2, 8), 1)
    assert (counts.results, counts.different) == (10, 0)
    assert counts.rejected == 0 or name.endswith("shared relation") or "read" in name


def test_all_tasks_are_tested(tmp_path: Path) -> None:
    assert set(threads.tasks(tmp_path)) <= set(TASKS)


def test_different_results_are_counted() -> None:
    task = threads.Task(lambda: None, lambda _, place: place)
    assert threads.run_task(task, (1, 3), 1) == Counts(results=4, rejected=0, different=2)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_send_results(method: str) -> None:
    assert threads.run_processes(method) == Counts(results=5)


def reject(seed: int) -> None:
    dhkappa.dh_kappa([["a", "b"]], ["a"] * (seed + 2))


def test_processes_send_errors() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        error = pool.submit(pickle.dumps, _error()).result()
    assert str(pickle.loads(error)) == str(_error())
    assert pickle.loads(error).code == _error().code


def _error() -> dhkappa.DataError:
    with pytest.raises(dhkappa.DataError) as caught:
        reject(0)
    return caught.value


def test_first_imports() -> None:
    assert threads.first_imports(1) == Counts(results=1)


def test_wrong_first_imports_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FIRST_IMPORT", "print(('0x1.0p+0', 25))")
    assert threads.first_imports(2).different == 2


def test_asyncio() -> None:
    assert threads.in_asyncio(6) == Counts(results=6)


def test_tallies_of_threads_add_up() -> None:
    made = drawn(n=640)

    def count(place: int) -> dhkappa.Tally:
        rows = slice(place, None, 32)
        return dhkappa.tally(made.votes[rows], {name: labels[rows] for name, labels in made.suggested.items()})

    total, once = reduce(add, together(32, count)), dhkappa.tally(made.votes, made.suggested)
    assert total == once
    assert bits(dhkappa.dh_kappa(total, "rule")) == bits(dhkappa.dh_kappa(once, "rule"))


@has_duckdb
def test_the_limit_of_the_csv_module_is_restored(tmp_path: Path) -> None:
    """The csv module has one field size limit for all threads."""
    before = csv.field_size_limit()
    for place in range(3):
        (tmp_path / f"{place}.csv").write_text('a,b\n1,"x\n')

    def read(place: int) -> None:
        with pytest.raises(dhkappa.DataError):
            dhkappa.tally(tmp_path / f"{place}.csv")

    together(3, read)
    assert csv.field_size_limit() == before


def test_results_can_be_pickled() -> None:
    made = drawn()
    tally = dhkappa.tally(made.votes, made.suggested)
    results = (
        dhkappa.compare(made.votes, made.suggested, rng=1),
        tally,
        dhkappa.plan(0.05, n_categories=3, annotator_accuracy=0.85, labeler_accuracy=0.9),
        made,
        audit(made),
        score(2),
        score(2).bootstrap(20, rng=1),
        score(2).permutation_test(),
    )
    for result in results:
        assert repr(pickle.loads(pickle.dumps(result))) == repr(result)
    assert pickle.loads(pickle.dumps(tally)) == tally
    kappa = score(2)
    kappa.confidence_interval()  # computed values are pickled as well
    assert bits(pickle.loads(pickle.dumps(kappa))) == bits(score(2))


@has_duckdb
def test_the_result_of_read_cannot_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(dhkappa.DataError):
        pickle.dumps(dhkappa.read(threads.write_table(tmp_path / "votes.csv")))


def test_arrays_are_not_modified() -> None:
    made = drawn()
    votes = np.array(made.votes)
    votes.setflags(write=False)
    labels = {name: np.array(given) for name, given in made.suggested.items()}
    for given in labels.values():
        given.setflags(write=False)
    found = together(2, lambda _: audit_bits(dhkappa.audit(votes, labels, rng=2, progress=False)))
    assert len({*found}) == 1
