"""Dataset: votes and suggested labels of any origin, with column roles resolved once and counted once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from dhkappa.core import Label
from dhkappa.core.items import ItemVotes
from dhkappa.errors import DataError
from dhkappa.inputs.columns import RoleKeywords, check_keywords
from dhkappa.inputs.load import InputData, input_data
from dhkappa.inputs.tally import Tally

if TYPE_CHECKING:  # imported when needed: it loads DuckDB and narwhals
    from dhkappa.inputs.source import Source


class Dataset:
    """Votes of several annotators on items, with the labels that one or more labelers suggest.

    Nothing is counted until a result is asked for; then each item is counted once, by the engine that holds the data.

    Parameters
    ----------
    data
        Votes: an n x N array or n lists of labels, one row per item. A label is text, an integer, a boolean or an enum
        member; None, NaN and empty text are missing. Or a table in wide or long format: of pandas, Polars, PyArrow,
        DuckDB, Dask, Spark or Ibis, or the path of one, as for ``read``.
    suggested
        n labels, or a mapping from the name of each labeler to its n labels. With a table, the name of a column, a list
        of names, or a mapping from labelers to columns; by default the columns ``suggested`` and ``suggested_*``. With
        ``counts`` also column codes from 0, or an n x m one-hot matrix (the paper's B).
    counts
        n x m matrix of vote counts instead of votes (the paper's A). With a table that has a column of counts per
        category, the names of these columns.
    categories
        The possible labels, in order; any other label is an error. With ``counts``, the names of its columns.
    missing
        Labels that mean missing, such as ``"NA"``.
    sample_weight
        What each item stands for, n numbers: one over its probability of being sampled. Only ratios matter. With a
        table, the name of a column.
    strata
        The stratum that each item was sampled from, n labels. With a table, the name of a column.
    annotators
        Wide format: the columns of votes, one per annotator, by name or pattern, such as ``"ann_*"``.
    item, label, annotator, count
        Long format: the columns with the item, the label of the vote, who voted, or the number of equal votes. In wide
        format, ``item`` may name the items.
    items
        Long format: a second table, or its path, with one row per item: suggested labels, weights, strata.
    duplicates
        ``"error"`` if an annotator votes twice on an item, or ``"first"`` or ``"last"`` to keep one vote, by row.
    unlisted
        ``"error"`` if a vote is on an item that ``items`` lacks, or ``"unlabeled"`` to count it as an item without
        label.

    Examples
    --------
    >>> import dhkappa
    >>> votes = [["cat", "cat", "cat"], ["cat", "cat", "dog"], ["dog", "dog", "dog"]]
    >>> data = dhkappa.Dataset(votes, {"rule": ["cat", "dog", "dog"], "llm": ["cat", "cat", "dog"]})
    >>> data
    Dataset(3 items, 9 votes, 2 categories, labelers 'rule', 'llm')
    >>> dhkappa.dh_kappa(data, "rule").exact
    Fraction(4, 7)
    """

    __slots__ = ("_data",)

    def __init__(
        self,
        data: Any = None,
        suggested: Any = None,
        *,
        counts: Any = None,
        categories: Iterable[Any] | None = None,
        missing: Iterable[Any] = (),
        sample_weight: Any = None,
        strata: Any = None,
        **roles: Unpack[RoleKeywords],
    ) -> None:
        self._data = input_data(data, suggested, counts, categories, missing, sample_weight, strata, roles)

    @property
    def input_data(self) -> InputData:
        """The data and options as they were passed."""
        return self._data

    @property
    def source(self) -> Source | None:
        """The file, export or database that was read; None for data in memory."""
        from dhkappa.inputs.source import Source

        return self._data.data if isinstance(self._data.data, Source) else None

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, in order."""
        return self._data.patterns.categories

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of the labelers."""
        return self._data.patterns.columns.labelers

    def tally(self) -> Tally:
        """Count votes and suggested labels."""
        return Tally.of(self._data)

    def item_votes(self) -> ItemVotes | None:
        """Return every vote with its item and annotator, as far as these are known."""
        return self._data.item_votes

    def __repr__(self) -> str:
        return f"Dataset{repr(self.tally()).removeprefix('Tally').replace(_patterns(self), '')}"

    def __copy__(self) -> Dataset:
        return self

    def __deepcopy__(self, memo: Any) -> Dataset:
        return self

    def __reduce__(self) -> NoReturn:
        raise DataError(
            "A Dataset cannot be pickled, as it may hold an open file or database.",
            code="not-picklable",
            hint="Pickle what it was made from, or save its tally().",
        )


def _patterns(dataset: Dataset) -> str:
    n = len(dataset.input_data.patterns.patterns)
    return f", {n:,} pattern{'' if n == 1 else 's'}"


def read(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    suggested: Any = None,
    *,
    input_format: str | None = None,
    question: str | None = None,
    table: str | None = None,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
    sample_weight: Any = None,
    strata: Any = None,
    **roles: Unpack[RoleKeywords],
) -> Dataset:
    r"""Open a file, an annotation tool's export or a table of a database as a ``Dataset``.

    Files are CSV, TSV, JSON, JSONL (each also gzipped) and Parquet. All columns of CSV and TSV are text, and an empty
    field is missing. Exports of Label Studio (JSON), Prodigy (JSONL), doccano (zip) and Argilla (JSON) are recognized
    by their content. Files are read when a result is computed; a file that has changed since it was opened is refused.

    Parameters
    ----------
    path
        A path, a pattern such as ``"votes/*.parquet"``, a list of them, or the address of a database, such as
        ``"postgresql://user@host/name"``, which then does the counting.
    suggested, counts, categories, missing, sample_weight, strata, **roles
        As for ``Dataset``.
    input_format
        ``"table"``, ``"label_studio"``, ``"prodigy"``, ``"doccano"`` or ``"argilla"``; by default recognized by
        content.
    question
        Which question of an export that asks several.
    table
        Which table of a database.

    Examples
    --------
    >>> import dhkappa, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "votes.csv")
    ...     _ = path.write_text("item,suggested_llm,ann_1,ann_2\n007,spam,spam,spam\n008,ham,ham,spam\n")
    ...     print(dhkappa.dh_kappa(dhkappa.read(path)).exact)
    1/2
    """
    from dhkappa.inputs.reading import open_source

    check_keywords(roles)
    source = open_source(path, input_format=input_format, question=question, table=table)
    return Dataset(
        source,
        suggested,
        counts=counts,
        categories=categories,
        missing=missing,
        sample_weight=sample_weight,
        strata=strata,
        **roles,
    )
