"""The bootstrap: kappas of samples drawn again from the patterns, and the intervals they give."""

from __future__ import annotations

import html
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.errors import DataError, counted, shown
from dhkappa.progress import Progress
from dhkappa.stats.influence import sum_of_squares
from dhkappa.stats.intervals import Interval
from dhkappa.stats.rng import generator
from dhkappa.stats.terms import Terms

Floats = npt.NDArray[np.float64]

_MOST = 10**8
_ROOM = 1 << 24  # bytes for the draws of a block: well under 64 MB with all that is made of them, and near the cache
# A multinomial draw costs about 90 ns a pattern, drawing items one by one about 10 ns an item and 10 us a replicate.
_FEW_ITEMS_A_PATTERN = 4
_MANY_PATTERNS = 256
# Patterns of one item in so many, or fewer, are Poisson to 2^-40; a numpy before 2.4 never draws one in 2^54.
_RARE = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Kappas of samples of the same size, drawn with replacement from the items.

    Attributes
    ----------
    values : (n - undefined,) kappas of the replicates, in the order drawn
    undefined : replicates without a kappa (E is 1: one category only), which ``values`` leaves out
    n : replicates asked for
    kappa : the kappa of the items themselves
    """

    values: Floats
    undefined: int
    n: int
    kappa: float

    @property
    def mean(self) -> float:
        """The mean of the replicates; NaN where none is defined."""
        return float(self.values.mean()) if self.values.size else math.nan

    @property
    def sd(self) -> float:
        """Their standard deviation, a standard error of kappa; NaN for fewer than two."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else math.nan

    def __repr__(self) -> str:
        said = f"{counted(self.n, 'replicate')}; kappa {self.kappa:.4f}, mean {self.mean:.4f}, sd {self.sd:.4f}"
        return f"Bootstrap({said}{f'; {self.undefined:,} undefined' if self.undefined else ''})"

    def _repr_html_(self) -> str:
        rows = [
            ("kappa", f"{self.kappa:.4f}"),
            ("mean of replicates", f"{self.mean:.4f}"),
            ("sd of replicates", f"{self.sd:.4f}"),
            ("replicates", f"{self.n:,}"),
            ("undefined", f"{self.undefined:,}"),
        ]
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in rows
        )
        return f"<table>{cells}</table>"


def bootstrap(
    terms: Terms, n: int = 9_999, rng: int | np.random.Generator | None = None, progress: bool = True
) -> Bootstrap:
    """Draw samples of the same size from the items, with replacement, and return their kappas.

    How often each pattern turns up in such a sample is one multinomial draw, so a replicate costs the same for
    a thousand items as for a billion. Items keep their weights, and each stratum gets as many items as it has.
    The pool is taken to be without end. The same seed gives the same values for the same items, whatever their
    order, however they were partitioned, and however many replicates are worked on at once.

    Parameters
    ----------
    terms
        The terms of the patterns.
    n
        How many replicates.
    rng
        A seed or a ``numpy.random.Generator``, for the same draws again.
    progress
        Whether to show a progress line where it takes over a second and standard error is a terminal.

    Examples
    --------
    >>> import dhkappa
    >>> from dhkappa.stats.terms import terms
    >>> kappa = dhkappa.dh_kappa([["a", "a"], ["a", "b"], ["b", "b"], ["b", "a"]], ["a", "a", "b", "b"])
    >>> drawn = bootstrap(terms(kappa.sample, kappa.parts), n=999, rng=1)
    >>> drawn.n, drawn.values.size + drawn.undefined
    (999, 999)
    """
    n, source = _replicates(n), generator(rng)
    # The most common pattern last: numpy's multinomial gives the last one what is left, and all the
    # probabilities it divides by then are at least as large as that one's.
    order = np.lexsort((terms.items, terms.sample.stratum))
    items = terms.items[order]
    ends = np.cumsum(np.bincount(terms.sample.stratum, minlength=len(terms.sample.strata)))
    strata = [part for part in np.split(items, ends[:-1]) if part.size]
    adding, m = _adding(terms, order)
    room = 16 * items.size + 8 * 12 * m  # bytes of a replicate: draws as integers and floats; C, L, their temporaries
    size = max(1, min(n, _ROOM // room))
    values, defined = np.empty(n), 0
    with Progress(n, "bootstrap", progress) as shown:
        for first in range(0, n, size):
            drawn = np.concatenate([_draw(part, min(size, n - first), source) for part in strata])
            found = _kappas(adding @ drawn, m)
            values[defined : defined + found.size] = found
            defined += found.size
            shown.advance(drawn.shape[1])
    values = values[:defined].copy() if defined < n else values
    values.setflags(write=False)
    return Bootstrap(values, n - defined, n, float(terms.kappa))


def percentile_interval(values: Floats, alpha: float) -> Interval:
    """Return the alpha/2 and 1 - alpha/2 quantiles of the replicates; NaN with a reason where they are all equal."""
    _check_alpha(alpha)
    reason = _useless(values)
    if reason:
        return _no_interval("bootstrap", alpha, reason)
    low, high = np.quantile(values, [alpha / 2, 1 - alpha / 2]).tolist()
    return Interval(low, high, 1 - alpha, "bootstrap")


def bca_interval(values: Floats, kappa: float, phi: Floats, items: npt.NDArray[np.int64], alpha: float) -> Interval:
    """Return quantiles of the replicates, moved for bias and for a spread that changes with kappa (BCa, Efron 1987).

    With the bias ``z_0``, the normal quantile of the share of replicates below kappa (those equal to it count
    half), and the acceleration ``a = sum phi^3 / (6 (sum phi^2)^1.5)`` over items, a limit is the quantile at
    ``Phi(z_0 + (z_0 + z) / (1 - a (z_0 + z)))`` with z the normal quantile of alpha/2 or 1 - alpha/2.

    Parameters
    ----------
    values
        Kappas of the replicates.
    kappa
        The kappa of the items themselves.
    phi, items
        (K,) influence of an item of each pattern, and how many items share the pattern.
    alpha
        One less the level.
    """
    from scipy.special import ndtr, ndtri

    _check_alpha(alpha)
    squares = sum_of_squares(phi, items)
    reason = _useless(values)
    share = math.nan if reason else _share_below(values, kappa)
    if not reason and not 0 < share < 1:
        reason = "kappa lies beyond all of its replicates, so that their bias cannot be corrected."
    if not reason and squares == 0:
        reason = "no item has any influence on kappa, so that the acceleration is undefined."
    if reason:
        return _no_interval("bca", alpha, reason)
    a = math.fsum((phi**3 * items).tolist()) / (6 * squares**1.5)
    bias = float(ndtri(share))
    places = []
    for z in (float(ndtri(alpha / 2)), -float(ndtri(alpha / 2))):
        moved = bias + z
        # Past the pole at a (z_0 + z) = 1 lies no quantile: the limit is the last replicate on that side.
        moved = bias + moved / (1 - a * moved) if a * moved < 1 else math.copysign(math.inf, moved)
        places.append(float(ndtr(moved)))
    low, high = np.quantile(values, places).tolist()
    return Interval(low, high, 1 - alpha, "bca")


def _adding(terms: Terms, order: npt.NDArray[np.intp]) -> tuple[Any, int]:
    """Return a sparse (2 + 2m, K) matrix that adds weight, 1 - d, c and q over items, and m, categories that occur."""
    from scipy.sparse import csr_array

    occurs = np.flatnonzero((terms.C > 0) | (terms.L > 0))
    place = np.zeros(terms.C.size, np.int64)
    place[occurs] = np.arange(occurs.size)
    K, m = order.size, occurs.size
    column = np.empty(K, np.int64)
    column[order] = np.arange(K)
    length = np.diff(terms.patterns.start)
    each = (terms.weight / terms.items).astype(np.float64)
    row = np.concatenate(
        [np.zeros(K, np.int64), np.ones(K, np.int64), 2 + place[terms.patterns.code], 2 + m + place[terms.suggested]]
    )
    columns = np.concatenate([column, column, np.repeat(column, length), column])
    votes = np.repeat(each, length) * terms.c.astype(np.float64)
    entries = np.concatenate([each, each * (1 - terms.d).astype(np.float64), votes, each])
    adding = csr_array((entries, (row, columns)), shape=(2 + 2 * m, K))
    adding.sort_indices()
    return adding, m


def _draw(items: npt.NDArray[np.int64], size: int, source: np.random.Generator) -> Floats:
    """Return (K, size) how often each pattern turns up among as many items, drawn with replacement."""
    K, n_items = items.size, int(items.sum())
    if K >= _MANY_PATTERNS and n_items <= _FEW_ITEMS_A_PATTERN * K:
        pattern = np.repeat(np.arange(K, dtype=np.int32), items)
        drawn = np.empty((size, K))
        for row in drawn:
            row[:] = np.bincount(pattern[source.integers(n_items, size=n_items)], minlength=K)
        return np.ascontiguousarray(drawn.T)
    drawn = np.empty((K, size))
    rare = items <= n_items // _RARE
    drawn[rare] = source.poisson(items[rare, None], (int(rare.sum()), size))
    others = n_items - drawn[rare].sum(axis=0).astype(np.int64)
    often = items[~rare]
    drawn[~rare] = source.multinomial(others, often / often.sum(), size=size).T
    return drawn


def _kappas(sums: Floats, m: int) -> Floats:
    """Return the kappas of replicates from (2 + 2m, size) sums of weight, 1 - d, c and q, without those of E = 1."""
    sums = sums[:, sums[0] > 0]  # 0 where all that was drawn weighs less than a float can tell beside the rest
    means = sums[1:] / sums[0]
    C, L = means[1 : 1 + m], means[1 + m :]
    # 1 - E = sum_j L_j (1 - C_j^2) + C_j^2 (1 - L_j): no term is negative, so that it is 0 only where E is 1.
    room = _added(L * _rest(C) * (1 + C) + C * C * _rest(L))
    defined = room > 0
    kappas: Floats = 1 - means[0, defined] / room[defined]  # eq. 13, as 1 - (1 - D)/(1 - E)
    return kappas


def _rest(shares: Floats) -> Floats:
    """Return 1 - shares; for the largest as the sum of the others, exactly 0 where there are none."""
    rest = 1 - shares
    largest = shares.argmax(axis=0), np.arange(shares.shape[1])
    others = shares.copy()
    others[largest] = 0
    rest[largest] = _added(others)
    return rest


def _added(rows: Floats) -> Floats:
    """Add up rows one after the other: numpy's own order of adding depends on how many columns there are."""
    total = np.zeros(rows.shape[1])
    for row in rows:
        total += row
    return total


def _share_below(values: Floats, kappa: float) -> float:
    """Return the share of replicates below kappa; those that differ from it by rounding count half."""
    # 1 - kappa is a quotient, right to a few units in its last place times the root of the patterns added up.
    slack = 1e-13 * (1 - kappa) + np.finfo(np.float64).eps
    below, tied = np.count_nonzero(values < kappa - slack), np.count_nonzero(np.abs(values - kappa) <= slack)
    return float((below + tied / 2) / values.size)


def _useless(values: Floats) -> str | None:
    """Say why these replicates give no interval."""
    if values.size == 0:
        return "no replicate has a kappa."
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-13 * (1 - low) + np.finfo(np.float64).eps:
        return "all replicates are equal, so that they say nothing about other samples."
    return None


def _no_interval(method: str, alpha: float, reason: str) -> Interval:
    return Interval(math.nan, math.nan, 1 - alpha, method, reason)


def _check_alpha(alpha: float) -> None:
    """Refuse what is no probability."""
    if not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise DataError(f"alpha must be between 0 and 1, such as 0.05 for a level of 0.95: got {shown([alpha])}.")


def _replicates(n: Any) -> int:
    """Return how many replicates to draw."""
    try:
        number = -1 if isinstance(n, (bool, np.bool_)) else operator.index(n)
    except TypeError:
        number = -1
    if not 1 <= number <= _MOST:
        raise DataError(f"n, the number of replicates, must be a whole number from 1 to {_MOST:,}: got {shown([n])}.")
    return number
