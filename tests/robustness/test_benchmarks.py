"""The benchmarks run."""

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "benchmarks" / "bench.py"


def test_quick_benchmark_runs(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    command = [sys.executable, str(BENCH), "--quick", "--json", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.returncode == 0
    written = json.loads(path.read_text())
    assert [row["n"] for row in written["rows"]] == [10_000, 10_000, 1_000]
    assert all(goal["met"] is None for goal in written["goals"])
    absent = {row["engine"]: row["absent"] for row in written["engines"]}
    assert absent["DuckDB"] == ""
    assert absent["Spark, local"] != ""
    assert all(row["wide"]["n"] == row["long"]["n"] == 1_000 for row in written["engines"] if not row["absent"])


def test_comparison_with_a_checkout() -> None:
    command = [sys.executable, str(BENCH.with_name("compare.py")), "--baseline", str(BENCH.parents[1])]
    words = ["--n", "1000", "--rounds", "1", "--seconds", "0", "--only", "dh"]
    run = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "dhkappa --help" in run.stdout
    assert "failed" not in run.stdout
