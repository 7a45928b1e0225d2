"""What the coverage simulations share: models of votes, intervals for comparison, and tables of Markdown."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from textwrap import wrap
from time import perf_counter
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from dhkappa.stats.intervals import LEAST, Basis, perfect_sample_limit

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Generator = np.random.Generator
Job = TypeVar("Job")
Result = TypeVar("Result")

DOCS = Path(__file__).parents[1] / "docs"
LEVEL = 0.95
TOO_LOW = 0.945  # coverage
SOURCES = ("votes and labels", "labels only", "votes only")


def prevalence(kind: str, m: int, rare: float) -> Floats:
    """Return the prevalence of m categories: uniform, skewed, or "rare": one common category, all others rare."""
    if kind == "rare":
        return np.array([1 - rare, *[rare / (m - 1)] * (m - 1)])
    shares = np.ones(m) if kind == "uniform" else np.arange(m, 0.0, -1.0)
    found: Floats = shares / shares.sum()
    return found


def answers(accuracy: float, m: int) -> Floats:
    """Return (m, m): the probability of each answer, given the true category."""
    wrong = (1 - accuracy) / (m - 1)
    return np.full((m, m), wrong) + np.eye(m) * (accuracy - wrong)


def true_kappa(truth: Floats, votes: Floats, labels: Floats) -> float:
    """Return the kappa of a population (eq. 4-13)."""
    D = float((truth[:, None] * votes**2 * (2 * labels - 1)).sum())
    C, L = truth @ votes, truth @ labels
    E = float((C**2 * (2 * L - 1)).sum())
    return (D - E) / (1 - E)


def draw(rng: Generator, chances: Floats, truth: Integers) -> Integers:
    """Draw one answer for each true category."""
    upto = chances.cumsum(axis=1)
    upto[:, -1] = 1
    drawn: Integers = (rng.random(truth.shape)[..., None] > upto[truth]).sum(axis=-1)
    return drawn


def plain_basis(kappa: float, E: float, n: int, squares: float, least: float, greatest: float) -> Basis:
    """Return the basis of a simple random sample with equal weights."""
    return Basis(kappa, E, n, squares, least, greatest, 1 / n, 1 / n, 1 / n, n - 1)


def logit_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return a t interval on the logit scale, which the beta interval is compared with."""
    if basis.kappa == 1:
        return max(LEAST, perfect_sample_limit(basis.unseen, basis.E, alpha)), 1.0
    above, below = basis.kappa - LEAST, 1 - basis.kappa
    middle = math.log(above / below)
    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se * (1 / above + 1 / below)
    return max(LEAST, _from_logit(middle - half)), min(1.0, _from_logit(middle + half))


def _from_logit(x: float) -> float:
    # 1 - R/(1 + e^x), without overflow
    return 1 - (1 - LEAST) * (math.exp(-x) / (1 + math.exp(-x)) if x > 0 else 1 / (1 + math.exp(x)))


def batches(sets: int, size: float) -> Iterator[int]:
    """Yield the numbers of samples to draw at once, of samples with so many cells each."""
    batch = max(1, round(size))
    for first in range(0, sets, batch):
        yield min(batch, sets - first)


def standard_error(sets: int, share: float = LEVEL) -> float:
    """Return the standard error of a simulated percentage."""
    return 100 * math.sqrt(share * (1 - share) / sets)


def mean_and(extreme: Callable[[Sequence[float]], float], shares: Sequence[float]) -> str:
    """Write the mean and the minimum, or maximum, of shares as percentages."""
    return f"{100 * np.mean(shares):.1f} / {100 * extreme(shares):.1f}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]


def section(title: str, text: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a section: a text and a table."""
    return [f"## {title}", "", *wrap(text, 120), "", *table(heads, rows)]


def run_all(function: Callable[[Job], Result | None], jobs: Sequence[Job]) -> list[Result]:
    """Run jobs on all cores, and return the results in their order."""
    start, found = perf_counter(), []
    with ProcessPoolExecutor() as pool:
        for number, result in enumerate(pool.map(function, jobs, chunksize=4), start=1):
            if result is not None:
                found.append(result)
            if number % 200 == 0:
                print(f"{number} of {len(jobs)} cells, {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def main(description: str | None, page: str, sets: int, lines: Callable[[int, bool], Iterable[str]]) -> int:
    """Write a page of docs from its lines, for a number of samples per cell and the full grid or a part of it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sets", type=int, default=sets, help=f"samples per cell (default {sets})")
    parser.add_argument("--quick", action="store_true", help="a small part of the settings")
    parser.add_argument("--page", type=Path, default=DOCS / page, help="where to write the page")
    options = parser.parse_args()
    options.page.write_text("\n".join([*lines(options.sets, not options.quick), ""]), encoding="utf-8")
    return 0
