"""Argilla's exports, as its SDK wrote them, against the responses that were put in."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from dhkappa import DataError
from dhkappa.inputs.readers import first_record, read_records
from dhkappa.inputs.readers.argilla import read_export, recognize
from dhkappa.inputs.tables import Source
from expect import expect_error

FILES = Path(__file__).parents[3] / "exports" / "argilla"
GIVEN = runpy.run_path(str(FILES / "make_argilla.py"))
YES, NO, MAYBE = GIVEN["YES"], GIVEN["NO"], GIVEN["MAYBE"]
FIRST = GIVEN["ANNOTATORS"][0]

Row = tuple[Any, ...]


def read(name: str, **options: Any) -> Source:
    return read_export(read_records(FILES / name), **options)


def votes_of(export: Source) -> list[Row]:
    assert list(export.votes) == ["item", "annotator", "label"]
    return list(zip(*export.votes.values(), strict=True))


def given_votes(signs: tuple[str, ...]) -> list[Row]:
    """Return the responses with some statuses."""
    return [
        (item, annotator, vote[0])
        for item, _, _, _, *votes in GIVEN["REVIEWS"]
        for annotator, vote in zip(GIVEN["ANNOTATORS"], votes, strict=True)
        if vote is not None and vote[1] in signs
    ]


ITEMS = {
    "item": ["007", "008", "r-3", "r-4", "r-5", "r-6", "r-7", "r-8"],
    "gpt": [YES, NO, None, None, None, None, MAYBE, None],
    "rule 9": [None, None, None, None, NO, None, None, None],
    "rule 10": [None, None, MAYBE, None, None, None, None, None],
    "suggestion": [None, None, None, YES, None, None, None, None],
    "suggestion item": [None, None, None, None, None, None, None, NO],
}


def test_flat_columns_tell_drafts_and_discarded_responses_from_votes() -> None:
    export = read("flat.json")
    assert export.tool == "Argilla"
    assert votes_of(export) == given_votes(("",))
    assert len(given_votes(("",))) == 13
    assert export.skipped == {"draft responses": 3, "discarded responses": 1}
    assert export.labelers == ("gpt", "rule 9", "rule 10", "suggestion", "suggestion item")
    assert export.items == ITEMS


@pytest.mark.parametrize("name", ["nested.json", "nested.jsonl"])
def test_nested_records_have_no_status_so_that_every_response_is_a_vote(name: str) -> None:
    export = read(name)
    assert votes_of(export) == given_votes(("", "~", "!"))
    assert (export.skipped, export.items) == ({}, ITEMS)
    assert "drafts" in export.cautions[0]


def test_a_status_in_nested_records_counts() -> None:
    records = read_records(FILES / "nested.json")
    for record, row in zip(records["nested"], GIVEN["REVIEWS"], strict=True):
        signs = [vote[1] for vote in row[4:] if vote]
        for response, sign in zip(record["responses"].get("sentiment", []), signs, strict=True):
            response["status"] = GIVEN["STATUS"][sign]
    assert read_export(records) == read("flat.json")


def test_some_votes_by_hand() -> None:
    votes = votes_of(read("flat.json"))
    assert [vote for vote in votes if vote[0] in ("008", "r-3", "r-6", "r-7")] == [
        ("008", "00000000-0000-0000-0000-000000000007", 'says "no" \\ לא'),
        ("008", "00000000-0000-0000-0000-000000000008", 'says "no" \\ לא'),
        ("r-3", "00000000-0000-0000-0000-000000000007", "neutral"),
        ("r-3", "00000000-0000-0000-0000-000000000009", "positive 😀"),
        ("r-7", "00000000-0000-0000-0000-000000000008", "neutral"),
        ("r-7", "00000000-0000-0000-0000-000000000009", "positive 😀"),
    ]


@pytest.mark.parametrize("name", ["survey.json", "survey_flat.json"])
class TestSurvey:
    def test_a_rating_is_a_label(self, name: str) -> None:
        export = read(name, question="stars")
        assert votes_of(export) == [("a", FIRST, 4), ("b", FIRST, 5), ("c", FIRST, 1)]
        assert export.items == {"item": ["a", "b", "c"], "gpt": [3, 3, 3]}

    def test_several_questions_ask_which(self, name: str) -> None:
        with pytest.raises(DataError) as caught:
            read(name)
        assert caught.value.code == "several-questions"
        assert "'order', 'parts', 'stars', 'topics', 'why'" in caught.value.message

    @pytest.mark.parametrize(
        ("question", "code"),
        [
            ("star", "question-not-found"),
            (
                "xyz",
                "question-not-found",
            ),
            ("topics", "several-labels"),
            ("order", "several-labels"),
            ("parts", "not-a-label"),
            ("why", "no-item-labels"),
        ],
    )
    def test_what_is_no_label_says_what_to_do(self, name: str, question: str, code: str) -> None:
        with pytest.raises(DataError) as caught:
            read(name, question=question)
        assert caught.value.code == code

    def test_lists_of_one_label_are_labels(self, name: str) -> None:
        (records,) = read_records(FILES / name).values()
        export = read_export({"a": records[:1], "c": records[2:]}, question="topics")
        assert votes_of(export) == [("a", FIRST, "sport"), ("c", FIRST, "news")]
        assert export.items == {"item": ["a", "c"], "gpt": ["news", "news"]}


def test_suggestions_that_became_numbers_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        read("datasets.jsonl")
    assert caught.value.code == "malformed-export"


@pytest.mark.parametrize("path", sorted(FILES.glob("*.json*")), ids=lambda path: path.name)
def test_every_export_is_recognized(path: Path) -> None:
    record = first_record(path)
    assert record is not None
    assert recognize(record)


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "text": "a table of votes", "label": "yes", "annotator": "ana"},
        {"id": 1, "text": "doccano", "label": ["yes"], "Comments": []},
        {"id": 1, "data": {"text": "Label Studio"}, "annotations": [], "predictions": []},
        {"text": "Prodigy", "label": "yes", "answer": "accept", "_input_hash": 1, "_task_hash": 2},
        {"fields": {"text": "an older Argilla"}, "responses": [], "suggestions": []},
        {"item": 1, "responses": 3, "fields": "some"},
        {},
    ],
)
def test_other_records_are_not_recognized(record: dict[str, Any]) -> None:
    assert not recognize(record)


def flat(**columns: Any) -> dict[str, Any]:
    return {"id": "1", **{f"q.{name.replace('_', '.')}": value for name, value in columns.items()}}


def nested(suggestions: Any, responses: Any) -> dict[str, Any]:
    return {"id": "1", "fields": {}, "suggestions": {"q": suggestions}, "responses": {"q": responses}}


def test_agents_on_the_same_items_are_labelers_side_by_side() -> None:
    gpt = nested({"value": "a", "agent": "gpt"}, [{"value": "a", "user_id": "u"}, {"value": "b", "user_id": "u"}])
    rule = nested({"value": "b", "agent": "rule"}, [])
    export = read_export({"first": [gpt], "second": [rule]})
    assert export.items == {"item": ["1"], "gpt": ["a"], "rule": ["b"]}
    assert votes_of(export) == [("1", "u", "a"), ("1", "u", "b")]  # twice on one item: others report it


def test_responses_without_a_value_are_counted() -> None:
    export = read_export({"x": [flat(responses=[None, [], "", "a"], responses_users=["u", "v", "w", "x"])]})
    assert votes_of(export) == [("1", "x", "a")]
    assert export.skipped == {"responses without a value": 3}


def test_whole_numbers_and_a_label_of_200_characters_are_labels() -> None:
    longest = "x" * 200
    export = read_export({"x": [flat(suggestion=longest, responses=[longest], responses_users=["u"])]})
    assert (votes_of(export), export.labelers) == ([("1", "u", longest)], ("suggestion",))
    export = read_export({"x": [flat(suggestion=3.0, responses=[4.0], responses_users=["u"])]})
    assert (votes_of(export), export.items["suggestion"]) == ([("1", "u", 4)], [3])


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({**flat(responses=["a"]), "id": None}, "malformed-export"),
        ({**flat(responses=["a"]), "id": [2]}, "not-a-label"),
        ({"id": "1", "text": "a"}, "malformed-export"),
        (flat(responses=["a", "b"], responses_users=["u"]), "malformed-export"),
        (flat(responses="['a']", responses_users="['u']"), "malformed-export"),
        (flat(responses=3), "malformed-export"),
        (nested("a", []), "malformed-export"),
        (nested({}, ["a"]), "malformed-export"),
        (nested({"value": 0.5}, []), "not-a-label"),
        (nested({"value": [1, 2]}, []), "not-a-label"),
    ],
)
def test_records_that_argilla_does_not_write(record: dict[str, Any], code: str) -> None:
    with pytest.raises(DataError) as caught:
        read_export({"x": [json.loads(json.dumps(record))]})
    assert caught.value.code == code


def test_an_agent_with_two_labels_for_an_item() -> None:
    twice = [nested({"value": label, "agent": "gpt"}, []) for label in ("a", "b")]
    with expect_error("conflicting-suggestions"):
        read_export({"x": twice})


@pytest.mark.parametrize("absent", [None, {}])
@pytest.mark.parametrize("part", ["suggestions", "fields", "responses"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_part_that_is_null_or_absent_takes_no_votes_with_it(part: str, place: int, absent: Any) -> None:
    held = [
        {**nested({"value": "a", "agent": "gpt"}, [{"value": "a", "user_id": "u"}]), "id": str(n)} for n in range(3)
    ]
    if absent is None:
        held[place][part] = None
    else:
        del held[place][part]
    export = read_export({"x": held})
    given = [str(n) for n in range(3) if (part, n) != ("responses", place)]
    assert votes_of(export) == [(item, "u", "a") for item in given]
    assert export.items["gpt"] == [None if (part, n) == ("suggestions", place) else "a" for n in range(3)]
    if part != "fields":
        assert recognize(held[place])


def test_records_of_two_forms_are_refused() -> None:
    held = [nested({}, [{"value": "a", "user_id": "u"}]), {"id": "2", "responses": [{"values": {"q": {"value": "a"}}}]}]
    with expect_error("malformed-export"):
        read_export({"x": held})
