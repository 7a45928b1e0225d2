"""The command ``dhkappa annotators``."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import dhkappa
from command import inside, refused


def write_votes(path: Path, names: list[str], labels: bool = False) -> None:
    drawn = dhkappa.simulate(200, labelers={"llm": 0.9}, annotators=len(names), rng=1)
    votes = drawn.votes.copy()
    votes[:, 0] = np.random.default_rng(1).permutation(votes[:, 0])
    rows = [["item", "annotator", "label", *(["suggested_llm"] if labels else [])]]
    for item, given in enumerate(votes.tolist()):
        more = [drawn.suggested["llm"][item]] if labels else []
        rows += [[f"t{item}", name, vote, *more] for name, vote in zip(names, given, strict=True)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize("labels", [False, True])
def test_all_annotators_are_written(labels: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_votes(tmp_path / "votes.csv", ["=1+1", "b\x1b[31m", "<b>c</b>", "d", "e"], labels)
    done = inside(capsys, "annotators", tmp_path / "votes.csv", "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    assert "5 annotators written" in done.stderr
    assert "1 of 5 annotators with 10 items or more differs from the rest" in " ".join(done.stdout.split())
    assert "\x1b" not in done.stdout + done.stderr
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert (rows[0]["annotator"], rows[0]["differs"], rows[0]["uninformed"]) == ("'=1+1", "below", "true")
    assert len(rows) == 5
    assert ("agree_with_llm" in rows[0]) == labels


def test_a_byte_order_mark_for_excel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_votes(tmp_path / "votes.csv", list("abcde"), labels=True)
    for options, start in (([], b'"annotator"'), (["--excel"], b'\xef\xbb\xbf"annotator"')):
        done = inside(capsys, "annotators", tmp_path / "votes.csv", "-o", tmp_path / "out.csv", *options)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "out.csv").read_bytes().startswith(start)


def test_json_has_all_annotators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_votes(tmp_path / "votes.csv", list("abcde"), labels=True)
    told = json.loads(inside(capsys, "annotators", tmp_path / "votes.csv", "--format", "json").stdout)["result"]
    assert (told["differs"], told["n_annotators"], len(told["annotators"])) == (["a"], 5, 5)
    assert list(told["annotators"][0]["agree_with"]) == ["llm"]


def test_votes_without_annotators_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "votes.csv").write_text("item,label,count\n1,x,2\n2,y,1\n2,x,1\n3,x,1\n3,y,2\n")
    done = inside(capsys, "annotators", tmp_path / "votes.csv", "-o", tmp_path / "out.csv")
    assert "Annotators are unknown" in refused(done)
    assert not (tmp_path / "out.csv").exists()
