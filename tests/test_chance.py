"""Chance: moments against all n! dealings, the test against its exact p-value, kappa_P against its derivative."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.stats import hypergeom

import oracle
from dhkappa import Tally, dh_kappa, simulate, tally
from dhkappa.errors import DataError
from dhkappa.stats.permutation import RandomLabelTest, above_floor, permutation_moments, random_label_test
from dhkappa.stats.sample import sample_of
from dhkappa.stats.terms import Terms, terms
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


def terms_of(data: Data | Tally, exact: bool = False) -> Terms:
    counts = data if isinstance(data, Tally) else tally(data.votes, data.suggested, categories=data.categories)
    parts = dh_kappa(counts).parts
    assert parts is not None
    return terms(sample_of(counts).merged(), parts, exact)


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
    """D of the eligible items as they are, and for each of the n! ways to deal their labels."""
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    share = [{label: oracle.pair_share(item, label) for label in {*item, *labels}} for item in items]

    def D(dealt: Sequence[Hashable]) -> Fraction:
        pairs = zip(share, dealt, strict=True)
        return oracle.mean([sum((g if j == label else -g for j, g in g_i.items()), F(0)) for g_i, label in pairs])

    assert D(labels) == oracle.differential(items, labels)[0]
    return D(labels), [D(dealt) for dealt in permutations(labels)]


def moments(values: list[Fraction]) -> tuple[Fraction, Fraction]:
    mean = oracle.mean(values)
    return mean, oracle.mean([(value - mean) ** 2 for value in values])


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_moments_against_all_dealings(data: Data) -> None:
    assert permutation_moments(terms_of(data, exact=True)) == moments(differentials(data)[1])


@settings(max_examples=60)
@given(data=ragged(max_items=6, max_votes=5))
def test_moments_against_all_dealings_of_any_data(data: Data) -> None:
    coded = data.coded()
    assume(oracle.dh(coded.votes, coded.suggested, coded.categories).kappa is not None)
    exact = permutation_moments(terms_of(coded, exact=True))
    assert exact == moments(differentials(coded)[1])
    # Sums of at most 36 numbers of size 1: rounding stays below 1e-14. A variance of 0 is 0 in floats too.
    found = permutation_moments(terms_of(coded))
    assert found == pytest.approx([float(value) for value in exact], rel=1e-12, abs=1e-14)
    assert (found[1] == 0) == (exact[1] == 0)


@pytest.mark.parametrize(
    ("data", "D0", "variance", "floor"),
    [
        (ONE, F(-13, 54), F(86, 729), F(-59, 544)),
        (TWO, F(-1, 6), F(107, 1125), F(-263, 3237)),
        (THREE, F(0), F(16, 125), F(0)),
    ],
    ids=EXAMPLES,
)
def test_worked_examples(data: Data, D0: Fraction, variance: Fraction, floor: Fraction) -> None:
    exact = terms_of(data, exact=True)
    assert permutation_moments(exact) == (D0, variance)
    assert (D0 - exact.E) / (1 - exact.E) == floor == oracle.floor_by_permutation(data.votes, data.suggested)
    result = random_label_test(exact)
    assert result.difference == float(exact.kappa - floor)
    assert result.z == pytest.approx(float(exact.D - D0) / math.sqrt(variance), rel=1e-15)  # two roundings
    assert above_floor(exact)[0] == (exact.D - D0) / (1 - D0)


def test_worked_example_one_in_digits() -> None:
    exact = terms_of(ONE, exact=True)
    items, _, _ = oracle.eligible(ONE.votes, ONE.suggested)
    G = [oracle.mean([oracle.pair_share(item, j) for item in items]) for j in ONE.categories]
    assert tuple(G) == (F(2, 9), F(1, 3), F(1, 6))
    assert round(random_label_test(exact).z, 6) == 1.833157
    assert above_floor(exact)[0] == F(34, 67)


@settings(max_examples=40)
@given(data=complete())
def test_difference_is_covariance_of_label_and_agreement(data: Data) -> None:
    assume(oracle.dh(data.votes, data.suggested, data.categories).kappa is not None)
    exact = terms_of(data, exact=True)
    n, covariance = len(data.votes), F(0)
    for j in data.categories:
        g = [oracle.pair_share(item, j) for item in data.votes]
        q = [F(label == j) for label in data.suggested]
        covariance += sum((a * b for a, b in zip(g, q, strict=True)), F(0)) / n - oracle.mean(g) * oracle.mean(q)
    assert exact.D - permutation_moments(exact)[0] == 2 * covariance


@settings(max_examples=40)
@given(data=complete(max_categories=2))
def test_two_categories_have_the_floor_zero(data: Data) -> None:
    assume(oracle.dh(data.votes, data.suggested, data.categories).kappa is not None)
    exact = terms_of(data, exact=True)
    assert permutation_moments(exact)[0] == exact.E
    assert above_floor(exact)[0] == exact.kappa


def kappa_p(items: oracle.Votes, labels: Sequence[Hashable], weights: Sequence[Fraction]) -> Fraction:
    """Kappa_P of weighted items, from the definitions."""
    whole = sum(weights, F(0))
    categories = {vote for item in items for vote in item} | set(labels)
    g = [{j: oracle.pair_share(item, j) for j in categories} for item in items]

    def mean(values: Sequence[Fraction]) -> Fraction:
        return sum((w * value for w, value in zip(weights, values, strict=True)), F(0)) / whole

    D = mean([2 * g_i[label] - sum(g_i.values(), F(0)) for g_i, label in zip(g, labels, strict=True)])
    G = {j: mean([g_i[j] for g_i in g]) for j in categories}
    L = {j: mean([F(label == j) for label in labels]) for j in categories}
    D0 = sum((G[j] * (2 * L[j] - 1) for j in categories), F(0))
    return (D - D0) / (1 - D0)


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_influence_on_kappa_p_is_its_derivative(data: Data) -> None:
    exact = terms_of(data, exact=True)
    value, phi = above_floor(exact)
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    n = len(items)
    assert value == kappa_p(items, labels, [F(1)] * n)
    assert exact.mean(phi) == 0
    by_pattern = {}
    for row, (first, last) in enumerate(zip(exact.patterns.start[:-1], exact.patterns.start[1:], strict=True)):
        code, votes = exact.patterns.code[first:last].tolist(), exact.patterns.votes[first:last].tolist()
        counts = frozenset((data.categories[j], number) for j, number in zip(code, votes, strict=True))
        by_pattern[data.categories[exact.suggested[row]], counts] = phi[row]
    for i in range(n):
        # Moving weight h from all items to item i changes kappa_P by phi_i h + O(h^2). A secant is off by some
        # c h; two secants on either side halve to O(h^2), and h = 2^-60 leaves less than 2^-100 of it.
        h = F(1, 2**60)
        up, down = (
            kappa_p(items, labels, [(1 - step) / n + (step if k == i else 0) for k in range(n)]) for step in (h, -h)
        )
        counts = frozenset((j, items[i].count(j)) for j in set(items[i]))
        assert abs((up - down) / (2 * h) - by_pattern[labels[i], counts]) < F(1, 2**100)


def test_influence_in_floats() -> None:
    data = simulate(300, categories=list("abcde"), missing=0.2, rng=4)
    counts = tally(data.votes, data.suggested["labeler"])
    value, phi = above_floor(terms_of(counts))
    exact_value, exact_phi = above_floor(terms_of(counts, exact=True))
    # Some hundred roundings of numbers of size 1 each.
    assert value == pytest.approx(float(exact_value), abs=1e-13)
    np.testing.assert_allclose(phi, exact_phi.astype(float), rtol=0, atol=1e-12)


def exact_p(data: Data, alternative: str) -> float:
    D, dealt = differentials(data)
    D0 = oracle.mean(dealt)
    if alternative == "two-sided":
        return sum(abs(value - D0) >= abs(D - D0) for value in dealt) / len(dealt)
    return sum(value >= D for value in dealt) / len(dealt)


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_monte_carlo_against_all_dealings(data: Data, alternative: str) -> None:
    p, draws = exact_p(data, alternative), 20_000
    result = random_label_test(terms_of(data), method="monte-carlo", alternative=alternative, n=draws, rng=1)
    # Five standard errors, and the one that p = (1 + ...)/(n + 1) adds.
    assert abs(result.p_value - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1 / draws


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("exact", [False, True])
def test_exact_against_all_dealings(data: Data, alternative: str, exact: bool) -> None:
    result = random_label_test(terms_of(data, exact), alternative=alternative)
    assert (result.method, result.n_draws) == ("exact", 0)
    assert result.p_value == pytest.approx(exact_p(data, alternative), rel=1e-13)  # some dozen roundings
    assert result == random_label_test(terms_of(data, exact), method="exact", alternative=alternative)
    assert result.z == random_label_test(terms_of(data, exact), method="z").z


@settings(max_examples=60)
@given(data=ragged(max_items=6, max_votes=5))
def test_exact_against_all_dealings_of_any_data(data: Data) -> None:
    coded = data.coded()
    assume(oracle.dh(coded.votes, coded.suggested, coded.categories).kappa is not None)
    for alternative in ("greater", "two-sided"):
        result = random_label_test(terms_of(coded), alternative=alternative)
        assert result.method == "exact"
        assert result.p_value == pytest.approx(exact_p(coded, alternative), rel=1e-13)


@pytest.mark.parametrize("right", [20, 45, 73, 100])
def test_exact_is_fishers_test_where_annotators_agree(right: int) -> None:
    """Labels a fall on items that all call a as the marked balls of an urn do, also far out in the tail."""
    votes = [("a", "a", "a")] * 150 + [("b", "b", "b")] * 100
    labels = ["a"] * right + ["b"] * (150 - right) + ["a"] * (100 - right) + ["b"] * right
    found = terms_of(tally(votes, labels))
    urn = hypergeom(250, 150, 100)
    assert random_label_test(found).p_value == pytest.approx(float(urn.sf(right - 1)), rel=1e-10)
    far = [k for k in range(101) if abs(k - 60) >= abs(right - 60)]  # 60 are expected
    two_sided = random_label_test(found, alternative="two-sided")
    assert two_sided.method == "exact"
    assert two_sided.p_value == pytest.approx(float(urn.pmf(far).sum()), rel=1e-10)


def test_a_rare_label_is_not_normal() -> None:
    """Of two labels b on 40 items one meets one of the two b: C(38, 2) of the C(40, 2) dealings meet none."""
    votes, labels = [("a", "a")] * 38 + [("b", "b")] * 2, ["a"] * 37 + ["b", "a", "b"]
    found = terms_of(tally(votes, labels))
    exact, z = random_label_test(found), random_label_test(found, method="z")
    assert exact.p_value == pytest.approx(1 - 703 / 780, rel=1e-13)
    assert z.p_value < 0.01


def test_votes_and_labels_of_many_kinds_in_the_middle_of_what_is_counted() -> None:
    """As many dealings as this cannot be listed: the draws of the other method are the oracle."""
    drawn = simulate(25, categories=list("abcd"), accuracy=0.6, labelers={"weak": 0.4}, missing=0.2, rng=11)
    found = terms_of(tally(drawn.votes, drawn.suggested["weak"]))
    for alternative in ("greater", "two-sided"):
        exact = random_label_test(found, method="exact", alternative=alternative).p_value
        dealt = random_label_test(found, method="monte-carlo", alternative=alternative, n=40_000, rng=1).p_value
        assert 0.001 < exact < 0.9
        assert abs(exact - dealt) <= 5 * math.sqrt(exact * (1 - exact) / 40_000) + 1 / 40_000


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
        assert random_label_test(found) == random_label_test(found, method="z")
        if number != "10,000":  # which can be counted, in minutes
            with pytest.raises(DataError) as error:
                random_label_test(found, method="exact")
            assert str(error.value) == (
                f"method='exact' cannot count the ways to deal {number} labels in reasonable time: "
                "use method='z' or 'monte-carlo'."
            )


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_tables_draw_like_shuffles(alternative: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = simulate(60, categories=list("abcd"), accuracy=0.6, labelers={"weak": 0.3}, missing=0.1, rng=8)
    found = terms_of(tally(drawn.votes, drawn.suggested["weak"]))
    draws, p = 20_000, []
    for cell in (0, 10**6):  # tables always, then shuffles always
        monkeypatch.setattr("dhkappa.stats.permutation._CELL", cell)
        p.append(random_label_test(found, method="monte-carlo", alternative=alternative, n=draws, rng=2).p_value)
    assert 0.01 < p[0] < 0.99
    assert abs(p[0] - p[1]) <= 5 * math.sqrt(2 * p[0] * (1 - p[0]) / draws)


@pytest.mark.parametrize("data", SMALL.values(), ids=SMALL)
def test_tables_against_all_dealings(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dhkappa.stats.permutation._CELL", 0)
    p, draws = exact_p(data, "greater"), 20_000
    result = random_label_test(terms_of(data, exact=True), method="monte-carlo", n=draws, rng=3)
    assert abs(result.p_value - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1 / draws


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize(("m", "n_items"), [(2, 60), (3, 40), (5, 100)])
def test_random_labels_are_rejected_as_often_as_stated(m: int, n_items: int, alternative: str) -> None:
    rng = np.random.default_rng(20 + m)
    sets, rejected = 400, {"z": 0, "monte-carlo": 0}
    for _ in range(sets):
        drawn = simulate(n_items, categories=range(m), labelers={"random": 1 / m}, rng=rng)
        found = terms_of(tally(drawn.votes, drawn.suggested["random"], categories=range(m)))
        for method in rejected:
            result = random_label_test(found, method=method, alternative=alternative, n=199, rng=rng)
            rejected[method] += result.p_value <= 0.05
    # Five binomial standard errors of .05 are 5.4 points; ties make Monte Carlo reject less, and the normal
    # approximation at 40 to 100 items is off by 1 point or so.
    assert 0 < rejected["z"] / sets < 0.05 + 0.054 + 0.01
    assert 0 < rejected["monte-carlo"] / sets < 0.05 + 0.054


def test_right_labels_are_found() -> None:
    drawn = simulate(200, labelers={"good": 0.9}, rng=1)
    found = terms_of(tally(drawn.votes, drawn.suggested["good"]))
    assert random_label_test(found).p_value < 1e-20
    assert random_label_test(found, method="monte-carlo", n=999, rng=1).p_value == 1 / 1000
    swapped = [{"a": "b", "b": "c", "c": "a"}[label] for label in drawn.suggested["good"]]
    wrong = terms_of(tally(drawn.votes, swapped))
    assert random_label_test(wrong).p_value > 1 - 1e-9
    assert random_label_test(wrong, alternative="two-sided").p_value < 1e-9
    assert random_label_test(wrong, method="monte-carlo", alternative="two-sided", n=999, rng=1).p_value == 1 / 1000


@pytest.mark.parametrize(
    "text",
    ["30/1 03/1 21/1", "300/1 300/2 300/3", "111/1 111/2 111/3", "20/2", "210/1 210/2 210/1 120/1 120/1"],
)
@pytest.mark.parametrize("method", ["exact", "z", "monte-carlo"])
@pytest.mark.parametrize("exact", [False, True])
def test_no_variance(text: str, method: str, exact: bool) -> None:
    data = from_counts(text)
    varies = text.startswith("210")
    found = terms_of(data, exact)
    assert (permutation_moments(found)[1] != 0) == varies
    result = random_label_test(found, method=method, n=99, rng=1)
    assert (result.reason is None) == varies
    if not varies:
        assert result.p_value == 1
        assert math.isnan(result.z)
        # One rounding of a difference of numbers of size 1, which is 0.
        assert result.difference == pytest.approx(0, abs=1e-15)
        assert "undefined" in repr(result)


def test_variance_zero_in_floats_with_awkward_shares() -> None:
    shares = [((2, 1, 1), label, items) for label, items in ((0, 7), (1, 10**7 + 1), (2, 33_333))]
    assert permutation_moments(terms_of(tallied(*shares, m=3)))[1] == 0
    rare = tallied(((3, 0, 0), 0, 10**8), ((3, 0, 0), 1, 1), ((0, 3, 0), 0, 1), m=3)
    exact = permutation_moments(terms_of(rare, exact=True))
    # Of two parts near 1e-8 only their difference, 1e-16, is left: 8 digits are lost of 16.
    assert permutation_moments(terms_of(rare))[1] == pytest.approx(float(exact[1]), rel=1e-6)


def test_seeds_reproduce_in_any_order_of_rows() -> None:
    drawn = simulate(150, categories=list("abcd"), accuracy=0.5, labelers={"weak": 0.3}, missing=0.2, rng=3)
    votes, labels = drawn.votes, drawn.suggested["weak"]
    first = random_label_test(terms_of(tally(votes, labels)), method="monte-carlo", n=500, rng=7)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(votes))
        found = terms_of(tally(votes[order], labels[order]))
        assert random_label_test(found, method="monte-carlo", n=500, rng=7) == first
        assert random_label_test(found, method="monte-carlo", n=500, rng=np.random.default_rng(7)) == first
    other = random_label_test(terms_of(tally(votes, labels)), method="monte-carlo", n=500, rng=8)
    assert other.p_value != first.p_value


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
    assert random_label_test(found).p_value == 0
    result = random_label_test(found, method="monte-carlo", n=999, rng=1)
    assert result.p_value == 1 / 1000


def test_monte_carlo_of_random_labels_on_many_items_is_like_z() -> None:
    rng = np.random.default_rng(5)
    kinds, labels = [(3, 0, 0), (2, 1, 0), (0, 3, 0), (0, 0, 3)], (0, 1, 2)
    numbers = rng.multinomial(10**8, np.full(12, 1 / 12)).tolist()
    cells = [(kind, label, numbers.pop()) for kind in kinds for label in labels]
    found = terms_of(tallied(*cells, m=3))
    z, drawn = (random_label_test(found, method=method, n=20_000, rng=1) for method in ("z", "monte-carlo"))
    # With 10^8 items D is normal for all that 20,000 draws can tell: five of their standard errors.
    assert abs(z.p_value - drawn.p_value) < 5 * math.sqrt(0.25 / 20_000)
    assert z.z == drawn.z


def test_many_categories_need_no_matrix() -> None:
    m = 200_000
    rng = np.random.default_rng(6)
    truth = rng.integers(0, m, 3_000)
    votes = np.stack([truth, np.where(rng.random(3_000) < 0.5, truth, 0), truth], axis=1)
    labels = np.where(rng.random(3_000) < 0.4, truth, rng.integers(0, m, 3_000))
    found = terms_of(tally(votes, labels, categories=range(m)))
    D0, variance = permutation_moments(found)
    assert -1 < D0 < 1
    assert variance > 0
    assert random_label_test(found).p_value < 1e-9
    assert random_label_test(found, method="monte-carlo", n=99, rng=1).p_value == 1 / 100
    value, phi = above_floor(found)
    assert abs(found.mean(phi)) < 1e-12  # 3,000 roundings of numbers of size 1
    assert 0 < value < 1


def test_what_cannot_be_drawn_is_refused() -> None:
    too_many = tallied(((3, 0), 0, 10**9), ((0, 3), 1, 10**9), ((0, 3), 0, 5), m=2)
    assert random_label_test(terms_of(too_many)).p_value == 0
    with pytest.raises(DataError, match=r"cannot deal 2,000,000,005 labels 99 times .* use method='z'"):
        random_label_test(terms_of(too_many), method="monte-carlo", n=99)
    with pytest.raises(DataError, match="use method='z', or fewer draws"):
        random_label_test(terms_of(ONE), method="monte-carlo", n=10**12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "all"}, r"method must be one of 'exact', 'z', 'monte-carlo', 'wald': got 'all'\."),
        ({"alternative": "less"}, r"alternative must be one of 'greater', 'two-sided': got 'less'\."),
        ({"n": 0}, r"n must be a whole number of draws, 1 or more: got 0\."),
        ({"n": 2.5}, r"n must be a whole number of draws, 1 or more: got 2\.5\."),
        ({"rng": "seed"}, r"rng must be a seed, 0 or more, or a numpy Generator: got 'seed'\."),
        ({"rng": -1}, r"rng must be a seed, 0 or more, or a numpy Generator: got -1\."),
    ],
)
def test_bad_arguments(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        random_label_test(terms_of(ONE), **wrong)  # type: ignore[arg-type]


def test_results_show_themselves() -> None:
    result = random_label_test(terms_of(ONE), method="monte-carlo", n=1_999, rng=1)
    assert isinstance(result, RandomLabelTest)
    text = repr(result)
    assert "\n" not in text
    assert text.startswith("labels against random labels: +0.5625 from the floor (p 0.0")
    assert text.endswith(", z 1.83, alternative greater, method monte-carlo, draws 1,999)")
    assert "<td>+0.5625</td>" in result._repr_html_()
    assert "< 1e-300" in repr(RandomLabelTest(0.5, 50.0, 0.0, "greater", "z", 0))
    assert "&lt; 1e-300" in RandomLabelTest(0.5, 50.0, 0.0, "greater", "z", 0)._repr_html_()
