"""Checks that find each problem of data."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import problem_rates
from dhkappa import Dataset

NAMES = ["cat", "dog", "cow"]
VOTES = [[name] * 3 for name in NAMES] * 10
LABELS = NAMES * 10


def check(votes: Any = None, labels: Any = None, **given: Any) -> Any:
    return Dataset(VOTES if votes is None else votes, {"llm": LABELS if labels is None else labels}, **given).check()


def changed(what: str) -> Any:
    """Return the check of a simulated table with a problem."""
    _, make = problem_rates.CHANGED[what]
    return make(np.random.default_rng(1)).dataset().check()


def wide(**columns: Any) -> Any:
    votes = {f"ann_{place}": LABELS for place in range(3)}
    return Dataset(pl.DataFrame({"suggested_llm": LABELS, **votes, **columns})).check()


def spelled() -> list[list[str]]:
    return [["cat", "Cat", "cat "], *VOTES[1:]]


CASES: dict[str, Callable[[], Any]] = {
    "labels-not-in-votes (codes)": lambda: check(labels=[1, 2, 3] * 10),
    "labels-not-in-votes (few codes)": lambda: check(labels=[1, 2, 2] * 10),
    "labels-not-in-votes (column)": lambda: check(labels=["en", "de", "de"] * 10),
    "labels-not-in-votes (other column)": lambda: Dataset(
        pl.DataFrame({"llm": LABELS, "lang": ["en"] * 30, "ann_1": LABELS, "ann_2": LABELS}), "lang"
    ).check(),
    "category-variants (problem)": lambda: check(spelled()),
    "category-variants (problem, numbers)": lambda: check([["3", "3.0"], ["4", "4"]] * 15, ["3", "4"] * 15),
    "looks-missing (sure)": lambda: check([["cat", "#N/A", "cat"], *VOTES[1:]]),
    "looks-missing (maybe)": lambda: check([["cat", "none", "cat"], *VOTES[1:]]),
    "looks-multilabel": lambda: check([["cat;dog", "dog;cat", "cat"], *VOTES[1:]]),
    "looks-multilabel (list)": lambda: check([["['cat', 'dog']", "cat", "cat"], *VOTES[1:]]),
    "labeler-abstains": lambda: check(labels=[None, *LABELS[1:]]),
    "few-common-items": lambda: Dataset(VOTES, {"llm": LABELS, "rule": LABELS[:8] + [None] * 22}).check(),
    "too-few-items": lambda: check(VOTES[:6], LABELS[:6]),
    "looks-like-percent": lambda: Dataset(
        None,
        NAMES * 10,
        counts=pl.DataFrame({"cat": [50, 20, 0] * 10, "dog": [30, 80, 0] * 10, "cow": [20, 0, 100] * 10}),
    ).check(),
    "weights-look-like-counts": lambda: check(
        [VOTES[place][: 2 + place % 2] for place in range(30)], sample_weight=[2 + place % 2 for place in range(30)]
    ),
    "votes-follow-agreement (problem)": lambda: changed("more votes after disagreement"),
    "labels-from-votes (problem)": lambda: changed("labels are the majority of the votes"),
    "looks-ordinal": lambda: changed("ratings"),
    "looks-ordinal (ratings)": lambda: check([[n, n] for n in (1, 2, 3, 4, 5)] * 6, [1, 2, 3, 4, 5] * 6),
    "labeler-equals-annotator": lambda: changed("a labeler copies an annotator"),
    "labeler-equals-annotator (name)": lambda: wide(ann_llm=LABELS),
    "annotator-variants": lambda: changed("names of annotators are spelled differently"),
    "not-annotators": lambda: wide(ann_0_seconds=[str(place) for place in range(30)]),
    "annotators-unused": lambda: wide(rater_3=LABELS),
    "ids-are-row-numbers": lambda: changed("tables are joined by row, in different order"),
    "looks-clustered": lambda: changed("items come from documents"),
    "looks-clustered (not alike)": lambda: wide(item=list(range(30)), document=[str(place) for place in range(10)] * 3),
}
