"""Simulate the coverage of intervals and the size of tests of differences, and write docs/coverage-differences.md.

Samples are drawn as counts of patterns and summarized with array code of this folder; only limits and p-values come
from the package.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr, stdtrit

import simulation
from dhkappa import dh_kappa
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
    section,
    standard_error,
)

FEW = 10
prevalence = partial(simulation.prevalence, rare=0.1)


@dataclass(frozen=True, slots=True)
class Model:
    """Kinds of items: their shares, (S,), and the probabilities of votes, (S, m), and of labels, (S, m, ..., m).

    ``labels`` has an axis for each labeler: their labels may be dependent.
    """

    share: Floats
    votes: Floats
    labels: Floats

    def kappas(self) -> list[float]:
        """Return the kappa of each labeler in the population (eq. 4-13)."""
        C, axes, found = self.share @ self.votes, range(1, self.labels.ndim), []
        for own in axes:
            labels = self.labels.sum(axis=tuple(axis for axis in axes if axis != own))
            D = float((self.share[:, None] * self.votes**2 * (2 * labels - 1)).sum())
            E = float((C**2 * (2 * self.share @ labels - 1)).sum())
            found.append((D - E) / (1 - E))
        return found

    @property
    def difference(self) -> float:
        """Difference between the kappas of the first and the second labeler."""
        first, second = self.kappas()
        return first - second


def both(first: Floats, second: Floats) -> Floats:
    """Return the probabilities of two independent labels, given the item."""
    return first[:, :, None] * second[:, None, :]


def apart(truth: Floats, votes: float, first: float, second: float) -> Model:
    """Return two labelers with independent errors."""
    m = len(truth)
    return Model(truth, answers(votes, m), both(answers(first, m), answers(second, m)))


def near(truth: Floats, votes: float, accuracy: float, changed: float, *, other: bool) -> Model:
    """Return a labeler and a copy in which some labels are redrawn, or changed to another label."""
    m, one = len(truth), answers(accuracy, len(truth))
    fresh = one[:, :, None] * (1 - np.eye(m)) / (m - 1) if other else both(one, one)
    return Model(truth, answers(votes, m), (1 - changed) * one[:, :, None] * np.eye(m) + changed * fresh)


def together(truth: Floats, votes: float, first: float, second: float) -> Model:
    """Return two labelers and annotators who make more errors on the same quarter of the items."""
    m, hard = len(truth), 0.25

    def split(accuracy: float) -> Floats:
        low = max(1 / m, accuracy - 0.3)
        return np.concatenate([answers(min(1, (accuracy - hard * low) / (1 - hard)), m), answers(low, m)])

    one, labels = split(first), both(split(first), split(second))
    labels[m:] = (labels[m:] + one[m:, :, None] * np.eye(m)) / 2
    return Model(np.concatenate([truth * (1 - hard), truth * hard]), split(votes), labels)


def equal_kappas(make: Callable[[float], Model], low: float, high: float) -> Model:
    """Find the model whose labelers have equal kappas."""
    sign = make(low).difference > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (make(middle).difference > 0) == sign else (low, middle)
    return make(high)


def one_sure(truth: Floats, votes: float, accuracy: float) -> Model:
    """Return labelers with equal kappas, of which the second makes no errors on one category."""
    m = len(truth)

    def make(second: float) -> Model:
        sure = answers(second, m)
        sure[0] = np.eye(m)[0]
        return Model(truth, answers(votes, m), both(answers(accuracy, m), sure))

    return equal_kappas(make, 1 / m, 1)


def few_and_many(truth: Floats, wrong: float) -> Model:
    """Return labelers with equal kappas: one with few errors on unanimous items, one with many errors on others."""
    m, hard, sure = len(truth), 0.4, np.eye(len(truth))
    votes = np.concatenate([answers(0.97, m), answers(0.6, m)])
    first = np.concatenate([answers(1 - wrong, m), sure])

    def make(second: float) -> Model:
        labels = both(first, np.concatenate([sure, answers(1 - second, m)]))
        return Model(np.concatenate([truth * (1 - hard), truth * hard]), votes, labels)

    return equal_kappas(make, 0, 1)


@dataclass(frozen=True, slots=True)
class Patterns:
    """The K patterns: probabilities, (K,); vote shares, (K, m); labels and d by labeler, (K, A)."""

    chance: Floats
    c: Floats
    labels: Integers
    d: Floats


def patterns(model: Model, N: int) -> Patterns:
    """Return all patterns of an item with N votes."""
    m = model.votes.shape[1]
    tallies = np.array([tally for tally in product(range(N + 1), repeat=m) if sum(tally) == N])
    ways = np.array([math.factorial(N) / math.prod(map(math.factorial, tally)) for tally in tallies.tolist()])
    votes = ways * (model.votes[:, None] ** tallies).prod(axis=-1)
    chance = np.tensordot(votes * model.share[:, None], model.labels, (0, 0))
    tally, *labels = np.nonzero(chance > 1e-15)
    g = (tallies * (tallies - 1) / (N * (N - 1)))[tally]
    d = [2 * np.take_along_axis(g, own[:, None], 1)[:, 0] - g.sum(axis=1) for own in labels]
    kept = chance[(tally, *labels)]
    return Patterns(kept / kept.sum(), tallies[tally] / N, np.stack(labels, 1), np.stack(d, 1))


@dataclass(frozen=True, slots=True)
class Judged:
    """A labeler in many samples: kappa, D, E, and the influence of an item of each pattern, (sets, K)."""

    kappa: Floats
    D: Floats
    E: Floats
    phi: Floats


def judge(kinds: Patterns, counts: Floats) -> tuple[list[Judged], Floats]:
    """Return the kappas of each labeler, given counts of patterns, (sets, K), and C, (sets, m)."""
    share = counts / counts.sum(axis=1, keepdims=True)
    C, found = share @ kinds.c, []
    for labels, d in zip(kinds.labels.T, kinds.d.T, strict=True):
        L, D = share @ np.eye(C.shape[1])[labels], share @ d
        C_E = (C**2 * L).sum(axis=1)
        E = 2 * C_E - (C**2).sum(axis=1)
        kappa = (D - E) / (1 - E)
        eps = 2 * ((C * (2 * L - 1)) @ kinds.c.T + (C**2)[:, labels] - (E + C_E)[:, None])
        found.append(Judged(kappa, D, E, (d - D[:, None] - (1 - kappa)[:, None] * eps) / (1 - E)[:, None]))
    return found, C


@dataclass(frozen=True, slots=True)
class Gaps:
    """Differences between two labelers in many samples of n items.

    ``squares`` and ``cubes`` are sums over items of powers of the influence on the difference; ``reach`` is the largest
    influence of an item; ``discordant`` counts items with two different labels; ``swap`` is the p-value of the label
    swap test, or NaN.
    """

    n: int
    difference: Floats
    squares: Floats
    cubes: Floats
    reach: Floats
    discordant: Floats
    swap: Floats


def gaps(kinds: Patterns, counts: Floats, pair: tuple[int, int] = (0, 1), *, swap: bool = False) -> Gaps:
    """Compare two labelers, without the samples in which a kappa is undefined."""
    with np.errstate(all="ignore"):
        judged, C = judge(kinds, counts)
    first, second = (judged[a] for a in pair)
    n = int(counts[0].sum())
    ok = (1 - first.E > 1e-12) & (1 - second.E > 1e-12)
    move, counts = (first.phi - second.phi)[ok], counts[ok]
    squares = (counts * move**2).sum(axis=1)
    differ = kinds.labels[:, pair[0]] != kinds.labels[:, pair[1]]
    return Gaps(
        n=n,
        difference=(first.kappa - second.kappa)[ok],
        squares=np.where(squares < 1e-20 * n, 0, squares),
        cubes=(counts * move**3).sum(axis=1),
        reach=(1 / (1 - first.E) + 1 / (1 - second.E))[ok],
        discordant=counts[:, differ].sum(axis=1),
        swap=swap_test(kinds, counts, pair, judged, C, ok) if swap else np.full(int(ok.sum()), np.nan),
    )


def swap_test(
    kinds: Patterns, counts: Floats, pair: tuple[int, int], judged: list[Judged], C: Floats, ok: npt.NDArray[np.bool_]
) -> Floats:
    """Return the p-values of the label swap test, over all ways to swap.

    1 for samples without discordant items, NaN for samples with many.
    """
    a, b = (kinds.labels[:, own] for own in pair)
    differ = np.flatnonzero(a != b)
    D, E = (np.stack([getattr(judged[own], name)[ok] for own in pair]) for name in "DE")
    squared, n = C[ok] ** 2, counts[0].sum()
    number = counts[:, differ].sum(axis=1).astype(int)
    p = np.where(number == 0, 1, np.nan)
    for k in range(1, FEW):
        rows = np.flatnonzero(number == k)
        if not rows.size:
            continue
        item = np.repeat(np.tile(differ, rows.size), counts[rows][:, differ].astype(int).ravel()).reshape(-1, k)
        tossed = np.array(list(product((0.0, 1.0), repeat=k))).T
        on_D = (kinds.d[item, pair[1]] - kinds.d[item, pair[0]]) @ tossed / n
        on_E = 2 * (squared[rows[:, None], b[item]] - squared[rows[:, None], a[item]]) @ tossed / n
        with np.errstate(all="ignore"):
            first, second = (
                1 - (1 - D[own, rows, None] - sign * on_D) / (1 - E[own, rows, None] - sign * on_E)
                for own, sign in ((0, 1), (1, -1))
            )
        found = np.abs(first - second)
        p[rows] = (~(found < found[:, :1] - 1e-12)).mean(axis=1)  # the first way swaps no labels
    return p


def package(seen: Gaps) -> KappaDifference:
    """Return the differences as the type of the package."""
    n = seen.n
    skew = seen.cubes / np.where(seen.squares > 0, seen.squares, 1) ** 1.5
    return KappaDifference(
        seen.difference, np.sqrt(seen.squares / (n * (n - 1))), skew, n, n - 1, -seen.reach, seen.reach
    )


def t_limits(seen: Gaps, confidence_level: float) -> tuple[Floats, Floats]:
    """Return the limits of the t interval."""
    half = stdtrit(seen.n - 1, (1 + confidence_level) / 2) * np.sqrt(seen.squares / (seen.n * (seen.n - 1)))
    return seen.difference - half, seen.difference + half


def t_test(seen: Gaps) -> Floats:
    """Return the p-values of the t test; 1 if no item changes the difference."""
    with np.errstate(all="ignore"):
        t = np.abs(seen.difference) / np.sqrt(seen.squares / (seen.n * (seen.n - 1)))
    p: Floats = np.where(seen.squares > 0, 2 * stdtr(seen.n - 1, -t), 1.0)
    return p


def combined_test(seen: Gaps) -> Floats:
    """Return the p-values of ``compare``: of the label swap test with few discordant items, else of the interval."""
    p: Floats = np.where(np.isnan(seen.swap), package(seen).pvalue(), seen.swap)
    return p


def drawn(model: Model, n: int, N: int, sets: int, rng: Generator) -> Iterator[tuple[Patterns, Floats]]:
    """Draw samples as counts of patterns, in batches."""
    kinds = patterns(model, N)
    for size in batches(sets, 1_000_000 // len(kinds.chance)):
        yield kinds, rng.multinomial(n, kinds.chance, size).astype(float)


RULES: dict[str, Callable[[Gaps, float], tuple[Floats, Floats]]] = {
    "compare": lambda seen, confidence_level: package(seen).limits(confidence_level),
    "t": t_limits,
}
TESTS = {"compare": combined_test, "t": t_test}
PAIRS: dict[str, Callable[[Floats, float], Model]] = {
    "equal (.8, .8)": lambda truth, votes: apart(truth, votes, 0.8, 0.8),
    "close (.9, .85)": lambda truth, votes: apart(truth, votes, 0.9, 0.85),
    "far (.95, .6)": lambda truth, votes: apart(truth, votes, 0.95, 0.6),
    "copy, 5% redrawn": lambda truth, votes: near(truth, votes, 0.85, 0.05, other=False),
    "copy, 5% changed": lambda truth, votes: near(truth, votes, 0.85, 0.05, other=True),
    "hard items (.85, .75)": lambda truth, votes: together(truth, votes, 0.85, 0.75),
}
EQUALS: dict[str, Callable[[Floats], Model]] = {
    "exchangeable, .8": lambda truth: apart(truth, 0.85, 0.8, 0.8),
    "exchangeable, .95": lambda truth: apart(truth, 0.9, 0.95, 0.95),
    "exchangeable, copy with 10% redrawn": lambda truth: near(truth, 0.85, 0.85, 0.1, other=False),
    "exchangeable, hard items": lambda truth: together(truth, 0.85, 0.8, 0.8),
    "one always right on a category": lambda truth: one_sure(truth, 0.85, 0.9),
    "few large errors, many small ones": lambda truth: few_and_many(truth, 0.03),
}


def held(model: Model, n: int, N: int, sets: int, rng: Generator, levels: tuple[float, ...]) -> Floats:
    """Return (levels, rules, 2): the coverage of the intervals and their mean length."""
    target, parts = model.difference, []
    for kinds, counts in drawn(model, n, N, sets, rng):
        seen = gaps(kinds, counts)
        ends = np.array([[rule(seen, confidence_level) for rule in RULES.values()] for confidence_level in levels])
        low, high = ends[:, :, 0], ends[:, :, 1]
        parts.append(np.stack([(low <= target + 1e-12) & (target - 1e-12 <= high), high - low], axis=2))
    found: Floats = np.concatenate(parts, axis=3).mean(axis=3)
    return found


def coverage(sets: int, *, full: bool) -> list[str]:
    """Return the section on confidence intervals."""
    sizes, votes = ((30, 60, 100, 200, 500), (0.7, 0.85, 0.95)) if full else ((30, 200), (0.85,))
    designs = [
        (2, 2, "uniform"),
        (5, 2, "rare"),
        (3, 3, "skewed"),
        (5, 3, "uniform"),
        (2, 5, "rare"),
        (3, 5, "uniform"),
    ]
    rows, seen, number = [], [], 0
    for kind, n in product(PAIRS, sizes):
        here = []
        for (N, m, shares), accuracy in product(designs if full else designs[:3], votes):
            model = PAIRS[kind](prevalence(shares, m), accuracy)
            here.append(held(model, n, N, sets, np.random.default_rng([7, 1, number]), (LEVEL,))[0])
            number += 1
        cells, length = np.array(here)[..., 0], np.array(here)[..., 1]
        seen.append(cells)
        texts = [mean_and(min, column) for column in cells.T.tolist()]
        rows.append([kind, str(n), *texts, *(f"{x:.2f}" for x in (length / length[:, -1:]).mean(axis=0)[:-1])])
    low = (np.concatenate(seen) < TOO_LOW).sum(axis=0).tolist()
    text = (
        "Coverage of the 95% confidence interval of a paired difference, in percent: mean / min over cells with 2, 3 "
        "or 5 votes per item, 2, 3 or 5 categories, uniform, skewed or one category on 90% of the items, and annotator "
        f"accuracies {', '.join(f'{x:g}' for x in votes)}; {sets:,} samples per cell, standard error about "
        f"{standard_error(sets):.1f} percentage points. The numbers in parentheses are the accuracies of the two "
        "labelers. The t interval has length 0 if no item changes the difference. *length* is the mean length divided "
        "by that of the t interval."
    )
    heads = ["labelers", "n", *(f"{name}: mean / min" for name in RULES), "length"]
    counted = f"Coverage is below 94.5% in {low[0]} of {sum(map(len, seen)):,} cells for compare and in {low[1]} for t."
    return [*section("Differences between labelers", text, heads, rows), "", counted]


def few_discordant(sets: int, *, full: bool) -> list[str]:
    """Return the section on labelers that rarely differ: one makes no errors, the other a few."""
    sizes, levels = ((30, 60, 100, 200, 500) if full else (30, 200)), (0.9, 0.95, 0.99)
    truth, rows = prevalence("uniform", 2), []
    for number, expected in enumerate((0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7) if full else (1, 3, 4.5)):
        found = []
        for place, (n, votes) in enumerate(product(sizes, (1, 0.95))):
            rng = np.random.default_rng([7, 2, number, place])
            found.append(held(apart(truth, votes, 1, 1 - expected / n), n, 2, sets, rng, levels))
        least = 100 * np.array(found)[..., 0].min(axis=0)
        texts = [" / ".join(f"{x:.1f}" for x in by_level) for by_level in least.T]
        rows.append([f"{expected:g}", f"{100 * math.exp(-expected):.0f}%", *texts])
    text = (
        "Lowest coverage at the confidence levels 90% / 95% / 99%, over n "
        f"{', '.join(map(str, sizes))} and annotator accuracies 1 and .95. One labeler makes no errors, and the other "
        f"makes the given expected number of errors; {sets:,} samples per cell. *none* is the approximate share of "
        "samples without such an item; they are included."
    )
    return section("Few discordant items", text, ["expected errors", "none", *RULES], rows)


def type_one(sets: int, *, full: bool) -> list[str]:
    """Return the section on tests of two labelers with equal kappas."""
    sizes, rows, number = ((30, 60, 100, 200) if full else (30, 200)), [], 0
    for (kind, make), n in product(EQUALS.items(), sizes):
        here = []
        for m, shares in product((2, 3), ("uniform", "rare")):
            model = make(prevalence(shares, m))
            if abs(model.difference) < 1e-9:
                batches = drawn(model, n, 3, sets, np.random.default_rng([7, 3, number]))
                seen = [gaps(*batch, swap=True) for batch in batches]
                here.append([np.mean(np.concatenate([test(part) for part in seen]) < 0.05) for test in TESTS.values()])
            number += 1
        rows.append([kind, str(n), *(mean_and(max, column) for column in zip(*here, strict=True))])
    text = (
        "Percentage of samples with a p-value below .05 when both kappas are equal: mean / max over two or three "
        f"categories, uniform or one category on 90% of the items; 3 votes per item, {sets:,} samples per cell. "
        f"*compare* uses the label swap test if fewer than {FEW} items are discordant, and otherwise 1 minus the "
        "confidence level at which the interval reaches 0."
    )
    heads = ["labelers", "n", *(f"{name}: mean / max" for name in TESTS)]
    return section("Tests of labelers with equal kappa", text, heads, rows)


def family(sets: int, *, full: bool) -> list[str]:
    """Return the section on Holm's correction for all pairs of four labelers."""
    one, rows = answers(0.8, 3), []
    model = Model(prevalence("uniform", 3), answers(0.85, 3), np.einsum("sa,sb,sc,sd->sabcd", one, one, one, one))
    for n in (50, 100, 200) if full else (50,):
        batches = list(drawn(model, n, 3, sets, np.random.default_rng([7, 4, n])))
        for name, test in TESTS.items():
            p = np.concatenate(
                [
                    np.stack([test(gaps(*batch, pair, swap=True)) for pair in combinations(range(4), 2)])
                    for batch in batches
                ],
                axis=1,
            )
            # Holm rejects a hypothesis if and only if the smallest p-value is below .05 / number of tests.
            rates = (p[0] < 0.05).mean(), (p.min(axis=0) < 0.05).mean(), (len(p) * p.min(axis=0) < 0.05).mean()
            rows.append([str(n), name, *(f"{100 * rate:.1f}" for rate in rates)])
    text = (
        "Four labelers with accuracy .8; three categories, 3 votes per item, annotator accuracy .85. Percentage of "
        "samples with a p-value below .05 for one pair, for any of the six pairs, and for any pair after Holm's "
        f"correction; {sets:,} samples."
    )
    return section("All pairs of four labelers", text, ["n", "test", "one pair", "any pair", "any pair, Holm"], rows)


def random_labels(sets: int, *, full: bool) -> list[str]:
    """Return the section on the permutation test."""
    rows, some = [], ((2, 0), (3, 0), (5, 0), (10, 0), (2, 0.05))
    for n, (m, rare) in product((20, 50, 200) if full else (20,), some if full else some[-1:]):
        rng, p = np.random.default_rng([7, 5, n, m, *([1] if rare else [])]), []
        for _ in range(sets):
            truth = rng.binomial(1, rare, n) if rare else rng.integers(0, m, n)
            other = (truth[:, None] + rng.integers(1, m, (n, 3))) % m
            votes = np.where(rng.random((n, 3)) < (0.97 if rare else 0.85), truth[:, None], other)
            kappa = dh_kappa(votes, rng.binomial(1, rare, n) if rare else rng.integers(0, m, n))
            if kappa.exact is None:  # all votes and labels are equal
                p.append([1.0] * 4)
                continue
            gamma = kappa.permutation_test("gamma")
            normal = 1.0 if math.isnan(gamma.z) else float(ndtr(-gamma.z))
            drawn = kappa.permutation_test("monte-carlo", n_resamples=199, rng=rng)
            p.append([kappa.permutation_test().pvalue, gamma.pvalue, normal, drawn.pvalue])
        rates = (f"{100 * rate:.1f}" for rate in (np.array(p) <= 0.05).mean(axis=0))
        rows.append([str(n), f"{m}, one rare" if rare else str(m), *rates])
    text = (
        'Percentage of samples with a p-value of at most .05 for `permutation_test()` with alternative "greater" when '
        "the labels are random: 3 votes per item, annotator accuracy .85, or .97 if a category is rare (one in twenty "
        f"items and labels); {sets:,} samples per cell, standard error about {standard_error(sets):.1f} percentage "
        "points. The default counts all permutations where that is fast, and otherwise uses the gamma distribution. "
        "The normal distribution, which earlier versions used instead, is shown for comparison. Monte Carlo uses 199 "
        "resamples. With few items only some p-values are possible, so exact p-values are at most .05 less often than "
        "in 5% of the samples."
    )
    heads = ["n", "categories", "default", "gamma", "normal", "Monte Carlo"]
    return section("Permutation test with random labels", text, heads, rows)


def lines(sets: int, full: bool) -> Iterator[str]:
    """Yield the page; the last section has half the samples, because it calls the package for each."""
    start = perf_counter()
    yield "# Coverage of differences between labelers\n"
    yield "This page is written by `make validate`. *compare* is the interval or test of `dhkappa.compare`. *t* is the"
    yield "plain t interval, shown for comparison."
    for part in (coverage, few_discordant, type_one, family, random_labels):
        yield ""
        yield from part(max(1, sets // 2) if part is random_labels else sets, full=full)
        print(f"{part.__name__}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-differences.md", 2000, lines))
