"""Time of inference compared with counting: standard error, interval, bootstrap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dhkappa import compare, dh_kappa
from measure import Sample, alternate, draw
from table import Goal, power

REPLICATES = 10_000


def inference_goals(n: int, N: int, m: int, *, seconds: float, rounds: int) -> Iterator[Goal]:
    """Measure kappa with its interval from raw votes, and replicates at a small and a large number of items."""
    sample = draw(n, N, m)
    ours, summed = alternate(
        [partial(_with_interval, sample), partial(np.sum, sample.votes)], seconds=seconds, least=rounds
    )
    where = f"N={N}, m={m}, {sample.votes.dtype} votes"
    yield Goal(
        f"n={power(n)}, {where}: kappa, SE and interval at most 4.5 x np.sum",
        f"{ours / summed:.2f} x ({ours / n * 1e9:.2f} against {summed / n * 1e9:.2f} ns per item)",
        ours <= 4.5 * summed,
    )
    fewer = max(1000, n // 1000)
    kappas = [dh_kappa(part.votes, part.suggested) for part in (sample.head(fewer), sample)]
    calls = [partial(kappa.bootstrap, REPLICATES, 1, progress=False) for kappa in kappas]
    few, many = alternate(calls, seconds=seconds, least=rounds)
    yield Goal(
        f"{REPLICATES:,} replicates at n={power(n)} cost at most 1.5 x those at n={power(fewer)}",
        f"{many / few:.2f} x ({1e3 * many:.0f} against {1e3 * few:.0f} ms)",
        many <= 1.5 * few,
    )
    middle = sample.head(max(1000, n // 10))
    (naive,) = alternate([partial(_resample, middle)], seconds=seconds, least=2)
    yield Goal(
        f"replicates at n={power(len(middle.votes))}: at least 1,000 x faster than resampling items",
        f"{naive * REPLICATES / many:,.0f} x (one resample, counted anew by dh_kappa, {1e3 * naive:.1f} ms)",
        naive * REPLICATES >= 1000 * many,
    )


def compare_goal(n: int, N: int, m: int, *, seconds: float, rounds: int) -> Goal:
    """Compare ten labelers in pairs with one labeler and its interval."""
    labelers = 10
    sample = draw(n, N, m)
    # The labels of the sample, with more and more of them replaced at random.
    rng = np.random.default_rng(2)
    suggested = {"0": sample.suggested}
    for labeler in range(1, labelers):
        other = rng.integers(0, m, n, dtype=sample.suggested.dtype)
        suggested[str(labeler)] = np.where(rng.random(n) < 0.04 * labeler, other, sample.suggested)
    one, all_of_them = alternate(
        [partial(_with_interval, sample), partial(compare, sample.votes, suggested)], seconds=seconds, least=rounds
    )
    return Goal(
        f"n={power(n)}, N={N}, m={m}: comparing {labelers} labelers at most 12 x one",
        f"{all_of_them / one:.1f} x ({1e3 * all_of_them:.0f} against {1e3 * one:.1f} ms)",
        all_of_them <= 12 * one,
    )


def _with_interval(sample: Sample) -> object:
    kappa = dh_kappa(sample.votes, sample.suggested)
    return kappa.se, kappa.confidence_interval()


def _resample(sample: Sample) -> object:
    """Draw the items again and count them: what a replicate costs without patterns, by the fastest counting here."""
    rows = np.random.default_rng(1).integers(0, len(sample.votes), len(sample.votes))
    return dh_kappa(sample.votes[rows], sample.suggested[rows]).value
