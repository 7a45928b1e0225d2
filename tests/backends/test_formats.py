"""The tally of a table of any engine, format and label type equals that of plain lists."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dhkappa
from engines import ENGINES, Columns, Engine, each, only
from expect import expect_error
from shapes import ALPHABETS, FORMATS, Shape, Votes, drawn, drawn_for, of_lists
from strategies import Data, ragged

TEXTUAL = ("text", "category", "enum", "dictionary")
KINDS_BY_FORMAT = [
    (layout, kind) for layout in FORMATS for kind in ALPHABETS if layout != "counted-wide" or kind in TEXTUAL
]
SOME_KINDS_BY_FORMAT = KINDS_BY_FORMAT[::5]  # every format and every type, for slow engines


def tally_of(
    engine: Engine, shape: Shape, kind: str | None = None, suggested: Any = "llm", **options: Any
) -> dhkappa.Tally:
    data, keywords = shape.given(engine, kind)
    return dhkappa.tally(data, suggested, **keywords, **options)


@each("layout,kind", KINDS_BY_FORMAT, few=SOME_KINDS_BY_FORMAT, slow=True)
def test_every_type_in_every_layout(engine: Engine, layout: str, kind: str) -> None:
    made = drawn_for(layout, kind)
    expected = of_lists(made.votes, made.suggested["llm"])
    assert tally_of(engine, made.shape(layout), kind) == expected


def _options(made: Votes, layout: str, choice: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options beside a table, and the same beside lists."""
    llm, both = made.suggested["llm"], dict(made.suggested)
    unused = [] if layout == "counted-wide" else ["zebra"]  # a category has a column there
    ordered = [*unused, *made.categories[::-1]]
    options: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "declared": ({"categories": ordered}, {"suggested": llm, "categories": ordered}),
        "missing": ({"missing": ["spam", "nowhere"]}, {"suggested": llm, "missing": ["spam", "nowhere"]}),
        "sample_weight": ({"sample_weight": "weight"}, {"suggested": llm, "sample_weight": made.sample_weight}),
        "strata": ({"strata": "stratum"}, {"suggested": llm, "strata": made.strata}),
        "labelers": ({"suggested": ["llm", "rule"]}, {"suggested": both}),
        "named": ({"suggested": {"A": "rule", "B": "llm"}}, {"suggested": {"A": both["rule"], "B": llm}}),
        "unlabeled": ({"suggested": None}, {}),
        "everything": (
            {"suggested": ["rule", "llm"], "sample_weight": "weight", "strata": "stratum", "categories": ordered},
            {"suggested": both, "sample_weight": made.sample_weight, "strata": made.strata, "categories": ordered},
        ),
    }
    return options[choice]


CHOICES = ("declared", "missing", "sample_weight", "strata", "labelers", "named", "unlabeled", "everything")
CHOICES_BY_FORMAT = [
    (layout, choice)
    for layout in FORMATS
    for choice in CHOICES
    if layout != "counted-wide" or choice not in ("missing", "unlabeled")  # a category is there that has a column
]
SOME_CHOICES = [("wide", "everything"), ("wide-many", "missing"), ("long", "missing"), ("long-items", "everything")]


@each("layout,choice", CHOICES_BY_FORMAT, few=SOME_CHOICES, slow=True)
def test_every_choice_in_every_layout(engine: Engine, layout: str, choice: str) -> None:
    made = drawn_for(layout)
    on_table, on_lists = _options(made, layout, choice)
    assert tally_of(engine, made.shape(layout), **on_table) == of_lists(made.votes, **on_lists)


def test_a_column_of_counts_is_a_category_without_votes_too(engine: Engine) -> None:
    data = engine.table({"a": [2, 0], "b": [0, 0], "c": [0, 3]})
    found = dhkappa.tally(data, counts=["a", "b", "c"])
    assert found == of_lists(counts=[[2, 0, 0], [0, 0, 3]], categories=["a", "b", "c"])
    assert found.categories == ("a", "b", "c")


OTHER_KINDS = ("int", "float", "bool", "coded int", "enum")


@each("layout,kind", [(one, two) for one in ("wide", "wide-many", "long-items") for two in OTHER_KINDS])
def test_declared_and_missing_labels_of_other_types(engine: Engine, layout: str, kind: str) -> None:
    made = drawn_for(layout, kind)
    labels = made.categories
    options: dict[str, Any] = {"categories": labels[:0:-1], "missing": labels[:1]}
    expected = of_lists(made.votes, made.suggested["llm"], **options)
    assert tally_of(engine, made.shape(layout), kind, **options) == expected


@each("layout", FORMATS)
def test_order_of_rows_and_columns_does_not_matter(engine: Engine, layout: str) -> None:
    made = drawn_for(layout)
    expected = of_lists(made.votes, made.suggested)
    assert tally_of(engine, made.shape(layout).shuffled(1), suggested=["rule", "llm"]) == expected


@pytest.mark.parametrize("parts", [1, 7])
@only([engine for engine in ENGINES if engine.slow])
def test_partitions_do_not_matter(engine: Engine, parts: int) -> None:
    made = drawn()
    data, words = made.shape("long-items").shuffled(3).given(engine)
    data = data.repartition(npartitions=parts) if engine.name == "dask" else data.repartition(parts)
    assert dhkappa.tally(data, "llm", **words) == of_lists(made.votes, made.suggested["llm"])


def test_chunks_of_arrow_do_not_matter() -> None:
    pa = pytest.importorskip("pyarrow")
    made = drawn("dictionary")
    pieces = []
    for first in range(0, 30, 7):  # each with a dictionary of its own
        part = slice(first, first + 7)
        piece = {"llm": made.suggested["llm"][part]}
        piece |= {name: [row[at] for row in made.votes[part]] for at, name in enumerate(made.annotators)}
        pieces.append(pa.table({name: pa.array(values).dictionary_encode() for name, values in piece.items()}))
    data = pa.concat_tables(pieces)
    assert data.column("llm").num_chunks == 5
    expected = of_lists(made.votes, made.suggested["llm"])
    assert dhkappa.tally(data, "llm", annotators="ann_*") == expected


# Many categories, many votes, few of anything.


def many(categories: int, n: int, N: int, seed: int = 0) -> Votes:
    """Votes for very many categories."""
    draw = random.Random(seed)
    labels = [f"c{place}" for place in range(categories)]
    truths = [labels[place % categories] for place in range(n)]
    votes = [[truth if draw.random() < 0.5 else draw.choice(labels) for _ in range(N)] for truth in truths]
    return Votes(
        items=list(range(n)),
        annotators=[f"ann_{place}" for place in range(N)],
        votes=votes,
        suggested={"llm": [truth if draw.random() < 0.8 else draw.choice(labels) for truth in truths]},
    )


@each("layout", ["wide", "wide-many", "long-items", "counted-long"], few=["wide", "long-items"])
def test_more_categories_than_bits(engine: Engine, layout: str) -> None:
    made = many(70, 90, 8 if layout == "wide-many" else 3)
    assert tally_of(engine, made.shape(layout)) == of_lists(made.votes, made.suggested["llm"])


@each("layout", ["wide-many", "long-items", "counted-long"], few=["long-items"])
def test_more_than_a_thousand_categories(engine: Engine, layout: str) -> None:
    made = many(1100, 1100, 7 if layout == "wide-many" else 3)
    assert tally_of(engine, made.shape(layout)) == of_lists(made.votes, made.suggested["llm"])


def test_counts_of_more_bits_than_a_word_has(engine: Engine) -> None:
    """30 categories and 300 votes on an item: 270 bits."""
    made = many(30, 6, 300)
    expected = of_lists(made.votes, made.suggested["llm"])
    assert tally_of(engine, made.shape("counted-long")) == expected
    if not engine.slow:
        assert tally_of(engine, made.shape("long-items")) == expected
        assert tally_of(engine, made.shape("counted-wide")) == expected


def test_an_item_with_ten_thousand_votes(engine: Engine) -> None:
    votes = [["a"] * 9_000 + ["b"] * 1_000, ["a", "b"], ["b", "b", "c"]]
    items = {"id": ["x", "y", "z"], "llm": ["a", "a", "b"]}
    expected = of_lists(votes, items["llm"])
    counted = {"id": [*"xxyyzz"], "choice": [*"ababbc"], "times": [9_000, 1_000, 1, 1, 2, 1]}
    data, beside = engine.table(counted), engine.table(items)
    assert dhkappa.tally(data, "llm", item="id", label="choice", count="times", items=beside) == expected
    if engine.slow:
        return
    rows = [(item, label) for item, labels in zip("xyz", votes, strict=True) for label in labels]
    data = engine.table({"id": [item for item, _ in rows], "choice": [label for _, label in rows]})
    assert dhkappa.tally(data, "llm", item="id", label="choice", items=beside) == expected


@each("layout", FORMATS, few=["wide-many", "long-items"])
def test_tables_without_rows(engine: Engine, layout: str) -> None:
    whole = drawn_for(layout).shape(layout)
    kinds = {"weight": "float", "times": "int"} | dict.fromkeys(whole.keywords.get("counts", ()), "int")
    tables = [
        None
        if columns is None
        else engine.table({name: [] for name in columns}, {**dict.fromkeys(columns, "text"), **kinds})
        for columns in (whole.columns, whole.items)
    ]
    words = dict(whole.keywords) | ({} if tables[1] is None else {"items": tables[1]})
    found = dhkappa.tally(tables[0], "llm", **words)
    assert (found.n_items, found.n_votes) == (0, 0)
    assert dhkappa.dh_kappa(tables[0], "llm", **words).reason


@each("layout", FORMATS, few=["wide", "long-items"])
def test_one_row(engine: Engine, layout: str) -> None:
    made = Votes(["only"], ["ann_0"], [["ham"]], {"llm": ["ham"]})
    assert tally_of(engine, made.shape(layout)) == of_lists([["ham"]], ["ham"])


@each("layout", ["wide", "wide-many", "long", "long-items"], few=["wide", "long"])
def test_columns_of_nulls(engine: Engine, layout: str) -> None:
    N = 8 if layout == "wide-many" else 3
    nobody = Votes(["x", "y"], [f"ann_{k}" for k in range(N)], [[None] * N] * 2, {"llm": [None, None]})
    assert tally_of(engine, nobody.shape(layout), "null") == of_lists(nobody.votes, [None, None])
    somebody = Votes(["x", "y"], nobody.annotators, [[None] * (N - 2) + ["a", "b"]] * 2, {"llm": [None, None]})
    assert tally_of(engine, somebody.shape(layout)) == of_lists(somebody.votes, [None, None])
    labeled = Votes(["x", "y"], nobody.annotators, [[None] * N] * 2, {"llm": ["a", "b"]})
    assert tally_of(engine, labeled.shape(layout)) == of_lists(labeled.votes, ["a", "b"])


def test_items_without_votes_are_counted(engine: Engine) -> None:
    items = engine.table({"id": ["x", "y", "z"], "llm": ["a", "b", "a"]})
    votes = engine.table({"id": ["x", "x"], "choice": ["a", "b"]})
    kappa = dhkappa.dh_kappa(votes, "llm", item="id", label="choice", items=items)
    assert (kappa.n_items, kappa.excluded.no_votes) == (1, 2)


def test_items_of_a_wide_table_need_no_names(engine: Engine) -> None:
    data = engine.table({"id": ["x", None, None], "ann_1": [*"aab"], "ann_2": [*"abb"], "llm": [*"aab"]})
    found = dhkappa.tally(data, "llm", item="id", annotators="ann_*")
    assert found == of_lists([["a", "a"], ["a", "b"], ["b", "b"]], ["a", "a", "b"])


@each("layout", ["long", "long-items"], few=["long"])
def test_annotators_need_no_name(engine: Engine, layout: str) -> None:
    """Without annotator=, the same label twice on an item is two votes."""
    made = drawn_for(layout)
    data, words = made.shape(layout).given(engine)
    del words["annotator"]
    assert dhkappa.tally(data, "llm", **words) == of_lists(made.votes, made.suggested["llm"])


def test_annotators_unknown_in_part(engine: Engine) -> None:
    """Votes of nobody in particular are votes, each on its own."""
    data = engine.table({"id": ["x"] * 4, "who": ["ann", None, None, "bob"], "choice": [*"aaab"], "llm": ["a"] * 4})
    found = dhkappa.tally(data, "llm", item="id", label="choice", annotator="who")
    assert found == of_lists([["a", "a", "a", "b"]], ["a"])


@pytest.mark.parametrize("choice", ["first", "last"])
def test_first_or_last_of_several_votes(engine: Engine, choice: str) -> None:
    columns = {"id": [*"xxxyy"], "who": [*"pqppq"], "choice": ["a", "a", "b", "b", None], "llm": [*"aaabb"]}
    words = {"item": "id", "label": "choice", "annotator": "who", "duplicates": choice}
    if engine.in_memory or engine.name == "polars-lazy":
        expected = [["a", "a"], ["b"]] if choice == "first" else [["a", "b"], ["b"]]
        assert dhkappa.tally(engine.table(columns), "llm", **words) == of_lists(expected, ["a", "b"])
    else:
        with expect_error("no-row-order"):
            dhkappa.tally(engine.table(columns), "llm", **words)


@each("kind", ["text", "int"], few=["text", "int"])
def test_unlisted_items_may_be_taken_without_labels(engine: Engine, kind: str) -> None:
    a, b = ("a", "b") if kind == "text" else (1, 2)
    votes = engine.table({"id": ["x", "x", "y", "y"], "choice": [a, b, b, b]})
    items = engine.table({"id": ["x", "z"], "llm": [a, b]})
    words = {"item": "id", "label": "choice", "items": items, "unlisted": "unlabeled"}
    if engine.name == "dask":
        with expect_error("engine-not-supported", "unlisted"):
            dhkappa.tally(votes, "llm", **words)
        return
    assert dhkappa.tally(votes, "llm", **words) == of_lists([[a, b], [b, b], []], [a, None, b])


# Columns that are understood by what they are called.


BY_NAME: dict[str, tuple[Columns, Columns | None, Mapping[str, Any]]] = {
    "ann_*": ({"ann_1": ["a", "b"], "ann_2": ["a", "a"], "suggested": ["a", "b"]}, None, {}),
    "annotator_*": ({"annotator_x": ["a", "b"], "annotator_y": ["a", "a"], "suggested_llm": ["a", "b"]}, None, {}),
    "long": ({"item": [1, 1, 2, 2], "label": [*"aaba"], "suggested": [*"aabb"]}, None, {}),
    "signed": ({"item": [1, 1, 2, 2], "label": [*"aaba"], "annotator": [*"pqpq"], "suggested": [*"aabb"]}, None, {}),
    "counted": (
        {"item": [1, 2, 2], "label": [*"aba"], "count": [2, 1, 1]},
        {"item": [1, 2], "suggested_x": [*"ab"]},
        {},
    ),
    "glob": ({"v1": ["a", "b"], "v2": ["a", "a"], "x": ["a", "b"]}, None, {"annotators": "v*", "suggested": "x"}),
    "counts": ({"a": [2, 1], "b": [0, 1], "rule": ["a", "b"]}, None, {"counts": "?", "suggested": "rule"}),
}


@each("case", list(BY_NAME), few=["ann_*", "counted"])
def test_columns_are_understood_by_name(engine: Engine, case: str) -> None:
    columns, items, options = BY_NAME[case]
    beside = {} if items is None else {"items": engine.table(items)}
    kappa = dhkappa.dh_kappa(engine.table(columns), **beside, **options)
    expected = dhkappa.dh_kappa([["a", "a"], ["b", "a"]], ["a", "b"])
    assert (kappa.exact, kappa.n_items) == (expected.exact, 2)


# Generated data.


@settings(max_examples=25)
@given(data=ragged(max_items=20, max_votes=9), layout=st.sampled_from(FORMATS), seed=st.integers(0, 9))
def test_generated_votes(near_engine: Engine, data: Data, layout: str, seed: int) -> None:
    labels = [label for label in data.categories if isinstance(label, int)]
    assume(all(abs(label) < 2**53 for label in labels))  # pandas keeps integers beside nulls as floats
    assume(layout != "counted-wide" or (not labels and data.categories))
    N = max(map(len, data.votes), default=0)
    assume(N > 0)
    made = Votes(
        items=[f"i{place}" for place in range(len(data.votes))],
        annotators=[f"ann_{place}" for place in range(N)],
        votes=[[*row, *[None] * (N - len(row))] for row in data.votes],
        suggested={"llm": data.suggested},
    )
    shape = made.shape(layout).shuffled(seed)
    expected = of_lists(made.votes, made.suggested["llm"])
    forgetful = replace(near_engine, _made={})  # tables of thousands of examples would stay
    assert tally_of(forgetful, shape) == expected
