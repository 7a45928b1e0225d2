"""Kappa by suggested category: parts that add up, influence, intervals, and what the panel agrees on."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dhkappa.stats.terms import Terms, terms
from hypothesis import example, given
from scipy.stats import t as student

import oracle
from dhkappa import DataError, dh_kappa, tally
from dhkappa.stats.categories import (
    by_category,
    category_influence,
    category_parts,
    category_squares,
    confusion,
)
from strategies import Data, complete, from_counts, ragged

F = Fraction
NOTHING = F(0)
EXAMPLE_1 = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
EXAMPLE_2 = from_counts("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1")
EXAMPLE_3 = from_counts("20/1 20/1 11/1 02/2 02/1")
WORKED = {
    "example 1": (EXAMPLE_1, [F(65, 92), F(25, 52), F(7, 34)], [F(23, 68), F(39, 136), F(3, 8)]),
    "example 2": (EXAMPLE_2, [F(43, 123), F(6, 11), F(1)], [F(615, 1079), F(220, 1079), F(244, 1079)]),
    # E_1 = E_2 = 0, so the weights are L.
    "example 3": (EXAMPLE_3, [F(1, 4), F(1)], [F(4, 5), F(1, 5)]),
}


def is_defined(data: Data) -> bool:
    return oracle.dh(data.votes, data.suggested, data.categories).kappa is not None


defined_data = ragged().filter(is_defined)


def terms_of(data: Data, exact: bool = True) -> Terms:
    kappa = dh_kappa(tally(data.votes, data.suggested, categories=data.categories))
    assert kappa.parts is not None
    return terms(kappa.sample, kappa.parts, exact=exact)


def names(data: Data) -> tuple[Any, ...]:
    return data.categories


@dataclass(frozen=True)
class Dual:
    """A number and its derivative: arithmetic that differentiates exactly."""

    value: Fraction
    slope: Fraction = NOTHING

    def __add__(self, other: "Dual") -> "Dual":
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: "Dual") -> "Dual":
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: "Dual") -> "Dual":
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def __truediv__(self, other: "Dual") -> "Dual":
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)


ZERO, ONE = Dual(F(0)), Dual(F(1))


def kappa_of_label(
    items: oracle.Votes, labels: Sequence[Hashable], j: Hashable, moved: int | None = None
) -> Dual | None:
    """kappa_j from pairs of votes, D_j over items labeled j and E_j by two votes drawn from C.

    Its slope is the derivative by the weight of the item ``moved``.
    """
    sample_weight = [Dual(F(1), F(i == moved)) for i in range(len(items))]
    total = sum(sample_weight, ZERO)
    voted = {vote for item in items for vote in item}
    E = D = own = ZERO
    for k in voted:
        shares = [w * Dual(oracle.vote_share(item, k)) for item, w in zip(items, sample_weight, strict=True)]
        C = sum(shares, ZERO) / total
        E = E + Dual(F(1 if k == j else -1)) * C * C
    for item, label, w in zip(items, labels, sample_weight, strict=True):
        if label == j:
            own = own + w
            D = D + w * Dual(sum(((1 if k == j else -1) * oracle.pair_share(item, k) for k in voted), F(0)))
    if own.value == 0 or E.value == 1:
        return None
    return (D / own - E) / (ONE - E)


def expand(data: Data, values: Sequence[Fraction], found: Terms) -> list[Fraction]:
    """Give each eligible item the value of its pattern."""
    p = found.patterns
    by_pattern = {}
    for row, value in enumerate(values):
        span = slice(p.start[row], p.start[row + 1])
        counts = frozenset(zip(p.code[span].tolist(), p.votes[span].tolist(), strict=True))
        by_pattern[int(p.suggested[row]), counts] = value
    code = {category: k for k, category in enumerate(data.categories)}
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    return [
        by_pattern[code[label], frozenset((code[k], item.count(k)) for k in set(item))]
        for item, label in zip(items, labels, strict=True)
    ]


@pytest.mark.parametrize(("data", "kappas", "sample_weight"), WORKED.values(), ids=WORKED)
def test_parts_against_worked_example(data: Data, kappas: list[F], sample_weight: list[F]) -> None:
    parts = category_parts(terms_of(data))
    assert parts.kappa.tolist() == kappas
    assert parts.weight.tolist() == sample_weight
    table = by_category(terms_of(data), names(data))
    assert table.column("category") == list(data.categories)
    assert table.column("kappa") == [float(kappa) for kappa in kappas]
    assert table.column("weight") == [float(weight) for weight in sample_weight]


@given(defined_data)
def test_parts_add_up_to_kappa_exactly(data: Data) -> None:
    found = terms_of(data)
    parts = category_parts(found)
    assert sum(parts.weight.tolist()) == 1
    assert sum(L * E for L, E in zip(found.L, parts.E, strict=True)) == found.E
    defined = np.flatnonzero(parts.defined)
    assert (parts.weight[defined] * parts.kappa[defined]).sum() == found.kappa
    assert (parts.weight[~parts.defined] == 0).all()
    assert sum(parts.items.tolist()) == found.n


@given(defined_data)
def test_kappa_of_each_label_against_oracle(data: Data) -> None:
    parts = category_parts(terms_of(data))
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    for code, j in enumerate(data.categories):
        truth = kappa_of_label(items, labels, j)
        assert parts.items[code] == list(labels).count(j)
        if truth is None:
            assert not parts.defined[code]
            assert math.isnan(parts.kappa[code])
        else:
            assert parts.kappa[code] == truth.value


@given(complete(max_categories=2).filter(is_defined))
def test_two_categories_give_conditional_kappa(data: Data) -> None:
    """Conditional kappa of label j: (share of votes j among items labeled j - C_j) / (1 - C_j)."""
    found = terms_of(data)
    parts = category_parts(found)
    for code in np.flatnonzero(parts.defined):
        j = data.categories[code]
        own = [oracle.vote_share(item, j) for item, label in zip(data.votes, data.suggested, strict=True) if label == j]
        C = found.C[code]
        assert parts.kappa[code] == (oracle.mean(own) - C) / (1 - C)


@given(ragged(max_items=8, max_votes=4, max_categories=4).filter(is_defined))
def test_influence_is_the_derivative(data: Data) -> None:
    found = terms_of(data)
    parts = category_parts(found)
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    for code in np.flatnonzero(parts.defined).tolist():
        phi = category_influence(found, parts, code)
        assert (phi * found.items).sum() == 0
        for i, value in enumerate(expand(data, phi.tolist(), found)):
            truth = kappa_of_label(items, labels, data.categories[code], moved=i)
            assert truth is not None
            assert value == len(items) * truth.slope


@example(Data((-3, 2, 0, 7), [[2, 2, 2, -3, 2, 2]], [-3]))  # one item, so no spread but by rounding
@given(defined_data)
def test_sum_of_squares_against_influence_exactly(data: Data) -> None:
    found = terms_of(data)
    parts = category_parts(found)
    squares = category_squares(found, parts)
    rough = terms_of(data, exact=False)
    rough_squares = category_squares(rough, category_parts(rough))
    for code in range(len(data.categories)):
        if not parts.defined[code]:
            assert math.isnan(squares[code])
            assert math.isnan(rough_squares[code])
            continue
        phi = expand(data, category_influence(found, parts, code).tolist(), found)
        assert squares[code] == sum((value**2 for value in phi), F(0))
        # A difference of sums that are right to 10^-15 and, on so few items, rarely a thousand times larger.
        assert rough_squares[code] == pytest.approx(float(squares[code]), rel=1e-9)
        assert (rough_squares[code] == 0) == (squares[code] == 0)


@given(defined_data)
def test_floats_against_fractions(data: Data) -> None:
    exact = by_category(terms_of(data), names(data))
    rough = by_category(terms_of(data, exact=False), names(data))
    for name in ("category", "items", "reason"):
        assert rough.column(name) == exact.column(name)
    for name in ("kappa", "weight", "vote_share", "label_share", "se", "low", "high"):
        # A few roundings of 10^-16; t with one degree of freedom multiplies those of se by 13, the root halves digits
        # only where squares nearly cancel.
        assert rough.column(name) == pytest.approx(exact.column(name), rel=1e-8, abs=1e-11, nan_ok=True)


def test_flawless_categories_are_flawless_in_floats() -> None:
    """Of 25 items, 9 with one label: 25 times .36 is not 9 in floats."""
    for m in range(2, 9):
        for n in range(m, 60):
            labels = [chr(97 + place % m) for place in range(n)]
            table = dh_kappa([[label] * 3 for label in labels], labels).by_category()
            assert {*table.column("kappa")} == {1.0}
            assert not any("moves" in (reason or "") for reason in table.column("reason"))
            assert table.column("loss") == [0] * m


@given(defined_data)
def test_losses_add_up_to_what_kappa_lacks(data: Data) -> None:
    found = terms_of(data)
    assert math.fsum(by_category(found, names(data)).column("loss")) == pytest.approx(1 - float(found.kappa), abs=1e-12)


def panel(n: int, rng: np.random.Generator, label_right: float = 0.8) -> Data:
    """Three votes an item, right 17 times of 20, and a label."""
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    label = np.where(rng.random(n) < label_right, truth, rng.integers(0, 3, n))
    votes = np.where(rng.random((n, 3)) < 0.85, truth[:, None], rng.integers(0, 3, (n, 3)))
    return Data((0, 1, 2), votes.tolist(), label.tolist())


def test_se_against_jackknife() -> None:
    """Both estimate the same spread and differ by O(1/n): within 3% at 300 items, where labels have 60 or more."""
    data = panel(300, np.random.default_rng(5))
    found = terms_of(data, exact=False)
    se = by_category(found, names(data)).column("se")
    without = [
        category_parts(terms_of(data.take([k for k in range(300) if k != i]), exact=False)).kappa for i in range(300)
    ]
    spread = np.array(without) - np.mean(without, axis=0)
    assert se == pytest.approx(np.sqrt(299 / 300 * (spread**2).sum(axis=0)).tolist(), rel=0.03)


def test_coverage_of_intervals_by_simulation() -> None:
    """94% cover at 200 items; of 400 x 3, three to a data set, the share has a standard error of .012 at most."""
    rng = np.random.default_rng(11)
    truth = category_parts(terms_of(panel(400_000, rng), exact=False)).kappa
    hits = []
    for _ in range(400):
        table = by_category(terms_of(panel(200, rng), exact=False), (0, 1, 2))
        hits += [row["low"] <= kappa <= row["high"] for row, kappa in zip(table, truth, strict=True)]
    assert 0.91 <= np.mean(hits) <= 0.975


def test_interval_is_t_with_items_less_one() -> None:
    data = panel(200, np.random.default_rng(3))
    for confidence_level in (0.9, 0.95):
        for row in by_category(terms_of(data), (0, 1, 2), confidence_level):
            half = student.ppf((1 + confidence_level) / 2, row["items"] - 1) * row["se"]
            # Two routes to the t quantile, each right to about 10^-12.
            assert (row["low"], row["high"]) == pytest.approx((row["kappa"] - half, row["kappa"] + half), rel=1e-9)


def test_no_lower_limit_above_that_of_flawless_items() -> None:
    data = from_counts("30/1 " * 10 + "03/2 " * 9 + "12/2")
    one, two = by_category(terms_of(data), names(data))
    parts = category_parts(terms_of(data))
    flawless = [1 - 2 * (1 - 0.025 ** (1 / 10)) / (1 - float(E)) for E in parts.E]
    assert (one["kappa"], one["se"] > 0, two["kappa"] < 1) == (1, False, True)
    assert [one["low"], two["low"]] == pytest.approx(flawless)
    assert (one["high"], two["high"]) == (1, 1)
    assert one["reason"] is two["reason"] is None


def test_undefined_categories_say_why() -> None:
    never = by_category(terms_of(from_counts("300/1 021/2")), (1, 2, 3)).to_dicts()[2]
    assert (never["items"], never["weight"], never["label_share"]) == (0, 0, 0)
    assert never["vote_share"] == pytest.approx(1 / 6)
    assert all(math.isnan(never[name]) for name in ("kappa", "se", "low", "high"))
    assert never["reason"] == "never suggested."

    certain, other = by_category(terms_of(from_counts("30/1 30/2 30/2")), (1, 2))
    assert math.isnan(certain["kappa"])
    assert certain["weight"] == 0
    assert "every vote is this category" in certain["reason"]
    assert (other["kappa"], other["weight"]) == (0, 1)

    first = by_category(terms_of(EXAMPLE_2), names(EXAMPLE_2)).to_dicts()[1]
    assert first["kappa"] == float(F(6, 11))
    assert math.isnan(first["se"])
    assert "one item" in first["reason"]


@pytest.mark.parametrize("exact", [True, False])
def test_structural_zero_has_no_interval(exact: bool) -> None:
    """One label and two categories: kappa_j is 0 whatever the votes, so its standard error says nothing."""
    data = from_counts("30/1 " * 7 + "21/1 " * 5 + "12/1 " * 3 + "20/1 11/1")
    row = by_category(terms_of(data, exact), names(data)).to_dicts()[0]
    assert row["kappa"] == pytest.approx(0, abs=1e-15)
    assert math.isnan(row["se"])
    assert math.isnan(row["low"])
    assert row["reason"] == "no item moves it, so its spread is unknown."


def test_level_must_be_a_probability() -> None:
    with pytest.raises(DataError, match="level must be between 0 and 1"):
        by_category(terms_of(EXAMPLE_1), names(EXAMPLE_1), confidence_level=95)


def test_a_billion_items_give_the_same_kappas_as_a_few() -> None:
    found = terms_of(panel(300, np.random.default_rng(8)), exact=False)
    items = found.items * 10**7
    sample = replace(found.sample, patterns=replace(found.patterns, items=items), mass=items)
    many = replace(found, sample=sample, weight=items)
    few_parts, many_parts = category_parts(found), category_parts(many)
    # Sums of the same products, ten million times larger: roundings of 10^-16 each.
    assert many_parts.kappa == pytest.approx(few_parts.kappa, rel=1e-13)
    assert category_squares(many, many_parts) / 10**7 == pytest.approx(category_squares(found, few_parts), rel=1e-11)


def test_many_categories_against_dense_computation() -> None:
    """5,000 items over 400 categories, most of them without votes for any one category."""
    rng = np.random.default_rng(2)
    label = rng.integers(0, 400, 5000)
    votes = np.where(rng.random((5000, 4)) < 0.6, label[:, None], rng.integers(0, 400, (5000, 4)))
    found = terms_of(Data(tuple(range(400)), votes.tolist(), label.tolist()), exact=False)
    parts = category_parts(found)
    squares = category_squares(found, parts)
    c, C, d, w = found.dense(found.c), found.C, found.d[:, None], found.items[:, None]
    q = found.suggested[:, None] == np.arange(400)
    phi = q * (d - parts.D) / found.L - (1 - parts.kappa) * (4 * C * (c - C) - 2 * ((c - C) @ C)[:, None])
    dense = (w * (phi / (1 - parts.E)) ** 2).sum(axis=0)
    # 5,000 roundings of 10^-16 in the plain sum.
    assert squares == pytest.approx(dense, rel=1e-11)


@given(defined_data)
def test_confusion_against_oracle(data: Data) -> None:
    table = confusion(terms_of(data), names(data))
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    rows = table.to_dicts()
    assert {row["suggested"] for row in rows} == set(labels)
    for j in dict.fromkeys(labels):
        own = [item for item, label in zip(items, labels, strict=True) if label == j]
        here = [row for row in rows if row["suggested"] == j]
        assert {row["items"] for row in here} == {len(own)}
        pairs = {k: oracle.mean([oracle.pair_share(item, k) for item in own]) for k in data.categories}
        votes = {k: oracle.mean([oracle.vote_share(item, k) for item in own]) for k in data.categories}
        cells = {row["agreed"]: (row["pair_share"], row["vote_share"]) for row in here}
        apart = 1 - sum(pairs.values())
        expected = {k: (float(pairs[k]), float(votes[k])) for k in pairs if votes[k]}
        assert cells == expected | ({None: (float(apart), 0.0)} if apart else {})
        shares = [row["pair_share"] for row in here if row["agreed"] is not None]
        assert shares == sorted(shares, reverse=True)
        assert [row["agreed"] for row in here].count(None) == (here[-1]["agreed"] is None)


@given(defined_data)
def test_confusion_of_floats_against_fractions(data: Data) -> None:
    exact, rough = (confusion(terms_of(data, exact), names(data)).to_dicts() for exact in (True, False))
    cells = {(row["suggested"], row["agreed"]): row for row in rough}
    assert len(cells) == len(exact)
    for row in exact:
        # Sums rounded once of products that are.
        twin = cells[row["suggested"], row["agreed"]]
        assert twin["items"] == row["items"]
        assert (twin["pair_share"], twin["vote_share"]) == pytest.approx(
            (row["pair_share"], row["vote_share"]), rel=1e-12
        )


def test_confusion_by_hand() -> None:
    rows = confusion(terms_of(EXAMPLE_1), names(EXAMPLE_1)).to_dicts()
    assert [(row["suggested"], row["agreed"], row["pair_share"], row["vote_share"]) for row in rows] == [
        (1, 1, float(F(2, 3)), float(F(5, 6))),
        (1, 2, 0.0, float(F(1, 6))),
        (1, None, float(F(1, 3)), 0.0),
        (2, 2, 0.5, float(F(2, 3))),
        (2, 1, 0.0, float(F(1, 6))),
        (2, 3, 0.0, float(F(1, 6))),
        (2, None, 0.5, 0.0),
        (3, 2, 0.5, 0.5),
        (3, 3, 0.5, 0.5),
    ]
