"""Run the tests with the oldest allowed version of every dependency, including the extras."""

import re
import subprocess
import sys
import venv
from importlib.metadata import distributions
from pathlib import Path
from subprocess import PIPE, STDOUT

from oldest import constraints, development_constraint
from section import ROOT, paragraphs, table, write

EXTRAS = ["report", "excel", "pandas", "polars", "dask", "postgres", "spark"]
FOLDER = ROOT / ".venv-lowest"
TOOLS = ["ibis-framework[duckdb,sqlite]", "hypothesis>=6.100", "pytest>=8,<9.2", "pytest-xdist>=3.6"]
WARNINGS = ["-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"]


def main() -> int:
    """Install, run, and write the section."""
    oldest = constraints(EXTRAS)
    path, python = FOLDER / "oldest.txt", str(FOLDER / "bin" / "python")
    venv.create(FOLDER, with_pip=True, clear=True)
    path.write_text("\n".join(oldest))
    project = f"{ROOT}[{','.join(EXTRAS)}]"
    install = [python, "-m", "pip", "-q", "install", "-e", project, "-c", str(path), development_constraint("pyarrow")]
    subprocess.run([*install, *TOOLS], check=True)
    run = [python, "-m", "pytest", "--hypothesis-profile=brief", "-p", "no:cacheprovider", *WARNINGS]
    done = subprocess.run(run, cwd=ROOT, check=False, stdout=PIPE, stderr=STDOUT, text=True)
    Path(FOLDER, "tests.log").write_text(done.stdout)
    print(*(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), sep="\n")
    counts = re.findall(r"(\d+) (passed|failed|skipped|errors?)", (done.stdout.splitlines() or [""])[-1])
    [site] = (FOLDER / "lib").glob("python*/site-packages")
    versions = {found.name.lower(): found.version for found in distributions(path=[str(site)])}
    names = [one.split("==")[0] for one in oldest] + ["pyarrow"]
    write(
        "lowest",
        paragraphs(
            "The tests ran with the oldest version of each package that `pyproject.toml` allows. Test files that need "
            "other libraries were left out. Resource warnings are ignored, because PySpark 4.0 leaves sockets to the "
            "garbage collector. CI runs only the tests of the core package with the oldest versions (`make core`).",
            table(["package", "version"], [(name, versions[name.lower()]) for name in names]),
            f"Tests: {', '.join(f'{int(number):,} {outcome}' for number, outcome in counts)}.",
        ),
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
