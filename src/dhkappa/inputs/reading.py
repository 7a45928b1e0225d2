"""Reading: a path, an address of a database or an annotation tool's export becomes a source of votes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

from dhkappa.errors import DataError, shown
from dhkappa.inputs.backends.duckdb import connect, fit, relation_of
from dhkappa.inputs.databases import is_url, open_table
from dhkappa.inputs.files import open_files
from dhkappa.inputs.readers import TOOLS, Export, find_tool, read_file
from dhkappa.inputs.source import Source
from dhkappa.paths import FileStates, find_files
from dhkappa.resources import memory_errors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_RECORDS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".zip")
FORMATS = ("table", *TOOLS)
"""What a file may be said to be."""


def open_source(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    input_format: str | None = None,
    question: str | None = None,
    table: str | None = None,
) -> Source:
    r"""Open a file, an export or a table of a database, to be passed to the other calls; no vote is counted yet.

    Files are CSV, TSV, JSON, JSONL (each also gzipped) and Parquet. In CSV and TSV all is text, as it is spelled, and
    an empty field is missing. Exports of Label Studio (JSON), Prodigy (JSONL), doccano (zip) and Argilla (JSON) are
    known by their content: they hold votes and suggested labels, with what is no vote counted in ``skipped``. A file is
    read at every question: one that has changed since it was opened is refused, as no number would be of one state.

    Parameters
    ----------
    path
        A path, a pattern such as ``"votes/*.parquet"``, a list of them, or the address of a database, such as
        ``"postgresql://user@host/name"``, which then does the counting.
    input_format
        ``"table"``, ``"label_studio"``, ``"prodigy"``, ``"doccano"`` or ``"argilla"``; by default what the content is.
    question
        Which question of an export, where it asks several.
    table
        Which table of a database.
    """
    if input_format is not None and not (isinstance(input_format, str) and input_format in FORMATS):
        raise DataError(f"input_format must be one of {shown(FORMATS, 10)}: got {shown([input_format])}.")
    if question is not None and not isinstance(question, str):
        raise DataError(f"question must be the name of a question, as text: got {shown([question])}.")
    if is_url(path):
        return Source(open_table(str(path), table))
    if table is not None and "://" not in str(path):
        raise DataError(f"table names a table of a database, but {shown([path])} is the path of a file: leave it out.")
    if isinstance(path, (str, os.PathLike)):
        path = os.path.expanduser(path)
    tool = _tool(path, input_format)
    if tool is not None:
        steady = FileStates.of([path])  # type: ignore[list-item]  # an export is one file
        with steady.unchanged(), memory_errors("the export"):
            return _exported(read_file(path, tool, question))  # type: ignore[arg-type]
    if question is not None:
        raise DataError(f"question chooses among those of an export, but {shown([path])} is a table: leave it out.")
    files = find_files(path)
    steady = FileStates.of(files)
    with steady.unchanged():
        return Source(open_files(files, connection=_own()), ordered=True, files=steady)


class _Held(threading.local):
    """The DuckDB of a thread: only tables of one can be joined, and it answers one thread at a time."""

    connection: DuckDBPyConnection | None = None


_HELD = _Held()


def _own() -> DuckDBPyConnection:
    """Return the one DuckDB that holds all files of this thread."""
    if _HELD.connection is None:
        _HELD.connection = connect()
    else:
        fit(_HELD.connection)
    return _HELD.connection


def _tool(path: Any, input_format: str | None) -> str | None:
    """Return the tool that wrote a file, by its content unless ``input_format`` says it; None for a table."""
    if input_format == "table":
        return None
    if input_format is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise DataError(
                f"input_format={input_format!r} is an export, which is one file: got {shown([path])}; pass one path."
            )
        return input_format
    single = isinstance(path, (str, os.PathLike)) and os.path.isfile(path)
    if not single or not os.fspath(path).lower().endswith(_RECORDS):
        return None
    packed = os.fspath(path).lower().endswith(".zip")
    if packed and os.access(path, os.R_OK) and not is_zipfile(path):
        raise DataError(f"{shown([path])} is not a whole zip: it is damaged or cut short, so fetch it again.")
    tool = find_tool(path)
    if packed and tool is None:
        raise DataError(f"{shown([path])} is a zip of no export that is known: unpack it, and pass the files in it.")
    return tool


def _exported(export: Export) -> Source:
    """Put what an export holds into tables."""
    return Source(
        relation_of(export.votes, connection=_own()),
        relation_of(export.items, connection=_own()),
        {"item": "item", "label": "label", "annotator": "annotator"},
        export.labelers,
        export.tool,
        export.skipped,
        export.unlabeled,
        export.cautions,
        ordered=True,
    )
