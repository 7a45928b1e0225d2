"""Unusual data in the report."""

from pathlib import Path

import pandas as pd
import pytest

from dhkappa import audit

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]


def test_annotator_without_shared_items(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    votes = [
        {"item": place, "annotator": who, "label": vote}
        for place, row in enumerate(VOTES)
        for who, vote in zip("pqr", row, strict=True)
    ]
    frame = pd.DataFrame([*votes, {"item": 9, "annotator": "alone", "label": "a"}])
    frame["suggested"] = [dict(enumerate(LABELS)).get(item, "a") for item in frame["item"]]
    found = audit(frame, progress=False)
    row = next(row for row in found.annotators() if row["annotator"] == "alone")
    assert row["agree"] != row["agree"]
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "nan" not in page.split("<script")[0].lower().replace("financ", "")
