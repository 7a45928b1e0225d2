"""The logit interval, which coverage of the beta interval is compared with."""

from __future__ import annotations

import math

from scipy.special import stdtrit

from dhkappa.stats.intervals import LEAST, Basis, flawless


def logit_interval(basis: Basis, alpha: float) -> tuple[float, float]:
    """Return limits symmetric on the logit of kappa within its range, by the t distribution."""
    if basis.kappa == 1:
        return max(LEAST, flawless(basis.unseen, basis.E, alpha)), 1.0
    above, below = basis.kappa - LEAST, 1 - basis.kappa
    middle = math.log(above / below)
    half = float(stdtrit(basis.df, 1 - alpha / 2)) * basis.se * (1 / above + 1 / below)
    return max(LEAST, _from_logit(middle - half)), min(1.0, _from_logit(middle + half))


def plain_basis(kappa: float, E: float, n: int, squares: float, least: float, greatest: float) -> Basis:
    """Return the basis of a random sample of items with equal weights."""
    return Basis(kappa, E, n, squares, least, greatest, 1 / n, 1 / n, 1 / n, n - 1)


def _from_logit(x: float) -> float:
    # 1 - R/(1 + e^x), without overflow
    return 1 - (1 - LEAST) * (math.exp(-x) / (1 + math.exp(-x)) if x > 0 else 1 / (1 + math.exp(x)))
