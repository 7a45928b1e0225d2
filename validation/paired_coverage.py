"""How often intervals of a difference between two labelers hold the truth, and how often tests reject what is true.

Samples are drawn and summarised here with plain array code of its own, a table of patterns for many samples at once;
only limits and p-values come from the package.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from textwrap import wrap
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from dhkappa import dh_kappa
from dhkappa.stats.intervals import Gap

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
LEVEL = 0.95
PAGE = Path(__file__).parents[1] / "docs" / "coverage-differences.md"
FEW = 10


@dataclass(frozen=True, slots=True)
class Model:
    """Kinds of items: how often each occurs, (S,); the chance of each vote, (S, m); and of labels, (S, m, ..., m).

    ``labels`` has an axis for each labeler: their answers to an item may depend on each other.
    """

    share: Floats
    votes: Floats
    labels: Floats

    def kappas(self) -> list[float]:
        """Return the kappa of each labeler in the population, by eq. 4-13."""
        C, axes, found = self.share @ self.votes, range(1, self.labels.ndim), []
        for own in axes:
            labels = self.labels.sum(axis=tuple(axis for axis in axes if axis != own))
            D = float((self.share[:, None] * self.votes**2 * (2 * labels - 1)).sum())
            E = float((C**2 * (2 * self.share @ labels - 1)).sum())
            found.append((D - E) / (1 - E))
        return found

    @property
    def difference(self) -> float:
        """How far the first labeler's kappa is above the second's."""
        first, second = self.kappas()
        return first - second


def prevalence(kind: str, m: int) -> Floats:
    """Return how often each category is the truth."""
    if kind == "rare":
        return np.array([0.9, *[0.1 / (m - 1)] * (m - 1)])
    sample_weight = np.ones(m) if kind == "uniform" else np.arange(m, 0.0, -1.0)
    found: Floats = sample_weight / sample_weight.sum()
    return found


def answers(accuracy: float, m: int) -> Floats:
    """Return (m, m): the chance of each answer, given each truth."""
    wrong = (1 - accuracy) / (m - 1)
    return np.full((m, m), wrong) + np.eye(m) * (accuracy - wrong)


def both(first: Floats, second: Floats) -> Floats:
    """Return the chances of two labels that do not depend on each other, given the item."""
    return first[:, :, None] * second[:, None, :]


def apart(truth: Floats, votes: float, first: float, second: float) -> Model:
    """Return two labelers who err on their own."""
    m = len(truth)
    return Model(truth, answers(votes, m), both(answers(first, m), answers(second, m)))


def near(truth: Floats, votes: float, accuracy: float, changed: float, *, other: bool) -> Model:
    """Return a labeler and a copy that answers some items afresh, or surely with an other label."""
    m, one = len(truth), answers(accuracy, len(truth))
    fresh = one[:, :, None] * (1 - np.eye(m)) / (m - 1) if other else both(one, one)
    return Model(truth, answers(votes, m), (1 - changed) * one[:, :, None] * np.eye(m) + changed * fresh)


def together(truth: Floats, votes: float, first: float, second: float) -> Model:
    """Return two labelers and a panel who all err more often on the same quarter of the items, the labelers alike."""
    m, hard = len(truth), 0.25

    def split(accuracy: float) -> Floats:
        low = max(1 / m, accuracy - 0.3)
        return np.concatenate([answers(min(1, (accuracy - hard * low) / (1 - hard)), m), answers(low, m)])

    one, labels = split(first), both(split(first), split(second))
    labels[m:] = (labels[m:] + one[m:, :, None] * np.eye(m)) / 2
    return Model(np.concatenate([truth * (1 - hard), truth * hard]), split(votes), labels)


def equal_kappas(make: Callable[[float], Model], low: float, high: float) -> Model:
    """Return the model between two whose labelers have the same kappa."""
    sign = make(low).difference > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (make(middle).difference > 0) == sign else (low, middle)
    return make(high)


def one_sure(truth: Floats, votes: float, accuracy: float) -> Model:
    """Return labelers of the same kappa, of whom the second is never wrong on one category."""
    m = len(truth)

    def make(second: float) -> Model:
        sure = answers(second, m)
        sure[0] = np.eye(m)[0]
        return Model(truth, answers(votes, m), both(answers(accuracy, m), sure))

    return equal_kappas(make, 1 / m, 1)


def few_and_many(truth: Floats, wrong: float) -> Model:
    """Return labelers of the same kappa: one errs on few items that votes agree on, one on many that they do not."""
    m, hard, sure = len(truth), 0.4, np.eye(len(truth))
    votes = np.concatenate([answers(0.97, m), answers(0.6, m)])
    first = np.concatenate([answers(1 - wrong, m), sure])

    def make(second: float) -> Model:
        labels = both(first, np.concatenate([sure, answers(1 - second, m)]))
        return Model(np.concatenate([truth * (1 - hard), truth * hard]), votes, labels)

    return equal_kappas(make, 0, 1)


@dataclass(frozen=True, slots=True)
class Patterns:
    """The K kinds of outcomes: their chances, (K,); votes as shares, (K, m); labels and d by labeler, (K, A)."""

    chance: Floats
    c: Floats
    labels: Codes
    d: Floats


def patterns(model: Model, N: int) -> Patterns:
    """Return all outcomes of an item with N votes."""
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
    """A labeler in many samples: kappa, D and E, and the influence of an item of each pattern, (sets, K)."""

    kappa: Floats
    D: Floats
    E: Floats
    phi: Floats


def judge(kinds: Patterns, counts: Floats) -> tuple[list[Judged], Floats]:
    """Judge each labeler in samples with these counts of patterns, (sets, K); also return C, (sets, m)."""
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

    ``squares`` and ``cubes`` are the sums over items of how far each moves the difference, to these powers; ``reach``
    is how far an item moves it that only one of the two gets wrong; ``discordant`` counts items with two labels, and
    ``swap`` is the p-value of the label-swap test, NaN where it was not asked for.
    """

    n: int
    difference: Floats
    squares: Floats
    cubes: Floats
    reach: Floats
    discordant: Floats
    swap: Floats


def gaps(kinds: Patterns, counts: Floats, pair: tuple[int, int] = (0, 1), *, swap: bool = False) -> Gaps:
    """Compare two labelers; samples in which a kappa is undefined are left out."""
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
    """Return how often the difference is as large with labels swapped by the toss of a coin, in all ways.

    Only for samples with few discordant items; 1 for those with none, NaN for others.
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
        p[rows] = (~(found < found[:, :1] - 1e-12)).mean(axis=1)  # the first way swaps nothing
    return p


def package(seen: Gaps) -> Gap:
    """Return the differences as the package takes them."""
    n = seen.n
    skew = seen.cubes / np.where(seen.squares > 0, seen.squares, 1) ** 1.5
    return Gap(seen.difference, np.sqrt(seen.squares / (n * (n - 1))), skew, n, n - 1, -seen.reach, seen.reach)


def t_limits(seen: Gaps, confidence_level: float) -> tuple[Floats, Floats]:
    """Return the difference and t standard errors each way."""
    half = stdtrit(seen.n - 1, (1 + confidence_level) / 2) * np.sqrt(seen.squares / (seen.n * (seen.n - 1)))
    return seen.difference - half, seen.difference + half


def t_test(seen: Gaps) -> Floats:
    """Return p of the difference by its standard error; 1 where nothing moves it."""
    with np.errstate(all="ignore"):
        t = np.abs(seen.difference) / np.sqrt(seen.squares / (seen.n * (seen.n - 1)))
    p: Floats = np.where(seen.squares > 0, 2 * stdtr(seen.n - 1, -t), 1.0)
    return p


def combined_test(seen: Gaps) -> Floats:
    """Return p of the label-swap test where discordant items are few or nothing moves the difference, else ours."""
    p: Floats = np.where(np.isnan(seen.swap), package(seen).pvalue(), seen.swap)
    return p


def drawn(model: Model, n: int, N: int, sets: int, rng: np.random.Generator) -> Iterator[tuple[Patterns, Floats]]:
    """Draw samples, as counts of patterns, in batches that fit the memory."""
    kinds = patterns(model, N)
    batch = max(1, 1_000_000 // len(kinds.chance))
    for first in range(0, sets, batch):
        yield kinds, rng.multinomial(n, kinds.chance, min(batch, sets - first)).astype(float)


RULES: dict[str, Callable[[Gaps, float], tuple[Floats, Floats]]] = {
    "compare": lambda seen, confidence_level: package(seen).limits(confidence_level),
    "t": t_limits,
}
TESTS = {"compare": combined_test, "t": t_test}
PAIRS: dict[str, Callable[[Floats, float], Model]] = {
    "equal (.8, .8)": lambda truth, votes: apart(truth, votes, 0.8, 0.8),
    "close (.9, .85)": lambda truth, votes: apart(truth, votes, 0.9, 0.85),
    "far (.95, .6)": lambda truth, votes: apart(truth, votes, 0.95, 0.6),
    "a copy, 5% answered afresh": lambda truth, votes: near(truth, votes, 0.85, 0.05, other=False),
    "a copy, 5% changed": lambda truth, votes: near(truth, votes, 0.85, 0.05, other=True),
    "hard items (.85, .75)": lambda truth, votes: together(truth, votes, 0.85, 0.75),
}
EQUALS: dict[str, Callable[[Floats], Model]] = {
    "exchangeable, .8": lambda truth: apart(truth, 0.85, 0.8, 0.8),
    "exchangeable, .95": lambda truth: apart(truth, 0.9, 0.95, 0.95),
    "exchangeable, a copy with 10% afresh": lambda truth: near(truth, 0.85, 0.85, 0.1, other=False),
    "exchangeable, hard items": lambda truth: together(truth, 0.85, 0.8, 0.8),
    "one of them sure of a category": lambda truth: one_sure(truth, 0.85, 0.9),
    "few large errors, many small ones": lambda truth: few_and_many(truth, 0.03),
}


def held(model: Model, n: int, N: int, sets: int, rng: np.random.Generator, levels: tuple[float, ...]) -> Floats:
    """Return (levels, rules, 2): how often intervals hold the true difference, and their mean length."""
    target, parts = model.difference, []
    for kinds, counts in drawn(model, n, N, sets, rng):
        seen = gaps(kinds, counts)
        ends = np.array([[rule(seen, confidence_level) for rule in RULES.values()] for confidence_level in levels])
        low, high = ends[:, :, 0], ends[:, :, 1]
        parts.append(np.stack([(low <= target + 1e-12) & (target - 1e-12 <= high), high - low], axis=2))
    found: Floats = np.concatenate(parts, axis=3).mean(axis=3)
    return found


def coverage(sets: int, *, full: bool) -> list[str]:
    """Return the section on the intervals."""
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
        texts = [f"{100 * held.mean():.1f} / {100 * held.min():.1f}" for held in cells.T]
        rows.append([kind, str(n), *texts, *(f"{x:.2f}" for x in (length / length[:, -1:]).mean(axis=0)[:-1])])
    under = (np.concatenate(seen) < 0.945).sum(axis=0)
    said = "; ".join(f"{name} {number}" for name, number in zip(RULES, under.tolist(), strict=True))
    names = list(RULES)
    text = (
        "How often the 95% interval of a paired difference holds the truth, in percent: mean / least over cells with "
        "2, 3 or 5 votes an item, 2, 3 or 5 categories, uniform, skewed or one on 90% of the items, and annotators "
        f"right {', '.join(f'{x:g}' for x in votes)} of the time; {sets:,} samples a cell, known to about "
        f"{100 * (0.95 * 0.05 / sets) ** 0.5:.1f} points. *t*: the difference and t standard errors, an interval of no "
        "length where no item moves the difference. *compare*: that of the package. *length*: mean, as a multiple of "
        "t's."
    )
    heads = ["labelers", "n", *names, *(f"length: {name}" for name in names[:-1])]
    counted = f"ItemTable below 94.5%, of {sum(map(len, seen)):,}: {said}."
    return [*page("Differences between labelers", text, heads, rows), "", counted]


def few_discordant(sets: int, *, full: bool) -> list[str]:
    """Return the section on labelers who seldom differ: one is flawless, the other errs on a few items."""
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
        f"The least coverage at 90% / 95% / 99%, over n {', '.join(map(str, sizes))} and annotators right always or "
        ".95 of the time, where one labeler is flawless and the other errs on so many items in expectation; "
        f"{sets:,} samples a cell. *none*: about how many samples have no such item; they count."
    )
    return page("Few discordant items", text, ["items", "none", *RULES], rows)


def type_one(sets: int, *, full: bool) -> list[str]:
    """Return the section on tests of two labelers who have the same kappa."""
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
        shown = [f"{100 * np.mean(column):.1f} / {100 * max(column):.1f}" for column in zip(*here, strict=True)]
        rows.append([kind, str(n), *shown])
    text = (
        "How often p is below .05, in percent: mean / most over two or three categories, uniform or one on 90% of the "
        f"items, where kappas can be the same; 3 votes an item, {sets:,} samples a cell. *compare*: that of the "
        f"package: labels swapped by the toss of a coin where fewer than {FEW} items have two labels, elsewhere 1 less "
        "the level at which the interval reaches 0."
    )
    return page("Tests of labelers with the same kappa", text, ["labelers", "n", *TESTS], rows)


def family(sets: int, *, full: bool) -> list[str]:
    """Return the section on Holm's correction: all pairs of four labelers who are equally good."""
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
            # Holm rejects something exactly where the least p is below .05 over the number of tests.
            rates = (p[0] < 0.05).mean(), (p.min(axis=0) < 0.05).mean(), (len(p) * p.min(axis=0) < 0.05).mean()
            rows.append([str(n), name, *(f"{100 * rate:.1f}" for rate in rates)])
    text = (
        "Four labelers, right .8 of the time; three categories, 3 votes an item, annotators right .85 of the time. "
        "How often p is below .05 for one pair, for any of the six, and for any after Holm's correction, in percent; "
        f"{sets:,} samples."
    )
    return page("All pairs of four labelers", text, ["n", "test", "one pair", "any pair", "any pair, Holm"], rows)


def random_labels(sets: int, *, full: bool) -> list[str]:
    """Return the section on the test of labels against the same labels dealt out at random."""
    rows, some = [], ((2, 0), (3, 0), (5, 0), (2, 0.05))
    for n, (m, rare) in product((20, 50, 200) if full else (20,), some if full else some[-1:]):
        rng, p = np.random.default_rng([7, 5, n, m, *([1] if rare else [])]), []
        for _ in range(sets):
            truth = rng.binomial(1, rare, n) if rare else rng.integers(0, m, n)
            other = (truth[:, None] + rng.integers(1, m, (n, 3))) % m
            votes = np.where(rng.random((n, 3)) < (0.97 if rare else 0.85), truth[:, None], other)
            kappa = dh_kappa(votes, rng.binomial(1, rare, n) if rare else rng.integers(0, m, n))
            if kappa.exact is None:  # all votes and labels are the same: nothing to reject
                p.append([1.0, 1.0, 1.0])
                continue
            tests = (
                kappa.permutation_test(),
                kappa.permutation_test("z"),
                kappa.permutation_test("monte-carlo", n_resamples=199, rng=rng),
            )
            p.append([test.pvalue for test in tests])
        rates = (f"{100 * rate:.1f}" for rate in (np.array(p) <= 0.05).mean(axis=0))
        rows.append([str(n), f"{m}, one rare" if rare else str(m), *rates])
    text = (
        'How often `test()` with alternative "greater" has p of at most .05 where labels are random, in percent: 3 '
        "votes an item, annotators right .85 of the time, or .97 where a category is rare, one in twenty items and "
        f"labels; {sets:,} samples a cell, known to about {100 * (0.05 * 0.95 / sets) ** 0.5:.1f} points. By default "
        "all dealings are counted where that is quick, and p is that of z else; 199 dealings for Monte Carlo. With "
        "few items only some p can occur, so that counted ones are below .05 less often than that."
    )
    return page("Labels that know nothing", text, ["n", "categories", "default", "z", "Monte Carlo"], rows)


def page(title: str, text: str, heads: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a section: what was done, and a table."""
    cells = (heads, ["---"] * len(heads), *rows)
    return [f"## {title}", "", *wrap(text, 120), "", *(f"| {' | '.join(row)} |" for row in cells)]


def sections(sets: int, *, full: bool = True) -> Iterator[list[str]]:
    """Yield the sections of the page; the last takes half the samples, as it goes through the package."""
    for section in (coverage, few_discordant, type_one, family):
        yield section(sets, full=full)
    yield random_labels(max(1, sets // 2), full=full)


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2000, help="samples a cell (default 2000)")
    parser.add_argument("--quick", action="store_true", help="a small part of the settings")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the page")
    options = parser.parse_args()
    start, found = perf_counter(), ["# Coverage of differences between labelers", "", "Written by `make validate`.", ""]
    for lines in sections(options.sets, full=not options.quick):
        found += [*lines, ""]
        print(f"{lines[0]}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    options.page.write_text("\n".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
