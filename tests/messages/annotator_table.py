"""Calls that raise each error and give each note about the table of annotators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from dhkappa import audit
from dhkappa.inputs import annotator_table

VOTES = np.array([["a", "a", "a"], ["b", "b", "a"], ["b", "b", "b"], ["a", "b", "b"]] * 15)
LABELS = ["a", "b", "b", "a"] * 15
NAMED = pl.DataFrame({"item": range(60), "suggested": LABELS, "team": ["x", "y"] * 30}).with_columns(
    **{f"ann_{place}": pl.Series(VOTES[:, place]) for place in range(3)}
)


def people(names: Any = (0, 1, 2), teams: Any = ("x", "x", "y")) -> Any:
    return pl.DataFrame({"annotator": list(names), "team": list(teams)})


def slices(table: Any, **given: Any) -> Any:
    return audit(VOTES, LABELS, annotators_table=table, progress=False, **given).annotator_slices()


def of_table(table: Any, by: Any) -> Any:
    return audit(NAMED, annotators_table=table, slices=by, progress=False)


def with_limit(limit: int, call: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotator_table, "MOST_GROUPS", limit)
        return call()


NAMES = ("ann_0", "ann_1", "ann_2")
CASES: dict[str, Callable[[], Any]] = {
    "annotators-not-in-table": lambda: slices(people([0, 1, 7])),
    "annotators-not-in-table (alike)": lambda: audit(
        NAMED, annotators_table=people(["ann_0", "Ann_1", "ann_2 "]), progress=False
    ).annotator_slices(),
    "annotators-not-in-data": lambda: slices(people([0, 1, 2, 7], ["x", "x", "y", "y"])),
    "annotators-without-value": lambda: slices(people(teams=["x", None, "y"])),
    "annotator-columns-left-out": lambda: with_limit(
        1,
        lambda: slices(people().with_columns(shift=pl.lit("day"))),
    ),
    "too-many-slices (annotators)": lambda: with_limit(1, lambda: of_table(people(NAMES).rename({"team": "t"}), "t")),
    "duplicate-annotators": lambda: slices(people([0, 1, 1])),
    "missing-annotator": lambda: slices(people([0, 1, None])),
    "ids-not-joined (annotators)": lambda: of_table(people(["ANN_0", "ANN_1", "ANN_2"]).rename({"team": "t"}), "t"),
    "ambiguous-columns (annotators table)": lambda: of_table(people(NAMES), "team"),
    "ambiguous-columns (names of annotators table)": lambda: slices(
        __import__("pandas").DataFrame([[0, "x", "y"]], columns=["annotator", "team", "team"])
    ),
    "column-not-found (annotators table)": lambda: of_table(people(NAMES), "teams"),
    "column-not-found (only annotators)": lambda: slices(people().select("annotator")),
    "column-not-found (no annotators table)": lambda: audit(VOTES, LABELS, progress=False).annotator_slices(),
    "not-a-table (annotators)": lambda: slices([["x"]]),
    "annotators-unknown (annotators table)": lambda: audit(
        counts=[[2, 0], [0, 2]], suggested=[0, 1], annotators_table=people(), progress=False
    ),
    "option-not-supported (annotators table)": lambda: __import__("dhkappa").dh_kappa(
        VOTES, LABELS, annotators_table=people()
    ),
}
