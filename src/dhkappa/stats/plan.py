"""How many items and votes to ask for, so that the interval of kappa is as narrow as wanted."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import is_real
from dhkappa.errors import DataError, counted, shown
from dhkappa.stats.influence import extremes, influence
from dhkappa.stats.intervals import Basis, beta_interval, check_level, written
from dhkappa.stats.notes import Note
from dhkappa.stats.result import Kappa
from dhkappa.stats.terms import Numbers, Terms, terms
from dhkappa.stats.variance import Unseen, unseen_items
from dhkappa.stats.variance import variance as drawn_variance
from dhkappa.table import Table

_TRADE = range(2, 8)  # votes on an item that the trade compares
_MOST = 10**12
_MOST_OF_POOL = 2**62
_MOST_CATEGORIES = _MOST_VOTES = 1_000
_SMALL_PILOT = 100
_ANY_NUMBER = "a pilot with four votes on at least half of its items can tell for any number"
_NOTHING = 1e-24  # a variance below this is rounding
_NEEDS = (
    "plan needs to know what to expect: pass pilot=, the kappa of some items, or accuracy=, labeler= and categories="
)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How many items and votes give an interval of the half-width asked for.

    Attributes
    ----------
    votes : votes on an item; the mean of the pilot where its items have different numbers
    sigma : sqrt(n) times the standard error of n items
    items : items whose interval has the half-width if they vary as expected: about every second sample will do
    items_assured : items with which the share ``assurance`` of samples will do
    total_votes : votes on ``items`` items
    kappa : kappa of the pilot or of the assumptions
    half_width, level, assurance, pool : as asked for
    trade : the first five for other numbers of votes on an item, a row each
    assumes : what the plan was computed from, in words
    notes : what to know about it
    """

    votes: float
    sigma: float
    items: int
    items_assured: int
    total_votes: int
    kappa: float
    half_width: float
    level: float
    assurance: float
    pool: int | None
    trade: Table
    assumes: str
    notes: tuple[Note, ...]

    @property
    def cheapest(self) -> int:
        """The votes on an item, of those in ``trade``, that need fewest votes in all."""
        votes: int = min(self.trade, key=operator.itemgetter("total_votes", "votes"))["votes"]
        return votes

    def __repr__(self) -> str:
        notes = f"; {counted(len(self.notes), 'note')}" if self.notes else ""
        return (
            f"{counted(self.items, 'item')} x {self.votes:.4g} votes for kappa {self.kappa:.3f} "
            f"+- {self.half_width:g} at {written(self.level)}, {self.items_assured:,} to be {self.assurance:.4g} sure "
            f"({self.assumes}{notes})"
        )

    def _repr_html_(self) -> str:
        import html

        notes = "".join(f"<li>{html.escape(note.text)}</li>" for note in self.notes)
        return f"<p>{html.escape(repr(self))}</p>{self.trade._repr_html_()}" + (f"<ul>{notes}</ul>" if notes else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; ``trade`` is a list with a dict for each row."""
        numbers = ("votes", "sigma", "items", "items_assured", "total_votes", "cheapest", "kappa")
        asked = ("half_width", "level", "assurance", "pool", "assumes")
        return {
            **{name: getattr(self, name) for name in (*numbers, *asked)},
            "trade": self.trade.to_dicts(),
            "notes": [note.to_dict() for note in self.notes],
        }


def plan_of(
    half_width: float,
    *,
    pilot: Kappa | None = None,
    categories: int | None = None,
    prevalence: Sequence[float] | None = None,
    accuracy: float | None = None,
    labeler: float | None = None,
    votes: int | None = None,
    pool: int | None = None,
    level: float = 0.95,
    assurance: float = 0.9,
) -> Plan:
    r"""Find how many items to have voted on, so that the interval of kappa has a half-width.

    Either from a ``pilot``, or from assumed accuracies: each vote is right with rate ``accuracy`` and each
    suggested label with rate ``labeler``, and otherwise names any other category, independently of all else.

    ``items`` is the least n at which the default (beta) interval of a sample with this kappa and the standard
    error :math:`\sigma / \sqrt n` has the half-width. As samples differ, about half of them will have a wider
    one. ``items_assured`` therefore takes the variance as
    :math:`\sigma^2 + z \sigma \sqrt{(\phi^2 - \sigma^2)(1/n + 1/n_p)}`, with z the normal quantile of
    ``assurance``, :math:`\phi` the largest influence that an item can have (times the largest weight, where a
    pilot has weights, of mean 1), which bounds how far the mean of squared influence varies, and :math:`n_p` the
    items of the pilot, which knows :math:`\sigma` no better
    (without a pilot, :math:`1/n_p` is 0). Asked for 0.9, simulated samples gave 0.81 to 1, and 0.77 at worst
    where a category is rare; ``items`` gave 0.37 to 0.6.

    The influence of an item is a mean over pairs of its votes, so with N votes on an item

    .. math:: \sigma^2(N) = \left(z_2 + 2 (N - 2) z_1 + \tbinom{N - 2}{2} z_0\right) / \tbinom N 2

    exactly, where :math:`z_k` is the mean product of the influence of two pairs that share k votes. Assumptions
    give all three, and so does a pilot with four votes on at least half of its items, from these; ``trade`` of one
    with three shows N = 2 and 3 only. Without ``votes``, the plan itself is for votes as in the pilot, from all items.

    Parameters
    ----------
    half_width
        Half the length of the interval, such as 0.05.
    pilot
        The kappa of some items, drawn and voted on as the others will be.
    categories, prevalence
        How many categories there are, or how often each is the truth; equally often by default. Of prevalence
        only ratios matter.
    accuracy, labeler
        How often a vote, and a suggested label, is right.
    votes
        Votes on an item, 2 or more: by default those of the pilot or, from assumptions, the number that needs
        fewest votes in all.
    pool
        Items in the whole data set, if it is their kappa that is wanted: n becomes n / (1 + n / pool).
    level, assurance
        Level of the interval, and how surely ``items_assured`` gives the half-width.

    Examples
    --------
    >>> planned = plan_of(0.05, categories=5, accuracy=0.9, labeler=0.85, votes=3)
    >>> planned.items, planned.items_assured, planned.cheapest
    (562, 621, 2)
    >>> planned
    562 items x 3 votes for kappa 0.611 +- 0.05 at 0.95, 621 to be 0.9 sure (5 categories, accuracy 0.9, labeler 0.85)
    """
    goal = Goal(
        half_width=_number("half_width", half_width, "above 0 and at most 1, such as 0.05", lambda h: 0 < h <= 1),
        level=check_level(level),
        assurance=_number("assurance", assurance, "between 0 and 1, such as 0.9", lambda p: 0 < p < 1),
        pool=None if pool is None else _whole("pool", pool, _MOST_OF_POOL),
    )
    votes = None if votes is None else _whole("votes", votes, _MOST_VOTES)
    assumed = {"accuracy": accuracy, "labeler": labeler, "categories": categories, "prevalence": prevalence}
    given = [name for name, value in assumed.items() if value is not None]
    if pilot is not None:
        if given:
            raise DataError(f"pilot is given, which shows what to expect: leave out {' and '.join(given)}.")
        return _from_pilot(pilot, votes, goal)
    if accuracy is None or labeler is None or (categories is None and prevalence is None):
        raise DataError(f"{_NEEDS}: got {' and '.join(given) or 'none of them'}.")
    a, q = (_number(name, assumed[name], "from 0 to 1", lambda p: 0 <= p <= 1) for name in ("accuracy", "labeler"))
    return _from_model(_shares(categories, prevalence), a, q, votes, goal)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for."""

    half_width: float
    level: float
    assurance: float
    pool: int | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect.

    Attributes
    ----------
    kappa, E : the estimate, and the differential expected by chance
    least, greatest : items that would move kappa down and up the most; of n items, each has 1/n of its share
    unseen : likewise, the largest share that one more item might have
    most : the largest squared influence that an item can have, with its weight
    seen : on how many items this was seen
    """

    kappa: float
    E: float
    least: Unseen
    greatest: Unseen
    unseen: float
    most: float
    seen: float = math.inf

    def half_width(self, n: int, variance: float, level: float) -> float:
        """Return half the length of the beta interval of n items; their mean influence is 0, so n - 1 are free."""
        from scipy.special import betaincinv  # quicker, and asked often here

        low, high = beta_interval(self._basis(n, variance), 1 - level, betaincinv)
        return (high - low) / 2

    def _basis(self, n: int, variance: float) -> Basis:
        ends = self.least.phi, self.greatest.phi, self.least.share / n, self.greatest.share / n
        return Basis(self.kappa, self.E, n, (n - 1) * variance, *ends, self.unseen / n, n - 1)

    def row(self, votes: float, variance: float, goal: Goal) -> dict[str, Any]:
        """Return the items and votes that a variance asks for."""
        from scipy.special import ndtri

        z = float(ndtri(goal.assurance))

        def assured(n: int) -> float:
            doubt = math.sqrt(variance * max(self.most - variance, 0.0) * (1 / n + 1 / self.seen))
            return self.half_width(n, max(variance + z * doubt, 0.0), goal.level)

        items = _least(lambda n: self.half_width(n, variance, goal.level), goal)
        return {
            "votes": votes,
            "sigma": math.sqrt(variance),
            "items": items,
            "items_assured": _least(assured, goal),
            "total_votes": math.ceil(items * votes),
        }

    def plan(
        self, own: dict[str, Any], rows: list[dict[str, Any]], goal: Goal, assumes: str, *notes: Note, part: str = ""
    ) -> Plan:
        """Put a plan together; ``part`` says which items of a pilot the trade is from, where it is not all."""
        title = f"Items for a half-width of {goal.half_width:g} at {written(goal.level)}, by votes on an item{part}"
        trade = Table({name: [row[name] for row in rows] for name in own}, title=title)
        asked = {name: getattr(goal, name) for name in ("half_width", "level", "assurance", "pool")}
        return Plan(**own, **asked, kappa=self.kappa, trade=trade, assumes=assumes, notes=notes)


def _least(half_width: Callable[[int], float], goal: Goal) -> int:
    """Return the least number of items whose interval is narrow enough; more items make it narrower."""
    few, enough = 1, 2
    while half_width(enough) > goal.half_width:
        few, enough = enough, 2 * enough
        if enough > _MOST:
            raise DataError(f"half_width must be wide enough for {_MOST:,} items or fewer: got {goal.half_width!r}.")
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if half_width(middle) <= goal.half_width else (middle, enough)
    return enough if goal.pool is None else max(2, -(-enough * goal.pool // (enough + goal.pool)))


@dataclass(frozen=True, slots=True)
class Population:
    """Shares and sums of all items there could be, as in the paper."""

    C: Numbers
    L: Numbers
    D: Any
    E: Any
    C_E: Any
    kappa: Any


def pair_influence(of: Population | Terms, code: npt.NDArray[Any], label: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Return v and s of votes for ``code`` on items with ``label``.

    Two votes x and y, as an item of their own, have influence ``v_x + v_y``, plus ``s_x`` if they agree.
    """
    eps = (of.C * (2 * of.L - 1))[code] + (of.C**2)[label] - of.E - of.C_E
    return -(of.D / 2 + (1 - of.kappa) * eps) / (1 - of.E), np.where(code == label, 1, -1) / (1 - of.E)


def pair_products(start: npt.NDArray[Any], weight: Numbers, v: Numbers, s: Numbers, drawn: int) -> tuple[Numbers, ...]:
    """Return (K,) z_0, z_1, z_2 of rows ``start[k]:start[k + 1]`` of the other arguments.

    ``weight`` counts the votes of an item for each category, and ``drawn`` is 1: no vote is drawn twice. Or it
    has their probabilities, and ``drawn`` is 0. A mean that needs more votes than there are is 0.
    """

    def rows(entries: Numbers) -> Numbers:
        sums: Numbers = np.add.reduceat(entries, start[:-1])
        return sums

    length = np.diff(start)
    size = rows(weight)
    N, V, V2 = (np.repeat(total, length) for total in (size, rows(weight * v), rows(weight * v * v)))
    same = 2 * v + s
    # Of one vote with all others: the sum of influence, and of its squares.
    sums = (N - 2 * drawn) * v + V + (weight - drawn) * s
    squares = N * v**2 + 2 * v * V + V2 + weight * (same**2 - 4 * v**2) - drawn * same**2
    two = rows(weight * squares)
    one = rows(weight * sums**2) - drawn * two
    none = rows(weight * sums) ** 2 - drawn * (2 * two + 4 * one)
    found, ways = [two / (size * (size - drawn))], size * (size - drawn)
    for total, taken in ((one, 2), (none, 3)):
        left = size - taken * drawn
        ways = ways * np.where(left > 0, left, 1)
        found.insert(0, np.where(left > 0, total, 0) / ways)
    return tuple(found)


def variance(products: Sequence[Any], N: int) -> Any:
    """Return sigma^2 with N votes on an item: the mean over all its pairs of pairs."""
    none, one, two = products
    return (2 * two + 4 * (N - 2) * one + (N - 2) * (N - 3) * none) / (N * (N - 1))


def model(prevalence: Numbers, a: Any, q: Any) -> tuple[Population, list[Any], tuple[Any, Any]]:
    """Return a population with votes right at rate a and labels at rate q, its z_0, z_1, z_2, and extreme influence."""
    m = len(prevalence)
    wrong, strange = (1 - a) / (m - 1), (1 - q) / (m - 1)
    C = prevalence * (a - wrong) + wrong
    L = prevalence * (q - strange) + strange
    C_E = (C**2 * L).sum()
    E = 2 * C_E - (C**2).sum()
    D = 2 * (q * a**2 + (1 - q) * wrong**2) - a**2 - (m - 1) * wrong**2
    if E == 1:
        raise DataError("prevalence must not make every vote and label one category: kappa is undefined then.")
    whole = Population(C, L, D, E, C_E, (D - E) / (1 - E))
    label, code = np.repeat(np.arange(m), m), np.tile(np.arange(m), m)
    v, s = pair_influence(whole, code, label)
    found = [0 * D] * 3
    for share in set(prevalence.tolist()) - {0}:
        alike = np.flatnonzero(prevalence == share)  # what is equally often true is alike: one speaks for all
        right = np.arange(m) == alike[0]
        p, suggested = np.where(right, a, wrong), np.where(right, q, strange)
        products = pair_products(np.arange(0, m * m + 1, m), np.tile(p, m), v, s, drawn=0)
        found = [old + share * len(alike) * (suggested * new).sum() for old, new in zip(found, products, strict=True)]
    occurs = (C + L > 0).astype(np.bool_)
    alike_votes = (2 * v + s)[occurs[label] & occurs[code]]
    return whole, found, (alike_votes.min(), alike_votes.max())


def observed(seen: Terms, known: int) -> list[Any]:
    """Return z_0, z_1, z_2 over the items of a pilot that have ``known`` votes or more."""
    patterns = seen.patterns
    v, s = pair_influence(seen, patterns.code, np.repeat(seen.suggested, np.diff(patterns.start)))
    one = seen.c * 0 + 1  # a Fraction where the terms are
    products = pair_products(patterns.start, patterns.votes.astype(np.int64) * one, v, s, drawn=1)
    enough = (patterns.vote_totals() >= known) * (seen.t * 0 + 1)
    return [seen.mean(enough * product) / seen.mean(enough) for product in products]


def _from_model(shares: npt.NDArray[np.float64], a: float, q: float, votes: int | None, goal: Goal) -> Plan:
    """Plan from assumptions."""
    whole, products, (least, greatest) = model(shares, a, q)
    ends = Unseen(float(least), 1.0), Unseen(float(greatest), 1.0)
    outlook = Outlook(float(whole.kappa), float(whole.E), *ends, 1.0, max(float(least) ** 2, float(greatest) ** 2))
    variances = {N: float(variance(products, N)) for N in sorted({*_TRADE, votes or 2})}
    if outlook.kappa < 1 and min(variances.values()) <= _NOTHING:
        raise DataError("accuracy and labeler leave nothing to chance, so no sample could show how far kappa varies.")
    rows = [outlook.row(N, spread, goal) for N, spread in variances.items()]
    planned = outlook.plan(rows[0], rows, goal, f"{counted(len(shares), 'category')}, accuracy {a:g}, labeler {q:g}")
    return replace(planned, **next(row for row in rows if row["votes"] == (votes or planned.cheapest)))


def _from_pilot(pilot: Kappa, votes: int | None, goal: Goal) -> Plan:
    """Plan from the kappa of some items."""
    if not isinstance(pilot, Kappa) or pilot.metric != "dh":
        raise DataError(f"pilot must be a kappa from dh_kappa, without ordinal weights: got {shown([pilot])}.")
    if pilot.parts is None or pilot.exact is None:
        raise DataError(f"pilot must have a kappa that is defined, but {pilot.reason}")
    n = pilot.n_items
    if math.isnan(pilot.se):
        why = "has one item" if n == 1 else "has items of the same influence only"
        raise DataError(f"pilot {why}, so it cannot show how far kappa varies: add items to it.")
    seen = terms(pilot.sample, pilot.parts)
    totals = seen.patterns.vote_totals()
    known = next(k for k in (4, 3, 2) if 2 * int(seen.items[totals >= k].sum()) >= n)
    if votes and known < 4 and votes > known:
        raise DataError(
            f"votes must be at most {known} with this pilot, as more than half of its items have no more: got {votes}; "
            f"{_ANY_NUMBER}."
        )
    outlook = _outlook(pilot, seen)
    own = n * float(drawn_variance(seen, influence(seen)).endless)  # of items drawn from a pool without end
    scale = own / float(seen.mean(influence(seen) ** 2)) if own > _NOTHING else 0.0
    products = observed(seen, known)
    rows = [
        # Beyond the votes of the pilot, few items may give a variance below 0.
        outlook.row(N, max(scale * float(variance(products, N)), 0.0), goal)
        for N in sorted({*(_TRADE if known == 4 else range(2, known + 1)), votes or 2})
    ]
    mean = Fraction(pilot.n_votes, n)
    panel = float(mean) if mean.denominator > 1 else int(mean)
    chosen = next(row for row in rows if row["votes"] == votes) if votes else outlook.row(panel, own, goal)
    enough = int(seen.items[totals >= known].sum())
    assumes, part = f"pilot of {counted(n, 'item')}", ""
    if enough < n:
        part = f"the {enough:,} of {counted(n, 'item')} of the pilot with {known} votes or more"
        assumes = part if votes else f"all {n:,} items of the pilot, with the votes that they have"
    notes = _notes(pilot, known, part, mixed=not votes)
    return outlook.plan(chosen, rows, goal, assumes, *notes, part=part and f", from {part}")


def _outlook(pilot: Kappa, seen: Terms) -> Outlook:
    """Return what a pilot shows; it was drawn from some pool, and the plan is for one without end."""
    n, far = pilot.n_items, extremes(seen)
    endless = replace(seen.sample, strata=tuple(replace(part, size=None) for part in seen.sample.strata))
    unseen = unseen_items(replace(seen, sample=endless), influence(seen))
    least, greatest = (replace(end, share=n * end.share) for end in unseen.ends(far))
    heaviest = float((seen.weight / seen.items).max()) if seen.sample.weighted else 1.0
    most = (heaviest * max(abs(float(far.low.min())), abs(float(far.high.max())))) ** 2
    return Outlook(pilot.value, float(seen.E), least, greatest, n * unseen.most, most, n)


def _notes(pilot: Kappa, known: int, part: str, mixed: bool) -> Iterator[Note]:
    """Find what to know about a plan from a pilot; ``mixed`` is one for the votes of the pilot as they are."""
    if pilot.n_items < _SMALL_PILOT:
        text = (
            f"{counted(pilot.n_items, 'item')} show only roughly how far kappa varies: the number to be sure of it "
            "allows for that."
        )
        yield Note("small-pilot", text)
    if pilot.exact == 1:
        yield Note("flawless-pilot", "Every vote of the pilot is the suggested label: the plan holds if that goes on.")
    if known < 4:
        yield Note("trade-cut", f"The comparison stops at {known} votes on an item: only {_ANY_NUMBER}.")
    if part:
        text = ", and the plan for votes as in the pilot from all of them: the two need not line up" if mixed else ""
        yield Note("trade-part", f"The comparison is from {part}{text}.")


def _shares(categories: Any, prevalence: Any) -> npt.NDArray[np.float64]:
    """Return how often each category is the truth."""
    m = None if categories is None else _whole("categories", categories, _MOST_CATEGORIES)
    try:
        weights = np.array([float(share) for share in ([1] * (m or 0) if prevalence is None else prevalence)])
    except (TypeError, ValueError, OverflowError):
        weights = np.zeros(0)
    if len(weights) and 0 < weights.max() < math.inf:
        weights = weights / weights.max()
    if not 2 <= len(weights) <= _MOST_CATEGORIES or not (weights >= 0).all() or not 0 < weights.sum() < math.inf:
        raise DataError(f"prevalence must be 2 to {_MOST_CATEGORIES:,} numbers, 0 or more: got {shown([prevalence])}.")
    if m not in (None, len(weights)):
        raise DataError(f"prevalence must have a number for each of {m} categories: got {len(weights)}.")
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def _number(name: str, value: Any, rule: str, holds: Callable[[float], bool]) -> float:
    try:
        number = float(value) if is_real(value) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not holds(number):
        raise DataError(f"{name} must be {rule}: got {shown([value])}.")
    return number


def _whole(name: str, value: Any, most: int) -> int:
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 2 <= number <= most:
        raise DataError(f"{name} must be a whole number from 2 to {most:,}: got {shown([value])}.")
    return number
