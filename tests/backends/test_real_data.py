"""Real annotation data: every engine counts what plain lists give."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from engines import Engine, each
from shapes import of_lists

pytestmark = pytest.mark.slow

SETS = (
    "davidson",
    "dynasent_r1_dev",
    "dynasent_sst_dev_revalidated",
    "dices_350",
    "tweeteval_annotated",
    "labelerrors_imagenet",
    "labelerrors_cifar100",
    "crows_pairs",
)
NUMBERS = ("count", "hate_speech", "offensive_language", "neither")


@cache
def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tables(engine: Engine, folder: Path) -> tuple[Any, dict[str, Any], list[list[str]]]:
    """Return the table of votes, the column roles, and the votes on each item as lists."""

    def load(name: str) -> Any:
        rows = rows_of(folder / name)
        return engine.table(
            {
                column: [int(row[column]) if column in NUMBERS else row[column] or None for row in rows]
                for column in rows[0]
            }
        )

    items = rows_of(folder / "items.csv")
    name = next((name for name in ("annotations.csv", "counts_long.csv") if (folder / name).exists()), None)
    if name is None:
        votes = [[label for label in NUMBERS[1:] for _ in range(int(row[label]))] for row in items]
        return load("items.csv"), {"counts": list(NUMBERS[1:])}, votes
    by_item: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows_of(folder / name):
        by_item[row["item"]] += [row["label"]] * int(row.get("count", 1))
    return load(name), {"items": load("items.csv")}, [by_item[row["item"]] for row in items]


@each("name", SETS, few=["dices_350", "dynasent_sst_dev_revalidated"])
def test_text_labels(engine: Engine, name: str, shared_data: Path) -> None:
    data, keywords, votes = tables(engine, shared_data / name)
    items = rows_of(shared_data / name / "items.csv")
    labelers = [column for column in items[0] if column.startswith("suggested_")]
    suggested = {name.removeprefix("suggested_"): [row[name] or None for row in items] for name in labelers}
    assert dhkappa.tally(data, labelers, **keywords) == of_lists(votes, suggested)


def test_integer_labels(engine: Engine, shared_data: Path) -> None:
    """Labels of tweeteval are numbers, which most readers make integers."""
    rows = rows_of(shared_data / "tweeteval_annotated" / "annotations.csv")
    rows = rows[: 400 if engine.slow else None]
    votes: dict[str, list[Any]] = {
        name: [int(row[name]) if name != "annotator" else row[name] for row in rows] for name in rows[0]
    }
    known = dict.fromkeys(votes["item"])
    beside = [row for row in rows_of(shared_data / "tweeteval_annotated" / "items.csv") if int(row["item"]) in known]
    items = {name: [int(row[name]) for row in beside] for name in beside[0]}
    by_item: dict[int, list[int]] = {item: [] for item in items["item"]}
    for item, label in zip(votes["item"], votes["label"], strict=True):
        by_item[item].append(label)
    found = dhkappa.tally(engine.table(votes), "suggested_llm", items=engine.table(items))
    assert found == of_lists(list(by_item.values()), {"llm": items["suggested_llm"]})
