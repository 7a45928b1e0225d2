"""Simulated votes, and functions that measure time and memory."""

from __future__ import annotations

import gc
import math
import re
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dhkappa import dh_kappa

Votes = npt.NDArray[Any]
Given = TypeVar("Given")
Result = TypeVar("Result")

ACCURACY = 0.85
LABEL_ACCURACY = 0.80
BLOCK_VOTES = 1 << 20


class WrongValueError(Exception):
    """A timed call gave another number than the one it is checked against."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Votes (n x N codes below m) and suggested labels (n codes), of one dtype."""

    votes: Votes
    suggested: Votes
    m: int

    def head(self, n: int) -> Sample:
        return Sample(self.votes[:n], self.suggested[:n], self.m)

    def astype(self, dtype: type[np.integer[Any]]) -> Sample:
        return Sample(self.votes.astype(dtype), self.suggested.astype(dtype), self.m)


def draw(n: int, N: int, m: int, *, seed: int = 1) -> Sample:
    """Uniform truth; a vote or label that misses it falls on any category, so that the rates above hold."""
    rng = np.random.default_rng(seed)
    dtype = np.uint8 if m <= 256 else np.uint16
    votes, suggested = np.empty((n, N), dtype), np.empty(n, dtype)
    for rows in blocks(n, N):
        truth = rng.integers(0, m, rows.stop - rows.start, dtype=dtype)
        votes[rows] = _miss(rng, np.broadcast_to(truth[:, None], votes[rows].shape), ACCURACY, m)
        suggested[rows] = _miss(rng, truth, LABEL_ACCURACY, m)
    return Sample(votes, suggested, m)


def _miss(rng: np.random.Generator, truth: Votes, accuracy: float, m: int) -> Votes:
    keep = (accuracy - 1 / m) / (1 - 1 / m)
    kept = rng.integers(0, 1 << 16, truth.shape, dtype=np.uint16) < round(keep * (1 << 16))
    return np.where(kept, truth, rng.integers(0, m, truth.shape, dtype=truth.dtype))


def blocks(n: int, N: int) -> list[slice]:
    size = max(1, BLOCK_VOTES // N)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def kappa_and_parts(sample: Sample) -> object:
    """What is timed: the value and every part, whether or not they are computed on demand."""
    kappa = dh_kappa(sample.votes, sample.suggested)
    parts = kappa.parts
    return (
        kappa.value,
        kappa.baselines.random,
        kappa.baselines.majority,
        kappa.fleiss,
        parts and (parts.C, parts.L, parts.D, parts.E),
    )


def check_kappa(sample: Sample) -> float:
    """Hold n, C, L and R of the whole sample against integer sums in blocks; return the value.

    S and the value itself are held against eq. 14 on the items that procedure is timed on.
    """
    n, N = sample.votes.shape
    kappa = dh_kappa(sample.votes, sample.suggested)
    chosen, labels = np.zeros(sample.m, np.int64), np.zeros(sample.m, np.int64)
    pairs = 0
    for rows in blocks(n, N):
        chosen += np.bincount(sample.votes[rows].ravel(), minlength=sample.m)
        labels += np.bincount(sample.suggested[rows], minlength=sample.m)
        hits = np.count_nonzero(sample.votes[rows] == sample.suggested[rows, None], axis=1)
        pairs += int((hits * (hits - 1)).sum())
    parts = kappa.parts
    if parts is None or kappa.n_items != n:
        raise WrongValueError(f"dh_kappa used {kappa.n_items} of {n} items")
    found = (_shares(parts.C, sample.m), _shares(parts.L, sample.m), parts.R)
    wanted = (
        [Fraction(int(c), n * N) for c in chosen],
        [Fraction(int(c), n) for c in labels],
        Fraction(pairs, n * N * (N - 1)),
    )
    if found != wanted:
        raise WrongValueError(f"C, L or R of dh_kappa differ from direct sums at n={n}, N={N}, m={sample.m}")
    return float(kappa)


def _shares(shares: dict[Any, Fraction], m: int) -> list[Fraction]:
    return [shares.get(code, Fraction(0)) for code in range(m)]


def timed(call: Callable[[Given], Result], given: Given) -> tuple[float, Result]:
    """Seconds of one call, and its result, without the garbage collector."""
    gc.disable()
    try:
        start = perf_counter()
        result = call(given)
        return perf_counter() - start, result
    finally:
        gc.enable()


def alternate(calls: Sequence[Callable[[], object]], *, seconds: float, least: int) -> list[float]:
    """Shortest time of each call, in seconds, alternating for `least` rounds or more.

    A turn is as many calls as half a millisecond holds, and counts as their mean.
    """

    def turn(call: Callable[[], object], loops: int) -> float:
        return timed(lambda _: [call() for _ in range(loops)], None)[0] / loops

    loops = [max(1, math.ceil(5e-4 / max(turn(call, 1), 1e-9))) for call in calls]
    best = [math.inf] * len(calls)
    start, rounds = perf_counter(), 0
    while rounds < least or (perf_counter() - start < seconds and rounds < 50):
        for i, call in enumerate(calls):
            best[i] = min(best[i], turn(call, loops[i]))
        rounds += 1
    return best


def traced_peak(sample: Sample) -> float:
    """Peak of what the call allocates beyond the votes, as a multiple of the votes' bytes."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kappa_and_parts(sample)
        return (tracemalloc.get_traced_memory()[1] - before) / sample.votes.nbytes
    finally:
        tracemalloc.stop()


def import_seconds(runs: int) -> float:
    """Shortest time that importing dhkappa takes where numpy is imported already, each in a fresh process."""
    code = "import numpy, time; s = time.perf_counter(); from dhkappa import dh_kappa; print(time.perf_counter() - s)"
    command = [sys.executable, "-c", code]
    took = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(runs)]
    return min(map(float, took))


def resident_peak(sample: Sample) -> float | None:
    """Growth of a fresh process's resident memory, likewise; None where not available on this system."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "votes.npy", Path(folder) / "suggested.npy"]
        np.save(paths[0], sample.votes)
        np.save(paths[1], sample.suggested)
        command = [sys.executable, str(Path(__file__)), *map(str, paths)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    grown = run.stdout.strip()
    return float(grown) / sample.votes.nbytes if run.returncode == 0 and grown else None


def _resident_growth(votes_path: str, suggested_path: str) -> int | None:
    votes, suggested = np.load(votes_path), np.load(suggested_path)
    small = Sample(votes[:100], suggested[:100], 0)
    kappa_and_parts(small)
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # 5 resets the peak, VmHWM
        before = _kilobytes(status.read_text(), "VmRSS")
        kappa_and_parts(Sample(votes, suggested, 0))
        after = _kilobytes(status.read_text(), "VmHWM")
    except OSError:
        return None
    return None if before is None or after is None else 1024 * (after - before)


def _kilobytes(status: str, field: str) -> int | None:
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) if found else None


if __name__ == "__main__":
    growth = _resident_growth(sys.argv[1], sys.argv[2])
    print("" if growth is None else growth)
