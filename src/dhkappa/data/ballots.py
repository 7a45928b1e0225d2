"""Ballots: every vote with the item it is on and, where known, the annotator who cast it. A tally forgets both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.data.arrays import column_names, encode_suggested, matrix_of, refuse_other_rows, rows_of
from dhkappa.data.labels import Encoded, Integers, Label, check_declared, encode, unite
from dhkappa.data.patterns import Patterns, from_votes


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """T votes on n items, and the suggested labels of the items.

    Attributes
    ----------
    categories : the categories, in the order of codes
    names : (n,) what each item is called
    annotators : what each annotator is called; None where nothing tells who cast a vote
    item : (T,) the item that a vote is on, ascending
    annotator : (T,) who cast it; all 0 where that is not known
    code : (T,) the category it is for
    suggested : (n,) code of the suggested label, -1 where missing, by labeler
    weight : (n,) what each item weighs; None where all weigh the same
    """

    categories: tuple[Label, ...]
    names: Sequence[Any]
    annotators: tuple[Any, ...] | None
    item: npt.NDArray[np.int64]
    annotator: npt.NDArray[np.int64]
    code: Integers
    suggested: dict[str, npt.NDArray[np.int32]]
    weight: npt.NDArray[np.float64] | None = None

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return len(self.names)

    def patterns(self, labeler: str) -> Patterns:
        """Return a pattern for each item, in the order of items, with the labels of a labeler."""
        order = np.lexsort((self.code, self.item))
        start = np.searchsorted(self.item, np.arange(self.n_items + 1))
        nobody = np.zeros(len(self.categories), np.bool_)
        each = np.ones(self.n_items, np.int64)
        return from_votes(self.code[order], start, nobody, self.suggested[labeler], each)


def read_ballots(
    votes: Any,
    suggested: Mapping[str, Any],
    *,
    counts: Any = None,
    categories: tuple[Label, ...] | None = None,
    missing: Collection[Label] = (),
    weight: npt.NDArray[np.float64] | None = None,
) -> Ballots:
    """Read arrays or lists of votes, or a matrix of counts, as to ``dh_kappa``; labels by labeler.

    The columns of an array are annotators. Lists of different lengths and counts do not tell who voted.
    """
    source, name = (votes, "votes") if counts is None else (counts, "counts")
    for labels in suggested.values():
        refuse_other_rows(source, labels, name)
    annotators: tuple[Any, ...] | None = None
    if counts is not None:
        matrix = matrix_of(counts)
        n, m = matrix.shape
        shape: tuple[int, ...] = matrix.shape
        cell = np.repeat(np.arange(n * m), matrix.ravel())
        item, digit = cell // max(m, 1), cell % max(m, 1)
        encoded = Encoded(digit, 0, tuple(column_names(counts, matrix.shape, categories)))
        annotator = np.zeros_like(item)
    else:
        rows = rows_of(votes)
        if isinstance(rows, np.ndarray):
            n, N = shape = rows.shape
            annotators = tuple(getattr(votes, "columns", range(N)))
            item, annotator = np.divmod(np.arange(n * N), max(N, 1))
            encoded = encode(rows, name, missing)
            encoded = Encoded(encoded.values.reshape(-1), encoded.low, encoded.labels)
        else:
            flat, length = rows
            shape = length.shape
            item = np.repeat(np.arange(len(length)), length)
            annotator = np.zeros_like(item)
            encoded = encode(flat, name, missing, lambda index: int(item[index]))
    labels = {who: encode_suggested(given, shape, name, missing) for who, given in suggested.items()}
    return _settled(encoded, item, annotator, annotators, labels, categories, _item_names(source, shape[0]), weight)


def _settled(
    votes: Encoded,
    item: npt.NDArray[np.int64],
    annotator: npt.NDArray[np.int64],
    annotators: tuple[Any, ...] | None,
    labels: dict[str, Encoded],
    declared: tuple[Label, ...] | None,
    names: Sequence[Any],
    weight: npt.NDArray[np.float64] | None,
) -> Ballots:
    """Settle the categories and write votes and labels in their codes, without missing votes."""
    digits = votes.digits(slice(None))
    voted = votes.occurring(digits)
    suggested = [given.occurring(given.digits(slice(None))) for given in labels.values()]
    if declared is None:
        categories = unite(voted, *suggested)
    else:
        check_declared(voted, declared, "votes")
        for found in suggested:
            check_declared(found, declared, "suggested")
        categories = declared
    place: dict[Label | None, int] = {label: code for code, label in enumerate(categories)}
    code = _codes(votes, place)[digits]
    cast = code >= 0
    return Ballots(
        categories=categories,
        names=names,
        annotators=annotators,
        item=item[cast],
        annotator=annotator[cast],
        code=code[cast],
        suggested={who: _codes(given, place)[given.digits(slice(None))] for who, given in labels.items()},
        weight=weight,
    )


def _codes(encoded: Encoded, place: dict[Label | None, int]) -> npt.NDArray[np.int32]:
    codes = (-1 if label is None else place.get(label, -1) for label in encoded.labels)
    return np.fromiter(codes, np.int32, len(encoded.labels))


def _item_names(source: Any, n: int) -> Sequence[Any]:
    """Return what a dataframe calls its rows, else their places from 0."""
    index: Any = getattr(source, "index", None)
    return list(index) if hasattr(index, "equals") and len(index) == n else range(n)
