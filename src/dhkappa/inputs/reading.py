"""Open files, exports and databases as a ``Dataset``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Unpack

from dhkappa.inputs.columns import DataKeywords, check_keywords
from dhkappa.inputs.dataset import Dataset
from dhkappa.inputs.files import open_sources


def read(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    suggested: Any = None,
    *,
    input_format: str | None = None,
    question: str | None = None,
    table: str | None = None,
    sheet: str | None = None,
    items_sheet: str | None = None,
    **options: Unpack[DataKeywords],
) -> Dataset:
    r"""Open a file, an annotation tool's export or a table of a database as a ``Dataset``.

    Files are CSV, TSV, JSON, JSONL (each also gzipped), Parquet and Excel. All columns of CSV, TSV and Excel are text,
    and an empty field is missing. Exports of Label Studio, Prodigy, doccano and Argilla are recognized by content.
    Files are read when a result is computed; a file that has changed since it was opened is refused.

    Parameters
    ----------
    path
        A path, a pattern such as ``"votes/*.parquet"``, a list of them, or the address of a database, such as
        ``"postgresql://user@host/name"``, which then does the counting.
    suggested, **options
        As for ``Dataset``.
    input_format
        ``"table"``, ``"label_studio"``, ``"prodigy"``, ``"doccano"`` or ``"argilla"``; recognized by default.
    question, table, sheet
        Which question of an export that asks several, which table of a database, or which sheet of an Excel file; the
        first sheet by default. An Excel file of ``items`` is read from its sheet of that name, or from its first one.
    items_sheet
        Sheet of the Excel file of ``items``, which may be the same file as that of the votes.

    Examples
    --------
    >>> import dhkappa, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "votes.csv")
    ...     _ = path.write_text("item,suggested_llm,ann_1,ann_2\n007,spam,spam,spam\n008,ham,ham,spam\n")
    ...     print(dhkappa.dh_kappa(dhkappa.read(path)).exact)
    1/2
    """
    check_keywords(options, DataKeywords)
    how = {"input_format": input_format, "question": question, "table": table, "sheet": sheet}
    how["items_sheet"] = items_sheet
    source, items = open_sources(path, options.get("items"), **how)
    return Dataset(source, suggested, **(options if items is None else {**options, "items": items}))
