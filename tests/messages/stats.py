"""Calls that raise each error and give each note of samples, kappa, intervals, bootstrap and permutation tests."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dhkappa import compare, dh_kappa, fleiss_kappa, simulate
from dhkappa.stats.annotator_baseline import AnnotatorBaseline

A, B, C = ["a", "a"], ["b", "b"], ["c", "c"]
VOTES = [["a", "a", "a"], ["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "c"], ["b", "b", "b"]]
LABELS = ["a", "a", "b", "b", "c", "c"]
STRATA = ["x", "x", "x", "y", "y", "y"]
WEIGHTS = [1, 2, 3, 4, 5, 6]


def kappa(**given: Any) -> Any:
    return dh_kappa(VOTES, LABELS, **given)


def large() -> Any:
    data = simulate(300, categories=list("abcdefgh"), rng=1)
    return dh_kappa(data.votes, data.suggested["labeler"])


def for_others(votes: Any, labels: Any = None, interval: Any = None, **given: Any) -> Any:
    options = {"annotators": "random"} | (interval or {})
    return dh_kappa(votes, LABELS if labels is None else labels, **given).confidence_interval(**options)


def changed() -> Any:
    votes = np.array(VOTES)
    kappa = dh_kappa(votes, LABELS)
    votes[0] = votes[3]
    return kappa.confidence_interval(annotators="random")


def few_annotators() -> Any:
    data = simulate(300, annotators=7, rng=1)
    return for_others(data.votes, data.suggested["labeler"])


CASES: dict[str, Callable[[], Any]] = {
    # Samples
    "pool-without-strata": lambda: kappa(pool={"x": 10}),
    "pool-not-by-stratum": lambda: kappa(strata=STRATA, pool=10),
    "pool-with-weights": lambda: kappa(pool=10, sample_weight=WEIGHTS),
    "pool-stratum-missing": lambda: kappa(strata=STRATA, pool={"x": 9}),
    "pool-unknown-stratum": lambda: kappa(strata=STRATA, pool={"x": 9, "y": 9, "z": 3}),
    "invalid-pool-size": lambda: kappa(pool=7.5),
    "invalid-pool-size (stratum)": lambda: kappa(strata=STRATA, pool={"x": 9, "y": -1}),
    "pool-too-small": lambda: kappa(pool=5),
    "pool-too-small (stratum)": lambda: kappa(strata=STRATA, pool={"x": 9, "y": 2}),
    "stratum-one-item": lambda: kappa(strata=["x"] * 5 + ["y"]),
    "stratum-one-cluster": lambda: kappa(strata=STRATA, clusters=[1, 1, 1, 2, 3, 3]),
    "cluster-in-strata": lambda: kappa(strata=STRATA, clusters=[1, 1, 2, 2, 3, 3]),
    "pool-with-clusters": lambda: kappa(pool=10, clusters=[1, 1, 2, 2, 3, 3]),
    "missing-cluster (arrays)": lambda: kappa(clusters=[1, 1, 2, 2, 3, None]),
    "clusters-not-supported": lambda: kappa(clusters=[1, 1, 2, 2, 3, 3]).bootstrap(9),
    "stratum-empty": lambda: dh_kappa([A, A, ["b"]], ["a", "a", "a"], strata=["x", "x", "y"]),
    "invalid-rng": lambda: kappa().bootstrap(9, rng="seed"),
    "invalid-n-resamples": lambda: kappa().bootstrap(0),
    # Other annotators
    "few-annotators": few_annotators,
    "annotators-unknown (interval)": lambda: for_others(VOTES),
    "votes-changed": changed,
    "option-not-supported (other annotators)": lambda: for_others(np.array(VOTES), sample_weight=WEIGHTS),
    "option-not-supported (method)": lambda: for_others(np.array(VOTES), interval={"method": "bca"}),
    "option-not-supported (comparison)": lambda: compare(
        np.array(VOTES), {"x": LABELS, "y": LABELS[::-1]}, other_annotators=True, pool=100
    ),
    "invalid-annotators (interval)": lambda: for_others(np.array(VOTES), interval={"annotators": "all"}),
    # Results
    "invalid-confidence-level": lambda: kappa().confidence_interval(95),
    "invalid-method (interval)": lambda: kappa().confidence_interval(method="bayes"),
    "invalid-method (interval of Fleiss' kappa)": lambda: fleiss_kappa([A, B]).confidence_interval(method="bca"),
    "metric-not-supported": lambda: fleiss_kappa([A, B]).permutation_test(),
    "kappa-undefined": lambda: dh_kappa([A], ["a"]).by_category(),
    # Rates
    "not-two-categories": lambda: kappa().rates(positive="a"),
    "category-not-found (rates)": lambda: kappa().rates(positive="A1"),
    "metric-not-supported (rates)": lambda: kappa(categories=[*"abc"], weights="linear").rates(),
    "rates-one-vote": lambda: dh_kappa([A, ["a"], B], ["a", "a", "b"]).rates(),
    "rates-few-votes": lambda: dh_kappa([A, B], ["a", "b"]).rates(),
    "rates-annotators-disagree": lambda: dh_kappa([["a", "b"], B], ["a", "b"]).rates(),
    # Annotator baseline
    "invalid-keep": lambda: AnnotatorBaseline().decide(keep=80),
    "invalid-margin": lambda: AnnotatorBaseline().decide(margin=-0.05),
    "margin-with-keep": lambda: AnnotatorBaseline().decide(keep=0.8, margin=0.05),
    # Permutation test
    "invalid-method (permutation test)": lambda: kappa().permutation_test("all"),
    "invalid-alternative": lambda: kappa().permutation_test(alternative="less"),
    "any-time-level": lambda: kappa().confidence_interval(0.5, any_time=True),
    "method-needs-equal-weights": lambda: kappa(sample_weight=WEIGHTS).permutation_test("gamma"),
    "permutation-too-large (exact)": lambda: large().permutation_test("exact"),
    "permutation-too-large (monte-carlo)": lambda: large().permutation_test("monte-carlo", n_resamples=10**8),
    # Notes
    "items-excluded": lambda: dh_kappa([A, ["a"], []], ["a", "a", "a"]),
    "few-items": lambda: dh_kappa([A, B], ["a", "b"]),
    "one-category-voted": lambda: dh_kappa([A, A], ["a", "b"]),
    "one-label": lambda: dh_kappa([A, B], ["a", "a"]),
    "rare-labels": lambda: dh_kappa([A] * 40 + [B], ["a"] * 40 + ["b"]),
    "few-imperfect-items": lambda: dh_kappa([A] * 40 + [["a", "b"]], ["a"] * 41),
    "two-categories": lambda: dh_kappa([A, B], ["a", "b"]),
    "agreement-certain": lambda: dh_kappa([A], ["a"]),
    "perfect": lambda: dh_kappa([A, B], ["a", "b"]),
    "agree-on-others": lambda: dh_kappa([A, A], ["b", "b"]),
    "below-random": lambda: dh_kappa([A, B, C], ["b", "c", "a"]),
    "labels-not-in-votes": lambda: dh_kappa([A, B], ["x", "b"]),
    "never-suggested": lambda: dh_kappa([A, B, C], ["a", "b", "a"]),
    "never-suggested (several)": lambda: dh_kappa([A, B, C], ["a", "a", "a"]),
    "equals-majority": lambda: dh_kappa([A, B, ["a", "a", "b"]], ["a", "b", "a"]),
    "looks-missing": lambda: dh_kappa([["a", "N/A"], B], ["a", "b"]),
    "category-variants": lambda: dh_kappa([["Yes", "yes "], ["no", "No"]], ["Yes", "no"]),
    "category-variants (numbers)": lambda: dh_kappa([["3", "3.0"], ["2", "2"]], ["3", "2"]),
    "labels-mixed": lambda: dh_kappa([["a", 1], ["b", "b"]], ["a", "b"]),
    "random-not-zero": lambda: dh_kappa([A, B, C], ["a", "b", "c"]),
    "low-agreement": lambda: dh_kappa([["a", "b"], ["b", "c"], ["a", "c"]], ["a", "b", "c"]),
    "no-standard-error": lambda: dh_kappa([A] * 5, ["b"] * 5),
    "votes-follow-agreement": lambda: dh_kappa(
        [A] * 50 + [B] * 50 + [["a", "b", "a"], ["b", "a", "b"]] * 50, ["a", "b"] * 100
    ),
    "unequal-weights": lambda: kappa(sample_weight=[100, 1, 1, 1, 1, 1]),
    "votes-fixed": lambda: kappa(pool=20),
    "clusters": lambda: kappa(clusters=[1, 1, 2, 2, 3, 3]),
    "clusters (comparison)": lambda: compare(VOTES, {"x": LABELS, "y": LABELS[::-1]}, clusters=[1, 1, 2, 2, 3, 3]),
    "clusters (two)": lambda: kappa(clusters=[1, 1, 1, 2, 2, 2]),
    "no-standard-error (clusters)": lambda: kappa(clusters=[1] * 6),
    "few-clusters": lambda: kappa(clusters=[1, 1, 2, 2, 3, 3]),
    "cluster-heavy": lambda: kappa(clusters=[1, 1, 1, 2, 3, 4]),
    "pool-clusters": lambda: kappa(strata=STRATA, clusters=[1, 1, 2, 3, 3, 4], pool={"x": 9, "y": 9}),
}
