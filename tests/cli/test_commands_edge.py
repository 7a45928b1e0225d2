"""Unusual input of commands."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import oracle
from command import COMMAND
from dhkappa import dh_kappa, tally
from dhkappa.cli.commands import main

VOTES = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "c"], ["c", "c", "a"], ["a", "a", "a"]]
LABELS = ["a", "b", "c", "c", "b"]
KAPPA = oracle.dh(VOTES, LABELS, [*"abc"]).kappa
WIDE = "item,suggested,ann_1,ann_2,ann_3\n" + "".join(
    f"t{place},{label},{','.join(votes)}\n" for place, (label, votes) in enumerate(zip(LABELS, VOTES, strict=True))
)
Capsys = pytest.CaptureFixture[str]
Monkeypatch = pytest.MonkeyPatch


def run(capsys: Capsys, *words: str | Path) -> tuple[int, str, str]:
    """Run the command in this process: its exit code, and what it writes."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.out, shown.err


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(WIDE)
    return path


def test_score_of_a_tally_with_one_labeler(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "tally.json"
    tally(VOTES, LABELS).save(path)
    code, out, _ = run(capsys, "score", path, "--format", "json")
    assert code == 0
    assert KAPPA is not None
    labelers = json.loads(out)["result"]["labelers"]
    assert list(labelers) == ["labeler"]
    assert labelers["labeler"]["value"] == pytest.approx(float(KAPPA), rel=1e-15)


def test_export_without_suggested_labels(tmp_path: Path, capsys: Capsys) -> None:
    choice = {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": ["a"]}}
    annotations = [{"id": place, "completed_by": place, "result": [choice]} for place in (1, 2)]
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": 1, "data": {"text": "x"}, "annotations": annotations, "predictions": [5]}]))
    code, out, err = run(capsys, "score", path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_audit_shows_the_weighted_kappa(votes: Path, capsys: Capsys) -> None:
    code, out, _ = run(capsys, "audit", votes, "--categories", "a,b,c", "--weights", "linear")
    assert code == 0
    assert f"{dh_kappa(VOTES, LABELS, categories=[*'abc'], weights='linear').value:.2f}" in out
    for heading in ("Weighted kappa, with random and majority labels", "weighted Fleiss' kappa"):
        assert heading in out


def test_review_follows_weights(tmp_path: Path, capsys: Capsys) -> None:
    """The label 5 with votes 4 is nearly right, with votes 1 wrong; both are rejected without weights."""
    path = tmp_path / "ratings.csv"
    path.write_text("item,suggested,ann_1,ann_2\nnear,5,4,4\nfar,5,1,1\nright,3,3,3\nother,2,2,2\nlast,1,1,2\n")
    plain, weighted = (
        run(capsys, "review", path, "--rejected", *more)[1]
        for more in ((), ("--categories", "1,2,3,4,5", "--weights", "quadratic"))
    )
    assert [line.split(",")[0].strip('"') for line in plain.splitlines()] == ["item", "far", "near"]
    assert [line.split(",")[0].strip('"') for line in weighted.splitlines()] == ["item", "far"]


def test_compare_takes_weights(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "two.csv"
    rows = [f"{i},{i % 4},{(i + i % 2) % 4},{i % 4},{i % 4}" for i in range(20)]
    path.write_text("\n".join(["item,suggested_a,suggested_b,ann_1,ann_2", *rows]))
    code, out, _ = run(capsys, "compare", path, "--categories", "0,1,2,3", "--weights", "linear")
    assert code == 0
    assert "Differences in weighted kappa between labelers" in out


def test_pattern_of_count_columns(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "counts.csv"
    lines = [
        f"{label},{','.join(str(row.count(one)) for one in 'abc')}" for label, row in zip(LABELS, VOTES, strict=True)
    ]
    path.write_text("\n".join(["suggested,a,b,c", *lines]))
    code, out, _ = run(capsys, "score", path, "--suggested", "suggested", "--counts", "[abc]", "--format", "json")
    assert code == 0
    assert KAPPA is not None
    assert json.loads(out)["result"]["labelers"]["suggested"]["value"] == pytest.approx(float(KAPPA), rel=1e-15)


def test_categories_that_do_not_occur(votes: Path, capsys: Capsys) -> None:
    code, out, err = run(capsys, "score", votes, "--categories", "1,2,3")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "Internal error" not in err


def test_stratum_named_twice(votes: Path, capsys: Capsys) -> None:
    code, out, err = run(capsys, "score", votes, "--pool", "x=10", "--pool", "x=20")
    assert (code, out) == (2, "")
    assert "--pool" in err


def test_escape_sequences_are_not_sent_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(WIDE.replace("t4", "t\x1b[31m4"))
    reader, terminal = pty.openpty()
    done = subprocess.run(
        [COMMAND, "review", path, "--limit", "1"], stdout=terminal, stderr=subprocess.DEVNULL, timeout=120, check=False
    )
    os.close(terminal)
    shown = os.read(reader, 65_536).decode()
    os.close(reader)
    assert done.returncode == 0
    assert "\x1b" not in shown
    assert '"t\\x1b[31m4","b","a: 3"' in shown


def test_closed_pipe(votes: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [COMMAND, "review", votes],
        stdout=writer,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_demo_without_the_report_libraries(tmp_path: Path, capsys: Capsys, monkeypatch: Monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    folder = tmp_path / "demo"
    code, out, _ = run(capsys, "demo", "--n-items", "30", "-o", folder)
    assert code == 0
    assert "pip install 'dhkappa[report]'" in " ".join(out.split())
    assert sorted(path.name for path in folder.iterdir()) == ["annotations.csv", "items.csv"]
    code, out, _ = run(capsys, "demo", "--n-items", "30", "-o", folder, "--format", "json")
    assert code == 0
    assert json.loads(out)["result"]["report"] is None


def test_demo_keeps_other_files(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "annotations.csv").write_bytes(b"\xff\xfe\x00")
    code, out, err = run(capsys, "demo", "--n-items", "30", "-o", tmp_path)
    assert (code, out) == (2, "")
    assert "annotations.csv" in err
    assert (tmp_path / "annotations.csv").read_bytes() == b"\xff\xfe\x00"
