"""--normalize, --map, --multilabel and --category."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import dhkappa
from command import refused, run

VOTES = "item,suggested,ann_1,ann_2\n1,bug,1,Bug\n2,pay,pay ,bug\n3,pay,pay,pay\n"
CLEAN = [["bug", "bug"], ["pay", "bug"], ["pay", "pay"]]
SETS = "item,suggested,ann_1,ann_2\n1,a;b,b;a,a\n2,b,b,[]\n3,[],a,;\n4,a,a,a; b\n"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schema.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(VOTES, encoding="utf-8")
    Path("sets.csv").write_text(SETS, encoding="utf-8")
    Path("map.csv").write_text("1,bug\n", encoding="utf-8")


def result(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.mark.parametrize("given", ["1=bug", "map.csv"])
def test_rules_of_every_command(given: str) -> None:
    rules = ("--normalize", "case,spaces", "--map", given)
    exact = str(dhkappa.dh_kappa(CLEAN, ["bug", "pay", "pay"]).exact)
    found = result("score", "votes.csv", *rules)["result"]["labelers"]["suggested"]
    assert found["exact"] == exact
    assert {"labels-normalized", "labels-mapped"} <= {note["code"] for note in found["notes"]}
    assert result("audit", "votes.csv", *rules)["result"]["labelers"]["suggested"]["kappa"]["exact"] == exact
    assert run("tally", "make", "votes.csv", *rules, "-o", "t.json").returncode == 0
    assert result("score", "t.json")["result"]["labelers"]["suggested"]["exact"] == exact
    assert "--normalize" in refused(run("score", "t.json", "--normalize", "case"))


def test_map_of_integers() -> None:
    Path("n.jsonl").write_text('{"item": 1, "suggested": 1, "ann_1": 1, "ann_2": 2}\n', encoding="utf-8")
    found = result("tally", "make", "n.jsonl", "--map", "2=3", "-o", "n.json")["result"]
    assert found["categories"] == [1, 3]


def test_multilabel() -> None:
    found = result("audit", "sets.csv", "--multilabel", ";")["result"]
    expected = dhkappa.audit(dhkappa.read("sets.csv", multilabel=";")).to_dict()
    assert found == expected | {"report": None, "filters": []}
    text = run("audit", "sets.csv", "--multilabel", ";").stdout
    assert "Each category as a yes/no question" in text
    assert "- Each category was audited as a yes/no question" in text
    one = result("audit", "sets.csv", "--multilabel", ";", "--category", "a")["result"]
    assert (
        one["labelers"]["suggested"]["kappa"]["value"]
        == next(r for r in found["table"] if r["category"] == "a")["kappa"]
    )


def test_a_report_needs_a_category() -> None:
    assert "--category" in refused(run("audit", "sets.csv", "--multilabel", ";", "-o", "r.html"))
    assert not Path("r.html").exists()
    assert run("audit", "sets.csv", "--multilabel", ";", "--category", "b", "-o", "r.html").returncode == 0
    assert "yes/no question" in Path("r.html").read_text("utf-8")


def test_the_gate_is_about_every_category() -> None:
    done = run("audit", "sets.csv", "--multilabel", ";", "--fail-under", "-1", "--on", "value", "--format", "json")
    assert done.returncode == 0
    gate = json.loads(done.stdout)["gate"]
    assert {row["labeler"]: row["outcome"] for row in gate["rows"]} == {"a": "pass", "b": "pass"}
    done = run("audit", "sets.csv", "--multilabel", ";", "--fail-under", "0.9", "--on", "value")
    assert done.returncode == 1
    assert "a failed: kappa" in done.stderr


@pytest.mark.parametrize("command", ["score", "compare", "review"])
def test_commands_without_multilabel_name_the_audit(command: str) -> None:
    rows = [f"{i},a;b,a,a;b,b\n{i + 20},a,b,a,a;b" for i in range(20)]
    Path("sets.csv").write_text("item,suggested_x,suggested_y,ann_1,ann_2\n" + "\n".join(rows), encoding="utf-8")
    choice = ("-s", "x") if command == "review" else ()
    done = run(command, "sets.csv", *choice)
    fix = 'Split them with dhkappa audit --multilabel ";".'
    assert fix in " ".join((done.stdout + done.stderr).split())
    if command == "review":  # nothing is written if the data has errors
        assert (done.returncode, done.stdout) == (2, "")
        return
    problems = result(command, "sets.csv", *choice)["result"]["problems"]
    assert {one["code"]: one["fix"] for one in problems}["looks-multilabel"] == fix
    audited = run("audit", "sets.csv")
    assert 'Split them with --multilabel ";".' in " ".join(audited.stdout.split())
