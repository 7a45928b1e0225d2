"""Compare labelers that did not label the same items: each pair on the items that both labeled, and a ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.item_table import ItemTable
from dhkappa.errors import DataError, counted
from dhkappa.stats.compare import (
    COLUMNS,
    Level,
    compare_labelers,
    compare_rows,
    difference_notes,
    differences_table,
    eligible_rows,
    labeler_sample,
    majority_note,
)
from dhkappa.stats.kappa import Estimate, kappa_estimate
from dhkappa.stats.notes import Note, clusters_note, not_ranked_text, source_note
from dhkappa.stats.sample import Excluded, Pool, Rng, check_level, generator
from dhkappa.stats.weights import Weights
from dhkappa.table import Table

_TOO_FEW = ("stratum-empty", "stratum-one-item", "stratum-one-cluster")  # codes of errors: too few common items
_FEW_ITEMS = 20  # common items that a ranking needs
_PER_STRATUM = 2  # common items of ranked labelers in a stratum


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Labelers that labeled the same n items, in some rows of the table."""

    names: list[str]
    rows: npt.NDArray[np.bool_]
    n: int


def compare_on_common_items(
    table: ItemTable,
    *,
    weights: Weights | None = None,
    confidence_level: float = 0.95,
    any_time: bool = False,
    pool: Pool = None,
    rng: Rng = None,
) -> tuple[dict[str, Estimate], Table, tuple[Note, ...], dict[str, str]]:
    """Return estimates, differences, notes, and why labelers are not ranked; see ``dhkappa.compare``.

    Labelers that labeled the same items are compared in one pass. Otherwise they are grouped by the items that they
    labeled, and the common items of two groups take one pass: at most one for each two labelers.
    """
    level = check_level(confidence_level), any_time
    usable, groups = _groups(table)
    if len(groups) < 2:
        options: dict[str, Any] = {"confidence_level": level[0], "any_time": any_time, "pool": pool, "rng": rng}
        return *compare_labelers(table, weights=weights, **options), {}
    names, source = list(table.labels), generator(rng)
    # A design that does not fit the items is an error; one that does not fit the common items of a pair is a reason.
    labeler_sample(usable.distinct(names[:1]), names[0], Excluded(), pool)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for one, other in combinations_with_replacement(groups, 2):
        for row in _differences(usable, one, other, weights, level, pool, source):
            rows[row["labeler"], row["other"]] = row
    ordered = [rows[pair] for pair in combinations(names, 2)]
    differences = differences_table({key: [row[key] for row in ordered] for key in COLUMNS}, level, weights)
    ranking = _Ranking(usable, groups)
    ranked, not_ranked = ranking.names(), ranking.reasons()
    common = _estimates(table, ranked, weights, pool)
    excluded = eligible_rows(replace(table, labels={name: table.labels[name] for name in ranked}))[1]
    notes = [*map(source_note, table.source_notes), *_notes(excluded, common, names, not_ranked)]
    notes += [*(majority_note(common) if common else ()), *difference_notes(differences)]
    notes += clusters_note(labeler_sample(usable.distinct(names[:1]), names[0], Excluded(), pool))
    own = {name: _estimates(table, [name], weights, pool)[name] for name in not_ranked}
    return {name: {**common, **own}[name] for name in names}, differences, tuple(notes), not_ranked


def _groups(table: ItemTable) -> tuple[ItemTable, list[_Group]]:
    """Return the rows with two votes or more and a weight, and the labelers by the items that they labeled.

    There are no groups if no label is missing.
    """
    m = len(table.categories)
    if all(codes.max(initial=0) < m for codes in table.labels.values()):
        return table, []
    usable = table.votes.vote_totals()[table.vote] > 1
    if table.weight is not None:
        usable &= table.weight > 0
    table = table if usable.all() else table.take(usable)
    found: dict[bytes, _Group] = {}
    for name, codes in table.labels.items():
        rows = codes < m
        group = _Group([], rows, _items(table, rows))
        found.setdefault(np.packbits(rows).tobytes(), group).names.append(name)
    return table, list(found.values())


def _items(table: ItemTable, rows: npt.NDArray[np.bool_]) -> int:
    """Return the number of items in some rows."""
    return int(np.count_nonzero(rows)) if table.single else int(table.items[rows].sum())


def _differences(
    table: ItemTable,
    one: _Group,
    other: _Group,
    weights: Weights | None,
    level: Level,
    pool: Pool,
    source: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield the differences between labelers of two groups, or of one, on the items that both groups labeled."""
    among = {*one.names} if one is other else {*one.names, *other.names}
    names = [name for name in table.labels if name in among]
    pairs = [
        pair for pair in combinations(names, 2) if one is other or (pair[0] in one.names) != (pair[1] in one.names)
    ]
    if not pairs:
        return
    if len(names) == 2:  # few distinct rows
        table = table.distinct(names)
        rows = np.logical_and(*(codes < len(table.categories) for codes in table.labels.values()))
    else:
        table, rows = replace(table, labels={name: table.labels[name] for name in names}), one.rows & other.rows
    table = replace(table.take(rows), labeled=True)
    n, reason = int(table.items.sum()), "No item has two votes and a label of both."
    if n:
        try:
            _, found = compare_rows(table, Excluded(), weights, level, pool, source)
        except DataError as error:
            if error.code not in _TOO_FEW:
                raise
            reason = error.message
        else:
            wanted = {*pairs}
            yield from (row for row in found if (row["labeler"], row["other"]) in wanted)
            return
    for pair in pairs:
        differ = np.not_equal(*(table.labels[name] for name in pair))
        known: dict[str, Any] = {"labeler": pair[0], "other": pair[1], "method": None, "reason": reason}
        known |= {"items": n, "discordant": int(table.items[differ].sum())}
        yield {key: known.get(key, math.nan) for key in COLUMNS}


class _Ranking:
    """The labelers to rank, all on the items that all of them labeled; none if no two of them share enough items.

    A labeler needs half as many labels as the one with most has. Starting with each of these in turn, others are added,
    first those that share most items with it: each must have labeled half of the items that those before it share, and
    20 items or half of the most must remain. The largest such set is ranked; of several the one with most common items.
    """

    def __init__(self, table: ItemTable, groups: Sequence[_Group]) -> None:
        # Ties are in the order of names, so that the order of labelers does not matter.
        self.table, self.groups = table, sorted(groups, key=lambda group: (-group.n, min(group.names)))
        self.least = max(1, math.ceil(self.groups[0].n / 2))
        self.candidates = [group for group in self.groups if group.n >= self.least]
        self.chosen, self.rows, best = [], np.zeros(table.vote.size, np.bool_), (0, 0)
        for first in self.candidates:
            if not self._fits(first.rows, first):
                continue
            chosen, rows = self._set_of(first)
            size = sum(len(group.names) for group in chosen), self._n(rows)
            if size[0] > 1 and size > best:
                self.chosen, self.rows, best = chosen, rows, size
            if len(chosen) == len(self.candidates):
                break

    def _n(self, rows: npt.NDArray[np.bool_]) -> int:
        return _items(self.table, rows)

    def _needed(self, n: int) -> int:
        """Return how many of n common items a labeler must have labeled."""
        return max(math.ceil(n / 2), min(_FEW_ITEMS, self.least))

    def _set_of(self, first: _Group) -> tuple[list[_Group], npt.NDArray[np.bool_]]:
        """Return a set of labelers with this one, and the rows that they share."""
        chosen, rows = [first], first.rows
        others = sorted(
            (group for group in self.candidates if group is not first), key=lambda g: -self._n(rows & g.rows)
        )
        before = 0
        while len(chosen) > before:  # a labeler that did not fit may fit when there are fewer common items
            before = len(chosen)
            for group in others:
                if group not in chosen and self._fits(rows, group):
                    chosen, rows = [*chosen, group], rows & group.rows
        return chosen, rows

    def _fits(self, rows: npt.NDArray[np.bool_], group: _Group) -> bool:
        """Return whether labelers labeled enough of some rows, in all and in each stratum."""
        left = rows & group.rows
        if self._n(left) < self._needed(self._n(rows)):
            return False
        stratum, items = self.table.stratum, self.table.items
        if stratum is None:
            return True
        found = np.zeros((2, len(self.table.strata)), np.int64)
        np.add.at(found[0], stratum, items)
        np.add.at(found[1], stratum[left], items[left])
        return bool((found[1] >= np.minimum(found[0], _PER_STRATUM)).all())

    def names(self) -> list[str]:
        """Return the ranked labelers, in the given order."""
        ranked = {name for group in self.chosen for name in group.names}
        return [name for name in self.table.labels if name in ranked]

    def reasons(self) -> dict[str, str]:
        """Return why the other labelers are not ranked, those with most labels first."""
        found: dict[str, str] = {}
        for group in self.groups:
            if group not in self.chosen:
                found |= dict.fromkeys(group.names, self._reason(group))
        return found

    def _reason(self, group: _Group) -> str:
        if group.n < self.least:
            every = counted(int(self.table.items.sum()), "item")
            return f"It labeled {group.n:,} of {every}, and a ranking needs {self.least:,}."
        if self.chosen:
            n, own = self._n(self.rows), self._n(self.rows & group.rows)
            text = f"It labeled {own:,} of the {counted(n, 'item')} that the ranked labelers labeled"
        else:
            others = [other for other in self.candidates if other is not group]
            if not others:
                return f"No other labeler labeled {counted(self.least, 'item')}, as a ranking needs."
            n, own = group.n, max(self._n(group.rows & other.rows) for other in others)
            text = f"It shares at most {counted(own, 'item')} with another labeler"
        short = own < self._needed(n)
        return f"{text}, and a ranking needs {self._needed(n):,}." if short else f"{text}, too few in a stratum."


def _estimates(table: ItemTable, names: Sequence[str], weights: Weights | None, pool: Pool) -> dict[str, Estimate]:
    """Return the estimates of some labelers on the items that all of them labeled."""
    rows, excluded = eligible_rows(replace(table, labels={name: table.labels[name] for name in names}))
    found = {}
    for name in names:
        own, reason = rows.distinct([name]), None
        try:
            sample = labeler_sample(own, name, excluded, pool)
        except DataError as error:
            if error.code not in _TOO_FEW:
                raise
            none, reason = own.take(np.zeros(0, np.int64)), error.message
            none = replace(none, strata=(), design=None, design_stratum=None, design_weight=None, design_cluster=None)
            sample = labeler_sample(none, name, excluded, None)
        estimate = kappa_estimate(sample, weights)
        coverage = _coverage(table, name)
        found[name] = replace(estimate, own_coverage=coverage, reason=reason or estimate.reason)
    return found


def _coverage(table: ItemTable, name: str) -> float:
    """Return the share of the items with two votes or more that a labeler labeled."""
    rows, excluded = eligible_rows(replace(table, labels={name: table.labels[name]}))
    n = int(rows.items.sum())
    return n / (n + excluded.no_label) if n + excluded.no_label else math.nan


def _notes(
    excluded: Excluded, ranked: Mapping[str, Estimate], names: Sequence[str], not_ranked: Mapping[str, str]
) -> Iterator[Note]:
    """Yield notes on the items that each number is for, and on labelers that are not ranked."""
    if ranked and excluded.total:
        only = " Labelers are compared on the items that all of them labeled." if len(names) == 2 else ""
        yield Note("items-excluded", excluded.sentence() + only)
    each = "Each difference is for the items that both labelers labeled"
    if not ranked:
        yield Note("different-items", f"{each}, and each kappa for all items that the labeler labeled.")
    elif len(names) > 2:
        who = "all of them" if len(ranked) == len(names) else "all ranked labelers"
        n = next(iter(ranked.values())).n_items
        yield Note("different-items", f"{each}, and the ranking for the {counted(n, 'item')} that {who} labeled.")
    if not_ranked:
        few = "" if ranked else "The labelers share too few items to be ranked. "
        yield Note("not-ranked", few + not_ranked_text(not_ranked))
