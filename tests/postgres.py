"""A real Postgres server on loopback, started for the tests that ask for it and stopped after them."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "s3cret@p/w%"


@dataclass(frozen=True)
class Server:
    """Where the server listens; the database ``postgres`` exists, user ``dhkappa`` owns it."""

    host: str
    port: int

    def url(self, database: str = "postgres", user: str = "dhkappa", password: str = "s3cret%40p%2Fw%25") -> str:
        return f"postgresql://{user}:{password}@{self.host}:{self.port}/{database}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Start a server in a folder of its own; tests that use it are marked ``xdist_group("postgres")``."""
    programs = _programs()
    if programs is None:
        reason = "initdb and postgres are neither on PATH nor under /usr/lib/postgresql"
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="dhkappa-pg-") as folder:
        yield from _serve(programs, Path(folder))


def _programs() -> Path | None:
    """Return the folder that holds initdb and postgres, the newest where there are several."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(versions, key=lambda path: [int(part) for part in path.parent.name.split(".")], reverse=True)
    return next((path for path in folders if (path / "initdb").exists() and (path / "postgres").exists()), None)


def _serve(programs: Path, folder: Path) -> Iterator[Server]:
    """Run a server on the data in a folder until the tests are done."""
    user = _owner()
    as_user: dict[str, Any] = {}
    if user is not None:  # the server refuses to run as root
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data, secret, log = folder / "data", folder / "password", folder / "log"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    options = f"--pwfile={secret} -U dhkappa -A scram-sha-256 -E UTF8 --locale=C --no-sync".split()
    made = [str(programs / "initdb"), "-D", str(data), *options]
    subprocess.run(made, cwd=folder, check=True, capture_output=True, **as_user)
    server = Server("127.0.0.1", _free_port())
    options = f"-h {server.host} -p {server.port} -k {folder} -F".split()
    run = [str(programs / "postgres"), "-D", str(data), *options]
    with log.open("wb") as output:
        process = subprocess.Popen(run, cwd=folder, stdout=output, stderr=output, **as_user)
    try:
        _wait_until_ready(process, data, log)
        yield server
    finally:
        process.send_signal(signal.SIGINT)  # a fast shutdown: open connections are cut
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _owner() -> pwd.struct_passwd | None:
    """Return whom the server runs as; None for ourselves, where we are not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_until_ready(process: subprocess.Popen[bytes], data: Path, log: Path) -> None:
    """Wait for the word "ready" in the file that the server keeps for this."""
    status = data / "postmaster.pid"
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if status.exists() and "ready" in status.read_text().split():
            return
        time.sleep(0.05)
    pytest.fail(f"the Postgres server did not start:\n{log.read_text(errors='replace')}")
