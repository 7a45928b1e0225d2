"""How often the intervals of people as labelers hold the true difference: simulated samples, as lines of a page.

Samples are drawn and summarised here with plain array code of its own; only the limits come from the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
from dhkappa.stats.annotator_comparison import FEWEST_ITEMS
from scipy.special import stdtrit

from dhkappa.stats.intervals import Gap

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
LEVEL = 0.95
PAGE = Path(__file__).parents[1] / "docs" / "coverage-people.md"

INTRODUCTION = """\
# Coverage of people as labelers

How often the 95% interval of `people` holds the true difference between a labeler and a person, in percent, with
{sets:,} samples a cell, so that one cell is known to about {error:.1f} points. *Alike*: the labeler is right as often
as each person, so that it is one more annotator; *better* and *worse*: it is not. ItemTable: 3 to 10 annotators, 2 to 5
categories, also one on 10% of the items, 0 to 30% of the votes missing, and items with unequal weights. *t*: the
difference and t standard errors, without the half of an item that the interval adds. *length*: mean length, as a
multiple of that interval's. Samples in which somebody has fewer than {fewest} items or no item moves the difference
are left out.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: n items, N annotators, m categories, who is right how often, missing votes, unequal weights."""

    n: int
    N: int
    m: int
    person: float
    labeler: float
    missing: float = 0.0
    rare: bool = False
    weighted: bool = False

    @property
    def kind(self) -> str:
        """How the labeler stands to people."""
        return "alike" if self.labeler == self.person else "better" if self.labeler > self.person else "worse"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of samples whose interval holds the truth: the package's, and t alone; their lengths, one by the other."""

    ours: float
    t: float
    length: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell."""

    cell: Cell
    summary: Coverage
    person: Coverage
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
    """Differences in many samples: their standard errors, their limits, and half the length of the t interval."""

    difference: Floats
    se: Floats
    low: Floats
    high: Floats
    half: Floats


def prevalence(cell: Cell) -> Floats:
    """Return how often each category is the truth."""
    if cell.rare:
        return np.array([0.9, *[0.1 / (cell.m - 1)] * (cell.m - 1)])
    return np.full(cell.m, 1 / cell.m)


def answers(accuracy: float, m: int) -> Floats:
    """Return (m, m): the chance of each answer, given each truth."""
    wrong = (1 - accuracy) / (m - 1)
    return np.full((m, m), wrong) + np.eye(m) * (accuracy - wrong)


def true_kappa(truth: Floats, votes: Floats, labels: Floats) -> float:
    """Return kappa of the population that the model describes, by eq. 4-13."""
    D = float((truth[:, None] * votes**2 * (2 * labels - 1)).sum())
    C, L = truth @ votes, truth @ labels
    E = float((C**2 * (2 * L - 1)).sum())
    return (D - E) / (1 - E)


def true_difference(cell: Cell) -> float:
    """Return how far the labeler's kappa is above a person's, with people who err on their own."""
    truth, votes = prevalence(cell), answers(cell.person, cell.m)
    return true_kappa(truth, votes, answers(cell.labeler, cell.m)) - true_kappa(truth, votes, votes)


def draw(rng: np.random.Generator, truth: npt.NDArray[np.int64], accuracy: float, m: int) -> Floats:
    """Draw an answer for each truth, as indicators of the m categories."""
    other = (truth + rng.integers(1, m, truth.shape)) % m
    indicators: Floats = np.eye(m)[np.where(rng.random(truth.shape) < accuracy, truth, other)]
    return indicators


def judge(panel: Floats, labels: Floats, weight: Floats) -> Judged:
    """Return kappa of labels by panels of two votes at least, over the items that have weight."""
    N = np.maximum(panel.sum(-1, keepdims=True), 2)
    share = (weight / weight.sum(1, keepdims=True))[..., None]
    c, g = panel / N, panel * (panel - 1) / (N * (N - 1))
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
    """Return the intervals of samples, from how far each item moves the difference; NaN where nothing moves it."""
    n = (weight > 0).sum(1)
    se = np.sqrt(n / (n - 1) * ((weight * move) ** 2).sum(1)) / whole
    se[se < 1e-9] = np.nan
    alike = weight.sum(1) ** 2 / (weight**2).sum(1)
    pull = weight * move
    skew = (pull**3).sum(1) / np.where(se > 0, (pull**2).sum(1), 1) ** 1.5
    low, high = Gap(difference, se, skew, alike, n - 1, worst, best).limits(LEVEL)
    return Gaps(difference, se, low, high, stdtrit(n - 1, (1 + LEVEL) / 2) * se)


def compare(cell: Cell, sets: int, rng: np.random.Generator) -> tuple[Gaps, Gaps]:
    """Draw samples and compare the labeler in each with all people, and with the first of them."""
    size, m = (sets, cell.n), cell.m
    truth = rng.choice(m, size, p=prevalence(cell))
    votes = [draw(rng, truth, cell.person, m) for _ in range(cell.N)]
    labels = draw(rng, truth, cell.labeler, m)
    voted = rng.random((cell.N, *size)) >= cell.missing
    weight = np.exp(0.5 * rng.standard_normal(size)) if cell.weighted else np.ones(size)
    return compare_votes(votes, voted, labels, weight)


def compare_votes(votes: list[Floats], voted: Mask, labels: Floats, weight: Floats) -> tuple[Gaps, Gaps]:
    """Compare labels with all people, and with the first of them, in many samples at once.

    ``votes`` and ``labels`` are indicators, (sets, n, m); ``voted`` is (N, sets, n) and ``weight`` (sets, n).
    """
    panel = sum((vote * cast[..., None] for vote, cast in zip(votes, voted, strict=True)), np.zeros(labels.shape))
    used = voted & (voted.sum(0) >= 3)
    wholes, differences, reaches = (np.zeros(voted.shape[:2]) for _ in range(3))
    move = np.zeros(weight.shape)
    with np.errstate(all="ignore"):
        for a, vote in enumerate(votes):
            w = weight * used[a]
            others = panel - vote * voted[a][..., None]
            ours, theirs = judge(others, labels, w), judge(others, vote, w)
            wholes[a] = w.sum(1)
            differences[a] = np.where(used[a].sum(1) < FEWEST_ITEMS, np.nan, ours.kappa - theirs.kappa)
            reaches[a] = 1 / (1 - ours.E) + 1 / (1 - theirs.E)
            step = np.where(used[a], ours.phi - theirs.phi, 0)
            move += step
            if a == 0:
                person = gaps(differences[0], step, w, wholes[0], -reaches[0], reaches[0])
        T, w = wholes.sum(0), weight * used.any(0)
        reach = (wholes * reaches).sum(0) / T
        everybody = gaps((wholes * differences).sum(0) / T, move, w, T, -reach, reach * w.sum(1) / T)
    return everybody, person


def measure(cell: Cell, sets: int, rng: np.random.Generator) -> Outcome:
    """Draw samples of a cell, in batches that fit the memory, and count how often intervals hold the truth."""
    batch = max(1, 1_000_000 // (cell.n * cell.m))
    drawn = [compare(cell, min(batch, sets - first), rng) for first in range(0, sets, batch)]
    everybody, person = (joined(parts) for parts in zip(*drawn, strict=True))
    target = true_difference(cell)
    return Outcome(
        cell=cell,
        summary=coverage(everybody, target),
        person=coverage(person, target),
        bias=float(everybody.difference.mean()) - target,
        se_by_sd=float(np.sqrt((everybody.se**2).mean()) / everybody.difference.std()),
    )


def joined(parts: tuple[Gaps, ...]) -> Gaps:
    """Put batches together, without the samples that have no interval."""
    names = [part.name for part in fields(Gaps)]
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    ok = np.isfinite(columns).all(axis=0)
    return Gaps(*(column[ok] for column in columns))


def coverage(seen: Gaps, truth: float) -> Coverage:
    """Count how often intervals hold the truth."""
    return Coverage(
        ours=float(((seen.low <= truth) & (truth <= seen.high)).mean()),
        t=float((abs(seen.difference - truth) <= seen.half).mean()),
        length=float((seen.high - seen.low).mean() / (2 * seen.half).mean()),
    )


def grid(full: bool = True) -> list[Cell]:
    """Return the settings to measure."""
    sizes = (30, 60, 100, 200, 500) if full else (30, 100)
    cells = []
    for n, N, m in product(sizes, (3, 5), (2, 3, 5)):
        for person, labeler in ((0.85, 0.85), (0.95, 0.95), (0.85, 0.95), (0.85, 0.7)):
            cells.append(Cell(n, N, m, person, labeler))
    for n in sizes:
        cells += [
            Cell(n, 10, 3, 0.85, 0.85, missing=0.3),
            Cell(n, 5, 4, 0.8, 0.8, missing=0.3),
            Cell(n, 5, 2, 0.9, 0.9, missing=0.2, rare=True),
            Cell(n, 5, 3, 0.85, 0.85, weighted=True),
            Cell(n, 5, 3, 0.85, 0.95, missing=0.2, weighted=True),
        ]
    return cells


def outcomes(cells: list[Cell], sets: int) -> Iterator[Outcome]:
    """Measure cells, each with a stream of random numbers of its own, so that any part of the grid repeats."""
    for number, cell in enumerate(cells):
        yield measure(cell, sets, np.random.default_rng([15, number]))


def lines(found: list[Outcome], sets: int) -> list[str]:
    """Return the section of the page: a line for each n and kind of labeler."""
    error = 100 * (LEVEL * (1 - LEVEL) / sets) ** 0.5
    rows = [
        *INTRODUCTION.format(sets=sets, error=error, fewest=FEWEST_ITEMS).splitlines(),
        "",
        "| labeler | n | all people: mean / least | t | length | one person: mean / least | t | length |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, n in product(("alike", "better", "worse"), sorted({outcome.cell.n for outcome in found})):
        here = [outcome for outcome in found if (outcome.cell.kind, outcome.cell.n) == (kind, n)]
        row = [kind, str(n)]
        for seen in ([outcome.summary for outcome in here], [outcome.person for outcome in here]):
            row += [
                _mean_and_least([coverage.ours for coverage in seen]),
                _mean_and_least([coverage.t for coverage in seen]),
                f"{np.mean([coverage.length for coverage in seen]):.2f}",
            ]
        rows.append("| " + " | ".join(row) + " |")
    low = sum(outcome.summary.ours < 0.945 for outcome in found)
    worst = min(found, key=lambda outcome: outcome.summary.ours)
    alike = [outcome for outcome in found if outcome.cell.kind == "alike"]
    ratios = [outcome.se_by_sd for outcome in found]
    rows += [
        "",
        f"Of {len(found)} cells, the interval of the mean over people is below 94.5% in {low}, t alone in "
        f"{sum(outcome.summary.t < 0.945 for outcome in found)}; that of one person in "
        f"{sum(outcome.person.ours < 0.945 for outcome in found)}, t alone in "
        f"{sum(outcome.person.t < 0.945 for outcome in found)}. Least: {100 * worst.summary.ours:.1f}% "
        f"({_text(worst.cell)}). A labeler that is one more annotator scores within "
        f"{max(abs(outcome.bias) for outcome in alike):.3f} of people, and standard errors are {min(ratios):.2f} to "
        f"{max(ratios):.2f} of the standard deviation between samples.",
    ]
    return rows


def _mean_and_least(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f} / {100 * min(values):.1f}"


def _text(cell: Cell) -> str:
    extras = f"{', rare' if cell.rare else ''}{', sample_weight' if cell.weighted else ''}"
    accuracy = f"right {cell.person:g} and {cell.labeler:g}"
    return f"n {cell.n}, N {cell.N}, m {cell.m}, {accuracy}, missing {cell.missing:g}{extras}"


def main() -> int:
    """Measure the grid and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2000, help="samples a cell (default 2000)")
    parser.add_argument("--quick", action="store_true", help="a small part of the grid")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the page")
    options = parser.parse_args()
    start, cells = perf_counter(), grid(full=not options.quick)
    found = []
    for number, outcome in enumerate(outcomes(cells, options.sets), start=1):
        found.append(outcome)
        if number % 20 == 0:
            print(f"{number} of {len(cells)} cells, {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    options.page.write_text("\n".join([*lines(found, options.sets), "", "Written by `make validate`.", ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
