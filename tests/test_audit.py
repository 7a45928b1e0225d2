"""The audit: the same answers as the single calls, kept together; what it refuses; how it shows itself."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dhkappa.stats.annotator_comparison import annotator_comparison

import dhkappa
from dhkappa import Audit, DataError
from dhkappa.core.items import read_item_votes
from dhkappa.stats.annotators import annotators
from dhkappa.stats.review import review

DRAWN = dhkappa.simulate(120, labelers={"rule": 0.6, "llm": 0.9}, annotators=4, missing=0.2, rng=3)


@pytest.fixture(scope="module")
def audit() -> Audit:
    return dhkappa.audit(DRAWN.votes, DRAWN.suggested)


def same(left: object, right: object) -> bool:
    """Compare nested plain values, where NaN is NaN."""
    return repr(left) == repr(right)


def test_every_answer_is_that_of_the_single_call(audit: Audit) -> None:
    item_votes = read_item_votes(DRAWN.votes, DRAWN.suggested)
    assert audit.labelers == ("rule", "llm")
    for name, labels in DRAWN.suggested.items():
        kappa = dhkappa.dh_kappa(DRAWN.votes, labels)
        assert audit.kappas[name].exact == kappa.exact
        assert audit.kappas[name].to_dict() == kappa.to_dict()
        assert audit.permutation_tests[name] == kappa.permutation_test()
        assert same(audit.categories(name).to_dicts(), kappa.by_category().to_dicts())
        assert same(audit.confusion(name).to_dicts(), kappa.confusion().to_dicts())
        assert same(audit.review(name).to_dicts(), review(item_votes, name).to_dicts())
        assert same(audit.annotators(name).to_dicts(), annotators(item_votes, name).to_dicts())
        assert audit.annotator_comparison(name).to_dict() == annotator_comparison(item_votes, name).to_dict()
    assert audit.comparison is not None
    assert same(audit.comparison.to_dict(), dhkappa.compare(DRAWN.votes, DRAWN.suggested).to_dict())
    assert audit.fleiss.exact == dhkappa.fleiss_kappa(DRAWN.votes).exact


def test_most_limits_the_queue(audit: Audit) -> None:
    assert audit.review("llm", limit=5).to_dicts() == audit.review("llm").to_dicts()[:5]


def test_one_labeler_needs_no_name() -> None:
    found = dhkappa.audit(DRAWN.votes, DRAWN.suggested["llm"])
    assert found.comparison is None
    assert found.labelers == ("labeler",)
    assert found.annotator_comparison().difference == found.annotator_comparison("labeler").difference
    assert found.categories().names[0] == "category"


def test_a_tally_answers_all_but_items_and_annotators(audit: Audit) -> None:
    found = dhkappa.audit(dhkappa.tally(DRAWN.votes, DRAWN.suggested))
    for name in audit.labelers:
        assert found.kappas[name].exact == audit.kappas[name].exact
        assert same(found.categories(name).to_dicts(), audit.categories(name).to_dicts())
    assert found.comparison is not None
    assert audit.comparison is not None
    assert same(found.comparison.to_dict(), audit.comparison.to_dict())
    with pytest.raises(DataError, match="a tally does not keep"):
        found.review("llm")
    for ask in (found.annotators, found.annotator_comparison):
        with pytest.raises(DataError, match=r"who cast which vote.*column for each annotator"):
            ask("llm")
    json.dumps(found.to_dict(), allow_nan=False)


def test_counts_have_items_but_no_annotators() -> None:
    counts = [[3, 0], [2, 1], [0, 3], [1, 2]] * 10
    found = dhkappa.audit(counts=counts, suggested={"a": [0, 0, 1, 1] * 10, "b": [0, 1, 1, 1] * 10})
    assert len(found.review("a")) == 40
    with pytest.raises(DataError, match="who cast which vote"):
        found.annotator_comparison("a")


def test_designs_reach_every_part() -> None:
    strata = np.where(DRAWN.suggested["rule"] == "a", "a", "other")
    pool = {"a": 5000, "other": 700}
    found = dhkappa.audit(DRAWN.votes, DRAWN.suggested, strata=strata, pool=pool)
    kappa = dhkappa.dh_kappa(DRAWN.votes, DRAWN.suggested["llm"], strata=strata, pool=pool)
    assert found.kappas["llm"].to_dict() == kappa.to_dict()
    assert found.comparison is not None
    compared = dhkappa.compare(DRAWN.votes, DRAWN.suggested, strata=strata, pool=pool)
    assert same(found.comparison.to_dict(), compared.to_dict())
    fleiss = dhkappa.fleiss_kappa(DRAWN.votes, strata=strata, pool=pool)
    assert found.fleiss.exact == fleiss.exact
    weight = {h: size / (strata == h).sum() for h, size in pool.items()}
    eligible = found.review("llm").column("item")
    assert len(eligible) == kappa.n_items
    sizes = {h: sum(strata[i] == h for i in eligible) for h in pool}
    w = np.array([pool[strata[i]] / sizes[strata[i]] for i in eligible])
    # Sums of some hundred floats.
    assert np.average(found.review("llm").column("contribution"), weights=w) == pytest.approx(kappa.value, rel=1e-12)
    parts = found.annotators("llm")
    together = np.dot(parts.column("weight"), parts.column("kappa"))
    assert together == pytest.approx(kappa.value, rel=1e-12)
    by_weights = dhkappa.audit(
        DRAWN.votes, DRAWN.suggested, sample_weight=[weight[h] * (strata == h).sum() / sizes[h] for h in strata]
    )
    assert found.annotator_comparison("llm").difference == pytest.approx(
        by_weights.annotator_comparison("llm").difference, rel=1e-12
    )


def test_ordinal_stands_beside() -> None:
    found = dhkappa.audit(DRAWN.votes, DRAWN.suggested, categories=["a", "b", "c"], weights="linear")
    expected = dhkappa.dh_kappa(DRAWN.votes, DRAWN.suggested["llm"], categories=["a", "b", "c"], weights="linear")
    assert found.weighted["llm"].exact == expected.exact
    with pytest.raises(DataError, match="ordinal needs the categories in their order"):
        dhkappa.audit(DRAWN.votes, DRAWN.suggested, weights="linear")


def test_undefined_kappas_leave_the_rest_standing() -> None:
    votes = [["a", "a", "a"]] * 12
    found = dhkappa.audit(votes, {"one": ["a"] * 12, "two": ["a"] * 11 + ["b"]})
    assert math.isnan(found.kappas["one"].value)
    assert found.permutation_tests["one"] is None
    with pytest.raises(DataError, match="needs a kappa that is defined"):
        found.categories("one")
    assert len(found.review("one")) == 12
    assert "same category" in repr(found.comparison.differences.to_dicts()[0]) if found.comparison else False
    json.dumps(found.to_dict(), allow_nan=False)


def test_no_eligible_item() -> None:
    found = dhkappa.audit([["a"], ["b"]], {"x": ["a", "b"], "y": ["b", "b"]})
    assert found.kappas["x"].n_items == 0
    assert len(found.review("x")) == 0
    json.dumps(found.to_dict(), allow_nan=False)


def test_notes_name_the_labelers_they_are_about(audit: Audit) -> None:
    texts = [note.text for note in audit.notes]
    assert len(texts) == len(set(texts))
    excluded = [note for note in audit.notes if note.code == "items-excluded"]
    assert len(excluded) == 1
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 10
    found = dhkappa.audit(votes, {"good": ["a", "b", "a", "b"] * 10, "same": ["a"] * 40})
    one = next(note for note in found.notes if note.code == "one-label")
    assert one.text.startswith("same: ")


def test_it_shows_itself(audit: Audit) -> None:
    text = repr(audit)
    assert all(len(line) <= 110 for line in text.splitlines() if not line.startswith("- "))
    for word in ("rule", "llm", "Annotators among themselves", "Differences between labelers", "against people"):
        assert word in text
    hostile = {"<script>alert(1)</script>": DRAWN.suggested["llm"], "b": DRAWN.suggested["rule"]}
    assert "<script>" not in dhkappa.audit(DRAWN.votes, hostile)._repr_html_()


def test_plain_values(audit: Audit) -> None:
    found = json.loads(json.dumps(audit.to_dict(limit=3), allow_nan=False))
    assert set(found) == {"confidence_level", "verdict", "labelers", "comparison", "fleiss", "notes"}
    assert len(found["labelers"]["llm"]["items"]) == 3
    assert found["labelers"]["llm"]["kappa"]["value"] == audit.kappas["llm"].value
    assert (
        found["labelers"]["llm"]["annotator_comparison"]["difference"] == audit.annotator_comparison("llm").difference
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": DRAWN.votes}, "suggested is absent"),
        ({}, "pass either votes or counts="),
        ({"data": DRAWN.votes, "suggested": {}}, "suggested is an empty mapping"),
        ({"data": DRAWN.votes, "suggested": DRAWN.suggested, "confidence_level": 95}, "level must be between 0 and 1"),
        ({"data": dhkappa.tally(DRAWN.votes, DRAWN.suggested), "suggested": ["gpt"]}, "'gpt', not in the tally"),
    ],
)
def test_bad_input(given: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        dhkappa.audit(**given)  # type: ignore[arg-type]


def test_an_unknown_labeler_is_named(audit: Audit) -> None:
    with pytest.raises(DataError, match=r"'gpt' is not in the audit\. Labelers: 'rule', 'llm'"):
        audit.categories("gpt")
    with pytest.raises(DataError, match="say which labeler"):
        audit.review()


def test_lists_do_not_tell_who_voted() -> None:
    found = dhkappa.audit(DRAWN.votes.tolist(), DRAWN.suggested)
    with pytest.raises(DataError, match="nothing tells who cast which vote, as lists"):
        found.annotator_comparison("llm")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": range(120)}, "holds votes and labels already: leave out weights"),
        ({"suggested": {"rule": ["a"]}}, "suggested must list names of labelers"),
        ({"suggested": 5}, "suggested must list names of labelers"),
        ({"suggested": []}, "names nobody"),
    ],
)
def test_a_tally_holds_votes_and_labels_already(given: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        dhkappa.audit(dhkappa.tally(DRAWN.votes, DRAWN.suggested), **given)  # type: ignore[arg-type]


def test_a_weighted_tally_of_one_labeler_has_no_name() -> None:
    counted = dhkappa.tally(DRAWN.votes, DRAWN.suggested["llm"], sample_weight=[1, 2] * 60)
    assert counted.labelers == ()
    assert dhkappa.audit(counted).labelers == ("labeler",)


def test_items_of_a_dataframe_are_ready_for_json() -> None:
    frame = pd.DataFrame(DRAWN.votes, index=pd.date_range("2026-01-01", periods=120))
    found = dhkappa.audit(frame, pd.Series(DRAWN.suggested["llm"], index=frame.index))
    first = json.loads(json.dumps(found.to_dict(limit=1), allow_nan=False))["labelers"]["labeler"]["items"][0]
    assert first["item"].startswith("2026-")


def test_most_is_checked_whatever_was_asked_before() -> None:
    found = dhkappa.audit(DRAWN.votes, DRAWN.suggested["llm"])
    assert len(found.review(limit=1)) == 1
    for most in (True, 1.0, [1]):
        with pytest.raises(DataError, match="most must be a whole number"):
            found.review(limit=most)  # type: ignore[arg-type]


@pytest.mark.parametrize("sample_weight", [[5e-324] * 119 + [1.0], [5e-324] * 119 + [1e-300], [1e300] + [1.0] * 119])
def test_one_item_that_outweighs_all_others_warns_nobody(sample_weight: list[float]) -> None:
    found = dhkappa.audit(
        DRAWN.votes, DRAWN.suggested, sample_weight=sample_weight, categories=["a", "b", "c"], weights="linear"
    )
    assert "llm" in repr(found)
    few = dhkappa.audit(
        DRAWN.votes[:12], DRAWN.suggested["llm"][:12], sample_weight=[*sample_weight[:11], sample_weight[-1]]
    )
    assert "labeler" in repr(few)
    json.dumps(found.to_dict(limit=3), allow_nan=False)


def test_a_narrower_interval_asks_for_no_more_items_than_the_pool_has() -> None:
    strata = ["a", "b"] * (len(DRAWN.votes) // 2) + ["a"] * (len(DRAWN.votes) % 2)
    pool = {"a": 500, "b": 900}
    table = dhkappa.audit(DRAWN.votes, DRAWN.suggested, strata=strata, pool=pool).sample_sizes("rule")
    assert len(table) > 0
    assert max(table.column("items")) <= sum(pool.values())
    assert max(table.column("items_assured")) <= sum(pool.values())


def test_a_labeler_without_a_name_is_refused() -> None:
    given = {"": ["a", "b"], "x": ["a", "a"]}
    votes = [["a", "a"], ["b", "b"]]
    table = pd.DataFrame({"v1": ["a", "b"], "v2": ["a", "b"], "s": ["a", "b"]})
    for call in (
        lambda: dhkappa.audit(votes, given, progress=False),
        lambda: dhkappa.audit(votes, {"": ["a", "b"]}, progress=False),
        lambda: dhkappa.compare(votes, given),
        lambda: dhkappa.tally(votes, given),
        lambda: dhkappa.tally(table, {"": "s"}, annotators=["v1", "v2"]),
    ):
        with pytest.raises(DataError, match="every labeler needs a name"):
            call()


@pytest.mark.parametrize("kind", ["small integers", "floats", "series", "own"])
def test_sizes_of_pools_are_our_own(kind: str) -> None:
    drawn = dhkappa.simulate(400, labelers={"a": 0.8}, annotators=3, rng=3)
    strata = ["x", "y"] * 200
    sizes = {"x": 40_000, "y": 30_000}
    right = dhkappa.audit(drawn.votes, drawn.suggested, strata=strata, pool=sizes, progress=False)
    pool: Any = {
        "small integers": {name: np.uint16(size) for name, size in sizes.items()},
        "floats": {name: float(size) for name, size in sizes.items()},
        "series": pd.Series(sizes),
        "own": dict(sizes),
    }[kind]
    found = dhkappa.audit(drawn.votes, drawn.suggested, strata=strata, pool=pool, progress=False)
    pool["x"] = 401  # which is nobody's business any more
    assert found.sample_sizes().to_dicts() == right.sample_sizes().to_dicts()
    assert found.review().to_dicts() == right.review().to_dicts()
    assert found.to_dict() == right.to_dict()


def test_a_pool_of_any_size() -> None:
    drawn = dhkappa.simulate(400, labelers={"a": 0.8}, annotators=3, rng=3)
    endless, huge = (dhkappa.audit(drawn.votes, drawn.suggested, pool=pool, progress=False) for pool in (None, 10**15))
    assert huge.sample_sizes().to_dicts() == endless.sample_sizes().to_dicts()
