"""Real annotation data on the command line, with no option but the second file."""

from pathlib import Path

import pytest

import dhkappa
from cli_files import answer
from command import inside
from published import SCORED, digits, table_of

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize("name", [name for name in SCORED if name != "davidson"])
def test_score_of_real_data(name: str, shared_data: Path, capsys: Capsys) -> None:
    folder = shared_data / name
    votes = next(path for path in (folder / "annotations.csv", folder / "counts_long.csv") if path.exists())
    done = inside(capsys, "score", votes, "--items", folder / "items.csv", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told, table = answer(done.stdout)["result"]["labelers"], table_of(folder)
    assert list(told) == list(SCORED[name].kappas)
    for labeler, value in SCORED[name].kappas.items():
        assert told[labeler]["value"] == dhkappa.dh_kappa(table.votes, table.suggested(labeler)).value
        assert digits(told[labeler]["value"], value) == value


@pytest.mark.parametrize("name", ["crows_pairs", "dices_350", "tweeteval_annotated"])
def test_audit_of_real_data(name: str, shared_data: Path, capsys: Capsys) -> None:
    folder = shared_data / name
    votes = next(path for path in (folder / "annotations.csv", folder / "counts_long.csv") if path.exists())
    done = inside(capsys, "audit", votes, "--items", folder / "items.csv", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told, table = answer(done.stdout)["result"], table_of(folder)
    for labeler, found in told["labelers"].items():
        assert found["kappa"]["value"] == dhkappa.dh_kappa(table.votes, table.suggested(labeler)).value
    assert digits(told["fleiss"]["value"], SCORED[name].fleiss) == SCORED[name].fleiss


def test_davidson_with_counts(shared_data: Path, capsys: Capsys) -> None:
    counts = "hate_speech,offensive_language,neither"
    done = inside(capsys, "score", shared_data / "davidson" / "items.csv", "--counts", counts, "--format", "json")
    told = answer(done.stdout)["result"]["labelers"]
    table = table_of(shared_data / "davidson")
    assert {name: kappa["value"] for name, kappa in told.items()} == {
        name: dhkappa.dh_kappa(table.votes, table.suggested(name)).value for name in SCORED["davidson"].kappas
    }
