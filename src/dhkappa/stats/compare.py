"""Compare labelers on the same items: paired differences of kappa with intervals and p-values.

P-values come from the t distribution, or from the label-swap test if the labels of few items differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array
from dhkappa.core.grouping import LabeledPatterns
from dhkappa.core.item_table import ItemTable
from dhkappa.errors import counted, invalid, shown
from dhkappa.stats.any_time import any_time_level, any_time_pvalue, too_few_items
from dhkappa.stats.clusters import ClusterSizes, ClusterVariance, cluster_differences
from dhkappa.stats.influence import ROUNDING, Terms, influence, terms, unseen_parts, variance
from dhkappa.stats.intervals import KappaDifference, skewness, written
from dhkappa.stats.kappa import Estimate, kappa_estimate
from dhkappa.stats.multiple_tests import holm
from dhkappa.stats.notes import MADE_FROM_VOTES, Note, clusters_note, first_three, source_note
from dhkappa.stats.sample import Excluded, Pool, Rng, Sample, check_level, eligible, generator, make_sample
from dhkappa.stats.summation import group_sums, row_sums
from dhkappa.stats.weights import Weights
from dhkappa.table import Display, Table, plain, visible

COLUMNS = (
    *("labeler", "other", "difference", "se", "low", "high", "pvalue", "pvalue_holm"),
    *("method", "discordant", "items", "reason"),
)
FEW_DISCORDANT = 10  # below, the p-value is that of the label-swap test
_MAX_GROUPS = 1 << 16  # patterns x labels of the labelers that are counted together
_FEW_CELLS, _MAX_CELLS = 1 << 12, 1 << 14  # patterns x labels of two labelers in a dense table
_CELLS_PER_BLOCK = 1 << 15
_SWAPS = 9_999
_DRAWS_PER_BLOCK = 1 << 21
_MAX_ENUMERATED = 12  # discordant items for which all swaps are enumerated
_TIE = 1e-12  # numbers closer than this are equal up to rounding

_Pair = tuple[int, int]  # indices of two labelers, in order
Level: TypeAlias = tuple[float, bool]  # a confidence level, and whether intervals hold at it at every look


class _Labeler(NamedTuple):
    """The estimate of a labeler, and the influence by pattern of votes and label: sorted keys, and phi of each."""

    name: str
    estimate: Estimate
    not_by_chance: float = 0.0  # 1 - E; 0 if it is too small for a float, and without kappa
    key: npt.NDArray[np.int64] = np.zeros(1, np.int64)
    phi: Array = np.zeros(1)
    ratio: tuple[int, int] | None = None  # kappa as a fraction, if it is defined

    def at(self, keys: npt.NDArray[np.int64]) -> Array:
        """Return phi by key; that of another key where no item has the key."""
        found: Array = self.phi[np.minimum(np.searchsorted(self.key, keys), self.key.size - 1)]
        return found


class _PairCounts(NamedTuple):
    """The number of items by votes and two labels, for P pairs of labelers."""

    pairs: list[_Pair]
    rows: ItemTable  # C rows of votes and two labels; their own items mean nothing
    items: Array  # (P, C) number of items, as integers or floats
    move: Array  # (P, C) influence of an item on the difference, phi_A - phi_B

    def table(self, place: int) -> tuple[ItemTable, Array]:
        """Return the rows of one pair that have items, and the influence of each."""
        keep = np.flatnonzero(self.items[place])
        return replace(self.rows.take(keep), items=self.items[place, keep].astype(np.int64)), self.move[place, keep]


class _Difference(NamedTuple):
    """The difference between two labelers; NaN where ``reason`` says why."""

    labeler: str
    other: str
    difference: float
    discordant: int
    reason: str | None
    se: float = math.nan
    skew: float = math.nan
    method: str | None = None
    pvalue: float = math.nan
    clustered: ClusterVariance | None = None  # with clusters


def compare_labelers(
    table: ItemTable,
    *,
    weights: Weights | None = None,
    confidence_level: float = 0.95,
    any_time: bool = False,
    pool: Pool = None,
    rng: Rng = None,
) -> tuple[dict[str, Estimate], Table, tuple[Note, ...]]:
    """Return the estimate of each labeler, the differences between each two, and notes; see ``dhkappa.compare``.

    ``SE^2 = sum_i (phi_Ai - phi_Bi)^2 / (n (n - 1))`` for simple random samples.
    """
    confidence_level = check_level(confidence_level)
    if len(table.labels) < 2:
        text = f"A comparison needs at least two labelers: got {shown(table.labels)}."
        hint = "Pass the labels or the columns of two labelers or more in $suggested."
        raise invalid("suggested", text, hint=hint, code="too-few-labelers")
    source = generator(rng)
    table, excluded = eligible_rows(table)
    estimates, differences = compare_rows(table, excluded, weights, (confidence_level, any_time), pool, source)
    notes = (*map(source_note, table.source_notes), *_notes(estimates, excluded), *difference_notes(differences))
    return estimates, differences, notes


def compare_rows(
    table: ItemTable,
    excluded: Excluded,
    weights: Weights | None,
    level: Level,
    pool: Pool,
    source: np.random.Generator,
) -> tuple[dict[str, Estimate], Table]:
    """Return the estimate of each labeler and the differences between each two, on rows that are all eligible."""
    groups = _groups(table)
    parts = [table.distinct(group) if len(group) > 1 else table for group in groups]
    known = {
        who: _labeler(part, who, excluded, pool, weights)
        for part, group in zip(parts, groups, strict=True)
        for who in group
    }
    found = list(known.values())
    rows: dict[_Pair, _Difference] = {}
    for counts in _counts(table, groups, parts, found):
        rows |= _compared(counts, found, pool, source)
    late = [pair for pair, row in rows.items() if row.method == "swap" and math.isnan(row.pvalue)]
    size = _group_size(table)
    for pair in sorted(late, key=lambda pair: _turn(pair, size)):
        both = table.distinct([found[who].name for who in pair])
        rows[pair] = rows[pair]._replace(pvalue=_swap_test(_terms(both, pair, found, pool), source))
    rows = {pair: rows[pair] for pair in combinations(range(len(found)), 2)}
    estimates = {labeler.name: labeler.estimate for labeler in found}
    return estimates, _differences(rows, found, level)


def eligible_rows(table: ItemTable) -> tuple[ItemTable, Excluded]:
    """Return the rows with at least two votes, every label and a weight, and the number of excluded items."""
    m, n_votes = len(table.categories), table.votes.vote_totals()
    missing = [codes for codes in table.labels.values() if codes.max(initial=0) == m]
    if not missing and n_votes.min(initial=2) > 1 and (table.weight is None or table.weight.all()):
        return replace(table, labeled=True), Excluded()
    unlabeled = np.zeros(table.vote.size, np.bool_)
    for codes in missing:
        unlabeled |= codes == m
    keep, excluded = eligible(n_votes[table.vote], table.items, unlabeled, table.weight)
    return replace(table.take(keep), labeled=True), excluded


def _groups(table: ItemTable) -> list[tuple[str, ...]]:
    """Return groups of labelers, all of the same size; the last may overlap with the one before."""
    names, size = tuple(table.labels), _group_size(table, table.n_designs)
    starts = (min(first, len(names) - size) for first in range(0, len(names), size))
    return [names[first : first + size] for first in starts]


def _group_size(table: ItemTable, n_designs: int = 1) -> int:
    """Return the size of groups of labelers, any two of which are counted together in one pass over the items."""
    size, kinds, m = 1, len(table.votes) * n_designs, len(table.categories)
    while kinds * m ** (2 * (size + 1)) <= _MAX_GROUPS and 2 * size < len(table.labels):
        size += 1
    return size


def labeler_sample(table: ItemTable, name: str, excluded: Excluded, pool: Pool) -> Sample:
    """Return the sample of one labeler; rows differ in votes, its label, stratum, weight or cluster."""
    label = table.labels[name].astype(np.int32)
    patterns = replace(table.votes.take(table.vote), suggested=label, items=table.items)
    rows = LabeledPatterns(table.categories, patterns, table.strata, table.stratum, table.weight, table.cluster)
    return make_sample(rows, excluded, pool)


def _labeler(table: ItemTable, name: str, excluded: Excluded, pool: Pool, weights: Weights | None) -> _Labeler:
    own = table.distinct([name])
    sample = labeler_sample(own, name, excluded, pool)
    estimate = kappa_estimate(sample, weights)
    parts, ratio = estimate.parts, None if estimate.exact is None else estimate.exact.as_integer_ratio()
    if parts is None or float(parts.E) == 1:
        return _Labeler(name, estimate, ratio=ratio)
    phi = influence(terms(sample, parts, weights))
    return _Labeler(name, estimate, 1 - float(parts.E), _keys(own, name), phi, ratio)


def _keys(table: ItemTable, name: str) -> npt.NDArray[np.int64]:
    """Return (K,) one integer for the votes and the label of each row."""
    return table.vote.astype(np.int64) * len(table.categories) + table.labels[name]


def _counts(
    table: ItemTable, groups: Sequence[Sequence[str]], parts: Sequence[ItemTable], found: Sequence[_Labeler]
) -> Iterator[_PairCounts]:
    """Yield the counts of every two labelers, in blocks, of some more than once; ``parts`` are tables of the groups."""
    names, size = list(table.labels), len(groups[0])
    cells = len(table.votes) * len(table.categories) ** 2 * table.n_designs
    if cells > max(_FEW_CELLS, min(table.vote.size, _MAX_CELLS)):  # most of them would be empty
        for i, j in combinations(range(len(names)), 2):
            rows = table.distinct([names[i], names[j]])
            move = found[i].at(_keys(rows, names[i])) - found[j].at(_keys(rows, names[j]))
            yield _PairCounts([(i, j)], rows, rows.items[None], move[None])
        return
    rows = table.grid()
    phi, other_phi = (np.array([labeler.at(_keys(rows, side)) for labeler in found]) for side in rows.labels)
    place = np.array([[names.index(name) for name in group] for group in groups])
    within = ((i, i, items) for i, part in enumerate(parts) for *_, items in part.pair_counts([groups[i]] * 2))
    passes = chain(within if size > 1 else (), table.pair_counts(groups))
    while batch := list(islice(passes, max(1, _CELLS_PER_BLOCK // max(1, cells * size**2)))):
        left, right, counts = zip(*batch, strict=True)
        one, other = np.repeat(place[[*left]], size), np.tile(place[[*right]], size).ravel()
        new = one < other
        one, other, items = one[new], other[new], np.concatenate(counts)[new]
        yield _PairCounts(
            list(zip(one.tolist(), other.tolist(), strict=True)), rows, items, phi[one] - other_phi[other]
        )


def _compared(
    counts: _PairCounts, found: Sequence[_Labeler], pool: Pool, source: np.random.Generator
) -> dict[_Pair, _Difference]:
    """Return differences of pairs; the p-value is still NaN if it comes from a t distribution or random numbers."""
    differ = np.not_equal(*counts.rows.labels.values()).astype(counts.items.dtype)
    sample, rows = found[0].estimate.sample, {}
    n, powers = sample.n, [] if sample.designed or sample.clustered else _powers(counts.move, counts.items)
    for place, (pair, discordant) in enumerate(zip(counts.pairs, (counts.items @ differ).tolist(), strict=True)):
        one, other = found[pair[0]], found[pair[1]]
        difference, reason = math.nan, one.estimate.reason or other.estimate.reason
        if one.ratio and other.ratio:
            (a, b), (c, d) = one.ratio, other.ratio
            difference = (a * d - c * b) / (b * d)  # Python integers: rounded once
        if reason is None and n < 2:
            reason = "Only one item is eligible, so the variance is unknown."
        if reason is None and not (one.not_by_chance and other.not_by_chance):
            reason = "One item has almost all the weight, so the variance is unknown."
        row = one.name, other.name, difference, int(discordant), reason
        if reason is not None:
            rows[pair] = _Difference(*row)
            continue
        spread = _clustered(counts, place, found, pool) if sample.clustered else None
        if spread is not None and spread.reason is not None:
            rows[pair] = _Difference(*row[:-1], spread.reason, spread.se)
            continue
        squared, infinite_pool, skew = (
            (spread.jackknife, spread.squares, spread.skew)
            if spread
            else _moments(*powers[place], n)
            if powers
            else _designed_moments(counts, place, found, pool)
        )
        few, pvalue = discordant < FEW_DISCORDANT or infinite_pool == 0, math.nan
        if few and discordant <= _MAX_ENUMERATED:
            pvalue = _swap_test(_terms(counts.table(place)[0], pair, found, pool), source)
        rows[pair] = _Difference(
            *row, math.sqrt(squared), skew if infinite_pool else 0.0, "swap" if few else "t", pvalue, spread
        )
    return rows


def _terms(table: ItemTable, pair: _Pair, found: Sequence[_Labeler], pool: Pool) -> Iterator[Terms]:
    """Yield the terms of the two labelers of a pair, which have a kappa."""
    for side, who in zip(table.labels, pair, strict=True):
        estimate = found[who].estimate
        assert estimate.parts is not None
        yield terms(labeler_sample(table, side, estimate.sample.excluded, pool), estimate.parts, estimate.weights)


def _moments(squares: float, skew: float, n: int) -> tuple[float, float, float]:
    """Return the variance of a difference, the same for an infinite pool up to a factor, and the skewness."""
    squares = 0.0 if squares <= ROUNDING**2 * n else squares
    return squares / (n * (n - 1)), squares, skew


def _clustered(counts: _PairCounts, place: int, found: Sequence[_Labeler], pool: Pool) -> ClusterVariance:
    """Return the variance of a difference with clusters."""
    table, move = counts.table(place)
    return ClusterSizes.of(next(_terms(table, counts.pairs[place], found, pool)).sample).variance(move)


def _designed_moments(
    counts: _PairCounts, place: int, found: Sequence[_Labeler], pool: Pool
) -> tuple[float, float, float]:
    """Return the same for a sample with weights, strata or a pool."""
    table, move = counts.table(place)
    known = next(_terms(table, counts.pairs[place], found, pool))
    ((_, skew),) = _powers((known.weight / known.items * move)[None], table.items)
    return *variance(known, move), skew


def _powers(z: Array, items: Array) -> list[tuple[float, float]]:
    """Return the sum of squares over items of each row, and the skewness ``sum z^3 / (sum z^2)^1.5``, 0 if all 0."""
    squares = z * z
    cubes = squares * z
    squares *= items
    cubes *= items
    sums = zip(row_sums(squares).tolist(), row_sums(cubes).tolist(), strict=True)
    return [(square, skewness(cube, square)) for square, cube in sums]


def _turn(pair: _Pair, size: int) -> tuple[int, int, int, int]:
    """Return a key that sorts pairs by groups of labelers, which is the order of their random numbers."""
    group, other = (who // size for who in pair)
    return group if group < other else 0, max(other, 1), *pair


def _swap_test(pair: Iterable[Terms], source: np.random.Generator) -> float:
    """Return the p-value of the label-swap test: the labels of an item are swapped with probability 1/2.

    Votes and so C do not change: a swap moves D and E of the two labelers by the same amount in opposite directions.
    Swaps of few discordant items are enumerated, those of many are drawn at random. Items of a cluster are swapped
    together.
    """
    one, other = pair
    rows = np.flatnonzero(one.suggested != other.suggested)
    share = one.weight[rows] / one.items[rows] / one.n
    items, k = one.items[rows], one.near(one.C * one.near(one.C))  # E = sum_l L_l (2 k_l - sum_x C_x (wC)_x)
    move_E = 2 * (k[other.suggested] - k[one.suggested])[rows] * share
    moves = np.column_stack([(other.d - one.d)[rows] * share, move_E])
    if one.sample.clustered and one.sample.cluster is not None:
        found, place = np.unique(one.sample.cluster[rows], return_inverse=True)
        moves = np.column_stack([group_sums(move * items, place, found.size) for move in moves.T])
        items = np.ones(found.size, np.int64)
    exact = int(items.sum()) <= _MAX_ENUMERATED
    if exact:
        each = np.repeat(np.arange(items.size), items)
        tossed = np.indices((2,) * each.size).reshape(each.size, 2**each.size).T.astype(np.float64)
        D, E = (tossed @ moves[each]).T
    else:
        step = max(1, _DRAWS_PER_BLOCK // items.size)
        sizes = [min(step, _SWAPS - at) for at in range(0, _SWAPS, step)]
        D, E = np.concatenate([source.binomial(items, 0.5, (size, items.size)) @ moves for size in sizes]).T
    defined, kappas = np.ones(len(D), bool), []
    for of, move in ((one, 1), (other, -1)):
        not_by_chance = 1 - of.E - move * E
        defined &= np.abs(not_by_chance) > _TIE
        kappas.append(1 - (1 - of.D - move * D) / np.where(defined, not_by_chance, 1))
    # A swap after which kappa is undefined counts as a large difference.
    as_far = int((~defined | (np.abs(kappas[0] - kappas[1]) >= abs(one.kappa - other.kappa) - _TIE)).sum())
    return as_far / len(D) if exact else (1 + as_far) / (_SWAPS + 1)


def _differences(rows: Mapping[_Pair, _Difference], found: Sequence[_Labeler], level: Level) -> Table:
    """Return the table of differences; limits and p-values are computed all at once."""
    confidence_level, any_time = level
    columns = dict(zip(_Difference._fields, map(list, zip(*rows.values(), strict=True)), strict=True))
    columns |= {name: [math.nan] * len(rows) for name in ("low", "high")}
    known = [place for place, reason in enumerate(columns["reason"]) if reason is None]
    if known:
        one, other = np.array(list(rows)).T[:, known]
        strata, n = found[0].estimate.sample.strata, found[0].estimate.n_items
        effective = np.array([labeler.estimate.sample.n_effective for labeler in found])
        reach = np.array([1 / (labeler.not_by_chance or math.nan) for labeler in found])
        reach = (reach[one] + reach[other]) * float(unseen_parts(strata).max())
        value, se, skew = (np.array(columns[name])[known] for name in ("difference", "se", "skew"))
        gap = KappaDifference(value, se, skew, effective[one], np.array([max(n - len(strata), 1.0)]), -reach, reach)
        if columns["clustered"][known[0]] is not None:
            gap = cluster_differences(gap, [columns["clustered"][place] for place in known])
        size = float(effective[0])  # the items are the same
        single = any_time_level(size, confidence_level) if any_time else confidence_level
        limits = (values.tolist() for values in (*gap.limits(single), gap.pvalue()))
        for place, low, high, pvalue in zip(known, *limits, strict=True):
            columns["low"][place], columns["high"][place] = low, high
            if columns["method"][place] == "t":  # a standard error of 0 means that the sample is the whole pool
                columns["pvalue"][place] = pvalue if columns["se"][place] else float(columns["difference"][place] == 0)
            if any_time:
                columns["pvalue"][place] = any_time_pvalue(columns["pvalue"][place], size)
                columns["reason"][place] = too_few_items(size) if math.isnan(single) else None
    columns["items"] = [found[0].estimate.n_items] * len(rows)
    return differences_table(columns, level, found[0].estimate.weights)


def differences_table(
    columns: Mapping[str, Sequence[Any]], level: Level, weights: Weights | None, remark: str = ""
) -> Table:
    """Return the table of differences with its title; p-values are adjusted here."""
    known = {**columns, "pvalue_holm": holm(columns["pvalue"])}
    kappa = "" if weights is None else " in weighted kappa"
    what = f"Differences{kappa} between labelers{remark and f' {remark}'}"
    title = f"{what}, {written(level[0], 100)}% confidence intervals"
    title += " that hold at every look" if level[1] else ""
    return Table({name: known[name] for name in COLUMNS}, title=title)


def _notes(estimates: Mapping[str, Estimate], excluded: Excluded) -> Iterator[Note]:
    if excluded.total:
        yield Note(
            "items-excluded", f"{excluded.sentence()} Labelers are compared on the items that all of them labeled."
        )
    yield from majority_note(estimates)
    yield from clusters_note(next(iter(estimates.values())).sample)


def majority_note(estimates: Mapping[str, Estimate]) -> Iterator[Note]:
    """Yield a note on labelers that score as high as majority labels, if any; the labelers have the same items."""
    majority = next(iter(estimates.values())).baselines.majority  # the same for all labelers
    own = [name for name, of in estimates.items() if of.exact == majority and of.exact not in (None, 1)]
    if own:
        text = f"The labels of {shown(own)} score exactly as high as majority labels."
        yield Note("equals-majority", f"{text} {MADE_FROM_VOTES}")


def difference_notes(differences: Table) -> Iterator[Note]:
    """Yield notes on the label-swap test."""
    rows = [row for row in differences if row["method"] == "swap"]
    swapped = [(f"{row['labeler']!r} and {row['other']!r}", row["discordant"]) for row in rows]
    tested = "Their p-value comes from the label-swap test."
    if few := [pair for pair, discordant in swapped if discordant < FEW_DISCORDANT]:
        text = f"Labels differ on fewer than {FEW_DISCORDANT} items between {first_three(few)}."
        yield Note("few-discordant", f"{text} {tested}")
    if equal := [pair for pair, discordant in swapped if discordant >= FEW_DISCORDANT]:
        text = f"Every item has the same influence on the difference between {first_three(equal)}"
        yield Note("no-standard-error", f"{text}, so there is no standard error. {tested}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnnotatorComparison(Display):
    """A labeler compared with each annotator, both scored by the votes of all other annotators.

    Attributes
    ----------
    labeler : name of the labeler
    table : one row per annotator: kappa of both on the same items, their difference and its interval
    difference : mean over annotators, weighted by their items, of the labeler's kappa minus the annotator's
    se : standard error of the difference, for items drawn at random and these annotators
    low, high, confidence_level : confidence interval of the difference
    matched : share of annotators whose kappa is at most that of the labeler
    n_items : items on which at least one annotator was compared
    skipped : annotators who were not compared
    notes : conditions that change what the result means
    reason : why values are NaN; None if they are not
    """

    labeler: str
    table: Table
    difference: float
    se: float
    low: float
    high: float
    confidence_level: float
    matched: float
    n_items: int
    skipped: tuple[Any, ...]
    notes: tuple[Note, ...]
    reason: str | None = None

    def __repr__(self) -> str:
        compared = len(self.table) - len(self.skipped)
        details = [counted(self.n_items, "item")]
        if compared:
            matched = f"{self.matched * compared:,.0f} of {counted(compared, 'annotator')}"
            details.append(f"kappa at least that of {matched}")
        if self.skipped:
            details.append(f"{len(self.skipped):,} skipped")
        if self.reason:
            details.append(self.reason.rstrip("."))
        limits = f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}] at {written(self.confidence_level)}"
        difference = "undefined" if math.isnan(self.low) else limits
        return f"{visible(self.labeler)} compared with annotators: {difference} ({'; '.join(details)})"

    def _display(self) -> tuple[str, Table, list[str]]:
        return repr(self), self.table, [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN is None."""
        names = ("difference", "se", "low", "high", "confidence_level", "matched", "n_items")
        return {
            "labeler": self.labeler,
            **{name: plain(getattr(self, name)) for name in names},
            "annotators": self.table.to_json(),
            "skipped": [plain(name) for name in self.skipped],
            "notes": [note.to_dict() for note in self.notes],
            "reason": self.reason,
        }
