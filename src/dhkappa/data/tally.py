"""Tally: categories and patterns that add up. Everything dhkappa computes is a function of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dhkappa.data.labels import Label, NotALabelError, declare, plain, unite
from dhkappa.data.patterns import BLOCK, EMPTY, MOST_ITEMS, Patterns, stack
from dhkappa.data.saved import Saved, read, write
from dhkappa.data.votes import Counted, count_matrix, count_votes
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
    at a time; threads and machines keep a tally each, and add them.

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

    __slots__ = ("_categories", "_missing", "_orders", "_tables")

    def __init__(self, categories: Iterable[Any] | None = None, *, missing: Iterable[Any] = ()) -> None:
        self._categories = () if categories is None else declare(categories)
        self._orders = frozenset() if categories is None else frozenset([self._categories])
        self._missing = _missing_labels(missing)
        self._tables: list[Counted] = []
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
    def patterns(self) -> Patterns:
        """The patterns, each once, in codes of ``categories``."""
        if len(self._tables) != 1 or self._tables[0].categories != self._categories:
            self._tables = [Counted(self._categories, self._joined())]
        return self._tables[0].patterns

    @property
    def strata(self) -> tuple[Label, ...]:
        """The strata that items are in, in order; empty where there are none."""
        return ()

    def rows(self, labeler: str | None = None) -> Rows:
        """Return the patterns with the labels of one labeler, and the stratum and weight of each."""
        return Rows(self.patterns, None, None)

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
        parts = (
            counted(self.n_items, "item"),
            counted(self.n_votes, "vote"),
            counted(len(self._categories), "category"),
            counted(len(self), "pattern"),
        )
        return f"Tally({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        if self._categories != other._categories:
            return False
        left, right = self.patterns, other.patterns
        minus = Patterns(right.suggested, right.start, right.code, right.votes, -right.items)
        return not stack([left, minus]).merged().items.any()

    __hash__ = None  # type: ignore[assignment]  # a tally can change

    def copy(self) -> Tally:
        """Return a tally that later updates of this one do not touch."""
        twin = Tally()
        twin._categories, twin._orders, twin._missing = self._categories, self._orders, self._missing
        twin._tables = list(self._tables)
        return twin

    def update(self, votes: Any = None, suggested: Any = None, *, counts: Any = None) -> None:
        """Count more items in, given as to ``dh_kappa``; after an error the tally is as it was.

        Parameters
        ----------
        votes
            n x N array or n lists of votes; None or NaN is missing.
        suggested
            n suggested labels. Without them the items count for Fleiss' kappa only.
        counts
            n x m matrix of vote counts instead of ``votes``.
        """
        if (votes is None) == (counts is None):
            raise DataError("pass either votes or counts=, one of the two.")
        declared = self._categories if self.declared else None
        if votes is not None:
            table = count_votes(votes, suggested, declared, self._missing)
        else:
            table = count_matrix(counts, suggested, declared, self._missing)
        categories = unite(self._categories, table.categories) if self._categories else table.categories
        self._add([table], categories if declared is None else declared)

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
        total._add(other._tables, _settle(total._orders, unite(self._categories, other._categories)))
        return total

    def _add(self, tables: Sequence[Counted], categories: tuple[Label, ...]) -> None:
        """Put tables beside those here; merge when as many new rows as old have gathered."""
        if self.n_items + sum(int(table.patterns.items.sum()) for table in tables) > MOST_ITEMS:
            raise DataError(f"a tally holds {MOST_ITEMS:,} items at the most.")
        self._tables = [*self._tables, *tables]
        self._categories = categories
        fresh = sum(len(table.patterns) for table in self._tables[1:])
        if fresh > max(len(self._tables[0].patterns), BLOCK) or len(self._tables) > _MOST_TABLES:
            self._tables = [Counted(categories, self._joined())]

    def _joined(self) -> Patterns:
        """Return all tables as one, in the codes of the categories as they are now."""
        place = {label: code for code, label in enumerate(self._categories)}
        tables = []
        for table in self._tables:
            codes = np.array([place[label] for label in table.categories], np.int64)
            same = table.categories == self._categories
            tables.append(table.patterns if same else table.patterns.recode(codes, codes))
        return stack(tables).merged() if tables else EMPTY

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a JSON file: whole, or not at all."""
        write(path, Saved(self._categories, self._orders, self._missing, self.patterns))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tally that ``save`` wrote."""
        held = read(path)
        result = cls(missing=held.missing)
        result._orders, result._categories = held.orders, _settle(held.orders, unite(held.categories))
        result._tables = [Counted(held.categories, held.patterns)]
        return result


def tally(
    data: Any = None,
    suggested: Any = None,
    *,
    counts: Any = None,
    categories: Iterable[Any] | None = None,
    missing: Iterable[Any] = (),
) -> Tally:
    """Count votes and suggested labels into a ``Tally``; the parameters are those of ``dh_kappa``.

    Examples
    --------
    >>> import dhkappa
    >>> counted = dhkappa.tally([["cat", "cat"], ["cat", "dog"]], ["cat", "dog"])
    >>> dhkappa.dh_kappa(counted).exact
    Fraction(1, 2)
    """
    result = Tally(categories, missing=missing)
    result.update(data, suggested, counts=counts)
    return result


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
