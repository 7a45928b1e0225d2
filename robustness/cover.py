"""Measure the lines and branches of the package that the tests execute, also in the processes that they start."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from section import ROOT, paragraphs, table, write

REQUIRED = 0.97
# Coverage itself would reach the limit, or be interrupted.
DESELECTED = [f"tests/robustness/test_faults.py::{test}" for test in ("test_file_size_limit", "test_interrupted")]
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


def measure(arguments: list[str]) -> dict[str, Any]:
    """Run the tests with coverage, and return its JSON report and whether a test failed."""
    with tempfile.TemporaryDirectory(prefix="dhkappa-coverage-") as folder:
        settings = Path(folder, "settings")
        settings.write_text(SETTINGS.format(folder=folder))
        environment = os.environ | {"COVERAGE_RCFILE": str(settings)}

        def run(*words: str) -> int:
            command = [sys.executable, "-m", "coverage", *words]
            return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode

        brief = ["-p", "no:cacheprovider", "--hypothesis-profile=brief", *(f"--deselect={test}" for test in DESELECTED)]
        failed = run("run", "-m", "pytest", *brief, *arguments)
        run("combine", "--quiet", folder)
        run("json", "--quiet", "-o", f"{folder}/report.json")
        return dict(json.loads(Path(folder, "report.json").read_text()), failed=failed)


def main(arguments: list[str]) -> int:
    """Write the section, and return 1 if a test failed or too few lines or branches were executed."""
    found = measure(arguments)
    total = found["totals"]
    lines = total["covered_lines"] / total["num_statements"]
    branches = total["covered_branches"] / total["num_branches"]
    rows = []
    for path, file in sorted(found["files"].items()):
        code = (ROOT / path).read_text(encoding="utf-8").splitlines()
        partial = {start for start, _ in file["missing_branches"]} - set(file["missing_lines"])
        for number in sorted({*file["missing_lines"], *partial}):
            executed = "no" if number in file["missing_lines"] else "one branch"
            rows.append((path.removeprefix("src/dhkappa/"), f"`{code[number - 1].strip()}`", executed))
    write(
        "coverage",
        paragraphs(
            f"The tests, with few Hypothesis examples, executed {lines:.2%} of {total['num_statements']:,} lines and "
            f"{branches:.2%} of {total['num_branches']:,} branches of the package. Coverage is not measured in CI. Not "
            "executed:",
            table(["module", "line", "executed"], rows),
            "**Some tests failed in this run.**" if found["failed"] else "",
        ),
    )
    return int(min(lines, branches) < REQUIRED or bool(found["failed"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
