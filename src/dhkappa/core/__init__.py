"""Votes, labels and patterns as integer counts. No files, no dataframes, no statistics."""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Label: TypeAlias = str | int
"""A category's name: text, an integer or a boolean."""

Integers: TypeAlias = npt.NDArray[np.integer[Any]]


def is_real(value: Any) -> bool:
    """Tell whether a value is a real number; numpy registers timedelta64 as one, too."""
    return isinstance(value, Real) and not isinstance(value, np.timedelta64)
