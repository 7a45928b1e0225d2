"""What stands beside the votes: labels of several labelers, strata and weights, in tallies and files; and bad input."""

import json
from collections.abc import Callable, Hashable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhkappa import DataError, Tally, dh_kappa, fleiss_kappa, tally
from strategies import Colour, Data, ragged

VOTES = [["a", "a", "a"], ["a", "b", "a"], ["b", "b", "b"], ["b", "b", "a"], ["a", "a", "b"], ["b", "b", "b"]]
GPT, RULE = list("aabbab"), ["a", "b", "b", None, "a", "a"]
STRATA, WEIGHTS = list("xxxyyy"), [1, 2, 3, 1, 2, 3]


def sided(**changed: Any) -> Tally:
    return tally(VOTES, {"gpt": GPT, "rule": RULE}, **{"sample_weight": WEIGHTS, "strata": STRATA, **changed})


@st.composite
def beside(draw: st.DrawFn) -> tuple[Data, dict[str, list[Hashable]], list[float] | None, list[str] | None]:
    """Ragged data with the labels of two labelers, and weights and strata or not."""
    data = draw(ragged(max_items=16, max_votes=4))
    random = Random(draw(st.integers(0, 2**32)))
    n = len(data.votes)
    labels = {"one": list(data.suggested), "two": [random.choice([*data.categories, None]) for _ in range(n)]}
    sample_weight = [random.choice([0.5, 1, 0.1, 3]) for _ in range(n)] if draw(st.booleans()) else None
    strata = [random.choice("xy") for _ in range(n)] if draw(st.booleans()) else None
    return data, labels, sample_weight, strata


# Tallies


@given(beside(), st.randoms(use_true_random=False))
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
    chunks = [order[: cut[0]], order[cut[0] : cut[1]], order[cut[1] :]]
    parts = [count(chunk) for chunk in chunks if chunk]
    added = sum(parts, Tally(data.categories))
    assert added == whole
    if parts:
        assert (added.labelers, added.strata, added.n_items) == (whole.labelers, whole.strata, whole.n_items)
        assert fleiss_kappa_or_sentence(added) == fleiss_kappa_or_sentence(whole)
        for name in labels:
            assert kappa_or_sentence(added, name) == kappa_or_sentence(whole, name)


def kappa_or_sentence(counts: Tally, name: str) -> str:
    try:
        kappa = dh_kappa(counts, suggested=name)
    except DataError as error:
        return str(error)
    return repr((kappa.exact, kappa.se, *kappa.confidence_interval(), kappa.excluded))


def fleiss_kappa_or_sentence(counts: Tally) -> str:
    try:
        kappa = fleiss_kappa(counts)
    except DataError as error:
        return str(error)
    return repr((kappa.exact, kappa.se))


@given(beside())
@settings(max_examples=40)
def test_each_labeler_has_the_kappa_it_has_alone(drawn: tuple[Any, ...]) -> None:
    data, labels, sample_weight, strata = drawn
    both = tally(data.votes, labels, categories=data.categories, sample_weight=sample_weight, strata=strata)
    for name, own in labels.items():
        alone = tally(data.votes, {name: own}, categories=data.categories, sample_weight=sample_weight, strata=strata)
        assert kappa_or_sentence(both, name) == kappa_or_sentence(alone, name)
        unnamed = tally(data.votes, own, categories=data.categories, sample_weight=sample_weight, strata=strata)
        try:
            kappa = dh_kappa(unnamed)
        except DataError:
            continue
        assert kappa_or_sentence(both, name) == repr(
            (kappa.exact, kappa.se, *kappa.confidence_interval(), kappa.excluded)
        )


@given(drawn=beside())
@settings(max_examples=30)
def test_a_saved_tally_comes_back(drawn: tuple[Any, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    data, labels, sample_weight, strata = drawn
    whole = tally(data.votes, labels, categories=data.categories, sample_weight=sample_weight, strata=strata)
    path = tmp_path_factory.mktemp("tally") / "whole.json"
    whole.save(path)
    back = Tally.load(path)
    assert back == whole
    assert (back.labelers, back.strata) == (whole.labelers, whole.strata)
    for name in labels:
        assert kappa_or_sentence(back, name) == kappa_or_sentence(whole, name)
    assert back + whole == whole + whole
    first = path.read_text()
    back.save(path)
    assert path.read_text() == first


def test_tallies_that_differ_are_not_equal() -> None:
    assert sided() == sided()
    assert sided() != sided(sample_weight=[1, 2, 3, 1, 2, 4])
    assert sided() != sided(strata=list("xxyxyy"))
    assert sided() != sided(strata=None)
    assert sided() != sided(sample_weight=None)
    assert sided() != tally(VOTES, {"gpt": RULE, "rule": GPT}, sample_weight=WEIGHTS, strata=STRATA)
    assert sided() == tally(VOTES, {"rule": RULE, "gpt": GPT}, sample_weight=WEIGHTS, strata=STRATA)


def test_the_order_of_labelers_does_not_matter_when_adding() -> None:
    turned = tally(VOTES, {"rule": RULE, "gpt": GPT}, sample_weight=WEIGHTS, strata=STRATA)
    assert sided() + turned == turned + sided() == sided() + sided()
    assert dh_kappa(turned + sided(), suggested="rule").exact == dh_kappa(sided(), suggested="rule").exact


def test_rows_are_those_of_one_labeler() -> None:
    rows = sided().rows("gpt")
    assert rows.weight is not None
    assert rows.stratum is not None
    assert int(rows.patterns.items.sum()) == 6
    assert sorted(zip(rows.weight.tolist(), rows.stratum.tolist(), strict=True)) == sorted(
        zip(WEIGHTS, [0, 0, 0, 1, 1, 1], strict=True)
    )


def test_no_items_stand_in_nobodys_way() -> None:
    counts = Tally()
    assert repr(counts) == "Tally(0 items, 0 votes, 0 categories, 0 patterns)"  # looking at it changes nothing
    counts.update([], {"gpt": []})
    counts.update(VOTES, {"gpt": GPT, "rule": RULE}, sample_weight=WEIGHTS, strata=STRATA)
    counts.update([], [])
    assert counts == sided()
    assert Tally() + sided() == sided() + Tally() == sided()
    assert counts.labelers == ("gpt", "rule")
    assert (
        dh_kappa(tally([], {"gpt": []}, sample_weight=[], strata=[]), suggested="gpt").reason
        == "the data hold no items."
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            lambda: tally(VOTES, {"gpt": GPT}, sample_weight=WEIGHTS, strata=STRATA),
            "labelers of some are 'gpt', 'rule'",
        ),
        (
            lambda: tally(VOTES, {"gpt": GPT, "llm": RULE}, sample_weight=WEIGHTS, strata=STRATA),
            "of others 'gpt', 'llm'",
        ),
        (lambda: sided(sample_weight=None), "some have weights, others have not"),
        (lambda: sided(strata=None), "some have strata, others have not"),
        (lambda: tally(VOTES, GPT), "labelers of some are"),
    ],
)
def test_tallies_with_different_sides_do_not_add(other: Callable[[], Tally], words: str) -> None:
    with pytest.raises(DataError, match=words):
        sided() + other()
    whole = sided()
    with pytest.raises(DataError, match="counted together must all have the same labelers"):
        whole += other()
    assert whole == sided()


def test_choosing_a_labeler() -> None:
    with pytest.raises(DataError, match=r"labels of 2 labelers.*choose one, such as suggested='gpt'"):
        dh_kappa(sided())
    with pytest.raises(DataError, match=r"labeler 'llm' is not in the tally. Labelers: 'gpt', 'rule'"):
        dh_kappa(sided(), suggested="llm")
    with pytest.raises(DataError, match="one labeler without a name: leave it out"):
        dh_kappa(tally(VOTES, GPT), suggested="gpt")
    with pytest.raises(DataError, match="empty mapping"):
        tally(VOTES, {})
    with pytest.raises(DataError, match="names of labelers, as text"):
        tally(VOTES, {1: GPT})
    with pytest.raises(DataError, match="leave out weights and strata"):
        dh_kappa(sided(), suggested="gpt", sample_weight=WEIGHTS, strata=STRATA)


# Files


def damaged(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    sided().save(path)
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda held: held["patterns"][0]["suggested"].append("a"), "has not one label for each labeler"),
        (lambda held: held["patterns"][0].update(suggested="a"), "has not one label for each labeler"),
        (lambda held: held["patterns"][0].update(stratum="z"), "'z' is not among its strata"),
        (lambda held: held["patterns"][0].pop("stratum"), "'stratum' is absent"),
        (lambda held: held["patterns"][0].update(weight=-1.0), r"-1.0 is not a weight"),
        (lambda held: held["patterns"][0].update(weight=float("nan")), "nan is not a weight"),
        (lambda held: held["patterns"][0].update(weight=float("inf")), "inf is not a weight"),
        (lambda held: held["patterns"][0].update(weight="2"), "'2' is not a weight"),
        (lambda held: held["patterns"][0].update(weight=True), "True is not a weight"),
        (lambda held: held["patterns"][0].pop("weight"), "'weight' is absent"),
        (lambda held: held.update(labelers=["gpt", "gpt"]), "'labelers' names one twice"),
        (lambda held: held.update(labelers="gpt"), "'labelers' is not a list of names"),
        (lambda held: held.update(labelers=[]), "'labelers' is not a list of names"),
        (lambda held: held.update(strata="xy"), "'strata' is not a list of names"),
        (lambda held: held.update(strata={"x": 1, "y": 2}), "'strata' is not a list of names"),
        (lambda held: held.pop("strata"), "'strata' is absent"),
        (lambda held: held.update(sample_weight="no"), "'weights' is neither true nor false"),
        (lambda held: held.update(sample_weight=1), "'weights' is neither true nor false"),
    ],
)
def test_a_damaged_file_is_refused(change: Callable[[dict[str, Any]], None], words: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "tally.json", change)
    with pytest.raises(DataError, match=f"is a damaged tally: .*{words}"):
        Tally.load(path)


def test_strata_of_a_file_in_any_order(tmp_path: Path) -> None:
    path = damaged(tmp_path / "tally.json", lambda held: held["strata"].reverse())
    assert json.loads(path.read_text())["strata"] == ["y", "x"]
    back = Tally.load(path)
    assert back == sided()
    sided(sample_weight=None).save(path)
    held = json.loads(path.read_text())
    held["strata"].reverse()
    path.write_text(json.dumps(held))
    pool = {"x": 1000, "y": 4}
    expected = dh_kappa(sided(sample_weight=None), suggested="gpt", pool=pool)
    found = dh_kappa(Tally.load(path), suggested="gpt", pool=pool)
    assert (found.exact, found.se) == (expected.exact, expected.se)


# Bad input


def refused(**given: Any) -> str:
    with pytest.raises(DataError) as caught:
        dh_kappa(VOTES, GPT, **given)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize(
    ("sample_weight", "words"),
    [
        ([-1, 1, 1, 1, 1, 1], "weights must be numbers, 0 or more: item 0 has -1 (negative)."),
        ([1, 1, float("nan"), 1, 1, 1], "item 2 has nan (missing)."),
        ([1, 1, None, 1, 1, 1], "item 2 has nan (missing)."),
        (np.ma.array([1.0] * 6, mask=[False, False, False, True, False, False]), "item 3 has nan (missing)."),
        ([1, 1, 1, 1, 1, float("inf")], "item 5 has inf (infinite)."),
        ([0] * 6, "weights are all 0, so no item counts"),
        ([1, 2], "votes has 6 items but weights has 2: one weight for each item"),
        ([], "votes has 6 items but weights has 0"),
        ("abcdef", "weights must be a list of numbers, one for each item: got 'abcdef'."),
        (list("abcdef"), "weights must be a list of numbers"),
        (list("123456"), "weights must be a list of numbers"),
        (np.array([np.str_("3")] * 6, object), "weights must be a list of numbers"),
        ({"a": 1}, "weights must be a list of numbers"),
        (5, "weights must be a list of numbers"),
        ([1j] * 6, "weights must be a list of numbers"),
        ([[1] * 6], "weights must be 1-D, one number for each item: got 2-D with shape (1, 6)."),
        (np.ones((6, 2)), "got 2-D with shape (6, 2)."),
    ],
)
def test_bad_weights(sample_weight: Any, words: str) -> None:
    assert words in refused(sample_weight=sample_weight)


def test_weights_and_strata_in_another_order_than_the_votes() -> None:
    frame = pd.DataFrame(VOTES)
    sample_weight = pd.Series(WEIGHTS, index=[5, 4, 3, 2, 1, 0])
    with pytest.raises(DataError, match=r"votes and weights have different indexes.*weights.to_numpy\(\)"):
        dh_kappa(frame, GPT, sample_weight=sample_weight)
    with pytest.raises(DataError, match="votes and strata have different indexes"):
        dh_kappa(frame, GPT, strata=pd.Series(STRATA, index=sample_weight.index))
    pool = {"x": 10, "y": 9}
    assert (
        dh_kappa(VOTES, GPT, strata=STRATA, pool=pd.Series(pool)).se
        == dh_kappa(VOTES, GPT, strata=STRATA, pool=pool).se
    )
    assert (
        dh_kappa(frame, GPT, sample_weight=pd.Series(WEIGHTS)).exact
        == dh_kappa(VOTES, GPT, sample_weight=WEIGHTS).exact
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"strata": list("xyyyyy")}, "stratum 'x' has one eligible item, which cannot show how far items differ"),
        ({"strata": list("xyyyyy"), "pool": {"x": 2, "y": 9}}, "stratum 'x' has one eligible item"),
        ({"strata": ["x", None, "x", "y", "y", "y"]}, "strata must name the stratum of every item: item 1 has none."),
        ({"strata": ["x", None, None, "y", "y", "y"]}, "item 1 has none, nor have 1 more."),
        ({"strata": STRATA[:5]}, "votes has 6 items but strata has 5 labels"),
        ({"strata": "xxxyyy"}, "strata must be an array or a list"),
        ({"pool": 5}, "pool holds 5 items but the sample has 6: pass the number of items in the whole data set"),
        ({"pool": 0}, "pool holds 0 items but the sample has 6"),
        ({"pool": -3}, "pool must be a whole number of items: got -3."),
        ({"pool": 6.5}, "pool must be a whole number of items: got 6.5."),
        ({"pool": float("nan")}, "pool must be a whole number of items: got nan."),
        ({"pool": True}, "pool must be a whole number of items: got True."),
        ({"pool": "many"}, "pool must be a whole number of items: got 'many'."),
        ({"pool": {"x": 10}}, "strata= is absent: pass the stratum of each item."),
        ({"pool": 10, "strata": STRATA}, "pool must map each stratum to its size, such as {'x': 1000}: got 10."),
        ({"pool": {"x": 10}, "strata": STRATA}, "pool has no size for stratum 'y': it names 'x'."),
        ({"pool": {"x": 10, "y": 9, "z": 4}, "strata": STRATA}, "pool names 1 stratum without items in the data ('z')"),
        ({"pool": {"x": 2, "y": 9}, "strata": STRATA}, "pool of stratum 'x' holds 2 items but the sample has 3"),
        (
            {"pool": {"x": 9.5, "y": 9}, "strata": STRATA},
            "pool of stratum 'x' must be a whole number of items: got 9.5.",
        ),
        ({"pool": 20, "sample_weight": WEIGHTS}, "with weights leave it out, or pass strata="),
        (
            {"pool": {"x": 9, "y": 9}, "strata": STRATA, "sample_weight": WEIGHTS},
            "weights= and pool= both say how much",
        ),
        ({"panel": "random"}, "panel must be one of 'fixed', 'drawn': got 'random'."),
    ],
)
def test_bad_strata_and_pools(given: dict[str, Any], words: str) -> None:
    assert words in refused(**given)


def test_a_drawn_panel_needs_three_votes_and_says_so_at_once() -> None:
    votes = [*VOTES[:4], ["a", "b"], ["b", "b"]]
    with pytest.raises(DataError, match="panel='drawn' needs three votes on every item, and 2 items have two"):
        dh_kappa(votes, GPT, pool=20, panel="drawn")
    assert dh_kappa(votes, GPT, panel="drawn").se == dh_kappa(votes, GPT).se


def test_a_stratum_without_eligible_items() -> None:
    votes = [*VOTES[:3], ["a"], ["b"], ["b"]]
    with pytest.raises(DataError, match="stratum 'y' has no eligible item, so the sample cannot speak for it"):
        dh_kappa(votes, GPT, strata=STRATA)
    with pytest.raises(DataError, match="stratum 'y' has no eligible item"):
        dh_kappa(votes, GPT, strata=STRATA, pool={"x": 9, "y": 5})
    known = dh_kappa(votes, GPT, strata=STRATA, pool={"x": 9, "y": 0})
    assert known.exact == dh_kappa(votes[:3], GPT[:3], pool=9).exact


def test_items_without_weight_are_dropped_and_counted() -> None:
    kappa = dh_kappa(VOTES, GPT, sample_weight=[0, 2, 2, 2, 2, 2])
    left = dh_kappa(VOTES[1:], GPT[1:])
    assert kappa.excluded.no_weight == 1
    assert (kappa.exact, kappa.se, kappa.n_items) == (left.exact, left.se, 5)
    note = next(note for note in kappa.notes if note.code == "items-excluded")
    assert note.text == "1 item did not count: 1 with weight 0."
    bare = dh_kappa(VOTES, ["a", None, "b", "b", "a", "b"], sample_weight=[0, 0, 2, 2, 2, 2])
    assert (bare.excluded.no_label, bare.excluded.no_weight) == (1, 1)


def test_numbers_of_every_kind_are_weights() -> None:
    expected = dh_kappa(VOTES, GPT, sample_weight=WEIGHTS).exact
    for sample_weight in (
        tuple(WEIGHTS),
        np.array(WEIGHTS, np.uint8),
        np.array(WEIGHTS, np.float16),
        np.array([Fraction(w, 4) for w in WEIGHTS], object),
        np.ma.array(WEIGHTS),
        pd.Series(WEIGHTS, dtype="Float64"),
    ):
        assert dh_kappa(VOTES, GPT, sample_weight=sample_weight).exact == expected
    assert dh_kappa(VOTES, GPT, sample_weight=[True, True, False, True, True, True]).excluded.no_weight == 1


def test_names_of_strata_are_labels() -> None:
    members = [Colour.RED if name == "x" else Colour.GREEN for name in STRATA]
    expected = dh_kappa(VOTES, GPT, strata=STRATA, pool={"x": 9, "y": 20})
    for strata, pool in (
        ([1 if name == "x" else 2 for name in STRATA], {np.int64(1): 9, 2.0: np.int32(20)}),
        ([name == "y" for name in STRATA], {False: 9, True: 20.0}),
        (members, {"RED": 9, "GREEN": 20}),
        (members, {Colour.RED: 9, Colour.GREEN: 20}),
    ):
        kappa = dh_kappa(VOTES, GPT, strata=strata, pool=pool)  # type: ignore[arg-type]
        assert kappa.exact == expected.exact
        assert kappa.se == pytest.approx(expected.se, rel=1e-14)  # strata may stand in another order
