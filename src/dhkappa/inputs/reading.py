"""Open a path, a database address or an annotation tool's export as a Source."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

from dhkappa.errors import invalid, shown
from dhkappa.inputs.backends.duckdb import connect, fit, relation_of
from dhkappa.inputs.files import open_files
from dhkappa.inputs.readers import TOOLS, Export, find_tool, read_file
from dhkappa.inputs.tables import Source
from dhkappa.paths import FileStates, find_files
from dhkappa.resources import memory_errors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_RECORDS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".zip")
FORMATS = ("table", *TOOLS)
"""The values of ``input_format``."""
_DATABASES = ("postgresql", "postgres", "sqlite", "duckdb")


def is_url(path: Any) -> bool:
    """Tell whether a path is the URL of a database."""
    return isinstance(path, str) and "://" in path and path.partition("://")[0].lower() in _DATABASES


def open_source(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    input_format: str | None = None,
    question: str | None = None,
    table: str | None = None,
) -> Source:
    """Open a file, an export or a table of a database; the parameters are those of ``read``."""
    if input_format is not None and not (isinstance(input_format, str) and input_format in FORMATS):
        raise invalid("input_format", f"input_format must be one of {shown(FORMATS, 10)}: got {shown([input_format])}.")
    if question is not None and not isinstance(question, str):
        raise invalid("question", f"question must be the name of a question: got {shown([question])}.")
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if is_url(path):
        from dhkappa.inputs.backends.databases import open_table

        return Source(open_table(str(path), table))
    if table is not None and "://" not in str(path):
        raise invalid(
            "table",
            f"table names a table of a database, but {shown([path])} is a file.",
            hint="Omit $table.",
            code="option-not-supported",
        )
    if isinstance(path, str):
        path = os.path.expanduser(path)
    tool = _tool(path, input_format)
    if tool is not None:
        state = FileStates.of([path])  # type: ignore[list-item]  # an export is one file
        with state.unchanged(), memory_errors("the export"):
            return _source_of(read_file(path, tool, question))  # type: ignore[arg-type]
    if question is not None:
        raise invalid(
            "question",
            f"question names a question of an annotation tool's export, but {shown([path])} is a table.",
            hint="Omit $question.",
            code="option-not-supported",
        )
    files = find_files(path)
    state = FileStates.of(files)
    with state.unchanged():
        return Source(open_files(files, connection=_connection()), ordered=True, files=state)


class _Local(threading.local):
    connection: DuckDBPyConnection | None = None


_LOCAL = _Local()


def _connection() -> DuckDBPyConnection:
    """Return the DuckDB connection of this thread: only tables of one connection can be joined."""
    if _LOCAL.connection is None:
        _LOCAL.connection = connect()
    else:
        fit(_LOCAL.connection)
    return _LOCAL.connection


def _tool(path: Any, input_format: str | None) -> str | None:
    """Return the tool that wrote a file, by ``input_format`` or by its content; None for a table."""
    if input_format == "table":
        return None
    if input_format is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise invalid("path", f"An export of {TOOLS[input_format]} is one file: got {shown([path])}.")
        return input_format
    single = isinstance(path, (str, os.PathLike)) and os.path.isfile(path)
    if not single or not os.fspath(path).lower().endswith(_RECORDS):
        return None
    zipped = os.fspath(path).lower().endswith(".zip")
    if zipped and os.access(path, os.R_OK) and not is_zipfile(path):
        raise invalid(
            "path", f"{shown([path])} is not a valid zip file.", hint="It may be incomplete.", code="unreadable-file"
        )
    tool = find_tool(path)
    if zipped and tool is None:
        raise invalid(
            "path",
            f"{shown([path])} is a zip file, but not an export of a known tool.",
            hint="Unzip it and pass the files.",
            code="unknown-file-type",
        )
    return tool


def _source_of(export: Export) -> Source:
    """Convert an export to tables."""
    return Source(
        relation_of(export.votes, connection=_connection()),
        relation_of(export.items, connection=_connection()),
        {"item": "item", "label": "label", "annotator": "annotator"},
        export.labelers,
        export.tool,
        export.skipped,
        export.unlabeled,
        export.cautions,
        ordered=True,
    )
