"""The README's examples run and show what they say."""

import doctest
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_readme_examples() -> None:
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried > 10
    assert failed == 0
