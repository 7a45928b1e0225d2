"""How often intervals hold the true kappa: simulated samples over a grid of settings, as a page of the docs.

Samples are drawn and summarised here with plain array code of its own; only the limits come from the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from dhkappa.stats.intervals import Basis, beta_interval
from logit import logit_interval, plain_basis

Floats = npt.NDArray[np.float64]
SOURCES = ("votes and labels", "labels only", "votes only")
PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"


INTRODUCTION = """\
# Coverage of the intervals

How often the 95% interval holds the true kappa, in percent, in samples simulated from a model with known truth;
{sets:,} samples a cell, so one cell is known to about {error:.1f} points, and the least of many cells is lower by
three or four of these by chance alone. Cells: 2, 3 or 5 votes per item; 2, 3, 5 or 10 categories, equally frequent or
skewed (*rare*: two categories, one on 5% of the items); errors in votes, in labels, or in both. Samples that have no
interval are left out. *length*: mean length, as a multiple of the logit interval's. Written by `make validate`.
Other pages: [weights, strata, pools, ordered categories](coverage-designs.md), [differences between
labelers](coverage-differences.md), [people as labelers](coverage-people.md).

"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: n items, N votes each, m categories, their prevalence, the true kappa, and who errs."""

    n: int
    N: int
    m: int
    prevalence: str
    kappa: float
    source: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell: shares of samples, and mean length."""

    cell: Cell
    beta: float
    logit: float
    below: float
    above: float
    length: float
    against_logit: float
    without: float


def shares(prevalence: str, m: int) -> Floats:
    """Return how often each category is the truth."""
    if prevalence == "rare":
        return np.array([0.95, *[0.05 / (m - 1)] * (m - 1)])
    sample_weight = np.ones(m) if prevalence == "uniform" else np.arange(m, 0.0, -1.0)
    found: Floats = sample_weight / sample_weight.sum()
    return found


def answers(accuracy: float, m: int) -> Floats:
    """Return (m, m): the chance of each answer, given each truth."""
    wrong = (1 - accuracy) / (m - 1)
    return np.full((m, m), wrong) + np.eye(m) * (accuracy - wrong)


def true_kappa(truth: Floats, votes: Floats, labels: Floats) -> float:
    """Return kappa of the population that the model describes, by eq. 4-13."""
    agree = votes**2
    D = float((truth[:, None] * agree * (2 * labels - 1)).sum())
    C, L = truth @ votes, truth @ labels
    E = float((C**2 * (2 * L - 1)).sum())
    return (D - E) / (1 - E)


def model(cell: Cell) -> tuple[Floats, Floats, Floats] | None:
    """Return the model whose true kappa is the cell's, or None where accuracy cannot reach it."""
    truth = shares(cell.prevalence, cell.m)

    def at(accuracy: float) -> tuple[Floats, Floats, Floats]:
        votes = answers(1.0 if cell.source == "labels only" else accuracy, cell.m)
        labels = answers(1.0 if cell.source == "votes only" else accuracy, cell.m)
        return truth, votes, labels

    low, high = 1 / cell.m + 1e-9, 1.0
    if not true_kappa(*at(low)) <= cell.kappa <= true_kappa(*at(high)):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if true_kappa(*at(middle)) < cell.kappa else (low, middle)
    return at(high)


def draw(rng: np.random.Generator, chances: Floats, truth: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Draw one answer for each truth."""
    upto = chances.cumsum(axis=1)
    upto[:, -1] = 1
    drawn: npt.NDArray[np.int64] = (rng.random(truth.shape)[..., None] > upto[truth]).sum(axis=-1)
    return drawn


def bases(rng: np.random.Generator, cell: Cell, sets: int, chances: tuple[Floats, Floats, Floats]) -> Iterator[Basis]:
    """Yield what intervals are made of for each of many samples; samples without an interval are left out."""
    prevalence, vote_chances, label_chances = chances
    truth = rng.choice(cell.m, (sets, cell.n), p=prevalence)
    labels = np.eye(cell.m)[draw(rng, label_chances, truth)]
    P = np.zeros(labels.shape)
    for _ in range(cell.N):
        P += np.eye(cell.m)[draw(rng, vote_chances, truth)]
    g = P * (P - 1) / (cell.N * (cell.N - 1))
    d = (2 * labels * g - g).sum(axis=-1)
    c = P / cell.N
    C, L, D = c.mean(axis=1), labels.mean(axis=1), d.mean(axis=1)
    C_E = (C**2 * L).sum(axis=1)
    E = 2 * C_E - (C**2).sum(axis=1)
    with np.errstate(all="ignore"):
        kappa = (D - E) / (1 - E)
        pull = C * (2 * L - 1)
        eps = 2 * ((pull[:, None] * c).sum(-1) + (C[:, None] ** 2 * labels).sum(-1) - (E + C_E)[:, None])
        phi = ((d - D[:, None]) - (1 - kappa)[:, None] * eps) / (1 - E)[:, None]
        sign = 2 * np.eye(cell.m) - 1
        rest = pull[:, None, :] + (C**2)[:, :, None] - (E + C_E)[:, None, None]
        ends = (sign - D[:, None, None] - 2 * (1 - kappa)[:, None, None] * rest) / (1 - E)[:, None, None]
    occurs = C + L > 0
    both = occurs[:, None, :] & occurs[:, :, None]
    squares = (phi**2).sum(axis=1)
    least, greatest = np.where(both, ends, np.inf).min((1, 2)), np.where(both, ends, -np.inf).max((1, 2))
    for i in range(sets):
        flat = squares[i] < 1e-20 * cell.n and kappa[i] < 1 - 1e-12
        if 1 - E[i] > 1e-12 and not flat:
            value = 1.0 if kappa[i] > 1 - 1e-12 else float(kappa[i])
            yield plain_basis(value, float(E[i]), cell.n, float(squares[i]), float(least[i]), float(greatest[i]))


def measure(cell: Cell, sets: int, rng: np.random.Generator) -> Outcome | None:
    """Draw samples of a cell and count how often each interval holds the true kappa."""
    chances = model(cell)
    if chances is None:
        return None
    beta: list[tuple[float, float]] = []
    logit: list[tuple[float, float]] = []
    batch = max(1, 2_000_000 // (cell.n * cell.m))
    for first in range(0, sets, batch):
        for basis in bases(rng, cell, min(batch, sets - first), chances):
            beta.append(beta_interval(basis, 0.05))
            logit.append(logit_interval(basis, 0.05))
    if not beta:
        return None
    limits, old = np.array(beta), np.array(logit)
    held = (limits[:, 0] <= cell.kappa) & (cell.kappa <= limits[:, 1])
    held_old = (old[:, 0] <= cell.kappa) & (cell.kappa <= old[:, 1])
    length = float(np.diff(limits).mean())
    return Outcome(
        cell=cell,
        beta=float(held.mean()),
        logit=float(held_old.mean()),
        below=float((limits[:, 1] < cell.kappa).mean()),
        above=float((limits[:, 0] > cell.kappa).mean()),
        length=length,
        against_logit=length / float(np.diff(old).mean()),
        without=1 - len(beta) / sets,
    )


def grid(full: bool) -> list[Cell]:
    """Return the settings to measure."""
    sizes = (20, 30, 50, 100, 200, 500) if full else (20, 50, 200)
    votes = (2, 3, 5) if full else (2, 5)
    ordinary = product(sizes, votes, (2, 3, 5, 10), ("uniform", "skewed"), (0, 0.2, 0.6, 0.8, 0.9, 0.95), SOURCES)
    rare = product(sizes, votes, (2,), ("rare",), (0, 0.2, 0.6, 0.8, 0.9, 0.95), SOURCES)
    return [Cell(*setting) for setting in (*ordinary, *rare)]


def page(outcomes: list[Outcome], sets: int) -> str:
    """Return the page: a line for each true kappa and n, ordinary and rare side by side."""
    error = 100 * (0.95 * 0.05 / sets) ** 0.5
    lines = [
        *INTRODUCTION.format(sets=sets, error=error).splitlines(),
        "| kappa | n | beta: mean / least | logit: mean / least | length | rare, beta | rare, logit | length |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kappa, n in sorted({(o.cell.kappa, o.cell.n) for o in outcomes}):
        row = [f"{kappa:g}", str(n)]
        for rare in (False, True):
            here = [
                o for o in outcomes if (o.cell.kappa, o.cell.n) == (kappa, n) and (o.cell.prevalence == "rare") == rare
            ]
            if not here:
                row += ["", "", ""]
                continue
            for kind in ("beta", "logit"):
                values = [100 * getattr(o, kind) for o in here]
                row.append(f"{np.mean(values):.1f} / {min(values):.1f}")
            row.append(f"{np.mean([o.against_logit for o in here]):.2f}")
        lines.append("| " + " | ".join(row) + " |")
    low = [o for o in outcomes if o.beta < 0.945]
    worst = min(outcomes, key=lambda o: o.beta)
    lines += [
        "",
        f"Of {len(outcomes):,} cells, the beta interval is below 94.5% in {len(low)}, the logit interval in "
        f"{sum(o.logit < 0.945 for o in outcomes)}. Least: beta {100 * worst.beta:.1f}% ({_text(worst.cell)}), "
        f"logit {100 * min(o.logit for o in outcomes):.1f}%.",
        "",
    ]
    return "\n".join(lines)


def _text(cell: Cell) -> str:
    return f"kappa {cell.kappa:g}, n {cell.n}, N {cell.N}, m {cell.m}, {cell.prevalence}, errors in {cell.source}"


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Measure a cell with a stream of random numbers of its own, so that any part of the grid repeats."""
    number, cell, sets = job
    return measure(cell, sets, np.random.default_rng([20, number]))


def main() -> int:
    """Measure the grid and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=4000, help="samples a cell (default 4000)")
    parser.add_argument("--quick", action="store_true", help="a small part of the grid")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the page")
    options = parser.parse_args()
    start, outcomes = perf_counter(), []
    jobs = [(number, cell, options.sets) for number, cell in enumerate(grid(full=not options.quick))]
    with ProcessPoolExecutor() as pool:
        for number, outcome in enumerate(pool.map(run, jobs, chunksize=4), start=1):
            if outcome:
                outcomes.append(outcome)
            if number % 200 == 0:
                print(f"{number} of {len(jobs)} cells, {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    options.page.write_text(page(outcomes, options.sets))
    print(f"{len(outcomes)} cells in {perf_counter() - start:.0f} s: {options.page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
