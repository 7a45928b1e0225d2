"""Files that change while they are read: truncated, replaced, overwritten, appended to."""

import gzip
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import dhkappa
from dhkappa import paths
from faults_common import Fault
from section import temporary_folder

LABELS = np.array(["cats", "dogs", "rats"])  # of equal length: overwriting keeps the file size
STEPS = 5  # of appending
MOST_TRIES = 100  # without the check
SUFFIXES = (".csv", ".csv.gz", ".jsonl", ".parquet", ".tally.json")


def _votes(items: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return LABELS[rng.integers(0, 3, (items, 3))], LABELS[rng.integers(0, 3, items)]


def _write(path: Path, items: int, seed: int, header: bool = True) -> dhkappa.Tally:
    """Write votes as a file, and return their tally."""
    votes, labels = _votes(items, seed)
    if path.name.endswith(".tally.json"):  # weights make the patterns many, and the file large
        few = items // 20
        tally = dhkappa.tally(votes[:few], {"suggested": labels[:few]}, sample_weight=1 + np.arange(few) / items)
        tally.save(path)
        return tally
    names = [f"{seed}-{place:0>30}" for place in range(items)]
    columns = {f"ann_{place}": votes[:, place] for place in range(3)}
    rows = pa.table({"item": names, "suggested": labels, **columns})  # noqa: F841  # DuckDB finds it by its name
    form = {".parquet": "(FORMAT parquet)", ".jsonl": "(FORMAT json)"}.get(
        path.suffix, f"(FORMAT csv, HEADER {header})"
    )
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    duckdb.sql(f"COPY (SELECT * FROM rows) TO '{plain}' {form}")
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(plain.read_bytes(), 1))
        plain.unlink()
    return dhkappa.tally(votes, {"suggested": labels})


class ChangingFile:
    """A file in two versions, with blocks to append, and the tallies of all versions."""

    def __init__(self, folder: Path, suffix: str, items: int) -> None:
        self.path, self.one, self.other = (folder / f"{name}{suffix}" for name in ("votes", "one", "other"))
        self.tallies = [_write(self.one, items, 1), _write(self.other, items, 2)]
        self.blocks: list[bytes] = []
        if suffix in (".csv", ".csv.gz", ".jsonl"):
            grown, block = self.tallies[0], folder / f"more{suffix}"
            for step in range(STEPS):
                grown = grown + _write(block, items // 20, 3 + step, header=False)
                self.blocks.append(block.read_bytes())
                self.tallies.append(grown)

    def read(self) -> dhkappa.Tally:
        """Count the file."""
        if self.path.name.endswith(".tally.json"):
            return dhkappa.Tally.load(self.path)
        return dhkappa.tally(self.path, ["suggested"])

    def race(self, change: Callable[["ChangingFile"], None], after: float) -> tuple[str, Any]:
        """Count the file, and change it after so many bytes were read; return the code of an error, or the tally."""
        shutil.copyfile(self.one, self.path)
        ended, start = threading.Event(), _bytes_read()

        def wait_and_change() -> None:
            while not ended.is_set() and _bytes_read() < start + after:
                time.sleep(0.0005)
            change(self)

        changing = threading.Thread(target=wait_and_change)
        changing.start()
        try:
            return "", self.read()
        except dhkappa.DataError as error:
            return error.code, None
        finally:
            ended.set()
            changing.join()


def _truncate(file: ChangingFile) -> None:
    os.truncate(file.path, file.path.stat().st_size // 2)


def _replace(file: ChangingFile) -> None:
    os.replace(shutil.copyfile(file.other, file.path.with_suffix(".new")), file.path)


def _overwrite(file: ChangingFile) -> None:
    with file.other.open("rb") as source, file.path.open("r+b", buffering=0) as target:
        while block := source.read(1 << 18):
            target.write(block)
            time.sleep(0.002)  # as over a network
        target.truncate()


def _append(file: ChangingFile) -> None:
    with file.path.open("ab", buffering=0) as target:
        for block in file.blocks:
            target.write(block)
            time.sleep(0.05)


CHANGES: dict[str, Callable[[ChangingFile], None]] = {
    "truncated": _truncate,
    "replaced": _replace,
    "overwritten in place": _overwrite,
    "appended to": _append,
}


def files(times: int, rng: random.Random, items: int = 1_000_000) -> Iterator[Fault]:
    """Change files of all types at random times while they are counted."""
    for suffix in SUFFIXES:
        with temporary_folder() as folder:
            file = ChangingFile(Path(folder), suffix, items)
            shutil.copyfile(file.one, file.path)
            start = _bytes_read()
            assert file.read() == file.tallies[0]
            size = _bytes_read() - start
            changes = {name: change for name, change in CHANGES.items() if change is not _append or file.blocks}
            megabytes = file.one.stat().st_size / 1e6
            fault = Fault(f"`votes{suffix}` ({megabytes:.0f} MB) {' / '.join(changes)}, during the count")
            for change in changes.values():
                for _ in range(times):
                    _check(fault, file, change, *file.race(change, rng.uniform(0, size)))
            check_control(fault, suffix, *without_check(file, times, size, rng))
            yield fault


def _bytes_read() -> int:
    """Return the number of bytes that this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])


def _check(fault: Fault, file: ChangingFile, change: object, code: str, tally: Any) -> None:
    if code:
        fault.add(True, f"rejected: {code}")
    elif tally == file.tallies[0]:
        fault.add(True, "result for the original file")
    else:  # of a truncated file, a second count must give the same
        known = tally in file.tallies or (change is _truncate and file.read() == tally)
        fault.add(known, "result for the changed file" if known else "result matches no version", tally)


def without_check(file: ChangingFile, times: int, size: int, rng: random.Random) -> tuple[int, int]:
    """Return how many results match no version without the check for changes, and the number of tries."""
    found = tries = 0
    check = paths.FileStates._check
    paths.FileStates._check = lambda self, error: None  # type: ignore[method-assign]
    try:
        while tries < times or (not found and tries < MOST_TRIES):
            code, tally = file.race(_overwrite, rng.uniform(0, size))
            found += not code and tally not in file.tallies
            tries += 1
    finally:
        paths.FileStates._check = check  # type: ignore[method-assign]
    return found, tries


def check_control(fault: Fault, suffix: str, found: int, tries: int) -> None:
    """Report the runs without the check; for CSV they must show that the check is needed."""
    text = (
        f"overwritten in place with the check disabled, the result matched neither version in {found} of {tries} runs: "
    )
    if suffix == ".csv" and not found:
        fault.add(False, f"{text}the test shows nothing")
    else:
        fault.remarks.append(text + ("the check is needed" if found else "this test does not show that it is needed"))
