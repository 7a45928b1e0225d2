"""The command ``dhkappa pool``."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from command import inside, refused

Capsys = pytest.CaptureFixture[str]
SIM = dhkappa.simulate(120, labelers={"llm": 0.9, "rule": 0.6}, categories=["bug", "how-to"], rng=1)
SIZES = {"bug": 520, "how-to": 480}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "item": f"t{place}",
            **{f"suggested_{name}": labels[place] for name, labels in SIM.suggested.items()},
            **{f"ann_{who}": vote for who, vote in enumerate(votes)},
            "language": "en" if place % 3 else "de",
        }
        for place, votes in enumerate(SIM.votes.tolist())
    ]
    write(tmp_path / "votes.csv", rows)
    every = [label for label, n in SIZES.items() for _ in range(n)]
    languages = ["en" if place % 3 else "de" for place in range(1000)]
    labels = zip(every, languages, strict=True)
    write(tmp_path / "labels.csv", [{"suggested_llm": label, "language": language} for label, language in labels])
    write(tmp_path / "other.csv", [{"category": label, "text": "x"} for label in every])
    return tmp_path


def expected(**options: Any) -> dict[str, Any]:
    return dhkappa.pool_shares(SIM.votes, SIM.suggested["llm"], pool=SIZES, **options).to_dict()


def told(capsys: Capsys, *words: str) -> dict[str, Any]:
    done = inside(capsys, "pool", "votes.csv", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["result"]
    return {name: value for name, value in found.items() if name not in ("problems", "filters")}


@pytest.mark.usefixtures("folder")
def test_labels_in_every_form(capsys: Capsys) -> None:
    for pool in (["bug=520,how-to=480"], ["labels.csv"], ["other.csv", "--pool-column", "category"]):
        assert told(capsys, "-s", "llm", "--pool", *pool) == expected()


@pytest.mark.usefixtures("folder")
def test_options(capsys: Capsys) -> None:
    words = ["-s", "suggested_llm", "--pool", "bug=520,how-to=480"]
    assert told(capsys, *words, "--finite-pool") == expected(finite_pool=True)
    assert told(capsys, *words, "--confidence-level", "0.9") == expected(confidence_level=0.9)
    drawn = told(capsys, *words, "--strata", "suggested_llm")
    assert drawn["sampled_by_label"]
    assert drawn["categories"] == expected()["categories"]


@pytest.mark.usefixtures("folder")
def test_filters_leave_out_items_of_the_pool(capsys: Capsys) -> None:
    done = inside(capsys, "pool", "votes.csv", "-s", "llm", "--pool", "labels.csv", "--where", "language=de")
    assert done.returncode == 0
    assert "of the 334 items of the pool" in " ".join(done.stdout.split())
    assert "Filter language=de: 80 items and 240 votes were left out." in done.stderr
    assert "666 items of the pool were left out by the filter language=de." in done.stdout


@pytest.mark.usefixtures("folder")
def test_a_tally_of_the_sample(capsys: Capsys) -> None:
    inside(capsys, "tally", "make", "votes.csv", "-o", "sample.json")
    done = inside(capsys, "pool", "sample.json", "-s", "llm", "--pool", "labels.csv", "--format", "json")
    assert json.loads(done.stdout)["result"]["categories"] == expected()["categories"]


@pytest.mark.usefixtures("folder")
def test_text_and_markdown(capsys: Capsys) -> None:
    text = inside(capsys, "pool", "votes.csv", "-s", "llm", "--pool", "labels.csv").stdout
    assert text.startswith("An annotator would give another label to about")
    assert "95% CI of wrong" in text
    page = inside(capsys, "pool", "votes.csv", "-s", "llm", "--pool", "labels.csv", "--format", "markdown").stdout
    assert page.startswith("## Shares of the pool\n\n**An annotator would give")
    assert "| bug | " in page


@pytest.mark.usefixtures("folder")
def test_refusals(capsys: Capsys) -> None:
    assert "There are 2 labelers" in refused(inside(capsys, "pool", "votes.csv", "--pool", "labels.csv"))
    assert "Missing option '--pool'" in refused(inside(capsys, "pool", "votes.csv", "-s", "llm"))
    few = inside(capsys, "pool", "votes.csv", "-s", "llm", "--pool", "bug=5,how-to=480")
    assert "fewer than the sample" in refused(few)
    assert "File not found: 'no.csv'" in refused(inside(capsys, "pool", "votes.csv", "-s", "llm", "--pool", "no.csv"))
    unknown = inside(capsys, "pool", "votes.csv", "-s", "llm", "--pool", "other.csv")
    assert "Name it as --pool-column." in refused(unknown)


def test_problems_of_the_data(tmp_path: Path, capsys: Capsys) -> None:
    votes = tmp_path / "votes.csv"
    write(votes, [{"item": k, "suggested": "x", "ann_1": "bug", "ann_2": "bug"} for k in range(60)])
    done = inside(capsys, "pool", votes, "--pool", "x=900")
    assert "labels-not-in-votes" in refused(done)
    done = inside(capsys, "pool", votes, "--pool", "x=900", "--allow", "labels-not-in-votes")
    assert done.returncode == 0
    assert "about 900 of the 900 items" in " ".join(done.stdout.split())


def test_single_votes(tmp_path: Path, capsys: Capsys) -> None:
    votes = tmp_path / "votes.csv"
    rows = [{"item": k, "suggested": "ab"[k % 2], "ann_1": "ab"[k % 2 if k % 5 else 0]} for k in range(100)]
    write(votes, rows)
    done = inside(capsys, "pool", votes, "--pool", "a=500,b=500")
    assert done.returncode == 0, done.stderr
    assert "no item has two votes" in " ".join(done.stdout.split())
