"""Annotators: the part of each in kappa, kappa without their votes, and each compared with a labeler."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers
from dhkappa.core.grouping import Entries, Patterns, group_rows
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted, invalid, shown
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.influence import ROUNDING, agreeing_pairs, influence, terms, weight_of_one
from dhkappa.stats.intervals import Gap, skewness, written
from dhkappa.stats.kappa import KappaSums, Sums, Units, above_chance, dh_parts, distinct, sums, units
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Pool, Sample, Stratum, check_level, sample_of
from dhkappa.stats.summation import Array, Floats, exact_sum, integer_type, item_sums, ratios, totals
from dhkappa.table import Table

MIN_ITEMS = 10  # an annotator with fewer items is not compared

_NO_ITEMS = "The annotator has no vote on an eligible item."
_NO_PAIRS = "Without the annotator's votes, no labeled item has two votes."
_CERTAIN = "Every vote and every suggested label is the same category."
_CERTAIN_WITHOUT = "Without the annotator's votes, every vote and every suggested label is the same category."
_FEW = f"Fewer than {MIN_ITEMS} items with two other votes and a suggested label."
_CERTAIN_HERE = "Every vote and every label on these items is the same category."
_NO_VARIANCE = "Every item has the same influence on the difference, so the variance is unknown."
_ONE_WEIGHT = "One item has almost all the weight."
_NOBODY = "No annotator can be compared."

_COLUMNS = ("kappa_annotator", "kappa_labeler", "difference", "se", "low", "high")
_BLOCK = 1 << 20  # entries of patterns that are processed at once
_CLOSE = 1e-5  # of 1 - E: below, influence is computed for one annotator at a time, by formulas that keep its digits

_ONE_STRATUM = (Stratum(None, 0, None),)

_Index = npt.NDArray[np.int64]


def require_annotators(item_votes: ItemVotes | None) -> None:
    """Require votes with annotator identities."""
    if item_votes is None or item_votes.annotators is None:
        hint = (
            "Pass votes as an n x N array, or a table in memory with $annotators or $annotator. Lists, counts, tallies "
            "and large tables in an engine do not keep who cast a vote."
        )
        raise invalid("annotators", "Annotators are unknown.", hint=hint, code="annotators-unknown")


@dataclass(frozen=True, slots=True)
class AnnotatorParts:
    """The part of one annotator in kappa, as exact fractions; None if undefined.

    ``agree`` is the weighted share of votes for the suggested label, ``weight`` is omega_a, sum_i w_i / N_i over the
    annotator's items divided by sum_i w_i, and ``differential`` is D_a, the mean with weights w_i / N_i of the
    differential of the pairs of votes with the annotator. ``change`` is the difference of ``kappa_without`` the
    annotator's votes from the kappa of all.
    """

    items: int
    agree: Fraction | None
    weight: Fraction
    differential: Fraction | None
    kappa: Fraction | None
    kappa_without: Fraction | None
    change: Fraction | None
    reason: str | None


def annotator_parts(
    item_votes: ItemVotes, labeler: str, pool: Pool = None, sample: Sample | None = None
) -> list[AnnotatorParts]:
    """Return the part of each annotator: D = sum_a omega_a D_a and kappa = sum_a omega_a kappa_a."""
    require_annotators(item_votes)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool) if sample is None else sample
    total = sums(sample, weighted=sample.weighted)
    whole = dh_parts(total, sample.categories) if total.n else None
    E, kappa = (whole.E, whole.kappa) if whole else (Fraction(1), None)
    no_change = None if kappa is None else Fraction(0)
    nothing = AnnotatorParts(0, None, Fraction(0), None, None, kappa, no_change, _NO_ITEMS)
    found = [nothing] * len(item_votes.annotators or ())
    votes, sizes = annotator_votes(item_votes, sample), distinct(sample.patterns.vote_totals())
    unit = units({*sizes, *(size - 1 for size in sizes if size > 2)}, int(sample.mass.sum()))
    for who, own in votes.blocks():
        for place, part in zip(who.tolist(), _parts(own, who.size, total, unit, E, kappa), strict=True):
            found[place] = part
    return found


def _parts(
    votes: AnnotatorVotes, size: int, total: Sums, unit: Units, E: Fraction, kappa: Fraction | None
) -> Iterator[AnnotatorParts]:
    """Yield the parts of some annotators, who all have votes."""
    mass, n_votes, rest = votes.mass, votes.n_votes, _rest(votes, size, total, unit)
    by_vote = (
        votes.items,
        mass,
        np.where(votes.own == votes.label, mass, 0),
        mass * unit.per_vote[n_votes],
        mass * unit.per_pair[n_votes] * votes.signed(),  # d_ia = signed / (N_i - 1), with weight w_i / N_i
    )
    columns = (*(totals(numbers, votes.who, size) for numbers in by_vote), rest.n, *rest.kappa)
    for items, each, hits, share, signed, n, top, bottom in zip(*(column.tolist() for column in columns), strict=True):
        D = Fraction(signed * unit.vote, 2 * unit.pair * share)
        without = Fraction(top, bottom) if bottom else None
        reason = None
        if kappa is None:
            reason = _CERTAIN
        elif without is None:
            reason = _CERTAIN_WITHOUT if n else _NO_PAIRS
        yield AnnotatorParts(
            items=items,
            agree=Fraction(hits, each),
            weight=Fraction(share, unit.vote * total.n),
            differential=D,
            kappa=above_chance(D, E),
            kappa_without=without,
            change=None if kappa is None or without is None else without - kappa,
            reason=reason,
        )


def _rest(votes: AnnotatorVotes, size: int, total: Sums, unit: Units) -> KappaSums:
    """Return the sums of all items without the votes of each annotator."""
    who, mass, n_votes, differential = votes.who, votes.mass, votes.n_votes, votes.differential[votes.row]
    patterns, at = votes.patterns()
    length, left = np.diff(patterns.start), patterns.votes.copy()
    left[at] -= 1
    # An item with one vote left is not eligible: the unit of one vote is 0.
    gone = np.where(n_votes > 2, 0, mass)
    new, old = mass * unit.per_vote[n_votes - 1], mass * unit.per_vote[n_votes]
    change = left * np.repeat(new, length) - patterns.votes * np.repeat(old, length)
    new, old = mass * unit.per_pair[n_votes - 1], mass * unit.per_pair[n_votes]
    pairs = new * (differential - votes.signed()) - old * differential
    where = cells([(np.repeat(who, length), patterns.code), (who, votes.label)])
    by_vote, by_label = where.of
    k, integer = where.code.size, integer_type((total.n * unit.vote) ** 2 * total.n)
    whole = [number * (unit.vote // total.vote_unit) for number in total.votes]
    C, L = np.array(whole, integer)[where.code], np.array(total.labels, integer)[where.code]
    new_C, new_L = C + totals(change, by_vote, k).astype(integer), L - totals(gone, by_label, k).astype(integer)
    same, on = new_C**2 - C**2, new_C**2 * new_L - C**2 * L
    on_pairs = (2 * total.on_label - total.agreeing) * (unit.pair // total.pair_unit)
    return KappaSums(
        unit,
        n=total.n - totals(gone, who, size).astype(object),
        differential=on_pairs + totals(pairs, who, size).astype(object),
        same=sum(C**2 for C in whole) + totals(same, where.who, size).astype(object),
        on=sum(C**2 * L for C, L in zip(whole, total.labels, strict=True)) + totals(on, where.who, size).astype(object),
    )


def annotator_table(item_votes: ItemVotes, labeler: str, pool: Pool = None, sample: Sample | None = None) -> Table:
    """Return the part of each annotator in kappa and kappa without their votes; see ``Audit.annotators``."""
    found = annotator_parts(item_votes, labeler, pool, sample)
    columns: dict[str, Any] = {"annotator": item_votes.annotators or (), "items": [part.items for part in found]}
    for name in ("agree", "weight", "differential", "kappa", "kappa_without", "change"):
        columns[name] = [_rounded(getattr(part, name)) for part in found]
    columns["reason"] = [part.reason for part in found]
    return Table(columns, title=f"Part of each annotator in the kappa of {labeler}")


def _rounded(value: Fraction | None) -> float:
    """Return a float; infinite if one item has so much weight that the value exceeds the range of floats."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorVotes:
    """T votes on eligible items, in order of annotators; K patterns, one per row of the data."""

    sample: Sample
    agreeing: _Index  # (K,) pairs of votes on an item that agree
    differential: _Index  # (K,) those on the suggested label less those on another
    who: Array  # (T,) the annotator
    row: Array  # (T,) the pattern of the item
    entry: Array  # (T,) the entry of the patterns that counts the vote

    @property
    def n_votes(self) -> _Index:
        """(T,) number of votes on the item."""
        return self.sample.patterns.vote_totals()[self.row]

    @property
    def mass(self) -> Array:
        """(T,) integer weight of all items of the pattern."""
        return self.sample.mass[self.row]

    @property
    def items(self) -> _Index:
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

    @property
    def alike(self) -> _Index:
        """(T,) number of other votes on the item for the same category."""
        alike: _Index = self.sample.patterns.votes[self.entry].astype(np.int64) - 1
        return alike

    def signed(self) -> _Index:
        """Return (T,) the differential of the pairs of votes that include this one."""
        return np.where(self.own == self.label, self.alike, -self.alike)

    def take(self, votes: Any) -> AnnotatorVotes:
        """Return some votes, by mask or slice."""
        return replace(self, who=self.who[votes], row=self.row[votes], entry=self.entry[votes])

    def blocks(self) -> Iterator[tuple[Array, AnnotatorVotes]]:
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


def annotator_votes(item_votes: ItemVotes, sample: Sample) -> AnnotatorVotes:
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
    return AnnotatorVotes(sample, *agreeing_pairs(patterns), who[order], row[order], entry[order])


class Cells(NamedTuple):
    """Distinct pairs of an annotator and a category, in order."""

    who: Array
    code: Array
    of: list[Array]  # for each column of pairs, the cell of each


def cells(columns: Sequence[tuple[Array, Array]]) -> Cells:
    """Return the cells of some columns of pairs (annotator, category)."""
    who, code = map(np.concatenate, zip(*columns, strict=True))
    first, group = group_rows([(int(values.max(initial=0)) + 1, values) for values in (who, code)])
    ends = np.cumsum([len(column) for column, _ in columns])[:-1]
    return Cells(who[first], code[first], np.split(group, ends))


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Labels on the items of annotators, scored by the votes of the others: T patterns, by annotator and in order.

    The letters are those of ``influence.Terms``. A cell is a category on the items of one annotator.
    """

    sample: Sample  # the votes of the others, with these labels
    who: Integers  # (T,) the annotator
    by_vote: Integers  # (entries,) cell of each entry of the patterns
    by_label: Integers  # (T,) cell of each label
    d: Floats  # (T,)
    C: Floats  # (cells,)
    L: Floats  # (cells,)
    D: Floats  # by annotator
    E: Floats
    C_E: Floats
    kappa: Floats  # NaN if undefined

    def influence(self) -> Floats:
        """Return (T,) the influence of an item of each pattern on the kappa of its annotator; NaN if E is 1."""
        patterns, who, C, E = self.sample.patterns, self.who, self.C, self.E[self.who]
        c = patterns.votes / np.repeat(patterns.vote_totals(), np.diff(patterns.start))
        slope = C * (2 * self.L - 1)
        pull = np.add.reduceat(slope[self.by_vote] * c, patterns.start[:-1])
        eps = 2 * (pull + C[self.by_label] ** 2 - E - self.C_E[who])
        phi: Floats = ((self.d - self.D[who]) - (1 - self.kappa[who]) * eps) / np.where(E == 1, math.nan, 1 - E)
        for annotator in np.flatnonzero((1 - self.E < _CLOSE) & (self.E != 1)).tolist():
            rows = np.arange(*np.searchsorted(who, [annotator, annotator + 1]))
            part = _rows(self.sample, rows)
            phi[rows] = influence(terms(part, dh_parts(sums(part, weighted=part.weighted), part.categories)))
        return phi


def _rows(sample: Sample, rows: npt.NDArray[np.int64]) -> Sample:
    """Return some rows of a sample, without strata."""
    patterns = sample.patterns.take(rows)
    mass = sample.mass[rows] if sample.weighted else patterns.items
    return replace(sample, patterns=patterns, mass=mass, stratum=np.zeros(rows.size, np.int8), strata=_ONE_STRATUM)


def _scored(votes: AnnotatorVotes, size: int) -> tuple[_Scored, _Scored]:
    """Return the votes of annotators as labels, and the suggested labels of the same items."""
    who, mass, alike, patterns = votes.who, votes.mass, votes.alike, votes.others()
    n_votes, length = votes.n_votes - 1, np.diff(patterns.start)
    unit = units(distinct(n_votes), int(votes.sample.mass.sum()))
    where = cells([(np.repeat(who, length), patterns.code), (who, votes.own), (who, votes.label)])
    by_vote, *by_label = where.of
    n, k = totals(mass, who, size).astype(unit.per_vote.dtype), where.code.size
    number = totals(np.repeat(mass * unit.per_vote[n_votes], length) * patterns.votes, by_vote, k)
    C = ratios(number, (n * unit.vote)[where.who])
    most = int(n.max())
    squares = number.astype(integer_type((most * unit.vote) ** 2 * most)) ** 2
    same = totals(squares, where.who, size).astype(object)
    agreeing, all_pairs = votes.agreeing[votes.row] - alike, n_votes * (n_votes - 1) // 2

    def scored(labels: Integers, place: Integers, differential: npt.NDArray[np.int64]) -> _Scored:
        given = totals(mass, place, k)
        pairs = totals(mass * unit.per_pair[n_votes] * differential, who, size)
        on = totals(squares * given, where.who, size)
        exact = KappaSums(unit, *(column.astype(object) for column in (n, pairs, same, on)))
        top, bottom = exact.kappa
        kappa = np.full(size, math.nan)
        kappa[bottom != 0] = ratios(top[bottom != 0], bottom[bottom != 0])
        own = replace(patterns, suggested=labels)
        part = replace(votes.sample, patterns=own, mass=mass if votes.sample.weighted else own.items)
        L, D, E, C_E = ratios(given, n[where.who]), ratios(*exact.D), ratios(*exact.E), ratios(*exact.C_E)
        return _Scored(part, who, by_vote, place, differential / all_pairs, C, L, D, E, C_E, kappa)

    on_own, on_label = by_label
    return (
        scored(votes.own.astype(votes.label.dtype), on_own, alike * (alike - 1) - agreeing),
        scored(votes.label, on_label, votes.differential[votes.row] - votes.signed()),
    )


class _Moves(NamedTuple):
    """T rows of items with their influence phi^M - phi^a on differences between a labeler and annotators."""

    group: Integers  # (T,) which difference
    phi: Floats  # (T,)
    weight: Floats  # (T,) of one item
    items: npt.NDArray[np.int64]  # (T,) number of items

    def sums(self, values: Floats, size: int) -> Floats:
        """Return (size,) the sums over items by difference."""
        return item_sums(values, self.items, self.group, size)


def compare_with_annotators(
    item_votes: ItemVotes,
    labeler: str,
    confidence_level: float = 0.95,
    pool: Pool = None,
    sample: Sample | None = None,
) -> AnnotatorComparison:
    """Compare a labeler with each annotator; see ``Audit.annotator_comparison``.

    For annotator a, on the items with a vote of a, a suggested label and at least two other votes, kappa_a is the
    kappa of a's votes as suggested labels and kappa_M|a that of the labeler, both with the votes of the others. The
    summary is ``Delta = sum_a (W_a / T) (kappa_M|a - kappa_a)`` with W_a the weight of a's items and T their sum, and
    ``SE^2 = n / (n - 1) sum_i (w_i sum_a (phi^M_ia - phi^a_ia) / T)^2`` over the n items used.
    """
    check_level(confidence_level)
    require_annotators(item_votes)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool) if sample is None else sample
    weight, names = weight_of_one(sample), item_votes.annotators or ()
    votes, A = annotator_votes(item_votes, sample), len(names)
    votes = votes.take(votes.n_votes > 2)
    items = totals(votes.items, votes.who, A)
    votes = votes.take(items[votes.who] >= MIN_ITEMS)
    reasons, reach, total, columns = np.full(A, _FEW, object), np.zeros(A), np.zeros(A), np.full((6, A), math.nan)
    moved, used = np.zeros(len(weight)), np.zeros(len(weight), np.bool_)
    for who, own in votes.blocks():
        annotator, label = _scored(own, who.size)
        weighs = totals((weight[own.row] > 0).astype(np.int64), own.who, who.size) > 0
        sound = (annotator.E != 1) & (label.E != 1) & weighs
        reasons[who], reasons[who[~sound]] = None, _ONE_WEIGHT  # not sound only after rounding
        certain = np.isnan(annotator.kappa + label.kappa)
        reasons[who[certain]] = _CERTAIN_HERE
        sound &= ~certain
        kept, who = sound[own.who], who[sound]
        row, phi = own.row[kept], (label.influence() - annotator.influence())[kept]
        moves = _Moves((np.cumsum(sound) - 1)[own.who[kept]], phi, weight[row], own.items[kept])
        np.add.at(moved, row, phi)  # in order of annotators
        used[row] = True
        reach[who] = 1 / (1 - label.E[sound]) + 1 / (1 - annotator.E[sound])
        total[who] = moves.sums(moves.weight, who.size)
        kappas = annotator.kappa[sound], label.kappa[sound]
        limits = _intervals(kappas[1] - kappas[0], total[who], (-reach[who], reach[who]), moves, confidence_level)
        columns[:, who] = *kappas, *limits
    skipped = [(name, reason) for name, reason in zip(names, reasons.tolist(), strict=True) if reason is not None]
    reasons[columns[3] == 0] = _NO_VARIANCE
    table = {"annotator": names, "items": items.tolist(), **dict(zip(_COLUMNS, columns.tolist(), strict=True))}
    title = f"{labeler} and each annotator, scored by the others, {written(confidence_level, 100)}% intervals"
    difference, n_items = columns[2][total > 0], int(sample.patterns.items[used].sum())
    means = dict.fromkeys(_COLUMNS[2:], math.nan)
    if n_items:
        moves = _Moves(np.zeros(used.sum(), np.int64), moved[used], weight[used], sample.patterns.items[used])
        means = _mean(difference, total[total > 0], reach[total > 0], moves, confidence_level)
    reason = (None if means["se"] else _NO_VARIANCE) if n_items else _NOBODY
    return AnnotatorComparison(
        labeler=labeler,
        table=Table({**table, "reason": reasons.tolist()}, title=title),
        **means,
        confidence_level=confidence_level,
        matched=int((difference >= 0).sum()) / difference.size if n_items else math.nan,
        n_items=n_items,
        skipped=tuple(name for name, _ in skipped),
        notes=tuple(_notes(skipped)),
        reason=reason,
    )


def _mean(difference: Floats, total: Floats, reach: Floats, moves: _Moves, confidence_level: float) -> dict[str, float]:
    """Return the mean difference over annotators with its interval; ``moves`` has each item once."""
    whole = exact_sum(total)
    mean, far = (exact_sum(total * values) / whole for values in (difference, reach))
    one = moves.sums(moves.weight, 1)[0] / whole  # share of one annotator in an item
    ends = np.array([-far]), np.array([one * far])
    found = _intervals(np.array([mean]), np.array([whole]), ends, moves, confidence_level)
    return {name: float(values[0]) for name, values in zip(_COLUMNS[2:], found, strict=True)}


def _intervals(
    difference: Floats, total: Floats, ends: tuple[Floats, Floats], moves: _Moves, confidence_level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return differences with standard error and limits, from the influence of items with these total weights."""
    size, group = difference.size, moves.group
    n, most = totals(moves.items, group, size), np.zeros(size)
    np.maximum.at(most, group, moves.weight)
    pull, each = (n / total)[group] * moves.weight * moves.phi, moves.weight / most[group]
    squares, cubes = moves.sums(pull * pull, size), moves.sums(pull * pull * pull, size)
    squares[squares <= ROUNDING**2 * n] = 0
    skew = [skewness(*pair) for pair in zip(cubes.tolist(), squares.tolist(), strict=True)]
    se, n_effective = np.sqrt(squares / (n * (n - 1))), moves.sums(each, size) ** 2 / moves.sums(each**2, size)
    gap = Gap(difference, se, np.array(skew, np.float64), n_effective, n - 1, *ends)
    return difference, se, *gap.limits(confidence_level)


def _notes(skipped: list[tuple[Any, str]]) -> Iterator[Note]:
    for reason in dict.fromkeys(why for _, why in skipped):
        who = [name for name, why in skipped if why == reason]
        code = "annotators-few-items" if reason == _FEW else "annotators-undefined"
        yield Note(code, f"{counted(len(who), 'annotator')} not compared ({shown(who)}). {reason}")
