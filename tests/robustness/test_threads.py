"""The same bits from threads and processes: shared and own inputs, shared results, files, first imports."""

import asyncio
import csv
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import reduce
from importlib.util import find_spec
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import dhkappa
from dhkappa.inputs import files
from dhkappa.inputs.backends import duckdb as duck

Answer = TypeVar("Answer")

THREADS = (1, 2, 8, 32)
LABELERS = {"rule": 0.6, "llm": 0.85}
has_duckdb = pytest.mark.skipif(find_spec("duckdb") is None, reason="duckdb is not installed")


def together(threads: int, call: Callable[[int], Answer]) -> list[Answer]:
    """Call a function in so many threads, which all start at once, and return what it returned to each."""
    barrier = threading.Barrier(threads)

    def one(place: int) -> Answer:
        barrier.wait()
        return call(place)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(threads)))


def drawn(seed: int = 1, n: int = 300) -> dhkappa.Simulation:
    return dhkappa.simulate(n, labelers=LABELERS, annotators=4, missing=0.1, rng=seed)


def bits(kappa: dhkappa.Kappa) -> tuple[object, ...]:
    """Everything about a kappa, every float to the bit."""
    floats = [
        kappa.value,
        kappa.baselines.random,
        kappa.baselines.majority,
        kappa.fleiss,
        kappa.se,
        *kappa.confidence_interval(),
        kappa.above_random,
    ]
    rows = [tuple(map(repr, row.values())) for table in (kappa.by_category(), kappa.confusion()) for row in table]
    return (kappa.exact, *map(float.hex, floats), kappa.permutation_test().pvalue.hex(), *rows, *map(str, kappa.notes))


def whole(audit: dhkappa.Audit) -> str:
    return json.dumps(audit.to_dict(limit=None), default=str)  # json writes floats so that they come back to the bit


def score(seed: int) -> dhkappa.Kappa:
    """What a process is asked for; it stands in a module, so that any process can find it."""
    made = drawn(seed)
    return dhkappa.dh_kappa(made.votes, made.suggested["llm"])


def audit(seed: int) -> dhkappa.Audit:
    made = drawn(seed)
    return dhkappa.audit(made.votes, made.suggested, rng=seed, progress=False)


def refuse(seed: int) -> None:
    dhkappa.dh_kappa([["a", "b"]], ["a"] * (seed + 2))


@pytest.mark.parametrize("threads", THREADS)
def test_threads_share_arrays(threads: int) -> None:
    made = drawn()
    first = bits(dhkappa.dh_kappa(made.votes, made.suggested["llm"]))
    assert {*together(threads, lambda _: bits(dhkappa.dh_kappa(made.votes, made.suggested["llm"])))} == {first}


@pytest.mark.parametrize("threads", THREADS)
def test_threads_have_inputs_of_their_own(threads: int) -> None:
    assert [bits(kappa) for kappa in together(threads, score)] == [bits(score(seed)) for seed in range(threads)]


def scattered(parts: int = 40) -> dhkappa.Tally:
    """A tally whose parts are not joined yet, and have different categories."""
    made = drawn(n=400)
    total = dhkappa.Tally()
    for part in range(parts):
        rows = slice(part * 10, part * 10 + 10)
        suggested = {name: [f"{label}{part % 3}" for label in labels[rows]] for name, labels in made.suggested.items()}
        total.update([[vote and f"{vote}{part % 3}" for vote in row] for row in made.votes[rows].tolist()], suggested)
    return total


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_ask_one_tally(threads: int, tmp_path: Path) -> None:
    def ask(tally: dhkappa.Tally, place: int) -> tuple[object, ...]:
        tally.save(tmp_path / f"{place}.json")
        saved = (tmp_path / f"{place}.json").read_bytes()
        return (bits(dhkappa.dh_kappa(tally, "llm")), repr(tally), len(tally), (tally + tally).n_votes, saved)

    first = ask(scattered(), 99)
    for _ in range(2):  # the tally is joined at the first question only
        shared = scattered()
        assert {*together(threads, lambda place, shared=shared: ask(shared, place))} == {first}  # type: ignore[misc]
        assert shared == scattered()


def test_a_tally_for_each_thread_adds_up_to_the_bits_of_one() -> None:
    made = drawn(n=640)

    def count(place: int) -> dhkappa.Tally:
        rows = slice(place, None, 32)
        own = {name: labels[rows] for name, labels in made.suggested.items()}
        return dhkappa.tally(made.votes[rows], own)

    total, once = reduce(add, together(32, count)), dhkappa.tally(made.votes, made.suggested)
    assert total == once
    assert bits(dhkappa.dh_kappa(total, "rule")) == bits(dhkappa.dh_kappa(once, "rule"))


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_ask_one_result(threads: int) -> None:
    first = bits(score(3))
    draws = score(3).bootstrap(200, rng=5, progress=False).values.tobytes()
    for _ in range(2):
        shared = score(3)  # nothing of it is computed yet
        assert {*together(threads, lambda _, shared=shared: bits(shared))} == {first}  # type: ignore[misc]

        def bootstrap(_: int, shared: dhkappa.Kappa = shared) -> bytes:
            return shared.bootstrap(200, rng=5, progress=False).values.tobytes()

        assert {*together(threads, bootstrap)} == {draws}


def test_threads_audit_and_ask_one_audit() -> None:
    first = whole(audit(2))
    assert {whole(found) for found in together(4, lambda _: audit(2))} == {first}
    shared = audit(2)
    assert {*together(4, lambda _: whole(shared))} == {first}


def test_seeds_and_swaps_in_threads() -> None:
    """What is drawn at random comes from the seed of a call, never from a state that threads share."""

    def draw(place: int) -> tuple[object, ...]:
        made = dhkappa.simulate(40, labelers=LABELERS, annotators=3, rng=place)
        compared = dhkappa.compare(made.votes, made.suggested, rng=place)
        tested = dhkappa.dh_kappa(made.votes, made.suggested["rule"]).permutation_test(
            "monte-carlo", n_resamples=99, rng=place
        )
        return (made.votes.tolist().__repr__(), repr(compared.differences.to_dicts()), tested.pvalue)

    assert together(8, draw) == [draw(place) for place in range(8)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A file with an item a row."""
    made, path = drawn(), tmp_path / "votes.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", *(f"ann_{place}" for place in range(4)), *(f"suggested_{name}" for name in LABELERS)])
        labels = zip(*made.suggested.values(), strict=True)
        rows = zip(made.votes.tolist(), labels, strict=True)
        writer.writerows([place, *votes, *given] for place, (votes, given) in enumerate(rows))
    return path


def of_table(data: Any) -> tuple[object, ...]:
    return bits(dhkappa.dh_kappa(data, suggested="suggested_llm", annotators="ann_*"))


@has_duckdb
@pytest.mark.parametrize("threads", THREADS[:-1])
def test_threads_read_one_file(threads: int, table: Path) -> None:
    assert {*together(threads, lambda _: of_table(table))} == {bits(score(1))}


@has_duckdb
def test_threads_read_files_of_their_own(tmp_path: Path, table: Path) -> None:
    header, *rows = table.read_text().splitlines(keepends=True)
    paths = [tmp_path / f"{place}.csv" for place in range(4)]
    for place, path in enumerate(paths):
        path.write_text(header + "".join(rows[: 40 + 30 * place]))
    assert together(4, lambda place: of_table(paths[place])) == [of_table(path) for path in paths]


@has_duckdb
def test_a_cursor_for_each_thread(table: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE votes AS FROM read_csv($1, all_varchar = true)", [str(table)])
        found = together(8, lambda _: of_table(connection.cursor().table("votes")))
    assert {*found} == {bits(score(1))}


@has_duckdb
@pytest.mark.parametrize("kind", ["relation", "source"])
def test_one_connection_in_many_threads_is_right_or_refused(kind: str, table: Path) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE votes AS FROM read_csv($1, all_varchar = true)", [str(table)])
    shared = connection.table("votes") if kind == "relation" else dhkappa.read(table)

    def ask(_: int) -> tuple[object, ...]:
        try:
            return of_table(shared)
        except dhkappa.DataError as error:
            return (str(error),)

    found = {*together(8, ask), of_table(shared)} - {bits(score(1))}
    assert found <= {
        (
            "the DuckDB connection of the table is busy in another thread, and answers one at a time: give each thread "
            "a table of its own, by connection.cursor() or from a path.",
        )
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_threads_share_a_frame(library: str, table: Path) -> None:
    pytest.importorskip(library)
    with table.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = {name: [row[place] or None for row in rows] for place, name in enumerate(header)}
    import importlib

    make = importlib.import_module(library)
    frame = make.table(columns) if library == "pyarrow" else make.DataFrame(columns)
    assert {*together(8, lambda _: of_table(frame))} == {bits(score(1))}


@has_duckdb
def test_the_longest_field_of_the_csv_module_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The csv module has one limit for all threads: while one reads a file with long fields, none may set it back."""
    before, opened = csv.field_size_limit(), files._unpacked
    times: Counter[str] = Counter()
    seen: list[int] = []

    def slowly(file: str) -> Any:
        times[file] += 1
        if times[file] == 2:  # after the header, the whole file
            threading.Event().wait((1 + int(Path(file).stem)) / 10)
            seen.append(csv.field_size_limit())
        return opened(file)

    monkeypatch.setattr(files, "_unpacked", slowly)
    monkeypatch.setattr(files, "_may_hide_lines", lambda file: True)
    paths = [tmp_path / f"{place}.csv" for place in range(3)]
    for path in paths:
        path.write_text('a,b\n1,"x\n')

    def read(place: int) -> None:
        with pytest.raises(dhkappa.DataError, match="well-formed"):
            dhkappa.read(paths[place])

    together(3, read)
    assert csv.field_size_limit() == before
    assert seen == [duck.MOST_OF_LINE] * 3


FIRST = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import dhkappa
names = [name for name in dhkappa.__all__ if name not in {left}]
barrier = threading.Barrier(16)
def ask(place):
    barrier.wait()
    found = [getattr(dhkappa, name) for name in names[place % len(names):] + names[:place % len(names)]]
    return dhkappa.dh_kappa([["a", "a"], ["a", "b"], ["b", "b"]], ["a", "b", "b"]).confidence_interval().low.hex(), len(found)
with ThreadPoolExecutor(16) as pool:
    print(*sorted(set(pool.map(ask, range(16)))))
"""


def test_first_imports_race_in_threads() -> None:
    """Rooms are opened when they are asked for, here by 16 threads at once."""
    left = [] if find_spec("duckdb") else ["read", "Source"]
    expected = dhkappa.dh_kappa([["a", "a"], ["a", "b"], ["b", "b"]], ["a", "b", "b"]).confidence_interval().low.hex()
    code = FIRST.replace("{left}", repr(left))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout.strip() == repr((expected, len(dhkappa.__all__) - len(left)))


def test_to_thread() -> None:
    async def ask() -> list[dhkappa.Kappa]:
        return await asyncio.gather(*(asyncio.to_thread(score, seed) for seed in range(6)))

    assert [bits(kappa) for kappa in asyncio.run(ask())] == [bits(score(seed)) for seed in range(6)]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_send_results_back(method: str) -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        assert [bits(kappa) for kappa in pool.map(score, range(2))] == [bits(score(seed)) for seed in range(2)]
        assert whole(pool.submit(audit, 2).result()) == whole(audit(2))
        with pytest.raises(dhkappa.DataError, match="1 item but suggested has 2"):
            pool.submit(refuse, 0).result()


def test_results_survive_being_sent() -> None:
    made = drawn()
    compared = dhkappa.compare(made.votes, made.suggested, rng=1)
    tally = dhkappa.tally(made.votes, made.suggested)
    planned = dhkappa.plan(0.05, n_categories=3, annotator_accuracy=0.85, labeler_accuracy=0.9)
    for held in (
        compared,
        tally,
        planned,
        made,
        audit(2),
        score(2),
        score(2).bootstrap(20, rng=1),
        score(2).permutation_test(),
    ):
        back = pickle.loads(pickle.dumps(held))
        assert repr(back) == repr(held)
    assert pickle.loads(pickle.dumps(tally)) == tally
    asked = score(2)
    asked.confidence_interval()  # what a result has computed goes with it
    assert bits(pickle.loads(pickle.dumps(asked))) == bits(score(2))


@has_duckdb
def test_a_source_cannot_be_sent(table: Path) -> None:
    """It holds a connection: other processes take the path."""
    with pytest.raises(dhkappa.DataError, match="cannot be sent or stored"):
        pickle.dumps(dhkappa.read(table))


def test_arrays_are_not_written_to() -> None:
    made = drawn()
    votes = np.array(made.votes)
    votes.setflags(write=False)
    labels = {name: np.array(given) for name, given in made.suggested.items()}
    for given in labels.values():
        given.setflags(write=False)
    found = together(2, lambda _: whole(dhkappa.audit(votes, labels, rng=2, progress=False)))
    assert len({*found}) == 1
