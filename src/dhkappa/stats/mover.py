"""Method of variance estimates recovery (MOVER): limits of a difference of independent values from those of each."""

from __future__ import annotations

import numpy as np

from dhkappa.core import Floats


def mover(value: Floats, down: Floats, up: Floats, confidence_level: float) -> tuple[Floats, Floats, Floats]:
    """Return confidence limits and two-sided p-value of differences, from the distances of the limits below and above.

    With independent values k_1 and k_2 and their limits l and u, the distances of ``k_2 - k_1`` are
    ``sqrt((k_2 - l_2)^2 + (u_1 - k_1)^2)`` and ``sqrt((u_2 - k_2)^2 + (k_1 - l_1)^2)``. The p-value is
    ``2 Phi(-z |d| / h)`` with h the distance towards 0, so it is below alpha exactly where 0 is outside of the limits.

    Examples
    --------
    >>> limits = mover(np.array([0.3, 0.0]), np.array([0.2, 0.1]), np.array([0.1, 0.1]), 0.95)
    >>> [column.round(4).tolist() for column in limits]
    [[0.1, -0.1], [0.4, 0.1], [0.0033, 1.0]]
    """
    from dhkappa.stats.special import ndtr, ndtri

    reach = np.where(value > 0, down, up)
    z = float(ndtri((1 + confidence_level) / 2))
    pvalue = 2 * ndtr(-z * np.abs(value) / np.where(reach > 0, reach, 1))
    return value - down, value + up, np.where(reach > 0, pvalue, np.where(value == 0, 1.0, 0.0))
