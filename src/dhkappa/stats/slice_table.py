"""Slices: kappa of a labeler in each group of items, compared with the other groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dhkappa.core import Array
from dhkappa.core.slices import SliceColumn, SlicedPatterns
from dhkappa.errors import counted, shown
from dhkappa.stats.intervals import ConfidenceInterval, written
from dhkappa.stats.kappa import ONE_CATEGORY, Estimate, estimate_dh
from dhkappa.stats.multiple_tests import false_discovery, holm
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import check_level, sample_of
from dhkappa.stats.slice_differences import (
    GroupDifferences,
    GroupKappas,
    differences,
    kappa_within,
    shrunk,
)
from dhkappa.stats.slices import kappa_by_group
from dhkappa.stats.votes_baseline import MIN_ITEMS
from dhkappa.table import Display, Table, plain

Grade: TypeAlias = Callable[[Estimate, ConfidenceInterval, str], str]  # the code of the verdict on a slice, by name

FEWEST = 10  # items of a slice that is compared with the others
MOST_GRADED = 200  # slices
MANY = 50  # slices from which on p-values are also adjusted for the share of false discoveries
_COLUMNS = (
    *("slice", "items", "kappa", "se", "low", "high", "share", "loss", "difference", "difference_low"),
    *("difference_high", "pvalue", "pvalue_holm", "pvalue_bh", "kappa_shrunk", "grade", "reason"),
)
_SMALL = 50  # items of a slice: with fewer, slices are sorted by shrunk kappas
_MANY_SLICES = 30
_APART = 0.05  # of kappa and kappa within slices
_ONE_ITEM = "Only one item is eligible."
_NO_ITEM = "No item is eligible."
_NO_VARIATION = "The items show no variation: no interval, not compared."
_TOO_FEW = f"Fewer than {FEWEST} items: not compared."
_ONLY_ONE = "No other slice to compare with."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slices(Display):
    """Kappa of a labeler in each slice of the items, compared with the other slices.

    Attributes
    ----------
    column, labeler : names of the column of slices and of the labeler
    table : one row per slice, the lowest kappa first. ``kappa``, ``se``, ``low`` and ``high`` are those of its items
        alone. ``share`` is its share of all items, and ``loss`` its part in 1 minus the kappa of all items, which is
        the sum of all losses. ``difference`` is its kappa minus the mean kappa of the other slices, with a confidence
        interval and two-sided p-values, also adjusted for all slices (Holm) and, with 50 slices or more, for the share
        of false discoveries (Benjamini-Hochberg). ``kappa_shrunk`` is kappa moved toward the mean of all slices, the
        more the fewer items; it orders the rows if a slice has fewer than 50 items. ``grade`` is the code of the
        verdict, and ``reason`` says why values are NaN.
    joined : the slices with fewer than 10 items taken as one, as a table with one row; None if they are not compared
    kappa : kappa of all items
    kappa_within, se_within : kappa within slices, the mean of the kappas of slices by ``W_s (1 - E_s)``, and its
        standard error; slices with fewer than 10 items count as one, or are left out if they have fewer together
    pvalue : the least adjusted p-value: that of the hypothesis that all slices have the same kappa
    n_slices, n_not_compared : number of slices, and of those that are not compared with the others
    unit : ``"day"``, ``"week"`` or ``"month"`` if slices are dates; weeks are named by their Monday
    confidence_level : confidence level of all intervals
    notes : conditions that affect the interpretation
    """

    column: str
    labeler: str
    table: Table
    joined: Table | None
    kappa: float
    kappa_within: float
    se_within: float
    pvalue: float
    n_slices: int
    n_not_compared: int
    unit: str | None
    confidence_level: float
    notes: tuple[Note, ...]

    @property
    def summary(self) -> str:
        """The main numbers in a sentence."""
        within = "undefined" if math.isnan(self.kappa_within) else f"{self.kappa_within:.3f}"
        error = "" if math.isnan(self.se_within) else f" (standard error {self.se_within:.3f})"
        whole = "undefined" if math.isnan(self.kappa) else f"{self.kappa:.3f}"
        text = f"Kappa of {self.labeler} is {whole} on all items and {within}{error} within slices of {self.column}."
        if math.isnan(self.pvalue):
            return f"{text} Slices are not compared: fewer than two have {FEWEST} items and an interval."
        p = "< 0.001" if self.pvalue < 1e-3 else f"{self.pvalue:.3f}"
        differ = (
            "Kappa differs between slices" if self.pvalue < 1 - self.confidence_level else "No slice clearly differs"
        )
        return f"{text} {differ} (least adjusted p-value {p})."

    def _display(self) -> Iterator[str | Table | Sequence[str]]:
        yield self.summary
        yield self.table
        if self.joined is not None:
            yield self.joined
        yield [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        names = ("kappa", "kappa_within", "se_within", "pvalue", "n_slices", "n_not_compared", "unit")
        return {
            "column": self.column,
            "labeler": self.labeler,
            **{name: plain(getattr(self, name)) for name in names},
            "confidence_level": self.confidence_level,
            "slices": list(map(_every_key, self.table.to_json())),
            "joined": None if self.joined is None else _every_key(self.joined.to_json()[0]),
            "notes": [note.to_dict() for note in self.notes],
        }


def _every_key(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with all keys that a row can have."""
    return {name: row.get(name) for name in _COLUMNS}


def slices_of(
    column: SliceColumn,
    labeler: str,
    whole: Estimate,
    *,
    confidence_level: float = 0.95,
    grade: Grade,
) -> Slices:
    """Return the slices of a labeler, of whose items ``whole`` is the estimate; ``grade`` returns that of a slice."""
    level, size = check_level(confidence_level), len(column.slices)
    sliced = column.rows(labeler)
    rows, row, group, items = sliced
    groups = kappa_by_group(rows, row, group, size, level, items=items)
    few = groups.items < FEWEST
    compared = ~few & ~np.isnan(groups.low)
    units = groups
    small = few & (groups.items > 0)
    if few.any():  # the small slices are one more slice, the last
        kept = small[group]
        own = kappa_by_group(rows, row[kept], np.zeros(int(kept.sum()), np.int64), 1, level, items=items[kept])
        units = GroupKappas(*(np.append(one, other) for one, other in zip(_without(groups, few), own, strict=True)))
        enough = own.items[0] >= FEWEST
        compared = np.append(compared, enough and not np.isnan(own.low[0]))
        if not enough:
            units = _without(units, np.append(few, True))
    found = differences(units, compared, level)
    adjusted = found.pvalue if compared.sum() == 2 else np.array(holm(found.pvalue.tolist()))  # two rows are one test
    within = kappa_within(units)
    reasons: list[str | None] = [None] * size
    for place in np.flatnonzero(~compared[:size] | (compared.sum() < 2)).tolist():
        reasons[place] = _reason(groups, place)
    kappa = np.where(groups.items < 2, np.nan, groups.kappa)
    ranks = shrunk(kappa, groups.spread)
    total = math.fsum(groups.weight.tolist())
    share = groups.weight / total if total else np.full(size, np.nan)
    chance = math.nan if whole.parts is None else float(1 - whole.parts.E)
    loss = np.where(groups.items > 0, share * groups.missed / (chance or math.nan), 0.0)
    columns: dict[str, Any] = {"slice": column.slices, "items": groups.items, "kappa": kappa}
    columns |= {"se": groups.se, "low": groups.low, "high": groups.high, "share": share, "loss": loss}
    columns |= _compared_columns(found, adjusted, slice(size), size >= MANY)
    grades = _grades(sliced, column.slices, groups, level, grade) if rows.weight is None else None
    columns |= {"kappa_shrunk": ranks} | ({} if grades is None else {"grade": grades}) | {"reason": reasons}
    smallest = int(groups.items[groups.items > 1].min(initial=_SMALL))
    values = ranks if smallest < _SMALL else kappa
    order = np.lexsort(
        (np.arange(size), *(np.where(np.isnan(v), np.inf, v) for v in (kappa, values)), np.isnan(groups.low))
    )
    title = f"Slices of {column.name}, {labeler}, {written(level, 100)}% confidence intervals, the lowest kappa first"
    table = Table({name: _in_order(values, order) for name, values in columns.items()}, title=title)
    joined = None
    if compared.size > size and compared[-1]:
        joined = _joined(units, found, adjusted, int(small.sum()), loss[small].sum(), share[small].sum())
    n_compared = int(compared[:size].sum())
    notes = tuple(_notes(column, groups, small, whole.value, within.value, grades is None, smallest))
    return Slices(
        column.name,
        labeler,
        table,
        joined,
        whole.value,
        within.value,
        within.se,
        float(np.nanmin(adjusted, initial=1.0)) if compared.sum() > 1 else math.nan,
        size,
        size - n_compared if n_compared + (joined is not None) > 1 else size,
        column.unit,
        level,
        notes,
    )


def _in_order(values: Any, order: Array) -> Any:
    """Return a column in another order."""
    return values[order] if isinstance(values, np.ndarray) else [values[place] for place in order.tolist()]


def _without(groups: GroupKappas, left_out: Array) -> GroupKappas:
    """Return the groups, of which some count as having no items."""
    return groups._replace(items=np.where(left_out, 0, groups.items), weight=np.where(left_out, 0.0, groups.weight))


def _reason(groups: GroupKappas, place: int) -> str:
    """Return why a slice is not compared with others."""
    n = int(groups.items[place])
    if n < 2:
        return _ONE_ITEM if n else _NO_ITEM
    if np.isnan(groups.kappa[place]):
        return ONE_CATEGORY
    if np.isnan(groups.low[place]):
        return _NO_VARIATION
    return _TOO_FEW if n < FEWEST else _ONLY_ONE


def _compared_columns(found: GroupDifferences, adjusted: Array, rows: slice, many: bool) -> dict[str, Any]:
    """Return the columns of the comparison with the other slices."""
    columns: dict[str, Any] = {"difference": found.value, "difference_low": found.low, "difference_high": found.high}
    columns |= {"pvalue": found.pvalue, "pvalue_holm": adjusted}
    columns |= {"pvalue_bh": false_discovery(found.pvalue)} if many else {}
    return {name: values[rows] for name, values in columns.items()}


def _joined(
    units: GroupKappas, found: GroupDifferences, adjusted: Array, number: int, loss: float, share: float
) -> Table:
    """Return the row of the small slices taken as one."""
    values: dict[str, Any] = {"slice": f"({counted(number, 'slice')} with fewer than {FEWEST} items)"}
    values |= {name: getattr(units, name)[-1] for name in ("items", "kappa", "se", "low", "high")}
    values |= {"share": share, "loss": loss}
    last = slice(len(adjusted) - 1, None)
    values |= {name: column[0] for name, column in _compared_columns(found, adjusted, last, False).items()}
    return Table({name: [value] for name, value in values.items()}, title="Small slices, taken as one")


def _grades(
    sliced: SlicedPatterns,
    names: Sequence[str],
    groups: GroupKappas,
    level: float,
    grade: Grade,
) -> list[str] | None:
    """Return the code of the verdict on each slice; None if there are too many."""
    if groups.items.size > MOST_GRADED:
        return None
    grades = ["not-enough-data"] * groups.items.size
    for place in np.flatnonzero(groups.items >= MIN_ITEMS).tolist():
        estimate = estimate_of(sliced, place)
        low, high = float(groups.low[place]), float(groups.high[place])
        interval = ConfidenceInterval(low, high, level, "beta", estimate.reason)
        grades[place] = grade(estimate, interval, names[place])
    return grades


def estimate_of(sliced: SlicedPatterns, place: int) -> Estimate:
    """Return the kappa of the items of one slice alone."""
    rows, row, group, items = sliced
    own = np.flatnonzero(group == place)
    kinds, index = np.unique(row[own], return_inverse=True)
    number = np.bincount(index, items[own]).astype(np.int64)
    return estimate_dh(sample_of(replace(rows, patterns=replace(rows.patterns.take(kinds), items=number))))


def _notes(
    column: SliceColumn,
    groups: GroupKappas,
    small: Array,
    kappa: float,
    within: float,
    ungraded: bool,
    smallest: int,
) -> Iterator[Note]:
    """Yield the notes on the slices of a column."""
    if column.missing:
        n = int(groups.items[list(column.missing)].sum())
        names = shown([column.slices[place] for place in column.missing], 3)
        has = "has" if n == 1 else "have"
        yield Note("slices-missing", f"{counted(n, 'item')} {has} no value in {column.name}: slice {names}.")
    if column.chosen and column.unit is not None:
        hint = f"Pass $slices with another unit, such as {column.name}:week."
        yield Note("slices-dates", f"{column.name} holds dates: items are grouped by {column.unit}.", hint)
    n_small, n = int(small.sum()), int(groups.items[small].sum())
    if n_small:
        how = "one by one, but taken as one" if n >= FEWEST else "and not counted in kappa within slices"
        what = f"{counted(n_small, 'slice')} with fewer than {FEWEST} items, {counted(n, 'item')} in all"
        yield Note("slices-few-items", f"Not compared {how}: {what}.")
    if len(column.slices) > _MANY_SLICES and 2 * n_small > len(column.slices):
        text = f"Most of the {len(column.slices):,} slices of {column.name} have fewer than {FEWEST} items."
        yield Note("slices-too-many", text, "Group its values in the data first, for example numbers into ranges.")
    if smallest < _SMALL:
        text = (
            "Kappas of small slices vary by chance, so slices are sorted by kappa_shrunk, which is closer to the mean"
        )
        yield Note("slices-shrunk", f"{text} of all slices the fewer items a slice has.")
    if abs(kappa - within) > _APART and not 0 < n < FEWEST:
        text = f"Kappa is {kappa:.2f} on all items, but {within:.2f} within slices of {column.name}"
        yield Note(
            "slices-explain-kappa", f"{text}: categories differ between slices, so that knowing the slice counts."
        )
    if ungraded:
        why = "there are sample weights" if len(column.slices) <= MOST_GRADED else f"more than {MOST_GRADED} slices"
        yield Note("slices-not-graded", f"Slices have no grade: {why}.")
