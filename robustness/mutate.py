"""Mutation testing of stats/: change one detail at a time, and see whether a test fails.

mutmut makes the mutants in a copy of the tree. mutation_runner.py runs, until one fails, the tests that reach the
changed function: tests/unit/stats/test_MODULE*.py, tests/statistics, the texts of messages and the docstring examples.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import importlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from mutation_runner import CPU_SECONDS, SLOWDOWN
from section import ROOT, paragraphs, table, write

STATS = Path("src") / "dhkappa" / "stats"
DETECTED = ("killed", "timeout")
MESSAGES = "tests/unit/test_messages.py::test_text_is_as_in_the_snapshot"
REQUIRED = 0.9  # share of detected mutants, per module
SETTINGS = """
[tool.pytest.ini_options]
addopts = "--import-mode=importlib -m 'not slow'"
pythonpath = ["tests", "tests/statistics", "robustness", "validation"]
filterwarnings = ["error"]
xfail_strict = true
markers = ["slow", "xdist_group"]
"""
HYPOTHESIS = """
from hypothesis import Phase

settings.register_profile(
    "mutants", settings.get_profile("brief"), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("mutants")
"""
EXAMPLES = '''
"""Docstring examples as tests: mutmut would copy the docstrings with the functions."""
import doctest, importlib, json
from pathlib import Path
import pytest

EXAMPLES = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    module, text = EXAMPLES[name]
    test = doctest.DocTestParser().get_doctest(text, dict(vars(importlib.import_module(module))), name, None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
'''


@dataclass(frozen=True)
class Mutant:
    """A function with one change."""

    name: str
    function: str
    old: str
    new: str


@dataclass(frozen=True)
class Result:
    """Outcomes of the tested mutants of a module: killed, timeout, survived, no test, or unclear."""

    module: str
    total: int
    outcomes: dict[Mutant, str]

    def count(self, *outcomes: str) -> int:
        """Count mutants by outcome."""
        return sum(outcome in outcomes for outcome in self.outcomes.values())

    @property
    def score(self) -> float:
        """Share of detected mutants."""
        return self.count(*DETECTED) / len(self.outcomes) if self.outcomes else 1.0


def main() -> int:
    """Test the modules, write the section if all were tested, and return 1 if a score is too low."""
    known = sorted(path.stem for path in (ROOT / STATS).glob("[!_]*.py"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="only these, and write no section")
    parser.add_argument("--sample", type=int, default=200, help="mutants per module; 0 for all")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if unknown := set(options.modules) - set(known):
        parser.error(f"unknown modules: {', '.join(sorted(unknown))}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for module in options.modules or known:
            results.append(run(module, Path(folder) / module, options.sample, options.seed))
            print(*row(results[-1]), sep="\t", flush=True)
    text = report(results, options.seed)
    if options.modules:
        print(text)
    else:
        write("mutate", text)
    return int(any(result.score < REQUIRED for result in results))


def run(module: str, folder: Path, size: int, seed: int) -> Result:
    """Make the mutants of a module in a copy of the tree, and run the tests on ``size`` of them, or on all."""
    tests = copy(module, folder)
    mutants = tested = make_mutants(module, folder)
    if size and len(mutants) > size:
        tested = random.Random(f"{seed} {module}").sample(mutants, size)
    (folder / "mutants").write_text("\n".join(mutant.name for mutant in tested))
    outcomes = folder / "outcomes"
    if tested:
        script = str(Path(__file__).with_name("mutation_runner.py"))
        paths = {"PYTHONPATH": str(folder / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, script, module, "mutants", str(outcomes), *tests]
        subprocess.run(command, cwd=folder, env=os.environ | paths, check=True, stdout=subprocess.DEVNULL)
    lines = outcomes.read_text().splitlines() if tested else []
    found = dict(line.split("\t") for line in lines)
    return Result(module, len(mutants), {mutant: found[mutant.name] for mutant in tested})


def copy(module: str, folder: Path) -> list[str]:
    """Copy what the tests of a module need, with few Hypothesis examples, and return the tests."""
    folder.mkdir(parents=True)
    for part in ("src", "tests", "docs", "robustness", "validation"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.svg", "*.png"))
    shutil.copy(ROOT / "README.md", folder)
    for path in (folder / "tests" / "messages").glob("[!s]*.py"):  # only stats*.py: a report needs more memory
        path.unlink()
    for path in (folder / "tests").rglob("*.py"):
        path.write_text(re.sub(r"max_examples=[\d_]+", "max_examples=10", path.read_text()))
    with (folder / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(HYPOTHESIS)
    (folder / "tests" / "test_docstrings.py").write_text(EXAMPLES)
    (folder / "tests" / "test_docstrings.json").write_text(json.dumps(examples(folder)))
    (folder / "pyproject.toml").write_text(SETTINGS)
    unit = sorted((folder / "tests" / "unit" / "stats").glob(f"test_{module}*.py"))
    return [*(str(path.relative_to(folder)) for path in unit), "tests/statistics", MESSAGES, "tests/test_docstrings.py"]


def examples(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the module and text of the docstrings with examples in stats/ and api.py."""
    package = folder / "src" / "dhkappa"
    found = {}
    for path in [*sorted((package / "stats").glob("*.py")), package / "api.py"]:
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if ">>>" in text:
                    found[f"{module}.{getattr(node, 'name', '')}"] = (module, text)
    return found


def undecorated(source: str) -> str:
    """Write ``f = decorator(f)`` after each function instead of ``@decorator``: mutmut skips decorated functions."""
    lines = source.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: -node.lineno):
        for decorator in node.decorator_list:
            indent, text = " " * node.col_offset, ast.get_source_segment(source, decorator)
            lines.insert(node.end_lineno or 0, f"{indent}{node.name} = {text}({node.name})\n")
        if node.decorator_list:
            del lines[node.decorator_list[0].lineno - 1 : node.lineno - 1]
    return "".join(lines)


def make_mutants(module: str, folder: Path) -> list[Mutant]:
    """Write all mutants of a module into its file, next to the original functions, and return them."""
    path, mutmut = folder / STATS / f"{module}.py", importlib.import_module("mutmut.mutation.file_mutation")
    with contextlib.chdir(folder):  # where mutmut looks for its settings
        made = mutmut.mutate_file_contents(path.name, undecorated(path.read_text()))
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
        found.append(Mutant(f"dhkappa.stats.{module}.{mutant}", f"{module}.{function}", *changed(before, after)))
    return found


def changed(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return the lines that differ, each side on one line."""
    matched = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    blocks = [block[1:] for block in matched if block[0] != "equal"]
    old = " ".join(line.strip() for i, j, _, _ in blocks for line in before[i:j])
    new = " ".join(line.strip() for _, _, i, j in blocks for line in after[i:j])
    return old, new


def row(result: Result) -> list[object]:
    """Return a row of the table."""
    counts = [result.count(outcome) for outcome in ("killed", "timeout", "survived", "no test")]
    return [result.module, f"{result.total:,}", f"{len(result.outcomes):,}", *counts, f"{result.score:.1%}"]


def report(results: list[Result], seed: int) -> str:
    """Return the text of the section."""
    outcomes = {mutant: outcome for result in results for mutant, outcome in result.outcomes.items()}
    detected = sum(outcome in DETECTED for outcome in outcomes.values())
    survivors = [mutant for mutant, outcome in outcomes.items() if outcome not in DETECTED]
    return paragraphs(
        f"[mutmut](https://github.com/boxed/mutmut) {version('mutmut')} changes one detail at a time in the functions "
        "of `stats/`, such as `<` to `<=`, `+` to `-`, or an argument to `None`: "
        f"{sum(result.total for result in results):,} mutants. A random sample of each module was tested (seed "
        f"{seed}). For each mutant, the tests that reach the function ran until one failed: the unit tests of the "
        f"module, then the fastest others, up to {CPU_SECONDS:g} seconds of CPU time in total, including the texts of "
        f"messages and the docstring examples, and excluding slow tests. A test that took more than {SLOWDOWN:g} times "
        "its normal duration plus one second counts as a timeout. Hypothesis generated ten examples per test, the same "
        "for every mutant. Modules that read data are not mutated; fuzzing and the reproducibility tests on this page "
        "cover them. Mutation testing does not run in CI.",
        table(
            ["module", "mutants", "tested", "killed", "timeout", "survived", "no test", "detected"], map(row, results)
        ),
        f"**{detected:,} of {len(outcomes):,} tested mutants were detected, {detected / max(len(outcomes), 1):.1%}**: "
        f"a test failed or timed out. At least {REQUIRED:.0%} are required in each module. Constants outside of "
        "functions are not mutated. Mutants that were not detected:",
        table(
            ["function", "original", "mutant"],
            [[f"`{mutant.function}`", f"`{mutant.old}`", f"`{mutant.new}`"] for mutant in survivors],
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
