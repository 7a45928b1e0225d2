"""A labeler for other annotators, in audits and reports."""

import math
import pickle  # nosec B403
from random import Random
from typing import Any

import numpy as np
import pytest

import other_annotators_oracle as oracle
from dhkappa import Audit, DataError, OtherAnnotators, audit, dh_kappa
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
