"""Labelers compared on the same items: against fractions and loops over items, and by what must hold."""

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import oracle
from dhkappa import DataError, Tally, compare, dh_kappa, simulate, tally
from dhkappa.core import item_table as cells_room
from dhkappa.core.item_table import read_item_table
from dhkappa.stats import compare as room
from dhkappa.stats.compare import Comparison, holm
from strategies import Data, from_counts, ragged

F = Fraction
Labels = Mapping[str, Sequence[Hashable]]
Votes = Sequence[Sequence[Hashable]]

EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
BOTH: dict[str, list[int]] = {"A": [1, 1, 2, 2, 3, 3], "B": [1, 1, 2, 3, 3, 2]}


# The oracle: means over items as fractions that carry their derivative by one item's weight.


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
    endless: Fraction
    largest: Fraction
    discordant: int


class Expected:
    """What a comparison must find, in fractions."""

    def __init__(self, votes: Votes, labels: Labels, design: Design | None = None) -> None:
        design = Design() if design is None else design
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
    for who, kappa in found.kappas.items():
        assert kappa.exact == expected.kappas[who]
        lost = kappa.excluded
        assert (lost.no_votes, lost.one_vote, lost.no_label, lost.no_weight) == expected.excluded
        assert kappa.n_items == len(expected.rows)
    assert [(row["labeler"], row["other"]) for row in found.differences] == list(combinations(expected.labels, 2))
    for row in found.differences:
        pair = expected.pair(row["labeler"], row["other"])
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
            assert row["reason"] == "only one item counts, so its spread is unknown."
            continue
        assert row["reason"] is None
        near = 1e-12 * float(pair.largest)
        assert row["se"] == pytest.approx(math.sqrt(pair.variance), rel=1e-12, abs=near)
        assert row["low"] <= row["difference"] + 1e-12
        assert row["difference"] - 1e-12 <= row["high"]
        assert row["method"] == ("swap" if pair.discordant < 10 or pair.endless == 0 else "t")
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


class TestAgainstFractions:
    def test_published_example(self) -> None:
        expected = Expected(EXAMPLE.votes, BOTH)
        pair = expected.pair("A", "B")
        assert pair is not None
        assert expected.kappas == {"A": F(247, 544), "B": F(409, 544)}
        assert (pair.difference, pair.variance) == (F(-81, 272), F(516632823, 6842040320))
        found = compare(EXAMPLE.votes, BOTH)
        check(found, expected)
        (row,) = found.differences
        assert row["difference"] == -81 / 272
        assert row["se"] == pytest.approx(math.sqrt(516632823 / 6842040320), rel=1e-14)  # a few ulp
        assert (row["pvalue"], row["method"], row["discordant"]) == (0.5, "swap", 2)
        assert found.best == "B"
        assert found.table().column("labeler") == ["B", "A"]

    @settings(max_examples=25)
    @given(several(max_items=16))
    def test_plain(self, given: Several) -> None:
        check(compare(given.votes, given.suggested, rng=1), Expected(given.data.votes, given.labels))

    @settings(max_examples=40)
    @given(several(names=("one", "two"), max_items=16))
    def test_designs(self, given: Several) -> None:
        given = given.kept()
        design = given.design()
        found = compare(given.votes, given.suggested, **design.arguments, rng=1)
        check(found, Expected(given.data.votes, given.labels, design))

    @pytest.mark.parametrize("kind", ["plain", "sample_weight", "pool", "strata", "strata and pool"])
    def test_each_design_with_many_discordant_items(self, kind: str) -> None:
        """Random data seldom have what each formula needs: many discordant items, and a variance that is not 0."""
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": 0.8}, rng=2)
        strata = ["x" if i % 3 else "y" for i in range(60)]
        design = {
            "plain": Design(),
            "sample_weight": Design(sample_weight=[1 + i % 4 for i in range(60)]),
            "pool": Design(pool=80),
            "strata": Design(strata=strata),
            "strata and pool": Design(strata=strata, pool={"x": 50, "y": 400}),
        }[kind]
        expected = Expected(drawn.votes.tolist(), {who: list(given) for who, given in drawn.suggested.items()}, design)
        pair = expected.pair("a", "b")
        assert pair is not None
        assert pair.variance
        assert pair.discordant >= 10
        found = compare(drawn.votes, drawn.suggested, **design.arguments)
        assert found.differences.column("method") == ["t"]
        check(found, expected)

    def test_a_panel_that_is_drawn_adds_the_variance_over_votes(self) -> None:
        drawn = simulate(30, annotators=4, labelers={"a": 0.6, "b": 0.8}, rng=5)
        items, M = drawn.votes.tolist(), 50
        expected = Expected(items, {who: list(given) for who, given in drawn.suggested.items()}, Design(pool=M))
        pair = expected.pair("a", "b")
        assert pair is not None

        def psi(item: Sequence[Hashable], i: int) -> Fraction:
            """What votes on item i decide of its influence, of one labeler less that of the other."""
            total = F(0)
            for who, sign in (("a", 1), ("b", -1)):
                labels = expected.labels[who]
                parts = oracle.dh(items, labels, list({*labels, *(vote for row in items for vote in row)}))
                assert parts.kappa is not None
                d = differentials([item], [labels[i]])[0]
                pull = sum((parts.C[v] * (2 * parts.L[v] - 1) for v in item), F(0)) / len(item)
                total += sign * (d - 2 * (1 - parts.kappa) * pull) / (1 - parts.E)
            return total

        over_votes = F(0)
        for i, item in enumerate(items):
            left = [psi(item[:a] + item[a + 1 :], i) for a in range(len(item))]
            middle = sum(left, F(0)) / len(left)
            over_votes += F(len(item) - 1, len(item)) * sum(((x - middle) ** 2 for x in left), F(0)) / len(items)
        variance = pair.variance + F(30, M) * over_votes / 30
        found = compare(drawn.votes, drawn.suggested, pool=M, panel="drawn")
        # Some ulp in each psi, none of which cancel.
        assert found.differences.column("se") == [pytest.approx(math.sqrt(variance), rel=1e-12)]
        assert variance > pair.variance

    @pytest.mark.parametrize(
        ("votes", "n_pool"),
        [
            ([[0, 1, 0], [1, 1, 1]], 2),
            ([[0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 1]], 5),
            ([[0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 1]], 5),
        ],
    )
    def test_no_variance_over_votes_is_no_rounding(self, votes: list[list[int]], n_pool: int) -> None:
        """Of two categories, all of one label and all of the other have the same kappa, whatever the votes."""
        labels = {"a": [0] * len(votes), "b": [1] * len(votes)}
        [row] = compare(votes, labels, pool=n_pool, panel="drawn", rng=1).differences
        assert (row["difference"], row["se"]) == (0, 0)

    @pytest.mark.parametrize("confidence_level", [0.9, 0.95, 0.99])
    @pytest.mark.parametrize("accuracy", [0.8, 0.95])
    def test_limits_are_those_of_a_sample_with_half_an_item_more(
        self, confidence_level: float, accuracy: float
    ) -> None:
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": accuracy}, rng=2)
        votes, labels = drawn.votes.tolist(), {who: list(given) for who, given in drawn.suggested.items()}
        found = compare(votes, labels, confidence_level=confidence_level)
        n, half = 60, 0.5
        share = [F(1, n)] * n
        phi = [influences(votes, labels[who], share) for who in "ab"]
        move = [float(a - b) for a, b in zip(*phi, strict=True)]
        reach = sum(1 / (1 - float(kappa.parts.E)) for kappa in found.kappas.values() if kappa.parts)
        t = stats.t.ppf((1 + confidence_level) / 2, n - 1)
        (row,) = found.differences
        for name, sign in (("low", -1), ("high", 1)):
            values, sample_weight = [*move, sign * reach], [1.0] * n + [half]
            mean = (sum(move) + half * sign * reach) / (n + half)
            squares, cubes = (
                sum(w * (value - mean) ** power for value, w in zip(values, sample_weight, strict=True))
                for power in (2, 3)
            )
            skewed = max(0, sign * cubes / squares / (n + half))
            spread = math.sqrt(squares / ((n + half) * (n + half - 1)))
            limit = row["difference"] + mean + sign * (t * spread + (t**2 - 1) / 3 * skewed)
            # The quantile of t is computed in another way here, to about 1e-10.
            assert row[name] == pytest.approx(limit, rel=1e-9)
        assert found.confidence_level == confidence_level
        assert f"{confidence_level:.4g} intervals" in repr(found)

    @pytest.mark.parametrize("accuracy", [0.55, 0.9, 0.95])
    def test_p_is_one_less_the_level_at_which_a_limit_is_0(self, accuracy: float) -> None:
        drawn = simulate(80, annotators=3, labelers={"a": 0.7, "b": accuracy}, rng=2)
        (row,) = compare(drawn.votes, drawn.suggested).differences
        assert row["method"] == "t"
        assert 1e-9 < row["pvalue"] < 1
        (other,) = compare(drawn.votes, drawn.suggested, confidence_level=1 - row["pvalue"]).differences
        # 1 - p keeps 1e-16 of p, and a quantile follows it.
        assert min(abs(other["low"]), abs(other["high"])) == pytest.approx(0, abs=1e-6)

    def test_a_whole_pool_is_known_for_sure(self) -> None:
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": 0.8}, rng=2)
        widths = []
        for pool in (60, 61, 70, 100, 10**6, None):
            (row,) = compare(drawn.votes, drawn.suggested, pool=pool).differences
            widths.append(row["high"] - row["low"])
            if pool == 60:
                assert (row["se"], row["pvalue"], row["low"], row["high"]) == (
                    0,
                    0,
                    row["difference"],
                    row["difference"],
                )
        assert widths == sorted(widths)
        assert widths[0] == 0


class TestLabelSwap:
    @settings(max_examples=40)
    @given(several(names=("one", "two"), max_items=7))
    def test_all_ways_with_kappas_computed_anew(self, given: Several) -> None:
        given = given.kept()
        sample_weight = (
            [given.random.choice([1, 2, 3]) for _ in range(given.n)] if given.random.random() < 0.5 else None
        )
        expected = Expected(given.data.votes, given.labels, Design(sample_weight=sample_weight))
        for row in compare(given.votes, given.suggested, sample_weight=sample_weight).differences:
            if not math.isnan(row["pvalue"]):
                assert row["pvalue"] == float(expected.swap_p("one", "two"))

    def test_a_swap_that_leaves_no_kappa_counts_as_far(self) -> None:
        votes, labels = [[1, 1], [1, 1]], {"A": [1, 2], "B": [2, 1]}
        expected = Expected(votes, labels)
        assert expected.kappa([1, 1]) is None
        assert compare(votes, labels).differences.column("pvalue") == [float(expected.swap_p("A", "B"))] == [1.0]

    @pytest.mark.parametrize("weighted", [False, True])
    def test_drawn_ways_are_near_all_ways(self, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn = simulate(25, annotators=3, labelers={"a": 0.9, "b": 0.65}, rng=8)
        sample_weight = [1 + i % 3 for i in range(25)] if weighted else None
        (row,) = compare(drawn.votes, drawn.suggested, sample_weight=sample_weight).differences
        assert 5 <= row["discordant"] <= 9
        assert 0.02 < row["pvalue"] < 0.98
        monkeypatch.setattr(room, "_MOST_TOSSED", 0)
        (other,) = compare(drawn.votes, drawn.suggested, sample_weight=sample_weight, rng=1).differences
        (again,) = compare(drawn.votes, drawn.suggested, sample_weight=sample_weight, rng=1).differences
        # Five standard errors of a share of 9,999 draws.
        assert other["pvalue"] == pytest.approx(
            row["pvalue"], abs=5 * math.sqrt(row["pvalue"] * (1 - row["pvalue"]) / 9_999)
        )
        assert other["pvalue"] != row["pvalue"]
        assert other["pvalue"] == again["pvalue"]
        assert other["pvalue"] * 10_000 == pytest.approx(round(other["pvalue"] * 10_000))

    @pytest.mark.parametrize("n", [11, 15])
    def test_many_discordant_items_without_a_standard_error(self, n: int) -> None:
        """All items are alike, so only the number of swaps matters: all 2^n ways by binomial coefficients."""
        votes, first, second = [[1, 1, 2, 3]] * n, [1] * n, [2] * n
        expected = Expected(votes, {"A": first, "B": second})
        assert expected.kappas == {"A": F(1, 21), "B": F(1, 15)}
        gap, far = F(1, 15) - F(1, 21), 0
        for k in range(n + 1):
            a, b = expected.kappa([2] * k + [1] * (n - k)), expected.kappa([1] * k + [2] * (n - k))
            assert a is not None
            assert b is not None
            far += math.comb(n, k) * (abs(a - b) >= gap)
        p = far / 2**n
        found = compare(votes, {"A": first, "B": second}, rng=1)
        (row,) = found.differences
        assert (row["se"], row["method"], row["discordant"]) == (0, "swap", n)
        if n <= 12:
            assert row["pvalue"] == p
        else:  # (1 + share) / 10,000: five standard errors, and one draw more
            assert row["pvalue"] == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 9_999) + 1e-4)
        assert [note.code for note in found.notes] == ["equals-majority", "no-standard-error"]  # of A, by its labels
        assert "The labels of 'A' score exactly what the panel's own most frequent" in found.notes[0].text
        assert "No item sets 'A' and 'B' further apart" in found.notes[1].text


class TestHolm:
    def test_by_hand(self) -> None:
        """Smallest first: 4 x .01, 3 x .02, 2 x .03 (not below the one before), 1 x .9."""
        assert holm([0.02, 0.01, 0.9, 0.03]) == pytest.approx([0.06, 0.04, 0.9, 0.06], rel=1e-15)

    @pytest.mark.parametrize("number", [1, 2, 3, 10, 45])
    def test_against_statsmodels(self, number: int) -> None:
        multitest = pytest.importorskip("statsmodels.stats.multitest")
        p = (np.random.default_rng(number).integers(0, 30, number) / 600).tolist()  # with ties
        # A product rounded once, as there.
        assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1].tolist(), rel=1e-15, abs=0)

    def test_nan_stays_and_does_not_count(self) -> None:
        found = holm([math.nan, 0.02, math.nan, 0.03])
        assert [math.isnan(p) for p in found] == [True, False, True, False]
        assert found[1::2] == [0.04, 0.04]
        assert holm([]) == []
        assert holm([0.7]) == [0.7]
        assert holm([0.9, 0.8]) == [1, 1]

    def test_in_the_table(self) -> None:
        drawn = simulate(80, labelers={"a": 0.7, "b": 0.8, "c": 0.95}, rng=1)
        differences = compare(drawn.votes, drawn.suggested).differences
        assert differences.column("pvalue_holm") == holm(differences.column("pvalue"))


class TestSameWhateverTheWay:
    @settings(max_examples=25)
    @given(several(), st.booleans())
    def test_order_of_items(self, given: Several, weighted: bool) -> None:
        rows = given.random.sample(range(given.n), given.n)
        other = given.take(rows)
        sample_weight = np.array([given.random.choice([0.1, 1, 3.7]) for _ in range(given.n)]) if weighted else None
        moved = None if sample_weight is None else sample_weight[rows]
        one = compare(given.votes, given.suggested, sample_weight=sample_weight)
        assert seen(one) == seen(compare(other.votes, other.suggested, sample_weight=moved))

    @settings(max_examples=25)
    @given(several())
    def test_order_of_labelers(self, given: Several) -> None:
        found = compare(given.votes, given.suggested)
        turned = compare(given.votes, dict(reversed(given.suggested.items())))
        other = {(row["other"], row["labeler"]): row for row in turned.differences}
        for row in found.differences:
            twin = other[row["labeler"], row["other"]]
            # To the bit; + 0.0 turns -0.0 into 0.0.
            for name, mirrored in (("difference", "difference"), ("low", "high"), ("high", "low")):
                assert repr(row[name] + 0.0) == repr(-twin[mirrored] + 0.0)
            for name in ("se", "pvalue", "pvalue_holm", "method", "discordant"):
                assert repr(row[name]) == repr(twin[name])
        assert {who: repr(k.to_dict()) for who, k in found.kappas.items()} == {
            who: repr(k.to_dict()) for who, k in turned.kappas.items()
        }

    @settings(max_examples=30)
    @given(several())
    def test_a_tally_and_sums_of_tallies(self, given: Several) -> None:
        found = seen(compare(given.votes, given.suggested, rng=1))
        whole = tally(given.votes, given.suggested)
        assert seen(compare(whole, rng=1)) == found
        assert seen(compare(whole, ["rule", " ", "llm <🦙>"], rng=1)) == found
        cuts = sorted(given.random.randint(0, given.n) for _ in range(2))
        parts = [given.take(range(a, b)) for a, b in zip([0, *cuts], [*cuts, given.n], strict=True)]
        summed = sum((tally(part.votes, part.suggested) for part in parts), Tally())
        assert seen(compare(summed, rng=1)) == found

    @settings(max_examples=30)
    @given(several(names=("one", "two")))
    def test_a_tally_with_a_design(self, given: Several) -> None:
        given = given.kept()
        design = given.design()
        whole = tally(given.votes, given.suggested, sample_weight=design.sample_weight, strata=design.strata)
        found = compare(given.votes, given.suggested, **design.arguments, rng=1)
        assert seen(compare(whole, pool=design.pool, rng=1)) == seen(found)

    @settings(max_examples=25)
    @given(several())
    def test_counts(self, given: Several) -> None:
        categories = given.data.written_categories
        found = compare(given.votes, given.suggested, categories=categories, rng=1)
        assert seen(compare(None, given.suggested, counts=given.data.counts, categories=categories, rng=1)) == seen(
            found
        )

    @settings(max_examples=25)
    @given(several())
    def test_an_array_filled_up_with_missing_votes(self, given: Several) -> None:
        assert seen(compare(given.data.object_votes, given.suggested, rng=1)) == seen(
            compare(given.votes, given.suggested, rng=1)
        )

    def test_one_hot_labels_beside_counts(self) -> None:
        hot = {who: np.eye(3, dtype=int)[np.array(labels) - 1] for who, labels in BOTH.items()}
        found = compare(None, hot, counts=EXAMPLE.counts)
        assert rows_of(found) == rows_of(compare(EXAMPLE.votes, BOTH))

    @pytest.mark.parametrize("limits", [(0, 0, 2**63), (0, 0, 0)], ids=["keys", "rows"])
    def test_every_way_to_count_cells(self, limits: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(1)
        votes = rng.integers(0, 300, (40, 3))[rng.integers(0, 40, 120)]
        votes[:40] = votes[:40, :1]
        labels = {who: np.where(rng.random(120) < 0.7, votes[:, 0], rng.integers(0, 300, 120)) for who in "ab"}
        strata, sample_weight = rng.integers(0, 2, 120), rng.integers(1, 9, 120)
        before = seen(compare(votes, labels, strata=strata, sample_weight=sample_weight, rng=1))
        for name, limit in zip(("_FEW", "_MANY", "_WORD"), limits, strict=True):
            monkeypatch.setattr(cells_room, name, limit)
        assert seen(compare(votes, labels, strata=strata, sample_weight=sample_weight, rng=1)) == before

    def test_many_categories(self) -> None:
        rng = np.random.default_rng(1)
        kinds = rng.integers(0, 300, (40, 3))
        kinds[::2] = kinds[::2, :1]
        votes = kinds[np.arange(60) % 40]
        labels = {who: np.where(rng.random(60) < 0.8, votes[:, 0], rng.integers(0, 300, 60)).tolist() for who in "ab"}
        found = compare(votes, labels, categories=range(300))
        cells = read_item_table(votes, labels, categories=tuple(range(300)))
        assert len(cells.votes) * 300**2 > 1 << 16
        check(found, Expected(votes.tolist(), labels))

    def test_names_of_categories_do_not_matter(self) -> None:
        drawn = simulate(60, annotators=3, labelers={"a": 0.6, "b": 0.8}, rng=2)
        found = rows_of(compare(drawn.votes, drawn.suggested))
        for names in ({"a": 1, "b": 2, "c": 3}, {"a": "🐈", "b": "🐕 <b>", "c": "鰻"}, {"a": -5, "b": 0, "c": 2**40}):
            votes = [[names[vote] for vote in item] for item in drawn.votes.tolist()]
            labels = {who: [names[label] for label in given] for who, given in drawn.suggested.items()}
            assert rows_of(compare(votes, labels)) == found


class TestManyLabelers:
    names = tuple("abcdefg")

    def test_each_pair_as_if_alone(self) -> None:
        drawn = simulate(150, labelers={who: 0.6 + 0.05 * i for i, who in enumerate(self.names)}, rng=1)
        groups = list(room._groups(read_item_table(drawn.votes, drawn.suggested), self.names))
        assert len(groups) > 1
        assert max(len(left) + len(right) for left, right in groups) > 2
        found = compare(drawn.votes, drawn.suggested)
        together = rows_of(found)
        assert list(together) == list(combinations(self.names, 2))
        for pair, row in together.items():
            alone = compare(drawn.votes, {who: drawn.suggested[who] for who in pair})
            assert rows_of(alone) == {pair: row}
        for who in self.names:
            assert found.kappas[who].exact == dh_kappa(drawn.votes, drawn.suggested[who]).exact
            assert found.kappas[who].se == dh_kappa(drawn.votes, drawn.suggested[who]).se

    @pytest.mark.parametrize("m", [2, 3, 5, 20])
    @pytest.mark.parametrize("number", [2, 3, 4, 7, 10])
    def test_every_two_are_counted_together(self, m: int, number: int) -> None:
        names = [f"l{i}" for i in range(number)]
        votes = [[j, j] for j in range(m)]
        groups = list(room._groups(read_item_table(votes, {who: list(range(m)) for who in names}), names))
        pairs = [pair for left, right in groups for pair in combinations((*left, *right), 2)]
        assert set(pairs) == set(combinations(names, 2))


class TestEdges:
    @pytest.mark.parametrize("design", [{}, {"sample_weight": [1, 2, 1, 1, 2, 3]}, {"strata": list("xxxyyy")}])
    def test_the_same_labels_twice(self, design: dict[str, Any]) -> None:
        found = compare(EXAMPLE.votes, {"one": BOTH["A"], "two": BOTH["A"]}, **design)
        (row,) = found.differences
        assert (row["difference"], row["se"], row["pvalue"], row["pvalue_holm"], row["discordant"]) == (0, 0, 1, 1, 0)
        assert row["low"] == -row["high"] < 0
        assert found.best == "one"

    def test_one_item(self) -> None:
        found = compare([[1, 1, 2]], {"A": [1], "B": [2]})
        check(found, Expected([[1, 1, 2]], {"A": [1], "B": [2]}))
        assert math.isnan(found.differences.column("low")[0])

    def test_two_items(self) -> None:
        votes, labels = [[1, 1, 2], [2, 2, 2]], {"A": [1, 2], "B": [2, 1]}
        check(compare(votes, labels), Expected(votes, labels))

    @pytest.mark.parametrize(
        ("votes", "labels"),
        [
            ([], {"A": [], "B": []}),
            ([[1], [None, None], [1, 1]], {"A": [1, 1, None], "B": [1, 1, 1]}),
            ([[None], [None]], {"A": [None, None], "B": [None, None]}),
            ([[1, 1], [2, 2]], {"A": [1, None], "B": [None, 1]}),
        ],
    )
    def test_no_item_left(self, votes: list[list[Any]], labels: dict[str, list[Any]]) -> None:
        found = compare(votes, labels)
        check(found, Expected(votes, labels))
        assert found.best is None
        assert found.differences.column("discordant") == [0]
        json.dumps(found.to_dict(), allow_nan=False)
        repr(found)

    def test_one_kappa_is_undefined(self) -> None:
        votes, labels = [[1, 1], [1, 1], [1, 1]], {"all 1": [1, 1, 1], "A": [2, 1, 1], "B": [1, 1, 2]}
        found = compare(votes, labels)
        check(found, Expected(votes, labels))
        assert [row["reason"] is None for row in found.differences] == [False, False, True]
        assert found.differences.column("reason")[0] == found.kappas["all 1"].reason
        assert [math.isnan(p) for p in found.differences.column("pvalue_holm")] == [True, True, False]
        assert found.differences.column("pvalue_holm")[2] == found.differences.column("pvalue")[2]
        assert found.best == "A"
        assert found.table().column("labeler")[-1] == "all 1"
        assert "reason" in repr(found)

    def test_one_item_outweighs_all_others(self) -> None:
        found = compare([[1, 1], [1, 2], [2, 2]], {"A": [1, 1, 2], "B": [1, 2, 2]}, sample_weight=[1, 1e-20, 1e-20])
        (row,) = found.differences
        assert row["reason"] == "one item outweighs all the others, so its spread is unknown."
        assert math.isnan(row["pvalue"])
        assert math.isnan(row["se"])
        assert not math.isnan(row["difference"])

    def test_labels_that_nobody_votes_for(self) -> None:
        labels = {"A": [9, 1, 2, 2, 3, 3], "B": [1, 1, 8, 8, 8, 2]}
        check(compare(EXAMPLE.votes, labels), Expected(EXAMPLE.votes, labels))

    def test_missing_labels_leave_items_out_for_all(self) -> None:
        labels: dict[str, list[Any]] = {**BOTH, "C": [None, 1, 2, 2, "NA", 1]}
        found = compare(EXAMPLE.votes, labels, missing=["NA"])
        lost = {who: [None if label == "NA" else label for label in given] for who, given in labels.items()}
        check(found, Expected(EXAMPLE.votes, lost))
        assert found.notes[0].code == "items-excluded"
        assert found.notes[0].text == (
            "2 items did not count: 2 with no suggested label. Labelers are compared on items that all of them labeled."
        )
        assert compare(EXAMPLE.votes, BOTH).kappas["A"].n_items == 6

    def test_a_weight_of_0_leaves_an_item_out(self) -> None:
        rest = slice(1, None)
        found = compare(EXAMPLE.votes, BOTH, sample_weight=[0, 1, 1, 1, 1, 1])
        other = compare(EXAMPLE.votes[rest], {who: labels[rest] for who, labels in BOTH.items()})
        assert rows_of(found) == rows_of(other)
        assert found.kappas["A"].excluded.no_weight == 1

    def test_counts_of_items_and_not_of_rows_with_a_large_tally(self) -> None:
        """Doubling a tally thirty times: the difference stays, its error shrinks by the root of 2^30."""
        whole = tally(EXAMPLE.votes, BOTH)
        for _ in range(30):
            whole = whole + whole
        n = 6 * 2**30
        (row,) = compare(whole).differences
        assert row["difference"] == -81 / 272
        assert row["discordant"] == n // 3
        squares = F(516632823, 6842040320) * 30 * 2**30
        assert row["se"] == pytest.approx(math.sqrt(squares / (n * (n - 1))), rel=1e-12)  # some ulp in each phi
        assert row["method"] == "t"


class TestPresentation:
    drawn = simulate(300, labelers={"rule": 0.7, "llm": 0.9, "other": 0.9}, rng=1)

    @pytest.fixture
    def found(self) -> Comparison:
        return compare(self.drawn.votes, self.drawn.suggested)

    @pytest.mark.parametrize("items", [8, 300])
    def test_lines_fit(self, items: int) -> None:
        suggested = {f"a labeler with a long name {who}": given[:items] for who, given in self.drawn.suggested.items()}
        for labels in (
            suggested,
            {who: suggested[f"a labeler with a long name {who}"] for who in self.drawn.suggested},
        ):
            text = repr(compare(self.drawn.votes[:items], labels))
            assert max(map(len, text.splitlines())) <= 100
            assert "reason" not in text
            assert ("swap" in text) == (items == 8)

    def test_text(self) -> None:
        assert repr(compare(EXAMPLE.votes, BOTH)).splitlines() == [
            "Kappa by labeler, 0.95 intervals",
            "labeler  kappa     low   high     se   floor  ceiling  items",
            "B        0.752   0.084  0.955  0.156  -0.108    0.747      6",
            "A        0.454  -0.250  0.871  0.281  -0.108    0.747      6",
            "",
            "Differences between labelers, 0.95 intervals",
            "labeler  other  difference     se     low   high      p  p_holm  method  discordant",
            "A        B          -0.298  0.275  -1.556  0.671  0.500   0.500  swap             2",
            "- Labels differ on fewer than 10 items between 'A' and 'B': their p comes from",
            "  swapping labels at random, item by item.",
        ]

    def test_columns(self, found: Comparison) -> None:
        columns = "labeler other difference se low high p p_holm method discordant reason"
        assert list(found.differences.names) == columns.split()
        assert list(found.table().names) == [
            "labeler",
            "kappa",
            "low",
            "high",
            "se",
            "baseline_random",
            "baseline_majority",
            "items",
        ]

    def test_html_is_escaped(self) -> None:
        script = "<script>alert('x')</script>"
        text = compare(EXAMPLE.votes, {script: BOTH["A"], "&": BOTH["B"]})._repr_html_()
        assert "<script>" not in text
        assert "&lt;script&gt;" in text
        assert "&amp;" in text
        assert text.count("<table>") == 2
        assert "<ul><li>Labels differ on fewer" in text
        assert "<ul>" not in compare(self.drawn.votes, self.drawn.suggested)._repr_html_()

    def test_json(self, found: Comparison) -> None:
        said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert list(said) == ["kappas", "differences", "confidence_level", "notes"]
        assert said["kappas"]["llm"]["value"] == found.kappas["llm"].value
        assert said["differences"] == found.differences.to_dicts()
        undefined = compare([[1, 1], [1, 1]], {"A": [1, 1], "B": [1, 2]})
        said = json.loads(json.dumps(undefined.to_dict(), allow_nan=False))
        assert said["differences"][0]["pvalue"] is None
        assert said["differences"][0]["reason"]

    def test_notes(self, found: Comparison) -> None:
        assert found.notes == ()
        many = dict.fromkeys("abcd", BOTH["A"])
        (note,) = compare(EXAMPLE.votes, many).notes
        assert (note.code, note.text) == (
            "few-discordant",
            "Labels differ on fewer than 10 items between 'a' and 'b', 'a' and 'c', 'a' and 'd', ...: their p comes "
            "from swapping labels at random, item by item.",
        )


VOTES = [[1, 1], [1, 2], [2, 2]]
PAIR = {"a": [1, 1, 2], "b": [1, 2, 2]}
TALLY = tally(VOTES, {**PAIR, "c": [2, 2, 2]})


def bad() -> Iterator[tuple[str, dict[str, Any], str]]:
    mapping = (
        r"suggested must map the name of each labeler to its labels, such as \{'rule': labels, 'llm': labels\}: got "
    )
    two = "suggested must name two labelers at least, to compare them: got "
    yield (
        "a list of arrays",
        {"data": VOTES, "suggested": [[1, 1, 2], [1, 2, 2]]},
        mapping + r"\[\[1, 1, 2\], \[1, 2, 2\]\]\.",
    )
    yield "an array", {"data": VOTES, "suggested": np.array([1, 1, 2])}, mapping + r"array\(\[1, 1, 2\]\)\."
    yield "nothing", {"data": VOTES}, mapping + "None"
    yield "a name", {"data": VOTES, "suggested": "a"}, mapping + "'a'"
    yield "an empty mapping", {"data": VOTES, "suggested": {}}, "suggested is an empty mapping"
    yield "one labeler", {"data": VOTES, "suggested": {"a": [1, 1, 2]}}, two + r"'a'\."
    yield "one labeler without a name", {"data": VOTES, "suggested": {"": [1, 1, 2]}}, "every labeler needs a name"
    yield (
        "a number as a name",
        {"data": VOTES, "suggested": {1: [1, 1, 2], 2: [1, 1, 2]}},
        "as text, to labels: got the name 1",
    )
    yield (
        "few labels",
        {"data": VOTES, "suggested": {**PAIR, "c": [1, 1]}},
        r"votes has 3 items but suggested\['c'\] has 2 labels",
    )
    yield (
        "labels that are none",
        {"data": VOTES, "suggested": {**PAIR, "c": [1, 1, 0.5]}},
        r"suggested\['c'\] holds 0.5",
    )
    yield "no votes", {"suggested": PAIR}, "pass either votes or counts="
    yield "votes and counts", {"data": VOTES, "suggested": PAIR, "counts": [[2, 0]] * 3}, "pass either votes or counts="
    yield "other categories", {"data": VOTES, "suggested": PAIR, "categories": [1]}, "votes holds 2, not among"
    yield (
        "other labels",
        {"data": VOTES, "suggested": {**PAIR, "c": [1, 2, 3]}, "categories": [1, 2]},
        "suggested holds 3",
    )
    yield (
        "level 0",
        {"data": VOTES, "suggested": PAIR, "confidence_level": 0},
        "level must be between 0 and 1, such as 0.95: got 0",
    )
    yield "level 95", {"data": VOTES, "suggested": PAIR, "confidence_level": 95}, "level must be between 0 and 1"
    yield "rng", {"data": VOTES, "suggested": PAIR, "rng": "x"}, "rng must be a seed"
    yield "panel", {"data": VOTES, "suggested": PAIR, "panel": "open"}, "panel must be one of 'fixed', 'drawn'"
    yield (
        "panel of two",
        {"data": VOTES, "suggested": PAIR, "pool": 9, "panel": "drawn"},
        "needs three votes on every item",
    )
    yield "a small pool", {"data": VOTES, "suggested": PAIR, "pool": 2}, "pool holds 2 items but the sample has 3"
    yield (
        "a thin stratum",
        {"data": VOTES, "suggested": PAIR, "strata": list("xxy")},
        "stratum 'y' has one eligible item",
    )
    yield (
        "sample_weight",
        {"data": VOTES, "suggested": PAIR, "sample_weight": [1, -1, 1]},
        "weights must be numbers, 0 or more",
    )
    yield "a tally without names", {"data": tally(VOTES, [1, 1, 2])}, two + r"one without a name\."
    yield "an empty tally", {"data": Tally()}, two + r"one without a name\."
    yield "one of a tally", {"data": TALLY, "suggested": "a"}, two + r"'a'\."
    yield (
        "names not in the tally",
        {"data": TALLY, "suggested": ["a", "x"]},
        r"'x', not in the tally\. Labelers: 'a', 'b', 'c'",
    )
    yield "a name twice", {"data": TALLY, "suggested": ["a", "a"]}, "suggested names a labeler twice: 'a', 'a'"
    yield "no names", {"data": TALLY, "suggested": []}, "two labelers at least"
    yield (
        "a tally and labels",
        {"data": TALLY, "suggested": PAIR},
        "suggested must list names of labelers, beside a Tally: got",
    )
    yield (
        "a tally and a number",
        {"data": TALLY, "suggested": 3},
        "suggested must list names of labelers, beside a Tally: got 3",
    )
    yield "a tally and weights", {"data": TALLY, "sample_weight": [1, 1, 1]}, "a Tally is given.*leave out weights"


@pytest.mark.parametrize(("given", "message"), [case[1:] for case in bad()], ids=[case[0] for case in bad()])
def test_bad_input(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        compare(**given)
    assert str(caught.value)[-1] in ".?"


def test_all_labelers_of_a_tally_by_default() -> None:
    assert list(compare(TALLY).kappas) == ["a", "b", "c"]
    assert list(compare(TALLY, ("c", "a")).kappas) == ["c", "a"]
    assert rows_of(compare(TALLY, np.array(["a", "b"]))) == rows_of(compare(VOTES, PAIR))
