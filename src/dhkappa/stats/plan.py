"""Plan the number of items and votes for a confidence interval of a given half-width."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dhkappa.core import Array, Floats
from dhkappa.errors import counted, invalid
from dhkappa.stats.clusters import refuse_clusters
from dhkappa.stats.influence import (
    Terms,
    Unseen,
    basis,
    chance_slopes,
    extremes,
    influence,
    terms,
    unseen_items,
)
from dhkappa.stats.influence import variance as sample_variance
from dhkappa.stats.intervals import LEAST, Basis, ConfidenceInterval, beta_interval, written
from dhkappa.stats.kappa import Estimate
from dhkappa.stats.notes import Note
from dhkappa.stats.sample import Pool, category_shares, check_integer, check_level, check_real
from dhkappa.stats.weights import row_pairs
from dhkappa.table import Display, Table

_VOTES_COMPARED = range(2, 8)
_MAX_ITEMS = 10**12
_MAX_POOL = 2**62
_MAX_CATEGORIES = _MAX_VOTES = 1_000
_HALF_WIDTHS = (0.1, 0.05, 0.03, 0.02, 0.01, 0.005)  # of narrower intervals to plan for
_SMALL_PILOT = 100
_FOUR_VOTES = "A pilot with four votes on at least half of its items has no such limit."
_ROUNDING = 1e-24  # a smaller variance is rounding


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Display):
    """Items and votes for a confidence interval of a given half-width.

    Attributes
    ----------
    votes : votes per item; the mean of the pilot, a float, if its items have different numbers
    sigma : sqrt(n) times the standard error of n items
    items : items at which the interval has the half-width on average; about half of all samples have a longer one
    items_assured : items at which a share ``assurance`` of all samples has at most the half-width
    total_votes : votes on ``items`` items
    kappa : kappa of the pilot or of the assumptions
    half_width, confidence_level, assurance, pool : as requested
    options : the first five attributes for other numbers of votes per item, one row each
    assumes : what the plan is based on
    notes : conditions that change what the plan means
    """

    votes: float
    sigma: float
    items: int
    items_assured: int
    total_votes: int
    kappa: float
    half_width: float
    confidence_level: float
    assurance: float
    pool: int | None
    options: Table
    assumes: str
    notes: tuple[Note, ...]

    @property
    def cheapest(self) -> int:
        """The number of votes per item in ``options`` with the fewest votes in total."""
        votes: int = min(self.options, key=lambda row: (row["total_votes"], row["votes"]))["votes"]
        return votes

    @property
    def distribution(self) -> str:
        """How many votes items have: ``with 3 votes each``, or as in the pilot."""
        if isinstance(self.votes, int):
            return f"with {self.votes} votes each"
        return f"if votes are distributed as in the pilot ({self.votes:.1f} per item on average)"

    def __repr__(self) -> str:
        notes = f"; {counted(len(self.notes), 'note')}" if self.notes else ""
        goal = f"a {written(self.confidence_level, 100)}% CI of {self.kappa:.3f} +- {self.half_width:g}"
        assured = f"{counted(self.items_assured, 'item')} for an assurance of {100 * self.assurance:.4g}%"
        return f"{counted(self.items, 'item')} {self.distribution} for {goal} ({assured}); from {self.assumes}{notes}"

    def _display(self) -> tuple[str, Table, list[str]]:
        return repr(self), self.options, [note.text for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``options`` is a list with one dict per row."""
        found = {part.name: getattr(self, part.name) for part in fields(self)} | {"cheapest": self.cheapest}
        return found | {"options": self.options.to_dicts(), "notes": [note.to_dict() for note in self.notes]}


def plan_items(
    half_width: float,
    *,
    pilot: Estimate | None = None,
    n_categories: int | None = None,
    prevalence: Sequence[float] | None = None,
    annotator_accuracy: float | None = None,
    labeler_accuracy: float | None = None,
    votes: int | None = None,
    pool: int | None = None,
    confidence_level: float = 0.95,
    assurance: float = 0.9,
) -> Plan:
    """Plan from the estimate of a pilot or from assumed accuracies; see ``dhkappa.plan``.

    ``items`` is the smallest n at which the beta interval with this kappa and the standard error sigma / sqrt(n) has
    the half-width. sigma^2 depends on z_k, the mean product of the influence of two pairs of votes that share k votes.
    A pilot gives z_0 if at least half of its items have four votes, and z_1 if they have three.
    """
    goal = Goal(
        half_width=check_real("half_width", half_width, "above 0 and at most 1", lambda h: 0 < h <= 1),
        confidence_level=check_level(confidence_level),
        assurance=check_real("assurance", assurance, "between 0 and 1", lambda p: 0 < p < 1),
        pool=None if pool is None else check_integer("pool", pool, 2, _MAX_POOL),
    )
    votes = None if votes is None else check_integer("votes", votes, 2, _MAX_VOTES)
    assumed: dict[str, Any] = {"annotator_accuracy": annotator_accuracy, "labeler_accuracy": labeler_accuracy}
    assumed |= {"n_categories": n_categories, "prevalence": prevalence}
    given = [name for name, value in assumed.items() if value is not None]
    if pilot is not None:
        if given:
            text = f"A pilot is given together with assumptions ({', '.join(given)})."
            hint = f"Leave out {' and '.join(f'${name}' for name in given)}, or $pilot."
            raise invalid("pilot", text, hint=hint, code="pilot-and-assumptions")
        return _from_pilot(pilot, votes, goal)
    if annotator_accuracy is None or labeler_accuracy is None or (n_categories is None and prevalence is None):
        text = f"A plan needs a pilot or assumptions: got {' and '.join(given) or 'neither'}."
        hint = "Pass $pilot, or $annotator_accuracy, $labeler_accuracy and $n_categories."
        raise invalid("pilot", text, hint=hint, code="pilot-missing")
    a, q = (check_real(name, assumed[name]) for name in ("annotator_accuracy", "labeler_accuracy"))
    m = None if n_categories is None else check_integer("n_categories", n_categories, 2, _MAX_CATEGORIES)
    shares = category_shares(prevalence, m)
    if not 2 <= len(shares) <= _MAX_CATEGORIES:
        raise invalid("prevalence", f"Prevalence must have 2 to {_MAX_CATEGORIES:,} numbers: got {len(shares):,}.")
    return _from_model(shares, a, q, votes, goal)


class Goal(NamedTuple):
    """What was requested."""

    half_width: float
    confidence_level: float
    assurance: float
    pool: int | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is expected of future items; with n items, a share is divided by n."""

    kappa: float
    E: float
    least: Unseen  # item that would lower kappa the most
    greatest: Unseen  # item that would raise kappa the most
    unseen: float  # largest share that one more item might have
    most: float  # largest squared influence of an item, with its weight
    n_pilot: float = math.inf
    bottom: float = LEAST  # lower bound of kappa

    def half_width(self, n: int, variance: float, confidence_level: float) -> float:
        """Return half the length of the beta interval of n items."""
        from dhkappa.stats.special import betaincinv  # faster than our quantile, and called often

        ends = self.least.phi, self.greatest.phi, self.least.share / n, self.greatest.share / n
        known = Basis(self.kappa, self.E, n, (n - 1) * variance, *ends, self.unseen / n, n - 1, self.bottom)
        low, high = beta_interval(known, 1 - confidence_level, betaincinv)
        return (high - low) / 2

    def row(self, votes: float, variance: float, goal: Goal) -> dict[str, Any]:
        """Return the items and votes for one variance; ``items_assured`` adds z standard errors of it."""
        from dhkappa.stats.special import ndtri

        def half_width(n: int, z: float) -> float:
            doubt = math.sqrt(variance * max(self.most - variance, 0.0) * (1 / n + 1 / self.n_pilot)) if z else 0.0
            return self.half_width(n, max(variance + z * doubt, 0.0), goal.confidence_level)

        items, assured = (_least(partial(half_width, z=z), goal) for z in (0.0, float(ndtri(goal.assurance))))
        found = {"votes": votes, "sigma": math.sqrt(variance), "items": items, "items_assured": assured}
        return {**found, "total_votes": math.ceil(items * votes)}

    def plan(
        self, own: dict[str, Any], rows: list[dict[str, Any]], goal: Goal, assumes: str, *notes: Note, part: str = ""
    ) -> Plan:
        """Return a plan; ``part`` says which items of a pilot the options are from, if not from all."""
        title = f"Items for a half-width of {goal.half_width:g} at {written(goal.confidence_level)}, by votes per item"
        options = Table({name: [row[name] for row in rows] for name in own}, title=title + part)
        return Plan(**own, **goal._asdict(), kappa=self.kappa, options=options, assumes=assumes, notes=notes)


def _least(half_width: Callable[[int], float], goal: Goal) -> int:
    """Return the smallest number of items with the half-width, by bisection."""
    few, enough = 1, 2
    while half_width(enough) > goal.half_width:
        few, enough = enough, 2 * enough
        if enough > _MAX_ITEMS:
            text = f"A half-width of {goal.half_width!r} needs more than {_MAX_ITEMS:,} items."
            raise invalid("half_width", text, hint="Increase $half_width.", code="half-width-too-small")
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if half_width(middle) <= goal.half_width else (middle, enough)
    return enough if goal.pool is None else max(2, -(-enough * goal.pool // (enough + goal.pool)))


class Population(NamedTuple):
    """Shares and sums of a population of items, in the paper's notation."""

    C: Array
    L: Array
    D: Any
    E: Any
    C_E: Any
    kappa: Any


def pair_influence(of: Population | Terms, code: Array, label: Array) -> tuple[Array, Array]:
    """Return v and s: two votes x and y, as an item of their own, have influence v_x + v_y, plus s_x if x = y."""
    eps = (of.C * (2 * of.L - 1))[code] + (of.C**2)[label] - of.E - of.C_E
    return -(of.D / 2 + (1 - of.kappa) * eps) / (1 - of.E), np.where(code == label, 1, -1) / (1 - of.E)


def pair_products(start: Array, weight: Array, v: Array, s: Array, drawn: int) -> tuple[Array, ...]:
    """Return (K,) z_0, z_1, z_2 of rows ``start[k]:start[k + 1]`` of the other arguments.

    ``weight`` are the votes of an item by category, with ``drawn`` 1 as no vote is used twice, or their
    probabilities, with ``drawn`` 0. A mean that needs more votes than there are is 0.
    """

    def rows(entries: Array) -> Any:
        return np.add.reduceat(entries, start[:-1])

    length = np.diff(start)
    size = rows(weight)
    N, V, V2 = (np.repeat(total, length) for total in (size, rows(weight * v), rows(weight * v * v)))
    same = 2 * v + s
    # Of one vote with all others: the sum of the influence, and of its squares.
    sums = (N - 2 * drawn) * v + V + (weight - drawn) * s
    squares = N * v**2 + 2 * v * V + V2 + weight * (same**2 - 4 * v**2) - drawn * same**2
    return _products(start, weight, sums, squares, drawn)


def weighted_pair_products(known: Terms) -> tuple[Array, ...]:
    """Return (K,) z_0, z_1, z_2 with agreement weights: two votes x and y have influence ``v_x + v_y + s_xy``."""
    assert known.w is not None
    patterns, w, one_minus_E = known.patterns, known.w, 1 - known.E
    code, weight = patterns.code, patterns.votes.astype(np.float64)
    label = np.repeat(known.suggested, np.diff(patterns.start))
    h, k = chance_slopes(known)
    v = -(known.D / 2 + (1 - known.kappa) * (h[code] + k[label] - known.E - known.C_E)) / one_minus_E
    sums, squares = [], []
    for x, y, first in row_pairs(patterns):
        near = w[code[x], code[y]] * (w[code[x], label[x]] + w[code[y], label[x]] - 1)
        phi, number = v[x] + v[y] + near / one_minus_E, weight[y] - (x == y)  # no vote is used twice
        sums.append(np.add.reduceat(number * phi, first))
        squares.append(np.add.reduceat(number * phi**2, first))
    return _products(patterns.start, weight, np.concatenate(sums), np.concatenate(squares), drawn=1)


def _products(start: Array, weight: Array, sums: Array, squares: Array, drawn: int) -> tuple[Array, ...]:
    """Return z_0, z_1, z_2 from the sum of the influence of one vote with all others, and that of its squares."""

    def rows(entries: Array) -> Any:
        return np.add.reduceat(entries, start[:-1])

    size, two = rows(weight), rows(weight * squares)
    one = rows(weight * sums**2) - drawn * two
    none = rows(weight * sums) ** 2 - drawn * (2 * two + 4 * one)
    found, ways = [two / (size * (size - drawn))], size * (size - drawn)
    for total, taken in ((one, 2), (none, 3)):
        left = size - taken * drawn
        ways = ways * np.where(left > 0, left, 1)
        found.insert(0, np.where(left > 0, total, 0 * total) / ways)
    return tuple(found)


def variance(products: Sequence[Any], N: int) -> Any:
    """Return sigma^2 with N votes per item: the mean over all pairs of pairs of votes."""
    none, one, two = products
    return (2 * two + 4 * (N - 2) * one + (N - 2) * (N - 3) * none) / (N * (N - 1))


def model(prevalence: Array, a: Any, q: Any) -> tuple[Population, list[Any], tuple[Any, Any]]:
    """Return the population for accuracies a of votes and q of labels, its z_0, z_1, z_2, and the extreme influence."""
    m = len(prevalence)
    wrong_vote, wrong_label = (1 - a) / (m - 1), (1 - q) / (m - 1)
    C = prevalence * (a - wrong_vote) + wrong_vote
    L = prevalence * (q - wrong_label) + wrong_label
    C_E = (C**2 * L).sum()
    E = 2 * C_E - (C**2).sum()
    D = 2 * (q * a**2 + (1 - q) * wrong_vote**2) - a**2 - (m - 1) * wrong_vote**2
    if E == 1:
        raise invalid("prevalence", "With this prevalence every vote and label is one category, so kappa is undefined.")
    whole = Population(C, L, D, E, C_E, (D - E) / (1 - E))
    label, code = np.repeat(np.arange(m), m), np.tile(np.arange(m), m)
    v, s = pair_influence(whole, code, label)
    found = [0 * D] * 3
    for share in set(prevalence.tolist()) - {0}:
        alike = np.flatnonzero(prevalence == share)  # categories of equal prevalence have equal products
        right = np.arange(m) == alike[0]
        p, suggested = np.where(right, a, wrong_vote), np.where(right, q, wrong_label)
        products = pair_products(np.arange(0, m * m + 1, m), np.tile(p, m), v, s, drawn=0)
        found = [old + share * len(alike) * (suggested * new).sum() for old, new in zip(found, products, strict=True)]
    occurs = C + L > 0
    unanimous = (2 * v + s)[occurs[label] & occurs[code]]
    return whole, found, (unanimous.min(), unanimous.max())


def observed(known: Terms, n_votes: int) -> list[Any]:
    """Return z_0, z_1, z_2 over the items of a pilot with at least ``n_votes`` votes."""
    patterns = known.patterns
    if known.w is None:
        v, s = pair_influence(known, patterns.code, np.repeat(known.suggested, np.diff(patterns.start)))
        products = pair_products(patterns.start, patterns.votes.astype(v.dtype), v, s, drawn=1)
    else:
        products = weighted_pair_products(known)
    enough = (patterns.vote_totals() >= n_votes).astype(products[0].dtype)
    return [known.mean(enough * product) / known.mean(enough) for product in products]


def _from_model(shares: Floats, a: float, q: float, votes: int | None, goal: Goal) -> Plan:
    """Plan from assumed accuracies."""
    whole, products, (least, greatest) = model(shares, a, q)
    ends = Unseen(float(least), 1.0), Unseen(float(greatest), 1.0)
    outlook = Outlook(float(whole.kappa), float(whole.E), *ends, 1.0, max(float(least) ** 2, float(greatest) ** 2))
    variances = {N: float(variance(products, N)) for N in sorted({*_VOTES_COMPARED, votes or 2})}
    if outlook.kappa < 1 and min(variances.values()) <= _ROUNDING:
        text = "With these accuracies every item has the same influence on kappa, so its variance is unknown."
        hint = "Use values of $annotator_accuracy and $labeler_accuracy between 0 and 1."
        raise invalid("annotator_accuracy", text, hint=hint, code="no-variance")
    rows = [outlook.row(N, sigma2, goal) for N, sigma2 in variances.items()]
    assumes = f"{counted(len(shares), 'category')}, annotator accuracy {a:g}, labeler accuracy {q:g}"
    planned = outlook.plan(rows[0], rows, goal, assumes)
    return replace(planned, **next(row for row in rows if row["votes"] == (votes or planned.cheapest)))


def _from_pilot(pilot: Estimate, votes: int | None, goal: Goal) -> Plan:
    """Plan from the estimate of a pilot."""
    n = pilot.n_items
    if pilot.metric not in ("dh", "weighted"):
        raise invalid("pilot", "The pilot must be a kappa from dh_kappa.")
    refuse_clusters(pilot.sample, "A plan from this pilot")
    if pilot.parts is None or pilot.exact is None or basis(pilot) is None:
        one = "It has one item." if n == 1 else "Every item has the same influence on kappa."
        text = f"The variance of kappa cannot be computed from the pilot. {pilot.reason or one}"
        single = n == 0 and pilot.sample.excluded.one_vote
        hint = "Pass a pilot with two votes or more on some items." if single else "Pass more items in $pilot."
        raise invalid("pilot", text, hint=hint, code="pilot-too-small")
    known = terms(pilot.sample.by_weight().merged(), pilot.parts, pilot.weights)
    totals = known.patterns.vote_totals()
    per_item = next(k for k in (4, 3, 2) if 2 * int(known.items[totals >= k].sum()) >= n)
    if votes and per_item < 4 and votes > per_item:
        text = f"Votes can be at most {per_item}, as more than half of the pilot items have no more: got {votes}."
        raise invalid("votes", text, hint=_FOUR_VOTES, code="too-many-votes-for-pilot")
    phi = influence(known)
    outlook = _outlook(pilot, known, phi)
    own = n * float(sample_variance(known, phi).infinite_pool)  # for an infinite pool
    scale = own / float(known.mean(phi**2)) if own > _ROUNDING else 0.0
    products = observed(known, per_item)
    rows = [
        # With more votes than the pilot has, few items may give a negative variance.
        outlook.row(N, max(scale * float(variance(products, N)), 0.0), goal)
        for N in sorted({*(_VOTES_COMPARED if per_item == 4 else range(2, per_item + 1)), votes or 2})
    ]
    mean_votes = pilot.sums.n_votes // n if totals.min() == totals.max() else pilot.sums.n_votes / n
    chosen = next(row for row in rows if row["votes"] == votes) if votes else outlook.row(mean_votes, own, goal)
    enough = int(known.items[totals >= per_item].sum())
    assumes, part = f"a pilot of {counted(n, 'item')}", ""
    if enough < n:
        part = f"the {enough:,} of {counted(n, 'item')} of the pilot with at least {per_item} votes"
        assumes = part if votes else f"all {n:,} items of the pilot with their votes"
    notes = _notes(pilot, per_item, part, goal, mixed=not votes)
    return outlook.plan(chosen, rows, goal, assumes, *notes, part=part and f", from {part}")


def narrower_intervals(
    name: str, pilot: Estimate, interval: ConfidenceInterval, confidence_level: float, pool: Pool
) -> Table:
    """Return the number of items that narrower intervals would need; see ``Audit.sample_sizes``."""
    half = (interval.high - interval.low) / 2
    if pilot.sample.clustered:  # the numbers would be those for independent items
        names = ("half_width", "items", "more_items", "more_votes", "items_assured")
        return Table(dict.fromkeys(names, ()), title=f"{name}: numbers of items are not available with clusters")
    size = sum(pool.values()) if isinstance(pool, Mapping) else pool
    goals = [goal for goal in _HALF_WIDTHS if goal < half][:3]
    plans = [plan_items(goal, pilot=pilot, pool=size, confidence_level=confidence_level) for goal in goals]
    more = [max(planned.items - pilot.n_items, 0) for planned in plans]
    columns: dict[str, list[Any]] = {
        "half_width": goals,
        "items": [planned.items for planned in plans],
        "more_items": more,
        "more_votes": [math.ceil(n * planned.votes) for n, planned in zip(more, plans, strict=True)],
        "items_assured": [planned.items_assured for planned in plans],
    }
    return Table(columns, title=f"{name}: items for a narrower interval than plus or minus {half:.3f}")


def _outlook(pilot: Estimate, known: Terms, phi: Array) -> Outlook:
    """Return what a pilot shows, for an infinite pool."""
    n, far = pilot.n_items, extremes(known)
    unlimited = replace(known.sample, strata=tuple(replace(part, size=None) for part in known.sample.strata))
    unseen = unseen_items(replace(known, sample=unlimited), phi)
    least, greatest = (Unseen(end.phi, n * end.share) for end in unseen.ends(far))
    heaviest = float((known.weight / known.items).max())
    most = (heaviest * max(abs(float(far.low.min())), abs(float(far.high.max())))) ** 2
    bottom = LEAST if pilot.weights is None else pilot.weights.lower_bound(float(known.E))
    return Outlook(pilot.value, float(known.E), least, greatest, n * unseen.most, most, n, bottom)


def _notes(pilot: Estimate, per_item: int, part: str, goal: Goal, mixed: bool) -> list[Note]:
    """Return notes on a plan from a pilot; ``mixed`` if it is for the votes of the pilot as they are."""
    assured = f"The number for {100 * goal.assurance:.4g}% assurance takes this into account."
    rough = f"A pilot of {counted(pilot.n_items, 'item')} gives a rough variance. {assured}"
    flawless = "Every vote of the pilot is the suggested label. The plan assumes that this holds."
    apart = ". The plan itself is from all items, so the two may differ" if mixed else ""
    rules = {
        "small-pilot": (pilot.n_items < _SMALL_PILOT, rough),
        "flawless-pilot": (pilot.exact == 1, flawless),
        "options-cut": (per_item < 4, f"The options end at {per_item} votes per item. {_FOUR_VOTES}"),
        "options-partial": (part, f"The options are from {part}{apart}."),
    }
    return [Note(code, text) for code, (holds, text) in rules.items() if holds]
