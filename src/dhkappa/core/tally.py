"""Tally: categories and patterns that add up. Everything dhkappa computes is a function of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dhkappa.core.counting import Counted, Read, count, read_matrix, read_votes
from dhkappa.core.item_columns import PLAIN, Sides, check_labelers, unite_sides
from dhkappa.core.labels import Label, NotALabelError, check_missing, declare, plain, unite
from dhkappa.core.patterns import BLOCK, EMPTY, MOST_ITEMS, Patterns, stack
from dhkappa.core.tally_file import Saved, read_tally, write_tally
from dhkappa.errors import DataError, counted, shown

_MOST_TABLES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """K patterns in label codes of one labeler.

    Attributes
    ----------
    patterns : as of a plain tally
    stratum : (K,) place among the tally's strata, or None
    weight : (K,) weight of one item, or None
    """

    patterns: Patterns
    stratum: npt.NDArray[np.int32] | None
    weight: npt.NDArray[np.float64] | None


class Tally:
    """Exact integer counts of votes and suggested labels, that can be added, saved and loaded.

    A tally keeps each different pattern (suggested label, votes by category) with the number of items that
    share it. Its size depends on how many patterns there are, not on how many items. Update it from one thread
    at a time; threads and machines keep a tally each, and add them. Items may have the labels of several labelers, a
    stratum and a weight beside their votes; then items differ that differ in these.

    Parameters
    ----------
    categories
        The labels there can be, in order; any other label is then an error. Without it, the labels that
        occur, in natural order.
    missing
        Labels to read as missing, such as ``"NA"``.

    Examples
    --------
    >>> monday = Tally()
    >>> monday.update([["cat", "cat"], ["cat", "dog"]], ["cat", "dog"])
    >>> tuesday = Tally()
    >>> tuesday.update([["dog", "dog", "bird"]], ["dog"])
    >>> monday + tuesday
    Tally(3 items, 7 votes, 3 categories, 3 patterns)
    """

    __slots__ = ("_categories", "_missing", "_orders", "_remarks", "_tables")

    def __init__(self, categories: Iterable[Any] | None = None, *, missing: Iterable[Any] = ()) -> None:
        self._categories = () if categories is None else declare(categories)
        self._orders = frozenset() if categories is None else frozenset([self._categories])
        self._missing = _missing_labels(missing)
        self._tables: list[Counted] = []
        self._remarks: tuple[str, ...] = ()
        if categories is not None and not self._categories:
            raise DataError("categories is empty: declare a category at least, or leave it out.")
        both = [label for label in self._categories if label in self._missing]
        if both:
            raise DataError(f"categories and missing both name {shown(both)}: it can be only one of them.")

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, declared or found, in order."""
        return self._categories

    @property
    def declared(self) -> bool:
        """Whether the categories, and so their order, were declared."""
        return self._orders == {self._categories}

    @property
    def missing(self) -> frozenset[Label]:
        """Labels that are read as missing."""
        return self._missing

    @property
    def labelers(self) -> tuple[str, ...]:
        """The names of labelers; empty where there is one labeler without a name."""
        sides = self._sides
        return () if sides is None else tuple(filter(None, sides.labelers))

    @property
    def strata(self) -> tuple[Label, ...]:
        """The strata that items are in, in order; empty where there are none."""
        sides = self._sides
        return () if sides is None else sides.strata

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to know of where the votes came from: such as what an export holds beside votes, and how much."""
        return self._remarks

    @property
    def patterns(self) -> Patterns:
        """The patterns, each once, in codes of ``categories``."""
        return self._one_table().patterns

    @property
    def _sides(self) -> Sides | None:
        return self._one_table().sides if self._tables else None

    @property
    def sides(self) -> Sides:
        """What stands beside votes; the suggested code of a pattern is a place in it."""
        sides = self._sides
        if sides is None:  # of a plain tally: the categories themselves, and then a missing label
            codes = np.append(np.arange(len(self._categories)), -1).astype(np.int32)
            return replace(PLAIN, labels=codes[None, :])
        return sides

    def _one_table(self) -> Counted:
        """Return all that was counted as one table, each pattern once."""
        if not self._tables:
            return Counted(self._categories, EMPTY)
        if len(self._tables) != 1 or self._tables[0].categories != self._categories:
            self._tables = [_joined(self._tables, self._categories)]
        return self._tables[0]

    def rows(self, labeler: str | None = None, labeled: bool = True) -> Rows:
        """Return the patterns with the labels of one labeler, and the stratum and weight of each.

        If not ``labeled``, any labeler will do.
        """
        sides = self._sides
        if sides is None:
            if labeler is not None:
                raise DataError(
                    f"suggested is {labeler!r}, but the tally has one labeler without a name: leave it out."
                )
            return Rows(self.patterns, None, None)
        if labeler is None and labeled and len(sides.labelers) > 1:
            raise DataError(
                f"there are labels of {len(sides.labelers)} labelers ({shown(sides.labelers)}): "
                f"choose one, such as suggested={sides.labelers[0]!r}, or use compare."
            )
        if labeler is not None and labeler not in sides.labelers:
            raise DataError(f"labeler {labeler!r} is not in the tally. Labelers: {shown(sides.labelers, 10)}.")
        place = 0 if labeler is None else sides.labelers.index(labeler)
        own = replace(sides, labelers=("",), labels=sides.labels[place : place + 1])
        own, (moved,) = unite_sides([own])
        patterns = self.patterns.recode(np.arange(len(self._categories)), moved).merged()
        side = patterns.suggested
        return Rows(
            replace(patterns, suggested=own.labels[0][side]),
            None if own.stratum is None else own.stratum[side],
            None if own.weight is None else own.weight[side],
        )

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return sum(int(table.patterns.items.sum()) for table in self._tables)

    @property
    def n_votes(self) -> int:
        """The number of votes on them."""
        return sum(table.patterns.n_votes() for table in self._tables)

    def __len__(self) -> int:
        return len(self.patterns)

    def __repr__(self) -> str:
        parts = [
            counted(self.n_items, "item"),
            counted(self.n_votes, "vote"),
            counted(len(self._categories), "category"),
            counted(len(self), "pattern"),
        ]
        if any(self.labelers):
            parts.append(f"labelers {shown(self.labelers)}")
        return f"Tally({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        if self._categories != other._categories or _unlike(self._tables, other._tables):
            return False
        right = other._one_table()
        minus = replace(right, patterns=replace(right.patterns, items=-right.patterns.items))
        return not _joined([self._one_table(), minus], self._categories).patterns.items.any()

    __hash__ = None  # type: ignore[assignment]  # a tally can change

    def copy(self) -> Tally:
        """Return a tally that later updates of this one do not touch."""
        twin = Tally()
        twin._categories, twin._orders, twin._missing = self._categories, self._orders, self._missing
        twin._tables, twin._remarks = list(self._tables), self._remarks
        return twin

    def update(
        self,
        votes: Any = None,
        suggested: Any = None,
        *,
        counts: Any = None,
        weights: Any = None,
        strata: Any = None,
    ) -> None:
        """Count more items in, given as to ``dh_kappa``; after an error the tally is as it was.

        Parameters
        ----------
        votes
            n x N array or n lists of votes; None or NaN is missing.
        suggested
            n suggested labels, or a mapping from labelers to theirs. Without them the items count for Fleiss'
            kappa only.
        counts
            n x m matrix of vote counts instead of ``votes``.
        weights, strata
            What each item weighs, and the stratum it was drawn from.
        """
        if (votes is None) == (counts is None):
            raise DataError("pass either votes or counts=, one of the two.")
        check_labelers(suggested)
        declared = self._categories if self.declared else None
        if votes is not None:
            read = read_votes(votes, suggested, self._missing, weights, strata)
        else:
            read = read_matrix(counts, suggested, declared, self._missing, weights, strata)
            self._check_columns(read.votes.labels)
        self.include(read)

    def _check_columns(self, names: Sequence[Label | None]) -> None:
        """Refuse columns known by their places alone where categories here are others."""
        places = range(max(len(names), len(self._categories)))
        unnamed = bool(names) and isinstance(names, range)
        if unnamed and not all(category in places for category in self._categories):
            raise DataError(
                f"counts has no names for its columns, and this tally counts {shown(self._categories)}: name the "
                "columns, in a dataframe, or make the tally with categories= in their order."
            )

    def include(self, read: Read, remarks: Sequence[str] = ()) -> None:
        """Count more items in that another room has read, and keep its remarks; after an error all is as it was."""
        declared = self._categories if self.declared else None
        table = count(read, declared)
        if self._missing:
            check_missing(table.categories, self._missing)
        categories = unite(self._categories, table.categories) if self._categories else table.categories
        self._add([table], categories if declared is None else declared)
        self._remarks = tuple(dict.fromkeys([*self._remarks, *remarks]))

    def __radd__(self, other: int) -> Tally:
        return self.copy() if other == 0 else NotImplemented  # what sum() starts from

    def __add__(self, other: Tally) -> Tally:
        """Count the items of both; the same items in both count twice.

        Categories are united. A declared order holds where it has all of them, else they are sorted.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        for one, two in ((self, other), (other, self)):
            counted_here = sorted(map(str, one._missing.intersection(two._categories)))
            if counted_here:
                raise DataError(
                    f"one tally reads {shown(counted_here)} as missing, the other counts it as a label: "
                    "make both with the same missing=."
                )
        total = self.copy()
        total._missing = self._missing | other._missing
        total._orders = self._orders | other._orders
        total._remarks = tuple(dict.fromkeys([*self._remarks, *other._remarks]))
        total._add(other._tables, _settle(total._orders, unite(self._categories, other._categories)))
        return total

    def _add(self, tables: Sequence[Counted], categories: tuple[Label, ...]) -> None:
        """Put tables beside those here; merge when as many new rows as old have gathered."""
        if self.n_items + sum(int(table.patterns.items.sum()) for table in tables) > MOST_ITEMS:
            raise DataError(f"a tally holds {MOST_ITEMS:,} items at the most.")
        unlike = _unlike(self._tables, tables)
        if unlike:
            raise DataError(
                "items that are counted together must all have the same labelers, and strata and weights or not: "
                f"{unlike}. Pass None as the labels of a labeler who was absent."
            )
        _check_strata([*self._tables, *tables])
        self._tables = [*self._tables, *tables]
        self._categories = categories
        fresh = sum(len(table.patterns) for table in self._tables[1:])
        if self._tables and (fresh > max(len(self._tables[0].patterns), BLOCK) or len(self._tables) > _MOST_TABLES):
            self._tables = [_joined(self._tables, categories)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a JSON file: whole, or not at all."""
        held = self._categories, self._orders, self._missing, self.patterns, self._sides, self._remarks
        write_tally(path, Saved(*held))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tally that ``save`` wrote."""
        held = read_tally(path)
        result = cls(missing=held.missing)
        result._orders, result._categories = held.orders, _settle(held.orders, unite(held.categories))
        result._tables, result._remarks = [Counted(held.categories, held.patterns, held.sides)], held.remarks
        return result


def _joined(tables: Sequence[Counted], categories: tuple[Label, ...]) -> Counted:
    """Return all tables, of which there is one at least, as one, in the codes of these categories."""
    tables = [table for table in tables if len(table.patterns)] or tables[:1]
    place = {label: code for code, label in enumerate(categories)}
    codes = [np.array([place[label] for label in table.categories], np.int64) for table in tables]
    sides = [table.sides.recode(new) for table, new in zip(tables, codes, strict=True) if table.sides is not None]
    if sides:
        names = sides[0].labelers
        own = [replace(part, labels=part.labels[[part.labelers.index(name) for name in names]]) for part in sides]
        whole, labels = unite_sides(own)
    else:
        whole, labels = None, codes
    patterns = [
        table.patterns.recode(new, new_labels) if sides or table.categories != categories else table.patterns
        for table, new, new_labels in zip(tables, codes, labels, strict=True)
    ]
    return Counted(categories, stack(patterns).merged(), whole)


def _check_strata(tables: Sequence[Counted]) -> None:
    """Refuse strata that cannot stand beside each other, as 1 and "1", before any of them is taken in."""
    try:
        unite(*(table.sides.strata for table in tables if table.sides is not None))
    except DataError as error:
        raise DataError(str(error).replace("labels", "strata", 1)) from None


def _unlike(left: Sequence[Counted], right: Sequence[Counted]) -> str:
    """Say what one side has beside its votes and the other has not; nothing where they are alike, or empty."""
    left, right = ([table for table in tables if len(table.patterns)] for tables in (left, right))
    if not left or not right:
        return ""
    one, two = (PLAIN if tables[0].sides is None else tables[0].sides for tables in (left, right))
    if sorted(one.labelers) != sorted(two.labelers):
        return f"the labelers of some are {shown(one.labelers)}, of others {shown(two.labelers)}"
    for what, a, b in (("strata", one.stratified, two.stratified), ("weights", one.weighted, two.weighted)):
        if a != b:
            return f"some have {what}, others have not"
    return ""


def _missing_labels(missing: Iterable[Any]) -> frozenset[Label]:
    """Check the labels to read as missing."""
    if isinstance(missing, (str, bytes)):
        missing = (missing,)
    try:
        labels = [plain(value) for value in missing]
    except (TypeError, NotALabelError):
        raise DataError(f"missing must be a list of labels to read as missing, not {shown([missing])}.") from None
    return frozenset(label for label in labels if label is not None)


def _settle(orders: frozenset[tuple[Label, ...]], labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the labels in the one order declared, if it has them all; else as they are, sorted."""
    if len(orders) == 1:
        (order,) = orders
        found = {label: label for label in labels}  # 1 rather than True where both came
        if len(order) == len(labels) and all(label in found for label in order):
            return tuple(found[label] for label in order)
    return labels
