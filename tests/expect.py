"""Expect an error by its code."""

from collections.abc import Callable
from typing import Any

import pytest

from dhkappa import DataError


def expect_error(code: str, parameter: str | None = None) -> Any:
    """Return a context in which a ``DataError`` with this code, and parameter if given, must be raised."""

    def check(error: DataError) -> bool:
        return error.code == code and (parameter is None or error.parameter == parameter)

    checked: Callable[[Any], bool] = check
    return pytest.raises(DataError, check=checked)
