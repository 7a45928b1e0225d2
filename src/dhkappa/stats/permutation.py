"""Chance: what the same labels would score, dealt out over the items at random, and whether these score more.

Dealing keeps C, L and E. Only the agreement differential D changes, and only through the number of items of each
kind that get each label: a table with fixed margins, however many items there are.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core.labels import is_real
from dhkappa.core.patterns import Patterns
from dhkappa.errors import DataError, shown
from dhkappa.stats.influence import rest, room_for
from dhkappa.stats.rng import generator
from dhkappa.stats.terms import Numbers, Terms
from dhkappa.stats.variance import signs, variance, vote_variance, without_a_vote

METHODS = ("exact", "z", "monte-carlo", "wald")
ALTERNATIVES = ("greater", "two-sided")

_TIE = 1e-12  # D of two dealings that differ by less are the same number but for rounding
_NOTHING = 1e-13  # relative to its two parts, a variance below this is rounding
_MOST_ITEMS = 10**9  # numpy draws hypergeometric numbers from fewer
_MOST_SHUFFLED = 10**7
_MOST_WORK = 2 * 10**10  # labels shuffled in about a quarter of an hour
_CELL = 5  # drawing one cell of a table takes as long as shuffling this many labels
_AT_ONCE = 1 << 21  # numbers held at once while drawing
_QUICK = 5 * 10**7  # steps of counting all dealings, about a quarter of a second
_MOST_STEPS = 100 * _QUICK
_STEP = 5_000  # steps that an item takes at least, whatever is held
_MOST_HELD = 1 << 24  # numbers held at once while counting
_MOST_DEALT = 24  # labels beside the most frequent one: each doubles what is held


@dataclass(frozen=True, slots=True)
class RandomLabelTest:
    """A test of the suggested labels against the same labels dealt out over the items at random.

    Attributes
    ----------
    difference : kappa less its floor, the mean kappa of random labels
    z : the difference over its standard deviation for random labels; NaN where that is 0
    p_value : how often random labels score as much ("greater"), or as far from the floor ("two-sided")
    alternative : ``"greater"`` or ``"two-sided"``
    method : ``"exact"``, all dealings counted, ``"z"``, from the normal distribution, ``"monte-carlo"``, or ``"wald"``,
        kappa_P over its standard error
    n_draws : how often the labels were dealt out; 0 but for ``"monte-carlo"``
    reason : why z is undefined; None where it is defined
    """

    difference: float
    z: float
    p_value: float
    alternative: str
    method: str
    n_draws: int
    reason: str | None = None

    def __repr__(self) -> str:
        rest = ", ".join(f"{name} {text}" for name, text in self._rows()[1:])
        said = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"labels against random labels: {self.difference:+.4f} from the floor ({rest}){said}"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._rows()
        )
        return f"<table>{cells}</table>" + (f"<p>{html.escape(self.reason)}</p>" if self.reason else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; NaN is None."""
        numbers = {"difference": self.difference, "z": self.z, "p_value": self.p_value}
        return {
            **{name: None if math.isnan(value) else value for name, value in numbers.items()},
            "alternative": self.alternative,
            "method": self.method,
            "n_draws": self.n_draws,
            "reason": self.reason,
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("kappa less floor", f"{self.difference:+.4f}"),
            ("p", f"{self.p_value:.3g}" if self.p_value else "< 1e-300"),
            ("z", "undefined" if math.isnan(self.z) else f"{self.z:.2f}"),
            ("alternative", self.alternative),
            ("method", self.method),
        ]
        return [*rows, ("draws", f"{self.n_draws:,}")] if self.n_draws else rows


@dataclass(frozen=True, slots=True)
class _Kinds:
    """V kinds of items, which any label scores the same on, and the U labels that occur and are agreed on.

    Attributes
    ----------
    items : (V,) items of each kind
    code, labels : (U,) category of each label, and items with it
    row, column, g : (entries,) kind, label and g_ij where it is above 0
    """

    items: npt.NDArray[np.int64]
    code: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    g: Numbers

    def by_label(self, entries: Numbers) -> Numbers:
        """Return (U,) sums over items of a value per entry: of g, they are n G_j."""
        total = np.zeros(self.code.size, entries.dtype)
        np.add.at(total, self.column, entries * self.items[self.row])
        return total


def permutation_moments(terms: Terms) -> tuple[Any, Any]:
    """Return the mean and the variance of D over all ways to deal the same labels to the same items.

    ``D0 = sum_j G_j (2 L_j - 1)`` and ``Var = 4/(n - 1) (sum_j L_j Sigma_jj - sum_jk L_j L_k Sigma_jk)``, where G
    is the mean and Sigma the covariance matrix (over n) of the g_ij. With exact terms both are exact; no matrix
    is made, so a million categories cost what their entries cost. The variance is 0 where D cannot change.

    Examples
    --------
    >>> from dhkappa import dh_kappa
    >>> from dhkappa.stats.terms import terms
    >>> kappa = dh_kappa([[1, 1], [2, 2], [1, 2]], [1, 2, 2])
    >>> permutation_moments(terms(kappa.sample, kappa.parts, exact=True))
    (Fraction(0, 1), Fraction(8, 27))
    """
    return _moments(terms, _kinds(terms, terms.g))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # where E is 1 by rounding only
def above_floor(terms: Terms) -> tuple[Any, Numbers]:
    """Return kappa_P, which is 0 for random labels and 1 for perfect ones, and its influence values.

    ``kappa_P = (D - D0)/(1 - D0)``: the chance is that of labels which know nothing, on annotators as they are.
    With two categories it is kappa. Its influence is ``phi_i = ((d_i - D) - (1 - kappa_P) eps_i)/(1 - D0)`` with
    ``eps_i = sum_j (g_ij - G_j)(2 L_j - 1) + 2 sum_j G_j (q_ij - L_j)``, the influence on D0.
    One for each pattern, (K,); the mean over items is 0. Both are defined where kappa is: D0 is 1 only where E is.

    Examples
    --------
    >>> from dhkappa import dh_kappa
    >>> from dhkappa.stats.terms import terms
    >>> kappa = dh_kappa([[1, 1], [2, 2], [1, 2]], [1, 2, 2])
    >>> above_floor(terms(kappa.sample, kappa.parts, exact=True))[0]
    Fraction(2, 3)
    """
    # All in distances from 1: where one item outweighs the others, and D0 is close to 1, no digits are lost.
    apart, unlabeled = terms.mean(1 - terms.t), rest(terms.L)
    G = _agreed(terms)
    room = apart + 2 * (G * unlabeled).sum()  # 1 - D0
    if not room:
        return math.nan, np.full(len(terms.items), math.nan)
    lost = terms.mean(1 - terms.d) / room
    on_votes = room - (1 - terms.t) - 2 * terms.row_sums(terms.g * unlabeled[terms.patterns.code])
    ungiven = rest(np.append(G, apart))[:-1]  # 1 - G_j: the pairs that agree on another category, or do not agree
    eps = on_votes + 2 * ((terms.L * ungiven).sum() - ungiven[terms.suggested])
    phi: Numbers = lost * (1 - eps / room) - (1 - terms.d) / room
    return 1 - lost, phi


def _agreed(terms: Terms) -> Numbers:
    """Return (m,) G, the weighted means of g_ij."""
    G = terms.C * 0
    np.add.at(G, terms.patterns.code, np.repeat(terms.weight, np.diff(terms.patterns.start)) * terms.g)
    return G / terms.n


def random_label_test(
    terms: Terms,
    *,
    method: str | None = None,
    alternative: str = "greater",
    n: int = 9_999,
    rng: int | np.random.Generator | None = None,
) -> RandomLabelTest:
    """Test whether the suggested labels score more than the same labels dealt out at random.

    The hypothesis is that labels know nothing about the items, with annotators as they are. It is not that
    kappa is 0: random labels score the floor, which with three categories or more is seldom 0.

    Parameters
    ----------
    terms
        The terms of a kappa that is defined.
    method
        ``"exact"``, the default where it is quick, as with up to about fifty items and three categories: all
        dealings are counted.
        ``"z"``, the default else: the exact mean and variance of D over all dealings, and the normal distribution.
        ``"monte-carlo"``: ``p = (1 + #{D* >= D})/(n + 1)`` over n dealings drawn at random.
        ``"wald"``: kappa_P over its standard error. The only one, and the default, where items have weights or
        strata: then they cannot change places.
    alternative
        ``"greater"``, or ``"two-sided"`` for labels that may also be worse than random.
    n
        How many dealings to draw.
    rng
        A seed or a ``numpy.random.Generator``, for the same draws again.

    Examples
    --------
    >>> from dhkappa import dh_kappa
    >>> from dhkappa.stats.terms import terms
    >>> kappa = dh_kappa([[1, 1], [2, 2], [1, 2]] * 4, [1, 2, 2] * 4)
    >>> random_label_test(terms(kappa.sample, kappa.parts))
    labels against random labels: +0.6667 from the floor (p 0.00202, z 2.87, alternative greater, method exact)
    """
    bound = terms.sample.weighted or len(terms.sample.strata) > 1
    asked = method
    method = ("wald" if bound else "exact") if method is None else method
    if not isinstance(method, str) or method not in METHODS:
        raise DataError(f"method must be one of {shown(METHODS)}: got {shown([method])}.")
    if bound and method != "wald":
        raise DataError(
            f"method={method!r} deals labels out over items that are all alike: with weights or strata use 'wald'."
        )
    if not isinstance(alternative, str) or alternative not in ALTERNATIVES:
        raise DataError(f"alternative must be one of {shown(ALTERNATIVES)}: got {shown([alternative])}.")
    if not (isinstance(n, (int, np.integer)) and is_real(n)) or n < 1:
        raise DataError(f"n must be a whole number of draws, 1 or more: got {shown([n])}.")
    source = generator(rng)
    if method == "wald":
        return _wald_test(terms, alternative)

    kinds = _kinds(terms, terms.g)
    D0, variance = _moments(terms, kinds)
    beyond = float(terms.D - D0)
    difference = float((terms.D - D0) / (1 - terms.E))
    if variance == 0:
        reason = "these labels score the same on these items in whatever order."
        return RandomLabelTest(difference, math.nan, 1.0, alternative, method, 0, reason)
    z = beyond / math.sqrt(variance)
    if method == "exact":
        counted = _counted(terms, alternative, _QUICK if asked is None else _MOST_STEPS)
        if counted is not None:
            return RandomLabelTest(difference, z, counted, alternative, method, 0)
        if asked is not None:
            raise DataError(
                f"method='exact' cannot count the ways to deal {terms.n:,} labels in reasonable time: "
                "use method='z' or 'monte-carlo'."
            )
        method = "z"
    if method == "z":
        return RandomLabelTest(difference, z, _tail(z, alternative), alternative, method, 0)
    two_sided = alternative == "two-sided"
    least = (abs(beyond) if two_sided else beyond) - _TIE
    as_far, R0 = 0, float(D0 + terms.mean(terms.t)) / 2
    for on_label in _dealings(kinds, terms.n, n, source):
        drawn = 2 * (on_label / terms.n - R0)  # D* - D0
        as_far += int(((np.abs(drawn) if two_sided else drawn) >= least).sum())
    return RandomLabelTest(difference, z, (1 + as_far) / (n + 1), alternative, method, n)


def _wald_test(terms: Terms, alternative: str) -> RandomLabelTest:
    """Set kappa_P against its standard error, whatever the way that items were drawn."""
    value, phi = above_floor(terms)
    room, over_votes = terms.mean(1 - terms.t) + 2 * (_agreed(terms) * rest(terms.L)).sum(), None  # 1 - D0
    if not room or terms.E == 1:  # by rounding
        reason = "one item outweighs all the others."
        return RandomLabelTest(math.nan, math.nan, math.nan, alternative, "wald", 0, reason)
    difference = float(value * room / room_for(terms))
    if terms.sample.other_votes:
        decided = (signs(terms) - (1 - value) * (2 * terms.L - 1)[terms.patterns.code]) / room
        over_votes = vote_variance(terms, without_a_vote(terms, decided, 0 * decided))
    spread = variance(terms, phi, over_votes)
    if not spread.endless or not spread.value:
        reason = "every item has the same influence on kappa above its floor, or the whole pool was drawn."
        return RandomLabelTest(difference, math.nan, math.nan, alternative, "wald", 0, reason)
    z = float(value) / math.sqrt(spread.value)
    return RandomLabelTest(difference, z, _tail(z, alternative), alternative, "wald", 0)


def _tail(z: float, alternative: str) -> float:
    """Return how often a normal variable is as large, or as far from 0."""
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(z)) if alternative == "two-sided" else ndtr(-z))


def _kinds(terms: Terms, g: Numbers) -> _Kinds:
    """Group items by the g_ij, in whatever unit, of the labels that occur."""
    patterns, labels = terms.patterns, np.zeros(len(terms.L), np.int64)
    np.add.at(labels, patterns.suggested, patterns.items)
    keep = (g > 0) & (labels[patterns.code] > 0)
    start = np.concatenate([[0], np.cumsum(keep)])[patterns.start]
    values, rank = np.unique(g[keep], return_inverse=True)
    nobody = np.zeros(len(patterns), np.int32)
    # In the place of votes, the rank of g: rows that merge are of one kind.
    found = Patterns(nobody, start, patterns.code[keep], rank + 1, patterns.items).merged()
    code, column = np.unique(found.code, return_inverse=True)
    row = np.repeat(np.arange(len(found)), np.diff(found.start))
    return _Kinds(found.items, code, labels[code], row, column, values[found.votes - 1])


def _counted(terms: Terms, alternative: str, most: int) -> float | None:
    """Return the share of all dealings that score as much, or as far from their mean; None if that takes too long.

    All items have the most frequent label, and one after the other may get one of the others instead. How far that has
    come is how many of these are spent, and how much was won by it: whole numbers, as points are. Probabilities are
    only multiplied and added up, so that the smallest are as exact as the largest.
    """
    n = terms.n
    points = _points(terms) if 2 * _STEP * n <= most else None
    if points is None:
        return None
    kinds = _kinds(terms, points)
    numbers = np.append(kinds.labels, n - kinds.labels.sum())  # the last are labels that no pair agrees on
    common = int(numbers.argmax())
    dealt = [label for label in np.flatnonzero(numbers).tolist() if label != common]
    if len(dealt) > _MOST_DEALT:
        return None
    table = np.zeros((kinds.items.size, numbers.size), np.int64)
    table[kinds.row, kinds.column] = kinds.g
    won = table[:, dealt] - table[:, [common]]
    least, spent = min(0, int(won.min())), int(numbers[dealt].sum())
    shape = (*(numbers[dealt] + 1).tolist(), (max(0, int(won.max())) - least) * spent + 1)
    held = math.prod(shape)
    if held > _MOST_HELD or (held + _STEP) * n * len(shape) > most:
        return None

    shares = np.zeros(shape)
    shares[(*(0 for _ in dealt), -least * spent)] = 1
    left = [
        np.arange(number, -1, -1).reshape([-1 if axis == place else 1 for axis in range(len(shape))])
        for place, number in enumerate(numbers[dealt].tolist())
    ]
    for row, without in zip(np.repeat(won, kinds.items, axis=0).tolist(), range(n, 0, -1), strict=True):
        after = shares * ((without - sum(left)) / without)
        for place, step in enumerate(row):
            given = np.moveaxis(shares * (left[place] / without), place, 0)
            np.moveaxis(after, place, 0)[1:] += np.roll(given[:-1], step, axis=-1)  # what is rolled over an end is 0
        shares = after
    totals = (table * kinds.items[:, None]).sum(axis=0).tolist()
    scores = np.arange(shape[-1]) + (least * spent + totals[common])
    length = np.diff(terms.patterns.start)
    chosen = terms.patterns.code == np.repeat(terms.suggested, length)
    on_label = int((points * np.repeat(terms.items, length))[chosen].sum())
    as_far = scores >= on_label
    if alternative == "two-sided":
        mean = sum(number * total for number, total in zip(numbers.tolist(), totals, strict=True))  # times n
        off = abs(n * on_label - mean)
        as_far = (scores >= -((-mean - off) // n)) | (scores <= (mean - off) // n)
    return min(1.0, math.fsum(shares[(-1,) * len(dealt)][as_far].tolist()))


def _points(terms: Terms) -> npt.NDArray[np.int64] | None:
    """Return the g_ij as whole numbers of a unit that all share; None where that is too small a unit."""
    n_votes, votes = terms.patterns.vote_totals(), terms.patterns.votes.astype(np.int64)
    all_pairs = n_votes * (n_votes - 1) // 2
    unit = math.lcm(*np.unique(all_pairs).tolist())
    if unit > _MOST_HELD:
        return None
    points: npt.NDArray[np.int64] = (
        votes * (votes - 1) // 2 * np.repeat(unit // all_pairs, np.diff(terms.patterns.start))
    )
    return points // max(1, int(np.gcd.reduce(points)))


def _moments(terms: Terms, kinds: _Kinds) -> tuple[Any, Any]:
    """Return D0 and Var[D]."""
    n, g, column = terms.n, kinds.g, kinds.column
    L, G = terms.L[kinds.code], kinds.by_label(g) / n
    R0 = (L * G).sum()
    D0 = 2 * R0 - terms.mean(terms.t)
    if n == 1 or not kinds.code.size:
        return D0, 0 * terms.D
    # sum_j L_j Sigma_jj, where a g_ij of 0 has no entry, less the variance over items of sum_j L_j g_ij
    absent = n - kinds.by_label(np.ones(column.size, np.int64))
    diagonal = (L * (kinds.by_label((g - G[column]) ** 2) + G**2 * absent)).sum() / n
    expected = np.zeros(kinds.items.size, g.dtype)
    np.add.at(expected, kinds.row, L[column] * g)
    spread = diagonal - ((expected - R0) ** 2 * kinds.items).sum() / n
    rounding = 0 if g.dtype == object else _NOTHING * diagonal + (_NOTHING * R0) ** 2
    return D0, 4 * spread / (n - 1) if spread > rounding else 0 * terms.D


def _dealings(kinds: _Kinds, n: int, draws: int, source: np.random.Generator) -> Iterator[npt.NDArray[np.float64]]:
    """Deal the labels out ``draws`` times; yield sum_i g_{i, l_i} of some dealings at a time."""
    cells = kinds.items.size * kinds.code.size * _CELL
    shuffle = n < cells and n <= _MOST_SHUFFLED
    if (n > _MOST_ITEMS and not shuffle) or (n if shuffle else cells) * draws > _MOST_WORK:
        raise DataError(
            f"method='monte-carlo' cannot deal {n:,} labels {draws:,} times in reasonable time: "
            "use method='z', or fewer draws, n=."
        )
    yield from (_shuffled if shuffle else _tables)(kinds, n, draws, source)


def _tables(kinds: _Kinds, n: int, draws: int, source: np.random.Generator) -> Iterator[npt.NDArray[np.float64]]:
    """Draw tables of kinds by labels with both margins fixed, a label at a time over the items still without one."""
    cells = zip(kinds.row.tolist(), kinds.column.tolist(), strict=True)
    score = dict(zip(cells, kinds.g.astype(np.float64).tolist(), strict=True))
    at_once = max(1, _AT_ONCE // kinds.items.size)
    for first in range(0, draws, at_once):
        size = min(at_once, draws - first)
        free = np.repeat(kinds.items[:, None], size, axis=1)
        total = np.zeros(size)
        for column, number in enumerate(kinds.labels.tolist()):
            left = np.full(size, number)
            after = free.sum(axis=0)
            for row in range(kinds.items.size):
                after -= free[row]
                got = source.hypergeometric(free[row], after, left)
                left -= got
                free[row] -= got
                if (row, column) in score:
                    total += score[row, column] * got
        yield total


def _shuffled(kinds: _Kinds, n: int, draws: int, source: np.random.Generator) -> Iterator[npt.NDArray[np.float64]]:
    """Shuffle the labels over the items, where kinds are about as many as items."""
    others = n - int(kinds.labels.sum())
    labels = np.repeat(np.arange(kinds.code.size + 1, dtype=np.int32), [*kinds.labels.tolist(), others])
    before, each = np.cumsum(kinds.items) - kinds.items, kinds.items[kinds.row]
    item = np.repeat(before[kinds.row] - np.cumsum(each) + each, each) + np.arange(each.sum())
    wanted, g = np.repeat(kinds.column, each), np.repeat(kinds.g.astype(np.float64), each)
    at_once = max(1, _AT_ONCE // (n + item.size))
    for first in range(0, draws, at_once):
        dealt = source.permuted(np.tile(labels, (min(at_once, draws - first), 1)), axis=1)
        yield np.where(dealt[:, item] == wanted, g, 0.0).sum(axis=1)
