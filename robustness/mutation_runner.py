"""Run tests on mutants, each in a fork of a process that has collected the tests.

    python robustness/mutation_runner.py MODULE MUTANTS OUTCOMES TESTS ...

MUTANTS is a file with one mutant per line. The outcome of each is appended to OUTCOMES.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

SLOWDOWN = 10.0  # a test that takes longer than this times its normal duration, plus a second, is a timeout
CPU_SECONDS = 4.0  # of tests per mutant
_MEMORY = 2 << 30
_KILLED, _UNCLEAR = 1, 2
_OUTCOMES = {None: "no test", 0: "survived", _UNCLEAR: "unclear", -signal.SIGPROF: "timeout"}


class MutantRuns:
    """A pytest plugin that runs the tests on each mutant instead of once."""

    def __init__(self, module: str, mutants: Sequence[str], outcomes: Path) -> None:
        self.module, self.mutants, self.outcomes = module, mutants, outcomes

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find the tests that reach each function, then fork for each mutant."""
        items = {item.nodeid: item for item in session.items}
        known = self._reached(session.items)
        seconds = known["seconds"]
        for name in known["modules"]:  # once here instead of in every fork
            importlib.import_module(name)
        for name in self._over_limits(session.items, seconds):  # such as a report, which reserves address space
            print(f"Skipped {name}: it fails without a mutant within the limit on memory.", file=sys.stderr)
            del items[name]
        if _forked(partial(_run, "fail", list(items.values()), seconds)) != _KILLED:
            raise SystemExit("No test detects a mutant that always fails.")
        with self.outcomes.open("a", buffering=1) as outcomes:
            for mutant in self.mutants:
                names = [name for name in known["tests"].get(mutant.rpartition("__mutmut_")[0], []) if name in items]
                names = sorted(names, key=lambda name: (f"test_{self.module}" not in name, seconds[name]))
                spent = accumulate(seconds[name] for name in names)
                tests = [items[name] for name, after in zip(names, spent, strict=True) if after < CPU_SECONDS]
                code = _forked(partial(_run, mutant, tests, seconds)) if tests else None
                outcomes.write(f"{mutant}\t{_OUTCOMES.get(code, 'killed')}\n")  # a crash is killed
        return True

    def _reached(self, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Run each test without a mutant, in a fork: the functions that it reaches, and its duration."""
        path = self.outcomes.with_suffix(".reached")

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
                start = time.process_time()
                if _fails(item):
                    raise SystemExit(f"{item.nodeid} fails without a mutant.")
                seconds[item.nodeid] = time.process_time() - start
                for name in reached:
                    tests.setdefault(name, []).append(item.nodeid)
            modules = [
                name for name in sys.modules if name not in before and getattr(sys.modules[name], "__spec__", None)
            ]
            path.write_text(json.dumps({"tests": tests, "seconds": seconds, "modules": modules}))
            return 0

        if _forked(work):
            raise SystemExit("The tests fail without a mutant.")
        known: dict[str, Any] = json.loads(path.read_text())
        return known

    def _over_limits(self, items: Sequence[pytest.Item], seconds: dict[str, float]) -> list[str]:
        """Run each test without a mutant within the limits, in a fork: the tests that fail."""
        path = self.outcomes.with_suffix(".over")

        def work() -> int:
            path.write_text(json.dumps(list(_failures("none", items, seconds))))
            return 0

        if _forked(work):
            raise SystemExit("A test takes too long without a mutant.")
        found: list[str] = json.loads(path.read_text())
        return found


def _run(mutant: str, tests: Sequence[pytest.Item], seconds: dict[str, float]) -> int:
    """Run tests on a mutant until one fails."""
    return 0 if next(_failures(mutant, tests, seconds), None) is None else _KILLED


def _failures(mutant: str, tests: Sequence[pytest.Item], seconds: dict[str, float]) -> Iterator[str]:
    """Run tests on a mutant within the limits and yield those that fail; a timer ends the process."""
    os.environ["MUTANT_UNDER_TEST"] = mutant
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    for test in tests:
        signal.setitimer(signal.ITIMER_PROF, 1 + SLOWDOWN * seconds[test.nodeid])
        if _fails(test):
            yield test.nodeid


def _fails(test: pytest.Item) -> bool:
    return any(report.failed for report in runtestprotocol(test, log=False, nextitem=None))


def _forked(work: Callable[[], int]) -> int:
    """Return the exit code of a fork of this process; negative for a signal."""
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
    module, names, outcomes, *tests = sys.argv[1:]
    plugin = MutantRuns(module, Path(names).read_text().split(), Path(outcomes))
    quiet = ["-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception"]
    sys.exit(pytest.main([*quiet, "--capture=sys", "--assert=plain", "--tb=no", *tests], [plugin]))
