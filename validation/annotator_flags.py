"""Simulate how many careless annotators are found, and write docs/coverage-flags.md.

Votes are drawn with array code of this folder; scores and flags come from the package.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from dhkappa import Dataset
from dhkappa.stats.annotator_result import MIN_ITEMS, MIN_SCREENED, AnnotatorScores
from dhkappa.stats.annotator_scores import annotator_scores
from simulation import Floats, Generator, Integers, main, run_all, table

INTRODUCTION = """\
# Careless annotators found

How many careless annotators are found among many, and how many of those flagged are not careless: {sets:,} data sets
for the first row and for crowds of fewer than 1,000 annotators, and a tenth as many for the others. Careless annotators
vote at random, with the frequencies of the true categories. All others have their own accuracy, normal with the given
mean and standard deviation. The number of items of an annotator follows Zipf's law: with 4,000 annotators one in 20 has
about 100 items or more, and one in three fewer than 10. This page is written by `make validate`.

*found* is the share of careless annotators with {least} items or more that are flagged, as differing from the rest or
as not shown to know anything, and *by items* the share among all careless annotators with so many items; nothing is
said about annotators with fewer than {few}. *false* is the mean share of annotators who are not careless among those
flagged (0 if nobody is), and *any false* the share of data sets with such an annotator. *screen alone* is what `z <=
1.645` with {least} items or more would flag, without comparing annotators with a typical one. *limits* is the share of
annotators, the careless among them, whose limits contain their expected score.

In the last two rows, annotators are alike (sd 0.05) or differ much and are less accurate (sd 0.12). Where they differ,
fewer careless annotators are found, above all those with few items, and more of those flagged are not careless: that
80% are found holds for annotators who are alike, or with many items.
"""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A crowd of annotators: how many, their votes, and how many of them are careless."""

    annotators: int
    votes: int
    per_item: int
    categories: int
    accuracy: float
    spread: float
    careless: float
    frequent: float | None = None  # share of the first category; None if all are equally frequent

    @property
    def prevalence(self) -> Floats:
        """Prevalence of the categories."""
        m = self.categories
        if self.frequent is None:
            return np.full(m, 1 / m)
        return np.array([self.frequent, *[(1 - self.frequent) / (m - 1)] * (m - 1)])


CROWDS = [
    Crowd(4000, 100_000, 5, 3, 0.85, 0.07, 0.05),
    Crowd(4000, 100_000, 5, 3, 0.8, 0.0, 0.05),
    Crowd(4000, 100_000, 3, 3, 0.85, 0.07, 0.05),
    Crowd(4000, 100_000, 3, 5, 0.85, 0.07, 0.05),
    Crowd(4000, 100_000, 2, 3, 0.85, 0.07, 0.05),
    Crowd(4000, 100_000, 5, 2, 0.85, 0.07, 0.05),
    Crowd(4000, 100_000, 5, 2, 0.85, 0.07, 0.05, frequent=0.9),
    Crowd(4000, 100_000, 5, 3, 0.85, 0.07, 0.25),
    Crowd(4000, 100_000, 5, 3, 0.85, 0.07, 0.0),
    Crowd(4000, 100_000, 5, 3, 0.85, 0.0, 0.0),
    Crowd(200, 20_000, 3, 3, 0.85, 0.07, 0.05),
    Crowd(10, 3_000, 3, 3, 0.85, 0.07, 0.1),
    Crowd(10, 3_000, 3, 3, 0.85, 0.0, 0.0),
    Crowd(4, 1_200, 3, 3, 0.85, 0.0, 0.0),
    Crowd(4000, 100_000, 5, 4, 0.85, 0.05, 0.05),
    Crowd(4000, 100_000, 5, 4, 0.75, 0.12, 0.05),
]
BINS = ((10, 19), (20, 39), (40, 10**9))


def assign(rng: Generator, crowd: Crowd) -> Integers:
    """Return (items, votes per item) distinct annotators of each item, drawn with activities by Zipf's law."""
    A, N = crowd.annotators, crowd.per_item
    activity = 1 / (np.arange(1, A + 1) + max(A // 50, 10))
    upto = (activity / activity.sum()).cumsum()
    upto[-1] = 1
    who = np.searchsorted(upto, rng.random((crowd.votes // N, N)))
    while True:
        ordered = np.sort(who, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not twice.any():
            found: Integers = rng.permutation(A)[who]
            return found
        who[twice] = np.searchsorted(upto, rng.random((int(twice.sum()), N)))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A data set: who votes on each item and what, who is careless, and the chance of each vote to be right."""

    who: Integers
    votes: Integers
    truth: Integers
    careless: np.ndarray
    accuracy: Floats


def draw(rng: Generator, crowd: Crowd) -> Drawn:
    """Draw a data set."""
    A, m, shares = crowd.annotators, crowd.categories, crowd.prevalence
    who = assign(rng, crowd)
    careless = np.zeros(A, np.bool_)
    careless[rng.choice(A, round(A * crowd.careless), replace=False)] = True
    accuracy = np.clip(crowd.accuracy + crowd.spread * rng.standard_normal(A), 1 / m + 0.1, 0.99)
    truth = rng.choice(m, len(who), p=shares)
    right = rng.random(who.shape) < accuracy[who]
    wrong = (truth[:, None] + rng.integers(1, m, who.shape)) % m
    votes = np.where(right, truth[:, None], wrong)
    votes = np.where(careless[who], rng.choice(m, who.shape, p=shares), votes)
    return Drawn(who, votes, truth, careless, accuracy)


def expected_scores(crowd: Crowd, drawn: Drawn) -> Floats:
    """Return the expected score of each annotator, given true categories and annotators of the items."""
    m, shares, who = crowd.categories, crowd.prevalence, drawn.who
    right = np.eye(m)[drawn.truth][:, None, :]
    accuracy = drawn.accuracy[who][..., None]
    chance = right * accuracy + (1 - right) * (1 - accuracy) / (m - 1)
    chance = np.where(drawn.careless[who][..., None], shares, chance)  # (items, votes, m)
    others = (chance.sum(axis=1, keepdims=True) - chance) / (crowd.per_item - 1)
    C = chance.mean(axis=(0, 1))
    x = (chance * (others - C)).sum(axis=-1) / (1 - (C**2).sum())
    number = np.bincount(who.ravel(), minlength=crowd.annotators)
    found: Floats = np.bincount(who.ravel(), x.ravel(), crowd.annotators) / np.where(number, number, np.nan)
    return found


def scores_of(crowd: Crowd, drawn: Drawn) -> AnnotatorScores:
    """Compute the scores of a data set."""
    import pandas as pd

    n, N = drawn.who.shape
    columns = {"item": np.repeat(np.arange(n), N), "annotator": drawn.who.ravel(), "label": drawn.votes.ravel()}
    return annotator_scores(Dataset(pd.DataFrame(columns)).item_votes())


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a data set; a pair of numbers is found and careless."""

    found: tuple[int, int]
    by_items: tuple[tuple[int, int], ...]
    flagged: int
    false: int
    screen: tuple[int, int]
    screen_false: int
    held: int
    limits: int


def run(job: tuple[int, int]) -> Outcome:
    """Simulate a data set of a crowd."""
    number, repeat = job
    crowd, rng = CROWDS[number], np.random.default_rng([27, number, repeat])
    drawn = draw(rng, crowd)
    scores = scores_of(crowd, drawn)
    who = np.array(scores.table.column("annotator"), np.int64)
    items = np.array(scores.table.column("items"), np.int64)
    careless = drawn.careless[who]
    flags = np.isin(who, [*scores.differs, *scores.uninformed])
    z = np.array(scores.table.column("z"), np.float64)
    alone = (items >= MIN_SCREENED) & (z <= 1.645)
    expected = expected_scores(crowd, drawn)[who]
    low, high = (np.array(scores.table.column(name), np.float64) for name in ("low", "high"))

    def pair(flagged: np.ndarray, least: int, most: float = np.inf) -> tuple[int, int]:
        here = careless & (items >= least) & (items <= most)
        return int((flagged & here).sum()), int(here.sum())

    return Outcome(
        found=pair(flags, MIN_SCREENED),
        by_items=tuple(pair(flags, *ends) for ends in BINS),
        flagged=int(flags.sum()),
        false=int((flags & ~careless).sum()),
        screen=pair(alone, MIN_SCREENED),
        screen_false=int((alone & ~careless).sum()),
        held=int(((low <= expected) & (expected <= high)).sum()),
        limits=int(np.isfinite(low).sum()),
    )


def lines(sets: int, full: bool) -> list[str]:
    """Return the page: a row for each crowd."""
    chosen = range(len(CROWDS)) if full else (0, 13)  # the last one is the smallest
    jobs = []
    for number in chosen:
        few = number > 0 and CROWDS[number].annotators >= 1000  # these take most of the time
        jobs += [(number, repeat) for repeat in range(max(sets // 10, 1) if few else sets)]
    found = run_all(run, jobs)
    rows = []
    for number in chosen:
        crowd, own = CROWDS[number], [one for job, one in zip(jobs, found, strict=True) if job[0] == number]
        rate = f"{crowd.accuracy:g}" + (f" (sd {crowd.spread:g})" if crowd.spread else "")
        frequent = "" if crowd.frequent is None else f", one {100 * crowd.frequent:.0f}%"
        false = [one.false / one.flagged if one.flagged else 0.0 for one in own]
        alone = [one.screen_false / max(one.screen[0] + one.screen_false, 1) for one in own]
        rows.append([
            f"{crowd.annotators:,}",
            str(crowd.per_item),
            f"{crowd.categories}{frequent}",
            rate,
            f"{100 * crowd.careless:g}%",
            percent([one.found for one in own]),
            " / ".join(percent([one.by_items[place] for one in own]) for place in range(len(BINS))),
            f"{100 * np.mean(false):.1f}",
            f"{100 * np.mean([one.false > 0 for one in own]):.0f}",
            f"{percent([one.screen for one in own])} / {100 * np.mean(alone):.1f}",
            percent([(one.held, one.limits) for one in own]),
        ])  # fmt: skip
    heads = ["annotators", "votes per item", "categories", "accuracy", "careless", "found, %"]
    heads += ["by items: 10-19 / 20-39 / 40+", "false, %", "any false, %", "screen alone: found / false", "limits, %"]
    return [INTRODUCTION.format(sets=sets, least=MIN_SCREENED, few=MIN_ITEMS), *table(heads, rows)]


def percent(pairs: list[tuple[int, int]]) -> str:
    """Write the share of the first numbers in the second as a percentage."""
    top, bottom = (sum(column) for column in zip(*pairs, strict=True))
    return f"{100 * top / bottom:.1f}" if bottom else "-"


if __name__ == "__main__":
    sys.exit(main(__doc__, "coverage-flags.md", 200, lines))
