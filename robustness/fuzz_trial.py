"""What becomes of an input: it is answered rightly, or refused with one sentence; anything else is a finding."""

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
from dhkappa.inputs.backends.duckdb import _spill_folder
from fuzz_dice import Input

LIMIT = 60  # seconds for one input, which is not to fail on a busy machine


class FindingError(AssertionError):
    """An input that was neither answered rightly nor refused with a sentence."""


class TooSlowError(BaseException):
    """An input took too long; nothing that looks for errors catches it."""


class Trial:
    """Runs inputs in a folder of its own, checks what becomes of each, and counts."""

    def __init__(self, folder: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._work, self._temporary, self._last = folder / "work", folder / "temporary", folder / "last"
        self._work.mkdir()
        self._temporary.mkdir()

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Have temporary files go to the folder, and time run out."""
        before, tempfile.tempdir = tempfile.tempdir, str(self._temporary)
        handler = signal.signal(signal.SIGALRM, _too_slow)
        try:
            yield
        finally:
            tempfile.tempdir = before
            signal.signal(signal.SIGALRM, handler)

    def run(self, given: Input) -> str:
        """Run one input, and return the sentence of a refusal; FindingError where it is neither that nor an answer."""
        self.counts["inputs"] += 1
        self._last.write_text(told(given))
        for name, held in given.files.items():
            (self._work / name).write_bytes(held)
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        try:
            with warnings.catch_warnings(record=True) as warned, contextlib.chdir(self._work):
                warnings.simplefilter("always")
                sentence = _command(given) if given.ask == "command" else _call(given)
        except (TooSlowError, KeyboardInterrupt):
            if signal.getitimer(signal.ITIMER_REAL)[0]:  # Ctrl-C, then; DuckDB says that of any signal
                raise
            raise FindingError(f"took over {LIMIT} seconds") from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            left = sorted(os.listdir(self._work))
            for name in left:
                path = self._work / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if warned:
            raise FindingError(f"warned: {warned[0].category.__name__}: {warned[0].message}")
        strange = [name for name in left if name not in given.files and not name.startswith("out")]
        spill = _spill_folder() if _spill_folder.cache_info().currsize else ""  # which goes when this process ends
        strange += [path.name for path in self._temporary.iterdir() if str(path) != spill]
        if strange:
            raise FindingError(f"left behind: {strange}")
        if given.sound and sentence:
            raise FindingError(f"is sound, but was refused: {sentence}")
        self.counts["refused" if sentence else "answered"] += 1
        return sentence


def told(given: Input) -> str:
    """Write an input down, also an integer that Python would not."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return ascii(given)
    finally:
        sys.set_int_max_str_digits(limit)


def _too_slow(*_: object) -> NoReturn:
    raise TooSlowError


def _call(given: Input) -> str:
    """Ask a public call, check the answer, and ask it in turn; return the sentence of a refusal."""
    try:
        answer = _answer(given)
        _check_truth(given, answer)
        _check_saved(answer)
        if given.then is not None:
            name, words = given.then
            asked = getattr(answer, name, None)
            if inspect.ismethod(asked) and set(words) <= set(inspect.signature(asked).parameters):
                asked(**words)
    except dhkappa.DataError as error:
        _check_sentence(error)
        return str(error)
    return ""


def _answer(given: Input) -> Any:
    if given.ask == "load":
        answer = dhkappa.Tally.load(next(iter(given.files)))
        _check_loaded(answer, json.loads(next(iter(given.files.values()))))
        with contextlib.suppress(dhkappa.DataError):
            repr(getattr(dhkappa, given.words["also"])(answer))
        return answer
    words = dict(given.words)
    if "read" in words:
        source = dhkappa.read(**words.pop("read"))
        answer = getattr(dhkappa, given.ask)(source, **words)
        _check_source(source, answer)
        return answer
    return getattr(dhkappa, given.ask)(**words)


def _check_sentence(error: Exception) -> None:
    """Refuse a refusal that is no sentence, and a fault of ours that is said to be an engine's."""
    sentence = str(error).splitlines()[0] if str(error) else ""
    if not re.search(r"[.?]$", sentence) or len(sentence) > 1500 or "Traceback" in str(error):
        raise FindingError(f"refused without a sentence: {str(error)!r}") from error
    cause = error.__cause__
    if "could not answer" in sentence and cause is not None:
        inner = traceback.extract_tb(cause.__traceback__)[-1].filename
        if Path(inner).is_relative_to(Path(dhkappa.__file__).parent) and not isinstance(cause, OSError):
            raise FindingError("a fault of dhkappa is said to be the engine's") from cause


class NoLabelError(Exception):
    """A value that is none."""


def label_of(value: Any) -> Any:
    """Return the label that a value stands for, by the rules of the docs; None where missing."""
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
    raise NoLabelError(f"{value!r} is no label")


def _check_truth(given: Input, answer: Any) -> None:
    """Compare an answer with the definitions in fractions, where the votes are known."""
    if given.votes is None:
        return
    missing = [given.missing] if isinstance(given.missing, str) else list(given.missing)
    try:
        gone = {label_of(value) for value in missing}
        votes = [[None if label in gone else label for label in map(label_of, row)] for row in given.votes]
        labels = [None if label in gone else label for label in map(label_of, given.labels or [None] * len(votes))]
    except NoLabelError as error:
        raise FindingError("was answered, though a value is no label") from error
    categories = list(dict.fromkeys(label for row in [*votes, labels] for label in row if label is not None))
    found = answer
    if isinstance(answer, dhkappa.Audit):
        found = next(iter(answer.kappas.values()))
    elif isinstance(answer, dhkappa.Comparison):
        return
    elif isinstance(answer, dhkappa.Tally):
        if answer.n_items != len(votes) or answer.n_votes != sum(label is not None for row in votes for label in row):
            raise FindingError(f"counted wrongly: {answer!r}")
        found = dhkappa.dh_kappa(answer)
    if found.metric == "fleiss":
        true: Any = oracle.fleiss(votes)
    else:
        true = oracle.dh(votes, labels, categories)
    dropped = found.dropped
    here = (found.exact, found.n_items, found.n_votes, dropped.no_votes, dropped.one_vote, dropped.no_label)
    there = (true.kappa, true.n, true.votes, true.dropped.no_votes, true.dropped.one_vote, true.dropped.no_label)
    if here != there:
        raise FindingError(f"answered wrongly: {here}, but it is {there}")


def _check_saved(answer: Any) -> None:
    """Check that a tally comes back from its file as it went there."""
    if not isinstance(answer, dhkappa.Tally):
        return
    path = Path("out.json")
    answer.save(path)
    back, held = dhkappa.Tally.load(path), path.read_bytes()
    back.save(path)
    if (
        back != answer
        or path.read_bytes() != held
        or (back.categories, back.labelers) != (answer.categories, answer.labelers)
    ):
        raise FindingError("came back from its file as another tally")
    if (back + answer).n_items != 2 * answer.n_items:
        raise FindingError("does not add up")


def _check_loaded(answer: Any, held: Mapping[str, Any]) -> None:
    """Compare a tally with the numbers in its file."""
    patterns = held["patterns"]
    items = sum(row["items"] for row in patterns)
    votes = sum(row["items"] * number for row in patterns for _, number in row["votes"])
    if (answer.n_items, answer.n_votes) != (items, votes):
        raise FindingError(f"loaded as {answer!r}, but its file has {items} items and {votes} votes")
    if "labelers" in held or votes > 1000:
        return
    rows = [([label for label, number in row["votes"] for _ in range(number)], row) for row in patterns]
    every = [votes for votes, row in rows for _ in range(row["items"])]
    labels = [row["suggested"] for _, row in rows for _ in range(row["items"])]
    if dhkappa.dh_kappa(answer).exact != oracle.dh(every, labels, held["categories"]).kappa:
        raise FindingError("another kappa than its file's")


def _check_source(source: Any, answer: Any) -> None:
    """Compare what was counted of an export with the votes that were read from it."""
    if not isinstance(answer, dhkappa.Tally):
        return
    names = list(source.votes.columns)
    rows = [dict(zip(names, row, strict=True)) for row in source.votes.fetchall()]
    cast = [(row["item"], row["annotator"]) for row in rows]
    if len({*cast}) < len(cast):
        return  # one of an annotator's votes was chosen
    votes = sum(row["label"] not in (None, "") for row in rows)
    items = len({row["item"] for row in rows} | {row[0] for row in source.items.project("item").fetchall()})
    if (answer.n_items, answer.n_votes) != (items, votes):
        raise FindingError(f"counted as {answer!r}, but {items} items and {votes} votes were read")


def _command(given: Input) -> str:
    """Run a command as the process does, look at how it ended, and return the sentence of a refusal."""
    from dhkappa.cli.commands import main

    args = given.words["args"]
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    code: Any = None
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        os.environ["DHKAPPA_TRACE"] = "1"  # so that a fault of ours is not said, but seen
        try:
            main(args)
        except SystemExit as end:
            code = end.code
        finally:
            del os.environ["DHKAPPA_TRACE"]
            for stream in streams:
                stream.flush()
    said, told = (stream.detach().getvalue().decode() for stream in streams)
    if code not in (0, 1, 2) or "Traceback" in said + told:
        raise FindingError(f"ended with {code}, and said {told!r}")
    if code and not (told.startswith("dhkappa: ") and told.count("\n") == 1 and told.endswith("\n")):
        raise FindingError(f"ended with {code}, and said no sentence: {told!r}")
    if code == 0 and "--json" in args and "--help" not in args and said.lstrip()[:1] in ("{", "["):
        json.loads(said, parse_constant=_no_constant)
    return str(told) if code == 2 else ""


def _no_constant(text: str) -> NoReturn:
    raise FindingError(f"{text} is no JSON")
