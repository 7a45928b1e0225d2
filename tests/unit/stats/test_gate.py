"""The gate: pass, fail and undecided by hand-made intervals, and its sentences."""

import math
from dataclasses import replace
from typing import Any

import pytest

import dhkappa
from dhkappa import Kappa
from dhkappa.errors import DataError, Problem
from dhkappa.stats.any_time import any_time_level, items_when_decided
from dhkappa.stats.clusters import UNKNOWN
from dhkappa.stats.gate import Gate, GateRow, gate_of
from dhkappa.stats.intervals import items_to_decide


def simulated(accuracy: float, items: int = 300) -> Kappa:
    drawn = dhkappa.simulate(items, labelers={"llm": accuracy}, annotators=4, rng=1)
    return dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"])


def at_gate(kappa: Kappa, *bound: Any, confidence_level: float = 0.95, **options: Any) -> Gate:
    return gate_of({"llm": (kappa.estimate, kappa.confidence_interval(confidence_level))}, *bound, **options)


def test_outcome_by_the_confidence_limits() -> None:
    kappa = simulated(0.9)
    low, high = kappa.confidence_interval()
    bounds = {low: "pass", low + 1e-9: "undecided", high: "undecided", high + 1e-9: "fail"}
    for bound, outcome in bounds.items():
        [row] = at_gate(kappa, bound).rows
        assert (row.outcome, row.value, row.low, row.high, row.bound) == (outcome, kappa.value, low, high, bound)
        assert row.measure == "kappa"
        assert outcome == "undecided" or row.more_items is None
    wider = at_gate(kappa, low, confidence_level=0.99)
    assert wider.outcome == "undecided"
    assert wider.confidence_level == 0.99


def test_outcome_by_the_value() -> None:
    kappa = simulated(0.9)
    for bound, outcome in {kappa.value: "pass", kappa.value + 1e-9: "fail"}.items():
        gate = at_gate(kappa, bound, on="value")
        assert (gate.outcome, [row.outcome for row in gate.rows]) == (outcome, [outcome])


def test_six_flawless_items_are_undecided() -> None:
    kappa = dhkappa.dh_kappa([["a"] * 3, ["b"] * 3] * 3, ["a", "b"] * 3)
    assert kappa.value == 1
    [row] = at_gate(kappa, 0.8).rows
    assert row.outcome == "undecided"
    assert row.more_items is not None
    assert f"Votes on about {row.more_items} more items would probably settle it." in row.text


def test_undefined_kappa_is_undecided() -> None:
    kappa = dhkappa.dh_kappa([["a", "a"]] * 3, ["a"] * 3)
    for on in ("low", "value"):
        gate = at_gate(kappa, 0.5, on=on)
        assert gate.outcome == "undecided"
        assert gate.rows[0].labeler == "llm"
        assert "kappa undefined" in gate.text
        assert str(kappa.reason) in gate.text


def test_annotators_by_share_and_by_margin() -> None:
    kappa = simulated(0.9)
    from dhkappa.stats.annotator_baseline import annotator_baseline

    found = annotator_baseline(kappa.estimate)
    [row] = at_gate(kappa, "annotators").rows
    assert (row.bound, row.value, row.low, row.high) == (0.8, found.share_kept, found.share_low, found.share_high)
    assert row.outcome == "pass"
    for keep, outcome in ((found.share_low - 1e-6, "pass"), (found.share_kept, "undecided"), (9.0, "fail")):
        if keep <= 1:
            assert at_gate(kappa, "annotators", keep=keep).outcome == outcome
    [row] = at_gate(kappa, "annotators", margin=0.05).rows
    assert (row.bound, row.value, row.low, row.high) == (-0.05, found.difference, found.low, found.high)
    worse = simulated(0.5)
    assert at_gate(worse, "annotators", margin=0.05).outcome == "fail"


def test_coverage() -> None:
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"], ["a", None]]
    kappa = dhkappa.dh_kappa(votes, ["a", "b", "a", None, None])
    assert kappa.coverage == 0.75  # of the four items with two votes
    assert at_gate(kappa, min_coverage=0.75).outcome == "pass"
    assert at_gate(kappa, min_coverage=0.76).outcome == "fail"
    assert [row.measure for row in at_gate(kappa, 0.1, min_coverage=0.5).rows] == ["kappa", "coverage"]
    assert math.isnan(dhkappa.dh_kappa([["a"]], ["a"]).coverage)


def test_undefined_coverage_is_undecided() -> None:
    [row] = at_gate(dhkappa.dh_kappa([["a"]], ["a"]), min_coverage=0.5).rows
    assert (row.outcome, row.measure) == ("undecided", "coverage")
    assert row.reason


def test_bound_that_is_the_value_and_the_upper_limit() -> None:
    perfect = dhkappa.dh_kappa([["a", "a"], ["b", "b"]] * 20, ["a", "b"] * 20)
    [row] = at_gate(perfect, 1).rows
    assert (row.value, row.high, row.outcome, row.more_items) == (1, 1, "undecided", None)


def test_few_items_are_the_reason_against_annotators() -> None:
    [row] = at_gate(simulated(0.9, items=5), "annotators").rows
    assert row.reason == "Confidence limits need 20 items: got 5."


def test_labels_made_from_the_votes_do_not_pass() -> None:
    kappa = simulated(0.9)
    problem = Problem("labels-from-votes", "warning", "Made from these votes.", labelers=("llm",))
    assert at_gate(kappa, 0.1).outcome == "pass"
    found = at_gate(kappa, 0.1, problems=[problem])
    assert found.outcome == "undecided"
    assert "These votes cannot judge llm: its labels look as if they were made from them." in found.text
    assert at_gate(kappa, 0.99, problems=[problem]).outcome == "fail"
    assert at_gate(kappa, 0.1, problems=[replace(problem, accepted=True)]).outcome == "pass"
    assert at_gate(kappa, 0.1, problems=[replace(problem, labelers=("rule",))]).outcome == "pass"


def test_errors_of_the_data_leave_a_gate_undecided() -> None:
    kappa = simulated(0.9)
    problem = Problem("category-variants", "error", "'a' and 'A' are one category.")
    for bound in (0.1, 0.99):
        found = at_gate(kappa, bound, problems=[problem])
        assert found.outcome == "undecided"
        assert "Cannot judge llm: 'a' and 'A' are one category." in found.text
    assert at_gate(kappa, 0.1, problems=[replace(problem, severity="warning")]).outcome == "pass"
    copied = Problem("labeler-equals-annotator", "warning", "A copy.", ("ada",))
    assert "it has nearly the same labels as annotator ada." in at_gate(kappa, 0.1, problems=[copied]).text


def test_worst_labeler_decides() -> None:
    rows = {outcome: GateRow(outcome, outcome, "kappa", 0.5, 0.6) for outcome in ("pass", "undecided", "fail")}
    assert Gate((rows["pass"],)).outcome == Gate(()).outcome == "pass"
    assert Gate((rows["pass"], rows["undecided"])).outcome == "undecided"
    gate = Gate((rows["pass"], rows["undecided"], rows["fail"]))
    assert gate.outcome == "fail"
    assert gate.text.startswith("Gate failed. fail failed: kappa 0.600, required 0.5. undecided undecided")
    assert " ".join(repr(gate).split()) == gate.text
    assert gate.to_dict()["rows"][0] == {
        "labeler": "pass", "outcome": "pass", "measure": "kappa", "bound": 0.5, "value": 0.6,
        "low": None, "high": None, "more_items": None, "more_of": "", "reason": None, "any_time_level": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"fail_under": 60}, "invalid-fail-under"),
        ({"fail_under": "people"}, "invalid-fail-under"),
        ({"fail_under": 0.6, "keep": 0.8}, "option-unused"),
        ({"fail_under": 0.6, "margin": 0.1}, "option-unused"),
        ({"fail_under": 0.6, "on": "high"}, "invalid-on"),
        ({"fail_under": "annotators", "keep": 0.8, "margin": 0.1}, "margin-with-keep"),
        ({"min_coverage": 1.01}, "invalid-min-coverage"),
        ({"min_coverage": -0.01}, "invalid-min-coverage"),
        ({}, "gate-empty"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], code: str) -> None:
    with pytest.raises(DataError) as caught:
        at_gate(simulated(0.9), **options)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("value", "low", "high", "bound", "more"),
    [
        (0.6, 0.5, 0.7, 0.55, 720),  # half as wide would put it on the bound: 4 times the items, for 80% times 1.43^2
        (0.5, 0.4, 0.6, 0.55, 720),
        (0.6, 0.5, 0.9, 0.55, 720),  # the lower limit counts
        (0.6, 0.5, 0.7, 0.52, 220),  # (0.143 / 0.08)^2 - 1 of 100 items
        (0.6, 0.5, 0.7, 0.599, None),
    ],
)
def test_more_items(value: float, low: float, high: float, bound: float, more: int | None) -> None:
    assert items_to_decide(100, value, low, high, bound) == more


def test_gate_of_an_audit() -> None:
    drawn = dhkappa.simulate(300, labelers={"good": 0.95, "bad": 0.4}, annotators=4, rng=1)
    audit = dhkappa.audit(drawn.votes, drawn.suggested, progress=False)
    gate = audit.gate(0.3)
    assert {row.labeler: row.outcome for row in gate.rows} == {"good": "pass", "bad": "fail"}
    assert gate.outcome == "fail"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (GateRow("llm", "fail", "kappa", 0.6, 0.0066, 0.0046, 0.0084), "kappa 0.007 (0.005 to 0.008), required 0.6."),
        (GateRow("llm", "fail", "kappa", 0.6, 0.1 - 6e-5, 0.0999, 0.1), "kappa 0.0999 (0.0999 to 0.1000), required"),
        (GateRow("llm", "fail", "kappa", 0.6, 0.1, 0.1 - 3e-9, 0.1), "kappa 0.100000 (0.100000 to 0.100000), required"),
        (GateRow("llm", "pass", "kappa", 0.6, 0.7, 0.65, math.inf), "kappa 0.700 (0.650 to inf), required 0.6."),
        (GateRow("llm", "pass", "kappa", 0.6, 1.0, 1.0, 1.0), "kappa 1.000 (1.000 to 1.000), required 0.6."),
        (GateRow("llm", "fail", "kappa", 0.6, 0.5), "kappa 0.500, required 0.6."),
        (GateRow("llm", "fail", "coverage", 0.76, 0.75), "coverage 75.0%, required 76%."),
        (
            GateRow("llm", "fail", "share of a typical annotator's score", 0.8, 0.044, 0.0413, 0.0472),
            "score on the scale from 0 (random labels) to 100 (a typical annotator) 4.4 (4.1 to 4.7), required 80.",
        ),
    ],
)
def test_value_and_limits_have_the_same_digits(row: GateRow, text: str) -> None:
    assert text in row.text


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (GateRow("llm", "undecided", "kappa", 0.65, 0.65, 0.6, 0.7), " Kappa is too close to the bound."),
        (GateRow("llm", "undecided", "coverage", 0.6, 0.65, 0.5, 0.7), " The coverage is too close to the bound."),
        (
            GateRow("llm", "undecided", "kappa", 0.62, 0.65, 0.6, 0.7, 90),
            " Votes on about 90 more items would probably settle it.",
        ),
        (GateRow("llm", "undecided", "kappa", 0.65, 0.65, 0.6, 0.7, reason="It is odd."), " It is odd."),
        (GateRow("llm", "undecided", "kappa", 0.65, math.nan), ""),
        (GateRow("llm", "pass", "kappa", 0.6, 0.65, 0.6, 0.7), ""),
    ],
)
def test_an_undecided_outcome_has_a_reason(row: GateRow, reason: str) -> None:
    bound = "60%" if row.measure == "coverage" else f"{row.bound:g}"
    assert row.text.endswith(f", required {bound}.{reason}")


def test_rows_name_the_labeler_and_what_is_measured() -> None:
    kappa = simulated(0.9)
    [row] = at_gate(kappa, "annotators", keep=0.9999).rows
    assert (row.labeler, row.measure) == ("llm", "share of a typical annotator's score")
    [row] = at_gate(kappa, "annotators", margin=0.0).rows
    assert (row.labeler, row.measure, str(row.bound)) == ("llm", "difference from a typical annotator", "0.0")
    [row] = at_gate(kappa, min_coverage=0.5).rows
    assert (row.labeler, row.outcome, row.measure, row.bound, row.value) == ("llm", "pass", "coverage", 0.5, 1)
    drawn = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=4, categories=[1, 2, 3], rng=1)
    ordered = dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"], categories=[1, 2, 3], weights="linear")
    assert [row.measure for row in at_gate(ordered, 0.1).rows] == ["weighted kappa"]
    with pytest.raises(DataError) as caught:
        at_gate(kappa, 0.6, margin=0.1)
    assert caught.value.parameter == "margin"


def test_items_that_would_decide_against_annotators() -> None:
    kappa = simulated(0.9, items=60)
    from dhkappa.stats.annotator_baseline import annotator_baseline

    found = annotator_baseline(kappa.estimate)
    bound = (found.share_low + found.share_kept) / 2
    [row] = at_gate(kappa, "annotators", keep=bound).rows
    assert row.outcome == "undecided"
    expected = items_to_decide(found.n_items, found.share_kept, found.share_low, found.share_high, bound)
    assert row.more_items == expected is not None
    error = Problem("category-variants", "error", "'a' and 'A' are one category.")
    [blocked] = at_gate(kappa, "annotators", keep=bound, problems=[error]).rows
    assert (blocked.outcome, blocked.more_items) == ("undecided", None)
    assert at_gate(kappa, "annotators", keep=found.share_low - 0.01).rows[0].more_items is None


def test_gate_as_json() -> None:
    found = at_gate(simulated(0.9), 0.1, confidence_level=0.9)
    assert found.to_dict() == {
        "outcome": "pass",
        "text": found.text,
        "confidence_level": 0.9,
        "any_time": False,
        "rows": [row.to_dict() for row in found.rows],
    }


def test_rates_at_the_gate() -> None:
    kappa = simulated(0.9)
    row = kappa.rates().table.to_dicts()[0]
    for name in ("recall", "precision", "f1"):
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        for bound, outcome in {low: "pass", low + 1e-9: "undecided", high: "undecided", high + 1e-9: "fail"}.items():
            [found] = at_gate(kappa, f"{name}:a={bound!r}").rows
            assert (found.outcome, found.value, found.low, found.high) == (outcome, row[name], low, high)
            assert found.measure == f"{name} of 'a'"
    agreement = kappa.rates().agreement
    assert at_gate(kappa, f"agreement={agreement.low!r}").outcome == "pass"
    assert at_gate(kappa, f"agreement={agreement.high + 1e-9!r}").outcome == "fail"
    assert at_gate(kappa, f"recall:a={row['recall']!r}", on="value").outcome == "pass"


def test_undecided_rates_say_which_items_would_decide() -> None:
    labels = ["outage", "other"] * 8
    kappa = dhkappa.dh_kappa([[label] * 3 for label in labels], labels)
    for name, of in (("recall", "voted"), ("precision", "labeled"), ("f1", "labeled or voted")):
        [row] = at_gate(kappa, f"{name}:outage=0.8").rows
        assert (row.outcome, row.more_of) == ("undecided", f"{of} 'outage'")
        assert f"Votes on about {row.more_items} more items {of} 'outage' would probably settle it." in row.text


def test_a_flawless_category_passes_from_17_items() -> None:
    """0.025^(1/17) is .805, and 0.025^(1/16) is .794."""
    for n, outcome in ((16, "undecided"), (17, "pass")):
        labels = ["a"] * n + ["b"] * 5
        kappa = dhkappa.dh_kappa([[label] * 2 for label in labels], labels)
        assert at_gate(kappa, "recall:a=0.8").outcome == outcome
        assert at_gate(kappa, "precision:a=0.8").outcome == outcome


def test_sensitivity_and_specificity_at_the_gate() -> None:
    votes = [["bad"] * 2] * 30 + [["good"] * 2] * 30
    kappa = dhkappa.dh_kappa(votes, ["bad"] * 20 + ["good"] * 40)
    [bad], [good] = (at_gate(kappa, f"{name}:bad=0.5").rows for name in ("tpr", "tnr"))
    assert bad.value == pytest.approx(2 / 3)
    assert bad.measure == "sensitivity for 'bad'"
    assert (good.value, good.measure) == (1, "specificity for 'bad'")
    assert [*kappa.rates(positive="bad").table.column("recall")] == pytest.approx([2 / 3, 1])


def test_rates_that_are_undefined_are_undecided() -> None:
    kappa = dhkappa.dh_kappa([["a", "a"], ["b", "b"], ["a", "b"]] * 10, ["b"] * 30)
    for bound in ("precision:a=0.1",):
        for on in ("low", "value"):
            [row] = at_gate(kappa, bound, on=on).rows
            assert (row.outcome, row.reason) == ("undecided", "Never suggested.")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("recall:x=0.8", "category-not-found"),
        ("recall=0.8", "invalid-fail-under"),
        ("agreement:a=0.8", "invalid-fail-under"),
        ("recall:a=80", "invalid-fail-under"),
        ("recall:a=", "invalid-fail-under"),
        ("recall:a=nan", "invalid-fail-under"),
        ("accuracy=0.8", "invalid-fail-under"),
        ("tpr:a=0.8", "not-two-categories"),
    ],
)
def test_conditions_that_are_refused(condition: str, code: str) -> None:
    with pytest.raises(DataError, check=lambda error: error.code == code):
        at_gate(simulated(0.9), condition)


def test_rates_with_agreement_weights_are_refused() -> None:
    drawn = dhkappa.simulate(50, labelers={"llm": 0.9}, rng=1)
    weighted = dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"], categories=list("abc"), weights="linear")
    with pytest.raises(DataError, check=lambda error: error.code == "metric-not-supported"):
        at_gate(weighted, "recall:a=0.8")


def test_rates_with_clusters_are_undecided_but_have_a_value() -> None:
    drawn = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=4, rng=1)
    found = dhkappa.audit(drawn.votes, drawn.suggested, clusters=[item // 3 for item in range(300)], progress=False)
    for condition in ("recall:a=0", "agreement=1"):
        [row] = found.gate(condition).rows
        assert (row.outcome, row.reason) == ("undecided", UNKNOWN)
        assert math.isnan(row.low)
        assert row.more_items is None
        [row] = found.gate(condition, on="value").rows
        assert (row.outcome, row.reason) == ("pass" if condition == "recall:a=0" else "fail", None)


def test_rates_at_every_look_have_the_level_of_their_own_items() -> None:
    drawn = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=4, rng=1)
    found = dhkappa.audit(drawn.votes, drawn.suggested, any_time=True, progress=False)
    kappa = dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"])
    votes = kappa.rates().table.column("votes")[0]
    level = any_time_level(votes, 0.95)
    known = next(iter(kappa.rates(level).table))
    bounds = {known["recall_low"]: "pass", known["recall_low"] + 1e-9: "undecided", known["recall_high"] + 1e-9: "fail"}
    for bound, outcome in bounds.items():
        [row] = found.gate(f"recall:a={bound!r}").rows
        assert (row.outcome, row.low, row.high) == (outcome, known["recall_low"], known["recall_high"])
        assert row.any_time_level == level
    [row] = found.gate(f"recall:a={known['recall'] - 0.05!r}").rows
    forecast = items_when_decided(round(votes), known["recall_se"], 0.05, 0.95)
    assert forecast is not None
    assert row.more_items == pytest.approx(forecast - round(votes), rel=0.06)
    assert "more items voted 'a' would probably settle it" in row.text
    with pytest.raises(DataError, check=lambda error: error.code == "any-time-value"):
        found.gate("recall:a=0.8", on="value")


def test_rates_of_few_items_do_not_hold_at_every_look() -> None:
    drawn = dhkappa.simulate(60, labelers={"llm": 0.9}, annotators=4, rng=1)
    kappa = dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"])
    interval = kappa.confidence_interval(any_time=True)
    [row] = gate_of({"llm": (kappa.estimate, interval)}, "recall:a=0").rows
    assert row.outcome == "undecided"
    votes = kappa.rates().table.column("votes")[0]
    assert row.reason == f"An interval that holds at every look needs 30 items voted 'a': got {votes:.4g}."
    assert gate_of({"llm": (kappa.estimate, interval)}, "agreement=0").outcome == "pass"
