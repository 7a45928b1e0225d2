"""Calls that raise each error of labels, items, arrays and tallies."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from dhkappa import Dataset, Tally, audit, compare, dh_kappa, tally
from dhkappa.inputs import tally as tally_module
from dhkappa.inputs.arrays import read_votes

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a"]]
LABELS = ["a", "b", "b"]
TWO = {"rule": LABELS, "llm": ["a", "a", "b"]}
COUNTS = [[2, 0], [1, 1], [0, 2]]


def kappa(votes: Any = VOTES, suggested: Any = LABELS, **options: Any) -> Any:
    return dh_kappa(votes, suggested, **options)


def matrix(counts: Any = COUNTS, suggested: Any = (0, 1, 1), **options: Any) -> Any:
    return dh_kappa(counts=counts, suggested=list(suggested), **options)


def frame() -> Any:
    return pd.DataFrame({"ann_1": ["a", "b"], "ann_2": ["a", "b"], "llm": ["a", "b"]}, index=["x", "y"])


def saved(change: Callable[[dict[str, Any]], object] = lambda held: None, text: str | None = None) -> Any:
    """Save a tally, change its file and load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tally.json")
        tally(VOTES, TWO, sample_weight=[1, 2, 3], strata=["x", "x", "y"]).save(path)
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held) if text is None else text)
        return Tally.load(path)


def first(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda held: held["patterns"][0].update(values)


def without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda held: held.pop(key)


def not_found() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return Tally.load(Path(folder, "tally.json"))


def too_many_items() -> Any:
    with patch.object(tally_module, "MAX_ITEMS", 5):
        return tally(VOTES, LABELS) + tally(VOTES, LABELS)


CASES: dict[str, Callable[[], Any]] = {
    # Labels
    "not-a-label": lambda: kappa([["a", "b"], ["a", ["b"]]], ["a", "a"]),
    "not-a-label (array)": lambda: kappa(np.array([[b"a", b"b"]]), ["a"]),
    "not-a-label (categories)": lambda: kappa(categories=[["a"]]),
    "not-a-label (fraction)": lambda: kappa(np.array([[1.5, 2.0]]), [2]),
    "not-a-label (labeler)": lambda: tally(VOTES, {"llm": [1.5, "a", "b"]}),
    "not-a-label (missing)": lambda: kappa(missing=3),
    "float-too-large": lambda: kappa(np.array([[2.0**53, 1.0]]), [1]),
    "mixed-label-types": lambda: kappa([[1, "1"]], [1]),
    "mixed-label-types (strata)": lambda: (
        tally(VOTES, LABELS, strata=[1, 1, 1]) + tally(VOTES, LABELS, strata=["1", "1", "1"])
    ),
    "missing-type": lambda: kappa([[1, 9], [2, 2]], [1, 2], missing=["9"]),
    "missing-type (counts)": lambda: matrix(missing=[1]),
    "invalid-categories": lambda: kappa(categories="ab"),
    "invalid-categories (empty)": lambda: kappa(categories=[]),
    "invalid-categories (missing)": lambda: kappa(categories=["a", None]),
    "invalid-categories (named in missing)": lambda: kappa(categories=["a", "b"], missing=["b"]),
    "invalid-categories (twice)": lambda: kappa(categories=["a", "b", "a"]),
    "undeclared-label": lambda: kappa(categories=["a", "c"]),
    "undeclared-label (codes)": lambda: matrix(suggested=[0, 2, 1]),
    "undeclared-label (counts)": lambda: dh_kappa(counts=pd.DataFrame({"a": [2], "B": [1]}), suggested=["b"]),
    "undeclared-label (tally)": lambda: Tally(["a", "c"]).update(Dataset(VOTES, LABELS)),
    # Arrays
    "votes-or-counts": lambda: dh_kappa(),
    "invalid-shape": lambda: kappa(np.array([1, 2, 3]), [1, 2, 3]),
    "invalid-shape (flat)": lambda: kappa(["a", "b"], ["a", "b"]),
    "invalid-shape (suggested)": lambda: kappa(suggested=np.zeros((3, 1), int)),
    "invalid-shape (counts)": lambda: matrix([1, 2], [0, 1]),
    "invalid-shape (ragged counts)": lambda: matrix([[1, 2], [3]], [0, 1]),
    "invalid-shape (one-hot)": lambda: matrix(suggested=[[1, 0, 0]] * 3),
    "invalid-type": lambda: kappa({"a": 1}),
    "different-length": lambda: kappa(suggested=["a"]),
    "different-length (categories)": lambda: matrix(categories=["a"]),
    "different-length (transposed)": lambda: kappa([["a", "b"]], ["a", "b"]),
    "different-length (weights)": lambda: kappa(sample_weight=[1, 2]),
    "different-order": lambda: dh_kappa(
        counts=pd.DataFrame({"b": [0], "a": [2]}), suggested=["a"], categories=["a", "b"]
    ),
    "different-index": lambda: kappa(frame()[["ann_1", "ann_2"]], frame()["llm"][::-1]),
    "column-among-votes": lambda: kappa(frame(), frame()["llm"]),
    "invalid-count (fraction)": lambda: matrix([[2, 0.5]], [0]),
    "invalid-count (masked)": lambda: matrix(np.ma.array([[1, 2]], mask=[[False, True]]), [0]),
    "invalid-count (NaN)": lambda: matrix([[2, float("nan")]], [0]),
    "invalid-count (text)": lambda: matrix([["x", "y"]], [0]),
    "invalid-one-hot": lambda: matrix(suggested=[[1, 0], [0, 0], [0, 1]]),
    "invalid-weight": lambda: kappa(sample_weight=[1, -1, 1]),
    "invalid-weight (zero)": lambda: kappa(sample_weight=[0, 0, 0]),
    "invalid-weight (type)": lambda: kappa(sample_weight="abc"),
    "missing-stratum (arrays)": lambda: kappa(strata=["x", None, "x"]),
    "too-many-votes (counts)": lambda: matrix([[2**31 - 1, 1]], [0]),
    "unnamed-columns": lambda: matrix(suggested=LABELS),
    "unnamed-columns (tally)": lambda: tally(VOTES, LABELS).update(counts=COUNTS),
    "invalid-labeler-name": lambda: tally(VOTES, {1: LABELS}),
    "invalid-labeler-name (none)": lambda: tally(VOTES, {}),
    # Items
    "labeler-not-found": lambda: dh_kappa(tally(VOTES, TWO), "gpt"),
    "labeler-not-found (votes)": lambda: read_votes(VOTES, TWO).labeled_patterns("gpt"),
    "labeler-twice": lambda: compare(tally(VOTES, TWO), ["llm", "llm"]),
    "several-labelers (tally)": lambda: dh_kappa(tally(VOTES, TWO)),
    # Label rules and sets of labels
    "invalid-normalize": lambda: dh_kappa(VOTES, LABELS, normalize=["cases"]),
    "invalid-normalize (type)": lambda: dh_kappa(VOTES, LABELS, normalize=3),  # type: ignore[arg-type]
    "invalid-map": lambda: dh_kappa(VOTES, LABELS, map=["a"]),
    "invalid-map (missing)": lambda: dh_kappa(VOTES, LABELS, map={"a": None}),
    "invalid-map (two)": lambda: dh_kappa(VOTES, LABELS, map={"a": "x", "A": "y"}, normalize="case"),
    "not-a-label (map)": lambda: dh_kappa(VOTES, LABELS, map={"a": 1.5}),
    "label-not-found": lambda: dh_kappa(VOTES, LABELS, map={"aa": "x"}),
    "invalid-categories (rules)": lambda: dh_kappa(VOTES, LABELS, categories=["a", "A", "b"], normalize="case"),
    "duplicate-votes (columns)": lambda: dh_kappa(
        pd.DataFrame({"x": ["a", "b"], "x ": ["a", "b"], "y": ["a", "b"]}), ["a", "b"], normalize="spaces"
    ),
    "labels-normalized": lambda: dh_kappa([["A", "a"], ["b", "a"]], ["a", "b"], normalize="case"),
    "labels-mapped": lambda: dh_kappa([["1", "a"], ["b", "a"]], ["a", "b"], map={"1": "b"}),
    "annotators-normalized": lambda: dh_kappa(
        pd.DataFrame({"x ": ["a", "b"], "y": ["a", "b"]}), ["a", "b"], normalize="spaces"
    ),
    "multilabel": lambda: audit([["a;b", "a"], ["b", "a"]], ["a", "b"], multilabel=";"),
    "invalid-multilabel": lambda: audit(VOTES, LABELS, multilabel=""),
    "not-a-label-set": lambda: audit([["a", ["b"]], ["a", "b"]], ["a", "b"], multilabel=True),
    "not-a-label-set (json)": lambda: audit([["a", "b"], ["a", "b"]], ["a", "b"], multilabel="json"),
    "not-a-label-set (label)": lambda: audit([["[1.5]", "[1]"]], ["[1]"], multilabel="json"),
    "not-a-label-set (list)": lambda: audit([[["a", ["b"]], ["a"]]], [["a"]], multilabel=True),
    "option-not-supported (sets)": lambda: dh_kappa(VOTES, LABELS, multilabel=";"),
    # Tallies
    "different-columns": lambda: tally(VOTES, TWO) + tally(VOTES, LABELS),
    "different-columns (strata)": lambda: tally(VOTES, LABELS, strata=["x", "x", "y"]) + tally(VOTES, LABELS),
    "different-columns (weights)": lambda: tally(VOTES, LABELS, sample_weight=[1, 2, 3]) + tally(VOTES, LABELS),
    "different-missing": lambda: tally([["NA", "a"]], ["a"], missing=["NA"]) + tally([["NA", "a"]], ["a"]),
    "too-many-items": too_many_items,
    "damaged-tally": lambda: saved(text='{"format": "dhkappa-tally", '),
    "damaged-tally (category)": lambda: saved(first(votes=[["z", 1]])),
    "damaged-tally (key missing)": lambda: saved(without("declared")),
    "damaged-tally (key twice)": lambda: saved(text='{"format": "dhkappa-tally", "items": 1, "items": 2}'),
    "damaged-tally (keys)": lambda: saved(first(note="x")),
    "damaged-tally (labelers)": lambda: saved(lambda held: held.update(labelers=[])),
    "damaged-tally (labels)": lambda: saved(first(suggested=["a"])),
    "damaged-tally (list)": lambda: saved(lambda held: held.update(categories=1)),
    "damaged-tally (missing)": lambda: saved(lambda held: held.update(missing=["a"])),
    "damaged-tally (notes)": lambda: saved(lambda held: held.update(source_notes=[1])),
    "damaged-tally (number)": lambda: saved(first(items=0)),
    "damaged-tally (stratum)": lambda: saved(first(stratum="z")),
    "damaged-tally (sum)": lambda: saved(lambda held: held.update(items=4)),
    "damaged-tally (type)": lambda: saved(first(votes=5)),
    "damaged-tally (votes)": lambda: saved(first(votes=[["a", 1], ["a", 2]])),
    "damaged-tally (weight)": lambda: saved(first(weight=-1)),
    "damaged-tally (weights)": lambda: saved(lambda held: held.update(sample_weight=1)),
    "file-not-readable (tally)": not_found,
    "not-a-tally (loaded)": lambda: saved(text="[]"),
    "tally-version": lambda: saved(lambda held: held.update(version=1)),
}
