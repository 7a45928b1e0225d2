"""Sample: the items that count, what each of them stands for, and how they were drawn."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dhkappa.core.items import Ballots
from dhkappa.core.labels import Integers, Label, NotALabelError, plain
from dhkappa.core.patterns import Patterns
from dhkappa.core.tally import Tally
from dhkappa.errors import DataError, counted, shown

PANELS = ("fixed", "drawn")
Pool: TypeAlias = int | Mapping[Any, int] | None
"""The size of the pool that items were drawn from: in all, or by stratum."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Items that do not count, by the first reason that applies."""

    no_votes: int = 0
    one_vote: int = 0
    no_label: int = 0
    no_weight: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.no_votes + self.one_vote + self.no_label + self.no_weight

    def why(self) -> str:
        """Say how many for each reason."""
        reasons = (
            (self.no_votes, "no votes"),
            (self.one_vote, "one vote"),
            (self.no_label, "no suggested label"),
            (self.no_weight, "weight 0"),
        )
        return ", ".join(f"{number:,} with {what}" for number, what in reasons if number)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Items drawn together: n of the ``size`` that the pool holds, or None where that is not known."""

    name: Label | None
    n: int
    size: int | None

    @property
    def fraction(self) -> Fraction:
        """The share of the pool that was drawn; 0 where the pool has no known end."""
        return Fraction(self.n, self.size) if self.size else Fraction(0)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Eligible items as patterns, with the weight that each carries.

    Attributes
    ----------
    categories : the m categories, in the order of codes
    patterns : the eligible patterns, K rows; ``items`` counts items
    dropped : items that are not eligible
    mass : (K,) weight of all items of a pattern, in whole units; only ratios matter
    stratum : (K,) place in ``strata``
    strata : one at least; a sample that is not stratified has one, without a name
    panel : ``"fixed"``, or ``"drawn"`` where the votes on an item are chance too
    remarks : as of the tally
    """

    categories: tuple[Label, ...]
    patterns: Patterns
    dropped: Dropped
    mass: npt.NDArray[Any]
    stratum: Integers
    strata: tuple[Stratum, ...]
    panel: str = "fixed"
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of eligible items."""
        return int(self.patterns.items.sum())

    @property
    def weighted(self) -> bool:
        """Whether items count differently."""
        return self.mass is not self.patterns.items

    @property
    def n_effective(self) -> float:
        """How many items that weigh the same would tell as much: the squared sum of weights over the sum of squares."""
        if not self.weighted:
            return float(self.n)
        largest = int(self.mass.max())
        mass = np.array([value / largest for value in self.mass.tolist()])  # of integers, whatever their size
        return float(mass.sum() ** 2 / (mass**2 / self.patterns.items).sum())

    @property
    def designed(self) -> bool:
        """Whether anything is known of how items were drawn but that it was at random."""
        return self.weighted or len(self.strata) > 1 or self.strata[0].size is not None

    @property
    def other_votes(self) -> bool:
        """Whether errors cover which votes an item got: the panel was drawn, and the pool of items has an end."""
        return self.panel == "drawn" and any(part.size for part in self.strata)

    def merged(self) -> Sample:
        """Return each pattern once where items are all alike, in an order that only the patterns decide."""
        if self.weighted or len(self.strata) > 1:
            return self  # already so
        patterns = self.patterns.merged()
        return replace(self, patterns=patterns, mass=patterns.items, stratum=np.zeros(len(patterns), np.int8))


def sample_of(
    tally: Tally,
    labeler: str | None = None,
    *,
    labeled: bool = True,
    pool: Pool = None,
    panel: str = "fixed",
) -> Sample:
    """Return the eligible items of a tally: with two votes or more and, if ``labeled``, a suggested label.

    ``labeler`` chooses one of several; ``pool`` and ``panel`` are those of ``dh_kappa``.
    """
    rows = tally.rows(labeler, labeled)
    patterns, stratum, weight = rows.patterns, rows.stratum, rows.weight
    keep, dropped = eligible(patterns, labeled, weight)
    if dropped.total:
        patterns = patterns.take(keep)
        stratum = None if stratum is None else stratum[keep]
        weight = None if weight is None else weight[keep]
    sample = drawn(tally.categories, patterns, dropped, stratum, tally.strata, weight, pool, panel)
    return replace(sample, remarks=tally.remarks)


def drawn(
    categories: tuple[Label, ...],
    patterns: Patterns,
    dropped: Dropped,
    stratum: Integers | None = None,
    names: Sequence[Label] = (),
    weight: npt.NDArray[np.float64] | None = None,
    pool: Pool = None,
    panel: str = "fixed",
) -> Sample:
    """Return a sample of eligible patterns; (K,) ``stratum`` is a place in ``names``."""
    if not isinstance(panel, str) or panel not in PANELS:
        raise DataError(f"panel must be one of {shown(PANELS)}: got {shown([panel])}.")
    pool = own_pool(pool)
    strata = _strata(patterns.items, stratum, names, pool, weight is not None)
    if panel == "drawn" and pool is not None:
        few = int(patterns.items[patterns.vote_totals() < 3].sum())
        if few:
            raise DataError(
                f"panel='drawn' needs three votes on every item, and {counted(few, 'item')} "
                f"{'has' if few == 1 else 'have'} two: leave such items out, or pass panel='fixed'."
            )
    place = np.zeros(len(patterns), np.int8) if stratum is None else stratum
    mass = _mass(patterns.items, place, weight, strata if isinstance(pool, Mapping) else None)
    return Sample(categories, patterns, dropped, mass, place, strata, panel)


def eligible(
    patterns: Patterns, labeled: bool = True, weight: npt.NDArray[np.float64] | None = None
) -> tuple[npt.NDArray[np.bool_], Dropped]:
    """Return (K,) which patterns count, and how many items do not."""
    n_votes, items = patterns.vote_totals(), patterns.items
    few = n_votes < 2
    bare = ~few & (patterns.suggested < 0) if labeled else np.zeros_like(few)
    light = ~few & ~bare & (weight == 0) if weight is not None else np.zeros_like(few)
    lost = [int(items[rows].sum()) for rows in (n_votes == 0, n_votes == 1, bare, light)]
    return ~(few | bare | light), Dropped(*lost)


def _strata(
    items: npt.NDArray[np.int64],
    stratum: Integers | None,
    names: Sequence[Label],
    pool: Pool,
    weighted: bool,
) -> tuple[Stratum, ...]:
    """Return the strata that items are in, with the sizes that ``pool`` gives them."""
    if stratum is None:
        if isinstance(pool, Mapping):
            raise DataError("pool gives a size for each stratum, but strata= is absent: pass the stratum of each item.")
        if pool is not None and weighted:
            raise DataError(
                "pool= as one size is for items drawn with equal chances: with weights leave it out, "
                "or pass strata= and the size of each stratum."
            )
        n = int(items.sum())
        return (Stratum(None, n, None if pool is None else _size(pool, n, "")),)
    if pool is not None and not isinstance(pool, Mapping):
        raise DataError(
            f"pool must map each stratum to its size, such as {{{shown(names[:1])}: 1000}}: "
            f"got {shown([pool]) if isinstance(pool, (int, float, str)) else f'a {type(pool).__name__}'}."
        )
    if pool is not None and weighted:
        raise DataError("weights= and pool= both say how much the items of a stratum count: pass one of them.")
    if pool is not None:
        pool = {_name(name): size for name, size in pool.items()}
    numbers = np.zeros(len(names), np.int64)
    np.add.at(numbers, stratum, items)  # bincount would add floats, which are not exact beyond 2^53
    found = []
    for name, n in zip(names, numbers.tolist(), strict=True):
        size = None if pool is None else _size(_of_stratum(pool, name), n, f" of stratum {name!r}")
        if n == 1 and size != 1:
            raise DataError(
                f"stratum {name!r} has one eligible item, which cannot show how far items differ: "
                "join it with another stratum."
            )
        if n == 0 and (size or pool is None):
            raise DataError(
                f"stratum {name!r} has no eligible item, so the sample cannot speak for it: "
                "join it with another stratum, or leave its items out."
            )
        found.append(Stratum(name, n, size))
    others = {} if pool is None else {name: size for name, size in pool.items() if name not in names}
    left = [name for name, size in others.items() if _size(size, 0, f" of stratum {shown([name])}")]
    if left:
        raise DataError(
            f"pool names {counted(len(left), 'stratum')} without items in the data ({shown(left, 3)}): "
            "the sample cannot speak for them; join them with others, or leave them out."
        )
    return tuple(found)


def _name(stratum: Any) -> Any:
    """Return what a stratum is called, for an enum member as for its name."""
    try:
        return plain(stratum)
    except NotALabelError:
        return stratum


def own_pool(pool: Any) -> Pool:
    """Return sizes as Python's own numbers, where they are whole, that nobody else can change."""
    to_dict = getattr(pool, "to_dict", None)  # of a pandas Series, such as value_counts() of the whole data
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


def _of_stratum(pool: Mapping[Any, int], name: Label) -> Any:
    if name not in pool:
        raise DataError(f"pool has no size for stratum {name!r}: it names {shown(pool) or 'none'}.")
    return pool[name]


def _size(value: Any, n: int, whose: str) -> int:
    """Check the size of a pool that n items were drawn from."""
    size = value if type(value) is int else -1
    if size < 0:
        raise DataError(f"pool{whose} must be a whole number of items: got {shown([value])}.")
    if size < n:
        raise DataError(
            f"pool{whose} holds {counted(size, 'item')} but the sample has {n:,}: "
            "pass the number of items in the whole data set that the sample was drawn from."
        )
    return size


def _mass(
    items: npt.NDArray[np.int64],
    stratum: Integers,
    weight: npt.NDArray[np.float64] | None,
    strata: tuple[Stratum, ...] | None,
) -> npt.NDArray[Any]:
    """Return (K,) items times their weight, in whole units: exact, as every float is a fraction."""
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


def item_sample(ballots: Ballots, labeler: str, pool: Pool = None) -> tuple[Sample, npt.NDArray[np.int64]]:
    """Return the eligible items of a labeler, a pattern each, and their places among all items."""
    if labeler not in ballots.suggested:
        raise DataError(f"labeler {labeler!r} is not in the data. Labelers: {shown(ballots.suggested, 10)}.")
    patterns, weight, stratum = ballots.patterns(labeler), ballots.weight, ballots.stratum
    keep, dropped = eligible(patterns, weight=weight)
    rows = np.flatnonzero(keep)
    weight = None if weight is None else weight[rows]
    stratum = None if stratum is None else stratum[rows]
    return drawn(ballots.categories, patterns.take(rows), dropped, stratum, ballots.strata, weight, pool), rows
