"""Permutation test: moments and p-values against all n! permutations, kappa_P against its derivative."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.special import ndtr
from scipy.stats import hypergeom

import exact
import oracle
from dhkappa import Kappa, PermutationTest, Tally, dh_kappa, simulate, tally
from dhkappa.stats.influence import Terms
from dhkappa.stats.permutation import (
    above_random,
    group_items,
    permutation_moments,
    permutation_skewness,
    permutation_test,
)
from exact import exact_terms, example, float_terms
from expect import expect_error
from strategies import Data, complete, from_counts, ragged

F = Fraction

ONE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
TWO = from_counts("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1")
THREE = from_counts("20/1 20/1 11/1 02/2 02/1")
EXAMPLES = {"example 1": ONE, "example 2, ragged": TWO, "example 3, two categories": THREE}
SMALL = {
    **EXAMPLES,
    "a label nobody votes for": from_counts("200/3 020/3 110/1 020/2 300/1"),
    "ragged, balanced": from_counts("2000/1 0200/2 0031/3 1102/4 0040/3 2200/1 0002/4"),
    "many ties": from_counts("300/1 300/1 030/2 030/1 003/3 003/3 111/2"),
}


def kappa_of(data: Data | Tally) -> Kappa:
    if isinstance(data, Tally):
        return dh_kappa(data)
    return dh_kappa(data.votes, data.suggested, categories=data.categories)


def terms_of(data: Data | Tally) -> Terms:
    return float_terms(kappa_of(data))


def moments_of(data: Data | Tally) -> tuple[float, float]:
    found = terms_of(data)
    return permutation_moments(found, group_items(found, found.g))


def tallied(*patterns: tuple[Sequence[int], int, int], m: int) -> Tally:
    """Return a tally of (counts, label, items), made by doubling, so that items may be many."""
    total = Tally(categories=range(m))
    for counts, label, items in patterns:
        one = tally(counts=[counts], suggested=[label], categories=range(m))
        for bit in f"{items:b}"[::-1]:
            total = total + one if bit == "1" else total
            one = one + one
    return total


def differentials(data: Data) -> tuple[Fraction, list[Fraction]]:
    """D of the eligible items, and for each of the n! permutations of their labels."""
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    share = [{label: oracle.pair_share(item, label) for label in {*item, *labels}} for item in items]

    def D(permuted: Sequence[Hashable]) -> Fraction:
        pairs = zip(share, permuted, strict=True)
        return oracle.mean([sum((g if j == label else -g for j, g in g_i.items()), F(0)) for g_i, label in pairs])

    assert D(labels) == oracle.differential(items, labels)[0]
    return D(labels), [D(permuted) for permuted in permutations(labels)]


def moments(values: list[Fraction]) -> tuple[Fraction, Fraction]:
    mean = oracle.mean(values)
    return mean, oracle.mean([(value - mean) ** 2 for value in values])


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_moments_against_all_permutations(data: Data) -> None:
    expected = moments(differentials(data)[1])
    assert exact.permutation_moments(exact_terms(kappa_of(data))) == expected
    assert moments_of(data) == pytest.approx([float(value) for value in expected], rel=1e-12, abs=1e-14)


@settings(max_examples=60)
@given(data=ragged(max_items=6, max_votes=5))
def test_moments_against_all_permutations_of_any_data(data: Data) -> None:
    coded = data.coded()
    assume(oracle.dh(coded.votes, coded.suggested, coded.categories).kappa is not None)
    expected = exact.permutation_moments(exact_terms(kappa_of(coded)))
    assert expected == moments(differentials(coded)[1])
    # Sums of at most 36 numbers of size 1: rounding stays below 1e-14. A variance of 0 is 0 in floats too.
    found = moments_of(coded)
    assert found == pytest.approx([float(value) for value in expected], rel=1e-12, abs=1e-14)
    assert (found[1] == 0) == (expected[1] == 0)


@pytest.mark.parametrize(
    ("data", "D0", "variance", "random"),
    [
        (ONE, F(-13, 54), F(86, 729), F(-59, 544)),
        (TWO, F(-1, 6), F(107, 1125), F(-263, 3237)),
        (THREE, F(0), F(16, 125), F(0)),
    ],
    ids=EXAMPLES,
)
def test_worked_examples(data: Data, D0: Fraction, variance: Fraction, random: Fraction) -> None:
    kappa, known = kappa_of(data), exact_terms(kappa_of(data))
    assert exact.permutation_moments(known) == (D0, variance)
    assert (D0 - known.E) / (1 - known.E) == random == oracle.random_by_permutation(data.votes, data.suggested)
    result = kappa.permutation_test()
    # A few roundings each.
    assert result.difference == pytest.approx(float(known.kappa - random), rel=1e-14)
    assert result.z == pytest.approx(float(known.D - D0) / math.sqrt(variance), rel=1e-14)
    assert exact.above_random(known)[0] == (known.D - D0) / (1 - D0)
    assert kappa.above_random == pytest.approx(float((known.D - D0) / (1 - D0)), rel=1e-14)


def test_worked_example_one_in_digits() -> None:
    items, _, _ = oracle.eligible(ONE.votes, ONE.suggested)
    G = [oracle.mean([oracle.pair_share(item, j) for item in items]) for j in ONE.categories]
    assert tuple(G) == (F(2, 9), F(1, 3), F(1, 6))
    assert round(kappa_of(ONE).permutation_test().z, 6) == 1.833157
    assert kappa_of(ONE).above_random == pytest.approx(34 / 67, rel=1e-15)


@settings(max_examples=40)
@given(data=complete())
def test_difference_is_covariance_of_label_and_agreement(data: Data) -> None:
    assume(oracle.dh(data.votes, data.suggested, data.categories).kappa is not None)
    known = exact_terms(kappa_of(data))
    n, covariance = len(data.votes), F(0)
    for j in data.categories:
        g = [oracle.pair_share(item, j) for item in data.votes]
        q = [F(label == j) for label in data.suggested]
        covariance += sum((a * b for a, b in zip(g, q, strict=True)), F(0)) / n - oracle.mean(g) * oracle.mean(q)
    assert known.D - exact.permutation_moments(known)[0] == 2 * covariance


@settings(max_examples=40)
@given(data=complete(max_categories=2))
def test_random_labels_score_zero_with_two_categories(data: Data) -> None:
    assume(oracle.dh(data.votes, data.suggested, data.categories).kappa is not None)
    known = exact_terms(kappa_of(data))
    assert exact.permutation_moments(known)[0] == known.E
    assert exact.above_random(known)[0] == known.kappa
    assert kappa_of(data).above_random == pytest.approx(float(known.kappa), rel=1e-12, abs=1e-14)


def skewness_of(data: Data | Tally) -> float:
    found = terms_of(data)
    groups = group_items(found, found.g)
    return permutation_skewness(found, groups, permutation_moments(found, groups)[1])


def exact_skewness(data: Data) -> float:
    """Return the skewness of D over all permutations: its moments as fractions, rounded once."""
    values = differentials(data)[1]
    mean, variance = moments(values)
    third = oracle.mean([(value - mean) ** 3 for value in values])
    return float(third) / math.sqrt(variance) ** 3


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_skewness_against_all_permutations(data: Data) -> None:
    assert skewness_of(data) == pytest.approx(exact_skewness(data), rel=1e-11, abs=1e-13)


@settings(max_examples=60)
@given(data=ragged(max_items=6, max_votes=5))
def test_skewness_against_all_permutations_of_any_data(data: Data) -> None:
    coded = data.coded()
    assume(oracle.dh(coded.votes, coded.suggested, coded.categories).kappa is not None)
    assume(moments_of(coded)[1] > 0)
    assert skewness_of(coded) == pytest.approx(exact_skewness(coded), rel=1e-10, abs=1e-11)


def third_moment_of_matrix(a: list[list[Fraction]]) -> Fraction:
    """Return the third central moment of sum_i a[i][p(i)] over all permutations p, by its formula."""
    n = len(a)
    rows, columns = [oracle.mean(row) for row in a], [oracle.mean(list(column)) for column in zip(*a, strict=True)]
    whole = oracle.mean(rows)
    cubes = ((a[i][j] - rows[i] - columns[j] + whole) ** 3 for i in range(n) for j in range(n))
    return sum(cubes, F(0)) * F(n, (n - 1) * (n - 2))


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_third_moment_of_a_matrix(n: int) -> None:
    rng = np.random.default_rng(n)
    a = [[F(int(x)) for x in row] for row in rng.integers(0, 9, (n, n)) ** 2]
    values = [sum((a[i][j] for i, j in enumerate(order)), F(0)) for order in permutations(range(n))]
    mean = oracle.mean(values)
    assert third_moment_of_matrix(a) == oracle.mean([(value - mean) ** 3 for value in values])


def test_gamma_is_nearer_to_the_exact_pvalue_than_the_normal_distribution() -> None:
    rng, errors = np.random.default_rng(4), []
    for _ in range(60):
        drawn = simulate(40, categories=list("abcd"), labelers={"random": 0.3}, rng=rng)
        found = terms_of(tally(drawn.votes, drawn.suggested["random"], categories=list("abcd")))
        counted = permutation_test(found, method="exact")
        near = permutation_test(found, method="gamma")
        if counted.pvalue < 0.2:
            logs = [abs(math.log(p / counted.pvalue)) for p in (near.pvalue, float(ndtr(-near.z)))]
            errors.append(logs)
    gamma, normal = np.mean(errors, axis=0)
    assert len(errors) > 10
    assert gamma < 0.05
    assert normal > 3 * gamma


def kappa_p(items: oracle.Votes, labels: Sequence[Hashable], sample_weight: Sequence[Fraction]) -> Fraction:
    """Kappa_P of weighted items, from the definitions."""
    whole = sum(sample_weight, F(0))
    categories = {vote for item in items for vote in item} | set(labels)
    g = [{j: oracle.pair_share(item, j) for j in categories} for item in items]

    def mean(values: Sequence[Fraction]) -> Fraction:
        return sum((w * value for w, value in zip(sample_weight, values, strict=True)), F(0)) / whole

    D = mean([2 * g_i[label] - sum(g_i.values(), F(0)) for g_i, label in zip(g, labels, strict=True)])
    G = {j: mean([g_i[j] for g_i in g]) for j in categories}
    L = {j: mean([F(label == j) for label in labels]) for j in categories}
    D0 = sum((G[j] * (2 * L[j] - 1) for j in categories), F(0))
    return (D - D0) / (1 - D0)


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_influence_on_kappa_p_is_its_derivative(data: Data) -> None:
    known = exact_terms(kappa_of(data))
    value, phi = exact.above_random(known)
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    n = len(items)
    assert value == kappa_p(items, labels, [F(1)] * n)
    assert known.mean(phi) == 0
    by_pattern = {}
    for row, (first, last) in enumerate(zip(known.patterns.start[:-1], known.patterns.start[1:], strict=True)):
        code, votes = known.patterns.code[first:last].tolist(), known.patterns.votes[first:last].tolist()
        counts = frozenset((data.categories[j], number) for j, number in zip(code, votes, strict=True))
        by_pattern[data.categories[known.suggested[row]], counts] = phi[row]
    for i in range(n):
        # Moving weight h from all items to item i changes kappa_P by phi_i h + O(h^2). A secant is off by some
        # c h; two secants on either side halve to O(h^2), and h = 2^-60 leaves less than 2^-100 of it.
        h = F(1, 2**60)
        up, down = (
            kappa_p(items, labels, [(1 - step) / n + (step if k == i else 0) for k in range(n)]) for step in (h, -h)
        )
        counts = frozenset((j, items[i].count(j)) for j in set(items[i]))
        assert abs((up - down) / (2 * h) - by_pattern[labels[i], counts]) < F(1, 2**100)


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_influence_in_floats(data: Data) -> None:
    simulated = simulate(300, categories=list("abcde"), missing=0.2, rng=4)
    for kappa in (kappa_of(data), dh_kappa(simulated.votes, simulated.suggested["labeler"])):
        value, phi = above_random(float_terms(kappa))
        exact_value, exact_phi = exact.above_random(exact_terms(kappa))
        # Some hundred roundings of numbers of size 1 each.
        assert value == pytest.approx(float(exact_value), abs=1e-13)
        np.testing.assert_allclose(phi, exact_phi.astype(float), rtol=0, atol=1e-12)


def exact_p(data: Data, alternative: str) -> float:
    D, permuted = differentials(data)
    D0 = oracle.mean(permuted)
    if alternative == "two-sided":
        return sum(abs(value - D0) >= abs(D - D0) for value in permuted) / len(permuted)
    return sum(value >= D for value in permuted) / len(permuted)


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_monte_carlo_against_all_permutations(data: Data, alternative: str) -> None:
    p, draws = exact_p(data, alternative), 20_000
    result = permutation_test(terms_of(data), method="monte-carlo", alternative=alternative, n_resamples=draws, rng=1)
    # Five standard errors, and the one that p = (1 + ...)/(n + 1) adds.
    assert abs(result.pvalue - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1 / draws


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_exact_against_all_permutations(data: Data, alternative: str) -> None:
    result = permutation_test(terms_of(data), alternative=alternative)
    assert (result.method, result.n_resamples) == ("exact", 0)
    assert result.pvalue == pytest.approx(exact_p(data, alternative), rel=1e-13)  # some dozen roundings
    assert result == permutation_test(terms_of(data), method="exact", alternative=alternative)
    assert result.z == permutation_test(terms_of(data), method="gamma").z


@settings(max_examples=60)
@given(data=ragged(max_items=6, max_votes=5))
def test_exact_against_all_permutations_of_any_data(data: Data) -> None:
    coded = data.coded()
    assume(oracle.dh(coded.votes, coded.suggested, coded.categories).kappa is not None)
    for alternative in ("greater", "two-sided"):
        result = permutation_test(terms_of(coded), alternative=alternative)
        assert result.method == "exact"
        assert result.pvalue == pytest.approx(exact_p(coded, alternative), rel=1e-13)


@pytest.mark.parametrize("right", [20, 45, 73, 100])
def test_exact_is_fishers_test_where_annotators_agree(right: int) -> None:
    """Labels a fall on items with votes a like marked balls from an urn, also far out in the tail."""
    votes = [("a", "a", "a")] * 150 + [("b", "b", "b")] * 100
    labels = ["a"] * right + ["b"] * (150 - right) + ["a"] * (100 - right) + ["b"] * right
    found = terms_of(tally(votes, labels))
    urn = hypergeom(250, 150, 100)
    assert permutation_test(found).pvalue == pytest.approx(float(urn.sf(right - 1)), rel=1e-10)
    far = [k for k in range(101) if abs(k - 60) >= abs(right - 60)]  # 60 are expected
    two_sided = permutation_test(found, alternative="two-sided")
    assert two_sided.method == "exact"
    assert two_sided.pvalue == pytest.approx(float(urn.pmf(far).sum()), rel=1e-10)


def test_a_rare_label_is_not_normal() -> None:
    """One of two labels b on 40 items meets one of the two b: C(38, 2) of the C(40, 2) permutations meet none."""
    votes, labels = [("a", "a")] * 38 + [("b", "b")] * 2, ["a"] * 37 + ["b", "a", "b"]
    found = terms_of(tally(votes, labels))
    counted, near = permutation_test(found), permutation_test(found, method="gamma")
    assert counted.pvalue == pytest.approx(1 - 703 / 780, rel=1e-13)
    assert float(ndtr(-near.z)) < 0.01
    assert near.pvalue > 0.04


def test_exact_against_monte_carlo() -> None:
    """There are too many permutations to list them."""
    drawn = simulate(25, categories=list("abcd"), accuracy=0.6, labelers={"weak": 0.4}, missing=0.2, rng=11)
    found = terms_of(tally(drawn.votes, drawn.suggested["weak"]))
    for alternative in ("greater", "two-sided"):
        counted = permutation_test(found, method="exact", alternative=alternative).pvalue
        permuted = permutation_test(
            found, method="monte-carlo", alternative=alternative, n_resamples=40_000, rng=1
        ).pvalue
        assert 0.001 < counted < 0.9
        assert abs(counted - permuted) <= 5 * math.sqrt(counted * (1 - counted) / 40_000) + 1 / 40_000


def test_what_takes_too_long_to_count_is_normal() -> None:
    """Too many items; items with so many votes that no unit serves; too many labels; too many ways to spend them."""
    drawn = simulate(300, rng=2)
    sizes = [[1] * a + [2] * b for a, b in ((17, 6), (11, 18), (30, 1), (20, 17), (5, 36))]
    assert 31 * 41 * 23 * 29 * 37 > 2**24
    cases = {
        "300": (drawn.votes, drawn.suggested["labeler"]),
        "10,000": ([[1, 1], [2, 2]] * 5_000, [1, 1, 2, 2] * 2_500),
        "5": (sizes, [1, 2, 1, 1, 2]),
        "60": ([[i, i] for i in range(30)] * 2, [*range(30), *range(1, 30), 0]),
    }
    for number, (votes, labels) in cases.items():
        found = terms_of(tally(votes, labels))
        assert permutation_test(found) == permutation_test(found, method="gamma")
        if number != "10,000":  # which can be counted, in minutes
            with expect_error("permutation-too-large", "method"):
                permutation_test(found, method="exact")


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_tables_draw_like_shuffles(alternative: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = simulate(60, categories=list("abcd"), accuracy=0.6, labelers={"weak": 0.3}, missing=0.1, rng=8)
    found = terms_of(tally(drawn.votes, drawn.suggested["weak"]))
    draws, p = 20_000, []
    for cell in (0, 10**6):  # tables always, then shuffles always
        monkeypatch.setattr("dhkappa.stats.permutation._CELL", cell)
        p.append(
            permutation_test(found, method="monte-carlo", alternative=alternative, n_resamples=draws, rng=2).pvalue
        )
    assert 0.01 < p[0] < 0.99
    assert abs(p[0] - p[1]) <= 5 * math.sqrt(2 * p[0] * (1 - p[0]) / draws)


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_tables_against_all_permutations(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.stats.permutation._CELL", 0)
    p, draws = exact_p(data, "greater"), 20_000
    result = permutation_test(terms_of(data), method="monte-carlo", n_resamples=draws, rng=3)
    assert abs(result.pvalue - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1 / draws


@pytest.mark.slow
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize(("m", "n_items"), [(2, 60), (3, 40), (5, 100)])
def test_random_labels_are_rejected_as_often_as_stated(m: int, n_items: int, alternative: str) -> None:
    rng = np.random.default_rng(20 + m)
    sets, rejected = 400, {"gamma": 0, "monte-carlo": 0}
    for _ in range(sets):
        drawn = simulate(n_items, categories=range(m), labelers={"random": 1 / m}, rng=rng)
        found = terms_of(tally(drawn.votes, drawn.suggested["random"], categories=range(m)))
        for method in rejected:
            result = permutation_test(found, method=method, alternative=alternative, n_resamples=199, rng=rng)
            rejected[method] += result.pvalue <= 0.05
    # Five binomial standard errors of .05 are 5.4 points; ties make both reject less.
    assert 0 < rejected["gamma"] / sets < 0.05 + 0.054
    assert 0 < rejected["monte-carlo"] / sets < 0.05 + 0.054


@pytest.mark.parametrize(("n", "b_items", "b_labels"), [(40, 4, 4), (60, 6, 12), (100, 10, 10), (100, 30, 50)])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_level_against_the_hypergeometric_distribution(n: int, b_items: int, b_labels: int, alternative: str) -> None:
    """If annotators always agree on one of two labels, the items that get the label b are drawn from an urn."""
    urn, p = hypergeom(n, b_items, b_labels), []
    for right in range(min(b_items, b_labels) + 1):
        votes = [("b", "b")] * b_items + [("a", "a")] * (n - b_items)
        labels = ["b"] * right + ["a"] * (b_items - right) + ["b"] * (b_labels - right)
        labels += ["a"] * (n - len(labels))
        found = terms_of(tally(votes, labels))
        p.append(permutation_test(found, method="gamma", alternative=alternative).pvalue)
    chances = urn.pmf(range(len(p)))
    for level in (0.1, 0.05, 0.01, 0.001):
        assert sum(chance for chance, pvalue in zip(chances, p, strict=True) if pvalue <= level) <= level, level


def test_right_labels_are_found() -> None:
    drawn = simulate(200, labelers={"good": 0.9}, rng=1)
    found = terms_of(tally(drawn.votes, drawn.suggested["good"]))
    assert permutation_test(found).pvalue < 1e-20
    assert permutation_test(found, method="monte-carlo", n_resamples=999, rng=1).pvalue == 1 / 1000
    swapped = [{"a": "b", "b": "c", "c": "a"}[label] for label in drawn.suggested["good"]]
    wrong = terms_of(tally(drawn.votes, swapped))
    assert permutation_test(wrong).pvalue > 1 - 1e-9
    assert permutation_test(wrong, alternative="two-sided").pvalue < 1e-9
    assert (
        permutation_test(wrong, method="monte-carlo", alternative="two-sided", n_resamples=999, rng=1).pvalue
        == 1 / 1000
    )


@pytest.mark.parametrize(
    "text",
    ["30/1 03/1 21/1", "300/1 300/2 300/3", "111/1 111/2 111/3", "20/2", "210/1 210/2 210/1 120/1 120/1"],
)
@pytest.mark.parametrize("method", ["exact", "gamma", "monte-carlo"])
def test_no_variance(text: str, method: str) -> None:
    data = from_counts(text)
    varies = text.startswith("210")
    found = terms_of(data)
    assert (moments_of(data)[1] != 0) == varies
    result = permutation_test(found, method=method, n_resamples=99, rng=1)
    assert result.reason == (None if varies else "Every permutation of these labels scores the same.")
    if not varies:
        assert result.pvalue == 1
        assert math.isnan(result.z)
        # One rounding of a difference of numbers of size 1, which is 0.
        assert result.difference == pytest.approx(0, abs=1e-15)


def test_variance_zero_in_floats_with_awkward_shares() -> None:
    shares = [((2, 1, 1), label, items) for label, items in ((0, 7), (1, 10**7 + 1), (2, 33_333))]
    assert moments_of(tallied(*shares, m=3))[1] == 0
    rare = tallied(((3, 0, 0), 0, 10**8), ((3, 0, 0), 1, 1), ((0, 3, 0), 0, 1), m=3)
    expected = exact.permutation_moments(exact_terms(dh_kappa(rare)))
    # Of two parts near 1e-8 only their difference, 1e-16, is left: 8 digits are lost of 16.
    assert moments_of(rare)[1] == pytest.approx(float(expected[1]), rel=1e-6)


def test_seeds_reproduce_in_any_order_of_rows() -> None:
    drawn = simulate(150, categories=list("abcd"), accuracy=0.5, labelers={"weak": 0.3}, missing=0.2, rng=3)
    votes, labels = drawn.votes, drawn.suggested["weak"]
    first = permutation_test(terms_of(tally(votes, labels)), method="monte-carlo", n_resamples=500, rng=7)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(votes))
        found = terms_of(tally(votes[order], labels[order]))
        assert permutation_test(found, method="monte-carlo", n_resamples=500, rng=7) == first
        assert permutation_test(found, method="monte-carlo", n_resamples=500, rng=np.random.default_rng(7)) == first
    other = permutation_test(terms_of(tally(votes, labels)), method="monte-carlo", n_resamples=500, rng=8)
    assert other.pvalue != first.pvalue


@pytest.mark.parametrize("items", [10**8, 10**9])
def test_many_items_cost_what_few_do(items: int) -> None:
    half, few = items // 2, items // 1000
    many = tallied(
        ((3, 0, 0), 0, half - few),
        ((2, 1, 0), 1, few),
        ((0, 3, 0), 1, items // 4),
        ((0, 0, 3), 1, items - half - items // 4),
        m=3,
    )
    found = terms_of(many)
    assert found.n == items
    assert permutation_test(found).pvalue == 0
    result = permutation_test(found, method="monte-carlo", n_resamples=999, rng=1)
    assert result.pvalue == 1 / 1000


def test_monte_carlo_of_random_labels_on_many_items_is_like_z() -> None:
    rng = np.random.default_rng(5)
    kinds, labels = [(3, 0, 0), (2, 1, 0), (0, 3, 0), (0, 0, 3)], (0, 1, 2)
    numbers = rng.multinomial(10**8, np.full(12, 1 / 12)).tolist()
    cells = [(kind, label, numbers.pop()) for kind in kinds for label in labels]
    found = terms_of(tallied(*cells, m=3))
    z, drawn = (
        permutation_test(found, method=method, n_resamples=20_000, rng=1) for method in ("gamma", "monte-carlo")
    )
    # With 10^8 items D is normal for all that 20,000 draws can tell: five of their standard errors.
    assert abs(z.pvalue - drawn.pvalue) < 5 * math.sqrt(0.25 / 20_000)
    assert z.z == drawn.z


def test_many_categories_need_no_matrix() -> None:
    m = 200_000
    rng = np.random.default_rng(6)
    truth = rng.integers(0, m, 3_000)
    votes = np.stack([truth, np.where(rng.random(3_000) < 0.5, truth, 0), truth], axis=1)
    labels = np.where(rng.random(3_000) < 0.4, truth, rng.integers(0, m, 3_000))
    found = terms_of(tally(votes, labels, categories=range(m)))
    D0, variance = permutation_moments(found, group_items(found, found.g))
    assert -1 < D0 < 1
    assert variance > 0
    assert permutation_test(found).pvalue < 1e-9
    assert permutation_test(found, method="monte-carlo", n_resamples=99, rng=1).pvalue == 1 / 100
    value, phi = above_random(found)
    assert abs(found.mean(phi)) < 1e-12  # 3,000 roundings of numbers of size 1
    assert 0 < value < 1


def test_what_takes_too_long_to_draw_is_an_error() -> None:
    too_many = tallied(((3, 0), 0, 10**9), ((0, 3), 1, 10**9), ((0, 3), 0, 5), m=2)
    assert permutation_test(terms_of(too_many)).pvalue == 0
    with expect_error("permutation-too-large", "n_resamples"):
        permutation_test(terms_of(too_many), method="monte-carlo", n_resamples=99)
    with expect_error("permutation-too-large", "n_resamples"):
        permutation_test(terms_of(simulated(1_000)), method="monte-carlo", n_resamples=10**8)


def simulated(n_items: int) -> Tally:
    data = simulate(n_items, categories=list("abcdefgh"), rng=1)
    return tally(data.votes, data.suggested["labeler"])


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("invalid-method", {"method": "all"}),
        ("invalid-method", {"method": 3}),
        ("invalid-alternative", {"alternative": "less"}),
        ("invalid-alternative", {"alternative": None}),
        ("invalid-n-resamples", {"n_resamples": 0}),
        ("invalid-n-resamples", {"n_resamples": 2.5}),
        ("invalid-n-resamples", {"n_resamples": 10**12}),
        ("invalid-rng", {"rng": "seed"}),
        ("invalid-rng", {"rng": -1}),
    ],
)
def test_bad_arguments(code: str, given: dict[str, Any]) -> None:
    with expect_error(code, next(iter(given))):
        kappa_of(ONE).permutation_test(**given)


def test_labels_with_weights_are_not_permuted() -> None:
    for design in ({"sample_weight": [1, 2, 3, 4, 5, 6]}, {"strata": list("xxxyyy")}):
        with expect_error("method-needs-equal-weights", "method"):
            example(**design).permutation_test("gamma")


def test_display() -> None:
    result = example().permutation_test("monte-carlo", alternative="two-sided", n_resamples=1_000, rng=1)
    assert repr(result).startswith("PermutationTest(difference=0.5625, pvalue=0.")
    assert repr(result).endswith(", z=1.83, alternative='two-sided', method='monte-carlo', n_resamples=1000)")
    assert result._repr_html_().startswith("<p>PermutationTest(difference=0.5625, ")
    same = dh_kappa([[1, 1], [2, 2]], [1, 1]).permutation_test()
    assert f"reason={same.reason!r}" in repr(same)
    assert same.to_dict() == {
        "difference": 0.0,
        "z": None,
        "pvalue": 1.0,
        "alternative": "greater",
        "method": "exact",
        "n_resamples": 0,
        "reason": same.reason,
    }
    assert "pvalue=0," in repr(PermutationTest(0.5, 40.0, 0.0, "greater", "gamma", 0))


@pytest.mark.parametrize("cell", [0, 10**6])  # tables always, then shuffles always
@pytest.mark.parametrize("draws", [1, 2, 7])
def test_every_permutation_is_drawn(cell: int, draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No permutation scores less than labels that are all wrong, so all that are drawn count."""
    monkeypatch.setattr("dhkappa.stats.permutation._CELL", cell)
    monkeypatch.setattr("dhkappa.stats.permutation._AT_ONCE", 4)
    wrong = dh_kappa([[1, 1], [2, 2]] * 2, [2, 1] * 2)
    assert wrong.permutation_test("monte-carlo", n_resamples=draws, rng=1).pvalue == 1


def test_wald_with_strata_and_weights() -> None:
    for design in ({"strata": list("xxxyyy")}, {"sample_weight": [1, 2, 3, 4, 5, 6]}):
        found = example(**design).permutation_test(alternative="two-sided")
        assert (found.method, found.n_resamples) == ("wald", 0)
        assert found.pvalue == pytest.approx(2 * float(ndtr(-abs(found.z))), rel=1e-12)
    heavy = dh_kappa([[1, 1], [2, 2], [1, 2]], [1, 2, 2], sample_weight=[1e300, 1, 1]).permutation_test()
    assert (heavy.method, heavy.reason) == ("wald", "One item outweighs all others.")
    assert all(map(math.isnan, (heavy.difference, heavy.z, heavy.pvalue)))
    assert heavy.to_dict()["z"] is None
    same = dh_kappa([[1, 1], [2, 2]] * 3, [1, 1] * 3, sample_weight=[1, 2, 3, 4, 5, 6]).permutation_test()
    assert same.reason == "Every item has the same influence on kappa, or the sample is the whole pool."
    assert (same.method, math.isnan(same.z), math.isnan(same.pvalue), same.n_resamples) == ("wald", True, True, 0)


def test_default_number_of_permutations() -> None:
    found = example().permutation_test("monte-carlo", rng=1)
    assert found.n_resamples == 9_999
    assert permutation_test(float_terms(example()), method="monte-carlo", rng=1) == found


def test_tails() -> None:
    found, both = example().permutation_test("gamma"), example().permutation_test("gamma", alternative="two-sided")
    assert found.z == both.z
    assert found.method == both.method == "gamma"
    assert found.pvalue < both.pvalue < 2.5 * found.pvalue
    below = dh_kappa([[1, 1], [2, 2], [1, 1], [2, 2]], [2, 1, 2, 1])
    assert below.permutation_test().pvalue > 0.5 > below.permutation_test(alternative="two-sided").pvalue


def test_one_label_scores_the_same_in_any_order() -> None:
    """Also where rounding leaves something of a variance that is 0, as on some of these."""
    draw = np.random.default_rng(0)
    for _ in range(40):
        votes = draw.integers(0, 3, (int(draw.integers(5, 30)), int(draw.integers(2, 6))))
        found = dh_kappa(votes, [0] * len(votes)).permutation_test()
        assert found.reason
        assert (math.isnan(found.z), found.pvalue) == (True, 1)
