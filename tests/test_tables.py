"""Tables whose words, names or values could be taken in two ways."""

from enum import Enum
from typing import Any

import pandas as pd
import polars as pl
import pytest

from dhkappa import DataError, Tally, audit, dh_kappa, fleiss_kappa, tally
from dhkappa.inputs import dataset as given


class Kind(Enum):
    SPAM = 1
    HAM = 2


VOTES = {
    "item": ["a", "a", "a", "b", "b", "b"],
    "label": ["x", "x", "y", "y", "y", "y"],
    "suggested": ["x", "x", "x", "y", "y", "y"],
}
EXPECTED = tally([["x", "x", "y"], ["y", "y", "y"]], ["x", "y"])
KINDS = pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=["pandas", "polars", "lazy"])


@KINDS
def test_columns_called_count_and_annotator_are_used_until_passed_over(kind: Any) -> None:
    counted = kind({**VOTES, "count": [1, 1, 3, 1, 1, 0]})
    whole = tally([["x", "x", "y", "y", "y"], ["y", "y"]], ["x", "y"])
    assert tally(counted, "suggested", item="item", label="label") == whole
    assert tally(counted, "suggested") == whole
    assert tally(counted, "suggested", count=None) == EXPECTED
    signed = kind({**VOTES, "annotator": ["p", "p", "q", "p", "q", "r"]})
    with pytest.raises(DataError, match="'p' on item 'a'"):
        tally(signed, "suggested", item="item", label="label")
    assert tally(signed, "suggested", item="item", label="label", annotator=None) == EXPECTED
    both = kind({**VOTES, "annotator": [*"pqrpqr"], "count": [1] * 6})
    with pytest.raises(DataError, match="annotator=None or count=None"):
        tally(both, "suggested")
    assert tally(both, "suggested", count=None) == EXPECTED


@KINDS
def test_a_table_of_votes_is_no_grid(kind: Any) -> None:
    assert fleiss_kappa(kind(VOTES)).exact == fleiss_kappa([["x", "x", "y"], ["y", "y", "y"]]).exact
    wide = kind({"item": ["a", "b"], "ann_1": ["x", "y"], "ann_2": ["x", "y"], "ann_llm": ["x", "x"]})
    assert fleiss_kappa(wide).n_votes == 6
    assert tally(wide, "ann_llm") == tally([["x", "x"], ["y", "y"]], ["x", "x"])


def test_one_label_in_two_spellings_of_pandas() -> None:
    mixed = ["SPAM", Kind.SPAM, "HAM", Kind.HAM, "HAM", ""]
    frame = pd.DataFrame(
        {"item": [*"aaabbb"], "label": pd.Series(mixed, dtype=object), "suggested": ["SPAM"] * 3 + ["HAM"] * 3}
    )
    assert tally(frame, "suggested") == tally([["SPAM", "SPAM", "HAM"], ["HAM", "HAM", None]], ["SPAM", "HAM"])
    wide = pd.DataFrame(
        {f"ann_{place}": pd.Series([label, "HAM"], dtype=object) for place, label in enumerate(mixed * 2)}
    )
    wide["suggested"] = ["SPAM", "HAM"]
    assert tally(wide, "suggested") == tally([[*mixed, *mixed], ["HAM"] * 12], ["SPAM", "HAM"])


def test_many_annotators_and_missing_integers() -> None:
    votes = [2, 0, 1, 2, None, None, 7, None, 7]
    frame = pd.DataFrame({f"ann_{place}": [vote] for place, vote in enumerate(votes)} | {"suggested": [2]})
    assert tally(frame, "suggested") == tally([votes], [2])


def test_items_without_a_label_are_not_found_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"i": [0, 1, 2, 3], "s": [None, "b", "b", "a"], "p": ["a"] * 4, "q": ["a"] * 4}
    whole = audit(pl.DataFrame(data), "s", annotators=["p", "q"], item="i").items().to_dicts()
    monkeypatch.setattr(given, "_MOST_GATHERED", 5)
    found = audit(pl.LazyFrame(data), "s", annotators=["p", "q"], item="i")
    for most in (1, 2, 9):
        assert [row["item"] for row in found.items(most=most)] == [row["item"] for row in whole][:most]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_that_are_ours_are_only_names(kind: Any) -> None:
    rows = {**VOTES, "annotator": [*"ppqpqr"]}
    plain = tally(kind(rows), "suggested", duplicates="first")
    assert plain == tally([["x", "y"], ["y", "y", "y"]], ["x", "y"])
    for name in ("order_of_rows", "order", "word_0", "items", "n", "nameless"):
        assert tally(kind({name: [9, 1, 2, 3, 4, 5], **rows}), "suggested", duplicates="first") == plain


def test_a_name_comes_before_a_pattern() -> None:
    frame = pd.DataFrame({"score[1]": ["x", "y"], "score1": ["y", "x"], "s": ["x", "y"]})
    assert tally(frame, "s", annotators="score[1]") == tally([["x"], ["y"]], ["x", "y"])


@KINDS
def test_an_unlisted_item_without_votes_is_no_item(kind: Any) -> None:
    votes = kind({"item": ["a", "a", "b", "b", "zz"], "label": ["x", "y", "x", "x", None], "annotator": [*"pqpqp"]})
    items = kind({"item": ["a", "b"], "suggested": ["x", "y"], "w": [1.0, 2.0]})
    found = audit(votes, "suggested", items=items, weights="w")
    assert found.kappas["suggested"].exact == dh_kappa(votes, "suggested", items=items, weights="w").exact
    assert {row["item"] for row in found.items()} == {"a", "b"}


def test_votes_whose_annotator_is_not_known() -> None:
    rows = pd.DataFrame({**VOTES, "annotator": ["p", None, None, "p", "q", None]})
    assert tally(rows, "suggested") == EXPECTED
    with pytest.raises(DataError, match="nothing tells who cast which vote"):
        audit(rows, "suggested").annotators()


def test_words_that_would_do_nothing() -> None:
    with pytest.raises(DataError, match="name who voted, as annotator="):
        tally(pd.DataFrame(VOTES), "suggested", duplicates="first")
    with pytest.raises(DataError, match="the table items= lacks, which is absent"):
        tally(pd.DataFrame(VOTES), "suggested", unlisted="unlabeled")


def test_an_item_with_an_empty_name() -> None:
    rows = {**VOTES, "item": ["a", "a", "a", "", "", ""]}
    for kind in (pd.DataFrame, pl.LazyFrame):
        with pytest.raises(DataError, match="column 'item' names no item in 3 rows"):
            tally(kind(rows), "suggested")


def test_what_to_do_next_is_said() -> None:
    votes = pd.DataFrame(VOTES)[["item", "label"]]
    with pytest.raises(DataError, match="If it stands in a table of items, pass that as items="):
        dh_kappa(votes, "llm")
    with pytest.raises(DataError, match="suggested must name columns here"):
        dh_kappa(votes, ["x", "y", "x", "y", "x", "y"], item="item", label="label")
    with pytest.raises(DataError, match="label is absent: name the column"):
        dh_kappa(votes.rename(columns={"label": "vote"}), "vote", item="item")
    with pytest.raises(DataError, match="Both tables must call it the same"):
        dh_kappa(votes, "llm", items=pd.DataFrame({"id": ["a"], "llm": ["x"]}))
    with pytest.raises(DataError, match="must hold numbers of votes, whole and 0 or more: got '1_0'"):
        tally(pd.DataFrame({"x": ["1_0"], "y": ["2"], "s": ["x"]}), "s", counts=["x", "y"])


def test_a_tally_keeps_the_labelers_that_are_known() -> None:
    assert tally(pd.DataFrame(VOTES)).labelers == ("suggested",)
    assert isinstance(tally(pd.DataFrame(VOTES)[["item", "label"]]), Tally)
