"""Hostile text in labels, items, annotators and column names: every engine returns it unchanged."""

from __future__ import annotations

from typing import Any

import pytest

import dhkappa
from engines import ENGINES, ON_NO_MACHINE, Engine, each, only
from shapes import Votes

HOSTILE = {
    "quotes": "it's \"quoted\", ''twice''",
    "backslashes": "C:\\new\\table\\\\'",
    "nul": "before\0after",
    "newlines": "one\ntwo\r\nthree\tfour\v",
    "emoji": "👩‍🔬🏳️‍🌈",
    "right-to-left": "\u202e\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd\u202c",
    "long": "10,000 " * 1428 + "1234",
    "sql": "'; DROP TABLE victim; --",
    "sql-double": '"); DROP TABLE "victim"; --',
    "percent": "%s %(name)s %%d",
    "braces": "{} {0} {x!r}",
    "backticks": "a`b``c`",
    "dots": "a.b.c",
    "brackets": "[a].[b]",
    "spaces": "  before and after  ",
    "space": " ",
    "combined": "e\u0301",
    "composed": "\u00e9",
    "upper": "HAM",
    "lower": "ham",
    "dotless": "\u0131",
    "sharp": "ß",
    "zero width": "a\u200bb",
    "parameters": "? :name $1 @x",
    "comment": "/* a */ -- b",
    "star": "*",
    "regex": "^.*$",
    "null": "NULL",
    "nan": "NaN",
    "true": "true",
    "number": "1",
    "formula": "=1+1",
    "mark": "\ufeffbom",
}
CANNOT = {
    ("ibis-postgres", "nul"): "Postgres refuses text with NUL",
    ("ibis-sqlite", "nul"): "SQLite refuses a query with NUL, and Ibis writes labels into it, quoted",
}
CANNOT_NAME = CANNOT | {
    ("duckdb", "nul"): "DuckDB ends names at NUL",
    ("ibis-duckdb", "nul"): "DuckDB ends names at NUL",
    ("ibis-sqlite", "nul"): "SQLite refuses names with NUL",
    ("ibis-postgres", "long"): "Postgres cuts names at 63 bytes",
}


def possible(engine: Engine) -> list[str]:
    return [text for name, text in HOSTILE.items() if (engine.name, name) not in CANNOT]


def hostile_votes(engine: Engine, N: int) -> Votes:
    """Every hostile text as a label and as the name of an item, beside plain ones."""
    labels = possible(engine)
    following = [*labels[1:], labels[0]]
    votes = [[one, one, two, *[None] * (N - 3)] for one, two in zip(labels, following, strict=True)]
    return Votes(labels, [f"ann_{place}" for place in range(N)], votes, {"llm": labels, "rule": following})


@each("layout", ["wide", "wide-many", "long", "long-items", "counted-long"], few=["wide", "long-items"])
def test_labels_and_items(engine: Engine, layout: str) -> None:
    made = hostile_votes(engine, 7 if layout == "wide-many" else 3)
    data, words = made.shape(layout).given(engine)
    found = dhkappa.tally(data, ["llm", "rule"], **words)
    assert found == dhkappa.tally(made.votes, made.suggested)
    assert set(found.categories) == set(possible(engine))


@each("layout", ["wide-many", "long-items"], few=["long-items"])
def test_declared_and_missing_labels(engine: Engine, layout: str) -> None:
    made = hostile_votes(engine, 7 if layout == "wide-many" else 3)
    data, words = made.shape(layout).given(engine)
    labels = possible(engine)
    options: dict[str, Any] = {"categories": labels[:3:-1], "missing": labels[:4]}
    assert dhkappa.tally(data, "llm", **words, **options) == dhkappa.tally(
        made.votes, {"llm": made.suggested["llm"]}, **options
    )


@each("text", list(HOSTILE))
def test_each_label_alone(engine: Engine, text: str) -> None:
    """Says which text it is, where one of all fails."""
    if (engine.name, text) in CANNOT:
        pytest.skip(f"{ON_NO_MACHINE}: {CANNOT[engine.name, text]}")
    label = HOSTILE[text]
    long = {
        "id": ["x", "x", "y", "y"],
        "choice": [label, label, "plain", label],
        "llm": [label, label, "plain", "plain"],
    }
    found = dhkappa.tally(engine.table(long), "llm", item="id", label="choice")
    expected = dhkappa.tally([[label, label], ["plain", label]], {"llm": [label, "plain"]})
    assert found == expected
    assert set(found.categories) == {label, "plain"}


@each("text", list(HOSTILE), few=["quotes", "backslashes", "nul", "dots", "backticks", "braces", "percent", "sql"])
def test_names_of_columns(engine: Engine, text: str) -> None:
    if (engine.name, text) in CANNOT_NAME:
        pytest.skip(f"{ON_NO_MACHINE}: {CANNOT_NAME[engine.name, text]}")
    name = HOSTILE[text]
    expected = dhkappa.tally([["a", "a"], ["b", "a"]], {"llm": ["a", "b"]})
    wide = {name: ["a", "b"], "other": ["a", "a"], "llm": ["a", "b"]}
    assert dhkappa.tally(engine.table(wide), "llm", annotators=[name, "other"]) == expected
    labeled = {"p": ["a", "b"], "other": ["a", "a"], name: ["a", "b"]}
    named = dhkappa.tally([["a", "a"], ["b", "a"]], {name: ["a", "b"]})
    assert dhkappa.tally(engine.table(labeled), name, annotators=["p", "other"]) == named
    assert dhkappa.tally(engine.table(labeled), [name], annotators=["p", "other"]) == named
    if engine.slow:
        return
    votes = engine.table({f"{name} 1": ["x", "x", "y", "y"], name: ["a", "a", "b", "a"], f"{name} 2": [*"pqpq"]})
    items = engine.table({f"{name} 1": ["x", "y"], "llm": ["a", "b"]})
    words = {"item": f"{name} 1", "label": name, "annotator": f"{name} 2"}
    assert dhkappa.tally(votes, "llm", **words, items=items) == expected


def test_counted_categories(engine: Engine) -> None:
    """Names of columns are labels there."""
    names = [text for name, text in HOSTILE.items() if (engine.name, name) not in CANNOT_NAME]
    names = [name for name in names if name not in ("HAM", "Ham")]  # that differ only by case
    counts = {name: [2 * int(place == at) for place in range(len(names))] for at, name in enumerate(names)}
    data = engine.table({**counts, "suggested label": names})
    found = dhkappa.tally(data, "suggested label", counts=names)
    assert found == dhkappa.tally([[name, name] for name in names], {"suggested label": names})


@only([engine for engine in ENGINES if not engine.slow])
def test_names_in_the_audit(engine: Engine) -> None:
    """Items, annotators and labelers are called what they are called."""
    names = possible(engine)
    votes = [["a", "b", "a"] if place % 2 else ["b", "b", "b"] for place in range(len(names))]
    annotators = names[:3]
    cast = [
        (item, who, vote)
        for item, row in zip(names, votes, strict=True)
        for who, vote in zip(annotators, row, strict=True)
    ]
    columns = {name: [row[at] for row in cast] for at, name in enumerate(("id", "who", "choice"))}
    items = {"id": names, "llm": ["a"] * len(names)}
    found = dhkappa.audit(
        engine.table(columns), "llm", item="id", label="choice", annotator="who", items=engine.table(items)
    )
    assert {row["item"] for row in found.review().to_dicts()} <= set(names)
    assert {row["item"] for row in found.review(limit=None).to_dicts()} >= set(names[::2])
    assert {row["annotator"] for row in found.annotators().to_dicts()} == set(annotators)


def test_items_that_look_alike_stay_apart(engine: Engine) -> None:
    names = ["x", "X", "x ", " x", "e\u0301", "\u00e9", "ß", "ss", "1", "01", "1.0", "x\u200b"]
    votes = {"id": [name for name in names for _ in range(2)], "choice": ["a", "b"] * len(names)}
    items = {"id": names, "llm": ["a"] * len(names)}
    found = dhkappa.tally(engine.table(votes), "llm", item="id", label="choice", items=engine.table(items))
    assert found == dhkappa.tally([["a", "b"]] * len(names), {"llm": ["a"] * len(names)})


def test_annotators_that_look_alike_stay_apart(engine: Engine) -> None:
    annotators = ["p", "P", "p ", " p", "e\u0301", "\u00e9"]
    data = engine.table({"id": ["x"] * 6, "who": annotators, "choice": ["a"] * 6, "llm": ["a"] * 6})
    found = dhkappa.tally(data, "llm", item="id", label="choice", annotator="who")
    assert found == dhkappa.tally([["a"] * 6], {"llm": ["a"]})


@each("text", ["quotes", "sql", "nul", "newlines", "braces", "percent", "long"], few=["sql"])
def test_errors_show_it_and_stay_short(engine: Engine, text: str) -> None:
    if (engine.name, text) in CANNOT:
        pytest.skip(f"{ON_NO_MACHINE}: {CANNOT[engine.name, text]}")
    label = HOSTILE[text]
    data = engine.table({"id": ["x", "x"], "choice": [label, "a"], "llm": ["a", "a"]})
    with pytest.raises(dhkappa.DataError) as caught:
        dhkappa.tally(data, "llm", item="id", label="choice", categories=["a", "b"])
    assert repr(label)[:50] in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@only([engine for engine in ENGINES if engine.name in ("duckdb", "ibis-duckdb", "ibis-sqlite", "ibis-postgres")])
def test_nothing_is_dropped(engine: Engine) -> None:
    label = HOSTILE["sql"]
    victim = engine.table({"kept": ["here"]})
    name = victim.alias if engine.name == "duckdb" else victim.get_name()
    attack = label.replace("victim", name)
    data = engine.table({"id": [attack, attack], attack: [attack, "a"], "llm": [attack, attack]})
    found = dhkappa.tally(data, "llm", item="id", label=attack)
    assert found == dhkappa.tally([[attack, "a"]], {"llm": [attack]})
    rows = victim.fetchall() if engine.name == "duckdb" else victim.to_pyarrow().to_pylist()
    assert len(rows) == 1
