"""Simulate the coverage of the intervals of annotator comparisons, and write docs/coverage-annotators.md.

Samples are drawn and summarized with array code of this folder; only the limits come from the package.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from dhkappa.stats.annotators import MIN_ITEMS
from dhkappa.stats.intervals import KappaDifference
from simulation import (
    LEVEL,
    TOO_LOW,
    Floats,
    Generator,
    Integers,
    answers,
    batches,
    main,
    mean_and,
    prevalence,
    run_all,
    standard_error,
    table,
    true_kappa,
)

Mask = npt.NDArray[np.bool_]
INTRODUCTION = """\
# Coverage of annotator comparisons

Coverage of the 95% confidence interval of `annotator_comparison`, in percent: the share of simulated samples whose
interval contains the true difference between a labeler and an annotator; {sets:,} samples per cell, so that the
standard error of one cell is about {error:.1f} percentage points.

*equal*: the labeler has the same accuracy as each annotator; *better* and *worse*: it has a higher or lower
accuracy. Settings: 3 to 10 annotators, 2 to 5 categories, also with one category on 10% of the items, 0 to 30% of
the votes missing, and items with unequal weights. *t* is the plain t interval, without the added half item.
*length* is the mean length divided by that of the t interval. Samples in which an annotator has fewer than {fewest}
items, or in which no item changes the difference, are left out. This page is written by `make validate`.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: n items, N annotators, m categories, accuracies, missing votes, unequal weights."""

    n: int
    N: int
    m: int
    annotator: float
    labeler: float
    missing: float = 0.0
    rare: bool = False
    weighted: bool = False

    @property
    def prevalence(self) -> Floats:
        """Prevalence of the categories."""
        return prevalence("rare" if self.rare else "uniform", self.m, 0.1)

    @property
    def kind(self) -> str:
        """How the labeler compares with the annotators."""
        return "equal" if self.labeler == self.annotator else "better" if self.labeler > self.annotator else "worse"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of the interval of the package and of the t interval, and the ratio of their mean lengths."""

    ours: float
    t: float
    length: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a cell."""

    cell: Cell
    mean: Coverage
    one: Coverage
    bias: float
    se_by_sd: float


@dataclass(frozen=True, slots=True)
class Judged:
    """Kappas of many samples, their E, and the influence of each item."""

    kappa: Floats
    E: Floats
    phi: Floats


@dataclass(frozen=True, slots=True)
class Gaps:
    """Differences in many samples: standard errors, limits, and half the length of the t interval."""

    difference: Floats
    se: Floats
    low: Floats
    high: Floats
    half: Floats


def true_difference(cell: Cell) -> float:
    """Return the true difference between the labeler's kappa and an annotator's, with independent errors."""
    truth, votes = cell.prevalence, answers(cell.annotator, cell.m)
    return true_kappa(truth, votes, answers(cell.labeler, cell.m)) - true_kappa(truth, votes, votes)


def draw(rng: Generator, truth: Integers, accuracy: float, m: int) -> Floats:
    """Draw an answer for each true category, as indicators of the m categories."""
    other = (truth + rng.integers(1, m, truth.shape)) % m
    indicators: Floats = np.eye(m)[np.where(rng.random(truth.shape) < accuracy, truth, other)]
    return indicators


def judge(votes: Floats, labels: Floats, weight: Floats) -> Judged:
    """Return the kappa of labels, given at least two other votes, over the items that have weight."""
    N = np.maximum(votes.sum(-1, keepdims=True), 2)
    share = (weight / weight.sum(1, keepdims=True))[..., None]
    c, g = votes / N, votes * (votes - 1) / (N * (N - 1))
    d = ((2 * labels - 1) * g).sum(-1)
    C, L, D = (c * share).sum(1), (labels * share).sum(1), (d * share[..., 0]).sum(1)
    C_E = (C**2 * L).sum(1)
    E = 2 * C_E - (C**2).sum(1)
    kappa = (D - E) / (1 - E)
    pull = (C * (2 * L - 1))[:, None]
    eps = 2 * ((c * pull).sum(-1) + (labels * (C**2)[:, None]).sum(-1) - (E + C_E)[:, None])
    phi = ((d - D[:, None]) - (1 - kappa)[:, None] * eps) / (1 - E)[:, None]
    return Judged(kappa, E, phi)


def gaps(difference: Floats, move: Floats, weight: Floats, whole: Floats, worst: Floats, best: Floats) -> Gaps:
    """Return the intervals of samples from the influence of each item; NaN if no item changes the difference."""
    n = (weight > 0).sum(1)
    se = np.sqrt(n / (n - 1) * ((weight * move) ** 2).sum(1)) / whole
    se[se < 1e-9] = np.nan
    alike = weight.sum(1) ** 2 / (weight**2).sum(1)
    pull = weight * move
    skew = (pull**3).sum(1) / np.where(se > 0, (pull**2).sum(1), 1) ** 1.5
    low, high = KappaDifference(difference, se, skew, alike, n - 1, worst, best).limits(LEVEL)
    return Gaps(difference, se, low, high, stdtrit(n - 1, (1 + LEVEL) / 2) * se)


def compare(cell: Cell, sets: int, rng: Generator) -> tuple[Gaps, Gaps]:
    """Draw samples, and compare the labeler with all annotators and with the first of them."""
    size, m = (sets, cell.n), cell.m
    truth = rng.choice(m, size, p=cell.prevalence)
    votes = [draw(rng, truth, cell.annotator, m) for _ in range(cell.N)]
    labels = draw(rng, truth, cell.labeler, m)
    voted = rng.random((cell.N, *size)) >= cell.missing
    weight = np.exp(0.5 * rng.standard_normal(size)) if cell.weighted else np.ones(size)
    return compare_votes(votes, voted, labels, weight)


def compare_votes(votes: list[Floats], voted: Mask, labels: Floats, weight: Floats) -> tuple[Gaps, Gaps]:
    """Compare labels with all annotators and with the first of them, in many samples at once.

    ``votes`` and ``labels`` are indicators, (sets, n, m); ``voted`` is (N, sets, n) and ``weight`` (sets, n).
    """
    total = sum((vote * cast[..., None] for vote, cast in zip(votes, voted, strict=True)), np.zeros(labels.shape))
    used = voted & (voted.sum(0) >= 3)
    wholes, differences, reaches = (np.zeros(voted.shape[:2]) for _ in range(3))
    move = np.zeros(weight.shape)
    with np.errstate(all="ignore"):
        for a, vote in enumerate(votes):
            w = weight * used[a]
            others = total - vote * voted[a][..., None]
            ours, theirs = judge(others, labels, w), judge(others, vote, w)
            wholes[a] = w.sum(1)
            differences[a] = np.where(used[a].sum(1) < MIN_ITEMS, np.nan, ours.kappa - theirs.kappa)
            reaches[a] = 1 / (1 - ours.E) + 1 / (1 - theirs.E)
            step = np.where(used[a], ours.phi - theirs.phi, 0)
            move += step
            if a == 0:
                first = gaps(differences[0], step, w, wholes[0], -reaches[0], reaches[0])
        T, w = wholes.sum(0), weight * used.any(0)
        reach = (wholes * reaches).sum(0) / T
        everybody = gaps((wholes * differences).sum(0) / T, move, w, T, -reach, reach * w.sum(1) / T)
    return everybody, first


def run(job: tuple[int, Cell, int]) -> Outcome:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    rng = np.random.default_rng([15, number])
    drawn = [compare(cell, size, rng) for size in batches(sets, 1_000_000 // (cell.n * cell.m))]
    everybody, first = (joined(parts) for parts in zip(*drawn, strict=True))
    target = true_difference(cell)
    return Outcome(
        cell=cell,
        mean=coverage(everybody, target),
        one=coverage(first, target),
        bias=float(everybody.difference.mean()) - target,
        se_by_sd=float(np.sqrt((everybody.se**2).mean()) / everybody.difference.std()),
    )


def joined(parts: tuple[Gaps, ...]) -> Gaps:
    """Join batches, without the samples that have no interval."""
    names = [part.name for part in fields(Gaps)]
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    ok = np.isfinite(columns).all(axis=0)
    return Gaps(*(column[ok] for column in columns))


def coverage(seen: Gaps, truth: float) -> Coverage:
    """Return the coverage of the intervals."""
    return Coverage(
        ours=float(((seen.low <= truth) & (truth <= seen.high)).mean()),
        t=float((abs(seen.difference - truth) <= seen.half).mean()),
        length=float((seen.high - seen.low).mean() / (2 * seen.half).mean()),
    )


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    sizes = (30, 60, 100, 200, 500) if full else (30, 100)
    accuracies = ((0.85, 0.85), (0.95, 0.95), (0.85, 0.95), (0.85, 0.7))
    cells = [Cell(n, N, m, *both) for n, N, m, both in product(sizes, (3, 5), (2, 3, 5), accuracies)]
    for n in sizes:
        cells += [
            Cell(n, 10, 3, 0.85, 0.85, missing=0.3),
            Cell(n, 5, 4, 0.8, 0.8, missing=0.3),
            Cell(n, 5, 2, 0.9, 0.9, missing=0.2, rare=True),
            Cell(n, 5, 3, 0.85, 0.85, weighted=True),
            Cell(n, 5, 3, 0.85, 0.95, missing=0.2, weighted=True),
        ]
    return cells


def lines(sets: int, full: bool) -> list[str]:
    """Return the page: a row for each n and kind of labeler."""
    found = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])
    heads = [f"{who}: mean / min|t: mean / min|length" for who in ("mean over annotators", "one annotator")]
    rows = []
    for kind, n in product(("equal", "better", "worse"), sorted({outcome.cell.n for outcome in found})):
        here = [outcome for outcome in found if (outcome.cell.kind, outcome.cell.n) == (kind, n)]
        row = [kind, str(n)]
        for seen in ([outcome.mean for outcome in here], [outcome.one for outcome in here]):
            row += [
                mean_and(min, [coverage.ours for coverage in seen]),
                mean_and(min, [coverage.t for coverage in seen]),
                f"{np.mean([coverage.length for coverage in seen]):.2f}",
            ]
        rows.append(row)
    low = [
        sum(getattr(getattr(outcome, of), interval) < TOO_LOW for outcome in found)
        for of, interval in product(("mean", "one"), ("ours", "t"))
    ]
    worst = min(found, key=lambda outcome: outcome.mean.ours)
    bias = max(abs(outcome.bias) for outcome in found if outcome.cell.kind == "equal")
    ratios = [outcome.se_by_sd for outcome in found]
    return [
        INTRODUCTION.format(sets=sets, error=standard_error(sets), fewest=MIN_ITEMS),
        *table(["labeler", "n", *"|".join(heads).split("|")], rows),
        "",
        f"Mean over annotators: coverage is below 94.5% in {low[0]} of {len(found)} cells, and in {low[1]} for t. One "
        f"annotator: in {low[2]} cells, and in {low[3]} for t. Lowest: {100 * worst.mean.ours:.1f}% "
        f"({_text(worst.cell)}). The mean difference of a labeler with the same accuracy as the annotators is within "
        f"{bias:.3f} of 0, and standard errors are {min(ratios):.2f} to {max(ratios):.2f} of the standard deviation "
        "between samples.",
    ]


def _text(cell: Cell) -> str:
    extras = f"{', rare' if cell.rare else ''}{', weights' if cell.weighted else ''}"
    accuracies = f"accuracies {cell.annotator:g} and {cell.labeler:g}"
    return f"n {cell.n}, N {cell.N}, m {cell.m}, {accuracies}, missing {cell.missing:g}{extras}"


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-annotators.md", 2000, lines))
