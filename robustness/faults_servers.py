"""Engine failures: Dask's scheduler killed, Postgres restarted during a query.

The test suite kills workers of Spark and Dask.
"""

import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dhkappa
from faults_common import TIMEOUT, Fault, finish, is_error, run, start
from section import ROOT, temporary_folder

sys.path.insert(0, str(ROOT / "tests"))

import postgres

LABELERS = {"llm": 0.85, "rule": 0.6}
ROLES: Any = {"item": "item", "label": "label", "annotator": "annotator"}
SLOW = "CASE WHEN pg_sleep(0.001)::text = '' THEN label END"  # a millisecond per vote


def servers(times: int) -> Iterator[Fault]:
    """Kill and restart servers during a query."""
    drawn = dhkappa.simulate(100, annotators=3, labelers=LABELERS, rng=1)
    if find_spec("distributed"):
        yield _dask_scheduler(times)
    else:
        yield Fault("kill -9 of the Dask scheduler, during the count", skipped="Dask is not installed")
    programs = postgres._programs()
    if programs is None or not find_spec("ibis") or not find_spec("psycopg"):
        yield Fault("Postgres restarted during a query", skipped="Postgres, ibis or psycopg is not installed")
        return
    with temporary_folder() as folder, contextmanager(postgres._serve)(programs, Path(folder)) as server:
        running = _Postgres(Path(folder), programs, server)
        running.create(drawn)
        expected = dhkappa.tally(drawn.votes, drawn.suggested)
        try:
            for mode in ("fast", "immediate"):
                for name, query in (("of `score`", _query_command), ("from Python", _query_python)):
                    fault = Fault(f"Postgres stopped ({mode}) and restarted during a query {name}")
                    for _ in range(times):
                        query(fault, running, mode, expected)
                    yield fault
        finally:
            running.control("stop", "fast")


def _dask_scheduler(times: int) -> Fault:
    fault = Fault("kill -9 of the Dask scheduler, during the count")
    distributed: Any = importlib.import_module("distributed")
    config: Any = importlib.import_module("dask.config")
    pandas: Any = importlib.import_module("pandas")
    dataframe: Any = importlib.import_module("dask.dataframe")
    config.set({"distributed.comm.timeouts.connect": "5s", "distributed.comm.retry.count": 0})
    rows = pandas.DataFrame({"item": range(40), "suggested": "x", "ann_1": "x", "ann_2": "y"})
    for _ in range(times):
        with temporary_folder() as folder:
            port = str(postgres._free_port())
            address = f"tcp://127.0.0.1:{port}"
            scheduler = _daemon(folder, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
            worker = _daemon(folder, "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
            try:
                with distributed.Client(address, timeout=60):
                    data = dataframe.from_pandas(rows, npartitions=20).map_partitions(_slowly, meta=rows)
                    _expect_error(fault, lambda data=data: dhkappa.tally(data), scheduler.kill)  # type: ignore[misc]
            finally:
                for process in (worker, scheduler):
                    process.kill()
                    process.wait()
    return fault


def _slowly(part: Any) -> Any:
    time.sleep(0.2)
    return part


def _expect_error(fault: Fault, query: Callable[[], object], inject: Callable[[], None]) -> None:
    """Inject a fault a second after the start of a query, and require an error."""
    timer = threading.Timer(1.0, inject)
    timer.start()
    try:
        found = query()
    except dhkappa.DataError as error:
        fault.add(True, f"error: {error.code}")
    except BaseException as error:
        fault.add(False, "another exception", repr(error))
    else:
        fault.add(False, "no error", repr(found))
    finally:
        timer.join()


def _daemon(folder: str, name: str, *words: str) -> subprocess.Popen[bytes]:
    with open(Path(folder) / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{name}", *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": folder},
        )


class _Postgres:
    """A server that can be restarted."""

    def __init__(self, folder: Path, programs: Path, server: postgres.Server) -> None:
        self.folder, self.programs, self.url = folder, programs, server.url()
        self.options = f"-h {server.host} -p {server.port} -k {folder} -F"

    def create(self, drawn: dhkappa.Simulation) -> None:
        """Create a table in long format that is slow to read."""
        psycopg: Any = importlib.import_module("psycopg")
        rows = [
            (str(item), str(annotator), vote, *(str(labels[item]) for labels in drawn.suggested.values()))
            for item, votes in enumerate(drawn.votes.tolist())
            for annotator, vote in enumerate(votes)
        ]
        with psycopg.connect(self.url) as connection:
            connection.execute("CREATE TABLE votes (item text, annotator text, label text, llm text, rule text)")
            connection.cursor().executemany("INSERT INTO votes VALUES (%s, %s, %s, %s, %s)", rows)
            connection.execute(f"CREATE VIEW slow AS SELECT item, annotator, {SLOW} AS label, llm, rule FROM votes")

    def wait_for_query(self) -> None:
        """Wait until the slow table is being read."""
        psycopg: Any = importlib.import_module("psycopg")
        with psycopg.connect(self.url, autocommit=True) as connection:
            end = time.monotonic() + TIMEOUT
            while not connection.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchall():
                assert time.monotonic() < end, "no query"
                time.sleep(0.01)

    def control(self, command: str, mode: str) -> None:
        """Restart or stop the server."""
        user = postgres._owner()
        who: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        options = [
            "-D",
            str(self.folder / "data"),
            "-m",
            mode,
            "-w",
            "-l",
            str(self.folder / "restarts"),
            "-o",
            self.options,
        ]
        words = [str(self.programs / "pg_ctl"), command, *options]
        subprocess.run(words, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, **who)


def _no_password(text: str) -> bool:
    return postgres.PASSWORD not in text and "s3cret" not in text


def _query_command(fault: Fault, server: _Postgres, mode: str, expected: dhkappa.Tally) -> None:
    words = ["score", server.url, "--table", "slow", "-s", "llm,rule", "--format", "json"]
    child = start(words)
    server.wait_for_query()
    server.control("restart", mode)
    code, out, err = finish(child)
    if not is_error(code, err) or out or not _no_password(err):
        fault.add(False, "no error", (code, out, err))
        return
    code, out, err = run(words)
    labelers = json.loads(out or "{}").get("result", {}).get("labelers", {})
    right = {name: str(dhkappa.dh_kappa(expected, name).exact) for name in LABELERS}
    found = {name: labeler["exact"] for name, labeler in labelers.items()}
    text = "error without the password, exit code 2; correct result on the next query"
    fault.add(code == 0 and found == right and _no_password(out + err), text, (code, found, err))


def _query_python(fault: Fault, server: _Postgres, mode: str, expected: dhkappa.Tally) -> None:
    def query() -> dhkappa.Tally:
        return dhkappa.read(server.url, table="slow", suggested=list(LABELERS), **ROLES).tally()

    def restart() -> None:
        server.wait_for_query()
        server.control("restart", mode)

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        query()
    except dhkappa.DataError as error:
        thread.join()
        right = _no_password(str(error)) and query() == expected
        fault.add(right, "error without the password; identical counts on the next query", error)
    else:
        thread.join()
        fault.add(False, "no error")
