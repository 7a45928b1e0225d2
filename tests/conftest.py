"""Settings and fixtures of all tests: Hypothesis profiles, slow tests, missing libraries, shared data, no network."""

import ast
import os
import random
import socket
import sys
from collections.abc import Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from engines import ON_NO_MACHINE, engine, near_engine, quick_engine  # noqa: F401  # fixtures
from postgres import postgres  # noqa: F401

TESTS = Path(__file__).parent
SHARED_DATA = TESTS.parents[1] / "shared" / "data"
REQUIRE_ALL = os.environ.get("DHKAPPA_REQUIRE_ALL") == "1"

# No deadline: a busy machine would fail it. CI runs the same examples every time, and fewer.
IN_CI = os.environ.get("CI") == "true"
settings.register_profile("dhkappa", deadline=None, derandomize=IN_CI, max_examples=40 if IN_CI else 100)
settings.register_profile("brief", settings.get_profile("dhkappa"), max_examples=10)
settings.load_profile("dhkappa")

os.environ["COLUMNS"] = "100"  # the width of tables


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--shuffle SEED``."""
    parser.addoption("--shuffle", metavar="SEED", help="run the files, and the tests of a file, in random order")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a server or are in tests/robustness as slow, and shuffle the order if asked to."""
    for item in items:
        if item.get_closest_marker("xdist_group") or TESTS / "robustness" in item.path.parents:
            item.add_marker(pytest.mark.slow)
    seed = config.getoption("--shuffle")
    if seed is not None:
        shuffled = random.Random(seed)
        keys = {path: shuffled.random() for path in sorted({item.path for item in items})}
        items.sort(key=lambda item: (keys[item.path], shuffled.random()))


def _no_network(event: str, args: tuple[Any, ...]) -> None:
    """Fail a connection that would leave this machine."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = args[1][0] if isinstance(args[1], tuple) else "localhost"  # a path is a local socket
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0] or "localhost"
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    if not (host.startswith("127.") or host in ("localhost", "::1", "0.0.0.0", "::", socket.gethostname())):
        raise AssertionError(f"A test connects to {host} ({event}).")


sys.addaudithook(_no_network)


@cache
def _missing_libraries(path: Path) -> frozenset[str]:
    """Return the libraries that a file of the tests, or a helper module it imports, lacks."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    roots = {name.split(".")[0] for name in names} - sys.stdlib_module_names
    helpers = [file for root in roots for file in (TESTS / f"{root}.py", TESTS / "statistics" / f"{root}.py")]
    own = [_missing_libraries(file) for file in helpers if file.exists() and file != path]
    return frozenset(root for root in roots if find_spec(root) is None).union(*own)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files of the tests whose libraries are not installed, unless all tests are required."""
    if REQUIRE_ALL or collection_path.suffix != ".py" or TESTS not in collection_path.parents:
        return None
    return bool(_missing_libraries(collection_path)) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the files that were left out."""
    for path in [] if REQUIRE_ALL else sorted(TESTS.rglob("test_*.py")):
        if missing := _missing_libraries(path):
            terminalreporter.write_line(f"left out: {path.relative_to(TESTS)} needs {', '.join(sorted(missing))}")


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail skipped tests if all tests are required."""
    return _required((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail skipped files if all tests are required."""
    return _required((yield))


def _required(report: Report) -> Report:
    """Turn a skip into a failure, unless no machine could run the test."""
    if REQUIRE_ALL and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if ON_NO_MACHINE not in reason:
            report.outcome = "failed"
            report.longrepr = f"{reason}, and DHKAPPA_REQUIRE_ALL=1 requires all tests"
    return report


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of annotation data that is not part of the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"There is no folder {SHARED_DATA}")
    return SHARED_DATA
