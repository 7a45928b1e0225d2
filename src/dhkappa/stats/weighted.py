"""Kappa and Fleiss' kappa with agreement weights, an extension of the paper, as exact fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array
from dhkappa.stats.kappa import (
    Estimate,
    ExactBaselines,
    Parts,
    Sums,
    above_chance,
    distinct,
    estimate_dh,
    estimate_fleiss,
)
from dhkappa.stats.sample import Sample
from dhkappa.stats.summation import integer_type, totals
from dhkappa.stats.weights import PairSums, Weights, label_sums, pair_sums

_SAME = "Every category that occurs has weight 1 with every other."


@dataclass(frozen=True, eq=False)
class WeightedEstimate(Estimate):
    """A kappa with agreement weights."""

    @cached_property
    def baselines(self) -> ExactBaselines:
        """Kappa of random labels and of majority labels."""
        parts, weights, sample = self.parts, self.weights, self.sample.merged()
        if parts is None or weights is None:
            return ExactBaselines()
        total, unit, patterns = parts.sums, weights.unit, sample.patterns
        near, majority = pair_sums(patterns, weights).near, _majority(sample)
        # A_x: share of pairs by the category of the first vote. Permuted labels agree with sum_x A_x (wL)_x of them.
        A = _means(sample, near, unit, patterns.code, len(sample.categories))
        wL = (weights.scaled.astype(object) @ np.array(total.labels, object)).tolist()
        on_random = sum((share * number for share, number in zip(A, wL, strict=True)), Fraction(0))
        random_D = 2 * on_random / (total.n * unit) - (parts.R + parts.S)
        on_majority = label_sums(patterns, weights.scaled, near, majority)
        majority_D = 2 * _mean(sample, on_majority, unit**2) - (parts.R + parts.S)
        labels = totals(sample.mass, majority, len(sample.categories)).tolist()
        majority_E = 2 * _chance(total, labels, weights)[1] - (parts.C_E + parts.C_F)
        return ExactBaselines(above_chance(random_D, parts.E), above_chance(majority_D, majority_E))


def estimate_weighted(sample: Sample, weights: Weights) -> Estimate:
    """Estimate kappa with agreement weights; the categories of the sample are in order."""
    plain = estimate_dh(sample)
    parts, reason = plain.parts, plain.reason
    if parts is None or plain.exact is None:
        return WeightedEstimate("weighted", sample, plain.sums, parts, reason=reason, weights=weights)
    merged = sample.merged()
    parts = weighted_parts(merged, pair_sums(merged.patterns, weights), parts.sums, weights)
    reason = _SAME if parts.kappa is None else None
    fleiss = above_chance(parts.R + parts.S, parts.C_E + parts.C_F)
    return WeightedEstimate("weighted", sample, plain.sums, parts, parts.kappa, fleiss, reason, weights)


def estimate_weighted_fleiss(sample: Sample, weights: Weights) -> Estimate:
    """Estimate Fleiss' kappa with agreement weights: two votes x and y agree by w_xy."""
    plain = estimate_fleiss(sample)
    if plain.parts is None or plain.exact is None:
        return Estimate("weighted-fleiss", sample, plain.sums, plain.parts, reason=plain.reason, weights=weights)
    merged, total = sample.merged(), plain.parts.sums
    agreeing = _mean(merged, pair_sums(merged.patterns, weights).agreeing, weights.unit)
    same, _ = _chance(total, total.labels, weights)
    parts = Parts(agreeing, Fraction(0), same, Fraction(0), sample.categories, total)
    kappa = parts.kappa
    reason = _SAME if kappa is None else None
    return Estimate("weighted-fleiss", sample, plain.sums, parts, kappa, fleiss=kappa, reason=reason, weights=weights)


def weighted_parts(sample: Sample, pairs: PairSums, total: Sums, weights: Weights) -> Parts:
    """Return R, S, C_E and C_F with these weights, as exact fractions; ``total`` are the sums of the sample."""
    R = _mean(sample, pairs.on_label, weights.unit**2)
    S = _mean(sample, pairs.agreeing, weights.unit) - R
    same, C_E = _chance(total, total.labels, weights)
    return Parts(R, S, C_E, same - C_E, sample.categories, total)


def _chance(total: Sums, labels: list[int], weights: Weights) -> tuple[Fraction, Fraction]:
    """Return the agreement of two votes by chance, and C_E for labels with these counts."""
    votes = np.array([total.votes], object)
    (same,), (on,) = weights.chance(votes, np.array([labels], object))
    whole = (total.n * total.vote_unit) ** 2 * weights.unit
    return Fraction(int(same), whole), Fraction(int(on), whole * weights.unit * total.n)


def _majority(sample: Sample) -> npt.NDArray[np.int64]:
    """Return (K,) the most frequent vote of each pattern, the first category of several."""
    patterns, m = sample.patterns, len(sample.categories)
    key = patterns.votes.astype(np.int64) * m - patterns.code
    found: npt.NDArray[np.int64] = -np.maximum.reduceat(key, patterns.start[:-1]) % m
    return found


def _mean(sample: Sample, sums: Array, unit: int) -> Fraction:
    """Return the mean over items of sums over ordered pairs of votes, each divided by the number of pairs and unit."""
    (found,) = _means(sample, sums, unit, np.zeros(len(sums), np.int64), 1)
    return found


def _means(sample: Sample, sums: Array, unit: int, group: Array, size: int) -> list[Fraction]:
    """Return such means by group; ``sums`` are by row of the sample or by entry."""
    n_votes, mass = sample.patterns.vote_totals(), sample.mass
    pairs = n_votes * (n_votes - 1)
    common, whole = math.lcm(*(N * (N - 1) for N in distinct(n_votes))), int(mass.sum())
    integer = integer_type(common * unit * whole)
    each = mass.astype(integer) * (common // pairs.astype(integer))
    each = each if len(sums) == len(each) else np.repeat(each, np.diff(sample.patterns.start))
    added = totals(each * sums.astype(integer), group, size)
    return [Fraction(int(number), common * unit * whole) for number in added.tolist()]
