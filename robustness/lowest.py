"""Run the tests with the oldest version of every package that dhkappa allows, extras too."""

import re
import subprocess
import sys
import venv
from importlib.metadata import distributions
from pathlib import Path
from subprocess import PIPE, STDOUT

from oldest import floor, floors
from page import ROOT, table, write

EXTRAS = ["report", "pandas", "polars", "dask", "postgres", "spark"]
FOLDER = ROOT / ".venv-lowest"
BESIDE = [floor("pyarrow"), "ibis-framework[duckdb,sqlite]", "hypothesis>=6.100", "pytest>=8,<9.2", "pytest-xdist>=3.6"]

LEFT_OPEN = ["-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"]


def main() -> int:
    """Install, run, and write the section."""
    oldest = floors(EXTRAS)
    constraints = str(FOLDER / "floors.txt")
    python = str(FOLDER / "bin" / "python")
    venv.create(FOLDER, with_pip=True, clear=True)
    Path(constraints).write_text("\n".join(oldest))
    project = f"{ROOT}[{','.join(EXTRAS)}]"
    install = [python, "-m", "pip", "-q", "install", "-e", project, "-c", constraints, *BESIDE]
    subprocess.run(install, check=True)
    run = [python, "-m", "pytest", "--hypothesis-profile=brief", "-p", "no:cacheprovider", *LEFT_OPEN]
    done = subprocess.run(run, cwd=ROOT, check=False, stdout=PIPE, stderr=STDOUT, text=True)
    (FOLDER / "tests.log").write_text(done.stdout)
    print(*(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), sep="\n")
    counted = re.findall(r"(\d+) (passed|failed|skipped|errors?)", (done.stdout.splitlines() or [""])[-1])
    [site] = (FOLDER / "lib").glob("python*/site-packages")
    versions = {found.name.lower(): found.version for found in distributions(path=[str(site)])}
    names = [one.split("==")[0] for one in oldest] + ["pyarrow"]
    rows = [(name, versions[name.lower()]) for name in names]
    result = ", ".join(f"{int(number):,} {what}" for number, what in counted)
    write(
        "lowest",
        "The tests ran with the oldest version of each package that `pyproject.toml` allows. Test files whose "
        "libraries are not among them were left out. Warnings of what is left open do not count: PySpark 4.0 leaves "
        "sockets to the garbage collector. At every change only the tests that need no more than what the package "
        "itself installs run with the oldest versions (`make core`).\n\n"
        f"{table(['package', 'version'], rows)}\n\nTests: {result}.",
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
