"""Run the inputs of a fuzzer: each is accepted with the correct result, or rejected with an error."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import dhkappa
import oracle
from fuzz_choices import Input

TIME_LIMIT = 60  # seconds per input, enough for a busy machine
CODE = re.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*")
PACKAGE = Path(dhkappa.__file__).parent


class FindingError(AssertionError):
    """An input with a wrong result, or that was rejected without a proper error."""


class TimeLimitError(BaseException):
    """An input took too long; a BaseException, so that no code catches it."""


class Runner:
    """Run inputs in a folder, check each result, and count."""

    def __init__(self, folder: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._work, self._temporary, self._last = folder / "work", folder / "temporary", folder / "last"
        self._work.mkdir()
        self._temporary.mkdir()

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Use the folder for temporary files, and set the time limit up."""
        before, tempfile.tempdir = tempfile.tempdir, str(self._temporary)
        handler = signal.signal(signal.SIGALRM, _time_limit)
        table = self._work / "first.csv"
        table.write_text("item,suggested,ann_1,ann_2\n1,a,a,a\n")
        dhkappa.tally(table)  # creates the folder for spilling, which exists until the process ends
        table.unlink()
        self._known = set(self._temporary.iterdir())
        try:
            yield
        finally:
            tempfile.tempdir = before
            signal.signal(signal.SIGALRM, handler)

    def run(self, given: Input) -> str:
        """Run one input, and return the code of the error with which it was rejected, or an empty string."""
        self.counts["inputs"] += 1
        self._last.write_text(written(given))
        for name, content in given.files.items():
            (self._work / name).write_bytes(content)
        signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
        try:
            with warnings.catch_warnings(record=True) as warned, contextlib.chdir(self._work):
                warnings.simplefilter("always")
                code = _command(given) if given.call == "command" else _call(given)
        except (TimeLimitError, KeyboardInterrupt):
            if signal.getitimer(signal.ITIMER_REAL)[0]:  # Ctrl-C, which DuckDB also raises for other signals
                raise
            raise FindingError(f"time limit: over {TIME_LIMIT} seconds") from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            left = sorted(os.listdir(self._work))
            for name in left:
                path = self._work / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if warned:
            raise FindingError(f"warning: {warned[0].category.__name__}: {warned[0].message}")
        extra = [name for name in left if name not in given.files and not name.startswith("out")]
        extra += [path.name for path in set(self._temporary.iterdir()) - self._known]
        if extra:
            raise FindingError(f"files left: {extra}")
        if given.valid and code:
            raise FindingError(f"valid input rejected: {code}")
        self.counts["rejected" if code else "accepted"] += 1
        return code


def written(given: Input) -> str:
    """Write an input as text, also with integers of any length."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return ascii(given)
    finally:
        sys.set_int_max_str_digits(limit)


def _time_limit(*_: object) -> NoReturn:
    raise TimeLimitError


def _call(given: Input) -> str:
    """Call a public function and check the result; return the code of an error."""
    try:
        result = _result(given)
        _check_result(given, result)
        _check_saved(result)
        if given.method is not None:
            name, words = given.method
            method = getattr(result, name, None)
            if inspect.ismethod(method) and set(words) <= set(inspect.signature(method).parameters):
                method(**words)
    except dhkappa.DataError as error:
        _check_error(error)
        return error.code
    return ""


def _result(given: Input) -> Any:
    if given.call == "load":
        result = dhkappa.Tally.load(next(iter(given.files)))
        _check_loaded(result, json.loads(next(iter(given.files.values()))))
        with contextlib.suppress(dhkappa.DataError):
            repr(getattr(dhkappa, given.arguments["also"])(result))
        return result
    words = dict(given.arguments)
    if "read" in words:
        words["data"] = dhkappa.read(**words.pop("read"))
    return getattr(dhkappa, given.call)(**words)


def _check_error(error: dhkappa.DataError) -> None:
    """Require a code and a one-line message, and that no bug is reported as an error of an engine."""
    message = str(error).partition("\n")[0]
    if not CODE.fullmatch(error.code) or not 0 < len(message) <= 1500 or "Traceback" in str(error):
        raise FindingError(f"improper error: {error.code!r}: {str(error)!r}") from error
    if error.code == "engine-error" and error.__cause__ is not None:
        inner = traceback.extract_tb(error.__cause__.__traceback__)[-1].filename
        if Path(inner).is_relative_to(PACKAGE) and not isinstance(error.__cause__, OSError):
            raise FindingError("bug of dhkappa reported as an error of the engine") from error.__cause__


class NoLabelError(Exception):
    """A value that is not a label."""


def label_of(value: Any) -> Any:
    """Return the label of a value by the documented rules; None if missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.generic):
        if isinstance(value, (np.datetime64, np.timedelta64)) and np.isnat(value):
            return None
        value = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, Enum) and not isinstance(value, (str, int)):
        return value.name
    if isinstance(value, str):
        return "".join(value) or None
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) or type(value).__name__ == "Decimal":
        if value != value:
            return None
        if abs(value) < 2**53 and value == int(value):
            return int(value)
    raise NoLabelError(f"{value!r} is not a label")


def _check_result(given: Input, result: Any) -> None:
    """Compare a result with the definitions in rational arithmetic, if the votes are known."""
    if given.votes is None or isinstance(result, dhkappa.Comparison):
        return
    missing = [given.missing] if isinstance(given.missing, str) else list(given.missing)
    try:
        absent = {label_of(value) for value in missing}
        votes = [[None if label in absent else label for label in map(label_of, row)] for row in given.votes]
        labels = [None if label in absent else label for label in map(label_of, given.labels or [None] * len(votes))]
    except NoLabelError as error:
        raise FindingError("accepted a value that is not a label") from error
    categories = list(dict.fromkeys(label for row in [*votes, labels] for label in row if label is not None))
    found = result
    if isinstance(result, dhkappa.SingleVoteAudit):
        kappa = next(iter(result.kappas.values()))
        if (kappa.n_items, kappa.exact) != oracle.cohen(votes, labels):
            raise FindingError(f"wrong result: {kappa}, not {oracle.cohen(votes, labels)}")
        return
    if isinstance(result, dhkappa.AnnotatorAudit):
        found = result.fleiss
    elif isinstance(result, dhkappa.Audit):
        found = next(iter(result.kappas.values()))
    elif isinstance(result, dhkappa.Tally):
        if result.n_items != len(votes) or result.n_votes != sum(label is not None for row in votes for label in row):
            raise FindingError(f"wrong counts: {result!r}")
        found = dhkappa.dh_kappa(result)
    true: Any = oracle.fleiss(votes) if found.metric == "fleiss" else oracle.dh(votes, labels, categories)
    here, there = (
        (kappa, n, n_votes, excluded.no_votes, excluded.one_vote, excluded.no_label)
        for kappa, n, n_votes, excluded in (
            (found.exact, found.n_items, found.n_votes, found.excluded),
            (true.kappa, true.n, true.votes, true.excluded),
        )
    )
    if here != there:
        raise FindingError(f"wrong result: {here}, not {there}")


def _check_saved(result: Any) -> None:
    """Require that a tally is equal after saving and loading, and can be added."""
    if not isinstance(result, dhkappa.Tally):
        return
    path = Path("out.json")
    result.save(path)
    loaded, content = dhkappa.Tally.load(path), path.read_bytes()
    loaded.save(path)
    names = [(tally.categories, tally.labelers) for tally in (loaded, result)]
    if loaded != result or path.read_bytes() != content or names[0] != names[1]:
        raise FindingError("another tally after saving and loading")
    if (loaded + result).n_items != 2 * result.n_items:
        raise FindingError("wrong sum of tallies")


def _check_loaded(result: Any, content: Mapping[str, Any]) -> None:
    """Compare a tally with the numbers in its file."""
    patterns = content["patterns"]
    items = sum(row["items"] for row in patterns)
    votes = sum(row["items"] * number for row in patterns for _, number in row["votes"])
    if (result.n_items, result.n_votes) != (items, votes):
        raise FindingError(f"loaded as {result!r}, but the file has {items} items and {votes} votes")
    if "labelers" in content or votes > 1000:
        return
    rows = [([label for label, number in row["votes"] for _ in range(number)], row) for row in patterns]
    every = [votes for votes, row in rows for _ in range(row["items"])]
    labels = [row["suggested"] for _, row in rows for _ in range(row["items"])]
    if dhkappa.dh_kappa(result).exact != oracle.dh(every, labels, content["categories"]).kappa:
        raise FindingError("another kappa than that of the file")


def _command(given: Input) -> str:
    """Run a command in this process, and return its exit code as text, or an empty string."""
    from dhkappa.cli.commands import main

    args = given.arguments["args"]
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    code: Any = None
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        os.environ["DHKAPPA_TRACE"] = "1"  # internal errors are raised
        try:
            main(args)
        except SystemExit as end:
            code = end.code
        finally:
            del os.environ["DHKAPPA_TRACE"]
            for stream in streams:
                stream.flush()
    out, err = (stream.detach().getvalue().decode() for stream in streams)
    if code not in (0, 1, 2, 3) or "Traceback" in out + err:
        raise FindingError(f"exit code {code}: {err!r}")
    if code == 2 and not (err.count("\n") == 1 and err.endswith("\n")) and not err.startswith("Usage: "):
        raise FindingError(f"exit code 2 without a one-line error: {err!r}")
    if code == 0 and "json" in args and "--help" not in args and out.lstrip()[:1] in ("{", "["):
        json.loads(out, parse_constant=_no_constant)
    return "exit-code-2" if code == 2 else ""


def _no_constant(text: str) -> NoReturn:
    raise FindingError(f"{text} in JSON")
