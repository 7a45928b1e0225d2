"""Baselines: kappa of random labels, of a typical annotator and of majority labels, on the same votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from dhkappa.stats.kappa import rounded
from dhkappa.table import plain


@dataclass(frozen=True, slots=True, repr=False)
class Baselines:
    """Kappa of other labels on the same votes; NaN if undefined.

    Attributes
    ----------
    random : mean kappa of the suggested labels permuted at random over the items
    majority : kappa of each item's most frequent vote, an optimistic value: the same votes make and judge the labels
    """

    random: float
    majority: float
    _annotator: Callable[[], Fraction | None] = field(compare=False)

    @property
    def annotator(self) -> float:
        """Kappa of a typical annotator as labeler; NaN also with agreement weights, and if only bounds are known."""
        return rounded(self._annotator())

    def __repr__(self) -> str:
        return f"Baselines(random={self.random:.4f}, annotator={self.annotator:.4f}, majority={self.majority:.4f})"

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values for JSON; NaN becomes None."""
        return {name: plain(getattr(self, name)) for name in ("random", "annotator", "majority")}
