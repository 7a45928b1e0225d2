"""Memory of each step of an audit in one process, compared with reading the data."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from measure import _kilobytes
from parquet import write_wide
from table import number, power

STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its seconds, and the peak of what is resident in all and beyond what was before, in MiB."""

    layout: str
    name: str
    seconds: float
    peak: float
    grown: float


def step_table(n: int) -> list[Step]:
    """Measure and print the steps on n items in a Parquet file, in wide format, and on few enough to be named."""
    found = []
    with tempfile.TemporaryDirectory(prefix="dhkappa-bench-") as folder:
        for items, layout in ((n, "counted"), (min(n, 200_000), "items and annotators named")):
            path = write_wide(Path(folder) / "wide.parquet", range(items))
            command = [sys.executable, str(Path(__file__)), str(path), f"{power(items)}, {layout}"]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found += [Step(*step) for step in json.loads(told)]
    if not found:
        print("Memory of each step: not available on this system.")
        return []
    print(
        "Memory of each step, 5 votes per item as text in a Parquet file: peak resident memory of one process, in MiB"
    )
    print(f"{'items':<38}{'step':<12}{'seconds':>8}{'peak':>8}{'beyond before':>15}{'x reading':>11}")
    reading = {step.layout: step.peak for step in found if step.name == "reading"}
    for step in found:
        ratio = f"{step.peak / reading[step.layout]:.2f}"
        print(
            f"{step.layout:<38}{step.name:<12}{number(step.seconds):>8}{step.peak:>8.0f}{step.grown:>15.0f}{ratio:>11}"
        )
    return found


def _steps(path: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return every step, each with what those before it have made."""
    import dhkappa
    from dhkappa.inputs.backends.duckdb import connect

    made: dict[str, Any] = {}

    def keep(name: str, call: Callable[[], Any]) -> Callable[[], None]:
        return lambda: made.update({name: call()})

    values = f"SELECT bit_xor(hash(COLUMNS(*))) FROM read_parquet('{path}')"  # a count would not look at them
    yield "reading", lambda: connect().execute(values).fetchall()
    yield "tally", keep("tally", lambda: dhkappa.tally(path, "suggested", annotators="ann_*"))
    yield "kappa", keep("kappa", lambda: dhkappa.dh_kappa(made["tally"]))
    yield "intervals", lambda: (made["kappa"].confidence_interval(), made["kappa"].bootstrap(rng=1))
    yield "audit", keep("audit", lambda: dhkappa.audit(path, "suggested", annotators="ann_*", rng=1, progress=False))
    if find_spec("vl_convert") is not None:  # without which there is no report
        yield "report", lambda: made["audit"].to_html(str(Path(path).with_suffix(".html")))


def _measured(path: str, layout: str) -> Iterator[tuple[str, str, float, float, float]]:
    for name, step in _steps(path):
        PEAK.write_text("5")  # 5 resets the peak, VmHWM
        before = _kilobytes(STATUS.read_text(), "VmRSS") or 0
        start = perf_counter()
        step()
        seconds = perf_counter() - start
        peak = _kilobytes(STATUS.read_text(), "VmHWM") or 0
        yield layout, name, seconds, peak / 1024, (peak - before) / 1024


if __name__ == "__main__":
    print(json.dumps(list(_measured(*sys.argv[1:])) if PEAK.exists() else []))
