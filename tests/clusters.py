"""Clusters on loopback: Spark with a master and two workers, Dask with two processes; and a process that asks each.

A process has room for one Spark session, and a Dask client changes where every Dask table of its process is computed.
So each cluster has a process of its own to ask from, and what the tests ask is run there.
"""

import ctypes
import importlib
import importlib.util
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import pytest

Answer = TypeVar("Answer")

PATIENCE = 120  # seconds that anything may take here, on a busy machine
_HERE = "127.0.0.1"
_PARTITIONS = 2  # of what Spark shuffles: 200 by default, which takes half a minute for any data
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Java that starts soon, and does not live long enough to be tuned


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator["SparkCluster"]:
    """Start a master and two workers; tests that use it are marked ``xdist_group("spark")``."""
    need("pyspark", "pandas", "pyarrow")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("there is no Java, which Spark needs")
    with tempfile.TemporaryDirectory(prefix="dhkappa-spark-", ignore_cleanup_errors=True) as folder:
        cluster = SparkCluster(Path(folder))
        try:
            cluster.start()
            with _asking(_start_spark, _stop_spark, cluster.url, folder) as asker:
                cluster.asker = asker
                yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def spark(spark_cluster: "SparkCluster") -> "SparkCluster":
    """Return the cluster with both its workers, also where an earlier test has killed one."""
    spark_cluster.mend()
    return spark_cluster


@pytest.fixture(scope="session")
def dask() -> Iterator["Asker"]:
    """Start two worker processes; tests that use them are marked ``xdist_group("dask")``."""
    need("dask", "distributed", "pandas", "pyarrow")
    with (
        tempfile.TemporaryDirectory(prefix="dhkappa-dask-", ignore_cleanup_errors=True) as folder,
        _asking(_start_dask, _stop_dask, folder) as asker,
    ):
        yield asker


def need(*packages: str) -> None:
    """Skip a test for which packages are absent."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"{' and '.join(absent)} cannot be imported")


@dataclass(frozen=True)
class Asker:
    """A process with a session on a cluster, that runs functions and returns what they do."""

    pool: ProcessPoolExecutor
    pid: int

    def begin(self, function: Callable[..., Answer], *given: Any) -> "Future[Answer]":
        """Have a function run; it must stand in a module."""
        return self.pool.submit(_called, function, *given)

    def run(self, function: Callable[..., Answer], *given: Any) -> Answer:
        """Return what a function returns there, or raise what it raises."""
        return self.wait(self.begin(function, *given))

    def wait(self, run: "Future[Answer]") -> Answer:
        """Return what a function has returned; if it hangs, end the process, so that the next tests do not wait too."""
        try:
            return run.result(PATIENCE)
        except TimeoutError:
            _kill(self.pid)
            raise


def _called(function: Callable[..., Answer], *given: Any) -> Answer:
    """Call a function; an error that cannot be sent, as those of Java cannot, is sent as text."""
    try:
        return function(*given)
    except Exception as error:
        try:
            pickle.dumps(error)
        except Exception:
            raise AssertionError(traceback.format_exc()) from None
        raise


@contextmanager
def _asking(start: Callable[..., None], stop: Callable[[], None], *given: Any) -> Iterator[Asker]:
    """Run a process that has a session, and end it whatever happens."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_start, initargs=(start, *given))
    pid = None
    try:
        pid = pool.submit(os.getpid).result(PATIENCE)
        yield Asker(pool, pid)
        with suppress(TimeoutError, BrokenProcessPool):
            pool.submit(stop).result(20)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if pid is not None:  # a query may hang; what the process has started ends with it
            _kill(pid)
        pool.shutdown()


@dataclass
class SparkCluster:
    """A master and two workers with a core each, and the process that asks them."""

    folder: Path
    url: str = ""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    asker: Asker = field(init=False)

    def start(self) -> None:
        """Start all three; workers try again until the master is there."""
        port = str(_free_port())
        self.url = f"spark://{_HERE}:{port}"
        self._spawn("master.Master", "--port", port)
        self.mend()

    def mend(self) -> None:
        """Start workers until there are two."""
        master, *workers = self.started
        alive = [worker for worker in workers if worker.poll() is None]
        self.started = [master, *alive]
        new = [
            self._spawn("worker.Worker", "--cores", "1", "--memory", "512m", self.url) for _ in range(2 - len(alive))
        ]
        for log in new:
            _wait(lambda log=log: "Successfully registered with master" in log.read_text(errors="replace"), log)  # type: ignore[misc]

    def behind(self, process: int) -> list[int]:
        """Return the executor and the worker that a process of Python belongs to.

        A worker is the parent of its executor, which is the parent of the process that forks Python's.
        """
        known = {process_started.pid for process_started in self.started}
        found = [process]
        while found[-1] not in known:
            assert found[-1] > 1, "a task ran outside of the cluster"
            found.append(_parent(found[-1]))
        return found[-2:]

    def stop(self) -> None:
        """Stop everything, the master last."""
        for process in reversed(self.started):
            process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            with suppress(ProcessLookupError):  # its executors, should any be left
                os.killpg(process.pid, signal.SIGKILL)

    def _spawn(self, what: str, *given: str) -> Path:
        """Start one of Spark's daemons in a group of its own, and return the file where it writes."""
        home = _spark_home()
        name = f"{what}-{time.monotonic_ns()}"
        log = self.folder / f"{name}.log"
        command = [
            home / "bin" / "spark-class",
            f"org.apache.spark.deploy.{what}",
            "--host",
            _HERE,
            "--webui-port",
            "0",
        ]
        if what == "worker.Worker":
            command += ["--work-dir", self.folder / name]
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": _HERE,
            "SPARK_LOCAL_DIRS": str(self.folder / "blocks"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _QUICK,
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        with log.open("wb") as output:
            self.started.append(
                subprocess.Popen(
                    [*_mortal(), *map(str, command), *given],
                    env=environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )
        return log


def _start(start: Callable[..., None], *given: Any) -> None:
    """Start a session in a process that ends with the one that started it; Java, which it starts, ends with it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    start(*given)


def _mortal() -> list[str]:
    """Return what makes a command end with the process that starts it, also where that is killed; Linux has it."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL"] if found else []


def _spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


_session: Any = None  # of the process that asks


def _start_spark(url: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    global _session
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": _HERE, "SPARK_LOCAL_DIRS": f"{folder}/blocks"}
    settings = {
        "spark.driver.host": _HERE,
        "spark.driver.bindAddress": _HERE,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": _QUICK,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": _QUICK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": _PARTITIONS,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(url).appName("dhkappa")
    for name, value in settings.items():
        builder = builder.config(name, value)
    _session = builder.getOrCreate()


def _stop_spark() -> None:
    _session.stop()


def _start_dask(folder: str) -> None:
    global _session
    distributed: Any = importlib.import_module("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host=_HERE,
        dashboard_address=None,
        local_directory=folder,
        silence_logs="CRITICAL",
    )
    _session = distributed.Client(cluster)


def _stop_dask() -> None:
    cluster = _session.cluster
    _session.close()
    cluster.close()


def session() -> Any:
    """Return the Spark session or the Dask client, in the process that asks."""
    return _session


@dataclass(frozen=True)
class Came:
    """A task of a cluster that came to the gate: with which part of the data, in which process, and what it found."""

    part: str
    process: int
    closed: bool


@dataclass(frozen=True)
class Gate:
    """A folder where tasks of a cluster leave a mark, and wait if enough others have come before."""

    folder: Path
    few: int

    @classmethod
    def in_folder(cls, folder: Path, few: int) -> "Gate":
        """Make a gate that lets so many tasks through, or one or two more where they come at once."""
        marks = folder / "marks"
        marks.mkdir()
        return cls(marks, few)

    def keeper(self) -> Callable[[object], None]:
        """Return what a task calls with the name of its part of the data; made here, so that it can be sent there."""
        folder, few = str(self.folder), self.few

        def wait(part: object) -> None:
            import os
            import time
            import uuid

            opened = os.path.join(os.path.dirname(folder), "open")
            closed = len(os.listdir(folder)) >= few and not os.path.exists(opened)
            mark = f"{time.time_ns():020d} {part} {os.getpid()} {int(closed)} {uuid.uuid4().hex}"
            open(os.path.join(folder, mark), "w").close()
            end = time.monotonic() + 60
            while closed and not os.path.exists(opened):
                assert time.monotonic() < end, "nobody opened the gate"
                time.sleep(0.02)

        return wait

    def came(self) -> list[Came]:
        """Return the tasks that have come, in order."""
        marks = [name.split() for name in sorted(os.listdir(self.folder))]
        return [Came(part, int(process), closed == "1") for _, part, process, closed, _ in marks]

    def catch(self, run: "Future[Any]") -> Came:
        """Wait until a task stands at the gate, and return it."""
        _wait(lambda: run.done() or any(task.closed for task in self.came()))
        assert not run.done(), f"the run ended before the gate closed, with {run.exception() or run.result()!r}"
        return next(task for task in self.came() if task.closed)

    def open(self) -> None:
        """Let all tasks go on."""
        (self.folder.parent / "open").touch()


def kill(processes: Sequence[int]) -> None:
    """End processes at once, with no chance to clean up, and wait until they are gone."""
    for process in processes:
        _kill(process)
    _wait(lambda: not any(map(_runs, processes)))


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _runs(process: int) -> bool:
    """Tell whether a process is there and not just waiting for its parent to notice its end."""
    return (_stat(process) or ["Z"])[0] != "Z"


def _parent(process: int) -> int:
    return int((_stat(process) or ["", "0"])[1])


def _stat(process: int) -> list[str]:
    """Return what the system says of a process, from its state on; nothing where there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HERE, 0))
        port: int = probe.getsockname()[1]
    return port


def _wait(until: Callable[[], bool], log: Path | None = None) -> None:
    end = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > end:
            said = "" if log is None else f":\n{log.read_text(errors='replace')[-3000:]}"
            raise AssertionError(f"waited for {PATIENCE} seconds{said}")
        time.sleep(0.05)
