"""Simulate the coverage of shares of a pool and of its number of wrong labels, and write docs/coverage-pool.md."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dhkappa import DataError, pool_shares
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
    section,
    standard_error,
)

_Z = 1.959963984540054
_POOL = 20_000
_SMALL_POOL = 700
INTRODUCTION = """\
# Coverage of shares of a pool

Coverage of the 95% confidence intervals of `pool_shares`, in percent, as mean and minimum: the share of simulated
samples whose interval contains the true value; {sets:,} samples per cell, so that the standard error of one cell is
about {error:.1f} percentage points. *shares*: the share of each category in the pool, a cell for each; *Wald*: the same
shares, plus and minus 1.96 standard errors; *wrong by label*: the number of wrong labels with each label, if a sampled
item has it; *wrong*: the number of wrong labels of the whole pool, with Wald intervals next to it.

In each sample the pool has other numbers of items with each label, from which the sampled items are drawn without
replacement. Votes and labels err independently of each other given the true category. This page is written by
`make validate`."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting; ``n`` items are drawn from the pool, or ``by_label`` from each label."""

    n: int
    votes: tuple[int, int]  # fewest and most per item
    m: int
    common: str
    of_votes: float  # accuracy
    of_labels: float
    by_label: bool = False
    finite: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Shares of samples whose interval contains the true value."""

    cell: Cell
    shares: list[float]  # by category
    wald: list[float]
    by_label: list[float]
    wrong: float
    wrong_wald: float


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Simulate a cell."""
    seed, cell, sets = job
    rng = np.random.default_rng([20261119, seed])
    hits: dict[str, list[bool]] = defaultdict(list)
    for _ in range(sets):
        for name, inside in _one(rng, cell):
            hits[name].append(inside)
    if not hits["wrong"]:
        return None
    means = {name: float(np.mean(found)) for name, found in hits.items()}
    several = {start: [means[f"{start} {j}"] for j in range(cell.m) if f"{start} {j}" in means] for start in _SEVERAL}
    shares, wald, by_label = several.values()
    return Outcome(cell, shares, wald, by_label, means["wrong"], means["wrong wald"])


_SEVERAL = ("share", "wald", "label")


def _one(rng: Generator, cell: Cell) -> Iterator[tuple[str, bool]]:
    """Draw a pool and a sample, and yield which intervals contain the true value."""
    m, size = cell.m, _SMALL_POOL if cell.finite else _POOL
    votes = answers(cell.of_votes, m)
    truth = rng.choice(m, size, p=prevalence(cell.common, m, 0.06))
    labels = draw(rng, answers(cell.of_labels, m), truth)
    sampled = np.concatenate(list(_sampled(rng, cell, labels)))
    number = rng.integers(cell.votes[0], cell.votes[1] + 1, sampled.size)
    drawn = draw(rng, votes, np.repeat(truth[sampled][:, None], cell.votes[1], axis=1)).tolist()
    cast = [row[:k] for row, k in zip(drawn, number.tolist(), strict=True)]
    M = np.bincount(labels, minlength=m)
    true, wrong = _true(cell, votes, truth, labels, M)
    own = labels[sampled].tolist()
    try:
        found = pool_shares(
            cast,
            own,
            pool={j: int(n) for j, n in enumerate(M) if n},
            strata=own if cell.by_label else None,
            finite_pool=cell.finite,
            confidence_level=LEVEL,
        )
    except DataError:  # a sample without items
        return
    for row in found.table:
        j = row["category"]
        yield f"share {j}", row["low"] <= true[j] <= row["high"]
        yield f"wald {j}", abs(row["share"] - true[j]) <= _Z * row["se"]
        if row["items"]:
            yield f"label {j}", row["wrong_low"] <= wrong[j] <= row["wrong_high"]
    for j in set(range(m)) - set(found.table.column("category")):
        yield f"share {j}", bool(true[j] == 0)
    yield "wrong", found.wrong_low <= wrong.sum() <= found.wrong_high
    yield "wrong wald", abs(found.wrong - wrong.sum()) <= _Z * _wrong_error(cast, own, M, cell)


def _sampled(rng: Generator, cell: Cell, labels: Integers) -> Iterator[Integers]:
    """Yield the sampled items: of the whole pool, or of each label."""
    if not cell.by_label:
        yield rng.choice(labels.size, cell.n, replace=False)
        return
    for j in range(cell.m):
        items = np.flatnonzero(labels == j)
        yield rng.choice(items, min(cell.n, items.size), replace=False)


def _true(cell: Cell, votes: Floats, truth: Integers, labels: Integers, M: Integers) -> tuple[Floats, Floats]:
    """Return the true share of each category and number of wrong labels, for this pool or for others like it."""
    if cell.finite:
        chances = votes[truth]
        wrong = 1 - chances[np.arange(truth.size), labels]
        return chances.mean(axis=0), np.bincount(labels, wrong, cell.m).astype(np.float64)
    joint = prevalence(cell.common, cell.m, 0.06)[:, None] * answers(cell.of_labels, cell.m)
    given_label = (joint / joint.sum(axis=0)).T @ votes  # (label, vote)
    shares: Floats = M @ given_label / M.sum()
    number: Floats = M * (1 - np.diag(given_label))
    return shares, number


def _wrong_error(cast: list[list[int]], labels: list[int], M: Integers, cell: Cell) -> float:
    """Return the standard error of the number of wrong labels, by label, without merging; 0 for labels of one item."""
    wrong = np.array([np.mean([vote != label for vote in row]) for row, label in zip(cast, labels, strict=True)])
    between = [w * (1 - w) / (len(row) - 1) if len(row) > 1 else 0 for w, row in zip(wrong, cast, strict=True)]
    variance = 0.0
    for j in set(labels):
        own = np.array(labels) == j
        n = int(own.sum())
        spread = float(wrong[own].var(ddof=1)) if n > 1 else 0.0
        f = n / M[j] if cell.finite else 0.0
        variance += M[j] ** 2 * ((1 - f) * spread + f * float(np.array(between)[own].mean())) / n
    return float(variance**0.5)


def cells(full: bool) -> list[Cell]:
    """Return the settings."""
    accuracies = ((0.85, 0.75), (0.97, 0.92)) if full else ((0.85, 0.75),)
    sizes = (40, 120, 400) if full else (40, 120)
    found = [
        Cell(n, votes, m, common, *accuracy)
        for n, votes, m, common, accuracy in product(
            sizes, ((1, 1), (2, 5)), (2, 4, 6) if full else (2,), ("uniform", "rare"), accuracies
        )
    ]
    found += [
        Cell(n, votes, m, "rare", *accuracy, by_label=True)
        for n, votes, m, accuracy in product((3, 8, 25), ((1, 1), (3, 3)), (3, 5) if full else (3,), accuracies)
    ]
    found += [
        Cell(n, (3, 3), m, common, *accuracy, finite=True)
        for n, m, common, accuracy in product((70, 350, 630), (2, 4) if full else (2,), ("uniform", "rare"), accuracies)
    ]
    return found


def lines(sets: int, full: bool) -> Iterator[str]:
    """Yield the lines of the page."""
    outcomes = run_all(run, [(seed, cell, sets) for seed, cell in enumerate(cells(full))])
    yield from INTRODUCTION.format(sets=sets, error=standard_error(sets)).splitlines()
    yield ""
    every = [share for outcome in outcomes for share in outcome.shares]
    low, wald = (sum(share < TOO_LOW for share in found) for found in (every, [w for o in outcomes for w in o.wald]))
    wrong = [outcome.wrong for outcome in outcomes]
    below = sum(one < TOO_LOW for one in wrong)
    text = f"Shares: coverage is below 94.5% in {low} of {len(every)} cells, and in {wald} for Wald; lowest "
    text += f"{100 * min(every):.1f}%. Wrong labels: in {below} of {len(wrong)} cells; lowest {100 * min(wrong):.1f}%."
    yield text  # on one line, as docs/validation.md quotes it
    yield ""
    texts = {
        "Random samples": "2, 4 and 6 categories, equally frequent or one on 94% of the items; 1 vote, or 2 to 5 votes "
        f"per item; accuracy of votes and labels .85 and .75, or .97 and .92; pools of {_POOL:,} items.",
        "Sampled by label": "*items*: number of items drawn for each label. 3 and 5 categories, one on 94% of the "
        "items; 1 and 3 votes per item; the same accuracies. With 3 items per label, labels are merged.",
        "Finite pools": f"`finite_pool=True`: the true values are those of one pool of {_SMALL_POOL} items, of which "
        "*items* were drawn; 3 votes per item; 2 and 4 categories.",
    }
    kinds = [[o for o in outcomes if (o.cell.by_label, o.cell.finite) == kind] for kind in _KINDS]
    for (title, text), own in zip(texts.items(), kinds, strict=True):
        rows = [_row(n, [one for one in own if one.cell.n == n]) for n in sorted({one.cell.n for one in own})]
        heads = ["items", "cells", "shares", "Wald", "wrong by label", "wrong", "Wald"]
        yield from section(title, text, heads, rows)
        yield ""


_KINDS = ((False, False), (True, False), (False, True))


def _row(n: int, own: list[Outcome]) -> list[str]:
    shares, wald, by_label = ([x for one in own for x in getattr(one, name)] for name in ("shares", "wald", "by_label"))
    totals = ([one.wrong for one in own], [one.wrong_wald for one in own])
    return [str(n), str(len(own)), *(mean_and(min, found) for found in (shares, wald, by_label, *totals))]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-pool.md", 1_000, lines))
