"""Engines that die in the middle of a question: processes of Spark and Dask killed, Postgres stopped and started."""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from dhkappa.errors import DataError
from faults_trial import PATIENCE, Trial, finish, sentence, start

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import clusters
import postgres
import test_clusters as asked
from clusters import Asker, Gate

_HERE = "127.0.0.1"
clusters.PATIENCE = PATIENCE  # other trials may run beside this one


def _skipping(what: str, trial: Callable[[], Iterator[Trial]]) -> Iterator[Trial]:
    """Run a trial; where the machine lacks what it needs, say so."""
    try:
        yield from trial()
    except pytest.skip.Exception as reason:
        yield Trial(what, skipped=str(reason))


def servers(times: int) -> Iterator[Trial]:
    """Kill and restart what counts, in the middle of a question."""
    yield from _skipping("Spark", lambda: _spark(times))
    yield from _skipping("Dask", lambda: _dask(times))
    yield from _skipping("Dask's scheduler", lambda: _scheduler(times))
    yield from _skipping("Postgres", lambda: _postgres(times))


def _spark(times: int) -> Iterator[Trial]:
    with contextmanager(clusters.spark_cluster.__wrapped__)() as cluster:  # type: ignore[attr-defined]
        for layout, few in asked.MIDWAY:
            trial = Trial(f"kill -9 of a Spark worker and its executor, votes in a {layout} table half counted")
            for _ in range(times):
                cluster.mend()
                _midway(trial, cluster.asker, asked._gated_spark, layout, few, cluster.behind)
            yield trial


def _dask(times: int) -> Iterator[Trial]:
    with contextmanager(clusters.dask.__wrapped__)() as asker:  # type: ignore[attr-defined]
        for layout, few in asked.MIDWAY:
            trial = Trial(f"kill -9 of a Dask process that counts, votes in a {layout} table half counted")
            for _ in range(times):
                _midway(trial, asker, asked._gated_dask, layout, few, lambda process: [process])
            yield trial


def _midway(trial: Trial, asker: Asker, count: Any, layout: str, few: int, behind: Callable[[int], list[int]]) -> None:
    """Wait until a task stands at the gate, kill what runs it, and see what comes of it."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
        gate = Gate.in_folder(Path(folder), few)
        run = asker.begin(count, gate, layout)
        clusters.kill(behind(gate.catch(run).process))
        gate.open()
        _judge(trial, lambda: asker.wait(run))


def _judge(trial: Trial, answer: Callable[[], dhkappa.Tally]) -> None:
    try:
        found = answer()
    except DataError as error:
        trial.saw(f"a sentence: '{str(error).splitlines()[0]}'")
    except BaseException as error:
        trial.failed(f"{type(error).__name__}: {error}")
    else:
        if found == dhkappa.tally(asked.VOTES, asked.SUGGESTED):
            trial.saw("the same counts, to the last bit")
        else:
            trial.failed(f"other counts: {found!r}")


def _join(address: str) -> None:
    """Make a process one that asks the cluster at an address."""
    distributed: Any = importlib.import_module("distributed")
    config: Any = importlib.import_module("dask.config")
    config.set({"distributed.comm.timeouts.connect": "5s", "distributed.comm.retry.count": 0})
    clusters._session = distributed.Client(address)


def _leave() -> None:
    clusters.session().close()


def _scheduler(times: int) -> Iterator[Trial]:
    clusters.need("dask", "distributed", "pandas", "pyarrow")
    trial = Trial("kill -9 of Dask's scheduler, votes half counted")
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
            port = str(_free_port())
            address = f"tcp://{_HERE}:{port}"
            scheduler = _daemon(folder, "scheduler", "--host", _HERE, "--port", port, "--no-dashboard")
            worker = _daemon(folder, "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
            try:
                with clusters._asking(_join, _leave, address) as asker:
                    gate = Gate.in_folder(Path(folder), 2)
                    run = asker.begin(asked._gated_dask, gate, "wide")
                    gate.catch(run)
                    scheduler.kill()
                    _judge(trial, lambda run=run, asker=asker: asker.wait(run))  # type: ignore[misc]
                    gate.open()
            finally:
                for process in (worker, scheduler):
                    process.kill()
                    process.wait()
    yield trial


def _daemon(folder: str, what: str, *words: str) -> subprocess.Popen[bytes]:
    with open(Path(folder) / f"{what}.log", "wb") as log:
        return subprocess.Popen(
            [*clusters._mortal(), sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": folder},
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HERE, 0))
        return int(probe.getsockname()[1])


_SLOW = "CASE WHEN pg_sleep(0.001)::text = '' THEN label END"  # a moment for each vote, to be stopped in
_WORDS: Any = {"item": "item", "label": "label", "annotator": "annotator"}


class _Server:
    """A server that can be stopped at once, and started again."""

    def __init__(self, folder: Path, server: postgres.Server) -> None:
        self.folder, self.server, self.again = folder, server, list[subprocess.Popen[bytes]]()

    def wait_for_query(self) -> None:
        """Wait until the slow table is being read."""
        psycopg: Any = importlib.import_module("psycopg")
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            ended = time.monotonic() + PATIENCE
            while not connection.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchall():
                assert time.monotonic() < ended, "nobody asked"
                time.sleep(0.01)
        time.sleep(0.2)

    def restart(self, sign: int) -> None:
        """Stop the server with a signal, and start it again on the same data."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, sign)
        clusters._wait(lambda: not clusters._runs(pid))
        programs, user = postgres._programs(), postgres._owner()
        who: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        words = f"-h {_HERE} -p {self.server.port} -k {self.folder} -F".split()
        log = self.folder / "log"
        with log.open("ab") as output:
            self.again.append(
                subprocess.Popen(
                    [str((programs or Path()) / "postgres"), "-D", str(self.folder / "data"), *words],
                    cwd=self.folder,
                    stdout=output,
                    stderr=output,
                    **who,
                )
            )
        postgres._wait_until_ready(self.again[-1], self.folder / "data", log)

    def stop(self) -> None:
        """Stop what was started here."""
        for process in self.again:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(20)


def _postgres(times: int) -> Iterator[Trial]:
    clusters.need("ibis", "psycopg")
    programs = postgres._programs()
    if programs is None:
        pytest.skip("there is no Postgres")
    psycopg: Any = importlib.import_module("psycopg")
    with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
        Path(folder).chmod(0o755)
        with contextmanager(postgres._serve)(programs, Path(folder)) as server:
            running = _Server(Path(folder), server)
            try:
                with psycopg.connect(server.url()) as connection:
                    _, rows = asked._rows("long")
                    labels = dict(
                        zip(*zip(*((row[0], row[1:]) for row in asked._rows("items")[1]), strict=True), strict=True)
                    )
                    connection.execute(
                        "CREATE TABLE votes (item text, annotator text, label text, llm text, rule text)"
                    )
                    connection.cursor().executemany(
                        "INSERT INTO votes VALUES (%s, %s, %s, %s, %s)",
                        [(*row, *labels[row[0]]) for row in rows],
                    )
                    connection.execute(
                        f"CREATE VIEW slow AS SELECT item, annotator, {_SLOW} AS label, llm, rule FROM votes"
                    )
                for sign, how in ((signal.SIGINT, "fast"), (signal.SIGQUIT, "immediate")):
                    for name, ask in (("`score`", _ask_command), ("Python", _ask_python)):
                        trial = Trial(f"Postgres stopped ({how}) and started again while {name} asks it")
                        for _ in range(times):
                            ask(trial, running, sign)
                        yield trial
            finally:
                running.stop()


def _kappas() -> dict[str, Any]:
    whole = dhkappa.tally(asked.VOTES, asked.SUGGESTED)
    return {name: str(dhkappa.dh_kappa(whole, name).exact) for name in asked.LABELERS}


def _secret(text: str) -> bool:
    return postgres.PASSWORD in text or "s3cret" in text


def _ask_command(trial: Trial, running: _Server, sign: int) -> None:
    words = ["score", running.server.url(), "--table", "slow", "-s", "llm,rule", "--json"]
    child = start(words)
    running.wait_for_query()
    running.restart(sign)
    out, said = child.communicate(timeout=PATIENCE)
    err = said.decode()
    if not sentence(child.returncode, err) or out or _secret(err):
        trial.failed(f"exit {child.returncode}: {err}")
        return
    code, again, err = finish(words)
    right = {
        name: found["exact"] for name, found in json.loads(again or "{}").get("result", {}).get("labelers", {}).items()
    }
    if code or right != _kappas() or _secret(again + err):
        trial.failed(f"asked again: exit {code}: {right} {err}")
        return
    trial.saw("a sentence without the password, exit 2; asked again, the right answer")


def _ask_python(trial: Trial, running: _Server, sign: int) -> None:
    caught: list[BaseException | dhkappa.Tally] = []

    def ask() -> None:
        try:
            caught.append(dhkappa.tally(dhkappa.read(running.server.url(), table="slow"), asked.LABELERS, **_WORDS))
        except BaseException as error:
            caught.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    running.wait_for_query()
    running.restart(sign)
    asking.join(PATIENCE)
    error = caught[0] if caught else None
    if not isinstance(error, DataError) or _secret(str(error)):
        trial.failed(f"{type(error).__name__}: {error}")
        return
    again = dhkappa.tally(dhkappa.read(running.server.url(), table="slow"), asked.LABELERS, **_WORDS)
    if again != dhkappa.tally(asked.VOTES, asked.SUGGESTED):
        trial.failed(f"asked again: {again!r}")
        return
    trial.saw("a sentence without the password; asked again, the same counts to the last bit")
