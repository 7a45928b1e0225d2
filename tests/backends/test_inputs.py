"""Votes that are removed, ids that do not join and blanks that mean missing, on every engine."""

from typing import Any

import pytest

import dhkappa
from engines import Engine
from expect import expect_error
from shapes import of_lists

TWICE = {
    "item": ["x", "x", "x", "y", "y"],
    "annotator": ["p", "q", "p", "p", "q"],
    "label": ["a", "a", "b", "b", "b"],
    "suggested_llm": ["a", "a", "a", "b", "b"],
}
ONCE = {name: [*values[:2], *values[3:]] for name, values in TWICE.items()}


def test_removed_votes_are_counted_and_named(engine: Engine) -> None:
    data = dhkappa.Dataset(engine.table(TWICE), duplicates="first")
    assert data.table is not None
    if not data.table.votes.has_row_order:
        with expect_error("no-row-order", "duplicates"):
            data.tally()
        return
    removed = data.table.removed
    assert removed is not None
    assert (removed.n, removed.n_before, removed.kept, removed.examples) == (1, 5, "first", (("x", "p"),))
    assert {note.code for note in dhkappa.dh_kappa(data).notes} >= {"duplicates-removed"}
    assert data.tally() == of_lists([["a", "a"], ["b", "b"]], ["a", "b"])
    clean = dhkappa.Dataset(engine.table(ONCE), duplicates="last")
    assert "duplicates-removed" not in {note.code for note in dhkappa.dh_kappa(clean).notes}


def test_ids_that_differ_only_in_case(engine: Engine) -> None:
    votes = {name: values for name, values in ONCE.items() if name != "suggested_llm"}
    items = engine.table({"item": ["X", "y"], "suggested": ["a", "b"]})
    with expect_error("ids-not-joined", "items") as caught:
        dhkappa.dh_kappa(engine.table(votes), items=items)
    assert "case is ignored: 'x' and 'X'" in caught.value.hint


@pytest.mark.parametrize("form", ["wide", "long"])
def test_a_blank_can_mean_missing(engine: Engine, form: str) -> None:
    wide: dict[str, list[Any]] = {
        "ann_1": ["a", " ", "b"],
        "ann_2": ["a", "b", " "],
        "ann_3": ["b", "b", "b"],
        "suggested": ["a", " ", "b"],
    }
    columns = wide
    if form == "long":
        cells = [(item, who, wide[who][item], wide["suggested"][item]) for item in range(3) for who in [*wide][:3]]
        names = ("item", "annotator", "label", "suggested")
        columns = {name: [cell[place] for cell in cells] for place, name in enumerate(names)}
    found = dhkappa.dh_kappa(engine.table(columns), missing=[" "])
    expected = dhkappa.dh_kappa([["a", "a", "b"], ["b", "b"], ["b", "b"]], ["a", None, "b"])
    assert (found.exact, found.n_votes, found.excluded) == (expected.exact, expected.n_votes, expected.excluded)
    assert " " in dhkappa.tally(engine.table(columns)).categories
