"""Imports between packages and modules, the size of modules, and what ``import dhkappa`` loads."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dhkappa"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix("."): path
    for path in SOURCE.rglob("*.py")
}
ROOT = {"resources", "paths", "table"}
# A module imports only from its own package or from groups before its own. Packages of one group are independent;
# modules of the root package may import each other.
ORDER = (
    {"errors"},
    ROOT,
    {"core"},
    {"inputs", "stats"},
    {"audit_output", "audit_verdicts"},
    {"annotator_audit", "auditing"},
    {"multilabel", "planning", "pooling", "tracking"},
    {"run_audit"},
    {"merging"},
    {"report"},
    {"api"},
    {""},
    {"cli"},
    {"__main__"},
)
# A Dataset makes a Tally, and Tally.update, inside it, a Dataset. With agreement weights, kappa is estimated there.
LATER = {"inputs.tally": ("inputs.dataset",), "stats.kappa": ("stats.weighted",)}
MAX_LAYERS = 13
MAX_LINES = 500


@cache
def imports_of(name: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, also inside functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
        found |= {one.removeprefix("dhkappa").removeprefix(".") for one in names if one.split(".")[0] == "dhkappa"}
    return frozenset(found & MODULES.keys() - {name, "", *LATER.get(name, ())})


@cache
def layer_of(name: str) -> int:
    """Return the length of the longest chain of imports that ends at a module; a cycle raises RecursionError."""
    return 1 + max((layer_of(other) for other in imports_of(name)), default=0)


def package_of(name: str) -> str:
    return name.split(".")[0]


def group_of(package: str) -> int:
    return next(place for place, group in enumerate(ORDER) if package in group)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_packages_import_downward(name: str) -> None:
    here = package_of(name)
    packages = {package_of(other) for other in imports_of(name)} - {here}
    assert {other for other in packages if group_of(other) >= group_of(here) and not {here, other} <= ROOT} == set()


def test_no_cycle_and_few_layers() -> None:
    layers = {name: layer_of(name) for name in MODULES}
    for name, layer in sorted(layers.items(), key=lambda pair: (pair[1], pair[0])):
        print(f"{layer:3} {name or 'dhkappa'}")
    assert max(layers.values()) <= MAX_LAYERS


@pytest.mark.parametrize("name", sorted(MODULES))
def test_size_of_modules(name: str) -> None:
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def loaded_by(code: str) -> set[str]:
    code = f"import sys, numpy; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


def test_import_loads_numpy_and_nothing_heavier() -> None:
    loaded = loaded_by("import dhkappa")
    assert "dhkappa" in loaded
    assert loaded <= set(sys.stdlib_module_names) | {"dhkappa", "numpy"}


def test_arrays_load_no_engine() -> None:
    loaded = loaded_by("import dhkappa; dhkappa.dh_kappa([['a', 'a'], ['a', 'b']], ['a', 'b']).confidence_interval()")
    assert loaded.isdisjoint({"narwhals", "duckdb", "pandas", "polars", "pyarrow"})
