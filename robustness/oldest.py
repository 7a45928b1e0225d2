"""Print the oldest allowed versions of the dependencies as pip constraints: python robustness/oldest.py [EXTRA ...].

Nothing is constrained on Python 3.13 or newer, for which the old versions have no packages.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def _project() -> dict[str, Any]:
    return tomllib.loads(PROJECT.read_text(encoding="utf-8"))


def requirements(extras: list[str]) -> list[str]:
    """Return the requirements of the package and of some extras."""
    project = _project()["project"]
    return [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]


def constraints(extras: list[str]) -> list[str]:
    """Return the same requirements, each at the oldest version."""
    return [_oldest(need) for need in requirements(extras)]


def development_constraint(package: str) -> str:
    """Return a development requirement at the oldest version."""
    [need] = [need for need in _project()["dependency-groups"]["dev"] if re.split(r"[^\w-]", need)[0] == package]
    return _oldest(need)


def _oldest(need: str) -> str:
    return re.sub(r"(\[.*\])?>=([^,]*).*", r"==\2", need)


if __name__ == "__main__":
    print("\n".join(constraints(sys.argv[1:])) if sys.version_info < (3, 13) else "")
