"""Votes, labels and patterns as integer counts. No files, no dataframes, no statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Label: TypeAlias = str | int  # a category's name: text, an integer or a boolean
Categories: TypeAlias = tuple[Label, ...]
Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ItemWeights:
    """Sample weights of n items, each an item of one of K patterns."""

    row: Integers  # (n,) index of the pattern
    weight: Floats  # (n,)

    def take(self, keep: npt.NDArray[np.bool_], rows: npt.NDArray[np.bool_]) -> ItemWeights:
        """Return the items ``keep``, and number only the patterns ``rows``, by masks."""
        place = np.cumsum(rows) - 1
        return ItemWeights(place[self.row[keep]], self.weight[keep])
