"""Cells: items by their votes and the labels of several labelers at once, for comparing labelers on the same items."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.counting import distinct_votes, read_matrix, read_votes, settle
from dhkappa.core.item_columns import check_labelers
from dhkappa.core.labels import Encoded, Integers, Label, check_missing
from dhkappa.core.patterns import BLOCK, Patterns
from dhkappa.core.tally import Tally
from dhkappa.errors import DataError, shown

_FEW = 1 << 16  # bins that stay in cache
_MANY = 1 << 22
_WORD = 2**63


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """K cells: items with the same votes, labels, stratum and weight; two cells may be alike.

    Attributes
    ----------
    categories : the m categories, in the order of codes
    votes : V different patterns of votes; their labels and items mean nothing
    vote : (K,) place of a cell's votes among these
    labels : (K,) code of the suggested label, m where missing, by labeler
    strata : what each stratum is called
    stratum : (K,) place in ``strata``, or None
    weight : (K,) weight of one item, or None
    items : (K,) how many items
    single : whether each cell is one item
    labeled : whether no label is missing, as far as known
    remarks : as of a tally
    """

    categories: tuple[Label, ...]
    votes: Patterns
    vote: Integers
    labels: dict[str, Integers]
    strata: tuple[Label, ...]
    stratum: Integers | None
    weight: npt.NDArray[np.float64] | None
    items: npt.NDArray[np.int64]
    single: bool = False
    labeled: bool = False
    remarks: tuple[str, ...] = ()

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """Return some cells, by index or by mask."""
        return replace(
            self,
            vote=self.vote[rows],
            labels={who: codes[rows] for who, codes in self.labels.items()},
            stratum=None if self.stratum is None else self.stratum[rows],
            weight=None if self.weight is None else self.weight[rows],
            items=self.items[rows],
        )

    def joint(self, labelers: Sequence[str]) -> tuple[int, Integers]:
        """Return the labels of some labelers as one digit for each cell, and its base."""
        base = self._base ** len(labelers)
        if len(labelers) == 1 or base >= _WORD:
            return base, self.labels[labelers[0]]
        return base, _joined([(self._base, self.labels[who]) for who in labelers], np.min_scalar_type(base))

    @property
    def _base(self) -> int:
        return max(len(self.categories) + (not self.labeled), 1)

    def distinct(self, labelers: Sequence[str], joint: Sequence[tuple[int, Integers]] = ()) -> Cells:
        """Return the different cells as these labelers see them, in an order that only they decide.

        ``joint`` are their labels as fewer digits, where these are known already.
        """
        columns: list[tuple[int, Integers]] = [(len(self.votes), self.vote)]
        columns += [(self._base, self.labels[who]) for who in labelers]
        if self.stratum is not None:
            columns.append((len(self.strata), self.stratum))
        weights = np.zeros(0)
        if self.weight is not None:
            weights, place = np.unique(self.weight, return_inverse=True)
            columns.append((weights.size, place))
        space = math.prod(base for base, _ in columns)
        digits_at_once = [columns[0], *joint, *columns[1 + len(labelers) :]] if joint and space < _WORD else columns
        if space <= max(_FEW, min(_MANY, self.vote.size)):
            bins = np.zeros(space, np.int64)
            word = np.dtype(np.uint16 if space < 2**16 else np.uint32)
            step = max(2 * BLOCK, space)
            for begin in range(0, self.vote.size, step):  # so that keys stay in cache
                block = slice(begin, begin + step)
                key = _joined([(base, digit[block]) for base, digit in digits_at_once], word)
                if self.single:
                    bins += np.bincount(key, minlength=space)
                else:
                    np.add.at(bins, key, self.items[block])
            found = np.flatnonzero(bins)
            items = bins[found]
        elif space < _WORD:
            found, place = np.unique(_joined(digits_at_once, np.dtype(np.int64)), return_inverse=True)
            items = np.zeros(found.size, np.int64)
            np.add.at(items, place, self.items)
        else:
            order = np.lexsort([digit for _, digit in columns[::-1]])
            fresh = np.zeros(order.size, np.bool_)
            fresh[:1] = True
            for _, digit in columns:
                fresh[1:] |= digit[order][1:] != digit[order][:-1]
            first = np.flatnonzero(fresh)
            kept = self.take(order[first])
            return replace(
                kept,
                labels={who: kept.labels[who] for who in labelers},
                items=np.add.reduceat(self.items[order], first),
                single=False,
            )
        digits = []
        for base, _ in columns[:0:-1]:
            found, digit = np.divmod(found, base)
            digits.append(digit)
        digits.reverse()
        rest = iter(digits[len(labelers) :])
        return replace(
            self,
            vote=found,
            labels=dict(zip(labelers, digits, strict=False)),
            stratum=None if self.stratum is None else next(rest),
            weight=None if self.weight is None else weights[next(rest)],
            items=items,
            single=False,
        )


def _joined(columns: Sequence[tuple[int, Integers]], word: np.dtype[Any]) -> Integers:
    """Return one key for each cell, with these digits."""
    key = columns[0][1].astype(word)
    for base, digit in columns[1:]:
        key *= word.type(base)
        np.add(key, digit, out=key, casting="unsafe")
    return key


def read_cells(
    votes: Any,
    suggested: Mapping[str, Any],
    *,
    counts: Any = None,
    categories: tuple[Label, ...] | None = None,
    missing: Collection[Label] = (),
    weights: Any = None,
    strata: Any = None,
) -> Cells:
    """Read votes or counts and the labels of several labelers, given as to ``compare``; a cell for each item."""
    check_labelers(suggested)
    if counts is None:
        read = read_votes(votes, suggested, missing, weights, strata)
    else:
        read = read_matrix(counts, suggested, categories, missing, weights, strata)
    patterns, vote = distinct_votes(read)
    found = settle(read, read.votes.occurring(patterns.code), read.beside.suggested(), categories)
    check_missing(found, missing)
    m = len(found)
    place: dict[Label | None, int] = {label: code for code, label in enumerate(found)}
    small = np.min_scalar_type(m)

    def codes(encoded: Encoded) -> Integers:
        table = np.array([m if label is None else place.get(label, m) for label in encoded.labels] or [m], small)
        digits = encoded.digits(slice(None))
        return digits if np.array_equal(table, np.arange(table.size)) else table[digits]

    table = np.array([-1 if label is None else place.get(label, -1) for label in read.votes.labels], np.int64)
    beside = read.beside.sides(np.arange(vote.size), found) if read.beside.stratum is not None else None
    if not np.array_equal(table, np.arange(table.size)):  # in the order that a tally of the same items has
        patterns, order = patterns.recode(table, np.zeros(1, np.int64)).grouped()
        vote = order.astype(vote.dtype)[vote]
    return Cells(
        found,
        patterns,
        vote,
        {who: codes(labels) for who, labels in read.beside.labels.items()},
        beside.strata if beside else (),
        beside.stratum if beside else None,
        read.beside.weight,
        np.broadcast_to(np.int64(1), vote.size),
        single=True,
    )


def names_of(suggested: Any) -> tuple[str, ...]:
    """Return the labelers that are named beside a tally."""
    if isinstance(suggested, str):
        return (suggested,)
    try:
        names = (None,) if isinstance(suggested, Mapping) else tuple(suggested)
    except TypeError:
        names = (None,)
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"suggested must list names of labelers, beside a Tally: got {shown([suggested])}.")
    return tuple(map(str, names))


def cells_of(tally: Tally, labelers: Iterable[str] | None = None) -> Cells:
    """Return the cells of a tally, for some of its labelers or all."""
    sides, patterns = tally.sides, tally.patterns
    chosen = sides.labelers if labelers is None else tuple(labelers)
    strange = [who for who in chosen if who not in sides.labelers]
    if strange and not any(sides.labelers):
        raise DataError(
            f"suggested names {shown(strange)}, but the tally has one labeler without a name: tally the labels of each "
            "by name, such as {'rule': labels, 'llm': labels}."
        )
    if strange:
        raise DataError(f"suggested names {shown(strange)}, not in the tally. Labelers: {shown(tally.labelers, 10)}.")
    if len(set(chosen)) < len(chosen):
        raise DataError(f"suggested names a labeler twice: {shown(chosen)}.")
    votes, vote = replace(patterns, suggested=np.zeros(len(patterns), np.int32)).grouped()
    side = patterns.suggested
    m = len(tally.categories)
    labels = np.where(sides.labels < 0, m, sides.labels).astype(np.min_scalar_type(m))
    return Cells(
        tally.categories,
        votes,
        vote,
        {who: labels[sides.labelers.index(who)][side] for who in chosen},
        sides.strata,
        None if sides.stratum is None else sides.stratum[side],
        None if sides.weight is None else sides.weight[side],
        patterns.items,
        remarks=tally.remarks,
    )
