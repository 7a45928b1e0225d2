"""Unusual arguments of simulate."""

from collections.abc import Callable

import numpy as np
import pytest

from dhkappa import DataError, simulate


@pytest.mark.parametrize(
    "call",
    [
        lambda: simulate(10, annotators=2.5),  # type: ignore[arg-type]
        lambda: simulate(10, prevalence="abc"),  # type: ignore[arg-type]
        lambda: simulate(10, prevalence=[10**400, 1, 1]),
        lambda: simulate(10, prevalence=[1j, 1, 1]),  # type: ignore[list-item]
        lambda: simulate(10, rng="abc"),  # type: ignore[arg-type]
        lambda: simulate(10, rng=-1),
        lambda: simulate(10**30),
        lambda: simulate(10, accuracy="high"),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments(call: Callable[[], object]) -> None:
    with pytest.raises(DataError):
        call()


def test_numpy_numbers() -> None:
    drawn = simulate(np.int64(4), annotators=np.int64(2), accuracy=np.float32(0.5), prevalence=[1e308] * 3)  # type: ignore[arg-type]
    assert drawn.votes.shape == (4, 2)
