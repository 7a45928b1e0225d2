"""Ordinal weights: against loops over pairs of votes, against the plain kappa, and against derivatives."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from dhkappa.core.tally import Tally
from dhkappa.stats.sums import sums
from dhkappa.stats.terms import Terms, terms
from hypothesis import assume, given
from hypothesis import strategies as st

import dhkappa
import oracle
from dhkappa import memory
from dhkappa.api import tally
from dhkappa.errors import DataError
from dhkappa.stats import weights as module
from dhkappa.stats.influence import influence, standard_error, sum_of_squares
from dhkappa.stats.intervals import Basis, plain_basis
from dhkappa.stats.kappa import Parts, estimate_dh
from dhkappa.stats.sample import sample_of
from dhkappa.stats.weights import WeightedEstimate, log_interval, weight_matrix, weighted_estimate, weights_of
from strategies import Data, complete, from_counts, ragged

F = Fraction
EXAMPLE = from_counts("300/1 210/1 030/2 111/2 003/3 030/3")
RAGGED = from_counts("200/1 210/1 031/2 002/3 100/1 000/2 020/- 120/1")


def counted(data: Data) -> Tally:
    return tally(data.written_votes, data.written_suggested, categories=data.written_categories)


def parts_of(counts: Tally) -> Parts:
    return estimate_dh(sums(sample_of(counts)), counts.categories).parts


def plain(data: Data, exact: bool = True) -> tuple[Terms, Parts]:
    counts = counted(data)
    parts = parts_of(counts)
    return terms(sample_of(counts).merged(), parts, exact), parts


def has_kappa(data: Data) -> bool:
    total = sums(sample_of(counts := counted(data)))
    return total.n > 0 and estimate_dh(total, counts.categories).parts.kappa is not None


ANY_DATA = (ragged(max_items=12, max_votes=6) | complete()).filter(has_kappa)
SMALL_DATA = (ragged(max_items=6, max_votes=5, max_categories=4) | complete(max_categories=4)).filter(has_kappa)
TWO_CATEGORIES = complete(max_categories=2).filter(has_kappa)


def estimated(data: Data, weights: object, exact: bool = True) -> WeightedEstimate:
    return weighted_estimate(*plain(data, exact), weights_of(weights, len(data.categories)))


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


def rows_of_items(data: Data, found: Terms) -> list[int]:
    """Return the pattern of each eligible item."""
    patterns, place = found.patterns, {category: code for code, category in enumerate(data.categories)}
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
    at = rows_of_items(EXAMPLE, plain(EXAMPLE)[0])
    assert found.d[at].tolist() == [1, F(1, 2), 1, F(1, 6), 1, 0]
    assert (found.D, found.E, found.kappa) == (F(11, 18), F(26, 243), F(35, 62))
    assert found.parts.kappa == F(35, 62)


@given(st.data())
def test_against_pairs_of_votes(draw: st.DataObject) -> None:
    data = draw.draw(ANY_DATA)
    w = draw.draw(sample_weight(len(data.categories)))
    found, expected = estimated(data, w), by_definition(data, w)
    at = rows_of_items(data, plain(data)[0])
    assert found.d[at].tolist() == expected.d
    assert (found.parts.R, found.parts.S) == (expected.R, expected.S)
    assert (found.parts.C_E, found.parts.C_F) == (expected.C_E, expected.C_F)
    assert (found.D, found.E, found.kappa) == (expected.D, expected.E, expected.kappa)
    agreeing, chance = expected.R + expected.S, expected.C_E + expected.C_F
    assert found.fleiss == (None if chance == 1 else (agreeing - chance) / (1 - chance))
    assert all(-1 <= d <= 1 for d in found.d)


@given(st.data())
def test_influence_is_the_derivative(draw: st.DataObject) -> None:
    data = draw.draw(SMALL_DATA)
    w = draw.draw(sample_weight(len(data.categories)))
    found = estimated(data, w)
    assume(found.kappa is not None)
    at = rows_of_items(data, plain(data)[0])
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
    slope = (slope_D * (1 - found.E) - slope_E * (1 - found.D)) / (1 - found.E) ** 2
    assert found.phi[at[moved]] == slope


@given(st.data())
def test_floats_are_the_exact_values_rounded(draw: st.DataObject) -> None:
    data = draw.draw(ANY_DATA)
    w = draw.draw(sample_weight(len(data.categories)))
    exact, found = estimated(data, w), estimated(data, w, exact=False)
    assume(exact.kappa is not None)
    assert (found.D, found.E, found.kappa) == (float(exact.D), float(exact.E), float(exact.kappa))
    assert found.parts == exact.parts
    assert found.d.tolist() == [float(d) for d in exact.d]
    # phi is a sum of some m terms of size 1, each rounded a few times, over 1 - E.
    assert found.phi.dtype == np.float64
    assert found.phi == pytest.approx(exact.phi.astype(float), rel=0, abs=1e-14 / float(1 - exact.E) ** 2)


# The plain kappa inside it


@given(ANY_DATA)
def test_identity_weights_give_the_plain_fractions(data: Data) -> None:
    m = len(data.categories)
    found, (expected, parts) = estimated(data, identity(m)), plain(data)
    assert (found.D, found.E, found.kappa) == (expected.D, expected.E, expected.kappa)
    assert found.d.tolist() == expected.d.tolist()
    assert found.phi.tolist() == influence(expected).tolist()
    assert found.parts == parts
    assert found.fleiss == estimate_dh(sums(sample_of(counts := counted(data))), counts.categories).fleiss


@given(ANY_DATA, st.sampled_from(["int", "float", "Fraction", "array"]))
def test_identity_weights_give_the_plain_floats_bit_for_bit(data: Data, kind: str) -> None:
    m = len(data.categories)
    make = {"int": int, "float": float, "Fraction": F, "array": int}[kind]
    w: object = [[make(value) for value in row] for row in identity(m)]
    found, (expected, _) = estimated(data, np.eye(m) if kind == "array" else w, exact=False), plain(data, exact=False)
    assert (found.D, found.E, found.kappa) == (expected.D, expected.E, expected.kappa)
    assert found.d.tobytes() == expected.d.tobytes()
    assert found.phi.tobytes() == influence(expected).tobytes()


def test_identity_weights_bit_for_bit_with_the_most_votes() -> None:
    counts = Tally(["a", "b", "c"])
    counts.update(counts=[[2**31 - 3, 1, 1], [5, 2**30, 2**29], [0, 3, 0]], suggested=["a", "b", "b"])
    expected = terms(sample_of(counts).merged(), parts := parts_of(counts))
    found = weighted_estimate(expected, parts, weights_of(identity(3), 3))
    assert found.d.tobytes() == expected.d.tobytes()
    assert found.phi.tobytes() == influence(expected).tobytes()


@given(TWO_CATEGORIES, st.sampled_from(["linear", "quadratic"]))
def test_two_categories_are_plain(data: Data, weights: str) -> None:
    found, (expected, parts) = estimated(data, weights), plain(data)
    assert found.parts == parts
    assert found.phi.tolist() == influence(expected).tolist()


# Invariances


@given(ANY_DATA, st.sampled_from(["linear", "quadratic"]))
def test_reversed_order_changes_nothing(data: Data, weights: str) -> None:
    turned = Data(data.categories[::-1], data.votes, data.suggested, data.spelling)
    for exact in (True, False):
        found, other = estimated(data, weights, exact), estimated(turned, weights, exact)
        assert (found.D, found.E) == (other.D, other.E)
        assert found.parts.kappa == other.parts.kappa
        assert sorted(found.d) == sorted(other.d)
    if found.parts.kappa is not None:
        assert sorted(estimated(data, weights).phi) == sorted(estimated(turned, weights).phi)


@given(st.data())
def test_renamed_categories_change_nothing_if_weights_move_along(draw: st.DataObject) -> None:
    data = draw.draw(ANY_DATA)
    m = len(data.categories)
    w = draw.draw(sample_weight(m))
    order = draw.draw(st.permutations(range(m)))
    moved = Data(tuple(data.categories[j] for j in order), data.votes, data.suggested, data.spelling)
    found, other = estimated(data, w), estimated(moved, [[w[x][y] for y in order] for x in order])
    assert (found.D, found.E, found.kappa, found.fleiss) == (other.D, other.E, other.kappa, other.fleiss)
    if found.kappa is not None:
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
    found, expected = estimated(data, w), parts_of(counted(united))
    assert (found.D, found.E, found.kappa) == (expected.D, expected.E, expected.kappa)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(4)
    votes = [[random.randint(1, 9) for _ in range(random.randint(2, 7))] for _ in range(300)]
    data = Data(tuple(range(1, 10)), votes, [random.randint(1, 9) for _ in votes])
    whole = estimated(data, "quadratic")
    monkeypatch.setattr(module, "_PAIRS", 50)
    parts = estimated(data, "quadratic")
    assert whole.d.tolist() == parts.d.tolist()
    assert whole.phi.tolist() == parts.phi.tolist()


def test_many_items_are_as_exact_as_few() -> None:
    found, parts = plain(RAGGED)
    items = found.items * 10**17
    sample = replace(found.sample, patterns=replace(found.patterns, items=items), mass=items)
    many = replace(found, sample=sample, weight=items)
    w = weights_of("quadratic", 3)
    assert weighted_estimate(many, parts, w).parts == weighted_estimate(found, parts, w).parts


# Weights


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 11])
def test_named_weights(kind: str, m: int) -> None:
    expected = weights_by_definition(kind, m)
    assert weight_matrix(kind, m, exact=True).tolist() == expected
    found = weight_matrix(kind, m)
    assert found.dtype == np.float64
    assert found.tolist() == [[float(value) for value in row] for row in expected]


def test_one_category_has_one_weight() -> None:
    assert weight_matrix("linear", 1).tolist() == [[1.0]]
    assert weight_matrix([[1]], 1, exact=True).tolist() == [[1]]


def test_own_weights_come_back_as_they_were() -> None:
    tiny = 5e-324  # its square has no float
    w = [[1, 0.3, tiny], [0.3, 1.0, F(1, 3)], [tiny, F(1, 3), True]]
    assert weight_matrix(w, 3).tolist() == [[1, 0.3, tiny], [0.3, 1, 1 / 3], [tiny, 1 / 3, 1]]
    assert weight_matrix(w, 3, exact=True)[1].tolist() == [F(0.3), 1, F(1, 3)]
    for same in (np.array([[1, 0.5], [0.5, 1]]), np.array([[1, F(1, 2)], [F(1, 2), 1]], object), ((1, 0.5), (0.5, 1))):
        assert weight_matrix(same, 2, exact=True).tolist() == [[1, F(1, 2)], [F(1, 2), 1]]
    decimals = [[Decimal(1), Decimal("0.1")], [Decimal("0.1"), Decimal(1)]]
    assert weight_matrix(decimals, 2, exact=True)[0, 1] == F(1, 10)


def test_own_weights_of_any_kind() -> None:
    expected = weight_matrix([[1, 0.1], [0.1, 1]], 2, exact=True).tolist()
    assert weight_matrix((row for row in [[1, 0.1], [0.1, 1]]), 2, exact=True).tolist() == expected
    assert weight_matrix(np.array([[1, 0.1], [0.1, 1]], np.longdouble), 2, exact=True).tolist() == expected
    half = np.array([[1, 0.1], [0.1, 1]], np.float16)
    assert weight_matrix(half, 2, exact=True)[0, 1] == Fraction(float(np.float16(0.1)))


def test_more_categories_than_memory_has_weights_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "room", lambda: memory.Room(2**30, 2**31, "a test"))
    with pytest.raises(
        DataError, match=r"needed for ordinal weights, one for each two of 10,000 categories, and 1,024"
    ):
        dhkappa.dh_kappa([[0, 1], [2, 2]], [0, 2], categories=range(10_000), weights="linear")


def test_weights_without_a_small_unit() -> None:
    w = [[1, 0.3, 5e-324], [0.3, 1, 1 / 3], [5e-324, 1 / 3, 1]]
    as_fractions = [[F(value) for value in row] for row in w]
    exact, found = estimated(RAGGED, w), estimated(RAGGED, w, exact=False)
    expected = by_definition(RAGGED, as_fractions)
    assert (exact.D, exact.E, exact.kappa) == (expected.D, expected.E, expected.kappa)
    assert found.kappa == float(exact.kappa)
    assert found.d.tolist() == [float(d) for d in exact.d]


BAD = {
    "unknown name": ("cubic", 3, r'^ordinal must be "linear", "quadratic" or a matrix of weights: got \'cubic\'\.$'),
    "a number": (2, 3, "^ordinal must be .* or a matrix of weights: got 2"),
    "a list": ([1, 0], 2, r"^ordinal must be .* or a matrix of weights: got \[1, 0\]"),
    "names": (["10", "01"], 2, "^ordinal must be .* or a matrix of weights"),
    "true": (True, 2, "^ordinal must be .* or a matrix of weights: got True"),
    "a vector": (np.ones(3), 3, "^ordinal must be .* or a matrix of weights"),
    "too small": (identity(2), 3, "row and a column for each of the 3 categories, in order: got 2 rows of 2 weights"),
    "not square": ([[1, 0, 0], [0, 1, 0]], 2, "for each of the 2 categories, in order: got 2 rows of 3 weights"),
    "ragged": ([[1, 0], [0]], 2, "got 2 rows of 1, 2 weights"),
    "empty": ([], 2, "for each of the 2 categories, in order: got 0 rows of 0 weights"),
    "not symmetric": (
        [[1, 0.5], [0.25, 1]],
        2,
        r"^ordinal must be symmetric: got 0\.25 in row 2, column 1 and 0\.5 in row 1, column 2",
    ),
    "diagonal": ([[1, 0], [0, 0.5]], 2, r"^ordinal must have 1 on its diagonal.*got 0\.5 in row 2"),
    "negative": ([[1, -0.5], [-0.5, 1]], 2, r"^ordinal must hold weights from 0 to 1.*got -0\.5 in row 1, column 2"),
    "over 1": ([[1, 1.5], [1.5, 1]], 2, r"from 0 to 1.*got 1\.5 in row 1, column 2"),
    "nan": ([[1, math.nan], [math.nan, 1]], 2, "from 0 to 1.*got nan in row 1, column 2"),
    "infinite": (np.array([[1, np.inf], [np.inf, 1]]), 2, "from 0 to 1.*got inf in row 1, column 2"),
    "none": ([[1, None], [None, 1]], 2, "from 0 to 1.*got None in row 1, column 2"),
    "text": ([[1, "0.5"], ["0.5", 1]], 2, "from 0 to 1.*got '0.5' in row 1, column 2"),
    "complex": ([[1, 0.5j], [0.5j, 1]], 2, "from 0 to 1.*got 0.5j in row 1, column 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights(case: str) -> None:
    weights, m, message = BAD[case]
    with pytest.raises(DataError, match=message):
        weights_of(weights, m)


@pytest.mark.parametrize("exact", [True, False])
def test_undefined_where_all_categories_are_the_same(exact: bool) -> None:
    found = estimated(EXAMPLE, np.ones((3, 3)), exact)
    assert (found.D, found.E, found.fleiss, found.parts.kappa) == (1, 1, None, None)
    if exact:
        assert found.kappa is None
        assert found.phi.tolist() == [None] * 6
    else:
        assert math.isnan(found.kappa)
        assert np.isnan(found.phi).all()


# The interval


def basis(kappa: float, se: float, n: int, E: float = 0.0) -> Basis:
    return plain_basis(kappa, E, n, n * (n - 1) * se**2, math.nan, math.nan)


def test_log_interval_by_hand() -> None:
    # t with 24 degrees of freedom at .975 is 2.0638985616280205; delta method: SE of log(1 - kappa) is .1 / .5.
    half = 2.0638985616280205 * 0.1 / 0.5
    low, high = log_interval(basis(0.5, 0.1, 25), 0.05)
    # A logarithm, an exponential and a quantile, each good to some ulp.
    assert low == pytest.approx(1 - 0.5 * math.exp(half), abs=1e-14)
    assert high == pytest.approx(1 - 0.5 * math.exp(-half), abs=1e-14)


@pytest.mark.parametrize(("kappa", "se"), [(0.999, 0.5), (-1.5, 1.0), (0.5, 1e6), (1 - 1e-12, 0.1)])
def test_log_interval_stays_below_one(kappa: float, se: float) -> None:
    low, high = log_interval(basis(kappa, se, 10), 0.05)
    assert -math.inf < low < kappa < high <= 1
    wider = log_interval(basis(kappa, se, 10), 0.01)
    assert wider[0] <= low
    assert high <= wider[1]


def test_log_interval_of_a_flawless_sample() -> None:
    low, high = log_interval(basis(1.0, 0.0, 30), 0.05)
    assert (low, high) == (1 - 2 * (1 - 0.025 ** (1 / 30)), 1.0)


def ordinal_counts(rng: np.random.Generator, n: int, step: float) -> Tally:
    """Five ordered categories: votes and labels stray from the truth by one step, with this probability."""
    truth = rng.integers(0, 5, n)

    stray = rng.choice([-1, 0, 1], (n, 4), p=[step / 2, 1 - step, step / 2])
    drawn = np.clip(truth[:, None] + stray, 0, 4)
    return tally(drawn[:, :3], drawn[:, 3], categories=range(5))


def test_coverage_of_the_log_interval() -> None:
    rng = np.random.default_rng(11)
    w = weights_of("linear", 5)
    many = ordinal_counts(rng, 10**6, 0.3)
    known = terms(sample_of(many).merged(), p := parts_of(many))
    truth = float(weighted_estimate(known, p, w).kappa)  # its own error is some .0003
    sets, covered = 600, 0
    for _ in range(sets):
        counts = ordinal_counts(rng, 100, 0.3)
        found_terms = terms(sample_of(counts).merged(), parts := parts_of(counts))
        found = weighted_estimate(found_terms, parts, w)
        se = standard_error(sum_of_squares(found.phi, found_terms.items), 100)
        low, high = log_interval(basis(found.kappa, se, 100, found.E), 0.05)
        covered += low <= truth <= high
    # Three standard deviations of a share of 600 at .95 are .027, and the interval itself may be off by some .01.
    assert covered / sets == pytest.approx(0.95, abs=0.037)
