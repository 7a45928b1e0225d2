"""What is not available with clusters says so, notes on clusters, and clusters without an interval."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa import Audit, Kappa
from dhkappa.stats.clusters import NO_DIFFERENCE, ONE_CLUSTER, TOO_UNEQUAL, TWO_CLUSTERS, UNKNOWN
from expect import expect_error

N = 120
SIM = dhkappa.simulate(N, labelers={"llm": 0.9, "rule": 0.7}, annotators=4, rng=1)
DOCUMENTS = [place // 4 for place in range(N)]


def kappa(clusters: list[Any] | None = DOCUMENTS, **options: Any) -> Kappa:
    return dhkappa.dh_kappa(SIM.votes, SIM.suggested["llm"], clusters=clusters, **options)


def audited(clusters: list[Any] | None = DOCUMENTS, **options: Any) -> Audit:
    found = dhkappa.audit(SIM.votes, SIM.suggested, clusters=clusters, progress=False, rng=1, **options)
    assert isinstance(found, Audit)
    return found


def codes(of: Kappa | Audit) -> set[str]:
    return {note.code for note in of.notes}


REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "bootstrap": ("clusters-not-supported", lambda: kappa().bootstrap(9)),
    "bootstrap interval": ("clusters-not-supported", lambda: kappa().confidence_interval(method="bootstrap")),
    "bca interval": ("clusters-not-supported", lambda: kappa().confidence_interval(method="bca")),
    "permutation test": ("clusters-not-supported", lambda: kappa().permutation_test()),
    "plan": ("clusters-not-supported", lambda: dhkappa.plan(0.05, kappa())),
    "fleiss_kappa": ("option-not-supported", lambda: dhkappa.fleiss_kappa(SIM.votes, clusters=DOCUMENTS)),
    "tally": ("option-not-supported", lambda: dhkappa.tally(SIM.votes, SIM.suggested, clusters=DOCUMENTS)),
    "saved audit": ("option-not-supported", lambda: audited().save("never.json")),
    "agreement weights": ("option-not-supported", lambda: kappa(weights="linear", categories=["a", "b", "c"])),
    "slices": ("option-not-supported", lambda: audited(slices=DOCUMENTS)),
    "one vote": ("option-not-supported", lambda: dhkappa.audit(SIM.votes[:, :1], SIM.suggested, clusters=DOCUMENTS)),
    "no labels": ("option-not-supported", lambda: dhkappa.audit(SIM.votes, clusters=DOCUMENTS)),
    "compare with weights": (
        "option-not-supported",
        lambda: dhkappa.compare(
            SIM.votes, SIM.suggested, clusters=DOCUMENTS, weights="linear", categories=["a", "b", "c"]
        ),
    ),
    "audit with weights": ("option-not-supported", lambda: audited(weights="linear", categories=["a", "b", "c"])),
    "multilabel": (
        "option-not-supported",
        lambda: dhkappa.audit([["a;b", "a"]] * 4, {"llm": ["a"] * 4}, multilabel=";", clusters=[1, 1, 2, 2]),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_available(name: str) -> None:
    code, call = REFUSED[name]
    with expect_error(code, "clusters"):
        call()


def test_pool_is_a_mapping_or_refused() -> None:
    with expect_error("pool-with-clusters", "pool"):
        kappa(pool=1000)
    strata = ["a" if place < 60 else "b" for place in range(N)]
    found = kappa(strata=strata, pool={"a": 100, "b": 1000})
    assert "pool-clusters" in codes(found)
    assert found.exact == kappa(None, strata=strata, pool={"a": 100, "b": 1000}).exact


def test_strata_are_groups_of_whole_clusters() -> None:
    with expect_error("cluster-in-strata", "clusters"):
        kappa(strata=["a", "b"] * 60)
    with expect_error("stratum-one-cluster", "strata"):
        kappa(strata=["a"] * 116 + ["b"] * 4)


@pytest.mark.parametrize(
    ("clusters", "reason", "has_se"),
    [
        ([1] * N, ONE_CLUSTER, False),
        ([1] * 60 + [2] * 60, TWO_CLUSTERS, True),
        ([place // 40 for place in range(N)], None, True),
    ],
)
def test_few_clusters(clusters: list[int], reason: str | None, has_se: bool) -> None:
    found = kappa(clusters)
    interval = found.confidence_interval()
    assert interval.reason == reason
    assert math.isnan(interval.low) == math.isnan(interval.high) == (reason is not None)
    assert math.isnan(found.se) != has_se
    assert found.exact == kappa(None).exact
    assert "few-clusters" in codes(found) or found.se != found.se
    wald = found.confidence_interval(method="wald")
    assert math.isnan(wald.low) == (reason is not None)


def test_clusters_that_do_not_differ_and_clusters_that_are_too_unequal() -> None:
    votes, labels = [("a", "a"), ("b", "b"), ("a", "b"), ("b", "b")], ["a", "b", "a", "a"]
    alike = dhkappa.dh_kappa(votes * 3, labels * 3, clusters=[1] * 4 + [2] * 4 + [3] * 4)
    assert alike.confidence_interval().reason == NO_DIFFERENCE
    assert math.isnan(alike.se)
    flawless = [("a", "a"), ("b", "b")] * 60 + [("a", "b"), ("b", "a")]
    heavy = dhkappa.dh_kappa(flawless, ["a", "b"] * 60 + ["b", "b"], clusters=[1] * 120 + [2, 3])
    assert heavy.confidence_interval().reason == TOO_UNEQUAL


def test_flawless_samples_have_an_interval() -> None:
    votes, labels = [("a", "a", "a"), ("b", "b", "b")] * 20, ["a", "b"] * 20
    clusters = [place // 4 for place in range(40)]
    alone, grouped = dhkappa.dh_kappa(votes, labels), dhkappa.dh_kappa(votes, labels, clusters=clusters)
    assert (grouped.se, grouped.confidence_interval().high) == (0, 1)
    hidden = 1 - 0.025 ** (4 / 40)  # a flawless sample counts as one of ten items
    assert grouped.confidence_interval().low == pytest.approx(1 - 2 * hidden)
    assert grouped.confidence_interval().low < alone.confidence_interval().low


def test_notes() -> None:
    assert "clusters" in codes(kappa())
    assert {"few-clusters", "cluster-heavy"} & codes(kappa()) == set()
    few = kappa([place // 12 for place in range(N)])
    assert "few-clusters" in codes(few)
    assert "cluster-heavy" not in codes(few)
    assert "cluster-heavy" in codes(kappa([0] * 40 + list(range(1, 81))))
    assert codes(kappa(list(range(N)))) == codes(kappa(None))


def test_clusters_of_a_kappa() -> None:
    found = kappa().clusters
    assert found is not None
    assert (found.n, found.largest, found.effective) == (30, 4, 30)
    assert found.design_effect == pytest.approx((kappa().se / kappa(None).se) ** 2)
    low, high = kappa().confidence_interval()
    least, most = kappa(None).confidence_interval()
    assert found.widening == pytest.approx((high - low) / (most - least))
    assert kappa().to_dict()["clusters"] == {
        "n": 30,
        "largest": 4,
        "effective": 30,
        "design_effect": found.design_effect,
    }
    assert "clusters" not in kappa(None).to_dict()
    assert kappa(None).clusters is None
    alone = kappa(list(range(N))).clusters
    assert alone is not None
    assert (alone.n, alone.largest, alone.design_effect) == (N, 1, 1)


def test_categories_have_no_limits() -> None:
    rows, plain = kappa().by_category(), kappa(None).by_category()
    assert rows.column("kappa") == plain.column("kappa")
    assert all(math.isnan(row["low"]) and math.isnan(row["se"]) and row["reason"] == UNKNOWN for row in rows)


def test_an_audit_leaves_out_what_treats_items_as_independent() -> None:
    found, plain = audited(), audited(None)
    assert "clusters-left-out" in codes(found)
    assert found.permutation_tests == {"llm": None, "rule": None}
    assert math.isnan(found.fleiss.se)
    assert found.fleiss.exact == plain.fleiss.exact
    assert found.fleiss.confidence_interval().reason == UNKNOWN
    compared, other = found.annotator_comparison("llm"), plain.annotator_comparison("llm")
    assert (compared.difference, compared.matched) == (other.difference, other.matched)
    assert math.isnan(compared.low)
    assert compared.reason == UNKNOWN
    assert all(math.isnan(row["low"]) for row in compared.table)
    assert not len(found.sample_sizes("llm"))
    assert "scores-independent" in {note.code for note in found.annotator_scores().notes}
    assert found.review("llm").to_dicts() == plain.review("llm").to_dicts()
    assert found.kappas["llm"].exact == plain.kappas["llm"].exact
    assert found.to_dict()["labelers"]
    assert found.without(0).table


def test_verdict_and_gate_use_intervals_with_clusters() -> None:
    """Labels that are good in some documents and bad in others: few documents decide nothing."""
    rng = np.random.default_rng(3)
    documents = [place // 40 for place in range(400)]
    sim = dhkappa.simulate(400, labelers={"llm": 0.95}, annotators=4, rng=3)
    labels = sim.suggested["llm"].copy()
    for document in range(5):
        rows = slice(40 * document, 40 * document + 40)
        labels[rows] = rng.permutation(labels[rows])
    plain, clustered = (
        dhkappa.audit(sim.votes, {"llm": labels}, clusters=clusters, progress=False) for clusters in (None, documents)
    )
    assert plain.verdict().code in ("below", "clearly-below")
    assert clustered.verdict().code == "not-enough-data"
    assert clustered.verdict().n_more is None
    assert (plain.gate("annotators").outcome, clustered.gate("annotators").outcome) == ("fail", "undecided")
    assert clustered.gate("annotators").rows[0].more_items is None
    low, high = clustered.kappas["llm"].confidence_interval()
    row = clustered.gate(round(plain.kappas["llm"].confidence_interval().low, 3)).rows[0]
    assert (row.low, row.high, row.outcome) == (low, high, "undecided")


def test_compare_without_an_interval_keeps_the_difference() -> None:
    [row] = dhkappa.compare(SIM.votes, SIM.suggested, clusters=[1] * 60 + [2] * 60).differences
    [plain] = dhkappa.compare(SIM.votes, SIM.suggested).differences
    assert row["difference"] == plain["difference"]
    assert row["reason"] == TWO_CLUSTERS
    assert row["se"] > 0
    assert math.isnan(row["low"])
    assert math.isnan(row["pvalue"])


def test_swaps_of_whole_clusters() -> None:
    """All items with different labels are in one cluster: swapping it gives the same distance, always."""
    labels = SIM.suggested["llm"].copy()
    labels[:4] = np.roll(labels[:4], 1)
    labels[0] = next(name for name in "abc" if name != SIM.suggested["llm"][0])
    [row] = dhkappa.compare(SIM.votes, {"llm": SIM.suggested["llm"], "new": labels}, clusters=DOCUMENTS).differences
    assert (row["method"], row["pvalue"]) == ("swap", 1.0)
