"""Comparisons, baselines, audits and gates that hold at every look, against those at the level of one look."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import dhkappa
from dhkappa import dh_kappa, simulate
from dhkappa.stats.annotator_baseline import annotator_baseline
from dhkappa.stats.any_time import any_time_level, boundary
from dhkappa.stats.gate import gate_of
from expect import expect_error

SIM = simulate(200, labelers={"rule": 0.7, "llm": 0.85, "near": 0.83}, annotators=4, rng=3)
LEVEL = any_time_level(200, 0.9)
AUDIT = dhkappa.audit(SIM.votes, SIM.suggested, any_time=True, confidence_level=0.9)
SINGLE = dhkappa.audit(SIM.votes, SIM.suggested, confidence_level=LEVEL)
LIMITS = ("low", "high")
BOUND = 0.4


def test_compare() -> None:
    found = dhkappa.compare(SIM.votes, SIM.suggested, any_time=True, confidence_level=0.9)
    single = dhkappa.compare(SIM.votes, SIM.suggested, confidence_level=LEVEL)
    assert (found.any_time, found.confidence_level) == (True, 0.9)
    assert [[row[name] for name in LIMITS] for row in found.differences] == [
        [row[name] for name in LIMITS] for row in single.differences
    ]
    for row, alone in zip(found.differences, single.differences, strict=True):
        assert (row["pvalue"] < 0.1) == (row["low"] > 0 or row["high"] < 0)
        assert row["pvalue"] > alone["pvalue"] or row["pvalue"] == alone["pvalue"] == 0
    assert {"any-time", "any-time-random-order", "any-time-several"} <= {note.code for note in found.notes}
    assert found.table().column("low") == single.table().column("low")


def test_compare_with_too_few_items() -> None:
    few = simulate(29, labelers={"a": 0.7, "b": 0.9}, rng=1)
    (row,) = dhkappa.compare(few.votes, few.suggested, any_time=True).differences
    assert math.isnan(row["low"] + row["high"])
    assert math.isnan(row["pvalue"])
    assert row["reason"] == "An interval that holds at every look needs 30 items: got 29."


def test_labelers_with_other_items() -> None:
    """Each pair has the level of the items that both labeled."""
    labels: dict[str, list[Any]] = {name: list(column) for name, column in SIM.suggested.items()}
    labels["rule"][:60] = [None] * 60
    found = dhkappa.compare(SIM.votes, labels, any_time=True).differences
    for row in found:
        pair = {name: labels[name] for name in (row["labeler"], row["other"])}
        single = dhkappa.compare(SIM.votes, pair, confidence_level=any_time_level(row["items"], 0.95))
        (alone,) = single.differences
        assert [row[name] for name in LIMITS] == [alone[name] for name in LIMITS]
    assert {row["items"] for row in found} == {140, 200}


def test_audit_is_that_at_the_level_of_one_look() -> None:
    for name in AUDIT.labelers:
        assert [*AUDIT.kappas[name].confidence_interval(0.9)] == [*SINGLE.kappas[name].confidence_interval(LEVEL)]
        ours, alone = AUDIT.annotator_baseline(name), SINGLE.annotator_baseline(name)
        assert (ours.confidence_level, ours.any_time_level) == (0.9, LEVEL)
        assert (ours.low, ours.high) == (alone.low, alone.high)
        assert (ours.share_low, ours.share_high) == (alone.share_low, alone.share_high)
        assert AUDIT.verdict(name).code == SINGLE.verdict(name).code
        assert AUDIT.annotator_comparison(name).low == SINGLE.annotator_comparison(name).low
        assert [row["low"] for row in AUDIT.categories(name)] == [row["low"] for row in SINGLE.categories(name)]
    values = AUDIT.to_dict()
    assert values["any_time"] is True
    assert values["labelers"]["llm"]["kappa"]["confidence_interval"]["any_time_level"] == LEVEL


def test_notes_of_an_audit() -> None:
    codes = [note.code for note in AUDIT.notes]
    for code in ("any-time", "any-time-random-order", "any-time-several", "any-time-single-look"):
        assert codes.count(code) == 1, codes
    (text,) = (note.text for note in AUDIT.notes if note.code == "any-time-several")
    assert f"{1 - 0.1 / 3:.4g}" in text
    assert not [code for code in (note.code for note in SINGLE.notes) if code.startswith("any-time")]
    weighted = dhkappa.audit(SIM.votes, SIM.suggested["llm"], any_time=True, sample_weight=[1.0, 2.0] * 100)
    assert "any-time-design" in {note.code for note in weighted.notes}


@pytest.mark.parametrize(
    "options", [{"fail_under": 0.45}, {"fail_under": "annotators"}, {"fail_under": "annotators", "margin": 0.1}]
)
def test_gate_is_that_at_the_level_of_one_look(options: dict[str, Any]) -> None:
    found, alone = AUDIT.gate(**options), SINGLE.gate(**options)
    assert (found.outcome, found.any_time, found.confidence_level) == (alone.outcome, True, 0.9)
    for row, single in zip(found.rows, alone.rows, strict=True):
        assert (row.outcome, row.low, row.high, row.any_time_level) == (single.outcome, single.low, single.high, LEVEL)
    once = dhkappa.audit(SIM.votes, SIM.suggested, confidence_level=0.9)
    assert once.gate(any_time=True, **options) == found
    assert AUDIT.gate(any_time=False, **options) == once.gate(**options)


def test_gate_with_too_few_items() -> None:
    few = simulate(29, labelers={"llm": 0.95}, rng=1)
    gate = dhkappa.audit(few.votes, few.suggested, any_time=True).gate(0.1)
    assert gate.outcome == "undecided"
    assert "needs 30 items: got 29" in gate.text
    assert dhkappa.audit(few.votes, few.suggested).gate(0.1).outcome == "pass"


def gate_of_one(n: int, bound: float, **options: Any) -> Any:
    drawn = simulate(n, labelers={"llm": 0.85}, rng=5)
    kappa = dh_kappa(drawn.votes, drawn.suggested["llm"], **options)
    return kappa, gate_of({"llm": (kappa.estimate, kappa.confidence_interval(any_time=True))}, bound)


def test_forecast_of_the_gate() -> None:
    kappa, gate = gate_of_one(100, BOUND)
    (row,) = gate.rows
    assert row.outcome == "undecided"
    distance, sigma = abs(kappa.value - BOUND), kappa.se * math.sqrt(100)
    total = next(N for N in range(100, 1001) if boundary(N, 0.95) * sigma / math.sqrt(N) <= distance)
    assert row.more_items == round(total - 100, 2 - len(str(total - 100)))
    assert f"About {row.more_items:,} more items would probably settle it, often up to twice as many." in gate.text
    assert "however often you look" in gate.text


def test_gate_that_needs_too_many_items() -> None:
    kappa, _ = gate_of_one(100, BOUND)
    close = gate_of({"llm": (kappa.estimate, kappa.confidence_interval(any_time=True))}, kappa.value - 0.001)
    assert close.rows[0].more_items is None
    assert "more than 10 times as many items" in close.text


def test_forecast_within_a_pool() -> None:
    """A sample of the whole pool has no sampling error, so that no more items than the pool has are ever needed."""
    kappa, gate = gate_of_one(100, BOUND, pool=400)
    (row,) = gate.rows
    assert row.outcome == "undecided"
    assert 0 < row.more_items <= 300
    assert row.more_items < gate_of_one(100, BOUND)[1].rows[0].more_items
    assert row.reason == "The pool has 300 more items."
    bound = kappa.value - 1e-6
    near = gate_of({"llm": (kappa.estimate, kappa.confidence_interval(any_time=True))}, bound)
    assert near.rows[0].more_items == 300
    whole, census = gate_of_one(100, BOUND, pool=100)
    assert census.outcome == ("pass" if whole.value > BOUND else "fail")


def test_forecast_of_flawless_labels() -> None:
    """Their standard error is 0, and the forecast is that of the lower limit."""
    kappa = dh_kappa([["a", "a"], ["b", "b"]] * 30, ["a", "b"] * 30)
    (row,) = gate_of({"llm": (kappa.estimate, kappa.confidence_interval(any_time=True))}, 0.9).rows
    assert (row.outcome, kappa.se) == ("undecided", 0)
    assert row.more_items is None or row.more_items > 10


def test_what_is_not_supported() -> None:
    with expect_error("any-time-value", "on"):
        AUDIT.gate(0.5, on="value")
    with expect_error("option-not-supported", "any_time"):
        AUDIT.compare_with(dhkappa.tally(SIM.votes, SIM.suggested))
    with expect_error("option-not-supported", "any_time"):
        dhkappa.audit(SIM.votes, any_time=True)


def test_clusters_and_other_annotators_are_refused() -> None:
    sim = simulate(40, labelers={"llm": 0.9, "rule": 0.6}, annotators=8, rng=1)
    clusters = [item // 4 for item in range(40)]
    kappa = dh_kappa(sim.votes, sim.suggested["llm"], clusters=clusters)
    of_clusters = dhkappa.audit(sim.votes, sim.suggested, clusters=clusters)
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("any_time", lambda: kappa.confidence_interval(any_time=True)),
        ("any_time", lambda: of_clusters.gate(0.5, any_time=True)),
        ("any_time", lambda: annotator_baseline(kappa.estimate, any_time=True)),
        ("clusters", lambda: dhkappa.compare(sim.votes, sim.suggested, clusters=clusters, any_time=True)),
        ("clusters", lambda: dhkappa.audit(sim.votes, sim.suggested, clusters=clusters, any_time=True)),
        ("other_annotators", lambda: dhkappa.compare(sim.votes, sim.suggested, other_annotators=True, any_time=True)),
    ]
    every_look = dhkappa.audit(sim.votes, sim.suggested, any_time=True)
    held = every_look.kappas["llm"]
    refused += [
        ("annotators", lambda: held.confidence_interval(annotators="random")),
        ("any_time", lambda: every_look.other_annotators("llm")),
    ]
    for parameter, call in refused:
        with expect_error("option-not-supported", parameter) as error:
            call()
        assert error.value.hint == "Leave out $any_time."
    assert every_look.to_dict()["labelers"]["llm"]["other_annotators"] is None
    alone = dh_kappa(sim.votes, sim.suggested["llm"]).confidence_interval(annotators="random")
    assert held.confidence_interval(annotators="random", any_time=False) == alone


def test_kappa_that_holds_at_every_look_by_default() -> None:
    kappa = dh_kappa(SIM.votes, SIM.suggested["llm"])
    held = replace(kappa, any_time=True)
    assert held.confidence_interval() == kappa.confidence_interval(any_time=True)
    assert held.confidence_interval(any_time=False) == kappa.confidence_interval()
    assert held.to_dict()["confidence_interval"]["any_time_level"] == any_time_level(200, 0.95)
    assert kappa.to_dict()["confidence_interval"]["any_time_level"] is None
    assert [note["code"] for note in held.to_dict()["notes"]][-2:] == ["any-time", "any-time-random-order"]
