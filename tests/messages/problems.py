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


def long_by_worker() -> Any:
    rows = [(place, who, label) for place, label in enumerate(LABELS) for who in "xyz"]
    votes = pl.DataFrame(rows, schema=["item", "worker_id", "label"], orient="row")
    return Dataset(votes, items=pl.DataFrame({"item": [*range(30)], "suggested_llm": LABELS})).check()


def spelled() -> list[list[str]]:
    return [["cat", "Cat", "cat "], *VOTES[1:]]


def repeated(mixed: bool = True) -> Any:
    """Return a table that has all rows twice."""
    data = problem_rates.base(np.random.default_rng(1), n=200)
    columns = {"suggested": list(data.labels["llm"])} | {f"ann_{n}": data.votes[:, n].tolist() for n in range(3)}
    table = pl.DataFrame(columns)[[*range(200), *range(200)]]
    return table.sample(fraction=1, shuffle=True, seed=1) if mixed else table


CASES: dict[str, Callable[[], Any]] = {
    "labels-not-in-votes (codes)": lambda: check(labels=[1, 2, 3] * 10),
    "labels-not-in-votes (few codes)": lambda: check(labels=[1, 2, 2] * 10),
    "labels-not-in-votes (numbers)": lambda: check([["0", "1", "1"]] * 30, ["cat", "dog", "dog"] * 10),
    "not-a-label-set (JSON)": lambda: check([['["cat", "dog"]'] * 2] * 30, multilabel=","),
    "labels-not-in-votes (column)": lambda: check(labels=["en", "de", "de"] * 10),
    "labels-not-in-votes (other column)": lambda: Dataset(
        pl.DataFrame({"llm": LABELS, "lang": ["en"] * 30, "ann_1": LABELS, "ann_2": LABELS}), "lang"
    ).check(),
    "category-variants (problem)": lambda: check(spelled()),
    "category-variants (problem, numbers)": lambda: check([["3", "3.0"], ["4", "4"]] * 15, ["3", "4"] * 15),
    "category-variants (problem, punctuation)": lambda: check([["cat", "cat.", "cat"], *VOTES[1:]]),
    "labels-not-in-votes (some)": lambda: changed("a tenth of the labels has no votes"),
    "votes-not-suggested": lambda: changed("rows of another task, or with codes"),
    "looks-missing (sure)": lambda: check([["cat", "#N/A", "cat"], *VOTES[1:]]),
    "looks-missing (maybe)": lambda: check([["cat", "none", "cat"], *VOTES[1:]]),
    "looks-multilabel": lambda: check([["cat;dog", "dog;cat", "cat"], *VOTES[1:]]),
    "looks-multilabel (list)": lambda: check([["['cat', 'dog']", "cat", "cat"], *VOTES[1:]]),
    "labeler-abstains (all)": lambda: check(labels=[None] * 30),
    "labeler-abstains": lambda: check(labels=[None, *LABELS[1:]]),
    "few-common-items": lambda: Dataset(VOTES, {"llm": LABELS, "rule": LABELS[:8] + [None] * 22}).check(),
    "one-vote": lambda: check([[label] for label in LABELS]),
    "too-few-items": lambda: check(VOTES[:6], LABELS[:6]),
    "looks-like-percent": lambda: Dataset(
        None,
        NAMES * 10,
        counts=pl.DataFrame({"cat": [50, 20, 0] * 10, "dog": [30, 80, 0] * 10, "cow": [20, 0, 100] * 10}),
    ).check(),
    "looks-like-counts (total)": lambda: Dataset(
        None,
        NAMES * 10,
        counts=pl.DataFrame({"cat": [2, 1, 0] * 10, "dog": [1, 2, 0] * 10, "cow": [0, 0, 3] * 10, "total": [3] * 30}),
    ).check(),
    "looks-like-counts": lambda: changed("numbers of votes are read as votes"),
    "weights-look-like-counts": lambda: check(
        [VOTES[place][: 2 + place % 2] for place in range(30)], sample_weight=[2 + place % 2 for place in range(30)]
    ),
    "votes-follow-agreement (problem)": lambda: changed("more votes after disagreement"),
    "labels-from-votes (problem)": lambda: changed("labels are the majority of the votes"),
    "labels-from-votes (problem, changed)": lambda: changed(
        "majority labels, 2 to 10% changed: 2 categories, 1,000 items"
    ),
    "labels-from-votes (problem, random)": lambda: changed("each label is a random vote of its item"),
    "looks-ordinal": lambda: changed("ratings"),
    "looks-ordinal (ratings)": lambda: check([[n, n] for n in (1, 2, 3, 4, 5)] * 6, [1, 2, 3, 4, 5] * 6),
    "labeler-equals-annotator": lambda: changed("a labeler copies an annotator"),
    "labeler-equals-annotator (name)": lambda: wide(ann_llm=LABELS),
    "labeler-equals-annotator (rerun)": lambda: changed("an annotator is a rerun of a labeler (85 to 95% equal)"),
    "annotator-differs": lambda: changed("an annotator's column is shifted or sorted"),
    "repeated-rows (votes)": lambda: changed("every vote twice, or numbers of votes times 10"),
    "header-repeated": lambda: changed("a header among the rows"),
    "footer-row": lambda: Dataset(
        pl.DataFrame(
            {"item": [*map(str, range(30)), "Total"], "suggested_llm": [*LABELS, None]}
            | {f"ann_{n}": [*LABELS, "30"] for n in range(3)}
        )
    ).check(),
    "annotators-equal": lambda: changed("two annotators are equal"),
    "not-annotators (model)": lambda: changed("an annotator has the name of a model"),
    "not-annotators (column)": lambda: changed("a column such as ann_final"),
    "not-annotators (majority)": lambda: changed("an annotator is the majority of the others"),
    "no-items (problem)": lambda: check([], []),
    "repeated-rows (all)": lambda: Dataset(repeated()).check(),
    "repeated-rows (sequence)": lambda: Dataset(repeated(mixed=False)).check(),
    "repeated-rows (text)": lambda: changed("30% of the rows again, anywhere, with a text"),
    "annotator-variants": lambda: changed("names of annotators are spelled differently"),
    "not-annotators": lambda: wide(ann_0_seconds=[str(place) for place in range(30)]),
    "annotators-unused": lambda: wide(rater_3=LABELS),
    "annotators-unused (long)": long_by_worker,
    "labelers-unused": lambda: wide(Suggested_gpt=LABELS),
    "ids-are-row-numbers": lambda: changed("tables are joined by row, in different order"),
    "looks-clustered": lambda: changed("items come from documents"),
    "looks-clustered (not alike)": lambda: wide(item=list(range(30)), document=[str(place) for place in range(10)] * 3),
}
