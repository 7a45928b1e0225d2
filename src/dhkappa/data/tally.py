"""Tally: categories and patterns that add up. Everything dhkappa computes is a function of one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from dhkappa.data.labels import Label, NotALabelError, check_declared, declare, plain, unite
from dhkappa.data.patterns import BLOCK, EMPTY, Patterns, stack
from dhkappa.data.votes import Table, count_matrix, count_votes
from dhkappa.errors import DataError, counted, shown

_FORMAT = "dhkappa-tally"
_VERSION = 1
_MOST_ITEMS = 2**62
_MOST_TABLES = 64


class Tally:
    """Exact integer counts of votes and suggested labels, that can be added, saved and loaded.

    A tally keeps each different pattern (suggested label, votes by category) with the number of items that
    share it. Its size depends on how many patterns there are, not on how many items.

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

    __slots__ = ("_categories", "_declared", "_missing", "_tables")

    def __init__(self, categories: Iterable[Any] | None = None, *, missing: Iterable[Any] = ()) -> None:
        self._declared = categories is not None
        self._categories = () if categories is None else declare(categories)
        self._missing = _missing_labels(missing)
        self._tables: list[Table] = []

    @property
    def categories(self) -> tuple[Label, ...]:
        """The categories, declared or found, in order."""
        return self._categories

    @property
    def declared(self) -> bool:
        """Whether the categories, and so their order, were declared."""
        return self._declared

    @property
    def patterns(self) -> Patterns:
        """The patterns, each once, in codes of ``categories``."""
        if len(self._tables) != 1 or self._tables[0][0] != self._categories:
            self._tables = [(self._categories, self._joined())]
        return self._tables[0][1]

    @property
    def n_items(self) -> int:
        """The number of items, eligible or not."""
        return sum(int(patterns.items.sum()) for _, patterns in self._tables)

    @property
    def n_votes(self) -> int:
        """The number of votes on them."""
        patterns = self.patterns
        return sum(map(int.__mul__, patterns.items.tolist(), patterns.vote_totals().tolist()))

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
        twin._categories, twin._declared, twin._missing = self._categories, self._declared, self._missing
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
        declared = self._categories if self._declared else None
        if votes is not None:
            table = count_votes(votes, suggested, declared, self._missing)
        else:
            table = count_matrix(counts, suggested, declared, self._missing)
        categories = unite(self._categories, table[0]) if self._categories else table[0]
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
        total._declared, categories = _joint_categories(self, other)
        total._add(other._tables, categories)
        return total

    def _add(self, tables: Sequence[Table], categories: tuple[Label, ...]) -> None:
        """Put tables beside those here; merge when as many new rows as old have gathered."""
        if self.n_items + sum(int(patterns.items.sum()) for _, patterns in tables) > _MOST_ITEMS:
            raise DataError(f"a tally holds {_MOST_ITEMS:,} items at the most.")
        self._tables = [*self._tables, *tables]
        self._categories = categories
        fresh = sum(len(patterns) for _, patterns in self._tables[1:])
        if fresh > max(len(self._tables[0][1]), BLOCK) or len(self._tables) > _MOST_TABLES:
            self._tables = [(categories, self._joined())]

    def _joined(self) -> Patterns:
        """Return all tables as one, in the codes of the categories as they are now."""
        place = {label: code for code, label in enumerate(self._categories)}
        tables = []
        for categories, patterns in self._tables:
            codes = np.array([place[label] for label in categories], np.int64)
            tables.append(patterns if categories == self._categories else patterns.recode(codes, codes))
        return stack(tables).merged() if tables else EMPTY

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a JSON file: whole, or not at all."""
        target = Path(path)
        lines = [
            f'"format": {json.dumps(_FORMAT)}',
            f'"version": {_VERSION}',
            f'"categories": {json.dumps(self._categories)}',
            f'"declared": {json.dumps(self._declared)}',
            f'"missing": {json.dumps(sorted(self._missing, key=str))}',
            f'"items": {self.n_items}',
            f'"votes": {self.n_votes}',
            '"patterns": [\n' + ",\n".join(self._pattern_lines()) + "\n]",
        ]
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            draft.write_text("{" + ",\n".join(lines) + "}\n", encoding="ascii")
            os.replace(draft, target)
        except OSError as error:
            raise DataError(f"cannot write the tally {str(path)!r}: {error.strerror or error}.") from error
        finally:
            draft.unlink(missing_ok=True)

    def _pattern_lines(self) -> list[str]:
        """Return each pattern as a line of JSON, in an order that a person can follow."""
        patterns, names = self.patterns, self._categories
        start, code, votes = patterns.start.tolist(), patterns.code.tolist(), patterns.votes.tolist()
        rows = [
            (suggested, list(zip(code[first:end], votes[first:end], strict=True)), items)
            for suggested, first, end, items in zip(
                patterns.suggested.tolist(), start[:-1], start[1:], patterns.items.tolist(), strict=True
            )
        ]
        return [
            json.dumps(
                {
                    "suggested": None if suggested < 0 else names[suggested],
                    "votes": [[names[category], number] for category, number in counts],
                    "items": items,
                }
            )
            for suggested, counts, items in sorted(rows)
        ]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tally that ``save`` wrote."""
        try:
            written = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"cannot read the tally {str(path)!r}: {error.strerror or error}.") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{str(path)!r} is not a whole tally file, damaged or cut short: {error}.") from None
        if not isinstance(written, dict) or written.get("format") != _FORMAT:
            raise DataError(f"{str(path)!r} is not a tally: it has no {_FORMAT!r} mark. Write one with Tally.save.")
        version = written.get("version")
        if not isinstance(version, int) or version > _VERSION:
            raise DataError(
                f"{str(path)!r} is a tally of version {version!r}; this dhkappa reads up to {_VERSION}. Update dhkappa."
            )
        try:
            tally = cls(written["categories"], missing=written["missing"])
            tally._declared = bool(written["declared"])
            tally._tables = [(tally._categories, _read_patterns(written["patterns"], tally._categories))]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"{error.args[0]!r} is absent" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{str(path)!r} is a damaged tally: {what}") from None
        if (tally.n_items, tally.n_votes) != (written.get("items"), written.get("votes")):
            raise DataError(
                f"{str(path)!r} is a damaged tally: its patterns add up to {tally.n_items:,} items and "
                f"{tally.n_votes:,} votes, but it says {written.get('items')} and {written.get('votes')}."
            )
        return tally


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
    if isinstance(missing, str):
        missing = (missing,)
    try:
        labels = [plain(value) for value in missing]
    except (TypeError, NotALabelError):
        raise DataError(f"missing must be a list of labels to read as missing, not {shown([missing])}.") from None
    return frozenset(label for label in labels if label is not None)


def _joint_categories(one: Tally, other: Tally) -> tuple[bool, tuple[Label, ...]]:
    """Return whether the sum's categories are declared, and the categories.

    A declared order holds for the sum where it has every category of both; else the union is sorted.
    """
    union = unite(one.categories, other.categories)
    orders = {tally.categories for tally in (one, other) if tally.declared}
    if len(orders) == 1 and set(*orders) == set(union):
        return True, orders.pop()
    return False, union


def _read_patterns(rows: list[dict[str, Any]], categories: tuple[Label, ...]) -> Patterns:
    """Read the patterns of a file, checking every number."""
    place: dict[Label | None, int] = {label: code for code, label in enumerate(categories)}
    place[None] = -1
    suggested: list[int] = []
    length: list[int] = []
    code: list[int] = []
    votes: list[int] = []
    items: list[int] = []
    for row in rows:
        check_declared([label for label, _ in row["votes"]], categories, "a pattern")
        suggested.append(place[row["suggested"]])
        length.append(len(row["votes"]))
        pairs = sorted((place[label], number) for label, number in row["votes"])
        numbers = [row["items"], *(number for _, number in pairs)]
        if not all(type(number) is int and 0 < number <= _MOST_ITEMS for number in numbers):
            raise ValueError(f"{shown(numbers)} are not all whole numbers above 0")
        if len({category for category, _ in pairs}) < len(pairs):
            raise ValueError(f"a category stands twice in {shown([row])}")
        code.extend(category for category, _ in pairs)
        votes.extend(number for _, number in pairs)
        items.append(row["items"])
    start = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
    return Patterns(
        np.array(suggested, np.int32),
        start,
        np.array(code, np.int32),
        np.array(votes, np.int64),
        np.array(items, np.int64),
    ).merged()
