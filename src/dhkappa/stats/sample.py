"""Sample: the eligible items, their weights, and the design they were drawn by."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core import Integers, Label
from dhkappa.core.grouping import LabeledPatterns, Patterns
from dhkappa.errors import DataError, counted, shown

Pool: TypeAlias = int | Mapping[Any, int] | None
"""Number of items in the pool that the sample was drawn from: in all, or by stratum."""

_MOST_RESAMPLES = 10**8


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

    def why(self) -> str:
        """Return the numbers by reason as text."""
        reasons = (
            (self.no_votes, "no votes"),
            (self.one_vote, "one vote"),
            (self.no_label, "no suggested label"),
            (self.no_weight, "weight 0"),
        )
        return ", ".join(f"{number:,} with {what}" for number, what in reasons if number)


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
    """Eligible items as K patterns, with weights and strata.

    Attributes
    ----------
    categories : the m categories, in the order of codes
    patterns : the eligible patterns, K rows; ``items`` counts items
    excluded : number of items that are not eligible
    mass : (K,) weight of all items of a pattern, as integers; only ratios matter
    stratum : (K,) index into ``strata``
    strata : at least one; a sample without strata has one without a name
    kept : (K,) row of each pattern in the data that the sample was made from; None if patterns were merged
    source_notes : sentences about where the votes came from
    is_merged : whether patterns are distinct and in canonical order
    """

    categories: tuple[Label, ...]
    patterns: Patterns
    excluded: Excluded
    mass: npt.NDArray[Any]
    stratum: Integers
    strata: tuple[Stratum, ...]
    kept: npt.NDArray[np.int64] | None = None
    source_notes: tuple[str, ...] = ()
    is_merged: bool = False

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
        largest = int(self.mass.max())
        mass = np.array([value / largest for value in self.mass.tolist()])  # integers of any size
        return float(mass.sum() ** 2 / (mass**2 / self.patterns.items).sum())

    @property
    def designed(self) -> bool:
        """Whether there are weights, strata or a pool."""
        return self.weighted or len(self.strata) > 1 or self.strata[0].size is not None

    def merged(self) -> Sample:
        """Return each pattern once, in an order that depends on the patterns only."""
        if self.is_merged or self.weighted or len(self.strata) > 1:  # a tally merges within strata and weights
            return self
        patterns = self.patterns.merged()
        stratum = np.zeros(len(patterns), np.int8)
        return replace(self, patterns=patterns, mass=patterns.items, stratum=stratum, kept=None, is_merged=True)


def sample_of(rows: LabeledPatterns, *, labeled: bool = True, pool: Pool = None) -> Sample:
    """Return the eligible items: those with two votes or more and, if ``labeled``, a suggested label."""
    keep, excluded = eligible(rows.patterns, labeled, rows.weight)
    kept = np.flatnonzero(keep)
    patterns, stratum, weight = rows.patterns, rows.stratum, rows.weight
    if excluded.total:
        patterns = patterns.take(kept)
        stratum = None if stratum is None else stratum[kept]
        weight = None if weight is None else weight[kept]
    sample = drawn(rows.categories, patterns, excluded, stratum, rows.strata, weight, pool)
    return replace(sample, kept=kept, source_notes=rows.source_notes)


def drawn(
    categories: tuple[Label, ...],
    patterns: Patterns,
    excluded: Excluded,
    stratum: Integers | None = None,
    names: Sequence[Label] = (),
    weight: npt.NDArray[np.float64] | None = None,
    pool: Pool = None,
) -> Sample:
    """Return a sample of eligible patterns; (K,) ``stratum`` is an index into ``names``."""
    pool = own_pool(pool)
    strata = _strata(patterns.items, stratum, names, pool, weight is not None)
    index = np.zeros(patterns.items.size, np.int8) if stratum is None else stratum
    mass = _mass(patterns.items, index, weight, strata if isinstance(pool, Mapping) else None)
    return Sample(categories, patterns, excluded, mass, index, strata)


def eligible(
    patterns: Patterns, labeled: bool = True, weight: npt.NDArray[np.float64] | None = None
) -> tuple[npt.NDArray[np.bool_], Excluded]:
    """Return (K,) which patterns are eligible, and the number of items that are not."""
    n_votes, items = patterns.vote_totals(), patterns.items
    few = n_votes < 2
    bare = ~few & (patterns.suggested < 0) if labeled else np.zeros_like(few)
    light = ~few & ~bare & (weight == 0) if weight is not None else np.zeros_like(few)
    lost = [int(items[rows].sum()) for rows in (n_votes == 0, n_votes == 1, bare, light)]
    return ~(few | bare | light), Excluded(*lost)


def _strata(
    items: npt.NDArray[np.int64], stratum: Integers | None, names: Sequence[Label], pool: Pool, weighted: bool
) -> tuple[Stratum, ...]:
    """Return the strata with the sizes that ``pool`` gives them."""
    _check_design(stratum is not None, names, pool, weighted)
    if stratum is None:
        n = int(items.sum())
        return (Stratum(None, n, None if pool is None else _size(pool, n)),)
    sizes = {_name(name): size for name, size in pool.items()} if isinstance(pool, Mapping) else None
    numbers = np.zeros(len(names), np.int64)
    np.add.at(numbers, stratum, items)  # bincount adds floats, which are not exact beyond 2^53
    found = []
    for name, n in zip(names, numbers.tolist(), strict=True):
        if sizes is not None and name not in sizes:
            raise _pool_error(
                "pool-stratum-missing",
                f"pool has no size for stratum {name!r}. Strata in pool: {shown(sizes) or 'none'}.",
                "Add its number of items to $pool.",
            )
        size = None if sizes is None else _size(sizes[name], n, name)
        if n == 1 and size != 1:
            raise _strata_error("stratum-one-item", f"Stratum {name!r} has one eligible item; its variance is unknown.")
        if n == 0 and (size or sizes is None):
            raise _strata_error("stratum-empty", f"Stratum {name!r} has no eligible item.")
        found.append(Stratum(name, n, size))
    left = [name for name, size in (sizes or {}).items() if name not in names and _size(size, 0, name)]
    if left:
        raise _pool_error(
            "pool-unknown-stratum",
            f"pool names {counted(len(left), 'stratum')} without items in the data: {shown(left, 3)}.",
            "Merge them with other strata, or remove them from $pool.",
        )
    return tuple(found)


def _check_design(stratified: bool, names: Sequence[Label], pool: Pool, weighted: bool) -> None:
    """Raise DataError if pool, strata and weights do not go together."""
    by_stratum = isinstance(pool, Mapping)
    if pool is None:
        return
    if by_stratum and not stratified:
        raise _pool_error(
            "pool-without-strata", "pool has a size for each stratum, but there are no strata.", "Pass $strata too."
        )
    if stratified and not by_stratum:
        raise _pool_error(
            "pool-not-by-stratum",
            f"With strata, pool must map each stratum to its size, but is {shown([pool])}.",
            f"Pass a mapping such as {{{shown(names[:1])}: 1000}}.",
        )
    if weighted:
        raise _pool_error(
            "pool-with-weights",
            "sample_weight and pool cannot be combined.",
            "Leave out $sample_weight or $pool. With $strata, $pool sets the weights.",
        )


def _pool_error(code: str, message: str, hint: str) -> DataError:
    return DataError(message, code=code, parameter="pool", hint=hint)


def _strata_error(code: str, message: str) -> DataError:
    return DataError(message, code=code, parameter="strata", hint="Merge it with another stratum, or remove its items.")


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
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return value if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return value


def _size(value: Any, n: int, stratum: Label | None = None) -> int:
    """Return a checked pool size, of which n items were sampled."""
    whose = "" if stratum is None else f" of stratum {shown([stratum])}"
    if type(value) is not int or value < 0:
        raise _pool_error(
            "invalid-pool-size",
            f"pool{whose} must be a non-negative integer, but is {shown([value])}.",
            "Pass the number of items in the pool.",
        )
    if value < n:
        raise _pool_error(
            "pool-too-small",
            f"pool{whose} has {counted(value, 'item')}, fewer than the {n:,} in the sample.",
            "Pass the number of items in the whole data set that the sample was drawn from.",
        )
    return value


def _mass(
    items: npt.NDArray[np.int64],
    stratum: Integers,
    weight: npt.NDArray[np.float64] | None,
    strata: tuple[Stratum, ...] | None,
) -> npt.NDArray[Any]:
    """Return (K,) items times their weight as integers, which is exact: every float is a fraction."""
    if strata is not None:
        ratios = [Fraction(part.size or 0, part.n or 1).as_integer_ratio() for part in strata]
        place: Integers = stratum
    elif weight is not None:
        values, place = np.unique(weight, return_inverse=True)
        ratios = [value.as_integer_ratio() for value in values.tolist()]
    else:
        return items
    if not len(items) or len(set(ratios)) == 1:
        return items
    unit = math.lcm(*{below for _, below in ratios})
    whole = [above * (unit // below) for above, below in ratios]
    common = math.gcd(*whole)
    whole = [value // common for value in whole]
    integer: Any = np.int64 if max(whole) * int(items.sum()) < 2**62 else object
    mass: npt.NDArray[Any] = np.array(whole, integer)[place] * items.astype(integer)
    return mass


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a random generator from a seed, a generator or None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise DataError(
            f"rng must be a non-negative integer, a numpy Generator or None, but is {shown([rng])}.",
            code="invalid-rng",
            parameter="rng",
        ) from None


def check_n_resamples(n: Any) -> int:
    """Return a checked number of resamples."""
    try:
        number = -1 if isinstance(n, (bool, np.bool_)) else operator.index(n)
    except TypeError:
        number = -1
    if not 1 <= number <= _MOST_RESAMPLES:
        raise DataError(
            f"n_resamples must be an integer from 1 to {_MOST_RESAMPLES:,}, but is {shown([n])}.",
            code="invalid-n-resamples",
            parameter="n_resamples",
        )
    return number
