"""Filters on any engine give what the same data give if the plain rows are filtered before."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import dhkappa
from dhkappa.inputs.conditions import Condition
from engines import ENGINES, NEAR, Engine, each, only
from expect import expect_error
from shapes import FORMATS, Shape, Votes, drawn_for, of_lists

Test = Callable[[dict[str, Any]], bool]

LANGUAGES = ("en", "de", None, "fr", "EN", "en ")
BESIDE: dict[str, Callable[[int], Any]] = {
    "language": lambda place: LANGUAGES[place % 6],
    "score": lambda place: None if place % 7 == 3 else place / 8,
    "written": lambda place: (
        None if place % 11 == 5 else ("", f"{place / 8}", f"{place}e-1")[min(place, 1 + place % 2)]
    ),
    "n": lambda place: None if place % 7 == 2 else place - 10,
    "day": lambda place: None if place % 5 == 4 else f"2026-01-{1 + place:02d}",
    "at": lambda place: f"2026-01-{1 + place:02d}" + ("", "T10:30", " 10:30:15", "T10:30:15.25")[place % 4],
    "sent": lambda place: f"2026-01-{1 + place:02d}T10:30:15" + ("Z", "+00:00", ".5Z")[place % 3],
    "flag": lambda place: (True, False, None)[place % 3],
}


def known(name: str, test: Callable[[Any], bool]) -> Test:
    return lambda row: row[name] not in (None, "") and test(row[name])


CASES: dict[str, Test] = {
    "language=en": known("language", lambda value: value == "en"),
    "language=en,de": known("language", lambda value: value in ("en", "de")),
    "language!=en": known("language", lambda value: value != "en"),
    "language!=en,fr": known("language", lambda value: value not in ("en", "fr")),
    "language=": lambda row: row["language"] is None,
    "language!=": lambda row: row["language"] is not None,
    "language=de,": lambda row: row["language"] in ("de", None),
    "score>=1.5": known("score", lambda value: value >= 1.5),
    "score<1.5": known("score", lambda value: value < 1.5),
    "score=1.5,2": known("score", lambda value: value in (1.5, 2)),
    "written>=1.5": known("written", lambda value: float(value) >= 1.5),
    "written<1.5": known("written", lambda value: float(value) < 1.5),
    "n>2.5": known("n", lambda value: value > 2.5),
    "n<=3": known("n", lambda value: value <= 3),
    "n=3,4.0,5.5": known("n", lambda value: value in (3, 4)),
    "n!=3": known("n", lambda value: value != 3),
    "day>=2026-01-10": known("day", lambda value: value >= "2026-01-10"),
    "day=2026-01-10,2026-01-11": known("day", lambda value: value in ("2026-01-10", "2026-01-11")),
    "at=2026-01-10": lambda row: row["at"][:10] == "2026-01-10",
    "at>2026-01-10": lambda row: row["at"][:10] > "2026-01-10",
    "at<=2026-01-18T10:30": lambda row: row["at"].replace("T", " ") <= "2026-01-18 10:30",
    "at<2026-01-19 10:30:15": lambda row: row["at"].replace("T", " ") < "2026-01-19 10:30:15",
    "sent>=2026-01-11T10:30:15Z": lambda row: row["sent"].replace("Z", "+00:00") >= "2026-01-11T10:30:15+00:00",
    "sent<2026-01-11T12:30:15+02:00": lambda row: row["sent"][:10] < "2026-01-11",
    "flag=true": lambda row: row["flag"] is True,
    "flag!=true": lambda row: row["flag"] is False,
}


def beside(n: int) -> dict[str, list[Any]]:
    return {name: [of(place) for place in range(n)] for name, of in BESIDE.items()}


def with_columns(made: Votes, layout: str) -> Shape:
    """Write votes in a format, with the item columns next to the suggested labels."""
    shape, columns = made.shape(layout), beside(len(made.items))
    if shape.items is not None:
        return replace(shape, items={**shape.items, **columns})
    place = {item: at for at, item in enumerate(made.items)}
    at = [place[item] for item in shape.columns["id"]]
    return replace(
        shape, columns={**shape.columns, **{name: [own[one] for one in at] for name, own in columns.items()}}
    )


def chosen(made: Votes, *tests: Test) -> tuple[Votes, list[int]]:
    """Return the items for which all tests hold, and their places."""
    rows = [dict(zip(BESIDE, values, strict=True)) for values in zip(*beside(len(made.items)).values(), strict=True)]
    places = [place for place, row in enumerate(rows) if all(test(row) for test in tests)]
    assert 0 < len(places) < len(rows)
    suggested = {name: [labels[place] for place in places] for name, labels in made.suggested.items()}
    return replace(made, votes=[made.votes[place] for place in places], suggested=suggested), places


def n_votes(made: Votes) -> int:
    return sum(vote is not None and vote == vote for row in made.votes for vote in row)


def opened(engine: Engine, made: Votes, layout: str) -> dhkappa.Dataset:
    data, keywords = with_columns(made, layout).given(engine)
    return dhkappa.Dataset(data, ["llm", "rule"], **(keywords | {"item": "id"}))


@each("text", list(CASES), few=["language=en,de", "written>=1.5"])
def test_filter_equals_plain_rows(engine: Engine, text: str) -> None:
    made = drawn_for("wide")
    left, places = chosen(made, CASES[text])
    found = opened(engine, made, "wide").filter(text)
    assert found.tally() == of_lists(left.votes, left.suggested)
    [one] = found.left_out
    assert (one.n_items, one.n_votes) == (len(made.items) - len(places), n_votes(made) - n_votes(left))
    absent = sum(value in (None, "") for value in beside(len(made.items))[re.split("[<>!=]", text)[0]])
    assert one.n_missing == (0 if "language=" in text and "!" not in text and text[-1] in "=," else absent)


@each("layout", FORMATS, few=["wide", "long-items"])
def test_two_filters_in_every_format(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    left, places = chosen(made, CASES["language!=en"], CASES["written>=1.5"])
    whole = opened(engine, made, layout)
    found = whole.filter("language != en", ("written", ">=", 1.5))
    assert found.tally() == whole.filter("written>=1.5").filter("language!=en").tally()
    assert found.tally() == of_lists(left.votes, left.suggested)
    assert sum(one.n_items for one in found.left_out) == len(made.items) - len(places)
    assert sum(one.n_votes for one in found.left_out) == n_votes(made) - n_votes(left)
    audit, other = dhkappa.audit(found), dhkappa.audit(of_lists(left.votes, left.suggested))
    assert audit.kappas["llm"].exact == other.kappas["llm"].exact
    assert [note.code for note in audit.notes].count("filtered") == 2
    assert {row["item"] for row in audit.review("llm")} <= {made.items[place] for place in places}
    assert whole.tally() == of_lists(made.votes, made.suggested)


@each("layout", ["wide", "wide-many", "long", "long-items"], few=["wide", "long-items"])
def test_excluded_annotators_in_every_format(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    left, _ = chosen(made, CASES["language!=en"])
    votes = [[vote for place, vote in enumerate(row) if place not in (0, 2)] for row in left.votes]
    found = opened(engine, made, layout).exclude_annotators("ann_0", "ann_2").filter("language != en")
    expected = of_lists(votes, left.suggested)
    if layout == "long":  # rows without a vote are left out, too, but these items have no other rows
        assert dhkappa.dh_kappa(found, "llm").exact == dhkappa.dh_kappa(expected, "llm").exact
    assert found.tally() == expected
    assert sum(one.n_votes for one in found.left_out) == n_votes(made) - n_votes(replace(left, votes=votes))
    audit = dhkappa.audit(found)
    assert {row["annotator"] for row in audit.annotators("llm")} == {*made.annotators} - {"ann_0", "ann_2"}
    with expect_error("annotator-not-found", "exclude_annotator"):
        opened(engine, made, layout).exclude_annotators("ann_00").counts  # noqa: B018


VOTE_ROWS: dict[str, list[Any]] = {
    "item": [1, 1, 1, 2, 2, 2, 3, 3, 4, 4],
    "who": [1, 2, 3, 1, 2, 3, 1, 2, 1, 2],
    "label": ["a", "a", "b", "b", "b", "a", "a", "b", "b", "b"],
    "sure": ["0.9", "0.4", "0.7", "0.8", None, "0.6", "0.2", "0.3", "1", "0.50"],
    "language": ["en", "en", "en", "de", "de", "de", "en", "en", "de", "de"],
    "round": ["x", "y", "x", "x", "y", "x", "x", "y", "x", "x"],
}
ITEM_ROWS: dict[str, list[Any]] = {
    "item": [1, 2, 3, 4],
    "suggested": ["a", "b", "a", "b"],
    "language": ["en", "de", "en", "de"],
    "round": ["x", "x", "y", None],
}
ROLES: dict[str, Any] = {"item": "item", "annotator": "who", "label": "label"}


def long_table(engine: Engine, **changed: list[Any]) -> dhkappa.Dataset:
    items = engine.table(ITEM_ROWS)
    return dhkappa.Dataset(engine.table(VOTE_ROWS | changed), "suggested", items=items, **ROLES)


@each("text", ["sure>=0.5", "item=1,2", "language=en", "votes.round=x", "items.round=x"], few=["sure>=0.5"])
def test_rows_of_votes(engine: Engine, text: str) -> None:
    tests: dict[str, Callable[[int], bool]] = {
        "sure>=0.5": lambda row: float(VOTE_ROWS["sure"][row] or 0) >= 0.5,
        "item=1,2": lambda row: VOTE_ROWS["item"][row] in (1, 2),
        "language=en": lambda row: VOTE_ROWS["language"][row] == "en",
        "votes.round=x": lambda row: VOTE_ROWS["round"][row] == "x",
        "items.round=x": lambda row: VOTE_ROWS["item"][row] in (1, 2),
    }
    rows = [row for row in range(10) if tests[text](row)]
    of_items = {"item=1,2": [1, 2], "language=en": [1, 3], "items.round=x": [1, 2]}.get(text, [1, 2, 3, 4])
    votes = [[VOTE_ROWS["label"][row] for row in rows if VOTE_ROWS["item"][row] == item] for item in of_items]
    labels = [ITEM_ROWS["suggested"][item - 1] for item in of_items]
    found = long_table(engine).filter(text)
    assert found.tally() == of_lists(votes, labels, labeler="suggested")
    [one] = found.left_out
    assert (one.n_items, one.n_votes) == (4 - len(of_items), 10 - len(rows))
    assert {problem.code for problem in found.check().problems}.isdisjoint({"ids-not-joined", "annotators-unused"})


@each("text,kept", [("sure=TRUE", 4), ("sure!=true", 5), ("sure!=False", 4)])
def test_truth_values_in_any_case(engine: Engine, text: str, kept: int) -> None:
    known = [True, True, False, True, None, False, False, True, False, False]
    spelled = ["True", "TRUE", "false", "true", "", "FALSE", "False", "true", "false", "False"]
    for values in (known, spelled):
        assert long_table(engine, sure=values).filter(text).counts.patterns.n_votes() == kept


@only(NEAR)
def test_column_that_differs_in_both_tables(engine: Engine) -> None:
    with expect_error("ambiguous-columns", "where"):
        long_table(engine).filter(round="x").counts  # noqa: B018


@each("kind,name", [(kind, name) for kind in (int, float) for name in ("3", "3.0", 3, 3.0)])
def test_annotators_that_are_numbers(engine: Engine, kind: type, name: Any) -> None:
    votes = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]]
    found = long_table(engine, who=[kind(who) for who in VOTE_ROWS["who"]]).exclude_annotators(name)
    assert found.tally() == of_lists(votes, ITEM_ROWS["suggested"], labeler="suggested")
    assert (found.left_out[0].n_items, found.left_out[0].n_votes) == (0, 2)


@each("name", ["Eli", "eli"])
def test_annotators_with_two_spellings(engine: Engine, name: str) -> None:
    who = ["Bo", "Eli", "Ann", "bo", "eli", "Ann", "Bo", "Eli", "bo", "Eli"]
    roles: dict[str, Any] = ROLES | {"items": engine.table(ITEM_ROWS), "normalize": ["case"]}
    whole = dhkappa.Dataset(engine.table(VOTE_ROWS | {"who": who}), "suggested", **roles)
    votes = [["a", "b"], ["b", "a"], ["a"], ["b"]]
    assert whole.exclude_annotators(name).tally() == of_lists(votes, ITEM_ROWS["suggested"], labeler="suggested")


@only(NEAR)
def test_unlisted_items_have_no_value(engine: Engine) -> None:
    items: dict[str, list[Any]] = {name: values[:3] for name, values in ITEM_ROWS.items()}
    table = engine.table(VOTE_ROWS)
    roles: dict[str, Any] = ROLES | {"items": engine.table(items)}
    with expect_error("ids-not-joined"):
        dhkappa.Dataset(table, "suggested", **roles).filter("items.round=x").counts  # noqa: B018
    unlisted = dhkappa.Dataset(table, "suggested", unlisted="unlabeled", **roles)
    assert unlisted.filter("items.round=x").counts.n_items == 2
    assert unlisted.filter("items.round=x,").counts.n_items == 3


@only([engine for engine in ENGINES if engine.name != "dask"])  # which refuses unlisted items
@pytest.mark.parametrize("order", [1, -1])
def test_filters_of_votes_and_items_with_unlisted_items(engine: Engine, order: int) -> None:
    items = {name: values[:3] for name, values in ITEM_ROWS.items()}
    roles: dict[str, Any] = ROLES | {"items": engine.table(items), "unlisted": "unlabeled"}
    table = engine.table({name: values for name, values in VOTE_ROWS.items() if name != "language"})
    found = dhkappa.Dataset(table, "suggested", **roles).filter(*["sure>=0.5", "language=en"][::order])
    assert found.tally() == of_lists([["a", "b"], []], ["a", "a"], labeler="suggested")
    assert sum(one.n_items for one in found.left_out) == 2


@only(NEAR)
def test_text_that_is_no_number(engine: Engine) -> None:
    sure = ["n/a", *VOTE_ROWS["sure"][1:]]
    with expect_error("not-comparable", "where"):
        long_table(engine, sure=sure).filter("sure>0.1").counts  # noqa: B018
    assert long_table(engine, sure=sure).filter("sure!=n/a", "sure>0.1").left_out[1].n_votes == 0


@each("operator", ["=", "!="], few=["="])
@pytest.mark.parametrize("value", ["0.5", 0.5])
def test_equal_numbers_in_text(engine: Engine, operator: str, value: Any) -> None:
    sure = ["0.5", "0.50", "n/a", "5e-1", None, ".5", "0.6", "05", "1", "0.500"]
    rows = [row for row in range(10) if sure[row] and ((row in (0, 1, 3, 5, 9)) == (operator == "="))]
    found = long_table(engine, sure=sure).filter(("sure", operator, value))
    assert found.left_out[0].n_votes == 10 - len(rows)
    assert found.counts.patterns.n_votes() == len(rows)


@only(NEAR)
def test_equal_text_beyond_exact_floats(engine: Engine) -> None:
    sure = [str(2**53 + row) for row in range(10)]
    for value in (2**53, str(2**53), str(2**53 + 1)):
        assert long_table(engine, sure=sure).filter(("sure", "=", value)).left_out[0].n_votes == 9


@only(NEAR)
@pytest.mark.parametrize(
    ("text", "kind"),
    [("a-b-c>0.1", "a number"), ("a-b-c<2026-01-01", "a date"), ("a-b-c<2026-01-01T10:00", "without a time zone")],
)
def test_hint_of_text_that_cannot_be_compared(engine: Engine, text: str, kind: str) -> None:
    rows = {name: values for name, values in VOTE_ROWS.items() if name != "sure"}
    rows["a-b-c"] = ["1,5 m", *(["2025-01-01"] * 9 if "2026" in text else ["1"] * 9)]
    whole = dhkappa.Dataset(engine.table(rows), "suggested", items=engine.table(ITEM_ROWS), **ROLES)
    with expect_error("not-comparable", "where") as caught:
        whole.filter(text).counts  # noqa: B018
    assert kind in caught.value.message
    assert "such as 'a-b-c!=\"1,5 m\"'." in caught.value.hint
    assert whole.filter('a-b-c!="1,5 m"', text).left_out[0].n_votes == 1


@only(NEAR)
@pytest.mark.parametrize(
    ("text", "value", "hint"), [("sure>0.1", "0,5", "decimal point"), ("sure<2026-01-01", "05.10.2026", "2026-11-09")]
)
def test_hint_of_numbers_and_dates_in_another_format(engine: Engine, text: str, value: str, hint: str) -> None:
    with expect_error("not-comparable", "where") as caught:
        long_table(engine, sure=[value] * 10).filter(text).counts  # noqa: B018
    assert hint in caught.value.hint


@only(NEAR)
def test_values_that_no_row_has_are_said(engine: Engine) -> None:
    for text, absent in (("language=en,xx", ("xx",)), ("language!=xx", ("xx",)), ("language=en,de", ())):
        [found] = long_table(engine).filter(text).left_out
        assert found.absent == absent
        assert ("No row has 'xx'." in found.note) == bool(absent)
    numbers = long_table(engine, sure=[0.5] * 9 + [0.25]).filter("sure=0.5,0.75").left_out[0]
    assert numbers.absent == ("0.75",)


@only(NEAR)
def test_an_annotator_without_votes_after_a_filter_can_be_left_out(engine: Engine) -> None:
    found = long_table(engine).filter("votes.round=y").exclude_annotators(3)
    assert [one.n_votes for one in found.left_out] == [7, 0]
    with expect_error("nothing-left", "where") as error:
        long_table(engine).filter("sure>7").exclude_annotators(3).counts  # noqa: B018
    assert "sure>7" in str(error.value)


LARGE: list[str | None] = [
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "7.5",
    "007",
    "123456789012345678901",
]
LARGE += ["999999999999999999", "0009007199254740994", None, "1e20"]


@each("text", ["sure<9007199254740993", "sure>=9007199254740993", "sure<=-9007199254740993", "sure<999999999999999999"])
def test_integers_that_floats_round(engine: Engine, text: str) -> None:
    condition = Condition.parse(text)
    sign, number = condition.operator, condition.values[0]
    tests: dict[str, Callable[[Fraction], bool]] = {
        "<": lambda value: value < int(number),
        "<=": lambda value: value <= int(number),
        ">=": lambda value: value >= int(number),
    }
    rows = [row for row, value in enumerate(LARGE) if value is not None and tests[sign](Fraction(value))]
    found = long_table(engine, sure=LARGE).filter(text)
    assert found.left_out[0].n_votes == 10 - len(rows)
    votes = [[VOTE_ROWS["label"][row] for row in rows if VOTE_ROWS["item"][row] == item] for item in (1, 2, 3, 4)]
    assert found.tally() == of_lists(votes, ITEM_ROWS["suggested"], labeler="suggested")


@only(NEAR)
def test_integers_of_many_digits_are_refused(engine: Engine) -> None:
    with expect_error("invalid-filter", "where"):
        long_table(engine, sure=LARGE).filter("sure<1000000000000000000").counts  # noqa: B018


@only(NEAR)
def test_filter_that_leaves_nothing(engine: Engine) -> None:
    for text in ("language=EN", "sure>7", "item=9"):
        with expect_error("nothing-left", "where"):
            dhkappa.audit(long_table(engine).filter(text))
    with expect_error("nothing-left", "where") as caught:
        long_table(engine).filter("language=en", "language=de").counts  # noqa: B018
    assert "holds 'en' after the filters before it." in caught.value.message
    with expect_error("nothing-left", "where") as caught:
        long_table(engine, sure=[0.5, 0.75] * 5).filter("sure>1").counts  # noqa: B018
    assert "holds values from 0.5 to 0.75." in caught.value.message


@only(NEAR)
def test_items_without_a_name_keep_their_place(engine: Engine) -> None:
    columns: dict[str, list[Any]] = {
        "ann_1": list("aabb"),
        "ann_2": list("abab"),
        "suggested": list("abab"),
        "n": [1, 2, 3, 4],
    }
    found = dhkappa.Dataset(engine.table(columns)).filter("n>2")
    names = {row["item"] for row in dhkappa.audit(found).review()}
    assert names == ({2, 3} if engine.in_memory else {0, 1})


def test_arrays_and_counts() -> None:
    votes = np.array([["a", "b", "a"], ["b", "b", "a"], ["a", "a", "a"]])
    labels = ["a", "b", "a"]
    whole = dhkappa.Dataset(votes, labels)
    assert whole.exclude_annotators("1").tally() == dhkappa.tally(votes[:, [0, 2]], labels)
    assert whole.exclude_annotators(0).exclude_annotators(1, 1).tally() == dhkappa.tally(votes[:, [2]], labels)
    for wrong in (votes.tolist(), None):
        counts: dict[str, Any] = {} if wrong else {"counts": [[2, 1], [1, 2], [3, 0]], "categories": ["a", "b"]}
        with expect_error("annotators-unknown", "exclude_annotator"):
            dhkappa.Dataset(wrong, labels, **counts).exclude_annotators(0).counts  # noqa: B018
    with expect_error("filter-needs-table", "where"):
        whole.filter(language="en").counts  # noqa: B018
    with expect_error("nothing-left", "exclude_annotator"):
        whole.exclude_annotators(0, 1, 2).counts  # noqa: B018


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_dates_and_times(library: str) -> None:
    import datetime as dt

    moments = [dt.datetime(2026, 1, 1 + place, 10, 30) for place in range(6)]
    zoned = [moment.replace(tzinfo=dt.UTC) for moment in moments]
    columns: dict[str, Any] = {"item": list(range(6)), "ann_1": list("aabbab"), "ann_2": list("abbbab")}
    columns |= {"suggested": list("ababab"), "day": [moment.date() for moment in moments[:5]] + [None]}
    berlin = [moment.astimezone(ZoneInfo("Europe/Berlin")) for moment in zoned]
    columns |= {"at": moments, "zoned": zoned, "berlin": berlin}
    pa = pytest.importorskip("pyarrow")
    table: Any = pa.table(columns)
    if library == "pandas":
        table = pytest.importorskip("pandas").DataFrame(columns)
    elif library == "polars":
        table = pytest.importorskip("polars").DataFrame(columns)
    elif library == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        held = table
        table = duckdb.sql("FROM held")
        assert held is not None
    whole = dhkappa.Dataset(table)
    cases: dict[Any, list[int]] = {
        "day>=2026-01-03": [2, 3, 4],
        "day<2026-01-03T12:00": [0, 1, 2],
        "day!=2026-01-03": [0, 1, 3, 4],
        "day=2026-01-03,": [2, 5],
        ("day", ">", dt.date(2026, 1, 3)): [3, 4],
        "at=2026-01-03,2026-01-04": [2, 3],
        "at<=2026-01-03": [0, 1, 2],
        "at>2026-01-03": [3, 4, 5],
        "at>=2026-01-03 10:30": [2, 3, 4, 5],
        ("at", ">", dt.datetime(2026, 1, 3, 10, 30)): [3, 4, 5],
        "zoned<2026-01-03T10:30": [0, 1],
        "zoned<=2026-01-03T12:30+02:00": [0, 1, 2],
        "zoned=2026-01-03": [2],
        "berlin>=2026-01-03T10:30Z": [2, 3, 4, 5],
        "berlin!=2026-01-03,2026-01-04": [0, 1, 4, 5],
    }
    for case, places in cases.items():
        found = whole.filter(case)
        kept = [[columns[name][place] for name in ("ann_1", "ann_2")] for place in places]
        expected = dhkappa.tally(kept, {"suggested": [columns["suggested"][place] for place in places]})
        assert found.tally() == expected, case
    with expect_error("mixed-time-zones"):
        whole.filter("at<2026-01-03T10:30Z").counts  # noqa: B018


@pytest.mark.parametrize("library", ["pandas", "objects"])
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "America/Argentina/Buenos_Aires", "UTC", "Asia/Tokyo"])
def test_times_in_any_zone(library: str, zone: str) -> None:
    pandas = pytest.importorskip("pandas")
    at = pandas.date_range("2026-01-01 22:30", periods=6, freq="D", tz="UTC").tz_convert(zone)
    columns: dict[str, Any] = {"item": list(range(6)), "ann_1": list("aabbab"), "ann_2": list("abbbab")}
    columns |= {"suggested": list("ababab"), "at": at.astype(object) if library == "objects" else at}
    table = pandas.DataFrame(columns)
    cases = {"at>=2026-01-03": [2, 3, 4, 5], "at=2026-01-03": [2], "at<2026-01-03T22:30Z": [0, 1]}
    for case, places in cases.items():
        kept = [[columns[name][place] for name in ("ann_1", "ann_2")] for place in places]
        expected = dhkappa.tally(kept, {"suggested": [columns["suggested"][place] for place in places]})
        assert dhkappa.Dataset(table).filter(case).tally() == expected, case


@only(NEAR)
def test_audit_without_an_annotator(engine: Engine) -> None:
    made = drawn_for("long-items")
    whole = opened(engine, made, "long-items")
    before, after = dhkappa.audit(whole, rng=1), dhkappa.audit(whole.exclude_annotators("ann_1"), rng=1)
    found = before.without("ann_1")
    for row in found.table:
        name = row["labeler"]
        assert row["kappa"] == before.kappas[name].value
        assert row["kappa_without"] == after.kappas[name].value
        assert row["change"] == after.kappas[name].value - before.kappas[name].value
        assert row["items_lost"] == before.kappas[name].n_items - after.kappas[name].n_items
        assert row["votes_lost"] == before.kappas[name].n_votes - after.kappas[name].n_votes > 0
        assert (row["verdict"], row["verdict_without"]) == (before.verdict(name).code, after.verdict(name).code)
    assert (found.fleiss, found.fleiss_without) == (before.fleiss.value, after.fleiss.value)
    assert found.annotators == ("ann_1",)
    with expect_error("annotator-not-found"):
        before.without("ann_9")
    with expect_error("single-votes"):
        before.without("ann_0", "ann_1", "ann_2")


def test_audit_of_a_tally_without_an_annotator() -> None:
    with expect_error("annotators-unknown"):
        dhkappa.audit(dhkappa.tally([["a", "b"], ["a", "a"]], ["a", "b"])).without("eli")


def test_copy_of_an_audit_has_no_data() -> None:
    votes = np.array([["a", "a", "b"], ["b", "b", "b"]] * 20)
    whole = dhkappa.audit(votes, ["a", "b"] * 20)
    for found in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        with expect_error("audit-detached"):
            found.without(1)
    assert whole.without(1).fleiss_without == dhkappa.audit(votes[:, [0, 2]], ["a", "b"] * 20).fleiss.value


def test_audit_without_an_annotator_counts_no_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"ann_1": [*"aab"] * 9, "ann_2": [*"abb"] * 9, "ann_3": [*"aba"] * 9})
    table = table.with_columns(suggested=pl.col("ann_1"), language=pl.col("ann_2"))
    teams = pl.DataFrame({"annotator": ["ann_1", "ann_2", "ann_3"], "team": ["x", "x", "y"]})
    allow = ["labels-from-votes", "looks-clustered", "annotators-equal"]
    found = dhkappa.audit(table, slices=["language", "team"], annotators_table=teams, allow=allow)
    assert (found.slice_columns, found.annotator_columns) == (("language",), ("team",))
    monkeypatch.setattr("dhkappa.inputs.slices.slices_of_table", None)
    monkeypatch.setattr("dhkappa.inputs.annotator_table.annotator_columns", None)
    without = found.without("ann_2")
    assert without.fleiss_without == dhkappa.audit(table.drop("ann_2", "language"), allow=allow).fleiss.value


@only(NEAR)
def test_filter_that_leaves_only_unlisted_items(engine: Engine) -> None:
    items = {name: values[:3] for name, values in ITEM_ROWS.items()}
    roles: dict[str, Any] = ROLES | {"items": engine.table(items), "unlisted": "unlabeled"}
    table = engine.table({name: values for name, values in VOTE_ROWS.items() if name != "language"})
    with expect_error("nothing-left", "where"):
        dhkappa.Dataset(table, "suggested", **roles).filter("language=").counts  # noqa: B018
