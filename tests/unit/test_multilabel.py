"""Sets of labels: every category by hand as yes/no lists, cells in every notation, hostile text, many categories."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dhkappa
from dhkappa.core.labels import LIST_MARK
from expect import expect_error

Cell = list[Any] | None
NAMES = ["bug", "billing", "how to", "ß;", "日本"]


def drawn(n: int = 60, N: int = 4, names: list[Any] = NAMES, seed: int = 0) -> tuple[list[list[Cell]], list[Cell]]:
    """Draw sets of labels: some empty, some votes and suggested labels missing."""
    draw = random.Random(seed)

    def near(truth: set[Any]) -> Cell:
        if draw.random() < 0.1:
            return None
        found = [name for name in names if (name in truth) != (draw.random() < 0.15)]
        return draw.sample(found, len(found))

    truths = [{name for name in names if draw.random() < 0.3} for _ in range(n)]
    return [[near(truth) for _ in range(N)] for truth in truths], [near(truth) for truth in truths]


def answers(cells: list[Cell], category: Any) -> list[str | None]:
    return [None if cell is None else "yes" if category in cell else "no" for cell in cells]


def by_hand(votes: Any, suggested: Any, category: Any) -> dhkappa.Kappa:
    return dhkappa.dh_kappa([answers(row, category) for row in votes], answers(suggested, category))


def check(found: dhkappa.MultilabelAudit, votes: list[list[Cell]], suggested: list[Cell], names: list[Any]) -> None:
    """Compare every number of the table with the yes/no data of each category."""
    assert sorted(map(str, found.categories)) == sorted(map(str, names))
    rows = {row["category"]: row for row in found.table}
    pvalues = []
    for category in names:
        kappa, row = by_hand(votes, suggested, category), rows[category]
        test = kappa.permutation_test()
        expected = [kappa.value, *kappa.confidence_interval(), test.pvalue, kappa.fleiss, kappa.n_items]
        assert [row[name] for name in ("kappa", "low", "high", "pvalue", "fleiss", "items")] == expected
        assert kappa.parts is not None
        assert row["vote_share"] == float(kappa.parts.C["yes"])
        assert row["n_suggested"] == kappa.parts.L["yes"] * kappa.n_items
        pvalues.append(test.pvalue)
    ordered = sorted(zip(pvalues, names, strict=True), key=lambda pair: pair[0])
    least = 0.0
    for place, (pvalue, category) in enumerate(ordered):  # Holm's method
        least = max(least, min(1.0, (len(names) - place) * pvalue))
        assert rows[category]["pvalue_holm"] == least
    kappas = found.table.column("kappa")
    assert kappas == sorted(kappas)


@pytest.mark.parametrize("seed", range(3))
def test_table_equals_yes_no_data_of_each_category(seed: int) -> None:
    votes, suggested = drawn(seed=seed)
    check(dhkappa.audit(votes, suggested, multilabel=True), votes, suggested, NAMES)


def _json(cell: Cell) -> str | None:
    return None if cell is None else json.dumps(cell)


def _text(cell: Cell) -> str | None:
    return None if cell is None else " | ".join(cell) or "|"


def test_every_notation_gives_the_same() -> None:
    votes, suggested = drawn()
    expected = dhkappa.audit(votes, suggested, multilabel=True).to_dict()
    for write, how in ((_json, "json"), (_text, "|"), (lambda cell: cell and set(cell), True)):
        empty = [[cell if not cell else write(cell) for cell in row] for row in votes]
        cells: list[Any] = [[_json(cell) if cell == [] and how == "json" else cell for cell in row] for row in empty]
        labels = [cell if not cell else write(cell) for cell in suggested]
        assert dhkappa.audit(cells, labels, multilabel=how).to_dict() == expected


COLUMNS = ["w", "x", "y", "z"]


def _columns(votes: list[list[Cell]], suggested: list[Cell]) -> dict[str, Any]:
    return {name: [row[place] for row in votes] for place, name in enumerate(COLUMNS)} | {"llm": suggested}


def _tables(columns: dict[str, Any], folder: Path) -> dict[str, Any]:
    arrow = pa.table({name: pa.array(values, pa.list_(pa.string())) for name, values in columns.items()})
    path = folder / "lists.jsonl"
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows), encoding="utf-8")
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.List(pl.String)))
    arrays = {
        name: [None if cell is None else np.array(cell, object) for cell in values] for name, values in columns.items()
    }
    return {
        "pandas": pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()}),
        "pandas arrays": pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in arrays.items()}),
        "pandas arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": frame,
        "polars lazy": frame.lazy(),
        "pyarrow": arrow,
        "duckdb": duckdb.connect().from_arrow(arrow),
        "file": path,
    }


def test_columns_of_lists(tmp_path: Path) -> None:
    votes, suggested = drawn()
    for engine, table in _tables(_columns(votes, suggested), tmp_path).items():
        found = dhkappa.audit(table, "llm", annotators=COLUMNS, multilabel=True)
        check(found, votes, suggested, NAMES)
        assert found.labelers == ("llm",), engine
        own = found.audits["bug"]
        assert own.kappas["llm"].exact == by_hand(votes, suggested, "bug").exact
        assert own.annotators().column("annotator") == COLUMNS


def test_long_table_with_items() -> None:
    votes, suggested = drawn()
    rows = [
        (item, who, _json(cell))
        for item, row in enumerate(votes)
        for who, cell in zip(COLUMNS, row, strict=True)
        if cell is not None
    ]
    table = pd.DataFrame(rows, columns=["item", "annotator", "label"])
    items = pd.DataFrame({"item": range(len(votes)), "suggested": [_json(cell) for cell in suggested]})
    check(dhkappa.audit(table, items=items, multilabel="json"), votes, suggested, NAMES)


def test_several_labelers_weights_and_strata() -> None:
    votes, first = drawn()
    second = drawn(seed=9)[1]
    weights, strata = [1.0 + place % 3 for place in range(60)], [*"xy"] * 30
    found = dhkappa.audit(votes, {"a": first, "b": second}, multilabel=True, sample_weight=weights, strata=strata)
    assert len(found.table) == 2 * len(NAMES)
    for name, labels in (("a", first), ("b", second)):
        for category in NAMES:
            lists = [answers(row, category) for row in votes]
            kappa = dhkappa.dh_kappa(lists, answers(labels, category), sample_weight=weights, strata=strata)
            assert found.kappas[name][category].exact == kappa.exact
            assert found.kappas[name][category].confidence_interval() == kappa.confidence_interval()
    assert found.audits["bug"].comparison is not None


def test_empty_sets_are_votes_and_empty_text_is_missing() -> None:
    found = dhkappa.audit([["a", "[]", ""], ["a", ";", None], ["", " ", "a;b"]], ["a", "[]", "b"], multilabel=";")
    kappa = dhkappa.dh_kappa([["yes", "no"], ["yes", "no"], ["yes"]], ["yes", "no", "no"])
    assert found.kappas["labeler"]["a"].exact == kappa.exact
    assert found.kappas["labeler"]["a"].excluded == kappa.excluded


def test_notes_say_how_many_items_were_excluded() -> None:
    votes: list[list[Cell]] = [[["a"], ["a", "b"]], [["b"], []], [["a"], None], [["b"], ["b"]]]
    whole: list[Cell] = [["a"], ["b"], ["a"], []]
    part: list[Cell] = [["a"], None, ["a"], []]
    for labels, expected in (
        ({"x": whole, "y": whole}, ["1 item excluded: it has one vote."]),
        (
            {"x": whole, "y": part},
            [
                "x: 1 item excluded: it has one vote.",
                "y: 2 items excluded: 1 with one vote, 1 with no suggested label.",
            ],
        ),
    ):
        found = dhkappa.audit(votes, labels, multilabel=True)
        assert [note.text for note in found.notes if note.code == "items-excluded"] == expected
        for name, own in found.kappas.items():
            for category, kappa in own.items():
                assert kappa.excluded == by_hand(votes, labels[name], category).excluded
    none = dhkappa.audit(votes[:2], whole[:2], multilabel=True)
    assert "items-excluded" not in {note.code for note in none.notes}


def test_rules_missing_and_categories_apply_to_the_labels_in_cells() -> None:
    votes = [["Bug;NA", "bug "], ["1;bug", "billing"], ["NA", "bug"], ["bug", "bug;billing"]]
    options: dict[str, Any] = {"normalize": "case", "map": {"1": "billing"}, "missing": ["na"]}
    found = dhkappa.audit(votes, ["bug", "billing", "bug", "[]"], multilabel=";", **options)
    clean: list[list[Cell]] = [
        [["bug"], ["bug"]],
        [["billing", "bug"], ["billing"]],
        [None, ["bug"]],
        [["bug"], ["bug", "billing"]],
    ]
    check(found, clean, [["bug"], ["billing"], ["bug"], []], ["bug", "billing"])
    assert {note.code for note in found.notes} == {"items-excluded", "labels-normalized", "labels-mapped", "multilabel"}
    declared = ["zebra", "bug", "billing"]
    assert dhkappa.audit(votes, ["bug"] * 4, multilabel=";", categories=declared, **options).categories == tuple(
        declared
    )
    with expect_error("undeclared-label"):
        dhkappa.audit(votes, ["bug"] * 4, multilabel=";", categories=["bug"], **options)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.lists(st.text(max_size=4) | st.integers(0, 3), max_size=3), min_size=2, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_hostile_labels_in_lists(votes: list[list[Any]]) -> None:
    suggested = [row[0] for row in votes]

    def tidy(cell: list[Any]) -> list[Any]:
        return [one for label in cell if (one := label.strip() if isinstance(label, str) else label) != ""]

    names = {label for row in votes for cell in row for label in tidy(cell)}
    if {str(name) for name in names if not isinstance(name, str)} & {name for name in names if isinstance(name, str)}:
        return  # 1 and "1" are refused
    found = dhkappa.audit(votes, suggested, multilabel=True)
    assert set(found.categories) == names
    for category in names:
        clean = [[tidy(cell) for cell in row] for row in votes]
        kappa = by_hand(clean, [tidy(cell) for cell in suggested], category)
        assert found.kappas["labeler"][category].exact == kappa.exact


@pytest.mark.parametrize(
    "cell", ["[1", "{}", "[[1]]", "[1.5]", "[" * 100_000, "a", LIST_MARK, LIST_MARK + "{}", "[NaN]x"]
)
def test_hostile_json_is_refused(cell: str) -> None:
    with expect_error("not-a-label-set"):
        dhkappa.audit([[cell, "[]"]], ["[]"], multilabel="json")


def test_a_thousand_categories() -> None:
    names = [f"category {place}" for place in range(1_000)]
    draw = random.Random(2)
    truths = [names[first : first + 10] for first in range(0, 1_000, 10)]
    votes = [[draw.sample([*truth, draw.choice(names)], 9) for _ in range(3)] for truth in truths]
    found = dhkappa.audit(votes, truths, multilabel=True, progress=False)
    used = {label for row in votes for cell in row for label in cell} | {label for cell in truths for label in cell}
    assert set(found.categories) == used
    assert len(used) == 1_000
    for category in names[:5]:
        assert found.kappas["labeler"][category].exact == by_hand(votes, truths, category).exact


def test_results_are_plain_and_say_what_was_done() -> None:
    votes, suggested = drawn()
    found = dhkappa.audit(votes, suggested, multilabel=True)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["table"][0]["category"] in NAMES
    assert "multilabel" in {note.code for note in found.notes}
    assert "multilabel" in {note.code for note in found.audits["bug"].notes}
    assert found.summary in repr(found).replace("\n", " ")
    assert found.audits["bug"] is found.audits["bug"]
    assert len(found.audits) == len(NAMES)
    with expect_error("category-not-found", "category"):
        found.audits["bag"]


@pytest.mark.parametrize("call", [dhkappa.dh_kappa, dhkappa.compare, dhkappa.tally, dhkappa.Tally().update])
def test_other_functions_refuse_sets(call: Any) -> None:
    with expect_error("option-not-supported", "multilabel"):
        call([["a;b", "a"]], {"x": ["a"], "y": ["b"]} if call is dhkappa.compare else ["a"], multilabel=";")


def test_agreement_weights_are_refused() -> None:
    with expect_error("option-not-supported", "weights"):
        dhkappa.audit([["a;b", "a"]], ["a"], multilabel=";", weights="linear", categories=["a", "b"])


def _cells(cells: list[Cell]) -> list[str | None]:
    return [None if cell is None else ";".join(cell) or "[]" for cell in cells]


PLAIN = ["bug", "billing", "how to", "login"]


def _problems(votes: list[list[Any]], suggested: Any, how: str = ";", **options: Any) -> dict[str, str]:
    """Return the severity of each problem, the same from the audit and the check."""
    given: Any = np.array([[cell or "" for cell in row] for row in votes], object)
    found = dhkappa.audit(given, suggested, multilabel=how, progress=False, **options)
    checked = dhkappa.Dataset(given, suggested, multilabel=how).check()
    assert [one.message for one in found.problems] == [one.message for one in checked.problems]
    assert [one["code"] for one in found.to_dict()["problems"]] == [one.code for one in found.problems]
    assert all(one.code in repr(found) for one in found.problems if one.severity != "info")
    assert found.audits[found.categories[0]].problems == found.problems
    return {one.code: one.severity for one in found.problems}


def _text_data(n: int = 200, seed: int = 0) -> tuple[list[list[str | None]], list[str | None]]:
    votes, suggested = drawn(n, 3, PLAIN, seed)
    return [_cells([cell or [] for cell in row]) for row in votes], _cells([cell or [] for cell in suggested])


@pytest.mark.parametrize("seed", range(5))
def test_clean_sets_have_no_problems(seed: int) -> None:
    assert _problems(*_text_data(seed=seed)) == {}


def test_problems_of_sets() -> None:
    votes, suggested = _text_data()
    first = [row[0] for row in votes]
    upper = [[one and one.replace("bug", "BUG"), *others] for one, *others in votes]
    assert _problems(upper, suggested) == {"category-variants": "error"}
    missing = [["N/A" if place % 4 == 0 else one, *others] for place, (one, *others) in enumerate(votes)]
    assert _problems(missing, suggested) == {"looks-missing": "error"}
    backwards = [one and ";".join(reversed(one.split(";"))) for one in first]
    assert _problems(votes, backwards) == {"labeler-equals-annotator": "warning"}
    majority = [
        ";".join(name for name in PLAIN if sum(name in (one or "") for one in row) > 1) or "[]" for row in votes
    ]
    assert _problems(votes, majority) == {"labels-from-votes": "warning"}
    codes = [
        (one and "".join(str(PLAIN.index(part)) + ";" for part in one.split(";") if part in PLAIN)) or one
        for one in suggested
    ]
    assert _problems(votes, codes) == {"labels-not-in-votes": "error"}
    assert "looks-multilabel" in _problems(votes, [one and one.replace(";", "|") for one in suggested])
    assert _problems(votes, suggested, "|") == {"looks-multilabel": "error"}
    half = [one if place % 2 else "" for place, one in enumerate(suggested)]
    assert _problems(votes, half) == {"labeler-abstains": "warning"}
    assert _problems(votes[:10], suggested[:10]) == {"too-few-items": "warning"}


def test_a_column_that_is_no_annotator() -> None:
    votes, suggested = _text_data()
    table = pd.DataFrame(votes, columns=["ann_1", "ann_2", "ann_3"]).assign(
        suggested=suggested, ann_note=["ok;seen"] * 200
    )
    found = dhkappa.Dataset(table, multilabel=";").check().problems  # by its values, and by its name
    assert [(one.code, one.severity) for one in found] == [("not-annotators", "error"), ("not-annotators", "warning")]
    assert {one.examples for one in found} == {("ann_note",)}


def test_errors_block_the_verdict_unless_they_are_accepted() -> None:
    votes, suggested = _text_data()
    upper = [[one and one.replace("bug", "BUG"), *others] for one, *others in votes]
    found = dhkappa.audit(upper, {"llm": suggested}, multilabel=";", progress=False)
    assert found.summary.startswith("Cannot judge llm: 'bug', 'BUG' differ only in case")
    assert found.audits["bug"].verdict().code == "data-problem"
    accepted = dhkappa.audit(upper, {"llm": suggested}, multilabel=";", progress=False, allow=["category-variants"])
    assert "llm is better than random labels in" in accepted.summary
    assert accepted.problems[0].accepted
    with expect_error("unknown-problem", "allow"):
        dhkappa.audit(upper, {"llm": suggested}, multilabel=";", allow=["typo"])


def test_check_says_how_cells_hold_sets() -> None:
    votes, suggested = _text_data()
    for how, words in ((";", "separated by ;"), ("json", "as JSON lists"), (True, "as lists")):
        cells = [[list(filter(None, (one or "").replace("[]", "").split(";"))) for one in row] for row in votes]
        data: Any = [[json.dumps(one) for one in row] for row in cells] if how == "json" else cells
        checked = dhkappa.Dataset(
            votes if how == ";" else data, suggested if how == ";" else None, multilabel=how
        ).check()
        assert f"Cells hold sets of labels, {words}." in checked.understood()
        number = {name: sum(name in one for row in cells for one in row) for name in PLAIN}
        assert dict(checked.categories) == number


def test_markdown_shows_problems_above_the_table() -> None:
    votes, suggested = _text_data()
    text = dhkappa.audit([["N/A", *row] for row in votes], suggested, multilabel=";", progress=False).to_markdown()
    assert (
        text.index("> **Error:** 'N/A' is a missing value")
        < text.index("Cannot judge labeler")
        < text.index("| category")
    )
