"""Sample: eligible items, their weights, added up by pattern, and their design; checks of numbers that users pass."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats, Integers, ItemWeights, Label
from dhkappa.core.grouping import LabeledPatterns, Patterns, group_rows
from dhkappa.errors import DataError, counted, invalid, is_real, shown
from dhkappa.stats.summation import exact_sum, group_sums, split_sums

Pool: TypeAlias = int | Mapping[Any, int] | None
"""Number of items in the pool that the sample was drawn from: in all, or by stratum."""
Rng: TypeAlias = "int | np.random.Generator | None"  # as text: importing numpy.random takes time
"""Seed or generator of random numbers; None for numbers that differ from call to call."""
Condition: TypeAlias = Callable[[Any], bool]

ROUNDING = 1e-12  # a root mean square below this is rounding: one odd item in 10^18 makes it 10^-9
_MOST_RESAMPLES = 10**8
_LARGE_WEIGHT = 2.0**900
_CLOSEST_LEVEL = 1e-9  # to 0 or 1


@dataclass(frozen=True, slots=True)
class Excluded:
    """Number of excluded items, by the first reason that applies.

    Attributes
    ----------
    no_votes : items without votes
    one_vote : items with one vote
    no_label : items without a suggested label
    no_weight : items with sample weight 0
    """

    no_votes: int = 0
    one_vote: int = 0
    no_label: int = 0
    no_weight: int = 0

    @property
    def total(self) -> int:
        """Number of excluded items in all."""
        return self.no_votes + self.one_vote + self.no_label + self.no_weight

    def to_dict(self) -> dict[str, int]:
        """Return the numbers by reason."""
        return {name: getattr(self, name) for name in self.__slots__}

    def sentence(self) -> str:
        """Return how many items were excluded, and why."""
        return f"{counted(self.total, 'item')} excluded: {self.why()}."

    def why(self) -> str:
        """Return the numbers by reason as text; of a single reason what the items have."""
        reasons = zip(self.to_dict().values(), ("no votes", "one vote", "no suggested label", "weight 0"), strict=True)
        found = [(number, what) for number, what in reasons if number]
        if len(found) == 1:
            return f"{'it has' if self.total == 1 else 'they have'} {found[0][1]}"
        return ", ".join(f"{number:,} with {what}" for number, what in found)


@dataclass(frozen=True, slots=True)
class Stratum:
    """A stratum with n sampled items out of ``size``; None if the size is unknown."""

    name: Label | None
    n: int
    size: int | None

    @property
    def fraction(self) -> Fraction:
        """The sampling fraction; 0 if the size is unknown."""
        return Fraction(self.n, self.size) if self.size else Fraction(0)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Eligible items as K patterns, with weights and strata."""

    categories: tuple[Label, ...]  # the m categories, in the order of codes
    patterns: Patterns  # the eligible patterns, K rows; ``items`` counts items
    excluded: Excluded
    mass: Array  # (K,) weight of all items of a pattern, as integers; only ratios matter
    stratum: Integers  # (K,) index into ``strata``
    strata: tuple[Stratum, ...]  # at least one; a sample without strata has one without a name
    kept: npt.NDArray[np.int64] | None = None  # (K,) row of each pattern in the data; None if patterns were merged
    source_notes: tuple[str, ...] = ()  # sentences about where the votes came from
    is_merged: bool = False  # whether patterns are distinct and in canonical order
    item_weights: ItemWeights | None = None  # if items of a pattern have different weights
    # with item_weights: (K,) sums of squares and of cubes of the weights of a pattern's items, scaled to mean 1
    powers: tuple[Floats, ...] | None = None
    cluster: Integers | None = None  # (K,) cluster of a pattern's items, from 0 without gaps; None without clusters
    shares_known: bool = False  # with clusters: the weights come from the sizes of the strata
    # the rows that the sample was taken from, if items with one vote were excluded: precision and recall count them
    rows: LabeledPatterns | None = None

    @property
    def n(self) -> int:
        """Number of eligible items."""
        return int(self.patterns.items.sum())

    @property
    def weighted(self) -> bool:
        """Whether items have different weights."""
        return self.mass is not self.patterns.items

    @property
    def n_effective(self) -> float:
        """Number of equally weighted items that carry as much information: (sum w)^2 / sum w^2 (Kish)."""
        if not self.weighted:
            return float(self.n)
        if self.item_weights is not None:
            weight = self.item_weights.weight / self.item_weights.weight.max()
            return exact_sum(weight) ** 2 / exact_sum(weight * weight)
        largest = int(self.mass.max())
        mass = np.array([value / largest for value in self.mass.tolist()])  # integers of any size
        return float(mass.sum() ** 2 / (mass**2 / self.patterns.items).sum())

    @property
    def designed(self) -> bool:
        """Whether there are weights, strata or a pool."""
        return self.weighted or len(self.strata) > 1 or self.strata[0].size is not None

    @property
    def clustered(self) -> bool:
        """Whether some items are of the same cluster."""
        return self.cluster is not None and int(self.cluster.max(initial=-1)) + 1 < self.n

    def merged(self) -> Sample:
        """Return each pattern once, in an order that depends on the patterns only."""
        designed = self.weighted or len(self.strata) > 1 or self.clustered
        if self.is_merged or designed:  # a tally merges within strata, weights and clusters
            return self
        patterns = self.patterns.merged()
        stratum = np.zeros(len(patterns), np.int8)
        return replace(
            self, patterns=patterns, mass=patterns.items, stratum=stratum, kept=None, is_merged=True, cluster=None
        )

    def by_weight(self) -> Sample:
        """Return a sample in which the items of a pattern have the same weight."""
        if self.item_weights is None:
            return self
        row, weight = self.item_weights.row, self.item_weights.weight
        first, group = group_rows([(len(self.patterns), row), (0, weight)])
        items = np.bincount(group, minlength=first.size)
        patterns, stratum = replace(self.patterns.take(row[first]), items=items), self.stratum[row[first]]
        values, place = np.unique(weight[first], return_inverse=True)
        mass = _mass(items, values.tolist(), place)
        return replace(self, patterns=patterns, mass=mass, stratum=stratum, kept=None, item_weights=None, powers=None)


def weight_of_one(sample: Sample) -> Floats:
    """Return (K,) the weight of one item of each pattern; those of all items sum to their number."""
    if not sample.weighted:
        return np.ones(len(sample.patterns))
    n, whole = sample.n, int(sample.mass.sum())
    return np.array([mass * n / whole for mass in (sample.mass // sample.patterns.items).tolist()])  # rounded once


def sample_of(rows: LabeledPatterns, *, labeled: bool = True, pool: Pool = None, fewest: int = 2) -> Sample:
    """Return the eligible items: those with two (``fewest``) votes or more and, if ``labeled``, a suggested label."""
    patterns, whole = rows.patterns, rows
    unlabeled = labeled & (patterns.suggested < 0)
    if rows.item_weights is not None:
        return _sample_of_weighted_items(rows, rows.item_weights, unlabeled, pool, fewest)
    keep, excluded = eligible(patterns.vote_totals(), patterns.items, unlabeled, rows.weight, fewest)
    kept = np.flatnonzero(keep)
    if excluded.total:
        stratum = None if rows.stratum is None else rows.stratum[kept]
        weight = None if rows.weight is None else rows.weight[kept]
        cluster = None if rows.cluster is None else rows.cluster[kept]
        rows = replace(rows, patterns=patterns.take(kept), stratum=stratum, weight=weight, cluster=cluster)
    return replace(make_sample(rows, excluded, pool), kept=kept, rows=whole if excluded.one_vote else None)


def _sample_of_weighted_items(
    rows: LabeledPatterns, items: ItemWeights, unlabeled: npt.NDArray[np.bool_], pool: Pool, fewest: int
) -> Sample:
    """Return the eligible items of patterns whose items have different weights."""
    n_votes, whole = rows.patterns.vote_totals(), rows
    each = np.ones_like(items.row)
    keep, excluded = eligible(n_votes[items.row], each, unlabeled[items.row], items.weight, fewest)
    number = np.bincount(items.row[keep], minlength=len(rows.patterns))
    kept = number > 0
    patterns = replace(rows.patterns.take(kept), items=number[kept])
    stratum = None if rows.stratum is None else rows.stratum[kept]
    items = items if keep.all() else items.take(keep, kept)
    if items.weight.max(initial=0) > _LARGE_WEIGHT:  # only ratios matter, and sums must not exceed the range of floats
        items = replace(items, weight=np.ldexp(items.weight, -200))
    sample = make_sample(replace(rows, patterns=patterns, stratum=stratum), excluded, pool)
    sample = replace(sample, rows=whole if excluded.one_vote else None)
    if not len(items.row) or items.weight.min() == items.weight.max():
        return sample
    weight = items.weight / items.weight.max()
    weight *= weight.size / exact_sum(weight)
    squares = weight * weight
    K = len(patterns)
    powers = tuple(group_sums(power, items.row, K) for power in (squares, squares * weight))
    return replace(sample, mass=_total_weights(items, K), item_weights=items, powers=powers)


def _total_weights(items: ItemWeights, K: int) -> Array:
    """Return (K,) the total weight of each pattern as integers, up to a common factor, without rounding."""
    mantissas, exponents = np.frexp(np.array(split_sums(items.weight, items.row, K)))
    whole = (mantissas * 2.0**53).astype(np.int64)
    shifts = exponents - exponents[whole != 0].min()
    parts = whole.astype(object) << np.where(whole == 0, 0, shifts).astype(object)
    return _reduced(parts.sum(axis=0).tolist())


def make_sample(rows: LabeledPatterns, excluded: Excluded, pool: Pool) -> Sample:
    """Return a sample of eligible patterns."""
    pool, items = own_pool(pool), rows.patterns.items
    if rows.cluster is not None and pool is not None and not isinstance(pool, Mapping):
        message = "A pool is a number of items, and its effect on the standard error is unknown with clusters."
        raise _pool_error("pool-with-clusters", message, "Omit $pool or $clusters.")
    strata = _strata(rows, pool)
    stratum = np.zeros(items.size, np.int8) if rows.stratum is None else rows.stratum
    mass = items
    if isinstance(pool, Mapping):
        mass = _mass(items, [Fraction(part.size or 0, part.n or 1) for part in strata], stratum)
    elif rows.weight is not None:
        values, place = np.unique(rows.weight, return_inverse=True)
        mass = _mass(items, values.tolist(), place)
    sample = Sample(rows.categories, rows.patterns, excluded, mass, stratum, strata, source_notes=rows.source_notes)
    return sample if rows.cluster is None else _with_clusters(sample, rows.cluster)


def _with_clusters(sample: Sample, cluster: Integers) -> Sample:
    """Return the sample with the clusters of its patterns; the sizes of strata are then about their weights only."""
    names, place = np.unique(cluster, return_inverse=True)
    clustered = replace(sample, cluster=place.astype(np.int64))
    if not clustered.clustered:
        return clustered
    if len(sample.strata) > 1:
        pairs = np.unique(np.stack([place, sample.stratum]), axis=1)
        if pairs.shape[1] > names.size:
            number = np.bincount(pairs[0])
            several = int((number > 1).sum())
            message = f"{counted(several, 'cluster')} {'has' if several == 1 else 'have'} items in several strata."
            hint = "Strata are groups of whole clusters: pass other $strata, or omit $strata or $clusters."
            raise invalid("clusters", message, hint=hint, code="cluster-in-strata")
        single = [part.name for part, n in zip(sample.strata, np.bincount(pairs[1]), strict=False) if n == 1]
        if single:
            message = f"Stratum {single[0]!r} has one cluster; its variance is unknown."
            hint = "Merge it with another stratum, or remove its items."
            raise invalid("strata", message, hint=hint, code="stratum-one-cluster")
    known = sample.strata[0].size is not None
    strata = tuple(replace(part, size=None) for part in sample.strata)
    return replace(clustered, strata=strata, shares_known=known)


def eligible(
    n_votes: Integers, items: Integers, unlabeled: npt.NDArray[np.bool_], weight: Floats | None, fewest: int = 2
) -> tuple[npt.NDArray[np.bool_], Excluded]:
    """Return (K,) which rows are eligible, and the number of items that are not; ``unlabeled`` rows lack a label."""
    few = n_votes < fewest
    bare = ~few & unlabeled
    light = ~few & ~bare & (weight == 0) if weight is not None else np.zeros_like(few)
    lost = [int(items[rows].sum()) for rows in (n_votes == 0, few & (n_votes == 1), bare, light)]
    return ~(few | bare | light), Excluded(*lost)


def _strata(rows: LabeledPatterns, pool: Pool) -> tuple[Stratum, ...]:
    """Return the strata with the sizes that ``pool`` gives them."""
    names, stratum, items = rows.strata, rows.stratum, rows.patterns.items
    by_stratum = isinstance(pool, Mapping)
    if by_stratum and stratum is None:
        message = "pool has a size for each stratum, but there are no strata."
        raise _pool_error("pool-without-strata", message, "Pass $strata too.")
    if pool is not None and stratum is not None and not by_stratum:
        message = f"With strata, pool must map each stratum to its size, but is {shown([pool])}."
        raise _pool_error("pool-not-by-stratum", message, f"Pass a mapping such as {{{shown(names[:1])}: 1000}}.")
    if pool is not None and (rows.weight is not None or rows.item_weights is not None):
        hint = "Leave out $sample_weight or $pool. With $strata, $pool sets the weights."
        raise _pool_error("pool-with-weights", "sample_weight and pool cannot be combined.", hint)
    if stratum is None:
        n = int(items.sum())
        return (Stratum(None, n, None if pool is None else _size(pool, n)),)
    sizes = {_name(name): size for name, size in pool.items()} if isinstance(pool, Mapping) else None
    numbers = np.zeros(len(names), np.int64)
    np.add.at(numbers, stratum, items)  # bincount adds floats, which are not exact beyond 2^53
    found = []
    for name, n in zip(names, numbers.tolist(), strict=True):
        if sizes is not None and name not in sizes:
            message = f"pool has no size for stratum {name!r}. Strata in pool: {shown(sizes) or 'none'}."
            raise _pool_error("pool-stratum-missing", message, "Add its number of items to $pool.")
        size = None if sizes is None else _size(sizes[name], n, name)
        hint = "Merge it with another stratum, or remove its items."
        if n == 1 and size != 1:
            message = f"Stratum {name!r} has one eligible item; its variance is unknown."
            raise invalid("strata", message, hint=hint, code="stratum-one-item")
        if n == 0 and (size or sizes is None):
            raise invalid("strata", f"Stratum {name!r} has no eligible item.", hint=hint, code="stratum-empty")
        found.append(Stratum(name, n, size))
    left = [name for name, size in (sizes or {}).items() if name not in names and _size(size, 0, name)]
    if left:
        message = f"pool names {counted(len(left), 'stratum')} without items in the data: {shown(left, 3)}."
        hint = "Merge them with other strata, or remove them from $pool."
        raise _pool_error("pool-unknown-stratum", message, hint)
    return tuple(found) or (Stratum(None, 0, None),)


def _pool_error(code: str, message: str, hint: str) -> DataError:
    return invalid("pool", message, hint=hint, code=code)


def _name(stratum: Any) -> Any:
    """Return the name of a stratum as labels have it: of a plain enum member its name, of NumPy values Python's."""
    if isinstance(stratum, Enum) and not isinstance(stratum, (str, int)):
        return stratum.name
    return stratum.item() if isinstance(stratum, np.generic) else stratum


def own_pool(pool: Any) -> Pool:
    """Return a copy of pool sizes, as Python integers if they are whole numbers."""
    to_dict = getattr(pool, "to_dict", None)  # a pandas Series, such as value_counts() of the pool
    pool = to_dict() if to_dict else pool
    if isinstance(pool, Mapping):
        return {name: _own_size(size) for name, size in pool.items()}
    found: Pool = _own_size(pool)
    return found


def _own_size(value: Any) -> Any:
    number = int(value) if isinstance(value, float) and value.is_integer() else _integer(value)
    return value if number is None else number


def _size(value: Any, n: int, stratum: Label | None = None) -> int:
    """Return a checked pool size, of which n items were sampled."""
    whose = "" if stratum is None else f" of stratum {shown([stratum])}"
    if type(value) is not int or value < 0:
        message = f"pool{whose} must be a non-negative integer, but is {shown([value])}."
        raise _pool_error("invalid-pool-size", message, "Pass the number of items in the pool.")
    if value < n:
        message = f"pool{whose} has {counted(value, 'item')}, fewer than the {n:,} in the sample."
        hint = "Pass the number of items in the whole data set that the sample was drawn from."
        raise _pool_error("pool-too-small", message, hint)
    return value


def _mass(items: npt.NDArray[np.int64], weights: Sequence[Any], place: Integers) -> Array:
    """Return (K,) items times the weights at their place as integers, which is exact: every float is a fraction."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    if not len(items) or len(set(ratios)) == 1:
        return items
    unit = math.lcm(*{below for _, below in ratios})
    whole = [above * (unit // below) for above, below in ratios]
    each = _reduced(whole, int(items.sum()))
    mass: Array = each[place] * items.astype(each.dtype)
    return mass


def _reduced(numbers: list[int], n: int = 1) -> Array:
    """Divide integers by their greatest common divisor; Python integers if n times the largest may not fit 64 bits."""
    common = math.gcd(*numbers)
    numbers = [number // common for number in numbers]
    return np.array(numbers, np.int64 if max(numbers) * max(n, len(numbers)) < 2**62 else object)


def generator(rng: Rng) -> np.random.Generator:
    """Return a random generator from a seed, a generator or None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        message = f"rng must be a non-negative integer, a numpy Generator or None: got {shown([rng])}."
        raise invalid("rng", message) from None


def check_integer(parameter: str, value: Any, low: int, high: float = math.inf) -> int:
    """Return an integer from ``low`` to ``high``, or raise DataError."""
    number = _integer(value)
    if number is None or not low <= number <= high:
        rule = f"of at least {low:,}" if high == math.inf else f"from {low:,} to {high:,}"
        raise invalid(parameter, f"{_words(parameter)} must be an integer {rule}: got {shown([value])}.")
    return number


def _words(parameter: str) -> str:
    """Write a parameter in words: ``Number of items``."""
    return re.sub("^n_", "number of ", parameter).replace("_", " ").capitalize()


def check_choice(parameter: str, value: Any, choices: Sequence[str], of: str = "") -> str:
    """Return one of some choices, or raise DataError."""
    if not isinstance(value, str) or value not in choices:
        raise invalid(parameter, f"Unknown {parameter} {shown([value])}{of}.", hint=f"Use one of {shown(choices)}.")
    return value


def check_n_resamples(n: Any) -> int:
    """Return a number of resamples, or raise DataError."""
    return check_integer("n_resamples", n, 1, _MOST_RESAMPLES)


def check_real(
    parameter: str, value: Any, rule: str = "from 0 to 1", holds: Condition = lambda p: 0 <= p <= 1, hint: str = ""
) -> float:
    """Return a real number for which a rule holds as a float, or raise DataError."""
    if not is_real(value) or isinstance(value, bool) or not holds(value):
        raise invalid(parameter, f"{_words(parameter)} must be {rule}: got {shown([value])}.", hint=hint)
    return float(value)


def check_level(confidence_level: float) -> float:
    """Return a confidence level as a float, or raise DataError."""
    end, hint = _CLOSEST_LEVEL, "Pass a probability such as 0.95."
    rule = f"between {end:g} and 1 - {end:g}"
    return check_real("confidence_level", confidence_level, rule, lambda p: end < p < 1 - end, hint)


def category_shares(prevalence: Any, m: int | None) -> Floats:
    """Return the share of each of ``m`` categories; None for as many as ``prevalence`` has."""
    try:
        values = np.ones(m or 0) if prevalence is None else np.array([float(share) for share in prevalence])
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    valid = bool(((values >= 0) & (values < np.inf)).all()) and bool(values.any())
    if not valid or m not in (None, len(values)):
        size = "numbers" if m is None else counted(m, "number")
        text = f"Prevalence must be {size}, one for each category, 0 or more and not all 0: got {shown([prevalence])}."
        raise invalid("prevalence", text)
    shares: Floats = values / values.max()
    shares /= shares.sum()
    return shares


def _integer(value: Any) -> int | None:
    """Return an integer of any type as Python's, None for booleans and values that are no integers."""
    try:
        return None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return None
