"""Kappa of votes whose patterns are nearly all distinct: added up without building patterns, against fractions."""

import pickle
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from threading import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from dhkappa import Kappa, dh_kappa
from dhkappa.core import grouping
from dhkappa.core.grouping import Grid, LabeledPatterns, Patterns
from dhkappa.stats import kappa as formulas
from dhkappa.stats.kappa import estimate_dh, estimate_fleiss, sums
from dhkappa.stats.sample import sample_of

Array = npt.NDArray[Any]


def draw(n: int, N: int, m: int, seed: int = 1) -> tuple[Array, Array]:
    """Return votes and labels of which about half are the true category of the item."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, m, n)
    votes = np.where(rng.random((n, N)) < 0.5, truth[:, None], rng.integers(0, m, (n, N)))
    return votes, np.where(rng.random(n) < 0.5, truth, rng.integers(0, m, n))


def is_grid(kappa: Kappa) -> bool:
    return isinstance(kappa.estimate.sample.patterns.entries, Grid)


def is_built(kappa: Kappa) -> bool:
    """Whether the votes of a grid became sparse rows."""
    return "entries" in vars(kappa.estimate.sample.patterns.entries)


def check(kappa: Kappa, votes: Array, labels: Array, categories: list[Hashable] | None = None) -> None:
    """Compare everything exact with the oracle."""
    found: list[list[Any]] = votes.tolist()
    given: list[Any] = labels.tolist()
    occur = {vote for row in found for vote in row if vote is not None} | {
        label for label in given if label is not None
    }
    truth = oracle.dh(found, given, sorted(occur, key=str) if categories is None else categories)
    parts = kappa.parts
    assert parts is not None
    assert (kappa.exact, kappa.n_items, kappa.n_votes) == (truth.kappa, truth.n, truth.votes)
    assert [parts.R, parts.S, parts.C_E, parts.C_F] == [truth.R, truth.S, truth.C_E, truth.C_F]
    assert (parts.C, parts.L) == (truth.C, truth.L)
    assert kappa.estimate.fleiss == truth.fleiss
    lost = kappa.excluded
    assert (lost.no_votes, lost.one_vote, lost.no_label) == (
        *(truth.excluded.no_votes, truth.excluded.one_vote, truth.excluded.no_label),
    )
    assert all(type(number) is int for number in (parts.sums.agreeing, parts.sums.on_label, parts.sums.perfect))
    assert kappa.estimate.baselines.random == truth.random


def plain(votes: Array) -> Array:
    return votes


def text(votes: Array) -> Array:
    return np.array([f"c{value:03d}" for value in votes.ravel().tolist()], object).reshape(votes.shape)


def every_second_row(votes: Array) -> Array:
    return np.repeat(votes, 2, axis=0)[::2]


FORMS: dict[str, Callable[[Array], Array]] = {
    "int64": plain,
    "uint8": lambda votes: votes.astype(np.uint8),
    "uint16": lambda votes: votes.astype(np.uint16),
    "from -7": lambda votes: votes - 7,
    "in steps": lambda votes: votes * 1000,
    "floats": lambda votes: votes.astype(np.float64),
    "text": text,
    "by column": np.asfortranarray,
    "not contiguous": every_second_row,
    "backwards": lambda votes: votes[::-1],
}


class TestAgainstFractions:
    @pytest.mark.parametrize("form", FORMS)
    def test_kinds_of_arrays(self, form: str) -> None:
        votes, labels = (FORMS[form](array) for array in draw(12, 20, 50))
        kappa = dh_kappa(votes, labels)
        assert is_grid(kappa)
        assert not is_built(kappa)
        check(kappa, votes, labels)

    @pytest.mark.parametrize(("N", "m"), [(11, 300), (12, 60), (13, 41), (20, 300), (33, 64), (40, 50), (50, 70)])
    def test_shapes(self, N: int, m: int) -> None:
        votes, labels = draw(10, N, m, seed=N)
        kappa = dh_kappa(votes, labels)
        assert is_grid(kappa)
        check(kappa, votes, labels)

    def test_shapes_where_votes_are_counted(self) -> None:
        for N, m in [(51, 70), (3, 50), (20, 4)]:
            votes, labels = draw(10, N, m)
            kappa = dh_kappa(votes, labels)
            assert not is_grid(kappa)
            check(kappa, votes, labels)

    def test_a_label_beyond_the_type_of_the_votes(self) -> None:
        """256 categories have votes and fit one byte; the label 256 is 0 modulo 256."""
        votes = np.arange(320).reshape(16, 20) % 256
        votes[15, :9] = 0  # agreeing pairs that the label 256 must not count
        labels = np.where(np.arange(16) % 2, 256, votes[:, 0])
        kappa = dh_kappa(votes, labels)
        assert is_grid(kappa)
        assert len(kappa.categories) == 257
        check(kappa, votes, labels)

    @pytest.mark.parametrize("empty", [None, float("nan"), ""])
    def test_one_missing_vote(self, empty: Any) -> None:
        votes, labels = map(text, draw(12, 20, 50))
        votes[5, 7] = empty
        kappa = dh_kappa(votes, labels)
        assert not is_grid(kappa)
        votes[5, 7] = None
        check(kappa, votes, labels)

    def test_missing_labels(self) -> None:
        votes, labels = map(text, draw(12, 20, 50))
        labels[[2, 9]] = None
        kappa = dh_kappa(votes, labels)
        assert is_grid(kappa)
        assert kappa.excluded.no_label == 2
        check(kappa, votes, labels)
        none = dh_kappa(votes, [None] * 12)
        assert none.reason is not None
        assert (none.n_items, none.excluded.no_label, none.estimate.baselines.random) == (0, 12, None)

    def test_declared_categories_in_any_order(self) -> None:
        votes, labels = draw(12, 20, 50)
        order = np.random.default_rng(1).permutation(60).tolist()
        kappa = dh_kappa(votes, labels, categories=order)
        assert is_grid(kappa)
        check(kappa, votes, labels, order)
        truth = oracle.dh(votes.tolist(), labels.tolist(), order)
        assert kappa.estimate.baselines.majority == truth.majority  # ties follow the order

    def test_equal_rows_are_merged(self) -> None:
        votes, labels = draw(12, 20, 50)
        votes[6:], labels[6:] = votes[:6, ::-1], labels[:6]
        kappa = dh_kappa(votes, labels)
        assert not is_grid(kappa)
        assert kappa.estimate.sample.patterns.items.tolist() == [2] * 6
        check(kappa, votes, labels)

    @pytest.mark.parametrize("options", [{"sample_weight": np.arange(1, 13)}, {"strata": ["x", "y"] * 6}])
    def test_weights_and_strata(self, options: dict[str, Any]) -> None:
        votes, labels = draw(12, 20, 50)
        assert not is_grid(dh_kappa(votes, labels, **options))

    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 8), st.integers(2, 40), st.integers(1, 300), st.integers(0, 2**32))
    def test_any_grid(self, n: int, N: int, m: int, seed: int) -> None:
        votes, labels = draw(n, N, m, seed)
        votes[0] = labels[0]
        codes = votes.astype(np.min_scalar_type(m - 1))
        patterns = Patterns(labels.astype(np.int32), Grid(codes), np.ones(n, np.int64))
        sample = sample_of(LabeledPatterns(tuple(range(m)), patterns))
        estimate, fleiss = estimate_dh(sample), estimate_fleiss(sample)
        truth = oracle.dh(votes.tolist(), labels.tolist(), sorted({*votes.ravel().tolist(), *labels.tolist()}))
        assert (estimate.exact, fleiss.exact) == (truth.kappa, truth.fleiss)
        assert "entries" not in vars(patterns.entries)
        assert estimate.sums.perfect == sum(
            set(row) == {label} for row, label in zip(votes.tolist(), labels, strict=True)
        )
        assert (estimate.baselines.random, estimate.baselines.majority) == (truth.random, truth.majority)
        assert "entries" in vars(patterns.entries)
        rows = [Counter(row) for row in votes.tolist()]
        start, code, number = (array.tolist() for array in (patterns.start, patterns.code, patterns.votes))
        for k, row in enumerate(rows):
            span = slice(start[k], start[k + 1])
            assert list(zip(code[span], number[span], strict=True)) == sorted(row.items())

    @pytest.mark.parametrize("block", [1, 20, 64, 10_000])
    def test_blocks(self, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
        votes, labels = draw(90, 20, 50)
        whole = dh_kappa(votes, labels)
        monkeypatch.setattr(formulas, "_CACHE", block)
        assert dh_kappa(votes, labels).parts == whole.parts

    def test_several_items_of_a_row(self) -> None:
        """The rows of a grid are one item each; with other numbers of items, patterns are built."""
        votes, labels = draw(12, 20, 50)
        sample = dh_kappa(votes, labels).estimate.sample
        many = replace(sample.patterns, items=np.arange(1, 13))
        found = sums(replace(sample, patterns=many, mass=many.items))
        repeated = sums(dh_kappa(np.repeat(votes, range(1, 13), axis=0), np.repeat(labels, range(1, 13))).sample)
        assert replace(found, votes=[], labels=[]) == replace(repeated, votes=[], labels=[])
        assert Counter(found.votes) == Counter(repeated.votes)


def everything(kappa: Kappa) -> str:
    """Return all numbers of a result, to the last bit."""
    tables = [kappa.by_category(), kappa.confusion()]
    return repr(
        (
            *(kappa, kappa.to_dict(), kappa.baselines, kappa.above_random, kappa.notes, kappa.n_effective),
            *(kappa.confidence_interval(method=method) for method in ("beta", "wald")),
            *(kappa.bootstrap(50, rng=1).values.tolist(), kappa.permutation_test(), kappa.estimate.sums),
            *(list(table) for table in tables),
        )
    )


class TestOnDemand:
    def test_patterns_are_built_when_needed(self) -> None:
        kappa = dh_kappa(*draw(300, 20, 50))
        used = (kappa.value, kappa.exact, kappa.fleiss, kappa.n_items, kappa.n_votes, kappa.n_effective, kappa.excluded)
        assert (len(used), kappa.categories, kappa.reason) == (7, tuple(range(50)), None)
        assert isinstance(kappa.exact, Fraction)
        assert not is_built(kappa)
        assert kappa.se > 0
        assert is_built(kappa)

    def test_results_equal_those_of_patterns_built_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        votes, labels = draw(300, 20, 50)
        late = dh_kappa(votes, labels, pool=1000)
        monkeypatch.setattr(grouping, "_MANY_VOTES", 0)
        early = dh_kappa(votes, labels, pool=1000)
        assert (is_grid(late), is_grid(early)) == (True, False)
        assert everything(late) == everything(early)

    def test_agreement_weights(self, monkeypatch: pytest.MonkeyPatch) -> None:
        votes, labels = draw(100, 20, 50)
        late = dh_kappa(votes, labels, weights="linear", categories=range(50))
        monkeypatch.setattr(grouping, "_MANY_VOTES", 0)
        assert repr(late) == repr(dh_kappa(votes, labels, weights="linear", categories=range(50)))

    @pytest.mark.parametrize("form", ["uint8", "int64", "text", "by column"])
    def test_arrays_may_be_modified_after_the_call(self, form: str) -> None:
        votes, labels = (FORMS[form](array) for array in draw(100, 20, 50))
        kappa, expected = dh_kappa(votes, labels), everything(dh_kappa(votes, labels))
        votes[:], labels[:] = votes[0, 0], votes[0, 0]
        assert everything(kappa) == expected

    def test_threads_share_one_result(self) -> None:
        votes, labels = draw(2_000, 20, 50)
        expected, kappa, ready = repr(dh_kappa(votes, labels)), dh_kappa(votes, labels), Barrier(8)

        def use(_: int) -> str:
            ready.wait()
            return repr(kappa)

        with ThreadPoolExecutor(8) as pool:
            assert {*pool.map(use, range(8))} == {expected}

    def test_pickle(self) -> None:
        kappa = dh_kappa(*draw(100, 20, 50))
        copy = pickle.loads(pickle.dumps(kappa))
        assert is_grid(copy)
        assert not is_built(copy)
        assert everything(copy) == everything(kappa)
