"""Verdicts: each grade by data made for it, what comes before a grade, and the summary of several labelers."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa import Verdict
from dhkappa.auditing import Audit
from dhkappa.cli.demo import write_demo
from dhkappa.errors import Problem
from dhkappa.stats import verdict as verdict_module
from dhkappa.stats.annotator_baseline import AnnotatorBaseline
from dhkappa.stats.grades import GRADES, digits_of
from dhkappa.stats.intervals import decided_by
from dhkappa.stats.verdict import groups_of, judge, summarize
from dhkappa.table import Table

ACCURACIES = [0.85, 0.85, 0.85, 0.85]


def summary_of(*given: Any) -> str:
    """Return headline and details as one text."""
    return " ".join(filter(None, summarize(*given)))


def audited(labelers: dict[str, float], annotators: list[float] = ACCURACIES, items: int = 600, **more: Any) -> Audit:
    """Audit simulated labelers, each right as often as said."""
    drawn = dhkappa.simulate(items, labelers=labelers, annotators=annotators, rng=4)
    found: Audit = dhkappa.audit(drawn.votes, dict(drawn.suggested), rng=1, progress=False, **more)
    return found


def verdict_of(audit: Audit, problems: tuple[Problem, ...] = (), **changed: Any) -> Verdict:
    """Judge the only labeler of an audit, with problems, and with some attributes of the baseline changed."""
    [name] = audit.labelers
    interval, baseline = audit.kappas[name].confidence_interval(), audit.annotator_baseline()
    compared = audit.annotator_comparison()
    return judge(name, audit.kappas[name].estimate, interval, replace(baseline, **changed), compared, problems)


@pytest.mark.parametrize(
    ("accuracy", "annotators", "code", "short"),
    [
        (0.99, [0.8] * 4, "better", GRADES["better"]),
        (0.85, ACCURACIES, "on-par", GRADES["on-par"]),
        (0.8, ACCURACIES, "slightly-below", GRADES["slightly-below"]),
        (0.65, ACCURACIES, "clearly-below", GRADES["clearly-below"]),
        (0.5, ACCURACIES, "clearly-below", "far worse than a typical annotator"),
        (1 / 3, ACCURACIES, "no-better-than-random", GRADES["no-better-than-random"]),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_grade(accuracy: float, annotators: list[float], code: str, short: str, named: bool) -> None:
    """The grade needs no identities of annotators: lists of votes have none."""
    drawn = dhkappa.simulate(2_000, labelers={"llm": accuracy}, annotators=annotators, rng=4)
    votes = drawn.votes if named else [list(row) for row in drawn.votes.tolist()]
    audit = dhkappa.audit(votes, dict(drawn.suggested), rng=1, progress=False)
    verdict = audit.verdict()
    assert (verdict.code, verdict.short, verdict.labeler) == (code, short, "llm")
    assert verdict.judged
    assert verdict.ranked == (code != "no-better-than-random")
    assert audit.summary == verdict.text == f"{verdict.headline} {verdict.details}"
    assert verdict.headline.startswith(f"llm is {short}")
    assert verdict.headline.count(".") == 1 + verdict.headline.count("0.")  # one sentence
    kappa = audit.kappas["llm"]
    for value in (kappa.value, *kappa.confidence_interval()):
        assert f"{value:.2f}" in verdict.details
    if code != "no-better-than-random":
        baseline = audit.annotator_baseline()
        shares = baseline.share_kept, baseline.share_low, baseline.share_high
        assert (verdict.share, verdict.low, verdict.high) == shares
        score, low, high = (f"{100 * share:.0f}" for share in shares)
        scale = "on a scale from 0 (random labels) to 100 (a typical annotator)"
        assert f"it scores {score} (95% CI {low} to {high}) {scale}." in verdict.headline
        assert f"that of a typical annotator is {baseline.value:.2f}" in verdict.details
    assert ("Compared one by one, " in verdict.details) == (named and code != "no-better-than-random")


@pytest.mark.parametrize(
    ("low", "share", "high", "code"),
    [
        (1.01, 1.2, 1.4, "better"),
        (1.0, 1.2, 1.4, "on-par"),
        (0.8, 0.9, 1.0, "on-par"),
        (0.8, 0.9, 0.999, "slightly-below"),
        (0.6, 0.75, 0.9, "below"),
        (0.6, 0.7, 0.8, "below"),
        (0.6, 0.7, 0.799, "clearly-below"),
        (0.3, 0.4, 0.499, "clearly-below"),
        (0.79, 0.9, 1.0, "not-enough-data"),
        (0.5, 1.2, 1.9, "not-enough-data"),
    ],
)
def test_grade_is_what_the_limits_support(low: float, share: float, high: float, code: str) -> None:
    audit = audited({"llm": 0.99}, annotators=[0.7] * 4)
    verdict = verdict_of(audit, share_low=low, share_kept=share, share_high=high)
    assert verdict.code == code
    if code.endswith("below"):
        assert ("perhaps only slightly, perhaps much" in verdict.headline) == (code == "below")
    if code == "clearly-below":
        assert verdict.short.startswith("far" if high < 0.5 else "clearly")


def test_more_items_would_decide() -> None:
    """The interval has to be narrower by a factor of 2, or 2.86 for 80% of samples: 8.2 times the items."""
    audit = audited({"llm": 0.99}, annotators=[0.8] * 4)
    verdict = verdict_of(audit, share_low=0.7, share_kept=0.9, share_high=1.1, n_items=100)
    assert (
        "may score anything from 70 to 110. Votes on about 720 more items would probably settle it." in verdict.headline
    )
    assert "decide" not in verdict_of(audit, share_low=0.7, share_kept=0.801, share_high=1.1).text


def test_a_difference_that_rounds_to_0_is_no_difference() -> None:
    audit = audited({"llm": 0.99}, annotators=[0.7] * 4)
    for low, high in ((0.991, 0.999), (1.001, 1.009)):
        verdict = verdict_of(audit, share_low=low, share_kept=(low + high) / 2, share_high=high, difference=0.004)
        assert verdict.code == "on-par"
        verdict = verdict_of(audit, share_low=low, share_kept=(low + high) / 2, share_high=high, difference=-0.006)
        assert verdict.code != "on-par"


def test_few_items_are_not_enough_data() -> None:
    audit = audited({"llm": 0.95}, items=19)
    verdict = audit.verdict()
    assert verdict.code == "not-enough-data"
    assert not verdict.judged
    assert "19" in verdict.text
    assert audited({"llm": 0.95}, items=400).verdict().code != "not-enough-data"


def test_few_items_are_not_called_random() -> None:
    audit = audited({"llm": 1 / 3}, items=15)
    verdict = audit.verdict()
    assert (verdict.code, verdict.ranked) == ("not-enough-data", False)
    assert "cannot tell it from random labels" in verdict.headline


def test_few_weighted_items_are_not_called_random() -> None:
    """A weighted sample has no baseline from counts; its comparison with annotators cannot tell, too."""
    drawn = dhkappa.simulate(30, labelers={"llm": 0.5}, annotators=[0.7] * 3, rng=4)
    for weights in (None, np.resize([1.0, 1.2], 30)):
        found = dhkappa.audit(drawn.votes, drawn.suggested, sample_weight=weights, progress=False)
        assert found.verdict().code == "not-enough-data"


def test_undefined_kappa_is_not_judged() -> None:
    audit = dhkappa.audit([["x", "x"]] * 30, {"llm": ["x"] * 30}, progress=False)
    verdict = audit.verdict()
    assert (verdict.code, verdict.ranked, verdict.judged) == ("not-enough-data", False, False)
    assert str(audit.kappas["llm"].reason) in verdict.text


def test_error_replaces_the_verdict() -> None:
    audit = audited({"llm": 0.99}, annotators=[0.7] * 4)
    problem = Problem("labels-not-in-votes", "error", "Its labels are codes (1, 2), the votes are names (a, b).")
    verdict = verdict_of(audit, (problem,))
    assert (verdict.code, verdict.judged, verdict.ranked) == ("data-problem", False, False)
    assert verdict.text == "Cannot judge llm: its labels are codes (1, 2), the votes are names (a, b)."
    named = replace(problem, message="Ada voted twice.")
    assert verdict_of(audit, (named,)).text == "Cannot judge llm: Ada voted twice."
    for harmless in (
        replace(problem, severity="warning"),
        replace(problem, accepted=True),
        replace(problem, labelers=("rule",)),
    ):
        assert verdict_of(audit, (harmless,)).code == "better"


def test_labels_from_votes_are_not_judged() -> None:
    audit = audited({"llm": 0.85})
    problem = Problem("labels-from-votes", "warning", "Its labels differ from the majority on 1 of 400 items.")
    verdict = verdict_of(audit, (problem,))
    assert (verdict.code, verdict.judged, verdict.ranked) == ("labels-from-votes", False, False)
    assert f"Kappa is {audit.kappas['llm'].value:.2f}" in verdict.details
    assert verdict_of(audit, (replace(problem, accepted=True),)).code == "on-par"


def test_copy_of_an_annotator_is_not_judged() -> None:
    audit = audited({"llm": 0.99}, annotators=[0.7] * 4)
    assert audit.verdict().code == "better"
    text = "The labels are those of ada."
    problem = Problem("labeler-equals-annotator", "warning", text, ("ada",), labelers=("llm",))
    verdict = verdict_of(audit, (problem,))
    assert (verdict.code, verdict.short) == ("labels-from-votes", "may be one of the annotators")
    assert verdict.headline == "These votes cannot judge llm: it has nearly the same labels as annotator ada."
    assert not verdict.ranked
    assert not verdict.more_items


def test_copy_of_an_annotator_has_no_rank() -> None:
    drawn = dhkappa.simulate(300, labelers={"llm": 0.8}, annotators=[0.85] * 4, rng=2)
    labels = dict(drawn.suggested) | {"copy": drawn.votes[:, 1]}
    audit = dhkappa.audit(drawn.votes, labels, rng=1, progress=False)
    assert audit.kappas["copy"].value > audit.kappas["llm"].value
    assert audit.groups == [["llm"]]
    assert audit.ranking == ["llm", "copy"]
    assert audit.summary.startswith("Only llm can be judged. llm is ")
    assert "copy: may be one of the annotators." in audit.summary


def majority(votes: Any, categories: list[str]) -> Any:
    """Return the most frequent vote of each item, the first category of ties."""
    counts = np.stack([(votes == label).sum(axis=1) for label in categories])
    return np.array(categories)[counts.argmax(axis=0)]


@pytest.mark.parametrize("altered", [0.01, 0.03])
def test_majority_with_altered_labels_is_not_called_better(altered: float) -> None:
    """The votes say nothing about labels that follow them; whether a rule finds that is another matter."""
    drawn = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=[0.75] * 5, rng=7)
    labels, rng = majority(drawn.votes, ["a", "b", "c"]), np.random.default_rng(1)
    labels[rng.random(300) < altered] = "a"
    audit = dhkappa.audit(drawn.votes, labels, allow=["labels-from-votes"], rng=1, progress=False)
    verdict = audit.verdict()
    assert verdict.low > 1
    assert (verdict.code, verdict.short) == ("on-par", "on par with a typical annotator")
    assert "(a typical annotator), but its labels are nearly always the most frequent vote, as if" in verdict.headline
    assert re.search(r"are the most frequent vote on 9\d% of the \d+ items where votes differ\.", verdict.details)


def test_altered_copy_of_an_annotator_is_not_called_better() -> None:
    """Two categories and annotators who agree little: no rule is sure that the labels are a copy."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 400)
    votes = np.array([np.where(rng.random(400) < 0.65, truth, 1 - truth) for _ in range(3)]).T
    labels = np.where(np.arange(400) % 20 == 0, 1 - votes[:, 0], votes[:, 0])
    allow = ["labeler-equals-annotator", "labels-from-votes"]
    verdict = dhkappa.audit(votes, labels, allow=allow, rng=1, progress=False).verdict()
    assert verdict.code != "better"


def test_annotators_no_better_than_random_give_no_grade() -> None:
    """One of three annotators uses other codes: the audit agrees with the gate that there is no typical annotator."""
    drawn = dhkappa.simulate(300, categories=list("abcde"), labelers={"llm": 0.6}, annotators=[0.85] * 3, rng=9)
    votes = drawn.votes.astype(object)
    votes[:, 0] = [{"a": "b", "b": "c", "c": "d", "d": "e", "e": "a"}[vote] for vote in votes[:, 0]]
    audit = dhkappa.audit(votes, dict(drawn.suggested), rng=1, progress=False)
    assert math.isnan(audit.annotator_baseline().share_low)
    assert audit.gate("annotators").outcome == "undecided"
    verdict = verdict_of(audit)
    assert verdict.code == "not-enough-data"
    assert verdict.headline == "The annotators agree too little with each other to judge llm."
    whole = audit.verdict().with_all
    assert whole
    assert whole.code == "not-enough-data"
    assert (audit.verdict().code, audit.verdict().flagged) == ("clearly-below", (0,))  # from the votes of the others


def test_wide_limits_and_low_agreement_ask_for_better_guidelines() -> None:
    verdict = audited({"llm": 0.7}, annotators=[0.6] * 4, items=100).verdict()
    assert verdict.code == "not-enough-data"
    assert verdict.headline == "The annotators agree too little with each other to judge llm."
    assert verdict.details.endswith("Improve the guidelines before you collect more votes.")
    assert "more item" not in verdict.text
    assert not verdict.more_items
    few = audited({"llm": 0.7}, annotators=[0.5] * 4, items=15).verdict()
    assert few.code == "not-enough-data"
    assert few.details.endswith("Check the guidelines before you collect more votes.")


@pytest.mark.parametrize(
    ("low", "share", "high", "text"),
    [
        (1.002, 1.05, 1.1, "105.0 (95% CI 100.2 to 110.0)"),
        (0.83, 0.9, 0.9996, "90.00 (95% CI 83.00 to 99.96)"),
        (0.5, 0.9, math.inf, "90 (95% CI 50 or more)"),
        (-0.0001, 0.9, 1.9, "90.00 (95% CI -0.01 to 190.00)"),
        (0.8, 0.9, 1.0, "90 (95% CI 80 to 100)"),
    ],
)
def test_limits_have_digits_that_show_the_grade(low: float, share: float, high: float, text: str) -> None:
    baseline = AnnotatorBaseline(share_low=low, share_kept=share, share_high=high)
    assert verdict_module._score(baseline) == text
    ninety = replace(baseline, confidence_level=0.9)
    assert verdict_module._score(ninety) == text.replace("95% CI", "90% CI")


def test_the_share_of_labels_that_are_no_better_than_random() -> None:
    audit = audited({"dice": 1 / 3})
    baseline, verdict = audit.annotator_baseline(), audit.verdict()
    assert (verdict.share, verdict.low, verdict.high) == (
        baseline.share_kept,
        baseline.share_low,
        baseline.share_high,
    )
    assert f"it scores {100 * verdict.share:.0f} (95% CI" in verdict.headline
    assert "that of random labels is -0." in verdict.details
    unclear = verdict_of(audit, share_low=0.01)  # the limits of the share exclude 0, those of kappa do not
    text = "dice is no better than random labels: its labels in random order would fit the votes about as well."
    assert (unclear.code, unclear.headline) == ("no-better-than-random", text)
    assert math.isnan(unclear.share)


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        ({"a": "better", "b": "on-par"}, "b: on par with a typical annotator, but not shown to be worse than a."),
        ({"a": "on-par", "b": "better"}, "b: better than a typical annotator, but not shown to be better than a."),
        ({"a": "better", "b": "better"}, "b: better than a typical annotator, too."),
        ({"a": "on-par", "b": "not-enough-data"}, "b and d: not enough data."),
    ],
)
def test_grades_of_labelers_that_cannot_be_told_apart(codes: dict[str, str], text: str) -> None:
    found = summary_of(made(**codes, c="clearly-below", d=codes["b"]), [["a", "b"], ["c", "d"]])
    assert found.startswith("a and b score highest of 4 labelers. The data do not show which of the two is better. a")
    assert text in found
    three = summary_of(made(a="on-par", b="on-par", c="on-par"), [["a", "b", "c"]])
    assert "The data do not show which of the 3 is best." in three
    if text.endswith("than a."):  # d is shown to be worse than a
        assert f"d: {GRADES[codes['b']]}." in found


def test_reversed_labels_are_worse_than_random() -> None:
    audit = audited({"llm": 0.02})
    verdict = audit.verdict()
    assert (verdict.code, verdict.short) == ("no-better-than-random", "worse than random labels")
    assert verdict.headline.startswith("llm is worse than random labels: it scores -")
    assert verdict.details.endswith("Check that labels and votes mean the same and belong to the same items.")


def test_annotators_who_guess_cannot_judge() -> None:
    """More items would not help, and the verdict does not ask for them."""
    verdict = audited({"llm": 0.9}, annotators=[1 / 3] * 4).verdict()
    assert verdict.code == "not-enough-data"
    assert verdict.headline == "The annotators agree too little with each other to judge llm."
    assert verdict.details.startswith("Fleiss' kappa is 0.0")
    assert not verdict.more_items


def test_two_careless_annotators_who_vote_on_everything_do_not_make_a_labeler_better() -> None:
    """Twelve good annotators vote on few items each; the labeler scores lower than most of them."""
    drawn = dhkappa.simulate(600, labelers={"llm": 0.8}, annotators=[0.95] * 12 + [0.35] * 2, rng=3)
    votes = drawn.votes.astype(object)
    for item, row in enumerate(votes):
        row[[who for who in range(12) if (who + item) % 12 > 1]] = None
    audit = dhkappa.audit(votes, dict(drawn.suggested), rng=1, progress=False)
    baseline, verdict = audit.annotator_baseline(), audit.verdict()
    assert baseline.share_low > 1
    assert audit.annotator_comparison().matched < 0.5
    assert (verdict.code, set(verdict.flagged), verdict.left_out) == ("clearly-below", {12, 13}, True)
    alone = verdict_of(audit)
    assert alone.code == "on-par"
    assert "but compared one by one, 12 of 14 annotators score higher than llm." in alone.headline


def test_votes_for_a_category_that_is_never_suggested_prevent_better() -> None:
    drawn = dhkappa.simulate(900, labelers={"llm": 0.99}, annotators=[0.7] * 4, categories=list("abcd"), rng=4)
    labels = ["c" if label == "d" else label for label in drawn.suggested["llm"].tolist()]
    audit = dhkappa.audit(drawn.votes, {"llm": labels}, rng=1, progress=False)
    capped = verdict_of(audit, share_low=1.1, share_kept=1.2, share_high=1.3)
    assert capped.code == "on-par"
    assert (
        "(95% CI 110 to 130) on a scale from 0 (random labels) to 100 (a typical annotator), but it never suggests 'd'."
        in capped.headline
    )
    assert re.search("[0-9]% of the votes are 'd'", capped.details)


def test_one_label_of_a_category_does_not_make_better() -> None:
    drawn = dhkappa.simulate(900, labelers={"llm": 0.99}, annotators=[0.7] * 4, categories=list("abcd"), rng=4)
    labels = ["c" if label == "d" else label for label in drawn.suggested["llm"].tolist()]
    codes = []
    for n in (1, 100):
        some = [place for place, truth in enumerate(drawn.truth.tolist()) if truth == "d"][:n]
        given = ["d" if place in some else label for place, label in enumerate(labels)]
        audit = dhkappa.audit(drawn.votes, {"llm": given}, rng=1, progress=False)
        found = verdict_of(audit, share_low=1.1, share_kept=1.2, share_high=1.3)
        codes.append((found.code, "it hardly ever suggests 'd'" in found.headline))
    assert codes == [("on-par", True), ("better", False)]


def test_better_must_be_higher_than_more_than_half_of_the_annotators() -> None:
    audit = audited({"llm": 0.89}, annotators=[0.9, 0.9, 0.9, 0.34])
    assert audit.annotator_baseline().share_low > 1
    assert audit.annotator_comparison().matched == 0.5
    verdict = verdict_of(audit)
    assert verdict.code == "on-par"
    assert "but compared one by one, 2 of 4 annotators score higher than llm." in verdict.headline
    assert "ompared one by one" not in verdict.details


def test_better_must_hold_without_any_one_annotator() -> None:
    audit = audited({"llm": 0.87}, annotators=[0.97, 0.85, 0.85, 0.34])
    assert audit.annotator_comparison().matched == 0.75
    assert audit.annotator_baseline().share_low > 1
    verdict = verdict_of(audit)
    assert verdict.code == "on-par"
    assert "but the result depends on one annotator, 3: check the votes of 3 first." in verdict.headline
    assert "votes of 3" in verdict.check
    rows = audit.annotator_comparison().table.where(lambda row: row["annotator"] != 3)
    rest = sum(row["difference"] for row in rows) / 3  # all have the same items
    assert f"is {audit.annotator_comparison().difference:+.2f}, without 3 {rest + 0.0:+.2f}." in verdict.details


def test_two_votes_and_many_categories_compare_by_bounds() -> None:
    drawn = dhkappa.simulate(
        2_000, labelers={"good": 0.99, "bad": 0.5}, annotators=[0.8, 0.8], categories=list("abcde"), rng=2
    )
    audit = dhkappa.audit(drawn.votes, dict(drawn.suggested), rng=1, progress=False)
    good, bad = audit.verdict("good"), audit.verdict("bad")
    assert (good.code, bad.code) == ("better", "clearly-below")
    near = dhkappa.simulate(2_000, labelers={"llm": 0.62}, annotators=[0.8, 0.8], categories=list("abcde"), rng=2)
    below = dhkappa.audit(near.votes, dict(near.suggested), progress=False).verdict()
    assert (below.code, below.short) == ("below", "worse than a typical annotator")
    assert below.headline == "llm is worse than a typical annotator, perhaps only slightly, perhaps much."
    assert math.isnan(good.share)
    assert "that of a typical annotator is between" in bad.details
    middle = dhkappa.simulate(300, labelers={"llm": 0.8}, annotators=[0.8, 0.8], categories=list("abcde"), rng=2)
    unknown = dhkappa.audit(middle.votes, dict(middle.suggested), progress=False).verdict()
    assert unknown.code == "not-enough-data"
    assert unknown.headline == (
        "llm cannot be compared with a typical annotator: two votes per item are not enough. "
        "Get a third vote on some items."
    )


def test_low_agreement_is_said() -> None:
    audit = audited({"llm": 0.99}, annotators=[0.55] * 4)
    assert "Annotators agree little with each other (Fleiss' kappa " in audit.verdict().details
    assert "agree little" not in audited({"llm": 0.9}).verdict().details


def test_no_jargon_in_headlines() -> None:
    for accuracy in (0.99, 0.85, 0.6, 1 / 3):
        for items in (10, 60, 2_000):
            headline = audited({"llm": accuracy}, items=items).verdict().headline
            assert not re.search("kappa|κ|panel|floor|ceiling|differential", headline)


def test_verdict_as_json() -> None:
    verdict = audited({"llm": 0.85}).verdict()
    found = verdict.to_dict()
    assert list(found) == ["code", "short", "headline", "text", "share", "low", "high", "flagged"]
    assert found["code"] == "on-par"
    assert found["flagged"] is None
    undefined = replace(verdict, share=math.nan, low=math.nan, high=math.nan).to_dict()
    assert undefined["share"] is undefined["low"] is undefined["high"] is None


def differences(**pvalues: float) -> Table:
    """Return differences by pair, such as ``a_b``, with their adjusted p-values."""
    pairs = [pair.split("_") for pair in pvalues]
    columns: dict[str, Any] = {"labeler": [one for one, _ in pairs], "other": [other for _, other in pairs]}
    return Table(columns | {"pvalue_holm": list(pvalues.values())})


def test_groups_that_cannot_be_told_apart() -> None:
    kappas = {"a": 0.5, "b": 0.9, "c": 0.8, "d": 0.4}
    table = differences(a_b=0.001, a_c=0.3, b_c=0.2, a_d=0.5, b_d=0.001, c_d=0.001)
    assert groups_of(kappas, table, 0.95) == [["b", "c"], ["a", "d"]]
    assert groups_of({"a": 0.5}, None, 0.95) == [["a"]]
    assert groups_of({}, None, 0.95) == []


def made(**codes: str) -> dict[str, Verdict]:
    """Return made-up verdicts by labeler."""
    return {name: Verdict(code, name, GRADES[code], f"{name} is so.") for name, code in codes.items()}


@pytest.mark.parametrize(
    ("verdicts", "groups", "text"),
    [
        (made(a="on-par"), [["a"]], "a is so."),
        (
            made(a="on-par", b="clearly-below"),
            [["a"], ["b"]],
            "a is the best of 2 labelers. a is so. b: clearly worse than a typical annotator.",
        ),
        (
            made(a="on-par", b="on-par", c="no-better-than-random"),
            [["b", "a"]],
            "b and a score highest of 3 labelers. The data do not show which of the two is better. b is so. "
            "a: on par with a typical annotator, too. c: no better than random labels.",
        ),
        (
            made(a="data-problem", b="better"),
            [["b"]],
            "Only b can be judged. b is so. a: data problem.",
        ),
        (
            made(a="no-better-than-random", b="better"),
            [["b"]],
            "Only b is shown to be better than random labels. b is so. a: no better than random labels.",
        ),
        (
            made(a="no-better-than-random", b="not-enough-data"),
            [],
            "None of 2 labelers is shown to be better than random labels. a: no better than random labels. "
            "b: not enough data.",
        ),
        (made(a="data-problem", b="data-problem"), [], "None of 2 labelers can be judged. a and b: data problem."),
    ],
)
def test_summary(verdicts: dict[str, Verdict], groups: list[list[str]], text: str) -> None:
    assert summary_of(verdicts, groups) == text


def test_only_one_of_the_ranked_labelers_can_be_judged() -> None:
    verdicts = made(a="data-problem", b="better", c="clearly-below")
    text = summary_of(verdicts, [["b"]], {"c": "It has too few labels."})
    assert text.startswith("Only b of 2 ranked labelers can be judged. b is so.")


def test_best_only_among_labelers_that_beat_random_labels() -> None:
    audit = audited({"dice": 1 / 3, "coin": 0.3})
    assert audit.groups == []
    assert audit.summary.startswith("None of 2 labelers is shown to be better than random labels.")
    audit = audited({"dice": 1 / 3, "llm": 0.9})
    assert audit.groups == [["llm"]]
    assert audit.ranking == ["llm", "dice"]


def test_summary_of_many_labelers_is_short() -> None:
    audit = audited({f"m{k}": 0.6 + 0.03 * k for k in range(12)})
    assert len(audit.summary) < 1_000
    assert [name for group in audit.groups for name in group] == audit.ranking


def test_baseline_may_be_missing() -> None:
    audit = audited({"llm": 0.9})
    kappa = audit.kappas["llm"]
    verdict = judge("llm", kappa.estimate, kappa.confidence_interval())
    assert (verdict.code, verdict.ranked) == ("not-enough-data", True)
    assert "only that its labels are not random" in verdict.headline
    unknown = AnnotatorBaseline(reason="Nobody knows.")
    assert "Nobody knows." in judge("llm", kappa.estimate, kappa.confidence_interval(), unknown).details


@pytest.mark.parametrize(("accuracy", "code"), [(0.99, "better"), (0.85, "on-par"), (0.6, "clearly-below")])
def test_weighted_samples_are_compared_with_the_annotators_themselves(accuracy: float, code: str) -> None:
    annotators = [0.7] * 4 if accuracy > 0.9 else ACCURACIES
    drawn = dhkappa.simulate(2_000, labelers={"llm": accuracy}, annotators=annotators, rng=4)
    weights = [1.0, 2.0] * 1_000
    audit = dhkappa.audit(drawn.votes, dict(drawn.suggested), sample_weight=weights, rng=1, progress=False)
    assert math.isnan(audit.annotator_baseline().low)
    verdict, compared = audit.verdict(), audit.annotator_comparison()
    assert verdict.code == code
    rows = compared.table.to_dicts()
    typical = sum(row["kappa_annotator"] * row["items"] for row in rows) / sum(row["items"] for row in rows)
    above = typical - audit.kappas["llm"].baselines.random
    expected = [1 + value / above for value in (compared.difference, compared.low, compared.high)]
    assert [verdict.share, verdict.low, verdict.high] == pytest.approx(expected)
    ninety = dhkappa.audit(
        drawn.votes, dict(drawn.suggested), sample_weight=weights, rng=1, progress=False, confidence_level=0.9
    )
    assert "(90% CI " in ninety.verdict().headline
    unknown = dhkappa.audit(drawn.votes.tolist(), dict(drawn.suggested), sample_weight=weights, progress=False)
    assert unknown.verdict().code == "not-enough-data"


def test_scores_of_other_items_are_said() -> None:
    """The comparison with an annotator uses items with three votes or more."""
    drawn = dhkappa.simulate(600, labelers={"llm": 0.85}, annotators=ACCURACIES, missing=0.4, rng=4)
    audit = dhkappa.audit(drawn.votes, dict(drawn.suggested), rng=1, progress=False)
    baseline = audit.annotator_baseline()
    assert baseline.n_items < audit.kappas["llm"].n_items
    said = f"On the {baseline.n_items} items with three votes or more, it is {baseline.kappa_labeler:.2f};"
    assert said in audit.verdict().details


@pytest.mark.parametrize(
    ("higher", "close", "text"),
    [
        (0, True, "Compared one by one, none of the 4 annotators scores higher than llm."),
        (1, True, "Compared one by one, 1 of 4 annotators scores higher than llm."),
        (3, True, "Compared one by one, 3 of 4 annotators score higher than llm, but that may be chance."),
        (4, True, "Compared one by one, all 4 annotators score higher than llm, but that may be chance."),
        (4, False, "Compared one by one, all 4 annotators score higher than llm."),
    ],
)
def test_how_many_annotators_would_do_better(higher: int, close: bool, text: str) -> None:
    comparison = audited({"llm": 0.9}, annotators=[0.8] * 4).annotator_comparison()
    assert verdict_module._matched("llm", replace(comparison, matched=1 - higher / 4), close) == text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (None, ""),
        (1, "Votes on about 1 more item would probably settle it."),
        (100_000, "Votes on about 100,000 more items would probably settle it."),
        (110_000, "No realistic number of items would decide it."),
    ],
)
def test_how_many_items_would_decide(more: int | None, text: str) -> None:
    assert decided_by(more) == text


def test_the_summary_names_a_category_that_is_clearly_weaker() -> None:
    draw = np.random.default_rng(5)
    truth = draw.integers(0, 3, 600)
    votes = np.where(draw.random((600, 4)) < 0.9, truth[:, None], draw.integers(0, 3, (600, 4)))
    labels = np.where(draw.random(600) < 0.9, truth, draw.integers(0, 3, 600))
    alike = dhkappa.audit(votes, labels, progress=False)
    assert "weakest" not in alike.summary
    labels = np.where((truth == 1) & (draw.random(600) < 0.7), 2, labels)  # many labels 2 are wrong
    found = dhkappa.audit(votes, labels, progress=False)
    worst = min(found.categories(), key=lambda row: row["kappa"])
    assert worst["category"] == 2
    assert found.summary.endswith(f"The weakest category of labeler is 2 (kappa {worst['kappa']:.2f}).")


@pytest.mark.parametrize(("items", "named"), [(9, False), (10, True)])
def test_a_category_with_few_items_is_not_called_the_weakest(items: int, named: bool) -> None:
    """Votes that are equal on all items of a category give it an interval that is too narrow."""
    draw = np.random.default_rng(5)
    truth = np.array([*draw.integers(0, 3, 600), *[2] * items])
    votes = np.where(draw.random((len(truth), 4)) < 0.9, truth[:, None], draw.integers(0, 3, (len(truth), 4)))
    votes[600:] = 2
    labels = np.where(np.arange(len(truth)) < 600, truth, 3)
    found = dhkappa.audit(votes, labels, progress=False)
    [row] = [row for row in found.categories() if row["category"] == 3]
    assert row["items"] == items
    assert row["high"] < found.kappas["labeler"].confidence_interval().low
    assert ("The weakest category of labeler is 3" in found.summary) == named


def test_summary_of_labelers_with_different_items() -> None:
    reason = "It has 5 labels."
    ranked = summary_of(made(a="on-par", b="clearly-below", c="better"), [["a"], ["b"]], {"c": reason}, 300)
    assert ranked == (
        "a is the best of 2 ranked labelers. a is so. b: clearly worse than a typical annotator. c: better than a "
        "typical annotator. The ranking is for the 300 items that all ranked labelers labeled. "
        "c is not ranked: it has 5 labels."
    )
    common = summary_of(made(a="on-par", b="clearly-below"), [["a"], ["b"]], {}, 1)
    assert common.endswith(" The ranking is for the 1 item that all of them labeled.")
    none = summary_of(made(a="on-par", b="clearly-below"), [], {"a": reason, "b": reason})
    assert none == (
        "2 labelers cannot be ranked, because they share too few items. a is so. "
        "b: clearly worse than a typical annotator."
    )


def test_names_and_scores_of_a_verdict() -> None:
    error = Problem("category-variants", "error", "Votes differ in case.")
    assert verdict_of(audited({"llm": 0.85}), (error,)).labeler == "llm"
    drawn = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=4, categories=[1, 2, 3], rng=1)
    ordered = dhkappa.audit(drawn.votes, drawn.suggested, categories=[1, 2, 3], weights="linear", progress=False)
    assert ordered.verdict().details.startswith("Weighted kappa is ")
    assert audited({"llm": 0.9}).verdict().details.startswith("Kappa is ")


def test_the_only_annotator() -> None:
    audit = audited({"llm": 0.85})
    comparison = audit.annotator_comparison()
    table = Table({"annotator": ["ada"], "difference": [0.1], "items": [600], "kappa_annotator": [0.4]})
    for matched, word in ((1.0, "no higher"), (0.0, "higher")):
        alone = replace(comparison, table=table, matched=matched, skipped=())
        text = judge("llm", audit.kappas["llm"].estimate, audit.kappas["llm"].confidence_interval(),
                     audit.annotator_baseline(), alone).details  # fmt: skip
        assert f"The only annotator who can be compared scores {word} than llm." in text


def test_annotators_who_agree_little_and_are_not_compared_one_by_one_prevent_better() -> None:
    """A few careless annotators would make any good labeler look better, and counts do not show them."""
    drawn = dhkappa.simulate(2_000, labelers={"llm": 0.99}, annotators=[0.7] * 4, rng=4)
    named = dhkappa.audit(drawn.votes, dict(drawn.suggested), progress=False)
    counted = dhkappa.audit([list(row) for row in drawn.votes.tolist()], dict(drawn.suggested), progress=False)
    assert (named.verdict().code, counted.verdict().code) == ("better", "on-par")
    assert named.verdict().low == counted.verdict().low > 1
    assert named.verdict().disagree
    assert counted.next_step().code == "guidelines"
    two = dhkappa.simulate(300, labelers={"llm": 0.9}, annotators=[0.85, 0.3], rng=4)
    allow = ["labels-from-votes", "labeler-equals-annotator"]
    found = dhkappa.audit(two.votes, dict(two.suggested), allow=allow, progress=False)
    assert found.annotator_baseline().low > 0  # its kappa is higher than that of any typical annotator
    assert found.verdict().code == "on-par"


@pytest.mark.parametrize("where", ["language=en", "created>=2026-11-02"])
def test_one_careless_annotator_makes_no_labeler_better_in_a_part_of_the_data(where: str, tmp_path: Path) -> None:
    write_demo(str(tmp_path), 400, 1)
    demo = dhkappa.read(tmp_path / "annotations.csv", items=tmp_path / "items.csv", suggested="llm")
    audit = dhkappa.audit(demo.filter(where), progress=False)
    assert audit.annotator_baseline().share_low > 1
    assert audit.verdict().code == "on-par"
    assert (audit.verdict().flagged, audit.verdict().left_out) == (("eli",), True)
    assert "depends on one annotator, eli" in verdict_of(audit).headline


@pytest.mark.parametrize(("width", "digits"), [(0.5, 2), (0.05, 2), (0.005, 3), (1e-4, 4), (1e-12, 6), (0, 2), (40, 2)])
def test_digits_by_the_width_of_an_interval(width: float, digits: int) -> None:
    assert digits_of(width) == digits


def test_whether_more_items_help() -> None:
    assert audited({"llm": 0.85}).verdict().more_items
    assert audited({"llm": 0.85}, items=30).verdict().more_items
    two_votes = audited({"llm": 0.85}, annotators=[0.85] * 2).verdict()
    assert two_votes.code == "not-enough-data"
    assert "Get a third vote on some items." in two_votes.headline
    assert not two_votes.more_items
    problem = Problem("labels-not-in-votes", "error", "Codes and names.")
    assert not verdict_of(audited({"llm": 0.85}), (problem,)).more_items


def test_labels_that_cannot_be_judged_are_not_counted_as_random() -> None:
    """One labeler is no better than random, the other may be made from the votes."""
    drawn = dhkappa.simulate(600, labelers={"dice": 1 / 3}, annotators=ACCURACIES, rng=4)
    labels = dict(drawn.suggested) | {"most": majority(drawn.votes, ["a", "b", "c"])}
    audit = dhkappa.audit(drawn.votes, labels, rng=1, progress=False)
    assert audit.verdict("most").code == "labels-from-votes"
    start = "No labeler that these votes can judge is shown to be better than random labels."
    assert audit.summary.startswith(start)


def test_digits_of_a_narrow_interval_far_from_zero() -> None:
    audit = audited({"llm": 0.95}, annotators=[0.95] * 4, items=60_000)
    low, high = audit.kappas["llm"].confidence_interval()
    assert high - low < 0.01 < high + low
    assert f"Kappa is {audit.kappas['llm'].value:.3f} (95% CI {low:.3f} to {high:.3f})" in audit.verdict().details


def test_names_of_labelers_without_a_grade() -> None:
    few = audited({"llm": 0.4}, items=15).verdict()
    assert (few.code, few.labeler) == ("not-enough-data", "llm")
    assert "15 items cannot tell it from random labels" in few.headline
