"""Simulate the coverage of confidence intervals with clusters of items, and write docs/coverage-clusters.md.

Prevalence and the accuracies of labels and votes vary between clusters. The true values come from the moments of their
distributions, the rest from the package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dhkappa import compare, dh_kappa
from dhkappa.stats.annotator_baseline import annotator_baseline
from simulation import TOO_LOW, Floats, Generator, Integers, main, mean_and, run_all, standard_error, table

INTRODUCTION = """\
# Coverage with clusters

Coverage is the share of simulated samples whose 95% confidence interval contains the true value, in percent, if items
come in clusters: {sets:,} samples per cell, so that the standard error of one cell is about {error:.1f} percentage
points, in {cells} cells. The minimum over many cells is expected to be two or three standard errors lower by chance.
Samples without an interval are left out.

Settings: 3 categories with 3 votes per item, or 5 with 4, skewed. Prevalence, and the accuracies of labels and of
votes, vary between clusters{alone}, with an intra-cluster correlation of 0, .1 or .3.
Clusters have 6 items each (*equal*), sizes from 1 to 40 (*unequal*), or half of the items are single and the others in
clusters of 8 (*single*). *independent* is the interval without clusters, *clusters* that with clusters; *length* is
the mean length of the second divided by that of the first. *difference* is that of two labelers, *annotator* that from
a typical annotator, and *share* the [share kept](methods.md#annotator-baseline). This page is written by
`make validate`.
"""
SIZES = ("equal", "unequal", "single")
SETTINGS = ((3, 3, 0.95, 0.95), (5, 4, 0.8, 0.8))  # m, N, accuracy of votes and of the first labeler
KINDS = ("kappa", "difference", "annotator", "share")


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: about G clusters, their sizes, the intra-cluster correlation, and what varies between clusters."""

    G: int
    sizes: str
    rho: float
    varies: str  # "all" or "labels"
    m: int
    N: int
    votes: float
    labels: float

    @property
    def prevalence(self) -> Floats:
        """Return the mean prevalence of the categories."""
        shares = np.array([0.6**place for place in range(self.m)])
        found: Floats = shares / shares.sum()
        return found

    @property
    def accuracies(self) -> tuple[float, float]:
        """Return those of the two labelers."""
        return self.labels, self.labels - 0.1

    def rho_of(self, part: str) -> float:
        """Return the intra-cluster correlation of a part of the model."""
        return self.rho if self.varies == "all" or part == "labels" else 0.0


@dataclass(frozen=True, slots=True)
class Truth:
    """The true values: kappa of the labelers, a typical annotator's, and the share that the first labeler keeps."""

    kappas: tuple[float, float]
    annotator: float
    share: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Coverage in a cell: without clusters and with clusters, of each kind of interval, and mean lengths."""

    cell: Cell
    plain: dict[str, float]
    clustered: dict[str, float]
    length: float


def powers(mean: float, rho: float) -> list[float]:
    """Return the first three moments of a beta distribution with this mean and intra-cluster correlation."""
    spread = rho / (1 - rho)
    found, value = [], 1.0
    for k in range(3):
        value *= (mean + k * spread) / (1 + k * spread)
        found.append(value)
    return found


def truth(cell: Cell) -> Truth:
    """Return the true values of the model, over clusters of a population without end."""
    m, pi, rho = cell.m, cell.prevalence, cell.rho_of("votes")
    right = powers(cell.votes, rho)
    wrong = [moment / (m - 1) ** (k + 1) for k, moment in enumerate(powers(1 - cell.votes, rho))]

    def shares(k: int) -> Floats:
        """Return the probability that k + 1 votes on an item are all for a category."""
        found: Floats = pi * right[k] + (1 - pi) * wrong[k]
        return found

    C, G, T = (shares(k) for k in range(3))
    t = float(G.sum())

    def beyond(D: float, L: Floats) -> float:
        E = float((C**2 * (2 * L - 1)).sum())
        return (D - E) / (1 - E)

    kappas, above = [], []
    for q in cell.accuracies:
        L = pi * q + (1 - pi) * (1 - q) / (m - 1)
        kappas.append(beyond(2 * (q * right[1] + (1 - q) * wrong[1]) - t, L))
        above.append(kappas[-1] - beyond(float((G * (2 * L - 1)).sum()), L))
    annotator = beyond(2 * float(T.sum()) - t, C)
    random = beyond(float((G * (2 * C - 1)).sum()), C)
    return Truth((kappas[0], kappas[1]), annotator, above[0] / (annotator - random))


def clusters(rng: Generator, cell: Cell) -> Integers:
    """Return the cluster of each item."""
    if cell.sizes == "equal":
        sizes = np.full(cell.G, 6)
    elif cell.sizes == "unequal":
        sizes = np.clip(np.rint(rng.lognormal(1.3, 0.9, cell.G)), 1, 40).astype(int)
    else:
        sizes = np.repeat([8, 1], [max(cell.G // 9, 3), 8 * max(cell.G // 9, 3)])
    found: Integers = np.repeat(np.arange(sizes.size), sizes)
    return found


def drawn(rng: Generator, cell: Cell, cluster: Integers) -> tuple[Integers, list[Integers]]:
    """Return (n, N) votes, and (n,) labels of the two labelers."""
    m, G, n = cell.m, int(cluster.max()) + 1, cluster.size

    def accuracy(mean: float, rho: float) -> Floats:
        spread = (1 - rho) / rho if rho else 0.0
        found: Floats = rng.beta(mean * spread, (1 - mean) * spread, G) if rho else np.full(G, mean)
        return found

    rho = cell.rho_of("prevalence")
    common = rng.dirichlet(cell.prevalence * (1 - rho) / rho, G) if rho else np.tile(cell.prevalence, (G, 1))
    category = np.minimum((rng.random(n)[:, None] > common[cluster].cumsum(axis=1)).sum(axis=1), m - 1)

    def answers(chance: Floats, size: int) -> Integers:
        hit = rng.random((n, size)) < chance[cluster][:, None]
        other = (category[:, None] + rng.integers(1, m, (n, size))) % m
        found: Integers = np.where(hit, category[:, None], other)
        return found

    votes = answers(accuracy(cell.votes, cell.rho_of("votes")), cell.N)
    return votes, [answers(accuracy(q, cell.rho_of("labels")), 1)[:, 0] for q in cell.accuracies]


def run(job: tuple[int, Cell, int]) -> Outcome:
    """Return the coverage of a cell."""
    number, cell, sets = job
    rng, true = np.random.default_rng([20, number]), truth(cell)
    targets = true.kappas[0], true.kappas[0] - true.kappas[1], true.kappas[0] - true.annotator, true.share
    hits: dict[bool, list[list[float]]] = {True: [], False: []}
    lengths: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(sets):
        cluster = clusters(rng, cell)
        votes, labels = drawn(rng, cell, cluster)
        for known in (False, True):
            given: dict[str, Any] = {"clusters": cluster} if known else {}
            kappa = dh_kappa(votes, labels[0], **given)
            [row] = compare(votes, {"one": labels[0], "other": labels[1]}, rng=0, **given).differences
            baseline = annotator_baseline(kappa.estimate)
            low, high = kappa.confidence_interval()
            shares = baseline.share_low, baseline.share_high
            limits = (low, high), (row["low"], row["high"]), (baseline.low, baseline.high), shares
            hits[known].append(
                [
                    np.nan if np.isnan(low) else float(low <= target <= high)
                    for target, (low, high) in zip(targets, limits, strict=True)
                ]
            )
            lengths[known].append(high - low)
    plain, clustered = (dict(zip(KINDS, np.nanmean(hits[known], axis=0), strict=True)) for known in (False, True))
    length = float(np.nanmean(lengths[True]) / np.nanmean(lengths[False]))
    return Outcome(cell, plain, clustered, length)


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    numbers = (12, 25, 60, 150) if full else (15, 50)
    cells = product(numbers, SIZES, (0.0, 0.1, 0.3), ("all", "labels") if full else ("all",), SETTINGS)
    return [Cell(G, sizes, rho, varies, *setting) for G, sizes, rho, varies, setting in cells if rho or varies == "all"]


def lines(sets: int, full: bool) -> list[str]:
    """Return the page: a row for each number of clusters and correlation, and for each kind of sizes."""
    found = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])

    def row(*names: str, of: Sequence[Outcome]) -> list[str]:
        covered = [mean_and(min, [one.clustered[kind] for one in of]) for kind in KINDS]
        plain = mean_and(min, [one.plain["kappa"] for one in of])
        length = f"{np.exp(np.mean([np.log(one.length) for one in of])):.2f}"
        return [*names, str(len(of)), plain, covered[0], length, *covered[1:]]

    rows = []
    for G, rho in product(sorted({one.cell.G for one in found}), (0.0, 0.1, 0.3)):
        rows.append(row(str(G), f"{rho:g}", of=[one for one in found if (one.cell.G, one.cell.rho) == (G, rho)]))
    by_size = [row(sizes, of=[one for one in found if one.cell.sizes == sizes]) for sizes in SIZES]
    low = {kind: sum(one.clustered[kind] < TOO_LOW for one in found) for kind in KINDS}
    plain = sum(one.plain["kappa"] < TOO_LOW for one in found)
    heads = ["cells", "independent", "clusters", "length", "difference", "annotator", "share"]
    return [
        INTRODUCTION.format(
            sets=sets,
            error=standard_error(sets),
            cells=len(found),
            alone=", or that of labels alone" if full else "",
        ),
        *table(["clusters", "correlation", *heads], rows),
        "",
        *table(["sizes", *heads], by_size),
        "",
        f"The tables have mean and minimum over cells. Coverage is below 94.5% in {low['kappa']} of {len(found)} "
        f"cells for kappa, and in {plain} without clusters; in {low['difference']} for differences, {low['annotator']} "
        f"for differences from a typical annotator, and {low['share']} for the share kept.",
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-clusters.md", 1000, lines))
