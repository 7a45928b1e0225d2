"""Slices: groups of items by the values of a column, with the items in each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers
from dhkappa.core.grouping import Encoded, LabeledPatterns, group_rows
from dhkappa.core.items import Counts
from dhkappa.core.slice_names import MISSING, Cut, named_values, parse_cut, shown_slice, sort_key
from dhkappa.errors import invalid, shown

SlicedPatterns: TypeAlias = tuple[LabeledPatterns, Integers, Integers, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class SliceColumn:
    """The slices that one column makes, or several columns together, and the items in them."""

    name: str  # as the user wrote it
    slices: tuple[str, ...]  # their names, in natural order or in order of time; those of missing values last
    unit: str | None  # "day", "week" or "month" of dates
    chosen: bool  # the unit was chosen here
    missing: tuple[int, ...]  # slices of items without a value
    index: Integers  # the slice of each stratum of ``counts``; before items are counted, of each item
    counts: Counts | None = None  # items counted by pattern, with values of the column as strata

    def rows(self, labeler: str) -> SlicedPatterns:
        """Return patterns, then the pattern, slice and number of equal items, as ``kappa_by_group`` takes them."""
        assert self.counts is not None
        found = self.counts.labeled_patterns(labeler)
        assert found.stratum is not None
        row, items = np.arange(len(found.patterns)), found.patterns.items
        return replace(found, strata=(), stratum=None), row, self.index[found.stratum], items


def find_slices(name: Any, known: Collection[str], parameter: str = "slices") -> str:
    """Return the name of a column of slices, also without its unit if only one has it, or of the only one."""
    if name is None and len(known) == 1:
        return next(iter(known))
    same = [one for one in known if isinstance(name, str) and name in (one, parse_cut(one).column)]
    if name in same or len(same) == 1:
        return str(name if name in same else same[0])
    listed = f"Columns: {shown(known)}." if known else "There are no slices."
    hint = "Name one of them." if known else f"Pass ${parameter} to audit."
    what = (
        "There are several columns of slices" if name is None and known else f"There are no slices of {shown([name])}"
    )
    message = f"{what}. {listed}" if known else listed
    raise invalid("column", message, code="column-not-found", hint=hint)


def slice_column(
    name: str, cuts: Sequence[Cut], values: Sequence[Sequence[Any]]
) -> tuple[SliceColumn, npt.NDArray[np.int64]]:
    """Return the slices of distinct values, without items, and the slice of each; ``values`` has a column per cut."""
    named = [named_values(cut, column) for cut, column in zip(cuts, values, strict=True)]
    rows = list(zip(*(texts for texts, *_ in named), strict=True))
    order = sorted(set(rows), key=sort_key)
    place = {row: index for index, row in enumerate(order)}
    known = {text for row in rows for text in row}
    slices = tuple(", ".join(shown_slice(text, MISSING in known, len(cuts) > 1) for text in row) for row in order)
    missing = tuple(index for index, row in enumerate(order) if None in row)
    unit, chosen = (named[0][1], named[0][2]) if len(cuts) == 1 else (None, any(found[2] for found in named))
    index = np.array([place[row] for row in rows], np.int64)
    return SliceColumn(name, slices, unit, chosen, missing, index), index


def encoded_slices(name: str, cut: Cut, column: Encoded) -> SliceColumn:
    """Return the slices of items with encoded values, with the slice of each item."""
    digits = column.digits()
    first, group = group_rows([(len(column.labels), digits)])
    found, index = slice_column(name, [cut], [[column.labels[digit] for digit in digits[first].tolist()]])
    return replace(found, index=index[group])
