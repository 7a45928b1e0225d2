"""Calls that raise each error and give each note about slices."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from dhkappa import audit, dh_kappa
from dhkappa.inputs import slicing

VOTES = [["a", "a", "a"], ["b", "b", "a"], ["b", "b", "b"], ["a", "b", "b"]] * 15
LABELS = ["a", "b", "b", "a"] * 15
LANGUAGE = ["en", "de", "en", None] * 15
DAYS = [date(2026, 1, 1) + timedelta(days=k) for k in range(60)]
TABLE = pl.DataFrame({"item": [1, 2], "suggested": ["a", "b"], "language": ["en", "de"], "ann_1": ["a", "b"]})

LONG = pl.DataFrame({"item": [1, 1, 2, 2], "who": [*"xyxy"], "label": [*"aabb"], "suggested": [*"aabb"]})


def slices(values: Any, **given: Any) -> Any:
    return audit(VOTES, LABELS, slices=values, progress=False, **given).slices()


def too_many() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slicing, "MOST_SLICES", 1)
        return audit(TABLE.with_columns(ann_2=pl.col("ann_1")), slices="language", progress=False)


CASES: dict[str, Callable[[], Any]] = {
    "slices-are-labels": lambda: audit(TABLE.with_columns(ann_2=pl.col("ann_1")), slices="suggested"),
    "slices-are-annotators": lambda: audit(LONG, slices="who", annotator="who"),
    "slices-are-votes": lambda: audit(LONG, slices="label", annotator="who"),
    "slices-missing": lambda: slices(LANGUAGE),
    "slices-dates": lambda: slices({"created": DAYS}),
    "slices-few-items": lambda: slices(["en"] * 30 + ["de"] * 25 + ["fr"] * 5),
    "slices-few-items (joined)": lambda: slices(["en"] * 45 + ["de"] * 7 + ["fr"] * 8),
    "slices-too-many": lambda: slices([f"s{place}" for place in range(31)] + ["en"] * 29),
    "slices-shrunk": lambda: slices(LANGUAGE),
    "slices-explain-kappa": lambda: audit(
        [["a", "a"]] * 29 + [["b", "b"]] * 30 + [["a", "a"]],
        ["a"] * 30 + ["b"] * 30,
        slices=["x"] * 30 + ["y"] * 30,
        progress=False,
    ).slices(),
    "slices-not-graded": lambda: slices(list(range(60)), sample_weight=[1, 2, 3, 4] * 15),
    "slices-not-graded (many)": lambda: audit(VOTES * 4, LABELS * 4, slices=list(range(240)), progress=False).slices(),
    "not-a-date": lambda: slices({"created:week": ["2026-11-09", "soon"] * 30}),
    "too-many-slices": too_many,
    "invalid-slices": lambda: slices("language"),
    "invalid-option (unit of slices)": lambda: audit(
        TABLE.with_columns(ann_2=pl.col("ann_1")), slices={"language": "year"}
    ),
    "invalid-shape (slices)": lambda: slices({"language": np.array([["en"], ["de"]] * 30)}),
    "no-row-order (slices)": lambda: slices(pl.LazyFrame({"language": LANGUAGE})),
    "not-a-label (slices)": lambda: slices({"language": [["en"], ["de"]] * 30}),
    "different-length (slices)": lambda: slices(LANGUAGE[:9]),
    "option-not-supported (slices)": lambda: dh_kappa(VOTES, LABELS, slices=LANGUAGE),
    "option-not-supported (slices with strata)": lambda: slices(LANGUAGE, strata=["x", "y"] * 30),
    "column-not-found (slices)": lambda: audit(VOTES, LABELS, slices=LANGUAGE, progress=False).slices("lang"),
    "column-not-found (no slices)": lambda: audit(VOTES, LABELS, progress=False).slices(),
    "column-not-found (several columns of slices)": lambda: slices({"a": LANGUAGE, "b": LANGUAGE}),
}
