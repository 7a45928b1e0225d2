"""Simulate the intervals of rates, of kappa by category and of Fleiss' kappa, and write docs/coverage-rates.md.

Samples are drawn and summarized with array code of this folder; only the limits come from the package. Samples drawn by
label are passed to the package, which computes rates with weights and strata.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.special import stdtrit

from dhkappa import dh_kappa
from dhkappa.stats.intervals import beta_interval
from dhkappa.stats.mean_intervals import mean_limits, own_basis
from simulation import (
    LEVEL,
    TOO_LOW,
    Floats,
    Generator,
    answers,
    draw,
    main,
    mean_and,
    plain_basis,
    prevalence,
    run_all,
    section,
    standard_error,
    table,
)

ALPHA = 1 - LEVEL
RATES = ("precision", "recall", "f1", "agreement")
INTRODUCTION = """\
# Coverage of rates, categories and Fleiss' kappa

Coverage of 95% confidence intervals in percent, as mean and minimum over cells: the share of simulated samples whose
interval contains the true value; {sets:,} samples per cell, so that the standard error of one cell is about {error:.1f}
percentage points. *t* is the plain t interval, shown for comparison. Samples without an interval, such as those without
a vote for the category, are left out, and so are cells in which these are more than half.

Settings: 2, 4 and 6 categories, skewed or with one category on 93% of the items; accuracy of labels .75 and .92, of
votes .7, .87, or .95 on half of the items and .65 on the others. Categories are the most frequent and the least
frequent one. This page is written by `make validate`.

## Precision and recall

Four votes per item, or 1 to 4.
"""
BY_LABEL = """\
Equal numbers of items are drawn for each suggested label and weighted by the share of the label, with strata; one to
three votes per item, which are right in 87% of cases."""
CATEGORIES = "Kappa by category with 2, 4, or 2 to 6 votes per item. *items*: expected number of items with the label."
FLEISS = "Fleiss' kappa with 2, 4, or 2 to 6 votes per item. *length*: mean length divided by that of the t interval."


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: what is simulated, n items, m categories, votes, prevalence, accuracy of labels and votes."""

    what: str
    n: int
    m: int
    votes: tuple[int, int]
    common: str
    right: float
    accuracy: float | None  # None: mixed


@dataclass(frozen=True, slots=True)
class Outcome:
    """Coverage of one quantity in a cell."""

    cell: Cell
    name: str
    size: float  # expected number of items with the label
    coverage: float
    t: float
    length: float
    defined: float


@dataclass(frozen=True, slots=True)
class Model:
    """Prevalence of S states of an item, and the probability of each vote and label in each state, (S, m)."""

    truth: Floats
    votes: Floats
    labels: Floats

    @property
    def C(self) -> Floats:
        """Shares of votes."""
        return self.truth @ self.votes

    @property
    def L(self) -> Floats:
        """Shares of labels."""
        return self.truth @ self.labels

    @property
    def T(self) -> Floats:
        """Shares of items and votes that are both a category."""
        return self.truth @ (self.votes * self.labels)

    def rate(self, name: str, j: int) -> float:
        """Return the true value of a rate."""
        T, L, C = self.T[j], self.L[j], self.C[j]
        return float({"precision": T / L, "recall": T / C, "f1": 2 * T / (L + C), "agreement": self.T.sum()}[name])

    def kappa(self, j: int) -> float:
        """Return the true kappa of a category."""
        d = 2 * self.votes[:, j] ** 2 - (self.votes**2).sum(1)
        D = (self.truth * self.labels[:, j] * d).sum() / self.L[j]
        E = 2 * self.C[j] ** 2 - (self.C**2).sum()
        return float((D - E) / (1 - E))

    def fleiss(self) -> float:
        """Return the true Fleiss' kappa."""
        chance = (self.C**2).sum()
        return float(((self.truth @ (self.votes**2).sum(1)) - chance) / (1 - chance))


def model(cell: Cell) -> Model:
    """Return the model of a cell."""
    accuracies = [0.95, 0.65] if cell.accuracy is None else [cell.accuracy]
    truth = np.tile(prevalence(cell.common, cell.m, 0.07), len(accuracies)) / len(accuracies)
    votes = np.concatenate([answers(accuracy, cell.m) for accuracy in accuracies])
    return Model(truth, votes, np.concatenate([answers(cell.right, cell.m)] * len(accuracies)))


def sample(cell: Cell, chances: Model, sets: int, rng: Generator) -> tuple[Floats, Floats]:
    """Return counts of votes and labels, (sets, n, m)."""
    state = rng.choice(len(chances.truth), (sets, cell.n), p=chances.truth)
    N = rng.integers(cell.votes[0], cell.votes[1] + 1, state.shape)[..., None]
    votes = np.zeros((*state.shape, cell.m))
    for number in range(cell.votes[1]):
        votes += np.eye(cell.m)[draw(rng, chances.votes, state)] * (number < N)
    return votes, np.eye(cell.m)[draw(rng, chances.labels, state)]


def outcome(cell: Cell, name: str, size: float, target: float, limits: Floats, t: Floats) -> Outcome | None:
    """Return the coverage of limits and t limits, (sets, 2)."""
    ok = np.isfinite(limits).all(1)
    if ok.mean() < 0.5:
        return None

    def covered(found: Floats) -> float:
        return float(((found[ok, 0] <= target) & (target <= found[ok, 1])).mean())

    length = float(np.diff(limits[ok]).mean() / np.diff(t[ok]).mean())
    return Outcome(cell, name, size, covered(limits), covered(t), length, float(ok.mean()))


@np.errstate(divide="ignore", invalid="ignore")  # samples without the category are left out
def rates(cell: Cell, sets: int, rng: Generator) -> list[Outcome | None]:
    """Simulate precision, recall, F1 and agreement."""
    chances, found = model(cell), []
    votes, q = sample(cell, chances, sets, rng)
    c = votes / votes.sum(-1, keepdims=True)
    for name, j in [*product(RATES[:3], (0, cell.m - 1)), (RATES[3], 0)]:
        cj, qj = c[..., j], q[..., j]
        if name == "precision":
            a, x = qj, cj
        elif name == "recall":
            a, x = cj, qj
        elif name == "f1":
            a, x = (qj + cj) / 2, np.nan_to_num(2 * qj * cj / (qj + cj))
        else:
            a, x = np.ones(cj.shape), (c * q).sum(-1)
        p, n = a / a.sum(1, keepdims=True), (a > 0).sum(1)
        mean = (p * x).sum(1)
        V = (p**2 * (x - mean[:, None]) ** 2).sum(1)
        low, high = mean_limits(own_basis(mean, n, n**2 * V, (p**3).sum(1) / (p**2).sum(1)), ALPHA)
        half = stdtrit(np.maximum(n - 1, 1), 1 - ALPHA / 2) * np.sqrt(n / (n - 1) * V)
        t, size = np.stack([mean - half, mean + half], 1), cell.n * chances.L[j]
        found.append(outcome(cell, name, size, chances.rate(name, j), np.stack([low, high], 1), t))
    return found


@np.errstate(divide="ignore", invalid="ignore")
def categories(cell: Cell, sets: int, rng: Generator) -> list[Outcome | None]:
    """Simulate kappa by category."""
    chances, found = model(cell), []
    votes, q = sample(cell, chances, sets, rng)
    N = votes.sum(-1, keepdims=True)
    c, g, n, m = votes / N, votes * (votes - 1) / (N * (N - 1)), cell.n, cell.m
    C, L, d = c.mean(1), q.mean(1), ((2 * q - 1) * g).sum(-1)
    for j in (0, m - 1):
        own, Cj, Lj = q[..., j], C[:, j], L[:, j]
        D, E = (own * d).sum(1) / own.sum(1), 2 * Cj**2 - (C**2).sum(1)
        kappa = (D - E) / (1 - E)
        pull = ((c - C[:, None]) * C[:, None]).sum(-1)
        eps = 4 * Cj[:, None] * (c[..., j] - Cj[:, None]) - 2 * pull
        psi = (own * (d - D[:, None]) - (Lj * (1 - kappa))[:, None] * eps) / (1 - E)[:, None]
        S, nj = (psi**2).sum(1), n * Lj
        eye = np.eye(m)
        slope = 4 * Cj[:, None] * (eye[j] - Cj[:, None]) - 2 * (C - (C**2).sum(1, keepdims=True))  # by v
        gap = (np.arange(m) == j)[:, None] * (2 * eye - 1 - D[:, None, None])  # by label, v
        phi = (gap - (Lj * (1 - kappa))[:, None, None] * slope[:, None]) / (1 - E)[:, None, None]
        used = C + L > 0
        both = used[:, :, None] & used[:, None]
        ends = np.where(both, phi, np.inf).min((1, 2)), np.where(both, phi, -np.inf).max((1, 2))
        limits = np.full((sets, 2), np.nan)
        for k in np.flatnonzero((nj > 1.5) & (E < 1) & ((S > 1e-18) | (kappa == 1))).tolist():
            bottom = 1 - 2 / (1 - E[k])
            plain = plain_basis(kappa[k], E[k], nj[k], S[k], ends[0][k], ends[1][k])
            known = replace(plain, bottom=bottom)
            limits[k] = beta_interval(known, ALPHA)
        half = stdtrit(np.maximum(nj - 1, 1), 1 - ALPHA / 2) * np.sqrt(S / (nj * (nj - 1)))
        t = np.stack([kappa - half, kappa + half], 1)
        found.append(outcome(cell, "kappa", n * chances.L[j], chances.kappa(j), limits, t))
    return found


@np.errstate(divide="ignore", invalid="ignore")
def fleiss(cell: Cell, sets: int, rng: Generator) -> list[Outcome | None]:
    """Simulate Fleiss' kappa."""
    chances, (least, n) = model(cell), (cell.votes[0], cell.n)
    votes, _ = sample(cell, chances, sets, rng)
    N = votes.sum(-1, keepdims=True)
    c, agree = votes / N, (votes * (votes - 1) / (N * (N - 1))).sum(-1)
    C = c.mean(1)
    E, P = (C**2).sum(1), agree.mean(1)
    kappa = (P - E) / (1 - E)
    lost = (1 - kappa)[:, None]
    phi = (agree - P[:, None] - 2 * lost * ((c * C[:, None]).sum(-1) - E[:, None])) / (1 - E)[:, None]
    S = (phi**2).sum(1)
    fewest = N.min((1, 2))  # the least number of votes in each sample
    worst, off = np.zeros((sets, cell.m)), np.where(C > 0, 0, np.inf)
    for _ in range(least):
        best = (worst - lost * (least - 1) * C + off).argmin(1)
        worst[np.arange(sets), best] += 1
    t_worst = (worst * (worst - 1)).sum(1) / (least * (least - 1))
    low_end = (t_worst - P - 2 * (1 - kappa) * ((worst / least * C).sum(1) - E)) / (1 - E)
    high_end = (1 - P - 2 * (1 - kappa) * (np.where(C > 0, C, np.inf).min(1) - E)) / (1 - E)
    limits, K = np.full((sets, 2), np.nan), (C > 0).sum(1)
    for k in np.flatnonzero((fewest == least) & (E < 1) & ((S > 1e-18) | (kappa == 1))).tolist():
        each, more = divmod(least, int(K[k]))
        alike = (more * (each + 1) * each + (K[k] - more) * each * (each - 1)) / (least * (least - 1))
        ends = low_end[k], high_end[k]
        known = replace(plain_basis(kappa[k], E[k], n, S[k], *ends), bottom=-1 / (least - 1), span=1 - alike)
        limits[k] = beta_interval(known, ALPHA)
    half = stdtrit(n - 1, 1 - ALPHA / 2) * np.sqrt(S / (n * (n - 1)))
    t = np.stack([kappa - half, kappa + half], 1)
    return [outcome(cell, "fleiss", n, chances.fleiss(), limits, t)]


def by_label(cell: Cell, sets: int, rng: Generator) -> list[Outcome | None]:
    """Simulate precision, recall and agreement of samples with n items of each label, weighted."""
    chances = model(cell)
    m, C, L, T = cell.m, chances.C, chances.L, chances.T
    joint = chances.truth[:, None] * chances.labels / L  # (S, m): the states of items with each label
    names = [*(f"{name} {j}" for name in RATES[:2] for j in range(m)), "agreement"]
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    for _ in range(sets):
        state = np.concatenate([rng.choice(len(joint), cell.n, p=joint[:, j]) for j in range(m)])
        labels = np.repeat(np.arange(m), cell.n)
        votes = np.stack([draw(rng, chances.votes, state) for _ in range(3)], 1).astype(object)
        N = rng.integers(1, 4, len(state))
        votes[np.arange(3) >= N[:, None]] = None
        chosen: dict[str, Any] = {
            "sample_weight": L[labels],
            "strata": labels.astype(str).tolist(),
            "categories": list(range(m)),
        }
        seen = dh_kappa(votes.tolist(), labels.tolist(), **chosen).rates()
        for row, name in product(seen.table, RATES[:2]):
            found[f"{name} {row['category']}"].append([row[f"{name}_low"], row[f"{name}_high"]])
        found["agreement"].append([seen.agreement.low, seen.agreement.high])
    true = {f"precision {j}": T[j] / L[j] for j in range(m)} | {f"recall {j}": T[j] / C[j] for j in range(m)}
    true["agreement"] = T.sum()
    limits = {name: np.array(rows) for name, rows in found.items()}
    return [outcome(cell, name.split()[0], cell.n, float(true[name]), own, own) for name, own in limits.items()]


KINDS: dict[str, Callable[[Cell, int, Generator], list[Outcome | None]]] = {
    "rates": rates,
    "categories": categories,
    "fleiss": fleiss,
    "by label": by_label,
}


def run(job: tuple[int, Cell, int]) -> list[Outcome]:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    found = KINDS[cell.what](
        cell, max(sets // 4, 1) if cell.what == "by label" else sets, np.random.default_rng([91, number])
    )
    return [one for one in found if one is not None]


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    sizes, shapes = (25, 80, 250) if full else (25,), ((2, "rare"), (4, "skewed"), (6, "skewed"))
    accuracies = product((0.75, 0.92), (0.7, 0.87, None))
    votes = {"rates": ((4, 4), (1, 4)), "categories": ((2, 2), (4, 4), (2, 6)), "fleiss": ((2, 2), (4, 4), (2, 6))}
    cells = [
        Cell(what, n, m, number, common, right, accuracy)
        for (right, accuracy), what, n, (m, common) in product([*accuracies], votes, sizes, shapes)
        for number in votes[what]
        if what != "fleiss" or right == 0.75
    ]
    return cells + [
        Cell("by label", n, m, (1, 3), common, right, 0.87)
        for n, (m, common), right in product((20, 60) if full else (20,), shapes[:2], (0.75, 0.92))
    ]


def lines(sets: int, full: bool) -> list[str]:
    """Return the page."""
    every = [
        one for own in run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))]) for one in own
    ]

    def of(what: str) -> list[Outcome]:
        return [one for one in every if one.cell.what == what]

    def row(name: str, number: object, found: list[Outcome]) -> list[str]:
        return [name, str(number), str(len(found)), *(mean_and(min, values) for values in columns(found))]

    def columns(found: list[Outcome]) -> list[list[float]]:
        return [[one.coverage for one in found], [one.t for one in found]]

    def low(found: list[Outcome]) -> str:
        few, plain = (sum(value < TOO_LOW for value in values) for values in columns(found))
        worst = min(found, key=lambda one: one.coverage)
        return (
            f"Coverage is below 94.5% in {few} of {len(found)} cells, and in {plain} for t. Lowest: "
            f"{100 * worst.coverage:.1f}%."
        )

    sizes = sorted({one.cell.n for one in of("rates")})
    rows = [
        row(name, n, [o for o in of("rates") if (o.name, o.cell.n) == (name, n)]) for name, n in product(RATES, sizes)
    ]
    drawn = of("by label")
    weighted = [
        [name, str(n), str(len(here)), mean_and(min, [one.coverage for one in here])]
        for name, n in product(("precision", "recall", "agreement"), sorted({one.cell.n for one in drawn}))
        if (here := [one for one in drawn if (one.name, one.cell.n) == (name, n)])
    ]
    edges = [(0, 10), (10, 20), (20, 50), (50, 100), (100, 1000)]
    own = [
        row("kappa", f"{a} to {b}", here)[1:]
        for a, b in edges
        if (here := [one for one in of("categories") if a <= one.size < b])
    ]
    agreed = [
        [*row("Fleiss", n, here)[1:], f"{np.mean([one.length for one in here]):.2f}"]
        for n in sizes
        if (here := [one for one in of("fleiss") if one.cell.n == n])
    ]
    few = sum(one.coverage < TOO_LOW for one in drawn)
    return [
        INTRODUCTION.format(sets=sets, error=standard_error(sets)),
        *table(["rate", "n", "cells", "coverage: mean / min", "t: mean / min"], rows),
        "",
        low(of("rates")),
        "",
        *section("Samples drawn by label", BY_LABEL, ["rate", "n of each label", "cells", "coverage"], weighted),
        "",
        f"{max(sets // 4, 1):,} samples per cell. Coverage is below 94.5% in {few} of {len(drawn)} cells. Lowest: "
        f"{100 * min(one.coverage for one in drawn):.1f}%.",
        "",
        *section("Kappa by category", CATEGORIES, ["items", "cells", "coverage", "t"], own),
        "",
        low(of("categories")),
        "",
        *section("Fleiss' kappa", FLEISS, ["n", "cells", "coverage", "t", "length"], agreed),
        "",
        low(of("fleiss")),
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-rates.md", 1000, lines))
