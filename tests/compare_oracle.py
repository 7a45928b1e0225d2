"""Comparisons of labelers in exact fractions: loops over items, for tests of ``compare``."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

import oracle
from dhkappa import Comparison
from strategies import Data, from_counts, ragged

F = Fraction
Labels = Mapping[str, Sequence[Hashable]]
Votes = Sequence[Sequence[Hashable]]

EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
BOTH: dict[str, list[int]] = {"A": [1, 1, 2, 2, 3, 3], "B": [1, 1, 2, 3, 3, 2]}


@dataclass(frozen=True)
class Moved:
    """A number and how fast it changes."""

    value: Fraction
    slope: Fraction

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: "Moved") -> "Moved":
        return Moved(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: "Moved") -> "Moved":
        return Moved(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def __truediv__(self, other: "Moved") -> "Moved":
        top = self.slope * other.value - self.value * other.slope
        return Moved(self.value / other.value, top / other.value**2)


ONE = Moved(F(1), F(0))


def differentials(items: Votes, labels: Sequence[Hashable]) -> list[Fraction]:
    """R_i - S_i of each item, from its pairs."""
    found = []
    for item, label in zip(items, labels, strict=True):
        pairs = list(combinations(item, 2))
        agreeing = [1 if a == label else -1 for a, b in pairs if a == b]
        found.append(F(sum(agreeing), len(pairs)))
    return found


def influences(items: Votes, labels: Sequence[Hashable], share: Sequence[Fraction]) -> list[Fraction]:
    """The derivative of kappa as each item gains weight: a mean of x moves by x_i less the mean."""
    categories = sorted({vote for item in items for vote in item} | set(labels), key=str)
    d = differentials(items, labels)
    c = [[oracle.vote_share(item, j) for item in items] for j in categories]
    q = [[F(label == j) for label in labels] for j in categories]

    def mean(x: Sequence[Fraction]) -> Fraction:
        return sum((p * value for p, value in zip(share, x, strict=True)), F(0))

    means = [(mean(c_j), mean(q_j)) for c_j, q_j in zip(c, q, strict=True)]
    D = mean(d)
    phi = []
    for i in range(len(items)):
        E = Moved(F(0), F(0))
        for (C_j, L_j), c_j, q_j in zip(means, c, q, strict=True):
            C, L = Moved(C_j, c_j[i] - C_j), Moved(L_j, q_j[i] - L_j)
            E = E + C * C * (L + L - ONE)
        phi.append(((Moved(D, d[i] - D) - E) / (ONE - E)).slope)
    return phi


@dataclass(frozen=True)
class Design:
    """How items were drawn: at random; with weights; in strata; from a pool, whole or by stratum."""

    sample_weight: Sequence[int] | None = None
    strata: Sequence[str] | None = None
    pool: int | Mapping[str, int] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {"sample_weight": self.sample_weight, "strata": self.strata, "pool": self.pool}


@dataclass(frozen=True)
class Pair:
    difference: Fraction
    variance: Fraction
    infinite_pool: Fraction
    largest: Fraction
    discordant: int


class Expected:
    """What a comparison must find, in fractions."""

    def __init__(self, votes: Votes, labels: Labels, design: Design | None = None) -> None:
        design = Design() if design is None else design
        self.given = votes, labels, design
        everybody = [len(oracle.cast(item)) for item in votes]
        full = [all(given[i] is not None for given in labels.values()) for i in range(len(votes))]
        weigh = [design.sample_weight is None or design.sample_weight[i] > 0 for i in range(len(votes))]
        self.rows = [i for i in range(len(votes)) if everybody[i] > 1 and full[i] and weigh[i]]
        self.excluded = (
            sum(number == 0 for number in everybody),
            sum(number == 1 for number in everybody),
            sum(number > 1 and not there for number, there in zip(everybody, full, strict=True)),
            sum(number > 1 and there and not w for number, there, w in zip(everybody, full, weigh, strict=True)),
        )
        self.items = [oracle.cast(votes[i]) for i in self.rows]
        self.labels = {who: [given[i] for i in self.rows] for who, given in labels.items()}
        self.strata = ["" if design.strata is None else design.strata[i] for i in self.rows]
        self.design = design
        self.weight = [self._weight(i, h) for i, h in zip(self.rows, self.strata, strict=True)]
        self.kappas = {who: self.kappa(given) for who, given in self.labels.items()}

    def only(self, *names: str) -> "Expected":
        """What is expected on the items that these labelers labeled."""
        votes, labels, design = self.given
        return Expected(votes, {who: labels[who] for who in names}, design)

    def _weight(self, i: int, stratum: str) -> Fraction:
        if isinstance(self.design.pool, Mapping):
            return F(self.design.pool[stratum], self.strata.count(stratum))
        return F(1) if self.design.sample_weight is None else F(self.design.sample_weight[i])

    def kappa(self, labels: Sequence[Hashable]) -> Fraction | None:
        """An item of weight 3 is three items."""
        unit = math.lcm(*(w.denominator for w in self.weight))
        times = [int(w * unit) for w in self.weight]
        divisor = math.gcd(*times) or 1
        times = [t // divisor for t in times]
        votes = [item for item, t in zip(self.items, times, strict=True) for _ in range(t)]
        suggested = [label for label, t in zip(labels, times, strict=True) for _ in range(t)]
        categories = list({vote for item in votes for vote in item} | set(suggested))
        return oracle.dh(votes, suggested, categories).kappa

    def pair(self, one: str, other: str) -> Pair | None:
        first, second = self.kappas[one], self.kappas[other]
        if first is None or second is None:
            return None
        whole = sum(self.weight)
        share = [w / whole for w in self.weight]
        phi = [influences(self.items, self.labels[who], share) for who in (one, other)]
        move = [a - b for a, b in zip(*phi, strict=True)]
        return Pair(
            first - second,
            self._variance(move, share, self.design.pool),
            self._variance(move, share, None),
            max(map(abs, phi[0] + phi[1])),
            sum(a != b for a, b in zip(self.labels[one], self.labels[other], strict=True)),
        )

    def _variance(self, move: list[Fraction], share: list[Fraction], pool: Any) -> Fraction:
        n = len(move)
        if n == 1:
            return F(0)
        if self.design.strata is not None:
            total = F(0)
            for h in sorted(set(self.strata)):
                inside = [i for i in range(n) if self.strata[i] == h]
                n_h = len(inside)
                middle = sum((move[i] for i in inside), F(0)) / n_h
                s2 = sum(((move[i] - middle) ** 2 for i in inside), F(0)) / (n_h - 1)
                f = F(n_h, pool[h]) if pool else F(0)
                total += sum((share[i] for i in inside), F(0)) ** 2 * (1 - f) * s2 / n_h
            return total
        if self.design.sample_weight is not None:
            return F(n, n - 1) * sum(((p * phi) ** 2 for p, phi in zip(share, move, strict=True)), F(0))
        left = 1 - F(n, pool) if pool else F(1)
        return left * sum((phi**2 for phi in move), F(0)) / (n * (n - 1))

    def swap_p(self, one: str, other: str) -> Fraction:
        """Share of all ways to swap labels in which kappas are as far apart, each kappa computed anew."""
        left, right = self.labels[one], self.labels[other]
        discordant = [i for i in range(len(left)) if left[i] != right[i]]
        seen = self.kappas[one], self.kappas[other]
        assert seen[0] is not None
        assert seen[1] is not None
        far = 0
        for toss in product((False, True), repeat=len(discordant)):
            a, b = list(left), list(right)
            for i, swapped in zip(discordant, toss, strict=True):
                if swapped:
                    a[i], b[i] = b[i], a[i]
            kappas = self.kappa(a), self.kappa(b)
            far += kappas[0] is None or kappas[1] is None or abs(kappas[0] - kappas[1]) >= abs(seen[0] - seen[1])
        return F(far, 2 ** len(discordant))


def check(found: Comparison, expected: Expected) -> None:
    """Compare every row with the oracle.

    Kappas and differences are fractions rounded once. Of a standard error, some ulp are lost in each influence, of
    the size of the influence and not of the difference of two: hence the absolute tolerance.
    """
    assert list(found.kappas) == list(expected.labels)
    ranked = expected.only(*found.ranked)
    for who, kappa in found.kappas.items():
        scored = expected.only(who) if who in found.not_ranked else ranked
        assert kappa.exact == scored.kappas[who]
        lost = kappa.excluded
        assert (lost.no_votes, lost.one_vote, lost.no_label, lost.no_weight) == scored.excluded
        assert kappa.n_items == len(scored.rows)
        items = len((own := expected.only(who)).rows) + own.excluded[2]
        assert kappa.coverage == len(own.rows) / items if items else math.isnan(kappa.coverage)
    assert [(row["labeler"], row["other"]) for row in found.differences] == list(combinations(expected.labels, 2))
    whole = expected
    for row in found.differences:
        expected = whole.only(row["labeler"], row["other"])
        pair = expected.pair(row["labeler"], row["other"])
        assert row["items"] == len(expected.rows)
        if pair is None:
            assert math.isnan(row["difference"])
            assert math.isnan(row["pvalue"])
            assert row["method"] is None
            assert row["reason"]
            continue
        n = len(expected.rows)
        assert row["difference"] == float(pair.difference)
        assert row["discordant"] == pair.discordant
        if n == 1:
            assert math.isnan(row["se"])
            assert math.isnan(row["pvalue"])
            assert row["reason"]
            continue
        assert row["reason"] is None
        near = 1e-12 * float(pair.largest)
        assert row["se"] == pytest.approx(math.sqrt(pair.variance), rel=1e-12, abs=near)
        assert row["low"] <= row["difference"] + 1e-12
        assert row["difference"] - 1e-12 <= row["high"]
        assert row["method"] == ("swap" if pair.discordant < 10 or pair.infinite_pool == 0 else "t")
        if row["method"] == "swap" and pair.discordant <= 4:
            assert row["pvalue"] == float(expected.swap_p(row["labeler"], row["other"]))
        elif row["method"] == "t" and not pair.variance:
            assert row["pvalue"] == (pair.difference == 0)


def labels_of(
    data: Data, names: Sequence[str], random: Random, missing: float, wrong: float
) -> dict[str, list[Hashable]]:
    def label(right: Hashable) -> Hashable:
        if random.random() < missing:
            return None
        return right if right is not None and random.random() > wrong else random.choice(data.categories)

    return {who: [label(right) for right in data.suggested] for who in names}


@dataclass(frozen=True)
class Several:
    """Votes with the labels of several labelers."""

    data: Data
    labels: dict[str, list[Hashable]]
    random: Random

    @property
    def votes(self) -> list[list[object]]:
        return self.data.written_votes

    @property
    def suggested(self) -> dict[str, list[object]]:
        return {who: self.data.spell(labels) for who, labels in self.labels.items()}

    @property
    def n(self) -> int:
        return len(self.data.votes)

    def take(self, rows: Sequence[int]) -> "Several":
        labels = {who: [given[i] for i in rows] for who, given in self.labels.items()}
        return Several(self.data.take(rows), labels, self.random)

    def kept(self) -> "Several":
        """The eligible items only."""
        return self.take(Expected(self.data.votes, self.labels).rows)

    def design(self) -> Design:
        """One of the designs, for eligible items only."""
        kind = self.random.choice(["sample_weight", "strata", "pool", "strata and pool", "zeros"])
        if kind in ("sample_weight", "zeros") or self.n < 4:
            sample_weight = [self.random.choice([1, 2, 5] if kind != "zeros" else [0, 1, 3]) for _ in range(self.n)]
            return Design(sample_weight=[*sample_weight[:-1], 1] if sample_weight else None)
        if kind == "pool":
            return Design(pool=self.n + self.random.choice([0, 1, 10, 1000]))
        strata = [
            "north",
            "north",
            "south",
            "south",
            *(self.random.choice(["north", "south"]) for _ in range(self.n - 4)),
        ]
        sizes = {h: strata.count(h) * self.random.choice([1, 2, 5]) for h in ("north", "south")}
        return Design(strata=strata, pool=sizes if kind == "strata and pool" else None)


@st.composite
def several(draw: st.DrawFn, names: Sequence[str] = ("rule", " ", "llm <🦙>"), max_items: int = 25) -> Several:
    data = draw(ragged(max_items=max_items, max_votes=5))
    random = Random(draw(st.integers(0, 2**32)))
    missing, wrong = draw(st.sampled_from([0, 0.15])), draw(st.sampled_from([0.3, 0.05, 0.9]))
    return Several(data, labels_of(data, names, random, missing, wrong), random)


def seen(found: Comparison) -> str:
    """All that was found, to the last bit."""
    return repr(found.to_dict())


def rows_of(found: Comparison, without: Sequence[str] = ("pvalue_holm",)) -> dict[tuple[str, str], str]:
    return {
        (row["labeler"], row["other"]): repr({name: value for name, value in row.items() if name not in without})
        for row in found.differences
    }
