"""Kappa by suggested category against exact fractions: decomposition, influence, intervals, confusion."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given

import oracle
from dhkappa import Kappa, dh_kappa, simulate, tally
from dhkappa.stats.categories import (
    CategoryParts,
    by_category,
    category_extremes,
    category_influence,
    category_parts,
    category_squares,
    confusion,
)
from dhkappa.stats.influence import Terms
from exact import dense, exact_terms, float_terms, fractions
from expect import expect_error
from interval_oracle import beta_limits
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


def terms_of(data: Data) -> Terms:
    return float_terms(dh_kappa(tally(data.votes, data.suggested, categories=data.categories)))


def exact_terms_of(data: Data) -> Terms:
    return exact_terms(dh_kappa(tally(data.votes, data.suggested, categories=data.categories)))


def exact_parts(found: Terms) -> CategoryParts:
    """D_j, E_j and kappa_j of exact terms by their formulas; 0 where undefined."""
    m = len(found.C)
    own = [np.flatnonzero(found.suggested == j) for j in range(m)]
    sizes = [found.items[rows] for rows in own]
    E = 2 * found.C**2 - (found.C**2).sum()
    defined = np.array([bool(n.sum()) and E_j != 1 for n, E_j in zip(sizes, E, strict=True)])
    D = fractions(sum(found.d[rows] * n) / F(int(n.sum())) if n.size else 0 for rows, n in zip(own, sizes, strict=True))
    kappa = fractions((D[j] - E[j]) / (1 - E[j]) if defined[j] else 0 for j in range(m))
    weight = found.L * (1 - E) / (found.L * (1 - E)).sum()
    return CategoryParts(np.array([int(n.sum()) for n in sizes]), D, E, kappa, weight, defined)


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


@pytest.mark.parametrize(("data", "kappas", "weights"), WORKED.values(), ids=WORKED)
def test_worked_examples(data: Data, kappas: list[F], weights: list[F]) -> None:
    parts = exact_parts(exact_terms_of(data))
    assert (parts.kappa.tolist(), parts.weight.tolist()) == (kappas, weights)
    table = by_category(terms_of(data))
    assert table.column("category") == list(data.categories)
    assert table.column("kappa") == pytest.approx([float(kappa) for kappa in kappas], rel=1e-14)  # a few roundings
    assert table.column("weight") == pytest.approx([float(weight) for weight in weights], rel=1e-14)


@given(defined_data)
def test_floats_are_the_exact_parts(data: Data) -> None:
    exact, found = exact_parts(exact_terms_of(data)), category_parts(terms_of(data))
    assert found.items.tolist() == exact.items.tolist()
    assert found.defined.tolist() == exact.defined.tolist()
    # A few roundings of 10^-16 in sums of terms of size 1, divided by 1 - E_j.
    assert pytest.approx(exact.E.astype(float), rel=0, abs=1e-14) == found.E
    assert found.weight == pytest.approx(exact.weight.astype(float), rel=1e-11, abs=1e-13)
    j = exact.defined
    assert found.kappa[j] == pytest.approx(exact.kappa[j].astype(float), rel=1e-11, abs=1e-11)
    assert np.isnan(found.kappa[~j]).all()
    assert (found.weight[~j] == 0).all()


@given(defined_data)
def test_parts_add_up_to_kappa(data: Data) -> None:
    terms = exact_terms_of(data)
    parts = exact_parts(terms)
    assert sum(parts.weight.tolist()) == 1
    assert sum(L * E for L, E in zip(terms.L, parts.E, strict=True)) == terms.E
    assert (parts.weight * parts.kappa).sum() == terms.kappa
    table = by_category(terms_of(data))
    known = [row for row in table if row["weight"]]
    # Rounded parts of order 1.
    assert math.fsum(row["weight"] * row["kappa"] for row in known) == pytest.approx(float(terms.kappa), abs=1e-11)
    assert math.fsum(table.column("loss")) == pytest.approx(1 - float(terms.kappa), abs=1e-11)


@given(defined_data)
def test_kappa_of_each_label_against_oracle(data: Data) -> None:
    parts = exact_parts(exact_terms_of(data))
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    for code, j in enumerate(data.categories):
        truth = kappa_of_label(items, labels, j)
        assert parts.items[code] == list(labels).count(j)
        assert parts.defined[code] == (truth is not None)
        assert truth is None or parts.kappa[code] == truth.value


@given(complete(max_categories=2).filter(is_defined))
def test_two_categories_give_conditional_kappa(data: Data) -> None:
    """Conditional kappa of label j: (share of votes j among items labeled j - C_j) / (1 - C_j)."""
    found = exact_terms_of(data)
    parts = exact_parts(found)
    for code in np.flatnonzero(parts.defined):
        j = data.categories[code]
        own = [oracle.vote_share(item, j) for item, label in zip(data.votes, data.suggested, strict=True) if label == j]
        C = found.C[code]
        assert parts.kappa[code] == (oracle.mean(own) - C) / (1 - C)


@given(ragged(max_items=8, max_votes=4, max_categories=4).filter(is_defined))
def test_influence_is_the_derivative(data: Data) -> None:
    found = exact_terms_of(data)
    parts = exact_parts(found)
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
def test_sums_of_squares_against_exact_influence(data: Data) -> None:
    exact, found = exact_terms_of(data), terms_of(data)
    parts = exact_parts(exact)
    squares = category_squares(found, category_parts(found))
    for code in range(len(data.categories)):
        if not parts.defined[code]:
            assert math.isnan(squares[code])
            continue
        phi = category_influence(exact, parts, code)
        truth = (phi**2 * exact.items).sum()
        # A difference of sums that are right to 10^-15 and, on so few items, rarely a thousand times larger.
        assert squares[code] == pytest.approx(float(truth), rel=1e-9)
        assert (squares[code] == 0) == (truth == 0)


def test_flawless_categories_are_flawless_in_floats() -> None:
    """Of 25 items, 9 with one label: 25 times .36 is not 9 in floats."""
    for m in range(2, 9):
        for n in range(m, 60):
            labels = [chr(97 + place % m) for place in range(n)]
            table = dh_kappa([[label] * 3 for label in labels], labels).by_category()
            assert {*table.column("kappa")} == {1.0}
            assert not any("influence" in (reason or "") for reason in table.column("reason"))
            assert table.column("loss") == [0] * m


def drawn_data(n: int, rng: np.random.Generator, label_right: float = 0.8) -> Data:
    """Three votes an item, right 17 times of 20, and a label."""
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    label = np.where(rng.random(n) < label_right, truth, rng.integers(0, 3, n))
    votes = np.where(rng.random((n, 3)) < 0.85, truth[:, None], rng.integers(0, 3, (n, 3)))
    return Data((0, 1, 2), votes.tolist(), label.tolist())


def test_se_against_jackknife() -> None:
    """Both estimate the same spread and differ by O(1/n): within 3% at 300 items, where labels have 60 or more."""
    data = drawn_data(300, np.random.default_rng(5))
    found = terms_of(data)
    se = by_category(found).column("se")
    without = [category_parts(terms_of(data.take([k for k in range(300) if k != i]))).kappa for i in range(300)]
    spread = np.array(without) - np.mean(without, axis=0)
    assert se == pytest.approx(np.sqrt(299 / 300 * (spread**2).sum(axis=0)).tolist(), rel=0.03)


@pytest.mark.slow
def test_coverage_of_intervals_by_simulation() -> None:
    """94% cover at 200 items; of 400 x 3, three to a data set, the share has a standard error of .012 at most."""
    rng = np.random.default_rng(11)
    truth = category_parts(terms_of(drawn_data(400_000, rng))).kappa
    hits = []
    for _ in range(400):
        table = by_category(terms_of(drawn_data(200, rng)))
        hits += [row["low"] <= kappa <= row["high"] for row, kappa in zip(table, truth, strict=True)]
    assert 0.91 <= np.mean(hits) <= 0.975


def test_no_lower_limit_above_that_of_flawless_items() -> None:
    data = from_counts("30/1 " * 10 + "03/2 " * 9 + "12/2")
    one, two = by_category(terms_of(data))
    parts = category_parts(terms_of(data))
    flawless = [1 - 2 * (1 - 0.025 ** (1 / 10)) / (1 - float(E)) for E in parts.E]
    assert (one["kappa"], one["se"] > 0, two["kappa"] < 1) == (1, False, True)
    assert [one["low"], two["low"]] == pytest.approx(flawless)
    assert one["high"] == 1 > two["high"]
    assert one["reason"] is two["reason"] is None


def test_undefined_categories_say_why() -> None:
    never = by_category(terms_of(from_counts("300/1 021/2"))).to_dicts()[2]
    assert (never["items"], never["weight"], never["label_share"]) == (0, 0, 0)
    assert never["vote_share"] == pytest.approx(1 / 6)
    assert all(math.isnan(never[name]) for name in ("kappa", "se", "low", "high"))
    assert never["reason"]

    certain, other = by_category(terms_of(from_counts("30/1 30/2 30/2")))
    assert math.isnan(certain["kappa"])
    assert certain["weight"] == 0
    assert "Every vote is this category" in certain["reason"]
    assert (other["kappa"], other["weight"]) == (0, 1)

    first = by_category(terms_of(EXAMPLE_2)).to_dicts()[1]
    assert first["kappa"] == pytest.approx(6 / 11, rel=1e-14)
    assert math.isnan(first["se"])
    assert "one item" in first["reason"]


def test_structural_zero_has_no_interval() -> None:
    """One label and two categories: kappa_j is 0 whatever the votes, so its standard error says nothing."""
    data = from_counts("30/1 " * 7 + "21/1 " * 5 + "12/1 " * 3 + "20/1 11/1")
    row = by_category(terms_of(data)).to_dicts()[0]
    assert row["kappa"] == pytest.approx(0, abs=1e-15)
    assert math.isnan(row["se"])
    assert math.isnan(row["low"])
    assert "same influence" in row["reason"]


def test_level_must_be_a_probability() -> None:
    with expect_error("invalid-confidence-level", "confidence_level"):
        by_category(terms_of(EXAMPLE_1), confidence_level=95)


def test_a_billion_items_give_the_same_kappas_as_a_few() -> None:
    found = terms_of(drawn_data(300, np.random.default_rng(8)))
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
    found = terms_of(Data(tuple(range(400)), votes.tolist(), label.tolist()))
    parts = category_parts(found)
    squares = category_squares(found, parts)
    c, C, d, w = dense(found, found.c), found.C, found.d[:, None], found.items[:, None]
    q = found.suggested[:, None] == np.arange(400)
    phi = q * (d - parts.D) / found.L - (1 - parts.kappa) * (4 * C * (c - C) - 2 * ((c - C) @ C)[:, None])
    # 5,000 roundings of 10^-16 in the plain sum.
    assert squares == pytest.approx((w * (phi / (1 - parts.E)) ** 2).sum(axis=0), rel=1e-11)


@given(defined_data)
def test_confusion_against_oracle(data: Data) -> None:
    table = confusion(terms_of(data))
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
        expected: dict[Hashable, tuple[float, float]] = {
            k: (float(pairs[k]), float(votes[k])) for k in pairs if votes[k]
        }
        if apart:
            expected[None] = (float(apart), 0.0)
        assert cells.keys() == expected.keys()
        for k, both in expected.items():
            assert cells[k] == pytest.approx(both, rel=1e-12)  # sums of products, each rounded once
        shares = [row["pair_share"] for row in here if row["agreed"] is not None]
        assert shares == sorted(shares, reverse=True)
        assert [row["agreed"] for row in here].count(None) == (here[-1]["agreed"] is None)


def test_confusion_by_hand() -> None:
    rows = confusion(terms_of(EXAMPLE_1)).to_dicts()
    expected = [
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
    assert [(row["suggested"], row["agreed"]) for row in rows] == [row[:2] for row in expected]
    shares = [(row["pair_share"], row["vote_share"]) for row in rows]
    assert sum(shares, ()) == pytest.approx(sum((row[2:] for row in expected), ()), rel=1e-15)


ONE_ITEM = "Only one item has this label, so the variance is unknown."
NO_VARIATION = "Every item has the same influence, so the variance is unknown."


def test_confusion_is_sorted_by_pairs_then_by_votes() -> None:
    tie = dh_kappa([["a", "b", "b", "a", "c"], ["c", "c", "c", "b", "b"]], ["a", "a"])
    found = [(row["agreed"], round(row["pair_share"], 3), row["vote_share"]) for row in tie.confusion()]
    # c agrees on 3 of 20 pairs, b on 2, a on 1.
    assert found == [("c", 0.15, 0.4), ("b", 0.1, 0.4), ("a", 0.05, 0.2), (None, 0.7, 0.0)]
    even = dh_kappa([["a", "b", "b"], ["a", "c", "b"], ["a", "c", "b"]], ["b", "b", "b"])
    assert [row["agreed"] for row in even.confusion()] == ["b", "a", "c", None]  # no pairs: by votes, 1/3 and 2/9


@pytest.mark.parametrize(
    ("kappa", "reasons"),
    [
        (
            dh_kappa([["a", "a"], ["b", "b"], ["b", "c"]], ["a", "b", "d"], categories=list("abcd")),
            [ONE_ITEM, ONE_ITEM, "Never suggested.", ONE_ITEM],
        ),
        (
            dh_kappa([["a", "a"]] * 4, list("aabb")),
            ["Every vote is this category, so agreement on it is certain.", NO_VARIATION],
        ),
        (
            dh_kappa([["a", "a"], ["b", "b"], ["a", "b"]], list("aba"), sample_weight=[1e-300, 1e-300, 1e300]),
            [NO_VARIATION, "Its items have almost no weight."],
        ),
    ],
)
def test_reasons(kappa: Kappa, reasons: list[str]) -> None:
    table = kappa.by_category()
    assert table.column("reason") == reasons
    assert all(map(math.isnan, table.column("se")))


def weighted_limits(kappa: Kappa, code: int, n: Fraction) -> tuple[float, float]:
    """The 95% limits of a category by their formulas, with n items that weigh the same."""
    found, row = float_terms(kappa), list(kappa.by_category())[code]
    parts = category_parts(found)
    ends = [F(float(values[code])) for values in category_extremes(found, parts)]
    E = F(float(parts.E[code]))
    known = F(row["kappa"]), E, n, n * (n - 1) * F(row["se"]) ** 2, (ends[0], ends[1]), 1 - 2 / (1 - E), F(2)
    return beta_limits(*known)


def test_weights_by_category() -> None:
    """Items with weights w know as much as (sum w)^2 / sum w^2 items of equal weight."""
    drawn = simulate(30, rng=3)
    labels = drawn.suggested["labeler"]
    sample_weight = [(0.01 if label == "a" else 1.0) * (1 + i % 5) for i, label in enumerate(labels)]
    kappa = dh_kappa(drawn.votes, labels, sample_weight=sample_weight)
    for code, row in enumerate(kappa.by_category()):
        own = [F(weight) for weight, label in zip(sample_weight, labels, strict=True) if label == row["category"]]
        n = sum(own, F(0)) * sum(own, F(0)) / sum((weight * weight for weight in own), F(0))
        assert row["items"] == len(own) > 3
        assert (row["low"], row["high"]) == pytest.approx(weighted_limits(kappa, code, n), rel=1e-9)
        assert row["se"] > 0


def test_a_whole_pool_is_known_for_sure() -> None:
    """All votes are a, so for the label b D and E are both -1, and no item moves its kappa of 0."""
    for pool, known in ((4, True), (5, False)):
        row = list(dh_kappa([["a", "a"]] * 4, list("aabb"), pool=pool).by_category())[1]
        assert (row["category"], row["kappa"]) == ("b", 0)
        if known:
            assert (row["se"], row["low"], row["high"], row["reason"]) == (0, 0, 0, None)
        else:
            assert "same influence" in row["reason"]
            assert all(math.isnan(row[name]) for name in ("se", "low", "high"))


def test_light_items_know_as_much_as_their_number() -> None:
    """Eight items of equal weight count as eight, also where that weight is a thousandth."""
    votes = [list(item) for item in ("aaa", "aab", "abb", "aaa", "aac", "aab", "aaa", "acc")]
    others = [list(item) for item in ("bbb", "bbc", "bba", "ccc", "ccb", "cca")]
    sample_weight = [0.001] * 8 + [1.0] * 6
    kappa = dh_kappa(votes + others, list("aaaaaaaabbbccc"), sample_weight=sample_weight)
    row = next(iter(kappa.by_category()))
    assert (row["category"], row["items"]) == ("a", 8)
    assert (row["low"], row["high"]) == pytest.approx(weighted_limits(kappa, 0, F(8)), rel=1e-9)


def test_a_whole_stratum_is_not_a_whole_pool() -> None:
    """All items with label b are drawn, but their kappa also depends on the votes on items not drawn."""
    for pool, known in (({"x": 2, "y": 2}, True), ({"x": 2, "y": 9}, False)):
        row = list(dh_kappa([["a", "a"]] * 4, list("bbaa"), strata=list("xxyy"), pool=pool).by_category())[1]
        assert (row["category"], row["kappa"]) == ("b", 0)
        assert (row["se"] == 0, row["reason"] is None) == (known, known)


def test_titles() -> None:
    kappa = dh_kappa([["a", "a"], ["b", "b"], ["a", "b"]], list("aba"))
    assert kappa.by_category(0.9).title == "Kappa by suggested category, 90% confidence intervals"
    assert kappa.confusion().title == "What annotators agree on, by suggested label"
