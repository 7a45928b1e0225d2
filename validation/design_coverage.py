"""How often intervals hold the true kappa where items are not simply drawn: sections for a page of the docs.

Votes missing, weights, strata, pools, ordered categories. Samples are drawn and summarised here with plain array code
of its own; only the limits come from the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.stats.intervals import Basis, beta_interval
from interval_coverage import SOURCES, Floats, draw
from logit import logit_interval

Integers = npt.NDArray[np.int64]
Generator = np.random.Generator
Model = tuple[Floats, Floats, Floats]
"""Shares of the kinds of items; chances of each vote and of each label, given the kind."""
PAGE = Path(__file__).parents[1] / "docs" / "coverage-designs.md"
INTRODUCTION = """\
# Coverage of the intervals of other samples

How often the 95% interval holds the true kappa, in percent, where items are not simply drawn at random and voted on
by all: {sets:,} samples a cell, so one cell is known to about {error:.1f} points, and the least of many cells is lower
by three or four of these by chance alone. ItemTable: a random choice of 2, 3 or 5 votes an item, 2, 3 or 5 categories,
even or uneven, kappa from 0 to .9, errors in votes, in labels, or in both. *length*: mean length, as a multiple of the
logit interval's.
Written by `make validate`.
"""
PREVALENCE = {"uniform": (1.0,), "skewed": (0.7, 0.2, 0.1), "rare": (0.9, 0.07, 0.03)}


@dataclass(frozen=True, slots=True)
class Design:
    """A way to draw items, and the numbers that say which."""

    section: str
    name: str
    draw: Callable[[Generator, Cell, int], Sample | None]
    at: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: a design, n items, N votes each, m categories, their prevalence, the true kappa, and who errs."""

    design: Design
    n: int
    N: int
    m: int
    prevalence: str
    kappa: float
    source: str

    @property
    def w(self) -> Floats:
        """(m, m) ordinal weights; the unit matrix for the plain kappa."""
        if self.design.draw is not ordered:
            return np.eye(self.m)
        distance = np.abs(np.subtract.outer(np.arange(self.m), np.arange(self.m))) / (self.m - 1)
        sample_weight: Floats = 1 - distance ** self.design.at[0]
        return sample_weight


@dataclass(frozen=True, slots=True)
class Sample:
    """Many samples: (sets, n, m) votes; (sets, n) the rest of an item, of weight 0 if it is not in the sample.

    ``taken`` is (sets, H), the share of each stratum that is in the sample; ``truth`` what intervals should hold.
    """

    votes: Floats
    label: Integers
    weight: Floats
    stratum: Integers
    taken: Floats
    truth: Floats | float


def shares(prevalence: str, m: int) -> Floats:
    """Return how often each category is the truth; those after the third are as rare as the third."""
    first = PREVALENCE[prevalence]
    sample_weight = np.array([first[min(j, len(first) - 1)] for j in range(m)])
    found: Floats = sample_weight / sample_weight.sum()
    return found


def true_kappa(model: Model, w: Floats) -> float:
    """Return kappa of the population with weights w, over pairs of votes and the label."""
    kinds, votes, labels = model
    lean = w[:, None, :] + w - 1
    D = float(np.einsum("t,tx,ty,tl,xy,xyl->", kinds, votes, votes, labels, w, lean, optimize=True))
    C, L = kinds @ votes, kinds @ labels
    E = float((C * (w @ C) * (2 * (w @ L) - 1)).sum())
    return (D - E) / (1 - E)


def model(cell: Cell, kinds: Floats, answers: Callable[[float], Floats]) -> Model | None:
    """Return the model with the cell's kappa, given the chances of answers by accuracy; None if there is none."""

    def at(accuracy: float) -> Model:
        right, mixed = answers(1.0), answers(accuracy)
        votes = right if cell.source == "labels only" else mixed
        return kinds, votes, right if cell.source == "votes only" else mixed

    steps = np.linspace(0, 1, 50).tolist()
    reached = [true_kappa(at(step), cell.w) for step in steps]
    # Of several accuracies the highest: far below it, answers are wrong on purpose.
    crossed = [i for i in range(49) if reached[i] - 1e-9 < cell.kappa <= reached[i + 1]]
    if not crossed:
        return None
    low, high = steps[crossed[-1] : crossed[-1] + 2]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if true_kappa(at(middle), cell.w) < cell.kappa else (low, middle)
    return at(high)


def guessing(cell: Cell, hard: float = 1.0, eased: float = 1.0) -> Model | None:
    """Return a model of answers that guess by prevalence where they err; easy kinds first, then hard ones."""
    truth, right = shares(cell.prevalence, cell.m), np.eye(cell.m)

    def answers(accuracy: float) -> Floats:
        errors = eased * (1 - accuracy), 1 - accuracy
        return np.concatenate([(1 - error) * right + error * truth for error in errors])

    return model(cell, np.concatenate([(1 - hard) * truth, hard * truth]), answers)


def votes_on(rng: Generator, chances: Floats, kind: Integers, N: int, missing: float = 0.0) -> Floats:
    """Draw N votes on each item, each missing with a chance."""
    found = np.zeros((*kind.shape, chances.shape[1]))
    for _ in range(N):
        kept = rng.random(kind.shape) >= missing
        found += np.eye(chances.shape[1])[draw(rng, chances, kind)] * kept[..., None]
    return found


def plain(rng: Generator, cell: Cell, sets: int, found: Model | None, missing: float = 0.0) -> Sample | None:
    """Draw items of a model at random."""
    if found is None:
        return None
    kinds, votes, labels = found
    kind = rng.choice(len(kinds), (sets, cell.n), p=kinds)
    P = votes_on(rng, votes, kind, cell.N, missing)
    weight = (P.sum(axis=-1) > 1) * 1.0
    return Sample(P, draw(rng, labels, kind), weight, np.zeros_like(kind), np.zeros((sets, 1)), cell.kappa)


def ragged(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw items of which votes are missing."""
    return plain(rng, cell, sets, guessing(cell), cell.design.at[0])


def weighted(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw items with lognormal weights that have nothing to do with them."""
    if (sample := plain(rng, cell, sets, guessing(cell))) is None:
        return None
    sample.weight[:] = np.exp(rng.normal(0, sqrt(np.log1p(cell.design.at[0] ** 2)), sample.weight.shape))
    return sample


def by_label(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw as many items of each suggested label: exactly, with strata, or on average, with weights alone."""
    if (found := guessing(cell)) is None:
        return None
    kinds, votes, labels = found
    L, strata, shape = kinds @ labels, cell.design.section == "Strata", (sets, cell.n)
    label = np.tile(np.arange(cell.n) % cell.m, (sets, 1)) if strata else rng.integers(0, cell.m, shape)
    P = votes_on(rng, votes, draw(rng, (kinds[:, None] * labels).T / L[:, None], label), cell.N)
    weight = (L / (np.bincount(label[0], minlength=cell.m) if strata else 1))[label]
    return Sample(P, label, weight, label * strata, np.zeros((sets, cell.m if strata else 1)), cell.kappa)


def by_difficulty(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw hard items, a share of all, as another share of the sample, with strata or with weights alone."""
    hard, drawn, eased = cell.design.at
    if (found := guessing(cell, hard, eased)) is None:
        return None
    strata, shape = cell.design.section == "Strata", (sets, cell.n)
    place = np.tile((np.arange(cell.n) + 0.5) / cell.n, (sets, 1)) if strata else rng.random(shape)
    group = (place < drawn).astype(np.int64)
    kind = group * cell.m + rng.choice(cell.m, shape, p=shares(cell.prevalence, cell.m))
    weight = np.where(group == 1, hard / drawn, (1 - hard) / (1 - drawn))
    P, label = votes_on(rng, found[1], kind, cell.N), draw(rng, found[2], kind)
    return Sample(P, label, weight, group * strata, np.zeros((sets, 1 + strata)), cell.kappa)


def pool(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw pools, and from each a sample: at random, or as many of each suggested label as there are up to n/m."""
    fraction, by_labels = cell.design.at
    large = Cell(cell.design, round(cell.n / fraction), cell.N, cell.m, cell.prevalence, cell.kappa, cell.source)
    if (whole := plain(rng, large, sets, guessing(cell))) is None:
        return None
    H = cell.m if by_labels else 1
    stratum = whole.label * int(by_labels)
    member = np.eye(H, dtype=np.int64)[stratum]
    place, size = (member.cumsum(axis=1) * member).sum(axis=-1), member.sum(axis=1)
    count = np.minimum(size, cell.n // H)
    weight = np.take_along_axis(size / np.maximum(count, 1), stratum, 1) * (place <= cell.n // H)
    truth = np.where(((count > 1) | (count == size)).all(axis=1), estimate(whole, cell.w).kappa, np.nan)
    first = np.argsort(weight == 0, axis=1, kind="stable")[:, : cell.n]
    label, stratum, weight = (np.take_along_axis(part, first, 1) for part in (whole.label, stratum, weight))
    P = np.take_along_axis(whole.votes, first[..., None], 1)
    return Sample(P, label, weight, stratum, count / np.maximum(size, 1), truth)


def ordered(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw items with errors to neighbours, and a share of errors to any other category."""
    far, right = cell.design.at[1], np.eye(cell.m)
    beside = np.eye(cell.m, k=1) + np.eye(cell.m, k=-1)
    wrong = (1 - far) * beside / beside.sum(axis=1, keepdims=True) + far * (1 - right) / (cell.m - 1)
    truth = shares(cell.prevalence, cell.m)
    return plain(rng, cell, sets, model(cell, truth, lambda accuracy: accuracy * right + (1 - accuracy) * wrong))


@dataclass(frozen=True, slots=True)
class Estimate:
    """By sample: kappa and its parts, items' shares of the weight, phi, and that of label j with all votes v."""

    kappa: Floats
    D: Floats
    E: Floats
    share: Floats
    phi: Floats
    ends: Floats


def estimate(sample: Sample, w: Floats) -> Estimate:
    """Estimate kappa and influence with ordinal weights w."""
    P, label = sample.votes, sample.label
    N, lean = np.maximum(P.sum(axis=-1), 2), 2 * w[label] - 1
    d = (P * (P @ w - 1) * lean).sum(axis=-1) / (N * (N - 1))
    c, share = P / N[..., None], sample.weight / sample.weight.sum(axis=1, keepdims=True)
    C, D = np.einsum("sn,snm->sm", share, c), (share * d).sum(axis=1)
    L = np.einsum("sn,snm->sm", share, np.eye(len(w))[label])
    wC, toward = C @ w, 2 * L @ w - 1
    E, C_E = (C * wC * toward).sum(axis=1), (C * wC * (L @ w)).sum(axis=1)
    h, k = (wC * toward + (C * toward) @ w) / 2, (C * wC) @ w
    with np.errstate(all="ignore"):
        kappa = np.where(D > 1 - 1e-12, 1, (D - E) / (1 - E))
        eps = 2 * (np.einsum("sm,snm->sn", h, c) + np.take_along_axis(k, label, 1) - (E + C_E)[:, None])
        phi = (d - D[:, None] - (1 - kappa)[:, None] * eps) / (1 - E)[:, None]
        eps = 2 * (h[:, None, :] + k[:, :, None] - (E + C_E)[:, None, None])
        ends = (2 * w - 1 - D[:, None, None] - (1 - kappa)[:, None, None] * eps) / (1 - E)[:, None, None]
    occurs = C + L > 0
    return Estimate(kappa, D, E, share, phi, np.where(occurs[:, :, None] & occurs[:, None, :], ends, np.nan))


def by(group: Integers, groups: int, values: npt.NDArray[Any]) -> Floats:
    """Add up (sets, n) values by group."""
    at = group + groups * np.arange(len(group))[:, None]
    sums: Floats = np.bincount(at.ravel(), values.ravel(), len(group) * groups).astype(np.float64)
    return sums.reshape(len(group), groups)


def variance(found: Estimate, sample: Sample, taken: Floats | float) -> Floats:
    """Return (sets,) the square of the standard error, by the design; 0 where only rounding is left."""
    H, z, inside = sample.taken.shape[1], found.share * found.phi, sample.weight > 0
    size = by(sample.stratum, H, inside)
    mean = by(sample.stratum, H, z) / np.maximum(size, 1)
    apart = (z - np.take_along_axis(mean, sample.stratum, 1)) * inside
    squared = ((1 - taken) * size / np.maximum(size - 1, 1) * by(sample.stratum, H, apart**2)).sum(axis=1)
    found_squared: Floats = np.where(squared * inside.sum(axis=1) > 1e-20, squared, 0)
    return found_squared


def unseen_items(found: Estimate, sample: Sample) -> tuple[Floats, Floats, Floats]:
    """Return the greatest share of the weight that an unseen item may have; how items would move kappa; their shares.

    (sets,); then (sets, H + 1, m, m) and (sets, H + 1, m) by stratum, label and votes. The last stratum holds labels
    that no item has. An item takes the place of others of its stratum, so that it moves kappa from their mean.
    """
    sets, H, m, f = len(found.kappa), sample.taken.shape[1], found.ends.shape[1], sample.taken
    with np.errstate(all="ignore"):
        left = np.where(f == 0, 1, np.where(f == 1, 0, -f / np.log1p(-f)))

    def weighing(group: Integers, groups: int) -> Floats:
        squares = by(group, groups, found.share**2)
        return by(group, groups, found.share**3) / np.where(squares > 0, squares, np.nan)

    top = np.nanmax(left * weighing(sample.stratum, H), axis=1)
    own = left[..., None] * weighing(sample.stratum * m + sample.label, H * m).reshape(sets, H, m)
    never = np.where(by(sample.label, m, found.share) > 0, np.nan, top[:, None])
    share = np.sqrt(np.concatenate([own, never[:, None]], axis=1) * top[:, None, None])
    mass = by(sample.stratum, H, found.share)
    mean = by(sample.stratum, H, found.share * found.phi) / np.where(mass > 0, mass, 1)
    moves = found.ends[:, None] - np.concatenate([mean, np.zeros((sets, 1))], axis=1)[..., None, None]
    return top, np.where(np.abs(moves) < 1e-12, 0, moves), share


def bases(sample: Sample, w: Floats) -> Iterator[tuple[float, Basis]]:
    """Yield the truth and what intervals are made of, for each sample that has an interval."""
    found = estimate(sample, w)
    with np.errstate(invalid="ignore"):  # where E is 1
        squared, endless = variance(found, sample, sample.taken), variance(found, sample, 0.0)
        top, moves, share = unseen_items(found, sample)
        pull = (moves * share[..., None]).reshape(len(top), -1)
    truth = np.broadcast_to(sample.truth, top.shape)
    count = (sample.weight > 0).sum(axis=1)
    usable = (found.E < 1 - 1e-12) & ((found.kappa == 1) | (endless > 0)) & np.isfinite(truth) & (top > 0)
    for i in np.flatnonzero(usable):
        n, least, greatest = int(count[i]), np.nanargmin(pull[i]), np.nanargmax(pull[i])
        basis = Basis(
            kappa=float(found.kappa[i]),
            E=float(found.E[i]),
            n=n,
            squares=float(squared[i]) * n * (n - 1),
            least=float(moves[i].flat[least]),
            greatest=float(moves[i].flat[greatest]),
            least_share=float(share[i].flat[least // len(w)]),
            greatest_share=float(share[i].flat[greatest // len(w)]),
            unseen=float(top[i]),
            df=n - int((sample.taken[i] < 1).sum()),
        )
        yield float(truth[i]), basis


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell: shares of samples whose interval holds the truth, and mean length over logit's."""

    cell: Cell
    beta: float
    logit: float
    length: float


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Measure a cell with a stream of random numbers of its own, so that any part of the grid repeats."""
    number, cell, sets = job
    rng, found = np.random.default_rng([30, number]), []
    batch = max(1, round(2_000_000 / (cell.n * cell.m / (cell.design.at[0] if cell.design.draw is pool else 1))))
    for first in range(0, sets, batch):
        if (sample := cell.design.draw(rng, cell, min(batch, sets - first))) is None:
            return None
        for truth, basis in bases(sample, cell.w):
            found.append((truth, *beta_interval(basis, 0.05), *logit_interval(basis, 0.05)))
    if len(found) < sets / 10:
        return None
    truths, *limits = np.array(found).T
    # A pool whose unseen items are as those seen has the kappa of its sample, but for rounding.
    beta, logit = (((low <= truths + 1e-9) & (truths <= high + 1e-9)).mean() for low, high in (limits[:2], limits[2:]))
    length = (limits[1] - limits[0]).mean() / (limits[3] - limits[2]).mean()
    return Outcome(cell, float(beta), float(logit), float(length))


RATES = ((0.5, 0.1, 1.0), (0.5, 0.1, 0.0), (0.3, 0.1, 0.0), (0.9, 0.5, 0.0), (0.2, 0.6, 0.25))
DESIGNS = (
    Design("Votes missing", "30% of the votes", ragged, (0.3,)),
    *(Design("Weights", f"lognormal, variation {cv:g}", weighted, (cv,)) for cv in (0.3, 0.7, 1.2)),
    Design("Weights", "labels alike often", by_label),
    *(Design("Weights", f"hard {a:g}, drawn {b:g}, eased {c:g}", by_difficulty, (a, b, c)) for a, b, c in RATES),
    Design("Strata", "labels alike often", by_label),
    *(Design("Strata", f"hard {a:g}, drawn {b:g}, eased {c:g}", by_difficulty, (a, b, c)) for a, b, c in RATES),
    *(Design("Pools", f"{f:.0%} of the pool", pool, (f, 0)) for f in (0.1, 0.5, 0.9)),
    *(Design("Pools", f"{f:.0%}, labels alike often", pool, (f, 1)) for f in (0.1, 0.5, 0.9)),
    *(Design("Ordered categories", f"linear, {far:.0%} far", ordered, (1, far)) for far in (0, 0.3, 1)),
    *(Design("Ordered categories", f"quadratic, {far:.0%} far", ordered, (2, far)) for far in (0, 0.3, 1)),
)
TEXTS = {
    "Votes missing": "Each vote is missing with the same chance; items left with fewer than two votes do not count.",
    "Weights": "The interval knows weights and no strata. *Labels alike often*: each suggested label is drawn as "
    "often, and weighs as it is frequent. *Hard a, drawn b, eased c*: hard items are a of all and b of the sample; "
    "the others have errors c times as often.",
    "Strata": "The same, with the strata known, and so many items from each.",
    "Pools": "Kappa of the whole pool, its votes as they are, from a part; the standard error knows the part.",
    "Ordered categories": "Kappa with linear or quadratic weights, 3, 5 or 7 categories; errors go to neighbours but "
    "for the share that goes anywhere. *logit*: on the range of the plain kappa.",
}


def grid(quick: bool) -> list[Cell]:
    """Return the settings to measure: for each design and n some of all combinations, drawn once."""
    rng, cells = np.random.default_rng(7), []
    for design, n in product(DESIGNS, (30, 100) if quick else (30, 60, 100, 300)):
        weights = design.draw is ordered
        kappas = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95) if weights else (0, 0.2, 0.6, 0.9)
        every = list(product((2, 3, 5), (3, 5, 7) if weights else (2, 3, 5), PREVALENCE, kappas, SOURCES))
        some = rng.permutation(len(every))[: 4 if quick else 15]
        cells += [Cell(design, n, *every[i]) for i in some]
    return cells


def sections(sets: int, quick: bool) -> list[str]:
    """Measure the grid; return a section of the page for each kind of design."""
    jobs, start, outcomes = [(number, cell, sets) for number, cell in enumerate(grid(quick))], perf_counter(), []
    with ProcessPoolExecutor() as workers:
        for number, outcome in enumerate(workers.map(run, jobs, chunksize=4), start=1):
            outcomes += [outcome] if outcome else []
            if number % 200 == 0:
                print(f"{number} of {len(jobs)} cells, {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return [section(name, [o for o in outcomes if o.cell.design.section == name]) for name in TEXTS]


def section(name: str, outcomes: list[Outcome]) -> str:
    """Return a section: a line for each design and n."""
    lines = [f"## {name}", "", TEXTS[name], ""]
    lines += ["| design | n | cells | beta: mean / least | logit: mean / least | length |", "|---|---|---|---|---|---|"]
    for design, n in sorted({(o.cell.design.name, o.cell.n) for o in outcomes}):
        here = [o for o in outcomes if (o.cell.design.name, o.cell.n) == (design, n)]
        both = ([100 * o.beta for o in here], [100 * o.logit for o in here])
        row = [design, str(n), str(len(here)), *(f"{np.mean(held):.1f} / {min(held):.1f}" for held in both)]
        lines.append("| " + " | ".join([*row, f"{np.mean([o.length for o in here]):.2f}"]) + " |")
    worst = min(outcomes, key=lambda o: o.beta)
    cell = worst.cell
    low = [sum(getattr(o, kind) < 0.945 for o in outcomes) for kind in ("beta", "logit")]
    lines += [
        "",
        f"Of {len(outcomes)} cells, the beta interval is below 94.5% in {low[0]}, the logit interval in {low[1]}. "
        f"Least: beta {100 * worst.beta:.1f}% ({cell.design.name}; kappa {cell.kappa:g}, n {cell.n}, N {cell.N}, "
        f"m {cell.m}, {cell.prevalence}, errors in {cell.source}).",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure the grid and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2000, help="samples a cell (default 2000)")
    parser.add_argument("--quick", action="store_true", help="a small part of the grid")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the page")
    options = parser.parse_args()
    error = 100 * (0.95 * 0.05 / options.sets) ** 0.5
    head = INTRODUCTION.format(sets=options.sets, error=error)
    options.page.write_text("\n".join([head, *sections(options.sets, options.quick)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
