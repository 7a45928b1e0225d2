"""P-values adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dhkappa.core import Floats


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple testing (Holm); NaN stays NaN and does not count as a test."""
    adjusted = np.array(pvalues)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN is last
    tests_left = np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(tests_left * adjusted[order], 1))
    return [float(value) for value in adjusted]


def false_discovery(pvalues: Floats) -> Floats:
    """Return p-values adjusted for the share of false discoveries (Benjamini and Hochberg); NaN is not a test.

    Examples
    --------
    >>> false_discovery(np.array([0.01, 0.04, np.nan, 0.03])).round(4).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    adjusted = np.full(len(pvalues), np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    steps = pvalues[order] * order.size / np.arange(1, order.size + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1)
    return adjusted
