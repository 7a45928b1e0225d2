"""Which lines and branches of the package the tests run, those of the processes that they start among them.

What is left stands in the section with its reason, from robustness/uncovered.toml: the code, and why no test runs it.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from page import ROOT, table, write

REASONS = Path(__file__).with_name("uncovered.toml")
APART = ["tests/test_faults.py::test_a_limit_of_file_sizes"]  # which what coverage itself writes would meet
SETTINGS = """
[run]
branch = true
parallel = true
source_pkgs = dhkappa
patch = subprocess
sigterm = true
data_file = {folder}/data
[report]
exclude_also =
    if TYPE_CHECKING:
"""


def measured(asked: list[str]) -> dict[str, Any]:
    """Run the tests under coverage; return what its report in JSON holds, and whether a test failed."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-coverage-") as folder:
        settings = Path(folder, "settings")
        settings.write_text(SETTINGS.format(folder=folder))
        coverage = [sys.executable, "-m", "coverage"]
        environment = os.environ | {"COVERAGE_RCFILE": str(settings)}

        def run(*words: str) -> int:
            return subprocess.run([*coverage, *words], cwd=ROOT, env=environment, check=False).returncode

        few = ["-p", "no:cacheprovider", "--hypothesis-profile=brief", *(f"--deselect={test}" for test in APART)]
        failed = run("run", "-m", "pytest", *few, *asked)
        run("combine", "--quiet", folder)
        run("json", "--quiet", "-o", f"{folder}/report.json")
        return dict(json.loads(Path(folder, "report.json").read_text()), failed=failed)


def main(asked: list[str]) -> int:
    """Write the section; 1 where under 97% of lines or branches were run, a test failed, or what is left has no why."""
    found = measured(asked)
    total = found["totals"]
    lines = total["covered_lines"] / total["num_statements"]
    branches = total["covered_branches"] / total["num_branches"]
    reasons = {(entry["room"], entry["code"]): entry["why"] for entry in tomllib.loads(REASONS.read_text())["left"]}
    rows = []
    for path, file in sorted(found["files"].items()):
        room = Path(path).relative_to("src/dhkappa").with_suffix("").as_posix().replace("/", ".")
        source = (ROOT / path).read_text(encoding="utf-8").splitlines()
        partial = {start for start, _ in file["missing_branches"]} - set(file["missing_lines"])
        for number in sorted({*file["missing_lines"], *partial}):
            code = source[number - 1].strip()
            why = reasons.get((room, code), "")
            rows.append((room, f"`{code}`", "never run" if number in file["missing_lines"] else "one way", why))
    write(
        "coverage",
        f"The tests, with few examples by Hypothesis, ran {lines:.2%} of {total['num_statements']:,} lines and "
        f"{branches:.2%} of {total['num_branches']:,} branches of the package. This is not measured at every "
        "change. What is left:\n\n"
        + table(["room", "line", "run", "why"], rows)
        + ("\n\n**Some tests failed in this run.**" if found["failed"] else ""),
    )
    unexplained = [row for row in rows if not row[-1]]
    return int(lines < 0.97 or branches < 0.97 or bool(found["failed"] or unexplained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
