"""Names of slices: values as text, dates by day, week and month."""

from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dhkappa.core.slice_names import Cut, named_values, parse_cut, plain_value, shown_slice, sort_key
from expect import expect_error

EAST = timezone(timedelta(hours=14))


class Color(Enum):
    RED = 1


def names(values: list[Any], unit: str | None = None) -> Any:
    return named_values(Cut("x", unit), values)


def test_values_as_text() -> None:
    values = ["en", 3, 3.0, 2.5, True, Color.RED, np.int64(7), None, "", float("nan"), pd.NA, pd.NaT]
    texts, unit, chosen = names([plain_value(value) for value in values])
    assert texts == ["en", "3", "3", "2.5", "True", "RED", "7", None, None, None, None, None]
    assert (unit, chosen) == (None, False)
    with expect_error("mixed-label-types"):
        names(["1", 1])
    with expect_error("not-a-label", "slices"):
        plain_value(["en"])


@pytest.mark.parametrize(
    "value",
    [
        date(2026, 11, 9),
        datetime(2026, 11, 9, 23, 59),
        datetime(2026, 11, 10, 13, 30, tzinfo=EAST),
        datetime(2026, 11, 9, 23, 30, tzinfo=UTC),
        np.datetime64("2026-11-09T23:30"),
        pd.Timestamp("2026-11-09 23:30", tz="Asia/Tokyo"),
        "2026-11-09",
        "2026-11-09T23:30:00-11:00",
        "2026-11-09 00:30:00.123Z",
    ],
)
def test_days_in_utc_or_as_written(value: Any) -> None:
    for unit, name in (("day", "2026-11-09"), ("week", "2026-11-09"), ("month", "2026-11")):
        assert names([value], unit) == ([name], unit, False)
    assert names([value, None]) == (["2026-11-09", None], "day", True)


def test_weeks_are_those_of_iso() -> None:
    days = [date(2019, 12, 25) + timedelta(days=k) for k in range(800)]
    texts, _, _ = names(days, "week")
    for day, text in zip(days, texts, strict=True):
        monday = date.fromisoformat(text)
        assert monday.isoweekday() == 1
        assert monday.isocalendar()[:2] == day.isocalendar()[:2]


def test_many_days_are_months() -> None:
    days = [date(2026, 1, 1) + timedelta(days=k) for k in range(61)]
    assert names(days[:60])[1] == "day"
    texts, unit, chosen = names(days)
    assert (sorted(set(texts)), unit, chosen) == (["2026-01", "2026-02", "2026-03"], "month", True)


def test_text_that_is_not_all_dates() -> None:
    assert names(["2026-11-09", "2026-11-09x"]) == (["2026-11-09", "2026-11-09x"], None, False)
    assert names([None]) == ([None], None, False)
    for value in ("2026-11-09x", "2026-13-01", 20261109):
        with expect_error("not-a-date", "slices"):
            names([value], "day")
    for text in ("2026-02-30", "0000-00-00", "1234-56-78"):  # written like dates
        assert names([text, "2026-11-09"]) == ([text, "2026-11-09"], None, False)
    with expect_error("not-a-date", "slices"):
        names([datetime(1, 1, 1, tzinfo=EAST)], "day")


def test_columns_with_units() -> None:
    assert parse_cut("created:week") == Cut("created", "week")
    assert parse_cut("created:year") == Cut("created:year")
    assert parse_cut(":week") == Cut(":week")


def test_missing_and_order() -> None:
    assert [shown_slice(text, True) for text in ("(missing)", None, "a")] == ["'(missing)'", "(missing)", "a"]
    assert [shown_slice(text, False) for text in ("en", "en ", "'en '", "a, b", "'")] == [
        "en",
        "'en '",
        """"'en '\"""",
        "a, b",
        '"\'"',
    ]
    rows = [("x, y", "z"), ("x", "y, z"), ("x", "y"), ("x ", "y"), ("'x'", "y")]
    shown = [", ".join(shown_slice(text, False, several=True) for text in row) for row in rows]
    assert len({*shown}) == len(rows)
    assert shown[2] == "x, y"


def test_truth_values_have_one_name() -> None:
    for values in ([True, False, None], ["True", "FALSE", ""], ["true", False, None], [np.bool_(True), "false", None]):
        assert named_values(Cut("ok"), values) == (["true", "false", None], None, False)
    assert named_values(Cut("ok"), ["True", "other"])[0] == ["True", "other"]
    rows = [(None,), ("10",), ("b",), ("9",), ("a",)]
    assert sorted(rows, key=sort_key) == [("9",), ("10",), ("a",), ("b",), (None,)]
