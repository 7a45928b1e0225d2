"""Prodigy: files written by hand after its documentation (it is not free to install), against votes told by hand."""

from pathlib import Path
from typing import Any

import pytest

from dhkappa.inputs.readers import Records, first_record, read_records
from dhkappa.inputs.readers.prodigy import read_export, recognize
from dhkappa.inputs.tables import Source
from expect import expect_error

FOLDER = Path(__file__).parents[3] / "exports" / "prodigy"
ONE, TWO, THREE, FOUR, FIVE = -1530009927, 499043849, 2003036685, 77, -5
ODD = 'it\'s "odd" 🎾'


def fixture(name: str) -> Records:
    return read_records(FOLDER / f"{name}.jsonl")


def rows(export: Source) -> list[Any]:
    return list(zip(*export.votes.values(), strict=True))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_file_is_recognized(path: Path) -> None:
    record = first_record(path)
    assert record is not None
    assert recognize(record)


@pytest.mark.parametrize(
    "record", [{}, {"text": "x", "answer": "accept"}, {"id": 1, "data": {}, "annotations": [], "predictions": []}]
)
def test_other_records_are_not_recognized(record: dict[str, Any]) -> None:
    assert not recognize(record)
    with expect_error("malformed-export"):
        read_export({"votes": [record]})


def test_choices() -> None:
    export = read_export(fixture("choice"))
    assert export.tool == "Prodigy"
    assert rows(export) == [
        (ONE, "topics-alex", "SPORT"),
        (ONE, "topics-kim", "SPORT"),
        (ONE, "topics-sam", "NEWS"),
        (TWO, "topics-alex", "NEWS"),
        (TWO, "topics-kim", ODD),
        (TWO, "topics-sam", "NEWS"),
        (THREE, "topics-alex", ODD),
        (FOUR, "topics-sam", "SPORT"),
        (ONE, "topics-alex", "NEWS"),  # a second answer: both stay
    ]
    assert export.items == {"item": [ONE, TWO, THREE, FOUR, FIVE]}
    assert export.labelers == ()
    assert export.skipped == {"rejected tasks": 1, "ignored tasks": 3, "tasks accepted without a choice": 1}


def test_several_choices_ask_which() -> None:
    with expect_error("several-labels") as caught:
        read_export(fixture("multiple"))
    assert "'it\\'s \"odd\" 🎾'" in caught.value.hint
    export = read_export(fixture("multiple"), question="NEWS")
    assert rows(export) == [
        (ONE, "topics-alex", "NEWS"),
        (ONE, "topics-kim", "NEWS"),
        (TWO, "topics-alex", "not NEWS"),  # accepted with nothing chosen: none of the labels holds
    ]
    assert export.skipped == {"rejected tasks": 1}


def test_one_label_a_task_is_a_suggestion_where_labels_differ() -> None:
    export = read_export(fixture("binary"))
    assert rows(export) == [
        (ONE, "mail-alex", "spam"),
        (ONE, "mail-kim", "spam"),
        (TWO, "mail-alex", "ham"),
        (TWO, "mail-kim", "not ham"),
        (THREE, "mail-alex", "not spam"),
        (THREE, "mail-kim", "not spam"),
        (FOUR, "mail-kim", "ham"),
    ]
    assert export.items == {
        "item": [ONE, TWO, THREE, FOUR, FIVE],
        "suggested": ["spam", "ham", "spam", "ham", "spam"],
    }
    assert export.labelers == ("suggested",)
    assert export.skipped == {"ignored tasks": 3}


def test_one_label_on_all_items_is_nobodys_suggestion() -> None:
    export = read_export({"x": [task for task in fixture("binary")["binary"] if task["label"] == "spam"]})
    assert export.items == {"item": [ONE, THREE, FIVE]}
    assert export.labelers == ()
    assert export.votes["label"] == ["spam", "spam", "not spam", "not spam"]


def test_several_labels_shown_on_an_item_ask_which() -> None:
    with expect_error("several-labels") as caught:
        read_export(fixture("teach"))
    assert "'economy'" in caught.value.hint
    export = read_export(fixture("teach"), question="housing")
    assert rows(export) == [(ONE, "teach", "not housing"), (TWO, "teach", "housing")]  # no session: the file's name
    assert export.skipped == {"tasks about other labels": 2, "ignored tasks": 1}


def test_files_are_annotators_where_nothing_else_tells() -> None:
    task = {"_input_hash": 1, "label": "a", "answer": "accept"}
    held = {
        "ann": [task],
        "bo": [{**task, "_session_id": "s"}],
        "cy": [{**task, "_session_id": "s", "_annotator_id": "t"}],
    }
    assert read_export(held).votes["annotator"] == ["ann", "s", "t"]


def test_a_question_that_is_none() -> None:
    with expect_error("question-not-found"):
        read_export(fixture("choice"), question="SPROT")


def test_spans_are_no_labels_of_items() -> None:
    with expect_error("no-item-labels"):
        read_export(fixture("spans"))
    export = read_export({**fixture("spans"), **fixture("choice")})
    assert export.skipped["tasks without label or choices"] == 1
    assert len(export.votes["label"]) == 9


def test_choices_beside_one_label_a_task_ask_which() -> None:
    held = {
        "x": [
            {"_input_hash": 1, "label": "a", "answer": "reject"},
            {"_input_hash": 2, "accept": ["a"], "answer": "accept"},
        ]
    }
    with expect_error("several-labels"):
        read_export(held)
    assert rows(read_export(held, question="a")) == [(1, "x", "not a"), (2, "x", "a")]


def test_options_by_number_and_answers_not_given() -> None:
    options = [{"id": 1, "text": "GOOD"}, {"id": 2, "text": "BAD"}]
    held = {
        "x": [
            {"_input_hash": 1, "options": options, "accept": [2], "answer": "accept"},
            {"_input_hash": 2, "options": options},
        ]
    }
    export = read_export(held)
    assert rows(export) == [(1, "x", 2)]
    assert export.skipped == {"tasks without an answer": 1}
    assert read_export(held, question="1").votes["label"] == ["not 1"]


def test_what_was_compared_is_no_label() -> None:
    held = {"x": [{"_input_hash": 1, "options": [], "accept": {"text": "A"}, "answer": "accept"}]}
    with expect_error("not-a-label"):
        read_export(held)
