"""Tallies add up, keep their categories, and survive a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import DataError, Tally, dh_kappa, fleiss_kappa, tally
from dhkappa.core import tally as tally_module
from strategies import Data, ragged

VOTES = [["a", "a"], ["a", "b"], ["b", "b", None], []]
LABELS = ["a", "b", None, "c"]


def test_repr_and_sizes() -> None:
    counts = tally(VOTES, LABELS)
    assert repr(counts) == "Tally(4 items, 6 votes, 3 categories, 4 patterns)"
    assert (counts.n_items, counts.n_votes, len(counts), counts.categories) == (4, 6, 4, ("a", "b", "c"))
    assert repr(Tally()) == "Tally(0 items, 0 votes, 0 categories, 0 patterns)"


def test_update_by_chunks_equals_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally_module, "BLOCK", 8)
    rng = np.random.default_rng(5)
    grid, labels = rng.integers(0, 9, (500, 3)), rng.integers(0, 12, 500)
    chunked = Tally()
    for first in range(0, 500, 7):
        chunked.update(grid[first : first + 7], labels[first : first + 7])
    assert chunked == tally(grid, labels)
    assert dh_kappa(chunked).exact == dh_kappa(grid, labels).exact


@pytest.mark.parametrize("here", [[["a", "b"]], [[1, 2]], [[0, 2]]], ids=repr)
def test_columns_without_names_are_no_categories_of_another_name(here: list[list[Any]]) -> None:
    counts = tally(here, None)
    before = counts.copy()
    with pytest.raises(DataError, match="counts has no names for its columns, and this tally counts"):
        counts.update(counts=[[2, 0], [1, 1]])
    assert counts == before
    counts.update(counts=np.zeros((0, 0), int))
    assert counts == before


@pytest.mark.parametrize("here", [[[0, 1]], [[1, 1]], [[0, 1, 2]], [[False, True]]], ids=repr)
def test_columns_without_names_are_numbers_from_0(here: list[list[Any]]) -> None:
    counts = tally(here, None)
    counts.update(counts=[[2, 0], [1, 1]])
    assert counts == tally([*here, [0, 0], [0, 1]], None)


def test_adding_unites_categories_and_changes_neither() -> None:
    one, other = tally([["a", "b"]], ["b"]), tally([["c", "a", "c"]], ["d"])
    before = one.copy(), other.copy()
    assert (one + other).categories == ("a", "b", "c", "d")
    assert one + other == other + one == tally([["a", "b"], ["c", "a", "c"]], ["b", "d"])
    assert (one, other) == before
    assert one + Tally() == one
    assert sum([one, other], Tally()) == sum([one, other]) == one + other


def test_a_declared_order_holds_where_it_covers_both() -> None:
    declared = tally([["low", "high"]], ["low"], categories=["low", "mid", "high"])
    found = tally([["mid", "high"]], ["low"])
    assert (declared + found).categories == (found + declared).categories == ("low", "mid", "high")
    assert (declared + found).declared
    assert (declared + declared).declared
    wider = declared + tally([["none", "high"]], ["low"])
    assert wider.categories == ("high", "low", "mid", "none")
    assert not wider.declared
    reverse = tally([["low", "high"]], ["low"], categories=["high", "mid", "low"])
    assert (declared + reverse).categories == (reverse + declared).categories == ("high", "low", "mid")
    assert dh_kappa(declared + reverse).n_votes == 4


def test_adding_refuses_what_only_one_reads_as_missing() -> None:
    reads = tally([["NA", "x"]], ["x"], missing=["NA"])
    with pytest.raises(DataError, match="reads 'NA' as missing"):
        reads + tally([["NA", "x"]], ["x"])
    with pytest.raises(DataError, match="reads 'NA' as missing"):
        tally([["NA", "x"]], ["x"]) + reads
    assert (reads + tally([["x", "x"]], ["x"])).n_votes == 3


def test_equality() -> None:
    assert tally([["a", "b"]], ["a"]) == tally([["b", "a"]], ["a"])
    assert tally([["a", "b"]], ["a"]) != tally([["a", "b"]], ["b"])
    assert tally([["a", "b"]], ["a"]) != tally([["a", "b"]] * 2, ["a"] * 2)
    assert tally([["a", "b"]], ["a"]) != tally([["a", "b"]], ["a"], categories=["a", "b", "c"])
    assert tally([["a", "b"]], ["a"]) != "a tally"
    with pytest.raises(TypeError):
        hash(Tally())
    with pytest.raises(TypeError):
        Tally() + 1  # type: ignore[operator]


def test_a_result_keeps_the_tally_as_it_was() -> None:
    counts = tally([["a", "b"], ["a", "a"]], ["a", "b"])
    kappa = dh_kappa(counts)
    counts.update([["a", "a"]], ["a"])
    assert kappa.n_items == kappa.sample.n == 2
    assert len(kappa.bootstrap(99, rng=1).values) <= 99
    assert dh_kappa(counts).exact != kappa.exact


def test_without_labels_only_fleiss() -> None:
    counts = tally([["a", "b"], ["a", "a"], ["b", "b"]])
    assert fleiss_kappa(counts).exact == fleiss_kappa([["a", "b"], ["a", "a"], ["b", "b"]]).exact
    assert dh_kappa(counts).dropped.no_label == 3


@settings(max_examples=50, deadline=None)
@given(ragged(), st.booleans())
def test_a_file_brings_back_the_same_tally(
    tmp_path_factory: pytest.TempPathFactory, data: Data, declared: bool
) -> None:
    path = tmp_path_factory.mktemp("tally") / "t.json"
    categories = data.categories if declared else None
    counts = tally(data.votes, data.suggested, categories=categories)
    counts.save(path)
    again = Tally.load(path)
    assert again == counts
    assert repr(again.categories) == repr(counts.categories)
    assert again.declared == counts.declared
    again.save(path.with_name("u.json"))
    assert path.with_name("u.json").read_bytes() == path.read_bytes()


def test_a_file_is_readable_json(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    tally([["a", "a"], ["b", "a"], ["a", "b"], []], ["a", "\u2603", "\u2603", None], missing=["NA"]).save(path)
    written = json.loads(path.read_text())
    assert written == {
        "format": "dhkappa-tally",
        "version": 1,
        "categories": ["a", "b", "\u2603"],
        "declared": [],
        "missing": ["NA"],
        "items": 4,
        "votes": 6,
        "patterns": [
            {"suggested": None, "votes": [], "items": 1},
            {"suggested": "a", "votes": [["a", 2]], "items": 1},
            {"suggested": "\u2603", "votes": [["a", 1], ["b", 1]], "items": 2},
        ],
    }
    assert len(path.read_text().splitlines()) == 12


def test_a_loaded_tally_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    tally([["a", "NA", "a"]], ["a"], missing=["NA"]).save(path)
    again = Tally.load(path)
    again.update([["b", "NA", "b"]], ["a"])
    assert again.n_votes == 4


def test_every_label_type_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    for votes in ([[1, -(10**40)]], [[True, False]], [["\ud800", "\x00"]], [["<script>", "\N{PILE OF POO}"]]):
        counts = tally(votes, [votes[0][0]])
        counts.save(path)
        assert repr(Tally.load(path).categories) == repr(counts.categories)
        assert Tally.load(path) == counts


def test_empty_tallies_add_up() -> None:
    assert Tally() + Tally() == Tally()
    assert sum([Tally(), Tally(), Tally()]) == Tally()
    assert (Tally() + Tally(["a"])).categories == ("a",)
    assert Tally() + tally(VOTES, LABELS) == tally(VOTES, LABELS) + Tally()


def test_strata_that_cannot_stand_together_leave_the_tally_as_it_was(tmp_path: Path) -> None:
    counts = tally([["a", "a"], ["a", "b"]], ["a", "b"], strata=["1", "1"])
    other = tally([["a", "a"]], ["a"], strata=[1])
    with pytest.raises(DataError, match=r"^strata hold both 1 and '1'"):
        counts.update([["a", "a"]], ["a"], strata=[1])
    with pytest.raises(DataError, match=r"^strata hold both 1 and '1'"):
        counts + other
    counts.save(tmp_path / "tally.json")
    assert Tally.load(tmp_path / "tally.json") == tally([["a", "a"], ["a", "b"]], ["a", "b"], strata=["1", "1"])


@pytest.mark.parametrize("strata", [None, [0]])
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[[1, 2]]", "[[true, 2]]", "True is not among its categories"),
        ("[[1, 2]]", "[[1.0, 2]]", "1.0 is not among its categories"),
        ('"items": 1}', '"items": 1, "weight": 3}', "has 'weight', which the file says nothing of"),
        ('"items": 1}', '"items": 1, "note": 3}', "has 'note', which the file says nothing of"),
    ],
)
def test_a_file_that_says_what_would_be_passed_over(
    tmp_path: Path, strata: list[int] | None, old: str, new: str, sentence: str
) -> None:
    path = tmp_path / "tally.json"
    tally([[1, 1]], [2], strata=strata).save(path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=sentence):
        Tally.load(path)


def test_a_stratum_that_is_written_in_another_way(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    tally([[1, 1]], [2], strata=[0]).save(path)
    path.write_text(path.read_text().replace('"stratum": 0', '"stratum": false'))
    with pytest.raises(DataError, match="False is not among its strata"):
        Tally.load(path)
