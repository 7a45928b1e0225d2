"""Histories with the kappa of all items so far, against the kappa of the same items in one call."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhkappa
from dhkappa import dh_kappa, simulate

WEEKS = [simulate(n, labelers={"llm": 0.9}, rng=seed) for seed, n in enumerate((20, 40, 60), 1)]


def saved(folder: Path, **options: Any) -> list[Path]:
    paths = []
    for week, sim in enumerate(WEEKS):
        paths.append(folder / f"week{week}.json")
        dhkappa.audit(sim.votes, sim.suggested, **options).save(paths[-1], date=f"2026-11-0{week + 1}")
    return paths


@pytest.mark.parametrize("weights", [None, "linear"])
def test_cumulative_kappa(tmp_path: Path, weights: str | None) -> None:
    options: dict[str, Any] = {"weights": weights, "categories": ["c", "a", "b"]} if weights else {}
    found = dhkappa.history(saved(tmp_path, **options), any_time=True, confidence_level=0.9)
    rows = list(found.cumulative("llm"))
    assert [row["items"] for row in rows] == [20, 60, 120]
    for number, row in enumerate(rows, 1):
        votes = np.concatenate([sim.votes for sim in WEEKS[:number]])
        labels = np.concatenate([sim.suggested["llm"] for sim in WEEKS[:number]])
        kappa = dh_kappa(votes, labels, **options)
        interval = kappa.confidence_interval(0.9, any_time=True)
        assert row["kappa"] == kappa.value
        if number == 1:
            assert math.isnan(row["low"] + row["high"])
            assert row["reason"] == "An interval that holds at every look needs 30 items: got 20."
        else:
            assert (row["low"], row["high"], row["any_time_level"]) == (*interval, interval.any_time_level)
    assert {"any-time", "any-time-random-order"} <= {note.code for note in found.notes}
    assert "any-time-changed" not in {note.code for note in found.notes}
    values = found.to_dict()["labelers"]["llm"]
    assert [row["items"] for row in values["cumulative"]] == [20, 60, 120]


def test_nothing_without_any_time(tmp_path: Path) -> None:
    found = dhkappa.history(saved(tmp_path))
    assert found.so_far == {}
    assert len(found.cumulative("llm")) == 0
    assert found.to_dict()["labelers"]["llm"]["cumulative"] is None


def test_a_labeler_that_is_absent_or_has_changed(tmp_path: Path) -> None:
    paths = saved(tmp_path)
    other = simulate(200, labelers={"llm": 0.35, "rule": 0.9}, rng=9)
    dhkappa.audit(other.votes, other.suggested).save(tmp_path / "last.json", date="2026-11-09")
    found = dhkappa.history([*paths, tmp_path / "last.json"], any_time=True)
    assert [row["items"] for row in found.cumulative("llm")] == [20, 60, 120, 320]
    assert [row["items"] for row in found.cumulative("rule")] == [200]
    (note,) = (note for note in found.notes if note.code == "any-time-changed")
    assert "'llm'" in note.text
    assert "rule" not in note.text
