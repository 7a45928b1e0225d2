"""``dhkappa review --merge``: files, messages and exit codes."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import dhkappa
from cli_files import VALID, answer
from command import VOTES, inside

Capsys = pytest.CaptureFixture[str]
WORDS = ("review", "votes.csv", "-s", "rule", "--allow", "too-few-items")


def rows_of(path: str | Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(path).read_text(encoding="utf-8-sig"), newline="")))


def fill(path: str, labels: dict[str, str], **more: str) -> None:
    """Fill in new labels by item."""
    rows = [{**row, "new_label": labels.get(row["item"], ""), **more} for row in rows_of(path)]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def reviewed(folder: Path, capsys: Capsys) -> Path:
    """A folder with votes, and the reviewed items t2 (ham instead of spam) and t1 (spam, as suggested)."""
    assert inside(capsys, *WORDS, "-o", "review.csv").returncode == 0
    fill("review.csv", {"t2": "ham", "t1": "Spam "})
    return folder


def test_votes_and_labels(reviewed: Path, capsys: Capsys) -> None:
    done = inside(capsys, *WORDS, "--merge", "review.csv", "-o", "new.csv", "--labels", "labels.csv")
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["8 rows written to new.csv.", "8 rows written to labels.csv."]
    said = " ".join(done.stdout.split())
    assert said.startswith("2 items reviewed: reviewers confirmed 1 label and changed 1. After their votes, the most ")
    assert "frequent vote replaced 1 label. 6 rows without a new label." in said
    assert "1 vote added, of" not in done.stdout
    text = " ".join(done.stdout.split())
    for part in ("'Spam' was read as 'spam'.", "no random sample", "suggested before", "corrected with reviews"):
        assert part in text
    old, new = rows_of("votes.csv"), rows_of("new.csv")
    assert [*new[0]] == [*old[0], "ann_review"]
    assert [{name: row[name] for name in old[0]} for row in new] == old
    assert {row["item"]: row["ann_review"] for row in new if row["ann_review"]} == {"t1": "spam", "t2": "ham"}
    labels = {row.pop("item"): [*row.values()] for row in rows_of("labels.csv")}
    assert labels["t2"] == ["spam", "ham", "majority"]
    assert labels["t1"] == ["spam", "spam", "majority"]
    assert {tuple(own[2:]) for item, own in labels.items() if item not in ("t1", "t2")} == {("unchanged",)}
    again = inside(capsys, "review", "new.csv", "-s", "rule", "--allow", "too-few-items", "--merge", "review.csv")
    assert again.returncode == 2
    assert "has already voted on 2 items" in again.stderr
    assert again.stdout == ""


def test_standard_output(reviewed: Path, capsys: Capsys) -> None:
    inside(capsys, *WORDS, "--merge", "review.csv", "-o", "new.csv", "--labels", "labels.csv")
    done = inside(capsys, *WORDS, "--merge", "review.csv", "-o", "-")
    assert done.stdout == Path("new.csv").read_text()
    assert done.stderr.startswith("2 items reviewed")
    decided = inside(capsys, *WORDS, "--merge", "review.csv", "--as", "decision", "-o", "-")
    assert decided.stdout == Path("labels.csv").read_text().replace("majority", "decision")
    labels = inside(capsys, *WORDS, "--merge", "review.csv", "--labels", "labels.xlsx")
    assert labels.stdout.startswith("2 items reviewed")


def test_without_files_only_the_summary_is_printed(reviewed: Path, capsys: Capsys) -> None:
    done = inside(capsys, *WORDS, "--merge", "review.csv")
    assert done.stdout.startswith("2 items reviewed")
    assert "t1" not in done.stdout
    assert "Nothing was written: -o FILE writes the updated votes, --labels FILE" in done.stderr
    decided = inside(capsys, *WORDS, "--merge", "review.csv", "--as", "decision")
    assert "Nothing was written: --labels FILE writes the corrected labels." in decided.stderr


def test_json(reviewed: Path, capsys: Capsys) -> None:
    done = inside(capsys, *WORDS, "--merge", "review.csv", "--reviewer", "eva", "-o", "new.xlsx", "--format", "json")
    assert done.stderr == "8 rows written to new.xlsx.\n"
    told = answer(done.stdout)["result"]
    assert (told["n_reviewed"], told["n_changed"], told["n_confirmed"], told["n_blank"]) == (2, 1, 1, 6)
    assert (told["n_reviewers_changed"], told["n_reviewers_confirmed"], told["n_changed_against"]) == (1, 1, 0)
    assert told["added"] == [
        {"item": "t1", "annotator": "ann_eva", "label": "spam"},
        {"item": "t2", "annotator": "ann_eva", "label": "ham"},
    ]
    assert [row["item"] for row in told["labels"]] == ["t1", "t2"]
    kappa = dhkappa.dh_kappa(dhkappa.read("new.xlsx"), "rule")
    assert told["audits"][1]["kappa"] == kappa.value
    assert told["respelled"] == {"Spam": "spam"}
    answer(inside(capsys, *WORDS, "--merge", "review.csv", "--as", "decision", "--format", "json").stdout)


def test_long_format(folder: Path, capsys: Capsys) -> None:
    cast = [(f"t{n}", f"ann_{who}", vote) for n, row in enumerate(VOTES, 1) for who, vote in enumerate(row) if vote]
    Path("long.csv").write_text("item,annotator,label\n" + "".join(f"{','.join(row)}\n" for row in cast))
    Path("items.csv").write_text("item,suggested\n" + "".join(f"t{n},spam\n" for n in range(1, 9)))
    words = ("review", "long.csv", "--items", "items.csv", "--allow", "too-few-items")
    assert inside(capsys, *words, "--next", "3", "-o", "next.csv").returncode == 0
    rows = rows_of("next.csv")
    rows[0] |= {"label": "ham", "annotator": "eva"}
    with Path("next.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    done = inside(capsys, *words, "--merge", "next.csv", "-o", "new.csv", "--labels", "the labels.csv")
    assert done.returncode == 0, done.stderr
    assert "dhkappa audit" not in done.stderr
    again = ("audit", "new.csv", "--items", "the labels.csv", "-s", "new", "--allow", "too-few-items")
    told = answer(inside(capsys, *again, "--format", "json").stdout)["result"]
    assert told["labelers"]["new"]["verdict"]["code"] == "labels-from-votes"
    accepted = answer(inside(capsys, *again, "--allow", "labels-from-votes", "--format", "json").stdout)["result"]
    assert accepted["labelers"]["new"]["verdict"]["code"] == "not-enough-data"
    labels = {row["item"]: row["new"] for row in rows_of("the labels.csv")}
    votes = [[row["label"] for row in rows_of("new.csv") if row["item"] == item] for item in labels]
    assert told["labelers"]["new"]["kappa"]["exact"] == str(dhkappa.dh_kappa(votes, [*labels.values()]).exact)
    unnamed = answer(inside(capsys, "check", "new.csv", "--items", "the labels.csv", "--format", "json").stdout)
    [problem] = [one for one in unnamed["result"]["problems"] if one["code"] == "labelers-unused"]
    assert '--suggested "new"' in problem["fix"]
    assert "--suggested new" in unnamed["result"]["next"]
    assert rows_of("new.csv") == [
        *rows_of("long.csv"),
        {"item": rows[0]["item"], "annotator": "eva", "label": "ham"},
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--merge", "review.csv", "-o", "votes.csv"], "it is an input file"),
        (["--merge", "review.csv", "-o", "review.csv"], "it is an input file"),
        (["--merge", "review.csv", "--labels", "votes.csv"], "it is an input file"),
        (["--merge", "review.csv", "-o", "x.csv", "--labels", "x.csv"], "cannot both be written"),
        (["--merge", "review.csv", "-o", "x.csv", "--as", "decision"], "--labels"),
        (["--merge", "review.csv", "--limit", "3"], "--limit cannot be combined with --merge"),
        (["--merge", "review.csv", "--category", "ham"], "--category cannot be combined with --merge"),
        (["--merge", "nowhere.csv"], "File not found"),
        (["--labels", "x.csv"], "Pass the file with --merge."),
        (["--as", "decision", "--reviewer", "x"], "--as, --reviewer is only for merging"),
        (
            ["--merge", "review.csv", "--where", "item!=t8", "-o", "x.csv"],
            "cannot be merged with filtered data (item!=t8)",
        ),
        (
            ["--merge", "review.csv", "--exclude-annotator", "ann_1", "--labels", "x.csv"],
            "filtered data (annotator 'ann_1'",
        ),
        (["--merge", "review.csv", "--reviewer", " "], "reviewer must be the name of an annotator"),
    ],
)
def test_refusals(words: list[str], text: str, reviewed: Path, capsys: Capsys) -> None:
    before = {path.name: path.read_bytes() for path in reviewed.iterdir() if path.is_file()}
    done = inside(capsys, *WORDS, *words)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in reviewed.iterdir() if path.is_file()} == before


def test_a_problem_of_the_file_writes_nothing(reviewed: Path, capsys: Capsys) -> None:
    for labels, text in (({"t2": "hum"}, "Did you mean 'ham'?"), ({}, "No label was filled in")):
        fill("review.csv", labels)
        done = inside(capsys, *WORDS, "--merge", "review.csv", "-o", "new.csv", "--labels", "labels.csv")
        assert done.returncode == 2
        assert text in done.stderr
    fill("review.csv", {"t2": "ham"}, suggested="news")
    assert "are not those of the data" in inside(capsys, *WORDS, "--merge", "review.csv", "-o", "new.csv").stderr
    assert not {"new.csv", "labels.csv"} & {path.name for path in reviewed.iterdir()}
    fill("review.csv", {"t2": "hum"}, suggested="spam")
    rows = [row for row in rows_of("review.csv") if row["item"] == "t2"]
    Path("review.csv").write_text("item,new_label\n" + "".join(f"{row['item']},{row['new_label']}\n" for row in rows))
    done = inside(capsys, *WORDS, "--merge", "review.csv", "-o", "new.csv", "--new-categories")
    assert done.returncode == 0
    assert "New categories: 'hum'." in done.stdout


def test_formulas_in_the_data(folder: Path, capsys: Capsys) -> None:
    text = "item,suggested,ann_1,ann_2\n=1+1,x,x,y\n\x1b[31m2,y,y,x\n" + "".join(
        f"{n},{'xy'[n % 2]},{'xy'[n % 2]},{'xxy'[n % 3]}\n" for n in range(40)
    )
    Path("odd.csv").write_text(text)
    words = ("review", "odd.csv")
    allow = ("--allow", "too-few-items")
    made = inside(capsys, *words, *allow, "-o", "review.csv")
    assert made.returncode == 0, made.stderr
    fill("review.csv", {"'=1+1": "y", "\x1b[31m2": "y"}, comment="=cmd()")
    refused = inside(capsys, *words, *allow, "--merge", "review.csv", "-o", "new.csv")
    assert refused.returncode == 2
    assert "Write .xlsx" in refused.stderr
    assert not Path("new.csv").exists()
    done = inside(capsys, *words, *allow, "--merge", "review.csv", "-o", "new.xlsx", "--labels", "labels.xlsx")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    raw = inside(capsys, *words, *allow, "--merge", "review.csv", "-o", "new.csv", "--raw")
    assert raw.returncode == 0
    values = [dhkappa.dh_kappa(dhkappa.read(name)).exact for name in ("new.csv", "new.xlsx")]
    assert values[0] == values[1]
    told: Any = json.loads(inside(capsys, *words, *allow, "--merge", "review.csv", "--format", "json").stdout)
    assert {row["item"] for row in told["result"]["added"]} == {"=1+1", "\x1b[31m2"}


def test_the_schema_refuses_missing_and_unknown_keys(reviewed: Path, capsys: Capsys) -> None:
    for words in (["--next", "3"], ["--merge", "review.csv"]):
        told = json.loads(inside(capsys, *WORDS, *words, "--format", "json").stdout)
        assert VALID.is_valid(told)
        rows = [value[0] for value in told["result"].values() if isinstance(value, list) and value]
        for place in [told["result"], *(row for row in rows if "code" not in row)]:
            for key in list(place):
                kept = place.pop(key)
                assert not VALID.is_valid(told), key
                place[key] = kept
            place["new_key"] = None
            assert not VALID.is_valid(told)
            del place["new_key"]
        assert VALID.is_valid(told)


def test_a_second_merge_does_not_lose_the_first_corrections(folder: Path, capsys: Capsys) -> None:
    cast = [(f"t{n}", f"ann_{who}", vote) for n, row in enumerate(VOTES, 1) for who, vote in enumerate(row) if vote]
    Path("long.csv").write_text("item,annotator,label\n" + "".join(f"{','.join(row)}\n" for row in cast))
    Path("items.csv").write_text("item,suggested\n" + "".join(f"t{n},spam\n" for n in range(1, 9)))
    for n, item in (("1", "t1"), ("2", "t2")):
        Path(f"filled{n}.csv").write_text(f"item,new_label\n{item},ham\n")
    words = ("--allow", "too-few-items", "--as", "decision")
    first = ("review", "long.csv", "--items", "items.csv", *words, "--merge", "filled1.csv", "--labels", "one.csv")
    assert inside(capsys, *first).returncode == 0
    assert inside(capsys, *first).returncode == 0  # the same corrections again
    before = Path("one.csv").read_bytes()
    second = ("review", "long.csv", "--items", "items.csv", *words, "--merge", "filled2.csv", "--labels", "one.csv")
    lost = inside(capsys, *second)
    assert lost.returncode == 2
    assert "'t1'" in lost.stderr
    assert Path("one.csv").read_bytes() == before
    further = ("review", "long.csv", "--items", "one.csv", "-s", "new", *words, "--merge", "filled2.csv")
    assert inside(capsys, *further, "--labels", "two.csv").returncode == 0
    assert [row["new"] for row in rows_of("two.csv")][:3] == ["ham", "ham", "spam"]
    Path("other.csv").write_text("a,b\n1,2\n")  # some other file
    assert inside(capsys, *further, "--labels", "other.csv").returncode == 0
