"""Queries that fail."""

import duckdb
import pytest

from dhkappa import dh_kappa, fleiss_kappa
from dhkappa.errors import OutOfMemoryError
from expect import expect_error


def test_votes_that_change_between_queries() -> None:
    votes = "i // 3 AS item, 'a' AS label, (1 + 1e6 * random())::INTEGER AS n"
    data = duckdb.sql(f"SELECT {votes} FROM range(30000) AS t(i)")
    with expect_error("votes-lost"):
        fleiss_kappa(data, item="item", label="label", count="n")


def test_column_that_cannot_be_computed() -> None:
    """The error occurs only when items are grouped by the column."""
    suggested = "CAST(CASE WHEN i = 7 THEN 'x' ELSE '1' END AS INTEGER) AS suggested"
    data = duckdb.sql(f"SELECT i // 3 AS item, 1 AS label, {suggested} FROM range(30) AS t(i)")
    with expect_error("engine-error"):
        dh_kappa(data)


def test_connection_with_little_memory() -> None:
    connection = duckdb.connect(config={"memory_limit": "30MB", "temp_directory": "", "threads": "1"})
    data = connection.sql("SELECT (i // 2)::VARCHAR || 'item' AS item, 'a' AS label FROM range(3000000) AS t(i)")
    with pytest.raises(OutOfMemoryError):
        fleiss_kappa(data)
