"""Groups of annotators by the values of a column, and the votes of some annotators only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dhkappa.core.grouping import Encoded
from dhkappa.core.items import ItemVotes
from dhkappa.core.labels import SourceNote


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorColumn:
    """The groups of annotators that one column makes."""

    name: str  # as the user wrote it, without the name of the table
    slices: tuple[str, ...]  # names of the groups, in natural order; that of missing values last
    members: tuple[frozenset[Any], ...]  # the annotators of each group
    notes: tuple[SourceNote, ...] = ()


def votes_of(read: ItemVotes, annotators: Collection[Any]) -> ItemVotes:
    """Return the votes of some annotators only, on the same rows."""
    assert read.annotators is not None
    left = [place for place, name in enumerate(read.annotators) if name in annotators]
    names = tuple(read.annotators[place] for place in left)
    if read.length is None:
        votes = Encoded(read.votes.values[:, left], read.votes.low, read.votes.labels)
        return replace(read, votes=votes, annotators=names)
    assert read.voter is not None
    new = np.full(len(read.annotators), -1)
    new[left] = np.arange(len(left))
    voter = new[read.voter]
    kept = np.flatnonzero(voter >= 0)
    row = np.repeat(np.arange(read.length.size), read.length)[kept]
    length = np.bincount(row, minlength=read.length.size).astype(np.int64)
    return replace(read, votes=read.votes.take(kept), length=length, annotators=names, voter=voter[kept])
