"""Scores and tests of annotators against loops in exact fractions, enumerated orders, and scipy."""

import math
from collections.abc import Hashable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import annotator_oracle as oracle
import dhkappa
from dhkappa.core.items import ItemVotes
from dhkappa.stats import annotator_scores as module
from dhkappa.stats.annotator_result import AnnotatorScores
from dhkappa.stats.annotator_scores import Funnel, Screen, annotator_scores, skewed_tails, typical
from dhkappa.stats.annotator_votes import annotator_votes
from dhkappa.stats.multiple_tests import false_discovery

F = Fraction
Grid = list[list[str | None]]
GRIDS = st.integers(3, 5).flatmap(
    lambda A: st.lists(st.lists(st.sampled_from(["a", "a", "b", "c", None]), min_size=A, max_size=A), max_size=5)
)


def item_votes(grid: Grid) -> ItemVotes:
    found = dhkappa.Dataset(np.array(grid, object)).item_votes()
    assert found is not None
    return found.merged()


def items_of(grid: Grid) -> list[dict[Hashable, Hashable]]:
    return [{who: vote for who, vote in enumerate(row) if vote is not None} for row in grid]


def scored(grid: Grid) -> AnnotatorScores:
    return annotator_scores(item_votes(grid))


def funnel_and_screen(grid: Grid) -> tuple[Funnel, Screen]:
    votes = item_votes(grid)
    sample, _ = module._unweighted_sample(votes)
    own, items = annotator_votes(votes, sample), items_of(grid)
    by_entry = np.full(sample.patterns.code.size, math.nan)
    usable = [(place, votes) for place, votes in enumerate(items) if len(votes) > 1]
    rows = own.row, own.who, own.entry
    assert sample.kept is not None
    group = np.arange(len(items)) if votes.group is None else votes.group
    first = {int(group[place]): votes for place, votes in reversed(usable)}
    for row, who, entry in zip(*(column.tolist() for column in rows), strict=True):
        by_entry[entry] = oracle.x(items, first[int(sample.kept[row])], who)
    size = len(votes.annotators or ())
    return Funnel(own, by_entry, size), Screen(own, size, 2)


@given(GRIDS)
def test_scores_are_those_of_loops(grid: Grid) -> None:
    items = items_of(grid)
    assume(oracle.usable(items) and len(oracle.frequencies(items)) > 1)
    found = scored(grid)
    assert found.reason is None
    C = oracle.frequencies(items)
    rest = 1 - sum(share**2 for share in C.values())
    for row in found.table:
        own = oracle.scores(items, row["annotator"])
        assert row["items"] == len(own)
        if not own:
            assert math.isnan(row["score"])
            assert math.isnan(row["agree"])
            continue
        assert row["score"] == pytest.approx(float(oracle.mean(own)))
        agree = [oracle.share_of_others(v, row["annotator"], v[row["annotator"]]) for v in oracle.usable(items)
                 if row["annotator"] in v]  # fmt: skip
        assert row["agree"] == pytest.approx(float(oracle.mean(agree)))
        assert -max(C.values()) / rest <= min(own)
        assert max(own) <= (1 - min(C.values())) / rest
        assert not row["low"] < float(-max(C.values()) / rest) - 1e-12
        assert not row["high"] > float((1 - min(C.values())) / rest) + 1e-12
    annotators = {who for votes in oracle.usable(items) for who in votes}
    whole = sum(oracle.omega(items, who) * oracle.mean_by_omega(items, who) for who in annotators)
    assert whole == oracle.fleiss(items) == dhkappa.fleiss_kappa(np.array(grid, object)).exact


@given(GRIDS)
def test_shrinkage_is_that_of_loops(grid: Grid) -> None:
    items = items_of(grid)
    annotators = sorted({who for votes in oracle.usable(items) for who in votes}, key=str)
    assume(len(annotators) > 1 and len(oracle.frequencies(items)) > 1)
    assume(sum(len(votes) for votes in oracle.usable(items)) > len(annotators))
    mean, within, between = oracle.moments(items)
    assume(within > 0)
    found = scored(grid)
    assert found.mean == pytest.approx(float(mean))
    for row in found.table:
        if row["items"]:
            keep = between / (between + within / row["items"])
            expected = mean + keep * (oracle.mean(oracle.scores(items, row["annotator"])) - mean)
            assert row["shrunk_score"] == pytest.approx(float(expected), abs=1e-9)
            assert row["low"] <= row["shrunk_score"] + 1e-9
            assert row["high"] >= row["shrunk_score"] - 1e-9


@given(GRIDS)
def test_funnel_is_that_of_loops(grid: Grid) -> None:
    items = items_of(grid)
    assume(oracle.usable(items) and len(oracle.frequencies(items)) > 1)
    found, _ = funnel_and_screen(grid)
    for who in range(len(grid[0])):
        n, Q, variance, third = oracle.funnel(items, who)
        assert found.items[who] == n
        if n:
            assert found.deviation[who] * n == pytest.approx(float(Q), abs=1e-12)
            assert (found.error[who] * n) ** 2 == pytest.approx(float(variance), abs=1e-12)
            assert found.cube[who] * n**3 == pytest.approx(float(third), abs=1e-12)
        else:
            assert math.isnan(found.deviation[who])


@given(GRIDS)
def test_screen_is_that_of_all_orders(grid: Grid) -> None:
    items = items_of(grid)
    assume(oracle.usable(items) and len(oracle.frequencies(items)) > 1)
    _, found = funnel_and_screen(grid)
    for who in range(len(grid[0])):
        own = [votes for votes in oracle.usable(items) if who in votes]
        if len(own) < 2 or all(v == w for v, w in pairwise([sorted(map(str, (votes[a] for a in votes if a != who)))
                                                              for votes in own])):  # fmt: skip
            continue
        T, mean, variance = oracle.random_orders(items, who)
        if math.isnan(found.z[who]):
            assert oracle.knows(items, who)[1] == 0
            continue
        assert found.z[who] == pytest.approx(float(T - mean) / math.sqrt(variance) if variance else 0, abs=1e-6)
        knows, square = oracle.knows(items, who)
        assert found.knows[who] == pytest.approx(float(knows), abs=1e-9)
        assert found.error[who] ** 2 * (len(own) - 1) == pytest.approx(float(square), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_pvalues_flag_what_the_procedure_flags(pvalues: list[float]) -> None:
    found = false_discovery(np.array(pvalues))
    assert found.tolist() == pytest.approx(stats.false_discovery_control(pvalues).tolist())
    clear = all(abs(p - i * 0.05 / len(pvalues)) > 1e-9 for i, p in enumerate(sorted(pvalues), 1))
    if clear:
        assert set(np.flatnonzero(found <= 0.05).tolist()) == oracle.flagged(pvalues, 0.05)


def test_adjusted_pvalues_leave_out_nan() -> None:
    found = false_discovery(np.array([math.nan, 0.02, 0.5, math.nan]))
    assert found[[1, 2]].tolist() == [0.04, 0.5]
    assert np.isnan(found[[0, 3]]).all()
    assert false_discovery(np.array([math.nan])).tolist() == pytest.approx([math.nan], nan_ok=True)


@pytest.mark.parametrize("skew", [-3.0, -0.8, -1e-3, -1e-5, 0.0, 1e-5, 1e-3, 0.4, 2.5])
@pytest.mark.parametrize("z", [-6.0, -2.0, -0.3, 0.0, 1.5, 5.0])
def test_tails_are_those_of_scipy(z: float, skew: float) -> None:
    low, high = skewed_tails(np.array([z]), np.array([skew]))
    peer = stats.pearson3(skew) if abs(skew) > 1e-4 else stats.norm()
    assert low[0] == pytest.approx(peer.cdf(z), rel=1e-6, abs=1e-300)
    assert high[0] == pytest.approx(peer.sf(z), rel=1e-6, abs=1e-300)


def test_typical_is_center_and_spread_of_most() -> None:
    rng = np.random.default_rng(1)
    errors = rng.uniform(0.02, 0.1, 4000)
    values = 0.6 + 0.07 * rng.standard_normal(4000) + errors * rng.standard_normal(4000)
    values[:400] = rng.normal(0, 0.05, 400)
    center, spread = typical(values, errors)
    assert center == pytest.approx(0.6, abs=0.02)  # standard error .0016; a tenth far below moves it by about .01
    assert spread == pytest.approx(0.07, abs=0.02)
    assert typical(0.6 + 0.5 * errors * rng.standard_normal(4000), errors)[1] == 0
    center, spread = typical(np.array([0.0, 0.1, 0.2, 0.5]), np.full(4, 1e-9))
    assert [center, spread] == pytest.approx([0.1, 0.1 / 0.67448975], rel=1e-6)
