"""A labeler for other annotators, in audits and reports."""

import math
import pickle  # nosec B403
from random import Random
from typing import Any

import numpy as np
import pytest

import other_annotators_oracle as oracle
from dhkappa import Audit, DataError, Dataset, OtherAnnotators, audit, compare, dh_kappa, tally
from other_annotators_oracle import as_items, close, drawn

Votes = Any


def audited(votes: Votes, labels: Any, **options: Any) -> Audit:
    found = audit(votes, labels, progress=False, **options)
    assert isinstance(found, Audit)
    return found


def difference(votes: Votes, labels: list[int]) -> tuple[float, float, float, oracle.Variance]:
    """The difference from a typical annotator with its limits and its variance over annotators."""
    known = audited(votes, {"llm": labels}).annotator_baseline()
    items = as_items(votes)
    if len({vote for item in items for vote in item.values()}) > 2:
        pairs = [(item, label) for item, label in zip(items, labels, strict=True) if len(item) >= 3]
        items, labels = [item for item, _ in pairs], [label for _, label in pairs]
        other = oracle.typical(items)
    else:
        other = oracle.fleiss(items)
    own = oracle.kappa(items, labels)
    assert close(known.difference, own.kappa - other.kappa)
    return known.low, known.high, known.se, oracle.variance(items, oracle.minus(own.u, other.u))


@pytest.mark.parametrize("seed", range(6))
def test_difference_equals_the_oracle(seed: int) -> None:
    votes, labels = drawn(seed, n=60, m=2 + seed % 3, A=11, N=3 + seed % 2)
    found = audited(votes, {"llm": labels}).other_annotators()
    low, high, se, exact = difference(votes, labels)
    known = audited(votes, {"llm": labels}).annotator_baseline()
    limits = oracle.limits(known.difference, low, high, se**2, known.n_items, exact)[:2]
    assert (found.difference_low, found.difference_high) == pytest.approx(limits, abs=1e-9)
    assert found.difference_reason is None


def test_kappa_is_that_of_dh_kappa() -> None:
    votes, labels = drawn(3)
    whole = audited(votes, {"llm": labels, "rule": labels[::-1]})
    for name, own in (("llm", labels), ("rule", labels[::-1])):
        found, alone = whole.other_annotators(name), dh_kappa(votes, own)
        assert (found.low, found.high) == tuple(alone.confidence_interval(annotators="random"))
        assert whole.kappas[name].confidence_interval(annotators="random").low == found.low
        assert found.n_annotators == 12
        assert 10 < found.n_effective < 12
    assert whole.other_annotators("llm") is whole.other_annotators("llm")
    fleiss = whole.fleiss.confidence_interval(annotators="random")
    assert fleiss.low < whole.fleiss.confidence_interval().low


def test_equal_rows_are_merged_in_audits() -> None:
    base, few = drawn(2, n=8, A=10, N=6)
    votes, labels = np.concatenate([base] * 6), few * 6
    found = audited(votes, {"llm": labels})
    assert found._item_votes is not None
    assert found._item_votes.items is not None
    interval = dh_kappa(votes, labels).confidence_interval(annotators="random")
    assert (found.other_annotators().low, found.other_annotators().high) == tuple(interval)


def test_text_has_both_intervals() -> None:
    votes, labels = drawn(4, n=200, A=20)
    whole = audited(votes, {"llm": labels})
    found, baseline = whole.other_annotators(), whole.annotator_baseline()
    fixed = whole.kappas["llm"].confidence_interval()
    assert found.text == (
        f"For these 20 annotators kappa is {fixed.low:.2f} to {fixed.high:.2f}; for other annotators like them, "
        f"{found.low:.2f} to {found.high:.2f} (95% CIs). Its difference from a typical annotator is "
        f"{baseline.low:.2f} to {baseline.high:.2f} for these annotators and {found.difference_low:.2f} to "
        f"{found.difference_high:.2f} for others."
    )
    assert repr(found) == f"llm: {found.text}"


def test_few_annotators() -> None:
    votes, labels = drawn(4, n=100, A=7)
    found = audited(votes, {"llm": labels}).other_annotators()
    assert found.text.endswith("so the intervals for others are much wider than they would be with more.")
    assert [note["code"] for note in found.to_dict()["notes"]] == ["few-annotators"]


def test_three_annotators_have_a_range() -> None:
    votes, labels = drawn(4, n=100, A=3)
    whole = audited(votes, {"llm": labels})
    found, each = whole.other_annotators(), whole.annotators().column("kappa_without")
    assert math.isnan(found.low)
    assert (found.kappa_without_low, found.kappa_without_high) == (min(each), max(each))
    assert found.reason == found.text
    assert found.text.startswith("Only 3 annotators: nothing here says what others would have voted. Without one")
    assert found.difference_reason == "Only 3 annotators: nothing here says what others would have voted."


def test_an_annotator_with_a_third_of_the_votes_has_no_difference() -> None:
    source, votes = Random(1), np.full((120, 40), None, object)
    labels = [item % 3 for item in range(120)]
    for item, label in enumerate(labels):
        for a in [0, *source.sample(range(1, 40), 2)] if item else source.sample(range(1, 40), 3):
            votes[item, a] = label if source.random() < 0.8 else source.randrange(3)
    found = audited(votes, {"llm": labels}).other_annotators()
    assert not math.isnan(found.low)
    assert not math.isnan(found.difference_low)
    votes[0, :] = None
    votes[0, [0, 1, 2]] = labels[0]
    found = audited(votes, {"llm": labels}).other_annotators()
    assert not math.isnan(found.low)
    assert math.isnan(found.difference_low)
    assert found.difference_reason is not None
    assert found.difference_reason.startswith("One annotator gave a third of the votes or more")


def test_two_votes_have_no_difference() -> None:
    votes, labels = drawn(4, n=100, A=12)
    for row in votes:
        row[np.flatnonzero([vote is not None for vote in row])[2:]] = None
    found = audited(votes, {"llm": labels}).other_annotators()
    assert not math.isnan(found.low)
    assert found.difference_reason == "Two votes per item give only bounds of the annotator baseline."


def test_undefined_kappa() -> None:
    votes = np.full((30, 12), "a")
    whole = audited(votes, {"llm": ["a"] * 30})
    found = whole.other_annotators()
    assert found.reason == whole.kappas["llm"].reason
    assert "other annotators like them" not in whole.to_markdown()


def test_designs_are_refused_and_null_in_json() -> None:
    votes, labels = drawn(1)
    whole = audited(votes, {"llm": labels}, sample_weight=range(1, 41))
    with pytest.raises(DataError) as caught:
        whole.other_annotators()
    assert caught.value.code == "option-not-supported"
    assert whole.to_dict()["labelers"]["llm"]["other_annotators"] is None
    lists = [[vote for vote in row if vote is not None] for row in votes.tolist()]
    with pytest.raises(DataError) as caught:
        audited(lists, {"llm": labels}).other_annotators()
    assert caught.value.code == "annotators-unknown"


def test_reports_have_the_sentence() -> None:
    votes, labels = drawn(4, n=100, A=20)
    whole = audited(votes, {"llm": labels, "rule": labels[::-1]})
    best = whole.ranking[0]
    text = whole.other_annotators(best).text
    assert f"{best}: {text}".replace("'", "") in whole.to_markdown().replace("\\", "")
    assert whole.to_dict()["labelers"][best]["other_annotators"]["text"] == text


def test_audits_can_be_pickled() -> None:
    votes, labels = drawn(4)
    whole = audited(votes, {"llm": labels})
    again = pickle.loads(pickle.dumps(whole))  # nosec B301 - our own
    assert isinstance(again.other_annotators(), OtherAnnotators)
    assert again.other_annotators().to_dict() == whole.other_annotators().to_dict()


# Differences between labelers


def two_labelers(seed: int, n: int = 80, A: int = 12) -> tuple[Votes, dict[str, list[Any]]]:
    votes, labels = drawn(seed, n=n, A=A)
    source = Random(seed)
    return votes, {"llm": labels, "rule": [label if source.random() < 0.7 else source.randrange(3) for label in labels]}


@pytest.mark.parametrize("seed", range(5))
def test_difference_between_labelers_equals_the_oracle(seed: int) -> None:
    votes, labels = two_labelers(seed)
    fixed, found = next(iter(compare(votes, labels).differences)), compare(votes, labels, other_annotators=True)
    row = next(iter(found.differences))
    one, other = (oracle.kappa(as_items(votes), own) for own in labels.values())
    assert close(row["difference"], one.kappa - other.kappa)
    exact = oracle.variance(as_items(votes), oracle.minus(one.u, other.u))
    limits = oracle.limits(row["difference"], fixed["low"], fixed["high"], fixed["se"] ** 2, 80, exact)[:2]
    assert (row["low"], row["high"]) == pytest.approx(limits, abs=1e-9)
    assert row["se"] == pytest.approx(math.sqrt(fixed["se"] ** 2 + max(0.0, float(exact.B1))), rel=1e-9)
    assert row["method"] == "t"
    assert 0 < row["pvalue"] == row["pvalue_holm"] < 1
    # The p-value is where a limit is 0.
    level = compare(votes, labels, other_annotators=True, confidence_level=1 - row["pvalue"]).differences
    ends = next(iter(level))
    assert min(abs(ends["low"]), abs(ends["high"])) == pytest.approx(0, abs=1e-9)


def test_labels_may_be_missing() -> None:
    votes, labels = two_labelers(7, n=120)
    third = [None if item < 30 else label for item, label in enumerate(labels["llm"])]
    few: list[Any] = [label if item < 40 else None for item, label in enumerate(labels["rule"])]
    given = {**labels, "third": third, "few": few}
    fixed, found = compare(votes, given, rng=1), compare(votes, given, rng=1, other_annotators=True)
    assert found.not_ranked.keys() == fixed.not_ranked.keys() == {"few"}
    for before, after in zip(fixed.differences, found.differences, strict=True):
        assert (after["labeler"], after["other"], after["items"]) == (
            before["labeler"],
            before["other"],
            before["items"],
        )
        common = [
            item
            for item in range(120)
            if given[after["labeler"]][item] is not None and given[after["other"]][item] is not None
        ]
        own = {name: [given[name][item] for item in common] for name in (after["labeler"], after["other"])}
        alone = next(iter(compare(votes[common], own, other_annotators=True).differences))
        assert {name: after[name] for name in ("se", "low", "high", "pvalue")} == pytest.approx(
            {name: alone[name] for name in ("se", "low", "high", "pvalue")}, rel=1e-9
        )
    for name, kappa in found.kappas.items():
        interval = kappa.confidence_interval(annotators="random")
        row = next(row for row in found.table() if row["labeler"] == name)
        assert (row["low"], row["high"]) == tuple(interval)
        assert interval.low < kappa.confidence_interval().low
        assert "se" not in row


def test_audits_know_the_votes_of_their_comparison() -> None:
    votes, labels = two_labelers(7, n=120)
    found = audited(votes, {**labels, "third": [None if item < 30 else 1 for item in range(120)]})
    assert found.comparison is not None
    for kappa in found.comparison.kappas.values():
        assert not math.isnan(kappa.confidence_interval(annotators="random").low)


def test_equal_labels_do_not_differ() -> None:
    votes, labels = drawn(1)
    row = next(iter(compare(votes, {"a": labels, "b": labels}, other_annotators=True).differences))
    assert (row["difference"], row["pvalue"], row["se"]) == (0, 1, 0)
    assert row["low"] < 0 < row["high"]


def test_few_annotators_have_no_differences() -> None:
    votes, labels = two_labelers(3, A=4)
    found = compare(votes, labels, other_annotators=True)
    row = next(iter(found.differences))
    assert math.isnan(row["low"])
    assert math.isnan(row["pvalue"])
    assert row["method"] is None
    assert row["reason"] == "Only 4 annotators: nothing here says what others would have voted."
    assert found.to_dict()["other_annotators"] is True


@pytest.mark.parametrize(
    "option",
    [
        {"weights": "linear", "categories": [0, 1, 2]},
        {"sample_weight": range(1, 81)},
        {"strata": [item % 2 for item in range(80)]},
        {"pool": 1000},
    ],
)
def test_designs_are_refused_in_comparisons(option: dict[str, Any]) -> None:
    votes, labels = two_labelers(3)
    with pytest.raises(DataError) as caught:
        compare(votes, labels, other_annotators=True, **option)
    assert caught.value.code == "option-not-supported"
    if {*option} <= {"sample_weight", "strata"}:
        with pytest.raises(DataError) as caught:
            compare(Dataset(votes, labels, **option), other_annotators=True)
        assert (caught.value.code, caught.value.parameter) == ("option-not-supported", "other_annotators")


def test_tallies_are_refused_in_comparisons() -> None:
    with pytest.raises(DataError) as caught:
        compare(tally(*two_labelers(3)), other_annotators=True)
    assert caught.value.code == "annotators-unknown"
