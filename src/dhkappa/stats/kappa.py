"""The paper: DiPietro-Hazari kappa (eq. 4-13) and Fleiss' kappa (eq. 1-3), exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dhkappa.core.labels import Label
from dhkappa.stats.sums import Sums


@dataclass(frozen=True, slots=True)
class Parts:
    """What kappa is made of, in the paper's letters, as exact fractions.

    For Fleiss' kappa, L is empty, S and C_F are 0, R and C_E are those of eq. 2-3.
    """

    R: Fraction
    """Share of annotator pairs that agree on the suggested label (eq. 10), a mean over items."""
    S: Fraction
    """Share of annotator pairs that agree on another label (eq. 12)."""
    C_E: Fraction
    """R expected by chance (eq. 6)."""
    C_F: Fraction
    """S expected by chance (eq. 9)."""
    _categories: tuple[Label, ...]
    _sums: Sums

    @property
    def C(self) -> dict[Label, Fraction]:
        """Share of votes for each category (eq. 1, 4), a mean over items."""
        return _shares(self._categories, self._sums.votes, self._sums.n * self._sums.vote_unit)

    @property
    def L(self) -> dict[Label, Fraction]:
        """Share of suggested labels that are each category (eq. 5)."""
        return _shares(self._categories, self._sums.labels, self._sums.n) if any(self._sums.labels) else {}

    def shares(self, exact: bool = False) -> tuple[list[Any], list[Any]]:
        """Return C and L in the order of categories: floats, each rounded once, or fractions if ``exact``."""
        total = self._sums
        labels = total.labels if any(total.labels) else []
        if exact:
            return list(self.C.values()), list(self.L.values())
        whole = total.n * total.vote_unit
        return [votes / whole for votes in total.votes], [number / total.n for number in labels]

    @property
    def D(self) -> Fraction:
        """The agreement differential, R - S."""
        return self.R - self.S

    @property
    def E(self) -> Fraction:
        """The differential expected by chance, C_E - C_F."""
        return self.C_E - self.C_F

    @property
    def kappa(self) -> Fraction | None:
        """The differential above chance over what could be had (eq. 13); None where E is 1."""
        return _above_chance(self.D, self.E)

    def __repr__(self) -> str:
        letters = ("R", "S", "C_E", "C_F", "D", "E")
        return f"Parts({', '.join(f'{letter}={float(getattr(self, letter)):.4f}' for letter in letters)})"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Kappa with its parts and the marks to read it by; None where one is undefined."""

    parts: Parts
    floor: Fraction | None
    ceiling: Fraction | None
    fleiss: Fraction | None


def estimate_dh(total: Sums, categories: tuple[Label, ...]) -> Estimate:
    """Estimate the DiPietro-Hazari kappa from sums over eligible items, of which there is one at least."""
    n, pair_unit = total.n, total.n * total.pair_unit
    agreeing = Fraction(sum(total.pairs), pair_unit)
    same = _chance_same(total)  # sum_j C_j^2
    R = Fraction(total.on_label, pair_unit)  # eq. 10
    C_E = _chance_on(total, total.labels)  # eq. 6
    parts = Parts(
        R=R,
        S=agreeing - R,  # eq. 12: the pairs that agree, on another label
        C_E=C_E,
        C_F=same - C_E,  # eq. 9: sum_i L_i (sum_j C_j^2 - C_i^2), as the L_i sum to 1
        _categories=categories,
        _sums=total,
    )
    # Labels dealt out at random keep C and L; D becomes sum_j G_j (2 L_j - 1).
    random = Fraction(sum(g * (2 * b - n) for g, b in zip(total.pairs, total.labels, strict=True)), n * pair_unit)
    # The plurality label of each item, judged by the same votes.
    best = 2 * Fraction(total.on_plurality, pair_unit) - agreeing
    return Estimate(
        parts=parts,
        floor=_above_chance(random, parts.E),
        ceiling=_above_chance(best, 2 * _chance_on(total, total.plurality) - same),
        fleiss=_above_chance(agreeing, same),
    )


def estimate_fleiss(total: Sums, categories: tuple[Label, ...]) -> Estimate:
    """Estimate Fleiss' kappa: the panel among itself, whatever the suggested labels."""
    parts = Parts(
        R=Fraction(sum(total.pairs), total.n * total.pair_unit),  # eq. 2
        S=Fraction(0),
        C_E=_chance_same(total),
        C_F=Fraction(0),
        _categories=categories,
        _sums=total,
    )
    return Estimate(parts, floor=None, ceiling=None, fleiss=parts.kappa)  # eq. 3


def _above_chance(D: Fraction, E: Fraction) -> Fraction | None:
    return None if E == 1 else (D - E) / (1 - E)


def _shares(categories: tuple[Label, ...], numbers: list[int], whole: int) -> dict[Label, Fraction]:
    return {label: Fraction(number, whole) for label, number in zip(categories, numbers, strict=True)}


def _chance_same(total: Sums) -> Fraction:
    """Return sum_j C_j^2: two votes drawn by their shares agree."""
    return Fraction(sum(votes * votes for votes in total.votes), (total.n * total.vote_unit) ** 2)


def _chance_on(total: Sums, labels: list[int]) -> Fraction:
    """Return sum_j C_j^2 L_j, eq. 6, for labels with these counts."""
    on = sum(votes * votes * number for votes, number in zip(total.votes, labels, strict=True) if number)
    return Fraction(on, (total.n * total.vote_unit) ** 2 * total.n)
