"""Bad data ends in one sentence that names the argument, the rule and what came."""

import datetime
import os
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhkappa import DataError, Tally, dh_kappa, fleiss_kappa, simulate, tally

VOTES = [["a", "a"], ["a", "b"], ["b", "b"]]
LABELS = ["a", "b", "b"]
COUNTS = [[2, 0], [1, 1], [0, 2]]


class Colour(Enum):
    RED = 1


CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("lengths differ", {"data": VOTES, "suggested": ["a"]}, ["votes has 3 items", "suggested has 1 label"]),
    ("lengths differ, counts", {"counts": COUNTS, "suggested": [0]}, ["counts has 3 items", "suggested has 1 label"]),
    ("votes 1-D", {"data": np.array([1, 2, 3]), "suggested": [1, 2, 3]}, ["votes must be 2-D", "shape (3,)"]),
    ("votes 3-D", {"data": np.zeros((2, 2, 2), int), "suggested": [1, 2]}, ["votes must be 2-D", "(2, 2, 2)"]),
    ("flat list", {"data": ["a", "b"], "suggested": ["a", "b"]}, ["votes must be 2-D", "item 0 is 'a'"]),
    ("no such file", {"data": "abc", "suggested": LABELS}, ["abc"]),
    ("a set of votes", {"data": [{"a", "b"}], "suggested": ["a"]}, ["votes must be 2-D", "item 0"]),
    ("a dict", {"data": {"a": 1}, "suggested": ["a"]}, ["votes must be an array or a list", "dict"]),
    ("suggested a name", {"data": VOTES, "suggested": "a"}, ["suggested must be an array or a list", "'a'"]),
    ("suggested 2-D", {"data": VOTES, "suggested": np.zeros((3, 1), int)}, ["suggested must hold one label", "(3, 1)"]),
    ("transposed", {"data": [["a", "b"]], "suggested": LABELS[:2]}, ["votes has 1 item", "did you mean votes.T?"]),
    ("suggested a dict", {"data": VOTES, "suggested": {"llm": LABELS}}, ["one labeler's labels", "compare"]),
    ("codes like names", {"counts": COUNTS, "suggested": [1, 1, 1], "categories": ["1", "2"]}, ["both 1 and '1'"]),
    ("suggested absent", {"data": VOTES}, ["suggested is absent", "fleiss_kappa"]),
    ("nothing", {}, ["pass either votes or counts="]),
    ("both", {"data": VOTES, "counts": COUNTS, "suggested": LABELS}, ["pass either votes or counts="]),
    (
        "negative",
        {"counts": [[2, -1]], "suggested": [0]},
        ["counts must be whole", "item 0, column 1 is -1", "negative"],
    ),
    ("fraction", {"counts": [[2, 0.5]], "suggested": [0]}, ["counts must be whole", "0.5", "fractional"]),
    ("NaN count", {"counts": [[2, np.nan]], "suggested": [0]}, ["counts must be whole", "missing", "Write 0"]),
    ("infinite count", {"counts": [[2, np.inf]], "suggested": [0]}, ["counts must be whole", "inf"]),
    ("huge count", {"counts": [[2, 2**40]], "suggested": [0]}, ["too large"]),
    ("huge total", {"counts": [[2**31 - 1, 1]], "suggested": [0]}, ["2,147,483,647 votes on one item"]),
    ("text counts", {"counts": [["x", "y"]], "suggested": [0]}, ["counts must hold numbers"]),
    ("None in counts", {"counts": [[None, {}]], "suggested": [0]}, ["counts must hold numbers"]),
    ("ragged counts", {"counts": [[1, 2], [3]], "suggested": [0, 1]}, ["counts must be 2-D", "different lengths"]),
    ("counts 1-D", {"counts": [1, 2], "suggested": [0, 1]}, ["counts must be 2-D", "(2,)"]),
    ("no one in B", {"counts": COUNTS, "suggested": [[1, 0], [0, 0], [0, 1]]}, ["exactly one 1", "row 1 is 0, 0"]),
    ("two ones in B", {"counts": COUNTS, "suggested": [[1, 0], [1, 1], [0, 1]]}, ["exactly one 1", "row 1 is 1, 1"]),
    ("a two in B", {"counts": COUNTS, "suggested": [[2, 0], [1, 0], [0, 1]]}, ["exactly one 1", "row 0 is 2, 0"]),
    ("shape of B", {"counts": COUNTS, "suggested": [[1, 0, 0]] * 3}, ["shape of counts (3, 2)", "(3, 3)"]),
    ("fraction in B", {"counts": COUNTS, "suggested": [[0.5, 0.5]] * 3}, ["suggested must be whole", "0.5"]),
    ("code too high", {"counts": COUNTS, "suggested": [1, 2, 1]}, ["suggested holds 2", "2 columns", "from 0 to 1"]),
    ("negative code", {"counts": COUNTS, "suggested": [-1, 0, 1]}, ["suggested holds -1", "from 0 to 1"]),
    ("labels unnamed", {"counts": COUNTS, "suggested": LABELS}, ["'a'", "no names for its columns", "categories="]),
    ("names too few", {"counts": COUNTS, "suggested": LABELS, "categories": ["a"]}, ["2 columns", "names 1"]),
    (
        "vote not declared",
        {"data": VOTES, "suggested": LABELS, "categories": ["a", "c"]},
        ["votes holds 'b'", "declared categories 'a', 'c'"],
    ),
    (
        "label not declared",
        {"data": VOTES, "suggested": ["a", "b", "z"], "categories": ["a", "b"]},
        ["suggested holds 'z'", "declared categories 'a', 'b'"],
    ),
    (
        "label not declared, counts",
        {"counts": COUNTS, "suggested": ["a", "b", "z"], "categories": ["a", "b"]},
        ["suggested holds 'z'", "declared categories 'a', 'b'"],
    ),
    ("1 and '1'", {"data": [[1, 1], ["1", 2]], "suggested": [1, 2]}, ["both 1 and '1'", "look the same"]),
    ("1 and '1' apart", {"data": [[1, 1], [2, 2]], "suggested": ["1", "2"]}, ["both 1 and '1'"]),
    (
        "1 declared, '1' came",
        {"data": [["1", "1"]], "suggested": ["1"], "categories": [1, 2]},
        ["both 1 and '1'"],
    ),
    ("True and 'True'", {"data": [[True, True]], "suggested": ["True"]}, ["both True and 'True'"]),
    ("fractional label", {"data": [[1.5, 2.0]], "suggested": [2]}, ["votes holds 1.5", "a label is"]),
    ("fractional array", {"data": np.array([[1.5, 2.0]]), "suggested": [2]}, ["votes holds 1.5", "fractional"]),
    ("infinite label", {"data": np.array([[np.inf, 2.0]]), "suggested": [2]}, ["votes holds inf", "a label is"]),
    ("infinity in a list", {"data": [[float("inf")]], "suggested": [2]}, ["votes holds inf", "a label is"]),
    ("Decimal", {"data": [[1, Decimal(1)]], "suggested": [2]}, ["votes holds Decimal('1')", "at item 0"]),
    ("a list as label", {"data": [["a", "b"], ["a", ["b"]]], "suggested": ["a", "a"]}, ["['b']", "at item 1"]),
    ("a list as label, ragged", {"data": [["a"], ["a", ["b"]]], "suggested": ["a", "a"]}, ["['b']", "a label is"]),
    ("bytes", {"data": np.array([[b"a", b"b"]]), "suggested": ["a"]}, ["votes holds values of type |S1"]),
    ("dates", {"data": np.array([["2020-01-01"]], "M8[D]"), "suggested": ["a"]}, ["datetime64[D]"]),
    ("date objects", {"data": [[datetime.date(2020, 1, 1)]], "suggested": ["a"]}, ["datetime.date", "a label is"]),
    ("complex", {"data": np.array([[1j, 2]]), "suggested": [1]}, ["complex128"]),
    ("structured", {"data": np.zeros((1, 2), [("x", int)]), "suggested": [1]}, ["a label is"]),
    (
        "categories text",
        {"data": VOTES, "suggested": LABELS, "categories": "ab"},
        ["categories must be a list", "'ab'"],
    ),
    ("categories number", {"data": VOTES, "suggested": LABELS, "categories": 3}, ["categories must be a list", "3"]),
    ("category twice", {"data": VOTES, "suggested": LABELS, "categories": ["a", "a"]}, ["'a' twice"]),
    (
        "category None",
        {"data": VOTES, "suggested": LABELS, "categories": ["a", None]},
        ["categories holds None, which is read as missing"],
    ),
    ("category a list", {"data": VOTES, "suggested": LABELS, "categories": [["a"]]}, ["categories holds ['a']"]),
    ("missing a number", {"data": VOTES, "suggested": LABELS, "missing": 3}, ["missing must be a list of labels"]),
    ("missing a list of lists", {"data": VOTES, "suggested": LABELS, "missing": [[]]}, ["missing must be a list"]),
    ("tally and more", {"data": Tally(), "suggested": LABELS, "missing": ["x"]}, ["leave out suggested and missing"]),
]


@pytest.mark.parametrize(("arguments", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_dh_kappa_says_what_is_wrong(arguments: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        dh_kappa(**arguments)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message
    assert len(message) < 400


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(DataError) as caught:
        dh_kappa([["x" * 10_000, "y"]], ["y"], categories=["y"])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_items": -1}, "n_items must be a whole number"),
        ({"n_items": 1, "categories": []}, "categories must name a category"),
        ({"n_items": 1, "prevalence": [1, 2]}, "prevalence must be 3 numbers"),
        ({"n_items": 1, "prevalence": [0, 0, 0]}, "prevalence must be 3 numbers"),
        ({"n_items": 1, "prevalence": [1, -1, 1]}, "prevalence must be 3 numbers"),
        ({"n_items": 1, "accuracy": 1.2}, "accuracy must be between 0 and 1: got 1.2"),
        ({"n_items": 1, "labelers": {"x": float("nan")}}, "labelers must be between 0 and 1"),
        ({"n_items": 1, "missing": -0.1}, "missing must be between 0 and 1"),
        ({"n_items": 1, "annotators": -2}, "annotators"),
        ({"n_items": 1, "annotators": "three"}, "annotators"),
        ({"n_items": 1, "labelers": ["x"]}, "labelers must map"),
        ({"n_items": 1.5}, "n_items"),
    ],
)
def test_simulate_says_what_is_wrong(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        simulate(**arguments)


class TestUndefined:
    """No eligible item, or chance that leaves no room: NaN and a reason."""

    @pytest.mark.parametrize(
        ("votes", "suggested", "words"),
        [
            ([], [], "no items"),
            (np.empty((0, 3)), np.empty(0), "no items"),
            ([[]], ["a"], "no item has two votes (1 item: 1 with no votes)"),
            ([["a"], [None, None]], ["a", "b"], "no item has two votes (2 items: 1 with no votes, 1 with one vote)"),
            ([["a", "a"]], [None], "two votes and a suggested label (1 item: 1 with no suggested label)"),
            ([["a", "a"], ["a", "a", "a"]], ["a", "a"], "every vote and every suggested label is the same category"),
        ],
    )
    def test_has_a_reason(self, votes: Any, suggested: Any, words: str) -> None:
        kappa = dh_kappa(votes, suggested)
        assert np.isnan(kappa.value)
        assert kappa.exact is None
        assert kappa.reason is not None
        assert words in kappa.reason
        assert "undefined" in repr(kappa)
        assert kappa.to_dict()["value"] is None

    def test_fleiss(self) -> None:
        assert "every vote is the same category" in str(fleiss_kappa([["a", "a"]]).reason)
        assert "no item has two votes" in str(fleiss_kappa([["a"]]).reason)


class TestTallyFiles:
    def written(self, folder: Path) -> Path:
        path = folder / "tally.json"
        tally(VOTES, LABELS).save(path)
        return path

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ('"dhkappa-tally"', '"other"', "is not a tally"),
            ('"version": 1', '"version": 2', "version 2; this dhkappa reads version 1"),
            ('"version": 1', '"version": "x"', "version 'x'"),
            ('"items": 3', '"items": 4', "add up to 3 items and 6 votes, but it says 4, 6"),
            ('["a", 2]', '["a", 1]', "damaged"),
            ('["a", 2]', '["a", -2]', "damaged"),
            ('["a", 2]', '["a", 2.0]', "damaged"),
            ('["a", 2]', '["z", 2]', "damaged"),
            ('["a", 2]', '["a"]', "damaged"),
            ('["a", 1], ["b", 1]', '["a", 1], ["a", 1]', "damaged"),
            ('"suggested": "a"', '"suggested": "z"', "damaged"),
            ('"suggested": "a"', '"suggest": "a"', "'suggested' is absent"),
            ('"categories": ["a", "b"]', '"categories": ["a", "a"]', "damaged"),
            ('"categories": ["a", "b"]', '"categories": 1', "damaged"),
            ('"declared": [],', "", "'declared' is absent"),
            ('"declared": []', '"declared": [["a", "z"]]', "declared holds 'z'"),
            ('"declared": []', '"declared": false', "'declared' is not a list"),
            ('"missing": []', '"missing": ["a"]', "'a' is a category and missing"),
            ('"version": 1', '"version": true', "version True"),
            ('"items": 3', '"items": 3.0', "but it says 3.0, 6"),
            ('["a", 2]', '["a", 2147483648]', "not a whole number from 1 to 2,147,483,647"),
            ('"items": 1}', '"items": 4611686018427387904}', "not a whole number"),
        ],
    )
    def test_damage_is_found(self, tmp_path: Path, old: str, new: str, words: str) -> None:
        path = self.written(tmp_path)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(DataError, match=words):
            Tally.load(path)

    def test_cut_short_anywhere(self, tmp_path: Path) -> None:
        path = self.written(tmp_path)
        whole = path.read_bytes().rstrip()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            with pytest.raises(DataError):
                Tally.load(path)

    @pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}'])
    def test_other_files(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "other"
        path.write_bytes(content)
        with pytest.raises(DataError):
            Tally.load(path)

    def test_absent_file_and_folder(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="cannot read the tally"):
            Tally.load(tmp_path / "none.json")
        with pytest.raises(DataError, match="cannot write the tally"):
            tally(VOTES, LABELS).save(tmp_path / "none" / "tally.json")

    def test_a_failed_save_leaves_the_old_file_and_no_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = self.written(tmp_path)
        before = path.read_bytes()

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(DataError, match="No space left"):
            tally(VOTES + VOTES, LABELS + LABELS).save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_update_after_an_error_leaves_the_tally_as_it_was() -> None:
    counts = tally(VOTES, LABELS)
    before = counts.copy()
    for votes, suggested in [([[1, 1]], ["1"]), ([["a"]], []), ([["a", 1.5]], ["a"])]:
        with pytest.raises(DataError):
            counts.update(votes, suggested)
    assert counts == before


def test_lookalikes_across_tallies_are_refused() -> None:
    with pytest.raises(DataError, match="both 1 and '1'"):
        tally([[1, 1]], [1]) + tally([["1", "1"]], ["1"])
