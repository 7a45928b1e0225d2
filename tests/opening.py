"""Open files as a table of DuckDB, by path or pattern."""

from typing import Any

import duckdb

from dhkappa.inputs import files
from dhkappa.inputs.backends.duckdb import connect
from dhkappa.paths import find_files


def open_files(path: Any, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
    return files.open_files(find_files(path), connection or connect())
