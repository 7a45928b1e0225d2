"""Kappa of a category and Fleiss' kappa with weights, their influence and their beta limits, in exact fractions.

Plain loops over items with two votes or more, each with a weight. Influence is a difference quotient of tiny weights.
"""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import product

from scipy import stats

F = Fraction
STEP = F(1, 10**15)
Item = tuple[Sequence[Hashable], Hashable]  # votes and suggested label


def share(votes: Sequence[Hashable], category: Hashable) -> Fraction:
    return F(sum(vote == category for vote in votes), len(votes))


def agreeing(votes: Sequence[Hashable], category: Hashable) -> Fraction:
    P, N = sum(vote == category for vote in votes), len(votes)
    return F(P * (P - 1), N * (N - 1))


def occurring(items: Sequence[Item]) -> list[Hashable]:
    return sorted({vote for votes, _ in items for vote in votes} | {label for _, label in items}, key=str)


def parts(items: Sequence[Item], weights: Sequence[Fraction], j: Hashable) -> tuple[Fraction, Fraction] | None:
    """kappa_j and E_j: D_j is the mean differential of the items with label j, E_j = 2 C_j^2 - sum_k C_k^2."""
    W = sum(weights, F(0))
    C = {
        k: sum((w * share(v, k) for (v, _), w in zip(items, weights, strict=True)), F(0)) / W for k in occurring(items)
    }
    own = [(votes, w) for (votes, label), w in zip(items, weights, strict=True) if label == j]
    if not own:
        return None
    D = sum((w * sum(((1 if k == j else -1) * agreeing(v, k) for k in C), F(0)) for v, w in own), F(0))
    D /= sum((w for _, w in own), F(0))
    E = 2 * C[j] ** 2 - sum((share**2 for share in C.values()), F(0))
    return None if E == 1 else ((D - E) / (1 - E), E)


def fleiss(items: Sequence[Item], weights: Sequence[Fraction]) -> tuple[Fraction, Fraction] | None:
    """Fleiss' kappa and the agreement expected by chance."""
    W = sum(weights, F(0))
    pairs = list(zip(items, weights, strict=True))
    known = occurring(items)
    agree = sum((w * sum((agreeing(v, k) for k in known), F(0)) for (v, _), w in pairs), F(0)) / W
    chance = sum(((sum((w * share(v, k) for (v, _), w in pairs), F(0)) / W) ** 2 for k in known), F(0))
    return None if chance == 1 else ((agree - chance) / (1 - chance), chance)


def category_influence(items: Sequence[Item], j: Hashable) -> list[Fraction]:
    """Return n times the derivative of kappa_j by the weight of each item."""
    n, whole = len(items), parts(items, [F(1)] * len(items), j)
    assert whole is not None
    found = []
    for i in range(n):
        moved = parts(items, [1 + STEP * (k == i) for k in range(n)], j)
        assert moved is not None
        found.append(n * (moved[0] - whole[0]) / STEP)
    return found


def category_ends(items: Sequence[Item], j: Hashable) -> tuple[Fraction, Fraction]:
    """Return the extreme influence, times L_j, of one more item whose three votes are all equal."""
    n, whole, found = len(items), parts(items, [F(1)] * len(items), j), []
    assert whole is not None
    L = F(sum(label == j for _, label in items), n)
    for label, vote in product(occurring(items), repeat=2):
        moved = parts([*items, ([vote] * 3, label)], [F(1)] * n + [STEP], j)
        assert moved is not None
        found.append(L * n * (moved[0] - whole[0]) / STEP)
    return min(found), max(found)


def fleiss_influence(items: Sequence[Item]) -> list[Fraction]:
    n, whole = len(items), fleiss(items, [F(1)] * len(items))
    assert whole is not None
    moved = [fleiss(items, [1 + STEP * (k == i) for k in range(n)]) for i in range(n)]
    return [n * (one[0] - whole[0]) / STEP for one in moved if one is not None]


def fleiss_ends(items: Sequence[Item]) -> tuple[Fraction, Fraction]:
    """Return the extreme influence of one more item with the least number of votes, whatever they are."""
    n, whole = len(items), fleiss(items, [F(1)] * len(items))
    assert whole is not None
    known = sorted({vote for votes, _ in items for vote in votes}, key=str)
    found = []
    for votes in product(known, repeat=min(len(votes) for votes, _ in items)):
        moved = fleiss([*items, (votes, known[0])], [F(1)] * n + [STEP])
        assert moved is not None
        found.append(n * (moved[0] - whole[0]) / STEP)
    return min(found), max(found)


def beta_limits(
    kappa: Fraction,
    E: Fraction,
    n: Fraction | int,
    squares: Fraction,
    ends: tuple[Fraction, Fraction],
    bottom: Fraction,
    span: Fraction,
) -> tuple[float, float]:
    """The 95% limits of docs/methods.md, with three quarters of a worst or best item added, on (bottom, 1)."""
    w, R = F(3, 4), 1 - bottom
    found = []
    for phi, P, end in ((ends[0], 0.975, bottom), (ends[1], 0.025, F(1))):
        u = (1 - kappa - w * phi / (n + w)) / R
        v = (squares + w * phi**2 * F(n) / (n + w)) / ((n + w) * (n + w + 1))
        if u <= 0 or u >= 1:
            found.append(1.0 if u <= 0 else float(bottom))
            continue
        nu = u * (1 - u) * R**2 / v - 1
        if nu <= 0:
            found.append(float(end))
        else:
            found.append(1 - float(R) * float(stats.beta.ppf(P, float(u * nu), float((1 - u) * nu))))
    flawless = 1 - float(span) * (1 - 0.025 ** (1 / n)) / float(1 - E)
    return max(float(bottom), min(found[0], flawless)), found[1]
