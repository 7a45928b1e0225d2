"""Compare labelers on the same items: paired differences of kappa with intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dhkappa.core.grouping import LabeledPatterns
from dhkappa.core.items import ItemTable
from dhkappa.errors import counted, invalid, shown
from dhkappa.stats.influence import Numbers, Terms, Variance, influence, sum_of_squares, terms, unseen_parts, variance
from dhkappa.stats.intervals import Gap, skewness, written
from dhkappa.stats.kappa import Estimate, Parts, estimate_dh
from dhkappa.stats.notes import MADE_FROM_VOTES, Note, first_three
from dhkappa.stats.sample import Excluded, Pool, Rng, Sample, check_level, drawn, eligible, generator
from dhkappa.table import Table

FEW_DISCORDANT = 10  # below, the p-value is that of the label-swap test
_MAX_GROUPS = 1 << 16  # patterns x labels of the labelers that are counted together
_SWAPS = 9_999
_DRAWS_PER_BLOCK = 1 << 21
_MAX_ENUMERATED = 12  # discordant items for which all swaps are enumerated
_TIE = 1e-12  # differences closer than this are equal up to rounding


class _Labeler(NamedTuple):
    """The estimate of a labeler, and the influence by pattern of votes and label: sorted keys, and phi of each."""

    estimate: Estimate
    key: npt.NDArray[np.int64]
    phi: Numbers


@dataclass(frozen=True, slots=True)
class _Difference:
    """The difference between two labelers; NaN where ``reason`` says why."""

    labeler: str
    other: str
    difference: float = math.nan
    se: float = math.nan
    pvalue: float = math.nan
    method: str | None = None
    discordant: int = 0
    reason: str | None = None
    gap: Gap | None = None


def compare_labelers(
    table: ItemTable, *, confidence_level: float = 0.95, pool: Pool = None, rng: Rng = None
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
    table, excluded = _eligible(table)
    names = list(table.labels)
    found: dict[str, _Labeler] = {}
    pairs: dict[tuple[str, str], _Difference] = {}
    joint = cache(table.joint)
    for group, other_group in _groups(table, names):
        some = [*group, *other_group]
        together = table.distinct(some, [joint(group), joint(other_group)])
        found |= {name: _labeler(together, name, excluded, pool) for name in some if name not in found}
        for one, other in combinations(some, 2):
            if (one, other) not in pairs:
                both = together.distinct([one, other])
                pairs[one, other] = _difference(both, one, other, found, pool, source)
    rows = [pairs[pair] for pair in combinations(names, 2)]
    estimates = {name: found[name].estimate for name in names}
    notes = (*(Note("source", text) for text in table.source_notes), *_notes(estimates, rows, excluded))
    return estimates, _differences(rows, confidence_level), notes


def _eligible(table: ItemTable) -> tuple[ItemTable, Excluded]:
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


def _groups(table: ItemTable, names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield pairs of groups of labelers to count together: every two labelers meet, in few passes over the items."""
    size = 1
    while len(table.votes) * len(table.categories) ** (2 * (size + 1)) <= _MAX_GROUPS and 2 * size < len(names):
        size += 1
    yield from combinations([tuple(names[first : first + size]) for first in range(0, len(names), size)], 2)


def _sample(table: ItemTable, name: str, excluded: Excluded, pool: Pool) -> Sample:
    """Return the sample of one labeler; rows differ in votes, its label, stratum or weight."""
    label = table.labels[name].astype(np.int32)
    patterns = replace(table.votes.take(table.vote), suggested=label, items=table.items)
    rows = LabeledPatterns(table.categories, patterns, table.strata, table.stratum, table.weight)
    return drawn(rows, excluded, pool)


def _labeler(table: ItemTable, name: str, excluded: Excluded, pool: Pool) -> _Labeler:
    own = table.distinct([name])
    sample = _sample(own, name, excluded, pool)
    estimate = estimate_dh(sample)
    if estimate.parts is None or estimate.exact is None:
        return _Labeler(estimate, np.zeros(0, np.int64), np.zeros(0))
    return _Labeler(estimate, _keys(own, name), influence(terms(sample, estimate.parts)))


def _difference(
    table: ItemTable, one: str, other: str, found: Mapping[str, _Labeler], pool: Pool, source: np.random.Generator
) -> _Difference:
    """Compare two labelers on rows that are distinct for them."""
    first, second = found[one].estimate, found[other].estimate
    discordant = int(table.items[table.labels[one] != table.labels[other]].sum())
    if first.parts is None or second.parts is None or first.exact is None or second.exact is None:
        return _Difference(one, other, discordant=discordant, reason=first.reason or second.reason)
    difference = float(first.exact - second.exact)
    phi, other_phi = (found[name].phi[np.searchsorted(found[name].key, _keys(table, name))] for name in (one, other))
    move = phi - other_phi
    n, strata = first.n_items, first.sample.strata
    one_minus_E = [1 - float(parts.E) for parts in (first.parts, second.parts)]
    if n < 2 or not all(one_minus_E):  # E is 1 only after rounding
        why = "Only one item is eligible" if n < 2 else "One item has almost all the weight"
        reason = f"{why}, so the variance is unknown."
        return _Difference(one, other, difference, discordant=discordant, reason=reason)

    def terms_of(name: str, parts: Parts) -> Terms:
        return terms(_sample(table, name, first.sample.excluded, pool), parts)

    if first.sample.designed:
        known = terms_of(one, first.parts)
        spread, skew = variance(known, move), skewness(known.weight / known.items * move, table.items)
    else:
        squares = sum_of_squares(move, table.items)
        spread, skew = Variance(squares / (n * (n - 1)), squares), skewness(move, table.items, squares)
    se = math.sqrt(spread.value)
    reach = sum(1 / each for each in one_minus_E) * float(unseen_parts(strata).max())
    df = max(n - len(strata), 1)
    gap = Gap(difference, se, skew if spread.endless else 0.0, first.sample.n_effective, df, -reach, reach)
    row = _Difference(one, other, difference, se, discordant=discordant, gap=gap)
    if discordant >= FEW_DISCORDANT and spread.endless:
        return replace(row, method="t")
    pvalue = _swap_test(terms_of(one, first.parts), terms_of(other, second.parts), source)
    return replace(row, pvalue=pvalue, method="swap")


def _keys(table: ItemTable, name: str) -> npt.NDArray[np.int64]:
    """Return (K,) one integer for the votes and the label of each row."""
    return table.vote.astype(np.int64) * len(table.categories) + table.labels[name]


def _swap_test(one: Terms, other: Terms, source: np.random.Generator) -> float:
    """Return the p-value of the label-swap test: the labels of an item are swapped with probability 1/2.

    Votes and so C do not change: a swap moves D and E of the two labelers by the same amount in opposite directions.
    Swaps of few discordant items are enumerated, those of many are drawn at random.
    """
    rows = np.flatnonzero(one.suggested != other.suggested)
    share = one.weight[rows] / one.items[rows] / one.n
    items, squared = one.items[rows], one.C**2
    move_E = 2 * (squared[other.suggested] - squared[one.suggested])[rows] * share
    moves = np.column_stack([(other.d - one.d)[rows] * share, move_E])
    exact = int(items.sum()) <= _MAX_ENUMERATED
    if exact:
        each = np.repeat(np.arange(rows.size), items)
        tossed = np.array(list(product((0, 1), repeat=each.size)), np.float64).reshape(2**each.size, each.size)
        D, E = (tossed @ moves[each]).T
    else:
        step = max(1, _DRAWS_PER_BLOCK // rows.size)
        sizes = [min(step, _SWAPS - at) for at in range(0, _SWAPS, step)]
        D, E = np.concatenate([source.binomial(items, 0.5, (size, rows.size)) @ moves for size in sizes]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa, other_kappa = (1 - (1 - of.D - move * D) / (1 - of.E - move * E) for of, move in ((one, 1), (other, -1)))
        # A swap after which kappa is undefined counts as a large difference.
        as_far = int((~(np.abs(kappa - other_kappa) < abs(one.kappa - other.kappa) - _TIE)).sum())
    return as_far / len(D) if exact else (1 + as_far) / (_SWAPS + 1)


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple testing (Holm); NaN stays NaN and does not count as a test."""
    adjusted = np.array(pvalues)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN is last
    tests_left = np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(tests_left * adjusted[order], 1))
    return [float(value) for value in adjusted]


def _differences(rows: Sequence[_Difference], confidence_level: float) -> Table:
    """Return the table of differences; limits and p-values are computed all at once."""
    columns = {part.name: [getattr(row, part.name) for row in rows] for part in fields(_Difference)}
    columns |= {name: [math.nan] * len(rows) for name in ("low", "high")}
    known = [(place, row.gap) for place, row in enumerate(rows) if row.gap]
    gap = Gap(*(np.array([getattr(of, part.name) for _, of in known], np.float64) for part in fields(Gap)))
    found = (values.tolist() for values in (*gap.limits(confidence_level), gap.pvalue()))
    for (i, _), low, high, pvalue in zip(known, *found, strict=True):
        columns["low"][i], columns["high"][i] = low, high
        if rows[i].method == "t":  # a standard error of 0 means that the sample is the whole pool
            columns["pvalue"][i] = pvalue if rows[i].se else float(rows[i].difference == 0)
    columns["pvalue_holm"] = holm(columns["pvalue"])
    names = ("labeler", "other", "difference", "se", "low", "high", "pvalue", "pvalue_holm", "method", "discordant")
    title = f"Differences between labelers, {written(confidence_level, 100)}% confidence intervals"
    return Table({name: columns[name] for name in (*names, "reason")}, title=title)


def _notes(estimates: Mapping[str, Estimate], rows: Sequence[_Difference], excluded: Excluded) -> Iterator[Note]:
    if excluded.total:
        text = f"{counted(excluded.total, 'item')} excluded: {excluded.why()}."
        yield Note("items-excluded", f"{text} Labelers are compared on the items that all of them labeled.")
    own = [name for name, of in estimates.items() if of.exact == of.baselines.majority and of.exact not in (None, 1)]
    if own:
        text = f"The labels of {shown(own)} score exactly as high as majority labels."
        yield Note("equals-majority", f"{text} {MADE_FROM_VOTES}")
    swapped = [(f"{row.labeler!r} and {row.other!r}", row.discordant) for row in rows if row.method == "swap"]
    tested = "Their p-value comes from the label-swap test."
    if few := [pair for pair, discordant in swapped if discordant < FEW_DISCORDANT]:
        text = f"Labels differ on fewer than {FEW_DISCORDANT} items between {first_three(few)}."
        yield Note("few-discordant", f"{text} {tested}")
    if equal := [pair for pair, discordant in swapped if discordant >= FEW_DISCORDANT]:
        text = f"Every item has the same influence on the difference between {first_three(equal)}"
        yield Note("no-standard-error", f"{text}, so there is no standard error. {tested}")
