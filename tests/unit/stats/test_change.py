"""Changes of kappa between independent samples: a worked example, consistency of limit and p-value, sentences."""

import math
from collections.abc import Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import dhkappa
from dhkappa.stats.change import Change, Changes, Measured, Snapshot, change_of, changes_between
from dhkappa.stats.intervals import ConfidenceInterval
from dhkappa.stats.shift import Shift

FIRST = [[1, 1, 1], [1, 1, 2], [2, 2, 2]], [1, 1, 2]
SECOND = [[1, 2, 3], [3, 3, 3], [2, 2, 2]], [2, 3, 3]


def measured(value: float, low: float, high: float, reason: str | None = None, level: float = 0.95) -> Measured:
    made: Any = SimpleNamespace(value=value, reason=reason)
    return Measured(made, ConfidenceInterval(low, high, level, "beta", reason))


def of(votes: Any, labels: Any) -> Measured:
    kappa = dhkappa.dh_kappa(votes, labels)
    return Measured(kappa.estimate, kappa.confidence_interval())


def test_worked_example() -> None:
    """The first worked example of docs/methods.md in two halves, computed by another program."""
    found = change_of("the second half", of(*SECOND), of(*FIRST))
    assert found.difference == pytest.approx(float(Fraction(807, 1066)), abs=1e-15)
    assert [found.low, found.high] == pytest.approx([-0.764338, 1.634143], abs=1e-6)
    assert found.pvalue == pytest.approx(0.329422, abs=1e-6)
    back = change_of("the first half", of(*FIRST), of(*SECOND))
    assert (back.low, back.high, back.pvalue) == (-found.high, -found.low, found.pvalue)


LIMITS = st.tuples(*[st.floats(-1, 1)] * 3).map(sorted).filter(lambda three: three[2] - three[0] > 1e-3)


@given(LIMITS, LIMITS, st.sampled_from([0.8, 0.95, 0.99]))
def test_zero_is_outside_exactly_where_the_change_is_significant(one: Any, other: Any, level: float) -> None:
    before, after = (measured(value, low, high, level=level) for low, value, high in (one, other))
    found = change_of("May", before, after)
    assert found.low <= found.difference <= found.high
    edge = min(abs(found.low), abs(found.high))
    if edge > 1e-9:
        assert found.significant == (not found.low <= 0 <= found.high)
        assert found.significant == (found.pvalue < 1 - level)


def test_symmetric_intervals_give_the_test_of_two_means() -> None:
    z = norm.ppf(0.975)
    before, after = measured(0.5, 0.5 - z * 0.03, 0.5 + z * 0.03), measured(0.6, 0.6 - z * 0.04, 0.6 + z * 0.04)
    found = change_of("May", before, after)
    assert found.pvalue == pytest.approx(2 * norm.sf(0.1 / 0.05), rel=1e-9)
    assert found.high - found.low == pytest.approx(2 * z * 0.05, rel=1e-12)


def test_equal_kappas_have_pvalue_1_and_known_ones_0() -> None:
    assert change_of("May", measured(0.5, 0.4, 0.6), measured(0.5, 0.4, 0.6)).pvalue == 1
    assert change_of("May", measured(0.5, 0.5, 0.5), measured(0.6, 0.6, 0.6)).pvalue == 0  # all items of a pool


def test_undefined_changes_have_a_reason() -> None:
    nan, known = measured(math.nan, math.nan, math.nan, "Every vote is the same."), measured(0.5, 0.4, 0.6)
    for before, after, where in ((nan, known, "Before"), (known, nan, "After")):
        found = change_of("May", before, after)
        assert found.reason == f"{where}: Every vote is the same."
        assert np.isnan([found.difference, found.low, found.high, found.pvalue]).all()
        assert not found.significant
        assert found.text == "no comparison with May"
        assert found.to_dict()["pvalue"] is None


def test_a_kappa_without_interval_has_a_difference() -> None:
    unknown = measured(0.5, 0.4, 0.6)
    unknown = unknown._replace(interval=ConfidenceInterval(math.nan, math.nan, 0.95, "beta", "No variation."))
    found = change_of("May", unknown, measured(0.7, 0.6, 0.8))
    assert found.difference == pytest.approx(0.2)
    assert found.reason == "Before: No variation."
    assert math.isnan(found.pvalue)
    assert found.text == "up 0.20 since May"


def test_labels_that_cannot_be_judged_are_not_compared() -> None:
    found = change_of("May", measured(0.5, 0.4, 0.6)._replace(unjudged="A copy."), measured(0.7, 0.6, 0.8))
    assert (math.isnan(found.difference), found.reason) == (True, "Before: A copy.")


def change(before: float, after: float, half: float, since: str = "May") -> Change:
    made = (measured(value, value - half, value + half) for value in (before, after))
    return change_of(since, *made)


SAME = Shift(0.01, "a", 0.3, 0.31, 0.1, 2, 0.9)
MOVED = Shift(0.12, "a", 0.3, 0.42, 30.0, 2, 1e-5)


def changes(
    kappa: Change, fleiss: Change, votes: Shift = SAME, labels: Shift = SAME, more: Mapping[str, Change] | None = None
) -> Changes:
    kappas = {"llm": kappa, **(more or {})}
    return Changes("May", kappas, fleiss, votes, dict.fromkeys(kappas, labels))


def test_no_significant_change() -> None:
    found = changes(change(0.51, 0.55, 0.04), change(0.5, 0.5, 0.05))
    text = "llm went from 0.51 to 0.55 since May: up 0.04 (95% CI -0.02 to 0.10), no significant change."
    assert found.text == text
    same = changes(change(0.551, 0.549, 0.04), change(0.5, 0.5, 0.05))
    assert same.text == (
        "llm went from 0.55 to 0.55 since May: unchanged (95% CI -0.06 to 0.05), no significant change."
    )


def test_a_change_of_the_labels() -> None:
    found = changes(change(0.61, 0.51, 0.03), change(0.54, 0.55, 0.05))
    assert found.text == (
        "llm fell from 0.61 to 0.51 since May: down 0.10 (95% CI -0.14 to -0.06), a significant change (95%). No "
        "change of the annotators (Fleiss' kappa 0.54, now 0.55) or of the categories of the items was found: this "
        "points to the labels of llm."
    )


def test_a_change_of_the_annotators() -> None:
    alone = changes(change(0.51, 0.53, 0.04), change(0.4, 0.6, 0.05))
    assert "It is the agreement between annotators that changed: Fleiss' kappa rose from 0.40 to 0.60" in alone.text
    assert "points to the labels" not in alone.text
    both = changes(change(0.41, 0.63, 0.04), change(0.4, 0.6, 0.05))
    assert "changed, too: Fleiss' kappa rose from 0.40 to 0.60, up 0.20" in both.text
    assert "It may not be the labels." in both.text
    assert "points to the labels" not in both.text


def test_a_shift_of_the_categories() -> None:
    found = changes(change(0.61, 0.51, 0.03), change(0.54, 0.55, 0.05), MOVED)
    shifted = "The categories of the votes shifted by 12%, most 'a' (from 30% to 42%), a significant change"
    assert f"{shifted} (p < 0.001)." in found.text
    assert "can change kappa without other labels" in found.text
    assert "points to the labels" not in found.text
    labels = changes(change(0.61, 0.6, 0.03), change(0.54, 0.55, 0.05), labels=MOVED)
    assert "The categories of the labels of llm shifted by 12%" in labels.text
    assert "can change kappa" not in labels.text


def test_what_cannot_be_compared_says_why() -> None:
    nan = measured(math.nan, math.nan, math.nan, "Every vote is the same.")
    found = changes(change_of("May", nan, measured(0.5, 0.4, 0.6)), change(0.5, 0.5, 0.05))
    assert found.text == "llm cannot be compared with May. Before: Every vote is the same."


def snapshot(name: str, *labelers: str, n: int = 30, label: str = "b") -> Snapshot:
    votes, labels = [["a", "a"], ["a", label], [label, label]] * n, ["a", "a", label] * n
    one, fleiss = of(votes, labels), dhkappa.fleiss_kappa(votes)
    return Snapshot(name, dict.fromkeys(labelers, one), Measured(fleiss.estimate, fleiss.confidence_interval()))


def test_only_common_labelers_are_compared() -> None:
    found = changes_between(snapshot("May", "llm", "rule"), snapshot("June", "rule", "new"))
    assert ([*found.kappas], [*found.labels], found.since) == (["rule"], ["rule"], "May")
    assert [note.code for note in found.notes] == ["labelers-differ"]
    assert found.notes[0].text == "Not in both audits, and not compared: 'llm', 'new'."
    assert changes_between(snapshot("May", "llm"), snapshot("June", "llm")).notes == ()


def test_notes_on_sizes_and_categories() -> None:
    found = changes_between(snapshot("May", "llm", n=70), snapshot("June", "llm", label="c"))
    assert [note.code for note in found.notes] == ["categories-differ", "sizes-differ"]
    assert found.notes[0].text == "Categories with votes in one of the audits only: 'b', 'c'."
    assert "May has 210 items with two votes or more, June 90." in found.notes[1].text


def test_values_for_json() -> None:
    found = changes_between(snapshot("May", "llm"), snapshot("June", "llm")).to_dict()
    assert [*found] == ["since", "summary", "labelers", "fleiss", "votes", "notes"]
    assert found["labelers"]["llm"]["change"]["pvalue"] == 1
    assert found["votes"]["distance"] == 0
