"""The verdict: each code by data made for it, the sentences, and the word on several labelers."""

import math
import re
from typing import Any

import pytest

import dhkappa
from dhkappa.auditing import Audit
from dhkappa.stats.verdict import WORDS, Verdict

PEOPLE = [0.85, 0.85, 0.85, 0.85]


def audited(labelers: dict[str, float], annotators: list[float] = PEOPLE, items: int = 300, **more: Any) -> Audit:
    """Audit simulated labelers, each right as often as said."""
    drawn = dhkappa.simulate(items, labelers=labelers, annotators=annotators, rng=4)
    return dhkappa.audit(drawn.votes, dict(drawn.suggested), rng=1, progress=False, **more)


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"[-+]?\d+\.\d+", text)]


def test_above_a_person() -> None:
    audit = audited({"llm": 0.99}, annotators=[0.7] * 4)
    annotator_comparison, kappa = audit.annotator_comparison(), audit.kappas["llm"]
    assert annotator_comparison.low > 0
    verdict = audit.verdict("llm")
    assert (verdict.code, verdict.short, verdict.judged) == ("better", "more than a person", True)
    assert verdict.text.startswith("llm can be trusted more than a person: kappa ")
    limits = kappa.confidence_interval(0.95)
    expected = [
        kappa.value,
        limits.low,
        limits.high,
        annotator_comparison.difference,
        annotator_comparison.low,
        annotator_comparison.high,
    ]
    said, _, hardly = verdict.text.partition(" Annotators hardly agree")
    assert numbers(said) == [round(value, 2) for value in expected]
    assert said.endswith("as judged by the others (it matches or beats 4 of 4).")
    assert numbers(hardly) == [round(kappa.fleiss, 2)]


def test_level_with_people() -> None:
    audit = audited({"llm": 0.85})
    assert audit.annotator_comparison().low <= 0 <= audit.annotator_comparison().high
    verdict = audit.verdict("llm")
    assert (verdict.code, verdict.short) == ("on-par", "about as far as a person")
    assert "llm can be trusted about as far as a person" in verdict.text


def test_short_of_a_person() -> None:
    audit = audited({"llm": 0.6})
    assert audit.annotator_comparison().high < 0
    assert audit.kappas["llm"].confidence_interval().low > audit.kappas["llm"].baselines.random
    verdict = audit.verdict("llm")
    assert (verdict.code, verdict.short) == ("below", "less than a person")
    assert "(it matches or beats 0 of 4)" in verdict.text


def test_between_floor_and_ceiling_where_nobody_is_named() -> None:
    drawn = dhkappa.simulate(300, labelers={"llm": 0.85}, annotators=PEOPLE, rng=4)
    audit = dhkappa.audit([list(votes) for votes in drawn.votes.tolist()], dict(drawn.suggested), progress=False)
    kappa, verdict = audit.kappas["llm"], audit.verdict("llm")
    assert (verdict.code, verdict.judged) == ("between", True)
    share = (kappa.value - kappa.baselines.random) / (kappa.baselines.majority - kappa.baselines.random)
    assert f"{share:.0%} of the way from labels dealt out at random" in verdict.text


@pytest.mark.parametrize("named", [True, False])
def test_random_labels_cannot_be_trusted(named: bool) -> None:
    """Being no worse than random comes before any comparison with people."""
    drawn = dhkappa.simulate(300, labelers={"dice": 1 / 3}, annotators=PEOPLE, rng=4)
    votes = drawn.votes if named else [list(votes) for votes in drawn.votes.tolist()]
    audit = dhkappa.audit(votes, dict(drawn.suggested), progress=False)
    kappa, verdict = audit.kappas["dice"], audit.verdict("dice")
    assert kappa.confidence_interval().low <= kappa.baselines.random
    assert (verdict.code, verdict.short) == ("random", "not shown above random")
    assert verdict.text.startswith("dice cannot be trusted on this evidence")
    assert numbers(verdict.text)[-1] == round(kappa.baselines.random, 2)


SPELLINGS: dict[str, tuple[list[Any], list[Any], str]] = {
    "floats as text": (["1", "2", "3"], ["1.0", "2.0", "3.0"], "'1.0' beside '1'"),
    "case": (["cat", "dog", "eel"], ["Cat", "Dog", "Eel"], "'Cat' beside 'cat'"),
    "floats as text beside numbers": ([1, 2, 3], ["1.0", "2.0", "3.0"], "'1.0' beside 1"),
    "numbers beside floats as text": (["1.0", "2.0", "3.0"], [1, 2, 3], "1 beside '1.0'"),
    "most": (["1", "2", "4"], ["1.0", "2.0", "3.0"], "'1.0' beside '1'"),
    "half": (["1", "4", "5", "6"], ["1.0", "2.0"], ""),
    "one that is voted for": (["1", "2", "3"], ["1.0", "2.0", "3"], ""),
    "others": (["a", "b", "c"], ["x", "y", "z"], ""),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_labels_in_another_spelling_than_the_votes_are_not_judged(case: str) -> None:
    """As where pandas wrote whole numbers as floats: the cause comes first, not a kappa."""
    voted, labels, pair = SPELLINGS[case]
    votes = [[voted[(place + (place % 7 == turn)) % len(voted)] for turn in range(3)] for place in range(60)]
    named = [labels[place % len(labels)] for place in range(60)]
    audit = dhkappa.audit(votes, {"llm": named}, progress=False)
    verdict = audit.verdict("llm")
    if not pair:
        assert verdict.code == ("between" if "3" in labels else "random")
        return
    assert (verdict.code, verdict.judged, verdict.short) == ("category-variants", False, "not as it is spelled")
    assert (
        verdict.text
        == audit.summary
        == (
            "llm cannot be judged: none of its labels was ever voted for, as if they were spelled otherwise than the "
            f"votes ({pair}): spell both alike."
        )
    )
    right = [votes[place][0] for place in range(60)]
    both = dhkappa.audit(votes, {"llm": named, "rule": right}, progress=False)
    assert both.summary == (
        f"Of 2 labelers, rule scores best and is the only one that can be judged. {verdict.text} "
        f"{both.verdict('rule').text}"
    )


def majority(audit_items: int = 150) -> tuple[list[list[str]], list[str]]:
    """Votes of three without a tie, different on two items of three, and their most frequent labels."""
    votes = [["x", "x", "y"] if place % 3 else ["y", "y", "y"] for place in range(audit_items)]
    return votes, [max(set(row), key=row.count) for row in votes]


def test_the_panels_own_labels_are_not_judged() -> None:
    votes, labels = majority()
    verdict = dhkappa.audit(votes, {"majority": labels}, progress=False)._verdicts["majority"]
    assert (verdict.code, verdict.judged, verdict.short) == ("panel", False, "not by these votes")
    assert "on every item they are a most frequent vote, also on the 100 where votes differ" in verdict.text


def test_labels_that_match_few_split_votes_are_judged_with_a_caution() -> None:
    """A good labeler may well match the most frequent vote on a few items."""
    votes, labels = majority(147)
    verdict = dhkappa.audit(votes, {"majority": labels}, progress=False)._verdicts["majority"]
    assert (verdict.code, verdict.judged) == ("between", True)
    assert verdict.text.endswith("if they were made from these votes, this says nothing.")


def test_ties_broken_in_any_way_are_the_panels_own() -> None:
    votes = [["x", "y"], ["x", "x"], ["y", "y"]] * 100
    for tie in ("x", "y"):
        found = dhkappa.audit(votes, {"majority": [tie, "x", "y"] * 100}, progress=False)
        assert found.verdict("majority").code == "panel"


def test_one_careless_person_does_not_make_the_labeler_better_than_people() -> None:
    drawn = dhkappa.simulate(600, labelers={"llm": 0.85}, annotators=[0.9, 0.9, 0.9, 0.9, 0.4], rng=4)
    found = dhkappa.audit(drawn.votes, drawn.suggested, progress=False)
    annotator_comparison = found.annotator_comparison()
    assert annotator_comparison.low > 0
    rows = annotator_comparison.table.to_dicts()
    others = [row for row in rows if row["annotator"] != 4]
    without = sum(row["difference"] * row["items"] for row in others) / sum(row["items"] for row in others)
    assert without < 0
    verdict = found.verdict("llm")
    assert verdict.code == "on-par"
    assert verdict.text.split("; but ")[1].startswith(f"without 4 it would be {without:+.2f}.")


def test_a_labeler_that_is_worse_on_the_same_items_is_not_called_best_without_a_word() -> None:
    """One labels only items that are easy, and is worse than the other on these."""
    easy = [["x", "x", "x"] if place % 2 else ["y", "y", "y"] for place in range(300)]
    hard = [["x", "x", "y"] if place % 2 else ["y", "y", "x"] for place in range(300)]
    truth = ["x" if place % 2 else "y" for place in range(300)]
    some = [label if place % 10 else ("y" if label == "x" else "x") for place, label in enumerate(truth)]
    few = [label if place % 25 else ("y" if label == "x" else "x") for place, label in enumerate(truth)]
    labels = {"some": [*some, *[None] * 300], "all": [*truth, *few]}
    found = dhkappa.audit([*easy, *hard], labels, progress=False)
    assert found.kappas["some"].value > found.kappas["all"].value
    assert found.summary.startswith(
        "Of 2 labelers, some scores best on its own items, but is worse than all on the items that all labeled."
    )


def test_a_unanimous_panel_is_judged() -> None:
    """Where all agree, labels that agree too are right, whoever made them."""
    votes = [["x", "x", "x"], ["y", "y", "y"]] * 20
    verdict = dhkappa.audit(votes, {"llm": ["x", "y"] * 20}, progress=False)._verdicts["llm"]
    assert verdict.code != "panel"


@pytest.mark.parametrize(
    ("votes", "labels"),
    [([["x", "x"]] * 3, ["x"] * 3), ([["x", "y"]], ["x"]), ([["x"], ["y"]], ["x", "y"]), ([], [])],
    ids=["one category", "one item", "lone votes", "nothing"],
)
def test_unknown_says_why(votes: list[list[str]], labels: list[str]) -> None:
    audit = dhkappa.audit(votes, {"llm": labels}, progress=False)
    verdict = audit.verdict("llm")
    assert (verdict.code, verdict.judged, verdict.short) == ("undefined", False, "not known")
    reason = audit.kappas["llm"].reason or audit.kappas["llm"].confidence_interval().reason
    assert reason
    assert verdict.text == f"llm cannot be judged: {reason.rstrip('.')}."
    assert audit.summary == verdict.text


def test_every_code_has_words_and_one_sentence_ends_in_a_stop() -> None:
    assert set(WORDS) == {"better", "on-par", "below", "between", "random", "category-variants", "panel", "undefined"}
    assert Verdict("better", "text").to_dict() == {"code": "better", "text": "text"}
    for rate in (0.3, 0.6, 0.85, 0.99):
        text = audited({"llm": rate}, items=100).verdict
        assert text.endswith(".")
        assert "nan" not in text.lower()


def test_the_level_of_the_audit_is_used() -> None:
    """A wider interval reaches down to the floor where a narrow one does not."""
    drawn = dhkappa.simulate(60, labelers={"llm": 0.45}, annotators=PEOPLE, rng=6)
    kappa = dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"])
    assert kappa.confidence_interval(0.5).low > kappa.baselines.random > kappa.confidence_interval(0.9999).low
    codes = [
        dhkappa.audit(drawn.votes, dict(drawn.suggested), confidence_level=confidence_level, progress=False)
        .verdicts["llm"]
        .code
        for confidence_level in (0.5, 0.9999)
    ]
    assert codes[0] != "random"
    assert codes[1] == "random"


# Several labelers


def test_the_best_of_several_is_better_than_every_other() -> None:
    audit = audited({"rule": 0.5, "llm": 0.9})
    assert (
        audit.summary == "Of 2 labelers, llm scores best and is better than every other. " + audit.verdict("llm").text
    )


def test_labelers_that_cannot_be_told_apart() -> None:
    audit = audited({"a": 0.8, "b": 0.8, "rule": 0.4})
    best = max(("a", "b"), key=lambda name: audit.kappas[name].value)
    other = "b" if best == "a" else "a"
    assert audit.summary.startswith(f"Of 3 labelers, {best} scores best and cannot be told apart from {other}. {best} ")


def test_at_most_three_are_named() -> None:
    audit = audited(dict.fromkeys("abcdef", 0.8), items=60)
    told = audit.summary.partition("cannot be told apart from ")[2].partition(". ")[0]
    assert re.fullmatch(r"\w, \w, \w, \.\.\.", told)


def test_the_panels_own_labels_are_left_aside() -> None:
    votes, labels = majority()
    half = [label if place % 2 else "y" for place, label in enumerate(labels)]
    audit = dhkappa.audit(votes, {"majority": labels, "rule": half}, progress=False)
    assert audit.summary.startswith(
        "Of 2 labelers, leaving aside majority, whose labels are most frequent votes on every item, rule scores best "
        "and is the only one that can be judged. rule "
    )


def test_none_can_be_judged() -> None:
    audit = dhkappa.audit([["x", "x"]] * 3, {"a": ["x"] * 3, "b": ["x"] * 3}, progress=False)
    assert audit.summary == f"{audit.verdict('a').text} {audit.verdict('b').text}"


def test_a_labeler_without_a_defined_kappa_is_no_rival() -> None:
    drawn = dhkappa.simulate(100, labelers={"llm": 0.9}, annotators=PEOPLE, rng=4)
    audit = dhkappa.audit(drawn.votes, {"llm": drawn.suggested["llm"], "empty": [None] * 100}, progress=False)
    assert audit.verdict("empty").code == "undefined"
    assert math.isnan(audit.kappas["empty"].value)
    assert audit.summary.startswith("Of 2 labelers, llm scores best and is the only one that can be judged. llm ")


def test_the_worst_labels_score_best_of_bad_ones() -> None:
    """Two labelers that are no better than random: the answer says so, whoever comes first."""
    audit = audited({"dice": 1 / 3, "coin": 1 / 3})
    assert "cannot be trusted on this evidence" in audit.summary


@pytest.mark.parametrize("labeled", [0, 1])
def test_a_labeler_with_hardly_a_label_does_not_spoil_the_answer(labeled: int) -> None:
    """The others are not compared on the few items that all three have."""
    drawn = dhkappa.simulate(300, labelers={"rule": 0.5, "llm": 0.95}, annotators=PEOPLE, rng=4)
    few = [*drawn.suggested["rule"].tolist()[:labeled], *[None] * (300 - labeled)]
    audit = dhkappa.audit(drawn.votes, {**drawn.suggested, "few": few}, progress=False)
    assert audit.kappas["llm"].confidence_interval().low > audit.kappas["rule"].confidence_interval().high
    assert audit.summary.startswith("Of 3 labelers, llm scores best")
    assert "few" not in audit.summary.partition("told apart from")[2].partition(". ")[0]
    assert [chapter.name for chapter in audit.story(1).chapters] == ["llm", "rule", "few"]


def test_zero_has_no_sign() -> None:
    for rate in range(30, 60):
        drawn = dhkappa.simulate(80, labelers={"llm": rate / 100}, annotators=PEOPLE, rng=rate)
        text = dhkappa.audit(drawn.votes, dict(drawn.suggested), progress=False).verdict
        assert not re.search(r"-0\.00\b", text), text
