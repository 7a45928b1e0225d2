"""Label rules: keys and spellings, what is missing after them, matrices, annotators, errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dhkappa
from dhkappa.core.label_rules import label_rules
from dhkappa.core.labels import SourceNote
from expect import expect_error

VOTES = [["Bug", "bug", "BUG "], ["bug", "pay", "Pay"], ["pay", "pay", "pay"]]
LABELS = ["bug", "pay", "pay"]


def spelled(votes: dict[Any, int], *normalize: str, known: tuple[Any, ...] = (), **more: Any) -> dict[Any, Any]:
    rules = label_rules(normalize, more.get("map"))
    assert rules is not None
    return rules.spellings(votes, known)


@pytest.mark.parametrize(
    ("rules", "votes", "expected"),
    [
        ("case", {"A": 1, "a": 2}, {"A": "a", "a": "a"}),
        ("case", {"A": 2, "a": 2}, {"A": "A", "a": "A"}),
        ("case", {"STRASSE": 1, "straße": 2}, {"STRASSE": "straße", "straße": "straße"}),
        ("spaces", {" a  b\t": 1, "a b": 1, " ": 5}, {" a  b\t": "a b", "a b": "a b", " ": None}),
        ("spaces", {"A": 1, "a": 1}, {"A": "A", "a": "a"}),
        ("unicode", {"a\u200bb": 1, "ab": 2, "\ufeffab": 1}, {"a\u200bb": "ab", "ab": "ab", "\ufeffab": "ab"}),
        ("unicode", {"a\u2013b": 1, "a-b": 1, "a\u2011b": 1}, {"a\u2013b": "a-b", "a-b": "a-b", "a\u2011b": "a-b"}),
        ("unicode", {"a\u00a0b": 1, "a b": 1, "\u22121": 1}, {"a\u00a0b": "a b", "a b": "a b", "\u22121": "-1"}),
        ("unicode", {"\ufb01": 1, "fi": 1, "e\u0301": 1}, {"\ufb01": "fi", "fi": "fi", "e\u0301": "\u00e9"}),
        (
            "numbers",
            {"3": 1, "3.0": 2, 3: 1, "03.": 1, "3a": 1},
            {"3": "3.0", "3.0": "3.0", 3: "3.0", "03.": "3.0", "3a": "3a"},
        ),
        (
            "numbers",
            {"-1": 1, "1": 1, "+1": 1, "0": 1, "-0.0": 1},
            {"-1": "-1", "1": "1", "+1": "1", "0": "0", "-0.0": "0"},
        ),
    ],
)
def test_spellings(rules: str, votes: dict[Any, int], expected: dict[Any, Any]) -> None:
    assert spelled(votes, rules) == expected


def test_known_spellings_come_first_then_those_of_the_map() -> None:
    votes = {"bug": 9, "BUG": 1, "1": 1, "Pay": 3, "2": 1}
    found = spelled(votes, "case", known=("BUG",), map={"1": "bug", "2": "PAY"})
    assert found == {"bug": "BUG", "BUG": "BUG", "1": "BUG", "Pay": "PAY", "2": "PAY"}


def test_a_map_is_applied_once() -> None:
    assert spelled({"a": 1, "b": 1, "c": 1}, map={"a": "b", "b": "c"}) == {"a": "b", "b": "c", "c": "c"}


def test_labels_keep_their_type() -> None:
    assert dhkappa.dh_kappa([[True, False], [True, True]], [True, True], normalize="case").categories == (False, True)
    assert dhkappa.dh_kappa([[1, 2], [1, 1]], [1, 1], map={"2": 5}).categories == (1, 5)
    with expect_error("mixed-label-types"):
        dhkappa.dh_kappa([[1, 2], [1, 1]], [1, 1], map={2: "1"})


def test_counts_of_merged_columns_are_added() -> None:
    counts = np.array([[255, 200, 0], [0, 1, 3]], np.uint8)
    expected = dhkappa.dh_kappa(counts=[[455, 0], [1, 3]], suggested=["a", "b"], categories=["a", "b"])
    names = ["a", "A", "b"]
    for given in ({"counts": counts, "categories": names}, {"counts": pd.DataFrame(counts, columns=names)}):
        found = dhkappa.dh_kappa(suggested=["A", "b"], map={"A": "a"}, **given)
        assert (found.exact, found.categories) == (expected.exact, ("a", "b"))
    frame = pd.DataFrame(counts, columns=names)
    assert dhkappa.dh_kappa(counts=frame, suggested=["A", "b"], normalize="case").exact == expected.exact


def test_missing_is_about_new_labels() -> None:
    found = dhkappa.dh_kappa([["a", "x"], ["a", "b"]], ["a", "b"], map={"x": "NA"}, missing=["NA"])
    assert found.exact == dhkappa.dh_kappa([["a", None], ["a", "b"]], ["a", "b"]).exact
    assert found.excluded.one_vote == 1


def test_nothing_to_change_gives_no_note() -> None:
    found = dhkappa.dh_kappa(VOTES, LABELS, normalize=["unicode", "numbers"])
    assert not {"labels-normalized", "labels-mapped"} & {note.code for note in found.notes}
    assert found.exact == dhkappa.dh_kappa(VOTES, LABELS).exact


def test_tallies_keep_the_first_spelling_and_the_notes(tmp_path: Any) -> None:
    tally = dhkappa.Tally()
    tally.update([["Bug", "Bug"]], ["bug"], normalize="case", map={"absent": "x"})
    tally.update([["bug", "bug"], ["BUG", "pay"]], ["bug", "pay"], normalize="case")
    assert tally.categories == ("Bug", "pay")
    tally.save(tmp_path / "tally.json")
    loaded = dhkappa.Tally.load(tmp_path / "tally.json")
    assert loaded == tally
    assert "labels-normalized" in {note.code for note in dhkappa.dh_kappa(loaded).notes}


def test_every_function_takes_rules() -> None:
    rules: dict[str, Any] = {"normalize": ["case", "spaces"]}
    clean = [[label.strip().lower() for label in row] for row in VOTES]
    assert dhkappa.fleiss_kappa(VOTES, **rules).exact == dhkappa.fleiss_kappa(clean).exact
    both = {"x": LABELS, "y": ["pay", "Pay", "bug"]}
    found = dhkappa.compare(VOTES, both, rng=1, **rules)
    expected = dhkappa.compare(clean, {"x": LABELS, "y": ["pay", "pay", "bug"]}, rng=1)
    assert found.differences.to_json() == expected.differences.to_json()
    assert "labels-normalized" in {note.code for note in found.notes}
    assert dhkappa.audit(VOTES, LABELS, **rules).kappas["labeler"].exact == dhkappa.dh_kappa(clean, LABELS).exact
    planned = dhkappa.plan(0.1, VOTES, LABELS, **rules)
    assert planned.items == dhkappa.plan(0.1, clean, LABELS).items
    with expect_error("option-with-dataset"):
        dhkappa.dh_kappa(dhkappa.Dataset(VOTES, LABELS), normalize="case")


def test_wide_columns_of_one_annotator() -> None:
    table = pd.DataFrame(
        {"ann_1": ["a", None, "b"], "ann_1 ": [None, "b", None], "ann_2": [*"abb"], "suggested": [*"abb"]}
    )
    found = dhkappa.audit(table, normalize="spaces")
    assert found.annotators().column("annotator") == ["ann_1", "ann_2"]
    assert next(iter(found.kappas.values())).n_votes == 6
    twice = table.assign(**{"ann_1 ": [*"bbb"]})
    with expect_error("duplicate-votes", "duplicates"):
        dhkappa.audit(twice, normalize="spaces")
    for keep, votes in (("first", [[*"aa"], [*"bb"], [*"bb"]]), ("last", [[*"ba"], [*"bb"], [*"bb"]])):
        kappa = dhkappa.dh_kappa(twice, normalize="spaces", duplicates=keep)
        assert kappa.exact == dhkappa.dh_kappa(votes, [*"abb"]).exact


def test_a_source_note_is_text_with_a_code() -> None:
    note = SourceNote("labels-mapped", "Text.")
    copy = pickle.loads(pickle.dumps(note))
    assert (copy, copy.code) == ("Text.", "labels-mapped")
