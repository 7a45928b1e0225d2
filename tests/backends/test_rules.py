"""Label rules on any engine give what the same data give if they are cleaned by hand before."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import dhkappa
from engines import Engine, each
from expect import expect_error
from shapes import FORMATS, Votes, drawn, of_lists

WIDE_SPAM = "\uff53\uff50\uff41\uff4d"  # in full-width letters
DIRTY = (
    "Ham",
    "ham",
    " ham",
    "HAM ",
    "spam",
    "Spam",
    WIDE_SPAM,
    "news  room",
    "news room",
    "na ",
    "x",
    "2",
    "2.0",
    " ",
)
DIRTY_COLUMNS = ("ham", " ham", "ham ", "spam", "news  room", "news room", "x", "2", "2.0", "y")
ALL = ("case", "spaces", "unicode", "numbers")
OPTIONS: dict[str, Any] = {"normalize": ALL, "map": {"X": "ham"}, "missing": ["NA"]}


def tidy(label: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", label).split())


def cleaned(made: Votes) -> Votes:
    """Return the votes cleaned by hand, in the spelling that most votes have, ties by name."""
    voted = Counter(tidy(label) for row in made.votes for label in row if label)
    suggested = {tidy(label) for column in made.suggested.values() for label in column if label}

    def clean(label: Any) -> Any:
        text = tidy(label or "")
        if text.lower() in ("", "na"):
            return None
        if text.lower() in ("x", "ham"):
            return "ham"  # as map writes it
        same = [one for one in {*voted, *suggested} if one.lower() == text.lower() or {text, one} == {"2", "2.0"}]
        return min(same, key=lambda one: (-voted[one], one.casefold(), one))

    def each_of(row: Any) -> list[Any]:
        return [clean(label) for label in row]

    labels = {name: each_of(column) for name, column in made.suggested.items()}
    return replace(made, votes=[each_of(row) for row in made.votes], suggested=labels)


def dirty(layout: str, seed: int = 0) -> Votes:
    alphabet = DIRTY_COLUMNS if layout == "counted-wide" else DIRTY
    return drawn(n=80, N=9 if layout == "wide-many" else 4, seed=seed, alphabet=alphabet)


@each("layout", FORMATS, few=("wide", "long-items"))
def test_rules_equal_cleaning_by_hand(engine: Engine, layout: str) -> None:
    made = dirty(layout)
    data, keywords = made.shape(layout).given(engine)
    expected = of_lists(cleaned(made).votes, cleaned(made).suggested)
    found = dhkappa.Dataset(data, ["llm", "rule"], **keywords, **OPTIONS)
    assert found.tally() == expected
    assert found.categories == expected.categories
    audit, other = dhkappa.audit(found), dhkappa.audit(expected)
    for who in ("llm", "rule"):
        assert audit.kappas[who].exact == other.kappas[who].exact
        assert audit.kappas[who].confidence_interval() == other.kappas[who].confidence_interval()
    assert {"labels-normalized", "labels-mapped"} <= {note.code for note in audit.notes}


@each("layout", ("wide", "wide-many", "long", "long-items"), few=("long",))
def test_review_and_annotators_equal_cleaning_by_hand(engine: Engine, layout: str) -> None:
    made = dirty(layout, seed=1)
    audits = []
    for votes, options in ((made, OPTIONS), (cleaned(made), {})):
        data, keywords = votes.shape(layout).given(engine)
        audits.append(dhkappa.audit(data, "llm", **{"item": "id"} | keywords, **options))
    for table in ("review", "annotators", "categories", "confusion"):
        assert getattr(audits[0], table)("llm").to_json() == getattr(audits[1], table)("llm").to_json()
    compared = [audit.annotator_comparison("llm").table.to_json() for audit in audits]
    assert compared[0] == compared[1]


@each("layout", FORMATS, few=("wide",))
def test_declared_categories_keep_their_spelling(engine: Engine, layout: str) -> None:
    made = dirty(layout)
    data, keywords = made.shape(layout).given(engine)
    given = [*cleaned(made).categories, "never"]
    declared = [label.upper() for label in given]
    found = dhkappa.tally(data, "llm", **keywords, **OPTIONS | {"map": {"x": "HAM"}}, categories=declared)
    assert found.categories == tuple(declared)

    def upper(row: Any) -> list[Any]:
        return [label and label.upper() for label in row]

    clean = cleaned(made)
    votes, llm = [upper(row) for row in clean.votes], upper(clean.suggested["llm"])
    assert found == of_lists(votes, llm, categories=declared)


LONG: dict[str, list[Any]] = {
    "item": [1, 1, 1, 2, 2, 2, 3, 3],
    "who": ["Ada", "ben", "ada ", "Ada", "ben", "cy", "ada ", "BEN"],
    "label": ["a", "a", "b", "b", "a", "b", "a", "a"],
    "llm": ["a", "a", "A", "b", "b", "B ", "a", "a"],
}
ROLES: dict[str, Any] = {"item": "item", "label": "label", "annotator": "who", "normalize": ("case", "spaces")}


@pytest.mark.parametrize("keep", ["first", "last"])
def test_merged_annotators_obey_duplicates(engine: Engine, keep: str) -> None:
    table = engine.table(LONG)
    with expect_error("duplicate-votes", "duplicates"):
        dhkappa.dh_kappa(table, "llm", **ROLES)
    if engine.in_memory:
        found = dhkappa.audit(table, "llm", duplicates=keep, **ROLES)
        first = ["a", "a", "b", "a", "b", "a", "a"] if keep == "first" else ["b", "a", "b", "a", "b", "a", "a"]
        lists = [first[:2], first[2:5], first[5:]]
        assert found.kappas["llm"].exact == dhkappa.dh_kappa(lists, ["a", "b", "a"]).exact
        assert found.annotators().column("annotator") == ["Ada", "ben", "cy"]
        assert "annotators-normalized" in {note.code for note in found.notes}


def test_a_suggested_label_in_two_spellings_is_one_label_of_its_item(engine: Engine) -> None:
    table = engine.table(LONG | {"who": ["a", "b", "c", "a", "b", "c", "a", "b"]})
    with expect_error("item-column-varies"):
        dhkappa.dh_kappa(table, "llm", **ROLES | {"normalize": "case"})
    found = dhkappa.dh_kappa(table, "llm", **ROLES).exact
    assert found == dhkappa.dh_kappa([["a", "a", "b"], ["b", "a", "b"], ["a", "a"]], ["a", "b", "a"]).exact


def test_numbers_and_text_become_one(engine: Engine) -> None:
    columns: dict[str, Any] = {
        "x": ["1", "2", "3.0", "4"],
        "y": [1, 2, 3, 1],
        "z": ["1.0", "02", "3", "1"],
        "llm": [1, 2, 3, 4],
    }
    table = engine.table(columns)
    roles: dict[str, Any] = {"annotators": ["x", "y", "z"]}
    with expect_error("mixed-label-types"):
        dhkappa.dh_kappa(table, "llm", **roles)
    found = dhkappa.dh_kappa(table, "llm", normalize="numbers", **roles)
    lists = [[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 1, 1]]
    assert found.exact == dhkappa.dh_kappa(lists, [1, 2, 3, 4]).exact


def test_many_names_of_annotators(engine: Engine) -> None:
    names = [f"{'A' if place % 3 else 'a'}nn {place // 2}" for place in range(400)]
    item = [place % 2 * 1000 + place // 2 % 50 for place in range(400)]
    columns: dict[str, Any] = {"item": item, "who": names, "label": [*"abba"] * 100}
    items = engine.table({"item": sorted(set(item)), "llm": [*"abab"] * 25})
    roles: dict[str, Any] = {"item": "item", "label": "label", "annotator": "who", "items": items}
    found = dhkappa.audit(engine.table(columns), "llm", normalize="case", **roles)
    assert len(found.annotators()) == 200
    lists = [
        [label for place, label in zip(item, columns["label"], strict=True) if place == one]
        for one in sorted(set(item))
    ]
    assert found.kappas["llm"].exact == dhkappa.dh_kappa(lists, [*"abab"] * 25).exact
