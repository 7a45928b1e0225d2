"""Simulate samples that grow and are looked at again and again, and write docs/coverage-any-time.md.

Samples are counts of patterns, to which each look adds; they are summarized with array code of this folder. Only limits
and levels come from the package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np

import interval_coverage
from dhkappa.stats.any_time import any_time_level
from dhkappa.stats.intervals import Basis, KappaDifference, beta_limits
from simulation import (
    LEVEL,
    SOURCES,
    Floats,
    Integers,
    answers,
    main,
    mean_and,
    run_all,
    section,
    standard_error,
    table,
    true_kappa,
)

LOOKS = {
    "8 looks": (30, 45, 80, 150, 300, 700, 1_500, 4_000),
    "50 looks": tuple(range(30, 1_030, 20)),
}
BOUND, GATE_LOOKS = 0.6, tuple(np.unique(np.geomspace(30, 4_000, 30).astype(int)).tolist())
LEVELS = (0.9, LEVEL, 0.99)
INTRODUCTION = """\
# Coverage at every look

Samples grow, and the interval is computed at each look. The tables show the percentage of simulated studies in which
the true value is in the interval at *all* looks: with *any time*, the interval that holds at every look, and with the
fixed 95% interval, which is for a single look. {sets:,} studies per cell, so that the standard error of one cell is
about {error:.1f} percentage points; mean / minimum over cells.

*8 looks*: at 30, 45, 80, 150, 300, 700, 1,500 and 4,000 items. *50 looks*: at every 20 items from 30 to 1,010.
Settings of kappa: 2, 3 and 6 categories, equally frequent or skewed, 3 votes per item, true kappa .15 to .95, errors in
votes, in labels or in both. Settings of differences: 2 and 3 categories, and a second labeler that is as good or worse,
and that copies 0 or 70% of the labels of the first. Looks without an interval count as correct. This page is written by
`make validate`.
"""
GATE = """\
A gate at {bound} is tested at {looks} looks from 30 to 4,000 items, and stops when it passes or fails; 3 categories,
3 votes per item. *Decided* and *wrong* are percentages of studies: where the true kappa is the bound, every decision
counts as wrong. *Median* is the number of items at the decision."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: looks, categories, prevalence, true kappa, and where errors are; with ``copied``, two labelers."""

    looks: str
    m: int
    prevalence: str
    kappa: float
    source: str
    second: float = 0.0  # accuracy of the second labeler, minus that of the first
    copied: float = -1.0  # share of labels that it copies; negative if there is one labeler


@dataclass(frozen=True, slots=True)
class Model:
    """Kinds of items: probability (K,), shares of votes (K, m), labels of each labeler (K,), and the true value."""

    p: Floats
    c: Floats
    labels: list[Integers]
    truth: float


@dataclass(frozen=True, slots=True)
class Estimates:
    """Kappa of many samples, what its interval needs, and influence by kind of item (sets, K)."""

    kappa: Floats
    E: Floats
    squares: Floats
    least: Floats
    greatest: Floats
    phi: Floats


@dataclass(frozen=True, slots=True)
class Outcome:
    """Share of studies in which the truth is inside at all looks, fixed and by level of the intervals at every look."""

    cell: Cell
    fixed: float
    any_time: tuple[float, ...]


def votes_of(m: int, N: int, chances: Floats) -> tuple[Floats, Floats]:
    """Return all counts of N votes, (V, m), and the probability of each in each true category, (m, V)."""
    counts = np.array([np.bincount(one, minlength=m) for one in combinations_with_replacement(range(m), N)])
    ways = np.array([factorial(N) / prod(map(factorial, row)) for row in counts.tolist()])
    return counts, ways * np.prod(chances[:, None, :] ** counts[None], axis=2)


def model(cell: Cell) -> Model | None:
    """Return the model of a cell; None if no accuracy has its kappa."""
    found = interval_coverage.model(interval_coverage.Cell(0, 3, cell.m, cell.prevalence, cell.kappa, cell.source))
    if found is None:
        return None
    shares, vote_chances, label_chances = found
    counts, of_votes = votes_of(cell.m, 3, vote_chances)
    if cell.copied < 0:
        joint = np.einsum("t,tv,ta->va", shares, of_votes, label_chances)
        truth = true_kappa(shares, vote_chances, label_chances)
        places = np.indices(joint.shape).reshape(2, -1)
        return Model(joint.ravel(), counts[places[0]] / 3, [places[1]], truth)
    other = answers(label_chances[0, 0] + cell.second, cell.m)
    both = (1 - cell.copied) * label_chances[:, :, None] * other[:, None, :]
    both += cell.copied * label_chances[:, :, None] * np.eye(cell.m)
    joint = np.einsum("t,tv,tab->vab", shares, of_votes, both)
    kappas = [true_kappa(shares, vote_chances, both.sum(axis=axis)) for axis in (2, 1)]
    places = np.indices(joint.shape).reshape(3, -1)
    return Model(joint.ravel(), counts[places[0]] / 3, [places[1], places[2]], kappas[0] - kappas[1])


@np.errstate(all="ignore")  # samples without variation have no interval
def summarize(counts: Floats, c: Floats, label: Integers) -> Estimates:
    """Return kappa of samples given as numbers of items of each kind, (sets, K)."""
    m, n = c.shape[1], counts.sum(axis=1, keepdims=True)
    q, g = np.eye(m)[label], c * (3 * c - 1) / 2  # of three votes
    d = (2 * q * g - g).sum(axis=1)
    C, L, D = counts @ c / n, counts @ q / n, counts @ d / n[:, 0]
    C_E = (C**2 * L).sum(axis=1)
    E = 2 * C_E - (C**2).sum(axis=1)
    kappa = (D - E) / (1 - E)
    pull = C * (2 * L - 1)
    eps = 2 * (pull @ c.T + C**2 @ q.T - (E + C_E)[:, None])
    phi = (d - D[:, None] - (1 - kappa)[:, None] * eps) / (1 - E)[:, None]
    rest = pull[:, None, :] + (C**2)[:, :, None] - (E + C_E)[:, None, None]
    ends = (2 * np.eye(m) - 1 - D[:, None, None] - 2 * (1 - kappa)[:, None, None] * rest) / (1 - E)[:, None, None]
    occurs = C + L > 0
    both = occurs[:, None, :] & occurs[:, :, None]
    least, greatest = np.where(both, ends, np.inf).min((1, 2)), np.where(both, ends, -np.inf).max((1, 2))
    squares = (counts * phi**2).sum(axis=1)
    return Estimates(np.where(kappa > 1 - 1e-12, 1.0, kappa), E, squares, least, greatest, phi)


@np.errstate(all="ignore")
def limits(counts: Floats, known: Model, n: int, levels: list[float]) -> list[tuple[Floats, Floats]]:
    """Return the limits of kappa, or of the difference between two kappas, at some levels; NaN without an interval."""
    one, *others = (summarize(counts, known.c, label) for label in known.labels)
    if not others:
        usable = (1 - one.E > 1e-12) & ((one.squares > 1e-20 * n) | (one.kappa == 1))
        squares = np.where(one.kappa == 1, 0.0, one.squares)
        share = np.full(len(counts), 1 / n)
        basis = Basis(one.kappa, one.E, n, squares, one.least, one.greatest, share, share, share, n - 1)  # type: ignore[arg-type]
        return [
            tuple(np.where(usable, limit, np.nan) for limit in beta_limits(basis, 1 - level))  # type: ignore[misc]
            for level in levels
        ]
    z = one.phi - others[0].phi
    squares, cubes = (counts * z**2).sum(axis=1), (counts * z**3).sum(axis=1)
    reach = 1 / (1 - one.E) + 1 / (1 - others[0].E)
    squares = np.where(squares < 1e-20 * n, 0, squares)
    skew = np.where(squares > 0, cubes / squares**1.5, 0)
    se = np.sqrt(squares / (n * (n - 1)))
    gap = KappaDifference(one.kappa - others[0].kappa, se, skew, n, n - 1, -reach, reach)
    return [gap.limits(level) for level in levels]


def grown(known: Model, looks: tuple[int, ...], sets: int, rng: np.random.Generator) -> Iterator[tuple[int, Floats]]:
    """Yield the number of items and the counts of each kind, (sets, K), at each look."""
    counts, before = np.zeros((sets, known.p.size)), 0
    p = known.p / known.p.sum()
    for n in looks:
        counts += rng.multinomial(n - before, p, sets)
        before = n
        yield n, counts


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    known = model(cell)
    if known is None:
        return None
    inside = np.ones((1 + len(LEVELS), sets), bool)
    for n, counts in grown(known, LOOKS[cell.looks], sets, np.random.default_rng([91, number])):
        found = limits(counts, known, n, [LEVEL, *(any_time_level(n, level) for level in LEVELS)])
        for place, (low, high) in enumerate(found):
            inside[place] &= ~((low > known.truth) | (high < known.truth))
    fixed, *held = inside.mean(axis=1).tolist()
    return Outcome(cell, fixed, tuple(held))


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    cells = [
        Cell(looks, m, common, kappa, source)
        for looks, m, common, kappa, source in product(
            LOOKS, (2, 3, 6), ("uniform", "skewed"), (0.15, 0.5, 0.75, 0.95) if full else (0.5,), SOURCES
        )
        if looks == "8 looks" or (m == 3 and source == SOURCES[0])
    ]
    return cells + [
        Cell(looks, m, common, kappa, SOURCES[0], second, copied)
        for looks, m, common, kappa, second, copied in product(
            LOOKS, (2, 3), ("uniform", "skewed"), (0.3, 0.7) if full else (0.7,), (0.0, -0.1), (0.0, 0.7)
        )
        if looks == "8 looks" or m == 3
    ]


def gate(job: tuple[float, int]) -> list[list[str]]:
    """Return rows of decisions for a true kappa: with the fixed interval, and with that which holds at every look."""
    kappa, sets = job
    known = model(Cell("", 3, "uniform", kappa, SOURCES[0]))
    assert known is not None
    decided = np.zeros((2, sets), int)  # 1 passed, -1 failed
    items = np.zeros((2, sets))
    for n, counts in grown(known, GATE_LOOKS, sets, np.random.default_rng([92, round(100 * kappa)])):
        for row, (low, high) in enumerate(limits(counts, known, n, [LEVEL, any_time_level(n, LEVEL)])):
            now = np.where(low >= BOUND, 1, np.where(high < BOUND, -1, 0))
            new = (decided[row] == 0) & (now != 0)
            decided[row, new], items[row, new] = now[new], n
    rows = []
    for row, name in enumerate(("fixed 95%", "any time")):
        done = decided[row] != 0
        wrong = done if kappa == BOUND else decided[row] == (1 if kappa < BOUND else -1)
        median = f"{np.median(items[row, done]):,.0f}" if done.mean() > 0.5 else ""
        rows.append([f"{kappa:g}", name, f"{100 * done.mean():.1f}", f"{100 * wrong.mean():.1f}", median])
    return rows


def lines(sets: int, full: bool) -> list[str]:
    """Return the page."""
    found = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])
    rows, held = [], []
    for what, looks in product(("kappa", "difference"), LOOKS):
        here = [one for one in found if one.cell.looks == looks and (one.cell.copied < 0) == (what == "kappa")]
        by_level = [[one.any_time[place] for one in here] for place in range(len(LEVELS))]
        shown = [mean_and(min, shares) for shares in by_level]
        rows.append([what, looks, str(len(here)), mean_and(min, [one.fixed for one in here]), *shown])
        held += by_level[1]
    errors = [100 * (1 - float(np.mean([one.fixed for one in found if one.cell.looks == looks]))) for looks in LOOKS]
    heads = ["value", "looks", "cells", "fixed 95%", *(f"any time {level:.0%}" for level in LEVELS)]
    decisions = [row for rows in run_all(gate, [(k, sets) for k in (0.5, 0.6, 0.65, 0.7, 0.8)]) for row in rows]
    text = GATE.format(bound=BOUND, looks=len(GATE_LOOKS)).replace("\n", " ")
    low = sum(share < 0.945 for share in held)
    return [
        INTRODUCTION.format(sets=sets, error=standard_error(sets)),
        *table(heads, rows),
        "",
        f"Any time, 95%: coverage at all looks is below 94.5% in {low} of {len(held)} cells. Lowest: "
        f"{100 * min(held):.1f}%. Fixed: {errors[0]:.1f}% of the studies with 8 looks err, and {errors[1]:.1f}% of "
        "those with 50 looks.",
        "",
        *section("Gate", text, ["true kappa", "interval", "decided", "wrong", "median"], decisions),
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-any-time.md", 2000, lines))
