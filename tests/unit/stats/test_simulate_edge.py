"""Unusual arguments of simulate."""

from collections.abc import Callable

import numpy as np
import pytest

from dhkappa import DataError, resources, simulate
from expect import expect_error


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


@pytest.mark.parametrize(
    ("n_items", "annotators", "text"), [(0, 10, "0 items with 10 votes each"), (9, 1, "9 items with 1 vote each")]
)
def test_votes_need_40_bytes_each(monkeypatch: pytest.MonkeyPatch, n_items: int, annotators: int, text: str) -> None:
    needed = 40 * max(n_items, 1) * annotators
    for left in (needed, needed - 1):
        monkeypatch.setattr(resources, "memory_limit", lambda left=left: resources.MemoryLimit(left, 2**31, "a test"))
        if left == needed:
            assert simulate(n_items, annotators=annotators).votes.shape == (n_items, annotators)
        else:
            with pytest.raises(MemoryError, match=text):
                simulate(n_items, annotators=annotators)


@pytest.mark.parametrize(("n_items", "annotators"), [(10**10 + 1, 0), (0, 10**10 + 1)])
def test_numbers_have_a_maximum(n_items: int, annotators: int) -> None:
    with expect_error("invalid-n-items" if n_items else "invalid-annotators"):
        simulate(n_items, annotators=annotators)


def test_numpy_numbers() -> None:
    drawn = simulate(np.int64(4), annotators=np.int64(2), accuracy=np.float32(0.5), prevalence=[1e308] * 3)  # type: ignore[arg-type]
    assert drawn.votes.shape == (4, 2)
