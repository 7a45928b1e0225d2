"""Bootstrap: kappas of samples redrawn from the patterns, and the intervals that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dhkappa.core import Floats
from dhkappa.resources import Progress
from dhkappa.stats.influence import Terms, influence, sum_of_squares
from dhkappa.stats.intervals import ConfidenceInterval, skewness
from dhkappa.stats.sample import Rng, check_n_resamples, generator
from dhkappa.stats.summation import exact_sum
from dhkappa.table import Display

_BLOCK_BYTES = 1 << 24  # bytes for the draws of a block: under 64 MB with all temporaries, and near the cache
# A multinomial draw costs about 90 ns per pattern; drawing single items about 10 ns per item and 10 us per replicate.
_FEW_ITEMS_PER_PATTERN = 4
_MANY_PATTERNS = 256
# Patterns with a share of 2^-40 or less are Poisson to 2^-40; numpy before 2.4 never draws one of share 2^-54.
_RARE = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap(Display):
    """Kappas of samples of the same size, drawn with replacement from the items.

    Attributes
    ----------
    values : (n_resamples - undefined,) kappas of the replicates, in the order drawn
    undefined : number of replicates without a kappa (only one category), which ``values`` leaves out
    n_resamples : number of replicates
    kappa : the kappa of the items themselves
    """

    values: Floats
    undefined: int
    n_resamples: int
    kappa: float

    @property
    def mean(self) -> float:
        """The mean of the replicates; NaN if none is defined."""
        return float(self.values.mean()) if self.values.size else math.nan

    @property
    def sd(self) -> float:
        """The standard deviation of the replicates, a standard error of kappa; NaN for fewer than two."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else math.nan

    def __repr__(self) -> str:
        undefined = f", undefined={self.undefined}" if self.undefined else ""
        numbers = f"kappa={self.kappa:.4f}, mean={self.mean:.4f}, sd={self.sd:.4f}{undefined}"
        return f"Bootstrap(n_resamples={self.n_resamples}, {numbers})"


def bootstrap(terms: Terms, n_resamples: int = 9_999, rng: Rng = None, progress: bool = True) -> Bootstrap:
    """Draw samples of the same size from the items, with replacement; see ``Kappa.bootstrap``.

    Items keep their weights, and strata their sizes; the pool is taken to be infinite. The same seed gives the same
    values for the same items, whatever their order or partition, and the number of replicates computed at once.
    """
    n, source = check_n_resamples(n_resamples), generator(rng)
    # The most frequent pattern last: numpy's multinomial gives the last one the rest, so that all the
    # probabilities it divides by are at least as large as that one's.
    order = np.lexsort((terms.items, terms.sample.stratum))
    items = terms.items[order]
    ends = np.cumsum(np.bincount(terms.sample.stratum, minlength=len(terms.sample.strata)))
    strata = [part for part in np.split(items, ends[:-1]) if part.size]
    adding, m = _adding(terms, order)
    w = None if terms.w is None else terms.w[np.ix_(*[_occurring(terms)] * 2)]
    replicate_bytes = 16 * items.size + 8 * 12 * m  # draws as integers and floats; C, L, their temporaries
    size = max(1, min(n, _BLOCK_BYTES // replicate_bytes))
    values, defined = np.empty(n), 0
    with Progress(n, "bootstrap", progress) as shown:
        for first in range(0, n, size):
            drawn = np.concatenate([_draw(part, min(size, n - first), source) for part in strata])
            found = _kappas(adding @ drawn, m, w)
            values[defined : defined + found.size] = found
            defined += found.size
            shown.advance(drawn.shape[1])
    values = values[:defined].copy() if defined < n else values
    values.setflags(write=False)
    return Bootstrap(values, n - defined, n, float(terms.kappa))


def bootstrap_interval(method: str, drawn: Bootstrap, terms: Terms, alpha: float) -> ConfidenceInterval:
    """Return the percentile or the BCa interval of replicates of a kappa."""
    if method == "bootstrap":
        return percentile_interval(drawn.values, alpha)
    phi = influence(terms) * terms.weight / terms.items
    return bca_interval(drawn.values, drawn.kappa, phi, terms.items, alpha)


def percentile_interval(values: Floats, alpha: float) -> ConfidenceInterval:
    """Return the alpha/2 and 1 - alpha/2 quantiles of the replicates."""
    return _interval("bootstrap", values, [alpha / 2, 1 - alpha / 2], alpha, _no_variation(values))


def bca_interval(
    values: Floats, kappa: float, phi: Floats, items: npt.NDArray[np.int64], alpha: float
) -> ConfidenceInterval:
    """Return the bias-corrected and accelerated interval (BCa, Efron 1987) of a kappa with influence values phi, (K,).

    With the bias ``z_0``, the normal quantile of the share of replicates below kappa (ties count half), and the
    acceleration ``a = sum phi^3 / (6 (sum phi^2)^1.5)`` over items, a limit is the quantile at
    ``Phi(z_0 + (z_0 + z) / (1 - a (z_0 + z)))`` with z the normal quantile of alpha/2 or 1 - alpha/2.
    """
    from dhkappa.stats.special import ndtr, ndtri

    squares, share = sum_of_squares(phi, items), _share_below(values, kappa)
    reason = _no_variation(values)
    if not reason and not 0 < share < 1:
        reason = "Kappa lies outside all of its replicates, so their bias cannot be corrected."
    if not reason and squares == 0:
        reason = "No item has any influence on kappa, so the acceleration is undefined."
    if reason:
        return _interval("bca", values, [], alpha, reason)
    a = skewness(exact_sum(phi * phi * phi * items), squares) / 6
    bias = float(ndtri(share))
    places = []
    for z in (float(ndtri(alpha / 2)), -float(ndtri(alpha / 2))):
        moved = bias + z
        # Beyond the pole at a (z_0 + z) = 1 there is no quantile: the limit is the last replicate on that side.
        moved = bias + moved / (1 - a * moved) if a * moved < 1 else math.copysign(math.inf, moved)
        places.append(float(ndtr(moved)))
    return _interval("bca", values, places, alpha)


def _occurring(terms: Terms) -> npt.NDArray[np.intp]:
    """Return the codes of the categories that occur among votes or labels."""
    return np.flatnonzero((terms.C > 0) | (terms.L > 0))


def _adding(terms: Terms, order: npt.NDArray[np.intp]) -> tuple[Any, int]:
    """Return a sparse (2 + 2m, K) matrix that sums weight, 1 - d, c and q over items, and m, categories that occur."""
    from scipy.sparse import csr_array

    occurs = _occurring(terms)
    place = np.zeros(terms.C.size, np.int64)
    place[occurs] = np.arange(occurs.size)
    K, m = order.size, occurs.size
    column = np.empty(K, np.int64)
    column[order] = np.arange(K)
    length = np.diff(terms.patterns.start)
    each = terms.weight / terms.items
    row = np.concatenate([np.repeat([0, 1], K), 2 + place[terms.patterns.code], 2 + m + place[terms.suggested]])
    columns = np.concatenate([column, column, np.repeat(column, length), column])
    entries = np.concatenate([each, each * (1 - terms.d), np.repeat(each, length) * terms.c, each])
    adding = csr_array((entries, (row, columns)), shape=(2 + 2 * m, K))
    adding.sort_indices()
    return adding, m


def _draw(items: npt.NDArray[np.int64], size: int, source: np.random.Generator) -> Floats:
    """Return (K, size) number of items of each pattern in samples drawn with replacement."""
    K, n_items = items.size, int(items.sum())
    if K >= _MANY_PATTERNS and n_items <= _FEW_ITEMS_PER_PATTERN * K:
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


def _kappas(sums: Floats, m: int, w: Floats | None = None) -> Floats:
    """Return the kappas of replicates from (2 + 2m, size) sums of weight, 1 - d, c and q, except where E is 1."""
    sums = sums[:, sums[0] > 0]  # 0 if everything drawn has negligible weight
    means = sums[1:] / sums[0]
    C, L = means[1 : 1 + m], means[1 + m :]
    # 1 - E = sum_j L_j (1 - C_j^2) + C_j^2 (1 - L_j): no term is negative, so it is 0 only if E is 1.
    if w is None:
        one_minus_E = _sum_rows(L * _complement(C) * (1 + C) + C * C * _complement(L))
    else:  # sum_x C_x ((1 - w) C)_x + 2 C_x (wC)_x ((1 - w) L)_x
        wC, vC, vL = (
            np.array([_sum_rows(row[:, None] * of) for row in by]) for by, of in ((w, C), (1 - w, C), (1 - w, L))
        )
        one_minus_E = _sum_rows(C * (vC + 2 * wC * vL))
    defined = one_minus_E > 0
    kappas: Floats = 1 - means[0, defined] / one_minus_E[defined]  # eq. 13, as 1 - (1 - D)/(1 - E)
    return kappas


def _complement(shares: Floats) -> Floats:
    """Return 1 - shares; of the largest as the sum of the others, exactly 0 if there are none."""
    found = 1 - shares
    largest = shares.argmax(axis=0), np.arange(shares.shape[1])
    others = shares.copy()
    others[largest] = 0
    found[largest] = _sum_rows(others)
    return found


def _sum_rows(rows: Floats) -> Floats:
    """Sum rows one after the other: the order of numpy's own sum depends on the number of columns."""
    total = np.zeros(rows.shape[1])
    for row in rows:
        total += row
    return total


def _slack(kappa: float) -> float:
    """Return by how much equal kappas may differ: some units in the last place, times the root of the patterns."""
    return 1e-13 * (1 - kappa) + float(np.finfo(np.float64).eps)


def _share_below(values: Floats, kappa: float) -> float:
    """Return the share of replicates below kappa; ties, up to rounding, count half."""
    slack = _slack(kappa)
    below, tied = np.count_nonzero(values < kappa - slack), np.count_nonzero(np.abs(values - kappa) <= slack)
    return float((below + tied / 2) / max(values.size, 1))


def _no_variation(values: Floats) -> str | None:
    """Return why these replicates give no interval, if they do not."""
    if values.size == 0:
        return "No replicate has a kappa."
    low, high = float(values.min()), float(values.max())
    return "All replicates are equal." if high - low <= _slack(low) else None


def _interval(
    method: str, values: Floats, places: list[float], alpha: float, reason: str | None = None
) -> ConfidenceInterval:
    """Return the quantiles of the replicates at two places, NaN if there is a reason against it."""
    low, high = (math.nan, math.nan) if reason else np.quantile(values, places).tolist()
    return ConfidenceInterval(low, high, 1 - alpha, method, reason)
