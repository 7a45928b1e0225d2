"""Where the outside data lie, and how Hypothesis runs."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Time limits per example would fail on a busy machine and say nothing about the numbers.
# In CI the same examples run every time: new ones are for people, who can act on what they find.
settings.register_profile("dhkappa", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("dhkappa")

os.environ["COLUMNS"] = "100"  # tables are as wide as the terminal

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real annotation data that are not copied into the project."""
    if not SHARED_DATA.is_dir():
        reason = f"the shared annotation data are not at {SHARED_DATA}"
        if os.environ.get("DHKAPPA_REQUIRE_ALL") == "1":
            pytest.fail(f"{reason}, and DHKAPPA_REQUIRE_ALL=1 asks for all tests")
        pytest.skip(reason)
    return SHARED_DATA
