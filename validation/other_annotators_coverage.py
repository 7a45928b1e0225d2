"""Simulate the coverage of intervals for other annotators, and write docs/coverage-other-annotators.md.

The true values are those of the population that annotators are drawn from. Two votes on an item are by different
annotators, who are drawn independently, so pairs and triples of votes agree by the mean probabilities of answers.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import product

import numpy as np

from dhkappa import compare, dh_kappa, fleiss_kappa
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.annotator_baseline import annotator_baseline
from dhkappa.stats.other_annotators import differences_for_others, other_annotators
from dhkappa.stats.sample import sample_of
from simulation import (
    LEVEL,
    TOO_LOW,
    Floats,
    Generator,
    Integers,
    answers,
    draw,
    main,
    mean_and,
    prevalence,
    run_all,
    standard_error,
    table,
    true_kappa,
)

INTRODUCTION = """\
# Coverage for other annotators

Coverage of 95% confidence intervals for other annotators, in percent, as mean / minimum over cells: the share of
simulated samples whose interval contains the true value for the population that annotators are drawn from;
{sets:,} samples for each of {cells} cells, {total:,} in all, so that the standard error of one cell is about
{error:.1f} percentage points. The minimum over several cells is expected to be two or three standard errors lower by
chance.

*These*: the interval for other items voted on by the same annotators, which is the default. *Others*: the interval
also for other annotators (`annotators="random"`, `Audit.other_annotators`, `compare(other_annotators=True)`). *Length*:
its mean length divided by that of the other. *Typical annotator*: a labeler's kappa minus that of a typical annotator.
*Two labelers*: the difference between their kappas. Fleiss' kappa has only *others* here.

*alike*: all annotators have accuracy .8. *differ*: accuracies are drawn from a beta distribution with mean .78 and
standard deviation .1. *careless*: 15% of the annotators guess, the others have accuracies with mean .85 and standard
deviation .06. Settings: 2, 3 or 4 categories, equally frequent or skewed; 150 or 500 items; all of 5 or 7 annotators
vote on every item, or 3 or 4 of 12 to 200, for one half of the cells with very different numbers of items for each.
Labelers have the accuracies .85 and .75. This page is written by `make validate`.
"""
KINDS = ("alike", "differ", "careless")
_MOST_TOLD = 4  # cells with low coverage
LABELERS = {"one": 0.85, "other": 0.75}


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: A annotators of a kind, N votes on each of n items, m categories."""

    kind: str
    A: int
    N: int
    n: int
    m: int
    skewed: bool = False
    uneven: bool = False  # some annotators vote on many more items than others

    @property
    def prevalence(self) -> Floats:
        """Prevalence of the categories."""
        return prevalence("skewed" if self.skewed else "uniform", self.m, 0.1)

    @property
    def accuracy(self) -> float:
        """Mean accuracy of annotators."""
        return {"alike": 0.8, "differ": 0.78, "careless": 0.85 * 0.85 + 0.15 / self.m}[self.kind]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Coverage in a cell: for these annotators and for others, by what the interval is for; and ratios of lengths."""

    cell: Cell
    these: dict[str, float]
    others: dict[str, float]
    length: float
    too_good: float  # share of samples whose interval of the difference from a typical annotator is above the true one


def truths(cell: Cell) -> dict[str, float]:
    """Return the true values of a population of annotators."""
    p, votes = cell.prevalence, answers(cell.accuracy, cell.m)
    kappas = {name: true_kappa(p, votes, answers(accuracy, cell.m)) for name, accuracy in LABELERS.items()}
    C = p @ votes
    pairs, triples = (float((p[:, None] * votes**power).sum()) for power in (2, 3))
    fleiss = (pairs - float((C**2).sum())) / (1 - float((C**2).sum()))
    E = float((2 * C**3 - C**2).sum())
    typical = (2 * triples - pairs - E) / (1 - E)
    both = kappas["one"] - kappas["other"]
    return {"kappa": kappas["one"], "fleiss": fleiss, "typical": kappas["one"] - typical, "labelers": both}


def accuracies(cell: Cell, rng: Generator) -> Floats:
    """Draw the accuracy of each annotator."""
    if cell.kind == "alike":
        return np.full(cell.A, 0.8)
    mean, sd = (0.78, 0.1) if cell.kind == "differ" else (0.85, 0.06)
    size = mean * (1 - mean) / sd**2 - 1
    drawn = rng.beta(mean * size, (1 - mean) * size, cell.A)
    guess = rng.random(cell.A) < 0.15 if cell.kind == "careless" else np.zeros(cell.A, bool)
    found: Floats = np.where(guess, 1 / cell.m, drawn)
    return found


def sample(cell: Cell, rng: Generator) -> tuple[Integers, dict[str, Integers]]:
    """Draw votes, (n, A) with -1 where missing, and the labels of both labelers."""
    truth = rng.choice(cell.m, cell.n, p=cell.prevalence)
    right = rng.random((cell.n, cell.A)) < accuracies(cell, rng)
    wrong = (truth[:, None] + rng.integers(1, cell.m, right.shape)) % cell.m
    votes = np.where(right, truth[:, None], wrong)
    activity = 1 / np.arange(1, cell.A + 1) ** 0.7 if cell.uneven else np.ones(cell.A)
    # The N largest of independent Gumbel variables are a sample without replacement by activity.
    order = np.argsort(np.log(activity) + rng.gumbel(size=votes.shape), axis=1)
    np.put_along_axis(votes, order[:, : cell.A - cell.N], -1, axis=1)
    return votes, {name: draw(rng, answers(accuracy, cell.m), truth) for name, accuracy in LABELERS.items()}


def intervals(votes: Integers, labels: dict[str, Integers]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the limits for these annotators and for others; NaN if there are none."""
    cells = votes.astype(object)
    cells[votes < 0] = None
    item_votes = read_votes(cells, labels)
    kappa, fleiss = dh_kappa(cells, labels["one"]), fleiss_kappa(cells)
    baseline, interval = annotator_baseline(kappa.estimate), kappa.confidence_interval(LEVEL)
    rows = sample_of(item_votes.labeled_patterns("one"))
    others = other_annotators(item_votes, "one", kappa.estimate, interval, kappa.se, baseline, rows)
    pairs = compare(cells, labels, rng=1).differences
    both, pair = next(iter(pairs)), next(iter(differences_for_others(pairs, item_votes, LEVEL)))
    these = {
        "kappa": [*interval],
        "fleiss": [*fleiss.confidence_interval(LEVEL)],
        "typical": [baseline.low, baseline.high],
        "labelers": [both["low"], both["high"]],
    }
    return these, {
        "kappa": [others.low, others.high],
        "fleiss": [*fleiss.confidence_interval(LEVEL, annotators="random")],
        "typical": [others.difference_low, others.difference_high],
        "labelers": [pair["low"], pair["high"]],
    }


def run(job: tuple[int, Cell, int]) -> Outcome:
    """Simulate a cell with its own random stream."""
    number, cell, sets = job
    rng = np.random.default_rng([31, number])
    found = [intervals(*sample(cell, rng)) for _ in range(sets)]
    these, others = ({name: np.array([one[side][name] for one in found]) for name in truths(cell)} for side in (0, 1))
    lengths = [np.nanmean(limits["kappa"][:, 1] - limits["kappa"][:, 0]) for limits in (others, these)]

    def coverage(limits: dict[str, Floats]) -> dict[str, float]:
        shares = {}
        for name, truth in truths(cell).items():
            known = limits[name][~np.isnan(others[name]).any(axis=1)]
            holds = (known[:, 0] <= truth) & (truth <= known[:, 1])
            shares[name] = float(holds.mean()) if len(known) else math.nan
        return shares

    too_good = float(np.nanmean(others["typical"][:, 0] > truths(cell)["typical"]))
    return Outcome(cell, coverage(these), coverage(others), float(lengths[0] / lengths[1]), too_good)


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate."""
    designs = [(5, 5), (7, 7), (12, 3), (12, 4), (25, 3), (60, 4), (200, 3)]
    cells = []
    for place, (kind, (A, N)) in enumerate(product(KINDS, designs)):
        cells.append(Cell(kind, A, N, 150, (2, 4, 3)[place % 3], uneven=False))
        if full:
            cells.append(Cell(kind, A, N, 500, (3, 2, 4)[place % 3], skewed=True, uneven=N < A))
    return cells


def lines(sets: int, full: bool) -> list[str]:
    """Return the page: a row for each kind and number of annotators."""
    cells = grid(full)
    found = run_all(run, [(number, cell, sets) for number, cell in enumerate(cells)])
    rows = []
    for kind, A in product(KINDS, dict.fromkeys(cell.A for cell in cells)):
        here = [one for one in found if (one.cell.kind, one.cell.A) == (kind, A)]
        row = [kind, str(A)]
        for name in ("kappa", "typical", "labelers"):
            row += [mean_and(min, [getattr(one, side)[name] for one in here]) for side in ("these", "others")]
        length = f"{np.mean([one.length for one in here]):.1f}"
        rows.append([*row[:4], length, *row[4:], mean_and(min, [one.others["fleiss"] for one in here])])
    heads = ["annotators", "A", "kappa, these", "kappa, others", "length", "typical annotator, these"]
    heads += ["typical annotator, others", "two labelers, these", "two labelers, others", "Fleiss, others"]
    error = standard_error(sets)
    words = {"kappa": "Kappa", "fleiss": "Fleiss' kappa", "typical": "Typical annotator", "labelers": "Two labelers"}
    said = []
    for name, title in words.items():
        low = sorted(
            (one for one in found if one.others[name] < TOO_LOW - 2 * error / 100), key=lambda x: x.others[name]
        )
        worst = [f"{100 * one.others[name]:.1f}% ({_text(one.cell)})" for one in low[:_MOST_TOLD]]
        more = f", of which the lowest are {', '.join(worst)}" if worst else ""
        text = (
            f"coverage for others is below 94.5% by more than two standard errors in {len(low)} of {len(found)} cells"
        )
        said.append(f"- {title}: {text}{more}.")
    too_good = max(found, key=lambda one: one.too_good)
    share = f"{100 * too_good.too_good:.1f}% of the samples ({_text(too_good.cell)})"
    said.append(
        "- The interval of the difference from a typical annotator for others is above the true difference, as if the "
        f"labeler were better than it is, in {100 * np.mean([one.too_good for one in found]):.1f}% of the samples on "
        f"average, and at most in {share}; nominal are 2.5%. The other misses are below it."
    )
    return [
        INTRODUCTION.format(sets=sets, error=error, cells=len(cells), total=sets * len(cells)),
        *table(heads, rows),
        "",
        *said,
    ]


def _text(cell: Cell) -> str:
    extras = f"{', skewed' if cell.skewed else ''}{', uneven' if cell.uneven else ''}"
    return f"{cell.kind}, {cell.A} annotators, {cell.N} votes, n {cell.n}, m {cell.m}{extras}"


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-other-annotators.md", 400, lines))
