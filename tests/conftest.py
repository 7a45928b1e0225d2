"""Where the outside data lie, how Hypothesis runs, and what is left out where a library is absent."""

import ast
import os
import socket
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from engines import ON_NO_MACHINE, engine, near_engine, quick_engine  # noqa: F401  # fixtures
from postgres import postgres  # noqa: F401

# Time limits per example would fail on a busy machine and say nothing about the numbers.
# In CI the same examples run every time, and fewer: new ones are for people, who can act on what they find.
IN_CI = os.environ.get("CI") == "true"
settings.register_profile("dhkappa", deadline=None, derandomize=IN_CI, max_examples=40 if IN_CI else 100)
settings.register_profile("brief", settings.get_profile("dhkappa"), max_examples=10)
settings.load_profile("dhkappa")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "robustness"), str(ROOT / "validation")]  # whose scripts have tests too

os.environ["COLUMNS"] = "100"  # tables are as wide as the terminal


def _no_network(event: str, args: tuple[Any, ...]) -> None:
    """Refuse what would leave this machine: of tests, and of what they run in their process."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = args[1][0] if isinstance(args[1], tuple) else "localhost"  # a path is a socket of this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0] or "localhost"
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    if not (host.startswith("127.") or host in ("localhost", "::1", "0.0.0.0", "::", socket.gethostname())):
        raise AssertionError(f"a test reaches for {host}, which is not this machine ({event})")


sys.addaudithook(_no_network)

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
REQUIRE_ALL = os.environ.get("DHKAPPA_REQUIRE_ALL") == "1"
LEFT_OUT: dict[str, list[str]] = {}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of a file whose libraries are absent, unless all tests are asked for."""
    if REQUIRE_ALL or not collection_path.match("test_*.py"):
        return None
    imports = [
        node for node in ast.parse(collection_path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    named = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
    roots = {name.split(".")[0] for name in named} - sys.stdlib_module_names
    absent = sorted(root for root in roots if find_spec(root) is None)
    if absent:
        LEFT_OUT[collection_path.name] = absent
    return bool(absent) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which files were left out."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):  # other processes may have collected
        pytest_ignore_collect(path)
    for name, absent in LEFT_OUT.items():
        terminalreporter.write_line(f"left out: {name} needs {', '.join(absent)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let no test be skipped where all are asked for."""
    return _required((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let no file be skipped where all are asked for."""
    return _required((yield))


def _required(report: Report) -> Report:
    """Make a failure of a skip, unless nothing that could be installed would help."""
    if REQUIRE_ALL and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if ON_NO_MACHINE not in reason:
            report.outcome = "failed"
            report.longrepr = f"{reason}, and DHKAPPA_REQUIRE_ALL=1 asks for all tests"
    return report


SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real annotation data that are not copied into the project."""
    if not SHARED_DATA.is_dir():
        reason = f"the shared annotation data are not at {SHARED_DATA}"
        pytest.skip(reason)
    return SHARED_DATA
