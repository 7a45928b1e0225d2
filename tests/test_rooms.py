"""The rooms: who may import whom, how long a module may be, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dhkappa"

WALK = [
    "version",
    "errors",
    "memory",
    "writing",
    "progress",
    "table",
    "data.paths",
    "data.steady",
    "data.labels",
    "data.patterns",
    "data.arrays",
    "data.sides",
    "data.votes",
    "data.ballots",
    "data.saved",
    "data.tally",
    "data.cells",
    "data.layouts",
    "data.duck",
    "data.spelling",
    "data.engines",
    "data.source",
    "data.files",
    "data.databases",
    "data.export",
    "data.exports.records",
    "data.exports.label_studio",
    "data.exports.prodigy",
    "data.exports.doccano",
    "data.exports.argilla",
    "data.reading",
    "data.tables",
    "data.packed",
    "data.long",
    "data.frames",
    "data.gather",
    "data.given",
    "stats.sample",
    "stats.sums",
    "stats.kappa",
    "stats.terms",
    "stats.influence",
    "stats.quantiles",
    "stats.intervals",
    "stats.design",
    "stats.draws",
    "stats.chance",
    "stats.categories",
    "stats.bootstrap",
    "stats.ordinal",
    "stats.notes",
    "stats.result",
    "stats.estimators",
    "stats.compare",
    "stats.items",
    "stats.annotators",
    "stats.people",
    "stats.plan",
    "stats.simulate",
    "stats.verdict",
    "present.story",
    "present.charts",
    "present.report",
    "present.terminal",
    "findings",
    "estimate",
    "",
    "present.sheet",
    "present.demo",
    "present.options",
    "present.process",
    "present.cli",
    "__main__",
]
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix("."): path
    for path in SOURCE.rglob("*.py")
}


def imports_of(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, as named in WALK."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names = [node.module or ""]
        found |= {name.removeprefix("dhkappa").removeprefix(".") for name in names if name.split(".")[0] == "dhkappa"}
    return found


def test_every_module_has_its_place() -> None:
    floors = {"data", "data.exports", "stats", "present"}
    assert set(MODULES) - floors == set(WALK)


@pytest.mark.parametrize("name", WALK)
def test_modules_import_only_from_rooms_before_them(name: str) -> None:
    assert imports_of(MODULES[name]) <= set(WALK[: WALK.index(name)])


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_is_over_500_lines(name: str) -> None:
    assert len(MODULES[name].read_text().splitlines()) <= 500


def test_import_loads_numpy_and_nothing_heavier() -> None:
    code = "import sys, numpy; before = set(sys.modules); import dhkappa; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    allowed = set(sys.stdlib_module_names) | {"dhkappa", "numpy"}
    assert loaded <= allowed
    assert "dhkappa" in loaded
