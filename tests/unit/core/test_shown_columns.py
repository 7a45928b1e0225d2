"""Columns of the data in tables of items: their place, their names, and when they are fetched."""

from collections.abc import Sequence
from typing import Any

from dhkappa.core.shown_columns import ShownColumns, with_item_columns
from dhkappa.table import Table


def shown_of(*names: str) -> tuple[ShownColumns, list[list[Any]]]:
    asked: list[list[Any]] = []

    def fetch(items: Sequence[Any]) -> dict[Any, tuple[str, ...]]:
        asked.append(list(items))
        return {item: tuple(f"{name} of {item}" for name in names) for item in items if item != "unknown"}

    return ShownColumns(names, fetch), asked


def test_columns_follow_the_item() -> None:
    shown, asked = shown_of("text", "url")
    table = Table({"rank": [1, 2, 3, 4], "item": ["x", "unknown", "y", "x"], "votes": [1, 2, 3, 4]}, title="Title")
    found = with_item_columns(table, shown)
    assert found.names == ("rank", "item", "text", "url", "votes")
    assert found.column("text") == ["text of x", None, "text of y", "text of x"]
    assert (found.title, found.shown) == ("Title", ("text", "url"))
    assert found.where(lambda row: row["rank"] > 1).shown == ("text", "url")
    assert asked == [["x", "unknown", "y"]]
    with_item_columns(table, shown)
    assert asked == [["x", "unknown", "y"], ["unknown"]]


def test_names_that_are_taken() -> None:
    shown, _ = shown_of("Votes", "votes", "item", "why", "text")
    table = Table({"item": ["x"], "votes": [1], "item_item": [2]})
    found = with_item_columns(table, shown)
    assert found.shown == ("item_Votes", "item_item_votes", "item_item_item", "item_why", "text")
    assert len({name.casefold() for name in found.names}) == len(found.names) == 8
    assert found.column("votes") == [1]


def test_tables_without_items_and_without_columns() -> None:
    table = Table({"item": ["x"]})
    for shown in (None, ShownColumns((), lambda items: {})):
        assert with_item_columns(table, shown) is table
    labelers = Table({"labeler": ["x"]})
    assert with_item_columns(labelers, shown_of("text")[0]) is labelers
