"""Sample: eligible items, weights, strata and pools."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dhkappa import DataError, Excluded, Kappa, Note, dh_kappa, tally
from dhkappa.core import ItemWeights
from dhkappa.core.grouping import Entries, LabeledPatterns, Patterns
from dhkappa.inputs import arrays
from dhkappa.stats.kappa import estimate_dh
from dhkappa.stats.sample import (
    Stratum,
    category_shares,
    check_choice,
    check_integer,
    check_level,
    check_n_resamples,
    check_real,
    generator,
    own_pool,
    sample_of,
)
from exact import EXAMPLE, STRATA, example
from expect import expect_error

F = Fraction
WEIGHTS = [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("code", "design"),
    [
        ("pool-without-strata", {"pool": {"x": 10}}),
        ("pool-with-weights", {"pool": 10, "sample_weight": WEIGHTS}),
        ("pool-not-by-stratum", {"strata": STRATA, "pool": 10}),
        ("pool-not-by-stratum", {"strata": STRATA, "pool": [1, 2]}),
        ("pool-with-weights", {"strata": STRATA, "pool": {"x": 9, "y": 9}, "sample_weight": WEIGHTS}),
        ("stratum-one-item", {"strata": ["x"] * 5 + ["y"]}),
        ("stratum-one-item", {"strata": ["x"] * 5 + ["y"], "pool": {"x": 9, "y": 2}}),
        ("pool-unknown-stratum", {"strata": STRATA, "pool": {"x": 9, "y": 9, "z": 3}}),
        ("pool-unknown-stratum", {"strata": STRATA, "pool": {"x": 9, "y": 9, "z": 3, "u": 1, "v": 0, "w": 1}}),
        ("invalid-pool-size", {"strata": STRATA, "pool": {"x": 9, "y": 9, "z": True}}),
        ("invalid-pool-size", {"pool": 7.5}),
        ("invalid-pool-size", {"pool": "7"}),
        ("invalid-pool-size", {"pool": -1}),
        ("invalid-pool-size", {"strata": STRATA, "pool": {"x": 9, "y": None}}),
        ("pool-too-small", {"pool": 5}),
        ("pool-too-small", {"strata": STRATA, "pool": {"x": 9, "y": 2}}),
        ("pool-stratum-missing", {"strata": STRATA, "pool": {}}),
        ("pool-stratum-missing", {"strata": STRATA, "pool": {"x": 9}}),
    ],
)
def test_designs_that_do_not_fit(code: str, design: dict[str, Any]) -> None:
    with expect_error(code, "strata" if code.startswith("stratum") else "pool"):
        example(**design)


@pytest.mark.parametrize("pool", [None, {"x": 3, "y": 3}])
def test_a_stratum_without_eligible_items(pool: Any) -> None:
    with expect_error("stratum-empty", "strata"):
        dh_kappa([[1, 1], [1, 1], [2]], [1, 1, 1], strata=["x", "x", "y"], pool=pool)


def test_messages_name_a_few_strata() -> None:
    with pytest.raises(DataError) as error:
        example(strata=STRATA, pool={"x": 9, "y": 9, "z": 3, "u": 1, "v": 0, "w": 1, "t": 1})
    assert "4 strata" in error.value.message
    assert "'z', 'u', 'w', ..." in error.value.message
    with pytest.raises(DataError, match="Strata in pool: none"):
        example(strata=STRATA, pool={})


def test_weights_of_items() -> None:
    """Mass is the number of pool items per sampled item, 9/3 and 30/3, in least integers."""
    sample = example(strata=STRATA, pool={"x": 9, "y": 30.0, "z": 0}).estimate.sample
    assert sample.strata == (Stratum("x", 3, 9), Stratum("y", 3, 30))
    assert sorted((sample.mass / sample.patterns.items).tolist()) == [3, 3, 3, 10, 10, 10]
    assert [part.fraction for part in sample.strata] == [F(1, 3), F(1, 10)]
    assert sample.n_effective == pytest.approx(39**2 / (3 * 9 + 3 * 100))
    twice = dh_kappa([[1, 1], [1, 1], [2, 2], [1, 2]], [1, 1, 2, 2], sample_weight=[1, 1, 3, 5]).estimate.sample
    assert len(twice.patterns) == 3
    assert twice.n_effective == pytest.approx(10**2 / (1 + 1 + 9 + 25))
    assert example(sample_weight=[2, 4, 6, 8, 10, 12.0]).estimate.sample.mass.sum() == 21
    assert not example(strata=STRATA, pool={"x": 9, "y": 9}).estimate.sample.weighted
    for heavy in (2**61, 2**65):
        huge = example(sample_weight=[1, 1, 1, 1, 1, float(heavy)]).estimate.sample
        assert sorted(huge.mass.tolist()) == [1, 1, 1, 1, 1, heavy]


def test_weights_stay_with_their_items() -> None:
    counts = tally([[1], *EXAMPLE.votes], [1, *EXAMPLE.suggested], sample_weight=[7, *WEIGHTS])
    assert sorted(dh_kappa(counts).estimate.sample.mass.tolist()) == WEIGHTS
    assert dh_kappa(counts).exact == example(sample_weight=WEIGHTS).exact


def test_pool_sizes_from_a_series() -> None:
    class Sizes:
        def to_dict(self) -> dict[str, np.int64]:
            return {"x": np.int64(9), "y": np.int64(30)}

    assert own_pool(Sizes()) == {"x": 9, "y": 30}
    assert own_pool(np.float64(30)) == 30


def test_excluded_items() -> None:
    votes, labels = [*EXAMPLE.votes, [1, 1], [1]], [*EXAMPLE.suggested, None, 1]
    kappa = dh_kappa(votes, labels, sample_weight=[1, 2, 3, 0, 5, 6, 7, 8])
    assert sorted(kappa.estimate.sample.mass.tolist()) == [1, 2, 3, 5, 6]
    assert kappa.excluded == Excluded(one_vote=1, no_label=1, no_weight=1)
    assert kappa.excluded.to_dict() == {"no_votes": 0, "one_vote": 1, "no_label": 1, "no_weight": 1}
    assert kappa.excluded.why() == "1 with one vote, 1 with no suggested label, 1 with weight 0"
    assert Excluded(no_votes=1234).why() == "they have no votes"
    assert Excluded(one_vote=1).why() == "it has one vote"
    assert Excluded(1, 2, 3, 4).total == 10


def test_rows_kept_by_a_sample() -> None:
    votes = Patterns(
        suggested=np.array([0, 0, -1, 1], np.int32),
        entries=Entries(np.array([0, 1, 2, 3, 4]), code=np.array([0, 0, 0, 1]), votes=np.array([2, 1, 2, 3])),
        items=np.array([1, 5, 3, 2]),
    )
    sample = sample_of(LabeledPatterns((1, 2), votes, source_notes=("From a file.",)))
    assert sample.kept is not None
    assert sample.kept.tolist() == [0, 3]
    assert (sample.n, sample.excluded) == (3, Excluded(one_vote=5, no_label=3))
    assert sample.source_notes == ("From a file.",)
    unlabeled = sample_of(LabeledPatterns((1, 2), votes), labeled=False)
    assert (unlabeled.n, unlabeled.excluded) == (6, Excluded(one_vote=5))
    assert Note("source", "From a file.") in Kappa(estimate_dh(sample)).notes


# Five patterns of one category each: 2 votes, 2 votes, 1 vote, 3 votes, and 2 votes without a label.
ROWS = Patterns(
    suggested=np.array([0, 1, 0, 1, -1], np.int32),
    entries=Entries(np.arange(6), code=np.array([0, 1, 0, 1, 0]), votes=np.array([2, 2, 1, 3, 2])),
    items=np.array([3, 1, 1, 4, 1]),
)
ITEM_ROW = np.array([0, 3, 0, 1, 2, 3, 0, 3, 4, 3])


@pytest.mark.parametrize("large", [4.0, 3e10])
def test_weights_that_differ_within_a_pattern(large: float) -> None:
    weight = np.array([0.1, 2, large, 0, 5, 1e-3, 0.1, 0.25, 7, 9])
    items, stratum = ItemWeights(ITEM_ROW, weight), np.array([1, 0, 0, 0, 0])
    sample = sample_of(LabeledPatterns((1, 2), ROWS, ("x", "y"), stratum, item_weights=items))
    assert sample.excluded == Excluded(one_vote=1, no_label=1, no_weight=1)
    assert (sample.patterns.items.tolist(), sample.patterns.votes.tolist()) == ([3, 4], [2, 3])
    assert (sample.stratum.tolist(), sample.strata) == ([1, 0], (Stratum("x", 4, None), Stratum("y", 3, None)))
    by_row = [[F(0.1), F(large), F(0.1)], [F(2), F(1e-3), F(0.25), F(9)]]
    assert F(*sample.mass.tolist()) == sum(by_row[0]) / sum(by_row[1])
    assert math.gcd(*sample.mass.tolist()) == 1
    scale = F(7) / sum(map(sum, by_row))
    assert sample.powers is not None
    for power, found in zip((2, 3), sample.powers, strict=True):
        assert found == pytest.approx([float(sum((w * scale) ** power for w in row)) for row in by_row], rel=1e-14)
    effective = sum(map(sum, by_row)) ** 2 / sum(w * w for row in by_row for w in row)
    assert sample.n_effective == pytest.approx(float(effective), rel=1e-14)
    single = sample.by_weight()
    assert single.item_weights is None
    assert single.powers is None
    unit = F(int(single.mass.sum())) / sum(map(sum, by_row))
    by_weight = zip(single.stratum.tolist(), single.patterns.items.tolist(), single.mass.tolist(), strict=True)
    rows = [(1, 2, 2 * F(0.1) * unit), (1, 1, F(large) * unit), *((0, 1, w * unit) for w in by_row[1])]
    assert sorted(by_weight) == sorted(rows)
    assert single.by_weight() is single


@pytest.mark.parametrize("weight", [0.3, 0])
def test_equal_weights_within_patterns_are_no_weights(weight: float) -> None:
    items = ItemWeights(ITEM_ROW, np.full(10, weight))
    sample = sample_of(LabeledPatterns((1, 2), ROWS, item_weights=items))
    assert (sample.weighted, sample.item_weights, sample.n) == (False, None, 8 if weight else 0)


def test_large_weights_do_not_overflow() -> None:
    sample = sample_of(LabeledPatterns((1, 2), ROWS, weight=np.array([1, 1, 1, 2.0**61, 1])))
    assert sample.mass.tolist() == [3, 1, 2**63]


def test_designed() -> None:
    designs: list[dict[str, Any]] = [
        {},
        {"strata": STRATA},
        {"pool": 20},
        {"sample_weight": [1, 1, 1, 1, 1, 2]},
        {"sample_weight": [3] * 6},
    ]
    assert [example(**design).estimate.sample.designed for design in designs] == [False, True, True, True, False]


def test_strata_keep_equal_patterns_apart() -> None:
    sample = dh_kappa([[1, 1], [1, 1], [2, 1], [1, 1], [1, 1]], [1] * 5, strata=["x", "x", "x", "y", "y"]).sample
    assert sample.merged() is sample
    assert sorted(sample.stratum.tolist()) == [0, 0, 1]


def test_merged_patterns_are_distinct() -> None:
    sample = dh_kappa([[1, 1], [1, 2], [1, 1], [1, 1], [2]], [1, 1, 1, 2, 1]).estimate.sample
    merged = sample.merged()
    assert sorted(merged.patterns.items.tolist()) == [1, 1, 2]
    assert merged.stratum.tolist() == [0, 0, 0]
    assert not merged.weighted
    assert merged.merged() is merged


def test_merging_adds_up_items_of_equal_patterns() -> None:
    one = np.zeros(4, np.int64)
    entries = Entries(np.arange(5), np.array([0, 1, 0, 1]), one + 2)
    rows = Patterns(one.astype(np.int32), entries, np.array([1, 2, 3, 4]))
    merged = sample_of(LabeledPatterns((1, 2), rows)).merged()
    assert sorted(merged.patterns.items.tolist()) == sorted(merged.mass.tolist()) == [4, 6]
    assert merged.stratum.tolist() == [0, 0]
    assert merged.kept is None


def test_generator() -> None:
    own = np.random.default_rng(3)
    assert generator(own) is own
    assert generator(3).random() == np.random.default_rng(3).random()
    assert generator(None).random() != generator(None).random()
    for rng in (-1, 1.5, "seed"):
        with expect_error("invalid-rng", "rng"):
            generator(rng)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "parameter", "text"),
    [
        (lambda: check_integer("n_items", 0, 1), "n_items", "Number of items must be an integer of at least 1: got 0."),
        (
            lambda: check_integer("min_n_votes", True, 1),
            "min_n_votes",
            "Min n votes must be an integer of at least 1: got True.",
        ),
        (lambda: check_integer("pool", 7.0, 2, 1000), "pool", "Pool must be an integer from 2 to 1,000: got 7.0."),
        (lambda: check_real("missing", "0.5"), "missing", "Missing must be from 0 to 1: got '0.5'."),
        (lambda: check_real("missing", True), "missing", "Missing must be from 0 to 1: got True."),
        (lambda: check_choice("method", 1, ["z"]), "method", "Unknown method 1. Use one of 'z'."),
        (
            lambda: check_choice("method", "e", ["z", "w"], " of x"),
            "method",
            "Unknown method 'e' of x. Use one of 'z', 'w'.",
        ),
        (lambda: check_level(95), "confidence_level", "Pass a probability such as 0.95."),
    ],
)
def test_values_that_are_refused(call: Callable[[], Any], parameter: str, text: str) -> None:
    with pytest.raises(DataError) as error:
        call()
    assert (error.value.parameter, error.value.code) == (parameter, f"invalid-{parameter.replace('_', '-')}")
    assert str(error.value).endswith(text)


def test_numbers_at_the_ends_of_their_range() -> None:
    assert [check_n_resamples(n) for n in (1, np.int64(7), 10**8)] == [1, 7, 10**8]
    assert [check_integer("n", n, 2, 3) for n in (2, 3)] == [2, 3]
    assert [check_real("p", p) for p in (0, 1, F(1, 2))] == [0, 1, 0.5]
    assert [check_level(p) for p in (np.float64(0.9), F(9, 10), 2e-9, 1 - 2e-9)] == [0.9, 0.9, 2e-9, 1 - 2e-9]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        *(lambda n=n: check_n_resamples(n) for n in (0, 10**8 + 1)),
        *(lambda n=n: check_integer("n", n, 2, 3) for n in (1, 4)),
        *(lambda p=p: check_real("p", p) for p in (-0.1, 1.1, math.nan)),
        *(lambda p=p: check_level(p) for p in (0, 1e-9, 1 - 1e-9, 1, math.nan)),
    ],
)
def test_numbers_out_of_their_range(call: Callable[[], Any]) -> None:
    with pytest.raises(DataError, match="must be"):
        call()


@pytest.mark.parametrize(
    ("prevalence", "m", "shares"),
    [
        (None, 4, [1 / 4] * 4),
        ([1, 3], None, [1 / 4, 3 / 4]),
        ((0.5, 0, 0.25), 3, [2 / 3, 0, 1 / 3]),
        ([1e308] * 5, 5, [1 / 5] * 5),
    ],
)
def test_category_shares(prevalence: Any, m: int | None, shares: list[float]) -> None:
    assert category_shares(prevalence, m) == pytest.approx(shares, rel=1e-15)


@pytest.mark.parametrize(
    ("prevalence", "m", "size"),
    [
        ([1, -1], 2, "2 numbers"),
        ([1, math.inf], 2, "2 numbers"),
        ([1, math.nan], 2, "2 numbers"),
        ([0], 1, "1 number"),
        ([1, 2], 3, "3 numbers"),
        (["a"], None, "numbers"),
        ([10**400], None, "numbers"),
        (5, None, "numbers"),
        (None, None, "numbers"),
    ],
)
def test_invalid_category_shares(prevalence: Any, m: int | None, size: str) -> None:
    with pytest.raises(DataError, match=f"^Prevalence must be {size}, one") as error:
        category_shares(prevalence, m)
    assert error.value.parameter == "prevalence"


class TestManyWeights:
    """Weights added up by pattern, from MANY_WEIGHTS items on, against one row per weight."""

    @staticmethod
    def data(n: int = 300) -> tuple[Any, Any, Any, Any]:
        rng = np.random.default_rng(4)
        votes = rng.integers(0, 3, (n, 3)).astype(object)
        votes[rng.random((n, 3)) < 0.2] = None
        weight = rng.choice([0.0, 0.1, 1.0, 1.7], n) * rng.choice([1.0, rng.random()], n)
        return votes, rng.integers(0, 3, n), weight, rng.integers(0, 2, n)

    @pytest.mark.parametrize("strata", [False, True])
    @pytest.mark.parametrize("scale", [1.0, 1e-300, 1e305])
    def test_as_one_row_per_weight(self, monkeypatch: pytest.MonkeyPatch, strata: bool, scale: float) -> None:
        votes, labels, weight, stratum = self.data()
        design = {"sample_weight": weight * scale, **({"strata": stratum} if strata else {})}
        one = dh_kappa(votes, labels, **design)
        monkeypatch.setattr(arrays, "MANY_WEIGHTS", 1)
        other = dh_kappa(votes, labels, **design)
        assert (one.exact, one.excluded, one.n_items) == (other.exact, other.excluded, other.n_items)
        numbers = [[kappa.se, kappa.n_effective, *kappa.confidence_interval()] for kappa in (one, other)]
        np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-12)
        tables = [kappa.by_category() for kappa in (one, other)]
        np.testing.assert_allclose(tables[0].column("se"), tables[1].column("se"), rtol=1e-12)

    def test_same_bits_in_any_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arrays, "MANY_WEIGHTS", 1)
        votes, labels, weight, stratum = self.data(2_000)
        found = set()
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(votes))
            design = {"sample_weight": weight[order], "strata": stratum[order]}
            kappa = dh_kappa(votes[order], labels[order], **design)
            drawn = kappa.confidence_interval(method="bootstrap", n_resamples=50, rng=1)
            found.add((kappa.value, kappa.se, kappa.n_effective, *kappa.confidence_interval(), *drawn))
        assert len(found) == 1
