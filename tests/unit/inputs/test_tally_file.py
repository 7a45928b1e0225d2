"""Tally files: written atomically, read back exactly, and checked number by number."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import DataError, Tally, dh_kappa, tally
from expect import expect_error
from strategies import Data, ragged

VOTES = [["a", "a"], ["a", "b"], ["b", "b"]]
LABELS = ["a", "b", "b"]
SIX = [["a", "a", "a"], ["a", "b", "a"], ["b", "b", "b"], ["b", "b", "a"], ["a", "a", "b"], ["b", "b", "b"]]
GPT, RULE = list("aabbab"), ["a", "b", "b", None, "a", "a"]
STRATA, WEIGHTS = list("xxxyyy"), [1, 2, 3, 1, 2, 3]


def full(**changed: Any) -> Tally:
    return tally(SIX, {"gpt": GPT, "rule": RULE}, **{"sample_weight": WEIGHTS, "strata": STRATA, **changed})


def changed_file(path: Path, change: Callable[[dict[str, Any]], object], counts: Tally | None = None) -> Path:
    (counts or full()).save(path)
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))
    return path


@given(drawn=ragged(max_items=16, max_votes=4), design=st.integers(0, 3), seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_a_tally_is_read_back(drawn: Data, design: int, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    random, n = Random(seed), len(drawn.votes)
    suggested: Any = drawn.suggested
    if design & 1:
        suggested = {"one": drawn.suggested, "two": [random.choice([*drawn.categories, None]) for _ in range(n)]}
    whole = tally(
        drawn.votes,
        suggested,
        categories=drawn.categories if seed % 2 else None,
        sample_weight=[random.choice([0.5, 1, 0.1, 3]) for _ in range(n)] if design & 2 else None,
        strata=[random.choice("xy") for _ in range(n)] if design & 2 else None,
    )
    path = tmp_path_factory.mktemp("tally") / "whole.json"
    whole.save(path)
    back = Tally.load(path)
    assert back == whole
    assert repr(back.categories) == repr(whole.categories)
    assert (back.labelers or ("labeler",), back.strata, back.declared) == (
        whole.labelers or ("labeler",),
        whole.strata,
        whole.declared,
    )
    assert back + whole == whole + whole
    first = path.read_bytes()
    back.save(path)
    assert path.read_bytes() == first


def test_a_file_is_readable_json(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    tally([["a", "a"], ["b", "a"], ["a", "b"], []], ["a", "\u2603", "\u2603", None], missing=["NA"]).save(path)
    assert json.loads(path.read_text()) == {
        "format": "dhkappa-tally",
        "version": 2,
        "categories": ["a", "b", "\u2603"],
        "declared": [],
        "missing": ["NA"],
        "items": 4,
        "votes": 6,
        "source_notes": [],
        "labelers": ["labeler"],
        "strata": None,
        "sample_weight": False,
        "patterns": [
            {"suggested": [None], "votes": [], "items": 1},
            {"suggested": ["a"], "votes": [["a", 2]], "items": 1},
            {"suggested": ["\u2603"], "votes": [["a", 1], ["b", 1]], "items": 2},
        ],
    }
    assert len(path.read_text().splitlines()) == 16


def test_equal_tallies_give_equal_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    full().save(one)
    parts = [
        tally(
            SIX[rows],
            {"gpt": GPT[rows], "rule": RULE[rows]},
            sample_weight=WEIGHTS[rows],
            strata=STRATA[rows],
        )
        for rows in (slice(3, 6), slice(0, 3))
    ]
    (parts[0] + parts[1]).save(two)
    assert one.read_bytes() == two.read_bytes()


def test_a_loaded_tally_can_be_updated(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    tally([["a", "NA", "a"]], ["a"], missing=["NA"]).save(path)
    again = Tally.load(path)
    again.update([["b", "NA", "b"]], ["a"])
    assert again.n_votes == 4


def test_every_label_type(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    for votes in ([[1, -(10**40)]], [[True, False]], [["\ud800", "\x00"]], [["<script>", "\N{PILE OF POO}"]]):
        counts = tally(votes, [votes[0][0]])
        counts.save(path)
        assert repr(Tally.load(path).categories) == repr(counts.categories)
        assert Tally.load(path) == counts


def test_an_empty_tally(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    Tally(["a", "b"]).save(path)
    assert Tally.load(path) == Tally(["a", "b"])
    assert Tally.load(path).declared


def test_strata_in_any_order(tmp_path: Path) -> None:
    path = changed_file(tmp_path / "tally.json", lambda held: held["strata"].reverse())
    assert json.loads(path.read_text())["strata"] == ["y", "x"]
    assert Tally.load(path) == full()
    unweighted = full(sample_weight=None)
    changed_file(path, lambda held: held["strata"].reverse(), unweighted)
    pool = {"x": 1000, "y": 4}
    expected, found = (dh_kappa(counts, "gpt", pool=pool) for counts in (unweighted, Tally.load(path)))
    assert (found.exact, found.se) == (expected.exact, expected.se)


DAMAGED: list[Callable[[dict[str, Any]], object]] = [
    lambda held: held["patterns"][0]["suggested"].append("a"),
    lambda held: held["patterns"][0].update(suggested="a"),
    lambda held: held["patterns"][0].update(suggested=["z", "a"]),
    lambda held: held["patterns"][0].update(suggested=[1, "a"]),
    lambda held: held["patterns"][0].pop("suggested"),
    lambda held: held["patterns"][0].update(stratum="z"),
    lambda held: held["patterns"][0].update(stratum=["x"]),
    lambda held: held["patterns"][0].pop("stratum"),
    lambda held: held["patterns"][0].update(weight=-1.0),
    lambda held: held["patterns"][0].update(weight=float("nan")),
    lambda held: held["patterns"][0].update(weight=float("inf")),
    lambda held: held["patterns"][0].update(weight=10**400),
    lambda held: held["patterns"][0].update(weight="2"),
    lambda held: held["patterns"][0].update(weight=True),
    lambda held: held["patterns"][0].pop("weight"),
    lambda held: held["patterns"][0].update(note=3),
    lambda held: held["patterns"][0].update(votes=[["a", 1], ["a", 2]]),
    lambda held: held["patterns"][0].update(votes=[["a"]]),
    lambda held: held["patterns"][0].update(votes=[[None, 3]]),
    lambda held: held["patterns"][0].update(votes=[["z", 3]]),
    lambda held: held["patterns"][0].update(votes=[["a", -3]]),
    lambda held: held["patterns"][0].update(votes=[["a", 3.0]]),
    lambda held: held["patterns"][0].update(votes=[["a", 2**31]]),
    lambda held: held["patterns"][0].update(votes=[["a", 2**31 - 1], ["b", 1]]),
    lambda held: held["patterns"][0].update(items=2**62),
    lambda held: held["patterns"][0].update(items=0),
    lambda held: held["patterns"].append(5),
    lambda held: held["patterns"].pop(),
    lambda held: held.update(labelers=["gpt", "gpt"]),
    lambda held: held.update(labelers="gpt"),
    lambda held: held.update(labelers=[]),
    lambda held: held.update(labelers=[1, 2]),
    lambda held: held.update(strata="xy"),
    lambda held: held.update(strata={"x": 1, "y": 2}),
    lambda held: held.update(strata=None),
    lambda held: held.pop("strata"),
    lambda held: held.update(sample_weight="no"),
    lambda held: held.update(sample_weight=1),
    lambda held: held.update(categories=["a", "a"]),
    lambda held: held.update(categories=1),
    lambda held: held.update(categories=["a"]),
    lambda held: held.pop("declared"),
    lambda held: held.update(declared=[["a", "z"]]),
    lambda held: held.update(declared=False),
    lambda held: held.update(missing=["a"]),
    lambda held: held.update(source_notes=[1]),
    lambda held: held.update(items=7),
    lambda held: held.update(items=6.0),
    lambda held: held.update(votes=True),
]


@pytest.mark.parametrize("change", DAMAGED, ids=map(str, range(len(DAMAGED))))
def test_damaged_content(change: Callable[[dict[str, Any]], object], tmp_path: Path) -> None:
    path = changed_file(tmp_path / "tally.json", change)
    with expect_error("damaged-tally") as caught:
        Tally.load(path)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"dhkappa-tally"', '"other"', "not-a-tally"),
        ('"version": 2', '"version": 1', "tally-version"),
        ('"version": 2', '"version": "x"', "tally-version"),
        ('"version": 2', '"version": true', "tally-version"),
        ('"items": 3,', '"items": 3, "items": 3,', "damaged-tally"),
    ],
)
def test_damaged_header(tmp_path: Path, old: str, new: str, code: str) -> None:
    path = tmp_path / "tally.json"
    tally(VOTES, LABELS).save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with expect_error(code):
        Tally.load(path)


@pytest.mark.parametrize("label", ["true", "1.0"])
def test_labels_that_equal_others_in_python(tmp_path: Path, label: str) -> None:
    path = tmp_path / "tally.json"
    tally([[1, 1]], [2], strata=[0]).save(path)
    text = path.read_text()
    path.write_text(text.replace("[[1, 2]]", f"[[{label}, 2]]"))
    with expect_error("damaged-tally"):
        Tally.load(path)
    path.write_text(text.replace('"stratum": 0', '"stratum": false'))
    with expect_error("damaged-tally"):
        Tally.load(path)


def test_truncated_files(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    tally(VOTES, LABELS).save(path)
    whole = path.read_bytes().rstrip()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            Tally.load(path)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "damaged-tally"),
        (b"[]", "not-a-tally"),
        (b"null", "not-a-tally"),
        (b"\xff\xfe", "file-not-readable"),
        (b"[" * 100_000, "not-a-tally"),
        (b'{"a":' * 100_000, "damaged-tally"),
        (b'{"format": 1}', "not-a-tally"),
    ],
    ids=["empty", "list", "null", "bytes", "brackets", "nested", "other"],
)
def test_other_files(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with expect_error(code):
        Tally.load(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with expect_error("file-not-readable"):
        Tally.load(tmp_path / "none.json")
    with expect_error("cannot-write"):
        tally(VOTES, LABELS).save(tmp_path / "none" / "tally.json")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tally.json"
    tally(VOTES, LABELS).save(path)
    before = path.read_bytes()

    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with expect_error("cannot-write"):
        tally(VOTES + VOTES, LABELS + LABELS).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
