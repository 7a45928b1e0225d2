"""Verdicts: each code by data made for it, the numbers in the sentences, and the summary of several labelers."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import dhkappa
from dhkappa import AnnotatorComparison, ConfidenceInterval, Kappa, Verdict, dh_kappa, simulate, tally
from dhkappa.auditing import Audit
from dhkappa.stats.verdict import SHORT, judge, summarize
from dhkappa.table import Table
from exact import example

ACCURACIES = [0.85, 0.85, 0.85, 0.85]


def audited(labelers: dict[str, float], annotators: list[float] = ACCURACIES, items: int = 300, **more: Any) -> Audit:
    """Audit simulated labelers, each right as often as said."""
    drawn = dhkappa.simulate(items, labelers=labelers, annotators=annotators, rng=4)
    return dhkappa.audit(drawn.votes, dict(drawn.suggested), rng=1, progress=False, **more)


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"[-+]?\d+\.\d+", text)]


def test_better_than_annotators() -> None:
    audit = audited({"llm": 0.99}, annotators=[0.7] * 4)
    annotator_comparison, kappa = audit.annotator_comparison(), audit.kappas["llm"]
    assert annotator_comparison.low > 0
    verdict = audit.verdict("llm")
    assert (verdict.code, verdict.judged) == ("better", True)
    limits = kappa.confidence_interval(0.95)
    expected = [
        kappa.value,
        limits.low,
        limits.high,
        annotator_comparison.difference,
        annotator_comparison.low,
        annotator_comparison.high,
    ]
    assert numbers(verdict.text) == [round(abs(value), 2) for value in [*expected, kappa.fleiss]]
    assert "4 of 4 annotators" in verdict.text
    assert "above their average" in verdict.text
    assert "below" not in verdict.text


def test_on_par_with_annotators() -> None:
    audit = audited({"llm": 0.85})
    assert audit.annotator_comparison().low <= 0 <= audit.annotator_comparison().high
    verdict = audit.verdict("llm")
    assert verdict.code == "on-par"


def test_below_annotators() -> None:
    audit = audited({"llm": 0.6})
    assert audit.annotator_comparison().high < 0
    assert audit.kappas["llm"].confidence_interval().low > audit.kappas["llm"].baselines.random
    verdict = audit.verdict("llm")
    assert verdict.code == "below"
    assert "0 of 4 annotators" in verdict.text
    assert "above their average" not in verdict.text


def test_between_random_and_majority_if_annotators_are_unknown() -> None:
    drawn = dhkappa.simulate(300, labelers={"llm": 0.85}, annotators=ACCURACIES, rng=4)
    audit = dhkappa.audit([list(votes) for votes in drawn.votes.tolist()], dict(drawn.suggested), progress=False)
    kappa, verdict = audit.kappas["llm"], audit.verdict("llm")
    assert (verdict.code, verdict.judged) == ("between", True)
    share = (kappa.value - kappa.baselines.random) / (kappa.baselines.majority - kappa.baselines.random)
    assert verdict.share == share
    assert f"{share:.0%}" in verdict.text
    assert verdict.short == f"{share:.0%} of the way to majority labels"


@pytest.mark.parametrize("named", [True, False])
def test_random_labels(named: bool) -> None:
    """The comparison with random labels comes before that with annotators."""
    drawn = dhkappa.simulate(300, labelers={"dice": 1 / 3}, annotators=ACCURACIES, rng=4)
    votes = drawn.votes if named else [list(votes) for votes in drawn.votes.tolist()]
    audit = dhkappa.audit(votes, dict(drawn.suggested), progress=False)
    kappa, verdict = audit.kappas["dice"], audit.verdict("dice")
    assert kappa.confidence_interval().low <= kappa.baselines.random
    assert verdict.code == "random"
    assert numbers(verdict.text)[-1] == round(kappa.baselines.random, 2)


SPELLINGS: dict[str, tuple[list[Any], list[Any], str]] = {
    "floats as text": (["1", "2", "3"], ["1.0", "2.0", "3.0"], "'1.0' and '1'"),
    "case": (["cat", "dog", "eel"], ["Cat", "Dog", "Eel"], "'Cat' and 'cat'"),
    "floats as text beside numbers": ([1, 2, 3], ["1.0", "2.0", "3.0"], "'1.0' and 1"),
    "numbers beside floats as text": (["1.0", "2.0", "3.0"], [1, 2, 3], "1 and '1.0'"),
    "most": (["1", "2", "4"], ["1.0", "2.0", "3.0"], "'1.0' and '1'"),
    "half": (["1", "4", "5", "6"], ["1.0", "2.0"], ""),
    "one that is voted for": (["1", "2", "3"], ["1.0", "2.0", "3"], ""),
    "others": (["a", "b", "c"], ["x", "y", "z"], ""),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_labels_spelled_differently_from_the_votes_are_not_judged(case: str) -> None:
    """For example integers that pandas wrote as floats."""
    voted, labels, pair = SPELLINGS[case]
    votes = [[voted[(place + (place % 7 == turn)) % len(voted)] for turn in range(3)] for place in range(60)]
    named = [labels[place % len(labels)] for place in range(60)]
    audit = dhkappa.audit(votes, {"llm": named}, progress=False)
    verdict = audit.verdict("llm")
    if not pair:
        assert verdict.code == ("between" if "3" in labels else "random")
        return
    assert (verdict.code, verdict.judged) == ("category-variants", False)
    assert pair in verdict.text
    assert audit.summary == verdict.text
    right = [votes[place][0] for place in range(60)]
    both = dhkappa.audit(votes, {"llm": named, "rule": right}, progress=False)
    assert both.summary.startswith("rule is the only one of 2 labelers")
    assert both.summary.endswith(f"{verdict.text} {both.verdict('rule').text}")


def majority(audit_items: int = 150) -> tuple[list[list[str]], list[str]]:
    """Votes of three without a tie, different on two items of three, and their most frequent labels."""
    votes = [["x", "x", "y"] if place % 3 else ["y", "y", "y"] for place in range(audit_items)]
    return votes, [max(set(row), key=row.count) for row in votes]


def test_majority_labels_are_not_judged() -> None:
    votes, labels = majority()
    verdict = dhkappa.audit(votes, {"majority": labels}, progress=False).verdict("majority")
    assert (verdict.code, verdict.judged) == ("labels-from-votes", False)
    assert "100 items" in verdict.text


def test_labels_that_match_few_split_votes_are_judged_with_a_caution() -> None:
    """A good labeler may well match the most frequent vote on a few items."""
    votes, labels = majority(147)
    verdict = dhkappa.audit(votes, {"majority": labels}, progress=False).verdict("majority")
    assert (verdict.code, verdict.judged) == ("between", True)
    assert "made from these votes" in verdict.text


def test_ties_broken_in_any_way_are_majority_labels() -> None:
    votes = [["x", "y"], ["x", "x"], ["y", "y"]] * 100
    for tie in ("x", "y"):
        found = dhkappa.audit(votes, {"majority": [tie, "x", "y"] * 100}, progress=False)
        assert found.verdict("majority").code == "labels-from-votes"


def test_one_careless_annotator_does_not_make_the_labeler_better() -> None:
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
    assert f"but only because of annotator 4. Without annotator 4 it scores {abs(without):.2f} below." in verdict.text


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
    assert found.summary.startswith("some scores highest of 2 labelers on its own items. It is worse than all on")


def test_labels_equal_to_unanimous_votes_are_judged() -> None:
    """If all votes agree, equal labels are right, whoever made them."""
    votes = [["x", "x", "x"], ["y", "y", "y"]] * 20
    verdict = dhkappa.audit(votes, {"llm": ["x", "y"] * 20}, progress=False).verdict("llm")
    assert verdict.judged


@pytest.mark.parametrize(
    ("votes", "labels"),
    [([["x", "x"]] * 3, ["x"] * 3), ([["x", "y"]], ["x"]), ([["x"], ["y"]], ["x", "y"]), ([], [])],
    ids=["one category", "one item", "lone votes", "nothing"],
)
def test_unknown_says_why(votes: list[list[str]], labels: list[str]) -> None:
    audit = dhkappa.audit(votes, {"llm": labels}, progress=False)
    verdict = audit.verdict("llm")
    assert (verdict.code, verdict.judged) == ("undefined", False)
    reason = audit.kappas["llm"].reason or audit.kappas["llm"].confidence_interval().reason
    assert reason
    assert reason in verdict.text
    assert audit.summary == verdict.text


def test_codes_and_sentences() -> None:
    assert set(SHORT) == {
        *("better", "on-par", "below", "between", "random"),
        *("category-variants", "labels-from-votes", "undefined"),
    }
    assert Verdict("better", "text").to_dict() == {"code": "better", "text": "text"}
    for rate in (0.3, 0.6, 0.85, 0.99):
        text = audited({"llm": rate}, items=100).summary
        assert text.endswith(".")
        assert "nan" not in text.lower()


def test_the_level_of_the_audit_is_used() -> None:
    """A wider interval includes the kappa of random labels, a narrow one does not."""
    drawn = dhkappa.simulate(60, labelers={"llm": 0.45}, annotators=ACCURACIES, rng=6)
    kappa = dhkappa.dh_kappa(drawn.votes, drawn.suggested["llm"])
    assert kappa.confidence_interval(0.5).low > kappa.baselines.random > kappa.confidence_interval(0.9999).low
    codes = [
        dhkappa.audit(drawn.votes, dict(drawn.suggested), confidence_level=confidence_level, progress=False)
        .verdict("llm")
        .code
        for confidence_level in (0.5, 0.9999)
    ]
    assert codes[0] != "random"
    assert codes[1] == "random"


# Several labelers


def test_the_best_of_several_is_better_than_every_other() -> None:
    audit = audited({"rule": 0.5, "llm": 0.9})
    assert audit.summary.startswith("llm scores highest of 2 labelers and is better than rule.")
    assert audit.summary.endswith(audit.verdict("llm").text)


def test_labelers_without_a_significant_difference() -> None:
    audit = audited({"a": 0.8, "b": 0.8, "rule": 0.4})
    best = max(("a", "b"), key=lambda name: audit.kappas[name].value)
    other = "b" if best == "a" else "a"
    assert f"{best} scores highest of 3 labelers. Its difference from {other} is not significant." in audit.summary


def test_at_most_three_are_named() -> None:
    audit = audited(dict.fromkeys("abcdef", 0.8), items=60)
    named = audit.summary.partition("Its difference from ")[2].partition(" is not")[0]
    assert re.fullmatch(r"\w, \w, \w, \.\.\.", named)


def test_majority_labels_are_not_ranked() -> None:
    votes, labels = majority()
    half = [label if place % 2 else "y" for place, label in enumerate(labels)]
    audit = dhkappa.audit(votes, {"majority": labels, "rule": half}, progress=False)
    assert audit.summary.startswith(
        "rule is the only one of 2 labelers that can be judged. majority is not ranked: its"
    )


def test_none_can_be_judged() -> None:
    audit = dhkappa.audit([["x", "x"]] * 3, {"a": ["x"] * 3, "b": ["x"] * 3}, progress=False)
    assert audit.summary == f"{audit.verdict('a').text} {audit.verdict('b').text}"


def test_a_labeler_with_undefined_kappa_is_not_ranked() -> None:
    drawn = dhkappa.simulate(100, labelers={"llm": 0.9}, annotators=ACCURACIES, rng=4)
    audit = dhkappa.audit(drawn.votes, {"llm": drawn.suggested["llm"], "empty": [None] * 100}, progress=False)
    assert audit.verdict("empty").code == "undefined"
    assert math.isnan(audit.kappas["empty"].value)
    assert audit.summary.startswith("llm is the only one of 2 labelers that can be judged. llm ")


def test_two_random_labelers() -> None:
    audit = audited({"dice": 1 / 3, "coin": 1 / 3})
    assert audit.verdict("dice").code == audit.verdict("coin").code == "random"
    assert audit.summary.endswith(audit.verdict("dice").text) or audit.summary.endswith(audit.verdict("coin").text)


@pytest.mark.parametrize("labeled", [0, 1])
def test_a_labeler_with_hardly_a_label_does_not_spoil_the_summary(labeled: int) -> None:
    """The others are not compared on the few items that all three labeled."""
    drawn = dhkappa.simulate(300, labelers={"rule": 0.5, "llm": 0.95}, annotators=ACCURACIES, rng=4)
    few = [*drawn.suggested["rule"].tolist()[:labeled], *[None] * (300 - labeled)]
    audit = dhkappa.audit(drawn.votes, {**drawn.suggested, "few": few}, progress=False)
    assert audit.kappas["llm"].confidence_interval().low > audit.kappas["rule"].confidence_interval().high
    assert audit.summary.startswith("llm scores highest of 3 labelers")
    assert "few" not in audit.summary.partition("difference from")[2].partition(". ")[0]


def test_zero_has_no_sign() -> None:
    for rate in range(30, 60):
        drawn = dhkappa.simulate(80, labelers={"llm": rate / 100}, annotators=ACCURACIES, rng=rate)
        text = dhkappa.audit(drawn.votes, dict(drawn.suggested), progress=False).summary
        assert not re.search(r"-0\.00\b", text), text


def compared(difference: float, low: float, high: float, *rows: tuple[str, int, float]) -> AnnotatorComparison:
    """A comparison with annotators, given by name, items and difference."""
    columns = dict(zip(("annotator", "items", "difference"), zip(*rows, strict=True), strict=True))
    return AnnotatorComparison("x", Table(columns), difference, 0.1, low, high, 0.95, 0.5, 30, (), ())


def judged(kappa: Kappa, comparison: AnnotatorComparison | None = None, confidence_level: float = 0.95) -> Verdict:
    return judge("x", kappa.estimate, kappa.confidence_interval(confidence_level), comparison)


DRAWN = simulate(400, rng=1, accuracy=0.9, labelers={"x": 0.9})
GOOD = dh_kappa(DRAWN.votes, DRAWN.suggested["x"])
HALF = (("ann", 20, 0.1), ("bob", 20, 0.1))


@pytest.mark.parametrize(
    ("comparison", "code", "words"),
    [
        (
            compared(0.1, 0.02, 0.18, *HALF),
            "better",
            "It scores 0.10 above their average (95% CI 0.02 to 0.18 above).",
        ),
        (
            compared(-0.1, -0.2, -0.01, ("ann", 20, -0.1), ("bob", 20, -0.1)),
            "below",
            "It scores 0.10 below their average (95% CI 0.01 to 0.20 below).",
        ),
        (
            compared(0.01, -0.05, 0.07, ("ann", 20, 0.1), ("bob", 20, -0.08)),
            "on-par",
            "It scores 0.01 above their average (95% CI 0.05 below to 0.07 above).",
        ),
        (
            compared(-0.001, -0.05, 0.07, ("ann", 20, 0.1), ("bob", 20, -0.1)),
            "on-par",
            "It scores the same as their average (95% CI 0.05 below to 0.07 above).",
        ),
        # A limit of 0 is on neither side.
        (compared(0.1, 0.0, 0.2, *HALF), "on-par", "It scores 0.10 above their average (95% CI 0.00 to 0.20 above)."),
        (compared(-0.1, -0.2, 0.0, *HALF), "on-par", "0.10 below their average (95% CI 0.00 to 0.20 below)."),
        (
            compared(0.1, 0.02, 0.18, ("ann", 20, 0.2), ("bob", 20, 0.0)),
            "on-par",
            "but only because of ann. Without ann it scores 0.00 above.",
        ),
        # Without the 20 of 30 items of ann: (30 * 0.1 - 20 * 0.2) / 10.
        (
            compared(0.1, 0.02, 0.18, ("ann", 20, 0.2), ("bob", 10, -0.1)),
            "on-par",
            "0.10 above their average, but only because of ann. Without ann it scores 0.10 below.",
        ),
        (
            compared(-0.1, -0.2, -0.01, ("ann", 20, -0.3), ("bob", 20, 0.1)),
            "on-par",
            "0.10 below their average, but only because of ann. Without ann it scores 0.10 above.",
        ),
        (
            replace(compared(0.1, 0.02, 0.18, ("ann", 20, 0.1), ("bob", 0, math.nan)), matched=1.0),
            "better",
            "1 of 1 annotator.",
        ),
        (
            compared(0.1, 0.0998, 0.1002, *HALF),
            "better",
            "0.1000 above their average (95% CI 0.0998 to 0.1002",
        ),
    ],
)
def test_compared_with_annotators(comparison: AnnotatorComparison, code: str, words: str) -> None:
    verdict = judged(GOOD, comparison)
    assert verdict.code == code
    assert words in verdict.text


def test_a_comparison_without_an_interval_is_ignored() -> None:
    assert judged(GOOD, compared(math.nan, math.nan, math.nan, *HALF)).code == "between"


def test_numbers_have_as_many_digits_as_the_interval_needs() -> None:
    votes = tally(DRAWN.votes, DRAWN.suggested["x"])
    for _ in range(10):
        votes = votes + votes
    for kappa, digits in ((GOOD, 2), (dh_kappa(votes), 3)):
        low, high = kappa.confidence_interval(0.9)
        text = judged(kappa, confidence_level=0.9).text
        assert f"kappa {kappa.value:.{digits}f} (90% CI {low:.{digits}f} to {high:.{digits}f})" in text


def test_agreement_of_two_fifths_is_enough() -> None:
    """Of 20 items 14 agree, and half of all votes are a: (.7 - .5)/(1 - .5) is .4, the border itself."""
    votes = [["a", "a"]] * 7 + [["b", "b"]] * 7 + [["a", "b"]] * 6
    kappa = dh_kappa(votes, ["a"] * 7 + ["b"] * 7 + ["a", "b"] * 3)
    assert kappa.fleiss == 0.4
    assert "Fleiss" not in judged(kappa).text
    fewer = replace(kappa.estimate, fleiss=Fraction(39, 100))
    assert "Fleiss' kappa 0.39" in judge("x", fewer, kappa.confidence_interval(), None).text


def test_undefined_without_items_and_without_variance() -> None:
    for kappa in (dh_kappa([], []), dh_kappa([[1, 2]] * 3, [1] * 3)):
        verdict = judged(kappa)
        assert (verdict.code, verdict.judged) == ("undefined", False)
        assert verdict.text.endswith(".")
    assert judge("x", GOOD.estimate, ConfidenceInterval(math.nan, math.nan, 0.95, "beta"), None).text.endswith(
        "judged."
    )
    assert judged(example()).code == "random"


def test_labels_made_from_votes_need_a_hundred_split_items() -> None:
    votes, labels = [list("abc"), list("aab"), list("bbc"), list("cca")], list("aabc")
    few = judged(dh_kappa(votes * 24 + votes[:3], labels * 24 + labels[:3]))
    assert (few.code, few.judged) == ("between", True)
    assert "made from these votes" in few.text
    many = judged(dh_kappa(votes * 25, labels * 25))
    assert (many.code, many.judged) == ("labels-from-votes", False)


def test_without_room_between_random_and_majority() -> None:
    estimate = replace(GOOD.estimate)
    vars(estimate)["baselines"] = replace(estimate.baselines, majority=estimate.baselines.random)
    verdict = judge("x", estimate, GOOD.confidence_interval(), None)
    assert verdict.code == "between"
    assert math.isnan(verdict.share)
    assert verdict.text.endswith(").")


def test_an_interval_without_width_has_two_digits() -> None:
    verdict = judge("x", replace(GOOD.estimate, exact=Fraction(1, 2)), ConfidenceInterval(0.5, 0.5, 0.95, "beta"), None)
    assert "kappa 0.50 (95% CI 0.50 to 0.50)" in verdict.text


@pytest.mark.parametrize("place", [0, 1])
def test_one_other_label_shows_that_labels_are_not_made_from_the_votes(place: int) -> None:
    votes, labels = majority()
    labels[place] = "x" if labels[place] == "y" else "y"
    verdict = judged(dh_kappa(votes, labels))
    assert verdict.code == "between"
    assert "most frequent vote" not in verdict.text


MAJORITY = "labels-from-votes"
CODES = {"a": "between", "b": "better", "c": "random", "p": MAJORITY, "q": MAJORITY, "u": "undefined"}
VALUES = {"a": 0.9, "b": 0.5, "c": 0.1, "p": 0.95, "q": 0.95, "u": math.nan}
MADE = "labels equal the majority vote on every item, so they may be made from these votes."


@pytest.mark.parametrize(
    ("names", "rows", "summary"),
    [
        ("pu", (), "p. u."),
        ("ab", (("a", "b", 0.4, 0.01),), "a scores highest of 2 labelers and is better than b. a."),
        ("ab", (("b", "a", -0.4, 0.01),), "a scores highest of 2 labelers and is better than b. a."),
        (
            "ab",
            (("a", "b", 0.4, 0.06),),
            "a scores highest of 2 labelers. Its difference from b is not significant. a.",
        ),
        (
            "ab",
            (("a", "b", -0.4, 0.01),),
            "a scores highest of 2 labelers on its own items. It is worse than b on the items that all labeled. a.",
        ),
        (
            "abc",
            (("a", "b", 0.4, 0.01), ("a", "c", 0.8, 0.01)),
            "a scores highest of 3 labelers and is better than every other. a.",
        ),
        (
            "abc",
            (("a", "b", -0.4, 0.01), ("a", "c", 0.1, 0.5)),
            "a scores highest of 3 labelers on its own items. It is worse than b on the items that all labeled. "
            "Its difference from c is not significant. a.",
        ),
        ("apu", (), f"a is the only one of 3 labelers that can be judged. p is not ranked: its {MADE} a."),
        ("apq", (), f"a is the only one of 3 labelers that can be judged. p, q are not ranked: their {MADE} a."),
        (
            "abpu",
            (("a", "b", 0.4, 0.01),),
            f"a scores highest of 4 labelers and is better than b. p is not ranked: its {MADE} u cannot be judged. a.",
        ),
    ],
)
def test_summary_of_several(names: str, rows: tuple[tuple[str, str, float, float], ...], summary: str) -> None:
    verdicts = {name: Verdict(CODES[name], f"{name}.") for name in names}
    columns = ("labeler", "other", "difference", "pvalue_holm")
    differences = Table({column: [row[place] for row in rows] for place, column in enumerate(columns)})
    assert summarize(verdicts, VALUES, differences, 0.95) == summary


def test_summary_of_one() -> None:
    assert summarize({"a": Verdict("between", "a.")}, {"a": 0.9}, None, 0.95) == "a."
