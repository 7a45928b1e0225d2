"""People as labelers: whether a labeler is as good as one more person, both judged by the same panel."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.items import Ballots
from dhkappa.errors import counted, shown
from dhkappa.stats.annotators import Seat, refuse_unsigned, seats
from dhkappa.stats.influence import influence, standard_error, sum_of_squares
from dhkappa.stats.intervals import Gap, check_level, skewness, written
from dhkappa.stats.kappa import estimate_dh
from dhkappa.stats.notes import Note, html_list
from dhkappa.stats.sample import Pool, Sample, item_sample
from dhkappa.stats.sums import sums
from dhkappa.stats.terms import Terms, item_weights, terms
from dhkappa.table import Table, plain, visible

FEWEST_ITEMS = 10

_FEW = f"fewer than {FEWEST_ITEMS} items with two other votes and a suggested label."
_CERTAIN = "every vote and every label on these items is the same category."
_NO_SPREAD = "no item moves the difference, so its spread is unknown."
_ONE_WEIGHT = "one item outweighs all the others."
_NOBODY = "nobody can be compared."


@dataclass(frozen=True, slots=True)
class _Row:
    """A difference between kappas with its interval; NaN where there is none, and ``reason`` says why."""

    difference: float = math.nan
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """A labeler beside each person, taken as a labeler and judged by all others.

    Attributes
    ----------
    labeler : what the labeler is called
    table : a row for each annotator: kappas of both on the same items, their difference and its interval
    difference : the labeler's kappa less a person's, the mean over people by their items
    se : its standard error, for items drawn at random and these people
    low, high, level : its interval
    matched : share of people whom the labeler matches or beats
    n_items : items that at least one person was compared on
    skipped : annotators who were not compared
    notes : what to know, each with a code and a sentence
    reason : why there are NaN; None where there are none
    """

    labeler: str
    table: Table
    difference: float
    se: float
    low: float
    high: float
    level: float
    matched: float
    n_items: int
    skipped: tuple[Any, ...]
    notes: tuple[Note, ...]
    reason: str | None = None

    def __repr__(self) -> str:
        said = [counted(self.n_items, "item")]
        if not math.isnan(self.matched):
            compared = len(self.table) - len(self.skipped)
            said.append(f"matches or beats {round(self.matched * compared):,} of {counted(compared, 'annotator')}")
        if self.skipped:
            said.append(f"{len(self.skipped):,} skipped")
        if self.reason:
            said.append(self.reason.rstrip("."))
        return f"{visible(self.labeler)} against people: {self._interval()} ({'; '.join(said)})"

    def _interval(self) -> str:
        if math.isnan(self.low):
            return "undefined" if math.isnan(self.difference) else f"{self.difference:+.4f}"
        return f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}] at {written(self.level)}"

    def _repr_html_(self) -> str:
        notes = html_list(note.text for note in self.notes)
        return f"<p>{html.escape(repr(self))}</p>{self.table._repr_html_()}{notes}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; NaN is None."""
        names = ("difference", "se", "low", "high", "level", "matched", "n_items")
        return {
            "labeler": self.labeler,
            **{name: plain(getattr(self, name)) for name in names},
            "people": self.table.to_json(),
            "skipped": [plain(name) for name in self.skipped],
            "notes": [note.to_dict() for note in self.notes],
            "reason": self.reason,
        }


def people(ballots: Ballots, labeler: str, level: float = 0.95, pool: Pool = None) -> People:
    """Compare a labeler with each person, both judged by the votes of all others on the same items.

    For annotator a, on the items that a voted on, that have a suggested label and two votes of *others* at least:
    kappa_a is the kappa of a's votes as suggested labels, kappa_M|a that of the labeler, and the others are the panel
    of both. The summary is ``Delta = sum_a (W_a / T) (kappa_M|a - kappa_a)`` with W_a the weight of a's items and
    T their sum; where items weigh the same, W_a is their number.

    With w_i the weight of an item and phi the influence values of the two kappas, the standard error is
    ``SE^2 = n / (n - 1) sum_i (w_i sum_a (phi^M_ia - phi^a_ia) / T)^2`` over the n items that anybody was compared on;
    one person alone has T = W_a. That is the standard error of items drawn at random, with the people and how much
    each of them counts as they are. It treats all people on an item together, as they share its votes.

    Parameters
    ----------
    ballots
        Votes that tell who cast them.
    labeler
        Whose suggested labels to take.
    level
        Of the intervals: ``Gap.limits``.

    Returns
    -------
    People
        The summary, and ``table`` with a row for each annotator, in their order: ``annotator``, ``items``,
        ``kappa_person`` (kappa_a), ``kappa_labeler`` (kappa_M|a), ``difference``, ``se``, ``low``, ``high``, and
        ``reason``, which says why there are NaN. Who has fewer than 10 such items, or an undefined kappa, is skipped.

    Examples
    --------
    >>> from dhkappa import simulate
    >>> from dhkappa.core.items import read_ballots
    >>> drawn = simulate(300, annotators=4, accuracy=0.8, labelers={"llm": 0.9}, rng=1)
    >>> people(read_ballots(drawn.votes, drawn.suggested), "llm")
    llm against people: +0.0893 [+0.0174, +0.1540] at 0.95 (300 items; matches or beats 4 of 4 annotators)
    """
    check_level(level)
    refuse_unsigned(ballots)
    sample, places = item_sample(ballots, labeler, pool)
    weight = item_weights(sample)
    pairs = [_pair(seat, weight) for seat in seats(ballots, sample, places)]
    gaps = [_own_gap(pair, weight, level) for pair in pairs]
    names = ballots.annotators or ()
    compared = [pair for pair in pairs if pair.reason is None]
    summary, n_items = _summary(compared, weight, level)
    table = Table(
        {
            "annotator": names,
            "items": [len(pair.rows) for pair in pairs],
            "kappa_person": [pair.person for pair in pairs],
            "kappa_labeler": [pair.labeler for pair in pairs],
            "difference": [gap.difference for gap in gaps],
            "se": [gap.se for gap in gaps],
            "low": [gap.low for gap in gaps],
            "high": [gap.high for gap in gaps],
            "reason": [gap.reason for gap in gaps],
        },
        title=f"{labeler} and each annotator as a labeler, judged by the others, {written(level)} intervals",
    )
    return People(
        labeler=labeler,
        table=table,
        difference=summary.difference,
        se=summary.se,
        low=summary.low,
        high=summary.high,
        level=level,
        matched=sum(pair.difference >= 0 for pair in compared) / len(compared) if compared else math.nan,
        n_items=n_items,
        skipped=tuple(name for name, pair in zip(names, pairs, strict=True) if pair.reason),
        notes=tuple(_notes(names, pairs)),
        reason=summary.reason,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """One person and the labeler, judged by the others on k items.

    ``rows`` are the items, ``move`` is (k,) phi^M - phi^a, ``whole`` the weight of the items, and ``reach`` how far an
    item moves the difference that only one of the two gets wrong: 1 / (1 - E^M) + 1 / (1 - E^a).
    """

    rows: npt.NDArray[np.int64]
    move: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    person: float = math.nan
    labeler: float = math.nan
    difference: float = math.nan
    whole: float = 0.0
    reach: float = math.nan
    reason: str | None = None


def _pair(seat: Seat, weight: npt.NDArray[np.float64]) -> _Pair:
    rows, panel = seat.rows[seat.kept], seat.others
    if len(rows) < FEWEST_ITEMS:
        return _Pair(rows, reason=_FEW)
    votes = seat.code[seat.kept].astype(panel.patterns.suggested.dtype)
    labels = _judged(panel)
    own = _judged(replace(panel, patterns=replace(panel.patterns, suggested=votes)))
    if labels is None or own is None:
        return _Pair(rows, reason=_CERTAIN)
    if labels.E == 1 or own.E == 1 or not weight[rows].any():  # only by rounding
        return _Pair(rows, reason=_ONE_WEIGHT)
    return _Pair(
        rows=rows,
        move=influence(labels) - influence(own),
        person=own.kappa,
        labeler=labels.kappa,
        difference=labels.kappa - own.kappa,
        whole=math.fsum(weight[rows].tolist()),
        reach=1 / (1 - labels.E) + 1 / (1 - own.E),
    )


def _judged(sample: Sample) -> Terms | None:
    """Return the terms of a kappa, or None where it is undefined."""
    parts = estimate_dh(sums(sample, weighted=sample.weighted), sample.categories).parts
    return None if parts.kappa is None else terms(sample, parts)


def _summary(pairs: list[_Pair], weight: npt.NDArray[np.float64], level: float) -> tuple[_Row, int]:
    """Return the mean difference from the people compared, and how many items they have together."""
    if not pairs:
        return _Row(reason=_NOBODY), 0
    whole = math.fsum(pair.whole for pair in pairs)
    difference = math.fsum(pair.whole * pair.difference for pair in pairs) / whole
    reach = math.fsum(pair.whole * pair.reach for pair in pairs) / whole
    move, used = np.zeros(len(weight)), np.zeros(len(weight), np.bool_)
    for pair in pairs:
        move[pair.rows] += pair.move
        used[pair.rows] = True
    one = math.fsum(weight[used].tolist()) / whole  # a person's part in an item
    return _gap(difference, move[used], weight[used], whole, (-reach, one * reach), level), int(used.sum())


def _own_gap(pair: _Pair, weight: npt.NDArray[np.float64], level: float) -> _Row:
    """Return one person's difference from the labeler."""
    if pair.reason:
        return _Row(reason=pair.reason)
    return _gap(pair.difference, pair.move, weight[pair.rows], pair.whole, (-pair.reach, pair.reach), level)


def _gap(
    difference: float,
    move: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    whole: float,
    ends: tuple[float, float],
    level: float,
) -> _Row:
    """Return a difference with its interval, from how far each of n items moves it."""
    n = len(move)
    pull, ones = n / whole * weight * move, np.ones(n, np.int64)
    squares = sum_of_squares(pull, ones)
    se = standard_error(squares, n)
    each = weight / weight.max()
    alike = float(each.sum() ** 2 / (each**2).sum())  # as many items of equal weight are as good (Kish)
    low, high = Gap(difference, se, skewness(pull, ones) if squares else 0.0, alike, n - 1, *ends).limits(level)
    return _Row(difference, se, float(low), float(high), None if squares else _NO_SPREAD)


def _notes(names: Iterable[Any], pairs: list[_Pair]) -> Iterator[Note]:
    skipped: dict[str, list[Any]] = {}
    for name, pair in zip(names, pairs, strict=True):
        if pair.reason:
            skipped.setdefault(pair.reason, []).append(name)
    for reason, who in skipped.items():
        code = "people-few-items" if reason == _FEW else "people-undefined"
        yield Note(code, f"{counted(len(who), 'annotator')} not compared ({shown(who)}): {reason}")
