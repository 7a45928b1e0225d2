"""Several labelers on the same items: their kappas, paired differences, and whether they are more than chance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.cells import Cells
from dhkappa.core.labels import Integers
from dhkappa.errors import DataError, counted, shown
from dhkappa.stats.estimators import dh_kappa_of
from dhkappa.stats.influence import influence, sum_of_squares
from dhkappa.stats.intervals import Gap, check_level, skewness, written
from dhkappa.stats.kappa import Parts
from dhkappa.stats.notes import Note, html_list, text_list
from dhkappa.stats.result import Kappa
from dhkappa.stats.rng import generator
from dhkappa.stats.sample import Dropped, Pool, Sample, drawn
from dhkappa.stats.terms import Numbers, Terms, terms
from dhkappa.stats.variance import Variance, leave_one_vote, unseen_parts, variance, vote_variance
from dhkappa.table import Table

FEW_DISCORDANT = 10
_MOST_AT_ONCE = 1 << 16  # kinds of items that labelers are counted by together
_SWAPS = 9_999
_AT_ONCE = 1 << 21  # numbers drawn at once
_MOST_TOSSED = 12  # items that are swapped in all ways
_TIE = 1e-12  # differences closer than this are the same but for rounding
_ONE_ITEM = "only one item counts, so its spread is unknown."
_ONE_WEIGHT = "one item outweighs all the others, so its spread is unknown."


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Labelers compared on the items that all of them labeled.

    Attributes
    ----------
    kappas : the kappa of each labeler, by name
    differences : a row for each pair of labelers; see ``dhkappa.compare``
    notes : what to know about the comparison
    level : of the intervals
    """

    kappas: dict[str, Kappa]
    differences: Table
    notes: tuple[Note, ...]
    level: float

    @property
    def best(self) -> str | None:
        """The labeler with the highest kappa, the first of several; None where no kappa is defined."""
        ranked = [(kappa.value, name) for name, kappa in self.kappas.items() if not math.isnan(kappa.value)]
        return max(ranked, key=lambda pair: pair[0])[1] if ranked else None

    def table(self) -> Table:
        """Return a row for each labeler, the best first."""
        return labelers_table(self.kappas, self.level)

    def __repr__(self) -> str:
        notes = text_list(note.text for note in self.notes)
        return f"{self.table()!r}\n\n{self.differences!r}" + (f"\n{notes}" if notes else "")

    def _repr_html_(self) -> str:
        notes = html_list(note.text for note in self.notes)
        return self.table()._repr_html_() + self.differences._repr_html_() + notes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; NaN is None."""
        return {
            "kappas": {name: kappa.to_dict(self.level) for name, kappa in self.kappas.items()},
            "differences": self.differences.to_json(),
            "level": self.level,
            "notes": [note.to_dict() for note in self.notes],
        }


def labelers_table(kappas: Mapping[str, Kappa], level: float) -> Table:
    """Return a row for each labeler, the best first, with the marks to read its kappa by."""
    order = sorted(kappas, key=lambda name: (math.isnan(kappas[name].value), -kappas[name].value))
    ordered = [kappas[name] for name in order]
    limits = [kappa.interval(level) for kappa in ordered]
    return Table(
        {
            "labeler": order,
            "kappa": [kappa.value for kappa in ordered],
            "low": [limit.low for limit in limits],
            "high": [limit.high for limit in limits],
            "se": [kappa.se for kappa in ordered],
            "floor": [kappa.floor for kappa in ordered],
            "ceiling": [kappa.ceiling for kappa in ordered],
            "items": [kappa.n_items for kappa in ordered],
        },
        title=f"Kappa by labeler, {written(level)} intervals",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Labeler:
    """A labeler's kappa, and the influence of an item by its votes and label: ascending keys, and phi of each."""

    kappa: Kappa
    key: npt.NDArray[np.int64]
    phi: Numbers


@dataclass(frozen=True, slots=True)
class _Difference:
    """Two labelers: how far apart, how surely, and how that was found."""

    labeler: str
    other: str
    difference: float = math.nan
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    method: str | None = None
    discordant: int = 0
    reason: str | None = None
    gap: Gap | None = None


def compare_of(
    cells: Cells,
    *,
    level: float = 0.95,
    pool: Pool = None,
    panel: str = "fixed",
    rng: int | np.random.Generator | None = None,
) -> Comparison:
    """Compare the labelers of some cells, given as to ``compare``."""
    level = check_level(level)
    if len(cells.labels) < 2:
        named = shown(cells.labels) if any(cells.labels) else "one without a name"
        raise DataError(f"suggested must name two labelers at least, to compare them: got {named}.")
    source = generator(rng)
    cells, dropped = _eligible(cells)
    names = list(cells.labels)
    design: dict[str, Any] = {"dropped": dropped, "pool": pool, "panel": panel}
    found: dict[str, _Labeler] = {}
    joint: dict[tuple[str, ...], tuple[int, Integers]] = {}
    pairs: dict[tuple[str, str], _Difference] = {}
    for parts in _groups(cells, names):
        some = [name for part in parts for name in part]
        for part in parts:
            joint.setdefault(part, cells.joint(part))
        seen = cells.distinct(some, [joint[part] for part in parts])
        for name in some:
            if name not in found:
                found[name] = _labeler(seen, name, **design)
        for one, other in combinations(some, 2):
            if (one, other) not in pairs:
                both = seen.distinct([one, other])
                pairs[one, other] = _difference(both, one, other, found, design, source)
    ordered = _with_limits([pairs[pair] for pair in combinations(names, 2)], level)
    kappas = {name: found[name].kappa for name in names}
    remarks = [Note("source", remark) for remark in cells.remarks]
    return Comparison(kappas, _table(ordered, level), (*remarks, *_notes(kappas, ordered, dropped)), level)


def _eligible(cells: Cells) -> tuple[Cells, Dropped]:
    """Return the cells with two votes or more, every label and a weight, and how many items are left out."""
    m, n_votes = len(cells.categories), cells.votes.vote_totals()
    missing = [codes for codes in cells.labels.values() if codes.max(initial=0) == m]
    if not missing and n_votes.min(initial=2) > 1 and (cells.weight is None or cells.weight.all()):
        return replace(cells, labeled=True), Dropped()
    total = n_votes[cells.vote]
    few, bare = total < 2, np.zeros(total.size, np.bool_)
    for codes in missing:
        bare |= codes == m
    light = np.zeros_like(bare) if cells.weight is None else cells.weight == 0
    lost = (total == 0, total == 1, ~few & bare, ~few & ~bare & light)
    kept = replace(cells.take(~(few | bare | light)), labeled=True)
    return kept, Dropped(*(int(cells.items[rows].sum()) for rows in lost))


def _groups(cells: Cells, names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield two groups of labelers to count together, so that every two labelers meet and few passes are made."""
    m = len(cells.categories)
    size = 1
    while len(cells.votes) * m ** (2 * (size + 1)) <= _MOST_AT_ONCE and 2 * size < len(names):
        size += 1
    parts = [tuple(names[first : first + size]) for first in range(0, len(names), size)]
    yield from combinations(parts, 2)


def _sample(cells: Cells, name: str, dropped: Dropped, pool: Any, panel: str) -> Sample:
    """Return a labeler's sample; the cells are different to this labeler."""
    label = cells.labels[name].astype(np.int32)
    patterns = replace(cells.votes.take(cells.vote), suggested=label, items=cells.items)
    return drawn(cells.categories, patterns, dropped, cells.stratum, cells.strata, cells.weight, pool, panel)


def _labeler(cells: Cells, name: str, dropped: Dropped, pool: Any, panel: str) -> _Labeler:
    own = cells.distinct([name])
    sample = _sample(own, name, dropped, pool, panel)
    kappa = dh_kappa_of(sample)
    if kappa.parts is None or kappa.exact is None:
        return _Labeler(kappa, np.zeros(0, np.int64), np.zeros(0))
    return _Labeler(kappa, _keys(own, name), influence(terms(sample, kappa.parts)))


def _difference(
    cells: Cells,
    one: str,
    other: str,
    found: Mapping[str, _Labeler],
    design: Mapping[str, Any],
    source: np.random.Generator,
) -> _Difference:
    """Compare two labelers on cells that are different to them."""
    first, second = found[one].kappa, found[other].kappa
    discordant = int(cells.items[cells.labels[one] != cells.labels[other]].sum())
    if first.parts is None or second.parts is None or first.exact is None or second.exact is None:
        return _Difference(one, other, discordant=discordant, reason=first.reason or second.reason)
    difference = float(first.exact - second.exact)
    move = _influence(cells, one, found) - _influence(cells, other, found)
    n, strata = first.n_items, first._sample.strata
    room = [1 - float(parts.E) for parts in (first.parts, second.parts)]
    if n < 2 or not all(room):  # as of each kappa: E is 1 only by rounding
        reason = _ONE_ITEM if n < 2 else _ONE_WEIGHT
        return _Difference(one, other, difference, discordant=discordant, reason=reason)

    def seen(name: str, parts: Parts) -> Terms:
        return terms(_sample(cells, name, **design), parts)

    if first._sample.designed:
        known, over_votes = seen(one, first.parts), None
        if known.sample.other_votes:
            psi = leave_one_vote(known) - leave_one_vote(seen(other, second.parts))
            over_votes = vote_variance(known, psi)
        spread = variance(known, move, over_votes)
        skew = skewness(known.weight / known.items * move, cells.items)
    else:
        squares = sum_of_squares(move, cells.items)
        spread = Variance(squares / (n * (n - 1)), squares)
        skew = skewness(move, cells.items, squares)
    se = math.sqrt(spread.value)
    reach = sum(1 / each for each in room) * float(unseen_parts(strata).max())
    df = max(n - len(strata), 1)
    gap = Gap(difference, se, skew if spread.endless else 0.0, first.n_effective, df, -reach, reach)
    row = _Difference(one, other, difference, se, discordant=discordant, gap=gap)
    if discordant < FEW_DISCORDANT or not spread.endless:
        p = _swap_test(seen(one, first.parts), seen(other, second.parts), source)
        return replace(row, p=p, method="swap")
    return replace(row, method="t")


def _with_limits(rows: list[_Difference], level: float) -> list[_Difference]:
    """Return differences with limits and p, all at once."""
    known = [row.gap for row in rows if row.gap]
    if not known:
        return rows
    gap = Gap(*(np.array([getattr(one, part.name) for one in known], np.float64) for part in fields(Gap)))
    limits = iter(zip(*(ends.tolist() for ends in (*gap.limits(level), gap.p_value())), strict=True))
    found = []
    for row in rows:
        if row.gap is None:
            found.append(row)
            continue
        low, high, p = next(limits)
        if row.method == "swap":
            p = row.p
        elif not row.se:  # the whole pool was drawn
            p = float(row.difference == 0)
        found.append(replace(row, low=low, high=high, p=p))
    return found


def _influence(cells: Cells, name: str, found: Mapping[str, _Labeler]) -> Numbers:
    """Return (K,) the influence of each cell on a labeler's kappa."""
    known = found[name]
    move: Numbers = known.phi[np.searchsorted(known.key, _keys(cells, name))]
    return move


def _keys(cells: Cells, name: str) -> npt.NDArray[np.int64]:
    """Return (K,) an integer for the votes and the label of each cell."""
    return cells.vote.astype(np.int64) * len(cells.categories) + cells.labels[name]


def _swap_test(one: Terms, other: Terms, source: np.random.Generator) -> float:
    """Return how often the difference is as large where labels change hands by the toss of a coin, item by item.

    Votes stay, so C stays: a swap moves D and E of both labelers by the same amounts, in opposite directions. Few
    items on which labels differ are swapped in all ways, many in ways drawn at random.
    """
    rows = np.flatnonzero(one.suggested != other.suggested)
    share = one.weight[rows] / one.items[rows] / one.n
    move_D = (other.d - one.d)[rows] * share
    squared = one.C**2
    move_E = 2 * (squared[other.suggested] - squared[one.suggested])[rows] * share
    moves = np.column_stack([move_D, move_E])
    items = one.items[rows]
    exact = int(items.sum()) <= _MOST_TOSSED
    if exact:
        each = np.repeat(np.arange(rows.size), items)
        tossed = np.array(list(product((0, 1), repeat=each.size)), np.float64).reshape(2**each.size, each.size)
        sums = tuple((tossed @ moves[each]).T)
    else:
        step = max(1, _AT_ONCE // rows.size)
        parts = [
            source.binomial(items, 0.5, (min(step, _SWAPS - at), rows.size)) @ moves for at in range(0, _SWAPS, step)
        ]
        sums = tuple(np.concatenate(parts).T)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas = [1 - (1 - of.D - sign * sums[0]) / (1 - of.E - sign * sums[1]) for of, sign in ((one, 1), (other, -1))]
    # Where a swap leaves one category only there is no kappa; it counts as a large difference.
    as_far = int((~(np.abs(kappas[0] - kappas[1]) < abs(one.kappa - other.kappa) - _TIE)).sum())
    return as_far / len(sums[0]) if exact else (1 + as_far) / (_SWAPS + 1)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for as many tests as there are (Holm); NaN stays and does not count."""
    corrected = [math.nan] * len(p)
    order = sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    largest = 0.0
    for rank, (value, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * value))
        corrected[place] = largest
    return corrected


def _table(rows: Sequence[_Difference], level: float) -> Table:
    return Table(
        {
            "labeler": [row.labeler for row in rows],
            "other": [row.other for row in rows],
            "difference": [row.difference for row in rows],
            "se": [row.se for row in rows],
            "low": [row.low for row in rows],
            "high": [row.high for row in rows],
            "p": [row.p for row in rows],
            "p_holm": holm([row.p for row in rows]),
            "method": [row.method for row in rows],
            "discordant": [row.discordant for row in rows],
            "reason": [row.reason for row in rows],
        },
        title=f"Differences between labelers, {written(level)} intervals",
    )


def _notes(kappas: Mapping[str, Kappa], rows: Sequence[_Difference], dropped: Dropped) -> Iterator[Note]:
    if dropped.total:
        yield Note(
            "items-dropped",
            f"{counted(dropped.total, 'item')} did not count: {dropped.why()}. Labelers are compared on items that "
            "all of them labeled.",
        )
    own = [name for name, kappa in kappas.items() if any(note.code == "at-ceiling" for note in kappa.notes)]
    if own:
        yield Note(
            "at-ceiling",
            f"The labels of {shown(own)} score exactly what the panel's own most frequent labels would: if they were "
            "made from these votes, that says nothing about them.",
        )
    swapped = [row for row in rows if row.method == "swap"]
    few = [row for row in swapped if row.discordant < FEW_DISCORDANT]
    if few:
        yield Note(
            "few-discordant",
            f"Labels differ on fewer than {FEW_DISCORDANT} items between {_pairs(few)}: their p comes from swapping "
            "labels at random, item by item.",
        )
    steady = [row for row in swapped if row.discordant >= FEW_DISCORDANT]
    if steady:
        yield Note(
            "no-standard-error",
            f"No item sets {_pairs(steady)} further apart than another, so there is no standard error: their p comes "
            "from swapping labels at random, item by item.",
        )


def _pairs(rows: Sequence[_Difference]) -> str:
    """Name some pairs of labelers."""
    return ", ".join(f"{row.labeler!r} and {row.other!r}" for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
