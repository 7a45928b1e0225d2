"""Intervals that hold at every look: the level at which to compute an interval that is looked at again and again.

A 95% interval is wrong in 5% of the studies that look once, and in many more that look after each batch of items and
stop when it decides. An interval at a level that grows with the number of items is wrong at any look in at most 5%. The
level depends on the number of items only, not on when and how often one looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from dhkappa.errors import invalid
from dhkappa.stats.intervals import ConfidenceInterval

FEWEST = 30
"""The first look: with fewer eligible items there is no such interval."""
FARTHEST = 10
"""A forecast says no number if it takes more than this many times as many items."""
_LEAST_LEVEL = 0.6  # at lower levels, batches do not halve the probability of a crossing
_STEPS = 200


def any_time_level(n: float, confidence_level: float) -> float:
    """Return the level of a single interval of n items, so that such intervals hold at every look; NaN below 30 items.

    ``n`` may be an effective number of items. With z of ``boundary``, the level is ``2 Phi(z(n)) - 1``.

    Examples
    --------
    >>> round(any_time_level(30, 0.95), 5), round(any_time_level(1000, 0.95), 5), any_time_level(29, 0.95)
    (0.98759, 0.99821, nan)
    """
    return 1 - _two_sided(boundary(n, confidence_level))


def boundary(n: float, confidence_level: float) -> float:
    """Return z(n), how many standard errors an estimate may be off at n items; NaN below 30.

    ``z(n)^2 = a^2 + ln(n / 30)`` with a from ``1 - Phi(a) + a phi(a) = 1 - confidence_level``: a Brownian motion that
    is watched from time 30 on, for ever and without a pause, leaves ``z(t) sqrt(t)`` with twice this probability
    (Robbins and Siegmund 1970), and one that is watched whenever there are a quarter more items with about this one.
    """
    if not confidence_level >= _LEAST_LEVEL:
        message = f"Intervals that hold at every look need a confidence level of {_LEAST_LEVEL} or more."
        raise invalid("confidence_level", message, code="any-time-level")
    return math.sqrt(_first(confidence_level) ** 2 + math.log(n / FEWEST)) if n >= FEWEST else math.nan


def too_few_items(n: float, of: str = "") -> str:
    """Return why there is no interval that holds at every look; ``of`` says which items count."""
    return f"An interval that holds at every look needs {FEWEST} items{of and f' {of}'}: got {n:,.4g}."


def any_time_interval(
    at: Callable[[float], ConfidenceInterval], n: float, confidence_level: float, reason: str | None
) -> ConfidenceInterval:
    """Return the interval that holds at every look, from that at a level; NaN below 30 items, or for a reason."""
    single = any_time_level(n, confidence_level)
    if math.isnan(single):
        none = replace(at(confidence_level), low=math.nan, high=math.nan, reason=reason or too_few_items(n))
        return replace(none, any_time_level=single)
    return replace(at(single), confidence_level=confidence_level, any_time_level=single)


def any_time_pvalue(pvalue: float, n: float) -> float:
    """Return the p-value that holds at every look, from the two-sided one of a single look at n items.

    It is below alpha exactly if the single p-value is below ``1 - any_time_level(n, 1 - alpha)``; NaN below 30 items.
    """
    if not n >= FEWEST or math.isnan(pvalue):
        return math.nan
    if pvalue <= 0:
        return 0.0
    from dhkappa.stats.special import ndtri

    squared = float(ndtri(pvalue / 2)) ** 2 - math.log(n / FEWEST)
    found = _crossing(math.sqrt(max(squared, 0.0)))
    return found if found <= 1 - _LEAST_LEVEL else 1.0


def items_when_decided(
    n: int, se: float, distance: float, confidence_level: float, *, effective: float | None = None, fixed: float = 0.0
) -> int | None:
    """Return the number of items at which an estimate would be decided, if it stayed as it is; None if over 10 n.

    It is the least N of n or more with ``z(N) SE(N) <= distance`` from the bound and ``SE(N)^2 = (SE^2 + f) n/N - f``.
    ``fixed`` is f, the part of the variance that sampling from a finite pool saves; 0 for an infinite pool.
    ``effective`` is the effective number of the n items, n without weights.
    """
    per_item = (n if effective is None else effective) / n

    def decided(number: int) -> bool:
        left = max((se * se + fixed) * n / number - fixed, 0.0)
        return boundary(number * per_item, confidence_level) ** 2 * left <= distance**2

    low, high = n, FARTHEST * n
    if decided(low):
        return low
    if not decided(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def _two_sided(z: float) -> float:
    """Return 2 (1 - Phi(z)), the probability of a standard normal variable beyond z on either side."""
    return math.erfc(z / math.sqrt(2))


def _crossing(a: float) -> float:
    """Return 1 - Phi(a) + a phi(a), which falls from 1/2 at 0."""
    return _two_sided(a) / 2 + a * math.exp(-a * a / 2) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=64)
def _first(confidence_level: float) -> float:
    """Return a, the boundary at the first look, by bisection."""
    low, high = 0.0, 40.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _crossing(middle) > 1 - confidence_level else (low, middle)
    return high
