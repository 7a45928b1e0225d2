"""The validation's own sampling code against the package, and that it runs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dhkappa import dh_kappa, simulate

SCRIPT = Path(__file__).parents[1] / "validation" / "interval_coverage.py"
sys.path.insert(0, str(SCRIPT.parent))

import interval_coverage as coverage  # noqa: E402


def test_true_kappa_of_a_model_against_a_large_sample() -> None:
    cell = coverage.Cell(n=100, N=3, m=4, prevalence="skewed", kappa=0.6, source="votes and labels")
    chances = coverage.model(cell)
    assert chances is not None
    assert coverage.true_kappa(*chances) == pytest.approx(0.6, abs=1e-9)  # bisection to 2^-60 of accuracy
    accuracy = float(chances[1][0, 0])
    drawn = simulate(
        200_000, categories=range(4), prevalence=[4, 3, 2, 1], accuracy=accuracy, labelers={"x": accuracy}, rng=1
    )
    # The standard error of kappa is about .0015 here; four of them.
    assert dh_kappa(drawn.votes, drawn.suggested["x"]).value == pytest.approx(0.6, abs=0.006)


def test_summaries_against_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = coverage.Cell(n=40, N=3, m=3, prevalence="skewed", kappa=0.2, source="votes and labels")
    chances = coverage.model(cell)
    assert chances is not None
    answers = []
    honest = coverage.draw

    def recorded(*given: object) -> object:
        answers.append(honest(*given))  # type: ignore[arg-type]
        return answers[-1]

    monkeypatch.setattr(coverage, "draw", recorded)
    (basis,) = coverage.bases(np.random.default_rng(3), cell, 1, chances)
    labels, *votes = (answer[0] for answer in answers)
    kappa = dh_kappa(np.column_stack(votes), labels)
    kappa.interval()
    ours = kappa._known["basis"]
    for name in ("kappa", "E", "n", "squares", "least", "greatest"):
        assert getattr(basis, name) == pytest.approx(getattr(ours, name), rel=1e-9)  # some hundred roundings


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("interval_coverage.py", "| 0.95 | 200 |"),
        ("design_coverage.py", "## Ordered categories"),
        ("paired_coverage.py", "## Labels that know nothing"),
        ("people_coverage.py", "| alike | 30 |"),
    ],
)
def test_quick_validation_runs(script: str, line: str, tmp_path: Path) -> None:
    page = tmp_path / "coverage.md"
    command = [sys.executable, str(SCRIPT.parent / script), "--quick", "--sets", "4", "--page", str(page)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert line in page.read_text()
