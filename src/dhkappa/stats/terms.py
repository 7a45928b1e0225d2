"""What each eligible pattern puts into the sums: c, g, t, d of one of its items, as floats or exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.patterns import Patterns
from dhkappa.stats.kappa import Parts
from dhkappa.stats.sample import Sample

Numbers = npt.NDArray[Any]
"""float64, or Fractions in an object array."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of K eligible patterns over m categories, in the order of the sample.

    Attributes
    ----------
    sample : the eligible patterns, K rows with entries for the categories that have votes, and how they were drawn
    weight : (K,) what all items of a pattern weigh; the items weigh 1 on average, so they add up to n
    c : (entries,) share of the item's votes, P_ij / N_i
    g : (entries,) share of the item's pairs that agree on the category, C(P_ij, 2) / C(N_i, 2)
    t : (K,) share of the item's pairs that agree, on any category
    d : (K,) agreement differential of the item, R_i - S_i
    C, L : (m,) shares of votes and of suggested labels; for Fleiss' kappa L is empty, and d is t
    D, E, C_E, kappa : as in the paper
    """

    sample: Sample
    weight: Numbers
    c: Numbers
    g: Numbers
    t: Numbers
    d: Numbers
    C: Numbers
    L: Numbers
    D: Any
    E: Any
    C_E: Any
    kappa: Any

    @property
    def patterns(self) -> Patterns:
        """The K patterns."""
        return self.sample.patterns

    @property
    def items(self) -> npt.NDArray[np.int64]:
        """(K,) how many items share each pattern."""
        return self.patterns.items

    @property
    def suggested(self) -> npt.NDArray[Any]:
        """(K,) code of the suggested label."""
        return self.patterns.suggested

    @property
    def n(self) -> int:
        """The number of eligible items."""
        return self.sample.n

    def row_sums(self, entries: Numbers) -> Numbers:
        """Add up entries within each pattern."""
        sums: Numbers = np.add.reduceat(entries, self.patterns.start[:-1])
        return sums

    def mean(self, values: Numbers) -> Any:
        """Return the weighted mean over items of a value per pattern."""
        return (values * self.weight).sum() / self.n

    def dense(self, entries: Numbers) -> Numbers:
        """Spread entries over a (K, m) matrix, 0 where a category has no votes."""
        table = np.zeros((len(self.items), len(self.C)), entries.dtype)
        row = np.repeat(np.arange(len(self.items)), np.diff(self.patterns.start))
        table[row, self.patterns.code] = entries
        return table


def terms(sample: Sample, parts: Parts, exact: bool = False) -> Terms:
    """Return the terms of a sample whose kappa is defined; ``parts`` are those of its kappa."""
    C, L = parts.shares(exact)
    patterns = sample.patterns
    n_votes = patterns.vote_totals()
    number: Callable[[Any], Numbers] = _fractions if exact else _floats
    votes = patterns.votes.astype(np.int64)
    length = np.diff(patterns.start)
    pairs, all_pairs = votes * (votes - 1) // 2, n_votes * (n_votes - 1) // 2
    g = number(pairs) / np.repeat(number(all_pairs), length)
    on_label = np.where(patterns.code == np.repeat(patterns.suggested, length), pairs, 0)
    first = patterns.start[:-1]
    agreeing = np.add.reduceat(pairs, first)
    return Terms(
        sample=sample,
        weight=_weight(sample, number),
        c=number(votes) / np.repeat(number(n_votes), length),
        g=g,
        t=number(agreeing) / number(all_pairs),
        d=number(2 * np.add.reduceat(on_label, first) - agreeing if L else agreeing) / number(all_pairs),
        C=number(C),
        L=number(L),
        D=number([parts.D])[0],
        E=number([parts.E])[0],
        C_E=number([parts.C_E])[0],
        kappa=number([parts.kappa])[0],
    )


def divided(top: npt.NDArray[Any], bottom: npt.NDArray[Any], exact: bool) -> Numbers:
    """Divide integers of one shape; into Fractions if ``exact``, else into floats, whatever the integers' size."""
    if not exact:
        quotient: Numbers = (top / bottom).astype(np.float64)
        return quotient
    found = np.empty(top.size, object)
    found[:] = [Fraction(a, b) for a, b in zip(top.ravel().tolist(), bottom.ravel().tolist(), strict=True)]
    return found.reshape(top.shape)


def item_weights(sample: Sample) -> npt.NDArray[np.float64]:
    """Return (K,) what all items of a pattern weigh; they add up to n."""
    return np.array(_weight(sample, _floats), np.float64)


def _weight(sample: Sample, number: Callable[[Any], Numbers]) -> Numbers:
    """Return (K,) weights that add up to n; plain counts where all items weigh the same."""
    if not sample.weighted:
        return sample.patterns.items
    n, masses = sample.n, sample.mass.tolist()
    whole = sum(masses)
    if number is _floats:
        return np.array([mass * n / whole for mass in masses])  # of integers: rounded once
    return number([Fraction(mass * n, whole) for mass in masses])


def _floats(values: Any) -> Numbers:
    return np.array([float(value) for value in values]) if isinstance(values, list) else values.astype(np.float64)


def _fractions(values: Any) -> Numbers:
    listed = values if isinstance(values, list) else values.tolist()
    found = np.empty(len(listed), object)
    found[:] = [Fraction(value) for value in listed]
    return found
