"""Simulate the coverage of the confidence intervals of other sampling designs, and write docs/coverage-designs.md.

Missing votes, weights, strata, pools, ordered categories. Samples are drawn and summarized with array code of this
folder; only the limits come from the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.stats.intervals import Basis, beta_interval
from simulation import (
    SOURCES,
    TOO_LOW,
    Floats,
    Generator,
    Integers,
    batches,
    draw,
    logit_interval,
    main,
    mean_and,
    run_all,
    standard_error,
    table,
)

Model = tuple[Floats, Floats, Floats]
"""Shares of the kinds of items; probabilities of each vote and of each label, given the kind."""
INTRODUCTION = """\
# Coverage for other sampling designs

Coverage is the share of simulated samples whose 95% confidence interval contains the true kappa, in percent, for
samples that are not simple random samples with complete votes: {sets:,} samples per cell, so that the standard
error of one cell is about {error:.1f} percentage points. The minimum over many cells is expected to be three or
four standard errors lower by chance.

Settings: a random selection of 2, 3 or 5 votes per item, 2, 3 or 5 categories, uniform or skewed, kappa from 0 to
.9, errors in the votes, in the labels, or in both. *beta* is the default interval of the package. *logit* is a t
interval on the logit scale, shown for comparison; it is not part of the package. *length* is the mean length of the
beta interval divided by that of the logit interval. This page is written by `make validate`.
"""
PREVALENCE = {"uniform": (1.0,), "skewed": (0.7, 0.2, 0.1), "rare": (0.9, 0.07, 0.03)}


@dataclass(frozen=True, slots=True)
class Design:
    """A sampling design and its parameters."""

    section: str
    name: str
    draw: Callable[[Generator, Cell, int], Sample | None]
    at: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: a design, n items, N votes each, m categories, prevalence, the true kappa, and where errors are."""

    design: Design
    n: int
    N: int
    m: int
    prevalence: str
    kappa: float
    source: str

    @property
    def w(self) -> Floats:
        """(m, m) agreement weights; the identity matrix for the unweighted kappa."""
        if self.design.draw is not ordered:
            return np.eye(self.m)
        distance = np.abs(np.subtract.outer(np.arange(self.m), np.arange(self.m))) / (self.m - 1)
        weights: Floats = 1 - distance ** self.design.at[0]
        return weights


@dataclass(frozen=True, slots=True)
class Sample:
    """Many samples: (sets, n, m) votes; the rest is (sets, n), with weight 0 for items that are not in the sample.

    ``taken`` is (sets, H), the sampling fraction of each stratum; ``truth`` is the true kappa.
    """

    votes: Floats
    label: Integers
    weight: Floats
    stratum: Integers
    taken: Floats
    truth: Floats | float


def shares(prevalence: str, m: int) -> Floats:
    """Return the prevalence of the categories; those after the third are as rare as the third."""
    first = PREVALENCE[prevalence]
    frequencies = np.array([first[min(j, len(first) - 1)] for j in range(m)])
    found: Floats = frequencies / frequencies.sum()
    return found


def true_kappa(model: Model, w: Floats) -> float:
    """Return the kappa of a population with weights w."""
    kinds, votes, labels = model
    lean = w[:, None, :] + w - 1
    D = float(np.einsum("t,tx,ty,tl,xy,xyl->", kinds, votes, votes, labels, w, lean, optimize=True))
    C, L = kinds @ votes, kinds @ labels
    E = float((C * (w @ C) * (2 * (w @ L) - 1)).sum())
    return (D - E) / (1 - E)


def model(cell: Cell, kinds: Floats, answers: Callable[[float], Floats]) -> Model | None:
    """Return the model with the kappa of the cell, given the answers by accuracy, or None if there is none."""

    def at(accuracy: float) -> Model:
        right, mixed = answers(1.0), answers(accuracy)
        votes = right if cell.source == "labels only" else mixed
        return kinds, votes, right if cell.source == "votes only" else mixed

    steps = np.linspace(0, 1, 50).tolist()
    reached = [true_kappa(at(step), cell.w) for step in steps]
    # The highest of several accuracies: far below it, answers are worse than random.
    crossed = [i for i in range(49) if reached[i] - 1e-9 < cell.kappa <= reached[i + 1]]
    if not crossed:
        return None
    low, high = steps[crossed[-1] : crossed[-1] + 2]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if true_kappa(at(middle), cell.w) < cell.kappa else (low, middle)
    return at(high)


def guessing(cell: Cell, hard: float = 1.0, eased: float = 1.0) -> Model | None:
    """Return a model in which errors are guesses by prevalence; easy kinds first, then hard ones."""
    truth, right = shares(cell.prevalence, cell.m), np.eye(cell.m)

    def answers(accuracy: float) -> Floats:
        errors = eased * (1 - accuracy), 1 - accuracy
        return np.concatenate([(1 - error) * right + error * truth for error in errors])

    return model(cell, np.concatenate([(1 - hard) * truth, hard * truth]), answers)


def votes_on(rng: Generator, chances: Floats, kind: Integers, N: int, missing: float = 0.0) -> Floats:
    """Draw N votes on each item, each of which may be missing."""
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
    """Draw items with missing votes."""
    return plain(rng, cell, sets, guessing(cell), cell.design.at[0])


def weighted(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw items with independent lognormal weights."""
    if (sample := plain(rng, cell, sets, guessing(cell))) is None:
        return None
    sample.weight[:] = np.exp(rng.normal(0, sqrt(np.log1p(cell.design.at[0] ** 2)), sample.weight.shape))
    return sample


def by_label(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw equally many items of each suggested label: exactly, with strata, or on average, with weights."""
    if (found := guessing(cell)) is None:
        return None
    kinds, votes, labels = found
    L, strata, shape = kinds @ labels, cell.design.section == "Strata", (sets, cell.n)
    label = np.tile(np.arange(cell.n) % cell.m, (sets, 1)) if strata else rng.integers(0, cell.m, shape)
    P = votes_on(rng, votes, draw(rng, (kinds[:, None] * labels).T / L[:, None], label), cell.N)
    weight = (L / (np.bincount(label[0], minlength=cell.m) if strata else 1))[label]
    return Sample(P, label, weight, label * strata, np.zeros((sets, cell.m if strata else 1)), cell.kappa)


def by_difficulty(rng: Generator, cell: Cell, sets: int) -> Sample | None:
    """Draw hard items at another rate than in the population, with strata or with weights."""
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
    """Draw pools, and a sample from each: at random, or up to n/m items of each suggested label."""
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
    """Draw items with errors to neighboring categories, and a share of errors to any other category."""
    far, right = cell.design.at[1], np.eye(cell.m)
    beside = np.eye(cell.m, k=1) + np.eye(cell.m, k=-1)
    wrong = (1 - far) * beside / beside.sum(axis=1, keepdims=True) + far * (1 - right) / (cell.m - 1)
    truth = shares(cell.prevalence, cell.m)
    return plain(rng, cell, sets, model(cell, truth, lambda accuracy: accuracy * right + (1 - accuracy) * wrong))


@dataclass(frozen=True, slots=True)
class Estimate:
    """By sample: kappa, its parts, items' shares of the weight, influence, and that of label j with all votes v."""

    kappa: Floats
    D: Floats
    E: Floats
    share: Floats
    phi: Floats
    ends: Floats


def estimate(sample: Sample, w: Floats) -> Estimate:
    """Estimate kappa and the influence of items with agreement weights w."""
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
    """Return (sets,) the squared standard error of the design; 0 if it is rounding error."""
    H, z, inside = sample.taken.shape[1], found.share * found.phi, sample.weight > 0
    size = by(sample.stratum, H, inside)
    mean = by(sample.stratum, H, z) / np.maximum(size, 1)
    apart = (z - np.take_along_axis(mean, sample.stratum, 1)) * inside
    squared = ((1 - taken) * size / np.maximum(size - 1, 1) * by(sample.stratum, H, apart**2)).sum(axis=1)
    found_squared: Floats = np.where(squared * inside.sum(axis=1) > 1e-20, squared, 0)
    return found_squared


def unseen_items(found: Estimate, sample: Sample) -> tuple[Floats, Floats, Floats]:
    """Return the largest weight of an unseen item, the influence of unseen items, and their weights.

    The shapes are (sets,), (sets, H + 1, m, m) and (sets, H + 1, m), by stratum, label and votes. The last stratum is
    for labels that no item has. An unseen item replaces others of its stratum, so that their mean is subtracted.
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
    """Yield the true kappa and the basis of the interval, for each sample that has one."""
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
    """Coverage of both intervals in a cell, and the ratio of their mean lengths."""

    cell: Cell
    beta: float
    logit: float
    length: float


def run(job: tuple[int, Cell, int]) -> Outcome | None:
    """Simulate a cell with its own random stream, so that a part of the grid can be repeated."""
    number, cell, sets = job
    rng, found = np.random.default_rng([30, number]), []
    fraction = cell.design.at[0] if cell.design.draw is pool else 1
    for size in batches(sets, 2_000_000 / (cell.n * cell.m / fraction)):
        if (sample := cell.design.draw(rng, cell, size)) is None:
            return None
        for truth, basis in bases(sample, cell.w):
            found.append((truth, *beta_interval(basis, 0.05), *logit_interval(basis, 0.05)))
    if len(found) < sets / 10:
        return None
    truths, *limits = np.array(found).T
    # The kappa of a pool can equal that of its sample up to rounding.
    beta, logit = (((low <= truths + 1e-9) & (truths <= high + 1e-9)).mean() for low, high in (limits[:2], limits[2:]))
    length = (limits[1] - limits[0]).mean() / (limits[3] - limits[2]).mean()
    return Outcome(cell, float(beta), float(logit), float(length))


RATES = ((0.5, 0.1, 1.0), (0.5, 0.1, 0.0), (0.3, 0.1, 0.0), (0.9, 0.5, 0.0), (0.2, 0.6, 0.25))
DESIGNS = (
    Design("Votes missing", "30% of the votes", ragged, (0.3,)),
    *(Design("Weights", f"lognormal, CV {cv:g}", weighted, (cv,)) for cv in (0.3, 0.7, 1.2)),
    Design("Weights", "label shares equal", by_label),
    *(Design("Weights", f"hard {a:g}, sampled {b:g}, easy {c:g}", by_difficulty, (a, b, c)) for a, b, c in RATES),
    Design("Strata", "label shares equal", by_label),
    *(Design("Strata", f"hard {a:g}, sampled {b:g}, easy {c:g}", by_difficulty, (a, b, c)) for a, b, c in RATES),
    *(Design("Pools", f"{f:.0%} of the pool", pool, (f, 0)) for f in (0.1, 0.5, 0.9)),
    *(Design("Pools", f"{f:.0%}, label shares equal", pool, (f, 1)) for f in (0.1, 0.5, 0.9)),
    *(Design("Ordered categories", f"linear, {far:.0%} distant", ordered, (1, far)) for far in (0, 0.3, 1)),
    *(Design("Ordered categories", f"quadratic, {far:.0%} distant", ordered, (2, far)) for far in (0, 0.3, 1)),
)
TEXTS = {
    "Votes missing": "Each vote is missing with the same probability. Items with fewer than two votes are excluded.",
    "Weights": "The interval uses sampling weights without strata. *Label shares equal*: the suggested labels are "
    "sampled equally often and weighted by their frequency. *Hard a, sampled b, easy c*: hard items are the fraction a "
    "of the population and b of the sample; errors on the other items are c times as frequent. *Lognormal*: random "
    "weights with the given coefficient of variation.",
    "Strata": "The same designs with known strata and a fixed number of items from each stratum.",
    "Pools": "The target is the kappa of a finite pool with fixed votes. The sample is the given fraction of the pool, "
    "and the standard error uses the fraction.",
    "Ordered categories": "Kappa with linear or quadratic weights and 3, 5 or 7 categories. Errors go to neighboring "
    "categories, except for the given percentage of distant errors, which go to any category. *logit* uses the range "
    "of the unweighted kappa.",
}


def grid(full: bool) -> list[Cell]:
    """Return the settings to simulate: a random selection of all combinations for each design and n."""
    rng, cells = np.random.default_rng(7), []
    for design, n in product(DESIGNS, (30, 60, 100, 300) if full else (30, 100)):
        weights = design.draw is ordered
        kappas = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95) if weights else (0, 0.2, 0.6, 0.9)
        every = list(product((2, 3, 5), (3, 5, 7) if weights else (2, 3, 5), PREVALENCE, kappas, SOURCES))
        some = rng.permutation(len(every))[: 15 if full else 4]
        cells += [Cell(design, n, *every[i]) for i in some]
    return cells


def lines(sets: int, full: bool) -> Iterator[str]:
    """Yield the page: a section for each kind of design."""
    outcomes = run_all(run, [(number, cell, sets) for number, cell in enumerate(grid(full))])
    yield INTRODUCTION.format(sets=sets, error=standard_error(sets))
    for number, name in enumerate(TEXTS):
        yield from [""] * bool(number)
        yield from part(name, [outcome for outcome in outcomes if outcome.cell.design.section == name])


def part(name: str, outcomes: list[Outcome]) -> list[str]:
    """Return a section: a row for each design and n."""
    rows = []
    for design, n in sorted({(o.cell.design.name, o.cell.n) for o in outcomes}):
        here = [o for o in outcomes if (o.cell.design.name, o.cell.n) == (design, n)]
        both = (mean_and(min, [o.beta for o in here]), mean_and(min, [o.logit for o in here]))
        rows.append([design, str(n), str(len(here)), *both, f"{np.mean([o.length for o in here]):.2f}"])
    worst = min(outcomes, key=lambda o: o.beta)
    cell = worst.cell
    beta, logit = (sum(getattr(o, kind) < TOO_LOW for o in outcomes) for kind in ("beta", "logit"))
    return [
        f"## {name}",
        "",
        TEXTS[name],
        "",
        *table(["design", "n", "cells", "beta: mean / min", "logit: mean / min", "length"], rows),
        "",
        f"Coverage is below 94.5% in {beta} of {len(outcomes)} cells for the beta interval and in {logit} for the "
        f"logit interval. Lowest: beta {100 * worst.beta:.1f}% ({cell.design.name}; kappa {cell.kappa:g}, n {cell.n}, "
        f"N {cell.N}, m {cell.m}, {cell.prevalence}, errors in {cell.source}).",
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-designs.md", 2000, lines))
