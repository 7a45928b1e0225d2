"""Compare Fleiss' kappa with the oracle, irrCAC, statsmodels and krippendorff, on random tables.

Krippendorff's alpha of nominal data weights an item by its number of votes N_i and draws pairs of votes without
replacement, so that 1 - alpha = (1 - kappa_N) (V - 1) / V, where V is the number of votes and kappa_N is Fleiss' kappa
with the weights N_i.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

import dhkappa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import oracle

TOLERANCE = 1e-12  # relative to 1 - E if that is below 1/2: floats cancel
KINDS = ("even", "skewed", "very skewed", "many categories", "few items", "much agreement")
LIBRARIES = ("irrCAC, kappa", "irrCAC, standard error", "statsmodels", "krippendorff")

Counts = npt.NDArray[np.int64]


@dataclass
class Comparison:
    """Number of tables compared, largest difference and its product with 1 - E, tables not compared, and failures."""

    compared: int = 0
    largest: float = 0.0
    scaled: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, table: str, ours: float, theirs: float | str, rest: float) -> None:
        """Compare two numbers; ``rest`` is 1 - E, and a text is the name of an exception of the library."""
        if math.isnan(ours) or isinstance(theirs, str):
            there = theirs if isinstance(theirs, str) else "nan" if math.isnan(theirs) else "a number"
            here = "undefined" if math.isnan(ours) else "defined"
            self.skipped[f"{here} here, {there} in the other library"] += 1
            return
        difference = abs(ours - theirs)
        self.compared += 1
        self.largest, self.scaled = max(self.largest, difference), max(self.scaled, difference * rest)
        if not difference * min(1.0, 2 * rest) <= TOLERANCE:
            self.wrong.append(f"{table}: {ours!r}, not {theirs!r}")


def draw(seed: int) -> Counts:
    """Draw an (n, m) table of vote counts; the number of votes varies in every second table of a kind."""
    rng = np.random.default_rng([seed, 5])
    kind = KINDS[seed % len(KINDS)]
    n = int(rng.integers(1, 4) if kind == "few items" else rng.integers(5, 50))
    m = int(rng.integers(20, 40) if kind == "many categories" else rng.integers(2, 7))
    most = int(rng.integers(2, 9))
    shares = np.exp(-{"skewed": 1.5, "very skewed": 4.0}.get(kind, 0.0) * np.arange(m))
    truth = rng.choice(m, n, p=shares / shares.sum())
    strength = rng.random() ** (0.1 if kind == "much agreement" else 1)
    ragged = seed // len(KINDS) % 2 == 1
    sizes = rng.integers(1 if seed % 5 == 0 else 2, most + 1, n) if ragged else np.full(n, most)
    counts = np.zeros((n, m), np.int64)
    for item, size in enumerate(sizes.tolist()):
        votes = np.where(rng.random(size) < strength, truth[item], rng.choice(m, size, p=shares / shares.sum()))
        np.add.at(counts[item], votes, 1)
    return counts


def _votes(counts: Counts) -> list[list[int]]:
    return [np.repeat(np.arange(counts.shape[1]), row).tolist() for row in counts]


def _irrcac(counts: Counts, key: str) -> float:
    import pandas as pd
    from irrCAC.raw import CAC

    return float(CAC(pd.DataFrame(_votes(counts)), digits=16).fleiss()["est"][key])


def _statsmodels(counts: Counts) -> float:
    from statsmodels.stats.inter_rater import fleiss_kappa

    return float(fleiss_kappa(counts))


def _krippendorff(counts: Counts) -> float:
    import krippendorff

    votes = int(counts[counts.sum(axis=1) > 1].sum())
    alpha = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    return float(1 - (1 - alpha) * votes / (votes - 1))


def compare(tables: int) -> dict[str, Comparison]:
    """Compare Fleiss' kappa of random tables with the oracle and with each library that accepts the table."""
    found = {name: Comparison() for name in ("oracle", *LIBRARIES)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(tables):
            _compare(f"table {seed} ({KINDS[seed % len(KINDS)]})", draw(seed), found)
    return found


def _compare(table: str, counts: Counts, found: dict[str, Comparison]) -> None:
    votes = _votes(counts)
    ours, truth = dhkappa.fleiss_kappa(votes), oracle.fleiss(votes)
    found["oracle"].compared += 1
    if ours.exact != truth.kappa or (truth.kappa is not None and ours.value != float(truth.kappa)):
        found["oracle"].wrong.append(f"{table}: {ours.exact}, not {truth.kappa}")
    paired = counts[counts.sum(axis=1) > 1]  # the libraries treat single votes in other ways
    if not len(paired):
        return
    weighted = dhkappa.fleiss_kappa(votes, sample_weight=[max(len(row), 1) for row in votes])
    calls: dict[str, tuple[float, Callable[[], float]]] = {
        "irrCAC, kappa": (ours.value, lambda: _irrcac(paired, "coefficient_value")),
        "irrCAC, standard error": (ours.se, lambda: _irrcac(paired, "se")),
        "krippendorff": (weighted.value, lambda: _krippendorff(counts)),
    }
    if len(set(paired.sum(axis=1).tolist())) == 1:
        calls["statsmodels"] = (ours.value, lambda: _statsmodels(paired))
    for name, (value, call) in calls.items():
        parts = (weighted if name == "krippendorff" else ours).parts
        rest = 1.0 if parts is None else float(1 - parts.C_E)
        try:
            theirs: float | str = call()
        except (ArithmeticError, ValueError) as error:
            theirs = type(error).__name__
        found[name].add(table, value, theirs, rest)
