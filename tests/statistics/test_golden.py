"""The numbers of version 0.1, bit for bit."""

from pathlib import Path
from typing import Any

import pytest
from golden import default_adapter, differences, load, run
from golden_cases import SHARED, TableData, all_cases

CORPUS = load(Path(__file__).with_name("golden.json"))
CASES = all_cases()
NOT_RANKED = ["export-argilla/flat.json"]  # labelers with different items: version 0.1 had none left to compare them on


@pytest.mark.parametrize("name", CORPUS)
def test_numbers_are_those_of_version_0_1(name: str) -> None:
    if name not in CASES and name.startswith(("shared", "published")) and not SHARED.is_dir():
        pytest.skip(f"the shared annotation data are not at {SHARED}")
    data = CASES[name].data
    if isinstance(data, TableData) and data.engine in ("pandas", "polars", "duckdb"):
        pytest.importorskip(data.engine)
        pytest.importorskip("pyarrow")
    found = run(CASES[name], default_adapter(), strict=True)
    known = numbers_of(short_names(CORPUS[name]))
    if name in NOT_RANKED:
        del known["audit"]["comparison"]
    assert list(differences(known, short_names(found))) == []


def numbers_of(known: Any) -> Any:
    """Leave out the verdicts and the notes of audits, which follow other rules since version 0.2."""
    if "audit" in known and isinstance(known["audit"], dict):
        audit = {key: value for key, value in known["audit"].items() if key != "notes"}
        labelers = {
            name: {key: value for key, value in own.items() if key != "verdict"}
            for name, own in audit.get("labelers", {}).items()
        }
        return known | {"audit": audit | ({"labelers": labelers} if labelers else {})}
    return known


def short_names(found: Any) -> Any:
    """Name labelers without ``suggested_``, which version 0.1 kept in mappings."""
    if isinstance(found, dict):
        return {short_names(name): short_names(value) for name, value in found.items()}
    if isinstance(found, list):
        return [short_names(value) for value in found]
    return found.removeprefix("suggested_") if isinstance(found, str) else found


def test_one_ulp_is_a_difference() -> None:
    old = {"value": (0.1).hex(), "low": (0.1).hex(), "pvalue": (1e-30).hex(), "n": [1, 2]}
    assert list(differences(old, old)) == []
    new = {"value": (0.1 + 2**-56).hex(), "low": (0.1 + 2**-56).hex(), "pvalue": (1.1e-30).hex(), "n": [1, True]}
    assert [key for key, _, _ in differences(old, new)] == ["value", "pvalue", "n/1"]
