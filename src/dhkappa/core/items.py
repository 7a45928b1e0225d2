"""Ballots: every vote with the item it is on and, where known, the annotator who cast it. A tally forgets both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.counting import Read, read_matrix, read_votes, settle
from dhkappa.core.labels import Encoded, Integers, Label
from dhkappa.core.patterns import Patterns, from_votes


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """T votes on n items, and the suggested labels of the items.

    Attributes
    ----------
    categories : the categories, in the order of codes
    names : (n,) what each item is called; its rank, where rows stand for several items
    annotators : what each annotator is called; None where nothing tells who cast a vote
    item : (T,) the item that a vote is on, ascending
    annotator : (T,) who cast it; all 0 where that is not known
    code : (T,) the category it is for
    suggested : (n,) code of the suggested label, -1 where missing, by labeler
    weight : (n,) what each item weighs; None where all weigh the same
    strata : what each stratum is called
    stratum : (n,) place in ``strata``; None where there are none
    items : (n,) where a row stands for several like items, how many; None where a row is an item
    find : then returns some rows, and an item of each, in that order, for the rows and the number that are wanted
    """

    categories: tuple[Label, ...]
    names: Sequence[Any]
    annotators: tuple[Any, ...] | None
    item: npt.NDArray[np.int64]
    annotator: npt.NDArray[np.int64]
    code: Integers
    suggested: dict[str, npt.NDArray[np.int32]]
    weight: npt.NDArray[np.float64] | None = None
    strata: tuple[Label, ...] = ()
    stratum: npt.NDArray[np.int32] | None = None
    items: npt.NDArray[np.int64] | None = None
    find: Callable[[Sequence[int], int], list[tuple[int, Any]]] | None = None

    @property
    def n_items(self) -> int:
        """The number of rows: of items, eligible or not."""
        return len(self.names)

    def patterns(self, labeler: str) -> Patterns:
        """Return a pattern for each item, in the order of items, with the labels of a labeler."""
        order = np.lexsort((self.code, self.item))
        start = np.searchsorted(self.item, np.arange(self.n_items + 1))
        nobody = np.zeros(len(self.categories), np.bool_)
        each = np.ones(self.n_items, np.int64) if self.items is None else self.items
        return from_votes(self.code[order], start, nobody, self.suggested[labeler], each)


def read_ballots(
    votes: Any,
    suggested: Mapping[str, Any],
    *,
    counts: Any = None,
    categories: tuple[Label, ...] | None = None,
    missing: Collection[Label] = (),
    weights: Any = None,
    strata: Any = None,
) -> Ballots:
    """Read arrays or lists of votes, or a matrix of counts, as to ``dh_kappa``; labels by labeler.

    The columns of an array or a dataframe are annotators. Lists and counts do not tell who voted.
    """
    if counts is None:
        source, read = votes, read_votes(votes, suggested, missing, weights, strata)
    else:
        source, read = counts, read_matrix(counts, suggested, categories, missing, weights, strata)
    annotators: tuple[Any, ...] | None = None
    if read.matrix is None and read.length is None and not isinstance(votes, (list, tuple)):
        annotators = tuple(getattr(votes, "columns", range(read.votes.values.shape[1])))
    index: Any = getattr(source, "index", None)
    return ballots_of(read, categories, list(index) if hasattr(index, "equals") else None, annotators)


def ballots_of(
    read: Read,
    categories: tuple[Label, ...] | None,
    names: Sequence[Any] | None = None,
    annotators: tuple[Any, ...] | None = None,
    annotator: npt.NDArray[np.int64] | None = None,
) -> Ballots:
    """Return what was read as ballots.

    Parameters
    ----------
    read
        Votes and what is beside them.
    categories
        As declared; None for those that occur.
    names
        What each item is called; by default its place.
    annotators
        What each annotator is called, if known. The columns of a grid are theirs.
    annotator
        For rows of different lengths, who cast each vote.
    """
    if read.matrix is not None:
        n, m = read.matrix.shape
        cell = np.repeat(np.arange(n * m), read.matrix.ravel())
        item, digits = np.divmod(cell, max(m, 1))
        who = np.zeros_like(item)
    elif read.length is not None:
        n = read.length.size
        item, digits = np.repeat(np.arange(n), read.length), read.votes.digits(slice(None))
        who = np.zeros_like(item) if annotator is None else annotator
    else:
        n, N = read.votes.values.shape
        item, who = np.divmod(np.arange(n * N), max(N, 1))
        digits = read.votes.digits(slice(None)).reshape(-1)
    found = settle(read, read.votes.occurring(digits), read.beside.suggested(), categories)
    place: dict[Label | None, int] = {label: code for code, label in enumerate(found)}
    code = _codes(read.votes, place)[digits]
    cast = code >= 0
    beside = read.beside.sides(np.arange(n), found)
    return Ballots(
        categories=found,
        names=range(n) if names is None else names,
        annotators=annotators,
        item=item[cast],
        annotator=who[cast],
        code=code[cast],
        suggested=dict(zip(beside.labelers, beside.labels, strict=True)),
        weight=read.beside.weight,
        strata=beside.strata,
        stratum=beside.stratum,
        items=read.items,
    )


def _codes(encoded: Encoded, place: dict[Label | None, int]) -> npt.NDArray[np.int32]:
    codes = [-1 if label is None else place.get(label, -1) for label in encoded.labels]
    return np.array(codes or [-1], np.int32)
