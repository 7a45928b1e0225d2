"""Annotators: the part of each in kappa, kappa without their votes, and each compared with a labeler."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats, Integers
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted, shown
from dhkappa.stats.annotator_votes import AnnotatorVotes, annotator_votes, require_annotators
from dhkappa.stats.clusters import UNKNOWN
from dhkappa.stats.compare import AnnotatorComparison
from dhkappa.stats.influence import ROUNDING, influence, terms
from dhkappa.stats.intervals import NO_VARIANCE, KappaDifference, skewness, written
from dhkappa.stats.kappa import ONE_CATEGORY, KappaSums, Parts, Units, above_chance, distinct, sample_parts, units
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Pool, Sample, Stratum, check_level, sample_of, weight_of_one
from dhkappa.stats.summation import exact_sum, integer_type, item_sums, ratios, totals
from dhkappa.stats.weights import Weights
from dhkappa.table import Table

MIN_ITEMS = 10  # an annotator with fewer items is not compared

_NO_ITEMS = "The annotator has no vote on an eligible item."
_NO_PAIRS = "Without the annotator's votes, no labeled item has two votes."
_CERTAIN_WITHOUT = "Without the annotator's votes, every vote and every suggested label is the same category."
_FEW = f"Fewer than {MIN_ITEMS} items with two other votes and a suggested label."
_CERTAIN_HERE = "Every vote and every label on these items is the same category."
_ONE_WEIGHT = "One item has almost all the weight."
_NOBODY = "No annotator can be compared."
_NO_LIMITS = "Too few items for an interval: it would be wider than from random labels to full agreement."

_COLUMNS = ("kappa_annotator", "kappa_labeler", "difference", "se", "low", "high")
_WIDEST = 1.0  # interval of a difference
_CLOSE = 1e-5  # of 1 - E: below, influence is computed for one annotator at a time, by formulas that keep its digits

_ONE_STRATUM = (Stratum(None, 0, None),)


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
    item_votes: ItemVotes,
    labeler: str,
    pool: Pool = None,
    sample: Sample | None = None,
    weights: Weights | None = None,
) -> list[AnnotatorParts]:
    """Return the part of each annotator: D = sum_a omega_a D_a and kappa = sum_a omega_a kappa_a."""
    require_annotators(item_votes)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool) if sample is None else sample
    whole = sample_parts(sample, weights) if sample.n else None
    kappa = whole.kappa if whole else None
    no_change = None if kappa is None else Fraction(0)
    nothing = AnnotatorParts(0, None, Fraction(0), None, None, kappa, no_change, _NO_ITEMS)
    found = [nothing] * len(item_votes.annotators or ())
    if whole is None:
        return found
    votes, sizes = annotator_votes(item_votes, sample, weights), distinct(sample.patterns.vote_totals())
    unit = units({*sizes, *(size - 1 for size in sizes if size > 2)}, int(sample.mass.sum()) * votes.scale**2)
    for who, own in votes.blocks():
        for place, part in zip(who.tolist(), _parts(own, who.size, whole, unit), strict=True):
            found[place] = part
    return found


def _parts(votes: AnnotatorVotes, size: int, whole: Parts, unit: Units) -> Iterator[AnnotatorParts]:
    """Yield the parts of some annotators, who all have votes."""
    mass, n_votes, rest = votes.mass, votes.n_votes, _rest(votes, size, whole, unit)
    kappa = whole.kappa
    by_vote = (
        votes.items,
        mass,
        np.where(votes.own == votes.label, mass, 0),
        mass * unit.per_vote[n_votes],
        mass * unit.per_pair[n_votes] * votes.signed(),  # d_ia = signed / (N_i - 1), with weight w_i / N_i
    )
    columns = (*(totals(numbers, votes.who, size) for numbers in by_vote), rest.n, *rest.kappa)
    for items, each, hits, share, signed, n, top, bottom in zip(*(column.tolist() for column in columns), strict=True):
        D = Fraction(signed * unit.vote, 2 * unit.pair * share * votes.scale**2)
        without = Fraction(top, bottom) if bottom else None
        reason = None
        if kappa is None:
            reason = ONE_CATEGORY
        elif without is None:
            reason = _CERTAIN_WITHOUT if n else _NO_PAIRS
        yield AnnotatorParts(
            items=items,
            agree=Fraction(hits, each),
            weight=Fraction(share, unit.vote * whole.sums.n),
            differential=D,
            kappa=above_chance(D, whole.E),
            kappa_without=without,
            change=None if kappa is None or without is None else without - kappa,
            reason=reason,
        )


def _rest(votes: AnnotatorVotes, size: int, parts: Parts, unit: Units) -> KappaSums:
    """Return the sums of all items without the votes of each annotator."""
    who, mass, n_votes, differential = votes.who, votes.mass, votes.n_votes, votes.pairs.all[votes.row]
    total, scale = parts.sums, votes.scale
    patterns, at = votes.patterns()
    length, left = np.diff(patterns.start), patterns.votes.copy()
    left[at] -= 1
    # An item with one vote left is not eligible: the unit of one vote is 0.
    gone = np.where(n_votes > 2, 0, mass)
    new, old = mass * unit.per_vote[n_votes - 1], mass * unit.per_vote[n_votes]
    change = left * np.repeat(new, length) - patterns.votes * np.repeat(old, length)
    new, old = mass * unit.per_pair[n_votes - 1], mass * unit.per_pair[n_votes]
    pairs = new * (differential - votes.signed()) - old * differential
    where = votes.annotator_categories([(np.repeat(who, length), patterns.code), (who, votes.label)], size)
    by_vote, by_label = where.of
    k, integer = where.code.size, integer_type((total.n * unit.vote) ** 2 * total.n)
    whole = [number * (unit.vote // total.vote_unit) for number in total.votes]
    C, L = np.array(whole, integer)[where.code], np.array(total.labels, integer)[where.code]
    new_C, new_L = C + totals(change, by_vote, k).astype(integer), L - totals(gone, by_label, k).astype(integer)
    if votes.weights is None:
        same, on = new_C**2 - C**2, new_C**2 * new_L - C**2 * L
        same, on = (totals(values, where.who, size).astype(object) for values in (same, on))
        same = same + sum(C**2 for C in whole)
        on = on + sum(C**2 * L for C, L in zip(whole, total.labels, strict=True))
    else:
        same, on = votes.weights.chance(new_C.reshape(size, -1), new_L.reshape(size, -1))
    on_pairs = int(parts.D * total.n * unit.pair * scale**2)
    n, differential = (totals(values, who, size).astype(object) for values in (gone, pairs))
    return KappaSums(unit, total.n - n, on_pairs + differential, same.astype(object), on.astype(object), scale)


def annotator_table(
    item_votes: ItemVotes,
    labeler: str,
    pool: Pool = None,
    sample: Sample | None = None,
    weights: Weights | None = None,
) -> Table:
    """Return the part of each annotator in kappa and kappa without their votes; see ``Audit.annotators``."""
    found = annotator_parts(item_votes, labeler, pool, sample, weights)
    columns: dict[str, Any] = {"annotator": item_votes.annotators or (), "items": [part.items for part in found]}
    for name in ("agree", "weight", "differential", "kappa", "kappa_without", "change"):
        columns[name] = [_rounded(getattr(part, name)) for part in found]
    columns["reason"] = [part.reason for part in found]
    kappa = "kappa" if weights is None else "weighted kappa"
    return Table(columns, title=f"Part of each annotator in the {kappa} of {labeler}")


def _rounded(value: Fraction | None) -> float:
    """Return a float; infinite if one item has so much weight that the value exceeds the range of floats."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Labels on the items of annotators, scored by the votes of the others: T patterns, by annotator and in order.

    The letters are those of ``influence.Terms``. A cell is a category on the items of one annotator.
    """

    sample: Sample  # the votes of the others, with these labels
    weights: Weights | None
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
        patterns, who, E = self.sample.patterns, self.who, self.E[self.who]
        c = patterns.votes / np.repeat(patterns.vote_totals(), np.diff(patterns.start))
        slope, label = self._slopes()
        pull = np.add.reduceat(slope[self.by_vote] * c, patterns.start[:-1])
        eps = 2 * (pull + label[self.by_label] - E - self.C_E[who])
        phi: Floats = ((self.d - self.D[who]) - (1 - self.kappa[who]) * eps) / np.where(E == 1, math.nan, 1 - E)
        for annotator in np.flatnonzero((1 - self.E < _CLOSE) & (self.E != 1)).tolist():
            rows = np.arange(*np.searchsorted(who, [annotator, annotator + 1]))
            part = _rows(self.sample, rows)
            phi[rows] = influence(terms(part, sample_parts(part, self.weights), self.weights))
        return phi

    def _slopes(self) -> tuple[Floats, Floats]:
        """Return (cells,) half the slopes of E by votes and by labels; see ``influence.chance_slopes``."""
        C, L = self.C, self.L
        if self.weights is None:
            return C * (2 * L - 1), C**2
        w = self.weights.matrix()

        def near(values: Floats) -> Floats:
            """Multiply by w, adding up in the same order on every machine."""
            total = np.zeros_like(values)
            for column, row in zip(values.T, w, strict=True):
                total += np.outer(column, row)
            return total

        C, L = C.reshape(-1, len(w)), L.reshape(-1, len(w))
        wC, lean = near(C), 2 * near(L) - 1
        return ((wC * lean + near(C * lean)) / 2).ravel(), near(C * wC).ravel()


def _rows(sample: Sample, rows: npt.NDArray[np.int64]) -> Sample:
    """Return some rows of a sample, without strata."""
    patterns = sample.patterns.take(rows)
    mass = sample.mass[rows] if sample.weighted else patterns.items
    stratum = np.zeros(rows.size, np.int8)
    return replace(sample, patterns=patterns, mass=mass, stratum=stratum, strata=_ONE_STRATUM, rows=None)


def _scored(votes: AnnotatorVotes, size: int) -> tuple[_Scored, _Scored]:
    """Return the votes of annotators as labels, and the suggested labels of the same items."""
    who, mass, patterns, scale = votes.who, votes.mass, votes.others(), votes.scale
    n_votes, length = votes.n_votes - 1, np.diff(patterns.start)
    unit = units(distinct(n_votes), int(votes.sample.mass.sum()) * scale**2)
    where = votes.annotator_categories(
        [(np.repeat(who, length), patterns.code), (who, votes.own), (who, votes.label)], size
    )
    by_vote, *by_label = where.of
    n, k = totals(mass, who, size).astype(unit.per_vote.dtype), where.code.size
    number = totals(np.repeat(mass * unit.per_vote[n_votes], length) * patterns.votes, by_vote, k)
    C = ratios(number, (n * unit.vote)[where.who])
    most = int(n.max())
    squares = number.astype(integer_type((most * unit.vote) ** 2 * most)) ** 2
    all_pairs = n_votes * (n_votes - 1) // 2

    def scored(labels: Integers, place: Integers, differential: Array) -> _Scored:
        given = totals(mass, place, k)
        pairs = totals(mass * unit.per_pair[n_votes] * differential, who, size)
        if votes.weights is None:
            same, on = (totals(values, where.who, size) for values in (squares, squares * given))
        else:
            same, on = votes.weights.chance(number.reshape(size, -1), given.reshape(size, -1))
        columns = [column.astype(object) for column in (n, pairs, same, on)]
        exact = KappaSums(unit, columns[0], columns[1], columns[2], columns[3], scale)
        top, bottom = exact.kappa
        kappa = np.full(size, math.nan)
        kappa[bottom != 0] = ratios(top[bottom != 0], bottom[bottom != 0])
        own = replace(patterns, suggested=labels)
        part = replace(votes.sample, patterns=own, mass=mass if votes.sample.weighted else own.items, rows=None)
        L, D, E, C_E = ratios(given, n[where.who]), ratios(*exact.D), ratios(*exact.E), ratios(*exact.C_E)
        d = (differential / (all_pairs.astype(differential.dtype) * scale**2)).astype(np.float64)
        return _Scored(part, votes.weights, who, by_vote, place, d, C, L, D, E, C_E, kappa)

    on_own, on_label = by_label
    return (
        scored(votes.own.astype(votes.label.dtype), on_own, votes.pairs.on_own[votes.entry]),
        scored(votes.label, on_label, votes.pairs.all[votes.row] - votes.signed()),
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
    weights: Weights | None = None,
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
    votes, A = annotator_votes(item_votes, sample, weights), len(names)
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
    reasons[columns[3] == 0] = NO_VARIANCE
    wide = columns[5] - columns[4] > _WIDEST
    columns[4:, wide], reasons[wide] = math.nan, np.where(columns[3, wide] == 0, NO_VARIANCE, _NO_LIMITS)
    table = {"annotator": names, "items": items.tolist(), **dict(zip(_COLUMNS, columns.tolist(), strict=True))}
    title = f"{labeler} and each annotator, scored by the others, {written(confidence_level, 100)}% intervals"
    difference, n_items = columns[2][total > 0], int(sample.patterns.items[used].sum())
    means = dict.fromkeys(_COLUMNS[2:], math.nan)
    if n_items:
        moves = _Moves(np.zeros(used.sum(), np.int64), moved[used], weight[used], sample.patterns.items[used])
        means = _mean(difference, total[total > 0], reach[total > 0], moves, confidence_level)
    reason = (None if means["se"] else NO_VARIANCE) if n_items else _NOBODY
    if sample.clustered:  # scores remain
        columns[3:], reasons[reasons == None], reason = math.nan, UNKNOWN, reason or UNKNOWN  # noqa: E711
        table |= dict(zip(_COLUMNS, columns.tolist(), strict=True))
        means |= dict.fromkeys(("se", "low", "high"), math.nan)
    if means["high"] - means["low"] > _WIDEST:
        means |= {"low": math.nan, "high": math.nan}
        reason = reason or _NO_LIMITS
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
    gap = KappaDifference(difference, se, np.array(skew, np.float64), n_effective, n - 1, *ends)
    return difference, se, *gap.limits(confidence_level)


def _notes(skipped: list[tuple[Any, str]]) -> Iterator[Note]:
    for reason in dict.fromkeys(why for _, why in skipped):
        who = [name for name, why in skipped if why == reason]
        code = "annotators-few-items" if reason == _FEW else "annotators-undefined"
        yield Note(code, f"{counted(len(who), 'annotator')} not compared ({shown(who)}). {reason}")
