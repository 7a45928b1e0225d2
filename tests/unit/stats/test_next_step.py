"""What to do next: by the verdict, and by the category in which most is lost."""

import math
from dataclasses import replace
from typing import Any

import pytest

import dhkappa
from dhkappa.errors import Problem
from dhkappa.stats.grades import Verdict
from dhkappa.stats.next_step import NextStep, next_step

VERDICT = Verdict("clearly-below", "llm", "", "")
WARNING = Problem("looks-ordinal", "warning", "The categories look ordered.")


def category(name: str, items: int, loss: float, kappa: float = 0.5) -> dict[str, Any]:
    return {"category": name, "items": items, "loss": loss, "kappa": kappa}


def votes(suggested: str, agreed: str | None, share: float) -> dict[str, Any]:
    return {"suggested": suggested, "agreed": agreed, "vote_share": share}


CATEGORIES = [category("bug", 50, 0.1), category("outage", 40, 0.2), category("rare", 9, 0.3)]
VOTES = [votes("bug", "bug", 0.8), votes("outage", "bug", 0.5), votes("outage", "outage", 0.42)]


def step(verdict: Verdict = VERDICT, problems: tuple[Problem, ...] = (), categories: Any = CATEGORIES) -> NextStep:
    return next_step(verdict, problems, categories, VOTES)


def test_the_category_with_the_largest_loss_and_enough_items() -> None:
    text = "Fix 'outage': 58% of the votes on its 40 items are for other categories."
    assert step() == NextStep("fix-category", text, "outage")
    found = step(replace(VERDICT, code="on-par"))
    usable = "Use the labels of llm where one annotator's labels would be good enough."
    assert found.text.startswith(f"{usable} To improve them, start with 'outage': 58%")


def test_a_category_that_nobody_confirms() -> None:
    found = step(categories=[category("x", 10, 0.1)])
    assert found.text == "Fix 'x': 100% of the votes on its 10 items are for other categories."


@pytest.mark.parametrize("rows", [[category("rare", 9, 0.3)], [category("bug", 50, 0.1, math.nan)], []])
def test_no_category_stands_out(rows: list[dict[str, Any]]) -> None:
    assert step(categories=rows).code == "fix-labels"
    assert (
        step(replace(VERDICT, code="better"), categories=rows).text
        == "Use the labels of llm where one annotator's labels would be good enough."
    )


@pytest.mark.parametrize("code", ["better", "on-par", "slightly-below", "below", "clearly-below"])
def test_annotators_who_agree_little_need_guidelines_first(code: str) -> None:
    assert step(replace(VERDICT, code=code, disagree=True)).code == "guidelines"


def test_categories_that_annotators_confirm_are_not_named() -> None:
    found = next_step(VERDICT, (), [category("bug", 50, 0.1)], [votes("bug", "bug", 0.91)])
    assert (found.code, found.category) == ("fix-labels", None)


@pytest.mark.parametrize(
    ("code", "step_code"),
    [("data-problem", "fix-data"), ("labels-from-votes", "other-votes"), ("no-better-than-random", "check-labels")],
)
def test_other_verdicts(code: str, step_code: str) -> None:
    assert step(replace(VERDICT, code=code)).code == step_code


@pytest.mark.parametrize(
    ("missing", "n_more", "text"),
    [
        ("items", 280, "Get votes on about 280 more items."),
        ("items", 1, "Get votes on about 1 more item."),
        ("items", None, "Get votes on more items."),
        ("third-vote", None, "Get a third vote on some items."),
        (
            "guidelines",
            None,
            "Improve the guidelines: the annotators agree too little with each other for any labels to be reliable.",
        ),
    ],
)
def test_not_enough_data(missing: str, n_more: int | None, text: str) -> None:
    assert step(replace(VERDICT, code="not-enough-data", missing=missing, n_more=n_more)).text == text


def test_warnings_come_before_judgments() -> None:
    assert step(problems=(WARNING,)).code == "check-warning"
    assert step(problems=(replace(WARNING, accepted=True),)).code == "fix-category"
    assert step(problems=(replace(WARNING, severity="info"),)).code == "fix-category"
    assert step(problems=(replace(WARNING, labelers=("rule",)),)).code == "fix-category"
    assert step(replace(VERDICT, code="data-problem"), (WARNING,)).code == "fix-data"


def test_an_audit_names_the_worst_category() -> None:
    drawn = dhkappa.simulate(600, labelers={"llm": 0.9, "rule": 0.6}, annotators=4, rng=1)
    found = dhkappa.audit(drawn.votes, drawn.suggested, progress=False)
    chosen = found.next_step("rule")
    table = {row["category"]: row for row in found.categories("rule")}
    assert chosen.category == max(table, key=lambda name: table[name]["loss"])
    shares = {
        row["suggested"]: row["vote_share"] for row in found.confusion("rule") if row["suggested"] == row["agreed"]
    }
    assert (
        f"{1 - shares[chosen.category]:.0%} of the votes on its {table[chosen.category]['items']} items" in chosen.text
    )
    assert found.to_dict()["labelers"]["rule"]["next_step"] == chosen.to_dict()


def test_an_undefined_kappa_has_a_step() -> None:
    found = dhkappa.audit([["a", "a"], ["a", "a"]], ["a", "a"], progress=False)
    assert found.next_step().code == "check-warning"  # every label is the most frequent vote
