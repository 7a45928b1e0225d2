"""Unusual results."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dhkappa import DataError, dh_kappa, plan
from dhkappa.stats.labelers import labelers_table
from expect import expect_error

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]


def test_fraction_too_long_for_json() -> None:
    counts = np.random.default_rng(0).integers(0, 10**6, (300, 3))
    kappa = dh_kappa(counts=counts, suggested=np.arange(300) % 3)
    assert kappa.exact is not None
    assert json.loads(json.dumps(kappa.to_dict()))["exact"] is None
    assert kappa.value == float(kappa.exact)


def test_half_width_larger_than_any_float() -> None:
    with expect_error("invalid-half-width", "half_width"):
        plan(10**400, n_categories=3, annotator_accuracy=0.9, labeler_accuracy=0.9)


def test_pool_with_other_names() -> None:
    strata = ["x", "x", "x", "y", "y"]
    sizes: Mapping[Any, int] = {"x": 30, "y": 20, ("z", 1): 5}
    with pytest.raises(DataError) as caught:
        dh_kappa(VOTES, LABELS, strata=strata, pool=sizes)
    assert caught.value.parameter == "pool"
    found = dh_kappa(VOTES, LABELS, strata=strata, pool={**sizes, ("z", 1): 0})
    assert found.exact == dh_kappa(VOTES, LABELS, strata=strata, pool={"x": 30, "y": 20}).exact


def test_table_of_labelers() -> None:
    kappas = {"undefined": dh_kappa([["a", "a"]] * 2, ["a", "a"]), "low": dh_kappa(VOTES, ["b"] * 5)}
    kappas["high"] = dh_kappa(VOTES, LABELS)
    table = labelers_table(kappas, 0.9)
    assert table.title == "Kappa by labeler, 90% confidence intervals"
    assert table.column("labeler") == ["high", "low", "undefined"]
    row = table.to_dicts()[0]
    assert (row["low"], row["high"]) == tuple(kappas["high"].confidence_interval(0.9))
    assert (row["kappa"], row["se"], row["items"]) == (kappas["high"].value, kappas["high"].se, 5)
    baselines = kappas["high"].baselines
    assert (row["baseline_random"], row["baseline_majority"]) == (baselines.random, baselines.majority)
