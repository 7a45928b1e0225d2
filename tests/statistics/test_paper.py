"""The paper, point by point, and what docs/methods.md proves about its range, in exact arithmetic."""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given

import oracle
from dhkappa import dh_kappa, fleiss_kappa
from strategies import Data, complete, from_counts, ragged

F = Fraction
Matrix = npt.NDArray[np.object_]


def exact(text: str) -> F:
    """Kappa of items written as in docs/methods.md, by the package."""
    return exact_of(from_counts(text))


def exact_of(data: Data) -> F:
    kappa = dh_kappa(data.votes, data.suggested, categories=data.categories).exact
    assert kappa is not None
    return kappa


def truth_of(data: Data) -> oracle.DH:
    return oracle.dh(data.votes, data.suggested, data.categories)


# Fleiss' kappa, eq. 1-3


def fleiss_eq_1_to_3(A: Matrix) -> F | None:
    n, m = A.shape
    N = sum(A[0])
    C = [F(1, N * n) * sum(A[i, j] for i in range(n)) for j in range(m)]  # eq. 1
    C_E = sum(C_j * C_j for C_j in C)
    R = [F(1, comb(N, 2)) * sum(comb(A[i, j], 2) for j in range(m)) for i in range(n)]  # eq. 2
    R_bar = F(1, n) * sum(R)
    return None if C_E == 1 else (R_bar - C_E) / (1 - C_E)  # eq. 3


@given(complete())
def test_fleiss_kappa_against_eq_1_to_3(data: Data) -> None:
    expected = fleiss_eq_1_to_3(data.counts.astype(object))
    assert oracle.fleiss(data.votes).kappa == expected
    assert fleiss_kappa(data.votes).exact == expected


# kappa_DH, eq. 4-13 (derivation) and eq. 14 (matrix form)


def dh_eq_14(A: Matrix, B: Matrix) -> F | None:
    """Procedural instructions (14), line by line."""
    n, m = A.shape
    N = sum(A[0])
    one = F(1)
    J, I = np.full((m, m), one), np.array([[F(i == j) for j in range(m)] for i in range(m)])  # noqa: E741
    f = np.frompyfunc(lambda p: comb(p, 2), 1, 1)

    C = A.sum(axis=0) * F(1, N * n)
    L = B.sum(axis=0) * F(1, n)
    C_E = (C * C * L).sum()
    T = np.vstack([C] * m) * (J - I)
    C_F = ((T * T).sum(axis=1) * L.T).sum()
    R = ((f(A) * B).sum(axis=1) * F(1, comb(N, 2))).sum() * F(1, n)
    S = ((f(A) * (np.full((n, m), one) - B)).sum(axis=1) * F(1, comb(N, 2))).sum() * F(1, n)
    E: F = C_E - C_F
    kappa: F | None = None if E == 1 else ((R - S) - E) / (1 - E)
    return kappa


@given(complete())
def test_derivation_form_against_matrix_form(data: Data) -> None:
    expected = dh_eq_14(data.counts.astype(object), data.one_hot.astype(object))
    assert truth_of(data).kappa == expected
    assert dh_kappa(counts=data.counts, suggested=data.one_hot).exact == expected
    assert dh_kappa(data.votes, data.suggested).exact == expected


@given(ragged())
def test_derivation_form_against_differential_in_words(data: Data) -> None:
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    truth = truth_of(data)
    assert oracle.differential(items, labels) == (truth.D, truth.E)


@given(complete())
def test_relabeling_of_C_F_against_double_sum(data: Data) -> None:
    """docs/methods.md: C_F = sum C_j^2 - C_E, so E = sum C_j^2 (2 L_j - 1)."""
    truth = truth_of(data)
    assert sum(C_j**2 for C_j in truth.C.values()) - truth.C_E == truth.C_F
    assert sum(truth.C[j] ** 2 * (2 * truth.L[j] - 1) for j in data.categories) == truth.E


# The miscount of the function published beside the paper: C(1, 2) taken as 1


def test_lone_vote_is_not_a_pair_against_example_1() -> None:
    A = [(3, 0, 0), (2, 1, 0), (0, 3, 0), (1, 1, 1), (0, 0, 3), (0, 3, 0)]
    labels, E = (0, 0, 1, 1, 2, 2), F(-29, 243)

    def kappa(pairs: tuple[int, ...]) -> F:
        """Kappa where P votes for a category count as pairs[P] agreeing pairs of the three."""
        d = [2 * pairs[a[k]] - sum(pairs[P] for P in a) for a, k in zip(A, labels, strict=True)]
        return (F(sum(d), 3 * len(A)) - E) / (1 - E)

    assert kappa((0, 0, 1, 3)) == F(247, 544) == dh_kappa(counts=A, suggested=labels).exact
    assert kappa((0, 1, 1, 3)) == F(193, 544)


# The three requirements of the paper's introduction


@given(complete())
def test_requirement_1_against_eq_13(data: Data) -> None:
    """All annotators on the suggested label: kappa is 1, or undefined where only one category occurs."""
    agreeing = [[label] * len(item) for item, label in zip(data.votes, data.suggested, strict=True)]
    kappa = dh_kappa(agreeing, data.suggested).exact
    assert kappa == (None if len(set(data.suggested)) == 1 else 1)


@pytest.mark.parametrize("m", range(3, 8))
def test_requirement_2_per_item_against_eq_10_and_12(m: int) -> None:
    """Annotators against the label and against each other: the item adds nothing to D."""
    votes, suggested = [list(range(1, m))], [0]
    truth = oracle.dh(votes, suggested, range(m))
    parts = dh_kappa(votes, suggested).parts
    assert parts is not None
    assert (truth.R, truth.S) == (parts.R, parts.S) == (F(0), F(0))


@given(complete())
def test_requirement_3_for_fixed_shares_against_eq_13(data: Data) -> None:
    """For fixed C and L kappa rises with D: trading two votes between items moves both the same way."""
    truth = truth_of(data)
    assume(truth.kappa is not None and len(data.votes) > 1)
    first, second, *rest = data.votes
    traded = Data(data.categories, [[second[0], *first[1:]], [first[0], *second[1:]], *rest], data.suggested)
    after = truth_of(traded)
    assert (after.C, after.L, after.E) == (truth.C, truth.L, truth.E)
    before_kappa, after_kappa = exact_of(data), exact_of(traded)
    assert (after_kappa > before_kappa) == (after.D > truth.D)
    assert (after_kappa < before_kappa) == (after.D < truth.D)


def test_requirement_3_across_data_sets_against_methods() -> None:
    """The label is always 1, and agreeing on another category does not always score least."""
    unanimous, scattered, halves = exact("030/1 030/1"), exact("111/1 111/1"), exact("030/1 003/1")
    assert (unanimous, scattered, halves) == (F(0), F(1, 10), F(-1, 3))
    assert (exact("030/1 111/1"), exact("030/1 030/1")) == (F(-1, 26), F(0))


# The two-category theorem, docs/methods.md


def cohen(votes: Sequence[Sequence[Hashable]], labels: Sequence[Hashable]) -> F | None:
    """Cohen's kappa between the label and a vote drawn from the item."""
    drawn = [oracle.vote_share(item, label) for item, label in zip(votes, labels, strict=True)]
    p_o, p_e = oracle.mean(drawn), F(0)
    for category in set(labels):
        C_j = oracle.mean([oracle.vote_share(item, category) for item in votes])
        p_e += C_j * F(labels.count(category), len(labels))
    return None if p_e == 1 else (p_o - p_e) / (1 - p_e)


@given(complete(max_categories=2))
def test_two_categories_against_cohen(data: Data) -> None:
    assert dh_kappa(data.votes, data.suggested).exact == cohen(data.votes, data.suggested)


@given(ragged(max_categories=2))
def test_two_categories_ragged_against_cohen(data: Data) -> None:
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    assume(items)
    result = dh_kappa(data.written_votes, data.written_suggested)
    assert result.exact == cohen(items, labels)
    assert result.exact is None or result.baselines.random == 0


def test_two_categories_ignore_agreement_among_annotators_against_methods() -> None:
    """Two data sets with the same pooled votes: annotators agree in one and always split in the other."""
    agreeing, split = from_counts("20/1 02/1 20/2 02/2"), from_counts("11/1 11/1 11/2 11/2")
    assert exact_of(agreeing) == exact_of(split) == 0
    assert (fleiss_kappa(agreeing.votes).exact, fleiss_kappa(split.votes).exact) == (F(1), F(-1))


# Range, docs/methods.md


@given(ragged())
def test_range_against_methods(data: Data) -> None:
    truth = truth_of(data)
    assume(truth.kappa is not None)
    kappa = dh_kappa(data.written_votes, data.written_suggested).exact
    assert kappa is not None
    shared = sum((min(truth.C[j], truth.L[j]) for j in data.categories), F(0))
    forced = max(F(0), *(truth.C[j] + truth.L[j] - 1 for j in data.categories))
    assert F(-14, 13) < -1 <= kappa <= 1  # at most six categories: the least is -1
    assert (kappa == 1) == (truth.D == 1)
    assert 1 - 2 * (1 - forced) / (1 - truth.E) <= kappa <= 1 - (1 - shared) / (1 - truth.E)


def all_against(taken: dict[int, int], other: int) -> Data:
    """Unanimous items, all against their label.

    The panel says 0 on a third of the items, which are suggested as `other`; the rest are suggested as 0 and
    the panel says category j on taken[j] of them.
    """
    against = [j for j, items in taken.items() for _ in range(items)]
    third = len(against) // 2
    votes = [[0, 0]] * third + [[j, j] for j in against]
    return Data(tuple(range(max(*taken, other) + 1)), votes, [other] * third + [0] * len(against))


@pytest.mark.parametrize(
    ("taken", "other", "kappa"),
    [
        pytest.param({j: 3 if j > 27 else 2 for j in range(1, 30)}, 30, F(-1379, 1321), id="m = 31"),
        pytest.param({j: 3 if j == 1 else 1 for j in range(1, 31)}, 1, F(-221, 211), id="lower, m = 31"),
    ],
)
def test_kappa_below_minus_one_against_methods(taken: dict[int, int], other: int, kappa: F) -> None:
    data = all_against(taken, other)
    assert len(data.categories) == 31
    assert F(-14, 13) < kappa < -1
    assert exact_of(data) == truth_of(data).kappa == kappa


def test_seven_categories_reach_below_minus_one_against_methods() -> None:
    """E > 0 with D = -1 needs a second category with many votes and many labels, and five small ones."""
    votes = [[0, 0]] * 47 + [[1, 1]] * 39 + [[j, j] for j in range(2, 7) for _ in range(3)]
    suggested = [1] * 47 + [0] * 54
    data = Data(tuple(range(7)), votes, suggested)
    assert exact_of(data) == truth_of(data).kappa
    assert exact_of(data) < -1


@pytest.mark.parametrize("q", [10, 100, 1000])
def test_approach_to_the_bound_against_methods(q: int) -> None:
    """With more and more categories kappa falls towards -14/13 and never reaches it."""
    n = 3 * q
    C = {0: F(1, 3)} | {j: F(1, n) for j in range(1, 2 * q + 1)}
    L = {0: F(2, 3), 1: F(1, 3)}
    E = sum((C[j] ** 2 * (2 * L.get(j, F(0)) - 1) for j in C), F(0))
    votes = [[0, 0]] * q + [[j, j] for j in range(1, 2 * q + 1)]
    kappa = dh_kappa(votes, [1] * q + [0] * (2 * q)).exact
    assert kappa == (-1 - E) / (1 - E)
    assert 0 < kappa + F(14, 13) < F(1, q)


# Counterexamples, docs/methods.md


def test_unanimous_panel_against_constant_label_against_methods() -> None:
    """All labels 2, all votes 1: as bad as can be, and expected to be, so kappa is 0."""
    result = dh_kappa([[1, 1, 1]] * 5, [2] * 5)
    parts = result.parts
    assert parts is not None
    assert (parts.D, parts.E, result.exact) == (F(-1), F(-1), F(0))


@given(complete())
def test_constant_votes_against_methods(data: Data) -> None:
    constant = [[1] * len(item) for item in data.votes]
    assert dh_kappa(constant, data.suggested).exact == (None if set(data.suggested) == {1} else 0)


@given(complete(max_categories=2))
def test_constant_label_of_two_against_methods(data: Data) -> None:
    kappa = dh_kappa(data.votes, [1] * len(data.votes)).exact
    assert kappa == (None if all(set(item) == {1} for item in data.votes) else 0)


@pytest.mark.parametrize(("m", "kappa"), [(3, F(1, 10)), (4, F(1, 9)), (5, F(3, 28)), (6, F(1, 10))])
def test_scattered_votes_score_above_zero_against_methods(m: int, kappa: F) -> None:
    """N = m, one vote for each category, uniform labels."""
    assert kappa == F(m - 2, (m + 2) * (m - 1))
    assert dh_kappa([list(range(m))] * m, list(range(m))).exact == kappa


@pytest.mark.parametrize("N", range(2, 9))
def test_label_that_nobody_chooses_against_methods(N: int) -> None:
    """Every vote scattered over the other categories still reaches 1/(N+1)."""
    assert dh_kappa([list(range(1, N + 1))] * 3, [0] * 3).exact == F(1, N + 1)


@pytest.mark.parametrize(("n", "N", "m"), [(3, 2, 4), (2, 3, 4), (3, 3, 3)])
def test_label_that_nobody_chooses_against_every_data_set(n: int, N: int, m: int) -> None:
    """1/(N+1) is the most that labels without a single vote can score."""
    item = [
        (list(votes), label)
        for label in range(m)
        for votes in combinations_with_replacement([j for j in range(m) if j != label], N)
    ]
    best = max(
        (D - E) / (1 - E)
        for items in combinations_with_replacement(item, n)
        for D, E in [oracle.differential([votes for votes, _ in items], [label for _, label in items])]
    )
    assert best == F(1, N + 1) if m > N else best < F(1, N + 1)


def test_vote_moved_to_the_label_lowers_kappa_against_methods() -> None:
    assert exact("011/1 200/1 200/1") == F(5, 11)
    assert exact("101/1 200/1 200/1") == F(0)


# The random baseline, docs/methods.md


@pytest.mark.parametrize(("m", "random"), [(2, F(0)), (3, F(-1, 5)), (4, F(-1, 3)), (5, F(-3, 7)), (10, F(-2, 3))])
def test_random_baseline_of_perfect_annotators(m: int, random: F) -> None:
    """Every label on every unanimous item: labels carry no information, so kappa is its own baseline."""
    pairs = list(product(range(m), repeat=2))
    result = dh_kappa([[truth] * 3 for truth, _ in pairs], [label for _, label in pairs])
    assert result.exact == random
    assert result.baselines.random == float(random)


@given(ragged(max_items=4, max_votes=4))
def test_random_baseline_against_all_permutations(data: Data) -> None:
    truth = truth_of(data)
    assert truth.random == oracle.random_by_permutation(data.votes, data.suggested)


@given(ragged())
def test_kappa_above_random_against_covariance(data: Data) -> None:
    """kappa - random = 2 sum_j Cov(q_j, g_j)/(1 - E)."""
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    truth = truth_of(data)
    assume(truth.kappa is not None and truth.random is not None)
    assert truth.kappa is not None
    assert truth.random is not None
    covariance = F(0)
    for j in data.categories:
        g = [oracle.pair_share(item, j) for item in items]
        q = [F(label == j) for label in labels]
        covariance += oracle.mean([a * b for a, b in zip(g, q, strict=True)])
        covariance -= oracle.mean(g) * oracle.mean(q)
    assert truth.kappa - truth.random == 2 * covariance / (1 - truth.E)


# The majority baseline, docs/methods.md


def population(prevalence: Sequence[int], right: int, wrong: int) -> Data:
    """Perfect labels and every ordered pair of votes, in proportion to its probability."""
    m = len(prevalence)
    votes: list[list[int]] = []
    suggested: list[int] = []
    for label, copies in enumerate(prevalence):
        bag = [label] * right + [j for j in range(m) if j != label] * wrong
        votes += [list(pair) for pair in product(bag, repeat=2)] * copies
        suggested += [label] * len(bag) ** 2 * copies
    return Data(tuple(range(m)), votes, suggested)


@pytest.mark.parametrize(
    ("data", "kappa"),
    [
        pytest.param(population([1] * 5, right=16, wrong=1), F(75, 112), id="m = 5, uniform"),
        pytest.param(population([7, 3], right=4, wrong=1), F(63, 113), id="m = 2, prevalence .7 and .3"),
    ],
)
def test_perfect_labels_under_80_percent_annotators_against_methods(data: Data, kappa: F) -> None:
    assert exact_of(data) == kappa


def test_majority_ties_follow_the_order_of_categories() -> None:
    """A tie leaves D alone and moves L: 11/- gives category 1 or 2, whichever is declared first."""
    votes = [[1, 2], [1, 1], [2, 2], [2, 2]]
    baselines = [dh_kappa(votes, [1] * 4, categories=order).baselines.majority for order in ([1, 2], [2, 1])]
    expected = [cohen(votes, [first, 1, 2, 2]) for first in (1, 2)]
    assert baselines == [float(kappa) for kappa in expected if kappa is not None]
    assert baselines[0] != baselines[1]
