"""The installed command, run as a person runs it."""

import subprocess
import sys
from pathlib import Path

import dhkappa

COMMAND = str(Path(sys.executable).with_name("dhkappa"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_demo_scores_two_labelers() -> None:
    shown = run("demo")
    assert shown.returncode == 0
    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    table = {line.split("  ")[0]: line.split()[-8:] for line in lines if line.startswith(("llm", "keyword rule"))}
    assert float(table["llm"][0]) > float(table["keyword rule"][0])
    assert float(table["llm"][1]) < float(table["llm"][0]) < float(table["llm"][3])
    assert table["llm"][6] == table["keyword rule"][6]
    assert "simulated" in shown.stdout
    assert run("demo").stdout == shown.stdout
    assert run("demo", "--seed", "2").stdout != shown.stdout


def test_demo_with_one_item_and_wrong_use() -> None:
    assert run("demo", "--items", "1").returncode == 0
    wrong = run("demo", "--items", "0")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


def test_help_and_version() -> None:
    assert "Example: dhkappa demo" in run("demo", "--help").stdout
    assert "demo" in run("--help").stdout
    assert run("--version").stdout.strip() == f"dhkappa, version {dhkappa.__version__}"
