"""The oldest versions that dhkappa allows, as constraints for pip: `python trust/floors.py [EXTRA ...]`.

They go with an old Python: on one that is newer than they are, nothing is constrained.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def needed(extras: list[str]) -> list[str]:
    """Return what the package needs, and what its extras need."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]


def floors(extras: list[str]) -> list[str]:
    """Return the same, each at the oldest version."""
    return [re.sub(r"(\[.*\])?>=([^,]*).*", r"==\2", need) for need in needed(extras)]


if __name__ == "__main__":
    print("\n".join(floors(sys.argv[1:])) if sys.version_info < (3, 13) else "")
