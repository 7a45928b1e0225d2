"""The oldest versions that dhkappa allows, as constraints for pip: `python robustness/floors.py [EXTRA ...]`.

They go with an old Python: on one that is newer than they are, nothing is constrained.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def _project() -> dict[str, Any]:
    return tomllib.loads(PROJECT.read_text(encoding="utf-8"))


def needed(extras: list[str]) -> list[str]:
    """Return what the package needs, and what its extras need."""
    project = _project()["project"]
    return [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]


def floors(extras: list[str]) -> list[str]:
    """Return the same, each at the oldest version."""
    return [_oldest(need) for need in needed(extras)]


def floor(package: str) -> str:
    """Return a package that only development needs, at the oldest version."""
    [need] = [need for need in _project()["dependency-groups"]["dev"] if re.split(r"[^\w-]", need)[0] == package]
    return _oldest(need)


def _oldest(need: str) -> str:
    return re.sub(r"(\[.*\])?>=([^,]*).*", r"==\2", need)


if __name__ == "__main__":
    print("\n".join(floors(sys.argv[1:])) if sys.version_info < (3, 13) else "")
