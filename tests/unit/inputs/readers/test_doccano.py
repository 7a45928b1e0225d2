"""doccano's exports, as its server wrote them, against the votes that were given to it."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from dhkappa import DataError
from dhkappa.inputs.readers import first_record, read_records
from dhkappa.inputs.readers.doccano import read_export, recognize
from dhkappa.inputs.tables import Source
from expect import expect_error

FILES = Path(__file__).parents[3] / "exports" / "doccano"
GIVEN = runpy.run_path(str(FILES / "make_doccano.py"))
YES, NO, MAYBE = GIVEN["YES"], GIVEN["NO"], GIVEN["MAYBE"]

Row = tuple[Any, ...]


def read(name: str, **options: Any) -> Source:
    return read_export(read_records(FILES / f"{name}.zip"), **options)


def votes_of(export: Source) -> list[Row]:
    """Return the votes in an order of their own: a zip holds its files in any."""
    assert list(export.votes) == ["item", "annotator", "label"]
    return sorted(zip(*export.votes.values(), strict=True))


def items_of(export: Source) -> list[Row]:
    assert tuple(export.items) == ("item", *export.labelers)
    return sorted(zip(*export.items.values(), strict=True), key=repr)


def given_votes(*, approved: bool = False) -> list[Row]:
    return sorted(
        (item, annotator, vote)
        for item, _, _, _, *votes in GIVEN["REVIEWS"]
        for annotator, vote in zip(GIVEN["ANNOTATORS"], votes, strict=True)
        if vote is not None and (not approved or item in GIVEN["APPROVED"][annotator])
    )


@pytest.mark.parametrize("name", ["reviews", "reviews_json", "unshared"])
def test_votes_and_suggested_labels_are_those_given_to_the_server(name: str) -> None:
    export = read(name)
    assert export.tool == "doccano"
    assert votes_of(export) == given_votes()
    assert len(given_votes()) == 12 * 3 - 7
    assert export.labelers == ("suggested_llm", "suggested_rule")
    assert items_of(export) == sorted(((row[0], row[2], row[3]) for row in GIVEN["REVIEWS"]), key=repr)
    # 12 documents in the files of three annotators and of the project's admin, who labels nothing
    assert export.skipped == {"documents without a label": 12 * 4 - 29}


def test_some_votes_by_hand() -> None:
    votes = votes_of(read("reviews"))
    assert [vote for vote in votes if vote[0] in ("007", "r-4", "r-5", "r-8")] == [
        ("007", "ana", "positive 😀"),
        ("007", "ben.k", "positive 😀"),
        ("007", "zoe_3", "positive 😀"),
        ("r-4", "ana", "positive 😀"),
        ("r-4", "ben.k", 'says "no" \\ לא'),
        ("r-4", "zoe_3", "neutral"),
        ("r-8", "ben.k", "neutral"),
        ("r-8", "zoe_3", "positive 😀"),
    ]


def test_only_approved_documents() -> None:
    export = read("reviews_approved")
    assert votes_of(export) == given_votes(approved=True)
    assert [row[0] for row in items_of(export)] == ["007", "008", "r-12", "r-5"]
    assert export.skipped == {"documents without a label": 1}  # ana approved r-5 without a label; admin's file is empty


def test_numbers_of_the_server_are_ids_and_imported_labels_are_votes_of_the_importer() -> None:
    export = read("plain")
    assert votes_of(export) == sorted(
        [(13, "ana", YES), (13, "ben.k", YES), (14, "ana", NO), (14, "ben.k", NO), (15, "admin", MAYBE)]
    )
    assert items_of(export) == [(13, "1"), (14, "2"), (15, "1")]  # suggested as numbers, where labels are text
    assert export.labelers == ("suggested",)


def test_intents_are_labels_of_whole_documents_beside_spans() -> None:
    export = read("intents")
    assert votes_of(export) == [(20, "ana", NO), (20, "ben.k", YES)]
    assert (export.labelers, items_of(export)) == ((), [(20,), (21,)])


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("shared", "malformed-export"),
        ("shared_approved", "malformed-export"),
        ("several", "several-labels"),
        ("spans", "no-item-labels"),
        ("relations", "no-item-labels"),
    ],
)
def test_what_holds_no_votes_says_what_to_do(name: str, code: str) -> None:
    with pytest.raises(DataError) as caught:
        read(name)
    assert caught.value.code == code


@pytest.mark.parametrize("path", sorted(FILES.glob("*.zip")), ids=lambda path: path.stem)
def test_every_export_is_recognized(path: Path) -> None:
    record = first_record(path)
    assert record is not None
    assert recognize(record)


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "text": "a table of votes", "label": "yes", "annotator": "ana"},
        {"id": 1, "text": "a table", "label": None},
        {"id": 1, "label": ["yes"]},
        {"text": "no id", "label": ["yes"]},
        {"id": 1, "data": {"text": "Label Studio"}, "annotations": [], "predictions": []},
        {"text": "Prodigy", "label": "yes", "answer": "accept", "_input_hash": 1, "_task_hash": 2},
        {"id": "a", "text": "Argilla", "label.responses": ["yes"], "label.responses.users": ["u"]},
        {},
    ],
)
def test_other_records_are_not_recognized(record: dict[str, Any]) -> None:
    assert not recognize(record)


def test_one_annotators_file_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "ana.b.jsonl"
    lines = [{"id": "1", "text": "x", "label": ["a"]}, {"id": "1", "text": "x", "label": ["b"]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    export = read_export(read_records(path))
    assert votes_of(export) == [("1", "ana.b", "a"), ("1", "ana.b", "b")]  # twice on one item: others report it
    assert (items_of(export), export.skipped) == ([("1",)], {})


def test_an_annotator_called_all_among_others() -> None:
    records = {name: [{"id": 1, "text": "x", "label": ["a"]}] for name in ("all", "ana")}
    assert votes_of(read_export(records)) == [(1, "all", "a"), (1, "ana", "a")]


def test_an_empty_label_is_none_and_true_is_no_number() -> None:
    document = {"id": 1, "text": "x", "label": [""], "suggested_a": True, "suggested_b": 2.0, "suggestedly": "no"}
    export = read_export({"ana": [document, {**document, "id": 2, "suggested_a": "", "label": ["a"]}]})
    assert votes_of(export) == [(2, "ana", "a")]
    assert export.items == {"item": [1, 2], "suggested_a": [True, None], "suggested_b": ["2", "2"]}
    assert export.skipped == {"documents without a label": 1}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"text": "x", "label": []}, "malformed-export"),
        ({"id": "", "text": "x", "label": []}, "malformed-export"),
        ({"id": [1], "text": "x", "label": []}, "not-a-label"),
        ({"id": 1, "text": "x", "label": "a"}, "no-item-labels"),
        (
            {"id": 1, "label": [], "suggested": ["a"]},
            "not-a-label",
        ),
        ({"id": 7, "label": [], "suggested": "b"}, "conflicting-suggestions"),
    ],
)
def test_documents_that_doccano_does_not_write(document: dict[str, Any], code: str) -> None:
    first = {"id": 7, "text": "x", "label": ["a"], "suggested": "a"}
    with pytest.raises(DataError) as caught:
        read_export({"ben": [first], "ana": [document]})
    assert caught.value.code == code


def test_there_is_no_question_to_choose() -> None:
    with expect_error("question-not-found"):
        read("reviews", question="label")
