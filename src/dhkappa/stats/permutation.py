"""Permutation test of the suggested labels against the same labels permuted over the items.

Permuting labels keeps C, L and E. Only the agreement differential D changes, and only through the number of items of
each group that get each label: a contingency table with fixed margins, whatever the number of items.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Array, Floats
from dhkappa.core.grouping import Entries, Patterns
from dhkappa.errors import counted, invalid
from dhkappa.resources import need
from dhkappa.stats.influence import Terms, chance_terms, complement, variance
from dhkappa.stats.pearson import pearson_pvalue
from dhkappa.stats.sample import Rng, check_choice, check_n_resamples, generator
from dhkappa.stats.summation import exact_sum
from dhkappa.stats.weights import Weights, label_sums, pair_sums
from dhkappa.table import Display, plain

METHODS = ("exact", "gamma", "monte-carlo", "wald")
ALTERNATIVES = ("greater", "two-sided")

_TIE = 1e-12  # values of D that differ by less are equal up to rounding
_NOTHING = 1e-13  # relative to its two parts, a variance below this is rounding
_MOST_ITEMS = 10**9  # for numpy's hypergeometric generator
_MOST_SHUFFLED = 10**7
_MOST_WORK = 2 * 10**10  # labels shuffled in about a quarter of an hour
_CELL = 5  # drawing one cell of a table takes as long as shuffling this many labels
_AT_ONCE = 1 << 21  # numbers held at once
_FAST = 5 * 10**7  # steps of the exact count, about a quarter of a second
_MOST_STEPS = 100 * _FAST
_STEP = 5_000  # least number of steps per item
_MOST_HELD = 1 << 24  # numbers held at once while counting
_MOST_ARRANGED = 10_000  # arrangements of labels that are enumerated, in some tenths of a second
_BYTES_PER_SCORE = 64  # as floats, ranks and codes
_MOST_LABELS = 24  # beside the most frequent one: each doubles the numbers held


@dataclass(frozen=True, slots=True)
class PermutationTest(Display):
    """Result of a test of the suggested labels against the same labels permuted over the items.

    Attributes
    ----------
    difference : kappa minus the mean kappa of random labels
    z : the difference over its standard deviation for random labels; NaN if that is 0
    pvalue : probability that random labels score as much ("greater") or as far from their mean ("two-sided")
    alternative : ``"greater"`` or ``"two-sided"``
    method : ``"exact"`` (all permutations counted), ``"gamma"`` (approximation by a gamma distribution),
        ``"monte-carlo"`` or ``"wald"`` (kappa above the random baseline over its standard error)
    n_resamples : number of permutations drawn; 0 except for ``"monte-carlo"``
    reason : why z is undefined; None if it is defined
    """

    difference: float
    z: float
    pvalue: float
    alternative: str
    method: str
    n_resamples: int = 0
    reason: str | None = None

    def __repr__(self) -> str:
        numbers = f"difference={self.difference:.4f}, pvalue={self.pvalue:.3g}, z={self.z:.2f}"
        drawn = f", n_resamples={self.n_resamples}" if self.n_resamples else ""
        reason = f", reason={self.reason!r}" if self.reason else ""
        chosen = f"alternative={self.alternative!r}, method={self.method!r}"
        return f"PermutationTest({numbers}, {chosen}{drawn}{reason})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}


def permutation_test(
    terms: Terms,
    weights: Weights | None = None,
    *,
    method: str | None = None,
    alternative: str = "greater",
    n_resamples: int = 9_999,
    rng: Rng = None,
) -> PermutationTest:
    """Test whether the suggested labels score more than random labels; see ``Kappa.permutation_test``.

    ``weights`` are the agreement weights of the terms, if any.

    The null hypothesis is that labels are independent of the items, with votes as they are. It is not that kappa is
    0: the mean kappa of random labels is seldom 0 with three or more categories.
    """
    designed = terms.sample.weighted or len(terms.sample.strata) > 1
    chosen = ("wald" if designed else "exact") if method is None else check_choice("method", method, METHODS)
    if designed and chosen != "wald":
        message = f"method={method!r} permutes labels over items of equal weight, without strata."
        raise invalid("method", message, hint="Use method='wald'.", code="method-needs-equal-weights")
    check_choice("alternative", alternative, ALTERNATIVES)
    n_resamples, source = check_n_resamples(n_resamples), generator(rng)
    if chosen == "wald":
        return _wald_test(terms, alternative)

    scores = label_scores(terms)
    groups = group_items(terms, scores)
    D0, spread = permutation_moments(terms, groups)
    beyond = float(terms.D - D0)
    difference = float((terms.D - D0) / (1 - terms.E))
    if spread == 0:
        reason = "Every permutation of these labels scores the same."
        return PermutationTest(difference, math.nan, 1.0, alternative, chosen, reason=reason)
    z = beyond / math.sqrt(spread)
    pvalue = None
    if chosen == "exact":
        pvalue = _exact_pvalue(terms, weights, alternative, _FAST if method is None else _MOST_STEPS)
        if pvalue is None and method is not None:
            message = f"method='exact' would take too long for {terms.n:,} items."
            hint = "Use method='gamma' or method='monte-carlo'."
            raise invalid("method", message, hint=hint, code="permutation-too-large")
        chosen = "gamma" if pvalue is None else chosen
    if chosen == "gamma":
        half_step = _step(terms, weights, scores) / terms.n / math.sqrt(spread)
        pvalue = pearson_pvalue(z, permutation_skewness(terms, groups, spread), half_step, alternative)
    if pvalue is not None:
        return PermutationTest(difference, z, pvalue, alternative, chosen)
    two_sided = alternative == "two-sided"
    least = (abs(beyond) if two_sided else beyond) - _TIE
    as_far, R0 = 0, float(D0 + terms.mean(terms.t)) / 2
    for on_label in _draws(groups, terms.n, n_resamples, source):
        drawn = 2 * (on_label / terms.n - R0)  # D* - D0
        as_far += int(((np.abs(drawn) if two_sided else drawn) >= least).sum())
    return PermutationTest(difference, z, (1 + as_far) / (n_resamples + 1), alternative, chosen, n_resamples)


def _wald_test(terms: Terms, alternative: str) -> PermutationTest:
    """Compare kappa_P with its standard error, for any sampling design."""
    value, phi = above_random(terms)
    one_minus_D0 = terms.mean(1 - terms.t) + 2 * (_mean_g(terms) * terms.apart(terms.L)).sum()
    if not one_minus_D0 or terms.E == 1:  # by rounding
        reason = "One item outweighs all others."
        return PermutationTest(math.nan, math.nan, math.nan, alternative, "wald", reason=reason)
    difference = float(value * one_minus_D0 / chance_terms(terms).not_by_chance)
    spread = variance(terms, phi)
    if not spread.infinite_pool or not spread.value:
        reason = "Every item has the same influence on kappa, or the sample is the whole pool."
        return PermutationTest(difference, math.nan, math.nan, alternative, "wald", reason=reason)
    z = float(value) / math.sqrt(spread.value)
    return PermutationTest(difference, z, pearson_pvalue(z, 0.0, 0.0, alternative), alternative, "wald")


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # if E is 1 by rounding only
def above_random(terms: Terms) -> tuple[float, Array]:
    """Return kappa_P, which is 0 for random labels and 1 for perfect ones, and its influence values, (K,).

    ``kappa_P = (D - D0)/(1 - D0)``, with D0 the mean of D over permutations; with two categories it is kappa. Its
    influence is ``phi_i = ((d_i - D) - (1 - kappa_P) eps_i)/(1 - D0)`` with
    ``eps_i = sum_j (g_ij - G_j)(2 L_j - 1) + 2 sum_j G_j (q_ij - L_j)``, the influence on D0. The mean over items is 0.
    With agreement weights, wL takes the place of the first L and wG that of the second G.
    """
    # Everything as a distance from 1, which keeps its digits if D0 is close to 1.
    disagreeing, unlabeled = terms.mean(1 - terms.t), terms.apart(terms.L)
    G = _mean_g(terms)
    one_minus_D0 = disagreeing + 2 * (G * unlabeled).sum()
    if not one_minus_D0:
        return math.nan, np.full(len(terms.items), math.nan)
    one_minus_kappa = terms.mean(1 - terms.d) / one_minus_D0
    on_votes = one_minus_D0 - (1 - terms.t) - 2 * terms.row_sums(terms.g * unlabeled[terms.patterns.code])
    # 1 - G_j: pairs that agree on another category, or do not agree
    others = complement(np.append(G, disagreeing))[:-1] if terms.w is None else disagreeing + terms.apart(G)
    eps = on_votes + 2 * ((terms.L * others).sum() - others[terms.suggested])
    phi: Array = one_minus_kappa * (1 - eps / one_minus_D0) - (1 - terms.d) / one_minus_D0
    return 1 - one_minus_kappa, phi


def _mean_g(terms: Terms) -> Array:
    """Return (m,) G, the weighted means of g_ij."""
    G = np.zeros(len(terms.C))
    np.add.at(G, terms.patterns.code, np.repeat(terms.weight, np.diff(terms.patterns.start)) * terms.g)
    return G / terms.n


@dataclass(frozen=True, slots=True)
class ScoreGroups:
    """V groups of items with the same scores g_ij (``label_scores``), and the U labels that occur with scores."""

    items: npt.NDArray[np.int64]  # (V,) items of each group
    code: Array  # (U,) category of each label
    labels: npt.NDArray[np.int64]  # (U,) number of items with it
    row: npt.NDArray[np.int64]  # (entries,) group and label of each g_ij above 0
    column: npt.NDArray[np.int64]
    g: Array

    def by_label(self, entries: Array) -> Array:
        """Return (U,) sums over items of a value per entry."""
        total = np.zeros(self.code.size, entries.dtype)
        np.add.at(total, self.column, entries * self.items[self.row])
        return total


def label_scores(terms: Terms) -> Array:
    """Return the share of pairs of votes on an item that would agree on each label.

    Without weights these are the g_ij by entry; with agreement weights ``(w g_i)_l``, (K, U) for labels that occur.
    """
    if terms.w is None:
        return terms.g
    used = np.unique(terms.suggested)
    need(terms.items.size * used.size * _BYTES_PER_SCORE, f"the scores of {counted(used.size, 'label')} on every item")
    scores = [terms.row_sums(terms.g * terms.w[terms.patterns.code, label]) for label in used.tolist()]
    return np.column_stack(scores)


def group_items(terms: Terms, g: Array) -> ScoreGroups:
    """Group items by their ``label_scores``, in any unit, for the labels that occur."""
    patterns, labels = terms.patterns, np.zeros(len(terms.L), np.int64)
    np.add.at(labels, patterns.suggested, patterns.items)
    start, code = patterns.start, patterns.code
    if g.ndim == 2:
        start, code = np.arange(len(g) + 1) * g.shape[1], np.tile(np.flatnonzero(labels), len(g))
        g = g.ravel()
    keep = (g > 0) & (labels[code] > 0)
    start = np.concatenate([[0], np.cumsum(keep)])[start]
    values, rank = np.unique(g[keep], return_inverse=True)
    # With the rank of g in the place of votes, patterns that merge are one group.
    entries = Entries(start, code[keep], rank + 1)
    found = Patterns(np.zeros(len(patterns), np.int32), entries, patterns.items).merged()
    code, column = np.unique(found.code, return_inverse=True)
    row = found.row()
    return ScoreGroups(found.items, code, labels[code], row, column, values[found.votes - 1])


def permutation_moments(terms: Terms, groups: ScoreGroups) -> tuple[float, float]:
    """Return the mean D0 and the variance of D over all permutations of the labels.

    ``D0 = sum_j G_j (2 L_j - 1)`` and ``Var = 4/(n - 1) (sum_j L_j Sigma_jj - sum_jk L_j L_k Sigma_jk)``, where G
    is the mean and Sigma the covariance matrix (over n) of the g_ij. The cost does not grow with the square of the
    number of categories. The variance is 0 if D cannot change.
    """
    n, g, column = terms.n, groups.g, groups.column
    L, G = terms.L[groups.code], groups.by_label(g) / n
    R0 = (L * G).sum()
    D0 = 2 * R0 - terms.mean(terms.t)
    if n == 1 or not groups.code.size:
        return D0, 0.0
    # sum_j L_j Sigma_jj, where a g_ij of 0 has no entry, minus the variance over items of sum_j L_j g_ij
    absent = n - groups.by_label(np.ones(column.size, np.int64))
    diagonal = (L * (groups.by_label((g - G[column]) ** 2) + G**2 * absent)).sum() / n
    expected = np.zeros(groups.items.size)
    np.add.at(expected, groups.row, L[column] * g)
    spread = diagonal - ((expected - R0) ** 2 * groups.items).sum() / n
    rounding = _NOTHING * diagonal + (_NOTHING * R0) ** 2
    return D0, 4 * spread / (n - 1) if spread > rounding else 0.0


def permutation_skewness(terms: Terms, groups: ScoreGroups, spread: float) -> float:
    """Return the skewness of D over all permutations of the labels, from its variance; 0 for two items.

    With ``x_il = g_il - G_l - sum_j L_j g_ij + sum_j L_j G_j``, the third central moment of ``sum_i g_{i, l_i}`` is
    ``n^2 / ((n - 1)(n - 2)) sum_i sum_l L_l x_il^3``. The sum runs over all items and labels as if every g_il was 0,
    which has a closed form, and adds what each g_il above 0 changes.
    """
    n, g, column = terms.n, groups.g, groups.column
    if n < 3:
        return 0.0
    L, G = terms.L[groups.code], groups.by_label(g) / n
    off = np.zeros(groups.items.size)
    np.add.at(off, groups.row, L[column] * g)
    off -= (L * G).sum()
    held = G[column] + off[groups.row]
    changes = L[column] * g * (g * g - 3 * g * held + 3 * held * held) * groups.items[groups.row]
    none = n * (L * G**3).sum() + 3 * (L * G).sum() * (groups.items * off**2).sum() + (groups.items * off**3).sum()
    third = n**2 / ((n - 1) * (n - 2)) * (exact_sum(changes) - none)
    return float(third / (spread * n**2 / 4) ** 1.5)


def _step(terms: Terms, weights: Weights | None, g: Array) -> float:
    """Return the distance between values that the sum of ``label_scores`` can have; 0 if it is too small to matter.

    Two items that swap labels change the sum by a difference of differences, and all changes consist of such swaps.
    """
    cells = terms.items.size * np.count_nonzero(terms.L)
    slow = weights is not None and cells > _MOST_ARRANGED
    scores = None if slow else _integer_scores(terms, weights)
    if scores is None:
        return 0.0
    unit = float(g.max() / scores.max())
    if cells > _AT_ONCE:
        return unit
    groups = group_items(terms, scores)
    unscored = int(groups.labels.sum() < terms.n)  # a label that no pair agrees on
    table = np.zeros((groups.items.size, groups.code.size + unscored), np.int64)
    table[groups.row, groups.column] = groups.g
    gain = table - table[:, :1]
    return unit * float(np.gcd.reduce((gain - gain[0]).ravel()))


def _exact_pvalue(terms: Terms, weights: Weights | None, alternative: str, most: int) -> float | None:
    """Return the share of permutations that score as much, or as far from their mean; None if that takes too long.

    Dynamic programming over items, or groups of them: all items have the most frequent label, and one after the other
    may get another one instead. The state is the number of each label used up, and the score gained, an integer.
    Probabilities are only multiplied and added, so that small ones are as accurate as large ones.
    """
    n = terms.n
    if weights is not None and n <= _MOST_ARRANGED and (found := _enumerated(terms, weights, alternative)) is not None:
        return found
    scores = _integer_scores(terms, weights) if 2 * _STEP * n <= most else None
    if scores is None:
        return None
    groups = group_items(terms, scores)
    numbers = np.append(groups.labels, n - groups.labels.sum())  # the last are labels that no pair agrees on
    common = int(numbers.argmax())
    other = [label for label in np.flatnonzero(numbers).tolist() if label != common]
    if len(other) > _MOST_LABELS:
        return None
    table = np.zeros((groups.items.size, numbers.size), np.int64)
    table[groups.row, groups.column] = groups.g
    gain = table[:, other] - table[:, [common]]
    least, used = min(0, int(gain.min())), int(numbers[other].sum())
    shape = (*(numbers[other] + 1).tolist(), (max(0, int(gain.max())) - least) * used + 1)
    held = math.prod(shape)
    if held > _MOST_HELD or (held + _STEP) * n * len(shape) > most:
        return None

    if len(other) == 1:
        last = _two_labels(gain[:, 0], groups.items, used, shape[-1], -least * used)
    else:
        last = _several_labels(np.repeat(gain, groups.items, axis=0), numbers[other], shape, -least * used)
    totals = (table * groups.items[:, None]).sum(axis=0).tolist()
    possible = np.arange(shape[-1]) + (least * used + totals[common])
    if weights is None:
        length = np.diff(terms.patterns.start)
        chosen = terms.patterns.code == np.repeat(terms.suggested, length)
        observed = int((scores * np.repeat(terms.items, length))[chosen].sum())
    else:
        column = np.unique(terms.suggested, return_inverse=True)[1]
        observed = int((scores[np.arange(len(scores)), column] * terms.items).sum())
    as_far = possible >= observed
    if alternative == "two-sided":
        mean = sum(number * total for number, total in zip(numbers.tolist(), totals, strict=True))  # times n
        off = abs(n * observed - mean)
        as_far = (possible >= -((-mean - off) // n)) | (possible <= (mean - off) // n)
    return min(1.0, math.fsum(last[as_far].tolist()))


def _several_labels(
    gain: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], shape: tuple[int, ...], zero: int
) -> Array:
    """Return the share of permutations with each score, from the gain of each item with each other label."""
    shares = np.zeros(shape)
    shares[(*(0 for _ in numbers), zero)] = 1
    *left, _ = np.ix_(*(np.arange(number, -1, -1) for number in numbers.tolist()), np.arange(1))
    for row, remaining in zip(gain.tolist(), range(len(gain), 0, -1), strict=True):
        after = shares * ((remaining - sum(left)) / remaining)
        for place, step in enumerate(row):
            given = np.moveaxis(shares * (left[place] / remaining), place, 0)
            np.moveaxis(after, place, 0)[1:] += np.roll(given[:-1], step, axis=-1)  # what rolls over an end is 0
        shares = after
    found: Array = shares[(-1,) * len(numbers)]
    return found


def _two_labels(gain: npt.NDArray[np.int64], items: npt.NDArray[np.int64], used: int, width: int, zero: int) -> Array:
    """Return the share of permutations with each score if there is one other label, group by group.

    Of a group of s items, k get the other label in C(s, k) ways. Each is multiplied by the odds of the other label to
    the power k, which changes no ratio of ways with the same total, and divided by the largest.
    """
    odds = used / (int(items.sum()) - used)
    shares = np.zeros((used + 1, width))
    shares[0, zero] = 1
    order = np.argsort(items, kind="stable")
    for group in order.tolist():
        size, step = int(items[group]), int(gain[group])
        most = min(size, used)
        k = np.arange(1, most + 1)
        ratio = (size - k + 1) / k * odds
        mode = int((ratio >= 1).sum())  # the ratios fall
        ways = np.concatenate([np.cumprod(1 / ratio[:mode][::-1])[::-1], [1.0], np.cumprod(ratio[mode:])]).tolist()
        if group == order[-1]:  # only the rows that use up the label
            after = np.zeros((1, width))
            for number in range(most + 1):
                after[0] += np.roll(shares[used - number], number * step) * ways[number]
        else:
            after = shares * ways[0]
            for number in range(1, most + 1):
                after[number:] += np.roll(shares[: used + 1 - number], number * step, axis=-1) * ways[number]
        shares = after
    found: Array = shares[-1] / math.fsum(shares[-1].tolist())
    return found


def _integer_scores(terms: Terms, weights: Weights | None) -> npt.NDArray[np.int64] | None:
    """Return the ``label_scores`` as integer multiples of a common unit; None if the unit is too small."""
    if weights is not None:
        exact = _weighted_scores(terms.patterns, weights)
        return exact.astype(np.int64) if int(exact.max()) <= _MOST_HELD else None
    n_votes, votes = terms.patterns.vote_totals(), terms.patterns.votes.astype(np.int64)
    all_pairs = n_votes * (n_votes - 1) // 2
    unit = math.lcm(*np.unique(all_pairs).tolist())
    if unit > _MOST_HELD:
        return None
    per_pair = np.repeat(unit // all_pairs, np.diff(terms.patterns.start))
    scores: npt.NDArray[np.int64] = votes * (votes - 1) // 2 * per_pair
    return scores // max(1, int(np.gcd.reduce(scores)))


def _enumerated(terms: Terms, weights: Weights, alternative: str) -> float | None:
    """Return the exact p-value of few items by all arrangements of their labels; None if there are too many.

    Agreement weights may have a common unit so small that the scores do not fit a table.
    """
    _, column, numbers = np.unique(np.repeat(terms.suggested, terms.items), return_inverse=True, return_counts=True)
    n, left = terms.n, tuple(numbers.tolist())
    ways = math.factorial(n) // math.prod(map(math.factorial, left))
    if ways > _MOST_ARRANGED:
        return None
    rows = np.repeat(_weighted_scores(terms.patterns, weights), terms.items, axis=0).tolist()
    found = {(left, 0): 1}  # arrangements by labels left and score
    for row in rows:
        after: dict[tuple[tuple[int, ...], int], int] = defaultdict(int)
        for (free, score), number in found.items():
            for place, many in enumerate(free):
                if many:
                    after[(*free[:place], many - 1, *free[place + 1 :]), score + row[place]] += number
        found = after
    observed = sum(row[place] for row, place in zip(rows, column.tolist(), strict=True)) * n
    mean = sum(score * number for row in rows for score, number in zip(row, left, strict=True))
    both = alternative == "two-sided"
    off = {score: abs(score * n - mean) if both else score * n for _, score in found}
    least = abs(observed - mean) if both else observed
    return sum(number for (_, score), number in found.items() if off[score] >= least) / ways


def _weighted_scores(patterns: Patterns, weights: Weights) -> Array:
    """Return (K, U) the ``label_scores`` with agreement weights as Python integers, in their common unit."""
    n_votes, near = patterns.vote_totals(), pair_sums(patterns, weights).near
    labels = (np.full(len(patterns), label) for label in np.unique(patterns.suggested).tolist())
    scores = np.column_stack([label_sums(patterns, weights.scaled, near, label) for label in labels]).astype(object)
    unit = math.lcm(*np.unique(n_votes * (n_votes - 1)).tolist())
    scores *= (unit // (n_votes * (n_votes - 1)).astype(object))[:, None]
    scores //= max(1, math.gcd(*scores.ravel().tolist()))
    return scores


def _draws(groups: ScoreGroups, n: int, draws: int, source: np.random.Generator) -> Iterator[Floats]:
    """Draw permutations; yield sum_i g_{i, l_i} for some of them at a time."""
    cells = groups.items.size * groups.code.size * _CELL
    shuffle = n < cells and n <= _MOST_SHUFFLED
    if (n > _MOST_ITEMS and not shuffle) or (n if shuffle else cells) * draws > _MOST_WORK:
        message = f"method='monte-carlo' would take too long for {n:,} items and {draws:,} permutations."
        hint = "Use method='gamma', or lower $n_resamples."
        raise invalid("n_resamples", message, hint=hint, code="permutation-too-large")
    yield from (_shuffled if shuffle else _tables)(groups, n, draws, source)


def _tables(groups: ScoreGroups, n: int, draws: int, source: np.random.Generator) -> Iterator[Floats]:
    """Draw tables of groups by labels with both margins fixed, one label after the other."""
    cells = zip(groups.row.tolist(), groups.column.tolist(), strict=True)
    score = dict(zip(cells, groups.g.tolist(), strict=True))
    at_once = max(1, _AT_ONCE // groups.items.size)
    for first in range(0, draws, at_once):
        size = min(at_once, draws - first)
        free = np.repeat(groups.items[:, None], size, axis=1)
        total = np.zeros(size)
        for column, number in enumerate(groups.labels.tolist()):
            left = np.full(size, number)
            after = free.sum(axis=0)
            for row in range(groups.items.size):
                after -= free[row]
                got = source.hypergeometric(free[row], after, left)
                left -= got
                free[row] -= got
                if (row, column) in score:
                    total += score[row, column] * got
        yield total


def _shuffled(groups: ScoreGroups, n: int, draws: int, source: np.random.Generator) -> Iterator[Floats]:
    """Shuffle the labels over the items, which is faster if there are about as many groups as items."""
    others = n - int(groups.labels.sum())
    labels = np.repeat(np.arange(groups.code.size + 1, dtype=np.int32), [*groups.labels.tolist(), others])
    before, each = np.cumsum(groups.items) - groups.items, groups.items[groups.row]
    item = np.repeat(before[groups.row] - np.cumsum(each) + each, each) + np.arange(each.sum())
    wanted, g = np.repeat(groups.column, each), np.repeat(groups.g, each)
    at_once = max(1, _AT_ONCE // (n + item.size))
    for first in range(0, draws, at_once):
        permuted = source.permuted(np.tile(labels, (min(at_once, draws - first), 1)), axis=1)
        yield np.where(permuted[:, item] == wanted, g, 0.0).sum(axis=1)
