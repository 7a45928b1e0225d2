"""Agreement weights against loops over pairs of votes, the unweighted kappa, and exact derivatives."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
from dhkappa import Kappa, Tally, dh_kappa, resources, simulate, tally
from dhkappa.stats import weights as module
from dhkappa.stats.influence import Terms, influence, terms
from dhkappa.stats.kappa import Estimate, Parts, estimate_dh, sums
from dhkappa.stats.sample import Sample
from dhkappa.stats.weighted import estimate_weighted, weighted_parts
from dhkappa.stats.weights import agreement_weights, pair_sums
from exact import exact_terms, float_terms, fractions
from exact import influence as exact_influence
from expect import expect_error
from strategies import Data, complete, from_counts, ragged

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
RAGGED = from_counts("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1")


def sample(data: Data) -> Sample:
    kappa = dh_kappa(data.written_votes, data.written_suggested, categories=data.written_categories)
    return kappa.sample


def has_kappa(data: Data) -> bool:
    return estimate_dh(sample(data)).exact is not None


ANY_DATA = (ragged(max_items=12, max_votes=6) | complete()).filter(has_kappa)
SMALL_DATA = (ragged(max_items=6, max_votes=5, max_categories=4) | complete(max_categories=4)).filter(has_kappa)
TWO_CATEGORIES = complete(max_categories=2).filter(has_kappa)


def exact_matrix(weights: object, m: int) -> npt.NDArray[np.object_]:
    found = agreement_weights(weights, m)
    return fractions(F(int(value), found.unit) for value in found.scaled.ravel()).reshape(m, m)


@dataclass(frozen=True)
class Weighted:
    """The weighted kappa: its estimate, d and phi in fractions, and both in floats."""

    estimate: Estimate
    parts: Parts
    d: npt.NDArray[np.object_]
    phi: npt.NDArray[np.object_]
    rough: Terms
    rough_phi: npt.NDArray[np.float64]


def estimated(data: Data, weights: Any) -> Weighted:
    items, m = sample(data), len(data.categories)
    checked = agreement_weights(weights, m)
    found = estimate_weighted(items, checked)
    parts = found.parts
    assert parts is not None
    _, agreeing, on_label = pair_sums(items.patterns, checked)
    totals = items.patterns.vote_totals().tolist()
    d = fractions(
        F(2 * int(a) - checked.unit * int(b), N * (N - 1) * checked.unit**2)
        for a, b, N in zip(on_label.tolist(), agreeing.tolist(), totals, strict=True)
    )
    plain = exact_terms(Kappa(estimate_dh(items)))
    if parts.kappa is None:
        return Weighted(found, parts, d, d[:0], plain, np.zeros(0))
    w = exact_matrix(weights, m)
    exact = replace(plain, d=d, D=parts.D, E=parts.E, C_E=parts.C_E, kappa=parts.kappa, w=w)
    rough = terms(items, parts, checked)
    return Weighted(found, parts, d, influence(exact), rough, influence(rough))


def unweighted(data: Data) -> tuple[Estimate, Terms]:
    plain = estimate_dh(sample(data))
    return plain, exact_terms(Kappa(plain))


def identity(m: int) -> list[list[int]]:
    return [[int(x == y) for y in range(m)] for x in range(m)]


def random_weights(random: Random, m: int) -> list[list[F]]:
    """Weights of every kind that is allowed: 0 and 1 off the diagonal too, and no triangle inequality."""
    w = [[F(1)] * m for _ in range(m)]
    for x, y in combinations(range(m), 2):
        w[x][y] = w[y][x] = random.choice([F(0), F(1), F(random.randint(0, 12), 12), F(random.randint(0, 7), 7)])
    return w


@st.composite
def sample_weight(draw: st.DrawFn, m: int) -> list[list[F]]:
    kind = draw(st.sampled_from(["own", "linear", "quadratic"]))
    if kind != "own":
        return weights_by_definition(kind, m)
    return random_weights(Random(draw(st.integers(0, 2**32))), m)


# The definitions, in loops.


def weights_by_definition(kind: str, m: int) -> list[list[F]]:
    power = {"linear": 1, "quadratic": 2}[kind]
    return [[1 - F(abs(x - y), m - 1) ** power if m > 1 else F(1) for y in range(m)] for x in range(m)]


@dataclass(frozen=True)
class Expected:
    """d of each eligible item, and the parts over items with weights v_i."""

    d: list[F]
    R: F
    S: F
    C_E: F
    C_F: F

    @property
    def D(self) -> F:
        return self.R - self.S

    @property
    def E(self) -> F:
        return self.C_E - self.C_F

    @property
    def kappa(self) -> F | None:
        return None if self.E == 1 else (self.D - self.E) / (1 - self.E)


def by_definition(data: Data, w: Sequence[Sequence[F]], item_weights: Sequence[F] | None = None) -> Expected:
    """Draw an item and two of its votes; by chance draw a label, and two votes of items drawn on their own."""
    place = {category: code for code, category in enumerate(data.categories)}
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    v = [F(1)] * len(items) if item_weights is None else item_weights
    share = [weight / sum(v) for weight in v]

    def on_label(a: Hashable, b: Hashable, label: Hashable) -> F:
        x, y, to = place[a], place[b], place[label]
        return w[x][y] * (w[x][to] + w[y][to]) / 2

    def on_another(a: Hashable, b: Hashable, label: Hashable) -> F:
        return w[place[a]][place[b]] - on_label(a, b, label)

    observed = []
    for item, label in zip(items, labels, strict=True):
        pairs = list(combinations(item, 2))
        R_i = sum((on_label(a, b, label) for a, b in pairs), F(0)) / len(pairs)
        S_i = sum((on_another(a, b, label) for a, b in pairs), F(0)) / len(pairs)
        observed.append((R_i, S_i))
    C = dict.fromkeys(data.categories, F(0))
    L = dict.fromkeys(data.categories, F(0))
    for item, label, part in zip(items, labels, share, strict=True):
        L[label] += part
        for category in data.categories:
            C[category] += part * oracle.vote_share(item, category)
    drawn = [(a, b, label) for a in C if C[a] for b in C if C[b] for label in L if L[label]]
    return Expected(
        d=[R_i - S_i for R_i, S_i in observed],
        R=sum((part * R_i for part, (R_i, _) in zip(share, observed, strict=True)), F(0)),
        S=sum((part * S_i for part, (_, S_i) in zip(share, observed, strict=True)), F(0)),
        C_E=sum((C[a] * C[b] * L[label] * on_label(a, b, label) for a, b, label in drawn), F(0)),
        C_F=sum((C[a] * C[b] * L[label] * on_another(a, b, label) for a, b, label in drawn), F(0)),
    )


def rows_of_items(data: Data) -> list[int]:
    """Return the pattern of each eligible item."""
    patterns, place = sample(data).patterns, {category: code for code, category in enumerate(data.categories)}
    row = {}
    for k in range(len(patterns)):
        span = slice(patterns.start[k], patterns.start[k + 1])
        votes = zip(patterns.code[span].tolist(), patterns.votes[span].tolist(), strict=True)
        row[int(patterns.suggested[k]), tuple(votes)] = k
    items, labels, _ = oracle.eligible(data.votes, data.suggested)
    return [
        row[place[label], tuple(sorted((place[vote], item.count(vote)) for vote in set(item)))]
        for item, label in zip(items, labels, strict=True)
    ]


# Values


def test_worked_example_with_linear_weights() -> None:
    found = estimated(EXAMPLE, "linear")
    assert found.d[rows_of_items(EXAMPLE)].tolist() == [1, F(1, 2), 1, F(1, 6), 1, 0]
    assert (found.parts.D, found.parts.E, found.estimate.exact) == (F(11, 18), F(26, 243), F(35, 62))
    counts = tally(EXAMPLE.votes, EXAMPLE.suggested, categories=[1, 2, 3])
    assert dh_kappa(counts, weights="linear").exact == F(35, 62)


@given(st.data())
def test_against_pairs_of_votes(draw: st.DataObject) -> None:
    data = draw.draw(ANY_DATA)
    w = draw.draw(sample_weight(len(data.categories)))
    found, expected = estimated(data, w), by_definition(data, w)
    assert found.d[rows_of_items(data)].tolist() == expected.d
    assert (found.parts.R, found.parts.S) == (expected.R, expected.S)
    assert (found.parts.C_E, found.parts.C_F) == (expected.C_E, expected.C_F)
    assert found.estimate.exact == expected.kappa
    agreeing, chance = expected.R + expected.S, expected.C_E + expected.C_F
    assert found.estimate.fleiss == (None if chance == 1 else (agreeing - chance) / (1 - chance))
    assert all(-1 <= d <= 1 for d in found.d)


@given(st.data())
def test_influence_is_the_derivative(draw: st.DataObject) -> None:
    data = draw.draw(SMALL_DATA)
    w = draw.draw(sample_weight(len(data.categories)))
    found = estimated(data, w)
    assume(found.parts.kappa is not None)
    at = rows_of_items(data)
    n = len(at)
    assert sum(found.phi[at]) == 0
    moved = draw.draw(st.integers(0, n - 1))

    def parts(step: F) -> Expected:
        return by_definition(data, w, [(1 - step) / n + step * (i == moved) for i in range(n)])

    # D is linear in the shares of items and E a cubic, so four values give the slope of E at 0 without error.
    h = F(1, 100)
    one_sided = [parts(k * h).E for k in range(4)]
    slope_E = (-11 * one_sided[0] + 18 * one_sided[1] - 9 * one_sided[2] + 2 * one_sided[3]) / (6 * h)
    slope_D = (parts(h).D - parts(F(0)).D) / h
    D, E = found.parts.D, found.parts.E
    assert found.phi[at[moved]] == (slope_D * (1 - E) - slope_E * (1 - D)) / (1 - E) ** 2


@given(st.data())
def test_floats_are_the_exact_values_rounded(draw: st.DataObject) -> None:
    data = draw.draw(ANY_DATA)
    found = estimated(data, draw.draw(sample_weight(len(data.categories))))
    assume(found.parts.kappa is not None)
    expected = (float(found.parts.D), float(found.parts.E), float(found.parts.kappa or 0))
    assert (found.rough.D, found.rough.E, found.rough.kappa) == expected
    assert found.rough.d.tolist() == [float(d) for d in found.d]
    # phi is a sum of some m terms of size 1, each rounded a few times, over 1 - E.
    assert found.rough_phi.dtype == np.float64
    assert found.rough_phi == pytest.approx(found.phi.astype(float), rel=0, abs=1e-14 / float(1 - found.parts.E) ** 2)


# The unweighted kappa as a special case


@given(ANY_DATA)
def test_identity_weights_give_the_unweighted_fractions(data: Data) -> None:
    found, (plain, terms) = estimated(data, identity(len(data.categories))), unweighted(data)
    assert (found.estimate.exact, found.estimate.fleiss) == (plain.exact, plain.fleiss)
    assert found.parts == plain.parts
    assert found.d.tolist() == terms.d.tolist()
    assert found.phi.tolist() == exact_influence(terms).tolist()


@given(ANY_DATA, st.sampled_from(["int", "float", "Fraction", "array"]))
def test_identity_weights_give_the_unweighted_floats_bit_for_bit(data: Data, kind: str) -> None:
    m = len(data.categories)
    make = {"int": int, "float": float, "Fraction": F, "array": int}[kind]
    w: object = np.eye(m) if kind == "array" else [[make(value) for value in row] for row in identity(m)]
    found, expected = estimated(data, w), float_terms(Kappa(estimate_dh(sample(data))))
    assert (found.rough.D, found.rough.E, found.rough.kappa) == (expected.D, expected.E, expected.kappa)
    assert found.rough.d.tobytes() == expected.d.tobytes()
    assert found.rough_phi.tobytes() == influence(expected).tobytes()


def test_identity_weights_bit_for_bit_with_the_most_votes() -> None:
    counts = Tally(["a", "b", "c"])
    counts.update(counts=[[2**31 - 3, 1, 1], [5, 2**30, 2**29], [0, 3, 0]], suggested=["a", "b", "b"])
    plain, weighted = dh_kappa(counts), dh_kappa(counts, weights=identity(3))
    assert (weighted.exact, weighted.se, weighted.baselines) == (plain.exact, plain.se, plain.baselines)
    assert tuple(weighted.confidence_interval()) == tuple(plain.confidence_interval())


@given(TWO_CATEGORIES, st.sampled_from(["linear", "quadratic"]))
def test_two_categories_are_unweighted(data: Data, weights: str) -> None:
    found, (plain, terms) = estimated(data, weights), unweighted(data)
    assert found.parts == plain.parts
    assert found.phi.tolist() == exact_influence(terms).tolist()


# Invariances


@given(ANY_DATA, st.sampled_from(["linear", "quadratic"]))
def test_reversed_order_changes_nothing(data: Data, weights: str) -> None:
    turned = Data(data.categories[::-1], data.votes, data.suggested, data.spelling)
    found, other = estimated(data, weights), estimated(turned, weights)
    assert (found.parts.D, found.parts.E) == (other.parts.D, other.parts.E)
    assert sorted(found.d) == sorted(other.d)
    assert sorted(found.phi) == sorted(other.phi)
    assert sorted(found.rough.d) == sorted(other.rough.d)


@given(st.data())
def test_renamed_categories_change_nothing_if_weights_move_along(draw: st.DataObject) -> None:
    data = draw.draw(ANY_DATA)
    m = len(data.categories)
    w = draw.draw(sample_weight(m))
    order = draw.draw(st.permutations(range(m)))
    moved = Data(tuple(data.categories[j] for j in order), data.votes, data.suggested, data.spelling)
    found, other = estimated(data, w), estimated(moved, [[w[x][y] for y in order] for x in order])
    assert (found.parts.D, found.parts.E) == (other.parts.D, other.parts.E)
    assert found.estimate.fleiss == other.estimate.fleiss
    assert sorted(found.phi) == sorted(other.phi)


@given(ANY_DATA)
def test_same_categories_score_as_one(data: Data) -> None:
    """Weight 1 between two categories is the same as counting them as one."""
    m = len(data.categories)
    assume(m > 1)
    w = identity(m)
    w[0][1] = w[1][0] = 1
    one, two, *rest = data.categories
    united = Data(
        (one, *rest),
        [[one if vote == two else vote for vote in item] for item in data.votes],
        [one if label == two else label for label in data.suggested],
        data.spelling,
    )
    found, expected = estimated(data, w), estimate_dh(sample(united)).parts
    assert expected is not None
    assert (found.parts.D, found.parts.E, found.parts.kappa) == (expected.D, expected.E, expected.kappa)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(4)
    votes = [[random.randint(1, 9) for _ in range(random.randint(2, 7))] for _ in range(300)]
    data = Data(tuple(range(1, 10)), votes, [random.randint(1, 9) for _ in votes])
    whole = estimated(data, "quadratic")
    monkeypatch.setattr(module, "_PAIRS_PER_BLOCK", 50)
    parts = estimated(data, "quadratic")
    assert whole.d.tolist() == parts.d.tolist()
    assert whole.phi.tolist() == parts.phi.tolist()


def test_many_items_are_as_exact_as_few() -> None:
    few = sample(RAGGED)
    items = few.patterns.items * 10**17
    many = replace(few, patterns=replace(few.patterns, items=items), mass=items)
    checked = agreement_weights("quadratic", 3)
    one, other = (
        weighted_parts(given, pair_sums(given.patterns, checked), sums(given), checked) for given in (few, many)
    )
    assert (one.R, one.S, one.C_E, one.C_F) == (other.R, other.S, other.C_E, other.C_F)


def test_sums_beyond_64_bits() -> None:
    """Only shares of unanimous votes matter; 1.5e9 squared, times 5 items, is between 2^63 and 2^64."""
    items, labels = np.array([0, 0, 0, 0, 1]), [0, 0, 1, 0, 0]
    few, many = (
        dh_kappa(counts=votes * np.eye(2, dtype=np.int64)[items], suggested=labels, categories=[0, 1], weights="linear")
        for votes in (2, 1_500_000_000)
    )
    assert many.exact == few.exact
    assert many.fleiss == few.fleiss == 1


# Weights


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 11])
def test_named_weights(kind: str, m: int) -> None:
    expected = weights_by_definition(kind, m)
    assert exact_matrix(kind, m).tolist() == expected
    found = agreement_weights(kind, m).matrix()
    assert found.dtype == np.float64
    assert found.tolist() == [[float(value) for value in row] for row in expected]


def test_a_matrix_may_be_a_dataframe() -> None:
    rows = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pd.DataFrame(rows, columns=["lo", "mid", "hi"]), pl.DataFrame(rows, orient="row")):
        assert agreement_weights(frame, 3).matrix().tolist() == rows


def test_a_matrix_keeps_its_values() -> None:
    tiny = 5e-324  # its square has no float
    w = [[1, 0.3, tiny], [0.3, 1.0, F(1, 3)], [tiny, F(1, 3), True]]
    assert agreement_weights(w, 3).matrix().tolist() == [[1, 0.3, tiny], [0.3, 1, 1 / 3], [tiny, 1 / 3, 1]]
    assert exact_matrix(w, 3)[1].tolist() == [F(0.3), 1, F(1, 3)]
    half = [[1, F(1, 2)], [F(1, 2), 1]]
    for same in (np.array([[1, 0.5], [0.5, 1]]), np.array(half, object), ((1, 0.5), (0.5, 1))):
        assert exact_matrix(same, 2).tolist() == half
    decimals = [[Decimal(1), Decimal("0.1")], [Decimal("0.1"), Decimal(1)]]
    assert exact_matrix(decimals, 2)[0, 1] == F(1, 10)
    assert exact_matrix([[np.int64(1), np.uint8(0)], [np.bool_(False), 1]], 2).tolist() == [[1, 0], [0, 1]]
    assert exact_matrix([[1]], 1).tolist() == [[1]]


def test_a_matrix_of_any_type() -> None:
    expected = exact_matrix([[1, 0.1], [0.1, 1]], 2).tolist()
    assert agreement_weights((row for row in [[1, 0.1], [0.1, 1]]), 2).matrix().tolist() == [[1, 0.1], [0.1, 1]]
    assert exact_matrix(np.array([[1, 0.1], [0.1, 1]], np.longdouble), 2).tolist() == expected
    half = np.array([[1, 0.1], [0.1, 1]], np.float16)
    assert exact_matrix(half, 2)[0, 1] == F(float(np.float16(0.1)))


def test_more_categories_than_memory_has_weights_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "memory_limit", lambda: resources.MemoryLimit(2**30, 2**31, "a test"))
    with pytest.raises(MemoryError, match="the weights of each two of 10,000 categories: 6,103 MiB needed"):
        dh_kappa([[0, 1], [2, 2]], [0, 2], categories=range(10_000), weights="linear")


def test_weights_without_a_small_unit() -> None:
    w = [[1, 0.3, 5e-324], [0.3, 1, 1 / 3], [5e-324, 1 / 3, 1]]
    found, expected = estimated(RAGGED, w), by_definition(RAGGED, [[F(value) for value in row] for row in w])
    assert (found.parts.D, found.parts.E, found.parts.kappa) == (expected.D, expected.E, expected.kappa)
    assert found.rough.kappa == float(found.parts.kappa or 0)
    assert found.rough.d.tolist() == [float(d) for d in found.d]


BAD: dict[str, tuple[Any, int]] = {
    "unknown name": ("cubic", 3),
    "a number": (2, 3),
    "a list": ([1, 0], 2),
    "names": (["10", "01"], 2),
    "true": (True, 2),
    "a vector": (np.ones(3), 3),
    "too small": (identity(2), 3),
    "not square": ([[1, 0, 0], [0, 1, 0]], 2),
    "ragged": ([[1, 0], [0]], 2),
    "empty": ([], 2),
    "not symmetric": ([[1, 0.5], [0.25, 1]], 2),
    "diagonal": ([[1, 0], [0, 0.5]], 2),
    "negative": ([[1, -0.5], [-0.5, 1]], 2),
    "over 1": ([[1, 1.5], [1.5, 1]], 2),
    "nan": ([[1, math.nan], [math.nan, 1]], 2),
    "infinite": (np.array([[1, np.inf], [np.inf, 1]]), 2),
    "none": ([[1, None], [None, 1]], 2),
    "text": ([[1, "0.5"], ["0.5", 1]], 2),
    "complex": ([[1, 0.5j], [0.5j, 1]], 2),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights(case: str) -> None:
    weights, m = BAD[case]
    with expect_error("invalid-weights", "weights"):
        agreement_weights(weights, m)


def test_undefined_if_all_categories_are_the_same() -> None:
    found = estimated(EXAMPLE, np.ones((3, 3))).estimate
    assert found.parts is not None
    assert (found.parts.D, found.parts.E, found.fleiss, found.exact) == (F(1), F(1), None, None)
    kappa = Kappa(found)
    assert kappa.reason == "Every category that occurs has weight 1 with every other."
    assert (kappa.n_items, kappa.n_votes, kappa.excluded.total) == (6, 18, 0)
    assert math.isnan(kappa.value)
    assert math.isnan(kappa.confidence_interval().low)
    one = dh_kappa([["a", "a"]], ["a"], categories=["a", "b"], weights="linear")
    assert (one.metric, one.exact, bool(one.reason)) == ("weighted", None, True)


# Results

LARGE = simulate(400, categories=["low", "mid", "high"], accuracy=0.8, rng=2)


def large(**options: Any) -> Kappa:
    return dh_kappa(LARGE.votes, LARGE.suggested["labeler"], categories=["low", "mid", "high"], **options)


def test_identity_weights_are_the_unweighted_result_to_the_bit() -> None:
    plain, same = large(), large(weights=np.eye(3))
    assert (same.exact, same.value, same.se, same.fleiss) == (plain.exact, plain.value, plain.se, plain.fleiss)
    for method in ("beta", "wald"):
        assert same.confidence_interval(method=method) == plain.confidence_interval(method=method)
    assert same.baselines == plain.baselines
    assert same.above_random == pytest.approx(plain.above_random, rel=1e-14)


def test_interval_includes_kappa() -> None:
    kappa = large(weights="quadratic")
    for method in ("beta", "wald"):
        low, high = kappa.confidence_interval(method=method)
        assert low < kappa.value < high <= 1
    assert kappa.confidence_interval().method == "beta"


def test_a_flawless_sample() -> None:
    order = ["a", "b", "c"]
    kappa = dh_kappa([[label] * 2 for label in order] * 10, order * 10, categories=order, weights="linear")
    assert (kappa.exact, kappa.se) == (F(1), 0.0)
    assert 0 < kappa.confidence_interval().low < kappa.confidence_interval().high == 1


@pytest.mark.slow
def test_coverage_of_the_interval() -> None:
    """Five ordered categories: votes and labels stray from the truth by one step with probability 0.3."""
    rng = np.random.default_rng(11)

    def drawn(n: int) -> Kappa:
        truth = rng.integers(0, 5, n)
        stray = rng.choice([-1, 0, 1], (n, 4), p=[0.15, 0.7, 0.15])
        labels = np.clip(truth[:, None] + stray, 0, 4)
        return dh_kappa(labels[:, :3], labels[:, 3], categories=range(5), weights="linear")

    truth = drawn(10**6).value  # its own error is some .0003
    covered = [low <= truth <= high for low, high in (drawn(100).confidence_interval() for _ in range(600))]
    # Three standard deviations of a share of 600 at .95 are .027; the interval covers somewhat more than its level.
    assert 0.923 <= np.mean(covered) <= 0.995
