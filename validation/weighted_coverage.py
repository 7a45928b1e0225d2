"""Simulate the coverage of intervals with agreement weights, and write docs/coverage-weights.md.

Samples are drawn with array code of this folder; kappas, differences and limits come from the package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dhkappa import compare
from simulation import LEVEL, TOO_LOW, Floats, draw, main, mean_and, prevalence, run_all, section, standard_error

INTRODUCTION = """\
# Coverage with agreement weights

Coverage of 95% confidence intervals with linear and quadratic agreement weights, in percent: the share of simulated
samples whose interval contains the true value; {sets:,} samples per cell, so that the standard error of one cell is
about {error:.1f} percentage points.

Items have a true category of 3, 5 or 7 ordered ones, the lower ones more frequent; three votes and the labels of two
labelers are right with the given accuracies. Of the errors, 80% go to a neighboring category and 20% to any other. Rows
take the mean and the minimum over the numbers of categories. This page is written by `make validate`.
"""
ACCURACIES = {
    "votes .9, labels .95 and .85": (0.9, 0.95, 0.85),
    "votes .9, labels .7 and .7": (0.9, 0.7, 0.7),
    "votes .8, labels .9 and .9": (0.8, 0.9, 0.9),
    "votes .7, labels .8 and .6": (0.7, 0.8, 0.6),
    "votes .6, labels .5 and .3": (0.6, 0.5, 0.3),
}
_NEAR = 0.8  # share of the errors that go to a neighbor
_VOTES = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting."""

    kind: str
    n: int
    accuracies: str
    m: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Coverage of the intervals of the first kappa and of the difference, and the share of samples that have both."""

    cell: Cell
    kappa: float
    difference: float
    defined: float


def weights(kind: str, m: int) -> Floats:
    """Return (m, m) the weights."""
    distance = np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / (m - 1)
    found: Floats = 1 - distance ** {"linear": 1, "quadratic": 2}[kind]
    return found


def near_answers(accuracy: float, m: int) -> Floats:
    """Return (m, m): the probability of each answer, given the true category."""
    apart = np.abs(np.subtract.outer(np.arange(m), np.arange(m)))
    near, other = apart == 1, apart > 0
    wrong = _NEAR * near / near.sum(axis=1, keepdims=True) + (1 - _NEAR) * other / other.sum(axis=1, keepdims=True)
    found: Floats = accuracy * np.eye(m) + (1 - accuracy) * wrong
    return found


def true_kappa(w: Floats, truth: Floats, votes: Floats, labels: Floats) -> float:
    """Return the weighted kappa of a population: the mean of w_xy (w_xl + w_yl - 1), beyond that by chance."""
    pair = w[:, :, None] * (w[:, None, :] + w[None, :, :] - 1)  # (x, y, label)
    D = np.einsum("z,zx,zy,zl,xyl", truth, votes, votes, labels, pair)
    C, L = truth @ votes, truth @ labels
    E = np.einsum("x,y,l,xyl", C, C, L, pair)
    return float((D - E) / (1 - E))


def run(job: tuple[int, Cell, int]) -> Outcome:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    rng, m = np.random.default_rng([41, number]), cell.m
    w, shares = weights(cell.kind, m), prevalence("skewed", m, 0.1)
    votes, *labelers = (near_answers(accuracy, m) for accuracy in ACCURACIES[cell.accuracies])
    kappas = [true_kappa(w, shares, votes, labels) for labels in labelers]
    found = []
    for _ in range(sets):
        truth = rng.choice(m, cell.n, p=shares)
        given = draw(rng, votes, np.repeat(truth[:, None], _VOTES, axis=1))
        labels = {name: draw(rng, chances, truth) for name, chances in zip("ab", labelers, strict=True)}
        result = compare(given, labels, categories=range(m), weights=cell.kind, rng=rng)
        low, high = result.kappas["a"].confidence_interval(LEVEL)
        (row,) = result.differences
        if np.isfinite([low, row["low"]]).all():
            difference = kappas[0] - kappas[1]
            found.append((low <= kappas[0] <= high, row["low"] <= difference <= row["high"]))
    kappa, difference = np.mean(found, axis=0) if found else (np.nan, np.nan)
    return Outcome(cell, float(kappa), float(difference), len(found) / sets)


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    accuracies = list(ACCURACIES) if full else list(ACCURACIES)[:2]
    return [Cell(*chosen) for chosen in product(("linear", "quadratic"), (50, 200), accuracies, (3, 5, 7))]


def lines(sets: int, full: bool) -> Iterator[str]:
    """Yield the page."""
    outcomes = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])
    yield INTRODUCTION.format(sets=sets, error=standard_error(sets))
    rows = []
    for kind, n, accuracies in dict.fromkeys((o.cell.kind, o.cell.n, o.cell.accuracies) for o in outcomes):
        here = [o for o in outcomes if (o.cell.kind, o.cell.n, o.cell.accuracies) == (kind, n, accuracies)]
        both = (mean_and(min, [getattr(o, name) for o in here]) for name in ("kappa", "difference"))
        rows.append([kind, str(n), accuracies, *both])
    text = "Kappa of the first labeler (`dh_kappa`), and the difference between both (`compare`)."
    heads = ["weights", "n", "accuracies", "kappa: mean / min", "difference: mean / min"]
    yield from section("Kappa and differences", text, heads, rows)
    yield ""
    kappa, difference = (sum(getattr(o, name) < TOO_LOW for o in outcomes) for name in ("kappa", "difference"))
    low = min(outcomes, key=lambda o: o.kappa)
    lowest = min(outcomes, key=lambda o: o.difference)
    yield (
        f"Coverage is below 94.5% in {kappa} of {len(outcomes)} cells for kappa and in {difference} for differences. "
        f"Lowest: kappa {100 * low.kappa:.1f}%, difference {100 * lowest.difference:.1f}%."
    )
    yield ""
    for name, worst in (("kappa", low), ("difference", lowest)):
        cell = worst.cell
        yield f"- Lowest for {name}: {cell.kind}, n {cell.n}, {cell.accuracies}, {cell.m} categories."
    undefined = min(o.defined for o in outcomes)
    yield f"- At least {100 * undefined:.1f}% of the samples of a cell have both intervals."


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-weights.md", 500, lines))
