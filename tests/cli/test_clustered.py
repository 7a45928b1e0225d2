"""The option --clusters of audit, score, compare and check."""

import json
from pathlib import Path

import pytest

import dhkappa
from cli_files import VALID
from command import inside

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Eighty items of twenty documents; items of a document are alike."""
    monkeypatch.chdir(tmp_path)
    sim = dhkappa.simulate(80, labelers={"llm": 0.9, "rule": 0.7}, annotators=3, rng=1)
    order = sorted(range(80), key=lambda place: (str(sim.votes[place].tolist()), place))
    lines = ["document,suggested_llm,suggested_rule,ann_1,ann_2,ann_3"]
    for rank, place in enumerate(order):
        labels = [labels[place] for labels in sim.suggested.values()]
        lines.append(",".join([f"d{rank // 4}", *labels, *sim.votes[place].tolist()]))
    Path("documents.csv").write_text("\n".join(lines), encoding="utf-8")
    return "documents.csv"


@pytest.mark.parametrize("command", ["audit", "score", "compare"])
def test_clusters(command: str, file: str, capsys: Capsys) -> None:
    done = inside(capsys, command, file, "--clusters", "document")
    assert done.returncode == 0
    said = "Intervals and p-values allow" if command == "compare" else "The confidence interval allows"
    assert f"Items come from 20 clusters of up to 4 items. {said} for that" in " ".join(done.stdout.split())
    answer = json.loads(inside(capsys, command, file, "--clusters", "document", "--format", "json").stdout)
    VALID.validate(answer)
    own = answer["result"]["kappas"] if command == "compare" else answer["result"]["labelers"]
    kappa = own["llm"]["kappa"] if command == "audit" else own["llm"]
    found = dhkappa.dh_kappa(file, "suggested_llm", annotators="ann_*", clusters="document")
    assert found.clusters is not None
    assert kappa["clusters"] == found.clusters.to_dict()
    assert (kappa["se"], kappa["confidence_interval"]["low"]) == (found.se, found.confidence_interval().low)


def test_reports_say_that_items_come_from_clusters(file: str, capsys: Capsys) -> None:
    done = inside(capsys, "audit", file, "--clusters", "document", "--format", "markdown")
    assert "Items come from 20 clusters of up to 4 items." in done.stdout
    pytest.importorskip("jinja2")
    pytest.importorskip("altair")
    inside(capsys, "audit", file, "--clusters", "document", "-o", "report.html")
    assert "Items come from 20 clusters of up to 4 items." in Path("report.html").read_text(encoding="utf-8")


def test_check_shows_the_role_and_proposes_the_option(file: str, capsys: Capsys) -> None:
    named = inside(capsys, "check", file, "--clusters", "document").stdout
    assert ["document", "cluster", "named", "by", "you"] in [line.split() for line in named.splitlines()]
    assert "looks-clustered" not in named
    text = Path(file).read_text(encoding="utf-8").splitlines()
    lines = [f"id,{text[0]}", *(f"{place},{line}" for place, line in enumerate(text[1:]))]
    Path(file).write_text("\n".join(lines), encoding="utf-8")
    found = inside(capsys, "check", file, "--item", "id").stdout
    assert "looks-clustered" in found
    assert "--clusters document" in " ".join(found.split())


@pytest.mark.parametrize("words", [("tally", "make", "-o", "t.json"), ("audit", "--by", "document")])
def test_refused(words: tuple[str, ...], file: str, capsys: Capsys) -> None:
    done = inside(capsys, *words, file, "--clusters", "document")
    assert done.returncode == 2
    assert "cluster" in done.stderr
