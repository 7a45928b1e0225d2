"""Calls that raise each error and give each note of shares of a pool."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dhkappa import Dataset, pool_shares

VOTES = [["bug", "bug", "bug"], ["bug", "bug", "other"], ["other"] * 3, ["bug", "other", "other"]] * 10
LABELS = ["bug", "bug", "other", "other"] * 10
POOL = {"bug": 600, "other": 400}
FRAME = pd.DataFrame(VOTES, columns=["ann_1", "ann_2", "ann_3"]).assign(suggested=LABELS, day=range(40))


def shares(pool: Any = None, **options: Any) -> Any:
    return pool_shares(VOTES, LABELS, pool=POOL if pool is None else pool, **options)


CASES: dict[str, Callable[[], Any]] = {
    "nothing-sampled": lambda: pool_shares([[], ["bug"]], ["bug", None], pool=POOL),
    "pool-label-missing": lambda: shares({"bug": 600}),
    "pool-label-missing (types)": lambda: shares({1: 600, 2: 400}),
    "pool-too-small (label)": lambda: shares({"bug": 19, "other": 400}),
    "pool-with-weights (shares)": lambda: pool_shares(Dataset(VOTES, LABELS, sample_weight=range(1, 41)), pool=POOL),
    "strata-not-labels": lambda: shares(strata=["x", "y"] * 20),
    "finite-pool-single-votes": lambda: pool_shares([["bug"]], ["bug"], pool=POOL, finite_pool=True),
    "invalid-pool (type)": lambda: shares(5),
    "invalid-pool (label twice)": lambda: shares("bug=1,bug=2"),
    "invalid-pool-size (label)": lambda: shares({"bug": 3.5, "other": 400}),
    "not-a-label (pool)": lambda: shares({1.5: 400}),
    "not-a-label (labels of a pool)": lambda: shares([1.5]),
    "invalid-shape (pool)": lambda: shares(np.zeros((3, 2), int)),
    "ambiguous-pool": lambda: shares(pd.Series([5, 6], index=[1, 2])),
    "pool-column-unknown": lambda: shares(pd.DataFrame({"a": LABELS, "b": LABELS})),
    "pool-is-counted": lambda: shares(pd.DataFrame({"suggested": ["bug", "other"], "count": [600, 400]})),
    "column-not-found (pool)": lambda: shares(pd.DataFrame({"label": LABELS}), pool_column="labels"),
    "not-a-table (pool)": lambda: shares(pool_column="labels"),
    "duplicate-items (pool)": lambda: pool_shares(FRAME.assign(item=FRAME.day), pool=FRAME.assign(item=1), item="item"),
    # Notes
    "labels-merged": lambda: shares(POOL | {"spam": 10}),
    "labels-not-sampled": lambda: shares(POOL | {"spam": 10}),
    "sample-unlike-pool": lambda: shares({"bug": 100, "other": 9_900}),
    "some-single-votes": lambda: pool_shares([*VOTES, ["bug"]], [*LABELS, "bug"], pool=POOL),
    "few-items (pool)": lambda: pool_shares(VOTES[:12], LABELS[:12], pool=POOL),
    "pool-unlabeled": lambda: shares({**POOL, None: 7}),
    "pool-filtered": lambda: pool_shares(Dataset(FRAME).filter("day<36"), pool=FRAME),
    "pool-not-filtered": lambda: pool_shares(Dataset(FRAME).filter("day<36"), pool=POOL),
}
