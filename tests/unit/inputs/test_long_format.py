"""Long format: a table is checked and counted once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dhkappa
from dhkappa.inputs.backends import Frame
from dhkappa.inputs.files import open_source
from dhkappa.inputs.long_format import long_table
from dhkappa.inputs.tables import VoteTable, open_votes


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of every query that runs in an engine."""
    found: list[list[str]] = []
    run = Frame.fetch

    def fetch(self: Frame, query: Any) -> dict[str, list[Any]]:
        found.append(query.collect_schema().names())
        return run(self, query)

    monkeypatch.setattr(Frame, "fetch", fetch)
    return found


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    votes, items = tmp_path / "annotations.csv", tmp_path / "items.csv"
    rows = [
        f"{item},{who},{label}" for item in range(20) for who, label in zip("pqr", "abbaab"[item % 3 :], strict=False)
    ]
    votes.write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    items.write_text("\n".join(["item,suggested_llm", *(f"{item},{'ab'[item % 2]}" for item in range(20))]) + "\n")
    return votes, items


def test_an_audit_takes_at_most_eight_queries(files: tuple[Path, Path], queries: list[list[str]]) -> None:
    votes, items = files
    found = dhkappa.audit(votes, items=items)
    assert found.kappas["llm"].n_items == 20
    assert len(queries) <= 8
    assert len({tuple(query) for query in queries}) >= len(queries) - 1


def test_wide_format_is_checked_once(tmp_path: Path, queries: list[list[str]]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,suggested,ann_1,ann_2\n1,x,x,x\n2,x,y,y\n3,y,y,x\n")
    dhkappa.audit(path, item="item")
    assert len(queries) <= 4


def opened(path: Path, **given: Any) -> VoteTable:
    keywords: Any = given
    found = open_votes(
        open_source(path),
        keywords,
        suggested=None,
        counts=None,
        sample_weight=None,
        strata=None,
        labelers="none",
    )
    assert found is not None
    return found


def test_labels_are_counted_once_for_each_set_of_missing_labels(
    files: tuple[Path, Path], queries: list[list[str]]
) -> None:
    table = opened(files[0])
    first = long_table(table, ())
    n = len(queries)
    assert long_table(table, []) is first
    assert len(queries) == n
    assert first.label_counts == {"a": 26, "b": 34}
    assert long_table(table, ["a"]).label_counts == {"b": 34}
    assert first.n_rows == 60


def test_first_and_last_votes_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label\n1,p,a\n1,p,b\n1,q,b\n2,p,\n2,p,a\n")
    assert long_table(opened(path, duplicates="first"), ()).label_counts == {"a": 2, "b": 1}
    assert long_table(opened(path, duplicates="last"), ()).label_counts == {"a": 1, "b": 2}
