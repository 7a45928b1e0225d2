"""Bootstrap against full enumeration, scipy and influence values; percentile and BCa intervals."""

import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from scipy import stats
from scipy.special import ndtr, ndtri

import dhkappa
import oracle
from dhkappa import Bootstrap, Tally
from dhkappa.resources import Progress
from dhkappa.stats import bootstrap as module
from dhkappa.stats.bootstrap import bca_interval, bootstrap, percentile_interval
from dhkappa.stats.influence import Terms, influence, sum_of_squares
from exact import dense, example, float_terms
from expect import expect_error
from strategies import Data, complete, from_counts, ragged

Floats = npt.NDArray[np.float64]

ROOM = 64 * 2**20
FIVE = from_counts("300/1 210/1 210/1 030/2 111/3")  # four patterns; 300/1 five times has no kappa, nor has 030/2
B = 20_000


def terms_of(tally: Tally) -> Terms:
    return float_terms(dhkappa.dh_kappa(tally))


def tally_of(data: Data) -> Tally:
    return dhkappa.tally(data.object_votes, data.written_suggested, categories=data.written_categories)


def simulated(n: int, m: int = 4, N: int = 3, accuracy: float = 0.8, seed: int = 1) -> tuple[Any, Any]:
    """Votes (n, N) and labels (n,) in codes 0..m-1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(m, size=n)

    def answers(shape: tuple[int, ...], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.where(rng.random(shape) < accuracy, right, rng.integers(m, size=shape))

    return answers((n, N), truth[:, None]), answers((n,), truth)


def times(tally: Tally, doublings: int) -> Tally:
    """The same items 2^doublings times."""
    for _ in range(doublings):
        tally = tally + tally
    return tally


def kappas_of_draws(of: Terms, draws: npt.NDArray[Any]) -> Floats:
    """Kappas, where defined, of replicates in which each pattern turns up so often: (K, replicates) draws."""
    adding, m = module._adding(of, np.arange(len(of.items)))
    return module._kappas(adding @ draws.astype(np.float64), m)


class ByItems:
    """Kappa of resampled items from (n, m) arrays of the items, as scipy.stats.bootstrap wants it."""

    def __init__(self, votes: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> None:
        m, N = int(max(votes.max(), labels.max())) + 1, votes.shape[1]
        counts = (votes[:, :, None] == np.arange(m)).sum(axis=1)
        agreeing = counts * (counts - 1) / (N * (N - 1))
        self.n = len(labels)
        self.c, self.q = counts / N, (labels[:, None] == np.arange(m)).astype(float)
        self.d = 2 * (agreeing * self.q).sum(axis=1) - agreeing.sum(axis=1)

    def __call__(self, index: npt.NDArray[np.int64], axis: int = -1) -> Floats:
        assert axis in (-1, index.ndim - 1)
        C, L, D = self.c[index].mean(axis=-2), self.q[index].mean(axis=-2), self.d[index].mean(axis=-1)
        E = (C**2 * (2 * L - 1)).sum(axis=-1)
        kappa: Floats = (D - E) / (1 - E)
        return kappa

    def scipy(self, method: str, seed: int) -> Any:
        return stats.bootstrap(
            (np.arange(self.n),), self, n_resamples=B, batch=500, method=method, rng=np.random.default_rng(seed)
        )


def exact_distribution(data: Data) -> dict[Fraction | None, Fraction]:
    """The probability of each kappa over all n^n ways to draw n items; None where it is undefined."""
    n = len(data.votes)
    known: dict[tuple[int, ...], Fraction | None] = {}
    found: Counter[Fraction | None] = Counter()
    for drawn in product(range(n), repeat=n):
        key = tuple(sorted(drawn))
        if key not in known:
            sample = data.take(key)
            known[key] = oracle.dh(sample.votes, sample.suggested, data.categories).kappa
        found[known[key]] += 1
    return {kappa: Fraction(ways, n**n) for kappa, ways in found.items()}


def test_distribution_over_patterns_equals_all_resamples_of_five_items() -> None:
    of, n = terms_of(tally_of(FIVE)), 5
    items = of.items.tolist()
    rows = [next(i for i in range(n) if pattern_of(FIVE, i) == shape) for shape in patterns_of(of, FIVE)]
    found: dict[Fraction | None, Fraction] = {}
    for draw in product(range(n + 1), repeat=len(items)):
        if sum(draw) != n:
            continue
        ways = math.factorial(n) // math.prod(map(math.factorial, draw))
        chance = ways * math.prod(Fraction(k, n) ** x for k, x in zip(items, draw, strict=True))
        sample = FIVE.take([row for row, x in zip(rows, draw, strict=True) for _ in range(x)])
        kappa = oracle.dh(sample.votes, sample.suggested, FIVE.categories).kappa
        found[kappa] = found.get(kappa, Fraction(0)) + chance
        ours = kappas_of_draws(of, np.array(draw)[:, None]).tolist()
        # a quotient of two sums of at most 8 terms, each rounded: a few units in the last place
        assert ours == ([] if kappa is None else [pytest.approx(float(kappa), rel=0, abs=1e-15)])
    assert found == exact_distribution(FIVE)
    assert found[None] == Fraction(2, 5**5)


def pattern_of(data: Data, i: int) -> tuple[Any, ...]:
    return (data.suggested[i], *data.counts[i].tolist())


def patterns_of(of: Terms, data: Data) -> list[tuple[Any, ...]]:
    counts = np.rint(dense(of, of.c) * 3).astype(int)
    return [(data.categories[label], *row) for label, row in zip(of.suggested.tolist(), counts.tolist(), strict=True)]


@pytest.fixture(params=["multinomial", "item by item"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to draw, whatever the size of the data."""
    by_items = request.param == "item by item"
    monkeypatch.setattr(module, "_MANY_PATTERNS", 0 if by_items else 10**9)
    monkeypatch.setattr(module, "_FEW_ITEMS_PER_PATTERN", 10**9)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_sampled_frequencies_follow_the_enumeration() -> None:
    exact = exact_distribution(FIVE)
    drawn = bootstrap(terms_of(tally_of(FIVE)), n_resamples=B, rng=11)
    defined = sorted(kappa for kappa in exact if kappa is not None)
    points = np.array([float(kappa) for kappa in defined])
    nearest = np.abs(drawn.values[:, None] - points).argmin(axis=1)
    assert np.abs(drawn.values - points[nearest]).max() < 1e-14  # rounding; the points are 4e-4 apart or more
    observed = np.append(np.bincount(nearest, minlength=points.size), drawn.undefined)
    expected = np.array([float(exact[kappa]) for kappa in [*defined, None]]) * B
    assert expected.min() > 5  # as the chi-square approximation needs
    # The seed is fixed; a right sampler fails one seed in a thousand.
    assert stats.chisquare(observed, expected).pvalue > 1e-3


@given(ragged() | complete())
def test_a_draw_of_the_items_themselves_has_the_oracles_kappa(data: Data) -> None:
    kappa = oracle.dh(data.votes, data.suggested, data.categories).kappa
    tally = tally_of(data)
    if kappa is None:
        return
    of = terms_of(tally)
    # 1 - kappa is at most 27/13, from sums of some 40 rounded terms
    assert kappas_of_draws(of, of.items[:, None]).tolist() == [pytest.approx(float(kappa), rel=0, abs=1e-13)]


def test_kappa_near_1_keeps_its_digits_at_a_million_million_items() -> None:
    base = times(tally_of(from_counts("30/1 30/1 30/1 03/2")), 38)
    tally = base + tally_of(from_counts("21/1 21/1 12/2"))
    of, parts = terms_of(tally), dhkappa.dh_kappa(tally).parts
    assert parts is not None
    assert parts.kappa is not None
    assert of.n > 10**12
    (value,) = kappas_of_draws(of, of.items[:, None]).tolist()
    assert 0 < 1 - parts.kappa < Fraction(1, 10**11)
    # what is left is the last place of a number just below 1
    assert abs(Fraction(value) - parts.kappa) <= Fraction(2, 2**53)
    skewed = times(tally_of(from_counts("30/1")), 40) + tally_of(from_counts("03/2 21/1 30/2"))
    of, parts = terms_of(skewed), dhkappa.dh_kappa(skewed).parts
    assert parts is not None
    assert parts.kappa is not None
    # E is 1 up to 1e-11 here, and 1 - E still has its digits
    assert kappas_of_draws(of, of.items[:, None]).tolist() == [pytest.approx(float(parts.kappa), rel=1e-13)]


@pytest.fixture(scope="module")
def sixty() -> tuple[ByItems, Terms]:
    votes, labels = simulated(60)
    return ByItems(votes, labels), terms_of(dhkappa.tally(votes, labels))


def test_mean_and_sd_against_scipy(sixty: tuple[ByItems, Terms]) -> None:
    by_items, of = sixty
    ours, theirs = bootstrap(of, n_resamples=B, rng=5), by_items.scipy("percentile", 6).bootstrap_distribution
    # Differences of two independent Monte Carlo means and sds: 4 of their standard errors.
    assert abs(ours.mean - theirs.mean()) < 4 * ours.sd * math.sqrt(2 / B)
    tails = stats.kurtosis(theirs, fisher=False)
    assert abs(ours.sd - theirs.std(ddof=1)) < 4 * ours.sd * math.sqrt((tails - 1) / 4 * 2 / B)
    # and the whole distribution, by Kolmogorov and Smirnov; the seeds are fixed
    assert stats.ks_2samp(ours.values, theirs).pvalue > 1e-3


def test_sd_is_close_to_the_standard_error_by_influence() -> None:
    of = terms_of(dhkappa.tally(*simulated(500)))
    se = math.sqrt(sum_of_squares(influence(of), of.items) / (of.n * (of.n - 1)))
    # Monte Carlo error of an sd is 1/sqrt(2B) = 0.5%, the two differ by a further term of order 1/n = 0.2%
    assert bootstrap(of, n_resamples=B, rng=2).sd == pytest.approx(se, rel=0.02)


@pytest.mark.parametrize("confidence_level", [0.8, 0.95, 0.99])
def test_intervals_of_the_same_replicates_equal_scipys(sixty: tuple[ByItems, Terms], confidence_level: float) -> None:
    by_items, _ = sixty
    theirs = stats.bootstrap(
        (np.arange(60),), by_items, n_resamples=B, batch=500, method="BCa", confidence_level=confidence_level, rng=9
    )
    values = theirs.bootstrap_distribution
    assert abs((values < by_items(np.arange(60))).mean() - 0.5) > 1e-3  # else no bias would be corrected
    plain = stats.bootstrap(
        (np.arange(60),),
        by_items,
        n_resamples=0,
        bootstrap_result=theirs,
        method="percentile",
        confidence_level=confidence_level,
    ).confidence_interval
    ours = percentile_interval(values, 1 - confidence_level)
    assert (ours.low, ours.high) == pytest.approx(tuple(plain), rel=1e-12)  # alpha/2 in another rounding
    # scipy takes the acceleration from the jackknife; given its values in place of phi, the limits are the same.
    everything = np.arange(60)
    without = np.array([by_items(np.delete(everything, i)) for i in everything])
    phi = 59 * (without.mean() - without)
    bca = bca_interval(values, float(by_items(everything)), phi, np.ones(60, np.int64), 1 - confidence_level)
    assert (bca.low, bca.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-9)
    assert (bca.confidence_level, bca.method, bca.reason) == (confidence_level, "bca", None)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_intervals_against_scipy(sixty: tuple[ByItems, Terms], method: str) -> None:
    by_items, of = sixty
    drawn, theirs = bootstrap(of, n_resamples=B, rng=7), by_items.scipy(method, 8).confidence_interval
    if method == "BCa":
        ours = bca_interval(drawn.values, drawn.kappa, influence(of), of.items, 0.05)
    else:
        ours = percentile_interval(drawn.values, 0.05)
    # Standard error of a 2.5% quantile over B draws with about a normal density, twice independently. BCa adds the
    # error of z_0, about sqrt(2 pi / 4B) sd, twice over, and another acceleration: the jackknife's values are the
    # influence to order 1/n (-.02668 and -.02664 here), which moves a limit by less than 0.001 sd.
    error = drawn.sd * math.sqrt(2 * 0.025 * 0.975 / B) / stats.norm.pdf(1.96)
    slack = 4 * error if method == "percentile" else 4 * math.hypot(error, 2 * math.sqrt(math.pi / B) * drawn.sd)
    slack += 0 if method == "percentile" else 0.001 * drawn.sd
    assert abs(ours.low - theirs.low) < slack
    assert abs(ours.high - theirs.high) < slack


def test_seeds_reproduce() -> None:
    of = terms_of(tally_of(FIVE))
    first = bootstrap(of, n_resamples=500, rng=3)
    assert np.array_equal(first.values, bootstrap(of, n_resamples=500, rng=3).values)
    assert np.array_equal(first.values, bootstrap(of, n_resamples=500, rng=np.random.default_rng(3)).values)
    assert not np.array_equal(first.values, bootstrap(of, n_resamples=500, rng=4).values)
    assert not np.array_equal(bootstrap(of, n_resamples=500).values, bootstrap(of, n_resamples=500).values)
    generator = np.random.default_rng(3)
    assert not np.array_equal(
        bootstrap(of, n_resamples=500, rng=generator).values, bootstrap(of, n_resamples=500, rng=generator).values
    )
    assert np.array_equal(
        first.values[:100], bootstrap(of, n_resamples=100, rng=3).values[:100]
    )  # none of these is undefined


@pytest.mark.usefixtures("way")
def test_values_do_not_depend_on_rows_partitions_or_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, labels = simulated(400, m=12)  # numpy adds fewer than 8 numbers in one order only
    whole = bootstrap(terms_of(dhkappa.tally(votes, labels)), n_resamples=301, rng=1).values
    shuffled = np.random.default_rng(2).permutation(400)
    parts = [dhkappa.tally(votes[some], labels[some]) for some in np.array_split(shuffled, 7)]
    of = terms_of(sum(parts[1:], parts[0]))
    assert np.array_equal(whole, bootstrap(of, n_resamples=301, rng=1).values)
    for least in (1, 20_000, 10**6):  # blocks of one replicate, of a few with one left over, of many
        monkeypatch.setattr(module, "_BLOCK_BYTES", least)
        assert np.array_equal(whole, bootstrap(of, n_resamples=301, rng=1).values)


def test_undefined_replicates_are_left_out_and_counted() -> None:
    drawn = bootstrap(terms_of(tally_of(from_counts("30/1 03/2"))), n_resamples=B, rng=1)
    assert drawn.values.size + drawn.undefined == B == drawn.n_resamples
    assert (drawn.values == 1).all()
    # half of the pairs are one item twice: 4 standard deviations of a binomial
    assert abs(drawn.undefined - B / 2) < 4 * math.sqrt(B / 4)
    assert f"undefined={drawn.undefined}" in repr(drawn)


def test_one_item_gives_the_same_kappa_every_time() -> None:
    drawn = bootstrap(terms_of(tally_of(from_counts("21/1"))), n_resamples=50, rng=1)
    assert (drawn.undefined, drawn.sd) == (0, 0)
    # C = (2/3, 1/3), L = (1, 0): E = 1/3, and so is D = 1/3: kappa is 0 up to rounding
    assert drawn.values == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("doublings", [21, 31, 51])
def test_a_thousand_million_items_and_more(doublings: int) -> None:
    of = terms_of(times(dhkappa.tally(*simulated(500)), doublings))
    assert of.n == 500 * 2**doublings >= 10**9
    drawn = bootstrap(of, n_resamples=B, rng=3)
    se = math.sqrt(sum_of_squares(influence(of), of.items) / (of.n * (of.n - 1)))
    # Once 1e-16, the rounding of a kappa, is no longer small beside the standard error, the sd holds it too.
    assert drawn.sd == pytest.approx(se, rel=4 / math.sqrt(2 * B), abs=1e-16)
    assert drawn.mean == pytest.approx(drawn.kappa, rel=0, abs=4 * se / math.sqrt(B) + 1e-15)


@pytest.mark.parametrize("n", [10**12, 10**13])  # multinomial, and Poisson
def test_a_pattern_of_one_item_among_a_million_million_turns_up_once_on_average(n: int) -> None:
    items = np.array([1, 1, 3, n - 5], np.int64)
    draws = module._draw(items, B, np.random.default_rng(1))
    assert (draws.sum(axis=0) == n).all()
    # Poisson but for 1e-12: 4 standard errors of its mean and variance
    for row, mean in zip(draws[:3], (1, 1, 3), strict=True):
        assert abs(row.mean() - mean) < 4 * math.sqrt(mean / B)
        assert abs(row.var() - mean) < 4 * math.sqrt((mean + 2 * mean**2) / B)


def test_rare_patterns_among_2_to_the_60_items_are_not_lost() -> None:
    rare = from_counts("03/2 03/2 03/2 21/1 30/2 30/2")
    of = terms_of(times(tally_of(from_counts("30/1")), 60) + tally_of(rare))
    drawn = bootstrap(of, n_resamples=B, rng=1)
    # None of the six turns up with probability e^-6, and then E is 1: 4 standard deviations of a Poisson number.
    expected = B * math.exp(-6)
    assert abs(drawn.undefined - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize(
    ("n", "m", "N", "repeats", "least"),
    [(150_000, 50, 6, 0, 100_000), (150_000, 50, 6, 4, 100_000), (20_000, 1_000, 5, 0, 10_000)],
    ids=["many patterns", "many patterns and items", "many categories"],
)
def test_memory_is_bounded(n: int, m: int, N: int, repeats: int, least: int) -> None:
    of = terms_of(times(dhkappa.tally(*simulated(n, m, N, accuracy=0.5)), repeats))
    assert len(of.items) >= least
    bootstrap(of, n_resamples=1, rng=1)  # imports
    tracemalloc.start()
    try:
        bootstrap(of, n_resamples=30 if n > 10**5 else 1_000, rng=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < ROOM


def test_replicates_do_not_add_to_memory_but_for_their_kappas() -> None:
    of = terms_of(dhkappa.tally(*simulated(1_000, 3)))
    peaks = []
    for n in (60_000, 180_000):  # several blocks each
        tracemalloc.start()
        try:
            bootstrap(of, n_resamples=n, rng=1)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert max(peaks) < ROOM
    assert peaks[1] - peaks[0] < 120_000 * 8 + 10**5


def test_display() -> None:
    drawn = Bootstrap(np.array([0.25, 0.5, 0.75]), 1, 4, 0.5)
    assert (drawn.mean, drawn.sd) == (0.5, 0.25)
    assert repr(drawn) == "Bootstrap(n_resamples=4, kappa=0.5000, mean=0.5000, sd=0.2500, undefined=1)"
    assert drawn._repr_html_() == f"<p>{drawn!r}</p>"
    empty = Bootstrap(np.array([]), 4, 4, math.nan)
    assert math.isnan(empty.mean)
    assert math.isnan(empty.sd)
    with pytest.raises(AttributeError):
        drawn.n_resamples = 5  # type: ignore[misc]
    values = bootstrap(terms_of(tally_of(FIVE)), n_resamples=5, rng=1).values
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 0


SPREAD = np.linspace(0.2, 0.8, 61)
SKEWED, EACH = np.array([-2.0, 1.0]), np.array([1, 2], np.int64)
OUTSIDE = "Kappa lies outside all of its replicates, so their bias cannot be corrected."


def test_without_bias_and_skew_bca_is_the_percentile_interval() -> None:
    plain = percentile_interval(SPREAD, 0.1)
    even = bca_interval(SPREAD, 0.5, np.array([-1.0, 1.0]), np.array([3, 3], np.int64), 0.1)
    assert (even.low, even.high) == pytest.approx((plain.low, plain.high), rel=1e-12)  # Phi and its inverse round


def test_rounding_of_a_replicate_equal_to_kappa_is_a_tie() -> None:
    # half of what equals kappa counts as below, whichever way the last place went
    for nudge in (-2e-16, 0, 2e-16):
        values = np.array([0.1, 0.5 + nudge, 0.5 + nudge, 0.9])
        assert module._share_below(values, 0.5) == 0.5


@pytest.mark.parametrize(
    ("values", "kappa", "phi", "reason"),
    [
        ([], 0.5, SKEWED, "No replicate has a kappa."),
        ([1.0, 1.0, 1.0], 1.0, SKEWED, "All replicates are equal."),
        ([0.3, 0.3 + 1e-16, 0.3], 0.3, SKEWED, "All replicates are equal."),
        ([-0.9, -0.9 + 1e-13], -0.9, SKEWED, "All replicates are equal."),
        (SPREAD, 0.9, SKEWED, OUTSIDE),
        (SPREAD, 0.1, SKEWED, OUTSIDE),
        (SPREAD, 0.5, 0 * SKEWED, "No item has any influence on kappa, so the acceleration is undefined."),
    ],
)
def test_no_interval_has_a_reason(values: Any, kappa: float, phi: Floats, reason: str) -> None:
    found = bca_interval(np.array(values), kappa, phi, EACH, 0.05)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.method, found.confidence_level, found.reason) == ("bca", 0.95, reason)
    plain = percentile_interval(np.array(values), 0.05)
    assert plain.reason == (None if values is SPREAD else reason)
    assert math.isnan(plain.low) == (plain.reason is not None)


def test_replicates_near_1_may_differ_by_less() -> None:
    values = 1 - np.array([1e-14, 2e-14, 3e-14])
    assert percentile_interval(values, 0.5).reason is None
    assert module._share_below(values, values[1]) == 0.5


def test_past_the_pole_of_the_acceleration_the_limit_is_the_last_replicate() -> None:
    # One odd item: a = (phi^3 sums) / (6 ...) is near its bound of 1/6, and a (z_0 + z) passes 1.
    phi, items = np.array([1.0, -1e-6]), np.array([1, 10**6], np.int64)
    values = np.linspace(0, 1, 100_001)
    found = bca_interval(values, 0.9999, phi, items, 0.002)
    assert found.high == 1
    assert found.reason is None
    mirrored = bca_interval(1 - values, 0.0001, -phi, items, 0.002)
    assert mirrored.low == 0


@pytest.mark.parametrize("n", [0, -1, 2.5, "many", None, True, 10**8 + 1, math.nan])
def test_invalid_n_resamples(n: Any) -> None:
    with expect_error("invalid-n-resamples", "n_resamples"):
        example().bootstrap(n)


@pytest.mark.parametrize("rng", [-1, 1.5, "seed"])
def test_invalid_rng(rng: Any) -> None:
    with expect_error("invalid-rng", "rng"):
        example().bootstrap(5, rng=rng)


def test_default_number_of_replicates() -> None:
    kappa = example()
    found = kappa.bootstrap(rng=1)
    assert found.n_resamples == 9_999
    assert bootstrap(float_terms(kappa), rng=1).values.tolist() == found.values.tolist()
    assert kappa.confidence_interval(method="bootstrap", rng=1).low == percentile_interval(found.values, 1 - 0.95).low


def test_one_replicate() -> None:
    assert example().bootstrap(n_resamples=1, rng=1).values.shape == (1,)


def test_mean_and_sd_of_few_replicates() -> None:
    none, one, two = (Bootstrap(np.array(values), 0, 2, 0.5) for values in ([], [0.25], [0.25, 0.75]))
    assert (math.isnan(none.mean), math.isnan(none.sd), math.isnan(one.sd)) == (True, True, True)
    assert (one.mean, two.mean) == (0.25, 0.5)
    assert two.sd == pytest.approx(math.sqrt(1 / 8), rel=1e-15)


def test_items_drawn_one_by_one() -> None:
    """If patterns are nearly as many as items; the sd of kappas is a standard error, known to 10% from 50."""
    data = dhkappa.simulate(400, categories=range(30), accuracy=0.6, rng=4)
    kappa = dhkappa.dh_kappa(data.votes, data.suggested["labeler"])
    assert len(kappa.sample.patterns) > 256
    found = kappa.bootstrap(50, rng=1)
    assert found.values.shape == (50,)
    assert found.mean == pytest.approx(kappa.value, abs=kappa.se)
    assert found.sd == pytest.approx(kappa.se, rel=0.4)


FOUR = np.array([0.1, 0.2, 0.3, 0.4])


def test_percentiles_by_hand() -> None:
    found = percentile_interval(FOUR, 0.5)
    assert tuple(found) == pytest.approx((0.175, 0.325), rel=1e-12)
    assert (found.method, found.confidence_level, found.reason) == ("bootstrap", 0.5, None)


def test_bca_by_hand() -> None:
    """Of phi = 1, 1, -2: a = (1 + 1 - 8) / (6 * 6^1.5); of four replicates one is below, one tied counts half."""
    found = bca_interval(FOUR, 0.2, np.array([1.0, -2.0]), np.array([2, 1]), 0.5)
    a, bias = -6 / (6 * 6**1.5), float(ndtri(1.5 / 4))
    moved = [bias + float(ndtri(p)) for p in (0.25, 0.75)]
    places = [float(ndtr(bias + z / (1 - a * z))) for z in moved]
    assert tuple(found) == pytest.approx([0.1 + 0.3 * place for place in places], rel=1e-12)
    assert (found.method, found.confidence_level) == ("bca", 0.5)


def test_strata_of_equal_items_never_vary() -> None:
    """Each stratum is redrawn from its own items, which are all the same."""
    votes = [["a", "a"]] * 3 + [["a", "b"]] * 5 + [["b", "b"]] * 2
    kappa = dhkappa.dh_kappa(votes, list("aaabbbbbbb"), strata=list("xxxyyyyyzz"))
    found = kappa.bootstrap(50, rng=1)
    assert found.values.tolist() == pytest.approx([kappa.value] * 50, rel=1e-12)


def test_items_that_are_all_different() -> None:
    """Of each item one pair in three agrees, so D is 1/3 in every replicate, and E = sum C (2 L - 1) C is near 0."""
    found = dhkappa.dh_kappa([[i, i, i + 1] for i in range(300)], list(range(300))).bootstrap(30, rng=1)
    assert (found.values.size, found.undefined) == (30, 0)
    assert found.values.min() > 1 / 3
    assert found.values.max() < 0.35  # sum C^2 is 1/300 on 300 categories, and about twice that redrawn


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_only_if_asked(monkeypatch: pytest.MonkeyPatch, progress: bool) -> None:
    asked = []

    def shown(total: int, what: str, show: bool) -> Progress:
        asked.append((total, what, show))
        return Progress(total, what, show)

    monkeypatch.setattr(module, "Progress", shown)
    example().bootstrap(20, rng=1, progress=progress)
    assert asked == [(20, "bootstrap", progress)]
