"""The table of slices against dh_kappa of the filtered data, and the rules for small slices."""

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa.stats.multiple_tests import holm

SIM = dhkappa.simulate(600, labelers={"llm": 0.8}, annotators=3, missing=0.1, rng=4)
VOTES, LABELS = np.array(SIM.votes, object), np.array(SIM.suggested["llm"], object)
LANGUAGE = np.random.default_rng(9).choice(
    ["en", "de", "fr", "it", "sv", "fi"], 600, p=[0.5, 0.3, 0.16, 0.02, 0.01, 0.01]
)


def slices(values: Any, **given: Any) -> dhkappa.Slices:
    audit: dhkappa.Audit = dhkappa.audit(VOTES, {"llm": LABELS}, slices=values, progress=False, **given)
    return audit.slices()


@pytest.fixture(scope="module")
def found() -> dhkappa.Slices:
    return slices({"language": LANGUAGE})


def test_rows_are_those_of_the_items_alone(found: dhkappa.Slices) -> None:
    assert {row["slice"] for row in found.table} == {*LANGUAGE}
    for row in found.table:
        own = row["slice"] == LANGUAGE
        alone = dhkappa.dh_kappa(VOTES[own], LABELS[own])
        assert (row["items"], row["kappa"], row["se"]) == (alone.n_items, alone.value, alone.se)
        np.testing.assert_allclose([row["low"], row["high"]], list(alone.confidence_interval()), rtol=0, atol=1e-10)
        verdict = dhkappa.audit(VOTES[own], LABELS[own], progress=False).verdict()
        small = alone.n_items < 20
        assert row["grade"] == ("not-enough-data" if small else verdict.code)


def test_losses_add_up(found: dhkappa.Slices) -> None:
    kappa = dhkappa.dh_kappa(VOTES, LABELS)
    assert found.kappa == kappa.value
    assert math.fsum(found.table.column("loss")) == pytest.approx(1 - kappa.value, abs=1e-14)
    assert math.fsum(found.table.column("share")) == pytest.approx(1, abs=1e-14)
    assert kappa.parts is not None
    for row in found.table:
        own = row["slice"] == LANGUAGE
        parts = dhkappa.dh_kappa(VOTES[own], LABELS[own]).parts
        assert parts is not None
        loss = Fraction(row["items"], kappa.n_items) * (1 - parts.D) / (1 - kappa.parts.E)
        assert row["loss"] == pytest.approx(float(loss), abs=1e-15)


def test_small_slices_are_taken_as_one(found: dhkappa.Slices) -> None:
    small = [row for row in found.table if row["items"] < 10]
    assert len(small) >= 2
    assert sum(row["items"] for row in small) >= 10
    assert found.joined is not None
    [joined] = found.joined
    own = np.isin(LANGUAGE, [row["slice"] for row in small])
    alone = dhkappa.dh_kappa(VOTES[own], LABELS[own])
    assert (joined["items"], joined["kappa"], joined["se"]) == (alone.n_items, alone.value, alone.se)
    assert joined["loss"] == pytest.approx(sum(row["loss"] for row in small))
    assert found.n_not_compared == len(small)
    tested = [*(row for row in found.table if row["items"] >= 10), joined]
    for row in small:
        assert math.isnan(row["pvalue"])
        assert "Fewer than 10 items" in row["reason"]
    assert [row["pvalue_holm"] for row in tested] == holm([row["pvalue"] for row in tested])
    assert found.pvalue == min(row["pvalue_holm"] for row in tested)
    # The same as with the small slices under one name.
    merged = slices({"language": np.where(own, "others", LANGUAGE)})
    assert merged.joined is None
    other = {row["slice"]: row for row in merged.table}
    for row in tested:
        same = other.get(row["slice"], other["others"])
        assert (row["kappa"], row["pvalue"]) == (same["kappa"], pytest.approx(same["pvalue"], rel=1e-12))
    assert merged.kappa_within == pytest.approx(found.kappa_within, abs=1e-15)
    assert merged.se_within == pytest.approx(found.se_within, abs=1e-15)


def test_too_few_small_items_are_left_out() -> None:
    values = np.where(np.arange(600) < 5, "few", np.where(np.arange(600) % 2, "a", "b"))
    found = slices(values)
    assert found.joined is None
    kept = values != "few"
    without = dhkappa.audit(VOTES[kept], LABELS[kept], slices=values[kept], progress=False).slices()
    assert (found.kappa_within, found.pvalue) == (without.kappa_within, without.pvalue)
    assert found.pvalue == max(row["pvalue"] for row in found.table if row["items"] > 5)  # two slices are one test
    assert "slices-few-items" in [note.code for note in found.notes]


def test_undefined_slices() -> None:
    votes = (
        [["a", "a"]] * 30 + [["a", "b"], ["b", "b"], ["a", "a"]] * 10 + [["a", "b"], ["a", None]] + [["b", "b"]] * 12
    )
    labels = ["a"] * 30 + ["a", "b", "a"] * 10 + ["a", "a"] + ["a"] * 12
    values = ["same"] * 30 + ["mixed"] * 30 + ["one", "none"] + ["wrong"] * 12
    found = dhkappa.audit(votes, labels, slices=values, progress=False).slices()
    rows = {row["slice"]: row for row in found.table}
    for name in ("same", "one", "none"):
        assert math.isnan(rows[name]["kappa"])
        assert rows[name]["reason"]
    assert (rows["wrong"]["kappa"], math.isnan(rows["wrong"]["se"])) == (0, True)
    assert "no variation" in rows["wrong"]["reason"]
    assert rows["mixed"]["reason"] == "No other slice to compare with."
    assert (found.n_not_compared, math.isnan(found.pvalue)) == (5, True)
    assert "not compared" in found.summary
    assert next(iter(found.table))["slice"] == "mixed"  # others have no interval


def test_order_and_many_slices() -> None:
    found = slices(np.arange(600) % 55)
    assert found.table.column("kappa_shrunk") == sorted(found.table.column("kappa_shrunk"))
    assert "slices-shrunk" in [note.code for note in found.notes]
    scipy = pytest.importorskip("scipy.stats")
    known = [row for row in found.table if not math.isnan(row["pvalue"])]
    joined = [row["pvalue"] for row in found.joined or ()]  # one more test
    adjusted = scipy.false_discovery_control([*(row["pvalue"] for row in known), *joined])[: len(known)]
    np.testing.assert_allclose([row["pvalue_bh"] for row in known], adjusted, rtol=1e-12)
    large = slices(np.arange(600) % 4)
    assert large.table.column("kappa") == sorted(large.table.column("kappa"))
    assert "pvalue_bh" not in large.table.names
    assert "grade" not in slices(np.arange(600)).table.names


def test_sample_weights() -> None:
    weight = np.random.default_rng(2).integers(1, 5, 600)
    found = slices({"language": LANGUAGE}, sample_weight=weight)
    for row in found.table:
        own = row["slice"] == LANGUAGE
        alone = dhkappa.dh_kappa(VOTES[own], LABELS[own], sample_weight=weight[own])
        assert row["kappa"] == alone.value
        np.testing.assert_allclose([row["se"], row["low"]], [alone.se, alone.confidence_interval().low], rtol=1e-12)
    assert math.fsum(found.table.column("loss")) == pytest.approx(1 - found.kappa, abs=1e-13)
    equal = slices({"language": LANGUAGE}, sample_weight=np.full(600, 3))
    plain = slices({"language": LANGUAGE})
    assert equal.kappa_within == pytest.approx(plain.kappa_within, abs=1e-15)
    assert equal.se_within == pytest.approx(plain.se_within, rel=1e-12)
    assert equal.pvalue == pytest.approx(plain.pvalue, rel=1e-9)


def test_confidence_level_and_display() -> None:
    found = slices({"language": LANGUAGE}, confidence_level=0.8)
    alone = dhkappa.dh_kappa(VOTES[LANGUAGE == "de"], LABELS[LANGUAGE == "de"]).confidence_interval(0.8)
    assert next(row["low"] for row in found.table if row["slice"] == "de") == pytest.approx(alone.low, abs=1e-10)
    assert "80%" in found.table.title
    assert repr(found).startswith("Kappa of llm is")
    hostile = slices(np.where(LANGUAGE == "en", "<script>alert(1)</script>", LANGUAGE))
    assert "<script>" not in hostile._repr_html_()


def test_no_slice_is_better_if_the_labeler_is_not_called_better() -> None:
    """With a careless annotator a labeler looks better than a typical one, on all items and in every slice."""
    sim = dhkappa.simulate(600, labelers={"llm": 0.88}, annotators=[0.9, 0.9, 0.9, 0.35], rng=4)
    halves = ["x", "y"] * 300
    audit = dhkappa.audit(sim.votes, sim.suggested, slices=halves, progress=False)
    assert audit.verdict().code == "on-par"
    assert audit.annotator_baseline().share_low > 1
    without = dhkappa.audit(sim.votes[:, :3], sim.suggested, slices=halves, progress=False)
    grades = {row["slice"]: row["grade"] for row in without.slices().table}
    found = {row["slice"]: row["grade"] for row in audit.slices().table}
    assert found == grades == {"x": "slightly-below", "y": "on-par"}
    again = pickle.loads(pickle.dumps(audit))  # without the data: no slice is graded better than all items
    again._slices.clear()
    again._audits_without.clear()
    assert again.slices().table.column("grade") == ["on-par", "on-par"]


def test_slices_are_better_if_the_labeler_is() -> None:
    sim = dhkappa.simulate(600, labelers={"llm": 0.97}, annotators=[0.75] * 4, rng=4)
    audit = dhkappa.audit(sim.votes, sim.suggested, slices=["x", "y"] * 300, progress=False)
    assert audit.slices().table.column("grade") == ["better", "better"]


def labels_worse_in(names: list[str], language: Any, sim: Any, share: float = 0.5) -> Any:
    rng = np.random.default_rng(7)
    n = len(language)
    return np.where(
        np.isin(language, names) & (rng.random(n) < share), rng.choice(list("abcd"), n), sim.suggested["llm"]
    )


def test_a_verdict_names_the_slices_with_a_lower_grade() -> None:
    sim = dhkappa.simulate(1100, labelers={"llm": 0.95}, annotators=[0.85] * 4, categories=list("abcd"), rng=3)
    language = np.random.default_rng(1).choice(["en", "de", "fr"], 1100, p=[0.5, 0.3, 0.2])
    given: dict[str, Any] = {"slices": {"language": language}, "progress": False}
    audit = dhkappa.audit(sim.votes, {"llm": labels_worse_in(["fr"], language, sim)}, **given)
    [row] = [row for row in audit.slices().table if row["slice"] == "fr"]
    assert (row["grade"], row["pvalue_holm"] < 1e-6) == ("clearly-below", True)
    assert audit.verdict().code in ("better", "on-par")
    assert audit.verdict().lower_slices == ("language fr",)
    assert f"language fr ({row['items']} items)" in audit.verdict().details
    assert audit.verdict().details in audit.details
    assert audit.next_step().code == "fix-slice"
    plain = dhkappa.audit(sim.votes, {"llm": labels_worse_in(["fr"], language, sim)}, progress=False)
    assert plain.verdict().lower_slices == ()
    assert plain.next_step().code != "fix-slice"
    alike = dhkappa.audit(sim.votes, sim.suggested, **given)
    assert alike.verdict().lower_slices == ()
    low = dhkappa.audit(sim.votes, {"llm": labels_worse_in(["de", "en", "fr"], language, sim, 0.8)}, **given)
    assert low.verdict().code == "clearly-below"
    assert low.verdict().lower_slices == ()  # no lower grade than that of all items


def test_at_most_three_slices_of_a_column_are_named() -> None:
    sim = dhkappa.simulate(2000, labelers={"llm": 0.97}, annotators=[0.85] * 4, categories=list("abcd"), rng=3)
    language = np.random.default_rng(1).choice(list("uvwxyz"), 2000, p=[0.08] * 5 + [0.6])
    labels = labels_worse_in(list("uvwxy"), language, sim, 0.6)
    found = dhkappa.audit(sim.votes, {"llm": labels}, slices={"kind": language}, progress=False).verdict()
    assert len(found.lower_slices) == 5
    assert sum(f"In kind {name} (" in found.details for name in "uvwxy") == 3
    assert "not named: 2" in found.details
