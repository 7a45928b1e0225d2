"""Annotators: the part of each in kappa, kappa without their votes, and each compared with a labeler."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers
from dhkappa.core.grouping import Patterns, from_votes
from dhkappa.core.items import ItemVotes
from dhkappa.errors import counted, invalid, shown
from dhkappa.stats.influence import Terms, influence, item_weights, sum_of_squares, terms
from dhkappa.stats.intervals import Gap, skewness, written
from dhkappa.stats.kappa import Sums, dh_parts, sums
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Pool, Sample, Stratum, check_level, sample_of
from dhkappa.table import Display, Table, plain, visible

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


def require_annotators(item_votes: ItemVotes | None) -> None:
    """Require votes with annotator identities."""
    if item_votes is None or item_votes.annotators is None:
        hint = (
            "Pass votes as an n x N array, or a table in memory with $annotators or $annotator. Lists, counts, tallies "
            "and large tables in an engine do not keep who cast a vote."
        )
        raise invalid("annotators", "Annotators are unknown.", hint=hint, code="annotators-unknown")


@dataclass(frozen=True, slots=True, eq=False)
class OwnVotes:
    """The votes of one annotator on k eligible items."""

    rows: npt.NDArray[np.int64]  # (k,) the items, as rows of the sample
    items: Sample  # the items with all votes
    code: Integers  # (k,) the annotator's votes
    alike: npt.NDArray[np.int64]  # (k,) other votes for the same category
    kept: npt.NDArray[np.bool_]  # (k,) whether at least two others voted
    others: Sample  # the kept items with the votes of the others


def by_annotator(item_votes: ItemVotes, sample: Sample) -> Iterator[OwnVotes]:
    """Yield the votes of each annotator, in order; ``sample`` has one pattern per eligible item."""
    patterns, places = sample.patterns, sample.kept
    assert places is not None
    row_of = np.full(len(item_votes.columns), -1, np.int64)
    row_of[places] = np.arange(len(places))
    item, who, _ = item_votes.sorted_votes
    eligible = row_of[item] >= 0
    row, who = row_of[item[eligible]], who[eligible]
    entry = np.repeat(np.arange(patterns.code.size), patterns.votes)  # patterns list votes in the same order
    grouped = np.argsort(who, kind="stable")
    ends = np.searchsorted(who[grouped], np.arange(len(item_votes.annotators or ()) + 1))
    for first, end in pairwise(ends.tolist()):
        mine = grouped[first:end]
        yield _own_votes(sample, row[mine], entry[mine])


def _own_votes(sample: Sample, rows: npt.NDArray[np.int64], entry: npt.NDArray[np.int64]) -> OwnVotes:
    """Remove one vote, which is counted in ``entry``, from each of some items."""
    own = sample.patterns.take(rows)
    at = own.start[:-1] + entry - sample.patterns.start[rows]
    left = own.votes.astype(np.int64)
    left[at] -= 1
    n_left = own.vote_totals() - 1
    start = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(n_left, out=start[1:])
    no_category = np.zeros(len(sample.categories), np.bool_)
    others = from_votes(np.repeat(own.code, left), start, no_category, own.suggested, own.items)
    kept = n_left >= 2
    left_over = _part(sample, rows[kept], others.take(kept))
    return OwnVotes(rows, _part(sample, rows, own), own.code[at], left[at], kept, left_over)


def _part(sample: Sample, rows: npt.NDArray[np.int64], patterns: Patterns) -> Sample:
    """Return the sample of some rows with other patterns."""
    return replace(
        sample,
        patterns=patterns,
        mass=sample.mass[rows] if sample.weighted else patterns.items,
        stratum=np.zeros(len(rows), np.int8),
        strata=(Stratum(None, len(rows), None),),
    )


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


def annotator_parts(item_votes: ItemVotes, labeler: str, pool: Pool = None) -> list[AnnotatorParts]:
    """Return the part of each annotator: D = sum_a omega_a D_a and kappa = sum_a omega_a kappa_a."""
    require_annotators(item_votes)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool)
    total = sums(sample, weighted=sample.weighted)
    whole = dh_parts(total, sample.categories) if total.n else None
    E, kappa = (whole.E, whole.kappa) if whole else (Fraction(1), None)
    found = []
    for own in by_annotator(item_votes, sample):
        agree, weight, D = _own_part(own)
        old, new = (sums(part, weighted=sample.weighted) for part in (own.items, own.others))
        rest = _replaced(total, old, new)
        without = dh_parts(rest, sample.categories).kappa if rest.n else None
        reason = None
        if D is None:
            reason = _NO_ITEMS
        elif kappa is None:
            reason = _CERTAIN
        elif without is None:
            reason = _CERTAIN_WITHOUT if rest.n else _NO_PAIRS
        found.append(
            AnnotatorParts(
                items=len(own.rows),
                agree=agree,
                weight=weight / total.n if total.n else Fraction(0),
                differential=D,
                kappa=None if D is None or E == 1 else (D - E) / (1 - E),
                kappa_without=without,
                change=None if kappa is None or without is None else without - kappa,
                reason=reason,
            )
        )
    return found


def _own_part(own: OwnVotes) -> tuple[Fraction | None, Fraction, Fraction | None]:
    """Return the share of votes for the label, sum_i w_i / N_i, and D_a."""
    patterns, mass = own.items.patterns, own.items.mass
    n_votes = patterns.vote_totals()
    hit = own.code == patterns.suggested
    signed = np.where(hit, own.alike, -own.alike)
    weight = differential = Fraction(0)
    for size in np.unique(n_votes).tolist():  # d_ia = signed / (N_i - 1), with weight w_i / N_i
        same = n_votes == size
        weight += Fraction(int(mass[same].sum()), size)
        differential += Fraction(sum(map(mul, mass[same].tolist(), signed[same].tolist())), size * (size - 1))
    if not weight:
        return None, weight, None
    return Fraction(int(mass[hit].sum()), int(mass.sum())), weight, differential / weight


def _replaced(total: Sums, old: Sums, new: Sums) -> Sums:
    """Return the sums that kappa needs after some items, with the sums ``old``, changed to ``new``."""
    vote_unit = math.lcm(total.vote_unit, new.vote_unit)
    pair_unit = math.lcm(total.pair_unit, new.pair_unit)

    def combined(name: str, unit: str = "", whole: int = 1) -> Any:
        first, second, third = (
            np.array(getattr(part, name), object) * (whole // getattr(part, unit) if unit else 1)
            for part in (total, old, new)
        )
        found = first - second + third
        return found.tolist() if isinstance(found, np.ndarray) else found

    return replace(
        total,
        n=combined("n"),
        vote_unit=vote_unit,
        pair_unit=pair_unit,
        votes=combined("votes", "vote_unit", vote_unit),
        pairs=combined("pairs", "pair_unit", pair_unit),
        labels=combined("labels"),
        on_label=combined("on_label", "pair_unit", pair_unit),
    )


def annotator_table(item_votes: ItemVotes, labeler: str, pool: Pool = None) -> Table:
    """Return the part of each annotator in kappa and kappa without their votes; see ``Audit.annotators``."""
    found = annotator_parts(item_votes, labeler, pool)
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
            details.append(f"matches or beats {self.matched * compared:,.0f} of {counted(compared, 'annotator')}")
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


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """One annotator and the labeler on the same k items."""

    rows: npt.NDArray[np.int64]
    move: npt.NDArray[np.float64]  # (k,) phi^M - phi^a
    annotator: float
    labeler: float
    weight: float  # sum of the items' weights
    reach: float  # influence of an item on which only one of the two is right, 1 / (1 - E^M) + 1 / (1 - E^a)

    @property
    def difference(self) -> float:
        return self.labeler - self.annotator


def compare_with_annotators(
    item_votes: ItemVotes, labeler: str, confidence_level: float = 0.95, pool: Pool = None
) -> AnnotatorComparison:
    """Compare a labeler with each annotator; see ``Audit.annotator_comparison``.

    For annotator a, on the items with a vote of a, a suggested label and at least two other votes, kappa_a is the
    kappa of a's votes as suggested labels and kappa_M|a that of the labeler, both with the votes of the others. The
    summary is ``Delta = sum_a (W_a / T) (kappa_M|a - kappa_a)`` with W_a the weight of a's items and T their sum, and
    ``SE^2 = n / (n - 1) sum_i (w_i sum_a (phi^M_ia - phi^a_ia) / T)^2`` over the n items used.
    """
    check_level(confidence_level)
    require_annotators(item_votes)
    sample = sample_of(item_votes.labeled_patterns(labeler), pool=pool)
    weight, names = item_weights(sample), item_votes.annotators or ()
    rows: list[dict[str, Any]] = []
    compared, skipped = list[_Pair](), list[tuple[Any, str]]()
    for name, own in zip(names, by_annotator(item_votes, sample), strict=True):
        pair = _pair(own, weight)
        row = {"annotator": name, "items": int(own.kept.sum())}
        if isinstance(pair, str):
            skipped.append((name, pair))
            row |= {"kappa_annotator": math.nan, "kappa_labeler": math.nan, **_undefined(pair)}
        else:
            compared.append(pair)
            row |= {"kappa_annotator": pair.annotator, "kappa_labeler": pair.labeler}
            ends = (-pair.reach, pair.reach)
            row |= _interval(pair.difference, pair.move, weight[pair.rows], pair.weight, ends, confidence_level)
        rows.append(row)
    columns = ("annotator", "items", "kappa_annotator", "kappa_labeler", "difference", "se", "low", "high", "reason")
    title = f"{labeler} and each annotator, scored by the others, {written(confidence_level, 100)}% intervals"
    summary, n_items = _summary(compared, weight, confidence_level)
    return AnnotatorComparison(
        labeler=labeler,
        table=Table({column: [row[column] for row in rows] for column in columns}, title=title),
        **summary,
        confidence_level=confidence_level,
        matched=sum(pair.difference >= 0 for pair in compared) / len(compared) if compared else math.nan,
        n_items=n_items,
        skipped=tuple(name for name, _ in skipped),
        notes=tuple(_notes(skipped)),
    )


def _pair(own: OwnVotes, weight: npt.NDArray[np.float64]) -> _Pair | str:
    """Return an annotator and the labeler on the same items, or why they cannot be compared."""
    rows, others = own.rows[own.kept], own.others
    if len(rows) < MIN_ITEMS:
        return _FEW
    votes = own.code[own.kept].astype(others.patterns.suggested.dtype)
    labeler = _terms(others)
    annotator = _terms(replace(others, patterns=replace(others.patterns, suggested=votes)))
    if labeler is None or annotator is None:
        return _CERTAIN_HERE
    if labeler.E == 1 or annotator.E == 1 or not weight[rows].any():  # only after rounding
        return _ONE_WEIGHT
    move, reach = influence(labeler) - influence(annotator), 1 / (1 - labeler.E) + 1 / (1 - annotator.E)
    return _Pair(rows, move, annotator.kappa, labeler.kappa, math.fsum(weight[rows].tolist()), reach)


def _terms(sample: Sample) -> Terms | None:
    """Return the terms of a kappa, or None if it is undefined."""
    parts = dh_parts(sums(sample, weighted=sample.weighted), sample.categories)
    return None if parts.kappa is None else terms(sample, parts)


def _summary(
    pairs: list[_Pair], weight: npt.NDArray[np.float64], confidence_level: float
) -> tuple[dict[str, Any], int]:
    """Return the mean difference with its interval, and the number of items used."""
    if not pairs:
        return _undefined(_NOBODY), 0
    total = math.fsum(pair.weight for pair in pairs)
    difference = math.fsum(pair.weight * pair.difference for pair in pairs) / total
    reach = math.fsum(pair.weight * pair.reach for pair in pairs) / total
    move, used = np.zeros(len(weight)), np.zeros(len(weight), np.bool_)
    for pair in pairs:
        move[pair.rows] += pair.move
        used[pair.rows] = True
    one = math.fsum(weight[used].tolist()) / total  # share of one annotator in an item
    ends = (-reach, one * reach)
    return _interval(difference, move[used], weight[used], total, ends, confidence_level), int(used.sum())


def _undefined(reason: str) -> dict[str, Any]:
    return {**dict.fromkeys(("difference", "se", "low", "high"), math.nan), "reason": reason}


def _interval(
    difference: float,
    move: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    total: float,
    ends: tuple[float, float],
    confidence_level: float,
) -> dict[str, Any]:
    """Return a difference with its interval, from the influence of each of n items on it."""
    n = len(move)
    pull, ones = n / total * weight * move, np.ones(n, np.int64)
    squares = sum_of_squares(pull, ones)
    se = math.sqrt(squares / (n * (n - 1)))
    each = weight / weight.max()
    n_effective = float(each.sum() ** 2 / (each**2).sum())
    gap = Gap(difference, se, skewness(pull, ones) if squares else 0.0, n_effective, n - 1, *ends)
    low, high = map(float, gap.limits(confidence_level))
    reason = None if squares else _NO_VARIANCE
    return {"difference": difference, "se": se, "low": low, "high": high, "reason": reason}


def _notes(skipped: list[tuple[Any, str]]) -> Iterator[Note]:
    for reason in dict.fromkeys(why for _, why in skipped):
        who = [name for name, why in skipped if why == reason]
        code = "annotators-few-items" if reason == _FEW else "annotators-undefined"
        yield Note(code, f"{counted(len(who), 'annotator')} not compared ({shown(who)}). {reason}")
