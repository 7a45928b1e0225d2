"""Run tests on mutants, each in a fork of one process that has collected the tests: mutmut collects them every time.

    python robustness/forks.py MUTANTS FATES TESTS ...

MUTANTS is a file with the names of mutants, a line each. What comes of each is a line of FATES.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

LOOSE = 10.0  # times as long as without a mutant, and a second: what takes longer has no end
PATIENCE = 4.0  # seconds of tests on a mutant: those made for mutants, then the quickest
_MEMORY = 2 << 30  # a mutant may take so much more
_KILLED, _UNCLEAR = 1, 2
_FATES = {None: "no tests", 0: "survived", _UNCLEAR: "unclear", -signal.SIGPROF: "timeout"}


class Forks:
    """A pytest plugin that runs the tests on each mutant instead of once."""

    def __init__(self, mutants: Sequence[str], fates: Path) -> None:
        self.mutants = mutants
        self.fates = fates

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find which tests reach which function, then fork for each mutant."""
        items = {item.nodeid: item for item in session.items}
        known = self._reached(session.items)
        for name in known["modules"]:  # once here rather than in every fork
            importlib.import_module(name)
        if _forked(partial(_run, "fail", session.items, known["seconds"])) != _KILLED:
            raise SystemExit("No test notices a mutant that always fails.")
        with self.fates.open("a", buffering=1) as fates:
            for mutant in self.mutants:
                names = known["tests"].get(mutant.rpartition("__mutmut_")[0], [])
                names = sorted(names, key=lambda name: ("test_mutants" not in name, known["seconds"][name]))
                spent = accumulate(known["seconds"][name] for name in names)
                tests = [items[name] for name, after in zip(names, spent, strict=True) if after < PATIENCE]
                code = _forked(partial(_run, mutant, tests, known["seconds"])) if tests else None
                fates.write(f"{mutant}\t{_FATES.get(code, 'killed')}\n")  # also where the process crashed
        return True

    def _reached(self, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Run each test without a mutant, in a fork that leaves nothing behind: what it reaches, and its time."""
        path = self.fates.with_suffix(".reached")

        def work() -> int:
            trampoline: Any = importlib.import_module("mutmut.mutation.trampoline")
            reached: set[str] = set()
            trampoline.record_trampoline_hit = lambda name, caller=None: reached.add(name)
            os.environ["MUTANT_UNDER_TEST"] = "stats"
            before = set(sys.modules)
            tests: dict[str, list[str]] = {}
            seconds = {}
            for item in items:
                reached.clear()
                begun = time.process_time()
                if _fails(item):
                    raise SystemExit(f"{item.nodeid} fails without a mutant.")
                seconds[item.nodeid] = time.process_time() - begun
                for name in reached:
                    tests.setdefault(name, []).append(item.nodeid)
            modules = [
                name for name in sys.modules if name not in before and getattr(sys.modules[name], "__spec__", None)
            ]
            path.write_text(json.dumps({"tests": tests, "seconds": seconds, "modules": modules}))
            return 0

        if _forked(work):
            raise SystemExit("The tests do not pass without a mutant.")
        known: dict[str, Any] = json.loads(path.read_text())
        return known


def _run(mutant: str, tests: Sequence[pytest.Item], seconds: dict[str, float]) -> int:
    """Run tests on a mutant until one fails; the signal at the end of the time ends the process."""
    os.environ["MUTANT_UNDER_TEST"] = mutant
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    for test in tests:
        signal.setitimer(signal.ITIMER_PROF, 1 + LOOSE * seconds[test.nodeid])
        if _fails(test):
            return _KILLED
    return 0


def _fails(test: pytest.Item) -> bool:
    return any(report.failed for report in runtestprotocol(test, log=False, nextitem=None))


def _forked(work: Callable[[], int]) -> int:
    """Return what a fork of this process ends with; below 0 is a signal."""
    child = os.fork()
    if child == 0:
        code = _UNCLEAR
        try:
            code = work()
        except SystemExit as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    names, fates, *tests = sys.argv[1:]
    plugin = Forks(Path(names).read_text().split(), Path(fates))
    quiet = ["-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception"]
    sys.exit(pytest.main([*quiet, "--capture=sys", "--assert=plain", "--tb=no", *tests], [plugin]))
