"""Shares of the categories in a whole pool, and its wrong labels, from votes on a sample and all suggested labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dhkappa.core import Array, Label
from dhkappa.core.agreement import FEW_ITEMS
from dhkappa.core.grouping import LabeledPatterns, Patterns
from dhkappa.core.labels import natural_key
from dhkappa.errors import counted, invalid, shown
from dhkappa.stats.mean_intervals import MeanBasis, mean_limits, own_basis
from dhkappa.stats.notes import Note, source_note
from dhkappa.stats.pool_result import PoolShares
from dhkappa.stats.sample import Excluded, check_level
from dhkappa.stats.summation import integer_type, totals
from dhkappa.stats.weights import agreeing_pairs
from dhkappa.table import Table

_FEWEST = 5  # sampled items with a label that are enough for a mean of their own
_UNLIKELY = 0.001  # probability below which the labels of a random sample are said to differ from those of the pool
_NOT_SAMPLED = "No sampled item has this label."


class _Sums(NamedTuple):
    """Sums over the sampled items with each label: of x, the share of an item's votes for a category, and of x^2.

    The last category stands for all votes against the label.
    """

    n: list[int]  # (J,) number of items with each label
    unit: int  # x times this is an integer
    first: dict[int, dict[int, int]]  # sum of x times unit, by label and category; 0 if not in it
    second: dict[int, dict[int, int]]  # sum of x^2 times unit^2
    between_unit: int
    between: dict[int, dict[int, int]]  # sum of x (1 - x) / (N - 1), the variance of x over votes, times between_unit


class _Part(NamedTuple):
    """A part of the pool with one or more labels, and the mean of x in it by category; 0 if not in it."""

    weight: Fraction  # share of the pool
    n: int  # number of sampled items
    unseen: Fraction  # share of the weight within the part that an item not seen yet may have
    mean: dict[int, Fraction]
    variance: dict[int, Fraction]  # of the mean; unknown with one item
    spread: dict[int, Fraction]  # of x between items


def pool_shares_of(
    rows: LabeledPatterns,
    pool: Mapping[Label, int],
    *,
    finite_pool: bool = False,
    confidence_level: float = 0.95,
    source_notes: Iterable[str] = (),
) -> PoolShares:
    """Estimate the shares of a pool from the number of its items with each label; see ``dhkappa.pool_shares``.

    With strata, which are the suggested labels, items were drawn for each label separately.
    """
    level = check_level(confidence_level)
    patterns, excluded = _usable(rows)
    pool = {label: size for label, size in pool.items() if size}
    labels = (*rows.categories, *sorted(set(pool) - set(rows.categories), key=natural_key))
    sums, J = _sums(patterns, len(labels), finite_pool), len(labels)
    M = [pool.get(label, 0) for label in labels]
    _check_sizes(labels, sums.n, M)
    by_label, whole = rows.stratum is not None, sum(M)
    groups, merged = _groups(sums.n, M)
    parts = [_part(group, sums, M, by_label, finite_pool) for group in groups]
    found = _stratified(parts, sum(sums.n), J + 1)
    low, high = mean_limits(found, 1 - level)
    used = [j for j in range(J) if M[j] or found.value[j] > 0]
    columns: dict[str, Any] = {
        "category": [labels[j] for j in used],
        "share": found.value[used],
        "low": low[used],
        "high": high[used],
        "count": whole * found.value[used],
        "pool": [M[j] for j in used],
        "items": [sums.n[j] for j in used],
    }
    wrong, size = _wrong(sums, M, finite_pool), np.array(M, np.float64)
    for name, share in zip(
        ("wrong", "wrong_low", "wrong_high"), (wrong.value, *mean_limits(wrong, 1 - level)), strict=True
    ):
        columns[name] = np.where(size == 0, 0.0, size * share)[used]
    columns |= {"se": found.se[used], "gain": [_gain(parts, j) for j in used]}
    columns["reason"] = [_NOT_SAMPLED if M[j] and not sums.n[j] else None for j in used]
    lost = _annotator_wrong(patterns, sums.n, M, by_label)
    known = {labels[j]: (sums.n[j], M[j]) for j in used}
    told = [*_notes_on_items(patterns, excluded), *_notes_on_labels(known, [labels[j] for j in merged], by_label)]
    return PoolShares(
        table=Table(columns, title="Categories in the pool"),
        wrong=whole * float(found.value[-1]),
        wrong_low=whole * float(low[-1]),
        wrong_high=whole * float(high[-1]),
        annotator_wrong=math.nan if lost is None else float(whole * lost),
        pool_items=whole,
        n_items=sum(sums.n),
        n_votes=patterns.n_votes(),
        merged=tuple(labels[j] for j in merged),
        sampled_by_label=by_label,
        finite_pool=finite_pool,
        confidence_level=level,
        excluded=excluded,
        notes=(*map(source_note, (*rows.source_notes, *source_notes)), *told),
    )


def _usable(rows: LabeledPatterns) -> tuple[Patterns, Excluded]:
    """Return the patterns of items with votes and a label; refuse weights, and strata other than the labels."""
    if rows.weight is not None or rows.item_weights is not None:
        hint = "Leave out $sample_weight: the numbers of items of the pool set the weights."
        raise invalid(
            "sample_weight", "sample_weight and pool cannot be combined.", code="pool-with-weights", hint=hint
        )
    patterns = rows.patterns
    empty, bare = patterns.vote_totals() == 0, patterns.suggested < 0
    keep = np.flatnonzero(~empty & ~bare)
    lost = [int(patterns.items[which].sum()) for which in (empty, ~empty & bare)]
    if not keep.size:
        message = f"No item of the sample has both a vote and a suggested label: {counted(sum(lost), 'item')} given."
        raise invalid("data", message, code="nothing-sampled", hint="Pass items with votes and $suggested labels.")
    if rows.stratum is not None:
        pairs = zip(rows.stratum[keep].tolist(), patterns.suggested[keep].tolist(), strict=True)
        for stratum, label in dict.fromkeys(pairs):
            if rows.strata[stratum] != rows.categories[label]:
                drawn = (
                    f"stratum {shown([rows.strata[stratum]])} has items with label {shown([rows.categories[label]])}"
                )
                message = f"The strata of a sample of a pool must be the suggested labels, but {drawn}."
                hint = "If items were drawn for each label, pass the suggested labels as $strata, else leave it out."
                raise invalid("strata", message, code="strata-not-labels", hint=hint)
    return patterns.take(keep).merged(), Excluded(no_votes=lost[0], no_label=lost[1])


def _check_sizes(labels: Sequence[Label], n: Sequence[int], M: Sequence[int]) -> None:
    """Refuse a pool with fewer items than were sampled."""
    missing = [label for label, own, size in zip(labels, n, M, strict=True) if own and not size]
    if missing:
        known = [label for label, size in zip(labels, M, strict=True) if size]
        what = f"{'a label' if len(missing) == 1 else 'labels'} of the sample: {shown(missing, 3)}"
        message = f"The pool has no item with {what}. Labels of the pool: {shown(known) or 'none'}."
        kinds = {isinstance(label, str) for label in missing}.isdisjoint(isinstance(label, str) for label in known)
        hint = "Numbers and text are different labels: convert one of them." if known and kinds else ""
        hint = hint or "Count the labels of all items that the sample was drawn from, with the sampled items."
        raise invalid("pool", message, code="pool-label-missing", hint=hint)
    for label, own, size in zip(labels, n, M, strict=True):
        if size < own:
            message = f"The pool has {counted(size, 'item')} with label {shown([label])}, fewer than the sample"
            hint = "Count the labels of all items that the sample was drawn from, with the sampled items."
            raise invalid("pool", f"{message} ({own:,}).", code="pool-too-small", hint=hint)


def _sums(patterns: Patterns, J: int, finite_pool: bool) -> _Sums:
    """Add up shares of votes by label and category."""
    N, row = patterns.vote_totals(), patterns.row()
    if finite_pool and int(N.min()) < 2:
        message = "A finite pool needs two votes on each item: the variance between votes on an item is unknown."
        hint = "Leave out $finite_pool, or the items with one vote."
        raise invalid("finite_pool", message, code="finite-pool-single-votes", hint=hint)
    votes, on_label = patterns.votes.astype(np.int64), patterns.code == patterns.suggested[row]
    against = N - totals(np.where(on_label, votes, 0), row, len(patterns))
    code = np.concatenate([patterns.code.astype(np.int64), np.full(len(patterns), J)])
    row = np.concatenate([row, np.arange(len(patterns))])
    P, label, items = np.concatenate([votes, against]), patterns.suggested[row].astype(np.int64), patterns.items[row]
    place = label * (J + 1) + code
    sizes = [int(size) for size in np.unique(N)]
    unit = math.lcm(*sizes)

    def added(values: Array, scale: Mapping[int, int], bound: int) -> dict[int, dict[int, int]]:
        kind = integer_type(bound * int(patterns.items.sum()))
        factor = np.array([scale[size] for size in sizes], kind)[np.searchsorted(sizes, N)]
        found = totals(values.astype(kind) * factor[row] * items.astype(kind), place, J * (J + 1))
        by_label: dict[int, dict[int, int]] = {}
        for at in np.flatnonzero(found).tolist():
            by_label.setdefault(at // (J + 1), {})[at % (J + 1)] = int(found[at])
        return by_label

    first = added(P, {size: unit // size for size in sizes}, unit)
    second = added(P * P, {size: (unit // size) ** 2 for size in sizes}, unit**2)
    between_unit, between = 1, dict[int, dict[int, int]]()
    if finite_pool:
        between_unit = math.lcm(*(size**2 * (size - 1) for size in sizes))
        scale = {size: between_unit // (size**2 * (size - 1)) for size in sizes}
        between = added(P * (N[row] - P), scale, between_unit)
    n = totals(patterns.items, patterns.suggested.astype(np.int64), J).tolist()
    return _Sums(n, unit, first, second, between_unit, between)


def _groups(n: Sequence[int], M: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Return the groups of labels that have a mean of their own, and the labels that were merged into one.

    Labels with few sampled items are merged. If that group has few items, too, the label with the next fewest items is
    added, and of several the one with the fewest in the pool.
    """
    labels = sorted((j for j, size in enumerate(M) if size), key=lambda j: (n[j], M[j], j))
    size = sum(n[j] < _FEWEST for j in labels)
    while 0 < size < len(labels) and sum(n[j] for j in labels[:size]) < _FEWEST:
        key = n[labels[size]], M[labels[size]]
        size += sum((n[j], M[j]) == key for j in labels[size:])  # their order must not matter
    merged, alone = sorted(labels[:size]), sorted(labels[size:])
    return [*([merged] if merged else []), *([j] for j in alone)], merged if len(merged) > 1 else []


def _part(group: Sequence[int], sums: _Sums, M: Sequence[int], by_label: bool, finite_pool: bool) -> _Part:
    """Return the means of a group of labels: plain, or each label with its share of the pool if drawn by label."""
    n = sum(sums.n[j] for j in group)
    each = {j: Fraction(M[j], sums.n[j]) if by_label else Fraction(1) for j in group if sums.n[j]}
    whole = sum((sums.n[j] * weight for j, weight in each.items()), Fraction(0))
    p = {j: weight / whole for j, weight in each.items()}  # share of the weight of one item
    squares = sum((sums.n[j] * own**2 for j, own in p.items()), Fraction(0))
    cubes = sum((sums.n[j] * own**3 for j, own in p.items()), Fraction(0))
    size = sum(M[j] for j in group)
    f = Fraction(0)
    if finite_pool:
        f = min(Fraction(sums.n[j], M[j]) for j in group) if by_label else Fraction(n, size)
    mean, variance, spread = dict[int, Fraction](), dict[int, Fraction](), dict[int, Fraction]()
    for k in sorted({k for j in p for k in sums.first.get(j, ())}):
        first = {j: Fraction(sums.first.get(j, {}).get(k, 0), sums.unit) for j in p}
        mean[k] = middle = sum((p[j] * first[j] for j in p), Fraction(0))
        if n < 2:
            continue
        total, own = Fraction(0), Fraction(0)
        for j in p:
            second = Fraction(sums.second.get(j, {}).get(k, 0), sums.unit**2)
            apart = second - 2 * middle * first[j] + sums.n[j] * middle**2
            total, own = total + p[j] * apart, own + p[j] ** 2 * apart
        spread[k] = Fraction(n, n - 1) * total
        variance[k] = (1 - f) * Fraction(n, n - 1) * own
        if f:
            votes = (p[j] ** 2 * Fraction(sums.between.get(j, {}).get(k, 0), sums.between_unit) for j in p)
            variance[k] += f * sum(votes, Fraction(0))
    return _Part(Fraction(size, sum(M)), n, cubes / squares, mean, variance, spread)


def _stratified(parts: Sequence[_Part], n: int, size: int) -> MeanBasis:
    """Return the basis of the means over all parts, (size,), each item added in the part that moves a mean most."""
    shares = [part.weight * part.unseen for part in parts]  # of the weight of an item added there
    descending = sorted(range(len(parts)), key=lambda place: -shares[place])
    most = max(shares)
    value, variance = np.zeros(size), np.zeros(size)
    low, high = np.tile([0.0, float(most)], (size, 1)), np.tile([1.0, float(most)], (size, 1))
    for k in {k for part in parts for k in part.mean}:
        means = {place: part.mean[k] for place, part in enumerate(parts) if k in part.mean}
        value[k] = float(sum((parts[place].weight * mean for place, mean in means.items()), Fraction(0)))
        if n > 1:
            variance[k] = float(
                sum((parts[place].weight ** 2 * parts[place].variance[k] for place in means), Fraction(0))
            )
        bare = next((place for place in descending if place not in means), None)
        tried = means if bare is None else {**means, bare: Fraction(0)}
        for ends, moves in ((low, means), (high, {place: 1 - mean for place, mean in tried.items()})):
            best = max(moves, key=lambda place: (shares[place] * moves[place], shares[place]))
            ends[k] = float(moves[best]), float(shares[best])
    unseen = float(most)
    return MeanBasis(value, n, n * (n - 1) * variance, -low[:, 0], high[:, 0], low[:, 1], high[:, 1], unseen, unseen)


def _wrong(sums: _Sums, M: Sequence[int], finite_pool: bool) -> MeanBasis:
    """Return the basis of the share of wrong labels, (J,); NaN for labels that were not sampled."""
    against, J = len(M), len(M)
    value, squares, n = np.full(J, np.nan), np.zeros(J), np.array(sums.n, np.float64)
    for j in np.flatnonzero(n).tolist():
        part = _part([j], sums, M, False, finite_pool)
        value[j] = float(part.mean.get(against, 0))
        squares[j] = float(part.n * (part.n - 1) * part.variance.get(against, 0))
    return own_basis(value, n, squares, 1 / np.maximum(n, 1))


def _gain(parts: Sequence[_Part], k: int) -> float:
    """Return 1/(1 - R^2): the variance of x in the pool, divided by that within its parts; NaN if the latter is 0."""
    within = sum((part.weight * part.spread.get(k, 0) for part in parts), Fraction(0))
    value = sum((part.weight * part.mean.get(k, 0) for part in parts), Fraction(0))
    between = sum((part.weight * (part.mean.get(k, 0) - value) ** 2 for part in parts), Fraction(0))
    return float((within + between) / within) if within else math.nan


def _annotator_wrong(patterns: Patterns, n: Sequence[int], M: Sequence[int], by_label: bool) -> Fraction | None:
    """Return the mean share of pairs of votes on an item that differ; None if no item has two votes."""
    patterns = patterns.take(patterns.vote_totals() > 1)
    if not len(patterns):
        return None
    N = patterns.vote_totals()
    agreeing, _ = agreeing_pairs(patterns)
    differ, whole = Fraction(0), Fraction(0)
    rows = (patterns.suggested.tolist(), patterns.items.tolist(), N.tolist(), agreeing.tolist())
    for label, items, size, pairs in zip(*rows, strict=True):
        weight = items * (Fraction(M[label], n[label]) if by_label else 1)
        whole += weight
        differ += weight * (1 - Fraction(pairs, math.comb(size, 2)))
    return differ / whole


def _notes_on_items(patterns: Patterns, excluded: Excluded) -> Iterator[Note]:
    """Yield notes on the items of the sample."""
    n, N = int(patterns.items.sum()), patterns.vote_totals()
    if excluded.total:
        yield Note("items-excluded", excluded.sentence())
    if n < FEW_ITEMS:
        yield Note("few-items", f"There are only {counted(n, 'item')}; another sample may give other values.")
    several = int(patterns.items[N > 1].sum())
    if 0 < several < n:
        text = (
            f"How many labels of a typical annotator would be wrong is known from {several:,} of {counted(n, 'item')}"
        )
        yield Note("some-single-votes", f"{text}: the others have one vote.")


def _notes_on_labels(known: Mapping[Label, tuple[int, int]], merged: Sequence[Label], by_label: bool) -> Iterator[Note]:
    """Yield notes on labels, of which the numbers of items in the sample and in the pool are known."""
    whole, n = sum(size for _, size in known.values()), sum(own for own, _ in known.values())
    if merged:
        numbers = ", ".join(f"{label!r} ({known[label][0]:,})" for label in merged[:3])
        more = ", ..." if len(merged) > 3 else ""
        text = f"{len(merged)} labels are treated as one in the shares, as some have fewer than {_FEWEST} sampled items"
        yield Note("labels-merged", f"{text}: {numbers}{more}.")
    if absent := {label: size for label, (own, size) in known.items() if size and not own}:
        items = sum(absent.values())
        text = f"{counted(items, 'item')} of the pool ({items / whole:.1%}) have labels that the sample lacks"
        text = f"{text}: {shown(absent, 3)}. Their votes are taken to be like those for the labels merged with them."
        yield Note("labels-not-sampled", text, "Get votes on some items with these labels.")
    if by_label:
        return
    from dhkappa.stats.special import bdtr, bdtrc

    tested = [(label, own, size / whole) for label, (own, size) in known.items() if size]
    tails = [2 * min(float(bdtr(own, n, p)), float(bdtrc(own - 1, n, p)) if own else 1.0) for _, own, p in tested]
    if len(tested) > 1 and len(tails) * min(tails) < _UNLIKELY:
        label, own, p = tested[tails.index(min(tails))]
        text = f"The sample does not look like a random sample of the pool: {label!r} is the label of {own / n:.1%} of"
        hint = "If items were drawn for each label separately, pass the suggested labels as $strata."
        yield Note("sample-unlike-pool", f"{text} its items, and of {p:.1%} of the pool.", hint)
