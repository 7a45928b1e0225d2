"""Simulate the intervals and decisions of the annotator baseline, and write docs/coverage-baseline.md.

Samples are drawn and summarized with array code of this folder; only the limits come from the package.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from itertools import product

import numpy as np

from annotator_coverage import Gaps, gaps
from dhkappa.stats.annotator_baseline import KEEP
from dhkappa.stats.votes_baseline import MIN_ITEMS
from simulation import (
    TOO_LOW,
    Floats,
    Generator,
    answers,
    batches,
    draw,
    main,
    mean_and,
    prevalence,
    run_all,
    section,
    standard_error,
    table,
    true_kappa,
)

MARGIN = 0.05
KINDS = ("equal", "0.1 above", "0.05 below", "keeps 0.8")
INTRODUCTION = """\
# Coverage of the annotator baseline

Coverage of the 95% confidence intervals of the annotator baseline, in percent: the share of simulated samples whose
interval contains the true value; {sets:,} samples per cell, so that the standard error of one cell is about {error:.1f}
percentage points. *difference*: the labeler's kappa minus that of a typical annotator; *t* is the plain t interval.
*share*: the share kept of what annotators are above random labels, if it is defined; *undefined*: the percentage of
samples in which it is not.

*equal*: the labeler is one more annotator; *0.1 above* and *0.05 below*: its true kappa differs by this much; *keeps
0.8*: its true share kept is 0.8. The last columns are percentages of samples in which a decision passes, as mean and
maximum over cells: by `margin={margin}` and by `keep={keep}`. They are the power, except that passing by the margin is
an error in the rows *0.05 below*, and passing by the share in the rows *keeps 0.8*; both should be at most 2.5%.

Settings: 2, 4 and 6 categories; 3, 6 and 3 to 7 votes per item, and 2 votes with two categories; equally frequent
categories, or one on 85% of the items (two categories) or skewed (more); accuracy of votes .7, .88, or .95 on half of
the items and .6 on the others. Samples in which no item changes the difference are left out. This page is written by
`make validate`.
"""
TWO_VOTES = """\
With two votes per item and more than two categories there are only bounds of the baseline. Coverage is the share of
samples whose interval contains the true difference; *decided*: samples whose interval excludes 0; *wrong*: those in
which it is on the wrong side of 0, or the true difference is 0. Both are means over cells with 3 and 6 categories and
accuracy .7 and .88."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: n items, fewest and most votes, m categories, accuracy (None: mixed), prevalence, labeler."""

    n: int
    votes: tuple[int, int]
    m: int
    accuracy: float | None
    common: str
    kind: str


@dataclass(frozen=True, slots=True)
class Model:
    """Prevalence of S states of an item, and the probability of each vote and label in each state, (S, m)."""

    truth: Floats
    votes: Floats
    labels: Floats

    def value(self, of_votes: bool) -> tuple[float, float]:
        """Return kappa of the labeler, or of annotators, and that of the same labels in random order."""
        labels = self.votes if of_votes else self.labels
        C, L, G = self.truth @ self.votes, self.truth @ labels, self.truth @ self.votes**2
        E = float((C**2 * (2 * L - 1)).sum())
        return true_kappa(self.truth, self.votes, labels), (float((G * (2 * L - 1)).sum()) - E) / (1 - E)

    @property
    def difference(self) -> float:
        """True difference between the labeler and annotators."""
        return self.value(of_votes=False)[0] - self.value(of_votes=True)[0]

    @property
    def share(self) -> float:
        """True share kept."""
        (kappa, random), (level, level_random) = self.value(of_votes=False), self.value(of_votes=True)
        return (kappa - random) / (level - level_random)


@dataclass(frozen=True, slots=True)
class Side:
    """The labeler or annotators in many samples: kappa, E, the distance from random labels, and influence of items."""

    kappa: Floats
    E: Floats
    phi: Floats
    above: Floats
    phi_above: Floats


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a cell, as shares of samples."""

    cell: Cell
    difference: float
    t: float
    share: float
    undefined: float
    by_margin: float
    by_keep: float
    decided: float = 0.0
    wrong: float = 0.0


def model(cell: Cell) -> Model | None:
    """Return the model of a cell; None if no accuracy of the labeler gives the difference."""
    truth, m = prevalence(cell.common, cell.m, 0.15), cell.m
    accuracies = [0.95, 0.6] if cell.accuracy is None else [cell.accuracy]
    truth = np.tile(truth, len(accuracies)) / len(accuracies)
    votes = np.concatenate([answers(accuracy, m) for accuracy in accuracies])

    def labeled(accuracy: float) -> Model:
        return Model(truth, votes, np.concatenate([answers(accuracy, m)] * len(accuracies)))

    def off(found: Model) -> float:
        if cell.kind == "keeps 0.8":
            return found.share - KEEP
        return found.difference - float(cell.kind.split()[0]) * (-1 if cell.kind.endswith("below") else 1)

    if cell.kind == "equal":
        return Model(truth, votes, votes)
    low, high = 1 / m, 1.0
    if off(labeled(low)) > 0 or off(labeled(high)) < 0:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if off(labeled(middle)) < 0 else (low, middle)
    return labeled(high)


def judge(c: Floats, g: Floats, q: Floats, d: Floats) -> Side:
    """Return a side from shares of votes and pairs and the labels of each item, (sets, n, m), and from d_i."""
    C, L, G, D = c.mean(1), q.mean(1), g.mean(1), d.mean(1)
    lean, C_E = 2 * L - 1, (C**2 * L).sum(1)
    E, random = (C**2 * lean).sum(1), (G * lean).sum(1)
    kappa, above = (D - E) / (1 - E), (D - random) / (1 - E)
    eps = 2 * ((c * (C * lean)[:, None]).sum(-1) + (q * (C**2)[:, None]).sum(-1) - (E + C_E)[:, None])
    chi = ((g - G[:, None]) * lean[:, None]).sum(-1) + 2 * (G[:, None] * (q - L[:, None])).sum(-1)
    move, chance = d - D[:, None], (1 - E)[:, None]
    phi, phi_above = (move - (1 - kappa)[:, None] * eps) / chance, (move - chi + above[:, None] * eps) / chance
    return Side(kappa, E, phi, above, phi_above)


@dataclass(frozen=True, slots=True)
class Compared:
    """The labeler and annotators in many samples."""

    difference: Gaps
    # w(rho), the labeler above random labels minus rho times annotators above random labels, for some rho: the share
    # kept has limits on both sides of rho if w(rho) has limits on both sides of 0
    shares: list[Gaps]
    above_random: Floats  # lower limit of annotators above random labels; the share kept is undefined if it is not > 0


def compare(cell: Cell, chances: Model, sets: int, rng: Generator) -> Compared:
    """Draw samples, and compare them with the true share kept and with that of a decision."""
    state = rng.choice(len(chances.truth), (sets, cell.n), p=chances.truth)
    N = rng.integers(cell.votes[0], cell.votes[1] + 1, state.shape)[..., None]
    votes = np.zeros((*state.shape, cell.m))
    for number in range(cell.votes[1]):
        votes += np.eye(cell.m)[draw(rng, chances.votes, state)] * (number < N)
    q = np.eye(cell.m)[draw(rng, chances.labels, state)]
    return summarize(votes, q, cell.votes[0], [chances.share, KEEP])


@np.errstate(divide="ignore", invalid="ignore")  # samples in which every vote is the same category are left out
def summarize(votes: Floats, q: Floats, fewest: int, shares: list[float]) -> Compared:
    """Compare labels with annotators, from counts of votes and labels, (sets, n, m)."""
    N, m, n = votes.sum(-1, keepdims=True), votes.shape[-1], votes.shape[1]
    c, g = votes / N, votes * (votes - 1) / (N * (N - 1))
    t = g.sum(-1)
    labeler = judge(c, g, q, ((2 * q - 1) * g).sum(-1))
    if fewest > 2:
        bounds = [2 * (votes * (votes - 1) * (votes - 2) / (N * (N - 1) * (N - 2))).sum(-1) - t]
    else:
        voted = (votes.sum(1) > 0).sum(-1, keepdims=True)
        bounds = [2 * t - 1, 2 * t - 1 + (1 - t) * (voted - 2) / voted][: 1 if m == 2 else 2]
    lower, *upper = (judge(c, g, c, d) for d in bounds)
    one, other = 1 / (1 - labeler.E), 1 / (1 - lower.E)
    best = one + other if fewest == 2 else {3: 2 / 3, 6: 2 / 5}[fewest] * other

    def gap(value: Floats, z: Floats, worst: Floats, best: Floats) -> Gaps:
        return gaps(value, z, np.ones(z.shape), np.full(len(z), float(n)), worst, best)

    found = [gap(labeler.kappa - by.kappa, labeler.phi - by.phi, -one - other, best) for by in (lower, *upper)]
    x, y = labeler.phi_above, lower.phi_above
    kept = [gap(labeler.above - rho * lower.above, x - rho * y, -one - rho * other, best) for rho in shares]
    return Compared(
        Gaps(found[0].difference, found[0].se, found[-1].low, found[0].high, found[0].half),
        kept,
        np.full(len(t), np.nan) if upper else gap(lower.above, y, -other, other).low,
    )


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    chances = model(cell)
    if chances is None:
        return None
    rng = np.random.default_rng([77, number])
    drawn = [compare(cell, chances, size, rng) for size in batches(sets, 300_000 // (cell.n * cell.m))]
    difference = joined([seen.difference for seen in drawn])
    at_share, at_keep = (joined([seen.shares[place] for seen in drawn]) for place in (0, 1))
    defined = np.concatenate([seen.above_random for seen in drawn]) > 0
    ok, target = np.isfinite(difference.low), chances.difference
    low, high, kept = difference.low[ok], difference.high[ok], (at_share.low <= 0) & (at_share.high >= 0)
    decided = (low > 0) | (high < 0)
    wrong = decided if cell.kind == "equal" else (low > 0) if target < 0 else (high < 0)
    return Outcome(
        cell,
        difference=float(((low <= target) & (target <= high)).mean()),
        t=float((abs(difference.difference - target) <= difference.half)[ok].mean()),
        share=float(kept[defined].mean()) if defined.any() else np.nan,
        undefined=1 - float(defined.mean()),
        by_margin=float((low > -MARGIN).mean()),
        by_keep=float((defined & (at_keep.low > 0)).mean()),
        decided=float(decided.mean()),
        wrong=float(wrong.mean()),
    )


def joined(parts: list[Gaps]) -> Gaps:
    """Join batches."""
    names = [part.name for part in fields(Gaps)]
    return Gaps(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate; those with two votes and more than two categories are last."""
    sizes = (25, 80, 150, 400) if full else (25, 80)
    shapes = ((2, (2, 2)), (2, (3, 3)), (4, (3, 3)), (4, (3, 7)), (6, (6, 6)))
    accuracies = (0.7, 0.88, None)
    cells = [
        Cell(n, votes, m, accuracy, common, kind)
        for kind, n, (m, votes), accuracy in product(KINDS, sizes, shapes, accuracies)
        for common in ("uniform", "rare" if m == 2 else "skewed")
    ]
    return cells + [
        Cell(n, (2, 2), m, accuracy, "skewed", kind)
        for kind, n, m, accuracy in product(KINDS[:3], sizes[1:], (3, 6), (0.7, 0.88))
    ]


def lines(sets: int, full: bool) -> list[str]:
    """Return the page: a row for each kind of labeler and n."""
    every = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])
    found = [one for one in every if one.cell.votes != (2, 2) or one.cell.m == 2]
    bounds = [one for one in every if one.cell.votes == (2, 2) and one.cell.m > 2]
    rows, below = [], []
    for kind, n in product(KINDS, sorted({one.cell.n for one in found})):
        here = [one for one in found if (one.cell.kind, one.cell.n) == (kind, n)]
        shares = [one.share for one in here if one.undefined < 0.5]
        rows.append(
            [
                kind,
                str(n),
                mean_and(min, [one.difference for one in here]),
                mean_and(min, [one.t for one in here]),
                mean_and(min, shares) if shares else "",
                f"{100 * np.mean([one.undefined for one in here]):.1f}",
                mean_and(max, [one.by_margin for one in here]),
                mean_and(max, [one.by_keep for one in here]),
            ]
        )
        if two := [one for one in bounds if (one.cell.kind, one.cell.n) == (kind, n)]:
            shown = [mean_and(min, [one.difference for one in two])]
            shown += [f"{100 * np.mean([getattr(one, name) for one in two]):.1f}" for name in ("decided", "wrong")]
            below.append([kind, str(n), *shown])
    shares = [one.share for one in found if one.undefined < 0.5]
    low = [sum(value < TOO_LOW for value in values) for values in ([one.difference for one in found], shares)]
    plain = sum(one.t < TOO_LOW for one in found)
    worst = [
        max(getattr(one, of) for one in found if one.cell.kind == kind)
        for of, kind in (("by_margin", KINDS[2]), ("by_keep", KINDS[3]))
    ]
    means = [
        np.mean([getattr(one, of) for one in found if one.cell.kind == kind])
        for of, kind in (("by_margin", KINDS[2]), ("by_keep", KINDS[3]))
    ]
    head = "labeler|n|difference: mean / min|t: mean / min|share: mean / min|undefined|pass by margin|pass by share"
    return [
        INTRODUCTION.format(sets=sets, error=standard_error(sets), margin=MARGIN, keep=KEEP),
        *table(head.split("|"), rows),
        "",
        f"Difference: coverage is below 94.5% in {low[0]} of {len(found)} cells, and in {plain} for t. Share kept: in "
        f"{low[1]} of {len(shares)} cells. A labeler at the margin passes in {100 * means[0]:.1f}% of the samples (at "
        f"most {100 * worst[0]:.1f}% in a cell), and one that keeps 0.8 in {100 * means[1]:.1f}% (at most "
        f"{100 * worst[1]:.1f}%). Share columns are of cells in which it is defined in at least half of the samples. "
        f"There are no limits for fewer than {MIN_ITEMS} items.",
        "",
        *section("Two votes", TWO_VOTES, ["labeler", "n", "coverage: mean / min", "decided", "wrong"], below),
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-baseline.md", 1000, lines))
