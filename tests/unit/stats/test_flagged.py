"""Verdicts and gates with and without the annotators whose votes differ from the rest."""

import json
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa.stats.grades import GRADES, lower_code

NAMES = ("eve", "ada", "ben", "cy", "dan")
ORDER = ["better", "on-par", "slightly-below", "not-enough-data", "below", "clearly-below", "no-better-than-random"]


def five(eve: float = 0.4, labeler: float = 0.75, items: int = 600, seed: int = 3) -> Any:
    """Simulate four annotators who are right on 85% of the items, eve, and a labeler."""
    accuracies = [eve, *[0.85] * 4]
    return dhkappa.simulate(items, labelers={"llm": labeler}, annotators=accuracies, categories=list("abcd"), rng=seed)


def dataset(data: Any, keep: tuple[str, ...] = NAMES, **options: Any) -> dhkappa.Dataset:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: data.votes[:, place] for place, name in enumerate(NAMES) if name in keep})
    return dhkappa.Dataset(frame.assign(llm=data.suggested["llm"]), suggested="llm", annotators=list(keep), **options)


def audited(data: Any, keep: tuple[str, ...] = NAMES, **options: Any) -> dhkappa.Audit:
    found: dhkappa.Audit = dhkappa.audit(dataset(data, keep, **options), progress=False)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_careless_annotator_does_not_raise_a_grade(seed: int) -> None:
    data = five(seed=seed)
    audit, alone = audited(data), audited(data, NAMES[1:])
    found, without = audit.verdict(), alone.verdict()
    assert found.flagged == ("eve",)
    assert found.left_out
    assert found.with_all
    assert found.without
    assert (found.code, found.share, found.low, found.high) == (without.code, without.share, without.low, without.high)
    assert found.code in ("slightly-below", "below", "clearly-below")
    assert found.with_all.code == "on-par"
    assert found.with_all.share == audit.annotator_baseline().share_kept
    assert found.without.share == without.share
    assert "eve" in found.headline
    assert audit.next_step().code == "check-annotators"


def test_scores_without_flagged_annotators_are_those_of_an_audit_without_them() -> None:
    """Also with items of few votes, of which some have too few without the flagged annotators."""
    rng = np.random.default_rng(1)
    data = five(eve=0.25, seed=1)
    votes = data.votes.astype(object)
    votes[rng.random(votes.shape) < 0.45] = None
    audit = dhkappa.audit(votes, dict(data.suggested), progress=False)
    without = dhkappa.audit(votes[:, 1:], dict(data.suggested), progress=False).verdict()
    found = audit.verdict().without
    assert found
    assert (found.code, found.share, found.low, found.high) == (without.code, without.share, without.low, without.high)


def test_leaving_out_annotators_never_raises_a_grade() -> None:
    """Here the one who differs from the rest is right: without her, the labeler would look better."""
    rng = np.random.default_rng(2)
    truth = rng.choice(list("abc"), 500)
    habit = np.where(rng.random(500) < 0.6, truth, rng.choice(list("abc"), 500))  # four annotators share their errors
    votes = np.column_stack([truth, *[np.where(rng.random(500) < 0.9, habit, truth) for _ in range(4)]])
    audit = dhkappa.audit(votes, {"llm": np.where(rng.random(500) < 0.7, habit, truth)}, progress=False)
    found = audit.verdict()
    assert found.flagged == (0,)
    assert found.with_all
    assert found.without
    assert ORDER.index(found.code) >= ORDER.index(found.with_all.code)
    assert ORDER.index(found.code) >= ORDER.index(found.without.code)


def test_nobody_is_left_out_if_nobody_is_flagged() -> None:
    found = audited(five(eve=0.85)).verdict()
    assert (found.flagged, found.left_out, found.with_all, found.without) == ((), False, None, None)
    assert not found.depends_on_flagged
    assert found.to_dict()["flagged"] is None


def test_the_same_grade_without_them_is_said_in_the_details() -> None:
    audit = audited(five(labeler=0.5))
    found = audit.verdict()
    assert found.with_all
    assert found.without
    assert found.code == found.with_all.code == found.without.code == "clearly-below"
    assert (found.left_out, found.depends_on_flagged) == (False, False)
    assert "eve" not in found.headline
    assert "eve" in found.details
    assert audit.next_step().code != "check-annotators"


def test_second_score_as_json() -> None:
    audit = audited(five())
    found = json.loads(json.dumps(audit.to_dict()))["labelers"]["llm"]["verdict"]
    flagged = found["flagged"]
    assert (flagged["annotators"], flagged["left_out"]) == (["eve"], True)
    assert found["low"] == flagged["without"]["low"] != flagged["with_all"]["low"]
    assert (flagged["with_all"]["code"], flagged["without"]["code"]) == ("on-par", found["code"])


def test_gate_passes_only_if_it_passes_both_ways() -> None:
    audit = audited(five())
    found = audit.gate("annotators")
    assert audit.annotator_baseline().decide() == "pass"
    assert found.outcome == "undecided"
    assert "eve" in (found.rows[0].reason or "")
    assert audit.gate("annotators", margin=0.01).outcome == "undecided"
    assert audit.gate("annotators", keep=0.7).outcome == "pass"  # 0.79 without eve
    assert audited(five(eve=0.85, labeler=0.9)).gate("annotators").outcome == "pass"
    assert audited(five(labeler=0.95)).gate("annotators").outcome == "pass"
    assert audited(five(labeler=0.5)).gate("annotators").outcome == "fail"
    assert audit.gate(0.2).outcome == "pass"  # kappa itself is not compared with annotators


def test_several_annotators_are_counted_and_three_of_them_named() -> None:
    """Thirty annotators of whom four guess: the labeler is exactly as good as the others."""
    rng = np.random.default_rng(5)
    truth, guess = rng.choice(list("abcd"), 1000), rng.choice(list("abcd"), (1000, 30))
    right = rng.random((1000, 30)) < np.array([0.0] * 4 + [0.8] * 26)
    votes = np.where(right, truth[:, None], guess).astype(object)
    for row in votes:
        row[rng.permutation(30)[4:]] = None
    label = np.where(rng.random(1000) < 0.8, truth, guess[:, 0])
    audit = dhkappa.audit(votes, {"llm": label}, progress=False)
    found = audit.verdict()
    assert set(found.flagged) == {0, 1, 2, 3}
    assert found.with_all
    assert found.with_all.code == "better"
    assert (found.code, found.left_out) == ("on-par", True)
    assert "4 annotators" in found.headline
    assert "..." in found.headline


def test_no_items_are_left_without_them() -> None:
    """Two annotators: without one of them, no item has two votes, so that there is no grade."""
    rng = np.random.default_rng(4)
    votes = np.column_stack([rng.choice(list("ab"), 300, p=[0.7, 0.3]) for _ in range(2)])
    found = dhkappa.audit(votes, {"llm": rng.choice(list("ab"), 300)}, progress=False).verdict()
    assert found.code in ("not-enough-data", "no-better-than-random")


def test_annotators_who_are_unknown_cannot_be_left_out() -> None:
    data = five()
    votes = [list(row) for row in data.votes]
    assert dhkappa.audit(votes, dict(data.suggested), progress=False).verdict().flagged == ()


def test_weighted_samples_are_judged_without_them_too() -> None:
    data = five(eve=0.3)
    weight = np.linspace(0.5, 1.5, 600)
    found = dhkappa.audit(data.votes, dict(data.suggested), sample_weight=weight, progress=False).verdict()
    assert found.left_out
    without = dhkappa.audit(data.votes[:, 1:], dict(data.suggested), sample_weight=weight, progress=False).verdict()
    assert (found.code, found.share) == (without.code, without.share)


def test_lower_code() -> None:
    assert sorted(ORDER) == sorted([code for code in GRADES if code not in ("labels-from-votes", "data-problem")])
    for place, code in enumerate(ORDER):
        for other in ORDER[place:]:
            assert lower_code(code, other) == lower_code(other, code) == other
