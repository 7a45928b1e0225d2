"""Fuzz every entry point: each input is accepted with the correct result, or rejected with an error that has a code.

Hypothesis generates inputs at random and shrinks findings; atheris generates inputs that reach new branches. Both
generate bytes, from which the inputs are read. Each pair of entry point and generator has its own process. A finding is
printed and ends the run. ``python robustness/fuzz.py`` writes the section ``fuzz`` of docs/robustness.md.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import importlib.util
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:  # atheris instruments the first import of dhkappa
    from fuzz_check import Runner

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "robustness")]

BATCH = 2_000  # inputs per Hypothesis test, which keeps all of them in memory
SIZES = (8, 24, 80, 320)  # bytes per input
ENTRY_POINTS = {  # percentage of all inputs, and description
    "frames": (5, "pandas, Polars, PyArrow and DuckDB tables"),
    "files": (5, "CSV, TSV, JSON, JSONL and Parquet files, also gzipped"),
    "exports": (5, "exports of Label Studio, Prodigy, doccano and Argilla"),
    "commands": (6, "command line arguments"),
    "tallies": (29, "tally files"),
    "arrays": (50, "lists and arrays, with all keywords"),
}
GENERATORS = ("Hypothesis", "atheris")


def by_hypothesis(entry: str, runner: Runner, inputs: int, seed: int) -> None:
    """Run inputs of Hypothesis, in batches."""
    from hypothesis import HealthCheck, Phase, given, note, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    from fuzz_check import written
    from fuzz_choices import Choices
    from fuzz_files import ENTRY_POINTS as MAKE

    batch = 0
    while (done := runner.counts["inputs"]) < inputs:

        @seeded(seed * 1_000_003 + batch)
        @settings(
            max_examples=min(BATCH, inputs - done),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(st.one_of([st.binary(min_size=size, max_size=size) for size in SIZES]))
        def one(data: bytes) -> None:
            made = MAKE[entry](Choices(data))
            note(written(made))
            runner.run(made)

        one()
        batch += 1
        _progress(entry, "Hypothesis", runner, inputs)


def by_atheris(entry: str, runner: Runner, inputs: int, seed: int, folder: Path) -> NoReturn:
    """Run inputs of atheris, which never returns: the counts are written here."""
    import atheris

    from fuzz_choices import Choices
    from fuzz_files import ENTRY_POINTS as MAKE

    def one(data: bytes) -> None:
        try:
            runner.run(MAKE[entry](Choices(data)))
        except BaseException:
            traceback.print_exc()
            print(f"input: {(folder / 'last').read_text()}", flush=True)
            os._exit(1)
        done = runner.counts["inputs"]
        if done % BATCH == 0 or done >= inputs:
            _progress(entry, "atheris", runner, inputs)
        if done >= inputs:
            (folder / "counts").write_text(json.dumps(runner.counts))
            sys.stdout.flush()
            os._exit(0)

    corpus = folder / "corpus"
    corpus.mkdir()
    draw = random.Random(seed)
    for place in range(40):
        (corpus / f"{place}").write_bytes(draw.randbytes(8 * (1 + place)))
    limits = [f"-seed={seed}", f"-max_len={SIZES[-1]}", "-len_control=0", "-timeout=0", "-rss_limit_mb=0", "-reload=0"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={folder}/", str(corpus)], one)
    atheris.Fuzz()
    raise SystemExit("atheris ended by itself")


def _progress(entry: str, generator: str, runner: Runner, inputs: int) -> None:
    counts = ", ".join(f"{number:,} {name}" for name, number in runner.counts.items() if name != "inputs")
    print(f"{entry} by {generator}: {runner.counts['inputs']:,} of {inputs:,} ({counts})", flush=True)


def run_here(entry: str, generator: str, inputs: int, seed: int, folder: Path) -> None:
    """Fuzz one entry point with one generator in this process."""
    faulthandler.enable()
    if generator == "atheris":
        import atheris

        with atheris.instrument_imports(include=["dhkappa"], enable_loader_override=False):
            for path in sorted((ROOT / "src" / "dhkappa").rglob("*.py")):
                name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
                if name != "dhkappa.__main__":
                    importlib.import_module(name)
    from fuzz_check import Runner

    runner = Runner(folder)
    with runner.place():
        if generator == "atheris":
            by_atheris(entry, runner, inputs, seed, folder)
        by_hypothesis(entry, runner, inputs, seed)
    (folder / "counts").write_text(json.dumps(runner.counts))


def run_process(entry: str, generator: str, inputs: int, seed: int) -> dict[str, int]:
    """Fuzz one entry point with one generator in a new process, and return the counts."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        words = ["--only", entry, "--generator", generator, "--inputs", str(inputs), "--seed", str(seed)]
        with subprocess.Popen(
            [sys.executable, __file__, *words, "--folder", name],
            env=os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": f"{name}/hypothesis"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            branches, tail = 0, [""]
            for line in process.stdout or ():
                cover = re.match(r"#\d+.* cov: (\d+)", line)
                branches = max(branches, int(cover[1])) if cover else branches
                if line.startswith(f"{entry} by"):
                    print(line, end="", flush=True)
                elif not cover:
                    tail = [*tail[-400:], line]
        if process.returncode or not (folder / "counts").exists():
            last = (folder / "last").read_text() if (folder / "last").exists() else "none"
            print("".join(tail), f"\n{entry} by {generator}: exit code {process.returncode}; last input:\n{last}")
            raise SystemExit(1)
        counts: dict[str, int] = json.loads((folder / "counts").read_text())
        return counts | {"branches": branches}


def section(found: Mapping[tuple[str, str], Mapping[str, int]], seconds: float, seed: int) -> str:
    """Return the text of the section."""
    from fuzz_check import TIME_LIMIT
    from section import paragraphs, table

    rows = [
        [
            ENTRY_POINTS[entry][1],
            generator,
            *(f"{counts.get(column, 0):,}" for column in ("inputs", "accepted", "rejected")),
            f"{counts['branches']:,}" if counts["branches"] else "not counted",
        ]
        for (entry, generator), counts in found.items()
    ]
    total = sum(counts["inputs"] for counts in found.values())
    without = "" if any(generator == "atheris" for _, generator in found) else " atheris is not installed."
    return paragraphs(
        f"{total:,} inputs in {seconds / 60:.0f} minutes, seed {seed}.{without}",
        "Hypothesis generates inputs at random; atheris generates inputs that reach new branches of dhkappa. The "
        "inputs range from valid data to arbitrary bytes. Each input must be accepted, or rejected with a one-line "
        "error of dhkappa that has a code. The run stops at the first violation: any other exception, a warning, a "
        f"file left on disk, more than {TIME_LIMIT} seconds, or an internal error of a command. (The temporary folder "
        "of a process may exist until the process ends.) Valid input must be accepted. Results are checked: results "
        "for known votes against the definitions in rational arithmetic, and tally files against the numbers in them. "
        "Every tally is saved, loaded and added.",
        table(["input", "generator", "inputs", "accepted", "rejected with an error", "branches reached"], rows),
        "A short version and all inputs found so far are part of the test suite.",
    )


def main() -> None:
    """Distribute the inputs over entry points and generators, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="number of inputs")
    parser.add_argument("--only", choices=sorted(ENTRY_POINTS), help="one entry point, and write no section")
    parser.add_argument("--generator", choices=GENERATORS)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        run_here(options.only, options.generator, options.inputs, options.seed, options.folder)
        return
    start = time.monotonic()
    available = [name for name in GENERATORS if name != "atheris" or importlib.util.find_spec(name)]
    generators = [options.generator] if options.generator else available
    shares = {options.only: 100} if options.only else {entry: share for entry, (share, _) in ENTRY_POINTS.items()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            (entry, generator): pool.submit(
                run_process, entry, generator, math.ceil(options.inputs * share / 100 / len(generators)), options.seed
            )
            for entry, share in shares.items()
            for generator in generators
        }
        found = {which: run.result() for which, run in runs.items()}
    text = section(found, time.monotonic() - start, options.seed)
    if options.only or options.generator:
        print(text)
        return
    from section import write

    write("fuzz", text)


if __name__ == "__main__":
    main()
