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


# Intervals for other annotators


def two_labelers(path: Path, annotators: int) -> None:
    drawn = dhkappa.simulate(200, labelers={"llm": 0.9, "rule": 0.8}, annotators=annotators, rng=1)
    names = [f"ann_{place}" for place in range(annotators)]
    rows = [["suggested_llm", "suggested_rule", *names]]
    for item, votes in enumerate(drawn.votes.tolist()):
        rows.append([drawn.suggested["llm"][item], drawn.suggested["rule"][item], *votes])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_compare_for_other_annotators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_labelers(tmp_path / "votes.csv", 12)
    asked: list[str | Path] = ["compare", tmp_path / "votes.csv", "--other-annotators"]
    done = inside(capsys, *asked)
    assert done.returncode == 0, done.stderr
    assert "Intervals and p-values are for other annotators like these, and other items." in done.stdout
    result = json.loads(inside(capsys, *asked, "--format", "json").stdout)["result"]
    found = dhkappa.compare(str(tmp_path / "votes.csv"), other_annotators=True)
    assert result["other_annotators"]
    assert result["differences"] == json.loads(json.dumps(found.differences.to_json()))
    interval = found.kappas["llm"].confidence_interval(annotators="random")
    assert result["kappas"]["llm"]["confidence_interval"]["low"] == interval.low
    assert f"{interval.low:.2f} to {interval.high:.2f}" in done.stdout


def test_compare_for_few_other_annotators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_labelers(tmp_path / "votes.csv", 3)
    done = inside(capsys, "compare", tmp_path / "votes.csv", "--other-annotators")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "No interval: Only 3 annotators: nothing here says what others would have voted." in text


def test_a_gate_is_for_these_annotators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_labelers(tmp_path / "votes.csv", 12)
    asked: list[str | Path] = ["compare", tmp_path / "votes.csv", "--other-annotators", "--fail-under", "0.1"]
    done = inside(capsys, *asked)
    assert done.returncode == 2
    assert "A gate is for these annotators" in done.stderr


@pytest.mark.parametrize(("annotators", "text"), [(12, "For these 12 annotators kappa is"), (3, "Only 3 annotators:")])
def test_audits_say_what_others_would_say(
    annotators: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_labelers(tmp_path / "votes.csv", annotators)
    asked: list[str | Path] = ["audit", tmp_path / "votes.csv", "--suggested", "llm"]
    for form in ("text", "markdown", "json"):
        done = inside(capsys, *asked, "--format", form)
        assert done.returncode == 0, done.stderr
        assert text in " ".join(done.stdout.split())
    pytest.importorskip("jinja2")
    pytest.importorskip("altair")
    done = inside(capsys, *asked, "-o", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    assert text in (tmp_path / "report.html").read_text()
