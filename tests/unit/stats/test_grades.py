"""Grades: verdicts as data, what cannot be judged because of a problem, and digits of numbers."""

import json
import math
from dataclasses import replace

import pytest

from dhkappa.errors import Problem
from dhkappa.stats.grades import GRADES, NEVER_JUDGED, Verdict, cannot_judge, continued, digits_of, ungraded

ERROR = Problem("category-variants", "error", "The labels 'a' and 'A' are one category.")
MADE = Problem("labels-from-votes", "warning", "Every label is a most frequent vote.", labelers=("llm",))
COPY = Problem("labeler-equals-annotator", "warning", "The labels are those of ada.", ("ada",), labelers=("llm",))


def test_an_error_comes_before_any_other_problem() -> None:
    found = cannot_judge("llm", [MADE, ERROR])
    assert found == Verdict(
        "data-problem",
        "llm",
        "data problem",
        "Cannot judge llm: the labels 'a' and 'A' are one category.",
        missing="",
    )


def test_labels_made_from_the_votes() -> None:
    found = cannot_judge("llm", [MADE])
    assert found is not None
    assert (found.code, found.short) == ("labels-from-votes", "labels made from these votes")
    assert found.text == "These votes cannot judge llm: its labels look as if they were made from them."
    assert [found.ranked, found.judged, found.more_items] == [False] * 3


def test_a_copy_of_an_annotator() -> None:
    found = cannot_judge("llm", [COPY])
    assert found is not None
    assert (found.code, found.short) == ("labels-from-votes", "may be one of the annotators")
    assert found.text == "These votes cannot judge llm: it has nearly the same labels as annotator ada."
    assert [found.ranked, found.judged, found.more_items] == [False] * 3
    by_name = cannot_judge("llm", [replace(COPY, because="it has the name of annotator ada")])
    assert by_name is not None
    assert by_name.text == "These votes cannot judge llm: it has the name of annotator ada."


def test_problems_that_do_not_prevent_a_verdict() -> None:
    others = [replace(one, labelers=("rule",)) for one in (ERROR, MADE, COPY)]
    accepted = [replace(one, accepted=True) for one in (ERROR, MADE, COPY)]
    warning = Problem("looks-ordinal", "warning", "The categories look ordered.")
    assert cannot_judge("llm", [*others, *accepted, warning]) is None
    assert cannot_judge("rule", [MADE, COPY]) is None
    assert cannot_judge("llm", ()) is None


def test_verdict_as_data() -> None:
    verdict = Verdict("on-par", "llm", "on par", "llm is on par.", "Kappa is 0.5.", True, share=0.9, low=0.8)
    assert verdict.text == "llm is on par. Kappa is 0.5."
    assert replace(verdict, details="").text == "llm is on par."
    assert math.isnan(verdict.high)
    assert verdict.more_items
    found = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    words = {"code": "on-par", "short": "on par", "headline": "llm is on par.", "text": verdict.text}
    assert found == words | {"share": 0.9, "low": 0.8, "high": None, "flagged": None}


def test_which_grades_are_judgments() -> None:
    judged = {code for code in GRADES if ungraded(code, "llm", "").judged}
    assert judged == {"better", "on-par", "slightly-below", "below", "clearly-below", "no-better-than-random"}
    assert not judged & {*NEVER_JUDGED}


def test_ungraded() -> None:
    found = ungraded("not-enough-data", "llm", "Too few.", "Two items.", ranked=True)
    assert found == Verdict("not-enough-data", "llm", "not enough data", "Too few.", "Two items.", True)
    assert all(math.isnan(value) for value in (found.share, found.low, found.high))
    assert not ungraded("not-enough-data", "llm", "Too few.").ranked


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("The labels differ.", "the labels differ."),
        ("Columns 'a' and 'b' are equal.", "columns 'a' and 'b' are equal."),
        ("Column 'a' is empty.", "column 'a' is empty."),
        ("Theo has no labels.", "Theo has no labels."),
        ("llm has no labels. The votes have.", "llm has no labels. The votes have."),
    ],
)
def test_a_sentence_after_a_colon(message: str, part: str) -> None:
    assert continued(message) == part


@pytest.mark.parametrize(
    ("width", "least", "digits"),
    [
        *((1.5, 2, 2), (0.1, 2, 2), (0.0099, 2, 3), (0.001, 2, 3), (1e-9, 2, 6), (0.0, 2, 2), (0.0, 3, 3)),
        *((-1.0, 2, 2), (math.inf, 2, 2), (math.inf, 3, 3), (math.nan, 2, 2), (0.5, 3, 3), (0.0005, 3, 4)),
    ],
)
def test_digits_by_the_width_of_an_interval(width: float, least: int, digits: int) -> None:
    assert digits_of(width, least) == digits
    assert least != 2 or digits_of(width) == digits
