"""Looking again and again on the command line: --any-time of score, compare and audit, also of tallies that grow."""

import json
from pathlib import Path

import pytest

import dhkappa
from command import inside
from dhkappa.stats.any_time import any_time_level

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def weeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write a tally of each of four weeks."""
    monkeypatch.chdir(tmp_path)
    names = []
    for week in range(4):
        sim = dhkappa.simulate(50, labelers={"llm": 0.9}, rng=week)
        dhkappa.tally(sim.votes, sim.suggested).save(f"week{week}.json")
        names.append(f"week{week}.json")
    return names


@pytest.mark.parametrize("command", ["score", "compare", "audit"])
def test_levels_in_json(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    sim = dhkappa.simulate(50, labelers={"llm": 0.9, "rule": 0.6}, rng=1)
    dhkappa.tally(sim.votes, sim.suggested).save("tally.json")
    words = [command, "tally.json", "--any-time", "--format", "json"]
    result = json.loads(inside(capsys, *words, "--confidence-level", "0.9").stdout)["result"]
    assert (result["any_time"], result["confidence_level"]) == (True, 0.9)
    kappas = result.get("kappas") or {name: own.get("kappa", own) for name, own in result["labelers"].items()}
    for name in ("llm", "rule"):
        interval = kappas[name]["confidence_interval"]
        known = dhkappa.dh_kappa(sim.votes, sim.suggested[name]).confidence_interval(0.9, any_time=True)
        assert (interval["low"], interval["high"]) == (known.low, known.high)
        assert interval["any_time_level"] == known.any_time_level
    assert json.loads(inside(capsys, command, "tally.json", "--format", "json").stdout)["result"]["any_time"] is False


def test_a_tally_that_grows(weeks: list[str], capsys: Capsys) -> None:
    """The outcome depends on the number of items so far only, not on earlier looks."""
    seen = []
    for week in range(1, 5):
        inside(capsys, "tally", "add", *weeks[:week], "-o", "total.json") if week > 1 else None
        done = inside(capsys, "score", *weeks[:week], "--any-time", "--fail-under", "0.4", "--format", "json")
        gate = json.loads(done.stdout)["gate"]
        assert done.returncode == {"pass": 0, "fail": 1, "undecided": 3}[gate["outcome"]]
        assert gate["rows"][0]["any_time_level"] == any_time_level(50 * week, 0.95)
        seen.append(gate["outcome"])
    added = inside(capsys, "score", "total.json", "--any-time", "--fail-under", "0.4", "--format", "json")
    assert json.loads(added.stdout)["gate"] == gate
    assert seen[0] == "undecided"
    assert seen[-1] == "pass"


def test_too_few_items(weeks: list[str], capsys: Capsys) -> None:
    few = dhkappa.simulate(29, labelers={"llm": 0.95}, rng=1)
    dhkappa.tally(few.votes, few.suggested).save("few.json")
    done = inside(capsys, "score", "few.json", "--any-time", "--fail-under", "0.1")
    assert done.returncode == 3
    assert "needs 30 items: got 29" in done.stdout
    assert "needs 30 items: got 29" in done.stderr


@pytest.mark.parametrize("command", ["score", "compare", "audit"])
def test_text(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    sim = dhkappa.simulate(100, labelers={"llm": 0.9, "rule": 0.6}, rng=1)
    dhkappa.tally(sim.votes, sim.suggested).save("tally.json")
    said = " ".join(inside(capsys, command, "tally.json", "--any-time").stdout.split())
    assert said.count("its level for 100 items is 99.37% instead of 95%.") == 1
    assert said.count("Every batch of items must be a random sample") == 1
    assert said.count("pass --confidence-level 0.975.") == 1
    page = " ".join(inside(capsys, command, "tally.json").stdout.split())
    assert "at every look" not in page


def test_history(weeks: list[str], capsys: Capsys) -> None:
    for week in range(4):
        sim = dhkappa.simulate(50, labelers={"llm": 0.9}, rng=week)
        dhkappa.audit(sim.votes, sim.suggested).save(f"audit{week}.json", date=f"2026-11-0{week + 1}")
    audits = [f"audit{week}.json" for week in range(4)]
    said = inside(capsys, "history", *audits, "--any-time").stdout
    assert "Kappa of llm on all items so far" in said
    assert "99.57%" in said  # the level of 200 items
    assert "all items so far" not in inside(capsys, "history", *audits).stdout
    assert (
        "Kappa of llm on all items so far"
        in inside(capsys, "history", *audits, "--any-time", "--format", "markdown").stdout
    )
    result = json.loads(inside(capsys, "history", *audits, "--any-time", "--format", "json").stdout)["result"]
    rows = result["labelers"]["llm"]["cumulative"]
    assert [row["items"] for row in rows] == [50, 100, 150, 200]
    assert [row["any_time_level"] for row in rows] == [any_time_level(n, 0.95) for n in (50, 100, 150, 200)]
    kappas = json.loads(inside(capsys, "score", *weeks, "--any-time", "--format", "json").stdout)["result"]["labelers"]
    assert kappas["llm"]["confidence_interval"]["low"] == rows[-1]["low"]
    pytest.importorskip("jinja2")
    inside(capsys, "history", *audits, "--any-time", "-o", "page.html")
    assert "on all items so far" in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize("words", ["score --clusters doc", "compare --clusters doc", "compare --other-annotators"])
def test_clusters_and_other_annotators_are_refused(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{item},{item // 2},x,y,x,x,y\n" for item in range(40))
    Path("votes.csv").write_text(f"item,doc,ann_1,ann_2,ann_3,suggested_a,suggested_b\n{rows}", encoding="utf-8")
    command, *options = words.split()
    done = inside(capsys, command, "votes.csv", *options, "--any-time")
    assert done.returncode == 2
    assert "Leave out --any-time." in done.stderr
