"""The direction of imports between packages and modules, their size, and what `import dhkappa` loads."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dhkappa"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix("."): path
    for path in SOURCE.rglob("*.py")
}
# A package imports only from those in front of it. Modules of the root package stand for themselves.
ORDER = (
    ["version", "errors", "resources", "memory", "progress", "paths", "table"],
    ["core"],
    ["inputs"],
    ["stats"],
    ["auditing"],
    ["report"],
    ["api"],
    [""],
    ["cli"],
    ["__main__"],
)


@cache
def imports_of(name: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, also inside functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
        found |= {one.removeprefix("dhkappa").removeprefix(".") for one in names if one.split(".")[0] == "dhkappa"}
    known = found & MODULES.keys() - {name}
    packages = {one for one in known if any(other.startswith(f"{one}.") for other in known)} | {""}
    return frozenset(known - packages if name else known)


@cache
def layer_of(name: str) -> int:
    return 1 + max((layer_of(other) for other in imports_of(name)), default=0)


def place_of(name: str) -> int:
    package = name.split(".")[0]
    return next(place for place, group in enumerate(ORDER) if package in group)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_packages_import_only_from_packages_below(name: str) -> None:
    wrong = [other for other in imports_of(name) if place_of(other) > place_of(name)]
    assert not wrong


def test_there_is_no_cycle_and_there_are_few_layers() -> None:
    assert max(map(layer_of, MODULES)) <= 24  # a cycle would recurse without end


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
