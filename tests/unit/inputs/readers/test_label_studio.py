"""Label Studio: what a real server wrote, against what the script beside the files told it to hold."""

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dhkappa.inputs.readers import Records, first_record, read_records
from dhkappa.inputs.readers.label_studio import read_export, recognize
from dhkappa.inputs.tables import Source
from expect import expect_error

FOLDER = Path(__file__).parents[3] / "exports" / "label_studio"
NEWS, ODD = 'it\'s "news" 📰', "a, b\\c; -- שלום"

# The votes of ann, bo and cy on tasks 1 to 12, as the script's table has them; None where there is no vote.
VOTES = {
    1: ("spam", "spam", "spam"),
    2: ("ham", "ham", "spam"),
    3: (NEWS, NEWS, "ham"),
    4: (ODD, ODD, ODD),
    5: ("spam", None, "ham"),
    6: ("ham", "ham", "ham"),
    7: (None, "spam", None),
    8: (NEWS, "ham", "spam"),
    9: ("spam", "spam", None),
    10: ("ham", None, "ham"),
    11: (None, None, None),
    12: (None, None, None),
}
GPT = ["spam", "ham", NEWS, ODD, "spam", "ham", "spam", "ham", None, NEWS, "spam", "ham"]
RULE = ["spam", "spam", "ham", None, "spam", "ham", "ham", "spam", "spam", "ham", "spam", None]
EMAILS = ("ann@example.com", "bo@example.com", "cy@example.com")
NUMBERS = (2, 3, 4)


def fixture(name: str) -> Records:
    return read_records(FOLDER / f"{name}.json")


def expected(annotators: tuple[Any, ...]) -> Counter[Any]:
    rows = ((item, who, vote) for item, votes in VOTES.items() for who, vote in zip(annotators, votes, strict=True))
    return Counter(row for row in rows if row[2] is not None)


def rows(export: Source) -> Counter[Any]:
    return Counter(zip(*export.votes.values(), strict=True))


def without_predictions(held: Records) -> Records:
    return {name: [{**task, "predictions": []} for task in tasks] for name, tasks in copy.deepcopy(held).items()}


def task(results: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"id": 1, "data": {}, "annotations": [{"completed_by": 7, "result": results, **more}]}


def choice(*labels: str, name: str = "topic") -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(labels)}}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_file_is_recognized(path: Path) -> None:
    record = first_record(path)
    assert record is not None
    assert recognize(record)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"id": 1, "text": "x", "label": ["a"]},
        {"images": [], "annotations": [], "categories": []},
        {"data": "text", "annotations": []},
        {"data": {}, "annotations": "none"},
        {"text": "x", "_input_hash": 1, "answer": "accept"},
    ],
)
def test_other_records_are_not_recognized(record: dict[str, Any]) -> None:
    assert not recognize(record)
    with expect_error("malformed-export"):
        read_export({"votes": [record]})


@pytest.mark.parametrize(("name", "annotators"), [("mail_whole", EMAILS), ("mail_ids", NUMBERS)])
def test_json_with_whole_predictions(name: str, annotators: tuple[Any, ...]) -> None:
    export = read_export(fixture(name))
    assert export.tool == "Label Studio"
    assert rows(export) == expected(annotators)
    assert export.items == {"item": list(range(1, 13)), "gpt-5": GPT, "rule-v2": RULE}
    assert export.labelers == ("gpt-5", "rule-v2")
    assert export.skipped == {"cancelled annotations": 4, "drafts": 1, "annotations without an answer": 1}


def test_json_min_has_votes_only() -> None:
    export = read_export(fixture("mail_min"))
    assert rows(export) == expected(NUMBERS)
    assert export.items == {"item": list(range(1, 12))}  # the server leaves out task 12, which everybody cancelled
    assert export.labelers == ()
    assert export.skipped == {"annotations without an answer": 1}


def test_predictions_as_ids_are_explained() -> None:
    held = fixture("mail_button")
    export = read_export(held)
    assert export.labelers == ()
    assert "ids as predictions" in export.unlabeled
    assert '"predictions": {"only_id": false}' in export.unlabeled
    assert "/api/projects/<project>/exports/" in export.unlabeled
    assert rows(export) == rows(read_export(without_predictions(held))) == expected(NUMBERS)
    assert read_export(without_predictions(held)).unlabeled == ""


def test_annotations_as_ids_are_explained() -> None:
    with expect_error("malformed-export"):
        read_export({"x": [{"id": 5, "data": {}, "annotations": [31, 32]}]})


@pytest.mark.parametrize("name", ["reviews_button", "reviews_min"])
def test_several_controls_ask_which(name: str) -> None:
    with expect_error("several-questions"):
        read_export(fixture(name))


@pytest.mark.parametrize("name", ["reviews_button", "reviews_min"])
@pytest.mark.parametrize(
    ("question", "votes"),
    [
        ("tone", [(13, 2, "good"), (13, 3, "good"), (14, 2, "bad"), (14, 3, "good"), (15, 2, "good"), (15, 2, "bad")]),
        ("stars", [(13, 2, 5), (13, 3, 4), (14, 2, 1), (14, 3, 3)]),
        ("people", [(13, 2, 2), (13, 3, 2), (14, 2, 3)]),
        ("place", [(13, 2, "city / north"), (13, 3, "city / north"), (14, 3, "sea")]),
        ("topics=food", [(13, 2, "food"), (13, 3, "food"), (14, 2, "food"), (15, 2, "not food"), (15, 2, "not food")]),
        ("topics=price", [(13, n, "not price") for n in (2, 3)] + [(14, 2, "price")] + 2 * [(15, 2, "not price")]),
        ("stars=5", [(13, 2, 5), (13, 3, "not 5"), (14, 2, "not 5"), (14, 3, "not 5")]),
    ],
)
def test_one_of_several_controls(name: str, question: str, votes: list[Any]) -> None:
    export = read_export(fixture(name), question=question)
    assert rows(export) == Counter(votes)
    assert export.items == {"item": [13, 14, 15]}
    unanswered = {"annotations without an answer": 6 - len(votes)} if len(votes) < 6 else {}
    comment = {"regions or texts in control 'comment'": 1} if name == "reviews_button" else {}
    assert export.skipped == {**unanswered, **comment}


@pytest.mark.parametrize("name", ["reviews_button", "reviews_min"])
def test_several_choices_ask_which(name: str) -> None:
    with expect_error("several-labels") as caught:
        read_export(fixture(name), question="topics")
    assert "'topics=food'" in caught.value.hint
    assert "'food', 'price', 'staff'" in caught.value.hint


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("tones", "question-not-found"),
        ("", "question-not-found"),
        ("topics=foo", "question-not-found"),
        ("comment", "no-item-labels"),
    ],
)
def test_a_question_that_is_none(question: str, code: str) -> None:
    with expect_error(code):
        read_export(fixture("reviews_button"), question=question)


def test_predictions_without_a_version() -> None:
    export = read_export(fixture("reviews_whole"), question="tone")
    assert export.labelers == ("prediction",)
    assert export.items == {"item": [13, 14, 15], "prediction": ["good", "good", "good"]}
    other = read_export(fixture("reviews_whole"), question="stars")
    assert other.labelers == ()
    assert other.skipped["predictions without an answer"] == 3


def test_regions_are_no_labels_of_items() -> None:
    with expect_error("no-item-labels"):
        read_export(fixture("spans_button"))
    with expect_error("no-item-labels"):
        read_export(fixture("spans_min"))


def test_regions_beside_choices_are_counted() -> None:
    region = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["cat"]}}
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    export = read_export({"x": [task([choice("a"), region, region, relation, {**choice(name="odd"), "value": {}}])]})
    assert rows(export) == Counter({(1, 7, "a"): 1})
    assert export.skipped == {
        "regions or texts in control 'box'": 2,
        "regions or texts in control 'relation'": 1,
        "regions or texts in control 'odd'": 1,
    }
    with expect_error("malformed-export"):
        read_export({"x": [{"id": 1, "data": {}, "annotations": [{"result": ["a"]}]}]})


def test_rejected_and_skipped_annotations_are_no_votes() -> None:
    whole = task([choice("a")], last_action="rejected")
    for other in (task([choice("a")], skipped=True), task([choice("b")], last_action="accepted", ground_truth=True)):
        whole["annotations"] += other["annotations"]
    export = read_export({"x": [whole]})
    assert rows(export) == Counter({(1, 7, "b"): 1})
    assert export.skipped == {"annotations rejected in review": 1, "cancelled annotations": 1}
    assert export.items == {"item": [1]}


def test_nothing_voted_is_no_error() -> None:
    export = read_export({"x": [{"id": 1, "data": {}, "annotations": []}]})
    assert rows(export) == Counter()
    assert export.items == {"item": [1]}
    assert (export.tool, export.labelers, export.notes) == ("Label Studio", (), ())


@pytest.mark.parametrize(
    ("completed_by", "annotator"),
    [({"id": 3, "email": "a@b.c"}, "a@b.c"), ({"id": 3, "email": ""}, 3), ({"id": 3}, 3), (9, 9), (None, None)],
)
def test_who_an_annotator_is(completed_by: Any, annotator: Any) -> None:
    export = read_export({"x": [task([choice("a")], completed_by=completed_by)]})
    assert export.votes["annotator"] == [annotator]


def predicted(*pairs: tuple[Any, str]) -> Records:
    predictions = [{"model_version": version, "result": [choice(label)]} for version, label in pairs]
    return {"x": [{"id": 1, "data": {}, "annotations": [], "predictions": predictions}]}


def test_names_of_labelers() -> None:
    export = read_export(predicted(("v10", "a"), ("v9", "b"), (None, "c"), ("undefined", "c"), ("item", "d"), (7, "e")))
    assert export.labelers == ("7", "prediction", "prediction item", "v9", "v10")
    assert export.items == {
        "item": [1],
        "7": ["e"],
        "prediction": ["c"],
        "prediction item": ["d"],
        "v9": ["b"],
        "v10": ["a"],
    }


def test_two_predictions_of_one_version() -> None:
    assert read_export(predicted(("v1", "a"), ("v1", "a"))).items == {"item": [1], "v1": ["a"]}
    with expect_error("conflicting-suggestions"):
        read_export(predicted(("v1", "a"), ("v1", "b")))


def test_a_task_without_id_and_a_label_that_is_none() -> None:
    with expect_error("malformed-export"):
        read_export({"x": [{"data": {}, "annotations": []}]})
    number = {"from_name": "n", "type": "number", "value": {"number": 1.5}}
    with expect_error("not-a-label"):
        read_export({"x": [task([number])]})


def test_json_min_with_data_named_like_its_own_fields() -> None:
    record = {"annotator": 5, "text": "t", "id": 4, "topic": "a", "annotation_id": 8, "lead_time": 1.0}
    assert rows(read_export({"x": [record]})) == Counter({(4, 5, "a"): 1})
    ambiguous = {"id": 4, "text": "t", "topic": "a", "annotator": 5, "annotation_id": 8, "lead_time": 1.0}
    with expect_error("several-questions"):
        read_export({"x": [ambiguous]})
    assert rows(read_export({"x": [ambiguous]}, question="topic")) == Counter({(4, 5, "a"): 1})


def test_a_task_that_comes_twice_is_refused() -> None:
    once = task([choice("spam")])
    with expect_error("malformed-export"):
        read_export({"a": [once], "b": [once]})


def test_annotations_of_old_versions_are_refused() -> None:
    old = {"id": 1, "data": {}, "predictions": [], "completions": [{"result": [choice("spam")]}]}
    with expect_error("malformed-export"):
        read_export({"votes": [old]})


def test_a_field_of_the_data_may_be_called_completions() -> None:
    held = {"completions": ["text"], "id": 1, "topic": "spam", "annotator": 7, "annotation_id": 3, "lead_time": 1.5}
    assert rows(read_export({"votes": [held]})) == Counter({(1, 7, "spam"): 1})
