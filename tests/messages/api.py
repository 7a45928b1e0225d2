"""Calls that raise each error and give each note of the public functions, datasets and audits."""

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from dhkappa import Dataset, audit, compare, dh_kappa, fleiss_kappa, plan, read, tally
from dhkappa.inputs import dataset as dataset_module

EXPORTS = Path(__file__).parents[1] / "exports"
VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a"]]
LABELS = ["a", "b", "b"]
TWO = {"rule": LABELS, "llm": ["a", "a", "b"]}
WIDE = {"item": [1, 2, 3], "ann_1": list("aba"), "ann_2": list("abb"), "suggested": LABELS}


def audited(data: Any = VOTES, suggested: Any = None) -> Any:
    return audit(data, TWO if suggested is None else suggested, progress=False)


def large() -> Any:
    """Audit a table of which only counts are fetched."""
    with patch.object(dataset_module, "_MAX_FETCHED", 1):
        return audit(pl.LazyFrame(WIDE), progress=False)


def file(name: str, content: str, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(content)
        return read(path, **options)


CASES: dict[str, Callable[[], Any]] = {
    "no-suggested-labels": lambda: dh_kappa(VOTES),
    "no-suggested-labels (export)": lambda: dh_kappa(EXPORTS / "label_studio" / "mail_button.json"),
    "no-suggested-labels (grid)": lambda: dh_kappa(pl.DataFrame({"p": ["a"], "q": ["a"]})),
    "no-suggested-labels (dataframe)": lambda: dh_kappa(pl.DataFrame({"item": [1], "label": ["a"], "llm": ["a"]})),
    "no-suggested-labels (dataset)": lambda: dh_kappa(Dataset(VOTES), LABELS),
    "several-labelers (arrays)": lambda: dh_kappa(VOTES, TWO),
    "several-labelers (plan)": lambda: plan(0.1, audited()),
    "labeler-not-found (plan)": lambda: plan(0.1, audited(), "lm"),
    "several-labelers (audit)": lambda: audited().review(),
    "labeler-not-found (audit)": lambda: audited().review("lm"),
    "labeler-not-found (none)": lambda: compare(tally(VOTES, TWO), []),
    "invalid-labeler-name (list)": lambda: compare(tally(VOTES, TWO), 5),
    "invalid-labeler-name (one)": lambda: dh_kappa(tally(VOTES, TWO), LABELS),
    "option-with-dataset": lambda: dh_kappa(Dataset(VOTES, LABELS), categories=["a", "b"]),
    "option-with-dataset (tally)": lambda: dh_kappa(tally(VOTES, LABELS), strata=LABELS, sample_weight=[1, 2, 3]),
    "option-with-dataset (items)": lambda: dh_kappa(VOTES, items=Dataset(VOTES, missing=["NA"])),
    "option-with-dataset (pilot)": lambda: plan(0.1, dh_kappa(VOTES, LABELS), LABELS),
    "option-not-supported": lambda: fleiss_kappa(VOTES, clusters=LABELS),
    "option-not-supported (any_time)": lambda: audit([["a"], ["b"]], ["a", "b"], any_time=True),
    "option-not-supported (any_time and slices)": lambda: audit(VOTES, LABELS, slices={"x": LABELS}, any_time=True),
    "option-not-supported (any_time and baseline)": lambda: audit(VOTES, LABELS, any_time=True).compare_with(
        tally(VOTES, LABELS)
    ),
    "option-not-supported (any_time and clusters)": lambda: compare(VOTES, TWO, clusters=LABELS, any_time=True),
    "option-not-supported (any_time of a kappa with clusters)": lambda: dh_kappa(
        VOTES, LABELS, clusters=LABELS
    ).confidence_interval(any_time=True),
    "option-not-supported (any_time and other annotators)": lambda: dh_kappa(VOTES, LABELS).confidence_interval(
        annotators="random", any_time=True
    ),
    "any-time-value": lambda: audit(VOTES, LABELS).gate(0.5, on="value", any_time=True),
    "any-time": lambda: audit(VOTES * 10, LABELS * 10, any_time=True),
    "any-time (too few items)": lambda: audit(VOTES, LABELS, any_time=True),
    "any-time-random-order": lambda: audit(VOTES * 10, LABELS * 10, any_time=True),
    "any-time-design": lambda: audit(VOTES * 20, LABELS * 20, any_time=True, sample_weight=[1.0, 2.0] * 30),
    "any-time-several": lambda: compare(VOTES * 10, {name: own * 10 for name, own in TWO.items()}, any_time=True),
    "any-time-single-look": lambda: audit(VOTES * 10, LABELS * 10, any_time=True),
    "option-not-supported (question)": lambda: file("votes.csv", "item,label\n1,a\n", question="tone"),
    "option-not-supported (table)": lambda: file("votes.csv", "item,label\n1,a\n", table="votes"),
    "categories-not-declared": lambda: dh_kappa(VOTES, LABELS, weights="linear"),
    "categories-not-declared (compare)": lambda: compare(VOTES, TWO, weights="linear"),
    "pilot-missing (roles)": lambda: plan(
        0.1, n_categories=2, annotator_accuracy=0.9, labeler_accuracy=0.9, annotators="ann_*"
    ),
    "invalid-input-format": lambda: file("votes.csv", "item,label\n1,a\n", input_format="excel"),
    "invalid-question": lambda: file("votes.csv", "item,label\n1,a\n", question=5),
    "invalid-path (export)": lambda: read(["a.json", "b.json"], input_format="prodigy"),
    "unreadable-file (zip)": lambda: file("export.zip", "PK"),
    "not-picklable": lambda: pickle.dumps(Dataset(VOTES, LABELS)),
    "items-unknown": lambda: audited(tally(VOTES, TWO), ["llm"]).review(),
    "kappa-undefined (audit)": lambda: audited([["a", "a"], ["a", "a"]], ["a", "a"]).categories(),
    "annotators-not-fetched": large,
    "clusters-left-out": lambda: audit(VOTES, TWO, clusters=[1, 1, 2], progress=False),
    "option-not-supported (saved audit of clusters)": lambda: audit(
        VOTES, TWO, clusters=[1, 1, 2], progress=False
    ).save("x"),
    "option-not-supported (tally of clusters)": lambda: tally(VOTES, LABELS, clusters=[1, 1, 2]),
    "unknown-problem": lambda: Dataset(VOTES, TWO).check(allow=["looks-ordnal"]),
    "source": lambda: dh_kappa(read(EXPORTS / "prodigy" / "binary.jsonl")),
}
