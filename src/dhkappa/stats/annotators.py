"""What each annotator does to kappa: their own part of it, and kappa without their votes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from operator import mul

import numpy as np
import numpy.typing as npt

from dhkappa.core.items import Ballots
from dhkappa.core.labels import Integers
from dhkappa.core.patterns import Patterns, from_votes
from dhkappa.errors import DataError
from dhkappa.stats.kappa import estimate_dh
from dhkappa.stats.sample import Pool, Sample, Stratum, item_sample
from dhkappa.stats.sums import Sums, sums
from dhkappa.table import Table

_NO_ITEMS = "no eligible item has a vote of theirs."
_NO_PAIRS = "without their votes, no labelled item has two."
_CERTAIN = "every vote and every suggested label is the same category."
_CERTAIN_WITHOUT = "without their votes, every vote and every suggested label is the same category."


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """One annotator's place in the panel.

    Attributes
    ----------
    rows : (k,) the eligible items that they voted on, as rows of the sample
    items : these items, with all votes
    code : (k,) what they voted
    alike : (k,) how many others voted the same
    kept : (k,) whether two others voted
    others : the items so kept, with the votes of the others only
    """

    rows: npt.NDArray[np.int64]
    items: Sample
    code: Integers
    alike: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]
    others: Sample


@dataclass(frozen=True, slots=True)
class AnnotatorParts:
    """The part of one annotator in kappa, exactly; None where undefined.

    Attributes
    ----------
    items : eligible items that they voted on
    agree : share of these, by weight, on which their vote is the suggested label
    weight : omega_a, their share in all votes where each item counts once: sum_i w_i / N_i over sum_i w_i
    D : D_a, the mean of d_ia by w_i / N_i; d_ia is the differential of their vote with each of the others'
    kappa : (D_a - E) / (1 - E)
    without : kappa of the data without their votes
    items_without : items that are eligible without their votes
    """

    items: int
    agree: Fraction | None
    weight: Fraction
    D: Fraction | None
    kappa: Fraction | None
    without: Fraction | None
    items_without: int


def refuse_unsigned(ballots: Ballots | None) -> None:
    """Refuse votes that do not tell who cast them."""
    if ballots is None or ballots.annotators is None:
        raise DataError(
            "nothing tells who cast which vote, as lists, counts, tallies and large tables in an engine do not: pass "
            "votes as an n x N array, or as a table in memory with a column for each annotator or with annotator=."
        )


def seats(ballots: Ballots, sample: Sample, places: npt.NDArray[np.int64]) -> Iterator[Seat]:
    """Yield the seat of each annotator, in their order; all together cost about as much as the votes.

    ``sample`` has a pattern for each eligible item, which is at ``places`` among all items.
    """
    patterns = sample.patterns
    row_of = np.full(ballots.n_items, -1, np.int64)
    row_of[places] = np.arange(len(places))
    order = np.lexsort((ballots.code, ballots.item))
    order = order[row_of[ballots.item[order]] >= 0]
    row, who = row_of[ballots.item[order]], ballots.annotator[order]
    entry = np.repeat(np.arange(patterns.code.size), patterns.votes)  # patterns list votes in the same order
    by_annotator = np.argsort(who, kind="stable")
    ends = np.searchsorted(who[by_annotator], np.arange(len(ballots.annotators or ()) + 1))
    for first, end in pairwise(ends.tolist()):
        mine = by_annotator[first:end]
        yield _seat(sample, row[mine], entry[mine])


def _seat(sample: Sample, rows: npt.NDArray[np.int64], entry: npt.NDArray[np.int64]) -> Seat:
    """Take one vote, that counts in ``entry``, from each of some items."""
    own = sample.patterns.take(rows)
    at = own.start[:-1] + entry - sample.patterns.start[rows]
    left = own.votes.astype(np.int64)
    left[at] -= 1
    n_left = own.vote_totals() - 1
    start = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(n_left, out=start[1:])
    nobody = np.zeros(len(sample.categories), np.bool_)
    others = from_votes(np.repeat(own.code, left), start, nobody, own.suggested, own.items)
    kept = n_left >= 2
    return Seat(
        rows=rows,
        items=_part(sample, rows, own),
        code=own.code[at],
        alike=left[at],
        kept=kept,
        others=_part(sample, rows[kept], others.take(kept)),
    )


def _part(sample: Sample, rows: npt.NDArray[np.int64], patterns: Patterns) -> Sample:
    """Return the sample of some of the items, with patterns that may differ."""
    return replace(
        sample,
        patterns=patterns,
        mass=sample.mass[rows] if sample.weighted else patterns.items,
        stratum=np.zeros(len(rows), np.int8),
        strata=(Stratum(None, len(rows), None),),
    )


def annotator_parts(ballots: Ballots, labeler: str, pool: Pool = None) -> tuple[Fraction | None, list[AnnotatorParts]]:
    """Split kappa by annotator, exactly: return kappa and the part of each.

    D = sum_a omega_a D_a, and so kappa = sum_a omega_a kappa_a over the annotators with eligible items, for any
    number of votes an item and any weights.
    """
    refuse_unsigned(ballots)
    sample, places = item_sample(ballots, labeler, pool)
    total = sums(sample, weighted=sample.weighted)
    E = estimate_dh(total, sample.categories).parts.E if total.n else Fraction(1)
    found = []
    for seat in seats(ballots, sample, places):
        agree, weight, D = _own(seat)
        without = _replaced(
            total, sums(seat.items, weighted=sample.weighted), sums(seat.others, weighted=sample.weighted)
        )
        found.append(
            AnnotatorParts(
                items=len(seat.rows),
                agree=agree,
                weight=weight / total.n if total.n else Fraction(0),
                D=D,
                kappa=None if D is None or E == 1 else (D - E) / (1 - E),
                without=_kappa(without, sample),
                items_without=len(places) - int((~seat.kept).sum()),
            )
        )
    return _kappa(total, sample), found


def _own(seat: Seat) -> tuple[Fraction | None, Fraction, Fraction | None]:
    """Return the share of their votes that are the label, the sum of w_i / N_i, and D_a."""
    patterns, mass = seat.items.patterns, seat.items.mass
    n_votes = patterns.vote_totals()
    hit = seat.code == patterns.suggested
    signed = np.where(hit, seat.alike, -seat.alike)
    weight = differential = Fraction(0)
    for size in np.unique(n_votes).tolist():  # d_ia is signed / (N_i - 1), and counts w_i / N_i
        same = n_votes == size
        weight += Fraction(int(mass[same].sum()), size)
        differential += Fraction(sum(map(mul, mass[same].tolist(), signed[same].tolist())), size * (size - 1))
    if not weight:
        return None, weight, None
    return Fraction(int(mass[hit].sum()), int(mass.sum())), weight, differential / weight


def _replaced(total: Sums, old: Sums, new: Sums) -> Sums:
    """Return the sums of all items after some of them, with the sums ``old``, changed to ``new``."""
    vote_unit = math.lcm(total.vote_unit, new.vote_unit)
    pair_unit = math.lcm(total.pair_unit, new.pair_unit)
    signed = ((1, total), (-1, old), (1, new))
    once = [sign for sign, _ in signed]
    per_vote = [sign * (vote_unit // part.vote_unit) for sign, part in signed]
    per_pair = [sign * (pair_unit // part.pair_unit) for sign, part in signed]

    def number(name: str, factors: list[int]) -> int:
        return sum(map(mul, factors, (getattr(part, name) for _, part in signed)))

    def numbers(name: str, factors: list[int]) -> list[int]:
        columns = zip(*(getattr(part, name) for _, part in signed), strict=True)
        return [sum(map(mul, factors, column)) for column in columns]

    return Sums(
        n=number("n", once),
        n_votes=number("n_votes", once),
        dropped=total.dropped,
        vote_unit=vote_unit,
        pair_unit=pair_unit,
        votes=numbers("votes", per_vote),
        pairs=numbers("pairs", per_pair),
        labels=numbers("labels", once),
        plurality=numbers("plurality", once),
        on_label=number("on_label", per_pair),
        on_plurality=number("on_plurality", per_pair),
        perfect=number("perfect", once),
        spreads=(),
    )


def _kappa(total: Sums, sample: Sample) -> Fraction | None:
    return estimate_dh(total, sample.categories).parts.kappa if total.n else None


def annotators(ballots: Ballots, labeler: str, pool: Pool = None) -> Table:
    """Return what each annotator does to the kappa of a labeler.

    An annotator's differential D_a is the mean over the pairs of votes that they are in: +1 where the two agree on
    the suggested label, -1 where they agree on another. With ``kappa_a = (D_a - E) / (1 - E)``, kappa is the mean of
    the kappa_a by ``weight``. A low kappa_a says that others seldom confirm the label together with this person, who
    may be wrong, or right where labels are not. Without their votes kappa is computed anew, on the items that still
    have two.

    Parameters
    ----------
    ballots
        Votes that tell who cast them.
    labeler
        Whose suggested labels to take.

    Returns
    -------
    Table
        A row for each annotator, in their order: ``annotator``, ``items`` (eligible ones that they voted on),
        ``agree`` (share of these on which they voted the suggested label), ``weight``, ``differential`` (D_a),
        ``kappa`` (kappa_a), ``kappa_without`` (kappa without their votes), ``change`` (from kappa to that), and
        ``reason``, which says why there are NaN.

    Examples
    --------
    >>> from dhkappa.core.items import read_ballots
    >>> votes = np.array([list(item) for item in ("aaa", "aab", "bbb", "bba", "ccc", "bbc")])
    >>> table = annotators(read_ballots(votes, {"rule": list("aabbcc")}), "rule")
    >>> [(row["annotator"], round(row["kappa"], 3), round(row["kappa_without"], 3)) for row in table]
    [(0, 0.628, 0.552), (1, 0.628, 0.552), (2, 0.553, 0.705)]
    """
    kappa, found = annotator_parts(ballots, labeler, pool)
    return Table(
        {
            "annotator": ballots.annotators or (),
            "items": [part.items for part in found],
            "agree": [_rounded(part.agree) for part in found],
            "weight": [float(part.weight) for part in found],
            "differential": [_rounded(part.D) for part in found],
            "kappa": [_rounded(part.kappa) for part in found],
            "kappa_without": [_rounded(part.without) for part in found],
            "change": [
                math.nan if kappa is None or part.without is None else float(part.without - kappa) for part in found
            ],
            "reason": [_reason(kappa, part) for part in found],
        },
        title=f"What each annotator does to the kappa of {labeler}",
    )


def _reason(kappa: Fraction | None, part: AnnotatorParts) -> str | None:
    if part.D is None:
        return _NO_ITEMS
    if kappa is None:
        return _CERTAIN
    if part.without is None:
        return _CERTAIN_WITHOUT if part.items_without else _NO_PAIRS
    return None


def _rounded(value: Fraction | None) -> float:
    """Return a float; infinite where one item outweighs all the others by more than a float can say."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
