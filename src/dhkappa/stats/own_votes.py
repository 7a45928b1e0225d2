"""Votes in order of annotators, and sums over the items of each annotator.

Every sum is over all annotators at once, so that its cost depends on the number of votes. A cell is a category on the
items of one annotator.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core.grouping import Patterns, group_rows
from dhkappa.core.items import ItemVotes
from dhkappa.stats.sample import Sample
from dhkappa.stats.summation import group_sums

_BLOCK = 1 << 20  # entries of patterns that are processed at once

_Array = npt.NDArray[Any]
_Index = npt.NDArray[np.int64]
_Ratio = tuple[_Array, _Array]  # numerators and denominators


@dataclass(frozen=True, slots=True, eq=False)
class OwnVotes:
    """T votes on eligible items, in order of annotators; K patterns, one per row of the data."""

    sample: Sample
    agreeing: _Index  # (K,) pairs of votes on an item that agree
    differential: _Index  # (K,) those on the suggested label less those on another
    who: _Array  # (T,) the annotator
    row: _Array  # (T,) the pattern of the item
    entry: _Array  # (T,) the entry of the patterns that counts the vote

    @property
    def n_votes(self) -> _Index:
        """(T,) number of votes on the item."""
        return self.sample.patterns.vote_totals()[self.row]

    @property
    def mass(self) -> _Array:
        """(T,) integer weight of all items of the pattern."""
        return self.sample.mass[self.row]

    @property
    def items(self) -> _Index:
        """(T,) number of items of the pattern."""
        return self.sample.patterns.items[self.row]

    @property
    def own(self) -> _Array:
        """(T,) the category that the annotator voted for."""
        return self.sample.patterns.code[self.entry]

    @property
    def label(self) -> _Array:
        """(T,) the suggested label."""
        return self.sample.patterns.suggested[self.row]

    @property
    def alike(self) -> _Index:
        """(T,) number of other votes on the item for the same category."""
        return self.sample.patterns.votes[self.entry].astype(np.int64) - 1

    def signed(self) -> _Index:
        """Return (T,) the differential of the pairs of votes that include this one."""
        return np.where(self.own == self.label, self.alike, -self.alike)

    def take(self, votes: Any) -> OwnVotes:
        """Return some votes, by mask or slice."""
        return replace(self, who=self.who[votes], row=self.row[votes], entry=self.entry[votes])

    def blocks(self) -> Iterator[tuple[_Array, OwnVotes]]:
        """Yield a few annotators at a time, and their votes with ``who`` an index into these; no one without votes."""
        first = np.flatnonzero(np.diff(self.who.astype(np.int64), prepend=-1))
        bounds = np.append(first, self.who.size)
        upto = np.append(0, np.cumsum(np.add.reduceat(np.diff(self.sample.patterns.start)[self.row], first)))
        start = 0
        while start < first.size:
            end = max(int(np.searchsorted(upto, upto[start] + _BLOCK, side="right")) - 1, start + 1)
            votes = self.take(slice(int(bounds[start]), int(bounds[end])))
            index = np.repeat(np.arange(end - start), np.diff(bounds[start : end + 1]))
            yield self.who[first[start:end]], replace(votes, who=index)
            start = end

    def patterns(self) -> tuple[Patterns, _Index]:
        """Return the pattern of each vote, and the entry that counts the vote."""
        patterns = self.sample.patterns.take(self.row)
        return patterns, patterns.start[:-1] + self.entry - self.sample.patterns.start[self.row]

    def others(self) -> Patterns:
        """Return the pattern of each vote without that vote."""
        patterns, at = self.patterns()
        patterns.votes[at] -= 1
        left = patterns.votes > 0
        start = np.append(0, np.cumsum(left))[patterns.start]
        return replace(patterns, start=start, code=patterns.code[left], votes=patterns.votes[left])


def own_votes(item_votes: ItemVotes, sample: Sample) -> OwnVotes:
    """Return the votes on the eligible items; ``sample`` has one pattern per eligible row of the votes."""
    patterns, places = sample.patterns, sample.kept
    assert places is not None
    row_of: _Array = np.full(len(item_votes.columns), -1, np.int32 if places.size < 2**31 else np.int64)
    row_of[places] = np.arange(places.size)
    item, who, _ = item_votes.sorted_votes
    eligible = row_of[item] >= 0
    row, who = row_of[item[eligible]], who[eligible].astype(np.min_scalar_type(len(item_votes.annotators or ())))
    order = np.argsort(who, kind="stable")
    entry = np.repeat(np.arange(patterns.code.size), patterns.votes)  # patterns list votes in the same order
    return OwnVotes(sample, *agreeing_pairs(patterns), who[order], row[order], entry[order])


def agreeing_pairs(patterns: Patterns) -> tuple[_Index, _Index]:
    """Return (K,) the pairs of votes on an item that agree, and those on its label less those on another."""
    votes, first = patterns.votes.astype(np.int64), patterns.start[:-1]
    pairs = votes * (votes - 1) // 2
    agreeing = np.add.reduceat(pairs, first)
    pairs[patterns.code != np.repeat(patterns.suggested, np.diff(patterns.start))] = 0
    return agreeing, 2 * np.add.reduceat(pairs, first) - agreeing


class Cells(NamedTuple):
    """Distinct pairs of an annotator and a category, in order."""

    who: _Array
    code: _Array
    of: list[_Array]  # for each column of pairs, the cell of each


def cells(columns: Sequence[tuple[_Array, _Array]]) -> Cells:
    """Return the cells of some columns of pairs (annotator, category)."""
    who, code = map(np.concatenate, zip(*columns, strict=True))
    first, group = group_rows([(int(values.max(initial=0)) + 1, values) for values in (who, code)])
    ends = np.cumsum([len(column) for column, _ in columns])[:-1]
    return Cells(who[first], code[first], np.split(group, ends))


def integer_type(bound: int) -> Any:
    """Return the type of integers up to a bound: Python integers if 64 bits might be too few."""
    return np.int64 if bound < 2**62 else object


def totals(numbers: _Array, group: _Array, size: int) -> _Array:
    """Return (size,) the sums of integers by group."""
    found = np.zeros(size, numbers.dtype)
    np.add.at(found, group, numbers)
    return found


def ratios(top: _Array, bottom: _Array) -> npt.NDArray[np.float64]:
    """Return the quotients of integers as floats, rounded once."""
    return np.array([a / b for a, b in zip(top.tolist(), bottom.tolist(), strict=True)], np.float64)


def item_sums(values: _Array, items: _Array, group: _Array, size: int) -> npt.NDArray[np.float64]:
    """Return (size,) the sums by group of a value per row that stands for some items, rounded once."""
    if items.max(initial=0) > 1:
        high = (values.view(np.int64) & -(1 << 27)).view(np.float64)  # 26 of 53 bits: the products are exact
        many = items >> 26 << 26
        products = [part * number for part in (high, values - high) for number in (many, items - many)]
        values, group = np.concatenate(products), np.tile(group, len(products))
    return group_sums(values, group, size)


def weight_of_one(sample: Sample) -> npt.NDArray[np.float64]:
    """Return (K,) the weight of one item of each pattern; those of all items sum to their number."""
    if not sample.weighted:
        return np.ones(len(sample.patterns))
    n, whole = sample.n, int(sample.mass.sum())
    return np.array([mass * n / whole for mass in (sample.mass // sample.patterns.items).tolist()])  # rounded once


class Units(NamedTuple):
    """Common denominators of the shares of votes and of pairs on items with some numbers of votes."""

    vote: int
    pair: int
    per_vote: _Array  # vote / N, by N; 0 if no item has N votes
    per_pair: _Array  # pair / C(N, 2), by N


def units(sizes: Collection[int], mass: int) -> Units:
    """Return the units for numbers of votes from 2, as integers that can be added up over items of this mass."""
    pairs = [math.comb(size, 2) for size in sizes]
    vote, pair = math.lcm(*sizes), math.lcm(*pairs)
    per_vote, per_pair = np.zeros((2, max(sizes, default=0) + 1), integer_type(mass * max(vote, pair)))
    per_vote[list(sizes)] = [vote // size for size in sizes]
    per_pair[list(sizes)] = [pair // number for number in pairs]
    return Units(vote, pair, per_vote, per_pair)


class KappaSums(NamedTuple):
    """What kappa is computed from, by annotator, as arrays of Python integers."""

    units: Units
    n: _Array  # weight of the items
    differential: _Array  # D, times n and the unit of pairs
    same: _Array  # sum_j C_j^2, times (n and the unit of votes)^2
    on: _Array  # sum_j C_j^2 L_j, times that and n

    @property
    def D(self) -> _Ratio:
        """The agreement differential."""
        return self.differential, self.n * self.units.pair

    @property
    def C_E(self) -> _Ratio:
        """sum_j C_j^2 L_j (eq. 6)."""
        return self.on, self.n**3 * self.units.vote**2

    @property
    def E(self) -> _Ratio:
        """The differential expected by chance, 2 C_E - sum_j C_j^2."""
        return 2 * self.on - self.n * self.same, self.n**3 * self.units.vote**2

    @property
    def kappa(self) -> _Ratio:
        """(D - E) / (1 - E), eq. 13; the denominator is 0 if E is 1."""
        (D, _), (E, whole) = self.D, self.E
        return D * (self.n * self.units.vote) ** 2 - E * self.units.pair, (whole - E) * self.units.pair
