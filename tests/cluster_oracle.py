"""Clusters in exact fractions: loops over items, from the definitions. Imports nothing from the package."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from scipy.stats import beta as beta_distribution
from scipy.stats import t as t_distribution

F = Fraction
Item = Sequence[Hashable]
Numbers = Sequence[Fraction]


@dataclass(frozen=True)
class Kappa:
    """Kappa of weighted items: the influence of each, and the extreme ones of an item whose votes are all equal."""

    value: Fraction
    E: Fraction
    phi: list[Fraction]
    least: list[Fraction]  # by label, with any vote
    greatest: list[Fraction]


def differential(votes: Item, label: Hashable) -> Fraction:
    """Pairs of votes that agree on the label, minus pairs that agree on another, as a share of all pairs."""
    pairs = list(combinations(votes, 2))
    return F(sum((1 if a == label else -1) for a, b in pairs if a == b), len(pairs))


def kappa(items: Sequence[Item], labels: Sequence[Hashable], weight: Numbers) -> Kappa:
    """Return kappa with the derivative as an item gains weight: a mean of x moves by x_i less the mean."""
    whole = sum(weight)
    categories = sorted({*labels, *(vote for item in items for vote in item)}, key=str)

    def share(item: Item, j: Hashable) -> Fraction:
        return F(sum(vote == j for vote in item), len(item))

    C = {j: sum((w * share(item, j) for w, item in zip(weight, items, strict=True)), F(0)) / whole for j in categories}
    L = {j: sum((w for w, label in zip(weight, labels, strict=True) if label == j), F(0)) / whole for j in categories}
    D = sum((w * differential(item, label) for w, item, label in zip(weight, items, labels, strict=True)), F(0)) / whole
    E = sum((C[j] ** 2 * (2 * L[j] - 1) for j in categories), F(0))
    value = (D - E) / (1 - E)

    def influence(item: Item, label: Hashable) -> Fraction:
        moved = F(0)
        for j in categories:
            moved += 2 * C[j] * (2 * L[j] - 1) * (share(item, j) - C[j]) + 2 * C[j] ** 2 * ((label == j) - L[j])
        return (differential(item, label) - D - (1 - value) * moved) / (1 - E)

    extreme = [[influence((vote, vote), label) for vote in categories] for label in categories]
    phi = [influence(*row) for row in zip(items, labels, strict=True)]
    return Kappa(value, E, phi, list(map(min, extreme)), list(map(max, extreme)))


@dataclass(frozen=True)
class Clustered:
    """The variance of an estimate whose items come in clusters, and what its interval needs."""

    n: int
    T: dict[Hashable, Fraction]
    S: Fraction
    V_0: Fraction
    V_J: Fraction
    tau: Fraction
    V_P: Fraction
    G_e: Fraction
    b: Fraction
    n0: float
    df: Fraction

    @property
    def V(self) -> Fraction:
        return max(self.V_J, self.V_P)

    @property
    def deff(self) -> Fraction:
        return max(F(1), self.V / self.V_0) if self.V_0 else F(1)

    def design_effect(self, phi: float, w0: float) -> float:
        """Return the design effect as if w0 of a worst cluster were in the sample: n0 items that all move it by phi."""
        below = float(self.S) + w0 * self.n0 * phi**2
        value = (float(self.n**2 * self.V) + w0 * (self.n0 * phi) ** 2) / below if below else 1.0
        return min(max(value, 1.0), max(self.n0, float(self.deff)))


def clustered(
    phi: Numbers,
    weight: Numbers,
    cluster: Sequence[Hashable],
    stratum: Sequence[Hashable] | None = None,
    shares_known: bool = False,
) -> Clustered:
    """Return the variance of an estimate with influence values phi; ``shares_known`` of the strata."""
    n, whole = len(phi), sum(weight)
    w = [x * n / whole for x in weight]
    strata = [""] * n if stratum is None else list(stratum)
    of = {g: h for g, h in zip(cluster, strata, strict=True)}  # noqa: C416
    groups, H = list(dict.fromkeys(cluster)), len(set(strata))

    def inside(g: Hashable) -> list[int]:
        return [i for i in range(n) if cluster[i] == g]

    def mean(h: Hashable) -> Fraction:
        own = [i for i in range(n) if strata[i] == h]
        return sum((w[i] * phi[i] for i in own), F(0)) / sum((w[i] for i in own), F(0))

    z = [w[i] * (phi[i] - (mean(strata[i]) if shares_known else 0)) for i in range(n)]
    W = {g: sum((w[i] for i in inside(g)), F(0)) for g in groups}
    total = {g: sum((z[i] for i in inside(g)), F(0)) for g in groups}
    G_h = {h: [g for g in groups if of[g] == h] for h in set(strata)}
    V_J = F(0)
    T = {}
    for own in G_h.values():
        W_h = sum((W[g] for g in own), F(0))
        center = sum((total[g] for g in own), F(0)) / len(own) if H > 1 and not shares_known else F(0)
        for g in own:
            T[g] = total[g] - center
            V_J += F(len(own) - 1, len(own)) * (T[g] / (1 - W[g] / W_h)) ** 2 / n**2
    S = sum((x * x for x in z), F(0))
    several = [g for g in groups if len(inside(g)) > 1]
    W2, Q2 = sum((W[g] for g in several), F(0)), sum((W[g] ** 2 for g in several), F(0))
    tau = F(0)
    for g in several:
        products = total[g] ** 2 - sum((z[i] ** 2 for i in inside(g)), F(0))
        pairs = W[g] ** 2 - sum((w[i] ** 2 for i in inside(g)), F(0))
        tau += W[g] * products / pairs / W2
    squares = sum((W[g] ** 2 for g in groups), F(0))
    G_e = n**2 / squares
    pooled = S + tau * (squares - sum((x * x for x in w), F(0)))
    V_P = max(F(0), pooled) / n**2 * G_e / (G_e - H)
    b = squares / n
    n0 = min(float(b), math.sqrt(b * W2 / len(several))) if several else 1.0
    df = G_e - 1
    if several and W2**2 / Q2 > 1:
        df = min(df, b**2 / (F(1, n - 1) + (b - 1) ** 2 / (W2**2 / Q2 - 1)))
    return Clustered(n, T, S, F(n, n - 1) * S / n**2, V_J, tau, V_P, G_e, b, n0, max(F(1), df - (H - 1)))


def beta_limits(
    kappa: Fraction, E: Fraction, of: Clustered, least: float, greatest: float, level: float
) -> list[float]:
    """Return the limits of kappa for unweighted items, from the scipy quantiles."""
    alpha, n, w, width = 1 - level, of.n, 0.75, 27 / 13
    n_e, df = n / float(of.deff), float(of.df)
    ratio = t_distribution.ppf(1 - alpha / 2, df) / t_distribution.ppf(1 - alpha / 2, n - 1)
    limits = []
    for phi, p, w0 in (
        (least, 1 - alpha / 2, 1 / 4),
        (greatest, alpha / 2, min(1.0, max(1 / 4, 15 / float(of.G_e)))),
    ):
        s = of.design_effect(phi, w0) / n
        v = float(of.V) * ratio**2 * n_e * (n_e - 1) / ((n_e + w) * (n_e + w + 1))
        v += w * phi**2 * s**2 / ((1 + w * s) ** 2 * (1 + (w + 1) * s))
        u = (1 - float(kappa) - w * s * phi / (1 + w * s)) / width
        if not 0 < u < 1:
            limits.append(1.0 if u <= 0 else -14 / 13)
            continue
        nu = u * (1 - u) * width**2 / v - 1
        worst = -14 / 13 if p > 0.5 else 1.0
        limits.append(1 - width * float(beta_distribution.ppf(p, u * nu, (1 - u) * nu)) if nu > 0 else worst)
    flawless = 1 - 2 * (1 - (alpha / 2) ** (of.design_effect(least, 1 / 4) / n)) / (1 - float(E))
    return [max(-14 / 13, min(limits[0], flawless)), limits[1]]


def difference_limits(
    value: float, of: Clustered, ends: tuple[float, float], n: float, level: float = 0.95
) -> list[float]:
    """Return the limits of a difference of kappas, with half an item added that moves it by one of the ends."""
    alpha, df = 1 - level, float(of.df)
    t, total = float(t_distribution.ppf(1 - alpha / 2, df)), n + 0.5
    squares = n * (n - 1) * float(of.V)
    T = [float(x) for x in of.T.values()]
    skew = sum(x**3 for x in T) / sum(x * x for x in T) ** 1.5 if any(T) else 0.0
    limits = []
    for added, sign in zip(ends, (-1, 1), strict=True):
        if squares == 0:
            limits.append(value + added * (1 - (alpha / 2) ** (1 / n)))
            continue
        shift = 0.5 * added / total
        with_it = squares + 0.5 * added**2 * n / total
        cubes = skew * squares**1.5 - 3 * shift * squares - n * shift**3 + 0.5 * (added - shift) ** 3
        spread, skewed = math.sqrt(with_it / (total * (total - 1))), max(0.0, sign * cubes / (with_it * total))
        limits.append(value + shift + sign * (t * spread + (t**2 - 1) / 3 * skewed))
    return [max(limits[0], -27 / 13), min(limits[1], 27 / 13)]
