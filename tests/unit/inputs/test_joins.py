"""Ids of two tables: why they do not match, and times with and without a time zone."""

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

from dhkappa import Dataset, audit, dh_kappa
from dhkappa.inputs import joins
from dhkappa.inputs.joins import diagnose_ids
from expect import expect_error

PAIRS: dict[str, tuple[list[Any], list[Any], str]] = {
    "case": (["a-1", "b-2"], ["A-1", "B-2"], "case is ignored"),
    "blanks": ([" a", "b "], ["a", "b"], "blanks are ignored"),
    "no-break space": (["a\u00a0b"], ["a b"], "blanks are ignored"),
    "unicode": (["caf\u00e9"], ["cafe\u0301"], "Unicode forms are unified (NFKC)"),
    "zeros": (["T-7", "T-12"], ["T-007", "T-012"], "leading zeros are removed"),
    "decimals": (["7.0", "8.0"], ["7", "8"], "whole numbers are written without decimals"),
    "number": ([7, 8], ["7", "8"], "all are written as text"),
    "extension": (["1", "2"], ["1.png", "2.png"], "the end '.png' is removed"),
    "folder": (["img/1.png", "img/2.png"], ["1.png", "2.png"], "the beginning 'img/' is removed"),
    "all at once": (["A 01"], ["a1"], "case, blanks and Unicode forms are ignored, and leading zeros removed"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_diagnosis_names_the_change_in_both_directions(name: str) -> None:
    left, right, change = PAIRS[name]
    for one, other in ((left, right), (right, left)):
        found = diagnose_ids(one, other)
        assert found.startswith(f"They match if {change}: ")
        assert repr(one[0]) in found
        assert repr(other[0]) in found


@pytest.mark.parametrize("name", PAIRS)
def test_the_line_of_pandas_makes_ids_match(name: str) -> None:
    left, right, _ = PAIRS[name]
    votes = pd.DataFrame({"item": left * 2, "label": ["x", "y"] * len(left)}, dtype=object)
    items = pd.DataFrame({"item": right, "suggested": ["x"] * len(right)}, dtype=object)
    [problem] = Dataset(votes, items=items).check().problems if name != "number" else [None]
    hint = joins._in_pandas(diagnose_ids(left, right), "item") if problem is None else problem.fix
    line = hint.partition("in pandas: ")[2] or hint
    found = []
    for df in (votes, items):
        exec(line, {"df": df})
        found.append({*df["item"]})
    assert found[0] == found[1]


def test_diagnosis_shows_three_pairs_and_counts_the_rest() -> None:
    names = [f"t{place}" for place in range(9)]
    found = diagnose_ids(names, [name.upper() for name in names])
    assert found.endswith("'t0' and 'T0', 't1' and 'T1', 't2' and 'T2', ....")
    assert diagnose_ids([*names, "x"], [name.upper() for name in names]).startswith("9 of 10 match if case")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["x", "y"], ["p", "q"]),
        ([11, 12, 13], [1, 2, 3]),  # other numbers, not longer ones
        (["a"], ["a"]),
        ([], ["a"]),
        (["ab", "cd", "ef", "gh"], ["b", "p", "q", "r"]),  # one of four, by chance
        (["A", None], ["A", "B"]),
    ],
)
def test_no_diagnosis(left: list[Any], right: list[Any]) -> None:
    assert diagnose_ids(left, right) == ""


def _long(items: list[Any]) -> pd.DataFrame:
    rows = [(item, who, label) for item, label in zip(items, "ab", strict=True) for who in "pq"]
    return pd.DataFrame(rows, columns=["item", "annotator", "label"])


def test_no_item_in_common_is_an_error_even_if_items_may_be_unlisted() -> None:
    items = pd.DataFrame({"item": ["X", "Y"], "suggested": ["a", "b"]})
    with expect_error("ids-not-joined", "items") as caught:
        dh_kappa(_long(["x", "y"]), items=items, unlisted="unlabeled")
    assert "case is ignored" in caught.value.hint
    one = pd.DataFrame({"item": ["x", "Y"], "suggested": ["a", "b"]})
    assert dh_kappa(_long(["x", "y"]), items=one, unlisted="unlabeled").excluded.no_label == 1
    bare = pd.DataFrame({"item": ["x", "y"], "suggested": [None, None]})
    assert dh_kappa(_long(["x", "y"]), items=bare, unlisted="unlabeled").excluded.no_label == 2


def test_times_of_python_objects() -> None:
    naive = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    items = {"item": pd.Series([time.replace(tzinfo=UTC) for time in naive], dtype=object), "suggested": ["a", "b"]}
    votes = _long(naive).astype({"item": object})
    with expect_error("mixed-time-zones", "item"):
        dh_kappa(votes, items=pd.DataFrame(items))


def test_units_of_time_are_unified() -> None:
    times = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    votes = pl.from_pandas(_long(times)).with_columns(pl.col("item").cast(pl.Datetime("ms")))
    items = pl.DataFrame({"item": times, "suggested": ["a", "b"]}).with_columns(pl.col("item").cast(pl.Datetime("ns")))
    assert dh_kappa(votes, items=items).value == 1


def test_names_of_times_in_duckdb_are_unambiguous() -> None:
    query = """
        SELECT {} AS item, a AS annotator, 'a' AS label, 'a' AS suggested
        FROM (VALUES ('p'), ('q')) t(a) UNION ALL SELECT NULL, 'p', NULL, NULL WHERE false"""
    cases = {
        "TIMESTAMPTZ '2024-06-01 00:00:00+02'": datetime(2024, 5, 31, 22, tzinfo=UTC),
        "TIMESTAMP '2024-06-01'": datetime(2024, 6, 1),
        "TIMESTAMP_NS '2024-06-01 00:00:00.000000001'": "2024-06-01 00:00:00.000000001",
        "DATE '2024-06-01'": date(2024, 6, 1),
    }
    for text, expected in cases.items():
        found = audit(duckdb.sql(query.format(text)), progress=False).review()
        assert found.column("item") == [expected]
    shown = audit(duckdb.sql(query.format(next(iter(cases)))), progress=False).review().to_json()
    assert shown[0]["item"] == "2024-05-31 22:00:00+00:00"


def test_an_error_names_one_instant_whatever_the_zone_of_duckdb() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    rows = connection.sql("""
        FROM (VALUES (TIMESTAMPTZ '2024-06-01 00:00:00+00', 'p', 'a', 'a'),
                     (TIMESTAMPTZ '2024-06-01 00:00:00+00', 'q', 'a', 'b')) t(item, annotator, label, suggested)""")
    with expect_error("item-column-varies", "suggested") as caught:
        dh_kappa(rows)
    assert "item 2024-06-01 00:00:00+00:00:" in caught.value.message


SCRIPT = """
import sys, duckdb
from dhkappa import DataError, dh_kappa, read
votes, aware, naive = sys.argv[1:]
found = [dh_kappa(read(votes, items=aware)).exact]
try:
    dh_kappa(read(votes, items=naive))
except DataError as error:
    found.append(error.code)
print(*found)
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"])
def test_the_zone_of_the_machine_does_not_decide_a_join(tmp_path: Path, zone: str) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in ("votes", "aware", "naive")]
    zones = [UTC, timezone(timedelta(hours=2)), None]
    for path, own in zip(paths, zones, strict=True):
        times = [datetime(2024, 6, day, 12, tzinfo=UTC) for day in (1, 2)]
        times = [time.replace(tzinfo=None) if own is None else time.astimezone(own) for time in times]
        table = _long(times) if path.stem == "votes" else pd.DataFrame({"item": times, "suggested": ["a", "b"]})
        table.to_parquet(path)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TZ": zone},
    )
    assert run.stdout.split() == ["1", "mixed-time-zones"]


def test_swapped_tables() -> None:
    votes, items = _long(["x", "y"]), pd.DataFrame({"item": ["x", "y"], "suggested": ["a", "b"]})
    options: list[dict[str, Any]] = [
        {},
        {"label": "label"},
        {"item": "item", "label": "label", "annotator": "annotator"},
    ]
    for keywords in options:
        with expect_error("tables-swapped", "items"):
            dh_kappa(items, items=votes, **keywords)
    with expect_error("tables-swapped", "items"):  # both have all columns
        dh_kappa(items.assign(label="a"), items=votes.assign(suggested="a"))
    with expect_error("duplicate-items", "items"):  # repeated in both
        dh_kappa(votes, items=pd.concat([items, items]))
    with expect_error("format-unknown"):  # nothing is repeated
        dh_kappa(items, items=items)


def test_removed_votes_are_counted() -> None:
    votes = pd.concat([_long(["x", "y"]), _long(["x", "y"]).assign(label="b")])
    items = pd.DataFrame({"item": ["x", "y"], "suggested": ["a", "b"]})
    data = Dataset(votes, items=items, duplicates="last")
    assert data.table is not None
    removed = data.table.removed
    assert removed is not None
    assert (removed.n, removed.n_before, removed.kept) == (4, 8, "last")
    assert removed.examples == (("x", "p"), ("x", "q"), ("y", "p"))
    assert dh_kappa(data).n_votes == 4
    once = Dataset(_long(["x", "y"]), items=items, duplicates="last")
    assert once.table is not None
    assert once.table.removed is None
    assert once.counts.source_notes == ()
