"""Errors and notes of comparisons, annotators, weights, categories, review, plans, simulation and verdicts."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import dhkappa as dk
from dhkappa.core.items import ItemVotes
from dhkappa.inputs.arrays import read_votes
from dhkappa.stats.annotator_scores import annotator_scores
from dhkappa.stats.annotators import annotator_table, compare_with_annotators
from dhkappa.stats.notes import Note
from dhkappa.stats.review import review_queue

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "b"], ["c", "c", "c"]]
LABELS = ["a", "b", "a", "c"]
TWO = dk.simulate(40, labelers={"rule": 0.6, "llm": 0.9}, annotators=4, rng=1)
APART = {"one": [*TWO.suggested["llm"][:25], *[None] * 15], "other": [*[None] * 20, *TWO.suggested["llm"][20:]]}
MODEL: dict[str, Any] = {"n_categories": 3, "annotator_accuracy": 0.9, "labeler_accuracy": 0.8}


def grid(votes: list[list[str]], labels: list[str], **options: Any) -> ItemVotes:
    return read_votes(np.array(votes, object), {"llm": labels}, **options)


def clustered(votes: list[list[str]], labels: list[str]) -> ItemVotes:
    return grid(votes, labels, clusters=[1] * len(votes))


def weighted(weights: Any) -> Any:
    return dk.dh_kappa(VOTES, LABELS, categories=["a", "b", "c"], weights=weights)


def planned(**options: Any) -> Any:
    return dk.plan(**{"half_width": 0.1, **MODEL, **options})


def as_notes(found: dk.Verdict) -> Any:
    """Return a verdict as a result with one note."""
    return SimpleNamespace(notes=[Note(found.code, found.text)])


def verdict(votes: Any, labels: Any) -> Any:
    return as_notes(dk.audit(votes, {"llm": labels}, progress=False).verdict())


def audited(accuracy: float, labeler: float, n: int = 300) -> Any:
    drawn = dk.simulate(n, labelers={"llm": labeler}, annotators=4, accuracy=accuracy, rng=4)
    return as_notes(dk.audit(drawn.votes, drawn.suggested, progress=False).verdict())


def gate(*bound: Any, **options: Any) -> Any:
    return dk.audit(TWO.votes, TWO.suggested, progress=False).gate(*bound, **options)


CASES: dict[str, Callable[[], Any]] = {
    # compare
    "too-few-labelers": lambda: dk.compare(VOTES, {"llm": LABELS}),
    "few-discordant": lambda: dk.compare(VOTES, {"rule": LABELS, "llm": ["a", "b", "b", "c"]}),
    "items-excluded (compare)": lambda: dk.compare(VOTES, {"rule": LABELS, "llm": ["a", None, "b", "c"]}),
    "different-items": lambda: dk.compare(
        TWO.votes, {**TWO.suggested, "new": [*TWO.suggested["llm"][:30], *[None] * 10]}
    ),
    "different-items (none ranked)": lambda: dk.compare(TWO.votes, APART),
    "not-ranked": lambda: dk.compare(TWO.votes, {**TWO.suggested, "new": [*TWO.suggested["llm"][:5], *[None] * 35]}),
    "not-ranked (none)": lambda: dk.compare(TWO.votes, APART),
    "equals-majority (compare)": lambda: dk.compare(VOTES, {"rule": LABELS, "llm": ["a", "b", "b", "c"]}),
    "no-standard-error (compare)": lambda: dk.compare(
        [["a"] * 2, ["b"] * 2] * 6, {"x": list("ab") * 6, "y": list("ba") * 6}
    ),
    # annotators
    "annotators-unknown": lambda: annotator_table(read_votes(VOTES, {"llm": LABELS}), "llm"),
    "audit-detached": lambda: copy.deepcopy(dk.audit(TWO.votes, TWO.suggested, progress=False)).without(1),
    "annotators-few-items": lambda: compare_with_annotators(grid(VOTES, LABELS), "llm"),
    "annotators-undefined": lambda: compare_with_annotators(grid([["a"] * 3] * 12, ["a"] * 12), "llm"),
    "annotators-few-items (scores)": lambda: annotator_scores(grid(VOTES, LABELS)),
    "annotators-two-votes": lambda: annotator_scores(grid([votes[:2] for votes in VOTES], LABELS)),
    "scores-independent": lambda: annotator_scores(clustered(VOTES, LABELS)),
    "scores-unweighted": lambda: dk.audit(
        TWO.votes, TWO.suggested, sample_weight=range(1, 41), progress=False
    ).annotator_scores(),
    "scores-unweighted (agreement weights)": lambda: annotator_scores(grid(VOTES, LABELS), ordered=True),
    # weights
    "invalid-weights": lambda: weighted("cubic"),
    "invalid-weights (shape)": lambda: weighted([[1, 0], [0, 1]]),
    "invalid-weights (value)": lambda: weighted([[1, 0.5, 0], [0.25, 1, 0.5], [0, 0.5, 1]]),
    # review
    "invalid-limit": lambda: review_queue(grid(VOTES, LABELS), "llm", limit=0),
    # plan
    "invalid-half-width": lambda: planned(half_width=0),
    "half-width-too-small": lambda: planned(half_width=1e-9),
    "invalid-assurance": lambda: planned(assurance=1),
    "invalid-pool (plan)": lambda: planned(pool=1),
    "invalid-votes": lambda: planned(votes=1),
    "invalid-n-categories": lambda: planned(n_categories=1),
    "invalid-annotator-accuracy": lambda: planned(annotator_accuracy=1.5),
    "invalid-labeler-accuracy": lambda: planned(labeler_accuracy=-1),
    "invalid-prevalence": lambda: planned(prevalence=[1, 2]),
    "invalid-prevalence (length)": lambda: planned(n_categories=None, prevalence=[1]),
    "invalid-prevalence (one category)": lambda: planned(
        prevalence=[1, 0, 0], annotator_accuracy=1, labeler_accuracy=1
    ),
    "no-variance": lambda: planned(n_categories=2, annotator_accuracy=1, labeler_accuracy=0),
    "pilot-missing": lambda: dk.plan(0.1, n_categories=3),
    "pilot-and-assumptions": lambda: dk.plan(0.1, dk.dh_kappa(VOTES, LABELS), n_categories=3),
    "pilot-too-small": lambda: dk.plan(0.1, dk.dh_kappa([["a", "b"]], ["a"])),
    "pilot-too-small (undefined)": lambda: dk.plan(0.1, dk.dh_kappa([], [])),
    "pilot-too-small (one vote per item)": lambda: dk.plan(0.1, dk.dh_kappa([["a"], ["b"]], ["a", "b"])),
    "invalid-pilot": lambda: dk.plan(0.1, dk.fleiss_kappa(VOTES)),
    "too-many-votes-for-pilot": lambda: dk.plan(0.1, dk.dh_kappa(VOTES, LABELS), votes=4),
    "small-pilot": lambda: dk.plan(0.2, dk.dh_kappa(VOTES, LABELS)),
    "flawless-pilot": lambda: dk.plan(0.2, dk.dh_kappa([["a"] * 2, ["b"] * 2] * 5, list("ab") * 5)),
    "options-cut": lambda: dk.plan(0.2, dk.dh_kappa(VOTES, LABELS)),
    "options-partial": lambda: dk.plan(0.2, dk.dh_kappa([*VOTES, ["a", "a"]], [*LABELS, "a"])),
    # simulate
    "invalid-n-items": lambda: dk.simulate(-1),
    "invalid-annotators": lambda: dk.simulate(3, annotators=-1),
    "invalid-accuracy": lambda: dk.simulate(3, accuracy=2),
    "invalid-missing": lambda: dk.simulate(3, missing=2),
    "invalid-labelers": lambda: dk.simulate(3, labelers=["llm"]),  # type: ignore[arg-type]
    "invalid-categories (simulate)": lambda: dk.simulate(3, categories=[]),
    # verdicts
    "better": lambda: audited(0.7, 0.99),
    "on-par": lambda: audited(0.85, 0.85),
    "slightly-below": lambda: audited(0.85, 0.8, 2_000),
    "clearly-below": lambda: audited(0.85, 0.6),
    "no-better-than-random": lambda: audited(0.85, 1 / 3),
    "not-enough-data": lambda: audited(0.85, 0.85, 40),
    "not-enough-data (few items)": lambda: audited(0.85, 0.99, 10),
    "not-enough-data (random)": lambda: verdict(VOTES, LABELS),
    "not-enough-data (undefined)": lambda: verdict([["a", "a"]], ["a"]),
    "data-problem": lambda: verdict([["a", "a"], ["b", "b"], ["A", "b"]] * 20, ["a", "b", "a"] * 20),
    "labels-from-votes (verdict)": lambda: verdict(
        [["a", "a", "b"], ["b", "b", "b"], ["b", "b", "a"]] * 60, ["a", "b", "b"] * 60
    ),
    "no-labels": lambda: dk.audit(VOTES, progress=False),
    "one-annotator": lambda: dk.audit([["a"], ["b"]], ["a", "a"], progress=False),
    # gate
    "option-unused": lambda: gate(0.6, keep=0.8),
    "gate-empty": lambda: gate(),
    "invalid-fail-under": lambda: gate(60),
    "invalid-on": lambda: gate(0.6, on="high"),
    "invalid-min-coverage": lambda: gate(min_coverage=80),
}
