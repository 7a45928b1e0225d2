"""dhkappa history, and audit with --save and --baseline."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from cli_files import answer
from command import REPORTS, inside, refused
from dhkappa.cli.demo import write_demo
from expect import expect_error

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write data and saved audits of two weeks."""
    folder = tmp_path_factory.mktemp("weeks")
    for week in (1, 2):
        (folder / f"data{week}").mkdir()
        write_demo(str(folder / f"data{week}"), 80, week)
        audit = dhkappa.audit(f"{folder}/data{week}/annotations.csv", items=f"{folder}/data{week}/items.csv", rng=1)
        audit.save(folder / f"week{week}.json", date=f"2026-11-0{week}")
    audit.save(folder / "future.json", date="2027-01-01")
    return folder


def audit(capsys: Capsys, weeks: Path, week: int, *more: Any) -> Any:
    data = weeks / f"data{week}"
    return inside(capsys, "audit", data / "annotations.csv", "--items", data / "items.csv", *more)


def test_save_writes_what_python_writes(weeks: Path, tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "saved.json"
    done = audit(capsys, weeks, 1, "--save", path, "--date", "2026-11-01", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, f"Saved: {path}\n")
    held, python = (json.loads(file.read_text()) for file in (path, weeks / "week1.json"))
    assert held["audit"].pop("data") == "annotations.csv"
    assert python["audit"].pop("data") == ""
    assert held == python


def test_baseline_is_below_the_verdict_everywhere(weeks: Path, tmp_path: Path, capsys: Capsys) -> None:
    done = audit(capsys, weeks, 2, "--baseline", weeks / "week1.json")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert re.search(r"llm (went|rose|fell) from 0[.]\d+ to 0[.]\d+ since 2026-11-01: ", text)
    told = answer(audit(capsys, weeks, 2, "--baseline", weeks / "week1.json", "--format", "json").stdout)
    baseline = told["result"]["baseline"]
    assert baseline["summary"] in text
    change = baseline["labelers"]["llm"]["change"]
    assert change["after"] == told["result"]["labelers"]["llm"]["kappa"]["value"]
    markdown = audit(capsys, weeks, 2, "--baseline", weeks / "week1.json", "--format", "markdown").stdout
    assert "since 2026-11-01" in markdown
    if REPORTS:
        audit(capsys, weeks, 2, "--baseline", weeks / "week1.json", "-o", tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert page.index("since 2026-11-01") < page.index("labelers-title")


def test_history_shows_the_answer_first(weeks: Path, capsys: Capsys) -> None:
    done = inside(capsys, "history", weeks / "week2.json", weeks / "week1.json", "--by", "category")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, lines[0]) == (0, "", "Label history: week2.json, week1.json")
    assert "since 2026-11-01" in " ".join(lines[2:5])
    rows = [line.split() for line in lines if line.startswith("2026-11-0")]
    assert [row[0] for row in rows] == ["2026-11-01", "2026-11-02"] * 3
    assert max(map(len, lines)) <= 100  # the width of tables in tests
    assert any(line.startswith("Kappa of llm by suggested category") for line in lines)


def test_history_as_json_has_the_numbers_of_each_audit(weeks: Path, capsys: Capsys) -> None:
    files = sorted(weeks.glob("week?.json"))
    told = answer(inside(capsys, "history", *files, "--suggested", "llm", "--format", "json").stdout)["result"]
    assert [*told["labelers"]] == ["llm"]
    for row, week in zip(told["labelers"]["llm"]["history"], (1, 2), strict=True):
        alone = answer(audit(capsys, weeks, week, "--format", "json").stdout)["result"]["labelers"]["llm"]
        limits = alone["kappa"]["confidence_interval"]
        assert (row["kappa"], row["low"], row["high"]) == (alone["kappa"]["value"], limits["low"], limits["high"])
        assert (row["items"], row["verdict"]) == (alone["kappa"]["n_items"], alone["verdict"]["code"])
    assert told["labelers"]["llm"]["categories"] is None


def test_weights_and_pool_of_a_saved_audit_are_not_left_out(tmp_path: Path, capsys: Capsys) -> None:
    sim = dhkappa.simulate(60, labelers={"llm": 0.8}, rng=1)
    data = dhkappa.Dataset(sim.votes, sim.suggested, categories=["a", "b", "c"])
    options: dict[str, Any] = {"weights": {"weights": "quadratic"}, "pool": {"pool": 300}}
    options["both"] = {"weights": "linear", "pool": 300}
    for name, chosen in options.items():
        path = tmp_path / f"{name}.json"
        found = dhkappa.audit(data, **chosen)
        found.save(path, date="2026-11-01")
        with expect_error("saved-audit-options"):
            dhkappa.Tally.load(path)
        words = [word for key, value in chosen.items() for word in (f"--{key}", value)]
        for command in ("score", "audit", "compare"):
            for given in ([], words[:2] if words[2:] else []):
                done = inside(capsys, command, path, *map(str, given))
                assert (done.returncode, done.stdout) == (2, "")
                assert all(word in done.stderr for word in words[-2:-1])
        assert inside(capsys, "score", path, "--fail-under", "0.2").returncode == 2
        told = answer(inside(capsys, "score", path, *map(str, words), "--format", "json").stdout)["result"]
        expected = found.kappas["llm"]
        limits = told["labelers"]["llm"]["confidence_interval"]
        assert told["labelers"]["llm"]["value"] == expected.value
        assert [limits["low"], limits["high"]] == list(expected.confidence_interval())
        assert inside(capsys, "plan", "0.05", path).returncode == (0 if name == "pool" else 2)
        assert inside(capsys, "tally", "add", path, "-o", tmp_path / "sum.json").returncode == 2
        assert inside(capsys, "tally", "show", path).returncode == 0


@pytest.mark.skipif(not REPORTS, reason="what the charts need is absent")
def test_page_is_one_file_without_a_network(weeks: Path, tmp_path: Path, capsys: Capsys) -> None:
    done = inside(
        capsys, "history", *sorted(weeks.glob("week?.json")), "-o", tmp_path / "h.html", "--title", "<b>W</b>"
    )
    assert done.stdout.endswith(f"Report: {tmp_path / 'h.html'}\n")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "<b>W</b>" not in page
    assert "&lt;b&gt;W&lt;/b&gt;" in page
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\s\"<]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "confidence interval" in page
    assert all(f"#{target}" in page and f'id="{target}"' in page for target in ("summary", "labelers", "annotators"))


def test_hostile_names_are_inert(tmp_path: Path, capsys: Capsys) -> None:
    name = "\x1b[31m<script>alert(1)</script>|x"
    for week in (1, 2):
        sim = dhkappa.simulate(40, labelers={name: 0.8}, rng=week)
        dhkappa.audit(sim.votes, sim.suggested).save(tmp_path / f"{week}.json", date=f"2026-11-0{week}")
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    assert "\x1b" not in inside(capsys, "history", *files).stdout
    markdown = inside(capsys, "history", *files, "--format", "markdown").stdout
    assert "\x1b" not in markdown
    assert "<script>" not in markdown
    assert name in answer(inside(capsys, "history", *files, "--format", "json").stdout)["result"]["labelers"]
    if REPORTS:
        dhkappa.history(files).to_html(tmp_path / "h.html")
        assert "<script" not in (tmp_path / "h.html").read_text(encoding="utf-8")


REFUSED = {
    "dhkappa audit --save": ["history", "{weeks}/data1/annotations.csv"],
    "is given twice": ["history", "{weeks}/week1.json", "{weeks}/week1.json"],
    "Labeler 'other' not found": ["history", "{weeks}/week1.json", "--suggested", "other"],
    "Pass --save, too.": ["audit", "{data}", "--items", "{items}", "--date", "2026-11-01"],
    "Invalid date": ["audit", "{data}", "--items", "{items}", "--date", "1.11.2026", "--save", "x.json"],
    "must end in .json": ["audit", "{data}", "--items", "{items}", "--save", "x.csv"],
    "it is an input file": ["audit", "{data}", "--baseline", "{weeks}/week2.json", "--save", "{weeks}/week2.json"],
    "have the same content": ["audit", "{data}", "--items", "{items}", "--baseline", "{weeks}/week1.json"],
    "later than --date": [
        *("audit", "{data}", "--items", "{items}", "--baseline", "{weeks}/week2.json"),
        *("--save", "x.json", "--date", "2026-11-01"),
    ],
    "later than today": ["audit", "{data}", "--items", "{items}", "--baseline", "{weeks}/future.json"],
    "Only an audit of suggested labels": ["audit", "{data}", "--save", "x.json"],
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_are_one_line(
    text: str, weeks: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, items = (weeks / "data1" / name for name in ("annotations.csv", "items.csv"))
    words = [word.format(weeks=weeks, data=data, items=items) for word in REFUSED[text]]
    assert text in refused(inside(capsys, *words))
    assert not list(tmp_path.iterdir())


def test_pooled_files_are_said(weeks: Path, tmp_path: Path, capsys: Capsys) -> None:
    for week in (1, 2):
        data = weeks / f"data{week}"
        whole = dhkappa.tally(str(data / "annotations.csv"), items=str(data / "items.csv"))
        whole.save(tmp_path / f"{week}.json")
    for command in ("compare", "score", "audit"):
        done = inside(capsys, command, tmp_path / "1.json", tmp_path / "2.json")
        assert done.stderr == (
            "2 files are pooled as one data set; to compare weeks, save each with dhkappa audit --save and run dhkappa "
            "history.\n"
        )
        assert "pooled" not in inside(capsys, command, tmp_path / "1.json").stderr
