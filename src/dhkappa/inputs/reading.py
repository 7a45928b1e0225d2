"""Reading: a path, an address of a database or an annotation tool's export becomes a source of votes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

from dhkappa.errors import DataError, shown
from dhkappa.inputs.backends.duckdb import connect, fit, relation_of
from dhkappa.inputs.databases import is_url, open_table
from dhkappa.inputs.files import open_files
from dhkappa.inputs.readers.export import Export
from dhkappa.inputs.source import Source
from dhkappa.memory import fitting
from dhkappa.paths import Steady, found

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TOOLS = ("label_studio", "prodigy", "doccano", "argilla")
_RECORDS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".zip")
FORMATS = ("table", *_TOOLS)
"""What a file may be said to be."""


def read(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
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
    format
        ``"table"``, ``"label_studio"``, ``"prodigy"``, ``"doccano"`` or ``"argilla"``; by default what the content is.
    question
        Which question of an export, where it asks several.
    table
        Which table of a database.

    Examples
    --------
    >>> import dhkappa, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "votes.csv")
    ...     _ = path.write_text("item,llm,ann_1,ann_2\n007,spam,spam,spam\n008,ham,ham,spam\n")
    ...     print(dhkappa.read(path))
    ...     print(dhkappa.dh_kappa(path, suggested="llm").exact)
    Source(columns 'item', 'llm', 'ann_1', 'ann_2')
    1/2
    """
    if format is not None and not (isinstance(format, str) and format in FORMATS):
        raise DataError(f"format must be one of {shown(FORMATS, 10)}: got {shown([format])}.")
    if question is not None and not isinstance(question, str):
        raise DataError(f"question must be the name of a question, as text: got {shown([question])}.")
    if is_url(path):
        return Source(open_table(str(path), table))
    if table is not None and "://" not in str(path):
        raise DataError(f"table names a table of a database, but {shown([path])} is the path of a file: leave it out.")
    if isinstance(path, (str, os.PathLike)):
        path = os.path.expanduser(path)
    tool = _tool(path, format)
    if tool is not None:
        steady = Steady.of([path])  # type: ignore[list-item]  # an export is one file
        with steady.held(), fitting("the export"):
            return _exported(tool.read_export(_records().read_records(path), question=question))
    if question is not None:
        raise DataError(f"question chooses among those of an export, but {shown([path])} is a table: leave it out.")
    files = found(path)
    steady = Steady.of(files)
    with steady.held():
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


def _records() -> Any:
    return import_module("dhkappa.inputs.readers.records")


def _tool(path: Any, format: str | None) -> Any:
    """Return the module of the tool whose export a file is, by its content where nothing was said."""
    if format == "table":
        return None
    if format is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise DataError(f"format={format!r} is an export, which is one file: got {shown([path])}; pass one path.")
        return import_module(f"dhkappa.inputs.readers.{format}")
    single = isinstance(path, (str, os.PathLike)) and os.path.isfile(path)
    if not single or not os.fspath(path).lower().endswith(_RECORDS):
        return None
    packed = os.fspath(path).lower().endswith(".zip")
    if packed and os.access(path, os.R_OK) and not is_zipfile(path):
        raise DataError(f"{shown([path])} is not a whole zip: it is damaged or cut short, so fetch it again.")
    record = _records().first_record(path)
    for name in _TOOLS if record is not None else ():
        tool = import_module(f"dhkappa.inputs.readers.{name}")
        if tool.recognise(record):
            return tool
    if packed:
        raise DataError(f"{shown([path])} is a zip of no export that is known: unpack it, and pass the files in it.")
    return None


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
