"""Errors of reviewed files that are merged."""

import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import polars as pl

from command import call
from dhkappa import Dataset, Table, merge_reviews
from dhkappa.inputs import dataset as dataset_module

VOTES = {"item": ["1", "2"], "suggested": ["a", "b"], "ann_1": ["a", "b"], "ann_2": ["a", "a"], "ann_x": [None, None]}


def merged(columns: Any, data: Any = None, **options: Any) -> Any:
    return merge_reviews(pl.DataFrame(VOTES) if data is None else data, Table(columns), **options)


def filled(*labels: Any) -> Any:
    return {"item": ["1", "2", "1"][: len(labels)], "new_label": list(labels)}


def large() -> Any:
    with patch.object(dataset_module, "_MAX_FETCHED", 1):
        return merged(filled("a"), Dataset(pl.LazyFrame(VOTES)))


def command(words: str) -> Callable[[], Any]:
    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            Path("votes.csv").write_text("item,suggested,ann_1,ann_2\n" + "=1,a,a,a\n2,b,b,b\n3,a,b,a\n4,b,a,b\n")
            Path("review.csv").write_text("item,new_label\n2,a\n")
            Path("labels.csv").write_text("item,old,new,source\n3,a,b,decision\n")
            call("review", "votes.csv", "--merge", "review.csv", *words.split())

    return run


LIST = [["a", "a"], ["b", "a"]]
ANYONE = {"item": ["1", "1"], "label": ["a", "b"], "annotator": ["x", "y"]}

CASES: dict[str, Callable[[], Any]] = {
    "invalid-action": lambda: merged(filled("a"), action="votes"),
    "invalid-reviewer": lambda: merged(filled("a"), reviewer=""),
    "review-item-unknown": lambda: merged({"item": ["1", "7"], "new_label": ["a", "a"]}),
    "review-conflict": lambda: merged(filled("a", "b", "b")),
    "review-conflict (decisions)": lambda: merged(ANYONE, action="decision"),
    "review-empty": lambda: merged(filled(None, " ")),
    "review-stale": lambda: merged({**filled("a"), "suggested": ["b"]}),
    "review-other-votes": lambda: merged({**filled("a"), "votes": ["b: 7"]}),
    "review-label-unknown": lambda: merged(filled("c")),
    "review-label-missing": lambda: merged(filled("NA"), missing=["NA"], new_categories=True),
    "review-label-unclear": lambda: merged(
        {"item": [0], "new_label": ["\N{FULLWIDTH LATIN SMALL LETTER A}"]}, Dataset(LIST, ["a", "A"]), action="decision"
    ),
    "review-merged": lambda: merged({"item": ["1"], "label": ["a"], "annotator": ["ann_1"]}),
    "review-column": lambda: merged(filled("a"), pl.DataFrame(VOTES), annotators=["ann_1", "ann_2"], reviewer="ann_x"),
    "names-not-distinct (review)": lambda: merged(
        filled("a"), Dataset(pd.DataFrame(LIST, index=pd.Index([1, "1"])), suggested=["a", "b"])
    ),
    "table-too-large": large,
    "merge-filtered": lambda: merged(filled("a"), Dataset(pl.DataFrame(VOTES)).filter(item="1")),
    "merge-filtered (annotator)": lambda: merged(
        filled("a"), Dataset(pl.DataFrame(VOTES)).exclude_annotators("ann_1"), action="decision"
    ),
    "corrections-lost": command("--as decision --raw --allow too-few-items --labels labels.csv"),
    "same-output": command("-o x.csv --labels x.csv"),
    "no-votes-added": command("-o x.csv --as decision"),
    "formula-in-data": command("-o x.csv --allow too-few-items"),
}
