"""Mutants: the statistics rooms with one small thing wrong each, and whether the tests notice.

mutmut makes the mutants, in a copy of the tree; forks.py runs the tests that reach a changed function until one fails.
This script sets up the copy and writes down what came of the mutants. survivors.toml says why those that live do.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import importlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

from forks import LOOSE, PATIENCE
from page import ROOT, table, write

STATS = Path("src") / "dhkappa" / "stats"
PLACE = "https://github.com/boxed/mutmut"
NOTICED = ("killed", "timeout")
ENOUGH = 0.9  # of the mutants of a room
CORE = ("sample", "sums", "kappa", "terms", "influence", "quantiles", "intervals", "variance", "estimators")
TESTS = {  # the quick tests that bear on a room; so are test_mutants_*.py and the examples of docstrings
    "sample": "against_oracle design sides bad_input items",
    "sums": "against_oracle worked_examples items",
    "kappa": "against_oracle worked_examples influence",
    "terms": "influence items design ordinal",
    "influence": "influence items design ordinal",
    "quantiles": "quantiles intervals",
    "intervals": "intervals people compare plan",
    "variance": "design compare plan",
    "estimators": "against_oracle worked_examples ordinal design result",
    "rng": "bootstrap chance simulate",
    "permutation": "chance design",
    "categories": "categories design",
    "bootstrap": "bootstrap design",
    "weights": "ordinal",
    "notes": "worked_examples against_oracle design result ordinal sides",
    "result": "result design bootstrap verdict",
    "compare": "compare",
    "review": "items drilldown",
    "annotators": "annotators",
    "annotator_comparison": "people",
    "plan": "plan",
    "simulate": "simulate",
    "verdict": "verdict",
}
SLOW = (  # tests that simulate thousands of samples, or need a large machine; most of them take seconds
    "coverage",
    "simulated_samples",
    "memory",
    "rejected_as_often",
    "spread_of_samples",
    "stratified_sample_from_a_pool",
    "many_categories",
    "flawless_categories",
    "sampled_frequencies",
)
SETTINGS = """
[tool.pytest.ini_options]
filterwarnings = ["error"]
xfail_strict = true
markers = ["xdist_group"]
"""
HYPOTHESIS = """
from hypothesis import Phase

# Few examples, the same for every mutant; a failure is not made smaller, as nobody reads it.
settings.register_profile(
    "mutants", settings.get_profile("brief"), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("mutants")
"""
EXAMPLES = '''
"""The examples of docstrings, as tests: mutmut would copy the docstrings with the functions."""
import doctest, importlib, json
from pathlib import Path
import pytest

FOUND = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize("name", FOUND)
def test_example(name):
    module, text = FOUND[name]
    test = doctest.DocTestParser().get_doctest(text, dict(vars(importlib.import_module(module))), name, None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
'''


@dataclass(frozen=True)
class Mutant:
    """A function with one thing changed."""

    name: str
    function: str
    old: str
    new: str
    text: bool
    """Whether only the text of a string changed."""


@dataclass(frozen=True)
class Room:
    """What came of the mutants of a room."""

    name: str
    total: int
    fate: dict[Mutant, str]
    """killed, timeout, survived, or no tests"""

    def count(self, *fates: str) -> int:
        """Count the mutants that met one of these fates."""
        return sum(fate in fates for fate in self.fate.values())

    @property
    def noticed(self) -> float:
        """The share that made a test fail, or run without end."""
        return self.count(*NOTICED) / len(self.fate)


def main() -> int:
    """Run the rooms one after the other; write the section where all were run; 1 where too little was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(TESTS), help="only these, and write no section")
    parser.add_argument("--sample", type=int, default=120, help="mutants of a room that is not core; 0 for all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="keep what came of mutants here, and go on where a run was stopped")
    parser.add_argument("--again", action="store_true", help="try again those that lived, with the tests of today")
    asked = parser.parse_args()
    chosen = asked.rooms.split(",")
    if unknown := set(chosen) - set(TESTS):
        parser.error(f"no such room: {', '.join(sorted(unknown))}")
    if missing := {path.stem for path in (ROOT / STATS).glob("[!_]*.py")} - set(TESTS):
        parser.error(f"no tests are named for {', '.join(sorted(missing))}")
    rooms = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (asked.folder or Path(temporary)).resolve()
        for name in chosen:
            rooms.append(run(name, folder, 0 if name in CORE else asked.sample, asked.seed, asked.again))
            print(*row(rooms[-1]), sep="\t", flush=True)
    text = report(rooms, asked.seed)
    if chosen == list(TESTS):
        write("mutate", text)
    else:
        print(text)
    return int(not enough(rooms))


def enough(rooms: list[Room]) -> bool:
    """Tell whether nine tenths were noticed in every room, and so in all, and each mutant that lived is explained."""
    alive = [mutant for room in rooms for mutant, fate in room.fate.items() if fate not in NOTICED]
    return all(room.noticed >= ENOUGH for room in rooms) and not explained(alive)[1]


def run(name: str, folder: Path, size: int, seed: int, again: bool) -> Room:
    """Make the mutants of a room in a copy of the tree, and run the tests on `size` of them, or on all."""
    source = hashlib.sha256((ROOT / STATS / f"{name}.py").read_bytes()).hexdigest()
    work, kept = folder / name, folder / f"{name}-{source[:12]}.fates"
    shutil.rmtree(work, ignore_errors=True)
    tests = copy(name, work)
    mutants = mutated(name, work)
    drawn = mutants
    if size and len(mutants) > size:
        drawn = random.Random(f"{seed} {name}").sample(mutants, size)
    # What is explained is taken to live without a try: to find that out takes every test.
    found = {mutant.name: "survived" for alike in explained(drawn)[0].values() for mutant in alike}
    found |= {mutant: fate for mutant, fate in fates(kept).items() if fate in NOTICED or not again}
    left = [mutant.name for mutant in drawn if mutant.name not in found]
    if left:
        (work / "left").write_text("\n".join(left))
        command = [sys.executable, str(Path(__file__).with_name("forks.py")), "left", str(kept), *tests]
        paths = {"PYTHONPATH": str(work / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command, cwd=work, env=os.environ | paths, check=True, stdout=subprocess.DEVNULL)
        found |= {mutant: fate for mutant, fate in fates(kept).items() if mutant in left}
    return Room(name, len(mutants), {mutant: found[mutant.name] for mutant in drawn})


def fates(path: Path) -> dict[str, str]:
    """Return what came of each mutant, the last word on it."""
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split("\t") for line in lines)


def copy(name: str, folder: Path) -> list[str]:
    """Copy what the tests of a room need, with fewer examples; return the tests."""
    folder.mkdir(parents=True)
    for part in ("src", "tests", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.svg", "*.png"))
    shutil.copy(ROOT / "README.md", folder)
    for path in (folder / "tests").glob("*.py"):
        path.write_text(re.sub(r"max_examples=[\d_]+", "max_examples=10", path.read_text()))
    with (folder / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(HYPOTHESIS)
    (folder / "tests" / "test_room_examples.py").write_text(EXAMPLES)
    (folder / "tests" / "test_room_examples.json").write_text(json.dumps(examples(folder)))
    (folder / "pyproject.toml").write_text(SETTINGS)
    slow = " or ".join(SLOW)
    made = sorted(path.stem.removeprefix("test_") for path in (folder / "tests").glob("test_mutants_*.py"))
    chosen = [f"tests/test_{test}.py" for test in [*TESTS[name].split(), *made, "room_examples"]]
    return [*(test for test in chosen if (folder / test).exists()), "-k", f"not ({slow})"]


def examples(folder: Path) -> dict[str, tuple[str, str]]:
    """Return docstrings with examples, of the statistics rooms and of the public calls, with their modules."""
    package = folder / "src" / "dhkappa"
    found = {}
    for path in [*sorted((package / "stats").glob("*.py")), package / "estimate.py"]:
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if ">>>" in text:
                    found[f"{module}.{getattr(node, 'name', '')}"] = (module, text)
    return found


def undecorated(source: str) -> str:
    """Write `f = decorator(f)` after each function instead of `@decorator`: mutmut leaves out decorated ones."""
    lines = source.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: -node.lineno):
        for decorator in node.decorator_list:
            indent, text = " " * node.col_offset, ast.get_source_segment(source, decorator)
            lines.insert(node.end_lineno or 0, f"{indent}{node.name} = {text}({node.name})\n")
        if node.decorator_list:
            del lines[node.decorator_list[0].lineno - 1 : node.lineno - 1]
    return "".join(lines)


def mutated(name: str, folder: Path) -> list[Mutant]:
    """Put all mutants of a room into its file, each a function beside the true one, and return them."""
    path, room = folder / STATS / f"{name}.py", importlib.import_module("mutmut.mutation.file_mutation")
    with contextlib.chdir(folder):  # where mutmut looks for its settings
        made = room.mutate_file_contents(path.name, undecorated(path.read_text()))
    path.write_text(made.code)
    lines, spans = made.code.splitlines(), made.line_span_by_function_name
    found = []
    for mutant in made.mutant_names:
        stem = mutant.rpartition("_")[0]
        function = stem.removesuffix("__mutmut").removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        before, after = (
            [line.replace(f"{at}(", f"{function.rpartition('.')[2]}(") for line in lines[span.start - 1 : span.end]]
            for at, span in ((at, spans[at]) for at in (f"{stem}_orig", mutant))
        )
        text = without_text(before) == without_text(after)
        found.append(Mutant(f"dhkappa.stats.{name}.{mutant}", f"{name}.{function}", *changed(before, after), text))
    return found


def changed(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return the lines that differ, each side as one line."""
    matched = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    blocks = [block[1:] for block in matched if block[0] != "equal"]
    old = " ".join(line.strip() for i, j, _, _ in blocks for line in before[i:j])
    new = " ".join(line.strip() for _, _, i, j in blocks for line in after[i:j])
    return old, new


def without_text(function: list[str]) -> str:
    """Return a function as it is parsed, but for what is written in strings."""
    tree = ast.parse(textwrap.dedent("\n".join(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def row(room: Room) -> list[object]:
    """Return a line of the table."""
    counts = [room.count(fate) for fate in ("killed", "timeout", "survived", "no tests")]
    return [room.name, f"{room.total:,}", f"{len(room.fate):,}", *counts, f"{room.noticed:.1%}"]


def report(rooms: list[Room], seed: int) -> str:
    """Return the section."""
    whole = sum(room.total for room in rooms)
    fate = {mutant: fate for room in rooms for mutant, fate in room.fate.items()}
    killed = sum(value in NOTICED for value in fate.values())
    # Rooms are strata of which all or some mutants were drawn: the share of all, and its standard error.
    share = sum(room.total / whole * room.noticed for room in rooms)
    error = math.sqrt(sum(variance(room) * (room.total / whole) ** 2 for room in rooms))
    texts = [value in NOTICED for mutant, value in fate.items() if mutant.text]
    reasons, unknown = explained([mutant for mutant, value in fate.items() if value not in NOTICED])
    sampled = [room for room in rooms if len(room.fate) < room.total]
    said = [
        f"[mutmut]({PLACE}) {version('mutmut')} changes one thing at a time in the functions of the statistics rooms, "
        f"such as `<` to `<=`, `+` to `-`, an argument to `None`: {whole:,} mutants. {len(fate):,} of them were drawn"
        + (f", of rooms that are not core a random sample (seed {seed})" if sampled else "")
        + ". On each of these, but for those that are explained below, tests of the room that reach the function ran "
        "until one failed, with the examples of docstrings and without the simulations that take seconds: those made "
        f"for mutants first, then the quickest, and no more than take {PATIENCE:g} seconds of CPU together where "
        f"nothing is changed. A test that takes {LOOSE:g} times as long as it does then, and a second more, is without "
        "end. Hypothesis drew ten examples a test, the same for every mutant. Rooms that read data are not changed: "
        "hostile input, and the same bits everywhere, on this page, are their trials. This does not run at every "
        "change; `tests/test_mutants_*.py`, which came of it, do.\n",
        table(["room", "mutants", "drawn", "killed", "without end", "lived", "no test", "noticed"], map(row, rooms)),
        f"\n**{killed:,} of {len(fate):,} were noticed, {killed / len(fate):.1%}**: a test failed, or ran without end. "
        f"For all {whole:,} mutants that makes {share:.1%}"
        + (f" (95% interval {share - 1.96 * error:.1%} to {share + 1.96 * error:.1%}). " if error else ". ")
        + f"{len(texts):,} changed only words in a string: {sum(texts):,} of these were noticed. "
        "Constants outside of functions are not changed.\n",
        "Why mutants lived, of those that were drawn: others were not tried. Such a mutant counts as lived without a "
        "try.\n",
        table(
            ["mutants", "why", "where"],
            [
                [len(mutants), why, ", ".join(f"`{name}`" for name in sorted({mutant.function for mutant in mutants}))]
                for why, mutants in sorted(reasons.items(), key=lambda pair: -len(pair[1]))
            ],
        ),
    ]
    if unknown:
        said += [
            f"\n{len(unknown):,} lived without an explanation yet:\n",
            table(["where", "was", "became"], [[f"`{m.function}`", f"`{m.old}`", f"`{m.new}`"] for m in unknown]),
        ]
    return "\n".join(said)


def variance(room: Room) -> float:
    """Return the variance of the share noticed, of mutants drawn without replacement."""
    n = len(room.fate)
    return 0.0 if n == room.total else (1 - n / room.total) * room.noticed * (1 - room.noticed) / (n - 1)


def explained(alive: list[Mutant]) -> tuple[dict[str, list[Mutant]], list[Mutant]]:
    """Return the surviving mutants by the reason in survivors.toml, and those without a reason."""
    rules = tomllib.loads(Path(__file__).with_name("survivors.toml").read_text())["reason"]
    reasons: dict[str, list[Mutant]] = {}
    unknown = []
    for mutant in alive:
        why = next((rule["why"] for rule in rules if any(fits(mutant, case) for case in rule["cases"])), None)
        if why is None:
            unknown.append(mutant)
        else:
            reasons.setdefault(why, []).append(mutant)
    return reasons, unknown


def fits(mutant: Mutant, case: dict[str, Any]) -> bool:
    """Tell whether a mutant is a case: in a function (or any), one text was replaced by another, and nothing else."""
    was, old = case["was"], mutant.old
    places = [match.start() for match in re.finditer(re.escape(was), old)]
    changes = {old[:place] + new + old[place + len(was) :] for place in places for new in case["became"]}
    return fnmatch(mutant.function, case.get("in", "*")) and mutant.new in changes


if __name__ == "__main__":
    sys.exit(main())
