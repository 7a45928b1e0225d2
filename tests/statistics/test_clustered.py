"""Standard errors, intervals and differences with clusters against the oracle."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import baseline_oracle
import cluster_oracle as oracle
import dhkappa
from compare_oracle import BOTH, EXAMPLE
from dhkappa.stats.clusters import TOO_UNEQUAL, ClusterBasis
from dhkappa.stats.influence import kappa_basis
from strategies import Data, ragged

F = Fraction
FLOAT = 1e-11  # floats come from sums of a few dozen terms, each right to 10^-15 of the largest


@dataclass(frozen=True)
class Sampled:
    """Ragged data with clusters and, perhaps, weights and strata of whole clusters."""

    data: Data
    clusters: list[str]
    weights: list[int] | None = None
    strata: list[str] | None = None
    pool: dict[str, int] | None = None

    @property
    def rows(self) -> list[int]:
        """The eligible items."""
        several = [sum(vote is not None for vote in item) > 1 for item in self.data.votes]
        labeled = [label is not None for label in self.data.suggested]
        weigh = [True] * len(labeled) if self.weights is None else [w > 0 for w in self.weights]
        return [i for i in range(len(labeled)) if several[i] and labeled[i] and weigh[i]]

    @property
    def weight(self) -> list[Fraction]:
        if self.pool is not None:
            assert self.strata is not None
            number = Counter(self.strata[i] for i in self.rows)
            return [F(self.pool[self.strata[i]], number[self.strata[i]]) for i in self.rows]
        return [F(1) if self.weights is None else F(self.weights[i]) for i in self.rows]

    @property
    def kappa(self) -> dhkappa.Kappa:
        given: dict[str, Any] = {"sample_weight": self.weights, "strata": self.strata, "pool": self.pool}
        return dhkappa.dh_kappa(self.data.votes, self.data.suggested, clusters=self.clusters, **given)

    def expected(self) -> tuple[oracle.Kappa, oracle.Clustered]:
        items = [[vote for vote in self.data.votes[i] if vote is not None] for i in self.rows]
        of = oracle.kappa(items, [self.data.suggested[i] for i in self.rows], self.weight)
        strata = None if self.strata is None else [self.strata[i] for i in self.rows]
        own = [self.clusters[i] for i in self.rows]
        return of, oracle.clustered(of.phi, self.weight, own, strata, self.pool is not None)

    def taken(self, order: Sequence[int]) -> "Sampled":
        """The same items in another order."""
        lists = (self.weights, self.strata)
        weights, strata = (None if one is None else [one[i] for i in order] for one in lists)
        clusters = [self.clusters[i] for i in order]
        return Sampled(self.data.take(order), clusters, weights, strata, self.pool)  # type: ignore[arg-type]


@st.composite
def sampled(draw: st.DrawFn, kinds: Sequence[str] = ("none", "weights", "strata", "pool")) -> Sampled:
    data = draw(ragged(max_items=16, max_votes=5, max_categories=4))
    random, kind = Random(draw(st.integers(0, 2**32))), draw(st.sampled_from(kinds))
    clusters = [random.choice("abcdefg"[: draw(st.sampled_from([7, 5, 3]))]) for _ in data.votes]
    found = Sampled(data, clusters)
    if kind == "weights":
        found = replace(found, weights=[random.choice([0, 1, 2, 3, 7]) for _ in data.votes])
    if kind in ("strata", "pool"):
        found = replace(found, strata=["x" if g in "ace" else "y" for g in clusters])
    if kind == "pool":
        found = replace(found, pool={"x": 100, "y": 30})
    rows = found.rows
    own = {clusters[i] for i in rows}
    assume(1 < len(own) < len(rows))
    if found.strata is not None:
        assume(all(len({clusters[i] for i in rows if found.strata[i] == h}) > 1 for h in "xy"))
    assume(len({vote for i in rows for vote in data.votes[i] if vote is not None}) > 1)
    return found


@given(sampled())
def test_variance_with_clusters(given: Sampled) -> None:
    kappa, (of, found) = given.kappa, given.expected()
    assert kappa.exact == of.value
    known = kappa_basis(kappa.estimate)
    clusters = kappa.clusters
    assert clusters is not None
    assert clusters.n == len(found.T)
    assert clusters.effective == pytest.approx(float(found.G_e), rel=FLOAT)
    if not isinstance(known, ClusterBasis):
        assert found.S == 0 or given.strata is not None  # no variation within strata
        return
    variance = known.found
    pairs: list[tuple[float, Fraction | float]] = [
        (variance.jackknife, found.V_J),
        (variance.squares, found.S),
        (variance.tau, found.tau),
        (variance.unseen_size, found.n0),
        (variance.df, found.df),
    ]
    scale = max(1.0, float(found.S))
    for value, expected in pairs:
        assert value == pytest.approx(float(expected), rel=FLOAT, abs=FLOAT * scale)
    if found.G_e > len(set(given.strata or [""])):
        assert variance.pooled == pytest.approx(float(found.V_P), rel=1e-9, abs=FLOAT * scale)
    if found.V_J > 1e-18:
        assert kappa.se == pytest.approx(math.sqrt(found.V_J), rel=1e-9)


@given(sampled(kinds=["none"]), st.sampled_from([0.9, 0.95]))
def test_beta_interval_with_clusters(given: Sampled, level: float) -> None:
    kappa, (of, found) = given.kappa, given.expected()
    interval = kappa.confidence_interval(level)
    if len(found.T) < 3 or (found.S > 0 and found.V_J == 0) or (found.S == 0 and of.value != 1):
        assert math.isnan(interval.low)
        assert interval.reason
        return
    if found.n / found.deff <= 1:
        assert interval.reason == TOO_UNEQUAL
        return
    expected = oracle.beta_limits(of.value, of.E, found, float(min(of.least)), float(max(of.greatest)), level)
    assert [*interval] == pytest.approx(expected, rel=1e-7, abs=1e-7)


@given(sampled(), st.randoms(use_true_random=False))
def test_order_and_names_of_clusters_do_not_matter(given: Sampled, random: Random) -> None:
    kappa = given.kappa
    order = random.sample(range(len(given.clusters)), len(given.clusters))
    names = dict(zip("abcdefg", random.sample(range(50), 7), strict=True))
    moved = given.taken(order)
    renamed = replace(moved, clusters=[names[g] for g in moved.clusters])  # type: ignore[misc]
    expected = [kappa.value, kappa.se, *kappa.confidence_interval()]
    for other in (moved.kappa, renamed.kappa):
        found = [other.value, other.se, *other.confidence_interval()]
        if given.weights is None and given.strata is None:
            assert repr(found) == repr(expected)
        else:  # shares of unseen items are added up in the order of rows
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


@given(sampled(kinds=["none", "weights"]))
def test_kappa_does_not_depend_on_clusters_and_single_items_change_nothing(given: Sampled) -> None:
    votes, labels, weight = given.data.votes, given.data.suggested, given.weights
    plain = dhkappa.dh_kappa(votes, labels, sample_weight=weight)
    assert given.kappa.exact == plain.exact
    alone = dhkappa.dh_kappa(votes, labels, sample_weight=weight, clusters=list(range(len(votes))))
    found, expected = (
        [of.se, *of.confidence_interval(), *of.confidence_interval(method="wald")] for of in (alone, plain)
    )
    if weight is None:
        assert repr(found) == repr(expected)
    else:  # equal items are added up in another order
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def test_jackknife_that_deletes_clusters_is_near() -> None:
    """With many clusters, the variance is close to that of kappas without each cluster in turn."""
    sim = dhkappa.simulate(600, labelers={"llm": 0.8}, rng=3)
    clusters = [item // 5 for item in range(600)]
    kappa = dhkappa.dh_kappa(sim.votes, sim.suggested["llm"], clusters=clusters)
    without = [
        float(dhkappa.dh_kappa(np.delete(sim.votes, rows, 0), np.delete(sim.suggested["llm"], rows)))
        for rows in np.arange(600).reshape(120, 5)
    ]
    jackknife = math.sqrt(119 / 120 * sum((value - np.mean(without)) ** 2 for value in without))
    assert kappa.se == pytest.approx(jackknife, rel=0.01)


def two_labelers(given: Sampled, random: Random) -> list[Hashable]:
    labels = [label for label in given.data.suggested if label is not None]
    return [
        random.choice([label, label, random.choice(labels)]) if label is not None else None
        for label in given.data.suggested
    ]


@given(sampled(kinds=["none", "weights"]), st.randoms(use_true_random=False))
def test_paired_difference_with_clusters(given: Sampled, random: Random) -> None:
    other = two_labelers(given, random)
    labels = {"one": given.data.suggested, "other": other}
    options: dict[str, Any] = {"sample_weight": given.weights, "clusters": given.clusters}
    [row] = dhkappa.compare(given.data.votes, labels, **options).differences
    items = [[vote for vote in given.data.votes[i] if vote is not None] for i in given.rows]
    both = [oracle.kappa(items, [of[i] for i in given.rows], given.weight) for of in labels.values()]
    z = [a - b for a, b in zip(both[0].phi, both[1].phi, strict=True)]
    found = oracle.clustered(z, given.weight, [given.clusters[i] for i in given.rows])
    assert row["difference"] == float(both[0].value - both[1].value)
    if found.V_J > 1e-18 or found.S == 0:
        assert row["se"] == pytest.approx(math.sqrt(found.V_J), rel=1e-9, abs=1e-12)
    if len(found.T) < 3 or (found.S > 0 and found.V_J < 1e-18):
        assert math.isnan(row["low"])
        assert row["reason"] is not None or found.V_J < 1e-18
        return
    r = float(1 / (1 - both[0].E) + 1 / (1 - both[1].E))
    kish = float(sum(given.weight) ** 2 / sum(w * w for w in given.weight))
    n = min(kish if given.weights else math.inf, max(2.0, found.n / found.design_effect(r, 1 / 4)))
    limits = oracle.difference_limits(row["difference"], found, (-r, r), n)
    assert [row["low"], row["high"]] == pytest.approx(limits, rel=1e-7, abs=1e-7)


def test_paired_difference_of_the_worked_example() -> None:
    found = dhkappa.compare(EXAMPLE.votes, BOTH, clusters=list("112233"))
    [row] = found.differences
    assert row["se"] == pytest.approx(math.sqrt(386620047 / 5473632256), rel=1e-14)
    # Two clusters have an item with different labels: of the four ways to swap them, two give a difference as large.
    assert (row["method"], row["pvalue"]) == ("swap", 0.5)


def test_annotator_baseline_with_clusters() -> None:
    """The difference from a typical annotator is a paired difference, with its own influence of each item."""
    sim = dhkappa.simulate(36, labelers={"llm": 0.7}, annotators=4, rng=5)
    votes, labels = sim.votes.tolist(), sim.suggested["llm"].tolist()
    clusters = [place % 13 % 9 for place in range(36)]
    found = dhkappa.audit(sim.votes, sim.suggested, clusters=clusters, progress=False).annotator_baseline()
    score, n = baseline_oracle, 36
    own = score.influence(lambda w: score.labeler(votes, labels, w).kappa or F(0), n)
    typical = score.influence(lambda w: score.annotators(votes, w).kappa or F(0), n)
    one, other = score.labeler(votes, labels), score.annotators(votes)

    def limits(value: float, z: Sequence[float], ends: tuple[float, float]) -> list[float]:
        of = oracle.clustered([F(x) for x in z], [F(1)] * n, clusters)
        return oracle.difference_limits(value, of, ends, max(2.0, n / of.design_effect(max(map(abs, ends)), 1 / 4)))

    z = [a - b for a, b in zip(own, typical, strict=True)]
    reach = float(1 / (1 - one.E)), float(1 / (1 - other.E))
    best = float(score.best([4])) * reach[1]
    assert one.kappa is not None
    assert other.kappa is not None
    difference = float(one.kappa - other.kappa)
    assert found.difference == pytest.approx(difference, rel=1e-12)
    assert found.se == pytest.approx(math.sqrt(oracle.clustered([F(x) for x in z], [F(1)] * n, clusters).V_J), rel=1e-9)
    assert [found.low, found.high] == pytest.approx(limits(difference, z, (-sum(reach), best)), rel=1e-9)

    # A limit of the share kept is a share for which a limit of the difference is 0.
    x = score.influence(lambda w: score.labeler(votes, labels, w).above_random, n)
    y = score.influence(lambda w: score.annotators(votes, w).above_random, n)
    above = float(one.above_random), float(other.above_random)
    for rho, side in ((found.share_low, 0), (found.share_high, 1)):
        moves = [a - rho * b for a, b in zip(x, y, strict=True)]
        worst = -(reach[0] + abs(rho) * reach[1])
        assert limits(above[0] - rho * above[1], moves, (worst, best))[side] == pytest.approx(0, abs=1e-8)
