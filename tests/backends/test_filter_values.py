"""Filters by values that engines store in several ways: unsigned integers, and dates in text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import dhkappa

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VOTES: dict[str, list[Any]] = {"ann_1": list("aabbab"), "ann_2": list("abbbab"), "suggested": list("ababab")}
UNSIGNED = [2**63 + 5, 2**63 + 6, 3, 2**64 - 1, None, 0]


def of_arrow(library: str, held: Any) -> Any:
    """Return a table of a library with the columns of a PyArrow table."""
    if library == "pandas":
        return held.to_pandas(
            types_mapper={held.schema.field("h").type: pytest.importorskip("pandas").UInt64Dtype()}.get
        )
    if library == "pandas arrow":
        return held.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)
    if library == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(of_arrow("pandas", held), npartitions=2)
    if library.startswith("polars"):
        table = pytest.importorskip("polars").from_arrow(held)
        return table.lazy() if library == "polars lazy" else table
    if library == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.register("given", held)
        return connection.table("given")
    return held


@pytest.mark.parametrize("sign", COMPARE)
@pytest.mark.parametrize("library", ["pandas", "pandas arrow", "polars", "polars lazy", "pyarrow", "duckdb", "dask"])
def test_unsigned_integers(library: str, sign: str) -> None:
    pa = pytest.importorskip("pyarrow")
    whole = dhkappa.Dataset(of_arrow(library, pa.table(VOTES | {"h": pa.array(UNSIGNED, pa.uint64())})))
    for value in (2**63 + 5, 2**63 - 1, 2**64 - 1, 2**64, -1, 2.5, 9.3e18):
        places = [place for place, known in enumerate(UNSIGNED) if known is not None and COMPARE[sign](known, value)]
        if not places:
            with pytest.raises(dhkappa.DataError, match="leaves no votes"):
                whole.filter(("h", sign, value)).counts  # noqa: B018
            continue
        kept = [[VOTES[name][place] for name in ("ann_1", "ann_2")] for place in places]
        expected = dhkappa.tally(kept, {"suggested": [VOTES["suggested"][place] for place in places]})
        assert whole.filter(("h", sign, value)).tally() == expected, value
