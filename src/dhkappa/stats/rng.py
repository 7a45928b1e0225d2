"""Random numbers: one way to take a seed."""

from __future__ import annotations

import numpy as np

from dhkappa.errors import DataError, shown


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator: the one given, one from a seed, or one that nobody can repeat."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise DataError(f"rng must be a seed, 0 or more, or a numpy Generator: got {shown([rng])}.") from None
