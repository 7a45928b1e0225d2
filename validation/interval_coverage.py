"""Simulate the coverage of the confidence intervals of simple random samples, and write docs/coverage.md.

Samples are drawn and summarized with array code of this folder; only the limits come from the package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dhkappa.stats.intervals import Basis, beta_interval
from simulation import (
    SOURCES,
    TOO_LOW,
    Floats,
    Generator,
    answers,
    batches,
    draw,
    logit_interval,
    main,
    mean_and,
    prevalence,
    run_all,
    standard_error,
    table,
    true_kappa,
)

INTRODUCTION = """\
# Coverage of confidence intervals

Coverage is the share of simulated samples whose 95% confidence interval contains the true kappa, in percent.
Samples are drawn from a model with a known kappa: {sets:,} samples per cell, so that the standard error of one cell
is about {error:.1f} percentage points. The minimum over many cells is expected to be three or four standard errors
lower by chance.

Settings: 2, 3 or 5 votes per item; 2, 3, 5 or 10 categories, equally frequent or skewed (*rare*: two categories,
one of them on 5% of the items); errors in the votes, in the labels, or in both. Samples without an interval are
left out.

*beta* is the default interval of the package. *logit* is a t interval on the logit scale, shown for comparison; it
is not part of the package. *length* is the mean length of the beta interval divided by that of the logit interval.
This page is written by `make validate`.

Other pages: [weights, strata, pools, ordered categories](coverage-designs.md), [differences between
labelers](coverage-differences.md), [annotator comparisons](coverage-annotators.md), [the
annotator baseline](coverage-baseline.md), [other annotators](coverage-other-annotators.md).
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: n items, N votes each, m categories, their prevalence, the true kappa, and where errors are."""

    n: int
    N: int
    m: int
    prevalence: str
    kappa: float
    source: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Coverage of both intervals in a cell, and the ratio of their mean lengths."""

    cell: Cell
    beta: float
    logit: float
    length: float


def model(cell: Cell) -> tuple[Floats, Floats, Floats] | None:
    """Return the model whose true kappa is the cell's, or None if no accuracy has it."""
    truth = prevalence(cell.prevalence, cell.m, 0.05)

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


def bases(rng: Generator, cell: Cell, sets: int, chances: tuple[Floats, Floats, Floats]) -> Iterator[Basis]:
    """Yield the basis of the interval of each simulated sample that has one."""
    shares, vote_chances, label_chances = chances
    truth = rng.choice(cell.m, (sets, cell.n), p=shares)
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
            numbers = (value, float(E[i]), cell.n, float(squares[i]), float(least[i]), float(greatest[i]))
            yield Basis(*numbers, 1 / cell.n, 1 / cell.n, 1 / cell.n, cell.n - 1)


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    rng, chances = np.random.default_rng([20, number]), model(cell)
    if chances is None:
        return None
    found = [
        (*beta_interval(basis, 0.05), *logit_interval(basis, 0.05))
        for size in batches(sets, 2_000_000 // (cell.n * cell.m))
        for basis in bases(rng, cell, size, chances)
    ]
    if not found:
        return None
    low, high, logit_low, logit_high = np.array(found).T
    return Outcome(
        cell=cell,
        beta=float(((low <= cell.kappa) & (cell.kappa <= high)).mean()),
        logit=float(((logit_low <= cell.kappa) & (cell.kappa <= logit_high)).mean()),
        length=float((high - low).mean() / (logit_high - logit_low).mean()),
    )


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    sizes = (20, 30, 50, 100, 200, 500) if full else (20, 50, 200)
    votes = (2, 3, 5) if full else (2, 5)
    kappas = (0, 0.2, 0.6, 0.8, 0.9, 0.95)
    ordinary = product(sizes, votes, (2, 3, 5, 10), ("uniform", "skewed"), kappas, SOURCES)
    rare = product(sizes, votes, (2,), ("rare",), kappas, SOURCES)
    return [Cell(*setting) for setting in (*ordinary, *rare)]


def lines(sets: int, full: bool) -> list[str]:
    """Return the page: a row for each true kappa and n, ordinary and rare categories side by side."""
    outcomes = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])
    columns = [
        f"{rare}{name}" for rare in ("", "rare, ") for name in ("beta: mean / min", "logit: mean / min", "length")
    ]
    rows = []
    for kappa, n in sorted({(o.cell.kappa, o.cell.n) for o in outcomes}):
        row = [f"{kappa:g}", str(n)]
        for rare in (False, True):
            here = [
                o for o in outcomes if (o.cell.kappa, o.cell.n) == (kappa, n) and (o.cell.prevalence == "rare") == rare
            ]
            row += (
                [
                    mean_and(min, [o.beta for o in here]),
                    mean_and(min, [o.logit for o in here]),
                    f"{np.mean([o.length for o in here]):.2f}",
                ]
                if here
                else ["", "", ""]
            )
        rows.append(row)
    lowest, cell = min(o.beta for o in outcomes), min(outcomes, key=lambda o: o.beta).cell
    return [
        INTRODUCTION.format(sets=sets, error=standard_error(sets)),
        *table(["kappa", "n", *columns], rows),
        "",
        f"Coverage is below 94.5% in {sum(o.beta < TOO_LOW for o in outcomes)} of {len(outcomes):,} cells for the beta "
        f"interval and in {sum(o.logit < TOO_LOW for o in outcomes)} for the logit interval. Lowest: beta "
        f"{100 * lowest:.1f}% (kappa {cell.kappa:g}, n {cell.n}, N {cell.N}, m {cell.m}, {cell.prevalence}, errors in "
        f"{cell.source}), logit {100 * min(o.logit for o in outcomes):.1f}%.",
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage.md", 4000, lines))
