"""Files that change while they are read: cut, replaced, written over, growing. One state's answer, or a sentence."""

import gzip
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import dhkappa
from dhkappa import paths as steady
from faults_trial import Trial

_LABELS = np.array(["cats", "dogs", "rats"])  # of one length: a file written over keeps its size
_STEPS = 5  # in which a file grows
_TRIES = 100  # in which a number of no state must come where nobody looks; on a busy machine few of them show one
_MUST = ".csv"  # of which such a number does come; other kinds may be read at once, or be refused for what they hold
_CSV = "(FORMAT csv, HEADER {head}, COMPRESSION {packed})"


@dataclass(frozen=True)
class _Part:
    """Some items: their votes and suggested labels, as codes, and the number of the first."""

    votes: Any
    suggested: Any
    first: int

    @classmethod
    def drawn(cls, items: int, seed: int, first: int = 0) -> "_Part":
        rng = np.random.default_rng(seed)
        return cls(rng.integers(0, 3, (items, 3)), rng.integers(0, 3, items), first)

    def tally(self) -> dhkappa.Tally:
        """Count them as arrays, with no file in between."""
        return dhkappa.tally(_LABELS[self.votes], {"suggested": _LABELS[self.suggested]})

    def rows(self) -> pa.Table:
        """Return a row an item, called by a name of its own."""
        held = np.random.default_rng([self.first]).bytes(16 * len(self.votes)).hex()
        columns = {f"ann_{place}": _LABELS[self.votes[:, place]] for place in range(3)}
        names = [held[place : place + 32] for place in range(0, len(held), 32)]
        return pa.table({"item": names, "suggested": _LABELS[self.suggested], **columns})


class _Kind:
    """A kind of file, in one state and in another, with what it may grow by."""

    def __init__(self, folder: Path, ending: str, items: int) -> None:
        self.name, self.path = ending, folder / f"votes{ending}"
        one, other = _Part.drawn(items, 1), _Part.drawn(items, 2)
        more = [_Part.drawn(items // 20, 3 + step, items * (2 + step)) for step in range(_STEPS)]
        self.one, self.other = folder / f"one{ending}", folder / f"other{ending}"
        self.tallies = [one.tally(), other.tally()]
        self.growth: list[bytes] = []
        if ending == ".tally.json":
            # Weights make patterns many, and the file large.
            for place, (part, path) in enumerate(((one, self.one), (other, self.other))):
                sample_weight = 1 + np.arange(items // 20) / items
                self.tallies[place] = dhkappa.tally(
                    _LABELS[part.votes[: items // 20]],
                    {"suggested": _LABELS[part.suggested[: items // 20]]},
                    sample_weight=sample_weight,
                )
                self.tallies[place].save(path)
            return
        _write(one, self.one, True)
        _write(other, self.other, True)
        if ending != ".parquet":  # whose end says what it holds
            grown = one.tally()
            for part in more:
                _write(part, folder / f"more{ending}", False)
                self.growth.append((folder / f"more{ending}").read_bytes())
                grown = grown + part.tally()
                self.tallies.append(grown)

    def read(self) -> dhkappa.Tally:
        """Count the file."""
        if self.name == ".tally.json":
            return dhkappa.Tally.load(self.path)
        return dhkappa.tally(self.path, ["suggested"])

    def fresh(self) -> None:
        """Put the file in its first state."""
        shutil.copyfile(self.one, self.path)


def _write(part: _Part, path: Path, head: bool) -> None:
    rows = part.rows()  # noqa: F841  # which DuckDB finds by its name
    form = {".parquet": "(FORMAT parquet)", ".jsonl": "(FORMAT json)"}.get(
        "".join(path.suffixes), _CSV.format(head=head, packed="none")
    )
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    duckdb.sql(f"COPY (SELECT * FROM rows) TO '{plain}' {form}")
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(plain.read_bytes(), 1))
        plain.unlink()


def _cut(kind: _Kind) -> None:
    os.truncate(kind.path, kind.path.stat().st_size // 2)


def _replaced(kind: _Kind) -> None:
    os.replace(shutil.copyfile(kind.other, kind.path.with_suffix(".new")), kind.path)


def _rewritten(kind: _Kind) -> None:
    with kind.other.open("rb") as source, kind.path.open("r+b", buffering=0) as file:
        while block := source.read(1 << 18):
            file.write(block)
            time.sleep(0.002)  # as what comes over a network
        file.truncate()


def _growing(kind: _Kind) -> None:
    with kind.path.open("ab", buffering=0) as file:
        for block in kind.growth:
            file.write(block)
            time.sleep(0.05)


_WAYS: dict[str, Callable[[_Kind], None]] = {
    "cut to half": _cut,
    "replaced": _replaced,
    "written over in place": _rewritten,
    "growing": _growing,
}


def files(times: int, rng: random.Random, items: int = 1_000_000) -> Iterator[Trial]:
    """Change files of all kinds at a random moment while they are counted, so often in each way."""
    for ending in (".csv", ".csv.gz", ".jsonl", ".parquet", ".tally.json"):
        with tempfile.TemporaryDirectory(prefix="dhkappa-faults-") as folder:
            kind = _Kind(Path(folder), ending, items)
            usual = _usual(kind)
            ways = {name: way for name, way in _WAYS.items() if way is not _growing or kind.growth}
            size = kind.one.stat().st_size / 1e6
            trial = Trial(f"`votes{ending}` ({size:.0f} MB) {' / '.join(ways)}, while it is counted")
            for name, way in ways.items():
                _change(trial, kind, name, way, times, usual, rng)
            _control(trial, ending, *_without_guard(kind, times, usual, rng))
            yield trial


def _bytes_read() -> int:
    """Return how many bytes this process has read so far, from whatever file."""
    return int(Path("/proc/self/io").read_text().split()[1])


def _usual(kind: _Kind) -> int:
    """Return how many bytes are read to count the file, after a look that it is counted as it should be."""
    kind.fresh()
    begun = _bytes_read()
    assert kind.read() == kind.tallies[0]
    return _bytes_read() - begun


def _change(
    trial: Trial, kind: _Kind, name: str, way: Callable[[_Kind], None], times: int, usual: int, rng: random.Random
) -> None:
    for _ in range(times):
        outcome, answer = _raced(kind, way, rng.uniform(0, usual))
        if outcome:
            trial.saw(outcome)
        elif answer == kind.tallies[0]:
            trial.saw("the answer of the file as it was")
        elif answer in kind.tallies or (way is _cut and _same_again(kind, answer)):
            trial.saw("the answer of the file as it became")
        else:
            trial.failed(f"{name}: a number of no state: {answer!r}")


def _raced(kind: _Kind, way: Callable[[_Kind], None], after: float) -> tuple[str, Any]:
    """Count the file, and change it after so many bytes were read, however long that takes."""
    kind.fresh()
    ended, begun = threading.Event(), _bytes_read()

    def change() -> None:
        while not ended.is_set() and _bytes_read() < begun + after:
            time.sleep(0.0005)
        way(kind)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        return "", kind.read()
    except dhkappa.DataError as error:
        changed = "has changed since it was opened" in str(error)
        return "refused: 'has changed since it was opened'" if changed else "refused for what it holds", None
    finally:
        ended.set()
        changing.join()


def _same_again(kind: _Kind, answer: Any) -> bool:
    """Tell whether a file that does not change any more gives the same answer."""
    try:
        return bool(kind.read() == answer)
    except dhkappa.DataError:
        return False


def _without_guard(kind: _Kind, times: int, usual: int, rng: random.Random) -> tuple[int, int]:
    """Return how often a number of no state comes where nobody looks whether a file has changed, and of how many tries.

    Where none comes in so many, they go on until one does, to a hundred at the most.
    """
    seen = tried = 0
    guard = steady.FileStates._check
    steady.FileStates._check = lambda self, error: None  # type: ignore[method-assign]
    try:
        while tried < times or (not seen and tried < _TRIES):
            outcome, answer = _raced(kind, _rewritten, rng.uniform(0, usual))
            seen += not outcome and answer not in kind.tallies
            tried += 1
    finally:
        steady.FileStates._check = guard  # type: ignore[method-assign]
    return seen, tried


def _control(trial: Trial, kind: str, seen: int, tried: int) -> None:
    """Say what came with the guard turned off; a trial that cannot fail is wrong where it should be able to."""
    off = (
        "written over in place with the guard turned off, the number was that of no state of the file in "
        f"{seen} of {tried} tries"
    )
    if seen:
        trial.beside.append(f"{off}: the guard is needed")
    elif kind == _MUST:
        trial.failed(f"{off}: the trial shows nothing")
    else:
        trial.beside.append(f"{off}: here the trial does not show that the guard is needed")
