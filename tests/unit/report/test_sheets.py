"""Tables for reviewers and annotators."""

import dhkappa
from dhkappa.report.sheets import next_sheet, review_sheet

VOTES = [["a", "a", "a"], ["b", "b", "b"], ["b", "b", "a"], ["a", "a", "b"], ["a", "b", "c"], ["c", "b", None]]
FOUND = dhkappa.audit(VOTES, ["a"] * 6)


def test_the_columns_and_words_of_a_review_sheet() -> None:
    sheet = review_sheet(FOUND.review())
    assert " ".join(sheet.names) == "item suggested votes n_votes majority agreement why new_label comment"
    words = dict(zip(sheet.column("item"), sheet.column("why"), strict=True))
    assert words == {
        "0": "all 3 votes for the label",
        "1": "all 3 votes for 'b'",
        "2": "2 of 3 votes for 'b'",
        "3": "2 of 3 votes for the label",
        "4": "votes split: 1 of 3 for the label",
        "5": "votes split: 0 of 2 for the label",
    }
    agreement = dict(zip(sheet.column("item"), sheet.column("agreement"), strict=True))
    assert agreement == {"0": 1, "1": 0, "2": 0.33, "3": 0.67, "4": 0.33, "5": 0}
    assert {*sheet.column("new_label"), *sheet.column("comment")} == {None}


def test_details_have_two_decimals() -> None:
    queue = FOUND.review()
    sheet = review_sheet(queue, details=True)
    assert sheet.names[-6:] == ("tie", "majority_share", "differential", "contribution", "influence", "kappa_without")
    for name in ("contribution", "influence"):
        assert sheet.column(name) == [round(value, 2) for value in queue.column(name)]
        assert "-0.0" not in map(str, sheet.column(name))


def with_columns(table: dhkappa.Table, **more: list[str]) -> dhkappa.Table:
    columns = {name: table.column(name) for name in table.names}
    return dhkappa.Table({"item": columns.pop("item"), **more, **columns}, shown=more)


def test_other_columns_stay_behind_the_item() -> None:
    more = {"text": [*"uvwxyz"], "comment": [*"UVWXYZ"]}
    sheet = review_sheet(with_columns(FOUND.review(), **more))
    assert sheet.names[:4] == ("item", "text", "item_comment", "suggested")
    assert sheet.column("text") == [*"uvwxyz"]
    assert sheet.column("item_comment") == [*"UVWXYZ"]
    assert sheet.column("comment") == [None] * 6


def test_other_columns_are_not_taken_for_what_reviewers_fill_in() -> None:
    more = {name: [*"uvwxyz"] for name in ("label", "annotator", "new_label")}
    for sheet in (
        review_sheet(with_columns(FOUND.review(), **more)),
        next_sheet(with_columns(FOUND.next_votes(), **more)),
    ):
        assert sheet.names[:4] == ("item", "item_label", "item_annotator", "item_new_label")
        assert all(sheet.column(name) == [None] * 6 for name in more if name in sheet.names)


def test_a_list_for_annotators_does_not_tell_the_label() -> None:
    sheet = next_sheet(with_columns(FOUND.next_votes(limit=6), text=[*"uvwxyz"]))
    assert " ".join(sheet.names) == "item text n_votes votes reason label annotator"
    assert sheet.column("label") == sheet.column("annotator") == [None] * 6
