"""Clusters: variances and intervals of estimates whose items come in groups, such as the sentences of a document.

Items of a cluster may be alike, so that n items say less than n independent ones. The formulas are in docs/methods.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats
from dhkappa.errors import DataError, invalid
from dhkappa.stats.intervals import Basis, KappaDifference, beta_interval, skewness
from dhkappa.stats.sample import ROUNDING, Sample, weight_of_one
from dhkappa.stats.summation import exact_sum, group_sums, item_sums
from dhkappa.table import Table, plain

FEW_CLUSTERS = 20  # with fewer, by effective number, the limits are wide
HEAVY = 0.2  # share of the items of one cluster, from which on the result depends on it

ONE_CLUSTER = "All items are of one cluster, which cannot show how far clusters differ."
TWO_CLUSTERS = "Two clusters are too few for confidence limits."
NO_DIFFERENCE = "Every cluster has the same influence, so the standard error is unknown."
TOO_UNEQUAL = "The clusters are too few, or too unequal, for confidence limits."
UNKNOWN = "The standard error has not been verified with clusters."
_LOWER_WEIGHT = 0.25  # part of a worst cluster that limits allow for


def without_limits(table: Table) -> Table:
    """Return a table of kappas without standard errors and limits, which were computed for independent items."""
    columns = {name: table.column(name) for name in table.names}
    columns |= {name: [math.nan] * len(table) for name in ("se", "low", "high")}
    columns["reason"] = [reason or UNKNOWN for reason in columns["reason"]]
    return Table(columns, title=table.title)


def refuse_clusters(sample: Sample, what: str) -> None:
    """Refuse a sample with clusters."""
    if sample.clustered:
        message = f"{what} is not available with clusters: it treats items as independent."
        hint = "To compute it as if they were, omit $clusters."
        raise DataError(message, code="clusters-not-supported", parameter="clusters", hint=hint)


def refuse_any_time(sample: Sample) -> None:
    """Refuse intervals that hold at every look of a sample with clusters."""
    if sample.clustered:
        message = "Intervals that hold at every look have not been verified with clusters."
        raise invalid("any_time", message, code="option-not-supported", hint="Leave out $any_time.")


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSizes:
    """The clusters of a sample: what depends on their weights only."""

    sample: Sample
    cluster: npt.NDArray[np.int64]  # (K,) cluster of each pattern
    one: Floats  # (K,) weight of one item; the weights of all items sum to n
    weight: Floats  # (G,) W_g
    items: npt.NDArray[np.int64]  # (G,) number of items
    stratum: npt.NDArray[np.int64]  # (G,) the stratum of each cluster
    own: Floats  # (G,) sum of squared weights of the items of a cluster

    @staticmethod
    def of(sample: Sample) -> ClusterSizes:
        """Return the clusters of a sample that has some."""
        assert sample.cluster is not None
        cluster, items, one = sample.cluster.astype(np.int64), sample.patterns.items, weight_of_one(sample)
        G = int(cluster.max()) + 1
        number, stratum = np.zeros(G, np.int64), np.zeros(G, np.int64)
        np.add.at(number, cluster, items)
        stratum[cluster] = sample.stratum
        weight, own = (item_sums(values, items, cluster, G) for values in (one, one * one))
        return ClusterSizes(sample, cluster, one, weight, number, stratum, own)

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.items.sum())

    @property
    def H(self) -> int:
        """Number of strata."""
        return int(np.unique(self.stratum).size)

    @property
    def squares(self) -> float:
        """Sum of the squared weights of clusters."""
        return exact_sum(self.weight * self.weight)

    @property
    def effective(self) -> float:
        """G_e: number of clusters of equal size that carry as much information."""
        return self.n**2 / self.squares

    @property
    def mean_size(self) -> float:
        """b: size of the cluster that an item is in, on average."""
        return self.squares / self.n

    @property
    def unseen_size(self) -> float:
        """n_0: size of a cluster that the sample may have missed."""
        several = self.weight[self.items > 1]
        b = self.mean_size
        return min(b, math.sqrt(b * exact_sum(several) / several.size)) if several.size else 1.0

    @property
    def df(self) -> float:
        """Degrees of freedom: clusters of unequal size tell less, and so do those of one item about dependence."""
        several, b, df = self.weight[self.items > 1], self.mean_size, self.effective - 1
        telling = exact_sum(several) ** 2 / exact_sum(several * several) if several.size else 0.0
        if telling > 1 and self.n > 1:
            df = min(df, b**2 / (1 / (self.n - 1) + (b - 1) ** 2 / (telling - 1)))
        return max(1.0, df - (self.H - 1))

    def variance(self, phi: Array) -> ClusterVariance:
        """Return the variance of an estimate with influence values phi, (K,)."""
        n, G, H, strata = self.n, self.weight.size, self.H, self.sample.strata
        items, squares = self.sample.patterns.items, self.squares
        if self.sample.shares_known and H > 1:
            top, below = (
                item_sums(values, items, self.sample.stratum, len(strata)) for values in (self.one * phi, self.one)
            )
            phi = phi - (top / np.where(below > 0, below, 1))[self.sample.stratum]
        z = self.one * phi
        total, own = (item_sums(values, items, self.cluster, G) for values in (z, z * z))
        if exact_sum(own) <= ROUNDING**2 * n:  # what is left is rounding
            total, own = np.zeros(G), np.zeros(G)
        S, T = exact_sum(own), total
        known = np.bincount(self.stratum, minlength=len(strata))
        if H > 1 and not self.sample.shares_known:
            T = total - (group_sums(total, self.stratum, len(strata)) / np.maximum(known, 1))[self.stratum]
        whole, number = group_sums(self.weight, self.stratum, len(strata))[self.stratum], known[self.stratum]
        far = T / np.where(number > 1, (whole - self.weight) / whole, 1)  # 1 - p_g|h
        jackknife = exact_sum((number - 1) / number * far * far) / n**2
        several = self.items > 1
        pairs = np.where(several, self.weight**2 - self.own, 1)
        by_cluster = np.where(several, self.weight * (total * total - own) / pairs, 0)
        tau = exact_sum(by_cluster) / (exact_sum(self.weight[several]) or 1)
        free = self.effective - H  # degrees of freedom
        pooled = max(0.0, S + tau * (squares - exact_sum(self.own))) / n**2
        pooled = pooled * self.effective / free if free > 0 else math.inf
        return ClusterVariance(
            n=n,
            jackknife=0.0 if jackknife <= ROUNDING**2 / n else jackknife,  # NaN stays
            pooled=pooled,
            tau=tau,
            squares=S,
            skew=skewness(exact_sum(T * T * T), exact_sum(T * T)),
            effective=self.effective,
            unseen_size=self.unseen_size,
            df=self.df,
            n_clusters=G,
        )


@dataclass(frozen=True, slots=True)
class ClusterVariance:
    """The variance of an estimate whose items come in clusters."""

    n: int  # number of items
    jackknife: float  # V_J, the square of the standard error
    pooled: float  # V_P: the dependence of two items of a cluster is taken as the same in all clusters
    tau: float  # mean product of two items of a cluster
    squares: float  # sum of z^2 over items
    skew: float  # skewness of the sums over clusters
    effective: float  # G_e
    unseen_size: float  # n_0
    df: float
    n_clusters: int

    @property
    def value(self) -> float:
        """V, the variance that intervals use."""
        return max(self.jackknife, self.pooled)

    @property
    def independent(self) -> float:
        """V_0, the variance if items were independent."""
        return self.squares / (self.n * (self.n - 1))

    @property
    def deff(self) -> float:
        """The design effect of intervals, at least 1."""
        return max(1.0, self.value / self.independent) if self.independent > 0 else 1.0

    @property
    def se(self) -> float:
        """The standard error; NaN if it is unknown."""
        unknown = self.n_clusters == 1 or (self.jackknife == 0 and self.squares > 0)
        return math.nan if unknown else math.sqrt(self.jackknife)

    @property
    def reason(self) -> str | None:
        """Why there are no limits; None if there are. An estimate that no item moves has limits."""
        if self.n_clusters == 1:
            return ONE_CLUSTER
        if self.n_clusters == 2:
            return TWO_CLUSTERS
        if self.squares > 0 and self.jackknife == 0:
            return NO_DIFFERENCE
        return TOO_UNEQUAL if math.isinf(self.value) else None

    def with_unseen(self, phi: float, part: float = _LOWER_WEIGHT) -> float:
        """Return the design effect as if part of a worst cluster were in the sample, all of whose items have phi."""
        size = self.unseen_size
        below = self.squares + part * size * phi**2
        if not below > 0:
            return 1.0
        found = (self.n**2 * self.value + part * (size * phi) ** 2) / below
        return min(max(found, 1.0), max(size, self.deff))

    def difference(self, value: float, worst: float, best: float, n: float = math.inf) -> KappaDifference:
        """Return a difference whose limits use this variance; ``n`` is the effective number of items if independent."""
        effective = min(n, max(2.0, self.n / self.with_unseen(max(abs(worst), abs(best)))))
        return KappaDifference(value, math.sqrt(self.value), self.skew, effective, self.df, worst, best)


@dataclass(frozen=True, slots=True)
class ClusterBasis:
    """What the standard error and the intervals of a kappa are computed from, with clusters."""

    independent: Basis  # as if the items were independent
    found: ClusterVariance

    @property
    def se(self) -> float:
        """The standard error of kappa."""
        return self.found.se

    @property
    def reason(self) -> str | None:
        """Why there is no interval; None if there is one."""
        return self.found.reason or (None if self.found.n > self.found.deff else TOO_UNEQUAL)

    def at(self, alpha: float) -> Basis:
        """Return the basis of the interval at a level, with the effective number of items and wider quantiles."""
        from dhkappa.stats.special import stdtrit

        known, found, n = self.independent, self.found, self.found.n
        n_effective = n / found.deff
        ratio = float(stdtrit(found.df, 1 - alpha / 2)) / float(stdtrit(n - 1, 1 - alpha / 2))
        low = found.with_unseen(known.least) / n
        high = found.with_unseen(known.greatest, min(1.0, max(_LOWER_WEIGHT, 15 / found.effective))) / n
        return replace(
            known,
            n=n_effective,
            squares=found.value * ratio**2 * n_effective * (n_effective - 1),
            least_share=max(low, known.least_share),
            greatest_share=max(high, known.greatest_share),
            unseen=max(low, known.unseen),
            df=n - 1,
        )

    @property
    def widening(self) -> float:
        """How many times as wide the 95% interval is as that of independent items; NaN without an interval."""
        if self.reason is not None:
            return math.nan
        low, high = beta_interval(self.at(0.05), 0.05)
        least, most = beta_interval(self.independent, 0.05)
        return (high - low) / (most - least)


@dataclass(frozen=True, slots=True)
class NoBasis:
    """No standard error and no interval."""

    reason: str
    se: float = math.nan


def cluster_differences(gaps: KappaDifference, found: Sequence[ClusterVariance]) -> KappaDifference:
    """Return differences, whose attributes are arrays, with limits that use these variances."""
    each = zip(found, gaps.value.tolist(), gaps.worst.tolist(), gaps.best.tolist(), gaps.n.tolist(), strict=True)
    own = [one.difference(*row) for one, *row in each]
    se, n, df = (np.array([getattr(one, name) for one in own]) for name in ("se", "n", "df"))
    return replace(gaps, se=se, n=n, df=df)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters that items come from.

    Attributes
    ----------
    n : number of clusters
    largest : number of items of the largest
    effective : number of clusters of equal size that carry as much information
    design_effect : variance of kappa divided by that of as many independent items; NaN if unknown
    largest_share : share of the weight of the heaviest cluster
    widening : how many times as wide the 95% confidence interval is as that of independent items; NaN without one
    reason : why there is no confidence interval; None if there is
    """

    n: int
    largest: int
    effective: float
    design_effect: float
    largest_share: float
    widening: float = math.nan
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        return {name: plain(getattr(self, name)) for name in ("n", "largest", "effective", "design_effect")}


def clusters_of(sample: Sample, basis: Basis | ClusterBasis | NoBasis) -> Clusters | None:
    """Return the clusters of a sample; ``basis`` is that of its kappa."""
    if sample.cluster is None or not sample.n:
        return None
    sizes = ClusterSizes.of(sample)
    effect, widening = math.nan if sample.clustered else 1.0, math.nan
    if isinstance(basis, ClusterBasis):
        known, widening = basis.found, basis.widening
        if known.independent > 0 and known.n_clusters > 1:
            effect = known.jackknife / known.independent
    counts = int(sizes.items.size), int(sizes.items.max()), sizes.effective, effect
    return Clusters(*counts, float(sizes.weight.max()) / sizes.n, widening, basis.reason)
