"""Shares of a pool: notes, refusals, what they do not depend on, display; numbers are in test_pool_fractions.py."""

import json
import math
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dhkappa
from dhkappa import PoolShares, pool_shares
from expect import expect_error
from strategies import Data, ragged

VOTES = [["bug", "bug", "bug"], ["bug", "bug", "other"], ["other"] * 3, ["bug", "other", "other"]] * 10
LABELS = ["bug", "bug", "other", "other"] * 10
POOL = {"bug": 600, "other": 400}


def codes(found: PoolShares) -> list[str]:
    return [note.code for note in found.notes]


def test_a_sample_with_enough_items_of_each_label_has_no_notes() -> None:
    found = pool_shares(VOTES, LABELS, pool=POOL)
    assert codes(found) == []
    assert (found.n_items, found.n_votes, found.pool_items, found.merged) == (40, 120, 1000, ())
    assert found.table.column("share") == [17 / 30, 13 / 30]
    assert found.wrong_share == pytest.approx(1 / 6)
    assert found.annotator_wrong == pytest.approx(1000 / 3)


def test_items_without_votes_or_label_are_excluded() -> None:
    found = pool_shares([*VOTES, [], ["bug"]], [*LABELS, "bug", None], pool=POOL)
    assert found.excluded.to_dict() == {"no_votes": 1, "one_vote": 0, "no_label": 1, "no_weight": 0}
    assert codes(found) == ["items-excluded"]
    assert found.table.to_dicts() == pool_shares(VOTES, LABELS, pool=POOL).table.to_dicts()


def test_single_votes_count() -> None:
    found = pool_shares([*VOTES, ["bug"]], [*LABELS, "bug"], pool=POOL)
    assert (found.n_items, codes(found)) == (41, ["some-single-votes"])
    alone = pool_shares([row[:1] for row in VOTES], LABELS, pool=POOL)
    assert math.isnan(alone.annotator_wrong)
    assert codes(alone) == []
    assert "no item has two votes" in alone.summary
    with expect_error("finite-pool-single-votes", "finite_pool"):
        pool_shares([*VOTES, ["bug"]], [*LABELS, "bug"], pool=POOL, finite_pool=True)


def test_a_finite_pool_has_smaller_errors_and_a_census_only_that_of_the_votes() -> None:
    votes, labels = VOTES + [["other"] * 3, ["bug"] * 3] * 4, LABELS + ["bug", "other"] * 4
    pool = {"bug": 30, "other": 30}
    wide, close = (pool_shares(votes, labels, pool=pool, finite_pool=on) for on in (False, True))
    assert close.wrong_high - close.wrong_low < wide.wrong_high - wide.wrong_low
    assert close.table.column("share") == wide.table.column("share")
    census = pool_shares(VOTES, LABELS, pool={"bug": 20, "other": 20}, finite_pool=True)
    between = 20 * (2 / 9 / 2) / 40**2  # half of the items have votes 2 to 1, x (1 - x) / (N - 1) = 1/9
    assert census.table.column("se")[0] ** 2 == pytest.approx(between)


def test_labels_of_the_pool_that_the_sample_lacks() -> None:
    found = pool_shares(VOTES, LABELS, pool={**POOL, "spam": 1000})
    assert codes(found) == ["labels-merged", "labels-not-sampled", "sample-unlike-pool"]
    row = list(found.table)[-1]
    assert (row["category"], row["share"], row["low"], row["items"]) == ("spam", 0, 0, 0)
    assert row["high"] > 0
    assert math.isnan(row["wrong"])
    assert row["reason"] == "No sampled item has this label."
    assert found.merged == ("other", "spam")
    assert pool_shares(VOTES, LABELS, pool={**POOL, "spam": 0}).merged == ()


def test_a_category_that_is_never_suggested_has_a_share_and_no_wrong_labels() -> None:
    found = pool_shares([*VOTES, ["spam", "bug"]], [*LABELS, "bug"], pool=POOL)
    row = found.table.to_dicts()[-1]
    assert (row["category"], row["pool"], row["items"], row["wrong"], row["reason"]) == ("spam", 0, 0, 0, None)
    assert row["count"] == pytest.approx(600 / 42)


def test_a_sample_unlike_the_pool() -> None:
    pool = {"bug": 100, "other": 9_900}
    found = pool_shares(VOTES, LABELS, pool=pool)
    assert codes(found) == ["sample-unlike-pool"]
    drawn = pool_shares(VOTES, LABELS, pool=pool, strata=LABELS)
    assert codes(drawn) == []
    assert drawn.sampled_by_label
    assert drawn.table.to_dicts() == found.table.to_dicts()


def test_random_samples_are_rarely_said_to_differ_from_the_pool() -> None:
    rng, said = np.random.default_rng(1), 0
    for _ in range(400):
        labels = rng.choice(["a", "b", "c", "d"], 60, p=[0.6, 0.3, 0.08, 0.02]).tolist()
        found = pool_shares([[label] for label in labels], labels, pool={"a": 6000, "b": 3000, "c": 800, "d": 200})
        said += "sample-unlike-pool" in codes(found)
    assert said <= 3  # at most 0.1% are expected: 3 of 400 has a probability below 0.001


def test_refusals() -> None:
    with expect_error("nothing-sampled", "data"):
        pool_shares([[], ["bug"]], ["bug", None], pool=POOL)
    with expect_error("pool-label-missing", "pool"):
        pool_shares(VOTES, LABELS, pool={"bug": 1000})
    with expect_error("pool-label-missing", "pool"):
        pool_shares(VOTES, LABELS, pool={})
    with expect_error("pool-too-small", "pool"):
        pool_shares(VOTES, LABELS, pool={"bug": 19, "other": 20})
    with expect_error("strata-not-labels", "strata"):
        pool_shares(VOTES, LABELS, pool=POOL, strata=["x", "y"] * 20)
    with expect_error("option-not-supported", "sample_weight"):
        pool_shares(VOTES, LABELS, pool=POOL, sample_weight=[1] * 40)
    with expect_error("option-not-supported", "clusters"):
        pool_shares(VOTES, LABELS, pool=POOL, clusters=[1] * 40)
    with expect_error("pool-with-weights", "sample_weight"):
        pool_shares(dhkappa.Dataset(VOTES, LABELS, sample_weight=range(1, 41)), pool=POOL)
    with expect_error("no-suggested-labels"):
        pool_shares(VOTES, pool=POOL)
    with expect_error("invalid-confidence-level"):
        pool_shares(VOTES, LABELS, pool=POOL, confidence_level=95)
    with expect_error("option-with-dataset"):
        pool_shares(dhkappa.tally(VOTES, LABELS), pool=POOL, strata=LABELS)
    with expect_error("option-with-dataset"):
        pool_shares(dhkappa.Dataset(VOTES, LABELS), pool=POOL, missing=["x"])
    with pytest.raises(TypeError, match="weights"):
        pool_shares(VOTES, LABELS, pool=POOL, weights="linear")  # type: ignore[call-arg]


def test_strata_of_a_dataset_and_a_tally() -> None:
    expected = pool_shares(VOTES, LABELS, pool=POOL, strata=LABELS).to_dict()
    data = dhkappa.Dataset(VOTES, {"llm": LABELS, "rule": LABELS[::-1]}, strata=LABELS)
    assert pool_shares(data, "llm", pool=POOL).to_dict() == expected
    assert pool_shares(data.tally(), "llm", pool=POOL).to_dict() == expected
    with expect_error("strata-not-labels", "strata"):
        pool_shares(data, "rule", pool=POOL)


@given(ragged(max_items=40), st.integers(0, 2**32), st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_the_result_does_not_depend_on(data: Data, seed: int, by_label: bool) -> None:
    random = Random(seed)
    kept = [
        k for k, label in enumerate(data.suggested) if label is not None and any(v is not None for v in data.votes[k])
    ]
    if not kept:
        return
    votes, labels = [list(data.votes[k]) for k in kept], [data.suggested[k] for k in kept]
    pool: Any = {label: labels.count(label) * random.choice([1, 3, 50]) for label in labels}

    def result(votes: Any, labels: Any, pool: Any, **more: Any) -> PoolShares:
        return pool_shares(votes, labels, pool=pool, strata=labels if by_label else None, **more)

    def rows(found: PoolShares) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if k != "category"} for row in found.table.to_json()]

    first = result(votes, labels, pool)
    order = random.sample(range(len(kept)), len(kept))
    shuffled = result([random.sample(votes[k], len(votes[k])) for k in order], [labels[k] for k in order], pool)
    assert shuffled.to_dict() == first.to_dict()
    more = result(votes, labels, {**pool, "never": 0}, categories=[*first.table.column("category"), "unused"])
    assert more.to_dict() == first.to_dict()
    half = len(kept) // 2
    tallies = [
        dhkappa.tally(votes[part], labels[part], strata=labels[part] if by_label else None)
        for part in (slice(half), slice(half, None))
        if votes[part]
    ]
    counted = tallies[0] if len(tallies) == 1 else tallies[0] + tallies[1]
    assert pool_shares(counted, pool=pool).to_dict() == first.to_dict()
    names = {name: f"category {place:03}" for place, name in enumerate(first.table.column("category"))} | {None: None}
    new = [[names[vote] for vote in row] for row in votes]
    renamed = result(new, [names[label] for label in labels], {names[label]: n for label, n in pool.items()})
    assert rows(renamed) == rows(first)
    assert (renamed.wrong, renamed.wrong_low, renamed.wrong_high) == (first.wrong, first.wrong_low, first.wrong_high)


@given(ragged(max_items=40), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_limits_contain_the_shares_and_widen_with_the_level(data: Data, seed: int) -> None:
    random = Random(seed)
    labels = list(data.suggested)
    pool: Any = {label: labels.count(label) * random.choice([1, 3, 50]) for label in labels if label is not None}
    ends: dict[float, list[tuple[float, float]]] = {}
    for level in (0.9, 0.99):
        try:
            found = pool_shares(list(map(list, data.votes)), labels, pool=pool, confidence_level=level)
        except dhkappa.DataError:
            return
        assert sum(found.table.column("share")) == pytest.approx(1)
        assert sum(found.table.column("count")) == pytest.approx(found.pool_items)
        assert found.wrong_low <= found.wrong <= found.wrong_high <= found.pool_items
        for row in found.table:
            assert 0 <= row["low"] <= row["share"] <= row["high"] <= 1
        ends[level] = [(row["low"], row["high"]) for row in found.table]
    for (low, high), (lower, higher) in zip(ends[0.9], ends[0.99], strict=True):
        assert lower <= low
        assert high <= higher


def test_display_and_json() -> None:
    found = pool_shares(VOTES, LABELS, pool={**POOL, "<b>": 3})
    text, page = repr(found), found._repr_html_()
    assert text.startswith("An annotator would give another label to about 167 of the 1,003 items of the pool")
    assert "95% CI" in text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["categories"][2] | {"high": None} == {
        "category": "<b>",
        "share": 0.0,
        "low": 0.0,
        "high": None,
        "count": 0.0,
        "pool": 3,
        "items": 0,
        "wrong": None,
        "wrong_low": None,
        "wrong_high": None,
        "se": 0.0,
        "gain": None,
        "reason": "No sampled item has this label.",
    }
    assert plain["merged"] == ["other", "<b>"]


def test_many_categories() -> None:
    drawn = dhkappa.simulate(2_000, labelers={"llm": 0.9}, categories=range(400), rng=1)
    labels = drawn.suggested["llm"]
    pool = {label: 10 * n for label, n in zip(*np.unique(labels, return_counts=True), strict=True)}
    found = pool_shares(drawn.votes, labels, pool=pool)
    assert sum(found.table.column("share")) == pytest.approx(1)
    assert found.wrong_share == pytest.approx(1 - 0.9 * 0.85, abs=0.03)  # the label or the vote is wrong
