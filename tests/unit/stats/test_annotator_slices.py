"""Slices of annotators against dh_kappa of their votes alone, and against loops over the votes."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import dhkappa
from expect import expect_error

N, K = 300, 6
SIM = dhkappa.simulate(N, labelers={"llm": 0.8, "rule": 0.6}, annotators=K, missing=0.2, rng=4)
VOTES = np.array([[None if vote is None else str(vote) for vote in row] for row in np.array(SIM.votes, object)], object)
LABELS = {name: [str(label) for label in labels] for name, labels in SIM.suggested.items()}
LABELS["llm"][5:9] = [None] * 4  # type: ignore[list-item]
TEAMS = {0: "red", 1: "red", 2: "blue", 3: "blue", 4: "alone", 5: None}
MEMBERS: dict[str, list[int]] = {"alone": [4], "blue": [2, 3], "red": [0, 1], "(missing)": [5]}
TABLE = pl.DataFrame({"annotator": list(TEAMS), "team": list(TEAMS.values())})
WEIGHT = np.random.default_rng(1).choice([1.0, 2.5, 4.0], N)


def long() -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = [(item, who, vote) for item, row in enumerate(VOTES) for who, vote in enumerate(row) if vote is not None]
    votes = pl.DataFrame(rows, ["item", "annotator", "label"], orient="row")
    items = {"item": range(N), "weight": WEIGHT, **{f"suggested_{name}": own for name, own in LABELS.items()}}
    return votes, pl.DataFrame(items)


def given(layout: str, **options: Any) -> dhkappa.Dataset:
    if layout == "array":
        return dhkappa.Dataset(VOTES, LABELS, **options)
    if layout == "wide":
        columns = {f"ann_{place}": VOTES[:, place].tolist() for place in range(K)}
        named = {f"suggested_{name}": own for name, own in LABELS.items()}
        return dhkappa.Dataset(pl.DataFrame({**columns, **named}), **options)
    votes, items = long()
    return dhkappa.Dataset(votes, items=items, **options)


def table(layout: str) -> pl.DataFrame:
    if layout != "wide":
        return TABLE
    return TABLE.with_columns(annotator=pl.format("ann_{}", pl.col("annotator")))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["array", "wide", "long"])
def test_rows_equal_the_data_without_the_other_annotators(layout: str, weighted: bool) -> None:
    options: dict[str, Any] = {}
    if weighted:
        options = {"categories": sorted({vote for vote in VOTES.ravel() if vote is not None})}
    weights = "linear" if weighted else None
    data = given(layout, annotators_table=table(layout), **options)
    audit = dhkappa.audit(data, weights=weights, progress=False)
    for name in ("llm", "rule"):
        found = audit.annotator_slices("team", name)
        assert found.kappa == audit.kappas[name].value
        assert [row["slice"] for row in found.table] == ["alone", "blue", "red", "(missing)"]
        for row in found.table:
            own = MEMBERS[row["slice"]]
            others = [f"ann_{who}" if layout == "wide" else who for who in range(K) if who not in own]
            alone = given(layout, **options).exclude_annotators(*others)
            kappa = dhkappa.dh_kappa(alone, name, weights=weights)
            fleiss = dhkappa.fleiss_kappa(alone, weights=weights)
            expected = [kappa.value, kappa.se, *kappa.confidence_interval(), fleiss.value]
            np.testing.assert_array_equal([row[key] for key in ("kappa", "se", "low", "high", "fleiss")], expected)
            assert (row["annotators"], row["items"]) == (len(own), kappa.n_items)
            assert (row["reason"] is None) == (len(own) == 2)
            cells = [(LABELS[name][item], VOTES[item, who]) for item in range(N) for who in own]
            votes = [(label, vote) for label, vote in cells if vote is not None]
            labeled = [label == vote for label, vote in votes if label is not None]
            assert row["votes"] == len(votes)
            assert row["agree"] == sum(labeled) / len(labeled)


@pytest.mark.parametrize("column", ["sample_weight", "strata"])
def test_sample_weights_and_strata(column: str) -> None:
    votes, items = long()
    items = items.with_columns(stratum=pl.col("item") % 3)
    options: dict[str, Any] = {"items": items, column: "weight" if column == "sample_weight" else "stratum"}
    pool = None if column == "sample_weight" else {0: 500, 1: 200, 2: 900}
    data = dhkappa.Dataset(votes, annotators_table=TABLE, **options)
    found = dhkappa.audit(data, pool=pool, progress=False).annotator_slices("team", "llm")
    row = list(found.table)[1]
    alone = dhkappa.Dataset(votes, **options).exclude_annotators(0, 1, 4, 5)
    kappa = dhkappa.dh_kappa(alone, "llm", pool=pool)
    assert row["slice"] == "blue"
    assert (row["kappa"], row["se"], row["low"]) == (kappa.value, kappa.se, kappa.confidence_interval().low)


def test_stratum_without_eligible_items_is_a_reason() -> None:
    votes = np.array([["a", "a", "b", "b"], ["a", "b", "b", "b"]] * 20, object)
    votes[:20, 2] = None  # so that team y has no item in the first stratum
    teams = pl.DataFrame({"annotator": [0, 1, 2, 3], "team": ["x", "x", "y", "y"]})
    options: dict[str, Any] = {"strata": ["s"] * 20 + ["t"] * 20, "pool": {"s": 100, "t": 300}}
    audit = dhkappa.audit(votes, ["a", "b"] * 20, annotators_table=teams, progress=False, **options)
    rows = {row["slice"]: row for row in audit.annotator_slices().table}
    assert rows["x"]["reason"] is None
    assert math.isnan(rows["y"]["kappa"])
    assert rows["y"]["reason"] == "Stratum 's' has no eligible item."


def test_undefined_values_have_a_reason() -> None:
    votes = [["a", "a", "a", "b"], ["a", "a", "b", "a"], ["a", "a", "a", "a"], ["a", "a", "b", "b"]] * 5
    teams = pl.DataFrame({"annotator": [0, 1, 2, 3], "team": ["same", "same", "x", "y"]})
    audit = dhkappa.audit(np.array(votes), ["a"] * 20, annotators_table=teams, progress=False)
    rows = {row["slice"]: row for row in audit.annotator_slices().table}
    assert rows["same"]["items"] == 20
    assert all(math.isnan(rows[name][key]) for name in rows for key in ("kappa", "low", "fleiss"))
    assert rows["same"]["reason"]
    assert rows["x"]["reason"] == "One annotator: no item has two votes of the slice."


def test_columns_and_labelers_are_named() -> None:
    more = TABLE.with_columns(shift=pl.lit("day"))
    audit = dhkappa.audit(VOTES, LABELS, annotators_table=more, progress=False)
    assert audit.annotator_columns == ("team", "shift")
    assert audit.annotator_slices("shift", "llm").to_dict()["slices"][0]["kappa"] == audit.kappas["llm"].value
    assert audit.annotator_slices("team", "rule") is audit.annotator_slices("team", "rule")
    with expect_error("column-not-found", "column"):
        audit.annotator_slices("tea", "llm")
    with expect_error("column-not-found", "column"):
        audit.annotator_slices(None, "llm")
    with expect_error("column-not-found", "column"):
        dhkappa.audit(VOTES, LABELS, progress=False).annotator_slices("team", "llm")


def test_without_keeps_the_table() -> None:
    audit = dhkappa.audit(VOTES, LABELS, annotators_table=TABLE, progress=False)
    assert audit.without(4).table.column("labeler") == ["llm", "rule"]


def test_summary() -> None:
    found = dhkappa.audit(VOTES, LABELS, annotators_table=TABLE, progress=False).annotator_slices("team", "llm")
    known = sorted((row["kappa"], row["slice"]) for row in found.table if not math.isnan(row["kappa"]))
    (low, one), (high, other) = known
    text = f"Kappa of llm is {found.kappa:.3f} from all votes. From the votes of each slice of team alone: "
    assert found.summary == f"{text}{low:.3f} for {one!r} to {high:.3f} for {other!r}."
    assert found.to_dict()["slices"][0] == {**found.table.to_json()[0], "reason": next(iter(found.table))["reason"]}
