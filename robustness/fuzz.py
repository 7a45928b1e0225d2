"""Throw hostile input at every entrance: each input is answered rightly, or refused with one sentence.

Two drivers generate inputs: Hypothesis, which shrinks what it finds, and atheris, which looks for branches that no
input has reached. ``python robustness/fuzz.py --inputs 100000`` divides the inputs among one process per entry point
and driver, as many at once as there are cores, and writes the section ``fuzz`` of docs/robustness.md. A finding is
printed and ends the run.
"""

from __future__ import annotations

import argparse
import faulthandler
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

if TYPE_CHECKING:  # dhkappa is imported when atheris can see it
    from fuzz_trial import Trial

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "robustness")]

BATCH = 2_000  # inputs that Hypothesis remembers at a time
SIZES = (8, 24, 80, 320)  # bytes that an input is read off
SHARES = {
    "frames": 5,
    "files": 5,
    "exports": 5,
    "commands": 6,
    "tallies": 29,
    "arrays": 50,
}  # of all inputs, in percent
ENTRANCES = {
    "arrays": "lists and arrays, with every keyword",
    "frames": "tables of pandas, Polars, PyArrow and DuckDB",
    "files": "CSV, TSV, JSON, JSONL and Parquet files, and gzip",
    "exports": "exports of Label Studio, Prodigy, doccano and Argilla",
    "tallies": "tally files",
    "commands": "arguments of the command line",
}
DRIVERS = ("Hypothesis", "atheris")


def by_hypothesis(entrance: str, trial: Trial, inputs: int, seed: int) -> None:
    """Have Hypothesis draw inputs, in batches, as it remembers all that it has drawn, and make small what it finds."""
    from hypothesis import HealthCheck, Phase, given, note, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    from fuzz_dice import Dice
    from fuzz_files import MADE_BY
    from fuzz_trial import told

    begun, batch = time.monotonic(), 0
    while (done := trial.counts["inputs"]) < inputs:

        @seeded(seed * 1_000_003 + batch)
        @settings(
            max_examples=min(BATCH, inputs - done),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(st.one_of([st.binary(min_size=size, max_size=size) for size in SIZES]))
        def one(held: bytes) -> None:
            made = MADE_BY[entrance](Dice(held))
            note(told(made))
            trial.run(made)

        one()
        batch += 1
        _progress(entrance, "Hypothesis", trial, inputs, begun)


def by_atheris(entrance: str, trial: Trial, inputs: int, seed: int, folder: Path) -> NoReturn:
    """Have atheris make up bytes that reach new branches; it never returns, so what is counted is written here."""
    import atheris

    from fuzz_dice import Dice
    from fuzz_files import MADE_BY

    begun, shown = time.monotonic(), 0

    def called(held: bytes) -> None:
        nonlocal shown
        try:
            trial.run(MADE_BY[entrance](Dice(held)))
        except BaseException:
            traceback.print_exc()
            print(f"input: {(folder / 'last').read_text()}", flush=True)
            os._exit(1)
        done = trial.counts["inputs"]
        if done >= shown + BATCH or done >= inputs:
            shown = done
            _progress(entrance, "atheris", trial, inputs, begun)
        if done >= inputs:
            (folder / "counts").write_text(json.dumps(trial.counts))
            sys.stdout.flush()
            os._exit(0)

    corpus = folder / "corpus"
    corpus.mkdir()
    draw = random.Random(seed)
    for place in range(40):
        (corpus / f"{place}").write_bytes(draw.randbytes(8 * (1 + place)))
    limits = [f"-seed={seed}", f"-max_len={SIZES[-1]}", "-len_control=0", "-timeout=0", "-rss_limit_mb=0", "-reload=0"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={folder}/", str(corpus)], called)
    atheris.Fuzz()
    raise SystemExit("atheris has ended by itself")


def _progress(entrance: str, driver: str, trial: Trial, inputs: int, started: float) -> None:
    counts = ", ".join(f"{number:,} {what}" for what, number in trial.counts.items() if what != "inputs")
    done, seconds = trial.counts["inputs"], time.monotonic() - started
    print(f"{entrance} by {driver}: {done:,} of {inputs:,} ({counts}), {seconds:.0f} s", flush=True)


def child(entrance: str, driver: str, inputs: int, seed: int, folder: Path) -> None:
    """Run one entrance with one driver in this process."""
    faulthandler.enable()
    if driver == "atheris":
        import atheris

        with atheris.instrument_imports(include=["dhkappa"], enable_loader_override=False):
            for room in sorted((ROOT / "src" / "dhkappa").rglob("*.py")):
                name = ".".join(room.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
                if name != "dhkappa.__main__":
                    importlib.import_module(name)
    from fuzz_trial import Trial

    trial = Trial(folder)
    with trial.place():
        if driver == "atheris":
            by_atheris(entrance, trial, inputs, seed, folder)
        by_hypothesis(entrance, trial, inputs, seed)
    (folder / "counts").write_text(json.dumps(trial.counts))


def started(entrance: str, driver: str, inputs: int, seed: int) -> dict[str, int]:
    """Run one entrance with one driver in a process of its own, and return what was counted."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        words = ["--only", entrance, "--driver", driver, "--inputs", str(inputs), "--seed", str(seed), "--folder", name]
        with subprocess.Popen(
            [sys.executable, __file__, *words],
            env=os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": f"{name}/hypothesis"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            reached, tail = 0, [""]
            for line in process.stdout or ():
                cover = re.match(r"#\d+.* cov: (\d+)", line)
                reached = max(reached, int(cover[1])) if cover else reached
                if line.startswith(f"{entrance} by"):
                    print(line, end="", flush=True)
                elif not cover:
                    tail = [*tail[-400:], line]
        if process.returncode or not (folder / "counts").exists():
            last = (folder / "last").read_text() if (folder / "last").exists() else "none"
            print(
                "".join(tail), f"\n{entrance} by {driver} ended with {process.returncode}; the last input was\n{last}"
            )
            raise SystemExit(1)
        counts: dict[str, int] = json.loads((folder / "counts").read_text())
        return counts | {"reached": reached}


def section(found: Mapping[tuple[str, str], Mapping[str, int]], seconds: float, seed: int) -> str:
    """Write what was thrown at each entrance, and what became of it."""
    from fuzz_trial import LIMIT
    from page import table

    columns = ("inputs", "answered", "refused")
    rows = [
        [
            ENTRANCES[entrance],
            driver,
            *(f"{counts.get(column, 0):,}" for column in columns),
            f"{counts['reached']:,}" if counts["reached"] else "not counted",
        ]
        for (entrance, driver), counts in found.items()
    ]
    total = sum(counts["inputs"] for counts in found.values())
    head = ["entrance", "driver", "inputs", "answered", "refused with a sentence", "branches reached"]
    without = "" if any(driver == "atheris" for _, driver in found) else " atheris cannot be imported here."
    return f"""{total:,} inputs in {seconds / 60:.0f} minutes, seed {seed}.{without}

Hypothesis draws inputs at random, and atheris so that they reach new branches of dhkappa; both read them off bytes,
choice by choice, from sound data to anything at all. An input must be answered, or refused with one sentence of
dhkappa's own. Anything else would have ended the run, with the input, and this would not have been written: any other
error, a warning, a file left behind, over {LIMIT} seconds, or a fault of a command. The folder that a process has for
what does not fit into memory stays until the process ends, and may. Sound input must be answered. Answers are compared:
of votes that are known with the definitions in fractions, of exports with the votes read from them, of tally files with
the numbers in them; and every tally is saved, loaded and added up.

{table(head, rows)}

`tests/test_fuzz.py` has a short run of every entrance, and all that was found, for every change.
"""


def main() -> None:
    """Share inputs out over entrances and drivers, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many in all")
    parser.add_argument("--only", choices=sorted(SHARES), help="one entrance; the section is then not written")
    parser.add_argument("--driver", choices=DRIVERS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.folder is not None:
        child(said.only, said.driver, said.inputs, said.seed, said.folder)
        return
    begun = time.monotonic()
    drivers = (
        [said.driver]
        if said.driver
        else [name for name in DRIVERS if name != "atheris" or importlib.util.find_spec(name)]
    )
    entrances = {said.only: 100} if said.only else SHARES
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            (entrance, driver): pool.submit(
                started, entrance, driver, math.ceil(said.inputs * share / 100 / len(drivers)), said.seed
            )
            for entrance, share in entrances.items()
            for driver in drivers
        }
        found = {which: run.result() for which, run in runs.items()}
    text = section(found, time.monotonic() - begun, said.seed)
    if said.only:
        print(text)
        return
    from page import write

    write("fuzz", text)


if __name__ == "__main__":
    main()
