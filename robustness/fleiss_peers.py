"""Fleiss' kappa beside irrCAC, statsmodels and krippendorff, on thousands of random tables.

Krippendorff's alpha of nominal data and Fleiss' kappa are made of the same two shares. Let item i have N_i votes, of V
in all, and let t_i be the share of its pairs of votes that agree. Alpha's observed disagreement weighs an item by its
votes, D_o = 1 - sum_i N_i t_i / V, and its expected one draws two of the V votes without putting the first back,
D_e = (1 - sum_j C_j^2) V / (V - 1), where C_j is the share of all V votes. Fleiss' kappa with the weights N_i has the
same D_o, and draws with putting back: 1 - kappa = D_o / (1 - sum_j C_j^2). So, whatever the numbers of votes,

    1 - alpha = (1 - kappa_N) (V - 1) / V,

where kappa_N is Fleiss' kappa with weights N_i; where all items have as many votes, that is Fleiss' kappa itself.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

import dhkappa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import oracle

EXACTLY = 1e-12
"""How far a float may be from ours where chance leaves half of all pairs or more; beyond, they cancel digits."""

NAMES = (
    "oracle",
    "irrCAC, kappa",
    "irrCAC, standard error",
    "irrCAC, standard error, ragged",
    "statsmodels",
    "krippendorff",
    "krippendorff, ragged",
)
KINDS = ("even", "skewed", "very skewed", "many categories", "few items", "much agreement")


@dataclass(frozen=True)
class Drawn:
    """Counts of votes, (n, m), and what kind of table it is."""

    kind: str
    counts: npt.NDArray[np.int64]

    @property
    def complete(self) -> bool:
        """Whether all items have the same number of votes."""
        return _even(self.counts)


def _even(counts: npt.NDArray[np.int64]) -> bool:
    return len(set(counts.sum(axis=1).tolist())) == 1


def draw(seed: int) -> Drawn:
    """Draw a table of one of the kinds: every second one complete, of the others some with lone votes."""
    rng = np.random.default_rng([seed, 5])
    kind = KINDS[seed % len(KINDS)]
    few, many = kind == "few items", kind == "many categories"
    n = int(rng.integers(1, 4) if few else rng.integers(5, 50))
    m = int(rng.integers(20, 40) if many else rng.integers(2, 7))
    most = int(rng.integers(2, 9))
    slope = {"skewed": 1.5, "very skewed": 4.0}.get(kind, 0.0)
    shares = np.exp(-slope * np.arange(m))
    truth = rng.choice(m, n, p=shares / shares.sum())
    strength = rng.random() ** (0.1 if kind == "much agreement" else 1)
    ragged = seed // len(KINDS) % 2 == 1
    sizes = rng.integers(1 if seed % 5 == 0 else 2, most + 1, n) if ragged else np.full(n, most)
    counts = np.zeros((n, m), np.int64)
    for item, size in enumerate(sizes.tolist()):
        votes = np.where(rng.random(size) < strength, truth[item], rng.choice(m, size, p=shares / shares.sum()))
        np.add.at(counts[item], votes, 1)
    return Drawn(kind, counts)


def listed(counts: npt.NDArray[np.int64]) -> list[list[int]]:
    """Return the votes on each item."""
    return [np.repeat(np.arange(counts.shape[1]), row).tolist() for row in counts]


def by_irrcac(counts: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return irrCAC's kappa and standard error."""
    import pandas as pd
    from irrCAC.raw import CAC

    votes = listed(counts)
    grid = np.full((len(votes), max(map(len, votes))), np.nan)
    for row, cast in zip(grid, votes, strict=True):
        row[: len(cast)] = cast
    found = CAC(pd.DataFrame(grid), digits=16).fleiss()["est"]
    return float(found["coefficient_value"]), float(found["se"])


def by_statsmodels(counts: npt.NDArray[np.int64]) -> tuple[float]:
    """Return the kappa of statsmodels; the table must be complete."""
    from statsmodels.stats.inter_rater import fleiss_kappa

    return (float(fleiss_kappa(counts)),)


def by_krippendorff(counts: npt.NDArray[np.int64]) -> tuple[float]:
    """Return 1 - (1 - alpha) V / (V - 1): Fleiss' kappa with the numbers of votes as weights."""
    import krippendorff

    whole = int(counts[counts.sum(axis=1) > 1].sum())
    alpha = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    return (float(1 - (1 - alpha) * whole / (whole - 1)),)


@dataclass
class Beside:
    """What came of one comparison.

    Attributes
    ----------
    compared : tables where both have a number
    largest : the largest difference, and the largest times 1 - E
    apart : tables that were not compared, by why
    wrong : differences that rounding cannot explain
    """

    compared: int = 0
    largest: float = 0.0
    scaled: float = 0.0
    apart: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def note(self, what: str, ours: float, theirs: float, room: float) -> None:
        """Compare two numbers; ``room`` is 1 - E, by which a peer divides a difference of floats."""
        off = abs(ours - theirs)
        self.compared += 1
        self.largest, self.scaled = max(self.largest, off), max(self.scaled, off * room)
        if not off * min(1.0, 2 * room) <= EXACTLY:
            self.wrong.append(f"{what}: {ours!r}, the peer has {theirs!r}")


def compare(tables: int, first: int = 0) -> dict[str, Beside]:
    """Draw tables, and compare Fleiss' kappa of each with every peer that takes such a table, and with the oracle."""
    found = {name: Beside() for name in NAMES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + tables):
            _compare(seed, draw(seed), found)
    return found


def _compare(seed: int, drawn: Drawn, found: dict[str, Beside]) -> None:
    counts = drawn.counts
    votes = listed(counts)
    what = f"table {seed} ({drawn.kind})"
    ours = dhkappa.fleiss_kappa(votes)
    truth = oracle.fleiss(votes)
    _against_oracle(what, ours, truth, found["oracle"])
    room = 1 - truth.C_E
    paired = counts[counts.sum(axis=1) > 1]  # the peers drop lone votes in ways of their own
    if not len(paired):
        asked = ("statsmodels", "krippendorff") if drawn.complete else ("krippendorff, ragged",)
        for name in ("irrCAC, kappa", "irrCAC, standard error", *asked):
            found[name].apart["no item with two votes"] += 1
        return
    theirs = _asked(lambda: by_irrcac(paired))
    if ours.n_items == 1 and isinstance(theirs, str):  # it divides by n - 1, for the error
        here = "no kappa" if math.isnan(ours.value) else "a kappa"
        found["irrCAC, kappa"].apart[f"one item, {here} here, {theirs} there"] += 1
    else:
        _beside(found["irrCAC, kappa"], what, ours.value, theirs, 0, room)
    error = found["irrCAC, standard error" if _even(paired) else "irrCAC, standard error, ragged"]
    if math.isnan(ours.se):
        error.apart["no standard error here"] += 1
    else:
        _beside(error, what, ours.se, theirs, 1, room)
    if drawn.complete:
        _beside(found["statsmodels"], what, ours.value, _asked(lambda: by_statsmodels(paired)), 0, room)
        _beside(found["krippendorff"], what, ours.value, _asked(lambda: by_krippendorff(counts)), 0, room)
    else:
        weighted = dhkappa.fleiss_kappa(votes, weights=[max(len(row), 1) for row in votes])
        room = Fraction(1) if weighted.parts is None else 1 - weighted.parts.C_E
        theirs = _asked(lambda: by_krippendorff(counts))
        _beside(found["krippendorff, ragged"], what, weighted.value, theirs, 0, room)


def _against_oracle(what: str, ours: dhkappa.Kappa, truth: oracle.Fleiss, beside: Beside) -> None:
    """Compare with the exact fraction, and the float with that fraction rounded once."""
    if truth.kappa is None:
        beside.apart["no kappa either"] += 1
        if ours.exact is not None or not ours.reason:
            beside.wrong.append(f"{what}: {ours.exact}, but it is undefined")
        return
    beside.compared += 1
    if (ours.exact, ours.value) != (truth.kappa, float(truth.kappa)):
        beside.wrong.append(f"{what}: {ours.exact}, the oracle has {truth.kappa}")


def _asked(ask: Callable[[], tuple[float, ...]]) -> tuple[float, ...] | str:
    """Return what a peer says, or the name of what it raises."""
    try:
        return ask()
    except (ArithmeticError, ValueError) as error:
        return type(error).__name__


def _beside(beside: Beside, what: str, ours: float, said: tuple[float, ...] | str, place: int, room: Fraction) -> None:
    theirs = math.nan if isinstance(said, str) else said[place]
    told = said if isinstance(said, str) else "nan" if math.isnan(theirs) else "a number"
    if math.isnan(ours):
        beside.apart[f"no kappa here, {told} there"] += 1
    elif math.isnan(theirs):
        beside.wrong.append(f"{what}: {ours!r}, the peer has {told}")
    else:
        beside.note(what, ours, theirs, float(room))
