"""The same problems from every engine."""

from typing import Any

import pytest

from dhkappa import Dataset
from engines import Engine

N = 30
LABELS = ["cat", "dog", "cow"] * 10
WIDE = {
    "item": [f"t{place}" for place in range(N)],
    "suggested_llm": [str(["cat", "dog", "cow"].index(label)) for label in LABELS],
    "ann_1": [label.upper() if place < 3 else label for place, label in enumerate(LABELS)],
    "ann_2": ["#N/A" if place < 2 else label for place, label in enumerate(LABELS)],
    "ann_3": LABELS,
    "ann_1_seconds": [str(100 + place) for place in range(N)],
    "rater_4": LABELS,
}
WIDE_CODES = ["category-variants", "labels-not-in-votes", "looks-missing", "not-annotators", "annotators-unused"]
VOTES: dict[str, list[Any]] = {
    "item": [item for item in WIDE["item"] for _ in range(3)],
    "annotator": ["ada", "ben", "Ada "] * N,
    "label": [label for label in LABELS for _ in range(3)],
}
ITEMS: dict[str, list[Any]] = {
    "item": WIDE["item"],
    "suggested_llm": ["cat"] * 3 + LABELS[3:],
    "suggested_rule": [None] * 20 + LABELS[20:],
}
LONG_CODES = ["annotator-variants", "few-common-items", "labeler-abstains", "too-few-items"]


def test_wide_format(engine: Engine) -> None:
    check = Dataset(engine.table(WIDE)).check()
    assert [one.code for one in check.problems] == WIDE_CODES
    options = {one.code: one.options for one in check.problems}
    assert options["not-annotators"] == {"annotators": "ann_1,ann_2,ann_3"}
    assert options["labels-not-in-votes"] == {"map": "0=cat,1=dog,2=cow"}
    assert (check.n_items, check.n_votes, check.n_annotators) == (N, 4 * N, 4)


def test_long_format(engine: Engine) -> None:
    check = Dataset(engine.table(VOTES), items=engine.table(ITEMS)).check()
    assert [one.code for one in check.problems] == LONG_CODES
    assert check.n_annotators == 3


@pytest.mark.parametrize("change", [str.upper, lambda item: f"x{item}"])
def test_ids_that_do_not_join(engine: Engine, change: Any) -> None:
    items = ITEMS | {"item": [change(item) for item in WIDE["item"]]}
    [problem] = Dataset(engine.table(VOTES), items=engine.table(items)).check().problems
    assert (problem.code, problem.severity) == ("ids-not-joined", "error")
    assert "They match if" in problem.fix


def test_lists_have_the_same_problems() -> None:
    votes = [list(row) for row in zip(*(WIDE[name] for name in WIDE if name.startswith("ann_")), strict=True)]
    codes = [one.code for one in Dataset(votes, {"llm": WIDE["suggested_llm"]}).check().problems]
    assert codes == ["category-variants", "labels-not-in-votes", "looks-missing"]


def test_repeated_texts(engine: Engine) -> None:
    texts = [f"text of message {place}" for place in range(N)]
    votes = dict.fromkeys(("suggested_llm", "ann_1", "ann_2", "ann_3"), LABELS)
    for again, flagged in ((0, False), (2, False), (6, True)):
        columns = {name: [*values, *values[:again]] for name, values in ({"text": texts} | votes).items()}
        problems = Dataset(engine.table(columns)).check().problems
        assert ("repeated-rows" in {one.code for one in problems}) == flagged
    assert f"6 of {N + 6} rows" in next(one.message for one in problems if one.code == "repeated-rows")
