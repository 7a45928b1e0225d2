"""Slices on the command line: text, Markdown, JSON and the HTML report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhkappa
from cli_files import answer
from command import REPORTS, inside, refused

Capsys = pytest.CaptureFixture[str]
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def written(folder: Path, n: int = 300, languages: tuple[str, ...] = ("en", "de", "fr", "")) -> Path:
    sim = dhkappa.simulate(n, labelers={"llm": 0.8, "rule": 0.6}, annotators=3, rng=2)
    lines = ["item,language,created,suggested_llm,suggested_rule,ann_1,ann_2,ann_3"]
    for k, votes in enumerate(np.array(sim.votes, object).tolist()):
        own = [k, languages[k * 7 % len(languages)], f"2026-{1 + k % 9:02}-{1 + k % 28:02}T10:00:00Z"]
        lines.append(",".join(map(str, [*own, *(sim.suggested[name][k] for name in ("llm", "rule")), *votes])))
    path = folder / "votes.csv"
    path.write_text("\n".join(lines))
    return path


def test_json_and_text(tmp_path: Path, capsys: Capsys) -> None:
    path = written(tmp_path)
    told = answer(inside(capsys, "audit", path, "--by", "language,created:week", "--format", "json").stdout)
    given = dhkappa.audit(path, slices=["language", "created:week"], progress=False)
    slices: Any = told["result"]["slices"]
    assert list(slices) == ["language", "created:week"]
    for column, own in slices.items():
        assert own == {name: json.loads(json.dumps(given.slices(column, name).to_dict())) for name in ("llm", "rule")}
    assert answer(inside(capsys, "audit", path, "--format", "json").stdout)["result"]["slices"] == {}
    text = inside(capsys, "audit", path, "--by", "language", "--by", "created:week").stdout
    assert "Slices of language for llm, the lowest kappa first" in text
    assert "(missing)" in text
    more = len(given.slices("created:week", "llm").table) - 12
    assert f"({more} more; the JSON output has all.)" in text
    assert "75 items have no value in language" in text
    markdown = inside(capsys, "audit", path, "--by", "language", "--format", "markdown").stdout
    assert "### Slices of language for llm" in markdown
    assert all(len(line) <= 100 for line in text.splitlines() if "dhkappa review" not in line)


@pytest.mark.skipif(not REPORTS, reason="no report libraries")
def test_report(tmp_path: Path, capsys: Capsys) -> None:
    path, report = written(tmp_path, languages=("en", "de", HOSTILE)), tmp_path / "report.html"
    done = inside(capsys, "audit", path, "--by", "language", "--by", "created:month", "-o", report)
    assert "\x1b[31m" not in done.stdout
    page = report.read_text(encoding="utf-8")
    assert page.count("by slice of") >= 8  # a chart and a table of two columns for two labelers
    assert "created:month" in page
    assert "<script>alert(1)" not in page
    markdown = inside(capsys, "audit", path, "--by", "language", "--format", "markdown").stdout
    assert "<script>" not in markdown


def test_charts(tmp_path: Path) -> None:
    from dhkappa.report.charts import MOST_DATES, MOST_SLICES, chart_spec

    path = written(tmp_path, 600, tuple(f"l{k}" for k in range(50)))
    found = dhkappa.audit(path, suggested="llm", slices=["language", "created"], progress=False)
    worst = chart_spec(found, "slices:language")
    assert f"({MOST_SLICES} of 50 slices, the lowest first)" in worst["title"]["text"]
    rows = worst["layer"][-1]["data"]["values"]
    assert [row["name"] for row in rows] == found.slices("language").table.column("slice")[:MOST_SLICES]
    line = chart_spec(found, "slices:created")
    names = [row["name"] for row in line["layer"][-1]["data"]["values"]]
    assert names == sorted(names)
    assert len(names) == len(found.slices("created").table) <= MOST_DATES
    with pytest.raises(dhkappa.DataError, match="no slices of"):
        chart_spec(found, "slices:year")


def test_errors(tmp_path: Path, capsys: Capsys) -> None:
    path = written(tmp_path)
    assert "--by" in refused(inside(capsys, "audit", path, "--by", "language:week"))
    assert "Did you mean 'language'" in refused(inside(capsys, "audit", path, "--by", "langage"))
    tally = tmp_path / "votes.json"
    inside(capsys, "tally", "make", path, "-o", tally)
    assert "--by" in refused(inside(capsys, "audit", tally, "--by", "language"))
    assert "slices" in refused(inside(capsys, "audit", path, "--by", "language", "--strata", "suggested_rule"))


def people(folder: Path, third: str = "blue") -> Path:
    path = folder / "people.csv"
    path.write_text(f"annotator,team,language\nann_1,red,en\nann_2,red,de\nann_3,{third},de\n", encoding="utf-8")
    return path


def test_annotators_table(tmp_path: Path, capsys: Capsys) -> None:
    path, table = written(tmp_path), people(tmp_path)
    own = ("--annotators-table", table, "--by", "team")
    told: Any = answer(inside(capsys, "audit", path, *own, "--format", "json").stdout)["result"]
    given = dhkappa.audit(path, annotators_table=table, slices="team", progress=False)
    assert told["slices"] == {}
    assert list(told["annotator_slices"]) == ["team"]
    for name, found in told["annotator_slices"]["team"].items():
        assert found == json.loads(json.dumps(given.annotator_slices("team", name).to_dict()))
    text = inside(capsys, "audit", path, *own).stdout
    assert "Annotators by team for llm" in text
    assert "'blue': One annotator: no item has two votes of the slice." in text
    assert "--by" not in text  # of the command review, where it means something else
    markdown = inside(capsys, "audit", path, *own, "--format", "markdown").stdout
    assert "### Annotators by team for llm" in markdown
    assert "| red | 2 |" in markdown
    both = refused(inside(capsys, "audit", path, "--annotators-table", table, "--by", "language"))
    assert "write 'annotators.language' or 'items.language'" in both
    named = ("--annotators-table", table, "--by", "annotators.language,items.language")
    found = answer(inside(capsys, "audit", path, *named, "--format", "json").stdout)["result"]
    assert (list(found["slices"]), list(found["annotator_slices"])) == (["language"], ["language"])


@pytest.mark.skipif(not REPORTS, reason="no report libraries")
def test_annotators_table_in_the_report(tmp_path: Path, capsys: Capsys) -> None:
    path, table, report = written(tmp_path), people(tmp_path, HOSTILE), tmp_path / "report.html"
    done = inside(capsys, "audit", path, "--annotators-table", table, "-o", report)
    markdown = inside(capsys, "audit", path, "--annotators-table", table, "--format", "markdown").stdout
    assert "\x1b[31m" not in done.stdout + markdown
    page = report.read_text(encoding="utf-8")
    assert page.count("from the votes of annotators by team") >= 2  # of two labelers
    assert "<script>alert(1)" not in page + markdown
    assert "\x1b" not in page
    assert "it is an input file" in refused(inside(capsys, "audit", path, "--annotators-table", report, "-o", report))


def test_slices_by_the_label_itself_or_by_annotators_are_refused(tmp_path: Path, capsys: Capsys) -> None:
    path = written(tmp_path)
    refusal = refused(inside(capsys, "audit", path, "--by", "language,suggested_llm"))
    assert "is the suggested label of 'llm' itself" in " ".join(refusal.split())
    told = answer(inside(capsys, "audit", path, "-s", "rule", "--by", "suggested_llm", "--format", "json").stdout)
    assert list(told["result"]["slices"]["suggested_llm"]) == ["rule"]
    votes, items = tmp_path / "long.csv", tmp_path / "items.csv"
    votes.write_text("item,annotator,label\n" + "".join(f"{n},{who},x\n" for n in range(9) for who in "ab"))
    items.write_text("item,suggested\n" + "".join(f"{n},x\n" for n in range(9)))
    refusal = refused(inside(capsys, "audit", votes, "--items", items, "--by", "annotator"))
    assert "Name a column of items with --by." in " ".join(refusal.split())
