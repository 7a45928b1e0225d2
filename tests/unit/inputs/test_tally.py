"""Tallies add up, keep their categories, and are updated from any kind of input."""

from collections.abc import Callable, Hashable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import DataError, Dataset, Tally, audit, compare, dh_kappa, fleiss_kappa, tally
from dhkappa.inputs import tally as module
from expect import expect_error
from strategies import Data, ragged

VOTES = [["a", "a"], ["a", "b"], ["b", "b", None], []]
LABELS = ["a", "b", None, "c"]
SIX = [["a", "a", "a"], ["a", "b", "a"], ["b", "b", "b"], ["b", "b", "a"], ["a", "a", "b"], ["b", "b", "b"]]
GPT, RULE = list("aabbab"), ["a", "b", "b", None, "a", "a"]
STRATA, WEIGHTS = list("xxxyyy"), [1, 2, 3, 1, 2, 3]


def full(**changed: Any) -> Tally:
    """Return a tally of two labelers with weights and strata."""
    return tally(SIX, {"gpt": GPT, "rule": RULE}, **{"sample_weight": WEIGHTS, "strata": STRATA, **changed})


def test_repr_and_sizes() -> None:
    counts = tally(VOTES, LABELS)
    assert repr(counts) == "Tally(4 items, 6 votes, 3 categories, 4 patterns, labelers 'labeler')"
    assert (counts.n_items, counts.n_votes, len(counts), counts.categories) == (4, 6, 4, ("a", "b", "c"))
    assert counts.labelers == ("labeler",)
    assert repr(Tally()) == "Tally(0 items, 0 votes, 0 categories, 0 patterns)"
    assert (full().labelers, full().strata) == (("gpt", "rule"), ("x", "y"))


# Updates


def test_update_by_chunks_equals_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 8)
    rng = np.random.default_rng(5)
    grid, labels = rng.integers(0, 9, (500, 3)), rng.integers(0, 12, 500)
    chunked = Tally()
    for first in range(0, 500, 7):
        chunked.update(grid[first : first + 7], labels[first : first + 7])
    assert chunked == tally(grid, labels)
    assert dh_kappa(chunked).exact == dh_kappa(grid, labels).exact


WIDE = {"item": ["i1", "i2"], "suggested": ["x", "y"], "ann_1": ["x", "y"], "ann_2": ["x", "x"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=["pandas", "polars", "lazy"])
def test_update_from_a_dataframe_counts_only_votes(make: Callable[[Any], Any]) -> None:
    counts = Tally()
    counts.update(make(WIDE))
    assert (counts.n_votes, counts.categories, counts.labelers) == (4, ("x", "y"), ("suggested",))
    expected = tally([["x", "x"], ["y", "x"]], {"suggested": ["x", "y"]})
    assert counts == expected
    counts.update(make(WIDE), "suggested", annotators="ann_*", item="item")
    assert counts == expected + expected


def test_update_from_a_long_table_and_a_path(tmp_path: Path) -> None:
    rows = {"item": [1, 1, 2, 2], "annotator": [*"pqpq"], "label": [*"xxyx"], "suggested": [*"xxyy"]}
    counts, expected = Tally(), tally([["x", "x"], ["y", "x"]], {"suggested": ["x", "y"]})
    counts.update(pd.DataFrame(rows))
    assert counts == expected
    path = tmp_path / "votes.csv"
    pd.DataFrame(WIDE).to_csv(path, index=False)
    counts.update(path)
    assert counts == expected + expected


def test_update_from_a_dataset() -> None:
    dataset = Dataset(pd.DataFrame(WIDE))
    counts = Tally()
    counts.update(dataset)
    assert counts == dataset.tally() == tally([["x", "x"], ["y", "x"]], {"suggested": ["x", "y"]})
    counts.update(Dataset([["x", "x"]], {"suggested": ["x"]}))
    assert (counts.n_items, counts.n_votes) == (3, 6)
    for option in ({"suggested": "suggested"}, {"counts": [[1]]}, {"strata": ["s"]}, {"annotators": "ann_*"}):
        with expect_error("option-with-dataset", next(iter(option))):
            counts.update(dataset, **option)


def test_update_from_a_dataset_with_categories_of_its_own() -> None:
    dataset = Dataset([["x", "NA"], ["y", "x"]], ["x", "y"], categories=["y", "x"], missing=["NA"])
    counts = Tally()
    counts.update(dataset)
    assert (counts.categories, counts.declared, counts.missing) == (("y", "x"), True, frozenset({"NA"}))
    other = Tally(["a", "b"])
    with expect_error("undeclared-label"):
        other.update(dataset)
    assert other == Tally(["a", "b"])
    strict = Tally(missing=["x"])
    with expect_error("different-missing"):
        strict.update(dataset)
    assert (strict.n_items, strict.missing) == (0, frozenset({"x"}))


def test_update_honours_declared_categories_and_missing() -> None:
    counts = Tally(["b", "a"], missing=["NA"])
    counts.update([["a", "NA"]], ["b"])
    assert (counts.categories, counts.declared, counts.n_votes) == (("b", "a"), True, 1)
    assert counts.missing == {"NA"}
    with expect_error("undeclared-label", "votes"):
        counts.update([["z", "a"]], ["b"])
    assert counts.n_items == 1


@pytest.mark.parametrize("here", [[["a", "b"]], [[1, 2]], [[0, 2]]], ids=repr)
def test_unnamed_columns_are_not_other_categories(here: list[list[Any]]) -> None:
    counts = tally(here, None)
    before = counts.copy()
    with expect_error("unnamed-columns", "counts"):
        counts.update(counts=[[2, 0], [1, 1]])
    assert counts == before
    counts.update(counts=np.zeros((0, 0), int))
    assert counts == before


@pytest.mark.parametrize("here", [[[0, 1]], [[1, 1]], [[0, 1, 2]], [[False, True]]], ids=repr)
def test_unnamed_columns_are_integers_from_0(here: list[list[Any]]) -> None:
    counts = tally(here, None)
    counts.update(counts=[[2, 0], [1, 1]])
    assert counts == tally([*here, [0, 0], [0, 1]], None)


def test_after_an_error_the_tally_is_unchanged() -> None:
    counts = tally(SIX, GPT)
    before = counts.copy()
    for votes, suggested in [([[1, 1]], ["1"]), ([["a"]], []), ([["a", 1.5]], ["a"]), ([["a", "a"]], {"gpt": ["a"]})]:
        with pytest.raises(DataError):
            counts.update(votes, suggested)
    assert counts == before
    stratified = tally([["a", "a"], ["a", "b"]], ["a", "b"], strata=["1", "1"])
    with expect_error("mixed-label-types", "strata"):
        stratified.update([["a", "a"]], ["a"], strata=[1])
    with expect_error("mixed-label-types", "strata"):
        stratified + tally([["a", "a"]], ["a"], strata=[1])
    assert stratified == tally([["a", "a"], ["a", "b"]], ["a", "b"], strata=["1", "1"])


def test_empty_updates_fit_any_tally() -> None:
    counts = Tally()
    assert (len(counts), counts.labelers, counts.strata) == (0, (), ())
    counts.update([], {"gpt": []})
    counts.update(SIX, {"gpt": GPT, "rule": RULE}, sample_weight=WEIGHTS, strata=STRATA)
    counts.update([], [])
    assert counts == full()
    assert Tally() + full() == full() + Tally() == full()
    assert counts.labelers == ("gpt", "rule")
    assert dh_kappa(tally([], {"gpt": []}, sample_weight=[], strata=[]), "gpt").n_items == 0


# Sums


def test_sums_unite_categories_and_change_neither() -> None:
    one, other = tally([["a", "b"]], ["b"]), tally([["c", "a", "c"]], ["d"])
    before = one.copy(), other.copy()
    assert (one + other).categories == ("a", "b", "c", "d")
    assert one + other == other + one == tally([["a", "b"], ["c", "a", "c"]], ["b", "d"])
    assert (one, other) == before
    assert one + Tally() == one
    assert sum([one, other], Tally()) == sum([one, other]) == one + other
    mixed = tally([[True, False]], [True]) + tally([[2, 1]], [1])
    assert list(map(repr, mixed.categories)) == ["0", "1", "2"]


def test_a_declared_order_is_kept_if_it_has_all_categories() -> None:
    declared = tally([["low", "high"]], ["low"], categories=["low", "mid", "high"])
    found = tally([["mid", "high"]], ["low"])
    assert (declared + found).categories == (found + declared).categories == ("low", "mid", "high")
    assert (declared + found).declared
    assert (declared + declared).declared
    wider = declared + tally([["none", "high"]], ["low"])
    assert wider.categories == ("high", "low", "mid", "none")
    assert not wider.declared
    reverse = tally([["low", "high"]], ["low"], categories=["high", "mid", "low"])
    assert (declared + reverse).categories == (reverse + declared).categories == ("high", "low", "mid")
    assert dh_kappa(declared + reverse).n_votes == 4


def test_different_missing_labels() -> None:
    reads = tally([["NA", "x"]], ["x"], missing=["NA"])
    other = tally([["NA", "x"]], ["x"])
    for one, two in ((reads, other), (other, reads)):
        with expect_error("different-missing", "missing"):
            one + two
    total = reads + tally([["x", "x"]], ["x"])
    assert (total.n_votes, total.missing) == (3, frozenset({"NA"}))


def test_labels_that_look_the_same() -> None:
    with expect_error("mixed-label-types"):
        tally([[1, 1]], [1]) + tally([["1", "1"]], ["1"])


@pytest.mark.parametrize(
    "other",
    [
        lambda: tally(SIX, {"gpt": GPT}, sample_weight=WEIGHTS, strata=STRATA),
        lambda: tally(SIX, {"gpt": GPT, "llm": RULE}, sample_weight=WEIGHTS, strata=STRATA),
        lambda: full(sample_weight=None),
        lambda: full(strata=None),
        lambda: tally(SIX, GPT),
    ],
)
def test_tallies_with_different_columns_do_not_add(other: Callable[[], Tally]) -> None:
    with expect_error("different-columns"):
        full() + other()
    whole = full()
    with expect_error("different-columns"):
        whole += other()
    assert whole == full()


def test_the_order_of_labelers_does_not_matter() -> None:
    turned = tally(SIX, {"rule": RULE, "gpt": GPT}, sample_weight=WEIGHTS, strata=STRATA)
    assert turned == full()
    assert full() + turned == turned + full() == full() + full()
    assert dh_kappa(turned + full(), "rule").exact == dh_kappa(full(), "rule").exact


def test_empty_tallies_add_up() -> None:
    assert Tally() + Tally() == Tally()
    assert sum([Tally(), Tally(), Tally()]) == Tally()
    assert (Tally() + Tally(["a"])).categories == ("a",)
    assert Tally() + tally(VOTES, LABELS) == tally(VOTES, LABELS) + Tally()


def test_too_many_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS", 11)
    with expect_error("too-many-items"):
        full() + full()


@st.composite
def designs(draw: st.DrawFn) -> tuple[Data, dict[str, list[Hashable]], list[float] | None, list[str] | None]:
    """Ragged data with the labels of two labelers, with or without weights and strata."""
    data = draw(ragged(max_items=16, max_votes=4))
    random = Random(draw(st.integers(0, 2**32)))
    n = len(data.votes)
    labels = {"one": list(data.suggested), "two": [random.choice([*data.categories, None]) for _ in range(n)]}
    sample_weight = [random.choice([0.5, 1, 0.1, 3]) for _ in range(n)] if draw(st.booleans()) else None
    strata = [random.choice("xy") for _ in range(n)] if draw(st.booleans()) else None
    return data, labels, sample_weight, strata


def kappa_or_code(counts: Tally, name: str | None = None) -> str:
    try:
        kappa = dh_kappa(counts, name)
    except DataError as error:
        return error.code
    return repr((kappa.exact, kappa.se, *kappa.confidence_interval(), kappa.excluded))


def fleiss_or_code(counts: Tally) -> str:
    try:
        kappa = fleiss_kappa(counts)
    except DataError as error:
        return error.code
    return repr((kappa.exact, kappa.se))


@given(designs(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_parts_add_up_to_the_whole(drawn: tuple[Any, ...], random: Random) -> None:
    data, labels, sample_weight, strata = drawn

    def count(items: list[int]) -> Tally:
        return tally(
            [data.votes[i] for i in items],
            {name: [given[i] for i in items] for name, given in labels.items()},
            categories=data.categories,
            sample_weight=None if sample_weight is None else [sample_weight[i] for i in items],
            strata=None if strata is None else [strata[i] for i in items],
        )

    order = list(range(len(data.votes)))
    whole = count(order)
    random.shuffle(order)
    cut = sorted(random.choices(range(len(order) + 1), k=2))
    parts = [count(chunk) for chunk in (order[: cut[0]], order[cut[0] : cut[1]], order[cut[1] :]) if chunk]
    added = sum(parts, Tally(data.categories))
    assert added == whole
    if parts:
        assert (added.labelers, added.strata, added.n_items) == (whole.labelers, whole.strata, whole.n_items)
        assert fleiss_or_code(added) == fleiss_or_code(whole)
        for name in labels:
            assert kappa_or_code(added, name) == kappa_or_code(whole, name)


@given(designs())
@settings(max_examples=40)
def test_each_labeler_has_the_kappa_it_has_alone(drawn: tuple[Any, ...]) -> None:
    data, labels, sample_weight, strata = drawn
    options = {"categories": data.categories, "sample_weight": sample_weight, "strata": strata}
    both = tally(data.votes, labels, **options)
    for name, own in labels.items():
        expected = kappa_or_code(both, name)
        assert kappa_or_code(tally(data.votes, {name: own}, **options), name) == expected
        assert kappa_or_code(tally(data.votes, own, **options)) == expected


# Equality and results


def test_equality() -> None:
    assert tally([["a", "b"]], ["a"]) == tally([["b", "a"]], ["a"])
    assert tally([["a", "b"]], ["a"]) != tally([["a", "b"]], ["b"])
    assert tally([["a", "b"]], ["a"]) != tally([["a", "b"]] * 2, ["a"] * 2)
    assert tally([["a", "b"]], ["a"]) != tally([["a", "b"]], ["a"], categories=["a", "b", "c"])
    assert tally([["a", "b"]], ["a"]) != "a tally"
    with pytest.raises(TypeError):
        hash(Tally())
    with pytest.raises(TypeError):
        Tally() + 1  # type: ignore[operator]
    assert full() == full()
    assert full() != full(sample_weight=[1, 2, 3, 1, 2, 4])
    assert full() != full(strata=list("xxyxyy"))
    assert full() != full(strata=None)
    assert full() != full(sample_weight=None)
    assert full() != tally(SIX, {"gpt": RULE, "rule": GPT}, sample_weight=WEIGHTS, strata=STRATA)


def test_a_result_does_not_change_with_the_tally() -> None:
    counts = tally([["a", "b"], ["a", "a"]], ["a", "b"])
    kappa = dh_kappa(counts)
    counts.update([["a", "a"]], ["a"])
    assert kappa.n_items == 2
    assert len(kappa.bootstrap(99, rng=1).values) <= 99
    assert dh_kappa(counts).exact != kappa.exact


def test_without_labels_only_fleiss() -> None:
    counts = tally([["a", "b"], ["a", "a"], ["b", "b"]])
    assert fleiss_kappa(counts).exact == fleiss_kappa([["a", "b"], ["a", "a"], ["b", "b"]]).exact
    assert dh_kappa(counts).excluded.no_label == 3


def test_labels_of_one_labeler_have_the_name_labeler() -> None:
    counts = tally(SIX, GPT, sample_weight=WEIGHTS)
    assert counts.labelers == ("labeler",)
    assert dh_kappa(counts, "labeler").exact == dh_kappa(counts).exact


def test_order_of_appearance_does_not_matter() -> None:
    rows: list[list[Any]] = [[True, 1], [1, True], [0, False], ["good", "good"]]
    forward = tally(rows, [1, 0, "bad", "good"])
    backward = tally([row[::-1] for row in rows[::-1]], ["good", "bad", 0, 1])
    assert forward == backward
    assert repr(forward.categories) == repr(backward.categories) == "(0, 1, 'bad', 'good')"


def test_a_labeler_has_one_name_in_arrays_and_tallies() -> None:
    votes, labels = [["a", "a"], ["a", "b"]], ["a", "b"]
    one, other = (tally(votes, {name: labels}) for name in ("llm", "suggested_llm"))
    assert one == other
    assert other.labelers == (one + other).labelers == ("llm",)
    for name in ("llm", "suggested_llm"):
        assert dh_kappa(other, name).exact == dh_kappa(votes, labels).exact
        assert list(audit(other, name).kappas) == ["llm"]
    both = compare(votes, {"llm": labels, "suggested_llm": ["a", "a"]})
    assert list(both.kappas) == ["llm", "suggested_llm"]
