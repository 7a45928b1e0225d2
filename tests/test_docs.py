"""Examples in the README and the docs run and show what they say."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("page", "examples"), [("README.md", 10), ("docs/data.md", 6)])
def test_examples(page: str, examples: int) -> None:
    failed, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert tried >= examples
    assert failed == 0
