"""Votes by annotator: the pairs of votes that each takes part in, and the votes of all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dhkappa.core import Array, Integers
from dhkappa.core.grouping import Entries, Patterns, group_rows
from dhkappa.core.items import ItemVotes
from dhkappa.errors import invalid
from dhkappa.stats.sample import Pool, Sample, sample_of
from dhkappa.stats.weights import VotePairs, Weights, vote_pairs

_BLOCK = 1 << 20  # entries of patterns that are processed at once


def require_items(item_votes: ItemVotes | None) -> ItemVotes:
    """Return the votes by item, or refuse data without items."""
    if item_votes is None:
        message = "The items are unknown: a tally keeps only counts, and a large table needs names of items."
        hint = "Pass votes or counts; for a large table also $item."
        raise invalid("item", message, hint=hint, code="items-unknown")
    return item_votes


def require_annotators(item_votes: ItemVotes | None) -> None:
    """Require votes with annotator identities."""
    if item_votes is None or item_votes.annotators is None:
        hint = (
            "Pass votes as an n x N array, or a table in memory with $annotators or $annotator. Lists, counts, tallies "
            "and large tables in an engine do not keep who cast a vote."
        )
        raise invalid("annotators", "Annotators are unknown.", hint=hint, code="annotators-unknown")


def sample_of_rows(item_votes: ItemVotes, name: str, pool: Pool, known: dict[str, Sample]) -> Sample:
    """Return the eligible rows with the labels of a labeler, computed once."""
    if name not in known:
        known[name] = sample_of(item_votes.labeled_patterns(name), pool=pool)
    return known[name]


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorVotes:
    """T votes on eligible items, in order of annotators; K patterns, one per row of the data."""

    sample: Sample
    weights: Weights | None
    pairs: VotePairs  # of the K patterns
    who: Array  # (T,) the annotator
    row: Array  # (T,) the pattern of the item
    entry: Array  # (T,) the entry of the patterns that counts the vote

    @property
    def scale(self) -> int:
        """The unit of the agreement weights, 1 without weights; differentials are in units of its square."""
        return 1 if self.weights is None else self.weights.unit

    @property
    def n_votes(self) -> Integers:
        """(T,) number of votes on the item."""
        return self.sample.patterns.vote_totals()[self.row]

    @property
    def mass(self) -> Array:
        """(T,) integer weight of all items of the pattern."""
        return self.sample.mass[self.row]

    @property
    def items(self) -> Integers:
        """(T,) number of items of the pattern."""
        return self.sample.patterns.items[self.row]

    @property
    def own(self) -> Array:
        """(T,) the category that the annotator voted for."""
        code: Array = self.sample.patterns.code[self.entry]
        return code

    @property
    def label(self) -> Array:
        """(T,) the suggested label."""
        return self.sample.patterns.suggested[self.row]

    def signed(self) -> Array:
        """Return (T,) the differential of the pairs of votes that include this one."""
        return self.pairs.with_one[self.entry]

    def annotator_categories(self, columns: Sequence[tuple[Array, Array]], size: int) -> AnnotatorCategories:
        """Return the pairs of an annotator and a category in some columns; with agreement weights all pairs."""
        if self.weights is None:
            return annotator_categories(columns)
        m = len(self.weights.scaled)
        return AnnotatorCategories(
            *np.divmod(np.arange(size * m), m), [who.astype(np.int64) * m + code for who, code in columns]
        )

    def take(self, votes: Any) -> AnnotatorVotes:
        """Return some votes, by mask or slice."""
        return replace(self, who=self.who[votes], row=self.row[votes], entry=self.entry[votes])

    def blocks(self) -> Iterator[tuple[Array, AnnotatorVotes]]:
        """Yield a few annotators at a time, and their votes with ``who`` an index into these; no one without votes."""
        first = np.flatnonzero(np.diff(self.who.astype(np.int64), prepend=-1))
        bounds = np.append(first, self.who.size)
        least = 0 if self.weights is None else len(self.weights.scaled)
        entries = np.add.reduceat(np.diff(self.sample.patterns.start)[self.row], first)
        upto = np.append(0, np.cumsum(np.maximum(entries, least)))
        start = 0
        while start < first.size:
            end = max(int(np.searchsorted(upto, upto[start] + _BLOCK, side="right")) - 1, start + 1)
            votes = self.take(slice(int(bounds[start]), int(bounds[end])))
            index = np.repeat(np.arange(end - start), np.diff(bounds[start : end + 1]))
            yield self.who[first[start:end]], replace(votes, who=index)
            start = end

    def patterns(self) -> tuple[Patterns, Integers]:
        """Return the pattern of each vote, and the entry that counts the vote."""
        patterns = self.sample.patterns.take(self.row)
        entries = Entries(patterns.start, patterns.code, patterns.votes.astype(np.int64))
        return replace(patterns, entries=entries), entries.start[:-1] + self.entry - self.sample.patterns.start[
            self.row
        ]

    def others(self) -> Patterns:
        """Return the pattern of each vote without that vote."""
        patterns, at = self.patterns()
        patterns.votes[at] -= 1
        left = patterns.votes > 0
        start = np.append(0, np.cumsum(left))[patterns.start]
        return replace(patterns, entries=Entries(start, patterns.code[left], patterns.votes[left]))


def annotator_votes(item_votes: ItemVotes, sample: Sample, weights: Weights | None = None) -> AnnotatorVotes:
    """Return the votes on the eligible items; ``sample`` has one pattern per eligible row of the votes."""
    patterns, places = sample.patterns, sample.kept
    assert places is not None
    row_of: Array = np.full(len(item_votes.columns), -1, np.int32 if places.size < 2**31 else np.int64)
    row_of[places] = np.arange(places.size)
    item, who, _ = item_votes.sorted_votes
    eligible = row_of[item] >= 0
    row, who = row_of[item[eligible]], who[eligible].astype(np.min_scalar_type(len(item_votes.annotators or ())))
    order = np.argsort(who, kind="stable")
    entry = np.repeat(np.arange(patterns.code.size), patterns.votes)  # patterns list votes in the same order
    return AnnotatorVotes(sample, weights, vote_pairs(patterns, weights), who[order], row[order], entry[order])


class AnnotatorCategories(NamedTuple):
    """Distinct pairs of an annotator and a category, in order."""

    who: Array
    code: Array
    of: list[Array]  # for each column of pairs, the index of each


def annotator_categories(columns: Sequence[tuple[Array, Array]]) -> AnnotatorCategories:
    """Return the distinct pairs (annotator, category) in some columns of pairs."""
    who, code = map(np.concatenate, zip(*columns, strict=True))
    first, group = group_rows([(int(values.max(initial=0)) + 1, values) for values in (who, code)])
    ends = np.cumsum([len(column) for column, _ in columns])[:-1]
    return AnnotatorCategories(who[first], code[first], np.split(group, ends))
