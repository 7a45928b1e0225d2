"""Votes, labels and patterns as integer counts. No files, no dataframes, no statistics."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Label: TypeAlias = str | int  # a category's name: text, an integer or a boolean
Categories: TypeAlias = tuple[Label, ...]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
